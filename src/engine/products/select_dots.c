/* select_dots: products that wgmma computes get their operands in shared memory.
 *
 *     %d = tt.dot %a, %b, %c
 *   →
 *     %am = ttg.local_alloc %a        (unless %a is computed in registers)
 *     %bm = ttg.local_alloc %b
 *     ttng.fence_async_shared
 *     %d = ttng.warp_group_dot %am, %bm, %c {inputPrecision = 0 : i32}
 *
 * wgmma is chosen where the device has it for the types and the product fills it. The memory has no
 * layout yet; assign_layouts chooses one. An operand that is a transposed tensor is stored as it was,
 * and its memory is transposed, which costs nothing. Operands from outside the loop are stored there.
 * A limit of the products that may be added inexactly (maxNumImpreciseAcc) is handed on. */
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

typedef struct selection {
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_axis_analysis axis;
    bool changed;
} selection;

/* Inserts an operation where its operand is defined, if that is in a block around `user`; else before
 * the user. */
static void insert(lilac_tile_op *op, const lilac_tile_value *operand, lilac_tile_op *user) {
    op->position = user->position;
    if (operand->op != NULL && operand->op->parent != user->parent) {
        lilac_tile_insert_after(operand->op, op);
    } else {
        lilac_tile_insert_before(user, op);
    }
}

static lilac_tile_value *transpose_memory(selection *s, lilac_tile_value *memory,
                                          const lilac_tile_op *like) {
    const lilac_tile_type *from = memory->type;
    lilac_encoding_memdesc swapped = {.rank = 2,
                                      .shape = {from->shape[1], from->shape[0]},
                                      .alloc_rank = 2,
                                      .alloc_shape = {from->shape[1], from->shape[0]},
                                      .scalar = from->scalar};
    const lilac_tile_type *type = lilac_tile_memory(s->module, &swapped);
    lilac_tile_op *op = lilac_tile_op_create(s->module, LILAC_TILE_OP_TTG_MEMDESC_TRANS, 1, &memory,
                                             1, &type, 0, like->location);
    op->position = like->position;
    lilac_tile_set_attribute(s->module, &op->attributes,
                             lilac_tile_find(&like->attributes, "order"));
    lilac_tile_insert_after(memory->op, op);
    return &op->results[0];
}

/* The memory that holds a tensor, which the operation `user` reads. */
static lilac_tile_value *store(selection *s, lilac_tile_value *value, lilac_tile_op *user) {
    if (lilac_dot_is_transposition(value->op)) {
        const lilac_tile_op *transposition = value->op;
        return transpose_memory(s, store(s, transposition->operands[0].value, user), transposition);
    }
    const lilac_tile_type *tensor = value->type;
    lilac_encoding_memdesc memory = {.rank = 2,
                                     .shape = {tensor->shape[0], tensor->shape[1]},
                                     .alloc_rank = 2,
                                     .alloc_shape = {tensor->shape[0], tensor->shape[1]},
                                     .scalar = lilac_tile_element(tensor)->scalar};
    const lilac_tile_type *type = lilac_tile_memory(s->module, &memory);
    lilac_tile_op *alloc = lilac_tile_op_create(s->module, LILAC_TILE_OP_TTG_LOCAL_ALLOC, 1, &value,
                                                1, &type, 0, user->location);
    lilac_tile_op *fence = lilac_tile_op_create(s->module, LILAC_TILE_OP_TTNG_FENCE_ASYNC_SHARED, 0,
                                                NULL, 0, NULL, 0, user->location);
    insert(alloc, value, user);
    const lilac_tile_attribute own_block = {.kind = LILAC_TILE_ATTR_BOOL,
                                            .name =
                                                lilac_intern_string(s->module->context, "bCluster"),
                                            .type = lilac_tile_scalar(s->module, LILAC_I1)};
    fence->position = user->position;
    lilac_tile_set_attribute(s->module, &fence->attributes, &own_block);
    lilac_tile_insert_after(alloc, fence);
    return &alloc->results[0];
}

