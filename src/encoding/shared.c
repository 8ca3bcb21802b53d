/* encoding: layouts of shared memory, from offset (in elements) and block to the tensor.
 *
 * Swizzled: the dimensions lie in `order`; row r of the two fastest is moved by
 * vec · ((r / perPhase) mod maxPhase) columns, modulo the row, with an xor.
 *
 * NVMMA: what a TMA copy writes. A core of 8 rows of the swizzling width, in which row r's pieces
 * of 16 bytes change places as the hardware's 128-byte swizzle says,
 *
 *     width 128: piece ^ (r mod 8)      64: piece ^ (r / 2 mod 4)      32: piece ^ (r / 4 mod 2)
 *
 * then further rows of one copy (at most 256 along a dimension), and then copy after copy. With fp4
 * padding each 16 bytes hold 8 bytes of values: offset bit 3 moves nothing.
 * Transposed, the first dimension is the fastest. Of three dimensions and more, Triton then takes
 * as many rows as the last dimension has, and the rest of the copy, the first dimension fastest, as
 * columns (copy_matrix).
 *
 * Linear: by bases. Padded: linear, with gaps that the map does not show. Partitioned: pieces of
 * the tensor go to partitions in turn, each of which lays its pieces one behind the other.
 */
#include "internal.h"

#include <inttypes.h>
#include <string.h>

/* ---- putting offsets together ----------------------------------------------------------- */

/* Offsets of one block's part of a tensor. */
typedef struct offsets {
    const lilac_encoding_shape *shape;
    uint32_t start[LILAC_MAX_RANK];
    uint32_t available[LILAC_MAX_RANK];
    uint32_t used[LILAC_MAX_RANK];
    uint32_t count;
    uint64_t columns[2 * LILAC_LAYOUT_MAX_BITS];
} offsets;

static void offsets_init(offsets *o, const lilac_encoding *encoding,
                         const lilac_encoding_shape *shape) {
    uint32_t taken[LILAC_MAX_RANK];
    memset(o, 0, sizeof *o);
    o->shape = shape;
    lilac_encoding_block_bits(taken, &encoding->blocks, shape);
    for (uint32_t d = 0, sum = 0; d < shape->rank; sum += shape->bits[d++]) {
        o->start[d] = sum;
        o->available[d] = shape->bits[d] - taken[d];
    }
}

/* The next bits of a dimension until it has `until`. */
static void offsets_fill(offsets *o, uint32_t dim, uint32_t until) {
    while (o->used[dim] < until && o->used[dim] < o->available[dim]) {
        o->columns[o->count++] = UINT64_C(1) << (o->start[dim] + o->used[dim]++);
    }
}

static bool too_large(lilac_context *context, const lilac_encoding *encoding) {
    return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                 "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
}

static bool offsets_finish(lilac_context *context, lilac_layout *result,
                           const lilac_encoding *encoding, const offsets *o) {
    uint64_t blocks[LILAC_ENCODING_MAX_BLOCK_BITS];
    lilac_layout made;
    lilac_encoding_block_columns(blocks, &encoding->blocks, o->shape);
    if (!lilac_encoding_outs(&made, o->shape, NULL) ||
        !lilac_layout_add_in(&made, "offset", o->count, o->columns, NULL) ||
        !lilac_layout_add_in(&made, "block", encoding->blocks.bits, blocks, NULL)) {
        return too_large(context, encoding);
    }
    *result = made;
    return true;
}

/* ---- swizzled --------------------------------------------------------------------------- */

bool lilac_encoding_swizzled_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("vec", lilac_encoding_read_size, &encoding->as.swizzled.vec),
        LILAC_ENCODING_REQUIRED("perPhase", lilac_encoding_read_size,
                                &encoding->as.swizzled.per_phase),
        LILAC_ENCODING_REQUIRED("maxPhase", lilac_encoding_read_size,
                                &encoding->as.swizzled.max_phase),
        LILAC_ENCODING_REQUIRED("order", lilac_encoding_read_order, encoding->as.swizzled.order),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
    };
    bool good = lilac_encoding_read_attribute(r, encoding->position, params, 5, &rank);
    encoding->rank = rank.rank;
    return good;
}

