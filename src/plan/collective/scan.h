/* Declarations that the files of the plan of a scan share. scan.c computes the plan,
 * scan_price.c its costs. */
#ifndef LILAC_PLAN_SCAN_H
#define LILAC_PLAN_SCAN_H

#include "collective.h"

/* The number of items of a run. */
static inline uint64_t lilac_plan_scan_items(const lilac_plan_scan_run *run) {
    return UINT64_C(1) << __builtin_popcount(run->items);
}

/* The number of register bits of a run. */
static inline uint32_t lilac_plan_scan_register_bits(const lilac_plan_scan_run *run) {
    return run->count - (uint32_t)__builtin_popcount(run->in_threads);
}

/* Computes the costs. All other fields are set. */
void lilac_plan_scan_count(lilac_plan_scan *plan);

#endif
