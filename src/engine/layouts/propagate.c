/* propagate: from the layouts that memory operations propose to one layout for every value.
 *
 *   nodes             tensors that are computed once, and anchors (memory operations, reductions,
 *                     scans, gathers, joins)
 *   equality classes  nodes that must have one layout (layout_constraints.c)
 *   components        classes that should have one layout: a memory operation and its pointers,
 *                     data and mask. Where the layouts differ, a conversion is needed
 *   edges             shape operations, reductions, joins and splits between components
 *
 *       load ─ x ─ (x - max) ─ exp ─ store        one component [16, 256]
 *                │        ╲
 *              reduce    broadcast ─ expand_dims  edges
 *                ╰── max ──────────────╯          another component [16]
 *
 *   1  Every component with memory operations chooses its best candidate: the lowest sum of the
 *      prices of its accesses and collective operations. In a second round it adds what its
 *      neighbours lose in the layout that follows from its own (find_best).
 *   2  A memory operation may also be detached: it has a cheaper layout of its own, and
 *      conversions, priced by their plans, join it to the component. Its price is the lower one of
 *      the two (anchor_price). So the two sides of a transpose are chosen as a pair.
 *   3  The components are settled in descending order of price, results of reductions after their
 *      operands. A settled component settles its neighbours breadth first, unless a neighbour loses
 *      more than a conversion costs (settle). A component that no anchor reaches gets the default.
 *   4  Where neighbours still disagree, a local search improves both (refine.c).
 *   5  Memory operations that are cheaper detached get their own layout (detach_anchors).
 */
#include "layouts/propagate.h"

#include <string.h>

#define MOST_CANDIDATES 32
/* A component with more memory operations than this chooses among the plain layouts only. The time
 * of the choice then attached proportional to the size of the program. */
#define MANY_ACCESSES   32
#define MOST_RECOMPUTED 6 /* depth of the chains that rematerialise.c computes again */
/* Conversions whose price times HIDDEN_RATIO is at most that of the sectors of the access are
 * mostly hidden by the accesses of other blocks; 1/HIDDEN_DIVISOR of their price remains
 * (bench/results/decisions.md). */
#define HIDDEN_RATIO   3
#define HIDDEN_DIVISOR 8
/* neighbour_losses: components without memory operations on a path, and components looked at. */
#define MOST_PATH       3
#define MOST_NEIGHBOURS 32
/* Weight of element-wise work on copies. Few threads then have work, so they hide less of its
 * latency. */
#define COPIED_WORK 4
#define MOST_WORK   10000 /* instructions per element of one chain */

/* ---- components ------------------------------------------------------------------------- */

uint32_t lilac_propagate_find(uint32_t *parent, uint32_t node) {
    while (parent[node] != node) {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    return node;
}

uint32_t lilac_propagate_component(propagation *p, uint32_t node) {
    return lilac_propagate_find(p->a->component, lilac_propagate_find(p->a->equality_class, node));
}

/* Adds the instructions per element of the element-wise operations to their components: operations
 * whose results are computed once, and chains of cheap values that these and stores read as data.
 * Addresses and masks are left out, because a thread computes few of them for each vector. */
static void add_work(propagation *p) {
    assignment *a = p->a;
    int64_t *chain = lilac_arena_array(a->arena, int64_t, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const listed_op *listed = &a->ops[i];
        const lilac_tile_op *op = listed->op;
        const layout_rule rule = listed->relation->rule;
        bool memory = rule == RULE_MEMORY;
        int64_t work = rule == RULE_SAME ? lilac_engine_issues(op) : 0;
        if (!memory && rule != RULE_SAME && rule != RULE_SHAPE) {
            continue;
        }
        for (uint32_t k = memory ? 1 : 0; k < op->operand_count && !(memory && k > 1); k++) {
            work = min_i64(work + chain[op->operands[k].value->id], MOST_WORK);
        }
        if (op->result_count == 1 && a->kind[op->results[0].id] == VALUE_CHEAP) {
            chain[op->results[0].id] = work;
        } else if (memory ? listed->anchor->access.global.kind != LILAC_PLAN_LOAD
                          : op->result_count > 0) {
            p->components[lilac_propagate_component(p, memory ? listed->anchor->node
                                                              : op->results[0].id)]
                .work += listed->weight * work;
        }
    }
}

/* Lists the edges of each component: the first pass counts them, the second one fills. */
static void list_edges(propagation *p) {
    assignment *a = p->a;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < a->edge_count; i++) {
            if (a->edges[i].op == NULL) {
                continue;
            }
            uint32_t ends[2] = {lilac_propagate_component(p, a->edges[i].from),
                                lilac_propagate_component(p, a->edges[i].to)};
            for (uint32_t e = 0; e < 2; e++) {
                component *c = &p->components[ends[e]];
                if (pass == 1) {
                    c->edges[c->edge_count] = i;
                }
                c->edge_count++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < a->node_count; i++) {
            component *c = &p->components[i];
            if (c->edge_count > 0) {
                c->edges = lilac_arena_array(a->arena, uint32_t, c->edge_count);
            }
            c->edge_count = 0;
        }
    }
}

