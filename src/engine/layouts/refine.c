/* refine: a local search where two settled components disagree.
 *
 * Components are settled one after another, and a component without memory operations adopts the
 * first layout that reaches it. So a conversion may be needed where it costs most: in a loop,
 * although one conversion outside the loop would suffice.
 *
 *     for … { m = max(m, max(x, axis 1)) }          m [64] is carried. The loop's reduction leaves
 *     it store(y, exp(z - m[:, None]))                 in L; the larger tensor after it needs L'
 *
 *     before   for … { convert(max(x)) L → L' }     in every iteration
 *     after    for … { … };  convert(m) L → L'      once
 *
 * For every edge whose components disagree, the search tries to give each side the layout that
 * follows from the other: first to this component alone, then also to its neighbours without memory
 * operations, nearest first, as far as the edges determine their layouts. It adopts the cheapest
 * trial if that is cheaper than the present choice. The price of a trial is that of the accesses
 * and collective operations of all components that change, and of the conversions on all their
 * edges, each weighted by its estimated number of executions.
 */
#include "layouts/propagate.h"

#define MOST_CHANGED 16
#define MOST_TRIALS  64

typedef struct trial {
    uint32_t count;
    uint32_t roots[MOST_CHANGED];
    const lilac_layout *layouts[MOST_CHANGED];
} trial;

static int find(const trial *t, uint32_t root) {
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->roots[i] == root) {
            return (int)i;
        }
    }
    return -1;
}

/* The layout of a component with the changes of a trial. t is NULL: the present layout. */
static const lilac_layout *layout_of(propagation *p, const trial *t, uint32_t root) {
    int at = t != NULL ? find(t, root) : -1;
    return at >= 0 ? t->layouts[at] : p->components[root].chosen;
}

/* The price of the conversion on an edge; 0 where an end has no layout yet. */
static int64_t edge_price(propagation *p, const layout_edge *edge, const trial *t) {
    const lilac_layout *from = layout_of(p, t, lilac_propagate_component(p, edge->from));
    const lilac_layout *to = layout_of(p, t, lilac_propagate_component(p, edge->to));
    return from != NULL && to != NULL ? lilac_propagate_edge_price(p, edge, from, to) : 0;
}

/* The price of the components in `changed` and of their edges. `t`: the trial with their layouts;
 * NULL: their present layouts. */
static int64_t price_of(propagation *p, const trial *changed, const trial *t) {
    int64_t total = 0;
    for (uint32_t i = 0; i < changed->count; i++) {
        const component *c = &p->components[changed->roots[i]];
        total += lilac_propagate_price(p, c, layout_of(p, t, changed->roots[i]));
        for (uint32_t k = 0; k < c->edge_count; k++) {
            const layout_edge *edge = &p->a->edges[c->edges[k]];
            uint32_t from = lilac_propagate_component(p, edge->from);
            uint32_t to = lilac_propagate_component(p, edge->to);
            uint32_t other = from == changed->roots[i] ? to : from;
            int at = find(changed, other);
            if (at >= 0 && (uint32_t)at < i) {
                continue; /* that component counted the edge */
            }
            total += edge_price(p, edge, t);
        }
    }
    return total;
}

/* Adds the nearest component that may follow a trial: over the first edge that determines a new
 * layout for a component without memory operations. False: there is none. */
static bool extend_trial(propagation *p, trial *t) {
    for (uint32_t i = 0; i < t->count && t->count < MOST_CHANGED; i++) {
        const component *c = &p->components[t->roots[i]];
        for (uint32_t k = 0; k < c->edge_count; k++) {
            const layout_edge *edge = &p->a->edges[c->edges[k]];
            bool forward = lilac_propagate_component(p, edge->from) == t->roots[i];
            uint32_t other = lilac_propagate_component(p, forward ? edge->to : edge->from);
            if (p->components[other].best != NULL || find(t, other) >= 0) {
                continue;
            }
            const lilac_layout *moved = lilac_propagate_across(p, edge, forward, t->layouts[i]);
            if (moved != NULL && moved != p->components[other].chosen) {
                t->roots[t->count] = other;
                t->layouts[t->count++] = moved;
                return true;
            }
        }
    }
    return false;
}

/* Tries `layout` for a component, alone and with the neighbours that follow. *kept: the best trial
 * so far; *gain: the price that it saves. */
static void try_from(propagation *p, uint32_t root, const lilac_layout *layout, trial *kept,
                     int64_t *gain) {
    trial t = {.count = 1, .roots = {root}, .layouts = {layout}};
    do {
        int64_t saved = price_of(p, &t, NULL) - price_of(p, &t, &t);
        if (saved > *gain) {
            *gain = saved;
            *kept = t;
        }
    } while (extend_trial(p, &t));
}

void lilac_refine(propagation *p) {
    assignment *a = p->a;
    uint32_t trials = 0;
    for (uint32_t i = 0; i < a->edge_count && trials < MOST_TRIALS; i++) {
        const layout_edge *edge = &a->edges[i];
        if (edge->op == NULL || edge_price(p, edge, NULL) == 0) {
            continue;
        }
        uint32_t from = lilac_propagate_component(p, edge->from);
        uint32_t to = lilac_propagate_component(p, edge->to);
        const lilac_layout *there =
            lilac_propagate_across(p, edge, true, p->components[from].chosen);
        const lilac_layout *here = lilac_propagate_across(p, edge, false, p->components[to].chosen);
        trial kept = {.count = 0};
        int64_t gain = 0;
        if (there != NULL) {
            try_from(p, to, there, &kept, &gain);
        }
        if (here != NULL) {
            try_from(p, from, here, &kept, &gain);
        }
        for (uint32_t k = 0; k < kept.count; k++) {
            p->components[kept.roots[k]].chosen = kept.layouts[k];
        }
        trials++;
    }
}
