/* The choice of layouts (propagate.c) and its local search (refine.c): what they share. */
#ifndef LILAC_ENGINE_PROPAGATE_H
#define LILAC_ENGINE_PROPAGATE_H

#include "layouts/assign.h"

/* Equality classes that should have one layout. build_components fills the lists, the edges and the
 * work; find_best fills `best` and `price`; settle and refine.c fill `chosen`. */
typedef struct component {
    layout_anchor *accesses;      /* its memory operations, linked by next */
    layout_anchor *collectives;   /* its reductions, scans, gathers and dots, linked by next */
    const layout_anchor *dot;     /* of its dots the one whose layout it gets; NULL: none */
    struct product_use *products; /* what products need of its values; in clusters only */
    const lilac_layout *forced;   /* by the attribute lilac.layout of an anchor; NULL: none */
    const lilac_layout *best;     /* the cheapest candidate; NULL: no memory operation and no dot */
    int64_t price;                /* of the operations of the component in `best` */
    const lilac_layout *chosen;   /* NULL: not chosen yet */
    int64_t work;                 /* instructions per element of its element-wise operations */
    uint32_t *edges;              /* indices into the assignment's edges */
    uint32_t edge_count;
} component;

/* A value of a component that is an operand of a product, in a cluster of several blocks. */
typedef struct product_use {
    product_operand operand;
    int64_t weight; /* the estimated number of executions of the product */
    struct product_use *next;
} product_use;

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
/* The price of the operations of a component in a layout: accesses, collective operations and
 * repeated element-wise work. Memory operations may be detached from it. */
int64_t lilac_propagate_price(propagation *p, const component *c, const lilac_layout *layout);

/* The price of the conversion that an edge needs between these layouts of its ends, weighted by the
 * executions of what is converted: of a reduction or a join, the result; of a shape operation, the
 * operand, which may be much smaller. */
int64_t lilac_propagate_edge_price(propagation *p, const layout_edge *edge,
                                   const lilac_layout *from, const lilac_layout *to);

/* refine.c: changes `chosen` where conversions then cost less. */
void lilac_refine(propagation *p);

#endif
