/* delay_products: loops of which a product is executed one iteration later leave the same bytes on the
 * simulator as without the pass, for every number of iterations that they may have at run time, and
 * nothing races. No sum changes, so nothing may differ:
 *
 *     sum = sum · scale + p · v,   p = f(q · k)
 *
 * The sum starts from 0 or, where the scale is an exponential, from that of an equal loop in front.
 *
 * A loop that the pass must not change is one in which a product of zeros in front of the first iteration
 * is not neutral, somebody sees the sum before the last product, or the tile of the iteration before is
 * not kept. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/engine.h>
#include <lilac/lower.h>
#include <lilac/sim.h>

#include <math.h>

enum { SIDE = 64, TILE = SIDE * SIDE, TILES = 20, MOST_ITERATIONS = 6, CASES = 64, ROUNDS = 2 };

/* Where the scale comes from. */
typedef enum form {
    SOFTMAX,  /* the maxima of rows, as in attention */
    CAUSAL,   /* the same, and elements behind the diagonal are masked, which skip_masks finds */
    ROWS,     /* the same, and p is one number for each row */
    ELEMENTS, /* each element has its own */
    CONSTANT, /* it is invariant */
    EARLIER,  /* the loop carries it from the iteration before */
    TWO,      /* as ELEMENTS; two sums */
    SAME,     /* as ELEMENTS; the tile is that of the first product */
    FORMS
} form;

/* Why the product cannot be delayed. */
typedef enum obstacle {
    NONE,
    STARTS_AT_ONE,
    STARTS_AT_MINUS_ZERO,
    STARTS_ANYWHERE,
    SUM_IS_USED,
    RESULT_IS_USED,
    YIELDED_TWICE,
    SCALED_IS_USED,
    NOT_SCALED,
    DIVIDED,
    INVARIANT_TILE,
    COMPUTED_TILE,
    OTHER_TILE, /* masked elements are not zero: no buffer of a ring is the operand */
    LOADED_OPERAND,
    ONE_STAGE,
    LARGE_TILES, /* one buffer more costs a resident block */
    OBSTACLES
} obstacle;

typedef struct loop_case {
    form form;
    obstacle obstacle;
    bool brain;     /* elements are bf16, not f16 */
    bool exchanged; /* scale · sum */
    bool masked;    /* the last rows of a tile are zeros */
    bool known;     /* the bounds are constants */
    bool repeated;  /* an outer loop executes the loop ROUNDS times */
    bool continued; /* the same loop is in front of it, and it starts from the sum of that one */
    int32_t lower, step;
    uint32_t iterations, stages, warps;
} loop_case;

/* ---- the text -------------------------------------------------------------------------------- */

/* Copies the text. H and F are tensors of f16 and of f32 with the rows of the case, V is the tile. */
static void put(lilac_text *t, const loop_case *c, const char *text) {
    const uint32_t rows = 16 * c->warps, columns = c->obstacle == LARGE_TILES ? 256 : SIDE;
    for (; *text != '\0'; text++) {
        switch (*text) {
        case 'H':
            lilac_text_printf(t, "tensor<%ux64xf16>", rows);
            break;
        case 'F':
            lilac_text_printf(t, "tensor<%ux64xf32>", rows);
            break;
        case 'R':
            lilac_text_printf(t, "tensor<%uxf32>", rows);
            break;
        case 'C':
            lilac_text_printf(t, "tensor<%ux1xf32>", rows);
            break;
        case 'V':
            lilac_text_printf(t, "tensor<64x%uxf16>", columns);
            break;
        case 'S':
            lilac_text_printf(t, "tensor<%ux%uxf32>", rows, columns);
            break;
        default:
            lilac_text_char(t, *text);
        }
    }
}

