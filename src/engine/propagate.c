/* propagate: from what memory operations want to one layout for every value.
 *
 *   nodes        tensors that are computed once, and sites (memory operations, reductions, joins)
 *   groups       nodes that must agree: operands and results of element-wise operations, what loops
 *                and branches carry
 *   components   groups that would like to agree: a memory operation and its pointers, data and
 * mask. Where they do not, a conversion stands between edges        components linked by a shape
 * operation, a reduction, a join or a split
 *
 *       load ─ x ─ (x - max) ─ exp ─ store        one component [16, 256]
 *                │        ╲
 *              reduce    broadcast ─ expand_dims  edges
 *                ╰── max ──────────────╯          another [16]
 *
 * Each component takes the layout that costs least in all: its accesses and reductions, and what
 * its neighbours over edges pay in the layout that this one makes for them. A memory operation pays
 * the lesser of its access in that layout and of one that it likes better with the conversion
 * between, which is priced by its plan; so a transpose's two sides are chosen as a pair. Then the
 * components are settled, the one that costs most first, results of reductions after their
 * operands; a settled component settles its neighbours over edges, breadth first, unless a
 * neighbour would lose more by it than the conversion costs. What nothing reaches gets a default.
 * Where neighbours disagree then, both are thought over (refine.c). Last, memory operations that
 * gain by it leave with their group.
 */
#include "propagate.h"

#include <lilac/tile_loops.h>

#include <string.h>

#define CANDIDATES 32
/* Beyond this many memory operations of one component the choice is among the plain layouts: the
 * time to choose stays in proportion to the program. */
#define MANY_SITES 32
#define LOOK_BACK  6 /* operations that are done again in another layout */
/* Measured on an H200: transposes of [128, 64] bf16 and [64, 64] f32 tiles by shared memory, a
 * quarter of the price of their sectors, take 46.9 and 45.2 us; without it, at 64-byte runs on one
 * side, 48.1 to 51, whichever side that is. */
#define FAR_LESS 3
#define HIDDEN   8
/* How far a layout is followed over components without memory operations, and how many it meets. */
#define HANDED_ON  3
#define MOST_LOOKS 32
/* Where threads could have fewer elements and no copies: how much dearer the work is than the time
 * to issue it, for there are then few threads to hide that each takes longer. */
#define LONGER    4
#define MOST_WORK 10000

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

/* Links the two sides of operand 0 of an operation, or (op is NULL) two nodes. */
static void link_nodes(assignment *a, const lilac_tile_op *op, uint32_t from, uint32_t to) {
    a->edges[a->edge_count++] = (layout_edge){.op = op, .from = from, .to = to};
}

