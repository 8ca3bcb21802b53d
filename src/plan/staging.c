/* The shared-memory exchange. staging_strategies.c chooses the instructions and swizzle.c the
 * memory M; this file derives the accesses of both sides from them.
 *
 * offset(x) = M⁻¹ x, so each column of a side has an offset:
 *
 *      registers   The low directions and the rounds are spanned exactly by registers. The other
 *                  registers, modulo these, number the instructions. Together they are a basis of
 *                  the registers, and the register permutation is the change to this basis.
 *      lanes       addresses; lanes within a matrix's row supply none
 *
 *   new register bits      0 … v-1           …             …
 *                          vector, matrix  | steps       | rounds
 */
#include "staging.h"

#include <assert.h>
#include <string.h>

/* The columns of one side as offsets. */
typedef struct places {
    uint32_t bits, round_bits;
    uint32_t half; /* register direction of the halves of words of a transposed matrix, or 0 */
    uint32_t reg[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread[MAX_THREAD_COLUMNS];
    uint64_t within[LILAC_PLAN_MAX_LANE_BITS];
} places;

/* ---- wavefronts --------------------------------------------------------------------------- */

/* log2 of the wavefronts of a transaction of lanes with these offsets. */
static uint32_t conflict_bits(const staging_scale *scale, uint32_t low, const uint64_t *lanes,
                              uint32_t count) {
    lilac_f2_basis words, banks;
    lilac_f2_basis_init(&words);
    lilac_f2_basis_init(&banks);
    const uint32_t word = log2_of(scale->arch->bank_bytes);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)(lanes[i] * scale->element_bytes >> word);
        bits += lilac_f2_basis_add(&words, at, 0);
        bits -= lilac_f2_basis_add(&banks, at & (scale->arch->banks - 1), 0);
    }
    for (uint32_t next = 1; next < scale->element_bytes << low >> word; next *= 2) {
        bits += lilac_f2_basis_add(&words, next, 0);
        bits -= lilac_f2_basis_add(&banks, next & (scale->arch->banks - 1), 0);
    }
    return bits;
}

static void count_access(lilac_plan_access *access, const staging_work *work, uint32_t which,
                         const staging_side *side, const places *at, uint32_t low) {
    const staging_scale *scale = &work->scale;
    uint32_t lanes = lilac_plan_transaction_lane_bits(scale, side, which, low);
    const uint32_t idle = which == STORE ? idle_lanes(work->copy_lanes, lanes) : 0;
    access->transactions = UINT32_C(1)
                           << (access->lane_bits - lanes - (uint32_t)__builtin_popcount(idle));
    if (access->instruction != LILAC_PLAN_VECTOR) {
        lanes = 3;
        access->transactions = UINT32_C(1) << access->matrix_bits;
    }
    const bool vector = access->instruction == LILAC_PLAN_VECTOR;
    const uint32_t conflicts =
        conflict_bits(scale, low, vector ? at->within : access->lane, lanes) +
        (vector ? side->blocks[lanes] : 0);
    const uint32_t warps =
        access->warp_bits - (which == STORE ? (uint32_t)__builtin_popcount(work->store_copies) : 0);
    access->transaction_lanes = UINT32_C(1) << lanes;
    access->transaction_wavefronts = UINT32_C(1) << conflicts;
    access->conflicts = access->transaction_wavefronts - 1;
    access->instructions = UINT64_C(1) << (access->step_bits + warps);
    access->wavefronts = access->instructions * access->transactions << conflicts;
}

/* ---- registers ------------------------------------------------------------------------------ */

