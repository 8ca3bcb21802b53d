/* Compares what the plan of a reduction, scan, gather or histogram predicts with what the simulator
 * counted. The kernel must have one such operation, and no other that shuffles or uses shared memory. */
#ifndef LILAC_COLLECTIVE_PLANS_H
#define LILAC_COLLECTIVE_PLANS_H

#include "support/lower_harness.h"

#include <lilac/collective.h>

/* Features of plans. A test requires that its cases cover each of those it names. */
enum {
    PLAN_SHUFFLES = 1 << 0,
    PLAN_MEMORY = 1 << 1,
    PLAN_GIVES = 1 << 2,         /* steps of a butterfly halve the elements of a thread */
    PLAN_LOADING_LANES = 1 << 3, /* each lane loads one partial result */
    PLAN_SHARES = 1 << 4,        /* each thread computes part of the results */
    PLAN_CONVERTS = 1 << 5       /* a conversion comes before or after */
};

typedef struct expected_counts {
    uint32_t features;
    lilac_plan_price price;
    uint64_t bytes;    /* of shared memory; without those of conversions */
    bool converts;     /* a conversion follows, whose place in memory the lowering chooses */
    bool random_loads; /* the wavefronts of loads depend on the data */
    bool merged_loads; /* … or on how many lanes load the same */
    uint64_t atomics;  /* at most: those without an active thread are not executed */
    bool warp_barrier; /* the barrier is one of each warp */
    uint64_t barriers; /* without those of conversions */
} expected_counts;

static inline void find_collective(void *data, lilac_tile_op *op) {
    lilac_tile_op **found = data;
    if (op->code == LILAC_TILE_OP_TT_REDUCE || op->code == LILAC_TILE_OP_TT_SCAN ||
        op->code == LILAC_TILE_OP_TT_GATHER || op->code == LILAC_TILE_OP_TT_HISTOGRAM) {
        assert_null(*found);
        *found = op;
    }
}

static inline void check_bound(const lilac_plan_bound *bound, const lilac_plan_price *price) {
    assert_true(bound->store_wavefronts <= price->store_wavefronts);
    assert_true(bound->load_wavefronts <= price->load_wavefronts);
    assert_int_equal(bound->met,
                     bound->floor_wavefronts == price->store_wavefronts + price->load_wavefronts);
}

static inline void expect_reduce(expected_counts *result, const harness *h, const lilac_tile_op *op,
                                 const lilac_target *target) {
    lilac_plan_region region;
    lilac_plan_reduce *plan = lilac_arena_new(h->tile->arena, lilac_plan_reduce);
    lilac_reason why = {0};
    const lilac_tile_type *type = op->results[0].type;
    lilac_engine_region(&region, h->tile->arena, op);
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (!lilac_plan_reduce_init(plan, op->operands[0].value->type->layout,
                                lilac_tile_is_tensor(type) ? type->layout : NULL, axis, &region,
                                target, &why) ||
        !lilac_plan_reduce_price(&result->price, plan, &why)) {
        fail_msg("the lowering had a plan: %s", why.text);
    }
    lilac_plan_bound bound;
    lilac_plan_reduce_bound(&bound, plan);
    check_bound(&bound, &plan->price);
    result->bytes = plan->bytes;
    result->converts = plan->moves || plan->shares;
    result->features = (plan->give_steps > 0 ? PLAN_GIVES : 0) |
                       (plan->loading_lanes != 0 ? PLAN_LOADING_LANES : 0) |
                       (plan->shares ? PLAN_SHARES : 0);
    result->warp_barrier = target->num_warps == 1;
    result->barriers = plan->slot_bits > 0;
}

static inline void expect_scan(expected_counts *result, const harness *h, const lilac_tile_op *op,
                               const lilac_target *target) {
    lilac_plan_region region;
    lilac_plan_scan *plan = lilac_arena_new(h->tile->arena, lilac_plan_scan);
    lilac_reason why = {0};
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    lilac_engine_region(&region, h->tile->arena, op);
    if (!lilac_plan_scan_init(plan, op->operands[0].value->type->layout,
                              op->results[0].type->layout, axis, &region, target, &why) ||
        !lilac_plan_scan_price(&result->price, plan, &why)) {
        fail_msg("the lowering had a plan: %s", why.text);
    }
    lilac_plan_bound bound;
    lilac_plan_scan_bound(&bound, plan);
    check_bound(&bound, &plan->price);
    result->bytes = plan->bytes;
    result->converts = plan->moves_operands || plan->moves_results;
    result->warp_barrier = target->num_warps == 1;
    result->barriers = plan->bytes > 0;
}

/* Adds the conversion of an operand to the layout that the plan reads it in. */
static inline void expect_conversion(expected_counts *result, const lilac_layout *source,
                                     const lilac_layout_columns *to, uint32_t bits,
                                     const lilac_target *target) {
    lilac_layout_columns from;
    lilac_layout layouts[2];
    lilac_plan_conversion conversion;
    lilac_reason why = {0};
    if (!lilac_plan_columns_init(&from, source, target, &why) ||
        !lilac_layout_columns_layout(&layouts[0], &from, from.distinct, &why) ||
        !lilac_layout_columns_layout(&layouts[1], to, to->distinct, &why) ||
        !lilac_plan_conversion_init(&conversion, &layouts[0], &layouts[1], bits, NULL, target->arch,
                                    &why)) {
        fail_msg("the lowering had a plan: %s", why.text);
    }
    lilac_plan_price *sum = &result->price;
    sum->shuffles += conversion.price.shuffles;
    sum->stores += conversion.price.stores;
    sum->loads += conversion.price.loads;
    sum->store_wavefronts += conversion.price.store_wavefronts;
    sum->load_wavefronts += conversion.price.load_wavefronts;
    sum->store_bytes += conversion.price.store_bytes;
    sum->load_bytes += conversion.price.load_bytes;
    result->converts = true;
}

