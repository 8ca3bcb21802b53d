/* join_loops: two random loops, of which the second one is a variation of the first one, compute the same bits before
 * and after the pass, whatever the bounds are; and the loops that stay two. */
#include "support/engine_harness.h"
#include "support/interpreter.h"

#include <math.h>

static uint32_t below(lilac_random *random, uint32_t limit) {
    return (uint32_t)lilac_random_below(random, limit);
}

enum { SIDE = 16, COUNT = SIDE * SIDE, ROWS = 8, CASES = 600, MOST_STEPS = 9 };

/* ---- random bodies ----------------------------------------------------------------------------- */

typedef enum step_kind {
    STEP_ADD,
    STEP_SUB,
    STEP_MOST,
    STEP_LEAST,
    STEP_TWICE, /* times a constant */
    STEP_SCALE, /* times a number of the kernel's */
    STEP_MASK,
    STEP_HIGHEST, /* minus what the loop carries for each row */
    STEP_REDUCE,  /* minus its own maximum of each row */
    STEP_KINDS
} step_kind;

/* An operation on the values that are one and some places back. */
typedef struct step {
    uint32_t kind, back;
} step;

typedef struct body {
    uint32_t count;
    step steps[MOST_STEPS];
} body;

typedef struct loops_case {
    body bodies[2];
    int32_t step;
    uint32_t counter;  /* begins the second loop: 0 as it is, 1 as a sum, 2 with another number */
    bool own[2];       /* what one loop carries alone */
    bool again;        /* the middle bound is computed twice */
    bool other_offset; /* the second loop loads by another counter */
} loops_case;

static body random_body(lilac_random *random) {
    body b = {.count = 1 + below(random, 5)};
    for (uint32_t i = 0; i < b.count; i++) {
        b.steps[i] = (step){below(random, STEP_KINDS), 1 + below(random, 3)};
    }
    return b;
}

/* With one to three operations more, fewer or of another kind, or none. */
static body variation(lilac_random *random, body b) {
    for (uint32_t edits = below(random, 4); edits > 0; edits--) {
        const uint32_t at = below(random, b.count);
        const step made = {below(random, STEP_KINDS), 1 + below(random, 3)};
        switch (below(random, 3)) {
        case 0:
            b.steps[at] = made;
            break;
        case 1:
            if (b.count < MOST_STEPS) {
                memmove(&b.steps[at + 1], &b.steps[at], (b.count - at) * sizeof *b.steps);
                b.steps[at] = made;
                b.count++;
            }
            break;
        default:
            if (b.count > 1) {
                b.count--;
                memmove(&b.steps[at], &b.steps[at + 1], (b.count - at) * sizeof *b.steps);
            }
        }
    }
    return b;
}

#define TILE   "tensor<16x16xf32>"
#define COLUMN "tensor<16xf32>"

static void put_reduction(lilac_text *t, uint32_t value, const char *result) {
    lilac_text_printf(
        t,
        "%%%s = \"tt.reduce\"(%%v%u) <{axis = 1 : i32}> ({\n^bb0(%%l: f32, %%r: f32):\n"
        "%%g = arith.maxnumf %%l, %%r : f32\ntt.reduce.return %%g : f32\n"
        "}) : (" TILE ") -> " COLUMN "\n",
        result, value);
}

static void put_rows(lilac_text *t, const char *rows, const char *result) {
    lilac_text_printf(t,
                      "%%%s0 = tt.expand_dims %%%s {axis = 1 : i32} : " COLUMN
                      " -> tensor<16x1xf32>\n"
                      "%%%s = tt.broadcast %%%s0 : tensor<16x1xf32> -> " TILE "\n",
                      result, rows, result, result);
}

