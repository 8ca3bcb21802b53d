/* What the files of the pass assign_layouts share.
 *
 *   assign.c          the pass: which operations have a rule, the order of the steps
 *   coalesce.c        blocked layouts, the candidates and the prices of memory operations
 *   transfer.c        layouts through shape operations, both ways; interning
 *   price.c           what conversions and reductions cost
 *   propagate.c       values that must agree → groups → a layout for each
 *   refine.c          second thoughts where a conversion would stand
 *   memory_layouts.c  layouts of shared memory, when those of the tensors are known
 *   rematerialise.c   the rewriting: types, clones of cheap chains, conversions
 */
#ifndef LILAC_ENGINE_ASSIGN_H
#define LILAC_ENGINE_ASSIGN_H

#include "internal.h"

/* How an operation relates the layouts of its tensors. */
typedef enum layout_rule {
    RULE_NONE,    /* it has no tensors */
    RULE_REFUSED, /* it has, and no rule is known */
    RULE_SOURCE,  /* made from scalars: any layout */
    RULE_SAME,    /* operands and results alike */
    RULE_MEMORY,  /* the same, and an anchor */
    RULE_SHAPE,   /* expand_dims, broadcast, trans, reshape: a renaming */
    RULE_JOIN,
    RULE_SPLIT,
    RULE_REDUCE,  /* results are slices of the operands' */
    RULE_SCAN,    /* operands and results alike, and an anchor */
    RULE_GATHER,  /* index and result alike, the source too if it has their shape */
    RULE_FREE,    /* operands in any one layout, and the results in any other */
    RULE_CONTROL, /* scf and cf: what is carried agrees */
    RULE_ANY      /* takes its operands in any layout */
} layout_rule;

typedef struct assignment assignment;

/* The layout of result 0 from that of operand `operand`, or the reverse. False: there is none, or
 * no natural one. */
typedef bool layout_transfer(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                             const lilac_layout *layout);

/* A row of the table of layout relations (transfer.c), which the column `layout` of operations.def
 * names. An operand's layout is that of the results, or follows from it by the two functions, or is
 * independent of it. */
typedef struct layout_relation {
    layout_rule rule;
    bool same;                           /* the layouts of operands and results are equal */
    layout_transfer *forward, *backward; /* if they are not; NULL: no layout follows */
    bool anchor;                         /* the operation has a layout of its own */
    uint32_t leader;                     /* the operand that has it */
    bool converts_result; /* a conversion between the two sides follows the operation;
                                            otherwise, it precedes it */
    /* The price of an anchor whose leader has a layout. NULL: it is not priced by itself. */
    int64_t (*price)(assignment *a, const lilac_tile_op *op, const lilac_layout *layout);
    /* The layouts that an anchor proposes, at most `most`; returns their number. `order`: the
     * dimensions, those with the longest runs in memory first. NULL: it proposes none. */
    uint32_t (*candidates)(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                           const lilac_layout **result, uint32_t most);
} layout_relation;

typedef enum value_kind {
    VALUE_SCALAR, /* no tensor */
    VALUE_CHEAP,  /* computed from scalars by a few instructions: made anew in each layout wanted */
    VALUE_FIXED   /* computed once, in one layout */
} value_kind;

/* An access to global memory, before it has a layout. */
typedef struct memory_access {
    const lilac_tile_type *type; /* of the pointers */
    lilac_plan_global global;
    int64_t weight; /* how often it runs, roughly */
    bool streams;   /* not in a loop, and all that is done is to bring data into another order */
    bool once;      /* a load; its users need each element in one thread only */
} memory_access;

/* A blocked layout: `vector` elements a thread along order[0], then `tile` along order[1], then
 * lanes, then warps. */
typedef struct blocked_shape {
    const uint32_t *order;
    int64_t vector;
    int64_t tile;    /* 0: 1 */
    int64_t lanes;   /* most along order[0] while other dimensions have room; 0: all */
    bool slow_warps; /* warps along the last dimensions of the order first */
    bool copies;     /* vectors whole, though some threads then hold copies */
} blocked_shape;

#define OWN_LAYOUTS 4

/* An operation whose layout is a choice of its own: memory operations, reductions, joins. */
typedef struct layout_site {
    lilac_tile_op *op;
    const layout_relation *relation;
    uint32_t node;
    bool is_memory;
    memory_access access;
    int64_t weight;                  /* how often it runs, roughly */
    uint32_t first_link, link_count; /* edges to its data and mask */
    uint32_t own_count;              /* layouts it would like by itself; 0: not asked yet */
    const lilac_layout *own[OWN_LAYOUTS];
    struct layout_site *next; /* of the same component and kind */
} layout_site;

/* Links two groups of nodes through a shape operation, a reduction, a join or a split, or (op is
 * NULL) says that conversions aside both are alike. */
typedef struct layout_edge {
    const lilac_tile_op *op;
    uint32_t operand;  /* its operand on the operand side */
    uint32_t from, to; /* nodes of the operand and the result side */
} layout_edge;

typedef struct listed_op {
    lilac_tile_op *op;
    layout_rule rule;
    int64_t weight; /* how often it runs, roughly */
    layout_site *site;
} listed_op;

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
/* Of what no plan can do: dearer than anything, and yet many of them can be added up. */
#define PRICE_IMPOSSIBLE (INT64_C(1) << 50)

struct assignment {
    lilac_tile_module *module;
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena; /* of the pass */
    lilac_axis_analysis axis;

