/* pipeline_loops: what the files of the pass share. src/engine/pipeline/pipeline_loops.c has the terms.
 *
 *   loads.c          the loads that become copies, and the operations that their addresses need
 *   products.c       the matrix products that stay in flight over the back edge
 *   multicast.c      parts of operands that several blocks of a cluster need
 *   depth.c          the number of buffers
 *   requested.c      the number of buffers where the loop has a request (lilac/schedule.h)
 *   early_loads.c    loads of addresses, before the iteration of the copies
 *   rings.c          the rewriting: rings, copies ahead, waits
 *   replace_loads.c  the results of loads become buffers
 *   vector_reads.c   layouts in which threads read buffers in vectors
 *   fences.c         fences that order nothing any more
 *   sink_waits.c     copies before the loop start before anything waits for a load
 *   remove_dead.c    operations and carried values that nothing uses any more */
#ifndef LILAC_ENGINE_PIPELINE_H
#define LILAC_ENGINE_PIPELINE_H

#include "descriptors/boxes.h"
#include "internal.h"
#include "pipeline/schedule.h"

#include <lilac/tile_loops.h>

/* A load that becomes an asynchronous copy. `slot` is the type of one buffer, mutable; without a layout,
 * the layout is chosen after the rewriting. `selects`: masked elements are not zero, so a select is
 * needed behind the copy. `view` is the buffer of the current iteration, in the body. */
typedef struct pipeline_load {
    lilac_tile_op *op;
    lilac_tile_value *box;         /* what a tensor copy reads; NULL: the threads copy */
    const lilac_tile_type *tensor; /* what is copied: the load's result, perhaps in other blocks of
                                      the cluster (lilac_box_loaded) */
    const lilac_tile_type *slot;
    uint64_t bytes; /* of one buffer */
    bool selects;
    bool shared; /* several blocks of the cluster need a part, and each can copy a share of it */
    bool late;   /* may be copied one iteration later than others: delayed products alone read it */
    lilac_tile_value *ring; /* the allocation */
    lilac_tile_value *view;
} pipeline_load;

/* A sum of products that a carried value accumulates, in flight over the back edge. */
typedef struct pipeline_sum {
    uint32_t carried;       /* number of the carried value */
    lilac_tile_value *last; /* the result that the loop yields for it */
} pipeline_sum;

typedef struct pipeline {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena;
    lilac_axis_analysis axis;
    lilac_tile_op *loop;
    int64_t step;
    bool trip_count_known;
    uint64_t trip_count;

    uint32_t load_count;
    pipeline_load *loads;       /* in the order of the body */
    uint32_t box_count;         /* of them, tensor copies */
    lilac_tile_value *barriers; /* of tensor copies, one for each buffer */
    bool multicasts;         /* each block copies its share of shared parts to all that need it */
    lilac_tile_value *empty; /* mbarriers at which all blocks of the cluster release a buffer */
    bool *ahead;             /* by value id: the copies' addresses and masks need the value */

    uint32_t product_count; /* operations in flight */
    lilac_tile_op **products;
    lilac_tile_op *last_product;
    uint32_t sum_count;
    pipeline_sum *sums;
    bool in_flight;         /* there are such products */
    bool delays;            /* delay_products delays products of the loop */
    uint32_t delayed_words; /* registers of a thread that they carry from iteration to iteration */
    bool can_be_late;       /* some loads can be copied late, all that delayed products read */
    bool late;              /* they are: no buffer is kept for the delayed products */

    uint32_t distance;          /* iterations between a copy and its use */
    uint32_t buffers;           /* of each ring */
    bool longer_with_one_block; /* the rings, if no multiprocessor got two blocks of a launch */
    bool
        copies_ordered; /* the barrier in front of the first product orders them behind all reads of the
                            buffers that they fill */
    uint32_t copies; /* where an iteration starts them: LILAC_COPIES_FIRST, … */
    bool guarded;    /* the loop is in a conditional that skips it if it has no iteration */
    bool refused;    /* its request is not possible, which a diagnostic says */
} pipeline;

/* What the rewriting of a loop shares. */
typedef struct pipeline_rewriting {
    pipeline *p;
    uint32_t op_count;
    lilac_tile_op **ops; /* what the copies need, in the order of the body */
    uint32_t carried_count;
    uint32_t *carried;          /* the carried values among it */
    lilac_tile_value **current; /* their values in the next iteration of which copies start */
    uint32_t first_carried;     /* in the loop, the number of the first of them */
    uint32_t distance;          /* of the copies */
    bool late;                  /* for the loads that are copied late; otherwise, for the others */
    lilac_tile_mapping *mapping;

    uint32_t early_count; /* of `ops`: loads whose results are carried, */
    lilac_tile_op **early;
    uint32_t near_count; /* and what they need */
    lilac_tile_op **near;
} pipeline_rewriting;

/* loads.c */
/* Finds the loads, and marks what their addresses need. False: there are none. */
bool lilac_pipeline_find_loads(pipeline *p);
/* The load that an operand's memory in the body is a copy of: through views to a ttg.local_alloc of
 * the loaded tensor in its ring's layout. NULL: none. */
const pipeline_load *lilac_pipeline_load_of(const pipeline *p, const lilac_tile_value *memory);
/* The same for the tensor of a ttg.local_alloc. */
const pipeline_load *lilac_pipeline_load_of_alloc(const pipeline *p, const lilac_tile_op *alloc);
/* The operations of the body in order of which `ahead` has a result. */
bool lilac_pipeline_is_ahead(const pipeline *p, const lilac_tile_op *op);

