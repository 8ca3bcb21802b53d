/* Blocks of tensor descriptors in shared memory, and the tensor copies that fill and store it.
 *
 * A descriptor that the host makes is a parameter. Where lilac copies its blocks, the launcher
 * passes a tensor map (tensor_map.h), which has the base address, the shape, the strides and what
 * is outside of the tensor. Its box and its swizzle are the kernel's choice: lilac_engine_box.
 *
 *     tensor<128x64xf16>          rows of 128 bytes, swizzle of 128 bytes            1 copy
 *     tensor<64x256xbf16>         4 boxes of 64 rows of 128 bytes, one after another 4 copies
 *     tensor<32x16xf16>           rows of 32 bytes, swizzle of 32 bytes              1 copy
 *
 * This is the memory of #ttg.nvmma_shared, which wgmma reads. */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"
#include "memory/memory_layouts.h"

enum { MOST_SIZE = 256, LEAST_ROWS = 8, MOST_SWIZZLE = 128, LEAST_SWIZZLE = 32, LEAST_BYTES = 16 };

static bool is_power(int64_t size) {
    return size > 0 && (size & (size - 1)) == 0;
}

/* The widest swizzle of rows of this number of bytes whose pattern the rows of one copy fill. */
static uint32_t widest_swizzle(const lilac_tile_type *block, uint64_t bytes) {
    int64_t rows = 1;
    for (uint32_t d = 0; d + 1 < block->rank; d++) {
        rows *= min_i64(block->shape[d], MOST_SIZE);
    }
    if (rows < LEAST_ROWS || bytes < LEAST_SWIZZLE) {
        return 0;
    }
    return bytes < MOST_SWIZZLE ? (uint32_t)bytes : MOST_SWIZZLE;
}

bool lilac_engine_box(lilac_box *box, const lilac_tile_type *block) {
    if (block->rank == 0 || block->rank > DESCRIPTOR_MOST_RANK ||
        lilac_tile_element(block)->kind != LILAC_TILE_SCALAR) {
        return false;
    }
    const uint32_t bits = lilac_tile_element_bits(block), last = block->rank - 1;
    const uint64_t bytes = (uint64_t)block->shape[last] * bits / 8;
    const lilac_encoding *encoding = block->encoding;
    if ((bits != 8 && bits != 16 && bits != 32 && bits != 64) || bytes < LEAST_BYTES) {
        return false;
    }
    *box = (lilac_box){.rank = block->rank, .swizzle_bytes = widest_swizzle(block, bytes)};
    if (encoding != NULL && encoding->kind == LILAC_ENCODING_NVMMA_SHARED) {
        box->swizzle_bytes = encoding->as.nvmma_shared.swizzling_byte_width;
    }
    for (uint32_t d = 0; d < block->rank; d++) {
        if (!is_power(block->shape[d])) {
            return false;
        }
        box->sizes[d] = (uint32_t)min_i64(block->shape[d], MOST_SIZE);
    }
    if (box->swizzle_bytes > 0) {
        box->sizes[last] = min_u32(box->sizes[last], box->swizzle_bytes * 8 / bits);
    }
    return box->sizes[last] * bits / 8 >= LEAST_BYTES;
}

