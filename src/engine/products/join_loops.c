/* join_loops: two loops with the same products, one from where the other one ends, become one.
 *
 *     %p:2 = scf.for %k = 0 to %m step 64           scf.for %k = 0 to %n step 64
 *         iter_args(%o = %zero, %h = %low) {            iter_args(%o = %zero, %h = %low) {
 *       %s = product                                  %s = product
 *       f(%s)                                         %d = scf.if %k < %m {
 *     }                                                 yield f(%s)
 *     scf.for %k = %m to %n step 64          →        } else {
 *         iter_args(%o = %p#0, %h = %p#1) {             yield g(%s)
 *       %s = product                                  }
 *       g(%s)                                         what f and g have in common, of %d
 *     }                                             }
 *
 * Causal attention has one loop over the tiles before the diagonal and one with the mask. Each loop fills its
 * buffers before its first product and waits for its last product before the next loop begins.
 * bench/results/h200_attention_programs.md has the times of Triton's tutorial with two loops and with one.
 *
 * Which loops. The first one must reach the lower bound of the second one exactly: the difference of its
 * bounds is a multiple of the step, both as sums (facts/sums.h). Where it is not known not to be negative, the
 * loop begins at the smaller bound; the same for the end. All loads and products are those of both bodies
 * (match_bodies.c), and nothing else has an effect. What only one loop carries stays what it is while the other
 * one's iterations are executed. A counter that both carry, as an offset that each loop begins with a sum of
 * its own, is one if the sums are equal.
 *
 * Every iteration computes what it did, in the same order. */
#include "emit.h"
#include "facts/affine.h"
#include "products/dot_operands.h"
#include "products/match_bodies.h"

#include <lilac/tile_loops.h>

enum { ONE = 0x3F800000 /* of f32 */ };

typedef struct joining {
    lilac_tile_module *module;
    lilac_arena *arena;
    const lilac_range *ranges;
    lilac_bodies bodies;
    lilac_sum length; /* of the first loop's bounds: upper - lower */
    int64_t step;
} joining;

/* ---- sums ------------------------------------------------------------------------------------ */

static bool sum_of(const joining *j, lilac_sum *sum, const lilac_tile_value *value) {
    lilac_affine form;
    if (!lilac_affine_of(&form, value, j->arena) || form.base != NULL ||
        !lilac_affine_is_uniform(&form)) {
        return false;
    }
    *sum = form.uniform;
    return true;
}

/* a - b */
static bool difference_of(const joining *j, lilac_sum *sum, const lilac_tile_value *a,
                          const lilac_tile_value *b) {
    lilac_sum subtracted;
    return sum_of(j, sum, a) && sum_of(j, &subtracted, b) && lilac_sum_subtract(sum, &subtracted);
}

static bool is_multiple(const lilac_sum *sum, int64_t number) {
    bool multiple = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        multiple = multiple && sum->terms[i].factor % number == 0;
    }
    return multiple;
}

static bool is_not_negative(const joining *j, const lilac_sum *sum) {
    bool known = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        known = known && sum->terms[i].factor > 0;
        for (uint32_t k = 0; k < sum->terms[i].count; k++) {
            known = known && j->ranges[sum->terms[i].values[k]->id].low >= 0;
        }
    }
    return known;
}

static bool is_same_number(const joining *j, const lilac_tile_value *a, const lilac_tile_value *b) {
    lilac_sum sum;
    return a == b || (difference_of(j, &sum, a, b) && sum.count == 0);
}

/* ---- which loops ----------------------------------------------------------------------------- */

/* The next loop of the block, if only its inits use the results of `first`, and `first` can move to it. */
static lilac_tile_op *loop_behind(const lilac_tile_op *first) {
    lilac_tile_op *second = first->next;
    while (second != NULL && second->code != LILAC_TILE_OP_SCF_FOR &&
           lilac_tile_may_exchange(first, second)) {
        second = second->next;
    }
    if (second == NULL || second->code != LILAC_TILE_OP_SCF_FOR) {
        return NULL;
    }
    bool passed = false;
    for (uint32_t i = 0; i < first->result_count; i++) {
        for (const lilac_tile_use *use = first->results[i].uses; use != NULL; use = use->next) {
            if (use->op != second || use->index < lilac_tile_first_passed(second)) {
                return NULL;
            }
            passed = true;
        }
    }
    return passed ? second : NULL;
}

