/* blocks: how tensors are divided among the blocks of a cluster.
 *
 *     tensor<64x128xf32>, 2 blocks      rows            columns         copies
 *                                       block = [[32, 0]]  [[0, 64]]     [[0, 0]]
 *
 * A component of values that should have one layout tries each of these divisions with each of its
 * candidates, and the prices decide: a block that holds a part executes fewer instructions, and elements
 * that cross blocks go through distributed shared memory and barriers of the cluster. Operands of
 * matrix products are needed in the division of the product (lilac_plan_dot_divide): the rows of A as
 * those of D, the columns of B as those of D. Where the layout of a loaded operand has another one, the
 * price of its component includes the exchange. */
#include "layouts/assign.h"

#include <lilac/dot.h>
#include <lilac/tile_loops.h>

static uint32_t block_bits(const assignment *a) {
    return log2_of(a->target->num_ctas);
}

/* ---- choices ------------------------------------------------------------------------------- */

static void add_choice(block_choices *result, const assignment *a, const uint64_t *columns) {
    for (uint32_t i = 0; i < result->count; i++) {
        if (memcmp(result->columns[i], columns, block_bits(a) * sizeof *columns) == 0) {
            return;
        }
    }
    if (result->count < MOST_BLOCK_CHOICES) {
        result->columns[result->count++] = columns;
    }
}

/* Divides dimension `first`, then the others from the first one on. */
static void divide(uint64_t *columns, const assignment *a, const lilac_tile_type *type,
                   uint32_t first) {
    uint32_t next = 0;
    for (uint32_t k = 0; k <= type->rank; k++) {
        const uint32_t dim = k == 0 ? first : k - 1;
        uint32_t start = 0, bits = log2_of(type->shape[dim]);
        for (uint32_t d = 0; d < dim; d++) {
            start += log2_of(type->shape[d]);
        }
        if (k > 0 && dim == first) {
            continue;
        }
        const uint32_t count = min_u32(bits, block_bits(a) - next);
        for (uint32_t i = 0; i < count; i++) {
            columns[next++] = UINT64_C(1) << (start + bits - count + i);
        }
    }
}

void lilac_block_choices(block_choices *result, assignment *a, const lilac_tile_type *type) {
    *result = (block_choices){.count = 0};
    if (a->target->num_ctas == 1) {
        result->count = 1;
        return;
    }
    for (uint32_t d = 0; d <= type->rank; d++) {
        uint64_t *columns = lilac_arena_array(a->arena, uint64_t, block_bits(a));
        if (d < type->rank) {
            divide(columns, a, type, d);
        }
        add_choice(result, a, columns);
    }
}

void lilac_block_choices_add(block_choices *result, const lilac_layout *layout, assignment *a) {
    uint64_t *columns = lilac_arena_array(a->arena, uint64_t, LILAC_LAYOUT_MAX_BITS);
    uint64_t taken = 0;
    const uint32_t count = lilac_layout_block_columns(columns, layout);
    for (uint32_t i = 0; i < count; i++) {
        if ((columns[i] & (columns[i] - 1)) != 0 || (columns[i] & taken) != 0) {
            return;
        }
        taken |= columns[i];
    }
    if (count == block_bits(a) && count > 0) {
        add_choice(result, a, columns);
    }
}

const lilac_layout *lilac_with_blocks(assignment *a, const lilac_layout *layout,
                                      const lilac_layout *like) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    lilac_layout changed;
    lilac_reason why;
    if (layout == NULL || lilac_layout_same_blocks(layout, like)) {
        return layout;
    }
    (void)lilac_layout_block_columns(columns, like);
    return lilac_layout_change_blocks(&changed, layout, columns, &why)
               ? lilac_tile_intern_layout(a->module, &changed)
               : NULL;
}

/* ---- operands of products -------------------------------------------------------------------- */

/* The columns of the blocks of an operand for those of D. */
static void project(uint64_t *columns, const assignment *a, const lilac_layout *d,
                    const lilac_tile_type *operand_type, uint32_t operand) {
    uint64_t of_d[LILAC_LAYOUT_MAX_BITS];
    const uint32_t count = lilac_layout_block_columns(of_d, d);
    const uint32_t batch = operand_type->rank == 3 ? log2_of(operand_type->shape[0]) : 0;
    const uint32_t row = operand_type->rank - 2;
    const uint32_t kept = batch + (operand == 1 ? log2_of(operand_type->shape[row]) : 0);
    for (uint32_t i = 0; i < block_bits(a); i++) {
        const uint64_t column = i < count ? of_d[i] : 0;
        columns[i] = (operand_type->rank == 3 ? lilac_layout_coordinate(d, column, 0) : 0) |
                     lilac_layout_coordinate(d, column, row + operand) << kept;
    }
}

