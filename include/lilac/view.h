/* view: a layout to look at, as terminal text, as an SVG figure, or as JSON.
 *
 * A layout L says which element a slot of the hardware holds. Three views of it:
 *
 *   cells      the tensor; in each cell the slots that hold it, L⁻¹(element): w0 t3 r1
 *   hardware   the slots (rows: warps and lanes, columns: registers; of memory, rows of all banks);
 *              in each the element that it holds, L(slot): 2,3
 *   matrix     the bit matrix, its columns in labelled blocks: register | lane | warp
 *
 * Letters: r register, t lane (thread), w warp, b block; an offset into memory is a bare number,
 * any other input has its name. Where an element is held several times: w0,2 lists the warps that
 * hold it, w* means all of them, and where such sets cannot say it, the first owner stands with how
 * often the element is held: w0 t0 r0 ×4. In the hardware view a slot that holds a copy of an
 * element that a slot before it holds is marked ': 2,3'. An element that no slot holds is a dot.
 *
 * A tensor of rank 3 or more is shown as slices: a table of the last two dimensions for each index
 * of the others. One of rank 1 is wrapped. What does not fit is left out, and a last line says
 * what. The same layout and options always give the same bytes.
 */
#ifndef LILAC_VIEW_H
#define LILAC_VIEW_H

#include <lilac/layout.h>

LILAC_BEGIN

typedef enum lilac_view_kind {
    LILAC_VIEW_CELLS,
    LILAC_VIEW_HARDWARE,
    LILAC_VIEW_MATRIX
} lilac_view_kind;

/* `count` of them beginning with number `first`; count 0: from there on, as many as fit. What lies
 * past the end is cut off. */
typedef struct lilac_view_range {
    uint64_t first, count;
} lilac_view_range;

/* Memory: `padding` elements that hold nothing after every `interval` elements, as in Triton's
 * padded shared layout. An interval is a power of two. */
typedef struct lilac_view_padding {
    uint64_t interval, padding;
} lilac_view_padding;

/* All zero: the cells, 100 characters a line, no colour. */
typedef struct lilac_view_options {
    lilac_view_kind kind;
    uint32_t width;        /* text: characters a line may have; 0: 100 */
    bool colour;           /* text: with escape sequences */
    const char *colour_by; /* an input's name; NULL: warp, else lane, else register. Of memory:
                              always the banks (cells) or the chunks of the tensor (hardware) */
    lilac_view_range slices, rows, columns; /* of the table; a matrix is always shown whole */
    uint32_t element_bits;                  /* hardware view of memory; these three: 0: 32, 32, 4 */
    uint32_t banks, bank_bytes;
    /* of memory: the views show where elements stand with it. JSON and the matrix, which show the
     * linear layout, do not. */
    const lilac_view_padding *paddings;
    uint32_t padding_count;
    const char *title; /* SVG: drawn above the figure; NULL: none */
} lilac_view_options;

/* As terminal text. `options` may be NULL in all of these. Refused, with nothing written: a range
 * that begins past the end, padding after an interval that is no power of two or in memory of
 * several blocks, more than 2^20 cells, sizes of memory that are not powers of two or where a row
 * holds no element, an input to colour by that the layout lacks. */
LILAC_API LILAC_MUST_USE bool lilac_view_text(lilac_text *out, const lilac_layout *layout,
                                              const lilac_view_options *options, lilac_reason *why);
/* As an SVG document of its own, also fit to stand inside a page: no style sheet, no fonts but the
 * usual ones, a title and a description for those who cannot see it. Each cell is one
 * <rect class="cell">. At most 64 rows and 64 columns unless the ranges ask for more. */
LILAC_API LILAC_MUST_USE bool lilac_view_svg(lilac_text *out, const lilac_layout *layout,
                                             const lilac_view_options *options, lilac_reason *why);
/* As one JSON value on one line: everything that the ranges ask for, all by default.
 *   {"view": "cells", "shape": [16,16], "inputs": ["register","lane","warp"], "copies": 1,
 *    "cells": [{"element": [0,0], "owners": [[0,0,0]]}, …]}
 *   {"view": "hardware", …, "slots": [{"slot": [0,0,0], "element": [0,0], "copy": false}, …]}
 *   {"view": "matrix", "inputs": [{"name": "register", "bits": 2}, …],
 *    "outputs": [{"name": "dim0", "bits": 4}, …], "rows": [[1,0,…], …]}
 * A matrix's rows are its outputs' bits in order, lowest first. */
LILAC_API LILAC_MUST_USE bool lilac_view_json(lilac_text *out, const lilac_layout *layout,
                                              const lilac_view_options *options, lilac_reason *why);

/* ---- owners ------------------------------------------------------------------------------ */

/* The preimages of a layout's elements, prepared once. */
typedef struct lilac_view_owners {
    uint32_t rank;
    uint32_t copy_bits;       /* each element that is held, is held 2^copy_bits times */
    uint64_t vector[64];      /* a basis of the elements that are held, … */
    uint64_t combination[64]; /* … of what inputs, … */
    uint8_t pivot[64];        /* … and the bit that no other of them has */
    uint64_t copies[64];      /* a basis of the kernel, by ascending highest bits */
} lilac_view_owners;

/* Prepares them, by one elimination over the columns. */
LILAC_API void lilac_view_owners_init(lilac_view_owners *owners, const lilac_layout *layout);
/* The input index number `copy` (below 2^copy_bits, ascending) of those that map to the element;
 * copy 0 is the smallest. False when none does. Cost: about the rank in steps. */
LILAC_API bool lilac_view_owner(const lilac_view_owners *owners, uint64_t element, uint64_t copy,
                                uint64_t *index);

LILAC_END

#endif
