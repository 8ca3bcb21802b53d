/* How often loops and branches are executed.
 *
 * The bounds of loops and the conditions of branches are evaluated from the arguments of the
 * launch and the memory whose contents it gives, in a sample of its programs. A loop with loops or
 * branches in it is executed iteration by iteration, as far as its scalars go; in other loops
 * the counter has its mean value. What cannot be evaluated is assumed: the trip count of which
 * prices of layouts assume, both sides of a branch. */
#include "report/text.h"

#include <lilac/tile_loops.h>

#include <math.h>

/* Steps: iterations and values that they carry, of all samples together. */
enum { MOST_SAMPLES = 512, LEAST_SAMPLES = 16, MOST_STEPS = 1 << 19 };

typedef struct sampling {
    lilac_explanation *e;
    lilac_simt_evaluation values;
    uint32_t next; /* index of the next branch */
    bool first;    /* without a launch: what is known when the kernel is compiled */
    int64_t steps; /* that are left */
    double work;   /* instructions that the program executes */
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

uint32_t explain_branches_in(const lilac_simt_body *body) {
    uint32_t count = 0;
    count_branches(&count, body);
    return count;
}

static bool loop_trip_count(sampling *s, const lilac_simt_instruction *i, int64_t bounds[3],
                            int64_t *trip_count) {
    for (uint32_t k = 0; k < 3; k++) {
        uint64_t bits;
        if (!lilac_simt_evaluation_get(&s->values, i->operands[k], &bits)) {
            return false;
        }
        bounds[k] = extended(s, i->operands[k], bits);
    }
    *trip_count =
        bounds[1] > bounds[0] && bounds[2] > 0 ? (bounds[1] - bounds[0] - 1) / bounds[2] + 1 : 0;
    return bounds[2] > 0;
}

/* Those that the caller gave for the line of the loop; else those that prices assume. */
static double assumed_trip_count(const sampling *s, const lilac_simt_instruction *i, bool *given) {
    const uint32_t number = explain_number(s->e, i->location);
    const lilac_tile_op *op = number > 0 ? s->e->operations[number - 1].op : NULL;
    const lilac_explain_launch *launch = &s->e->options.launch;
    for (uint32_t k = 0; k < launch->given_loop_count && op != NULL; k++) {
        if (launch->given_loops[k].line ==
            explain_line(s->e, lilac_explain_main_file(s->e), number - 1)) {
            *given = true;
            return launch->given_loops[k].count;
        }
    }
    return op != NULL && lilac_tile_is_loop(op) ? (double)lilac_engine_estimated_trip_count(op) : 1;
}

static bool is_rare(const sampling *s, const lilac_simt_instruction *i) {
    const uint32_t number = explain_number(s->e, i->location);
    return number > 0 &&
           lilac_tile_find(&s->e->operations[number - 1].op->attributes, "lilac.rare") != NULL;
}

static void add_taken(sampling *s, explain_branch *branch, uint32_t body, double times) {
    branch->taken[body] += s->first ? 0 : times;
}

/* ---- scalars that control flow passes on -------------------------------------------------- */

/* The values of `count` operands, those that are known. */
typedef struct scalars {
    uint64_t *bits;
    bool *known;
    uint32_t count;
} scalars;

static void get_scalars(sampling *s, scalars *to, const lilac_simt_value *from, uint32_t count) {
    to->count = count;
    for (uint32_t k = 0; k < count; k++) {
        to->known[k] = lilac_simt_evaluation_get(&s->values, from[k], &to->bits[k]);
    }
}

static void set_scalars(sampling *s, lilac_simt_value first, const scalars *from) {
    for (uint32_t k = 0; k < from->count; k++) {
        if (from->known[k]) {
            lilac_simt_evaluation_set(&s->values, first + k, from->bits[k]);
        }
    }
}

static scalars new_scalars(uint32_t count) {
    return (scalars){.bits = lilac_heap_grow(NULL, (count + 1) * sizeof(uint64_t)),
                     .known = lilac_heap_grow(NULL, (count + 1) * sizeof(bool))};
}

static void clear_scalars(scalars *list) {
    lilac_heap_free(list->bits);
    lilac_heap_free(list->known);
}

/* ---- the walk ----------------------------------------------------------------------------- */

static void sample(sampling *s, const lilac_simt_body *body, double weight);

static void skip(sampling *s, const lilac_simt_body *body) {
    s->next += explain_branches_in(body);
}

/* Iteration by iteration. */
static void execute_loop(sampling *s, const lilac_simt_instruction *i, explain_branch *branch,
                         const int64_t bounds[3], int64_t trip_count, double weight) {
    const lilac_simt_body *body = i->bodies[0];
    const uint32_t next = s->next;
    scalars carried = new_scalars(i->operand_count - 3u);
    get_scalars(s, &carried, i->operands + 3, i->operand_count - 3u);
    for (int64_t t = 0; t < trip_count; t++) {
        const uint32_t mark = s->values.seen_count;
        s->next = next;
        s->steps -= 1 + (int64_t)carried.count;
        lilac_simt_evaluation_set(&s->values, body->argument,
                                  (uint64_t)(bounds[0] + t * bounds[2]));
        set_scalars(s, body->argument + 1, &carried);
        add_taken(s, branch, 0, weight);
        sample(s, body, weight);
        get_scalars(s, &carried, body->last->operands, carried.count);
        lilac_simt_evaluation_forget(&s->values, mark);
    }
    set_scalars(s, i->result, &carried);
    clear_scalars(&carried);
    s->next = next + explain_branches_in(body);
}

static bool visit_loop(sampling *s, const lilac_simt_instruction *i, explain_branch *branch,
                       double weight) {
    const lilac_simt_body *body = i->bodies[0];
    int64_t bounds[3], trip_count;
    const bool known = loop_trip_count(s, i, bounds, &trip_count);
    bool given = false;
    const double taken = known ? (double)trip_count : assumed_trip_count(s, i, &given);
    if (known && s->first) {
        branch->trip_count = trip_count;
    }
    if (known && !s->first && trip_count * (int64_t)i->operand_count < s->steps &&
        explain_branches_in(body) > 0) {
        execute_loop(s, i, branch, bounds, trip_count, weight);
        return true;
    }
    if (known && trip_count > 0) {
        lilac_simt_evaluation_set(&s->values, body->argument,
                                  (uint64_t)(bounds[0] + (trip_count - 1) / 2 * bounds[2]));
    }
    add_taken(s, branch, 0, weight * taken);
    sample(s, body, weight * taken);
    return known || given;
}

static bool visit_if(sampling *s, const lilac_simt_instruction *i, explain_branch *branch,
                     double weight) {
    uint64_t condition = 0;
    const bool known = lilac_simt_evaluation_get(&s->values, i->operands[0], &condition);
    const double taken[2] = {known ? condition != 0 : !is_rare(s, i), known ? condition == 0 : 1};
    for (uint32_t b = 0; b < 2; b++) {
        const lilac_simt_body *body = i->bodies[b];
        add_taken(s, branch, b, weight * taken[b]);
        sample(s, body, weight * taken[b]);
        if (known && taken[b] > 0) {
            scalars yielded = new_scalars(i->result_count);
            get_scalars(s, &yielded, body->last->operands, i->result_count);
            set_scalars(s, i->result, &yielded);
            clear_scalars(&yielded);
        }
    }
    return known;
}

/* Until its condition is false, as long as it is known. */
static bool visit_while(sampling *s, const lilac_simt_instruction *i, explain_branch *branch,
                        double weight) {
    const lilac_simt_body *before = i->bodies[0], *after = i->bodies[1];
    const uint32_t next = s->next;
    scalars carried = new_scalars(max_u32(i->operand_count, i->result_count));
    bool known = !s->first;
    get_scalars(s, &carried, i->operands, i->operand_count);
    for (bool again = known; again;) {
        const uint32_t mark = s->values.seen_count;
        uint64_t condition = 0;
        s->next = next;
        s->steps -= 1 + (int64_t)carried.count;
        set_scalars(s, before->argument, &carried);
        known = s->steps > 0 &&
                lilac_simt_evaluation_get(&s->values, before->last->operands[0], &condition);
        again = known && condition != 0;
        add_taken(s, branch, 0, known ? weight : 0);
        sample(s, before, known ? weight : 0);
        get_scalars(s, &carried, before->last->operands + 1, before->last->operand_count - 1u);
        set_scalars(s, after->argument, &carried);
        add_taken(s, branch, 1, again ? weight : 0);
        sample(s, after, again ? weight : 0);
        if (again) {
            get_scalars(s, &carried, after->last->operands, after->last->operand_count);
        }
        lilac_simt_evaluation_forget(&s->values, mark);
    }
    if (known) {
        set_scalars(s, i->result, &carried);
    } else {
        const double taken = assumed_trip_count(s, i, &known);
        s->next = next;
        add_taken(s, branch, 0, weight * (taken + 1));
        add_taken(s, branch, 1, weight * taken);
        sample(s, before, weight * (taken + 1));
        sample(s, after, weight * taken);
    }
    clear_scalars(&carried);
    return known;
}

static void sample(sampling *s, const lilac_simt_body *body, double weight) {
    if (weight == 0 && !s->first) {
        skip(s, body);
        return;
    }
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->body_count == 0) {
            s->work += weight;
            continue;
        }
        explain_branch *branch = &s->e->branches[s->next++];
        bool known = true;
        branch->entries += s->first ? 0 : weight;
        switch (i->code) {
        case LILAC_SIMT_OP_LOOP:
            known = visit_loop(s, i, branch, weight);
            break;
        case LILAC_SIMT_OP_IF:
            known = visit_if(s, i, branch, weight);
            break;
        case LILAC_SIMT_OP_WHILE:
            known = visit_while(s, i, branch, weight);
            break;
        default: /* programs: each is executed once */
            add_taken(s, branch, 0, weight);
            add_taken(s, branch, 1, weight);
            for (uint32_t b = 0; b < i->body_count; b++) {
                sample(s, i->bodies[b], weight);
            }
            break;
        }
        branch->known &= known;
    }
}

