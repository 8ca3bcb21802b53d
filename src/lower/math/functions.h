/* Elementary and special functions, built from SIMT instructions.
 *
 * Every function is written once, on doubles. A math builder says for which result:
 *
 *   wide     f64: a value is an unevaluated sum of two doubles (Dekker 1971), about 2^-100 of
 *            rounding a step, polynomials within 2^-58; exponentials, logarithms, sine and cosine
 *            themselves are computed in single doubles where that is within an ulp or so
 *   narrow   f32: a plain double is more than enough, polynomials within 2^-29
 *
 * A pair's low part is 0 when it has none: in narrow code nothing is spent on it. Cases are selected,
 * since threads may not part; only the reduction of large arguments of sine and cosine is behind a
 * branch that warps without such arguments skip. Sums in error-free steps are not to be
 * joined with products: products that have an error term are formed by FFMA with both uses, and
 * lilac_simt_opt_contract joins products of one use only. */
#ifndef LILAC_LOWER_FUNCTIONS_H
#define LILAC_LOWER_FUNCTIONS_H

#include "lower_internal.h"

typedef struct math_builder {
    lilac_lowering *l;
    lilac_simt_builder *b;
    bool wide;
} math_builder;

typedef struct pair {
    lilac_simt_value hi, lo; /* hi + lo; lo 0: none */
} pair;

/* Lowest power first. */
typedef struct lilac_lower_polynomial {
    const double *wide;
    uint32_t wide_count;
    const double *narrow;
    uint32_t narrow_count;
} lilac_lower_polynomial;

extern const lilac_lower_polynomial lilac_lower_exp_polynomial, lilac_lower_log_polynomial,
    lilac_lower_sin_polynomial, lilac_lower_cos_polynomial, lilac_lower_atan_polynomial,
    lilac_lower_asin_polynomial, lilac_lower_erf_polynomial, lilac_lower_erfcx_polynomial,
    lilac_lower_stirling_polynomial, lilac_lower_lgamma_polynomial, lilac_lower_i0_near_polynomial,
    lilac_lower_i0_far_polynomial, lilac_lower_i1_near_polynomial, lilac_lower_i1_far_polynomial,
    lilac_lower_inverse_near_polynomial, lilac_lower_inverse_middle_polynomial,
    lilac_lower_inverse_far_polynomial, lilac_lower_log1p_single_polynomial,
    lilac_lower_j0_near_polynomial, lilac_lower_j0_middle_polynomial,
    lilac_lower_j1_near_polynomial, lilac_lower_j1_middle_polynomial,
    lilac_lower_y0_near_polynomial, lilac_lower_y0_low_polynomial, lilac_lower_y0_middle_polynomial,
    lilac_lower_y1_near_polynomial, lilac_lower_y1_low_polynomial, lilac_lower_y1_middle_polynomial,
    lilac_lower_hankel_p0_polynomial, lilac_lower_hankel_q0_polynomial,
    lilac_lower_hankel_p1_polynomial, lilac_lower_hankel_q1_polynomial;

/* ---- doubles, integers, predicates --------------------------------------------------------- */

