/* The values of memory of a function, and how their layouts follow from each other.
 *
 *     %a = ttg.local_alloc                    : memdesc<2x64x32>     layout M of one buffer
 *     %b = ttg.memdesc_index %a[%i]           : memdesc<64x32>       M
 *     %t = ttg.memdesc_trans %b {order=[1,0]} : memdesc<32x64>       M with its outputs exchanged
 *     %r = scf.for … iter_args(%m = %b)       : memdesc<64x32>       M
 *
 * Nodes are values of memory and edges are these relations. Two nodes that a path connects are in
 * one group, and one layout determines all layouts of the group. */
#include "memory/memory_layouts.h"

#include <lilac/tile_loops.h>

#include <string.h>

#define ADD(graph, list, type, item)                                                               \
    do {                                                                                           \
        if ((graph)->list##_count == (graph)->list##_capacity) {                                   \
            const uint32_t capacity = 2 * (graph)->list##_capacity + 16;                           \
            type *grown = lilac_arena_array((graph)->arena, type, capacity);                       \
            for (uint32_t n = 0; n < (graph)->list##_count; n++) {                                 \
                grown[n] = (graph)->list##_list[n];                                                \
            }                                                                                      \
            (graph)->list##_list = grown;                                                          \
            (graph)->list##_capacity = capacity;                                                   \
        }                                                                                          \
        (graph)->list##_list[(graph)->list##_count++] = (item);                                    \
    } while (0)

/* ---- collection -------------------------------------------------------------------------- */

static bool is_memory(const lilac_tile_value *value) {
    return value->type->kind == LILAC_TILE_MEMDESC;
}

static void add_node(memory_graph *graph, lilac_tile_value *value) {
    if (!is_memory(value)) {
        return;
    }
    memory_node *node = &graph->nodes[graph->node_count];
    *node = (memory_node){.value = value, .group = graph->node_count};
    graph->node_of[value->id] = ++graph->node_count;
}

static void add_nodes(memory_graph *graph, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            add_node(graph, block->arguments[i]);
        }
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                add_node(graph, &op->results[i]);
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                add_nodes(graph, op->regions[r]);
            }
        }
    }
}

static uint32_t memory_count(const lilac_tile_region *region) {
    uint32_t count = 0;
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            count += is_memory(block->arguments[i]);
        }
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t i = 0; i < op->result_count; i++) {
                count += is_memory(&op->results[i]);
            }
            for (uint32_t r = 0; r < op->region_count; r++) {
                count += memory_count(op->regions[r]);
            }
        }
    }
    return count;
}

uint32_t lilac_memory_group(memory_graph *graph, uint32_t node) {
    while (graph->nodes[node].group != node) {
        graph->nodes[node].group = graph->nodes[graph->nodes[node].group].group;
        node = graph->nodes[node].group;
    }
    return node;
}

static void add_edge(memory_graph *graph, lilac_tile_op *op, const lilac_tile_value *from,
                     const lilac_tile_value *to) {
    if (to == NULL || !is_memory(from) || !is_memory(to)) {
        return;
    }
    const memory_edge edge = {op, graph->node_of[from->id] - 1, graph->node_of[to->id] - 1};
    ADD(graph, edge, memory_edge, edge);
    const uint32_t a = lilac_memory_group(graph, edge.from), b = lilac_memory_group(graph, edge.to);
    graph->nodes[a > b ? a : b].group = a > b ? b : a;
}

static void add_access(memory_graph *graph, lilac_tile_op *op, const lilac_tile_value *memory,
                       const lilac_tile_value *tensor, int64_t weight) {
    const shared_access access = {.op = op,
                                  .node = graph->node_of[memory->id] - 1,
                                  .tensor = tensor->type,
                                  .loads = op->code == LILAC_TILE_OP_TTG_LOCAL_LOAD,
                                  .weight = weight};
    ADD(graph, access, shared_access, access);
}

static void add_phis(memory_graph *graph, lilac_tile_op *op) {
    const uint32_t count = lilac_tile_phi_count(op);
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        for (uint32_t r = 0; r < phi.receiver_count; r++) {
            for (uint32_t k = 0; k < phi.source_count; k++) {
                add_edge(graph, op, phi.sources[k]->value, phi.receivers[r]);
            }
        }
    }
    for (uint32_t i = 0; i < op->operand_count && op->successor_count > 0; i++) {
        add_edge(graph, op, op->operands[i].value, lilac_tile_receiver(&op->operands[i]));
    }
}

