/* The frame of a trip: both layouts in coordinates of the source.
 *
 * Inserting the source's columns, threads first, into an echelon whose tags are their own bits of
 * the frame gives everything at once: a column that depends on those before it is a copy, and
 * reducing any other vector leaves its coordinates in the tag. Then
 *
 *   blocks      the source's block columns come last, so the lower coordinates are those of a
 *               block's own memory, and the block part of the target's columns says whose memory
 *               they load from
 *   peeled      a warp bit that moves one and the same direction on both sides, and nothing else
 *               does: groups of warps that differ in it never meet
 *   common      R_A ∩ R_B: the target's registers in echelon form by their highest bits; rows that
 *               have only register bits
 */
#include "trip.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool lilac_plan_trip_refuse(lilac_reason *why, const char *format, ...) {
    if (why != NULL) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(why->text, sizeof why->text, format, arguments);
        va_end(arguments);
    }
    return false;
}

/* ---- reading layouts ---------------------------------------------------------------------- */

static bool read_input(uint32_t *columns, uint32_t *bits, uint32_t most, const lilac_layout *layout,
                       uint32_t in, uint32_t start, lilac_reason *why) {
    if (layout->in[in].bits > most) {
        return lilac_plan_trip_refuse(why, "2^%u %ss are more than any device has",
                                      layout->in[in].bits, layout->in[in].name);
    }
    *bits = layout->in[in].bits;
    for (uint32_t i = 0; i < *bits; i++) {
        columns[i] = (uint32_t)layout->columns[start + i];
    }
    return true;
}

static bool read_side(trip_side *side, const lilac_layout *layout, lilac_reason *why) {
    uint32_t start = 0, warp[LILAC_PLAN_MAX_WARP_BITS], block[LILAC_PLAN_MAX_BLOCK_BITS];
    side->register_bits = side->lane_bits = side->warp_bits = side->block_bits = 0;
    for (uint32_t in = 0; in < layout->in_count; start += layout->in[in++].bits) {
        const char *name = layout->in[in].name;
        bool known = true;
        if (strcmp(name, "register") == 0) {
            known = read_input(side->reg, &side->register_bits, LILAC_PLAN_MAX_REGISTER_BITS,
                               layout, in, start, why);
        } else if (strcmp(name, "lane") == 0) {
            known = read_input(side->thread, &side->lane_bits, LILAC_PLAN_MAX_LANE_BITS, layout, in,
                               start, why);
        } else if (strcmp(name, "warp") == 0) {
            known = read_input(warp, &side->warp_bits, LILAC_PLAN_MAX_WARP_BITS, layout, in, start,
                               why);
        } else if (strcmp(name, "block") == 0) {
            known = read_input(block, &side->block_bits, LILAC_PLAN_MAX_BLOCK_BITS, layout, in,
                               start, why);
        } else {
            return lilac_plan_trip_refuse(
                why, "a distributed layout has no input '%s': register, lane, warp, block", name);
        }
        if (!known) {
            return false;
        }
    }
    memcpy(side->thread + side->lane_bits, warp, side->warp_bits * sizeof warp[0]);
    memcpy(side->thread + side->lane_bits + side->warp_bits, block,
           side->block_bits * sizeof block[0]);
    side->thread_bits = side->lane_bits + side->warp_bits + side->block_bits;
    return true;
}

static bool same_outputs(const lilac_layout *a, const lilac_layout *b) {
    bool same = a->out_count == b->out_count;
    for (uint32_t i = 0; same && i < a->out_count; i++) {
        same = a->out[i].bits == b->out[i].bits && strcmp(a->out[i].name, b->out[i].name) == 0;
    }
    return same;
}

/* The target with its outputs in the source's order. */
static const lilac_layout *in_order(lilac_layout *ordered, const lilac_layout *source,
                                    const lilac_layout *target, lilac_reason *why) {
    const char *names[LILAC_LAYOUT_MAX_DIMS + 1] = {NULL};
    if (same_outputs(source, target)) {
        return target;
    }
    for (uint32_t i = 0; i < source->out_count; i++) {
        names[i] = source->out[i].name;
    }
    if (source->out_count != target->out_count ||
        !lilac_layout_order_outs(ordered, target, names, NULL) || !same_outputs(source, ordered)) {
        (void)lilac_plan_trip_refuse(why, "the two layouts are of different tensors");
        return NULL;
    }
    return ordered;
}