/* Value number `made` from those before it. */
static void put_step(lilac_text *t, step s, uint32_t made) {
    const uint32_t x = made - 1, y = made >= s.back + 1 ? made - s.back : 0;
    char name[16], wide[16];
    switch (s.kind) {
    case STEP_ADD:
    case STEP_SUB:
    case STEP_MOST:
    case STEP_LEAST: {
        static const char *const names[] = {"addf", "subf", "maxnumf", "minnumf"};
        lilac_text_printf(t, "%%v%u = arith.%s %%v%u, %%v%u : " TILE "\n", made, names[s.kind], x,
                          y);
        break;
    }
    case STEP_TWICE:
        lilac_text_printf(t, "%%v%u = arith.mulf %%v%u, %%two : " TILE "\n", made, x);
        break;
    case STEP_SCALE:
        lilac_text_printf(t,
                          "%%k%u = tt.splat %%half : f32 -> " TILE "\n"
                          "%%v%u = arith.mulf %%v%u, %%k%u : " TILE "\n",
                          made, made, x, made);
        break;
    case STEP_MASK:
        lilac_text_printf(t,
                          "%%i%u = tt.splat %%i : i32 -> tensor<16xi32>\n"
                          "%%s%u = arith.addi %%i%u, %%range : tensor<16xi32>\n"
                          "%%e%u = tt.expand_dims %%s%u {axis = 0 : i32} : tensor<16xi32> -> "
                          "tensor<1x16xi32>\n"
                          "%%b%u = tt.broadcast %%e%u : tensor<1x16xi32> -> tensor<16x16xi32>\n"
                          "%%m%u = arith.cmpi slt, %%b%u, %%nine : tensor<16x16xi32>\n"
                          "%%v%u = arith.select %%m%u, %%v%u, %%low : tensor<16x16xi1>, " TILE "\n",
                          made, made, made, made, made, made, made, made, made, made, made, x);
        break;
    case STEP_HIGHEST:
        (void)snprintf(name, sizeof name, "h%u", made);
        put_rows(t, "h", name);
        lilac_text_printf(t, "%%v%u = arith.subf %%v%u, %%%s : " TILE "\n", made, x, name);
        break;
    default:
        (void)snprintf(name, sizeof name, "r%u", made);
        (void)snprintf(wide, sizeof wide, "w%u", made);
        put_reduction(t, x, name);
        put_rows(t, name, wide);
        lilac_text_printf(t, "%%v%u = arith.subf %%v%u, %%%s : " TILE "\n", made, x, wide);
        break;
    }
}

static void put_body(lilac_text *t, const body *b, const char *offset) {
    lilac_text_printf(t,
                      "%%at = arith.andi %s, %%seven : i32\n%%row = arith.muli %%at, %%side : i32\n"
                      "%%pi = tt.addptr %%p, %%row : !tt.ptr<f32>, i32\n"
                      "%%ps = tt.splat %%pi : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>\n"
                      "%%pp = tt.addptr %%ps, %%index : tensor<16x16x!tt.ptr<f32>>, "
                      "tensor<16x16xi32>\n"
                      "%%v0 = tt.load %%pp : tensor<16x16x!tt.ptr<f32>>\n"
                      "%%v1 = tt.dot %%v0, %%weights, %%zero : " TILE " * " TILE " -> " TILE "\n",
                      offset);
    uint32_t made = 2;
    for (uint32_t i = 0; i < b->count; i++, made++) {
        put_step(t, b->steps[i], made);
    }
    lilac_text_printf(t,
                      "%%c = arith.maxnumf %%v%u, %%low : " TILE "\n"
                      "%%v%u = arith.minnumf %%c, %%two : " TILE "\n",
                      made - 1, made);
    put_reduction(t, made, "top");
    lilac_text_printf(t,
                      "%%h1 = arith.maxnumf %%h, %%top : " COLUMN "\n"
                      "%%scaled = arith.mulf %%acc, %%minus : " TILE "\n"
                      "%%acc1 = tt.dot %%v%u, %%weights, %%scaled : " TILE " * " TILE " -> " TILE
                      "\n%%n1 = arith.addi %%count, %%four : i32\n",
                      made);
}

static void put_loop(lilac_text *t, const loops_case *c, uint32_t loop, const char *from,
                     const char *to, const char *acc, const char *h, const char *count) {
    lilac_text_printf(
        t,
        "%%f%u:%u = scf.for %%i = %s to %s step %%step iter_args(%%acc = %s, %%h = %s, "
        "%%count = %s%s) -> (" TILE ", " COLUMN ", i32%s) : i32 {\n",
        loop, c->own[loop] ? 4 : 3, from, to, acc, h, count, c->own[loop] ? ", %own = %seven" : "",
        c->own[loop] ? ", i32" : "");
    put_body(t, &c->bodies[loop], loop == 1 && c->other_offset ? "%count" : "%i");
    if (c->own[loop]) {
        lilac_text_printf(t, "%%own1 = arith.addi %%own, %%at : i32\n");
    }
    lilac_text_printf(t, "scf.yield %%acc1, %%h1, %%n1%s : " TILE ", " COLUMN ", i32%s\n}\n",
                      c->own[loop] ? ", %own1" : "", c->own[loop] ? ", i32" : "");
}

