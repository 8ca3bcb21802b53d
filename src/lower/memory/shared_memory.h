/* The access of a tensor to the memory that a descriptor denotes (shared_memory.c). */
#ifndef LILAC_LOWER_MEMORY_SHARED_MEMORY_H
#define LILAC_LOWER_MEMORY_SHARED_MEMORY_H

#include "coordinates.h"
#include "memory/descriptor.h"
#include "memory/shared_access.h"

/* The access of a tensor's canonical registers to memory, and its place. */
typedef struct lilac_lower_transfer {
    lilac_plan_access access;
    lilac_lower_place place;
    uint32_t registers; /* mask of the canonical registers' bits */
} lilac_lower_transfer;

/* Plans the access of a tensor with this view by vectors of at most `vector_bytes` bytes. *layout:
 * the tensor's layout with the dimensions of the allocation. Refuses memory that is no buffer of
 * this kernel. */
bool lilac_lower_plan_transfer(lilac_lowering *l, const lilac_lower_view *view,
                               const lilac_tile_value *memory, uint32_t vector_bytes,
                               lilac_lower_transfer *t, lilac_layout *layout);

#endif