/* The offsets of a row-major tensor. */
static void put_offsets(lilac_text *t, const char *name, uint32_t rows, uint32_t columns) {
    lilac_text_printf(
        t,
        "%%%s0 = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "%%%s1 = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "%%%s2 = tt.expand_dims %%%s0 {axis = 1 : i32} : tensor<%uxi32> -> tensor<%ux1xi32>\n"
        "%%%s3 = tt.expand_dims %%%s1 {axis = 0 : i32} : tensor<%uxi32> -> tensor<1x%uxi32>\n"
        "%%%s4 = arith.constant dense<%u> : tensor<%ux1xi32>\n"
        "%%%s5 = arith.muli %%%s2, %%%s4 : tensor<%ux1xi32>\n",
        name, rows, rows, name, columns, columns, name, name, rows, rows, name, name, columns,
        columns, name, columns, rows, name, name, name, rows);
    lilac_text_printf(t,
                      "%%%s6 = tt.broadcast %%%s5 : tensor<%ux1xi32> -> tensor<%ux%uxi32>\n"
                      "%%%s7 = tt.broadcast %%%s3 : tensor<1x%uxi32> -> tensor<%ux%uxi32>\n"
                      "%%%s = arith.addi %%%s6, %%%s7 : tensor<%ux%uxi32>\n",
                      name, name, rows, rows, columns, name, name, columns, rows, columns, name,
                      name, name, rows, columns);
}

/* A load of a tile: `more` is the mask and what masked elements are. */
static void put_load(lilac_text *t, const char *name, const char *from, const char *offsets,
                     uint32_t rows, uint32_t columns, const char *more) {
    char type[32];
    snprintf(type, sizeof type, "tensor<%ux%ux", rows, columns);
    lilac_text_printf(t, "%%%s_s = tt.splat %%%s : !tt.ptr<f16> -> %s!tt.ptr<f16>>\n", name, from,
                      type);
    lilac_text_printf(t, "%%%s_q = tt.addptr %%%s_s, %%%s : %s!tt.ptr<f16>>, %si32>\n", name, name,
                      offsets, type, type);
    lilac_text_printf(t, "%%%s = tt.load %%%s_q%s : %s!tt.ptr<f16>>\n", name, name, more, type);
}

static void put_header(lilac_text *t, const loop_case *c) {
    const uint32_t columns = c->obstacle == LARGE_TILES ? 256 : SIDE;
    lilac_text_puts(t, "module {\ntt.func public @k(");
    for (const char *name = "qkvwo"; *name != '\0'; name++) {
        lilac_text_printf(t, "%%%c_at: !tt.ptr<%s> {tt.divisibility = 16 : i32}, ", *name,
                          *name == 'o' ? "f32" : "f16");
    }
    lilac_text_puts(t, "%lower: i32, %upper: i32) {\n");
    put(t, c,
        "%zero = arith.constant dense<0.0> : F\n%none = arith.constant dense<0.0> : S\n"
        "%hidden = arith.constant dense<-1.0e20> : F\n"
        "%small = arith.constant dense<0.015625> : F\n%half = arith.constant dense<0.5> : S\n"
        "%low = arith.constant dense<-1.0e30> : R\n");
    put_offsets(t, "qo", 16 * c->warps, SIDE);
    put_offsets(t, "ko", SIDE, SIDE);
    put_offsets(t, "vo", SIDE, columns);
    put_offsets(t, "oo", 16 * c->warps, columns);
    lilac_text_printf(t,
                      "%%step = arith.constant %d : i32\n%%tile = arith.constant %u : i32\n"
                      "%%first = arith.constant %d : i32\n%%last = arith.constant %d : i32\n"
                      "%%limit = arith.constant dense<%u> : tensor<64x%uxi32>\n"
                      "%%mask = arith.cmpi slt, %%vo, %%limit : tensor<64x%uxi32>\n",
                      c->step, TILE, c->lower, c->lower + (int32_t)c->iterations * c->step,
                      SIDE * columns - 5 * columns, columns, columns);
    put(t, c, "%ones = arith.constant dense<1.0> : V\n");
    put_load(t, "q", "q_at", "qo", 16 * c->warps, SIDE, "");
    put_load(t, "v0", "v_at", "vo", SIDE, columns, "");
    switch (c->obstacle) {
    case STARTS_AT_ONE:
        put(t, c, "%start = arith.constant dense<1.0> : S\n");
        break;
    case STARTS_AT_MINUS_ZERO:
        put(t, c, "%start = arith.constant dense<-0.0> : S\n");
        break;
    case STARTS_ANYWHERE:
        put(t, c, "%start = arith.extf %q : H to S\n");
        break;
    default:
        put(t, c, "%start = arith.constant dense<0.0> : S\n");
    }
}

