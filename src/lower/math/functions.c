/* What the functions are made of: polynomials by Horner's rule, powers of two by their bits, and
 * sums of two doubles (Dekker, "A floating-point technique for extending the available precision",
 * 1971; Knuth's exact sum; products exact by a fused multiply-add). */
#include "functions.h"

lilac_simt_value lilac_lower_polynomial_at(math_builder *k, const lilac_lower_polynomial *p,
                                           lilac_simt_value x) {
    const double *c = k->wide ? p->wide : p->narrow;
    uint32_t count = k->wide ? p->wide_count : p->narrow_count;
    lilac_simt_value sum = num(k, c[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;) {
        sum = fma3(k, sum, x, num(k, c[i]));
    }
    return sum;
}

/* One LOP3: ((x ^ y) & sign bit) ^ y. */
lilac_simt_value lilac_lower_sign_from(math_builder *k, lilac_simt_value x, lilac_simt_value y) {
    bool wide = kind(k, x) == LILAC_SIMT_F64;
    lilac_simt_type type = wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
    int64_t top = wide ? INT64_MIN : INT32_MIN;
    lilac_simt_value differs = op2(k, LILAC_SIMT_OP_XOR, cast(k, type, x), cast(k, type, y));
    lilac_simt_value sign = with(k, LILAC_SIMT_OP_AND, differs, top);
    return cast(k, kind(k, x), op2(k, LILAC_SIMT_OP_XOR, cast(k, type, y), sign));
}

/* n + 1023 + 1.5·2^52 has n + 1023 in its low bits. */
lilac_simt_value lilac_lower_power_of_two(math_builder *k, lilac_simt_value n) {
    lilac_simt_value shifted = add(k, n, num(k, 6755399441055744.0 + 1023.0));
    return cast(k, LILAC_SIMT_F64,
                with(k, LILAC_SIMT_OP_SHL, cast(k, LILAC_SIMT_I64, shifted), 52));
}

/* In three steps of about the same size, |n| ≤ 3 · 1022: where a is near 1, only the last one rounds. */
lilac_simt_value lilac_lower_scale(math_builder *k, lilac_simt_value a, lilac_simt_value n) {
    lilac_simt_value bound[2] = {num(k, -2200.0), num(k, 2200.0)};
    n = op2(k, LILAC_SIMT_OP_FMAX, n, bound[0]);
    n = op2(k, LILAC_SIMT_OP_FMIN, n, bound[1]);
    lilac_simt_value third = nearest(k, mul(k, n, num(k, 1.0 / 3.0)));
    lilac_simt_value rest = sub(k, n, add(k, third, third));
    lilac_simt_value step = lilac_lower_power_of_two(k, third);
    return mul(k, mul(k, mul(k, a, step), step), lilac_lower_power_of_two(k, rest));
}

/* The nearest exponent of a normal number. */
static lilac_simt_value normal_exponent(math_builder *k, lilac_simt_type type, lilac_simt_value n) {
    const int32_t most = type == LILAC_SIMT_F64 ? 1023 : 127;
    lilac_simt_value held = with(k, LILAC_SIMT_OP_MIN_S, n, most);
    return with(k, LILAC_SIMT_OP_MAX_S, held, 1 - most);
}

lilac_simt_value lilac_lower_power_of_exponent(math_builder *k, lilac_simt_type type,
                                               lilac_simt_value n) {
    if (type == LILAC_SIMT_F32) {
        lilac_simt_value field = with(k, LILAC_SIMT_OP_ADD, n, 127);
        return cast(k, LILAC_SIMT_F32, with(k, LILAC_SIMT_OP_SHL, field, 23));
    }
    lilac_simt_value words[2] = {integer(k, LILAC_SIMT_I32, 0)};
    words[1] = with(k, LILAC_SIMT_OP_SHL, with(k, LILAC_SIMT_OP_ADD, n, 1023), 20);
    return cast(k, LILAC_SIMT_F64, lilac_simt_pack(k->b, LILAC_SIMT_I64, 2, words));
}

/* a times three powers of two whose exponents sum to n. The exponent of the last one is n, limited to those of
 * normal numbers, so that the first two products are exact if the result is not 0, and only the last is rounded. */
lilac_simt_value lilac_lower_load_exponent(math_builder *k, lilac_simt_value a,
                                           lilac_simt_value n) {
    const lilac_simt_type type = kind(k, a);
    lilac_simt_value last = normal_exponent(k, type, n);
    lilac_simt_value rest = op2(k, LILAC_SIMT_OP_SUB, n, last);
    lilac_simt_value first = normal_exponent(k, type, rest);
    lilac_simt_value second = normal_exponent(k, type, op2(k, LILAC_SIMT_OP_SUB, rest, first));
    lilac_simt_value result = mul(k, a, lilac_lower_power_of_exponent(k, type, second));
    result = mul(k, result, lilac_lower_power_of_exponent(k, type, first));
    return mul(k, result, lilac_lower_power_of_exponent(k, type, last));
}

lilac_simt_value lilac_lower_math_ldexp(math_builder *k, const lilac_simt_value *in) {
    return lilac_lower_load_exponent(k, in[0],
                                     convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, in[1]));
}

