/* Bessel functions of the first and of the second kind, of any order n ≥ 0.
 *
 *   Y    Y(k + 1) = 2k/x Y(k) - Y(k - 1)  from Y0 and Y1 on, stable for all k
 *   J    the same recurrence from J0 and J1 up to the order m = ⌊x⌋ (at least 1, at most n),
 *        where it is stable; then J(n) = J(m) r(m + 1) … r(n) with the ratios
 *        r(k) = J(k) / J(k - 1), computed backwards by the continued fraction
 *        r(k) = 1 / (2k/x - r(k + 1))  (Gautschi, "Computational aspects of three-term recurrence
 *        relations", 1967). Above x all ratios are between 0 and 1.
 *
 * The fraction starts at r(n + t) with t = 3 + 7.25 ∛n, the number of steps after which the error
 * of the start is below 2^-56 for x = n, where it decreases most slowly; for f32, t = 3 + 4.8 ∛n and
 * 2^-30. Where n > 4x + 800, J is below all numbers: (ex/2n)^n < 2^-1200; for f32, n > 4x + 100 is
 * enough.
 *
 * The loops repeat as long as a lane of the warp needs it. The order is a double, exact. */
#include "control.h"
#include "functions.h"
#include "numeric_casts.h"

#define INFINITE (1.0 / 0.0)

enum { MOST_CARRIED = 4 };

/* A loop whose carried doubles change in the lanes that `wanted` selects, until no lane does. */
typedef struct loop {
    lilac_simt_instruction *instruction;
    uint32_t count;
    lilac_simt_value first; /* of the carried values */
    lilac_simt_value goes_on;
} loop;

static void loop_begin(math_builder *k, loop *w, uint32_t count, const lilac_simt_value *initial) {
    static const lilac_simt_type types[MOST_CARRIED + 1] = {
        LILAC_SIMT_F64, LILAC_SIMT_F64, LILAC_SIMT_F64, LILAC_SIMT_F64, LILAC_SIMT_I1};
    w->count = count;
    w->instruction = lilac_simt_while_begin(k->b, count, initial, count + 1,
                                            types + MOST_CARRIED - count, &w->first);
}

static void loop_while(math_builder *k, loop *w, lilac_simt_value wanted) {
    lilac_simt_value passed[MOST_CARRIED + 1];
    wanted = lilac_lower_both(k->l, k->l->active, wanted);
    for (uint32_t i = 0; i < w->count; i++) {
        passed[i] = w->first + i;
    }
    passed[w->count] = wanted;
    lilac_simt_while_condition(k->b, w->instruction, lilac_simt_any_lane(k->b, wanted), passed,
                               &w->first);
    w->goes_on = w->first + w->count;
}

/* The first of the results. */
static lilac_simt_value loop_end(math_builder *k, const loop *w, const lilac_simt_value *next) {
    lilac_simt_value values[MOST_CARRIED];
    for (uint32_t i = 0; i < w->count; i++) {
        values[i] = choose(k, w->goes_on, next[i], w->first + i);
    }
    return lilac_simt_while_end(k->b, w->instruction, values);
}

/* f(order) by the recurrence from f(0) and f(1); `twice` is 2 / x. Stops at values below `least`.
 */
static lilac_simt_value recurrence(math_builder *k, lilac_simt_value order, lilac_simt_value twice,
                                   const lilac_simt_value *start, double least) {
    lilac_simt_value initial[3] = {num(k, 1.0), start[0], start[1]};
    loop w;
    loop_begin(k, &w, 3, initial);
    lilac_simt_value wanted = compare(k, LILAC_SIMT_LT, w.first, order);
    loop_while(k, &w, both(k, wanted, above(k, w.first + 2, least)));
    lilac_simt_value at = w.first, before = w.first + 1, now = w.first + 2;
    lilac_simt_value next[3] = {add(k, at, num(k, 1.0)), now,
                                fma3(k, mul(k, at, twice), now, minus(k, before))};
    lilac_simt_value results = loop_end(k, &w, next);
    return choose(k, equals(k, order, 0.0), start[0], results + 2);
}

/* r(m + 1) … r(n); from: the order at which the fraction starts, m: no ratio is wanted. */
static lilac_simt_value ratios(math_builder *k, lilac_simt_value from, lilac_simt_value n,
                               lilac_simt_value m, lilac_simt_value twice) {
    lilac_simt_value initial[3] = {from, num(k, 0.0), num(k, 1.0)};
    loop w;
    loop_begin(k, &w, 3, initial);
    loop_while(k, &w, compare(k, LILAC_SIMT_GT, w.first, m));
    lilac_simt_value at = w.first, ratio = w.first + 1, product = w.first + 2;
    ratio = quotient(k, num(k, 1.0), fma3(k, at, twice, minus(k, ratio)));
    lilac_simt_value inside = compare(k, LILAC_SIMT_LE, at, n);
    lilac_simt_value next[3] = {sub(k, at, num(k, 1.0)), ratio,
                                choose(k, inside, mul(k, product, ratio), product)};
    return loop_end(k, &w, next) + 2;
}

