/* The demand of a block: what the header says about a lost resident block, words and bytes of a
 * function with known tensors, and rotate_products: it never takes all blocks but one of
 * several, as counted again in the function that it has changed. */
#include "products/block_demand.h"

#include "support/test.h"

enum { RANDOM_CASES = 200000 };

/* ---- the model ------------------------------------------------------------------------------- */

static uint64_t max_of(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* Clocks of `scale` iterations: of b blocks, without and with an overlap in the block. */
static uint64_t alone(uint64_t t, uint64_t c, uint64_t wait, uint64_t b, uint64_t scale) {
    return max_of(max_of(t, c) * scale, (t + c + wait) * scale / b);
}

static uint64_t overlapped(uint64_t t, uint64_t c, uint64_t wait, uint64_t b, uint64_t scale) {
    return max_of(max_of(t, c) * scale, (max_of(t, c) + wait) * scale / b);
}

/* An overlap never pays for one of several blocks. Where two remain and the wait is no longer
 * than the work, it costs nothing. With the same blocks it costs nothing at all. */
static void lost_blocks(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 7);
    uint32_t gains = 0;
    for (uint32_t i = 0; i < RANDOM_CASES; i++) {
        const uint64_t t = 1 + random_below(&random, 4096), c = random_below(&random, 4096),
                       wait = random_below(&random, 8192), b = 2 + random_below(&random, 10);
        const uint64_t scale = b * (b - 1) * 16;
        assert_true(alone(t, c, wait, b, scale) <= overlapped(t, c, wait, b - 1, scale));
        assert_true(overlapped(t, c, wait, b, scale) <= alone(t, c, wait, b, scale));
        gains += overlapped(t, c, wait, b, scale) < alone(t, c, wait, b, scale);
        if (b > 2 && wait <= max_of(t, c)) {
            assert_int_equal(overlapped(t, c, wait, b - 1, scale), max_of(t, c) * scale);
        }
    }
    assert_true(gains > 0);
}

static void overlaps_that_pay(void **state) {
    (void)state;
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    static const struct {
        lilac_block_demand before, after;
        bool pays;
    } known[] = {
        {{8, 128, 65536}, {8, 160, 81920}, false},   {{8, 130, 65536}, {8, 160, 81920}, true},
        {{8, 104, 106496}, {8, 120, 139264}, false}, {{4, 128, 66560}, {4, 160, 66560}, true},
        {{4, 220, 65536}, {4, 284, 65536}, false},   {{8, 236, 131072}, {8, 256, 131072}, false},
        {{4, 60, 24576}, {4, 80, 24576}, true},      {{8, 255, 232448}, {8, 255, 232448}, true}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_int_equal(lilac_engine_overlap_pays(arch, &known[i].before, &known[i].after),
                         known[i].pays);
    }
}

/* ---- functions ------------------------------------------------------------------------------- */

typedef struct shape {
    uint32_t rows, columns, depth, warps, stages;
} shape;

