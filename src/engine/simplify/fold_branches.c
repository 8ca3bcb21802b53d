/* Folding of scalars and branches, for passes that replace an induction variable by constants.
 *
 *     %first = arith.cmpi eq, %c0, %c0                 %a = …
 *     %r = scf.if %first {                             … uses of %a
 *       %a = …                                    →
 *       scf.yield %a
 *     } else { … }
 *     … uses of %r
 */
#include "simplify/fold_branches.h"

#include "internal.h"

#include <lilac/tile_loops.h>

/* Replaces an scf.if by the operations of one of its regions. Returns the first of them, or the
 * operation after the scf.if if there are none. */
static lilac_tile_op *take_region(lilac_tile_op *op, uint32_t region) {
    lilac_tile_op *first = op->next, *end = lilac_tile_terminator(op->regions[region]);
    if (end != NULL) {
        lilac_tile_block *block = op->regions[region]->first;
        first = block->first != end ? block->first : first;
        while (block->first != end) {
            lilac_tile_op *inner = block->first;
            lilac_tile_detach(inner);
            lilac_tile_insert_before(op, inner);
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            lilac_tile_replace_uses(&op->results[i], end->operands[i].value);
        }
    }
    lilac_tile_remove(op);
    return first;
}

/* Is the region one block, or empty where no result needs it? */
static bool can_take(const lilac_tile_op *op, uint32_t region) {
    return op->regions[region]->first == NULL ? op->result_count == 0
                                              : lilac_tile_terminator(op->regions[region]) != NULL;
}

void lilac_engine_fold_branches(lilac_tile_module *module, lilac_tile_block *block,
                                const lilac_tile_op *before, const lilac_tile_op *end) {
    lilac_tile_op *first = before != NULL ? before->next : block->first;
    for (lilac_tile_op *op = first, *next; op != end; op = next) {
        int64_t value;
        next = op->next;
        if (op->code == LILAC_TILE_OP_SCF_IF && op->region_count == 2 &&
            lilac_tile_constant(op->operands[0].value, &value) && can_take(op, value == 0)) {
            next = take_region(op, value == 0);
        } else if (op->region_count == 0 && lilac_engine_fold_constant(op, &value)) {
            const lilac_tile_type *type = op->results[0].type;
            lilac_tile_op *constant = lilac_engine_make_constant(module, op, type, value);
            lilac_tile_replace_uses(&op->results[0], &constant->results[0]);
            lilac_tile_remove(op);
        }
    }
}
