/* encoding: what CuTe layouts mean, as linear maps and back.
 *
 * A leaf of 2^k elements and stride d contributes the steps d, 2d, …, 2^(k-1)·d, one for each bit
 * of the coordinate. Adding the steps of the set bits is xor for every coordinate exactly when no
 * two steps share a bit: two that do make a carry on their own, none that do makes none in any sum.
 *
 *     (8,64):(64,1)   steps  64 128 256 | 1 2 4 8 16 32     columns of the map before the swizzle
 *     Sw<3,3,3>       bits 6 7 8 onto 3 4 5: columns  72 144 288 | 1 2 4 8 16 32
 *
 * Back: a swizzle is its own inverse, so a map is Swizzle ∘ strided exactly when some swizzle of it
 * has columns that share no bit. There are about n³/6 swizzles of n bits; each is tried with an
 * early exit at the first shared bit.
 */
#include <lilac/bits.h>
#include <lilac/cute.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_OFFSET_BITS = 62 };

static uint32_t bit_length(uint64_t value) {
    return value == 0 ? 0 : 64U - (uint32_t)__builtin_clzll(value);
}

/* ---- arithmetic ------------------------------------------------------------------------- */

uint64_t lilac_cute_swizzle(uint32_t bits, uint32_t base, int32_t shift, uint64_t offset) {
    if (bits == 0) {
        return offset;
    }
    assert(bits < 64 && base < 64 && shift > -64 && shift < 64);
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    if (shift >= 0) {
        return offset ^ ((offset >> (base + (uint32_t)shift) & mask) << base);
    }
    return offset ^ ((offset >> base & mask) << (base + (uint32_t)-shift));
}

static uint64_t swizzled(const lilac_cute *cute, uint64_t offset) {
    return lilac_cute_swizzle(cute->swizzle_bits, cute->swizzle_base, cute->swizzle_shift, offset);
}

uint64_t lilac_cute_size(const lilac_cute *cute, uint32_t mode) {
    uint64_t size = 1;
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        if (cute->leaf[i].mode == mode) {
            size *= cute->leaf[i].size;
        }
    }
    return size;
}

uint64_t lilac_cute_offset(const lilac_cute *cute, const uint64_t *coordinates) {
    uint64_t sum = 0, rest = 0;
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        const lilac_cute_leaf *leaf = &cute->leaf[i];
        if (i == 0 || leaf->mode != leaf[-1].mode) {
            rest = coordinates[leaf->mode];
        }
        sum += rest % leaf->size * leaf->stride;
        rest /= leaf->size;
    }
    return swizzled(cute, sum);
}

/* ---- padding ---------------------------------------------------------------------------- */

static bool too_many(lilac_reason *why) {
    return lilac_layout_refuse(why, "more than %d sizes", LILAC_CUTE_MAX_LEAVES);
}

/* Cuts the leaves that straddle multiples of the interval. */
static bool cut(lilac_cute *cute, uint64_t interval, lilac_reason *why) {
    uint64_t within = 0; /* the largest sum of what stays below the interval */
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        lilac_cute_leaf *leaf = &cute->leaf[i];
        if (leaf->size == 1 || leaf->stride % interval == 0) {
            continue;
        }
        if (leaf->size * leaf->stride > interval) {
            const uint64_t low = interval / leaf->stride;
            if (interval % leaf->stride != 0 || leaf->size % low != 0) {
                return lilac_layout_refuse(
                    why,
                    "padding every %" PRIu64 " elements cuts dimension %u, %" PRIu64
                    " elements at a stride of %" PRIu64 ", where no stride says it",
                    interval, leaf->mode, leaf->size, leaf->stride);
            }
            if (cute->leaf_count == LILAC_CUTE_MAX_LEAVES) {
                return too_many(why);
            }
            memmove(leaf + 1, leaf, (cute->leaf_count - i) * sizeof *leaf);
            cute->leaf_count++;
            leaf[0].size = low;
            leaf[1].size /= low;
            leaf[1].stride = interval;
        }
        within += (leaf->size - 1) * leaf->stride;
        if (within >= interval) {
            return lilac_layout_refuse(why,
                                       "padding every %" PRIu64
                                       " elements: dimension %u does not stay below it, "
                                       "and no stride says it",
                                       interval, leaf->mode);
        }
    }
    return true;
}

