/* price: what layouts cost, all of it in the unit of plans (1/16 clocks of a multiprocessor).
 *
 *   conversion                the price of its plan; each pair of layouts is planned once
 *   reduction, scan, gather   the price of its plan (lilac/collective.h); each operation is planned
 *                             once in each layout
 *   access                    coalesce.c, from the same table of costs
 *
 * Where the blocks of a cluster divide the axis, the price is that of what combine_blocks makes of the
 * operation, exchanges between blocks included.
 *
 * The table of layout relations (transfer.c) names the function of each anchor.
 */
#include "layouts/assign.h"

#include "reductions/combine_blocks.h"

#include <lilac/collective.h>
#include <lilac/plan.h>

int64_t lilac_price_conversion(assignment *a, const lilac_layout *from, const lilac_layout *to,
                               uint32_t bits) {
    if (from == to) {
        return 0;
    }
    bits = bits < 8 ? 8 : bits;
    uint64_t hash = lilac_hash_word((uint64_t)(uintptr_t)from, (uint64_t)(uintptr_t)to) + bits;
    priced_conversion **place = &a->prices[hash % PRICE_BUCKETS];
    for (; *place != NULL; place = &(*place)->next) {
        if ((*place)->from == from && (*place)->to == to && (*place)->bits == bits) {
            return (*place)->cycles;
        }
    }
    lilac_plan_conversion plan;
    lilac_reason why;
    *place = lilac_arena_new(a->arena, priced_conversion);
    **place = (priced_conversion){from, to, bits, PRICE_IMPOSSIBLE, NULL};
    if (lilac_plan_conversion_init(&plan, from, to, bits, NULL, a->target->arch, &why)) {
        (*place)->cycles = (int64_t)plan.price.cycles;
    }
    return (*place)->cycles;
}

int64_t lilac_price_staged_load(assignment *a, const lilac_layout *from, const lilac_layout *to,
                                uint32_t bits) {
    lilac_plan_conversion plan;
    lilac_reason why;
    if (!lilac_plan_conversion_init(&plan, from, to, max_u32(bits, 8), NULL, a->target->arch,
                                    &why)) {
        return PRICE_IMPOSSIBLE;
    }
    lilac_plan_price loads = {.loads = plan.price.loads,
                              .load_wavefronts = plan.price.load_wavefronts,
                              .permutes = plan.price.permutes,
                              .packs = plan.price.packs};
    return plan.price.loads == 0
               ? (int64_t)plan.price.cycles
               : (int64_t)lilac_plan_price_cycles(&loads, LILAC_PLAN_BARRIER_WARP, a->target->arch);
}

/* ---- collective operations --------------------------------------------------------------- */

static uint32_t axis_of(const lilac_tile_op *op) {
    return (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
}

/* Of a reduction of `layout` to its slice. */
static int64_t price_of_reduction(assignment *a, const lilac_tile_op *op,
                                  const lilac_layout *layout, uint32_t axis) {
    int64_t price;
    return lilac_price_of_reduction(&price, a->arena, op, layout, axis, a->target)
               ? price
               : PRICE_IMPOSSIBLE;
}

/* The layout in which the blocks of a cluster do not divide the axis; the layout itself if they do not;
 * NULL: there is none. */
static const lilac_layout *undivided(assignment *a, const lilac_layout *layout, uint32_t axis) {
    lilac_layout result;
    if (!lilac_blocks_divide(layout, axis)) {
        return layout;
    }
    return lilac_blocks_undivided(&result, layout, axis)
               ? lilac_tile_intern_layout(a->module, &result)
               : NULL;
}

/* If a loop accumulates the result, split_reductions leaves only the reduction within threads in the
 * loop: an execution has its share of the exchange behind the loop. */
int64_t lilac_price_reduce(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    const uint32_t axis = axis_of(op);
    const int64_t all = price_of_reduction(a, op, layout, axis);
    const lilac_tile_op *loop = all < PRICE_IMPOSSIBLE ? lilac_split_loop(op) : NULL;
    lilac_layout view;
    uint32_t register_bits;
    if (loop == NULL || !lilac_split_layout(&view, layout, axis, &register_bits)) {
        return all;
    }
    const int64_t inside = register_bits > 0 ? price_of_reduction(a, op, &view, axis + 1) : 0;
    const int64_t iterations = lilac_assign_inner_weight(loop, 1);
    return inside < all ? inside + (all - inside) / iterations : all;
}

int64_t lilac_price_scan(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    lilac_plan_region region;
    lilac_plan_scan plan;
    lilac_plan_price price;
    lilac_reason why;
    const lilac_layout *whole = undivided(a, layout, axis_of(op));
    int64_t moves = 0;
    lilac_engine_region(&region, a->arena, op);
    if (whole == NULL ||
        !lilac_plan_scan_init(&plan, whole, whole, axis_of(op), &region, a->target, &why) ||
        !lilac_plan_scan_price(&price, &plan, &why)) {
        return PRICE_IMPOSSIBLE;
    }
    for (uint32_t i = 0; i < region.count && whole != layout; i++) {
        moves += lilac_price_conversion(a, layout, whole, region.operands[i].element_bits) +
                 lilac_price_conversion(a, whole, layout, region.operands[i].element_bits);
    }
    return min_i64((int64_t)price.cycles + moves, PRICE_IMPOSSIBLE);
}

int64_t lilac_price_gather(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    const lilac_plan_gather_options options = {
        .axis = axis_of(op),
        .element_bits = lilac_tile_element_bits(op->operands[0].value->type),
        .strategy = lilac_engine_strategy(op)};
    lilac_plan_gather plan;
    lilac_reason why;
    const lilac_layout *whole = undivided(a, layout, LILAC_WHOLE_TENSOR);
    if (whole == NULL || !lilac_plan_gather_init(&plan, whole, whole, &options, a->target, &why)) {
        return PRICE_IMPOSSIBLE;
    }
    const uint32_t index_bits = lilac_tile_element_bits(op->operands[1].value->type);
    const int64_t moves = lilac_price_conversion(a, layout, whole, options.element_bits) +
                          lilac_price_conversion(a, layout, whole, index_bits) +
                          lilac_price_conversion(a, whole, layout, options.element_bits);
    return min_i64((int64_t)plan.price.cycles + moves, PRICE_IMPOSSIBLE);
}

int64_t lilac_price_anchor(assignment *a, const layout_anchor *anchor, const lilac_layout *layout) {
    const lilac_tile_op *op = anchor->op;
    const uint64_t hash =
        lilac_hash_word((uint64_t)(uintptr_t)op, (uint64_t)(uintptr_t)layout) % PRICE_BUCKETS;
    for (const priced_operation *known = a->operations[hash]; known != NULL; known = known->next) {
        if (known->op == op && known->layout == layout) {
            return known->cycles;
        }
    }
    /* the plan of an operation whose axis the layout lacks does not exist; the verifier or the
     * lowering refuses it */
    const int64_t cycles =
        axis_of(op) < layout->out_count ? anchor->relation->price(a, op, layout) : 0;
    priced_operation *priced = lilac_arena_new(a->arena, priced_operation);
    *priced = (priced_operation){op, layout, cycles, a->operations[hash]};
    a->operations[hash] = priced;
    return cycles;
}
