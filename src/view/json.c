/* The views as JSON, for programs that draw for themselves: one value on one line. */
#include "grid.h"

static void put_name(lilac_text *out, const char *name) {
    lilac_text_json(out, name, strlen(name));
}

static void put_coordinates(lilac_text *out, const lilac_layout *layout, uint64_t element) {
    lilac_text_char(out, '[');
    for (uint32_t d = 0; d < layout->out_count; d++) {
        lilac_text_puts(out, d != 0 ? "," : "");
        lilac_text_unsigned(out, lilac_layout_coordinate(layout, element, d));
    }
    lilac_text_char(out, ']');
}

static void put_slot(lilac_text *out, const lilac_layout *layout, uint64_t slot) {
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t bits = layout->in[i].bits;
        lilac_text_puts(out, i != 0 ? "," : "");
        lilac_text_unsigned(
            out, bits == 0 ? 0 : slot >> lilac_layout_in_start(layout, i) & low_bits(bits));
    }
    lilac_text_char(out, ']');
}

static void put_cell(lilac_text *out, const view_grid *grid, uint64_t element) {
    uint64_t owner;
    lilac_text_puts(out, "{\"element\": ");
    put_coordinates(out, grid->layout, element);
    lilac_text_puts(out, ", \"owners\": [");
    for (uint64_t copy = 0; copy >> grid->owners.copy_bits == 0; copy++) {
        if (!lilac_view_owner(&grid->owners, element, copy, &owner)) {
            break;
        }
        lilac_text_puts(out, copy != 0 ? "," : "");
        put_slot(out, grid->layout, owner);
    }
    lilac_text_puts(out, "]}");
}

static void put_held(lilac_text *out, const view_grid *grid, uint64_t slot) {
    const uint64_t element = lilac_layout_apply(grid->layout, slot);
    uint64_t first = slot;
    const bool held = lilac_view_owner(&grid->owners, element, 0, &first);
    lilac_text_puts(out, "{\"slot\": ");
    put_slot(out, grid->layout, slot);
    lilac_text_puts(out, ", \"element\": ");
    put_coordinates(out, grid->layout, element);
    lilac_text_printf(out, ", \"copy\": %s}", held && first != slot ? "true" : "false");
}

static void put_head(lilac_text *out, const view_grid *grid) {
    const lilac_layout *layout = grid->layout;
    const bool cells = grid->options.kind == LILAC_VIEW_CELLS;
    lilac_text_printf(out, "{\"view\": \"%s\", \"shape\": [", cells ? "cells" : "hardware");
    for (uint32_t d = 0; d < layout->out_count; d++) {
        lilac_text_puts(out, d != 0 ? "," : "");
        lilac_view_power(out, layout->out[d].bits);
    }
    lilac_text_puts(out, "], \"inputs\": [");
    for (uint32_t i = 0; i < layout->in_count; i++) {
        lilac_text_puts(out, i != 0 ? "," : "");
        put_name(out, layout->in[i].name);
    }
    lilac_text_puts(out, "], \"copies\": ");
    lilac_view_power(out, grid->owners.copy_bits);
    lilac_text_printf(out, ", \"%s\": [", cells ? "cells" : "slots");
}

static void put_dims(lilac_text *out, const lilac_layout_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_puts(out, i != 0 ? ", {\"name\": " : "{\"name\": ");
        put_name(out, dims[i].name);
        lilac_text_printf(out, ", \"bits\": %u}", dims[i].bits);
    }
}

static void put_matrix(lilac_text *out, const lilac_layout *layout) {
    lilac_text_puts(out, "{\"view\": \"matrix\", \"inputs\": [");
    put_dims(out, layout->in, layout->in_count);
    lilac_text_puts(out, "], \"outputs\": [");
    put_dims(out, layout->out, layout->out_count);
    lilac_text_puts(out, "], \"rows\": [");
    for (uint32_t row = 0; row < layout->out_bits; row++) {
        lilac_text_puts(out, row != 0 ? ", [" : "[");
        for (uint32_t k = 0; k < layout->in_bits; k++) {
            lilac_text_puts(out, k != 0 ? "," : "");
            lilac_text_char(out, (layout->columns[k] >> row & 1) != 0 ? '1' : '0');
        }
        lilac_text_char(out, ']');
    }
    lilac_text_puts(out, "]}");
}

bool lilac_view_json(lilac_text *out, const lilac_layout *layout, const lilac_view_options *options,
                     lilac_reason *why) {
    static const lilac_view_options usual = {0};
    static const uint64_t everything[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    options = options != NULL ? options : &usual;
    if (options->kind == LILAC_VIEW_MATRIX) {
        put_matrix(out, layout);
        return true;
    }
    view_grid grid;
    view_window window;
    lilac_view_options linear = *options;
    linear.padding_count = 0;
    if (!lilac_view_grid_init(&grid, layout, &linear, LILAC_LAYOUT_MAX_BITS, why) ||
        !lilac_view_window_init(&window, &grid, everything, why)) {
        return false;
    }
    const bool cells = options->kind == LILAC_VIEW_CELLS;
    if (cells && (grid.owners.copy_bits > 20 || window.count[0] * window.count[1] * window.count[2]
                                                        << grid.owners.copy_bits >
                                                    VIEW_MAX_CELLS)) {
        return lilac_layout_refuse(why, "more than %d owners are asked for", (int)VIEW_MAX_CELLS);
    }
    bool first = true;
    put_head(out, &grid);
    for (uint64_t s = 0; s < window.count[VIEW_SLICES]; s++) {
        for (uint64_t r = 0; r < window.count[VIEW_ROWS]; r++) {
            for (uint64_t c = 0; c < window.count[VIEW_COLUMNS]; c++) {
                const uint64_t index[3] = {window.first[0] + s, window.first[1] + r,
                                           window.first[2] + c};
                lilac_text_puts(out, first ? "" : ", ");
                (cells ? put_cell : put_held)(out, &grid, lilac_view_word(&grid, index));
                first = false;
            }
        }
    }
    lilac_text_puts(out, "]}");
    return true;
}