/* Neighbouring leaves of a mode whose strides go on, and leaves of one element. */
static void join(lilac_cute *cute) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        const lilac_cute_leaf leaf = cute->leaf[i];
        lilac_cute_leaf *last = kept == 0 ? NULL : &cute->leaf[kept - 1];
        if (last == NULL || last->mode != leaf.mode) {
            cute->leaf[kept++] = leaf;
        } else if (last->size == 1) {
            *last = leaf;
        } else if (leaf.size != 1) {
            if (leaf.stride == last->stride * last->size) {
                last->size *= leaf.size;
            } else {
                cute->leaf[kept++] = leaf;
            }
        }
    }
    cute->leaf_count = kept;
}

bool lilac_cute_pad(lilac_cute *cute, uint32_t count, const uint64_t *interval,
                    const uint64_t *padding, lilac_reason *why) {
    lilac_cute made = *cute;
    uint64_t largest = 0;
    if (count != 0 && cute->swizzle_bits != 0) {
        return lilac_layout_refuse(why, "padding after a swizzle: a CuTe layout swizzles last");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (interval[i] == 0) {
            return lilac_layout_refuse(why, "padding every 0 elements");
        }
        if (!cut(&made, interval[i], why)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < made.leaf_count; i++) {
        const uint64_t stride = made.leaf[i].stride;
        uint64_t added, reach, sum = stride;
        bool fits = true;
        for (uint32_t k = 0; fits && k < count; k++) {
            fits = !__builtin_mul_overflow(stride / interval[k], padding[k], &added) &&
                   !__builtin_add_overflow(sum, added, &sum);
        }
        fits = fits && !__builtin_mul_overflow(made.leaf[i].size - 1, sum, &reach) &&
               !__builtin_add_overflow(largest, reach, &largest) &&
               largest <= UINT64_C(1) << MAX_OFFSET_BITS && sum <= UINT64_C(1) << MAX_OFFSET_BITS;
        if (!fits) {
            return lilac_layout_refuse(why, "offsets beyond 2^%d", MAX_OFFSET_BITS);
        }
        made.leaf[i].stride = sum;
    }
    join(&made);
    *cute = made;
    return true;
}

/* ---- to a linear map -------------------------------------------------------------------- */

/* One bit of a coordinate with what it adds to the offset. */
typedef struct step {
    uint64_t offset;
    uint32_t leaf;
} step;

typedef struct step_list {
    uint32_t count;
    step at[LILAC_LAYOUT_MAX_BITS];
} step_list;

static bool check_steps(const lilac_cute *cute, const step_list *steps, lilac_reason *why) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        const uint64_t shared = reached & steps->at[i].offset;
        if (shared == 0) {
            reached |= steps->at[i].offset;
            continue;
        }
        uint32_t j = 0;
        while ((steps->at[j].offset & steps->at[i].offset) == 0) {
            j++;
        }
        const lilac_cute_leaf *a = &cute->leaf[steps->at[j].leaf];
        const lilac_cute_leaf *b = &cute->leaf[steps->at[i].leaf];
        if (a == b) {
            return lilac_layout_refuse(
                why,
                "stride %" PRIu64 " is not a power of two: in mode %u, %" PRIu64 " + %" PRIu64
                " carries and is not their xor",
                b->stride, b->mode, steps->at[j].offset, steps->at[i].offset);
        }
        return lilac_layout_refuse(
            why,
            "segments overlap: %" PRIu64 ":%" PRIu64 " of mode %u and %" PRIu64 ":%" PRIu64
            " of mode %u both move bit %u of the offset",
            a->size, a->stride, a->mode, b->size, b->stride, b->mode,
            (uint32_t)__builtin_ctzll(steps->at[j].offset & steps->at[i].offset));
    }
    return true;
}

static bool find_steps(step_list *steps, const lilac_cute *cute, lilac_reason *why) {
    steps->count = 0;
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        const lilac_cute_leaf *leaf = &cute->leaf[i];
        if (!is_power_of_two(leaf->size)) {
            return lilac_layout_refuse(why, "size %" PRIu64 " of mode %u is not a power of two",
                                       leaf->size, leaf->mode);
        }
        for (uint64_t k = 1; k < leaf->size; k *= 2) {
            if (steps->count == LILAC_LAYOUT_MAX_BITS) {
                return lilac_layout_refuse(why, "more than %d bits", LILAC_LAYOUT_MAX_BITS);
            }
            steps->at[steps->count++] = (step){leaf->stride * k, i};
        }
    }
    return check_steps(cute, steps, why);
}

static void name_dim(char name[16], uint32_t index) {
    snprintf(name, 16, "dim%u", index % LILAC_CUTE_MAX_RANK);
}

