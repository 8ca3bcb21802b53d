/* The common part of the plans of collective operations: layouts as columns, and the costs of
 * accesses to shared memory whose addresses are linear in the thread.
 *
 * Lanes that do not store are left out of their transactions. A transaction of consecutive lanes
 * then has a subspace of its lanes, or none. By linearity all transactions that have any lane cost
 * the same (wavefronts.c). */
#include "collective.h"

#include <lilac/replication.h>

#include <stdio.h>
#include <string.h>

/* ---- columns ----------------------------------------------------------------------------- */

static bool read_input(uint64_t *columns, const lilac_layout *layout, const char *name,
                       uint32_t bits, lilac_reason *why) {
    const uint32_t have = lilac_layout_in_bits(layout, name);
    if (have > bits) {
        return lilac_layout_refuse(why, "the layout has %llu %ss and the target has %llu",
                                   1ULL << have, name, 1ULL << bits);
    }
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = i < have ? lilac_layout_column(layout, name, i) : 0;
    }
    return true;
}

void lilac_plan_columns_find_copies(lilac_plan_columns *columns) {
    lilac_replication replication;
    uint64_t all[LILAC_LAYOUT_MAX_BITS];
    const uint32_t registers = columns->register_bits, threads = columns->thread_bits;
    memcpy(all, columns->registers, registers * sizeof *all);
    memcpy(all + registers, columns->threads, threads * sizeof *all);
    lilac_layout_find_replication(&replication, all, registers + threads);
    columns->distinct = (uint32_t)(low_bits(registers) & ~replication.replicated);
    columns->free_threads = (uint32_t)(replication.replicated >> registers & low_bits(threads));
}

bool lilac_plan_columns_init(lilac_plan_columns *result, const lilac_layout *layout,
                             const lilac_target *target, lilac_reason *why) {
    enum { MAX_REGISTER_BITS = 32 };
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const char *name = layout->in[i].name;
        if (strcmp(name, "register") != 0 && strcmp(name, "lane") != 0 &&
            strcmp(name, "warp") != 0 && strcmp(name, "block") != 0) {
            return lilac_layout_refuse(why,
                                       "the layout has the input '%s'; a distributed layout has "
                                       "register, lane, warp and block",
                                       name);
        }
    }
    result->rank = layout->out_count;
    result->out_bits = layout->out_bits;
    for (uint32_t d = 0; d < result->rank; d++) {
        result->start[d] = lilac_layout_out_start(layout, d);
        result->bits[d] = layout->out[d].bits;
    }
    result->register_bits = lilac_layout_in_bits(layout, "register");
    if (result->register_bits > MAX_REGISTER_BITS) {
        return lilac_layout_refuse(why, "the layout has %u register bits; at most %u are supported",
                                   result->register_bits, MAX_REGISTER_BITS);
    }
    result->lane_bits = log2_of(target->arch->warp_size);
    result->thread_bits = result->lane_bits + log2_of(target->num_warps);
    result->block_bits = log2_of(target->num_ctas);
    if (!read_input(result->registers, layout, "register", result->register_bits, why) ||
        !read_input(result->threads, layout, "lane", result->lane_bits, why) ||
        !read_input(result->threads + result->lane_bits, layout, "warp",
                    result->thread_bits - result->lane_bits, why) ||
        !read_input(result->blocks, layout, "block", result->block_bits, why)) {
        return false;
    }
    lilac_plan_columns_find_copies(result);
    return true;
}

bool lilac_plan_columns_layout(lilac_layout *result, const lilac_plan_columns *columns,
                               uint32_t registers, lilac_reason *why) {
    uint64_t kept[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        if (registers >> i & 1) {
            kept[count++] = columns->registers[i];
        }
    }
    lilac_layout_init(result);
    for (uint32_t d = 0; d < columns->rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%u", d);
        if (!lilac_layout_add_out(result, name, columns->bits[d], why)) {
            return false;
        }
    }
    return lilac_layout_add_in(result, "register", count, kept, why) &&
           lilac_layout_add_in(result, "lane", columns->lane_bits, columns->threads, why) &&
           lilac_layout_add_in(result, "warp", columns->thread_bits - columns->lane_bits,
                               columns->threads + columns->lane_bits, why) &&
           lilac_layout_add_in(result, "block", columns->block_bits, columns->blocks, why);
}

uint64_t lilac_plan_columns_off(const lilac_plan_columns *columns, uint32_t axis,
                                uint64_t coordinate) {
    const uint32_t start = columns->start[axis], bits = columns->bits[axis];
    const uint64_t below = coordinate & low_bits(start);
    const uint64_t above = start + bits >= 64 ? 0 : coordinate >> (start + bits);
    return below | above << start;
}

uint64_t lilac_plan_columns_along(const lilac_plan_columns *columns, uint32_t axis,
                                  uint64_t coordinate) {
    return coordinate >> columns->start[axis] & low_bits(columns->bits[axis]);
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

bool lilac_plan_add_conversions(lilac_plan_price *price, const lilac_plan_columns *source,
                                const lilac_plan_columns *target, const lilac_plan_region *region,
                                const lilac_arch *arch, lilac_reason *why) {
    lilac_layout from, to;
    lilac_plan_conversion conversion;
    uint32_t planned_bits = 0;
    if (!lilac_plan_columns_layout(&from, source, source->distinct, why) ||
        !lilac_plan_columns_layout(&to, target, target->distinct, why)) {
        return false;
    }
    for (uint32_t i = 0; i < region->count; i++) {
        const uint32_t bits = 8 * lilac_plan_stored_bytes(region->operands[i].element_bits);
        if (bits != planned_bits &&
            !lilac_plan_conversion_init(&conversion, &from, &to, bits, NULL, arch, why)) {
            return false;
        }
        planned_bits = bits;
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
