/* The common part of the plans of collective operations: columns on a target, conversions of
 * operands, and the costs of accesses to shared memory whose addresses are linear in the thread.
 *
 * Lanes that do not store are left out of their transactions. A transaction of consecutive lanes
 * then has a subspace of its lanes, or none. By linearity all transactions that have any lane
 * cost the same (wavefronts.c). */
#include "collective.h"

/* ---- columns ----------------------------------------------------------------------------- */

bool lilac_plan_columns_init(lilac_layout_columns *result, const lilac_layout *layout,
                             const lilac_target *target, lilac_reason *why) {
    return lilac_layout_columns_init(result, layout, log2_of(target->arch->warp_size),
                                     log2_of(target->num_warps), log2_of(target->num_ctas), why);
}

uint64_t lilac_plan_columns_off(const lilac_layout_columns *columns, uint32_t axis,
                                uint64_t coordinate) {
    const uint32_t start = columns->start[axis], bits = columns->bits[axis];
    const uint64_t below = coordinate & low_bits(start);
    const uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

uint64_t lilac_plan_columns_along(const lilac_layout_columns *columns, uint32_t axis,
                                  uint64_t coordinate) {
    return coordinate >> columns->start[axis] & low_bits(columns->bits[axis]);
}

bool lilac_plan_check_axis(const lilac_layout_columns *columns, uint32_t axis, const char *plan,
                           lilac_reason *why) {
    for (uint32_t i = 0; i < columns->block_bits; i++) {
        if (lilac_plan_columns_along(columns, axis, columns->blocks[i]) != 0) {
            return lilac_layout_refuse(why,
                                       "the axis of operand 0 is distributed over the blocks of a "
                                       "cluster; %s combines elements of one block",
                                       plan);
        }
    }
    return true;
}

/* ---- regions ----------------------------------------------------------------------------- */

uint64_t lilac_plan_region_bytes(const lilac_plan_region *region, uint32_t index_bits,
                                 uint32_t *starts) {
    enum { ALIGNMENT = 16 };
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < region->count; i++) {
        const uint64_t start = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        const uint32_t size = lilac_plan_stored_bytes(region->operands[i].element_bits);
        bytes = start + ((uint64_t)size << index_bits);
        if (starts != NULL) {
            starts[i] = (uint32_t)start;
        }
    }
    return bytes;
}

/* ---- counts ------------------------------------------------------------------------------ */

uint64_t lilac_plan_row_words(uint32_t element_bits, uint64_t count) {
    const bool pairs = element_bits == 16 && count % 2 == 0;
    return pairs ? count / 2 : element_bits > 32 ? 2 * count : count;
}

void lilac_plan_add_shuffles(lilac_plan_price *price, uint32_t element_bits, uint64_t count,
                             uint32_t warps) {
    const bool pairs = element_bits == 16 && count % 2 == 0;
    price->shuffles += lilac_plan_row_words(element_bits, count) * warps;
    price->packs += pairs ? count * warps : 0;
}

void lilac_plan_add_selects(lilac_plan_price *price, uint32_t element_bits, uint64_t count,
                            uint32_t warps) {
    price->selects += (element_bits > 32 ? 2 * count : count) * warps;
}

static void add_price(lilac_plan_price *price, const lilac_plan_price *other) {
    price->shuffles += other->shuffles;
    price->selects += other->selects;
    price->permutes += other->permutes;
    price->stores += other->stores;
    price->loads += other->loads;
    price->store_wavefronts += other->store_wavefronts;
    price->load_wavefronts += other->load_wavefronts;
    price->store_bytes += other->store_bytes;
    price->load_bytes += other->load_bytes;
    price->packs += other->packs;
    price->barriers += other->barriers;
    price->cycles += other->cycles;
}

bool lilac_plan_operand_conversion(lilac_plan_conversion *result,
                                   const lilac_layout_columns *source,
                                   const lilac_layout_columns *target,
                                   const lilac_plan_region *region, uint32_t operand,
                                   const lilac_arch *arch, lilac_reason *why) {
    const uint32_t bits = 8 * lilac_plan_stored_bytes(region->operands[operand].element_bits);
    const lilac_plan_options options = {.scratch_bytes = region->scratch_bytes};
    return lilac_plan_conversion_init_columns(result, source, target, bits, &options, arch, why);
}

