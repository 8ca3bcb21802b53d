/* The inverses of the error function.
 *
 * A polynomial within 2^-20 (Giles, "Approximating the erfinv function", 2012, has the variables:
 * -log(1 - a²), and √-log c further out), then Halley's method, once or in f64 twice, on
 *
 *   erf x = a     a < ½           erfc x = c, c = 1 - a     above
 *   δ = (a - erf x) / erf' x  =  (erfc x - c) / erf' x      x := x + δ / (1 - x δ)
 *
 * where what is left over, δ's numerator, is the difference of pairs. */
#include "functions.h"

#define INFINITE (1.0 / 0.0)

static lilac_simt_value start(math_builder *k, lilac_simt_value a, lilac_simt_value c) {
    math_builder rough = {k->l, k->b, false};
    lilac_simt_value w =
        minus(k, lilac_lower_log_pair(&rough, single(mul(k, c, add(k, a, num(k, 1.0))))).hi);
    lilac_simt_value s = root_of(k, minus(k, lilac_lower_log_pair(&rough, single(c)).hi));
    lilac_simt_value near =
        mul(k, a,
            lilac_lower_polynomial_at(&rough, &lilac_lower_inverse_near_polynomial,
                                      sub(k, w, num(k, 3.0))));
    lilac_simt_value middle =
        mul(k, s,
            lilac_lower_polynomial_at(&rough, &lilac_lower_inverse_middle_polynomial,
                                      sub(k, s, num(k, 4.0))));
    lilac_simt_value outer =
        mul(k, s,
            lilac_lower_polynomial_at(&rough, &lilac_lower_inverse_far_polynomial,
                                      quotient(k, num(k, 8.0), s)));
    lilac_simt_value x = choose(k, above(k, s, 8.0), outer, middle);
    return choose(k, below(k, w, 6.0), near, x);
}

/* erfinv a for 0 ≤ a < 1, c = 1 - a exact where a ≥ ½ (and a where a < ½). */
static pair inverse(math_builder *k, lilac_simt_value a, lilac_simt_value c) {
    lilac_simt_value near = below(k, a, 0.5);
    lilac_simt_value x = start(k, a, c), step = num(k, 0.0);
    for (uint32_t i = 0; i < (k->wide ? 2 : 1); i++) {
        x = add(k, x, step);
        lilac_simt_value n;
        pair power, far = lilac_lower_erfc_pair(k, single(x), &power, &n);
        lilac_simt_value slope = mul(k, power.hi, num(k, 0x1.20dd750429b6dp+0));
        pair left =
            lilac_lower_pair_add(k, far, single(minus(k, lilac_lower_scale(k, c, minus(k, n)))));
        pair inner = lilac_lower_pair_add(
            k, single(a), lilac_lower_pair_negate(k, lilac_lower_erf_pair(k, single(x))));
        lilac_simt_value scaled = mul(
            k, slope, lilac_lower_power_of_two(k, op2(k, LILAC_SIMT_OP_FMAX, n, num(k, -1000.0))));
        lilac_simt_value delta =
            choose(k, near, quotient(k, lilac_lower_pair_value(k, inner), scaled),
                   quotient(k, lilac_lower_pair_value(k, left), slope));
        step = quotient(k, delta, fma3(k, minus(k, x), delta, num(k, 1.0)));
    }
    return lilac_lower_fast_sum(k, x, step);
}

lilac_simt_value lilac_lower_math_erfinv(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value y = in[0], a = magnitude(k, y);
    lilac_simt_value result = lilac_lower_pair_value(k, inverse(k, a, sub(k, num(k, 1.0), a)));
    lilac_simt_value small = mul(k, a, num(k, 0x1.c5bf891b4ef6bp-1));
    result = choose(k, below(k, a, 0x1p-30), small, result);
    result = choose(k, equals(k, a, 1.0), num(k, INFINITE), result);
    result = choose(k, above(k, a, 1.0), num(k, 0.0 / 0.0), result);
    return choose(k, is_nan(k, y), y, lilac_lower_sign_from(k, y, result));
}

/* erfcinv y times a factor. */
static lilac_simt_value complementary(math_builder *k, lilac_simt_value y, pair factor) {
    lilac_simt_value upper = above(k, y, 1.0);
    lilac_simt_value c = choose(k, upper, sub(k, num(k, 2.0), y), y);
    lilac_simt_value a = sub(k, num(k, 1.0), c);
    pair x = inverse(k, a, c);
    x = lilac_lower_pair_choose(k, below(k, a, 0x1p-30),
                                single(mul(k, a, num(k, 0x1.c5bf891b4ef6bp-1))), x);
    lilac_simt_value result = lilac_lower_pair_value(k, lilac_lower_pair_multiply(k, x, factor));
    lilac_simt_value infinite = mul(k, factor.hi, num(k, INFINITE));
    result = choose(k, equals(k, c, 0.0), infinite, result);
    result = choose(k, upper, minus(k, result), result);
    result = choose(k, equals(k, a, 0.0), num(k, 0.0), result);
    /* Outside of 0 to 2, and for NaN. */
    return choose(k, compare(k, LILAC_SIMT_GE, c, num(k, 0.0)), result, num(k, 0.0 / 0.0));
}

lilac_simt_value lilac_lower_math_erfcinv(math_builder *k, const lilac_simt_value *in) {
    return complementary(k, in[0], single(num(k, 1.0)));
}

lilac_simt_value lilac_lower_math_normcdfinv(math_builder *k, const lilac_simt_value *in) {
    pair root = lilac_lower_pair_number(k, -0x1.6a09e667f3bcdp+0, 0x1.bdd3413b26456p-54);
    return complementary(k, add(k, in[0], in[0]), root);
}
