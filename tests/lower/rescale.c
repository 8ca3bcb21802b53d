/* lower: products with factors that are 1 in most iterations (lilac.often_one). The results are those of
 * the same product without the attribute, and the products are left out where all factors are 1. */
#include "support/lower_harness.h"

enum { ROWS = 64, COLUMNS = 64, COUNT = ROWS * COLUMNS, WARPS = 4 };

static const char *const layouts[] = {"#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, "
                                      "warpsPerCTA = [4, 1], instrShape = [16, 64, "
                                      "16]}>",
                                      "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, "
                                      "warpsPerCTA = [1, 4], instrShape = [16, 8]}>",
                                      "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, "
                                      "16], warpsPerCTA = [4, 1], order = [1, "
                                      "0]}>",
                                      "#ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = "
                                      "[32, 1], warpsPerCTA = [4, 1], order = [1, "
                                      "0]}>"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

/* y[i][j] = x[i][j] * f[i]; the factor is operand `factor`. */
static void open_product(harness *h, const char *layout, uint32_t factor, bool often_one) {
    static const char text[] =
        "#l = %s\n#r = #ttg.slice<{dim = 1, parent = #l}>\n#c = #ttg.slice<{dim = 0, parent = "
        "#l}>\n"
        "module {\n  tt.func public @k(%%x: !tt.ptr<f32>, %%f: !tt.ptr<f32>, %%y: !tt.ptr<f32>) {\n"
        "    %%m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #r>\n"
        "    %%n = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #c>\n"
        "    %%fs = tt.splat %%f : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #r>\n"
        "    %%fp = tt.addptr %%fs, %%m : tensor<64x!tt.ptr<f32>, #r>, tensor<64xi32, #r>\n"
        "    %%fv = tt.load %%fp : tensor<64x!tt.ptr<f32>, #r>\n"
        "    %%fe = tt.expand_dims %%fv {axis = 1 : i32} : tensor<64xf32, #r> -> tensor<64x1xf32, "
        "#l>\n"
        "    %%fb = tt.broadcast %%fe : tensor<64x1xf32, #l> -> tensor<64x64xf32, #l>\n"
        "    %%me = tt.expand_dims %%m {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, "
        "#l>\n"
        "    %%w = arith.constant dense<64> : tensor<64x1xi32, #l>\n"
        "    %%mw = arith.muli %%me, %%w : tensor<64x1xi32, #l>\n"
        "    %%mb = tt.broadcast %%mw : tensor<64x1xi32, #l> -> tensor<64x64xi32, #l>\n"
        "    %%ne = tt.expand_dims %%n {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, "
        "#l>\n"
        "    %%nb = tt.broadcast %%ne : tensor<1x64xi32, #l> -> tensor<64x64xi32, #l>\n"
        "    %%at = arith.addi %%mb, %%nb : tensor<64x64xi32, #l>\n"
        "    %%xs = tt.splat %%x : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #l>\n"
        "    %%xp = tt.addptr %%xs, %%at : tensor<64x64x!tt.ptr<f32>, #l>, tensor<64x64xi32, #l>\n"
        "    %%xv = tt.load %%xp : tensor<64x64x!tt.ptr<f32>, #l>\n"
        "    %%p = arith.mulf %s, %s%s : tensor<64x64xf32, #l>\n"
        "    %%ys = tt.splat %%y : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #l>\n"
        "    %%yp = tt.addptr %%ys, %%at : tensor<64x64x!tt.ptr<f32>, #l>, tensor<64x64xi32, #l>\n"
        "    tt.store %%yp, %%p : tensor<64x64x!tt.ptr<f32>, #l>\n"
        "    tt.return\n  }\n}\n";
    static const char *const names[] = {" {lilac.often_one = 0 : i32}",
                                        " {lilac.often_one = 1 : i32}"};
    lilac_text written = {0};
    lilac_text_printf(&written, text, layout, factor == 0 ? "%fb" : "%xv",
                      factor == 0 ? "%xv" : "%fb", often_one ? names[factor] : "");
    harness_open(h, lilac_text_get(&written), WARPS, false);
    lilac_text_clear(&written);
}

static float x[COUNT], f[ROWS], y[COUNT];

/* The warp instructions of a run. */
static uint64_t run_product(const char *layout, uint32_t factor, bool often_one) {
    harness h;
    open_product(&h, layout, factor, often_one);
    harness_run(&h, 1, (buffer[]){{x, sizeof x}, {f, sizeof f}, {y, sizeof y}}, 3, NULL, 0);
    const uint64_t instructions = h.counters.instructions;
    harness_close(&h);
    return instructions;
}

static float random_float(lilac_random *random) {
    static const float special[] = {0.0F,   -0.0F,   1.0F,  -1.0F,      INFINITY,   -INFINITY,
                                    1e-40F, -1e-45F, 3e38F, 1.0000001F, 0.99999994F};
    const uint64_t which = lilac_random_below(random, 24);
    if (which < sizeof special / sizeof *special) {
        return special[which];
    }
    return which == 23 ? NAN : (float)lilac_random_below(random, 2001) / 100.0F - 10.0F;
}

static void results_are_products(void **state) {
    (void)state;
    static float expected[COUNT];
    lilac_random random;
    lilac_random_seed(&random, 77);
    for (uint32_t n = 0; n < 4 * LAYOUTS * 2; n++) {
        const char *layout = layouts[n % LAYOUTS];
        const uint32_t factor = n / LAYOUTS % 2, ones = n / LAYOUTS / 2;
        for (uint32_t i = 0; i < COUNT; i++) {
            x[i] = random_float(&random);
        }
        for (uint32_t i = 0; i < ROWS; i++) {
            f[i] = lilac_random_below(&random, 4) < ones ? 1.0F : random_float(&random);
        }
        (void)run_product(layout, factor, false);
        memcpy(expected, y, sizeof y);
        (void)run_product(layout, factor, true);
        for (uint32_t i = 0; i < COUNT; i++) {
            if (memcmp(&y[i], &expected[i], sizeof *y) != 0 &&
                !(isnan(y[i]) && isnan(expected[i]))) {
                fail_msg("%s: %g * %g is %g, not %g", layout, (double)x[i], (double)f[i / COLUMNS],
                         (double)y[i], (double)expected[i]);
            }
        }
    }
}

/* Of 64 registers of two rows; those of a thread of a wgmma. */
static void products_with_one_are_left_out(void **state) {
    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        f[i] = 1.0F;
    }
    const uint64_t plain = run_product(layouts[0], 1, false);
    const uint64_t without = run_product(layouts[0], 1, true);
    f[5] = 0.5F;
    const uint64_t with = run_product(layouts[0], 1, true);
    const uint64_t products = COUNT / 32;
    assert_true(without + products == with);
    assert_true(without < plain && with <= plain + 8 * WARPS);
    f[5] = NAN;
    assert_true(run_product(layouts[0], 1, true) == with);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_products),
        cmocka_unit_test(products_with_one_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
