/* test_early: whether the copies of the next iteration have arrived is asked while this one's work goes on.
 *
 *     loop … (%slot, %parity) {              loop … (%slot, %parity, %missing = true) {
 *       mbarrier.wait [%slot], (%parity)       mbarrier.wait [%slot], %missing, (%parity)
 *       wgmma …                                wgmma …
 *       wgmma.commit                    →      wgmma.commit
 *       … work …                               %done = mbarrier.test [%slot'], (%parity')
 *       wgmma.wait {0}                         … work …
 *       yield %slot', %parity'                 wgmma.wait {0}
 *     }                                        yield %slot', %parity', not %done
 *                                            }
 *
 * A test of an mbarrier takes about 45 clocks, and a wait that passes at once is one. Where no product is in
 * flight, nothing of the warp hides them. The test of the next iteration's phase, behind the last product
 * that this iteration starts, takes their time from the work behind it; where its answer is yes, the next
 * iteration does not ask again. Where it is no, the wait is as before.
 *
 * Which loops: those of warp programs, to which another warp's copies come in time, with one wait in front of
 * all products, where the products of the iteration before are complete, and whose next address and parity
 * can be computed behind the last product. Behind a product in flight the wait costs nothing. Where the
 * warps of the loop start the copies themselves, the answer is often no (bench/results/decisions.md, and with a warp
 * that copies bench/results/h200_early_tests.json). */
#include "internal.h"

typedef lilac_simt_instruction instruction;

enum { MOST_OPERATIONS = 32, MOST_OPERANDS = 3 };

typedef struct testing {
    lilac_simt_kernel *kernel;
    instruction *loop, *wait;
    instruction *place; /* behind the last product of the body */
    bool makes;         /* operations, or it is only tried whether they can be made */
    uint32_t left;      /* operations that may still be computed anew */
    bool changed;
} testing;

static bool has_predicate(const lilac_simt_kernel *kernel, const instruction *wait) {
    return lilac_simt_type_of(kernel, wait->operands[1]) == LILAC_SIMT_I1;
}

static bool holds_wait(const lilac_simt_body *body) {
    bool holds = false;
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        holds = holds || i->code == LILAC_SIMT_OP_MBARRIER_WAIT;
        for (uint32_t k = 0; k < i->body_count; k++) {
            holds = holds || holds_wait(i->bodies[k]);
        }
    }
    return holds;
}

/* The wait in front of the products, and the place behind them. False: there is another one, or products
 * are in flight at the wait. */
static bool find_places(testing *t) {
    bool in_flight = true, at_wait = true, known = false;
    t->wait = t->place = NULL;
    for (instruction *i = t->loop->bodies[0]->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            if (holds_wait(i->bodies[k])) {
                return false;
            }
        }
        if (i->code == LILAC_SIMT_OP_MBARRIER_WAIT) {
            if (t->wait != NULL || t->place != NULL || has_predicate(t->kernel, i)) {
                return false;
            }
            t->wait = i;
            at_wait = in_flight;
        } else if (i->code == LILAC_SIMT_OP_WGMMA_COMMIT) {
            t->place = i->next;
            in_flight = true;
        } else if (i->code == LILAC_SIMT_OP_WGMMA_WAIT && i->payload.wgmma_wait.groups == 0) {
            in_flight = false;
            known = known || t->wait == NULL;
        }
    }
    /* What is in flight at the end of an iteration is at the beginning of the next one. */
    return t->wait != NULL && t->place != NULL && !(known ? at_wait : in_flight);
}

/* ---- the next iteration's values --------------------------------------------------------------- */

static bool precedes(const instruction *definition, const instruction *place) {
    const instruction *i = place->previous;
    while (i != NULL && i != definition) {
        i = i->previous;
    }
    return i != NULL;
}

static lilac_simt_value value_at(testing *t, lilac_simt_value value, bool ahead);

/* The operation anew, with the values of the other time as operands. */
static lilac_simt_value compute_anew(testing *t, const instruction *definition, bool ahead) {
    lilac_simt_value operands[MOST_OPERANDS];
    if (t->left == 0 || definition->parent != t->loop->bodies[0] || definition->result_count != 1 ||
        definition->body_count > 0 || definition->operand_count > MOST_OPERANDS ||
        !lilac_simt_has_trait(definition->code, LILAC_SIMT_PURE)) {
        return 0;
    }
    t->left--;
    for (uint32_t k = 0; k < definition->operand_count; k++) {
        operands[k] = value_at(t, definition->operands[k], ahead);
        if (operands[k] == 0) {
            return 0;
        }
    }
    if (!t->makes) {
        return definition->result;
    }
    const lilac_simt_type type = lilac_simt_type_of(t->kernel, definition->result);
    instruction *made =
        lilac_simt_new_instruction(t->kernel, definition, definition->operand_count, operands);
    lilac_simt_link(t->loop->bodies[0], t->place, made);
    lilac_simt_give_results(t->kernel, made, 1, &type);
    return made->result;
}

