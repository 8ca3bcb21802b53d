/* Classes of tile operations that the rows of operations.def name. */
#ifndef LILAC_TILE_OPERATION_CLASSES_H
#define LILAC_TILE_OPERATION_CLASSES_H

/* The number of instructions of an operation for each element. */
typedef enum lilac_tile_cost {
    LILAC_TILE_COST_SIMPLE,  /* one, or none */
    LILAC_TILE_COST_CONVERT, /* a few: conversions to and from small floats */
    LILAC_TILE_COST_SPECIAL, /* one at a part of the rate: divisions and functions of floats */
    LILAC_TILE_COST_DIVIDE,  /* a sequence: divisions of integers, which zero leaves undefined */
    LILAC_TILE_COST_PROGRAM  /* unknown: functions of libraries, assembly, regions */
} lilac_tile_cost;

/* The operand 1 that leaves operand 0 as it is, as in x + 0 and x * 1. Of a commutative operation
 * operand 0 leaves operand 1 too. */
typedef enum lilac_tile_neutral {
    LILAC_TILE_NEUTRAL_NONE,
    LILAC_TILE_NEUTRAL_ZERO,
    LILAC_TILE_NEUTRAL_ONE
} lilac_tile_neutral;

#endif