/* p and the scale, %p and %a. */
static void put_factors(lilac_text *t, const loop_case *c) {
    put(t, c,
        "%kt = tt.trans %k {order = array<i32: 1, 0>} : tensor<64x64xf16> -> "
        "tensor<64x64xf16>\n"
        "%s0 = tt.dot %q, %kt, %zero : H * tensor<64x64xf16> -> F\n");
    put(t, c,
        c->form == CAUSAL ? "%s1 = arith.mulf %s0, %small : F\n"
                          : "%s = arith.mulf %s0, %small : F\n");
    if (c->form == CAUSAL) {
        const uint32_t rows = 16 * c->warps;
        lilac_text_printf(
            t,
            "%%behind = arith.constant dense<130> : tensor<%ux1xi32>\n"
            "%%row0 = arith.addi %%qo2, %%behind : tensor<%ux1xi32>\n"
            "%%row = tt.broadcast %%row0 : tensor<%ux1xi32> -> tensor<%ux64xi32>\n"
            "%%side = arith.constant 64 : i32\n%%i64 = arith.muli %%i, %%side : i32\n"
            "%%column0 = tt.splat %%i64 : i32 -> tensor<1x64xi32>\n"
            "%%column1 = arith.addi %%column0, %%qo3 : tensor<1x64xi32>\n"
            "%%column = tt.broadcast %%column1 : tensor<1x64xi32> -> tensor<%ux64xi32>\n"
            "%%seen = arith.cmpi sge, %%row, %%column : tensor<%ux64xi32>\n"
            "%%s = arith.select %%seen, %%s1, %%hidden : tensor<%ux64xi1>, tensor<%ux64xf32>\n",
            rows, rows, rows, rows, rows, rows, rows, rows);
    }
    if (c->form <= ROWS) {
        put(t, c,
            "%m0 = \"tt.reduce\"(%s) <{axis = 1 : i32}> ({\n^bb0(%x: f32, %y: f32):\n"
            "%z = arith.maxnumf %x, %y : f32\ntt.reduce.return %z : f32\n}) : (F) -> R\n"
            "%m1 = arith.maxnumf %m, %m0 : R\n"
            "%m2 = tt.expand_dims %m1 {axis = 1 : i32} : R -> C\n"
            "%m3 = tt.broadcast %m2 : C -> F\n%e = arith.subf %s, %m3 : F\n"
            "%b0 = arith.subf %m, %m1 : R\n%b1 = math.exp2 %b0 : R\n"
            "%b2 = tt.expand_dims %b1 {axis = 1 : i32} : R -> C\n"
            "%a = tt.broadcast %b2 : C -> S\n");
        put(t, c, c->form == ROWS ? "%g = tt.broadcast %b2 : C -> F\n" : "%g = math.exp2 %e : F\n");
    } else {
        /* next to one, and negative now and then */
        put(t, c, "%g = arith.mulf %s, %small : F\n");
        put(t, c,
            c->obstacle == LARGE_TILES ? "%a = arith.addf %half, %none : S\n"
                                       : "%a = arith.addf %s, %half : S\n");
    }
    put(t, c,
        c->obstacle == LOADED_OPERAND ? "%p = arith.addf %k, %k : H\n"
                                      : "%p = arith.truncf %g : F to H\n");
}

