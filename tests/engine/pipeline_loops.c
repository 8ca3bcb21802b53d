/* pipeline_loops: random loops compute what they state, on the simulator, for every trip count, number
 * of stages, mask and form of address; the simulator reports no race. The loops have no products: a
 * ttg.local_load of memory that the body allocates is an anchor as a product is. Loops that must stay
 * as they are do. Mutations: without the wait for the copies, with a wait for one group less, or with
 * copies to the buffer that is being read, the simulator reports races. */
#include "support/lower_harness.h"

#include <lilac/tile_loops.h>

enum { ROWS = 32, COLUMNS = 64, PITCH = 1024, BASE = 256, SPAN = 16, CASES = 400 };
enum { PLACES = BASE + ROWS * PITCH };

typedef enum pointer_form { CARRIED_TENSOR, CARRIED_SCALAR, COMPUTED, POINTER_FORMS } pointer_form;
typedef enum user_form {
    DIRECT,
    WIDENED,
    CONVERTED,
    TRANSPOSED,
    FRAGMENT,
    TURNED,
    USER_FORMS
} user_form;
typedef enum write_form { NO_WRITE, OTHER_WRITE, SAME_WRITE } write_form;

typedef struct loop_case {
    int32_t lower, step, iterations;
    bool known;    /* the bounds are constants */
    bool wide;     /* the counter has 64 bits */
    bool masked;   /* elements beyond a limit are `other` */
    int32_t other; /* 0: a copy fills with zeros */
    bool second;   /* a second load, of another argument */
    bool indirect; /* the pointers come from a load */
    pointer_form pointers;
    user_form user;
    write_form writes;
    uint32_t bits;   /* of an element */
    uint32_t vector; /* elements of a thread's vector */
    uint32_t stages;
    bool by_attribute; /* the number of stages is the loop's */
} loop_case;

static int32_t limit_of(const loop_case *c) {
    return (c->lower + c->iterations * c->step - 1) * SPAN + COLUMNS / 2;
}

/* ---- the text ---------------------------------------------------------------------------- */

#define P "tensor<32x64x!tt.ptr<i%u>, #b>"
#define E "tensor<32x64xi%u, #b>"
#define N "tensor<32x64xi32, #b>"

static void put_header(lilac_text *t, const loop_case *c) {
    lilac_text_printf(
        t,
        "#b = #ttg.blocked<{sizePerThread = [1, %u], threadsPerWarp = [4, 8], warpsPerCTA = [4, "
        "1], "
        "order = [1, 0]}>\n"
        "#bt = #ttg.blocked<{sizePerThread = [%u, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, "
        "4], "
        "order = [0, 1]}>\n"
        "#d = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], "
        "order = [0, 1]}>\n"
        "#r = #ttg.slice<{dim = 1, parent = #b}>\n#q = #ttg.slice<{dim = 0, parent = #b}>\n"
        "#s = #ttg.swizzled_shared<{vec = %u, perPhase = 1, maxPhase = 4, order = [1, 0]}>\n"
        "#t = #ttg.swizzled_shared<{vec = %u, perPhase = 1, maxPhase = 4, order = [0, 1]}>\n"
        "#smem = #ttg.shared_memory\n"
        "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
        "\"ttg.threads-per-warp\" = 32 : i32} {\n"
        "tt.func public @k(%%x: !tt.ptr<i%u> {tt.divisibility = 16 : i32}, "
        "%%z: !tt.ptr<i%u> {tt.divisibility = 16 : i32}, "
        "%%j: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %%y: !tt.ptr<i32> {tt.divisibility = 16 : "
        "i32}, %%w: !tt.ptr<i%u> {tt.divisibility = 16 : i32}, %%from: i%u, %%to: i%u) {\n",
        c->vector, c->vector, c->vector, c->vector, c->bits, c->bits, c->bits, c->wide ? 64u : 32u,
        c->wide ? 64u : 32u);
}

