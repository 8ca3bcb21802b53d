/* Trigonometric functions of f32 and their inverses.
 *
 *   x = q π/2 + r     q = x 2/π, to the nearest whole number; r by three fused multiply-adds with
 *                     the parts of π/2 (Cody and Waite, 1980); the first multiply-add is exact
 *   sin r = r (1 + r² p(r²))     cos r = 1 + r² p(r²)     tan r = r + r³ p(r²)
 *
 * The three parts of π/2 are rounded down and have 72 bits. That is enough up to 105615, where q has
 * 17 bits and r is at least 2^-33; larger arguments take the slow path (trigonometric.c). As all
 * parts are positive, r keeps the sign of a zero.
 *
 *   asin x    |x| ≤ 1/2: x + x³ p(x²)      otherwise π/2 - 2 asin √((1 - |x|) / 2)
 *   atan x    |x| ≤ 1:   x + x³ p(x²)      otherwise π/2 - atan 1 / |x| */
#include "f32.h"

#define LARGEST 105615.0
#define HALF_PI 1.5707963267948966

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
static lilac_simt_value turned(math_builder *k, lilac_simt_value quadrant, int64_t bit,
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
    return turned(k, quadrant, 1, result);
}

lilac_simt_value lilac_lower_f32_cos(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value quadrant, r = reduced(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value result =
        choose(k, is_odd(k, quadrant), sine_of(k, r, square), cosine_of(k, square));
    return turned(k, with(k, LILAC_SIMT_OP_ADD, quadrant, 1), 1, result);
}

/* -1 / tan r in odd quadrants. */
lilac_simt_value lilac_lower_f32_tan(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.5554dap-2, 0x1.112eb6p-3, 0x1.b56b22p-5,
                               0x1.912ab8p-6, 0x1.8d4d3ep-9, 0x1.3545d0p-7};
    lilac_simt_value quadrant, r = reduced(k, in[0], &quadrant), square = mul(k, r, r);
    lilac_simt_value t = fma3(k, mul(k, r, square), SERIES(k, p, square), r);
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, t);
    return turned(k, quadrant, 0, choose(k, is_odd(k, quadrant), inverse, t));
}

/* ---- inverse functions ---------------------------------------------------------------------- */

static lilac_simt_value odd_series(math_builder *k, const double *p, uint32_t count,
                                   lilac_simt_value x, lilac_simt_value square) {
    return fma3(k, mul(k, x, square), series(k, p, count, square), x);
}

lilac_simt_value lilac_lower_f32_asin(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {0x1.5555c8p-3, 0x1.330204p-4, 0x1.747bb8p-5, 0x1.8c3e50p-6,
                               0x1.595c60p-5};
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value far = compare(k, LILAC_SIMT_GT, a, f32(k, 0.5));
    lilac_simt_value rest = fma3(k, a, f32(k, -0.5), f32(k, 0.5));
    lilac_simt_value square = choose(k, far, rest, mul(k, a, a));
    lilac_simt_value root = choose(k, far, flushed(k, LILAC_SIMT_OP_FSQRT, rest), a);
    lilac_simt_value near = odd_series(k, p, 5, root, square);
    lilac_simt_value other = fma3(k, near, f32(k, -2.0), f32(k, HALF_PI));
    return lilac_lower_sign_from(k, x, choose(k, far, other, near));
}

lilac_simt_value lilac_lower_f32_atan(math_builder *k, const lilac_simt_value *in) {
    static const double p[] = {-0x1.5554dcp-2, 0x1.9978ecp-3, -0x1.230a96p-3, 0x1.b4dee0p-4,
                               -0x1.35519ep-4, 0x1.61f17ep-5, -0x1.0c1c96p-6, 0x1.7eb2c4p-9};
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value far = compare(k, LILAC_SIMT_GT, a, f32(k, 1.0));
    lilac_simt_value t = choose(k, far, flushed(k, LILAC_SIMT_OP_FRCP, a), a);
    lilac_simt_value near = odd_series(k, p, 8, t, mul(k, t, t));
    lilac_simt_value other = sub(k, f32(k, HALF_PI), near);
    return lilac_lower_sign_from(k, x, choose(k, far, other, near));
}
