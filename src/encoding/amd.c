/* encoding: AMD's matrix unit of 64 lanes (#ttg.amd_mfma) with its operands, rotating shared
 * memory (wmma, of 32 lanes, is in amd_wmma.c).
 *
 * A result tile of an instruction lies on a wave like this; `along` is M and `across` is N, and the
 * other way round when it is transposed (the instruction then computes the transpose):
 *
 *     along    … r r  l l … (lanes that are left)  r r (4 elements)
 *     across   l l l l …    (lanes for all of the tile's)
 *
 * An operand's tile has kWidth elements of K in a lane, then its other dimension on lanes, then K
 * on the lanes that are left. Tiles go round a wave (tilesPerWarp), then waves (warpsPerCTA, whose
 * last dimension is the fastest), then registers again; an operand's waves along K hold copies.
 *
 * Rotating shared memory is swizzled shared memory whose phase is xored with the number of the
 * group of perPhase × maxPhase rows that a row is in, modulo maxPhase. Offsets count the tensor of
 * all blocks: as in Triton, an offset bit that leads to another block's part moves nothing. (A
 * tensor of one dimension has no such bits.)
 */
#include "matrix.h"

#include <string.h>

enum { MFMA_LANE_BITS = 6 };

/* ---- mfma ------------------------------------------------------------------------------- */

enum {
    MFMA_VERSION,
    MFMA_WARPS,
    MFMA_SHAPE,
    MFMA_TRANSPOSED,
    MFMA_BLOCKS,
    MFMA_TILES,
    MFMA_ELEMENT,
    MFMA_FIELDS
};

static bool check_mfma_shape(const lilac_encoding *encoding, lilac_encoding_fault *fault) {
    static const uint32_t known[][2] = {{32, 32}, {16, 16}, {64, 4}, {4, 64}};
    const uint32_t *shape = encoding->as.amd_mfma.instr_shape;
    uint32_t i = 0, count = sizeof known / sizeof known[0];
    while (i < count && memcmp(known[i], shape, sizeof known[i]) != 0) {
        i++;
    }
    if (i == count) {
        return lilac_encoding_find_fault(fault, MFMA_SHAPE, "layout-instruction-shape",
                                         "there is no mfma instruction %ux%u, only 32x32, 16x16, "
                                         "64x4 and 4x64",
                                         shape[0], shape[1]);
    }
    if (shape[0] == 64 && !encoding->as.amd_mfma.transposed) {
        return lilac_encoding_find_fault(fault, MFMA_SHAPE, "layout-instruction-shape",
                                         "mfma 64x4 is there with isTransposed = true only");
    }
    return true;
}

static bool check_mfma(const lilac_encoding *encoding, lilac_encoding_fault *fault) {
    uint32_t version = encoding->as.amd_mfma.version;
    uint32_t bits = encoding->as.amd_mfma.element_bits;
    if (!lilac_encoding_is_matrix(encoding, fault)) {
        return false;
    }
    if (version < 1 || version > 4) {
        return lilac_encoding_find_fault(fault, MFMA_VERSION, "layout-version",
                                         "there is no mfma version %u, only 1 to 4", version);
    }
    if (bits != 0 && bits != 64) {
        return lilac_encoding_find_fault(fault, MFMA_ELEMENT, "layout-element-width",
                                         "mfma has results of 32 and 64 bits, not %u", bits);
    }
    return check_mfma_shape(encoding, fault);
}

bool lilac_encoding_amd_mfma_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_list shape = {0, {0}};
    uint32_t element_bits = 32;
    lilac_encoding_param params[MFMA_FIELDS] = {
        LILAC_ENCODING_REQUIRED("version", lilac_encoding_read_number,
                                &encoding->as.amd_mfma.version),
        LILAC_ENCODING_REQUIRED("warpsPerCTA", lilac_encoding_read_sizes,
                                encoding->as.amd_mfma.warps_per_cta),
        LILAC_ENCODING_REQUIRED("instrShape", lilac_encoding_read_sizes_of_any_rank, &shape),
        LILAC_ENCODING_OPTIONAL("isTransposed", lilac_encoding_read_flag,
                                &encoding->as.amd_mfma.transposed),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
        LILAC_ENCODING_OPTIONAL("tilesPerWarp", lilac_encoding_read_sizes,
                                encoding->as.amd_mfma.tiles_per_warp),
        LILAC_ENCODING_OPTIONAL("elementBitWidth", lilac_encoding_read_number, &element_bits),
    };
    lilac_encoding_fill_ones(encoding->as.amd_mfma.tiles_per_warp);
    if (!lilac_encoding_read_attribute(r, encoding->position, params,
                                       sizeof params / sizeof params[0], &rank)) {
        return false;
    }
    encoding->rank = rank.rank;
    encoding->as.amd_mfma.element_bits = element_bits == 32 ? 0 : element_bits;
    memcpy(encoding->as.amd_mfma.instr_shape, shape.at, sizeof encoding->as.amd_mfma.instr_shape);
    lilac_encoding_fault fault;
    bool right = shape.count == 3
                     ? check_mfma(encoding, &fault)
                     : lilac_encoding_find_fault(
                           &fault, MFMA_SHAPE, "layout-instruction-shape",
                           "an instruction's shape is [m, n, k], not %u sizes", shape.count);
    return right || lilac_encoding_refuse_fault(r, encoding, params, &fault);
}

