/* The plan from one distributed layout to another.
 *
 *   pair      what is refused; both layouts made alike, registers without copies (pair.c)
 *   in place  every element is in its thread already: registers are renamed, or nothing is done
 *   shuffles  every element is in its warp: one exchange                    (shuffle_init)
 *   trip      stores, a barrier, loads                                      (trip_init)
 *   mixture   where the trip is far from its floor: registers and lanes are exchanged before it or
 *             after it, so that both sides have wider vectors or whole words. Many are priced
 *             (mixture.c), the cheapest is made
 *
 * Whichever of these has the least cycles is the plan. All of them stand between the renaming that
 * drops the source's copies and the one that makes the target's; neighbouring renamings become one
 * and those that change nothing go.
 */
#include "plan.h"

#include <string.h>

/* ---- renamings -------------------------------------------------------------------------- */

static uint64_t rename_register(const lilac_plan_permutation *renaming, uint64_t reg) {
    uint64_t from = 0;
    for (; reg != 0; reg &= reg - 1) {
        from ^= renaming->from[__builtin_ctzll(reg)];
    }
    return from;
}

/* First `first`, then `then`. */
static void join_renamings(lilac_plan_permutation *result, const lilac_plan_permutation *first,
                           const lilac_plan_permutation *then) {
    lilac_plan_permutation joined = {.before_bits = first->before_bits, .bits = then->bits};
    for (uint32_t i = 0; i < then->bits; i++) {
        joined.from[i] = rename_register(first, then->from[i]);
    }
    *result = joined;
}

static bool renaming_is_identity(const lilac_plan_permutation *renaming) {
    bool identity = renaming->bits == renaming->before_bits;
    for (uint32_t i = 0; i < renaming->bits; i++) {
        identity = identity && renaming->from[i] == UINT64_C(1) << i;
    }
    return identity;
}

/* ---- putting a plan together ------------------------------------------------------------ */

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
                            const lilac_plan_permutation *renaming) {
    lilac_plan_price price = {0};
    lilac_plan_price_permutation(&price, renaming, plan->element_bits, 1);
    return price.permutes + price.packs;
}

/* What two steps take in one warp, of all kinds of instructions alike. */
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

/* A renaming that permutes bytes next to a shuffle becomes part of its map at that end, when that
 * takes no more: a permute that selects is one. */
static bool join_to_shuffle(const lilac_plan_conversion *plan, lilac_plan_shuffle *shuffle,
                            const lilac_plan_permutation *renaming, bool before) {
    const uint64_t permutes = permutes_of(plan, renaming);
    lilac_plan_shuffle joined = *shuffle;
    if (permutes == 0) {
        return false;
    }
    if (before) {
        const uint64_t there = (UINT64_C(1) << renaming->bits) - 1;
        joined.before_bits = renaming->before_bits;
        for (uint32_t i = 0; i < shuffle->register_bits; i++) {
            joined.kept[i] = combined(renaming->from, shuffle->kept[i] & there);
            if (shuffle->kept[i] >> renaming->bits != 0) { /* a place that holds nothing */
                joined.kept[i] = shuffle->kept[i];
            }
        }
        for (uint32_t i = 0; i < shuffle->lane_bits + shuffle->warp_bits; i++) {
            joined.before[i] = combined(renaming->from, shuffle->before[i]);
        }
    } else {
        joined.after_bits = renaming->bits;
        for (uint32_t i = 0; i < renaming->bits; i++) {
            joined.taken[i] = combined(shuffle->taken, renaming->from[i]);
        }
    }
    if (operations_of(plan, &joined) > operations_of(plan, shuffle) + permutes) {
        return false;
    }
    *shuffle = joined;
    return true;
}

