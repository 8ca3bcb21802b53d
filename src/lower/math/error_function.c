/* The error function and its relatives.
 *
 *   erf x      |x| ≤ 1:    x (2/√π + x² p(x²))
 *              otherwise:  1 - erfc x
 *   erfc x     x ≥ ½:      e^(-x²) erfcx x; x² and its power are pairs
 *              |x| < ½:    1 - erf x
 *              x < 0:      2 - erfc |x|
 *   erfcx x    x ≥ 0:      q(t) / (1 + 2x), t = (x - 4) / (x + 4): one polynomial from 0 to ∞
 *                          (Shepherd and Laframboise, "Chebyshev approximation of
 *                          (1 + 2x) exp(x²) erfc x", 1981)
 *              x < 0:      2 e^(x²) - erfcx |x|
 *
 * The inverse functions are in inverse_error_function.c. */
#include "functions.h"

#define INFINITE   (1.0 / 0.0)
#define TWO_ROOTPI lilac_lower_pair_number(k, 0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56)

/* erf a for 0 ≤ a ≤ 1. */
pair lilac_lower_erf_pair(math_builder *k, pair a) {
    lilac_simt_value z = mul(k, a.hi, a.hi);
    lilac_simt_value tail =
        mul(k, mul(k, a.hi, z), lilac_lower_polynomial_at(k, &lilac_lower_erf_polynomial, z));
    pair first = lilac_lower_pair_multiply(k, a, TWO_ROOTPI);
    return lilac_lower_pair_add(k, first, single(tail));
}

/* e^(a²) erfc a for a ≥ 0. */
static pair erfcx_far(math_builder *k, lilac_simt_value a) {
    pair t = lilac_lower_pair_divide(k, lilac_lower_sum(k, a, num(k, -4.0)),
                                     lilac_lower_sum(k, a, num(k, 4.0)));
    const lilac_lower_polynomial *p = &lilac_lower_erfcx_polynomial;
    pair q;
    if (k->wide) {
        lilac_lower_polynomial rest = {p->wide + 1, p->wide_count - 1, NULL, 0};
        lilac_simt_value tail = lilac_lower_polynomial_at(k, &rest, t.hi);
        q = lilac_lower_pair_add(k, single(num(k, p->wide[0])),
                                 lilac_lower_pair_multiply(k, t, single(tail)));
    } else {
        q = single(lilac_lower_polynomial_at(k, p, t.hi));
    }
    return lilac_lower_pair_divide(k, q, lilac_lower_sum(k, num(k, 1.0), add(k, a, a)));
}

/* erfc a for a ≥ ½, as m 2^n. */
pair lilac_lower_erfc_pair(math_builder *k, pair a, pair *power, lilac_simt_value *n) {
    pair square = lilac_lower_pair_multiply(k, a, a);
    *power = lilac_lower_exp_pair(k, lilac_lower_pair_negate(k, square), n);
    return lilac_lower_pair_multiply(k, *power, erfcx_far(k, a.hi));
}

static lilac_simt_value held(math_builder *k, lilac_simt_value a, double bound) {
    return op2(k, LILAC_SIMT_OP_FMIN, a, num(k, bound));
}

lilac_simt_value lilac_lower_math_erf(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = held(k, magnitude(k, x), 7.0);
    lilac_simt_value n;
    pair power, near = lilac_lower_erf_pair(k, single(a));
    lilac_simt_value far =
        lilac_lower_pair_value(k, lilac_lower_erfc_pair(k, single(a), &power, &n));
    far = sub(k, num(k, 1.0), mul(k, far, lilac_lower_power_of_two(k, n)));
    lilac_simt_value small = mul(k, a, num(k, 0x1.20dd750429b6dp+0));
    lilac_simt_value result = choose(k, below(k, a, 1.0), lilac_lower_pair_value(k, near), far);
    result = choose(k, below(k, a, 0x1p-500), small, result);
    return choose(k, is_nan(k, x), x, lilac_lower_sign_from(k, x, result));
}

/* erfc of x + low, |low| far smaller. */
static lilac_simt_value complement(math_builder *k, pair x) {
    lilac_simt_value a = held(k, magnitude(k, x.hi), 28.0);
    lilac_simt_value negative = below(k, x.hi, 0.0);
    pair m = {a, x.lo == 0 ? 0 : choose(k, negative, minus(k, x.lo), x.lo)};
    lilac_simt_value n;
    pair power, near = lilac_lower_erf_pair(k, m);
    near = lilac_lower_pair_choose(k, negative, near, lilac_lower_pair_negate(k, near));
    lilac_simt_value middle =
        lilac_lower_pair_value(k, lilac_lower_pair_add(k, single(num(k, 1.0)), near));
    pair far = lilac_lower_erfc_pair(k, m, &power, &n);
    lilac_simt_value right = lilac_lower_scale(k, lilac_lower_pair_value(k, far), n);
    lilac_simt_value result = choose(k, negative, sub(k, num(k, 2.0), right), right);
    result = choose(k, below(k, a, 0.5), middle, result);
    return choose(k, is_nan(k, x.hi), x.hi, result);
}

lilac_simt_value lilac_lower_math_erfc(math_builder *k, const lilac_simt_value *in) {
    return complement(k, single(in[0]));
}

lilac_simt_value lilac_lower_math_erfcx(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x), n;
    pair right = erfcx_far(k, held(k, a, 0x1p500));
    lilac_simt_value b = held(k, a, 30.0);
    pair power = lilac_lower_exp_pair(k, lilac_lower_product(k, b, b), &n);
    lilac_simt_value scale = add(k, held(k, n, 1000.0), num(k, 1.0));
    lilac_simt_value factor = lilac_lower_power_of_two(k, scale);
    pair twice = {mul(k, power.hi, factor), power.lo == 0 ? 0 : mul(k, power.lo, factor)};
    lilac_simt_value left = lilac_lower_pair_value(
        k, lilac_lower_pair_add(k, twice, lilac_lower_pair_negate(k, right)));
    lilac_simt_value whole =
        lilac_lower_scale(k, lilac_lower_pair_value(k, power), add(k, n, num(k, 1.0)));
    left = choose(k, above(k, a, 8.0), whole, left);
    left = choose(k, above(k, a, 27.0), num(k, INFINITE), left);
    left = choose(k, both(k, above(k, a, 26.0), below(k, a, 27.0)), whole, left);
    /* Beyond 2^100 it is 1 / (x √π). */
    lilac_simt_value tail = quotient(k, num(k, 0x1.20dd750429b6dp-1), a);
    lilac_simt_value result = lilac_lower_pair_value(k, right);
    result = choose(k, above(k, a, 0x1p100), tail, result);
    result = choose(k, below(k, x, 0.0), left, result);
    return choose(k, is_nan(k, x), x, result);
}

/* erfc(-x / √2) / 2 */
lilac_simt_value lilac_lower_math_normcdf(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = op2(k, LILAC_SIMT_OP_FMAX, in[0], num(k, -40.0));
    x = held(k, x, 40.0);
    pair scaled = lilac_lower_pair_multiply(
        k, single(minus(k, x)),
        lilac_lower_pair_number(k, 0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55));
    lilac_simt_value result = mul(k, complement(k, scaled), num(k, 0.5));
    return choose(k, is_nan(k, in[0]), in[0], result);
}
