/* orient_dots: A·B as (Bᵀ·Aᵀ)ᵀ where wgmma then reads its operands as they are.
 *
 *     %d = tt.dot %a, %b, %c      →     %at = tt.trans %a    %bt = tt.trans %b    %ct = tt.trans %c
 *                                       %dt = tt.dot %bt, %at, %ct
 *                                       %d  = tt.trans %dt
 *
 * wgmma takes its second operand from shared memory only, and reads elements of 8 and 32 bits there
 * only with k contiguous. Its first operand may be in registers, which hold what is computed and
 * what lies the other way. So the operands are exchanged
 *
 *     if B is computed in a loop and A is loaded, unless B is in memory for another product, whose A is computed;
 *     if elements have 8 or 32 bits, B is loaded with n contiguous and A with k contiguous.
 *
 * In a loop, what B is computed from is copied to shared memory ahead, and read in the layout of
 * the product. Elsewhere it is loaded in another one, so B is exchanged through shared memory in
 * any case.
 *
 * Transpositions of tensors in registers move no data (Theorem 9.3). Where a loop carries the
 * accumulator and the product is the only user of its argument and the only source of the next one,
 * the loop carries the transposed accumulator. */
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

typedef struct orientation {
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_axis_analysis axis;
    bool changed;
} orientation;

static bool is_computed(const lilac_tile_op *op, const lilac_tile_value *value) {
    return !lilac_dot_is_loaded(value) && value->op != NULL && value->op->parent == op->parent;
}

/* Does another product that cannot be exchanged read the tensor as its second operand, from memory that this product
 * can read, too? */
static bool is_in_memory(const lilac_tile_op *op, const lilac_tile_value *tensor) {
    bool found = false;
    for (const lilac_tile_use *use = tensor->uses; !found && use != NULL; use = use->next) {
        const lilac_tile_op *user = use->op;
        found = lilac_dot_is_transposition(user)
                    ? is_in_memory(op, &user->results[0])
                    : user != op && user->code == LILAC_TILE_OP_TT_DOT && use->index == 1 &&
                          user->parent == op->parent &&
                          is_computed(user, user->operands[0].value);
    }
    return found;
}

/* Does the exchange let wgmma read the operands as they are? */
static bool is_better_exchanged(const orientation *o, const lilac_tile_op *op) {
    const lilac_tile_value *a = op->operands[0].value, *b = op->operands[1].value;
    const uint32_t bits = lilac_tile_element_bits(a->type);
    if (bits != lilac_tile_element_bits(b->type) || is_computed(op, a)) {
        return false;
    }
    const bool a_lies =
        bits == 16 || !lilac_dot_is_loaded(a) || lilac_dot_is_contiguous(&o->axis, a, 1);
    if (is_computed(op, b)) {
        return a_lies && lilac_tile_is_in_loop(op) &&
               !(bits == 16 && is_in_memory(op, lilac_dot_before_transpositions(b)));
    }
    return bits != 16 && a_lies && lilac_dot_is_loaded(a) && lilac_dot_is_loaded(b) &&
           !lilac_dot_is_contiguous(&o->axis, b, 0) && lilac_dot_is_contiguous(&o->axis, b, 1);
}

static bool can_exchange(const orientation *o, const lilac_tile_op *op) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    if (!lilac_engine_dot_problem(&problem, op, o->target, &why) || problem.rank != 2) {
        return false;
    }
    lilac_plan_dot_problem exchanged = {.rank = 2,
                                        .m_bits = problem.n_bits,
                                        .n_bits = problem.m_bits,
                                        .k_bits = problem.k_bits,
                                        .a = problem.b,
                                        .b = problem.a,
                                        .d = problem.d};
    lilac_plan_dot_divide(&exchanged, o->target, false);
    return lilac_plan_dot_choose_wgmma(&shape, &exchanged, o->target);
}

/* ---- rewriting ---------------------------------------------------------------------------- */

static const lilac_tile_type *transposed(orientation *o, const lilac_tile_type *type) {
    const int64_t shape[2] = {type->shape[1], type->shape[0]};
    return lilac_tile_tensor(o->module, type->element, 2, shape, NULL);
}

/* tt.trans of a value, detached. */
static lilac_tile_op *make_trans(orientation *o, lilac_tile_value *value,
                                 const lilac_tile_op *like) {
    static const int64_t exchange[2] = {1, 0};
    const lilac_tile_type *type = transposed(o, value->type);
    lilac_tile_op *op = lilac_tile_op_create(o->module, LILAC_TILE_OP_TT_TRANS, 1, &value, 1, &type,
                                             0, like->location);
    const lilac_tile_attribute order = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                        .name = lilac_intern_string(o->module->context, "order"),
                                        .type = lilac_tile_scalar(o->module, LILAC_I32),
                                        .count = 2,
                                        .integers = exchange};
    op->position = like->position;
    lilac_tile_set_attribute(o->module, &op->attributes, &order);
    return op;
}