static void build_components(propagation *p) {
    assignment *a = p->a;
    for (uint32_t i = 0; i < a->edge_count; i++) {
        if (a->edges[i].op == NULL) {
            lilac_propagate_unite(a->component,
                                  lilac_propagate_find(a->equality_class, a->edges[i].from),
                                  lilac_propagate_find(a->equality_class, a->edges[i].to));
        }
    }
    add_work(p);
    for (uint32_t i = a->anchor_count; i-- > 0;) {
        component *c = &p->components[lilac_propagate_component(p, a->anchors[i].node)];
        layout_anchor **list = a->anchors[i].is_memory ? &c->accesses : &c->collectives;
        if (!a->anchors[i].is_memory && a->anchors[i].relation->price == NULL) {
            continue;
        }
        a->anchors[i].next = *list;
        *list = &a->anchors[i];
        if (a->anchors[i].relation->rule == RULE_DOT &&
            (c->dot == NULL ||
             lilac_dot_rank(a, a->anchors[i].op) > lilac_dot_rank(a, c->dot->op))) {
            c->dot = &a->anchors[i];
        }
    }
    list_edges(p);
}

/* ---- prices ----------------------------------------------------------------------------- */

/* Has the component neither neighbours nor collective operations? */
static bool is_alone(const component *c) {
    return c->edge_count == 0 && c->collectives == NULL;
}

/* Do the accesses of the component differ in the order of their dimensions? */
static bool has_two_orders(const component *c) {
    for (const layout_anchor *anchor = c->accesses; anchor != NULL; anchor = anchor->next) {
        if (memcmp(anchor->access.global.order, c->accesses->access.global.order,
                   anchor->access.type->rank * sizeof *anchor->access.global.order) != 0) {
            return true;
        }
    }
    return false;
}

/* Marks the accesses of components that only reorder data, such as a transpose outside loops. */
static void find_streams(propagation *p) {
    for (uint32_t i = 0; i < p->a->node_count; i++) {
        component *c = &p->components[i];
        bool streams = c->accesses != NULL && is_alone(c) && has_two_orders(c);
        for (const layout_anchor *anchor = c->accesses; anchor != NULL; anchor = anchor->next) {
            streams = streams && anchor->weight == 1;
        }
        for (layout_anchor *anchor = c->accesses; anchor != NULL; anchor = anchor->next) {
            anchor->access.streams = streams;
        }
    }
}

static const lilac_tile_value *value_of_edge(const assignment *a, const layout_edge *edge) {
    return a->value[edge->from < a->value_count ? edge->from : edge->to];
}

/* The only operand that is computed once, of a cheap operation that rematerialise.c may compute
 * again in another layout; NULL: none, or several. *index: its number. */
static const lilac_tile_value *only_source(const assignment *a, const lilac_tile_value *value,
                                           uint32_t *index) {
    const lilac_tile_op *op = value->op;
    const lilac_tile_value *only = NULL;
    if (op == NULL || op->result_count != 1 || op->region_count != 0 ||
        lilac_engine_is_expensive(op->code) ||
        (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) == 0 ||
        (lilac_layout_relation(op)->rule != RULE_SAME &&
         lilac_layout_relation(op)->rule != RULE_SHAPE)) {
        return NULL;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_value *operand = op->operands[i].value;
        if (a->kind[operand->id] != VALUE_FIXED) {
            continue;
        }
        if (only != NULL && only != operand) {
            return NULL;
        }
        only = operand;
        *index = i;
    }
    return only;
}

