/* How long one iteration of a loop takes if its warps have the multiprocessor for themselves:
 *
 *     ready of a value    start of its instruction + latency of its unit; of a load, not before the
 *                         loads before it have been transferred
 *     start               when its operands are ready, the instructions before it have been issued,
 *                         and its unit is free; not before the last wait or barrier
 *     iteration           from the first start to the last; or what its instructions occupy of the
 *                         issue slots, the unit of integers and the special function unit
 *
 * Accesses of all warps follow each other on the path to L1 and shared memory, a clock for each
 * wavefront. What L1 does not have is transferred at the rate of L2, and what memory delivers at the
 * multiprocessor's part of its bandwidth.
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

enum { ITERATIONS = 12, FILLING = 6, GROUPS = 32, WARPS = 4 /* with a scheduler each */ };

/* Clocks from an instruction to its use. Of memory: if L1 or L2 has the line; if memory delivers it
 * on an idle device, and on a device whose multiprocessors have that many warps or more (`late` in
 * costs.def). The others are estimates, but for FENCE: the error of half of lilac.bench's cases is
 * smaller with it than with 150. */
static const double L1 = 35, L2 = 300, IDLE_MEMORY = 1000, BUSY_MEMORY = 1400, BUSY_WARPS = 16;
static const double COPY = 100; /* to shared memory, beyond those */
static const double ARITHMETIC = 4.5, SPECIAL = 20, SHARED = 30, SHUFFLE = 24, VOTE = 14;
static const double MATRIX = 33, WGMMA = EXPLAIN_WGMMA_LATENCY, BARRIER = 28, FENCE = 250,
                    CLUSTER_BARRIER = 224;
/* Bytes a clock that a multiprocessor receives at most; and of all of them, from L2 and from memory:
 * 13.4 and 4.6 TB/s at 1.92 GHz, close to what is fitted in predict.c. */
static const double MOST_BYTES = 64, L2_BYTES = 7000, MEMORY_BYTES = 2400;
/* Clocks of a multiprocessor for a line that a tensor copy requests, in whole or in part: chosen
 * like FENCE. */
static const double REQUEST = 2.1;
/* Clocks of a unit of a scheduler for an issue slot. */
static const double SPECIAL_SLOTS = 8, INTEGER_SLOTS = 1.5;

/* What instructions occupy in a scheduler. */
enum { ISSUE, INTEGERS, SPECIALS, UNITS };

typedef struct groups {
    double done[GROUPS]; /* times of completion, the newest at `next` - 1 */
    uint32_t next;
    double open; /* of those that no commit has closed */
} groups;

typedef struct chain {
    lilac_explanation *e;
    double *ready;       /* by value */
    double now;          /* no later instruction starts before */
    double last;         /* start of the instruction that starts last */
    double tensor;       /* the tensor core is free */
    double special;      /* likewise the special function unit of a scheduler */
    double port;         /* likewise the path from registers to L1 and shared memory */
    double fill;         /* likewise that from L2 to the multiprocessor */
    double memory;       /* likewise its part of the memory */
    double base;         /* the last wait or barrier ended */
    double slots[UNITS]; /* of a scheduler since then, of all warps that share it, by unit */
    double busy[UNITS];  /* likewise of one iteration */
    double shared;       /* warps that share a scheduler */
    double load;         /* of the memory: 0 to 1 */
    double device;       /* multiprocessors that have a block */
    double ahead;        /* iterations between the start of a tensor copy and its use */
    groups copies, products, boxes;
    uint32_t waits;
} chain;

static double larger(double a, double b) {
    return a > b ? a : b;
}

static double largest(const double slots[UNITS]) {
    return larger(slots[ISSUE], larger(slots[INTEGERS], slots[SPECIALS]));
}

