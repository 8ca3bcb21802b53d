/* Diagnostics from the records of traps and findings that workers keep.
 *
 *   report/traps.c     errors: traps
 *   report/findings.c  warnings: findings
 *   report/barriers.c  both, of mbarriers, named barriers and register budgets
 *   report/bulk.c      both, of bulk copies and the async proxy
 *   report/stall.c     a launch without progress
 *   report/places.c    names of blocks, threads, warps and addresses
 */
#ifndef LILAC_SIM_REPORT_H
#define LILAC_SIM_REPORT_H

#include "schedule.h"

void lilac_sim_report_trap(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_trap *trap);
void lilac_sim_report_finding(lilac_context *context, const lilac_sim_launch *launch,
                              const lilac_sim_memory *memory, const lilac_sim_finding *finding);
/* Names the loops of the blocks that have not ended. */
void lilac_sim_report_stall(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_schedule *schedule);

/* ---- barriers.c ------------------------------------------------------------------------- */

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

/* ---- bulk.c ------------------------------------------------------------------------------ */

/* `text` begins with the block and the thread. lilac_sim_put_bulk_trap appends the text of the
 * trap; the others report the finding. */
void lilac_sim_put_bulk_trap(lilac_text *text, const lilac_sim_memory *memory,
                             const lilac_sim_trap *trap);
void lilac_sim_report_bulk(lilac_context *context, const lilac_sim_launch *launch,
                           const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                           lilac_text *text);
/* A copy is in flight into a block that ends, and another block started it. */
void lilac_sim_report_multicast(lilac_context *context, const lilac_sim_finding *finding,
                                lilac_text *text);
void lilac_sim_report_map(lilac_context *context, const lilac_sim_finding *finding,
                          lilac_text *text);
void lilac_sim_report_swizzle(lilac_context *context, const lilac_sim_finding *finding,
                              lilac_text *text);
void lilac_sim_report_proxy(lilac_context *context, const lilac_sim_launch *launch,
                            const lilac_sim_memory *memory, const lilac_sim_finding *finding,
                            lilac_text *text);

/* ---- places.c ---------------------------------------------------------------------------- */

/* The name of the operation. */
const char *lilac_sim_name_of(const lilac_simt_instruction *instruction);
/* "block (3, 0, 0)"; ", rank 1" follows if a cluster has several blocks. */
void lilac_sim_put_block(lilac_text *out, const lilac_sim_launch *launch, uint64_t block);
/* "block (3, 0, 0), thread 17" */
void lilac_sim_put_place(lilac_text *out, const lilac_sim_launch *launch, uint64_t block,
                         uint32_t thread);
/* " of rank 1", or nothing if a cluster has one block. */
void lilac_sim_put_rank(lilac_text *out, const lilac_sim_launch *launch, uint32_t rank);
/* "'x' + 16", or the address if no buffer contains it. */
void lilac_sim_put_address(lilac_text *out, const lilac_sim_memory *memory, uint64_t address);
/* "warp 3", with the rank; `warp` counts all warps of the cluster. */
void lilac_sim_put_warp(lilac_text *out, const lilac_sim_launch *launch, uint32_t warp);

#endif
