/* Inverse trigonometric and hyperbolic functions of f32.
 *
 *   asin x     |x| ≤ 1/2: x + x³ p(x²)      otherwise π/2 - 2 asin √((1 - |x|) / 2)
 *   acos x     |x| ≤ 1/2: π/2 - asin |x|    otherwise 2 asin √((1 - |x|) / 2)
 *              x < 0:     π - acos |x|
 *   atan x     |x| ≤ 1:   x + x³ p(x²)      otherwise π/2 - atan 1 / |x|
 *   atan2 y x  atan of the smaller magnitude over the larger, then π/2 - and π - it
 *   asinh x    log1p(a + a² / (1 + √(1 + a²))), a = |x|
 *   acosh x    log1p(t + √(t² + 2t)), t = x - 1
 *   atanh x    log1p(2a / (1 - a)) / 2
 *
 * Quotients whose errors count are corrected by their remainder, which is exact. The slow paths are
 * for magnitudes above 2^60 or outside of the domain, and for atan2 where the larger magnitude is
 * not between 2^-100 and 2^126. */
#include "f32.h"

#define HALF_PI    1.5707963267948966
#define PI         3.1415926535897932
#define LARGE      0x1p60
#define LARGE_BITS 0x5D800000

/* ---- inverse trigonometric functions -------------------------------------------------------- */

static lilac_simt_value odd_series(math_builder *k, const double *p, uint32_t count,
                                   lilac_simt_value x, lilac_simt_value square) {
    return fma3(k, mul(k, x, square), series(k, p, count, square), x);
}

/* (asin r - r) / r³ of r², r ≤ 1/√2 */
static const double arcsine_tail[] = {0x1.5555c8p-3, 0x1.330204p-4, 0x1.747bb8p-5, 0x1.8c3e50p-6,
                                      0x1.595c60p-5};

/* Above 1/2, π/2 - 2r is exact; the low part of π/2 is added to what is subtracted from it. */
lilac_simt_value lilac_lower_f32_asin(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value far = compare(k, LILAC_SIMT_GT, a, f32(k, 0.5));
    lilac_simt_value half = fma3(k, a, f32(k, -0.5), f32(k, 0.5));
    lilac_simt_value root = choose(k, far, flushed(k, LILAC_SIMT_OP_FSQRT, half), a);
    lilac_simt_value square = mul(k, root, root), cube = mul(k, root, square);
    lilac_simt_value factor = series(k, arcsine_tail, 5, square);
    lilac_simt_value near = fma3(k, cube, factor, root);
    lilac_simt_value rest = fma3(k, cube, factor, f32(k, 0x1.777a5cp-26));
    lilac_simt_value other =
        fma3(k, rest, f32(k, -2.0), fma3(k, root, f32(k, -2.0), f32(k, HALF_PI)));
    return lilac_lower_sign_from(k, x, choose(k, far, other, near));
}

lilac_simt_value lilac_lower_f32_acos(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value far = compare(k, LILAC_SIMT_GT, a, f32(k, 0.5));
    lilac_simt_value half = fma3(k, a, f32(k, -0.5), f32(k, 0.5));
    lilac_simt_value root = choose(k, far, flushed(k, LILAC_SIMT_OP_FSQRT, half), a);
    lilac_simt_value near = odd_series(k, arcsine_tail, 5, root, mul(k, root, root));
    near = choose(k, far, add(k, near, near), sub(k, f32(k, HALF_PI), near));
    lilac_simt_value negative = compare(k, LILAC_SIMT_LT, x, f32(k, 0.0));
    return choose(k, negative, sub(k, f32(k, PI), near), near);
}

/* atan t for 0 ≤ t ≤ 1 */
static lilac_simt_value arctangent(math_builder *k, lilac_simt_value t) {
    static const double p[] = {-0x1.5554dcp-2, 0x1.9978ecp-3, -0x1.230a96p-3, 0x1.b4dee0p-4,
                               -0x1.35519ep-4, 0x1.61f17ep-5, -0x1.0c1c96p-6, 0x1.7eb2c4p-9};
    return odd_series(k, p, 8, t, mul(k, t, t));
}

