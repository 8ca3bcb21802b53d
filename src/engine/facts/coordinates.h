/* Coordinates of tiles, and the conditions under which they are right (coordinates.c). Private to
 * the engine. */
#ifndef LILAC_ENGINE_COORDINATES_H
#define LILAC_ENGINE_COORDINATES_H

#include "facts/sums.h"

enum { TILE_MOST_PROGRAMS = 1 << 20 };

/* What must hold for a tile: integer parameters that are not negative, and divisors in the kernel
 * that are positive. */
typedef struct lilac_tile_conditions {
    const lilac_range *ranges; /* by value id */
    uint64_t parameters;       /* a set of indices below 64 */
    bool small_grid; /* the grid has at most TILE_MOST_PROGRAMS programs along a dimension */
    bool any_sign;   /* tensors may begin in front of their pointers */
    uint32_t divisor_count;
    lilac_tile_op *divisions[8]; /* whose second operand must be positive */
} lilac_tile_conditions;

/* Is it a number of 32 bits because the kernel computes it in 32 bits? `computed`: it is the value
 * of an operation, and not the sum of offsets that are added to a pointer one after the other. */
bool lilac_coordinate_is_narrow(const lilac_sum *sum, bool computed);
/* Is it a number of 32 bits by the ranges of its values, all of which are not negative? May add the
 * condition on the grid. */
bool lilac_coordinate_is_small(lilac_tile_conditions *conditions, const lilac_sum *sum);
/* Is it a sum of values of 32 bits and, with `natural`, of values and factors that are not
 * negative? Adds to the conditions. */
bool lilac_coordinate_is_valid(lilac_tile_conditions *conditions, const lilac_sum *at,
                               bool natural);

#endif
