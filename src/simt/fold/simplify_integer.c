/* Simplification of integer sums, products, shifts, divisions and extremes; see simplify.c. */
#include "fold/simplify.h"

/* x op c, when `value` is that with a constant c: its definition. */
static const instruction *with_constant(const lilac_simt_builder *b, lilac_simt_value value,
                                        lilac_simt_opcode code, uint64_t *c) {
    const instruction *d = lilac_simt_defined_by(b, value, code);
    return d != NULL && constant(b, d->operands[1], c) ? d : NULL;
}

/* ---- sums ------------------------------------------------------------------------------- */

/* The flags of x + (c + d), from those of x + c and (x + c) + d: the sum is the same number, so it
 * still does not wrap when c + d itself does not. */
static uint32_t joined_flags(lilac_simt_type type, uint32_t flags, uint64_t c, uint64_t d) {
    uint64_t mask = lilac_simt_type_mask(type);
    int64_t sum;
    uint64_t unsigned_sum;
    uint32_t kept = 0;
    if ((flags & NSW) &&
        !__builtin_add_overflow(lilac_simt_signed(type, c), lilac_simt_signed(type, d), &sum) &&
        sum == lilac_simt_signed(type, (uint64_t)sum)) {
        kept |= NSW;
    }
    if ((flags & NUW) && !__builtin_add_overflow(c, d, &unsigned_sum) && unsigned_sum <= mask) {
        kept |= NUW;
    }
    return kept;
}

/* Do the known bits show that (most * factor + addend) is below 2^(width - 1)? */
static bool fits(lilac_simt_type type, uint64_t most, uint64_t factor, uint64_t addend) {
    uint64_t result;
    return !__builtin_mul_overflow(most, factor, &result) &&
           !__builtin_add_overflow(result, addend, &result) &&
           result <= lilac_simt_type_mask(type) >> 1;
}

static lilac_simt_value simplify_add(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_value x = like->operands[0];
    lilac_simt_value y = like->operands[1];
    uint64_t c, d;
    const instruction *sum;
    if (constant(b, y, &c)) {
        if (c == 0) {
            return x;
        }
        if ((sum = with_constant(b, x, LILAC_SIMT_OP_ADD, &d)) != NULL) {
            uint32_t flags = joined_flags(type, like->flags & sum->flags, d, c);
            return rewrite(like, LILAC_SIMT_OP_ADD, sum->operands[0],
                           lilac_simt_constant(b, type, c + d), flags, again);
        }
        return 0;
    }
    /* (x + c) + y → (x + y) + c, where no promise is lost that a widening could use */
    for (uint32_t side = 0; side < 2; side++) {
        sum = with_constant(b, like->operands[side], LILAC_SIMT_OP_ADD, &c);
        if (sum == NULL) {
            continue;
        }
        uint64_t most;
        bool small =
            !__builtin_add_overflow(lilac_simt_possible(b, sum->operands[0]),
                                    lilac_simt_possible(b, like->operands[!side]), &most) &&
            fits(type, most, 1, c);
        if (small || type == LILAC_SIMT_I64 || (sum->flags & like->flags & (NSW | NUW)) == 0) {
            like->operands[side] = sum->operands[0];
            lilac_simt_value inner =
                lilac_simt_op2(b, LILAC_SIMT_OP_ADD, type, like->operands[0], like->operands[1]);
            return rewrite(like, LILAC_SIMT_OP_ADD, inner, lilac_simt_constant(b, type, c),
                           small ? NSW | NUW : 0, again);
        }
    }
    /* x + (y - x) → y */
    for (uint32_t side = 0; side < 2; side++) {
        const instruction *difference =
            lilac_simt_defined_by(b, like->operands[side], LILAC_SIMT_OP_SUB);
        if (difference != NULL && difference->operands[1] == like->operands[!side]) {
            return difference->operands[0];
        }
    }
    return 0;
}

static lilac_simt_value simplify_sub(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_value x = like->operands[0];
    lilac_simt_value y = like->operands[1];
    uint64_t c;
    if (x == y) {
        return lilac_simt_constant(b, type, 0);
    }
    if (constant(b, y, &c)) {
        uint64_t smallest = (lilac_simt_type_mask(type) >> 1) + 1;
        return rewrite(like, LILAC_SIMT_OP_ADD, x, lilac_simt_constant(b, type, -c),
                       c != smallest ? like->flags & NSW : 0, again);
    }
    const instruction *sum = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_ADD);
    if (sum != NULL && sum->operands[0] == y) {
        return sum->operands[1];
    }
    if (sum != NULL && sum->operands[1] == y) {
        return sum->operands[0];
    }
    /* (x + c) - y → (x - y) + c */
    sum = with_constant(b, x, LILAC_SIMT_OP_ADD, &c);
    if (sum != NULL && (type == LILAC_SIMT_I64 || (sum->flags & like->flags & NSW) == 0)) {
        lilac_simt_value inner = lilac_simt_op2(b, LILAC_SIMT_OP_SUB, type, sum->operands[0], y);
        return rewrite(like, LILAC_SIMT_OP_ADD, inner, lilac_simt_constant(b, type, c), 0, again);
    }
    return 0;
}