static void put_middle(lilac_text *t, const char *name) {
    lilac_text_printf(t,
                      "%%%sw = arith.muli %%n, %%step : i32\n%%%s = arith.addi %%u, %%%sw : i32\n",
                      name, name, name);
}

static void put_program(lilac_text *t, const loops_case *c) {
    lilac_text_printf(
        t,
        "%%zero = arith.constant dense<0.0> : " TILE "\n%%two = arith.constant dense<2.0> : " TILE
        "\n%%low = arith.constant dense<-4.0> : " TILE
        "\n%%minus = arith.constant dense<-1.0> : " TILE
        "\n%%lowest = arith.constant dense<-16.0> : " COLUMN "\n%%half = arith.constant 0.5 : f32\n"
        "%%nine = arith.constant dense<9> : tensor<16x16xi32>\n"
        "%%seven = arith.constant 7 : i32\n%%four = arith.constant 4 : i32\n"
        "%%side = arith.constant 16 : i32\n%%step = arith.constant %d : i32\n"
        "%%range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
        "%%all = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
        "%%index = tt.reshape %%all : tensor<256xi32> -> tensor<16x16xi32>\n"
        "%%ps0 = tt.splat %%p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>\n"
        "%%pp0 = tt.addptr %%ps0, %%index : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>\n"
        "%%weights = tt.load %%pp0 : tensor<16x16x!tt.ptr<f32>>\n",
        (int)c->step);
    put_middle(t, "middle");
    put_loop(t, c, 0, "%u", "%middle", "%zero", "%lowest", "%u");
    if (c->again) {
        put_middle(t, "same");
    }
    lilac_text_printf(t, "%%end = arith.addi %%middle, %%m : i32\n"
                         "%%moved = arith.muli %%n, %%four : i32\n"
                         "%%sum = arith.addi %%moved, %%u : i32\n");
    static const char *const counters[] = {"%f0#2", "%sum", "%m"};
    put_loop(t, c, 1, c->again ? "%same" : "%middle", "%end", "%f0#0", "%f0#1",
             counters[c->counter]);
    lilac_text_puts(t, "%ws = tt.splat %w : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>\n"
                       "%wp = tt.addptr %ws, %index : tensor<16x16x!tt.ptr<f32>>, "
                       "tensor<16x16xi32>\ntt.store %wp, %f1#0 : tensor<16x16x!tt.ptr<f32>>\n"
                       "%is = tt.splat %ints : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>\n"
                       "%ip = tt.addptr %is, %range : tensor<16x!tt.ptr<i32>>, tensor<16xi32>\n"
                       "%hi = arith.fptosi %f1#1 : " COLUMN " to tensor<16xi32>\n"
                       "%cs = tt.splat %f1#2 : i32 -> tensor<16xi32>\n"
                       "%hc = arith.addi %hi, %cs : tensor<16xi32>\n");
    lilac_text_puts(t, c->own[1] ? "%os = tt.splat %f1#3 : i32 -> tensor<16xi32>\n"
                                   "%ho = arith.addi %hc, %os : tensor<16xi32>\n"
                                   "tt.store %ip, %ho : tensor<16x!tt.ptr<i32>>\n"
                                 : "tt.store %ip, %hc : tensor<16x!tt.ptr<i32>>\n");
}

/* ---- runs --------------------------------------------------------------------------------------- */

enum { LOADED = COUNT + ROWS * SIDE };

typedef struct bounds {
    int32_t from, tiles, more;
} bounds;

typedef struct output {
    uint32_t tile[COUNT], rows[SIDE];
    bool open[COUNT + SIDE];
} output;

