/* wgmma in flight: registers, groups, completion (wgmma.h). */
#include "wgmma.h"

#include "block.h"

#include <string.h>

enum { GROUP_THREADS = 128, MOST_GROUPS = 7, GARBAGE = 0xA5 };

/* A wgmma between its issue and its completion, of all warpgroups of the block. */
typedef struct flight {
    const lilac_sim_step *step;
    uint64_t group;         /* commits before its issue */
    uint64_t issued;        /* clock */
    struct flight *chained; /* its accumulators are that one's results; NULL: they are known */
    lilac_simt_value holder[LILAC_SIM_MOST_REGISTERS]; /* of each result; 0: a later wgmma's */
    uint32_t array[LILAC_SIM_MOST_REGISTERS];          /* of the holder */
    uint64_t (*descriptors)[2];                        /* of each warpgroup */
    lilac_sim_operands *operands;
    uint32_t (*accumulators)[GROUP_THREADS]; /* of register i of warpgroup g: g · d_count + i */
} flight;

/* What is known of a value of SIMT IR. */
typedef struct value_state {
    flight *flight; /* it is result number `index` of that one; NULL: it is known */
    uint32_t index;
    bool gone;        /* a wgmma has taken its register */
    uint64_t touched; /* clock of the last access by anything but a wgmma */
} value_state;

typedef struct block_state {
    value_state *values;
    flight **flying; /* in the order of their issues */
    uint32_t count, capacity;
    uint64_t commits, clock, fenced; /* fenced: clock of the last fence; 0: none */
} block_state;

struct lilac_sim_wgmmas {
    lilac_simt_value *homes;
    uint32_t value_count, blocks;
    block_state *states;
};

/* ---- storage ---------------------------------------------------------------------------- */

lilac_sim_wgmmas *lilac_sim_wgmmas_create(const lilac_sim_program *program) {
    const lilac_simt_kernel *kernel = program->kernel;
    if (!program->wgmmas)
        return NULL;
    lilac_sim_wgmmas *all = lilac_heap_grow(NULL, sizeof *all);
    *all = (lilac_sim_wgmmas){.value_count = kernel->value_count, .blocks = kernel->num_ctas};
    all->homes = lilac_heap_grow(NULL, sizeof *all->homes * kernel->value_count);
    lilac_simt_register_homes(kernel, all->homes);
    all->states = lilac_heap_grow(NULL, sizeof *all->states * all->blocks);
    for (uint32_t k = 0; k < all->blocks; k++) {
        size_t size = sizeof(value_state) * all->value_count;
        all->states[k] = (block_state){.values = lilac_heap_grow(NULL, size)};
        memset(all->states[k].values, 0, size);
    }
    return all;
}

static void drop(flight *f) {
    lilac_heap_free(f->descriptors);
    lilac_heap_free(f->operands);
    lilac_heap_free(f->accumulators);
    lilac_heap_free(f);
}

void lilac_sim_wgmmas_forget(lilac_sim_wgmmas *all) {
    for (uint32_t k = 0; all && k < all->blocks; k++) {
        block_state *b = &all->states[k];
        for (uint32_t n = 0; n < b->count; n++)
            drop(b->flying[n]);
        b->count = 0;
        b->commits = b->clock = b->fenced = 0;
        memset(b->values, 0, sizeof *b->values * all->value_count);
    }
}

void lilac_sim_wgmmas_destroy(lilac_sim_wgmmas *all) {
    if (!all)
        return;
    lilac_sim_wgmmas_forget(all);
    for (uint32_t k = 0; k < all->blocks; k++) {
        lilac_heap_free(all->states[k].values);
        lilac_heap_free(all->states[k].flying);
    }
    lilac_heap_free(all->states);
    lilac_heap_free(all->homes);
    lilac_heap_free(all);
}

static block_state *state_of(const lilac_sim_worker *w) {
    return &w->wgmmas->states[w->rank];
}

/* ---- findings --------------------------------------------------------------------------- */

