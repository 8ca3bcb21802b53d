/* layout: division, the inverse of the product (Definition 4.4), and what makes it possible.
 *
 * A layout is divisible by a tile when, with the tile's input and output bits brought together, its
 * matrix is block-diagonal with the tile as one block; the other block is the quotient:
 *
 *                tile's ins   rest              on the left: the tile's bits are the lowest of each
 *   tile's outs [    T          .  ]            dimension; on the right: the highest; in general:
 *   rest        [    .          C  ]            the inputs wherever the columns are found.
 *
 * Where the bits stand is decided first (which is all that the kinds of division differ in); then
 * one function checks the three blocks and takes the fourth. Since a tile's column says exactly
 * where its bit must go, finding it is a search for an equal word: the first such bit, as all are
 * alike. The permutation of registers of section 5.3 is that search within one input.
 */
#include "internal.h"

#include <assert.h>
#include <stdio.h>

/* For each of the tile's flattened bits, the layout's. */
typedef struct place {
    uint8_t in[LILAC_LAYOUT_MAX_BITS];
    uint8_t out[LILAC_LAYOUT_MAX_BITS];
} place;

/* A flattened output in words: "dim0=4 dim1=1". */
typedef struct words {
    char text[64];
} words;

static words describe(const lilac_layout *layout, uint64_t flat) {
    words result = {"nothing"};
    size_t used = 0;
    for (uint32_t i = 0; i < layout->out_count; i++) {
        uint64_t coordinate = lilac_layout_coordinate(layout, flat, i);
        if (coordinate == 0) {
            continue;
        }
        int length =
            snprintf(result.text + used, sizeof result.text - used, "%s%s=%llu",
                     used == 0 ? "" : " ", layout->out[i].name, (unsigned long long)coordinate);
        if (length < 0 || (size_t)length >= sizeof result.text - used) {
            break;
        }
        used += (size_t)length;
    }
    return result;
}

/* Which input a flattened bit is of, and which of its bits. */
static const char *input_of(const lilac_layout *layout, uint32_t flat, uint32_t *bit) {
    uint32_t i = 0;
    for (*bit = flat; *bit >= layout->in[i].bits; i++) {
        *bit -= layout->in[i].bits;
    }
    return layout->in[i].name;
}

/* ---- where the tile's bits stand -------------------------------------------------------- */

/* At the low or the high end of the dimension of the same name. */
static bool place_at_end(uint8_t *at, const lilac_layout_dim *dims, uint32_t count,
                         const lilac_layout_dim *tile, uint32_t tile_count, bool high,
                         const char *what, lilac_reason *why) {
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    dim_starts(starts, dims, count);
    for (uint32_t i = 0, start = 0; i < tile_count; start += tile[i++].bits) {
        if (tile[i].bits == 0) {
            continue;
        }
        int j = find_dim(dims, count, &tile[i]);
        if (j < 0) {
            return lilac_layout_refuse(why, "the layout has no %s '%s', which the tile has", what,
                                       tile[i].name);
        }
        if (tile[i].bits > dims[j].bits) {
            return lilac_layout_refuse(why, "%s '%s' has %u bits here and %u in the tile", what,
                                       tile[i].name, dims[j].bits, tile[i].bits);
        }
        uint32_t from = starts[j] + (high ? (uint32_t)(dims[j].bits - tile[i].bits) : 0);
        for (uint32_t k = 0; k < tile[i].bits; k++) {
            at[start + k] = (uint8_t)(from + k);
        }
    }
    return true;
}

static bool place_ends(place *at, const lilac_layout *layout, const lilac_layout *tile, bool high,
                       lilac_reason *why) {
    return place_at_end(at->in, layout->in, layout->in_count, tile->in, tile->in_count, high,
                        "input", why) &&
           place_at_end(at->out, layout->out, layout->out_count, tile->out, tile->out_count, high,
                        "output", why);
}

/* A column of the tile, moved to where its outputs stand. */
static uint64_t placed(const place *at, uint64_t column) {
    uint64_t moved = 0;
    for (; column != 0; column &= column - 1) {
        moved |= UINT64_C(1) << at->out[lowest_bit(column)];
    }
    return moved;
}