static bool meet(joining *j) {
    const lilac_tile_op *first = j->bodies.loops[0], *second = j->bodies.loops[1];
    int64_t step;
    return lilac_tile_constant(lilac_tile_step(first), &j->step) && j->step > 0 &&
           lilac_tile_constant(lilac_tile_step(second), &step) && step == j->step &&
           lilac_tile_induction_variable(first)->type ==
               lilac_tile_induction_variable(second)->type &&
           lilac_tile_attributes_equal(&first->attributes, &second->attributes) &&
           is_same_number(j, lilac_tile_upper_bound(first), lilac_tile_lower_bound(second)) &&
           difference_of(j, &j->length, lilac_tile_upper_bound(first),
                         lilac_tile_lower_bound(first)) &&
           is_multiple(&j->length, j->step);
}

/* What an iteration adds to a carried integer. False: it is no constant. */
static bool advance_of(const lilac_tile_op *loop, uint32_t number, int64_t *added) {
    const lilac_tile_value *argument = lilac_tile_iteration_argument(loop, number);
    const lilac_tile_op *op = lilac_tile_next(loop, number)->op;
    return op != NULL && op->code == LILAC_TILE_OP_ARITH_ADDI &&
           ((op->operands[0].value == argument &&
             lilac_tile_constant(op->operands[1].value, added)) ||
            (op->operands[1].value == argument &&
             lilac_tile_constant(op->operands[0].value, added)));
}

/* Does the second loop begin with the number that counter i has behind the first one? Only where that has
 * as many iterations as the difference of its bounds says. */
static bool is_continued(const joining *j, uint32_t i, uint32_t k) {
    const lilac_tile_op *first = j->bodies.loops[0], *second = j->bodies.loops[1];
    const lilac_tile_value *init = lilac_tile_init(second, k);
    int64_t added, other;
    lilac_sum end, wanted = j->length, moved;
    if (lilac_tile_is_tensor(init->type) || init->type != lilac_tile_init(first, i)->type ||
        !advance_of(first, i, &added) || !advance_of(second, k, &other) || added != other ||
        added % j->step != 0 || !is_not_negative(j, &j->length)) {
        return false;
    }
    const lilac_product scale = lilac_product_number(added / j->step);
    return lilac_sum_scale(&wanted, &scale) && sum_of(j, &end, init) &&
           sum_of(j, &moved, lilac_tile_init(first, i)) && lilac_sum_subtract(&end, &moved) &&
           lilac_sum_equal(&end, &wanted);
}

/* Finds what the loops carry for each other. False: two carried values begin with one result. */
static bool match_carried(joining *j) {
    lilac_bodies *b = &j->bodies;
    const lilac_tile_op *first = b->loops[0], *second = b->loops[1];
    const uint32_t counts[2] = {lilac_tile_carried_count(first), lilac_tile_carried_count(second)};
    for (uint32_t body = 0; body < 2; body++) {
        b->carried[body] = lilac_arena_array(j->arena, uint32_t, counts[body] + 1);
        for (uint32_t i = 0; i < counts[body]; i++) {
            b->carried[body][i] = NOT_CARRIED;
        }
    }
    for (uint32_t k = 0; k < counts[1]; k++) {
        const lilac_tile_value *init = lilac_tile_init(second, k);
        if (init->op == first) {
            if (b->carried[0][init->index] != NOT_CARRIED) {
                return false;
            }
            b->carried[0][init->index] = k;
            b->carried[1][k] = init->index;
        }
    }
    for (uint32_t k = 0; k < counts[1]; k++) {
        for (uint32_t i = 0; i < counts[0] && b->carried[1][k] == NOT_CARRIED; i++) {
            if (b->carried[0][i] == NOT_CARRIED && is_continued(j, i, k)) {
                b->carried[0][i] = k;
                b->carried[1][k] = i;
            }
        }
    }
    return true;
}

/* ---- rewriting ------------------------------------------------------------------------------- */

/* A pair of values, and the result of the conditional that selects between them. */
typedef struct merged {
    lilac_tile_value *values[2]; /* of the first loop's body, of the second one's */
    lilac_tile_value *result;
} merged;