lilac_tile_value *lilac_box_of(const lilac_tile_op *load) {
    return load->code == LILAC_TILE_OP_TT_LOAD ? lilac_tile_operand(load, 3) : NULL;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* One buffer, or with count > 0 that number of buffers. */
typedef struct buffers {
    uint32_t rank;
    const int64_t *shape;
    uint32_t count;
} buffers;

static lilac_encoding_memdesc describe(lilac_scalar scalar, const buffers *b) {
    const uint32_t more = b->count > 0;
    lilac_encoding_memdesc memory = {
        .rank = b->rank + more, .alloc_rank = b->rank + more, .scalar = scalar, .is_mutable = true};
    memory.shape[0] = memory.alloc_shape[0] = b->count;
    for (uint32_t d = 0; d < b->rank; d++) {
        memory.shape[d + more] = memory.alloc_shape[d + more] = b->shape[d];
    }
    return memory;
}

/* Memory of these elements. */
static const lilac_tile_type *memory_of(lilac_tile_module *module, const lilac_encoding *encoding,
                                        lilac_scalar scalar, const buffers *b) {
    lilac_encoding *kept = lilac_arena_new(module->arena, lilac_encoding); /* types point to it */
    *kept = *encoding;
    lilac_encoding_memdesc memory = describe(scalar, b);
    memory.encoding = kept;
    if (!lilac_encoding_layout(module->context, &memory.layout, encoding, b->rank, b->shape)) {
        return NULL; /* the sizes are powers of two, so there is a layout */
    }
    return lilac_tile_memory(module, &memory);
}

/* Memory in which each block of a cluster has its part; `blocks`: columns of its rank's bits. */
static const lilac_tile_type *divided_memory(lilac_tile_module *module,
                                             const lilac_encoding *encoding, lilac_scalar scalar,
                                             const buffers *b, uint32_t bits,
                                             const uint64_t *blocks) {
    lilac_encoding_memdesc memory = describe(scalar, b);
    if (!lilac_memory_of_part(&memory.layout, module->context, encoding, b->rank, b->shape, bits,
                              blocks)) {
        return NULL; /* the columns are zero or different unit vectors: lilac_box_loaded */
    }
    return lilac_tile_memory(module, &memory);
}

const lilac_tile_type *lilac_box_memory(lilac_tile_module *module, const lilac_tile_type *tensor,
                                        const lilac_tile_type *descriptor) {
    const lilac_scalar scalar = lilac_tile_element(tensor)->scalar;
    uint64_t blocks[LILAC_LAYOUT_MAX_BITS];
    const uint32_t bits =
        tensor->layout != NULL ? lilac_layout_block_columns(blocks, tensor->layout) : 0;
    lilac_encoding encoding;
    lilac_box box;
    if (!lilac_engine_box(&box, bits > 0 ? descriptor->element : tensor)) {
        return NULL;
    }
    lilac_encoding_nvmma_shared(&encoding, tensor->rank, box.swizzle_bytes, false,
                                lilac_tile_element_bits(tensor), false);
    return bits > 0
               ? divided_memory(module, &encoding, scalar,
                                &(buffers){tensor->rank, tensor->shape, 0}, bits, blocks)
               : memory_of(module, &encoding, scalar, &(buffers){tensor->rank, tensor->shape, 0});
}

/* ---- operations --------------------------------------------------------------------------- */

/* `block_bits`: of the rank of a block in its cluster; each block has its own. */
static const lilac_tile_type *barrier_type(const lilac_emitter *e, uint32_t block_bits,
                                           uint32_t count) {
    static const uint32_t order[1] = {0};
    static const int64_t one[1] = {1};
    static const uint64_t all[LILAC_LAYOUT_MAX_BITS];
    const buffers b = {1, one, count};
    lilac_encoding encoding;
    lilac_encoding_swizzled_shared(&encoding, 1, 1, 1, 1, order);
    return block_bits > 0 ? divided_memory(e->module, &encoding, LILAC_I64, &b, block_bits, all)
                          : memory_of(e->module, &encoding, LILAC_I64, &b);
}

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

lilac_tile_value *lilac_box_barrier(const lilac_emitter *e, lilac_tile_value *barriers,
                                    lilac_tile_value *index) {
    lilac_tile_value *operands[2] = {barriers, index};
    const uint32_t bits = lilac_layout_in_bits(barriers->type->layout, "block");
    return lilac_emit(e, LILAC_TILE_OP_TTG_MEMDESC_INDEX, barrier_type(e, bits, 0), 2, operands)
        ->results;
}

/* `arrivals`: of a phase, where mbarriers are initialised. */
static void for_each(const lilac_emitter *e, lilac_tile_value *barriers, uint32_t count,
                     lilac_tile_opcode code, uint32_t arrivals) {
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_value *barrier = lilac_box_barrier(e, barriers, i32(e, i));
        lilac_tile_op *op = lilac_emit(e, code, NULL, 1, &barrier);
        if (code == LILAC_TILE_OP_TTNG_INIT_BARRIER) {
            lilac_emit_attribute(e, op, "count", arrivals);
        }
        if (i > 0) { /* the barrier of the block in front of the first one is enough */
            lilac_emit_attribute(e, op, "lilac.ordered", 1);
        }
    }
}

void lilac_box_fence(const lilac_emitter *e) {
    const lilac_tile_attribute cluster = {.kind = LILAC_TILE_ATTR_BOOL,
                                          .name =
                                              lilac_intern_string(e->module->context, "bCluster"),
                                          .type = lilac_tile_scalar(e->module, LILAC_I1)};
    lilac_tile_op *fence = lilac_emit(e, LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED, NULL, 0, NULL);
    lilac_tile_set_attribute(e->module, &fence->attributes, &cluster);
}

