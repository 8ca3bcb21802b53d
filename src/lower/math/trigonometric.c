/* Sine, cosine and tangent of any argument, after Payne and Hanek (1983).
 *
 *   |x| = M 2^(E - 52)        x (2/π) mod 4  =  4 (M F mod 1)
 *
 * F: the bits of 2/π from the one of weight 2^(54 - E) on, which is the first that matters: all
 * before it give multiples of 4. 192 of them are found with shifts by E, which differs between
 * threads, over words that are constants; M F keeps 128 bits, of which the product's closest
 * approach to a multiple of π/2, some 2^-62, leaves 64. Then
 *
 *   quadrant = the two highest bits, rounded        r = (what is left) 2π
 *
 * and sin r, cos r are polynomials. Arguments below π/4 are r themselves. For f32 words have
 * 32 bits, M has 24, and 64 are kept.
 *
 * Of f64, only warps with an argument of 2^20 or more do this. For the others n π/2 is subtracted, with
 * π/2 = P + Q + R (Cody and Waite): |x| - n P is a multiple of 2^-53 below 1, and exact. */
#include "functions.h"
#include "numeric_casts.h"

#define TWO_PI  lilac_lower_pair_number(k, 0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52)
#define PI      lilac_lower_pair_number(k, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53)
#define QUARTER 0.78539816339744828

#define WORDS 20

/* words[0 … 2] of the bits of 2/π from bit j on, of which those of the first word are 0; words of
 * the type of j. `known`: how many of them there are, `steps`: the highest power of two that j's
 * word may be made of. */
static void window(math_builder *k, lilac_simt_value j, const uint64_t *known, uint32_t count,
                   uint32_t steps, lilac_simt_value *words) {
    lilac_simt_type type = kind(k, j);
    bool wide = type == LILAC_SIMT_I64;
    lilac_simt_value row[WORDS];
    for (uint32_t i = 0; i < count; i++) {
        row[i] = integer(k, type, (int64_t)known[i]);
    }
    lilac_simt_value index = with(k, LILAC_SIMT_OP_SHR_U, j, wide ? 6 : 5);
    for (uint32_t step = steps; step > 0; step /= 2) {
        lilac_simt_value moves =
            compare(k, LILAC_SIMT_NE, with(k, LILAC_SIMT_OP_AND, index, step), integer(k, type, 0));
        /* After this step the index is below `step`: so many words are still wanted. */
        for (uint32_t i = 0; i < 3 + step && i < count; i++) {
            uint32_t from = i + step < count ? i + step : count - 1;
            row[i] = choose(k, moves, row[from], row[i]);
        }
    }
    lilac_simt_value up = with(k, LILAC_SIMT_OP_AND, j, wide ? 63 : 31);
    lilac_simt_value down = op2(k, LILAC_SIMT_OP_SUB, integer(k, type, wide ? 64 : 32), up);
    for (uint32_t i = 0; i < 3; i++) {
        words[i] = either(k, op2(k, LILAC_SIMT_OP_SHL, row[i], up),
                          op2(k, LILAC_SIMT_OP_SHR_U, row[i + 1], down));
    }
}

static const uint64_t two_over_pi[WORDS] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

/* M of a float's bits, of which `digits` are its fraction's, and its exponent as it is encoded, in
 * the range where the window is wanted. */
static lilac_simt_value split(math_builder *k, lilac_simt_value bits, int64_t digits, int64_t bias,
                              lilac_simt_value *exponent) {
    *exponent = with(k, LILAC_SIMT_OP_SHR_U, bits, digits);
    *exponent = with(k, LILAC_SIMT_OP_MAX_U, *exponent, bias - 1);
    *exponent = with(k, LILAC_SIMT_OP_MIN_U, *exponent, 2 * bias);
    lilac_simt_value fraction = with(k, LILAC_SIMT_OP_AND, bits, (1LL << digits) - 1);
    return with(k, LILAC_SIMT_OP_OR, fraction, 1LL << digits);
}

/* M F mod 1 of f32: 24 bits times 96, of which 64 are kept. */
static lilac_simt_value fraction_f32(math_builder *k, lilac_simt_value a) {
    uint64_t known[8] = {0};
    for (uint32_t i = 1; i < 8; i++) {
        uint64_t word = two_over_pi[(i + 1) / 2];
        known[i] = i % 2 == 1 ? word >> 32 : word & 0xFFFFFFFF;
    }
    lilac_simt_value bits = cast(
        k, LILAC_SIMT_I32, lilac_lower_convert(k->l, a, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN));
    lilac_simt_value exponent, m = split(k, bits, 23, 127, &exponent);
    lilac_simt_value f[3];
    window(k, with(k, LILAC_SIMT_OP_SUB, exponent, 127 - 7), known, 8, 4, f);
    lilac_simt_value sum = lilac_simt_op2(k->b, LILAC_SIMT_OP_MULWIDE_U, LILAC_SIMT_I64, m, f[1]);
    lilac_simt_value low =
        convert(k, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, op2(k, LILAC_SIMT_OP_MULHI_U, m, f[2]));
    lilac_simt_value parts[2] = {integer(k, LILAC_SIMT_I32, 0), op2(k, LILAC_SIMT_OP_MUL, m, f[0])};
    sum = op2(k, LILAC_SIMT_OP_ADD, sum, low);
    return op2(k, LILAC_SIMT_OP_ADD, sum, lilac_simt_pack(k->b, LILAC_SIMT_I64, 2, parts));
}

