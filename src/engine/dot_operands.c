/* Where the operands of matrix products come from. */
#include "dot_operands.h"

static void find_dot(void *data, lilac_tile_op *op) {
    bool *found = data;
    *found |= op->code == LILAC_TILE_OP_TT_DOT;
}

bool lilac_dot_is_used(const lilac_tile_function *function) {
    bool found = false;
    lilac_tile_walk(function->body, find_dot, &found);
    return found;
}

bool lilac_dot_is_transposition(const lilac_tile_op *op) {
    if (op == NULL || op->code != LILAC_TILE_OP_TT_TRANS || op->results[0].type->rank != 2) {
        return false;
    }
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    return order != NULL && order->count == 2 && order->integers[0] == 1;
}

bool lilac_dot_is_loaded(const lilac_tile_value *value) {
    while (lilac_dot_is_transposition(value->op)) {
        value = value->op->operands[0].value;
    }
    return value->op != NULL && (value->op->code == LILAC_TILE_OP_TT_LOAD ||
                                 value->op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD ||
                                 value->op->code == LILAC_TILE_OP_TT_DESCRIPTOR_GATHER);
}

bool lilac_dot_is_contiguous(const lilac_axis_analysis *axis, const lilac_tile_value *value,
                             uint32_t dim) {
    while (lilac_dot_is_transposition(value->op)) {
        value = value->op->operands[0].value;
        dim = 1 - dim;
    }
    if (value->op == NULL || value->op->code != LILAC_TILE_OP_TT_LOAD) {
        return dim == 1; /* descriptors: the last dimension */
    }
    const lilac_axis_facts *facts = lilac_axis_facts_of(axis, value->op->operands[0].value);
    return facts != NULL && facts->rank == 2 && facts->contiguity[dim] > 1;
}