/* The price of an operand of an access in the layout `to`. rematerialise.c computes pointers,
 * widened numbers and broadcasts again, from the narrowest or smallest value of the chain, which it
 * converts. */
static int64_t operand_price(assignment *a, const lilac_tile_value *value, const lilac_layout *from,
                             const lilac_layout *to) {
    int64_t least = lilac_price_conversion(a, from, to, lilac_tile_element_bits(value->type));
    uint32_t index;
    for (uint32_t depth = 0; depth < MOST_RECOMPUTED; depth++) {
        const lilac_tile_value *source = only_source(a, value, &index);
        if (source == NULL) {
            break;
        }
        from = lilac_transfer_backward(a, value->op, index, from);
        to = lilac_transfer_backward(a, value->op, index, to);
        if (from == NULL || to == NULL) {
            break;
        }
        value = source;
        least = min_i64(least,
                        lilac_price_conversion(a, from, to, lilac_tile_element_bits(value->type)));
    }
    return least;
}

/* The price of the conversions around one access, for one execution, without the part that other
 * blocks hide. In a component that only reorders data, conversions that are far cheaper than the
 * traffic are mostly hidden. */
static int64_t exposed_price(const assignment *a, const memory_access *access, int64_t moves) {
    if (!access->streams) {
        return moves;
    }
    int64_t bytes = lilac_tile_element_count(access->type) * access->global.element_bytes;
    int64_t traffic = bytes * a->target->arch->costs->sector / a->target->arch->sector_bytes;
    return moves * HIDDEN_RATIO <= traffic ? moves / HIDDEN_DIVISOR : moves;
}

/* The price of a memory operation in the cheapest of its own layouts, with the conversions of its
 * data from and to `layout`. *taken is that layout. */
static int64_t detached_price(assignment *a, layout_anchor *anchor, const lilac_layout *layout,
                              const lilac_layout **taken) {
    int64_t least = PRICE_IMPOSSIBLE;
    if (anchor->own_count == 0) {
        lilac_coalesce_own(a, anchor);
    }
    for (uint32_t i = 0; i < anchor->own_count; i++) {
        const lilac_layout *own = lilac_with_blocks(a, anchor->own[i], layout);
        if (own == NULL) {
            continue;
        }
        /* a conversion reads all copies of a loaded value, so no warp may skip the load */
        int64_t cost = lilac_coalesce_price(a, &anchor->access, own, false);
        int64_t moves = 0;
        for (uint32_t k = 0; k < anchor->link_count && moves < PRICE_IMPOSSIBLE; k++) {
            const layout_edge *link = &a->edges[anchor->first_link + k];
            bool operand = link->to == anchor->node;
            const lilac_tile_value *value = value_of_edge(a, link);
            moves += operand ? operand_price(a, value, layout, own)
                             : lilac_price_conversion(a, own, layout,
                                                      lilac_tile_element_bits(value->type));
        }
        cost += lilac_price_times(exposed_price(a, &anchor->access, moves), anchor->weight);
        if (cost < least) {
            least = cost;
            *taken = own;
        }
    }
    return least;
}

/* The price of a memory operation whose component has `layout`. *taken: its own layout if it is
 * cheaper detached; otherwise NULL. */
static int64_t anchor_price(assignment *a, layout_anchor *anchor, const lilac_layout *layout,
                            const lilac_layout **taken) {
    int64_t attached = lilac_coalesce_price(a, &anchor->access, layout, anchor->access.one_copy);
    *taken = NULL;
    if (anchor->own_count == 0) {
        lilac_coalesce_own(a, anchor);
    }
    if (anchor->own_count == 0 || anchor->link_count == 0) {
        return attached;
    }
    const lilac_layout *plain = lilac_with_blocks(a, anchor->own[0], layout);
    int64_t least = lilac_coalesce_price(a, &anchor->access, plain != NULL ? plain : anchor->own[0],
                                         anchor->access.one_copy);
    /* Nearly every useful conversion needs a barrier, so a smaller gain cannot pay for one. */
    int64_t barrier = a->target->arch->costs->barrier_block;
    if (attached <= least + barrier * a->target->num_warps * anchor->weight) {
        return attached;
    }
    const lilac_layout *own = NULL;
    int64_t detached = detached_price(a, anchor, layout, &own);
    if (detached >= attached) {
        return attached;
    }
    *taken = own;
    return detached;
}

