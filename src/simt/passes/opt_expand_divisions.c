/* Divisions without a division. An assembler computes each division as a sequence of about fifteen
 * instructions with conversions to float and back (32 bits) or as a call (64 bits), also where the
 * divisor is a constant.
 *
 *     %q = div_u %x, 77 : i32    →   %h = mulhi_u %x, m : i32         m = ceil(2^(32+s) / 77)
 *                                    %q = shr_u %h, s : i32
 *     %r = rem_u %x, 77 : i32    →   %r = sub %x, %q * 77 : i32
 *     %a = div_u %x, %d : i32    →   %m = div_u 0xFFFFFFFF, %d : i32  once for all divisions by %d
 *     %b = div_u %y, %d : i32        %h = mulhi_u %x, %m : i32        %a is %h or %h + 1
 *     …                              …
 *
 * Theorem (Granlund, Montgomery 1994; Hacker's Delight 10-9). Let k = N + s, m = ceil(2^k / d) and
 * e = m d - 2^k, so that 0 < e <= d if d is not a power of two (m is floor + 1). For 0 <= x <= X:
 * x m / 2^k = x / d + x e / (d 2^k). The second term is below 1 / d if e X < 2^k; then no integer
 * lies between x / d and the sum, so floor(x m / 2^k) = floor(x / d). For -2^(N-1) <= x < 0 and
 * e 2^(N-1) <= 2^k, the same argument yields floor(x m / 2^k) + 1 = x / d, rounded towards zero.
 *
 * Lemma. Let m = floor((2^N - 1) / d). Then x / d - x m / 2^N <= x / 2^N < 1, so the high half of
 * x m is floor(x / d) or one less; the remainder that it leaves decides.
 *
 * The walk is that of opt_fold.c. */
#include "fold/simplify.h"

#include <string.h>

/* ---- multipliers ------------------------------------------------------------------------ */

/* floor(2^(width + shift) / d) and what it leaves. */
typedef struct ratio {
    uint64_t quotient, rest;
    bool wide; /* the quotient has more than `width` bits */
} ratio;

static void double_ratio(ratio *r, uint32_t width, uint64_t d) {
    bool over = r->rest >= d - r->rest;
    r->wide |= r->quotient >> (width - 1) != 0;
    r->quotient = (r->quotient << 1 | over) & low_bits(width);
    r->rest = over ? r->rest - (d - r->rest) : r->rest << 1;
}

static ratio power_over(uint32_t width, uint64_t d) {
    ratio r = {.quotient = 0, .rest = 1}; /* 1 / d, for d > 1 */
    for (uint32_t k = 0; k < width; k++) {
        double_ratio(&r, width, d);
    }
    return r;
}

/* The smallest shift for which the multiplier quotient + 1 is exact for 0 <= x <= most, d not a
 * power of two. False: the multiplier has more than `width` bits. */
static bool find_unsigned(ratio *r, uint32_t *shift, uint32_t width, uint64_t d, uint64_t most) {
    *r = power_over(width, d);
    for (*shift = 0; *shift < width; ++*shift) {
        if (r->wide || r->quotient == low_bits(width)) {
            return false;
        }
        if (lilac_simt_high_unsigned(width, d - r->rest, most) >> *shift == 0) {
            return true;
        }
        double_ratio(r, width, d);
    }
    return false;
}

/* The same for all signed numbers; the multiplier has at most `width` bits. */
static void find_signed(ratio *r, uint32_t *shift, uint32_t width, uint64_t d) {
    *r = power_over(width, d);
    *shift = 0;
    while (d - r->rest > (uint64_t)2 << *shift) {
        double_ratio(r, width, d);
        ++*shift;
    }
}

/* ---- building --------------------------------------------------------------------------- */

typedef struct division {
    lilac_simt_builder *b;
    lilac_simt_type type;
    uint32_t width;
} division;

static lilac_simt_value two(const division *v, lilac_simt_opcode code, lilac_simt_value a,
                            lilac_simt_value c) {
    return lilac_simt_op2(v->b, code, v->type, a, c);
}

