/* pipeline_loops with products by wgmma: loops with one sum, a chain of products, two sums, and sums
 * that must wait, of floats and integers, compute what they state on the simulator, for every trip
 * count and number of stages, and it reports nothing. The conditions for products in flight hold where
 * the text of the kernel says so. So do they with every schedule that is asked for, which is refused
 * exactly where the loop has too few buffers or iterations, or no such products. Mutations of waits
 * and buffers are found. */
#include "support/lower_harness.h"

#include <lilac/schedule.h>
#include <lilac/tile_loops.h>

enum { ROWS = 64, COLUMNS = 32, PITCH = 1024, CASES = 160, MOST_ITERATIONS = 6 };

typedef enum sum_form { ONE, CHAIN, TWO, SCALED, USED, SUM_FORMS } sum_form;

typedef struct product_case {
    sum_form form;
    bool integers; /* i8 and i32, else f16 and f32 */
    bool known;    /* the trip count is a constant */
    bool masked;
    int32_t iterations;
    uint32_t stages;
    const lilac_schedule *asked; /* NULL: no request */
} product_case;

static int32_t inner_of(const product_case *c) {
    return c->integers ? 128 : 64;
}

static int32_t limit_of(const product_case *c) {
    return c->iterations * inner_of(c) - 24;
}

/* ---- the text ------------------------------------------------------------------------------ */

static void put_header(lilac_text *t, const product_case *c) {
    const unsigned k = (unsigned)inner_of(c), v = c->integers ? 16 : 8, bits = c->integers ? 8 : 16;
    lilac_text_printf(
        t,
        "#a = #ttg.blocked<{sizePerThread = [1, %u], threadsPerWarp = [4, 8], warpsPerCTA = [4, "
        "1], "
        "order = [1, 0]}>\n"
        "#b = #ttg.blocked<{sizePerThread = [%u, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, "
        "4], "
        "order = [0, 1]}>\n"
        "#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], "
        "instrShape "
        "= [16, 32, %u]}>\n"
        "#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = "
        "%u}>\n"
        "#t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = "
        "%u}>\n"
        "#smem = #ttg.shared_memory\n"
        "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, "
        "\"ttg.threads-per-warp\" = 32 : i32} {\n",
        v, v, 256 / bits, bits, bits);
    lilac_text_printf(
        t,
        "tt.func public @k(%%x: !tt.ptr<E> {tt.divisibility = 16 : i32}, %%z: !tt.ptr<E> "
        "{tt.divisibility = 16 : i32}, %%y: !tt.ptr<F> {tt.divisibility = 16 : i32}, "
        "%%n: i32) {\n%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
        "%%iterations = arith.constant %d : i32\n%%kk = arith.constant %u : i32\n"
        "%%zero = arith.constant dense<%s> : tensor<64x32xF, #mma>\n"
        "%%za = arith.constant dense<%s> : tensor<64x%uxE, #a>\n"
        "%%limit = arith.constant dense<%d> : tensor<64x%uxi32, #a>\n",
        c->iterations, k, c->integers ? "0" : "0.0", c->integers ? "0" : "0.0", k, limit_of(c), k);
}

