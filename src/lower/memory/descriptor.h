/* Memory descriptors as SIMT values (descriptors.c).
 *
 * A descriptor denotes the bytes
 *
 *     begin + constant + dynamic + padded(shift ⊕ dynamic_shift ⊕ offset · element size)
 *
 *     begin           the first of the bytes that accesses through the descriptor may touch
 *     constant        the offset of the buffer that memdesc_index chose, if its index is a constant
 *     dynamic         the same, computed at run time. For a descriptor that a loop or a branch
 *                     passes on, the whole offset
 *     shift           the first element of a subslice: M⁻¹ of its coordinates, where M is the layout
 *                     of the memory
 *     dynamic_shift   the same for a descriptor that a loop or a branch passes on
 *     offset          M⁻¹ of the element's coordinates
 *
 * Therefore trans and reshape, which only map coordinates, change only the type.
 *
 * Loops, branches and selects pass on one i32, begin + constant + dynamic, and a second one, the
 * shift in bytes, if any of the descriptors that they choose among may have a shift. */
#ifndef LILAC_LOWER_MEMORY_DESCRIPTOR_H
#define LILAC_LOWER_MEMORY_DESCRIPTOR_H

#include "memory/buffers.h"

typedef struct lilac_lower_memory {
    uint32_t begin, bytes;
    uint64_t allocated; /* bytes of the smallest allocation that it may be a part of */
    int64_t constant;
    lilac_simt_value dynamic;       /* 0: none */
    uint64_t shift;                 /* in elements */
    lilac_simt_value dynamic_shift; /* in bytes; 0: none */
    uint64_t dynamic_shift_bits;    /* in elements: bits that dynamic_shift may have */
    uint32_t alignment;             /* a power of two that divides begin + constant + dynamic */
} lilac_lower_memory;

/* Operations whose result is a descriptor or a token: views, arith.select, ub.poison. */
bool lilac_lower_memory_view(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_select_memory(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_poison_memory(lilac_lowering *l, const lilac_tile_op *op);
/* Defines the descriptor of an allocation. */
void lilac_lower_define_allocation(lilac_lowering *l, const lilac_tile_op *op);

/* Defines a token, or a descriptor that control flow passes on. A descriptor has its memory after
 * lilac_lower_receive_memory. */
lilac_lower_value *lilac_lower_define_reference(lilac_lowering *l, const lilac_tile_value *tile);
/* The number of i32 values that represent it in a loop or branch: 0 for a token and for a
 * descriptor that equals a visible one. */
uint32_t lilac_lower_carried_width(const lilac_lowering *l, const lilac_lower_value *value);
/* Writes the SIMT values of `value`, which is passed to `to`, into the list. */
void lilac_lower_send_memory(lilac_lowering *l, const lilac_lower_value *value,
                             const lilac_lower_value *to, lilac_simt_value *list);
/* Defines a passed descriptor from its SIMT values; those beyond its width are ignored. */
void lilac_lower_receive_memory(lilac_lowering *l, lilac_lower_value *value, lilac_simt_value place,
                                lilac_simt_value shift);

#endif
