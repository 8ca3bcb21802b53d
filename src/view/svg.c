/* A grid as an SVG figure.
 *
 *   title (when asked for)
 *              dim1                 axis names and indices
 *         0     1     2
 *       ┌─────┬─────┐               cells: coloured by the key, two lines of text (the lane large,
 *     0 │ t0    t0  │ …             the rest small); a line round what one thread holds
 *       └─────┴─────┘
 *   ■ warp 0  ■ warp 1              legend
 *   notes                           what letters mean, copies, what is left out
 *
 * Everything is integers and presentation attributes: no style sheet that could leak into a page
 * that the figure stands in, no fonts to load, the same bytes on every machine.
 */
#include "grid.h"

enum {
    MARGIN = 14,
    LINE = 16,       /* between lines of notes */
    MOST_CELLS = 64, /* of an axis, when no range is given */
    MOST_SLICES = 16,
    MOST_WIDTH = 1400, /* before slices go below each other */
    MOST_SWATCHES = 16,
    SWATCH = 12,
    SLICE_GAP = 22
};

#define INK   "#1c1e21"
#define FAINT "#5f6670"

/* ---- pieces ----------------------------------------------------------------------------- */

void lilac_view_xml(lilac_text *out, const char *text) {
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '<') {
            lilac_text_puts(out, "&lt;");
        } else if (c == '>') {
            lilac_text_puts(out, "&gt;");
        } else if (c == '&') {
            lilac_text_puts(out, "&amp;");
        } else if (c == '"') {
            lilac_text_puts(out, "&quot;");
        } else {
            lilac_text_char(out, c < 0x20 ? ' ' : (char)c);
        }
    }
}

void lilac_view_svg_open(lilac_text *out, uint32_t width, uint32_t height, const char *title,
                         const char *description, uint64_t identity) {
    const unsigned long long id = (unsigned long long)identity;
    lilac_text_printf(out,
                      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                      "viewBox=\"0 0 %u %u\" role=\"img\" "
                      "aria-labelledby=\"title-%016llx desc-%016llx\"\n"
                      "     font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\" "
                      "fill=\"" INK "\">\n<title id=\"title-%016llx\">",
                      width, height, width, height, id, id, id);
    lilac_view_xml(out, title);
    lilac_text_printf(out, "</title>\n<desc id=\"desc-%016llx\">", id);
    lilac_view_xml(out, description);
    lilac_text_printf(out, "</desc>\n<rect width=\"%u\" height=\"%u\" fill=\"#ffffff\"/>\n", width,
                      height);
}

void lilac_view_svg_text(lilac_text *out, uint32_t x, uint32_t y, const char *attributes,
                         const char *text) {
    if (*text == '\0') {
        return;
    }
    lilac_text_printf(out, "<text x=\"%u\" y=\"%u\"%s>", x, y, attributes);
    lilac_view_xml(out, text);
    lilac_text_puts(out, "</text>\n");
}

void lilac_view_svg_colour(lilac_text *out, uint64_t key) {
    /* hues that colour-blind readers can distinguish, in four shades */
    static const uint8_t hues[8][3] = {{66, 139, 202},  {240, 152, 48}, {72, 170, 110},
                                       {214, 96, 150},  {226, 196, 56}, {70, 190, 200},
                                       {140, 112, 206}, {186, 132, 92}};
    static const uint8_t strength[4] = {46, 24, 70, 12}; /* percent */
    const uint8_t *hue = hues[key % 8];
    const uint32_t part = strength[key / 8 % 4];
    lilac_text_char(out, '#');
    for (int i = 0; i < 3; i++) {
        lilac_text_printf(out, "%02x", (hue[i] * part + 255 * (100 - part)) / 100);
    }
}

/* ---- the figure's measures --------------------------------------------------------------- */

typedef struct grid_figure {
    const view_grid *grid;
    view_window window;
    view_cell *cell;
    lilac_text word;
    uint64_t *tiles; /* of the slice being drawn, row by row */
    int upper;       /* the field that is written large, or -1 for all */
    uint32_t cell_width, cell_height;
    uint32_t label_width, label_height; /* left of the cells, and above */
    uint32_t slice_width, slice_height; /* labels included */
    uint32_t across;                    /* slices side by side */
    uint32_t width;                     /* of the whole, margins included */
} grid_figure;

static const char *index_label(grid_figure *figure, view_axis_name axis, uint64_t index) {
    lilac_text_reset(&figure->word);
    lilac_view_index_label(&figure->word, figure->grid, axis, index);
    return lilac_text_get(&figure->word);
}