/* Looks up the bits of one of the tile's inputs among those of the layout's. */
static bool search_input(place *at, const lilac_layout *layout, const lilac_layout *tile,
                         uint32_t tile_in, lilac_reason *why) {
    const lilac_layout_dim *dim = &tile->in[tile_in];
    if (dim->bits == 0) {
        return true;
    }
    uint32_t tile_start = lilac_layout_in_start(tile, tile_in);
    int j = find_dim(layout->in, layout->in_count, dim);
    assert(j >= 0);
    uint32_t start = lilac_layout_in_start(layout, (uint32_t)j), bits = layout->in[j].bits;
    uint64_t unused = low_bits(bits);
    for (uint32_t t = 0; t < dim->bits; t++) {
        uint64_t wanted = placed(at, tile->columns[tile_start + t]), rest = unused;
        while (rest != 0 && layout->columns[start + lowest_bit(rest)] != wanted) {
            rest &= rest - 1;
        }
        if (rest == 0) {
            return lilac_layout_refuse(why, "no%s %s bit goes to %s, as bit %u of the tile does",
                                       unused == low_bits(bits) ? "" : " other", dim->name,
                                       describe(layout, wanted).text, t);
        }
        uint32_t found = lowest_bit(rest);
        unused &= ~(UINT64_C(1) << found);
        at->in[tile_start + t] = (uint8_t)(start + found);
    }
    return true;
}

/* ---- the division ----------------------------------------------------------------------- */

/* The bits of a word under a mask, side by side. */
static uint64_t gather(uint64_t word, uint64_t mask) {
    uint64_t result = 0;
    for (uint32_t to = 0; mask != 0; mask &= mask - 1, to++) {
        result |= (word >> lowest_bit(mask) & 1) << to;
    }
    return result;
}

/* The dimensions less the bits that are taken. */
static void lessen(lilac_layout_dim *dims, uint8_t *sum, uint32_t count, uint64_t taken) {
    uint32_t total = 0;
    for (uint32_t i = 0, start = 0; i < count; i++) {
        uint32_t bits = dims[i].bits;
        uint64_t here = bits == 0 ? 0 : taken >> start & low_bits(bits);
        start += bits;
        dims[i].bits = (uint8_t)(bits - (uint32_t)__builtin_popcountll(here));
        total += dims[i].bits;
    }
    *sum = (uint8_t)total;
}

static bool divide_at(lilac_layout *result, const lilac_layout *layout, const lilac_layout *tile,
                      const place *at, lilac_reason *why) {
    uint64_t ins = 0, outs = 0;
    uint32_t bit;
    for (uint32_t i = 0; i < tile->out_bits; i++) {
        outs |= UINT64_C(1) << at->out[i];
    }
    for (uint32_t t = 0; t < tile->in_bits; t++) {
        uint64_t here = layout->columns[at->in[t]], there = placed(at, tile->columns[t]);
        ins |= UINT64_C(1) << at->in[t];
        if (here != there) {
            const char *name = input_of(layout, at->in[t], &bit);
            return lilac_layout_refuse(why, "%s bit %u goes to %s here and to %s in the tile", name,
                                       bit, describe(layout, here).text,
                                       describe(layout, there).text);
        }
    }
    lilac_layout made;
    lilac_layout_copy(&made, layout);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (ins >> i & 1) {
            continue;
        }
        uint64_t column = layout->columns[i];
        if ((column & outs) != 0) {
            const char *name = input_of(layout, i, &bit);
            return lilac_layout_refuse(why, "%s bit %u goes to %s, which the tile covers", name,
                                       bit, describe(layout, column & outs).text);
        }
        made.columns[kept++] = gather(column, low_bits(layout->out_bits) & ~outs);
    }
    lessen(made.in, &made.in_bits, made.in_count, ins);
    lessen(made.out, &made.out_bits, made.out_count, outs);
    lilac_layout_copy(result, &made);
    return true;
}

bool lilac_layout_divide_left(lilac_layout *result, const lilac_layout *layout,
                              const lilac_layout *tile, lilac_reason *why) {
    place at;
    return place_ends(&at, layout, tile, false, why) && divide_at(result, layout, tile, &at, why);
}

bool lilac_layout_divide_right(lilac_layout *result, const lilac_layout *layout,
                               const lilac_layout *tile, lilac_reason *why) {
    place at;
    return place_ends(&at, layout, tile, true, why) && divide_at(result, layout, tile, &at, why);
}