static void find(lilac_sim_worker *w, lilac_sim_finding_kind kind, const lilac_sim_step *at,
                 const lilac_sim_step *other) {
    w->counters.races++;
    lilac_sim_worker_find(w, (lilac_sim_finding){.kind = kind,
                                                 .at = at->source,
                                                 .other = other ? other->source : NULL,
                                                 .block = w->block});
}

/* ---- completion ------------------------------------------------------------------------- */

/* The operands now, and a finding where they have changed. */
static void read_again(lilac_sim_worker *w, flight *f, const lilac_sim_step *wait, uint32_t group) {
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    lilac_sim_operands *now = lilac_heap_grow(NULL, sizeof *now);
    bool in_b;
    uint32_t at;
    now->accumulate = f->operands[group].accumulate;
    bool good = lilac_sim_operands_read(w, f->step, f->descriptors[group], group, false, now);
    if (good && lilac_sim_operands_differ(m, &f->operands[group], now, &in_b, &at)) {
        w->counters.races++;
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_WGMMA_OPERAND,
                                                     .at = f->step->source,
                                                     .other = wait->source,
                                                     .block = w->block,
                                                     .address = at,
                                                     .width = in_b,
                                                     .thread = group * GROUP_THREADS});
    }
    if (good)
        f->operands[group] = *now;
    lilac_heap_free(now);
}

/* Gives the results to the values that hold them and to the wgmma that goes on with them. */
static void give_results(lilac_sim_worker *w, flight *f) {
    block_state *b = state_of(w);
    uint32_t count = w->program->matrices[f->step->access].d_count;
    uint32_t groups = w->program->warps / LILAC_SIM_GROUP_WARPS;
    for (uint32_t k = 0; k < count; k++) {
        if (!f->holder[k])
            continue;
        for (uint32_t g = 0; g < groups; g++)
            memcpy(w->registers + f->array[k] + (size_t)g * GROUP_THREADS * 4,
                   f->accumulators[g * count + k], GROUP_THREADS * 4);
        b->values[f->holder[k]].flight = NULL;
    }
    for (uint32_t n = 0; n < b->count; n++) {
        flight *next = b->flying[n];
        if (next->chained != f)
            continue;
        memcpy(next->accumulators, f->accumulators, sizeof *f->accumulators * groups * count);
        next->chained = NULL;
    }
}

static void complete(lilac_sim_worker *w, flight *f, const lilac_sim_step *wait) {
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    for (uint32_t g = 0; g < w->program->warps / LILAC_SIM_GROUP_WARPS; g++) {
        read_again(w, f, wait, g);
        lilac_sim_operands_multiply(m, &f->operands[g], f->accumulators + g * m->d_count);
    }
    give_results(w, f);
    drop(f);
}

/* Completes the oldest `count` wgmmas. */
static void complete_first(lilac_sim_worker *w, uint32_t count, const lilac_sim_step *wait) {
    block_state *b = state_of(w);
    for (uint32_t n = 0; n < count; n++) {
        flight *f = b->flying[0];
        memmove(b->flying, b->flying + 1, sizeof(flight *) * --b->count);
        complete(w, f, wait);
    }
}

/* A value in flight would have to be copied: an assembler waits for it. */
static void serialise(lilac_sim_worker *w, const lilac_sim_step *s, const flight *f) {
    find(w, FINDING_WGMMA_SERIALISED, s, f->step);
    complete_first(w, state_of(w)->count, s);
}

/* ---- other steps ------------------------------------------------------------------------ */

/* A step reads the value. */
static void use(lilac_sim_worker *w, const lilac_sim_step *s, lilac_simt_value value) {
    block_state *b = state_of(w);
    value_state *v = &b->values[value];
    if (v->flight)
        find(w, FINDING_WGMMA_REGISTER, s, v->flight->step);
    else if (v->gone)
        find(w, FINDING_WGMMA_REGISTER, s, NULL);
    v->touched = b->clock;
}

/* How many operands of its instruction a step reads; the others are copied by steps of their own. */
static uint32_t operands_read(const lilac_simt_instruction *i) {
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        return 3;
    case LILAC_SIMT_OP_IF:
    case LILAC_SIMT_OP_CONDITION:
        return 1;
    case LILAC_SIMT_OP_WHILE:
    case LILAC_SIMT_OP_YIELD:
    case LILAC_SIMT_OP_WGMMA_WAIT:
        return 0;
    default:
        return i->operand_count;
    }
}