static void relate_all(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
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
    listed->site->first_link = a->edge_count;
    for (uint32_t i = 0; i < op->operand_count; i++)
        if (is_fixed(a, op->operands[i].value))
            link_nodes(a, NULL, op->operands[i].value->id, node);
    for (uint32_t i = 0; i < op->result_count; i++)
        if (is_fixed(a, &op->results[i]))
            link_nodes(a, NULL, node, op->results[i].id);
    listed->site->link_count = a->edge_count - listed->site->first_link;
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

static bool is_same_shape(const lilac_tile_type *x, const lilac_tile_type *y) {
    return x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}

/* The index and the result agree; the source would like to. */
static void relate_gather(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    uint32_t node = listed->site->node;
    const lilac_tile_value *source = op->operands[0].value, *index = op->operands[1].value;
    unite(a->group, op->results[0].id, node);
    if (is_fixed(a, index))
        unite(a->group, index->id, node);
    if (is_fixed(a, source) && is_same_shape(source->type, op->results[0].type))
        link_nodes(a, NULL, source->id, node);
}

/* All alike, and the operation's own node with them. */
static void relate_scan(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    relate_all(a, listed);
    for (uint32_t i = 0; i < op->result_count; i++)
        unite(a->group, op->results[i].id, listed->site->node);
}

static void relate_shape(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    for (uint32_t i = 1; i < op->result_count; i++)
        same(a, &op->results[0], &op->results[i]);
    if (is_fixed(a, op->operands[0].value) && is_fixed(a, &op->results[0]))
        link_nodes(a, op, op->operands[0].value->id, op->results[0].id);
}

static void relate_control(assignment *a, const listed_op *listed) {
    const lilac_tile_op *op = listed->op;
    for (uint32_t i = 0, count = lilac_tile_phi_count(op); i < count; i++) {
        lilac_tile_phi phi = lilac_tile_phi_get(op, i);
        for (uint32_t k = 0; k < phi.source_count; k++)
            same(a, phi.sources[k]->value, phi.receivers[0]);
        if (phi.receiver_count > 1)
            same(a, phi.receivers[1], phi.receivers[0]);
    }
    for (uint32_t i = 0; op->successor_count > 0 && i < op->operand_count; i++) {
        const lilac_tile_value *receiver = lilac_tile_receiver(&op->operands[i]);
        if (receiver != NULL)
            same(a, op->operands[i].value, receiver);
    }
}

/* NULL: the layouts of operands and results are independent of each other. */
static void (*const relate_by[])(assignment *, const listed_op *) = {
    [RULE_NONE] = NULL,
    [RULE_REFUSED] = NULL,
    [RULE_SOURCE] = NULL,
    [RULE_SAME] = relate_all,
    [RULE_MEMORY] = relate_memory,
    [RULE_SHAPE] = relate_shape,
    [RULE_JOIN] = relate_sides,
    [RULE_SPLIT] = relate_shape,
    [RULE_REDUCE] = relate_sides,
    [RULE_SCAN] = relate_scan,
    [RULE_GATHER] = relate_gather,
    [RULE_FREE] = NULL,
    [RULE_CONTROL] = relate_control,
    [RULE_ANY] = NULL,
};

static void relate(assignment *a) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < a->op_count; i++)
        most += a->ops[i].op->operand_count + a->ops[i].op->result_count;
    a->edges = lilac_arena_array(a->arena, layout_edge, most + 1);
    for (uint32_t i = 0; i < a->op_count; i++)
        if (relate_by[a->ops[i].rule] != NULL)
            relate_by[a->ops[i].rule](a, &a->ops[i]);
}

/* ---- components ------------------------------------------------------------------------- */

uint32_t lilac_propagate_component(propagation *p, uint32_t node) {
    return lilac_propagate_find(p->a->component, lilac_propagate_find(p->a->group, node));
}

/* What element-wise operations do for each element: those of values computed once, and those of
 * the cheap ones that they and memory operations take as data. Addresses and masks are left out: a
 * thread has few of them, however many elements. */
static void add_work(propagation *p) {
    assignment *a = p->a;
    int64_t *chain = lilac_arena_array(a->arena, int64_t, a->value_count + 1);
    for (uint32_t i = 0; i < a->op_count; i++) {
        const listed_op *listed = &a->ops[i];
        const lilac_tile_op *op = listed->op;
        bool memory = listed->rule == RULE_MEMORY;
        int64_t work = listed->rule == RULE_SAME ? lilac_assign_issues(op) : 0;
        if (!memory && listed->rule != RULE_SAME && listed->rule != RULE_SHAPE)
            continue;
        for (uint32_t k = memory ? 1 : 0; k < op->operand_count && !(memory && k > 1); k++)
            work = min_i64(work + chain[op->operands[k].value->id], MOST_WORK);
        if (op->result_count == 1 && a->kind[op->results[0].id] == VALUE_CHEAP)
            chain[op->results[0].id] = work;
        else if (op->code != LILAC_TILE_OP_TT_LOAD && (memory || op->result_count > 0))
            p->components[lilac_propagate_component(p, memory ? listed->site->node
                                                              : op->results[0].id)]
                .work += listed->weight * work;
    }
}