/* A layout of a tensor of this type with these blocks. */
static const lilac_layout *any_layout(assignment *a, const lilac_tile_type *type,
                                      const uint64_t *columns) {
    uint32_t order[LILAC_MAX_RANK];
    for (uint32_t i = 0; i < type->rank; i++) {
        order[i] = type->rank - 1 - i;
    }
    return lilac_coalesce_shaped(a, type,
                                 &(blocked_shape){.order = order, .vector = 1, .blocks = columns});
}

/* The allocation behind transpositions of memory; *layout, of the operand, becomes that of the stored
 * tensor. NULL: another operation made the memory. */
static lilac_tile_op *find_allocation(assignment *a, const lilac_tile_value *memory,
                                      const lilac_layout **layout) {
    lilac_tile_op *op = memory->op;
    while (op != NULL && *layout != NULL && op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS) {
        const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
        uint32_t inverse[LILAC_MAX_RANK];
        lilac_layout transposed;
        if (order == NULL || order->count != (*layout)->out_count) {
            return NULL;
        }
        for (uint32_t i = 0; i < order->count; i++) {
            inverse[order->integers[i]] = i;
        }
        lilac_layout_transpose(&transposed, *layout, inverse);
        *layout = lilac_tile_intern_layout(a->module, &transposed);
        op = op->operands[0].value->op;
    }
    return op != NULL && op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC && op->operand_count > 0 ? op
                                                                                            : NULL;
}

/* The type of an operand as a tensor. */
static const lilac_tile_type *tensor_type(const assignment *a, const lilac_tile_type *type) {
    return lilac_tile_is_tensor(type)
               ? type
               : lilac_tile_tensor(a->module, lilac_tile_scalar(a->module, type->scalar),
                                   type->rank, type->shape, NULL);
}

bool lilac_find_product_operand(product_operand *result, assignment *a, const lilac_tile_op *dot,
                                uint32_t operand, const lilac_layout *d) {
    lilac_tile_value *value = dot->operands[operand].value;
    const lilac_tile_type *type = tensor_type(a, value->type);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    project(columns, a, d, type, operand);
    const lilac_layout *layout = any_layout(a, type, columns);
    if (!lilac_tile_is_tensor(value->type)) {
        lilac_tile_op *alloc = find_allocation(a, value, &layout);
        value = alloc != NULL ? alloc->operands[0].value : NULL;
    }
    while (value != NULL && layout != NULL && value->op != NULL &&
           lilac_layout_relation(value->op)->rule == RULE_SHAPE) {
        layout = lilac_transfer_backward(a, value->op, 0, layout);
        value = value->op->operands[0].value;
    }
    if (value == NULL || layout == NULL || a->kind[value->id] != VALUE_FIXED) {
        return false;
    }
    *result = (product_operand){value, layout};
    return true;
}

/* The product that uses memory, perhaps transposed, as an operand; NULL: there is none. */
static const lilac_tile_use *find_product(const lilac_tile_value *memory) {
    for (const lilac_tile_use *use = memory->uses; use != NULL; use = use->next) {
        if (use->op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
            return use;
        }
        const lilac_tile_use *further = use->op->code == LILAC_TILE_OP_TTG_MEMDESC_TRANS
                                            ? find_product(&use->op->results[0])
                                            : NULL;
        if (further != NULL) {
            return further;
        }
    }
    return NULL;
}

const lilac_layout *lilac_stored_layout(assignment *a, const lilac_tile_op *alloc,
                                        const lilac_layout *native) {
    const lilac_tile_use *use = a->target->num_ctas > 1 && alloc->operand_count > 0
                                    ? find_product(&alloc->results[0])
                                    : NULL;
    if (use == NULL) {
        return NULL;
    }
    const layout_anchor *anchor = a->anchor_of[use->op->results[0].id];
    const lilac_layout *d = anchor != NULL ? lilac_propagate_layout(a, anchor->node) : NULL;
    if (d == NULL) {
        return NULL;
    }
    const lilac_tile_type *type = tensor_type(a, use->op->operands[use->index].value->type);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    project(columns, a, d, type, use->index);
    const lilac_layout *like = any_layout(a, type, columns);
    (void)find_allocation(a, use->op->operands[use->index].value, &like);
    if (native == NULL || like == NULL) {
        return like;
    }
    return lilac_with_blocks(a, native, like);
}