/* products.c */
void lilac_pipeline_find_products(pipeline *p);
/* Marks the products that delay_products delays. */
void lilac_pipeline_mark_delayed(const pipeline *p);
/* Puts the loop into scf.if unless it is known to have an iteration. */
void lilac_pipeline_guard(pipeline *p);
/* Makes the products asynchronous, with waits behind them and behind the loop. Returns the wait in
 * the body, behind which no product of the preceding iteration is in flight; NULL: there is none. */
lilac_tile_op *lilac_pipeline_start_products(pipeline *p);

/* multicast.c */
/* Sets `multicasts`, and which loads have shares. `clocks`: of the products of an iteration. True:
 * there are shares, whether that pays or not. */
bool lilac_pipeline_find_shares(pipeline *p, uint64_t clocks);
/* Makes the blocks of descriptors so small that each share has whole ones. */
void lilac_pipeline_divide_shares(const pipeline *p);
/* In front of the loop, behind the rings' mbarriers. */
void lilac_pipeline_make_empty_barriers(pipeline *p);
/* Releases the buffer of the iteration before, whose products are complete, to all blocks, and
 * waits until all have released that of the next copies. `phase`: the parity of the slot. */
void lilac_pipeline_release(const pipeline *p, lilac_tile_value *slot, lilac_tile_value *phase,
                            lilac_tile_op *place);
/* A copy of the load. What releases a buffer orders the copies behind it. */
void lilac_pipeline_mark_copy(const pipeline *p, const pipeline_load *load, lilac_tile_op *copy);
/* Behind the loop and its products. */
void lilac_pipeline_remove_empty_barriers(const pipeline *p, lilac_tile_op *place);

/* depth.c */
/* Sets the distance, the number of buffers and the place of the copies, as the loop's request says
 * where it has one. False: no ring fits, or the request is refused. */
bool lilac_pipeline_choose_depth(pipeline *p, uint32_t stages);
/* The first wgmma of the body; NULL: there is none. */
lilac_tile_op *lilac_pipeline_first_product(const pipeline *p);
/* Is there a barrier of the block in an iteration up to the product, behind which no warp reads the
 * buffer of the iteration before? */
bool lilac_pipeline_begins_with_barrier(const pipeline *p, const lilac_tile_op *product);

/* requested.c */
/* Has the request a key that pipeline_loops carries out? */
bool lilac_pipeline_is_requested(const lilac_schedule *asked);
/* Sets the products that stay in flight, and those that are delayed, as requested. False: refused. */
bool lilac_pipeline_request_products(pipeline *p, const lilac_schedule *asked);
/* Sets the rest, where `p` has what depth.c chooses. `bytes`: of one buffer of all rings; `most`:
 * what all of them may have; `shares`: a multicast is possible. False: refused. */
bool lilac_pipeline_request_depth(pipeline *p, const lilac_schedule *asked, uint64_t bytes,
                                  uint64_t most, bool shares);

/* early_loads.c */
/* Finds the loads that can be executed one iteration before the copies that need them. */
void lilac_pipeline_find_early_loads(pipeline_rewriting *r);
bool lilac_pipeline_is_early(const pipeline_rewriting *r, const lilac_tile_op *op);
/* Clones the early loads of an iteration before `place`; the mapping has the iteration's counter
 * and carried values. `exists`: the iteration exists; NULL: it does. Afterwards the loads are
 * mapped. */
void lilac_pipeline_clone_early(pipeline_rewriting *r, lilac_tile_value *exists,
                                lilac_tile_op *place);

/* replace_loads.c */
/* The same memory as mutable: one buffer (0), or a ring of buffers. */
const lilac_tile_type *lilac_pipeline_memory_type(const pipeline *p, const lilac_tile_type *type,
                                                  uint32_t buffers);
/* Replaces the result of a load, whose `view` is set, and removes the load. */
void lilac_pipeline_replace_load(const pipeline *p, const pipeline_load *load);

/* vector_reads.c */
/* The layout in which reading the load's buffer costs least, with the exchanges within warps that make `to` of
 * it, interned, if that is at most half of what a read in the layout `to` costs; NULL: it is not. Vectors of
 * words, where that one has smaller ones. */
const lilac_layout *lilac_pipeline_vector_reads(const pipeline *p, const pipeline_load *load,
                                                const lilac_layout *to);

/* rings.c */
/* Replaces the loads by copies, in the body and before the loop. */
void lilac_pipeline_rewrite(pipeline *p);
/* Clones a load of an iteration that may not exist; there it gives zeros. */
void lilac_pipeline_clone_load(pipeline_rewriting *r, const lilac_tile_op *op,
                               lilac_tile_value *exists, lilac_tile_op *place);
/* An operation before `place`. `type`: of its result; NULL: it has none. */
lilac_tile_op *lilac_pipeline_make(const pipeline *p, lilac_tile_opcode code, uint32_t count,
                                   lilac_tile_value *const *operands, const lilac_tile_type *type,
                                   lilac_tile_op *place);
/* A comparison of two scalars before `place`. */
lilac_tile_value *lilac_pipeline_compare(const pipeline *p, const char *predicate,
                                         lilac_tile_value *a, lilac_tile_value *b,
                                         lilac_tile_op *place);

/* fences.c */
/* May the operation, or one in its regions, store operands by ordinary stores? */
bool lilac_pipeline_may_store(lilac_tile_op *op);
void lilac_pipeline_remove_fences(const pipeline *p);

/* sink_waits.c */
/* Moves what waits for loads from in front of `end`, where the copies begin, to the front of the
 * loop. */
void lilac_pipeline_sink_waits(pipeline *p, const lilac_tile_op *end);

/* remove_dead.c */
/* Removes operations without effects whose results nothing uses, and carried values likewise, from the
 * loop. Loads that are not volatile count as without effects. */
void lilac_pipeline_remove_dead(pipeline *p);

#endif
