/* match_bodies: the operations that the bodies of two loops have in common.
 *
 *     first                          second                              class
 *     %s = tt.dot %q, %k             %s = tt.dot %q, %k                  equal
 *                                    %t = select(mask, %s, …)            unmatched
 *     %m = reduce(%s) {max}          %m = reduce(%t) {max}               matched: a choice between %s and %t
 *     %d = subf %s, %m               %d = subf %t, %m                    matched
 *     %o = tt.dot exp(%d), %v        %o = tt.dot exp(%d), %v             matched
 *
 * Two operations are equal if they have the same opcode, attributes and types and equal operands: values that are
 * defined outside of the loops, corresponding carried values, results of equal operations. The search starts at
 * the beginning of the bodies. Two operations are matched if only their operands differ. That search starts at the
 * carried values of the next iteration and follows operands. It ends at a pair of different operations, which is
 * a choice: the joined body selects one of the two values.
 *
 * One conditional makes all choices. Therefore an operation is unmatched if an unmatched one uses its result.
 *
 * If one value of a pair is a product %s · %c with a scalar %c from outside of the loop, the choice is between
 * %s and %t, and another one between %c and 1. The joined body multiplies behind the conditional, where the
 * product can be fused with an addition. */
#include "products/match_bodies.h"

#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

enum { MOST_OPS = 512, MOST_SCALES = 16 };

static bool is_load(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_LOAD || op->code == LILAC_TILE_OP_TT_DESCRIPTOR_LOAD;
}

static bool is_pure(const lilac_tile_op *op) {
    return (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_PURE) != 0;
}

/* ---- values --------------------------------------------------------------------------------- */

lilac_body_op *lilac_body_op_of(const lilac_bodies *bodies, uint32_t body,
                                const lilac_tile_value *value) {
    const lilac_tile_block *block = bodies->loops[body]->regions[0]->first;
    return value->op != NULL && value->op->parent == block
               ? &bodies->ops[body][bodies->places[value->id] - 1]
               : NULL;
}

static bool is_same_constant(const lilac_tile_value *a, const lilac_tile_value *b) {
    return a == b || (a->op != NULL && b->op != NULL && a->type == b->type &&
                      a->op->code == LILAC_TILE_OP_ARITH_CONSTANT &&
                      b->op->code == LILAC_TILE_OP_ARITH_CONSTANT &&
                      lilac_tile_attributes_equal(&a->op->attributes, &b->op->attributes));
}

/* Is it the same value in both bodies, or do operations of classes up to `most` compute both? */
static bool is_shared(const lilac_bodies *bodies, const lilac_tile_value *a,
                      const lilac_tile_value *b, lilac_body_class most) {
    const lilac_tile_op *first = bodies->loops[0], *second = bodies->loops[1];
    const lilac_body_op *op = lilac_body_op_of(bodies, 0, a);
    if (op != NULL) {
        return op->class != LILAC_BODY_UNMATCHED && op->class <= most && op->partner == b->op &&
               a->index == b->index;
    }
    if (a->op == NULL && a->block == first->regions[0]->first) {
        const uint32_t number = a->index - 1;
        return a == lilac_tile_induction_variable(first)
                   ? b == lilac_tile_induction_variable(second)
                   : bodies->carried[0][number] != NOT_CARRIED &&
                         b == lilac_tile_iteration_argument(second, bodies->carried[0][number]);
    }
    return is_same_constant(a, b);
}

