/* Loads of shared memory from unpredictable addresses.
 *
 * The model is balls into bins: each of 2^n lanes draws a word from 2^n banks that hold 2^e words
 * each. A transaction takes as many wavefronts as the largest number of different words drawn from
 * one bank. A transaction of 32 lanes contains 2^(5 - n) such groups, each with its own banks, and
 * the slowest group counts; 64 lanes and 64 banks form one group. The table holds the mean over
 * many drawings, in sixteenths; row n, column e. */
#include <lilac/bits.h>
#include <lilac/plan.h>

enum { MAX_LANE_BITS = 6, MAX_DEPTH = 5 };

static const uint8_t mean[MAX_LANE_BITS + 1][MAX_DEPTH + 1] = {
    {16, 16, 16, 16, 16, 16}, /* one bank per lane */
    {16, 32, 32, 32, 32, 32}, /* 16 pairs of lanes; some pair collides */
    {16, 32, 40, 44, 46, 46}, {16, 32, 42, 48, 50, 51}, {16, 32, 44, 50, 52, 54},
    {16, 32, 44, 50, 53, 55}, {16, 32, 49, 56, 59, 61}};

uint32_t lilac_plan_scattered_wavefronts(uint32_t lane_bits, uint32_t bank_bits,
                                         uint32_t word_bits) {
    uint32_t depth = word_bits > bank_bits ? word_bits - bank_bits : 0;
    uint32_t bits = min_u32(min_u32(lane_bits, bank_bits), MAX_LANE_BITS);
    uint32_t crowd = mean[bits][min_u32(depth, MAX_DEPTH)];
    /* With fewer banks than lanes, several groups draw from each bank, up to its number of
     * words. */
    uint32_t more = lane_bits > bank_bits ? lane_bits - bank_bits : 0;
    return min_u32(crowd << min_u32(more, depth), 16U << min_u32(depth, 16));
}
