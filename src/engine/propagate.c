/* propagate: from what memory operations want to one layout for every value.
 *
 *   nodes        tensors that are computed once, and sites (memory operations, reductions, joins)
 *   groups       nodes that must agree: operands and results of element-wise operations, what loops
 *                and branches carry, a memory operation and its pointers
 *   components   groups that would like to agree: a memory operation and its data and mask. Where
 *                they do not, a conversion stands between
 *   edges        components linked by a shape operation, a reduction, a join or a split
 *
 *       load ─ x ─ (x - max) ─ exp ─ store        one component [16, 256]
 *                │        ╲
 *              reduce    broadcast ─ expand_dims  edges
 *                ╰── max ──────────────╯          another [16]
 *
 * Each component takes the layout its memory operations like best together; one that would pay more
 * than a conversion costs leaves with its group. Then the components are settled, the one that
 * moves most first, results of reductions after their operands; a settled component settles its
 * neighbours over edges, breadth first, unless a neighbour's own memory operations would lose by
 * it. What nothing reaches gets a default.
 */
#include "assign.h"

#include <string.h>

/* Bytes of traffic that a conversion between threads costs as much as. The lowering refuses those
 * for now, so the price is set where the choice is clear: an access that is only narrower than it
 * could be (at most its own bytes more) follows the others, one that would touch a sector for each
 * element does not, and its kernel is refused rather than made many times slower. */
#define BARRIER_BYTES      1024
#define CONVERSION_PERCENT 100
/* Of the traffic of what a component would follow, how much its own may grow. */
#define FOLLOW_PERCENT 25

typedef struct component {
    layout_site *sites;         /* linked by next */
    const lilac_layout *best;   /* what they like */
    int64_t cost;               /* of that */
    const lilac_layout *chosen; /* NULL: not yet */
    int64_t bearable;           /* what a memory operation here may lose before it leaves */
    uint32_t *edges;            /* indices */
    uint32_t edge_count;
} component;

typedef struct propagation {
    assignment *a;
    component *components; /* by component root */
    uint32_t *queue;       /* of component roots */
} propagation;

/* ---- groups ----------------------------------------------------------------------------- */

uint32_t lilac_propagate_find(uint32_t *parent, uint32_t node) {
    while (parent[node] != node) {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    return node;
}

/* The lower node stays root, so that results do not depend on anything but the program. */
static void unite(uint32_t *parent, uint32_t a, uint32_t b) {
    a = lilac_propagate_find(parent, a);
    b = lilac_propagate_find(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static bool is_fixed(const assignment *a, const lilac_tile_value *value) {
    return a->kind[value->id] == VALUE_FIXED;
}

static void same(assignment *a, const lilac_tile_value *x, const lilac_tile_value *y) {
    if (is_fixed(a, x) && is_fixed(a, y))
        unite(a->group, x->id, y->id);
}

static void link_nodes(assignment *a, const lilac_tile_op *op, uint32_t from, uint32_t to) {
    a->edges[a->edge_count++] = (layout_edge){op, from, to};
}

static void relate_all(assignment *a, const lilac_tile_op *op) {
    const lilac_tile_value *first = NULL;
    for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
        const lilac_tile_value *value =
            i < op->operand_count ? op->operands[i].value : &op->results[i - op->operand_count];
        if (!is_fixed(a, value))
            continue;
        if (first != NULL)
            unite(a->group, first->id, value->id);
        first = value;
    }
}

static void relate_memory(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->site->node;
    if (is_fixed(a, op->operands[0].value))
        unite(a->group, op->operands[0].value->id, node);
    for (uint32_t i = 1; i < op->operand_count; i++)
        if (is_fixed(a, op->operands[i].value))
            link_nodes(a, NULL, op->operands[i].value->id, node);
    for (uint32_t i = 0; i < op->result_count; i++)
        if (is_fixed(a, &op->results[i]))
            link_nodes(a, NULL, node, op->results[i].id);
}

/* Reductions and joins: operands agree, results agree, and the two sides are linked. */
static void relate_sides(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->site->node;
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (is_fixed(a, op->operands[i].value))
            unite(a->group, op->operands[i].value->id, node);
    for (uint32_t i = 0; i < op->result_count; i++) {
        same(a, &op->results[0], &op->results[i]);
        if (i == 0 && is_fixed(a, &op->results[0]))
            link_nodes(a, op, node, op->results[0].id);
    }
}

static void relate_shape(assignment *a, const lilac_tile_op *op) {
    for (uint32_t i = 1; i < op->result_count; i++)
        same(a, &op->results[0], &op->results[i]);
    if (is_fixed(a, op->operands[0].value) && is_fixed(a, &op->results[0]))
        link_nodes(a, op, op->operands[0].value->id, op->results[0].id);
}

static const lilac_tile_op *terminator(const lilac_tile_region *region) {
    return region->first != NULL ? region->first->last : NULL;
}

static void relate_control(assignment *a, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR: {
        const lilac_tile_block *body = op->regions[0]->first;
        const lilac_tile_op *yield = terminator(op->regions[0]);
        for (uint32_t i = 0; i < op->result_count; i++) {
            same(a, op->operands[3 + i].value, &op->results[i]);
            same(a, body->arguments[1 + i], &op->results[i]);
            same(a, yield->operands[i].value, &op->results[i]);
        }
        break;
    }
    case LILAC_TILE_OP_SCF_IF:
        for (uint32_t r = 0; r < op->region_count; r++) {
            const lilac_tile_op *yield = terminator(op->regions[r]);
            for (uint32_t i = 0; yield != NULL && i < op->result_count; i++)
                same(a, yield->operands[i].value, &op->results[i]);
        }
        break;
    case LILAC_TILE_OP_SCF_WHILE: {
        const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
        const lilac_tile_op *condition = before->last, *yield = after->last;
        for (uint32_t i = 0; i < before->argument_count; i++) {
            same(a, op->operands[i].value, before->arguments[i]);
            same(a, yield->operands[i].value, before->arguments[i]);
        }
        for (uint32_t i = 0; i < op->result_count; i++) {
            same(a, condition->operands[1 + i].value, &op->results[i]);
            same(a, after->arguments[i], &op->results[i]);
        }
        break;
    }
    case LILAC_TILE_OP_CF_BR:
    case LILAC_TILE_OP_CF_COND_BR: {
        uint32_t at = op->code == LILAC_TILE_OP_CF_COND_BR ? 1 : 0;
        for (uint32_t s = 0; s < op->successor_count; s++)
            for (uint32_t i = 0; i < op->successors[s]->argument_count; i++, at++)
                same(a, op->operands[at].value, op->successors[s]->arguments[i]);
        break;
    }
    default: /* yields are read by what they end */
        break;
    }
}

static void relate(assignment *a) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->op_count; i++)
        most += a->ops[i].op->operand_count + a->ops[i].op->result_count;
    a->edges = lilac_arena_array(a->arena, layout_edge, most + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const listed_op *listed = &a->ops[i];
        switch (listed->rule) {
        case RULE_SAME:
            relate_all(a, listed->op);
            break;
        case RULE_MEMORY:
            relate_memory(a, listed);
            break;
        case RULE_REDUCE:
        case RULE_JOIN:
            relate_sides(a, listed);
            break;
        case RULE_SHAPE:
        case RULE_SPLIT:
            relate_shape(a, listed->op);
            break;
        case RULE_CONTROL:
            relate_control(a, listed->op);
            break;
        default:
            break;
        }
    }
}

