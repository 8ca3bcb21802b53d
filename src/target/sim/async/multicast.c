/* Multicast tensor loads (simt.h): the blocks of the mask, and what must hold in each of them.
 *
 *     cp.tensor.load … {multicast}     for each rank k of the mask: one copy of the box, which
 *                                          reads the tensor,
 *                                          writes the box at the same address of block k,
 *                                          completes its bytes at the mbarrier there
 *
 * A destination is written from the start of the load to the completion of its phase, as the memory of
 * the block itself is: all places are those of the cluster's shared memory. Three rules are added for
 * the memory of another block. It has begun, which a cluster barrier before the load shows. It has not
 * ended when the load starts, nor when the copy into it completes (lilac_sim_bulks_end). The
 * mbarrier.init of its mbarrier is ordered before the load. */
#include "memory/access.h"

uint32_t lilac_sim_multicast_blocks(lilac_sim_worker *w, const lilac_sim_step *step,
                                    uint32_t thread) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    uint32_t blocks = w->program->kernel->num_ctas;
    if (access->values[2] == LILAC_SIM_NONE) {
        return 1u << w->rank;
    }
    uint32_t mask = ((const lane_u32 *)(const void *)(w->registers + access->values[2]))[thread];
    if (mask != 0 && mask >> blocks == 0) {
        return mask;
    }
    w->trap.address = mask;
    w->trap.size = blocks;
    (void)lilac_sim_worker_trap(w, TRAP_MULTICAST_MASK, step, thread);
    return 0;
}

static void find(lilac_sim_worker *w, const lilac_sim_bulk *copy, lilac_sim_finding_kind kind) {
    uint32_t warp = copy->thread / w->program->arch->warp_size;
    w->counters.races++;
    lilac_sim_worker_find(w, (lilac_sim_finding){.kind = kind,
                                                 .at = copy->step->source,
                                                 .block = w->block,
                                                 .address = copy->at % w->shared.stride,
                                                 .rank = copy->to,
                                                 .thread = copy->thread,
                                                 .warp = w->rank * w->program->warps + warp});
}

void lilac_sim_multicast_account(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    if (copy->to == copy->rank) {
        return;
    }
    if (w->phase == 0) {
        find(w, copy, FINDING_NOT_BEGUN);
    }
    if (w->blocks[copy->to].ended) {
        find(w, copy, FINDING_ENDED);
    }
    if (lilac_sim_mbarrier_at(w, copy->mbarrier) != NULL) {
        lilac_sim_account_mbarrier(w, copy->step, copy->thread, copy->mbarrier);
    }
}
