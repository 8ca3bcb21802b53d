/* The costs of a reduction: what the lowering of the plan executes, counted step by step.
 *
 *   registers    the region, once less than a group has registers
 *   butterflies  a shuffle of each group that is left, and the region; a step that gives groups away
 *                selects twice for each group that it keeps, and halves them
 *   agreement    without shared memory, one shuffle of each group of an operand whose region is not
 *                commutative: all lanes take the bits of one
 *   memory       the stores of one holder of each partial, a barrier, the loads of every thread, and
 *                the region for every partial but one; or butterflies over the loading lanes
 *   conversion   of the results to their threads, where the plan has one: priced by its own plan */
#include "reduce.h"

#include <string.h>

/* Columns in bytes, for the accesses of one operand. */
static void scale_columns(uint64_t *bytes, const uint64_t *columns, uint32_t count, uint32_t size) {
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = columns[i] * size;
    }
}

/* The exchange of one operand's partials. */
static void make_exchange(lilac_plan_exchange *result, const lilac_plan_reduce *plan,
                          uint32_t operand) {
    const uint32_t size = lilac_plan_stored_bytes(plan->region.operands[operand].element_bits);
    const uint32_t lanes = plan->source.lane_bits, warps = plan->source.thread_bits - lanes;
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    const uint32_t own = loader == NULL ? 1 : lilac_layout_columns_own(loader);
    const bool one_partial = plan->loading_lanes != 0;
    scale_columns(result->store_lanes, plan->store_thread, lanes, size);
    scale_columns(result->load_lanes, plan->load_thread, lanes, size);
    result->store = (lilac_plan_linear_access){.arch = plan->arch,
                                               .bytes = size << plan->store_bits,
                                               .lane_bits = lanes,
                                               .warp_bits = warps,
                                               .lanes = result->store_lanes,
                                               .idle = plan->idle_threads};
    result->load = (lilac_plan_linear_access){.arch = plan->arch,
                                              .bytes = one_partial ? size : size << plan->load_bits,
                                              .lane_bits = lanes,
                                              .warp_bits = warps,
                                              .lanes = result->load_lanes};
    result->stores = UINT64_C(1) << (plan->group_bits - plan->give_steps - plan->store_bits);
    result->loads = one_partial ? own : (uint64_t)own << plan->slot_bits >> plan->load_bits;
}

static void count_butterflies(lilac_plan_reduce *plan, uint64_t *combines) {
    uint64_t left = UINT64_C(1) << plan->group_bits;
    for (uint32_t step = 0; step < plan->lane_steps; step++) {
        const bool gives = step < plan->give_steps;
        left /= gives ? 2 : 1;
        for (uint32_t i = 0; i < plan->region.count; i++) {
            const uint32_t bits = plan->region.operands[i].element_bits;
            lilac_plan_add_shuffles(&plan->price, bits, left, plan->num_warps);
            lilac_plan_add_selects(&plan->price, bits, gives ? 2 * left : 0, plan->num_warps);
        }
        *combines += left;
    }
}

/* Shuffles by which all lanes of butterflies take the bits of one. */
static void count_agreement(lilac_plan_reduce *plan, uint64_t elements, uint64_t times) {
    for (uint32_t i = 0; i < plan->region.count; i++) {
        if (!plan->region.operands[i].commutative) {
            lilac_plan_price row = {0};
            lilac_plan_add_shuffles(&row, plan->region.operands[i].element_bits, elements,
                                    plan->num_warps);
            plan->price.shuffles += times * row.shuffles;
            plan->price.packs += times * row.packs;
        }
    }
}

static void count_memory(lilac_plan_reduce *plan, uint64_t *combines) {
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    const uint64_t own = loader == NULL ? 1 : lilac_layout_columns_own(loader);
    for (uint32_t i = 0; i < plan->region.count; i++) {
        lilac_plan_exchange exchange;
        make_exchange(&exchange, plan, i);
        lilac_plan_add_stores(&plan->price, &exchange.store, exchange.stores);
        lilac_plan_add_loads(&plan->price, &exchange.load, exchange.loads);
    }
    plan->price.barriers = plan->num_warps;
    if (plan->loading_lanes == 0) {
        *combines += own * ((UINT64_C(1) << plan->slot_bits) - 1);
        return;
    }
    for (uint32_t i = 0; i < plan->region.count; i++) {
        const uint32_t bits = plan->region.operands[i].element_bits;
        plan->price.shuffles +=
            own * plan->slot_bits * lilac_plan_row_words(bits, 1) * plan->num_warps;
    }
    count_agreement(plan, 1, own);
    *combines += own * plan->slot_bits;
}

void lilac_plan_reduce_count(lilac_plan_reduce *plan) {
    const uint64_t groups = UINT64_C(1) << plan->group_bits;
    uint64_t combines = groups * ((UINT64_C(1) << plan->fold_bits) - 1);
    count_butterflies(plan, &combines);
    if (plan->slot_bits > 0) {
        count_memory(plan, &combines);
    } else if (plan->lane_steps > 0) {
        count_agreement(plan, groups, 1);
    }
    plan->combines = combines * plan->num_warps;
    plan->price.cycles = lilac_plan_price_cycles(
                             &plan->price, lilac_plan_block_barrier(plan->num_warps), plan->arch) +
                         plan->combines * plan->region.instructions * plan->arch->costs->issue;
}

/* ---- the whole operation ------------------------------------------------------------------ */

bool lilac_plan_reduce_conversion(lilac_plan_conversion *result, const lilac_plan_reduce *plan,
                                  uint32_t operand, lilac_reason *why) {
    lilac_layout_columns finished;
    return lilac_plan_reduce_finished(plan, &finished) &&
           lilac_plan_operand_conversion(result, &finished, &plan->result, &plan->region, operand,
                                         plan->arch, why);
}

bool lilac_plan_reduce_price(lilac_plan_price *result, const lilac_plan_reduce *plan,
                             lilac_reason *why) {
    lilac_layout_columns finished;
    *result = plan->price;
    if (!plan->moves && !plan->shares) {
        return true;
    }
    return lilac_plan_reduce_finished(plan, &finished) &&
           lilac_plan_add_conversions(result, &finished, &plan->result, &plan->region, plan->arch,
                                      why);
}

void lilac_plan_reduce_bound(lilac_plan_bound *result, const lilac_plan_reduce *plan) {
    *result = (lilac_plan_bound){.met = true};
    for (uint32_t i = 0; i < plan->region.count && plan->slot_bits > 0; i++) {
        lilac_plan_exchange exchange;
        make_exchange(&exchange, plan, i);
        lilac_plan_bound_add(result, &exchange);
    }
    lilac_plan_bound_compare(result, &plan->price);
}
