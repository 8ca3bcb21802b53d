/* unused_rows: rows of a tensor that no store shows.
 *
 *     %rows = (first + range) % %M                     below = M − first
 *     %x = tt.load a + %rows * stride …                rows from there on begin again
 *     %d = tt.dot %x, %y                               of each row of x, one row
 *     tt.store …, %d, first + range < %M               stored, or added, below the limit only
 *
 * Operations on each element keep rows apart, and so do products along their other dimensions,
 * reductions of others, and loops that carry the result. Where the limit changes in a loop, what
 * the loop carries is compared with that of a later iteration, so it is not followed. */
#include "launch_maps/unused_rows.h"

#include "facts/mask_bounds.h"

#include <lilac/tile_loops.h>

enum { MOST_USES = 256 };

typedef struct unused_rows {
    const lilac_sum *below; /* the elements from this index on */
    lilac_arena *arena;
    uint32_t count;
    struct {
        const lilac_tile_value *value;
        uint32_t dim;
    } seen[MOST_USES];
} unused_rows;

static bool are_unused(unused_rows *u, const lilac_tile_value *value, uint32_t dim);

/* The dimension of the result that a dimension of the operand becomes. False: none. */
static bool map_dimension(const lilac_tile_use *use, uint32_t *dim) {
    const lilac_tile_op *op = use->op;
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    const uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
    switch (op->code) {
    case LILAC_TILE_OP_TT_DOT: {
        const uint32_t rank = use->value->type->rank, sum = use->index == 0 ? rank - 1 : rank - 2;
        return use->index == 2 || *dim != sum;
    }
    case LILAC_TILE_OP_TT_TRANS: {
        const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
        for (uint32_t d = 0; order != NULL && d < order->count; d++) {
            if ((uint32_t)order->integers[d] == *dim) {
                *dim = d;
                return true;
            }
        }
        return false;
    }
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        *dim += axis <= *dim;
        return true;
    case LILAC_TILE_OP_TTG_FP4_TO_FP: /* two elements along the axis of one */
        return axis != *dim;
    case LILAC_TILE_OP_TT_REDUCE: {
        const bool kept = op->operand_count == 1 && axis != *dim;
        *dim -= axis < *dim;
        return kept;
    }
    case LILAC_TILE_OP_TT_BROADCAST:
        return use->value->type->shape[*dim] > 1;
    default:
        return (traits & LILAC_TILE_ELEMENTWISE) != 0 && (traits & LILAC_TILE_PURE) != 0 &&
               !lilac_tile_divides(op->code);
    }
}

/* What a loop carries, and its result. The limit is the same in all iterations, or what one
 * iteration carries to the next would be compared with the limit of the next. */
static bool are_unused_in_loop(unused_rows *u, const lilac_tile_value *carried, uint32_t dim) {
    const lilac_tile_op *loop = carried->block->parent->parent;
    if (loop == NULL || loop->code != LILAC_TILE_OP_SCF_FOR) {
        return false;
    }
    return lilac_sum_is_invariant(u->below, loop) && are_unused(u, carried, dim) &&
           are_unused(u, &loop->results[carried->index - 1], dim);
}

static bool is_unused_in(unused_rows *u, const lilac_tile_use *use, uint32_t dim) {
    const lilac_tile_op *op = use->op;
    lilac_tile_value *receiver = lilac_tile_receiver(use);
    if (op->code == LILAC_TILE_OP_TT_STORE || op->code == LILAC_TILE_OP_TT_ATOMIC_RMW) {
        return use->index == 1 &&
               lilac_mask_implies(lilac_tile_operand(op, 2), dim, u->below, u->arena);
    }
    if (receiver != NULL) {
        return receiver->op != NULL ? are_unused(u, receiver, dim)
                                    : are_unused_in_loop(u, receiver, dim);
    }
    if (!map_dimension(use, &dim)) {
        return false;
    }
    bool unused = op->result_count > 0;
    for (uint32_t i = 0; unused && i < op->result_count; i++) {
        unused = are_unused(u, &op->results[i], dim);
    }
    return unused;
}

/* Does nothing depend on the elements with indices from the limit on along the dimension? */
static bool are_unused(unused_rows *u, const lilac_tile_value *value, uint32_t dim) {
    for (uint32_t i = 0; i < u->count; i++) {
        if (u->seen[i].value == value && u->seen[i].dim == dim) {
            return true;
        }
    }
    if (u->count == MOST_USES) {
        return false;
    }
    u->seen[u->count].value = value;
    u->seen[u->count++].dim = dim;
    bool unused = true;
    for (const lilac_tile_use *use = value->uses; unused && use != NULL; use = use->next) {
        unused = is_unused_in(u, use, dim);
    }
    return unused;
}

bool lilac_rows_are_unused(const lilac_tile_value *value, uint32_t dim, const lilac_sum *below,
                           lilac_arena *arena) {
    unused_rows u = {.below = below, .arena = arena};
    return are_unused(&u, value, dim);
}
