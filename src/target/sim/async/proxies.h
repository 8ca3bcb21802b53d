/* The generic and the async proxy: which of them wrote a shared byte last, and what makes it
 * visible to the other.
 *
 * Ordinary accesses to memory go through the generic proxy. Bulk and tensor copies and the
 * operands of wgmma go through the async proxy. What a thread wrote through the generic proxy is
 * visible to the async proxy after the thread's fence, and to what other threads start behind a
 * barrier after that fence:
 *
 *     st.shared             thread t: the byte is unfenced
 *     fence.proxy_async     thread t: the byte is fenced, in this epoch (shared.h)
 *     barrier               orders this epoch before what the other warps do
 *     cp.bulk.store         thread u: the byte is visible
 *
 * A byte that the async proxy wrote needs no fence. Nor does one that cp.async wrote: PTX does not
 * say so, but Triton, CUTLASS and FlashAttention-3 feed wgmma with cp.async and no fence, and
 * devices execute that correctly. A generic read before an asynchronous write needs no fence
 * either, for the same reason; it must be ordered as any access (shared.h).
 *
 * Global memory has the same rules, for 16 bytes at a time and for what the threads of one cluster
 * wrote: the order that release and acquire operations add, and what other clusters wrote, are not
 * covered.
 *
 * The accounts are kept where the decoder sets program->proxies, for operations that call
 * lilac_sim_proxies_access. */
#ifndef LILAC_SIM_PROXIES_H
#define LILAC_SIM_PROXIES_H

#include "program.h"

struct lilac_sim_worker;

/* The last generic write to 16 bytes of global memory. */
typedef struct lilac_sim_global_write {
    uint64_t address; /* a multiple of 16, plus 1; 0: a free entry */
    uint64_t write;   /* as for shared memory */
    uint32_t fence;
} lilac_sim_global_write;

/* Of the shared memory of a cluster; one entry a byte. NULL: the program has no async proxy. */
typedef struct lilac_sim_proxies {
    uint64_t
        *writes; /* step << 16 | the thread's number in the cluster + 1; 0: no fence is needed */
    uint32_t *fences;    /* the epoch of the first fence of that thread since then; 0: none */
    uint64_t begin, end; /* no byte outside is unfenced */
    /* What the cluster wrote to global memory: a table with open addressing, a power of two long. */
    lilac_sim_global_write *global;
    uint32_t global_count, global_capacity;
} lilac_sim_proxies;

void lilac_sim_proxies_init(lilac_sim_proxies *proxies, size_t bytes);
void lilac_sim_proxies_clear(lilac_sim_proxies *proxies);
/* At the start of a cluster: nothing is written. */
void lilac_sim_proxies_forget(lilac_sim_proxies *proxies, size_t bytes);

/* A thread of the block in execution writes `size` bytes from place `at` of the cluster's shared
 * memory on: through the generic proxy, unless the step is asynchronous. */
void lilac_sim_proxies_write(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                             uint32_t thread, uint64_t at, uint32_t size);
/* Asynchronous operations have written these bytes. */
void lilac_sim_proxies_settle(lilac_sim_proxies *proxies, uint64_t at, uint32_t size);
/* fence.proxy_async of the threads in execution. */
void lilac_sim_proxies_fence(struct lilac_sim_worker *worker, const lilac_sim_step *step);
/* The async proxy reads or writes these bytes for an operation that a thread of the block in
 * execution starts now. The first byte that is not visible is a finding: false. */
bool lilac_sim_proxies_access(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                              uint32_t thread, uint64_t at, uint32_t size);

/* ---- global memory (proxies_global.c) -------------------------------------------------------- */

struct lilac_sim_active;

void lilac_sim_proxies_clear_global(lilac_sim_proxies *proxies);
void lilac_sim_proxies_forget_global(lilac_sim_proxies *proxies);
/* The lanes write `size` bytes each through the generic proxy. */
void lilac_sim_proxies_write_global(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                                    const struct lilac_sim_active *lanes, uint32_t size);
/* The part of lilac_sim_proxies_fence that concerns global memory. */
void lilac_sim_proxies_fence_global(struct lilac_sim_worker *worker);
/* As lilac_sim_proxies_access and lilac_sim_proxies_settle. */
bool lilac_sim_proxies_access_global(struct lilac_sim_worker *worker, const lilac_sim_step *step,
                                     uint32_t thread, uint64_t address);
void lilac_sim_proxies_settle_global(lilac_sim_proxies *proxies, uint64_t address);

#endif
