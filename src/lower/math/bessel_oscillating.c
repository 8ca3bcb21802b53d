/* Bessel functions of the first and of the second kind, of order 0 and 1.
 *
 *   x < 8   A few intervals. Each has one zero z of the function, a pair of doubles, and
 *             f(x) = (x - z) p(x - c)             or, for even and odd functions,
 *             f(x) = (x² - z²) p(x² - c) [x]
 *           so the relative error is small next to the zero, too. The second kind near 0:
 *             Y0(x) = 2/π log(x / z) J0(x) + (x² - z²) p(x² - c)
 *             Y1(x) = 2/π (log x J1(x) - 1/x) + x p(x²)
 *   x ≥ 8   Hankel's expansion (DLMF 10.17), χ = x - (2 order + 1) π/4:
 *             J(x) = √(2/πx) (P cos χ - Q sin χ)  Y(x) = √(2/πx) (P sin χ + Q cos χ)
 *           P and x Q are polynomials of 1/x². The absolute error is small; next to a zero the
 *           relative error is not.
 *
 * No lane computes an interval below or above 8 that no lane of its warp needs. */
#include "control.h"
#include "functions.h"
#include "numeric_casts.h"

#define INFINITE   (1.0 / 0.0)
#define PAIRS      2
#define FAR        8.0
#define TWO_BY_PI  lilac_lower_pair_number(k, 0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55)
#define PI         0x1.921fb54442d18p+1
#define ROOT_BY_PI 0x1.20dd750429b6dp-1 /* 1 / √π */

/* An interval of a function of the first or second kind. */
typedef struct interval {
    double end; /* the interval is below it */
    double zero, zero_low;
    double center;
    bool of_square; /* p has x² as its argument, the zeros are ±z */
    const lilac_lower_polynomial *p;
} interval;

#define P(name) &lilac_lower_##name##_polynomial
static const interval j0_intervals[] = {
    {4.0, 0x1.33d152e971b40p+1, -0x1.0f539d7da258ep-53, 8.0, true, P(j0_near)},
    {FAR, 0x1.6148f5b2c2e45p+2, 0x1.75054cd60a517p-54, 6.0, false, P(j0_middle)},
};
static const interval j1_intervals[] = {
    {5.0, 0x1.ea75575af6f09p+1, -0x1.60155a9d1b256p-53, 12.5, true, P(j1_near)},
    {FAR, 0x1.c0ff5f3b47250p+2, -0x1.b226d9d243827p-54, 6.5, false, P(j1_middle)},
};
static const interval y0_intervals[] = {
    {2.2, 0x1.c982eb8d417eap-1, 0x1.ea9d270347f83p-56, 2.0, true, P(y0_near)},
    {4.6, 0x1.fa9534d98569cp+1, -0x1.f06ae7804384ep-54, 3.375, false, P(y0_low)},
    {FAR, 0x1.c581dc4e72103p+2, -0x1.9774a495f56cfp-54, 6.25, false, P(y0_middle)},
};
static const interval y1_intervals[] = {
    {3.4, 0x1.193bed4dff243p+1, -0x1.bd1e50d219bfdp-55, 2.375, false, P(y1_low)},
    {FAR, 0x1.5b7fe4e87b02ep+2, 0x1.dfe7bac228e8cp-52, 5.75, false, P(y1_middle)},
};
#undef P
#define Y1_NEAR 1.4 /* below it, Y1 has no zero */

/* (x - z) p or (x² - z²) p. */
static pair on_interval(math_builder *k, lilac_simt_value x, const interval *i) {
    pair factor =
        lilac_lower_pair_add(k, single(x), lilac_lower_pair_number(k, -i->zero, -i->zero_low));
    pair t = single(x);
    if (i->of_square) {
        pair other = lilac_lower_sum(k, x, num(k, i->zero));
        factor = lilac_lower_pair_multiply(k, factor, other);
        t = lilac_lower_product(k, x, x);
    }
    t = lilac_lower_pair_add(k, t, single(num(k, -i->center)));
    return lilac_lower_pair_multiply(k, factor, lilac_lower_polynomial_pair(k, i->p, t, PAIRS));
}