static inline lilac_simt_value num(math_builder *k, double number) {
    return lilac_lower_float(k->l, LILAC_SIMT_F64, number);
}
static inline lilac_simt_type kind(math_builder *k, lilac_simt_value a) {
    return lilac_simt_type_of(k->l->kernel, a);
}
static inline lilac_simt_value op1(math_builder *k, lilac_simt_opcode code, lilac_simt_value a) {
    return lilac_simt_op1(k->b, code, kind(k, a), a);
}
static inline lilac_simt_value op2(math_builder *k, lilac_simt_opcode code, lilac_simt_value a,
                                   lilac_simt_value b) {
    return lilac_simt_op2(k->b, code, kind(k, a), a, b);
}
static inline lilac_simt_value add(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_FADD, a, b);
}
static inline lilac_simt_value sub(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_FSUB, a, b);
}
static inline lilac_simt_value mul(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_FMUL, a, b);
}
static inline lilac_simt_value quotient(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_FDIV, a, b);
}
static inline lilac_simt_value fma3(math_builder *k, lilac_simt_value a, lilac_simt_value b,
                                    lilac_simt_value c) {
    return lilac_simt_op3(k->b, LILAC_SIMT_OP_FFMA, kind(k, a), a, b, c);
}
static inline lilac_simt_value minus(math_builder *k, lilac_simt_value a) {
    return op1(k, LILAC_SIMT_OP_FNEG, a);
}
static inline lilac_simt_value magnitude(math_builder *k, lilac_simt_value a) {
    return op1(k, LILAC_SIMT_OP_FABS, a);
}
static inline lilac_simt_value nearest(math_builder *k, lilac_simt_value a) {
    return op1(k, LILAC_SIMT_OP_FRINT, a);
}
static inline lilac_simt_value root_of(math_builder *k, lilac_simt_value a) {
    return op1(k, LILAC_SIMT_OP_FSQRT, a);
}
static inline lilac_simt_value choose(math_builder *k, lilac_simt_value condition,
                                      lilac_simt_value yes, lilac_simt_value no) {
    return lilac_lower_select(k->l, condition, yes, no);
}
static inline lilac_simt_value compare(math_builder *k, lilac_simt_compare how, lilac_simt_value a,
                                       lilac_simt_value b) {
    return lilac_simt_compare_values(k->b, how, a, b);
}
static inline lilac_simt_value below(math_builder *k, lilac_simt_value a, double bound) {
    return compare(k, LILAC_SIMT_LT, a, num(k, bound));
}
static inline lilac_simt_value above(math_builder *k, lilac_simt_value a, double bound) {
    return compare(k, LILAC_SIMT_GT, a, num(k, bound));
}
static inline lilac_simt_value equals(math_builder *k, lilac_simt_value a, double number) {
    return compare(k, LILAC_SIMT_EQ, a, num(k, number));
}
static inline lilac_simt_value is_nan(math_builder *k, lilac_simt_value a) {
    return compare(k, LILAC_SIMT_UNO, a, a);
}
static inline lilac_simt_value cast(math_builder *k, lilac_simt_type type, lilac_simt_value a) {
    return lilac_simt_op1(k->b, LILAC_SIMT_OP_BITCAST, type, a);
}
static inline lilac_simt_value convert(math_builder *k, lilac_simt_opcode code,
                                       lilac_simt_type type, lilac_simt_value a) {
    return lilac_simt_op1(k->b, code, type, a);
}
static inline lilac_simt_value integer(math_builder *k, lilac_simt_type type, int64_t number) {
    return lilac_lower_integer(k->l, type, number);
}
/* An integer operation with a constant. */
static inline lilac_simt_value with(math_builder *k, lilac_simt_opcode code, lilac_simt_value a,
                                    int64_t number) {
    return op2(k, code, a, integer(k, kind(k, a), number));
}
static inline lilac_simt_value both(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_AND, a, b);
}
static inline lilac_simt_value either(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return op2(k, LILAC_SIMT_OP_OR, a, b);
}

/* ---- the files ------------------------------------------------------------------------------ */

/* functions.c: a polynomial; y with the sign of x (any float type); 2^n for a whole n from -1022 to
 * 1023; a 2^n for any n up to ±2200 or so, rounded once if a is near 1; the number and its exponent,
 * a = m 2^e with 1 ≤ |m| < 2, e an f64, subnormal numbers included. */
lilac_simt_value lilac_lower_polynomial_at(math_builder *k, const lilac_lower_polynomial *p,
                                           lilac_simt_value x);
lilac_simt_value lilac_lower_sign_from(math_builder *k, lilac_simt_value x, lilac_simt_value y);
lilac_simt_value lilac_lower_power_of_two(math_builder *k, lilac_simt_value n);
lilac_simt_value lilac_lower_scale(math_builder *k, lilac_simt_value a, lilac_simt_value n);
lilac_simt_value lilac_lower_mantissa(math_builder *k, lilac_simt_value a,
                                      lilac_simt_value *exponent);
/* functions.c: for an i32 n, 2^n as an f32 or f64, if that is a normal number; a 2^n for any n, rounded once. */
lilac_simt_value lilac_lower_power_of_exponent(math_builder *k, lilac_simt_type type,
                                               lilac_simt_value n);
lilac_simt_value lilac_lower_load_exponent(math_builder *k, lilac_simt_value a, lilac_simt_value n);
/* functions.c: the words of an f64, the low one first, and the f64 of two words. The integer next to a · factor,
 * below 2^31, as an f64; *word: as an i32. */
void lilac_lower_words(math_builder *k, lilac_simt_value a, lilac_simt_value *words);
lilac_simt_value lilac_lower_integer_near(math_builder *k, lilac_simt_value a, double factor,
                                          lilac_simt_value *word);
lilac_simt_value lilac_lower_of_words(math_builder *k, lilac_simt_value low, lilac_simt_value high);

/* functions.c: pairs. The sum of two doubles, |a| ≥ |b| or any; a product; … of pairs. */
pair lilac_lower_fast_sum(math_builder *k, lilac_simt_value a, lilac_simt_value b);
pair lilac_lower_sum(math_builder *k, lilac_simt_value a, lilac_simt_value b);
pair lilac_lower_product(math_builder *k, lilac_simt_value a, lilac_simt_value b);
pair lilac_lower_pair_number(math_builder *k, double hi, double lo);
pair lilac_lower_pair_add(math_builder *k, pair a, pair b);
pair lilac_lower_pair_multiply(math_builder *k, pair a, pair b);
pair lilac_lower_pair_divide(math_builder *k, pair a, pair b);
pair lilac_lower_pair_root(math_builder *k, pair a);
pair lilac_lower_pair_negate(math_builder *k, pair a);
pair lilac_lower_pair_choose(math_builder *k, lilac_simt_value condition, pair yes, pair no);
lilac_simt_value lilac_lower_pair_value(math_builder *k, pair a); /* rounded */
/* A polynomial whose last `pairs` steps of Horner's rule are computed in pairs, in wide code. */
pair lilac_lower_polynomial_pair(math_builder *k, const lilac_lower_polynomial *p, pair x,
                                 uint32_t pairs);
