/* encoding: named layouts become linear layouts of a shape, and text.
 *
 * Blocked (Proposition 4.6). Each of the three levels counts along the dimensions in `order`,
 * fastest first, and takes the next free bits of the dimension it counts along:
 *
 *     dim1 of 64, sizePerThread 4, threadsPerWarp 8, warpsPerCTA 2, two blocks along it
 *
 *         bit    5      4     3  2  1     0 …
 *              block   warp   l  l  l   r  r           too small a tile: registers go round on top
 *
 * A tile that is larger than the tensor holds copies: the bits above the tensor's are zero
 * columns. A smaller one is repeated by registers, dimensions in `order` again. The tensor that
 * the tile has to fill is what is left for one block; the blocks' bits stand above.
 *
 * Slice: the parent's layout of the shape with a 1 put in at `dim`, that dimension then removed.
 * Linear: the columns as they are; when it spreads over more than the tensor, coordinates are
 * taken modulo the shape, and registers that this makes copies are dropped.
 */
#include "internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *const level_names[3] = {"register", "lane", "warp"};

static bool refuse(lilac_context *context, const lilac_encoding *encoding, const char *id,
                   const char *format, ...) LILAC_PRINTF(4, 5);

static bool refuse(lilac_context *context, const lilac_encoding *encoding, const char *id,
                   const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(context, encoding->position, 0, id, format, arguments);
    va_end(arguments);
    return false;
}

static uint32_t log2_of(uint64_t power) {
    return (uint32_t)__builtin_ctzll(power);
}

static bool add_outs(lilac_layout *layout, uint32_t rank, const uint32_t *bits, lilac_reason *why) {
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < rank; d++) {
        char name[8] = "dim";
        name[3] = (char)(d < 10 ? '0' + d : '0' + d / 10);
        if (d >= 10)
            name[4] = (char)('0' + d % 10);
        if (!lilac_layout_add_out(layout, name, bits[d], why))
            return false;
    }
    return true;
}

/* ---- blocked ---------------------------------------------------------------------------- */

/* The columns of one level are gathered here before they become an input. */
typedef struct column_list {
    uint32_t count;
    uint64_t at[LILAC_LAYOUT_MAX_BITS];
} column_list;

/* Counts 2^bits steps along dimension `dim`, whose bits begin at `start`: of the bits that the
 * dimension has for one block, from `used` on; beyond them, copies. False when the list is full. */
static bool count_along(column_list *columns, uint32_t bits, uint32_t start, uint32_t *used,
                        uint32_t available) {
    for (uint32_t k = 0; k < bits; k++) {
        if (columns->count == LILAC_LAYOUT_MAX_BITS)
            return false;
        columns->at[columns->count++] = *used < available ? UINT64_C(1) << (start + *used) : 0;
        (*used)++;
    }
    return true;
}

/* Bits of each dimension that the blocks take, as the tensor allows. */
static void block_bits_of(uint32_t *taken, const lilac_encoding *encoding, const uint32_t *bits) {
    for (uint32_t d = 0; d < encoding->rank; d++) {
        uint32_t covered = 0;
        for (uint32_t k = 0; k < encoding->as.blocked.block_bits; k++)
            covered += encoding->as.blocked.block[k][d] != 0;
        taken[d] = covered < bits[d] ? covered : bits[d];
    }
}

