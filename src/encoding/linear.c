/* encoding: linear layouts given by their bases.
 *
 * Linear: each bit moves along one dimension at most. Generic linear: any bases that reach all.
 *
 * The layout has a shape of its own, that of the coordinates that its bases reach. Along a
 * dimension in which the tensor is smaller, coordinates are taken modulo the tensor's size, and
 * registers whose basis becomes zero are removed. Along a dimension in which the tensor is larger,
 * registers are added that repeat the layout:
 *
 *     register = [[1]], lane = [[2], [4]]          on 32 elements: register = [[1], [8], [16]]
 *
 * The added registers are the highest bits. They cover the dimensions in the order in which the
 * layout's own registers first move along them; the other dimensions follow, the last one first.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

static uint32_t bit_length(uint64_t value) {
    return value == 0 ? 0 : 64U - (uint32_t)__builtin_clzll(value);
}

bool lilac_encoding_bases_layout(lilac_layout *layout, uint32_t rank, uint32_t count,
                                 const char *const *names, const lilac_encoding_bases *const *bases,
                                 lilac_reason *why) {
    lilac_encoding_shape shape = {rank, {0}, 0};
    for (uint32_t d = 0; d < rank; d++) {
        uint64_t reached = 0;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = 0; k < bases[i]->count; k++) {
                reached |= bases[i]->at[k][d];
            }
        }
        shape.bits[d] = bit_length(reached);
    }
    if (!lilac_encoding_outs(layout, &shape, why)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        for (uint32_t k = 0; k < bases[i]->count; k++) {
            columns[k] = lilac_layout_pack(layout, bases[i]->at[k]);
        }
        if (!lilac_layout_add_in(layout, names[i], bases[i]->count, columns, why)) {
            return false;
        }
    }
    return true;
}

bool lilac_encoding_read_map(lilac_encoding_reader *r, lilac_encoding *encoding,
                             lilac_layout *layout, const lilac_encoding_inputs *inputs) {
    lilac_encoding_bases bases[4];
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_param params[4];
    const lilac_encoding_bases *lists[4];
    uint32_t count = inputs->count;
    memset(params, 0, sizeof params);
    for (uint32_t i = 0; i < count; i++) {
        bases[i].count = 0;
        lists[i] = &bases[i];
        params[i].name = inputs->names[i];
        params[i].read =
            inputs->mixed ? lilac_encoding_read_mixed_bases : lilac_encoding_read_bases;
        params[i].into = &bases[i];
        params[i].optional = i >= count - inputs->optional;
    }
    if (!lilac_encoding_read_params(r, encoding->position, params, count, &rank)) {
        return false;
    }
    if (!rank.known) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-rank",
                                    "a layout with no basis does not say its rank");
    }
    encoding->rank = rank.rank;
    count -= inputs->drop && !params[count - 1].given;
    lilac_reason why;
    if (!lilac_encoding_bases_layout(layout, rank.rank, count, inputs->names, lists, &why)) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-too-large", "%s",
                                    why.text);
    }
    lilac_layout inverse;
    if (!lilac_layout_pseudoinvert(&inverse, layout, &why)) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-not-surjective", "%s",
                                    why.text);
    }
    return true;
}

static bool read_linear(lilac_encoding_reader *r, lilac_encoding *encoding, bool mixed) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    const lilac_encoding_inputs inputs = {names, 4, 0, false, mixed};
    return lilac_scanner_expect(r->scanner, '<') &&
           lilac_encoding_read_map(r, encoding, &encoding->as.linear, &inputs) &&
           lilac_scanner_expect(r->scanner, '>');
}

bool lilac_encoding_linear_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    return read_linear(r, encoding, false);
}

bool lilac_encoding_generic_linear_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    return read_linear(r, encoding, true);
}

void lilac_encoding_put_bases(lilac_text *out, const lilac_layout *layout, uint32_t input) {
    uint32_t first = lilac_layout_in_start(layout, input);
    lilac_text_puts(out, layout->in[input].name);
    lilac_text_puts(out, " = [");
    for (uint32_t k = 0; k < layout->in[input].bits; k++) {
        lilac_text_puts(out, k == 0 ? "[" : ", [");
        for (uint32_t d = 0; d < layout->out_count; d++) {
            if (d != 0) {
                lilac_text_puts(out, ", ");
            }
            lilac_text_unsigned(out,
                                lilac_layout_coordinate(layout, layout->columns[first + k], d));
        }
        lilac_text_char(out, ']');
    }
    lilac_text_char(out, ']');
}

void lilac_encoding_put_map(lilac_text *out, const lilac_layout *layout) {
    lilac_text_char(out, '{');
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (i != 0) {
            lilac_text_puts(out, ", ");
        }
        lilac_encoding_put_bases(out, layout, i);
    }
    lilac_text_char(out, '}');
}

void lilac_encoding_linear_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_char(out, '<');
    lilac_encoding_put_map(out, &encoding->as.linear);
    lilac_text_char(out, '>');
}

bool lilac_encoding_of_shape(lilac_context *context, lilac_layout *result,
                             const lilac_encoding *encoding, const lilac_layout *linear,
                             const lilac_encoding_shape *shape) {
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (linear->out[d].bits != shape->bits[d]) {
            return lilac_encoding_refuse(context, encoding, "layout-shape",
                                         "this layout has %" PRIu64
                                         " elements along dimension %u and the memory has %" PRIu64
                                         "; a memory layout given by its bases does not repeat",
                                         UINT64_C(1) << linear->out[d].bits, d,
                                         UINT64_C(1) << shape->bits[d]);
        }
    }
    *result = *linear;
    return true;
}

/* The dimensions in the order in which registers cover a larger tensor. */
static void repetition_order(uint32_t *order, const lilac_layout *linear) {
    uint32_t rank = linear->out_count, count = 0, seen = 0;
    for (uint32_t k = 0; k < lilac_layout_in_bits(linear, "register"); k++) {
        uint64_t column = lilac_layout_column(linear, "register", k);
        uint32_t d = 0;
        while (d < rank && lilac_layout_coordinate(linear, column, d) == 0) {
            d++;
        }
        if (d < rank && (seen >> d & 1) == 0) {
            order[count++] = d;
            seen |= UINT32_C(1) << d;
        }
    }
    for (uint32_t d = rank; d-- > 0;) {
        if ((seen >> d & 1) == 0) {
            order[count++] = d;
        }
    }
}

