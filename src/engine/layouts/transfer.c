/* transfer: the table of relations between the layouts of an operation's operands and results. The
 * column `layout` of src/tile/operations.def names a row. In most rows all tensors have one layout.
 * Shape operations move no data (Theorem 9.3):
 *
 *   operation      result, if an operand has L         operand, if a result has R
 *   expand_dims    L with a dimension of size 1        R without the dimension
 *   broadcast      none: any thread may hold copies    R with the bits of the grown dimensions zero
 *   trans          L with its outputs permuted         R with its outputs permuted back
 *   reshape        L with its outputs divided anew,    R with its outputs divided anew
 *                  in row-major order
 *   join           L with a new register bit 0 that    R without the register bit that is the last
 *                  is the new last dimension           dimension
 *   split          as an operand of join               as a result of join
 *   cat            L with a new highest register       R without the register bit that selects the
 *                  bit that selects the half           half
 *   reduce         L without the axis                  R with the axis in those lanes and warps
 *                                                      that hold copies, and the rest in registers
 *   fp4_to_fp      L with a new register bit 0 that    R without bit 0 of the axis
 *                  is bit 0 of the axis
 *
 * Registers that repeat an element are dropped.
 */
#include "layouts/assign.h"

#include <string.h>

const lilac_tile_type *lilac_transfer_type(assignment *a, const lilac_tile_type *type,
                                           const lilac_layout *layout) {
    uint64_t hash = lilac_hash_word(type->id, (uint64_t)(uintptr_t)layout);
    typed_layout *known = &a->types[hash % TYPE_BUCKETS];
    if (known->from != type || known->layout != layout) {
        known->from = type;
        known->layout = layout;
        known->to = lilac_tile_with_layout(a->module, type, layout);
    }
    return known->to;
}

static const char *dim_name(uint32_t index, char name[8]) {
    memcpy(name, "dim", 3);
    uint32_t at = 3;
    if (index >= 10) {
        name[at++] = (char)('0' + index / 10);
    }
    name[at++] = (char)('0' + index % 10);
    name[at] = '\0';
    return name;
}

/* An empty layout with the outputs of a shape. */
static bool with_shape(lilac_layout *result, uint32_t rank, const int64_t *shape) {
    char name[8];
    lilac_layout_init(result);
    for (uint32_t d = 0; d < rank; d++) {
        if (!lilac_layout_add_out(result, dim_name(d, name), log2_of(shape[d]), NULL)) {
            return false;
        }
    }
    return true;
}

static uint32_t axis_of(const lilac_tile_op *op) {
    return (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
}

/* ---- transfer functions ---------------------------------------------------------------------- */

static bool expand_dims_forward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                                const lilac_layout *layout) {
    (void)operand;
    if (axis_of(op) > layout->out_count || layout->out_count >= LILAC_LAYOUT_MAX_DIMS) {
        return false;
    }
    lilac_layout_drop_free(result, layout, "register");
    lilac_layout_expand(result, result, axis_of(op));
    return true;
}

/* Removes the axis: expand_dims backward, reduce forward. */
static bool without_axis(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                         const lilac_layout *layout) {
    (void)operand;
    if (axis_of(op) >= layout->out_count) {
        return false;
    }
    lilac_layout_slice(result, layout, axis_of(op));
    return true;
}

/* The result of a gather has the layout of its index. The source may have any layout. */
static bool gather_transfer(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                            const lilac_layout *layout) {
    (void)op;
    *result = *layout;
    return operand == 1;
}

/* The bits of R along grown dimensions become free bits of the operand's layout. */
static bool broadcast_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                               const lilac_layout *layout) {
    const lilac_tile_type *to = op->operands[operand].value->type;
    if (layout->out_count != to->rank || !with_shape(result, to->rank, to->shape)) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t coordinates[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < to->rank; d++) {
                coordinates[d] =
                    to->shape[d] == 1 ? 0 : lilac_layout_coordinate(layout, layout->columns[at], d);
            }
            columns[bit] = lilac_layout_pack(result, coordinates);
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, layout->in[i].bits, columns, NULL)) {
            return false;
        }
    }
    lilac_layout_drop_free(result, result, "register");
    return true;
}

static bool permute(lilac_layout *result, const lilac_tile_op *op, const lilac_layout *layout,
                    bool inverse) {
    const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "order");
    uint32_t order[LILAC_LAYOUT_MAX_DIMS];
    if (given == NULL || given->kind != LILAC_TILE_ATTR_INTEGERS ||
        given->count != layout->out_count) {
        return false;
    }
    uint64_t seen = 0;
    for (uint32_t i = 0; i < given->count; i++) {
        uint64_t from = (uint64_t)given->integers[i];
        if (from >= given->count || (seen >> from & 1)) {
            return false;
        }
        seen |= UINT64_C(1) << from;
        if (inverse) {
            order[from] = i;
        } else {
            order[i] = (uint32_t)from;
        }
    }
    lilac_layout_transpose(result, layout, order);
    return true;
}

