/* How long one iteration of a loop takes if its warps have the multiprocessor for themselves:
 *
 *     ready of a value    start of its instruction + latency of its unit
 *     start               when its operands are ready, and not before the last wait or barrier
 *     iteration           from the first start to the last; or the issue of its instructions
 *
 * Iterations follow each other: values that the loop carries, groups of copies and products that
 * are in flight keep the times at which they complete. A wait for all but the newest N groups waits
 * for the group before them. The time of an iteration is the mean after some have filled the
 * pipeline. A loop in a loop counts on its own. */
#include "internal.h"

#include <lilac/matrix.h>
#include <lilac/tile_loops.h>

#include <stdlib.h>
#include <string.h>

enum { ITERATIONS = 12, FILLING = 6, GROUPS = 32 };

/* Clocks from an instruction to its use. Of memory: if L2 has the line; if memory delivers it on an
 * idle device, and on a device whose multiprocessors have that many warps or more. */
static const double L2 = 300, IDLE_MEMORY = 700, BUSY_MEMORY = 1100, BUSY_WARPS = 16;
static const double COPY = 100; /* to shared memory, beyond those */
static const double ARITHMETIC = 4.5, SPECIAL = 20, SHARED = 30, SHUFFLE = 24, VOTE = 14;
static const double MATRIX = 33, WGMMA = 60, BARRIER = 28, CLUSTER_BARRIER = 224;
/* Clocks of a scheduler for an issue slot. */
static const double SPECIAL_SLOTS = 8, INTEGER_SLOTS = 1.5;

typedef struct groups {
    double done[GROUPS]; /* times of completion, the newest at `next` - 1 */
    uint32_t next;
    double open; /* of those that no commit has closed */
} groups;

typedef struct chain {
    lilac_explanation *e;
    double *ready; /* by value */
    double now;    /* no later instruction starts before */
    double last;   /* start of the instruction that starts last */
    double tensor; /* the tensor core is free */
    double base;   /* the last wait or barrier ended */
    double slots;  /* of the scheduler since then, of all warps that share it */
    double busy;   /* slots of one iteration */
    double shared; /* warps that share a scheduler */
    double load;   /* of the memory: 0 to 1 */
    double ahead;  /* iterations between the start of a tensor copy and its use */
    groups copies, products, boxes;
    uint32_t waits;
} chain;

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* ---- groups ------------------------------------------------------------------------------- */

static void commit(groups *g) {
    g->done[g->next++ % GROUPS] = g->open;
    g->open = -1e9;
}

/* When all but the newest `pending` are complete. */
static double completion(const groups *g, int64_t pending) {
    return pending >= GROUPS - 1 ? -1e9 : g->done[(g->next - 1 - (uint32_t)pending) % GROUPS];
}

static void shift_groups(groups *g, double by) {
    for (uint32_t k = 0; k < GROUPS; k++) {
        g->done[k] -= by;
    }
    g->open -= by;
}

static void clear_groups(groups *g) {
    g->next = 0;
    for (uint32_t k = 0; k < GROUPS; k++) {
        g->done[k] = -1e9;
    }
    g->open = -1e9;
}

/* ---- instructions ------------------------------------------------------------------------- */

/* Of a load or a copy: what several blocks access comes from L2 for all but one. */
static double memory_clocks(const chain *c, const lilac_simt_instruction *i) {
    const uint32_t number = explain_number(c->e, i->location);
    const double share = number > 0 ? c->e->share[number - 1] : 0;
    return L2 + share * (IDLE_MEMORY + c->load * (BUSY_MEMORY - IDLE_MEMORY) - L2);
}

/* How busy the device is: its warps, over those from which on the latency is that of a busy one. */
static double load_of(const lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    const double places = (double)e->budget.resident_blocks * EXPLAIN_MULTIPROCESSORS;
    const double warps = (blocks > 0 && blocks < places ? blocks : places) * e->kernel->num_warps;
    const double load = warps / (BUSY_WARPS * EXPLAIN_MULTIPROCESSORS);
    return load < 1 ? load : 1;
}

static double latency_of(const chain *c, const lilac_simt_instruction *i) {
    switch (explain_class_of(i)) {
    case LILAC_EXPLAIN_GLOBAL:
        return i->result_count > 0 ? memory_clocks(c, i) : 0;
    case LILAC_EXPLAIN_SHARED:
        return SHARED;
    case LILAC_EXPLAIN_SHUFFLE:
        return i->code == LILAC_SIMT_OP_SHUFFLE ? SHUFFLE : VOTE;
    case LILAC_EXPLAIN_SPECIAL:
        return SPECIAL;
    case LILAC_EXPLAIN_TENSOR:
        return MATRIX;
    default:
        return explain_is_issued(i) ? ARITHMETIC : 0;
    }
}

