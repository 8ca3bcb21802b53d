/* encoding: AMD's matrix units (#ttg.amd_mfma, #ttg.amd_wmma and their operands) and rotating
 * shared memory.
 *
 * A result tile of an instruction lies on a wave like this; `along` is M and `across` is N, and the
 * other way round when it is transposed (the instruction then computes the transpose):
 *
 *     mfma, 64 lanes       along                            across
 *                  … r r | lanes that are left | r r        lanes
 *                          above                4 elements  all of the tile's
 *     wmma 1, 32 lanes     r r r l                          l l l l
 *     wmma 2 and 3           l r r r                        l l l l
 *
 * An operand's tile has kWidth elements of K in a lane, then its other dimension on lanes, then K
 * on the lanes that are left. Tiles go round a wave (tilesPerWarp), then waves (warpsPerCTA, whose
 * last dimension is the fastest), then registers again; an operand's waves along K hold copies.
 *
 * Triton's main branch writes the tiles and waves of wmma as a linear layout in units of tiles,
 * ctaLayout. It then lists all of a wave's tiles before any further registers, where 3.6 finishes
 * the fastest dimension first; both are kept to the bit.
 *
 * Rotating shared memory is swizzled shared memory whose phase is xored with the number of the
 * group of perPhase × maxPhase rows that a row is in, modulo maxPhase.
 */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MFMA_LANE_BITS = 6, WMMA_LANE_BITS = 5, WMMA_TILE_BITS = 4 };

/* ---- matrices in tensors ---------------------------------------------------------------- */

/* A tensor is a matrix, or a batch of matrices along dim0. */
static bool is_matrix_rank(lilac_encoding_reader *r, const lilac_encoding *encoding) {
    if (encoding->rank == 2 || encoding->rank == 3)
        return true;
    return lilac_encoding_refuse_at(r, encoding->position, "layout-rank",
                                    "layouts of kind '#%s' have 2 or 3 dimensions, not %u",
                                    lilac_encoding_row_of(encoding->kind)->spelling,
                                    encoding->rank);
}

static void fill_ones(uint32_t *values) {
    for (uint32_t d = 0; d < LILAC_MAX_RANK; d++)
        values[d] = 1;
}

static bool all_ones(const uint32_t *values, uint32_t count) {
    for (uint32_t d = 0; d < count; d++) {
        if (values[d] != 1)
            return false;
    }
    return true;
}

/* Registers along the dimension until the tile covers the whole tensor, all blocks' parts of it: as
 * Triton has it, so that those beyond one block's part hold copies. `copies` bits of what the tile
 * takes hold copies. */
static void cover(lilac_encoding_tile *tile, uint32_t dim, const lilac_encoding_shape *shape,
                  uint32_t copies) {
    uint32_t taken = tile->used[dim] + copies;
    if (taken < shape->bits[dim])
        lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, dim, shape->bits[dim] - taken);
}

/* The order in which tiles are repeated: the last dimension first. */
static void order_of_result(uint32_t *order, uint32_t rank) {
    for (uint32_t i = 0; i < rank; i++)
        order[i] = rank - 1 - i;
}

/* K, then the other dimension of the matrix, then the batch. */
static void order_of_operand(uint32_t *order, const lilac_encoding *dot) {
    order_of_result(order, dot->rank);
    if (dot->as.dot.operand == 1) {
        order[0] = dot->rank - 2;
        order[1] = dot->rank - 1;
    }
}

/* Tiles and waves of a result. Triton ignores tilesPerWarp of the batch. */
static void place_result(lilac_encoding_tile *tile, const uint32_t *tiles, const uint32_t *warps,
                         const lilac_encoding_shape *shape) {
    for (uint32_t i = 0; i < tile->rank; i++) {
        uint32_t d = tile->rank - 1 - i;
        if (i < 2)
            lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, d,
                                     lilac_encoding_log2(tiles[d]));
        lilac_encoding_tile_step(tile, LILAC_ENCODING_WARP, d, lilac_encoding_log2(warps[d]));
        if (i == 0)
            cover(tile, d, shape, 0);
    }
}