static lilac_simt_value with(const division *v, lilac_simt_opcode code, lilac_simt_value a,
                             uint64_t number) {
    return two(v, code, a, lilac_simt_constant(v->b, v->type, number));
}

static lilac_simt_value negated(const division *v, lilac_simt_value a) {
    return two(v, LILAC_SIMT_OP_SUB, lilac_simt_constant(v->b, v->type, 0), a);
}

/* ---- constant divisors ------------------------------------------------------------------ */

static lilac_simt_value quotient_unsigned(const division *v, lilac_simt_value x, uint64_t d) {
    uint64_t most = lilac_simt_possible(v->b, x);
    ratio r;
    uint32_t shift;
    if (most < d) {
        return lilac_simt_constant(v->b, v->type, 0);
    }
    if (is_power_of_two(d)) {
        return with(v, LILAC_SIMT_OP_SHR_U, x, (uint64_t)__builtin_ctzll(d));
    }
    if (find_unsigned(&r, &shift, v->width, d, most)) {
        return with(v, LILAC_SIMT_OP_SHR_U, with(v, LILAC_SIMT_OP_MULHI_U, x, r.quotient + 1),
                    shift);
    }
    if (d % 2 == 0) { /* x / 2^k has fewer bits, so its multiplier has at most `width` */
        uint32_t even = (uint32_t)__builtin_ctzll(d);
        return quotient_unsigned(v, with(v, LILAC_SIMT_OP_SHR_U, x, even), d >> even);
    }
    /* The multiplier is 2^width + c. x c / 2^width is `high`; the mean of x and high cannot
     * overflow. */
    r = power_over(v->width, d);
    for (shift = 0; low_bits(shift) < d; shift++) { /* up to 2^shift > d */
        double_ratio(&r, v->width, d);
    }
    lilac_simt_value high = with(v, LILAC_SIMT_OP_MULHI_U, x, r.quotient + 1);
    lilac_simt_value half = with(v, LILAC_SIMT_OP_SHR_U, two(v, LILAC_SIMT_OP_SUB, x, high), 1);
    return with(v, LILAC_SIMT_OP_SHR_U, two(v, LILAC_SIMT_OP_ADD, half, high), shift - 1);
}

/* 2^k - 1 if x is negative, else 0. */
static lilac_simt_value bias(const division *v, lilac_simt_value x, uint32_t k) {
    lilac_simt_value sign = k == 1 ? x : with(v, LILAC_SIMT_OP_SHR_S, x, v->width - 1);
    return with(v, LILAC_SIMT_OP_SHR_U, sign, v->width - k);
}

/* x / d rounded towards zero, d > 1 (up to 2^(width - 1)). */
static lilac_simt_value quotient_signed(const division *v, lilac_simt_value x, uint64_t d) {
    ratio r;
    uint32_t shift;
    if (is_power_of_two(d)) {
        uint32_t k = (uint32_t)__builtin_ctzll(d);
        return with(v, LILAC_SIMT_OP_SHR_S, two(v, LILAC_SIMT_OP_ADD, x, bias(v, x, k)), k);
    }
    find_signed(&r, &shift, v->width, d);
    lilac_simt_value high = with(v, LILAC_SIMT_OP_MULHI_S, x, r.quotient + 1);
    if ((r.quotient + 1) >> (v->width - 1) != 0) { /* read as a number that is 2^width less */
        high = two(v, LILAC_SIMT_OP_ADD, high, x);
    }
    lilac_simt_value rounded = with(v, LILAC_SIMT_OP_SHR_S, high, shift);
    return two(v, LILAC_SIMT_OP_ADD, rounded, with(v, LILAC_SIMT_OP_SHR_U, x, v->width - 1));
}

