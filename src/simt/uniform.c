/* Which values all threads of a block share.
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

static bool sweep_loop(lilac_simt_kernel *kernel, lilac_simt_instruction *loop) {
    lilac_simt_body *body = loop->bodies[0];
    bool bounds = all_uniform(kernel, loop->operands, 3);
    bool changed = lower_to(kernel, body->argument, bounds);
    for (bool again = true; again;) {
        again = sweep_bodies(kernel, loop);
        for (uint32_t k = 0; k + 1 < body->argument_count; k++) {
            again |= lower_to(kernel, body->argument + 1 + k,
                              operand_uniform(kernel, loop, 3 + k) &&
                                  operand_uniform(kernel, body->last, k));
        }
        changed |= again;
    }
    for (uint32_t k = 0; k < loop->result_count; k++) {
        bool uniform = bounds && kernel->values[body->argument + 1 + k].uniform;
        changed |= lower_to(kernel, loop->result + k, uniform);
    }
    return changed;
}

static bool sweep_while(lilac_simt_kernel *kernel, lilac_simt_instruction *loop) {
    lilac_simt_body *before = loop->bodies[0];
    lilac_simt_body *after = loop->bodies[1];
    bool changed = false;
    for (bool again = true; again;) {
        again = sweep_bodies(kernel, loop);
        for (uint32_t k = 0; k < before->argument_count; k++) {
            again |= lower_to(kernel, before->argument + k,
                              operand_uniform(kernel, loop, k) &&
                                  operand_uniform(kernel, after->last, k));
        }
        for (uint32_t k = 0; k < after->argument_count; k++) {
            again |=
                lower_to(kernel, after->argument + k, operand_uniform(kernel, before->last, 1 + k));
        }
        changed |= again;
    }
    for (uint32_t k = 0; k < loop->result_count; k++) {
        changed |= lower_to(kernel, loop->result + k, operand_uniform(kernel, before->last, 1 + k));
    }
    return changed;
}

static bool sweep_if(lilac_simt_kernel *kernel, lilac_simt_instruction *branch) {
    bool changed = sweep_bodies(kernel, branch);
    bool condition = operand_uniform(kernel, branch, 0);
    for (uint32_t k = 0; k < branch->result_count; k++) {
        changed |= lower_to(kernel, branch->result + k,
                            condition && operand_uniform(kernel, branch->bodies[0]->last, k) &&
                                operand_uniform(kernel, branch->bodies[1]->last, k));
    }
    return changed;
}

static bool sweep(lilac_simt_kernel *kernel, lilac_simt_body *body) {
    bool changed = false;
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
            changed |= sweep_loop(kernel, i);
            break;
        case LILAC_SIMT_OP_WHILE:
            changed |= sweep_while(kernel, i);
            break;
        case LILAC_SIMT_OP_IF:
            changed |= sweep_if(kernel, i);
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

void lilac_simt_settle_uniform(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction) {
    switch (instruction->code) {
    case LILAC_SIMT_OP_LOOP:
        sweep_loop(kernel, instruction);
        break;
    case LILAC_SIMT_OP_WHILE:
        sweep_while(kernel, instruction);
        break;
    default:
        sweep_if(kernel, instruction);
    }
}

void lilac_simt_infer_uniform(lilac_simt_kernel *kernel) {
    for (uint32_t v = 1; v < kernel->value_count; v++) {
        kernel->values[v].uniform = true;
    }
    sweep(kernel, kernel->body);
}
