/* The error function of f32, its relatives and their inverses.
 *
 *   erf x       |x| < 1: x + x p(x²)      otherwise 1 - 2^q(|x|), |x| ≤ 4      2 ulp
 *               q was fitted to the least error of erfc.
 *   erfc x      a = |x|: e^(-a²) erfcx a, for x < 0 2 - it
 *   normcdf x   erfc(-x / √2) / 2; x² / 2 is not computed from the rounded x / √2
 *   erfcx a     a ≥ 0: q(t) / (1 + 2a), t = (a - 4) / (a + 4) (error_function.c); t and the quotient
 *               are corrected by their remainders
 *   erfinv x    x p(log2(1 - x²)) where the logarithm is above -8.2
 *   erfcinv c   (1 - c) p(log2(c (2 - c))), the same; the others s q(1 / s), s = √-log2 c
 *   normcdfinv  -√2 erfcinv 2x
 *
 * The slow paths are in doubles for results below the least normal number and for the negative
 * arguments of erfcx, and the polynomials of the tails for the inverses. */
#include "f32.h"

lilac_simt_value lilac_lower_f32_erf(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0.12837916612625122,    -0.37612637877464294,  0.11283782869577408,
                               -0.02686544507741928,   0.005221074912697077,  -0.00084847112884745,
                               0.00011270543473074213, -9.680133189249318e-06};
    static const double q[] = {
        0.00029483184334822,   -1.6297565698623657,     -0.9132830500602722,
        -0.15673299133777618,  0.036606334149837494,    -0.0061781881377100945,
        0.0006691094022244215, -3.6522334994515404e-05, 3.626436750892026e-07};
    lilac_simt_value x = in[0];
    lilac_simt_value limit[2] = {magnitude(k, x), f32(k, 4.0)};
    lilac_simt_value a = lilac_lower_flagged(k->l, LILAC_SIMT_OP_FMIN, LILAC_SIMT_F32,
                                             LILAC_SIMT_PROPAGATE_NAN, 2, limit);
    lilac_simt_value square = mul(k, a, a);
    lilac_simt_value near = fma3(k, a, SERIES(k, p, square), a);
    lilac_simt_value tail = flushed(k, LILAC_SIMT_OP_FEXP2, SERIES(k, q, a));
    lilac_simt_value far = sub(k, f32(k, 1.0), tail);
    lilac_simt_value is_near = compare(k, LILAC_SIMT_LT, a, f32(k, 1.0));
    return lilac_lower_sign_from(k, x, choose(k, is_near, near, far));
}

/* ---- erfc, erfcx, normcdf ------------------------------------------------------------------- */

/* e^(a²) erfc a for a ≥ 0; `count` terms of a polynomial of t. */
static lilac_simt_value scaled_complement(math_builder *k, lilac_simt_value a, const double *p,
                                          uint32_t count) {
    lilac_simt_value four = add(k, a, f32(k, 4.0)), one = fma3(k, a, f32(k, 2.0), f32(k, 1.0));
    lilac_simt_value both_inverse = flushed(k, LILAC_SIMT_OP_FRCP, mul(k, four, one));
    lilac_simt_value inverse = mul(k, one, both_inverse);
    lilac_simt_value t = mul(k, add(k, a, f32(k, -4.0)), inverse);
    lilac_simt_value rest = fma3(k, add(k, t, f32(k, 1.0)), f32(k, -4.0), a);
    t = fma3(k, fma3(k, minus(k, a), t, rest), inverse, t);
    lilac_simt_value q = series(k, p, count, t);
    lilac_simt_value by_one = mul(k, four, both_inverse), y = mul(k, q, by_one);
    rest = sub(k, fma3(k, a, mul(k, y, f32(k, -2.0)), q), y);
    return fma3(k, rest, by_one, y);
}

/* For t up to 0.45. */
static const double near_complement[] = {
    0x1.3ba592p+0,  -0x1.1df1aep-3, 0x1.f7d9a8p-7,  0x1.16e95cp-4, -0x1.9d9aa0p-4, 0x1.805714p-4,
    -0x1.111d3ep-4, 0x1.29af8cp-5,  -0x1.04c65ep-6, 0x1.ceb74ap-8, 0x1.dab5f6p-11};
