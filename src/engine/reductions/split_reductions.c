/* split_reductions: a loop that accumulates reductions exchanges values between threads once, after it.
 *
 *     %r = scf.for … iter_args(%acc = %x) {          %p = scf.for … iter_args(%part = neutral) {
 *       %s = "tt.reduce"(%v) {axis = 1, add}           %t = "tt.reshape"(%v)   registers of the axis
 *       %n = arith.addf %acc, %s                  →    %u = "tt.reduce"(%t)    become a dimension
 *       scf.yield %n                                   %n = arith.addf %part, %u
 *     }                                                scf.yield %n
 *                                                    }
 *                                                    %s = "tt.reduce"(%p) {axis = 1, add}
 *                                                    %r = arith.addf %x, %s
 *
 * Let ⊕ be the operation of the reduction. The axis is T × R: bits of T are bits of lanes and warps,
 * bits of R are bits of registers. ⊕ is associative and commutative, so
 *
 *     x ⊕ (⊕_i ⊕_{t,r} v_i[t,r])  =  x ⊕ (⊕_t (⊕_i ⊕_r v_i[t,r]))
 *
 * The inner two sums need values of one thread only. Each thread has one accumulator for each element
 * of the result that its own elements contribute to. The accumulators start with the neutral element
 * of ⊕, so a loop without iterations gives x. Sums and products of floats are reassociated, as any
 * tt.reduce reassociates them. The other operations are exact: their results do not change.
 *
 * The conditions: ⊕ is also the operation that updates the accumulator; the result of the reduction
 * and the accumulator have no other use in the loop. Operations between the two that only rearrange
 * elements (shape operations, conversions, splats) commute with ⊕ and move behind the loop. Each bit of
 * the axis is one bit of one input of the layout, and no other bit changes the coordinate along it.
 *
 * The price decides. With n the estimated trip count, the loop is rewritten if
 *
 *     n · price(reduce R) + n · price(additional accumulators) + price(reduce T)
 *                                                               <  n · price(reduce T × R)
 *
 * An accumulator may be multiplied before a sum is added to it, as in the softmax of attention. The factor f
 * is the same for all elements of the sum, so each part is multiplied by it:
 *
 *     (…(x · f_1 + Σ_t s_1[t]) · f_2 + …)  =  Σ_t (…(x / |T| · f_1 + s_1[t]) · f_2 + …)
 *
 * |T| is a power of two, and x / |T| is exact unless it is subnormal. Products of sums are rounded for each
 * part, then, and not once.
 *
 * Loops are visited from the innermost to the outermost: what the inner loop accumulates is then a
 * reduction in the outer one. */
#include "emit.h"
#include "reductions/accumulations.h"
#include "reductions/combine_blocks.h"

#include <lilac/tile_loops.h>

enum { MOST_WORDS = 32 }; /* additional registers of a thread that hold accumulators */

typedef struct splitter {
    lilac_tile_module *module;
    const lilac_target *target;
    lilac_arena *arena;
    bool changed;
} splitter;

/* ---- the price -------------------------------------------------------------------------- */

static bool price_of(const splitter *s, const accumulation_candidate *c, const lilac_layout *source,
                     uint32_t axis, int64_t *price) {
    return lilac_price_of_reduction(price, s->arena, c->reduce, source, axis, s->target);
}

static int64_t registers_of(const lilac_tile_type *type) {
    const lilac_layout *layout = lilac_tile_is_tensor(type) ? type->layout : NULL;
    return layout != NULL ? INT64_C(1) << layout->in[0].bits : 1;
}