/* The price of the exchange between blocks that the use of an operand by a product needs. */
static int64_t product_price(assignment *a, const product_use *use, const lilac_layout *layout) {
    const lilac_tile_value *value = use->operand.value;
    const lilac_layout *needed = lilac_with_blocks(a, layout, use->operand.layout);
    return needed == NULL
               ? PRICE_IMPOSSIBLE
               : lilac_price_times(lilac_price_conversion(a, layout, needed,
                                                          lilac_tile_element_bits(value->type)),
                                   use->weight);
}

int64_t lilac_propagate_price(propagation *p, const component *c, const lilac_layout *layout) {
    const lilac_layout *taken;
    int64_t total = 0;
    if (c->forced != NULL && layout != c->forced) {
        return PRICE_IMPOSSIBLE;
    }
    for (const product_use *use = c->products; use != NULL; use = use->next) {
        total += product_price(p->a, use, layout);
    }
    if (c->accesses != NULL && c->work > 0) {
        total += c->work * (is_alone(c) ? COPIED_WORK : 1) * p->a->target->arch->costs->issue *
                 lilac_coalesce_repeated(p->a, c->accesses->access.type, layout);
    }
    for (layout_anchor *anchor = c->accesses; anchor != NULL; anchor = anchor->next) {
        total += anchor_price(p->a, anchor, layout, &taken);
    }
    for (layout_anchor *anchor = c->collectives; anchor != NULL; anchor = anchor->next) {
        total += lilac_price_times(lilac_price_anchor(p->a, anchor, layout), anchor->weight);
    }
    return total;
}

const lilac_layout *lilac_propagate_across(propagation *p, const layout_edge *edge, bool forward,
                                           const lilac_layout *layout) {
    return forward ? lilac_transfer_forward(p->a, edge->op, edge->operand, layout)
                   : lilac_transfer_backward(p->a, edge->op, edge->operand, layout);
}

int64_t lilac_propagate_edge_price(propagation *p, const layout_edge *edge,
                                   const lilac_layout *from, const lilac_layout *to) {
    const lilac_tile_op *op = edge->op;
    const bool result = lilac_layout_relation(op)->converts_result;
    const lilac_layout *moved = lilac_propagate_across(p, edge, result, result ? from : to);
    if (moved == (result ? to : from)) {
        return 0;
    }
    if (moved == NULL) {
        return PRICE_IMPOSSIBLE;
    }
    const lilac_tile_value *value = result ? &op->results[0] : op->operands[edge->operand].value;
    return lilac_price_times(lilac_price_conversion(p->a, result ? moved : from,
                                                    result ? to : moved,
                                                    lilac_tile_element_bits(value->type)),
                             p->a->weight[value->id]);
}

/* The loss of the neighbours if the component `root` has `layout`: each one either adopts the
 * layout that follows or needs a conversion. The layout passes through at most `depth` components
 * without memory operations. `from`: the component that the layout came from. *budget: the number
 * of components that may still be examined. */
static int64_t neighbour_losses(propagation *p, uint32_t root, uint32_t from,
                                const lilac_layout *layout, uint32_t depth, uint32_t *budget) {
    const component *here = &p->components[root];
    int64_t total = 0;
    for (uint32_t i = 0; i<here->edge_count && * budget> 0; i++) {
        const layout_edge *edge = &p->a->edges[here->edges[i]];
        bool forward = lilac_propagate_component(p, edge->from) == root;
        uint32_t other = lilac_propagate_component(p, forward ? edge->to : edge->from);
        component *there = &p->components[other];
        if (there == here || other == from) {
            continue;
        }
        const lilac_layout *moved = lilac_propagate_across(p, edge, forward, layout);
        if (moved == NULL || moved == there->best) {
            continue;
        }
        --*budget;
        if (there->best == NULL) {
            if (depth > 0) {
                total += neighbour_losses(p, other, root, moved, depth - 1, budget);
            }
            continue;
        }
        int64_t loss = lilac_propagate_price(p, there, moved) - there->price;
        if (loss > 0) {
            const lilac_layout *ends[2] = {layout, there->best};
            loss =
                min_i64(loss, lilac_propagate_edge_price(p, edge, ends[!forward], ends[forward]));
        }
        total += max_i64(loss, 0);
    }
    return total;
}