/* Operations that pass memory on, or end its life. */
static bool is_transparent(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
    case LILAC_TILE_OP_TTG_LOCAL_DEALLOC:
    case LILAC_TILE_OP_UB_POISON:
        return true;
    default:
        return op->region_count > 0 ||
               (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_TERMINATOR) != 0;
    }
}

static void add_products(memory_graph *graph, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < 2; i++) {
        if (is_memory(op->operands[i].value)) {
            const shared_product product = {
                .op = op, .node = graph->node_of[op->operands[i].value->id] - 1, .operand = i};
            ADD(graph, product, shared_product, product);
        }
    }
}

static void add_other(memory_graph *graph, lilac_tile_op *op) {
    bool uses = false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        uses |= is_memory(op->operands[i].value);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        uses |= is_memory(&op->results[i]);
    }
    if (uses && !is_transparent(op)) {
        ADD(graph, other, lilac_tile_op *, op);
    }
}

static void add_operation(memory_graph *graph, lilac_tile_op *op, int64_t weight) {
    lilac_tile_value *memory, *tensor;
    uint32_t first, end;
    if (lilac_tile_shared_access(op, &memory, &tensor)) {
        add_access(graph, op, memory, tensor, weight);
    } else if (lilac_tile_view_operands(op, &first, &end) &&
               op->code != LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET) {
        for (uint32_t i = first; i < end; i++) {
            add_edge(graph, op, op->operands[i].value, &op->results[0]);
        }
    } else if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        add_products(graph, op);
    } else {
        add_phis(graph, op);
        add_other(graph, op);
    }
}

static void add_operations(memory_graph *graph, lilac_tile_region *region, int64_t weight) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            add_operation(graph, op, weight);
            for (uint32_t r = 0; r < op->region_count; r++) {
                add_operations(graph, op->regions[r], lilac_assign_inner_weight(op, weight));
            }
        }
    }
}

/* Does the edge preserve the number of dimensions of the layout and of the type? */
static bool is_equal_shape(const memory_edge *edge) {
    return edge->op->code != LILAC_TILE_OP_TTG_MEMDESC_INDEX &&
           edge->op->code != LILAC_TILE_OP_TTG_MEMDESC_TRANS &&
           edge->op->code != LILAC_TILE_OP_TTG_MEMDESC_RESHAPE;
}

static void find_arrays(memory_graph *graph) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const lilac_tile_type *type = graph->nodes[i].value->type;
        graph->nodes[i].is_array =
            type->layout != NULL && type->layout->out_count + 1U == type->rank;
    }
    for (uint32_t i = 0; i < graph->edge_count; i++) {
        const memory_edge *edge = &graph->edge_list[i];
        memory_node *from = &graph->nodes[edge->from];
        from->is_array |=
            edge->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX && from->value->type->rank > 1;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->edge_count; i++) {
            const memory_edge *edge = &graph->edge_list[i];
            memory_node *from = &graph->nodes[edge->from], *to = &graph->nodes[edge->to];
            if (is_equal_shape(edge) && from->is_array != to->is_array) {
                from->is_array = to->is_array = true;
                changed = true;
            }
        }
    }
}

void lilac_memory_graph_init(memory_graph *graph, lilac_arena *arena, lilac_tile_function *function,
                             const lilac_target *target) {
    *graph = (memory_graph){.function = function, .target = target, .arena = arena};
    lilac_engine_axis_facts(&graph->axis, arena, function);
    graph->node_of = lilac_arena_array(arena, uint32_t, function->value_count + 1);
    graph->nodes = lilac_arena_array(arena, memory_node, memory_count(function->body) + 1);
    add_nodes(graph, function->body);
    add_operations(graph, function->body, 1);
    find_arrays(graph);
}

/* ---- relations --------------------------------------------------------------------------- */

bool lilac_memory_fits(const memory_node *node, const lilac_layout *layout) {
    const lilac_tile_type *type = node->value->type;
    const uint32_t rank = layout->out_count;
    if (rank + node->is_array != type->rank || rank > type->alloc_rank) {
        return false;
    }
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t size = type->alloc_shape[type->alloc_rank - rank + d];
        if (size != INT64_C(1) << layout->out[d].bits) {
            return false;
        }
    }
    return true;
}