/* The same of f64: 53 bits times 192, of which 128 are kept. */
static lilac_simt_value fraction_f64(math_builder *k, lilac_simt_value a, lilac_simt_value *low) {
    lilac_simt_value bits = cast(k, LILAC_SIMT_I64, a);
    lilac_simt_value exponent, m = split(k, bits, 52, 1023, &exponent);
    lilac_simt_value f[3];
    window(k, with(k, LILAC_SIMT_OP_SUB, exponent, 1023 - 10), two_over_pi, WORDS, 16, f);
    lilac_simt_value first = op2(k, LILAC_SIMT_OP_MUL, m, f[1]);
    *low = op2(k, LILAC_SIMT_OP_ADD, first, op2(k, LILAC_SIMT_OP_MULHI_U, m, f[2]));
    lilac_simt_value carry = compare(k, LILAC_SIMT_ULT, *low, first);
    lilac_simt_value high = op2(k, LILAC_SIMT_OP_ADD, op2(k, LILAC_SIMT_OP_MUL, m, f[0]),
                                op2(k, LILAC_SIMT_OP_MULHI_U, m, f[1]));
    return op2(k, LILAC_SIMT_OP_ADD, high, convert(k, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64, carry));
}

/* A fraction of 128 bits (high, low), as an angle: 2π times it. high is not negative. */
static pair angle(math_builder *k, lilac_simt_value high, lilac_simt_value low) {
    lilac_simt_value zeros = convert(k, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I64,
                                     lilac_simt_op1(k->b, LILAC_SIMT_OP_CLZ, LILAC_SIMT_I32, high));
    lilac_simt_value rest = op2(k, LILAC_SIMT_OP_SUB, integer(k, LILAC_SIMT_I64, 64), zeros);
    lilac_simt_value bits =
        either(k, op2(k, LILAC_SIMT_OP_SHL, high, zeros), op2(k, LILAC_SIMT_OP_SHR_U, low, rest));
    pair fraction = {
        mul(k,
            convert(k, LILAC_SIMT_OP_U2F, LILAC_SIMT_F64, with(k, LILAC_SIMT_OP_SHR_U, bits, 11)),
            num(k, 2048.0)),
        convert(k, LILAC_SIMT_OP_U2F, LILAC_SIMT_F64, with(k, LILAC_SIMT_OP_AND, bits, 2047))};
    pair r = lilac_lower_pair_multiply(k, fraction, TWO_PI);
    lilac_simt_value scale = lilac_lower_power_of_two(
        k, sub(k, num(k, -64.0), convert(k, LILAC_SIMT_OP_U2F, LILAC_SIMT_F64, zeros)));
    return (pair){mul(k, r.hi, scale), mul(k, r.lo, scale)};
}

/* |x| = quadrant π/2 + r: the quadrant modulo 4, as an i64. */
static pair reduced_any(math_builder *k, lilac_simt_value x, lilac_simt_value *quadrant) {
    lilac_simt_type type = LILAC_SIMT_I64;
    lilac_simt_value a = magnitude(k, x);
    lilac_simt_value low = 0;
    lilac_simt_value high = k->wide ? fraction_f64(k, a, &low) : fraction_f32(k, a);
    lilac_simt_value q =
        with(k, LILAC_SIMT_OP_SHR_U, with(k, LILAC_SIMT_OP_ADD, high, 1LL << 61), 62);
    high = op2(k, LILAC_SIMT_OP_SUB, high, with(k, LILAC_SIMT_OP_SHL, q, 62));
    pair r;
    if (k->wide) {
        /* Negative: the complement is one unit of 2^-128 off. */
        lilac_simt_value sign = with(k, LILAC_SIMT_OP_SHR_S, high, 63);
        r = angle(k, op2(k, LILAC_SIMT_OP_XOR, high, sign), op2(k, LILAC_SIMT_OP_XOR, low, sign));
        lilac_simt_value negative = compare(k, LILAC_SIMT_NE, sign, integer(k, type, 0));
        r = lilac_lower_pair_choose(k, negative, lilac_lower_pair_negate(k, r), r);
    } else {
        r = single(mul(k, convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F64, high),
                       num(k, 0x1.921fb54442d18p+2 * 0x1p-64)));
    }
    lilac_simt_value small = below(k, a, QUARTER);
    *quadrant = choose(k, small, integer(k, type, 0), q);
    r = lilac_lower_pair_choose(k, small, single(a), r);
    lilac_simt_value infinite = equals(k, a, 1.0 / 0.0);
    r.hi = choose(k, infinite, num(k, 0.0 / 0.0), r.hi);
    r.hi = choose(k, is_nan(k, x), x, r.hi);
    return r;
}