bool lilac_bodies_share(const lilac_bodies *bodies, const lilac_tile_value *first,
                        const lilac_tile_value *second) {
    return is_shared(bodies, first, second, LILAC_BODY_MATCHED);
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Two regions that are compared. */
typedef struct region_pair {
    const lilac_bodies *bodies;
    const lilac_tile_region *regions[2];
} region_pair;

static const lilac_tile_op *nth(const lilac_tile_block *block, const lilac_tile_op *of,
                                const lilac_tile_block *other) {
    const lilac_tile_op *op = block->first, *at = other->first;
    while (at != of && op != NULL) {
        op = op->next;
        at = at->next;
    }
    return op;
}

/* The same argument, the result of the operation at the same place, or a shared value? */
static bool is_same_inside(const region_pair *p, const lilac_tile_value *a,
                           const lilac_tile_value *b) {
    const lilac_tile_block *x = p->regions[0]->first, *y = p->regions[1]->first;
    if (a->op == NULL && a->block == x) {
        return b->op == NULL && b->block == y && a->index == b->index;
    }
    if (a->op != NULL && a->op->parent == x) {
        return a->index == b->index && nth(y, a->op, x) == b->op;
    }
    return is_shared(p->bodies, a, b, LILAC_BODY_EQUAL);
}

static bool is_of_same_kind(const lilac_bodies *bodies, const lilac_tile_op *a,
                            const lilac_tile_op *b);

/* The regions of reductions: one block, whose operations have no regions. */
static bool has_same_region(const lilac_bodies *bodies, const lilac_tile_region *a,
                            const lilac_tile_region *b) {
    const region_pair p = {bodies, {a, b}};
    const lilac_tile_block *x = a->first, *y = b->first;
    if (x == NULL || y == NULL || x->next != NULL || y->next != NULL ||
        x->argument_count != y->argument_count) {
        return false;
    }
    const lilac_tile_op *op = x->first, *other = y->first;
    for (; op != NULL && other != NULL; op = op->next, other = other->next) {
        if (op->region_count > 0 || !is_of_same_kind(bodies, op, other)) {
            return false;
        }
        for (uint32_t i = 0; i < op->operand_count; i++) {
            if (!is_same_inside(&p, op->operands[i].value, other->operands[i].value)) {
                return false;
            }
        }
    }
    return op == other;
}

/* The same operation but for its operands? */
static bool is_of_same_kind(const lilac_bodies *bodies, const lilac_tile_op *a,
                            const lilac_tile_op *b) {
    bool same = a->code == b->code && a->operand_count == b->operand_count &&
                a->result_count == b->result_count && a->region_count == b->region_count &&
                lilac_tile_attributes_equal(&a->attributes, &b->attributes);
    for (uint32_t i = 0; same && i < a->operand_count; i++) {
        same = a->operands[i].value->type == b->operands[i].value->type;
    }
    for (uint32_t i = 0; same && i < a->result_count; i++) {
        same = a->results[i].type == b->results[i].type;
    }
    for (uint32_t r = 0; same && r < a->region_count; r++) {
        same = has_same_region(bodies, a->regions[r], b->regions[r]);
    }
    return same;
}

static bool has_equal_operands(const lilac_bodies *bodies, const lilac_tile_op *a,
                               const lilac_tile_op *b) {
    for (uint32_t i = 0; i < a->operand_count; i++) {
        if (!is_shared(bodies, a->operands[i].value, b->operands[i].value, LILAC_BODY_EQUAL)) {
            return false;
        }
    }
    return true;
}

static void pair(lilac_body_op *a, lilac_body_op *b, lilac_body_class class) {
    a->partner = b->op;
    b->partner = a->op;
    a->class = b->class = class;
}

static void unpair(lilac_bodies *bodies, lilac_body_op *a) {
    lilac_body_op *b = lilac_body_op_of(bodies, 1, a->partner->results);
    a->partner = b->partner = NULL;
    a->class = b->class = LILAC_BODY_UNMATCHED;
}

/* ---- classes -------------------------------------------------------------------------------- */

static bool collect(lilac_bodies *bodies, uint32_t body) {
    bodies->ops[body] = lilac_arena_array(bodies->arena, lilac_body_op, MOST_OPS);
    for (lilac_tile_op *op = bodies->loops[body]->regions[0]->first->first; op->next != NULL;
         op = op->next) {
        if (op->result_count == 0 || bodies->counts[body] == MOST_OPS ||
            (!is_pure(op) && !is_load(op) && !lilac_dot_is_product(op))) {
            return false;
        }
        bodies->ops[body][bodies->counts[body]++] = (lilac_body_op){.op = op};
        for (uint32_t i = 0; i < op->result_count; i++) {
            bodies->places[op->results[i].id] = bodies->counts[body];
        }
    }
    return true;
}

static void find_equal(lilac_bodies *bodies) {
    for (uint32_t k = 0; k < bodies->counts[1]; k++) {
        lilac_body_op *b = &bodies->ops[1][k];
        for (uint32_t i = 0; i < bodies->counts[0] && b->partner == NULL; i++) {
            lilac_body_op *a = &bodies->ops[0][i];
            if (a->partner == NULL && is_of_same_kind(bodies, a->op, b->op) &&
                has_equal_operands(bodies, a->op, b->op)) {
                pair(a, b, LILAC_BODY_EQUAL);
            }
        }
    }
}

lilac_body_scale *lilac_bodies_scale(const lilac_bodies *bodies, const lilac_tile_value *first,
                                     const lilac_tile_value *second) {
    for (uint32_t i = 0; i < bodies->scale_count; i++) {
        lilac_body_scale *scale = &bodies->scales[i];
        if (scale->values[0] == first && scale->values[1] == second) {
            return scale;
        }
    }
    return NULL;
}

/* Is every element the same number from outside of the loop? */
static bool is_number(const lilac_bodies *bodies, uint32_t body, const lilac_tile_value *value) {
    const lilac_tile_op *loop = bodies->loops[body];
    if (value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_CONSTANT) {
        const lilac_tile_attribute *number = lilac_tile_find(&value->op->attributes, "value");
        return number != NULL && (number->kind != LILAC_TILE_ATTR_DENSE || number->count == 1);
    }
    return value->op != NULL && value->op->code == LILAC_TILE_OP_TT_SPLAT &&
           !lilac_tile_is_inside(value->op->operands[0].value, loop);
}

/* The plain value and the factor, if a product with a number computes the value in this body. */
static bool is_scaled(const lilac_bodies *bodies, uint32_t body, const lilac_tile_value *value,
                      lilac_body_scale *scale) {
    const lilac_body_op *op = lilac_body_op_of(bodies, body, value);
    if (op == NULL || op->class == LILAC_BODY_MATCHED || op->op->code != LILAC_TILE_OP_ARITH_MULF ||
        lilac_tile_element(value->type)->scalar != LILAC_F32) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        lilac_tile_value *factor = op->op->operands[k].value;
        if (is_number(bodies, body, factor)) {
            scale->body = body;
            scale->factor = factor;
            scale->plain[body] = op->op->operands[1 - k].value;
            return true;
        }
    }
    return false;
}

