/* The mbarriers of a cluster, and the arrivals that copies will make.
 *
 *     phase        0            1            2            a wait for parity p passes when the last
 *     parity       0            1            0            complete phase has it
 *     pending   2  1  0      2  1  0      2  …            arrivals that are missing
 *     bytes     0  64 0      0                            announced and not complete
 *
 * A phase completes when no arrival and no byte is missing. An arrival releases the clock of its
 * warp (shared.h) into the phase; a wait that passes acquires what the phase gathered. An
 * operation is an access to the object's 8 bytes: init and invalidate write them, the others are
 * atomic, so that a use that no barrier orders behind the init is a race.
 *
 * cp.async.mbarrier_arrive is recorded and takes place as late as possible: when no warp of the
 * cluster can go on, or at every other mbarrier.test (lilac_sim_land_oldest). The copies that it
 * tracks complete at that time. */
#ifndef LILAC_SIM_MBARRIERS_H
#define LILAC_SIM_MBARRIERS_H

#include "memory/shared.h"

struct lilac_sim_worker;
struct lilac_sim_knowledge;

/* What reports show of an mbarrier. */
typedef struct lilac_sim_phase {
    uint32_t count, pending; /* arrivals of a phase; missing ones of this phase */
    int64_t bytes;           /* of copies: announced and not complete; below 0: complete first */
    uint64_t number;         /* of complete phases */
} lilac_sim_phase;

typedef struct lilac_sim_mbarrier {
    uint64_t place; /* in the cluster's memory */
    lilac_sim_phase now;
    const lilac_sim_step *init, *last; /* last: the last arrival, or init */
    uint32_t *gathered, *complete;     /* clocks: of this phase, of the last complete one; two
                                          halves of one allocation */
    struct lilac_sim_knowledge *gathered_known, *complete_known;
    uint64_t *seen; /* by warp of the cluster: phases that were complete at its last wait */
} lilac_sim_mbarrier;

/* A cp.async.mbarrier_arrive that has not taken place. */
typedef struct lilac_sim_arrival {
    const lilac_sim_step *step;
    uint64_t place;
    uint64_t copies; /* that the block had started */
    uint32_t rank, warp, threads;
} lilac_sim_arrival;

typedef struct lilac_sim_mbarriers {
    lilac_sim_mbarrier *live;
    uint32_t count, capacity;
    lilac_sim_arrival *arrivals; /* oldest first */
    uint32_t arrival_count, arrival_capacity;
    uint64_t tests; /* mbarrier.test so far */
} lilac_sim_mbarriers;

/* A wait that has not passed; step NULL: there is none. */
typedef struct lilac_sim_waiting {
    const lilac_sim_step *step;
    uint64_t place;
    uint32_t parity;
} lilac_sim_waiting;

void lilac_sim_mbarriers_clear(lilac_sim_mbarriers *barriers);
/* At the start of a cluster: there are none. */
void lilac_sim_mbarriers_forget(lilac_sim_mbarriers *barriers);
/* Of the block in execution: every operation but a wait. False after a trap. */
LILAC_MUST_USE bool lilac_sim_mbarrier_step(struct lilac_sim_worker *worker,
                                            const lilac_sim_step *step);
/* A wait of the warps in execution begins; `waiting` is set when it does not pass. False after a
 * trap. */
LILAC_MUST_USE bool lilac_sim_mbarrier_wait(struct lilac_sim_worker *worker,
                                            const lilac_sim_step *step, lilac_sim_waiting *waiting);
/* Has the phase completed? Then the warps in execution acquire it, and waiting->step is NULL. */
bool lilac_sim_mbarrier_passes(struct lilac_sim_worker *worker, lilac_sim_waiting *waiting);
/* A part of a copy into shared memory is complete, whose writes have the stamp of `writer` (a warp
 * of the cluster or its asynchronous clock, shared.h): `bytes` bytes less are missing at the
 * mbarrier at this place. Begins an epoch. `step` is the copy's. False after a trap: no mbarrier
 * is there, or more bytes are complete than were announced. */
LILAC_MUST_USE bool lilac_sim_mbarrier_complete(struct lilac_sim_worker *worker,
                                                const lilac_sim_step *step, uint64_t place,
                                                uint32_t bytes, uint32_t writer);
/* The oldest arrival that copies make takes place, or, where there is none, the oldest bulk load
 * of the cluster. False: there is neither, or a trap (worker->trap.kind). */
bool lilac_sim_land_oldest(struct lilac_sim_worker *worker);
/* The cluster has ended: reports phases with missing bytes or arrivals. */
void lilac_sim_mbarriers_end(struct lilac_sim_worker *worker);
/* The mbarrier at a place, or NULL. */
const lilac_sim_mbarrier *lilac_sim_mbarrier_at(const struct lilac_sim_worker *worker,
                                                uint64_t place);

#endif
