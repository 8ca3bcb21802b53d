/* The recurrences of a loop: how far apart its iterations are if every unit is free whenever an
 * operand is ready. Along a cycle of values that the loop carries, latencies add up:
 *
 *     ready of a result      latest operand + latency of the instruction
 *     a product in place     latest operand + clocks of the tensor cores: the next product of the
 *                            sum follows at once, any other use WGMMA clocks later
 *     argument k             result k that the iteration before yields
 *
 * The interval is the growth of the latest carried value from iteration to iteration, after some
 * iterations: the largest mean of a cycle. Waits, barriers and what is in memory do not count: they
 * are those of a schedule. */
#include "internal.h"

enum { ITERATIONS = 24, BEGIN = 12 };

typedef struct recurrence {
    const lilac_explanation *e;
    double *ready;  /* by value */
    bool *products; /* by value: a result of wgmma that no other instruction has used */
    double shared;  /* warpgroups that share the tensor cores */
} recurrence;

static double larger(double a, double b) {
    return a > b ? a : b;
}

static double start_of(const recurrence *r, const lilac_simt_instruction *i) {
    const bool product = i->code == LILAC_SIMT_OP_WGMMA || i->code == LILAC_SIMT_OP_WGMMA_WAIT;
    double start = 0;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        const uint32_t v = i->operands[k];
        const double late = r->products[v] && !product ? EXPLAIN_WGMMA_LATENCY : 0;
        start = larger(start, r->ready[v] + late);
    }
    return start;
}

static void step(recurrence *r, const lilac_simt_instruction *i) {
    const double start = start_of(r, i);
    const bool wait = i->code == LILAC_SIMT_OP_WGMMA_WAIT, product = i->code == LILAC_SIMT_OP_WGMMA;
    const double latency = product ? explain_matrix_clocks(i) * r->shared
                           : wait  ? 0
                                   : explain_latency(i);
    for (uint32_t k = 0; k < i->result_count; k++) {
        const uint32_t v = i->result + k;
        r->products[v] = product || (wait && r->products[i->operands[k]]);
        r->ready[v] = (wait ? r->ready[i->operands[k]] : start) + latency;
    }
}

static void visit(recurrence *r, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        step(r, i);
        for (uint32_t b = 0; b < i->body_count; b++) {
            const lilac_simt_instruction *last = i->bodies[b]->last;
            visit(r, i->bodies[b]);
            for (uint32_t k = 0; k < i->result_count && k < last->operand_count; k++) {
                const uint32_t v = i->result + k, from = last->operands[k];
                r->products[v] |= r->products[from];
                r->ready[v] = larger(r->ready[v], r->ready[from]);
            }
        }
    }
}

/* The latest carried value of the iteration; its arguments are those of the next one. */
static double iterate(recurrence *r, const lilac_simt_body *body, double *next, bool *products) {
    const lilac_simt_instruction *yield = body->last;
    const uint32_t first = body->argument_count - yield->operand_count;
    double latest = 0;
    visit(r, body);
    for (uint32_t k = 0; k < yield->operand_count; k++) {
        next[k] = r->ready[yield->operands[k]];
        products[k] = r->products[yield->operands[k]];
        latest = larger(latest, next[k]);
    }
    for (uint32_t k = 0; k < yield->operand_count; k++) {
        r->ready[body->argument + first + k] = next[k];
        r->products[body->argument + first + k] = products[k];
    }
    return latest;
}

double explain_recurrence(lilac_explanation *e, const lilac_simt_instruction *loop, double warps) {
    const lilac_simt_body *body = loop->bodies[0];
    const uint32_t count = e->kernel->value_count + 1;
    recurrence r = {.e = e,
                    .ready = lilac_arena_array(e->arena, double, count),
                    .products = lilac_arena_array(e->arena, bool, count),
                    .shared = warps > 4 ? warps / 4 : 1};
    double *next = lilac_arena_array(e->arena, double, body->last->operand_count + 1u);
    bool *products = lilac_arena_array(e->arena, bool, body->last->operand_count + 1u);
    double begin = 0, end = 0;
    if (loop->code != LILAC_SIMT_OP_LOOP || body->argument_count < body->last->operand_count) {
        return 0;
    }
    for (uint32_t v = 0; v < count; v++) {
        r.ready[v] = 0;
        r.products[v] = false;
    }
    for (uint32_t n = 0; n < ITERATIONS; n++) {
        end = iterate(&r, body, next, products);
        begin = n + 1 == BEGIN ? end : begin;
    }
    return (end - begin) / (ITERATIONS - BEGIN);
}