static void match_backwards(lilac_bodies *bodies, lilac_tile_value *first,
                            lilac_tile_value *second);

static void find_scaled(lilac_bodies *bodies, lilac_tile_value *first, lilac_tile_value *second) {
    lilac_body_scale scale = {.values = {first, second}, .plain = {first, second}};
    if (bodies->scale_count < MOST_SCALES && lilac_bodies_scale(bodies, first, second) == NULL &&
        (is_scaled(bodies, 0, first, &scale) || is_scaled(bodies, 1, second, &scale))) {
        bodies->scales[bodies->scale_count++] = scale;
        match_backwards(bodies, scale.plain[0], scale.plain[1]);
    }
}

/* Pairs the operations that compute two values, and those that compute their operands. */
static void match_backwards(lilac_bodies *bodies, lilac_tile_value *first,
                            lilac_tile_value *second) {
    lilac_body_op *a = lilac_body_op_of(bodies, 0, first), *b = lilac_body_op_of(bodies, 1, second);
    if (lilac_bodies_share(bodies, first, second)) {
        return;
    }
    if (a == NULL || b == NULL || a->partner != NULL || b->partner != NULL ||
        first->index != second->index || is_load(a->op) || !is_of_same_kind(bodies, a->op, b->op)) {
        find_scaled(bodies, first, second);
        return;
    }
    pair(a, b, LILAC_BODY_MATCHED);
    for (uint32_t i = 0; i < a->op->operand_count; i++) {
        match_backwards(bodies, a->op->operands[i].value, b->op->operands[i].value);
    }
}

const lilac_tile_op *lilac_body_user(const lilac_bodies *bodies, uint32_t body,
                                     const lilac_tile_use *use) {
    const lilac_tile_op *user = use->op;
    while (user->parent != bodies->loops[body]->regions[0]->first) {
        user = user->parent->parent->parent;
    }
    return user;
}

/* Is the operand of a matched operation a scaled pair? */
static bool is_scaled_operand(const lilac_bodies *bodies, uint32_t body, const lilac_body_op *user,
                              uint32_t index) {
    const lilac_tile_value *own = user->op->operands[index].value,
                           *other = user->partner->operands[index].value;
    return lilac_bodies_scale(bodies, body == 0 ? own : other, body == 0 ? other : own) != NULL;
}

/* ---- choices -------------------------------------------------------------------------------- */

