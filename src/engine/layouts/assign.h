/* assign_layouts: what the files of the pass share.
 *
 *   assign_layouts.c  the pass: lists the operations, classifies the values, runs the steps
 *   transfer.c        the table of layout relations; layouts through shape operations, both ways
 *   coalesce.c        blocked layouts; the candidates and the prices of memory operations
 *   gather.c          the candidates of tt.gather
 *   dot.c             the candidates, operands and prices of matrix products
 *   blocks.c          how tensors are divided among the blocks of a cluster
 *   price.c           prices of conversions, reductions, scans and gathers
 *   layout_constraints.c  equality classes of values, and the edges between them
 *   propagate.c       components of equality classes, and the layout of each
 *   refine.c          local search where neighbouring components disagree
 *   memory_layouts.c  layouts of shared memory, after those of the tensors
 *   rematerialise.c   the rewriting: types, clones of cheap chains, conversions
 *   accumulations.c   reductions that a loop accumulates: split_reductions, the next pass, moves their
 *                     exchanges behind the loop, and the prices expect it
 */
#ifndef LILAC_ENGINE_ASSIGN_H
#define LILAC_ENGINE_ASSIGN_H

#include "internal.h"

#include <string.h>

/* The kind of relation between the layouts of an operation's tensors. */
typedef enum layout_rule {
    RULE_NONE,    /* the operation has no tensors */
    RULE_REFUSED, /* it has tensors, and no relation is implemented */
    RULE_SOURCE,  /* tensors from scalars: any layout */
    RULE_SAME,    /* one layout for operands and results */
    RULE_MEMORY,  /* one layout for operands and results; an anchor */
    RULE_SHAPE,   /* expand_dims, broadcast, trans, reshape: no element moves between threads */
    RULE_JOIN,    /* join, cat: an anchor whose result has one more register bit */
    RULE_SPLIT,   /* the inverse of a join */
    RULE_REDUCE,  /* results are slices of the operands; an anchor */
    RULE_SCAN,    /* one layout for operands and results; an anchor */
    RULE_DOT,     /* one layout for accumulator and result; those of A and B follow; an anchor */
    RULE_GATHER,  /* one layout for index and result; the source may have another */
    RULE_FREE,    /* one layout for all operands; the results may have another */
    RULE_CONTROL, /* scf and cf: one layout for the values that each phi joins */
    RULE_ANY      /* each operand may have any layout */
} layout_rule;

typedef struct assignment assignment;
typedef struct listed_op listed_op;
typedef struct rewriting rewriting;

/* The layout of result 0 that follows from that of operand `operand`, or the reverse. False: no
 * layout follows, or several follow equally well. */
typedef bool layout_transfer(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                             const lilac_layout *layout);

/* The price of an operation in a layout, once, without a table of known prices. */
typedef int64_t layout_price(assignment *a, const lilac_tile_op *op, const lilac_layout *layout);

/* A row of the table of layout relations (transfer.c), which the column `layout` of operations.def
 * names. The layout of an operand equals that of the results, or follows from it by the two
 * transfer functions, or is independent of it. */
typedef struct layout_relation {
    layout_rule rule;
    bool same;                           /* operands and results have one layout */
    layout_transfer *forward, *backward; /* where they have not; NULL: no layout follows */
    bool anchor;                         /* the operation has a layout of its own */
    uint32_t leader;                     /* of an anchor: the operand that has this layout */
    bool converts_result;                /* of an edge: a conversion is placed after the operation;
                                            otherwise before it */
    /* Unites the nodes that must have one layout, and adds the edges (layout_constraints.c). NULL:
     * the layouts of operands and results are independent of each other. */
    void (*relate)(assignment *a, const listed_op *listed);
    /* Sets the layouts of the results and requests those of the operands (rematerialise.c). False
     * after a diagnostic. NULL: there is nothing to do. */
    bool (*rewrite)(rewriting *r, const listed_op *listed);
    /* Of an anchor whose leader has a layout. NULL: the anchor adds nothing to the price of its
     * component, or it is a memory operation, which coalesce.c prices. */
    layout_price *price;
    /* The layouts that an anchor proposes, at most `most`; returns their number. `order`: the
     * dimensions, those with the longest runs in memory first. NULL: it proposes none. */
    uint32_t (*candidates)(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                           const lilac_layout **result, uint32_t most);
} layout_relation;

typedef enum value_kind {
    VALUE_SCALAR, /* no tensor */
    VALUE_CHEAP,  /* computed from scalars by a few instructions: computed again in every layout
                     in which it is used */
    VALUE_FIXED   /* computed once, in one layout; other layouts need a conversion */
} value_kind;

