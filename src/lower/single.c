/* The functions of f32 that programs use most, in f32 itself.
 *
 *   e^x        n ln 2 + r as in exponential.c, ln 2 in two parts of which the first has 12 bits
 * left over for n; a polynomial, 2^n in two steps log x      x = 2^e (1 + f), √½ ≤ 1 + f < √2: e ln
 * 2 + (f - f² / 2 + f³ p(f)), which has no division; f is exact
 *
 * All are within 2 ulp; 2^x and 1 / √x are the machine's own approximations, which are as good. */
#include "functions.h"

#define LN_2_HIGH 0x1.62e4p-1
#define LN_2_LOW  0x1.7f7d1cp-20
#define INFINITE  (1.0 / 0.0)

static lilac_simt_value single_number(kit *k, double value) {
    return lilac_lower_float(k->l, LILAC_SIMT_F32, value);
}

static lilac_simt_value polynomial(kit *k, const double *c, uint32_t count, lilac_simt_value x) {
    lilac_simt_value sum = single_number(k, c[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;) {
        sum = fma3(k, sum, x, single_number(k, c[i]));
    }
    return sum;
}

/* n + 127 in the exponent's place, for n from -126 to 127. */
static lilac_simt_value power_of_two(kit *k, lilac_simt_value n) {
    return cast(k, LILAC_SIMT_F32,
                with(k, LILAC_SIMT_OP_SHL, with(k, LILAC_SIMT_OP_ADD, n, 127), 23));
}

/* e^r - 1, and n. */
static lilac_simt_value reduced(kit *k, lilac_simt_value x, lilac_simt_value *n) {
    *n = nearest(k, mul(k, x, single_number(k, 1.4426950408889634)));
    lilac_simt_value down = minus(k, *n);
    lilac_simt_value r = fma3(k, down, single_number(k, LN_2_HIGH), x);
    r = fma3(k, down, single_number(k, LN_2_LOW), r);
    const lilac_lower_polynomial *p = &lilac_lower_exp_polynomial;
    lilac_simt_value tail = polynomial(k, p->narrow, p->narrow_count, r);
    return fma3(k, mul(k, r, r), tail, r);
}

static lilac_simt_value between(kit *k, lilac_simt_value x, double low, double high) {
    lilac_simt_value held = op2(k, LILAC_SIMT_OP_FMAX, x, single_number(k, low));
    return op2(k, LILAC_SIMT_OP_FMIN, held, single_number(k, high));
}

lilac_simt_value lilac_lower_math_single_exp(kit *k, const lilac_simt_value *in) {
    lilac_simt_value x = between(k, in[0], -110.0, 100.0), n;
    lilac_simt_value s = add(k, reduced(k, x, &n), single_number(k, 1.0));
    lilac_simt_value whole = convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, n);
    lilac_simt_value half = with(k, LILAC_SIMT_OP_SHR_S, whole, 1);
    lilac_simt_value other = op2(k, LILAC_SIMT_OP_SUB, whole, half);
    lilac_simt_value result = mul(k, mul(k, s, power_of_two(k, half)), power_of_two(k, other));
    return choose(k, is_nan(k, in[0]), in[0], result);
}

/* 2^n (1 + s) - 1 with half the power: e^x - 1 itself may need the whole range. */
lilac_simt_value lilac_lower_math_single_expm1(kit *k, const lilac_simt_value *in) {
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

lilac_simt_value lilac_lower_math_single_log(kit *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0];
    lilac_simt_value tiny = compare(k, LILAC_SIMT_LT, x, single_number(k, 0x1p-126));
    lilac_simt_value number = choose(k, tiny, mul(k, x, single_number(k, 0x1p24)), x);
    /* Bits from √½ up, so that the exponent's field changes where 1 + f does. */
    lilac_simt_value bits = with(k, LILAC_SIMT_OP_SUB, cast(k, LILAC_SIMT_I32, number), 0x3F3504F3);
    lilac_simt_value e = with(k, LILAC_SIMT_OP_SHR_S, bits, 23);
    lilac_simt_value m =
        with(k, LILAC_SIMT_OP_ADD, with(k, LILAC_SIMT_OP_AND, bits, 0x007FFFFF), 0x3F3504F3);
    lilac_simt_value f = sub(k, cast(k, LILAC_SIMT_F32, m), single_number(k, 1.0));
    lilac_simt_value exponent = convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, e);
    exponent = choose(k, tiny, sub(k, exponent, single_number(k, 24.0)), exponent);
    const lilac_lower_polynomial *p = &lilac_lower_log1p_single_polynomial;
    lilac_simt_value square = mul(k, f, f);
    lilac_simt_value tail = mul(k, f, polynomial(k, p->narrow, p->narrow_count, f));
    tail = fma3(k, square, add(k, tail, single_number(k, -0.5)),
                mul(k, exponent, single_number(k, LN_2_LOW)));
    lilac_simt_value result = fma3(k, exponent, single_number(k, LN_2_HIGH), add(k, f, tail));
    lilac_simt_value zero = compare(k, LILAC_SIMT_EQ, x, single_number(k, 0.0));
    result = choose(k, zero, single_number(k, -INFINITE), result);
    result = choose(k, compare(k, LILAC_SIMT_EQ, x, single_number(k, INFINITE)), x, result);
    return choose(k, compare(k, LILAC_SIMT_GE, x, single_number(k, 0.0)), result,
                  single_number(k, 0.0 / 0.0));
}

lilac_simt_value lilac_lower_math_single_exp2(kit *k, const lilac_simt_value *in) {
    return op1(k, LILAC_SIMT_OP_FEXP2, in[0]);
}

lilac_simt_value lilac_lower_math_single_rsqrt(kit *k, const lilac_simt_value *in) {
    return op1(k, LILAC_SIMT_OP_FRSQRT, in[0]);
}
