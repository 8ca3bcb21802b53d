/* The plan of a histogram.
 *
 * The threads of a block clear the counts together, in vectors as wide as leave no thread without
 * work. One holder of each element adds to its count. Every thread then loads the counts of its
 * elements of the result. */
#include "collective.h"

#include <string.h>

enum { COUNT_BYTES = 4, MAX_VECTOR = 4 };

static void plan_clear(lilac_plan_histogram *plan) {
    const uint32_t threads = plan->arch->warp_size * plan->num_warps;
    plan->clear_vector = MAX_VECTOR;
    while (plan->clear_vector > 1 && plan->bins < threads * plan->clear_vector) {
        plan->clear_vector /= 2;
    }
    plan->clear_threads = min_u32(threads, plan->bins);
}

/* The accesses that clear the counts, and those that load them. */
typedef struct count_accesses {
    uint64_t clear_lanes[LILAC_PLAN_MAX_LANE_BITS], load_lanes[LILAC_PLAN_MAX_LANE_BITS];
    lilac_plan_linear_access clear, load;
    uint64_t clears, loads; /* of a warp */
} count_accesses;

static void make_accesses(count_accesses *result, const lilac_plan_histogram *plan) {
    const lilac_layout_columns *to = &plan->result;
    const uint32_t vector = plan->clear_vector * COUNT_BYTES;
    const lilac_plan_linear_access access = {.arch = plan->arch,
                                             .lane_bits = to->lane_bits,
                                             .warp_bits = to->thread_bits - to->lane_bits};
    for (uint32_t i = 0; i < to->lane_bits; i++) {
        result->clear_lanes[i] = (uint64_t)vector << i;
        result->load_lanes[i] = to->threads[i] * COUNT_BYTES;
    }
    result->clear = access;
    result->clear.bytes = vector;
    result->clear.lanes = result->clear_lanes;
    result->clear.idle =
        (uint32_t)(low_bits(to->thread_bits) & ~low_bits(log2_of(plan->clear_threads)));
    result->load = access;
    result->load.bytes = COUNT_BYTES;
    result->load.lanes = result->load_lanes;
    result->clears = plan->bins / (plan->clear_threads * plan->clear_vector);
    result->loads = lilac_layout_columns_own(to);
}

/* The additions of the holders: lanes that differ draw one of the bins each. */
static void count_atomics(lilac_plan_histogram *plan) {
    const lilac_layout_columns *from = &plan->numbers;
    const uint64_t active = low_bits(from->thread_bits) & ~from->free_threads;
    const uint32_t lanes = (uint32_t)__builtin_popcountll(active & low_bits(from->lane_bits));
    const uint32_t warps = (uint32_t)__builtin_popcountll(active >> from->lane_bits);
    const uint32_t bins = log2_of(plan->bins), banks = log2_of(plan->arch->banks);
    plan->atomics = (uint64_t)lilac_layout_columns_own(from) << warps;
    plan->atomic_wavefronts =
        plan->atomics * lilac_plan_scattered_wavefronts(lanes, min_u32(banks, bins), bins) / 16;
}

static void count(lilac_plan_histogram *plan) {
    const lilac_costs *costs = plan->arch->costs;
    count_accesses access;
    make_accesses(&access, plan);
    lilac_plan_add_stores(&plan->price, &access.clear, access.clears);
    lilac_plan_add_loads(&plan->price, &access.load, access.loads);
    count_atomics(plan);
    plan->price.barriers = 2 * plan->num_warps;
    plan->price.cycles = lilac_plan_price_cycles(
                             &plan->price, lilac_plan_block_barrier(plan->num_warps), plan->arch) +
                         plan->atomics * (costs->access + costs->issue) +
                         2 * plan->atomic_wavefronts * costs->wavefront;
}

