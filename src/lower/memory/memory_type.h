/* Sizes and offsets that follow from the type of a memory descriptor (memory_type.c). */
#ifndef LILAC_LOWER_MEMORY_MEMORY_TYPE_H
#define LILAC_LOWER_MEMORY_MEMORY_TYPE_H

#include "lower_internal.h"

#include <lilac/plan.h>

/* The bits that an element occupies in memory: at least 8. */
uint32_t lilac_lower_memory_bits(const lilac_tile_type *type);
/* The padding of the type's encoding; count 0: none. */
void lilac_lower_memory_padding(const lilac_tile_type *type, lilac_plan_padding *padding);
/* Bytes of the last `rank` dimensions of the allocation, padding included. */
uint64_t lilac_lower_memory_size(const lilac_tile_type *type, uint32_t rank);
/* Is the first dimension the number of a buffer, one buffer after another? */
bool lilac_lower_is_buffer_array(const lilac_tile_type *type);
/* The bytes from one buffer of the array to the next. */
int64_t lilac_lower_buffer_stride(const lilac_tile_type *array, const lilac_tile_type *buffer);
/* M⁻¹ of coordinates, one for each dimension of the layout M: an offset in elements. */
bool lilac_lower_memory_offset(const lilac_layout *layout, const int64_t *coordinates,
                               uint64_t *offset, lilac_reason *why);

#endif