/* Does each of several warpgroups need all rows of the first operand? */
static bool groups_share_rows(const selection *s, const lilac_tile_op *op) {
    enum { ROWS_OF_GROUP = 64, WARPS_OF_GROUP = 4 };
    return (int64_t)s->target->num_warps * ROWS_OF_GROUP >
           op->results[0].type->shape[0] * WARPS_OF_GROUP;
}

static bool is_in_loop(const lilac_tile_op *op) {
    while (op != NULL && !lilac_tile_is_loop(op)) {
        op = op->parent->parent->parent;
    }
    return op != NULL;
}

/* A tensor that is computed where the product is, unless outside of loops several warpgroups would hold copies of
 * it that they load from shared memory in any case, and one that shared memory cannot hold as wgmma reads
 * it: with k contiguous, unless its elements have 16 bits. */
static bool is_in_registers(const selection *s, const lilac_tile_op *op,
                            const lilac_tile_value *value) {
    if (!lilac_dot_is_loaded(value)) {
        return value->op != NULL && value->op->parent == op->parent &&
               (is_in_loop(op) || !groups_share_rows(s, op) || lilac_dot_comes_from_product(value));
    }
    return lilac_tile_element_bits(value->type) != 16 &&
           !lilac_dot_is_contiguous(&s->axis, value, 1) &&
           lilac_dot_is_contiguous(&s->axis, value, 0);
}

/* Removes transpositions that nothing uses any more. */
static void remove_unused(const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->last, *previous; op != NULL; op = previous) {
            previous = op->previous;
            for (uint32_t r = 0; r < op->region_count; r++) {
                remove_unused(op->regions[r]);
            }
            if (lilac_dot_is_transposition(op) && op->results[0].uses == NULL) {
                lilac_tile_remove(op);
            }
        }
    }
}

static void select_wgmma(selection *s, lilac_tile_op *op) {
    lilac_tile_value *values[3] = {op->operands[0].value, op->operands[1].value,
                                   op->operands[2].value};
    if (!is_in_registers(s, op, values[0])) {
        values[0] = store(s, values[0], op);
    }
    values[1] = store(s, values[1], op);
    const lilac_tile_type *type = op->results[0].type;
    lilac_tile_op *product = lilac_tile_op_create(s->module, LILAC_TILE_OP_TTNG_WARP_GROUP_DOT, 3,
                                                  values, 1, &type, 0, op->location);
    product->position = op->position;
    product->results[0].name = op->results[0].name;
    lilac_engine_set_integer(s->module, product, "inputPrecision", 0);
    const lilac_tile_attribute *limit = lilac_tile_find(&op->attributes, "maxNumImpreciseAcc");
    if (limit != NULL) {
        lilac_tile_set_attribute(s->module, &product->attributes, limit);
    }
    lilac_tile_insert_before(op, product);
    lilac_tile_replace_uses(&op->results[0], &product->results[0]);
    lilac_tile_remove(op);
    s->changed = true;
}

static void visit_op(selection *s, lilac_tile_op *op) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    if (op->code == LILAC_TILE_OP_TT_DOT && op->results[0].type->layout == NULL &&
        lilac_engine_dot_problem(&problem, op, s->target, &why) &&
        lilac_plan_dot_choose_wgmma(&shape, &problem, s->target)) {
        select_wgmma(s, op);
    }
}

static void visit_region(selection *s, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(s, op->regions[r]);
            }
            visit_op(s, op);
        }
    }
}

bool lilac_engine_select_dots(lilac_tile_module *module, const lilac_target *target,
                              bool *changed) {
    selection s = {.module = module, .target = target};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && lilac_dot_is_inside(function->body, NULL)) {
            lilac_arena *arena = lilac_arena_create();
            lilac_engine_axis_facts(&s.axis, arena, function);
            visit_region(&s, function->body);
            remove_unused(function->body);
            lilac_tile_number(function);
            lilac_arena_destroy(arena);
        }
    }
    *changed = s.changed;
    return true;
}