static void build_components(propagation *p) {
    assignment *a = p->a;
    for (uint32_t i = 0; i < a->edge_count; i++)
        if (a->edges[i].op == NULL)
            unite(a->component, lilac_propagate_find(a->group, a->edges[i].from),
                  lilac_propagate_find(a->group, a->edges[i].to));
    add_work(p);
    for (uint32_t i = a->site_count; i-- > 0;) {
        component *c = &p->components[lilac_propagate_component(p, a->sites[i].node)];
        layout_site **list = a->sites[i].is_memory ? &c->sites : &c->along;
        if (!a->sites[i].is_memory && a->sites[i].relation->price == NULL)
            continue;
        a->sites[i].next = *list;
        *list = &a->sites[i];
    }
    /* edges of each: count, then fill */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < a->edge_count; i++) {
            if (a->edges[i].op == NULL)
                continue;
            uint32_t ends[2] = {lilac_propagate_component(p, a->edges[i].from),
                                lilac_propagate_component(p, a->edges[i].to)};
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

/* ---- prices ----------------------------------------------------------------------------- */

static bool is_alone(const component *c) {
    return c->edge_count == 0 && c->along == NULL;
}

static bool wants_two_orders(const component *c) {
    for (const layout_site *site = c->sites; site != NULL; site = site->next)
        if (memcmp(site->access.global.order, c->sites->access.global.order,
                   site->access.type->rank * sizeof *site->access.global.order) != 0)
            return true;
    return false;
}

/* Components that do nothing but bring data from one order into another. */
static void find_streams(propagation *p) {
    for (uint32_t i = 0; i < p->a->node_count; i++) {
        component *c = &p->components[i];
        bool streams = c->sites != NULL && is_alone(c) && wants_two_orders(c);
        for (const layout_site *site = c->sites; site != NULL; site = site->next)
            streams = streams && site->weight == 1;
        for (layout_site *site = c->sites; site != NULL; site = site->next)
            site->access.streams = streams;
    }
}

static const lilac_tile_value *value_of_edge(const assignment *a, const layout_edge *edge) {
    return a->value[edge->from < a->value_count ? edge->from : edge->to];
}

/* Bits of the elements that have to move for a value to be in another layout: pointers and widened
 * numbers are made again of what they come from (rematerialise.c). */
static uint32_t narrowest(const assignment *a, const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    uint32_t bits = lilac_tile_element_bits(value->type);
    const lilac_tile_value *only = NULL;
    if (op == NULL || depth == 0 || op->result_count != 1 || op->region_count != 0 ||
        lilac_assign_is_heavy(op->code) ||
        (lilac_tile_op_info_get(op->code)->traits & (LILAC_TILE_PURE | LILAC_TILE_ELEMENTWISE)) !=
            (LILAC_TILE_PURE | LILAC_TILE_ELEMENTWISE))
        return bits;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!is_fixed(a, op->operands[i].value))
            continue;
        if (only != NULL && only != op->operands[i].value)
            return bits;
        only = op->operands[i].value;
    }
    if (only == NULL)
        return bits;
    uint32_t before = narrowest(a, only, depth - 1);
    return before < bits ? before : bits;
}

/* What conversions beside an access cost, once: where they take far less than its sectors, and the
 * kernel does nothing but bring data from one order into another, other blocks' accesses hide most
 * of it. */
static int64_t beside(const assignment *a, const memory_access *access, int64_t moves) {
    if (!access->streams)
        return moves;
    int64_t bytes = lilac_tile_element_count(access->type) * access->global.element_bytes;
    int64_t traffic = bytes * a->target->arch->costs->sector / a->target->arch->sector_bytes;
    return moves * FAR_LESS <= traffic ? moves / HIDDEN : moves;
}

/* What a memory operation pays when its data comes and goes in `layout` and it takes one that it
 * likes better; *taken says which. */
static int64_t apart(assignment *a, layout_site *site, const lilac_layout *layout,
                     const lilac_layout **taken) {
    int64_t least = PRICE_IMPOSSIBLE;
    if (site->own_count == 0)
        lilac_coalesce_own(a, site);
    for (uint32_t i = 0; i < site->own_count; i++) {
        const lilac_layout *own = site->own[i];
        /* a conversion reads all copies of a loaded value */
        int64_t cost = lilac_coalesce_cost(a, &site->access, own, false);
        int64_t moves = 0;
        for (uint32_t k = 0; k < site->link_count && moves < PRICE_IMPOSSIBLE; k++) {
            const layout_edge *link = &a->edges[site->first_link + k];
            bool comes = link->to == site->node;
            uint32_t bits = comes ? narrowest(a, value_of_edge(a, link), LOOK_BACK)
                                  : lilac_tile_element_bits(value_of_edge(a, link)->type);
            moves += lilac_price_conversion(a, comes ? layout : own, comes ? own : layout, bits);
        }
        cost += lilac_price_times(beside(a, &site->access, moves), site->weight);
        if (cost < least) {
            least = cost;
            *taken = own;
        }
    }
    return least;
}

