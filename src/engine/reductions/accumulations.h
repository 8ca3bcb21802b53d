/* accumulations: the reductions whose results a loop accumulates, and the division of their axis into
 * threads and registers. split_reductions.c draws the transformation. */
#ifndef LILAC_ENGINE_ACCUMULATIONS_H
#define LILAC_ENGINE_ACCUMULATIONS_H

#include "layouts/assign.h"

enum {
    MOST_REDUCED = 4, /* operands of one reduction */
    MOST_MOVED = 8    /* operations between a reduction and the update */
};

/* One result of a reduction, and where it goes. `scale` multiplies the accumulator before the update, by
 * another operand; NULL: nothing does. */
typedef struct accumulation {
    lilac_tile_op *moved[MOST_MOVED]; /* the operations between the reduction and the update */
    uint32_t moved_count;
    lilac_tile_op *update, *scale;
    uint32_t side, slot; /* the operand of the update that is the accumulator; its carried value */
    uint32_t scale_side; /* the operand of the product that is the accumulator */
    int64_t neutral;     /* its bits */
} accumulation;

/* The axis of a layout: runs of bits of one kind, the highest first. */
typedef struct axis_split {
    uint32_t runs, bits[LILAC_LAYOUT_MAX_BITS];
    bool in_threads[LILAC_LAYOUT_MAX_BITS];
    uint32_t thread_bits, register_bits;
} axis_split;

typedef struct accumulation_candidate {
    lilac_tile_op *loop, *reduce;
    uint32_t axis;
    accumulation of[MOST_REDUCED];
    axis_split split;
    lilac_layout view;    /* of the operand, with the axis as T × R */
    lilac_layout partial; /* of the accumulators */
} accumulation_candidate;

/* Fills the candidate from its loop and its reduction. False: not all results are accumulators of the
 * loop, or the layout does not divide the axis. */
bool lilac_accumulation_find(accumulation_candidate *c);
/* The bits of each dimension of a layout, the axis divided into its runs. Returns their number. */
uint32_t lilac_accumulation_divided(const accumulation_candidate *c, const lilac_layout *layout,
                                    uint32_t *bits);
/* The order of these dimensions that puts the runs in threads before those in registers. False: it is the
 * identity. */
bool lilac_accumulation_order(const accumulation_candidate *c, uint32_t rank, uint32_t *order);

#endif
