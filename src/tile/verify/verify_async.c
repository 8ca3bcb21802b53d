/* The verifier: what asynchronous operations demand beyond their signatures: the attributes that
 * their lowering needs, mbarriers of one 64-bit word, and copies between equal shapes. */
#include "verify/verify.h"

#include <string.h>

static const lilac_tile_type *operand_type(const lilac_tile_op *op, uint32_t index) {
    return op->operands[index].value->type;
}

static bool refuse(const tile_verifier *verifier, const lilac_tile_op *op, const char *id,
                   const char *message) {
    tile_op_error(verifier->module, op, id, "'%s' %s", lilac_tile_op_info_get(op->code)->name,
                  message);
    return false;
}

static bool shapes_differ(const tile_verifier *verifier, const lilac_tile_op *op,
                          const lilac_tile_type *from, const lilac_tile_type *to) {
    tile_op_error(verifier->module, op, "shape-mismatch", "'%s' cannot copy '%s' to '%s'",
                  lilac_tile_op_info_get(op->code)->name, tile_type_text(verifier->module, from),
                  tile_type_text(verifier->module, to));
    return false;
}

static bool same_shape(const lilac_tile_type *a, const lilac_tile_type *b) {
    return a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, sizeof *a->shape * a->rank) == 0);
}

/* An integer attribute of at least `least`. */
static bool has_number(const lilac_tile_op *op, const char *name, int64_t least) {
    const lilac_tile_attribute *found = lilac_tile_find(&op->attributes, name);
    return found && found->kind == LILAC_TILE_ATTR_INTEGER && found->integer >= least;
}

bool tile_verify_async_copy(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = operand_type(op, 1);
    if (lilac_tile_element(from)->element != to->element) {
        return refuse(verifier, op, "type-mismatch", "needs pointers to the memory's elements");
    }
    return same_shape(from, to) || shapes_differ(verifier, op, from, to);
}

bool tile_verify_wait(const tile_verifier *verifier, const lilac_tile_op *op) {
    bool copies = op->code == LILAC_TILE_OP_TTG_ASYNC_WAIT;
    return has_number(op, copies ? "num" : "pendings", 0) ||
           refuse(verifier, op, "bad-attribute",
                  copies ? "needs an attribute 'num' that says how many groups may be under way"
                         : "needs an attribute 'pendings' that says how many may be under way");
}

bool tile_verify_scratch(const tile_verifier *verifier, const lilac_tile_op *op) {
    return (has_number(op, "nbytes", 1) && has_number(op, "alignment", 1)) ||
           refuse(verifier, op, "bad-attribute",
                  "needs the attributes 'nbytes' and 'alignment', both above 0");
}

/* The result has two elements for each, along one dimension. */
bool tile_verify_fp4(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_type *from = operand_type(op, 0), *to = op->results[0].type;
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", -1);
    if (axis < 0 || axis >= from->rank) {
        return refuse(verifier, op, "bad-attribute", "needs an attribute 'axis' below its rank");
    }
    bool good = to->rank == from->rank && lilac_tile_element_bits(from) == 8;
    for (uint32_t i = 0; good && i < from->rank; i++) {
        good = to->shape[i] == (i == axis ? 2 : 1) * from->shape[i];
    }
    return good || shapes_differ(verifier, op, from, to);
}

bool tile_verify_fence(const tile_verifier *verifier, const lilac_tile_op *op) {
    const lilac_tile_attribute *cluster = lilac_tile_find(&op->attributes, "bCluster");
    return (cluster && cluster->kind == LILAC_TILE_ATTR_BOOL) ||
           refuse(verifier, op, "bad-attribute", "needs an attribute 'bCluster', true or false");
}

static bool is_barrier(const lilac_tile_type *type) {
    return type->rank == 1 && type->shape[0] == 1 && type->scalar == LILAC_I64;
}

bool tile_verify_barrier(const tile_verifier *verifier, const lilac_tile_op *op) {
    return is_barrier(operand_type(op, 0)) ||
           refuse(verifier, op, "type-mismatch", "needs an mbarrier: memory of 1xi64");
}

bool tile_verify_tma(const tile_verifier *verifier, const lilac_tile_op *op) {
    bool load = op->code == LILAC_TILE_OP_TTNG_ASYNC_TMA_COPY_GLOBAL_TO_LOCAL;
    const lilac_tile_type *tensor = operand_type(op, 0)->element;
    uint32_t others = load ? 4 : 2; /* descriptor, (barrier,) memory (, predicate) */
    const lilac_tile_type *memory = operand_type(op, op->operand_count - (load ? 2 : 1));
    if (load && !is_barrier(operand_type(op, op->operand_count - 3))) {
        return refuse(verifier, op, "type-mismatch", "needs an mbarrier: memory of 1xi64");
    }
    if (op->operand_count - others != tensor->rank) {
        return refuse(verifier, op, "count-mismatch",
                      "needs one coordinate for each dimension of its descriptor");
    }
    /* in a cluster, the memory may be several blocks of the descriptor (divide_boxes) */
    const int64_t count = lilac_tile_element_count(tensor), all = lilac_tile_element_count(memory);
    const bool divided =
        memory->layout != NULL && lilac_layout_in_bits(memory->layout, "block") > 0;
    if (tensor->scalar != memory->scalar || (divided ? all % count != 0 : all != count)) {
        return shapes_differ(verifier, op, load ? tensor : memory, load ? memory : tensor);
    }
    return true;
}

/* Box, shape and element strides of each dimension; strides of all but the fastest. */
bool tile_verify_tensormap(const tile_verifier *verifier, const lilac_tile_op *op) {
    static const char *const numbers[] = {"elem_type", "fill_mode", "interleave_layout",
                                          "swizzle_mode"};
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!has_number(op, numbers[i], 0)) {
            return refuse(verifier, op, "bad-attribute",
                          "needs the attributes 'elem_type', 'fill_mode', 'interleave_layout' and "
                          "'swizzle_mode'");
        }
    }
    const lilac_tile_attribute *sizes = lilac_tile_find(&op->attributes, "operandSegmentSizes");
    uint32_t rank = (op->operand_count - 1) / 4; /* 2 pointers, 3 · rank, and rank - 1 strides */
    bool good = op->operand_count == 4 * rank + 1 && rank > 0;
    if (good && sizes) {
        good = sizes->integers[2] == rank && sizes->integers[3] == rank &&
               sizes->integers[4] == rank - 1 && sizes->integers[5] == rank;
    }
    return (good && sizes) || refuse(verifier, op, "count-mismatch",
                                     "needs a box, a shape and element strides of one length, and "
                                     "a stride less");
}