void lilac_encoding_swizzled_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{vec = %u, perPhase = %u, maxPhase = %u", encoding->as.swizzled.vec,
                      encoding->as.swizzled.per_phase, encoding->as.swizzled.max_phase);
    lilac_encoding_put_list(out, ", order = ", encoding->as.swizzled.order, encoding->rank);
    lilac_encoding_put_blocks(out, encoding);
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_swizzled_shared_layout(lilac_context *context, lilac_layout *result,
                                           const lilac_encoding *encoding,
                                           const lilac_encoding_shape *shape) {
    const uint32_t *order = encoding->as.swizzled.order;
    offsets o;
    offsets_init(&o, encoding, shape);
    for (uint32_t i = 0; i < encoding->rank; i++) {
        offsets_fill(&o, order[i], UINT32_MAX);
    }
    if (encoding->rank >= 2) {
        uint32_t columns = o.available[order[0]], rows = o.available[order[1]];
        for (uint32_t bit = 0; bit < rows; bit++) {
            uint64_t phase = (UINT64_C(1) << bit) / encoding->as.swizzled.per_phase;
            uint64_t moved =
                encoding->as.swizzled.vec * (phase & (encoding->as.swizzled.max_phase - 1));
            if (columns < 64) {
                moved &= (UINT64_C(1) << columns) - 1;
            }
            o.columns[columns + bit] |= moved << o.start[order[0]];
        }
    }
    return offsets_finish(context, result, encoding, &o);
}

/* ---- NVMMA ------------------------------------------------------------------------------ */

bool lilac_encoding_nvmma_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    uint32_t given_rank = 2;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("swizzlingByteWidth", lilac_encoding_read_number,
                                &encoding->as.nvmma_shared.swizzling_byte_width),
        LILAC_ENCODING_OPTIONAL("transposed", lilac_encoding_read_flag,
                                &encoding->as.nvmma_shared.transposed),
        LILAC_ENCODING_REQUIRED("elementBitWidth", lilac_encoding_read_number,
                                &encoding->as.nvmma_shared.element_bits),
        LILAC_ENCODING_OPTIONAL("fp4Padded", lilac_encoding_read_flag,
                                &encoding->as.nvmma_shared.fp4_padded),
        LILAC_ENCODING_OPTIONAL("rank", lilac_encoding_read_number, &given_rank),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, 6, &rank)) {
        return false;
    }
    uint32_t width = encoding->as.nvmma_shared.swizzling_byte_width;
    uint32_t bits = encoding->as.nvmma_shared.element_bits;
    if (width != 0 && width != 32 && width != 64 && width != 128) {
        return lilac_scanner_refuse(r->scanner, params[0].position, "layout-swizzle",
                                    "the swizzling width is 0, 32, 64 or 128 bytes, not %u", width);
    }
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) {
        return lilac_scanner_refuse(r->scanner, params[2].position, "layout-element-width",
                                    "elements are 8, 16, 32 or 64 bits wide here, not %u", bits);
    }
    if (encoding->as.nvmma_shared.fp4_padded && (width != 128 || bits != 8)) {
        return lilac_scanner_refuse(r->scanner, params[3].position, "layout-fp4-padded",
                                    "padded fp4 has elements of 8 bits swizzled by 128 bytes");
    }
    if (rank.known && params[4].given && rank.rank != given_rank) {
        return lilac_scanner_refuse(r->scanner, params[4].position, "layout-rank",
                                    "CGALayout is of rank %u", rank.rank);
    }
    encoding->rank = rank.known ? rank.rank : given_rank;
    uint32_t least = width == 0 ? 1 : 2;
    if (encoding->rank < least || encoding->rank > LILAC_MAX_RANK) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-rank",
                                    "a layout of this kind has %u to %d dimensions", least,
                                    LILAC_MAX_RANK);
    }
    return true;
}

