/* Views of layouts, maps of coordinates, and operands aligned to a layout (coordinates.c).
 *
 * Coordinates are flat: the bits of dim0 are the lowest, as in a column of the layout. A thread
 * index is the index within the block: the lane's bits, and the warp's bits above them. */
#ifndef LILAC_LOWER_COORDINATES_H
#define LILAC_LOWER_COORDINATES_H

#include "lower_internal.h"

#include <lilac/collective.h>
#include <lilac/f2.h>

/* The columns of a tensor's layout, and tables of its registers. All values of one layout share one
 * view. */
typedef struct lilac_lower_view {
    const lilac_layout *layout; /* NULL: the columns of a plan or of a mapped layout */
    lilac_layout_columns columns;
    uint32_t count;        /* registers: 2^register_bits */
    uint64_t *coordinates; /* of each register in thread 0 */
    uint32_t *canonical;   /* the lowest register that holds the same element */
    struct lilac_lower_view *next;
} lilac_lower_view;

/* ---- views -------------------------------------------------------------------------------- */

/* The view of a tensor's layout. NULL: the layout does not fit the kernel; the operation has been
 * refused. */
const lilac_lower_view *lilac_lower_view_of(lilac_lowering *l, const lilac_tile_type *type);
/* A view of any columns. Only the shape and the columns must be set. */
const lilac_lower_view *lilac_lower_view_of_columns(lilac_lowering *l,
                                                    const lilac_layout_columns *columns);
/* Deposits the bits of `index` at the set bits of `mask` (the instruction pdep). */
uint32_t lilac_lower_deposit(uint32_t index, uint32_t mask);
/* The xor of columns[i] over the set bits i < bits of the thread's index, and of block_columns over
 * the block's rank in its cluster. Higher bits are ignored. */
lilac_simt_value lilac_lower_linear(lilac_simt_builder *b, uint32_t bits, const uint64_t *columns,
                                    uint32_t block_bits, const uint64_t *block_columns);
/* A predicate that is true in exactly one of the threads that hold the same element. 0: no element
 * is replicated. */
lilac_simt_value lilac_lower_elect_holder(lilac_lowering *l, uint32_t free_threads,
                                          uint32_t free_blocks);
/* The same for a tensor's view. NULL: a scalar, which every thread holds. */
lilac_simt_value lilac_lower_elect_holder_of(lilac_lowering *l, const lilac_lower_view *view);
/* Copies each canonical register to the registers that hold the same element. */
void lilac_lower_replicate(const lilac_lower_view *view, lilac_simt_value *registers);

/* ---- maps of coordinates ------------------------------------------------------------------ */

/* A map from a result's coordinates to an operand's: bit j of the operand's coordinate is bit
 * bits[j] of the result's, or bit j of `constant` where bits[j] is -1. */
typedef struct lilac_lower_map {
    uint32_t count; /* bits of an operand's coordinate */
    int8_t bits[LILAC_LAYOUT_MAX_BITS];
    uint64_t constant;
} lilac_lower_map;

void lilac_lower_map_identity(lilac_lower_map *map, uint32_t bits);
uint64_t lilac_lower_map_apply(const lilac_lower_map *map, uint64_t coordinate);
/* For each register of `result`, finds the register of `operand` that holds the element at the
 * mapped coordinates in the same thread. False when there is none. *source NULL: the same
 * register. */
bool lilac_lower_find_sources(lilac_lowering *l, const lilac_lower_view *operand,
                              const lilac_lower_view *result, const lilac_lower_map *map,
                              const uint32_t **source);

/* ---- aligned operands --------------------------------------------------------------------- */

/* For each register of a view, finds the register of `operand` that holds the same element. Refuses
 * with `layout-conversion` when that element is in another thread. */
bool lilac_lower_align(lilac_lowering *l, const lilac_lower_value *operand,
                       const lilac_lower_view *view, const uint32_t **source);

static inline uint32_t lilac_lower_index(const lilac_lower_value *operand, const uint32_t *source,
                                         uint32_t r) {
    return operand->count == 1 ? 0 : source != NULL ? source[r] : r;
}

/* An operand aligned to a view: its value (NULL: an absent operand), and for each register of the
 * view the value's register. */
typedef struct lilac_lower_aligned {
    const lilac_lower_value *value;
    const uint32_t *source;
} lilac_lower_aligned;

bool lilac_lower_align_operand(lilac_lowering *l, const lilac_tile_op *op, uint32_t index,
                               const lilac_lower_view *view, lilac_lower_aligned *aligned);
lilac_simt_value lilac_lower_aligned_get(lilac_lowering *l, const lilac_lower_aligned *aligned,
                                         uint32_t r);

/* Mask of the register bits that never change the value, according to the axis facts. */
uint32_t lilac_lower_constant_bits(lilac_lowering *l, const lilac_tile_value *value,
                                   const lilac_lower_view *view);

#endif
