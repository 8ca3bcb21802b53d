/* Declarations that the files of the plan of a reduction share.
 *
 *   reduce.c          the bits that combine, and how each is combined
 *   reduce_memory.c   partial results in shared memory: their order, and the threads that load them
 *   reduce_price.c    the costs of the plan
 *   reduce_explain.c  the plan as text and JSON */
#ifndef LILAC_PLAN_REDUCE_H
#define LILAC_PLAN_REDUCE_H

#include "collective.h"

/* The element of the result that a bit of the groups leads to. */
static inline uint64_t lilac_plan_reduce_group_column(const lilac_plan_reduce *plan, uint32_t bit) {
    return lilac_plan_reduce_kept(plan, plan->source.registers[plan->group_register[bit]]);
}

/* The columns of the elements whose partials each thread loads. NULL: all threads load the partials
 * of the scalar. */
static inline const lilac_layout_columns *lilac_plan_reduce_loader(const lilac_plan_reduce *plan) {
    return plan->scalar ? NULL : plan->shares ? &plan->share : &plan->result;
}

/* Decides which threads load the partials, which groups the butterflies exchange, and the order of
 * memory. */
void lilac_plan_reduce_order_memory(lilac_plan_reduce *plan);
/* Computes the costs. All other fields are set. */
void lilac_plan_reduce_count(lilac_plan_reduce *plan);

#endif
