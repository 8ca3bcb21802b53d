/* The view of the hardware's slots: in each the element that it holds.
 *
 * Columns are the registers, rows the lanes, warps and blocks, lanes fastest. Of memory, columns
 * are the elements of one row of all banks and rows what follows; of tensor memory its columns.
 * Memory is coloured by chunks, runs of elements that follow each other both in memory and in the
 * tensor's last dimension, so that a swizzle shows as what it does to them. With padding the rows
 * and columns are those of the padded memory, and a slot of the layout is looked up for each place.
 */
#include "grid.h"

#include <stdio.h>

uint64_t lilac_view_pad(const view_grid *grid, uint64_t offset) {
    uint64_t place = offset;
    for (uint32_t i = 0; i < grid->options.padding_count; i++) {
        place += (offset >> lowest_bit(grid->options.paddings[i].interval)) *
                 grid->options.paddings[i].padding;
    }
    return place;
}

/* Places ascend with offsets: by bisection, one bit at a time. */
bool lilac_view_unpad(const view_grid *grid, uint64_t place, uint64_t *offset) {
    uint64_t found = 0;
    for (uint32_t k = grid->layout->in_bits; k-- > 0;) {
        if (lilac_view_pad(grid, found | UINT64_C(1) << k) <= place) {
            found |= UINT64_C(1) << k;
        }
    }
    *offset = found;
    return lilac_view_pad(grid, found) == place;
}

/* Do only the first `run` bits of the offset reach the first ones of the output at `start`? */
static bool counts_alone(const lilac_layout *layout, uint32_t start, uint32_t run) {
    const uint32_t first =
        lilac_layout_in_start(layout, (uint32_t)lilac_layout_in(layout, "offset"));
    for (uint32_t k = 0; k < layout->in_bits; k++) {
        const bool of_run = k >= first && k < first + run;
        if (!of_run && (layout->columns[k] >> start & low_bits(run)) != 0) {
            return false;
        }
    }
    return true;
}

void lilac_view_chunk(view_grid *grid) {
    enum { LARGEST_ACCESS_BITS = 128, MOST_RUN_BITS = 4 };
    const lilac_layout *layout = grid->layout;
    const lilac_view_options *options = &grid->options;
    const uint32_t most = options->element_bits >= LARGEST_ACCESS_BITS
                              ? 0
                              : lowest_bit(LARGEST_ACCESS_BITS / options->element_bits);
    const uint64_t bank = UINT64_C(8) * options->bank_bytes;
    const uint32_t least =
        bank <= options->element_bits ? 0 : lowest_bit(bank / options->element_bits);
    uint32_t run = 0;
    if (layout->out_count != 0) {
        const uint32_t last = layout->out_count - 1U;
        const uint32_t start = lilac_layout_out_start(layout, last);
        while (run < lilac_layout_in_bits(layout, "offset") && run < layout->out[last].bits &&
               lilac_layout_column(layout, "offset", run) == UINT64_C(1) << (start + run)) {
            run++;
        }
        while (run > 0 && !counts_alone(layout, start, run)) {
            run--;
        }
    }
    grid->run_bits = run < most ? run : most;
    grid->run_bits = grid->run_bits < MOST_RUN_BITS ? grid->run_bits : MOST_RUN_BITS;
    run = run < most ? run : most;
    run = run > least ? run : least;
    for (uint32_t i = 0; i < options->padding_count; i++) {
        const uint64_t unit = options->paddings[i].interval | options->paddings[i].padding;
        grid->run_bits = lowest_bit(unit) < grid->run_bits ? lowest_bit(unit) : grid->run_bits;
    }
    grid->chunk_bits = run < grid->row_bits ? run : grid->row_bits;

    const int input = lilac_layout_in(layout, "offset");
    const uint32_t offset = lilac_layout_in_start(layout, (uint32_t)input);
    const uint32_t bits = layout->in[input].bits;
    const uint32_t in_row = bits < grid->row_bits ? bits : grid->row_bits;
    grid->chunk_mask = low_bits(grid->chunk_bits) << (offset & 63);
    grid->key_shift = offset + grid->chunk_bits;
    grid->key_bits = in_row > grid->chunk_bits ? in_row - grid->chunk_bits : 0;
    if (grid->options.kind == LILAC_VIEW_HARDWARE && layout->out_count != 0) {
        const uint32_t last = layout->out_count - 1U;
        const uint32_t size = layout->out[last].bits;
        grid->key_of_element = true;
        grid->key_shift = lilac_layout_out_start(layout, last) + grid->chunk_bits;
        grid->key_bits = size > grid->chunk_bits ? size - grid->chunk_bits : 0;
    }
}