/* ---- products and shifts ---------------------------------------------------------------- */

/* A 32-bit number widened: by sext or zext to i64, or multiplied by a constant on the way. */
static const instruction *widened(const lilac_simt_builder *b, lilac_simt_value value,
                                  lilac_simt_opcode code) {
    const instruction *d = lilac_simt_defined_by(b, value, code);
    return d != NULL && lilac_simt_type_of(b->kernel, d->operands[0]) == LILAC_SIMT_I32 ? d : NULL;
}

/* x * c as i64, where x is widened: one wide product. */
static lilac_simt_value wide_product(lilac_simt_builder *b, lilac_simt_value value, uint64_t c) {
    uint64_t before;
    const instruction *d = widened(b, value, LILAC_SIMT_OP_SEXT);
    int64_t sc = (int64_t)c;
    if (d != NULL && sc >= INT32_MIN && sc <= INT32_MAX) {
        return lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_S, LILAC_SIMT_I64, d->operands[0],
                              lilac_simt_constant(b, LILAC_SIMT_I32, c));
    }
    d = widened(b, value, LILAC_SIMT_OP_ZEXT);
    if (d != NULL && c <= UINT32_MAX) {
        return lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_U, LILAC_SIMT_I64, d->operands[0],
                              lilac_simt_constant(b, LILAC_SIMT_I32, c));
    }
    d = with_constant(b, value, LILAC_SIMT_OP_MULWIDE_S, &before);
    int64_t product;
    if (d != NULL && !__builtin_mul_overflow((int64_t)(int32_t)before, sc, &product) &&
        product >= INT32_MIN && product <= INT32_MAX) {
        return lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_S, LILAC_SIMT_I64, d->operands[0],
                              lilac_simt_constant(b, LILAC_SIMT_I32, (uint64_t)product));
    }
    d = with_constant(b, value, LILAC_SIMT_OP_MULWIDE_U, &before);
    uint64_t unsigned_product;
    if (d != NULL && !__builtin_mul_overflow(before, c, &unsigned_product) &&
        unsigned_product <= UINT32_MAX) {
        return lilac_simt_op2(b, LILAC_SIMT_OP_MULWIDE_U, LILAC_SIMT_I64, d->operands[0],
                              lilac_simt_constant(b, LILAC_SIMT_I32, unsigned_product));
    }
    return 0;
}

/* (x + c) times a constant → x times it, + c times it: always right in a ring; held back where
 * both operations promise not to wrap and a widening may still come. */
static lilac_simt_value distribute(lilac_simt_builder *b, const instruction *like,
                                   lilac_simt_type type, uint64_t factor) {
    uint64_t c;
    const instruction *sum = with_constant(b, like->operands[0], LILAC_SIMT_OP_ADD, &c);
    if (sum == NULL) {
        return 0;
    }
    bool small = fits(type, lilac_simt_possible(b, sum->operands[0]), factor, 0) &&
                 fits(type, c, factor, lilac_simt_possible(b, sum->operands[0]) * factor);
    if (!small && type != LILAC_SIMT_I64 && (sum->flags & like->flags & (NSW | NUW)) != 0) {
        return 0;
    }
    lilac_simt_value product =
        lilac_simt_op2(b, (lilac_simt_opcode)like->code, type, sum->operands[0], like->operands[1]);
    return lilac_simt_op2_flags(b, LILAC_SIMT_OP_ADD, type, product,
                                lilac_simt_constant(b, type, c * factor), small ? NSW | NUW : 0);
}