/* A basis of a side's registers, as offsets, in the order of the new register bits. */
typedef struct register_basis {
    uint32_t vector_bits, count;
    uint32_t offset[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t of[LILAC_PLAN_MAX_REGISTER_BITS]; /* the register that a step was derived from */
} register_basis;

/* The offset with the block that a register loads from. Registers that load from different blocks
 * are different even if their offsets are equal. */
static uint32_t with_block(const staging_work *work, uint32_t which, uint32_t offset, uint32_t i) {
    return which == LOAD ? offset | work->register_block[i] << 28 : offset;
}

static void find_basis(register_basis *basis, const staging_work *work, const places *at,
                       uint32_t which, const staging_strategy *strategy) {
    const uint32_t count = work->pair.side[which].register_bits;
    const bool matrix = strategy->instruction[which] != LILAC_PLAN_VECTOR;
    const uint32_t units =
        matrix ? row_registers(strategy->instruction[which], &work->scale) : strategy->low[which];
    const uint32_t rounds = ((UINT32_C(1) << at->round_bits) - 1) << (at->bits - at->round_bits);
    const uint32_t aside = rounds | ((UINT32_C(1) << strategy->low[which]) - 1);
    lilac_f2_basis steps;
    lilac_f2_basis_init(&steps);
    basis->count = 0;
    for (; basis->count < units; basis->count++) {
        basis->offset[basis->count] = UINT32_C(1) << basis->count;
    }
    if (at->half != 0) {
        (void)lilac_f2_basis_add(&steps, at->half, 0);
        basis->offset[basis->count++] = at->half;
    }
    basis->vector_bits = basis->count;
    for (uint32_t i = 0; i < count && basis->count < count - at->round_bits; i++) {
        const uint32_t step = with_block(work, which, at->reg[i] & ~aside, i);
        if (lilac_f2_basis_add(&steps, step, 0)) {
            basis->of[basis->count] = i;
            basis->offset[basis->count++] = step;
        }
    }
    for (uint32_t remaining = rounds; remaining != 0; remaining &= remaining - 1) {
        basis->offset[basis->count++] = remaining & -remaining;
    }
    assert(basis->count == count);
    if (matrix) {
        basis->vector_bits += min_u32(count - at->round_bits - basis->vector_bits, 2);
    }
}

/* Computes the change of basis: for stores the new register bits as sums of the old ones, for loads
 * the old ones as sums of the new. */
static void change_basis(lilac_plan_permutation *permutation, const register_basis *basis,
                         const staging_work *work, const places *at, uint32_t which) {
    const bool back = which == LOAD;
    uint32_t old[LILAC_PLAN_MAX_REGISTER_BITS];
    const uint32_t *from = back ? basis->offset : old, *to = back ? old : basis->offset;
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    for (uint32_t i = 0; i < basis->count; i++) {
        old[i] = with_block(work, which, at->reg[i], i);
    }
    for (uint32_t i = 0; i < basis->count; i++) {
        (void)lilac_f2_basis_add(&known, from[i], UINT32_C(1) << i);
    }
    permutation->before_bits = permutation->bits = basis->count;
    for (uint32_t i = 0; i < basis->count; i++) {
        const uint64_t rest = lilac_f2_basis_reduce(&known, to[i], &permutation->from[i]);
        assert(rest == 0);
        (void)rest;
    }
}

static void set_access(lilac_plan_access *access, const register_basis *basis,
                       const staging_work *work, const places *at, uint32_t which,
                       const staging_strategy *strategy) {
    const staging_side *side = &work->pair.side[which];
    const uint32_t offset_mask = (UINT32_C(1) << 28) - 1;
    access->instruction = strategy->instruction[which];
    access->element_bytes = work->scale.element_bytes;
    access->vector_bits = basis->vector_bits;
    access->step_bits = basis->count - at->round_bits - basis->vector_bits;
    access->lane_bits = side->lane_bits;
    access->warp_bits = work->warp_bits;
    access->memory_bytes = (uint64_t)work->scale.element_bytes << (at->bits - at->round_bits);
    for (uint32_t i = 0; i < basis->vector_bits; i++) {
        access->vector_register[i] = (uint8_t)i;
    }
    for (uint32_t i = 0; i < access->step_bits; i++) {
        access->step_register[i] = (uint8_t)(basis->vector_bits + i);
        access->step[i] = basis->offset[basis->vector_bits + i] & offset_mask;
    }
    for (uint32_t i = 0; i < access->warp_bits; i++) {
        access->warp[i] = at->thread[side->lane_bits + i];
        for (uint32_t remaining =
                 which == STORE && (work->store_copies >> i & 1) != 0 ? work->copy_of[i] : 0;
             remaining != 0; remaining &= remaining - 1) {
            const uint32_t bit = lowest_bit(remaining);
            access->warp[i] ^= at->thread[bit < BASIS_WARP ? bit - BASIS_LANE
                                                           : side->lane_bits + bit - BASIS_WARP];
        }
    }
    if (access->instruction == LILAC_PLAN_VECTOR) {
        for (uint32_t i = 0; i < side->lane_bits; i++) {
            access->lane[i] = at->thread[i];
        }
        return;
    }
    const uint32_t word = work->scale.word_bits;
    access->matrix_bits = basis->vector_bits - word;
    if (access->instruction == LILAC_PLAN_MATRIX) {
        for (uint32_t i = 0; i < 3; i++) {
            access->lane[i] = at->thread[2 + i];
        }
    } else {
        access->lane[0] = basis->offset[word - 1];
        access->lane[1] = at->thread[0];
        access->lane[2] = at->thread[1];
    }
    for (uint32_t i = 0; i < access->matrix_bits; i++) {
        access->lane[3 + i] = basis->offset[word + i];
    }
}

/* ---- the memory ----------------------------------------------------------------------------- */

static void set_memory(lilac_layout *memory, const uint32_t *columns, uint32_t bits,
                       const lilac_layout *source) {
    static const lilac_layout_dim offset = {"offset", 0}, block = {"block", 0};
    uint32_t start = 0;
    memory->out_count = source->out_count;
    memory->out_bits = source->out_bits;
    memcpy(memory->out, source->out, source->out_count * sizeof source->out[0]);
    memory->in_count = 2;
    memory->in[0] = offset;
    memory->in[1] = block;
    memory->in[0].bits = (uint8_t)bits;
    for (uint32_t i = 0; i < bits; i++) {
        memory->columns[i] = columns[i];
    }
    for (uint32_t in = 0; in < source->in_count; start += source->in[in++].bits) {
        if (strcmp(source->in[in].name, "block") == 0) {
            memory->in[1].bits = source->in[in].bits;
            memcpy(memory->columns + bits, source->columns + start,
                   source->in[in].bits * sizeof source->columns[0]);
        }
    }
    memory->in_bits = (uint8_t)(bits + memory->in[1].bits);
}

static uint32_t combine(const uint32_t *columns, uint32_t vector) {
    uint32_t sum = 0;
    for (; vector != 0; vector &= vector - 1) {
        sum ^= columns[lowest_bit(vector)];
    }
    return sum;
}

/* Computes the memory's basis as elements of the tensor: the basis of the choice, the independent
 * warps, the rounds. Returns its size. `inverse` maps vectors of the choice's basis to offsets. */
static uint32_t lay_out(uint32_t *columns, lilac_f2_basis *inverse, const staging_choice *choice,
                        const staging_work *work) {
    const uint32_t within = choice->basis.count - work->pair.round_bits;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < choice->basis.count; i++) {
        if (i == within) {
            bits += (uint32_t)__builtin_popcount(work->independent_warps);
        }
        const uint32_t vector = choice->basis.vector[i];
        const bool added = lilac_f2_basis_add(inverse, vector, UINT32_C(1) << bits);
        assert(added);
        (void)added;
        columns[bits++] = combine(
            work->origin, choice->in_target_basis ? combine(choice->origin, vector) : vector);
    }
    bits = within;
    for (uint32_t remaining = work->independent_warps; remaining != 0; remaining &= remaining - 1) {
        columns[bits++] = work->origin[BASIS_WARP + lowest_bit(remaining)];
    }
    return bits + work->pair.round_bits;
}