/* Tiles and waves of an operand, of whose lanes `copies` bits along K hold copies. */
static void place_operand(lilac_encoding_tile *tile, const uint32_t *order, const uint32_t *tiles,
                          const uint32_t *warps, const lilac_encoding_shape *shape,
                          uint32_t copies) {
    uint32_t waves[LILAC_MAX_RANK];
    cover(tile, order[0], shape, copies);
    lilac_encoding_tile_step(tile, LILAC_ENCODING_REGISTER, order[1],
                             lilac_encoding_log2(tiles[order[1]]));
    order_of_result(waves, tile->rank);
    lilac_encoding_tile_sizes(tile, LILAC_ENCODING_WARP, warps, waves, (int)order[0]);
}

/* ---- mfma ------------------------------------------------------------------------------- */

static bool check_mfma_shape(lilac_encoding_reader *r, lilac_position position,
                             const lilac_encoding_list *shape, bool transposed) {
    static const uint32_t known[][2] = {{32, 32}, {16, 16}, {64, 4}, {4, 64}};
    if (shape->count != 3)
        return lilac_encoding_refuse_at(r, position, "layout-instruction-shape",
                                        "an instruction's shape is [m, n, k], not %u sizes",
                                        shape->count);
    for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (shape->at[0] != known[i][0] || shape->at[1] != known[i][1])
            continue;
        if (shape->at[0] == 64 && !transposed)
            return lilac_encoding_refuse_at(r, position, "layout-instruction-shape",
                                            "mfma 64x4 is there with isTransposed = true only");
        return true;
    }
    return lilac_encoding_refuse_at(r, position, "layout-instruction-shape",
                                    "there is no mfma instruction %ux%u, only 32x32, 16x16, 64x4 "
                                    "and 4x64",
                                    shape->at[0], shape->at[1]);
}

bool lilac_encoding_amd_mfma_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_list shape = {0, {0}};
    uint32_t element_bits = 32;
    lilac_encoding_param params[] = {
        {.name = "version",
         .read = lilac_encoding_read_number,
         .into = &encoding->as.amd_mfma.version},
        {.name = "warpsPerCTA",
         .read = lilac_encoding_read_sizes,
         .into = encoding->as.amd_mfma.warps_per_cta},
        {.name = "instrShape", .read = lilac_encoding_read_sizes_of_any_rank, .into = &shape},
        {.name = "isTransposed",
         .read = lilac_encoding_read_flag,
         .into = &encoding->as.amd_mfma.transposed,
         .optional = true},
        {.name = "CGALayout",
         .read = lilac_encoding_read_blocks,
         .into = &encoding->blocks,
         .optional = true},
        {.name = "tilesPerWarp",
         .read = lilac_encoding_read_sizes,
         .into = encoding->as.amd_mfma.tiles_per_warp,
         .optional = true},
        {.name = "elementBitWidth",
         .read = lilac_encoding_read_number,
         .into = &element_bits,
         .optional = true},
    };
    fill_ones(encoding->as.amd_mfma.tiles_per_warp);
    if (!lilac_encoding_read_attribute(r, encoding->position, params,
                                       sizeof params / sizeof params[0], &rank))
        return false;
    encoding->rank = rank.rank;
    if (!is_matrix_rank(r, encoding))
        return false;
    uint32_t version = encoding->as.amd_mfma.version;
    if (version < 1 || version > 4)
        return lilac_encoding_refuse_at(r, params[0].position, "layout-version",
                                        "there is no mfma version %u, only 1 to 4", version);
    if (!check_mfma_shape(r, params[2].position, &shape, encoding->as.amd_mfma.transposed))
        return false;
    if (element_bits != 32 && element_bits != 64)
        return lilac_encoding_refuse_at(r, params[6].position, "layout-element-width",
                                        "mfma has results of 32 and 64 bits, not %u", element_bits);
    memcpy(encoding->as.amd_mfma.instr_shape, shape.at, sizeof encoding->as.amd_mfma.instr_shape);
    encoding->as.amd_mfma.element_bits = element_bits == 64 ? 64 : 0;
    return true;
}

