/* layout_constraints: which values must have one layout, and which layouts follow from each other.
 *
 * Nodes are the tensors that are computed once (VALUE_FIXED) and the anchors. The column `relate`
 * of the table of layout relations (transfer.c) names the function that adds the constraints of one
 * operation. There are two kinds:
 *
 *   equality   two nodes must have one layout: their equality classes are united
 *   edge       a layout at one node gives a layout at the other through the operation's transfer
 *              functions; or, without an operation, the layouts should be equal
 *
 *     %v = tt.load %p          edge %p – load     edge load – %v
 *     %e = math.exp %v         %v = %e
 *     %s = tt.reduce %e        %e = reduce        edge reduce – %s, the slice
 *     scf.yield %s             %s = the iteration argument = the result of the loop
 */
#include "layouts/assign.h"

#include <lilac/tile_loops.h>

#include <string.h>

/* The lower node becomes the root, so that results depend on the program only. */
void lilac_propagate_unite(uint32_t *parent, uint32_t a, uint32_t b) {
    a = lilac_propagate_find(parent, a);
    b = lilac_propagate_find(parent, b);
    if (a < b) {
        parent[b] = a;
    } else {
        parent[a] = b;
    }
}

static bool is_fixed(const assignment *a, const lilac_tile_value *value) {
    return a->kind[value->id] == VALUE_FIXED;
}

static void unite(assignment *a, uint32_t x, uint32_t y) {
    lilac_propagate_unite(a->equality_class, x, y);
}

static void unite_values(assignment *a, const lilac_tile_value *x, const lilac_tile_value *y) {
    if (is_fixed(a, x) && is_fixed(a, y)) {
        unite(a, x->id, y->id);
    }
}

/* An edge over operand 0 and result 0 of an operation, or (op is NULL) between two nodes. */
static void add_edge(assignment *a, const lilac_tile_op *op, uint32_t from, uint32_t to) {
    a->edges[a->edge_count++] = (layout_edge){.op = op, .from = from, .to = to};
}

/* All operands and results have one layout. */
void lilac_relate_all(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    const lilac_tile_value *first = NULL;
    for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
        const lilac_tile_value *value =
            i < op->operand_count ? op->operands[i].value : &op->results[i - op->operand_count];
        if (!is_fixed(a, value)) {
            continue;
        }
        if (first != NULL) {
            unite(a, first->id, value->id);
        }
        first = value;
    }
}

/* The data and the mask of a memory operation should have its layout. */
void lilac_relate_memory(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->anchor->node;
    listed->anchor->first_link = a->edge_count;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (is_fixed(a, op->operands[i].value)) {
            add_edge(a, NULL, op->operands[i].value->id, node);
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (is_fixed(a, &op->results[i])) {
            add_edge(a, NULL, node, op->results[i].id);
        }
    }
    listed->anchor->link_count = a->edge_count - listed->anchor->first_link;
}

/* Reductions and joins: the operands have one layout, the results have one layout, and the
 * operation is the edge between them. */
void lilac_relate_sides(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->anchor->node;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (is_fixed(a, op->operands[i].value)) {
            unite(a, op->operands[i].value->id, node);
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        unite_values(a, &op->results[0], &op->results[i]);
        if (i == 0 && is_fixed(a, &op->results[0])) {
            add_edge(a, op, node, op->results[0].id);
        }
    }
}

/* The index and the result have one layout. The source should have it, if it has their shape. */
void lilac_relate_gather(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->anchor->node;
    const lilac_tile_value *source = op->operands[0].value, *index = op->operands[1].value;
    unite(a, op->results[0].id, node);
    if (is_fixed(a, index)) {
        unite(a, index->id, node);
    }
    if (is_fixed(a, source) && lilac_layout_same_shape(source->type, op->results[0].type)) {
        add_edge(a, NULL, source->id, node);
    }
}

/* The accumulator and the result have one layout. */
void lilac_relate_dot(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    const uint32_t node = listed->anchor->node;
    unite(a, op->results[0].id, node);
    if (is_fixed(a, op->operands[2].value)) {
        unite(a, op->operands[2].value->id, node);
    }
}

/* All operands and results and the anchor have one layout. */
void lilac_relate_scan(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    lilac_relate_all(a, listed);
    for (uint32_t i = 0; i < op->result_count; i++) {
        unite(a, op->results[i].id, listed->anchor->node);
    }
}

/* The results have one layout, and the operation is the edge from operand 0. */
void lilac_relate_shape(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    for (uint32_t i = 1; i < op->result_count; i++) {
        unite_values(a, &op->results[0], &op->results[i]);
    }
    if (is_fixed(a, op->operands[0].value) && is_fixed(a, &op->results[0])) {
        add_edge(a, op, op->operands[0].value->id, op->results[0].id);
    }
}

/* The sources and the receivers of a phi have one layout. So have the values that a branch passes
 * and the arguments of its successors. */
void lilac_relate_control(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    for (uint32_t i = 0, count = lilac_tile_phi_count(op); i < count; i++) {
        lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        for (uint32_t k = 0; k < phi.source_count; k++) {
            unite_values(a, phi.sources[k]->value, phi.receivers[0]);
        }
        if (phi.receiver_count > 1) {
            unite_values(a, phi.receivers[1], phi.receivers[0]);
        }
    }
    for (uint32_t i = 0; op->successor_count > 0 && i < op->operand_count; i++) {
        const lilac_tile_value *receiver = lilac_tile_receiver(&op->operands[i]);
        if (receiver != NULL) {
            unite_values(a, op->operands[i].value, receiver);
        }
    }
}

void lilac_layout_constraints(assignment *a) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->op_count; i++) {
        most += a->ops[i].op->operand_count + a->ops[i].op->result_count;
    }
    a->edges = lilac_arena_array(a->arena, layout_edge, most + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        if (a->ops[i].relation->relate != NULL) {
            a->ops[i].relation->relate(a, &a->ops[i]);
        }
    }
}