static bool blocked_layout(lilac_context *context, lilac_layout *result,
                           const lilac_encoding *encoding, const uint32_t *bits) {
    uint32_t rank = encoding->rank;
    uint32_t start[LILAC_MAX_RANK], taken[LILAC_MAX_RANK], available[LILAC_MAX_RANK];
    uint32_t used[LILAC_MAX_RANK] = {0};
    block_bits_of(taken, encoding, bits);
    for (uint32_t d = 0, sum = 0; d < rank; sum += bits[d++]) {
        start[d] = sum;
        available[d] = bits[d] - taken[d];
    }

    column_list level[3] = {{0}, {0}, {0}}, block = {0};
    const uint32_t *const sizes[3] = {encoding->as.blocked.size_per_thread,
                                      encoding->as.blocked.threads_per_warp,
                                      encoding->as.blocked.warps_per_cta};
    bool fits = true;
    for (uint32_t l = 0; l < 3; l++) {
        for (uint32_t i = 0; i < rank; i++) {
            uint32_t d = encoding->as.blocked.order[i];
            fits = fits &&
                   count_along(&level[l], log2_of(sizes[l][d]), start[d], &used[d], available[d]);
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t d = encoding->as.blocked.order[i];
        uint32_t missing = used[d] < available[d] ? available[d] - used[d] : 0;
        fits = fits && count_along(&level[0], missing, start[d], &used[d], available[d]);
    }
    for (uint32_t k = 0; k < encoding->as.blocked.block_bits; k++) {
        uint64_t column = 0;
        for (uint32_t d = 0; d < rank; d++) {
            uint32_t step = encoding->as.blocked.block[k][d];
            if (step != 0 && log2_of(step) < taken[d])
                column = UINT64_C(1) << (start[d] + available[d] + log2_of(step));
        }
        block.at[block.count++] = column;
    }

    lilac_reason why = {""};
    bool added = fits && add_outs(result, rank, bits, &why);
    for (uint32_t l = 0; added && l < 3; l++)
        added = lilac_layout_add_in(result, level_names[l], level[l].count, level[l].at, &why);
    added = added && lilac_layout_add_in(result, "block", block.count, block.at, &why);
    if (!added)
        return refuse(context, encoding, "layout-too-large", "this layout has more than %d bits",
                      LILAC_LAYOUT_MAX_BITS);
    return true;
}

/* ---- linear ----------------------------------------------------------------------------- */

static bool linear_layout(lilac_context *context, lilac_layout *result,
                          const lilac_encoding *encoding, const uint32_t *bits) {
    const lilac_layout *linear = &encoding->as.linear;
    for (uint32_t d = 0; d < encoding->rank; d++) {
        if (linear->out[d].bits < bits[d])
            return refuse(context, encoding, "layout-does-not-cover",
                          "this layout covers %" PRIu64 " of the tensor's %" PRIu64
                          " elements along dimension %u",
                          UINT64_C(1) << linear->out[d].bits, UINT64_C(1) << bits[d], d);
    }
    lilac_layout made;
    bool added = add_outs(&made, encoding->rank, bits, NULL);
    uint32_t at = 0;
    for (uint32_t i = 0; added && i < linear->in_count; i++) {
        column_list columns = {0};
        for (uint32_t k = 0; k < linear->in[i].bits; k++, at++) {
            uint64_t place[LILAC_MAX_RANK];
            for (uint32_t d = 0; d < encoding->rank; d++) {
                place[d] = lilac_layout_coordinate(linear, linear->columns[at], d);
                if (bits[d] < 64)
                    place[d] &= (UINT64_C(1) << bits[d]) - 1;
            }
            uint64_t column = lilac_layout_pack(&made, place);
            bool copy = column == 0 && linear->columns[at] != 0;
            if (!copy || strcmp(linear->in[i].name, "register") != 0)
                columns.at[columns.count++] = column;
        }
        added = lilac_layout_add_in(&made, linear->in[i].name, columns.count, columns.at, NULL);
    }
    /* Nothing grew, so nothing can have become too large. */
    assert(added);
    if (added)
        *result = made;
    return added;
}

/* ---- any -------------------------------------------------------------------------------- */

static bool layout_of_bits(lilac_context *context, lilac_layout *result,
                           const lilac_encoding *encoding, const uint32_t *bits) {
    switch (encoding->kind) {
    case LILAC_ENCODING_BLOCKED:
        return blocked_layout(context, result, encoding, bits);
    case LILAC_ENCODING_LINEAR:
        return linear_layout(context, result, encoding, bits);
    case LILAC_ENCODING_SLICE:
        break;
    }
    /* A slice's own parents have one dimension more each. */
    uint32_t dim = encoding->as.slice.dim, padded[LILAC_MAX_RANK];
    assert(encoding->rank < LILAC_MAX_RANK);
    for (uint32_t d = 0; d <= encoding->rank; d++)
        padded[d] = d == dim ? 0 : bits[d - (d > dim)];
    if (!layout_of_bits(context, result, encoding->as.slice.parent, padded))
        return false;
    lilac_layout_slice(result, result, dim);
    return true;
}

bool lilac_encoding_check_shape(lilac_context *context, lilac_position position, uint32_t rank,
                                const int64_t *shape, uint32_t *bits) {
    uint32_t sum = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] <= 0 || (shape[d] & (shape[d] - 1)) != 0) {
            lilac_error(context, position, 0, "shape-not-power-of-two",
                        "dimension %u of the shape is %" PRId64 ", which is not a power of two", d,
                        shape[d]);
            return false;
        }
        bits[d] = log2_of((uint64_t)shape[d]);
        sum += bits[d];
    }
    if (sum > LILAC_LAYOUT_MAX_BITS) {
        lilac_error(context, position, 0, "shape-too-large",
                    "a tensor of 2^%u elements is larger than the largest, 2^%d", sum,
                    LILAC_LAYOUT_MAX_BITS);
        return false;
    }
    return true;
}

