/* The plans that the lowering executes, for those who explain a kernel. Each function copies its
 * plan, if the options ask for plans, as one of the operation that is being lowered. */
#ifndef LILAC_LOWER_EXECUTED_PLANS_H
#define LILAC_LOWER_EXECUTED_PLANS_H

#include "lower_internal.h"

void lilac_lower_note_access(const lilac_lowering *l, const lilac_plan_global_access *plan);
void lilac_lower_note_conversion(const lilac_lowering *l, const lilac_plan_conversion *plan,
                                 const lilac_layout_columns *from, const lilac_layout_columns *to,
                                 uint32_t element_bits);
void lilac_lower_note_reduction(const lilac_lowering *l, const lilac_plan_reduce *plan);
void lilac_lower_note_scan(const lilac_lowering *l, const lilac_plan_scan *plan);
void lilac_lower_note_gather(const lilac_lowering *l, const lilac_plan_gather *plan);
void lilac_lower_note_histogram(const lilac_lowering *l, const lilac_plan_histogram *plan);
void lilac_lower_note_shared(const lilac_lowering *l, const lilac_plan_access *access, bool loads,
                             uint32_t replicas);
/* `memory`: of the operands in shared memory, else NULL. */
void lilac_lower_note_dot(const lilac_lowering *l, const lilac_plan_dot *plan,
                          const lilac_plan_dot_problem *problem,
                          const lilac_plan_dot_memory *const memory[2]);

#endif
