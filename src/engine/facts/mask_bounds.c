/* mask_bounds: the bounds of indices that a mask says.
 *
 *     cmpi slt, splat(k · 64) + range(0, 64), splat(K)      index < K − 64 · k
 *     andi, expand_dims, broadcast of such comparisons      along each dimension
 */
#include "facts/mask_bounds.h"

#include <string.h>

enum { MOST_DEPTH = 24 };

/* The dimension along which the step of a difference is the number, and zero along all others;
 * the rank: there is none. */
static uint32_t only_step(const lilac_affine *f, int64_t number) {
    uint32_t found = f->rank;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (f->below[d] != NULL) {
            return f->rank; /* also where steps cancel: x % b − x */
        }
        if (f->step[d].factor == 0) {
            continue;
        }
        if (found != f->rank || f->step[d].factor != number || f->step[d].count > 0) {
            return f->rank;
        }
        found = d;
    }
    return found;
}

static bool set_bound(lilac_mask_bounds *b, const lilac_sum **place, const lilac_sum *bound) {
    lilac_sum *kept = lilac_arena_new(b->arena, lilac_sum);
    if (*place != NULL) {
        return lilac_sum_equal(*place, bound);
    }
    *kept = *bound;
    *place = kept;
    return true;
}

/* x < y, x ≤ y and their inverses, where x − y has a step of 1 or −1 along one dimension. */
static bool add_comparison(lilac_mask_bounds *b, const lilac_tile_op *op, const uint32_t *dims) {
    const char *predicate = lilac_tile_find_text(&op->attributes, "predicate");
    lilac_affine x, y;
    if (predicate == NULL || predicate[0] != 's' || strlen(predicate) != 3) {
        return false;
    }
    const bool less = predicate[1] == 'l', equal = predicate[2] == 'e';
    const lilac_tile_value *first = op->operands[less ? 0 : 1].value,
                           *second = op->operands[less ? 1 : 0].value;
    b->wide |= lilac_tile_element_bits(first->type) > 32;
    if (!lilac_affine_of(&x, first, b->arena) || !lilac_affine_of(&y, second, b->arena)) {
        return false;
    }
    const uint32_t up = only_step(&x, 1), down = only_step(&y, 1);
    if (!(up < x.rank && lilac_affine_is_uniform(&y)) &&
        !(down < y.rank && lilac_affine_is_uniform(&x))) {
        return false;
    }
    lilac_sum bound = up < x.rank ? y.uniform : x.uniform;
    if (up < x.rank) { /* index < y − x, or y − x + 1 where x = y is included */
        return lilac_sum_subtract(&bound, &x.uniform) && lilac_sum_add_number(&bound, equal) &&
               set_bound(b, &b->high[dims[up]], &bound);
    }
    /* index ≥ x − y, or x − y + 1 where x = y is excluded */
    return lilac_sum_subtract(&bound, &y.uniform) && lilac_sum_add_number(&bound, !equal) &&
           set_bound(b, &b->low[dims[down]], &bound);
}

/* The bounds that a mask says. dims: the dimensions of the value among those of the access.
 * False: it says more than bounds; those that it says are set. */
static bool add_mask(lilac_mask_bounds *b, const lilac_tile_value *mask, const uint32_t *dims,
                     uint32_t depth) {
    const lilac_tile_op *op = mask->op;
    int64_t number;
    if (lilac_tile_constant(mask, &number)) {
        return number != 0;
    }
    if (op == NULL || depth == 0) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ANDI: {
        const bool first = add_mask(b, op->operands[0].value, dims, depth - 1);
        return add_mask(b, op->operands[1].value, dims, depth - 1) && first;
    }
    case LILAC_TILE_OP_TT_BROADCAST:
        return add_mask(b, op->operands[0].value, dims, depth - 1);
    case LILAC_TILE_OP_TT_EXPAND_DIMS: {
        const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
        uint32_t inner[AFFINE_MOST_RANK];
        for (uint32_t d = 0, i = 0; d < op->results[0].type->rank; d++) {
            if (d != axis) {
                inner[i++] = dims[d];
            }
        }
        return add_mask(b, op->operands[0].value, inner, depth - 1);
    }
    case LILAC_TILE_OP_ARITH_CMPI:
        return lilac_tile_is_tensor(op->operands[0].value->type) && add_comparison(b, op, dims);
    default:
        return false;
    }
}

bool lilac_mask_bounds_of(lilac_mask_bounds *b, const lilac_tile_value *mask, lilac_arena *arena) {
    static const uint32_t dims[AFFINE_MOST_RANK] = {0, 1, 2, 3, 4};
    *b = (lilac_mask_bounds){.arena = arena};
    return mask == NULL ||
           (mask->type->rank <= AFFINE_MOST_RANK && add_mask(b, mask, dims, MOST_DEPTH));
}

bool lilac_mask_implies(const lilac_tile_value *mask, uint32_t dim, const lilac_sum *below,
                        lilac_arena *arena) {
    lilac_mask_bounds b;
    (void)lilac_mask_bounds_of(&b, mask, arena); /* what else it says only removes elements */
    return mask != NULL && b.high[dim] != NULL && lilac_sum_equal(b.high[dim], below);
}