static inline pair single(lilac_simt_value a) {
    return (pair){a, 0};
}

/* exponential.c: e^a = result 2^n, for a a pair; e^a - 1 for |a| < 700. */
pair lilac_lower_exp_pair(math_builder *k, pair a, lilac_simt_value *n);
pair lilac_lower_expm1_pair(math_builder *k, pair a);
/* logarithm.c: log of a positive pair; log Γ needs it and pow does. */
pair lilac_lower_log_pair(math_builder *k, pair a);
/* log v of a positive pair, from u = v - 1 where v is next to 1; v at least 2^-1000. */
pair lilac_lower_log_near(math_builder *k, pair v, pair u);
/* trigonometric.c: sin and cos of |a| and of πa for a double. */
void lilac_lower_sincos_pair(math_builder *k, lilac_simt_value a, pair *sine, pair *cosine);
void lilac_lower_sincospi_pair(math_builder *k, lilac_simt_value a, pair *sine, pair *cosine);

/* error_function.c: erf a for 0 ≤ a ≤ 1; erfc a = result 2^n for a ≥ 0, with e^(-a²) = power 2^n. */
pair lilac_lower_erf_pair(math_builder *k, pair a);
pair lilac_lower_erfc_pair(math_builder *k, pair a, pair *power, lilac_simt_value *n);

/* bessel_oscillating.c: J0 and J1, Y0 and Y1; of the first kind x is not negative. */
void lilac_lower_bessel_first(math_builder *k, lilac_simt_value x, lilac_simt_value *values);
void lilac_lower_bessel_second(math_builder *k, lilac_simt_value x, lilac_simt_value *values);

/* Functions of doubles: from one, two … operands, to one result. `in` and the result are f64. */
typedef lilac_simt_value (*lilac_lower_function)(math_builder *k, const lilac_simt_value *in);

/* libdevice.c: one applied to operands of any float type (or i32), the result of `type`. */
lilac_simt_value lilac_lower_by_function(lilac_lowering *l, lilac_lower_function function,
                                         uint32_t operands, lilac_simt_type type,
                                         const lilac_simt_value *in);

#define FUNCTION(name)                                                                             \
    lilac_simt_value lilac_lower_math_##name(math_builder *k, const lilac_simt_value *in)
/* exponential.c */
FUNCTION(exp);
FUNCTION(exp2);
FUNCTION(exp10);
FUNCTION(expm1);
FUNCTION(sinh);
FUNCTION(cosh);
FUNCTION(tanh);
/* logarithm.c */
FUNCTION(log);
FUNCTION(log2);
FUNCTION(log10);
FUNCTION(log1p);
FUNCTION(asinh);
FUNCTION(acosh);
FUNCTION(atanh);
FUNCTION(pow);
/* functions.c; the second operand is whole */
FUNCTION(ldexp);
/* trigonometric.c */
FUNCTION(sin);
FUNCTION(cos);
FUNCTION(tan);
FUNCTION(sinpi);
FUNCTION(cospi);
/* inverse_trigonometric.c */
FUNCTION(asin);
FUNCTION(acos);
FUNCTION(atan);
FUNCTION(atan2);
/* roots.c */
FUNCTION(rsqrt);
FUNCTION(cbrt);
FUNCTION(rcbrt);
FUNCTION(hypot);
FUNCTION(rhypot);
FUNCTION(norm3d);
FUNCTION(rnorm3d);
FUNCTION(norm4d);
FUNCTION(rnorm4d);
/* remainder.c */
FUNCTION(fmod);
FUNCTION(remainder);
/* error_function.c */
FUNCTION(erf);
FUNCTION(erfc);
FUNCTION(erfcx);
FUNCTION(normcdf);
/* inverse_error_function.c */
FUNCTION(erfinv);
FUNCTION(erfcinv);
FUNCTION(normcdfinv);
/* gamma.c */
FUNCTION(tgamma);
FUNCTION(lgamma);
/* bessel.c */
FUNCTION(i0);
FUNCTION(i1);
/* bessel_oscillating.c */
FUNCTION(j0);
FUNCTION(j1);
FUNCTION(y0);
FUNCTION(y1);
/* bessel_order.c: the order, then the argument */
FUNCTION(jn);
FUNCTION(yn);
#undef FUNCTION

#endif