static const double whole_complement[] = {
    0x1.3ba592p+0,   -0x1.1df1aep-3,  0x1.f7e31ep-7, 0x1.16ed1cp-4,  -0x1.9dc1eep-4,
    0x1.7fee24p-4,   -0x1.1012c6p-4,  0x1.306988p-5, -0x1.06beb0p-6, 0x1.4ba8aep-8,
    -0x1.ca7138p-11, -0x1.f707fep-13, 0x1.5ed0a6p-13};

/* e^-(high + low) */
static lilac_simt_value small_power(math_builder *k, lilac_simt_value high, lilac_simt_value low) {
    lilac_simt_value down = minus(k, high);
    lilac_simt_value h = rounded_down(k, LILAC_SIMT_OP_FMUL, down, f32(k, LOG2_E_HIGH));
    lilac_simt_value p = fma3(k, h, f32(k, -LN_2_HIGH), down);
    p = sub(k, fma3(k, h, f32(k, -LN_2_LOW), p), low);
    lilac_simt_value power = flushed(k, LILAC_SIMT_OP_FEXP2, h);
    return fma3(k, power, p, power);
}

static lilac_simt_value held(math_builder *k, lilac_simt_value a, double bound) {
    lilac_simt_value both_numbers[2] = {a, f32(k, bound)};
    return lilac_lower_flagged(k->l, LILAC_SIMT_OP_FMIN, LILAC_SIMT_F32, LILAC_SIMT_PROPAGATE_NAN,
                               2, both_numbers);
}

lilac_simt_value lilac_lower_f32_erfc_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_GT, in[0], f32(k, 9.19));
}

lilac_simt_value lilac_lower_f32_erfc(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = held(k, magnitude(k, in[0]), 10.5), square = mul(k, a, a);
    lilac_simt_value power = small_power(k, square, fma3(k, a, a, minus(k, square)));
    lilac_simt_value result = mul(k, power, scaled_complement(k, a, near_complement, 11));
    lilac_simt_value negative = compare(k, LILAC_SIMT_LT, in[0], f32(k, 0.0));
    return choose(k, negative, sub(k, f32(k, 2.0), result), result);
}

lilac_simt_value lilac_lower_f32_normcdf_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_LT, in[0], f32(k, -12.9));
}

lilac_simt_value lilac_lower_f32_normcdf(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = held(k, magnitude(k, in[0]), 14.8), half = mul(k, a, f32(k, 0.5));
    lilac_simt_value square = mul(k, a, half);
    lilac_simt_value power = small_power(k, square, fma3(k, a, half, minus(k, square)));
    lilac_simt_value scaled = mul(k, a, f32(k, 0.70710678118654752));
    lilac_simt_value result = mul(k, power, scaled_complement(k, scaled, near_complement, 11));
    result = mul(k, result, f32(k, 0.5));
    lilac_simt_value positive = compare(k, LILAC_SIMT_GT, in[0], f32(k, 0.0));
    return choose(k, positive, sub(k, f32(k, 1.0), result), result);
}

/* Negative, or above 2^60. */
lilac_simt_value lilac_lower_f32_erfcx_rare(math_builder *k, const lilac_simt_value *in) {
    return outside(k, in[0], 0, 0x5D800000);
}

lilac_simt_value lilac_lower_f32_erfcx(math_builder *k, const lilac_simt_value *in) {
    return scaled_complement(k, in[0], whole_complement, 13);
}

/* ---- inverses ------------------------------------------------------------------------------- */

#define TAIL -8.2

