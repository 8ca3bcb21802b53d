/* Tensor copies and mbarriers: ttng.init_barrier, inval_barrier, barrier_expect, arrive_barrier,
 * async_copy_mbarrier_arrive, wait_barrier, async_tma_copy_global_to_local,
 * async_tma_copy_local_to_global, async_tma_reduce, async_tma_store_wait.
 *
 *     init_barrier      barrier, mbarrier.init, fence
 *     inval_barrier     barrier, mbarrier.inval
 *     barrier_expect    mbarrier.arrive.expect_tx
 *     arrive_barrier    barrier, mbarrier.arrive; with lilac.each_warp without the barrier, by the
 *                       first lane of each warp; with lilac.cluster at the mbarriers of all blocks
 *     async_copy_mbarrier_arrive   cp.async.mbarrier.arrive.noinc by all threads
 *     async_tma_copy    barrier, then one cp.async.bulk.tensor for each box (lilac_engine_box); behind
 *                       those of a store or reduction, cp.async.bulk.commit_group
 *     wait_barrier      mbarrier.try_wait in a loop
 *     store_wait        cp.async.bulk.wait_group.read, barrier
 *
 * One thread of the block initialises mbarriers, announces bytes and starts copies; all threads wait.
 * elect.sync names it: where a comparison of thread numbers does, ptxas emits a loop over the lanes of
 * the warp for many copies, which the products of that warp wait for (bench/results/decisions.md).
 * The first thread of a program of warps does where there are several: a producer has nothing
 * else to do. The barrier of the block in front of a copy orders it behind all earlier accesses
 * to the memory. What threads have written there is visible to stores behind a
 * ttng.fence_async_shared, which precedes the barrier.
 *
 * The map's descriptor is a parameter of the kernel, or in scratch memory (tensor_map.c). The
 * memory must have the layout that copies of its blocks access: #ttg.nvmma_shared with the swizzle
 * of lilac_engine_box. */
#include "coordinates.h"
#include "memory/descriptor.h"
#include "memory/memory_type.h"
#include "operations.h"

#include <lilac/tensor_map.h>

#include <string.h>

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
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value thread = lilac_simt_thread(&l->builder);
    if (count > 0) {
        thread = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_AND, type, thread,
                                lilac_lower_integer(l, type, count - 1));
    }
    return lilac_simt_compare_values(&l->builder, LILAC_SIMT_EQ, thread,
                                     lilac_lower_integer(l, type, 0));
}

/* True in one thread of the block, if the predicate (a tile value; NULL: true) is. */
static lilac_simt_value elect(lilac_lowering *l, const lilac_tile_value *predicate) {
    lilac_simt_value first =
        l->partitions != NULL ? is_first_of(l, 0) : lilac_simt_elected_thread(&l->builder);
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

/* An arrival of the block at the mbarrier of each block of the cluster: thread r arrives at that of
 * block r. */
static bool arrive_everywhere(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    shared_place place = {0};
    if (!find_place(l, op->operands[0].value, &place)) {
        return false;
    }
    lilac_lower_barrier(l);
    const lilac_simt_value thread = lilac_simt_thread(b);
    const lilac_simt_value rank =
        lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, thread,
                       lilac_lower_integer(l, LILAC_SIMT_I32, l->target->num_ctas - 1));
    const lilac_simt_value own =
        lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, place.address,
                       lilac_lower_integer(l, LILAC_SIMT_I32, place.offset));
    lilac_simt_value threads = lilac_simt_compare_values(
        b, LILAC_SIMT_LT, thread, lilac_lower_integer(l, LILAC_SIMT_I32, l->target->num_ctas));
    if (op->operand_count > 1) {
        threads =
            lilac_lower_both(l, threads, lilac_lower_get(l, lilac_lower_operand(l, op, 1), 0));
    }
    (void)lilac_simt_mbarrier(b, LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER,
                              lilac_simt_map_shared(b, own, rank), 0, threads, 0);
    return true;
}

