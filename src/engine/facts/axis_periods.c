/* axis_periods: the distance along each dimension after which the elements of a value repeat.
 *
 *     x = 512·p + i,  i < 512      x % 64         period 64: i and i + 64 have equal remainders
 *                                  x / 512        period 1: all elements are equal
 *                                  x % 64 + x / 512 · 64    period 64, as the longest of the operands
 *
 * With the constancy, the period says on which bits of a coordinate an element depends: those from
 * log2(constancy) up to log2(period). Remainders introduce periods: with a constant difference s of
 * neighbours and a divisor m, elements are equal whose distance times s is a multiple of m. As for
 * the other facts, sums are assumed not to overflow as signed numbers.
 */
#include "internal.h"

/* What the period of an element-wise result needs: nothing but equal operands. */
static int64_t longest(const lilac_tile_op *op, const lilac_axis_facts *const *operands,
                       uint32_t rank, uint32_t dim) {
    int64_t period = 1;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (lilac_tile_is_tensor(op->operands[i].value->type)) {
            period = operands[i]->rank == rank ? max_i64(period, operands[i]->period[dim])
                                               : MAX_DIVISIBILITY;
        }
    }
    return period;
}

/* The period of a remainder by a power of two: the least power of two p with modulus | p · stride. */
static int64_t period_of_remainder(const lilac_axis_facts *a, uint32_t dim, int64_t modulus) {
    if (!(a->stride_known >> dim & 1)) {
        return MAX_DIVISIBILITY;
    }
    return modulus / min_i64(modulus, power_of_two_in(a->stride[dim]));
}

/* A power of two m for which the result depends on operand 0 modulo m only; 0: not known. Signed
 * remainders of negative numbers are negative. */
static int64_t modulus_of(const lilac_tile_op *op, const lilac_axis_facts *const *operands) {
    const lilac_axis_facts *by = op->operand_count == 2 ? operands[1] : NULL;
    if (by == NULL || !by->constant || by->value < 0) {
        return 0;
    }
    const bool remainder = op->code == LILAC_TILE_OP_ARITH_REMUI ||
                           (op->code == LILAC_TILE_OP_ARITH_REMSI && operands[0]->non_negative);
    int64_t modulus = remainder ? by->value : 0;
    if (op->code == LILAC_TILE_OP_ARITH_ANDI && by->value > 0 && by->value < INT64_C(1) << 61) {
        modulus = INT64_C(2) << highest_bit((uint64_t)by->value); /* above all bits of the mask */
    }
    return modulus > 0 && power_of_two_in(modulus) == modulus ? modulus : 0;
}

static void elementwise(lilac_axis_facts *result, const lilac_tile_op *op,
                        const lilac_axis_facts *const *operands) {
    const int64_t modulus = modulus_of(op, operands);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->period[d] = longest(op, operands, result->rank, d);
        if (modulus > 0) {
            result->period[d] =
                min_i64(result->period[d], period_of_remainder(operands[0], d, modulus));
        }
    }
}

static void expand(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a) {
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    for (uint32_t d = 0; d < result->rank; d++) {
        const uint32_t from = d < axis ? d : d - 1;
        result->period[d] = d == axis ? 1 : (from < a->rank ? a->period[from] : MAX_DIVISIBILITY);
    }
}

static void transpose(lilac_axis_facts *result, const lilac_tile_op *op,
                      const lilac_axis_facts *a) {
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    for (uint32_t d = 0; order != NULL && d < result->rank && d < order->count; d++) {
        const uint64_t from = (uint64_t)order->integers[d];
        result->period[d] = from < a->rank ? a->period[from] : MAX_DIVISIBILITY;
    }
}

void lilac_axis_periods(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                        const lilac_axis_facts *const *operands) {
    const lilac_tile_type *type = op->results[index].type;
    if (!lilac_tile_is_tensor(type) || type->rank == 0) {
        return;
    }
    if (op->code == LILAC_TILE_OP_TT_EXPAND_DIMS) {
        expand(result, op, operands[0]);
    } else if (op->code == LILAC_TILE_OP_TT_BROADCAST) {
        for (uint32_t d = 0; d < result->rank && d < operands[0]->rank; d++) {
            result->period[d] = operands[0]->period[d];
        }
    } else if (op->code == LILAC_TILE_OP_TT_TRANS) {
        transpose(result, op, operands[0]);
    } else if (op->operand_count > 0 && lilac_axis_is_function(op)) {
        elementwise(result, op, operands);
    }
    for (uint32_t d = 0; d < result->rank && d < type->rank; d++) {
        if (result->constancy[d] >= type->shape[d]) {
            result->period[d] = 1;
        }
    }
}
