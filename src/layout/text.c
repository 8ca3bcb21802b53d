/* layout: the two text forms.
 *
 *     {"register": [[0,1],[0,2]], "lane": [[1,0]], "warp": [], "block": []}
 *     #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0]], warp = [], block = []}>
 *
 * An input bit is written as the coordinates of its column, outputs in order. The second form is
 * Triton's attribute; the component `encoding` reads it back.
 */
#include "internal.h"

static void put_columns(lilac_text *out, const lilac_layout *layout, uint32_t start, uint32_t bits,
                        const char *separator) {
    lilac_text_char(out, '[');
    for (uint32_t k = 0; k < bits; k++) {
        if (k != 0) {
            lilac_text_puts(out, separator);
        }
        lilac_text_char(out, '[');
        for (uint32_t d = 0; d < layout->out_count; d++) {
            if (d != 0) {
                lilac_text_puts(out, separator);
            }
            lilac_text_unsigned(out,
                                lilac_layout_coordinate(layout, layout->columns[start + k], d));
        }
        lilac_text_char(out, ']');
    }
    lilac_text_char(out, ']');
}

void lilac_layout_json(lilac_text *out, const lilac_layout *layout) {
    uint32_t start = 0;
    lilac_text_char(out, '{');
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (i != 0) {
            lilac_text_puts(out, ", ");
        }
        lilac_text_json(out, layout->in[i].name, strlen(layout->in[i].name));
        lilac_text_puts(out, ": ");
        put_columns(out, layout, start, layout->in[i].bits, ",");
        start += layout->in[i].bits;
    }
    lilac_text_char(out, '}');
}

void lilac_layout_print(lilac_text *out, const lilac_layout *layout) {
    const char *name = lilac_layout_in(layout, "offset") >= 0 ? "#ttg.shared_linear<{"
                       : lilac_layout_in(layout, "row") >= 0  ? "#ttng.tensor_memory_linear<{"
                                                              : "#ttg.linear<{";
    uint32_t start = 0;
    lilac_text_puts(out, name);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (i != 0) {
            lilac_text_puts(out, ", ");
        }
        lilac_text_puts(out, layout->in[i].name);
        lilac_text_puts(out, " = ");
        put_columns(out, layout, start, layout->in[i].bits, ", ");
        start += layout->in[i].bits;
    }
    lilac_text_puts(out, "}>");
}
