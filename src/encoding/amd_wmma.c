/* encoding: AMD's matrix unit of 32 lanes (#ttg.amd_wmma) with its operands.
 *
 * A result tile lies on a wave like this (`along` and `across` as in amd.c), an operand's as
 * mfma's, except that in version 1 the two halves of a wave hold the same K:
 *
 *                       along        across
 *     version 1         r r r l      l l l l
 *     versions 2, 3     l r r r      l l l l       (32 rows: one register more on top)
 *
 * Triton's main branch writes the tiles and waves as a linear layout in units of tiles, ctaLayout.
 * It lists all of a wave's tiles before any further registers, where 3.6 finishes the fastest
 * dimension first, and does not split K over blocks, where 3.6 splits it as the parent does; both
 * are kept to the bit.
 */
#include "matrix.h"

#include <inttypes.h>
#include <string.h>

enum { WMMA_LANE_BITS = 5, WMMA_TILE_BITS = 4 };

/* ---- reading ---------------------------------------------------------------------------- */

/* The bases of a ctaLayout, in units of tiles. */
typedef struct cta_layout {
    lilac_encoding_bases registers, warps;
} cta_layout;

static bool read_cta_layout(lilac_encoding_reader *r, lilac_encoding_rank *rank, void *into) {
    cta_layout *cta = into;
    lilac_encoding_param params[] = {
        LILAC_ENCODING_OPTIONAL("register", lilac_encoding_read_mixed_bases, &cta->registers),
        LILAC_ENCODING_REQUIRED("warp", lilac_encoding_read_mixed_bases, &cta->warps),
    };
    lilac_position position = lilac_scanner_position(r->scanner);
    cta->registers.count = cta->warps.count = 0;
    return lilac_encoding_read_params(r, position, params, 2, rank);
}

/* Any map onto the tiles; a basis may move along several dimensions at once. */
static bool build_cta_layout(lilac_encoding_reader *r, lilac_position position,
                             lilac_encoding *encoding, const cta_layout *cta) {
    static const char *const names[] = {"register", "warp"};
    const lilac_encoding_bases *const lists[] = {&cta->registers, &cta->warps};
    lilac_layout *layout = &encoding->as.amd_wmma.cta, inverse;
    lilac_reason why;
    if (!lilac_encoding_bases_layout(layout, encoding->rank, 2, names, lists, &why)) {
        return lilac_scanner_refuse(r->scanner, position, "layout-too-large", "%s", why.text);
    }
    if (!lilac_layout_pseudoinvert(&inverse, layout, &why)) {
        return lilac_scanner_refuse(r->scanner, position, "layout-not-surjective", "%s", why.text);
    }
    return true;
}

enum { VERSION, RANK, TRANSPOSE, CTA, WARPS, TILES, BLOCKS, SHAPE, FIELDS };

/* The instructions of a version; those of 32 rows came after 3.6, with ctaLayout. */
static bool check_wmma(const lilac_encoding *encoding, lilac_encoding_fault *fault) {
    static const uint32_t known[][4] = {{1, 16, 16, 16},  {2, 16, 16, 16}, {2, 16, 16, 32},
                                        {3, 16, 16, 4},   {3, 16, 16, 32}, {3, 16, 16, 64},
                                        {3, 16, 16, 128}, {3, 32, 16, 128}};
    const uint32_t *shape = encoding->as.amd_wmma.instr_shape;
    uint32_t version = encoding->as.amd_wmma.version;
    if (!lilac_encoding_is_matrix(encoding, fault)) {
        return false;
    }
    if (version < 1 || version > 3) {
        return lilac_encoding_find_fault(fault, VERSION, "layout-version",
                                         "there is no wmma version %u, only 1 to 3", version);
    }
    for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i][0] == version && memcmp(&known[i][1], shape, 3 * sizeof *shape) == 0 &&
            (known[i][1] == 16 || encoding->as.amd_wmma.by_layout)) {
            return true;
        }
    }
    return lilac_encoding_find_fault(fault, SHAPE, "layout-instruction-shape",
                                     "there is no instruction %ux%ux%u in wmma version %u",
                                     shape[0], shape[1], shape[2], version);
}

