/* A view as a grid: the bits of a word dealt to slices, rows and columns.
 *
 *   word   b7 b6 b5 b4 b3 b2 b1 b0        an element's coordinates, or a slot's inputs
 *           └ rows: 0 1 2 3 ┘ └ columns…   index along an axis = the bits it was dealt, in order
 *
 * The word at (slice, row, column) is the union of the three scattered indices, so a grid of any
 * size costs nothing until a cell is asked for.
 */
#include "grid.h"

/* ---- names ------------------------------------------------------------------------------ */

const char *lilac_view_letter(const lilac_layout_dim *input, char *space, size_t size) {
    static const struct {
        const char *name, *letter;
    } known[] = {{"register", "r"}, {"lane", "t"}, {"warp", "w"}, {"block", "b"}, {"offset", ""}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(input->name, known[i].name) == 0) {
            return known[i].letter;
        }
    }
    const size_t length = strlen(input->name);
    if (length + 1 >= size) {
        return input->name;
    }
    memcpy(space, input->name, length);
    space[length] = ' ';
    space[length + 1] = '\0';
    return space;
}

void lilac_view_power(lilac_text *out, uint32_t bits) {
    if (bits < 64) {
        lilac_text_unsigned(out, UINT64_C(1) << bits);
    } else {
        lilac_text_puts(out, "18446744073709551616");
    }
}

uint32_t lilac_view_digits_of(uint64_t most) {
    uint32_t digits = 1;
    for (; most >= 10; most /= 10) {
        digits++;
    }
    return digits;
}

uint32_t lilac_view_digits(uint32_t bits) {
    return lilac_view_digits_of(low_bits(bits));
}