static bool arrive(lilac_lowering *l, const lilac_tile_op *op) {
    const int64_t count = lilac_tile_find_integer(&op->attributes, "count", 0);
    if (count < 1) {
        return lilac_lower_bad_attribute(l, "count", "a positive number of arrivals");
    }
    lilac_simt_value threads;
    if (lilac_tile_find_integer(&op->attributes, "lilac.cluster", 0) != 0) {
        return count == 1 ? arrive_everywhere(l, op)
                          : lilac_lower_bad_attribute(l, "count", "1 arrival of each block");
    }
    if (lilac_tile_find_integer(&op->attributes, "lilac.each_warp", 0) != 0) {
        threads = is_first_of(l, l->target->arch->warp_size);
        if (op->operand_count > 1) {
            threads =
                lilac_lower_both(l, threads, lilac_lower_get(l, lilac_lower_operand(l, op, 1), 0));
        }
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

/* Has each block of the cluster an mbarrier of its own? Others are not lowered: which blocks share
 * them, and what they complete, is not known. */
static bool has_own_barriers(lilac_lowering *l, const lilac_tile_value *barrier) {
    const lilac_layout *layout = barrier->type->layout;
    if (layout == NULL || lilac_layout_in_bits(layout, "block") != log2_of(l->target->num_ctas)) {
        return lilac_lower_unsupported(l,
                                       "the kernel has %u blocks in a cluster; barriers and tensor "
                                       "copies are lowered where the layout of a barrier says that "
                                       "each block has its own",
                                       l->target->num_ctas);
    }
    return true;
}

bool lilac_lower_mbarrier(lilac_lowering *l, const lilac_tile_op *op) {
    if (!has_own_barriers(l, op->operands[0].value)) {
        return false;
    }
    lilac_simt_value number;
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
        number = attribute_of(l, op, "count");
        if (!mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_INIT, elect(l, NULL), number)) {
            return false;
        }
        lilac_simt_fence_mbarrier_init(&l->builder);
        return true;
    case LILAC_TILE_OP_TTNG_INVAL_BARRIER:
        order(l, op);
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_INVALIDATE, elect(l, NULL), 0);
    case LILAC_TILE_OP_TTNG_BARRIER_EXPECT:
        number = attribute_of(l, op, "size");
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_EXPECT, elect(l, op->operands[1].value),
                        number);
    default:
        if (op->operand_count != 2) {
            return lilac_lower_unsupported(l, "it has a predicate or dependences");
        }
        return mbarrier(l, op, LILAC_SIMT_OP_MBARRIER_WAIT, 0,
                        lilac_lower_get(l, lilac_lower_operand(l, op, 1), 0));
    }
}

/* ---- copies ------------------------------------------------------------------------------- */

/* What a partition's argument captures. */
static const lilac_tile_value *captured(const lilac_tile_value *value) {
    const lilac_tile_op *around = value->op == NULL ? value->block->parent->parent : NULL;
    return around != NULL && around->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE
               ? around->operands[value->index].value
               : value;
}

/* A parameter, or a map in scratch memory? */
static bool is_map(const lilac_lowering *l, const lilac_tile_value *descriptor) {
    descriptor = captured(descriptor);
    return descriptor->op != NULL
               ? descriptor->op->code == LILAC_TILE_OP_TTNG_REINTERPRET_TENSOR_DESCRIPTOR
               : descriptor->block == l->function->body->first;
}

/* A copy of a block under construction. */
typedef struct block_copy {
    const lilac_tile_op *op;
    const lilac_tile_type *block, *memory;
    lilac_box box;
    shared_place place;
    lilac_simt_tensor_copy copy; /* predicate, map, rank, mbarrier */
    lilac_simt_instruction
        like; /* the opcode, the operation of a reduction, the mbarrier's offset */
    lilac_simt_value coordinates[LILAC_TENSOR_RANK]; /* of the first element of the block's part */
    int64_t sizes[LILAC_TENSOR_RANK];                /* of the memory, by the block's dimensions */
    uint32_t dimensions[LILAC_TENSOR_RANK];          /* of the memory */
    uint32_t block_bits;                             /* of the rank of a block in its cluster */
    uint32_t free_blocks;                    /* those bits that do not change the block's part */
    uint64_t columns[LILAC_LAYOUT_MAX_BITS]; /* what each bit of the rank adds to the coordinates */
    uint64_t among_blocks[LILAC_TENSOR_RANK]; /* bits of a coordinate that the rank decides */
    uint64_t shares[LILAC_TENSOR_RANK][LILAC_LAYOUT_MAX_BITS]; /* likewise, of a multicast */
} block_copy;