/* The rank is that of the lists, or the one that is said, or 2. */
static bool settle_rank(lilac_encoding_reader *r, lilac_encoding *encoding,
                        const lilac_encoding_rank *lists, const lilac_encoding_param *said) {
    uint32_t rank = *(const uint32_t *)said->into;
    if (said->given && lists->known && rank != lists->rank) {
        return lilac_scanner_refuse(r->scanner, said->position, "layout-rank",
                                    "the rank is said to be %u, but lists have %u entries", rank,
                                    lists->rank);
    }
    encoding->rank = lists->known ? lists->rank : said->given ? rank : 2;
    return true;
}

bool lilac_encoding_amd_wmma_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank lists = {false, 0};
    lilac_encoding_list shape = {3, {16, 16, 16}};
    uint32_t rank = 2;
    cta_layout cta;
    lilac_encoding_param params[FIELDS] = {
        [VERSION] = LILAC_ENCODING_REQUIRED("version", lilac_encoding_read_number,
                                            &encoding->as.amd_wmma.version),
        [RANK] = LILAC_ENCODING_OPTIONAL("rank", lilac_encoding_read_number, &rank),
        [TRANSPOSE] = LILAC_ENCODING_OPTIONAL("isTranspose", lilac_encoding_read_flag,
                                              &encoding->as.amd_wmma.transposed),
        [CTA] = LILAC_ENCODING_OPTIONAL("ctaLayout", read_cta_layout, &cta),
        [WARPS] = LILAC_ENCODING_OPTIONAL("warpsPerCTA", lilac_encoding_read_sizes,
                                          encoding->as.amd_wmma.warps_per_cta),
        [TILES] = LILAC_ENCODING_OPTIONAL("tilesPerWarp", lilac_encoding_read_sizes,
                                          encoding->as.amd_wmma.tiles_per_warp),
        [BLOCKS] =
            LILAC_ENCODING_OPTIONAL("CGALayout", lilac_encoding_read_blocks, &encoding->blocks),
        [SHAPE] =
            LILAC_ENCODING_OPTIONAL("instrShape", lilac_encoding_read_sizes_of_any_rank, &shape),
    };
    lilac_encoding_fill_ones(encoding->as.amd_wmma.warps_per_cta);
    lilac_encoding_fill_ones(encoding->as.amd_wmma.tiles_per_warp);
    if (!lilac_encoding_read_attribute(r, encoding->position, params, FIELDS, &lists)) {
        return false;
    }
    bool by_layout = params[CTA].given;
    if (!by_layout && !params[WARPS].given) {
        return lilac_scanner_refuse(r->scanner, encoding->position, "layout-field-missing",
                                    "this layout lacks 'ctaLayout' or 'warpsPerCTA'");
    }
    if (by_layout && (params[WARPS].given || params[TILES].given)) {
        return lilac_scanner_refuse(
            r->scanner, params[params[WARPS].given ? WARPS : TILES].position, "layout-field-twice",
            "'ctaLayout' says where waves and their tiles are already");
    }
    if (!settle_rank(r, encoding, &lists, &params[RANK])) {
        return false;
    }
    lilac_encoding_fault fault;
    encoding->as.amd_wmma.by_layout = by_layout;
    memcpy(encoding->as.amd_wmma.instr_shape, shape.at, sizeof encoding->as.amd_wmma.instr_shape);
    bool right = shape.count == 3
                     ? check_wmma(encoding, &fault)
                     : lilac_encoding_find_fault(
                           &fault, SHAPE, "layout-instruction-shape",
                           "an instruction's shape is [m, n, k], not %u sizes", shape.count);
    if (!right) {
        return lilac_encoding_refuse_fault(r, encoding, params, &fault);
    }
    return !by_layout || build_cta_layout(r, params[CTA].position, encoding, &cta);
}

bool lilac_encoding_amd_wmma(lilac_encoding *result, uint32_t rank, uint32_t version,
                             const uint32_t *instr_shape, bool transposed,
                             const uint32_t *warps_per_cta, lilac_reason *why) {
    lilac_encoding made;
    lilac_encoding_fault fault;
    lilac_encoding_begin(&made, LILAC_ENCODING_AMD_WMMA, rank);
    made.as.amd_wmma.version = version;
    made.as.amd_wmma.transposed = transposed;
    memcpy(made.as.amd_wmma.instr_shape, instr_shape, sizeof made.as.amd_wmma.instr_shape);
    memcpy(made.as.amd_wmma.warps_per_cta, warps_per_cta, rank * sizeof *warps_per_cta);
    lilac_encoding_fill_ones(made.as.amd_wmma.tiles_per_warp);
    return lilac_encoding_give(result, &made, check_wmma(&made, &fault) ? NULL : &fault, why);
}