/* %name = sum · scale + p · tile */
static void put_sum(lilac_text *t, const loop_case *c, const char *name, const char *sum,
                    const char *tile) {
    const char *scale = c->form == CONSTANT ? "half" : c->form == EARLIER ? "before" : "a";
    if (c->obstacle == NOT_SCALED) {
        lilac_text_printf(t, "%%%s_c = arith.addf %%%s, %%none", name, sum);
    } else if (c->obstacle == DIVIDED) {
        lilac_text_printf(t, "%%%s_c = arith.divf %%%s, %%%s", name, sum, scale);
    } else {
        lilac_text_printf(t, "%%%s_c = arith.mulf %%%s, %%%s", name, c->exchanged ? scale : sum,
                          c->exchanged ? sum : scale);
    }
    put(t, c, " : S\n");
    lilac_text_printf(t, "%%%s = tt.dot %%p, %%%s, %%%s_c", name, tile, name);
    put(t, c, " : H * V -> S\n");
}

static void put_body(lilac_text *t, const loop_case *c) {
    const uint32_t columns = c->obstacle == LARGE_TILES ? 256 : SIDE;
    const char *mask = c->obstacle == OTHER_TILE ? ", %mask, %ones" : c->masked ? ", %mask" : "";
    const char *tile = c->form == SAME                 ? "k"
                       : c->obstacle == INVARIANT_TILE ? "v0"
                       : c->obstacle == COMPUTED_TILE  ? "v1"
                                                       : "v";
    lilac_text_puts(t, "%at = arith.muli %i, %tile : i32\n");
    for (const char *name = "kvw"; *name != '\0'; name++) {
        lilac_text_printf(t, "%%%c_i = tt.addptr %%%c_at, %%at : !tt.ptr<f16>, i32\n", *name,
                          *name);
    }
    put_load(t, "k", "k_i", "ko", SIDE, SIDE, "");
    put_factors(t, c);
    put_load(t, "v", "v_i", "vo", SIDE, columns, mask);
    if (c->obstacle == COMPUTED_TILE) {
        put(t, c, "%v1 = arith.addf %v, %ones : V\n");
    }
    if (c->obstacle == SUM_IS_USED && c->exchanged) {
        put(t, c, "%f = arith.maxnumf %more, %sum : S\n"); /* in front of the other use */
    }
    put_sum(t, c, "d", "sum", tile);
    if (c->form == TWO) {
        put_load(t, "w", "w_i", "vo", SIDE, columns, "");
        put_sum(t, c, "f", "more", "w");
    } else if (c->form == EARLIER) {
        put(t, c, "%f = arith.addf %more, %none : S\n");
    } else if (c->obstacle != SUM_IS_USED || !c->exchanged) {
        put(t, c,
            c->obstacle == SUM_IS_USED      ? "%f = arith.maxnumf %more, %sum : S\n"
            : c->obstacle == RESULT_IS_USED ? "%f = arith.maxnumf %more, %d : S\n"
            : c->obstacle == SCALED_IS_USED ? "%f = arith.maxnumf %more, %d_c : S\n"
            : c->obstacle == LARGE_TILES
                ? "%f = arith.addf %more, %half : S\n"
                : "%f = arith.addf %more, %g : S\n"); /* what is carried has another use */
    }
    put(t, c,
        c->form <= ROWS ? "%r = arith.addf %m1, %low1 : R\n" : "%r = arith.maxnumf %m, %low : R\n");
}

static void put_loop(lilac_text *t, const loop_case *c, const char *name,
                     const char *const *inits) {
    lilac_text_printf(t,
                      "%%%s:4 = scf.for %%i = %%%s to %%%s step %%step iter_args(%%sum = %%%s, "
                      "%%more = %%%s, %%m = %%%s, %%before = %%%s)",
                      name, c->known ? "first" : "lower", c->known ? "last" : "upper", inits[0],
                      inits[1], inits[2], inits[3]);
    put(t, c, " -> (S, S, R, S) : i32 {\n");
    put_body(t, c);
    put(t, c,
        c->obstacle == YIELDED_TWICE ? "scf.yield %d, %d, %r, %a : S, S, R, S\n}\n"
                                     : "scf.yield %d, %f, %r, %a : S, S, R, S\n}\n");
}

