/* Blocks of tensor descriptors in shared memory, and the tensor copies that fill and store it (boxes.c).
 * Private to the engine. */
#ifndef LILAC_ENGINE_BOXES_H
#define LILAC_ENGINE_BOXES_H

#include "emit.h"

/* ---- mapped_descriptors.c ----------------------------------------------------------------- */

/* Do tensor copies execute all accesses through this descriptor, a parameter or the result of a
 * tt.make_tensor_descriptor that can move into the function's first block? A block takes at most half of the shared
 * memory: the rest is for what is there at the same time. */
bool lilac_descriptor_is_mapped(const lilac_tile_function *function,
                                const lilac_tile_value *descriptor, const lilac_target *target);
/* May a block of this type that tensor copies load be an operand of a product in shared memory? */
bool lilac_descriptor_is_operand(const lilac_tile_type *block, const lilac_target *target);
/* Moves such an operation out of all loops and branches into the function's first block. */
void lilac_descriptor_hoist(lilac_tile_op *maker);
/* Do tensor copies execute this tt.descriptor_reduce? Sets whether it is a minimum or maximum of f16 or
 * bf16, which no atomic operation computes. */
bool lilac_box_reduces(const lilac_tile_op *reduce, bool *extreme);

/* ---- divide_boxes.c ----------------------------------------------------------------------- */

/* The type of the tensor that tensor copies fill for a load with a box: that of its result, or,
 * where only conversions to other blocks of the cluster use it, that of the first of these. The
 * columns of its blocks are zero or different unit vectors. */
const lilac_tile_type *lilac_box_loaded(lilac_tile_module *module, const lilac_tile_op *load);
/* The same for a tensor of this type that tensor copies store. */
const lilac_tile_type *lilac_box_stored(lilac_tile_module *module, const lilac_tile_type *tensor);
/* The descriptor's type with blocks so small that each block of the cluster has whole ones of the
 * tensor. */
const lilac_tile_type *lilac_box_divide(lilac_tile_module *module,
                                        const lilac_tile_type *descriptor,
                                        const lilac_tile_type *tensor);

/* ---- boxes.c ------------------------------------------------------------------------------ */

/* The box that a load reads: its operand, a lilac.tensor_box; NULL: the load reads through
 * pointers. */
lilac_tile_value *lilac_box_of(const lilac_tile_op *load);
/* The memory of a tensor that copies of blocks of this descriptor fill: one buffer, mutable. Its
 * dimensions of size 1 may be others than the block's. In a cluster, the layout of the tensor says
 * which part each block has. */
const lilac_tile_type *lilac_box_memory(lilac_tile_module *module, const lilac_tile_type *tensor,
                                        const lilac_tile_type *descriptor);

/* `count` mbarriers that complete a phase with this number of arrivals (1 to 2^20 - 1) and the
 * bytes that they announce; each block of a cluster has its own. Removes them, where no thread
 * waits any more. */
lilac_tile_value *lilac_box_make_barriers(const lilac_emitter *e, uint32_t num_ctas, uint32_t count,
                                          uint32_t arrivals);
void lilac_box_remove_barriers(const lilac_emitter *e, lilac_tile_value *barriers, uint32_t count);
/* One of them. */
lilac_tile_value *lilac_box_barrier(const lilac_emitter *e, lilac_tile_value *barriers,
                                    lilac_tile_value *index);
/* Announces the bytes of the copies of a phase, where `predicate` (i1) is true. Returns the
 * operation. */
lilac_tile_op *lilac_box_expect(const lilac_emitter *e, lilac_tile_value *barrier, uint64_t bytes,
                                lilac_tile_value *predicate);
/* Starts the copy of a box to memory. Returns the copy. */
lilac_tile_op *lilac_box_start(const lilac_emitter *e, lilac_tile_value *box,
                               lilac_tile_value *memory, lilac_tile_value *barrier,
                               lilac_tile_value *predicate);
/* Starts the copy of memory that the store or reduction (tt.descriptor_store, _reduce) names. */
void lilac_box_store(const lilac_emitter *e, const lilac_tile_op *store, lilac_tile_value *memory);
/* What threads have written to shared memory before is ordered before the copies behind it. */
void lilac_box_fence(const lilac_emitter *e);
/* Waits until all stores have read shared memory or, with `written`, have written global memory. */
void lilac_box_wait_for_stores(const lilac_emitter *e, bool written);
/* Waits until the phase of that parity (i32) is complete. */
void lilac_box_wait(const lilac_emitter *e, lilac_tile_value *barrier, lilac_tile_value *parity);
/* The parity for the next buffer of a ring: it changes where the ring begins again, with buffer 0. */
lilac_tile_value *lilac_box_next_parity(const lilac_emitter *e, lilac_tile_value *parity,
                                        lilac_tile_value *next_slot);

#endif