void lilac_encoding_nvmma_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{swizzlingByteWidth = %u, transposed = %s, elementBitWidth = %u",
                      encoding->as.nvmma_shared.swizzling_byte_width,
                      encoding->as.nvmma_shared.transposed ? "true" : "false",
                      encoding->as.nvmma_shared.element_bits);
    if (encoding->as.nvmma_shared.fp4_padded) {
        lilac_text_puts(out, ", fp4Padded = true");
    }
    if (encoding->blocks.bits == 0 && encoding->rank != 2) {
        lilac_text_printf(out, ", rank = %u", encoding->rank);
    }
    lilac_encoding_put_blocks(out, encoding);
    lilac_text_puts(out, "}>");
}

/* The rows of one copy's swizzled pieces: bit `row` of the row number moves pieces by this many
 * elements (of which half are padding for padded fp4). */
static uint64_t swizzle_of_row(const lilac_encoding *encoding, uint32_t row) {
    uint32_t width = encoding->as.nvmma_shared.swizzling_byte_width;
    uint32_t pieces = lilac_encoding_log2(width / 16); /* log2 of pieces a row */
    uint32_t quiet = 3 - pieces;                       /* row bits that change nothing */
    if (row < quiet || row >= 3) {
        return 0;
    }
    uint64_t moved = (UINT64_C(128) / encoding->as.nvmma_shared.element_bits) << (row - quiet);
    return encoding->as.nvmma_shared.fp4_padded ? moved / 2 : moved;
}

enum { COPY_BITS = 8 }; /* a copy has at most 256 elements along a dimension */

/* One TMA copy as a matrix. Its elements are numbered along `order`, fastest first; the lowest
 * `columns` bits of the number are the column and the others are the row. Triton's collapsed matrix
 * of a transposed layout has as many rows as the last dimension has elements, of any rank. */
typedef struct copy_matrix {
    uint32_t order[LILAC_MAX_RANK];
    uint32_t bits[LILAC_MAX_RANK]; /* of each dimension */
    uint32_t columns, rows;
} copy_matrix;

static void copy_matrix_init(copy_matrix *copy, const lilac_encoding *encoding, const offsets *o,
                             uint32_t width_bits) {
    uint32_t rank = encoding->rank, sum = 0;
    bool transposed = encoding->as.nvmma_shared.transposed;
    /* [n-1, …, 0], or [0, n-1, …, 1] */
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = transposed ? (i == 0 ? 0 : rank - i) : rank - 1 - i;
        uint32_t most = i == 0 && width_bits < COPY_BITS ? width_bits : COPY_BITS;
        copy->order[i] = d;
        copy->bits[d] = o->available[d] < most ? o->available[d] : most;
        sum += copy->bits[d];
    }
    copy->rows = transposed ? copy->bits[rank - 1] : sum - copy->bits[rank - 1];
    copy->columns = sum - copy->rows;
}

/* The next offset bit goes to this bit of an element's number. */
static void copy_matrix_bit(const copy_matrix *copy, offsets *o, uint32_t bit) {
    uint32_t i = 0;
    for (; bit >= copy->bits[copy->order[i]]; i++) {
        bit -= copy->bits[copy->order[i]];
    }
    uint32_t d = copy->order[i];
    o->columns[o->count++] = UINT64_C(1) << (o->start[d] + bit);
    if (o->used[d] <= bit) {
        o->used[d] = bit + 1;
    }
}

static void swizzled_copy(const copy_matrix *copy, const lilac_encoding *encoding, offsets *o,
                          uint32_t width_bits) {
    enum { CORE_ROW_BITS = 3 };
    uint32_t fastest = copy->order[0];
    for (uint32_t bit = 0; bit < width_bits; bit++) {
        if (encoding->as.nvmma_shared.fp4_padded && bit == 3) {
            o->columns[o->count++] = 0;
        }
        copy_matrix_bit(copy, o, bit);
    }
    for (uint32_t row = 0; row < copy->rows; row++) {
        copy_matrix_bit(copy, o, copy->columns + row);
        if (row < CORE_ROW_BITS) {
            o->columns[o->count - 1] |= swizzle_of_row(encoding, row) << o->start[fastest];
        }
    }
    for (uint32_t bit = width_bits; bit < copy->columns; bit++) {
        copy_matrix_bit(copy, o, bit);
    }
}

