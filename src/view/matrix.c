/* The bit matrix as text.
 *
 *                register  lane       warp
 *                0 1       0 1 2 3 4  0
 *   dim1   0     1 ·       · · · · ·  ·
 *          1     · ·       1 · · · ·  ·
 *
 * Columns stand in a block for each input, lowest bit first; rows are the bits of the outputs, the
 * last dimension on top, as it moves fastest. A matrix that is too wide loses the spaces between
 * its columns, and then goes on in further panels.
 */
#include "grid.h"

enum { WIDTH = 100 };

typedef struct matrix_text {
    const lilac_layout *layout;
    bool colour;
    bool tight;
    uint32_t label_width;
} matrix_text;

static const uint8_t grounds[] = {153, 223, 157, 225, 229, 159, 189, 217};

void lilac_view_matrix_heading(lilac_text *out, const lilac_layout *layout) {
    lilac_text_printf(out, "%u×%u bit matrix of rank %u", layout->out_bits, layout->in_bits,
                      lilac_layout_rank(layout));
    const uint32_t rank = lilac_layout_rank(layout);
    if (rank == layout->in_bits && rank == layout->out_bits) {
        lilac_text_puts(out, ": every element is held once");
    } else if (rank != layout->out_bits) {
        lilac_text_puts(out, ": not every element is held");
    } else {
        lilac_text_puts(out, ": every element is held ");
        lilac_view_power(out, layout->in_bits - rank);
        lilac_text_puts(out, " times");
    }
}

static uint32_t bit_width(const matrix_text *matrix) {
    return matrix->tight ? 1 : 2;
}

/* Characters of an input's block, the two spaces after it included. */
static uint32_t block_width(const matrix_text *matrix, uint32_t input) {
    const lilac_layout_dim *dim = &matrix->layout->in[input];
    const uint32_t name = (uint32_t)strlen(dim->name);
    const uint32_t bits = dim->bits * bit_width(matrix) - (matrix->tight ? 0 : 1);
    return (bits > name ? bits : name) + 2;
}

static uint32_t all_width(const matrix_text *matrix) {
    uint32_t width = matrix->label_width;
    for (uint32_t i = 0; i < matrix->layout->in_count; i++) {
        width += matrix->layout->in[i].bits != 0 ? block_width(matrix, i) : 0;
    }
    return width;
}

typedef enum line_kind { LINE_NAMES, LINE_TENS, LINE_UNITS, LINE_BITS } line_kind;

static void put_entry(lilac_text *out, const matrix_text *matrix, line_kind kind, uint32_t input,
                      uint32_t bit, uint32_t row) {
    const uint32_t start = lilac_layout_in_start(matrix->layout, input);
    if (kind == LINE_TENS) {
        lilac_text_char(out, bit < 10 ? ' ' : (char)('0' + bit / 10));
    } else if (kind == LINE_UNITS) {
        lilac_text_char(out, (char)('0' + bit % 10));
    } else if ((matrix->layout->columns[start + bit] >> row & 1) == 0) {
        lilac_text_puts(out, "·");
    } else if (matrix->colour) {
        lilac_text_printf(out, "\x1b[38;5;16;48;5;%um1\x1b[0m", grounds[input % sizeof grounds]);
    } else {
        lilac_text_char(out, '1');
    }
}

/* One line of the inputs' blocks from number `first` to before `end`. */
static void put_line(lilac_text *out, const matrix_text *matrix, line_kind kind, uint32_t first,
                     uint32_t end, uint32_t row) {
    for (uint32_t i = first; i < end; i++) {
        const lilac_layout_dim *dim = &matrix->layout->in[i];
        if (dim->bits == 0) {
            continue;
        }
        const uint32_t width = block_width(matrix, i);
        uint32_t used = 0;
        if (kind == LINE_NAMES) {
            lilac_text_puts(out, dim->name);
            used = (uint32_t)strlen(dim->name);
        }
        for (uint32_t k = 0; kind != LINE_NAMES && k < dim->bits; k++) {
            if (k != 0 && !matrix->tight) {
                lilac_text_char(out, ' ');
            }
            put_entry(out, matrix, kind, i, k, row);
            used += k != 0 && !matrix->tight ? 2 : 1;
        }
        lilac_text_repeat(out, ' ', width - used);
    }
    lilac_view_end_line(out);
}

static void put_rows(lilac_text *out, const matrix_text *matrix, uint32_t first, uint32_t end) {
    const lilac_layout *layout = matrix->layout;
    for (uint32_t d = layout->out_count; d-- > 0;) {
        for (uint32_t k = 0; k < layout->out[d].bits; k++) {
            const char *name = k == 0 ? layout->out[d].name : "";
            lilac_text_puts(out, name);
            lilac_text_repeat(out, ' ', matrix->label_width - 4 - strlen(name));
            lilac_text_printf(out, "%2u  ", k);
            put_line(out, matrix, LINE_BITS, first, end, lilac_layout_out_start(layout, d) + k);
        }
    }
}

static void put_panel(lilac_text *out, const matrix_text *matrix, uint32_t first, uint32_t end) {
    bool tens = false;
    for (uint32_t i = first; i < end; i++) {
        tens = tens || matrix->layout->in[i].bits > 10;
    }
    for (line_kind kind = LINE_NAMES; kind < LINE_BITS; kind++) {
        if (kind == LINE_TENS && !tens) {
            continue;
        }
        lilac_text_repeat(out, ' ', matrix->label_width);
        put_line(out, matrix, kind, first, end, 0);
    }
    put_rows(out, matrix, first, end);
}

void lilac_view_matrix_text(lilac_text *out, const lilac_layout *layout,
                            const lilac_view_options *options) {
    const uint32_t width = options->width != 0 ? options->width : WIDTH;
    matrix_text matrix = {.layout = layout, .colour = options->colour};
    for (uint32_t d = 0; d < layout->out_count; d++) {
        const uint32_t length = (uint32_t)strlen(layout->out[d].name) + 5;
        matrix.label_width = length > matrix.label_width ? length : matrix.label_width;
    }
    matrix.tight = all_width(&matrix) > width + 2;
    lilac_view_matrix_heading(out, layout);
    lilac_text_char(out, '\n');
    for (uint32_t first = 0, end; first < layout->in_count; first = end) {
        uint32_t used = matrix.label_width;
        for (end = first; end < layout->in_count; end++) {
            const uint32_t block = layout->in[end].bits != 0 ? block_width(&matrix, end) : 0;
            if (block != 0 && used != matrix.label_width && used + block > width + 2) {
                break;
            }
            used += block;
        }
        lilac_text_char(out, '\n');
        put_panel(out, &matrix, first, end);
    }
}
