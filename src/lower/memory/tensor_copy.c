/* Tensor copies and mbarriers: ttng.init_barrier, inval_barrier, barrier_expect, arrive_barrier,
 * async_copy_mbarrier_arrive, wait_barrier, async_tma_copy_global_to_local.
 *
 *     init_barrier      barrier, mbarrier.init, fence
 *     inval_barrier     barrier, mbarrier.inval
 *     barrier_expect    mbarrier.arrive.expect_tx
 *     arrive_barrier    barrier, mbarrier.arrive; with lilac.each_warp without the barrier, by the
 *                       first lane of each warp
 *     async_copy_mbarrier_arrive   cp.async.mbarrier.arrive.noinc by all threads
 *     async_tma_copy    barrier, then one cp.async.bulk.tensor for each box (lilac_engine_box)
 *     wait_barrier      mbarrier.try_wait in a loop
 *
 * The first thread of the block initialises mbarriers, announces bytes and starts copies; all
 * threads wait. The barrier of the block in front of a copy orders it behind all earlier accesses
 * to the memory.
 *
 * The map's descriptor is a parameter of the kernel. The memory must have the layout that copies of
 * its blocks write: #ttg.nvmma_shared with the swizzle of lilac_engine_box. */
#include "memory/descriptor.h"
#include "memory/memory_type.h"
#include "operations.h"

/* A byte of shared memory: address (i32) + offset, and the bytes that the access may touch. */
typedef struct shared_place {
    lilac_simt_value address;
    int64_t offset;
    uint32_t begin, end;
} shared_place;

static bool find_place(lilac_lowering *l, const lilac_tile_value *value, shared_place *place) {
    const lilac_lower_memory *memory = l->values[value->id].memory;
    if (memory == NULL || memory->bytes == 0 || memory->shift != 0 || memory->dynamic_shift != 0) {
        return lilac_lower_unsupported(l, "its memory is a subslice, or is not derived from a "
                                          "ttg.local_alloc of this kernel");
    }
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_type type = LILAC_SIMT_I32;
    place->address = lilac_simt_build(&l->builder, &base, 0, NULL, 1, &type);
    if (memory->dynamic != 0) {
        place->address = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32,
                                        place->address, memory->dynamic);
    }
    place->offset = (int64_t)memory->begin + memory->constant;
    place->begin = memory->begin;
    place->end = memory->begin + memory->bytes;
    return true;
}

/* True in threads 0, count, 2 count, …; count is a power of two, 0 for thread 0 alone. */
static lilac_simt_value is_first_of(lilac_lowering *l, uint32_t count) {
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_THREAD};
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value thread = lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
    if (count > 0) {
        thread = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_AND, type, thread,
                                lilac_lower_integer(l, type, count - 1));
    }
    return lilac_simt_compare_values(&l->builder, LILAC_SIMT_EQ, thread,
                                     lilac_lower_integer(l, type, 0));
}

/* True in the first thread of the block, if the predicate (a tile value; NULL: true) is. */
static lilac_simt_value elect(lilac_lowering *l, const lilac_tile_value *predicate) {
    lilac_simt_value first = is_first_of(l, 0);
    int64_t number;
    const lilac_lower_value *value = predicate != NULL ? &l->values[predicate->id] : NULL;
    if (value == NULL || (lilac_lower_constant(l, value, &number) && number != 0)) {
        return first;
    }
    return lilac_lower_both(l, first, lilac_lower_get(l, value, 0));
}

static bool mbarrier(lilac_lowering *l, const lilac_tile_op *op, uint16_t code,
                     lilac_simt_value predicate, lilac_simt_value value) {
    shared_place place = {0};
    if (!find_place(l, op->operands[0].value, &place)) {
        return false;
    }
    const lilac_simt_instruction like = {.code = code,
                                         .immediate = place.offset,
                                         .shared_begin = place.begin,
                                         .shared_end = place.end};
    lilac_simt_value operands[3] = {place.address};
    uint32_t n = 1;
    if (predicate != 0) {
        operands[n++] = predicate;
    }
    if (value != 0) {
        operands[n++] = value;
    }
    lilac_simt_build(&l->builder, &like, n, operands, 0, NULL);
    return true;
}

static lilac_simt_value attribute_of(lilac_lowering *l, const lilac_tile_op *op, const char *name) {
    return lilac_lower_integer(l, LILAC_SIMT_I32,
                               lilac_tile_find_integer(&op->attributes, name, 0));
}

static bool arrive(lilac_lowering *l, const lilac_tile_op *op) {
    const int64_t count = lilac_tile_find_integer(&op->attributes, "count", 0);
    if (count < 1) {
        return lilac_lower_bad_attribute(l, "count", "a positive number of arrivals");
    }
    lilac_simt_value threads;
    if (lilac_tile_find_integer(&op->attributes, "lilac.each_warp", 0) != 0) {
        threads = is_first_of(l, l->target->arch->warp_size);
    } else {
        lilac_lower_barrier(l);
        threads = elect(l, op->operand_count > 1 ? op->operands[1].value : NULL);
    }
    return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_ARRIVE, threads,
                    count > 1 ? attribute_of(l, op, "count") : 0);
}

