/* What the choice of layouts (propagate.c) and its second thoughts (refine.c) share. */
#ifndef LILAC_ENGINE_PROPAGATE_H
#define LILAC_ENGINE_PROPAGATE_H

#include "assign.h"

typedef struct component {
    layout_site *sites;         /* memory operations, linked by next */
    layout_site *along;         /* reductions, scans and gathers of its values, linked by next */
    const lilac_layout *best;   /* what they like */
    int64_t cost;               /* of that */
    const lilac_layout *chosen; /* NULL: not yet */
    int64_t work;               /* of its element-wise operations, a warp's instructions' */
    uint32_t *edges;            /* indices */
    uint32_t edge_count;
} component;

typedef struct propagation {
    assignment *a;
    component *components; /* by component root */
    uint32_t *queue;       /* of component roots */
} propagation;

/* propagate.c */
uint32_t lilac_propagate_component(propagation *p, uint32_t node);
/* The layout at the other end of an edge that follows from the layout at one end; NULL: none. */
const lilac_layout *lilac_propagate_across(propagation *p, const layout_edge *edge, bool forward,
                                           const lilac_layout *layout);
/* What its operations pay in a layout. */
int64_t lilac_propagate_cost(propagation *p, const component *c, const lilac_layout *layout);

/* refine.c: changes what is chosen, where conversions then cost less. */
void lilac_refine(propagation *p);

#endif