static bool trans_forward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                          const lilac_layout *layout) {
    (void)operand;
    return permute(result, op, layout, false);
}

static bool trans_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                           const lilac_layout *layout) {
    (void)operand;
    return permute(result, op, layout, true);
}

static bool reshape_outputs(lilac_layout *result, const lilac_layout *layout,
                            const lilac_tile_type *to) {
    uint32_t bits[LILAC_MAX_RANK];
    if (to->rank > LILAC_MAX_RANK) {
        return false;
    }
    for (uint32_t d = 0; d < to->rank; d++) {
        bits[d] = log2_of(to->shape[d]);
    }
    return lilac_layout_reshape(result, layout, to->rank, bits, NULL);
}

static bool reshape_forward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                            const lilac_layout *layout) {
    (void)operand;
    return reshape_outputs(result, layout, op->results[0].type);
}

static bool reshape_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                             const lilac_layout *layout) {
    return reshape_outputs(result, layout, op->operands[operand].value->type);
}

/* Adds a last dimension of size 2 in register bit 0: join forward, split backward. */
static bool pair(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                 const lilac_layout *layout) {
    (void)op, (void)operand;
    char name[8];
    lilac_layout_init(result);
    for (uint32_t d = 0; d < layout->out_count; d++) {
        if (!lilac_layout_add_out(result, layout->out[d].name, layout->out[d].bits, NULL)) {
            return false;
        }
    }
    if (!lilac_layout_add_out(result, dim_name(layout->out_count, name), 1, NULL)) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS + 1];
        uint32_t count = 0;
        if (i == 0) {
            columns[count++] = UINT64_C(1) << layout->out_bits;
        }
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++) {
            columns[count++] = layout->columns[at++];
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL)) {
            return false;
        }
    }
    return true;
}

/* Removes the last dimension of size 2, if it is exactly one register bit: join backward, split
 * forward. */
static bool unpair(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                   const lilac_layout *layout) {
    (void)op, (void)operand;
    if (layout->out_count == 0 || layout->out[layout->out_count - 1].bits != 1) {
        return false;
    }
    uint64_t last = UINT64_C(1) << (layout->out_bits - 1);
    uint32_t holders = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (layout->columns[i] & last) {
            holders++;
            if (layout->columns[i] != last || i >= layout->in[0].bits) {
                return false;
            }
        }
    }
    if (holders != 1) {
        return false;
    }
    lilac_layout_slice(result, layout, layout->out_count - 1U);
    return true;
}

/* tt.cat: a new highest register bit selects the half, which is the highest bit of the
 * dimension. */
static bool cat_forward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                        const lilac_layout *layout) {
    const lilac_tile_type *to = op->results[0].type;
    (void)operand;
    if (layout->out_count != 1 || !with_shape(result, to->rank, to->shape)) {
        return false;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS + 1];
        uint32_t count = layout->in[i].bits;
        memcpy(columns, layout->columns + at, count * sizeof *columns);
        at += count;
        if (i == 0) {
            columns[count++] = UINT64_C(1) << layout->out_bits;
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL)) {
            return false;
        }
    }
    return true;
}

/* Succeeds if exactly one register bit selects the half. */
static bool cat_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                         const lilac_layout *layout) {
    const lilac_tile_type *to = op->operands[operand].value->type;
    uint64_t half = UINT64_C(1) << (layout->out_bits - 1);
    uint32_t holders = 0, at = 0;
    for (uint32_t i = 0; i < layout->in_bits; i++) {
        if (layout->columns[i] & half) {
            holders += layout->columns[i] == half && i < layout->in[0].bits ? 1 : 2;
        }
    }
    if (layout->out_count != 1 || holders != 1 || !with_shape(result, to->rank, to->shape)) {
        return false;
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS];
        uint32_t count = 0;
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            if (layout->columns[at] != half) {
                columns[count++] = layout->columns[at];
            }
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL)) {
            return false;
        }
    }
    return true;
}

/* A layout of `to` whose slice along the axis is R. The columns of R keep their positions. The
 * bits of the axis become the columns of free lane and warp bits, lowest first; the remaining ones
 * become new registers. */