static void put_constants(lilac_text *t, const loop_case *c) {
    const uint32_t i = c->wide ? 64 : 32;
    lilac_text_printf(
        t,
        "%%kf = arith.constant %d : i%u\n%%kt = arith.constant %d : i%u\n%%ks = arith.constant %d "
        ": "
        "i%u\n%%span = arith.constant %d : i32\n"
        "%%zero = arith.constant dense<0> : " N "\n%%rows = tt.make_range {end = 32 : i32, start = "
        "0 : i32} : tensor<32xi32, #r>\n%%cols = tt.make_range {end = 64 : i32, start = 0 : i32} : "
        "tensor<64xi32, #q>\n"
        "%%r2 = tt.expand_dims %%rows {axis = 1 : i32} : tensor<32xi32, #r> -> tensor<32x1xi32, "
        "#b>\n"
        "%%q2 = tt.expand_dims %%cols {axis = 0 : i32} : tensor<64xi32, #q> -> tensor<1x64xi32, "
        "#b>\n"
        "%%pitch = arith.constant dense<%d> : tensor<32x1xi32, #b>\n"
        "%%r3 = arith.muli %%r2, %%pitch : tensor<32x1xi32, #b>\n"
        "%%r4 = tt.broadcast %%r3 : tensor<32x1xi32, #b> -> " N "\n"
        "%%q4 = tt.broadcast %%q2 : tensor<1x64xi32, #b> -> " N "\n"
        "%%o0 = arith.addi %%r4, %%q4 : " N "\n%%base = arith.constant dense<%d> : " N "\n"
        "%%o = arith.addi %%o0, %%base : " N "\n"
        "%%low = arith.constant dense<8191> : " N "\n%%limit = arith.constant dense<%d> : " N "\n"
        "%%more = arith.constant dense<%d> : " N "\n",
        c->lower, i, c->lower + c->iterations * c->step, i, c->step, i, SPAN, PITCH, BASE,
        limit_of(c), c->step * SPAN);
    lilac_text_printf(
        t, "%%other = arith.constant dense<%d> : " E "\n%%smore = arith.constant %d : i32\n",
        c->other, c->bits, c->step * SPAN);
    lilac_text_printf(t, "%%none = arith.constant 0 : i32\n%%l32 = %s %%%s%s\n",
                      c->wide ? "arith.trunci" : "arith.addi", c->known ? "kf" : "from",
                      c->wide ? " : i64 to i32" : ", %none : i32");
}

/* %p<name> of the iteration: pointers to x + o + SPAN · k. */
static void put_first_pointers(lilac_text *t, const loop_case *c) {
    lilac_text_printf(t,
                      "%%first = arith.muli %%l32, %%span : i32\n"
                      "%%fx = tt.addptr %%x, %%first : !tt.ptr<i%u>, i32\n"
                      "%%sx = tt.splat %%fx : !tt.ptr<i%u> -> " P "\n"
                      "%%px = tt.addptr %%sx, %%o : " P ", " N "\n",
                      c->bits, c->bits, c->bits, c->bits);
}

static void put_pointers(lilac_text *t, const loop_case *c) {
    lilac_text_printf(t, "%%k32 = %s\n%%ko = arith.muli %%k32, %%span : i32\n",
                      c->wide ? "arith.trunci %k : i64 to i32" : "arith.addi %k, %none : i32");
    lilac_text_printf(t, "%%kt0 = tt.splat %%ko : i32 -> " N "\n%%at = arith.addi %%kt0, %%o : " N
                         "\n%%column = arith.addi %%kt0, %%q4 : " N
                         "\n%%mask = arith.cmpi slt, %%column, %%limit : " N "\n");
    if (c->indirect) {
        lilac_text_printf(t,
                          "%%js = tt.splat %%j : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>, #b>\n"
                          "%%jp = tt.addptr %%js, %%at : tensor<32x64x!tt.ptr<i32>, #b>, " N "\n"
                          "%%jv = tt.load %%jp : tensor<32x64x!tt.ptr<i32>, #b>\n"
                          "%%ja = arith.andi %%jv, %%low : " N "\n"
                          "%%xs = tt.splat %%x : !tt.ptr<i%u> -> " P "\n"
                          "%%p = tt.addptr %%xs, %%ja : " P ", " N "\n",
                          c->bits, c->bits, c->bits);
    } else if (c->pointers == COMPUTED) {
        lilac_text_printf(t,
                          "%%xs = tt.splat %%x : !tt.ptr<i%u> -> " P "\n"
                          "%%p = tt.addptr %%xs, %%at : " P ", " N "\n",
                          c->bits, c->bits, c->bits);
    } else if (c->pointers == CARRIED_SCALAR) {
        lilac_text_printf(t,
                          "%%xs = tt.splat %%ps : !tt.ptr<i%u> -> " P "\n"
                          "%%p = tt.addptr %%xs, %%o : " P ", " N "\n",
                          c->bits, c->bits, c->bits);
    }
}