/* ---- components ------------------------------------------------------------------------- */

static uint32_t component_of(propagation *p, uint32_t node) {
    return lilac_propagate_find(p->a->component, lilac_propagate_find(p->a->group, node));
}

static void build_components(propagation *p) {
    assignment *a = p->a;
    for (uint32_t i = 0; i < a->edge_count; i++)
        if (a->edges[i].op == NULL)
            unite(a->component, lilac_propagate_find(a->group, a->edges[i].from),
                  lilac_propagate_find(a->group, a->edges[i].to));
    for (uint32_t i = a->site_count; i-- > 0;) {
        if (!a->sites[i].is_memory)
            continue;
        component *c = &p->components[component_of(p, a->sites[i].node)];
        a->sites[i].next = c->sites;
        c->sites = &a->sites[i];
    }
    /* edges of each: count, then fill */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < a->edge_count; i++) {
            if (a->edges[i].op == NULL)
                continue;
            uint32_t ends[2] = {component_of(p, a->edges[i].from), component_of(p, a->edges[i].to)};
            for (uint32_t e = 0; e < 2; e++) {
                component *c = &p->components[ends[e]];
                if (pass == 1)
                    c->edges[c->edge_count] = i;
                c->edge_count++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < a->node_count; i++) {
            component *c = &p->components[i];
            if (c->edge_count > 0)
                c->edges = lilac_arena_array(a->arena, uint32_t, c->edge_count);
            c->edge_count = 0;
        }
    }
}

static int64_t cost_in(const component *c, const lilac_layout *layout) {
    int64_t total = 0;
    for (const layout_site *site = c->sites; site != NULL; site = site->next)
        total += lilac_coalesce_cost(&site->access, layout);
    return total;
}

static int64_t conversion_cost(const memory_access *access) {
    int64_t bytes = lilac_tile_element_count(access->type) * access->bytes;
    return (BARRIER_BYTES + bytes * CONVERSION_PERCENT / 100) * access->weight;
}

/* A memory operation that would lose more by following than by converting leaves with its group. */
static void part(propagation *p, component *c, const lilac_layout *layout) {
    assignment *a = p->a;
    for (const layout_site *site = c->sites; site != NULL; site = site->next) {
        const memory_access *access = &site->access;
        const lilac_layout *own =
            lilac_coalesce_blocked(a, access->type, access->order, access->vector);
        if (own == NULL)
            return;
        int64_t loss = lilac_coalesce_cost(access, layout) - lilac_coalesce_cost(access, own);
        uint32_t root = lilac_propagate_find(a->group, site->node);
        if (loss > conversion_cost(access) + c->bearable && a->layout[root] == NULL)
            a->layout[root] = own;
    }
}

