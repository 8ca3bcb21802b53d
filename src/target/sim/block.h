/* A cluster in execution, and the worker that runs it.
 *
 * A worker owns registers, shared memory and counters; all workers share global memory. The blocks
 * of a cluster execute in turns: each executes up to its next cluster barrier or the end of its
 * turn. A cluster that waits for others is suspended, and the worker executes another one
 * (schedule.c). A worker records traps and findings; launch.c reports them when all workers have
 * ended.
 */
#ifndef LILAC_SIM_BLOCK_H
#define LILAC_SIM_BLOCK_H

#include "async/bulk.h"
#include "async/copies.h"
#include "async/mbarriers.h"
#include "checks/poison.h"
#include "checks/races.h"
#include "memory/shared.h"

#include <pthread.h>
#include <stdatomic.h>

typedef enum lilac_sim_trap_kind {
    TRAP_NONE,
    TRAP_GLOBAL_BOUNDS,
    TRAP_SHARED_BOUNDS,
    TRAP_MISALIGNED,
    TRAP_READ_ONLY,
    TRAP_DIVERGENT,
    TRAP_ASSERT,
    TRAP_DIVISION,
    TRAP_STEP,
    TRAP_LIMIT,
    TRAP_LIMIT_IN_LOOP,
    TRAP_INTERVAL,  /* outside the annotated range */
    TRAP_RANK,      /* no such block in the cluster */
    TRAP_PREDICATE, /* differs within a warp, but must not */
    TRAP_GROUP_NUMBER,
    TRAP_GROUP_SIZE,
    TRAP_COPY_BYTES, /* a copy would read more than it writes */
    TRAP_WARPGROUP,  /* an operand differs within a warpgroup, but must not */
    TRAP_BULK_SIZE,
    TRAP_BULK_ALIGNMENT, /* size: the required alignment */
    TRAP_TENSOR_MAP,     /* none at the global address, or one that the operation cannot use */
    TRAP_MULTICAST_MASK, /* address: the mask; size: blocks of the cluster */
    TRAP_MBARRIER_NONE,  /* at the address */
    TRAP_MBARRIER_INIT,  /* of one that is live */
    TRAP_MBARRIER_RANGE, /* of a count or a number of bytes; size */
    TRAP_MBARRIER_COUNT, /* more arrivals than the phase expects */
    TRAP_MBARRIER_BYTES, /* more bytes than the phase expects */
    TRAP_NAMED_COUNT,    /* more threads than the barrier has; size: the number of threads */
    TRAP_NAMED_TWICE,    /* a warp arrives again before the barrier completes */
    TRAP_REGISTERS,      /* an increase to fewer, a decrease to more; size: registers of a thread */
    TRAP_DEADLOCK
} lilac_sim_trap_kind;

/* Warps that wait in a deadlock. */
typedef struct lilac_sim_stuck {
    /* the wait; the barrier's last arrival, an mbarrier's init, or NULL */
    const lilac_simt_instruction *at, *last;
    lilac_sim_phase phase; /* of an mbarrier */
    uint32_t count;        /* threads at a named barrier; registers that are free */
    uint64_t block, address;
    uint32_t rank; /* whose shared memory */
    uint32_t first_warp, warps, parity;
} lilac_sim_stuck;

enum { LILAC_SIM_MOST_STUCK = 16 };

typedef struct lilac_sim_trap {
    lilac_sim_trap_kind kind;
    const lilac_simt_instruction *at;
    uint64_t block;
    uint32_t thread;
    uint64_t address; /* within the block of that rank */
    uint32_t size;    /* bytes of the access; of a group: its warps */
    uint32_t rank;    /* whose shared memory */
    bool global;      /* the address is one of global memory */
    const lilac_simt_instruction
        *use; /* TRAP_DIVISION: the instruction that uses the result; of an mbarrier: its last
                 arrival, or its init */
    uint32_t use_thread;
    const char *what;                            /* TRAP_DIVISION: the kind of operand */
    lilac_sim_phase phase;                       /* of an mbarrier */
    lilac_sim_stuck stuck[LILAC_SIM_MOST_STUCK]; /* TRAP_DEADLOCK */
    uint32_t stuck_count;
} lilac_sim_trap;

