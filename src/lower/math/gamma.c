/* Gamma functions.
 *
 *   log Γ y = (y - ½) log y - y + log √2π + S(1 / y²) / y      y ≥ 12, after Stirling
 *   Γ(a) = Γ(a + n) / P,  P = a (a + 1) … (a + n - 1)          smaller a, n ≤ 12 chosen by selects
 *   Γ(-a) = -π / (a sin πa Γ(a))
 *
 * log Γ from 0 to 3 comes of (x - 1)(x - 2) p(x), in which its zeros at 1 and 2 stand apart, and a
 * logarithm outside of 1 to 2. All in pairs: its sums lose what is large, and Γ is a power. */
#include "functions.h"

#define PI       lilac_lower_pair_number(k, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53)
#define INFINITE (1.0 / 0.0)
#define FROM     12

static pair minus_pair(math_builder *k, pair a, pair b) {
    return lilac_lower_pair_add(k, a, lilac_lower_pair_negate(k, b));
}

/* log Γ(a + n), and P; a from 0 on. */
static pair stirling(math_builder *k, lilac_simt_value a, pair *shifts) {
    pair product = single(num(k, 1.0));
    for (int32_t i = 0; i < FROM; i++) {
        pair factor = i == 0 ? single(a) : lilac_lower_sum(k, a, num(k, i));
        product = lilac_lower_pair_choose(k, below(k, a, FROM - i),
                                          lilac_lower_pair_multiply(k, product, factor), product);
    }
    *shifts = product;
    lilac_simt_value n = sub(k, num(k, FROM), op1(k, LILAC_SIMT_OP_FFLOOR, a));
    n = op2(k, LILAC_SIMT_OP_FMAX, n, num(k, 0.0));
    pair y = lilac_lower_sum(k, a, n);
    pair inverse = lilac_lower_pair_divide(k, single(num(k, 1.0)), y);
    lilac_simt_value tail = mul(k, inverse.hi,
                                lilac_lower_polynomial_at(k, &lilac_lower_stirling_polynomial,
                                                          mul(k, inverse.hi, inverse.hi)));
    pair log = lilac_lower_log_pair(k, y);
    pair half = lilac_lower_pair_add(k, y, single(num(k, -0.5)));
    pair sum = minus_pair(k, lilac_lower_pair_multiply(k, half, log), y);
    pair root = lilac_lower_pair_number(k, 0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55);
    return lilac_lower_pair_add(k, sum, lilac_lower_pair_add(k, root, single(tail)));
}

static lilac_simt_value is_whole(math_builder *k, lilac_simt_value a) {
    return compare(k, LILAC_SIMT_EQ, op1(k, LILAC_SIMT_OP_FFLOOR, a), a);
}

/* a sin πa */
static pair sine_part(math_builder *k, lilac_simt_value a) {
    pair sine, cosine;
    lilac_lower_sincospi_pair(k, a, &sine, &cosine);
    return lilac_lower_pair_multiply(k, single(a), sine);
}

lilac_simt_value lilac_lower_math_tgamma(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value negative = below(k, x, 0.0);
    pair shifts;
    pair log = stirling(k, op2(k, LILAC_SIMT_OP_FMIN, a, num(k, 300.0)), &shifts);
    lilac_simt_value n;
    log = lilac_lower_pair_choose(k, negative, lilac_lower_pair_negate(k, log), log);
    pair power = lilac_lower_exp_pair(k, log, &n);
    pair up = lilac_lower_pair_choose(
        k, negative, lilac_lower_pair_negate(k, lilac_lower_pair_multiply(k, shifts, PI)),
        single(num(k, 1.0)));
    pair down = lilac_lower_pair_choose(k, negative, sine_part(k, a), shifts);
    pair result = lilac_lower_pair_multiply(k, power, lilac_lower_pair_divide(k, up, down));
    lilac_simt_value value = lilac_lower_scale(k, lilac_lower_pair_value(k, result), n);
    value = choose(k, above(k, x, 172.0), num(k, INFINITE), value);
    lilac_simt_value inverse = quotient(k, num(k, 1.0), x);
    value = choose(k, below(k, a, 0x1p-60), inverse, value);
    lilac_simt_value none = both(k, negative, is_whole(k, a));
    value = choose(k, none, num(k, 0.0 / 0.0), value);
    return choose(k, is_nan(k, x), x, value);
}

