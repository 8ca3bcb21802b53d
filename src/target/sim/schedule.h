/* The distribution of clusters over workers, and the end of launches without progress.
 *
 * Clusters begin in ascending order. A worker runs one up to its end, unless it waits in a while
 * loop: then the cluster stays resident, and the worker goes on with its next resident one or
 * begins another. So every cluster that has begun gets turns, with one host thread too, and a
 * cluster that waits for one with a higher number lets it begin.
 *
 *     residents   0: waits ──▶ 1: waits ──▶ 2: waits ──┐
 *                 ▲                                     ▼
 *                 └────────────────────────────── 3: begins, when none can run or all had a turn
 *
 * A block that comes back to the same state of registers and shared memory, with no effect of its
 * own and no change of global memory by anyone in between, repeats that state until global memory
 * changes. It sleeps until then. When all that has begun sleeps and nothing more can begin, no
 * block goes on: the launch ends at once. A loop that waits in other ways, with a counter, say, is
 * recognised by time: no progress for the launch's stall_seconds, although everything that has
 * begun had turns. Progress is
 *
 *     a cluster that ends
 *     a byte of global memory that changes
 *     an iteration of a counted loop that is in no while loop (such loops end)
 */
#ifndef LILAC_SIM_SCHEDULE_H
#define LILAC_SIM_SCHEDULE_H

#include "block.h"

typedef enum lilac_sim_stall {
    STALL_NONE,
    STALL_REPEATS, /* every block that has begun repeats its state */
    STALL_TIME
} lilac_sim_stall;

struct lilac_sim_schedule {
    const lilac_sim_launch *launch;
    lilac_sim_worker *workers;
    uint32_t count;
    uint64_t clusters;
    uint32_t most_residents;    /* of a worker */
    atomic_uint_fast64_t next;  /* cluster to begin */
    atomic_uint_fast64_t first; /* to trap so far; clusters: none */
    atomic_uint_fast64_t ended;
    atomic_uint_fast64_t alive; /* nanoseconds: when there was progress */
    atomic_uint_fast64_t report_at;
    atomic_int stall; /* lilac_sim_stall */
    uint64_t started;
    pthread_mutex_t lock;
};

/* Nanoseconds of a clock that does not go back. */
uint64_t lilac_sim_now(void);
/* Grows with every change of global memory. */
uint64_t lilac_sim_schedule_version(const lilac_sim_schedule *schedule);
/* There has been progress. */
void lilac_sim_schedule_alive(lilac_sim_schedule *schedule, uint64_t now);
/* Calls the launch's report of progress when it is due. */
void lilac_sim_schedule_report(lilac_sim_schedule *schedule, uint64_t now);
/* No progress was made for too long: ends the launch, unless a worker is at other work. */
void lilac_sim_schedule_stall(lilac_sim_worker *worker);

/* Runs all clusters. Afterwards schedule->first and schedule->stall say how it ended, and workers
 * keep the residents that have not ended. */
void lilac_sim_schedule_run(lilac_sim_schedule *schedule);

#endif
