/* Logarithms of f32.
 *
 *   x = 2^e (1 + f), 2/3 ≤ 1 + f < 4/3; f is exact
 *   log (1 + f) = f + f² (f p(f) - 1/2)
 *   log x       = e ln 2 + log (1 + f)
 *               (log10: √½ ≤ 1 + f < √2, so that the sum with e loses least)
 *   log2, log10 f c + f (c' + f² …), c the logarithm of e in two parts, c and c'
 *   log1p x     e of 1 + x, f = (2^-e - 1) + 2^-e x, so that no bit of x is lost; 3/4 ≤ 1 + f < 3/2
 *
 * A subnormal x is scaled by 2^24. log, log2 and log10 have no slow path: a branch between elements
 * keeps ptxas from computing them one after another, and costs more registers than it saves
 * instructions. */
#include "f32.h"

#define LOG10_2 0.30102999566398120

/* (log(1 + f) - f + f² / 2) / f³, after the -1/2: 2^-27 of the result. */
static const double third_part[] = {-0.5,           0x1.555506p-2,  -0x1.fffefap-3,
                                    0x1.99d05cp-3,  -0x1.559c2ep-3, 0x1.1ed454p-3,
                                    -0x1.f33c6ap-4, 0x1.1e72a2p-3,  -0x1.07aa58p-3};
static const double half_part[] = {-0.5,           0x1.5555a4p-2,  -0x1.000046p-2,
                                   0x1.996978p-3,  -0x1.54ee38p-3, 0x1.28841ap-3,
                                   -0x1.0d989cp-3, 0x1.acce26p-4,  -0x1.718ed6p-5};

/* For another base: the low part of the logarithm of e, then such terms times it. */
static const double base_2[] = {0x1.4ae0c0p-26, -0x1.715476p-1, 0x1.ec702cp-2, -0x1.7153bap-2,
                                0x1.279e46p-2,  -0x1.ecd6d4p-3, 0x1.9dceb0p-3, -0x1.681f66p-3,
                                0x1.9d41bep-3,  -0x1.7c6386p-3};
static const double base_10[] = {-0x1.5b235ep-27, -0x1.bcb7b2p-3, 0x1.287a76p-3, -0x1.bcbb6cp-4,
                                 0x1.63cbcep-4,   -0x1.27b578p-4, 0x1.f94166p-5, -0x1.d42f5ep-5,
                                 0x1.c60ba6p-5,   -0x1.0fae98p-5};

static lilac_simt_value as_float(math_builder *k, lilac_simt_value field) {
    return convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, field);
}

#define TWO_THIRDS 0x3F2AAAAB
#define ROOT_HALF  0x3F3504F3

/* f, and 2^23 e. The bits of the least 1 + f are `least`. A small x is scaled. */
static lilac_simt_value split(math_builder *k, lilac_simt_value *x, int64_t least,
                              lilac_simt_value *exponent) {
    lilac_simt_value tiny = compare(k, LILAC_SIMT_LT, *x, f32(k, 0x1p-126));
    *x = choose(k, tiny, mul(k, *x, f32(k, 0x1p24)), *x);
    lilac_simt_value bits = i32_of(k, *x);
    lilac_simt_value field =
        with(k, LILAC_SIMT_OP_AND, with(k, LILAC_SIMT_OP_SUB, bits, least), 0xFF800000);
    lilac_simt_value zero = f32(k, 0.0);
    lilac_simt_value scale = choose(k, tiny, f32(k, -24.0 * 0x1p23), zero);
    *exponent = add(k, as_float(k, field), scale);
    lilac_simt_value one = f32(k, 1.0);
    return sub(k, f32_of(k, op2(k, LILAC_SIMT_OP_SUB, bits, field)), one);
}

