/* Both layouts of a shared-memory exchange in a basis of the source's columns.
 *
 * The source's columns are inserted into an echelon form, threads first, each with a tag: its own
 * bit of the basis. A column that depends on those before it is a copy. Reducing any other vector
 * leaves its coordinates in the tag. From the coordinates follow:
 *
 *   blocks              The source's block columns are inserted last, so the lower coordinates are
 *                       those of a block's own memory. The block part of a target column is the
 *                       block that the column loads from.
 *   independent warps   A warp bit that has the same direction on both sides, in which no other bit
 *                       moves: warps that differ in this bit exchange nothing.
 *   common directions   R_A ∩ R_B: rows of the echelon form of the target's registers that have
 *                       register bits only.
 */
#include "staging.h"

#include <string.h>

/* ---- reading layouts ---------------------------------------------------------------------- */

static bool read_input(uint32_t *columns, uint32_t *bits, uint32_t most, const lilac_layout *layout,
                       uint32_t in, uint32_t start, lilac_reason *why) {
    if (layout->in[in].bits > most) {
        return lilac_layout_refuse(why, "a layout has 2^%u %ss; no device has that many",
                                   layout->in[in].bits, layout->in[in].name);
    }
    *bits = layout->in[in].bits;
    for (uint32_t i = 0; i < *bits; i++) {
        columns[i] = (uint32_t)layout->columns[start + i];
    }
    return true;
}

static bool read_side(staging_side *side, const lilac_layout *layout, lilac_reason *why) {
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
            return lilac_layout_refuse(why,
                                       "a distributed layout has an input '%s'; its inputs are "
                                       "register, lane, warp and block",
                                       name);
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
        (void)lilac_layout_refuse(why, "the two layouts describe different tensors");
        return NULL;
    }
    return ordered;
}

static bool check_threads(const staging_side *a, const staging_side *b, const lilac_arch *arch,
                          lilac_reason *why) {
    if (1U << a->lane_bits != arch->warp_size || a->lane_bits != b->lane_bits) {
        return lilac_layout_refuse(why, "the layouts have 2^%u and 2^%u lanes a warp; %s has %u",
                                   a->lane_bits, b->lane_bits, arch->name, arch->warp_size);
    }
    if (a->warp_bits != b->warp_bits || 1U << a->warp_bits > arch->max_warps) {
        return lilac_layout_refuse(
            why, "the layouts have 2^%u and 2^%u warps; a block of %s has at most %u", a->warp_bits,
            b->warp_bits, arch->name, arch->max_warps);
    }
    if (a->block_bits != b->block_bits) {
        return lilac_layout_refuse(why, "the layouts have 2^%u and 2^%u blocks", a->block_bits,
                                   b->block_bits);
    }
    return true;
}

