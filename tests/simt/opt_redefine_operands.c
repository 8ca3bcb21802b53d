/* A loop whose product has the same operand A in registers in all iterations, as TTGIR can say: its words are
 * redefined, and the results on the simulator are those of exact arithmetic. */
#include "support/test.h"

#include <lilac/driver.h>
#include <lilac/sim.h>

enum { SIDE = 64, TILE = SIDE * SIDE, TILES = 3, WORDS = 16 }; /* 64 rows, 4 steps of 4 words */

/* o += bf16(x yᵀ) y for the tiles of y. */
static const char text[] =
    "#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], "
    "order = [1, 0]}>\n"
    "#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape "
    "= [16, 64, 16]}>\n"
    "#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>\n"
    "#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = "
    "16}>\n"
    "#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = "
    "16}>\n"
    "#smem = #ttg.shared_memory\n"
    "module attributes {\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = 4 : i32, ttg.target = "
    "\"cuda:90\", "
    "\"ttg.threads-per-warp\" = 32 : i32} {\n"
    "tt.func public @k(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<bf16> "
    "{tt.divisibility = 16 : "
    "i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %tiles: i32) {\n"
    "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n"
    "%step = arith.constant dense<4096> : tensor<64x64xi32, #rows>\n"
    "%pitch = arith.constant dense<64> : tensor<64x1xi32, #rows>\n"
    "%zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>\n"
    "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, "
    "parent = #rows}>>\n"
    "%c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, "
    "parent = #rows}>>\n"
    "%r0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = "
    "#rows}>> -> "
    "tensor<64x1xi32, #rows>\n"
    "%c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = "
    "#rows}>> -> "
    "tensor<1x64xi32, #rows>\n"
    "%r1 = arith.muli %r0, %pitch : tensor<64x1xi32, #rows>\n"
    "%r2 = tt.broadcast %r1 : tensor<64x1xi32, #rows> -> tensor<64x64xi32, #rows>\n"
    "%c3 = tt.broadcast %c2 : tensor<1x64xi32, #rows> -> tensor<64x64xi32, #rows>\n"
    "%at = arith.addi %r2, %c3 : tensor<64x64xi32, #rows>\n"
    "%xs = tt.splat %x : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>, #rows>\n"
    "%xp = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<bf16>, #rows>, tensor<64x64xi32, #rows>\n"
    "%q0 = tt.load %xp : tensor<64x64x!tt.ptr<bf16>, #rows>\n"
    "%q = ttg.convert_layout %q0 : tensor<64x64xbf16, #rows> -> tensor<64x64xbf16, #a>\n"
    "%ys = tt.splat %y : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>, #rows>\n"
    "%yp = tt.addptr %ys, %at : tensor<64x64x!tt.ptr<bf16>, #rows>, tensor<64x64xi32, #rows>\n"
    "%sum, %last = scf.for %i = %c0 to %tiles step %c1 iter_args(%acc = %zero, %p = %yp) -> "
    "(tensor<64x64xf32, "
    "#mma>, tensor<64x64x!tt.ptr<bf16>, #rows>) : i32 {\n"
    "%k = tt.load %p : tensor<64x64x!tt.ptr<bf16>, #rows>\n"
    "%tile = ttg.local_alloc %k : (tensor<64x64xbf16, #rows>) -> !ttg.memdesc<64x64xbf16, #shared, "
    "#smem>\n"
    "ttng.fence_async_shared {bCluster = false}\n"
    "%tile_t = ttg.memdesc_trans %tile {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xbf16, "
    "#shared, #smem> -> "
    "!ttg.memdesc<64x64xbf16, #turned, #smem>\n"
    "%s = ttng.warp_group_dot %q, %tile_t, %zero {inputPrecision = 0 : i32} : tensor<64x64xbf16, "
    "#a> * "
    "!ttg.memdesc<64x64xbf16, #turned, #smem> -> tensor<64x64xf32, #mma>\n"
    "%n = arith.truncf %s : tensor<64x64xf32, #mma> to tensor<64x64xbf16, #mma>\n"
    "%w = ttg.convert_layout %n : tensor<64x64xbf16, #mma> -> tensor<64x64xbf16, #a>\n"
    "%next = ttng.warp_group_dot %w, %tile, %acc {inputPrecision = 0 : i32} : tensor<64x64xbf16, "
    "#a> * "
    "!ttg.memdesc<64x64xbf16, #shared, #smem> -> tensor<64x64xf32, #mma>\n"
    "%to = tt.addptr %p, %step : tensor<64x64x!tt.ptr<bf16>, #rows>, tensor<64x64xi32, #rows>\n"
    "scf.yield %next, %to : tensor<64x64xf32, #mma>, tensor<64x64x!tt.ptr<bf16>, #rows>\n}\n"
    "%out = ttg.convert_layout %sum : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #rows>\n"
    "%os = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #rows>\n"
    "%op = tt.addptr %os, %at : tensor<64x64x!tt.ptr<f32>, #rows>, tensor<64x64xi32, #rows>\n"
    "tt.store %op, %out : tensor<64x64x!tt.ptr<f32>, #rows>\ntt.return\n}\n}\n";

