/* layout: whole layouts from bases, masks and sizes.
 *
 * A linear map is known by what it does to each input bit (its bases, the columns of the matrix) or
 * by what makes each output bit (its masks, the rows):
 *
 *              input bit  0 1 2
 *     output bit 0      [ 1 0 1 ]   mask 0 = 0b101: output bit 0 is the parity of index & 0b101
 *     output bit 1      [ 0 1 1 ]   mask 1 = 0b110
 *                         │
 *                         └ basis 0 = 0b01: input bit 0 moves to output 1
 *
 * Layouts here hold bases; masks are the transpose.
 */
#include "internal.h"

#include <assert.h>

bool lilac_layout_strided(lilac_layout *layout, uint32_t bits, uint64_t stride, const char *in,
                          const char *out, lilac_reason *why) {
    if (stride == 0 || (stride & (stride - 1)) != 0) {
        return lilac_layout_refuse(why, "stride %llu is not a power of two",
                                   (unsigned long long)stride);
    }
    uint32_t shift = lowest_bit(stride);
    if (bits > LILAC_LAYOUT_MAX_BITS - shift) {
        return lilac_layout_refuse(why, "2^%u times stride %llu is more than 2^%d", bits,
                                   (unsigned long long)stride, LILAC_LAYOUT_MAX_BITS);
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = stride << i;
    }
    lilac_layout made;
    lilac_layout_init(&made);
    if (!lilac_layout_add_out(&made, out, bits + shift, why) ||
        !lilac_layout_add_in(&made, in, bits, columns, why)) {
        return false;
    }
    lilac_layout_copy(layout, &made);
    return true;
}

bool lilac_layout_order_fits(const uint32_t *order, uint32_t count, lilac_reason *why) {
    uint32_t seen = 0;
    for (uint32_t i = 0; order != NULL && i < count; i++) {
        if (order[i] >= count) {
            return lilac_layout_refuse(why, "the order names dimension %u of %u", order[i], count);
        }
        if (seen >> order[i] & 1) {
            return lilac_layout_refuse(why, "the order names dimension %u twice", order[i]);
        }
        seen |= UINT32_C(1) << order[i];
    }
    return true;
}

bool lilac_layout_standard(lilac_layout *layout, const char *in, uint32_t rank,
                           const uint32_t *bits, const uint32_t *order, lilac_reason *why) {
    if (rank > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d outputs", LILAC_LAYOUT_MAX_DIMS);
    }
    if (!lilac_layout_order_fits(order, rank, why)) {
        return false;
    }
    lilac_layout made;
    lilac_layout_init(&made);
    for (uint32_t i = 0; i < rank; i++) {
        lilac_layout_dim dim;
        lilac_layout_name_out(&dim, i);
        if (!lilac_layout_add_out(&made, dim.name, bits[i], why)) {
            return false;
        }
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t dim = order != NULL ? order[i] : rank - 1 - i;
        uint32_t start = lilac_layout_out_start(&made, dim);
        for (uint32_t k = 0; k < bits[dim]; k++) {
            columns[count++] = UINT64_C(1) << (start + k);
        }
    }
    if (!lilac_layout_add_in(&made, in, count, columns, why)) {
        return false;
    }
    lilac_layout_copy(layout, &made);
    return true;
}

/* ---- bases and masks -------------------------------------------------------------------- */

/* The number of input bits, when the inputs are that few. */
static bool count_bits(uint32_t *sum, uint32_t count, const lilac_layout_dim *dims,
                       const char *what, lilac_reason *why) {
    *sum = 0;
    if (count > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d %ss", LILAC_LAYOUT_MAX_DIMS, what);
    }
    for (uint32_t i = 0; i < count; i++) {
        *sum += dims[i].bits;
    }
    if (*sum > LILAC_LAYOUT_MAX_BITS) {
        return lilac_layout_refuse(why, "more than %d %s bits", LILAC_LAYOUT_MAX_BITS, what);
    }
    return true;
}

/* A name that fills its array would not end. */
static bool add_named_out(lilac_layout *layout, const lilac_layout_dim *dim, uint32_t bits,
                          lilac_reason *why) {
    char name[sizeof dim->name + 1] = {0};
    memcpy(name, dim->name, sizeof dim->name);
    return lilac_layout_add_out(layout, name, bits, why);
}