static lilac_simt_value simplify_mul(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_value x = like->operands[0];
    uint64_t mask = lilac_simt_type_mask(type);
    uint32_t width = lilac_simt_type_bits(type);
    uint64_t c, d;
    const instruction *inner;
    if (!constant(b, like->operands[1], &c)) {
        const instruction *p = widened(b, x, LILAC_SIMT_OP_SEXT);
        const instruction *q = widened(b, like->operands[1], LILAC_SIMT_OP_SEXT);
        if (type == LILAC_SIMT_I64 && p != NULL && q != NULL) {
            return rewrite(like, LILAC_SIMT_OP_MULWIDE_S, p->operands[0], q->operands[0], 0, again);
        }
        return 0;
    }
    if (c == 0) {
        return lilac_simt_constant(b, type, 0);
    }
    if (c == 1) {
        return x;
    }
    lilac_simt_value value = type == LILAC_SIMT_I64 ? wide_product(b, x, c) : 0;
    if (value == 0) {
        value = distribute(b, like, type, c);
    }
    if (value != 0) {
        return value;
    }
    if (is_power_of_two(c)) {
        uint32_t k = (uint32_t)__builtin_ctzll(c);
        return rewrite(like, LILAC_SIMT_OP_SHL, x, lilac_simt_constant(b, type, k),
                       k == width - 1 ? like->flags & NUW : like->flags & (NSW | NUW), again);
    }
    if (c == mask) {
        return rewrite(like, LILAC_SIMT_OP_SUB, lilac_simt_constant(b, type, 0), x,
                       like->flags & NSW, again);
    }
    if ((inner = with_constant(b, x, LILAC_SIMT_OP_MUL, &d)) != NULL ||
        ((inner = with_constant(b, x, LILAC_SIMT_OP_SHL, &d)) != NULL && d < width)) {
        uint64_t factor = inner->code == LILAC_SIMT_OP_SHL ? (uint64_t)1 << d : d;
        int64_t product = 0;
        bool exact = lilac_simt_signed(type, factor) != INT64_MIN >> (64 - width) &&
                     !__builtin_mul_overflow(lilac_simt_signed(type, factor),
                                             lilac_simt_signed(type, c), &product) &&
                     product == lilac_simt_signed(type, factor * c);
        return rewrite(like, LILAC_SIMT_OP_MUL, inner->operands[0],
                       lilac_simt_constant(b, type, factor * c),
                       exact ? like->flags & inner->flags & NSW : 0, again);
    }
    return 0;
}

static lilac_simt_value simplify_mulwide(lilac_simt_builder *b, instruction *like, bool *again) {
    bool is_signed = like->code == LILAC_SIMT_OP_MULWIDE_S;
    lilac_simt_value x = like->operands[0];
    uint32_t flag = is_signed ? NSW : NUW;
    uint64_t c, d;
    if (!constant(b, like->operands[1], &c)) {
        return 0;
    }
    if (c == 0) {
        return lilac_simt_constant(b, LILAC_SIMT_I64, 0);
    }
    if (c == 1) {
        return lilac_simt_op1(b, is_signed ? LILAC_SIMT_OP_SEXT : LILAC_SIMT_OP_ZEXT,
                              LILAC_SIMT_I64, x);
    }
    uint64_t wide = is_signed ? (uint64_t)(int64_t)(int32_t)c : c;
    const instruction *inner = with_constant(b, x, LILAC_SIMT_OP_ADD, &d);
    if (inner != NULL && (inner->flags & flag)) {
        uint64_t addend = (is_signed ? (uint64_t)(int64_t)(int32_t)d : d) * wide;
        lilac_simt_value product = lilac_simt_op2(b, (lilac_simt_opcode)like->code, LILAC_SIMT_I64,
                                                  inner->operands[0], like->operands[1]);
        return lilac_simt_op2_flags(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, product,
                                    lilac_simt_constant(b, LILAC_SIMT_I64, addend), flag);
    }
    inner = with_constant(b, x, LILAC_SIMT_OP_SHL, &d);
    if (inner != NULL && (inner->flags & flag) && d < (is_signed ? 31 : 32)) {
        d = (uint64_t)1 << d;
    } else {
        inner = with_constant(b, x, LILAC_SIMT_OP_MUL, &d);
        if (inner == NULL || !(inner->flags & flag)) {
            return 0;
        }
    }
    int64_t product = is_signed ? (int64_t)(int32_t)c * (int32_t)d : 0;
    bool narrow = is_signed ? product >= INT32_MIN && product <= INT32_MAX : c * d <= UINT32_MAX;
    if (narrow) {
        return rewrite(like, (lilac_simt_opcode)like->code, inner->operands[0],
                       lilac_simt_constant(b, LILAC_SIMT_I32, c * d), 0, again);
    }
    return 0;
}

