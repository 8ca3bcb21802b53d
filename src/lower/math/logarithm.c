/* Logarithms, inverse hyperbolic functions and powers.
 *
 *   a = 2^e m, √½ ≤ m < √2     f = m - 1     s = f / (2 + f)
 *   log m = 2 atanh s = 2s (1 + s² (1/3 + s² p(s²)))
 *
 * f is exact, s and the first two terms are pairs: the result is good to 2^-64, which powers need:
 * y log x may be as large as 745, and its error is the relative error of the power.
 *
 * log, log2 and log10 themselves need only s as a double, as 2s = f - s f (Tang 1990; fdlibm's e_log.c has the
 * same formula):
 *
 *   log m = f - s (f - 2s² (1/3 + s² p(s²)))
 *
 * e times the first 42 bits of log 2 is exact, and its sum with f is a pair. The error is below 1.1 ulp. */
#include "functions.h"

#define LN_2_HIGH 0x1.62e42fefa38p-1
#define LN_2_LOW  0x1.ef35793c7673p-45
#define LN_2      lilac_lower_pair_number(k, 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56)
#define INFINITE  (1.0 / 0.0)

/* log m of f = m - 1. */
static pair log_near_one(math_builder *k, pair f) {
    pair s = lilac_lower_pair_divide(k, f, lilac_lower_pair_add(k, single(num(k, 2.0)), f));
    pair z = lilac_lower_pair_multiply(k, s, s);
    const lilac_lower_polynomial *p = &lilac_lower_log_polynomial;
    if (!k->wide) {
        lilac_simt_value tail = mul(k, z.hi, lilac_lower_polynomial_at(k, p, z.hi));
        lilac_simt_value twice = add(k, s.hi, s.hi);
        return single(fma3(k, twice, tail, twice));
    }
    /* All but the first coefficient, which is 1/3 as a pair. */
    lilac_lower_polynomial rest = {p->wide + 1, p->wide_count - 1, NULL, 0};
    lilac_simt_value tail = lilac_lower_polynomial_at(k, &rest, z.hi);
    pair t = lilac_lower_pair_add(k, lilac_lower_pair_number(k, 1.0 / 3.0, 0x1.5555555555555p-56),
                                  lilac_lower_product(k, z.hi, tail));
    pair higher = lilac_lower_pair_multiply(k, s, lilac_lower_pair_multiply(k, z, t));
    pair sum = lilac_lower_pair_add(k, s, higher);
    return (pair){add(k, sum.hi, sum.hi), add(k, sum.lo, sum.lo)};
}

/* log(v), and where v = 1 + u has the exponent 0 and `u` is given, of u. */
static pair log_of(math_builder *k, pair v, const pair *u) {
    lilac_simt_value e;
    lilac_simt_value m = lilac_lower_mantissa(k, v.hi, &e);
    lilac_simt_value large = above(k, m, 1.4142135623730951);
    m = choose(k, large, mul(k, m, num(k, 0.5)), m);
    e = choose(k, large, add(k, e, num(k, 1.0)), e);
    pair f = single(sub(k, m, num(k, 1.0)));
    if (v.lo != 0) {
        /* Where e is above 1022 the low part of interest is none. */
        lilac_simt_value down = op2(k, LILAC_SIMT_OP_FMAX, minus(k, e), num(k, -1022.0));
        f.lo = mul(k, v.lo, lilac_lower_power_of_two(k, down));
        f = lilac_lower_sum(k, f.hi, f.lo);
    }
    if (u != NULL) {
        f = lilac_lower_pair_choose(k, equals(k, e, 0.0), *u, f);
    }
    pair whole = {mul(k, e, num(k, LN_2_HIGH)), 0};
    if (k->wide) {
        whole = lilac_lower_fast_sum(k, whole.hi, mul(k, e, num(k, LN_2_LOW)));
    } else {
        whole.hi = mul(k, e, num(k, 0x1.62e42fefa39efp-1));
    }
    return lilac_lower_pair_add(k, whole, log_near_one(k, f));
}

pair lilac_lower_log_pair(math_builder *k, pair a) {
    return log_of(k, a, NULL);
}

pair lilac_lower_log_near(math_builder *k, pair v, pair u) {
    return log_of(k, v, &u);
}

/* log(1 + u). */
static pair log1p_pair(math_builder *k, pair u) {
    pair v = lilac_lower_pair_add(k, single(num(k, 1.0)), u);
    return log_of(k, v, &u);
}

