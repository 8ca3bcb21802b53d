/* encoding: layouts of tensor memory, from row (of 128), column and block to a matrix.
 *
 * Accumulators: a tile of blockM × blockN, a row to a row and a column to a column. 64 rows lie in
 * sixteens, one to the lower half of each quarter of the memory:
 *
 *     row bit    6   5   4   3 2 1 0
 *     m bit      5   4   x   3 2 1 0        x: the next tile's rows, else its columns, else nothing
 *
 * Tiles follow one another in columns, those along M first. Columns of zero below a tile's are
 * between elements (colStride, padded fp4). With two blocks at work on one tile of 64 rows, the
 * tile's highest column bit is the row bit 6; in a tile of one column that is a column of zero.
 *
 * Scales: chunks of 32 rows by 4 columns, twice (or four times) along M, repeated in all four
 * quarters.
 *
 * Blocks: Triton 3.6 splits by CTASplitM, CTASplitN and counts the parts in columns; later ones
 * have a CGALayout and the input block.
 */
#include "internal.h"

#include <inttypes.h>

/* A column of the map is a coordinate in one dimension, or nothing. */
typedef struct memory_bit {
    uint8_t dim, bit;
    bool nothing;
} memory_bit;

enum { MAX_BITS = 128 };

typedef struct memory_tile {
    uint32_t used[2];
    uint32_t rows, columns;
    memory_bit row[MAX_BITS], column[MAX_BITS];
} memory_tile;

static void row_bit(memory_tile *tile, uint32_t dim, uint32_t bit) {
    tile->row[tile->rows++] = (memory_bit){(uint8_t)dim, (uint8_t)bit, false};
    if (tile->used[dim] <= bit) {
        tile->used[dim] = bit + 1;
    }
}

static void row_nothing(memory_tile *tile) {
    tile->row[tile->rows++] = (memory_bit){0, 0, true};
}

static void column_step(memory_tile *tile, uint32_t dim, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        tile->column[tile->columns++] =
            (memory_bit){(uint8_t)dim, (uint8_t)tile->used[dim]++, false};
    }
}

static void column_nothing(memory_tile *tile, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        tile->column[tile->columns++] = (memory_bit){0, 0, true};
    }
}

static uint64_t packed(const memory_bit *at, const lilac_encoding_shape *shape,
                       const uint32_t *available) {
    if (at->nothing || at->bit >= available[at->dim]) {
        return 0;
    }
    return UINT64_C(1) << ((at->dim == 0 ? 0 : shape->bits[0]) + at->bit);
}

/* Bits beyond what is available (what one block has) are nothing. */
static bool finish(lilac_context *context, lilac_layout *result, const lilac_encoding *encoding,
                   const memory_tile *tile, const lilac_encoding_shape *shape,
                   const uint32_t *available) {
    uint64_t rows[MAX_BITS], columns[MAX_BITS], blocks[LILAC_ENCODING_MAX_BLOCK_BITS];
    for (uint32_t k = 0; k < tile->rows; k++) {
        rows[k] = packed(&tile->row[k], shape, available);
    }
    for (uint32_t k = 0; k < tile->columns; k++) {
        columns[k] = packed(&tile->column[k], shape, available);
    }
    lilac_encoding_block_columns(blocks, &encoding->blocks, shape);
    lilac_layout made;
    if (!lilac_encoding_outs(&made, shape, NULL) ||
        !lilac_layout_add_in(&made, "row", tile->rows, rows, NULL) ||
        !lilac_layout_add_in(&made, "col", tile->columns, columns, NULL) ||
        !lilac_layout_add_in(&made, "block", encoding->blocks.bits, blocks, NULL)) {
        return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                     "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
    }
    *result = made;
    return true;
}