static bool has_many_accesses(const component *c) {
    uint32_t count = 0;
    for (const layout_anchor *anchor = c->accesses; anchor != NULL; anchor = anchor->next) {
        count++;
    }
    return count > MANY_ACCESSES;
}

/* The cheapest candidate so far. */
typedef struct search {
    const lilac_layout *best;
    int64_t least, own; /* its price with the losses of neighbours, and without */
} search;

/* Compares the candidates that divide the tensors among the blocks of the cluster in one way. */
static void compare_candidates(propagation *p, uint32_t root, bool neighbours, uint32_t kinds,
                               const uint64_t *blocks, search *s) {
    const component *c = &p->components[root];
    const lilac_layout *candidates[MOST_CANDIDATES];
    uint32_t count =
        lilac_coalesce_candidates(p->a, c->accesses, kinds, blocks, candidates, MOST_CANDIDATES);
    for (const layout_anchor *anchor = c->collectives; anchor != NULL && count > 0;
         anchor = anchor->next) {
        if (anchor->relation->candidates != NULL &&
            lilac_layout_same_shape(anchor->op->results[0].type, c->accesses->access.type)) {
            count +=
                anchor->relation->candidates(p->a, anchor->op, c->accesses->access.global.order,
                                             candidates + count, MOST_CANDIDATES - count);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t cost = lilac_propagate_price(p, c, candidates[i]);
        int64_t total = cost;
        uint32_t budget = MOST_NEIGHBOURS;
        if (neighbours && (s->best == NULL || total < s->least)) {
            total += neighbour_losses(p, root, root, candidates[i], MOST_PATH, &budget);
        }
        if (s->best == NULL || total < s->least) {
            *s = (search){candidates[i], total, cost};
        }
    }
}

/* Chooses the best candidate of a component. `neighbours`: by the sum of its price and the losses
 * of its neighbours. */
static void find_best(propagation *p, uint32_t root, bool neighbours) {
    component *c = &p->components[root];
    if (c->forced != NULL) {
        return;
    }
    if (c->dot != NULL) {
        if (!neighbours && c->dot->relation->candidates(p->a, c->dot->op, NULL, &c->best, 1) > 0) {
            c->price = lilac_propagate_price(p, c, c->best);
        }
        return;
    }
    block_choices choices;
    search s = {0};
    bool varied = !has_many_accesses(c) && (c->collectives != NULL || has_two_orders(c));
    lilac_block_choices(&choices, p->a, c->accesses->access.type);
    for (const product_use *use = c->products; use != NULL; use = use->next) {
        if (lilac_layout_same_shape(use->operand.value->type, c->accesses->access.type)) {
            lilac_block_choices_add(&choices, use->operand.layout, p->a);
        }
    }
    if (neighbours && !varied && choices.count == 1) {
        return;
    }
    /* Neighbours would get the copies too, and the price does not include their work. */
    uint32_t kinds = (varied ? CANDIDATES_VARIED : 0) | (is_alone(c) ? CANDIDATES_COPIES : 0);
    for (uint32_t i = 0; i < choices.count && !p->a->failed; i++) {
        compare_candidates(p, root, neighbours, kinds, choices.columns[i], &s);
    }
    c->best = s.best;
    c->price = s.own;
}

/* Gives each memory operation that is cheaper detached, with its equality class, its own layout. */
static void detach_anchors(propagation *p, component *c, const lilac_layout *layout) {
    assignment *a = p->a;
    for (layout_anchor *anchor = c->accesses; anchor != NULL && c->forced == NULL;
         anchor = anchor->next) {
        const lilac_layout *own = NULL;
        (void)anchor_price(a, anchor, layout, &own);
        uint32_t root = lilac_propagate_find(a->equality_class, anchor->node);
        if (own != NULL && a->layout[root] == NULL) {
            a->layout[root] = own;
        }
    }
}

/* Chooses the layout of a component and, breadth first, those that follow for the others. */
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
            uint32_t ends[2] = {lilac_propagate_component(p, edge->from),
                                lilac_propagate_component(p, edge->to)};
            bool forward = ends[0] == from;
            component *there = &p->components[ends[forward]];
            if (there->chosen != NULL) {
                continue;
            }
            const lilac_layout *moved = lilac_propagate_across(p, edge, forward, here->chosen);
            if (moved == NULL) {
                continue;
            }
            if (there->forced != NULL && moved != there->forced) {
                continue;
            }
            if (there->best != NULL && moved != there->best) {
                int64_t loss = lilac_propagate_price(p, there, moved) - there->price;
                const lilac_layout *layouts[2] = {here->chosen, there->best};
                if (loss > 0 && loss > lilac_propagate_edge_price(p, edge, layouts[!forward],
                                                                  layouts[forward])) {
                    continue;
                }
            }
            there->chosen = moved;
            p->queue[tail++] = ends[forward];
        }
    }
}