static const char *axis_label(grid_figure *figure, view_axis_name axis) {
    lilac_text_reset(&figure->word);
    lilac_view_axis_label(&figure->word, figure->grid, axis);
    return lilac_text_get(&figure->word);
}

/* The lane is what one looks for first; the fields are the inputs with bits, last first. */
static void choose_upper(grid_figure *figure) {
    const view_grid *grid = figure->grid;
    const lilac_layout *layout = grid->layout;
    int field = 0;
    figure->upper = -1;
    for (uint32_t i = layout->in_count; i-- > 0 && grid->options.kind == LILAC_VIEW_CELLS;) {
        if (layout->in[i].bits == 0) {
            continue;
        }
        if (strcmp(layout->in[i].name, "lane") == 0 && grid->field_count > 1) {
            figure->upper = field;
        }
        field++;
    }
}

static void measure_cells(grid_figure *figure) {
    const view_grid *grid = figure->grid;
    const uint32_t all = lilac_view_cell_width(grid);
    if (grid->merged_bits != 0) {
        const uint32_t run = all * 7 + 8;
        const uint32_t width = (run >> grid->merged_bits) + 1;
        figure->cell_width = width < 12 ? 12 : width;
        figure->cell_height = 24;
        return;
    }
    if (figure->upper < 0) {
        figure->cell_width = all * 7 + 10;
        figure->cell_height = 24;
    } else {
        const uint32_t upper = grid->field_width[figure->upper];
        const uint32_t lower = all - upper - 1;
        const uint32_t large = upper * 7 + 8, small = lower * 6 + 8;
        figure->cell_width = large > small ? large : small;
        figure->cell_height = 32;
    }
    if (figure->cell_width < 28) {
        figure->cell_width = 28;
    }
}

static void measure(grid_figure *figure) {
    const view_window *window = &figure->window;
    uint32_t characters = lilac_view_characters(axis_label(figure, VIEW_ROWS));
    for (uint64_t r = 0; r < window->count[VIEW_ROWS]; r++) {
        const uint32_t width =
            lilac_view_characters(index_label(figure, VIEW_ROWS, window->first[VIEW_ROWS] + r));
        characters = width > characters ? width : characters;
    }
    choose_upper(figure);
    measure_cells(figure);
    figure->label_width = characters != 0 ? characters * 7 + 10 : 0;
    figure->label_height = 40;
    if (*index_label(figure, VIEW_SLICES, window->first[VIEW_SLICES]) != '\0') {
        figure->label_height += 22;
    }
    figure->slice_width =
        figure->label_width + (uint32_t)window->count[VIEW_COLUMNS] * figure->cell_width;
    figure->slice_height =
        figure->label_height + (uint32_t)window->count[VIEW_ROWS] * figure->cell_height;
    const uint32_t fit = MOST_WIDTH / (figure->slice_width + SLICE_GAP);
    figure->across = (uint32_t)min_u64(window->count[VIEW_SLICES], fit != 0 ? fit : 1);
    figure->width = 2 * MARGIN + figure->across * (figure->slice_width + SLICE_GAP) - SLICE_GAP;
    if (figure->width < 400) {
        figure->width = 400;
    }
}

/* Columns that one text stands for. */
static uint64_t run_of(const grid_figure *figure) {
    return UINT64_C(1) << figure->grid->merged_bits;
}

/* Does a label fit at every column, or only at the first of each run? */
static uint64_t label_step(const grid_figure *figure) {
    const bool numbered = figure->grid->options.kind == LILAC_VIEW_CELLS;
    return numbered ? run_of(figure) : 1;
}

/* ---- cells ------------------------------------------------------------------------------ */

static uint64_t word_at(const grid_figure *figure, uint64_t slice, uint64_t r, uint64_t c) {
    return lilac_view_word(figure->grid, (uint64_t[]){slice, figure->window.first[VIEW_ROWS] + r,
                                                      figure->window.first[VIEW_COLUMNS] + c});
}

