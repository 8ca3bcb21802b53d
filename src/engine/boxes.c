/* Blocks of tensor descriptors in shared memory, and the tensor copies that fill it.
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
#include "boxes.h"

#include <lilac/tile_loops.h>

enum { MOST_ROWS = 256, LEAST_ROWS = 8, MOST_SWIZZLE = 128, LEAST_SWIZZLE = 32 };

static bool is_power(int64_t size) {
    return size > 0 && (size & (size - 1)) == 0;
}

bool lilac_engine_box(lilac_box *box, const lilac_tile_type *block) {
    if (block->rank != 2 || lilac_tile_element(block)->kind != LILAC_TILE_SCALAR ||
        !is_power(block->shape[0]) || !is_power(block->shape[1])) {
        return false;
    }
    const uint32_t bits = lilac_tile_element_bits(block);
    const uint64_t bytes = (uint64_t)block->shape[1] * bits / 8;
    if ((bits != 8 && bits != 16 && bits != 32) || bytes < LEAST_SWIZZLE ||
        block->shape[0] < LEAST_ROWS || block->shape[0] > MOST_ROWS) {
        return false;
    }
    box->swizzle_bytes = bytes < MOST_SWIZZLE ? (uint32_t)bytes : MOST_SWIZZLE;
    box->rows = (uint32_t)block->shape[0];
    box->columns = box->swizzle_bytes * 8 / bits;
    box->copies = (uint32_t)(bytes / box->swizzle_bytes);
    return true;
}

/* ---- which descriptors -------------------------------------------------------------------- */

static void find_product(void *data, lilac_tile_op *op) {
    bool *found = data;
    *found |= op->code == LILAC_TILE_OP_TT_DOT || op->code == LILAC_TILE_OP_TT_DOT_SCALED;
}

/* Is the operation in an scf.for with a matrix product? */
static bool is_in_product_loop(const lilac_tile_op *op) {
    bool found = false;
    for (op = op->parent->parent->parent; op != NULL && !found; op = op->parent->parent->parent) {
        if (op->code == LILAC_TILE_OP_SCF_FOR) {
            lilac_tile_walk(op->regions[0], find_product, &found);
        }
        if (op->parent == NULL) {
            break;
        }
    }
    return found;
}

static bool is_whole_load(const lilac_tile_use *use, const lilac_tile_type *block) {
    const lilac_tile_op *op = use->op;
    if (op->code != LILAC_TILE_OP_TT_DESCRIPTOR_LOAD || use->index != 0) {
        return false;
    }
    const lilac_tile_type *type = op->results[0].type;
    return type->layout == NULL && type->rank == block->rank && type->shape[0] == block->shape[0] &&
           type->shape[1] == block->shape[1];
}

bool lilac_box_is_copied(const lilac_tile_value *parameter, const lilac_target *target) {
    lilac_box box;
    bool products = false;
    if (parameter->type->kind != LILAC_TILE_DESCRIPTOR || target->num_ctas != 1 ||
        !lilac_arch_has(target->arch, LILAC_HAS_TMA | LILAC_HAS_WGMMA) ||
        !lilac_engine_box(&box, parameter->type->element) ||
        (uint64_t)box.rows * box.swizzle_bytes * box.copies > target->arch->shared_bytes / 2) {
        return false;
    }
    for (const lilac_tile_use *use = parameter->uses; use != NULL; use = use->next) {
        if (!is_whole_load(use, parameter->type->element)) {
            return false;
        }
        products = products || is_in_product_loop(use->op);
    }
    return products;
}

lilac_tile_value *lilac_box_of(const lilac_tile_op *load) {
    return load->code == LILAC_TILE_OP_TT_LOAD ? lilac_tile_operand(load, 3) : NULL;
}

/* ---- memory ------------------------------------------------------------------------------- */

/* Memory of these elements: one buffer, or with count > 0 so many of them. */
static const lilac_tile_type *memory_of(lilac_tile_module *module, const lilac_encoding *encoding,
                                        lilac_scalar scalar, uint32_t rank, const int64_t *shape,
                                        uint32_t count) {
    const uint32_t more = count > 0;
    lilac_encoding *kept = lilac_arena_new(module->arena, lilac_encoding); /* types point to it */
    *kept = *encoding;
    lilac_encoding_memdesc memory = {.rank = rank + more,
                                     .alloc_rank = rank + more,
                                     .scalar = scalar,
                                     .is_mutable = true,
                                     .encoding = kept};
    memory.shape[0] = memory.alloc_shape[0] = count;
    for (uint32_t d = 0; d < rank; d++) {
        memory.shape[d + more] = memory.alloc_shape[d + more] = shape[d];
    }
    if (!lilac_encoding_layout(module->context, &memory.layout, encoding, rank, shape)) {
        return NULL; /* the sizes are powers of two, so there is a layout */
    }
    return lilac_tile_memory(module, &memory);
}