static void settle(propagation *p, uint32_t root, const lilac_layout *layout) {
    assignment *a = p->a;
    uint32_t head = 0, tail = 0;
    p->components[root].chosen = layout;
    p->queue[tail++] = root;
    while (head < tail) {
        uint32_t from = p->queue[head++];
        component *here = &p->components[from];
        for (uint32_t i = 0; i < here->edge_count; i++) {
            const layout_edge *edge = &a->edges[here->edges[i]];
            uint32_t ends[2] = {component_of(p, edge->from), component_of(p, edge->to)};
            bool forward = ends[0] == from;
            component *there = &p->components[ends[forward]];
            if (there->chosen != NULL)
                continue;
            const lilac_layout *moved = forward
                                            ? lilac_transfer_forward(a, edge->op, here->chosen)
                                            : lilac_transfer_backward(a, edge->op, here->chosen);
            if (moved == NULL)
                continue;
            if (there->sites != NULL) {
                int64_t loss = cost_in(there, moved) - there->cost;
                int64_t bearable =
                    conversion_cost(&there->sites->access) + here->cost * FOLLOW_PERCENT / 100;
                if (loss > bearable)
                    continue;
            }
            there->chosen = moved;
            p->queue[tail++] = ends[forward];
        }
    }
}

/* Component roots with memory operations, the costliest first (ties in program order). */
static uint32_t by_cost(propagation *p, uint32_t *roots) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->a->node_count; i++)
        if (p->components[i].sites != NULL)
            roots[count++] = i;
    uint32_t *spare = lilac_arena_array(p->a->arena, uint32_t, count + 1);
    for (uint32_t width = 1; width < count; width *= 2) { /* merge sort: stable */
        for (uint32_t low = 0; low < count; low += 2 * width) {
            uint32_t middle = low + width < count ? low + width : count;
            uint32_t high = middle + width < count ? middle + width : count;
            uint32_t i = low, j = middle;
            for (uint32_t at = low; at < high; at++) {
                bool left = j == high || (i < middle && p->components[roots[i]].cost >=
                                                            p->components[roots[j]].cost);
                spare[at] = left ? roots[i++] : roots[j++];
            }
        }
        memcpy(roots, spare, count * sizeof *roots);
    }
    return count;
}

/* Is it the result of a reduction? Such a component waits for the operand's, which is larger and
 * says where the results come out. */
static bool is_reduced_to(propagation *p, uint32_t root) {
    const component *c = &p->components[root];
    for (uint32_t i = 0; i < c->edge_count; i++) {
        const layout_edge *edge = &p->a->edges[c->edges[i]];
        if (edge->op->code == LILAC_TILE_OP_TT_REDUCE && component_of(p, edge->to) == root)
            return true;
    }
    return false;
}

static const lilac_tile_type *type_of_node(const assignment *a, uint32_t node) {
    if (node < a->value_count)
        return a->value[node]->type;
    return a->sites[node - a->value_count].op->operands[0].value->type;
}

void lilac_propagate_layouts(assignment *a) {
    propagation p = {.a = a};
    p.components = lilac_arena_array(a->arena, component, a->node_count + 1);
    p.queue = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    uint32_t *roots = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    for (uint32_t i = 0; i < a->node_count; i++)
        a->group[i] = a->component[i] = i;
    relate(a);
    build_components(&p);
    for (uint32_t i = 0; i < a->node_count && !a->failed; i++) {
        component *c = &p.components[i];
        if (c->sites == NULL)
            continue;
        c->best = lilac_coalesce_best(a, c->sites, &c->cost);
    }
    if (a->failed)
        return;
    uint32_t count = by_cost(&p, roots);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count; i++)
            if (p.components[roots[i]].chosen == NULL &&
                (pass == 1 || !is_reduced_to(&p, roots[i])))
                settle(&p, roots[i], p.components[roots[i]].best);
    for (uint32_t i = 0; i < a->node_count && !a->failed; i++) {
        bool tensor = i >= a->value_count || a->kind[i] == VALUE_FIXED;
        if (!tensor || component_of(&p, i) != i || p.components[i].chosen != NULL)
            continue;
        const lilac_layout *layout = lilac_coalesce_default(a, type_of_node(a, i));
        if (layout != NULL)
            settle(&p, i, layout);
    }
    for (uint32_t i = 0; i < count && !a->failed; i++)
        part(&p, &p.components[roots[i]], p.components[roots[i]].chosen);
    for (uint32_t i = 0; i < a->node_count; i++)
        if (lilac_propagate_find(a->group, i) == i && a->layout[i] == NULL)
            a->layout[i] = p.components[component_of(&p, i)].chosen;
}

const lilac_layout *lilac_propagate_layout(assignment *a, uint32_t node) {
    return a->layout[lilac_propagate_find(a->group, node)];
}
