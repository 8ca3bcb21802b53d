/* Simplification of one instruction before it is built: the entry.
 *
 * The rules have one normal form: constants are second operands; a sum has its constant outermost,
 * (x + y) + c, so that the constant can move through a product or a widening and into the offset
 * of a memory access; a product with a power of two is a shift; a product of widened 32-bit
 * numbers is one wide multiplication; a value whose bits are all known is a constant.
 *
 *     sext (x + c nsw)      → sext x + c           mulwide (x + c nsw), k  → mulwide x, k + c * k
 *     (x + c) * k           → x * k + c * k        x | c  (no common bit)  → x + c
 *     sext x << k           → mulwide_s x, 2^k     x & c  (c covers x)     → x
 *
 * A rule that needs instructions of its own emits them, and they are simplified when they are
 * built. Operands are in normal form already, so this nests a few levels at most. */
#include "fold/simplify.h"

static bool evaluate(lilac_simt_builder *b, const instruction *like, lilac_simt_type type,
                     lilac_simt_value *value) {
    lilac_simt_type types[8];
    uint64_t bits[8];
    uint64_t result = 0;
    if (like->operand_count == 0 || like->operand_count > 8) {
        return false;
    }
    for (uint32_t k = 0; k < like->operand_count; k++) {
        types[k] = lilac_simt_type_of(b->kernel, like->operands[k]);
        if (!lilac_simt_constant_bits(b->kernel, like->operands[k], &bits[k])) {
            return false;
        }
    }
    if (!lilac_simt_evaluate(like, types, bits, type, &result)) {
        return false;
    }
    *value = lilac_simt_constant(b, type, result);
    return true;
}

/* Constants to the right. */
static void order_operands(lilac_simt_builder *b, instruction *like) {
    uint64_t c;
    if (like->operand_count != 2 || !lilac_simt_constant_bits(b->kernel, like->operands[0], &c) ||
        lilac_simt_constant_bits(b->kernel, like->operands[1], &c)) {
        return;
    }
    bool compare = like->code == LILAC_SIMT_OP_CMP;
    if (compare || lilac_simt_has_trait(like->code, LILAC_SIMT_COMMUTATIVE)) {
        lilac_simt_value first = like->operands[0];
        like->operands[0] = like->operands[1];
        like->operands[1] = first;
        if (compare) {
            like->detail = (uint8_t)lilac_simt_compare_swapped((lilac_simt_compare)like->detail);
        }
    }
}

lilac_simt_value lilac_simt_simplify(lilac_simt_builder *b, instruction *like,
                                     lilac_simt_type type) {
    for (uint32_t round = 0; round < 16; round++) { /* every rule shrinks or normalises */
        lilac_simt_value value = 0;
        bool again = false;
        if (evaluate(b, like, type, &value)) {
            return value;
        }
        order_operands(b, like);
        lilac_simt_infer_wrap(b, like, type);
        value = lilac_simt_simplify_integer(b, like, type, &again);
        if (value == 0 && !again) {
            value = lilac_simt_simplify_width(b, like, type, &again);
        }
        if (value == 0 && !again) {
            value = lilac_simt_simplify_other(b, like, type, &again);
        }
        if (value != 0) {
            return value;
        }
        if (!again) {
            break;
        }
    }
    return 0;
}
