/* The plan from one distributed layout to another.
 *
 *   pair       refuses, and brings both layouts to one form without copies among registers (pair.c)
 *   in place   every element is in its thread already: a register permutation, or no step at all
 *   shuffles   every element is in its warp: exchanges within warps      (lilac_plan_shuffle_init)
 *   staging    stores, a barrier, loads                                  (lilac_plan_staging_init)
 *   hybrid     If the shared-memory exchange is far from its floor, registers and lanes are
 *              exchanged before or after it, so that both sides have wider vectors or whole words.
 *              Many such plans are priced (hybrid.c) and the cheapest is constructed.
 *
 * The plan is the one with the fewest cycles. Each plan begins with the permutation that drops the
 * source's copies and ends with the one that adds the target's. Adjacent permutations are composed,
 * and identities are removed.
 */
#include "plan.h"

#include <string.h>

/* ---- register permutations ----------------------------------------------------------------- */

static uint64_t permuted_register(const lilac_plan_permutation *permutation, uint64_t reg) {
    uint64_t from = 0;
    for (; reg != 0; reg &= reg - 1) {
        from ^= permutation->from[__builtin_ctzll(reg)];
    }
    return from;
}

/* `first`, followed by `then`. */
static void compose_permutations(lilac_plan_permutation *result,
                                 const lilac_plan_permutation *first,
                                 const lilac_plan_permutation *then) {
    lilac_plan_permutation joined = {.before_bits = first->before_bits, .bits = then->bits};
    for (uint32_t i = 0; i < then->bits; i++) {
        joined.from[i] = permuted_register(first, then->from[i]);
    }
    *result = joined;
}

static bool is_identity(const lilac_plan_permutation *permutation) {
    bool identity = permutation->bits == permutation->before_bits;
    for (uint32_t i = 0; i < permutation->bits; i++) {
        identity = identity && permutation->from[i] == UINT64_C(1) << i;
    }
    return identity;
}

/* ---- construction of a plan ---------------------------------------------------------------- */

static uint32_t new_step(lilac_plan_conversion *plan, lilac_plan_step_kind kind) {
    uint32_t index = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        index += plan->step[i].kind == kind;
    }
    plan->step[plan->step_count].kind = kind;
    plan->step[plan->step_count++].index = index;
    return index;
}

static uint64_t permutes_of(const lilac_plan_conversion *plan,
                            const lilac_plan_permutation *permutation) {
    lilac_plan_price price = {0};
    lilac_plan_price_permutation(&price, permutation, plan->element_bits, 1);
    return price.permutes + price.packs;
}

/* The number of operations of a shuffle in one warp. */
static uint64_t operations_of(const lilac_plan_conversion *plan,
                              const lilac_plan_shuffle *shuffle) {
    lilac_plan_price price = {0};
    lilac_plan_price_shuffle(&price, shuffle, plan->element_bits, 1);
    return price.shuffles + price.selects + price.permutes;
}

static uint64_t combined(const uint64_t *columns, uint64_t mask) {
    uint64_t sum = 0;
    for (; mask != 0; mask &= mask - 1) {
        sum ^= columns[__builtin_ctzll(mask)];
    }
    return sum;
}

/* Merges a permutation that needs byte permutes into the map of the adjacent shuffle, unless that
 * needs more operations: a byte permute can select at the same time. */
static bool join_to_shuffle(const lilac_plan_conversion *plan, lilac_plan_shuffle *shuffle,
                            const lilac_plan_permutation *permutation, bool before) {
    const uint64_t permutes = permutes_of(plan, permutation);
    lilac_plan_shuffle joined = *shuffle;
    if (permutes == 0) {
        return false;
    }
    if (before) {
        const uint64_t there = (UINT64_C(1) << permutation->bits) - 1;
        joined.before_bits = permutation->before_bits;
        for (uint32_t i = 0; i < shuffle->register_bits; i++) {
            joined.kept[i] = combined(permutation->from, shuffle->kept[i] & there);
            if (shuffle->kept[i] >> permutation->bits != 0) { /* a place without an element */
                joined.kept[i] = shuffle->kept[i];
            }
        }
        for (uint32_t i = 0; i < shuffle->lane_bits + shuffle->warp_bits; i++) {
            joined.before[i] = combined(permutation->from, shuffle->before[i]);
        }
    } else {
        joined.after_bits = permutation->bits;
        for (uint32_t i = 0; i < permutation->bits; i++) {
            joined.taken[i] = combined(shuffle->taken, permutation->from[i]);
        }
    }
    if (operations_of(plan, &joined) > operations_of(plan, shuffle) + permutes) {
        return false;
    }
    *shuffle = joined;
    return true;
}

