/* bits: small functions on words that every component needs. Internal: not installed. */
#ifndef LILAC_BITS_H
#define LILAC_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* A word whose `count` lowest bits are set; all 64 for 64 and above. */
static inline uint64_t low_bits(uint32_t count) {
    return count >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1;
}

/* Index of the lowest and of the highest bit that is set. The word is not 0. */
static inline uint32_t lowest_bit(uint64_t word) {
    return (uint32_t)__builtin_ctzll(word);
}

static inline uint32_t highest_bit(uint64_t word) {
    return 63U - (uint32_t)__builtin_clzll(word);
}

#endif
