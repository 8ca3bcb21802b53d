/* The number of buffers of loops with products: of known tiles, and of random ones with products in
 * flight, for which the prices of all distances are computed again in floating point from the
 * description in src/engine/pipeline/depth.c. */
#include <lilac/engine.h>
#include <lilac/matrix.h>
#include <lilac/occupancy.h>
#include <lilac/schedule.h>

#include <lilac/bits.h>

#include "support/test.h"

#include <math.h>

#include <lilac/tile_loops.h>

enum {
    CASES = 60,
    OTHER_REGISTERS = 28,
    FREE_REGISTERS = 56,
    WAIT = 100,
    COPY_LATENCY = 2400,
    MOST_DISTANCE = 8
};

typedef struct tile_case {
    uint32_t m, n, k, warps, stages;
    bool computed;       /* A is computed from what is loaded, so each iteration waits */
    uint32_t more;       /* further operations on A, if it is computed */
    bool one_block;      /* for launches of one block of a multiprocessor */
    bool stored;         /* of tensor copies: B is, and threads store it to shared memory */
    uint32_t iterations; /* 0: a parameter */
    uint32_t loops;      /* one behind the other, each with the sum of the one before; 0: one */
} tile_case;

typedef struct rings {
    uint32_t buffers, distance;
} rings;

typedef struct outcome {
    rings rings;    /* of the last loop */
    uint32_t count; /* of rings, of all loops */
    bool marked;    /* the kernel for one block of a multiprocessor is another one */
} outcome;

static uint32_t loops_of(const tile_case *c) {
    return c->loops > 0 ? c->loops : 1;
}

static void put_field(lilac_text *out, const tile_case *c, uint32_t loop, char field) {
    switch (field) {
    case 'A':
        if (c->computed) {
            lilac_text_printf(out, "%%p%u", c->more);
        } else {
            lilac_text_puts(out, "%ta");
        }
        break;
    case 'F':
        if (c->computed) {
            lilac_text_printf(out, "%%p0 = arith.mulf %%ta, %%ta : tensor<%ux%uxf16>\n", c->m,
                              c->k);
            for (uint32_t i = 0; i < c->more; i++) {
                lilac_text_printf(out, "%%p%u = arith.mulf %%p%u, %%ta : tensor<%ux%uxf16>\n",
                                  i + 1, i, c->m, c->k);
            }
        }
        break;
    case 'L':
        lilac_text_printf(out, "%u", loop);
        break;
    case 'S':
        lilac_text_printf(out, loop == 0 ? "%%zero" : "%%r%u#0", loop - 1);
        break;
    case 'U':
        lilac_text_puts(out, c->iterations > 0 ? "%known" : "%iterations");
        break;
    default:
        lilac_text_printf(out, "%u",
                          field == 'M'   ? c->m
                          : field == 'N' ? c->n
                          : field == 'K' ? c->k
                                         : c->iterations);
        break;
    }
}

static void put_text(lilac_text *out, const tile_case *c, uint32_t loop, const char *text) {
    for (const char *t = text; *t != '\0'; t++) {
        if (*t == '$') {
            put_field(out, c, loop, *++t);
        } else {
            lilac_text_char(out, *t);
        }
    }
}

/* A tile of A is m × k, one of B is k × n; both advance by k. $ and a letter is a field of the
 * case. */