static bool gains(const splitter *s, const accumulation_candidate *c) {
    const lilac_tile_op *reduce = c->reduce;
    const lilac_arch *arch = s->target->arch;
    const int64_t iterations = lilac_assign_inner_weight(c->loop, 1);
    int64_t before, inside = 0, after, words = 0, elements = 0;
    if (!price_of(s, c, reduce->operands[0].value->type->layout, c->axis, &before) ||
        !price_of(s, c, &c->partial, c->axis, &after) ||
        (c->split.register_bits > 0 && !price_of(s, c, &c->view, c->axis + 1, &inside))) {
        return false;
    }
    for (uint32_t i = 0; i < reduce->operand_count; i++) {
        const lilac_tile_type *type = c->of[i].update->results[0].type;
        const int64_t more = (INT64_C(1) << c->partial.in[0].bits) - registers_of(type);
        elements += c->of[i].scale != NULL ? 2 * more : more;
        words += more * (lilac_tile_element_bits(type) > 32 ? 2 : 1);
    }
    inside += elements * arch->costs->issue * s->target->num_warps;
    return words <= MOST_WORDS && iterations * inside + after < iterations * before;
}

/* ---- the rewriting ---------------------------------------------------------------------- */

static const lilac_tile_type *tensor_of(const splitter *s, const lilac_tile_type *element,
                                        const lilac_layout *layout) {
    int64_t shape[LILAC_LAYOUT_MAX_DIMS];
    for (uint32_t d = 0; d < layout->out_count; d++) {
        shape[d] = INT64_C(1) << layout->out[d].bits;
    }
    return lilac_tile_tensor(s->module, element, layout->out_count, shape,
                             lilac_tile_intern_layout(s->module, layout));
}

static lilac_tile_value *unary(const splitter *s, lilac_tile_opcode code, lilac_tile_value *operand,
                               const lilac_layout *layout, lilac_tile_op *place) {
    const lilac_tile_type *type = tensor_of(s, lilac_tile_element(operand->type), layout);
    lilac_tile_op *made =
        lilac_tile_op_create(s->module, code, 1, &operand, 1, &type, 0, place->location);
    made->position = place->position;
    lilac_tile_insert_before(place, made);
    return &made->results[0];
}

/* A value without the axis, for each part of the accumulator: a scalar, or a tensor with the layout of a slice
 * of the accumulators. */
static lilac_tile_value *spread(const splitter *s, const accumulation_candidate *c,
                                lilac_tile_value *value, lilac_tile_op *place) {
    if (!lilac_tile_is_tensor(value->type)) {
        return unary(s, LILAC_TILE_OP_TT_SPLAT, value, &c->partial, place);
    }
    lilac_layout expanded;
    lilac_layout_expand(&expanded, value->type->layout, c->axis);
    value = unary(s, LILAC_TILE_OP_TT_EXPAND_DIMS, value, &expanded, place);
    lilac_engine_set_integer(s->module, value->op, "axis", c->axis);
    return unary(s, LILAC_TILE_OP_TT_BROADCAST, value, &c->partial, place);
}

static lilac_tile_value *multiplied(const splitter *s, lilac_tile_value *a, lilac_tile_value *b,
                                    lilac_tile_op *place) {
    const lilac_emitter e = {.module = s->module, .place = place};
    return lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_MULF, a, b);
}

/* The operand with its axis as T × R, before the reduction. */
static lilac_tile_value *make_view(const splitter *s, const accumulation_candidate *c,
                                   lilac_tile_value *operand) {
    const lilac_layout *layout = operand->type->layout;
    uint32_t bits[2 * LILAC_LAYOUT_MAX_BITS], order[2 * LILAC_LAYOUT_MAX_BITS];
    const uint32_t rank = lilac_accumulation_divided(c, layout, bits);
    lilac_layout divided;
    if (!lilac_layout_reshape(&divided, layout, rank, bits, NULL)) {
        return operand; /* find_layouts did the same */
    }
    operand = unary(s, LILAC_TILE_OP_TT_RESHAPE, operand, &divided, c->reduce);
    if (lilac_accumulation_order(c, rank, order)) {
        int64_t *integers = lilac_arena_array(s->module->arena, int64_t, rank);
        for (uint32_t d = 0; d < rank; d++) {
            integers[d] = order[d];
        }
        lilac_layout_transpose(&divided, &divided, order);
        operand = unary(s, LILAC_TILE_OP_TT_TRANS, operand, &divided, c->reduce);
        const lilac_tile_attribute attribute = {
            .kind = LILAC_TILE_ATTR_INTEGERS,
            .name = lilac_intern_string(s->module->context, "order"),
            .type = lilac_tile_scalar(s->module, LILAC_I32),
            .count = rank,
            .integers = integers};
        lilac_tile_set_attribute(s->module, &operand->op->attributes, &attribute);
    }
    return rank == c->view.out_count
               ? operand
               : unary(s, LILAC_TILE_OP_TT_RESHAPE, operand, &c->view, c->reduce);
}

