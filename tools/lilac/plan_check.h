/* A conversion plan, executed on the simulator and compared with what it predicts. Shared by the
 * command and the tests. */
#ifndef LILAC_PLAN_CHECK_H
#define LILAC_PLAN_CHECK_H

#include <lilac/lower.h>
#include <lilac/plan.h>
#include <lilac/sim.h>

/* A count that the plan predicts for all blocks together, and the simulator's count. */
typedef struct checked_count {
    const char *name; /* "shuffles", "store wavefronts" … */
    uint64_t planned, simulated;
} checked_count;

enum { JUDGED_COUNTS = 12 };

typedef struct plan_check {
    bool ran;     /* false: the simulator refused or trapped; the context has its diagnostics */
    bool correct; /* every register of every thread, copies too, has the target's element */
    bool agrees;  /* all counts are equal, and there was no race or uninitialised read */
    lilac_sim_counters counters;
    checked_count counts[JUDGED_COUNTS];
} plan_check;

/* Runs the plan's kernel (lilac_lower_movement_kernel) with elements that contain their numbers,
 * and compares. Each mismatch appends a line to `said`. Races and uninitialised reads are also
 * diagnostics in the context. */
void check_plan(plan_check *result, lilac_text *said, lilac_context *context,
                const lilac_simt_module *module, const lilac_plan_conversion *plan,
                const lilac_layout *source, const lilac_layout *target);
/* All is well. */
bool plan_check_passed(const plan_check *result);

#endif
