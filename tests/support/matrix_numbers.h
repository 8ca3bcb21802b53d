/* Matrices for tests of matrix instructions: random elements as bits, and their exact values. */
#ifndef LILAC_TESTS_MATRIX_NUMBERS_H
#define LILAC_TESTS_MATRIX_NUMBERS_H

#include <lilac/matrix.h>
#include <lilac/scalar.h>

#include <math.h>
#include <string.h>

static inline uint64_t next_random(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static inline lilac_scalar scalar_of(lilac_matrix_type type) {
    static const lilac_scalar scalars[LILAC_MATRIX_TYPE_COUNT] = {
        [LILAC_MATRIX_F16] = LILAC_F16,       [LILAC_MATRIX_BF16] = LILAC_BF16,
        [LILAC_MATRIX_TF32] = LILAC_F32,      [LILAC_MATRIX_F64] = LILAC_F64,
        [LILAC_MATRIX_E4M3] = LILAC_F8E4M3FN, [LILAC_MATRIX_E5M2] = LILAC_F8E5M2,
        [LILAC_MATRIX_F32] = LILAC_F32};
    return scalars[type];
}

static inline bool is_integer_matrix(lilac_matrix_type type) {
    return type == LILAC_MATRIX_S8 || type == LILAC_MATRIX_U8 || type == LILAC_MATRIX_B1 ||
           type == LILAC_MATRIX_S32;
}

/* The value of an element. The low 13 bits of a tf32 are ignored. */
static inline long double value_of_element(lilac_matrix_type type, uint64_t bits) {
    switch (type) {
    case LILAC_MATRIX_S8:
        return (int8_t)bits;
    case LILAC_MATRIX_S32:
        return (int32_t)bits;
    case LILAC_MATRIX_U8:
        return (uint8_t)bits;
    case LILAC_MATRIX_B1:
        return bits & 1;
    case LILAC_MATRIX_TF32:
        return lilac_scalar_decode(LILAC_F32, bits & 0xFFFFE000u);
    default:
        return lilac_scalar_decode(scalar_of(type), bits);
    }
}

/* A random element. If `exact` is set it is a small integer, so that every sum is exact. */
static inline uint64_t random_element(lilac_matrix_type type, bool exact, uint64_t *seed) {
    uint64_t r = next_random(seed);
    if (is_integer_matrix(type)) {
        return type == LILAC_MATRIX_B1    ? r & 1
               : type == LILAC_MATRIX_S32 ? (uint32_t)((int32_t)(r % 20001) - 10000)
                                          : r & 0xFF;
    }
    double value = exact ? (double)(int)(r % 9) - 4
                         : ((double)(r % 2000003) / 1000001.5 - 1) * (r % 7 == 0 ? 8 : 1);
    uint64_t bits = lilac_scalar_encode(scalar_of(type), value, LILAC_ROUND_NEAREST_EVEN, false);
    return type == LILAC_MATRIX_TF32 ? bits | (r & 0x1FFF) : bits; /* the low bits do not count */
}

/* Is `bits` the sum rounded to the type, or adjacent to it if the sum was not exact? */
static inline bool is_sum(lilac_matrix_type type, uint64_t bits, long double sum,
                          long double magnitude) {
    if (is_integer_matrix(type)) {
        return (uint32_t)bits == (uint32_t)(int64_t)sum;
    }
    long double got = value_of_element(type, bits);
    int digits = type == LILAC_MATRIX_F16 ? 11 : type == LILAC_MATRIX_F64 ? 53 : 24;
    long double error =
        ldexpl(fabsl(sum) + ldexpl(magnitude, -20), -digits + 1) + ldexpl(magnitude, -49);
    return got == sum || fabsl(got - sum) <= error;
}

#endif
