/* price: what layouts cost, all of it in the unit of plans (1/16 clocks of a multiprocessor).
 *
 *   conversion        the price of its plan; each pair of layouts is planned once
 *   reduction, scan   the price of its plan (lilac/collective.h)
 *   gather            gather.c
 *   accesses          coalesce.c, from the same table of costs
 */
#include "assign.h"

#include <lilac/collective.h>
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

/* ---- reductions and scans ---------------------------------------------------------------- */

/* Of a reduction to the slice of the layout. */
static int64_t price_reduce(assignment *a, const lilac_tile_op *op, const lilac_layout *layout,
                            uint32_t axis) {
    const bool tensor = lilac_tile_is_tensor(op->results[0].type);
    const lilac_layout *result = tensor ? lilac_transfer_forward(a, op, 0, layout) : NULL;
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

static int64_t price_scan(assignment *a, const lilac_tile_op *op, const lilac_layout *layout,
                          uint32_t axis) {
    lilac_plan_region region;
    lilac_plan_scan plan;
    lilac_plan_price price;
    lilac_reason why;
    lilac_engine_region(&region, a->arena, op);
    if (!lilac_plan_scan_init(&plan, layout, layout, axis, &region, a->target, &why) ||
        !lilac_plan_scan_price(&price, &plan, &why))
        return PRICE_IMPOSSIBLE;
    return (int64_t)price.cycles;
}

static int64_t price_operation(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    if (axis >= layout->out_count)
        return 0;
    switch (op->code) {
    case LILAC_TILE_OP_TT_GATHER:
        return lilac_price_gather(a, op, layout);
    case LILAC_TILE_OP_TT_SCAN:
        return price_scan(a, op, layout, axis);
    default:
        return price_reduce(a, op, layout, axis);
    }
}

int64_t lilac_price_collective(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    const uint64_t hash =
        lilac_hash_word((uint64_t)(uintptr_t)op, (uint64_t)(uintptr_t)layout) % PRICE_BUCKETS;
    for (const priced_operation *known = a->operations[hash]; known != NULL; known = known->next)
        if (known->op == op && known->layout == layout)
            return known->cycles;
    priced_operation *priced = lilac_arena_new(a->arena, priced_operation);
    *priced = (priced_operation){op, layout, price_operation(a, op, layout), a->operations[hash]};
    a->operations[hash] = priced;
    return priced->cycles;
}