static void find_places(places *at, const staging_choice *choice, const lilac_f2_basis *inverse,
                        const staging_work *work, uint32_t which, uint32_t bits) {
    const staging_side *side = &choice->pair.side[which];
    const uint32_t own = (UINT32_C(1) << BASIS_BLOCK) - 1;
    uint32_t next =
        bits - work->pair.round_bits - (uint32_t)__builtin_popcount(work->independent_warps);
    at->bits = bits;
    at->half = (uint32_t)lilac_f2_basis_tag(inverse, choice->basis.half[which]);
    at->round_bits = work->pair.round_bits;
    for (uint32_t i = 0; i < side->register_bits; i++) {
        const uint32_t column = choice->pair.owner == STORE ? side->reg[i] & own : side->reg[i];
        at->reg[i] = (uint32_t)lilac_f2_basis_tag(inverse, column);
    }
    for (uint32_t i = 0; i < side->thread_bits; i++) {
        at->thread[i] = (uint32_t)lilac_f2_basis_tag(inverse, side->thread[i]);
    }
    for (uint32_t i = 0; i < side->lane_bits; i++) {
        at->within[i] = (uint32_t)lilac_f2_basis_tag(inverse, side->within[i]);
    }
    for (uint32_t remaining = work->independent_warps; remaining != 0; remaining &= remaining - 1) {
        at->thread[side->lane_bits + lowest_bit(remaining)] = UINT32_C(1) << next++;
    }
}