static void generate(lilac_text *out, const tile_case *c) {
    static const char *const head =
        "module {\n"
        "tt.func public @f(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %iterations: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%zero = arith.constant dense<0.0> : tensor<$Mx$Nxf32>\n"
        "%am = tt.make_range {start = 0 : i32, end = $M : i32} : tensor<$Mxi32>\n"
        "%ak = tt.make_range {start = 0 : i32, end = $K : i32} : tensor<$Kxi32>\n"
        "%bn = tt.make_range {start = 0 : i32, end = $N : i32} : tensor<$Nxi32>\n"
        "%am1 = tt.expand_dims %am {axis = 1 : i32} : tensor<$Mxi32> -> tensor<$Mx1xi32>\n"
        "%ak1 = tt.expand_dims %ak {axis = 0 : i32} : tensor<$Kxi32> -> tensor<1x$Kxi32>\n"
        "%bk1 = tt.expand_dims %ak {axis = 1 : i32} : tensor<$Kxi32> -> tensor<$Kx1xi32>\n"
        "%bn1 = tt.expand_dims %bn {axis = 0 : i32} : tensor<$Nxi32> -> tensor<1x$Nxi32>\n"
        "%l1 = arith.constant dense<4096> : tensor<$Mx1xi32>\n"
        "%l2 = arith.constant dense<4096> : tensor<$Kx1xi32>\n"
        "%am2 = arith.muli %am1, %l1 : tensor<$Mx1xi32>\n"
        "%bk2 = arith.muli %bk1, %l2 : tensor<$Kx1xi32>\n"
        "%am3 = tt.broadcast %am2 : tensor<$Mx1xi32> -> tensor<$Mx$Kxi32>\n"
        "%ak3 = tt.broadcast %ak1 : tensor<1x$Kxi32> -> tensor<$Mx$Kxi32>\n"
        "%bk3 = tt.broadcast %bk2 : tensor<$Kx1xi32> -> tensor<$Kx$Nxi32>\n"
        "%bn3 = tt.broadcast %bn1 : tensor<1x$Nxi32> -> tensor<$Kx$Nxi32>\n"
        "%oa = arith.addi %am3, %ak3 : tensor<$Mx$Kxi32>\n"
        "%ob = arith.addi %bk3, %bn3 : tensor<$Kx$Nxi32>\n"
        "%om4 = tt.broadcast %am2 : tensor<$Mx1xi32> -> tensor<$Mx$Nxi32>\n"
        "%on4 = tt.broadcast %bn1 : tensor<1x$Nxi32> -> tensor<$Mx$Nxi32>\n"
        "%oo = arith.addi %om4, %on4 : tensor<$Mx$Nxi32>\n"
        "%pa = tt.splat %a : !tt.ptr<f16> -> tensor<$Mx$Kx!tt.ptr<f16>>\n"
        "%pb = tt.splat %b : !tt.ptr<f16> -> tensor<$Kx$Nx!tt.ptr<f16>>\n"
        "%po = tt.splat %o : !tt.ptr<f32> -> tensor<$Mx$Nx!tt.ptr<f32>>\n"
        "%qa = tt.addptr %pa, %oa : tensor<$Mx$Kx!tt.ptr<f16>>, tensor<$Mx$Kxi32>\n"
        "%qb = tt.addptr %pb, %ob : tensor<$Kx$Nx!tt.ptr<f16>>, tensor<$Kx$Nxi32>\n"
        "%qo = tt.addptr %po, %oo : tensor<$Mx$Nx!tt.ptr<f32>>, tensor<$Mx$Nxi32>\n"
        "%sa = arith.constant dense<$K> : tensor<$Mx$Kxi32>\n"
        "%sb = arith.constant dense<4096> : tensor<$Kx$Nxi32>\n"
        "%known = arith.constant $I : i32\n";
    static const char *const loop =
        "%r$L:3 = scf.for %i = %c0 to $U step %c1 iter_args(%s = $S, %xa = %qa, %xb = "
        "%qb) -> "
        "(tensor<$Mx$Nxf32>, tensor<$Mx$Kx!tt.ptr<f16>>, tensor<$Kx$Nx!tt.ptr<f16>>) : i32 {\n"
        "%ta = tt.load %xa : tensor<$Mx$Kx!tt.ptr<f16>>\n"
        "%tb = tt.load %xb : tensor<$Kx$Nx!tt.ptr<f16>>\n"
        "$F%d = tt.dot $A, %tb, %s : tensor<$Mx$Kxf16> * tensor<$Kx$Nxf16> -> tensor<$Mx$Nxf32>\n"
        "%na = tt.addptr %xa, %sa : tensor<$Mx$Kx!tt.ptr<f16>>, tensor<$Mx$Kxi32>\n"
        "%nb = tt.addptr %xb, %sb : tensor<$Kx$Nx!tt.ptr<f16>>, tensor<$Kx$Nxi32>\n"
        "scf.yield %d, %na, %nb : tensor<$Mx$Nxf32>, tensor<$Mx$Kx!tt.ptr<f16>>, "
        "tensor<$Kx$Nx!tt.ptr<f16>>\n}\n";
    static const char *const tail =
        "tt.store %qo, $S : tensor<$Mx$Nx!tt.ptr<f32>>\ntt.return\n}\n}\n";
    put_text(out, c, 0, head);
    for (uint32_t i = 0; i < loops_of(c); i++) {
        put_text(out, c, i, loop);
    }
    put_text(out, c, loops_of(c), tail);
}

