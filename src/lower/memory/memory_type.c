/* Sizes and offsets that follow from the type of a memory descriptor.
 *
 * The bytes of an allocation are padded(offset) · element size for the offsets below the product of
 * its dimensions, divided by the number of parts that blocks of a cluster have. The layout of the type maps offsets to elements; it covers the last dimensions of
 * the allocation, and one more dimension in front numbers buffers. */
#include "memory/memory_type.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint32_t lilac_lower_memory_bits(const lilac_tile_type *type) {
    uint32_t bits = lilac_tile_element_bits(type);
    return bits < 8 ? 8 : bits;
}

void lilac_lower_memory_padding(const lilac_tile_type *type, lilac_plan_padding *padding) {
    memset(padding, 0, sizeof *padding);
    if (type->encoding == NULL || type->encoding->kind != LILAC_ENCODING_PADDED_SHARED) {
        return;
    }
    padding->count = type->encoding->as.padded_shared.count;
    for (uint32_t i = 0; i < padding->count; i++) {
        padding->interval[i] = type->encoding->as.padded_shared.interval[i];
        padding->padding[i] = type->encoding->as.padded_shared.padding[i];
    }
}

uint64_t lilac_lower_memory_size(const lilac_tile_type *type, uint32_t rank) {
    uint64_t last = 1;
    for (uint32_t i = 0; i < rank; i++) {
        last *= (uint64_t)type->alloc_shape[type->alloc_rank - rank + i];
    }
    /* each block of a cluster has its part */
    last >>= type->layout != NULL ? lilac_layout_part_bits(type->layout) : 0;
    last--;
    lilac_plan_padding padding;
    lilac_lower_memory_padding(type, &padding);
    uint64_t place = last;
    for (uint32_t i = 0; i < padding.count; i++) {
        place += last / padding.interval[i] * padding.padding[i];
    }
    return (place + 1) * (lilac_lower_memory_bits(type) / 8);
}

bool lilac_lower_is_buffer_array(const lilac_tile_type *type) {
    return type->layout != NULL && type->layout->out_count + 1U == type->rank;
}

int64_t lilac_lower_buffer_stride(const lilac_tile_type *array, const lilac_tile_type *buffer) {
    return (int64_t)lilac_lower_memory_size(buffer, array->rank - 1);
}

bool lilac_lower_memory_offset(const lilac_layout *layout, const int64_t *coordinates,
                               uint64_t *offset, lilac_reason *why) {
    uint64_t places[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout inverse;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        places[d] = (uint64_t)coordinates[d];
        if (coordinates[d] < 0 || places[d] >> layout->out[d].bits != 0) {
            (void)snprintf(why->text, sizeof why->text,
                           "coordinate %" PRIu32 " is %" PRId64 "; the memory has %llu elements "
                           "there",
                           d, coordinates[d], 1ULL << layout->out[d].bits);
            return false;
        }
    }
    if (!lilac_layout_pseudoinvert(&inverse, layout, why)) {
        return false;
    }
    uint64_t place = lilac_layout_apply(&inverse, lilac_layout_pack(layout, places));
    int out = lilac_layout_out(&inverse, "offset");
    *offset = out < 0 ? 0 : lilac_layout_coordinate(&inverse, place, (uint32_t)out);
    return true;
}