/* What one block has of each dimension, log2, and how the older form splits the rest. */
static bool parts_of(lilac_context *context, uint32_t *available, uint32_t *split,
                     const lilac_encoding *encoding, uint32_t split_m, uint32_t split_n,
                     const lilac_encoding_shape *shape) {
    uint32_t taken[LILAC_MAX_RANK];
    lilac_encoding_block_bits(taken, &encoding->blocks, shape);
    split[0] = lilac_encoding_log2(split_m);
    split[1] = lilac_encoding_log2(split_n);
    for (uint32_t d = 0; d < 2; d++) {
        available[d] = shape->bits[d] - taken[d];
        if (available[d] < split[d]) {
            return lilac_encoding_refuse(context, encoding, "layout-shape",
                                         "%" PRIu64 " elements along dimension %u are not split by "
                                         "%u",
                                         UINT64_C(1) << available[d], d, 1U << split[d]);
        }
        available[d] -= split[d];
    }
    return true;
}

static bool check_forms(lilac_encoding_reader *r, const lilac_encoding_param *blocks,
                        const lilac_encoding_param *split_m, const lilac_encoding_param *split_n,
                        const lilac_encoding_rank *rank) {
    if (blocks->given && (split_m->given || split_n->given)) {
        return lilac_scanner_refuse(r->scanner, blocks->position, "layout-two-forms",
                                    "blocks are said by CGALayout or by CTASplitM and "
                                    "CTASplitN, not by both");
    }
    if (rank->known && rank->rank != 2) {
        return lilac_scanner_refuse(r->scanner, blocks->position, "layout-rank",
                                    "tensor memory has two dimensions");
    }
    return true;
}

/* ---- accumulators ----------------------------------------------------------------------- */

bool lilac_encoding_tensor_memory_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    encoding->rank = 2;
    encoding->as.tensor_memory.split_m = encoding->as.tensor_memory.split_n = 1;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("blockM", lilac_encoding_read_number,
                                &encoding->as.tensor_memory.block_m),
        LILAC_ENCODING_REQUIRED("blockN", lilac_encoding_read_size,
                                &encoding->as.tensor_memory.block_n),
        LILAC_ENCODING_REQUIRED("colStride", lilac_encoding_read_number,
                                &encoding->as.tensor_memory.col_stride),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
        LILAC_ENCODING_OPTIONAL("CTASplitM", lilac_encoding_read_size,
                                &encoding->as.tensor_memory.split_m),
        LILAC_ENCODING_OPTIONAL("CTASplitN", lilac_encoding_read_size,
                                &encoding->as.tensor_memory.split_n),
        LILAC_ENCODING_OPTIONAL("twoCTAs", lilac_encoding_read_flag,
                                &encoding->as.tensor_memory.two_ctas),
        LILAC_ENCODING_OPTIONAL("fp4Padded", lilac_encoding_read_flag,
                                &encoding->as.tensor_memory.fp4_padded),
    };
    if (!lilac_encoding_read_bare_attribute(r, encoding->position, params, 8, &rank) ||
        !check_forms(r, &params[3], &params[4], &params[5], &rank)) {
        return false;
    }
    uint32_t m = encoding->as.tensor_memory.block_m, stride = encoding->as.tensor_memory.col_stride;
    if (m != 64 && m != 128) {
        return lilac_scanner_refuse(r->scanner, params[0].position, "layout-tensor-memory",
                                    "blockM is 64 or 128, not %u", m);
    }
    if (stride != 1 && stride != 2 && stride != 4) {
        return lilac_scanner_refuse(r->scanner, params[2].position, "layout-tensor-memory",
                                    "colStride is 1, 2 or 4, not %u", stride);
    }
    return true;
}

void lilac_encoding_tensor_memory_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<blockM = %u, blockN = %u, colStride = %u",
                      encoding->as.tensor_memory.block_m, encoding->as.tensor_memory.block_n,
                      encoding->as.tensor_memory.col_stride);
    lilac_encoding_put_blocks(out, encoding);
    if (encoding->as.tensor_memory.split_m != 1) {
        lilac_text_printf(out, ", CTASplitM = %u", encoding->as.tensor_memory.split_m);
    }
    if (encoding->as.tensor_memory.split_n != 1) {
        lilac_text_printf(out, ", CTASplitN = %u", encoding->as.tensor_memory.split_n);
    }
    if (encoding->as.tensor_memory.two_ctas) {
        lilac_text_puts(out, ", twoCTAs = true");
    }
    if (encoding->as.tensor_memory.fp4_padded) {
        lilac_text_puts(out, ", fp4Padded = true");
    }
    lilac_text_char(out, '>');
}