/* Has the memory the block's sizes, but for dimensions of size 1? In a cluster, multiples of them.
 * Sets which dimension of the memory each of the block is. */
static bool find_dimensions(block_copy *b, bool divided) {
    const lilac_tile_type *memory = b->memory, *block = b->block;
    uint32_t m = 0;
    for (uint32_t d = 0; d < block->rank; d++) {
        b->sizes[d] = 1;
        while (m < memory->rank && memory->shape[m] == 1) {
            m++;
        }
        if (block->shape[d] == 1) {
            continue;
        }
        if (m == memory->rank || (divided ? memory->shape[m] % block->shape[d] != 0
                                          : memory->shape[m] != block->shape[d])) {
            return false;
        }
        b->sizes[d] = memory->shape[m];
        b->dimensions[d] = m++;
    }
    while (m < memory->rank && memory->shape[m] == 1) {
        m++;
    }
    return m == memory->rank;
}

/* The place of an element of the block in the memory, in elements. */
static bool find_offset(const block_copy *b, const int64_t *element, uint64_t *offset) {
    int64_t coordinates[LILAC_MAX_RANK] = {0};
    lilac_reason why;
    for (uint32_t d = 0; d < b->block->rank; d++) {
        if (b->sizes[d] > 1) {
            coordinates[b->dimensions[d]] = element[d];
        }
    }
    return lilac_lower_memory_offset(b->memory->layout, coordinates, offset, &why);
}

/* Sets which bits of the coordinates say in which block of the cluster an element is. False: the
 * memory has no blocks, or one has no whole boxes. */
static bool find_blocks(block_copy *b, uint32_t block_bits) {
    const lilac_layout *layout = b->memory->layout;
    b->block_bits = lilac_layout_block_columns(b->columns, layout);
    for (uint32_t i = 0; i < b->block_bits; i++) {
        b->free_blocks |= b->columns[i] == 0 ? 1U << i : 0;
        for (uint32_t d = 0; d < b->block->rank; d++) {
            if (b->sizes[d] > 1) {
                b->among_blocks[d] |=
                    lilac_layout_coordinate(layout, b->columns[i], b->dimensions[d]);
            }
        }
    }
    for (uint32_t d = 0; d < b->block->rank; d++) {
        if ((b->among_blocks[d] & (b->box.sizes[d] - 1)) != 0) {
            return false;
        }
    }
    return b->block_bits == block_bits;
}

/* Does each box of the memory have the places that a copy of it accesses? With the boxes' numbers
 * of elements powers of two, this is a matter of the unit vectors: those within a box are at the
 * swizzled number of the element, the others at multiples of a box. */
static bool has_boxes(const block_copy *b) {
    const uint32_t bytes = lilac_tile_element_bits(b->block) / 8;
    const lilac_tensor_swizzle swizzle = lilac_tensor_swizzle_of(b->box.swizzle_bytes);
    uint64_t box_bytes = bytes, stride = 1;
    bool good = true;
    for (uint32_t d = 0; d < b->block->rank; d++) {
        box_bytes *= b->box.sizes[d];
    }
    for (uint32_t d = b->block->rank; good && d-- > 0;) {
        for (int64_t k = 1; good && k < b->sizes[d]; k *= 2) {
            int64_t first[LILAC_TENSOR_RANK] = {0};
            uint64_t offset = 0;
            first[d] = k;
            good = find_offset(b, first, &offset) &&
                   (k < b->box.sizes[d]
                        ? offset * bytes ==
                              lilac_tensor_swizzle_apply(swizzle, stride * (uint64_t)k * bytes)
                        : offset * bytes % box_bytes == 0);
        }
        stride *= b->box.sizes[d];
    }
    return good;
}

