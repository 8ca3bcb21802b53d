/* Preparation of two distributed layouts for planning.
 *
 *   1. Refuse everything but two distributed layouts of one tensor on this device.
 *   2. Bring both layouts to one form: inputs register, lane, warp, block, all present; outputs in
 *      the order of the source.
 *   3. Remove copies among registers. Of the source, keep the register bits whose columns are
 *      independent of the columns before them (pick: new register bit i is old bit k). Do the same
 *      for the target; every register of the full target is a sum of the kept ones (spread).
 *
 * A plan is then  pick, the conversion, spread,  with adjacent permutations composed.
 */
#include "plan.h"

#include <lilac/replication.h>

#include <string.h>

const lilac_layout_dim lilac_plan_levels[LEVELS] = {
    {"register", 0}, {"lane", 0}, {"warp", 0}, {"block", 0}};

static unsigned long long size_of(uint32_t bits) {
    return 1ULL << bits;
}

/* ---- refusals --------------------------------------------------------------------------- */

static bool check_elements(uint32_t bits, const lilac_arch *arch, lilac_reason *why) {
    if (bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128) {
        return true;
    }
    return lilac_layout_refuse(why, "elements of %u bits: %s moves 1, 8, 16, 32, 64 or 128", bits,
                               arch->name);
}

static bool check_tensors(const lilac_layout *source, const lilac_layout *target,
                          lilac_reason *why) {
    if (source->out_count != target->out_count) {
        return lilac_layout_refuse(why,
                                   "the source is a tensor of rank %u and the target of rank %u",
                                   source->out_count, target->out_count);
    }
    for (uint32_t i = 0; i < source->out_count; i++) {
        const lilac_layout_dim *dim = &source->out[i];
        const int there = lilac_layout_out(target, dim->name);
        if (there < 0) {
            return lilac_layout_refuse(
                why, "the source has a dimension '%s' and the target none of that name", dim->name);
        }
        if (target->out[there].bits != dim->bits) {
            return lilac_layout_refuse(
                why, "%s is of size %llu in the source and %llu in the target", dim->name,
                size_of(dim->bits), size_of(target->out[there].bits));
        }
    }
    return true;
}

/* The index of the input in lilac_plan_levels, or LEVELS. */
static uint32_t level_of(const lilac_layout_dim *in) {
    uint32_t level = 0;
    while (level < LEVELS &&
           memcmp(in->name, lilac_plan_levels[level].name, sizeof in->name) != 0) {
        level++;
    }
    return level;
}

static bool check_inputs(const lilac_layout *layout, const char *what, const lilac_arch *arch,
                         lilac_reason *why) {
    uint32_t bits[LEVELS] = {0};
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t level = level_of(&layout->in[i]);
        if (level == LEVELS) {
            return lilac_layout_refuse(
                why, "the %s has an input '%s': a plan is between layouts of registers", what,
                layout->in[i].name);
        }
        bits[level] = layout->in[i].bits;
    }
    if (bits[REGISTER] > LILAC_PLAN_MAX_REGISTER_BITS) {
        return lilac_layout_refuse(
            why, "the %s has %llu registers a thread; a plan takes at most %llu", what,
            size_of(bits[REGISTER]), size_of(LILAC_PLAN_MAX_REGISTER_BITS));
    }
    if (bits[LANE] > LILAC_PLAN_MAX_LANE_BITS || size_of(bits[LANE]) != arch->warp_size) {
        return lilac_layout_refuse(why, "the %s has %llu lanes a warp, and %s has %u", what,
                                   size_of(bits[LANE]), arch->name, arch->warp_size);
    }
    if (bits[WARP] > LILAC_PLAN_MAX_WARP_BITS || size_of(bits[WARP]) > arch->max_warps) {
        return lilac_layout_refuse(why, "the %s has %llu warps, and a block of %s at most %u", what,
                                   size_of(bits[WARP]), arch->name, arch->max_warps);
    }
    if (bits[BLOCK] > LILAC_PLAN_MAX_BLOCK_BITS) {
        return lilac_layout_refuse(why, "the %s has %llu blocks, and a cluster at most %llu", what,
                                   size_of(bits[BLOCK]), size_of(LILAC_PLAN_MAX_BLOCK_BITS));
    }
    if (bits[BLOCK] > 0 && !lilac_arch_has(arch, LILAC_HAS_CLUSTERS)) {
        return lilac_layout_refuse(why, "the %s has %llu blocks, and %s has no clusters of them",
                                   what, size_of(bits[BLOCK]), arch->name);
    }
    return true;
}

static bool check_same_threads(const lilac_layout *source, const lilac_layout *target,
                               lilac_reason *why) {
    static const char *const plural[LEVELS] = {NULL, "lanes", "warps", "blocks"};
    for (uint32_t level = LANE; level < LEVELS; level++) {
        const char *name = lilac_plan_levels[level].name;
        const uint32_t from = lilac_layout_in_bits(source, name);
        const uint32_t to = lilac_layout_in_bits(target, name);
        if (from != to) {
            return lilac_layout_refuse(why, "the source has %llu %s and the target %llu",
                                       size_of(from), plural[level], size_of(to));
        }
    }
    return true;
}

