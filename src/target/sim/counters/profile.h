/* Counters by instruction. Only launches that ask for a profile have them. */
#ifndef LILAC_SIM_PROFILE_H
#define LILAC_SIM_PROFILE_H

#include "schedule.h"
#include "steps.h"

/* Storage of a worker, if the launch wants a profile. */
void lilac_sim_profile_begin(lilac_sim_worker *worker);
/* Executes a step and adds what the counters grow by to its site. */
LILAC_MUST_USE bool lilac_sim_profile_step(lilac_sim_worker *worker, const lilac_sim_step *step,
                                           lilac_sim_action *action);
/* Counts that the agent in execution issues a step. */
void lilac_sim_profile_issue(lilac_sim_worker *worker, const lilac_sim_step *step);
/* The sums over the workers of a launch. */
void lilac_sim_profile_end(const lilac_sim_schedule *schedule, const lilac_sim_program *program);

#endif