static void put_rectangles(lilac_text *out, grid_figure *figure, uint64_t slice, uint32_t x,
                           uint32_t y) {
    const view_window *window = &figure->window;
    const uint64_t columns = window->count[VIEW_COLUMNS];
    /* fainter where a text runs across */
    lilac_text_printf(out, "<g stroke=\"#ffffff\" stroke-width=\"1\"%s>\n",
                      figure->grid->merged_bits != 0 ? " stroke-opacity=\"0.4\"" : "");
    for (uint64_t r = 0; r < window->count[VIEW_ROWS]; r++) {
        for (uint64_t c = 0; c < columns; c++) {
            lilac_view_cell_get(figure->cell, figure->grid, word_at(figure, slice, r, c));
            figure->tiles[r * columns + c] = figure->cell->tile;
            lilac_text_printf(out,
                              "<rect class=\"cell\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" "
                              "fill=\"",
                              x + (uint32_t)c * figure->cell_width,
                              y + (uint32_t)r * figure->cell_height, figure->cell_width,
                              figure->cell_height);
            if (figure->cell->empty) {
                lilac_text_puts(out, "#f3f4f5");
            } else {
                lilac_view_svg_colour(out, figure->cell->key);
            }
            lilac_text_puts(out, figure->cell->copy ? "\" fill-opacity=\"0.4\"/>\n" : "\"/>\n");
        }
    }
    lilac_text_puts(out, "</g>\n");
}

static void put_cell_text(lilac_text *out, grid_figure *figure, uint32_t x, uint32_t y,
                          bool large) {
    const view_cell *cell = figure->cell;
    lilac_text_reset(&figure->word);
    const bool whole = figure->upper < 0 || cell->empty;
    for (uint32_t i = 0; i < cell->field_count; i++) {
        if (!whole && ((int)i == figure->upper) != large) {
            continue;
        }
        lilac_text_puts(&figure->word, figure->word.length != 0 ? " " : "");
        lilac_text_puts(&figure->word, cell->fields[i]);
    }
    if (whole && !large) {
        return;
    }
    const uint32_t middle = x + (figure->cell_width << figure->grid->merged_bits) / 2;
    const uint32_t base = whole   ? y + figure->cell_height / 2 + 4
                          : large ? y + 15
                                  : y + figure->cell_height - 6;
    const char *faint =
        cell->copy || cell->empty ? " fill=\"" FAINT "\" font-style=\"italic\"" : "";
    lilac_view_svg_text(out, middle, base, faint, lilac_text_get(&figure->word));
}

static void put_texts(lilac_text *out, grid_figure *figure, uint64_t slice, uint32_t x,
                      uint32_t y) {
    const view_window *window = &figure->window;
    for (int large = 1; large >= (figure->upper < 0 ? 1 : 0); large--) {
        lilac_text_printf(out, "<g font-size=\"%s\" text-anchor=\"middle\"%s>\n",
                          large ? "12" : "10", large ? "" : " fill=\"#3c4148\"");
        for (uint64_t r = 0; r < window->count[VIEW_ROWS]; r++) {
            for (uint64_t c = 0; c < window->count[VIEW_COLUMNS]; c += run_of(figure)) {
                lilac_view_cell_get(figure->cell, figure->grid, word_at(figure, slice, r, c));
                put_cell_text(out, figure, x + (uint32_t)c * figure->cell_width,
                              y + (uint32_t)r * figure->cell_height, large != 0);
            }
        }
        lilac_text_puts(out, "</g>\n");
    }
}

/* Is there a line before cell (r, c), to its left or above it? Also asked one past the end. */
static bool has_line(const grid_figure *figure, uint64_t r, uint64_t c, bool left) {
    const uint64_t rows = figure->window.count[VIEW_ROWS];
    const uint64_t columns = figure->window.count[VIEW_COLUMNS];
    if (left) {
        return c == 0 || c == columns ||
               figure->tiles[r * columns + c] != figure->tiles[r * columns + c - 1];
    }
    return r == 0 || r == rows ||
           figure->tiles[r * columns + c] != figure->tiles[(r - 1) * columns + c];
}

/* Lines round the tiles, each as long as it goes. */
static void put_lines(lilac_text *out, const grid_figure *figure, uint32_t x, uint32_t y,
                      bool left) {
    const uint64_t rows = figure->window.count[VIEW_ROWS];
    const uint64_t columns = figure->window.count[VIEW_COLUMNS];
    const uint64_t lines = (left ? columns : rows) + 1, length = left ? rows : columns;
    const uint32_t step = left ? figure->cell_height : figure->cell_width;
    for (uint64_t line = 0; line < lines; line++) {
        for (uint64_t from = 0, to; from < length; from = to + 1) {
            for (to = from; to < length; to++) {
                if (!has_line(figure, left ? to : line, left ? line : to, left)) {
                    break;
                }
            }
            if (to == from) {
                continue;
            }
            const uint64_t c = left ? line : from, r = left ? from : line;
            lilac_text_printf(out, "M%u %u%c%u", x + (uint32_t)c * figure->cell_width,
                              y + (uint32_t)r * figure->cell_height, left ? 'v' : 'h',
                              (uint32_t)(to - from) * step);
        }
    }
}