static bool check_threads(const trip_side *a, const trip_side *b, const lilac_arch *arch,
                          lilac_reason *why) {
    if (1U << a->lane_bits != arch->warp_size || a->lane_bits != b->lane_bits) {
        return lilac_plan_trip_refuse(why, "layouts of 2^%u and 2^%u lanes a warp, and %s has %u",
                                      a->lane_bits, b->lane_bits, arch->name, arch->warp_size);
    }
    if (a->warp_bits != b->warp_bits || 1U << a->warp_bits > arch->max_warps) {
        return lilac_plan_trip_refuse(
            why, "layouts of 2^%u and 2^%u warps, and a block of %s has at most %u", a->warp_bits,
            b->warp_bits, arch->name, arch->max_warps);
    }
    if (a->block_bits != b->block_bits) {
        return lilac_plan_trip_refuse(why, "layouts of 2^%u and 2^%u blocks", a->block_bits,
                                      b->block_bits);
    }
    return true;
}

static bool set_scale(trip_scale *scale, uint32_t element_bits, const lilac_arch *arch,
                      lilac_reason *why) {
    const uint32_t bytes = element_bits == 1 ? 1 : element_bits / 8;
    if ((element_bits != 1 && element_bits % 8 != 0) || bytes == 0 || (bytes & (bytes - 1)) != 0 ||
        bytes > arch->vector_bytes) {
        return lilac_plan_trip_refuse(
            why,
            "elements of %u bits: shared memory takes elements of whole bytes, a power of two of "
            "at most %u",
            element_bits, arch->vector_bytes);
    }
    scale->arch = arch;
    scale->element_bytes = bytes;
    scale->word_bits = log2_of(max_u32(arch->bank_bytes / bytes, 1));
    scale->element_word_bits = log2_of(max_u32(bytes / arch->bank_bytes, 1));
    scale->bank_count_bits = log2_of(arch->banks);
    scale->bank_bits = log2_of(max_u32(arch->bank_bytes * arch->banks / bytes, 1));
    return true;
}

/* ---- coordinates --------------------------------------------------------------------------- */

/* Columns in coordinates of the echelon. */
static void convert(uint32_t *columns, uint32_t count, const lilac_f2_basis *echelon) {
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = (uint32_t)lilac_f2_basis_tag(echelon, columns[i]);
    }
}

/* Adds a column under its own bit of the frame: the bit, or what a dependent column is. */
static uint32_t add_column(lilac_f2_basis *echelon, uint32_t column, uint32_t bit) {
    const uint32_t own = UINT32_C(1) << bit;
    return lilac_f2_basis_add(echelon, column, own) ? own
                                                    : (uint32_t)lilac_f2_basis_tag(echelon, column);
}

static uint32_t thread_bit(const trip_side *side, uint32_t index) {
    return index < side->lane_bits ? FRAME_LANE + index
           : index < side->lane_bits + side->warp_bits
               ? FRAME_WARP + index - side->lane_bits
               : FRAME_BLOCK + index - side->lane_bits - side->warp_bits;
}

