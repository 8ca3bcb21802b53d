/* The functions of f32 that programs use most, in f32 itself.
 *
 *   e^x            n ln 2 + r as in exponential.c, ln 2 in two parts of which the first has 12 bits
 *                  left over for n; a polynomial, 2^n in two steps
 *   log x, log2 x  x = 2^e (1 + f), √½ ≤ 1 + f < √2: e ln 2 + (f + f² (f p(f) - ½)), which has no
 *                  division; f is exact
 *
 * All are within 2 ulp; 2^x and 1 / √x are the machine's own approximations, which are as good. */
#include "functions.h"

#define LN_2_HIGH   0x1.62e4p-1
#define LN_2_LOW    0x1.7f7d1cp-20
#define LOG2_E_HIGH 0x1.715476p+0
#define LOG2_E_LOW  0x1.4ae0bf8p-26
#define LN_2        0x1.62e43p-1
#define INFINITE    (1.0 / 0.0)

static lilac_simt_value single_number(math_builder *k, double value) {
    return lilac_lower_float(k->l, LILAC_SIMT_F32, value);
}

static lilac_simt_value polynomial(math_builder *k, const double *c, uint32_t count,
                                   lilac_simt_value x) {
    lilac_simt_value sum = single_number(k, c[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;) {
        sum = fma3(k, sum, x, single_number(k, c[i]));
    }
    return sum;
}

/* n + 127 in the exponent's place, for n from -126 to 127. */
static lilac_simt_value power_of_two(math_builder *k, lilac_simt_value n) {
    return cast(k, LILAC_SIMT_F32,
                with(k, LILAC_SIMT_OP_SHL, with(k, LILAC_SIMT_OP_ADD, n, 127), 23));
}

/* e^r - 1, and n. */
static lilac_simt_value reduced(math_builder *k, lilac_simt_value x, lilac_simt_value *n) {
    *n = nearest(k, mul(k, x, single_number(k, 1.4426950408889634)));
    lilac_simt_value down = minus(k, *n);
    lilac_simt_value r = fma3(k, down, single_number(k, LN_2_HIGH), x);
    r = fma3(k, down, single_number(k, LN_2_LOW), r);
    const lilac_lower_polynomial *p = &lilac_lower_exp_polynomial;
    lilac_simt_value tail = polynomial(k, p->narrow, p->narrow_count, r);
    return fma3(k, mul(k, r, r), tail, r);
}

static lilac_simt_value between(math_builder *k, lilac_simt_value x, double low, double high) {
    lilac_simt_value held = op2(k, LILAC_SIMT_OP_FMAX, x, single_number(k, low));
    return op2(k, LILAC_SIMT_OP_FMIN, held, single_number(k, high));
}

lilac_simt_value lilac_lower_math_single_exp(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = between(k, in[0], -110.0, 100.0), n;
    lilac_simt_value s = add(k, reduced(k, x, &n), single_number(k, 1.0));
    lilac_simt_value whole = convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, n);
    lilac_simt_value half = with(k, LILAC_SIMT_OP_SHR_S, whole, 1);
    lilac_simt_value other = op2(k, LILAC_SIMT_OP_SUB, whole, half);
    lilac_simt_value result = mul(k, mul(k, s, power_of_two(k, half)), power_of_two(k, other));
    return choose(k, is_nan(k, in[0]), in[0], result);
}

/* 2^n (1 + s) - 1 with half the power: e^x - 1 itself may need the whole range. */
lilac_simt_value lilac_lower_math_single_expm1(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = between(k, in[0], -30.0, 89.0), n;
    lilac_simt_value s = reduced(k, x, &n);
    lilac_simt_value whole = convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, n);
    lilac_simt_value half = power_of_two(k, with(k, LILAC_SIMT_OP_SUB, whole, 1));
    lilac_simt_value result = fma3(k, s, half, sub(k, half, single_number(k, 0.5)));
    result = add(k, result, result);
    lilac_simt_value small =
        compare(k, LILAC_SIMT_LT, magnitude(k, in[0]), single_number(k, 0x1p-26));
    lilac_simt_value keeps = either(k, small, is_nan(k, in[0]));
    return choose(k, keeps, in[0], result);
}