/* The message names the lowest element that no register holds. */
static bool check_surjective(const lilac_layout *layout, const char *what, lilac_reason *why) {
    lilac_f2_basis columns;
    lilac_f2_basis_init(&columns);
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        (void)lilac_f2_basis_add(&columns, layout->columns[i], 0);
    }
    if (lilac_f2_basis_dimension(&columns) == layout->out_bits) {
        return true;
    }
    uint32_t bit = 0;
    while (lilac_f2_basis_contains(&columns, UINT64_C(1) << bit)) {
        bit++;
    }
    uint32_t out = 0;
    while (bit >= lilac_layout_out_start(layout, out) + layout->out[out].bits) {
        out++;
    }
    return lilac_layout_refuse(
        why, "the %s lacks elements of the tensor: nothing holds the one at %s=%llu", what,
        layout->out[out].name, size_of(bit - lilac_layout_out_start(layout, out)));
}

static bool check(const lilac_layout *source, const lilac_layout *target, uint32_t element_bits,
                  const lilac_arch *arch, lilac_reason *why) {
    return check_elements(element_bits, arch, why) && check_tensors(source, target, why) &&
           check_inputs(source, "source", arch, why) && check_inputs(target, "target", arch, why) &&
           check_same_threads(source, target, why) && check_surjective(source, "source", why) &&
           check_surjective(target, "target", why);
}

/* ---- the common form -------------------------------------------------------------------- */

/* The positions of the outputs of `like` in `layout`; false if the order is the same. */
static bool other_order(uint32_t *order, const lilac_layout *layout, const lilac_layout *like) {
    bool other = false;
    for (uint32_t i = 0; i < like->out_count; i++) {
        order[i] = (uint32_t)lilac_layout_out(layout, like->out[i].name);
        other = other || order[i] != i;
    }
    return other;
}

static void put_in_order(lilac_layout *result, const lilac_layout *layout,
                         const lilac_layout *like) {
    lilac_layout ordered;
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    const lilac_layout *from = layout;
    if (other_order(order, layout, like)) {
        lilac_layout_permute_outs(&ordered, layout, order);
        from = &ordered;
    }
    result->in_count = LEVELS;
    result->out_count = like->out_count;
    result->out_bits = like->out_bits;
    memcpy(result->out, like->out, like->out_count * sizeof like->out[0]);
    memcpy(result->in, lilac_plan_levels, sizeof lilac_plan_levels);
    uint32_t at = 0;
    for (uint32_t level = 0; level < LEVELS; level++) {
        uint32_t start = 0;
        for (uint32_t i = 0; i < from->in_count; start += from->in[i++].bits) {
            if (level_of(&from->in[i]) == level) {
                result->in[level].bits = from->in[i].bits;
                memcpy(result->columns + at, from->columns + start,
                       from->in[i].bits * sizeof from->columns[0]);
                at += from->in[i].bits;
            }
        }
    }
    result->in_bits = (uint8_t)at;
}

/* Keeps the register bits whose columns are independent. `pick` and `spread` are those of plan.h;
 * either may be NULL. */
static void drop_copies(lilac_layout *result, lilac_plan_permutation *pick,
                        lilac_plan_permutation *spread, const lilac_layout *layout) {
    const uint32_t all_bits = layout->in[REGISTER].bits;
    lilac_replication replication;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], renumbered[LILAC_LAYOUT_MAX_BITS];
    uint32_t bits = 0;
    lilac_layout_find_replication(&replication, layout->columns, all_bits);
    for (uint32_t i = 0; i < all_bits; i++) {
        if ((replication.replicated >> i & 1) == 0) {
            if (pick != NULL) {
                pick->from[bits] = UINT64_C(1) << i;
            }
            renumbered[i] = UINT64_C(1) << bits;
            columns[bits++] = layout->columns[i];
        }
        if (spread != NULL) {
            spread->from[i] = 0;
            for (uint64_t rest = replication.origin[i]; rest != 0; rest &= rest - 1) {
                spread->from[i] ^= renumbered[lowest_bit(rest)];
            }
        }
    }
    if (pick != NULL) {
        pick->before_bits = all_bits;
        pick->bits = bits;
    }
    if (spread != NULL) {
        spread->before_bits = bits;
        spread->bits = all_bits;
    }
    result->in_count = LEVELS;
    result->out_count = layout->out_count;
    result->out_bits = layout->out_bits;
    memcpy(result->out, layout->out, layout->out_count * sizeof layout->out[0]);
    memcpy(result->in, layout->in, LEVELS * sizeof layout->in[0]);
    result->in[REGISTER].bits = (uint8_t)bits;
    result->in_bits = (uint8_t)(layout->in_bits - all_bits + bits);
    memcpy(result->columns, columns, bits * sizeof columns[0]);
    memcpy(result->columns + bits, layout->columns + all_bits,
           (layout->in_bits - all_bits) * sizeof columns[0]);
}

bool lilac_plan_pair_init(lilac_plan_pair *pair, const lilac_layout *source,
                          const lilac_layout *target, uint32_t element_bits, const lilac_arch *arch,
                          lilac_reason *why) {
    if (!check(source, target, element_bits, arch, why)) {
        return false;
    }
    put_in_order(&pair->full_source, source, source);
    put_in_order(&pair->full_target, target, source);
    drop_copies(&pair->source, &pair->pick, NULL, &pair->full_source);
    drop_copies(&pair->target, NULL, &pair->spread, &pair->full_target);
    for (uint32_t level = 0; level < LEVELS; level++) {
        pair->bits[level] = pair->source.in[level].bits;
    }
    pair->element_bits = element_bits == 1 ? 8 : element_bits;
    pair->arch = arch;
    return true;
}