/* The coordinates of the part of a block of the cluster. */
static void add_blocks(lilac_lowering *l, block_copy *b) {
    for (uint32_t d = 0; d < b->block->rank; d++) {
        uint64_t along[LILAC_LAYOUT_MAX_BITS];
        for (uint32_t i = 0; i < b->block_bits; i++) {
            along[i] = lilac_layout_coordinate(b->memory->layout, b->columns[i], b->dimensions[d]);
        }
        if (b->among_blocks[d] != 0) {
            b->coordinates[d] =
                lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, b->coordinates[d],
                               lilac_lower_linear(&l->builder, 0, NULL, b->block_bits, along));
        }
    }
}

static bool find_block(lilac_lowering *l, block_copy *b, const lilac_tile_value *memory) {
    const lilac_tile_value *descriptor = b->op->operands[0].value;
    b->block = descriptor->type->element;
    b->memory = memory->type;
    if (!is_map(l, descriptor)) {
        return lilac_lower_unsupported(l, "its descriptor is neither a parameter nor the result "
                                          "of ttng.reinterpret_tensor_descriptor");
    }
    if (!lilac_engine_box(&b->box, b->block)) {
        return lilac_lower_unsupported(l,
                                       "tensor copies move blocks of rank 1 to %d with rows of "
                                       "16 bytes or more",
                                       LILAC_TENSOR_RANK);
    }
    const bool fits = b->memory->layout != NULL && find_dimensions(b, l->target->num_ctas > 1);
    if (fits && !find_blocks(b, log2_of(l->target->num_ctas))) {
        return lilac_lower_unsupported(l,
                                       "a box of its descriptor lies in several of the %u "
                                       "blocks of the cluster",
                                       l->target->num_ctas);
    }
    if (!fits || !has_boxes(b)) {
        return lilac_lower_unsupported(
            l, "its memory does not have the layout of nvmma_shared with %u bytes of swizzle",
            b->box.swizzle_bytes);
    }
    b->copy.map = lilac_lower_get(l, &l->values[descriptor->id], 0);
    b->copy.rank = b->block->rank;
    for (uint32_t d = 0; d < b->block->rank; d++) {
        b->coordinates[d] = lilac_lower_get(l, lilac_lower_operand(l, b->op, 1 + d), 0);
    }
    add_blocks(l, b);
    return find_place(l, memory, &b->place);
}

static void put_copy(lilac_lowering *l, block_copy *b, const int64_t *first) {
    const uint32_t rank = b->block->rank;
    uint64_t offset = 0;
    (void)find_offset(b, first, &offset); /* has_boxes */
    lilac_simt_instruction like = b->like;
    like.immediate = b->place.offset + (int64_t)(offset * (lilac_tile_element_bits(b->block) / 8));
    like.shared_begin = b->place.begin;
    like.shared_end = b->place.end;
    for (uint32_t d = 0; d < rank; d++) {
        b->copy.coordinates[rank - 1 - d] =
            lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, b->coordinates[d],
                           lilac_lower_integer(l, LILAC_SIMT_I32, first[d]));
    }
    b->copy.shared = b->place.address;
    lilac_simt_build_tensor_copy(&l->builder, &like, &b->copy);
}

/* Is the box in the first part of the memory? */
static bool is_in_part(const block_copy *b, const int64_t *first) {
    uint64_t others = 0;
    for (uint32_t d = 0; d < b->block->rank; d++) {
        others |= (uint64_t)first[d] & b->among_blocks[d];
    }
    return others == 0;
}

