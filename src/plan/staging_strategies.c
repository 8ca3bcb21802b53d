/* The instructions of a shared-memory exchange. All pairs of vectors and matrix instructions of all
 * widths are priced before any memory is constructed.
 *
 * Let c be the smaller and k the larger number of low directions of the two sides. A pair of
 * vectors exists if R_A ∩ R_B has c directions that are independent of both sides' threads and of
 * the rounds, and the registers of the wider side have k directions that are independent of its own
 * threads. Both sides then access without conflicts, except where the alignment of the wider side
 * confines a transaction of the narrower side to too few banks. Let l be the dimension of that
 * transaction and T the span of the wider side's threads. The wider side's coordinates distinguish
 * at most λ = dim(L + T) − dim T of the lane bits L, and the others must fit in the banks:
 *
 *     2^max(0, l − min(k − max(c, w), λ) − (β − max(k, w)))  wavefronts per transaction
 *
 * where w offset bits are within a word and β offset bits are below the segments. The coordinates
 * of a matrix instruction's lanes are coordinates of the basis, so their λ is the rank of these
 * coordinates on the lanes of the other side.
 */
#include "staging.h"

#include <string.h>

typedef struct ranks {
    uint32_t lanes[2][LILAC_PLAN_MAX_LANE_BITS + 1];           /* l, by the number of lane bits */
    uint32_t distinguishable[2][LILAC_PLAN_MAX_LANE_BITS + 1]; /* λ, by the number of lane bits */
    uint32_t registers[2]; /* independent of the side's own threads */
} ranks;

typedef struct search {
    staging_work *work;
    staging_choice *best;
    uint32_t steps[2]; /* log2 of registers × warps of a side */
    uint32_t most[2];  /* low directions of the widest vector */
    bool segments;     /* the memory has segments, so conflicts are possible */
    uint64_t least;    /* fewest wavefronts of any pair */
} search;

uint32_t lilac_plan_transaction_lane_bits(const staging_scale *scale, const staging_side *side,
                                          uint32_t which, uint32_t low) {
    const uint32_t bytes = scale->element_bytes << low;
    const uint32_t words = above(low, scale->word_bits) + scale->element_word_bits;
    const uint32_t bits = min_u32(above(scale->bank_count_bits, words), side->lane_bits);
    const bool merged = which == LOAD && bytes >= 2 * scale->arch->bank_bytes &&
                        side->merged_lane <= min_u32(bits, 1);
    return merged ? min_u32(bits + 1, side->lane_bits) : bits;
}

static void find_ranks(ranks *r, const staging_pair *pair) {
    const staging_side *a = &pair->side[STORE], *b = &pair->side[LOAD];
    lilac_f2_basis own[2], separate, threads;
    lilac_f2_basis_init(&own[STORE]);
    lilac_f2_basis_init(&own[LOAD]);
    lilac_f2_basis_init(&separate);
    lilac_f2_basis_init(&threads);
    memset(r, 0, sizeof *r);
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        (void)lilac_f2_basis_add(&threads, b->thread[i], 0);
    }
    r->registers[STORE] = (uint32_t)__builtin_popcount(pair->registers);
    lilac_f2_basis registers;
    lilac_f2_basis_copy(&registers, &threads);
    for (uint32_t i = 0; i < b->register_bits; i++) {
        r->registers[LOAD] +=
            lilac_f2_basis_add(&registers, b->reg[i] & ((1U << BASIS_BLOCK) - 1), 0);
    }
    for (uint32_t i = 0; i < a->lane_bits; i++) {
        r->lanes[STORE][i + 1] =
            r->lanes[STORE][i] + lilac_f2_basis_add(&own[STORE], a->thread[i], 0);
        r->lanes[LOAD][i + 1] = r->lanes[LOAD][i] + lilac_f2_basis_add(&own[LOAD], b->within[i], 0);
        r->distinguishable[LOAD][i + 1] =
            r->distinguishable[LOAD][i] +
            lilac_f2_basis_add(&separate, b->within[i] & BASIS_REGISTERS, 0);
        r->distinguishable[STORE][i + 1] =
            r->distinguishable[STORE][i] + lilac_f2_basis_add(&threads, a->thread[i], 0);
    }
}

