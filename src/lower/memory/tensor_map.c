/* Tensor maps that the kernel makes: ttg.global_scratch_alloc, ttng.tensormap_create,
 * ttng.tensormap_fenceproxy_acquire, ttng.reinterpret_tensor_descriptor.
 *
 *     global_scratch_alloc         a part of the program's scratch memory
 *     tensormap_create             barrier, tensor_map.set in scratch (shared) memory by the first thread,
 *                                  warp_barrier, tensor_map.publish by the first warp
 *     tensormap_fenceproxy_acquire tensor_map.acquire of the first warp, whose first thread starts all
 *                                  tensor copies
 *
 * What is known when the kernel is compiled must be constants: box, element strides, which are 1,
 * and the attributes. */
#include "lower_internal.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <lilac/tensor_map.h>

/* ---- scratch memory in global memory ------------------------------------------------------- */

static bool is_map_operation(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TTNG_TENSORMAP_CREATE ||
           op->code == LILAC_TILE_OP_TTNG_TENSORMAP_FENCEPROXY_ACQUIRE ||
           op->code == LILAC_TILE_OP_TTNG_REINTERPRET_TENSOR_DESCRIPTOR;
}

/* A use of the pointer, or of an argument that captures it, by another operation; NULL: there is
 * none. */
static const lilac_tile_op *other_use(const lilac_tile_value *pointer) {
    for (const lilac_tile_use *use = pointer->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op, *other = NULL;
        const bool captures = op->code == LILAC_TILE_OP_TTG_WARP_SPECIALIZE;
        for (uint32_t r = 1; captures && other == NULL && r < op->region_count; r++) {
            other = other_use(op->regions[r]->first->arguments[use->index]);
        }
        if (!captures && (use->index != 0 || !is_map_operation(op))) {
            other = op;
        }
        if (other != NULL) {
            return other;
        }
    }
    return NULL;
}

static bool lower_scratch(lilac_lowering *l, const lilac_tile_op *op) {
    const int64_t bytes = lilac_tile_find_integer(&op->attributes, "nbytes", 0);
    const int64_t alignment = lilac_tile_find_integer(&op->attributes, "alignment", 1);
    const lilac_tile_op *other = other_use(&op->results[0]);
    if (other != NULL) {
        return lilac_lower_unsupported(l,
                                       "scratch memory in global memory holds tensor maps "
                                       "only; '%s' uses it",
                                       lilac_tile_op_info_get(other->code)->name);
    }
    if (bytes != LILAC_TENSOR_MAP_BYTES || alignment > LILAC_TENSOR_MAP_BYTES) {
        return lilac_lower_unsupported(l, "a tensor map has 128 bytes, aligned to 128");
    }
    const lilac_simt_instruction like = {.code = LILAC_SIMT_OP_GLOBAL_SCRATCH};
    const lilac_simt_type type = LILAC_SIMT_I64;
    lilac_lower_value *value = lilac_lower_result(l, op, 0);
    lilac_simt_value base = lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
    value->base[0] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, type, base,
                                    lilac_lower_integer(l, type, l->kernel->scratch_bytes));
    l->kernel->scratch_bytes += LILAC_TENSOR_MAP_BYTES;
    return true;
}

/* ---- maps -------------------------------------------------------------------------------------- */

/* The lists of ttng.tensormap_create: box, sizes, strides, element strides. */
typedef struct map_lists {
    uint32_t rank, box, sizes, strides, steps; /* the first operand of each */
} map_lists;

static map_lists lists_of(const lilac_tile_op *op) {
    const uint32_t rank = (op->operand_count - 1) / 4;
    return (map_lists){
        .rank = rank, .box = 2, .sizes = 2 + rank, .strides = 2 + 2 * rank, .steps = 1 + 3 * rank};
}

static bool constant_operand(lilac_lowering *l, const lilac_tile_op *op, uint32_t index,
                             int64_t *number) {
    return lilac_lower_constant(l, lilac_lower_operand(l, op, index), number);
}

/* The element type of a number of tensormap.replace.elemtype. */
static bool find_element(int64_t number, uint8_t *element) {
    static const uint8_t elements[] = {LILAC_TENSOR_U8,  LILAC_TENSOR_U16, LILAC_TENSOR_U32,
                                       LILAC_TENSOR_S32, LILAC_TENSOR_U64, LILAC_TENSOR_S64,
                                       LILAC_TENSOR_F16, LILAC_TENSOR_F32, UINT8_MAX,
                                       LILAC_TENSOR_F64, LILAC_TENSOR_BF16};
    const bool good =
        number >= 0 && (size_t)number < sizeof elements && elements[number] != UINT8_MAX;
    *element = good ? elements[number] : 0;
    return good;
}

