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

/* Of mbarriers (report_barriers.c). */
void lilac_sim_report_mbarrier_trap(lilac_context *context, const lilac_sim_launch *launch,
                                    const lilac_sim_trap *trap, const char *id);
void lilac_sim_report_mbarrier_finding(lilac_context *context, const lilac_sim_launch *launch,
                                       const lilac_sim_finding *finding);
void lilac_sim_report_program_trap(lilac_context *context, const lilac_sim_launch *launch,
                                   const lilac_sim_trap *trap, const char *id);
void lilac_sim_report_named_finding(lilac_context *context, const lilac_sim_launch *launch,
                                    const lilac_sim_finding *finding);
void lilac_sim_report_deadlock(lilac_context *context, const lilac_sim_launch *launch,
                               const lilac_sim_trap *trap);

/* Of operations of the async proxy (report_bulk.c); the text has the block and thread, a trap's ends
 * with it. */
void lilac_sim_put_bulk_trap(lilac_text *text, const lilac_sim_memory *memory,
                             const lilac_sim_trap *trap);
void lilac_sim_report_bulk(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                           lilac_text *text);
/* A copy is in flight into a block that ends, and another block started it. */
void lilac_sim_report_multicast(lilac_context *context, const lilac_sim_finding *finding,
                                lilac_text *text);
void lilac_sim_report_swizzle(lilac_context *context, const lilac_sim_finding *finding,
                              lilac_text *text);
void lilac_sim_report_proxy(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                            lilac_text *text);

/* "block (3, 0, 0)", with the rank where a program has several blocks; with ", thread 17"; " of rank
 * 1", where there is a choice. */
void lilac_sim_put_block(lilac_text *out, const lilac_sim_launch *launch, uint64_t block);
void lilac_sim_put_place(lilac_text *out, const lilac_sim_launch *launch, uint64_t block,
                         uint32_t thread);
void lilac_sim_put_rank(lilac_text *out, const lilac_sim_launch *launch, uint32_t rank);
/* "'x' + 16" or the bare address; "warp 3" of all the cluster's warps. */
void lilac_sim_put_address(lilac_text *out, const lilac_sim_memory *memory, uint64_t address);
void lilac_sim_put_warp(lilac_text *out, const lilac_sim_launch *launch, uint32_t warp);

#endif