/* ---- printing --------------------------------------------------------------------------- */

/* [[0, 1], [1, 0]] */
static void put_level(lilac_text *out, const lilac_layout *layout, const char *name) {
    lilac_text_char(out, '[');
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, name); k++) {
        uint64_t column = lilac_layout_column(layout, name, k);
        for (uint32_t d = 0; d < layout->out_count; d++) {
            lilac_text_printf(out, "%s%" PRIu64,
                              d != 0   ? ", "
                              : k != 0 ? ", ["
                                       : "[",
                              lilac_layout_coordinate(layout, column, d));
        }
        lilac_text_char(out, ']');
    }
    lilac_text_char(out, ']');
}

static void put_cta_layout(lilac_text *out, const lilac_layout *layout) {
    lilac_text_puts(out, ", ctaLayout = {");
    if (lilac_layout_in_bits(layout, "register") != 0) {
        lilac_text_puts(out, "register = ");
        put_level(out, layout, "register");
        lilac_text_puts(out, ", ");
    }
    lilac_text_puts(out, "warp = ");
    put_level(out, layout, "warp");
    lilac_text_char(out, '}');
}

void lilac_encoding_amd_wmma_print(lilac_text *out, const lilac_encoding *encoding) {
    static const uint32_t usual[3] = {16, 16, 16};
    bool by_layout = encoding->as.amd_wmma.by_layout;
    lilac_text_printf(out, "<{version = %u", encoding->as.amd_wmma.version);
    if (by_layout && encoding->rank != 2) {
        lilac_text_printf(out, ", rank = %u", encoding->rank);
    }
    lilac_text_puts(out, encoding->as.amd_wmma.transposed ? ", isTranspose = true"
                                                          : ", isTranspose = false");
    if (by_layout) {
        put_cta_layout(out, &encoding->as.amd_wmma.cta);
    } else {
        lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.amd_wmma.warps_per_cta,
                                encoding->rank);
    }
    lilac_encoding_put_blocks(out, encoding);
    if (!by_layout &&
        !lilac_encoding_all_ones(encoding->as.amd_wmma.tiles_per_warp, encoding->rank)) {
        lilac_encoding_put_list(out, ", tilesPerWarp = ", encoding->as.amd_wmma.tiles_per_warp,
                                encoding->rank);
    }
    if (memcmp(encoding->as.amd_wmma.instr_shape, usual, sizeof usual) != 0) {
        lilac_encoding_put_list(out, ", instrShape = ", encoding->as.amd_wmma.instr_shape, 3);
    }
    lilac_text_puts(out, "}>");
}

/* ---- layouts ---------------------------------------------------------------------------- */

static bool is_tall(const lilac_encoding *wmma) {
    return wmma->as.amd_wmma.instr_shape[0] == 32;
}

/* The tiles of one level of a ctaLayout, above what the instruction takes. Steps along `k` (-1:
 * none) are removed: registers that then do not move are left out, waves hold copies. */
static void place_level(lilac_encoding_tile *tile, lilac_encoding_level level,
                        const lilac_layout *cta, const char *name, const uint32_t *instruction,
                        int k) {
    for (uint32_t i = 0; i < lilac_layout_in_bits(cta, name); i++) {
        uint64_t column = lilac_layout_column(cta, name, i), place[LILAC_MAX_RANK], moves = 0;
        for (uint32_t d = 0; d < tile->rank; d++) {
            uint64_t steps = (int)d == k ? 0 : lilac_layout_coordinate(cta, column, d);
            place[d] = steps << instruction[d];
            moves |= steps;
        }
        if (moves != 0) {
            lilac_encoding_tile_place(tile, level, place);
        } else if (k < 0 || level != LILAC_ENCODING_REGISTER) {
            lilac_encoding_tile_copies(tile, level, 1);
        }
    }
}

static void place_cta_layout(lilac_encoding_tile *tile, const lilac_layout *cta, int k) {
    uint32_t instruction[LILAC_MAX_RANK];
    memcpy(instruction, tile->used, sizeof instruction);
    place_level(tile, LILAC_ENCODING_REGISTER, cta, "register", instruction, k);
    place_level(tile, LILAC_ENCODING_WARP, cta, "warp", instruction, k);
}