/* Makes the source nearly the identity and notes its copies. */
static void own_frame(trip_work *work, lilac_f2_basis *echelon) {
    trip_side *a = &work->pair.side[STORE];
    const uint32_t own = a->lane_bits + a->warp_bits;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < own; i++) {
        const uint32_t bit = thread_bit(a, i);
        work->origin[bit] = a->thread[i];
        a->thread[i] = add_column(echelon, a->thread[i], bit);
        if (a->thread[i] == UINT32_C(1) << bit) {
            work->pair.whole |= a->thread[i];
        } else if (i >= a->lane_bits) {
            work->store_copies |= UINT32_C(1) << (i - a->lane_bits);
            work->copy_of[i - a->lane_bits] = a->thread[i];
            a->thread[i] = 0; /* stores nothing */
        } else {
            work->copy_lanes |= UINT32_C(1) << i;
        }
    }
    for (uint32_t i = 0; i < a->register_bits; i++) {
        const uint32_t column = a->reg[i];
        if (lilac_f2_basis_add(echelon, column, UINT32_C(1) << kept)) {
            work->origin[kept] = column;
            work->kept[kept] = (uint8_t)i;
            a->reg[kept] = UINT32_C(1) << kept;
            kept++;
        }
    }
    work->source_register_bits = a->register_bits;
    a->register_bits = kept;
    work->pair.registers = (UINT32_C(1) << kept) - 1;
    work->pair.whole |= work->pair.registers;
    for (uint32_t i = 0; i < a->block_bits; i++) {
        work->origin[FRAME_BLOCK + i] = a->thread[own + i];
        a->thread[own + i] = add_column(echelon, a->thread[own + i], FRAME_BLOCK + i);
        work->blocks |= a->thread[own + i] & UINT32_C(1) << (FRAME_BLOCK + i);
    }
}

/* Which blocks a side's lanes reach into, whose numbers `blocks` are (NULL: their own). */
static void follow_lanes(trip_side *side, const uint32_t *blocks) {
    lilac_f2_basis reached;
    lilac_f2_basis_init(&reached);
    side->merged_lane = 2;
    side->blocks[0] = 0;
    for (uint32_t i = 0; i < side->lane_bits; i++) {
        const uint32_t block = blocks == NULL ? 0 : blocks[i];
        const bool further = lilac_f2_basis_add(&reached, block, side->thread[i]);
        if (i < side->merged_lane && (block != 0 || side->thread[i] == 0)) {
            side->merged_lane = i;
        }
        side->within[i] =
            further ? 0 : side->thread[i] ^ (uint32_t)lilac_f2_basis_tag(&reached, block);
        side->blocks[i + 1] = side->blocks[i] + further;
    }
}

/* Whose memory the target's columns load from; what is left of them is places in it. A block bit
 * that the source does not need to tell elements apart means copies: of those, the own ones. */
static void split_blocks(trip_work *work) {
    trip_side *a = &work->pair.side[STORE];
    trip_side *b = &work->pair.side[LOAD];
    const uint32_t own = b->lane_bits + b->warp_bits;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        work->register_block[i] = b->reg[i] >> FRAME_BLOCK;
        work->remote = work->remote || work->register_block[i] != 0;
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        uint32_t wanted = 0;
        if (i >= own) {
            wanted = UINT32_C(1) << (i - own);
            if (a->thread[i] != UINT32_C(1) << (FRAME_BLOCK + i - own)) {
                b->thread[i] ^= wanted << FRAME_BLOCK ^ a->thread[i];
            }
        }
        work->thread_block[i] = b->thread[i] >> FRAME_BLOCK;
        work->remote = work->remote || work->thread_block[i] != wanted;
        b->thread[i] &= (UINT32_C(1) << FRAME_BLOCK) - 1;
    }
    follow_lanes(a, NULL);
    follow_lanes(b, work->thread_block);
    a->thread_bits = own; /* a block stores to its own memory, wherever it is */
}

/* Warp bits that no data crosses. They leave the pair. */
static void peel(trip_work *work) {
    trip_side *a = &work->pair.side[STORE], *b = &work->pair.side[LOAD];
    uint32_t once = 0, twice = 0;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        twice |= once & b->reg[i];
        once |= b->reg[i];
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        twice |= once & b->thread[i];
        once |= b->thread[i];
    }
    for (uint32_t i = 0; i < b->warp_bits; i++) {
        const uint32_t own = UINT32_C(1) << (FRAME_WARP + i), at = b->lane_bits + i;
        if ((work->pair.whole & own) != 0 && b->thread[at] == own && (twice & own) == 0) {
            work->peeled |= UINT32_C(1) << i;
            work->pair.whole &= ~own;
            a->thread[at] = b->thread[at] = 0;
        }
    }
}

/* R_A ∩ R_B independent of both sides' threads, as many directions as there are. First those that
 * are a word's register of both sides, or of one; then registers of both; then sums. */
