/* What the files of the plan of a scan share: scan.c decides, scan_price.c counts. */
#ifndef LILAC_PLAN_SCAN_H
#define LILAC_PLAN_SCAN_H

#include "collective.h"

/* Items of a run. */
static inline uint64_t lilac_plan_scan_items(const lilac_plan_scan_run *run) {
    return UINT64_C(1) << __builtin_popcount(run->items);
}

/* Bits of a run that are register bits. */
static inline uint32_t lilac_plan_scan_register_bits(const lilac_plan_scan_run *run) {
    return run->count - (uint32_t)__builtin_popcount(run->in_threads);
}

/* Fills in the costs, when everything else is decided. */
void lilac_plan_scan_count(lilac_plan_scan *plan);

#endif