/* An access to global memory, without a layout. */
typedef struct memory_access {
    const lilac_tile_type *type; /* of the pointers */
    lilac_plan_global global;
    int64_t weight; /* the estimated number of executions */
    bool streams;   /* outside loops, in a component that only reorders data, as a transpose does */
    bool one_copy;  /* a load whose users need each element in one thread only */
} memory_access;

/* A blocked layout: registers first (`vector` elements along order[0], then `tile` along order[1]),
 * then lanes, then warps. */
typedef struct blocked_shape {
    const uint32_t *order;
    int64_t vector;
    int64_t tile;    /* 0 is 1 */
    int64_t lanes;   /* limit of lanes along order[0], unless they fit nowhere else; 0: none */
    bool slow_warps; /* warps along the last dimensions of the order first */
    bool copies;     /* full vectors even if the threads outnumber them and some hold copies */
    const uint64_t *blocks; /* the columns of the blocks of the cluster, zero or distinct unit
                               vectors; NULL: all blocks hold copies */
} blocked_shape;

#define MOST_OWN_LAYOUTS 4

/* An operation with a layout of its own: a memory operation, a reduction, a scan, a gather, a
 * join. */
typedef struct layout_anchor {
    lilac_tile_op *op;
    const layout_relation *relation;
    uint32_t node;
    bool is_memory;
    memory_access access;                      /* of a memory operation */
    int64_t weight;                            /* the estimated number of executions */
    uint32_t first_link, link_count;           /* the edges to its data and mask */
    uint32_t own_count;                        /* 0: `own` is not computed yet */
    const lilac_layout *own[MOST_OWN_LAYOUTS]; /* the layouts with the cheapest access */
    struct layout_anchor *next;                /* of the same component and list */
} layout_anchor;

/* A layout constraint between two equality classes. With an operation: a shape operation, a
 * reduction, a join or a split, whose transfer functions relate the two layouts. Without one: the
 * two layouts should be equal, and a conversion is needed where they are not. */
typedef struct layout_edge {
    const lilac_tile_op *op;
    uint32_t operand;  /* the operand at `from` */
    uint32_t from, to; /* nodes: the side of the operand and that of the result */
} layout_edge;

struct listed_op {
    lilac_tile_op *op;
    const layout_relation *relation;
    int64_t weight;        /* the estimated number of executions */
    layout_anchor *anchor; /* NULL: the operation is no anchor */
};

/* Tables of known answers. */
typedef struct typed_layout {
    const lilac_tile_type *from, *to;
    const lilac_layout *layout;
} typed_layout;

typedef struct priced_conversion {
    const lilac_layout *from, *to;
    uint32_t bits;
    int64_t cycles;
    struct priced_conversion *next;
} priced_conversion;

typedef struct priced_operation {
    const lilac_tile_op *op;
    const lilac_layout *layout;
    int64_t cycles;
    struct priced_operation *next;
} priced_operation;

#define TYPE_BUCKETS  256
#define PRICE_BUCKETS 64
/* The price where no plan exists: higher than any other price, and small enough for sums. */
#define PRICE_IMPOSSIBLE (INT64_C(1) << 50)

/* The state of the pass for one function. Each group names the step that fills it; later steps only
 * read it, except where a comment says otherwise. */
struct assignment {
    /* assign_layouts.c, before the first step */
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena; /* freed at the end of the pass */
    lilac_axis_analysis axis;
    uint32_t value_count, node_count; /* nodes: the values by id, then the anchors */

    /* assign_layouts.c, step 1: the operations are listed */
    listed_op *ops; /* in program order */
    uint32_t op_count;
    lilac_tile_value **value; /* by id */
    int64_t *weight;          /* by value id: the estimated number of definitions executed */
    layout_anchor *anchors;   /* step 3 fills `access`; propagate.c the links and `next`;
                                  coalesce.c `own`, when it is first needed */
    uint32_t anchor_count;
    layout_anchor **anchor_of; /* by value id: the anchor that defines the value */

    /* assign_layouts.c, step 2: the values are classified */
    uint8_t *kind;           /* by value id: a value_kind */
    bool has_products;       /* some operation is a matrix product */
    uint8_t *needs_one_copy; /* by value id: its users need one copy of each element only */

    /* layout_constraints.c: edges and equality classes. propagate.c: components and layouts */
    layout_edge *edges;
    uint32_t edge_count;
    uint32_t *equality_class;    /* union-find of nodes: those that must have one layout */
    uint32_t *component;         /* union-find of classes: those that should have one layout */
    const lilac_layout **layout; /* by the root of an equality class: the layout chosen */

    /* any step: known answers */
    typed_layout types[TYPE_BUCKETS];
    priced_conversion *prices[PRICE_BUCKETS];
    priced_operation *operations[PRICE_BUCKETS];
    bool failed; /* a diagnostic was recorded */
};

/* assign_layouts.c */
/* About how often the regions of an operation run that itself runs `weight` times; 0 for an operation
 * with the attribute `lilac.rare`, whose regions have no part in prices. */