bool lilac_encoding_nvmma_shared_layout(lilac_context *context, lilac_layout *result,
                                        const lilac_encoding *encoding,
                                        const lilac_encoding_shape *shape) {
    uint32_t width = encoding->as.nvmma_shared.swizzling_byte_width, width_bits = COPY_BITS;
    offsets o;
    copy_matrix copy;
    offsets_init(&o, encoding, shape);
    if (width != 0) {
        width_bits = lilac_encoding_log2(8 * width / encoding->as.nvmma_shared.element_bits) -
                     encoding->as.nvmma_shared.fp4_padded;
    }
    copy_matrix_init(&copy, encoding, &o, width_bits);
    if (width != 0 && (copy.bits[copy.order[0]] < width_bits || copy.rows < 3)) {
        return lilac_encoding_refuse(
            context, encoding, "layout-shape",
            "one copy has %" PRIu64 " rows of %" PRIu64
            " elements; with this swizzle it has 8 rows of %" PRIu64 " at least",
            UINT64_C(1) << copy.rows, UINT64_C(1) << copy.bits[copy.order[0]],
            UINT64_C(1) << width_bits);
    }
    if (width != 0) {
        swizzled_copy(&copy, encoding, &o, width_bits);
    }
    for (uint32_t i = 0; width == 0 && i < encoding->rank; i++) {
        offsets_fill(&o, copy.order[i], COPY_BITS);
    }
    for (uint32_t d = 0; d < encoding->rank; d++) {
        offsets_fill(&o, d, UINT32_MAX);
    }
    return offsets_finish(context, result, encoding, &o);
}

/* ---- linear ----------------------------------------------------------------------------- */

static const char *const memory_inputs[] = {"offset", "block", "partition"};

bool lilac_encoding_shared_linear_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    const lilac_encoding_inputs inputs = {memory_inputs, 3, 2, true, true};
    lilac_scanner *s = r->scanner;
    if (!lilac_scanner_expect(s, '<') ||
        !lilac_encoding_read_map(r, encoding, &encoding->as.shared_linear.linear, &inputs)) {
        return false;
    }
    if (lilac_scanner_accept(s, ',') &&
        (!lilac_scanner_expect_word(s, "alignment") || !lilac_scanner_expect(s, '=') ||
         !lilac_encoding_read_size(r, NULL, &encoding->as.shared_linear.alignment))) {
        return false;
    }
    return lilac_scanner_expect(s, '>');
}

/* As Triton does, without an empty block at the end. */
void lilac_encoding_shared_linear_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_layout linear = encoding->as.shared_linear.linear;
    int block = lilac_layout_in(&linear, "block");
    if (block > 0 && block + 1 == linear.in_count && linear.in[block].bits == 0) {
        linear.in_count--;
    }
    lilac_text_char(out, '<');
    lilac_encoding_put_map(out, &linear);
    if (encoding->as.shared_linear.alignment != 0) {
        lilac_text_printf(out, ", alignment = %u", encoding->as.shared_linear.alignment);
    }
    lilac_text_char(out, '>');
}

bool lilac_encoding_shared_linear_layout(lilac_context *context, lilac_layout *result,
                                         const lilac_encoding *encoding,
                                         const lilac_encoding_shape *shape) {
    return lilac_encoding_of_shape(context, result, encoding, &encoding->as.shared_linear.linear,
                                   shape);
}

/* ---- padded ----------------------------------------------------------------------------- */

/* [64:+8, 512:+16] */
static bool read_paddings(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_scanner *s = r->scanner;
    uint32_t count = 0;
    if (!lilac_scanner_expect(s, '[')) {
        return false;
    }
    if (lilac_scanner_accept(s, ']')) {
        return true;
    }
    do {
        lilac_position position = lilac_scanner_position(s);
        if (count == LILAC_ENCODING_MAX_PADDINGS) {
            return lilac_scanner_refuse(r->scanner, position, "layout-padding",
                                        "more than %d paddings", LILAC_ENCODING_MAX_PADDINGS);
        }
        uint32_t *interval = &encoding->as.padded_shared.interval[count];
        if (!lilac_encoding_read_size(r, NULL, interval) || !lilac_scanner_expect(s, ':') ||
            !lilac_scanner_expect(s, '+') ||
            !lilac_encoding_read_size(r, NULL, &encoding->as.padded_shared.padding[count])) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (encoding->as.padded_shared.interval[i] == *interval) {
                return lilac_scanner_refuse(r->scanner, position, "layout-padding",
                                            "there is a padding after every %u already", *interval);
            }
        }
        encoding->as.padded_shared.count = ++count;
    } while (lilac_scanner_accept(s, ','));
    return lilac_scanner_expect(s, ']');
}