static lilac_tile_value *trans_before(orientation *o, lilac_tile_op *place,
                                      lilac_tile_value *value) {
    if (lilac_dot_is_transposition(value->op)) {
        return value->op->operands[0].value;
    }
    lilac_tile_op *op = make_trans(o, value, place);
    /* what is computed outside the loop is transposed there */
    if (value->op != NULL && value->op->parent != place->parent) {
        lilac_tile_insert_after(value->op, op);
    } else {
        lilac_tile_insert_before(place, op);
    }
    return &op->results[0];
}

/* The number of the value that a loop carries from `next` to `argument`, if nothing else uses them;
 * UINT32_MAX: none. */
static uint32_t carried_number(const lilac_tile_value *argument, const lilac_tile_value *next,
                               lilac_tile_op **loop) {
    if (argument->op != NULL || argument->block == NULL || argument->uses == NULL ||
        argument->uses->next != NULL || next->uses == NULL || next->uses->next != NULL) {
        return UINT32_MAX;
    }
    *loop = argument->block->parent->parent;
    if (*loop == NULL || (*loop)->code != LILAC_TILE_OP_SCF_FOR) {
        return UINT32_MAX;
    }
    for (uint32_t i = 0; i < lilac_tile_carried_count(*loop); i++) {
        if (lilac_tile_iteration_argument(*loop, i) == argument &&
            lilac_tile_next(*loop, i) == next) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* Lets a loop carry the transposed accumulator. */
static void transpose_carried(orientation *o, lilac_tile_op *loop, uint32_t i) {
    lilac_tile_value *result = &loop->results[i];
    lilac_tile_set_init(loop, i, trans_before(o, loop, lilac_tile_init(loop, i)));
    lilac_tile_iteration_argument(loop, i)->type = transposed(o, result->type);
    const lilac_tile_type *type = result->type;
    result->type = transposed(o, type);
    lilac_tile_op *back = make_trans(o, result, loop);
    lilac_tile_replace_uses(result, &back->results[0]);
    lilac_tile_set_operand(back, 0, result);
    lilac_tile_insert_after(loop, back);
}

static void exchange(orientation *o, lilac_tile_op *op) {
    lilac_tile_op *loop = NULL;
    lilac_tile_value *c = op->operands[2].value, *d = &op->results[0];
    const uint32_t carried = carried_number(c, d, &loop);
    const lilac_tile_type *type = transposed(o, d->type);
    if (carried != UINT32_MAX) {
        transpose_carried(o, loop, carried);
    }
    lilac_tile_value *values[3] = {[2] = c};
    values[0] = trans_before(o, op, op->operands[1].value);
    values[1] = trans_before(o, op, op->operands[0].value);
    if (carried == UINT32_MAX) {
        values[2] = trans_before(o, op, c);
    }
    lilac_tile_op *product =
        lilac_tile_op_create(o->module, LILAC_TILE_OP_TT_DOT, 3, values, 1, &type, 0, op->location);
    product->position = op->position;
    product->results[0].name = d->name;
    for (uint32_t i = 0; i < op->attributes.count; i++) {
        lilac_tile_set_attribute(o->module, &product->attributes, &op->attributes.list[i]);
    }
    lilac_tile_insert_before(op, product);
    if (carried != UINT32_MAX) {
        lilac_tile_replace_uses(d, &product->results[0]);
    } else {
        lilac_tile_op *back = make_trans(o, &product->results[0], op);
        lilac_tile_insert_before(op, back);
        lilac_tile_replace_uses(d, &back->results[0]);
    }
    lilac_tile_remove(op);
    o->changed = true;
}

static void visit_region(orientation *o, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            next = op->next;
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(o, op->regions[r]);
            }
            if (op->code == LILAC_TILE_OP_TT_DOT && op->results[0].type->layout == NULL &&
                op->results[0].type->rank == 2 && can_exchange(o, op) &&
                is_better_exchanged(o, op)) {
                exchange(o, op);
            }
        }
    }
}

bool lilac_engine_orient_dots(lilac_tile_module *module, const lilac_target *target,
                              bool *changed) {
    orientation o = {.module = module, .target = target};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && lilac_dot_is_inside(function->body, NULL)) {
            lilac_arena *arena = lilac_arena_create();
            lilac_engine_axis_facts(&o.axis, arena, function);
            visit_region(&o, function->body);
            lilac_tile_number(function);
            lilac_arena_destroy(arena);
        }
    }
    *changed = o.changed;
    return true;
}