typedef struct rewriting {
    const joining *j;
    lilac_tile_op *loop; /* the first one, which becomes both */
    lilac_tile_mapping *mapping;
    uint32_t count;
    merged *merged;
    lilac_tile_value *(*factors)[2]; /* of each scale of the bodies: what each body multiplies by */
    lilac_tile_value **products;     /* of each scale; NULL: not computed yet */
} rewriting;

static const merged *merged_of(const rewriting *r, const lilac_tile_value *first,
                               const lilac_tile_value *second) {
    for (uint32_t i = 0; i < r->count; i++) {
        if (r->merged[i].values[0] == first && r->merged[i].values[1] == second) {
            return &r->merged[i];
        }
    }
    return NULL;
}

/* What the joined loop has for the two values; products are computed in front of `place`. */
static lilac_tile_value *result_of(const rewriting *r, lilac_tile_value *first,
                                   lilac_tile_value *second, lilac_tile_op *place) {
    const lilac_bodies *b = &r->j->bodies;
    const lilac_body_scale *scale = lilac_bodies_scale(b, first, second);
    if (scale == NULL || !scale->used) {
        const merged *made = merged_of(r, first, second);
        return made != NULL ? made->result : first;
    }
    const size_t number = (size_t)(scale - b->scales);
    if (r->products[number] == NULL) {
        const lilac_emitter e = {r->j->module, place};
        lilac_tile_value *plain = result_of(r, scale->plain[0], scale->plain[1], place);
        lilac_tile_value *factor =
            merged_of(r, r->factors[number][0], r->factors[number][1])->result;
        if (lilac_tile_is_tensor(plain->type)) {
            factor = lilac_emit_unary(&e, LILAC_TILE_OP_TT_SPLAT, plain->type, factor);
        }
        r->products[number] = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_MULF, plain, factor);
    }
    return r->products[number];
}

/* From the smaller lower bound to the larger upper bound. */
static void set_bounds(const joining *j) {
    lilac_tile_op *first = j->bodies.loops[0], *second = j->bodies.loops[1];
    const bool is_unsigned = lilac_tile_find(&first->attributes, "unsignedCmp") != NULL;
    const lilac_emitter e = {j->module, first};
    lilac_tile_value *low = lilac_tile_lower_bound(first), *middle = lilac_tile_upper_bound(first),
                     *high = lilac_tile_upper_bound(second);
    lilac_sum rest;
    if (!is_not_negative(j, &j->length)) {
        const lilac_tile_opcode code =
            is_unsigned ? LILAC_TILE_OP_ARITH_MINUI : LILAC_TILE_OP_ARITH_MINSI;
        lilac_tile_set_lower_bound(first, lilac_emit_binary(&e, code, low, middle));
    }
    if (!difference_of(j, &rest, high, middle) || !is_not_negative(j, &rest)) {
        const lilac_tile_opcode code =
            is_unsigned ? LILAC_TILE_OP_ARITH_MAXUI : LILAC_TILE_OP_ARITH_MAXSI;
        high = lilac_emit_binary(&e, code, high, middle);
    }
    lilac_tile_set_upper_bound(first, high);
}

/* Carries what the second loop carries, and maps its arguments. */
static void carry_all(rewriting *r) {
    const lilac_bodies *b = &r->j->bodies;
    lilac_tile_op *first = r->loop, *second = b->loops[1];
    const uint32_t own = lilac_tile_carried_count(first), count = lilac_tile_carried_count(second);
    lilac_tile_value **inits = lilac_arena_array(r->j->arena, lilac_tile_value *, count + 1);
    uint32_t added = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (b->carried[1][k] == NOT_CARRIED) {
            inits[added++] = lilac_tile_init(second, k);
        }
    }
    lilac_tile_add_carried(r->j->module, first, added, inits);
    for (uint32_t k = 0, next = own; k < count; k++) {
        const uint32_t i = b->carried[1][k] == NOT_CARRIED ? next++ : b->carried[1][k];
        lilac_tile_map(r->mapping, lilac_tile_iteration_argument(second, k),
                       lilac_tile_iteration_argument(first, i));
    }
    lilac_tile_map(r->mapping, lilac_tile_induction_variable(second),
                   lilac_tile_induction_variable(first));
}

static void add_merged(rewriting *r, lilac_tile_value *first, lilac_tile_value *second) {
    if (merged_of(r, first, second) == NULL) {
        r->merged[r->count++] = (merged){{first, second}, NULL};
    }
}