bool lilac_encoding_amd_mfma(lilac_encoding *result, uint32_t rank, uint32_t version,
                             const uint32_t *instr_shape, bool transposed, uint32_t element_bits,
                             const uint32_t *warps_per_cta, lilac_reason *why) {
    lilac_encoding made;
    lilac_encoding_fault fault;
    lilac_encoding_begin(&made, LILAC_ENCODING_AMD_MFMA, rank);
    made.as.amd_mfma.version = version;
    made.as.amd_mfma.transposed = transposed;
    made.as.amd_mfma.element_bits = element_bits == 32 ? 0 : element_bits;
    memcpy(made.as.amd_mfma.instr_shape, instr_shape, sizeof made.as.amd_mfma.instr_shape);
    memcpy(made.as.amd_mfma.warps_per_cta, warps_per_cta, rank * sizeof *warps_per_cta);
    lilac_encoding_fill_ones(made.as.amd_mfma.tiles_per_warp);
    return lilac_encoding_give(result, &made, check_mfma(&made, &fault) ? NULL : &fault, why);
}

void lilac_encoding_amd_mfma_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{version = %u", encoding->as.amd_mfma.version);
    lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.amd_mfma.warps_per_cta,
                            encoding->rank);
    lilac_encoding_put_list(out, ", instrShape = ", encoding->as.amd_mfma.instr_shape, 3);
    lilac_text_puts(out, encoding->as.amd_mfma.transposed ? ", isTransposed = true"
                                                          : ", isTransposed = false");
    lilac_encoding_put_blocks(out, encoding);
    if (!lilac_encoding_all_ones(encoding->as.amd_mfma.tiles_per_warp, encoding->rank)) {
        lilac_encoding_put_list(out, ", tilesPerWarp = ", encoding->as.amd_mfma.tiles_per_warp,
                                encoding->rank);
    }
    if (encoding->as.amd_mfma.element_bits == 64) {
        lilac_text_puts(out, ", elementBitWidth = 64");
    }
    lilac_text_puts(out, "}>");
}

bool lilac_encoding_amd_mfma_layout(lilac_context *context, lilac_layout *result,
                                    const lilac_encoding *encoding,
                                    const lilac_encoding_shape *shape) {
    bool transposed = encoding->as.amd_mfma.transposed;
    uint32_t m = encoding->rank - 2, n = encoding->rank - 1;
    uint32_t along = transposed ? n : m, across = transposed ? m : n;
    uint32_t along_bits = lilac_encoding_log2(encoding->as.amd_mfma.instr_shape[transposed]);
    uint32_t across_bits = lilac_encoding_log2(encoding->as.amd_mfma.instr_shape[!transposed]);
    uint32_t vector_bits = encoding->as.amd_mfma.element_bits == 64 ? 0 : 2;
    uint32_t left = MFMA_LANE_BITS - across_bits; /* lanes for the dimension along */
    uint32_t order[LILAC_MAX_RANK];
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, encoding->rank);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along, vector_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, across, across_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, along, left);
    if (along_bits > vector_bits + left) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along,
                                 along_bits - vector_bits - left);
    }
    lilac_encoding_amd_result(&tile, encoding->as.amd_mfma.tiles_per_warp,
                              encoding->as.amd_mfma.warps_per_cta, shape);
    lilac_encoding_result_order(order, encoding->rank);
    return lilac_encoding_tile_fit(context, result, encoding, &tile, shape, order,
                                   &encoding->blocks);
}