/* %sum<name>: the loaded tensor %v<name> through memory, as i32 in #b. */
static void put_user(lilac_text *t, const loop_case *c, const char *n, user_form user) {
    const uint32_t bits = user == WIDENED ? 32 : c->bits;
    const char *v = "v";
    if (user == WIDENED && c->bits < 32) {
        lilac_text_printf(t, "%%e%s = arith.extsi %%v%s : " E " to " N "\n", n, n, c->bits);
        v = "e";
    }
    if (user == TURNED) { /* a conversion of the transposed load */
        lilac_text_printf(
            t,
            "%%f%s = tt.trans %%v%s {order = array<i32: 1, 0>} : " E " -> tensor<64x32xi%u, #bt>\n"
            "%%c%s = ttg.convert_layout %%f%s : tensor<64x32xi%u, #bt> -> tensor<64x32xi%u, #d>\n"
            "%%m%s = ttg.local_alloc %%c%s : (tensor<64x32xi%u, #d>) -> !ttg.memdesc<64x32xi%u, "
            "#s, "
            "#smem>\n",
            n, n, bits, bits, n, n, bits, bits, n, n, bits, bits);
        lilac_text_printf(
            t,
            "%%h%s = ttg.local_load %%m%s : !ttg.memdesc<64x32xi%u, #s, #smem> -> "
            "tensor<64x32xi%u, "
            "#bt>\n%%g%s = tt.trans %%h%s {order = array<i32: 1, 0>} : tensor<64x32xi%u, #bt> -> " E
            "\n",
            n, n, bits, bits, n, n, bits, bits);
    } else if (user == FRAGMENT) { /* the conversion stays; another use is the anchor */
        lilac_text_printf(t, "%%f%s = ttg.convert_layout %%v%s : " E " -> tensor<32x64xi%u, #d>\n",
                          n, n, c->bits, c->bits);
        lilac_text_printf(t,
                          "%%m%s = ttg.local_alloc %%f%s : (tensor<32x64xi%u, #d>) -> "
                          "!ttg.memdesc<32x64xi%u, #t, #smem>\n",
                          n, n, c->bits, c->bits);
        lilac_text_printf(t,
                          "%%g%s = ttg.local_load %%m%s : !ttg.memdesc<32x64xi%u, #t, #smem> -> "
                          "tensor<32x64xi%u, #b>\n",
                          n, n, bits, bits);
    } else if (user == CONVERTED) {
        lilac_text_printf(t, "%%f%s = ttg.convert_layout %%v%s : " E " -> tensor<32x64xi%u, #d>\n",
                          n, n, c->bits, c->bits);
        lilac_text_printf(t,
                          "%%m%s = ttg.local_alloc %%f%s : (tensor<32x64xi%u, #d>) -> "
                          "!ttg.memdesc<32x64xi%u, #s, #smem>\n",
                          n, n, c->bits, c->bits);
        lilac_text_printf(
            t, "%%g%s = ttg.local_load %%m%s : !ttg.memdesc<32x64xi%u, #s, #smem> -> " E "\n", n, n,
            bits, bits);
    } else {
        lilac_text_printf(t,
                          "%%m%s = ttg.local_alloc %%%s%s : (" E ") -> !ttg.memdesc<32x64xi%u, #s, "
                          "#smem>\n",
                          n, v, n, bits, bits);
    }
    if (user == TRANSPOSED) {
        lilac_text_printf(
            t,
            "%%t%s = ttg.memdesc_trans %%m%s {order = array<i32: 1, 0>} : "
            "!ttg.memdesc<32x64xi%u, #s, #smem> -> !ttg.memdesc<64x32xi%u, #t, #smem>\n"
            "%%h%s = ttg.local_load %%t%s : !ttg.memdesc<64x32xi%u, #t, #smem> -> "
            "tensor<64x32xi%u, #bt>\n",
            n, n, bits, bits, n, n, bits, bits);
        lilac_text_printf(
            t,
            "%%g%s = tt.trans %%h%s {order = array<i32: 1, 0>} : tensor<64x32xi%u, #bt> "
            "-> " E "\n",
            n, n, bits, bits);
    } else if (user == DIRECT || user == WIDENED) {
        lilac_text_printf(
            t, "%%g%s = ttg.local_load %%m%s : !ttg.memdesc<32x64xi%u, #s, #smem> -> " E "\n", n, n,
            bits, bits);
    }
    if (bits < 32) {
        lilac_text_printf(t, "%%sum%s = arith.extsi %%g%s : " E " to " N "\n", n, n, bits);
    } else {
        lilac_text_printf(t, "%%sum%s = arith.addi %%g%s, %%zero : " N "\n", n, n);
    }
}