/* Two renamings are one, but where copies within words make it cheaper to drop those first. */
static void add_renaming(lilac_plan_conversion *plan, const lilac_plan_permutation *renaming) {
    enum { WORD_BITS = 32 };
    const uint32_t last = plan->step_count - 1; /* there is one in the first case only */
    if (renaming_is_identity(renaming)) {
        return;
    }
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_RENAMING) {
        lilac_plan_permutation *before = &plan->renaming[plan->step[last].index], joined;
        join_renamings(&joined, before, renaming);
        const bool apart =
            plan->step_count == 1 && plan->element_bits < WORD_BITS &&
            before->bits < before->before_bits &&
            permutes_of(plan, before) + permutes_of(plan, renaming) < permutes_of(plan, &joined);
        if (!apart) {
            *before = joined;
            plan->step_count -= renaming_is_identity(before);
            return;
        }
    }
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_SHUFFLE &&
        join_to_shuffle(plan, &plan->shuffle[plan->step[last].index], renaming, false)) {
        return;
    }
    plan->renaming[new_step(plan, LILAC_PLAN_STEP_RENAMING)] = *renaming;
}

static void start_plan(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    memset(plan, 0, sizeof *plan);
    plan->arch = pair->arch;
    plan->element_bits = pair->element_bits;
    plan->register_bits = pair->whole_source.in[REGISTER].bits;
    plan->lane_bits = pair->bits[LANE];
    plan->warp_bits = pair->bits[WARP];
    plan->block_bits = pair->bits[BLOCK];
    plan->target_register_bits = pair->whole_target.in[REGISTER].bits;
    plan->bound.met = true;
}

static void put_shuffle(lilac_plan_conversion *plan, const lilac_plan_shuffle *shuffle) {
    const uint32_t last = plan->step_count - 1;
    lilac_plan_shuffle joined = *shuffle;
    if (plan->step_count != 0 && plan->step[last].kind == LILAC_PLAN_STEP_RENAMING &&
        join_to_shuffle(plan, &joined, &plan->renaming[plan->step[last].index], true)) {
        plan->step_count--;
    }
    plan->shuffle[new_step(plan, LILAC_PLAN_STEP_SHUFFLE)] = joined;
}

/* One exchange from layout to layout along the chain, from its end; `cycles` of one warp. */
typedef struct exchanges {
    uint32_t count;
    lilac_plan_shuffle shuffle[LILAC_PLAN_MAX_SHUFFLES];
    lilac_plan_permutation before[LILAC_PLAN_MAX_SHUFFLES], after[LILAC_PLAN_MAX_SHUFFLES];
    uint64_t cycles;
} exchanges;

static bool find_exchanges(exchanges *result, const lilac_plan_conversion *plan,
                           const lilac_layout *from, const lilac_layout *chain, uint32_t count,
                           lilac_reason *why) {
    lilac_plan_price price = {0};
    result->count = count;
    for (uint32_t i = 0; i < count; i++) {
        if (!lilac_plan_shuffle_init(&result->shuffle[i], &result->before[i], &result->after[i],
                                     i + 1 == count ? from : &chain[i + 1], &chain[i],
                                     plan->element_bits, plan->arch, why)) {
            return false;
        }
        lilac_plan_price_shuffle(&price, &result->shuffle[i], plan->element_bits, 1);
    }
    result->cycles = lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, plan->arch) +
                     (count - 1) * plan->arch->costs->shuffle_latency;
    return true;
}

/* Whether m exchanges of one bit, 1.5 selects and half a shuffle a word each, may be worth finding:
 * they take less than all at once, and less than a trip at its floor. */
static bool may_be_apart(const lilac_plan_conversion *plan, const lilac_layout *to,
                         const exchanges *together, uint32_t m) {
    const lilac_costs *costs = plan->arch->costs;
    const uint64_t words = lilac_plan_words(to->in[REGISTER].bits, plan->element_bits);
    const lilac_plan_price price = {.selects = m * words * 3 / 2, .shuffles = m * words / 2};
    const uint64_t cycles = lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, plan->arch) +
                            (m - 1) * costs->shuffle_latency;
    const uint64_t trip =
        2 * (words * costs->wavefront + costs->barrier_block) + costs->trip_latency;
    return cycles < together->cycles && cycles < trip;
}