/* A barrier of the block, which the engine marks where another one is enough. */
static void order(lilac_lowering *l, const lilac_tile_op *op) {
    if (lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) == 0) {
        lilac_lower_barrier(l);
    }
}

/* Which blocks of a cluster share a barrier and a copy is not known to this lowering. */
static bool refuse_cluster(lilac_lowering *l) {
    return lilac_lower_unsupported(l, "the kernel has %u blocks in a cluster; barriers and tensor copies "
                                      "are lowered for one block",
                                   l->target->num_ctas);
}

bool lilac_lower_mbarrier(lilac_lowering *l, const lilac_tile_op *op) {
    if (l->target->num_ctas > 1) {
        return refuse_cluster(l);
    }
    switch (op->code) {
    case LILAC_TILE_OP_TTNG_ARRIVE_BARRIER:
        return arrive(l, op);
    case LILAC_TILE_OP_TTNG_ASYNC_COPY_MBARRIER_ARRIVE:
        if (lilac_tile_find(&op->attributes, "noIncrement") == NULL) {
            return lilac_lower_unsupported(l, "its arrivals are not counted by ttng.init_barrier; "
                                              "the attribute noIncrement is needed");
        }
        return mbarrier(l, op, LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE, 0, 0);
    case LILAC_TILE_OP_TTNG_INIT_BARRIER:
        order(l, op);
        if (!mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_INIT, elect(l, NULL),
                      attribute_of(l, op, "count"))) {
            return false;
        }
        lilac_simt_fence_mbarrier_init(&l->builder);
        return true;
    case LILAC_TILE_OP_TTNG_INVAL_BARRIER:
        order(l, op);
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_INVALIDATE, elect(l, NULL), 0);
    case LILAC_TILE_OP_TTNG_BARRIER_EXPECT:
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_EXPECT, elect(l, op->operands[1].value),
                        attribute_of(l, op, "size"));
    default:
        if (op->operand_count != 2) {
            return lilac_lower_unsupported(l, "it has a predicate or dependences");
        }
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_WAIT, 0,
                        lilac_lower_get(l, lilac_lower_operand(l, op, 1), 0));
    }
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Do copies of the descriptor's blocks write this layout? */
static bool has_box_layout(lilac_lowering *l, const lilac_box *box, const lilac_tile_type *block,
                           const lilac_tile_type *memory) {
    lilac_encoding encoding;
    lilac_layout layout;
    lilac_encoding_nvmma_shared(&encoding, 2, box->swizzle_bytes, false,
                                lilac_tile_element_bits(block), false);
    return memory->layout != NULL && memory->rank == 2 && memory->shape[0] == block->shape[0] &&
           memory->shape[1] == block->shape[1] &&
           lilac_encoding_layout(l->context, &layout, &encoding, 2, block->shape) &&
           lilac_layout_equal(&layout, memory->layout);
}

static bool is_map(const lilac_lowering *l, const lilac_tile_value *descriptor) {
    return descriptor->op == NULL &&
           descriptor->block == l->function->body->first; /* a parameter */
}

/* ttng.async_tma_copy_global_to_local descriptor coordinates barrier memory predicate */
bool lilac_lower_tensor_copy(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_tile_value *descriptor = op->operands[0].value, *barrier = op->operands[3].value,
                           *memory = op->operands[op->operand_count - 2].value;
    const lilac_tile_type *block = descriptor->type->element;
    lilac_box box;
    shared_place to = {0}, signal = {0};
    if (l->target->num_ctas > 1) {
        return refuse_cluster(l);
    }
    if (!is_map(l, descriptor) || !lilac_engine_box(&box, block)) {
        return lilac_lower_unsupported(l, "its descriptor is not a parameter, or has no blocks of "
                                          "rank 2 with rows of 32 bytes or more");
    }
    if (!has_box_layout(l, &box, block, memory->type)) {
        return lilac_lower_unsupported(
            l, "its memory does not have the layout of nvmma_shared with %u bytes of swizzle",
            box.swizzle_bytes);
    }
    if (!find_place(l, memory, &to) || !find_place(l, barrier, &signal)) {
        return false;
    }
    const lilac_lower_value *row = lilac_lower_operand(l, op, 1),
                            *column = lilac_lower_operand(l, op, 2);
    lilac_lower_barrier(l);
    lilac_simt_tensor_copy copy = {.shared = to.address,
                                   .predicate = elect(l, op->operands[op->operand_count - 1].value),
                                   .map = lilac_lower_get(l, &l->values[descriptor->id], 0),
                                   .rank = 2,
                                   .mbarrier = signal.address};
    copy.coordinates[1] = lilac_lower_get(l, row, 0);
    for (uint32_t i = 0; i < box.copies; i++) {
        const uint32_t bytes = box.rows * box.swizzle_bytes;
        copy.coordinates[0] = lilac_simt_op2(
            &l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, lilac_lower_get(l, column, 0),
            lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)i * box.columns));
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_CP_TENSOR_LOAD,
                                       .immediate = to.offset + (int64_t)i * bytes,
                                       .shared_begin = to.begin,
                                       .shared_end = to.end};
        like.payload.bulk.mbarrier = (int32_t)signal.offset;
        lilac_simt_build_tensor_copy(&l->builder, &like, &copy);
    }
    return true;
}