static bool build_map(lilac_layout *result, const lilac_cute *cute, const step_list *steps,
                      lilac_reason *why) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], reached = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        columns[i] = swizzled(cute, steps->at[i].offset);
        reached |= columns[i];
    }
    lilac_layout made;
    lilac_layout_init(&made);
    if (!lilac_layout_add_out(&made, "offset", bit_length(reached), why)) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t mode = 0; mode < cute->rank; mode++) {
        uint32_t start = at;
        char name[16];
        while (at < steps->count && cute->leaf[steps->at[at].leaf].mode == mode) {
            at++;
        }
        name_dim(name, mode);
        if (!lilac_layout_add_in(&made, name, at - start, &columns[start], why)) {
            return false;
        }
    }
    *result = made;
    return true;
}

bool lilac_cute_map(lilac_layout *result, const lilac_cute *cute, lilac_reason *why) {
    step_list steps;
    return find_steps(&steps, cute, why) && build_map(result, cute, &steps, why);
}

/* Is this offset the swizzle of a sum of steps? The steps share no bit, so the sum can only be of
 * those that lie within it. */
static bool is_reached(const lilac_cute *cute, const step_list *steps, uint64_t offset) {
    uint64_t rest = swizzled(cute, offset);
    for (uint32_t i = 0; i < steps->count; i++) {
        if ((steps->at[i].offset & ~rest) == 0) {
            rest ^= steps->at[i].offset;
        }
    }
    return rest == 0;
}

bool lilac_cute_memory(lilac_layout *result, const lilac_cute *cute, lilac_reason *why) {
    step_list steps;
    lilac_layout made;
    if (!find_steps(&steps, cute, why) || !build_map(&made, cute, &steps, why)) {
        return false;
    }
    for (uint32_t i = 0; i < steps.count; i++) {
        if (steps.at[i].offset == 0) {
            return lilac_layout_refuse(why,
                                       "not injective, so it has no inverse: mode %u has %" PRIu64
                                       " elements at a stride of 0",
                                       cute->leaf[steps.at[i].leaf].mode,
                                       cute->leaf[steps.at[i].leaf].size);
        }
    }
    /* What is reached is a subspace, so the first offset that is not is a power of two. */
    for (uint32_t k = 0; k < made.out_bits; k++) {
        const uint64_t offset = UINT64_C(1) << k;
        if (!is_reached(cute, &steps, offset)) {
            return lilac_layout_refuse(
                why, "nothing is at offset %" PRIu64 ", so not every offset has an element",
                offset);
        }
    }
    const uint64_t none[1] = {0};
    if (!lilac_layout_invert(&made, &made, why) ||
        !lilac_layout_add_in(&made, "block", 0, none, why)) {
        return false;
    }
    *result = made;
    return true;
}

/* ---- from a linear map ------------------------------------------------------------------ */

static bool share_no_bit(const uint64_t *columns, uint32_t count, uint32_t bits, uint32_t base,
                         int32_t shift) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t column = lilac_cute_swizzle(bits, base, shift, columns[i]);
        if ((column & reached) != 0) {
            return false;
        }
        reached |= column;
    }
    return true;
}