const lilac_tile_type *lilac_box_memory(lilac_tile_module *module, const lilac_tile_value *box) {
    const lilac_tile_type *block = box->op->operands[0].value->type->element;
    lilac_encoding encoding;
    lilac_box shape;
    if (!lilac_engine_box(&shape, block)) {
        return NULL;
    }
    lilac_encoding_nvmma_shared(&encoding, 2, shape.swizzle_bytes, false,
                                lilac_tile_element_bits(block), false);
    return memory_of(module, &encoding, lilac_tile_element(block)->scalar, 2, block->shape, 0);
}

/* ---- operations --------------------------------------------------------------------------- */

static const lilac_tile_type *barrier_type(const lilac_emitter *e, uint32_t count) {
    static const uint32_t order[1] = {0};
    static const int64_t one[1] = {1};
    lilac_encoding encoding;
    lilac_encoding_swizzled_shared(&encoding, 1, 1, 1, 1, order);
    return memory_of(e->module, &encoding, LILAC_I64, 1, one, count);
}

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

lilac_tile_value *lilac_box_barrier(const lilac_emitter *e, lilac_tile_value *barriers,
                                    lilac_tile_value *index) {
    lilac_tile_value *operands[2] = {barriers, index};
    return lilac_emit(e, LILAC_TILE_OP_TTG_MEMDESC_INDEX, barrier_type(e, 0), 2, operands)->results;
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

/* What threads have written to the memory before is ordered before the copies. */
static void put_fence(const lilac_emitter *e) {
    const lilac_tile_attribute cluster = {.kind = LILAC_TILE_ATTR_BOOL,
                                          .name =
                                              lilac_intern_string(e->module->context, "bCluster"),
                                          .type = lilac_tile_scalar(e->module, LILAC_I1)};
    lilac_tile_op *fence = lilac_emit(e, LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED, NULL, 0, NULL);
    lilac_tile_set_attribute(e->module, &fence->attributes, &cluster);
}

lilac_tile_value *lilac_box_make_barriers(const lilac_emitter *e, uint32_t count,
                                          uint32_t arrivals) {
    put_fence(e);
    lilac_tile_value *barriers =
        lilac_emit(e, LILAC_TILE_OP_TTG_LOCAL_ALLOC, barrier_type(e, count), 0, NULL)->results;
    for_each(e, barriers, count, LILAC_TILE_OP_TTNG_INIT_BARRIER, arrivals);
    return barriers;
}

void lilac_box_remove_barriers(const lilac_emitter *e, lilac_tile_value *barriers, uint32_t count) {
    for_each(e, barriers, count, LILAC_TILE_OP_TTNG_INVAL_BARRIER, 0);
    (void)lilac_emit(e, LILAC_TILE_OP_TTG_LOCAL_DEALLOC, NULL, 1, &barriers);
}

void lilac_box_expect(const lilac_emitter *e, lilac_tile_value *barrier, uint64_t bytes,
                      lilac_tile_value *predicate) {
    lilac_tile_value *operands[2] = {barrier, predicate};
    lilac_tile_op *op = lilac_emit(e, LILAC_TILE_OP_TTNG_BARRIER_EXPECT, NULL, 2, operands);
    lilac_emit_attribute(e, op, "size", (int64_t)bytes);
}

void lilac_box_start(const lilac_emitter *e, lilac_tile_value *box, lilac_tile_value *memory,
                     lilac_tile_value *barrier, lilac_tile_value *predicate) {
    const lilac_tile_op *place = box->op;
    lilac_tile_value *operands[LILAC_MAX_RANK + 4];
    uint32_t n = 0;
    for (; n < place->operand_count; n++) {
        operands[n] = place->operands[n].value; /* the descriptor and the coordinates */
    }
    operands[n++] = barrier;
    operands[n++] = memory;
    operands[n++] = predicate;
    (void)lilac_emit(e, LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL, NULL, n, operands);
}

void lilac_box_wait(const lilac_emitter *e, lilac_tile_value *barrier, lilac_tile_value *parity) {
    lilac_tile_value *operands[2] = {barrier, parity};
    (void)lilac_emit(e, LILAC_TILE_OP_TTNG_WAIT_BARRIER, NULL, 2, operands);
}