/* The same with the choice whether to leave; *taken NULL: no. */
static int64_t site_cost(assignment *a, layout_site *site, const lilac_layout *layout,
                         const lilac_layout **taken) {
    int64_t stays = lilac_coalesce_cost(a, &site->access, layout, site->access.once);
    *taken = NULL;
    if (site->own_count == 0)
        lilac_coalesce_own(a, site);
    if (site->own_count == 0 || site->link_count == 0)
        return stays;
    int64_t least = lilac_coalesce_cost(a, &site->access, site->own[0], site->access.once);
    /* a block's barrier is the least that a conversion which is worth it takes, nearly always */
    int64_t barrier = a->target->arch->costs->barrier_block;
    if (stays <= least + barrier * a->target->num_warps * site->weight)
        return stays;
    const lilac_layout *own = NULL;
    int64_t leaves = apart(a, site, layout, &own);
    if (leaves >= stays)
        return stays;
    *taken = own;
    return leaves;
}

int64_t lilac_propagate_cost(propagation *p, const component *c, const lilac_layout *layout) {
    const lilac_layout *taken;
    int64_t total = 0;
    if (c->sites != NULL && c->work > 0)
        total = c->work * (is_alone(c) ? LONGER : 1) * p->a->target->arch->costs->issue *
                lilac_coalesce_repeated(p->a, c->sites->access.type, layout);
    for (layout_site *site = c->sites; site != NULL; site = site->next)
        total += site_cost(p->a, site, layout, &taken);
    for (layout_site *site = c->along; site != NULL; site = site->next)
        total += lilac_price_times(site->relation->price(p->a, site->op, layout), site->weight);
    return total;
}

const lilac_layout *lilac_propagate_across(propagation *p, const layout_edge *edge, bool forward,
                                           const lilac_layout *layout) {
    return forward ? lilac_transfer_forward(p->a, edge->op, edge->operand, layout)
                   : lilac_transfer_backward(p->a, edge->op, edge->operand, layout);
}

/* What a conversion on an edge costs, on the side of its other end: as often as what it converts is
 * made. */
static int64_t edge_price(propagation *p, const layout_edge *edge, bool forward,
                          const lilac_layout *moved, const lilac_layout *wanted) {
    const lilac_tile_op *op = edge->op;
    const lilac_tile_value *value = forward ? &op->results[0] : op->operands[edge->operand].value;
    return lilac_price_times(lilac_price_conversion(p->a, forward ? moved : wanted,
                                                    forward ? wanted : moved,
                                                    lilac_tile_element_bits(value->type)),
                             p->a->weight[value->id]);
}

/* What the neighbours of a component lose by its layout, or pay for a conversion; those without
 * memory operations hand it on to theirs. `from` is where the layout came from. */
static int64_t neighbours_lose(propagation *p, uint32_t root, uint32_t from,
                               const lilac_layout *layout, uint32_t depth, uint32_t *looks) {
    const component *here = &p->components[root];
    int64_t total = 0;
    for (uint32_t i = 0; i < here->edge_count && looks[0] > 0; i++) {
        const layout_edge *edge = &p->a->edges[here->edges[i]];
        bool forward = lilac_propagate_component(p, edge->from) == root;
        uint32_t other = lilac_propagate_component(p, forward ? edge->to : edge->from);
        component *there = &p->components[other];
        if (there == here || other == from)
            continue;
        const lilac_layout *moved = lilac_propagate_across(p, edge, forward, layout);
        if (moved == NULL || moved == there->best)
            continue;
        --*looks;
        if (there->best == NULL) {
            if (depth > 0)
                total += neighbours_lose(p, other, root, moved, depth - 1, looks);
            continue;
        }
        int64_t loss = lilac_propagate_cost(p, there, moved) - there->cost;
        if (loss > 0)
            loss = min_i64(loss, edge_price(p, edge, forward, moved, there->best));
        total += max_i64(loss, 0);
    }
    return total;
}