/* %NAME: rows and columns of a tensor's coordinates, as row · pitch_r + column · pitch_c. */
static void put_offsets(lilac_text *t, const char *name, int32_t rows, int32_t columns,
                        const char *layout, int32_t row_pitch, int32_t column_pitch) {
    lilac_text_printf(
        t,
        "%%%s0 = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32, #ttg.slice<{dim "
        "= "
        "1, parent = #%s}>>\n"
        "%%%s1 = tt.expand_dims %%%s0 {axis = 1 : i32} : tensor<%dxi32, #ttg.slice<{dim = 1, "
        "parent = "
        "#%s}>> -> tensor<%dx1xi32, #%s>\n"
        "%%%s2 = arith.constant dense<%d> : tensor<%dx1xi32, #%s>\n"
        "%%%s3 = arith.muli %%%s1, %%%s2 : tensor<%dx1xi32, #%s>\n"
        "%%%s4 = tt.broadcast %%%s3 : tensor<%dx1xi32, #%s> -> tensor<%dx%dxi32, #%s>\n",
        name, rows, rows, layout, name, name, rows, layout, rows, layout, name, row_pitch, rows,
        layout, name, name, name, rows, layout, name, name, rows, layout, rows, columns, layout);
    lilac_text_printf(t,
                      "%%%s5 = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32, "
                      "#ttg.slice<{dim = "
                      "0, parent = #%s}>>\n"
                      "%%%s6 = tt.expand_dims %%%s5 {axis = 0 : i32} : tensor<%dxi32, "
                      "#ttg.slice<{dim = 0, parent = "
                      "#%s}>> -> tensor<1x%dxi32, #%s>\n"
                      "%%%s7 = arith.constant dense<%d> : tensor<1x%dxi32, #%s>\n"
                      "%%%s8 = arith.muli %%%s6, %%%s7 : tensor<1x%dxi32, #%s>\n",
                      name, columns, columns, layout, name, name, columns, layout, columns, layout,
                      name, column_pitch, columns, layout, name, name, name, columns, layout);
    lilac_text_printf(
        t,
        "%%%s9 = tt.broadcast %%%s8 : tensor<1x%dxi32, #%s> -> tensor<%dx%dxi32, #%s>\n"
        "%%%s = arith.addi %%%s4, %%%s9 : tensor<%dx%dxi32, #%s>\n",
        name, name, columns, layout, rows, columns, layout, name, name, name, rows, columns,
        layout);
}

static void put_loads(lilac_text *t, const product_case *c) {
    const int32_t k = inner_of(c);
    lilac_text_printf(t,
                      "%%ko = arith.muli %%k, %%kk : i32\n%%fx = tt.addptr %%x, %%ko : !tt.ptr<E>, "
                      "i32\n%%fz = tt.addptr %%z, %%ko : !tt.ptr<E>, i32\n");
    lilac_text_printf(
        t,
        "%%sx = tt.splat %%fx : !tt.ptr<E> -> tensor<64x%dx!tt.ptr<E>, #a>\n"
        "%%px = tt.addptr %%sx, %%oa : tensor<64x%dx!tt.ptr<E>, #a>, tensor<64x%dxi32, "
        "#a>\n"
        "%%sz = tt.splat %%fz : !tt.ptr<E> -> tensor<%dx32x!tt.ptr<E>, #b>\n"
        "%%pz = tt.addptr %%sz, %%ob : tensor<%dx32x!tt.ptr<E>, #b>, tensor<%dx32xi32, "
        "#b>\n%%ks = tt.splat %%ko : i32 -> tensor<64x%dxi32, #a>\n"
        "%%at = arith.addi %%ks, %%oa9 : tensor<64x%dxi32, #a>\n"
        "%%mask = arith.cmpi slt, %%at, %%limit : tensor<64x%dxi32, #a>\n",
        k, k, k, k, k, k, k, k, k);
    lilac_text_printf(
        t,
        "%%vx = tt.load %%px%s : tensor<64x%dx!tt.ptr<E>, #a>\n"
        "%%vz = tt.load %%pz : tensor<%dx32x!tt.ptr<E>, #b>\n"
        "%%mx = ttg.local_alloc %%vx : (tensor<64x%dxE, #a>) -> !ttg.memdesc<64x%dxE, "
        "#s, #smem>\n"
        "%%mz = ttg.local_alloc %%vz : (tensor<%dx32xE, #b>) -> !ttg.memdesc<%dx32xE, #t, "
        "#smem>\nttng.fence_async_shared {bCluster = false}\n",
        c->masked ? ", %mask, %za" : "", k, k, k, k, k, k);
}

