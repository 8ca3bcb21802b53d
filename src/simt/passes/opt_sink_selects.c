/* Selects behind operations: one select for both operands.
 *
 *     %x = select %m, %a, 0 : f32
 *     %y = select %m, %b, 0 : f32        →        %s = fadd %a, %b : f32
 *     %z = fadd %x, %y : f32                      %z = select %m, %s, 0 : f32
 *
 * The elements of a thread that a reduction sums often have one mask. A tree of n sums then needs one
 * select instead of n + 1, and products that only a select separated from the sum can be contracted.
 * The constants are folded exactly, so the result has the same bits.
 *
 *     %x = select %m, %a, %0 : f32
 *     %s = fadd %x, %b : f32             →        %s = fadd %a, %b : f32
 *     %y = select %m, %s, %x : f32                %y = select %m, %s, %0 : f32
 *
 * What only one arm of a select uses is computed as if its condition had the value that chooses the
 * arm. Accumulations under a mask that does not change, in unrolled loops, then need one select. */
#include "fold/simplify.h"

#include <string.h>

enum { DEPTH = 4 }; /* operations between the two selects */

typedef struct sinking {
    lilac_simt_builder b;
    uint32_t *uses; /* of the values that the kernel had */
    uint32_t count;
    bool changed;
} sinking;

static uint32_t uses_of(const sinking *s, lilac_simt_value value) {
    return value < s->count ? s->uses[value] : 2; /* new values: not known */
}

/* Does the operation have one result, no effect, and no part in an exchange between lanes? Divisions do
 * not count: a divisor may be zero where the condition is false. */
static bool moves_freely(const instruction *i) {
    return i->result_count == 1 && i->body_count == 0 &&
           lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) &&
           !lilac_simt_has_trait(i->code, LILAC_SIMT_CONVERGENT | LILAC_SIMT_DIVIDES);
}

/* ---- two selects, one operation ------------------------------------------------------------- */

/* The select that operand `side` is, if nothing else needs it. */
static instruction *own_select(const sinking *s, const instruction *i, uint32_t side) {
    instruction *d = s->b.kernel->values[i->operands[side]].definition;
    bool fits = d != NULL && d->code == LILAC_SIMT_OP_SELECT && d->parent == i->parent &&
                uses_of(s, d->result) == 1;
    return fits ? d : NULL;
}

/* What the operation makes of the constant arms `arm` of both selects. False: they are not constant. */
static bool fold_arms(const lilac_simt_kernel *kernel, const instruction *i,
                      instruction *const *selects, uint32_t arm, uint64_t *result) {
    uint64_t bits[2];
    lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    const lilac_simt_type types[2] = {type, type};
    return lilac_simt_constant_bits(kernel, selects[0]->operands[arm], &bits[0]) &&
           lilac_simt_constant_bits(kernel, selects[1]->operands[arm], &bits[1]) &&
           lilac_simt_evaluate(i, types, bits, type, result);
}

static void rewrite_as_select(sinking *s, instruction *i, instruction *const *selects, uint32_t arm,
                              uint64_t folded) {
    lilac_simt_builder *b = &s->b;
    lilac_simt_kernel *kernel = b->kernel;
    lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    if (b->memo == NULL) { /* most kernels have no such selects */
        lilac_simt_builder_init(b, kernel);
    }
    b->body = i->parent;
    b->memo->before = i;
    b->location = i->location;
    lilac_simt_value operands[2] = {selects[0]->operands[3 - arm], selects[1]->operands[3 - arm]};
    instruction like = *i;
    like.operands = operands;
    lilac_simt_value *arms = lilac_arena_array(kernel->module->arena, lilac_simt_value, 3);
    arms[0] = selects[0]->operands[0];
    arms[3 - arm] = lilac_simt_emit(b, &like, type);
    arms[arm] = lilac_simt_constant(b, type, folded);
    i->code = LILAC_SIMT_OP_SELECT;
    i->operands = arms;
    i->operand_count = 3;
    i->flags = 0;
    i->detail = 0;
    lilac_simt_unlink(selects[0]);
    lilac_simt_unlink(selects[1]);
    s->changed = true;
}

static void sink(sinking *s, instruction *i) {
    const lilac_simt_kernel *kernel = s->b.kernel;
    lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    if (i->operand_count != 2 || !moves_freely(i) ||
        lilac_simt_type_of(kernel, i->operands[0]) != type ||
        lilac_simt_type_of(kernel, i->operands[1]) != type) {
        return;
    }
    instruction *selects[2] = {own_select(s, i, 0), own_select(s, i, 1)};
    if (selects[0] == NULL || selects[1] == NULL ||
        selects[0]->operands[0] != selects[1]->operands[0]) {
        return;
    }
    for (uint32_t arm = 1; arm < 3; arm++) {
        uint64_t folded;
        if (fold_arms(kernel, i, selects, arm, &folded)) {
            rewrite_as_select(s, i, selects, arm, folded);
            return;
        }
    }
}

/* ---- selects within the arms of a select ------------------------------------------------------ */

/* In an arm of `select`, a select of the same condition is its own arm: the condition is `holds` there.
 * Replaces such an operand, and those of operations that nothing else uses. */
static void simplify_operand(sinking *s, const instruction *select, bool holds,
                             lilac_simt_value *operand, uint32_t depth) {
    instruction *d = s->b.kernel->values[*operand].definition;
    if (d == NULL) {
        return;
    }
    if (d->code == LILAC_SIMT_OP_SELECT && d->operands[0] == select->operands[0]) {
        lilac_simt_value chosen = d->operands[holds ? 1 : 2];
        if (*operand < s->count) {
            s->uses[*operand]--;
        }
        if (chosen < s->count) {
            s->uses[chosen]++;
        }
        *operand = chosen;
        s->changed = true;
        return;
    }
    bool own = depth > 0 && uses_of(s, *operand) == 1 && d->parent == select->parent;
    for (uint32_t k = 0; own && moves_freely(d) && k < d->operand_count; k++) {
        simplify_operand(s, select, holds, &d->operands[k], depth - 1);
    }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void sink_in_body(sinking *s, lilac_simt_body *body) {
    uint32_t mark = s->b.memo != NULL ? lilac_simt_memo_open(s->b.memo) : 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            sink_in_body(s, i->bodies[k]);
        }
        if (i->code == LILAC_SIMT_OP_SELECT) {
            simplify_operand(s, i, true, &i->operands[1], DEPTH);
            simplify_operand(s, i, false, &i->operands[2], DEPTH);
        } else {
            sink(s, i);
        }
    }
    if (s->b.memo != NULL) {
        lilac_simt_memo_close(s->b.memo, mark);
    }
}

bool lilac_simt_opt_sink_selects(lilac_simt_kernel *kernel) {
    sinking s = {.b = {.kernel = kernel}, .count = kernel->value_count};
    size_t size = sizeof(uint32_t) * s.count;
    s.uses = lilac_heap_grow(NULL, size);
    memset(s.uses, 0, size);
    lilac_simt_count_uses(kernel->body, s.uses);
    sink_in_body(&s, kernel->body);
    lilac_simt_builder_clear(&s.b);
    lilac_heap_free(s.uses);
    return s.changed;
}
