/* Selects behind operations: one select for both operands.
 *
 *     %x = select %m, %a, 0 : f32
 *     %y = select %m, %b, 0 : f32        →        %s = fadd %a, %b : f32
 *     %z = fadd %x, %y : f32                      %z = select %m, %s, 0 : f32
 *
 * The elements of a thread that a reduction sums often have one mask. A tree of n sums then needs one
 * select instead of n + 1, and products that only a select separated from the sum can be contracted.
 * The constants are folded exactly, so the result has the same bits. */
#include "simplify.h"

#include <string.h>

/* The select that operand `side` is, if nothing else needs it. */
static instruction *own_select(const lilac_simt_kernel *kernel, const instruction *i, uint32_t side,
                               const uint32_t *uses) {
    instruction *d = kernel->values[i->operands[side]].definition;
    bool fits = d != NULL && d->code == LILAC_SIMT_OP_SELECT && d->parent == i->parent &&
                uses[d->result] == 1;
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

static bool is_candidate(const lilac_simt_kernel *kernel, const instruction *i) {
    if (i->operand_count != 2 || i->result_count != 1 || i->body_count > 0 ||
        !lilac_simt_has_trait(i->code, LILAC_SIMT_PURE) ||
        lilac_simt_has_trait(i->code, LILAC_SIMT_CONVERGENT | LILAC_SIMT_DIVIDES)) {
        return false;
    }
    lilac_simt_type type = lilac_simt_type_of(kernel, i->result);
    return lilac_simt_type_of(kernel, i->operands[0]) == type &&
           lilac_simt_type_of(kernel, i->operands[1]) == type;
}

static void rewrite_as_select(lilac_simt_builder *b, instruction *i, instruction *const *selects,
                              uint32_t arm, uint64_t folded) {
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
}

static bool sink_in_body(lilac_simt_builder *b, lilac_simt_body *body, const uint32_t *uses) {
    bool changed = false;
    uint32_t mark = b->memo != NULL ? lilac_simt_memo_open(b->memo) : 0;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            changed |= sink_in_body(b, i->bodies[k], uses);
        }
        if (!is_candidate(b->kernel, i)) {
            continue;
        }
        instruction *selects[2] = {own_select(b->kernel, i, 0, uses),
                                   own_select(b->kernel, i, 1, uses)};
        if (selects[0] == NULL || selects[1] == NULL ||
            selects[0]->operands[0] != selects[1]->operands[0]) {
            continue;
        }
        for (uint32_t arm = 1; arm < 3; arm++) {
            uint64_t folded;
            if (fold_arms(b->kernel, i, selects, arm, &folded)) {
                rewrite_as_select(b, i, selects, arm, folded);
                changed = true;
                break;
            }
        }
    }
    if (b->memo != NULL) {
        lilac_simt_memo_close(b->memo, mark);
    }
    return changed;
}

bool lilac_simt_opt_sink_selects(lilac_simt_kernel *kernel) {
    size_t size = sizeof(uint32_t) * kernel->value_count;
    uint32_t *uses = lilac_heap_grow(NULL, size);
    memset(uses, 0, size);
    lilac_simt_count_uses(kernel->body, uses);
    lilac_simt_builder b = {.kernel = kernel};
    bool changed = sink_in_body(&b, kernel->body, uses);
    lilac_simt_builder_clear(&b);
    lilac_heap_free(uses);
    return changed;
}
