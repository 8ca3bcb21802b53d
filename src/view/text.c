/* A grid as aligned terminal text.
 *
 *   heading
 *                        dim1
 *        0        1        2   …          as many columns as fit, a power of two of them; then the
 *   0    w0 t0 r0 …                       same rows again for the next columns
 *   left out: rows 32–63 of 64
 *
 * Without ranges about 64 lines of cells are shown. Colours set both the ground and the letters, so
 * they can be read on dark terminals and on light ones.
 */
#include "grid.h"

enum { WIDTH = 100, GAP = 2, MOST_ROWS = 32, MOST_LINES = 64, MOST_PANELS = 4 };

/* Pale grounds of the 256-colour palette; neighbours differ in hue. */
static const uint8_t grounds[] = {153, 223, 157, 225, 229, 159, 189, 217,
                                  117, 215, 120, 219, 221, 123, 147, 210};

typedef struct text_table {
    const view_grid *grid;
    view_window window;
    view_cell *cell;
    lilac_text word;      /* a label or a cell on its way out */
    uint32_t label_width; /* of the row labels */
    uint32_t cell_width;
    uint64_t panel; /* columns of one */
} text_table;

static void put_padded(lilac_text *out, const char *text, uint32_t width) {
    const uint32_t count = lilac_view_characters(text);
    lilac_text_puts(out, text);
    lilac_text_repeat(out, ' ', width > count ? width - count : 0);
}

static const char *index_label(text_table *table, view_axis_name axis, uint64_t index) {
    lilac_text_reset(&table->word);
    lilac_view_index_label(&table->word, table->grid, axis, index);
    return lilac_text_get(&table->word);
}

static const char *axis_label(text_table *table, view_axis_name axis) {
    lilac_text_reset(&table->word);
    lilac_view_axis_label(&table->word, table->grid, axis);
    return lilac_text_get(&table->word);
}

static void measure_labels(text_table *table) {
    const uint64_t first = table->window.first[VIEW_ROWS], count = table->window.count[VIEW_ROWS];
    table->label_width = lilac_view_characters(axis_label(table, VIEW_ROWS));
    for (uint64_t r = 0; r < count; r++) {
        const uint32_t width = lilac_view_characters(index_label(table, VIEW_ROWS, first + r));
        table->label_width = width > table->label_width ? width : table->label_width;
    }
}

/* Columns that one cell stands for. */
static uint64_t run_of(const text_table *table) {
    return UINT64_C(1) << table->grid->merged_bits;
}

static void put_header(lilac_text *out, text_table *table, uint64_t first, uint64_t count) {
    const char *name = axis_label(table, VIEW_COLUMNS);
    if (*name != '\0') {
        lilac_text_repeat(out, ' ', table->label_width + GAP);
        lilac_text_puts(out, name);
        lilac_view_end_line(out);
    }
    put_padded(out, axis_label(table, VIEW_ROWS), table->label_width);
    for (uint64_t c = first; c < first + count; c++) {
        if (c % run_of(table) != 0) {
            continue;
        }
        lilac_text_repeat(out, ' ', GAP);
        put_padded(out, index_label(table, VIEW_COLUMNS, c), table->cell_width);
    }
    lilac_view_end_line(out);
}

static void put_cell(lilac_text *out, text_table *table, uint64_t word) {
    const view_grid *grid = table->grid;
    view_cell *cell = table->cell;
    lilac_view_cell_get(cell, grid, word);
    const bool colour = grid->options.colour && !cell->empty;
    if (colour) {
        lilac_text_printf(out, "\x1b[38;5;16;48;5;%um",
                          grounds[cell->key % (sizeof grounds / sizeof grounds[0])]);
    }
    lilac_text_reset(&table->word);
    for (uint32_t i = 0; i < cell->field_count; i++) {
        if (i != 0) {
            lilac_text_char(&table->word, ' ');
        }
        put_padded(&table->word, cell->fields[i], grid->field_width[i]);
    }
    put_padded(out, lilac_text_get(&table->word), table->cell_width);
    if (colour) {
        lilac_text_puts(out, "\x1b[0m");
    }
}

static void put_panel(lilac_text *out, text_table *table, uint64_t slice, uint64_t first,
                      uint64_t count) {
    const view_window *window = &table->window;
    put_header(out, table, first, count);
    for (uint64_t r = 0; r < window->count[VIEW_ROWS]; r++) {
        const uint64_t row = window->first[VIEW_ROWS] + r;
        put_padded(out, index_label(table, VIEW_ROWS, row), table->label_width);
        for (uint64_t c = first; c < first + count; c++) {
            if (c % run_of(table) != 0) {
                continue;
            }
            lilac_text_repeat(out, ' ', GAP);
            put_cell(out, table, lilac_view_word(table->grid, (uint64_t[]){slice, row, c}));
        }
        lilac_view_end_line(out);
    }
}