static void put_labels(lilac_text *out, grid_figure *figure, uint32_t x, uint32_t y) {
    const view_window *window = &figure->window;
    lilac_text_puts(out, "<g font-size=\"11\" fill=\"" FAINT "\" text-anchor=\"middle\">\n");
    for (uint64_t c = 0; c < window->count[VIEW_COLUMNS]; c += label_step(figure)) {
        lilac_view_svg_text(out, x + (uint32_t)c * figure->cell_width + figure->cell_width / 2,
                            y - 6, "",
                            index_label(figure, VIEW_COLUMNS, window->first[VIEW_COLUMNS] + c));
    }
    lilac_text_puts(out, "</g>\n<g font-size=\"11\" fill=\"" FAINT "\" text-anchor=\"end\">\n");
    for (uint64_t r = 0; r < window->count[VIEW_ROWS]; r++) {
        lilac_view_svg_text(out, x - 7,
                            y + (uint32_t)r * figure->cell_height + figure->cell_height / 2 + 4, "",
                            index_label(figure, VIEW_ROWS, window->first[VIEW_ROWS] + r));
    }
    lilac_text_puts(out, "</g>\n");
    const uint32_t width = (uint32_t)window->count[VIEW_COLUMNS] * figure->cell_width;
    lilac_view_svg_text(out, x + width / 2, y - 23, " font-size=\"12\" text-anchor=\"middle\"",
                        axis_label(figure, VIEW_COLUMNS));
    lilac_view_svg_text(out, x - 7, y - 6, " font-size=\"12\" text-anchor=\"end\"",
                        axis_label(figure, VIEW_ROWS));
}

static void put_slice(lilac_text *out, grid_figure *figure, uint64_t slice, uint32_t x,
                      uint32_t y) {
    const uint32_t left = x + figure->label_width, top = y + figure->label_height;
    lilac_view_svg_text(out, left, y + 13, " font-size=\"13\" font-weight=\"bold\"",
                        index_label(figure, VIEW_SLICES, slice));
    put_labels(out, figure, left, top);
    put_rectangles(out, figure, slice, left, top);
    lilac_text_puts(out, "<path fill=\"none\" stroke=\"" INK "\" stroke-width=\"1\" "
                         "stroke-linecap=\"square\" d=\"");
    put_lines(out, figure, left, top, true);
    put_lines(out, figure, left, top, false);
    lilac_text_puts(out, "\"/>\n");
    put_texts(out, figure, slice, left, top);
}

/* ---- under the cells --------------------------------------------------------------------- */

/* Swatches in lines no wider than the figure; returns the y below them. */
static uint32_t put_legend(lilac_text *out, grid_figure *figure, uint32_t y) {
    const view_grid *grid = figure->grid;
    if (grid->key_bits == 0) {
        return y;
    }
    const uint64_t keys = UINT64_C(1) << (grid->key_bits & 63);
    uint32_t x = MARGIN, shown = 0;
    uint64_t key = 0;
    lilac_text_puts(out, "<g font-size=\"11\">\n");
    do {
        lilac_text_reset(&figure->word);
        const bool rest = shown++ == MOST_SWATCHES;
        if (rest) {
            lilac_text_puts(&figure->word, "… ");
            lilac_view_key_label(&figure->word, grid, keys - 1);
        } else {
            lilac_view_key_label(&figure->word, grid, key);
        }
        const uint32_t width = lilac_view_characters(lilac_text_get(&figure->word)) * 6 + 14;
        const uint32_t box = rest ? 0 : SWATCH + 6;
        if (x + box + width > figure->width && x != MARGIN) {
            x = MARGIN;
            y += SWATCH + 7;
        }
        if (box != 0) {
            lilac_text_printf(out, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" fill=\"", x,
                              y, (int)SWATCH, (int)SWATCH);
            lilac_view_svg_colour(out, key);
            lilac_text_puts(out, "\" stroke=\"" INK "\" stroke-width=\"0.5\"/>\n");
        }
        lilac_view_svg_text(out, x + box, y + 10, "", lilac_text_get(&figure->word));
        x += box + width;
        key = lilac_view_key_next(grid, key);
    } while (key != 0 && shown <= MOST_SWATCHES);
    lilac_text_puts(out, "</g>\n");
    return y + SWATCH + 7;
}