static lilac_simt_value by_constant(const division *v, lilac_simt_opcode code, lilac_simt_value x,
                                    uint64_t c) {
    bool is_signed = code == LILAC_SIMT_OP_DIV_S || code == LILAC_SIMT_OP_REM_S;
    bool remainder = code == LILAC_SIMT_OP_REM_S || code == LILAC_SIMT_OP_REM_U;
    bool negative = is_signed && c >> (v->width - 1) != 0;
    uint64_t d = (negative ? -c : c) & low_bits(v->width);
    if (d <= 1) { /* 1 is folded, 0 is undefined; x / -1, x % -1 */
        return d == 0 ? 0 : remainder ? lilac_simt_constant(v->b, v->type, 0) : negated(v, x);
    }
    if (is_signed && remainder && is_power_of_two(d)) {
        lilac_simt_value up = bias(v, x, (uint32_t)__builtin_ctzll(d));
        lilac_simt_value low = with(v, LILAC_SIMT_OP_AND, two(v, LILAC_SIMT_OP_ADD, x, up), d - 1);
        return two(v, LILAC_SIMT_OP_SUB, low, up);
    }
    bool natural = lilac_simt_possible(v->b, x) >> (v->width - 1) == 0;
    lilac_simt_value quotient =
        is_signed && !natural ? quotient_signed(v, x, d) : quotient_unsigned(v, x, d);
    if (remainder) {
        return two(v, LILAC_SIMT_OP_SUB, x, with(v, LILAC_SIMT_OP_MUL, quotient, d));
    }
    return negative ? negated(v, quotient) : quotient;
}

/* A division by a constant, in 32 bits if it has fewer bits or if its operands fit. */
static lilac_simt_value expand_constant(const division *v, lilac_simt_opcode code,
                                        lilac_simt_value x, uint64_t c) {
    bool is_signed = code == LILAC_SIMT_OP_DIV_S || code == LILAC_SIMT_OP_REM_S;
    uint64_t possible = lilac_simt_possible(v->b, x);
    lilac_simt_opcode extend = is_signed ? LILAC_SIMT_OP_SEXT : LILAC_SIMT_OP_ZEXT;
    lilac_simt_value narrow = 0;
    if (v->width < 32) {
        narrow = lilac_simt_op1(v->b, extend, LILAC_SIMT_I32, x);
        c = is_signed ? (uint64_t)lilac_simt_signed(v->type, c) : c;
    } else if (v->width == 64 && possible <= UINT32_MAX && c <= UINT32_MAX) {
        narrow = lilac_simt_op1(v->b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, x);
        code = code == LILAC_SIMT_OP_DIV_S   ? LILAC_SIMT_OP_DIV_U
               : code == LILAC_SIMT_OP_REM_S ? LILAC_SIMT_OP_REM_U
                                             : code;
        extend = LILAC_SIMT_OP_ZEXT;
    }
    if (narrow == 0) {
        return by_constant(v, code, x, c);
    }
    division inner = {v->b, LILAC_SIMT_I32, 32};
    lilac_simt_value result = by_constant(&inner, code, narrow, c & UINT32_MAX);
    if (result == 0) {
        return 0;
    }
    return v->width < 32 ? lilac_simt_op1(v->b, LILAC_SIMT_OP_TRUNC, v->type, result)
                         : lilac_simt_op1(v->b, extend, v->type, result);
}

/* ---- other divisors --------------------------------------------------------------------- */

/* The numbers of divisions by one value from which a common reciprocal is cheaper than the
 * assembler's sequences, which share the conversions of the divisor. In 32 bits those are 11
 * instructions and 9 for each division (13 signed), with a reciprocal 21 and 5 (10). In 64 bits
 * each is a call. */
enum { ENOUGH_UNSIGNED = 3, ENOUGH_SIGNED = 5, ENOUGH_WIDE = 2 };

static lilac_simt_value magnitude(const division *v, lilac_simt_value x) {
    return two(v, LILAC_SIMT_OP_MAX_S, x, negated(v, x));
}

static lilac_simt_value choose(const division *v, lilac_simt_value condition, lilac_simt_value yes,
                               lilac_simt_value no) {
    return lilac_simt_op3(v->b, LILAC_SIMT_OP_SELECT, v->type, condition, yes, no);
}