static void put_slices(lilac_text *out, text_table *table) {
    const view_window *window = &table->window;
    const uint64_t columns = window->count[VIEW_COLUMNS];
    for (uint64_t s = 0; s < window->count[VIEW_SLICES]; s++) {
        const uint64_t slice = window->first[VIEW_SLICES] + s;
        const char *label = index_label(table, VIEW_SLICES, slice);
        if (*label != '\0') {
            lilac_text_printf(out, "\n%s\n", label);
        }
        for (uint64_t c = 0; c < columns; c += table->panel) {
            lilac_text_char(out, '\n');
            put_panel(out, table, slice, window->first[VIEW_COLUMNS] + c,
                      columns - c < table->panel ? columns - c : table->panel);
        }
    }
}

/* The colours in use, where they are few enough to be distinguished. */
static void put_legend(lilac_text *out, text_table *table) {
    const view_grid *grid = table->grid;
    if (!grid->options.colour || grid->key_bits == 0 || grid->key_bits > 4) {
        return;
    }
    lilac_text_puts(out, "colours:");
    for (uint64_t key = 0; key >> grid->key_bits == 0; key++) {
        if (!lilac_view_key_used(grid, key)) {
            continue;
        }
        lilac_text_printf(out, " \x1b[38;5;16;48;5;%um", grounds[key]);
        lilac_view_key_label(out, grid, key);
        lilac_text_puts(out, "\x1b[0m");
    }
    lilac_text_char(out, '\n');
}

/* As many columns as fit a line, rounded down to a power of two. */
static uint64_t fitting(uint32_t width, uint32_t label, uint32_t cell) {
    const uint32_t space = width > label ? width - label : 0;
    const uint32_t fit = space / (cell + GAP);
    return fit < 2 ? 1 : UINT64_C(1) << highest_bit(fit);
}

/* What is shown where the options leave it open, for panels of table->panel columns. */
static bool choose_window(text_table *table, lilac_reason *why) {
    const view_grid *grid = table->grid;
    const uint64_t all_rows = lilac_view_axis_size(grid, VIEW_ROWS);
    const uint64_t all_columns = lilac_view_axis_size(grid, VIEW_COLUMNS);
    const uint64_t rows = grid->options.rows.count != 0 ? grid->options.rows.count
                          : all_rows < MOST_ROWS        ? all_rows
                                                        : MOST_ROWS;
    const uint64_t lines = rows < MOST_LINES ? rows : MOST_LINES;
    uint64_t panels = max_u64(MOST_LINES / lines, 1);
    panels = panels < MOST_PANELS ? panels : MOST_PANELS;
    uint64_t columns = panels * table->panel;
    columns = columns < all_columns ? columns : all_columns;
    panels = (columns + table->panel - 1) / table->panel;
    const uint64_t limit[3] = {max_u64(MOST_LINES / (lines * panels + 1), 1), rows, columns};
    return lilac_view_window_init(&table->window, grid, limit, why);
}

static bool text_of_grid(lilac_text *out, view_grid *grid, const lilac_layout *layout,
                         const lilac_view_options *options, lilac_reason *why) {
    text_table table = {.grid = grid};
    view_cell cell;
    table.cell = &cell;
    const uint32_t width = options->width != 0 ? options->width : WIDTH;
    if (!lilac_view_grid_init(grid, layout, options, 0, why)) {
        return false;
    }
    table.cell_width = lilac_view_cell_width(grid);
    if (options->kind == LILAC_VIEW_CELLS && layout->out_count == 1) {
        const uint32_t label = lilac_view_digits(layout->out[0].bits);
        const uint64_t wrap = fitting(width, label > 4 ? label : 4, table.cell_width);
        if (!lilac_view_grid_init(grid, layout, options, highest_bit(wrap), why)) {
            return false;
        }
    }
    lilac_view_merge(grid);
    table.cell_width = lilac_view_cell_width(grid);
    lilac_text_init(&table.word);
    /* labels depend on the rows shown, and columns on the labels' width */
    table.panel = run_of(&table);
    bool good = choose_window(&table, why);
    if (good) {
        measure_labels(&table);
        table.panel = run_of(&table) * fitting(width, table.label_width, table.cell_width);
        good = choose_window(&table, why);
    }
    if (good) {
        lilac_view_heading(out, grid);
        lilac_text_char(out, '\n');
        put_slices(out, &table);
        put_legend(out, &table);
        lilac_view_notes(out, grid, &table.window);
    }
    lilac_text_clear(&table.word);
    return good;
}

bool lilac_view_text(lilac_text *out, const lilac_layout *layout, const lilac_view_options *options,
                     lilac_reason *why) {
    static const lilac_view_options usual = {0};
    options = options != NULL ? options : &usual;
    if (options->kind == LILAC_VIEW_MATRIX) {
        lilac_view_matrix_text(out, layout, options);
        return true;
    }
    view_grid grid;
    return text_of_grid(out, &grid, layout, options, why);
}