/* Clocks of a scheduler for one issue slot: the unit of integers has half the rate of the issue. */
static double unit_slots(const lilac_simt_instruction *i) {
    if (explain_is_special(i)) {
        return SPECIAL_SLOTS;
    }
    switch (explain_class_of(i)) {
    case LILAC_EXPLAIN_INTEGER:
    case LILAC_EXPLAIN_CONVERT:
    case LILAC_EXPLAIN_MOVE:
        return INTEGER_SLOTS;
    default:
        return 1;
    }
}

/* Tensor cores of one warp, or warpgroup. */
static double matrix_clocks(const lilac_simt_instruction *i) {
    const lilac_simt_matrix_payload *m = &i->payload.matrix;
    if (i->code == LILAC_SIMT_OP_WGMMA) {
        return lilac_wgmma_cycles(m->n);
    }
    return (double)m->m * m->n * m->k * lilac_matrix_type_bits((lilac_matrix_type)m->a) /
           (16 * 512 * 0.625);
}

static void wait_for(chain *c, double time) {
    c->waits += time > c->now;
    c->now = larger(larger(c->now, c->last), time);
    c->last = larger(c->last, c->now);
    c->base = c->now;
    c->slots = 0;
}

/* What an asynchronous instruction starts, or a wait or barrier awaits. */
static void follow_groups(chain *c, const lilac_simt_instruction *i, double start) {
    switch (i->code) {
    case LILAC_SIMT_OP_WGMMA:
        c->tensor = larger(start, c->tensor) + matrix_clocks(i);
        c->products.open = larger(c->products.open, c->tensor + WGMMA);
        break;
    case LILAC_SIMT_OP_WGMMA_COMMIT:
        commit(&c->products);
        break;
    case LILAC_SIMT_OP_WGMMA_WAIT:
        wait_for(c, completion(&c->products, i->payload.wgmma_wait.groups));
        break;
    case LILAC_SIMT_OP_CP_ASYNC:
        c->copies.open = larger(c->copies.open, start + COPY + memory_clocks(c, i));
        break;
    case LILAC_SIMT_OP_CP_ASYNC_COMMIT:
        commit(&c->copies);
        break;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT:
        wait_for(c, completion(&c->copies, i->immediate));
        break;
    case LILAC_SIMT_OP_CP_ASYNC_WAIT_ALL:
        wait_for(c, larger(c->copies.open, completion(&c->copies, 0)));
        break;
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
    case LILAC_SIMT_OP_CP_BULK_LOAD:
        c->boxes.open = larger(c->boxes.open, start + COPY + memory_clocks(c, i));
        break;
    case LILAC_SIMT_OP_MBARRIER_WAIT:
        wait_for(c, completion(&c->boxes, (int64_t)c->ahead - 1));
        break;
    case LILAC_SIMT_OP_BARRIER:
    case LILAC_SIMT_OP_GROUP_BARRIER:
    case LILAC_SIMT_OP_NAMED_BARRIER_SYNC:
        wait_for(c, c->last + BARRIER);
        break;
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        wait_for(c, c->last + CLUSTER_BARRIER);
        break;
    default:
        break;
    }
}

static void step(chain *c, const lilac_simt_instruction *i) {
    double start = c->now;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        start = larger(start, c->ready[i->operands[k]]);
    }
    follow_groups(c, i, start);
    double done = start + latency_of(c, i);
    if (i->code == LILAC_SIMT_OP_WGMMA || i->code == LILAC_SIMT_OP_WGMMA_WAIT) {
        start = done = c->now; /* registers of wgmma are awaited by wgmma.wait */
    } else if (i->code == LILAC_SIMT_OP_MMA) {
        start = larger(start, c->tensor);
        c->tensor = start + matrix_clocks(i);
        done = start + MATRIX;
    }
    const double slots = explain_slots(c->e, i) * c->shared * unit_slots(i);
    c->slots += slots;
    c->busy += slots;
    c->last = larger(c->last, larger(start, c->base + c->slots));
    for (uint32_t k = 0; k < i->result_count; k++) {
        c->ready[i->result + k] = done;
    }
}

