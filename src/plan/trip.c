/* Trips through shared memory: a way is chosen (trip_ways.c), a memory made for it (swizzle.c), and
 * here both sides' accesses are read off it.
 *
 *   offset(x) = M⁻¹ x, so each column of a side is a place:
 *
 *      registers   the low directions and the rounds span some of them exactly; what is left of
 *                  the others, these parts taken out, numbers the instructions. So a basis of the
 *                  registers, and the renaming is the change to it.
 *      lanes       addresses; those within a matrix's row are the row's own business
 *
 *   new register bits      0 … v-1           …             …
 *                          vector, matrix  | steps       | rounds
 */
#include "trip.h"

#include <assert.h>
#include <string.h>

/* Both sides' columns as offsets, in the frame of the choice. */
typedef struct places {
    uint32_t bits, round_bits;
    uint32_t reg[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t thread[MOST_THREAD_COLUMNS];
    uint64_t within[LILAC_PLAN_MAX_LANE_BITS];
} places;

/* ---- wavefronts --------------------------------------------------------------------------- */

/* log2 of the wavefronts of a transaction of lanes at these offsets. */
static uint32_t conflict_bits(const trip_scale *scale, uint32_t low, const uint64_t *lanes,
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

static void count_access(lilac_plan_access *access, const trip_work *work, uint32_t which,
                         const trip_side *side, const places *at, uint32_t low) {
    const trip_scale *scale = &work->scale;
    uint32_t lanes = lilac_plan_trip_lanes(scale, side, which, low);
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

/* A basis of a side's registers, by its offsets, in the order of the new register bits. */
typedef struct register_basis {
    uint32_t vector_bits, count;
    uint32_t offset[LILAC_PLAN_MAX_REGISTER_BITS];
    uint32_t of[LILAC_PLAN_MAX_REGISTER_BITS]; /* a step is what is left of this register */
} register_basis;

/* Registers that load from different blocks differ though their offsets may not. */
static uint32_t with_block(const trip_work *work, uint32_t which, uint32_t offset, uint32_t i) {
    return which == LOAD ? offset | work->register_block[i] << 28 : offset;
}

static void find_basis(register_basis *basis, const trip_work *work, const places *at,
                       uint32_t which, uint32_t count, const trip_way *way, uint32_t half) {
    const bool matrix = way->instruction[which] != LILAC_PLAN_VECTOR;
    const uint32_t units =
        matrix ? row_registers(way->instruction[which], &work->scale) : way->low[which];
    const uint32_t rounds = ((UINT32_C(1) << at->round_bits) - 1) << (at->bits - at->round_bits);
    const uint32_t aside = rounds | ((UINT32_C(1) << way->low[which]) - 1);
    lilac_f2_basis steps;
    lilac_f2_basis_init(&steps);
    basis->count = 0;
    for (; basis->count < units; basis->count++) {
        basis->offset[basis->count] = UINT32_C(1) << basis->count;
    }
    if (half != 0) {
        (void)lilac_f2_basis_add(&steps, half, 0);
        basis->offset[basis->count++] = half;
    }
    basis->vector_bits = basis->count;
    for (uint32_t i = 0; i < count && basis->count < count - at->round_bits; i++) {
        const uint32_t step = with_block(work, which, at->reg[i] & ~aside, i);
        if (lilac_f2_basis_add(&steps, step, 0)) {
            basis->of[basis->count] = i;
            basis->offset[basis->count++] = step;
        }
    }
    for (uint32_t left = rounds; left != 0; left &= left - 1) {
        basis->offset[basis->count++] = left & -left;
    }
    assert(basis->count == count);
    if (matrix) {
        basis->vector_bits += min_u32(count - at->round_bits - basis->vector_bits, 2);
    }
}

/* The new register bits as sums of the old ones, and the old as sums of the new. */
static void rename_registers(lilac_plan_permutation *renaming, const register_basis *basis,
                             const trip_work *work, const places *at, uint32_t which, bool back) {
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
    renaming->before_bits = renaming->bits = basis->count;
    for (uint32_t i = 0; i < basis->count; i++) {
        const uint64_t rest = lilac_f2_basis_reduce(&known, to[i], &renaming->from[i]);
        assert(rest == 0);
        (void)rest;
    }
}

static void set_access(lilac_plan_access *access, const register_basis *basis,
                       const trip_work *work, const places *at, uint32_t which,
                       const trip_way *way) {
    const trip_side *side = &work->pair.side[which];
    const uint32_t offset_mask = (UINT32_C(1) << 28) - 1;
    access->instruction = way->instruction[which];
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
        for (uint32_t left = which == STORE && (work->store_copies >> i & 1) != 0 ? work->copy_of[i]
                                                                                  : 0;
             left != 0; left &= left - 1) {
            const uint32_t bit = lowest_bit(left);
            access->warp[i] ^= at->thread[bit < FRAME_WARP ? bit - FRAME_LANE
                                                           : side->lane_bits + bit - FRAME_WARP];
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

/* The memory's basis as elements of the tensor: the choice's, the peeled warps between it and the
 * rounds. Returns how many, and the frame's vectors with their offsets. */
static uint32_t lay_out(uint32_t *columns, lilac_f2_basis *inverse, const trip_choice *choice,
                        const trip_work *work) {
    const uint32_t within = choice->basis.count - work->pair.round_bits;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < choice->basis.count; i++) {
        if (i == within) {
            bits += (uint32_t)__builtin_popcount(work->peeled);
        }
        const uint32_t vector = choice->basis.vector[i];
        const bool added = lilac_f2_basis_add(inverse, vector, UINT32_C(1) << bits);
        assert(added);
        (void)added;
        columns[bits++] =
            combine(work->origin, choice->turned ? combine(choice->origin, vector) : vector);
    }
    bits = within;
    for (uint32_t left = work->peeled; left != 0; left &= left - 1) {
        columns[bits++] = work->origin[FRAME_WARP + lowest_bit(left)];
    }
    return bits + work->pair.round_bits;
}

static void find_places(places *at, const trip_pair *frame, const lilac_f2_basis *inverse,
                        const trip_work *work, uint32_t which, uint32_t bits) {
    const trip_side *side = &frame->side[which];
    const uint32_t own = (UINT32_C(1) << FRAME_BLOCK) - 1;
    uint32_t next = bits - work->pair.round_bits - (uint32_t)__builtin_popcount(work->peeled);
    at->bits = bits;
    at->round_bits = work->pair.round_bits;
    for (uint32_t i = 0; i < side->register_bits; i++) {
        const uint32_t column = frame->owner == STORE ? side->reg[i] & own : side->reg[i];
        at->reg[i] = (uint32_t)lilac_f2_basis_tag(inverse, column);
    }
    for (uint32_t i = 0; i < side->thread_bits; i++) {
        at->thread[i] = (uint32_t)lilac_f2_basis_tag(inverse, side->thread[i]);
    }
    for (uint32_t i = 0; i < side->lane_bits; i++) {
        at->within[i] = (uint32_t)lilac_f2_basis_tag(inverse, side->within[i]);
    }
    for (uint32_t left = work->peeled; left != 0; left &= left - 1) {
        at->thread[side->lane_bits + lowest_bit(left)] = UINT32_C(1) << next++;
    }
}

/* ---- barriers, blocks ----------------------------------------------------------------------- */

/* Warp bits that data crosses. */
static uint32_t crossed_warps(const trip_work *work) {
    return ((UINT32_C(1) << work->warp_bits) - 1) & ~work->peeled;
}

/* Groups have named barriers, of which a block has 16 with its own. On some devices these are
 * dearer than the block's. */
static lilac_plan_barrier barrier_of(const trip_work *work) {
    enum { MOST_GROUP_BITS = 3 };
    const lilac_costs *costs = work->scale.arch->costs;
    if (work->remote) {
        return LILAC_PLAN_BARRIER_CLUSTER;
    }
    if (crossed_warps(work) == 0) {
        return LILAC_PLAN_BARRIER_WARP;
    }
    if (work->peeled != 0 && __builtin_popcount(work->peeled) <= MOST_GROUP_BITS && costs != NULL &&
        costs->barrier_group < costs->barrier_block) {
        return LILAC_PLAN_BARRIER_GROUP;
    }
    return LILAC_PLAN_BARRIER_BLOCK;
}

static void set_blocks(lilac_plan_trip *trip, const trip_work *work, const register_basis *load,
                       const places *at) {
    const trip_side *side = &work->pair.side[LOAD];
    const uint32_t warps = side->lane_bits + side->warp_bits;
    trip->remote = work->remote;
    for (uint32_t i = 0; i < trip->load.step_bits; i++) {
        trip->load_block_step[i] = work->register_block[load->of[load->vector_bits + i]];
    }
    for (uint32_t i = 0; i < side->lane_bits; i++) {
        trip->load_block_lane[i] = work->thread_block[i];
    }
    for (uint32_t i = 0; i < side->warp_bits; i++) {
        trip->load_block_warp[i] = work->thread_block[side->lane_bits + i];
    }
    for (uint32_t i = 0; i < side->block_bits; i++) {
        trip->load_block_block[i] = work->thread_block[warps + i];
        trip->load_offset_block[i] = at->thread[warps + i];
    }
}

/* ---- whole trips ------------------------------------------------------------------------------
 */

bool lilac_plan_trip_init(lilac_plan_trip *result, lilac_plan_permutation *before,
                          lilac_plan_permutation *after, lilac_plan_bound *bound,
                          const lilac_layout *source, const lilac_layout *target,
                          uint32_t element_bits, const lilac_plan_options *options,
                          const lilac_arch *arch, lilac_reason *why) {
    trip_work work;
    trip_choice choice;
    uint32_t columns[FRAME_BITS];
    lilac_f2_basis inverse;
    lilac_f2_basis_init(&inverse);
    places at[2];
    register_basis basis[2];
    const bool plain = options != NULL && options->way == LILAC_PLAN_UNSWIZZLED;
    if (!lilac_plan_trip_prepare(&work, source, target, element_bits, options, arch, why)) {
        return false;
    }
    if (!lilac_plan_trip_choose(&choice, &work, !plain)) {
        return lilac_plan_trip_refuse(why, "no memory has the directions that were found");
    }
    if (plain && !lilac_plan_row_major(&choice, &work, source, why)) {
        return false;
    }
    memset(result, 0, sizeof *result);
    const uint32_t bits = lay_out(columns, &inverse, &choice, &work);
    set_memory(&result->memory, columns, bits, source);
    result->round_bits = work.pair.round_bits;
    result->store_copies = work.store_copies;
    if (choice.way.instruction[STORE] == LILAC_PLAN_VECTOR) {
        result->store_copy_lanes =
            idle_lanes(work.copy_lanes, lilac_plan_trip_lanes(&work.scale, &work.pair.side[STORE],
                                                              STORE, choice.way.low[STORE]));
    }
    result->bytes = (uint64_t)work.scale.element_bytes << (bits - work.pair.round_bits);
    result->family_bits = choice.basis.family_bits;
    for (uint32_t side = 0; side < 2; side++) {
        lilac_plan_access *access = side == STORE ? &result->store : &result->load;
        lilac_plan_permutation *renaming = side == STORE ? before : after;
        uint8_t *rounds = side == STORE ? result->store_round : result->load_round;
        const trip_side *columns_of = &work.pair.side[side];
        find_places(&at[side], &choice.frame, &inverse, &work, side, bits);
        const uint32_t half = (uint32_t)lilac_f2_basis_tag(&inverse, choice.basis.half[side]);
        find_basis(&basis[side], &work, &at[side], side, columns_of->register_bits, &choice.way,
                   half);
        set_access(access, &basis[side], &work, &at[side], side, &choice.way);
        count_access(access, &work, side, columns_of, &at[side], choice.way.low[side]);
        rename_registers(renaming, &basis[side], &work, &at[side], side, side == LOAD);
        for (uint32_t i = 0; i < result->round_bits; i++) {
            rounds[i] = (uint8_t)(access->vector_bits + access->step_bits + i);
        }
    }
    before->before_bits = work.source_register_bits;
    for (uint32_t i = 0; i < before->bits; i++) {
        uint64_t from = 0;
        for (uint64_t left = before->from[i]; left != 0; left &= left - 1) {
            from |= UINT64_C(1) << work.kept[lowest_bit(left)];
        }
        before->from[i] = from;
    }
    set_blocks(result, &work, &basis[LOAD], &at[LOAD]);
    result->barrier = barrier_of(&work);
    result->barrier_warps = crossed_warps(&work);
    bound->store_wavefronts = work.least_wavefronts[STORE];
    bound->load_wavefronts = work.least_wavefronts[LOAD];
    bound->floor_wavefronts = work.floor_wavefronts[STORE] + work.floor_wavefronts[LOAD];
    bound->met = (result->store.wavefronts + result->load.wavefronts) << result->round_bits ==
                 bound->store_wavefronts + bound->load_wavefronts;
    bound->by_price = !bound->met && !plain && work.can_turn;
    return true;
}

/* ---- prices --------------------------------------------------------------------------------- */

/* A side's instructions, 2^lane_bits lanes of 2^low elements each. */
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
    /* Less than a word: taken out of one, or put into one, by itself. */
    price->packs += lane_bytes < WORD_BYTES ? instructions : 0;
}

/* log2 of the lanes of a warp that take part. */
static uint32_t active_lanes(const trip_work *work, const trip_choice *choice, uint32_t which) {
    const trip_side *side = &work->pair.side[which];
    const bool vector = choice->way.instruction[which] == LILAC_PLAN_VECTOR;
    if (which == LOAD || !vector) {
        return side->lane_bits;
    }
    const uint32_t lanes = lilac_plan_trip_lanes(&work->scale, side, which, choice->way.low[which]);
    return side->lane_bits - (uint32_t)__builtin_popcount(idle_lanes(work->copy_lanes, lanes));
}

static uint64_t barriers_of(uint32_t round_bits, bool remote) {
    return (UINT64_C(2) << round_bits) - (remote ? 0 : 1);
}

void lilac_plan_price_trip(lilac_plan_price *price, const lilac_plan_trip *trip,
                           uint32_t element_bits, uint32_t warps) {
    (void)element_bits; /* the accesses know */
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_plan_access *access = side == STORE ? &trip->store : &trip->load;
        price_side(price, side, access->instructions << trip->round_bits,
                   access->wavefronts << trip->round_bits,
                   (uint64_t)access->element_bytes << access->vector_bits,
                   access->lane_bits -
                       (side == STORE ? (uint32_t)__builtin_popcount(trip->store_copy_lanes) : 0));
    }
    price->barriers += barriers_of(trip->round_bits, trip->remote) * warps;
}

bool lilac_plan_trip_estimate(lilac_plan_price *price, lilac_plan_barrier *barrier,
                              const lilac_layout *source, const lilac_layout *target,
                              uint32_t element_bits, const lilac_plan_options *options,
                              const lilac_arch *arch, lilac_reason *why) {
    trip_work work;
    trip_choice choice;
    if (options != NULL && options->way == LILAC_PLAN_UNSWIZZLED) {
        lilac_plan_trip trip;
        lilac_plan_permutation before, after;
        lilac_plan_bound bound;
        if (!lilac_plan_trip_init(&trip, &before, &after, &bound, source, target, element_bits,
                                  options, arch, why)) {
            return false;
        }
        lilac_plan_price_trip(price, &trip, element_bits, UINT32_C(1) << trip.load.warp_bits);
        *barrier = trip.barrier;
        return true;
    }
    if (!lilac_plan_trip_prepare(&work, source, target, element_bits, options, arch, why)) {
        return false;
    }
    if (!lilac_plan_trip_choose(&choice, &work, false)) {
        return lilac_plan_trip_refuse(why, "no memory has the directions that were found");
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
