/* Random layouts of up to 14 bits, for the property tests.
 *
 * LILAC_TEST_SCALE multiplies the number of random objects. Objects are made so that what is asked
 * of them is known by construction: an invertible map is a product of elementary ones, a surjective
 * one an invertible one with columns put in between. */
#ifndef LILAC_TESTS_RANDOM_LAYOUTS_H
#define LILAC_TESTS_RANDOM_LAYOUTS_H

#include <lilac/layout.h>

#include "support/test.h"

enum { MAX_BITS = 14 };

static const char *const hardware[] = {"register", "lane", "warp", "block"};
static const char *const tensor[] = {"dim0", "dim1", "dim2", "dim3"};
static const char *const memory[] = {"offset", "bank", "segment", "round"};

/* Cuts `bits` into up to 4 named parts, some of them empty. */
typedef struct parts {
    uint32_t count;
    const char *const *names;
    uint32_t bits[4];
} parts;

static inline parts cut(lilac_random *random, const char *const *names, uint32_t bits) {
    parts result = {1 + random_below(random, 4), names, {0}};
    for (uint32_t i = 0; i < bits; i++) {
        result.bits[random_below(random, result.count)]++;
    }
    return result;
}

static inline void layout_of(lilac_layout *layout, const parts *in, const parts *out,
                             const uint64_t *columns) {
    lilac_layout_init(layout);
    for (uint32_t i = 0; i < out->count; i++) {
        assert_true(lilac_layout_add_out(layout, out->names[i], out->bits[i], NULL));
    }
    for (uint32_t i = 0, at = 0; i < in->count; at += in->bits[i++]) {
        assert_true(lilac_layout_add_in(layout, in->names[i], in->bits[i], columns + at, NULL));
    }
}

static inline void random_columns(uint64_t *columns, lilac_random *random, uint32_t in,
                                  uint32_t out) {
    for (uint32_t i = 0; i < in; i++) {
        columns[i] = lilac_random_next(random) & ((UINT64_C(1) << out) - 1);
    }
}

static inline void invertible_columns(uint64_t *columns, lilac_random *random, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; bits > 1 && i < 6 * bits; i++) {
        uint32_t a = random_below(random, bits), b = random_below(random, bits - 1);
        columns[a] ^= columns[b + (b >= a)];
    }
}

/* Onto `out` bits from `in` of them: the columns of an invertible map in random places, and between
 * them zeros (in half of the maps) or anything. */
static inline void surjective_columns(uint64_t *columns, lilac_random *random, uint32_t in,
                                      uint32_t out) {
    uint64_t onto[MAX_BITS];
    bool zeros = random_below(random, 2) == 0;
    invertible_columns(onto, random, out);
    for (uint32_t i = 0, used = 0; i < in; i++) {
        if (used < out && random_below(random, in - i) < out - used) {
            columns[i] = onto[used++];
        } else {
            columns[i] = zeros ? 0 : lilac_random_next(random) & ((UINT64_C(1) << out) - 1);
        }
    }
}

/* Zeros and distinct unit vectors, onto. */
static inline void distributed_columns(uint64_t *columns, lilac_random *random, uint32_t in,
                                       uint32_t out) {
    uint32_t unit[MAX_BITS];
    for (uint32_t i = 0; i < out; i++) {
        uint32_t k = random_below(random, i + 1);
        unit[i] = unit[k];
        unit[k] = i;
    }
    for (uint32_t i = 0, used = 0; i < in; i++) {
        bool take = used < out && random_below(random, in - i) < out - used;
        columns[i] = take ? UINT64_C(1) << unit[used++] : 0;
    }
}

#endif