/* ---- barriers, blocks ----------------------------------------------------------------------- */

/* Warp bits that elements cross. */
static uint32_t crossed_warps(const staging_work *work) {
    return ((UINT32_C(1) << work->warp_bits) - 1) & ~work->independent_warps;
}

/* The cheapest sufficient barrier. A block has 16 named barriers for groups of warps, barrier 0
 * included; on some devices they are slower than the barrier of the block. */
static lilac_plan_barrier barrier_of(const staging_work *work) {
    enum { MAX_GROUP_BITS = 3 };
    const lilac_costs *costs = work->scale.arch->costs;
    if (work->remote) {
        return LILAC_PLAN_BARRIER_CLUSTER;
    }
    if (crossed_warps(work) == 0) {
        return LILAC_PLAN_BARRIER_WARP;
    }
    if (work->independent_warps != 0 &&
        __builtin_popcount(work->independent_warps) <= MAX_GROUP_BITS && costs != NULL &&
        costs->barrier_group < costs->barrier_block) {
        return LILAC_PLAN_BARRIER_GROUP;
    }
    return LILAC_PLAN_BARRIER_BLOCK;
}

static void set_blocks(lilac_plan_staging *staging, const staging_work *work,
                       const register_basis *load, const places *at) {
    const staging_side *side = &work->pair.side[LOAD];
    const uint32_t warps = side->lane_bits + side->warp_bits;
    staging->remote = work->remote;
    for (uint32_t i = 0; i < staging->load.step_bits; i++) {
        staging->load_block_step[i] = work->register_block[load->of[load->vector_bits + i]];
    }
    for (uint32_t i = 0; i < side->lane_bits; i++) {
        staging->load_block_lane[i] = work->thread_block[i];
    }
    for (uint32_t i = 0; i < side->warp_bits; i++) {
        staging->load_block_warp[i] = work->thread_block[side->lane_bits + i];
    }
    for (uint32_t i = 0; i < side->block_bits; i++) {
        staging->load_block_block[i] = work->thread_block[warps + i];
        staging->load_offset_block[i] = at->thread[warps + i];
    }
}

/* ---- construction --------------------------------------------------------------------------- */