static void sample_program(sampling *s, const uint32_t program[3]) {
    lilac_simt_evaluation_reset(&s->values);
    for (uint32_t d = 0; program != NULL && d < 3; d++) {
        s->values.program[d] = program[d];
    }
    s->next = 0;
    s->work = 0;
    s->e->samples += s->first ? 0 : 1;
    sample(s, s->e->kernel->body, 1);
    if (!s->first) {
        s->e->work += s->work;
        s->e->most_work = s->work > s->e->most_work ? s->work : s->e->most_work;
    }
}

static void list_branches(explain_branch *list, uint32_t *count, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->body_count > 0) {
            list[(*count)++] = (explain_branch){.instruction = i, .trip_count = -1, .known = true};
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            list_branches(list, count, i->bodies[b]);
        }
    }
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
        if (s->steps <= 0 && k + 1 >= LEAST_SAMPLES) {
            break;
        }
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
            loop->trip_count = branch->trip_count >= 0 ? branch->trip_count : loop->trip_count;
            loop->from_launch = loop->trip_count < 0 && branch->known;
            if (branch->entries > 0) {
                loop->estimate = branch->taken[code == LILAC_SIMT_OP_WHILE] / branch->entries;
            }
        }
    }
}

double explain_imbalance(const lilac_explanation *e) {
    return e->work > 0 ? e->most_work * e->samples / e->work : 1;
}

void explain_find_iterations(lilac_explanation *e) {
    const lilac_explain_launch *launch = &e->options.launch;
    sampling s = {.e = e, .first = true, .steps = MOST_STEPS};
    uint32_t listed = 0;
    count_branches(&e->branch_count, e->kernel->body);
    e->branches = lilac_arena_array(e->arena, explain_branch, e->branch_count + 1);
    list_branches(e->branches, &listed, e->kernel->body);
    lilac_simt_evaluation_init(&s.values, e->kernel);
    sample_program(&s, NULL);
    for (uint32_t b = 0; b < e->branch_count; b++) {
        e->branches[b].known = true; /* so far without a launch */
    }
    s.first = false;
    explain_set_launch(e, &s.values);
    if (launch->grid[0] > 0) {
        sample_grid(&s, launch->grid);
    } else {
        sample_program(&s, NULL);
    }
    lilac_simt_evaluation_clear(&s.values);
    note_loops(e);
}