static void run(const program *p, const float *in, bounds b, output *out) {
    interpreter_buffer buffers[3] = {
        {.address = 0x10000, .size = LOADED * sizeof *in, .bytes = (uint8_t *)in},
        {.address = 0x20000, .size = sizeof out->tile, .bytes = (uint8_t *)out->tile},
        {.address = 0x30000, .size = sizeof out->rows, .bytes = (uint8_t *)out->rows}};
    uint64_t arguments[9] = {0x10000,          0x10000,          0x20000, (uint32_t)b.tiles,
                             (uint32_t)b.more, (uint32_t)b.from, 0,       0,
                             0x30000};
    interpreter_run one = {.module = p->module,
                           .arguments = arguments,
                           .argument_count = 9,
                           .grid = {1, 1, 1},
                           .buffers = buffers,
                           .buffer_count = 3};
    const interpreter_status status = interpreter_execute(&one);
    if (status != INTERPRETER_DONE) {
        fail_msg("%s", interpreter_status_name(status));
    }
    for (uint32_t i = 0; i < COUNT + SIDE; i++) {
        const interpreter_buffer *buffer = &buffers[i < COUNT ? 1 : 2];
        out->open[i] = buffer->error[(i < COUNT ? i : i - COUNT) * sizeof(uint32_t)] != 0;
    }
    for (uint32_t i = 0; i < 3; i++) {
        interpreter_buffer_clear(&buffers[i]);
    }
}

static void join(program *p, bool *changed) {
    assert_true(lilac_engine_join_loops(p->module, &p->target, changed));
    if (!lilac_tile_verify(p->module, false)) {
        lilac_text text = {0};
        lilac_tile_print(&text, p->module, false);
        (void)fputs(lilac_text_get(&text), stderr);
        fail_with_diagnostics(p->context, "after join_loops");
    }
}

static void same_bits(void **state) {
    (void)state;
    lilac_random random;
    uint32_t joined = 0, compared = 0, all = 0;
    lilac_random_seed(&random, 20261130);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        loops_case c = {.step = 1 << below(&random, 3),
                        .counter = below(&random, 3),
                        .own = {below(&random, 2) != 0, below(&random, 2) != 0},
                        .again = below(&random, 2) != 0,
                        .other_offset = below(&random, 8) == 0};
        c.bodies[0] = random_body(&random);
        c.bodies[1] = variation(&random, c.bodies[0]);
        lilac_text text = {0};
        program p;
        bool changed;
        put_program(&text, &c);
        program_body(&p, lilac_text_get(&text), 4);
        float in[LOADED];
        for (uint32_t k = 0; k < LOADED; k++) {
            in[k] = (float)below(&random, 5) - 2;
        }
        bounds b[4];
        output before[4], after;
        for (uint32_t k = 0; k < 4; k++) {
            b[k] = (bounds){(int32_t)below(&random, 9) - 4, (int32_t)below(&random, 6) - 2,
                            (int32_t)below(&random, 5 * (uint32_t)c.step) - 2};
            run(&p, in, b[k], &before[k]);
        }
        join(&p, &changed);
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_SCF_FOR), changed ? 1 : 2);
        joined += changed;
        for (uint32_t k = 0; changed && k < 4; k++) {
            run(&p, in, b[k], &after);
            for (uint32_t n = 0; n < COUNT + SIDE; n++) {
                const uint32_t *x = n < COUNT ? &before[k].tile[n] : &before[k].rows[n - COUNT],
                               *y = n < COUNT ? &after.tile[n] : &after.rows[n - COUNT];
                all++;
                compared += !before[k].open[n];
                if (!before[k].open[n] && *x != *y) {
                    fail_msg("case %u, from %d, %d tiles, %d more, word %u: %08x, then %08x\n%s", i,
                             b[k].from, b[k].tiles, b[k].more, n, *x, *y, lilac_text_get(&text));
                }
            }
        }
        program_clear(&p);
        lilac_text_clear(&text);
    }
    print_message("%u of %u joined, %u of %u words compared\n", joined, scaled(CASES), compared,
                  all);
    assert_true(joined > scaled(CASES) / 2 && compared > all / 2);
}

/* ---- loops that stay two ------------------------------------------------------------------------ */

typedef struct pair_form {
    const char *name, *between, *first, *second, *more, *attributes, *behind;
    bool joined;
} pair_form;

