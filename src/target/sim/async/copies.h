/* Asynchronous copies from global to shared memory, from their start to their completion.
 *
 *     cp.async          reads its source; its destination is in flight from here …
 *     cp.async.commit   the copies since the last commit are a group
 *     cp.async.wait N   … to here: all groups but the newest N complete, oldest first
 *
 * A copy completes as late as the wait allows: then it reads its source again, which must not have
 * changed, and writes its destination, as a write of its warp at that time. The threads of a
 * warp take the same steps, so that its groups are those of each of its threads. What is in flight
 * belongs to a cluster, each copy to one of its blocks; a cluster that is suspended keeps it. */
#ifndef LILAC_SIM_COPIES_H
#define LILAC_SIM_COPIES_H

#include "memory/shared.h"

struct lilac_sim_worker;
struct lilac_sim_transfer;
struct lilac_sim_arrival;

typedef struct lilac_sim_copies {
    /* In the order of their starts; behind them spare storage, up to `allocated`. */
    struct lilac_sim_transfer **flying;
    uint32_t count, allocated, capacity;
    uint64_t *commits; /* of each warp of the cluster */
    /* Of each warp: the last group that has a copy tracked by a completed arrival, and the epoch
     * in which that copy was completed. */
    uint64_t *landed_group;
    uint32_t *landed_epoch;
    uint64_t started; /* copies of the cluster */
} lilac_sim_copies;

void lilac_sim_copies_clear(lilac_sim_copies *copies);
/* At the start of a cluster with that many warps: nothing is in flight. */
void lilac_sim_copies_forget(lilac_sim_copies *copies, uint32_t warps);
/* The steps of the block in execution; start is false after a trap. */
LILAC_MUST_USE bool lilac_sim_copy_start(struct lilac_sim_worker *worker,
                                         const lilac_sim_step *step);
void lilac_sim_copy_commit(struct lilac_sim_worker *worker);
/* The copies that an arrival tracks complete; their writes have the clock `writer`. */
void lilac_sim_copies_land(struct lilac_sim_worker *worker, const struct lilac_sim_arrival *arrival,
                           uint32_t writer);
void lilac_sim_copy_wait(struct lilac_sim_worker *worker, const lilac_sim_step *step);
/* The block ends: reports what is in flight. */
void lilac_sim_copies_end(struct lilac_sim_worker *worker);

#endif
