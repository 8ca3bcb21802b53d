/* Exponentials and hyperbolic functions of f32.
 *
 *   e^x       h = x log2 e, rounded down     p = x - h ln 2     2^h + 2^h p
 *             h is one float, so 2^h is ex2.approx of an exact argument, and |p| < 2^-15 where the
 *             result is a number. h is rounded down so that p is positive where 2^h is infinite.
 *             For infinite x, p is NaN, and the minimum of NaN and 1 is 1.
 *   10^x      the same with log2 10
 *   e^x - 1   x = n ln 2 + r     2^n (e^r - 1) + (2^n - 1)
 *   tanh x    |x| < 0.55: x + x³ p(x²)       otherwise 1 - 2 / (e^2|x| + 1)
 *   sinh x    |x| < 1:    x + x³ p(x²)       otherwise e^|x| / 2 - 1 / 2e^|x|
 *   cosh x    e^|x| / 2 + 1 / 2e^|x|
 *
 * The errors are those of ex2.approx and rcp.approx and at most one ulp of roundings. */
#include "f32.h"

#define LOG2_10      0x1.a934f0p+1
#define LOG10_2_HIGH 0x1.344136p-2
#define LOG10_2_LOW  -0x1.ec10c0p-27
#define LN_10        2.302585092994046
/* ln 2 rounded down and the rest: 0 times either, negative, is -0, which keeps the sign of a zero. */
#define LN_2_FLOOR 0x1.62e42ep-1
#define LN_2_REST  0x1.efa39ep-25

lilac_simt_value lilac_lower_f32_exp2(math_builder *k, const lilac_simt_value *in) {
    return by_instruction(k, LILAC_SIMT_OP_FEXP2, in[0]);
}

/* h, and p = x - h `high` - h `low`. */
static lilac_simt_value split(math_builder *k, lilac_simt_value x, double factor, double high,
                              double low, lilac_simt_value *p) {
    lilac_simt_value h = rounded_down(k, LILAC_SIMT_OP_FMUL, x, f32(k, factor));
    lilac_simt_value down = minus(k, h);
    *p = fma3(k, down, f32(k, low), fma3(k, down, f32(k, high), x));
    return h;
}

lilac_simt_value lilac_lower_f32_exp(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value p, h = split(k, in[0], LOG2_E_HIGH, LN_2_HIGH, LN_2_LOW, &p);
    p = op2(k, LILAC_SIMT_OP_FMIN, p, f32(k, 1.0));
    lilac_simt_value power = op1(k, LILAC_SIMT_OP_FEXP2, h); /* may be subnormal */
    return fma3(k, power, p, power);
}

static lilac_simt_value magnitude_above(math_builder *k, lilac_simt_value x, double bound) {
    return compare(k, LILAC_SIMT_GT, magnitude(k, x), f32(k, bound));
}

lilac_simt_value lilac_lower_f32_exp10_rare(math_builder *k, const lilac_simt_value *in) {
    return magnitude_above(k, in[0], 37.9);
}

lilac_simt_value lilac_lower_f32_exp10(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value p, h = split(k, in[0], LOG2_10, LOG10_2_HIGH, LOG10_2_LOW, &p);
    lilac_simt_value power = flushed(k, LILAC_SIMT_OP_FEXP2, h);
    return fma3(k, power, mul(k, p, f32(k, LN_10)), power);
}

/* ---- e^x - 1 -------------------------------------------------------------------------------- */

lilac_simt_value lilac_lower_f32_expm1_rare(math_builder *k, const lilac_simt_value *in) {
    return magnitude_above(k, in[0], 87.0);
}

/* (e^r - 1 - r) / r², |r| ≤ ln 2 / 2: 2^-26 of e^r - 1. 2^n - 1 is rounded down: where n is 0 it is
 * -0, and the result for -0 is -0. */