/* Appends a permutation. It is composed with a preceding permutation, except where a separate step
 * that first drops the copies within words is cheaper. */
static void add_permutation(lilac_plan_conversion *plan,
                            const lilac_plan_permutation *permutation) {
    enum { WORD_BITS = 32 };
    const uint32_t last = plan->step_count - 1; /* used only if there is a step */
    if (is_identity(permutation)) {
        return;
    }
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_PERMUTATION) {
        lilac_plan_permutation *before = &plan->permutation[plan->step[last].index], joined;
        compose_permutations(&joined, before, permutation);
        const bool separate =
            plan->step_count == 1 && plan->element_bits < WORD_BITS &&
            before->bits < before->before_bits &&
            permutes_of(plan, before) + permutes_of(plan, permutation) < permutes_of(plan, &joined);
        if (!separate) {
            *before = joined;
            plan->step_count -= is_identity(before);
            return;
        }
    }
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_SHUFFLE &&
        join_to_shuffle(plan, &plan->shuffle[plan->step[last].index], permutation, false)) {
        return;
    }
    plan->permutation[new_step(plan, LILAC_PLAN_STEP_PERMUTATION)] = *permutation;
}

static void start_plan(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    memset(plan, 0, sizeof *plan);
    plan->arch = pair->arch;
    plan->element_bits = pair->element_bits;
    plan->register_bits = pair->full_source.in[REGISTER].bits;
    plan->lane_bits = pair->bits[LANE];
    plan->warp_bits = pair->bits[WARP];
    plan->block_bits = pair->bits[BLOCK];
    plan->target_register_bits = pair->full_target.in[REGISTER].bits;
    plan->bound.met = true;
}

static void put_shuffle(lilac_plan_conversion *plan, const lilac_plan_shuffle *shuffle) {
    const uint32_t last = plan->step_count - 1;
    lilac_plan_shuffle joined = *shuffle;
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_PERMUTATION &&
        join_to_shuffle(plan, &joined, &plan->permutation[plan->step[last].index], true)) {
        plan->step_count--;
    }
    plan->shuffle[new_step(plan, LILAC_PLAN_STEP_SHUFFLE)] = joined;
}

/* A sequence of exchanges through the layouts of a chain, last exchange first. `cycles` is for one
 * warp. */
typedef struct exchanges {
    uint32_t count;
    lilac_plan_shuffle shuffle[LILAC_PLAN_MAX_SHUFFLES];
    uint64_t cycles;
} exchanges;

static bool find_exchanges(exchanges *result, const lilac_plan_conversion *plan,
                           const lilac_layout *from, const lilac_layout *chain, uint32_t count,
                           lilac_reason *why) {
    lilac_plan_price price = {0};
    result->count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!lilac_plan_shuffle_init(&result->shuffle[i], i + 1 == count ? from : &chain[i + 1],
                                     &chain[i], plan->element_bits, plan->arch, why)) {
            return false;
        }
        lilac_plan_price_shuffle(&price, &result->shuffle[i], plan->element_bits, 1);
    }
    result->cycles = lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, plan->arch) +
                     (count - 1) * plan->arch->costs->shuffle_latency;
    return true;
}

/* Whether m exchanges of one bit may be cheaper than one exchange of m bits and than a
 * shared-memory exchange at its floor. An exchange of one bit takes 1.5 selects and half a shuffle
 * per word. */
static bool split_may_be_cheaper(const lilac_plan_conversion *plan, const lilac_layout *to,
                                 const exchanges *together, uint32_t m) {
    const lilac_costs *costs = plan->arch->costs;
    const uint64_t words = lilac_plan_words(to->in[REGISTER].bits, plan->element_bits);
    const lilac_plan_price price = {.selects = m * words * 3 / 2, .shuffles = m * words / 2};
    const uint64_t cycles = lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, plan->arch) +
                            (m - 1) * costs->shuffle_latency;
    const uint64_t staging =
        2 * (words * costs->wavefront + costs->barrier_block) + costs->staging_latency;
    return cycles < together->cycles && cycles < staging;
}

