/* A block in execution, and the worker that runs one block after another.
 *
 * A worker owns registers, shared memory and counters; global memory is everybody's. What it finds
 * it keeps as records, in order; launch.c makes diagnostics of them when all workers are done.
 */
#ifndef LILAC_SIM_BLOCK_H
#define LILAC_SIM_BLOCK_H

#include "program.h"

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
    TRAP_LIMIT
} lilac_sim_trap_kind;

typedef struct lilac_sim_trap {
    lilac_sim_trap_kind kind;
    const lilac_simt_instruction *at;
    uint64_t block;
    uint32_t thread;
    uint64_t address;
    uint32_t size; /* bytes of the access */
} lilac_sim_trap;

typedef enum lilac_sim_finding_kind {
    FINDING_UNINITIALISED_GLOBAL,
    FINDING_UNINITIALISED_SHARED,
    FINDING_READ_AFTER_WRITE,
    FINDING_WRITE_AFTER_READ,
    FINDING_WRITE_AFTER_WRITE,
    FINDING_KINDS
} lilac_sim_finding_kind;

typedef struct lilac_sim_finding {
    lilac_sim_finding_kind kind;
    const lilac_simt_instruction *at, *other; /* other: the earlier access of a race */
    uint64_t block;
    uint64_t address; /* of the first byte concerned */
    uint32_t thread, warp, other_warp;
} lilac_sim_finding;

/* Findings that differ in kind or lines, kept for each kind; later ones are counted only. */
enum { LILAC_SIM_FINDINGS = 8 };

/* Global memory: the launch's buffers in order of address. */
typedef struct lilac_sim_memory {
    const lilac_sim_buffer **buffers;
    uint32_t count;
} lilac_sim_memory;

/* The buffer that holds all of [address, address + size), or NULL. */
const lilac_sim_buffer *lilac_sim_memory_find(const lilac_sim_memory *memory, uint64_t address,
                                              uint64_t size);

/* What is known of a byte of shared memory. A stamp is epoch << 8 | many << 7 | warp, where the
 * epoch counts barriers (0: never) and `many` says that other warps did so too in that epoch. */
typedef struct lilac_sim_shared {
    uint8_t *bytes;
    uint8_t *written; /* in this block */
    uint32_t *write_stamp, *read_stamp;
    uint32_t *write_step, *read_step; /* which step that was */
    uint32_t size;
    uint32_t epoch;
} lilac_sim_shared;

typedef struct lilac_sim_worker {
    const lilac_sim_program *program;
    const lilac_sim_launch *launch;
    const lilac_sim_memory *memory;
    const lilac_sim_buffer *last_buffer; /* hit by the access before */
    uint8_t *registers;
    lilac_sim_shared shared;
    uint64_t block; /* in execution: linear number, its program's place, its rank in a cluster */
    uint32_t place[3];
    uint32_t rank;
    uint64_t issued; /* instructions of each warp of the block */
    lilac_sim_counters counters;
    lilac_sim_trap trap;
    lilac_sim_finding findings[FINDING_KINDS * LILAC_SIM_FINDINGS];
    uint32_t finding_count;
    uint32_t kept[FINDING_KINDS];
} lilac_sim_worker;

/* memory.c: a worker's shared memory. */
void lilac_sim_shared_init(lilac_sim_shared *shared, uint32_t size);
void lilac_sim_shared_clear(lilac_sim_shared *shared);
/* Nothing is written any more. */
void lilac_sim_shared_forget(lilac_sim_shared *shared);
/* What came before is ordered before what comes after. */
void lilac_sim_shared_barrier(lilac_sim_shared *shared);

/* memory.c: one memory step for all threads; false after a trap. */
LILAC_MUST_USE bool lilac_sim_access_global(lilac_sim_worker *worker, const lilac_sim_step *step);
LILAC_MUST_USE bool lilac_sim_access_shared(lilac_sim_worker *worker, const lilac_sim_step *step);

/* block.c */
void lilac_sim_worker_init(lilac_sim_worker *worker, const lilac_sim_program *program,
                           const lilac_sim_launch *launch, const lilac_sim_memory *memory);
void lilac_sim_worker_clear(lilac_sim_worker *worker);
/* Runs one block; false after a trap, which is in worker->trap. */
LILAC_MUST_USE bool lilac_sim_worker_run(lilac_sim_worker *worker, uint64_t block);
/* Always false. */
bool lilac_sim_worker_trap(lilac_sim_worker *worker, lilac_sim_trap_kind kind,
                           const lilac_sim_step *step, uint32_t thread);
void lilac_sim_worker_find(lilac_sim_worker *worker, lilac_sim_finding finding);

#endif
