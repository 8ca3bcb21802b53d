/* Loads of shared memory at places that nothing is known of.
 *
 * Balls into boxes: 2^n lanes draw a word each, the words stand 2^e deep in 2^n banks, and a
 * transaction takes as many wavefronts as the most different words that were drawn in one bank.
 * A transaction's 32 lanes are 2^(5 - n) such games side by side, each in banks of its own, and the
 * worst of them counts; 64 lanes and 64 banks are one game. The table has the mean over many
 * drawings, in sixteenths. */
#include <lilac/bits.h>
#include <lilac/plan.h>

enum { MOST_LANE_BITS = 6, MOST_DEPTH = 5 };

static const uint8_t mean[MOST_LANE_BITS + 1][MOST_DEPTH + 1] = {
    {16, 16, 16, 16, 16, 16}, /* a bank for each lane */
    {16, 32, 32, 32, 32, 32}, /* 16 pairs of lanes: some pair meets */
    {16, 32, 40, 44, 46, 46}, {16, 32, 42, 48, 50, 51}, {16, 32, 44, 50, 52, 54},
    {16, 32, 44, 50, 53, 55}, {16, 32, 49, 56, 59, 61}};

uint32_t lilac_plan_scattered_wavefronts(uint32_t lane_bits, uint32_t bank_bits,
                                         uint32_t word_bits) {
    uint32_t depth = word_bits > bank_bits ? word_bits - bank_bits : 0;
    uint32_t bits = min_u32(min_u32(lane_bits, bank_bits), MOST_LANE_BITS);
    uint32_t crowd = mean[bits][min_u32(depth, MOST_DEPTH)];
    /* Fewer banks than lanes: so many draw from each at once, and none more than there is. */
    uint32_t more = lane_bits > bank_bits ? lane_bits - bank_bits : 0;
    return min_u32(crowd << min_u32(more, depth), 16U << min_u32(depth, 16));
}
