/* scalar: decode and encode are inverse on every code, rounding is to the nearest of the two
 * neighbours, and fused multiply-add rounds once. */

#include <lilac/scalar.h>

#include <math.h>

#include "support/test.h"

static const lilac_scalar small_floats[] = {
    LILAC_F4E2M1FN,      LILAC_F8E4M3FN,  LILAC_F8E5M2, LILAC_F8E4M3FNUZ, LILAC_F8E5M2FNUZ,
    LILAC_F8E4M3B11FNUZ, LILAC_F8E8M0FNU, LILAC_BF16,   LILAC_F16,
};
enum { SMALL_FLOATS = sizeof small_floats / sizeof *small_floats };

static void every_code_survives(void **state) {
    (void)state;
    for (int i = 0; i < SMALL_FLOATS; i++) {
        lilac_scalar scalar = small_floats[i];
        for (uint64_t code = 0; code < UINT64_C(1) << lilac_scalar_bits(scalar); code++) {
            double value = lilac_scalar_decode(scalar, code);
            uint64_t back = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
            if (value != value) {
                assert_true(isnan(lilac_scalar_decode(scalar, back)));
            } else {
                assert_int_equal(back, code);
            }
        }
    }
}

static void known_values(void **state) {
    (void)state;
    const struct {
        lilac_scalar scalar;
        uint64_t bits;
        double value;
    } cases[] = {
        {LILAC_F16, 0x3C00, 1.0},
        {LILAC_F16, 0x7BFF, 65504.0},
        {LILAC_F16, 0x0001, 0x1p-24},
        {LILAC_F16, 0xFC00, -INFINITY},
        {LILAC_BF16, 0x3F80, 1.0},
        {LILAC_BF16, 0xFF80, -INFINITY},
        {LILAC_F8E4M3FN, 0x7E, 448.0},
        {LILAC_F8E4M3FN, 0x01, 0x1p-9},
        {LILAC_F8E5M2, 0x7B, 57344.0},
        {LILAC_F8E5M2, 0x7C, INFINITY},
        {LILAC_F8E4M3FNUZ, 0x7F, 240.0},
        {LILAC_F8E5M2FNUZ, 0x7F, 57344.0},
        {LILAC_F8E4M3B11FNUZ, 0x7F, 30.0},
        {LILAC_F8E8M0FNU, 0, 0x1p-127},
        {LILAC_F4E2M1FN, 0x7, 6.0},
        {LILAC_F4E2M1FN, 0x1, 0.5},
        {LILAC_F32, 0x3F800001, 0x1.000002p0},
        {LILAC_TF32, 0x3F802000, 0x1.004p0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(lilac_scalar_decode(cases[i].scalar, cases[i].bits) == cases[i].value);
        assert_int_equal(
            lilac_scalar_encode(cases[i].scalar, cases[i].value, LILAC_ROUND_NEAREST_EVEN, false),
            cases[i].bits);
    }
}

static void overflow_follows_the_format(void **state) {
    (void)state;
    const lilac_rounding even = LILAC_ROUND_NEAREST_EVEN;
    assert_int_equal(lilac_scalar_encode(LILAC_F16, 65519.9, even, false), 0x7BFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F16, 65520.0, even, false), 0x7C00);
    assert_int_equal(lilac_scalar_encode(LILAC_F16, 1e300, LILAC_ROUND_ZERO, false), 0x7BFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F16, -1e300, LILAC_ROUND_UP, false), 0xFBFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F16, -1e300, LILAC_ROUND_DOWN, false), 0xFC00);
    assert_int_equal(lilac_scalar_encode(LILAC_F8E4M3FN, 1e9, even, true), 0x7E);
    assert_int_equal(lilac_scalar_encode(LILAC_F8E4M3FN, -1e9, even, false), 0xFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F8E4M3FNUZ, -1e9, even, false), 0x80);
    assert_int_equal(lilac_scalar_encode(LILAC_F16, NAN, even, false), 0x7FFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F32, NAN, even, false), 0x7FFFFFFF);
    assert_int_equal(lilac_scalar_encode(LILAC_F8E4M3FNUZ, -0.0, even, false), 0);
}

static void rounding_goes_to_the_neighbours(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 3);
    const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F8E5M2};
    for (int i = 0; i < 30000; i++) {
        lilac_scalar scalar = scalars[i % 3];
        uint64_t bits = lilac_random_next(&random);
        bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (1023 - 30 + bits % 40) << 52;
        double value;
        memcpy(&value, &bits, sizeof value);
        double down = lilac_scalar_decode(
            scalar, lilac_scalar_encode(scalar, value, LILAC_ROUND_DOWN, false));
        double up =
            lilac_scalar_decode(scalar, lilac_scalar_encode(scalar, value, LILAC_ROUND_UP, false));
        double zero = lilac_scalar_decode(
            scalar, lilac_scalar_encode(scalar, value, LILAC_ROUND_ZERO, false));
        double near = lilac_scalar_decode(
            scalar, lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false));
        assert_true(down <= value && value <= up);
        assert_true(zero == (value > 0 ? down : up));
        assert_true(near == down || near == up);
        if (value - down < up - value) {
            assert_true(near == down);
        }
        if (value - down > up - value) {
            assert_true(near == up);
        }
    }
}

/* The compiler's own conversion is the oracle for f32. */
static void f32_agrees_with_the_machine(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 4);
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = lilac_random_next(&random);
        double value;
        memcpy(&value, &bits, sizeof value);
        float narrow = (float)value;
        uint32_t expected;
        memcpy(&expected, &narrow, sizeof expected);
        if (narrow == narrow) {
            assert_int_equal(lilac_scalar_encode(LILAC_F32, value, LILAC_ROUND_NEAREST_EVEN, false),
                             expected);
        }
    }
}