/* Computes one side's access and the permutation next to it. */
static void set_side(lilac_plan_staging_step *step, register_basis *basis, const staging_work *work,
                     const staging_choice *choice, const places *at, uint32_t which) {
    const staging_side *side = &work->pair.side[which];
    lilac_plan_access *access = which == STORE ? &step->staging.store : &step->staging.load;
    uint8_t *rounds = which == STORE ? step->staging.store_round : step->staging.load_round;
    find_basis(basis, work, at, which, &choice->strategy);
    set_access(access, basis, work, at, which, &choice->strategy);
    count_access(access, work, which, side, at, choice->strategy.low[which]);
    change_basis(which == STORE ? &step->before : &step->after, basis, work, at, which);
    for (uint32_t i = 0; i < at->round_bits; i++) {
        rounds[i] = (uint8_t)(access->vector_bits + access->step_bits + i);
    }
}

/* Rewrites the permutation before the stores in terms of all of the source's registers, including
 * those that are not stored. */
static void number_source_registers(lilac_plan_permutation *before, const staging_work *work) {
    before->before_bits = work->source_register_bits;
    for (uint32_t i = 0; i < before->bits; i++) {
        uint64_t from = 0;
        for (uint64_t rest = before->from[i]; rest != 0; rest &= rest - 1) {
            from |= UINT64_C(1) << work->kept[lowest_bit(rest)];
        }
        before->from[i] = from;
    }
}

static void set_bound(lilac_plan_bound *bound, const lilac_plan_staging *staging,
                      const staging_work *work, bool row_major) {
    bound->store_wavefronts = work->least_wavefronts[STORE];
    bound->load_wavefronts = work->least_wavefronts[LOAD];
    bound->floor_wavefronts = work->floor_wavefronts[STORE] + work->floor_wavefronts[LOAD];
    bound->met = (staging->store.wavefronts + staging->load.wavefronts) << staging->round_bits ==
                 bound->store_wavefronts + bound->load_wavefronts;
    bound->by_price = !bound->met && !row_major && work->has_target_basis;
}

bool lilac_plan_staging_init(lilac_plan_staging_step *result, const lilac_layout *source,
                             const lilac_layout *target, uint32_t element_bits,
                             const lilac_plan_options *options, const lilac_arch *arch,
                             lilac_reason *why) {
    lilac_plan_staging *staging = &result->staging;
    staging_work work;
    staging_choice choice;
    uint32_t columns[BASIS_BITS];
    lilac_f2_basis inverse;
    lilac_f2_basis_init(&inverse);
    places at[2];
    register_basis basis[2];
    const bool row_major = options != NULL && options->strategy == LILAC_PLAN_UNSWIZZLED;
    if (!lilac_plan_staging_prepare(&work, source, target, element_bits, options, arch, why)) {
        return false;
    }
    if (!lilac_plan_staging_choose(&choice, &work, !row_major)) {
        return lilac_layout_refuse(why, "no memory layout was found for the chosen instructions");
    }
    if (row_major && !lilac_plan_row_major(&choice, &work, source, why)) {
        return false;
    }
    memset(staging, 0, sizeof *staging);
    const uint32_t bits = lay_out(columns, &inverse, &choice, &work);
    set_memory(&staging->memory, columns, bits, source);
    staging->round_bits = work.pair.round_bits;
    staging->store_copies = work.store_copies;
    if (choice.strategy.instruction[STORE] == LILAC_PLAN_VECTOR) {
        staging->store_copy_lanes = idle_lanes(
            work.copy_lanes, lilac_plan_transaction_lane_bits(&work.scale, &work.pair.side[STORE],
                                                              STORE, choice.strategy.low[STORE]));
    }
    staging->bytes = (uint64_t)work.scale.element_bytes << (bits - work.pair.round_bits);
    staging->family_bits = choice.basis.family_bits;
    for (uint32_t side = 0; side < 2; side++) {
        find_places(&at[side], &choice, &inverse, &work, side, bits);
        set_side(result, &basis[side], &work, &choice, &at[side], side);
    }
    number_source_registers(&result->before, &work);
    set_blocks(staging, &work, &basis[LOAD], &at[LOAD]);
    staging->barrier = barrier_of(&work);
    staging->barrier_warps = crossed_warps(&work);
    set_bound(&result->bound, staging, &work, row_major);
    return true;
}

