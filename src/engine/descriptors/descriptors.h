/* Tensor descriptors as their parts. Private to the engine. */
#ifndef LILAC_ENGINE_DESCRIPTORS_H
#define LILAC_ENGINE_DESCRIPTORS_H

#include "emit.h"

enum { DESCRIPTOR_MOST_RANK = 5, DESCRIPTOR_MOST_PARTS = 2 * DESCRIPTOR_MOST_RANK + 1 };

/* The parts of a descriptor of rank r, as values:
 *
 *   0             base      pointer to an element, a multiple of 16 bytes
 *   1 … r         shape     i64, elements along each dimension
 *   r + 1 … 2r-1  strides   i64, elements; without the last stride, which is 1. Each is a multiple of
 *                           16 bytes
 *   2r            nan       i1: elements outside of the tensor are read as NaN; false: as zero
 *
 * The alignment is a promise of whoever makes the descriptor: the hardware requires it of the
 * descriptors of its tensor copies, and Triton's documentation of all. */
typedef struct lilac_descriptor {
    const lilac_tile_type *block; /* the tensor type in the descriptor's type */
    lilac_tile_value *parts[DESCRIPTOR_MOST_PARTS];
    lilac_tile_value *
        map; /* the descriptor that is a tensor map, for all accesses (boxes.h): a parameter, or the
                 result of tt.make_tensor_descriptor; NULL: none */
    int64_t
        row_divisor; /* a power of two that divides the size of the last dimension; 0: none is known */
} lilac_descriptor;

static inline uint32_t lilac_descriptor_part_count(const lilac_tile_type *block) {
    return 2 * block->rank + 1;
}

/* The type of a part of a descriptor that has `count` parts. */
const lilac_tile_type *lilac_descriptor_part_type(lilac_tile_module *module,
                                                  const lilac_tile_type *block, uint32_t part,
                                                  uint32_t count);
/* The elements in 16 bytes. */
int64_t lilac_descriptor_unit(const lilac_tile_type *block);

/* ---- descriptor_parameters.c ------------------------------------------------------------ */

/* Replaces the parameters that are descriptors and sets their parts, by value id. The old parameters
 * keep their uses. In front of the parts of a descriptor whose blocks tensor copies move is a parameter of
 * the old type with the attribute `lilac.tensor_map`, and copy_boxes removes the parts. */
void lilac_descriptor_expand_parameters(lilac_tile_function *function, lilac_descriptor *known,
                                        const lilac_target *target);

/* ---- descriptor_accesses.c -------------------------------------------------------------- */

/* Replaces an access through a descriptor (tt.descriptor_load, _store, _reduce, _gather, _scatter) by
 * an access through pointers, and removes it. `facts`: of the operands of the access. False after a
 * diagnostic. */
bool lilac_descriptor_expand(lilac_tile_module *module, lilac_tile_op *op,
                             const lilac_descriptor *descriptor, const lilac_axis_analysis *facts);

/* ---- carried_invariants.c --------------------------------------------------------------- */

/* Replaces what control flow passes on by the value that it always is, where that value is visible
 * outside of the loop or conditional:
 *
 *     %r = scf.for … iter_args(%a = %x) {          %r, %a  →  %x
 *       scf.yield %a
 *     }
 */
void lilac_engine_forward_invariants(lilac_tile_region *region);
/* Removes what control flow passes on to values without uses. */
void lilac_engine_remove_unused_phis(lilac_tile_module *module, lilac_tile_region *region);

#endif
