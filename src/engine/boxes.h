/* Blocks of tensor descriptors in shared memory, and the tensor copies that fill it (boxes.c).
 * Private to the engine. */
#ifndef LILAC_ENGINE_BOXES_H
#define LILAC_ENGINE_BOXES_H

#include "emit.h"

/* Do tensor copies execute all accesses through this parameter, a descriptor? All of them are loads
 * of whole blocks, and one is in a loop with a matrix product. A block takes at most half of the
 * shared memory: the rest is for what is there at the same time. */
bool lilac_box_is_copied(const lilac_tile_value *parameter, const lilac_target *target);
/* The box that a load reads: its operand, a lilac.tensor_box; NULL: the load reads through
 * pointers. */
lilac_tile_value *lilac_box_of(const lilac_tile_op *load);
/* The memory that the copies of a block write: one buffer, mutable. */
const lilac_tile_type *lilac_box_memory(lilac_tile_module *module, const lilac_tile_value *box);

/* `count` mbarriers that complete a phase with this number of arrivals (1 to 2^20 - 1) and the bytes that
 * they announce; removes them, where no thread waits any more. */
lilac_tile_value *lilac_box_make_barriers(const lilac_emitter *e, uint32_t count,
                                          uint32_t arrivals);
void lilac_box_remove_barriers(const lilac_emitter *e, lilac_tile_value *barriers, uint32_t count);
/* One of them. */
lilac_tile_value *lilac_box_barrier(const lilac_emitter *e, lilac_tile_value *barriers,
                                    lilac_tile_value *index);
/* Announces the bytes of the copies of a phase, where `predicate` (i1) is true. */
void lilac_box_expect(const lilac_emitter *e, lilac_tile_value *barrier, uint64_t bytes,
                      lilac_tile_value *predicate);
/* Starts the copy of a box to memory. */
void lilac_box_start(const lilac_emitter *e, lilac_tile_value *box, lilac_tile_value *memory,
                     lilac_tile_value *barrier, lilac_tile_value *predicate);
/* Waits until the phase of that parity (i32) is complete. */
void lilac_box_wait(const lilac_emitter *e, lilac_tile_value *barrier, lilac_tile_value *parity);

#endif