/* log x where x is not a positive number: x ∞ + ∞ of a negative number, infinity and NaN. */
static lilac_simt_value special(math_builder *k, lilac_simt_value x, lilac_simt_value result) {
    lilac_simt_value infinite = f32(k, INFINITE);
    lilac_simt_value limit = integer(k, LILAC_SIMT_I32, 0x7F800000);
    lilac_simt_value odd = compare(k, LILAC_SIMT_UGE, i32_of(k, x), limit);
    result = choose(k, odd, fma3(k, x, infinite, infinite), result);
    lilac_simt_value least = f32(k, -INFINITE);
    return choose(k, compare(k, LILAC_SIMT_EQ, x, f32(k, 0.0)), least, result);
}

lilac_simt_value lilac_lower_f32_log(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], exponent, f = split(k, &x, TWO_THIRDS, &exponent);
    lilac_simt_value part = fma3(k, mul(k, f, SERIES(k, third_part, f)), f, f);
    return special(k, x, fma3(k, exponent, f32(k, LN_2 * 0x1p-23), part));
}

/* Another base: the high part of log e, the log of 2, the least 1 + f and the polynomial. */
typedef struct log_base {
    double high, two;
    int64_t least;
    const double *p;
} log_base;

static lilac_simt_value to_base(math_builder *k, lilac_simt_value x, const log_base *base) {
    lilac_simt_value exponent, f = split(k, &x, base->least, &exponent);
    lilac_simt_value part = mul(k, f, series(k, base->p, 10, f));
    part = fma3(k, f, f32(k, base->high), part);
    return special(k, x, fma3(k, exponent, f32(k, base->two * 0x1p-23), part));
}

lilac_simt_value lilac_lower_f32_log2(math_builder *k, const lilac_simt_value *in) {
    static const log_base base = {LOG2_E_HIGH, 1.0, TWO_THIRDS, base_2};
    return to_base(k, in[0], &base);
}

lilac_simt_value lilac_lower_f32_log10(math_builder *k, const lilac_simt_value *in) {
    static const log_base base = {0x1.bcb7b2p-2, LOG10_2, ROOT_HALF, base_10};
    return to_base(k, in[0], &base);
}

/* ---- log(1 + x) ----------------------------------------------------------------------------- */

/* 1 + x not between the least normal number and 2^100. */
lilac_simt_value lilac_lower_f32_log1p_rare(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value bits = i32_of(k, add(k, in[0], f32(k, 1.0)));
    lilac_simt_value above_least = with(k, LILAC_SIMT_OP_SUB, bits, 0x00800000);
    return compare(k, LILAC_SIMT_UGE, above_least, integer(k, LILAC_SIMT_I32, 0x71000000));
}

/* Above 2^100, and -1 and below it. */
lilac_simt_value lilac_lower_f32_log1p_slow(math_builder *k, const lilac_simt_value *in) {
    return special(k, add(k, in[0], f32(k, 1.0)), lilac_lower_f32_log(k, in));
}

/* With the exponent's field negated, which is rounded up then, a zero keeps its sign: 2^-e - 1,
 * rounded down, is -0, and so is 0 times the negative ln 2. */
lilac_simt_value lilac_lower_f32_log1p(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], one = f32(k, 1.0);
    lilac_simt_value from = integer(k, LILAC_SIMT_I32, 0x3F400000 + 0x7FFFFF);
    lilac_simt_value field = op2(k, LILAC_SIMT_OP_SUB, from, i32_of(k, add(k, x, one)));
    field = with(k, LILAC_SIMT_OP_AND, field, 0xFF800000);
    lilac_simt_value scaled = f32_of(k, op2(k, LILAC_SIMT_OP_ADD, i32_of(k, x), field));
    lilac_simt_value power = f32_of(k, with(k, LILAC_SIMT_OP_ADD, field, 0x3F800000));
    lilac_simt_value f = add(k, rounded_down(k, LILAC_SIMT_OP_FADD, power, f32(k, -1.0)), scaled);
    lilac_simt_value part = fma3(k, mul(k, f, SERIES(k, half_part, f)), f, f);
    return fma3(k, as_float(k, field), f32(k, -LN_2 * 0x1p-23), part);
}