static void put_f16_case(lilac_text *t, const loop_case *c) {
    put_header(t, c);
    put(t, c, "%low1 = arith.constant dense<0.0> : R\n");
    if (c->repeated) {
        lilac_text_printf(t,
                          "%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
                          "%%rounds = arith.constant %d : i32\n",
                          ROUNDS);
        put(t, c,
            "%out:3 = scf.for %n = %c0 to %rounds step %c1 iter_args(%o0 = %none, %o1 = %none, "
            "%y9 = %low) -> (S, S, R) : i32 {\n");
    }
    if (c->continued) {
        put_loop(t, c, "front", (const char *const[]){"start", "none", "low", "half"});
        put_loop(t, c, "res", (const char *const[]){"front#0", "front#1", "front#2", "front#3"});
    } else {
        put_loop(t, c, "res", (const char *const[]){"start", "none", "low", "half"});
    }
    if (c->repeated) {
        put(t, c,
            "%u1 = arith.addf %o0, %res#0 : S\n%w1 = arith.addf %o1, %res#1 : S\n"
            "scf.yield %u1, %w1, %res#2 : S, S, R\n}\n");
    }
    const char *from = c->repeated ? "out" : "res";
    const uint32_t rows = 16 * c->warps, columns = c->obstacle == LARGE_TILES ? 256 : SIDE;
    for (uint32_t i = 0; i < 2; i++) {
        lilac_text_printf(
            t,
            "%%to%u = arith.constant %u : i32\n"
            "%%p%u = tt.addptr %%o_at, %%to%u : !tt.ptr<f32>, i32\n"
            "%%s%u = tt.splat %%p%u : !tt.ptr<f32> -> tensor<%ux%ux!tt.ptr<f32>>\n"
            "%%q%u = tt.addptr %%s%u, %%oo : tensor<%ux%ux!tt.ptr<f32>>, tensor<%ux%uxi32>\n"
            "tt.store %%q%u, %%%s#%u : tensor<%ux%ux!tt.ptr<f32>>\n",
            i, i * rows * columns, i, i, i, i, rows, columns, i, i, rows, columns, rows, columns, i,
            from, i, rows, columns);
    }
    lilac_text_printf(t,
                      "%%to2 = arith.constant %u : i32\n"
                      "%%p2 = tt.addptr %%o_at, %%to2 : !tt.ptr<f32>, i32\n"
                      "%%s2 = tt.splat %%p2 : !tt.ptr<f32> -> tensor<%ux!tt.ptr<f32>>\n"
                      "%%q2 = tt.addptr %%s2, %%qo0 : tensor<%ux!tt.ptr<f32>>, tensor<%uxi32>\n"
                      "tt.store %%q2, %%%s#2 : tensor<%ux!tt.ptr<f32>>\ntt.return\n}\n}\n",
                      2 * rows * columns, rows, rows, rows, from, rows);
}

static void put_case(lilac_text *t, const loop_case *c) {
    lilac_text text = {0};
    put_f16_case(&text, c);
    for (const char *at = lilac_text_get(&text); *at != '\0'; at++) {
        if (c->brain && strncmp(at, "f16", 3) == 0) {
            lilac_text_char(t, 'b');
        }
        lilac_text_char(t, *at);
    }
    lilac_text_clear(&text);
}

/* ---- the passes ------------------------------------------------------------------------------ */

typedef struct compiled {
    lilac_context *context;
    lilac_tile_module *tile;
    lilac_simt_module *simt;
    bool delayed;
    uint32_t marked;          /* products that the pass shall delay */
    uint32_t inside, outside; /* products that it delays, in the loop; all others */
} compiled;

static void count_products(void *data, lilac_tile_op *op) {
    compiled *c = data;
    if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        const lilac_tile_op *parent = op->parent->parent->parent;
        const bool inside = parent != NULL && parent->code == LILAC_TILE_OP_SCF_FOR &&
                            lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) != 0;
        c->inside += inside;
        c->outside += !inside;
    }
}

static void count_marks(void *data, lilac_tile_op *op) {
    *(uint32_t *)data += lilac_tile_find_integer(&op->attributes, "lilac.delayed", 0) != 0;
}

typedef void (*mutation)(lilac_tile_op *loop);

