/* affine: integers and pointers as sums of products of scalars, and steps along dimensions.
 *
 * Scalars are expanded through additions, subtractions, products and sign extensions; what else
 * computes one is a factor. A value that a loop of a counter advances by a uniform step is its
 * first value and the step times the number of the iteration:
 *
 *     scf.for %k = %l to %u step 4 iter_args(%q = %p)        %q = p + 8 · k − 8 · l
 *       yield addptr(%q, 32)
 */
#include "facts/affine.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { MOST_DEPTH = 48, BUDGET = 2048, MOST_STEPS = 8 };

typedef struct search {
    lilac_arena *arena;
    uint32_t budget; /* values that are still looked at */
} search;

/* ---- forms ------------------------------------------------------------------------------- */

static bool find(search *s, lilac_affine *f, lilac_tile_value *value, uint32_t depth);

bool lilac_affine_is_uniform(const lilac_affine *f) {
    bool uniform = true;
    for (uint32_t d = 0; d < f->rank; d++) {
        uniform = uniform && lilac_product_is_zero(&f->step[d]) && f->below[d] == NULL;
    }
    return uniform;
}

static bool join_limits(lilac_affine *f, const lilac_affine *other) {
    f->wide_limits |= other->wide_limits;
    for (uint32_t d = 0; d < f->rank; d++) {
        const lilac_sum *limit = other->below[d];
        if (limit != NULL && f->below[d] != NULL && !lilac_sum_equal(limit, f->below[d])) {
            return false;
        }
        f->below[d] = f->below[d] != NULL ? f->below[d] : limit;
    }
    return true;
}

/* f + sign · other */
static bool add(lilac_affine *f, const lilac_affine *other, int64_t sign) {
    const lilac_product factor = lilac_product_number(sign);
    lilac_sum uniform = other->uniform;
    if (f->rank != other->rank || (f->base != NULL && other->base != NULL) ||
        !lilac_sum_scale(&uniform, &factor) || !lilac_sum_add(&f->uniform, &uniform) ||
        !join_limits(f, other)) {
        return false;
    }
    f->base = f->base != NULL ? f->base : other->base;
    for (uint32_t d = 0; d < f->rank; d++) {
        lilac_sum sum = {0};
        lilac_product step;
        if (!lilac_product_multiply(&step, &other->step[d], &factor) ||
            !lilac_sum_add_product(&sum, &f->step[d]) || !lilac_sum_add_product(&sum, &step) ||
            sum.count > 1) {
            return false;
        }
        f->step[d] = sum.count == 0 ? lilac_product_number(0) : sum.terms[0];
    }
    return true;
}

static bool scale(lilac_affine *f, const lilac_sum *factor) {
    for (uint32_t d = 0; d < f->rank; d++) {
        if (lilac_product_is_zero(&f->step[d])) {
            continue;
        }
        if (factor->count != 1 ||
            !lilac_product_multiply(&f->step[d], &f->step[d], &factor->terms[0])) {
            return false;
        }
    }
    return lilac_sum_multiply(&f->uniform, factor);
}

static void widen(lilac_sum *sum) {
    for (uint32_t i = 0; i < sum->count; i++) {
        sum->terms[i].wide = true;
    }
}

static bool find_binary(search *s, lilac_affine *f, lilac_tile_op *op, uint32_t depth) {
    lilac_affine b;
    if (!find(s, f, op->operands[0].value, depth) || !find(s, &b, op->operands[1].value, depth)) {
        return false;
    }
    switch (op->code) {
    case LILAC_TILE_OP_TT_ADDPTR:
    case LILAC_TILE_OP_ARITH_ADDI:
        return add(f, &b, 1);
    case LILAC_TILE_OP_ARITH_SUBI:
        return add(f, &b, -1);
    default: { /* a product */
        lilac_affine *varying = lilac_affine_is_uniform(&b) ? f : &b;
        const lilac_sum factor = lilac_affine_is_uniform(&b) ? b.uniform : f->uniform;
        if (!lilac_affine_is_uniform(&b) && !lilac_affine_is_uniform(f)) {
            return false;
        }
        const bool good = scale(varying, &factor);
        *f = *varying;
        if (lilac_tile_element_bits(op->results[0].type) > 32) {
            widen(&f->uniform);
        }
        return good;
    }
    }
}

/* The only dimension along which the form has steps, if they are 1; the rank: there is none. */
static uint32_t counting_dimension(const lilac_affine *f) {
    uint32_t found = f->rank;
    for (uint32_t d = 0; d < f->rank; d++) {
        if (lilac_product_is_zero(&f->step[d])) {
            continue;
        }
        if (found != f->rank || f->step[d].factor != 1 || f->step[d].count != 0) {
            return f->rank;
        }
        found = d;
    }
    return found;
}