/* A copy between values: from s->target to s->access; 0: a place that is no value. */
static void transfer(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_simt_value *homes = w->wgmmas->homes;
    block_state *b = state_of(w);
    lilac_simt_value source = s->target, target = s->access;
    value_state *from = &b->values[source], *to = &b->values[target];
    bool same = source && target && homes[source] == homes[target];
    if (source && from->flight && !same)
        serialise(w, s, from->flight);
    if (source && from->gone)
        use(w, s, source);
    if (!target)
        return;
    uint64_t touched = same ? from->touched : b->clock;
    *to = (value_state){.touched = touched};
    if (source && from->flight) {
        flight *f = from->flight;
        *to = (value_state){.flight = f, .index = from->index, .touched = touched};
        f->holder[from->index] = target;
        f->array[from->index] = s->out;
        *from = (value_state){.gone = true, .touched = touched};
    }
}

void lilac_sim_wgmma_watch(lilac_sim_worker *w, const lilac_sim_step *s) {
    block_state *b = state_of(w);
    const lilac_simt_instruction *i = s->source;
    b->clock++;
    if (!i)
        return;
    if (s->kind == STEP_LANES && (s->access || s->target)) {
        transfer(w, s);
        return;
    }
    for (uint32_t k = 0; k < operands_read(i); k++)
        use(w, s, i->operands[k]);
    for (uint32_t k = 0; i->body_count == 0 && k < i->result_count; k++)
        b->values[i->result + k] = (value_state){.touched = b->clock};
}

/* ---- issue ------------------------------------------------------------------------------ */

/* The wgmma in flight whose results are the accumulators, in order and in the registers of this one's
 * results; NULL where they are known. Where they are in flight otherwise, all completes. */
static flight *find_chain(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    block_state *b = state_of(w);
    uint32_t count = w->program->matrices[s->access].d_count;
    flight *chain = b->values[i->operands[0]].flight;
    for (uint32_t k = 0; k < count; k++) {
        const value_state *v = &b->values[i->operands[k]];
        bool fits = v->flight == chain &&
                    (!chain || (v->index == k && homes[i->operands[k]] == homes[i->result + k] &&
                                w->program->matrices[chain->step->access].d_count == count));
        if (!fits) {
            serialise(w, s, v->flight ? v->flight : chain);
            return NULL;
        }
    }
    return chain;
}

/* Was a fence executed since the registers were accessed by anything but a wgmma of this shape? */
static bool is_fenced(lilac_sim_worker *w, const lilac_sim_step *s, const flight *chain) {
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    const block_state *b = state_of(w);
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    bool fenced = b->fenced > 0;
    if (chain) {
        const lilac_sim_matrix *before = &w->program->matrices[chain->step->access];
        bool same = memcmp(&m->shape, &before->shape, sizeof m->shape) == 0;
        fenced &= same || b->fenced > chain->issued;
    }
    for (uint32_t k = 0; k < m->d_count && !chain; k++)
        if (homes[i->operands[k]] == homes[i->result + k]) /* else a copy, with a fence behind */
            fenced &= b->values[i->operands[k]].touched < b->fenced;
    for (uint32_t k = 0; k < m->a_count && m->payload->registers; k++)
        fenced &= b->values[i->operands[m->d_count + k]].touched < b->fenced;
    return fenced;
}

/* Reads operands and accumulators of each warpgroup; false: a trap. */
static bool record(lilac_sim_worker *w, flight *f) {
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    for (uint32_t g = 0; g < w->program->warps / LILAC_SIM_GROUP_WARPS; g++) {
        lilac_sim_operands *operands = &f->operands[g];
        memset(operands, 0, sizeof *operands);
        if (!lilac_sim_operands_agree(w, f->step, g, f->descriptors[g], &operands->accumulate) ||
            !lilac_sim_operands_read(w, f->step, f->descriptors[g], g, true, operands))
            return false;
        for (uint32_t k = 0; k < m->d_count; k++)
            memcpy(f->accumulators[g * m->d_count + k],
                   w->registers + m->c[k] + (size_t)g * GROUP_THREADS * 4, GROUP_THREADS * 4);
    }
    return true;
}

