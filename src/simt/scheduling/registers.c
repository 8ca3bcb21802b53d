/* Which values share a register because an instruction updates it in place (simt_matrix.h).
 *
 *     %1 = wgmma %0, …       %1 has the register of %0 where this is the only use of %0 and %0 is
 *                            defined in the same body: nobody can miss what was in it
 *     %2 = wgmma.wait %1     always the register of %1
 *     %r = loop … (%a = …)   the register of %a
 *     %2 = fmul %a, %s       the register of %a, if %a is not used behind it and a wgmma leads from %2 to
 *     %3 = wgmma %2, …       the value that becomes %a: a copy at the end of the body would read the
 *     yield %3               accumulators of a wgmma in flight
 *     %2 = if %c … else %a   likewise, where the other body replaces %a
 *     %r = if %c … else %a   the register of %a, if nothing uses %a behind it: ptxas copies some of many such
 *                            values. Not where between 9/10 and all of a thread's registers are needed:
 *                            ptxas 12.8 and 13.0 then spill values from outside of the loop
 *
 * Everything else has a register of its own. */
#include "internal.h"

#include <lilac/simt_matrix.h>

#include <string.h>

typedef struct analysis {
    const lilac_simt_kernel *kernel;
    uint32_t *uses;
    lilac_simt_value *homes;
    /* In the body of the loop that is being looked at, by home: the number of the last instruction that
     * uses the register, and of the one that defines the home. */
    uint32_t *last, *defined;
    uint32_t *inside;  /* uses in the body of the `if` that is being looked at; otherwise zero */
    uint32_t pressure; /* of the kernel; 0: not estimated yet */
} analysis;

enum { MOST_REGISTERS = 255 };

/* May the printer of a target give the result the register of the operand? */
static bool may_rename(uint32_t code) {
    switch (code) {
    case LILAC_SIMT_OP_CONST:
    case LILAC_SIMT_OP_PARAM:
    case LILAC_SIMT_OP_BITCAST:
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
    case LILAC_SIMT_OP_FCVT:
    case LILAC_SIMT_OP_PACK:
    case LILAC_SIMT_OP_UNPACK:
        return true;
    default:
        return false;
    }
}

/* Is the value's register free behind its one use, by `user`? */
static bool gives_register(const analysis *a, lilac_simt_value value,
                           const lilac_simt_instruction *user) {
    const lilac_simt_value_info *info = &a->kernel->values[value];
    const lilac_simt_instruction *d = info->definition;
    if (a->uses[value] != 1 || info->body != user->parent) {
        return false;
    }
    if (d != NULL && d->code == LILAC_SIMT_OP_WGMMA_WAIT) {
        return gives_register(a, d->operands[value - d->result], d);
    }
    return d == NULL || !may_rename(d->code);
}

/* ---- accumulators that a loop carries ------------------------------------------------------ */

/* Is the instruction printed as one that reads its operands before it writes its result? */
static bool is_single(uint32_t code) {
    switch (code) {
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FFMA:
    case LILAC_SIMT_OP_ADD:
    case LILAC_SIMT_OP_SUB:
    case LILAC_SIMT_OP_SELECT:
        return true;
    default:
        return false;
    }
}

static bool yields(const analysis *a, const lilac_simt_body *body, lilac_simt_value home) {
    bool found = false;
    for (uint32_t k = 0; k < body->last->operand_count; k++) {
        found |= a->homes[body->last->operands[k]] == home;
    }
    return found;
}

/* Is the result of an `if` what is in this register, unless one body replaces it? The other body must be
 * empty. The results are written one by one at the end of a body, so this one must not need the register
 * for another result. */
static bool keeps(const analysis *a, const lilac_simt_instruction *d, lilac_simt_value result,
                  lilac_simt_value home) {
    for (uint32_t side = 0; d->code == LILAC_SIMT_OP_IF && side < 2; side++) {
        const lilac_simt_body *empty = d->bodies[side], *full = d->bodies[1 - side];
        if (empty->first == empty->last &&
            a->homes[empty->last->operands[result - d->result]] == home && !yields(a, full, home)) {
            return true;
        }
    }
    return false;
}

/* Notes the uses in an instruction and in its bodies, all with the number of the outermost one. */
static void note_uses(analysis *a, const lilac_simt_instruction *i, uint32_t number) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        a->last[a->homes[i->operands[k]]] = number;
    }
    for (uint32_t k = 0; k < i->body_count; k++) {
        for (const lilac_simt_instruction *inner = i->bodies[k]->first; inner != NULL;
             inner = inner->next) {
            note_uses(a, inner, number);
        }
    }
}

static bool is_result_of_wgmma(const analysis *a, lilac_simt_value value) {
    const lilac_simt_instruction *d = a->kernel->values[value].definition;
    return d != NULL && d->code == LILAC_SIMT_OP_WGMMA;
}

/* Gives the values that start in register `from` register `to`. */
static void move_home(const analysis *a, const lilac_simt_body *body, lilac_simt_value from,
                      lilac_simt_value to) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->result_count; k++) {
            lilac_simt_value *home = &a->homes[i->result + k];
            *home = *home == from ? to : *home;
        }
    }
}

