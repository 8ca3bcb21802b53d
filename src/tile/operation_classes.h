/* Classes of tile operations that the rows of operations.def name. */
#ifndef LILAC_TILE_OPERATION_CLASSES_H
#define LILAC_TILE_OPERATION_CLASSES_H

/* How many instructions an operation is for each element. */
typedef enum lilac_tile_cost {
    LILAC_TILE_COST_SIMPLE,  /* one, or none */
    LILAC_TILE_COST_CONVERT, /* a few: conversions to and from 8-bit floats */
    LILAC_TILE_COST_SPECIAL, /* instructions at a part of the rate: divisions and functions of floats */
    LILAC_TILE_COST_DIVIDE, /* a sequence: divisions of integers, which are undefined by zero */
    LILAC_TILE_COST_PROGRAM /* not known: functions of libraries, assembly, regions */
} lilac_tile_cost;

/* The operand 1 that leaves operand 0 as it is, as in x + 0 and x * 1. Of a commutative operation
 * operand 0 leaves operand 1 too. */
typedef enum lilac_tile_neutral {
    LILAC_TILE_NEUTRAL_NONE,
    LILAC_TILE_NEUTRAL_ZERO,
    LILAC_TILE_NEUTRAL_ONE
} lilac_tile_neutral;

#endif