static bool has_many_sites(const component *c) {
    uint32_t count = 0;
    for (const layout_site *site = c->sites; site != NULL; site = site->next)
        count++;
    return count > MANY_SITES;
}

/* The best layout of a component by itself; `neighbours`: with what these lose. */
static void find_best(propagation *p, uint32_t root, bool neighbours) {
    component *c = &p->components[root];
    const lilac_layout *candidates[CANDIDATES], *best = NULL;
    int64_t least = 0, own = 0;
    bool varied = !has_many_sites(c) && (c->along != NULL || wants_two_orders(c));
    if (neighbours && !varied)
        return;
    /* copies would go on to neighbours, whose work is not in the price */
    uint32_t kinds = (varied ? CANDIDATES_VARIED : 0) | (is_alone(c) ? CANDIDATES_COPIES : 0);
    uint32_t count = lilac_coalesce_candidates(p->a, c->sites, kinds, candidates, CANDIDATES);
    for (const layout_site *site = c->along; site != NULL && count > 0; site = site->next)
        if (site->relation->candidates != NULL &&
            is_same_shape(site->op->results[0].type, c->sites->access.type))
            count += site->relation->candidates(p->a, site->op, c->sites->access.global.order,
                                                candidates + count, CANDIDATES - count);
    for (uint32_t i = 0; i < count; i++) {
        int64_t cost = lilac_propagate_cost(p, c, candidates[i]);
        int64_t total = cost;
        uint32_t looks = MOST_LOOKS;
        if (neighbours && (best == NULL || total < least))
            total += neighbours_lose(p, root, root, candidates[i], HANDED_ON, &looks);
        if (best == NULL || total < least) {
            best = candidates[i];
            least = total;
            own = cost;
        }
    }
    c->best = best;
    c->cost = own;
}

/* A memory operation that gains by it leaves with its group. */
static void part(propagation *p, component *c, const lilac_layout *layout) {
    assignment *a = p->a;
    for (layout_site *site = c->sites; site != NULL; site = site->next) {
        const lilac_layout *own = NULL;
        (void)site_cost(a, site, layout, &own);
        uint32_t root = lilac_propagate_find(a->group, site->node);
        if (own != NULL && a->layout[root] == NULL)
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
            uint32_t ends[2] = {lilac_propagate_component(p, edge->from),
                                lilac_propagate_component(p, edge->to)};
            bool forward = ends[0] == from;
            component *there = &p->components[ends[forward]];
            if (there->chosen != NULL)
                continue;
            const lilac_layout *moved = lilac_propagate_across(p, edge, forward, here->chosen);
            if (moved == NULL)
                continue;
            if (there->best != NULL && moved != there->best) {
                int64_t loss = lilac_propagate_cost(p, there, moved) - there->cost;
                if (loss > 0 && loss > edge_price(p, edge, forward, moved, there->best))
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
        if (lilac_layout_relation(edge->op)->rule == RULE_REDUCE &&
            lilac_propagate_component(p, edge->to) == root)
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
    find_streams(&p);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < a->node_count && !a->failed; i++)
            if (p.components[i].sites != NULL)
                find_best(&p, i, pass == 1);
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
        if (!tensor || lilac_propagate_component(&p, i) != i || p.components[i].chosen != NULL)
            continue;
        const lilac_layout *layout = lilac_coalesce_default(a, type_of_node(a, i));
        if (layout != NULL)
            settle(&p, i, layout);
    }
    if (!a->failed)
        lilac_refine(&p);
    for (uint32_t i = 0; i < count && !a->failed; i++)
        part(&p, &p.components[roots[i]], p.components[roots[i]].chosen);
    for (uint32_t i = 0; i < a->node_count; i++)
        if (lilac_propagate_find(a->group, i) == i && a->layout[i] == NULL)
            a->layout[i] = p.components[lilac_propagate_component(&p, i)].chosen;
}

const lilac_layout *lilac_propagate_layout(assignment *a, uint32_t node) {
    return a->layout[lilac_propagate_find(a->group, node)];
}