static void put_product(lilac_text *t, const product_case *c, const char *result, const char *sum) {
    const int32_t k = inner_of(c);
    lilac_text_printf(t,
                      "%%%s = ttng.warp_group_dot %%mx, %%mz, %%%s {inputPrecision = 0 : i32} : "
                      "!ttg.memdesc<64x%dxE, #s, #smem> * !ttg.memdesc<%dx32xE, #t, #smem> -> "
                      "tensor<64x32xF, #mma>\n",
                      result, sum, k, k);
}

#define D "tensor<64x32xF, #mma>"

static void put_sums(lilac_text *t, const product_case *c) {
    const char *const add = c->integers ? "arith.addi" : "arith.addf";
    switch (c->form) {
    case CHAIN:
        put_product(t, c, "d0", "u");
        put_product(t, c, "un", "d0");
        lilac_text_printf(t, "%%wn = %s %%w, %%zero : " D "\n", add);
        break;
    case TWO:
        put_product(t, c, "un", "u");
        put_product(t, c, "wn", "w");
        break;
    case SCALED:
        lilac_text_printf(t, "%%u2 = %s %%u, %%u : " D "\n", add);
        put_product(t, c, "un", "u2");
        lilac_text_printf(t, "%%wn = %s %%w, %%zero : " D "\n", add);
        break;
    case USED:
        put_product(t, c, "un", "u");
        lilac_text_printf(t, "%%wn = %s %%w, %%un : " D "\n", add);
        break;
    default:
        put_product(t, c, "un", "u");
        lilac_text_printf(t, "%%wn = %s %%w, %%zero : " D "\n", add);
        break;
    }
}

/* Copies the text with E and F, where they are types, replaced. */
static void replace_types(lilac_text *out, const char *text, bool integers) {
    for (const char *at = text; *at != '\0'; at++) {
        const bool type =
            at != text && (at[-1] == '<' || at[-1] == 'x') && (at[1] == '>' || at[1] == ',');
        if (type && (*at == 'E' || *at == 'F')) {
            lilac_text_puts(out, *at == 'E' ? integers ? "i8" : "f16" : integers ? "i32" : "f32");
        } else {
            lilac_text_printf(out, "%c", *at);
        }
    }
}

static void put_case(lilac_text *out, const product_case *c) {
    lilac_text text, *t = &text;
    lilac_text_init(t);
    put_header(t, c);
    put_offsets(t, "oa", ROWS, inner_of(c), "a", PITCH, 1);
    put_offsets(t, "ob", inner_of(c), COLUMNS, "b", 1, PITCH);
    put_offsets(t, "od", ROWS, COLUMNS, "mma", 2 * COLUMNS, 1);
    lilac_text_printf(t,
                      "%%r:2 = scf.for %%k = %%c0 to %%%s step %%c1 iter_args(%%u = %%zero, %%w = "
                      "%%zero) -> (" D ", " D ") : i32 {\n",
                      c->known ? "iterations" : "n");
    put_loads(t, c);
    put_sums(t, c);
    lilac_text_puts(t,
                    "scf.yield %un, %wn : " D ", " D "\n}\n"
                    "%off = arith.constant dense<32> : tensor<64x32xi32, #mma>\n"
                    "%second = arith.addi %od, %off : tensor<64x32xi32, #mma>\n"
                    "%sy = tt.splat %y : !tt.ptr<F> -> tensor<64x32x!tt.ptr<F>, #mma>\n"
                    "%p0 = tt.addptr %sy, %od : tensor<64x32x!tt.ptr<F>, #mma>, tensor<64x32xi32, "
                    "#mma>\n"
                    "%p1 = tt.addptr %sy, %second : tensor<64x32x!tt.ptr<F>, #mma>, "
                    "tensor<64x32xi32, #mma>\n"
                    "tt.store %p0, %r#0 : tensor<64x32x!tt.ptr<F>, #mma>\n"
                    "tt.store %p1, %r#1 : tensor<64x32x!tt.ptr<F>, #mma>\ntt.return\n}\n}\n");
    replace_types(out, lilac_text_get(t), c->integers);
    lilac_text_clear(t);
}

/* ---- what the loop computes ------------------------------------------------------------------ */