/* ---- prices --------------------------------------------------------------------------------- */

/* Adds the instructions of one side, each of 2^lane_bits lanes and lane_bytes bytes per lane. */
static void price_side(lilac_plan_price *price, uint32_t which, uint64_t instructions,
                       uint64_t wavefronts, uint64_t lane_bytes, uint32_t lane_bits) {
    enum { WORD_BYTES = 4 };
    const uint64_t bytes = (instructions * lane_bytes) << lane_bits;
    if (which == STORE) {
        price->stores += instructions;
        price->store_wavefronts += wavefronts;
        price->store_bytes += bytes;
    } else {
        price->loads += instructions;
        price->load_wavefronts += wavefronts;
        price->load_bytes += bytes;
    }
    /* An element narrower than a word is extracted from a word or inserted into one. */
    price->packs += lane_bytes < WORD_BYTES ? instructions : 0;
}

/* log2 of the lanes of a warp that take part. */
static uint32_t active_lanes(const staging_work *work, const staging_choice *choice,
                             uint32_t which) {
    const staging_side *side = &work->pair.side[which];
    const bool vector = choice->strategy.instruction[which] == LILAC_PLAN_VECTOR;
    if (which == LOAD || !vector) {
        return side->lane_bits;
    }
    const uint32_t lanes =
        lilac_plan_transaction_lane_bits(&work->scale, side, which, choice->strategy.low[which]);
    return side->lane_bits - (uint32_t)__builtin_popcount(idle_lanes(work->copy_lanes, lanes));
}

static uint64_t barriers_of(uint32_t round_bits, bool remote) {
    return (UINT64_C(2) << round_bits) - (remote ? 0 : 1);
}

void lilac_plan_price_staging(lilac_plan_price *price, const lilac_plan_staging *staging,
                              uint32_t element_bits, uint32_t warps) {
    (void)element_bits; /* the accesses contain the element size */
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_plan_access *access = side == STORE ? &staging->store : &staging->load;
        price_side(
            price, side, access->instructions << staging->round_bits,
            access->wavefronts << staging->round_bits,
            (uint64_t)access->element_bytes << access->vector_bits,
            access->lane_bits -
                (side == STORE ? (uint32_t)__builtin_popcount(staging->store_copy_lanes) : 0));
    }
    price->barriers += barriers_of(staging->round_bits, staging->remote) * warps;
}

bool lilac_plan_staging_estimate(lilac_plan_price *price, lilac_plan_barrier *barrier,
                                 const lilac_layout *source, const lilac_layout *target,
                                 uint32_t element_bits, const lilac_plan_options *options,
                                 const lilac_arch *arch) {
    staging_work work;
    staging_choice choice;
    if (options != NULL && options->strategy == LILAC_PLAN_UNSWIZZLED) {
        lilac_plan_staging_step step;
        if (!lilac_plan_staging_init(&step, source, target, element_bits, options, arch, NULL)) {
            return false;
        }
        lilac_plan_price_staging(price, &step.staging, element_bits,
                                 UINT32_C(1) << step.staging.load.warp_bits);
        *barrier = step.staging.barrier;
        return true;
    }
    if (!lilac_plan_staging_prepare(&work, source, target, element_bits, options, arch, NULL) ||
        !lilac_plan_staging_choose(&choice, &work, false)) {
        return false;
    }
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t steps =
            work.pair.side[side].register_bits + work.warp_bits -
            (side == STORE ? (uint32_t)__builtin_popcount(work.store_copies) : 0);
        const uint64_t elements = UINT64_C(1) << steps;
        price_side(price, side, choice.counts.instructions[side], choice.counts.wavefronts[side],
                   work.scale.element_bytes * elements / choice.counts.instructions[side],
                   active_lanes(&work, &choice, side));
    }
    price->barriers += barriers_of(work.pair.round_bits, work.remote) << work.warp_bits;
    *barrier = barrier_of(&work);
    return true;
}