static void put_pair(lilac_text *t, const pair_form *f) {
    const char *const from_to[2] = {f->first, f->second};
    lilac_text_puts(t, "%zero = arith.constant dense<0.0> : " TILE "\n"
                       "%c0 = arith.constant 0 : i32\n%c8 = arith.constant 8 : i32\n"
                       "%c16 = arith.constant 16 : i32\n%c64 = arith.constant 64 : i32\n"
                       "%x = tt.get_program_id x : i32\n%low = arith.muli %x, %c64 : i32\n"
                       "%high = arith.addi %low, %c64 : i32\n"
                       "%all = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
                       "%index = tt.reshape %all : tensor<256xi32> -> tensor<16x16xi32>\n"
                       "%ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>\n"
                       "%pp = tt.addptr %ps, %index : tensor<16x16x!tt.ptr<f32>>, "
                       "tensor<16x16xi32>\n");
    for (uint32_t i = 0; i < 2; i++) {
        lilac_text_printf(t,
                          "%%f%u = scf.for %%i = %s iter_args(%%acc = %s) -> (" TILE ") : i32 {\n"
                          "%%is = tt.splat %%i : i32 -> tensor<16x16xi32>\n"
                          "%%pi = tt.addptr %%pp, %%is : tensor<16x16x!tt.ptr<f32>>, "
                          "tensor<16x16xi32>\n"
                          "%%v = tt.load %%pi : tensor<16x16x!tt.ptr<f32>>\n",
                          i, from_to[i], i == 0 ? "%zero" : "%f0");
        if (i == 1 && f->more != NULL) {
            lilac_text_puts(t, f->more);
        }
        lilac_text_printf(t,
                          "%%d = tt.dot %%v, %%v, %%acc : " TILE " * " TILE " -> " TILE
                          "\nscf.yield %%d : " TILE "\n}%s\n%s",
                          i == 1 && f->attributes != NULL ? f->attributes : "",
                          i == 0 && f->between != NULL ? f->between : "");
    }
    lilac_text_puts(t, f->behind != NULL ? f->behind : "");
    lilac_text_puts(t, "%ws = tt.splat %w : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>\n"
                       "%wp = tt.addptr %ws, %index : tensor<16x16x!tt.ptr<f32>>, "
                       "tensor<16x16xi32>\ntt.store %wp, %f1 : tensor<16x16x!tt.ptr<f32>>\n");
}

#define UP_TO "%c0 to %low step %c16"
#define ON    "%low to %high step %c16"

static void which_loops(void **state) {
    (void)state;
    static const pair_form forms[] = {
        {.name = "equal", .first = UP_TO, .second = ON, .joined = true},
        {.name = "another use of a load",
         .first = UP_TO,
         .second = ON,
         .more = "%most = arith.maxnumf %v, %zero : " TILE "\n%t = arith.addf %most, %most : " TILE
                 "\n",
         .joined = true},
        {.name = "a load between",
         .first = UP_TO,
         .second = ON,
         .joined = true,
         .between = "%y = tt.load %pp : tensor<16x16x!tt.ptr<f32>>\n"},
        {.name = "a store between",
         .first = UP_TO,
         .second = ON,
         .between = "tt.store %pp, %zero : tensor<16x16x!tt.ptr<f32>>\n"},
        {.name = "a gap", .first = UP_TO, .second = "%high to %c64 step %c16"},
        {.name = "another step", .first = UP_TO, .second = "%low to %high step %c8"},
        {.name = "a step of the kernel's",
         .first = "%c0 to %low step %n",
         .second = "%low to %high step %n"},
        {.name = "no multiple", .first = "%c0 to %u step %c16", .second = "%u to %n step %c16"},
        {.name = "a multiple by its factor",
         .first = "%u to %u step %c16",
         .second = "%u to %n step %c16",
         .joined = true},
        {.name = "another load",
         .first = UP_TO,
         .second = ON,
         .more = "%y = tt.load %pp : tensor<16x16x!tt.ptr<f32>>\n"},
        {.name = "another product",
         .first = UP_TO,
         .second = ON,
         .more = "%y = tt.dot %v, %v, %zero : " TILE " * " TILE " -> " TILE "\n"},
        {.name = "a store in the loop",
         .first = UP_TO,
         .second = ON,
         .more = "tt.store %pi, %zero : tensor<16x16x!tt.ptr<f32>>\n"},
        {.name = "another attribute",
         .first = UP_TO,
         .second = ON,
         .attributes = " {tt.num_stages = 2 : i32}"},
        {.name = "a sum that is also stored",
         .first = UP_TO,
         .second = ON,
         .behind = "tt.store %pp, %f0 : tensor<16x16x!tt.ptr<f32>>\n"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        lilac_text text = {0};
        program p;
        bool changed;
        put_pair(&text, &forms[i]);
        program_body(&p, lilac_text_get(&text), 4);
        join(&p, &changed);
        if (changed != forms[i].joined) {
            fail_msg("%s: %s", forms[i].name, changed ? "joined" : "not joined");
        }
        program_clear(&p);
        lilac_text_clear(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(which_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
