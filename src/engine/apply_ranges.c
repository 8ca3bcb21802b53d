/* apply_ranges: a step of the pass simplify. What the ranges of the operands show about an operation.
 *
 *     %q = arith.divsi %x, 64     x in [0, 2^31 - 1]    →    %q = arith.divui %x, 64
 *     %r = arith.remsi %x, 768    x in [0, 767]         →    %x
 *     %c = arith.cmpi slt, %x, 0  x in [0, 767]         →    false
 *     %m = arith.maxsi %x, 0      x in [0, 767]         →    %x
 *
 * A signed division by a power of two is three instructions and a remainder four, unsigned ones are one;
 * other divisors need one more instruction where they are signed.
 */
#include "internal.h"

#include <string.h>

/* The unsigned operation that equals a signed one on numbers that are not negative; NONE: another one.
 */
static lilac_tile_opcode unsigned_of(uint32_t code) {
    switch (code) {
    case LILAC_TILE_OP_ARITH_DIVSI:
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
        return LILAC_TILE_OP_ARITH_DIVUI;
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
        return LILAC_TILE_OP_ARITH_CEILDIVUI;
    case LILAC_TILE_OP_ARITH_REMSI:
        return LILAC_TILE_OP_ARITH_REMUI;
    default:
        return LILAC_TILE_OP_NONE;
    }
}

static bool is_integer(const lilac_tile_value *value) {
    const lilac_tile_type *element = lilac_tile_element(value->type);
    return element->kind == LILAC_TILE_SCALAR && !lilac_scalar_is_float(element->scalar) &&
           element->scalar != LILAC_I1 && element->scalar != LILAC_INDEX;
}

/* Is a < b (with `equal`: a <= b) the same for all elements? */
static bool decide(lilac_range a, lilac_range b, bool equal, int64_t *answer) {
    bool always = equal ? a.high <= b.low : a.high < b.low;
    bool never = equal ? a.low > b.high : a.low >= b.high;
    *answer = always;
    return always || never;
}

static bool decide_comparison(const lilac_tile_op *op, lilac_range a, lilac_range b,
                              int64_t *answer) {
    lilac_name predicate = lilac_tile_find_text(&op->attributes, "predicate");
    if (predicate == NULL || !is_integer(op->operands[0].value)) {
        return false;
    }
    if (strcmp(predicate, "eq") == 0 || strcmp(predicate, "ne") == 0) {
        bool apart = a.high < b.low || b.high < a.low;
        bool equal = a.low == a.high && b.low == b.high && a.low == b.low;
        *answer = equal == (predicate[0] == 'e');
        return apart || equal;
    }
    if (strlen(predicate) != 3 || (predicate[0] == 'u' && (a.low < 0 || b.low < 0))) {
        return false;
    }
    bool equal = predicate[2] == 'e';
    return predicate[1] == 'l' ? decide(a, b, equal, answer) : decide(b, a, equal, answer);
}

/* The operand that is the result of a minimum or maximum; NULL: either may be. */
static lilac_tile_value *extreme(const lilac_tile_op *op, lilac_range a, lilac_range b) {
    bool is_unsigned =
        op->code == LILAC_TILE_OP_ARITH_MINUI || op->code == LILAC_TILE_OP_ARITH_MAXUI;
    bool smaller = op->code == LILAC_TILE_OP_ARITH_MINUI || op->code == LILAC_TILE_OP_ARITH_MINSI;
    if (is_unsigned && (a.low < 0 || b.low < 0)) {
        return NULL;
    }
    if (a.high <= b.low) {
        return op->operands[smaller ? 0 : 1].value;
    }
    return b.high <= a.low ? op->operands[smaller ? 1 : 0].value : NULL;
}

/* x % b and x & (2^k - 1) where x is below b or 2^k; x / b is then 0. */
static void reduce(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                   lilac_range b) {
    bool mask = op->code == LILAC_TILE_OP_ARITH_ANDI;
    bool below = a.low >= 0 && (mask ? b.low == b.high && b.low > 0 && b.low < INT64_MAX &&
                                           is_power_of_two((uint64_t)b.low + 1) && a.high <= b.low
                                     : a.high < b.low);
    if (!below) {
        return;
    }
    if (op->code == LILAC_TILE_OP_ARITH_DIVUI || op->code == LILAC_TILE_OP_ARITH_DIVSI) {
        result->constant = true;
        result->value = 0;
    } else {
        result->same = op->operands[0].value;
    }
}

lilac_range_result lilac_engine_apply_ranges(lilac_tile_op *op, const lilac_range *ranges) {
    lilac_range_result result = {0};
    if (op->operand_count != 2 || op->result_count != 1) {
        return result;
    }
    const lilac_range a = ranges[op->operands[0].value->id];
    const lilac_range b = ranges[op->operands[1].value->id];
    lilac_tile_opcode code = unsigned_of(op->code);
    if (code != LILAC_TILE_OP_NONE && a.low >= 0 && b.low >= 0 && b.high > 0) {
        op->code = code;
        result.changed = true;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CMPI:
        result.constant = decide_comparison(op, a, b, &result.value);
        break;
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_MAXSI:
    case LILAC_TILE_OP_ARITH_MINUI:
    case LILAC_TILE_OP_ARITH_MAXUI:
        result.same = is_integer(&op->results[0]) ? extreme(op, a, b) : NULL;
        break;
    case LILAC_TILE_OP_ARITH_DIVUI:
    case LILAC_TILE_OP_ARITH_REMUI:
    case LILAC_TILE_OP_ARITH_ANDI:
        if (is_integer(&op->results[0])) {
            reduce(&result, op, a, b);
        }
        break;
    default:
        break;
    }
    return result;
}