typedef struct inputs {
    int8_t x[ROWS * PITCH], z[COLUMNS * PITCH]; /* small numbers */
} inputs;

static int32_t product_of(const product_case *c, const inputs *in, int32_t row, int32_t column,
                          int32_t n) {
    int32_t sum = 0;
    for (int32_t i = n * inner_of(c); i < (n + 1) * inner_of(c); i++) {
        const bool inside = !c->masked || i < limit_of(c);
        sum += inside ? in->x[row * PITCH + i] * in->z[column * PITCH + i] : 0;
    }
    return sum;
}

static void expect_sums(const product_case *c, const inputs *in, int32_t row, int32_t column,
                        int32_t *u, int32_t *w) {
    *u = *w = 0;
    for (int32_t n = 0; n < c->iterations; n++) {
        const int32_t d = product_of(c, in, row, column, n);
        *u = (c->form == SCALED ? 2 * *u : *u) + (c->form == CHAIN ? 2 * d : d);
        *w += c->form == TWO ? d : c->form == USED ? *u : 0;
    }
}

/* f16 of an integer from -7 to 7. */
static uint16_t half_of(int8_t value) {
    const uint16_t sign = value < 0 ? 0x8000 : 0;
    const uint32_t size = (uint32_t)(value < 0 ? -value : value);
    if (size == 0) {
        return 0;
    }
    const uint32_t top = size >= 4 ? 2 : size >> 1;
    return (uint16_t)(sign | (top + 15) << 10 | ((size << 10 >> top) & 0x3FF));
}

/* ---- running ---------------------------------------------------------------------------------- */

typedef void (*mutation)(lilac_tile_op *loop);

typedef struct pass_run {
    const product_case *c;
    mutation mutate;
    bool changed, refused;
    uint32_t in_flight, fences;
    bool last; /* copies start behind products that wait, to the buffers that they read */
    lilac_tile_op *loop;
} pass_run;

static void look_at(void *data, lilac_tile_op *op) {
    pass_run *run = data;
    run->loop = op->code == LILAC_TILE_OP_SCF_FOR ? op : run->loop;
    run->in_flight += op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT &&
                      lilac_tile_find_integer(&op->attributes, "isAsync", 0) != 0;
    run->fences += op->code == LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED;
    run->last |= lilac_tile_find_integer(&op->attributes, "lilac.last", 0) != 0;
}

/* Asks for the schedule of the case; afterwards the record of a pipelined loop has it. */
static void ask(lilac_tile_module *module, const product_case *c) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_schedule_print(&text, c->asked);
    assert_true(lilac_schedule_ask(module, 0, lilac_text_get(&text)));
    lilac_text_clear(&text);
}

static void check_record(const pass_run *run) {
    lilac_schedule record;
    if (run->c->asked == NULL || !run->changed) {
        return;
    }
    assert_true(lilac_schedule_of(&record, run->loop));
    for (uint32_t k = 0; k < LILAC_SCHEDULE_KEYS; k++) {
        assert_true(!run->c->asked->has[k] || record.values[k] == run->c->asked->values[k]);
    }
}

static void run_pass(lilac_tile_module *module, const void *data) {
    pass_run *run = *(pass_run *const *)data;
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = 4,
                                 .num_ctas = 1,
                                 .num_stages = run->c->stages};
    if (run->c->asked != NULL) {
        ask(module, run->c);
    }
    run->refused = !lilac_engine_pipeline_loops(module, &target, &run->changed);
    assert_true(!run->refused || run->c->asked != NULL);
    if (!lilac_tile_verify(module, true)) {
        print_diagnostics(module->context);
        fail_msg("the module does not verify after the pass");
    }
    lilac_tile_walk(module->functions->body, look_at, run);
    check_record(run);
    if (run->mutate != NULL) {
        run->mutate(run->loop);
        return;
    }
    bool changed;
    assert_true(lilac_engine_overlap_products(module, &target, &changed));
}

