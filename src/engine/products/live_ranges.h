/* Where the tensors and the memory of a block are live, by the order of its operations: how many 32-bit registers of a
 * thread, and how many bytes of shared memory, each place needs. A product reads memory until it is waited for.
 * Values from outside the block, scratch memory of the lowering, and the rings of pipelined loads are not counted.
 * Private to the engine. */
#ifndef LILAC_ENGINE_LIVE_RANGES_H
#define LILAC_ENGINE_LIVE_RANGES_H

#include "products/block_demand.h"

typedef struct lilac_live_ranges {
    lilac_arena *arena;
    lilac_tile_op **ops; /* of the block, in order */
    uint32_t count;      /* of ops */
    uint32_t *place; /* by value: of the operation of the block that defines it, or encloses that */
    uint32_t *last;  /* by value: of its last use; of memory, through views and until the wait */
    uint64_t *words, *bytes; /* by place: live behind the operation */
} lilac_live_ranges;

/* The ranges in a block of a numbered function. Quadratic in the length of the block. */
void lilac_live_ranges_init(lilac_live_ranges *ranges, const lilac_tile_function *function,
                            const lilac_tile_block *block);
void lilac_live_ranges_destroy(lilac_live_ranges *ranges);
/* The most of one of the numbers at places from `from` to in front of `to`. */
uint64_t lilac_live_most(const uint64_t *numbers, uint32_t from, uint32_t to);
/* Adds to one of the numbers at these places. */
void lilac_live_add(uint64_t *numbers, uint32_t from, uint32_t to, uint64_t number);
/* Bytes of shared memory that the block may have without taking a resident block from what the tensors' registers
 * leave: at least what it has. An eighth is for exchanges. */
uint64_t lilac_live_bytes_allowed(const lilac_live_ranges *ranges, const lilac_target *target);

#endif