typedef enum lilac_sim_finding_kind {
    FINDING_UNINITIALISED_GLOBAL,
    FINDING_UNINITIALISED_SHARED,
    FINDING_READ_AFTER_WRITE,
    FINDING_WRITE_AFTER_READ,
    FINDING_WRITE_AFTER_WRITE,
    FINDING_NOT_BEGUN, /* access to shared memory of a block that may not have begun, or (ENDED) have ended */
    FINDING_ENDED,
    FINDING_GLOBAL_RACE,
    FINDING_READ_IN_FLIGHT, /* shared bytes of an incomplete copy */
    FINDING_WRITE_IN_FLIGHT,
    FINDING_SOURCE_CHANGED, /* global bytes of an incomplete copy; other: the wait */
    FINDING_NOT_AWAITED,    /* a copy, when its block ends; width: 1 if another block started it */
    FINDING_SOURCE_WRITTEN, /* shared bytes that an incomplete copy reads */
    FINDING_GLOBAL_IN_FLIGHT, /* global bytes that an incomplete copy writes */
    FINDING_PROXY_GLOBAL,     /* FINDING_PROXY of global memory */
    FINDING_MAP_NOT_ACQUIRED, /* a tensor map in scratch memory; other: its publication */
    FINDING_MAP_IN_USE,       /* published again; other: a copy that uses it */
    FINDING_SWIZZLE_BASE,     /* of a box; width: what the address should be a multiple of */
    FINDING_PROXY,            /* other: the generic write; width: 1 where it is fenced and the fence
                                not ordered */
    FINDING_MBARRIER_MISSED, /* phases that a warp did not wait for: width; other: the last arrival */
    FINDING_MBARRIER_UNFINISHED, /* a phase at the end; at: init */
    FINDING_NAMED_UNFINISHED,    /* a barrier at the end; width: threads that have arrived */
    FINDING_WGMMA_REGISTER,      /* a result in flight, or (other: NULL) gone, is used */
    FINDING_WGMMA_SERIALISED,    /* a result in flight is copied */
    FINDING_WGMMA_OPERAND,       /* changed up to the wait, other; width: of B; address: its byte */
    FINDING_WGMMA_FENCE,         /* no fence before */
    FINDING_WGMMA_UNCOMMITTED,   /* at the wait, other */
    FINDING_WGMMA_NOT_AWAITED,   /* when its block ends */
    FINDING_WGMMA_BASE, /* of a swizzled operand: address: its bits 7 to 9, width: the base offset; other:
                             where the descriptor is computed */
    FINDING_WGMMA_STRIDE, /* of a swizzled operand: address: bytes, width: the least number; other: as above */
    FINDING_KINDS
} lilac_sim_finding_kind;

typedef struct lilac_sim_finding {
    lilac_sim_finding_kind kind;
    const lilac_simt_instruction *at, *other; /* other: the earlier access of a race */
    uint64_t block;
    uint64_t address; /* of the first byte concerned */
    uint32_t rank;    /* whose shared memory that is */
    uint32_t thread;
    uint32_t warp, other_warp;    /* of all the warps of the cluster */
    uint64_t other_block;         /* of a race in global memory */
    uint32_t other_thread, width; /* bytes of an element */
    lilac_sim_phase phase;        /* of an mbarrier */
} lilac_sim_finding;

/* Findings of one kind with different lines that are kept; further ones are counted only. */
enum { LILAC_SIM_FINDINGS = 8 };

