/* Diagnostics from the records that workers keep. */
#ifndef LILAC_SIM_REPORT_H
#define LILAC_SIM_REPORT_H

#include "schedule.h"

void lilac_sim_report_trap(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_trap *trap);
void lilac_sim_report_finding(lilac_context *context, const lilac_sim_launch *launch,
                              const lilac_sim_memory *memory, const lilac_sim_finding *finding);
/* The loops in which the blocks are that have not ended. */
void lilac_sim_report_stall(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_schedule *schedule);

#endif