/* The side of 64 of mfma 64x4 and 4x64 meets 16 times the K that the side of 4 has in a lane: the
 * instruction is 16 independent products. */
bool lilac_encoding_amd_mfma_dot_layout(lilac_context *context, lilac_layout *result,
                                        const lilac_encoding *dot,
                                        const lilac_encoding_shape *shape) {
    const lilac_encoding *parent = dot->as.dot.parent;
    uint32_t order[LILAC_MAX_RANK];
    lilac_encoding_operand_order(order, dot);
    uint32_t k = order[0], other = order[1];
    uint32_t other_bits = lilac_encoding_log2(parent->as.amd_mfma.instr_shape[dot->as.dot.operand]);
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, dot->rank);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k,
                             lilac_encoding_log2(dot->as.dot.k_width));
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, other, other_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, k, MFMA_LANE_BITS - other_bits);
    if (other_bits == MFMA_LANE_BITS) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, 4);
    }
    lilac_encoding_tile_cover(&tile, k, shape, 0);
    lilac_encoding_amd_operand(&tile, order, parent->as.amd_mfma.tiles_per_warp,
                               parent->as.amd_mfma.warps_per_cta);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &parent->blocks);
}

/* ---- rotating shared memory ------------------------------------------------------------- */

/* Written with the parameters of swizzled memory. */
bool lilac_encoding_amd_rotating_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    return lilac_encoding_swizzled_shared_read(r, encoding);
}

void lilac_encoding_amd_rotating_shared(lilac_encoding *result, uint32_t rank, uint32_t vec,
                                        uint32_t per_phase, uint32_t max_phase,
                                        const uint32_t *order) {
    lilac_encoding_begin(result, LILAC_ENCODING_AMD_ROTATING_SHARED, rank);
    result->as.swizzled.vec = vec;
    result->as.swizzled.per_phase = per_phase;
    result->as.swizzled.max_phase = max_phase;
    memcpy(result->as.swizzled.order, order, rank * sizeof *order);
}

void lilac_encoding_amd_rotating_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_encoding_swizzled_shared_print(out, encoding);
}

/* By how many elements a row, a power of two, is rotated. All sizes are powers of two, so its phase
 * and the number of its group of rows are powers of two or 0. */
static uint64_t rotation(const lilac_encoding *encoding, uint64_t row) {
    uint64_t per_phase = encoding->as.swizzled.per_phase;
    uint64_t max_phase = encoding->as.swizzled.max_phase;
    uint64_t phase = row / per_phase % max_phase;
    uint64_t group = row / per_phase / max_phase % max_phase;
    return encoding->as.swizzled.vec * (phase ^ group);
}

bool lilac_encoding_amd_rotating_shared_layout(lilac_context *context, lilac_layout *result,
                                               const lilac_encoding *encoding,
                                               const lilac_encoding_shape *shape) {
    uint32_t taken[LILAC_MAX_RANK], start[LILAC_MAX_RANK], bits = 0;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], blocks[LILAC_ENCODING_MAX_BLOCK_BITS];
    const uint32_t *order = encoding->as.swizzled.order;
    lilac_layout made;
    lilac_encoding_block_bits(taken, &encoding->blocks, shape);
    for (uint32_t d = 0, sum = 0; d < shape->rank; sum += shape->bits[d++]) {
        start[d] = sum;
    }
    bool added = lilac_encoding_outs(&made, shape, NULL);
    for (uint32_t i = 0; added && i < shape->rank; i++) {
        uint32_t d = order[i];
        uint32_t available = shape->bits[d] - taken[d];
        for (uint32_t b = 0; b < (shape->rank == 1 ? available : shape->bits[d]); b++) {
            bool other_block = b >= available;
            columns[bits] = other_block ? 0 : UINT64_C(1) << (start[d] + b);
            if (i == 1) {
                uint64_t cells = UINT64_C(1) << (shape->bits[order[0]] - taken[order[0]]);
                columns[bits] |= (rotation(encoding, UINT64_C(1) << b) & (cells - 1))
                                 << start[order[0]];
            }
            bits++;
        }
    }
    lilac_encoding_block_columns(blocks, &encoding->blocks, shape);
    added = added && lilac_layout_add_in(&made, "offset", bits, columns, NULL) &&
            lilac_layout_add_in(&made, "block", encoding->blocks.bits, blocks, NULL);
    if (!added) {
        return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                     "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
    }
    *result = made;
    return true;
}