/* Global memory: the launch's buffers in order of address. */
typedef struct lilac_sim_memory {
    pthread_mutex_t *atomics; /* held during a warp's instruction */
    const lilac_sim_buffer **buffers;
    uint32_t count;
    lilac_sim_races *races;
} lilac_sim_memory;

/* The buffer that holds all of [address, address + size), or NULL. */
const lilac_sim_buffer *lilac_sim_memory_find(const lilac_sim_memory *memory, uint64_t address,
                                              uint64_t size);

/* Warps with one position in the program: those of a block, or those of one of its programs. */
typedef struct lilac_sim_agent {
    const lilac_sim_step *at; /* next step */
    uint32_t first_warp, end_warp;
    uint64_t issued; /* instructions of each of its warps */
    bool ended;
    lilac_sim_waiting waiting;
    uint32_t registers; /* of a thread: see set_max_registers */
} lilac_sim_agent;

/* A barrier of the hardware with an id. */
typedef struct lilac_sim_named {
    uint64_t warps; /* that have arrived, since it completed last: bit k is warp k of the block */
    uint32_t threads;
    const lilac_sim_step *last;
    uint32_t *gathered; /* clock */
    struct lilac_sim_knowledge *gathered_known;
} lilac_sim_named;

enum { LILAC_SIM_NAMED = 16 };

/* A block of the cluster that a worker runs. */
typedef struct lilac_sim_block {
    lilac_sim_agent *agents; /* the block's own agent, then those of its programs */
    uint32_t programs;       /* programs that have begun; 0: the block's own agent executes */
    uint64_t executed;       /* instructions of all warps */
    lilac_sim_named named[LILAC_SIM_NAMED];
    uint32_t free_registers;
    const lilac_simt_instruction *loop; /* loop in which its last turn ended; NULL: none */
    bool ended;
    bool waits;                /* at a cluster barrier */
    lilac_sim_finding reached; /* the first access to its memory by another block since the last
                                  cluster barrier; at: NULL when there was none */
} lilac_sim_block;

/* A cluster that has begun and not ended. While it runs, the worker holds these values. */
typedef struct lilac_sim_cluster {
    uint64_t number;
    uint8_t *register_files; /* one a block */
    lilac_sim_shared shared;
    lilac_sim_poison poison;
    lilac_sim_copies copies;
    lilac_sim_bulks bulks;
    lilac_sim_mbarriers mbarriers;
    struct lilac_sim_wgmmas *wgmmas;    /* NULL: the program has none */
    struct lilac_sim_knowledge **known; /* of lilac_sim_order */
    lilac_sim_block *blocks;            /* by rank */
    uint32_t phase;                     /* cluster barriers passed */
    uint64_t tally[3];                  /* steps of each lilac_sim_tally */
    uint64_t printed;                   /* bytes */
    bool sleeps;                        /* repeats the same state until global memory changes */
    uint64_t version;                   /* of global memory, at which it began to repeat */
} lilac_sim_cluster;

/* The state of a block at a back edge, to recognise it again (turns.c). */
typedef struct lilac_sim_snapshot {
    const lilac_sim_step *at;
    uint8_t *bytes;
    size_t capacity;
    uint64_t visits;   /* back edges of the block in this turn */
    uint32_t compares; /* comparisons left */
    uint64_t version;  /* of global memory */
    bool disturbed;    /* since then the block had an effect */
} lilac_sim_snapshot;

typedef struct lilac_sim_schedule lilac_sim_schedule;

/* The output of a cluster: a range of the worker's text. */
typedef struct lilac_sim_printed {
    uint64_t cluster;
    size_t begin, end;
} lilac_sim_printed;

