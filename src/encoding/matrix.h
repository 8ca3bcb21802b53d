/* What the matrix units of AMD and Intel have in common. */
#ifndef LILAC_ENCODING_MATRIX_H
#define LILAC_ENCODING_MATRIX_H

#include "internal.h"

/* What is wrong with the parameters of a layout, so that reading it and building it from C refuse
 * the same: the field (its number in the kind's list; WHOLE: no one field), the id of the
 * diagnostic, and why. */
typedef struct lilac_encoding_fault {
    uint32_t field;
    const char *id;
    lilac_reason why;
} lilac_encoding_fault;

enum { LILAC_ENCODING_WHOLE = UINT8_MAX };

/* Fills it in and is false. */
bool lilac_encoding_find_fault(lilac_encoding_fault *fault, uint32_t field, const char *id,
                               const char *format, ...) LILAC_PRINTF(4, 5);
/* Reports it where the field is, or where the layout is when the field is not given; is false. */
bool lilac_encoding_refuse_fault(lilac_encoding_reader *r, const lilac_encoding *encoding,
                                 const lilac_encoding_param *params,
                                 const lilac_encoding_fault *fault);

/* The encoding that was made, or the reason where it has a fault; false then. */
bool lilac_encoding_give(lilac_encoding *result, const lilac_encoding *made,
                         const lilac_encoding_fault *fault, lilac_reason *why);

/* Whether it has 2 dimensions (m, n) or 3 (batch, m, n). */
LILAC_MUST_USE bool lilac_encoding_is_matrix(const lilac_encoding *encoding,
                                             lilac_encoding_fault *fault);

/* An encoding of this kind with nothing set but its rank. */
void lilac_encoding_begin(lilac_encoding *encoding, lilac_encoding_kind kind, uint32_t rank);

/* Sizes that are 1 when they are not given. */
void lilac_encoding_fill_ones(uint32_t *values);
bool lilac_encoding_all_ones(const uint32_t *values, uint32_t count);

/* The order in which a result's tiles are repeated: the last dimension first. */
void lilac_encoding_result_order(uint32_t *order, uint32_t rank);
/* An operand's: K, then the other dimension of the matrix, then the batch. */
void lilac_encoding_operand_order(uint32_t *order, const lilac_encoding *dot);

/* Registers along the dimension until the tile covers the whole tensor, all blocks' parts of it: as
 * Triton has it, so that those beyond one block's part hold copies. `copies` bits of what the tile
 * takes hold copies. */
void lilac_encoding_tile_cover(lilac_encoding_tile *tile, uint32_t dim,
                               const lilac_encoding_shape *shape, uint32_t copies);
/* A result's tiles and waves; its last dimension is covered before tiles go along the others. */
void lilac_encoding_amd_result(lilac_encoding_tile *tile, const uint32_t *tiles,
                               const uint32_t *warps, const lilac_encoding_shape *shape);
/* An operand's tiles and waves, in its order. */
void lilac_encoding_amd_operand(lilac_encoding_tile *tile, const uint32_t *order,
                                const uint32_t *tiles, const uint32_t *warps);

#endif
