/* Arcs.
 *
 *   atan (a / b)    near one of five slopes c = 0, 0.40625, 1, 2.4375, ∞: atan c + atan t,
 *                   t = (a - c b) / (b + c a), |t| < 0.207, t a pair
 *   asin a          a ≤ ½: a + a³ p(a²)     above: π/2 - 2 asin √((1 - a) / 2), the root a pair */
#include "functions.h"

#define PI       lilac_lower_pair_number(k, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53)
#define HALF_PI  lilac_lower_pair_number(k, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54)
#define INFINITE (1.0 / 0.0)

/* atan (a / b) for finite a, b ≥ 0, not both 0. */
static pair arc(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    static const struct {
        double from; /* slopes from here on */
        double c, high, low;
    } rows[] = {
        {0.1989, 0.40625, 0x1.8b24d394a1b25p-2, 0x1.b6d0ba3748fa8p-56},
        {0.6682, 1.0, 0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
        {1.4966, 2.4375, 0x1.2e75728833a54p+0, 0x1.16e3ef7326bdap-56},
        {5.0273, INFINITE, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54},
    };
    lilac_simt_value c = num(k, 0.0), high = num(k, 0.0), low = num(k, 0.0), steep = 0;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lilac_simt_value from = compare(k, LILAC_SIMT_GE, a, mul(k, b, num(k, rows[i].from)));
        if (rows[i].c < INFINITE) {
            c = choose(k, from, num(k, rows[i].c), c);
        } else {
            steep = from;
        }
        high = choose(k, from, num(k, rows[i].high), high);
        low = choose(k, from, num(k, rows[i].low), low);
    }
    pair up = lilac_lower_pair_add(k, single(a), lilac_lower_product(k, minus(k, c), b));
    pair down = lilac_lower_pair_add(k, single(b), lilac_lower_product(k, c, a));
    up = lilac_lower_pair_choose(k, steep, single(minus(k, b)), up);
    down = lilac_lower_pair_choose(k, steep, single(a), down);
    pair t = lilac_lower_pair_divide(k, up, down);
    lilac_simt_value z = mul(k, t.hi, t.hi);
    lilac_simt_value tail =
        mul(k, mul(k, t.hi, z), lilac_lower_polynomial_at(k, &lilac_lower_atan_polynomial, z));
    pair sum = lilac_lower_pair_add(k, t, single(tail));
    return lilac_lower_pair_add(k, (pair){high, k->wide ? low : 0}, sum);
}

lilac_simt_value lilac_lower_math_atan(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x);
    lilac_simt_value held = op2(k, LILAC_SIMT_OP_FMIN, a, num(k, 0x1p80));
    lilac_simt_value result = lilac_lower_pair_value(k, arc(k, held, num(k, 1.0)));
    result = choose(k, below(k, a, 0x1p-30), a, result);
    return choose(k, is_nan(k, x), x, lilac_lower_sign_from(k, x, result));
}

lilac_simt_value lilac_lower_math_atan2(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value y = in[0], x = in[1];
    lilac_simt_value a = magnitude(k, y), b = magnitude(k, x);
    lilac_simt_value a_infinite = equals(k, a, INFINITE), b_infinite = equals(k, b, INFINITE);
    lilac_simt_value any = either(k, a_infinite, b_infinite);
    lilac_simt_value one = num(k, 1.0), zero = num(k, 0.0);
    lilac_simt_value up = choose(k, any, choose(k, a_infinite, one, zero), a);
    lilac_simt_value along = choose(k, any, choose(k, b_infinite, one, zero), b);
    along = choose(k, both(k, equals(k, up, 0.0), equals(k, along, 0.0)), one, along);
    lilac_simt_value slope = quotient(k, up, along);
    if (k->wide) {
        /* Both by the same power of two, so that products neither overflow nor lose their low
         * parts; a quotient that is out of the range then has been decided before. */
        lilac_simt_value e;
        lilac_simt_value larger = op2(k, LILAC_SIMT_OP_FMAX, up, along);
        (void)lilac_lower_mantissa(k, larger, &e);
        lilac_simt_value down = minus(k, e);
        up = lilac_lower_scale(k, up, down);
        along = lilac_lower_scale(k, along, down);
    }
    pair r = arc(k, up, along);
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, cast(k, LILAC_SIMT_I64, x), INT64_MIN);
    lilac_simt_value behind = compare(k, LILAC_SIMT_NE, sign, integer(k, LILAC_SIMT_I64, 0));
    pair back = lilac_lower_pair_add(k, PI, lilac_lower_pair_negate(k, r));
    lilac_simt_value result = lilac_lower_pair_value(k, r);
    result = choose(k, below(k, slope, 0x1p-30), slope, result);
    result = choose(k, behind, lilac_lower_pair_value(k, back), result);
    result = lilac_lower_sign_from(k, y, result);
    return choose(k, compare(k, LILAC_SIMT_UNO, x, y), num(k, 0.0 / 0.0), result);
}

/* asin a = v for a ≤ ½; else π/2 - 2v. */
static pair half_arc(math_builder *k, lilac_simt_value a, lilac_simt_value *near) {
    *near = compare(k, LILAC_SIMT_LE, a, num(k, 0.5));
    lilac_simt_value z = mul(k, sub(k, num(k, 1.0), a), num(k, 0.5));
    pair root = lilac_lower_pair_root(k, single(z));
    root = lilac_lower_pair_choose(k, equals(k, a, 1.0), single(num(k, 0.0)), root);
    pair t = lilac_lower_pair_choose(k, *near, single(a), root);
    z = choose(k, *near, mul(k, a, a), z);
    lilac_simt_value tail =
        mul(k, mul(k, t.hi, z), lilac_lower_polynomial_at(k, &lilac_lower_asin_polynomial, z));
    return lilac_lower_pair_add(k, t, single(tail));
}

static pair twice(math_builder *k, pair a) {
    return (pair){add(k, a.hi, a.hi), a.lo == 0 ? 0 : add(k, a.lo, a.lo)};
}

lilac_simt_value lilac_lower_math_asin(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x), near;
    pair v = half_arc(k, a, &near);
    pair far = lilac_lower_pair_add(k, HALF_PI, lilac_lower_pair_negate(k, twice(k, v)));
    lilac_simt_value result = lilac_lower_pair_value(k, lilac_lower_pair_choose(k, near, v, far));
    return choose(k, is_nan(k, x), x, lilac_lower_sign_from(k, x, result));
}

lilac_simt_value lilac_lower_math_acos(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], near;
    pair v = half_arc(k, magnitude(k, x), &near);
    lilac_simt_value negative = below(k, x, 0.0);
    pair middle = lilac_lower_pair_add(
        k, HALF_PI, lilac_lower_pair_choose(k, negative, v, lilac_lower_pair_negate(k, v)));
    pair arc_of = twice(k, v);
    pair far = lilac_lower_pair_choose(
        k, negative, lilac_lower_pair_add(k, PI, lilac_lower_pair_negate(k, arc_of)), arc_of);
    return lilac_lower_pair_value(k, lilac_lower_pair_choose(k, near, middle, far));
}
