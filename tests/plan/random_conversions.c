/* Moving tensors between random pairs of distributed layouts: every plan is carried out on the
 * simulator. Every register of every thread must have its element, copies too; instructions,
 * wavefronts and bytes must be those of the plan, without a race; an exchange must take the fewest
 * wavefronts that any takes, or else be cheaper; a warp that has what it needs must be served by
 * shuffles, and no other. The cheapest way must be no dearer than any that is asked for.
 *
 * Ten thousand pairs, LILAC_TEST_SCALE times as many; a build that is not optimised takes a part of
 * them, and all with LILAC_TEST_LONG=1. */

#include <lilac/driver.h>

#include "plan_check.h"
#include "support/random_layouts.h"
#include "support/test.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SLOW
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
#define SLOW
#endif

enum { ALL_PAIRS = 10000, MOST_REPORTS = 8, STRATEGIES = 4 };

static const char *const strategy_name[STRATEGIES] = {"any", "shuffles", "shared", "unswizzled"};

static uint32_t pair_count(void) {
#ifdef SLOW
    uint32_t count = ALL_PAIRS / 5;
#else
    uint32_t count = ALL_PAIRS;
#endif
    count = scaled(count);
    return getenv("LILAC_TEST_LONG") != NULL && count < ALL_PAIRS ? ALL_PAIRS : count;
}

/* ---- one question ------------------------------------------------------------------------ */

typedef struct question {
    uint32_t number, element_bits;
    const lilac_arch *arch;
    random_pair pair;
    lilac_plan_options options;
} question;

typedef struct tally {
    uint32_t pairs, failures;
    uint32_t plans[STRATEGIES], refused[STRATEGIES];
    uint32_t kinds[LILAC_PLAN_CLUSTER + 1], gaps[STRATEGIES][LILAC_PLAN_CLUSTER + 1];
    uint32_t instructions[3], barriers[4], rounds, hybrids, dearer;
} tally;

/* Devices of all kinds, and one on which barriers of groups of warps are worth while, which they
 * are on none that was measured. */
static const lilac_arch *random_arch(lilac_random *random) {
    static const char *const names[] = {"sm_90a", "sm_90a",  "sm_90a", "sm_90a", "sm_90a", "sm_80",
                                        "sm_86",  "sm_120a", "gfx942", "gfx950", "gfx1201"};
    static lilac_arch other;
    static lilac_costs costs;
    const uint32_t number = random_below(random, 12);
    if (number < 11) {
        return lilac_arch_find(names[number]);
    }
    other = *lilac_arch_find("sm_90a");
    costs = *other.costs;
    costs.barrier_group = 0;
    other.costs = &costs;
    return &other;
}

static void random_question(question *q, lilac_random *random, lilac_context *context,
                            uint32_t number) {
    *q = (question){.number = number, .arch = random_arch(random)};
    q->element_bits = random_below(random, 25) == 0 ? 1 : 8U << random_below(random, 5);
    const bool clusters = lilac_arch_has(q->arch, LILAC_HAS_CLUSTERS);
    random_space space;
    random_space_init(&space, random, q->arch->warp_size == 64 ? 6 : 5, random_below(random, 4),
                      clusters && random_below(random, 6) == 0 ? 1 + random_below(random, 2) : 0,
                      q->element_bits, random_below(random, 7));
    random_pair_init(&q->pair, random, context, &space);
    if (random_below(random, 6) == 0) {
        q->options.scratch_bytes = UINT64_C(1) << (6 + random_below(random, 11));
    }
}

static void describe(const question *q, lilac_plan_strategy strategy, const char *what,
                     const char *more) {
    lilac_text text = {0};
    random_pair_print(&text, &q->pair, q->element_bits);
    print_message("pair %u, %s and %s, %s, %s, through %s, scratch %llu: %s%s\n%s\n", q->number,
                  random_kind_name[q->pair.kind[0]], random_kind_name[q->pair.kind[1]],
                  random_relation_name[q->pair.relation], q->arch->name, strategy_name[strategy],
                  (unsigned long long)q->options.scratch_bytes, what, more, lilac_text_get(&text));
    lilac_text_clear(&text);
}

static void report(tally *t, const question *q, lilac_plan_strategy strategy, const char *what,
                   const char *more) {
    if (t->failures++ < MOST_REPORTS) {
        describe(q, strategy, what, more);
    }
}