/* The same product of tiles that tensor copies bring. */
static void generate_copies(lilac_text *out, const tile_case *c) {
    lilac_text_printf(out,
                      "module {\n"
                      "tt.func public @f(%%a: !tt.tensordesc<tensor<%ux%uxf16>>, %%b: "
                      "!tt.tensordesc<tensor<%ux%uxf16>>, "
                      "%%o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %%n: i32) {\n"
                      "%%c0 = arith.constant 0 : i32\n%%step = arith.constant %u : i32\n"
                      "%%zero = arith.constant dense<0.0> : tensor<%ux%uxf32>\n"
                      "%%r = scf.for %%k = %%c0 to %%n step %%step iter_args(%%s = %%zero) -> "
                      "(tensor<%ux%uxf32>) : i32 {\n"
                      "%%ta = tt.descriptor_load %%a[%%c0, %%k] : "
                      "!tt.tensordesc<tensor<%ux%uxf16>> -> tensor<%ux%uxf16>\n"
                      "%%tb = tt.descriptor_load %%b[%%k, %%c0] : "
                      "!tt.tensordesc<tensor<%ux%uxf16>> -> tensor<%ux%uxf16>\n",
                      c->m, c->k, c->k, c->n, c->k, c->m, c->n, c->m, c->n, c->m, c->k, c->m, c->k,
                      c->k, c->n, c->k, c->n);
    if (c->stored) {
        lilac_text_printf(out, "%%square = arith.mulf %%tb, %%tb : tensor<%ux%uxf16>\n", c->k,
                          c->n);
    }
    lilac_text_printf(out,
                      "%%d = tt.dot %%ta, %s, %%s : tensor<%ux%uxf16> * tensor<%ux%uxf16> -> "
                      "tensor<%ux%uxf32>\n"
                      "scf.yield %%d : tensor<%ux%uxf32>\n}\n"
                      "%%i = tt.make_range {start = 0 : i32, end = %u : i32} : tensor<%uxi32>\n"
                      "%%f = tt.reshape %%r : tensor<%ux%uxf32> -> tensor<%uxf32>\n"
                      "%%p = tt.splat %%o : !tt.ptr<f32> -> tensor<%ux!tt.ptr<f32>>\n"
                      "%%q = tt.addptr %%p, %%i : tensor<%ux!tt.ptr<f32>>, tensor<%uxi32>\n"
                      "tt.store %%q, %%f : tensor<%ux!tt.ptr<f32>>\ntt.return\n}\n}\n",
                      c->stored ? "%square" : "%tb", c->m, c->k, c->k, c->n, c->m, c->n, c->m, c->n,
                      c->m * c->n, c->m * c->n, c->m, c->n, c->m * c->n, c->m * c->n, c->m * c->n,
                      c->m * c->n, c->m * c->n);
}

static void look_at(void *data, lilac_tile_op *op) {
    outcome *found = data;
    if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count == 0 &&
        op->results[0].type->rank == 3) {
        found->rings.buffers = (uint32_t)op->results[0].type->shape[0];
        found->count++;
    }
    if (op->code == LILAC_TILE_OP_TTG_ASYNC_WAIT && op->parent->parent->parent != NULL &&
        op->parent->parent->parent->code == LILAC_TILE_OP_SCF_FOR) {
        found->rings.distance = (uint32_t)lilac_tile_find_integer(&op->attributes, "num", 0) + 1;
    }
}

