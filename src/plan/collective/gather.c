/* The plan of a gather: result[.. i ..] = source[.. index[.. i ..] ..] along an axis.
 *
 * Register r of thread t needs the element at the coordinate
 *
 *     off the axis      given by r and t           (known, linear in r and t)
 *     along the axis    given by the index         (bits of a value)
 *
 * The place of an element is linear in its coordinate too, so it is f(r) xor g(t) xor h(index).
 * There are three strategies. The cheapest is chosen, unless the options select one:
 *
 *   shuffles   The place is a register and a lane of the same warp. One shuffle reads each word that
 *              may contain the element from that lane; a tree of byte permutes selects the word and
 *              the element within it (section 5.5).
 *   warp       The place is in the same warp. Each warp uses its own part of shared memory: stores,
 *              a barrier of the warp, loads.
 *   block      The same with a barrier of the block.
 *
 * A source that is larger than shared memory is stored in rounds, one part at a time. The bits
 * that number the rounds are each of one register of the source. Off the axis they cost nothing
 * where they are of the result's registers as well. */
#include "gather.h"

#include <string.h>

uint64_t lilac_plan_gather_in_round(const lilac_plan_gather *plan, uint64_t coordinate) {
    uint64_t result = 0;
    if (plan->rounds == 0) {
        return coordinate;
    }
    for (uint32_t i = 0, at = 0; i < plan->source.out_bits; i++) {
        if (!(plan->rounds >> i & 1)) {
            result |= (coordinate >> i & 1) << at++;
        }
    }
    return result;
}

uint64_t lilac_plan_gather_off_axis(const lilac_plan_gather *plan,
                                    const lilac_layout_columns *columns, uint64_t coordinate) {
    uint64_t place = 0;
    for (uint32_t d = 0; d < columns->rank; d++) {
        const uint64_t part = lilac_plan_columns_along(columns, d, coordinate);
        place |= d == plan->axis ? 0 : part << plan->source.start[d];
    }
    return place;
}

uint64_t lilac_plan_gather_off_axis_in_round(const lilac_plan_gather *plan,
                                             const lilac_layout_columns *columns,
                                             uint64_t coordinate) {
    return lilac_plan_gather_in_round(plan, lilac_plan_gather_off_axis(plan, columns, coordinate));
}

static uint64_t whole_axis_unit(const lilac_plan_gather *plan, uint32_t bit) {
    return UINT64_C(1) << (plan->source.start[plan->axis] + bit);
}

uint64_t lilac_plan_gather_axis_unit(const lilac_plan_gather *plan, uint32_t bit) {
    return lilac_plan_gather_in_round(plan, whole_axis_unit(plan, bit));
}

uint32_t lilac_plan_gather_round(const lilac_plan_gather *plan, uint64_t coordinate) {
    uint32_t number = 0, at = 0;
    for (uint64_t rounds = plan->rounds; rounds != 0; rounds &= rounds - 1, at++) {
        number |= (uint32_t)(coordinate >> lowest_bit(rounds) & 1) << at;
    }
    return number;
}

/* ---- where elements are ------------------------------------------------------------------- */

/* Computes the place of a coordinate in the registers and lanes of the source, relative to the
 * thread's own lane. False: it is in another warp. */
static bool solve(const lilac_f2_basis *span, uint64_t coordinate, uint64_t *place) {
    return lilac_f2_basis_reduce(span, coordinate, place) == 0;
}

