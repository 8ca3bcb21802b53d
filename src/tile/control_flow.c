/* The operands, arguments and results of structured control flow by name. Passes know their
 * positions by these functions only. */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <assert.h>

enum { LOWER, UPPER, STEP };

/* ---- regions and branches --------------------------------------------------------------- */

lilac_tile_op *lilac_tile_terminator(const lilac_tile_region *region) {
    const lilac_tile_block *block = region->first;
    return block && !block->next ? block->last : NULL;
}

lilac_tile_value *lilac_tile_yielded(const lilac_tile_op *op, uint32_t region, uint32_t i) {
    const lilac_tile_op *end = lilac_tile_terminator(op->regions[region]);
    assert(i < end->operand_count);
    return end->operands[i].value;
}

void lilac_tile_set_yielded(lilac_tile_op *op, uint32_t region, uint32_t i,
                            lilac_tile_value *value) {
    lilac_tile_set_operand(lilac_tile_terminator(op->regions[region]), i, value);
}

uint32_t lilac_tile_first_passed(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
        return TILE_FOR_INITS;
    case LILAC_TILE_OP_SCF_CONDITION:
        return TILE_CONDITION_PASSED;
    default:
        return 0;
    }
}

uint32_t lilac_tile_branch_first(const lilac_tile_op *branch, uint32_t successor) {
    uint32_t first = branch->code == LILAC_TILE_OP_CF_COND_BR ? 1 : 0;
    for (uint32_t s = 0; s < successor; s++) {
        first += branch->successors[s]->argument_count;
    }
    return first;
}

static lilac_tile_value *branch_receiver(const lilac_tile_op *branch, uint32_t operand) {
    for (uint32_t s = 0; s < branch->successor_count; s++) {
        uint32_t first = lilac_tile_branch_first(branch, s);
        if (operand >= first && operand - first < branch->successors[s]->argument_count) {
            return branch->successors[s]->arguments[operand - first];
        }
    }
    return NULL;
}

/* The receiver of value i that `op` passes on. */
static lilac_tile_value *receiver(const lilac_tile_op *op, uint32_t i) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_WHILE:
        return lilac_tile_iteration_argument(op, i);
    case LILAC_TILE_OP_SCF_CONDITION:
        return lilac_tile_passed_argument(op->parent->parent->parent, i);
    case LILAC_TILE_OP_SCF_YIELD: {
        lilac_tile_op *parent = op->parent->parent->parent;
        return parent->code == LILAC_TILE_OP_SCF_IF ? &parent->results[i] : receiver(parent, i);
    }
    default:
        return NULL;
    }
}

lilac_tile_value *lilac_tile_receiver(const lilac_tile_use *use) {
    if (use->op->successor_count) {
        return branch_receiver(use->op, use->index);
    }
    uint32_t first = lilac_tile_first_passed(use->op);
    return use->index >= first ? receiver(use->op, use->index - first) : NULL;
}

/* ---- loops ------------------------------------------------------------------------------ */

static bool is_for(const lilac_tile_op *op) {
    assert(lilac_tile_is_loop(op));
    return op->code == LILAC_TILE_OP_SCF_FOR;
}

bool lilac_tile_is_loop(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_WHILE;
}

bool lilac_tile_is_in_loop(const lilac_tile_op *op) {
    const lilac_tile_op *around = op->parent->parent->parent;
    while (around != NULL && !lilac_tile_is_loop(around)) {
        around = around->parent->parent->parent;
    }
    return around != NULL;
}

lilac_tile_value *lilac_tile_lower_bound(const lilac_tile_op *loop) {
    assert(is_for(loop));
    return loop->operands[LOWER].value;
}

lilac_tile_value *lilac_tile_upper_bound(const lilac_tile_op *loop) {
    assert(is_for(loop));
    return loop->operands[UPPER].value;
}

lilac_tile_value *lilac_tile_step(const lilac_tile_op *loop) {
    assert(is_for(loop));
    return loop->operands[STEP].value;
}

void lilac_tile_set_lower_bound(lilac_tile_op *loop, lilac_tile_value *value) {
    assert(is_for(loop));
    lilac_tile_set_operand(loop, LOWER, value);
}

void lilac_tile_set_upper_bound(lilac_tile_op *loop, lilac_tile_value *value) {
    assert(is_for(loop));
    lilac_tile_set_operand(loop, UPPER, value);
}

void lilac_tile_set_step(lilac_tile_op *loop, lilac_tile_value *value) {
    assert(is_for(loop));
    lilac_tile_set_operand(loop, STEP, value);
}

lilac_tile_value *lilac_tile_induction_variable(const lilac_tile_op *loop) {
    assert(is_for(loop));
    return loop->regions[0]->first->arguments[0];
}