uint32_t lilac_view_characters(const char *text) {
    uint32_t count = 0;
    for (; *text != '\0'; text++) {
        count += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return count;
}

void lilac_view_end_line(lilac_text *out) {
    while (out->length != 0 && out->bytes[out->length - 1] == ' ') {
        out->bytes[--out->length] = '\0';
    }
    lilac_text_char(out, '\n');
}

/* ---- axes ------------------------------------------------------------------------------- */

uint64_t lilac_view_axis_size(const view_grid *grid, view_axis_name name) {
    const view_axis *axis = &grid->axes[name];
    if (name == VIEW_ROWS && grid->padded_rows != 0) {
        return grid->padded_rows;
    }
    return axis->bits >= 64 ? UINT64_MAX : UINT64_C(1) << axis->bits;
}

static uint64_t scatter(const view_axis *axis, uint64_t index) {
    uint64_t word = 0;
    for (uint32_t i = 0; i < axis->bits; i++) {
        word |= (index >> i & 1) << axis->at[i];
    }
    return word;
}

uint64_t lilac_view_word(const view_grid *grid, const uint64_t index[3]) {
    uint64_t word = 0;
    if (grid->padded_rows != 0) {
        return index[VIEW_ROWS] << grid->row_bits | index[VIEW_COLUMNS];
    }
    for (int axis = 0; axis < 3; axis++) {
        word |= scatter(&grid->axes[axis], index[axis]);
    }
    return word;
}

bool lilac_view_window_init(view_window *window, const view_grid *grid, const uint64_t limit[3],
                            lilac_reason *why) {
    static const char *const names[] = {"slice", "row", "column"};
    const lilac_view_range *const ranges[] = {&grid->options.slices, &grid->options.rows,
                                              &grid->options.columns};
    uint64_t cells = 1;
    for (int axis = 0; axis < 3; axis++) {
        const uint64_t size = lilac_view_axis_size(grid, (view_axis_name)axis);
        const uint64_t first = ranges[axis]->first;
        if (first >= size) {
            return lilac_layout_refuse(why, "there is no %s %llu: there are %llu", names[axis],
                                       (unsigned long long)first, (unsigned long long)size);
        }
        uint64_t count = ranges[axis]->count != 0 ? ranges[axis]->count : limit[axis];
        count = count < size - first ? count : size - first;
        window->first[axis] = first;
        window->count[axis] = count;
        cells = count <= VIEW_MAX_CELLS ? cells * count : VIEW_MAX_CELLS + 1;
        if (cells > VIEW_MAX_CELLS) {
            return lilac_layout_refuse(why, "more than %d cells are asked for",
                                       (int)VIEW_MAX_CELLS);
        }
    }
    return true;
}

/* ---- building --------------------------------------------------------------------------- */

/* Sizes of memory to log2 of the elements in one row of all banks. */
static bool measure_memory(view_grid *grid, lilac_reason *why) {
    lilac_view_options *options = &grid->options;
    options->element_bits = options->element_bits != 0 ? options->element_bits : 32;
    options->banks = options->banks != 0 ? options->banks : 32;
    options->bank_bytes = options->bank_bytes != 0 ? options->bank_bytes : 4;
    if (!is_power_of_two(options->element_bits) || !is_power_of_two(options->banks) ||
        !is_power_of_two(options->bank_bytes)) {
        return lilac_layout_refuse(why,
                                   "sizes of memory are powers of two: %u banks of %u bytes, "
                                   "elements of %u bits",
                                   options->banks, options->bank_bytes, options->element_bits);
    }
    const uint64_t row = UINT64_C(8) * options->banks * options->bank_bytes;
    if (row < options->element_bits) {
        return lilac_layout_refuse(why, "an element of %u bits is larger than %u banks of %u bytes",
                                   options->element_bits, options->banks, options->bank_bytes);
    }
    grid->row_bits = lowest_bit(row / options->element_bits);
    for (uint32_t i = 0; i < options->padding_count; i++) {
        const lilac_view_padding *padding = &options->paddings[i];
        const unsigned long long count = padding->padding, interval = padding->interval;
        if (!is_power_of_two(interval)) {
            return lilac_layout_refuse(
                why, "padding of %llu after every %llu: not after a power of two", count, interval);
        }
        if (count > 1ULL << 32) {
            return lilac_layout_refuse(why, "padding of %llu is too large to show", count);
        }
    }
    if (options->padding_count != 0 &&
        (!grid->memory || grid->layout->in_bits != lilac_layout_in_bits(grid->layout, "offset") ||
         grid->layout->in_bits > 31)) {
        return lilac_layout_refuse(why, "padding is shown for memory of one block only");
    }
    return true;
}

/* By which input a distributed layout is coloured: where all slots hold copies, a colour would be
 * the same everywhere, so inputs whose bits are all free come last. */
static bool choose_key(view_grid *grid, lilac_reason *why) {
    static const char *const usual[] = {"warp", "lane", "register", "block"};
    const lilac_layout *layout = grid->layout;
    int input = -1;
    if (grid->options.colour_by != NULL) {
        input = lilac_layout_in(layout, grid->options.colour_by);
        if (input < 0) {
            return lilac_layout_refuse(why, "the layout has no input '%s' to colour by",
                                       grid->options.colour_by);
        }
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0] && input < 0; i++) {
        const int found = lilac_layout_in(layout, usual[i]);
        if (found >= 0 &&
            lilac_layout_free_bits(layout, usual[i]) != low_bits(layout->in[found].bits)) {
            input = found;
        }
    }
    if (input < 0 && layout->in_count != 0) {
        input = 0;
    }
    if (input >= 0) {
        grid->key_shift = lilac_layout_in_start(layout, (uint32_t)input);
        grid->key_bits = layout->in[input].bits;
    }
    return true;
}

bool lilac_view_grid_init(view_grid *grid, const lilac_layout *layout,
                          const lilac_view_options *options, uint32_t wrap_bits,
                          lilac_reason *why) {
    memset(grid, 0, sizeof *grid);
    grid->layout = layout;
    grid->options = *options;
    grid->column_input = -1;
    grid->memory = lilac_layout_in(layout, "offset") >= 0;
    lilac_view_owners_init(&grid->owners, layout);
    if (!measure_memory(grid, why)) {
        return false;
    }
    if (grid->memory) {
        lilac_view_chunk(grid);
    } else if (!choose_key(grid, why)) {
        return false;
    }
    return grid->options.kind == LILAC_VIEW_HARDWARE ? lilac_view_hardware_init(grid, why)
                                                     : lilac_view_table_init(grid, wrap_bits, why);
}

/* ---- cells ------------------------------------------------------------------------------ */

void lilac_view_cell_get(view_cell *cell, const view_grid *grid, uint64_t word) {
    cell->empty = cell->copy = false;
    cell->key = cell->tile = 0;
    cell->field_count = 0;
    if (grid->options.kind == LILAC_VIEW_HARDWARE) {
        lilac_view_hardware_cell(cell, grid, word);
    } else {
        lilac_view_table_cell(cell, grid, word);
    }
}