static void put_body(lilac_text *t, const loop_case *c) {
    put_pointers(t, c);
    lilac_text_printf(t, "%%v = tt.load %%%s%s : " P "\n",
                      !c->indirect && c->pointers == CARRIED_TENSOR ? "pt" : "p",
                      c->masked ? ", %mask, %other" : "", c->bits);
    put_user(t, c, "", c->user);
    lilac_text_puts(t, "%three = arith.addi %acc, %acc : " N "\n%a0 = arith.addi %three, %sum : " N
                       "\n");
    if (c->second) {
        lilac_text_printf(t,
                          "%%zs = tt.splat %%z : !tt.ptr<i%u> -> " P "\n"
                          "%%pz = tt.addptr %%zs, %%at : " P ", " N "\n%%vz = tt.load %%pz : " P
                          "\n",
                          c->bits, c->bits, c->bits, c->bits);
        put_user(t, c, "z", DIRECT);
        lilac_text_puts(t, "%next = arith.addi %a0, %sumz : " N "\n");
    } else {
        lilac_text_puts(t, "%next = arith.addi %a0, %zero : " N "\n");
    }
    if (c->writes != NO_WRITE) { /* x itself beyond what is read, or w */
        lilac_text_printf(t,
                          "%%ws = tt.splat %%%s : !tt.ptr<i%u> -> " P "\n"
                          "%%pw = tt.addptr %%ws, %%at : " P ", " N "\n"
                          "tt.store %%pw, %%other : " P "\n",
                          c->writes == SAME_WRITE ? "x" : "w", c->bits, c->bits, c->bits, c->bits);
    }
    lilac_text_printf(t,
                      "%%pn = tt.addptr %%pt, %%more : " P ", " N "\n%%psn = tt.addptr %%ps, "
                      "%%smore : !tt.ptr<i%u>, i32\n",
                      c->bits, c->bits);
}

static void put_case(lilac_text *t, const loop_case *c) {
    put_header(t, c);
    put_constants(t, c);
    put_first_pointers(t, c);
    const uint32_t i = c->wide ? 64 : 32;
    lilac_text_printf(
        t,
        "%%r:3 = scf.for %%k = %%%s to %%%s step %%ks iter_args(%%acc = %%zero, %%pt = "
        "%%px, %%ps = %%fx) -> (" N ", " P ", !tt.ptr<i%u>) : i%u {\n",
        c->known ? "kf" : "from", c->known ? "kt" : "to", c->bits, c->bits, i);
    put_body(t, c);
    lilac_text_printf(t, "scf.yield %%next, %%pn, %%psn : " N ", " P ", !tt.ptr<i%u>\n}", c->bits,
                      c->bits);
    if (c->by_attribute) {
        lilac_text_printf(t, " {tt.num_stages = %u : i32}", c->stages);
    }
    lilac_text_puts(t, "\n%ys = tt.splat %y : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>, #b>\n"
                       "%py = tt.addptr %ys, %o0 : tensor<32x64x!tt.ptr<i32>, #b>, " N "\n"
                       "tt.store %py, %r#0 : tensor<32x64x!tt.ptr<i32>, #b>\ntt.return\n}\n}\n");
}