static bool execute(const harness *h, const product_case *c, const inputs *in) {
    static uint16_t x[ROWS * PITCH], z[COLUMNS * PITCH];
    static uint32_t y[ROWS * 2 * COLUMNS];
    for (uint32_t i = 0; i < ROWS * PITCH; i++) {
        x[i] = half_of(in->x[i]);
    }
    for (uint32_t i = 0; i < COLUMNS * PITCH; i++) {
        z[i] = half_of(in->z[i]);
    }
    if (c->integers) {
        memcpy(x, in->x, sizeof in->x);
        memcpy(z, in->z, sizeof in->z);
    }
    lilac_sim_buffer places[] = {{.name = "x", .bytes = (uint8_t *)x, .size = sizeof x},
                                 {.name = "z", .bytes = (uint8_t *)z, .size = sizeof z},
                                 {.name = "y", .bytes = (uint8_t *)y, .size = sizeof y}};
    lilac_sim_place(places, 3);
    const uint64_t arguments[] = {places[0].address, places[1].address, places[2].address,
                                  (uint64_t)c->iterations};
    const lilac_sim_launch launch = {.kernel = h->simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 4,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters;
    bool good = lilac_sim_run(h->context, &launch, &counters) && counters.races == 0 &&
                lilac_diagnostics(h->context) == NULL;
    for (int32_t row = 0; good && row < ROWS; row++) {
        for (int32_t column = 0; column < COLUMNS; column++) {
            int32_t sums[2];
            expect_sums(c, in, row, column, &sums[0], &sums[1]);
            for (int32_t i = 0; i < 2; i++) {
                const uint32_t bits = y[row * 2 * COLUMNS + i * COLUMNS + column];
                float value;
                memcpy(&value, &bits, sizeof value);
                good &= c->integers ? (int32_t)bits == sums[i] : value == (float)sums[i];
            }
        }
    }
    return good;
}

static bool try_case(const product_case *c, const inputs *in, pass_run *run) {
    lilac_text text;
    harness h;
    run->c = c;
    lilac_text_init(&text);
    put_case(&text, c);
    if (!harness_try_edited(&h, lilac_text_get(&text), 4, false, NULL, run_pass, &run)) {
        print_message("%s\n", lilac_text_get(&text));
        print_diagnostics(h.context);
        fail_msg("the kernel was refused");
    }
    const bool good = execute(&h, c, in);
    if (!good && run->mutate == NULL && !run->refused) {
        print_message("%s\n", lilac_text_get(&text));
        print_diagnostics(h.context);
    }
    harness_close(&h);
    lilac_text_clear(&text);
    return good;
}

static void fill(inputs *in, lilac_random *random) {
    for (uint32_t i = 0; i < sizeof in->x; i++) {
        in->x[i] = (int8_t)((int32_t)lilac_random_below(random, 7) - 3);
    }
    for (uint32_t i = 0; i < sizeof in->z; i++) {
        in->z[i] = (int8_t)((int32_t)lilac_random_below(random, 7) - 3);
    }
}

static void random_products(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 15);
    fill(&in, &random);
    for (uint32_t n = 0; n < CASES; n++) {
        const product_case c = {.form = (sum_form)(n % SUM_FORMS),
                                .integers = lilac_random_below(&random, 2) == 0,
                                .known = lilac_random_below(&random, 3) == 0,
                                .masked = lilac_random_below(&random, 2) == 0,
                                .iterations =
                                    (int32_t)lilac_random_below(&random, MOST_ITERATIONS + 1),
                                .stages = 1 + (uint32_t)lilac_random_below(&random, 5)};
        pass_run run = {.mutate = NULL};
        if (!try_case(&c, &in, &run)) {
            fail_msg("case %u is wrong", n);
        }
        const bool pipelined = c.stages >= 2 && (!c.known || c.iterations > 1);
        assert_int_equal(run.changed, pipelined);
        assert_int_equal(run.in_flight, !pipelined || c.form >= SCALED ? 0 : c.form == ONE ? 1 : 2);
        assert_int_equal(run.fences, pipelined ? 0 : 1);
    }
}