void lilac_view_merge(view_grid *grid) {
    const uint64_t run = UINT64_C(1) << grid->run_bits;
    const lilac_view_range *columns = &grid->options.columns;
    if (grid->run_bits == 0 || grid->run_bits > grid->axes[VIEW_COLUMNS].bits ||
        columns->first % run != 0 || columns->count % run != 0) {
        return;
    }
    grid->merged_bits = grid->run_bits;
    /* the field of the offset, or of all coordinates */
    const bool hardware = grid->options.kind == LILAC_VIEW_HARDWARE;
    const uint32_t field = grid->field_count - (hardware || grid->sets ? 1 : 2);
    const uint64_t last =
        hardware ? low_bits(grid->layout->out[grid->layout->out_count - 1].bits)
                 : lilac_view_pad(grid, low_bits(lilac_layout_in_bits(grid->layout, "offset")));
    grid->field_width[field] += 1 + lilac_view_digits_of(last);
}

/* The bits that a key can have. An owner is made of the inputs that the reduction kept: the others
 * are always 0. */
static uint64_t used_bits(const view_grid *grid) {
    uint64_t used = 0;
    if (grid->options.kind == LILAC_VIEW_HARDWARE || grid->options.padding_count != 0) {
        return low_bits(grid->key_bits);
    }
    for (uint32_t i = 0; i < grid->owners.rank; i++) {
        used |= grid->owners.combination[i];
    }
    return used >> (grid->key_shift & 63) & low_bits(grid->key_bits);
}

bool lilac_view_key_used(const view_grid *grid, uint64_t key) {
    return (key & ~used_bits(grid)) == 0;
}

uint64_t lilac_view_key_next(const view_grid *grid, uint64_t key) {
    const uint64_t used = used_bits(grid);
    return ((key | ~used) + 1) & used;
}

uint32_t lilac_view_cell_width(const view_grid *grid) {
    uint32_t width = grid->field_count != 0 ? grid->field_count - 1 : 0;
    for (uint32_t i = 0; i < grid->field_count; i++) {
        width += grid->field_width[i];
    }
    return width != 0 ? width : 1;
}

/* ---- words about a grid ----------------------------------------------------------------- */

static void put_shape(lilac_text *out, const lilac_layout *layout) {
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (d != 0) {
            lilac_text_puts(out, "×");
        }
        lilac_view_power(out, layout->out[d].bits);
    }
    lilac_text_puts(out, layout->out_count == 0   ? "scalar"
                         : layout->out_count == 1 ? "-element tensor"
                                                  : " tensor");
}

/* "w warp (2), t lane (32), r register (4)" */
static void put_inputs(lilac_text *out, const lilac_layout *layout) {
    bool first = true;
    for (uint32_t i = layout->in_count; i-- > 0;) {
        char space[32];
        if (layout->in[i].bits == 0) {
            continue;
        }
        const char *letter = lilac_view_letter(&layout->in[i], space, sizeof space);
        const bool named = strlen(letter) == 1;
        lilac_text_printf(out, "%s%s%s%s (", first ? "" : ", ", named ? letter : "",
                          named ? " " : "", layout->in[i].name);
        lilac_view_power(out, layout->in[i].bits);
        lilac_text_char(out, ')');
        first = false;
    }
}

void lilac_view_heading(lilac_text *out, const view_grid *grid) {
    put_shape(out, grid->layout);
    if (grid->options.kind == LILAC_VIEW_CELLS) {
        lilac_text_puts(out, ", where each element is");
    } else if (grid->memory) {
        const lilac_view_options *options = &grid->options;
        lilac_text_printf(out, " of %u-bit elements in memory of %u banks of %u bytes",
                          options->element_bits, options->banks, options->bank_bytes);
    } else {
        lilac_text_puts(out, ", which element each slot holds");
    }
    if (grid->layout->in_bits != 0) {
        lilac_text_puts(out, ": ");
        put_inputs(out, grid->layout);
    }
}

/* Kernel vectors as "lane ^ 16": what to change in an owner to get another. */
enum { LISTED_COPIES = 8 };

