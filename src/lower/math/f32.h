/* Functions of f32 that are computed in f32.
 *
 * Each has a fast path for the arguments that programs use: no branch, no f64, no conversion to or
 * from an integer but of an exponent. A function whose fast path does not cover all arguments has a
 * row in f32_elements.c: a predicate for the other arguments and a slow path, which covers all. The
 * slow path is behind one branch for several elements, which a warp takes when one of its lanes
 * needs it.
 *
 * Bounds of errors are in units in the last place (ulp). They assume the bounds that the PTX manual
 * gives for the approximate instructions: 2 ulp for ex2.approx, 1 for rcp.approx and div.full 2.
 * The polynomials are minimax approximations whose coefficients are rounded to f32 one after
 * another, the others fitted again after each (scripts/coefficients_f32.py). */
#ifndef LILAC_LOWER_F32_H
#define LILAC_LOWER_F32_H

#include "functions.h"

#define LOG2_E      1.4426950408889634
#define LOG2_E_HIGH 0x1.715476p+0
#define LOG2_E_LOW  0x1.4ae0c0p-26
#define LN_2        0.69314718055994531
#define LN_2_HIGH   0x1.62e43p-1
#define LN_2_LOW    -0x1.05c610p-29
#define INFINITE    (1.0 / 0.0)

/* 1.5 · 2^23: the sum of it and |a| < 2^22 has a, rounded to a whole number, in its low bits. */
#define TO_WHOLE 12582912.0

static inline lilac_simt_value f32(math_builder *k, double value) {
    return lilac_lower_float(k->l, LILAC_SIMT_F32, value);
}
static inline lilac_simt_value i32_of(math_builder *k, lilac_simt_value a) {
    return cast(k, LILAC_SIMT_I32, a);
}
static inline lilac_simt_value f32_of(math_builder *k, lilac_simt_value a) {
    return cast(k, LILAC_SIMT_F32, a);
}
/* An approximate instruction that takes subnormal operands as 0 and gives 0 for subnormal results.
 * One machine instruction; without the flag there are three more. */