/* A copy of the reduction with other operands, detached. Its results have the layout of the
 * accumulators; NULL: the types that they have. */
static lilac_tile_op *reduce_again(const splitter *s, const accumulation_candidate *c,
                                   lilac_tile_value **operands, uint32_t axis,
                                   const lilac_layout *layout) {
    lilac_tile_op *made = lilac_tile_clone(s->module, c->reduce);
    lilac_tile_attribute attribute = *lilac_tile_find(&made->attributes, "axis");
    attribute.integer = axis;
    lilac_tile_set_attribute(s->module, &made->attributes, &attribute);
    for (uint32_t i = 0; i < made->operand_count; i++) {
        lilac_tile_set_operand(made, i, operands[i]);
        if (layout != NULL) {
            made->results[i].type = tensor_of(s, lilac_tile_element(operands[i]->type), layout);
        }
    }
    return made;
}

/* The update of accumulator i by a value, detached. */
static lilac_tile_op *update_again(const splitter *s, const accumulation *of,
                                   lilac_tile_value *accumulator, lilac_tile_value *value) {
    lilac_tile_op *made = lilac_tile_clone(s->module, of->update);
    lilac_tile_set_operand(made, of->side, accumulator);
    lilac_tile_set_operand(made, 1 - of->side, value);
    made->results[0].type = value->type;
    return made;
}

/* In the loop: each thread adds its elements to its accumulators, the carried values from `first`. */
static void rewrite_body(const splitter *s, const accumulation_candidate *c, uint32_t first) {
    const uint32_t count = c->reduce->operand_count;
    lilac_tile_value *values[MOST_REDUCED];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = c->reduce->operands[i].value;
        if (c->split.register_bits > 0) {
            values[i] = make_view(s, c, values[i]);
        }
    }
    if (c->split.register_bits > 0) {
        lilac_tile_op *inner = reduce_again(s, c, values, c->axis + 1, &c->partial);
        lilac_tile_insert_before(c->reduce, inner);
        for (uint32_t i = 0; i < count; i++) {
            values[i] = &inner->results[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const accumulation *of = &c->of[i];
        lilac_tile_value *accumulator = lilac_tile_iteration_argument(c->loop, first + i);
        if (of->scale != NULL) {
            lilac_tile_value *factor = of->scale->operands[1 - of->scale_side].value;
            accumulator = multiplied(s, accumulator, spread(s, c, factor, of->update), of->update);
        }
        lilac_tile_op *update = update_again(s, of, accumulator, values[i]);
        lilac_tile_insert_before(of->update, update);
        lilac_tile_set_next(c->loop, first + i, &update->results[0]);
    }
}

/* Behind the loop: the accumulators are reduced, and the initial values are added that they do not hold. */
static void rewrite_results(const splitter *s, const accumulation_candidate *c, uint32_t first) {
    const uint32_t count = c->reduce->operand_count;
    lilac_tile_value *values[MOST_REDUCED];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = &c->loop->results[first + i];
    }
    lilac_tile_op *last = reduce_again(s, c, values, c->axis, NULL), *outer = last;
    lilac_tile_insert_after(c->loop, last);
    for (uint32_t i = 0; i < count; i++) {
        const accumulation *of = &c->of[i];
        lilac_tile_value *value = &outer->results[i];
        for (uint32_t k = 0; k < of->moved_count; k++) {
            lilac_tile_op *moved = lilac_tile_clone(s->module, of->moved[k]);
            lilac_tile_set_operand(moved, 0, value);
            lilac_tile_insert_after(last, moved);
            last = moved;
            value = &moved->results[0];
        }
        if (of->scale == NULL) {
            lilac_tile_op *update = update_again(s, of, lilac_tile_init(c->loop, of->slot), value);
            lilac_tile_insert_after(last, update);
            last = update;
            value = &update->results[0];
        }
        lilac_tile_replace_uses(&c->loop->results[of->slot], value);
    }
}