static void put_copies(lilac_text *out, const view_grid *grid) {
    const lilac_layout *layout = grid->layout;
    const lilac_view_owners *owners = &grid->owners;
    if (owners->copy_bits == 0) {
        return;
    }
    lilac_text_puts(out, "copies: each element is held ");
    lilac_view_power(out, owners->copy_bits);
    lilac_text_puts(out, " times; another is at ");
    for (uint32_t k = 0; k < owners->copy_bits; k++) {
        bool first = true;
        lilac_text_puts(out, k == 0 ? "" : " or ");
        if (k == LISTED_COPIES) {
            lilac_text_puts(out, "…");
            break;
        }
        for (uint32_t i = 0; i < layout->in_count; i++) {
            const uint64_t part = owners->copies[k] >> (lilac_layout_in_start(layout, i) & 63) &
                                  low_bits(layout->in[i].bits);
            if (part == 0) {
                continue;
            }
            lilac_text_printf(out, "%s%s ^ %llu", first ? "" : " with ", layout->in[i].name,
                              (unsigned long long)part);
            first = false;
        }
    }
    lilac_text_char(out, '\n');
}

static void put_span(lilac_text *out, uint64_t first, uint64_t last) {
    lilac_text_printf(out, " %llu", (unsigned long long)first);
    if (first != last) {
        lilac_text_printf(out, "–%llu", (unsigned long long)last);
    }
}

static void put_left_out(lilac_text *out, const view_grid *grid, const view_window *window) {
    static const char *const names[] = {"slices", "rows", "columns"};
    bool first = true;
    for (int axis = 0; axis < 3; axis++) {
        const uint64_t size = lilac_view_axis_size(grid, (view_axis_name)axis);
        const uint64_t begin = window->first[axis], end = begin + window->count[axis];
        if (begin == 0 && end == size) {
            continue;
        }
        lilac_text_printf(out, "%s%s", first ? "left out: " : "; ", names[axis]);
        if (begin != 0) {
            put_span(out, 0, begin - 1);
        }
        lilac_text_puts(out, begin != 0 && end != size ? " and" : "");
        if (end != size) {
            put_span(out, end, size - 1);
        }
        lilac_text_printf(out, " of %llu", (unsigned long long)size);
        first = false;
    }
    if (!first) {
        lilac_text_char(out, '\n');
    }
}

void lilac_view_notes(lilac_text *out, const view_grid *grid, const view_window *window) {
    put_copies(out, grid);
    if (grid->options.kind == LILAC_VIEW_CELLS && grid->owners.rank != grid->layout->out_bits) {
        lilac_text_puts(out, "· no slot holds this element\n");
    }
    if (grid->options.kind == LILAC_VIEW_HARDWARE && grid->owners.copy_bits != 0) {
        lilac_text_puts(out, "' a copy of what an earlier slot holds\n");
    }
    if (grid->padded_rows != 0) {
        lilac_text_puts(out, "· padding\n");
    }
    for (uint32_t i = 0; i < grid->options.padding_count; i++) {
        lilac_text_printf(out, "padding: %llu elements after every %llu\n",
                          (unsigned long long)grid->options.paddings[i].padding,
                          (unsigned long long)grid->options.paddings[i].interval);
    }
    put_left_out(out, grid, window);
}

void lilac_view_axis_label(lilac_text *out, const view_grid *grid, view_axis_name axis) {
    const lilac_layout *layout = grid->layout;
    if (axis == VIEW_SLICES) {
        return;
    }
    if (grid->options.kind == LILAC_VIEW_HARDWARE) {
        if (axis == VIEW_COLUMNS && grid->memory) {
            lilac_text_puts(out, "bank");
        } else if (axis == VIEW_COLUMNS && grid->column_input >= 0) {
            lilac_text_puts(out, layout->in[grid->column_input].name);
        } else if (grid->memory) {
            lilac_text_puts(out, "byte");
        }
        return;
    }
    const uint32_t back = axis == VIEW_COLUMNS ? 1 : 2;
    const bool wrapped = layout->out_count == 1 && grid->axes[VIEW_ROWS].bits != 0;
    if (wrapped) {
        lilac_text_puts(out, axis == VIEW_ROWS ? layout->out[0].name : "+");
    } else if (layout->out_count >= back) {
        lilac_text_puts(out, layout->out[layout->out_count - back].name);
    }
}