/* Adds one exchange of all bits, or one exchange per register bit: fewer selects, more shuffles. */
static bool add_shuffle(lilac_plan_conversion *plan, const lilac_layout *from,
                        const lilac_layout *to, lilac_reason *why) {
    enum { MOST = LILAC_PLAN_MAX_SHUFFLES };
    lilac_layout chain[MOST];
    exchanges together, separate;
    const exchanges *best = &together;
    uint32_t count = 1, m;
    chain[0] = *to;
    if (!find_exchanges(&together, plan, from, chain, 1, why)) {
        return false;
    }
    while (count < MOST &&
           (m = lilac_plan_split_exchange(&chain[count], from, &chain[count - 1])) != 0 &&
           (count > 1 || split_may_be_cheaper(plan, to, &together, m))) {
        count++;
    }
    if (count > 1 && find_exchanges(&separate, plan, from, chain, count, NULL) &&
        separate.cycles < together.cycles) {
        best = &separate;
    }
    for (uint32_t i = best->count; i-- > 0;) {
        put_shuffle(plan, &best->shuffle[i]);
    }
    return true;
}

static bool add_staging(lilac_plan_conversion *plan, const lilac_layout *from,
                        const lilac_layout *to, const lilac_plan_options *options,
                        lilac_reason *why) {
    lilac_plan_staging_step step;
    if (!lilac_plan_staging_init(&step, from, to, plan->element_bits, options, plan->arch, why)) {
        return false;
    }
    plan->staging = step.staging;
    plan->bound = step.bound;
    add_permutation(plan, &step.before);
    (void)new_step(plan, LILAC_PLAN_STEP_STAGING);
    add_permutation(plan, &step.after);
    return true;
}

/* Sets kind and price after all steps have been added. */
static void finish_plan(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    const uint32_t warps = 1U << plan->warp_bits;
    plan->kind = plan->step_count == 0 ? LILAC_PLAN_NONE : LILAC_PLAN_REGISTERS;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const uint32_t index = plan->step[i].index;
        switch (plan->step[i].kind) {
        case LILAC_PLAN_STEP_PERMUTATION:
            lilac_plan_price_permutation(&plan->price, &plan->permutation[index],
                                         plan->element_bits, warps);
            break;
        case LILAC_PLAN_STEP_SHUFFLE:
            lilac_plan_price_shuffle(&plan->price, &plan->shuffle[index], plan->element_bits,
                                     warps);
            if (plan->kind == LILAC_PLAN_REGISTERS) {
                plan->kind = LILAC_PLAN_SHUFFLES;
            }
            break;
        case LILAC_PLAN_STEP_STAGING:
            lilac_plan_price_staging(&plan->price, &plan->staging, plan->element_bits, warps);
            plan->kind = plan->staging.remote ? LILAC_PLAN_CLUSTER : LILAC_PLAN_SHARED;
            break;
        }
    }
    plan->price.cycles = lilac_plan_price_cycles(&plan->price, plan->staging.barrier, plan->arch);
    if (plan->bound.floor_wavefronts == 0) {
        plan->bound.floor_wavefronts = lilac_plan_floor(pair);
    }
}

/* ---- strategies ---------------------------------------------------------------------------- */

/* Plans a conversion in which every element stays in its thread: lanes, warps and blocks have the
 * same columns, and the target's registers are sums of the source's. Only one of several copies is
 * used, so that equal words are computed once. */
static bool plan_in_place(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    const lilac_layout *source = &pair->full_source, *target = &pair->full_target;
    const uint32_t bits = source->in[REGISTER].bits, target_bits = target->in[REGISTER].bits;
    const uint32_t others = source->in_bits - bits;
    if (memcmp(source->columns + bits, target->columns + target_bits,
               others * sizeof source->columns[0]) != 0) {
        return false;
    }
    start_plan(plan, pair);
    if (bits != target_bits ||
        memcmp(source->columns, target->columns, bits * sizeof source->columns[0]) != 0) {
        const uint32_t kept = pair->source.in[REGISTER].bits;
        lilac_plan_permutation permutation = {.before_bits = kept, .bits = target_bits};
        lilac_f2_basis registers;
        lilac_f2_basis_init(&registers);
        for (uint32_t i = 0; i < kept; i++) {
            (void)lilac_f2_basis_add(&registers, pair->source.columns[i], UINT64_C(1) << i);
        }
        for (uint32_t i = 0; i < target_bits; i++) {
            if (lilac_f2_basis_reduce(&registers, target->columns[i], &permutation.from[i]) != 0) {
                return false;
            }
        }
        add_permutation(plan, &pair->pick);
        add_permutation(plan, &permutation);
    }
    finish_plan(plan, pair);
    return true;
}

/* At most one byte permute per word: no other strategy is cheaper. */
static bool is_cheap(const lilac_plan_conversion *plan) {
    const uint64_t words = lilac_plan_words(plan->target_register_bits, plan->element_bits);
    return plan->price.permutes + plan->price.packs <= words << plan->warp_bits;
}

