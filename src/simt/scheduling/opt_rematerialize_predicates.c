/* Predicates that guard loads and then stores are computed again for the stores.
 *
 *     %p0 = cmp lt %a0, %n … %p15 = cmp …      %p0 = cmp lt %a0, %n … %p15 = cmp …
 *     ld.global %p0 … ld.global %p15           ld.global %p0 … ld.global %p15
 *     … work on all of it …             →      … work on all of it …
 *     st.global %p0 … st.global %p15           %m = opaque %n
 *                                              %q0 = cmp lt %a0, %m    st.global %q0
 *                                              …    %q15 = cmp …       st.global %q15
 *
 * A thread has seven predicate registers. If the stores use the predicates of many loads, ptxas
 * issues a few loads, waits for memory, works on them and stores before it issues the next few: the
 * thread waits several times. A comparison is one or two instructions, a wait is hundreds of clocks.
 * ptxas must not find that the comparisons are equal, so one operand is an opaque copy.
 *
 * Up to MOST predicates stay as they are: so few cost ptxas little, and more comparisons would. */
#include "internal.h"

#include <string.h>

enum { MOST = 8 };

enum { GUARDS_LOAD = 1, GUARDS_BOTH };

/* The opaque copy of a value, and the body that has it. */
typedef struct opaque_copy {
    lilac_simt_value value;
    const lilac_simt_body *body;
} opaque_copy;

typedef struct predicates {
    lilac_simt_kernel *kernel;
    uint8_t *guards;     /* of values: which accesses of the body they guard */
    opaque_copy *copies; /* of values */
    bool changed;
} predicates;

typedef lilac_simt_instruction instruction;

/* A comparison of integers by order or equality, in this body? */
static bool is_compared(const predicates *p, const lilac_simt_body *body, lilac_simt_value value) {
    const instruction *d = p->kernel->values[value].definition;
    if (d == NULL || d->code != LILAC_SIMT_OP_CMP || d->parent != body) {
        return false;
    }
    lilac_simt_type type = lilac_simt_type_of(p->kernel, d->operands[0]);
    return type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64;
}

/* Such a comparison, or the conjunction of one and something else? */
static bool is_rematerializable(const predicates *p, const lilac_simt_body *body,
                                lilac_simt_value value) {
    const instruction *d = p->kernel->values[value].definition;
    return is_compared(p, body, value) ||
           (d != NULL && d->code == LILAC_SIMT_OP_AND && d->parent == body &&
            (is_compared(p, body, d->operands[0]) || is_compared(p, body, d->operands[1])));
}

static bool is_guarded(const predicates *p, const instruction *i, lilac_simt_opcode code) {
    return i->code == code && i->operand_count > 1 &&
           lilac_simt_type_of(p->kernel, i->operands[1]) == LILAC_SIMT_I1;
}

/* Marks the predicates of a body that guard a load and a later store; returns their number. */
static uint32_t mark_predicates(predicates *p, const lilac_simt_body *body) {
    uint32_t both = 0;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        if (is_guarded(p, i, LILAC_SIMT_OP_LD_GLOBAL)) {
            uint8_t *guards = &p->guards[i->operands[1]];
            *guards = *guards == 0 ? GUARDS_LOAD : *guards;
        } else if (is_guarded(p, i, LILAC_SIMT_OP_ST_GLOBAL) &&
                   p->guards[i->operands[1]] == GUARDS_LOAD &&
                   is_rematerializable(p, body, i->operands[1])) {
            p->guards[i->operands[1]] = GUARDS_BOTH;
            both++;
        }
    }
    return both;
}

/* A copy of `like` with these operands and one result, in front of the store. */
static lilac_simt_value insert(predicates *p, instruction *store, const instruction *like,
                               uint32_t count, const lilac_simt_value *operands) {
    const lilac_simt_type type = lilac_simt_type_of(
        p->kernel, like->code == LILAC_SIMT_OP_OPAQUE ? operands[0] : like->result);
    instruction *made = lilac_simt_new_instruction(p->kernel, like, count, operands);
    made->location = store->location;
    lilac_simt_link(store->parent, store, made);
    lilac_simt_give_results(p->kernel, made, 1, &type);
    return made->result;
}

static lilac_simt_value opaque_of(predicates *p, instruction *store, lilac_simt_value value) {
    opaque_copy *copy = &p->copies[value];
    if (copy->body != store->parent) {
        const instruction like = {.code = LILAC_SIMT_OP_OPAQUE};
        copy->body = store->parent;
        copy->value = insert(p, store, &like, 1, &value);
    }
    return copy->value;
}

static lilac_simt_value compare_again(predicates *p, instruction *store, lilac_simt_value value) {
    const instruction *cmp = p->kernel->values[value].definition;
    lilac_simt_value operands[2] = {cmp->operands[0], cmp->operands[1]};
    uint64_t bits;
    const uint32_t side = lilac_simt_constant_bits(p->kernel, operands[1], &bits) ? 0 : 1;
    operands[side] = opaque_of(p, store, operands[side]);
    return insert(p, store, cmp, 2, operands);
}

static void rematerialize(predicates *p, instruction *store) {
    const instruction *d = p->kernel->values[store->operands[1]].definition;
    if (d->code == LILAC_SIMT_OP_CMP) {
        store->operands[1] = compare_again(p, store, store->operands[1]);
    } else {
        lilac_simt_value operands[2];
        for (uint32_t k = 0; k < 2; k++) {
            operands[k] = is_compared(p, store->parent, d->operands[k])
                              ? compare_again(p, store, d->operands[k])
                              : d->operands[k];
        }
        store->operands[1] = insert(p, store, d, 2, operands);
    }
    p->changed = true;
}

static void visit(predicates *p, lilac_simt_body *body) {
    const bool many = mark_predicates(p, body) > MOST;
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(p, i->bodies[k]);
        }
        if (is_guarded(p, i, LILAC_SIMT_OP_ST_GLOBAL) && many &&
            p->kernel->values[i->operands[1]].body == body &&
            p->guards[i->operands[1]] == GUARDS_BOTH) {
            rematerialize(p, i);
        }
    }
}

bool lilac_simt_opt_rematerialize_predicates(lilac_simt_kernel *kernel) {
    const size_t count = kernel->value_count;
    predicates p = {.kernel = kernel,
                    .guards = lilac_heap_grow(NULL, count),
                    .copies = lilac_heap_grow(NULL, sizeof *p.copies * count)};
    memset(p.guards, 0, count);
    memset(p.copies, 0, sizeof *p.copies * count);
    visit(&p, kernel->body);
    lilac_heap_free(p.guards);
    lilac_heap_free(p.copies);
    if (p.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return p.changed;
}
