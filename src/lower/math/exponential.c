/* Exponentials and hyperbolic functions.
 *
 *   a = n ln 2 + r, |r| ≤ ln 2 / 2     after Cody and Waite: n times the first 42 bits of ln 2 is
 *                                      exact, the rest of ln 2 is subtracted from what is left
 *   e^a = 2^n (1 + s)                  s = r + r² p(r)
 *   e^a - 1 = (2^n - 1) + 2^n s
 *
 * Powers of 2 and 10 multiply their argument by log 2 or log 10, kept as a pair, first. Hyperbolic
 * functions are quotients and sums of t = e^a - 1, exact enough near 0:
 *
 *   sinh a = (t + t / (t + 1)) / 2     cosh a = (e^a + e^-a) / 2     tanh a = t / (t + 2), t of 2a
 */
#include "functions.h"

#define LOG2_E    1.4426950408889634
#define LN_2_HIGH 0x1.62e42fefa38p-1
#define LN_2_LOW  0x1.ef35793c7673p-45

/* ln 2 and ln 10 as pairs. */
#define LN_2     lilac_lower_pair_number(k, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56)
#define LN_10    lilac_lower_pair_number(k, 0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53)
#define INFINITE (1.0 / 0.0)

/* s and n; for |a| up to some 1100. */
static pair reduced(math_builder *k, pair a, lilac_simt_value *n) {
    *n = nearest(k, mul(k, a.hi, num(k, LOG2_E)));
    lilac_simt_value down = minus(k, *n);
    lilac_simt_value first = fma3(k, down, num(k, LN_2_HIGH), a.hi);
    pair r;
    if (k->wide) {
        r = lilac_lower_sum(k, first, mul(k, down, num(k, LN_2_LOW)));
        if (a.lo != 0) {
            r = lilac_lower_pair_add(k, r, single(a.lo));
        }
    } else {
        r = single(fma3(k, down, num(k, LN_2_LOW), first));
    }
    lilac_simt_value tail = lilac_lower_polynomial_at(k, &lilac_lower_exp_polynomial, r.hi);
    lilac_simt_value square = mul(k, r.hi, r.hi);
    if (!k->wide) {
        return single(fma3(k, square, tail, r.hi));
    }
    /* e^(r + lo) - 1 = (e^r - 1) + lo e^r, and e^r is about 1 + r. */
    pair s = lilac_lower_fast_sum(k, r.hi, mul(k, square, tail));
    s.lo = add(k, s.lo, fma3(k, r.lo, s.hi, r.lo));
    return lilac_lower_fast_sum(k, s.hi, s.lo);
}

pair lilac_lower_exp_pair(math_builder *k, pair a, lilac_simt_value *n) {
    pair s = reduced(k, a, n);
    return lilac_lower_pair_add(k, single(num(k, 1.0)), s);
}

pair lilac_lower_expm1_pair(math_builder *k, pair a) {
    lilac_simt_value n;
    pair s = reduced(k, a, &n);
    lilac_simt_value power = lilac_lower_power_of_two(k, n);
    pair scaled = {mul(k, s.hi, power), s.lo == 0 ? 0 : mul(k, s.lo, power)};
    return lilac_lower_pair_add(k, lilac_lower_sum(k, power, num(k, -1.0)), scaled);
}

/* e^a, of which x is the argument that says when the result is 0 or infinite. */
static lilac_simt_value power(math_builder *k, pair a, lilac_simt_value x, double low,
                              double high) {
    lilac_simt_value n;
    pair m = lilac_lower_exp_pair(k, a, &n);
    lilac_simt_value result = lilac_lower_scale(k, lilac_lower_pair_value(k, m), n);
    result = choose(k, below(k, x, low), num(k, 0.0), result);
    return choose(k, above(k, x, high), num(k, INFINITE), result);
}

lilac_simt_value lilac_lower_math_exp(math_builder *k, const lilac_simt_value *in) {
    return power(k, single(in[0]), in[0], -746.0, 710.0);
}