/* Counts one side's instructions. `excess` is log2 of the wavefronts of a transaction. */
static void count_side(staging_counts *counts, const search *s, const staging_strategy *strategy,
                       uint32_t which, uint32_t excess) {
    const staging_scale *scale = &s->work->scale;
    const staging_pair *pair = &s->work->pair;
    const staging_side *side = &pair->side[which];
    if (strategy->instruction[which] == LILAC_PLAN_VECTOR) {
        const uint32_t low = strategy->low[which];
        const uint32_t lanes = lilac_plan_transaction_lane_bits(scale, side, which, low);
        counts->instructions[which] = UINT64_C(1) << (s->steps[which] - low);
        counts->packs[which] = low < scale->word_bits ? counts->instructions[which] : 0;
        const uint32_t idle = which == STORE ? idle_lanes(s->work->copy_lanes, lanes) : 0;
        counts->transactions[which] =
            counts->instructions[which]
            << (side->lane_bits - lanes + side->blocks[lanes] - (uint32_t)__builtin_popcount(idle));
    } else {
        const uint32_t words = s->steps[which] - scale->word_bits;
        const uint32_t remaining = side->register_bits - scale->word_bits - pair->round_bits;
        counts->transactions[which] = UINT64_C(1) << words;
        counts->packs[which] = 0;
        counts->instructions[which] = UINT64_C(1) << (words - min_u32(remaining, 2));
    }
    counts->wavefronts[which] = counts->transactions[which] << excess;
}

static uint64_t sum(const uint64_t *values) {
    return values[0] + values[1];
}

/* The cost in 1/256 clocks, by the formula of lilac_plan_price_cycles without the terms that are
 * equal for all strategies. Without a table of costs: the wavefronts. */
static uint64_t cost_of(const staging_counts *counts, const staging_scale *scale) {
    /* An eighth of a clock per access, from bench/results/h200_costs.json. */
    enum { PARTS = 16, ACCESS = 2 };
    const lilac_costs *costs = scale->arch->costs;
    const uint64_t memory = sum(counts->wavefronts);
    if (costs == NULL) {
        return memory;
    }
    const uint64_t integer =
        sum(counts->permutes) * costs->permute + sum(counts->packs) * costs->pack;
    const uint64_t busy = memory * costs->wavefront;
    const uint64_t both = busy > integer ? busy * PARTS + integer * costs->overlap
                                         : integer * PARTS + busy * costs->overlap;
    return both + sum(counts->instructions) * ACCESS * PARTS;
}

static bool is_better(const staging_counts *a, const staging_counts *b,
                      const staging_scale *scale) {
    const uint64_t cost_a = cost_of(a, scale), cost_b = cost_of(b, scale);
    return cost_a != cost_b ? cost_a < cost_b : sum(a->instructions) < sum(b->instructions);
}

/* Counts one byte permute per word for each of the first `bits` offset bits within a word that is
 * not the register which the side has at that place. Offset bits from `before` on are lanes of the
 * other side's row, from lane `first`. Directions that a side chooses alone are its own
 * registers. */
static void count_permutes(staging_counts *counts, const search *s, const staging_pair *pair,
                           uint32_t which, uint32_t bits, uint32_t before, uint32_t first) {
    const staging_side *side = &pair->side[which];
    const uint32_t word = min_u32(s->work->scale.word_bits, bits);
    uint64_t moved = 0;
    for (uint32_t i = 0; i < word; i++) {
        const uint32_t direction =
            i < before ? pair->common[i] : UINT32_C(1) << (first + i - before);
        moved += i < side->register_bits && side->reg[i] != direction;
    }
    /* All warps permute, including warps with copies. */
    counts->permutes[which] =
        moved << (above(side->register_bits, s->work->scale.word_bits) + s->work->warp_bits);
}

/* Accepts a strategy if it is the cheapest so far. The bound is that of the strategy with the
 * fewest wavefronts. */