/* One copy for each box of a block's part. */
static void put_copies(lilac_lowering *l, block_copy *b) {
    int64_t first[LILAC_TENSOR_RANK] = {0};
    for (uint32_t d = 0; d < b->block->rank;) {
        if (is_in_part(b, first)) {
            put_copy(l, b, first);
        }
        for (d = 0; d < b->block->rank; d++) { /* the next box; d = rank: there is none */
            const uint32_t k = b->block->rank - 1 - d;
            first[k] += b->box.sizes[k];
            if (first[k] < b->sizes[k]) {
                break;
            }
            first[k] = 0;
        }
    }
}

/* The blocks that have the same part copy a share of it to all of them. The highest bits of the
 * place in the part say whose share a box is in: they follow the free bits of the rank, as the
 * coordinates do that they stand for. */
static bool find_shares(block_copy *b, uint64_t *places) {
    const uint32_t bytes = lilac_tile_element_bits(b->block) / 8;
    const uint32_t free_bits = (uint32_t)__builtin_popcount(b->free_blocks);
    uint64_t part = lilac_lower_memory_size(b->memory, b->memory->rank), found = 0;
    const uint64_t least = part >> free_bits;
    for (uint32_t d = 0; d < b->block->rank; d++) {
        for (int64_t k = b->box.sizes[d]; k < b->sizes[d]; k *= 2) {
            int64_t first[LILAC_TENSOR_RANK] = {0};
            uint64_t offset = 0;
            first[d] = k;
            if ((b->among_blocks[d] & (uint64_t)k) != 0 || !find_offset(b, first, &offset) ||
                offset * bytes < least) {
                continue;
            }
            const uint32_t number = log2_of((int64_t)(offset * bytes / least));
            const uint32_t bit = lilac_lower_deposit(1U << number, b->free_blocks);
            b->shares[d][log2_of(bit)] = (uint64_t)k;
            places[log2_of(bit)] = offset * bytes;
            found++;
        }
    }
    return found == free_bits;
}

static bool share_copies(lilac_lowering *l, block_copy *b) {
    lilac_simt_builder *builder = &l->builder;
    const uint32_t all = l->target->num_ctas;
    uint64_t places[LILAC_LAYOUT_MAX_BITS] = {0}, own[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t peers = 0;
    if (!find_shares(b, places)) {
        return lilac_lower_unsupported(l, "its part has no share for each block of the cluster "
                                          "that needs it");
    }
    for (uint32_t d = 0; d < b->block->rank; d++) {
        uint64_t taken = 0;
        for (uint32_t i = 0; i < b->block_bits; i++) {
            taken |= b->shares[d][i];
        }
        if (taken != 0) {
            b->among_blocks[d] |= taken;
            b->coordinates[d] =
                lilac_simt_op2(builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, b->coordinates[d],
                               lilac_lower_linear(builder, 0, NULL, b->block_bits, b->shares[d]));
        }
    }
    b->place.address = lilac_simt_op2(builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, b->place.address,
                                      lilac_lower_linear(builder, 0, NULL, b->block_bits, places));
    for (uint32_t rank = 0; rank < all; rank++) { /* those with the part of block 0 */
        peers |= (rank & ~b->free_blocks) == 0 ? 1U << rank : 0;
    }
    for (uint32_t i = 0; i < b->block_bits; i++) {
        own[i] = (b->free_blocks >> i & 1) == 0 ? 1U << i : 0;
    }
    const lilac_simt_value shift = lilac_lower_linear(builder, 0, NULL, b->block_bits, own);
    b->copy.blocks = lilac_simt_op2(builder, LILAC_SIMT_OP_SHL, LILAC_SIMT_I32,
                                    lilac_lower_integer(l, LILAC_SIMT_I32, peers), shift);
    b->like.payload.bulk.multicast = true;
    return true;
}

static bool lower_load(lilac_lowering *l, const lilac_tile_op *op) {
    const uint32_t n = op->operand_count; /* descriptor coordinates barrier memory predicate */
    block_copy b = {.op = op, .like = {.code = LILAC_SIMT_OP_CP_TENSOR_LOAD}};
    shared_place signal = {0};
    if (!find_block(l, &b, op->operands[n - 2].value) ||
        !find_place(l, op->operands[n - 3].value, &signal)) {
        return false;
    }
    order(l, op);
    if (lilac_tile_find_integer(&op->attributes, "lilac.multicast", 0) != 0 &&
        !share_copies(l, &b)) {
        return false;
    }
    b.copy.predicate = elect(l, op->operands[n - 1].value);
    b.copy.mbarrier = signal.address;
    b.like.payload.bulk.mbarrier = (int32_t)signal.offset;
    put_copies(l, &b);
    return true;
}

/* The operation of a reduction on such elements. False: there is none. */
static bool find_reduction(const lilac_tile_op *op, const lilac_tile_type *element,
                           uint8_t *detail) {
    static const struct {
        const char *kind;
        lilac_simt_atomic atomic;
        bool extreme, bits;
    } rows[] = {{"add", LILAC_SIMT_ATOMIC_ADD, false, false},
                {"min", LILAC_SIMT_ATOMIC_MIN_S, true, false},
                {"max", LILAC_SIMT_ATOMIC_MAX_S, true, false},
                {"and", LILAC_SIMT_ATOMIC_AND, false, true},
                {"or", LILAC_SIMT_ATOMIC_OR, false, true},
                {"xor", LILAC_SIMT_ATOMIC_XOR, false, true}};
    const char *kind = lilac_tile_find_text(&op->attributes, "kind");
    const lilac_scalar scalar = element->scalar;
    const bool half = scalar == LILAC_F16 || scalar == LILAC_BF16;
    const bool integer = scalar == LILAC_I32 || scalar == LILAC_I64;
    for (size_t i = 0; kind != NULL && i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(kind, rows[i].kind) == 0) {
            *detail = (uint8_t)rows[i].atomic;
            if (rows[i].extreme && integer && element->sign != 's') { /* MIN_U, MAX_U */
                *detail =
                    (uint8_t)(rows[i].atomic + LILAC_SIMT_ATOMIC_MIN_U - LILAC_SIMT_ATOMIC_MIN_S);
            }
            return integer || (half && !rows[i].bits) ||
                   (scalar == LILAC_F32 && rows[i].atomic == LILAC_SIMT_ATOMIC_ADD);
        }
    }
    return false;
}

