/* A cluster in execution, and the worker that runs one cluster after another.
 *
 * A worker owns registers, shared memory and counters; global memory is everybody's. The blocks of
 * a cluster take turns: each runs up to its next cluster barrier, then the next block does. What a
 * worker finds it keeps as records, in order; launch.c makes diagnostics of them when all workers
 * are done.
 */
#ifndef LILAC_SIM_BLOCK_H
#define LILAC_SIM_BLOCK_H

#include "poison.h"
#include "races.h"
#include "shared.h"

#include <pthread.h>

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
    TRAP_INTERVAL,  /* of the access's promise */
    TRAP_RANK,      /* no such block in the cluster */
    TRAP_PREDICATE, /* differs within a warp where it must not */
    TRAP_GROUP_NUMBER,
    TRAP_GROUP_SIZE
} lilac_sim_trap_kind;

typedef struct lilac_sim_trap {
    lilac_sim_trap_kind kind;
    const lilac_simt_instruction *at;
    uint64_t block;
    uint32_t thread;
    uint64_t address; /* within the block of that rank */
    uint32_t size;    /* bytes of the access; of a group: its warps */
    uint32_t rank;    /* whose shared memory */
    const lilac_simt_instruction
        *use; /* TRAP_DIVISION: what the result reached, in which thread, */
    uint32_t use_thread;
    const char *what; /* and as what */
} lilac_sim_trap;

typedef enum lilac_sim_finding_kind {
    FINDING_UNINITIALISED_GLOBAL,
    FINDING_UNINITIALISED_SHARED,
    FINDING_READ_AFTER_WRITE,
    FINDING_WRITE_AFTER_READ,
    FINDING_WRITE_AFTER_WRITE,
    FINDING_NOT_BEGUN, /* shared memory of a block that may not run yet, or not any more */
    FINDING_ENDED,
    FINDING_GLOBAL_RACE,
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
} lilac_sim_finding;

/* Findings that differ in kind or lines, kept for each kind; later ones are counted only. */
enum { LILAC_SIM_FINDINGS = 8 };

/* Global memory: the launch's buffers in order of address. */
typedef struct lilac_sim_memory {
    pthread_mutex_t *atomics; /* held by the warp's instruction that is at it */
    const lilac_sim_buffer **buffers;
    uint32_t count;
    lilac_sim_races *races;
} lilac_sim_memory;

/* The buffer that holds all of [address, address + size), or NULL. */
const lilac_sim_buffer *lilac_sim_memory_find(const lilac_sim_memory *memory, uint64_t address,
                                              uint64_t size);

/* A block of the cluster that a worker runs. */
typedef struct lilac_sim_block {
    const lilac_sim_step *at; /* where it goes on */
    uint64_t issued;          /* instructions of each of its warps */
    bool ended;
    lilac_sim_finding reached; /* the first access to its memory by another block since the last
                                  cluster barrier; at: NULL when there was none */
} lilac_sim_block;

/* What a cluster printed: of the worker's text. */
typedef struct lilac_sim_printed {
    uint64_t cluster;
    size_t begin, end;
} lilac_sim_printed;

typedef struct lilac_sim_worker {
    const lilac_sim_program *program;
    const lilac_sim_launch *launch;
    const lilac_sim_memory *memory;
    const lilac_sim_buffer *last_buffer; /* hit by the access before */
    uint8_t *register_files;             /* one a block of the cluster */
    lilac_sim_shared shared;
    lilac_sim_poison poison;
    lilac_sim_order order;
    lilac_sim_block *blocks; /* of the cluster, by rank */
    uint32_t phase;          /* cluster barriers passed */
    uint8_t *registers;      /* of the block in execution */
    uint64_t block;          /* linear number, its program's place, its rank in the cluster */
    uint32_t place[3];
    uint32_t rank;
    uint64_t issued;   /* instructions of each warp of the block */
    uint64_t tally[3]; /* steps of each lilac_sim_tally */
    lilac_sim_counters counters;
    lilac_text text; /* printed */
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

/* block.c */
/* The lane that a lane reads from, as PTX's shfl with all lanes and no segments; a lane whose
 * partner lies outside its warp reads itself. The lane operand counts modulo the warp. */
uint32_t lilac_sim_partner(uint64_t kind, uint32_t lane, uint32_t operand, uint32_t warp_size);
void lilac_sim_worker_init(lilac_sim_worker *worker, const lilac_sim_program *program,
                           const lilac_sim_launch *launch, const lilac_sim_memory *memory);
void lilac_sim_worker_clear(lilac_sim_worker *worker);
/* Runs one cluster; false after a trap, which is in worker->trap. */
LILAC_MUST_USE bool lilac_sim_worker_run(lilac_sim_worker *worker, uint64_t cluster);
/* Always false. */
bool lilac_sim_worker_trap(lilac_sim_worker *worker, lilac_sim_trap_kind kind,
                           const lilac_sim_step *step, uint32_t thread);
void lilac_sim_worker_find(lilac_sim_worker *worker, lilac_sim_finding finding);
/* Of one kind, at the same lines. */
bool lilac_sim_same_finding(const lilac_sim_finding *a, const lilac_sim_finding *b);

#endif
