/* Operands of wgmma in shared memory: which layouts of memory its descriptors read. */
#include "memory/memory_layouts.h"

#include <lilac/dot.h>

/* The plan of the product; its tensors have layouts. */
static bool plan_of(lilac_plan_dot *plan, const memory_graph *graph, const lilac_tile_op *op,
                    lilac_reason *why) {
    const lilac_tile_type *a = op->operands[0].value->type, *d = op->results[0].type;
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_layout_columns columns[2];
    if (d->layout == NULL || (lilac_tile_is_tensor(a) && a->layout == NULL)) {
        return lilac_layout_refuse(why, "the result of the product has no layout");
    }
    if (!lilac_engine_dot_problem(&problem, op, graph->target, why) ||
        !lilac_plan_columns_init(&columns[1], d->layout, graph->target, why)) {
        return false;
    }
    if (!lilac_plan_dot_choose_wgmma(&shape, &problem, graph->target)) {
        return lilac_layout_refuse(why, "no wgmma computes a product of these types and sizes");
    }
    if (lilac_tile_is_tensor(a) &&
        !lilac_plan_columns_init(&columns[0], a->layout, graph->target, why)) {
        return false;
    }
    return lilac_plan_dot_init(plan, &problem, LILAC_PLAN_DOT_WGMMA, &shape,
                               lilac_tile_is_tensor(a) ? &columns[0] : NULL, NULL, &columns[1],
                               why);
}

bool lilac_shared_product_fits(const memory_graph *graph, const shared_product *product,
                               lilac_reason *why) {
    lilac_plan_dot plan;
    lilac_plan_dot_memory memory;
    const memory_node *node = &graph->nodes[product->node];
    return plan_of(&plan, graph, product->op, why) &&
           lilac_plan_dot_memory_init(&memory, &plan, product->operand, &node->layout, node->shift,
                                      why);
}
