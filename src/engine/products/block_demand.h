/* What a block of a function needs, estimated before lowering, and what a transformation may add to
 * it.
 *
 *     registers   most live words of tensors + LILAC_ENGINE_OTHER_REGISTERS
 *     shared      buffers of loads that become copies, one for each stage, and other allocations
 *                 that are live in the loop; not the scratch memory of the lowering
 *
 * The number b of resident blocks follows from both (lilac/occupancy.h). What a resident block is
 * worth: in an iteration, a block occupies the tensor cores for T clocks and the other pipes for C;
 * let m be the larger of both, and λ the clocks in which it waits for barriers and latencies. The
 * blocks of a multiprocessor complete an iteration of one of them every
 *
 *     max(m, (T + C + λ) / b)   clocks, or   max(m, (m + λ) / b)   if T and C overlap in the block
 *
 * An overlap never pays for one of b ≥ 2 blocks in a full grid: where (T + C + λ) / b > m, λ
 * exceeds (b − 2) m, and then (2 m + λ) / b < (m + λ) / (b − 1). If two blocks or more remain,
 * it costs nothing either, provided that λ ≤ m, and it gains where the grid is too small for
 * that many blocks. If one remains of two or more, the tensor cores stand still for λ. Private
 * to the engine. */
#ifndef LILAC_ENGINE_BLOCK_DEMAND_H
#define LILAC_ENGINE_BLOCK_DEMAND_H

#include "internal.h"

#include <lilac/occupancy.h>

/* Registers of a thread for addresses, counters and temporary values: the number that a block needs
 * where occupancy (src/simt/scheduling/opt_occupancy.c) asks for a second one, and the number that ptxas takes
 * where nothing limits it, on the products of the benchmark (15 to 30, and 30 to 60). */
enum { LILAC_ENGINE_OTHER_REGISTERS = 28, LILAC_ENGINE_FREE_REGISTERS = 56 };
/* Those of them for the addresses of copies by threads. */
enum { LILAC_ENGINE_COPY_REGISTERS = 4 };

/* Bits of the shortest asynchronous copy. */
enum { LILAC_ENGINE_LEAST_COPY_BITS = 32 };

/* Bytes of a tensor or of a buffer. */
uint64_t lilac_engine_bytes(const lilac_tile_type *type);
/* 32-bit registers of a thread for the elements of a tensor; 0: not a tensor with a layout. */
uint32_t lilac_engine_words(const lilac_tile_type *type);
/* Bits of the longest run of consecutive elements that a thread's first registers hold. */
uint32_t lilac_engine_run_bits(const lilac_tile_type *type);
/* The most such registers that are live at the same time in a loop of a numbered function. What
 * is live behind the loop alone has no part in it: an assembler computes results in pieces. */
uint32_t lilac_engine_live_words(const lilac_tile_function *function, const lilac_tile_op *loop);
/* The same for a function whose tensors have no layouts yet: their elements are distributed evenly over
 * `threads` threads. */
uint32_t lilac_engine_live_words_of(const lilac_tile_function *function, const lilac_tile_op *loop,
                                    uint32_t threads);
/* Is the memory of an allocation, or the tensor of a load, there in some iteration of the loop? Memory of
 * another loop is not: lowering gives its place to others. */
bool lilac_engine_is_live_in(const lilac_tile_op *alloc, const lilac_tile_op *loop);
/* Bytes of shared memory that are there for one operation: the rings of a load in a loop that
 * becomes copies (all of its uses are memory or conversions), or an allocation for anything else
 * that a loop uses; otherwise 0. Memory that no loop uses shares the place of rings. */
uint64_t lilac_engine_ring_bytes(const lilac_tile_op *op, uint32_t buffers);
/* Bytes of shared memory to leave for exchanges between warps in a loop; 0: it has none. */
uint64_t lilac_engine_exchange_reserve(const lilac_tile_op *loop, const lilac_arch *arch);
/* The demand of a block of a numbered function in a loop, before pipeline_loops. */
lilac_block_demand lilac_engine_block_demand(const lilac_tile_function *function,
                                             const lilac_tile_op *loop, const lilac_target *target);
/* Does a transformation pay that overlaps work within a block, and changes its demand from
 * `before` to `after`? Not if it takes all blocks but one of several, or if threads need more
 * registers than they can have. */
bool lilac_engine_overlap_pays(const lilac_arch *arch, const lilac_block_demand *before,
                               const lilac_block_demand *after);

#endif