/* Components with forced layouts and with dots are settled first: they have no other layout. */
static bool is_settled_before(const component *a, const component *b) {
    if ((a->forced != NULL) != (b->forced != NULL)) {
        return a->forced != NULL;
    }
    if ((a->dot != NULL) != (b->dot != NULL)) {
        return a->dot != NULL;
    }
    return a->price > b->price;
}

/* The roots of the components with memory operations or dots: those with dots, then the others,
 * each in descending order of price; equal prices in program order. */
static uint32_t sort_by_price(propagation *p, uint32_t *roots) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->a->node_count; i++) {
        if (p->components[i].best != NULL) {
            roots[count++] = i;
        }
    }
    uint32_t *spare = lilac_arena_array(p->a->arena, uint32_t, count + 1);
    for (uint32_t width = 1; width < count; width *= 2) { /* merge sort: stable */
        for (uint32_t low = 0; low < count; low += 2 * width) {
            uint32_t middle = low + width < count ? low + width : count;
            uint32_t high = middle + width < count ? middle + width : count;
            uint32_t i = low, j = middle;
            for (uint32_t at = low; at < high; at++) {
                bool left =
                    j == high || (i < middle && !is_settled_before(&p->components[roots[j]],
                                                                   &p->components[roots[i]]));
                spare[at] = left ? roots[i++] : roots[j++];
            }
        }
        memcpy(roots, spare, count * sizeof *roots);
    }
    return count;
}

/* Does the component contain the result of a reduction? It is settled after the operand, which is
 * larger and determines the layout of the result. */
static bool is_reduced_to(propagation *p, uint32_t root) {
    const component *c = &p->components[root];
    for (uint32_t i = 0; i < c->edge_count; i++) {
        const layout_edge *edge = &p->a->edges[c->edges[i]];
        if (lilac_layout_relation(edge->op)->rule == RULE_REDUCE &&
            lilac_propagate_component(p, edge->to) == root) {
            return true;
        }
    }
    return false;
}

static const lilac_tile_type *type_of_node(const assignment *a, uint32_t node) {
    if (node < a->value_count) {
        return a->value[node]->type;
    }
    return a->anchors[node - a->value_count].op->operands[0].value->type;
}

/* Settles all components: the sorted roots, results of reductions last; then, with the default
 * layout, those that no anchor reaches. */
static void settle_all(propagation *p, const uint32_t *roots, uint32_t count) {
    assignment *a = p->a;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            if (p->components[roots[i]].chosen == NULL &&
                (pass == 1 || p->components[roots[i]].forced != NULL ||
                 !is_reduced_to(p, roots[i]))) {
                settle(p, roots[i], p->components[roots[i]].best);
            }
        }
    }
    for (uint32_t i = 0; i < a->node_count && !a->failed; i++) {
        bool tensor = i >= a->value_count || a->kind[i] == VALUE_FIXED;
        if (!tensor || lilac_propagate_component(p, i) != i || p->components[i].chosen != NULL) {
            continue;
        }
        const lilac_layout *layout = lilac_coalesce_default(a, type_of_node(a, i));
        if (layout != NULL) {
            settle(p, i, layout);
        }
    }
}

