/* encoding: blocked layouts, their slices, and their dot operands.
 *
 * Blocked (Proposition 4.6): each of the three levels counts along the dimensions in `order`,
 * fastest first.
 *
 * Slice: the parent's layout of the shape with a 1 put in at `dim`, that dimension then removed.
 *
 * Dot operand of a blocked parent: every thread holds all of K, so registers take K whole, and the
 * lanes and warps along it hold copies.
 */
#include "internal.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- blocked ---------------------------------------------------------------------------- */

bool lilac_encoding_blocked_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("sizePerThread", lilac_encoding_read_sizes,
                                encoding->as.blocked.size_per_thread),
        LILAC_ENCODING_REQUIRED("threadsPerWarp", lilac_encoding_read_sizes,
                                encoding->as.blocked.threads_per_warp),
        LILAC_ENCODING_REQUIRED("warpsPerCTA", lilac_encoding_read_sizes,
                                encoding->as.blocked.warps_per_cta),
        LILAC_ENCODING_REQUIRED("order", lilac_encoding_read_order, encoding->as.blocked.order),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
    };
    bool good = lilac_encoding_read_attribute(r, encoding->position, params, 5, &rank);
    encoding->rank = rank.rank;
    return good;
}

void lilac_encoding_blocked_print(lilac_text *out, const lilac_encoding *encoding) {
    uint32_t rank = encoding->rank;
    lilac_encoding_put_list(out, "<{sizePerThread = ", encoding->as.blocked.size_per_thread, rank);
    lilac_encoding_put_list(out, ", threadsPerWarp = ", encoding->as.blocked.threads_per_warp,
                            rank);
    lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.blocked.warps_per_cta, rank);
    lilac_encoding_put_list(out, ", order = ", encoding->as.blocked.order, rank);
    lilac_encoding_put_blocks(out, encoding);
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_blocked_layout(lilac_context *context, lilac_layout *result,
                                   const lilac_encoding *encoding,
                                   const lilac_encoding_shape *shape) {
    const uint32_t *order = encoding->as.blocked.order;
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, encoding->rank);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_REGISTER, encoding->as.blocked.size_per_thread,
                              order, -1);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_LANE, encoding->as.blocked.threads_per_warp,
                              order, -1);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, encoding->as.blocked.warps_per_cta, order,
                              -1);
    return lilac_encoding_tile_fit(context, result, encoding, &tile, shape, order,
                                   &encoding->blocks);
}

bool lilac_encoding_blocked_dot_layout(lilac_context *context, lilac_layout *result,
                                       const lilac_encoding *dot,
                                       const lilac_encoding_shape *shape) {
    const lilac_encoding *parent = dot->as.dot.parent;
    const uint32_t *order = parent->as.blocked.order;
    uint32_t k = lilac_encoding_dot_k(dot), sizes[LILAC_MAX_RANK];
    lilac_encoding_blocks blocks;
    lilac_encoding_dot_blocks(&blocks, dot);
    memcpy(sizes, parent->as.blocked.size_per_thread, sizeof sizes);

    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, dot->rank);
    for (uint32_t i = 0; i < dot->rank; i++) {
        uint32_t d = order[i];
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, d,
                                 d == k ? shape->bits[k] : lilac_encoding_log2(sizes[d]));
    }
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_LANE, parent->as.blocked.threads_per_warp,
                              order, (int)k);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, parent->as.blocked.warps_per_cta, order,
                              (int)k);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &blocks);
}

/* ---- slice ------------------------------------------------------------------------------ */

static bool read_dim(lilac_encoding_reader *r, lilac_encoding_rank *rank, void *into) {
    (void)rank;
    uint64_t dim;
    if (!lilac_encoding_read_natural(r, &dim, LILAC_MAX_RANK - 1, "layout-slice-dim")) {
        return false;
    }
    *(uint32_t *)into = (uint32_t)dim;
    return true;
}

bool lilac_encoding_slice_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank none = {false, 0};
    uint32_t dim = 0;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("dim", read_dim, &dim),
        LILAC_ENCODING_REQUIRED("parent", lilac_encoding_read_parent, &encoding->as.slice.parent),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, 2, &none)) {
        return false;
    }
    uint32_t rank = encoding->as.slice.parent->rank;
    if (dim >= rank) {
        return lilac_scanner_refuse(r->scanner, params[0].position, "layout-slice-dim",
                                    "there is no dimension %u in a layout of rank %u", dim, rank);
    }
    encoding->as.slice.dim = dim;
    encoding->rank = rank - 1;
    return true;
}

void lilac_encoding_slice_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_puts(out, "<{dim = ");
    lilac_text_unsigned(out, encoding->as.slice.dim);
    lilac_text_puts(out, ", parent = ");
    lilac_encoding_print(out, encoding->as.slice.parent);
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_slice_layout(lilac_context *context, lilac_layout *result,
                                 const lilac_encoding *encoding,
                                 const lilac_encoding_shape *shape) {
    /* A slice's own parents have one dimension more each. */
    uint32_t dim = encoding->as.slice.dim;
    lilac_encoding_shape padded = {encoding->rank + 1, {0}, shape->element_bits};
    assert(encoding->rank < LILAC_MAX_RANK);
    for (uint32_t d = 0; d <= encoding->rank; d++) {
        padded.bits[d] = d == dim ? 0 : shape->bits[d - (d > dim)];
    }
    if (!lilac_encoding_layout_of(context, result, encoding->as.slice.parent, &padded)) {
        return false;
    }
    lilac_layout_slice(result, result, dim);
    return true;
}
