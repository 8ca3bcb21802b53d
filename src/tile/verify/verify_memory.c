/* The verifier: what the operations on memory demand beyond their signatures.
 *
 * Views of memory (index, subslice, trans, reshape) map coordinates to coordinates, and a layout of
 * memory says where each coordinate is: so the result's layout must be the operand's with its
 * coordinates renamed. Nothing is made mutable that was not. The layouts are compared where both
 * types have one.
 */
#include "verify/verify.h"

#include <string.h>

static const lilac_tile_type *operand_type(const lilac_tile_op *op, uint32_t index) {
    return op->operands[index].value->type;
}

static bool refuse(const tile_verifier *verifier, const lilac_tile_op *op, const char *id,
                   const char *message, const lilac_tile_type *from, const lilac_tile_type *to) {
    tile_op_error(verifier->module, op, id, "'%s' cannot make '%s' of '%s': %s",
                  lilac_tile_op_info_get(op->code)->name, tile_type_text(verifier->module, to),
                  tile_type_text(verifier->module, from), message);
    return false;
}

static bool same_sizes(const int64_t *a, const int64_t *b, uint32_t count) {
    return count == 0 || memcmp(a, b, sizeof *a * count) == 0;
}

static bool same_shape(const lilac_tile_type *a, const lilac_tile_type *b) {
    return a->rank == b->rank && same_sizes(a->shape, b->shape, a->rank);
}

/* Whether it is a whole allocation, and not a part of one. */
static bool is_whole(const lilac_tile_type *type) {
    return type->rank == type->alloc_rank && same_sizes(type->shape, type->alloc_shape, type->rank);
}

/* Whether both are written as the same layout, or have the same one where none is written. */
static bool same_encoding(const lilac_tile_type *a, const lilac_tile_type *b) {
    if (!a->layout || !b->layout) {
        return true;
    }
    return a->spelling || b->spelling ? a->spelling == b->spelling
                                      : lilac_layout_equal(a->layout, b->layout);
}

/* The layout is for one buffer, not for an array of them. */
static bool is_buffer(const lilac_tile_type *type) {
    return !type->layout || type->layout->out_count == type->rank;
}

/* What holds for every view. */
static bool check_view(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    if (from->is_tensor_memory != to->is_tensor_memory) {
        return refuse(verifier, op, "memory-space", "they are in different memory spaces", from,
                      to);
    }
    if (to->is_mutable && !from->is_mutable) {
        return refuse(verifier, op, "not-mutable", "nobody may write to the memory", from, to);
    }
    return true;
}

bool tile_verify_local_alloc(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *to = op->results[0].type;
    if (!is_whole(to)) {
        tile_op_error(verifier->module, op, "alloc-shape",
                      "'%s' makes all of an allocation, but '%s' is a part of one",
                      lilac_tile_op_info_get(op->code)->name, tile_type_text(verifier->module, to));
        return false;
    }
    if (op->operand_count == 0 && !to->is_mutable) {
        tile_op_error(verifier->module, op, "not-mutable",
                      "nobody may write to memory of type '%s', and it has no elements yet",
                      tile_type_text(verifier->module, to));
        return false;
    }
    if (op->operand_count == 0) {
        return true;
    }
    const lilac_tile_type *from = operand_type(op, 0);
    if (lilac_tile_element(from) != lilac_tile_element(to)) {
        return refuse(verifier, op, "type-mismatch", "the elements are of different types", from,
                      to);
    }
    return same_shape(from, to) ||
           refuse(verifier, op, "shape-mismatch", "the shapes differ", from, to);
}

bool tile_verify_local_access(const tile_verifier *verifier, const lilac_tile_op *op) {
    bool load = op->code == LILAC_TILE_OP_TTG_LOCAL_LOAD;
    const lilac_tile_type *from = operand_type(op, 0);
    const lilac_tile_type *to = load ? op->results[0].type : operand_type(op, 1);
    return same_shape(from, to) ||
           refuse(verifier, op, "shape-mismatch", "the shapes differ", from, to);
}

