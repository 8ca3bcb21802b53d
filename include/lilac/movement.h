/* movement: what it costs to move a tensor between its threads and memory.
 *
 * A distributed layout D: register × lane × warp → tensor and a memory layout M: offset → tensor
 * compose to A = M⁻¹ ∘ D: register × lane × warp → offset, the place where each thread finds each
 * of its registers. Because A is linear over F2, everything below is a question about subspaces of
 * offsets, and one transaction of one warp answers for all of them.
 *
 *        offset, in bytes:   … segment … | bank (5 or 6 bits) | byte of the bank
 *                            └────────── word ──────────────┘
 *
 * The model of shared memory is the simulator's (sim.h): a warp's access is split into transactions
 * of consecutive lanes that together take at most one word of each bank; a transaction costs as
 * many wavefronts as the most different words that fall into one bank.
 *
 * No allocation; results are values. Who may use it: engine, lower, driver, tools.
 */
#ifndef LILAC_MOVEMENT_H
#define LILAC_MOVEMENT_H

#include <lilac/arch.h>
#include <lilac/layout.h>

LILAC_BEGIN

enum {
    LILAC_MOVEMENT_MAX_LANE_BITS = 6,
    LILAC_MOVEMENT_MAX_WARP_BITS = 6,
    LILAC_MOVEMENT_MAX_PADDINGS = 16
};

/* Memory in which `padding[i]` unused elements follow every `interval[i]` elements, but for the
 * last: the element at offset x stands at x + Σ padding[i] · ⌊x / interval[i]⌋. All are powers of
 * two. */
typedef struct lilac_movement_padding {
    uint32_t count;
    uint32_t interval[LILAC_MOVEMENT_MAX_PADDINGS];
    uint32_t padding[LILAC_MOVEMENT_MAX_PADDINGS];
} lilac_movement_padding;

/* How every warp of a block stores a distributed tensor to shared memory, or loads it: a sequence
 * of 2^step_bits vector instructions. Offsets are in elements; the element at
 *
 *     xor of step[i], lane[j] and warp[k] over the set bits of the step, the lane and the warp
 *
 * is the first of the 2^vector_bits consecutive ones of that instruction; padding comes on top. */
typedef struct lilac_movement_access {
    uint32_t element_bytes;
    uint32_t vector_bits; /* log2 of the elements of one instruction of a thread */
    uint32_t step_bits;   /* log2 of the instructions of a thread */
    uint32_t lane_bits, warp_bits;
    uint64_t step[LILAC_LAYOUT_MAX_BITS];
    /* Which bit of the register index each bit of the vector and of the step is. */
    uint8_t vector_register[LILAC_LAYOUT_MAX_BITS], step_register[LILAC_LAYOUT_MAX_BITS];
    uint64_t lane[LILAC_MOVEMENT_MAX_LANE_BITS];
    uint64_t warp[LILAC_MOVEMENT_MAX_WARP_BITS];
    lilac_movement_padding padding;  /* count 0: none */
    uint64_t memory_bytes;           /* that the memory spans */
    uint32_t transaction_lanes;      /* consecutive lanes of one transaction */
    uint32_t transactions;           /* of one instruction of a warp */
    uint32_t transaction_wavefronts; /* of the dearest of them; without padding all are alike, and
                                        it is a power of two */
    uint32_t conflicts;              /* transaction_wavefronts - 1, as Triton counts */
    uint64_t instructions;           /* of all the warps of a block together */
    uint64_t wavefronts;             /* of all of those */
} lilac_movement_access;

/* The access of `distributed` (inputs register, lane, warp and, if of one bit pattern only, block)
 * to `memory` (offset, block), both onto the same tensor, by elements of `element_bits` (a multiple
 * of 8 that is a power of two; 1 counts as 8).
 *
 * Vector width: registers may be put in any order, so that the register bits whose offsets are
 * 1, 2, 4 … become the lowest; the vector is the longest such run for which no other bit (register,
 * lane, warp) moves an access off its alignment, at most arch->vector_bytes. Registers that repeat
 * an element are accessed once; lanes and warps that do are not left out, they cost no wavefront of
 * their own within a transaction.
 *
 * Wavefronts (Lemma 9.4, made exact for elements narrower than a bank): let S be the span of the
 * words that the transaction's lanes and the words of one vector reach. A bank serves |S ∩
 * segments| words, segments being the words with bank 0; so that is the count, 2^(dim S − dim
 * bank(S)). The lemma takes the lanes' span in elements instead of words and is then only a lower
 * bound.
 *
 * Refused, with the reason: outputs that differ in names or sizes, a memory layout that is not
 * surjective, a lane count other than the device's, more warps than it has, more bytes than its
 * shared memory, elements in another
 * block's memory, memory that has inputs other than offset and block, elements of part of a byte.
 */
LILAC_API LILAC_MUST_USE bool lilac_movement_access_init(lilac_movement_access *result,
                                                         const lilac_layout *distributed,
                                                         const lilac_layout *memory,
                                                         uint32_t element_bits,
                                                         const lilac_arch *arch, lilac_reason *why);
/* The same for padded memory. Accesses stay within an interval and aligned, which bounds the
 * vector. Adding is not linear, so the wavefronts are counted bank by bank: time in proportion to
 * the elements of all threads. Refused as well: intervals and paddings that are no powers of two.
 */
LILAC_API LILAC_MUST_USE bool
lilac_movement_access_init_padded(lilac_movement_access *result, const lilac_layout *distributed,
                                  const lilac_layout *memory, const lilac_movement_padding *padding,
                                  uint32_t element_bits, const lilac_arch *arch, lilac_reason *why);
/* The offset of the first element that a lane of a warp accesses with instruction number `step`,
 * its padding included. */
LILAC_API uint64_t lilac_movement_access_offset(const lilac_movement_access *access, uint64_t step,
                                                uint32_t lane, uint32_t warp);

/* Wavefronts of a transaction whose lanes, 2^lane_bits of them, access `bytes` each at the xor of
 * the byte addresses `lanes` of their set bits: a power of two. Lanes must be aligned to `bytes`, a
 * power of two. Exact whatever the lanes. */
LILAC_API uint32_t lilac_movement_transaction_wavefronts(const lilac_arch *arch, uint32_t bytes,
                                                         const uint64_t *lanes, uint32_t lane_bits);
/* Consecutive lanes that one transaction takes when each accesses `bytes`: arch->banks over the
 * words of an access, at least 1 and at most the lanes of a warp. */
LILAC_API uint32_t lilac_movement_transaction_lanes(const lilac_arch *arch, uint32_t bytes);

LILAC_END

#endif
