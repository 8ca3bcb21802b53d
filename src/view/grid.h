/* What the views share. The views of cells and of hardware are both a grid: a word (a flattened
 * element or slot) whose bits are dealt to three axes, slices, rows and columns, and something to
 * say in each cell. The renderers (text, SVG, JSON) see only grids. */
#ifndef LILAC_VIEW_GRID_H
#define LILAC_VIEW_GRID_H

#include <lilac/bits.h>
#include <lilac/view.h>

#include <string.h>

/* Bit i of an index along the axis is bit at[i] of the word. */
typedef struct view_axis {
    uint32_t bits;
    uint8_t at[LILAC_LAYOUT_MAX_BITS];
} view_axis;

typedef enum view_axis_name { VIEW_SLICES, VIEW_ROWS, VIEW_COLUMNS } view_axis_name;

enum {
    VIEW_FIELDS = LILAC_LAYOUT_MAX_DIMS + 1,
    VIEW_FIELD_SIZE = 112, /* a name, three numbers and punctuation */
    VIEW_MAX_CELLS = 1 << 20
};

/* What stands in a cell. The fields are the words of its text, each no wider than the grid says. */
typedef struct view_cell {
    bool empty;    /* nothing is here */
    bool copy;     /* of what another cell shows */
    uint64_t key;  /* what it is coloured by */
    uint64_t tile; /* cells of one tile belong together: one thread's, one warp's … */
    uint32_t field_count;
    char fields[VIEW_FIELDS][VIEW_FIELD_SIZE];
} view_cell;

typedef struct view_grid {
    const lilac_layout *layout;
    lilac_view_options options; /* defaults filled in */
    lilac_view_owners owners;
    view_axis axes[3];
    uint64_t padded_rows; /* hardware view of padded memory: how many rows; 0: not padded */
    bool memory;          /* the layout is over offsets */
    int column_input;     /* hardware: whose bits the columns are */
    uint32_t row_bits;    /* memory: log2 of the elements in a row of all banks */
    uint32_t chunk_bits;  /* memory: log2 of the consecutive elements that stay together, */
    uint32_t run_bits;    /* … and of those that one cell can stand for: both count together */
    uint32_t merged_bits; /* … and does: 0 or run_bits; cells then say 2,8–15 */
    uint64_t chunk_mask;  /* and these bits of a slot */
    uint32_t key_shift;   /* the colour: a field of the owner or slot, */
    uint32_t key_bits;
    bool key_of_element; /* or of the element */
    uint64_t tile_mask;  /* bits of the owner or slot that distinguish tiles */
    bool sets;           /* cells: copies are independent in each input, so sets can list them */
    uint32_t field_count;
    uint32_t field_width[VIEW_FIELDS]; /* characters */
} view_grid;

/* The part of an axis that is shown. */
typedef struct view_window {
    uint64_t first[3], count[3];
} view_window;

/* ---- grid.c ------------------------------------------------------------------------- */

/* Deals the bits; `wrap_bits` is the width of a tensor of rank 1. */
bool lilac_view_grid_init(view_grid *grid, const lilac_layout *layout,
                          const lilac_view_options *options, uint32_t wrap_bits, lilac_reason *why);
/* Cells along an axis (at most UINT64_MAX). */
uint64_t lilac_view_axis_size(const view_grid *grid, view_axis_name axis);
/* The word at an index of each axis. */
uint64_t lilac_view_word(const view_grid *grid, const uint64_t index[3]);
/* The ranges of the options, cut at the axes' ends and, where they are open, at `limit`. */
bool lilac_view_window_init(view_window *window, const view_grid *grid, const uint64_t limit[3],
                            lilac_reason *why);
void lilac_view_cell_get(view_cell *cell, const view_grid *grid, uint64_t word);
/* Memory: lets each cell at a multiple of 2^run_bits stand for the run that begins there, where the
 * columns asked for are whole runs. */
void lilac_view_merge(view_grid *grid);
/* Can this key be that of a cell? */
bool lilac_view_key_used(const view_grid *grid, uint64_t key);
/* The next such key above this one; 0 after the last. */
uint64_t lilac_view_key_next(const view_grid *grid, uint64_t key);
uint32_t lilac_view_cell_width(const view_grid *grid);

/* "16×16 tensor: …", one line, and what stands under the table, a line each. */
void lilac_view_heading(lilac_text *out, const view_grid *grid);
void lilac_view_notes(lilac_text *out, const view_grid *grid, const view_window *window);
/* What is along an axis: "dim1", "register", "bank". Empty for none. */
void lilac_view_axis_label(lilac_text *out, const view_grid *grid, view_axis_name axis);
/* The label of one row, column or slice. */
void lilac_view_index_label(lilac_text *out, const view_grid *grid, view_axis_name axis,
                            uint64_t index);
/* What colour number `key` stands for: "warp 3". */
void lilac_view_key_label(lilac_text *out, const view_grid *grid, uint64_t key);

/* ---- view_table.c, view_hardware.c ------------------------------------------------------- */

bool lilac_view_table_init(view_grid *grid, uint32_t wrap_bits, lilac_reason *why);
void lilac_view_table_cell(view_cell *cell, const view_grid *grid, uint64_t element);
bool lilac_view_hardware_init(view_grid *grid, lilac_reason *why);
void lilac_view_hardware_cell(view_cell *cell, const view_grid *grid, uint64_t slot);
/* Where the element at an offset stands when there is padding, and the other way round: false where
 * padding is. */
uint64_t lilac_view_pad(const view_grid *grid, uint64_t offset);
bool lilac_view_unpad(const view_grid *grid, uint64_t place, uint64_t *offset);
/* Memory: the low offset bits that count up the last dimension, as one access can take them. */
void lilac_view_chunk(view_grid *grid);

/* ---- view_matrix.c ----------------------------------------------------------------------- */

void lilac_view_matrix_text(lilac_text *out, const lilac_layout *layout,
                            const lilac_view_options *options);
/* "8×8 bit matrix of rank 8: …" */
void lilac_view_matrix_heading(lilac_text *out, const lilac_layout *layout);

/* ---- view_svg.c, view_svg_matrix.c ------------------------------------------------------- */

/* Where a document's words may hold anything, in XML. Bytes that XML forbids become spaces. */
void lilac_view_xml(lilac_text *out, const char *text);
/* Everything up to the drawing: size, title, description, white ground. */
void lilac_view_svg_open(lilac_text *out, uint32_t width, uint32_t height, const char *title,
                         const char *description, uint64_t identity);
void lilac_view_svg_text(lilac_text *out, uint32_t x, uint32_t y, const char *attributes,
                         const char *text);
/* The colour of a key: 8 hues, then the same in other shades. */
enum { VIEW_COLOURS = 32 };
void lilac_view_svg_colour(lilac_text *out, uint64_t key);
void lilac_view_matrix_svg(lilac_text *out, const lilac_layout *layout,
                           const lilac_view_options *options);

/* ---- names ------------------------------------------------------------------------------- */

/* "r" "t" "w" "b" for the usual inputs, "" for an offset, else the name and a space. */
const char *lilac_view_letter(const lilac_layout_dim *input, char *space, size_t size);
/* 2^bits in decimal, up to 2^64. */
void lilac_view_power(lilac_text *out, uint32_t bits);
/* Decimal digits of a number, and of 2^bits - 1. */
uint32_t lilac_view_digits_of(uint64_t most);
uint32_t lilac_view_digits(uint32_t bits);
/* Characters (code points) of a text. */
uint32_t lilac_view_characters(const char *text);
/* No line ends in spaces. */
void lilac_view_end_line(lilac_text *out);

#endif