void lilac_encoding_amd_mfma_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{version = %u", encoding->as.amd_mfma.version);
    lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.amd_mfma.warps_per_cta,
                            encoding->rank);
    lilac_encoding_put_list(out, ", instrShape = ", encoding->as.amd_mfma.instr_shape, 3);
    lilac_text_puts(out, encoding->as.amd_mfma.transposed ? ", isTransposed = true"
                                                          : ", isTransposed = false");
    lilac_encoding_put_blocks(out, encoding);
    if (!all_ones(encoding->as.amd_mfma.tiles_per_warp, encoding->rank))
        lilac_encoding_put_list(out, ", tilesPerWarp = ", encoding->as.amd_mfma.tiles_per_warp,
                                encoding->rank);
    if (encoding->as.amd_mfma.element_bits == 64)
        lilac_text_puts(out, ", elementBitWidth = 64");
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
    if (along_bits > vector_bits + left)
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, along,
                                 along_bits - vector_bits - left);
    place_result(&tile, encoding->as.amd_mfma.tiles_per_warp, encoding->as.amd_mfma.warps_per_cta,
                 shape);
    order_of_result(order, encoding->rank);
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
    order_of_operand(order, dot);
    uint32_t k = order[0], other = order[1];
    uint32_t other_bits = lilac_encoding_log2(parent->as.amd_mfma.instr_shape[dot->as.dot.operand]);
    lilac_encoding_tile tile;
    lilac_encoding_tile_init(&tile, dot->rank);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k,
                             lilac_encoding_log2(dot->as.dot.k_width));
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, other, other_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, k, MFMA_LANE_BITS - other_bits);
    if (other_bits == MFMA_LANE_BITS)
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, 4);
    place_operand(&tile, order, parent->as.amd_mfma.tiles_per_warp,
                  parent->as.amd_mfma.warps_per_cta, shape, 0);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &parent->blocks);
}

/* ---- wmma: reading ---------------------------------------------------------------------- */

/* The bits of a level of a ctaLayout, named as Triton names them. */
typedef struct cta_layout {
    bool has_registers;
    lilac_encoding_bases registers, warps;
} cta_layout;

static bool read_cta_layout(lilac_encoding_reader *r, lilac_encoding_rank *rank, void *into) {
    cta_layout *cta = into;
    lilac_encoding_param params[] = {
        {.name = "register",
         .read = lilac_encoding_read_bases,
         .into = &cta->registers,
         .optional = true},
        {.name = "warp", .read = lilac_encoding_read_bases, .into = &cta->warps},
    };
    lilac_position position = lilac_scanner_position(r->scanner);
    cta->registers.count = cta->warps.count = 0;
    return lilac_encoding_read_params(r, position, params, 2, rank);
}

/* Which bits of each dimension the tiles take: each one is taken once, from the lowest on. */
static bool take_tiles(lilac_encoding_reader *r, lilac_position position, uint64_t *taken,
                       const lilac_encoding_bases *bases, uint32_t rank) {
    for (uint32_t i = 0; i < bases->count; i++) {
        for (uint32_t d = 0; d < rank; d++) {
            uint64_t step = bases->at[i][d];
            if ((step & (step - 1)) != 0 || (step & taken[d]) != 0)
                return lilac_encoding_refuse_at(r, position, "layout-basis",
                                                "%" PRIu64 " along dimension %u is not a power of "
                                                "two or is here twice",
                                                step, d);
            taken[d] |= step;
        }
    }
    return true;
}

static bool add_level(lilac_layout *layout, const char *name, const lilac_encoding_bases *bases,
                      lilac_reason *why) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < bases->count; i++)
        columns[i] = lilac_layout_pack(layout, bases->at[i]);
    return lilac_layout_add_in(layout, name, bases->count, columns, why);
}

static bool build_cta_layout(lilac_encoding_reader *r, lilac_position position,
                             lilac_encoding *encoding, const cta_layout *cta) {
    uint64_t taken[LILAC_MAX_RANK] = {0};
    lilac_layout *layout = &encoding->as.amd_wmma.cta;
    lilac_reason why;
    if (!take_tiles(r, position, taken, &cta->registers, encoding->rank) ||
        !take_tiles(r, position, taken, &cta->warps, encoding->rank))
        return false;
    lilac_layout_init(layout);
    bool added = true;
    for (uint32_t d = 0; added && d < encoding->rank; d++) {
        if ((taken[d] & (taken[d] + 1)) != 0)
            return lilac_encoding_refuse_at(r, position, "layout-not-surjective",
                                            "no tile goes to %" PRIu64 " along dimension %u",
                                            (taken[d] + 1) & ~taken[d], d);
        added = lilac_layout_add_out(layout, lilac_encoding_dim_name(d),
                                     lilac_encoding_log2(taken[d] + 1), &why);
    }
    added = added && add_level(layout, "register", &cta->registers, &why) &&
            add_level(layout, "warp", &cta->warps, &why);
    if (!added)
        return lilac_encoding_refuse_at(r, position, "layout-too-large", "%s", why.text);
    return true;
}

