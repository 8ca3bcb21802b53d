/* Declarations that the files of tt.reduce share. They execute the plan of a reduction
 * (lilac/collective.h).
 *
 *   reduce.c          registers, lanes, and the operation
 *   reduce_shared.c   partial results in shared memory */
#ifndef LILAC_LOWER_REDUCE_H
#define LILAC_LOWER_REDUCE_H

#include "coordinates.h"

typedef struct lilac_reduction {
    lilac_lowering *l;
    const lilac_tile_op *op;
    const lilac_plan_reduce *plan;
    const lilac_lower_view *result; /* NULL: a scalar */
    lilac_lower_value *const *results;
    uint32_t operands;
} lilac_reduction;

/* ---- combining (reduce.c) ---------------------------------------------------------------- */

/* Combines `count` (a power of two) consecutive elements into the first: neighbours first, so that
 * the left operand comes first in memory and the order of an arg-max's indices is known. */
bool lilac_reduce_combine_tree(const lilac_reduction *r, lilac_simt_value *elements,
                               uint32_t count);
/* Copies the result of one lane to all lanes that combined the same values, if the bits of their
 * results may differ. The number of that lane is the xor of columns[i] over the set bits i of the
 * lane's own number. `elements` holds `count` elements, each with one value for each operand. */
void lilac_reduce_agree(const lilac_reduction *r, const uint64_t *columns, uint32_t count,
                        lilac_simt_value *elements);
/* Moves `count` elements of all operands from the threads of a view to those of the results. */
bool lilac_reduce_take_results(const lilac_reduction *r, const lilac_lower_view *from,
                               uint32_t count, const lilac_simt_value *elements);

/* ---- shared memory (reduce_shared.c) ----------------------------------------------------- */

/* Combines the lanes' elements of all warps into the results. */
bool lilac_reduce_through_shared(const lilac_reduction *r, const lilac_simt_value *elements);

#endif
