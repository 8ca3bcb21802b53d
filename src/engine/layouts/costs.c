/* Estimates of the instructions that compute an operation, from the column `cost` of operations.def. */
#include "internal.h"

static const uint8_t cost_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = LILAC_TILE_COST_##cost,
#include <lilac/operations.def>
};

bool lilac_engine_is_expensive(lilac_tile_opcode code) {
    return cost_of[code] == LILAC_TILE_COST_SPECIAL;
}

int64_t lilac_engine_issues(const lilac_tile_op *op) {
    /* `wide`: log2 of the factor for results with more than 32 bits */
    static const struct {
        uint8_t count, wide;
    } issues[] = {[LILAC_TILE_COST_SIMPLE] = {1, 1},
                  [LILAC_TILE_COST_CONVERT] = {4, 0},
                  [LILAC_TILE_COST_SPECIAL] = {8, 1},
                  [LILAC_TILE_COST_DIVIDE] = {16, 2},
                  [LILAC_TILE_COST_PROGRAM] = {32, 0}};
    bool words = op->result_count > 0 && lilac_tile_element_bits(op->results[0].type) > 32;
    lilac_tile_cost cost = (lilac_tile_cost)cost_of[op->code];
    return (int64_t)issues[cost].count << (words ? issues[cost].wide : 0);
}