/* The instructions of a version; those of 32 rows came after 3.6, with ctaLayout. */
static bool check_wmma_shape(lilac_encoding_reader *r, lilac_position position, uint32_t version,
                             const lilac_encoding_list *shape, bool by_layout) {
    static const uint32_t known[][4] = {{1, 16, 16, 16},  {2, 16, 16, 16}, {2, 16, 16, 32},
                                        {3, 16, 16, 4},   {3, 16, 16, 32}, {3, 16, 16, 64},
                                        {3, 16, 16, 128}, {3, 32, 16, 128}};
    char text[64];
    if (shape->count != 3)
        return lilac_encoding_refuse_at(r, position, "layout-instruction-shape",
                                        "an instruction's shape is [m, n, k], not %u sizes",
                                        shape->count);
    for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i][0] == version && memcmp(&known[i][1], shape->at, 3 * sizeof(uint32_t)) == 0 &&
            (known[i][1] == 16 || by_layout))
            return true;
    }
    (void)snprintf(text, sizeof text, "%ux%ux%u", shape->at[0], shape->at[1], shape->at[2]);
    return lilac_encoding_refuse_at(r, position, "layout-instruction-shape",
                                    "there is no instruction %s in wmma version %u", text, version);
}

/* The rank is that of the lists, or the one that is said, or 2. */
static bool settle_rank(lilac_encoding_reader *r, lilac_encoding *encoding,
                        const lilac_encoding_rank *lists, const lilac_encoding_param *said) {
    uint32_t rank = *(const uint32_t *)said->into;
    if (said->given && lists->known && rank != lists->rank)
        return lilac_encoding_refuse_at(r, said->position, "layout-rank",
                                        "the rank is said to be %u, but lists have %u entries",
                                        rank, lists->rank);
    encoding->rank = lists->known ? lists->rank : said->given ? rank : 2;
    return is_matrix_rank(r, encoding);
}

bool lilac_encoding_amd_wmma_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank lists = {false, 0};
    lilac_encoding_list shape = {3, {16, 16, 16}};
    uint32_t rank = 2;
    cta_layout cta;
    enum { VERSION, RANK, TRANSPOSE, CTA, WARPS, TILES, BLOCKS, SHAPE, COUNT };
    lilac_encoding_param params[COUNT] = {
        [VERSION] = {.name = "version",
                     .read = lilac_encoding_read_number,
                     .into = &encoding->as.amd_wmma.version},
        [RANK] = {.name = "rank",
                  .read = lilac_encoding_read_number,
                  .into = &rank,
                  .optional = true},
        [TRANSPOSE] = {.name = "isTranspose",
                       .read = lilac_encoding_read_flag,
                       .into = &encoding->as.amd_wmma.transposed,
                       .optional = true},
        [CTA] = {.name = "ctaLayout", .read = read_cta_layout, .into = &cta, .optional = true},
        [WARPS] = {.name = "warpsPerCTA",
                   .read = lilac_encoding_read_sizes,
                   .into = encoding->as.amd_wmma.warps_per_cta,
                   .optional = true},
        [TILES] = {.name = "tilesPerWarp",
                   .read = lilac_encoding_read_sizes,
                   .into = encoding->as.amd_wmma.tiles_per_warp,
                   .optional = true},
        [BLOCKS] = {.name = "CGALayout",
                    .read = lilac_encoding_read_blocks,
                    .into = &encoding->blocks,
                    .optional = true},
        [SHAPE] = {.name = "instrShape",
                   .read = lilac_encoding_read_sizes_of_any_rank,
                   .into = &shape,
                   .optional = true},
    };
    fill_ones(encoding->as.amd_wmma.warps_per_cta);
    fill_ones(encoding->as.amd_wmma.tiles_per_warp);
    if (!lilac_encoding_read_attribute(r, encoding->position, params, COUNT, &lists))
        return false;
    bool by_layout = params[CTA].given;
    if (!by_layout && !params[WARPS].given)
        return lilac_encoding_refuse_at(r, encoding->position, "layout-field-missing",
                                        "this layout lacks 'ctaLayout' or 'warpsPerCTA'");
    if (by_layout && (params[WARPS].given || params[TILES].given))
        return lilac_encoding_refuse_at(r, params[params[WARPS].given ? WARPS : TILES].position,
                                        "layout-field-twice",
                                        "'ctaLayout' says where waves and their tiles are already");
    if (!settle_rank(r, encoding, &lists, &params[RANK]))
        return false;
    uint32_t version = encoding->as.amd_wmma.version;
    if (version < 1 || version > 3)
        return lilac_encoding_refuse_at(r, params[VERSION].position, "layout-version",
                                        "there is no wmma version %u, only 1 to 3", version);
    lilac_position shape_at = params[SHAPE].given ? params[SHAPE].position : encoding->position;
    if (!check_wmma_shape(r, shape_at, version, &shape, by_layout))
        return false;
    memcpy(encoding->as.amd_wmma.instr_shape, shape.at, sizeof encoding->as.amd_wmma.instr_shape);
    encoding->as.amd_wmma.by_layout = by_layout;
    return !by_layout || build_cta_layout(r, params[CTA].position, encoding, &cta);
}

