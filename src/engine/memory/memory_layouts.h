/* Declarations that the files of the choice of memory layouts share: the values of memory of a
 * function, how layouts follow from each other, and the plans of the accesses. */
#ifndef LILAC_ENGINE_MEMORY_LAYOUTS_H
#define LILAC_ENGINE_MEMORY_LAYOUTS_H

#include "layouts/assign.h"

/* A value of memory and the layout that it has at this point of the search. */
typedef struct memory_node {
    lilac_tile_value *value;
    uint32_t group;  /* union-find */
    bool is_array;   /* the first dimension is the number of a buffer */
    bool has_layout; /* `layout` is valid */
    lilac_layout layout;
    const lilac_encoding *encoding; /* the named form of a layout that a type has */
    uint64_t shift;                 /* bits of offsets at which a subslice may begin */
} memory_node;

/* The layout of `to` follows from that of `from`: they are equal, or a view maps one to the other.
 */
typedef struct memory_edge {
    lilac_tile_op *op;
    uint32_t from, to;
} memory_edge;

/* An operation that moves a tensor to or from memory. */
typedef struct shared_access {
    lilac_tile_op *op;
    uint32_t node;
    const lilac_tile_type *tensor; /* its layout is that of the registers */
    bool loads;
    int64_t weight; /* how often it runs, roughly */
} shared_access;

/* An operand of a wgmma. */
typedef struct shared_product {
    const lilac_tile_op *op;
    uint32_t node, operand;
} shared_product;

typedef struct memory_graph {
    lilac_tile_function *function;
    const lilac_target *target;
    lilac_arena *arena;
    lilac_axis_analysis axis;
    uint32_t *node_of; /* by value id: the node's number + 1, 0: no memory */
    memory_node *nodes;
    memory_edge *edge_list;
    shared_access *access_list;
    shared_product *product_list;
    lilac_tile_op **other_list; /* operations that use memory in another way */
    uint32_t node_count, edge_count, access_count, product_count, other_count;
    uint32_t edge_capacity, access_capacity, product_capacity, other_capacity;
} memory_graph;

/* memory_graph.c */
/* Lists the values of memory of a function, their relations and their accesses. Numbers the
 * function's values. */
void lilac_memory_graph_init(memory_graph *graph, lilac_arena *arena, lilac_tile_function *function,
                             const lilac_target *target);
/* The number of a node's group: one of its nodes. */
uint32_t lilac_memory_group(memory_graph *graph, uint32_t node);
/* Removes the layouts of the nodes of a group. */
void lilac_memory_forget(memory_graph *graph, uint32_t group);
/* Gives every node of the group the layout that follows from those that some nodes have. Works for
 * layouts of memory and for layouts of tensors with the dimensions of the allocation. Returns NULL,
 * or the operation whose operand and result would not have the layouts that it relates. */
const lilac_tile_op *lilac_memory_spread(memory_graph *graph, uint32_t group);
/* Whether a layout has the dimensions of the allocation, or of one buffer of it. */
bool lilac_memory_fits(const memory_node *node, const lilac_layout *layout);
/* After lilac_memory_spread: the offsets at which subslices of the group begin. */
void lilac_memory_find_shifts(memory_graph *graph, uint32_t group);

/* memory_layouts.c */
/* The layout of memory in which each block of a cluster has its part of the elements, in the layout that the
 * encoding has for tensors of the part's shape (lilac_layout_add_blocks). False: the encoding or the
 * columns do not fit. */
bool lilac_memory_of_part(lilac_layout *result, lilac_context *context,
                          const lilac_encoding *encoding, uint32_t rank, const int64_t *shape,
                          uint32_t block_bits, const uint64_t *blocks);

/* product_memory.c */
/* Can wgmma read the operand of a product in the layout of its node? */
bool lilac_shared_product_fits(const memory_graph *graph, const shared_product *product,
                               lilac_reason *why);

/* shared_access.c */
/* The layout of the access's tensor with the dimensions of the allocation. If `whole` is set,
 * additional registers hold the elements of the other subslices. */
bool lilac_shared_access_layout(lilac_layout *result, const memory_graph *graph,
                                const shared_access *access, bool whole);
/* The plan of an access, which the lowering executes: by vectors, by matrix instructions if they
 * cost less, or by asynchronous copies. The node has a layout and a shift. Warps and transactions
 * that hold replicas only do not store and are not counted. */
bool lilac_shared_access_plan(lilac_plan_access *result, const memory_graph *graph,
                              const shared_access *access, lilac_reason *why);
/* Are there asynchronous copies of a ttg.async_copy_global_to_local to whole buffers of memory with
 * this layout? Its memory operand is not read, so that it may be missing. */
bool lilac_shared_copy_exists(const lilac_tile_op *copy, const lilac_layout *memory,
                              const lilac_axis_analysis *axis, const lilac_target *target);
/* The price of a plan in 1/16 clocks, once, all warps of a block together. */
int64_t lilac_shared_access_cycles(const lilac_plan_access *plan, bool loads,
                                   const lilac_arch *arch);
/* The price of reading a whole buffer of that layout as a tensor, in the same unit; INT64_MAX: there is no
 * plan. */
int64_t lilac_shared_read_cycles(const lilac_layout *tensor, const lilac_layout *memory,
                                 uint32_t element_bits, const lilac_arch *arch);

#endif
