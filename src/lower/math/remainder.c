/* Remainders, exact for any two numbers.
 *
 *   r := a;  r := r - nearest(r / b 2^k) b 2^k   for k = top, top - 48, …, 0
 *
 * Each step's quotient is a whole number below 2^49 and at most a little wrong, so |r| stays below
 * 0.63 b 2^k, and the fused multiply-add is exact: r is a multiple of the last place of b. At the
 * end -b < r < b with the sign put right.
 *
 * f32 in f64: quotients reach 2^277, six steps, and b 2^k is always a number. f64: both numbers are
 * taken between 1 and 2, and a loop of 44 turns multiplies r by 2^48 (less in the last) until the
 * difference of the exponents is used up. */
#include "functions.h"

#define STEP     48
#define INFINITE (1.0 / 0.0)

static lilac_simt_value reduce(math_builder *k, lilac_simt_value r, lilac_simt_value b,
                               lilac_simt_value inverse, lilac_simt_value *parity) {
    lilac_simt_value q = nearest(k, mul(k, r, inverse));
    if (parity != NULL) {
        *parity = convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I64, q);
    }
    return fma3(k, minus(k, q), b, r);
}

/* The remainder of |x| by |y|, between -0.63 |y| and 0.63 |y|, both finite, y not 0, and the
 * quotient's lowest bits. In wide code in units of 2^*exponent. */
static lilac_simt_value rest_of(math_builder *k, lilac_simt_value a, lilac_simt_value b,
                                lilac_simt_value *parity, lilac_simt_value *unit,
                                lilac_simt_value *exponent) {
    if (!k->wide) {
        lilac_simt_value r = a;
        lilac_simt_value inverse = quotient(k, num(k, 1.0), b);
        for (int32_t step = 5; step >= 0; step--) {
            double power = 1.0;
            for (int32_t i = 0; i < step; i++) {
                power *= 0x1p48;
            }
            r = reduce(k, r, mul(k, b, num(k, power)), mul(k, inverse, num(k, 1.0 / power)),
                       step == 0 ? parity : NULL);
        }
        *unit = b;
        *exponent = 0;
        return r;
    }
    lilac_simt_value ea, eb;
    lilac_simt_value m = lilac_lower_mantissa(k, b, &eb);
    lilac_simt_value r = lilac_lower_mantissa(k, a, &ea);
    r = choose(k, equals(k, a, 0.0), a, r);
    lilac_simt_value inverse = quotient(k, num(k, 1.0), m);
    lilac_simt_value gap = sub(k, ea, eb);
    lilac_simt_value less = below(k, gap, 0.0);
    lilac_simt_value zero = integer(k, LILAC_SIMT_I64, 0);
    /* a < b below: a itself, in b's units, which may be far below 1 but no smaller than a was. */
    lilac_simt_value kept = lilac_lower_scale(k, a, minus(k, eb));
    r = reduce(k, r, m, inverse, parity);
    lilac_simt_value initial[3] = {r, op2(k, LILAC_SIMT_OP_FMAX, gap, num(k, 0.0)), *parity};
    lilac_simt_value turn, bound = integer(k, LILAC_SIMT_I32, 44);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(k->b, integer(k, LILAC_SIMT_I32, 0), bound,
                              integer(k, LILAC_SIMT_I32, 1), 3, initial, &turn);
    lilac_simt_value now = turn + 1, left = turn + 2, even = turn + 3;
    lilac_simt_value by = op2(k, LILAC_SIMT_OP_FMIN, left, num(k, STEP));
    lilac_simt_value power = lilac_lower_power_of_two(k, by);
    lilac_simt_value quotients;
    lilac_simt_value then = reduce(k, mul(k, now, power), m, inverse, &quotients);
    /* The quotient so far times 2^by plus this one: even but for the last when by is not 0. */
    even = choose(k, above(k, by, 0.0), zero, even);
    lilac_simt_value next[3] = {then, sub(k, left, by), op2(k, LILAC_SIMT_OP_ADD, even, quotients)};
    lilac_simt_value out = lilac_simt_loop_end(k->b, loop, next);
    *unit = m;
    *exponent = eb;
    *parity = choose(k, less, zero, out + 2);
    return choose(k, less, kept, out);
}

/* Infinite y leaves a finite x as it is; y = 0 and infinite x have no remainder. */
static lilac_simt_value finish(math_builder *k, lilac_simt_value x, lilac_simt_value y,
                               lilac_simt_value result) {
    lilac_simt_value a = magnitude(k, x), b = magnitude(k, y);
    result = choose(k, equals(k, b, INFINITE), x, result);
    lilac_simt_value none = either(k, equals(k, b, 0.0), equals(k, a, INFINITE));
    none = either(k, none, compare(k, LILAC_SIMT_UNO, x, y));
    return choose(k, none, num(k, 0.0 / 0.0), result);
}

lilac_simt_value lilac_lower_math_fmod(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value parity, unit, exponent;
    lilac_simt_value r =
        rest_of(k, magnitude(k, in[0]), magnitude(k, in[1]), &parity, &unit, &exponent);
    r = choose(k, below(k, r, 0.0), add(k, r, unit), r);
    if (exponent != 0) {
        r = lilac_lower_scale(k, r, exponent);
        r = choose(k, compare(k, LILAC_SIMT_LT, magnitude(k, in[0]), magnitude(k, in[1])),
                   magnitude(k, in[0]), r);
    }
    return finish(k, in[0], in[1], lilac_lower_sign_from(k, in[0], r));
}

lilac_simt_value lilac_lower_math_remainder(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value parity, unit, exponent;
    lilac_simt_value r =
        rest_of(k, magnitude(k, in[0]), magnitude(k, in[1]), &parity, &unit, &exponent);
    /* The nearest multiple, of two equally near the even one. */
    lilac_simt_value twice = magnitude(k, add(k, r, r));
    lilac_simt_value odd = compare(k, LILAC_SIMT_NE, with(k, LILAC_SIMT_OP_AND, parity, 1),
                                   integer(k, LILAC_SIMT_I64, 0));
    lilac_simt_value over = either(k, compare(k, LILAC_SIMT_GT, twice, unit),
                                   both(k, odd, compare(k, LILAC_SIMT_EQ, twice, unit)));
    lilac_simt_value other = sub(k, r, lilac_lower_sign_from(k, r, unit));
    r = choose(k, over, other, r);
    if (exponent != 0) {
        r = lilac_lower_scale(k, r, exponent);
        lilac_simt_value a = magnitude(k, in[0]);
        lilac_simt_value small =
            compare(k, LILAC_SIMT_LT, a, mul(k, magnitude(k, in[1]), num(k, 0.25)));
        r = choose(k, small, a, r);
    }
    /* |x| was divided: the sign of x turns the result, and marks a zero. */
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, cast(k, LILAC_SIMT_I64, in[0]), INT64_MIN);
    r = add(k, r, num(k, 0.0));
    r = cast(k, LILAC_SIMT_F64, op2(k, LILAC_SIMT_OP_XOR, cast(k, LILAC_SIMT_I64, r), sign));
    return finish(k, in[0], in[1], r);
}