static void find_loop(void *data, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_SCF_FOR) {
        *(lilac_tile_op **)data = op;
    }
}

/* The tile passes in their order. pipeline_loops and the pass belong together: copies of what
 * delayed products read may be one iteration late. */
static void compile(compiled *made, const loop_case *c, const char *text, bool delay,
                    mutation mutate) {
    typedef bool (*pass)(lilac_tile_module * module, const lilac_target *target, bool *changed);
    static const pass passes[] = {
        lilac_engine_reduce_strength,  lilac_engine_simplify,
        lilac_engine_orient_dots,      lilac_engine_select_dots,
        lilac_engine_assign_layouts,   lilac_engine_rotate_products,
        lilac_engine_pipeline_loops,   lilac_engine_delay_products,
        lilac_engine_skip_masks,       lilac_engine_overlap_products,
        lilac_engine_split_reductions, lilac_engine_eliminate_redundant_loads};
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = c->warps,
                                 .num_ctas = 1,
                                 .num_stages = c->stages};
    memset(made, 0, sizeof *made);
    made->context = lilac_context_create();
    made->tile = lilac_tile_read(made->context,
                                 lilac_source_add(made->context, "loop.ttir", text, strlen(text)));
    bool good = made->tile != NULL && lilac_tile_verify(made->tile, false);
    for (uint32_t i = 0; good && i < sizeof passes / sizeof *passes; i++) {
        bool changed = false;
        if (passes[i] == lilac_engine_delay_products) {
            lilac_tile_walk(made->tile->functions->body, count_marks, &made->marked);
        }
        const bool pair =
            passes[i] == lilac_engine_pipeline_loops || passes[i] == lilac_engine_delay_products;
        if (!pair || delay) {
            good = passes[i](made->tile, &target, &changed) && lilac_tile_verify(made->tile, false);
        }
        if (passes[i] == lilac_engine_delay_products) {
            made->delayed = changed;
        }
    }
    if (good) {
        lilac_tile_walk(made->tile->functions->body, count_products, made);
        if (mutate != NULL) {
            lilac_tile_op *loop = NULL;
            lilac_tile_walk(made->tile->functions->body, find_loop, &loop);
            mutate(loop);
        }
        made->simt = lilac_lower(made->tile, &target);
    }
    if (made->simt == NULL || !lilac_simt_verify(made->simt)) {
        fputs(text, stderr);
        fail_with_diagnostics(made->context, "the kernel was refused");
    }
    lilac_run_simt_passes(made->simt);
    assert_true(lilac_simt_verify(made->simt));
}

static void compiled_clear(compiled *made) {
    lilac_simt_module_destroy(made->simt);
    lilac_tile_module_destroy(made->tile);
    lilac_context_destroy(made->context);
}

/* ---- running --------------------------------------------------------------------------------- */

enum { MOST_RESULTS = 2 * 64 * 256 + 128 };

static uint16_t operands[4][TILES * TILE];

/* `infinite`: some elements are. */
static void fill_operands(uint64_t seed, lilac_scalar scalar, bool infinite) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t k = 0; k < TILES * TILE; k++) {
            double value = (double)lilac_random_below(&random, 4001) / 1000.0 - 2.0;
            value = infinite && lilac_random_below(&random, 2000) == 0 ? INFINITY : value;
            operands[i][k] =
                (uint16_t)lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, true);
        }
    }
}

