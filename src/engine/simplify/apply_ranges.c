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

static bool decide_predicate(const lilac_tile_op *op, lilac_range a, lilac_range b,
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

/* ---- the column `rewrite` of the rows RANGED -------------------------------------------------- */

static void rewrite_comparison(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                               lilac_range b) {
    result->constant = decide_predicate(op, a, b, &result->value);
}

/* A minimum or maximum, where one of the operands always is the result. */
static void rewrite_extreme(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                            lilac_range b) {
    bool is_unsigned =
        op->code == LILAC_TILE_OP_ARITH_MINUI || op->code == LILAC_TILE_OP_ARITH_MAXUI;
    bool smaller = op->code == LILAC_TILE_OP_ARITH_MINUI || op->code == LILAC_TILE_OP_ARITH_MINSI;
    if (!is_integer(&op->results[0]) || (is_unsigned && (a.low < 0 || b.low < 0))) {
        return;
    }
    if (a.high <= b.low) {
        result->same = op->operands[smaller ? 0 : 1].value;
    } else if (b.high <= a.low) {
        result->same = op->operands[smaller ? 1 : 0].value;
    }
}

/* x / b where x is below b. */
static void rewrite_quotient(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                             lilac_range b) {
    result->constant = is_integer(&op->results[0]) && a.low >= 0 && a.high < b.low;
    result->value = 0;
}

/* x % b where x is below b. */
static void rewrite_remainder(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                              lilac_range b) {
    if (is_integer(&op->results[0]) && a.low >= 0 && a.high < b.low) {
        result->same = op->operands[0].value;
    }
}

/* x & (2^k - 1) where x is below 2^k. */
static void rewrite_mask(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                         lilac_range b) {
    bool mask =
        b.low == b.high && b.low > 0 && b.low < INT64_MAX && is_power_of_two((uint64_t)b.low + 1);
    if (is_integer(&op->results[0]) && mask && a.low >= 0 && a.high <= b.low) {
        result->same = op->operands[0].value;
    }
}

typedef void range_rewrite(lilac_range_result *result, const lilac_tile_op *op, lilac_range a,
                           lilac_range b);

static const struct {
    range_rewrite *rewrite;
    uint32_t natural; /* an opcode */
} rules[LILAC_TILE_OP_COUNT] = {
#define RANGED(code, rewrite, natural) [LILAC_TILE_OP_##code] = {rewrite, LILAC_TILE_OP_##natural},
#include <lilac/operations.def>
};

lilac_range_result lilac_engine_apply_ranges(lilac_tile_op *op, const lilac_range *ranges) {
    lilac_range_result result = {0};
    if (op->operand_count != 2 || op->result_count != 1) {
        return result;
    }
    const lilac_range a = ranges[op->operands[0].value->id];
    const lilac_range b = ranges[op->operands[1].value->id];
    const uint32_t natural = rules[op->code].natural;
    if (natural != LILAC_TILE_OP_NONE && a.low >= 0 && b.low >= 0 && b.high > 0) {
        op->code = (lilac_tile_opcode)natural;
        result.changed = true;
    }
    if (rules[op->code].rewrite != NULL) {
        rules[op->code].rewrite(&result, op, a, b);
    }
    return result;
}
