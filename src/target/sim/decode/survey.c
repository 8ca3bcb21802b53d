/* The survey numbers the instructions in order, finds the last use of each value, and marks the
 * values that may differ between threads. A loop-carried value is uniform at first; it is marked
 * when the value of the next iteration is marked. The walk is repeated until it marks no value.
 *
 * A value that is defined before a loop and read in it is live up to the end of the loop. In a
 * kernel with wgmmas, values that a wgmma in flight may read or write keep their arrays up to the end. */
#include "decoder.h"

#include <string.h>

static bool is_loop(const lilac_simt_instruction *instruction) {
    return instruction->code == LILAC_SIMT_OP_LOOP || instruction->code == LILAC_SIMT_OP_WHILE;
}

static void count_body(lilac_sim_decoder *d, const lilac_simt_body *body, uint32_t depth) {
    if (depth > d->depth) {
        d->depth = depth;
    }
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        d->numbers++;
        d->program->wgmmas |= i->code == LILAC_SIMT_OP_WGMMA;
        for (uint32_t k = 0; k < i->body_count; k++) {
            count_body(d, i->bodies[k], depth + 1);
        }
        d->numbers += i->body_count > 0;
    }
}

static void define(lilac_sim_decoder *d, lilac_simt_value first, uint32_t count, uint32_t number,
                   uint32_t last_use) {
    for (uint32_t k = 0; k < count; k++) {
        d->values[first + k].defined = number;
        d->values[first + k].last_use = last_use;
    }
}

static void number_body(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        uint32_t begin = d->number++, end = begin;
        for (uint32_t k = 0; k < i->body_count; k++) {
            number_body(d, i->bodies[k]);
        }
        if (i->body_count) {
            end = d->number++;
        }
        d->ends[begin] = end;
        for (uint32_t k = 0; k < i->body_count; k++) {
            define(d, i->bodies[k]->argument, i->bodies[k]->argument_count, begin, end);
        }
        define(d, i->result, i->result_count, end, end);
    }
}

/* The value is read at `number` inside the loops of the walk. */
static void use(lilac_sim_decoder *d, lilac_simt_value value, uint32_t number) {
    lilac_sim_value *state = &d->values[value];
    for (uint32_t k = 0; k < d->loop_depth; k++) {
        if (d->loops[k].begin > state->defined) {
            number = d->loops[k].end;
            break;
        }
    }
    if (state->last_use < number) {
        state->last_use = number;
    }
}

static void find_uses(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        uint32_t begin = d->number++, end = d->ends[begin];
        for (uint32_t k = 0; k < i->operand_count; k++) {
            bool bound = i->code == LILAC_SIMT_OP_LOOP && k < 3;
            if (i->operands[k]) {
                use(d, i->operands[k], bound ? end : begin);
            }
        }
        if (i->body_count == 0) {
            continue;
        }
        if (is_loop(i)) {
            d->loops[d->loop_depth++] = (lilac_sim_span){begin, end};
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            find_uses(d, i->bodies[k]);
        }
        if (is_loop(i)) {
            d->loop_depth--;
        }
        d->number++;
    }
}

/* Values that wgmmas in flight may read or write: registers of A, and values that may hold a result. */
static void keep_flying(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        bool holds = i->body_count > 0 || i->code == LILAC_SIMT_OP_WGMMA ||
                     i->code == LILAC_SIMT_OP_WGMMA_WAIT;
        for (uint32_t k = 0; holds && k < i->result_count; k++) {
            d->values[i->result + k].last_use = d->numbers;
        }
        if (i->code == LILAC_SIMT_OP_WGMMA) {
            lilac_simt_group a = lilac_simt_group_of(i, 1);
            for (uint32_t k = 0; k < a.count; k++) {
                d->values[a.values[k]].last_use = d->numbers;
            }
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            for (uint32_t k = 0; k < i->bodies[b]->argument_count; k++) {
                d->values[i->bodies[b]->argument + k].last_use = d->numbers;
            }
            keep_flying(d, i->bodies[b]);
        }
    }
}

static void mark(lilac_sim_decoder *d, lilac_simt_value value, bool value_varies) {
    if (value_varies && !d->values[value].varies) {
        d->values[value].varies = true;
        d->changed = true;
    }
}

static bool any_varies(const lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        if (value_varies(d, i->operands[k])) {
            return true;
        }
    }
    return false;
}

/* Marks the targets of a parallel assignment. */
static void mark_all(lilac_sim_decoder *d, lilac_simt_value first, const lilac_simt_value *sources,
                     uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        mark(d, first + k, value_varies(d, sources[k]));
    }
}

/* Visits the parallel assignments of an operation with regions. */
typedef void transfer_visitor(lilac_sim_decoder *d, lilac_simt_value first,
                              const lilac_simt_value *sources, uint32_t count);