/* ---- wmma: printing --------------------------------------------------------------------- */

/* [[0, 1], [1, 0]] */
static void put_level(lilac_text *out, const lilac_layout *layout, const char *name) {
    lilac_text_char(out, '[');
    for (uint32_t k = 0; k < lilac_layout_in_bits(layout, name); k++) {
        uint64_t column = lilac_layout_column(layout, name, k);
        for (uint32_t d = 0; d < layout->out_count; d++)
            lilac_text_printf(out, "%s%" PRIu64,
                              d != 0   ? ", "
                              : k != 0 ? ", ["
                                       : "[",
                              lilac_layout_coordinate(layout, column, d));
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
    if (by_layout && encoding->rank != 2)
        lilac_text_printf(out, ", rank = %u", encoding->rank);
    lilac_text_puts(out, encoding->as.amd_wmma.transposed ? ", isTranspose = true"
                                                          : ", isTranspose = false");
    if (by_layout)
        put_cta_layout(out, &encoding->as.amd_wmma.cta);
    else
        lilac_encoding_put_list(out, ", warpsPerCTA = ", encoding->as.amd_wmma.warps_per_cta,
                                encoding->rank);
    lilac_encoding_put_blocks(out, encoding);
    if (!by_layout && !all_ones(encoding->as.amd_wmma.tiles_per_warp, encoding->rank))
        lilac_encoding_put_list(out, ", tilesPerWarp = ", encoding->as.amd_wmma.tiles_per_warp,
                                encoding->rank);
    if (memcmp(encoding->as.amd_wmma.instr_shape, usual, sizeof usual) != 0)
        lilac_encoding_put_list(out, ", instrShape = ", encoding->as.amd_wmma.instr_shape, 3);
    lilac_text_puts(out, "}>");
}

/* ---- wmma: layouts ---------------------------------------------------------------------- */

static bool is_tall(const lilac_encoding *wmma) {
    return wmma->as.amd_wmma.instr_shape[0] == 32;
}

/* The tiles of one level of a ctaLayout, above what the instruction takes. What is along `k` (-1:
 * nothing) is left out of registers and is copies on waves. */
static void place_level(lilac_encoding_tile *tile, lilac_encoding_level level,
                        const lilac_layout *cta, const char *name, const uint32_t *instruction,
                        int k) {
    for (uint32_t i = 0; i < lilac_layout_in_bits(cta, name); i++) {
        uint64_t column = lilac_layout_column(cta, name, i);
        uint32_t d = 0;
        while (d < tile->rank && lilac_layout_coordinate(cta, column, d) == 0)
            d++;
        bool copy = d == tile->rank || (int)d == k;
        if (copy && (k < 0 || level != LILAC_ENCODING_REGISTER))
            lilac_encoding_tile_copies(tile, level, 1);
        else if (!copy)
            lilac_encoding_tile_bit_at(
                tile, level, d,
                instruction[d] + lilac_encoding_log2(lilac_layout_coordinate(cta, column, d)));
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
    if (encoding->as.amd_wmma.by_layout)
        place_cta_layout(&tile, &encoding->as.amd_wmma.cta, -1);
    else
        place_result(&tile, encoding->as.amd_wmma.tiles_per_warp,
                     encoding->as.amd_wmma.warps_per_cta, shape);
    order_of_result(order, encoding->rank);
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
    if ((known[version - 1].widths & dot->as.dot.k_width) != 0)
        return true;
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
    if (!check_k_width(context, dot))
        return false;
    order_of_operand(order, dot);
    uint32_t k = order[0], other = order[1];
    uint32_t width_bits = lilac_encoding_log2(dot->as.dot.k_width);
    uint32_t k_bits = lilac_encoding_log2(parent->as.amd_wmma.instr_shape[2]);
    uint32_t left = WMMA_LANE_BITS - WMMA_TILE_BITS;
    lilac_encoding_tile_init(&tile, dot->rank);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, width_bits);
    lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, other, WMMA_TILE_BITS);
    if (parent->as.amd_wmma.version == 1)
        lilac_encoding_tile_copies(&tile, LILAC_ENCODING_LANE, left);
    else
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_LANE, k, left);
    if (k_bits > width_bits + left)
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, k, k_bits - width_bits - left);
    /* The instruction's rows are along N when it computes the transpose. */
    if (is_tall(parent) && (dot->as.dot.operand == 1) == parent->as.amd_wmma.transposed)
        lilac_encoding_tile_step(&tile, LILAC_ENCODING_REGISTER, other, 1);
    if (parent->as.amd_wmma.by_layout) {
        lilac_encoding_blocks blocks;
        lilac_encoding_dot_blocks(&blocks, dot);
        place_cta_layout(&tile, &parent->as.amd_wmma.cta, (int)k);
        return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &blocks);
    }
    place_operand(&tile, order, parent->as.amd_wmma.tiles_per_warp,
                  parent->as.amd_wmma.warps_per_cta, shape,
                  parent->as.amd_wmma.version == 1 ? left : 0);
    return lilac_encoding_tile_fit(context, result, dot, &tile, shape, order, &parent->blocks);
}