    listed_op *ops; /* in program order */
    uint32_t op_count;
    uint32_t value_count, node_count; /* nodes: values by id, then sites */
    uint8_t *kind;                    /* value_kind, by value id */
    int64_t *weight;                  /* by value id: how often it is made, roughly */
    uint8_t *once;                    /* by value id: who uses it needs one copy of an element */
    lilac_tile_value **value;         /* by id */
    layout_site **site_of;            /* by value id: the site whose result it is */

    layout_site *sites;
    uint32_t site_count;
    layout_edge *edges;
    uint32_t edge_count;
    uint32_t *group;             /* union-find: nodes that must have one layout */
    uint32_t *component;         /* union-find: groups that would like one */
    const lilac_layout **layout; /* by group root, once chosen */

    typed_layout types[TYPE_BUCKETS];
    priced_conversion *prices[PRICE_BUCKETS];
    priced_operation *operations[PRICE_BUCKETS];
    bool failed;
};

/* assign.c */
/* Costs so much that moving the result between threads is better than computing it twice. */
bool lilac_assign_is_heavy(lilac_tile_opcode code);
/* About how many cheap instructions it takes for each element of its result: special functions are
 * done at a part of the rate, divisions of integers are programs. */
int64_t lilac_assign_issues(const lilac_tile_op *op);
/* About how often the regions of an operation run that itself runs `weight` times. */
int64_t lilac_assign_inner_weight(const lilac_tile_op *op, int64_t weight);

/* memory_layouts.c */
/* Chooses the layouts of the memory whose types have none. The tensors have layouts. False after a
 * diagnostic. */
bool lilac_assign_memory_layouts(lilac_tile_function *function, const lilac_target *target,
                                 bool *changed);

/* coalesce.c */
/* Blocked layout as Triton's: `vector` elements a thread along order[0], then lanes, then warps;
 * no more elements than leave every thread with some. Interned; NULL only after a diagnostic. */
const lilac_layout *lilac_coalesce_blocked(assignment *a, const lilac_tile_type *type,
                                           const uint32_t *order, int64_t vector);
const lilac_layout *lilac_coalesce_shaped(assignment *a, const lilac_tile_type *type,
                                          const blocked_shape *shape);
/* Last dimension fastest, one element at a time: for what no memory operation reaches. */
const lilac_layout *lilac_coalesce_default(assignment *a, const lilac_tile_type *type);
void lilac_coalesce_access(const assignment *a, memory_access *access, const listed_op *listed);
/* The price of the access's plan in a layout, all warps of a block together, in 1/16 clocks.
 * `once`: warps that hold replicas skip a load. */
int64_t lilac_coalesce_cost(const assignment *a, const memory_access *access,
                            const lilac_layout *layout, bool once);
/* How many instructions of a warp an element-wise operation takes beyond those that a layout
 * without copies would. */
int64_t lilac_coalesce_repeated(const assignment *a, const lilac_tile_type *type,
                                const lilac_layout *layout);
/* The layouts that a memory operation might like for itself, all as good for it; the usual one
 * first. */
void lilac_coalesce_own(assignment *a, layout_site *site);
/* The layouts that the memory operations of a component might like together: the plain ones, such
 * that differ in which threads have what, and such that keep vectors whole where some threads then
 * hold copies. At most `most`; their number, 0 after a diagnostic. */
#define CANDIDATES_VARIED 1u
#define CANDIDATES_COPIES 2u
uint32_t lilac_coalesce_candidates(assignment *a, const layout_site *first, uint32_t kinds,
                                   const lilac_layout **result, uint32_t most);

/* price.c: in 1/16 clocks, once, all warps of a block together */
int64_t lilac_price_conversion(assignment *a, const lilac_layout *from, const lilac_layout *to,
                               uint32_t bits);
/* So many times. */
static inline int64_t lilac_price_times(int64_t price, int64_t times) {
    return price >= PRICE_IMPOSSIBLE ? PRICE_IMPOSSIBLE : price * times;
}
/* The price of a reduction or a scan whose operands have this layout, or of a gather whose tensors
 * all have it: that of its plan, which is made once for each layout. */
int64_t lilac_price_collective(assignment *a, const lilac_tile_op *op, const lilac_layout *layout);

/* gather.c: the price without that table; and the layouts that a gather proposes, given the order
 * of dimensions of memory: at most `most`, their number. */
int64_t lilac_price_gather(assignment *a, const lilac_tile_op *op, const lilac_layout *layout);
uint32_t lilac_gather_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                                 const lilac_layout **result, uint32_t most);

/* transfer.c */
const lilac_tile_type *lilac_transfer_type(assignment *a, const lilac_tile_type *type,
                                           const lilac_layout *layout);
/* The relation of an operation's tensors: RULE_NONE if it has none, RULE_REFUSED if none is
 * known. */
const layout_relation *lilac_layout_relation(const lilac_tile_op *op);
/* The layout of the results that follows from the layout of an operand, and the reverse, so that
 * the operation only permutes registers. NULL when there is none, or no natural one. */
const lilac_layout *lilac_transfer_forward(assignment *a, const lilac_tile_op *op, uint32_t operand,
                                           const lilac_layout *layout);
const lilac_layout *lilac_transfer_backward(assignment *a, const lilac_tile_op *op,
                                            uint32_t operand, const lilac_layout *result);

/* propagate.c */
void lilac_propagate_layouts(assignment *a);
uint32_t lilac_propagate_find(uint32_t *parent, uint32_t node);
/* The layout of a node's group. */
const lilac_layout *lilac_propagate_layout(assignment *a, uint32_t node);

/* rematerialise.c */
bool lilac_rematerialise(assignment *a);

#endif