static void each_transfer(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                          transfer_visitor *visit) {
    lilac_simt_body *const *bodies = i->bodies;
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        visit(d, bodies[0]->argument + 1, i->operands + 3, i->operand_count - 3u);
        visit(d, bodies[0]->argument + 1, bodies[0]->last->operands, i->operand_count - 3u);
        break;
    case LILAC_SIMT_OP_IF:
        visit(d, i->result, bodies[0]->last->operands, i->result_count);
        visit(d, i->result, bodies[1]->last->operands, i->result_count);
        break;
    case LILAC_SIMT_OP_WHILE:
        visit(d, bodies[0]->argument, i->operands, i->operand_count);
        visit(d, bodies[0]->argument, bodies[1]->last->operands, i->operand_count);
        visit(d, bodies[1]->argument, bodies[0]->last->operands + 1, i->result_count);
        visit(d, i->result, bodies[0]->last->operands + 1, i->result_count);
        break;
    default:
        break;
    }
}

static void find_varying(lilac_sim_decoder *d, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        lilac_simt_body *const *bodies = i->bodies;
        for (uint32_t k = 0; k < i->body_count; k++) {
            find_varying(d, bodies[k]);
        }
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
            each_transfer(d, i, mark_all);
            for (uint32_t k = 0; k + 3u < i->operand_count; k++) {
                mark(d, i->result + k, value_varies(d, bodies[0]->argument + 1 + k));
            }
            break;
        case LILAC_SIMT_OP_IF:
        case LILAC_SIMT_OP_WHILE:
            each_transfer(d, i, mark_all);
            break;
        case LILAC_SIMT_OP_THREAD:
        case LILAC_SIMT_OP_LANE:
        case LILAC_SIMT_OP_WARP:
        case LILAC_SIMT_OP_LD_GLOBAL:
        case LILAC_SIMT_OP_LD_SHARED:
        case LILAC_SIMT_OP_LD_CLUSTER:
        case LILAC_SIMT_OP_LD_MATRIX:
        case LILAC_SIMT_OP_MMA:
        case LILAC_SIMT_OP_WGMMA:
        case LILAC_SIMT_OP_WGMMA_WAIT:
        case LILAC_SIMT_OP_SHUFFLE:
        case LILAC_SIMT_OP_BALLOT:
        case LILAC_SIMT_OP_VOTE:
        case LILAC_SIMT_OP_MATCH:
        case LILAC_SIMT_OP_REDUX:
        case LILAC_SIMT_OP_TIMER:
        case LILAC_SIMT_OP_ELECT:
        case LILAC_SIMT_OP_ATOMIC_GLOBAL:
        case LILAC_SIMT_OP_CAS_GLOBAL:
        case LILAC_SIMT_OP_ATOMIC_SHARED:
        case LILAC_SIMT_OP_MBARRIER_TRY_WAIT:
        case LILAC_SIMT_OP_MBARRIER_TEST:
            for (uint32_t k = 0; k < i->result_count; k++) {
                mark(d, i->result + k, true);
            }
            break;
        default:
            for (uint32_t k = 0; k < i->result_count; k++) {
                mark(d, i->result + k, any_varies(d, i));
            }
            break;
        }
    }
}

static void fill_all(lilac_sim_decoder *d, lilac_simt_value first, const lilac_simt_value *sources,
                     uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (value_varies(d, first + k)) {
            d->values[sources[k]].fill = true;
        }
    }
}

/* Finds the uniform values for which some instruction reads the entries of all threads. A value that
 * a program reads may have been computed by the block. */
static void find_fills(lilac_sim_decoder *d, const lilac_simt_body *body, bool in_program) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        lilac_simt_body *const *bodies = i->bodies;
        for (uint32_t k = 0; k < i->body_count; k++) {
            find_fills(d, bodies[k], in_program || i->code == LILAC_SIMT_OP_PROGRAMS);
        }
        for (uint32_t k = 0; k < i->operand_count && in_program; k++) {
            d->values[i->operands[k]].fill = true;
        }
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
        case LILAC_SIMT_OP_IF:
        case LILAC_SIMT_OP_WHILE:
            each_transfer(d, i, fill_all);
            break;
        case LILAC_SIMT_OP_YIELD:
        case LILAC_SIMT_OP_CONDITION:
        case LILAC_SIMT_OP_ASSERT:
            break;
        default: {
            if (i->result_count == 0 || value_varies(d, i->result)) { /* loads vary */
                for (uint32_t k = 0; k < i->operand_count; k++) {
                    d->values[i->operands[k]].fill = true;
                }
            }
            break;
        }
        }
    }
}

void lilac_sim_survey(lilac_sim_decoder *d) {
    const lilac_simt_body *body = d->kernel->body;
    count_body(d, body, 1);
    d->ends = lilac_heap_grow(NULL, sizeof *d->ends * (d->numbers + 1));
    d->dying = lilac_heap_grow(NULL, sizeof *d->dying * (d->numbers + 1));
    d->loops = lilac_heap_grow(NULL, sizeof *d->loops * (d->depth + 1));
    memset(d->dying, 0, sizeof *d->dying * (d->numbers + 1));
    number_body(d, body);
    d->number = 0;
    find_uses(d, body);
    if (d->program->wgmmas) {
        keep_flying(d, body);
    }
    do {
        d->changed = false;
        find_varying(d, body);
    } while (d->changed);
    find_fills(d, body, false);
}
