/* Modified Bessel functions of the first kind, of order 0 and 1.
 *
 *   x ≤ 8    I0 = 1 + x² p(x²)     I1 = x q(x²)
 *   x > 8    e^x / √x r(16 / x - 1) */
#include "functions.h"

/* Where x² is large, no term of p is small compared with the sum. */
#define PAIRS 4

static lilac_simt_value far(math_builder *k, lilac_simt_value a, const lilac_lower_polynomial *p) {
    lilac_simt_value b = op2(k, LILAC_SIMT_OP_FMAX, a, num(k, 8.0));
    b = op2(k, LILAC_SIMT_OP_FMIN, b, num(k, 800.0));
    lilac_simt_value n;
    pair power = lilac_lower_exp_pair(k, single(b), &n);
    pair t = lilac_lower_pair_divide(k, single(num(k, 16.0)), single(b));
    t = lilac_lower_pair_add(k, t, single(num(k, -1.0)));
    pair q;
    if (k->wide) {
        lilac_lower_polynomial rest = {p->wide + 1, p->wide_count - 1, NULL, 0};
        q = lilac_lower_pair_add(
            k, single(num(k, p->wide[0])),
            lilac_lower_pair_multiply(k, t, single(lilac_lower_polynomial_at(k, &rest, t.hi))));
    } else {
        q = single(lilac_lower_polynomial_at(k, p, t.hi));
    }
    pair result = lilac_lower_pair_divide(k, lilac_lower_pair_multiply(k, power, q),
                                          lilac_lower_pair_root(k, single(b)));
    return lilac_lower_scale(k, lilac_lower_pair_value(k, result), n);
}

lilac_simt_value lilac_lower_math_i0(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value b = op2(k, LILAC_SIMT_OP_FMIN, a, num(k, 8.0));
    pair z = lilac_lower_product(k, b, b);
    const lilac_lower_polynomial *all = &lilac_lower_i0_near_polynomial;
    pair p = lilac_lower_polynomial_pair(k, all, z, PAIRS);
    pair sum = lilac_lower_pair_add(k, single(num(k, 1.0)), lilac_lower_pair_multiply(k, z, p));
    lilac_simt_value result = choose(k, above(k, a, 8.0), far(k, a, &lilac_lower_i0_far_polynomial),
                                     lilac_lower_pair_value(k, sum));
    return choose(k, is_nan(k, a), a, result);
}

lilac_simt_value lilac_lower_math_i1(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value b = op2(k, LILAC_SIMT_OP_FMIN, a, num(k, 8.0));
    lilac_simt_value value;
    if (k->wide) {
        pair sum = lilac_lower_polynomial_pair(k, &lilac_lower_i1_near_polynomial,
                                               lilac_lower_product(k, b, b), PAIRS);
        value = lilac_lower_pair_value(k, lilac_lower_pair_multiply(k, sum, single(b)));
    } else {
        value =
            mul(k, b, lilac_lower_polynomial_at(k, &lilac_lower_i1_near_polynomial, mul(k, b, b)));
    }
    lilac_simt_value result =
        choose(k, above(k, a, 8.0), far(k, a, &lilac_lower_i1_far_polynomial), value);
    return choose(k, is_nan(k, a), in[0], lilac_lower_sign_from(k, in[0], result));
}