/* All at once, or one register bit after another: fewer selects and more shuffles. */
static bool add_shuffle(lilac_plan_conversion *plan, const lilac_layout *from,
                        const lilac_layout *to, lilac_reason *why) {
    enum { MOST = LILAC_PLAN_MAX_SHUFFLES };
    lilac_layout chain[MOST];
    exchanges together, apart;
    const exchanges *best = &together;
    uint32_t count = 1, m;
    chain[0] = *to;
    if (!find_exchanges(&together, plan, from, chain, 1, why)) {
        return false;
    }
    while (count < MOST &&
           (m = lilac_plan_split_exchange(&chain[count], from, &chain[count - 1])) != 0 &&
           (count > 1 || may_be_apart(plan, to, &together, m))) {
        count++;
    }
    if (count > 1 && find_exchanges(&apart, plan, from, chain, count, NULL) &&
        apart.cycles < together.cycles) {
        best = &apart;
    }
    for (uint32_t i = best->count; i-- > 0;) {
        add_renaming(plan, &best->before[i]);
        put_shuffle(plan, &best->shuffle[i]);
        add_renaming(plan, &best->after[i]);
    }
    return true;
}

static bool add_trip(lilac_plan_conversion *plan, const lilac_layout *from, const lilac_layout *to,
                     const lilac_plan_options *options, lilac_reason *why) {
    lilac_plan_permutation before, after;
    if (!lilac_plan_trip_init(&plan->trip, &before, &after, &plan->bound, from, to,
                              plan->element_bits, options, plan->arch, why)) {
        return false;
    }
    add_renaming(plan, &before);
    (void)new_step(plan, LILAC_PLAN_STEP_TRIP);
    add_renaming(plan, &after);
    return true;
}

/* Kind and price, once all steps are there. */
static void finish_plan(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    const uint32_t warps = 1U << plan->warp_bits;
    plan->kind = plan->step_count == 0 ? LILAC_PLAN_NONE : LILAC_PLAN_REGISTERS;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const uint32_t index = plan->step[i].index;
        switch (plan->step[i].kind) {
        case LILAC_PLAN_STEP_RENAMING:
            lilac_plan_price_permutation(&plan->price, &plan->renaming[index], plan->element_bits,
                                         warps);
            break;
        case LILAC_PLAN_STEP_SHUFFLE:
            lilac_plan_price_shuffle(&plan->price, &plan->shuffle[index], plan->element_bits,
                                     warps);
            if (plan->kind == LILAC_PLAN_REGISTERS) {
                plan->kind = LILAC_PLAN_SHUFFLES;
            }
            break;
        case LILAC_PLAN_STEP_TRIP:
            lilac_plan_price_trip(&plan->price, &plan->trip, plan->element_bits, warps);
            plan->kind = plan->trip.remote ? LILAC_PLAN_CLUSTER : LILAC_PLAN_SHARED;
            break;
        }
    }
    plan->price.cycles = lilac_plan_price_cycles(&plan->price, plan->trip.barrier, plan->arch);
    if (plan->bound.floor_wavefronts == 0) {
        plan->bound.floor_wavefronts = lilac_plan_floor(pair);
    }
}

/* ---- the ways --------------------------------------------------------------------------- */

/* Every element is in the thread that wants it: lanes, warps and blocks have the same columns, and
 * the target's registers are sums of the source's. Of copies one is taken, so that words that are
 * alike are made once. */
static bool plan_in_place(lilac_plan_conversion *plan, const lilac_plan_pair *pair) {
    const lilac_layout *source = &pair->whole_source, *target = &pair->whole_target;
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
        lilac_plan_permutation renaming = {.before_bits = kept, .bits = target_bits};
        lilac_f2_basis registers;
        lilac_f2_basis_init(&registers);
        for (uint32_t i = 0; i < kept; i++) {
            (void)lilac_f2_basis_add(&registers, pair->source.columns[i], UINT64_C(1) << i);
        }
        for (uint32_t i = 0; i < target_bits; i++) {
            if (lilac_f2_basis_reduce(&registers, target->columns[i], &renaming.from[i]) != 0) {
                return false;
            }
        }
        add_renaming(plan, &pair->pick);
        add_renaming(plan, &renaming);
    }
    finish_plan(plan, pair);
    return true;
}