lilac_simt_value lilac_lower_f32_expm1(math_builder *k, const lilac_simt_value *in) {
    static const double tail[] = {0x1.fffffep-2, 0x1.5554b4p-3, 0x1.5556f6p-5, 0x1.122538p-7,
                                  0x1.6b97a0p-10};
    lilac_simt_value x = in[0];
    lilac_simt_value t = fma3(k, x, f32(k, LOG2_E_HIGH), f32(k, TO_WHOLE));
    lilac_simt_value n = sub(k, t, f32(k, TO_WHOLE));
    lilac_simt_value r = fma3(k, n, f32(k, -LN_2_FLOOR), x);
    r = fma3(k, n, f32(k, -LN_2_REST), r);
    lilac_simt_value s = mul(k, r, fma3(k, r, SERIES(k, tail, r), f32(k, 1.0)));
    lilac_simt_value bits = with(k, LILAC_SIMT_OP_SHL, i32_of(k, t), 23);
    lilac_simt_value power = f32_of(k, with(k, LILAC_SIMT_OP_ADD, bits, 0x3F800000));
    return fma3(k, s, power, rounded_down(k, LILAC_SIMT_OP_FADD, power, f32(k, -1.0)));
}

/* ---- hyperbolic functions ------------------------------------------------------------------- */

/* x + x³ p(x²) */
static lilac_simt_value odd_series(math_builder *k, const double *p, uint32_t count,
                                   lilac_simt_value x) {
    lilac_simt_value square = mul(k, x, x);
    return fma3(k, mul(k, x, square), series(k, p, count, square), x);
}

/* An odd function from its values for a = |x|. */
static lilac_simt_value near_or_far(math_builder *k, lilac_simt_value x, double bound,
                                    lilac_simt_value near, lilac_simt_value far) {
    lilac_simt_value is_near = compare(k, LILAC_SIMT_LT, magnitude(k, x), f32(k, bound));
    return lilac_lower_sign_from(k, x, choose(k, is_near, near, far));
}

lilac_simt_value lilac_lower_f32_tanh(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {-0x1.55554ap-2, 0x1.110cf0p-3, -0x1.b91f20p-5, 0x1.58ec78p-6,
                               -0x1.99565ep-8};
    lilac_simt_value x = in[0];
    lilac_simt_value twice = mul(k, magnitude(k, x), f32(k, 2 * LOG2_E));
    lilac_simt_value sum = add(k, flushed(k, LILAC_SIMT_OP_FEXP2, twice), f32(k, 1.0));
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, sum);
    lilac_simt_value far = fma3(k, inverse, f32(k, -2.0), f32(k, 1.0));
    return near_or_far(k, x, 0.55, odd_series(k, p, 5, magnitude(k, x)), far);
}

lilac_simt_value lilac_lower_f32_sinh_rare(math_builder *k, const lilac_simt_value *in) {
    return magnitude_above(k, in[0], 87.0);
}

/* e^|x| / 2, and 1 / (2 e^|x|) with the sign of `half`. */
static lilac_simt_value halves(math_builder *k, lilac_simt_value x, double half,
                               lilac_simt_value *other) {
    lilac_simt_value p;
    lilac_simt_value h = split(k, magnitude(k, x), LOG2_E_HIGH, LN_2_HIGH, LN_2_LOW, &p);
    lilac_simt_value power = flushed(k, LILAC_SIMT_OP_FEXP2, h);
    power = fma3(k, power, p, power);
    *other = mul(k, flushed(k, LILAC_SIMT_OP_FRCP, power), f32(k, half));
    return power;
}

lilac_simt_value lilac_lower_f32_cosh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value other, power = halves(k, in[0], 0.5, &other);
    return fma3(k, power, f32(k, 0.5), other);
}

lilac_simt_value lilac_lower_f32_sinh(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.555598p-3, 0x1.10f768p-7, 0x1.ab3fd0p-13};
    lilac_simt_value other, power = halves(k, in[0], -0.5, &other);
    lilac_simt_value far = fma3(k, power, f32(k, 0.5), other);
    return near_or_far(k, in[0], 1.0, odd_series(k, p, 3, magnitude(k, in[0])), far);
}
