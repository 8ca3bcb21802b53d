/* Declarations that the files of the plan of a gather share.
 *
 *   gather.c          places of elements, rounds, and the choice of the strategy
 *   gather_memory.c   the order of memory
 *   gather_price.c    prices of the two strategies */
#ifndef LILAC_PLAN_GATHER_H
#define LILAC_PLAN_GATHER_H

#include "collective.h"

/* A coordinate of the source without the bits that number the rounds. */
uint64_t lilac_plan_gather_in_round(const lilac_plan_gather *plan, uint64_t coordinate);
/* A coordinate of the source or of the result (`columns`) in the source's bits, without the
 * axis. */
uint64_t lilac_plan_gather_off_axis(const lilac_plan_gather *plan,
                                    const lilac_layout_columns *columns, uint64_t coordinate);
/* The same within a round, and a bit of the axis within a round. */
uint64_t lilac_plan_gather_off_axis_in_round(const lilac_plan_gather *plan,
                                             const lilac_layout_columns *columns,
                                             uint64_t coordinate);
uint64_t lilac_plan_gather_axis_unit(const lilac_plan_gather *plan, uint32_t bit);

/* Chooses the memory in which the stores and loads of a gather cost least, and fills in `memory`,
 * `store`, `barrier`, `exact` and `price`. Row-major memory and a barrier of the block if
 * `unswizzled`. False with the reason when there is none. */
bool lilac_plan_gather_choose_memory(lilac_plan_gather *plan, bool unswizzled, lilac_reason *why);

#endif