static bool layout_by_bases(lilac_encoding_reader *r, lilac_encoding *encoding,
                            const lilac_encoding_rank *rank, const lilac_encoding_bases *offset,
                            const lilac_encoding_bases *block) {
    const lilac_encoding_bases *lists[2] = {offset, block};
    lilac_layout *linear = &encoding->as.padded_shared.linear, inverse;
    lilac_reason why;
    if (!rank->known) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-rank",
                                    "a layout with no basis does not say its rank");
    }
    if (!lilac_encoding_bases_layout(linear, rank->rank, 2, memory_inputs, lists, &why)) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-too-large", "%s",
                                    why.text);
    }
    if (!lilac_layout_pseudoinvert(&inverse, linear, &why)) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-not-surjective", "%s",
                                    why.text);
    }
    return true;
}

static bool layout_by_order(lilac_encoding *encoding) {
    lilac_encoding_shape shape = {encoding->rank, {0}, 0};
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t start[LILAC_MAX_RANK], sum = 0, count = 0;
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.bits[d] = lilac_encoding_log2(encoding->as.padded_shared.shape[d]);
        start[d] = sum;
        sum += shape.bits[d];
    }
    if (sum > LILAC_LAYOUT_MAX_BITS) {
        return false;
    }
    for (uint32_t i = 0; i < shape.rank; i++) {
        uint32_t d = encoding->as.padded_shared.order[i];
        for (uint32_t bit = 0; bit < shape.bits[d]; bit++) {
            columns[count++] = UINT64_C(1) << (start[d] + bit);
        }
    }
    lilac_layout *linear = &encoding->as.padded_shared.linear;
    return lilac_encoding_outs(linear, &shape, NULL) &&
           lilac_layout_add_in(linear, "offset", count, columns, NULL) &&
           lilac_layout_add_in(linear, "block", 0, columns, NULL);
}

bool lilac_encoding_padded_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_bases offset, block;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_OPTIONAL("offset", lilac_encoding_read_mixed_bases, &offset),
        LILAC_ENCODING_OPTIONAL("block", lilac_encoding_read_mixed_bases, &block),
        LILAC_ENCODING_OPTIONAL("order", lilac_encoding_read_order,
                                encoding->as.padded_shared.order),
        LILAC_ENCODING_OPTIONAL("shape", lilac_encoding_read_sizes,
                                encoding->as.padded_shared.shape),
    };
    offset.count = block.count = 0;
    if (!lilac_scanner_expect(r->scanner, '<') || !read_paddings(r, encoding) ||
        !lilac_encoding_read_params(r, encoding->position, params, 4, &rank) ||
        !lilac_scanner_expect(r->scanner, '>')) {
        return false;
    }
    encoding->rank = rank.rank;
    bool by_order = params[2].given || params[3].given;
    encoding->as.padded_shared.by_order = by_order;
    if (by_order && (params[0].given || params[1].given)) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-two-forms",
                                    "'offset' and 'block' say the layout, or 'order' and "
                                    "'shape', not both");
    }
    if (by_order ? !params[2].given || !params[3].given : !params[0].given) {
        return lilac_scanner_refuse(
            r->scanner, encoding->position, "layout-field-missing", "this layout lacks '%s'",
            !by_order ? params[0].name : params[params[2].given ? 3 : 2].name);
    }
    if (!by_order) {
        return layout_by_bases(r, encoding, &rank, &offset, &block);
    }
    if (!layout_by_order(encoding)) {
        return lilac_scanner_refuse(r->scanner, params[3].position, "layout-too-large",
                                    "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
    }
    return true;
}

