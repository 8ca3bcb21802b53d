/* count_iterations: loops whose pointers are no multiples of their counter count iterations instead.
 *
 *     scf.for %k = 0 to %K step 64                      scf.for %n = 0 to ceil(%K / 64) step 1
 *         iter_args(%p = %b) {                              iter_args(%p = %b) {
 *       …                                          →      %k = %n · 64
 *       yield addptr(%p, 32)                              …
 *     }                                                   yield addptr(%p, 32)
 *
 * Where a byte holds two elements, the pointer is b + k / 2, which is no sum of products (sums.h), but
 * b + 32 · n is. */
#include "launch_maps/count_iterations.h"

#include "emit.h"
#include "facts/affine.h"
#include "products/dot_operands.h"

#include <lilac/tile_loops.h>

typedef struct counting {
    lilac_tile_module *module;
    lilac_arena *arena;
    bool changed;
} counting;

/* Has the value, the same for all elements, a term whose factor is no multiple of the number? */
static bool has_other_factor(const counting *c, const lilac_tile_value *value, int64_t number) {
    lilac_affine form;
    bool found = false;
    if (!lilac_affine_of(&form, value, c->arena) || !lilac_affine_is_uniform(&form)) {
        return false;
    }
    for (uint32_t i = 0; i < form.uniform.count; i++) {
        found = found || form.uniform.terms[i].factor % number != 0;
    }
    return found;
}

/* Does an iteration add a number that is no multiple of the step to a pointer? */
static bool has_other_advance(const counting *c, const lilac_tile_op *loop, int64_t step) {
    bool found = false;
    for (uint32_t i = 0; !found && i < lilac_tile_carried_count(loop); i++) {
        const lilac_tile_op *op = lilac_tile_next(loop, i)->op;
        found = op != NULL && op->code == LILAC_TILE_OP_TT_ADDPTR &&
                op->operands[0].value == lilac_tile_iteration_argument(loop, i) &&
                has_other_factor(c, op->operands[1].value, step);
    }
    return found;
}

static void count(lilac_tile_module *module, lilac_tile_op *loop) {
    const lilac_emitter before = {module, loop}, inside = {module, loop->regions[0]->first->first};
    lilac_tile_value *counter = lilac_tile_induction_variable(loop), *step = lilac_tile_step(loop);
    lilac_tile_set_upper_bound(loop, lilac_emit_binary(&before, LILAC_TILE_OP_ARITH_CEILDIVSI,
                                                       lilac_tile_upper_bound(loop), step));
    lilac_tile_set_step(loop, lilac_emit_integer(&before, counter->type, 1));
    if (counter->uses != NULL) {
        lilac_tile_value *old = lilac_emit_binary(&inside, LILAC_TILE_OP_ARITH_MULI, counter, step);
        lilac_tile_replace_uses(counter, old);
        lilac_tile_set_operand(old->op, 0, counter);
    }
}

static void look_at(void *data, lilac_tile_op *op) {
    counting *c = data;
    int64_t step;
    if (op->code == LILAC_TILE_OP_SCF_FOR &&
        lilac_tile_find(&op->attributes, "unsignedCmp") == NULL &&
        lilac_tile_is_zero(lilac_tile_lower_bound(op)) &&
        lilac_tile_constant(lilac_tile_step(op), &step) && step > 1 &&
        lilac_dot_is_inside(op->regions[0], NULL) && has_other_advance(c, op, step)) {
        count(c->module, op);
        c->changed = true;
    }
}

bool lilac_count_iterations(lilac_tile_module *module, const lilac_tile_function *function,
                            lilac_arena *arena) {
    counting c = {.module = module, .arena = arena};
    lilac_tile_walk(function->body, look_at, &c);
    return c.changed;
}
