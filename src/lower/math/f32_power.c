/* Powers and remainders of f32.
 *
 *   x^y        |x| = 2^e m, √½ ≤ m < √2     s = (m - 1) / (m + 1)
 *              log2 |x| = e + s (2 log2 e) (1 + s² p(s²)), y log2 |x| = h + l
 *              2^h + 2^h l ln 2
 *              s and the sum are unevaluated sums of two floats. The error of log2 m is 2^-29 of
 *              it, which is one ulp of the largest results, in addition to that of ex2.approx.
 *   x^n        for a constant n from 0 to 4: products; for other integers: x^y, and the sign of x where n is odd
 *   x 2^n      one product if 2^n is a normal number
 *   fmod x y   q = |x / y| to the nearest whole number, at most one off the floor:
 *              |x| - q |y| is exact, and so is the sum of it and |y| where it is negative
 *
 * The fast path of powers is for positive normal x, of any sign where y is a whole constant, and
 * |h| < 126; that of remainders for quotients below 2^20. */
#include "f32.h"

#include <math.h>

enum { MOST_EXACT = 1 << 24 }; /* the largest integer up to which all are floats */

/* ---- powers --------------------------------------------------------------------------------- */

static bool constant_of(math_builder *k, lilac_simt_value a, double *number) {
    uint64_t bits;
    bool is = lilac_simt_is_constant(k->l->kernel, a, &bits);
    *number = is ? lilac_scalar_decode(LILAC_F32, bits) : 0.0;
    return is;
}

/* By products: for 0, 1, 2, 3, 4. */
static bool is_small(math_builder *k, lilac_simt_value y, uint32_t *power) {
    double number;
    bool is =
        constant_of(k, y, &number) && number >= 0.0 && number <= 4.0 && number == floor(number);
    *power = is ? (uint32_t)number : 0;
    return is;
}

/* log2 a of a positive normal a: the result and *low. */
static lilac_simt_value logarithm(math_builder *k, lilac_simt_value a, lilac_simt_value *low) {
    static const double p[] = {0x1.ec709ep-1, 0x1.2776e2p-1, 0x1.a5cedap-2, 0x1.58af66p-2};
    lilac_simt_value factor = f32(k, 0x1.715476p+1), rest = f32(k, 0x1.4ae0c0p-25);
    lilac_simt_value bits = i32_of(k, a);
    lilac_simt_value field =
        with(k, LILAC_SIMT_OP_AND, with(k, LILAC_SIMT_OP_SUB, bits, 0x3F3504F3), 0xFF800000);
    lilac_simt_value m = f32_of(k, op2(k, LILAC_SIMT_OP_SUB, bits, field));
    lilac_simt_value exponent = convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, field);
    lilac_simt_value f = sub(k, m, f32(k, 1.0));
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, add(k, m, f32(k, 1.0)));
    lilac_simt_value s = mul(k, f, inverse);
    lilac_simt_value lack = fma3(k, minus(k, s), f, fma3(k, s, f32(k, -2.0), f));
    lilac_simt_value first = fma3(k, s, factor, f32(k, -0.0));
    lilac_simt_value tail = fma3(k, s, factor, minus(k, first));
    tail = fma3(k, s, rest, tail);
    tail = fma3(k, mul(k, lack, inverse), factor, tail);
    lilac_simt_value square = mul(k, s, s), more = mul(k, square, SERIES(k, p, square));
    lilac_simt_value high = fma3(k, s, more, first);
    tail = add(k, fma3(k, s, more, sub(k, first, high)), tail);
    lilac_simt_value unit = f32(k, 0x1p-23);
    lilac_simt_value sum = fma3(k, exponent, unit, high);
    lilac_simt_value lost = add(k, fma3(k, exponent, unit, minus(k, sum)), high);
    *low = add(k, lost, tail);
    return sum;
}

/* y log2 |x|: the result and *low. */
static lilac_simt_value exponent_of(math_builder *k, lilac_simt_value x, lilac_simt_value y,
                                    lilac_simt_value *low) {
    lilac_simt_value rest, log = logarithm(k, magnitude(k, x), &rest);
    lilac_simt_value h = fma3(k, y, log, f32(k, -0.0));
    *low = fma3(k, y, rest, fma3(k, y, log, minus(k, h)));
    return h;
}

static lilac_simt_value power(math_builder *k, lilac_simt_value x, lilac_simt_value y) {
    lilac_simt_value low, h = exponent_of(k, x, y, &low);
    lilac_simt_value result = flushed(k, LILAC_SIMT_OP_FEXP2, h);
    return fma3(k, result, mul(k, low, f32(k, LN_2)), result);
}

/* Not a normal number of the sign, or a result beyond 2^±126, or NaN. */
static lilac_simt_value is_rare(math_builder *k, lilac_simt_value x, lilac_simt_value y,
                                bool any_sign) {
    lilac_simt_value low, h = exponent_of(k, x, y, &low);
    lilac_simt_value bits = i32_of(k, any_sign ? magnitude(k, x) : x);
    lilac_simt_value special =
        compare(k, LILAC_SIMT_UGE, with(k, LILAC_SIMT_OP_SUB, bits, 0x00800000),
                integer(k, LILAC_SIMT_I32, 0x7F000000));
    return either(k, special, compare(k, LILAC_SIMT_FUGE, magnitude(k, h), f32(k, 126.0)));
}

lilac_simt_value lilac_lower_f32_pow_rare(math_builder *k, const lilac_simt_value *in) {
    uint32_t small;
    double y;
    if (is_small(k, in[1], &small)) {
        return lilac_simt_constant(k->b, LILAC_SIMT_I1, 0);
    }
    return is_rare(k, in[0], in[1], constant_of(k, in[1], &y) && y == floor(y));
}