static inline void expect_gather(expected_counts *result, const harness *h, const lilac_tile_op *op,
                                 const lilac_target *target) {
    lilac_plan_gather *plan = lilac_arena_new(h->tile->arena, lilac_plan_gather);
    lilac_reason why = {0};
    const lilac_layout *index = op->operands[1].value->type->layout;
    const lilac_layout *to = op->results[0].type->layout;
    const lilac_plan_gather_options options = {
        .axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0),
        .element_bits = lilac_tile_element_bits(op->operands[0].value->type),
        .strategy = lilac_engine_strategy(op)};
    if (!lilac_plan_gather_init(plan, op->operands[0].value->type->layout, to, &options, target,
                                &why)) {
        fail_msg("the lowering had a plan: %s", why.text);
    }
    lilac_plan_bound bound;
    lilac_plan_gather_bound(&bound, plan);
    assert_true(bound.store_wavefronts <= plan->price.store_wavefronts);
    assert_true(bound.load_wavefronts <= plan->price.load_wavefronts);
    result->price = plan->price;
    result->bytes = plan->bytes;
    result->random_loads = !plan->exact;
    result->merged_loads = plan->work.element_bits == 64;
    result->warp_barrier = plan->barrier == LILAC_PLAN_BARRIER_WARP;
    result->barriers = plan->price.barriers / target->num_warps;
    if (!lilac_layout_equal(index, to)) {
        expect_conversion(result, index, &plan->result, 32, target);
    }
}

static inline void expect_histogram(expected_counts *result, const harness *h,
                                    const lilac_tile_op *op, const lilac_target *target) {
    lilac_plan_histogram *plan = lilac_arena_new(h->tile->arena, lilac_plan_histogram);
    lilac_reason why = {0};
    const lilac_layout *numbers = op->operands[0].value->type->layout;
    const lilac_tile_value *mask = op->operand_count > 1 ? op->operands[1].value : NULL;
    if (!lilac_plan_histogram_init(plan, numbers, op->results[0].type->layout, target, &why)) {
        fail_msg("the lowering had a plan: %s", why.text);
    }
    lilac_plan_bound bound;
    lilac_plan_histogram_bound(&bound, plan);
    check_bound(&bound, &plan->price);
    result->price = plan->price;
    result->bytes = plan->bytes;
    result->atomics = plan->atomics;
    result->warp_barrier = target->num_warps == 1;
    result->barriers = plan->price.barriers / target->num_warps;
    if (mask != NULL && !lilac_layout_equal(mask->type->layout, numbers)) {
        expect_conversion(result, mask->type->layout, &plan->numbers, 8, target);
    }
}

static inline void check_counter(const char *what, uint64_t expected, uint64_t counted) {
    if (expected != counted) {
        fail_msg("the plan predicts %llu %s, the simulator counts %llu",
                 (unsigned long long)expected, what, (unsigned long long)counted);
    }
}

/* To be called after one block ran the kernel once. Returns the features of the plan. */
static inline uint32_t check_collective(const harness *h, const lilac_arch *device,
                                        uint32_t warps) {
    const lilac_target target = {
        .arch = device, .num_warps = warps, .num_ctas = 1, .num_stages = 1};
    const lilac_sim_counters *counted = &h->counters;
    expected_counts expected = {.bytes = 0};
    lilac_tile_op *op = NULL;
    lilac_tile_walk(h->tile->functions->body, find_collective, &op);
    assert_non_null(op);
    if (op->code == LILAC_TILE_OP_TT_HISTOGRAM) {
        expect_histogram(&expected, h, op, &target);
    } else if (op->code == LILAC_TILE_OP_TT_GATHER) {
        expect_gather(&expected, h, op, &target);
    } else if (op->code == LILAC_TILE_OP_TT_SCAN) {
        expect_scan(&expected, h, op, &target);
    } else {
        expect_reduce(&expected, h, op, &target);
    }
    const lilac_plan_price *price = &expected.price;
    check_counter("shuffles", price->shuffles, counted->shuffles);
    check_counter("stores", price->stores, counted->shared_stores);
    check_counter("loads", price->loads, counted->shared_loads);
    check_counter("store wavefronts", price->store_wavefronts, counted->shared_store_wavefronts);
    if (expected.merged_loads && !expected.random_loads) {
        assert_true(counted->shared_load_wavefronts <= price->load_wavefronts);
    } else if (!expected.random_loads) {
        check_counter("load wavefronts", price->load_wavefronts, counted->shared_load_wavefronts);
    }
    check_counter("bytes stored", price->store_bytes, counted->shared_store_bytes);
    check_counter("bytes loaded", price->load_bytes, counted->shared_load_bytes);
    assert_true(counted->atomics <= expected.atomics);
    if (!expected.converts) {
        bool of_warps = expected.warp_barrier;
        check_counter("barriers", of_warps ? 0 : expected.barriers, counted->barriers);
        check_counter("barriers of warps", of_warps ? expected.barriers * warps : 0,
                      counted->warp_barriers);
        check_counter("bytes of scratch memory", expected.bytes, h->simt->kernels->shared_bytes);
    }
    return expected.features | (price->shuffles > 0 ? PLAN_SHUFFLES : 0) |
           (expected.bytes > 0 ? PLAN_MEMORY : 0) | (expected.converts ? PLAN_CONVERTS : 0);
}

#endif
