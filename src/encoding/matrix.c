/* encoding: what the matrix units of AMD and Intel have in common.
 *
 * Their tensors are a matrix (m, n) or a batch of them. A unit's tile is put together first: which
 * bits of its dimensions are in a lane's registers and which on lanes. Then come the tiles of one
 * wave, the waves of a block, and the further registers that a larger tensor takes:
 *
 *     one dimension, from the lowest bit:   tile | tilesPerWarp | warpsPerCTA | the tensor's rest
 *
 * Of an operand, waves along K hold copies, since each needs all of K.
 */
#include "matrix.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* ---- checking --------------------------------------------------------------------------- */

bool lilac_encoding_find_fault(lilac_encoding_fault *fault, uint32_t field, const char *id,
                               const char *format, ...) {
    va_list arguments;
    fault->field = field;
    fault->id = id;
    va_start(arguments, format);
    (void)vsnprintf(fault->why.text, sizeof fault->why.text, format, arguments);
    va_end(arguments);
    return false;
}

bool lilac_encoding_refuse_fault(lilac_encoding_reader *r, const lilac_encoding *encoding,
                                 const lilac_encoding_param *params,
                                 const lilac_encoding_fault *fault) {
    bool given = fault->field != LILAC_ENCODING_WHOLE && params[fault->field].given;
    return lilac_scanner_refuse(r->scanner,
                                given ? params[fault->field].position : encoding->position,
                                fault->id, "%s", fault->why.text);
}

bool lilac_encoding_give(lilac_encoding *result, const lilac_encoding *made,
                         const lilac_encoding_fault *fault, lilac_reason *why) {
    if (fault == NULL) {
        *result = *made;
    } else if (why != NULL) {
        *why = fault->why;
    }
    return fault == NULL;
}

bool lilac_encoding_is_matrix(const lilac_encoding *encoding, lilac_encoding_fault *fault) {
    if (encoding->rank == 2 || encoding->rank == 3) {
        return true;
    }
    return lilac_encoding_find_fault(fault, LILAC_ENCODING_WHOLE, "layout-rank",
                                     "layouts of kind '#%s' have 2 or 3 dimensions, not %u",
                                     lilac_encoding_row_of(encoding->kind)->spelling,
                                     encoding->rank);
}

void lilac_encoding_begin(lilac_encoding *encoding, lilac_encoding_kind kind, uint32_t rank) {
    assert(rank <= LILAC_MAX_RANK);
    memset(encoding, 0, sizeof *encoding);
    encoding->kind = kind;
    encoding->rank = rank;
}

void lilac_encoding_fill_ones(uint32_t *values) {
    for (uint32_t d = 0; d < LILAC_MAX_RANK; d++) {
        values[d] = 1;
    }
}

bool lilac_encoding_all_ones(const uint32_t *values, uint32_t count) {
    for (uint32_t d = 0; d < count; d++) {
        if (values[d] != 1) {
            return false;
        }
    }
    return true;
}

/* ---- placing ---------------------------------------------------------------------------- */

void lilac_encoding_tile_cover(lilac_encoding_tile *tile, uint32_t dim,
                               const lilac_encoding_shape *shape, uint32_t copies) {
    uint32_t taken = tile->used[dim] + copies;
    if (taken < shape->bits[dim]) {
        lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, dim, shape->bits[dim] - taken);
    }
}

void lilac_encoding_result_order(uint32_t *order, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = rank - 1 - i;
    }
}

void lilac_encoding_operand_order(uint32_t *order, const lilac_encoding *dot) {
    lilac_encoding_result_order(order, dot->rank);
    if (dot->as.dot.operand == 1) {
        order[0] = dot->rank - 2;
        order[1] = dot->rank - 1;
    }
}

/* Triton ignores tilesPerWarp of the batch. */
void lilac_encoding_amd_result(lilac_encoding_tile *tile, const uint32_t *tiles,
                               const uint32_t *warps, const lilac_encoding_shape *shape) {
    for (uint32_t i = 0; i < tile->rank; i++) {
        uint32_t d = tile->rank - 1 - i;
        if (i < 2) {
            lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, d,
                                     lilac_encoding_log2(tiles[d]));
        }
        lilac_encoding_tile_step(tile, LILAC_ENCODING_WARP, d, lilac_encoding_log2(warps[d]));
        if (i == 0) {
            lilac_encoding_tile_cover(tile, d, shape, 0);
        }
    }
}

void lilac_encoding_amd_operand(lilac_encoding_tile *tile, const uint32_t *order,
                                const uint32_t *tiles, const uint32_t *warps) {
    uint32_t waves[LILAC_MAX_RANK];
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, order[1],
                             lilac_encoding_log2(tiles[order[1]]));
    lilac_encoding_result_order(waves, tile->rank);
    lilac_encoding_tile_sizes(tile, LILAC_ENCODING_WARP, warps, waves, (int)order[0]);
}
