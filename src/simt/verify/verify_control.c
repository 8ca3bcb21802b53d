/* Rules of control flow: loop, if, while, programs.
 *
 *     operation   bodies          values that agree in number and type
 *     loop        1               initial values, results, the body's arguments, yielded values
 *     if          2               results and the values that each body yields
 *     while       before, after   initial values, arguments of before, values that after yields;
 *                                 results, arguments of after, values that condition passes
 *     programs    1 or more       none
 *
 * Conditions and loop bounds are uniform. */
#include "verify/verify.h"

typedef lilac_simt_instruction instruction;

#define fail lilac_simt_verify_fail

/* Values that must agree: `count` given ones with the `needed` ones from `first` on. */
typedef struct agreement {
    const char *what; /* the given values, in the plural */
    uint32_t count;
    const lilac_simt_value *values;
    uint32_t needed;
    lilac_simt_value first;
} agreement;

static void check_agreement(verifier *v, const agreement *a) {
    if (a->count != a->needed) {
        fail(v, "simt-carried-type", "%u %s; %u are needed", a->count, a->what, a->needed);
        return;
    }
    for (uint32_t k = 0; k < a->count; k++) {
        if (type_of(v, a->values[k]) != type_of(v, a->first + k)) {
            fail(v, "simt-carried-type", "number %u of the %s is %s; %s is needed", k + 1, a->what,
                 type_name_of(v, a->values[k]), type_name_of(v, a->first + k));
        }
    }
}

/* Checks body number `index` and the operands of its terminator from number `skip` on, which agree
 * with the values in `like`. */
static void check_region(verifier *v, const instruction *owner, uint32_t index,
                         lilac_simt_opcode terminator, uint32_t skip, agreement like) {
    const lilac_simt_body *body = owner->bodies[index];
    lilac_simt_verify_body(v, body, terminator);
    const instruction *end = body->last;
    if (end != NULL && end->code == terminator && end->operand_count >= skip) {
        v->instruction = end;
        like.count = end->operand_count - skip;
        like.values = end->operands + skip;
        check_agreement(v, &like);
    }
    v->instruction = owner;
}

static bool has_bodies(verifier *v, const instruction *i, uint32_t count) {
    if (i->body_count != count || i->bodies == NULL) {
        fail(v, "simt-bodies", "%s has %u bodies; it needs %u", operation_name(i), i->body_count,
             count);
        return false;
    }
    return true;
}

void lilac_simt_verify_loop(verifier *v, const instruction *i) {
    if (!has_bodies(v, i, 1) || i->operand_count < 3) {
        return;
    }
    const lilac_simt_body *body = i->bodies[0];
    const lilac_simt_value *initial = i->operands + 3;
    uint32_t carried = i->operand_count - 3u;
    lilac_simt_type type = type_of(v, i->operands[0]);
    if (type != LILAC_SIMT_I32 && type != LILAC_SIMT_I64) {
        fail(v, "simt-operand-type", "the bounds of a loop are %s; i32 or i64 is allowed",
             lilac_simt_type_name(type));
    }
    lilac_simt_verify_uniform(v, i->operands[0], "operand 1, the lower bound,");
    lilac_simt_verify_uniform(v, i->operands[1], "operand 2, the upper bound,");
    lilac_simt_verify_uniform(v, i->operands[2], "operand 3, the step,");
    check_agreement(
        v, &(agreement){"initial values of results", carried, initial, i->result_count, i->result});
    if (body->argument_count != carried + 1) {
        fail(v, "simt-carried-type",
             "the body has %u arguments; %u are needed, the counter and the carried values",
             body->argument_count, carried + 1);
        return;
    }
    check_agreement(v, &(agreement){"loop bounds", 1, i->operands, 1, body->argument});
    check_agreement(v,
                    &(agreement){"initial values", carried, initial, carried, body->argument + 1});
    check_region(
        v, i, 0, LILAC_SIMT_OP_YIELD, 0,
        (agreement){.what = "yielded values", .needed = carried, .first = body->argument + 1});
}

void lilac_simt_verify_if(verifier *v, const instruction *i) {
    if (!has_bodies(v, i, 2) || i->operand_count < 1) {
        return;
    }
    lilac_simt_verify_uniform(v, i->operands[0], "operand 1, the condition,");
    for (uint32_t k = 0; k < 2; k++) {
        if (i->bodies[k]->argument_count != 0) {
            fail(v, "simt-carried-type", "body %u of an if has %u arguments; none is allowed",
                 k + 1, i->bodies[k]->argument_count);
        }
        check_region(
            v, i, k, LILAC_SIMT_OP_YIELD, 0,
            (agreement){.what = "yielded values", .needed = i->result_count, .first = i->result});
    }
}

void lilac_simt_verify_while(verifier *v, const instruction *i) {
    if (!has_bodies(v, i, 2)) {
        return;
    }
    const lilac_simt_body *before = i->bodies[0], *after = i->bodies[1];
    check_agreement(v, &(agreement){"initial values", i->operand_count, i->operands,
                                    before->argument_count, before->argument});
    check_region(v, i, 0, LILAC_SIMT_OP_CONDITION, 1,
                 (agreement){.what = "values passed to results",
                             .needed = i->result_count,
                             .first = i->result});
    const instruction *condition = before->last;
    if (condition != NULL && condition->code == LILAC_SIMT_OP_CONDITION &&
        condition->operand_count > 0) {
        v->instruction = condition;
        lilac_simt_verify_uniform(v, condition->operands[0], "operand 1, the condition,");
        check_agreement(v, &(agreement){"values passed to the body after",
                                        condition->operand_count - 1u, condition->operands + 1,
                                        after->argument_count, after->argument});
        v->instruction = i;
    }
    check_region(v, i, 1, LILAC_SIMT_OP_YIELD, 0,
                 (agreement){.what = "yielded values",
                             .needed = before->argument_count,
                             .first = before->argument});
}

void lilac_simt_verify_program_bodies(verifier *v, const instruction *i) {
    for (uint32_t k = 0; k < i->body_count; k++) {
        check_region(v, i, k, LILAC_SIMT_OP_YIELD, 0, (agreement){.what = "yielded values"});
    }
}