static bool add_named_in(lilac_layout *layout, const lilac_layout_dim *dim, const uint64_t *columns,
                         lilac_reason *why) {
    char name[sizeof dim->name + 1] = {0};
    memcpy(name, dim->name, sizeof dim->name);
    return lilac_layout_add_in(layout, name, dim->bits, columns, why);
}

/* The inputs, to a layout that has its outputs. */
static bool finish(lilac_layout *layout, lilac_layout *made, uint32_t in_count,
                   const lilac_layout_dim *ins, const uint64_t *columns, lilac_reason *why) {
    for (uint32_t i = 0, at = 0; i < in_count; at += ins[i++].bits) {
        if (!add_named_in(made, &ins[i], columns + at, why)) {
            return false;
        }
    }
    lilac_layout_copy(layout, made);
    return true;
}

/* Bits that hold all of the coordinates along one output. */
static uint32_t bits_needed(const uint64_t *coordinates, uint32_t count, uint32_t stride) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        all |= coordinates[(size_t)i * stride];
    }
    return all == 0 ? 0 : highest_bit(all) + 1;
}

bool lilac_layout_from_bases(lilac_layout *layout, uint32_t in_count, const lilac_layout_dim *ins,
                             uint32_t out_count, const lilac_layout_dim *outs,
                             const uint64_t *coordinates, lilac_reason *why) {
    uint32_t in_bits;
    if (!count_bits(&in_bits, in_count, ins, "input", why)) {
        return false;
    }
    if (out_count > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d outputs", LILAC_LAYOUT_MAX_DIMS);
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    lilac_layout made;
    lilac_layout_init(&made);
    for (uint32_t d = 0; d < out_count; d++) {
        uint32_t needed = in_bits == 0 ? 0 : bits_needed(coordinates + d, in_bits, out_count);
        uint32_t bits = outs[d].bits == LILAC_LAYOUT_INFER ? needed : outs[d].bits;
        uint32_t start = made.out_bits;
        if (!add_named_out(&made, &outs[d], bits, why)) {
            return false;
        }
        for (uint32_t i = 0; i < in_bits; i++) {
            uint64_t coordinate = coordinates[(size_t)i * out_count + d];
            if ((coordinate & ~low_bits(bits)) != 0) {
                return lilac_layout_refuse(why, "basis %u goes to %.14s=%llu, outside its 2^%u", i,
                                           outs[d].name, (unsigned long long)coordinate, bits);
            }
            if (coordinate != 0) {
                columns[i] |= coordinate << start;
            }
        }
    }
    return finish(layout, &made, in_count, ins, columns, why);
}

/* Rows from columns and columns from rows. */
static void transpose(uint64_t *result, uint32_t result_count, const uint64_t *words,
                      uint32_t count) {
    for (uint32_t i = 0; i < result_count; i++) {
        result[i] = 0;
    }
    for (uint32_t k = 0; k < count; k++) {
        for (uint64_t rest = words[k]; rest != 0; rest &= rest - 1) {
            result[lowest_bit(rest)] |= UINT64_C(1) << k;
        }
    }
}

bool lilac_layout_from_masks(lilac_layout *layout, uint32_t in_count, const lilac_layout_dim *ins,
                             uint32_t out_count, const lilac_layout_dim *outs,
                             const uint64_t *masks, lilac_reason *why) {
    uint32_t in_bits, out_bits;
    if (!count_bits(&in_bits, in_count, ins, "input", why) ||
        !count_bits(&out_bits, out_count, outs, "output", why)) {
        return false;
    }
    for (uint32_t i = 0; i < out_bits; i++) {
        if ((masks[i] & ~low_bits(in_bits)) != 0) {
            return lilac_layout_refuse(why, "mask %u goes outside the %u input bits", i, in_bits);
        }
    }
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    transpose(columns, in_bits, masks, out_bits);
    lilac_layout made;
    lilac_layout_init(&made);
    for (uint32_t i = 0; i < out_count; i++) {
        if (!add_named_out(&made, &outs[i], outs[i].bits, why)) {
            return false;
        }
    }
    return finish(layout, &made, in_count, ins, columns, why);
}

void lilac_layout_masks(uint64_t *masks, const lilac_layout *layout) {
    transpose(masks, layout->out_bits, layout->columns, layout->in_bits);
}