static bool plan_shuffles(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                          lilac_reason *why) {
    start_plan(plan, pair);
    add_permutation(plan, &pair->pick);
    if (!add_shuffle(plan, &pair->source, &pair->target, why)) {
        return false;
    }
    add_permutation(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

static bool plan_staging(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                         const lilac_plan_options *options, lilac_reason *why) {
    start_plan(plan, pair);
    add_permutation(plan, &pair->pick);
    if (!add_staging(plan, &pair->source, &pair->target, options, why)) {
        return false;
    }
    add_permutation(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

void lilac_plan_swap_columns(lilac_layout *layout, const lilac_plan_hybrid *hybrid) {
    const uint32_t lanes = layout->in[REGISTER].bits;
    for (uint32_t i = 0; i < hybrid->swaps; i++) {
        const uint64_t column = layout->columns[hybrid->reg[i]];
        layout->columns[hybrid->reg[i]] = layout->columns[lanes + hybrid->lane[i]];
        layout->columns[lanes + hybrid->lane[i]] = column;
    }
}

/* Applies a permutation to the registers of a layout. */
static void permute_layout(lilac_layout *layout, const lilac_plan_permutation *permutation) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t old = layout->in[REGISTER].bits, others = layout->in_bits - old;
    for (uint32_t i = 0; i < permutation->bits; i++) {
        columns[i] = 0;
        for (uint64_t from = permutation->from[i]; from != 0; from &= from - 1) {
            columns[i] ^= layout->columns[__builtin_ctzll(from)];
        }
    }
    memcpy(columns + permutation->bits, layout->columns + old, others * sizeof columns[0]);
    layout->in[REGISTER].bits = (uint8_t)permutation->bits;
    layout->in_bits = (uint8_t)(permutation->bits + others);
    memcpy(layout->columns, columns, layout->in_bits * sizeof columns[0]);
}

/* The inverse of a permutation that drops no register. */
static void invert_permutation(lilac_plan_permutation *result,
                               const lilac_plan_permutation *permutation) {
    lilac_f2_basis columns;
    lilac_f2_basis_init(&columns);
    for (uint32_t i = 0; i < permutation->bits; i++) {
        (void)lilac_f2_basis_add(&columns, permutation->from[i], UINT64_C(1) << i);
    }
    result->before_bits = permutation->bits;
    result->bits = permutation->before_bits;
    for (uint32_t i = 0; i < result->bits; i++) {
        (void)lilac_f2_basis_reduce(&columns, UINT64_C(1) << i, &result->from[i]);
    }
}

/* The permutation between the shuffle and the shared-memory exchange is left to the shuffle, whose
 * selects and byte permutes implement a part of it. */
static bool plan_hybrid(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                        const lilac_plan_options *options, const lilac_plan_hybrid *hybrid) {
    lilac_layout between = hybrid->after ? pair->target : pair->source;
    lilac_plan_staging_step step;
    lilac_plan_permutation order;
    lilac_plan_swap_columns(&between, hybrid);
    start_plan(plan, pair);
    if (!lilac_plan_staging_init(&step, hybrid->after ? &pair->source : &between,
                                 hybrid->after ? &between : &pair->target, plan->element_bits,
                                 options, plan->arch, NULL)) {
        return false;
    }
    plan->staging = step.staging;
    plan->bound = step.bound;
    add_permutation(plan, &pair->pick);
    if (hybrid->after) {
        invert_permutation(&order, &step.after);
        permute_layout(&between, &order);
        add_permutation(plan, &step.before);
        (void)new_step(plan, LILAC_PLAN_STEP_STAGING);
        if (!add_shuffle(plan, &between, &pair->target, NULL)) {
            return false;
        }
    } else {
        permute_layout(&between, &step.before);
        if (!add_shuffle(plan, &pair->source, &between, NULL)) {
            return false;
        }
        (void)new_step(plan, LILAC_PLAN_STEP_STAGING);
        add_permutation(plan, &step.after);
    }
    add_permutation(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

/* Whether row-major memory may be cheaper. That is impossible if the plan takes the fewest
 * wavefronts and no permutes. It occurs where words are not a layout's own registers or where
 * blocks hold copies. */
static bool row_major_may_be_cheaper(const lilac_plan_conversion *plan) {
    const lilac_plan_price least = {.stores = 1,
                                    .store_wavefronts = plan->bound.store_wavefronts,
                                    .load_wavefronts = plan->bound.load_wavefronts,
                                    .barriers = plan->price.barriers};
    return lilac_plan_price_cycles(&least, plan->staging.barrier, plan->arch) < plan->price.cycles;
}

/* The search for the cheapest plan. `plans` holds the best plan found and room for a candidate. */
typedef struct search {
    const lilac_plan_pair *pair;
    lilac_plan_options options;
    lilac_plan_conversion plans[2], *best;
} search;

static lilac_plan_conversion *candidate_of(search *s) {
    return s->best == &s->plans[0] ? &s->plans[1] : &s->plans[0];
}

/* Makes the candidate the best plan if it is cheaper; returns whether it is. */
static bool keep_if_cheaper(search *s) {
    lilac_plan_conversion *candidate = candidate_of(s);
    const bool cheaper = s->best == NULL || candidate->price.cycles < s->best->price.cycles;
    s->best = cheaper ? candidate : s->best;
    return cheaper;
}

static void try_shuffles(search *s, lilac_reason *why) {
    const bool in_place = s->best != NULL;
    if (plan_shuffles(candidate_of(s), s->pair, why)) {
        if (in_place) {
            candidate_of(s)->kind = LILAC_PLAN_REGISTERS;
        }
        (void)keep_if_cheaper(s);
    }
}

/* Returns a lower bound of the cycles of an exchange without shuffles, or 0 if it is not known. */
static uint64_t try_hybrid(search *s) {
    lilac_plan_hybrid hybrid;
    const uint64_t cycles = lilac_plan_find_hybrid(
        &hybrid, s->pair, &s->options, s->best == NULL ? UINT64_MAX : s->best->price.cycles);
    if (hybrid.swaps != 0 && plan_hybrid(candidate_of(s), s->pair, &s->options, &hybrid)) {
        (void)keep_if_cheaper(s);
    }
    return cycles;
}

static void try_staging(search *s, lilac_reason *why) {
    if (!plan_staging(candidate_of(s), s->pair, &s->options, why) || !keep_if_cheaper(s) ||
        !row_major_may_be_cheaper(s->best)) {
        return;
    }
    lilac_plan_options row_major = s->options;
    lilac_plan_conversion *candidate = candidate_of(s);
    row_major.strategy = LILAC_PLAN_UNSWIZZLED;
    if (plan_staging(candidate, s->pair, &row_major, NULL)) {
        const lilac_plan_bound *swizzled = &s->best->bound;
        candidate->bound.by_price = !candidate->bound.met && (swizzled->met || swizzled->by_price);
        (void)keep_if_cheaper(s);
    }
}

bool lilac_plan_conversion_init(lilac_plan_conversion *result, const lilac_layout *source,
                                const lilac_layout *target, uint32_t element_bits,
                                const lilac_plan_options *options, const lilac_arch *arch,
                                lilac_reason *why) {
    lilac_plan_pair pair;
    search s;
    uint64_t staging_cycles = 0;
    s.pair = &pair;
    s.options = options != NULL ? *options : (lilac_plan_options){0};
    s.best = NULL;
    if (!lilac_plan_pair_init(&pair, source, target, element_bits, arch, why)) {
        return false;
    }
    const bool any = s.options.strategy == LILAC_PLAN_ANY;
    if (any || s.options.strategy == LILAC_PLAN_BY_SHUFFLES) {
        if (plan_in_place(&s.plans[0], &pair)) {
            s.best = &s.plans[0];
        }
        if (s.best == NULL || !is_cheap(s.best)) {
            try_shuffles(&s, why);
        } else {
            *result = *s.best;
            return true;
        }
    }
    if (any) {
        staging_cycles = try_hybrid(&s);
    }
    if (s.options.strategy != LILAC_PLAN_BY_SHUFFLES &&
        (s.best == NULL || staging_cycles == 0 || staging_cycles < s.best->price.cycles)) {
        try_staging(&s, why);
    }
    if (s.best != NULL) {
        *result = *s.best;
    }
    return s.best != NULL;
}

bool lilac_plan_conversion_init_columns(lilac_plan_conversion *result,
                                        const lilac_layout_columns *source,
                                        const lilac_layout_columns *target, uint32_t element_bits,
                                        const lilac_plan_options *options, const lilac_arch *arch,
                                        lilac_reason *why) {
    lilac_layout layouts[2];
    return lilac_layout_columns_layout(&layouts[0], source, source->distinct, why) &&
           lilac_layout_columns_layout(&layouts[1], target, target->distinct, why) &&
           lilac_plan_conversion_init(result, &layouts[0], &layouts[1], element_bits, options, arch,
                                      why);
}
