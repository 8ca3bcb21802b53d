/* gather: which layouts tt.gather likes, and what it costs in them; the source, the index and the
 * result in one layout. What the lowering does, counted (its three ways, the cheapest, or what the
 * attribute lilac.movement says):
 *
 *   the axis not in warps    a shuffle of each word and each register that the index may name, and
 *                            permutes that choose among those; or stores, the warp's barrier, loads
 *   the axis in warps        stores, the block's barrier and loads
 *
 * Lanes that differ beside the axis load from banks of their own; those that differ along it load
 * where the index says. */
#include "assign.h"

#include <lilac/plan.h>

/* How the bits of a layout that make no copies stand to the axis: off it and on it. */
typedef struct stance {
    uint32_t registers[2], lanes[2], warps[2];
} stance;

static stance stance_of(const lilac_layout *layout, uint32_t axis) {
    stance result = {.registers = {0}};
    uint64_t along = ((UINT64_C(1) << layout->out[axis].bits) - 1)
                     << lilac_layout_out_start(layout, axis);
    uint32_t *counts[3] = {result.registers, result.lanes, result.warps};
    for (uint32_t i = 0, at = 0; i < 3; i++)
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++)
            if (layout->columns[at] != 0)
                counts[i][(layout->columns[at] & along) != 0]++;
    return result;
}

static int64_t price_shared(const assignment *a, const lilac_plan_gather *gather, const stance *s,
                            uint32_t axis_bits, lilac_tile_movement way) {
    const lilac_arch *arch = a->target->arch;
    uint32_t word = log2_of(arch->bank_bytes), element = log2_of(gather->element_bits / 8);
    uint64_t results = (uint64_t)gather->results * gather->num_warps;
    /* What one transaction's lanes are, and the bits of a bank's number, for elements of this size
     */
    uint32_t lanes = log2_of(lilac_plan_transaction_lanes(arch, 1U << element));
    uint32_t bank_bits = log2_of(arch->banks) - (element > word ? element - word : 0);
    uint32_t split = log2_of(arch->warp_size) > lanes ? log2_of(arch->warp_size) - lanes : 0;
    uint32_t narrow = word > element ? word - element : 0;
    uint32_t in_word = min_u32(narrow, s->registers[0] + s->registers[1]);
    uint32_t axis_words = axis_bits - min_u32(min_u32(narrow, s->registers[1]), axis_bits);
    bool plain = way == LILAC_TILE_MOVEMENT_UNSWIZZLED;
    uint32_t apart = plain ? 0 : min_u32(min_u32(s->lanes[0], lanes), bank_bits);
    uint32_t drawing = min_u32(s->lanes[0] + s->lanes[1], lanes) - apart;
    lilac_plan_price price = {.loads = results, .barriers = gather->num_warps};
    price.load_wavefronts = (results << split) *
                            lilac_plan_scattered_wavefronts(
                                drawing, min_u32(bank_bits - apart, axis_words), axis_words) /
                            16;
    price.stores = results >> in_word;
    price.store_wavefronts = price.stores << split;
    return (int64_t)lilac_plan_price_gather_memory(
        gather, &price,
        s->warps[1] > 0 || plain ? LILAC_PLAN_BARRIER_BLOCK : LILAC_PLAN_BARRIER_WARP, arch);
}

int64_t lilac_price_gather(assignment *a, const lilac_tile_op *op,
                           const lilac_layout *layout) {
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (axis >= layout->out_count || layout->in_count < 3)
        return 0;
    stance s = stance_of(layout, axis);
    uint32_t bits = lilac_tile_element_bits(op->operands[0].value->type);
    uint32_t registers = 1U << (s.registers[0] + s.registers[1]);
    lilac_plan_gather gather = {.element_bits = bits < 8 ? 8 : bits,
                                .num_warps = a->target->num_warps,
                                .own = registers,
                                .results = registers,
                                .varying_bits = s.registers[1],
                                .moves = s.lanes[1] > 0};
    lilac_tile_movement way = lilac_tile_movement_of(op);
    int64_t shared = price_shared(a, &gather, &s, layout->out[axis].bits, way);
    int64_t shuffles = s.warps[1] > 0
                           ? PRICE_IMPOSSIBLE
                           : (int64_t)lilac_plan_price_gather_shuffles(&gather, a->target->arch);
    switch (way) {
    case LILAC_TILE_MOVEMENT_SHUFFLES:
        return shuffles;
    case LILAC_TILE_MOVEMENT_ANY:
        return min_i64(shared, shuffles);
    default:
        return shared;
    }
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
     * elsewhere. Where memory runs along the axis, all lanes beside it as well: they meet in no
     * bank. */
    uint32_t bits = lilac_tile_element_bits(type);
    int64_t sector = (int64_t)a->target->arch->sector_bytes * 8 / (bits < 8 ? 8 : bits);
    for (uint32_t variant = 0; variant < 14 && count < most; variant++) {
        blocked_shape shape = {.order = order, .vector = variant & 1 ? 2 : 1, .slow_warps = true};
        if (variant < 2)
            shape.order = first;
        else if (variant >= 4)
            shape.lanes = INT64_C(1) << (variant / 2 - 2);
        if (shape.lanes == 1 || shape.lanes == 2) {
            if (order[0] != axis)
                continue;
            shape.vector = variant & 1 ? sector : max_i64(sector / 2, 1);
        }
        if (order[0] != axis)
            shape.slow_warps = variant < 2;
        result[count] = lilac_coalesce_shaped(a, type, &shape);
        count += result[count] != NULL;
    }
    return count;
}