/* The results are in flight, the accumulators gone where the results have their registers. */
static void take_registers(lilac_sim_worker *w, flight *f) {
    const lilac_simt_instruction *i = f->step->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    block_state *b = state_of(w);
    for (uint32_t k = 0; k < m->d_count; k++) {
        lilac_simt_value from = i->operands[k], to = i->result + k;
        if (homes[from] == homes[to])
            b->values[from] = (value_state){.gone = true, .touched = b->values[from].touched};
        if (f->chained)
            f->chained->holder[k] = 0;
        b->values[to] = (value_state){.flight = f, .index = k};
        f->holder[k] = to;
        f->array[k] = m->d[k];
        memset(w->registers + m->d[k], GARBAGE, (size_t)w->program->threads * 4);
    }
}

static bool issue(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint32_t groups = w->program->warps / LILAC_SIM_GROUP_WARPS;
    block_state *b = state_of(w);
    flight *chain = find_chain(w, s);
    for (uint32_t k = 0; k < m->d_count; k++)
        if (b->values[i->operands[k]].gone)
            use(w, s, i->operands[k]);
    for (uint32_t k = 0; k < m->a_count && m->payload->registers; k++)
        if (b->values[i->operands[m->d_count + k]].flight)
            use(w, s, i->operands[m->d_count + k]);
    if (!is_fenced(w, s, chain))
        find(w, FINDING_WGMMA_FENCE, s, NULL);
    flight *f = lilac_heap_grow(NULL, sizeof *f);
    *f = (flight){.step = s, .group = b->commits, .issued = b->clock, .chained = chain};
    f->descriptors = lilac_heap_grow(NULL, sizeof *f->descriptors * groups);
    f->operands = lilac_heap_grow(NULL, sizeof *f->operands * groups);
    f->accumulators = lilac_heap_grow(NULL, sizeof *f->accumulators * groups * m->d_count);
    if (!record(w, f)) {
        drop(f);
        return false;
    }
    take_registers(w, f);
    if (b->count == b->capacity) {
        b->capacity = b->capacity * 2 + 16;
        b->flying = lilac_heap_grow(b->flying, sizeof(flight *) * b->capacity);
    }
    b->flying[b->count++] = f;
    w->counters.wgmmas += w->program->warps;
    w->counters.wgmma_cycles += (uint64_t)groups * lilac_wgmma_cycles(m->shape.n);
    return true;
}

/* ---- groups ----------------------------------------------------------------------------- */

static void wait(lilac_sim_worker *w, const lilac_sim_step *s) {
    block_state *b = state_of(w);
    uint64_t left = s->immediate > MOST_GROUPS ? MOST_GROUPS : s->immediate;
    uint32_t covered = 0;
    while (covered < b->count && b->flying[covered]->group < b->commits &&
           b->commits - b->flying[covered]->group > left)
        covered++;
    if (b->count > 0 && b->flying[b->count - 1]->group == b->commits)
        find(w, FINDING_WGMMA_UNCOMMITTED, b->flying[b->count - 1]->step, s);
    complete_first(w, covered, s);
}

bool lilac_sim_wgmma_step(lilac_sim_worker *w, const lilac_sim_step *s) {
    block_state *b = state_of(w);
    b->clock++;
    w->snapshot.disturbed = true;
    switch (s->kind) {
    case STEP_WGMMA:
        return issue(w, s);
    case STEP_WGMMA_FENCE:
        b->fenced = b->clock;
        return true;
    case STEP_WGMMA_COMMIT:
        b->commits++;
        return true;
    default:
        wait(w, s);
        return true;
    }
}

void lilac_sim_wgmmas_end(lilac_sim_worker *w) {
    if (!w->wgmmas)
        return;
    block_state *b = state_of(w);
    for (uint32_t n = 0; n < b->count; n++) {
        find(w, FINDING_WGMMA_NOT_AWAITED, b->flying[n]->step, NULL);
        drop(b->flying[n]);
    }
    b->count = 0;
}
