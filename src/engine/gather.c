/* gather: which layouts tt.gather likes, and what it costs in them; the source, the index and the
 * result in one layout. What the lowering does, counted (its three ways, the cheapest):
 *
 *   the axis not in warps    a shuffle of each word and each register that the index may name, and
 *                            selects among those; or stores, the warp's barrier and loads
 *   the axis in warps        stores, the block's barrier and loads
 *
 * Loads of lanes that only the index tells apart meet in banks as random ones do. */
#include "assign.h"

#include <lilac/movement.h>

/* The most of n balls in n boxes, n = 1, 2, 4 … 32, in sixteenths. */
static const uint8_t crowd[] = {16, 24, 34, 42, 49, 56};

int64_t lilac_price_gather(const assignment *a, const lilac_tile_op *op,
                           const lilac_layout *layout) {
    const lilac_arch *arch = a->target->arch;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (axis >= layout->out_count || layout->in_count < 3)
        return 0;
    uint32_t start = lilac_layout_out_start(layout, axis);
    uint64_t along = ((UINT64_C(1) << layout->out[axis].bits) - 1) << start;
    uint32_t counts[3][2] = {{0}}; /* columns that are not zero, off the axis and on it */
    for (uint32_t i = 0, at = 0; i < 3; i++)
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++)
            if (layout->columns[at] != 0)
                counts[i][(layout->columns[at] & along) != 0]++;
    uint32_t bits = lilac_tile_element_bits(op->operands[0].value->type);
    uint64_t warps = a->target->num_warps, words = bits > 32 ? 2 : 1;
    uint64_t results = warps << (counts[0][0] + counts[0][1]);
    uint32_t lanes = layout->in[1].bits, unknown = lanes - counts[1][0];
    unknown = unknown < layout->out[axis].bits ? unknown : layout->out[axis].bits;
    uint64_t bytes = results * (bits < 8 ? 8 : bits) / 8, lane_bytes = arch->vector_bytes;
    lilac_movement_price memory = {.loads = results, .barriers = warps};
    memory.load_wavefronts = results * words * crowd[unknown < 5 ? unknown : 5] / 16;
    memory.stores = bytes / lane_bytes > warps ? bytes / lane_bytes : warps;
    memory.store_wavefronts = bytes / 4 > warps ? bytes / 4 : warps;
    bool crosses = counts[2][1] > 0;
    int64_t least = (int64_t)lilac_movement_price_cycles(
        &memory, crosses ? LILAC_MOVEMENT_BARRIER_BLOCK : LILAC_MOVEMENT_BARRIER_WARP, arch);
    if (crosses)
        return least;
    uint32_t varying = counts[0][1], most = bits == 16 ? 1 : bits <= 8 ? 2 : 0;
    uint32_t packed = varying < most ? varying : most;
    /* and for each register bit that the index decides a predicate, each element of a word taken
     * out of it */
    lilac_movement_price shuffles = {
        .selects = results * (words * ((UINT64_C(1) << varying) - 1) + 2 * (uint64_t)varying),
        .packs = packed > 0 ? 2 * results : 0};
    if (counts[1][1] > 0)
        shuffles.shuffles = results * words << varying >> packed;
    return smaller(
        least, (int64_t)lilac_movement_price_cycles(&shuffles, LILAC_MOVEMENT_BARRIER_WARP, arch));
}

uint32_t lilac_gather_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                                 const lilac_layout **result, uint32_t most) {
    const lilac_tile_type *type = op->results[0].type;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0), count = 0;
    uint32_t first[LILAC_MAX_RANK], next = 0;
    if (axis >= type->rank)
        return 0;
    first[next++] = axis;
    for (uint32_t i = 0; i < type->rank; i++)
        if (order[i] != axis)
            first[next++] = order[i];
    /* The lanes along the axis before all else, or as many beside it as memory asks for; warps
     * elsewhere. */
    for (uint32_t variant = 0; variant < 10 && count < most; variant++) {
        blocked_shape shape = {.order = order, .vector = variant & 1 ? 2 : 1, .slow_warps = true};
        if (variant < 2)
            shape.order = first;
        else if (variant >= 4)
            shape.lanes = INT64_C(4) << (variant / 2 - 2);
        if (order[0] != axis)
            shape.slow_warps = variant < 2;
        result[count] = lilac_coalesce_shaped(a, type, &shape);
        count += result[count] != NULL;
    }
    return count;
}