static void find_common(trip_work *work) {
    trip_pair *pair = &work->pair;
    const trip_side *b = &pair->side[LOAD];
    lilac_f2_basis registers, known;
    lilac_f2_basis_init(&registers);
    lilac_f2_basis_init(&known);
    uint32_t word = work->scale.word_bits;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        (void)lilac_f2_basis_add(&registers, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        (void)lilac_f2_basis_add(&known, b->thread[i] & FRAME_REGISTERS, 0);
    }
    pair->common_count = 0;
    for (uint32_t pass = 0; pass < 4; pass++) {
        const uint32_t count = pass < 2    ? min_u32(word, b->register_bits)
                               : pass == 2 ? b->register_bits
                                           : FRAME_LANE;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t vector = 0;
            if (pass == 0) {
                vector = b->reg[i] == UINT32_C(1) << i ? b->reg[i] : 0;
            } else if (pass == 1) {
                const uint32_t own = pair->registers & UINT32_C(1) << i;
                vector = own != 0 && lilac_f2_basis_contains(&registers, own) ? own
                         : (b->reg[i] & ~pair->registers) == 0                ? b->reg[i]
                                                                              : 0;
            } else if (pass == 2) {
                const bool unit = (b->reg[i] & (b->reg[i] - 1)) == 0;
                vector = unit && (b->reg[i] & ~pair->registers) == 0 ? b->reg[i] : 0;
            } else {
                vector = (registers.pivots >> i & 1) != 0 ? (uint32_t)registers.vector[i] : 0;
            }
            if (vector != 0 && lilac_f2_basis_add(&known, vector, 0)) {
                pair->common[pair->common_count++] = vector;
            }
        }
    }
}

/* ---- the whole ------------------------------------------------------------------------------ */

static uint64_t wavefronts_of(const trip_scale *scale, uint32_t bits) {
    const uint64_t bytes = (uint64_t)scale->element_bytes << bits;
    const uint64_t clock = scale->arch->banks * scale->arch->bank_bytes;
    return (bytes + clock - 1) / clock;
}

/* Each byte of a block stored once, and each byte of a warp loaded once by it. */
static void find_floor(trip_work *work) {
    const trip_side *b = &work->pair.side[LOAD];
    lilac_f2_basis warp;
    lilac_f2_basis_init(&warp);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        bits += lilac_f2_basis_add(&warp, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < b->lane_bits; i++) {
        bits += lilac_f2_basis_add(&warp, b->thread[i] | work->thread_block[i] << FRAME_BLOCK, 0);
    }
    work->floor_wavefronts[STORE] =
        wavefronts_of(&work->scale, (uint32_t)__builtin_popcount(work->pair.whole) +
                                        (uint32_t)__builtin_popcount(work->peeled));
    work->floor_wavefronts[LOAD] = wavefronts_of(&work->scale, bits) << work->warp_bits;
}

static uint64_t bytes_of(const trip_work *work) {
    return (uint64_t)work->scale.element_bytes
           << (__builtin_popcount(work->pair.whole) + __builtin_popcount(work->peeled));
}

/* Rounds enough for so much scratch memory; false when there cannot be. */
static bool fit(trip_work *work, uint64_t scratch) {
    uint64_t bytes = bytes_of(work);
    work->pair.round_bits = 0;
    for (; bytes > scratch && work->pair.round_bits < work->pair.common_count; bytes /= 2) {
        work->pair.round_bits++;
    }
    return bytes <= scratch;
}

static bool find_rounds(trip_work *work, const lilac_plan_options *options, lilac_reason *why) {
    const uint64_t device = work->scale.arch->shared_bytes;
    const uint64_t given = options != NULL ? options->scratch_bytes : 0;
    const uint64_t most = given != 0 && given < device ? given : device;
    if (given == 0 ? fit(work, device / 4) || fit(work, device) : fit(work, most)) {
        return true;
    }
    return lilac_plan_trip_refuse(
        why, "a trip takes %llu bytes of shared memory even in 2^%u rounds, and has %llu",
        (unsigned long long)(bytes_of(work) >> work->pair.round_bits), work->pair.round_bits,
        (unsigned long long)most);
}