lilac_simt_value lilac_lower_f32_pow(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0];
    uint32_t small;
    if (is_small(k, in[1], &small)) {
        lilac_simt_value square = small < 2 ? x : mul(k, x, x);
        return small == 0   ? f32(k, 1.0)
               : small == 4 ? mul(k, square, square)
               : small == 3 ? mul(k, square, x)
                            : square;
    }
    double y;
    bool odd = constant_of(k, in[1], &y) && y == floor(y) && fmod(y, 2.0) != 0.0;
    lilac_simt_value result = power(k, x, in[1]);
    return odd ? lilac_lower_sign_from(k, x, result) : result;
}

/* A constant integer that is exact in f32, as such a constant. */
static bool is_constant_integer(math_builder *k, const lilac_simt_value *in,
                                lilac_simt_value *floats) {
    uint64_t bits = 0;
    const bool is = lilac_simt_is_constant(k->l->kernel, in[1], &bits);
    const int32_t n = (int32_t)(uint32_t)bits;
    floats[0] = in[0];
    floats[1] = is ? f32(k, n) : 0;
    return is && n >= -MOST_EXACT && n <= MOST_EXACT;
}

/* x^n for an integer n. The fast path is that of a whole constant: n must be exact in f32. */
lilac_simt_value lilac_lower_f32_powi_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value floats[2];
    if (is_constant_integer(k, in, floats)) {
        return lilac_lower_f32_pow_rare(k, floats);
    }
    lilac_simt_value n = in[1], from = with(k, LILAC_SIMT_OP_ADD, n, MOST_EXACT);
    lilac_simt_value large =
        compare(k, LILAC_SIMT_UGT, from, integer(k, LILAC_SIMT_I32, 2 * MOST_EXACT));
    lilac_simt_value y = convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, n);
    return either(k, large, is_rare(k, in[0], y, true));
}

lilac_simt_value lilac_lower_f32_powi(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], n = in[1], floats[2];
    if (is_constant_integer(k, in, floats)) {
        return lilac_lower_f32_pow(k, floats);
    }
    lilac_simt_value result = power(k, x, convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, n));
    lilac_simt_value odd = with(k, LILAC_SIMT_OP_SHL, n, 31);
    lilac_simt_value sign = op2(k, LILAC_SIMT_OP_AND, i32_of(k, x), odd);
    return f32_of(k, op2(k, LILAC_SIMT_OP_XOR, i32_of(k, result), sign));
}

/* Not the exponent of a normal number. */
lilac_simt_value lilac_lower_f32_ldexp_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value field = with(k, LILAC_SIMT_OP_ADD, in[1], 126);
    return compare(k, LILAC_SIMT_UGT, field, integer(k, LILAC_SIMT_I32, 253));
}

lilac_simt_value lilac_lower_f32_ldexp(math_builder *k, const lilac_simt_value *in) {
    return mul(k, in[0], lilac_lower_power_of_exponent(k, LILAC_SIMT_F32, in[1]));
}

lilac_simt_value lilac_lower_f32_ldexp_slow(math_builder *k, const lilac_simt_value *in) {
    return lilac_lower_load_exponent(k, in[0], in[1]);
}

/* ---- remainders ----------------------------------------------------------------------------- */

/* |x / y|, rounded to a whole number, plus TO_WHOLE. */
static lilac_simt_value rounded_quotient(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, magnitude(k, in[1]));
    return fma3(k, magnitude(k, in[0]), inverse, f32(k, TO_WHOLE));
}

lilac_simt_value lilac_lower_f32_fmod_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value large =
        compare(k, LILAC_SIMT_FUGE, rounded_quotient(k, in), f32(k, TO_WHOLE + 0x1p20));
    /* Its inverse would be subnormal. */
    lilac_simt_value divisor = compare(k, LILAC_SIMT_GT, magnitude(k, in[1]), f32(k, 0x1p126));
    return either(k, large, divisor);
}

lilac_simt_value lilac_lower_f32_fmod(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]), b = magnitude(k, in[1]);
    lilac_simt_value q = sub(k, rounded_quotient(k, in), f32(k, TO_WHOLE));
    lilac_simt_value r = fma3(k, minus(k, q), b, a);
    r = choose(k, compare(k, LILAC_SIMT_LT, r, f32(k, 0.0)), add(k, r, b), r);
    return lilac_lower_sign_from(k, in[0], r);
}

/* The quotient to the nearest whole number, halves to even: r is at most a little beyond b / 2, and
 * moves by b where 2|r| is above b or, with an odd quotient, equal to it. */
lilac_simt_value lilac_lower_f32_remainder(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]), b = magnitude(k, in[1]);
    lilac_simt_value t = rounded_quotient(k, in), q = sub(k, t, f32(k, TO_WHOLE));
    lilac_simt_value r = fma3(k, minus(k, q), b, a), twice = magnitude(k, add(k, r, r));
    lilac_simt_value odd = compare(k, LILAC_SIMT_NE, with(k, LILAC_SIMT_OP_AND, i32_of(k, t), 1),
                                   integer(k, LILAC_SIMT_I32, 0));
    lilac_simt_value half = both(k, odd, compare(k, LILAC_SIMT_EQ, twice, b));
    lilac_simt_value moves = either(k, half, compare(k, LILAC_SIMT_GT, twice, b));
    r = choose(k, moves, sub(k, r, lilac_lower_sign_from(k, r, b)), r);
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, i32_of(k, in[0]), INT32_MIN);
    return f32_of(k, op2(k, LILAC_SIMT_OP_XOR, i32_of(k, r), sign));
}
