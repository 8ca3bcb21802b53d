/* What the files of tt.reduce share.
 *
 *   reduce_plan.c     which bits of the layout combine, and how each does
 *   reduce.c          the code: registers, lanes, and the whole
 *   reduce_shared.c   what meets in shared memory: where it stands, and the code */
#ifndef LILAC_LOWER_REDUCE_H
#define LILAC_LOWER_REDUCE_H

#include "lower_internal.h"

#define LILAC_REDUCE_MOST 16 /* register bits, and thread bits */
#define LILAC_REDUCE_SLOT 64 /* above the number of any register bit */

/* Of `group` bits of registers each setting is another element of the result; `fold` bits combine
 * within a thread. A slot is one of the partials of an element in shared memory. */
typedef struct lilac_reduce_plan {
    const lilac_lower_view *in;
    const lilac_lower_view *out; /* NULL: a scalar */
    uint32_t axis, operands;
    uint32_t keep_bits; /* of a coordinate of the result */
    /* registers */
    uint32_t group_bits, group_register[LILAC_REDUCE_MOST];
    uint32_t fold_bits, fold_masks[LILAC_REDUCE_MOST];
    /* lanes */
    uint32_t lane_steps, lane_masks[LILAC_REDUCE_MOST], lane_pivots[LILAC_REDUCE_MOST];
    /* warps (and lanes that need another register) */
    uint32_t slot_bits, slot_thread[LILAC_REDUCE_MOST];
    uint32_t idle_threads;             /* bits that are 0 in the threads that write */
    bool shared;                       /* warps' results meet in shared memory */
    uint64_t keeps[LILAC_REDUCE_MOST]; /* what each thread bit keeps, at the writing */
    /* Lane step i hands on group bit [i]. */
    uint32_t give_steps, give_group[LILAC_REDUCE_MOST];
    const lilac_lower_view *reader; /* who reads partials: `out`, or threads with a share each */
    /* Where the partial of an element stands: bit j of its coordinate in this basis, and of its
     * slot, gives this bit of the index. */
    lilac_f2_basis basis;
    uint32_t place[LILAC_LAYOUT_MAX_BITS], slot_place[LILAC_REDUCE_MOST];
    uint32_t write_bits, write_group[4]; /* the bits of a vector that is written: groups' bits */
    uint32_t read_bits, read_register[4]; /* … that is read: registers' bits, or …_SLOT + a slot */
    /* Not 0: the lanes whose numbers differ in these bits want the same elements, and each reads
     * one partial of them, its bits' slot; butterflies do the rest. */
    uint32_t reading_lanes;
    /* Otherwise, where the result's registers are among the groups; or `moves`: they stand in other
     * threads. */
    const uint32_t *source;
    bool moves;
} lilac_reduce_plan;

/* ---- the plan (reduce_plan.c) ------------------------------------------------------------ */

/* The part of a coordinate that the result keeps: its own coordinate. */
uint64_t lilac_reduce_kept(const lilac_reduce_plan *p, uint64_t coordinate);
/* False, with a diagnostic, when the layouts or the axis are none that can be reduced. */
bool lilac_reduce_make_plan(lilac_lowering *l, const lilac_tile_op *op, lilac_reduce_plan *p);
/* What a thread has after its registers and lanes are combined: one register for each group. */
void lilac_reduce_view(const lilac_reduce_plan *p, lilac_lower_view *view);

/* ---- combining (reduce.c) ---------------------------------------------------------------- */

/* Combines `count` (a power of two) elements standing one after another into the first: neighbours
 * first, so that what came earlier stays on the left and of an arg-max's indices the order is
 * known. */
bool lilac_reduce_combine_tree(lilac_lowering *l, const lilac_tile_op *op,
                               lilac_simt_value *elements, uint32_t count);
/* Gives lanes the bits of one among them, `columns` of the lane's bits say which, where those that
 * combined their values may differ. `count` elements of all operands, one after another. */
void lilac_reduce_agree(lilac_lowering *l, const lilac_tile_op *op, uint32_t lane_bits,
                        const uint64_t *columns, uint32_t count, lilac_simt_value *elements);
/* Elements that stand as `from` says, moved where the results want them. */
bool lilac_reduce_take_results(lilac_lowering *l, const lilac_reduce_plan *p,
                               const lilac_lower_view *from, uint32_t count,
                               const lilac_simt_value *elements, lilac_lower_value *const *results);

/* ---- shared memory (reduce_shared.c) ----------------------------------------------------- */

/* Where the partials stand and who reads them. `size`: bytes of the widest operand's element. */
void lilac_reduce_plan_shared(lilac_lowering *l, lilac_reduce_plan *p, uint32_t size);
/* From the lanes' elements to the results. */
bool lilac_reduce_through_shared(lilac_lowering *l, const lilac_tile_op *op,
                                 const lilac_reduce_plan *p, const lilac_simt_value *elements,
                                 lilac_lower_value *const *results);

#endif