/* log2 of 1 - x²; c (2 - c); 4p (1 - p) */
static lilac_simt_value log_of(math_builder *k, lilac_simt_value a, lilac_simt_value b,
                               lilac_simt_value c) {
    return flushed(k, LILAC_SIMT_OP_FLOG2, fma3(k, minus(k, a), b, c));
}
static lilac_simt_value erfinv_log(math_builder *k, lilac_simt_value x) {
    return log_of(k, x, x, f32(k, 1.0));
}
static lilac_simt_value erfcinv_log(math_builder *k, lilac_simt_value x) {
    return flushed(k, LILAC_SIMT_OP_FLOG2, mul(k, x, sub(k, f32(k, 2.0), x)));
}
static lilac_simt_value normcdfinv_log(math_builder *k, lilac_simt_value x) {
    lilac_simt_value four = mul(k, x, f32(k, 4.0));
    return log_of(k, four, x, four);
}
static lilac_simt_value in_tail(math_builder *k, lilac_simt_value log) {
    return compare(k, LILAC_SIMT_FULE, log, f32(k, TAIL));
}

static lilac_simt_value central(math_builder *k, lilac_simt_value log) {
    static const double p[] = {0x1.c5bf88p-1,   -0x1.495c34p-3,  0x1.6b767cp-8,  0x1.959636p-11,
                               -0x1.0de808p-15, -0x1.149bc2p-17, 0x1.7f56bap-23, 0x1.f16b8ep-24,
                               0x1.392ae6p-27,  0x1.0b5052p-32};
    return SERIES(k, p, log);
}

/* erfcinv c for c below 2^-6.7 */
static lilac_simt_value tail(math_builder *k, lilac_simt_value c) {
    static const double p[] = {0x1.aa6898p-1,  -0x1.c6d0fep-6, -0x1.e444e2p+0, 0x1.ce6404p+2,
                               -0x1.bde32ap+4, 0x1.6f5dbcp+6,  -0x1.b7c320p+7, 0x1.5d7aacp+8,
                               -0x1.47f876p+8, 0x1.123af0p+7};
    lilac_simt_value s = flushed(k, LILAC_SIMT_OP_FSQRT, minus(k, op1(k, LILAC_SIMT_OP_FLOG2, c)));
    return mul(k, s, SERIES(k, p, flushed(k, LILAC_SIMT_OP_FRCP, s)));
}

lilac_simt_value lilac_lower_f32_erfinv_rare(math_builder *k, const lilac_simt_value *in) {
    return in_tail(k, erfinv_log(k, in[0]));
}
lilac_simt_value lilac_lower_f32_erfinv(math_builder *k, const lilac_simt_value *in) {
    return mul(k, in[0], central(k, erfinv_log(k, in[0])));
}
lilac_simt_value lilac_lower_f32_erfinv_slow(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value far = tail(k, sub(k, f32(k, 1.0), magnitude(k, in[0])));
    return lilac_lower_sign_from(k, in[0], far);
}

lilac_simt_value lilac_lower_f32_erfcinv_rare(math_builder *k, const lilac_simt_value *in) {
    return in_tail(k, erfcinv_log(k, in[0]));
}
lilac_simt_value lilac_lower_f32_erfcinv(math_builder *k, const lilac_simt_value *in) {
    return mul(k, sub(k, f32(k, 1.0), in[0]), central(k, erfcinv_log(k, in[0])));
}
lilac_simt_value lilac_lower_f32_erfcinv_slow(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value upper = compare(k, LILAC_SIMT_GT, in[0], f32(k, 1.0));
    lilac_simt_value far = tail(k, choose(k, upper, sub(k, f32(k, 2.0), in[0]), in[0]));
    return choose(k, upper, minus(k, far), far);
}

lilac_simt_value lilac_lower_f32_normcdfinv_rare(math_builder *k, const lilac_simt_value *in) {
    return in_tail(k, normcdfinv_log(k, in[0]));
}
lilac_simt_value lilac_lower_f32_normcdfinv(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value from_half = mul(k, sub(k, in[0], f32(k, 0.5)), f32(k, 2.8284271247461901));
    return mul(k, from_half, central(k, normcdfinv_log(k, in[0])));
}
lilac_simt_value lilac_lower_f32_normcdfinv_slow(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value upper = compare(k, LILAC_SIMT_GT, in[0], f32(k, 0.5));
    lilac_simt_value c = choose(k, upper, sub(k, f32(k, 1.0), in[0]), in[0]);
    lilac_simt_value far = mul(k, tail(k, add(k, c, c)), f32(k, 1.4142135623730951));
    return choose(k, upper, far, minus(k, far));
}