lilac_simt_value lilac_lower_f32_atan(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value far = compare(k, LILAC_SIMT_GT, a, f32(k, 1.0));
    lilac_simt_value t = choose(k, far, flushed(k, LILAC_SIMT_OP_FRCP, a), a);
    lilac_simt_value near = arctangent(k, t);
    lilac_simt_value other = sub(k, f32(k, HALF_PI), near);
    return lilac_lower_sign_from(k, x, choose(k, far, other, near));
}

static lilac_simt_value larger(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value sides[2] = {magnitude(k, in[0]), magnitude(k, in[1])};
    return lilac_lower_flagged(k->l, LILAC_SIMT_OP_FMAX, LILAC_SIMT_F32, LILAC_SIMT_PROPAGATE_NAN,
                               2, sides);
}

lilac_simt_value lilac_lower_f32_atan2_rare(math_builder *k, const lilac_simt_value *in) {
    return outside(k, larger(k, in), 0x0D800000, 0x7E800000);
}

lilac_simt_value lilac_lower_f32_atan2(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]), b = magnitude(k, in[1]), down = larger(k, in);
    lilac_simt_value up = op2(k, LILAC_SIMT_OP_FMIN, a, b);
    lilac_simt_value t = corrected_quotient(k, up, down);
    lilac_simt_value angle = arctangent(k, t);
    lilac_simt_value steep = compare(k, LILAC_SIMT_GT, a, b);
    angle = choose(k, steep, sub(k, f32(k, HALF_PI), angle), angle);
    lilac_simt_value left =
        compare(k, LILAC_SIMT_LT, i32_of(k, in[1]), integer(k, LILAC_SIMT_I32, 0));
    angle = choose(k, left, sub(k, f32(k, PI), angle), angle);
    return lilac_lower_sign_from(k, in[0], angle);
}

/* ---- inverse hyperbolic functions ----------------------------------------------------------- */

lilac_simt_value lilac_lower_f32_asinh_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_FUGE, magnitude(k, in[0]), f32(k, LARGE));
}

lilac_simt_value lilac_lower_f32_asinh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]), square = mul(k, a, a);
    lilac_simt_value root = flushed(k, LILAC_SIMT_OP_FSQRT, fma3(k, a, a, f32(k, 1.0)));
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, add(k, root, f32(k, 1.0)));
    lilac_simt_value w = fma3(k, square, inverse, a);
    return lilac_lower_sign_from(k, in[0], lilac_lower_f32_log1p(k, &w));
}

/* Below 1, where the difference is negative, NaN too. */
lilac_simt_value lilac_lower_f32_acosh_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value t = add(k, in[0], f32(k, -1.0));
    return outside(k, t, 0, LARGE_BITS);
}

lilac_simt_value lilac_lower_f32_acosh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value t = add(k, in[0], f32(k, -1.0));
    lilac_simt_value root = flushed(k, LILAC_SIMT_OP_FSQRT, fma3(k, t, t, add(k, t, t)));
    lilac_simt_value w = add(k, t, root);
    return lilac_lower_f32_log1p(k, &w);
}

lilac_simt_value lilac_lower_f32_atanh_rare(math_builder *k, const lilac_simt_value *in) {
    return compare(k, LILAC_SIMT_FUGE, magnitude(k, in[0]), f32(k, 1.0));
}

lilac_simt_value lilac_lower_f32_atanh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value w = corrected_quotient(k, add(k, a, a), sub(k, f32(k, 1.0), a));
    lilac_simt_value result = mul(k, lilac_lower_f32_log1p(k, &w), f32(k, 0.5));
    return lilac_lower_sign_from(k, in[0], result);
}