static void join_carried(analysis *a, const lilac_simt_body *body) {
    const lilac_simt_instruction *end = body->last;
    bool any = false;
    for (uint32_t k = 0; end != NULL && k < end->operand_count; k++) {
        any |= is_result_of_wgmma(a, end->operands[k]) &&
               a->homes[end->operands[k]] != body->argument + 1 + k;
    }
    if (!any) {
        return;
    }
    const size_t size = sizeof(uint32_t) * ((size_t)a->kernel->value_count + 1);
    a->last = lilac_heap_grow(a->last, size);
    a->defined = lilac_heap_grow(a->defined, size);
    memset(a->last, 0, size);
    memset(a->defined, 0, size);
    uint32_t number = 0;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        note_uses(a, i, ++number);
        for (uint32_t k = 0; k < i->result_count; k++) {
            a->defined[i->result + k] = number;
        }
    }
    for (uint32_t k = 0; k < end->operand_count; k++) {
        const lilac_simt_value carried = body->argument + 1 + k;
        const lilac_simt_value home = a->homes[end->operands[k]];
        const lilac_simt_instruction *d = a->kernel->values[home].definition;
        if (is_result_of_wgmma(a, end->operands[k]) && home != carried && d != NULL &&
            d->parent == body && a->last[carried] <= a->defined[home] &&
            (is_single(d->code) || keeps(a, d, home, carried))) {
            move_home(a, body, home, carried);
        }
    }
}

/* ---- results of an `if` that are values from before it ---------------------------------------- */

/* Adds to the uses of what the instructions of a body without other bodies read. False: a wgmma is one of
 * them, and may read a register later. */
static bool count_inside(const analysis *a, const lilac_simt_body *body, uint32_t number) {
    bool good = true;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        good &= i->code != LILAC_SIMT_OP_WGMMA && i->body_count == 0;
        for (uint32_t k = 0; k < i->operand_count; k++) {
            a->inside[i->operands[k]] += number;
        }
    }
    return good;
}

/* Does an instruction of this body compute the value into a register of its own, which only the `if` reads? The
 * results are written one by one at the end of the full body, so this one must not need it for a result. */
static bool is_replaced(const analysis *a, const lilac_simt_instruction *i, lilac_simt_value value,
                        const lilac_simt_body *empty, const lilac_simt_body *full) {
    const lilac_simt_instruction *d = a->kernel->values[value].definition;
    uint32_t results = 0;
    for (uint32_t k = 0; k < i->result_count; k++) {
        results += empty->last->operands[k] == value;
    }
    return results == 1 && d != NULL && d->parent == i->parent && is_single(d->code) &&
           a->homes[value] == value && a->uses[value] == a->inside[value] &&
           !yields(a, full, value);
}

static bool is_tight(analysis *a) {
    if (a->pressure == 0) {
        a->pressure = lilac_simt_pressure(a->kernel, LILAC_SIMT_PRESSURE_EARLY);
    }
    return 10 * a->pressure > 9 * MOST_REGISTERS && a->pressure <= MOST_REGISTERS;
}

static void join_results(analysis *a, const lilac_simt_instruction *i) {
    const lilac_simt_body *yes = i->bodies[0], *no = i->bodies[1];
    const lilac_simt_body *empty = yes->first == yes->last ? yes : no;
    const lilac_simt_body *full = empty == yes ? no : yes;
    if (empty->first != empty->last) {
        return;
    }
    const bool good = count_inside(a, full, 1);
    (void)count_inside(a, empty, 1); /* which only yields */
    for (uint32_t k = 0; good && k < i->result_count; k++) {
        const lilac_simt_value value = empty->last->operands[k];
        if (is_replaced(a, i, value, empty, full) && !is_tight(a)) {
            a->homes[i->result + k] = value;
        }
    }
    (void)count_inside(a, full, UINT32_MAX);
    (void)count_inside(a, empty, UINT32_MAX);
}

static void walk(analysis *a, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->body_count; k++) {
            walk(a, i->bodies[k]);
        }
        if (i->code == LILAC_SIMT_OP_LOOP) {
            join_carried(a, i->bodies[0]);
        } else if (i->code == LILAC_SIMT_OP_IF) {
            join_results(a, i);
        }
        for (uint32_t k = 0; k < i->result_count; k++) {
            lilac_simt_value *home = &a->homes[i->result + k];
            switch (i->code) {
            case LILAC_SIMT_OP_WGMMA:
                if (gives_register(a, i->operands[k], i)) {
                    *home = a->homes[i->operands[k]];
                }
                break;
            case LILAC_SIMT_OP_WGMMA_WAIT:
                *home = a->homes[i->operands[k]];
                break;
            case LILAC_SIMT_OP_LOOP:
                *home = i->bodies[0]->argument + 1 + k;
                break;
            case LILAC_SIMT_OP_WHILE:
                *home = i->bodies[1]->argument + k;
                break;
            default:
                break;
            }
        }
    }
}

void lilac_simt_register_homes(const lilac_simt_kernel *kernel, lilac_simt_value *homes) {
    size_t size = sizeof(uint32_t) * ((size_t)kernel->value_count + 1);
    analysis a = {.kernel = kernel,
                  .uses = lilac_heap_grow(NULL, size),
                  .inside = lilac_heap_grow(NULL, size),
                  .homes = homes};
    memset(a.uses, 0, size);
    memset(a.inside, 0, size);
    lilac_simt_count_uses(kernel->body, a.uses);
    for (lilac_simt_value v = 0; v < kernel->value_count; v++) {
        homes[v] = v;
    }
    walk(&a, kernel->body);
    lilac_heap_free(a.uses);
    lilac_heap_free(a.inside);
    lilac_heap_free(a.last);
    lilac_heap_free(a.defined);
}
