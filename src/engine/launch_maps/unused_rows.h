/* Rows of a tensor that no store shows. Private to the engine. */
#ifndef LILAC_ENGINE_UNUSED_ROWS_H
#define LILAC_ENGINE_UNUSED_ROWS_H

#include "facts/sums.h"

/* Does nothing that the kernel stores depend on the elements of the value whose indices along the
 * dimension are not below the limit? */
bool lilac_rows_are_unused(const lilac_tile_value *value, uint32_t dim, const lilac_sum *below,
                           lilac_arena *arena);

#endif