static bool too_narrow(lilac_context *context, const lilac_encoding *encoding) {
    return lilac_encoding_refuse(context, encoding, "layout-shape",
                                 "two blocks cannot share a tile of one column");
}

bool lilac_encoding_tensor_memory_layout(lilac_context *context, lilac_layout *result,
                                         const lilac_encoding *encoding,
                                         const lilac_encoding_shape *shape) {
    uint32_t available[2], split[2];
    if (!parts_of(context, available, split, encoding, encoding->as.tensor_memory.split_m,
                  encoding->as.tensor_memory.split_n, shape)) {
        return false;
    }
    uint32_t m = lilac_encoding_log2(encoding->as.tensor_memory.block_m);
    uint32_t n = lilac_encoding_log2(encoding->as.tensor_memory.block_n);
    bool two_of_64 = encoding->as.tensor_memory.two_ctas && m == 6;
    /* Of the older form's parts along M, the first two share a tile. */
    bool shared = two_of_64 && split[0] > 0;
    if (shared) {
        split[0]--;
        available[0]++;
    }
    n = n < available[1] ? n : available[1];
    if (available[0] < m + shared) {
        return lilac_encoding_refuse(context, encoding, "layout-shape",
                                     "one block has %" PRIu64 " rows; a tile has %u",
                                     UINT64_C(1) << available[0], 1U << (m + shared));
    }

    memory_tile tile = {{0, 0}, 0, 0, {{0, 0, false}}, {{0, 0, false}}};
    column_nothing(&tile, lilac_encoding_log2(encoding->as.tensor_memory.col_stride) +
                              encoding->as.tensor_memory.fp4_padded);
    for (uint32_t bit = 0; bit < 4; bit++) {
        row_bit(&tile, 0, bit);
    }
    column_step(&tile, 1, n);
    if (m == 6 && !two_of_64) {
        if (available[0] > m) {
            row_bit(&tile, 0, 6);
        } else if (available[1] > n) {
            row_bit(&tile, 1, n);
        } else {
            row_nothing(&tile);
        }
    }
    for (uint32_t bit = 4; bit < m + shared; bit++) {
        row_bit(&tile, 0, bit);
    }
    if (two_of_64 && !shared && tile.columns == 0) {
        return too_narrow(context, encoding);
    }
    if (two_of_64 && !shared) {
        tile.row[tile.rows++] = tile.column[--tile.columns];
    }
    for (uint32_t d = 0; d < 2; d++) {
        column_step(&tile, d, available[d] > tile.used[d] ? available[d] - tile.used[d] : 0);
    }
    for (uint32_t d = 0; d < 2; d++) {
        column_step(&tile, d, split[d]);
        available[d] += split[d];
        if (d == 0 && shared && tile.columns == 0) {
            return too_narrow(context, encoding);
        }
        if (d == 0 && shared) {
            memory_bit last = tile.row[tile.rows - 1];
            tile.row[tile.rows - 1] = tile.column[tile.columns - 1];
            tile.column[tile.columns - 1] = last;
        }
    }
    return finish(context, result, encoding, &tile, shape, available);
}

/* ---- scales ----------------------------------------------------------------------------- */

static bool read_rep_order(lilac_encoding_reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    bool k_then_mn = lilac_scanner_is_word(r->scanner, "kThenMn");
    if (!k_then_mn && !lilac_scanner_is_word(r->scanner, "mnThenK")) {
        return lilac_scanner_expected(r->scanner, "mnThenK or kThenMn");
    }
    lilac_scanner_next(r->scanner);
    *(bool *)into = k_then_mn;
    return true;
}