static lilac_simt_value by_reciprocal(const division *v, lilac_simt_value x, lilac_simt_value d,
                                      bool remainder) {
    lilac_simt_value ones = lilac_simt_constant(v->b, v->type, low_bits(v->width));
    lilac_simt_value high = two(v, LILAC_SIMT_OP_MULHI_U, x, two(v, LILAC_SIMT_OP_DIV_U, ones, d));
    lilac_simt_value rest = two(v, LILAC_SIMT_OP_SUB, x, two(v, LILAC_SIMT_OP_MUL, high, d));
    lilac_simt_value over = lilac_simt_compare_values(v->b, LILAC_SIMT_UGE, rest, d);
    return remainder ? choose(v, over, two(v, LILAC_SIMT_OP_SUB, rest, d), rest)
                     : choose(v, over, with(v, LILAC_SIMT_OP_ADD, high, 1), high);
}

static lilac_simt_value expand_shared(const division *v, lilac_simt_opcode code, lilac_simt_value x,
                                      lilac_simt_value d, uint32_t uses) {
    bool is_signed = code == LILAC_SIMT_OP_DIV_S || code == LILAC_SIMT_OP_REM_S;
    bool remainder = code == LILAC_SIMT_OP_REM_S || code == LILAC_SIMT_OP_REM_U;
    uint32_t sign = v->width - 1;
    bool first = is_signed && lilac_simt_possible(v->b, x) >> sign != 0;
    bool second = is_signed && lilac_simt_possible(v->b, d) >> sign != 0;
    uint32_t enough = v->width == 64    ? ENOUGH_WIDE
                      : first || second ? ENOUGH_SIGNED
                                        : ENOUGH_UNSIGNED;
    uint64_t c;
    if (v->width < 32 || uses < enough || constant(v->b, x, &c)) {
        return 0; /* a constant dividend: the reciprocal itself */
    }
    const lilac_simt_value divisor = second ? magnitude(v, d) : d;
    const lilac_simt_value dividend = first ? magnitude(v, x) : x;
    lilac_simt_value result = by_reciprocal(v, dividend, divisor, remainder);
    second = second && !remainder; /* a remainder has the sign of the dividend */
    if (!first && !second) {
        return result;
    }
    lilac_simt_value signs = !second ? x : !first ? d : two(v, LILAC_SIMT_OP_XOR, x, d);
    lilac_simt_value minus = lilac_simt_compare_values(v->b, LILAC_SIMT_LT, signs,
                                                       lilac_simt_constant(v->b, v->type, 0));
    return choose(v, minus, negated(v, result), result);
}

lilac_simt_value lilac_simt_expand_division(lilac_simt_builder *b, const instruction *i,
                                            lilac_simt_type type,
                                            const lilac_simt_divisors *divisors) {
    lilac_simt_opcode code = (lilac_simt_opcode)i->code;
    uint64_t c;
    if (!lilac_simt_has_trait(code, LILAC_SIMT_DIVIDES) || type == LILAC_SIMT_I1) {
        return 0;
    }
    const division v = {b, type, lilac_simt_type_bits(type)};
    if (constant(b, i->operands[1], &c)) {
        return expand_constant(&v, code, i->operands[0], c);
    }
    lilac_simt_value d = i->operands[1];
    return expand_shared(&v, code, i->operands[0], d, d < divisors->count ? divisors->uses[d] : 0);
}

/* ---- the pass --------------------------------------------------------------------------- */

static bool count_divisors(const lilac_simt_body *body, uint32_t *uses) {
    bool found = false;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (lilac_simt_has_trait(i->code, LILAC_SIMT_DIVIDES)) {
            found = true;
            uses[i->operands[1]]++;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            found |= count_divisors(i->bodies[k], uses);
        }
    }
    return found;
}

bool lilac_simt_opt_expand_divisions(lilac_simt_kernel *kernel) {
    size_t size = sizeof(uint32_t) * kernel->value_count;
    uint32_t *uses = lilac_heap_grow(NULL, size);
    memset(uses, 0, size);
    const lilac_simt_divisors divisors = {uses, kernel->value_count};
    bool changed = count_divisors(kernel->body, uses) && lilac_simt_fold_kernel(kernel, &divisors);
    lilac_heap_free(uses);
    return changed;
}