int64_t lilac_assign_inner_weight(const lilac_tile_op *op, int64_t weight);

/* memory_layouts.c */
/* Chooses the layouts of the memory whose types have none. The tensors have layouts. False after a
 * diagnostic. */
bool lilac_assign_memory_layouts(lilac_tile_function *function, const lilac_target *target,
                                 bool *changed);

/* coalesce.c */
/* A blocked layout as Triton's: `vector` elements per thread along order[0], then lanes, then
 * warps. A thread has no more elements than leave at least one for every thread. Interned; NULL
 * only after a diagnostic. */
const lilac_layout *lilac_coalesce_blocked(assignment *a, const lilac_tile_type *type,
                                           const uint32_t *order, int64_t vector);
const lilac_layout *lilac_coalesce_shaped(assignment *a, const lilac_tile_type *type,
                                          const blocked_shape *shape);
/* Last dimension fastest, one element per thread at a time: the layout of values that no anchor
 * reaches. */
const lilac_layout *lilac_coalesce_default(assignment *a, const lilac_tile_type *type);
void lilac_coalesce_access(const assignment *a, memory_access *access, const listed_op *listed);
/* The price of the access's plan in a layout times its weight: all warps of a block together, in
 * 1/16 clocks. `one_copy`: warps that hold replicas skip a load. */
int64_t lilac_coalesce_price(const assignment *a, const memory_access *access,
                             const lilac_layout *layout, bool one_copy);
/* The number of warp instructions by which an element-wise operation in this layout exceeds one in
 * a layout without copies. */
int64_t lilac_coalesce_repeated(const assignment *a, const lilac_tile_type *type,
                                const lilac_layout *layout);
/* Fills `own`: the layouts in which the access of a memory operation is cheapest, the plain one
 * first. */
void lilac_coalesce_own(assignment *a, layout_anchor *anchor);
/* The layouts that the memory operations of a component propose together: plain ones; with
 * CANDIDATES_VARIED also those that distribute lanes and warps differently; with CANDIDATES_COPIES
 * also those with full vectors, in which some threads hold copies. `blocks`: the columns of the blocks of
 * the cluster, as of blocked_shape. At most `most`; returns their number, 0 after a diagnostic. */
#define CANDIDATES_VARIED 1u
#define CANDIDATES_COPIES 2u
uint32_t lilac_coalesce_candidates(assignment *a, const layout_anchor *first, uint32_t kinds,
                                   const uint64_t *blocks, const lilac_layout **result,
                                   uint32_t most);

/* ---- eviction.c ------------------------------------------------------------------------- */

/* Gives loads of memory that is needed again the normal eviction policy. */
void lilac_keep_cached(const assignment *a);

/* price.c: in 1/16 clocks, for one execution, all warps of a block together */
int64_t lilac_price_conversion(assignment *a, const lilac_layout *from, const lilac_layout *to,
                               uint32_t bits);
/* The same for a tensor that is in shared memory already: what remains is the load. */
int64_t lilac_price_staged_load(assignment *a, const lilac_layout *from, const lilac_layout *to,
                                uint32_t bits);
/* The price of `times` executions. */
static inline int64_t lilac_price_times(int64_t price, int64_t times) {
    return price >= PRICE_IMPOSSIBLE ? PRICE_IMPOSSIBLE : price * times;
}
/* The price of an anchor in a layout by its relation, which is computed once for each layout. */
int64_t lilac_price_anchor(assignment *a, const layout_anchor *anchor, const lilac_layout *layout);
/* The relations' prices: that of the plan of a reduction or a scan whose operands have this layout,
 * or of a gather whose tensors all have it. */
layout_price lilac_price_reduce, lilac_price_scan, lilac_price_gather;

/* gather.c: the layouts that a gather proposes, as in layout_relation. */
uint32_t lilac_gather_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                                 const lilac_layout **result, uint32_t most);

/* blocks.c: how tensors are divided among the blocks of a cluster */
#define MOST_BLOCK_CHOICES (LILAC_MAX_RANK + 2)
/* Columns of the blocks that the layouts of a component may have; of each choice as many as the cluster
 * has block bits. A cluster of one block has one choice, NULL. */
typedef struct block_choices {
    uint32_t count;
    const uint64_t *columns[MOST_BLOCK_CHOICES];
} block_choices;
/* One choice for each dimension, whose highest bits are divided, continued in the others where it is too
 * short; all blocks have copies. */
void lilac_block_choices(block_choices *result, assignment *a, const lilac_tile_type *type);
/* Adds the columns of a layout, unless they are known or are not zero or distinct unit vectors. */
void lilac_block_choices_add(block_choices *result, const lilac_layout *layout, assignment *a);
/* The layout with the blocks of `like`; NULL: it needs too many registers. */
const lilac_layout *lilac_with_blocks(assignment *a, const lilac_layout *layout,
                                      const lilac_layout *like);