/* Where a buffer less gains a resident block, products complete before the copies of a short loop
 * start. */
static void copies_start_last(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 16);
    fill(&in, &random);
    for (uint32_t n = 0; n < 4; n++) {
        const product_case c = {.form = SCALED,
                                .integers = n % 2 != 0,
                                .known = true,
                                .iterations = 6,
                                .stages = 4 + n / 2};
        pass_run run = {.mutate = NULL};
        assert_true(try_case(&c, &in, &run));
        assert_true(run.last);
    }
}

/* ---- requests ---------------------------------------------------------------------------------- */

/* Any schedule of the keys that pipeline_loops carries out, possible or not. */
static lilac_schedule random_schedule(lilac_random *random) {
    lilac_schedule s = {.has = {false}};
    const uint32_t distance = 1 + (uint32_t)lilac_random_below(random, 4);
    lilac_schedule_add(&s, LILAC_SCHEDULE_PRODUCTS, (uint32_t)lilac_random_below(random, 4));
    lilac_schedule_add(&s, LILAC_SCHEDULE_COPIES, (uint32_t)lilac_random_below(random, 3));
    lilac_schedule_add(&s, LILAC_SCHEDULE_DISTANCE, distance);
    lilac_schedule_add(&s, LILAC_SCHEDULE_BUFFERS,
                       distance + (uint32_t)lilac_random_below(random, 4));
    return s;
}

/* What include/lilac/schedule.h and pipeline/requested.c say of a pipelined loop. */
static bool is_possible(const product_case *c) {
    const uint32_t *asked = c->asked->values, copies = asked[LILAC_SCHEDULE_COPIES];
    const uint32_t more = asked[LILAC_SCHEDULE_BUFFERS] - asked[LILAC_SCHEDULE_DISTANCE];
    if (c->known && asked[LILAC_SCHEDULE_DISTANCE] >= (uint32_t)c->iterations) {
        return false;
    }
    switch (asked[LILAC_SCHEDULE_PRODUCTS]) {
    case LILAC_PRODUCTS_IN_FLIGHT:
        return c->form < SCALED && copies != LILAC_COPIES_BEHIND &&
               more >= (copies == LILAC_COPIES_LAST ? 1 : 2);
    case LILAC_PRODUCTS_DELAY:
        return false;
    default:
        return more >= (copies == LILAC_COPIES_LAST && asked[LILAC_SCHEDULE_DISTANCE] > 1 ? 0 : 1);
    }
}

static void random_schedules(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    uint32_t possible = 0;
    lilac_random_seed(&random, 17);
    fill(&in, &random);
    for (uint32_t n = 0; n < CASES; n++) {
        const lilac_schedule asked = random_schedule(&random);
        const product_case c = {.form = (sum_form)(n % SUM_FORMS),
                                .integers = lilac_random_below(&random, 2) == 0,
                                .known = lilac_random_below(&random, 3) == 0,
                                .masked = lilac_random_below(&random, 2) == 0,
                                .iterations =
                                    (int32_t)lilac_random_below(&random, MOST_ITERATIONS + 1),
                                .stages = 1 + (uint32_t)lilac_random_below(&random, 5),
                                .asked = &asked};
        const bool pipelined = !c.known || c.iterations > 1;
        pass_run run = {.mutate = NULL};
        const bool right = try_case(&c, &in, &run);
        assert_int_equal(run.refused, pipelined && !is_possible(&c));
        assert_int_equal(run.changed, pipelined && !run.refused);
        if (!run.refused && !right) {
            fail_msg("case %u is wrong", n);
        }
        possible += run.changed;
    }
    assert_true(possible > CASES / 8);
}

/* ---- mutations --------------------------------------------------------------------------------- */

static lilac_tile_op *find_from(lilac_tile_op *op, lilac_tile_opcode code, uint32_t number) {
    for (; op != NULL; op = op->next) {
        if (op->code == code && number-- == 0) {
            return op;
        }
    }
    fail_msg("there is no such operation");
    return NULL;
}

