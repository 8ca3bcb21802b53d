/* Buffers: the allocations of shared memory in a function, and the memory descriptors that name
 * them.
 *
 *   buffer_flow.c      the allocations that each descriptor may name
 *   place_buffers.c    the lifetime of each allocation, and its place in shared memory
 *   descriptors.c      descriptors as SIMT values
 *   shared_memory.c    stores and loads
 *   async_copy.c       asynchronous copies from global memory */
#ifndef LILAC_LOWER_MEMORY_BUFFERS_H
#define LILAC_LOWER_MEMORY_BUFFERS_H

#include "lower_internal.h"

enum { LILAC_LOWER_BUFFER_ALIGNMENT = 128 };

/* A ttg.local_alloc. */
typedef struct lilac_lower_buffer {
    const lilac_tile_op *op;
    uint64_t begin, bytes;
    uint32_t first, last; /* its lifetime, as numbers of operations (place_buffers.c) */
} lilac_lower_buffer;

/* Facts about a memory descriptor that are known before its operation is lowered. */
typedef struct lilac_lower_flow {
    const lilac_tile_value *value;
    /* The operation that chooses it among several values: a loop, scf.if or arith.select. NULL: it
     * is an allocation or a view. */
    const lilac_tile_op *carrier;
    /* The value that it always equals and that is visible at the carrier; else itself. */
    const lilac_tile_value *equal;
    uint64_t *buffers;  /* the allocations that it may be a part of: a set of list indices */
    uint32_t alignment; /* a power of two that divides the byte where offset 0 is */
    uint64_t shift;     /* bits that may be set in the offset of its first element */
} lilac_lower_flow;

/* A descriptor `to` may equal, or be a part of, another one `from`: a view and its operand, or the
 * result of a carrier and one of the values that it chooses among. */
typedef struct lilac_lower_flow_edge {
    lilac_lower_flow *to;
    lilac_lower_flow *from; /* NULL: a poison value */
    const lilac_tile_op *op;
} lilac_lower_flow_edge;

/* An operation and the numbers of operations that it spans, those inside included. */
typedef struct lilac_lower_span {
    const lilac_tile_op *op;
    uint32_t begin, end;
} lilac_lower_span;

typedef struct lilac_lower_buffers {
    uint32_t count;
    lilac_lower_buffer *list; /* in the order of the text */
    uint32_t flow_count;
    lilac_lower_flow **flows;    /* in the order of the text */
    lilac_lower_flow **by_value; /* by value id; NULL: no memory descriptor */
    uint32_t edge_count;
    lilac_lower_flow_edge *edges;
    uint32_t words; /* of a set */
    uint32_t span_count;
    lilac_lower_span *spans; /* of all operations, sorted by address */
} lilac_lower_buffers;

/* Finds the allocations of the function, its descriptors and the allocations that they may name.
 * NULL: it has no descriptors. */
lilac_lower_buffers *lilac_lower_find_buffers(lilac_lowering *l);

static inline bool lilac_lower_may_name(const lilac_lower_flow *flow, uint32_t buffer) {
    return flow->buffers[buffer / 64] >> (buffer % 64) & 1;
}

static inline bool lilac_lower_is_loop(const lilac_tile_op *op) {
    return op != NULL && (op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_WHILE);
}

#endif
