/* bits: small functions on words that every component needs. Internal: not installed. */
#ifndef LILAC_BITS_H
#define LILAC_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t min_u32(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static inline int64_t min_i64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t max_i64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

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

static inline bool is_power_of_two(uint64_t value) {
    return value != 0 && (value & (value - 1)) == 0;
}

/* The least k with value <= 2^k: the logarithm of a power of two, rounded up for other numbers. */
static inline uint32_t log2_of(uint64_t value) {
    return value <= 1 ? 0 : highest_bit(value - 1) + 1;
}

#endif
