/* Plans between random distributed layouts, carried out on arrays: every thread ends with the
 * elements of the target, and after every step it holds what lilac_plan_conversion_layout says. The
 * price is what the steps add up to, and no way that was left out is cheaper. */

#include "support/random_layouts.h"
#include "support/run_plan.h"
#include "support/test.h"

static const uint32_t widths[] = {8, 16, 32, 64, 128};

static void fail_pair(const random_pair *pair, uint32_t bits, const char *what) {
    lilac_text text = {0};
    random_pair_print(&text, pair, bits);
    print_message("%s\n", lilac_text_get(&text));
    lilac_text_clear(&text);
    fail_msg("%s", what);
}

static void check_plan(const random_pair *pair, uint32_t bits, const lilac_plan_conversion *plan) {
    run_state state;
    lilac_layout said;
    run_start(&state, plan, &pair->source);
    for (uint32_t step = 0; step < plan->step_count && state.broken == NULL; step++) {
        run_step(&state, plan, step);
        lilac_plan_conversion_layout(&said, plan, &pair->source, step + 1);
        if (state.broken == NULL && !run_holds(&state, &said)) {
            state.broken = "a step does not give the layout that it is said to give";
        }
    }
    if (state.broken == NULL && state.register_bits != plan->target_register_bits) {
        state.broken = "another number of registers";
    }
    if (state.broken == NULL && !run_holds(&state, &pair->target)) {
        state.broken = "the plan does not end in the target";
    }
    free(state.element);
    if (state.broken != NULL) {
        fail_pair(pair, bits, state.broken);
    }
}

/* The sum of the steps. */
static void check_price(const random_pair *pair, uint32_t bits, const lilac_plan_conversion *plan) {
    lilac_plan_price price = {0};
    const uint32_t warps = 1U << plan->warp_bits;
    bool staging = false;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const uint32_t index = plan->step[i].index;
        if (plan->step[i].kind == LILAC_PLAN_STEP_PERMUTATION) {
            lilac_plan_price_permutation(&price, &plan->permutation[index], plan->element_bits,
                                         warps);
        } else if (plan->step[i].kind == LILAC_PLAN_STEP_SHUFFLE) {
            lilac_plan_price_shuffle(&price, &plan->shuffle[index], plan->element_bits, warps);
        } else {
            lilac_plan_price_staging(&price, &plan->staging, plan->element_bits, warps);
            staging = true;
        }
    }
    price.cycles = lilac_plan_price_cycles(&price, plan->staging.barrier, plan->arch);
    if (memcmp(&price, &plan->price, sizeof price) != 0) {
        fail_pair(pair, bits, "the price is not the sum of the steps");
    }
    if (!staging && price.stores + price.loads != 0) {
        fail_pair(pair, bits, "stores without a shared-memory exchange");
    }
}

static void random_pairs(void **state) {
    lilac_random random;
    lilac_context *context = lilac_context_create();
    uint32_t kinds[LILAC_PLAN_CLUSTER + 1] = {0};
    (void)state;
    lilac_random_seed(&random, 4);
    for (uint32_t i = 0; i < 400; i++) {
        const uint32_t bits = widths[lilac_random_below(&random, 5)];
        random_space space;
        random_pair pair;
        lilac_plan_conversion plans[3];
        lilac_reason why;
        const uint32_t warps = (uint32_t)lilac_random_below(&random, 4);
        const uint32_t blocks =
            lilac_random_below(&random, 4) == 0 ? (uint32_t)lilac_random_below(&random, 3) : 0;
        random_space_init(&space, &random, 5, warps, blocks, bits, 4);
        random_pair_init(&pair, &random, context, &space);
        if (!lilac_plan_conversion_init(&plans[0], &pair.source, &pair.target, bits, NULL,
                                        lilac_arch_find("sm_90a"), &why)) {
            fail_pair(&pair, bits, why.text);
        }
        check_plan(&pair, bits, &plans[0]);
        check_price(&pair, bits, &plans[0]);
        kinds[plans[0].kind]++;
        for (uint32_t strategy = LILAC_PLAN_BY_SHUFFLES; strategy <= LILAC_PLAN_BY_SHARED;
             strategy++) {
            const lilac_plan_options options = {.strategy = (lilac_plan_strategy)strategy};
            lilac_plan_conversion *plan = &plans[strategy];
            if (!lilac_plan_conversion_init(plan, &pair.source, &pair.target, bits, &options,
                                            lilac_arch_find("sm_90a"), &why)) {
                if (strategy != LILAC_PLAN_BY_SHUFFLES) {
                    fail_pair(&pair, bits, why.text);
                }
                continue;
            }
            check_plan(&pair, bits, plan);
            if (plan->price.cycles < plans[0].price.cycles) {
                fail_pair(&pair, bits, "a way that was not taken is cheaper");
            }
        }
    }
    for (uint32_t kind = 0; kind <= LILAC_PLAN_CLUSTER; kind++) {
        print_message("%s: %u\n", lilac_plan_kind_name((lilac_plan_kind)kind), kinds[kind]);
        assert_true(kinds[kind] > 0);
    }
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_pairs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
