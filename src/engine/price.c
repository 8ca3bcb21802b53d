/* price: what layouts cost, all of it in the unit of plans (1/16 clocks of a multiprocessor).
 *
 *   conversion   the plan's own price; each pair of layouts is planned once
 *   reduction    the counts of what its lowering does, priced as a plan's counts are:
 *
 *       bits of the axis in registers    the thread's own values, in every layout as many
 *       … in lanes                       a butterfly each: a shuffle of each word that is kept, and
 *                                        the region once more
 *       … in warps                       each word that is kept stored once a warp, a barrier, and
 *                                        all warps' parts loaded
 *
 *   scan         the same, for each of the blocks of neighbours that are above the lanes too, and a
 *                step back down
 *   gather       gather.c, as counted from its ways
 *   accesses     coalesce.c, from the same table of costs
 */
#include "assign.h"

#include <lilac/f2.h>
#include <lilac/plan.h>

int64_t lilac_price_conversion(assignment *a, const lilac_layout *from, const lilac_layout *to,
                               uint32_t bits) {
    if (from == to)
        return 0;
    bits = bits < 8 ? 8 : bits;
    uint64_t hash = lilac_hash_word((uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)to) + bits;
    priced_conversion **place = &a->prices[hash % PRICE_BUCKETS];
    for (; *place != NULL; place = &(*place)->next)
        if ((*place)->from == from && (*place)->to == to && (*place)->bits == bits)
            return (*place)->cycles;
    lilac_plan_conversion plan;
    lilac_reason why;
    *place = lilac_arena_new(a->arena, priced_conversion);
    **place = (priced_conversion){from, to, bits, PRICE_IMPOSSIBLE, NULL};
    if (lilac_plan_conversion_init(&plan, from, to, bits, NULL, a->target->arch, &why))
        (*place)->cycles = (int64_t)plan.price.cycles;
    return (*place)->cycles;
}

/* ---- reductions ------------------------------------------------------------------------- */

/* The price of an operation whose operands have this layout, which its plan says. */
static int64_t price_reduce(assignment *a, const lilac_tile_op *op, const lilac_layout *layout,
                            uint32_t axis) {
    const bool tensor = lilac_tile_is_tensor(op->results[0].type);
    const lilac_layout *result = tensor ? lilac_transfer_forward(a, op, layout) : NULL;
    lilac_plan_region region;
    lilac_plan_reduce plan;
    lilac_plan_price price;
    lilac_reason why;
    if (tensor && result == NULL)
        return PRICE_IMPOSSIBLE;
    lilac_engine_region(&region, a->arena, op);
    if (!lilac_plan_reduce_init(&plan, layout, result, axis, &region, a->target, &why) ||
        !lilac_plan_reduce_price(&price, &plan, &why))
        return PRICE_IMPOSSIBLE;
    return (int64_t)price.cycles;
}

static uint32_t count_region(const lilac_tile_op *op) {
    uint32_t count = 0;
    if (op->region_count > 0 && op->regions[0]->first != NULL)
        for (const lilac_tile_op *inner = op->regions[0]->first->first; inner != NULL;
             inner = inner->next)
            count++;
    return count;
}

static uint32_t words_of(const lilac_tile_op *op) {
    uint32_t words = 0;
    for (uint32_t i = 0; i < op->operand_count; i++)
        words += lilac_tile_element_bits(op->operands[i].value->type) > 32 ? 2 : 1;
    return words;
}

/* How the bits of a layout stand to an axis. */
typedef struct bits_along {
    uint32_t kept;                    /* register bits that lead to other lines */
    uint32_t registers, lanes, warps; /* bits that lead along the axis */
    uint32_t above;                   /* register bits among them that are above a lane's */
} bits_along;

static bits_along look_along(const lilac_layout *layout, uint32_t axis) {
    bits_along result = {.kept = 0};
    uint32_t start = lilac_layout_out_start(layout, axis), at = 0;
    uint64_t along = ((UINT64_C(1) << layout->out[axis].bits) - 1) << start, lowest = 0;
    lilac_f2_basis keeps, combines;
    lilac_f2_basis_init(&keeps);
    lilac_f2_basis_init(&combines);
    for (uint32_t i = 0; i < layout->in_count && i < 3; i++) {
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t column = layout->columns[at];
            if (lilac_f2_basis_add(&keeps, column & ~along, 0)) {
                result.kept += i == 0;
            } else if (lilac_f2_basis_add(&combines, column & along, 0)) {
                result.registers += i == 0;
                result.lanes += i == 1;
                result.warps += i == 2;
                if (i == 1 && (lowest == 0 || (column & along) < lowest))
                    lowest = column & along;
            }
        }
    }
    for (uint32_t i = 0; lowest != 0 && i < layout->in[0].bits; i++)
        result.above += (layout->columns[i] & along) > lowest;
    return result;
}

/* Combining along an axis; `lines` words of a thread go through lanes and warps. With `gives`, the
 * lanes of a butterfly share the lines out among them where shared memory brings them together:
 * each sends half of its lines and keeps the other half. */
static int64_t combining_price(const assignment *a, const bits_along *bits, uint64_t lines,
                               uint32_t words, uint32_t lane_steps, uint32_t region, bool gives) {
    const lilac_arch *arch = a->target->arch;
    uint64_t count = a->target->num_warps, left = lines, sent = 0, chosen = 0;
    for (uint32_t i = 0; i < lane_steps; i++) {
        if (gives && bits->warps > 0 && left > 1) {
            left /= 2;
            chosen += 2 * left;
        }
        sent += left;
    }
    lilac_plan_price price = {.shuffles = sent * words * count, .selects = chosen * words * count};
    uint64_t steps = sent;
    if (bits->warps > 0) {
        uint64_t parts = UINT64_C(1) << bits->warps, loads = parts > 4 ? parts / 4 : 1;
        price.stores = price.store_wavefronts = left * words * count;
        price.loads = lines * words * loads * count;
        price.load_wavefronts = lines * words * loads * count * (parts < 4 ? parts : 4);
        price.barriers = count;
        steps += lines * (parts - 1);
    }
    uint64_t again = region * steps * count * arch->costs->issue;
    return (int64_t)(lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_BLOCK, arch) + again);
}

int64_t lilac_price_along(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (axis >= layout->out_count)
        return 0;
    if (op->code == LILAC_TILE_OP_TT_REDUCE)
        return price_reduce(a, op, layout, axis);
    bits_along bits = look_along(layout, axis);
    uint64_t lines = UINT64_C(1) << bits.kept;
    if (op->code == LILAC_TILE_OP_TT_SCAN)
        return combining_price(a, &bits, lines << bits.above, words_of(op),
                               bits.lanes > 0 ? bits.lanes + 1 : 0, count_region(op), false);
    return combining_price(a, &bits, lines, words_of(op), bits.lanes, count_region(op), true);
}