/* Are there no findings? */
static bool execute(const compiled *made, const loop_case *c, uint32_t iterations,
                    uint32_t *results) {
    lilac_sim_buffer places[5];
    for (uint32_t i = 0; i < 5; i++) {
        places[i] = (lilac_sim_buffer){
            .name = "operand", .bytes = (uint8_t *)operands[i % 4], .size = sizeof operands[0]};
    }
    memset(results, 0x5A, MOST_RESULTS * sizeof *results);
    places[4] = (lilac_sim_buffer){
        .name = "results", .bytes = (uint8_t *)results, .size = MOST_RESULTS * sizeof *results};
    lilac_sim_place(places, 5);
    uint64_t arguments[7];
    for (uint32_t i = 0; i < 5; i++) {
        arguments[i] = places[i].address;
    }
    arguments[5] = (uint32_t)c->lower;
    /* bounds that the counter does not reach, or that are far below it */
    arguments[6] =
        (uint32_t)(iterations == 0 ? c->lower - (c->exchanged ? 1000 : 0)
                                   : c->lower + (int32_t)iterations * c->step - (c->step - 1));
    const lilac_sim_launch launch = {.kernel = made->simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 7,
                                     .buffers = places,
                                     .buffer_count = 5,
                                     .threads = 1,
                                     .instruction_limit = 1 << 24};
    lilac_sim_counters counters;
    lilac_diagnostics_reset(made->context);
    return lilac_sim_run(made->context, &launch, &counters) && counters.races == 0 &&
           lilac_diagnostics(made->context) == NULL;
}

/* All numbers of iterations that the compiled loop may have. Is a product delayed? */
static bool try_case(const loop_case *c) {
    static uint32_t wanted[MOST_RESULTS], got[MOST_RESULTS];
    lilac_text text = {0};
    compiled without, with;
    put_case(&text, c);
    compile(&without, c, lilac_text_get(&text), false, NULL);
    compile(&with, c, lilac_text_get(&text), true, NULL);
    /* one more buffer of each ring may cost a resident block: of two tiles, or with more stages */
    const bool pipelined = c->obstacle == NONE && c->stages > 1;
    if (with.delayed != (with.marked > 0) || (with.delayed && !pipelined) ||
        (!with.delayed && pipelined && c->stages == 2 && c->form != TWO)) {
        fputs(lilac_text_get(&text), stderr);
        fail_msg("the pass %s", with.delayed ? "changes it" : "does not change it");
    }
    const uint32_t most = c->form == TWO || (c->continued && c->form <= ROWS) ? 2 : 1;
    assert_int_equal(with.marked, with.delayed ? most : 0);
    assert_int_equal(with.inside, with.marked);
    assert_int_equal(with.outside, without.outside); /* those behind the loop for those in it */
    for (uint32_t iterations = c->known ? c->iterations : 0; iterations <= c->iterations;
         iterations++) {
        const bool good = execute(&without, c, iterations, wanted);
        if (!good || !execute(&with, c, iterations, got) || memcmp(wanted, got, sizeof got) != 0) {
            fputs(lilac_text_get(&text), stderr);
            print_diagnostics(with.context);
            fail_msg("form %u, %u stages, %u warps, %u iterations", c->form, c->stages, c->warps,
                     iterations);
        }
    }
    const bool delayed = with.delayed;
    compiled_clear(&without);
    compiled_clear(&with);
    lilac_text_clear(&text);
    return delayed;
}

static void random_loops(void **state) {
    (void)state;
    lilac_random random;
    uint32_t delayed[FORMS] = {0};
    lilac_random_seed(&random, 16);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const loop_case c = {.form = (form)(i % FORMS),
                             .brain = lilac_random_below(&random, 3) == 0,
                             .exchanged = lilac_random_below(&random, 2) == 0,
                             .masked = lilac_random_below(&random, 3) == 0,
                             .known = lilac_random_below(&random, 4) == 0,
                             .repeated = lilac_random_below(&random, 4) == 0,
                             .continued = i % FORMS != TWO && lilac_random_below(&random, 3) == 0,
                             .lower = (int32_t)lilac_random_below(&random, 3),
                             .step = 1 + (int32_t)lilac_random_below(&random, 3),
                             .iterations =
                                 2 + (uint32_t)lilac_random_below(&random, MOST_ITERATIONS - 1),
                             .stages = 2 + (uint32_t)lilac_random_below(&random, 3),
                             .warps = lilac_random_below(&random, 4) == 0 ? 8 : 4};
        fill_operands(i, c.brain ? LILAC_BF16 : LILAC_F16, i % 5 == 0);
        delayed[c.form] += try_case(&c);
    }
    for (uint32_t f = 0; f < FORMS; f++) {
        assert_true(delayed[f] >= scaled(CASES) / FORMS / 4);
    }
}

