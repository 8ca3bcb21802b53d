/* Loads through pointers that read a tile of a strided tensor. Private to the engine. */
#ifndef LILAC_ENGINE_STRIDED_TILE_H
#define LILAC_ENGINE_STRIDED_TILE_H

#include "facts/coordinates.h"

enum { TILE_MOST_RANK = 5 };
#define TILE_UNBOUNDED (INT64_C(1) << 31) /* elements of a dimension that no mask bounds */

/* A tensor in memory that the parameters of a kernel describe, and the tile that a load reads:
 *
 *     element (y, x) of the tensor    base[offset + y · strides[0] + x], 0 ≤ y < sizes[0], 0 ≤ x < sizes[1]
 *     element (i, j) of the load      element (at[0] + i, at[1] + j) of the tensor; zero if it has none
 *
 * The offset, the sizes and the strides are sums of products of integer parameters and their quotients by
 * numbers. The tensor has
 * the dimensions of the load, the contiguous one last, and in front of them others, along which the
 * load reads one element. */
typedef struct lilac_strided_tile {
    lilac_tile_value *base; /* a parameter */
    uint32_t rank;          /* of the tensor */
    lilac_sum offset, sizes[TILE_MOST_RANK], strides[TILE_MOST_RANK - 1];
    lilac_sum at[TILE_MOST_RANK];
    uint32_t pitch; /* strides of multiples of this many bytes are worth a tensor map; 0: all */
    uint32_t load_rank;
    uint32_t order[TILE_MOST_RANK]; /* the load's dimensions in the order of the tensor's */
    /* By dimension of the load: elements with an index that is not below this are zero in the tile
     * and others in the load, such as remainders. NULL: there are none. */
    const lilac_sum *below[TILE_MOST_RANK];
} lilac_strided_tile;

/* The tile of a load (tt.load) of a numbered function. Adds to the conditions. False: it is not
 * known to be one. */
bool lilac_strided_tile_of(lilac_strided_tile *tile, lilac_tile_conditions *conditions,
                           const lilac_tile_op *load, lilac_arena *arena);
/* Are both tiles of the same tensor? */
bool lilac_strided_tile_is_of(const lilac_strided_tile *a, const lilac_strided_tile *b);

#endif
