/* A conversion plan, executed on the simulator and compared with what it predicts. Shared by the command and the tests. */
#ifndef LILAC_PLAN_CHECK_H
#define LILAC_PLAN_CHECK_H

#include <lilac/lower.h>
#include <lilac/plan.h>
#include <lilac/sim.h>

/* What the plan says of all blocks together, and what the simulator counted. */
typedef struct checked_count {
    const char *name; /* "shuffles", "store wavefronts" … */
    uint64_t planned, simulated;
} checked_count;

enum { JUDGED_COUNTS = 12 };

typedef struct plan_check {
    bool ran;     /* false: the simulator refused or trapped, and its diagnostics say why */
    bool correct; /* every register of every thread, copies too, has the target's element */
    bool agrees;  /* all counts are the plan's, and there was no race or uninitialised read */
    lilac_sim_counters counters;
    checked_count counts[JUDGED_COUNTS];
} plan_check;

/* Runs the kernel that lilac_lower_movement_kernel made of the plan, with elements that say where
 * they belong, and compares. `said` gets a line for everything that is not as it should be. Races
 * and uninitialised reads are diagnostics in the context as well. */
void check_plan(plan_check *result, lilac_text *said, lilac_context *context,
                const lilac_simt_module *module, const lilac_plan_conversion *plan,
                const lilac_layout *source, const lilac_layout *target);
/* All is well. */
bool plan_check_passed(const plan_check *result);

#endif
