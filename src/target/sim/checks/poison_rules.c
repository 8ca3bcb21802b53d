/* Which bits of a result may depend on bits of poison in the operands.
 *
 * Between least(x) = value & ~poison and most(x) = value | poison lie all numbers that x may be. A
 * rule may name a bit that cannot differ (then a report may be false), but misses none that can.
 *
 *   and or xor    a bit of the result by the bits of the operands
 *   add sub       the bits of poison, and those that differ between the least and the greatest sum
 *   mul           all bits from the lowest one that a bit of poison reaches
 *   shl shr prmt  moved with the bits; all, when the amount or the selector is poison
 *   min max cmp   none, where the intervals [least, most] do not overlap
 *   floats        all bits of an element, when a bit of an operand's element is poison */
#include "checks/poison.h"

static uint64_t ones(uint32_t bits) {
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static uint64_t least(lilac_sim_mixed x) {
    return x.value & ~x.poison;
}

static uint64_t most(lilac_sim_mixed x) {
    return x.value | x.poison;
}

static uint32_t zeros_below(uint64_t bits) {
    return bits ? (uint32_t)__builtin_ctzll(bits) : 64;
}

static uint64_t extend(uint64_t bits, uint32_t width) {
    uint32_t shift = 64 - width;
    return (uint64_t)((int64_t)(bits << shift) >> shift);
}

static lilac_sim_mixed extend_both(lilac_sim_mixed x, uint32_t width) {
    return (lilac_sim_mixed){extend(x.value, width), extend(x.poison, width)};
}

/* ---- integers --------------------------------------------------------------------------- */

static uint64_t product(lilac_sim_mixed a, lilac_sim_mixed b) {
    uint32_t from_a = zeros_below(a.poison) + zeros_below(most(b));
    uint32_t from_b = zeros_below(b.poison) + zeros_below(most(a));
    uint32_t first = from_a < from_b ? from_a : from_b;
    return first >= 64 ? 0 : ~ones(first);
}

/* `order` is added to both sides of a comparison: the sign bit makes signed numbers ordered as
 * unsigned ones. */
static uint64_t extreme(lilac_sim_mixed a, lilac_sim_mixed b, uint64_t order, bool minimum) {
    a.value ^= order;
    b.value ^= order;
    if (most(a) <= least(b)) {
        return minimum ? a.poison : b.poison;
    }
    if (most(b) <= least(a)) {
        return minimum ? b.poison : a.poison;
    }
    return UINT64_MAX;
}

static bool may_differ_less(lilac_sim_mixed a, lilac_sim_mixed b, uint64_t order, bool or_equal) {
    a.value ^= order;
    b.value ^= order;
    bool always = or_equal ? most(a) <= least(b) : most(a) < least(b);
    bool never = or_equal ? least(a) > most(b) : least(a) >= most(b);
    return !always && !never;
}

static uint64_t comparison(uint32_t kind, lilac_sim_mixed a, lilac_sim_mixed b, uint32_t width) {
    uint64_t sign = UINT64_C(1) << (width - 1);
    switch (kind) {
    case LILAC_SIMT_EQ:
    case LILAC_SIMT_NE:
        return ((a.value ^ b.value) & ~(a.poison | b.poison) & ones(width)) == 0;
    case LILAC_SIMT_LT:
    case LILAC_SIMT_LE:
        return may_differ_less(a, b, sign, kind == LILAC_SIMT_LE);
    case LILAC_SIMT_GT:
    case LILAC_SIMT_GE:
        return may_differ_less(b, a, sign, kind == LILAC_SIMT_GE);
    case LILAC_SIMT_ULT:
    case LILAC_SIMT_ULE:
        return may_differ_less(a, b, 0, kind == LILAC_SIMT_ULE);
    default:
        return may_differ_less(b, a, 0, kind == LILAC_SIMT_UGE);
    }
}

static uint64_t shifted(uint32_t code, lilac_sim_mixed a, lilac_sim_mixed by, uint32_t width) {
    bool arithmetic = code == LILAC_SIMT_OP_SHR_S;
    if (by.poison) {
        return most(a) == 0 ? 0 : UINT64_MAX;
    }
    if (arithmetic) {
        return (uint64_t)((int64_t)extend(a.poison, width) >>
                          (by.value >= width ? width - 1 : by.value));
    }
    if (by.value >= width) {
        return 0;
    }
    return code == LILAC_SIMT_OP_SHL ? a.poison << by.value : a.poison >> by.value;
}

static uint64_t permuted(const lilac_sim_mixed x[3]) {
    uint64_t both = x[1].poison << 32 | x[0].poison, result = 0;
    if (x[2].poison) {
        return UINT64_MAX;
    }
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t nibble = (uint32_t)(x[2].value >> 4 * k) & 15;
        uint64_t byte = both >> 8 * (nibble & 7) & 0xFF;
        if (nibble & 8) {
            byte = byte & 0x80 ? 0xFF : 0;
        }
        result |= byte << 8 * k;
    }
    return result;
}

static uint32_t leading_zeros(uint64_t bits, uint32_t width) {
    return bits ? (uint32_t)__builtin_clzll(bits) - (64 - width) : width;
}

