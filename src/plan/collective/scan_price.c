/* The costs of a scan: what the lowering of the plan executes, counted run by run.
 *
 *                  upwards                                  downwards, with a prefix
 *   registers      the region once less than a block has    the region for each item; one select for
 *                  items                                    a block whose prefix may be absent
 *   lanes          for each bit a shuffle of all items,     the region and a select for each item; a
 *                  the region, a select; the totals by      shuffle of each item to the next lane,
 *                  a shuffle, if a run of registers follows if a run is below
 *   memory         a store of each total, a barrier, all    –
 *                  totals of each line loaded and combined;
 *                  selects of the one before the thread's
 *
 * Whether a prefix exists is known to be false, known to be true, or a predicate. */
#include "scan.h"

#include <string.h>

/* Numbers of items by what is known of the prefix before each. */
typedef struct prefix_counts {
    uint64_t absent, maybe, present;
} prefix_counts;

typedef struct scan_counts {
    lilac_plan_scan *plan;
    uint64_t combines; /* of a warp */
} scan_counts;

static void add_selects(scan_counts *counts, uint64_t items) {
    const lilac_plan_region *region = &counts->plan->region;
    for (uint32_t i = 0; i < region->count; i++) {
        lilac_plan_add_selects(&counts->plan->price, region->operands[i].element_bits, items,
                               counts->plan->num_warps);
    }
}

static void add_shuffles(scan_counts *counts, uint64_t items) {
    const lilac_plan_region *region = &counts->plan->region;
    for (uint32_t i = 0; i < region->count; i++) {
        lilac_plan_add_shuffles(&counts->plan->price, region->operands[i].element_bits, items,
                                counts->plan->num_warps);
    }
}

static void count_up(scan_counts *counts, uint32_t index) {
    const lilac_plan_scan *plan = counts->plan;
    const lilac_plan_scan_run *run = &plan->runs[index];
    const uint64_t items = lilac_plan_scan_items(run);
    const bool last = index + 1 == plan->run_count;
    if (run->kind == LILAC_PLAN_SCAN_REGISTERS) {
        counts->combines += items - (items >> run->count);
    } else if (run->kind == LILAC_PLAN_SCAN_LANES) {
        for (uint32_t k = 0; k < run->count; k++) {
            add_shuffles(counts, items);
            add_selects(counts, items);
            counts->combines += items;
        }
        if (!last && plan->runs[index + 1].kind != LILAC_PLAN_SCAN_MEMORY) {
            add_shuffles(counts, items);
        }
    }
}

/* The exchange of one operand in the run through memory. */
static void make_exchange(lilac_plan_exchange *result, const lilac_plan_scan *plan,
                          uint32_t operand) {
    const lilac_plan_scan_run *run = &plan->runs[plan->run_count - 1];
    const lilac_layout_columns *columns = &plan->scanned;
    const uint32_t size = lilac_plan_stored_bytes(plan->region.operands[operand].element_bits);
    const uint32_t slots = 1U << run->count;
    const uint32_t vector = 1U << lilac_plan_scan_vector_bits(plan, operand);
    for (uint32_t i = 0; i < columns->lane_bits; i++) {
        result->store_lanes[i] = lilac_plan_scan_slot(plan, operand, columns->threads[i]) * size;
        result->load_lanes[i] =
            lilac_plan_scan_vector(plan, operand, columns->threads[i], 0) * size;
    }
    const lilac_plan_linear_access access = {.arch = plan->arch,
                                             .lane_bits = columns->lane_bits,
                                             .warp_bits =
                                                 columns->thread_bits - columns->lane_bits};
    result->store = access;
    result->store.bytes = size;
    result->store.lanes = result->store_lanes;
    result->store.idle = lilac_plan_scan_lower_lanes(plan) | columns->free_threads;
    result->load = access;
    result->load.bytes = size * vector;
    result->load.lanes = result->load_lanes;
    result->stores = lilac_plan_scan_items(run);
    result->loads = (result->stores >> lilac_plan_scan_register_bits(run)) * (slots / vector);
}