static void look_at_record(void *data, lilac_tile_op *op) {
    outcome *found = data;
    lilac_schedule record;
    if (op->code == LILAC_TILE_OP_SCF_FOR && lilac_schedule_of(&record, op)) {
        found->rings.distance = record.values[LILAC_SCHEDULE_DISTANCE];
        found->rings.buffers = record.values[LILAC_SCHEDULE_BUFFERS];
    }
}

static outcome run(const tile_case *c, void (*put)(lilac_text *out, const tile_case *c)) {
    lilac_text text = {0};
    put(&text, c);
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "depth", text.bytes, text.length);
    lilac_tile_module *module = lilac_tile_read(context, source);
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = c->warps,
                                 .num_ctas = 1,
                                 .num_stages = c->stages,
                                 .launch_maps = true,
                                 .one_block = c->one_block};
    outcome found = {.count = 0};
    bool changed;
    if (module == NULL || !lilac_tile_verify(module, false) ||
        !lilac_engine_expand_descriptors(module, &target, &changed) ||
        !lilac_engine_select_dots(module, &target, &changed) ||
        !lilac_engine_assign_layouts(module, &target, &changed) ||
        !lilac_engine_pipeline_loops(module, &target, &changed)) {
        print_diagnostics(context);
        fail();
    }
    lilac_tile_walk(module->functions->body, put == generate ? look_at : look_at_record, &found);
    found.marked =
        lilac_tile_find(&module->functions->attributes, "lilac.launch_one_block") != NULL;
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return found;
}

#define TILE_OF(M, N, K, WARPS, STAGES) .m = M, .n = N, .k = K, .warps = WARPS, .stages = STAGES

