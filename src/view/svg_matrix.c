/* The bit matrix as an SVG figure: a block of columns for each input under its name, a group of
 * rows for each output, ones in the input's colour, zeros faint.
 */
#include "grid.h"

enum { MARGIN = 14, CELL = 20, GAP = 8, CHARACTER = 7 };

#define INK   "#1c1e21"
#define FAINT "#5f6670"

typedef struct matrix_figure {
    const lilac_layout *layout;
    uint32_t left[LILAC_LAYOUT_MAX_DIMS];  /* x of an input's first column */
    uint32_t block[LILAC_LAYOUT_MAX_DIMS]; /* x of its block … */
    uint32_t wide[LILAC_LAYOUT_MAX_DIMS];  /* … and how wide that is: the name may be wider */
    uint32_t top[LILAC_LAYOUT_MAX_DIMS];   /* y of an output's first row */
    uint32_t width, height;
} matrix_figure;

static void place_columns(matrix_figure *figure, uint32_t x) {
    const lilac_layout *layout = figure->layout;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        const uint32_t cells = layout->in[i].bits * CELL;
        const uint32_t name = (uint32_t)strlen(layout->in[i].name) * CHARACTER;
        if (cells == 0) {
            continue;
        }
        figure->block[i] = x;
        figure->wide[i] = cells > name ? cells : name;
        figure->left[i] = x + (figure->wide[i] - cells) / 2;
        x += figure->wide[i] + GAP;
    }
    figure->width = x;
}

static void place_rows(matrix_figure *figure, uint32_t y) {
    const lilac_layout *layout = figure->layout;
    for (uint32_t d = layout->out_count; d-- > 0;) {
        if (layout->out[d].bits == 0) {
            continue;
        }
        figure->top[d] = y;
        y += layout->out[d].bits * CELL + GAP;
    }
    figure->height = y;
}

static void put_number(lilac_text *out, uint32_t x, uint32_t y, uint32_t number) {
    lilac_text_printf(out, "<text x=\"%u\" y=\"%u\">%u</text>\n", x, y, number);
}

static void put_names(lilac_text *out, const matrix_figure *figure, uint32_t top, uint32_t left) {
    const lilac_layout *layout = figure->layout;
    lilac_text_puts(out, "<g font-size=\"12\" text-anchor=\"middle\">\n");
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (layout->in[i].bits != 0) {
            lilac_view_svg_text(out, figure->block[i] + figure->wide[i] / 2, top - 27, "",
                                layout->in[i].name);
        }
    }
    lilac_text_puts(out, "</g>\n<g font-size=\"12\" text-anchor=\"end\">\n");
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (layout->out[d].bits != 0) {
            lilac_view_svg_text(out, left - 30, figure->top[d] + layout->out[d].bits * CELL / 2 + 4,
                                "", layout->out[d].name);
        }
    }
    lilac_text_puts(out, "</g>\n<path fill=\"none\" stroke=\"" FAINT "\" d=\"");
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (layout->in[i].bits != 0) {
            lilac_text_printf(out, "M%u %uv-4h%uv4", figure->left[i] + 2, top - 17,
                              layout->in[i].bits * CELL - 4);
        }
    }
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (layout->out[d].bits != 0) {
            lilac_text_printf(out, "M%u %uh-4v%uh4", left - 21, figure->top[d] + 2,
                              layout->out[d].bits * CELL - 4);
        }
    }
    lilac_text_puts(out, "\"/>\n");
}

static void put_bit_numbers(lilac_text *out, const matrix_figure *figure, uint32_t top,
                            uint32_t left) {
    const lilac_layout *layout = figure->layout;
    lilac_text_puts(out, "<g font-size=\"10\" fill=\"" FAINT "\" text-anchor=\"middle\">\n");
    for (uint32_t i = 0; i < layout->in_count; i++) {
        for (uint32_t k = 0; k < layout->in[i].bits; k++) {
            put_number(out, figure->left[i] + k * CELL + CELL / 2, top - 6, k);
        }
    }
    for (uint32_t d = 0; d < layout->out_count; d++) {
        for (uint32_t k = 0; k < layout->out[d].bits; k++) {
            put_number(out, left - 10, figure->top[d] + k * CELL + CELL / 2 + 4, k);
        }
    }
    lilac_text_puts(out, "</g>\n");
}

