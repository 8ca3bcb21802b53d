/* Which values all threads of a block share, or in a program all threads of the program.
 *
 * The greatest fixpoint of: a pure operation's result is uniform when its operands are (thread,
 * lane and warp numbers never are); a load's when its address, predicate and substitutes are; a
 * value exchanged between lanes is not, but for a vote of some, which says itself that all act on
 * it alike; a loop's carried value when its initial and its next value are; an if's result when
 * both sides' are. Marks of the lowering hold whatever the operands say. Starting from "all
 * uniform" and only ever taking away, each sweep is monotone, so it ends; loops nest a few deep, so
 * it ends soon. */
#include "internal.h"

static bool all_uniform(const lilac_simt_kernel *kernel, const lilac_simt_value *values,
                        uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (!kernel->values[values[k]].uniform) {
            return false;
        }
    }
    return true;
}

bool lilac_simt_is_uniform(const lilac_simt_kernel *kernel,
                           const lilac_simt_instruction *instruction) {
    if (instruction->code == LILAC_SIMT_OP_VOTE && instruction->detail == 2) {
        return true;
    }
    return !lilac_simt_has_trait(instruction->code, LILAC_SIMT_DIVERGENT | LILAC_SIMT_CONVERGENT) &&
           all_uniform(kernel, instruction->operands, instruction->operand_count);
}

/* Takes the uniform mark away from a value that does not deserve it. */
static bool lower_to(lilac_simt_kernel *kernel, lilac_simt_value value, bool uniform) {
    lilac_simt_value_info *info = &kernel->values[value];
    if (uniform || !info->uniform || info->marked) {
        return false;
    }
    info->uniform = false;
    return true;
}

static bool operand_uniform(const lilac_simt_kernel *kernel,
                            const lilac_simt_instruction *instruction, uint32_t index) {
    return instruction == NULL || index >= instruction->operand_count ||
           kernel->values[instruction->operands[index]].uniform;
}

static bool sweep(lilac_simt_kernel *kernel, lilac_simt_body *body);

static bool sweep_bodies(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction) {
    bool changed = false;
    for (uint32_t k = 0; k < instruction->body_count; k++) {
        changed |= sweep(kernel, instruction->bodies[k]);
    }
    return changed;
}

/* What a loop's arguments receive at its beginning and at its end. */
static bool lower_arguments(lilac_simt_kernel *kernel, const lilac_simt_instruction *loop) {
    lilac_simt_body *first = loop->bodies[0], *last = loop->bodies[loop->body_count - 1];
    bool counts = loop->code == LILAC_SIMT_OP_LOOP;
    bool changed =
        counts && lower_to(kernel, first->argument, all_uniform(kernel, loop->operands, 3));
    for (uint32_t k = 0; k + counts < first->argument_count; k++) {
        changed |= lower_to(kernel, first->argument + counts + k,
                            operand_uniform(kernel, loop, (counts ? 3 : 0) + k) &&
                                operand_uniform(kernel, last->last, k));
    }
    for (uint32_t k = 0; !counts && k < last->argument_count; k++) {
        changed |=
            lower_to(kernel, last->argument + k, operand_uniform(kernel, first->last, 1 + k));
    }
    return changed;
}

static bool result_uniform(const lilac_simt_kernel *kernel, const lilac_simt_instruction *i,
                           uint32_t k) {
    const lilac_simt_body *first = i->bodies[0];
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        return all_uniform(kernel, i->operands, 3) &&
               kernel->values[first->argument + 1 + k].uniform;
    case LILAC_SIMT_OP_WHILE:
        return operand_uniform(kernel, first->last, 1 + k);
    default:
        return operand_uniform(kernel, i, 0) && operand_uniform(kernel, first->last, k) &&
               operand_uniform(kernel, i->bodies[1]->last, k);
    }
}

static bool lower_results(lilac_simt_kernel *kernel, const lilac_simt_instruction *i) {
    bool changed = false;
    for (uint32_t k = 0; k < i->result_count; k++) {
        changed |= lower_to(kernel, i->result + k, result_uniform(kernel, i, k));
    }
    return changed;
}

static bool sweep_loop(lilac_simt_kernel *kernel, lilac_simt_instruction *loop) {
    bool changed = lower_arguments(kernel, loop);
    for (bool again = true; again;) {
        again = sweep_bodies(kernel, loop);
        again |= lower_arguments(kernel, loop);
        changed |= again;
    }
    return changed;
}

static bool sweep(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
        case LILAC_SIMT_OP_WHILE:
            changed |= sweep_loop(kernel, i);
            changed |= lower_results(kernel, i);
            break;
        case LILAC_SIMT_OP_IF:
        case LILAC_SIMT_OP_PROGRAMS:
            changed |= sweep_bodies(kernel, i);
            changed |= lower_results(kernel, i);
            break;
        default:
            if (i->result_count > 0 && !lilac_simt_is_uniform(kernel, i)) {
                for (uint32_t k = 0; k < i->result_count; k++) {
                    changed |= lower_to(kernel, i->result + k, false);
                }
            }
        }
    }
    return changed;
}

/* What the bodies contain was settled when it was built. It has to be looked at again only where an
 * argument turns out not to be uniform, so that nested instructions cost no more than others. */
void lilac_simt_settle_uniform(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction) {
    if (instruction->code != LILAC_SIMT_OP_IF && lower_arguments(kernel, instruction)) {
        (void)sweep_loop(kernel, instruction);
    }
    (void)lower_results(kernel, instruction);
}

void lilac_simt_infer_uniform(lilac_simt_kernel *kernel) {
    for (uint32_t v = 1; v < kernel->value_count; v++) {
        kernel->values[v].uniform = true;
    }
    sweep(kernel, kernel->body);
}