static uint32_t redefinitions(const lilac_simt_body *body) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        count += i->code == LILAC_SIMT_OP_OPAQUE && (i->flags & LILAC_SIMT_VOLATILE) != 0;
        for (uint32_t k = 0; k < i->body_count; k++) {
            count += redefinitions(i->bodies[k]);
        }
    }
    return count;
}

/* Numbers -1, 0 and 1: all sums are exact. */
static void fill(lilac_random *random, uint16_t *bits, int32_t *numbers, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        numbers[k] = (int32_t)lilac_random_below(random, 3) - 1;
        bits[k] =
            (uint16_t)lilac_scalar_encode(LILAC_BF16, numbers[k], LILAC_ROUND_NEAREST_EVEN, false);
    }
}

static void expect(const int32_t *x, const int32_t *y, float *sums) {
    for (uint32_t row = 0; row < SIDE; row++) {
        for (uint32_t line = 0; line < TILES * SIDE; line++) {
            int32_t score = 0;
            for (uint32_t k = 0; k < SIDE; k++) {
                score += x[row * SIDE + k] * y[line * SIDE + k];
            }
            for (uint32_t k = 0; k < SIDE; k++) {
                sums[row * SIDE + k] += (float)(score * y[line * SIDE + k]);
            }
        }
    }
}

static void exact_sums(void **state) {
    (void)state;
    static uint16_t x[TILE], y[TILES * TILE];
    static int32_t xs[TILE], ys[TILES * TILE];
    static float wanted[TILE], got[TILE];
    lilac_random random;
    lilac_random_seed(&random, 31);
    fill(&random, x, xs, TILE);
    fill(&random, y, ys, TILES * TILE);
    expect(xs, ys, wanted);
    lilac_context *context = lilac_context_create();
    lilac_compilation made;
    lilac_options options;
    lilac_options_init(&options);
    options.target = (lilac_target){
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 2};
    options.verify = true;
    options.stop_at = LILAC_STAGE_SIMT;
    if (!lilac_compile(&made, context, lilac_source_add(context, "k.ttgir", text, strlen(text)),
                       &options)) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    assert_int_equal(redefinitions(made.simt->kernels->body), WORDS);
    lilac_sim_buffer places[3] = {{.name = "x", .bytes = (uint8_t *)x, .size = sizeof x},
                                  {.name = "y", .bytes = (uint8_t *)y, .size = sizeof y},
                                  {.name = "o", .bytes = (uint8_t *)got, .size = sizeof got}};
    lilac_sim_place(places, 3);
    const uint64_t arguments[4] = {places[0].address, places[1].address, places[2].address, TILES};
    const lilac_sim_launch launch = {.kernel = made.simt->kernels,
                                     .grid = {1, 1, 1},
                                     .arguments = arguments,
                                     .argument_count = 4,
                                     .buffers = places,
                                     .buffer_count = 3,
                                     .threads = 1};
    lilac_sim_counters counters;
    if (!lilac_sim_run(context, &launch, &counters) || lilac_diagnostics(context) != NULL) {
        fail_with_diagnostics(context, "findings");
    }
    assert_memory_equal(got, wanted, sizeof wanted);
    lilac_compilation_clear(&made);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