bool lilac_layout_divide(lilac_layout *result, const lilac_layout *layout, const lilac_layout *tile,
                         const uint64_t *outs_at, uint8_t *ins_at, lilac_reason *why) {
    place at;
    if (!place_ends(&at, layout, tile, false, why)) {
        return false;
    }
    for (uint32_t i = 0, start = 0; outs_at != NULL && i < tile->out_count; i++) {
        const lilac_layout_dim *dim = &tile->out[i];
        int j = find_dim(layout->out, layout->out_count, dim);
        uint32_t bits = j < 0 ? 0 : layout->out[j].bits;
        uint32_t first = j < 0 ? 0 : lilac_layout_out_start(layout, (uint32_t)j);
        uint64_t mask = outs_at[i];
        if ((mask & ~low_bits(bits)) != 0) {
            return lilac_layout_refuse(why, "the tile's place goes outside the %u bits of '%s'",
                                       bits, dim->name);
        }
        if ((uint32_t)__builtin_popcountll(mask) != dim->bits) {
            return lilac_layout_refuse(why, "the tile has %u bits along '%s' and %d places",
                                       dim->bits, dim->name, __builtin_popcountll(mask));
        }
        for (; mask != 0; mask &= mask - 1) {
            at.out[start++] = (uint8_t)(first + lowest_bit(mask));
        }
    }
    for (uint32_t i = 0; i < tile->in_count; i++) {
        if (!search_input(&at, layout, tile, i, why)) {
            return false;
        }
    }
    uint32_t tile_bits = tile->in_bits; /* the result may be the tile */
    if (!divide_at(result, layout, tile, &at, why)) {
        return false;
    }
    if (ins_at != NULL && tile_bits != 0) {
        memcpy(ins_at, at.in, tile_bits * sizeof ins_at[0]);
    }
    return true;
}

bool lilac_layout_division_order(uint8_t *order, const lilac_layout *layout,
                                 const lilac_layout *tile, const char *in, bool right,
                                 lilac_reason *why) {
    place at;
    int index = lilac_layout_in(layout, in), tile_index = lilac_layout_in(tile, in);
    if (index < 0) {
        return lilac_layout_refuse(why, "there is no input '%.14s'", in);
    }
    if (!place_ends(&at, layout, tile, right, why)) {
        return false;
    }
    if (tile_index >= 0 && !search_input(&at, layout, tile, (uint32_t)tile_index, why)) {
        return false;
    }
    lilac_layout quotient;
    if (!divide_at(&quotient, layout, tile, &at, why)) {
        return false;
    }

    uint32_t start = lilac_layout_in_start(layout, (uint32_t)index), bits = layout->in[index].bits;
    uint32_t tile_bits = tile_index < 0 ? 0 : tile->in[tile_index].bits;
    uint32_t tile_start = tile_index < 0 ? 0 : lilac_layout_in_start(tile, (uint32_t)tile_index);
    uint32_t tile_to = right ? bits - tile_bits : 0, rest_to = right ? 0 : tile_bits;
    uint64_t taken = 0;
    for (uint32_t t = 0; t < tile_bits; t++) {
        order[tile_to + t] = (uint8_t)(at.in[tile_start + t] - start);
        taken |= UINT64_C(1) << order[tile_to + t];
    }
    for (uint32_t k = 0; k < bits; k++) {
        if (!(taken >> k & 1)) {
            order[rest_to++] = (uint8_t)k;
        }
    }
    return true;
}

void lilac_layout_permute_bits(lilac_layout *result, const lilac_layout *layout, const char *in,
                               const uint8_t *order) {
    int index = lilac_layout_in(layout, in);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], seen = 0;
    uint32_t start = index < 0 ? 0 : lilac_layout_in_start(layout, (uint32_t)index);
    uint32_t bits = index < 0 ? 0 : layout->in[index].bits;
    for (uint32_t k = 0; k < bits; k++) {
        assert(order[k] < bits && !(seen >> order[k] & 1));
        seen |= UINT64_C(1) << order[k];
        columns[k] = layout->columns[start + order[k]];
    }
    (void)seen; /* read by assertions only */
    lilac_layout_copy(result, layout);
    if (bits != 0) {
        memcpy(&result->columns[start], columns, bits * sizeof columns[0]);
    }
}