/* The gradient of attention's queries: both products read %k. */
static void generate(lilac_text *out, const shape *s) {
    static const char *const text =
        "module {\n"
        "tt.func public @f(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, "
        "%c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%step = arith.constant dense<@KD> : tensor<@Kx@Dxi32>\n"
        "%zs = arith.constant dense<0.0> : tensor<@Mx@Kxf32>\n"
        "%zo = arith.constant dense<0.0> : tensor<@Mx@Dxf32>\n"
        "%mr = tt.make_range {start = 0 : i32, end = @M : i32} : tensor<@Mxi32>\n"
        "%mc = tt.expand_dims %mr {axis = 1 : i32} : tensor<@Mxi32> -> tensor<@Mx1xi32>\n"
        "%md = arith.constant dense<@D> : tensor<@Mx1xi32>\n"
        "%mm = arith.muli %mc, %md : tensor<@Mx1xi32>\n"
        "%mb = tt.broadcast %mm : tensor<@Mx1xi32> -> tensor<@Mx@Dxi32>\n"
        "%kr = tt.make_range {start = 0 : i32, end = @K : i32} : tensor<@Kxi32>\n"
        "%kc = tt.expand_dims %kr {axis = 1 : i32} : tensor<@Kxi32> -> tensor<@Kx1xi32>\n"
        "%kd = arith.constant dense<@D> : tensor<@Kx1xi32>\n"
        "%km = arith.muli %kc, %kd : tensor<@Kx1xi32>\n"
        "%kb = tt.broadcast %km : tensor<@Kx1xi32> -> tensor<@Kx@Dxi32>\n"
        "%dr = tt.make_range {start = 0 : i32, end = @D : i32} : tensor<@Dxi32>\n"
        "%dc = tt.expand_dims %dr {axis = 0 : i32} : tensor<@Dxi32> -> tensor<1x@Dxi32>\n"
        "%dm = tt.broadcast %dc : tensor<1x@Dxi32> -> tensor<@Mx@Dxi32>\n"
        "%dk = tt.broadcast %dc : tensor<1x@Dxi32> -> tensor<@Kx@Dxi32>\n"
        "%mo = arith.addi %mb, %dm : tensor<@Mx@Dxi32>\n"
        "%ko = arith.addi %kb, %dk : tensor<@Kx@Dxi32>\n"
        "%as = tt.splat %a : !tt.ptr<f16> -> tensor<@Mx@Dx!tt.ptr<f16>>\n"
        "%aa = tt.addptr %as, %mo : tensor<@Mx@Dx!tt.ptr<f16>>, tensor<@Mx@Dxi32>\n"
        "%q = tt.load %aa : tensor<@Mx@Dx!tt.ptr<f16>>\n"
        "%bs = tt.splat %b : !tt.ptr<f16> -> tensor<@Kx@Dx!tt.ptr<f16>>\n"
        "%ba = tt.addptr %bs, %ko : tensor<@Kx@Dx!tt.ptr<f16>>, tensor<@Kx@Dxi32>\n"
        "%r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %zo, %at = %ba) "
        "-> (tensor<@Mx@Dxf32>, tensor<@Kx@Dx!tt.ptr<f16>>) : i32 {\n"
        "%k = tt.load %at : tensor<@Kx@Dx!tt.ptr<f16>>\n"
        "%t = tt.trans %k {order = array<i32: 1, 0>} : tensor<@Kx@Dxf16> -> tensor<@Dx@Kxf16>\n"
        "%s = tt.dot %q, %t, %zs : tensor<@Mx@Dxf16> * tensor<@Dx@Kxf16> -> tensor<@Mx@Kxf32>\n"
        "%e = math.exp %s : tensor<@Mx@Kxf32>\n"
        "%p = arith.truncf %e : tensor<@Mx@Kxf32> to tensor<@Mx@Kxf16>\n"
        "%d = tt.dot %p, %k, %o : tensor<@Mx@Kxf16> * tensor<@Kx@Dxf16> -> tensor<@Mx@Dxf32>\n"
        "%next = tt.addptr %at, %step : tensor<@Kx@Dx!tt.ptr<f16>>, tensor<@Kx@Dxi32>\n"
        "scf.yield %d, %next : tensor<@Mx@Dxf32>, tensor<@Kx@Dx!tt.ptr<f16>>\n}\n"
        "%cs = tt.splat %c : !tt.ptr<f32> -> tensor<@Mx@Dx!tt.ptr<f32>>\n"
        "%ca = tt.addptr %cs, %mo : tensor<@Mx@Dx!tt.ptr<f32>>, tensor<@Mx@Dxi32>\n"
        "tt.store %ca, %r#0 : tensor<@Mx@Dx!tt.ptr<f32>>\ntt.return\n}\n}\n";
    for (const char *c = text; *c != '\0'; c++) {
        if (*c != '@' || c[1] == 'f') {
            lilac_text_char(out, *c);
            continue;
        }
        c++;
        const bool both = c[0] == 'K' && c[1] == 'D';
        lilac_text_printf(out, "%u",
                          both        ? s->columns * s->depth
                          : *c == 'M' ? s->rows
                          : *c == 'K' ? s->columns
                                      : s->depth);
        c += both;
    }
}

typedef struct outcome {
    lilac_block_demand before, after;
    bool rotated;
} outcome;

static void find_loop(void *data, lilac_tile_op *op) {
    const lilac_tile_op **loop = data;
    *loop = op->code == LILAC_TILE_OP_SCF_FOR ? op : *loop;
}

static lilac_block_demand demand_of(const lilac_tile_module *module, const lilac_target *target) {
    const lilac_tile_op *loop = NULL;
    lilac_tile_walk(module->functions->body, find_loop, &loop);
    return lilac_engine_block_demand(module->functions, loop, target);
}

static outcome run(const shape *s) {
    lilac_text text = {0};
    generate(&text, s);
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "demand", text.bytes, text.length);
    lilac_tile_module *module = lilac_tile_read(context, source);
    const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                 .num_warps = s->warps,
                                 .num_ctas = 1,
                                 .num_stages = s->stages};
    outcome o;
    bool changed;
    if (module == NULL || !lilac_tile_verify(module, false) ||
        !lilac_engine_select_dots(module, &target, &changed) ||
        !lilac_engine_assign_layouts(module, &target, &changed)) {
        print_diagnostics(context);
        fail();
    }
    lilac_tile_number(module->functions);
    o.before = demand_of(module, &target);
    assert_true(lilac_engine_rotate_products(module, &target, &o.rotated));
    o.after = demand_of(module, &target);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
    return o;
}

/* 128 × 64 sums of 8 warps are 32 words, as are 128 × 64 scores, besides 16 of the probabilities
 * in f16. The buffers are those of %q and three or two of %k; of twice as many if the product is
 * rotated. */
