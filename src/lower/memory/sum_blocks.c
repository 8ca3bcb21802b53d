/* lilac.sum_blocks: the blocks of a cluster along z add up their values.
 *
 *     if number of blocks S > 1 {
 *       barrier                                          of earlier users of the bytes
 *       st.shared                                        each thread its own registers
 *       cluster_barrier
 *       for each vector of block r's share, 1/S of all {
 *         ld.cluster of the blocks 0, 1, …, add          the same vector of the same thread
 *         st.cluster to block 0                          in its place
 *       }
 *       cluster_barrier
 *       ld.shared                                        in block 0: the sums
 *     }
 *
 * Each block adds up a share, so that the time for it does not grow with the number of blocks. The
 * order of the additions is that of the blocks. S is 2, 4 or 8; each has code of its own, in which
 * LOADS loads are in flight. Vector v of thread t is at byte (v * threads + t) * (bytes of a
 * vector): no access has bank conflicts, whatever the layout is. A launch without a cluster has one
 * block along z. */
#include "operations.h"
#include "shared_access.h"

enum { VECTOR = 4, WORD_BYTES = 4, LOADS = 16, MOST_BLOCKS = 8 };

typedef struct exchange {
    lilac_lowering *l;
    lilac_simt_type type;
    uint32_t count, vector, vectors; /* registers; those of a vector; vectors of a thread */
    uint32_t stride;                 /* bytes between vectors */
    lilac_simt_value address;        /* of the thread's first vector */
    lilac_simt_instruction promise;
} exchange;

static lilac_simt_value place(lilac_lowering *l, lilac_simt_opcode code) {
    const lilac_simt_instruction like = {.code = (uint16_t)code, .detail = 2};
    const lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
}

static void open_exchange(exchange *x, lilac_lowering *l, const lilac_lower_value *value) {
    lilac_simt_builder *b = &l->builder;
    const lilac_simt_type word = LILAC_SIMT_I32;
    const uint32_t threads = lilac_simt_threads(b);
    *x = (exchange){.l = l, .type = value->simt, .count = value->count};
    x->vector = x->count % VECTOR == 0 ? VECTOR : x->count % 2 == 0 ? 2 : 1;
    x->vectors = x->count / x->vector;
    x->stride = threads * x->vector * WORD_BYTES;
    lilac_lower_barrier(l);
    const uint32_t bytes = x->vectors * x->stride;
    const uint32_t scratch = lilac_lower_scratch(l, bytes);
    x->promise = (lilac_simt_instruction){.shared_begin = scratch, .shared_end = scratch + bytes};
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_value size = lilac_lower_integer(l, word, x->vector * WORD_BYTES);
    const lilac_simt_value offset =
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, word, lilac_simt_thread(b), size);
    const lilac_simt_value begin = lilac_lower_integer(l, word, scratch);
    x->address = lilac_simt_build(b, &base, 0, NULL, 1, &word);
    x->address = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, x->address, begin);
    x->address = lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, x->address, offset);
}

static void store(const exchange *x, const lilac_simt_value *values) {
    for (uint32_t v = 0; v < x->vectors; v++) {
        lilac_simt_store(&x->l->builder, LILAC_SIMT_OP_ST_SHARED, x->vector, &values[v * x->vector],
                         x->address, (int64_t)v * x->stride, 0, &x->promise);
    }
}

static void load(const exchange *x, lilac_simt_value *values) {
    for (uint32_t v = 0; v < x->vectors; v++) {
        const lilac_simt_value first =
            lilac_simt_load(&x->l->builder, LILAC_SIMT_OP_LD_SHARED, x->type, x->vector, x->address,
                            (int64_t)v * x->stride, 0, NULL, &x->promise);
        for (uint32_t e = 0; e < x->vector; e++) {
            values[v * x->vector + e] = first + e;
        }
    }
}

/* Adds up `count` vectors from this address on, those of all blocks, into the first block's.
 * `active`: 0, or whether the block has a share. */
