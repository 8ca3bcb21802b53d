/* Adding and removing the values that control flow passes on. The lists of operands, arguments and
 * results are shortened or lengthened together; the operation stays the same object.
 *
 *     %r:2 = scf.for … iter_args(%a = %x, %b = %y) {        %r = scf.for … iter_args(%b = %y) {
 *       scf.yield %m, %n                              ⇄       scf.yield %n
 *     }                                                     }                               */
#include "internal.h"

#include <lilac/tile_loops.h>

/* ---- removing --------------------------------------------------------------------------- */

/* Number of the phi whose source the use is, as an operand of a terminator of a region of `op`;
 * UINT32_MAX: the use is another one. */
static uint32_t phi_of_use(const lilac_tile_op *op, const lilac_tile_use *use) {
    const lilac_tile_block *block = use->op->parent;
    uint32_t first = lilac_tile_first_passed(use->op);
    if (!block || !block->parent || block->parent->parent != op || use->index < first) {
        return UINT32_MAX;
    }
    if (use->op->code == LILAC_TILE_OP_SCF_CONDITION) {
        return lilac_tile_carried_count(op) + use->index - first;
    }
    return use->op->code == LILAC_TILE_OP_SCF_YIELD ? use->index : UINT32_MAX;
}

/* Is each use of a receiver of removed phi i a source of a removed phi? */
static const char *find_use(const lilac_tile_op *op, const bool *removed, uint32_t i) {
    lilac_tile_phi phi = lilac_tile_phi_get(op, i);
    for (uint32_t k = 0; k < phi.receiver_count; k++) {
        for (const lilac_tile_use *use = phi.receivers[k]->uses; use; use = use->next) {
            uint32_t to = phi_of_use(op, use);
            if (to == UINT32_MAX || !removed[to]) {
                return phi.receivers[k]->op ? "the result is used" : "the argument is used";
            }
        }
    }
    return NULL;
}

/* The operands that are not removed, from the first that is passed on. */
static void shorten_operands(lilac_tile_module *module, lilac_tile_op *op, const bool *removed) {
    uint32_t first = lilac_tile_first_passed(op), count = 0;
    lilac_tile_value **kept =
        lilac_arena_array(module->arena, lilac_tile_value *, op->operand_count);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (i < first || !removed[i - first]) {
            kept[count++] = op->operands[i].value;
        }
    }
    lilac_tile_set_operands(module, op, count, kept);
}

static void remove_values(lilac_tile_module *module, lilac_tile_op *op, const bool *removed) {
    uint32_t carried = lilac_tile_is_loop(op) ? lilac_tile_carried_count(op) : 0;
    bool counts = op->code == LILAC_TILE_OP_SCF_FOR;
    const bool *results = op->code == LILAC_TILE_OP_SCF_WHILE ? removed + carried : removed;
    for (uint32_t r = 0; r < op->region_count; r++) {
        lilac_tile_op *end = lilac_tile_terminator(op->regions[r]);
        if (end) {
            shorten_operands(module, end,
                             end->code == LILAC_TILE_OP_SCF_CONDITION ? results : removed);
        }
    }
    if (lilac_tile_is_loop(op)) {
        shorten_operands(module, op, removed);
        tile_remove_arguments(op->regions[0]->first, counts ? 1 : 0, removed);
        if (!counts) {
            tile_remove_arguments(op->regions[1]->first, 0, results);
        }
    }
    tile_change_results(module, op, results, 0, NULL);
}

const char *lilac_tile_remove_phis(lilac_tile_module *module, lilac_tile_op *op,
                                   const bool *removed) {
    const char *why = NULL;
    for (uint32_t i = 0, count = lilac_tile_phi_count(op); i < count && !why; i++) {
        if (removed[i]) {
            why = find_use(op, removed, i);
        }
    }
    if (!why) {
        remove_values(module, op, removed);
    }
    return why;
}

/* ---- adding ----------------------------------------------------------------------------- */

static void append_operands(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                            lilac_tile_value *const *values) {
    uint32_t old = op->operand_count;
    lilac_tile_value **list = lilac_arena_array(module->arena, lilac_tile_value *, old + count);
    for (uint32_t i = 0; i < old + count; i++) {
        list[i] = i < old ? op->operands[i].value : values[i - old];
    }
    lilac_tile_set_operands(module, op, old + count, list);
}

/* Results with the types of these values. */
static void append_results(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                           lilac_tile_value *const *values) {
    const lilac_tile_type **types =
        lilac_arena_array(module->arena, const lilac_tile_type *, count);
    for (uint32_t i = 0; i < count; i++) {
        types[i] = values[i]->type;
    }
    tile_change_results(module, op, NULL, count, types);
}

/* Arguments with the types and names of these values; returned in a list. */
static lilac_tile_value **append_arguments(lilac_tile_module *module, lilac_tile_block *block,
                                           uint32_t count, lilac_tile_value *const *values,
                                           lilac_location location) {
    lilac_tile_value **list = lilac_arena_array(module->arena, lilac_tile_value *, count);
    for (uint32_t i = 0; i < count; i++) {
        list[i] =
            lilac_tile_add_argument(module, block, values[i]->type, values[i]->name, location);
    }
    return list;
}

void lilac_tile_add_carried(lilac_tile_module *module, lilac_tile_op *loop, uint32_t count,
                            lilac_tile_value *const *inits) {
    append_operands(module, loop, count, inits);
    append_results(module, loop, count, inits);
    lilac_tile_value *const *values = inits;
    for (uint32_t r = 0; r < loop->region_count; r++) { /* each region passes on what it receives */
        lilac_tile_block *block = loop->regions[r]->first;
        values = append_arguments(module, block, count, values, loop->location);
        append_operands(module, block->last, count, values);
    }
}

void lilac_tile_add_if_results(lilac_tile_module *module, lilac_tile_op *op, uint32_t count,
                               lilac_tile_value *const *then_values,
                               lilac_tile_value *const *else_values) {
    append_results(module, op, count, then_values);
    append_operands(module, op->regions[0]->first->last, count, then_values);
    if (!op->regions[1]->first) {
        lilac_tile_op *yield = lilac_tile_op_create(module, LILAC_TILE_OP_SCF_YIELD, 0, NULL, 0,
                                                    NULL, 0, op->location);
        yield->position = op->position;
        lilac_tile_append(lilac_tile_block_create(module, op->regions[1]), yield);
    }
    append_operands(module, op->regions[1]->first->last, count, else_values);
}
