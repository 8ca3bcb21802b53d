/* The prices of the two strategies of a gather, between which its plan chooses.
 *
 *   shuffles   one shuffle for each word that the index may select; byte permutes that select one
 *              of these words; a selector for each bit that they decide by; packing of elements
 *   memory     the stores and loads that the caller counted
 *
 * A gather keeps its source in registers, and for each result an address, or a lane and selectors.
 * In a loop with constant indices all of these are live throughout the loop. Values that do not fit
 * in registers are spilled, that is stored and loaded in each iteration. */
#include <lilac/bits.h>
#include <lilac/collective.h>

enum { MAX_REGISTERS = 255, OTHER_REGISTERS = 20 };

uint32_t lilac_plan_gather_within(const lilac_plan_gather_work *work) {
    uint32_t most = work->element_bits == 16 ? 1 : work->element_bits <= 8 ? 2 : 0;
    return min_u32(most, work->varying_bits);
}

/* The cost of spills. `places` is the number of 32-bit registers per result that stay live. */
static uint64_t price_registers(const lilac_plan_gather_work *work, uint64_t places,
                                const lilac_arch *arch) {
    uint64_t words = work->element_bits > 32 ? 2 : 1;
    uint64_t needed = work->own * words + work->results * places + OTHER_REGISTERS;
    uint64_t threads = (uint64_t)work->num_warps * arch->warp_size;
    uint64_t there = min_u32(arch->registers / (uint32_t)threads, MAX_REGISTERS);
    uint64_t spilled = needed > there ? needed - there : 0;
    return spilled * work->num_warps * 2 * (arch->costs->wavefront + arch->costs->access);
}

uint64_t lilac_plan_price_gather_shuffles(lilac_plan_price *price,
                                          const lilac_plan_gather_work *work,
                                          const lilac_arch *arch) {
    uint32_t within = lilac_plan_gather_within(work);
    uint32_t outside = work->varying_bits - within;
    uint64_t results = (uint64_t)work->results * work->num_warps;
    uint64_t own = (uint64_t)work->own * work->num_warps;
    uint64_t words = work->element_bits > 32 ? 2 : 1, of_each = words << outside;
    /* The last permute extracts the element from two words at once. */
    uint64_t selectors = within > 0 && outside > 0 ? outside : outside + (within > 0);
    bool loose = work->element_bits <= 8 ? within > 0 || work->moves
                                         : work->element_bits == 16 && within == 0 && work->moves;
    *price =
        (lilac_plan_price){.shuffles = work->moves ? results * of_each : 0,
                           .permutes = results * (within > 0 && outside == 0 ? 1 : of_each - words),
                           .selects = results * selectors,
                           .packs = (own - (own >> within)) + (loose ? results : 0)};
    price->cycles = lilac_plan_price_cycles(price, LILAC_PLAN_BARRIER_WARP, arch) +
                    price_registers(work, (work->moves ? 1 : 0) + selectors, arch);
    return price->cycles;
}

uint64_t lilac_plan_price_gather_memory(const lilac_plan_gather_work *work,
                                        const lilac_plan_price *accesses,
                                        lilac_plan_barrier barrier, const lilac_arch *arch) {
    uint64_t results = (uint64_t)work->results * work->num_warps;
    lilac_plan_price price = *accesses;
    price.packs += work->element_bits <= 8 ? 2 * results : 0;
    return lilac_plan_price_cycles(&price, barrier, arch) + price_registers(work, 1, arch);
}