static void find_places(lilac_plan_gather *plan, bool unswizzled) {
    const lilac_layout_columns *source = &plan->source, *result = &plan->result;
    lilac_f2_basis span;
    uint32_t next = 0;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < source->register_bits; i++) {
        if (source->distinct >> i & 1) {
            (void)lilac_f2_basis_add(&span, source->registers[i], UINT64_C(1) << next++);
        }
    }
    for (uint32_t i = 0; i < source->lane_bits; i++) {
        (void)lilac_f2_basis_add(&span, source->threads[i],
                                 UINT64_C(1) << (LILAC_PLAN_LANE_MARK + i));
    }
    plan->by_lanes = true;
    for (uint32_t i = 0; i < result->register_bits; i++) {
        plan->by_lanes &=
            solve(&span, lilac_plan_gather_off_axis(plan, result, result->registers[i]),
                  &plan->of_register[i]);
    }
    for (uint32_t i = 0; i < result->thread_bits; i++) {
        const uint64_t wanted = lilac_plan_gather_off_axis(plan, result, result->threads[i]);
        plan->by_lanes &= solve(&span, wanted ^ source->threads[i], &plan->of_thread[i]);
    }
    for (uint32_t i = 0; i < source->bits[plan->axis]; i++) {
        plan->by_lanes &= solve(&span, whole_axis_unit(plan, i), &plan->of_index[i]);
    }
    const uint64_t warps = low_bits(source->thread_bits) & ~low_bits(source->lane_bits);
    plan->in_warp = plan->by_lanes && (source->free_threads & warps) == 0 && !unswizzled;
}

/* The work per thread: which registers an index may select, and whether elements leave their
 * lane. */