/* The same with a quadrant of i32, whose two low bits count, for numbers below 2^20. */
static pair reduced_near(math_builder *k, lilac_simt_value a, lilac_simt_value *quadrant) {
    const lilac_simt_value down =
        minus(k, lilac_lower_integer_near(k, a, 0x1.45f306dc9c883p-1, quadrant));
    const lilac_simt_value first = fma3(k, down, num(k, 0x1.921fb54442d18p+0), a);
    /* Near a multiple of π/2 the first two parts cancel: their difference keeps what it rounds off. */
    const pair second = lilac_lower_product(k, down, num(k, 0x1.1a62633145c07p-54));
    pair r = lilac_lower_fast_sum(k, first, second.hi);
    r.lo = fma3(k, down, num(k, -0x1.f1976b7ed8fbcp-110), add(k, r.lo, second.lo));
    return r;
}

/* |x| = quadrant π/2 + r; the two low bits of the quadrant count. */
static pair reduced(math_builder *k, lilac_simt_value x, lilac_simt_value *quadrant) {
    if (!k->wide) {
        return reduced_any(k, x, quadrant);
    }
    const lilac_simt_type types[] = {LILAC_SIMT_I32, LILAC_SIMT_F64, LILAC_SIMT_F64};
    const lilac_simt_value a = magnitude(k, x);
    const pair near = reduced_near(k, a, quadrant);
    const lilac_simt_value large = lilac_lower_not(k->l, below(k, a, 0x1p20));
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(k->b, lilac_simt_any_lane(k->b, large), 3, types);
    lilac_simt_value far_quadrant;
    const pair far = reduced_any(k, x, &far_quadrant);
    far_quadrant = convert(k, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, far_quadrant);
    const lilac_simt_value chosen[] = {choose(k, large, far_quadrant, *quadrant),
                                       choose(k, large, far.hi, near.hi),
                                       choose(k, large, far.lo, near.lo)};
    lilac_simt_if_else(k->b, branch, chosen);
    const lilac_simt_value usual[] = {*quadrant, near.hi, near.lo};
    const lilac_simt_value result = lilac_simt_if_end(k->b, branch, usual);
    *quadrant = result;
    return (pair){result + 1, result + 2};
}

/* sin r and cos r as unevaluated sums hi + lo. |lo| may exceed half a unit in the last place of hi. */
static pair sine_parts(math_builder *k, pair r) {
    lilac_simt_value z = mul(k, r.hi, r.hi);
    lilac_simt_value tail =
        mul(k, mul(k, r.hi, z), lilac_lower_polynomial_at(k, &lilac_lower_sin_polynomial, z));
    if (r.lo != 0) {
        tail = fma3(k, r.lo, fma3(k, z, num(k, -0.5), num(k, 1.0)), tail);
    }
    return (pair){r.hi, tail};
}

static pair cosine_parts(math_builder *k, pair r) {
    lilac_simt_value z = mul(k, r.hi, r.hi);
    lilac_simt_value tail =
        mul(k, mul(k, z, z), lilac_lower_polynomial_at(k, &lilac_lower_cos_polynomial, z));
    if (!k->wide) {
        return (pair){fma3(k, z, num(k, -0.5), num(k, 1.0)), tail};
    }
    pair half = lilac_lower_product(k, mul(k, r.hi, num(k, -0.5)), r.hi);
    pair sum = lilac_lower_fast_sum(k, num(k, 1.0), half.hi);
    lilac_simt_value low = add(k, add(k, sum.lo, half.lo), tail);
    if (r.lo != 0) {
        low = fma3(k, minus(k, r.hi), r.lo, low);
    }
    return (pair){sum.hi, low};
}

static lilac_simt_value bit_of(math_builder *k, lilac_simt_value a, int64_t bit) {
    return compare(k, LILAC_SIMT_NE, with(k, LILAC_SIMT_OP_AND, a, bit), integer(k, kind(k, a), 0));
}

static pair negate_if(math_builder *k, lilac_simt_value negative, pair a) {
    return lilac_lower_pair_choose(k, negative, lilac_lower_pair_negate(k, a), a);
}