/* In a cluster: lists what products need of the values of other components. */
static void list_product_uses(propagation *p) {
    assignment *a = p->a;
    for (uint32_t i = 0; i < a->anchor_count && a->target->num_ctas > 1; i++) {
        const layout_anchor *dot = &a->anchors[i];
        const lilac_layout *d = NULL;
        if (dot->relation->rule != RULE_DOT ||
            dot->relation->candidates(a, dot->op, NULL, &d, 1) == 0) {
            continue;
        }
        for (uint32_t operand = 0; operand < 2; operand++) {
            product_use *use = lilac_arena_new(a->arena, product_use);
            if (lilac_find_product_operand(&use->operand, a, dot->op, operand, d)) {
                component *c = &p->components[lilac_propagate_component(p, use->operand.value->id)];
                use->weight = dot->weight;
                use->next = c->products;
                c->products = use;
            }
        }
    }
}

/* ---- forced layouts ----------------------------------------------------------------------- */

static bool has_shape(const lilac_layout *layout, const lilac_tile_type *type) {
    bool same = layout->out_count == type->rank;
    for (uint32_t d = 0; same && d < type->rank; d++) {
        same = INT64_C(1) << layout->out[d].bits == type->shape[d];
    }
    return same;
}

/* The attribute `lilac.layout` of an anchor forces the layout of its component; in a component with
 * a product, which has no other layout, that of its equality class only. */
static void force_layout(propagation *p, const layout_anchor *anchor,
                         const lilac_tile_attribute *attribute) {
    assignment *a = p->a;
    const lilac_layout *layout = attribute->type->layout;
    component *c = &p->components[lilac_propagate_component(p, anchor->node)];
    const uint32_t root = lilac_propagate_find(a->equality_class, anchor->node);
    if ((c->forced != NULL && c->forced != layout) ||
        !has_shape(layout, type_of_node(a, anchor->node))) {
        lilac_error(a->module->context, lilac_tile_position(anchor->op), anchor->op->location,
                    "forced-layout", "%s cannot have the layout that is forced on it: %s",
                    lilac_tile_op_info_get(anchor->op->code)->name,
                    c->forced != NULL ? "an operation that shares its layout has another one"
                                      : "its tensor has another shape");
        a->failed = true;
        return;
    }
    if (c->dot != NULL) {
        a->layout[root] = layout;
        return;
    }
    c->forced = c->best = layout;
    c->price = lilac_propagate_price(p, c, layout);
}

static void force_layouts(propagation *p) {
    for (uint32_t i = 0; i < p->a->anchor_count && !p->a->failed; i++) {
        const layout_anchor *anchor = &p->a->anchors[i];
        const lilac_tile_attribute *attribute =
            lilac_tile_find(&anchor->op->attributes, "lilac.layout");
        if (attribute != NULL && attribute->type != NULL && attribute->type->layout != NULL &&
            anchor->relation->rule != RULE_DOT) {
            force_layout(p, anchor, attribute);
        }
    }
}

void lilac_propagate_layouts(assignment *a) {
    propagation p = {.a = a};
    p.components = lilac_arena_array(a->arena, component, a->node_count + 1);
    p.queue = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    uint32_t *roots = lilac_arena_array(a->arena, uint32_t, a->node_count + 1);
    for (uint32_t i = 0; i < a->node_count; i++) {
        a->equality_class[i] = a->component[i] = i;
    }
    lilac_layout_constraints(a);
    build_components(&p);
    find_streams(&p);
    list_product_uses(&p);
    force_layouts(&p);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < a->node_count && !a->failed; i++) {
            if (p.components[i].accesses != NULL || p.components[i].dot != NULL) {
                find_best(&p, i, pass == 1);
            }
        }
    }
    if (a->failed) {
        return;
    }
    uint32_t count = sort_by_price(&p, roots);
    settle_all(&p, roots, count);
    if (!a->failed) {
        lilac_refine(&p);
    }
    for (uint32_t i = 0; i < count && !a->failed; i++) {
        detach_anchors(&p, &p.components[roots[i]], p.components[roots[i]].chosen);
    }
    for (uint32_t i = 0; i < a->node_count; i++) {
        if (lilac_propagate_find(a->equality_class, i) == i && a->layout[i] == NULL) {
            a->layout[i] = p.components[lilac_propagate_component(&p, i)].chosen;
        }
    }
}

const lilac_layout *lilac_propagate_layout(assignment *a, uint32_t node) {
    return a->layout[lilac_propagate_find(a->equality_class, node)];
}