/* Is x in front of a remainder known to be above −bound, if its parts that programs compute are not
 * negative (strided_tile.c)? */
static bool has_natural_numbers(const lilac_sum *sum) {
    bool natural = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        natural = natural && sum->terms[i].factor > 0;
    }
    return natural;
}

/* The numbers of f are right where they are below the bound. */
static bool limit(search *s, lilac_affine *f, const lilac_sum *bound, const lilac_tile_type *type) {
    const uint32_t d = counting_dimension(f);
    if (d == f->rank || f->below[d] != NULL) {
        return false;
    }
    lilac_sum *below = lilac_arena_new(s->arena, lilac_sum);
    *below = *bound;
    f->below[d] = below;
    f->wide_limits |= lilac_tile_element_bits(type) > 32;
    return lilac_sum_subtract(below, &f->uniform);
}

static bool find_limited(search *s, lilac_affine *f, lilac_tile_op *op, uint32_t depth) {
    lilac_affine bound;
    if (!find(s, f, op->operands[0].value, depth) ||
        !find(s, &bound, op->operands[1].value, depth) || !lilac_affine_is_uniform(&bound)) {
        return false;
    }
    if (op->code == LILAC_TILE_OP_ARITH_MINSI) { /* min(x, b): right up to b */
        return lilac_sum_add_number(&bound.uniform, 1) &&
               limit(s, f, &bound.uniform, op->results[0].type);
    }
    return has_natural_numbers(&f->uniform) && limit(s, f, &bound.uniform, op->results[0].type);
}

/* select(x < bound, x, other) */
static bool find_select(search *s, lilac_affine *f, lilac_tile_op *op, uint32_t depth) {
    const lilac_tile_op *compare = op->operands[0].value->op;
    lilac_affine bound;
    const char *predicate = compare != NULL && compare->code == LILAC_TILE_OP_ARITH_CMPI
                                ? lilac_tile_find_text(&compare->attributes, "predicate")
                                : NULL;
    return predicate != NULL && strcmp(predicate, "slt") == 0 &&
           compare->operands[0].value == op->operands[1].value &&
           find(s, f, op->operands[1].value, depth) &&
           find(s, &bound, compare->operands[1].value, depth) && lilac_affine_is_uniform(&bound) &&
           limit(s, f, &bound.uniform, op->results[0].type);
}

/* ---- shapes ------------------------------------------------------------------------------ */

static bool find_shape(search *s, lilac_affine *f, lilac_tile_op *op, uint32_t depth) {
    const lilac_tile_type *type = op->results[0].type;
    if (!find(s, f, op->operands[0].value, depth)) {
        return false;
    }
    if (op->code == LILAC_TILE_OP_TT_SPLAT) {
        f->rank = type->rank;
    } else if (op->code == LILAC_TILE_OP_TT_EXPAND_DIMS) {
        const uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
        for (uint32_t d = f->rank; d > axis; d--) {
            f->step[d] = f->step[d - 1];
            f->below[d] = f->below[d - 1];
        }
        f->step[axis] = lilac_product_number(0);
        f->below[axis] = NULL;
        f->rank++;
    } else if (op->code == LILAC_TILE_OP_TT_TRANS) {
        const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
        const lilac_affine old = *f;
        for (uint32_t d = 0; order != NULL && d < f->rank; d++) {
            f->step[d] = old.step[order->integers[d]];
            f->below[d] = old.below[order->integers[d]];
        }
        return order != NULL;
    }
    return true; /* of a broadcast, indices along the new dimensions have no step */
}

/* The start of a range is uniform. A range of one element has no step: it may be broadcast. */
static void set_range(lilac_affine *f, const lilac_tile_op *op) {
    f->rank = 1;
    f->step[0] = lilac_product_number(op->results[0].type->shape[0] > 1);
    (void)lilac_sum_add_number(&f->uniform, lilac_tile_find_integer(&op->attributes, "start", 0));
}

/* ---- what loops carry -------------------------------------------------------------------- */

/* What an iteration adds to the carried value: `next` = `value` + result. */
static bool find_advance(search *s, lilac_affine *f, const lilac_tile_value *value,
                         lilac_tile_value *next, uint32_t depth) {
    *f = (lilac_affine){.rank = value->type->rank};
    for (uint32_t steps = 0; next != value; steps++) {
        const lilac_tile_op *op = next->op;
        lilac_affine step;
        if (op == NULL || steps == MOST_STEPS ||
            (op->code != LILAC_TILE_OP_TT_ADDPTR && op->code != LILAC_TILE_OP_ARITH_ADDI) ||
            !find(s, &step, op->operands[1].value, depth) || !lilac_affine_is_uniform(&step) ||
            !add(f, &step, 1)) {
            return false;
        }
        next = op->operands[0].value;
    }
    return true;
}

