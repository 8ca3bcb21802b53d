/* encoding: results and operands of NVIDIA's matrix instructions.
 *
 * A tile of `rows` × `columns` with k consecutive columns a register (section 9.1):
 *
 *     columns:  k registers, 4 lanes, …             then more registers
 *     rows:     8 lanes, then registers: rows / 8
 *
 *     version 2, 16 × 8                        version 3 has the same tile, 16 × n
 *         lane  0: (0,0) (0,1) (8,0) (8,1)
 *         lane  1: (0,2) …
 *         lane  4: (1,0) …
 *
 * Results have k = 2; in operands K lies along the columns of A and, seen from the other side,
 * along the rows of B, with k = kWidth. A tile is 8k long in K, or 4k for the f64 instruction of 8
 * rows. Warps are counted along N first in version 2 and along M first in version 3, and hold
 * copies along K. Registers then go round, the last dimension first, and in operands K first.
 */
#include "internal.h"

#include <string.h>

bool lilac_encoding_nvidia_mma_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_list instr;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_REQUIRED("versionMajor", lilac_encoding_read_number,
                                &encoding->as.nvidia_mma.version_major),
        LILAC_ENCODING_REQUIRED("versionMinor", lilac_encoding_read_number,
                                &encoding->as.nvidia_mma.version_minor),
        LILAC_ENCODING_REQUIRED("warpsPerCTA", lilac_encoding_read_sizes,
                                encoding->as.nvidia_mma.warps_per_cta),
        LILAC_ENCODING_REQUIRED("instrShape", lilac_encoding_read_sizes_of_any_rank, &instr),
        LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params, 5, &rank)) {
        return false;
    }
    uint32_t version = encoding->as.nvidia_mma.version_major;
    if (version != 2 && version != 3) {
        return lilac_scanner_refuse(r->scanner, params[0].position, "layout-version",
                                    "layouts of matrix instructions of version %u are not "
                                    "supported, only 2 and 3",
                                    version);
    }
    if (rank.rank < 2) {
        return lilac_scanner_refuse(r->scanner, params[2].position, "layout-rank",
                                    "the result of a matrix instruction has two dimensions at "
                                    "least");
    }
    bool hopper = version == 3;
    bool fits = hopper ? rank.rank == 2 && instr.count == 3 && instr.at[0] == 16 && instr.at[1] >= 8
                       : instr.count == rank.rank && instr.at[rank.rank - 2] >= 8 &&
                             instr.at[rank.rank - 1] >= 8;
    for (uint32_t d = 0; !hopper && fits && d + 2 < rank.rank; d++) {
        fits = instr.at[d] == 1;
    }
    if (!fits) {
        return lilac_scanner_refuse(
            r->scanner, params[3].position, "layout-instruction-shape",
            hopper ? "an instruction of version 3 has the shape [16, n, k], n at least 8, and two "
                     "dimensions"
                   : "an instruction of version 2 has the shape […, 1, m, n], m and n at least 8, "
                     "of the rank of warpsPerCTA");
    }
    encoding->rank = rank.rank;
    encoding->as.nvidia_mma.instr_rank = instr.count;
    memcpy(encoding->as.nvidia_mma.instr_shape, instr.at, instr.count * sizeof instr.at[0]);
    return true;
}

void lilac_encoding_nvidia_mma_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{versionMajor = %u, versionMinor = %u",
                      encoding->as.nvidia_mma.version_major, encoding->as.nvidia_mma.version_minor);
    lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.nvidia_mma.warps_per_cta,
                            encoding->rank);
    lilac_encoding_put_blocks(out, encoding);
    lilac_encoding_put_list(out, ", instrShape = ", encoding->as.nvidia_mma.instr_shape,
                            encoding->as.nvidia_mma.instr_rank);
    lilac_text_puts(out, "}>");
}

/* rows × columns of the dimensions `outer` and `inner`, log2. */
static void matrix_tile(lilac_encoding_tile *tile, uint32_t outer, uint32_t rows, uint32_t inner,
                        uint32_t columns, uint32_t k) {
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, inner, k);
    lilac_encoding_tile_step(tile, LILAC_ENCODING_LANE, inner, 2);
    lilac_encoding_tile_step(tile, LILAC_ENCODING_LANE, outer, 3);
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, outer, rows - 3);
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, inner, columns - k - 2);
}

/* The last dimension first, or the last but one and then the last and then the others. */
static void matrix_order(uint32_t *order, uint32_t rank, bool row_major) {
    for (uint32_t i = 0; i < rank; i++) {
        order[i] = rank - 1 - i;
    }
    if (!row_major) {
        order[0] = rank - 2;
        order[1] = rank - 1;
    }
}

bool lilac_encoding_nvidia_mma_layout(lilac_context *context, lilac_layout *result,
                                      const lilac_encoding *encoding,
                                      const lilac_encoding_shape *shape) {
    uint32_t rank = encoding->rank, order[LILAC_MAX_RANK], warp_order[LILAC_MAX_RANK];
    bool hopper = encoding->as.nvidia_mma.version_major == 3;
    const uint32_t *instr = encoding->as.nvidia_mma.instr_shape + (hopper ? 0 : rank - 2);
    matrix_order(order, rank, true);
    matrix_order(warp_order, rank, !hopper);
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, rank);
    matrix_tile(&tile, rank - 2, lilac_encoding_log2(instr[0]), rank - 1,
                lilac_encoding_log2(instr[1]), 1);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, encoding->as.nvidia_mma.warps_per_cta,
                              warp_order, -1);
    return lilac_encoding_tile_fit(context, result, encoding, &tile, shape, order,
                                   &encoding->blocks);
}

bool lilac_encoding_nvidia_mma_dot_layout(lilac_context *context, lilac_layout *result,
                                          const lilac_encoding *dot,
                                          const lilac_encoding_shape *shape) {
    const lilac_encoding *parent = dot->as.dot.parent;
    uint32_t rank = dot->rank, order[LILAC_MAX_RANK], warp_order[LILAC_MAX_RANK];
    bool hopper = parent->as.nvidia_mma.version_major == 3, is_a = dot->as.dot.operand == 0;
    if (hopper && !is_a) {
        return lilac_encoding_refuse(context, dot, "layout-dot-operand",
                                     "operand 1 of a version 3 instruction is read from shared "
                                     "memory and has no layout in registers");
    }
    const uint32_t *instr = parent->as.nvidia_mma.instr_shape + (hopper ? 0 : rank - 2);
    uint32_t k_dim = lilac_encoding_dot_k(dot), other = is_a ? rank - 2 : rank - 1;
    uint32_t k = lilac_encoding_log2(dot->as.dot.k_width);
    bool native_f64 = instr[0] == 8;
    matrix_order(order, rank, is_a);
    matrix_order(warp_order, rank, !hopper);
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, rank);
    matrix_tile(&tile, other, is_a ? lilac_encoding_log2(instr[0]) : 3, k_dim,
                k + (native_f64 ? 2 : 3), k);
    lilac_encoding_tile_sizes(&tile, LILAC_ENCODING_WARP, parent->as.nvidia_mma.warps_per_cta,
                              warp_order, (int)k_dim);
    lilac_encoding_blocks blocks;
    lilac_encoding_dot_blocks(&blocks, dot);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &blocks);
}
