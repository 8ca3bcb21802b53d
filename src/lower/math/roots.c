/* Roots and lengths.
 *
 *   cbrt     a = m 2^(3q), ½ ≤ m < 4: a parabola through the root, three of Halley's steps
 *            y (y³ + 2m) / (2y³ + m), and one of Newton's with y³ - m exact
 *   hypot …  the numbers divided by the power of two of the largest, in f64 only: f32 has room */
#include "functions.h"

#define INFINITE (1.0 / 0.0)

/* An instruction, which assemblers expand; of libdevice, too. */
lilac_simt_value lilac_lower_math_rsqrt(math_builder *k, const lilac_simt_value *in) {
    return op1(k, LILAC_SIMT_OP_FRSQRT, in[0]);
}

lilac_simt_value lilac_lower_math_cbrt(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], a = magnitude(k, x), e;
    lilac_simt_value m = lilac_lower_mantissa(k, a, &e);
    lilac_simt_value q = nearest(k, mul(k, e, num(k, 1.0 / 3.0)));
    m = mul(k, m, lilac_lower_power_of_two(k, fma3(k, q, num(k, -3.0), e)));
    lilac_simt_value y = fma3(k, m, num(k, -0.0354), num(k, 0.375));
    y = fma3(k, y, m, num(k, 0.6459));
    for (uint32_t i = 0; i < (k->wide ? 3 : 2); i++) {
        lilac_simt_value cube = mul(k, mul(k, y, y), y);
        lilac_simt_value up = fma3(k, m, num(k, 2.0), cube);
        lilac_simt_value down = fma3(k, cube, num(k, 2.0), m);
        y = mul(k, y, quotient(k, up, down));
    }
    if (k->wide) {
        pair square = lilac_lower_product(k, y, y);
        pair cube = lilac_lower_pair_multiply(k, square, single(y));
        lilac_simt_value rest = add(k, sub(k, cube.hi, m), cube.lo);
        y = sub(k, y, quotient(k, rest, mul(k, square.hi, num(k, 3.0))));
    }
    lilac_simt_value result = mul(k, y, lilac_lower_power_of_two(k, q));
    lilac_simt_value plain = either(k, equals(k, a, 0.0), equals(k, a, INFINITE));
    result = choose(k, either(k, plain, is_nan(k, x)), x, result);
    return lilac_lower_sign_from(k, x, result);
}

lilac_simt_value lilac_lower_math_rcbrt(math_builder *k, const lilac_simt_value *in) {
    return quotient(k, num(k, 1.0), lilac_lower_math_cbrt(k, in));
}

/* √(Σ in²) or its inverse. */
static lilac_simt_value length(math_builder *k, uint32_t count, const lilac_simt_value *in,
                               bool inverse) {
    lilac_simt_value largest = num(k, 0.0), infinite = 0;
    lilac_simt_value a[4];
    for (uint32_t i = 0; i < count; i++) {
        a[i] = magnitude(k, in[i]);
        largest = op2(k, LILAC_SIMT_OP_FMAX, largest, a[i]);
        lilac_simt_value one = equals(k, a[i], INFINITE);
        infinite = i == 0 ? one : either(k, infinite, one);
    }
    lilac_simt_value e = 0;
    if (k->wide) {
        (void)lilac_lower_mantissa(k, largest, &e);
        e = choose(k, equals(k, largest, 0.0), num(k, 0.0), e);
        for (uint32_t i = 0; i < count; i++) {
            a[i] = lilac_lower_scale(k, a[i], minus(k, e));
        }
    }
    lilac_simt_value sum = mul(k, a[0], a[0]);
    for (uint32_t i = 1; i < count; i++) {
        sum = fma3(k, a[i], a[i], sum);
    }
    lilac_simt_value result = root_of(k, sum);
    if (inverse) {
        result = quotient(k, num(k, 1.0), result);
    }
    if (k->wide) {
        result = lilac_lower_scale(k, result, inverse ? minus(k, e) : e);
    }
    return choose(k, infinite, num(k, inverse ? 0.0 : INFINITE), result);
}

lilac_simt_value lilac_lower_math_hypot(math_builder *k, const lilac_simt_value *in) {
    return length(k, 2, in, false);
}
lilac_simt_value lilac_lower_math_rhypot(math_builder *k, const lilac_simt_value *in) {
    return length(k, 2, in, true);
}
lilac_simt_value lilac_lower_math_norm3d(math_builder *k, const lilac_simt_value *in) {
    return length(k, 3, in, false);
}
lilac_simt_value lilac_lower_math_rnorm3d(math_builder *k, const lilac_simt_value *in) {
    return length(k, 3, in, true);
}
lilac_simt_value lilac_lower_math_norm4d(math_builder *k, const lilac_simt_value *in) {
    return length(k, 4, in, false);
}
lilac_simt_value lilac_lower_math_rnorm4d(math_builder *k, const lilac_simt_value *in) {
    return length(k, 4, in, true);
}
