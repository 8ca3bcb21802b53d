/* encoding: the tile of a distributed layout, and how it fits a tensor.
 *
 * A tile is put together as the product of identities, each over the next bits of one dimension.
 * Then it meets a tensor: the blocks take the highest bits of each dimension, what is left for one
 * block is filled, and what is more than that holds copies.
 *
 *     dim1 of 64, sizePerThread 4, threadsPerWarp 8, warpsPerCTA 2, two blocks along it
 *
 *         bit    5      4     3  2  1     0 …
 *              block   warp   l  l  l   r  r           too small a tile: registers go round on top
 */
#include "internal.h"

#include <assert.h>
#include <string.h>

static const char *const level_names[LILAC_ENCODING_LEVELS] = {"register", "lane", "warp"};

uint32_t lilac_encoding_log2(uint64_t power) {
    return (uint32_t)__builtin_ctzll(power);
}

const char *lilac_encoding_dim_name(uint32_t d) {
    static const char *const names[LILAC_MAX_RANK] = {
        "dim0",  "dim1",  "dim2",  "dim3",  "dim4",  "dim5",  "dim6",  "dim7",
        "dim8",  "dim9",  "dim10", "dim11", "dim12", "dim13", "dim14", "dim15",
        "dim16", "dim17", "dim18", "dim19", "dim20", "dim21", "dim22", "dim23"};
    return names[d];
}

bool lilac_encoding_outs(lilac_layout *layout, const lilac_encoding_shape *shape,
                         lilac_reason *why) {
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (!lilac_layout_add_out(layout, lilac_encoding_dim_name(d), shape->bits[d], why)) {
            return false;
        }
    }
    return true;
}

/* ---- putting together ------------------------------------------------------------------- */

void lilac_encoding_tile_init(lilac_encoding_tile *tile, uint32_t rank) {
    memset(tile, 0, offsetof(lilac_encoding_tile, places));
    tile->rank = rank;
}

static void append(lilac_encoding_tile *tile, lilac_encoding_level level, uint32_t dim,
                   uint32_t bit) {
    if (tile->count[level] == LILAC_ENCODING_TILE_BITS || bit > UINT8_MAX) {
        tile->full = true;
        return;
    }
    lilac_encoding_tile_bit *at = &tile->at[level][tile->count[level]++];
    at->dim = (uint8_t)dim;
    at->bit = (uint8_t)bit;
}

void lilac_encoding_tile_bit_at(lilac_encoding_tile *tile, lilac_encoding_level level, uint32_t dim,
                                uint32_t bit) {
    append(tile, level, dim, bit);
    if (tile->used[dim] <= bit) {
        tile->used[dim] = bit + 1;
    }
}

void lilac_encoding_tile_place(lilac_encoding_tile *tile, lilac_encoding_level level,
                               const uint64_t *place) {
    if (tile->place_count == LILAC_ENCODING_TILE_PLACES) {
        tile->full = true;
        return;
    }
    memcpy(tile->places[tile->place_count], place, tile->rank * sizeof *place);
    append(tile, level, LILAC_ENCODING_TILE_PLACE, tile->place_count++);
    for (uint32_t d = 0; d < tile->rank; d++) {
        uint32_t bits = place[d] == 0 ? 0 : 64U - (uint32_t)__builtin_clzll(place[d]);
        if (tile->used[d] < bits) {
            tile->used[d] = bits;
        }
    }
}

void lilac_encoding_tile_step(lilac_encoding_tile *tile, lilac_encoding_level level, uint32_t dim,
                              uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        append(tile, level, dim, tile->used[dim]++);
    }
}

void lilac_encoding_tile_copies(lilac_encoding_tile *tile, lilac_encoding_level level,
                                uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        append(tile, level, LILAC_ENCODING_TILE_COPY, 0);
    }
}

void lilac_encoding_tile_sizes(lilac_encoding_tile *tile, lilac_encoding_level level,
                               const uint32_t *sizes, const uint32_t *order, int broadcast) {
    for (uint32_t i = 0; i < tile->rank; i++) {
        uint32_t d = order[i], bits = lilac_encoding_log2(sizes[d]);
        if ((int)d == broadcast) {
            lilac_encoding_tile_copies(tile, level, bits);
        } else {
            lilac_encoding_tile_step(tile, level, d, bits);
        }
    }
}

