/* How often loops and branches are executed.
 *
 * The bounds of loops and the conditions of branches are evaluated from the arguments of the
 * launch, in a sample of its programs. In a loop whose bounds are known, the counter has its mean
 * value. What cannot be evaluated is assumed: the trip count of which prices of layouts assume,
 * both sides of a branch. */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <math.h>

enum { MOST_SAMPLES = 64 };

typedef struct sampling {
    lilac_explanation *e;
    lilac_simt_evaluation values;
    uint32_t next; /* index of the next branch */
    bool first;    /* without a launch: what is known when the kernel is compiled */
} sampling;

static void count_branches(uint32_t *count, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        *count += i->body_count > 0;
        for (uint32_t b = 0; b < i->body_count; b++) {
            count_branches(count, i->bodies[b]);
        }
    }
}

static int64_t extended(const sampling *s, lilac_simt_value value, uint64_t bits) {
    const uint32_t width = lilac_simt_type_bits((lilac_simt_type)s->e->kernel->values[value].type);
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

/* The trip count; sets the counter to its mean. */
static bool loop_trips(sampling *s, const lilac_simt_instruction *i, int64_t *trips) {
    int64_t bounds[3];
    for (uint32_t k = 0; k < 3; k++) {
        uint64_t bits;
        if (!lilac_simt_evaluation_get(&s->values, i->operands[k], &bits)) {
            return false;
        }
        bounds[k] = extended(s, i->operands[k], bits);
    }
    if (bounds[2] <= 0) {
        return false;
    }
    *trips = bounds[1] > bounds[0] ? (bounds[1] - bounds[0] - 1) / bounds[2] + 1 : 0;
    const int64_t middle = *trips > 0 ? (*trips - 1) / 2 : 0;
    lilac_simt_evaluation_set(&s->values, i->bodies[0]->argument,
                              (uint64_t)(bounds[0] + middle * bounds[2]));
    return true;
}

static double assumed_trips(const sampling *s, const lilac_simt_instruction *i) {
    const uint32_t number = explain_number(s->e, i->location);
    const lilac_tile_op *op = number > 0 ? s->e->operations[number - 1].op : NULL;
    return op != NULL && lilac_tile_is_loop(op) ? (double)lilac_engine_estimated_trips(op) : 1;
}

static bool is_rare(const sampling *s, const lilac_simt_instruction *i) {
    const uint32_t number = explain_number(s->e, i->location);
    return number > 0 &&
           lilac_tile_find(&s->e->operations[number - 1].op->attributes, "lilac.rare") != NULL;
}

/* Sets how often each body is executed in one execution of the instruction. */
static bool find_taken(sampling *s, const lilac_simt_instruction *i, explain_branch *branch,
                       double taken[2]) {
    uint64_t condition;
    int64_t trips;
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        if (loop_trips(s, i, &trips)) {
            branch->trips = s->first ? trips : branch->trips;
            taken[0] = (double)trips;
            return true;
        }
        taken[0] = assumed_trips(s, i);
        return false;
    case LILAC_SIMT_OP_IF:
        if (lilac_simt_evaluation_get(&s->values, i->operands[0], &condition)) {
            taken[condition == 0] = 1;
            return true;
        }
        taken[0] = is_rare(s, i) ? 0 : 1;
        taken[1] = 1;
        return false;
    case LILAC_SIMT_OP_WHILE:
        taken[1] = assumed_trips(s, i);
        taken[0] = taken[1] + 1;
        return false;
    default: /* programs: each is executed once */
        taken[0] = taken[1] = 1;
        return true;
    }
}

static void sample(sampling *s, const lilac_simt_body *body, double weight) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->body_count == 0) {
            continue;
        }
        explain_branch *branch = &s->e->branches[s->next++];
        double taken[2] = {0, 0};
        if (branch->instruction == NULL) {
            *branch = (explain_branch){.instruction = i, .trips = -1, .known = true};
        }
        branch->known &= find_taken(s, i, branch, taken);
        if (!s->first) {
            branch->entries += weight;
            branch->taken[0] += weight * taken[0];
            branch->taken[1] += weight * taken[1];
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            sample(s, i->bodies[b], weight * taken[b < 2 ? b : 1]);
        }
    }
}

static void sample_program(sampling *s, const uint32_t program[3]) {
    lilac_simt_evaluation_reset(&s->values);
    for (uint32_t d = 0; program != NULL && d < 3; d++) {
        s->values.program[d] = program[d];
    }
    s->next = 0;
    s->e->samples += s->first ? 0 : 1;
    sample(s, s->e->kernel->body, 1);
}

/* Spread over the grid by multiples of the golden ratio, so that no dimension is sampled at one
 * place only; all programs of a small grid. */
static void sample_grid(sampling *s, const uint32_t grid[3]) {
    const uint64_t programs = (uint64_t)grid[0] * grid[1] * grid[2];
    const uint64_t samples = programs < MOST_SAMPLES ? programs : MOST_SAMPLES;
    for (uint64_t k = 0; k < samples; k++) {
        const double spread = 0.6180339887498949 * (double)k;
        const uint64_t number =
            samples == programs ? k : (uint64_t)((spread - floor(spread)) * (double)programs);
        const uint32_t program[3] = {(uint32_t)(number % grid[0]),
                                     (uint32_t)(number / grid[0] % grid[1]),
                                     (uint32_t)(number / grid[0] / grid[1])};
        sample_program(s, program);
    }
}

/* The loops of the explanation from those of the kernel. */
static void note_loops(lilac_explanation *e) {
    for (uint32_t k = 0; k < e->loop_count; k++) {
        lilac_explain_loop *loop = &e->loops[k];
        for (uint32_t b = 0; b < e->branch_count; b++) {
            const explain_branch *branch = &e->branches[b];
            const uint16_t code = branch->instruction->code;
            if ((code != LILAC_SIMT_OP_LOOP && code != LILAC_SIMT_OP_WHILE) ||
                explain_number(e, branch->instruction->location) != loop->operation) {
                continue;
            }
            loop->trips = branch->trips >= 0 ? branch->trips : loop->trips;
            loop->from_launch = loop->trips < 0 && branch->known;
            if (branch->entries > 0) {
                loop->estimate = branch->taken[code == LILAC_SIMT_OP_WHILE] / branch->entries;
            }
        }
    }
}

void explain_find_trips(lilac_explanation *e) {
    const lilac_explain_launch *launch = &e->options.launch;
    sampling s = {.e = e, .first = true};
    count_branches(&e->branch_count, e->kernel->body);
    e->branches = lilac_arena_array(e->arena, explain_branch, e->branch_count + 1);
    lilac_simt_evaluation_init(&s.values, e->kernel);
    sample_program(&s, NULL);
    for (uint32_t b = 0; b < e->branch_count; b++) {
        e->branches[b].known = true; /* so far without a launch */
    }
    s.first = false;
    s.values.argument_count = e->kernel->parameter_count;
    s.values.arguments = e->arguments;
    s.values.argument_known = e->known;
    if (launch->grid[0] > 0) {
        s.values.programs_known = true;
        for (uint32_t d = 0; d < 3; d++) {
            s.values.grid[d] = launch->grid[d];
        }
        sample_grid(&s, launch->grid);
    } else {
        sample_program(&s, NULL);
    }
    lilac_simt_evaluation_clear(&s.values);
    note_loops(e);
}