static void find_work(lilac_plan_gather *plan) {
    uint64_t varying = 0, all = 0;
    for (uint32_t i = 0; i < plan->result.thread_bits; i++) {
        varying |= plan->of_thread[i];
    }
    for (uint32_t i = 0; i < plan->source.bits[plan->axis]; i++) {
        varying |= plan->of_index[i];
    }
    all = varying;
    for (uint32_t i = 0; i < plan->result.register_bits; i++) {
        all |= plan->of_register[i];
    }
    plan->varying = plan->by_lanes ? (uint32_t)(varying & low_bits(LILAC_PLAN_LANE_MARK)) : 0;
    plan->work.own = lilac_layout_columns_own(&plan->source);
    plan->work.results = lilac_layout_columns_own(&plan->result);
    plan->work.varying_bits = (uint32_t)__builtin_popcount(plan->varying);
    plan->work.moves = plan->by_lanes && all >> LILAC_PLAN_LANE_MARK != 0;
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* The register of the source that alone has this bit of the coordinate, and no other bit; -1: there
 * is none. */
static int register_of(const lilac_plan_gather *plan, uint32_t bit) {
    const lilac_layout_columns *source = &plan->source;
    int found = -1;
    for (uint32_t i = 0; i < source->thread_bits; i++) {
        if (source->threads[i] >> bit & 1) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < source->register_bits; i++) {
        if (!(source->distinct >> i & 1) || !(source->registers[i] >> bit & 1)) {
            continue;
        }
        if (found >= 0 || source->registers[i] != UINT64_C(1) << bit) {
            return -1;
        }
        found = (int)i;
    }
    return found;
}

/* The cost of a bit that numbers the rounds: 0 where each register of the result needs one round, 1
 * where that differs between threads, 2 where the index selects the round. */
static int round_cost(const lilac_plan_gather *plan, uint32_t bit) {
    const uint64_t start = plan->source.start[plan->axis];
    if (bit >= start && bit < start + plan->source.bits[plan->axis]) {
        return 2;
    }
    for (uint32_t i = 0; i < plan->result.thread_bits; i++) {
        if (lilac_plan_gather_off_axis(plan, &plan->result, plan->result.threads[i]) >> bit & 1) {
            return 1;
        }
    }
    return 0;
}

/* The bits that number the rounds, so that one needs at most `most` bytes; 0: there are too few. */
static uint64_t choose_rounds(const lilac_plan_gather *plan, uint64_t bytes, uint64_t most) {
    uint64_t rounds = 0;
    for (int cost = 0; cost < 3; cost++) {
        for (uint32_t bit = plan->source.out_bits; bit-- > 0 && bytes > most;) {
            if (round_cost(plan, bit) == cost && register_of(plan, bit) >= 0) {
                rounds |= UINT64_C(1) << bit;
                bytes /= 2;
            }
        }
    }
    return bytes > most ? 0 : rounds;
}

/* Fills in the rounds of elements. Returns the bits of a round's number that differ with the thread
 * or the index. */
static uint32_t find_rounds(lilac_plan_gather *plan) {
    const lilac_layout_columns *result = &plan->result;
    uint32_t varying = 0;
    for (uint32_t i = 0; i < result->register_bits; i++) {
        plan->round_register[i] = lilac_plan_gather_round(
            plan, lilac_plan_gather_off_axis(plan, result, result->registers[i]));
    }
    for (uint32_t i = 0; i < result->thread_bits; i++) {
        plan->round_thread[i] = lilac_plan_gather_round(
            plan, lilac_plan_gather_off_axis(plan, result, result->threads[i]));
        varying |= plan->round_thread[i];
    }
    for (uint32_t i = 0; i < plan->source.bits[plan->axis]; i++) {
        plan->round_index[i] = lilac_plan_gather_round(plan, whole_axis_unit(plan, i));
        varying |= plan->round_index[i];
    }
    return varying;
}

/* The counts of all rounds, from those of one. Between rounds there is one barrier more. */
static void count_rounds(lilac_plan_gather *plan, uint32_t varying) {
    const uint32_t rounds = 1U << __builtin_popcountll(plan->rounds);
    const uint32_t loads = 1U << __builtin_popcount(varying); /* of each result */
    lilac_plan_price *price = &plan->price;
    price->stores *= rounds;
    price->store_wavefronts *= rounds;
    price->store_bytes *= rounds;
    lilac_plan_add_selects(price, plan->work.element_bits,
                           (uint64_t)plan->work.results * (loads - 1), plan->work.num_warps);
    price->loads *= loads;
    price->load_wavefronts *= loads;
    price->load_bytes *= loads;
    price->barriers *= 2 * rounds - 1;
    price->cycles = lilac_plan_price_gather_memory(&plan->work, price, plan->barrier, plan->arch);
}

static bool plan_rounds(lilac_plan_gather *plan, bool unswizzled, lilac_reason *why) {
    plan->kind = LILAC_PLAN_GATHER_ROUNDS;
    for (uint64_t rest = plan->rounds; rest != 0; rest &= rest - 1) {
        plan->stored &= ~(1U << register_of(plan, lowest_bit(rest)));
    }
    plan->bytes >>= __builtin_popcountll(plan->rounds);
    if (!lilac_plan_gather_choose_memory(plan, unswizzled, why)) {
        return false;
    }
    count_rounds(plan, find_rounds(plan));
    return true;
}

/* ---- the plan ---------------------------------------------------------------------------- */

static bool check(const lilac_plan_gather *plan, lilac_reason *why) {
    const lilac_layout_columns *source = &plan->source, *result = &plan->result;
    if (result->rank != source->rank) {
        return lilac_layout_refuse(why, "the source has %u dimensions and the result has %u",
                                   source->rank, result->rank);
    }
    for (uint32_t d = 0; d < source->rank; d++) {
        if (d != plan->axis && result->bits[d] > source->bits[d]) {
            return lilac_layout_refuse(
                why,
                "dimension %u of the index has %llu elements and the source has %llu; only the "
                "axis of the index may be larger",
                d, 1ULL << result->bits[d], 1ULL << source->bits[d]);
        }
    }
    for (uint32_t i = 0; i < source->block_bits; i++) {
        if (source->blocks[i] != 0 || result->blocks[i] != 0) {
            return lilac_layout_refuse(why,
                                       "%s is distributed over the blocks of a cluster; a gather "
                                       "reads elements of its own block",
                                       source->blocks[i] != 0 ? "operand 0" : "the result");
        }
    }
    return true;
}

/* The offset of an element in memory, by register, thread and index. */
static void find_offsets(lilac_plan_gather *plan) {
    const lilac_layout_columns *result = &plan->result;
    lilac_f2_basis offsets;
    lilac_f2_basis_init(&offsets);
    for (uint32_t i = 0; i < lilac_layout_in_bits(&plan->memory, "offset"); i++) {
        (void)lilac_f2_basis_add(&offsets, lilac_layout_column(&plan->memory, "offset", i),
                                 UINT64_C(1) << i);
    }
    for (uint32_t i = 0; i < result->register_bits; i++) {
        plan->result_register[i] = lilac_f2_basis_tag(
            &offsets, lilac_plan_gather_off_axis_in_round(plan, result, result->registers[i]));
    }
    for (uint32_t i = 0; i < result->thread_bits; i++) {
        plan->result_thread[i] = lilac_f2_basis_tag(
            &offsets, lilac_plan_gather_off_axis_in_round(plan, result, result->threads[i]));
    }
    for (uint32_t i = 0; i < plan->source.bits[plan->axis]; i++) {
        plan->index_offset[i] = lilac_f2_basis_tag(&offsets, lilac_plan_gather_axis_unit(plan, i));
    }
}

static void take_shuffles(lilac_plan_gather *plan) {
    plan->kind = LILAC_PLAN_GATHER_SHUFFLES;
    plan->bytes = 0;
    plan->exact = true;
    lilac_plan_price_gather_shuffles(&plan->price, &plan->work, plan->arch);
}

/* The cheaper of the strategies that the options allow. `available`: bytes of shared memory. */
static bool choose(lilac_plan_gather *plan, lilac_plan_strategy strategy, uint64_t available,
                   lilac_reason *why) {
    const bool unswizzled = strategy == LILAC_PLAN_UNSWIZZLED;
    const bool may_shuffle =
        plan->by_lanes && (strategy == LILAC_PLAN_ANY || strategy == LILAC_PLAN_BY_SHUFFLES);
    const bool fits = plan->bytes <= available;
    if (may_shuffle && (!fits || strategy == LILAC_PLAN_BY_SHUFFLES)) {
        take_shuffles(plan);
        return true;
    }
    if (!fits) {
        plan->rounds = choose_rounds(plan, plan->bytes, available);
        if (plan->rounds == 0) {
            return lilac_layout_refuse(
                why,
                "the gather needs %llu bytes of shared memory, %s has %llu bytes left, and no "
                "register bit of the layout splits the source into smaller rounds",
                (unsigned long long)plan->bytes, plan->arch->name, (unsigned long long)available);
        }
        return plan_rounds(plan, unswizzled, why);
    }
    plan->kind = LILAC_PLAN_GATHER_MEMORY;
    if (!lilac_plan_gather_choose_memory(plan, unswizzled, why)) {
        plan->bytes = 0;
        return false;
    }
    lilac_plan_price shuffles;
    if (may_shuffle && lilac_plan_price_gather_shuffles(&shuffles, &plan->work, plan->arch) <=
                           plan->price.cycles) {
        take_shuffles(plan);
    }
    return true;
}

bool lilac_plan_gather_init(lilac_plan_gather *plan, const lilac_layout *source,
                            const lilac_layout *result, const lilac_plan_gather_options *options,
                            const lilac_target *target, lilac_reason *why) {
    lilac_layout_columns columns[2];
    memset(plan, 0, sizeof *plan);
    return lilac_plan_columns_init(&columns[0], source, target, why) &&
           lilac_plan_columns_init(&columns[1], result, target, why) &&
           lilac_plan_gather_init_columns(plan, &columns[0], &columns[1], options, target, why);
}

bool lilac_plan_gather_init_columns(lilac_plan_gather *plan, const lilac_layout_columns *source,
                                    const lilac_layout_columns *result,
                                    const lilac_plan_gather_options *options,
                                    const lilac_target *target, lilac_reason *why) {
    memset(plan, 0, sizeof *plan);
    plan->arch = target->arch;
    plan->axis = options->axis;
    plan->work.element_bits = max_u32(options->element_bits, 8);
    plan->work.num_warps = target->num_warps;
    plan->source = *source;
    plan->result = *result;
    if (!check(plan, why)) {
        return false;
    }
    plan->stored = plan->source.distinct;
    find_places(plan, options->strategy == LILAC_PLAN_UNSWIZZLED);
    find_work(plan);
    if (options->strategy == LILAC_PLAN_BY_SHUFFLES && !plan->by_lanes) {
        return lilac_layout_refuse(why,
                                   "lilac.movement is \"shuffles\", but an index may select an "
                                   "element that only another warp holds");
    }
    plan->bytes = (UINT64_C(1) << plan->source.out_bits) * plan->work.element_bits / 8;
    const uint64_t available =
        options->scratch_bytes != 0 ? options->scratch_bytes : plan->arch->shared_bytes;
    if (!choose(plan, options->strategy, available, why)) {
        return false;
    }
    if (plan->kind != LILAC_PLAN_GATHER_SHUFFLES) {
        find_offsets(plan);
    }
    return true;
}