static void known_demands(void **state) {
    (void)state;
    const shape two = {.rows = 128, .columns = 64, .depth = 64, .warps = 8, .stages = 2};
    const shape three = {.rows = 128, .columns = 64, .depth = 64, .warps = 8, .stages = 3};
    const outcome a = run(&two), b = run(&three);
    assert_int_equal(a.before.warps, 8);
    assert_int_equal(a.before.registers, 32 + 32 + LILAC_ENGINE_OTHER_REGISTERS);
    assert_int_equal(a.before.shared_bytes, 16384 + 2 * 8192);
    assert_int_equal(b.before.shared_bytes, 16384 + 3 * 8192);
    assert_true(a.rotated && b.rotated);
    assert_int_equal(a.after.registers, 32 + 64 + LILAC_ENGINE_OTHER_REGISTERS);
    assert_int_equal(b.after.shared_bytes, 16384 + 6 * 8192);
}

static void rotations_leave_blocks(void **state) {
    (void)state;
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    uint32_t rotated = 0, left = 0;
    for (uint32_t i = 0; i < 96; i++) {
        const shape s = {.rows = 64U << i / 48,
                         .columns = 32U << i % 3,
                         .depth = 64U << i / 3 % 2,
                         .warps = 4U << i / 6 % 2,
                         .stages = 2 + i / 12 % 4};
        const outcome o = run(&s);
        const uint32_t before = lilac_resident_blocks(arch, &o.before);
        const uint32_t after = lilac_resident_blocks(arch, &o.after);
        rotated += o.rotated;
        left += !o.rotated;
        assert_true(!o.rotated || o.after.registers <= LILAC_MOST_REGISTERS);
        assert_true(before < 2 || after >= 2);
    }
    assert_true(rotated > 0 && left > 0);
}

/* A rotated product's rings, as short as they may be, and the tile of the first iteration have space. */
static void rotations_leave_rings(void **state) {
    (void)state;
    const uint32_t bytes = lilac_arch_find("sm_90a")->shared_bytes;
    uint32_t rotated = 0, left = 0;
    for (uint32_t i = 0; i < 18; i++) {
        const shape s = {.rows = 64U << i / 9,
                         .columns = 32U << i % 3,
                         .depth = 128U << i / 3 % 3,
                         .warps = 8,
                         .stages = 2};
        const outcome o = run(&s);
        const uint64_t tile = UINT64_C(2) * s.columns * s.depth;
        const uint64_t needed = o.before.shared_bytes + 2 * tile + tile;
        const uint32_t words = s.rows * s.columns / (32 * s.warps);
        rotated += o.rotated;
        left += !o.rotated && needed > bytes && o.before.registers + words <= LILAC_MOST_REGISTERS;
        assert_true(!o.rotated || needed <= bytes);
    }
    assert_true(rotated > 0 && left > 0);
}

/* One branch of a conditional is executed: the operands of its product are not live together with the two
 * exponentials that the other one adds. Of 32 threads: %x has 32 words, %h and %g 8 each; in front of the
 * conditional two exponentials and two operands more. */
static void branches_are_alternatives(void **state) {
    (void)state;
    static const char text[] =
        "module {\n"
        "tt.func public @f(%x: tensor<32x32xf32>, %h: tensor<32x16xf16>, %g: tensor<16x32xf16>, "
        "%b: i1, %n: i32) -> tensor<32x32xf32> {\n"
        "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
        "%z = arith.constant dense<0.0> : tensor<32x32xf32>\n"
        "%r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %z) -> (tensor<32x32xf32>) : i32 {\n"
        "%s = math.exp %x : tensor<32x32xf32>\n%t = math.exp2 %x : tensor<32x32xf32>\n"
        "%u = arith.negf %h : tensor<32x16xf16>\n%v = arith.negf %g : tensor<16x32xf16>\n"
        "%d = scf.if %b -> (tensor<32x32xf32>) {\n"
        "%a = arith.addf %s, %t : tensor<32x32xf32>\nscf.yield %a : tensor<32x32xf32>\n"
        "} else {\n"
        "%p = tt.dot %u, %v, %z : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x32xf32>\n"
        "scf.yield %p : tensor<32x32xf32>\n}\n"
        "scf.yield %d : tensor<32x32xf32>\n}\ntt.return %r : tensor<32x32xf32>\n}\n}\n";
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "branches", text, strlen(text)));
    if (module == NULL || !lilac_tile_verify(module, false)) {
        print_diagnostics(context);
        fail();
    }
    const lilac_tile_op *loop = NULL;
    lilac_tile_number(module->functions);
    lilac_tile_walk(module->functions->body, find_loop, &loop);
    assert_int_equal(lilac_engine_live_words_of(module->functions, loop, 32),
                     32 + 8 + 8 + 2 * 32 + 2 * 8);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_blocks),           cmocka_unit_test(overlaps_that_pay),
        cmocka_unit_test(known_demands),         cmocka_unit_test(rotations_leave_blocks),
        cmocka_unit_test(rotations_leave_rings), cmocka_unit_test(branches_are_alternatives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
