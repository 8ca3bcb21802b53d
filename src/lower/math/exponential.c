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
 * exp, exp2 and exp10 need no pairs: r and s are single doubles, r with what its product with a
 * logarithm rounds off, and the error of a result is below 1.1 ulp.
 *
 *   sinh a = (t + t / (t + 1)) / 2     cosh a = (e^a + e^-a) / 2     tanh a = t / (t + 2), t of 2a
 */
#include "functions.h"

#define LOG2_E    1.4426950408889634
#define LN_2_HIGH 0x1.62e42fefa38p-1
#define LN_2_LOW  0x1.ef35793c7673p-45

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

/* ---- exp, exp2 and exp10 ----------------------------------------------------------------------- */

/* The base's logarithm and that of 2 to the base, each as a sum of two doubles. */
typedef struct base {
    double log2, log_2_high, log_2_low; /* the logarithm to the base 2; log 2 to the base */
    double ln_high, ln_low;             /* the natural logarithm; 1: e */
    double low, high;                   /* arguments below give 0, those above an infinity */
} base;

static const base base_e = {LOG2_E, LN_2_HIGH, LN_2_LOW, 1.0, 0.0, -746.0, 710.0},
                  base_2 = {1.0,     1.0,   0.0, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56,
                            -1076.0, 1025.0},
                  base_10 = {3.321928094887362,
                             0x1.34413509f78p-2,
                             0x1.fef311f12b358p-46,
                             0x1.26bb1bbb55516p+1,
                             -0x1.f48ad494ea3e9p-53,
                             -324.0,
                             309.0};

/* a 2^n, |n| < 2000, rounded once: n is halved. */
static lilac_simt_value times_power(math_builder *k, lilac_simt_value a, lilac_simt_value n) {
    const lilac_simt_value half = with(k, LILAC_SIMT_OP_SHR_S, n, 1);
    const lilac_simt_value halves[] = {half, op2(k, LILAC_SIMT_OP_SUB, n, half)};
    for (uint32_t i = 0; i < 2; i++) {
        const lilac_simt_value exponent = with(k, LILAC_SIMT_OP_SHL, halves[i], 20);
        a = mul(k, a,
                lilac_lower_of_words(k, integer(k, LILAC_SIMT_I32, 0),
                                     with(k, LILAC_SIMT_OP_ADD, exponent, 0x3FF00000)));
    }
    return a;
}

static lilac_simt_value power(math_builder *k, lilac_simt_value x, const base *b) {
    lilac_simt_value n;
    const lilac_simt_value down = minus(k, lilac_lower_integer_near(k, x, b->log2, &n));
    lilac_simt_value r = fma3(k, down, num(k, b->log_2_high), x), low = 0;
    if (b->log_2_low != 0.0) {
        r = fma3(k, down, num(k, b->log_2_low), r);
    }
    if (b->ln_high != 1.0) {
        const lilac_simt_value part = r;
        r = mul(k, part, num(k, b->ln_high));
        low = fma3(k, part, num(k, b->ln_high), minus(k, r));
        low = fma3(k, part, num(k, b->ln_low), low);
    }
    const lilac_simt_value square = mul(k, r, r);
    const lilac_simt_value tail = lilac_lower_polynomial_at(k, &lilac_lower_exp_polynomial, r);
    const lilac_simt_value s =
        low == 0 ? fma3(k, square, tail, r) : add(k, r, fma3(k, square, tail, low));
    lilac_simt_value result = times_power(k, add(k, s, num(k, 1.0)), n);
    result = choose(k, below(k, x, b->low), num(k, 0.0), result);
    return choose(k, above(k, x, b->high), num(k, INFINITE), result);
}

lilac_simt_value lilac_lower_math_exp(math_builder *k, const lilac_simt_value *in) {
    return power(k, in[0], &base_e);
}

lilac_simt_value lilac_lower_math_exp2(math_builder *k, const lilac_simt_value *in) {
    return power(k, in[0], &base_2);
}

lilac_simt_value lilac_lower_math_exp10(math_builder *k, const lilac_simt_value *in) {
    return power(k, in[0], &base_10);
}

/* ---- the others -------------------------------------------------------------------------------- */

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
