/* Roots and lengths of f32.
 *
 *   √x, 1 / √x    the machine's, within 1 and 2 ulp; subnormal arguments count as 0 unless
 *                 the options keep them
 *   1 / √x        rounded to nearest: y (1 + e / 2 + 3 e² / 8) with the machine's y and e = 1 - x y². Right for each x
 *                 and each y within 2^-22.9, the manual's bound (tests/lower/rounded_roots.c)
 *   1 / ∛x        r = 2^(-log2 |x| / 3), then r + r (1 - |x| r³) / 3, one of Newton's steps
 *   ∛x            y = |x| r², then y + (|x| - y³) r² / 3
 *   hypot …       the machine's root of the sum of squares
 *
 * The machine's logarithm and power leave an error of 2^-17 at most, which the step squares. The
 * slow paths are for subnormal numbers, infinities and NaN, and for sums of squares that are not
 * between 2^-100 and 2^127; there products of squares are lost. */
#include "f32.h"

lilac_simt_value lilac_lower_f32_sqrt(math_builder *k, const lilac_simt_value *in) {
    return by_instruction(k, LILAC_SIMT_OP_FSQRT, in[0]);
}

lilac_simt_value lilac_lower_f32_rsqrt(math_builder *k, const lilac_simt_value *in) {
    return by_instruction(k, LILAC_SIMT_OP_FRSQRT, in[0]);
}

/* Subnormal arguments are scaled. 0 and ∞ have y, and e is NaN. */
lilac_simt_value lilac_lower_f32_rsqrt_rounded(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value tiny = compare(k, LILAC_SIMT_LT, in[0], f32(k, 0x1p-126));
    lilac_simt_value x = choose(k, tiny, mul(k, in[0], f32(k, 0x1p24)), in[0]);
    lilac_simt_value y = flushed(k, LILAC_SIMT_OP_FRSQRT, x);
    lilac_simt_value root = mul(k, x, y), rest = fma3(k, x, y, minus(k, root));
    lilac_simt_value e = fma3(k, minus(k, root), y, f32(k, 1.0));
    e = fma3(k, minus(k, rest), y, e);
    lilac_simt_value part = fma3(k, mul(k, e, f32(k, 0.375)), e, mul(k, e, f32(k, 0.5)));
    lilac_simt_value result = fma3(k, y, part, y);
    result = choose(k, compare(k, LILAC_SIMT_EQ, result, result), result, y);
    return choose(k, tiny, mul(k, result, f32(k, 0x1p12)), result);
}

/* ---- cube roots ----------------------------------------------------------------------------- */

static lilac_simt_value log_of(math_builder *k, lilac_simt_value x) {
    return flushed(k, LILAC_SIMT_OP_FLOG2, magnitude(k, x));
}

/* Infinite, zero or subnormal. */
lilac_simt_value lilac_lower_f32_rcbrt_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value log = magnitude(k, log_of(k, in[0]));
    return compare(k, LILAC_SIMT_EQ, log, f32(k, INFINITE));
}

/* Zeros are common. */
lilac_simt_value lilac_lower_f32_cbrt_rare(math_builder *k, const lilac_simt_value *in) {
    return both(k, lilac_lower_f32_rcbrt_rare(k, in),
                compare(k, LILAC_SIMT_NE, in[0], f32(k, 0.0)));
}

/* For a zero r is held at 2^50, and the order of signs in the step keeps its sign. */
lilac_simt_value lilac_lower_f32_cbrt(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], log = mul(k, log_of(k, x), f32(k, -1.0 / 3.0));
    lilac_simt_value r =
        flushed(k, LILAC_SIMT_OP_FEXP2, op2(k, LILAC_SIMT_OP_FMIN, log, f32(k, 50.0)));
    lilac_simt_value square = mul(k, r, r), y = mul(k, x, square);
    lilac_simt_value excess = fma3(k, mul(k, y, y), y, minus(k, x));
    return fma3(k, mul(k, excess, f32(k, -1.0 / 3.0)), square, y);
}

lilac_simt_value lilac_lower_f32_rcbrt(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value log = mul(k, log_of(k, in[0]), f32(k, -1.0 / 3.0));
    lilac_simt_value r = flushed(k, LILAC_SIMT_OP_FEXP2, log);
    lilac_simt_value rest = fma3(k, minus(k, mul(k, a, r)), mul(k, r, r), f32(k, 1.0));
    r = fma3(k, mul(k, rest, f32(k, 1.0 / 3.0)), r, r);
    return lilac_lower_sign_from(k, in[0], r);
}

/* ---- lengths -------------------------------------------------------------------------------- */

static lilac_simt_value sum_of_squares(math_builder *k, uint32_t count,
                                       const lilac_simt_value *in) {
    lilac_simt_value sum = mul(k, in[0], in[0]);
    for (uint32_t i = 1; i < count; i++) {
        sum = fma3(k, in[i], in[i], sum);
    }
    return sum;
}

#define LENGTH(count, plain, inverse)                                                              \
    lilac_simt_value lilac_lower_f32_length##count##_rare(math_builder *k,                         \
                                                          const lilac_simt_value *in) {            \
        return outside(k, sum_of_squares(k, count, in), 0x0D800000, 0x7F000000);                   \
    }                                                                                              \
    lilac_simt_value lilac_lower_f32_##plain(math_builder *k, const lilac_simt_value *in) {        \
        return flushed(k, LILAC_SIMT_OP_FSQRT, sum_of_squares(k, count, in));                      \
    }                                                                                              \
    lilac_simt_value lilac_lower_f32_##inverse(math_builder *k, const lilac_simt_value *in) {      \
        return flushed(k, LILAC_SIMT_OP_FRSQRT, sum_of_squares(k, count, in));                     \
    }
LENGTH(2, hypot, rhypot)
LENGTH(3, norm3d, rnorm3d)
LENGTH(4, norm4d, rnorm4d)