static void visit(chain *c, const lilac_simt_body *body, uint32_t *next) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        const explain_branch *branch = i->body_count > 0 ? &c->e->branches[(*next)++] : NULL;
        if (branch == NULL) {
            step(c, i);
            continue;
        }
        const bool loop = i->code == LILAC_SIMT_OP_LOOP || i->code == LILAC_SIMT_OP_WHILE;
        for (uint32_t b = 0; b < i->body_count; b++) {
            const double part =
                branch->entries > 0 ? branch->taken[b < 2 ? b : 1] / branch->entries : 0;
            if (!loop && part >= 0.5) {
                visit(c, i->bodies[b], next);
            } else {
                *next += explain_branches_in(i->bodies[b]);
            }
        }
        if (loop) {
            wait_for(c, c->last);
        }
        for (uint32_t k = 0; k < i->result_count; k++) {
            c->ready[i->result + k] = c->now;
        }
    }
}

/* ---- iterations --------------------------------------------------------------------------- */

static double iterate(chain *c, const lilac_simt_instruction *loop, uint32_t next) {
    const lilac_simt_body *body = loop->bodies[loop->body_count - 1];
    const uint32_t first = loop->code == LILAC_SIMT_OP_LOOP;
    double total = 0;
    for (uint32_t n = 0; n < ITERATIONS; n++) {
        uint32_t at = next;
        c->now = c->last = c->base = c->slots = c->busy = 0;
        c->waits = 0;
        for (uint32_t b = 0; b < loop->body_count; b++) {
            visit(c, loop->bodies[b], &at);
        }
        commit(&c->boxes);
        const double time = c->last;
        double *passed = lilac_heap_grow(NULL, (body->last->operand_count + 1u) * sizeof *passed);
        for (uint32_t k = 0; k < body->last->operand_count; k++) {
            passed[k] = c->ready[body->last->operands[k]] - time;
        }
        for (uint32_t v = 0; v < c->e->kernel->value_count; v++) {
            c->ready[v] = 0;
        }
        for (uint32_t k = 0; k < body->last->operand_count && k + first < body->argument_count;
             k++) {
            c->ready[body->argument + first + k] = passed[k];
        }
        lilac_heap_free(passed);
        shift_groups(&c->copies, time);
        shift_groups(&c->products, time);
        shift_groups(&c->boxes, time);
        c->tensor -= time;
        total += n >= FILLING ? time : 0;
    }
    return total / (ITERATIONS - FILLING);
}

static void reset(chain *c) {
    memset(c->ready, 0, c->e->kernel->value_count * sizeof *c->ready);
    clear_groups(&c->copies);
    clear_groups(&c->products);
    clear_groups(&c->boxes);
    c->now = c->last = c->base = c->slots = c->busy = c->tensor = 0;
}

static void find(chain *c, const lilac_simt_body *body, uint32_t *next, uint32_t program) {
    lilac_explanation *e = c->e;
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->body_count == 0) {
            continue;
        }
        const explain_branch *branch = &e->branches[(*next)++];
        const uint32_t segment = explain_segment_of(e, i);
        if (segment > 0) {
            explain_segment *s = &e->segments[segment];
            reset(c);
            const double time = iterate(c, i, *next);
            if (branch->taken[i->body_count - 1] > 0) {
                s->clocks = time;
                s->waits = c->waits;
                s->busy = c->busy;
                s->program = program;
                s->entries += branch->entries / e->samples;
                s->iterations += branch->taken[i->body_count - 1] / e->samples;
            }
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            find(c, i->bodies[b], next, i->code == LILAC_SIMT_OP_PROGRAMS ? b + 1 : program);
        }
    }
}

void explain_find_chains(lilac_explanation *e) {
    chain c = {.e = e,
               .load = load_of(e),
               .ahead = explain_copies_ahead(e),
               .shared = e->kernel->num_warps > 4 ? e->kernel->num_warps / 4.0 : 1};
    uint32_t next = 0;
    c.ready = lilac_heap_grow(NULL, e->kernel->value_count * sizeof *c.ready);
    reset(&c);
    visit(&c, e->kernel->body, &next);
    e->segments[0].clocks = c.last;
    e->segments[0].busy = c.busy;
    e->segments[0].entries = e->segments[0].iterations = 1;
    next = 0;
    find(&c, e->kernel->body, &next, 0);
    lilac_heap_free(c.ready);
}