/* What logarithms give beside positive numbers. */
static lilac_simt_value special(math_builder *k, lilac_simt_value x, lilac_simt_value result) {
    result = choose(k, equals(k, x, 0.0), num(k, -INFINITE), result);
    result = choose(k, equals(k, x, INFINITE), x, result);
    return choose(k, compare(k, LILAC_SIMT_GE, x, num(k, 0.0)), result, num(k, 0.0 / 0.0));
}

/* The logarithms to a base, of 2 and, as a factor of natural ones, of e: sums of two doubles. */
typedef struct base {
    double log_2_high, log_2_low;
    double factor_high, factor_low; /* 1: the base is e */
} base;

static const base base_e = {LN_2_HIGH, LN_2_LOW, 1.0, 0.0},
                  base_2 = {1.0, 0.0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56},
                  base_10 = {0x1.34413509f78p-2, 0x1.fef311f12b358p-46, 0x1.bcb7b1526e50ep-2,
                             0x1.95355baaafad3p-57};

/* x = 2^e m, √½ ≤ m < √2 (by the high word of √½), for a positive x. */
static lilac_simt_value split(math_builder *k, lilac_simt_value x, lilac_simt_value *e) {
    enum { LOW, HIGH, ROOT = 0x3FE6A09E };
    const lilac_simt_value tiny = below(k, x, 0x1p-1022);
    lilac_simt_value words[2];
    lilac_lower_words(k, choose(k, tiny, mul(k, x, num(k, 0x1p54)), x), words);
    const lilac_simt_value whole =
        with(k, LILAC_SIMT_OP_SHR_S, with(k, LILAC_SIMT_OP_SUB, words[HIGH], ROOT), 20);
    const lilac_simt_value less =
        choose(k, tiny, integer(k, LILAC_SIMT_I32, 54), integer(k, LILAC_SIMT_I32, 0));
    *e = convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F64, op2(k, LILAC_SIMT_OP_SUB, whole, less));
    return lilac_lower_of_words(
        k, words[LOW],
        op2(k, LILAC_SIMT_OP_SUB, words[HIGH], with(k, LILAC_SIMT_OP_SHL, whole, 20)));
}

static lilac_simt_value log_to(math_builder *k, lilac_simt_value x, const base *b) {
    lilac_simt_value e;
    lilac_simt_value f = sub(k, split(k, x, &e), num(k, 1.0));
    const lilac_simt_value s = quotient(k, f, add(k, f, num(k, 2.0))), z = mul(k, s, s);
    const lilac_simt_value tail =
        mul(k, add(k, z, z), lilac_lower_polynomial_at(k, &lilac_lower_log_polynomial, z));
    /* log m = f + rest */
    lilac_simt_value rest = minus(k, mul(k, s, sub(k, f, tail)));
    if (b->factor_high != 1.0) {
        const pair log = lilac_lower_fast_sum(k, f, rest);
        f = mul(k, log.hi, num(k, b->factor_high));
        rest = fma3(k, log.hi, num(k, b->factor_high), minus(k, f));
        rest = fma3(k, log.hi, num(k, b->factor_low), rest);
        rest = log.lo == 0 ? rest : fma3(k, log.lo, num(k, b->factor_high), rest);
    }
    const lilac_simt_value high = mul(k, e, num(k, b->log_2_high));
    const lilac_simt_value sum = add(k, high, f);
    if (b->log_2_low != 0.0) {
        rest = fma3(k, e, num(k, b->log_2_low), rest);
    }
    rest = add(k, sub(k, f, sub(k, sum, high)), rest);
    return special(k, x, add(k, sum, rest));
}

lilac_simt_value lilac_lower_math_log(math_builder *k, const lilac_simt_value *in) {
    return log_to(k, in[0], &base_e);
}

lilac_simt_value lilac_lower_math_log2(math_builder *k, const lilac_simt_value *in) {
    return log_to(k, in[0], &base_2);
}

lilac_simt_value lilac_lower_math_log10(math_builder *k, const lilac_simt_value *in) {
    return log_to(k, in[0], &base_10);
}

lilac_simt_value lilac_lower_math_log1p(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0];
    lilac_simt_value result = lilac_lower_pair_value(k, log1p_pair(k, single(x)));
    result = special(k, add(k, x, num(k, 1.0)), result);
    /* x = -1 rounds to 0 in the sum, and only it. */
    return choose(k, below(k, magnitude(k, x), 0x1p-54), x, result);
}

/* ---- inverse hyperbolic functions ------------------------------------------------------------ */