lilac_simt_value lilac_lower_math_lgamma(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value negative = below(k, x, 0.0);
    pair shifts;
    pair far = stirling(k, a, &shifts);

    lilac_simt_value low = below(k, a, 1.0), high = above(k, a, 2.0), near = below(k, a, 3.0);
    pair t = lilac_lower_sum(
        k, a, choose(k, low, num(k, 1.0), choose(k, high, num(k, -1.0), num(k, 0.0))));
    pair u = lilac_lower_pair_add(k, t, single(num(k, -1.5)));
    lilac_simt_value held = op2(k, LILAC_SIMT_OP_FMIN, u.hi, num(k, 0.5));
    const lilac_lower_polynomial *p = &lilac_lower_lgamma_polynomial;
    pair bump;
    if (k->wide) {
        lilac_lower_polynomial rest = {p->wide + 1, p->wide_count - 1, NULL, 0};
        bump = lilac_lower_pair_add(
            k, single(num(k, p->wide[0])),
            lilac_lower_product(k, held, lilac_lower_polynomial_at(k, &rest, held)));
    } else {
        bump = single(lilac_lower_polynomial_at(k, p, held));
    }
    pair first = lilac_lower_pair_add(k, t, single(num(k, -1.0)));
    pair second = lilac_lower_pair_add(k, t, single(num(k, -2.0)));
    pair bowl = lilac_lower_pair_multiply(k, lilac_lower_pair_multiply(k, first, second), bump);

    /* What is taken away or added: log P, log a, log (a - 1), or nothing. */
    pair part = lilac_lower_pair_choose(k, near, single(num(k, 1.0)), shifts);
    part = lilac_lower_pair_choose(k, both(k, near, high), t, part);
    part = lilac_lower_pair_choose(k, low, single(a), part);
    pair log = lilac_lower_log_pair(k, part);
    log = lilac_lower_pair_choose(k, both(k, near, high), lilac_lower_pair_negate(k, log), log);
    pair result = minus_pair(k, lilac_lower_pair_choose(k, near, bowl, far), log);

    pair sine = sine_part(k, a);
    lilac_simt_value below_zero = below(k, sine.hi, 0.0);
    sine = lilac_lower_pair_choose(k, below_zero, lilac_lower_pair_negate(k, sine), sine);
    pair log_pi = lilac_lower_pair_number(k, 0x1.250d048e7a1bdp+0, 0x1.7abf2ad8d5088p-57);
    pair mirrored = minus_pair(k, minus_pair(k, log_pi, lilac_lower_log_pair(k, sine)), result);
    result = lilac_lower_pair_choose(k, negative, mirrored, result);

    lilac_simt_value value = lilac_lower_pair_value(k, result);
    lilac_simt_value tiny =
        lilac_lower_pair_value(k, lilac_lower_pair_negate(k, lilac_lower_log_pair(k, single(a))));
    value = choose(k, either(k, equals(k, x, 1.0), equals(k, x, 2.0)), num(k, 0.0), value);
    value = choose(k, below(k, a, 0x1p-60), tiny, value);
    value = choose(k, above(k, a, 2.5e305), num(k, INFINITE), value);
    lilac_simt_value none = either(k, equals(k, a, 0.0), both(k, negative, is_whole(k, a)));
    value = choose(k, none, num(k, INFINITE), value);
    return choose(k, is_nan(k, x), x, value);
}
