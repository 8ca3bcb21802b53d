/* Reductions, scans, gathers and histograms of tensors that the blocks of a cluster hold parts of. */
#ifndef LILAC_ENGINE_COMBINE_BLOCKS_H
#define LILAC_ENGINE_COMBINE_BLOCKS_H

#include "internal.h"

/* Does another block of the cluster hold another part of the axis? */
bool lilac_blocks_divide(const lilac_layout *layout, uint32_t axis);
/* The layout in which every block holds the whole axis; every block holds the whole tensor if axis is
 * LILAC_WHOLE_TENSOR. False: it needs too many registers. */
#define LILAC_WHOLE_TENSOR UINT32_MAX
bool lilac_blocks_undivided(lilac_layout *result, const lilac_layout *layout, uint32_t axis);

/* The price of a reduction of this layout to its slice, with what combine_blocks makes of it. False: there is
 * no plan. The arena holds the description of the region. */
bool lilac_price_of_reduction(int64_t *price, lilac_arena *arena, const lilac_tile_op *op,
                              const lilac_layout *layout, uint32_t axis,
                              const lilac_target *target);

#endif