lilac_simt_value lilac_lower_mantissa(math_builder *k, lilac_simt_value a,
                                      lilac_simt_value *exponent) {
    lilac_simt_value tiny = below(k, magnitude(k, a), 0x1p-1022);
    lilac_simt_value number = choose(k, tiny, mul(k, a, num(k, 0x1p54)), a);
    lilac_simt_value bits = cast(k, LILAC_SIMT_I64, number);
    lilac_simt_value field =
        with(k, LILAC_SIMT_OP_AND, with(k, LILAC_SIMT_OP_SHR_U, bits, 52), 0x7FF);
    lilac_simt_value e = convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F64,
                                 convert(k, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, field));
    *exponent = sub(k, e, choose(k, tiny, num(k, 1077.0), num(k, 1023.0)));
    bits = with(k, LILAC_SIMT_OP_AND, bits, (int64_t)0x800FFFFFFFFFFFFF);
    return cast(k, LILAC_SIMT_F64, with(k, LILAC_SIMT_OP_OR, bits, 0x3FF0000000000000));
}

void lilac_lower_words(math_builder *k, lilac_simt_value a, lilac_simt_value *words) {
    lilac_simt_unpack(k->b, LILAC_SIMT_I32, cast(k, LILAC_SIMT_I64, a), 2, words);
}

lilac_simt_value lilac_lower_of_words(math_builder *k, lilac_simt_value low,
                                      lilac_simt_value high) {
    const lilac_simt_value words[] = {low, high};
    return cast(k, LILAC_SIMT_F64, lilac_simt_pack(k->b, LILAC_SIMT_I64, 2, words));
}

/* The integer is in the low bits of the sum with 1.5 · 2^52. */
lilac_simt_value lilac_lower_integer_near(math_builder *k, lilac_simt_value a, double factor,
                                          lilac_simt_value *word) {
    const lilac_simt_value offset = num(k, 6755399441055744.0);
    const lilac_simt_value shifted = fma3(k, a, num(k, factor), offset);
    lilac_simt_value words[2];
    lilac_lower_words(k, shifted, words);
    *word = words[0];
    return sub(k, shifted, offset);
}

/* ---- pairs ---------------------------------------------------------------------------------- */

pair lilac_lower_fast_sum(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    lilac_simt_value s = add(k, a, b);
    return (pair){s, k->wide ? sub(k, b, sub(k, s, a)) : 0};
}

pair lilac_lower_sum(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    lilac_simt_value s = add(k, a, b);
    if (!k->wide) {
        return single(s);
    }
    lilac_simt_value t = sub(k, s, a);
    return (pair){s, add(k, sub(k, a, sub(k, s, t)), sub(k, b, t))};
}