static bool lower_store(lilac_lowering *l, const lilac_tile_op *op) {
    block_copy b = {.op = op, .like = {.code = LILAC_SIMT_OP_CP_TENSOR_STORE}};
    const lilac_tile_type *block = op->operands[0].value->type->element;
    if (op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE) {
        b.like.code = LILAC_SIMT_OP_CP_TENSOR_REDUCE;
        if (!find_reduction(op, lilac_tile_element(block), &b.like.detail)) {
            return lilac_lower_unsupported(
                l, "tensor copies combine integers of 32 and 64 bits, add f16, bf16 and f32, and "
                   "have minima and maxima of f16 and bf16");
        }
    }
    if (!find_block(l, &b, op->operands[op->operand_count - 1].value)) {
        return false;
    }
    lilac_lower_barrier(l);
    const lilac_simt_value holder = lilac_lower_elect_holder(l, 0, b.free_blocks);
    b.copy.predicate = lilac_lower_both(l, elect(l, NULL), holder);
    put_copies(l, &b);
    lilac_simt_bulk_commit(&l->builder);
    return true;
}

bool lilac_lower_tensor_copy(lilac_lowering *l, const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL
               ? has_own_barriers(l, op->operands[op->operand_count - 3].value) && lower_load(l, op)
               : lower_store(l, op);
}

/* The barrier behind the wait orders what the other threads write to the memory next. With the
 * attribute lilac.written the stores have written global memory, not only read shared memory. */
bool lilac_lower_tensor_store_wait(lilac_lowering *l, const lilac_tile_op *op) {
    const bool written = lilac_tile_find(&op->attributes, "lilac.written") != NULL;
    lilac_simt_bulk_wait(
        &l->builder, (uint32_t)lilac_tile_find_integer(&op->attributes, "pendings", 0), !written);
    lilac_lower_barrier(l);
    return true;
}