static bool offer(search *s, const staging_strategy *strategy, const staging_counts *counts) {
    const uint64_t wavefronts = sum(counts->wavefronts);
    if (s->least == 0 || wavefronts < s->least) {
        s->least = wavefronts;
        memcpy(s->work->least_wavefronts, counts->wavefronts, sizeof counts->wavefronts);
    }
    const bool first = s->best->counts.instructions[0] == 0;
    if (!first && !is_better(counts, &s->best->counts, &s->work->scale)) {
        return false;
    }
    s->best->strategy = *strategy;
    s->best->counts = *counts;
    s->best->in_target_basis = strategy->low[LOAD] > strategy->low[STORE];
    return true;
}

static void try_vectors(search *s, const ranks *r, uint32_t store, uint32_t load) {
    const staging_scale *scale = &s->work->scale;
    const staging_strategy strategy = {.low = {store, load}};
    const uint32_t low = min_u32(store, load), high = max_u32(store, load);
    const uint32_t other = store < load ? STORE : LOAD;
    const uint32_t lanes =
        lilac_plan_transaction_lane_bits(scale, &s->work->pair.side[other], other, low);
    const uint32_t beyond = above(high, max_u32(low, scale->word_bits));
    const uint32_t reached =
        r->lanes[other][lanes] - min_u32(beyond, r->distinguishable[other][lanes]);
    const uint32_t excess =
        s->segments ? above(reached, scale->bank_bits - max_u32(high, scale->word_bits)) : 0;
    staging_counts counts;
    count_side(&counts, s, &strategy, STORE, other == STORE ? excess : 0);
    count_side(&counts, s, &strategy, LOAD, other == LOAD ? excess : 0);
    count_permutes(&counts, s, &s->work->pair, STORE, low, low, 0);
    count_permutes(&counts, s, &s->work->pair, LOAD, low, low, 0);
    (void)offer(s, &strategy, &counts);
}

/* Tries all widths. Of strategies with equal cost the first one is kept: equal and wide vectors. */
static void try_all_vectors(search *s) {
    const staging_pair *pair = &s->work->pair;
    const uint32_t commons = pair->common_count - pair->round_bits;
    ranks r;
    find_ranks(&r, pair);
    for (uint32_t side = 0; side < 2; side++) {
        s->most[side] = min_u32(r.registers[side] - pair->round_bits, s->most[side]);
    }
    for (uint32_t low = min_u32(commons, min_u32(s->most[0], s->most[1])) + 1; low-- > 0;) {
        try_vectors(s, &r, low, low);
        for (uint32_t high = s->most[STORE]; high > low; high--) {
            try_vectors(s, &r, high, low);
        }
        for (uint32_t high = s->work->has_target_basis ? s->most[LOAD] : 0; high > low; high--) {
            try_vectors(s, &r, low, high);
        }
    }
}

/* ---- matrix instructions ------------------------------------------------------------------- */

/* Whether one of the columns has one of the bits. */
static bool touches(const uint32_t *columns, uint32_t count, uint32_t bits) {
    for (uint32_t i = 0; i < count; i++) {
        if ((columns[i] & bits) != 0) {
            return true;
        }
    }
    return false;
}

/* The basis bits of the lanes in a row; 0 if the columns of the basis's side do not allow the
 * instruction. */
static uint32_t row_bits(const staging_pair *pair, const staging_scale *scale,
                         lilac_plan_instruction instruction) {
    const staging_side *side = &pair->side[pair->owner];
    const uint32_t first = row_lane(instruction);
    const uint32_t count = instruction == LILAC_PLAN_MATRIX ? 2 : 3;
    const uint32_t bits = ((1U << count) - 1) << (BASIS_LANE + first);
    const uint32_t registers = (uint32_t)__builtin_popcount(pair->registers);
    if (registers < scale->word_bits + pair->round_bits ||
        touches(side->reg, side->register_bits, bits)) {
        return 0;
    }
    for (uint32_t i = 0; i < side->thread_bits; i++) {
        const bool in_row = i >= first && i < first + count;
        if ((side->thread[i] & bits) != (in_row ? 1U << (BASIS_LANE + i) : 0) ||
            (in_row && (side->thread[i] & ~bits) != 0)) {
            return 0;
        }
    }
    return bits;
}

