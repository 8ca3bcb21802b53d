/* Loads of shared memory at places that nothing is known of.
 *
 * Balls into boxes: 2^n lanes draw a word each, the words stand 2^e deep in 2^n banks, and a
 * transaction takes as many wavefronts as the most different words that were drawn in one bank.
 * A transaction's 32 lanes are 2^(5 - n) such games side by side, each in banks of its own, and the
 * worst of them counts; 64 lanes and 64 banks are one game. The table has the mean over many
 * drawings, in sixteenths. */
#include <lilac/plan.h>

enum { MAX_LANE_BITS = 6, MAX_DEPTH = 5 };

static const uint8_t mean[MAX_LANE_BITS + 1][MAX_DEPTH + 1] = {
    {16, 16, 16, 16, 16, 16}, /* a bank for each lane */
    {16, 32, 32, 32, 32, 32}, /* 16 pairs of lanes: some pair meets */
    {16, 32, 40, 44, 46, 46}, {16, 32, 42, 48, 50, 51}, {16, 32, 44, 50, 52, 54},
    {16, 32, 44, 50, 53, 55}, {16, 32, 49, 56, 59, 61}};

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

uint32_t lilac_plan_scattered_wavefronts(uint32_t lane_bits, uint32_t bank_bits,
                                         uint32_t word_bits) {
    uint32_t depth = word_bits > bank_bits ? word_bits - bank_bits : 0;
    uint32_t bits = least(least(lane_bits, bank_bits), MAX_LANE_BITS);
    uint32_t crowd = mean[bits][least(depth, MAX_DEPTH)];
    /* Fewer banks than lanes: so many draw from each at once, and none more than there is. */
    uint32_t more = lane_bits > bank_bits ? lane_bits - bank_bits : 0;
    return least(crowd << least(more, depth), 16U << least(depth, 16));
}
