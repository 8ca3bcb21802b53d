/* layout: what the shape operations of tensors do to a layout.
 *
 * A tensor's shape operation renames coordinates and moves no data: the layout of the result is
 * that of the operand with its output bits moved, dropped or joined by bits of size one. All of
 * them are one move of bit fields, except reshape, whose fields are cut differently on both sides
 * and are moved bit by bit through the row-major order of the elements:
 *
 *     [dim0 | dim1] packed  →  row-major number, last dimension lowest  →  [dim0' | dim1' …] packed
 */
#include "internal.h"

#include <assert.h>

void lilac_layout_drop_free(lilac_layout *result, const lilac_layout *layout, const char *in) {
    int index = lilac_layout_in(layout, in);
    lilac_layout_copy(result, layout);
    if (index < 0) {
        return;
    }
    uint32_t start = lilac_layout_in_start(layout, (uint32_t)index);
    uint32_t end = start + layout->in[index].bits, kept = start;
    for (uint32_t i = start; i < result->in_bits; i++) {
        if (i >= end || result->columns[i] != 0) {
            result->columns[kept++] = result->columns[i];
        }
    }
    uint32_t dropped = result->in_bits - kept;
    result->in[index].bits = (uint8_t)(result->in[index].bits - dropped);
    result->in_bits = (uint8_t)kept;
}

void lilac_layout_slice(lilac_layout *result, const lilac_layout *layout, uint32_t dim) {
    assert(dim < layout->out_count);
    uint32_t start = lilac_layout_out_start(layout, dim), bits = layout->out[dim].bits;
    lilac_layout_copy(result, layout);
    bit_fields fields = {.in_place = bits == 0};
    add_field(&fields, 0, 0, start);
    add_field(&fields, start + bits, start, layout->out_bits - start - bits);
    for (uint32_t i = 0; i < result->in_bits; i++) {
        result->columns[i] = move_fields(&fields, result->columns[i]);
    }
    for (uint32_t i = dim + 1U; i < result->out_count; i++) {
        result->out[i - 1] = result->out[i];
        lilac_layout_name_out(&result->out[i - 1], i - 1);
    }
    result->out_count--;
    result->out_bits = (uint8_t)(result->out_bits - bits);
    lilac_layout_drop_free(result, result, "register");
}

void lilac_layout_permute_outs(lilac_layout *result, const lilac_layout *layout,
                               const uint32_t *order) {
    lilac_layout_dim out[LILAC_LAYOUT_MAX_DIMS];
    uint8_t starts[LILAC_LAYOUT_MAX_DIMS];
    uint32_t to = 0;
    assert(lilac_layout_order_fits(order, layout->out_count, NULL));
    bit_fields fields = {.in_place = true};
    dim_starts(starts, layout->out, layout->out_count);
    for (uint32_t i = 0; i < layout->out_count; i++) {
        out[i] = layout->out[order[i]];
        add_field(&fields, starts[order[i]], to, out[i].bits);
        to += out[i].bits;
    }
    lilac_layout_copy(result, layout);
    memcpy(result->out, out, result->out_count * sizeof out[0]);
    for (uint32_t i = 0; i < result->in_bits; i++) {
        result->columns[i] = move_fields(&fields, result->columns[i]);
    }
}

void lilac_layout_transpose(lilac_layout *result, const lilac_layout *layout,
                            const uint32_t *order) {
    lilac_layout_permute_outs(result, layout, order);
    for (uint32_t i = 0; i < result->out_count; i++) {
        lilac_layout_name_out(&result->out[i], i);
    }
}

bool lilac_layout_reshape(lilac_layout *result, const lilac_layout *layout, uint32_t rank,
                          const uint32_t *bits, lilac_reason *why) {
    if (rank > LILAC_LAYOUT_MAX_DIMS) {
        return lilac_layout_refuse(why, "more than %d outputs", LILAC_LAYOUT_MAX_DIMS);
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (bits[i] > LILAC_LAYOUT_MAX_BITS - total) {
            return lilac_layout_refuse(why, "more than %d output bits", LILAC_LAYOUT_MAX_BITS);
        }
        total += bits[i];
    }
    if (total != layout->out_bits) {
        return lilac_layout_refuse(why, "a tensor of 2^%u elements cannot have a shape of 2^%u",
                                   layout->out_bits, total);
    }

    uint8_t bit_of[LILAC_LAYOUT_MAX_BITS]; /* where bit i of the row-major number goes */
    uint8_t to[LILAC_LAYOUT_MAX_BITS];     /* where a packed bit goes */
    uint32_t number = 0, end = total;
    for (uint32_t i = rank; i-- > 0;) {
        end -= bits[i];
        for (uint32_t k = 0; k < bits[i]; k++) {
            bit_of[number++] = (uint8_t)(end + k);
        }
    }
    number = 0;
    end = total;
    for (uint32_t i = layout->out_count; i-- > 0;) {
        end -= layout->out[i].bits;
        for (uint32_t k = 0; k < layout->out[i].bits; k++) {
            to[end + k] = bit_of[number++];
        }
    }

    lilac_layout_copy(result, layout);
    for (uint32_t i = 0; i < result->in_bits; i++) {
        uint64_t moved = 0;
        for (uint64_t rest = result->columns[i]; rest != 0; rest &= rest - 1) {
            moved |= UINT64_C(1) << to[lowest_bit(rest)];
        }
        result->columns[i] = moved;
    }
    result->out_count = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++) {
        lilac_layout_name_out(&result->out[i], i);
        result->out[i].bits = (uint8_t)bits[i];
    }
    return true;
}

void lilac_layout_expand(lilac_layout *result, const lilac_layout *layout, uint32_t axis) {
    assert(axis <= layout->out_count && layout->out_count < LILAC_LAYOUT_MAX_DIMS);
    lilac_layout_copy(result, layout);
    for (uint32_t i = result->out_count; i > axis; i--) {
        result->out[i] = result->out[i - 1];
    }
    result->out[axis].bits = 0;
    result->out_count++;
    for (uint32_t i = axis; i < result->out_count; i++) {
        lilac_layout_name_out(&result->out[i], i);
    }
}