bool lilac_tile_trip_count(const lilac_tile_op *loop, uint64_t *count) {
    int64_t lower, upper, step;
    if (loop->code != LILAC_TILE_OP_SCF_FOR ||
        !lilac_tile_constant(lilac_tile_lower_bound(loop), &lower) ||
        !lilac_tile_constant(lilac_tile_upper_bound(loop), &upper) ||
        !lilac_tile_constant(lilac_tile_step(loop), &step) || step < 1) {
        return false;
    }
    lilac_scalar scalar = lilac_tile_lower_bound(loop)->type->scalar;
    bool is_unsigned = lilac_tile_find(&loop->attributes, "unsignedCmp") != NULL;
    uint64_t low = lilac_scalar_mask(scalar, (uint64_t)lower);
    uint64_t high = lilac_scalar_mask(scalar, (uint64_t)upper);
    bool runs = is_unsigned ? low < high : lower < upper;
    uint64_t span = lilac_scalar_mask(scalar, high - low);
    *count = runs ? (span - 1) / (uint64_t)step + 1 : 0;
    return true;
}

uint32_t lilac_tile_carried_count(const lilac_tile_op *loop) {
    assert(lilac_tile_is_loop(loop));
    return loop->operand_count - lilac_tile_first_passed(loop);
}

lilac_tile_value *lilac_tile_init(const lilac_tile_op *loop, uint32_t i) {
    assert(i < lilac_tile_carried_count(loop));
    return loop->operands[lilac_tile_first_passed(loop) + i].value;
}

void lilac_tile_set_init(lilac_tile_op *loop, uint32_t i, lilac_tile_value *value) {
    lilac_tile_set_operand(loop, lilac_tile_first_passed(loop) + i, value);
}

lilac_tile_value *lilac_tile_iteration_argument(const lilac_tile_op *loop, uint32_t i) {
    const lilac_tile_block *block = loop->regions[0]->first;
    uint32_t index = i + (is_for(loop) ? 1 : 0);
    assert(index < block->argument_count);
    return block->arguments[index];
}

lilac_tile_value *lilac_tile_next(const lilac_tile_op *loop, uint32_t i) {
    return lilac_tile_yielded(loop, is_for(loop) ? 0 : 1, i);
}

void lilac_tile_set_next(lilac_tile_op *loop, uint32_t i, lilac_tile_value *value) {
    lilac_tile_set_yielded(loop, is_for(loop) ? 0 : 1, i, value);
}

lilac_tile_value *lilac_tile_while_condition(const lilac_tile_op *loop) {
    assert(!is_for(loop));
    return lilac_tile_yielded(loop, 0, 0);
}

lilac_tile_value *lilac_tile_passed(const lilac_tile_op *loop, uint32_t j) {
    assert(!is_for(loop));
    return lilac_tile_yielded(loop, 0, TILE_CONDITION_PASSED + j);
}

lilac_tile_value *lilac_tile_passed_argument(const lilac_tile_op *loop, uint32_t j) {
    assert(!is_for(loop) && j < loop->regions[1]->first->argument_count);
    return loop->regions[1]->first->arguments[j];
}

/* ---- phis ------------------------------------------------------------------------------- */

uint32_t lilac_tile_phi_count(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
    case LILAC_TILE_OP_SCF_IF:
        return op->result_count;
    case LILAC_TILE_OP_SCF_WHILE:
        return op->operand_count + op->result_count;
    default:
        return 0;
    }
}

/* The use of value i that the terminator of a region passes on. */
static lilac_tile_use *yielded_use(const lilac_tile_op *op, uint32_t region, uint32_t i) {
    lilac_tile_op *end = lilac_tile_terminator(op->regions[region]);
    return &end->operands[lilac_tile_first_passed(end) + i];
}

static lilac_tile_phi carried_phi(const lilac_tile_op *loop, uint32_t i) {
    bool counts = is_for(loop);
    lilac_tile_phi phi = {.source_count = 2, .receiver_count = counts ? 2 : 1};
    phi.sources[0] = &loop->operands[lilac_tile_first_passed(loop) + i];
    phi.sources[1] = yielded_use(loop, counts ? 0 : 1, i);
    phi.receivers[0] = lilac_tile_iteration_argument(loop, i);
    phi.receivers[1] = counts ? &loop->results[i] : NULL;
    return phi;
}

lilac_tile_phi lilac_tile_phi_get(const lilac_tile_op *op, uint32_t i) {
    assert(i < lilac_tile_phi_count(op));
    if (op->code == LILAC_TILE_OP_SCF_IF) {
        return (lilac_tile_phi){.source_count = 2,
                                .receiver_count = 1,
                                .sources = {yielded_use(op, 0, i), yielded_use(op, 1, i)},
                                .receivers = {&op->results[i]}};
    }
    uint32_t carried = lilac_tile_carried_count(op);
    if (i < carried) {
        return carried_phi(op, i);
    }
    uint32_t j = i - carried;
    return (lilac_tile_phi){.source_count = 1,
                            .receiver_count = 2,
                            .sources = {yielded_use(op, 0, j)},
                            .receivers = {lilac_tile_passed_argument(op, j), &op->results[j]}};
}