/* ---- what must hold ---------------------------------------------------------------------- */

/* Vectors in echelon form. */
typedef struct span {
    uint64_t vector[64];
    uint32_t count;
} span;

static uint64_t reduce(const span *s, uint64_t vector) {
    for (uint32_t i = 0; i < s->count; i++) {
        const uint64_t reduced = vector ^ s->vector[i];
        vector = reduced < vector ? reduced : vector;
    }
    return vector;
}

static void span_add(span *s, const lilac_layout *layout, const char *in) {
    for (uint32_t i = 0; i < lilac_layout_in_bits(layout, in); i++) {
        const uint64_t vector = reduce(s, lilac_layout_column(layout, in, i));
        if (vector != 0) {
            s->vector[s->count++] = vector;
        }
    }
}

/* Does every warp hold all that it is to hold? With `exactly`, blocks also hold it in the same
 * places. */
static bool warps_serve_themselves(const random_pair *pair, bool exactly) {
    static const char *const within[] = {"register", "lane"}, *const across[] = {"warp", "block"};
    for (uint32_t i = 0; exactly && i < lilac_layout_in_bits(&pair->source, "block"); i++) {
        if (lilac_layout_column(&pair->source, "block", i) !=
            lilac_layout_column(&pair->target, "block", i)) {
            return false;
        }
    }
    span held = {.count = 0};
    for (int i = 0; i < 2; i++) {
        span_add(&held, &pair->source, within[i]);
    }
    for (int i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < lilac_layout_in_bits(&pair->target, within[i]); j++) {
            if (reduce(&held, lilac_layout_column(&pair->target, within[i], j)) != 0) {
                return false;
            }
        }
        for (uint32_t j = 0; j < lilac_layout_in_bits(&pair->target, across[i]); j++) {
            if (reduce(&held, lilac_layout_column(&pair->target, across[i], j) ^
                                  lilac_layout_column(&pair->source, across[i], j)) != 0) {
                return false;
            }
        }
    }
    return true;
}

static bool at_most_as_planned(const plan_check *checked) {
    bool ok = checked->ran && checked->correct;
    for (uint32_t i = 0; i < JUDGED_COUNTS && ok; i++) {
        ok = checked->counts[i].simulated <= checked->counts[i].planned;
    }
    return ok;
}

static void check(tally *t, const question *q, lilac_plan_strategy strategy,
                  const lilac_plan_conversion *plan, lilac_context *context,
                  const lilac_simt_module *module, bool improved) {
    plan_check checked;
    lilac_text said = {0};
    check_plan(&checked, &said, context, module, plan, &q->pair.source, &q->pair.target);
    if (!(improved ? at_most_as_planned(&checked) : plan_check_passed(&checked))) {
        for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
            lilac_text_printf(&said, "%s [%s]\n", d->message, d->id);
        }
        report(t, q, strategy, improved ? "after passes not as planned\n" : "not as planned\n",
               lilac_text_get(&said));
    }
    lilac_text_clear(&said);
}

static void carry_out(tally *t, const question *q, lilac_plan_strategy strategy,
                      const lilac_plan_conversion *plan) {
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = lilac_lower_movement_kernel(context, plan);
    if (module == NULL) {
        report(t, q, strategy, "no kernel", "");
    } else {
        check(t, q, strategy, plan, context, module, false);
        if (q->number % 4 == 0) {
            lilac_run_simt_passes(module); /* may save something of what is counted */
            check(t, q, strategy, plan, context, module, true);
        }
    }
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

static void count_plan(tally *t, const question *q, lilac_plan_strategy strategy,
                       const lilac_plan_conversion *plan) {
    bool shuffles = false, staging = false;
    t->plans[strategy]++;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        shuffles = shuffles || plan->step[i].kind == LILAC_PLAN_STEP_SHUFFLE;
        staging = staging || plan->step[i].kind == LILAC_PLAN_STEP_STAGING;
    }
    if (staging) {
        t->instructions[plan->staging.store.instruction]++;
        t->instructions[plan->staging.load.instruction]++;
        t->barriers[plan->staging.barrier]++;
        t->rounds += plan->staging.round_bits > 0;
        t->hybrids += shuffles;
    }
    if (strategy == LILAC_PLAN_ANY) {
        t->kinds[plan->kind]++;
    }
    if (staging && !plan->bound.met) {
        t->gaps[strategy][plan->kind]++;
        /* Between blocks there is not always a bound beyond the floor. */
        if (strategy != LILAC_PLAN_UNSWIZZLED && !plan->bound.by_price && plan->block_bits == 0) {
            report(t, q, strategy, "above the bound, and not for the price", "");
        }
    }
    if (staging && plan->price.store_wavefronts + plan->price.load_wavefronts <
                       plan->bound.store_wavefronts + plan->bound.load_wavefronts) {
        report(t, q, strategy, "below the bound", "");
    }
}