lilac_simt_value lilac_lower_math_exp2(math_builder *k, const lilac_simt_value *in) {
    return power(k, lilac_lower_pair_multiply(k, single(in[0]), LN_2), in[0], -1076.0, 1025.0);
}

lilac_simt_value lilac_lower_math_exp10(math_builder *k, const lilac_simt_value *in) {
    return power(k, lilac_lower_pair_multiply(k, single(in[0]), LN_10), in[0], -324.0, 309.0);
}

lilac_simt_value lilac_lower_math_expm1(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0];
    lilac_simt_value n;
    pair s = reduced(k, single(x), &n);
    /* 2^n - 1 and 2^n s at half their size, so that the largest results do not overflow on the
     * way. */
    lilac_simt_value half = lilac_lower_power_of_two(k, sub(k, n, num(k, 1.0)));
    pair scaled = {mul(k, s.hi, half), s.lo == 0 ? 0 : mul(k, s.lo, half)};
    pair sum = lilac_lower_pair_add(k, lilac_lower_sum(k, half, num(k, -0.5)), scaled);
    lilac_simt_value result = lilac_lower_pair_value(k, sum);
    result = add(k, result, result);
    result = choose(k, below(k, x, -50.0), num(k, -1.0), result);
    result = choose(k, above(k, x, 709.79), num(k, INFINITE), result);
    return choose(k, below(k, magnitude(k, x), 0x1p-60), x, result);
}

static lilac_simt_value at_most(math_builder *k, lilac_simt_value a, double bound) {
    return op2(k, LILAC_SIMT_OP_FMIN, a, num(k, bound));
}

static lilac_simt_value unless_nan(math_builder *k, lilac_simt_value x, lilac_simt_value result) {
    return choose(k, is_nan(k, x), x, result);
}

/* e^a / 2, for a beyond which e^-a is nothing. */
static lilac_simt_value half_power(math_builder *k, lilac_simt_value a) {
    lilac_simt_value n;
    pair m = lilac_lower_exp_pair(k, single(a), &n);
    lilac_simt_value result =
        lilac_lower_scale(k, lilac_lower_pair_value(k, m), sub(k, n, num(k, 1.0)));
    return choose(k, above(k, a, 711.0), num(k, INFINITE), result);
}

lilac_simt_value lilac_lower_math_sinh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    pair t = lilac_lower_expm1_pair(k, single(at_most(k, a, 40.0)));
    pair other = lilac_lower_pair_divide(k, t, lilac_lower_pair_add(k, t, single(num(k, 1.0))));
    lilac_simt_value near =
        mul(k, lilac_lower_pair_value(k, lilac_lower_pair_add(k, t, other)), num(k, 0.5));
    near = choose(k, below(k, a, 0x1p-30), a, near);
    lilac_simt_value result = choose(k, above(k, a, 39.0), half_power(k, a), near);
    return unless_nan(k, in[0], lilac_lower_sign_from(k, in[0], result));
}

lilac_simt_value lilac_lower_math_cosh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    pair t = lilac_lower_pair_add(k, lilac_lower_expm1_pair(k, single(at_most(k, a, 40.0))),
                                  single(num(k, 1.0)));
    pair other = lilac_lower_pair_divide(k, single(num(k, 1.0)), t);
    lilac_simt_value near =
        mul(k, lilac_lower_pair_value(k, lilac_lower_pair_add(k, t, other)), num(k, 0.5));
    lilac_simt_value result = choose(k, above(k, a, 39.0), half_power(k, a), near);
    return unless_nan(k, in[0], result);
}

lilac_simt_value lilac_lower_math_tanh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = at_most(k, magnitude(k, in[0]), 22.0);
    pair t = lilac_lower_expm1_pair(k, single(add(k, a, a)));
    pair q = lilac_lower_pair_divide(k, t, lilac_lower_pair_add(k, t, single(num(k, 2.0))));
    lilac_simt_value result = choose(k, below(k, a, 0x1p-30), a, lilac_lower_pair_value(k, q));
    return unless_nan(k, in[0], lilac_lower_sign_from(k, in[0], result));
}