static void fma_rounds_once(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 5);
    const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16};
    for (int i = 0; i < 100000; i++) {
        lilac_scalar scalar = scalars[i % 2];
        uint64_t word = lilac_random_next(&random);
        uint64_t a = word & 0xFFFF, b = word >> 16 & 0xFFFF, c = word >> 32 & 0xFFFF;
        long double exact = (long double)lilac_scalar_decode(scalar, a) *
                            (long double)lilac_scalar_decode(scalar, b);
        double z = lilac_scalar_decode(scalar, c);
        uint64_t bits = lilac_scalar_fma(scalar, a, b, c);
        double value = lilac_scalar_decode(scalar, bits);
        if (!isfinite(value) || !isfinite((double)exact) || !isfinite(z)) {
            continue;
        }
        /* No other code is nearer to the exact result. The differences are exact in long double
         * whenever the terms are within 2^64 of each other; others are skipped. */
        if (z != 0 && exact != 0 && fabs(log2(fabs(z / (double)exact))) > 40) {
            continue;
        }
        long double error = fabsl((exact - (long double)value) + (long double)z);
        for (int step = -1; step <= 1; step += 2) {
            double other = lilac_scalar_decode(scalar, bits + (uint64_t)step);
            if (isfinite(other)) {
                assert_true(error <= fabsl((exact - (long double)other) + (long double)z));
            }
        }
    }
    /* 1 + 2^-11 + 2^-24 must not be rounded twice: to 1 + 2^-10. */
    assert_int_equal(lilac_scalar_fma(LILAC_F16, 0x1000, 0x1000, 0x3C00), 0x3C00);
}

static void integers_have_signs(void **state) {
    (void)state;
    assert_int_equal(lilac_scalar_signed(LILAC_I1, 1), -1);
    assert_int_equal(lilac_scalar_signed(LILAC_I8, 0x1FF), -1);
    assert_int_equal(lilac_scalar_signed(LILAC_I32, 0x80000000), INT32_MIN);
    assert_int_equal(lilac_scalar_mask(LILAC_I16, 0x12345), 0x2345);
    lilac_scalar scalar;
    for (int i = 0; i < LILAC_SCALAR_COUNT; i++) {
        const char *name = lilac_scalar_name((lilac_scalar)i);
        assert_true(lilac_scalar_read(name, strlen(name), &scalar));
        assert_int_equal(scalar, i);
    }
    assert_false(lilac_scalar_read("f17", 3, &scalar));
}

/* An integer below 2^63 of which a double says the value. */
static int64_t whole(double value) {
    assert_true(value == floor(value) && fabs(value) < 0x1p63);
    return (int64_t)value;
}

/* Down and up are the nearest floats on both sides, or the integer itself; zero is the smaller one, and even is
 * the one that is nearer, or whose last bit is 0. */
static void integers_round_to_the_neighbours(void **state) {
    (void)state;
    static const lilac_scalar floats[] = {LILAC_F32, LILAC_F64};
    lilac_random random;
    uint32_t between = 0;
    lilac_random_seed(&random, 11);
    for (uint32_t i = 0; i < scaled(20000); i++) {
        const uint64_t magnitude =
            lilac_random_next(&random) >> (2 + lilac_random_next(&random) % 61);
        const bool negative = (lilac_random_next(&random) & 1) != 0;
        const int64_t value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
        for (int f = 0; f < 2; f++) {
            uint64_t bits[4];
            int64_t rounded[4];
            for (int r = 0; r < 4; r++) {
                bits[r] =
                    lilac_scalar_encode_integer(floats[f], magnitude, negative, (lilac_rounding)r);
                rounded[r] = whole(lilac_scalar_decode(floats[f], bits[r]));
            }
            const int64_t down = rounded[LILAC_ROUND_DOWN], up = rounded[LILAC_ROUND_UP];
            assert_true(down <= value && value <= up);
            assert_int_equal(rounded[LILAC_ROUND_ZERO], negative ? up : down);
            if (down == up) {
                assert_int_equal(rounded[LILAC_ROUND_NEAREST_EVEN], value);
                continue;
            }
            between++;
            const int64_t one = (int64_t)bits[LILAC_ROUND_UP] - (int64_t)bits[LILAC_ROUND_DOWN];
            assert_int_equal(one, negative ? -1 : 1); /* neighbours */
            const bool nearer_up = up - value < value - down;
            const bool tie = up - value == value - down;
            const bool up_is_even = (bits[LILAC_ROUND_UP] & 1) == 0;
            assert_int_equal(rounded[LILAC_ROUND_NEAREST_EVEN],
                             nearer_up || (tie && up_is_even) ? up : down);
        }
    }
    assert_true(between > 1000);
    assert_int_equal(lilac_scalar_encode_integer(LILAC_F32, UINT64_MAX, false, LILAC_ROUND_ZERO),
                     0x5F7FFFFF);
    assert_int_equal(lilac_scalar_encode_integer(LILAC_F64, UINT64_MAX, false, LILAC_ROUND_DOWN),
                     0x43EFFFFFFFFFFFFF);
    assert_int_equal(lilac_scalar_encode_integer(LILAC_F64, UINT64_MAX, false, LILAC_ROUND_UP),
                     0x43F0000000000000);
    assert_int_equal(lilac_scalar_encode_integer(LILAC_F32, 0, false, LILAC_ROUND_UP), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_survives),
        cmocka_unit_test(known_values),
        cmocka_unit_test(overflow_follows_the_format),
        cmocka_unit_test(rounding_goes_to_the_neighbours),
        cmocka_unit_test(f32_agrees_with_the_machine),
        cmocka_unit_test(fma_rounds_once),
        cmocka_unit_test(integers_have_signs),
        cmocka_unit_test(integers_round_to_the_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
