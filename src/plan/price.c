/* The price of a plan, from its counts and the device's table of costs.
 *
 *   memory    wavefronts, accesses, shuffles: one unit of a multiprocessor executes all of them
 *   integer   selects, byte permutes, packing
 *   issue     all instructions
 *
 *   cycles = busiest + overlap · (memory + integer − the larger of them) + barriers + latency
 *
 * Many warps run at once, so the pipes work in parallel and the busiest pipe determines the time.
 * `overlap` is the part of the other pipe's work that is not hidden. Latency is the part that other
 * warps do not hide. It counts once for shared memory and once for shuffles, not per
 * instruction, because a thread issues instructions of one kind without waiting for each other.
 */
#include <lilac/bits.h>
#include <lilac/plan.h>

static uint64_t barrier_cost(lilac_plan_barrier barrier, const lilac_costs *costs) {
    switch (barrier) {
    case LILAC_PLAN_BARRIER_WARP:
        return costs->barrier_warp;
    case LILAC_PLAN_BARRIER_GROUP:
        return costs->barrier_group;
    case LILAC_PLAN_BARRIER_BLOCK:
        return costs->barrier_block;
    case LILAC_PLAN_BARRIER_CLUSTER:
        break;
    }
    return costs->barrier_cluster;
}

uint64_t lilac_plan_price_cycles(const lilac_plan_price *price, lilac_plan_barrier barrier,
                                 const lilac_arch *arch) {
    const lilac_costs *costs = arch->costs;
    const uint64_t remote = barrier == LILAC_PLAN_BARRIER_CLUSTER ? costs->remote : 0;
    const uint64_t memory = price->store_wavefronts * costs->wavefront +
                            price->load_wavefronts * (costs->wavefront + remote) +
                            (price->stores + price->loads) * costs->access +
                            price->shuffles * costs->shuffle;
    const uint64_t integer = price->selects * costs->select + price->permutes * costs->permute +
                             price->packs * costs->pack;
    const uint64_t issue = costs->issue * (price->shuffles + price->selects + price->permutes +
                                           price->stores + price->loads + price->packs);
    const uint64_t hidden = memory + integer - max_u64(memory, integer);
    uint64_t cycles = max_u64(max_u64(memory, integer), issue) + hidden * costs->overlap / 16;
    cycles += price->barriers * barrier_cost(barrier, costs);
    if (price->stores + price->loads != 0) {
        cycles += costs->staging_latency;
    }
    if (price->shuffles != 0) {
        cycles += costs->shuffle_latency;
    }
    return cycles;
}
