/* The bounds of indices that a mask says (mask_bounds.c). Private to the engine. */
#ifndef LILAC_ENGINE_MASK_BOUNDS_H
#define LILAC_ENGINE_MASK_BOUNDS_H

#include "facts/affine.h"

/* An element is accessed where low ≤ index < high along each dimension. */
typedef struct lilac_mask_bounds {
    const lilac_sum *low[AFFINE_MOST_RANK], *high[AFFINE_MOST_RANK]; /* NULL: no bound */
    bool wide; /* some comparison is one of 64 bits */
    lilac_arena *arena;
} lilac_mask_bounds;

/* The bounds of a mask (NULL: none) of a numbered function. False: it says more than bounds; those
 * that it says are set. */
bool lilac_mask_bounds_of(lilac_mask_bounds *bounds, const lilac_tile_value *mask,
                          lilac_arena *arena);
/* Does the mask (NULL: none) say of every element that its index along `dim` is below the bound? */
bool lilac_mask_implies(const lilac_tile_value *mask, uint32_t dim, const lilac_sum *below,
                        lilac_arena *arena);

#endif