static lilac_tile_op *find(lilac_tile_op *loop, lilac_tile_opcode code, uint32_t number) {
    return find_from(loop->regions[0]->first->first, code, number);
}

static void drop(lilac_tile_op *wait) {
    for (uint32_t i = 0; i < wait->result_count; i++) {
        lilac_tile_replace_uses(&wait->results[i], wait->operands[i].value);
    }
    lilac_tile_remove(wait);
}

static void drop_wait_in_loop(lilac_tile_op *loop) {
    drop(find(loop, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, 0));
}

static void drop_wait_behind_loop(lilac_tile_op *loop) {
    drop(find_from(loop, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, 0));
}

static void wait_for_one_less(lilac_tile_op *loop) {
    find(loop, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, 0)->attributes.list[0].integer++;
}

static void drop_wait_for_copies(lilac_tile_op *loop) {
    lilac_tile_remove(find(loop, LILAC_TILE_OP_TTG_ASYNC_WAIT, 0));
}

/* The copies overwrite what the product in flight reads. */
static void copy_too_early(lilac_tile_op *loop) {
    const lilac_tile_op *read = find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, 0);
    for (uint32_t i = 2; i < 4; i++) {
        lilac_tile_set_operand(find(loop, LILAC_TILE_OP_TTG_MEMDESC_INDEX, i), 1,
                               read->operands[1].value);
    }
}

static const mutation mutations[] = {drop_wait_in_loop, drop_wait_behind_loop, wait_for_one_less,
                                     drop_wait_for_copies, copy_too_early};

/* Also with copies in front of the products, and with those distances that no number of stages has
 * here. With one buffer less the request is refused (random_schedules). */
static void mutations_of_requests_are_found(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 18);
    fill(&in, &random);
    for (uint32_t n = 0; n < 8; n++) {
        const uint32_t distance = 1 + n % 4,
                       copies = n < 4 ? LILAC_COPIES_FIRST : LILAC_COPIES_LAST;
        lilac_schedule asked = {.has = {false}};
        lilac_schedule_add(&asked, LILAC_SCHEDULE_PRODUCTS, LILAC_PRODUCTS_IN_FLIGHT);
        lilac_schedule_add(&asked, LILAC_SCHEDULE_COPIES, copies);
        lilac_schedule_add(&asked, LILAC_SCHEDULE_DISTANCE, distance);
        lilac_schedule_add(&asked, LILAC_SCHEDULE_BUFFERS,
                           distance + (copies == LILAC_COPIES_FIRST ? 2 : 1));
        const product_case c = {.form = ONE, .iterations = 6, .stages = 3, .asked = &asked};
        pass_run run = {.mutate = NULL};
        assert_true(try_case(&c, &in, &run));
        assert_int_equal(run.in_flight, 1);
        for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
            run = (pass_run){.mutate = mutations[i]};
            if (try_case(&c, &in, &run)) {
                fail_msg("mutation %u of request %u is not found", i, n);
            }
        }
    }
}

static void mutations_are_found(void **state) {
    (void)state;
    static inputs in;
    lilac_random random;
    lilac_random_seed(&random, 16);
    fill(&in, &random);
    for (uint32_t stages = 2; stages <= 4; stages++) {
        for (uint32_t integers = 0; integers < 2; integers++) {
            const product_case c = {
                .form = ONE, .integers = integers != 0, .iterations = 6, .stages = stages};
            pass_run run = {.mutate = NULL};
            assert_true(try_case(&c, &in, &run));
            for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
                run = (pass_run){.mutate = mutations[i]};
                if (try_case(&c, &in, &run)) {
                    fail_msg("mutation %u with %u stages is not found", i, stages);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products), cmocka_unit_test(copies_start_last),
        cmocka_unit_test(random_schedules), cmocka_unit_test(mutations_are_found),
        cmocka_unit_test(mutations_of_requests_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