/* ---- what the loop computes --------------------------------------------------------------- */

typedef struct inputs {
    uint8_t x[4 * PLACES], z[4 * PLACES], w[4 * PLACES];
    int32_t j[PLACES];
} inputs;

static int32_t element(const uint8_t *bytes, uint32_t bits, uint32_t place) {
    const uint64_t word = get_element(bytes,
                                      bits == 8    ? LILAC_I8
                                      : bits == 16 ? LILAC_I16
                                                   : LILAC_I32,
                                      place);
    return bits == 8 ? (int8_t)word : bits == 16 ? (int16_t)word : (int32_t)word;
}

static void compute(const loop_case *c, const inputs *in, uint32_t *result) {
    for (int32_t row = 0; row < ROWS; row++) {
        for (int32_t column = 0; column < COLUMNS; column++) {
            uint32_t sum = 0;
            for (int32_t n = 0; n < c->iterations; n++) {
                const int32_t span = (c->lower + n * c->step) * SPAN;
                const uint32_t at = (uint32_t)(BASE + row * PITCH + span + column);
                const uint32_t from = c->indirect ? (uint32_t)in->j[at] & 8191 : at;
                const bool inside = !c->masked || span + column < limit_of(c);
                sum = 2 * sum + (uint32_t)(inside ? element(in->x, c->bits, from) : c->other);
                sum += c->second ? (uint32_t)element(in->z, c->bits, at) : 0;
            }
            result[row * PITCH + column] = sum;
        }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

typedef void (*mutation)(lilac_tile_op *loop);

typedef struct pass_run {
    const loop_case *c;
    mutation mutate;
    uint32_t shared_bytes; /* of the device; 0: those of sm_90a */
    bool changed;
    int64_t buffers;      /* of the rings; 0: there are none */
    uint32_t early_loads; /* loads whose results the loop carries */
} pass_run;

static lilac_tile_op *loop_found;

static void find_loop(void *data, lilac_tile_op *op) {
    (void)data;
    loop_found = op->code == LILAC_TILE_OP_SCF_FOR ? op : loop_found;
}

static void look_at(void *data, lilac_tile_op *op) {
    pass_run *run = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count == 0) {
        run->buffers = op->results[0].type->shape[0];
    }
    for (const lilac_tile_use *use = op->code == LILAC_TILE_OP_TT_LOAD ? op->results[0].uses : NULL;
         use != NULL; use = use->next) {
        run->early_loads += use->op->code == LILAC_TILE_OP_SCF_YIELD;
    }
}

static void run_pass(lilac_tile_module *module, const void *data) {
    pass_run *run = *(pass_run *const *)data;
    lilac_arch arch = *lilac_arch_find("sm_90a");
    arch.shared_bytes = run->shared_bytes != 0 ? run->shared_bytes : arch.shared_bytes;
    const lilac_target target = {.arch = &arch,
                                 .num_warps = 4,
                                 .num_ctas = 1,
                                 .num_stages = run->c->by_attribute ? 3 : run->c->stages};
    assert_true(lilac_engine_pipeline_loops(module, &target, &run->changed));
    if (!lilac_tile_verify(module, true)) {
        print_diagnostics(module->context);
        fail_msg("the module does not verify after the pass");
    }
    lilac_tile_walk(module->functions->body, look_at, run);
    if (run->mutate != NULL) {
        loop_found = NULL;
        lilac_tile_walk(module->functions->body, find_loop, NULL);
        run->mutate(loop_found);
    }
}

/* Runs the kernel. Returns whether the simulator reported nothing and the result is right. */
static bool execute(const harness *h, const loop_case *c, const inputs *in) {
    static uint32_t y[PLACES], expected[PLACES];
    static inputs copy;
    copy = *in;
    memset(y, 0, sizeof y);
    memset(expected, 0, sizeof expected);
    lilac_sim_buffer places[] = {
        {.name = "x", .bytes = copy.x, .size = sizeof copy.x},
        {.name = "z", .bytes = copy.z, .size = sizeof copy.z},
        {.name = "j", .bytes = (uint8_t *)copy.j, .size = sizeof copy.j},
        {.name = "y", .bytes = (uint8_t *)y, .size = sizeof y},
        {.name = "w", .bytes = copy.w, .size = sizeof copy.w},
    };
    lilac_sim_place(places, 5);
    uint64_t arguments[7];
    for (uint32_t i = 0; i < 5; i++) {
        arguments[i] = places[i].address;
    }
    arguments[5] = (uint64_t)c->lower;
    arguments[6] = (uint64_t)(c->lower + c->iterations * c->step);
    const lilac_sim_launch launch = {.kernel = h->simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 7,
                                     .buffers = places,
                                     .buffer_count = 5,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters;
    const bool good = lilac_sim_run(h->context, &launch, &counters);
    compute(c, in, expected);
    return good && counters.races == 0 && memcmp(y, expected, sizeof y) == 0;
}

/* Compiles the case with the pass and executes it. */
static bool try_case(const loop_case *c, const inputs *in, pass_run *run) {
    run->c = c;
    lilac_text text;
    harness h;
    lilac_text_init(&text);
    put_case(&text, c);
    if (!harness_try_edited(&h, lilac_text_get(&text), 4, false, NULL, run_pass, &run)) {
        print_message("%s\n", lilac_text_get(&text));
        print_diagnostics(h.context);
        fail_msg("the kernel was refused");
    }
    const bool good = c->writes == SAME_WRITE || execute(&h, c, in);
    if (!good && run->mutate == NULL) {
        print_message("%s\n", lilac_text_get(&text));
        print_diagnostics(h.context);
    }
    harness_close(&h);
    lilac_text_clear(&text);
    return good;
}

static loop_case random_case(lilac_random *random) {
    static const uint32_t widths[] = {8, 16, 32};
    loop_case c = {.lower = (int32_t)lilac_random_below(random, 9) - 4,
                   .step = 1 + (int32_t)lilac_random_below(random, 5),
                   .iterations = (int32_t)lilac_random_below(random, 9),
                   .known = lilac_random_below(random, 4) == 0,
                   .wide = lilac_random_below(random, 4) == 0,
                   .masked = lilac_random_below(random, 2) == 0,
                   .second = lilac_random_below(random, 3) == 0,
                   .pointers = (pointer_form)lilac_random_below(random, POINTER_FORMS),
                   .user = (user_form)lilac_random_below(random, USER_FORMS),
                   .bits = widths[lilac_random_below(random, 3)],
                   .stages = 1 + (uint32_t)lilac_random_below(random, 5),
                   .by_attribute = lilac_random_below(random, 3) == 0};
    c.other = lilac_random_below(random, 2) ? 0 : 5;
    c.vector = 32 / c.bits << lilac_random_below(random, 3);
    if (lilac_random_below(random, 8) == 0 && c.bits < 32) {
        c.vector = 1; /* too short for a copy */
    }
    if (lilac_random_below(random, 4) == 0) {
        c.indirect = true;
        c.bits = 32;
        c.vector = 1;
    }
    c.writes = (write_form)lilac_random_below(random, 3);
    return c;
}

/* Does the pass rewrite the loop? z is never written, so its load becomes a copy. */
static bool is_pipelined(const loop_case *c) {
    const bool wide = c->vector * c->bits >= 32;
    return c->stages >= 2 && (!c->known || c->iterations > 1) && wide &&
           (c->writes != SAME_WRITE || c->second);
}

static void fill(inputs *in, lilac_random *random) {
    for (uint32_t i = 0; i < sizeof in->x; i++) {
        in->x[i] = (uint8_t)lilac_random_next(random);
        in->z[i] = (uint8_t)lilac_random_next(random);
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        in->j[i] = (int32_t)lilac_random_next(random);
    }
}

static void random_loops(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    uint32_t pipelined = 0;
    lilac_random_seed(&random, 20261123);
    fill(&in, &random);
    for (uint32_t n = 0; n < CASES; n++) {
        const loop_case c = random_case(&random);
        pass_run run = {.mutate = NULL};
        if (!try_case(&c, &in, &run)) {
            fail_msg("case %u is wrong", n);
        }
        assert_int_equal(run.changed, is_pipelined(&c));
        assert_int_equal(run.early_loads,
                         run.changed && c.indirect && c.writes != SAME_WRITE ? 1 : 0);
        pipelined += run.changed;
    }
    assert_true(pipelined > CASES / 3);
}

/* ---- mutations --------------------------------------------------------------------------------- */

static lilac_tile_op *find(lilac_tile_op *loop, lilac_tile_opcode code, uint32_t number) {
    for (lilac_tile_op *op = loop->regions[0]->first->first; op != NULL; op = op->next) {
        if (op->code == code && number-- == 0) {
            return op;
        }
    }
    fail_msg("the loop has no such operation");
    return NULL;
}

static void drop_wait(lilac_tile_op *loop) {
    lilac_tile_remove(find(loop, LILAC_TILE_OP_TTG_ASYNC_WAIT, 0));
}

static void wait_for_one_less(lilac_tile_op *loop) {
    lilac_tile_op *wait = find(loop, LILAC_TILE_OP_TTG_ASYNC_WAIT, 0);
    for (uint32_t i = 0; i < wait->attributes.count; i++) {
        wait->attributes.list[i].integer++;
    }
}

static void copy_to_read_buffer(lilac_tile_op *loop) {
    const lilac_tile_op *read = find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 0);
    lilac_tile_op *written = find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 1);
    lilac_tile_set_operand(written, 1, read->operands[1].value);
}

