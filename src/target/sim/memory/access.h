/* The parts that accesses to global and to shared memory share (memory.c). */
#ifndef LILAC_SIM_ACCESS_H
#define LILAC_SIM_ACCESS_H

#include "block.h"

enum { MAX_LANES = 64 };

/* The active lanes of a warp. */
typedef struct lilac_sim_active {
    uint32_t count;
    uint32_t thread[MAX_LANES];
    uint64_t address[MAX_LANES];
    uint8_t *host[MAX_LANES];
    uint64_t least, greatest, together; /* together: all addresses or-ed */
} lilac_sim_active;

/* Collects the addresses of the active lanes. Shared ones are unsigned 32-bit; the sum with the
 * offset is taken in 64 bits. */
void lilac_sim_gather(lilac_sim_active *lanes, const lilac_sim_worker *worker,
                      const lilac_sim_access *access, uint32_t warp, bool shared);
/* Moves the lanes' elements between registers and lanes->host. */
void lilac_sim_move(uint8_t *registers, const lilac_sim_access *access,
                    const lilac_sim_active *lanes, bool load);
/* Sets the results to the values for threads whose predicate is false; the load overwrites the
 * entries of the other threads. */
void lilac_sim_give_others(const lilac_sim_worker *worker, const lilac_sim_access *access);
/* The buffer of each lane's access to global memory, checked; sets lanes->host. False: a trap. */
bool lilac_sim_resolve_global(lilac_sim_worker *worker, const lilac_sim_step *step,
                              lilac_sim_active *lanes, const lilac_sim_buffer **buffers,
                              uint32_t size, bool load);
/* Reports the first byte that nothing has written, and counts the warp's access once. */
void lilac_sim_check_global_written(lilac_sim_worker *worker, const lilac_sim_step *step,
                                    const lilac_sim_active *lanes,
                                    const lilac_sim_buffer *const *buffers, uint32_t size);
/* Checks addresses of shared memory and makes them places in the cluster's; and the accounts of
 * such an access. */
bool lilac_sim_resolve_shared(lilac_sim_worker *worker, const lilac_sim_step *step,
                              const lilac_sim_access *access, lilac_sim_active *lanes,
                              uint32_t size);
void lilac_sim_account_shared(lilac_sim_worker *worker, const lilac_sim_step *step,
                              const lilac_sim_active *lanes, uint32_t size, bool load);
/* An access to another block's memory: notes when it may not have begun or have ended. */
void lilac_sim_account_reach(lilac_sim_worker *worker, const lilac_sim_step *step,
                             const lilac_sim_active *lanes);
/* A thread starts a copy that will complete at the mbarrier at this place of the cluster's memory:
 * reports that the write there, the mbarrier.init, is not ordered before. */
void lilac_sim_account_mbarrier(lilac_sim_worker *worker, const lilac_sim_step *step,
                                uint32_t thread, uint64_t place);
/* Distinct sectors of the active lanes' accesses; and the wavefronts of accesses to one block. */
uint32_t lilac_sim_count_sectors(const lilac_sim_active *lanes, uint32_t size,
                                 uint32_t sector_bytes);
uint32_t lilac_sim_count_wavefronts(const lilac_sim_active *lanes, uint32_t size,
                                    const lilac_arch *arch, bool load);
/* Reports an access to bytes into which a copy is in flight. */
void lilac_sim_find_in_flight(lilac_sim_worker *worker, const lilac_sim_step *step, uint32_t thread,
                              uint64_t at, uint32_t size, bool load);
/* A trap by active lane number k; always false. */
bool lilac_sim_trap_access(lilac_sim_worker *worker, const lilac_sim_step *step,
                           lilac_sim_trap_kind kind, const lilac_sim_active *lanes, uint32_t k,
                           uint32_t size);

#endif