static lilac_simt_value steps_before(math_builder *k, lilac_simt_value n) {
    lilac_simt_value single_n =
        lilac_lower_convert(k->l, n, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    lilac_simt_value third = mul(k, op1(k, LILAC_SIMT_OP_FLOG2, single_n),
                                 lilac_lower_float(k->l, LILAC_SIMT_F32, 1.0 / 3.0));
    lilac_simt_value root = lilac_lower_convert(k->l, op1(k, LILAC_SIMT_OP_FEXP2, third),
                                                LILAC_SIMT_F64, LILAC_ROUND_NEAREST_EVEN);
    return op1(k, LILAC_SIMT_OP_FFLOOR, fma3(k, root, num(k, k->wide ? 7.25 : 4.8), num(k, 4.0)));
}

/* J of the order n ≥ 0, x from 2^-60 on, finite. */
static lilac_simt_value first_kind(math_builder *k, lilac_simt_value n, lilac_simt_value x) {
    lilac_simt_value start[2];
    lilac_lower_bessel_first(k, x, start);
    lilac_simt_value twice = quotient(k, num(k, 2.0), x);
    lilac_simt_value m = op2(k, LILAC_SIMT_OP_FMIN, n, op1(k, LILAC_SIMT_OP_FFLOOR, x));
    m = choose(k, equals(k, n, 0.0), n, op2(k, LILAC_SIMT_OP_FMAX, m, num(k, 1.0)));
    lilac_simt_value limit = fma3(k, x, num(k, 4.0), num(k, k->wide ? 800.0 : 100.0));
    lilac_simt_value none = compare(k, LILAC_SIMT_GT, n, limit);
    lilac_simt_value base = recurrence(k, choose(k, none, num(k, 0.0), m), twice, start, -INFINITE);
    lilac_simt_value needed = both(k, compare(k, LILAC_SIMT_GT, n, m), lilac_lower_not(k->l, none));
    lilac_simt_value from = choose(k, needed, add(k, n, steps_before(k, n)), m);
    lilac_simt_value value = mul(k, base, ratios(k, from, n, m, twice));
    return choose(k, none, num(k, 0.0), value);
}

lilac_simt_value lilac_lower_math_jn(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[1]);
    lilac_simt_value n = op2(k, LILAC_SIMT_OP_FMAX, in[0], num(k, 0.0));
    /* J(x) = J(2^s x) 2^-ns where both are so small that only the first term of the series counts.
     */
    lilac_simt_value exponent;
    lilac_simt_value mantissa = lilac_lower_mantissa(k, a, &exponent);
    lilac_simt_value tiny = below(k, a, 0x1p-60);
    lilac_simt_value x = choose(k, tiny, mul(k, mantissa, num(k, 0x1p-60)), a);
    x = choose(k, below(k, a, INFINITE), x, num(k, 1.0));
    lilac_simt_value value = first_kind(k, n, x);
    lilac_simt_value shift = mul(k, n, add(k, exponent, num(k, 60.0)));
    value = choose(k, tiny, lilac_lower_scale(k, value, shift), value);

    value = choose(k, equals(k, a, INFINITE), num(k, 0.0), value);
    lilac_simt_value half = mul(k, n, num(k, 0.5));
    lilac_simt_value odd = compare(k, LILAC_SIMT_UNE, op1(k, LILAC_SIMT_OP_FFLOOR, half), half);
    value = choose(k, both(k, odd, below(k, in[1], 0.0)), minus(k, value), value);
    lilac_simt_value none = either(k, below(k, in[0], 0.0), is_nan(k, a));
    return choose(k, none, num(k, 0.0 / 0.0), value);
}

lilac_simt_value lilac_lower_math_yn(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[1];
    lilac_simt_value start[2];
    lilac_lower_bessel_second(k, x, start);
    lilac_simt_value finite = below(k, x, INFINITE); /* at infinity all values are 0 */
    lilac_simt_value n = choose(k, finite, in[0], num(k, 0.0));
    lilac_simt_value value =
        recurrence(k, n, quotient(k, num(k, 2.0), x), start, k->wide ? -INFINITE : -0x1p200);
    return choose(k, below(k, in[0], 0.0), num(k, 0.0 / 0.0), value);
}