static void obstacles(void **state) {
    (void)state;
    fill_operands(2, LILAC_F16, false);
    for (uint32_t i = 0; i < 2 * OBSTACLES; i++) {
        const loop_case c = {.form = ELEMENTS,
                             .obstacle = (obstacle)(i / 2),
                             .exchanged = i % 2 != 0,
                             .step = 1,
                             .iterations = 3,
                             .stages = i / 2 == ONE_STAGE ? 1 : 2,
                             .warps = 4};
        assert_int_equal(try_case(&c), c.obstacle == NONE);
    }
}

/* ---- mutations ------------------------------------------------------------------------------- */

static lilac_tile_op *find_from(lilac_tile_op *op, lilac_tile_opcode code, const char *mark) {
    while (op != NULL &&
           (op->code != code ||
            (mark != NULL && lilac_tile_find_integer(&op->attributes, mark, 0) == 0))) {
        op = op->next;
    }
    assert_non_null(op);
    return op;
}

static void drop_wait(lilac_tile_op *wait) {
    lilac_tile_replace_uses(&wait->results[0], wait->operands[0].value);
    lilac_tile_remove(wait);
}

static void drop_wait_in_loop(lilac_tile_op *loop) {
    drop_wait(
        find_from(loop->regions[0]->first->first, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, NULL));
}

static void drop_wait_behind_loop(lilac_tile_op *loop) {
    drop_wait(find_from(loop, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT_WAIT, NULL));
}

static void drop_zeros(lilac_tile_op *loop) {
    lilac_tile_remove(find_from(loop->parent->first, LILAC_TILE_OP_TTG_LOCAL_STORE, NULL));
}

static void drop_fence(lilac_tile_op *loop) {
    lilac_tile_remove(find_from(loop->parent->first, LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED, NULL));
}

/* The zeros are where the first iteration's tile is. */
static void clear_first(lilac_tile_op *loop) {
    const lilac_tile_op *store =
        find_from(loop->parent->first, LILAC_TILE_OP_TTG_LOCAL_STORE, NULL);
    const lilac_tile_op *first =
        find_from(loop->parent->first, LILAC_TILE_OP_TTG_MEMDESC_INDEX, NULL);
    lilac_tile_set_operand(store->operands[1].value->op, 1, first->operands[1].value);
}

/* The tile of this iteration, with what the one before computed. */
static void read_this_tile(lilac_tile_op *loop) {
    lilac_tile_op *first = loop->regions[0]->first->first;
    const lilac_tile_op *now = find_from(first, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT, NULL);
    const lilac_tile_value *tile = now->operands[1].value;
    const lilac_tile_op *before =
        find_from(first, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT, "lilac.ordered");
    while (tile->op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX) {
        tile = tile->op->operands[0].value;
    }
    lilac_tile_set_operand(before->operands[1].value->op, 1, tile->op->operands[1].value);
}

static void mutations_are_found(void **state) {
    (void)state;
    static const mutation mutations[] = {drop_wait_in_loop, drop_wait_behind_loop, drop_zeros,
                                         drop_fence,        clear_first,           read_this_tile};
    static uint32_t wanted[MOST_RESULTS], got[MOST_RESULTS];
    const loop_case c = {.form = ELEMENTS, .step = 1, .iterations = 4, .stages = 2, .warps = 4};
    lilac_text text = {0};
    compiled made;
    fill_operands(3, LILAC_F16, false);
    put_case(&text, &c);
    compile(&made, &c, lilac_text_get(&text), false, NULL);
    assert_true(execute(&made, &c, c.iterations, wanted));
    compiled_clear(&made);
    for (uint32_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        compile(&made, &c, lilac_text_get(&text), true, mutations[i]);
        if (execute(&made, &c, c.iterations, got) && memcmp(wanted, got, sizeof got) == 0) {
            fail_msg("mutation %u is not found", i);
        }
        compiled_clear(&made);
    }
    lilac_text_clear(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_loops),
        cmocka_unit_test(obstacles),
        cmocka_unit_test(mutations_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
