/* The combine regions of tt.reduce and tt.scan, as text and in plain C, for the tests of
 * `lower`. */
#ifndef LILAC_LOWER_COMBINES_H
#define LILAC_LOWER_COMBINES_H

#include "support/lower_harness.h"

typedef struct combine {
    lilac_scalar scalar;
    const char *line; /* the region's operation on %a and %b, giving %c */
    uint64_t (*combine)(lilac_scalar scalar, uint64_t a, uint64_t b);
} combine;

static inline uint64_t sum_of(lilac_scalar s, uint64_t a, uint64_t b) {
    return lilac_scalar_is_float(s)
               ? lilac_scalar_encode(s, lilac_scalar_decode(s, a) + lilac_scalar_decode(s, b),
                                     LILAC_ROUND_NEAREST_EVEN, false)
               : lilac_scalar_mask(s, a + b);
}

static inline uint64_t larger_of(lilac_scalar s, uint64_t a, uint64_t b) {
    return lilac_scalar_decode(s, a) > lilac_scalar_decode(s, b) ? a : b;
}

static inline uint64_t xor_of(lilac_scalar s, uint64_t a, uint64_t b) {
    (void)s;
    return a ^ b;
}

static inline uint64_t product_of(lilac_scalar s, uint64_t a, uint64_t b) {
    return lilac_scalar_mask(s, a * b);
}

/* Values whose sums are exact in any order. */
static inline uint64_t exact_element(lilac_random *random, const combine *c) {
    if (!lilac_scalar_is_float(c->scalar)) {
        return c->combine == product_of ? lilac_random_next(random) | 1
                                        : random_element(random, c->scalar);
    }
    double value = (double)lilac_random_below(random, 9) - 4.0;
    return lilac_scalar_encode(c->scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
}

#endif
