/* Integers and pointers of tile IR as sums: a part that is the same for all elements, and a step
 * along each dimension. Private to the engine.
 *
 *     %x = splat(%pid * 128) + make_range(0, 128)          128 · pid + 1 · i₀
 *     %r = remsi %x, splat %M                              the same where it is below M (a limit)
 *     %p = addptr(splat %a, expand_dims(%r) * %stride)     a + 128 · pid · stride + stride · i₀
 *
 * As in the axis facts, sums and products that do not overflow as signed numbers are assumed. */
#ifndef LILAC_ENGINE_AFFINE_H
#define LILAC_ENGINE_AFFINE_H

#include "facts/sums.h"

enum { AFFINE_MOST_RANK = 5 };

/* Elements along a dimension are what the form says where their index is below `below`; they are
 * others (of the same tensor) from there on. NULL: all are. */
typedef struct lilac_affine {
    lilac_tile_value *base; /* of pointers: a parameter of the function; NULL: an integer */
    lilac_sum uniform;      /* pointees, or the integer, at index 0 */
    uint32_t rank;
    lilac_product step[AFFINE_MOST_RANK];
    const lilac_sum *below[AFFINE_MOST_RANK];
    bool wide_limits; /* some limit is of numbers of more than 32 bits */
} lilac_affine;

/* The form of a value of a numbered function; sums that it refers to are on the arena. False: it
 * has none, or it was not found in a bounded search. */
bool lilac_affine_of(lilac_affine *result, const lilac_tile_value *value, lilac_arena *arena);

/* Has it no steps and no limits? */
bool lilac_affine_is_uniform(const lilac_affine *form);

#endif
