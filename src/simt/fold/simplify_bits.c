/* Simplification of and, or and xor. A sum of numbers without a common bit is treated as their
 * xor, so that a constant can leave the expression of a linear layout whichever of the two
 * combines its bits. */
#include "fold/simplify.h"

bool lilac_simt_split_bits(const lilac_simt_builder *b, lilac_simt_value value,
                           lilac_simt_value *rest, uint64_t *c) {
    const instruction *d = b->kernel->values[value].definition;
    if (d == NULL || (d->code != LILAC_SIMT_OP_XOR && d->code != LILAC_SIMT_OP_ADD) ||
        !lilac_simt_constant_bits(b->kernel, d->operands[1], c)) {
        return false;
    }
    *rest = d->operands[0];
    return d->code == LILAC_SIMT_OP_XOR || (lilac_simt_possible(b, *rest) & *c) == 0;
}

/* x > y or x = y: one comparison; the same of less. */
static lilac_simt_value join_comparisons(lilac_simt_builder *b, const instruction *like) {
    for (uint32_t side = 0; side < 2; side++) {
        const instruction *order =
            lilac_simt_defined_by(b, like->operands[side], LILAC_SIMT_OP_CMP);
        const instruction *equal =
            lilac_simt_defined_by(b, like->operands[!side], LILAC_SIMT_OP_CMP);
        if (order == NULL || equal == NULL || equal->detail != LILAC_SIMT_EQ ||
            (order->detail != LILAC_SIMT_LT && order->detail != LILAC_SIMT_GT)) {
            continue;
        }
        const lilac_simt_value *x = order->operands, *y = equal->operands;
        if ((x[0] == y[0] && x[1] == y[1]) || (x[0] == y[1] && x[1] == y[0])) {
            return lilac_simt_compare_values(
                b, order->detail == LILAC_SIMT_LT ? LILAC_SIMT_LE : LILAC_SIMT_GE, x[0], x[1]);
        }
    }
    return 0;
}

/* Two operands, neither a constant: a constant inside either goes out. */
static lilac_simt_value simplify_two(lilac_simt_builder *b, instruction *like, lilac_simt_type type,
                                     bool *again) {
    lilac_simt_opcode code = (lilac_simt_opcode)like->code;
    for (uint32_t side = 0; side < 2; side++) {
        lilac_simt_value one = like->operands[side];
        lilac_simt_value other = like->operands[!side];
        lilac_simt_value rest;
        uint64_t c;
        const instruction *inner = lilac_simt_defined_by(b, one, code);
        bool splits =
            code == LILAC_SIMT_OP_XOR
                ? lilac_simt_split_bits(b, one, &rest, &c)
                : inner != NULL && lilac_simt_constant_bits(b->kernel, inner->operands[1], &c);
        if (splits) {
            rest = code == LILAC_SIMT_OP_XOR ? rest : inner->operands[0];
            lilac_simt_value joined = side == 0 ? lilac_simt_op2(b, code, type, rest, other)
                                                : lilac_simt_op2(b, code, type, other, rest);
            return rewrite(like, code, joined, lilac_simt_constant(b, type, c), 0, again);
        }
        /* x ^ (x ^ y) → y */
        if (code == LILAC_SIMT_OP_XOR && inner != NULL) {
            if (inner->operands[0] == other) {
                return inner->operands[1];
            }
            if (inner->operands[1] == other) {
                return inner->operands[0];
            }
        }
    }
    return 0;
}

/* x op c by what x is. */
static lilac_simt_value simplify_nested(lilac_simt_builder *b, instruction *like,
                                        lilac_simt_type type, uint64_t c, bool *again) {
    lilac_simt_opcode code = (lilac_simt_opcode)like->code;
    lilac_simt_value x = like->operands[0];
    lilac_simt_value rest;
    uint64_t d;
    const instruction *inner = lilac_simt_defined_by(b, x, code);
    if (code != LILAC_SIMT_OP_XOR && inner != NULL &&
        lilac_simt_constant_bits(b->kernel, inner->operands[1], &d)) {
        uint64_t both = code == LILAC_SIMT_OP_AND ? c & d : c | d;
        return rewrite(like, code, inner->operands[0], lilac_simt_constant(b, type, both), 0,
                       again);
    }
    if (type == LILAC_SIMT_I1) {
        inner = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_CMP);
        if (code == LILAC_SIMT_OP_XOR && inner != NULL) { /* the opposite answer */
            lilac_simt_type of = lilac_simt_type_of(b->kernel, inner->operands[0]);
            return lilac_simt_compare_values(
                b,
                lilac_simt_compare_inverse((lilac_simt_compare)inner->detail,
                                           lilac_simt_type_is_float(of)),
                inner->operands[0], inner->operands[1]);
        }
    }
    if (code != LILAC_SIMT_OP_OR && lilac_simt_split_bits(b, x, &rest, &d)) {
        if (code == LILAC_SIMT_OP_XOR) {
            return rewrite(like, code, rest, lilac_simt_constant(b, type, c ^ d), 0, again);
        }
        lilac_simt_value masked = lilac_simt_op2(b, code, type, rest, like->operands[1]);
        return rewrite(like, LILAC_SIMT_OP_XOR, masked, lilac_simt_constant(b, type, c & d), 0,
                       again);
    }
    return 0;
}

lilac_simt_value lilac_simt_simplify_bits(lilac_simt_builder *b, instruction *like,
                                          lilac_simt_type type, bool *again) {
    lilac_simt_opcode code = (lilac_simt_opcode)like->code;
    lilac_simt_value x = like->operands[0];
    lilac_simt_value y = like->operands[1];
    uint64_t mask = lilac_simt_type_mask(type);
    uint64_t possible = lilac_simt_possible(b, x);
    uint64_t c;
    if (x == y) {
        return code == LILAC_SIMT_OP_XOR ? lilac_simt_constant(b, type, 0) : x;
    }
    if (!lilac_simt_constant_bits(b->kernel, y, &c)) {
        if (code == LILAC_SIMT_OP_AND && (possible & lilac_simt_possible(b, y)) == 0) {
            return lilac_simt_constant(b, type, 0);
        }
        if (code == LILAC_SIMT_OP_OR && type == LILAC_SIMT_I1) {
            lilac_simt_value joined = join_comparisons(b, like);
            if (joined != 0) {
                return joined;
            }
        }
        return simplify_two(b, like, type, again);
    }
    if (code == LILAC_SIMT_OP_AND) {
        if ((possible & c) == 0) {
            return lilac_simt_constant(b, type, 0);
        }
        if ((possible & ~c) == 0) {
            return x;
        }
    } else {
        if (c == 0) {
            return x;
        }
        if (code == LILAC_SIMT_OP_OR && c == mask) {
            return y;
        }
        if (type != LILAC_SIMT_I1 && (possible & c) == 0) {
            return rewrite(like, LILAC_SIMT_OP_ADD, x, y,
                           LILAC_SIMT_NO_SIGNED_WRAP | LILAC_SIMT_NO_UNSIGNED_WRAP, again);
        }
    }
    return simplify_nested(b, like, type, c, again);
}