static bool reduce_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                            const lilac_layout *layout) {
    const lilac_tile_type *to = op->operands[operand].value->type;
    uint32_t axis = axis_of(op);
    if (axis >= to->rank || layout->out_count + 1U != to->rank ||
        !with_shape(result, to->rank, to->shape)) {
        return false;
    }
    uint64_t next = UINT64_C(1) << lilac_layout_out_start(result, axis);
    uint64_t end = next << result->out[axis].bits;
    uint64_t columns[4][2 * LILAC_LAYOUT_MAX_BITS];
    uint32_t at = 0;
    if (layout->in_count > 4) {
        return false;
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        bool replicable =
            strcmp(layout->in[i].name, "lane") == 0 || strcmp(layout->in[i].name, "warp") == 0;
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t coordinates[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < to->rank; d++) {
                coordinates[d] = d == axis ? 0
                                           : lilac_layout_coordinate(layout, layout->columns[at],
                                                                     d > axis ? d - 1 : d);
            }
            columns[i][bit] = lilac_layout_pack(result, coordinates);
            if (replicable && columns[i][bit] == 0 && next < end) {
                columns[i][bit] = next;
                next <<= 1;
            }
        }
    }
    uint32_t registers = layout->in[0].bits;
    for (; next < end; next <<= 1) {
        columns[0][registers++] = next;
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        if (!lilac_layout_add_in(result, layout->in[i].name,
                                 i == 0 ? registers : layout->in[i].bits, columns[i], NULL)) {
            return false;
        }
    }
    return true;
}

/* The layout of `to` in which the coordinates along the axis of ttg.fp4_to_fp are shifted left (up)
 * or right. Up: bit 0 of the axis is register bit 0. */
static bool shift_axis(lilac_layout *result, const lilac_tile_op *op, const lilac_layout *layout,
                       const lilac_tile_type *to, bool up) {
    const uint32_t axis = axis_of(op);
    uint32_t at = 0;
    if (axis >= layout->out_count || layout->out_count != to->rank ||
        !with_shape(result, to->rank, to->shape)) {
        return false;
    }
    for (uint32_t i = 0; i < layout->in_count; i++) {
        uint64_t columns[LILAC_LAYOUT_MAX_BITS + 1];
        uint32_t count = 0;
        if (i == 0 && up) {
            columns[count++] = UINT64_C(1) << lilac_layout_out_start(result, axis);
        }
        for (uint32_t bit = 0; bit < layout->in[i].bits; bit++, at++) {
            uint64_t coordinates[LILAC_LAYOUT_MAX_DIMS];
            for (uint32_t d = 0; d < to->rank; d++) {
                coordinates[d] = lilac_layout_coordinate(layout, layout->columns[at], d);
            }
            coordinates[axis] = up ? coordinates[axis] << 1 : coordinates[axis] >> 1;
            columns[count++] = lilac_layout_pack(result, coordinates);
        }
        if (!lilac_layout_add_in(result, layout->in[i].name, count, columns, NULL)) {
            return false;
        }
    }
    return true;
}

static bool fp4_forward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                        const lilac_layout *layout) {
    (void)operand;
    return shift_axis(result, op, layout, op->results[0].type, true);
}

static bool fp4_backward(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                         const lilac_layout *layout) {
    if (!shift_axis(result, op, layout, op->operands[operand].value->type, false)) {
        return false;
    }
    lilac_layout_drop_free(result, result, "register");
    return true;
}

/* ---- the table -------------------------------------------------------------------------- */

enum {
    RELATION_REFUSED, /* also of operations without a row in operations.def */
    RELATION_NONE,
    RELATION_SOURCE,
    RELATION_SAME,
    RELATION_MEMORY,
    RELATION_EXPAND_DIMS,
    RELATION_BROADCAST,
    RELATION_TRANS,
    RELATION_RESHAPE,
    RELATION_FP4,
    RELATION_JOIN,
    RELATION_CAT,
    RELATION_SPLIT,
    RELATION_REDUCE,
    RELATION_SCAN,
    RELATION_GATHER,
    RELATION_DOT,
    RELATION_FREE,
    RELATION_CONTROL,
    RELATION_ANY
};