/* ---- below 8 -------------------------------------------------------------------------------- */

static pair j0_near(math_builder *k, lilac_simt_value x) {
    return on_interval(k, x, &j0_intervals[0]);
}

static pair j1_near(math_builder *k, lilac_simt_value x) {
    return lilac_lower_pair_multiply(k, single(x), on_interval(k, x, &j1_intervals[0]));
}

static lilac_simt_value j0_below(math_builder *k, lilac_simt_value x) {
    lilac_simt_value near = lilac_lower_pair_value(k, j0_near(k, x));
    near = choose(k, below(k, x, 0x1p-28), num(k, 1.0), near);
    lilac_simt_value middle = lilac_lower_pair_value(k, on_interval(k, x, &j0_intervals[1]));
    return choose(k, below(k, x, j0_intervals[0].end), near, middle);
}

static lilac_simt_value j1_below(math_builder *k, lilac_simt_value x) {
    lilac_simt_value near = lilac_lower_pair_value(k, j1_near(k, x));
    near = choose(k, below(k, x, 0x1p-28), mul(k, x, num(k, 0.5)), near);
    lilac_simt_value middle = lilac_lower_pair_value(k, on_interval(k, x, &j1_intervals[1]));
    return choose(k, below(k, x, j1_intervals[0].end), near, middle);
}

/* log(x / z) of the zero z of Y0, accurate next to z. A tiny x is scaled up first, since log v
 * needs the low part of v; the scaled v is not next to 1. */
static pair log_by_zero(math_builder *k, lilac_simt_value x, const interval *i) {
    pair inverse = lilac_lower_pair_number(k, 0x1.1e7d3131dd6bap+0, 0x1.e5197d7b65facp-54);
    pair distance =
        lilac_lower_pair_add(k, single(x), lilac_lower_pair_number(k, -i->zero, -i->zero_low));
    lilac_simt_value tiny = k->wide ? below(k, x, 0x1p-500) : 0;
    lilac_simt_value scaled = k->wide ? choose(k, tiny, mul(k, x, num(k, 0x1p400)), x) : x;
    pair log = lilac_lower_log_near(k, lilac_lower_pair_multiply(k, single(scaled), inverse),
                                    lilac_lower_pair_multiply(k, distance, inverse));
    if (!k->wide) {
        return log;
    }
    pair back = lilac_lower_pair_number(k, -0x1.1542457337d43p+8, 0x1.e3948c376279dp-48);
    return lilac_lower_pair_choose(k, tiny, lilac_lower_pair_add(k, log, back), log);
}

static lilac_simt_value y0_below(math_builder *k, lilac_simt_value x) {
    const interval *rows = y0_intervals;
    pair first = lilac_lower_pair_multiply(k, log_by_zero(k, x, &rows[0]), j0_near(k, x));
    first = lilac_lower_pair_multiply(k, first, TWO_BY_PI);
    pair near = lilac_lower_pair_add(k, first, on_interval(k, x, &rows[0]));
    lilac_simt_value middle =
        choose(k, below(k, x, rows[1].end), lilac_lower_pair_value(k, on_interval(k, x, &rows[1])),
               lilac_lower_pair_value(k, on_interval(k, x, &rows[2])));
    return choose(k, below(k, x, rows[0].end), lilac_lower_pair_value(k, near), middle);
}