/* Whether the target's own columns make a frame, and its vectors may be the wider ones. Not where
 * registers load from several blocks, nor where its blocks load parts only of what they hold. */
static bool can_turn(const trip_work *work) {
    const trip_side *b = &work->pair.side[LOAD];
    lilac_f2_basis all;
    lilac_f2_basis_init(&all);
    int left = __builtin_popcount(work->pair.whole);
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        left -= lilac_f2_basis_add(&all, b->thread[i], 0);
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        left -= lilac_f2_basis_add(&all, b->reg[i], 0);
        if (work->register_block[i] != 0) {
            return false;
        }
    }
    return left == 0;
}

bool lilac_plan_trip_prepare(trip_work *work, const lilac_layout *source,
                             const lilac_layout *target, uint32_t element_bits,
                             const lilac_plan_options *options, const lilac_arch *arch,
                             lilac_reason *why) {
    trip_side *a = &work->pair.side[STORE], *b = &work->pair.side[LOAD];
    lilac_layout ordered;
    lilac_f2_basis echelon;
    lilac_f2_basis_init(&echelon);
    target = in_order(&ordered, source, target, why);
    if (target == NULL || !set_scale(&work->scale, element_bits, arch, why)) {
        return false;
    }
    if (source->out_bits > FRAME_BITS) {
        return lilac_plan_trip_refuse(why,
                                      "a tensor of 2^%u elements is more than any cluster "
                                      "of blocks holds",
                                      source->out_bits);
    }
    if (!read_side(a, source, why) || !read_side(b, target, why) ||
        !check_threads(a, b, arch, why)) {
        return false;
    }
    work->pair.owner = STORE;
    work->pair.whole = work->blocks = work->copy_lanes = work->store_copies = work->peeled = 0;
    work->remote = false;
    work->warp_bits = a->warp_bits;
    own_frame(work, &echelon);
    uint32_t rank = lilac_f2_basis_dimension(&echelon);
    if (rank != source->out_bits) {
        return lilac_plan_trip_refuse(why, "the source does not hold all of the tensor");
    }
    convert(b->reg, b->register_bits, &echelon);
    convert(b->thread, b->thread_bits, &echelon);
    lilac_f2_basis all;
    lilac_f2_basis_init(&all);
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        rank -= lilac_f2_basis_add(&all, b->thread[i], 0);
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        rank -= lilac_f2_basis_add(&all, b->reg[i], 0);
    }
    if (rank != 0) {
        return lilac_plan_trip_refuse(why, "the target does not hold all of the tensor");
    }
    split_blocks(work);
    if (work->remote && !lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
        return lilac_plan_trip_refuse(
            why, "elements move between blocks, and %s has no clusters of them", arch->name);
    }
    find_floor(work);
    if (options == NULL || options->way != LILAC_PLAN_UNSWIZZLED) {
        peel(work);
    }
    work->can_turn = b->block_bits == 0 || can_turn(work);
    find_common(work);
    return find_rounds(work, options, why);
}

void lilac_plan_trip_turn(trip_pair *result, uint32_t *origin, const trip_pair *pair) {
    lilac_f2_basis echelon;
    lilac_f2_basis_init(&echelon);
    trip_side *a = &result->side[STORE], *b = &result->side[LOAD];
    *result = *pair;
    result->owner = LOAD;
    result->whole = result->registers = 0;
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        const uint32_t bit = thread_bit(b, i);
        origin[bit] = b->thread[i];
        b->thread[i] = add_column(&echelon, b->thread[i], bit);
        result->whole |= b->thread[i] & UINT32_C(1) << bit;
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        origin[i] = b->reg[i];
        b->reg[i] = add_column(&echelon, b->reg[i], i);
        result->registers |= b->reg[i] & UINT32_C(1) << i;
    }
    result->whole |= result->registers;
    convert(a->reg, a->register_bits, &echelon);
    convert(a->thread, a->thread_bits, &echelon);
    convert(a->within, a->lane_bits, &echelon);
    convert(b->within, b->lane_bits, &echelon);
    convert(result->common, result->common_count, &echelon);
}