/* clang-format off */
static const layout_relation relations[] = {
    [RELATION_REFUSED] = {.rule = RULE_REFUSED},
    [RELATION_NONE] = {.rule = RULE_NONE},
    [RELATION_SOURCE] = {.rule = RULE_SOURCE, .same = true,
                         .rewrite = lilac_rewrite_same},
    [RELATION_SAME] = {.rule = RULE_SAME, .same = true,
                       .relate = lilac_relate_all, .rewrite = lilac_rewrite_same},
    [RELATION_MEMORY] = {.rule = RULE_MEMORY, .same = true, .anchor = true,
                         .relate = lilac_relate_memory, .rewrite = lilac_rewrite_anchor},
    [RELATION_EXPAND_DIMS] = {.rule = RULE_SHAPE,
                              .forward = expand_dims_forward, .backward = without_axis,
                              .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_BROADCAST] = {.rule = RULE_SHAPE,
                            .backward = broadcast_backward,
                            .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_TRANS] = {.rule = RULE_SHAPE,
                        .forward = trans_forward, .backward = trans_backward,
                        .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_RESHAPE] = {.rule = RULE_SHAPE,
                          .forward = reshape_forward, .backward = reshape_backward,
                          .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_FP4] = {.rule = RULE_SHAPE,
                      .forward = fp4_forward, .backward = fp4_backward,
                      .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_JOIN] = {.rule = RULE_JOIN, .anchor = true, .converts_result = true,
                       .forward = pair, .backward = unpair,
                       .relate = lilac_relate_sides, .rewrite = lilac_rewrite_anchor},
    [RELATION_CAT] = {.rule = RULE_JOIN, .anchor = true, .converts_result = true,
                      .forward = cat_forward, .backward = cat_backward,
                      .relate = lilac_relate_sides, .rewrite = lilac_rewrite_anchor},
    [RELATION_SPLIT] = {.rule = RULE_SPLIT,
                        .forward = unpair, .backward = pair,
                        .relate = lilac_relate_shape, .rewrite = lilac_rewrite_shape},
    [RELATION_REDUCE] = {.rule = RULE_REDUCE, .anchor = true, .converts_result = true,
                         .forward = without_axis, .backward = reduce_backward,
                         .relate = lilac_relate_sides, .rewrite = lilac_rewrite_anchor,
                         .price = lilac_price_reduce},
    [RELATION_SCAN] = {.rule = RULE_SCAN, .same = true, .anchor = true,
                       .relate = lilac_relate_scan, .rewrite = lilac_rewrite_anchor,
                       .price = lilac_price_scan},
    [RELATION_GATHER] = {.rule = RULE_GATHER, .anchor = true, .leader = 1,
                         .forward = gather_transfer, .backward = gather_transfer,
                         .relate = lilac_relate_gather, .rewrite = lilac_rewrite_gather,
                         .price = lilac_price_gather, .candidates = lilac_gather_candidates},
    [RELATION_DOT] = {.rule = RULE_DOT, .anchor = true, .leader = 2,
                      .forward = lilac_dot_transfer, .backward = lilac_dot_transfer,
                      .relate = lilac_relate_dot, .rewrite = lilac_rewrite_dot,
                      .price = lilac_price_dot, .candidates = lilac_dot_candidates},
    [RELATION_FREE] = {.rule = RULE_FREE, .rewrite = lilac_rewrite_free},
    [RELATION_CONTROL] = {.rule = RULE_CONTROL,
                          .relate = lilac_relate_control, .rewrite = lilac_rewrite_control},
    [RELATION_ANY] = {.rule = RULE_ANY, .rewrite = lilac_rewrite_any},
};
/* clang-format on */

static const uint8_t relation_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = RELATION_##layout,
#include <lilac/operations.def>
};

static bool has_tensor(const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (lilac_tile_is_tensor(op->operands[i].value->type)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (lilac_tile_is_tensor(op->results[i].type)) {
            return true;
        }
    }
    return false;
}

/* Is an operand a pointer to a tensor, or a tensor descriptor that no tensor copy uses (copy_boxes)? */
static bool has_block_pointer(const lilac_tile_op *op) {
    const bool copied = lilac_tile_find(&op->attributes, "lilac.tensor_map") != NULL;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_type *type = op->operands[i].value->type;
        if ((type->kind == LILAC_TILE_DESCRIPTOR && !copied) ||
            (type->kind == LILAC_TILE_POINTER && type->element != NULL &&
             lilac_tile_is_tensor(type->element))) {
            return true;
        }
    }
    return false;
}

const layout_relation *lilac_layout_relation(const lilac_tile_op *op) {
    if (!has_tensor(op)) { /* operations in its regions may have tensors */
        return &relations[RELATION_NONE];
    }
    return &relations[has_block_pointer(op) ? RELATION_REFUSED : relation_of[op->code]];
}

static const lilac_layout *transfer(assignment *a, const lilac_tile_op *op, uint32_t operand,
                                    const lilac_layout *layout, bool forward) {
    const layout_relation *relation = &relations[relation_of[op->code]];
    layout_transfer *function = forward ? relation->forward : relation->backward;
    lilac_layout result;
    if (relation->same) {
        return layout;
    }
    if (function == NULL || !function(&result, op, operand, layout)) {
        return NULL;
    }
    return lilac_tile_intern_layout(a->module, &result);
}

const lilac_layout *lilac_transfer_forward(assignment *a, const lilac_tile_op *op, uint32_t operand,
                                           const lilac_layout *layout) {
    return transfer(a, op, operand, layout, true);
}

const lilac_layout *lilac_transfer_backward(assignment *a, const lilac_tile_op *op,
                                            uint32_t operand, const lilac_layout *result) {
    return transfer(a, op, operand, result, false);
}