/* Appends the register columns that repeat the layout over a larger tensor. */
static uint32_t repeat(uint64_t *columns, uint32_t count, const lilac_layout *linear,
                       const lilac_layout *made) {
    uint32_t order[LILAC_MAX_RANK];
    repetition_order(order, linear);
    for (uint32_t i = 0; i < linear->out_count; i++) {
        uint64_t place[LILAC_MAX_RANK] = {0};
        uint32_t d = order[i];
        for (uint32_t bit = linear->out[d].bits; bit < made->out[d].bits; bit++) {
            place[d] = UINT64_C(1) << bit;
            columns[count++] = lilac_layout_pack(made, place);
        }
    }
    return count;
}

/* The columns of an input, modulo the shape; registers whose column becomes zero are left out. */
static uint32_t wrap(uint64_t *columns, const lilac_layout *linear, uint32_t input,
                     const lilac_layout *made) {
    uint32_t first = lilac_layout_in_start(linear, input), count = 0;
    bool registers = strcmp(linear->in[input].name, "register") == 0;
    for (uint32_t k = 0; k < linear->in[input].bits; k++) {
        uint64_t place[LILAC_MAX_RANK];
        for (uint32_t d = 0; d < linear->out_count; d++) {
            place[d] = lilac_layout_coordinate(linear, linear->columns[first + k], d);
            if (made->out[d].bits < 64) {
                place[d] &= (UINT64_C(1) << made->out[d].bits) - 1;
            }
        }
        uint64_t column = lilac_layout_pack(made, place);
        if (!registers || column != 0 || linear->columns[first + k] == 0) {
            columns[count++] = column;
        }
    }
    return registers ? repeat(columns, count, linear, made) : count;
}

bool lilac_encoding_linear_layout(lilac_context *context, lilac_layout *result,
                                  const lilac_encoding *encoding,
                                  const lilac_encoding_shape *shape) {
    const lilac_layout *linear = &encoding->as.linear;
    lilac_layout made;
    bool added = lilac_encoding_outs(&made, shape, NULL);
    for (uint32_t i = 0; added && i < linear->in_count; i++) {
        uint64_t columns[2 * LILAC_LAYOUT_MAX_BITS];
        uint32_t count = wrap(columns, linear, i, &made);
        added = lilac_layout_add_in(&made, linear->in[i].name, count, columns, NULL);
    }
    if (!added) {
        return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                     "on a tensor of this shape this layout has more than %d bits",
                                     LILAC_LAYOUT_MAX_BITS);
    }
    *result = made;
    return true;
}

void lilac_encoding_generic_linear_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_encoding_linear_print(out, encoding);
}

bool lilac_encoding_generic_linear_layout(lilac_context *context, lilac_layout *result,
                                          const lilac_encoding *encoding,
                                          const lilac_encoding_shape *shape) {
    return lilac_encoding_linear_layout(context, result, encoding, shape);
}