static bool find_payload(lilac_lowering *l, const lilac_tile_op *op,
                         lilac_simt_tensor_map_payload *map) {
    const map_lists lists = lists_of(op);
    const int64_t swizzle = lilac_tile_find_integer(&op->attributes, "swizzle_mode", 0);
    const int64_t fill = lilac_tile_find_integer(&op->attributes, "fill_mode", 0);
    bool good =
        lists.rank <= LILAC_TENSOR_RANK &&
        find_element(lilac_tile_find_integer(&op->attributes, "elem_type", -1), &map->element) &&
        lilac_tile_find_integer(&op->attributes, "interleave_layout", 0) == 0 && swizzle >= 0 &&
        swizzle < LILAC_TENSOR_SWIZZLE_COUNT && fill >= 0 && fill < LILAC_TENSOR_FILL_COUNT;
    for (uint32_t k = 0; good && k < lists.rank; k++) {
        int64_t size = 0, step = 0;
        good = constant_operand(l, op, lists.box + k, &size) && size > 0 && size <= 256 &&
               constant_operand(l, op, lists.steps + k, &step) && step == 1;
        map->box[k] = (uint16_t)size;
    }
    map->swizzle = good ? (uint8_t)swizzle : 0;
    map->fill = good ? (uint8_t)fill : 0;
    return good ||
           lilac_lower_unsupported(l, "its box must be constants from 1 to 256, the element "
                                      "strides 1, and the attributes those of a tensor "
                                      "without interleaving");
}

/* True in the first warp. */
static lilac_simt_value first_warp(lilac_lowering *l) {
    const lilac_simt_value zero = lilac_lower_integer(l, LILAC_SIMT_I32, 0);
    return lilac_simt_compare_values(&l->builder, LILAC_SIMT_EQ, lilac_simt_warp(&l->builder),
                                     zero);
}

static lilac_simt_value first_thread(lilac_lowering *l) {
    const lilac_simt_value zero = lilac_lower_integer(l, LILAC_SIMT_I32, 0);
    return lilac_simt_compare_values(&l->builder, LILAC_SIMT_EQ, lilac_simt_thread(&l->builder),
                                     zero);
}

static lilac_simt_value wide_operand(lilac_lowering *l, const lilac_tile_op *op, uint32_t index) {
    lilac_simt_value value = lilac_lower_get(l, lilac_lower_operand(l, op, index), 0);
    return lilac_simt_type_of(l->kernel, value) == LILAC_SIMT_I64
               ? value
               : lilac_simt_op1(&l->builder, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I64, value);
}

static bool lower_create(lilac_lowering *l, const lilac_tile_op *op) {
    const map_lists lists = lists_of(op);
    lilac_simt_instruction like = {0};
    lilac_simt_value sizes[LILAC_TENSOR_RANK], strides[LILAC_TENSOR_RANK];
    if (!find_payload(l, op, &like.payload.tensor_map)) {
        return false;
    }
    for (uint32_t k = 0; k < lists.rank; k++) {
        sizes[k] = wide_operand(l, op, lists.sizes + k);
        if (k + 1 < lists.rank) {
            strides[k] = wide_operand(l, op, lists.strides + k);
        }
    }
    const uint32_t slack = LILAC_TENSOR_MAP_BYTES - 16; /* scratch memory is aligned to 16 */
    const uint32_t begin = (lilac_lower_scratch(l, LILAC_TENSOR_MAP_BYTES + slack) + slack) /
                           LILAC_TENSOR_MAP_BYTES * LILAC_TENSOR_MAP_BYTES;
    like.immediate = begin;
    like.shared_begin = begin;
    like.shared_end = begin + LILAC_TENSOR_MAP_BYTES;
    const lilac_simt_instruction base = {.code = LILAC_SIMT_OP_SHARED_BASE};
    const lilac_simt_type type = LILAC_SIMT_I32;
    lilac_simt_value shared = lilac_simt_build(&l->builder, &base, 0, NULL, 1, &type);
    lilac_lower_barrier(l);
    lilac_simt_value global = lilac_lower_get(l, lilac_lower_operand(l, op, 1), 0);
    lilac_simt_tensor_map_set(&l->builder, &like, shared, first_thread(l), lists.rank, global,
                              sizes, strides);
    lilac_simt_warp_barrier(&l->builder);
    like.payload = (union lilac_simt_payload){0};
    lilac_simt_value map = lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0);
    lilac_simt_tensor_map_publish(&l->builder, &like, shared, first_warp(l), map);
    return true;
}

bool lilac_lower_tensor_map(lilac_lowering *l, const lilac_tile_op *op) {
    if (l->target->num_ctas > 1) {
        return lilac_lower_unsupported(
            l, "the kernel has %u blocks in a cluster; tensor maps are made for one block",
            l->target->num_ctas);
    }
    lilac_simt_value map;
    switch (op->code) {
    case LILAC_TILE_OP_TTG_GLOBAL_SCRATCH_ALLOC:
        return lower_scratch(l, op);
    case LILAC_TILE_OP_TTNG_TENSORMAP_CREATE:
        return lower_create(l, op);
    case LILAC_TILE_OP_TTNG_TENSORMAP_FENCEPROXY_ACQUIRE:
        map = lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0);
        lilac_simt_tensor_map_acquire(&l->builder, first_warp(l), map);
        return true;
    default: /* the descriptor is the map's address */
        lilac_lower_define_map(l, &op->results[0])->base[0] =
            lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0);
        return true;
    }
}