bool lilac_encoding_amd_wmma_layout(lilac_context *context, lilac_layout *result,
                                    const lilac_encoding *encoding,
                                    const lilac_encoding_shape *shape) {
    bool transposed = encoding->as.amd_wmma.transposed;
    uint32_t m = encoding->rank - 2, n = encoding->rank - 1;
    uint32_t along = transposed ? n : m, across = transposed ? m : n;
    uint32_t order[LILAC_MAX_RANK];
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, encoding->rank);
    if (encoding->as.amd_wmma.version == 1) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, across, WMMA_TILE_BITS);
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, along, 1);
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along, WMMA_TILE_BITS - 1);
    } else {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along, WMMA_TILE_BITS - 1);
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, across, WMMA_TILE_BITS);
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, along, 1);
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along, is_tall(encoding));
    }
    if (encoding->as.amd_wmma.by_layout) {
        place_cta_layout(&tile, &encoding->as.amd_wmma.cta, -1);
    } else {
        lilac_encoding_amd_result(&tile, encoding->as.amd_wmma.tiles_per_warp,
                                  encoding->as.amd_wmma.warps_per_cta, shape);
    }
    lilac_encoding_result_order(order, encoding->rank);
    return lilac_encoding_tile_fit(context, result, encoding, &tile, shape, order,
                                   &encoding->blocks);
}

/* What kWidth operands of a version have. */
static bool check_k_width(lilac_context *context, const lilac_encoding *dot) {
    static const struct {
        uint32_t widths;
        const char *text;
    } known[] = {{8 | 16, "8 or 16"}, {4 | 8 | 16, "4, 8 or 16"}, {2 | 8 | 16, "2, 8 or 16"}};
    uint32_t version = dot->as.dot.parent->as.amd_wmma.version;
    if ((known[version - 1].widths & dot->as.dot.k_width) != 0) {
        return true;
    }
    return lilac_encoding_refuse(context, dot, "layout-dot-k-width",
                                 "operands of wmma version %u have kWidth %s, not %u", version,
                                 known[version - 1].text, dot->as.dot.k_width);
}

bool lilac_encoding_amd_wmma_dot_layout(lilac_context *context, lilac_layout *result,
                                        const lilac_encoding *dot,
                                        const lilac_encoding_shape *shape) {
    const lilac_encoding *parent = dot->as.dot.parent;
    uint32_t order[LILAC_MAX_RANK];
    lilac_encoding_tile tile;
    if (!check_k_width(context, dot)) {
        return false;
    }
    lilac_encoding_operand_order(order, dot);
    uint32_t k = order[0], other = order[1];
    uint32_t width_bits = lilac_encoding_log2(dot->as.dot.k_width);
    uint32_t k_bits = lilac_encoding_log2(parent->as.amd_wmma.instr_shape[2]);
    uint32_t left = WMMA_LANE_BITS - WMMA_TILE_BITS;
    lilac_encoding_tile_init(&tile, dot->rank);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, width_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, other, WMMA_TILE_BITS);
    if (parent->as.amd_wmma.version == 1) {
        lilac_encoding_tile_copies(&tile, LILAC_ENCODING_LANE, left);
    } else {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, k, left);
    }
    if (k_bits > width_bits + left) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, k_bits - width_bits - left);
    }
    /* The instruction's rows are along N when it computes the transpose. */
    if (is_tall(parent) && (dot->as.dot.operand == 1) == parent->as.amd_wmma.transposed) {
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, other, 1);
    }
    if (parent->as.amd_wmma.by_layout) {
        lilac_encoding_blocks blocks;
        lilac_encoding_dot_blocks(&blocks, dot);
        place_cta_layout(&tile, &parent->as.amd_wmma.cta, (int)k);
        return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &blocks);
    }
    if (parent->as.amd_wmma.tiles_per_warp[other] != 1) {
        lilac_encoding_tile_cover(&tile, k, shape, parent->as.amd_wmma.version == 1 ? left : 0);
    }
    lilac_encoding_amd_operand(&tile, order, parent->as.amd_wmma.tiles_per_warp,
                               parent->as.amd_wmma.warps_per_cta);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &parent->blocks);
}
