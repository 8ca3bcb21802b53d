/* Decoding of operations with regions into steps with jumps.
 *
 *   loop      inits → arguments; LOOP_BEGIN exit; body: …, yields → arguments; LOOP_NEXT body;
 *             exit: arguments → results
 *   if        BRANCH other; …, yields → results; JUMP end; other: …, yields → results; end:
 *   while     inits → arguments of before; before: …, condition's operands → arguments of after
 *             and results; BRANCH end; after: …, yields → arguments of before; JUMP_BACK before;
 *             end:
 *   programs  FORK end; program 0: …, JOIN; program 1: …, JOIN; …; end:
 *
 * An arrow is a parallel assignment. */
#include "decoder.h"

void lilac_sim_decode_loop(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_program *p = d->program;
    const lilac_simt_body *body = i->bodies[0];
    uint32_t count = i->operand_count - 3u, end = d->ends[d->number - 1];
    lilac_sim_place_values(d, body->argument, body->argument_count);
    lilac_sim_copy_values(d, i, body->argument + 1, i->operands + 3, count);
    lilac_sim_step bounds = *lilac_sim_add_step(d, kind, i);
    uint32_t begin = p->step_count - 1;
    lilac_sim_set_operands(d, &bounds, i);
    lilac_sim_set_result(d, &bounds, body->argument);
    bounds.immediate = bounds.entry_bytes;
    bounds.issues = 1;
    uint32_t first = p->step_count;
    lilac_sim_decode_body(d, body);
    lilac_sim_copy_values(d, body->last, body->argument + 1, body->last->operands, count);
    lilac_sim_release_dead(d, d->number - 1);
    lilac_sim_step *next = lilac_sim_add_step(d, STEP_LOOP_NEXT, i);
    *next = bounds;
    next->kind = STEP_LOOP_NEXT;
    next->target = first;
    next->in_while = d->whiles > 0;
    bounds.target = p->step_count;
    p->steps[begin] = bounds;
    lilac_sim_place_values(d, i->result, i->result_count);
    for (uint32_t k = 0; k < count; k++) {
        lilac_sim_copy_value(d, i, i->result + k, body->argument + 1 + k);
    }
    d->number++;
    lilac_sim_release_dead(d, end);
}

void lilac_sim_decode_programs(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                               uint8_t kind) {
    lilac_sim_program *p = d->program;
    uint32_t end = d->ends[d->number - 1], fork = p->step_count, threads = d->threads;
    uint32_t first = p->part_count, count = i->body_count;
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->access = first;
    step->n = count;
    p->part_count += count;
    p->most_parts = count > p->most_parts ? count : p->most_parts;
    p->partial = p->parts_wait = true;
    p->parts = lilac_heap_grow(p->parts, sizeof *p->parts * p->part_count);
    for (uint32_t k = 0; k < count; k++) {
        const lilac_simt_body *body = i->bodies[k];
        p->parts[first + k] = (lilac_sim_part){
            .first = p->step_count, .first_warp = body->first_warp, .end_warp = body->end_warp};
        d->threads = (body->end_warp - body->first_warp) * p->arch->warp_size;
        lilac_sim_decode_body(d, body);
        lilac_sim_release_dead(d, d->number - 1);
        lilac_sim_add_step(d, STEP_JOIN, i);
    }
    d->threads = threads;
    p->steps[fork].target = p->step_count;
    d->number++;
    lilac_sim_release_dead(d, end);
}

static uint32_t add_branch(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind,
                           lilac_simt_value condition) {
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->width[0] = 1;
    step->a = lilac_sim_offset_of(d, i, condition);
    step->varies = value_varies(d, condition);
    return d->program->step_count - 1;
}

void lilac_sim_decode_if(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_program *p = d->program;
    uint32_t end = d->ends[d->number - 1];
    lilac_sim_place_values(d, i->result, i->result_count);
    uint32_t branch = add_branch(d, i, kind, i->operands[0]);
    lilac_sim_decode_body(d, i->bodies[0]);
    lilac_sim_copy_values(d, i->bodies[0]->last, i->result, i->bodies[0]->last->operands,
                          i->result_count);
    lilac_sim_release_dead(d, d->number - 1);
    lilac_sim_add_step(d, STEP_JUMP, i);
    uint32_t jump = p->step_count - 1;
    p->steps[branch].target = p->step_count;
    lilac_sim_decode_body(d, i->bodies[1]);
    lilac_sim_copy_values(d, i->bodies[1]->last, i->result, i->bodies[1]->last->operands,
                          i->result_count);
    lilac_sim_release_dead(d, d->number - 1);
    p->steps[jump].target = p->step_count;
    d->number++;
    lilac_sim_release_dead(d, end);
}

void lilac_sim_decode_while(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_program *p = d->program;
    const lilac_simt_body *before = i->bodies[0], *after = i->bodies[1];
    uint32_t end = d->ends[d->number - 1];
    lilac_sim_place_values(d, before->argument, before->argument_count);
    lilac_sim_place_values(d, after->argument, after->argument_count);
    lilac_sim_place_values(d, i->result, i->result_count);
    lilac_sim_copy_values(d, i, before->argument, i->operands, i->operand_count);
    uint32_t first = p->step_count;
    d->whiles++;
    lilac_sim_decode_body(d, before);
    const lilac_simt_instruction *condition = before->last;
    lilac_sim_copy_values(d, condition, i->result, condition->operands + 1, i->result_count);
    uint32_t branch = add_branch(d, condition, kind, condition->operands[0]);
    lilac_sim_copy_values(d, condition, after->argument, condition->operands + 1, i->result_count);
    lilac_sim_release_dead(d, d->number - 1);
    lilac_sim_decode_body(d, after);
    lilac_sim_copy_values(d, after->last, before->argument, after->last->operands,
                          i->operand_count);
    lilac_sim_release_dead(d, d->number - 1);
    d->whiles--;
    lilac_sim_add_step(d, STEP_JUMP_BACK, i)->target = first;
    p->steps[branch].target = p->step_count;
    d->number++;
    lilac_sim_release_dead(d, end);
}