/* The value of this iteration at the place or, with `ahead`, of the next one, computed anew from pure
 * operations where it has to be; 0: it cannot be computed. Makes operations only if t->makes. */
static lilac_simt_value value_at(testing *t, lilac_simt_value value, bool ahead) {
    const lilac_simt_body *body = t->loop->bodies[0];
    const instruction *definition = t->kernel->values[value].definition;
    if (!lilac_simt_is_inside(t->kernel, value, body)) {
        return value;
    }
    if (definition == NULL) { /* an argument: the counter, or a carried value */
        const uint32_t number = value - body->argument;
        if (value < body->argument || number >= body->argument_count) {
            return 0;
        }
        return !ahead        ? value
               : number == 0 ? 0
                             : value_at(t, body->last->operands[number - 1], false);
    }
    if (!ahead && definition->parent == body && precedes(definition, t->place)) {
        return value;
    }
    return compute_anew(t, definition, ahead);
}

/* ---- rewriting --------------------------------------------------------------------------------- */

static lilac_simt_value insert(const testing *t, lilac_simt_body *body, instruction *place,
                               instruction *like, uint32_t count,
                               const lilac_simt_value *operands) {
    const lilac_simt_type type = LILAC_SIMT_I1;
    instruction *made = lilac_simt_new_instruction(t->kernel, like, count, operands);
    made->location = t->wait->location;
    lilac_simt_link(body, place, made);
    lilac_simt_give_results(t->kernel, made, 1, &type);
    return made->result;
}

static void rewrite(testing *t, const lilac_simt_value test_operands[2]) {
    lilac_simt_kernel *kernel = t->kernel;
    lilac_simt_body *body = t->loop->bodies[0];
    instruction test = *t->wait, truth = {.code = LILAC_SIMT_OP_CONST, .immediate = 1};
    instruction negation = {.code = LILAC_SIMT_OP_XOR};
    test.code = LILAC_SIMT_OP_MBARRIER_TEST;
    const lilac_simt_value yes = insert(t, kernel->body, kernel->body->first, &truth, 0, NULL);
    const lilac_simt_value done = insert(t, body, t->place, &test, 2, test_operands);
    const lilac_simt_value operands[2] = {done, yes};
    const lilac_simt_value missing = insert(t, body, body->last, &negation, 2, operands);
    const lilac_simt_value argument = lilac_simt_add_carried(kernel, t->loop, 1, &yes);
    lilac_simt_add_operands(kernel, body->last, 1, &missing);
    const lilac_simt_value parity = t->wait->operands[1];
    t->wait->operand_count = 1;
    lilac_simt_add_operands(kernel, t->wait, 2, (const lilac_simt_value[]){argument, parity});
    t->changed = true;
}

/* The address and the parity of the next iteration's wait. */
static bool next_operands(testing *t, lilac_simt_value operands[2], bool makes) {
    bool known = true;
    t->makes = makes;
    t->left = MOST_OPERATIONS;
    for (uint32_t k = 0; known && k < 2; k++) {
        operands[k] = value_at(t, t->wait->operands[k], true);
        known = operands[k] != 0;
    }
    return known;
}

/* `program`: is the body of one of several warp programs? */
static void visit(testing *t, lilac_simt_body *body, bool program) {
    for (instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            visit(t, i->bodies[k], program || i->code == LILAC_SIMT_OP_PROGRAMS);
        }
        t->loop = i;
        if (!program || i->code != LILAC_SIMT_OP_LOOP || !find_places(t)) {
            continue;
        }
        lilac_simt_value operands[2];
        if (next_operands(t, operands, false) && next_operands(t, operands, true)) {
            rewrite(t, operands);
        }
    }
}

bool lilac_simt_opt_test_early(lilac_simt_kernel *kernel) {
    testing t = {.kernel = kernel};
    visit(&t, kernel->body, false);
    if (t.changed) {
        lilac_simt_infer_uniform(kernel);
    }
    return t.changed;
}