/* At most a permute a word: nothing else takes less. */
static bool is_cheap(const lilac_plan_conversion *plan) {
    const uint64_t words = lilac_plan_words(plan->target_register_bits, plan->element_bits);
    return plan->price.permutes + plan->price.packs <= words << plan->warp_bits;
}

static bool plan_shuffles(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                          lilac_reason *why) {
    start_plan(plan, pair);
    add_renaming(plan, &pair->pick);
    if (!add_shuffle(plan, &pair->source, &pair->target, why)) {
        return false;
    }
    add_renaming(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

static bool plan_trip(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                      const lilac_plan_options *options, lilac_reason *why) {
    start_plan(plan, pair);
    add_renaming(plan, &pair->pick);
    if (!add_trip(plan, &pair->source, &pair->target, options, why)) {
        return false;
    }
    add_renaming(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

void lilac_plan_swap_columns(lilac_layout *layout, const lilac_plan_hybrid *mixture) {
    const uint32_t lanes = layout->in[REGISTER].bits;
    for (uint32_t i = 0; i < mixture->swaps; i++) {
        const uint64_t column = layout->columns[mixture->reg[i]];
        layout->columns[mixture->reg[i]] = layout->columns[lanes + mixture->lane[i]];
        layout->columns[lanes + mixture->lane[i]] = column;
    }
}

/* The layout that a renaming makes of one. */
static void rename_layout(lilac_layout *layout, const lilac_plan_permutation *renaming) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    const uint32_t old = layout->in[REGISTER].bits, others = layout->in_bits - old;
    for (uint32_t i = 0; i < renaming->bits; i++) {
        columns[i] = 0;
        for (uint64_t from = renaming->from[i]; from != 0; from &= from - 1) {
            columns[i] ^= layout->columns[__builtin_ctzll(from)];
        }
    }
    memcpy(columns + renaming->bits, layout->columns + old, others * sizeof columns[0]);
    layout->in[REGISTER].bits = (uint8_t)renaming->bits;
    layout->in_bits = (uint8_t)(renaming->bits + others);
    memcpy(layout->columns, columns, layout->in_bits * sizeof columns[0]);
}

/* A renaming that gives back what was there before one that leaves nothing out. */
static void invert_renaming(lilac_plan_permutation *result,
                            const lilac_plan_permutation *renaming) {
    lilac_f2_basis columns;
    lilac_f2_basis_init(&columns);
    for (uint32_t i = 0; i < renaming->bits; i++) {
        (void)lilac_f2_basis_add(&columns, renaming->from[i], UINT64_C(1) << i);
    }
    result->before_bits = renaming->bits;
    result->bits = renaming->before_bits;
    for (uint32_t i = 0; i < result->bits; i++) {
        (void)lilac_f2_basis_reduce(&columns, UINT64_C(1) << i, &result->from[i]);
    }
}

/* The order that the trip wants its registers in is left to the shuffle, whose selects and byte
 * permutes do part of it on the way. */
static bool plan_mixture(lilac_plan_conversion *plan, const lilac_plan_pair *pair,
                         const lilac_plan_options *options, const lilac_plan_hybrid *mixture) {
    lilac_layout between = mixture->after ? pair->target : pair->source;
    lilac_plan_permutation before, after, order;
    lilac_plan_swap_columns(&between, mixture);
    start_plan(plan, pair);
    if (!lilac_plan_trip_init(&plan->trip, &before, &after, &plan->bound,
                              mixture->after ? &pair->source : &between,
                              mixture->after ? &between : &pair->target, plan->element_bits,
                              options, plan->arch, NULL)) {
        return false;
    }
    add_renaming(plan, &pair->pick);
    if (mixture->after) {
        invert_renaming(&order, &after);
        rename_layout(&between, &order);
        add_renaming(plan, &before);
        (void)new_step(plan, LILAC_PLAN_STEP_TRIP);
        if (!add_shuffle(plan, &between, &pair->target, NULL)) {
            return false;
        }
    } else {
        rename_layout(&between, &before);
        if (!add_shuffle(plan, &pair->source, &between, NULL)) {
            return false;
        }
        (void)new_step(plan, LILAC_PLAN_STEP_TRIP);
        add_renaming(plan, &after);
    }
    add_renaming(plan, &pair->spread);
    finish_plan(plan, pair);
    return true;
}

/* Whether row-major memory may be cheaper than a trip: not than one that takes the least. Where a
 * trip's words are not a layout's own registers, or blocks hold copies, it now and then is. */
static bool may_be_cheaper(const lilac_plan_conversion *trip) {
    const lilac_plan_price least = {.stores = 1,
                                    .store_wavefronts = trip->bound.store_wavefronts,
                                    .load_wavefronts = trip->bound.load_wavefronts,
                                    .barriers = trip->price.barriers};
    return lilac_plan_price_cycles(&least, trip->trip.barrier, trip->arch) < trip->price.cycles;
}

/* The cheaper of the best so far and another, which may be missing. */
static lilac_plan_conversion *cheaper(lilac_plan_conversion *best, lilac_plan_conversion *other) {
    return best == NULL || other->price.cycles < best->price.cycles ? other : best;
}

static lilac_plan_conversion *spare(lilac_plan_conversion *plans,
                                    const lilac_plan_conversion *best) {
    return best == &plans[0] ? &plans[1] : &plans[0];
}

bool lilac_plan_conversion_init(lilac_plan_conversion *result, const lilac_layout *source,
                                const lilac_layout *target, uint32_t element_bits,
                                const lilac_plan_options *options, const lilac_arch *arch,
                                lilac_reason *why) {
    const lilac_plan_options wanted = options != NULL ? *options : (lilac_plan_options){0};
    const bool any = wanted.way == LILAC_PLAN_ANY;
    lilac_plan_pair pair;
    lilac_plan_conversion plans[2], *best = NULL;
    if (!lilac_plan_pair_init(&pair, source, target, element_bits, arch, why)) {
        return false;
    }
    if (any || wanted.way == LILAC_PLAN_BY_SHUFFLES) {
        if (plan_in_place(&plans[0], &pair)) {
            best = &plans[0];
            if (is_cheap(best)) {
                *result = *best;
                return true;
            }
        }
        lilac_plan_conversion *shuffles = spare(plans, best);
        if (plan_shuffles(shuffles, &pair, why)) {
            if (best != NULL) {
                shuffles->kind = LILAC_PLAN_REGISTERS;
            }
            best = cheaper(best, shuffles);
        }
    }
    uint64_t trip_cycles = 0; /* at least */
    if (any) {
        lilac_plan_hybrid mixture;
        trip_cycles = lilac_plan_find_hybrid(&mixture, &pair, &wanted,
                                             best == NULL ? UINT64_MAX : best->price.cycles);
        lilac_plan_conversion *mixed = spare(plans, best);
        if (mixture.swaps != 0 && plan_mixture(mixed, &pair, &wanted, &mixture)) {
            best = cheaper(best, mixed);
        }
    }
    if (wanted.way != LILAC_PLAN_BY_SHUFFLES &&
        (best == NULL || trip_cycles == 0 || trip_cycles < best->price.cycles)) {
        lilac_plan_conversion *trip = spare(plans, best);
        if (plan_trip(trip, &pair, &wanted, why)) {
            best = cheaper(best, trip);
            lilac_plan_options plain = wanted;
            plain.way = LILAC_PLAN_UNSWIZZLED;
            if (best == trip && may_be_cheaper(trip) &&
                plan_trip(spare(plans, best), &pair, &plain, NULL)) {
                lilac_plan_bound *bound = &spare(plans, best)->bound;
                bound->by_price = !bound->met && (trip->bound.met || trip->bound.by_price);
                best = cheaper(best, spare(plans, best));
            }
        }
    }
    if (best == NULL) {
        return false;
    }
    *result = *best;
    return true;
}