bool lilac_encoding_tensor_memory_scales_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    encoding->rank = 2;
    encoding->as.tensor_memory_scales.split_m = encoding->as.tensor_memory_scales.split_n = 1;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
        LILAC_ENCODING_OPTIONAL("CTASplitM", lilac_encoding_read_size,
                                &encoding->as.tensor_memory_scales.split_m),
        LILAC_ENCODING_OPTIONAL("CTASplitN", lilac_encoding_read_size,
                                &encoding->as.tensor_memory_scales.split_n),
        LILAC_ENCODING_OPTIONAL("blockRepOrder", read_rep_order,
                                &encoding->as.tensor_memory_scales.k_then_mn),
    };
    return lilac_encoding_read_bare_attribute(r, encoding->position, params, 4, &rank) &&
           check_forms(r, &params[0], &params[1], &params[2], &rank);
}

void lilac_encoding_tensor_memory_scales_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text fields = {0};
    lilac_encoding_put_blocks(&fields, encoding);
    if (encoding->as.tensor_memory_scales.split_m != 1) {
        lilac_text_printf(&fields, ", CTASplitM = %u", encoding->as.tensor_memory_scales.split_m);
    }
    if (encoding->as.tensor_memory_scales.split_n != 1) {
        lilac_text_printf(&fields, ", CTASplitN = %u", encoding->as.tensor_memory_scales.split_n);
    }
    if (encoding->as.tensor_memory_scales.k_then_mn) {
        lilac_text_puts(&fields, ", blockRepOrder = kThenMn");
    }
    lilac_text_char(out, '<');
    lilac_text_puts(out, fields.length == 0 ? "" : fields.bytes + 2);
    lilac_text_char(out, '>');
    lilac_text_clear(&fields);
}

bool lilac_encoding_tensor_memory_scales_layout(lilac_context *context, lilac_layout *result,
                                                const lilac_encoding *encoding,
                                                const lilac_encoding_shape *shape) {
    uint32_t available[2], split[2];
    if (!parts_of(context, available, split, encoding, encoding->as.tensor_memory_scales.split_m,
                  encoding->as.tensor_memory_scales.split_n, shape)) {
        return false;
    }
    bool k_first = encoding->as.tensor_memory_scales.k_then_mn;
    memory_tile tile = {{0, 0}, 0, 0, {{0, 0, false}}, {{0, 0, false}}};
    for (uint32_t bit = 0; bit < 5; bit++) {
        row_bit(&tile, 0, bit);
    }
    row_nothing(&tile);
    row_nothing(&tile);
    column_step(&tile, 1, 2);
    column_step(&tile, 0, k_first ? 2 : 1);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t d = k_first ? 1 - i : i;
        column_step(&tile, d, available[d] > tile.used[d] ? available[d] - tile.used[d] : 0);
    }
    /* A tile larger than the tensor has places of nothing; the parts of the split come above. */
    for (uint32_t k = 0; k < tile.rows; k++) {
        tile.row[k].nothing |= tile.row[k].bit >= available[tile.row[k].dim];
    }
    for (uint32_t k = 0; k < tile.columns; k++) {
        tile.column[k].nothing |= tile.column[k].bit >= available[tile.column[k].dim];
    }
    for (uint32_t d = 0; d < 2; d++) {
        tile.used[d] = available[d];
        column_step(&tile, d, split[d]);
        available[d] += split[d];
    }
    return finish(context, result, encoding, &tile, shape, available);
}

/* ---- by bases --------------------------------------------------------------------------- */

bool lilac_encoding_tensor_memory_linear_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    static const char *const names[] = {"row", "col", "block"};
    const lilac_encoding_inputs inputs = {names, 3, 1, false, true};
    return lilac_scanner_expect(r->scanner, '<') &&
           lilac_encoding_read_map(r, encoding, &encoding->as.linear, &inputs) &&
           lilac_scanner_expect(r->scanner, '>');
}

void lilac_encoding_tensor_memory_linear_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_encoding_linear_print(out, encoding);
}

bool lilac_encoding_tensor_memory_linear_layout(lilac_context *context, lilac_layout *result,
                                                const lilac_encoding *encoding,
                                                const lilac_encoding_shape *shape) {
    return lilac_encoding_of_shape(context, result, encoding, &encoding->as.linear, shape);
}