bool lilac_plan_add_conversions(lilac_plan_price *price, const lilac_layout_columns *source,
                                const lilac_layout_columns *target, const lilac_plan_region *region,
                                const lilac_arch *arch, lilac_reason *why) {
    lilac_plan_conversion conversion;
    uint32_t planned_bytes = 0;
    for (uint32_t i = 0; i < region->count; i++) {
        const uint32_t bytes = lilac_plan_stored_bytes(region->operands[i].element_bits);
        if (bytes != planned_bytes &&
            !lilac_plan_operand_conversion(&conversion, source, target, region, i, arch, why)) {
            return false;
        }
        planned_bytes = bytes;
        add_price(price, &conversion.price);
    }
    return true;
}

/* ---- accesses ---------------------------------------------------------------------------- */

/* log2 of the lanes of a transaction. Loads of copies are merged (lilac_plan_access_as_load). */
static uint32_t transaction_bits(const lilac_plan_linear_access *access, bool load) {
    const uint32_t group = log2_of(lilac_plan_transaction_lanes(access->arch, access->bytes));
    const bool copies = access->lanes[0] == 0 || (group > 0 && access->lanes[1] == 0);
    const bool wide = access->bytes >= 2 * access->arch->bank_bytes;
    return group + (load && copies && wide && group < access->lane_bits);
}

/* Transactions of a warp that have an active lane. */
static uint32_t count_transactions(const lilac_plan_linear_access *access, bool load) {
    const uint64_t above = low_bits(access->lane_bits) & ~low_bits(transaction_bits(access, load));
    return 1U << __builtin_popcountll(above & ~access->idle);
}

static uint32_t count_wavefronts(const lilac_plan_linear_access *access, bool load) {
    uint64_t lanes[LILAC_PLAN_MAX_LANE_BITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < transaction_bits(access, load); i++) {
        if (!(access->idle >> i & 1)) {
            lanes[count++] = access->lanes[i];
        }
    }
    return count_transactions(access, load) *
           lilac_plan_transaction_wavefronts(access->arch, access->bytes, lanes, count);
}

static uint32_t active_warps(const lilac_plan_linear_access *access) {
    const uint64_t warps = low_bits(access->warp_bits) & ~(access->idle >> access->lane_bits);
    return 1U << __builtin_popcountll(warps);
}

static uint32_t active_lanes(const lilac_plan_linear_access *access) {
    return 1U << __builtin_popcountll(low_bits(access->lane_bits) & ~access->idle);
}

void lilac_plan_add_stores(lilac_plan_price *price, const lilac_plan_linear_access *access,
                           uint64_t count) {
    const uint64_t all = count * active_warps(access);
    price->stores += all;
    price->store_wavefronts += all * count_wavefronts(access, false);
    price->store_bytes += all * active_lanes(access) * access->bytes;
}

void lilac_plan_add_loads(lilac_plan_price *price, const lilac_plan_linear_access *access,
                          uint64_t count) {
    const uint64_t all = count * active_warps(access);
    price->loads += all;
    price->load_wavefronts += all * count_wavefronts(access, true);
    price->load_bytes += all * active_lanes(access) * access->bytes;
}

uint64_t lilac_plan_least_wavefronts(const lilac_plan_linear_access *access, uint64_t count,
                                     bool load) {
    lilac_f2_basis places;
    lilac_f2_basis_init(&places);
    for (uint32_t i = 0; i < access->lane_bits; i++) {
        if (!(access->idle >> i & 1)) {
            (void)lilac_f2_basis_add(&places, access->lanes[i], 0);
        }
    }
    const uint64_t different = (uint64_t)access->bytes << lilac_f2_basis_dimension(&places);
    const uint64_t clock = (uint64_t)access->arch->banks * access->arch->bank_bytes;
    return count * active_warps(access) *
           max_u64(count_transactions(access, load), different / clock);
}

void lilac_plan_bound_add(lilac_plan_bound *bound, const lilac_plan_exchange *exchange) {
    bound->store_wavefronts +=
        lilac_plan_least_wavefronts(&exchange->store, exchange->stores, false);
    bound->load_wavefronts += lilac_plan_least_wavefronts(&exchange->load, exchange->loads, true);
}

void lilac_plan_bound_compare(lilac_plan_bound *bound, const lilac_plan_price *price) {
    bound->floor_wavefronts = bound->store_wavefronts + bound->load_wavefronts;
    bound->met = bound->floor_wavefronts == price->store_wavefronts + price->load_wavefronts;
}