/* Removes the old accumulators and what updates them. */
static void remove_old(const splitter *s, const accumulation_candidate *c) {
    bool *removed = lilac_arena_array(s->arena, bool, lilac_tile_carried_count(c->loop));
    for (uint32_t i = 0; i < c->reduce->operand_count; i++) {
        const accumulation *of = &c->of[i];
        lilac_tile_set_next(c->loop, of->slot, lilac_tile_iteration_argument(c->loop, of->slot));
        lilac_tile_remove(of->update);
        if (of->scale != NULL) {
            lilac_tile_remove(of->scale);
        }
        for (uint32_t k = of->moved_count; k-- > 0;) {
            lilac_tile_remove(of->moved[k]);
        }
        removed[of->slot] = true;
    }
    lilac_tile_remove(c->reduce);
    const char *why = lilac_tile_remove_phis(s->module, c->loop, removed);
    (void)why; /* a carried value that is only passed on changes nothing */
}

/* What an accumulator begins with: the neutral element, or its share of the initial value. */
static lilac_tile_value *start_of(const splitter *s, const accumulation_candidate *c, uint32_t i) {
    const accumulation *of = &c->of[i];
    const lilac_tile_type *element = lilac_tile_element(c->reduce->operands[i].value->type);
    const lilac_tile_type *type = tensor_of(s, element, &c->partial);
    if (of->scale == NULL) {
        return lilac_engine_make_constant(s->module, c->loop, type, of->neutral)->results;
    }
    const double share = 1 / (double)(UINT64_C(1) << c->split.thread_bits);
    lilac_tile_value *factor =
        lilac_engine_make_constant(
            s->module, c->loop, type,
            (int64_t)lilac_scalar_encode(element->scalar, share, LILAC_ROUND_NEAREST_EVEN, false))
            ->results;
    return multiplied(s, spread(s, c, lilac_tile_init(c->loop, of->slot), c->loop), factor,
                      c->loop);
}

static void rewrite(splitter *s, const accumulation_candidate *c) {
    const uint32_t count = c->reduce->operand_count;
    const uint32_t first = lilac_tile_carried_count(c->loop);
    lilac_tile_value *inits[MOST_REDUCED];
    for (uint32_t i = 0; i < count; i++) {
        inits[i] = start_of(s, c, i);
    }
    lilac_tile_add_carried(s->module, c->loop, count, inits);
    rewrite_body(s, c, first);
    rewrite_results(s, c, first);
    remove_old(s, c);
    s->changed = true;
}

/* ---- the pass --------------------------------------------------------------------------- */

static void visit_loop(splitter *s, lilac_tile_op *loop) {
    lilac_tile_block *body = loop->regions[0]->first;
    for (lilac_tile_op *op = body->first, *next; op != NULL; op = next) {
        next = op->next;
        if (op->code != LILAC_TILE_OP_TT_REDUCE) {
            continue;
        }
        accumulation_candidate *c = lilac_arena_new(s->arena, accumulation_candidate);
        c->loop = loop;
        c->reduce = op;
        if (lilac_accumulation_find(c) && gains(s, c)) {
            rewrite(s, c);
            next = body->first; /* the rewriting removed operations */
        }
    }
}

static void walk(splitter *s, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                walk(s, op->regions[r]);
            }
            if (op->code == LILAC_TILE_OP_SCF_FOR && op->regions[0]->first != NULL) {
                visit_loop(s, op);
            }
        }
    }
}

bool lilac_engine_split_reductions(lilac_tile_module *module, const lilac_target *target,
                                   bool *changed) {
    splitter s = {.module = module, .target = target, .arena = lilac_arena_create()};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            walk(&s, function->body);
        }
    }
    for (lilac_tile_function *function = module->functions; s.changed && function != NULL;
         function = function->next) {
        if (function->body != NULL) {
            lilac_tile_number(function);
        }
    }
    lilac_arena_destroy(s.arena);
    *changed = s.changed;
    return true;
}