static void clear(double slots[UNITS]) {
    memset(slots, 0, UNITS * sizeof *slots);
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
    const double cached = number > 0 ? c->e->cached[number - 1] : 0;
    return L2 + share * (IDLE_MEMORY + c->load * (BUSY_MEMORY - IDLE_MEMORY) - L2) -
           cached * (L2 - L1);
}

static double busy_multiprocessors(const lilac_explanation *e) {
    const uint32_t *grid = e->options.launch.grid;
    const double blocks = (double)grid[0] * grid[1] * grid[2] * e->compilation.target.num_ctas;
    return blocks > 0 && blocks < EXPLAIN_MULTIPROCESSORS ? blocks : EXPLAIN_MULTIPROCESSORS;
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

double explain_copy_latency(const lilac_explanation *e) {
    return COPY + IDLE_MEMORY + load_of(e) * (BUSY_MEMORY - IDLE_MEMORY);
}

double explain_latency(const lilac_simt_instruction *i) {
    switch (explain_class_of(i)) {
    case LILAC_EXPLAIN_GLOBAL:
        return i->result_count > 0 ? L2 : 0;
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

static double latency_of(const chain *c, const lilac_simt_instruction *i) {
    return explain_class_of(i) == LILAC_EXPLAIN_GLOBAL && i->result_count > 0 ? memory_clocks(c, i)
                                                                              : explain_latency(i);
}

/* The units that execute an instruction with this number of issue slots, in this number of warps. */
static void add_slots(double sum[UNITS], const lilac_explanation *e,
                      const lilac_simt_instruction *i, double slots, double warps) {
    sum[ISSUE] += slots;
    if (explain_is_special(e, i)) {
        sum[SPECIALS] += SPECIAL_SLOTS * warps;
    } else if (explain_is_integer(i)) {
        sum[INTEGERS] += INTEGER_SLOTS * slots;
    }
}

double explain_matrix_clocks(const lilac_simt_instruction *i) {
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
    clear(c->slots);
}

/* When a unit that is free at `*unit` has worked `clocks` for a request of the time `start`. */
static double occupy(double *unit, double start, double clocks) {
    *unit = larger(*unit, start) + clocks;
    return *unit;
}

/* Clocks that the accesses of all warps by an instruction occupy: of L1, and of a multiprocessor's
 * part of the bandwidth of L2 and of memory if all of them transfer at the same time. */
typedef struct transfer {
    double lines, l2, memory;
} transfer;

static transfer transfer_of(const chain *c, const lilac_simt_instruction *i) {
    const lilac_explanation *e = c->e;
    const uint32_t number = explain_number(e, i->location);
    const explain_emitted *emitted = number > 0 ? &e->emitted[number - 1] : NULL;
    const uint32_t shared = emitted != NULL ? emitted->loads + emitted->stores : 0;
    if (emitted == NULL || emitted->accesses <= shared) {
        return (transfer){0};
    }
    const double count = emitted->accesses - shared;
    const double sector = e->compilation.target.arch->sector_bytes;
    const double bytes = e->traffic[number - 1] * sector / count;
    const double l2 =
        bytes * (1 - e->cached[number - 1]) * larger(1 / MOST_BYTES, c->device / L2_BYTES);
    const double requests = REQUEST * e->requests[number - 1] / count;
    return (transfer){.lines = e->lines[number - 1] / count,
                      .l2 = larger(l2, requests),
                      .memory = bytes * e->share[number - 1] * c->device / MEMORY_BYTES};
}

/* When an access of all warps to global memory is complete. */
static double access_global(chain *c, const lilac_simt_instruction *i, double start) {
    const transfer t = transfer_of(c, i);
    const double sent = occupy(&c->port, start, t.lines);
    const double arrives = sent + memory_clocks(c, i);
    return larger(occupy(&c->fill, arrives, t.l2), occupy(&c->memory, arrives, t.memory));
}

static double access_shared(chain *c, const lilac_simt_instruction *i, double start) {
    const uint32_t number = explain_number(c->e, i->location);
    double wavefronts = 0;
    if (number > 0) {
        const lilac_explain_counts *counts = &c->e->operations[number - 1].counts;
        const explain_emitted *emitted = &c->e->emitted[number - 1];
        const uint32_t all = emitted->loads + emitted->stores;
        wavefronts =
            all > 0
                ? (double)(counts->shared_load_wavefronts + counts->shared_store_wavefronts) / all
                : 0;
    }
    return occupy(&c->port, start, wavefronts) + SHARED;
}

/* What an asynchronous instruction starts, or a wait or barrier awaits. */
static void follow_groups(chain *c, const lilac_simt_instruction *i, double start) {
    switch (i->code) {
    case LILAC_SIMT_OP_WGMMA:
        c->tensor = larger(start, c->tensor) + explain_matrix_clocks(i) * c->shared;
        c->products.open = larger(c->products.open, c->tensor + WGMMA);
        break;
    case LILAC_SIMT_OP_WGMMA_COMMIT:
        commit(&c->products);
        break;
    case LILAC_SIMT_OP_WGMMA_WAIT:
        wait_for(c, completion(&c->products, i->payload.wgmma_wait.groups));
        break;
    case LILAC_SIMT_OP_CP_ASYNC:
        c->copies.open = larger(c->copies.open, COPY + access_global(c, i, start));
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
        c->boxes.open = larger(c->boxes.open, COPY + access_global(c, i, start));
        break;
    case LILAC_SIMT_OP_MBARRIER_WAIT:
        wait_for(c, completion(&c->boxes, (int64_t)c->ahead - 1));
        break;
    case LILAC_SIMT_OP_BARRIER:
    case LILAC_SIMT_OP_GROUP_BARRIER:
    case LILAC_SIMT_OP_NAMED_BARRIER_SYNC:
        wait_for(c, larger(c->last, c->port) + BARRIER);
        break;
    case LILAC_SIMT_OP_ATOMIC_GLOBAL: /* waits for the accesses before it, and is awaited */
        if (i->order != LILAC_SIMT_RELAXED) {
            wait_for(c, c->last + 2 * L2);
        }
        break;
    case LILAC_SIMT_OP_FENCE_PROXY_ASYNC:
        wait_for(c, larger(c->last, c->port) + FENCE);
        break;
    case LILAC_SIMT_OP_CLUSTER_BARRIER:
        wait_for(c, c->last + CLUSTER_BARRIER);
        break;
    default:
        break;
    }
}

/* When an instruction whose operands are ready at `start` is issued: the instructions before it have
 * been, and the special function unit is free. */
static double issue(chain *c, const lilac_simt_instruction *i, double start) {
    if (!explain_is_issued(i)) {
        return start;
    }
    start = larger(start, c->base + c->slots[ISSUE]);
    if (explain_is_special(c->e, i)) {
        const double clocks = SPECIAL_SLOTS * c->shared;
        start = occupy(&c->special, start, clocks) - clocks;
    } else if (explain_is_integer(i)) {
        start = larger(start, c->base + c->slots[INTEGERS]);
    }
    return start;
}

static void step(chain *c, const lilac_simt_instruction *i) {
    double start = c->now;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        start = larger(start, c->ready[i->operands[k]]);
    }
    start = issue(c, i, start);
    follow_groups(c, i, start);
    double done = start + latency_of(c, i);
    if (i->code == LILAC_SIMT_OP_WGMMA || i->code == LILAC_SIMT_OP_WGMMA_WAIT) {
        start = done = c->now; /* registers of wgmma are awaited by wgmma.wait */
    } else if (i->code == LILAC_SIMT_OP_MMA) {
        start = larger(start, c->tensor);
        c->tensor = start + explain_matrix_clocks(i) * c->shared;
        done = start + MATRIX;
    } else if (explain_class_of(i) == LILAC_EXPLAIN_SHARED) {
        done = access_shared(c, i, start);
    } else if (explain_class_of(i) == LILAC_EXPLAIN_GLOBAL && i->result_count > 0) {
        done = access_global(c, i, start);
    }
    const double slots = explain_slots(c->e, i) * c->shared;
    add_slots(c->slots, c->e, i, slots, c->shared);
    add_slots(c->busy, c->e, i, slots, c->shared);
    c->last = larger(c->last, larger(start, c->base + largest(c->slots)));
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

/* Stores and loads of words that are not in registers. */
static void spill(chain *c, uint32_t words) {
    if (words == 0) {
        return;
    }
    const double slots = 2 * words * c->shared;
    c->slots[ISSUE] += slots;
    c->busy[ISSUE] += slots;
    occupy(&c->port, c->base, WARPS * slots);
    c->last = larger(c->last, larger(c->port, c->base + largest(c->slots)));
}

static double iterate(chain *c, const lilac_simt_instruction *loop, uint32_t next,
                      uint32_t spilled) {
    const lilac_simt_body *body = loop->bodies[loop->body_count - 1];
    const uint32_t first = loop->code == LILAC_SIMT_OP_LOOP;
    double total = 0;
    for (uint32_t n = 0; n < ITERATIONS; n++) {
        uint32_t at = next;
        c->now = c->last = c->base = 0;
        clear(c->slots);
        clear(c->busy);
        c->waits = 0;
        for (uint32_t b = 0; b < loop->body_count; b++) {
            visit(c, loop->bodies[b], &at);
        }
        commit(&c->boxes);
        spill(c, spilled);
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
        c->special -= time;
        c->port -= time;
        c->fill -= time;
        c->memory -= time;
        total += n >= FILLING ? time : 0;
    }
    return total / (ITERATIONS - FILLING);
}

static void reset(chain *c) {
    memset(c->ready, 0, c->e->kernel->value_count * sizeof *c->ready);
    clear_groups(&c->copies);
    clear_groups(&c->products);
    clear_groups(&c->boxes);
    c->now = c->last = c->base = c->tensor = c->special = c->port = c->fill = c->memory = 0;
    clear(c->slots);
    clear(c->busy);
}

/* Warps that share a scheduler; warpgroups that share the tensor cores. */
static double sharing_warps(uint32_t warps) {
    return warps > 4 ? warps / 4.0 : 1;
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
            c->ahead = explain_copies_ahead(e, segment - 1);
            const double time = iterate(c, i, *next, s->tensor > 0 ? e->spilled : 0);
            if (branch->taken[i->body_count - 1] > 0) {
                s->clocks = time;
                s->waits = c->waits;
                s->busy = largest(c->busy);
                s->program = program;
                s->entries += branch->entries / e->samples;
                s->iterations += branch->taken[i->body_count - 1] / e->samples;
            }
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const bool own = i->code == LILAC_SIMT_OP_PROGRAMS;
            const double all = c->shared;
            if (own) {
                c->shared = sharing_warps(i->bodies[b]->end_warp - i->bodies[b]->first_warp);
            }
            find(c, i->bodies[b], next, own ? b + 1 : program);
            c->shared = all;
        }
    }
}

void explain_find_chains(lilac_explanation *e) {
    chain c = {.e = e,
               .load = load_of(e),
               .device = busy_multiprocessors(e),
               .shared = sharing_warps(e->kernel->num_warps)};
    uint32_t next = 0;
    c.ready = lilac_heap_grow(NULL, e->kernel->value_count * sizeof *c.ready);
    reset(&c);
    visit(&c, e->kernel->body, &next);
    e->segments[0].clocks = c.last;
    e->segments[0].busy = largest(c.busy);
    e->segments[0].entries = e->segments[0].iterations = 1;
    next = 0;
    find(&c, e->kernel->body, &next, 0);
    lilac_heap_free(c.ready);
}
