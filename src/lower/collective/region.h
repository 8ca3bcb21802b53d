/* Regions that combine two elements, shuffles, and addresses of elements in shared memory: the
 * common part of reductions, scans, gathers and histograms (region.c). */
#ifndef LILAC_LOWER_COLLECTIVE_REGION_H
#define LILAC_LOWER_COLLECTIVE_REGION_H

#include "coordinates.h"

/* Reads the attribute `axis`, a dimension of the operand's view; refuses any other number. */
bool lilac_lower_read_axis(lilac_lowering *l, const lilac_tile_op *op, const lilac_lower_view *view,
                           uint32_t *axis);
/* Refuses an operation that has another number of results than operands. */
bool lilac_lower_check_results(lilac_lowering *l, const lilac_tile_op *op);
/* a = region(a, b), one value for each operand: lowers the region's operations on scalars. */
bool lilac_lower_combine(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value *a,
                         const lilac_simt_value *b);
/* Shuffles a value of any width. The instruction moves 32-bit words: narrower values are widened,
 * values of 64 bits are split into halves. */
lilac_simt_value lilac_lower_shuffle(lilac_lowering *l, lilac_simt_shuffle kind,
                                     lilac_simt_value value, lilac_simt_value lane);
/* Shuffles `count` values, in[0], in[stride], …; packs two 16-bit values into a word. */
void lilac_lower_shuffle_row(lilac_lowering *l, lilac_simt_shuffle kind, lilac_simt_value lane,
                             uint32_t count, uint32_t stride, const lilac_simt_value *in,
                             lilac_simt_value *out);

/* The address of a coordinate in shared memory: base + (thread part ⊕ register part). A register
 * part that shares no bit with the thread part becomes an immediate. */
typedef struct lilac_lower_addressing {
    lilac_simt_value base; /* of the block's shared memory */
    lilac_simt_value thread;
    uint64_t thread_bits; /* the bits that the thread part may set */
} lilac_lower_addressing;
/* columns[i]: in bytes; xored over the set bits i of the thread's index. */
lilac_lower_addressing lilac_lower_address_threads(lilac_lowering *l, uint32_t bits,
                                                   const uint64_t *columns);
lilac_simt_value lilac_lower_address_of(lilac_lowering *l, const lilac_lower_addressing *a,
                                        uint64_t part, int64_t *immediate);

#endif
