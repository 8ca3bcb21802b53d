/* encoding: named layouts become linear layouts of a shape.
 *
 * The shape is checked once here, and then the row of the kind says how.
 */
#include "internal.h"

#include <inttypes.h>

bool lilac_encoding_refuse(lilac_context *context, const lilac_encoding *encoding, const char *id,
                           const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(context, encoding->position, 0, id, format, arguments);
    va_end(arguments);
    return false;
}

bool lilac_encoding_check_shape(lilac_context *context, lilac_position position, uint32_t rank,
                                const int64_t *shape, uint32_t *bits) {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] <= 0 || (shape[d] & (shape[d] - 1)) != 0) {
            lilac_error(context, position, 0, "shape-not-power-of-two",
                        "dimension %u of the shape is %" PRId64 ", which is not a power of two", d,
                        shape[d]);
            return false;
        }
        bits[d] = lilac_encoding_log2((uint64_t)shape[d]);
        sum += bits[d];
    }
    if (sum > LILAC_LAYOUT_MAX_BITS) {
        lilac_error(context, position, 0, "shape-too-large",
                    "a tensor of 2^%u elements is larger than the largest, 2^%d", sum,
                    LILAC_LAYOUT_MAX_BITS);
        return false;
    }
    return true;
}

bool lilac_encoding_layout(lilac_context *context, lilac_layout *result,
                           const lilac_encoding *encoding, uint32_t rank, const int64_t *shape) {
    if (encoding->rank != rank) {
        return lilac_encoding_refuse(context, encoding, "layout-rank",
                                     "this layout is of rank %u and the tensor of rank %u",
                                     encoding->rank, rank);
    }
    lilac_encoding_shape checked = {rank, {0}, 0};
    lilac_layout made;
    if (!lilac_encoding_check_shape(context, encoding->position, rank, shape, checked.bits) ||
        !lilac_encoding_layout_of(context, &made, encoding, &checked)) {
        return false;
    }
    *result = made;
    return true;
}

/* ---- text ------------------------------------------------------------------------------- */

void lilac_encoding_put_list(lilac_text *out, const char *prefix, const uint32_t *values,
                             uint32_t count) {
    lilac_text_puts(out, prefix);
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0) {
            lilac_text_puts(out, ", ");
        }
        lilac_text_unsigned(out, values[i]);
    }
    lilac_text_char(out, ']');
}

void lilac_encoding_put_blocks(lilac_text *out, const lilac_encoding *encoding) {
    const lilac_encoding_blocks *blocks = &encoding->blocks;
    for (uint32_t k = 0; k < blocks->bits; k++) {
        lilac_encoding_put_list(out, k == 0 ? ", CGALayout = [" : ", ", blocks->basis[k],
                                encoding->rank);
    }
    if (blocks->bits != 0) {
        lilac_text_char(out, ']');
    }
}