/* log(1 + u), or log 2a where a is so large that this is the same. */
static lilac_simt_value log_or_twice(math_builder *k, lilac_simt_value a, pair u) {
    lilac_simt_value large = above(k, a, 0x1p60);
    u = lilac_lower_pair_choose(k, large, single(num(k, 0.5)), u);
    pair v = lilac_lower_pair_add(k, single(num(k, 1.0)), u);
    v = lilac_lower_pair_choose(k, large, single(a), v);
    pair result = log_of(k, v, &u);
    pair more = lilac_lower_pair_add(k, result, LN_2);
    result = lilac_lower_pair_choose(k, large, more, result);
    return lilac_lower_pair_value(k, result);
}

lilac_simt_value lilac_lower_math_asinh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    pair square = lilac_lower_product(k, a, a);
    pair root = lilac_lower_pair_root(k, lilac_lower_pair_add(k, single(num(k, 1.0)), square));
    pair u = lilac_lower_pair_divide(k, square, lilac_lower_pair_add(k, single(num(k, 1.0)), root));
    u = lilac_lower_pair_add(k, single(a), u);
    lilac_simt_value result = log_or_twice(k, a, u);
    result = choose(k, below(k, a, 0x1p-30), a, result);
    result = choose(k, equals(k, a, INFINITE), a, result);
    return choose(k, is_nan(k, x), x, lilac_lower_sign_from(k, x, result));
}

lilac_simt_value lilac_lower_math_acosh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0];
    pair t = lilac_lower_sum(k, x, num(k, -1.0));
    pair inside = lilac_lower_pair_multiply(k, t, lilac_lower_pair_add(k, t, single(num(k, 2.0))));
    pair root = lilac_lower_pair_root(k, inside);
    root = lilac_lower_pair_choose(k, equals(k, x, 1.0), single(num(k, 0.0)), root);
    lilac_simt_value result = log_or_twice(k, x, lilac_lower_pair_add(k, t, root));
    result = choose(k, equals(k, x, INFINITE), x, result);
    return choose(k, compare(k, LILAC_SIMT_GE, x, num(k, 1.0)), result, num(k, 0.0 / 0.0));
}

lilac_simt_value lilac_lower_math_atanh(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    pair u = lilac_lower_pair_divide(k, single(add(k, a, a)),
                                     lilac_lower_sum(k, num(k, 1.0), minus(k, a)));
    lilac_simt_value result = mul(k, lilac_lower_pair_value(k, log1p_pair(k, u)), num(k, 0.5));
    result = choose(k, below(k, a, 0x1p-30), a, result);
    result = choose(k, equals(k, a, 1.0), num(k, INFINITE), result);
    result = choose(k, compare(k, LILAC_SIMT_LE, a, num(k, 1.0)), result, num(k, 0.0 / 0.0));
    return choose(k, is_nan(k, x), x, lilac_lower_sign_from(k, x, result));
}

/* ---- powers ---------------------------------------------------------------------------------- */

lilac_simt_value lilac_lower_math_pow(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], y = in[1], a = magnitude(k, x);
    pair log = lilac_lower_log_pair(k, single(a));
    pair exponent = lilac_lower_pair_multiply(k, log, single(y));
    lilac_simt_value n;
    pair m = lilac_lower_exp_pair(k, exponent, &n);
    lilac_simt_value result = lilac_lower_scale(k, lilac_lower_pair_value(k, m), n);
    /* Where the exponent is beyond all results, or comes from a 0 or an infinity. */
    lilac_simt_value rough = mul(k, special(k, a, log.hi), y);
    result = choose(k, above(k, rough, 750.0), num(k, INFINITE), result);
    result = choose(k, below(k, rough, -750.0), num(k, 0.0), result);

    lilac_simt_value half = mul(k, y, num(k, 0.5));
    lilac_simt_value whole = compare(k, LILAC_SIMT_EQ, nearest(k, y), y);
    lilac_simt_value odd = both(k, whole, compare(k, LILAC_SIMT_UNE, nearest(k, half), half));
    lilac_simt_value signed_result = lilac_lower_sign_from(k, x, result);
    result = choose(k, odd, signed_result, result);
    lilac_simt_value negative = both(k, below(k, x, 0.0), above(k, x, -INFINITE));
    result = choose(k, both(k, negative, lilac_lower_not(k->l, whole)), num(k, 0.0 / 0.0), result);
    result = choose(k, compare(k, LILAC_SIMT_UNO, x, y), num(k, 0.0 / 0.0), result);
    lilac_simt_value infinite = equals(k, magnitude(k, y), INFINITE);
    lilac_simt_value one = either(k, equals(k, y, 0.0), equals(k, x, 1.0));
    one = either(k, one, both(k, infinite, equals(k, a, 1.0)));
    return choose(k, one, num(k, 1.0), result);
}