typedef struct lilac_sim_worker {
    const lilac_sim_program *program;
    const lilac_sim_launch *launch;
    const lilac_sim_memory *memory;
    lilac_sim_schedule *schedule;
    const lilac_sim_buffer *last_buffer; /* buffer of the previous access */
    uint8_t *register_files;             /* these: of the cluster in execution */
    lilac_sim_shared shared;
    lilac_sim_poison poison;
    lilac_sim_copies copies;
    lilac_sim_bulks bulks;
    lilac_sim_mbarriers mbarriers;
    struct lilac_sim_wgmmas *wgmmas;
    lilac_sim_order order; /* what its warps know: the cluster's */
    lilac_sim_block *blocks;
    uint32_t phase;
    uint8_t *registers;            /* of the block in execution */
    uint32_t first_warp, end_warp; /* of the block that are in execution, and their threads */
    uint32_t first_thread, end_thread, threads;
    uint64_t block; /* linear number, its program's place, its rank in the cluster */
    uint32_t place[3];
    uint32_t rank;
    uint64_t issued;              /* instructions of each warp of the block */
    uint64_t tally[3];            /* of the cluster */
    uint64_t printed_bytes;       /* of the cluster */
    uint64_t turn_end;            /* value of issued at which the block's turn ends */
    uint64_t look_at;             /* value of issued at which the clock is read next */
    uint64_t look_rest;           /* instructions up to then, between turns */
    bool changed;                 /* a byte of global memory, since this was last false */
    bool progressed;              /* since the clock was read */
    uint32_t fruitless;           /* turns since the last look that found progress */
    uint64_t alive_seen;          /* when that progress was made */
    atomic_uint_fast64_t version; /* changes of global memory by this worker; grows */
    lilac_sim_snapshot snapshot;
    lilac_sim_cluster **residents; /* that have begun and not ended, in turn */
    uint32_t resident_count, resident_capacity;
    uint32_t next_resident;
    lilac_sim_cluster **spares; /* storage of clusters that have ended */
    uint32_t spare_count, spare_capacity;
    /* Under the schedule's lock: */
    bool idle, spins, gone;
    uint64_t idle_version; /* of global memory, when it became idle */
    lilac_sim_counters counters;
    lilac_sim_site *sites; /* one for each step; NULL: no profile is wanted */
    lilac_text text;       /* printed */
    lilac_sim_printed *printed;
    uint32_t printed_count, printed_capacity;
    lilac_sim_trap trap;
    lilac_sim_finding findings[FINDING_KINDS * LILAC_SIM_FINDINGS];
    uint32_t finding_count;
    uint32_t kept[FINDING_KINDS];
} lilac_sim_worker;

/* memory.c, memory_shared.c: one memory step for all threads; false after a trap. */
LILAC_MUST_USE bool lilac_sim_access_global(lilac_sim_worker *worker, const lilac_sim_step *step);
LILAC_MUST_USE bool lilac_sim_access_shared(lilac_sim_worker *worker, const lilac_sim_step *step);
LILAC_MUST_USE bool lilac_sim_access_atomic(lilac_sim_worker *worker, const lilac_sim_step *step);
LILAC_MUST_USE bool lilac_sim_access_matrix(lilac_sim_worker *worker, const lilac_sim_step *step);

/* effects.c */
void lilac_sim_vote(lilac_sim_worker *worker, const lilac_sim_step *step);
void lilac_sim_print(lilac_sim_worker *worker, const lilac_sim_step *step);
uint64_t lilac_sim_combine(uint64_t kind, lilac_simt_type type, uint64_t old, uint64_t value,
                           bool flush);

/* The lane that a lane reads from, as PTX's shfl with all lanes and no segments; a lane whose
 * partner lies outside its warp reads itself. The lane operand counts modulo the warp. */
uint32_t lilac_sim_partner(uint64_t kind, uint32_t lane, uint32_t operand, uint32_t warp_size);

/* Publishes that global memory has changed: blocks that sleep until then continue. */
static inline void lilac_sim_worker_publish(lilac_sim_worker *worker) {
    if (worker->changed) {
        uint64_t version = atomic_load_explicit(&worker->version, memory_order_relaxed);
        atomic_store_explicit(&worker->version, version + 1, memory_order_release);
    }
}