bool lilac_plan_histogram_init(lilac_plan_histogram *plan, const lilac_layout *numbers,
                               const lilac_layout *result, const lilac_target *target,
                               lilac_reason *why) {
    lilac_layout_columns columns[2];
    memset(plan, 0, sizeof *plan);
    return lilac_plan_columns_init(&columns[0], numbers, target, why) &&
           lilac_plan_columns_init(&columns[1], result, target, why) &&
           lilac_plan_histogram_init_columns(plan, &columns[0], &columns[1], target, why);
}

bool lilac_plan_histogram_init_columns(lilac_plan_histogram *plan,
                                       const lilac_layout_columns *numbers,
                                       const lilac_layout_columns *result,
                                       const lilac_target *target, lilac_reason *why) {
    memset(plan, 0, sizeof *plan);
    plan->arch = target->arch;
    plan->num_warps = target->num_warps;
    plan->numbers = *numbers;
    plan->result = *result;
    for (uint32_t i = 0; i < plan->numbers.block_bits; i++) {
        if (plan->numbers.blocks[i] != 0 || plan->result.blocks[i] != 0) {
            return lilac_layout_refuse(why,
                                       "%s is distributed over %u blocks of a cluster; a "
                                       "histogram counts the elements of one block",
                                       plan->numbers.blocks[i] != 0 ? "operand 0" : "the result",
                                       target->num_ctas);
        }
    }
    plan->bytes = (uint64_t)COUNT_BYTES << plan->result.out_bits;
    if (plan->result.out_bits > LILAC_PLAN_MAX_BIN_BITS) {
        return lilac_layout_refuse(why, "the histogram has 2^%u bins; at most 2^%u are supported",
                                   plan->result.out_bits, LILAC_PLAN_MAX_BIN_BITS);
    }
    plan->bins = 1U << plan->result.out_bits;
    plan_clear(plan);
    count(plan);
    return true;
}

void lilac_plan_histogram_bound(lilac_plan_bound *result, const lilac_plan_histogram *plan) {
    count_accesses access;
    make_accesses(&access, plan);
    *result = (lilac_plan_bound){0};
    result->store_wavefronts = lilac_plan_least_wavefronts(&access.clear, access.clears, false);
    result->load_wavefronts = lilac_plan_least_wavefronts(&access.load, access.loads, true);
    result->floor_wavefronts = result->store_wavefronts + result->load_wavefronts;
    result->met =
        result->floor_wavefronts == plan->price.store_wavefronts + plan->price.load_wavefronts;
}

/* ---- explanations ------------------------------------------------------------------------- */

void lilac_plan_histogram_explain(lilac_text *out, const lilac_plan_histogram *plan) {
    lilac_plan_bound bound;
    lilac_plan_histogram_bound(&bound, plan);
    lilac_text_printf(out, "histogram of %u bins, %u warp%s, %s\n", plan->bins, plan->num_warps,
                      plan->num_warps == 1 ? "" : "s", plan->arch->name);
    lilac_text_printf(out, "clear         %u threads, %u counts at a time\n", plan->clear_threads,
                      plan->clear_vector);
    lilac_text_printf(out, "additions     %llu, about %llu wavefronts\n",
                      (unsigned long long)plan->atomics,
                      (unsigned long long)plan->atomic_wavefronts);
    lilac_plan_explain_totals(out, &plan->price, &bound, plan->bytes);
}

void lilac_plan_histogram_json(lilac_text *out, const lilac_plan_histogram *plan) {
    lilac_plan_bound bound;
    lilac_plan_histogram_bound(&bound, plan);
    lilac_text_printf(out,
                      "{\"kind\": \"histogram\", \"bins\": %u, \"clear_threads\": %u, "
                      "\"clear_vector\": %u, \"atomics\": %llu, \"atomic_wavefronts\": %llu",
                      plan->bins, plan->clear_threads, plan->clear_vector,
                      (unsigned long long)plan->atomics,
                      (unsigned long long)plan->atomic_wavefronts);
    lilac_plan_json_totals(out, &plan->price, &bound, plan->bytes);
    lilac_text_char(out, '}');
}
