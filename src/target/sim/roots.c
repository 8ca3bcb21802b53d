/* The parameters that the addresses of stores and atomic operations are computed from.
 *
 * The least fixpoint of: a parameter's value has that parameter as its root; a pure operation's
 * result has the roots of its operands, and so have values that loops and branches pass on or that
 * lanes exchange; what is loaded from shared memory has the roots of all that is stored there; an
 * integer of 64 bits loaded from global memory may be any pointer. */
#include "checks/races.h"

#include <string.h>

typedef struct tracer {
    const lilac_simt_kernel *kernel;
    uint64_t *roots; /* by value */
    uint64_t in_shared, stored;
    bool changed;
    bool copies; /* the kernel has asynchronous ones */
} tracer;

static void add(tracer *t, lilac_simt_value value, uint64_t roots) {
    if (roots & ~t->roots[value]) {
        t->roots[value] |= roots;
        t->changed = true;
    }
}

static void pass(tracer *t, lilac_simt_value first, const lilac_simt_value *values,
                 uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        add(t, first + k, t->roots[values[k]]);
    }
}

static uint64_t roots_of_all(const tracer *t, const lilac_simt_instruction *i) {
    uint64_t all = 0;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        all |= t->roots[i->operands[k]];
    }
    return all;
}

static uint64_t roots_of_result(const tracer *t, const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_PARAM:
        return i->immediate < 63 ? UINT64_C(1) << i->immediate : LILAC_SIM_ANY_ROOT;
    case LILAC_SIMT_OP_LD_SHARED:
    case LILAC_SIMT_OP_LD_CLUSTER:
    case LILAC_SIMT_OP_LD_MATRIX:
    case LILAC_SIMT_OP_WGMMA:
    case LILAC_SIMT_OP_ATOMIC_SHARED: {
        bool copied = t->copies && t->kernel->values[i->result].type == LILAC_SIMT_I64;
        return t->in_shared | roots_of_all(t, i) | (copied ? LILAC_SIM_ANY_ROOT : 0);
    }
    case LILAC_SIMT_OP_LD_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_CAS_GLOBAL:
        return t->kernel->values[i->result].type == LILAC_SIMT_I64 ? LILAC_SIM_ANY_ROOT : 0;
    default:
        return roots_of_all(t, i);
    }
}

static void trace_memory(tracer *t, const lilac_simt_instruction *i) {
    uint64_t before = t->in_shared;
    switch (i->code) {
    case LILAC_SIMT_OP_ST_SHARED:
    case LILAC_SIMT_OP_ST_CLUSTER:
    case LILAC_SIMT_OP_ST_MATRIX:
    case LILAC_SIMT_OP_ATOMIC_SHARED:
        t->in_shared |= roots_of_all(t, i);
        t->changed |= t->in_shared != before;
        break;
    case LILAC_SIMT_OP_CP_BULK_LOAD:
    case LILAC_SIMT_OP_CP_TENSOR_LOAD:
    case LILAC_SIMT_OP_CP_ASYNC: /* global memory may hold pointers */
        t->changed |= !t->copies;
        t->copies = true;
        break;
    case LILAC_SIMT_OP_CP_BULK_STORE:
    case LILAC_SIMT_OP_CP_BULK_REDUCE:
    case LILAC_SIMT_OP_CP_TENSOR_STORE:
    case LILAC_SIMT_OP_CP_TENSOR_REDUCE: {
        bool predicated = t->kernel->values[i->operands[1]].type == LILAC_SIMT_I1;
        uint64_t roots = t->roots[i->operands[1 + predicated]];
        t->stored |= roots ? roots : LILAC_SIM_ANY_ROOT;
        break;
    }
    case LILAC_SIMT_OP_ST_GLOBAL:
    case LILAC_SIMT_OP_ATOMIC_GLOBAL:
    case LILAC_SIMT_OP_CAS_GLOBAL: {
        uint64_t roots = t->roots[i->operands[0]];
        t->stored |= roots ? roots : LILAC_SIM_ANY_ROOT;
        break;
    }
    default:
        break;
    }
}

static void trace(tracer *t, const lilac_simt_body *body);

static void trace_bodies(tracer *t, const lilac_simt_instruction *i) {
    lilac_simt_body *const *bodies = i->bodies;
    for (uint32_t k = 0; k < i->body_count; k++) {
        trace(t, bodies[k]);
    }
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP: {
        uint32_t count = i->operand_count - 3u;
        add(t, bodies[0]->argument, roots_of_all(t, i));
        pass(t, bodies[0]->argument + 1, i->operands + 3, count);
        pass(t, bodies[0]->argument + 1, bodies[0]->last->operands, count);
        for (uint32_t k = 0; k < count; k++) {
            add(t, i->result + k, t->roots[bodies[0]->argument + 1 + k]);
        }
        break;
    }
    case LILAC_SIMT_OP_IF:
        pass(t, i->result, bodies[0]->last->operands, i->result_count);
        pass(t, i->result, bodies[1]->last->operands, i->result_count);
        break;
    case LILAC_SIMT_OP_PROGRAMS:
        break;
    default: /* while */
        pass(t, bodies[0]->argument, i->operands, i->operand_count);
        pass(t, bodies[0]->argument, bodies[1]->last->operands, i->operand_count);
        pass(t, bodies[1]->argument, bodies[0]->last->operands + 1, i->result_count);
        pass(t, i->result, bodies[0]->last->operands + 1, i->result_count);
        break;
    }
}

static void trace(tracer *t, const lilac_simt_body *body) {
    for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
        if (i->body_count) {
            trace_bodies(t, i);
            continue;
        }
        trace_memory(t, i);
        for (uint32_t k = 0; k < i->result_count; k++) {
            if (t->kernel->values[i->result + k].type != LILAC_SIMT_I1) {
                add(t, i->result + k, roots_of_result(t, i));
            }
        }
    }
}

uint64_t lilac_sim_stored_roots(const lilac_simt_kernel *kernel) {
    tracer t = {.kernel = kernel};
    t.roots = lilac_heap_grow(NULL, sizeof *t.roots * (kernel->value_count + 1));
    memset(t.roots, 0, sizeof *t.roots * (kernel->value_count + 1));
    do {
        t.changed = false;
        t.stored = 0;
        trace(&t, kernel->body);
    } while (t.changed);
    lilac_heap_free(t.roots);
    return t.stored;
}
