/* What the files of the plan of a reduction share.
 *
 *   reduce.c          which bits combine, and how each does
 *   reduce_memory.c   partial results in shared memory: their order, and who loads them
 *   reduce_price.c    what the plan costs
 *   reduce_explain.c  the plan as text and JSON */
#ifndef LILAC_PLAN_REDUCE_H
#define LILAC_PLAN_REDUCE_H

#include "collective.h"

/* The element of the result that a bit of the groups leads to. */
static inline uint64_t lilac_plan_reduce_group_column(const lilac_plan_reduce *plan, uint32_t bit) {
    return lilac_plan_reduce_kept(plan, plan->source.registers[plan->group_register[bit]]);
}

/* The columns of the elements that threads load partials of; NULL: all of them load the scalar's. */
static inline const lilac_layout_columns *lilac_plan_reduce_loader(const lilac_plan_reduce *plan) {
    return plan->scalar ? NULL : plan->shares ? &plan->share : &plan->result;
}

/* Decides who loads the partials, which groups butterflies give away, and the order of memory. */
void lilac_plan_reduce_order_memory(lilac_plan_reduce *plan);
/* Fills in the costs, when everything else is decided. */
void lilac_plan_reduce_count(lilac_plan_reduce *plan);

#endif