/* One of the buffers; of memory without buffers, one element of a single dimension. */
bool tile_verify_memdesc_index(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    if (!check_view(verifier, op)) {
        return false;
    }
    if (!is_whole(from)) {
        return refuse(verifier, op, "alloc-shape", "it is a part of an allocation already", from,
                      to);
    }
    if (!same_encoding(from, to)) {
        return refuse(verifier, op, "layout-mismatch", "the layouts differ", from, to);
    }
    bool buffers = from->layout ? from->layout->out_count + 1u == from->rank : from->rank > 1;
    bool good = buffers
                    ? to->rank == from->rank - 1 && same_sizes(to->shape, from->shape + 1, to->rank)
                    : from->rank == 1 && to->rank == 1 && to->shape[0] == 1;
    if (good && to->alloc_rank > 0) {
        /* The allocation may be named, or only as much of it as the buffer is. */
        bool own = is_whole(to);
        good = own || (to->alloc_rank == from->alloc_rank &&
                       same_sizes(to->alloc_shape, from->alloc_shape, to->alloc_rank));
    }
    return good || refuse(verifier, op, "shape-mismatch", "the shapes do not fit", from, to);
}

bool tile_verify_memdesc_subslice(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    const lilac_tile_attribute *offsets = lilac_tile_find(&op->attributes, "offsets");
    if (!check_view(verifier, op)) {
        return false;
    }
    if (!same_encoding(from, to)) {
        return refuse(verifier, op, "layout-mismatch", "the layouts differ", from, to);
    }
    if (to->rank != from->rank || offsets->count != from->rank ||
        to->alloc_rank != from->alloc_rank ||
        !same_sizes(to->alloc_shape, from->alloc_shape, to->alloc_rank)) {
        return refuse(verifier, op, "shape-mismatch", "the shapes do not fit", from, to);
    }
    for (uint32_t i = 0; i < to->rank; i++) {
        int64_t at = offsets->integers[i];
        if (at < 0 || to->shape[i] < 1 || at % to->shape[i] != 0 ||
            at + to->shape[i] > from->shape[i]) {
            return refuse(verifier, op, "shape-mismatch",
                          "the part does not begin at a multiple of its size within the whole",
                          from, to);
        }
    }
    return true;
}

bool tile_verify_memdesc_trans(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    uint32_t order[LILAC_MAX_RANK];
    lilac_layout layout;
    if (!check_view(verifier, op) || !tile_verify_order(verifier, op)) {
        return false;
    }
    if (!is_buffer(from) || !is_buffer(to)) {
        return refuse(verifier, op, "shape-mismatch", "buffers are transposed one by one", from,
                      to);
    }
    if (!from->layout || !to->layout) {
        return true;
    }
    const lilac_tile_attribute *attribute = lilac_tile_find(&op->attributes, "order");
    for (uint32_t i = 0; i < from->rank; i++) {
        order[i] = (uint32_t)attribute->integers[i];
    }
    lilac_layout_transpose(&layout, from->layout, order);
    return lilac_layout_equal(&layout, to->layout) ||
           refuse(verifier, op, "layout-mismatch", "the elements would be in other places", from,
                  to);
}

bool tile_verify_memdesc_reshape(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    if (!check_view(verifier, op)) {
        return false;
    }
    if (lilac_tile_element_count(from) != lilac_tile_element_count(to)) {
        return refuse(verifier, op, "shape-mismatch", "the numbers of elements differ", from, to);
    }
    if (!is_whole(from) || !is_whole(to) || !is_buffer(from) || !is_buffer(to)) {
        return refuse(verifier, op, "shape-mismatch", "only whole buffers have another shape", from,
                      to);
    }
    if (!from->layout || !to->layout) {
        return true;
    }
    uint32_t bits[LILAC_MAX_RANK];
    lilac_layout layout;
    for (uint32_t i = 0; i < to->rank; i++) {
        bits[i] = to->layout->out[i].bits;
    }
    return (lilac_layout_reshape(&layout, from->layout, to->rank, bits, NULL) &&
            lilac_layout_equal(&layout, to->layout)) ||
           refuse(verifier, op, "layout-mismatch", "the elements would be in other places", from,
                  to);
}

bool tile_verify_memdesc_reinterpret(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    if (!check_view(verifier, op)) {
        return false;
    }
    if (!is_whole(to)) {
        return refuse(verifier, op, "alloc-shape", "the result is a part of something", from, to);
    }
    /* Padding is not counted: who lowers it knows the bytes. */
    return lilac_tile_element_count(to) * lilac_tile_element_bits(to) <=
               lilac_tile_element_count(from) * lilac_tile_element_bits(from) ||
           refuse(verifier, op, "shape-mismatch", "it has not so many bytes", from, to);
}