bool lilac_encoding_layout(lilac_context *context, lilac_layout *result,
                           const lilac_encoding *encoding, uint32_t rank, const int64_t *shape) {
    uint32_t bits[LILAC_MAX_RANK];
    if (encoding->rank != rank)
        return refuse(context, encoding, "layout-rank",
                      "this layout is of rank %u and the tensor of rank %u", encoding->rank, rank);
    lilac_layout made;
    if (!lilac_encoding_check_shape(context, encoding->position, rank, shape, bits) ||
        !layout_of_bits(context, &made, encoding, bits))
        return false;
    *result = made;
    return true;
}

void lilac_encoding_blocked(lilac_encoding *result, uint32_t rank, const uint32_t *size_per_thread,
                            const uint32_t *threads_per_warp, const uint32_t *warps_per_cta,
                            const uint32_t *order) {
    assert(rank <= LILAC_MAX_RANK);
    memset(result, 0, sizeof *result);
    result->kind = LILAC_ENCODING_BLOCKED;
    result->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        result->as.blocked.size_per_thread[d] = size_per_thread[d];
        result->as.blocked.threads_per_warp[d] = threads_per_warp[d];
        result->as.blocked.warps_per_cta[d] = warps_per_cta[d];
        result->as.blocked.order[d] = order[d];
    }
}

/* ---- text ------------------------------------------------------------------------------- */

static void put_list(lilac_text *out, const char *name, const uint32_t *values, uint32_t count) {
    lilac_text_puts(out, name);
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        if (i != 0)
            lilac_text_puts(out, ", ");
        lilac_text_unsigned(out, values[i]);
    }
    lilac_text_char(out, ']');
}

static void print_blocked(lilac_text *out, const lilac_encoding *encoding) {
    uint32_t rank = encoding->rank;
    put_list(out, "#ttg.blocked<{sizePerThread = ", encoding->as.blocked.size_per_thread, rank);
    put_list(out, ", threadsPerWarp = ", encoding->as.blocked.threads_per_warp, rank);
    put_list(out, ", warpsPerCTA = ", encoding->as.blocked.warps_per_cta, rank);
    put_list(out, ", order = ", encoding->as.blocked.order, rank);
    for (uint32_t k = 0; k < encoding->as.blocked.block_bits; k++)
        put_list(out, k == 0 ? ", CGALayout = [" : ", ", encoding->as.blocked.block[k], rank);
    lilac_text_puts(out, encoding->as.blocked.block_bits == 0 ? "}>" : "]}>");
}

void lilac_encoding_print(lilac_text *out, const lilac_encoding *encoding) {
    switch (encoding->kind) {
    case LILAC_ENCODING_BLOCKED:
        print_blocked(out, encoding);
        break;
    case LILAC_ENCODING_LINEAR:
        lilac_layout_print(out, &encoding->as.linear);
        break;
    case LILAC_ENCODING_SLICE:
        lilac_text_puts(out, "#ttg.slice<{dim = ");
        lilac_text_unsigned(out, encoding->as.slice.dim);
        lilac_text_puts(out, ", parent = ");
        lilac_encoding_print(out, encoding->as.slice.parent);
        lilac_text_puts(out, "}>");
        break;
    }
}
