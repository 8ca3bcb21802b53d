/* Execution of steps: those without control flow (steps.c), and the loop over the steps of an
 * agent (control.c). */
#ifndef LILAC_SIM_STEPS_H
#define LILAC_SIM_STEPS_H

#include "block.h"

/* Executes a step for all threads of the agent in execution. False: it traps. */
typedef bool lilac_sim_action(lilac_sim_worker *worker, const lilac_sim_step *step);

/* By lilac_sim_step_kind. NULL: the step changes the control flow or may wait; control.c executes
 * it. */
extern lilac_sim_action *const lilac_sim_actions[STEP_END + 1];

/* Executes the agent from agent->at on, until it ends, waits or traps, or its turn ends. Sets
 * agent->at to the step at which the agent continues. */
lilac_sim_outcome lilac_sim_run_agent(lilac_sim_worker *worker, lilac_sim_agent *agent);

#endif