/* ---- rotating shared memory ------------------------------------------------------------- */

bool lilac_encoding_amd_rotating_shared_read(lilac_encoding_reader *r, lilac_encoding *encoding) {
    lilac_encoding_rank rank = {false, 0};
    lilac_encoding_param params[] = {
        {.name = "vec", .read = lilac_encoding_read_size, .into = &encoding->as.swizzled.vec},
        {.name = "perPhase",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.swizzled.per_phase},
        {.name = "maxPhase",
         .read = lilac_encoding_read_size,
         .into = &encoding->as.swizzled.max_phase},
        {.name = "order", .read = lilac_encoding_read_order, .into = encoding->as.swizzled.order},
        {.name = "CGALayout",
         .read = lilac_encoding_read_blocks,
         .into = &encoding->blocks,
         .optional = true},
    };
    if (!lilac_encoding_read_attribute(r, encoding->position, params,
                                       sizeof params / sizeof params[0], &rank))
        return false;
    encoding->rank = rank.rank;
    return true;
}

void lilac_encoding_amd_rotating_shared_print(lilac_text *out, const lilac_encoding *encoding) {
    lilac_text_printf(out, "<{vec = %u, perPhase = %u, maxPhase = %u", encoding->as.swizzled.vec,
                      encoding->as.swizzled.per_phase, encoding->as.swizzled.max_phase);
    lilac_encoding_put_list(out, ", order = ", encoding->as.swizzled.order, encoding->rank);
    lilac_encoding_put_blocks(out, encoding);
    lilac_text_puts(out, "}>");
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
    for (uint32_t d = 0, sum = 0; d < shape->rank; sum += shape->bits[d++])
        start[d] = sum;
    bool added = lilac_encoding_outs(&made, shape, NULL);
    for (uint32_t i = 0; added && i < shape->rank; i++) {
        uint32_t d = order[i];
        for (uint32_t b = 0; b < shape->bits[d] - taken[d]; b++) {
            columns[bits] = UINT64_C(1) << (start[d] + b);
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
    if (!added)
        return lilac_encoding_refuse(context, encoding, "layout-too-large",
                                     "this layout has more than %d bits", LILAC_LAYOUT_MAX_BITS);
    *result = made;
    return true;
}
