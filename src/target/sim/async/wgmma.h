/* wgmma from its issue to the wait that covers it.
 *
 *     wgmma          its operands are recorded; D is garbage from here …
 *     wgmma.commit   the wgmmas since the last commit are a group
 *     wgmma.wait N   … to here: all groups but the newest N complete, oldest first (N at most 7)
 *
 * A wgmma happens as late as the wait allows: then it reads A and B again, in shared memory
 * through their descriptors or in registers. If they differ from what they were at the issue, a
 * thread changed them too early. Both times each of the four warps reads the bytes (shared.h), so
 * that another warp may overwrite them only behind the wait of each of these.
 *
 * Registers. A result has the register of its accumulator where lilac_simt_register_homes says so.
 * From the issue on the accumulator's value is gone, and the result is in flight; a wgmma on the
 * same registers, a wait and a yield into the argument with the same register may take it over.
 * Anything else that reads it is reported. Where a value in flight has to move to another register
 * (an assembler waits for the wgmma there: the pipeline is serialised), that is reported and
 * everything completes.
 *
 * What is in flight belongs to a warpgroup of a block of a cluster; a cluster that is suspended
 * keeps it. */
#ifndef LILAC_SIM_WGMMA_H
#define LILAC_SIM_WGMMA_H

#include "lanes/multiply.h"

struct lilac_sim_worker;

typedef struct lilac_sim_wgmmas lilac_sim_wgmmas;

/* Of a cluster; NULL: the program has none. */
lilac_sim_wgmmas *lilac_sim_wgmmas_create(const lilac_sim_program *program);
void lilac_sim_wgmmas_destroy(lilac_sim_wgmmas *wgmmas);
/* At the start of a cluster: nothing is in flight. */
void lilac_sim_wgmmas_forget(lilac_sim_wgmmas *wgmmas);

/* The steps wgmma, wgmma.fence, wgmma.commit and wgmma.wait. */
static inline bool lilac_sim_is_wgmma(const lilac_sim_step *step) {
    return step->kind >= STEP_WGMMA && step->kind <= STEP_WGMMA_WAIT;
}

/* Before any step of the block in execution but these: reports uses of registers in flight,
 * and follows values through the copies of loops and branches. */
void lilac_sim_wgmma_watch(struct lilac_sim_worker *worker, const lilac_sim_step *step);
/* One of these steps; false after a trap. */
LILAC_MUST_USE bool lilac_sim_wgmma_step(struct lilac_sim_worker *worker,
                                         const lilac_sim_step *step);
/* The block ends: reports what is in flight. */
void lilac_sim_wgmmas_end(struct lilac_sim_worker *worker);

/* ---- operands (wgmma_operands.c) -------------------------------------------------------- */

enum { LILAC_SIM_OPERAND_BYTES = 32 * (64 + 256) /* of A, then of B */ };

/* The operands of a warpgroup: 32 bytes along k for each row of A, then for each column of B. */
typedef struct lilac_sim_operands {
    uint8_t bytes[LILAC_SIM_OPERAND_BYTES];
    bool accumulate;
} lilac_sim_operands;

/* Reads them for warpgroup number `group`, with the accounts of who reads what. `first`: at the
 * issue, where the async proxy must see the bytes. False: a trap. */
LILAC_MUST_USE bool lilac_sim_operands_read(struct lilac_sim_worker *worker,
                                            const lilac_sim_step *step,
                                            const uint64_t descriptors[2], uint32_t group,
                                            bool first, lilac_sim_operands *to);
/* The descriptors of A (0 when it is in registers) and B, and whether to accumulate: the same in
 * all threads of the warpgroup, or a trap. */
LILAC_MUST_USE bool lilac_sim_operands_agree(struct lilac_sim_worker *worker,
                                             const lilac_sim_step *step, uint32_t group,
                                             uint64_t descriptors[2], bool *accumulate);
/* The place of the first difference: of A or B, and its byte; false: there is none. */
bool lilac_sim_operands_differ(const lilac_sim_matrix *matrix, const lilac_sim_operands *a,
                               const lilac_sim_operands *b, bool *in_b, uint32_t *at);
/* D of a warpgroup from its C, in place: accumulators[i][thread of the group]. */
void lilac_sim_operands_multiply(const lilac_sim_matrix *matrix, const lilac_sim_operands *operands,
                                 uint32_t (*accumulators)[128]);

#endif