/* The lines of a text, broken at spaces to the figure's width; returns the y below them. */
static uint32_t put_notes(lilac_text *out, grid_figure *figure, const char *notes, uint32_t y) {
    const uint32_t most = (figure->width - 2 * MARGIN) * 2 / 11;
    lilac_text_puts(out, "<g font-size=\"11\" fill=\"" FAINT "\">\n");
    while (*notes != '\0') {
        const char *end = notes, *space = NULL;
        for (uint32_t used = 0; *end != '\0' && *end != '\n'; end++) {
            used += ((unsigned char)*end & 0xC0) != 0x80;
            if (used > most && space != NULL) {
                end = space;
                break;
            }
            space = *end == ' ' ? end : space;
        }
        lilac_text_reset(&figure->word);
        lilac_text_put(&figure->word, notes, (size_t)(end - notes));
        lilac_view_svg_text(out, MARGIN, y + 11, "", lilac_text_get(&figure->word));
        y += LINE;
        notes = end + (*end == ' ' || *end == '\n');
    }
    lilac_text_puts(out, "</g>\n");
    return y;
}

static void draw(lilac_text *out, grid_figure *figure) {
    const view_grid *grid = figure->grid;
    const view_window *window = &figure->window;
    lilac_text body, heading, notes;
    lilac_text_init(&body);
    lilac_text_init(&heading);
    lilac_text_init(&notes);
    lilac_view_heading(&heading, grid);
    lilac_text_puts(&notes, lilac_text_get(&heading));
    lilac_text_char(&notes, '\n');
    lilac_view_notes(&notes, grid, window);

    uint32_t y = MARGIN;
    if (grid->options.title != NULL) {
        lilac_view_svg_text(&body, MARGIN, y + 12, " font-size=\"15\" font-weight=\"bold\"",
                            grid->options.title);
        y += 28;
    }
    const uint64_t slices = window->count[VIEW_SLICES];
    for (uint64_t s = 0; s < slices; s++) {
        const uint32_t across = (uint32_t)(s % figure->across);
        put_slice(&body, figure, window->first[VIEW_SLICES] + s,
                  MARGIN + across * (figure->slice_width + SLICE_GAP), y);
        if (across + 1 == figure->across || s + 1 == slices) {
            y += figure->slice_height + SLICE_GAP;
        }
    }
    y = put_legend(&body, figure, y - 8);
    y = put_notes(&body, figure, lilac_text_get(&notes), y);
    const uint64_t identity = lilac_hash(body.bytes, body.length, lilac_layout_hash(grid->layout));
    lilac_view_svg_open(out, figure->width, y + MARGIN - 6,
                        grid->options.title != NULL ? grid->options.title
                                                    : lilac_text_get(&heading),
                        lilac_text_get(&notes), identity);
    lilac_text_put(out, body.bytes, body.length);
    lilac_text_puts(out, "</svg>\n");
    lilac_text_clear(&body);
    lilac_text_clear(&heading);
    lilac_text_clear(&notes);
}

bool lilac_view_svg(lilac_text *out, const lilac_layout *layout, const lilac_view_options *options,
                    lilac_reason *why) {
    static const lilac_view_options usual = {0};
    static const uint64_t limit[3] = {MOST_SLICES, MOST_CELLS, MOST_CELLS};
    enum { WRAP_BITS = 4 };
    options = options != NULL ? options : &usual;
    if (options->kind == LILAC_VIEW_MATRIX) {
        lilac_view_matrix_svg(out, layout, options);
        return true;
    }
    view_grid grid;
    view_cell cell;
    grid_figure figure = {.grid = &grid, .cell = &cell};
    if (!lilac_view_grid_init(&grid, layout, options, WRAP_BITS, why) ||
        !lilac_view_window_init(&figure.window, &grid, limit, why)) {
        return false;
    }
    lilac_view_merge(&grid);
    lilac_text_init(&figure.word);
    measure(&figure);
    figure.tiles =
        lilac_heap_grow(NULL, sizeof *figure.tiles * (size_t)figure.window.count[VIEW_ROWS] *
                                  (size_t)figure.window.count[VIEW_COLUMNS]);
    draw(out, &figure);
    lilac_heap_free(figure.tiles);
    lilac_text_clear(&figure.word);
    return true;
}
