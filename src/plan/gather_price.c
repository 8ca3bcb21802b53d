/* The prices of a gather's two ways, for the engine, which chooses layouts by them, and the
 * lowering, which chooses between them.
 *
 *   shuffles   one of each word that the index may name; permutes that leave one of these; a byte
 *              permute takes a selector for each bit that it decides by; elements put into words
 *   memory     the stores and loads that the caller counted
 *
 * What a gather keeps in registers is its source, and for each result its place: an address, or a
 * lane and the selectors. In a loop whose indices stay as they are all of that lives through the
 * loop, and what there are no registers for is stored and loaded again each time. */
#include <lilac/bits.h>
#include <lilac/plan.h>

enum { MOST_REGISTERS = 255, OTHER_REGISTERS = 20 };

uint32_t lilac_plan_gather_within(const lilac_plan_gather *gather) {
    uint32_t most = gather->element_bits == 16 ? 1 : gather->element_bits <= 8 ? 2 : 0;
    return min_u32(most, gather->varying_bits);
}

/* Registers of one thread that stay, in 32 bits each. */
static uint64_t price_registers(const lilac_plan_gather *gather, uint64_t places,
                                const lilac_arch *arch) {
    uint64_t words = gather->element_bits > 32 ? 2 : 1;
    uint64_t needed = gather->own * words + gather->results * places + OTHER_REGISTERS;
    uint64_t threads = (uint64_t)gather->num_warps * arch->warp_size;
    uint64_t there = min_u32(arch->registers / (uint32_t)threads, MOST_REGISTERS);
    uint64_t spilled = needed > there ? needed - there : 0;
    return spilled * gather->num_warps * 2 * (arch->costs->wavefront + arch->costs->access);
}

uint64_t lilac_plan_price_gather_shuffles(const lilac_plan_gather *gather, const lilac_arch *arch) {
    uint32_t within = lilac_plan_gather_within(gather);
    uint32_t outside = gather->varying_bits - within;
    uint64_t results = (uint64_t)gather->results * gather->num_warps;
    uint64_t own = (uint64_t)gather->own * gather->num_warps;
    uint64_t words = gather->element_bits > 32 ? 2 : 1, of_each = words << outside;
    /* The last permute takes the element out of two words at once. */
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