static void check_end(tally *t, const question *q, lilac_plan_strategy strategy,
                      const lilac_plan_conversion *plan) {
    lilac_layout end;
    lilac_plan_conversion_layout(&end, plan, &q->pair.source, plan->step_count);
    if (!lilac_layout_equal(&end, &q->pair.target)) {
        lilac_text text = {0};
        lilac_layout_print(&text, &end);
        report(t, q, strategy, "the steps end in ", lilac_text_get(&text));
        lilac_text_clear(&text);
    }
}

/* Is this way's refusal right? */
static bool may_refuse(const question *q, lilac_plan_strategy strategy, const char *why) {
    if (strategy == LILAC_PLAN_BY_SHUFFLES) {
        return !warps_serve_themselves(&q->pair, true);
    }
    /* Memory for all of a block's elements is always enough. */
    const lilac_layout *target = &q->pair.target;
    const uint64_t scratch =
        q->options.scratch_bytes != 0 ? q->options.scratch_bytes : q->arch->shared_bytes / 4;
    return (strstr(why, "bytes of shared memory") != NULL || strstr(why, "rounds") != NULL) &&
           UINT64_C(1) << target->out_bits >
               scratch / (q->element_bits < 8 ? 1 : q->element_bits / 8);
}

/* The plan's cycles; 0 when it was refused. */
static uint64_t try_strategy(tally *t, const question *q, lilac_plan_strategy strategy) {
    lilac_plan_conversion plan;
    lilac_plan_options options = q->options;
    lilac_reason why = {""};
    options.strategy = strategy;
    if (!lilac_plan_conversion_init(&plan, &q->pair.source, &q->pair.target, q->element_bits,
                                    &options, q->arch, &why)) {
        t->refused[strategy]++;
        if (!may_refuse(q, strategy, why.text)) {
            report(t, q, strategy, "refused: ", why.text);
        }
        return 0;
    }
    if (strategy == LILAC_PLAN_BY_SHUFFLES && !warps_serve_themselves(&q->pair, false)) {
        report(t, q, strategy, "shuffles alone cannot do this", "");
    }
    count_plan(t, q, strategy, &plan);
    check_end(t, q, strategy, &plan);
    carry_out(t, q, strategy, &plan);
    return plan.price.cycles + 1;
}

static void answer(tally *t, const question *q) {
    t->pairs++;
    const uint64_t cheapest = try_strategy(t, q, LILAC_PLAN_ANY);
    const lilac_plan_strategy strategy = (lilac_plan_strategy)(1 + q->number % 3);
    const uint64_t other = try_strategy(t, q, strategy);
    if (other != 0 && cheapest == 0) {
        report(t, q, strategy, "no way was found, but there is this", "");
    } else if (other != 0 && cheapest > other && t->dearer++ < MOST_REPORTS) {
        describe(q, strategy, "this is cheaper than the cheapest way", "");
    }
}

/* ---- all of them ------------------------------------------------------------------------- */