/* "b0 w1 t5": the inputs that the rows count. */
static void put_slots(lilac_text *out, const view_grid *grid, uint64_t word) {
    const lilac_layout *layout = grid->layout;
    bool first = true;
    for (uint32_t i = layout->in_count; i-- > 0;) {
        char space[32];
        if (layout->in[i].bits == 0 || (int)i == grid->column_input) {
            continue;
        }
        lilac_text_printf(out, "%s%s%llu", first ? "" : " ",
                          lilac_view_letter(&layout->in[i], space, sizeof space),
                          (unsigned long long)(word >> lilac_layout_in_start(layout, i) &
                                               low_bits(layout->in[i].bits)));
        first = false;
    }
}

static void hardware_label(lilac_text *out, const view_grid *grid, view_axis_name axis,
                           uint64_t index) {
    const uint64_t word = axis == VIEW_ROWS && grid->padded_rows != 0
                              ? index << grid->row_bits
                              : scatter(&grid->axes[axis], index);
    const uint32_t start = grid->column_input >= 0
                               ? lilac_layout_in_start(grid->layout, (uint32_t)grid->column_input)
                               : 0;
    uint64_t offset = word;
    if (grid->padded_rows == 0 && grid->column_input >= 0) {
        offset = word >> start & low_bits(grid->layout->in[grid->column_input].bits);
    }
    if (axis == VIEW_SLICES) {
        return;
    }
    if (axis == VIEW_COLUMNS && !grid->memory) {
        lilac_text_unsigned(out, index);
    } else if (axis == VIEW_COLUMNS) {
        /* the bank where it begins, on the first element of the bank */
        const uint64_t bit = index * grid->options.element_bits;
        const uint64_t bank = UINT64_C(8) * grid->options.bank_bytes;
        if (bit % bank == 0) {
            lilac_text_unsigned(out, bit / bank);
        }
    } else {
        if (grid->padded_rows == 0) {
            put_slots(out, grid, word);
        }
        if (grid->memory) {
            if (out->length != 0) {
                lilac_text_char(out, ' ');
            }
            lilac_text_unsigned(out, offset * grid->options.element_bits / 8);
        }
    }
}

void lilac_view_index_label(lilac_text *out, const view_grid *grid, view_axis_name axis,
                            uint64_t index) {
    const lilac_layout *layout = grid->layout;
    if (grid->options.kind == LILAC_VIEW_HARDWARE) {
        hardware_label(out, grid, axis, index);
    } else if (axis == VIEW_SLICES) {
        const uint64_t word = scatter(&grid->axes[axis], index);
        for (uint32_t d = 0; d + 2 < layout->out_count; d++) {
            lilac_text_printf(out, "%s%s = %llu", d == 0 ? "" : ", ", layout->out[d].name,
                              (unsigned long long)lilac_layout_coordinate(layout, word, d));
        }
    } else if (axis == VIEW_ROWS && layout->out_count == 1 && grid->axes[VIEW_ROWS].bits != 0) {
        lilac_text_unsigned(out, index << (grid->axes[VIEW_COLUMNS].bits & 63));
    } else if (layout->out_count != 0 && (axis == VIEW_COLUMNS || layout->out_count > 1)) {
        lilac_text_unsigned(out, index);
    }
}

void lilac_view_key_label(lilac_text *out, const view_grid *grid, uint64_t key) {
    const lilac_layout *layout = grid->layout;
    const uint64_t size = UINT64_C(1) << grid->chunk_bits;
    uint64_t first = key, last = key;
    if (!grid->memory) {
        for (uint32_t i = 0; i < layout->in_count; i++) {
            if (layout->in[i].bits != 0 && lilac_layout_in_start(layout, i) == grid->key_shift) {
                lilac_text_printf(out, "%s ", layout->in[i].name);
            }
        }
    } else if (grid->key_of_element) {
        lilac_text_printf(out, "%s ", layout->out[layout->out_count - 1].name);
        first = key * size;
        last = first + size - 1;
    } else {
        const uint64_t bank = UINT64_C(8) * grid->options.bank_bytes;
        first = key * size * grid->options.element_bits / bank;
        last = ((key + 1) * size * grid->options.element_bits - 1) / bank;
        lilac_text_puts(out, first == last ? "bank " : "banks ");
    }
    lilac_text_unsigned(out, first);
    if (first != last) {
        lilac_text_printf(out, "–%llu", (unsigned long long)last);
    }
}