static bool find_swizzle(lilac_cute *cute, const lilac_layout *map) {
    const uint64_t *columns = map->columns;
    const uint32_t count = map->in_bits, width = map->out_bits;
    if (share_no_bit(columns, count, 0, 0, 0)) {
        return true;
    }
    for (uint32_t bits = 1; 2 * bits <= width; bits++) {
        for (uint32_t base = 0; base + 2 * bits <= width; base++) {
            for (uint32_t shift = bits; base + shift + bits <= width; shift++) {
                for (int32_t sign = 1; sign >= -1; sign -= 2) {
                    if (share_no_bit(columns, count, bits, base, sign * (int32_t)shift)) {
                        cute->swizzle_bits = bits;
                        cute->swizzle_base = base;
                        cute->swizzle_shift = sign * (int32_t)shift;
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

/* Names the first two columns that share a bit. */
static bool refuse_xor(const lilac_layout *map, lilac_reason *why) {
    uint64_t reached = 0;
    uint32_t second = 0, first = 0;
    while ((map->columns[second] & reached) == 0) {
        reached |= map->columns[second++];
    }
    const uint64_t shared = map->columns[second] & reached;
    while ((map->columns[first] & shared) == 0) {
        first++;
    }
    const uint32_t bits[2] = {first, second};
    uint32_t dim[2], bit[2];
    for (uint32_t i = 0; i < 2; i++) {
        for (dim[i] = 0, bit[i] = bits[i]; bit[i] >= map->in[dim[i]].bits; dim[i]++) {
            bit[i] -= map->in[dim[i]].bits;
        }
    }
    return lilac_layout_refuse(why,
                               "this xor is not a Swizzle<B,M,S>: %s=%" PRIu64 " and %s=%" PRIu64
                               " both move bit %u of the offset, and no swizzle undoes that",
                               map->in[dim[0]].name, UINT64_C(1) << bit[0], map->in[dim[1]].name,
                               UINT64_C(1) << bit[1],
                               (uint32_t)__builtin_ctzll(shared & map->columns[first]));
}

/* One step more on a mode's last leaf where it continues it, otherwise on a leaf of its own. */
static void add_step(lilac_cute *cute, uint32_t mode, uint64_t offset) {
    lilac_cute_leaf *last = cute->leaf_count == 0 ? NULL : &cute->leaf[cute->leaf_count - 1];
    if (last != NULL && last->mode == mode && last->size * last->stride == offset) {
        last->size *= 2;
        return;
    }
    cute->leaf[cute->leaf_count++] = (lilac_cute_leaf){2, offset, mode};
}

bool lilac_cute_of_map(lilac_cute *result, const lilac_layout *map, lilac_reason *why) {
    if (map->in_count == 0) {
        return lilac_layout_refuse(why, "a layout of no dimensions has no shape to write");
    }
    if (map->in_bits > MAX_OFFSET_BITS || map->out_bits > MAX_OFFSET_BITS) {
        return lilac_layout_refuse(why, "more than %d bits", MAX_OFFSET_BITS);
    }
    lilac_cute made = {.rank = map->in_count};
    if (!find_swizzle(&made, map)) {
        return refuse_xor(map, why);
    }
    uint32_t at = 0;
    for (uint32_t mode = 0; mode < map->in_count; mode++) {
        for (uint32_t k = 0; k < map->in[mode].bits; k++) {
            add_step(&made, mode, swizzled(&made, map->columns[at++]));
        }
        if (map->in[mode].bits == 0) {
            made.leaf[made.leaf_count++] = (lilac_cute_leaf){1, 0, mode};
        }
    }
    *result = made;
    return true;
}

/* ---- from a layout of this library ------------------------------------------------------- */

static bool of_memory(lilac_cute *result, const lilac_layout *layout, lilac_reason *why) {
    static const char *const offset_only[] = {"offset", NULL};
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (layout->in[i].bits != 0 && strcmp(layout->in[i].name, "offset") != 0) {
            return lilac_layout_refuse(
                why, "this memory has %u bits of '%s'; a CuTe layout has an offset only",
                layout->in[i].bits, layout->in[i].name);
        }
    }
    const uint64_t copies = lilac_layout_free_bits(layout, "offset");
    if (copies != 0) {
        return lilac_layout_refuse(
            why, "not injective, so it has no inverse: bit %u of the offset holds copies",
            (uint32_t)__builtin_ctzll(copies));
    }
    lilac_layout map;
    return lilac_layout_sublayout(&map, layout, offset_only, NULL, why) &&
           lilac_layout_invert(&map, &map, why) && lilac_cute_of_map(result, &map, why);
}

static bool of_threads(lilac_cute *result, const lilac_layout *layout, lilac_reason *why) {
    static const char *const modes[3][3] = {
        {"lane", "warp", NULL}, {"register", NULL, NULL}, {"block", NULL, NULL}};
    static const char *const names[3] = {"thread", "value", "block"};
    for (uint32_t i = 0; i < layout->in_count; i++) {
        bool known = false;
        for (uint32_t m = 0; m < 3; m++) {
            for (uint32_t j = 0; modes[m][j] != NULL; j++) {
                known = known || strcmp(layout->in[i].name, modes[m][j]) == 0;
            }
        }
        if (!known) {
            return lilac_layout_refuse(why, "a CuTe layout has no input '%s'", layout->in[i].name);
        }
    }
    lilac_layout map;
    lilac_layout_init(&map);
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (!lilac_layout_add_out(&map, layout->out[d].name, layout->out[d].bits, why)) {
            return false;
        }
    }
    for (uint32_t m = 0; m < 3; m++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
        uint32_t count = 0;
        for (uint32_t j = 0; modes[m][j] != NULL; j++) {
            const uint32_t bits = lilac_layout_in_bits(layout, modes[m][j]);
            for (uint32_t k = 0; k < bits; k++) {
                columns[count++] = lilac_layout_column(layout, modes[m][j], k);
            }
        }
        if ((m < 2 || count != 0) && !lilac_layout_add_in(&map, names[m], count, columns, why)) {
            return false;
        }
    }
    return lilac_cute_of_map(result, &map, why);
}

bool lilac_cute_of_layout(lilac_cute *result, const lilac_layout *layout, lilac_reason *why) {
    return lilac_layout_in(layout, "offset") >= 0 ? of_memory(result, layout, why)
                                                  : of_threads(result, layout, why);
}