static lilac_simt_value y1_below(math_builder *k, lilac_simt_value x) {
    pair first = lilac_lower_pair_multiply(k, lilac_lower_log_pair(k, single(x)), j1_near(k, x));
    first = lilac_lower_pair_multiply(k, first, TWO_BY_PI);
    pair inverse = lilac_lower_pair_divide(k, TWO_BY_PI, single(x));
    pair near = lilac_lower_pair_add(k, first, lilac_lower_pair_negate(k, inverse));
    pair square = lilac_lower_product(k, x, x);
    pair rest = lilac_lower_polynomial_pair(k, &lilac_lower_y1_near_polynomial, square, PAIRS);
    near = lilac_lower_pair_add(k, near, lilac_lower_pair_multiply(k, single(x), rest));
    lilac_simt_value value = lilac_lower_pair_value(k, near);
    if (k->wide) { /* where x is tiny, the parts of the pairs overflow or underflow */
        lilac_simt_value tiny = quotient(k, num(k, -0x1.45f306dc9c883p-1), x);
        value = choose(k, below(k, x, 0x1p-900), tiny, value);
    }
    lilac_simt_value middle =
        choose(k, below(k, x, y1_intervals[0].end),
               lilac_lower_pair_value(k, on_interval(k, x, &y1_intervals[0])),
               lilac_lower_pair_value(k, on_interval(k, x, &y1_intervals[1])));
    return choose(k, below(k, x, Y1_NEAR), value, middle);
}

/* ---- from 8 on ------------------------------------------------------------------------------ */

/* 1 / √πx. For f32: from the approximation of f32 by one step of Newton's method. */
static lilac_simt_value amplitude(math_builder *k, lilac_simt_value x) {
    if (k->wide) {
        return quotient(k, num(k, ROOT_BY_PI), root_of(k, x));
    }
    lilac_simt_value rough = lilac_lower_convert(k->l, x, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    rough = op1(k, LILAC_SIMT_OP_FRSQRT, rough);
    rough = lilac_lower_convert(k->l, rough, LILAC_SIMT_F64, LILAC_ROUND_NEAREST_EVEN);
    lilac_simt_value half = mul(k, x, num(k, -0.5));
    lilac_simt_value step = fma3(k, mul(k, half, rough), rough, num(k, 1.5));
    return mul(k, mul(k, rough, num(k, ROOT_BY_PI)), step);
}

/* P a + Q b over √πx. */
static lilac_simt_value wave(math_builder *k, lilac_simt_value x, uint32_t order, pair a, pair b) {
    lilac_simt_value size = amplitude(k, x);
    lilac_simt_value inverse = mul(k, mul(k, size, size), num(k, PI));
    lilac_simt_value square = mul(k, inverse, inverse);
    lilac_simt_value p = lilac_lower_polynomial_at(
        k, order == 0 ? &lilac_lower_hankel_p0_polynomial : &lilac_lower_hankel_p1_polynomial,
        square);
    lilac_simt_value q = lilac_lower_polynomial_at(
        k, order == 0 ? &lilac_lower_hankel_q0_polynomial : &lilac_lower_hankel_q1_polynomial,
        square);
    lilac_simt_value second = mul(k, mul(k, inverse, q), lilac_lower_pair_value(k, b));
    lilac_simt_value sum = fma3(k, p, lilac_lower_pair_value(k, a), second);
    return choose(k, equals(k, x, INFINITE), num(k, 0.0), mul(k, sum, size));
}

/* sin x + cos x and sin x - cos x: √2 times the cosines and sines of χ, up to the sign. */
static void turned_waves(math_builder *k, lilac_simt_value x, pair *sum, pair *difference) {
    pair s, c;
    lilac_lower_sincos_pair(k, x, &s, &c);
    *sum = lilac_lower_pair_add(k, s, c);
    *difference = lilac_lower_pair_add(k, s, lilac_lower_pair_negate(k, c));
}

static lilac_simt_value j0_from(math_builder *k, lilac_simt_value x) {
    pair sum, difference;
    turned_waves(k, x, &sum, &difference);
    return wave(k, x, 0, sum, lilac_lower_pair_negate(k, difference));
}
static lilac_simt_value y0_from(math_builder *k, lilac_simt_value x) {
    pair sum, difference;
    turned_waves(k, x, &sum, &difference);
    return wave(k, x, 0, difference, sum);
}
static lilac_simt_value j1_from(math_builder *k, lilac_simt_value x) {
    pair sum, difference;
    turned_waves(k, x, &sum, &difference);
    return wave(k, x, 1, difference, sum);
}
static lilac_simt_value y1_from(math_builder *k, lilac_simt_value x) {
    pair sum, difference;
    turned_waves(k, x, &sum, &difference);
    return wave(k, x, 1, lilac_lower_pair_negate(k, sum), difference);
}

/* ---- the functions -------------------------------------------------------------------------- */

enum { MOST_FUNCTIONS = 2 };

typedef struct ranges {
    lilac_simt_value (*below)(math_builder *k, lilac_simt_value x),
        (*from)(math_builder *k, lilac_simt_value x);
} ranges;

static const ranges first_kind[] = {{j0_below, j0_from}, {j1_below, j1_from}};
static const ranges second_kind[] = {{y0_below, y0_from}, {y1_below, y1_from}};

/* The functions on one side of 8 if a lane of the warp has the predicate, otherwise 0. */
static void where_wanted(math_builder *k, lilac_simt_value wanted, lilac_simt_value x, bool is_far,
                         const ranges *rows, uint32_t count, lilac_simt_value *out) {
    static const lilac_simt_type types[MOST_FUNCTIONS] = {LILAC_SIMT_F64, LILAC_SIMT_F64};
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(k->b, lilac_simt_any_lane(k->b, wanted), count, types);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = is_far ? rows[i].from(k, x) : rows[i].below(k, x);
    }
    lilac_simt_if_else(k->b, branch, out);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = num(k, 0.0);
    }
    lilac_simt_value first = lilac_simt_if_end(k->b, branch, out);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = first + i;
    }
}