lilac_tile_value *lilac_box_make_barriers(const lilac_emitter *e, uint32_t num_ctas, uint32_t count,
                                          uint32_t arrivals) {
    const lilac_tile_type *type = barrier_type(e, log2_of(num_ctas), count);
    lilac_box_fence(e);
    lilac_tile_value *barriers =
        lilac_emit(e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, type, 0, NULL)->results;
    for_each(e, barriers, count, LILAC_TILE_OP_TTNG_INIT_BARRIER, arrivals);
    return barriers;
}

void lilac_box_remove_barriers(const lilac_emitter *e, lilac_tile_value *barriers, uint32_t count) {
    for_each(e, barriers, count, LILAC_TILE_OP_TTNG_INVAL_BARRIER, 0);
    (void)lilac_emit(e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &barriers);
}

lilac_tile_op *lilac_box_expect(const lilac_emitter *e, lilac_tile_value *barrier, uint64_t bytes,
                                lilac_tile_value *predicate) {
    lilac_tile_value *operands[2] = {barrier, predicate};
    lilac_tile_op *op = lilac_emit(e, LILAC_TILE_OP_TTNG_BARRIER_EXPECT, NULL, 2, operands);
    lilac_emit_attribute(e, op, "size", (int64_t)bytes);
    return op;
}

lilac_tile_op *lilac_box_start(const lilac_emitter *e, lilac_tile_value *box,
                               lilac_tile_value *memory, lilac_tile_value *barrier,
                               lilac_tile_value *predicate) {
    const lilac_tile_op *place = box->op;
    lilac_tile_value *operands[LILAC_MAX_RANK + 4];
    uint32_t n = 0;
    for (; n < place->operand_count; n++) {
        operands[n] = place->operands[n].value; /* the descriptor and the coordinates */
    }
    operands[n++] = barrier;
    operands[n++] = memory;
    operands[n++] = predicate;
    return lilac_emit(e, LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, NULL, n, operands);
}

void lilac_box_store(const lilac_emitter *e, const lilac_tile_op *store, lilac_tile_value *memory) {
    const bool reduces = store->code == LILAC_TILE_OP_TT_DESCRIPTOR_REDUCE;
    lilac_tile_value *operands[LILAC_MAX_RANK + 2] = {store->operands[0].value};
    uint32_t n = 1;
    for (uint32_t i = 2; i < store->operand_count; i++) {
        operands[n++] = store->operands[i].value; /* the coordinates */
    }
    operands[n++] = memory;
    lilac_tile_op *op = lilac_emit(e,
                                   reduces ? LILAC_TILE_OP_TTNG_ASYNC_TMA_REDUCE
                                           : LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_LOCAL_TO_GLOBAL,
                                   NULL, n, operands);
    if (reduces) {
        lilac_emit_keyword(e, op, "kind", lilac_tile_find_text(&store->attributes, "kind"));
    }
}

void lilac_box_wait_for_stores(const lilac_emitter *e, bool written) {
    lilac_tile_op *wait = lilac_emit(e, LILAC_TILE_OP_TTNG_ASYNC_TMA_STORE_WAIT, NULL, 0, NULL);
    lilac_emit_attribute(e, wait, "pendings", 0);
    if (written) {
        const lilac_tile_attribute mark = {
            .kind = LILAC_TILE_ATTR_UNIT,
            .name = lilac_intern_string(e->module->context, "lilac.written")};
        lilac_tile_set_attribute(e->module, &wait->attributes, &mark);
    }
}

void lilac_box_wait(const lilac_emitter *e, lilac_tile_value *barrier, lilac_tile_value *parity) {
    lilac_tile_value *operands[2] = {barrier, parity};
    (void)lilac_emit(e, LILAC_TILE_OP_TTNG_WAIT_BARRIER, NULL, 2, operands);
}

lilac_tile_value *lilac_box_next_parity(const lilac_emitter *e, lilac_tile_value *parity,
                                        lilac_tile_value *next_slot) {
    lilac_tile_value *begins =
        lilac_emit_compare(e, "eq", next_slot, lilac_emit_integer(e, next_slot->type, 0));
    lilac_tile_value *other = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_XORI, parity,
                                                lilac_emit_integer(e, parity->type, 1));
    return lilac_emit_select(e, begins, other, parity);
}
