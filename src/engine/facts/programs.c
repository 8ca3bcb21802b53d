/* programs: what is computed from the number of a program. */
#include "internal.h"

#include <lilac/tile_loops.h>

enum { LOOK_BACK = 6 /* operations and loops between a number and that of its program */ };

/* The first value of one that a loop carries; NULL: it is none. */
static const lilac_tile_value *first_of(const lilac_tile_value *value) {
    const lilac_tile_op *loop = value->op == NULL ? value->block->parent->parent : NULL;
    if (loop != NULL && loop->code == LILAC_TILE_OP_SCF_WHILE &&
        value->block == loop->regions[1]->first) {
        value = lilac_tile_passed(loop, value->index);
    }
    if (loop == NULL || value->op != NULL || value->block != loop->regions[0]->first) {
        return NULL;
    }
    if (loop->code == LILAC_TILE_OP_SCF_WHILE) {
        return lilac_tile_init(loop, value->index);
    }
    return loop->code == LILAC_TILE_OP_SCF_FOR && value->index > 0
               ? lilac_tile_init(loop, value->index - 1)
               : NULL;
}

static bool is_of_program(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (op == NULL && depth > 0) {
        const lilac_tile_value *first = first_of(value);
        return first != NULL && is_of_program(first, depth - 1);
    }
    if (depth == 0) {
        return false;
    }
    bool found = op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID;
    const bool follows = op->code == LILAC_TILE_OP_ARITH_ADDI ||
                         op->code == LILAC_TILE_OP_ARITH_MULI ||
                         op->code == LILAC_TILE_OP_ARITH_EXTSI;
    for (uint32_t i = 0; follows && !found && i < op->operand_count; i++) {
        found = is_of_program(op->operands[i].value, depth - 1);
    }
    return found;
}

bool lilac_engine_is_of_program(const lilac_tile_value *value) {
    return !lilac_tile_is_tensor(value->type) && is_of_program(value, LOOK_BACK);
}

static bool begins_at_program(const lilac_tile_op *loop) {
    if (loop->code == LILAC_TILE_OP_SCF_FOR) {
        return lilac_engine_is_of_program(lilac_tile_lower_bound(loop));
    }
    bool found = false;
    for (uint32_t i = 0;
         loop->code == LILAC_TILE_OP_SCF_WHILE && !found && i < lilac_tile_carried_count(loop);
         i++) {
        found = lilac_engine_is_of_program(lilac_tile_init(loop, i));
    }
    return found;
}

bool lilac_engine_is_persistent(const lilac_tile_op *op) {
    bool found = false;
    for (op = op->parent->parent->parent; op != NULL && !found; op = op->parent->parent->parent) {
        found = begins_at_program(op);
    }
    return found;
}