/* The prefixes before the items of the run through memory. */
static prefix_counts count_memory(scan_counts *counts) {
    lilac_plan_scan *plan = counts->plan;
    const lilac_plan_scan_run *run = &plan->runs[plan->run_count - 1];
    const uint64_t items = lilac_plan_scan_items(run);
    const uint64_t lines = items >> lilac_plan_scan_register_bits(run);
    const uint32_t warps = (uint32_t)__builtin_popcount(run->in_threads);
    for (uint32_t i = 0; i < plan->region.count; i++) {
        lilac_plan_exchange exchange;
        make_exchange(&exchange, plan, i);
        lilac_plan_add_stores(&plan->price, &exchange.store, exchange.stores);
        lilac_plan_add_loads(&plan->price, &exchange.load, exchange.loads);
    }
    plan->price.barriers += plan->num_warps;
    plan->bytes = lilac_plan_region_bytes(
        &plan->region, run->count + plan->scanned.out_bits - plan->scanned.bits[plan->axis], NULL);
    counts->combines += lines * ((UINT64_C(1) << run->count) - 2);
    /* Of two warps the second has the first's total in either case. */
    add_selects(counts, items * ((UINT64_C(1) << warps) - 1) - (warps == 1 ? lines : 0));
    return (prefix_counts){.maybe = lines, .present = items - lines};
}

/* Combines the prefix before each item with it. */
static void finish_items(scan_counts *counts, const prefix_counts *before) {
    counts->combines += before->maybe + before->present;
    add_selects(counts, before->maybe);
}

/* The prefixes before the items of a run, from those before its blocks. */
static prefix_counts count_down(scan_counts *counts, uint32_t index, const prefix_counts *before) {
    const lilac_plan_scan_run *run = &counts->plan->runs[index];
    const uint64_t items = lilac_plan_scan_items(run);
    if (run->kind == LILAC_PLAN_SCAN_REGISTERS) {
        counts->combines += (before->maybe + before->present) << run->count;
        add_selects(counts, before->maybe);
        return (prefix_counts){before->absent, before->maybe,
                               items - before->absent - before->maybe};
    }
    finish_items(counts, before);
    if (index > 0) {
        add_shuffles(counts, items);
        add_selects(counts, before->maybe + before->present);
    }
    return (prefix_counts){0, before->absent + before->maybe, before->present};
}

void lilac_plan_scan_count(lilac_plan_scan *plan) {
    scan_counts counts = {.plan = plan};
    for (uint32_t i = 0; i < plan->run_count; i++) {
        count_up(&counts, i);
    }
    uint32_t next = plan->run_count;
    prefix_counts before = {0};
    if (next > 0 && plan->runs[next - 1].kind == LILAC_PLAN_SCAN_MEMORY) {
        before = count_memory(&counts);
        next--;
        if (next == 0) {
            finish_items(&counts, &before);
        }
    } else if (next > 0) {
        const lilac_plan_scan_run *top = &plan->runs[next - 1];
        before.absent = lilac_plan_scan_items(top) >> lilac_plan_scan_register_bits(top);
    }
    while (next-- > 0) {
        before = count_down(&counts, next, &before);
    }
    plan->combines = counts.combines * plan->num_warps;
    plan->price.cycles = lilac_plan_price_cycles(
                             &plan->price, lilac_plan_block_barrier(plan->num_warps), plan->arch) +
                         plan->combines * plan->region.instructions * plan->arch->costs->issue;
}

/* ---- the whole operation ------------------------------------------------------------------ */

bool lilac_plan_scan_operand_conversion(lilac_plan_conversion *result, const lilac_plan_scan *plan,
                                        uint32_t operand, lilac_reason *why) {
    return lilac_plan_operand_conversion(result, &plan->source, &plan->scanned, &plan->region,
                                         operand, plan->arch, why);
}

bool lilac_plan_scan_result_conversion(lilac_plan_conversion *result, const lilac_plan_scan *plan,
                                       uint32_t operand, lilac_reason *why) {
    return lilac_plan_operand_conversion(result, &plan->scanned, &plan->result, &plan->region,
                                         operand, plan->arch, why);
}

bool lilac_plan_scan_price(lilac_plan_price *result, const lilac_plan_scan *plan,
                           lilac_reason *why) {
    const bool moves[2] = {plan->moves_operands, plan->moves_results};
    const lilac_layout_columns *from[2] = {&plan->source, &plan->scanned};
    const lilac_layout_columns *to[2] = {&plan->scanned, &plan->result};
    *result = plan->price;
    for (uint32_t side = 0; side < 2; side++) {
        if (moves[side] && !lilac_plan_add_conversions(result, from[side], to[side], &plan->region,
                                                       plan->arch, why)) {
            return false;
        }
    }
    return true;
}

void lilac_plan_scan_bound(lilac_plan_bound *result, const lilac_plan_scan *plan) {
    *result = (lilac_plan_bound){.met = true};
    for (uint32_t i = 0; i < plan->region.count && plan->bytes > 0; i++) {
        lilac_plan_exchange exchange;
        make_exchange(&exchange, plan, i);
        lilac_plan_bound_add(result, &exchange);
    }
    lilac_plan_bound_compare(result, &plan->price);
}
