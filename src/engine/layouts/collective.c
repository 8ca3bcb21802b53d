/* collective: the description of collective operations that their plans read.
 *
 *   operands      Element widths, and whether the region computes a result by one commutative
 *                 operation on its own two elements. Partners in a butterfly then get the same
 *                 bits. Otherwise the result may depend on which of the two was the left operand.
 *   instructions  the operations of the region, without its terminator
 *   strategy      the attribute lilac.movement */
#include "internal.h"

#include <stdio.h>

static bool is_commutative(const lilac_tile_op *op, uint32_t i) {
    const lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_op *end = block->last;
    if (end == NULL || i >= end->operand_count || block->argument_count <= i + op->operand_count) {
        return false;
    }
    const lilac_tile_op *definition = end->operands[i].value->op;
    if (definition == NULL || definition->parent != block || definition->operand_count != 2 ||
        !(lilac_tile_op_info_get(definition->code)->traits & LILAC_TILE_COMMUTATIVE)) {
        return false;
    }
    const lilac_tile_value *first = definition->operands[0].value;
    const lilac_tile_value *second = definition->operands[1].value;
    const lilac_tile_value *a = block->arguments[i];
    const lilac_tile_value *b = block->arguments[i + op->operand_count];
    return (first == a && second == b) || (first == b && second == a);
}

void lilac_engine_region(lilac_plan_region *result, lilac_arena *arena, const lilac_tile_op *op) {
    lilac_plan_operand *operands = lilac_arena_array(arena, lilac_plan_operand, op->operand_count);
    const lilac_tile_block *block = op->region_count > 0 ? op->regions[0]->first : NULL;
    *result = (lilac_plan_region){.count = op->operand_count, .operands = operands};
    result->reverse = lilac_tile_find_integer(&op->attributes, "reverse", 0) != 0;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        operands[i] = (lilac_plan_operand){.element_bits =
                                               lilac_tile_element_bits(op->operands[i].value->type),
                                           .commutative = block != NULL && is_commutative(op, i)};
    }
    for (const lilac_tile_op *inner = block != NULL ? block->first : NULL;
         inner != NULL && inner != block->last; inner = inner->next) {
        result->instructions++;
    }
}

lilac_plan_strategy lilac_engine_strategy(const lilac_tile_op *op) {
    switch (lilac_tile_movement_of(op)) {
    case LILAC_TILE_MOVEMENT_ANY:
        return LILAC_PLAN_ANY;
    case LILAC_TILE_MOVEMENT_SHARED:
        return LILAC_PLAN_BY_SHARED;
    case LILAC_TILE_MOVEMENT_SHUFFLES:
        return LILAC_PLAN_BY_SHUFFLES;
    case LILAC_TILE_MOVEMENT_UNSWIZZLED:
        break;
    }
    return LILAC_PLAN_UNSWIZZLED;
}

bool lilac_engine_crosses_warps(const lilac_tile_op *reduce) {
    const lilac_layout *layout = reduce->operands[0].value->type->layout;
    char axis[16];
    (void)snprintf(axis, sizeof axis, "dim%u",
                   (uint32_t)lilac_tile_find_integer(&reduce->attributes, "axis", 0));
    return layout == NULL || !lilac_layout_is_zero_over(layout, (const char *const[]){"warp", NULL},
                                                        (const char *const[]){axis, NULL});
}