void lilac_encoding_padded_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_puts(out, "<[");
    for (uint32_t i = 0; i < encoding->as.padded_shared.count; i++) {
        lilac_text_printf(out, "%s%u:+%u", i == 0 ? "" : ", ",
                          encoding->as.padded_shared.interval[i],
                          encoding->as.padded_shared.padding[i]);
    }
    lilac_text_puts(out, "] ");
    if (encoding->as.padded_shared.by_order) {
        lilac_encoding_put_list(out, "{order = ", encoding->as.padded_shared.order, encoding->rank);
        lilac_encoding_put_list(out, ", shape = ", encoding->as.padded_shared.shape,
                                encoding->rank);
        lilac_text_char(out, '}');
    } else {
        lilac_encoding_put_map(out, &encoding->as.padded_shared.linear);
    }
    lilac_text_char(out, '>');
}

bool lilac_encoding_padded_shared_layout(lilac_context *context, lilac_layout *result,
                                         const lilac_encoding *encoding,
                                         const lilac_encoding_shape *shape) {
    return lilac_encoding_of_shape(context, result, encoding, &encoding->as.padded_shared.linear,
                                   shape);
}

/* ---- partitioned ------------------------------------------------------------------------ */

bool lilac_encoding_partitioned_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank none = {false, 0};
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("numPartitions", lilac_encoding_read_size,
                                &encoding->as.partitioned_shared.partitions),
        LILAC_ENCODING_REQUIRED("numGroups", lilac_encoding_read_size,
                                &encoding->as.partitioned_shared.groups),
        LILAC_ENCODING_REQUIRED("partitionDim", lilac_encoding_read_number,
                                &encoding->as.partitioned_shared.dim),
        LILAC_ENCODING_REQUIRED("partitionLayout", lilac_encoding_read_memory_parent,
                                &encoding->as.partitioned_shared.layout),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, 4, &none)) {
        return false;
    }
    const lilac_encoding *layout = encoding->as.partitioned_shared.layout;
    if (layout->kind == LILAC_ENCODING_PARTITIONED_SHARED) {
        return lilac_scanner_refuse(r->scanner, params[3].position, "layout-partition",
                                    "a partition is not partitioned again");
    }
    if (encoding->as.partitioned_shared.dim >= layout->rank) {
        return lilac_scanner_refuse(r->scanner, params[2].position, "layout-partition",
                                    "there is no dimension %u in a layout of rank %u",
                                    encoding->as.partitioned_shared.dim, layout->rank);
    }
    encoding->rank = layout->rank;
    return true;
}

void lilac_encoding_partitioned_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{numPartitions = %u, numGroups = %u, partitionDim = %u",
                      encoding->as.partitioned_shared.partitions,
                      encoding->as.partitioned_shared.groups, encoding->as.partitioned_shared.dim);
    lilac_text_puts(out, ", partitionLayout = ");
    lilac_encoding_print(out, encoding->as.partitioned_shared.layout);
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_partitioned_shared_layout(lilac_context *context, lilac_layout *result,
                                              const lilac_encoding *encoding,
                                              const lilac_encoding_shape *shape) {
    uint32_t dim = encoding->as.partitioned_shared.dim;
    uint32_t partitions = lilac_encoding_log2(encoding->as.partitioned_shared.partitions);
    uint32_t groups = lilac_encoding_log2(encoding->as.partitioned_shared.groups);
    if (shape->bits[dim] < partitions + groups) {
        return lilac_encoding_refuse(
            context, encoding, "layout-shape",
            "%" PRIu64 " pieces are more than the %" PRIu64 " elements along dimension %u",
            UINT64_C(1) << (partitions + groups), UINT64_C(1) << shape->bits[dim], dim);
    }
    lilac_encoding_shape piece = *shape;
    piece.bits[dim] -= partitions + groups;
    lilac_layout inner, partition, group;
    if (!lilac_encoding_layout_of(context, &inner, encoding->as.partitioned_shared.layout,
                                  &piece)) {
        return false;
    }
    lilac_layout_identity(&partition, partitions, "partition", lilac_encoding_dim_name(dim));
    lilac_layout_identity(&group, groups, "offset", lilac_encoding_dim_name(dim));
    if (!lilac_layout_product(&inner, &inner, &partition, NULL) ||
        !lilac_layout_product(result, &inner, &group, NULL)) {
        return too_large(context, encoding);
    }
    return true;
}