static void drop_commit(lilac_tile_op *loop) {
    lilac_tile_remove(find(loop, LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP, 0));
}

static void mutations_are_found(void **state) {
    (void)state;
    static const mutation mutations[] = {drop_wait, wait_for_one_less, copy_to_read_buffer,
                                         drop_commit};
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 7);
    fill(&in, &random);
    for (uint32_t stages = 2; stages <= 4; stages++) {
        for (uint32_t form = 0; form < 2; form++) {
            const loop_case c = {.step = 1,
                                 .iterations = 6,
                                 .masked = form == 1,
                                 .user = form == 1 ? FRAGMENT : DIRECT,
                                 .bits = 16,
                                 .vector = 8,
                                 .stages = stages};
            pass_run run = {.mutate = NULL};
            assert_true(try_case(&c, &in, &run));
            assert_true(run.changed);
            for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
                run = (pass_run){.mutate = mutations[i]};
                if (try_case(&c, &in, &run)) {
                    fail_msg("mutation %u with %u stages is not found", i, stages);
                }
            }
        }
    }
}

/* As many buffers as stages, as fit, and as the loop has iterations; a ring has at least two. */
static void memory_limits_buffers(void **state) {
    (void)state;
    enum { SLOT = ROWS * COLUMNS * 4 };
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 8);
    fill(&in, &random);
    for (uint32_t fits = 1; fits <= 6; fits++) {
        for (uint32_t stages = 1; stages <= 6; stages++) {
            const loop_case c = {.step = 1,
                                 .iterations = 4,
                                 .known = stages % 2 != 0,
                                 .user = DIRECT,
                                 .bits = 32,
                                 .vector = 4,
                                 .stages = stages};
            pass_run run = {.shared_bytes = fits * SLOT + SLOT / 2};
            assert_true(try_case(&c, &in, &run));
            const uint32_t most = c.known && stages > 4 ? 4 : stages;
            const uint32_t wanted = most < fits ? most : fits;
            assert_int_equal(run.buffers, wanted < 2 ? 0 : wanted);
            assert_int_equal(run.changed, wanted >= 2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_loops),
                                       cmocka_unit_test(mutations_are_found),
                                       cmocka_unit_test(memory_limits_buffers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