pair lilac_lower_product(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    lilac_simt_value p = mul(k, a, b);
    return (pair){p, k->wide ? fma3(k, a, b, minus(k, p)) : 0};
}

pair lilac_lower_pair_number(math_builder *k, double hi, double lo) {
    return (pair){num(k, hi), k->wide && lo != 0.0 ? num(k, lo) : 0};
}

static lilac_simt_value add_low(math_builder *k, lilac_simt_value a, lilac_simt_value b) {
    return a == 0 ? b : b == 0 ? a : add(k, a, b);
}

pair lilac_lower_pair_add(math_builder *k, pair a, pair b) {
    pair s = lilac_lower_sum(k, a.hi, b.hi);
    if (!k->wide) {
        return s;
    }
    return lilac_lower_fast_sum(k, s.hi, add_low(k, s.lo, add_low(k, a.lo, b.lo)));
}

pair lilac_lower_pair_multiply(math_builder *k, pair a, pair b) {
    pair p = lilac_lower_product(k, a.hi, b.hi);
    if (!k->wide) {
        return p;
    }
    if (b.lo != 0) {
        p.lo = fma3(k, a.hi, b.lo, p.lo);
    }
    if (a.lo != 0) {
        p.lo = fma3(k, a.lo, b.hi, p.lo);
    }
    return lilac_lower_fast_sum(k, p.hi, p.lo);
}

pair lilac_lower_pair_divide(math_builder *k, pair a, pair b) {
    lilac_simt_value q = quotient(k, a.hi, b.hi);
    if (!k->wide) {
        return single(q);
    }
    lilac_simt_value rest = fma3(k, minus(k, q), b.hi, a.hi);
    rest = add_low(k, rest, a.lo);
    if (b.lo != 0) {
        rest = fma3(k, minus(k, q), b.lo, rest);
    }
    return lilac_lower_fast_sum(k, q, quotient(k, rest, b.hi));
}

/* Of a positive pair. */
pair lilac_lower_pair_root(math_builder *k, pair a) {
    lilac_simt_value s = root_of(k, a.hi);
    if (!k->wide) {
        return single(s);
    }
    lilac_simt_value rest = add_low(k, fma3(k, minus(k, s), s, a.hi), a.lo);
    return lilac_lower_fast_sum(k, s, quotient(k, rest, add(k, s, s)));
}

pair lilac_lower_pair_negate(math_builder *k, pair a) {
    return (pair){minus(k, a.hi), a.lo == 0 ? 0 : minus(k, a.lo)};
}

pair lilac_lower_pair_choose(math_builder *k, lilac_simt_value condition, pair yes, pair no) {
    pair result = {choose(k, condition, yes.hi, no.hi), 0};
    if (yes.lo != 0 || no.lo != 0) {
        result.lo = choose(k, condition, yes.lo == 0 ? num(k, 0.0) : yes.lo,
                           no.lo == 0 ? num(k, 0.0) : no.lo);
    }
    return result;
}

pair lilac_lower_polynomial_pair(math_builder *k, const lilac_lower_polynomial *p, pair x,
                                 uint32_t pairs) {
    if (!k->wide) {
        return single(lilac_lower_polynomial_at(k, p, x.hi));
    }
    lilac_lower_polynomial rest = {p->wide + pairs, p->wide_count - pairs, NULL, 0};
    pair sum = single(lilac_lower_polynomial_at(k, &rest, x.hi));
    for (uint32_t i = pairs; i-- > 0;) {
        sum = lilac_lower_pair_add(k, single(num(k, p->wide[i])),
                                   lilac_lower_pair_multiply(k, x, sum));
    }
    return sum;
}

lilac_simt_value lilac_lower_pair_value(math_builder *k, pair a) {
    return a.lo == 0 ? a.hi : add(k, a.hi, a.lo);
}