/* (counter − lower bound) / step, times the advance of an iteration. */
static bool add_iterations(search *s, lilac_affine *f, lilac_sum *advance,
                           const lilac_tile_op *loop, uint32_t depth) {
    lilac_tile_value *counter = lilac_tile_induction_variable(loop);
    lilac_affine lower;
    int64_t step;
    if (!lilac_tile_constant(lilac_tile_step(loop), &step) || step < 1 ||
        !find(s, &lower, lilac_tile_lower_bound(loop), depth)) {
        return false;
    }
    lilac_sum passed = {.count = 1, .terms = {{.factor = 1, .count = 1, .values = {counter}}}};
    for (uint32_t i = 0; i < advance->count; i++) {
        if (advance->terms[i].factor % step != 0) {
            return false;
        }
        advance->terms[i].factor /= step;
    }
    if (!lilac_sum_subtract(&passed, &lower.uniform) || !lilac_sum_multiply(&passed, advance)) {
        return false;
    }
    widen(&passed);
    return lilac_sum_add(&f->uniform, &passed);
}

static bool find_carried(search *s, lilac_affine *f, const lilac_tile_value *value,
                         uint32_t depth) {
    lilac_tile_op *loop = value->block->parent->parent;
    lilac_affine advance;
    if (loop == NULL || loop->code != LILAC_TILE_OP_SCF_FOR || value->index == 0) {
        return false;
    }
    const uint32_t i = value->index - 1;
    return find(s, f, lilac_tile_init(loop, i), depth) &&
           find_advance(s, &advance, value, lilac_tile_next(loop, i), depth) &&
           lilac_sum_is_invariant(&advance.uniform, loop) &&
           (advance.uniform.count == 0 || add_iterations(s, f, &advance.uniform, loop, depth));
}

/* ---- values ------------------------------------------------------------------------------ */

static bool is_integer(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    return element->kind == LILAC_TILE_SCALAR && !lilac_scalar_is_float(element->scalar);
}

static bool find_op(search *s, lilac_affine *f, lilac_tile_op *op, uint32_t depth) {
    switch (op->code) {
    case LILAC_TILE_OP_TT_ADDPTR:
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_SUBI:
    case LILAC_TILE_OP_ARITH_MULI:
        return find_binary(s, f, op, depth);
    case LILAC_TILE_OP_ARITH_REMSI:
    case LILAC_TILE_OP_ARITH_MINSI:
        return lilac_tile_is_tensor(op->results[0].type) && find_limited(s, f, op, depth);
    case LILAC_TILE_OP_ARITH_SELECT:
        return lilac_tile_is_tensor(op->results[0].type) && find_select(s, f, op, depth);
    case LILAC_TILE_OP_ARITH_EXTSI: /* of an i1: 0 or −1 */
        return lilac_tile_element_bits(op->operands[0].value->type) > 1 &&
               find(s, f, op->operands[0].value, depth);
    case LILAC_TILE_OP_TT_SPLAT:
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
    case LILAC_TILE_OP_TT_BROADCAST:
    case LILAC_TILE_OP_TT_TRANS:
        return find_shape(s, f, op, depth);
    case LILAC_TILE_OP_TT_MAKE_RANGE:
        set_range(f, op);
        return true;
    default:
        return false;
    }
}

/* A scalar that is a factor. */
static bool set_factor(lilac_affine *f, lilac_tile_value *value) {
    const lilac_product p = {.factor = 1, .count = 1, .values = {value}};
    *f = (lilac_affine){0};
    return lilac_sum_add_product(&f->uniform, &p);
}

static bool find(search *s, lilac_affine *f, lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_type *type = value->type;
    int64_t constant;
    *f = (lilac_affine){0};
    if (type->rank > AFFINE_MOST_RANK || depth == 0 || s->budget == 0) {
        return false;
    }
    s->budget--;
    if (lilac_tile_constant(value, &constant)) {
        f->rank = type->rank;
        return is_integer(type) && lilac_sum_add_number(&f->uniform, constant);
    }
    if (value->op != NULL ? find_op(s, f, value->op, depth - 1)
                          : find_carried(s, f, value, depth - 1)) {
        return true;
    }
    if (type->kind == LILAC_TILE_POINTER && lilac_is_parameter(value)) {
        *f = (lilac_affine){.base = value};
        return true;
    }
    return type->kind == LILAC_TILE_SCALAR && is_integer(type) && set_factor(f, value);
}

bool lilac_affine_of(lilac_affine *result, const lilac_tile_value *value, lilac_arena *arena) {
    search s = {.arena = arena, .budget = BUDGET};
    return find(&s, result, (lilac_tile_value *)value, MOST_DEPTH);
}