static uint32_t rank_of(const uint32_t *vectors, uint32_t count, uint32_t mask) {
    lilac_f2_basis s;
    lilac_f2_basis_init(&s);
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        rank += lilac_f2_basis_add(&s, vectors[i] & mask, 0);
    }
    return rank;
}

/* Tries a matrix instruction of the basis's side with vectors of all widths on the other side. */
static void try_matrix(search *s, const staging_pair *pair, lilac_plan_instruction instruction) {
    const staging_scale *scale = &s->work->scale;
    const uint32_t own = pair->owner, others = 1 - own;
    const staging_side *other = &pair->side[others];
    const uint32_t bits = row_bits(pair, scale, instruction);
    const uint32_t before = row_registers(instruction, scale);
    const uint32_t high = before + (uint32_t)__builtin_popcount(bits);
    const uint32_t first = bits == 0 ? 0 : lowest_bit(bits);
    lilac_f2_basis registers;
    lilac_f2_basis_init(&registers);
    if (bits == 0) {
        return;
    }
    for (uint32_t i = 0; i < other->register_bits; i++) {
        (void)lilac_f2_basis_add(&registers, other->reg[i], 0);
    }
    for (uint32_t low = 0; low <= min_u32(s->most[others], high); low++) {
        staging_strategy strategy;
        staging_counts counts;
        if (min_u32(low, before) > pair->common_count - pair->round_bits) {
            break;
        }
        if (low > before) {
            const uint32_t lane = 1U << (first + low - 1 - before);
            if (!lilac_f2_basis_contains(&registers, lane) ||
                touches(other->thread, other->thread_bits, lane)) {
                break;
            }
        }
        strategy.instruction[own] = instruction;
        strategy.instruction[others] = LILAC_PLAN_VECTOR;
        strategy.low[own] = high;
        strategy.low[others] = low;
        /* Row lanes within one word do not select a bank. The higher row lanes that the other
         * side's vector lacks put the lanes of that side into different banks. */
        const uint32_t lanes = lilac_plan_transaction_lane_bits(scale, other, others, low);
        const uint32_t in_word = above(scale->word_bits, before);
        const uint32_t word = bits & ((1U << (first + in_word)) - 1);
        const uint32_t separate =
            bits & ~((1U << (first + above(max_u32(low, scale->word_bits), before))) - 1);
        lilac_f2_basis known;
        lilac_f2_basis_init(&known);
        uint32_t reached = 0;
        for (uint32_t remaining = word; remaining != 0; remaining &= remaining - 1) {
            (void)lilac_f2_basis_add(&known, remaining & -remaining, 0);
        }
        for (uint32_t i = 0; i < lanes; i++) {
            reached += lilac_f2_basis_add(&known, other->within[i], 0);
        }
        reached -= rank_of(other->within, lanes, separate);
        count_side(&counts, s, &strategy, own, 0);
        count_side(&counts, s, &strategy, others,
                   s->segments ? above(reached, scale->bank_bits - high) : 0);
        count_permutes(&counts, s, pair, own, min_u32(low, before), before, 0);
        count_permutes(&counts, s, pair, others, low, before, first);
        if (offer(s, &strategy, &counts)) {
            s->best->in_target_basis = own == LOAD;
        }
    }
}

/* Matrix instructions on both sides, in the basis of the source: the directions of the rows must be
 * equal. */