static int find_columns(const lilac_layout *layout) {
    static const char *const names[] = {"offset", "register", "col"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const int found = lilac_layout_in(layout, names[i]);
        if (found >= 0) {
            return found;
        }
    }
    return layout->in_count != 0 ? 0 : -1;
}

bool lilac_view_hardware_init(view_grid *grid, lilac_reason *why) {
    const lilac_layout *layout = grid->layout;
    (void)why;
    grid->column_input = find_columns(layout);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t start = lilac_layout_in_start(layout, i);
        for (uint32_t k = 0; k < layout->in[i].bits; k++) {
            const bool column =
                (int)i == grid->column_input && (!grid->memory || k < grid->row_bits);
            view_axis *axis = &grid->axes[column ? VIEW_COLUMNS : VIEW_ROWS];
            axis->at[axis->bits++] = (uint8_t)(start + k);
        }
        const bool inside = (int)i == grid->column_input || strcmp(layout->in[i].name, "lane") == 0;
        if (!inside && layout->in[i].bits != 0) {
            grid->tile_mask |= low_bits(layout->in[i].bits) << start;
        }
    }
    if (grid->memory) {
        grid->tile_mask = low_bits(layout->in_bits) & ~grid->chunk_mask;
    }
    if (grid->options.padding_count != 0) {
        const uint64_t last = lilac_view_pad(grid, low_bits(layout->in_bits));
        view_axis *columns = &grid->axes[VIEW_COLUMNS];
        grid->padded_rows = (last >> grid->row_bits) + 1;
        for (; columns->bits < grid->row_bits && last >> columns->bits != 0; columns->bits++) {
            columns->at[columns->bits] = (uint8_t)columns->bits;
        }
    }
    uint32_t width = layout->out_count != 0 ? layout->out_count - 1U : 1;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        width += lilac_view_digits(layout->out[d].bits);
    }
    grid->field_width[grid->field_count++] = width + (grid->owners.copy_bits != 0);
    return true;
}

void lilac_view_hardware_cell(view_cell *cell, const view_grid *grid, uint64_t slot) {
    const lilac_layout *layout = grid->layout;
    if (grid->padded_rows != 0 && !lilac_view_unpad(grid, slot, &slot)) {
        cell->empty = true;
        cell->tile = UINT64_MAX;
        snprintf(cell->fields[cell->field_count++], VIEW_FIELD_SIZE, "·");
        return;
    }
    const uint64_t element = lilac_layout_apply(layout, slot);
    uint64_t first = 0;
    char *field = cell->fields[cell->field_count++];
    int at = 0;
    cell->copy = lilac_view_owner(&grid->owners, element, 0, &first) && first != slot;
    cell->key = (grid->key_of_element ? element : slot) >> (grid->key_shift & 63) &
                low_bits(grid->key_bits);
    cell->tile = slot & grid->tile_mask;
    field[0] = '\0';
    for (uint32_t d = 0; d < layout->out_count && at < VIEW_FIELD_SIZE; d++) {
        at += snprintf(field + at, (size_t)(VIEW_FIELD_SIZE - at), "%s%llu", d == 0 ? "" : ",",
                       (unsigned long long)lilac_layout_coordinate(layout, element, d));
    }
    if (grid->merged_bits != 0 && at < VIEW_FIELD_SIZE) {
        const uint64_t last = lilac_layout_coordinate(layout, element, layout->out_count - 1U);
        at += snprintf(field + at, (size_t)(VIEW_FIELD_SIZE - at), "–%llu",
                       (unsigned long long)(last | low_bits(grid->merged_bits)));
    }
    if (layout->out_count == 0) {
        at = snprintf(field, VIEW_FIELD_SIZE, "0");
    }
    if (cell->copy && at < VIEW_FIELD_SIZE) {
        snprintf(field + at, (size_t)(VIEW_FIELD_SIZE - at), "'");
    }
}
