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

#include <lilac/movement.h>

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

static uint32_t fewer(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static int64_t price_shared(const assignment *a, const stance *s, uint32_t bits, uint32_t axis_bits,
                            lilac_tile_movement way) {
    const lilac_arch *arch = a->target->arch;
    uint32_t word = log2_of(arch->bank_bytes), element = log2_of((bits < 8 ? 8 : bits) / 8);
    uint64_t warps = a->target->num_warps;
    uint64_t results = warps << (s->registers[0] + s->registers[1]);
    /* What one transaction's lanes are, and the bits of a bank's number, for elements of this size
     */
    uint32_t wide = element > word ? element - word : 0;
    uint32_t lanes = log2_of(lilac_movement_transaction_lanes(arch, 1U << element));
    uint32_t bank_bits = log2_of(arch->banks) - wide, split = 5 > lanes ? 5 - lanes : 0;
    uint32_t narrow = word > element ? word - element : 0;
    uint32_t in_word = fewer(narrow, s->registers[0] + s->registers[1]);
    uint32_t axis_words = axis_bits - fewer(fewer(narrow, s->registers[1]), axis_bits);
    uint32_t apart =
        way == LILAC_TILE_MOVEMENT_UNSWIZZLED ? 0 : fewer(fewer(s->lanes[0], lanes), bank_bits);
    uint32_t drawing = fewer(s->lanes[0] + s->lanes[1], lanes) - apart;
    lilac_movement_price price = {.loads = results, .barriers = warps};
    price.load_wavefronts = (results << split) *
                            lilac_movement_scattered_wavefronts(
                                drawing, fewer(bank_bits - apart, axis_words), axis_words) /
                            16;
    price.stores = results >> in_word;
    price.store_wavefronts = price.stores << split;
    bool block = s->warps[1] > 0 || way == LILAC_TILE_MOVEMENT_UNSWIZZLED;
    return (int64_t)lilac_movement_price_cycles(
        &price, block ? LILAC_MOVEMENT_BARRIER_BLOCK : LILAC_MOVEMENT_BARRIER_WARP, arch);
}

static int64_t price_shuffles(const assignment *a, const stance *s, uint32_t bits) {
    if (s->warps[1] > 0)
        return PRICE_IMPOSSIBLE;
    uint64_t warps = a->target->num_warps, words = bits > 32 ? 2 : 1;
    uint64_t results = warps << (s->registers[0] + s->registers[1]);
    uint32_t varying = s->registers[1], within = fewer(varying, bits == 16 ? 1 : bits <= 8 ? 2 : 0);
    uint64_t of_each = words << (varying - within);
    bool moves = s->lanes[1] > 0;
    lilac_movement_price price = {
        .shuffles = moves ? results * of_each : 0,
        .permutes = results * (within > 0 && varying == within ? 1 : of_each - words),
        .packs = within > 0           ? results - (results >> within)
                 : bits < 32 && moves ? results
                                      : 0};
    return (int64_t)lilac_movement_price_cycles(&price, LILAC_MOVEMENT_BARRIER_WARP,
                                                a->target->arch);
}

int64_t lilac_price_gather(const assignment *a, const lilac_tile_op *op,
                           const lilac_layout *layout) {
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (axis >= layout->out_count || layout->in_count < 3)
        return 0;
    stance s = stance_of(layout, axis);
    uint32_t bits = lilac_tile_element_bits(op->operands[0].value->type);
    lilac_tile_movement way = lilac_tile_movement_of(op);
    int64_t shared = price_shared(a, &s, bits, layout->out[axis].bits, way);
    switch (way) {
    case LILAC_TILE_MOVEMENT_SHUFFLES:
        return price_shuffles(a, &s, bits);
    case LILAC_TILE_MOVEMENT_ANY:
        return smaller(shared, price_shuffles(a, &s, bits));
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
    /* The lanes along the axis before all else, as many beside it as memory asks for, or (they meet
     * in no bank then) all of them; warps elsewhere. */
    uint32_t bits = lilac_tile_element_bits(type);
    int64_t sector = 32 * 8 / (bits < 8 ? 8 : bits);
    for (uint32_t variant = 0; variant < 14 && count < most; variant++) {
        blocked_shape shape = {.order = order, .vector = variant & 1 ? 2 : 1, .slow_warps = true};
        if (variant < 2)
            shape.order = first;
        else if (variant >= 4)
            shape.lanes = INT64_C(1) << (variant / 2 - 2);
        if (shape.lanes == 1 || shape.lanes == 2)
            shape.vector = variant & 1 ? sector : larger(sector / 2, 1);
        if (order[0] != axis)
            shape.slow_warps = variant < 2;
        result[count] = lilac_coalesce_shaped(a, type, &shape);
        count += result[count] != NULL;
    }
    return count;
}