static lilac_simt_value simplify_shl(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_value x = like->operands[0];
    uint32_t width = lilac_simt_type_bits(type);
    uint64_t k, d;
    if (!constant(b, like->operands[1], &k)) {
        return 0;
    }
    if (k == 0) {
        return x;
    }
    if (k >= width) {
        return lilac_simt_constant(b, type, 0);
    }
    lilac_simt_value value =
        type == LILAC_SIMT_I64 && k < 32 ? wide_product(b, x, (uint64_t)1 << k) : 0;
    if (value == 0) {
        value = distribute(b, like, type, (uint64_t)1 << k);
    }
    if (value != 0) {
        return value;
    }
    const instruction *inner = with_constant(b, x, LILAC_SIMT_OP_SHL, &d);
    if (inner != NULL && d < width) {
        return rewrite(like, LILAC_SIMT_OP_SHL, inner->operands[0],
                       lilac_simt_constant(b, type, d + k < width ? d + k : width),
                       like->flags & inner->flags & (NSW | NUW), again);
    }
    inner = with_constant(b, x, LILAC_SIMT_OP_MUL, &d);
    if (inner != NULL) {
        return rewrite(like, LILAC_SIMT_OP_MUL, inner->operands[0],
                       lilac_simt_constant(b, type, d << k), 0, again);
    }
    inner = with_constant(b, x, LILAC_SIMT_OP_XOR, &d);
    if (inner != NULL) {
        lilac_simt_value shifted =
            lilac_simt_op2(b, LILAC_SIMT_OP_SHL, type, inner->operands[0], like->operands[1]);
        return rewrite(like, LILAC_SIMT_OP_XOR, shifted, lilac_simt_constant(b, type, d << k), 0,
                       again);
    }
    inner = with_constant(b, x, LILAC_SIMT_OP_SHR_U, &d);
    if (inner != NULL && d == k) { /* down and up again: the low bits go */
        return rewrite(like, LILAC_SIMT_OP_AND, inner->operands[0],
                       lilac_simt_constant(b, type, ~low_bits((uint32_t)k)), 0, again);
    }
    return 0;
}

static lilac_simt_value simplify_shr(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_value x = like->operands[0];
    uint32_t width = lilac_simt_type_bits(type);
    uint64_t possible = lilac_simt_possible(b, x);
    bool is_signed = like->code == LILAC_SIMT_OP_SHR_S;
    uint64_t k, d;
    if (is_signed && possible >> (width - 1) == 0) {
        return rewrite(like, LILAC_SIMT_OP_SHR_U, x, like->operands[1], 0, again);
    }
    if (!constant(b, like->operands[1], &k)) {
        return 0;
    }
    if (k == 0) {
        return x;
    }
    if (!is_signed && (k >= width || possible >> k == 0)) {
        return lilac_simt_constant(b, type, 0);
    }
    if (k >= width) {
        return rewrite(like, LILAC_SIMT_OP_SHR_S, x, lilac_simt_constant(b, type, width - 1), 0,
                       again);
    }
    const instruction *inner = with_constant(b, x, (lilac_simt_opcode)like->code, &d);
    if (inner != NULL && d < width) {
        uint64_t sum = d + k;
        return rewrite(like, (lilac_simt_opcode)like->code, inner->operands[0],
                       lilac_simt_constant(b, type, sum < width ? sum : width), 0, again);
    }
    lilac_simt_value rest;
    if (!is_signed && lilac_simt_split_bits(b, x, &rest, &d)) {
        lilac_simt_value shifted =
            lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, type, rest, like->operands[1]);
        return rewrite(like, LILAC_SIMT_OP_XOR, shifted, lilac_simt_constant(b, type, d >> k), 0,
                       again);
    }
    inner = with_constant(b, x, LILAC_SIMT_OP_SHL, &d);
    if (!is_signed && inner != NULL && d == k) { /* up and down again: the high bits go */
        return rewrite(like, LILAC_SIMT_OP_AND, inner->operands[0],
                       lilac_simt_constant(b, type, low_bits(width - (uint32_t)k)), 0, again);
    }
    return 0;
}