/* x = 2^e (1 + f), √½ ≤ 1 + f < √2, and what of log (1 + f) = f + f² tail remains. */
static lilac_simt_value log_parts(math_builder *k, lilac_simt_value x, lilac_simt_value *exponent,
                                  lilac_simt_value *tail) {
    lilac_simt_value tiny = compare(k, LILAC_SIMT_LT, x, single_number(k, 0x1p-126));
    lilac_simt_value number = choose(k, tiny, mul(k, x, single_number(k, 0x1p24)), x);
    number = cast(k, LILAC_SIMT_I32, number);
    /* Bits from √½ up, so that the exponent's field changes where 1 + f does. */
    lilac_simt_value field =
        with(k, LILAC_SIMT_OP_AND, with(k, LILAC_SIMT_OP_SUB, number, 0x3F3504F3), 0xFF800000);
    lilac_simt_value m = cast(k, LILAC_SIMT_F32, op2(k, LILAC_SIMT_OP_SUB, number, field));
    lilac_simt_value f = sub(k, m, single_number(k, 1.0));
    *exponent =
        fma3(k, convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, field), single_number(k, 0x1p-23),
             choose(k, tiny, single_number(k, -24.0), single_number(k, 0.0)));
    const lilac_lower_polynomial *p = &lilac_lower_log1p_single_polynomial;
    *tail = fma3(k, polynomial(k, p->narrow, p->narrow_count, f), f, single_number(k, -0.5));
    return f;
}

/* What a logarithm gives beside positive numbers: x ∞ + ∞ where there is a sign or no number. */
static lilac_simt_value log_special(math_builder *k, lilac_simt_value x, lilac_simt_value result) {
    lilac_simt_value infinite = single_number(k, INFINITE);
    lilac_simt_value odd = compare(k, LILAC_SIMT_UGE, cast(k, LILAC_SIMT_I32, x),
                                   lilac_simt_constant(k->b, LILAC_SIMT_I32, 0x7F800000));
    result = choose(k, odd, fma3(k, x, infinite, infinite), result);
    lilac_simt_value zero = compare(k, LILAC_SIMT_EQ, x, single_number(k, 0.0));
    return choose(k, zero, single_number(k, -INFINITE), result);
}

lilac_simt_value lilac_lower_math_single_log(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value exponent, tail;
    lilac_simt_value f = log_parts(k, in[0], &exponent, &tail);
    lilac_simt_value part = fma3(k, mul(k, f, tail), f, f);
    lilac_simt_value result = fma3(k, exponent, single_number(k, LN_2), part);
    return log_special(k, in[0], result);
}

/* f log2 e in two products, of which the first has little rounding: where e is 0 it is the result.
 */
lilac_simt_value lilac_lower_math_single_log2(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value exponent, tail;
    lilac_simt_value f = log_parts(k, in[0], &exponent, &tail);
    tail = mul(k, mul(k, f, tail), f);
    lilac_simt_value high = single_number(k, LOG2_E_HIGH), low = single_number(k, LOG2_E_LOW);
    lilac_simt_value part = fma3(k, f, high, fma3(k, tail, high, mul(k, f, low)));
    return log_special(k, in[0], add(k, exponent, part));
}

lilac_simt_value lilac_lower_math_single_exp2(math_builder *k, const lilac_simt_value *in) {
    return op1(k, LILAC_SIMT_OP_FEXP2, in[0]);
}

lilac_simt_value lilac_lower_math_single_rsqrt(math_builder *k, const lilac_simt_value *in) {
    return op1(k, LILAC_SIMT_OP_FRSQRT, in[0]);
}
