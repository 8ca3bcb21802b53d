/* Trigonometric functions of f32.
 *
 *   x = q π/2 + r     q = x 2/π, to the nearest whole number; r by three fused multiply-adds with
 *                     the parts of π/2 (Cody and Waite, 1980); the first multiply-add is exact
 *   sin r = r (1 + r² p(r²))     cos r = 1 + r² p(r²)     tan r = r + r³ p(r²)
 *
 * The three parts of π/2 are rounded down and have 72 bits. That is enough up to 105615, where q has
 * 17 bits and r is at least 2^-33; larger arguments take the slow path (trigonometric.c). As all
 * parts are positive, r keeps the sign of a zero.
 *
 *   sin πx, cos πx   q = 2x to the nearest whole number; r = x - q/2 is exact up to 2^20
 *                    sin πr = r π + r (r² p(r²)), π in two parts     cos πr = 1 + r² p(r²) */
#include "f32.h"

#define LARGEST 105615.0

lilac_simt_value lilac_lower_f32_sincos_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_GT, magnitude(k, in[0]), f32(k, LARGEST));
}

/* r, and bits that end with those of q. */
static lilac_simt_value reduced(math_builder *k, lilac_simt_value x, lilac_simt_value *quadrant) {
    lilac_simt_value t = fma3(k, x, f32(k, 0x1.45f306p-1), f32(k, TO_WHOLE));
    lilac_simt_value q = sub(k, t, f32(k, TO_WHOLE));
    lilac_simt_value r = fma3(k, q, f32(k, -0x1.921fb4p+0), x);
    r = fma3(k, q, f32(k, -0x1.4442d0p-24), r);
    *quadrant = i32_of(k, t);
    return fma3(k, q, f32(k, -0x1.846988p-48), r);
}

static lilac_simt_value is_odd(math_builder *k, lilac_simt_value quadrant) {
    return compare(k, LILAC_SIMT_NE, with(k, LILAC_SIMT_OP_AND, quadrant, 1),
                   integer(k, LILAC_SIMT_I32, 0));
}

/* The sign of `result` changes if bit `bit` of the quadrant is set. */
static lilac_simt_value with_sign_of(math_builder *k, lilac_simt_value quadrant, int64_t bit,
                                     lilac_simt_value result) {
    lilac_simt_value sign =
        with(k, LILAC_SIMT_OP_AND, with(k, LILAC_SIMT_OP_SHL, quadrant, 31 - bit), INT32_MIN);
    return f32_of(k, op2(k, LILAC_SIMT_OP_XOR, i32_of(k, result), sign));
}

static lilac_simt_value sine_of(math_builder *k, lilac_simt_value r, lilac_simt_value square) {
    static const double p[] = {1.0, -0x1.555544p-3, 0x1.1106c6p-7, -0x1.991c24p-13};
    return mul(k, r, SERIES(k, p, square));
}

static lilac_simt_value cosine_of(math_builder *k, lilac_simt_value square) {
    static const double p[] = {1.0, -0.5, 0x1.55554ap-5, -0x1.6c0c26p-10, 0x1.99e70ap-16};
    return SERIES(k, p, square);
}

lilac_simt_value lilac_lower_f32_sin(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value quadrant, r = reduced(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value result =
        choose(k, is_odd(k, quadrant), cosine_of(k, square), sine_of(k, r, square));
    return with_sign_of(k, quadrant, 1, result);
}

lilac_simt_value lilac_lower_f32_cos(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value quadrant, r = reduced(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value result =
        choose(k, is_odd(k, quadrant), sine_of(k, r, square), cosine_of(k, square));
    return with_sign_of(k, with(k, LILAC_SIMT_OP_ADD, quadrant, 1), 1, result);
}

/* -1 / tan r in odd quadrants. */
lilac_simt_value lilac_lower_f32_tan(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.5554dap-2, 0x1.112eb6p-3, 0x1.b56b22p-5,
                               0x1.912ab8p-6, 0x1.8d4d3ep-9, 0x1.3545d0p-7};
    lilac_simt_value quadrant, r = reduced(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value t = fma3(k, mul(k, r, square), SERIES(k, p, square), r);
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, t);
    return with_sign_of(k, quadrant, 0, choose(k, is_odd(k, quadrant), inverse, t));
}

/* ---- of π times the argument ---------------------------------------------------------------- */

lilac_simt_value lilac_lower_f32_sincospi_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_FUGE, magnitude(k, in[0]), f32(k, 0x1p20));
}

static lilac_simt_value reduced_half(math_builder *k, lilac_simt_value x,
                                     lilac_simt_value *quadrant) {
    lilac_simt_value t = fma3(k, x, f32(k, 2.0), f32(k, TO_WHOLE));
    *quadrant = i32_of(k, t);
    return fma3(k, sub(k, t, f32(k, TO_WHOLE)), f32(k, -0.5), x);
}

static lilac_simt_value sine_of_pi(math_builder *k, lilac_simt_value r, lilac_simt_value square) {
    static const double p[] = {0x1.4442d2p-23, -0x1.4abbcep+2, 0x1.466b78p+1, -0x1.32adbap-1,
                               0x1.4442c4p-4};
    return fma3(k, r, f32(k, 0x1.921fb4p+1), mul(k, r, SERIES(k, p, square)));
}

static lilac_simt_value cosine_of_pi(math_builder *k, lilac_simt_value square) {
    static const double p[] = {1.0, -0x1.3bd3ccp+2, 0x1.03c1b0p+2, -0x1.55b2b4p+0, 0x1.d4f632p-3};
    return SERIES(k, p, square);
}

/* Zeros have the sign of x. */
lilac_simt_value lilac_lower_f32_sinpi(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value quadrant, r = reduced_half(k, magnitude(k, in[0]), &quadrant);
    lilac_simt_value square = mul(k, r, r);
    lilac_simt_value result =
        choose(k, is_odd(k, quadrant), cosine_of_pi(k, square), sine_of_pi(k, r, square));
    result = add(k, with_sign_of(k, quadrant, 1, result), f32(k, 0.0));
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, i32_of(k, in[0]), INT32_MIN);
    return f32_of(k, op2(k, LILAC_SIMT_OP_XOR, i32_of(k, result), sign));
}

/* Zeros are positive. */
lilac_simt_value lilac_lower_f32_cospi(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value quadrant, r = reduced_half(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value result =
        choose(k, is_odd(k, quadrant), sine_of_pi(k, r, square), cosine_of_pi(k, square));
    result = with_sign_of(k, with(k, LILAC_SIMT_OP_ADD, quadrant, 1), 1, result);
    return add(k, result, f32(k, 0.0));
}