/* An operand of a product, before the operations that only rearrange it, and a layout whose blocks have the
 * parts that their products need. */
typedef struct product_operand {
    lilac_tile_value *value;
    const lilac_layout *layout;
} product_operand;
/* For a layout of the result; false: the operand is no tensor that is computed once. */
bool lilac_find_product_operand(product_operand *result, assignment *a, const lilac_tile_op *dot,
                                uint32_t operand, const lilac_layout *d);
/* A layout of the tensor that ttg.local_alloc stores in which each block has the part that its product
 * needs; NULL: no product uses the memory, or the cluster has one block. `native`: the layout of the tensor;
 * NULL: any. */
const lilac_layout *lilac_stored_layout(assignment *a, const lilac_tile_op *alloc,
                                        const lilac_layout *native);

/* dot.c: the relation of matrix products, as in layout_relation. */
layout_transfer lilac_dot_transfer;
uint32_t lilac_dot_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                              const lilac_layout **result, uint32_t most);
layout_price lilac_price_dot;
/* Of dots whose accumulators must have one layout the one with the highest rank chooses it: the layout of a
 * wgmma fits mma too, and multiply-adds fit every layout. */
uint32_t lilac_dot_rank(const assignment *a, const lilac_tile_op *op);

/* transfer.c */
const lilac_tile_type *lilac_transfer_type(assignment *a, const lilac_tile_type *type,
                                           const lilac_layout *layout);
/* The relation of an operation's tensors: RULE_NONE if it has none, RULE_REFUSED if no relation is
 * implemented. */
const layout_relation *lilac_layout_relation(const lilac_tile_op *op);
/* The layout of the results that follows from the layout of an operand, and the reverse, such that
 * the operation only permutes registers. NULL: no layout follows. */
const lilac_layout *lilac_transfer_forward(assignment *a, const lilac_tile_op *op, uint32_t operand,
                                           const lilac_layout *layout);
const lilac_layout *lilac_transfer_backward(assignment *a, const lilac_tile_op *op,
                                            uint32_t operand, const lilac_layout *result);

/* propagate.c */
void lilac_propagate_layouts(assignment *a);
/* The root of a node's set in a union-find. */
uint32_t lilac_propagate_find(uint32_t *parent, uint32_t node);
/* The layout of a node's equality class. */
const lilac_layout *lilac_propagate_layout(assignment *a, uint32_t node);

/* layout_constraints.c: unites the equality classes and adds the edges of all operations. */
void lilac_layout_constraints(assignment *a);
/* Unites two sets of a union-find. */
void lilac_propagate_unite(uint32_t *parent, uint32_t a, uint32_t b);
static inline bool lilac_layout_same_shape(const lilac_tile_type *x, const lilac_tile_type *y) {
    return x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
}
/* The column `relate` of the table of relations. */
void lilac_relate_all(assignment *a, const listed_op *listed);
void lilac_relate_memory(assignment *a, const listed_op *listed);
void lilac_relate_sides(assignment *a, const listed_op *listed);
void lilac_relate_shape(assignment *a, const listed_op *listed);
void lilac_relate_scan(assignment *a, const listed_op *listed);
void lilac_relate_gather(assignment *a, const listed_op *listed);
void lilac_relate_dot(assignment *a, const listed_op *listed);
void lilac_relate_control(assignment *a, const listed_op *listed);

/* accumulations.c: what split_reductions will do */
/* The loop that accumulates all results of the reduction; NULL: none does. With or without layouts. */
const lilac_tile_op *lilac_split_loop(const lilac_tile_op *reduce);
/* The layout of an operand whose axis is divided into T × R, the bits in threads and those in registers;
 * R is dimension axis + 1, unless it has no bits. False: the layout does not divide the axis so, or no
 * bit is in threads. */
bool lilac_split_layout(lilac_layout *view, const lilac_layout *layout, uint32_t axis,
                        uint32_t *register_bits);

/* rematerialise.c */
bool lilac_rematerialise(assignment *a);
/* The column `rewrite` of the table of relations. */
bool lilac_rewrite_same(rewriting *r, const listed_op *listed);
bool lilac_rewrite_anchor(rewriting *r, const listed_op *listed);
bool lilac_rewrite_shape(rewriting *r, const listed_op *listed);
bool lilac_rewrite_gather(rewriting *r, const listed_op *listed);
bool lilac_rewrite_dot(rewriting *r, const listed_op *listed);
bool lilac_rewrite_control(rewriting *r, const listed_op *listed);
bool lilac_rewrite_free(rewriting *r, const listed_op *listed);
bool lilac_rewrite_any(rewriting *r, const listed_op *listed);

#endif