/* The number by which a scale's body multiplies, in front of the loop. */
static lilac_tile_value *factor_of(const rewriting *r, const lilac_body_scale *scale) {
    const lilac_tile_op *op = scale->factor->op;
    if (op->code == LILAC_TILE_OP_TT_SPLAT) {
        return op->operands[0].value;
    }
    const lilac_tile_attribute *value = lilac_tile_find(&op->attributes, "value");
    return &lilac_engine_make_constant(
                r->j->module, r->loop, lilac_tile_element(scale->factor->type),
                value->kind == LILAC_TILE_ATTR_DENSE ? value->integers[0] : value->integer)
                ->results[0];
}

static void list_factors(rewriting *r) {
    const lilac_bodies *b = &r->j->bodies;
    lilac_tile_value *one = NULL;
    for (uint32_t i = 0; i < b->scale_count; i++) {
        const lilac_body_scale *scale = &b->scales[i];
        if (scale->used) {
            lilac_tile_value *factor = factor_of(r, scale);
            one = one != NULL
                      ? one
                      : &lilac_engine_make_constant(r->j->module, r->loop, factor->type, ONE)
                             ->results[0];
            r->factors[i][scale->body] = factor;
            r->factors[i][1 - scale->body] = one;
            add_merged(r, r->factors[i][0], r->factors[i][1]);
        }
    }
}

