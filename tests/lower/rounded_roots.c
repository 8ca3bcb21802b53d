/* 1 / √x of f32, rounded to nearest (src/lower/math/f32_roots.c), against exact arithmetic: the kernel on the simulator for
 * all kinds of numbers, and its operations for each x of [1, 4), for which other normal numbers stand by a power of 4,
 * with each approximation within the bound that the PTX manual gives for rsqrt.approx. */
#include "support/lower_harness.h"

enum { BLOCK = 1024, BLOCKS = 64, OFF = 3 };

static float of_bits(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint32_t bits_of(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Is x m² above 1? m has 25 bits: its square is exact. */
static bool is_above(float x, double m) {
    const double square = m * m, product = (double)x * square;
    return (product - 1.0) + fma((double)x, square, -product) > 0.0;
}

static float nearest(float x) {
    float r = (float)(1.0 / sqrt((double)x));
    for (;;) {
        const float up = of_bits(bits_of(r) + 1), down = of_bits(bits_of(r) - 1);
        if (!is_above(x, ((double)r + (double)up) / 2)) {
            r = up;
        } else if (is_above(x, ((double)r + (double)down) / 2)) {
            r = down;
        } else {
            return r;
        }
    }
}

static float refined(float x, float y) {
    const float root = x * y, rest = fmaf(x, y, -root);
    const float e = fmaf(-rest, y, fmaf(-root, y, 1.0F));
    return fmaf(y, fmaf(e * 0.375F, e, e * 0.5F), y);
}

static void refined_roots_are_nearest(void **state) {
    (void)state;
    const double bound = exp2(-22.9);
    for (uint32_t bits = 0x3F800000; bits < 0x40800000; bits++) {
        const float x = of_bits(bits), expected = nearest(x);
        const double root = 1.0 / sqrt((double)x);
        for (uint32_t y = bits_of(expected) - OFF; y <= bits_of(expected) + OFF; y++) {
            if (fabs((double)of_bits(y) - root) <= bound * root) {
                assert_int_equal(bits_of(refined(x, of_bits(y))), bits_of(expected));
            }
        }
    }
}

/* Of any number. */
static float expected_root(float x) {
    if (!(x > 0.0F) || isinf(x)) {
        return 1.0F / sqrtf(x);
    }
    int exponent;
    const float m = frexpf(x, &exponent); /* [1/2, 1) */
    const int half = (int)floor((exponent - 1) / 2.0);
    return ldexpf(nearest(ldexpf(m, exponent - 2 * half)), -half);
}

/* The simulator's approximation is the nearest number: makes it one place smaller where it is not a power of two. */
static void reduce_approximations(harness *h) {
    lilac_text edited = {0};
    const char *at = lilac_text_get(&h->text), *found;
    while ((found = strstr(at, " = frsqrt ")) != NULL) {
        const char *name = found, *end = strchr(found, '\n');
        while (name[-1] != '%') {
            name--;
        }
        const int length = (int)(found - name);
        lilac_text_printf(&edited, "%.*snearest%.*s\n", (int)(name - at), at, (int)(end - name),
                          name);
        lilac_text_printf(&edited, "%%less%.*s = const 0x3F7FFFFF : f32\n", length, name);
        lilac_text_printf(&edited, "%%%.*s = fmul %%nearest%.*s, %%less%.*s : f32\n", length, name,
                          length, name, length, name);
        at = end + 1;
    }
    lilac_text_puts(&edited, at);
    const char *text = lilac_text_get(&edited);
    lilac_simt_module_destroy(h->simt);
    h->simt = lilac_simt_read(h->context,
                              lilac_source_add(h->context, "edited.simt", text, strlen(text)));
    assert_non_null(h->simt);
    lilac_text_clear(&edited);
}

static void check_kernel(bool reduced) {
    static const char text[] =
        "module {\ntt.func public @k(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>) {\n"
        "%p = tt.get_program_id x : i32\n%c = arith.constant 1024 : i32\n"
        "%b = arith.muli %p, %c : i32\n"
        "%r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>\n"
        "%s = tt.splat %b : i32 -> tensor<1024xi32>\n"
        "%i = arith.addi %s, %r : tensor<1024xi32>\n"
        "%xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
        "%xp = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>\n"
        "%os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
        "%op = tt.addptr %os, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>\n"
        "%v = tt.load %xp : tensor<1024x!tt.ptr<f32>>\n"
        "%y = tt.extern_elementwise %v {libname = \"\", libpath = \"\", pure = true, "
        "symbol = \"__nv_frsqrt_rn\"} : (tensor<1024xf32>) -> tensor<1024xf32>\n"
        "tt.store %op, %y : tensor<1024x!tt.ptr<f32>>\ntt.return\n}\n}\n";
    static const float special[] = {
        0.0F,      -0.0F,      INFINITY,  -INFINITY,       NAN, -1.0F, 1.0F,
        0x1p-149F, -0x1p-149F, 0x1p-126F, 0x1.fffffep+127F};
    static float x[BLOCK * BLOCKS], o[BLOCK * BLOCKS];
    lilac_random random;
    lilac_random_seed(&random, 1);
    for (uint32_t i = 0; i < BLOCK * BLOCKS; i++) {
        x[i] = i < sizeof special / sizeof *special
                   ? special[i]
                   : of_bits((uint32_t)lilac_random_next(&random) >> (i % 8 == 0 ? 9 : 1));
    }
    harness h;
    harness_open(&h, text, 4, true);
    if (reduced) {
        reduce_approximations(&h);
    }
    const buffer buffers[] = {{x, sizeof x}, {o, sizeof o}};
    harness_run(&h, BLOCKS, buffers, 2, NULL, 0);
    for (uint32_t i = 0; i < BLOCK * BLOCKS; i++) {
        const float expected = expected_root(x[i]);
        assert_true(isnan(expected) ? isnan(o[i]) : bits_of(o[i]) == bits_of(expected));
    }
    harness_close(&h);
}

static void kernel_rounds_to_nearest(void **state) {
    (void)state;
    check_kernel(false);
    check_kernel(true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refined_roots_are_nearest),
                                       cmocka_unit_test(kernel_rounds_to_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