static bool rows_agree(const staging_pair *pair, const staging_scale *scale,
                       lilac_plan_instruction store, lilac_plan_instruction load, uint32_t bits) {
    const staging_side *b = &pair->side[LOAD];
    const uint32_t before[2] = {row_registers(store, scale), row_registers(load, scale)};
    const uint32_t high = before[STORE] + (uint32_t)__builtin_popcount(bits);
    lilac_f2_basis registers;
    lilac_f2_basis_init(&registers);
    if (b->register_bits < scale->word_bits + pair->round_bits ||
        high != before[LOAD] + (load == LILAC_PLAN_MATRIX ? 2 : 3) ||
        min_u32(before[STORE], before[LOAD]) > pair->common_count - pair->round_bits) {
        return false;
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        (void)lilac_f2_basis_add(&registers, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < high; i++) {
        const uint32_t lane = i < before[LOAD] ? 0 : row_lane(load) + i - before[LOAD];
        if (i >= before[STORE]) {
            const uint32_t own = 1U << (BASIS_LANE + row_lane(store) + i - before[STORE]);
            if (i < before[LOAD]) {
                if (!lilac_f2_basis_contains(&registers, own) ||
                    touches(b->thread, b->thread_bits, own)) {
                    return false;
                }
            } else if (b->thread[lane] != own || touches(b->reg, b->register_bits, own) ||
                       touches(b->thread, lane, own) ||
                       touches(b->thread + lane + 1, b->thread_bits - lane - 1, own)) {
                return false;
            }
        } else if (i >= before[LOAD] &&
                   (b->thread[lane] == 0 || (b->thread[lane] & ~BASIS_REGISTERS) != 0)) {
            return false;
        }
    }
    return true;
}

static void try_matrices(search *s, lilac_plan_instruction store, lilac_plan_instruction load) {
    const staging_pair *pair = &s->work->pair;
    const staging_scale *scale = &s->work->scale;
    const uint32_t bits = row_bits(pair, scale, store);
    const uint32_t high = row_registers(store, scale) + (uint32_t)__builtin_popcount(bits);
    const staging_strategy strategy = {.instruction = {store, load}, .low = {high, high}};
    staging_counts counts;
    memory_basis basis;
    if (bits == 0 || !rows_agree(pair, scale, store, load, bits)) {
        return;
    }
    const uint32_t shared = min_u32(row_registers(store, scale), row_registers(load, scale));
    count_side(&counts, s, &strategy, STORE, 0);
    count_side(&counts, s, &strategy, LOAD, 0);
    count_permutes(&counts, s, pair, STORE, shared, shared, 0);
    count_permutes(&counts, s, pair, LOAD, shared, shared, 0);
    /* Only the construction of the memory shows whether other registers move within a row. */
    if (is_better(&counts, &s->best->counts, scale) &&
        lilac_plan_swizzle(&basis, pair, &strategy, scale)) {
        (void)offer(s, &strategy, &counts);
    }
}

static bool has_matrices(const staging_work *work, uint32_t which) {
    const staging_scale *scale = &work->scale;
    const lilac_feature feature = which == STORE ? LILAC_HAS_STMATRIX : LILAC_HAS_LDMATRIX;
    return (scale->arch->features & feature) != 0 && scale->element_bytes <= 4 &&
           scale->arch->warp_size == 32 && scale->arch->bank_bytes == 4 &&
           scale->arch->banks >= 32 &&
           work->pair.side[which].register_bits >= scale->word_bits + work->pair.round_bits &&
           (which == STORE || (work->has_target_basis && !work->remote));
}

/* A lower bound of the cost of one side's instructions. */
static void count_ideal(staging_counts *ideal, const search *s, uint32_t which, bool matrices) {
    const staging_scale *scale = &s->work->scale;
    const uint32_t most = log2_of(max_u32(scale->arch->vector_bytes / scale->element_bytes, 1));
    const staging_strategy vector = {
        .low = {min_u32(most, s->steps[STORE] - s->work->pair.round_bits),
                min_u32(most, s->steps[LOAD] - s->work->pair.round_bits)}};
    const staging_strategy matrix = {.instruction = {LILAC_PLAN_MATRIX, LILAC_PLAN_MATRIX}};
    staging_counts other;
    count_side(ideal, s, &vector, which, 0);
    if (matrices) {
        count_side(&other, s, &matrix, which, 0);
        ideal->wavefronts[which] = ideal->wavefronts[which] < other.wavefronts[which]
                                       ? ideal->wavefronts[which]
                                       : other.wavefronts[which];
        ideal->instructions[which] = ideal->instructions[which] < other.instructions[which]
                                         ? ideal->instructions[which]
                                         : other.instructions[which];
    }
}

static void try_all_matrices(search *s) {
    static const lilac_plan_instruction both[] = {LILAC_PLAN_MATRIX, LILAC_PLAN_MATRIX_TRANSPOSED};
    staging_work *work = s->work;
    const uint32_t kinds = work->scale.element_bytes <= 2 ? 2 : 1;
    const bool store = has_matrices(work, STORE), load = has_matrices(work, LOAD);
    staging_counts ideal;
    count_ideal(&ideal, s, STORE, store);
    count_ideal(&ideal, s, LOAD, load);
    ideal.permutes[STORE] = ideal.permutes[LOAD] = 0;
    if ((!store && !load) || !is_better(&ideal, &s->best->counts, &work->scale)) {
        return;
    }
    for (uint32_t i = 0; store && i < kinds; i++) {
        try_matrix(s, &work->pair, both[i]);
    }
    if (load) {
        staging_pair in_target_basis;
        uint32_t origin[BASIS_BITS];
        lilac_plan_staging_to_target_basis(&in_target_basis, origin, &work->pair);
        for (uint32_t i = 0; i < kinds; i++) {
            try_matrix(s, &in_target_basis, both[i]);
        }
    }
    for (uint32_t i = 0; store && load && i < kinds * kinds; i++) {
        try_matrices(s, both[i / kinds], both[i % kinds]);
    }
}

/* Computes the bound if not all pairs of widths are tried: the fewest transactions that each side's
 * own registers allow, independent of the other side. */
static void bound_sides_separately(search *s) {
    const staging_side *b = &s->work->pair.side[LOAD];
    const staging_scale *scale = &s->work->scale;
    const uint32_t widest = log2_of(max_u32(scale->arch->vector_bytes / scale->element_bytes, 1));
    lilac_f2_basis registers, threads;
    lilac_f2_basis_init(&registers);
    lilac_f2_basis_init(&threads);
    uint32_t most[2] = {(uint32_t)__builtin_popcount(s->work->pair.registers), 0};
    for (uint32_t i = 0; i < b->register_bits; i++) {
        (void)lilac_f2_basis_add(&registers, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        (void)lilac_f2_basis_add(&threads, b->thread[i], 0);
    }
    for (uint32_t i = 0; i < BASIS_BLOCK; i++) { /* registers of one block */
        most[LOAD] += (registers.pivots >> i & 1) != 0 &&
                      lilac_f2_basis_add(&threads, registers.vector[i], 0);
    }
    for (uint32_t side = 0; side < 2; side++) {
        staging_counts counts;
        uint64_t least = UINT64_MAX;
        for (uint32_t low = 0; low <= min_u32(most[side], widest); low++) {
            const staging_strategy strategy = {.low = {low, low}};
            count_side(&counts, s, &strategy, side, 0);
            least = counts.wavefronts[side] < least ? counts.wavefronts[side] : least;
        }
        if (side == STORE && has_matrices(s->work, STORE)) {
            const staging_strategy strategy = {
                .instruction = {LILAC_PLAN_MATRIX, LILAC_PLAN_VECTOR}};
            count_side(&counts, s, &strategy, side, 0);
            least = counts.wavefronts[side] < least ? counts.wavefronts[side] : least;
        }
        s->work->least_wavefronts[side] = least;
    }
}

bool lilac_plan_staging_choose(staging_choice *choice, staging_work *work, bool with_memory) {
    const staging_scale *scale = &work->scale;
    const uint32_t widest =
        min_u32(scale->arch->vector_bytes, scale->arch->banks * scale->arch->bank_bytes);
    const uint32_t most = log2_of(max_u32(widest / scale->element_bytes, 1));
    search s = {.work = work,
                .best = choice,
                .most = {most, most},
                .segments = segment_bits(&work->pair, scale) != 0};
    s.steps[STORE] = work->pair.side[STORE].register_bits + work->warp_bits -
                     (uint32_t)__builtin_popcount(work->store_copies);
    s.steps[LOAD] = work->pair.side[LOAD].register_bits + work->warp_bits;
    memset(&choice->counts, 0, sizeof choice->counts);
    try_all_vectors(&s);
    try_all_matrices(&s);
    if (!work->has_target_basis) {
        bound_sides_separately(&s);
    }
    if (!with_memory) {
        return true;
    }
    if (choice->in_target_basis) {
        lilac_plan_staging_to_target_basis(&choice->pair, choice->origin, &work->pair);
    } else {
        choice->pair = work->pair;
    }
    return lilac_plan_swizzle(&choice->basis, &choice->pair, &choice->strategy, scale);
}