/* ---- fitting ---------------------------------------------------------------------------- */

void lilac_encoding_block_bits(uint32_t *taken, const lilac_encoding_blocks *blocks,
                               const lilac_encoding_shape *shape) {
    for (uint32_t d = 0; d < shape->rank; d++) {
        uint32_t covered = 0;
        for (uint32_t k = 0; blocks != NULL && k < blocks->bits; k++) {
            covered += blocks->basis[k][d] != 0;
        }
        taken[d] = covered < shape->bits[d] ? covered : shape->bits[d];
    }
}

void lilac_encoding_block_columns(uint64_t *columns, const lilac_encoding_blocks *blocks,
                                  const lilac_encoding_shape *shape) {
    uint32_t taken[LILAC_MAX_RANK];
    lilac_encoding_block_bits(taken, blocks, shape);
    for (uint32_t k = 0; k < blocks->bits; k++) {
        columns[k] = 0;
        for (uint32_t d = 0, start = 0; d < shape->rank; start += shape->bits[d++]) {
            uint32_t step = blocks->basis[k][d];
            if (step != 0 && lilac_encoding_log2(step) < taken[d]) {
                columns[k] = UINT64_C(1)
                             << (start + shape->bits[d] - taken[d] + lilac_encoding_log2(step));
            }
        }
    }
}

/* A bit of the tile as a column; what is beyond `available` bits of a dimension is removed. */
static uint64_t column_of(const lilac_encoding_tile *tile, lilac_encoding_tile_bit at,
                          const uint32_t *start, const uint32_t *available) {
    uint64_t column = 0;
    if (at.dim == LILAC_ENCODING_TILE_COPY) {
        return 0;
    }
    if (at.dim != LILAC_ENCODING_TILE_PLACE) {
        return at.bit >= available[at.dim] ? 0 : UINT64_C(1) << (start[at.dim] + at.bit);
    }
    for (uint32_t d = 0; d < tile->rank; d++) {
        uint64_t mask = available[d] < 64 ? (UINT64_C(1) << available[d]) - 1 : UINT64_MAX;
        if ((tile->places[at.bit][d] & mask) != 0) {
            column |= (tile->places[at.bit][d] & mask) << start[d];
        }
    }
    return column;
}

bool lilac_encoding_tile_fit(lilac_context *context, lilac_layout *result,
                             const lilac_encoding *encoding, const lilac_encoding_tile *tile,
                             const lilac_encoding_shape *shape, const uint32_t *order,
                             const lilac_encoding_blocks *blocks) {
    static const lilac_encoding_blocks one_block;
    uint32_t start[LILAC_MAX_RANK], available[LILAC_MAX_RANK], taken[LILAC_MAX_RANK];
    if (blocks == NULL) {
        blocks = &one_block;
    }
    lilac_encoding_block_bits(taken, blocks, shape);
    for (uint32_t d = 0, sum = 0; d < shape->rank; sum += shape->bits[d++]) {
        start[d] = sum;
        available[d] = shape->bits[d] - taken[d];
    }

    lilac_encoding_tile whole = *tile;
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint32_t d = order[i];
        if (whole.used[d] < available[d]) {
            lilac_encoding_tile_step(&whole, LILAC_ENCODING_REGISTER, d,
                                     available[d] - whole.used[d]);
        }
    }

    lilac_layout made;
    uint64_t columns[LILAC_ENCODING_TILE_BITS];
    bool added = !whole.full && lilac_encoding_outs(&made, shape, NULL);
    for (uint32_t l = 0; added && l < LILAC_ENCODING_LEVELS; l++) {
        for (uint32_t k = 0; k < whole.count[l]; k++) {
            columns[k] = column_of(&whole, whole.at[l][k], start, available);
        }
        added = lilac_layout_add_in(&made, level_names[l], whole.count[l], columns, NULL);
    }
    lilac_encoding_block_columns(columns, blocks, shape);
    added = added && lilac_layout_add_in(&made, "block", blocks->bits, columns, NULL);
    if (!added) {
        return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                     "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
    }
    *result = made;
    return true;
}
