/* refine: second thoughts where a conversion would stand.
 *
 * Components are settled one after another, and what has no memory operation takes the layout that
 * reaches it first. So a conversion may come to stand where it costs most: in a loop, when outside
 * the loop the same conversion would do once.
 *
 *     for … { m = max(m, max(x, axis 1)) }          m [64] is carried; the loop's reduction leaves
 * it store(y, exp(z - m[:, None]))                 in L, the larger tensor after it would have L'
 *
 *     first   for … { convert(max(x)) L → L' }      eight times, roughly
 *     then    for … { … };  convert(m) L → L'       once
 *
 * For every edge at which two components disagree, each side is tried in the layout that the other
 * makes for it: alone, then with its neighbours that have no memory operations either, nearest
 * first, as far as the edges carry the layout. The cheapest of these is taken if it costs less than
 * what stands: accesses and reductions of all that would change, and the conversions on all their
 * edges, each as often as the place runs where it would stand.
 */
#include "propagate.h"

#define MOST_CHANGED 16
#define MOST_TRIALS  64

typedef struct trial {
    uint32_t count;
    uint32_t roots[MOST_CHANGED];
    const lilac_layout *layouts[MOST_CHANGED];
} trial;

static int find(const trial *t, uint32_t root) {
    for (uint32_t i = 0; i < t->count; i++)
        if (t->roots[i] == root)
            return (int)i;
    return -1;
}

/* The layout of a component, with a trial's changes; NULL: as it stands. */
static const lilac_layout *layout_of(propagation *p, const trial *t, uint32_t root) {
    int at = t != NULL ? find(t, root) : -1;
    return at >= 0 ? t->layouts[at] : p->components[root].chosen;
}

/* What the conversion on an edge costs. The result of a reduction or a join is converted, and the
 * operand of a shape operation: after the operation that defines it. */
static int64_t edge_cost(propagation *p, const layout_edge *edge, const trial *t) {
    const assignment *a = p->a;
    const lilac_tile_op *op = edge->op;
    const lilac_layout *from = layout_of(p, t, lilac_propagate_component(p, edge->from));
    const lilac_layout *to = layout_of(p, t, lilac_propagate_component(p, edge->to));
    bool result = lilac_layout_relation(op)->converts_result;
    if (from == NULL || to == NULL)
        return 0;
    const lilac_layout *moved = lilac_propagate_across(p, edge, result, result ? from : to);
    if (moved == (result ? to : from))
        return 0;
    if (moved == NULL)
        return PRICE_IMPOSSIBLE;
    const lilac_tile_value *value = result ? &op->results[0] : op->operands[edge->operand].value;
    return lilac_price_times(lilac_price_conversion(p->a, result ? moved : from,
                                                    result ? to : moved,
                                                    lilac_tile_element_bits(value->type)),
                             a->weight[value->id]);
}

/* Of the trial's components; with `t` NULL in the layouts that they have. */
static int64_t cost_of(propagation *p, const trial *changed, const trial *t) {
    int64_t total = 0;
    for (uint32_t i = 0; i < changed->count; i++) {
        const component *c = &p->components[changed->roots[i]];
        total += lilac_propagate_cost(p, c, layout_of(p, t, changed->roots[i]));
        for (uint32_t k = 0; k < c->edge_count; k++) {
            const layout_edge *edge = &p->a->edges[c->edges[k]];
            uint32_t from = lilac_propagate_component(p, edge->from);
            uint32_t to = lilac_propagate_component(p, edge->to);
            uint32_t other = from == changed->roots[i] ? to : from;
            int at = find(changed, other);
            if (at >= 0 && (uint32_t)at < i)
                continue; /* is counted there */
            total += edge_cost(p, edge, t);
        }
    }
    return total;
}

/* Tries `layout` for a component and what hangs on it; *kept is the best so far, *gain what it
 * saves. */
static void try_from(propagation *p, uint32_t root, const lilac_layout *layout, trial *kept,
                     int64_t *gain) {
    trial t = {.count = 1, .roots = {root}, .layouts = {layout}};
    for (uint32_t next = 0;; next++) {
        int64_t saved = cost_of(p, &t, NULL) - cost_of(p, &t, &t);
        if (saved > *gain) {
            *gain = saved;
            *kept = t;
        }
        /* one more: over the first edge that leads to a component free to follow */
        uint32_t before = t.count;
        for (uint32_t i = 0; i < t.count && t.count == before; i++) {
            const component *c = &p->components[t.roots[i]];
            for (uint32_t k = 0; k < c->edge_count && t.count == before; k++) {
                const layout_edge *edge = &p->a->edges[c->edges[k]];
                bool forward = lilac_propagate_component(p, edge->from) == t.roots[i];
                uint32_t other = lilac_propagate_component(p, forward ? edge->to : edge->from);
                const lilac_layout *moved;
                if (p->components[other].best != NULL || find(&t, other) >= 0 ||
                    t.count == MOST_CHANGED)
                    continue;
                moved = lilac_propagate_across(p, edge, forward, t.layouts[i]);
                if (moved == NULL || moved == p->components[other].chosen)
                    continue;
                t.roots[t.count] = other;
                t.layouts[t.count++] = moved;
            }
        }
        if (t.count == before)
            return;
    }
}

void lilac_refine(propagation *p) {
    assignment *a = p->a;
    uint32_t trials = 0;
    for (uint32_t i = 0; i < a->edge_count && trials < MOST_TRIALS; i++) {
        const layout_edge *edge = &a->edges[i];
        if (edge->op == NULL || edge_cost(p, edge, NULL) == 0)
            continue;
        uint32_t from = lilac_propagate_component(p, edge->from);
        uint32_t to = lilac_propagate_component(p, edge->to);
        const lilac_layout *there =
            lilac_propagate_across(p, edge, true, p->components[from].chosen);
        const lilac_layout *here = lilac_propagate_across(p, edge, false, p->components[to].chosen);
        trial kept = {.count = 0};
        int64_t gain = 0;
        if (there != NULL)
            try_from(p, to, there, &kept, &gain);
        if (here != NULL)
            try_from(p, from, here, &kept, &gain);
        for (uint32_t k = 0; k < kept.count; k++)
            p->components[kept.roots[k]].chosen = kept.layouts[k];
        trials++;
    }
}
