/* layout: a layout applied to whole ranges of indices.
 *
 * L(index) = L(high bits) ⊕ L(low bits), so one table of the low bits' values serves for every run
 * of 2^8 indices, and an element costs one xor:
 *
 *     run of indices      n·256 … n·256 + 255
 *     its places          base(n) ⊕ table[0 … 255]          (a loop that compilers vectorise)
 *
 * The table is made by doubling: its second half is the first with one more column. From n to n + 1
 * the bits that change are the lowest run of ones and the zero above them, so base changes by a
 * prefix sum of the high columns, chosen by the number of trailing zeros of n + 1, as in counting
 * in Gray code.
 *
 * Scattered indices go through eight tables, one for each byte of the index.
 */
#include "internal.h"

#include <assert.h>

enum { RUN_BITS = 8, RUN = 1 << RUN_BITS };

/* Columns along what is asked for, and indices in range. */
static bool in_range(const lilac_layout *layout, uint64_t first, uint64_t count,
                     lilac_reason *why) {
    uint64_t last = low_bits(layout->in_bits);
    if (count != 0 && (first > last || count - 1 > last - first)) {
        return lilac_layout_refuse(why, "indices %llu … %llu + %llu go outside the 2^%u inputs",
                                   (unsigned long long)first, (unsigned long long)first,
                                   (unsigned long long)count, layout->in_bits);
    }
    return true;
}

typedef struct stepper {
    uint64_t table[RUN];                      /* of the low bits */
    uint64_t step[LILAC_LAYOUT_MAX_BITS + 1]; /* base(n) ⊕ base(n + 1) by trailing zeros of n + 1 */
    uint64_t base;
    uint64_t run; /* n */
} stepper;

static uint64_t value_of(const uint64_t *columns, uint64_t index) {
    uint64_t sum = 0;
    for (; index != 0; index &= index - 1) {
        sum ^= columns[lowest_bit(index)];
    }
    return sum;
}

static void start_at(stepper *at, const uint64_t *columns, uint32_t bits, uint64_t first) {
    uint32_t low = bits < RUN_BITS ? bits : RUN_BITS;
    at->table[0] = 0;
    for (uint32_t k = 0; k < low; k++) {
        for (uint32_t i = 0; i < 1U << k; i++) {
            at->table[(1U << k) + i] = at->table[i] ^ columns[k];
        }
    }
    uint64_t sum = 0;
    for (uint32_t k = 0; RUN_BITS + k < bits; k++) {
        at->step[k] = sum ^= columns[RUN_BITS + k];
    }
    at->run = first >> RUN_BITS;
    at->base = value_of(columns, first & ~(uint64_t)(RUN - 1));
}

/* There must be a next run. */
static void next_run(stepper *at) {
    at->run++;
    at->base ^= at->step[lowest_bit(at->run)];
}

static void fill(uint64_t *places, const uint64_t *columns, uint32_t bits, uint64_t first,
                 uint64_t count) {
    stepper at;
    if (count == 0) {
        return;
    }
    start_at(&at, columns, bits, first);
    uint32_t low = (uint32_t)(first & (RUN - 1));
    for (;;) {
        uint32_t length = RUN - low < count ? RUN - low : (uint32_t)count;
        const uint64_t base = at.base, *table = at.table + low;
        for (uint32_t i = 0; i < length; i++) {
            places[i] = base ^ table[i];
        }
        count -= length;
        if (count == 0) {
            return;
        }
        places += length;
        low = 0;
        next_run(&at);
    }
}

static void fill32(uint32_t *places, const uint64_t *columns, uint32_t bits, uint64_t first,
                   uint64_t count) {
    stepper at;
    uint32_t narrow[RUN];
    if (count == 0) {
        return;
    }
    start_at(&at, columns, bits, first);
    for (uint32_t i = 0; i < (bits < RUN_BITS ? 1U << bits : RUN); i++) {
        narrow[i] = (uint32_t)at.table[i];
    }
    uint32_t low = (uint32_t)(first & (RUN - 1));
    for (;;) {
        uint32_t length = RUN - low < count ? RUN - low : (uint32_t)count;
        const uint32_t base = (uint32_t)at.base, *table = narrow + low;
        for (uint32_t i = 0; i < length; i++) {
            places[i] = base ^ table[i];
        }
        count -= length;
        if (count == 0) {
            return;
        }
        places += length;
        low = 0;
        next_run(&at);
    }
}

bool lilac_layout_apply_range(uint64_t *places, const lilac_layout *layout, uint64_t first,
                              uint64_t count, lilac_reason *why) {
    if (!in_range(layout, first, count, why)) {
        return false;
    }
    fill(places, layout->columns, layout->in_bits, first, count);
    return true;
}

bool lilac_layout_apply_range32(uint32_t *places, const lilac_layout *layout, uint64_t first,
                                uint64_t count, lilac_reason *why) {
    if (layout->out_bits > 32) {
        return lilac_layout_refuse(why, "places of %u bits do not fit in 32", layout->out_bits);
    }
    if (!in_range(layout, first, count, why)) {
        return false;
    }
    fill32(places, layout->columns, layout->in_bits, first, count);
    return true;
}

bool lilac_layout_coordinates32(uint32_t *coordinates, const lilac_layout *layout, uint32_t out,
                                uint64_t first, uint64_t count, lilac_reason *why) {
    assert(out < layout->out_count);
    if (layout->out[out].bits > 32) {
        return lilac_layout_refuse(why, "coordinates of %u bits do not fit in 32",
                                   layout->out[out].bits);
    }
    if (!in_range(layout, first, count, why)) {
        return false;
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        columns[i] = lilac_layout_coordinate(layout, layout->columns[i], out);
    }
    fill32(coordinates, columns, layout->in_bits, first, count);
    return true;
}

bool lilac_layout_apply_each(uint64_t *places, const lilac_layout *layout, const uint64_t *indices,
                             uint64_t count, lilac_reason *why) {
    uint64_t used = 0, table[8][256];
    for (uint64_t i = 0; i < count; i++) {
        used |= indices[i];
    }
    if ((used & ~low_bits(layout->in_bits)) != 0) {
        return lilac_layout_refuse(why, "an index goes outside the 2^%u inputs", layout->in_bits);
    }
    uint32_t bytes = (layout->in_bits + 7U) / 8U;
    for (uint32_t b = 0; b < bytes; b++) {
        table[b][0] = 0;
        for (uint32_t k = 0; k < 8; k++) {
            uint64_t column = 8 * b + k < layout->in_bits ? layout->columns[8 * b + k] : 0;
            for (uint32_t i = 0; i < 1U << k; i++) {
                table[b][(1U << k) + i] = table[b][i] ^ column;
            }
        }
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t index = indices[i], sum = 0;
        for (uint32_t b = 0; b < bytes; b++) {
            sum ^= table[b][index >> (8 * b) & 255];
        }
        places[i] = sum;
    }
    return true;
}