static inline lilac_simt_value flushed(math_builder *k, lilac_simt_opcode code,
                                       lilac_simt_value a) {
    return lilac_lower_flagged(k->l, code, LILAC_SIMT_F32,
                               LILAC_SIMT_FTZ |
                                   (code == LILAC_SIMT_OP_FRCP || code == LILAC_SIMT_OP_FSQRT
                                        ? LILAC_SIMT_APPROXIMATE
                                        : 0),
                               1, &a);
}
/* The same where it is a whole function: its result keeps subnormals if the options say so. */
static inline lilac_simt_value by_instruction(math_builder *k, lilac_simt_opcode code,
                                              lilac_simt_value a) {
    if (!k->l->options->keep_subnormals) {
        return flushed(k, code, a);
    }
    return lilac_lower_flagged(k->l, code, LILAC_SIMT_F32,
                               code == LILAC_SIMT_OP_FSQRT ? LILAC_SIMT_APPROXIMATE : 0, 1, &a);
}
/* The bits of a are not among those from `low` on and below `high`. */
static inline lilac_simt_value outside(math_builder *k, lilac_simt_value a, int64_t low,
                                       int64_t high) {
    lilac_simt_value bits = i32_of(k, a);
    if (low != 0) {
        bits = with(k, LILAC_SIMT_OP_SUB, bits, low);
    }
    return compare(k, LILAC_SIMT_UGE, bits, integer(k, LILAC_SIMT_I32, high - low));
}
/* a / b by the approximate inverse, corrected once by the remainder. */
static inline lilac_simt_value corrected_quotient(math_builder *k, lilac_simt_value a,
                                                  lilac_simt_value b) {
    lilac_simt_value inverse = flushed(k, LILAC_SIMT_OP_FRCP, b);
    lilac_simt_value q = mul(k, a, inverse);
    return fma3(k, fma3(k, minus(k, q), b, a), inverse, q);
}
/* One operation in another rounding. */
static inline lilac_simt_value rounded_down(math_builder *k, lilac_simt_opcode code,
                                            lilac_simt_value a, lilac_simt_value b) {
    lilac_simt_instruction like = {.code = (uint16_t)code, .detail = LILAC_ROUND_DOWN};
    lilac_simt_value in[2] = {a, b};
    lilac_simt_type type = LILAC_SIMT_F32;
    return lilac_simt_build(k->b, &like, 2, in, 1, &type);
}
/* c[0] + c[1] x + … */
static inline lilac_simt_value series(math_builder *k, const double *c, uint32_t count,
                                      lilac_simt_value x) {
    lilac_simt_value sum = f32(k, c[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;) {
        sum = fma3(k, sum, x, f32(k, c[i]));
    }
    return sum;
}
#define SERIES(k, c, x) series(k, c, sizeof(c) / sizeof *(c), x)

/* The operation applied to all elements by a function of f32. Elements of other float types are
 * converted to f32 and the results back. */
bool lilac_lower_f32_elements(lilac_lowering *l, const lilac_tile_op *op,
                              lilac_lower_function fast);

#define FUNCTION(name)                                                                             \
    lilac_simt_value lilac_lower_f32_##name(math_builder *k, const lilac_simt_value *in)
/* f32_exponential.c */
FUNCTION(exp);
FUNCTION(exp2);
FUNCTION(exp10);
FUNCTION(exp10_rare);
FUNCTION(expm1);
FUNCTION(expm1_rare);
FUNCTION(tanh);
FUNCTION(sinh);
FUNCTION(cosh);
FUNCTION(sinh_rare);
/* f32_logarithm.c */
FUNCTION(log);
FUNCTION(log2);
FUNCTION(log10);
FUNCTION(log1p);
FUNCTION(log1p_rare);
FUNCTION(log1p_slow);
/* f32_trigonometric.c */
FUNCTION(sin);
FUNCTION(cos);
FUNCTION(tan);
FUNCTION(sincos_rare);
FUNCTION(sinpi);
FUNCTION(cospi);
FUNCTION(sincospi_rare);
/* f32_inverse.c */
FUNCTION(asin);
FUNCTION(acos);
FUNCTION(atan);
FUNCTION(atan2);
FUNCTION(atan2_rare);
FUNCTION(asinh);
FUNCTION(asinh_rare);
FUNCTION(acosh);
FUNCTION(acosh_rare);
FUNCTION(atanh);
FUNCTION(atanh_rare);
/* f32_power.c */
FUNCTION(pow);
FUNCTION(pow_rare);
FUNCTION(powi);
FUNCTION(powi_rare);
FUNCTION(ldexp);
FUNCTION(ldexp_rare);
FUNCTION(ldexp_slow);
FUNCTION(fmod);
FUNCTION(fmod_rare);
FUNCTION(remainder);
/* f32_special.c */
FUNCTION(lgamma);
FUNCTION(lgamma_rare);
FUNCTION(i0);
FUNCTION(i1);
FUNCTION(bessel_rare);
/* f32_roots.c */
FUNCTION(sqrt);
FUNCTION(rsqrt);
FUNCTION(rsqrt_rounded);
FUNCTION(cbrt);
FUNCTION(cbrt_rare);
FUNCTION(rcbrt);
FUNCTION(rcbrt_rare);
FUNCTION(hypot);
FUNCTION(rhypot);
FUNCTION(length2_rare);
FUNCTION(norm3d);
FUNCTION(rnorm3d);
FUNCTION(length3_rare);
FUNCTION(norm4d);
FUNCTION(rnorm4d);
FUNCTION(length4_rare);
/* f32_error_function.c */
FUNCTION(erf);
FUNCTION(erfc);
FUNCTION(erfc_rare);
FUNCTION(erfcx);
FUNCTION(erfcx_rare);
FUNCTION(normcdf);
FUNCTION(normcdf_rare);
FUNCTION(erfinv);
FUNCTION(erfinv_rare);
FUNCTION(erfinv_slow);
FUNCTION(erfcinv);
FUNCTION(erfcinv_rare);
FUNCTION(erfcinv_slow);
FUNCTION(normcdfinv);
FUNCTION(normcdfinv_rare);
FUNCTION(normcdfinv_slow);
#undef FUNCTION

#endif