/* ---- turns.c ---------------------------------------------------------------------------- */

typedef enum lilac_sim_outcome {
    OUTCOME_GOES_ON,
    OUTCOME_TRAPPED,
    OUTCOME_ENDED,
    OUTCOME_WAITS,   /* a block: at a cluster barrier */
    OUTCOME_BLOCKED, /* an agent: it waits for others */
    OUTCOME_FORKED,  /* a block: its programs begin */
    OUTCOME_JOINED,  /* a program: it has ended */
    OUTCOME_YIELDS,
    OUTCOME_SLEEPS
} lilac_sim_outcome;

/* At the back edge of a while loop. The outcome says whether the turn of the block ends. */
lilac_sim_outcome lilac_sim_turn_back(lilac_sim_worker *worker, const lilac_sim_step *step);
/* At the back edge of a counted loop, when issued has reached look_at. False: the launch ends. */
bool lilac_sim_turn_look(lilac_sim_worker *worker, bool in_while);

/* ---- agents.c --------------------------------------------------------------------------- */

/* Storage for a block's agents and barriers, and their state when a cluster begins. */
void lilac_sim_agents_create(const lilac_sim_worker *worker, lilac_sim_block *block);
void lilac_sim_agents_destroy(lilac_sim_block *block);
void lilac_sim_agents_begin(const lilac_sim_worker *worker, lilac_sim_block *block);
/* Steps of the agent in execution. Barriers and registers are false after a trap; the agent waits
 * when agent->waiting.step is set. */
void lilac_sim_fork(lilac_sim_worker *worker, const lilac_sim_step *step);
LILAC_MUST_USE bool lilac_sim_named_barrier(lilac_sim_worker *worker, const lilac_sim_step *step,
                                            lilac_sim_agent *agent);
LILAC_MUST_USE bool lilac_sim_set_registers(lilac_sim_worker *worker, const lilac_sim_step *step,
                                            lilac_sim_agent *agent);
/* True: the agent in execution need not wait any longer. */
bool lilac_sim_agent_passes(lilac_sim_worker *worker, lilac_sim_agent *agent);
/* A program has ended. After the last one, the block's own agent continues. */
void lilac_sim_join(lilac_sim_worker *worker);
/* The block ends: reports barriers at which some threads have arrived. */
void lilac_sim_named_end(lilac_sim_worker *worker);
/* No agent of the cluster can continue. Sets the trap. */
void lilac_sim_trap_deadlock(lilac_sim_worker *worker);

/* ---- block.c, findings.c ---------------------------------------------------------------- */

void lilac_sim_worker_init(lilac_sim_worker *worker, const lilac_sim_program *program,
                           const lilac_sim_launch *launch, const lilac_sim_memory *memory);
void lilac_sim_worker_clear(lilac_sim_worker *worker);
/* Storage for a cluster, which begins with lilac_sim_cluster_begin. */
lilac_sim_cluster *lilac_sim_cluster_create(lilac_sim_worker *worker);
void lilac_sim_cluster_destroy(lilac_sim_cluster *cluster);
void lilac_sim_cluster_begin(lilac_sim_worker *worker, lilac_sim_cluster *cluster, uint64_t number);
/* Executes a cluster up to its end, a trap (in worker->trap) or the end of its turn. The outcome
 * is never GOES_ON or WAITS. */
lilac_sim_outcome lilac_sim_cluster_run(lilac_sim_worker *worker, lilac_sim_cluster *cluster);
/* Records a trap. Always false. */
bool lilac_sim_worker_trap(lilac_sim_worker *worker, lilac_sim_trap_kind kind,
                           const lilac_sim_step *step, uint32_t thread);
void lilac_sim_worker_find(lilac_sim_worker *worker, lilac_sim_finding finding);
/* The findings have the same kind and the same lines. */
bool lilac_sim_same_finding(const lilac_sim_finding *a, const lilac_sim_finding *b);

#endif