/* Adds the choices for a pair of values. */
static void choose(lilac_bodies *bodies, lilac_tile_value *first, lilac_tile_value *second) {
    lilac_body_scale *scale = lilac_bodies_scale(bodies, first, second);
    if (scale != NULL) {
        scale->used = true;
        choose(bodies, scale->plain[0], scale->plain[1]);
        return;
    }
    bool known = lilac_bodies_share(bodies, first, second);
    for (uint32_t i = 0; i < bodies->choice_count; i++) {
        const lilac_body_choice *old = &bodies->choices[i];
        known = known || (old->values[0] == first && old->values[1] == second);
    }
    if (!known) {
        bodies->choices[bodies->choice_count++] = (lilac_body_choice){{first, second}};
    }
}

/* Choices for the operands of matched operations and for the carried values of the next iteration. */
static void find_choices(lilac_bodies *bodies) {
    bodies->choice_count = 0;
    for (uint32_t i = 0; i < bodies->scale_count; i++) {
        bodies->scales[i].used = false;
    }
    for (uint32_t i = 0; i < bodies->counts[0]; i++) {
        const lilac_body_op *a = &bodies->ops[0][i];
        for (uint32_t k = 0; a->class == LILAC_BODY_MATCHED && k < a->op->operand_count; k++) {
            choose(bodies, a->op->operands[k].value, a->partner->operands[k].value);
        }
    }
    for (uint32_t i = 0; i < lilac_tile_carried_count(bodies->loops[0]); i++) {
        const uint32_t k = bodies->carried[0][i];
        if (k != NOT_CARRIED) {
            choose(bodies, lilac_tile_next(bodies->loops[0], i),
                   lilac_tile_next(bodies->loops[1], k));
        }
    }
}

static bool is_chosen(const lilac_bodies *bodies, uint32_t body, const lilac_tile_value *value) {
    bool chosen = false;
    for (uint32_t i = 0; i < bodies->choice_count; i++) {
        chosen |= bodies->choices[i].values[body] == value;
    }
    return chosen;
}

/* Is every use of the only result a scaled operand, or in such a product? */
static bool is_only_scaled(const lilac_bodies *bodies, uint32_t body, const lilac_tile_op *op) {
    if (op->result_count > 1 || is_chosen(bodies, body, op->results)) {
        return false;
    }
    for (const lilac_tile_use *use = op->results[0].uses; use != NULL; use = use->next) {
        const lilac_body_op *user =
            use->op->result_count > 0 ? lilac_body_op_of(bodies, body, use->op->results) : NULL;
        if (user == NULL || (user->class != LILAC_BODY_UNUSED &&
                             (user->class != LILAC_BODY_MATCHED ||
                              !is_scaled_operand(bodies, body, user, use->index)))) {
            return false;
        }
    }
    return true;
}

/* Does an unmatched operation use the result, or does only this loop carry it? */
static bool has_unmatched_use(const lilac_bodies *bodies, uint32_t body, const lilac_tile_op *op) {
    const lilac_tile_op *end = bodies->loops[body]->regions[0]->first->last;
    bool own = false;
    for (uint32_t i = 0; i < op->result_count; i++) {
        for (const lilac_tile_use *use = op->results[i].uses; use != NULL; use = use->next) {
            const lilac_tile_op *user = lilac_body_user(bodies, body, use);
            own |= user == end ? bodies->carried[body][use->index] == NOT_CARRIED
                               : lilac_body_op_of(bodies, body, user->results)->class ==
                                         LILAC_BODY_UNMATCHED &&
                                     !is_only_scaled(bodies, body, user);
        }
    }
    return own;
}

/* Chosen values are computed in front of the conditional: their operations are not matched. */
static bool keep_in_front(lilac_bodies *bodies) {
    bool changed = false;
    for (uint32_t i = 0; i < bodies->choice_count; i++) {
        lilac_body_op *a = lilac_body_op_of(bodies, 0, bodies->choices[i].values[0]),
                      *b = lilac_body_op_of(bodies, 1, bodies->choices[i].values[1]);
        if (a != NULL && a->class == LILAC_BODY_MATCHED) {
            unpair(bodies, a);
            changed = true;
        }
        if (b != NULL && b->class == LILAC_BODY_MATCHED) {
            unpair(bodies, lilac_body_op_of(bodies, 0, b->partner->results));
            changed = true;
        }
    }
    return changed;
}