/* The functions of x ≥ 0. */
static void by_range(math_builder *k, lilac_simt_value x, const ranges *rows, uint32_t count,
                     lilac_simt_value *out) {
    lilac_simt_value is_far = compare(k, LILAC_SIMT_GE, x, num(k, FAR));
    lilac_simt_value far[MOST_FUNCTIONS];
    where_wanted(k, is_far, x, true, rows, count, far);
    where_wanted(k, below(k, x, FAR), x, false, rows, count, out);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = choose(k, is_far, far[i], out[i]);
    }
}

/* Of the second kind there is no value below 0. */
static lilac_simt_value with_pole(math_builder *k, lilac_simt_value x, lilac_simt_value value) {
    value = choose(k, equals(k, x, 0.0), num(k, -INFINITE), value);
    return choose(k, compare(k, LILAC_SIMT_GE, x, num(k, 0.0)), value, num(k, 0.0 / 0.0));
}

void lilac_lower_bessel_first(math_builder *k, lilac_simt_value x, lilac_simt_value *values) {
    by_range(k, x, first_kind, 2, values);
}

void lilac_lower_bessel_second(math_builder *k, lilac_simt_value x, lilac_simt_value *values) {
    by_range(k, x, second_kind, 2, values);
    values[0] = with_pole(k, x, values[0]);
    values[1] = with_pole(k, x, values[1]);
}

lilac_simt_value lilac_lower_math_j0(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value a = magnitude(k, in[0]), value;
    by_range(k, a, first_kind, 1, &value);
    return choose(k, is_nan(k, a), a, value);
}

lilac_simt_value lilac_lower_math_j1(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value x = in[0], value;
    by_range(k, magnitude(k, x), first_kind + 1, 1, &value);
    value = choose(k, below(k, x, 0.0), minus(k, value), value);
    /* -0 is not below 0. */
    return choose(k, either(k, is_nan(k, x), equals(k, x, 0.0)), x, value);
}

lilac_simt_value lilac_lower_math_y0(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value value;
    by_range(k, in[0], second_kind, 1, &value);
    return with_pole(k, in[0], value);
}

lilac_simt_value lilac_lower_math_y1(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value value;
    by_range(k, in[0], second_kind + 1, 1, &value);
    return with_pole(k, in[0], value);
}