/* Lists the results of the conditional: choices, factors, and next values that only one loop carries. */
static void list_merged(rewriting *r, uint32_t own) {
    const lilac_bodies *b = &r->j->bodies;
    lilac_tile_op *first = r->loop, *second = b->loops[1];
    const uint32_t count = lilac_tile_carried_count(second);
    r->merged =
        lilac_arena_array(r->j->arena, merged, b->choice_count + b->scale_count + own + count + 1);
    r->factors = lilac_arena_alloc(r->j->arena, (b->scale_count + 1) * sizeof *r->factors);
    r->products = lilac_arena_array(r->j->arena, lilac_tile_value *, b->scale_count + 1);
    for (uint32_t i = 0; i < b->choice_count; i++) {
        add_merged(r, b->choices[i].values[0], b->choices[i].values[1]);
    }
    list_factors(r);
    for (uint32_t i = 0; i < own; i++) {
        lilac_tile_value *next = lilac_tile_next(first, i),
                         *argument = lilac_tile_iteration_argument(first, i);
        if (next != argument && b->carried[0][i] == NOT_CARRIED) {
            add_merged(r, next, argument);
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        lilac_tile_value *argument = lilac_tile_iteration_argument(second, k);
        if (b->carried[1][k] == NOT_CARRIED && lilac_tile_next(second, k) != argument) {
            add_merged(r, lilac_tile_mapped(r->mapping, argument), lilac_tile_next(second, k));
        }
    }
}

static void map_equal(const rewriting *r) {
    const lilac_bodies *b = &r->j->bodies;
    for (uint32_t k = 0; k < b->counts[1]; k++) {
        const lilac_body_op *op = &b->ops[1][k];
        for (uint32_t i = 0; op->class == LILAC_BODY_EQUAL && i < op->op->result_count; i++) {
            lilac_tile_map(r->mapping, &op->op->results[i], &op->partner->results[i]);
        }
    }
}

/* Is the operation needed for the conditional? */
static bool is_used_by(const rewriting *r, const lilac_tile_op *op, uint32_t body) {
    const lilac_bodies *b = &r->j->bodies;
    const lilac_tile_block *block = b->loops[body]->regions[0]->first;
    for (uint32_t i = 0; i < op->result_count; i++) {
        for (const lilac_tile_use *use = op->results[i].uses; use != NULL; use = use->next) {
            const lilac_tile_op *user = lilac_body_user(b, body, use);
            if (user != block->last &&
                lilac_body_op_of(b, body, user->results)->class == LILAC_BODY_UNMATCHED) {
                return true;
            }
        }
        for (uint32_t k = 0; k < r->count; k++) {
            if (r->merged[k].values[body] == &op->results[i]) {
                return true;
            }
        }
    }
    return false;
}

/* The operation of the first body behind which the conditional stands; NULL: at its beginning. */
static lilac_tile_op *last_needed(const rewriting *r) {
    const lilac_bodies *b = &r->j->bodies;
    lilac_tile_op *last = NULL;
    for (uint32_t i = 0; i < b->counts[0]; i++) {
        const lilac_body_op *op = &b->ops[0][i];
        if (op->class == LILAC_BODY_EQUAL &&
            (is_used_by(r, op->op, 0) || is_used_by(r, op->partner, 1))) {
            last = op->op;
        }
    }
    return last;
}

/* A block with a yield of the values of the body. */
static lilac_tile_op *put_branch(const rewriting *r, lilac_tile_region *region, uint32_t body) {
    lilac_tile_value **values = lilac_arena_array(r->j->arena, lilac_tile_value *, r->count + 1);
    for (uint32_t i = 0; i < r->count; i++) {
        values[i] = r->merged[i].values[body];
    }
    lilac_tile_op *yield = lilac_tile_op_create(r->j->module, LILAC_TILE_OP_SCF_YIELD, r->count,
                                                values, 0, NULL, 0, r->loop->location);
    yield->position = r->loop->position;
    lilac_tile_append(lilac_tile_block_create(r->j->module, region), yield);
    return yield;
}

/* Moves the unmatched operations of the first body, and copies those of the second one. */
static void fill_branches(const rewriting *r, const lilac_tile_op *branch) {
    const lilac_bodies *b = &r->j->bodies;
    lilac_tile_op *first = put_branch(r, branch->regions[0], 0),
                  *second = put_branch(r, branch->regions[1], 1);
    for (uint32_t i = 0; i < b->counts[0]; i++) {
        if (b->ops[0][i].class == LILAC_BODY_UNMATCHED) {
            lilac_tile_detach(b->ops[0][i].op);
            lilac_tile_insert_before(first, b->ops[0][i].op);
        }
    }
    for (uint32_t k = 0; k < b->counts[1]; k++) {
        if (b->ops[1][k].class == LILAC_BODY_UNMATCHED) {
            lilac_tile_insert_before(
                second, lilac_tile_clone_mapped(r->j->module, b->ops[1][k].op, r->mapping));
        }
    }
    for (uint32_t i = 0; i < r->count; i++) {
        lilac_tile_set_operand(second, i, lilac_tile_mapped(r->mapping, second->operands[i].value));
    }
}

/* The conditional behind `place` (NULL: at the beginning). Returns it. */
static lilac_tile_op *put_conditional(const rewriting *r, const lilac_tile_op *place) {
    const lilac_tile_op *second = r->j->bodies.loops[1];
    const bool is_unsigned = lilac_tile_find(&second->attributes, "unsignedCmp") != NULL;
    const lilac_tile_type **types =
        lilac_arena_array(r->j->arena, const lilac_tile_type *, r->count + 1);
    for (uint32_t i = 0; i < r->count; i++) {
        types[i] = r->merged[i].values[0]->type;
    }
    const lilac_emitter e = {r->j->module,
                             place != NULL ? place->next : r->loop->regions[0]->first->first};
    lilac_tile_value *is_first =
        lilac_emit_compare(&e, is_unsigned ? "ult" : "slt", lilac_tile_induction_variable(r->loop),
                           lilac_tile_lower_bound(second));
    lilac_tile_op *branch = lilac_tile_op_create(r->j->module, LILAC_TILE_OP_SCF_IF, 1, &is_first,
                                                 r->count, types, 2, r->loop->location);
    branch->position = r->loop->position;
    lilac_tile_insert_after(is_first->op, branch);
    for (uint32_t i = 0; i < r->count; i++) {
        r->merged[i].result = &branch->results[i];
        branch->results[i].name = r->merged[i].values[0]->name;
    }
    return branch;
}

/* Matched operations use the results of the conditional. Those in front of it move behind it. */
static void use_merged(const rewriting *r, lilac_tile_op *branch, const lilac_tile_op *place) {
    const lilac_bodies *b = &r->j->bodies;
    bool in_front = place != NULL;
    for (uint32_t i = 0; i < b->counts[0]; i++) {
        lilac_tile_op *op = b->ops[0][i].op;
        if (b->ops[0][i].class == LILAC_BODY_MATCHED) {
            if (in_front) {
                lilac_tile_detach(op);
                lilac_tile_insert_after(branch, op);
                branch = op;
            }
            for (uint32_t k = 0; k < op->operand_count; k++) {
                lilac_tile_set_operand(op, k,
                                       result_of(r, op->operands[k].value,
                                                 b->ops[0][i].partner->operands[k].value, op));
            }
        }
        in_front = in_front && op != place;
    }
}

/* So do the next carried values. */
static void use_next(const rewriting *r, uint32_t own) {
    const lilac_bodies *b = &r->j->bodies;
    const lilac_tile_op *second = b->loops[1];
    lilac_tile_op *end = r->loop->regions[0]->first->last;
    for (uint32_t i = 0; i < own; i++) {
        const uint32_t k = b->carried[0][i];
        lilac_tile_value *other = k != NOT_CARRIED ? lilac_tile_next(second, k)
                                                   : lilac_tile_iteration_argument(r->loop, i);
        lilac_tile_set_next(r->loop, i, result_of(r, lilac_tile_next(r->loop, i), other, end));
    }
    for (uint32_t k = 0, next = own; k < lilac_tile_carried_count(second); k++) {
        const uint32_t i = b->carried[1][k] == NOT_CARRIED ? next++ : b->carried[1][k];
        if (i >= own) {
            lilac_tile_set_next(r->loop, i,
                                result_of(r, lilac_tile_iteration_argument(r->loop, i),
                                          lilac_tile_next(second, k), end));
        }
        lilac_tile_replace_uses(&second->results[k], &r->loop->results[i]);
    }
}

static void join(const joining *j) {
    lilac_tile_op *first = j->bodies.loops[0], *second = j->bodies.loops[1];
    rewriting r = {.j = j, .loop = first, .mapping = lilac_tile_mapping_create()};
    const uint32_t own = lilac_tile_carried_count(first);
    lilac_tile_detach(first);
    lilac_tile_insert_before(second, first);
    set_bounds(j);
    carry_all(&r);
    list_merged(&r, own);
    map_equal(&r);
    if (r.count > 0) {
        const lilac_tile_op *place = last_needed(&r);
        lilac_tile_op *branch = put_conditional(&r, place);
        use_merged(&r, branch, place);
        use_next(&r, own);
        fill_branches(&r, branch);
    } else {
        use_next(&r, own);
    }
    lilac_engine_set_integer(j->module, first, LILAC_JOINED_LOOPS, 2);
    for (uint32_t i = j->bodies.counts[0]; i-- > 0;) {
        if (j->bodies.ops[0][i].class == LILAC_BODY_UNUSED) {
            lilac_tile_remove(j->bodies.ops[0][i].op);
        }
    }
    lilac_tile_remove(second);
    lilac_tile_mapping_destroy(r.mapping);
}

/* ---- the pass -------------------------------------------------------------------------------- */

static bool has_layout(const lilac_tile_op *loop) {
    bool layout = false;
    for (uint32_t i = 0; i < loop->result_count; i++) {
        layout |= loop->results[i].type->layout != NULL;
    }
    return layout;
}

/* Joins the loop with the one behind it. */
static bool visit_loop(lilac_tile_module *module, lilac_tile_function *function,
                       lilac_tile_op *loop) {
    lilac_tile_op *behind = loop_behind(loop);
    if (behind == NULL || has_layout(loop) || !lilac_dot_is_inside(loop->regions[0], NULL)) {
        return false;
    }
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_number(function);
    lilac_range *ranges = lilac_arena_array(arena, lilac_range, function->value_count + 1);
    lilac_engine_ranges(ranges, function);
    joining j = {.module = module,
                 .arena = arena,
                 .ranges = ranges,
                 .bodies = {.arena = arena, .function = function, .loops = {loop, behind}}};
    const bool joined = meet(&j) && match_carried(&j) && lilac_bodies_match(&j.bodies);
    if (joined) {
        join(&j);
    }
    lilac_arena_destroy(arena);
    return joined;
}

static bool visit(lilac_tile_module *module, lilac_tile_function *function,
                  lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first, *next; op != NULL; op = next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= visit(module, function, op->regions[r]);
            }
            next = op->next;
            if (op->code == LILAC_TILE_OP_SCF_FOR && visit_loop(module, function, op)) {
                changed = true;
                next = op; /* and the one behind that */
            }
        }
    }
    return changed;
}

bool lilac_engine_join_loops(lilac_tile_module *module, const lilac_target *target, bool *changed) {
    *changed = false;
    (void)target;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL && visit(module, f, f->body)) {
            *changed = true;
            lilac_tile_number(f);
        }
    }
    return true;
}