static lilac_simt_value simplify_division(lilac_simt_builder *b, instruction *like,
                                          lilac_simt_type type, bool *again) {
    lilac_simt_value x = like->operands[0];
    lilac_simt_value y = like->operands[1];
    uint32_t width = lilac_simt_type_bits(type);
    bool is_signed = like->code == LILAC_SIMT_OP_DIV_S || like->code == LILAC_SIMT_OP_REM_S;
    bool remainder = like->code == LILAC_SIMT_OP_REM_S || like->code == LILAC_SIMT_OP_REM_U;
    uint64_t c, d;
    if (!constant(b, y, &c) || c == 0) {
        return 0;
    }
    if (c == 1) {
        return remainder ? lilac_simt_constant(b, type, 0) : x;
    }
    uint64_t possible = lilac_simt_possible(b, x);
    if (is_signed && possible >> (width - 1) == 0 && c >> (width - 1) == 0) {
        return rewrite(like, remainder ? LILAC_SIMT_OP_REM_U : LILAC_SIMT_OP_DIV_U, x, y, 0, again);
    }
    if (is_signed) {
        return 0;
    }
    if (possible < c) {
        return remainder ? x : lilac_simt_constant(b, type, 0);
    }
    if (is_power_of_two(c)) {
        return remainder
                   ? rewrite(like, LILAC_SIMT_OP_AND, x, lilac_simt_constant(b, type, c - 1), 0,
                             again)
                   : rewrite(like, LILAC_SIMT_OP_SHR_U, x,
                             lilac_simt_constant(b, type, (uint64_t)__builtin_ctzll(c)), 0, again);
    }
    const instruction *inner = with_constant(b, x, LILAC_SIMT_OP_DIV_U, &d);
    uint64_t product;
    if (!remainder && inner != NULL && d != 0 && !__builtin_mul_overflow(c, d, &product) &&
        product <= lilac_simt_type_mask(type)) {
        return rewrite(like, LILAC_SIMT_OP_DIV_U, inner->operands[0],
                       lilac_simt_constant(b, type, product), 0, again);
    }
    return 0;
}

static lilac_simt_value simplify_extreme(lilac_simt_builder *b, const instruction *like,
                                         lilac_simt_type type) {
    lilac_simt_value x = like->operands[0];
    uint64_t mask = lilac_simt_type_mask(type);
    bool is_signed = like->code == LILAC_SIMT_OP_MIN_S || like->code == LILAC_SIMT_OP_MAX_S;
    bool smaller = like->code == LILAC_SIMT_OP_MIN_S || like->code == LILAC_SIMT_OP_MIN_U;
    uint64_t c;
    if (x == like->operands[1]) {
        return x;
    }
    if (!constant(b, like->operands[1], &c)) {
        return 0;
    }
    uint64_t lowest = is_signed ? (mask >> 1) + 1 : 0;
    uint64_t highest = is_signed ? mask >> 1 : mask;
    uint64_t possible = lilac_simt_possible(b, x);
    if (is_signed && possible > mask >> 1) { /* may be negative */
        possible = highest;
    } else {
        lowest = 0;
        if (is_signed && c > mask >> 1) { /* x is at least 0, c below */
            return smaller ? like->operands[1] : x;
        }
    }
    if (c == lowest) {
        return smaller ? like->operands[1] : x;
    }
    bool above =
        is_signed ? lilac_simt_signed(type, c) >= lilac_simt_signed(type, possible) : c >= possible;
    return above ? (smaller ? x : like->operands[1]) : 0;
}

lilac_simt_value lilac_simt_simplify_integer(lilac_simt_builder *b, instruction *like,
                                             lilac_simt_type type, bool *again) {
    switch (like->code) {
    case LILAC_SIMT_OP_ADD:
        return type == LILAC_SIMT_I1 ? 0 : simplify_add(b, like, type, again);
    case LILAC_SIMT_OP_SUB:
        return type == LILAC_SIMT_I1 ? 0 : simplify_sub(b, like, type, again);
    case LILAC_SIMT_OP_MUL:
        return type == LILAC_SIMT_I1 ? 0 : simplify_mul(b, like, type, again);
    case LILAC_SIMT_OP_MULWIDE_S:
    case LILAC_SIMT_OP_MULWIDE_U:
        return simplify_mulwide(b, like, again);
    case LILAC_SIMT_OP_SHL:
        return type == LILAC_SIMT_I1 ? 0 : simplify_shl(b, like, type, again);
    case LILAC_SIMT_OP_SHR_S:
    case LILAC_SIMT_OP_SHR_U:
        return type == LILAC_SIMT_I1 ? 0 : simplify_shr(b, like, type, again);
    case LILAC_SIMT_OP_DIV_S:
    case LILAC_SIMT_OP_DIV_U:
    case LILAC_SIMT_OP_REM_S:
    case LILAC_SIMT_OP_REM_U:
        return type == LILAC_SIMT_I1 ? 0 : simplify_division(b, like, type, again);
    case LILAC_SIMT_OP_AND:
    case LILAC_SIMT_OP_OR:
    case LILAC_SIMT_OP_XOR:
        return lilac_simt_simplify_bits(b, like, type, again);
    case LILAC_SIMT_OP_MIN_S:
    case LILAC_SIMT_OP_MIN_U:
    case LILAC_SIMT_OP_MAX_S:
    case LILAC_SIMT_OP_MAX_U:
        return type == LILAC_SIMT_I1 ? 0 : simplify_extreme(b, like, type);
    default:
        return 0;
    }
}
