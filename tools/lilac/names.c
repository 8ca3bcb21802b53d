/* Triton's names of a memory layout: a search over all parameters that are possible for its shape.
 */
#include "names.h"

static bool is_encoding(lilac_context *context, const lilac_encoding *encoding,
                        const lilac_layout *memory) {
    int64_t shape[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout layout;
    for (uint32_t d = 0; d < memory->out_count; d++) {
        shape[d] = INT64_C(1) << memory->out[d].bits;
    }
    const bool good = lilac_encoding_layout(context, &layout, encoding, memory->out_count, shape);
    lilac_diagnostics_reset(context);
    return good && lilac_layout_equal(&layout, memory);
}

/* The dimensions in memory's order as far as it has one: by the lowest offset bit of each. */
static void find_order(uint32_t *order, const lilac_layout *memory) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < lilac_layout_in_bits(memory, "offset"); i++) {
        const uint64_t column = lilac_layout_column(memory, "offset", i);
        for (uint32_t d = 0; d < memory->out_count; d++) {
            bool known = lilac_layout_coordinate(memory, column, d) == 0;
            for (uint32_t j = 0; j < count; j++) {
                known = known || order[j] == d;
            }
            if (!known) {
                order[count++] = d;
                break;
            }
        }
    }
    for (uint32_t back = memory->out_count; back > 0; back--) {
        bool known = false;
        for (uint32_t j = 0; j < count; j++) {
            known = known || order[j] == back - 1;
        }
        if (!known) {
            order[count++] = back - 1;
        }
    }
}

static bool name_swizzled(lilac_text *out, lilac_context *context, const lilac_layout *memory) {
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    find_order(order, memory);
    const uint32_t row = memory->out_count > 0 ? memory->out[order[0]].bits : 0;
    const uint32_t rows = memory->out_bits - row;
    for (uint32_t phases = 0; phases <= row && phases <= rows; phases++) {
        for (uint32_t vec = 0; vec + phases <= row && (phases > 0 || vec == 0); vec++) {
            for (uint32_t per = 0; per + phases <= rows && (phases > 0 || per == 0); per++) {
                lilac_encoding encoding;
                lilac_encoding_swizzled_shared(&encoding, memory->out_count, 1U << vec, 1U << per,
                                               1U << phases, order);
                if (is_encoding(context, &encoding, memory)) {
                    lilac_encoding_print(out, &encoding);
                    return true;
                }
            }
        }
    }
    return false;
}

static bool name_nvmma(lilac_text *out, lilac_context *context, const lilac_layout *memory,
                       uint32_t element_bits) {
    static const uint32_t widths[] = {32, 64, 128};
    if (memory->out_count < 2 || element_bits < 8 || element_bits > 32) {
        return false;
    }
    for (uint32_t i = 0; i < 6; i++) {
        lilac_encoding encoding;
        lilac_encoding_nvmma_shared(&encoding, memory->out_count, widths[i / 2], i % 2,
                                    element_bits, false);
        if (is_encoding(context, &encoding, memory)) {
            lilac_encoding_print(out, &encoding);
            return true;
        }
    }
    return false;
}

bool names_put_triton(lilac_text *out, lilac_context *context, const lilac_layout *memory,
                      uint32_t element_bits) {
    return name_swizzled(out, context, memory) || name_nvmma(out, context, memory, element_bits);
}