/* The layout of the result of a view from that of its operand; or the reverse. */
static bool follow(lilac_layout *result, const memory_edge *edge, const memory_node *to,
                   const lilac_layout *layout, bool backward) {
    if (edge->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS) {
        const lilac_tile_attribute *attribute = lilac_tile_find(&edge->op->attributes, "order");
        uint32_t order[LILAC_MAX_RANK];
        for (uint32_t i = 0; i < attribute->count; i++) {
            const uint32_t dim = (uint32_t)attribute->integers[i];
            order[backward ? dim : i] = backward ? i : dim;
        }
        if (layout->out_count != attribute->count) {
            return false;
        }
        lilac_layout_transpose(result, layout, order);
        return true;
    }
    if (edge->op->code == LILAC_TILE_OP_TTG_MEMDESC_RESHAPE) {
        const lilac_tile_type *type = to->value->type;
        uint32_t bits[LILAC_MAX_RANK];
        for (uint32_t i = 0; i < type->rank; i++) {
            if (power_of_two_in(type->shape[i]) != type->shape[i]) {
                return false;
            }
            bits[i] = log2_of(type->shape[i]);
        }
        return lilac_layout_reshape(result, layout, type->rank, bits, NULL);
    }
    *result = *layout;
    return true;
}

void lilac_memory_forget(memory_graph *graph, uint32_t group) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (lilac_memory_group(graph, i) == group) {
            graph->nodes[i].has_layout = false;
        }
    }
}

/* A named layout is that of the result too, except where a view maps coordinates. */
static bool spread_edge(memory_graph *graph, const memory_edge *edge, bool *changed) {
    memory_node *from = &graph->nodes[edge->from], *to = &graph->nodes[edge->to];
    if (!from->has_layout && !to->has_layout) {
        return true;
    }
    const bool backward = !from->has_layout;
    const memory_node *known = backward ? to : from;
    memory_node *other = backward ? from : to;
    const bool same = is_equal_shape(edge) || edge->op->code == LILAC_TILE_OP_TTG_MEMDESC_INDEX;
    const bool padded =
        known->encoding != NULL && known->encoding->kind == LILAC_ENCODING_PADDED_SHARED;
    lilac_layout layout;
    if (!follow(&layout, edge, other, &known->layout, backward)) {
        return false;
    }
    if (other->has_layout) {
        return lilac_layout_equal(&layout, &other->layout);
    }
    if (!lilac_memory_fits(other, &layout) || (padded && !same)) {
        return false;
    }
    other->layout = layout;
    other->encoding = same ? known->encoding : NULL;
    other->has_layout = *changed = true;
    return true;
}

const lilac_tile_op *lilac_memory_spread(memory_graph *graph, uint32_t group) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->edge_count; i++) {
            const memory_edge *edge = &graph->edge_list[i];
            if (lilac_memory_group(graph, edge->from) == group &&
                !spread_edge(graph, edge, &changed)) {
                return edge->op;
            }
        }
    }
    return NULL;
}

/* M⁻¹ of the coordinates at which a subslice begins. */
static uint64_t subslice_offset(const lilac_layout *layout, const lilac_tile_op *op) {
    const lilac_tile_attribute *offsets = lilac_tile_find(&op->attributes, "offsets");
    uint64_t places[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout inverse;
    lilac_reason why;
    if (offsets->count != layout->out_count || !lilac_layout_pseudoinvert(&inverse, layout, &why)) {
        return 0;
    }
    for (uint32_t d = 0; d < layout->out_count; d++) {
        places[d] = (uint64_t)offsets->integers[d];
    }
    const int out = lilac_layout_out(&inverse, "offset");
    const uint64_t place = lilac_layout_apply(&inverse, lilac_layout_pack(layout, places));
    return out < 0 ? 0 : lilac_layout_coordinate(&inverse, place, (uint32_t)out);
}

void lilac_memory_find_shifts(memory_graph *graph, uint32_t group) {
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (lilac_memory_group(graph, i) == group) {
            graph->nodes[i].shift = 0;
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < graph->edge_count; i++) {
            const memory_edge *edge = &graph->edge_list[i];
            const memory_node *from = &graph->nodes[edge->from];
            memory_node *to = &graph->nodes[edge->to];
            if (lilac_memory_group(graph, edge->from) != group) {
                continue;
            }
            uint64_t shift = to->shift | from->shift;
            if (edge->op->code == LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE) {
                shift |= subslice_offset(&from->layout, edge->op);
            }
            changed |= shift != to->shift;
            to->shift = shift;
        }
    }
}