static uint64_t binary(uint32_t code, lilac_sim_mixed a, lilac_sim_mixed b, uint32_t width) {
    uint64_t either = a.poison | b.poison, sign = UINT64_C(1) << (width - 1);
    switch (code) {
    case LILAC_SIMT_OP_ADD:
        return either | ((least(a) + least(b)) ^ (most(a) + most(b)));
    case LILAC_SIMT_OP_SUB:
        return either | ((least(a) - most(b)) ^ (most(a) - least(b)));
    case LILAC_SIMT_OP_MUL:
        return product(a, b);
    case LILAC_SIMT_OP_MULHI_S:
    case LILAC_SIMT_OP_MULHI_U:
        return most(a) == 0 || most(b) == 0 ? 0 : UINT64_MAX;
    case LILAC_SIMT_OP_AND:
        return (a.poison & most(b)) | (b.poison & most(a));
    case LILAC_SIMT_OP_OR:
        return (a.poison & ~least(b)) | (b.poison & ~least(a));
    case LILAC_SIMT_OP_XOR:
        return either;
    case LILAC_SIMT_OP_MIN_S:
    case LILAC_SIMT_OP_MAX_S:
        return extreme(a, b, sign, code == LILAC_SIMT_OP_MIN_S);
    case LILAC_SIMT_OP_MIN_U:
    case LILAC_SIMT_OP_MAX_U:
        return extreme(a, b, 0, code == LILAC_SIMT_OP_MIN_U);
    case LILAC_SIMT_OP_SHL:
    case LILAC_SIMT_OP_SHR_S:
    case LILAC_SIMT_OP_SHR_U:
        return shifted(code, a, b, width);
    default:
        return UINT64_MAX;
    }
}

/* ---- everything ------------------------------------------------------------------------- */

/* A condition that is poison does not matter between equal sides. */
static uint64_t selected(const lilac_sim_mixed x[3]) {
    if (x[0].poison) {
        return x[1].poison | x[2].poison | (x[1].value ^ x[2].value);
    }
    return x[0].value ? x[1].poison : x[2].poison;
}

/* All bits of the elements of `to_bits` whose element of `from_bits` of an operand has poison. */
static uint64_t by_element(const lilac_sim_mixed x[3], uint32_t from_bits, uint32_t to_bits) {
    uint64_t any = x[0].poison | x[1].poison | x[2].poison, result = 0;
    for (uint32_t k = 0; k * to_bits < 64 && k * from_bits < 64; k++) {
        if (any >> k * from_bits & ones(from_bits)) {
            result |= ones(to_bits) << k * to_bits;
        }
    }
    return result;
}

static uint64_t rule(const lilac_sim_operation *o, const lilac_sim_mixed x[3]) {
    uint32_t code = o->source->code, width = lilac_simt_type_bits(o->from);
    uint64_t any = x[0].poison | x[1].poison | x[2].poison;
    switch (code) {
    case LILAC_SIMT_OP_SELECT:
        return selected(x);
    case LILAC_SIMT_OP_CMP:
        return lilac_simt_type_is_float(o->from) ? 1
                                                 : comparison(o->source->detail, x[0], x[1], width);
    case LILAC_SIMT_OP_SEXT:
        return extend(x[0].poison, width);
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
        return x[0].poison;
    case LILAC_SIMT_OP_MULWIDE_S:
        return product(extend_both(x[0], 32), extend_both(x[1], 32));
    case LILAC_SIMT_OP_MULWIDE_U:
        return product(x[0], x[1]);
    case LILAC_SIMT_OP_PRMT:
        return permuted(x);
    case LILAC_SIMT_OP_CLZ:
        return leading_zeros(least(x[0]), width) == leading_zeros(most(x[0]), width) ? 0
                                                                                     : UINT64_MAX;
    case LILAC_SIMT_OP_F8_UNPACK:
        return by_element(x, 8, 16);
    case LILAC_SIMT_OP_F8_PACK:
        return (x[0].poison ? 0xFF : 0) | (x[1].poison ? 0xFF00 : 0);
    default:
        break;
    }
    if (o->from == LILAC_SIMT_F16X2 || o->from == LILAC_SIMT_BF16X2) {
        return by_element(x, 16, 16);
    }
    return lilac_simt_type_is_float(o->from) ? any : binary(code, x[0], x[1], width);
}

uint64_t lilac_sim_poison_rule(const lilac_sim_operation *o, const lilac_sim_mixed operands[3]) {
    uint64_t mask = ones(lilac_simt_type_bits(o->to));
    if ((operands[0].poison | operands[1].poison | operands[2].poison) == 0) {
        return 0;
    }
    uint64_t poison = rule(o, operands);
    bool moves_bits = !lilac_simt_type_is_float(o->from) || o->from == LILAC_SIMT_F16X2 ||
                      o->from == LILAC_SIMT_BF16X2 || o->source->code == LILAC_SIMT_OP_SELECT ||
                      o->source->code == LILAC_SIMT_OP_F8_PACK;
    return (moves_bits || !poison ? poison : UINT64_MAX) & mask;
}

uint64_t lilac_sim_poison_of_words(lilac_simt_opcode code, lilac_sim_mixed a, lilac_sim_mixed b) {
    return (a.poison | b.poison) ? binary(code, a, b, 32) & ones(32) : 0;
}