/* sin and cos of quadrant π/2 + r. */
static void by_quadrant(math_builder *k, pair r, lilac_simt_value quadrant, pair *sine,
                        pair *cosine) {
    const pair near = sine_parts(k, r), level = cosine_parts(k, r);
    pair s = lilac_lower_fast_sum(k, near.hi, near.lo);
    pair c = lilac_lower_fast_sum(k, level.hi, level.lo);
    lilac_simt_value odd = bit_of(k, quadrant, 1), upper = bit_of(k, quadrant, 2);
    *sine = negate_if(k, upper, lilac_lower_pair_choose(k, odd, c, s));
    *cosine =
        negate_if(k, op2(k, LILAC_SIMT_OP_XOR, odd, upper), lilac_lower_pair_choose(k, odd, s, c));
}

void lilac_lower_sincos_pair(math_builder *k, lilac_simt_value x, pair *sine, pair *cosine) {
    lilac_simt_value quadrant;
    pair r = reduced(k, x, &quadrant);
    by_quadrant(k, r, quadrant, sine, cosine);
}

/* An odd function, from what it gives |x|. */
static lilac_simt_value odd_function(math_builder *k, lilac_simt_value x, lilac_simt_value result) {
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, cast(k, LILAC_SIMT_I64, x), INT64_MIN);
    return cast(k, LILAC_SIMT_F64,
                op2(k, LILAC_SIMT_OP_XOR, cast(k, LILAC_SIMT_I64, result), sign));
}

/* The sine of |x| + turns π/2. */
static lilac_simt_value turned_sine(math_builder *k, lilac_simt_value x, int64_t turns) {
    lilac_simt_value quadrant;
    const pair r = reduced(k, x, &quadrant);
    quadrant = with(k, LILAC_SIMT_OP_ADD, quadrant, turns);
    const lilac_simt_value s = lilac_lower_pair_value(k, sine_parts(k, r));
    const lilac_simt_value c = lilac_lower_pair_value(k, cosine_parts(k, r));
    const lilac_simt_value result = choose(k, bit_of(k, quadrant, 1), c, s);
    return choose(k, bit_of(k, quadrant, 2), minus(k, result), result);
}

lilac_simt_value lilac_lower_math_sin(math_builder *k, const lilac_simt_value *in) {
    return odd_function(k, in[0], turned_sine(k, in[0], 0));
}

lilac_simt_value lilac_lower_math_cos(math_builder *k, const lilac_simt_value *in) {
    return turned_sine(k, in[0], 1);
}

lilac_simt_value lilac_lower_math_tan(math_builder *k, const lilac_simt_value *in) {
    pair s, c;
    lilac_lower_sincos_pair(k, in[0], &s, &c);
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_simt_value result = lilac_lower_pair_value(k, lilac_lower_pair_divide(k, s, c));
    result = choose(k, below(k, a, 0x1p-30), a, result);
    return odd_function(k, in[0], result);
}

/* πa = n π/2 + πr with n the nearest whole number to 2a: both exact. Large numbers are even. */
void lilac_lower_sincospi_pair(math_builder *k, lilac_simt_value a, pair *sine, pair *cosine) {
    lilac_simt_value large = both(k, above(k, a, 0x1p60), below(k, a, 1.0 / 0.0));
    a = choose(k, large, num(k, 0.0), a);
    lilac_simt_value n = nearest(k, add(k, a, a));
    lilac_simt_value r = fma3(k, n, num(k, -0.5), a);
    lilac_simt_value four = op1(k, LILAC_SIMT_OP_FFLOOR, mul(k, n, num(k, 0.25)));
    lilac_simt_value quadrant =
        convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, fma3(k, four, num(k, -4.0), n));
    by_quadrant(k, lilac_lower_pair_multiply(k, single(r), PI), quadrant, sine, cosine);
}

lilac_simt_value lilac_lower_math_sinpi(math_builder *k, const lilac_simt_value *in) {
    pair s, c;
    lilac_simt_value a = magnitude(k, in[0]);
    lilac_lower_sincospi_pair(k, a, &s, &c);
    lilac_simt_value result = lilac_lower_pair_value(k, s);
    /* Below, the low part of the product would be lost. */
    result = choose(k, below(k, a, 0x1p-900), mul(k, a, num(k, 0x1.921fb54442d18p+1)), result);
    lilac_simt_value whole = compare(k, LILAC_SIMT_EQ, op1(k, LILAC_SIMT_OP_FFLOOR, a), a);
    result = choose(k, both(k, whole, below(k, a, 1.0 / 0.0)), num(k, 0.0), result);
    return odd_function(k, in[0], result);
}

lilac_simt_value lilac_lower_math_cospi(math_builder *k, const lilac_simt_value *in) {
    pair s, c;
    lilac_lower_sincospi_pair(k, magnitude(k, in[0]), &s, &c);
    /* At the zeros the sine of -0 may have come in: a cosine has no sign there. */
    return add(k, lilac_lower_pair_value(k, c), num(k, 0.0));
}