/* So are the operands of unmatched operations. */
static bool keep_with_unmatched(lilac_bodies *bodies) {
    bool changed = false;
    for (uint32_t i = 0; i < bodies->counts[0]; i++) {
        lilac_body_op *a = &bodies->ops[0][i];
        if (a->class == LILAC_BODY_MATCHED &&
            (has_unmatched_use(bodies, 0, a->op) || has_unmatched_use(bodies, 1, a->partner))) {
            unpair(bodies, a);
            changed = true;
        }
    }
    return changed;
}

static void keep_one_place(lilac_bodies *bodies) {
    uint32_t most = lilac_tile_carried_count(bodies->loops[0]);
    for (uint32_t i = 0; i < bodies->counts[0]; i++) {
        most += bodies->ops[0][i].op->operand_count;
    }
    bodies->choices = lilac_arena_array(bodies->arena, lilac_body_choice, most + 1);
    for (bool changed = true; changed;) {
        find_choices(bodies);
        changed = keep_in_front(bodies) || keep_with_unmatched(bodies);
    }
}

/* Does an operation of both bodies, or what is carried for both, use the value as it is? */
static bool has_common_use(const lilac_bodies *bodies, uint32_t body, const lilac_tile_op *op) {
    const lilac_tile_op *end = bodies->loops[body]->regions[0]->first->last;
    for (uint32_t i = 0; i < bodies->scale_count; i++) {
        if (bodies->scales[i].used && bodies->scales[i].plain[body] == op->results) {
            return true;
        }
    }
    for (const lilac_tile_use *use = op->results[0].uses; use != NULL; use = use->next) {
        const lilac_tile_op *at = lilac_body_user(bodies, body, use);
        const lilac_body_op *user = at != end ? lilac_body_op_of(bodies, body, at->results) : NULL;
        if (user == NULL || user->class == LILAC_BODY_EQUAL ||
            (user->class == LILAC_BODY_MATCHED &&
             !is_scaled_operand(bodies, body, user, use->index))) {
            return true;
        }
    }
    return false;
}

/* A product that only unmatched operations use is computed with them, where it can be fused. */
static void sink_products(lilac_bodies *bodies) {
    for (uint32_t i = 0; i < bodies->counts[0]; i++) {
        lilac_body_op *a = &bodies->ops[0][i];
        if (a->class == LILAC_BODY_EQUAL && a->op->code == LILAC_TILE_OP_ARITH_MULF &&
            !has_common_use(bodies, 0, a->op) && !has_common_use(bodies, 1, a->partner)) {
            unpair(bodies, a);
        }
    }
}

static void drop_unused(lilac_bodies *bodies) {
    for (uint32_t body = 0; body < 2; body++) {
        for (uint32_t i = bodies->counts[body]; i-- > 0;) {
            lilac_body_op *op = &bodies->ops[body][i];
            if (op->class == LILAC_BODY_UNMATCHED && is_only_scaled(bodies, body, op->op)) {
                op->class = LILAC_BODY_UNUSED;
            }
        }
    }
}

bool lilac_bodies_match(lilac_bodies *bodies) {
    bodies->places = lilac_arena_array(bodies->arena, uint32_t, bodies->function->value_count + 1);
    bodies->scales = lilac_arena_array(bodies->arena, lilac_body_scale, MOST_SCALES);
    if (!collect(bodies, 0) || !collect(bodies, 1)) {
        return false;
    }
    find_equal(bodies);
    for (uint32_t i = 0; i < lilac_tile_carried_count(bodies->loops[0]); i++) {
        const uint32_t k = bodies->carried[0][i];
        if (k != NOT_CARRIED) {
            match_backwards(bodies, lilac_tile_next(bodies->loops[0], i),
                            lilac_tile_next(bodies->loops[1], k));
        }
    }
    keep_one_place(bodies);
    sink_products(bodies);
    for (uint32_t body = 0; body < 2; body++) {
        for (uint32_t i = 0; i < bodies->counts[body]; i++) {
            const lilac_body_op *op = &bodies->ops[body][i];
            if (op->class == LILAC_BODY_UNMATCHED &&
                (!is_pure(op->op) || lilac_dot_is_product(op->op))) {
                return false;
            }
        }
    }
    drop_unused(bodies);
    return true;
}