static void print_tally(const tally *t) {
    static const char *const names[] = {"vector", "matrix", "matrix transposed"};
    print_message("%u pairs\n", t->pairs);
    for (int kind = 0; kind <= LILAC_PLAN_CLUSTER; kind++) {
        print_message("  %-10s %u, exchanges above the bound: %u\n",
                      lilac_plan_kind_name((lilac_plan_kind)kind), t->kinds[kind],
                      t->gaps[LILAC_PLAN_ANY][kind]);
    }
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        uint32_t gaps = 0;
        for (int kind = 0; kind <= LILAC_PLAN_CLUSTER; kind++) {
            gaps += t->gaps[strategy][kind];
        }
        print_message("  through %-10s %u plans, %u refused, %u above the bound\n",
                      strategy_name[strategy], t->plans[strategy], t->refused[strategy], gaps);
    }
    for (int i = 0; i < 3; i++) {
        print_message("  %s accesses: %u\n", names[i], t->instructions[i]);
    }
    for (int i = 0; i < 4; i++) {
        print_message("  %s barriers: %u\n", lilac_plan_barrier_name((lilac_plan_barrier)i),
                      t->barriers[i]);
    }
    print_message("  dearer than another way: %u\n", t->dearer);
    print_message("  in rounds: %u; hybrid plans: %u\n", t->rounds, t->hybrids);
}

static void random_pairs(void **state) {
    (void)state;
    tally t = {0};
    lilac_random random;
    lilac_context *context = lilac_context_create();
    const uint32_t count = pair_count();
    lilac_random_seed(&random, 4);
    for (uint32_t i = 0; i < count; i++) {
        question q;
        random_question(&q, &random, context, i);
        answer(&t, &q);
    }
    lilac_context_destroy(context);
    print_tally(&t);
    if (t.failures > 0) {
        fail_msg("%u failures", t.failures);
    }
    for (int strategy = 0; strategy < STRATEGIES; strategy++) {
        assert_true(t.plans[strategy] > 0);
    }
    for (int kind = 0; kind <= LILAC_PLAN_CLUSTER; kind++) {
        assert_true(t.kinds[kind] > 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(t.instructions[i] > 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_true(t.barriers[i] > 0);
    }
    assert_true(t.rounds > 0 && t.hybrids > 0);
    assert_int_equal(t.dearer, 0);
}

/* The check also finds plans that are wrong. */
static void check_finds_mistakes(void **state) {
    (void)state;
    const uint64_t lanes[] = {2, 4, 8, 16, 32}, turned[] = {1, 4, 8, 16, 32},
                   wrong[] = {1, 8, 4, 16, 32};
    const uint64_t registers[] = {1, 2};
    lilac_layout layouts[3];
    for (int i = 0; i < 3; i++) {
        lilac_layout_init(&layouts[i]);
        assert_true(lilac_layout_add_out(&layouts[i], "dim0", 6, NULL));
        assert_true(lilac_layout_add_in(&layouts[i], "register", 1, registers + (i > 0), NULL));
        assert_true(lilac_layout_add_in(&layouts[i], "lane", 5,
                                        i == 0   ? lanes
                                        : i == 1 ? turned
                                                 : wrong,
                                        NULL));
        assert_true(lilac_layout_add_in(&layouts[i], "warp", 0, NULL, NULL));
        assert_true(lilac_layout_add_in(&layouts[i], "block", 0, NULL, NULL));
    }
    lilac_context *context = lilac_context_create();
    lilac_plan_conversion plan;
    assert_true(lilac_plan_conversion_init(&plan, &layouts[0], &layouts[1], 32, NULL,
                                           lilac_arch_find("sm_90a"), NULL));
    lilac_simt_module *module = lilac_lower_movement_kernel(context, &plan);
    assert_non_null(module);
    lilac_text said = {0};
    plan_check checked;
    check_plan(&checked, &said, context, module, &plan, &layouts[0], &layouts[1]);
    assert_true(plan_check_passed(&checked));
    assert_int_equal(said.length, 0);
    check_plan(&checked, &said, context, module, &plan, &layouts[0], &layouts[2]);
    assert_true(checked.ran && checked.agrees && !checked.correct);
    assert_non_null(
        strstr(lilac_text_get(&said), "of lane 2, warp 0, block 0 does not have element (8)"));
    lilac_text_reset(&said);
    plan.price.shuffles++;
    check_plan(&checked, &said, context, module, &plan, &layouts[0], &layouts[1]);
    assert_true(checked.ran && checked.correct && !checked.agrees);
    assert_string_equal(lilac_text_get(&said), "shuffles: 2 planned, 1 simulated\n");
    lilac_text_clear(&said);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(check_finds_mistakes),
                                       cmocka_unit_test(random_pairs)};
    return cmocka_run_group_tests_name("conversions", tests, NULL, NULL);
}
