/* The prices of the two strategies of a gather. The engine chooses layouts by them, and the
 * lowering chooses between them.
 *
 *   shuffles   one shuffle for each word that the index may select; byte permutes that select one
 *              of these words; a selector for each bit that they decide by; packing of elements
 *   memory     the stores and loads that the caller counted
 *
 * A gather keeps its source in registers, and for each result an address, or a lane and selectors.
 * In a loop with constant indices all of these are live throughout the loop. Values that do not fit
 * in registers are spilled, that is stored and loaded in each iteration. */
#include <lilac/bits.h>
#include <lilac/plan.h>

enum { MAX_REGISTERS = 255, OTHER_REGISTERS = 20 };

uint32_t lilac_plan_gather_within(const lilac_plan_gather *gather) {
    uint32_t most = gather->element_bits == 16 ? 1 : gather->element_bits <= 8 ? 2 : 0;
    return min_u32(most, gather->varying_bits);
}

/* The cost of spills. `places` is the number of 32-bit registers per result that stay live. */
static uint64_t price_registers(const lilac_plan_gather *gather, uint64_t places,
                                const lilac_arch *arch) {
    uint64_t words = gather->element_bits > 32 ? 2 : 1;
    uint64_t needed = gather->own * words + gather->results * places + OTHER_REGISTERS;
    uint64_t threads = (uint64_t)gather->num_warps * arch->warp_size;
    uint64_t there = min_u32(arch->registers / (uint32_t)threads, MAX_REGISTERS);
    uint64_t spilled = needed > there ? needed - there : 0;
    return spilled * gather->num_warps * 2 * (arch->costs->wavefront + arch->costs->access);
}

uint64_t lilac_plan_price_gather_shuffles(const lilac_plan_gather *gather, const lilac_arch *arch) {
    uint32_t within = lilac_plan_gather_within(gather);
    uint32_t outside = gather->varying_bits - within;
    uint64_t results = (uint64_t)gather->results * gather->num_warps;
    uint64_t own = (uint64_t)gather->own * gather->num_warps;
    uint64_t words = gather->element_bits > 32 ? 2 : 1, of_each = words << outside;
    /* The last permute extracts the element from two words at once. */
    uint64_t selectors = within > 0 && outside > 0 ? outside : outside + (within > 0);
    bool loose = gather->element_bits <= 8
                     ? within > 0 || gather->moves
                     : gather->element_bits == 16 && within == 0 && gather->moves;
    lilac_plan_price price = {.shuffles = gather->moves ? results * of_each : 0,
                              .permutes =
                                  results * (within > 0 && outside == 0 ? 1 : of_each - words),
                              .selects = results * selectors,
                              .packs = (own - (own >> within)) + (loose ? results : 0)};
    return lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, arch) +
           price_registers(gather, (gather->moves ? 1 : 0) + selectors, arch);
}

uint64_t lilac_plan_price_gather_memory(const lilac_plan_gather *gather,
                                        const lilac_plan_price *accesses,
                                        lilac_plan_barrier barrier, const lilac_arch *arch) {
    uint64_t results = (uint64_t)gather->results * gather->num_warps;
    lilac_plan_price price = *accesses;
    price.packs += gather->element_bits <= 8 ? 2 * results : 0;
    return lilac_plan_price_cycles(&price, barrier, arch) + price_registers(gather, 1, arch);
}