static bool set_scale(staging_scale *scale, uint32_t element_bits, const lilac_arch *arch,
                      lilac_reason *why) {
    const uint32_t bytes = element_bits == 1 ? 1 : element_bits / 8;
    if ((element_bits != 1 && element_bits % 8 != 0) || bytes == 0 || (bytes & (bytes - 1)) != 0 ||
        bytes > arch->vector_bytes) {
        return lilac_layout_refuse(why,
                                   "elements of %u bits: a shared-memory exchange moves elements "
                                   "of 2^n whole bytes, at most %u "
                                   "bytes",
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

/* Replaces columns by their coordinates. */
static void convert(uint32_t *columns, uint32_t count, const lilac_f2_basis *echelon) {
    for (uint32_t i = 0; i < count; i++) {
        columns[i] = (uint32_t)lilac_f2_basis_tag(echelon, columns[i]);
    }
}

/* Inserts a column with the tag `bit`. Returns its coordinates: the bit, or, for a dependent
 * column, the sum of the bits that it depends on. */
static uint32_t add_column(lilac_f2_basis *echelon, uint32_t column, uint32_t bit) {
    const uint32_t own = UINT32_C(1) << bit;
    return lilac_f2_basis_add(echelon, column, own) ? own
                                                    : (uint32_t)lilac_f2_basis_tag(echelon, column);
}

static uint32_t thread_bit(const staging_side *side, uint32_t index) {
    return index < side->lane_bits ? BASIS_LANE + index
           : index < side->lane_bits + side->warp_bits
               ? BASIS_WARP + index - side->lane_bits
               : BASIS_BLOCK + index - side->lane_bits - side->warp_bits;
}

/* Writes the source in its own basis and records its copies. */
static void to_source_basis(staging_work *work, lilac_f2_basis *echelon) {
    staging_side *a = &work->pair.side[STORE];
    const uint32_t own = a->lane_bits + a->warp_bits;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < own; i++) {
        const uint32_t bit = thread_bit(a, i);
        work->origin[bit] = a->thread[i];
        a->thread[i] = add_column(echelon, a->thread[i], bit);
        if (a->thread[i] == UINT32_C(1) << bit) {
            work->pair.space_mask |= a->thread[i];
        } else if (i >= a->lane_bits) {
            work->store_copies |= UINT32_C(1) << (i - a->lane_bits);
            work->copy_of[i - a->lane_bits] = a->thread[i];
            a->thread[i] = 0; /* such a warp stores nothing */
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
    work->pair.space_mask |= work->pair.registers;
    for (uint32_t i = 0; i < a->block_bits; i++) {
        work->origin[BASIS_BLOCK + i] = a->thread[own + i];
        a->thread[own + i] = add_column(echelon, a->thread[own + i], BASIS_BLOCK + i);
        work->blocks |= a->thread[own + i] & UINT32_C(1) << (BASIS_BLOCK + i);
    }
}

/* Finds the blocks that a side's lanes load from. `blocks` is the block of each lane bit (NULL: the
 * lane's own block). */
static void follow_lanes(staging_side *side, const uint32_t *blocks) {
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

/* Splits the target's columns into the block they load from and the position in its memory. If the
 * source does not need a block bit to distinguish elements, the blocks hold copies, and a block
 * loads its own copy. */
static void split_blocks(staging_work *work) {
    staging_side *a = &work->pair.side[STORE];
    staging_side *b = &work->pair.side[LOAD];
    const uint32_t own = b->lane_bits + b->warp_bits;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        work->register_block[i] = b->reg[i] >> BASIS_BLOCK;
        work->remote = work->remote || work->register_block[i] != 0;
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        uint32_t wanted = 0;
        if (i >= own) {
            wanted = UINT32_C(1) << (i - own);
            if (a->thread[i] != UINT32_C(1) << (BASIS_BLOCK + i - own)) {
                b->thread[i] ^= wanted << BASIS_BLOCK ^ a->thread[i];
            }
        }
        work->thread_block[i] = b->thread[i] >> BASIS_BLOCK;
        work->remote = work->remote || work->thread_block[i] != wanted;
        b->thread[i] &= (UINT32_C(1) << BASIS_BLOCK) - 1;
    }
    follow_lanes(a, NULL);
    follow_lanes(b, work->thread_block);
    a->thread_bits = own; /* a block stores to its own memory only */
}

/* Finds the warp bits that no element crosses and removes them from the pair. */
static void find_independent_warps(staging_work *work) {
    staging_side *a = &work->pair.side[STORE], *b = &work->pair.side[LOAD];
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
        const uint32_t own = UINT32_C(1) << (BASIS_WARP + i), at = b->lane_bits + i;
        if ((work->pair.space_mask & own) != 0 && b->thread[at] == own && (twice & own) == 0) {
            work->independent_warps |= UINT32_C(1) << i;
            work->pair.space_mask &= ~own;
            a->thread[at] = b->thread[at] = 0;
        }
    }
}

/* Finds a largest set of directions of R_A ∩ R_B that are independent of both sides' threads. The
 * order is: registers of a word on both sides, on one side, other registers of both sides, sums. */
static void find_common(staging_work *work) {
    staging_pair *pair = &work->pair;
    const staging_side *b = &pair->side[LOAD];
    lilac_f2_basis registers, known;
    lilac_f2_basis_init(&registers);
    lilac_f2_basis_init(&known);
    uint32_t word = work->scale.word_bits;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        (void)lilac_f2_basis_add(&registers, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        (void)lilac_f2_basis_add(&known, b->thread[i] & BASIS_REGISTERS, 0);
    }
    pair->common_count = 0;
    for (uint32_t pass = 0; pass < 4; pass++) {
        const uint32_t count = pass < 2    ? min_u32(word, b->register_bits)
                               : pass == 2 ? b->register_bits
                                           : BASIS_LANE;
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

/* ---- bounds, rounds, preparation ------------------------------------------------------------ */

static uint64_t wavefronts_of(const staging_scale *scale, uint32_t bits) {
    const uint64_t bytes = (uint64_t)scale->element_bytes << bits;
    const uint64_t clock = scale->arch->banks * scale->arch->bank_bytes;
    return (bytes + clock - 1) / clock;
}

/* The floor: each byte of a block is stored once, and each warp loads each of its bytes once. */
static void find_floor(staging_work *work) {
    const staging_side *b = &work->pair.side[LOAD];
    lilac_f2_basis warp;
    lilac_f2_basis_init(&warp);
    uint32_t bits = 0;
    for (uint32_t i = 0; i < b->register_bits; i++) {
        bits += lilac_f2_basis_add(&warp, b->reg[i], 0);
    }
    for (uint32_t i = 0; i < b->lane_bits; i++) {
        bits += lilac_f2_basis_add(&warp, b->thread[i] | work->thread_block[i] << BASIS_BLOCK, 0);
    }
    work->floor_wavefronts[STORE] =
        wavefronts_of(&work->scale, (uint32_t)__builtin_popcount(work->pair.space_mask) +
                                        (uint32_t)__builtin_popcount(work->independent_warps));
    work->floor_wavefronts[LOAD] = wavefronts_of(&work->scale, bits) << work->warp_bits;
}

static uint64_t bytes_of(const staging_work *work) {
    return (uint64_t)work->scale.element_bytes << (__builtin_popcount(work->pair.space_mask) +
                                                   __builtin_popcount(work->independent_warps));
}

/* Chooses as many rounds as `scratch` bytes require; false if no number of rounds suffices. */
static bool fit(staging_work *work, uint64_t scratch) {
    uint64_t bytes = bytes_of(work);
    work->pair.round_bits = 0;
    for (; bytes > scratch && work->pair.round_bits < work->pair.common_count; bytes /= 2) {
        work->pair.round_bits++;
    }
    return bytes <= scratch;
}

static bool find_rounds(staging_work *work, const lilac_plan_options *options, lilac_reason *why) {
    const uint64_t device = work->scale.arch->shared_bytes;
    const uint64_t given = options != NULL ? options->scratch_bytes : 0;
    const uint64_t most = given != 0 && given < device ? given : device;
    if (given == 0 ? fit(work, device / 4) || fit(work, device) : fit(work, most)) {
        return true;
    }
    return lilac_layout_refuse(
        why,
        "the exchange needs %llu bytes of shared memory even in 2^%u rounds; %llu are available",
        (unsigned long long)(bytes_of(work) >> work->pair.round_bits), work->pair.round_bits,
        (unsigned long long)most);
}

/* Whether the target's own columns are a basis, so that its vectors may be the wider ones. False if
 * registers load from several blocks, or if a block loads only a part of what it holds. */
static bool has_target_basis(const staging_work *work) {
    const staging_side *b = &work->pair.side[LOAD];
    lilac_f2_basis all;
    lilac_f2_basis_init(&all);
    int remaining = __builtin_popcount(work->pair.space_mask);
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        remaining -= lilac_f2_basis_add(&all, b->thread[i], 0);
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        remaining -= lilac_f2_basis_add(&all, b->reg[i], 0);
        if (work->register_block[i] != 0) {
            return false;
        }
    }
    return remaining == 0;
}

bool lilac_plan_staging_prepare(staging_work *work, const lilac_layout *source,
                                const lilac_layout *target, uint32_t element_bits,
                                const lilac_plan_options *options, const lilac_arch *arch,
                                lilac_reason *why) {
    staging_side *a = &work->pair.side[STORE], *b = &work->pair.side[LOAD];
    lilac_layout ordered;
    lilac_f2_basis echelon;
    lilac_f2_basis_init(&echelon);
    target = in_order(&ordered, source, target, why);
    if (target == NULL || !set_scale(&work->scale, element_bits, arch, why)) {
        return false;
    }
    if (source->out_bits > BASIS_BITS) {
        return lilac_layout_refuse(
            why, "a tensor of 2^%u elements does not fit in a cluster of blocks", source->out_bits);
    }
    if (!read_side(a, source, why) || !read_side(b, target, why) ||
        !check_threads(a, b, arch, why)) {
        return false;
    }
    work->pair.owner = STORE;
    work->pair.space_mask = work->blocks = work->copy_lanes = work->store_copies =
        work->independent_warps = 0;
    work->remote = false;
    work->warp_bits = a->warp_bits;
    to_source_basis(work, &echelon);
    uint32_t rank = lilac_f2_basis_dimension(&echelon);
    if (rank != source->out_bits) {
        return lilac_layout_refuse(why, "the source does not hold all of the tensor");
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
        return lilac_layout_refuse(why, "the target does not hold all of the tensor");
    }
    split_blocks(work);
    if (work->remote && !lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
        return lilac_layout_refuse(
            why, "elements move between blocks, and %s has no clusters of them", arch->name);
    }
    find_floor(work);
    if (options == NULL || options->strategy != LILAC_PLAN_UNSWIZZLED) {
        find_independent_warps(work);
    }
    work->has_target_basis = b->block_bits == 0 || has_target_basis(work);
    find_common(work);
    return find_rounds(work, options, why);
}

void lilac_plan_staging_to_target_basis(staging_pair *result, uint32_t *origin,
                                        const staging_pair *pair) {
    lilac_f2_basis echelon;
    lilac_f2_basis_init(&echelon);
    staging_side *a = &result->side[STORE], *b = &result->side[LOAD];
    *result = *pair;
    result->owner = LOAD;
    result->space_mask = result->registers = 0;
    for (uint32_t i = 0; i < b->thread_bits; i++) {
        const uint32_t bit = thread_bit(b, i);
        origin[bit] = b->thread[i];
        b->thread[i] = add_column(&echelon, b->thread[i], bit);
        result->space_mask |= b->thread[i] & UINT32_C(1) << bit;
    }
    for (uint32_t i = 0; i < b->register_bits; i++) {
        origin[i] = b->reg[i];
        b->reg[i] = add_column(&echelon, b->reg[i], i);
        result->registers |= b->reg[i] & UINT32_C(1) << i;
    }
    result->space_mask |= result->registers;
    convert(a->reg, a->register_bits, &echelon);
    convert(a->thread, a->thread_bits, &echelon);
    convert(a->within, a->lane_bits, &echelon);
    convert(b->within, b->lane_bits, &echelon);
    convert(result->common, result->common_count, &echelon);
}