static void known_tiles(void **state) {
    (void)state;
    static const struct {
        tile_case c;
        rings rings;
    } known[] = {
        {{TILE_OF(128, 256, 64, 8, 3)}, {3, 2}}, /* one block */
        {{TILE_OF(128, 256, 64, 8, 4)}, {3, 2}}, /* a longer distance has the same price */
        {{TILE_OF(128, 128, 64, 4, 4)}, {3, 2}}, /* a fourth buffer costs the second block */
        {{TILE_OF(128, 128, 32, 4, 5)}, {5, 4}}, /* a fifth one costs the third */
        {{TILE_OF(64, 64, 64, 4, 5)}, {5, 4}},
        {{TILE_OF(64, 256, 64, 4, 3)}, {4, 2}},
        {{TILE_OF(64, 64, 128, 4, 4)}, {5, 3}},
        {{TILE_OF(128, 64, 64, 4, 3)}, {3, 2}},
        {{TILE_OF(16, 64, 128, 4, 4)}, {3, 3}}, /* mma; a fourth buffer costs the third block */
        {{TILE_OF(16, 32, 32, 4, 3)}, {3, 2}},  /* mma; the third buffer costs none */
        {{TILE_OF(16, 64, 128, 4, 2)}, {2, 1}}, /* one buffer would overlap with nothing */
        /* few iterations: a third buffer costs the third block; copies start last */
        {{TILE_OF(64, 64, 128, 4, 3), .computed = true, .iterations = 4}, {2, 2}},
        {{TILE_OF(64, 64, 128, 4, 3), .computed = true, .iterations = 64}, {3, 2}},
        {{TILE_OF(64, 64, 128, 4, 3), .computed = true}, {3, 2}},
        {{TILE_OF(64, 64, 64, 4, 3), .computed = true, .iterations = 4},
         {3, 2}}, /* it costs none */
        /* an iteration that waits and computes: a third buffer costs the second block */
        {{TILE_OF(64, 128, 128, 4, 3), .computed = true, .more = 20}, {2, 1}},
        {{TILE_OF(64, 128, 128, 4, 4), .computed = true, .more = 20}, {2, 1}},
        {{TILE_OF(64, 128, 128, 4, 3), .computed = true}, {3, 2}}, /* the second gains too little */
        {{TILE_OF(64, 128, 64, 4, 3), .computed = true, .more = 20}, {3, 2}}, /* it costs none */
        /* mma and other arithmetic: there is memory for five blocks of one warp with four buffers, for seven with
         * three, for eleven with two, which wait longer for their copies than they compute, unless that is much */
        {{TILE_OF(16, 64, 64, 1, 4), .computed = true}, {3, 2}},
        {{TILE_OF(16, 64, 64, 1, 4), .computed = true, .more = 20}, {2, 1}},
        {{TILE_OF(16, 64, 64, 1, 4)}, {3, 3}}, /* no arithmetic */
        {{TILE_OF(16, 64, 64, 1, 4), .computed = true, .iterations = 64},
         {3, 3}}, /* 64 iterations; copies start last */
        {{TILE_OF(16, 64, 128, 4, 3), .computed = true}, {3, 2}}, /* four for three: too few */
        /* the memory of one loop is that of the next one */
        {{TILE_OF(128, 256, 64, 8, 3), .loops = 2}, {3, 2}},
        {{TILE_OF(64, 64, 64, 4, 5), .loops = 3}, {5, 4}},
        {{TILE_OF(128, 256, 64, 8, 3), .computed = true}, {3, 2}},
        {{TILE_OF(128, 256, 64, 8, 3), .computed = true, .loops = 2}, {3, 2}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const outcome found = run(&known[i].c, generate);
        assert_int_equal(found.count, 2 * loops_of(&known[i].c));
        assert_int_equal(found.rings.buffers, known[i].rings.buffers);
        assert_int_equal(found.rings.distance, known[i].rings.distance);
    }
}

/* Rings of tensor copies are longer than num_stages asks for where that costs no resident block, or
 * the fourth. */
static void known_copies(void **state) {
    (void)state;
    static const struct {
        tile_case c;
        rings rings;
    } known[] = {
        {{TILE_OF(128, 256, 64, 8, 3)}, {4, 3}}, /* three iterations take longer than a copy */
        {{TILE_OF(64, 256, 64, 4, 3)},
         {5, 4}}, /* and four of half as much; the copies start last */
        {{TILE_OF(128, 128, 64, 4, 4)}, {3, 2}},  /* a fourth buffer costs the second block */
        {{TILE_OF(64, 64, 64, 4, 3)}, {4, 3}},    /* a fourth buffer costs the fourth block */
        {{TILE_OF(128, 128, 128, 8, 2)}, {3, 2}}, /* no fourth one fits; the copies start last */
        {{TILE_OF(128, 256, 128, 8, 3)}, {2, 1}}, /* no third one fits */
        /* a block that has a multiprocessor for itself: a buffer costs no other block */
        {{TILE_OF(128, 128, 64, 4, 4), .one_block = true}, {5, 4}},
        {{TILE_OF(128, 64, 64, 4, 4), .one_block = true}, {8, 7}},
        {{TILE_OF(128, 256, 64, 8, 3), .one_block = true}, {4, 3}},
        /* iterations that wait: a second one ahead where two blocks remain two */
        {{TILE_OF(128, 128, 64, 4, 2), .stored = true}, {3, 2}},
        {{TILE_OF(64, 128, 64, 4, 2), .stored = true}, {2, 1}},   /* three blocks */
        {{TILE_OF(128, 128, 128, 4, 2), .stored = true}, {2, 1}}, /* one block */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const outcome found = run(&known[i].c, generate_copies);
        assert_int_equal(found.rings.buffers, known[i].rings.buffers);
        assert_int_equal(found.rings.distance, known[i].rings.distance);
    }
}

/* A kernel of tensor copies for one block of a multiprocessor has longer rings where another buffer fits and copies
 * would be waited for. The other kernel says whether it has. */
static void one_block(void **state) {
    (void)state;
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_random random;
    uint32_t marked = 0, same = 0;
    lilac_random_seed(&random, 6);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        tile_case c = {.m = 64U << random_below(&random, 2),
                       .n = 32U << random_below(&random, 4),
                       .k = 32U << random_below(&random, 3),
                       .warps = 4U << random_below(&random, 2),
                       .stages = 2 + random_below(&random, 5)};
        const outcome usual = run(&c, generate_copies);
        c.one_block = true;
        const outcome alone = run(&c, generate_copies);
        const uint64_t bytes = UINT64_C(2) * c.k * (c.m + c.n);
        const uint64_t clocks = (uint64_t)(c.m / 64 * c.k / 16) * lilac_wgmma_cycles(c.n);
        assert_false(alone.marked);
        assert_int_equal(usual.marked, alone.rings.distance > usual.rings.distance);
        assert_true(alone.rings.distance >= usual.rings.distance);
        assert_true(bytes * alone.rings.buffers <= arch->shared_bytes);
        assert_true(bytes * (alone.rings.buffers + 1) > arch->shared_bytes ||
                    alone.rings.distance >= MOST_DISTANCE ||
                    (clocks + WAIT) * alone.rings.distance >= COPY_LATENCY);
        marked += usual.marked;
        same += !usual.marked;
    }
    assert_true(marked > 0 && same > 0);
}