static void add_vectors(const exchange *x, lilac_simt_value address, uint32_t count,
                        uint32_t blocks, lilac_simt_value active) {
    lilac_simt_builder *b = &x->l->builder;
    lilac_simt_value sums[LOADS * VECTOR], mapped[MOST_BLOCKS];
    const lilac_simt_opcode sum =
        x->type == LILAC_SIMT_F32 ? LILAC_SIMT_OP_FADD : LILAC_SIMT_OP_ADD;
    for (uint32_t q = 0; q < blocks; q++) {
        mapped[q] = lilac_simt_map_shared(b, address, lilac_lower_integer(x->l, LILAC_SIMT_I32, q));
        for (uint32_t v = 0; v < count; v++) {
            const lilac_simt_value part =
                lilac_simt_load(b, LILAC_SIMT_OP_LD_CLUSTER, x->type, x->vector, mapped[q],
                                (int64_t)v * x->stride, active, NULL, &x->promise);
            for (uint32_t e = 0; e < x->vector; e++) {
                lilac_simt_value *own = &sums[v * x->vector + e];
                *own = q == 0 ? part + e : lilac_simt_op2(b, sum, x->type, *own, part + e);
            }
        }
    }
    for (uint32_t v = 0; v < count; v++) {
        lilac_simt_store(b, LILAC_SIMT_OP_ST_CLUSTER, x->vector, &sums[v * x->vector], mapped[0],
                         (int64_t)v * x->stride, active, &x->promise);
    }
}

static lilac_simt_value integer(const exchange *x, uint32_t number) {
    return lilac_lower_integer(x->l, LILAC_SIMT_I32, number);
}

/* Each of the blocks adds up an equal part of the vectors of the sums, at least one. Both numbers are
 * powers of two. */
static void add_share(const exchange *x, uint32_t blocks) {
    lilac_simt_builder *b = &x->l->builder;
    const lilac_simt_type word = LILAC_SIMT_I32;
    const uint32_t share = x->vectors > blocks ? x->vectors / blocks : 1;
    const uint32_t at_once = share < LOADS / blocks ? share : LOADS / blocks;
    const lilac_simt_value rank = place(x->l, LILAC_SIMT_OP_BLOCK);
    const lilac_simt_value active =
        x->vectors >= blocks
            ? 0
            : lilac_simt_compare_values(b, LILAC_SIMT_LT, rank, integer(x, x->vectors));
    const lilac_simt_value begin = lilac_simt_op2(
        b, LILAC_SIMT_OP_ADD, word, x->address,
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, word, rank, integer(x, share * x->stride)));
    if (share == at_once) {
        add_vectors(x, begin, share, blocks, active);
        return;
    }
    const lilac_simt_value step = integer(x, at_once * x->stride);
    const lilac_simt_value end = integer(x, share * x->stride);
    lilac_simt_value distance;
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(b, integer(x, 0), end, step, 0, NULL, &distance);
    add_vectors(x, lilac_simt_op2(b, LILAC_SIMT_OP_ADD, word, begin, distance), at_once, blocks,
                active);
    (void)lilac_simt_loop_end(b, loop, NULL);
}

/* if blocks == 2 { … } else if blocks == 4 { … } else { … } */
static void add_shares(const exchange *x, lilac_simt_value blocks, uint32_t number) {
    lilac_simt_builder *b = &x->l->builder;
    if (number == MOST_BLOCKS) {
        add_share(x, number);
        return;
    }
    lilac_simt_instruction *branch = lilac_simt_if_begin(
        b, lilac_simt_compare_values(b, LILAC_SIMT_EQ, blocks, integer(x, number)), 0, NULL);
    add_share(x, number);
    lilac_simt_if_else(b, branch, NULL);
    add_shares(x, blocks, 2 * number);
    (void)lilac_simt_if_end(b, branch, NULL);
}

bool lilac_lower_sum_blocks(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_value *value = lilac_lower_operand(l, op, 0);
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    exchange x;
    if (result == NULL) {
        return false;
    }
    if (l->target->num_ctas > 1 || l->partitions != NULL) {
        return lilac_lower_unsupported(l, "the kernel has %s; expected one block without them",
                                       l->target->num_ctas > 1 ? "clusters of its own"
                                                               : "partitions of warps");
    }
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, value->count);
    lilac_simt_value *sums = lilac_arena_array(l->arena, lilac_simt_value, value->count);
    lilac_simt_type *types = lilac_arena_array(l->arena, lilac_simt_type, value->count);
    for (uint32_t r = 0; r < value->count; r++) {
        values[r] = lilac_lower_get(l, value, r);
        types[r] = value->simt;
    }
    const lilac_simt_value blocks = place(l, LILAC_SIMT_OP_GRID);
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(b,
                            lilac_simt_compare_values(b, LILAC_SIMT_GT, blocks,
                                                      lilac_lower_integer(l, LILAC_SIMT_I32, 1)),
                            value->count, types);
    open_exchange(&x, l, value);
    store(&x, values);
    lilac_simt_cluster_barrier(b);
    add_shares(&x, blocks, 2);
    lilac_simt_cluster_barrier(b);
    load(&x, sums);
    lilac_simt_if_else(b, branch, sums);
    const lilac_simt_value first = lilac_simt_if_end(b, branch, values);
    for (uint32_t r = 0; r < value->count; r++) {
        result->base[r] = first + r;
    }
    return true;
}
