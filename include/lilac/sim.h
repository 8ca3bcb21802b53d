/* target/sim: SIMT IR executed, with the accounts a GPU's counters would give.
 *
 * Knows SIMT IR only: no layouts, no plans. All threads of a block run in step, one instruction for
 * all of them at a time; blocks are spread over the machine's cores. Arithmetic is exact (each
 * result rounded once, as the PTX manual says); the approximate instructions (ex2, lg2, sin …) give
 * the correctly rounded result, which is within their documented error of the hardware's.
 *
 * It traps, with the source line, on: an access outside every buffer or misaligned, a store to a
 * read-only buffer, a branch condition that differs between threads, a failed assert, integer
 * division by zero. It reports (and goes on): a read of memory that nothing wrote, a shared byte
 * written by one warp and touched by another with no barrier between, with both lines.
 */
#ifndef LILAC_SIM_H
#define LILAC_SIM_H

#include <lilac/simt.h>

LILAC_BEGIN

/* A piece of global memory. */
typedef struct lilac_sim_buffer {
    const char *name;    /* for reports */
    uint64_t address;    /* where kernels see it; lilac_sim_place gives non-overlapping ones */
    uint8_t *bytes;
    uint64_t size;
    uint8_t *written;    /* one byte a byte: nonzero when it holds data; NULL: all does */
    bool read_only;
} lilac_sim_buffer;

/* Gives buffers addresses far apart, aligned to 256 bytes, in address space that is never valid on
 * the host. */
LILAC_API void lilac_sim_place(lilac_sim_buffer *buffers, uint32_t count);

typedef struct lilac_sim_launch {
    const lilac_simt_kernel *kernel;
    uint32_t grid[3];
    const uint64_t *arguments; /* bits of each parameter; pointers: an address */
    lilac_sim_buffer *buffers;
    uint32_t buffer_count;
    uint32_t threads; /* host threads; 0: one a core */
    uint64_t instruction_limit; /* for each block; 0: 2^36. Ends endless loops with a trap */
} lilac_sim_launch;

/* Counters, summed over all blocks. */
typedef struct lilac_sim_counters {
    uint64_t blocks;
    uint64_t instructions;        /* warp instructions issued */
    uint64_t global_loads, global_stores;     /* warp instructions */
    uint64_t global_load_sectors, global_store_sectors; /* 32-byte sectors touched */
    uint64_t global_load_bytes, global_store_bytes;     /* asked for by active threads */
    uint64_t shared_loads, shared_stores;     /* warp instructions */
    uint64_t shared_load_wavefronts, shared_store_wavefronts;
    uint64_t shuffles, votes, barriers; /* warp instructions; barriers once a block */
    uint64_t atomics;
    uint64_t races, uninitialised_reads; /* findings; the first few of each are diagnostics */
    uint64_t access_bits[5]; /* global accesses (warp instructions) of 8 16 32 64 128 bits a thread */
} lilac_sim_counters;

/* Runs a launch. False when a block trapped (diagnostics say where). Findings are warnings. */
LILAC_API LILAC_MUST_USE bool lilac_sim_run(lilac_context *context, const lilac_sim_launch *launch,
                                            lilac_sim_counters *counters);
LILAC_API void lilac_sim_counters_print(lilac_text *out, const lilac_sim_counters *counters);
LILAC_API void lilac_sim_counters_json(lilac_text *out, const lilac_sim_counters *counters);

LILAC_END

#endif
