/* 1 / √x of f32, rounded to nearest (src/lower/math/f32_roots.c): the operations give the number that is nearest,
 * for each y that is off by one place at most. Each x of [1, 4); other normal numbers differ by a power of 4. */
#include "support/test.h"

#include <math.h>

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
    for (uint32_t bits = 0x3F800000; bits < 0x40800000; bits++) {
        const float x = of_bits(bits), expected = nearest(x);
        for (uint32_t y = bits_of(expected) - 1; y <= bits_of(expected) + 1; y++) {
            assert_int_equal(bits_of(refined(x, of_bits(y))), bits_of(expected));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refined_roots_are_nearest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