/* One column of an input's block, over all outputs: the squares, or what is written in them. */
static void put_column(lilac_text *out, const matrix_figure *figure, uint32_t input, uint32_t bit,
                       bool squares) {
    const lilac_layout *layout = figure->layout;
    const uint64_t column = layout->columns[lilac_layout_in_start(layout, input) + bit];
    const uint32_t x = figure->left[input] + bit * CELL;
    for (uint32_t d = layout->out_count; d-- > 0;) {
        const uint32_t start = lilac_layout_out_start(layout, d);
        for (uint32_t k = 0; k < layout->out[d].bits; k++) {
            const bool one = (column >> (start + k) & 1) != 0;
            const uint32_t y = figure->top[d] + k * CELL;
            if (!squares) {
                lilac_view_svg_text(out, x + CELL / 2, y + CELL / 2 + 4,
                                    one ? "" : " fill=\"#b4b9c0\"", one ? "1" : "0");
                continue;
            }
            lilac_text_printf(out,
                              "<rect class=\"cell\" x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" "
                              "fill=\"",
                              x, y, (int)CELL, (int)CELL);
            if (one) {
                lilac_view_svg_colour(out, input);
            } else {
                lilac_text_puts(out, "#f5f6f7");
            }
            lilac_text_puts(out, "\"/>\n");
        }
    }
}

static void put_cells(lilac_text *out, const matrix_figure *figure) {
    const lilac_layout *layout = figure->layout;
    for (int squares = 1; squares >= 0; squares--) {
        lilac_text_puts(out, squares ? "<g stroke=\"#ffffff\" stroke-width=\"1\">\n"
                                     : "<g font-size=\"12\" text-anchor=\"middle\">\n");
        for (uint32_t i = 0; i < layout->in_count; i++) {
            for (uint32_t k = 0; k < layout->in[i].bits; k++) {
                put_column(out, figure, i, k, squares != 0);
            }
        }
        lilac_text_puts(out, "</g>\n");
    }
}

void lilac_view_matrix_svg(lilac_text *out, const lilac_layout *layout,
                           const lilac_view_options *options) {
    matrix_figure figure = {.layout = layout};
    uint32_t longest = 0;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        const uint32_t length = (uint32_t)strlen(layout->out[d].name);
        longest = length > longest ? length : longest;
    }
    const bool titled = options->title != NULL;
    const uint32_t left = MARGIN + longest * CHARACTER + 34;
    const uint32_t top = MARGIN + 40 + (titled ? 28 : 0);
    place_columns(&figure, left);
    place_rows(&figure, top);

    lilac_text body, heading;
    lilac_text_init(&body);
    lilac_text_init(&heading);
    lilac_view_matrix_heading(&heading, layout);
    if (titled) {
        lilac_view_svg_text(&body, MARGIN, MARGIN + 12, " font-size=\"15\" font-weight=\"bold\"",
                            options->title);
    }
    put_names(&body, &figure, top, left);
    put_bit_numbers(&body, &figure, top, left);
    put_cells(&body, &figure);
    const uint64_t identity = lilac_hash(body.bytes, body.length, lilac_layout_hash(layout));
    const uint32_t title = titled ? lilac_view_characters(options->title) * 9 + 2 * MARGIN : 0;
    const uint32_t width = figure.width - GAP + MARGIN;
    lilac_view_svg_open(out, width > title ? width : title, figure.height - GAP + MARGIN,
                        titled ? options->title : lilac_text_get(&heading),
                        lilac_text_get(&heading), identity);
    lilac_text_put(out, body.bytes, body.length);
    lilac_text_puts(out, "</svg>\n");
    lilac_text_clear(&body);
    lilac_text_clear(&heading);
}