/* As many as fit with the registers that ptxas takes; the second one is asked for. */
static uint32_t blocks_of(const tile_case *c, uint32_t buffers) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    const uint64_t bytes = UINT64_C(2) * c->k * (c->m + c->n) * buffers;
    const uint32_t words = c->m * c->n / (32 * c->warps);
    const lilac_block_demand free = {c->warps, words + FREE_REGISTERS, bytes};
    const lilac_block_demand least = {c->warps, words + OTHER_REGISTERS, bytes};
    const uint32_t blocks = max_u32(lilac_resident_blocks(arch, &free),
                                    min_u32(lilac_resident_blocks(arch, &least), 2));
    return bytes > arch->shared_bytes ? 0 : max_u32(blocks, 1);
}

static double price(const tile_case *c, uint32_t distance) {
    const double latency = lilac_arch_find("sm_90a")->costs->latency;
    const double clocks = (double)(c->m / 64 * c->k / 16) * lilac_wgmma_cycles(c->n);
    const double b = blocks_of(c, distance + 1);
    const double full = fmax(clocks, (clocks + WAIT) / b);
    return full * fmax(clocks + WAIT, latency / distance);
}

static void best_prices(void **state) {
    (void)state;
    lilac_random random;
    uint32_t shorter = 0, first = 0;
    lilac_random_seed(&random, 5);
    for (uint32_t i = 0; i < scaled(CASES); i++) {
        const tile_case c = {.m = 64U << random_below(&random, 2),
                             .n = 32U << random_below(&random, 4),
                             .k = 32U << random_below(&random, 3),
                             .warps = 4U << random_below(&random, 2),
                             .stages = 2 + random_below(&random, 5)};
        const outcome found = run(&c, generate);
        if (blocks_of(&c, 2) == 0) {
            assert_int_equal(found.rings.buffers, 0);
            continue;
        }
        assert_in_range(found.rings.distance, 1, c.stages - 1);
        for (uint32_t d = 1; d < c.stages; d++) {
            assert_true(blocks_of(&c, d + 1) == 0 ||
                        price(&c, found.rings.distance) <= price(&c, d) * 1.002);
        }
        /* a buffer more than the distance needs costs no block */
        assert_in_range(found.rings.buffers, found.rings.distance + 1, found.rings.distance + 2);
        assert_int_equal(blocks_of(&c, found.rings.buffers),
                         blocks_of(&c, found.rings.distance + 1));
        shorter += found.rings.distance < c.stages - 1;
        first += found.rings.buffers == found.rings.distance + 2;
    }
    assert_true(shorter > 0 && first > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_tiles),
                                       cmocka_unit_test(known_copies), cmocka_unit_test(one_block),
                                       cmocka_unit_test(best_prices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
