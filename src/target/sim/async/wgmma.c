/* wgmma in flight: registers, groups, completion (wgmma.h). */
#include "async/wgmma.h"

#include "block.h"

#include <string.h>

enum { GROUP_THREADS = 128, MOST_GROUPS = 7, GARBAGE = 0xA5 };

/* A wgmma of a warpgroup between its issue and its completion. */
typedef struct flight {
    const lilac_sim_step *step;
    uint64_t group;         /* commits before its issue */
    uint64_t issued;        /* clock */
    struct flight *chained; /* its accumulators are that one's results; NULL: they are known */
    lilac_simt_value holder[LILAC_SIM_MOST_REGISTERS]; /* of each result; 0: a later wgmma's */
    uint32_t array[LILAC_SIM_MOST_REGISTERS];          /* of the holder */
    uint64_t descriptors[2];
    lilac_sim_operands operands;
    uint32_t accumulators[LILAC_SIM_MOST_REGISTERS][GROUP_THREADS];
} flight;

/* What is known of a value of SIMT IR. */
typedef struct value_state {
    flight *flight; /* it is result number `index` of that one; NULL: it is known */
    uint32_t index;
    bool gone;        /* a wgmma has taken its register */
    uint64_t touched; /* clock of the last access by anything but a wgmma */
} value_state;

/* Of a warpgroup: groups, fences and registers are its own. */
typedef struct group_state {
    uint32_t number; /* in its block */
    value_state *values;
    flight **flying; /* in the order of their issues */
    uint32_t count, capacity;
    uint64_t commits, clock, fenced; /* fenced: clock of the last fence; 0: none */
} group_state;

struct lilac_sim_wgmmas {
    lilac_simt_value *homes;
    uint32_t value_count, groups, count; /* warpgroups of a block, of the cluster */
    group_state *states;                 /* by rank, then by warpgroup */
};

/* ---- storage ---------------------------------------------------------------------------- */

lilac_sim_wgmmas *lilac_sim_wgmmas_create(const lilac_sim_program *program) {
    const lilac_simt_kernel *kernel = program->kernel;
    if (!program->wgmmas) {
        return NULL;
    }
    lilac_sim_wgmmas *all = lilac_heap_grow(NULL, sizeof *all);
    *all = (lilac_sim_wgmmas){.value_count = kernel->value_count,
                              .groups = program->warps / LILAC_SIM_GROUP_WARPS};
    all->count = all->groups * kernel->num_ctas;
    all->homes = lilac_heap_grow(NULL, sizeof *all->homes * kernel->value_count);
    lilac_simt_register_homes(kernel, all->homes);
    all->states = lilac_heap_grow(NULL, sizeof *all->states * all->count);
    for (uint32_t k = 0; k < all->count; k++) {
        size_t size = sizeof(value_state) * all->value_count;
        all->states[k] =
            (group_state){.number = k % all->groups, .values = lilac_heap_grow(NULL, size)};
        memset(all->states[k].values, 0, size);
    }
    return all;
}

void lilac_sim_wgmmas_forget(lilac_sim_wgmmas *all) {
    for (uint32_t k = 0; all && k < all->count; k++) {
        group_state *b = &all->states[k];
        for (uint32_t n = 0; n < b->count; n++) {
            lilac_heap_free(b->flying[n]);
        }
        b->count = 0;
        b->commits = b->clock = b->fenced = 0;
        memset(b->values, 0, sizeof *b->values * all->value_count);
    }
}

void lilac_sim_wgmmas_destroy(lilac_sim_wgmmas *all) {
    if (!all) {
        return;
    }
    lilac_sim_wgmmas_forget(all);
    for (uint32_t k = 0; k < all->count; k++) {
        lilac_heap_free(all->states[k].values);
        lilac_heap_free(all->states[k].flying);
    }
    lilac_heap_free(all->states);
    lilac_heap_free(all->homes);
    lilac_heap_free(all);
}

/* The warpgroups in execution: the first, and one behind the last. */
static group_state *first_group(const lilac_sim_worker *w) {
    return &w->wgmmas->states[w->rank * w->wgmmas->groups + w->first_warp / LILAC_SIM_GROUP_WARPS];
}

static group_state *end_group(const lilac_sim_worker *w) {
    return &w->wgmmas->states[w->rank * w->wgmmas->groups + w->end_warp / LILAC_SIM_GROUP_WARPS];
}

/* What the registers of the warpgroup are in an array. */
static uint8_t *registers_of(const lilac_sim_worker *w, const group_state *b, uint32_t array) {
    return w->registers + array + (size_t)b->number * GROUP_THREADS * 4;
}

/* ---- findings --------------------------------------------------------------------------- */

static void find(lilac_sim_worker *w, const group_state *b, lilac_sim_finding_kind kind,
                 const lilac_sim_step *at, const lilac_sim_step *other) {
    w->counters.races++;
    lilac_sim_worker_find(w, (lilac_sim_finding){.kind = kind,
                                                 .at = at->source,
                                                 .other = other ? other->source : NULL,
                                                 .block = w->block,
                                                 .thread = b->number * GROUP_THREADS});
}

/* ---- completion ------------------------------------------------------------------------- */

/* The operands now, and a finding where they have changed. */
static void read_again(lilac_sim_worker *w, const group_state *b, flight *f,
                       const lilac_sim_step *wait) {
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    lilac_sim_operands *now = lilac_heap_grow(NULL, sizeof *now);
    bool in_b;
    uint32_t at;
    now->accumulate = f->operands.accumulate;
    bool good = lilac_sim_operands_read(w, f->step, f->descriptors, b->number, false, now);
    if (good && lilac_sim_operands_differ(m, &f->operands, now, &in_b, &at)) {
        w->counters.races++;
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_WGMMA_OPERAND,
                                                     .at = f->step->source,
                                                     .other = wait->source,
                                                     .block = w->block,
                                                     .address = at,
                                                     .width = in_b,
                                                     .thread = b->number * GROUP_THREADS});
    }
    if (good) {
        f->operands = *now;
    }
    lilac_heap_free(now);
}

/* Gives the results to the values that hold them and to the wgmma that goes on with them. */
static void give_results(lilac_sim_worker *w, group_state *b, flight *f) {
    uint32_t count = w->program->matrices[f->step->access].d_count;
    for (uint32_t k = 0; k < count; k++) {
        if (!f->holder[k]) {
            continue;
        }
        memcpy(registers_of(w, b, f->array[k]), f->accumulators[k], GROUP_THREADS * 4);
        b->values[f->holder[k]].flight = NULL;
    }
    for (uint32_t n = 0; n < b->count; n++) {
        flight *next = b->flying[n];
        if (next->chained != f) {
            continue;
        }
        memcpy(next->accumulators, f->accumulators, sizeof *f->accumulators * count);
        next->chained = NULL;
    }
}

/* Completes the oldest `count` wgmmas. */
static void complete_first(lilac_sim_worker *w, group_state *b, uint32_t count,
                           const lilac_sim_step *wait) {
    for (uint32_t n = 0; n < count; n++) {
        flight *f = b->flying[0];
        memmove(b->flying, b->flying + 1, sizeof(flight *) * --b->count);
        read_again(w, b, f, wait);
        lilac_sim_operands_multiply(&w->program->matrices[f->step->access], &f->operands,
                                    f->accumulators);
        give_results(w, b, f);
        lilac_heap_free(f);
    }
}

/* A value in flight would have to be copied: an assembler waits for it. */
static void serialise(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s,
                      const flight *f) {
    find(w, b, FINDING_WGMMA_SERIALISED, s, f->step);
    complete_first(w, b, b->count, s);
}

/* ---- other steps ------------------------------------------------------------------------ */

/* A step reads the value. */
static void use(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s,
                lilac_simt_value value) {
    value_state *v = &b->values[value];
    if (v->flight) {
        find(w, b, FINDING_WGMMA_REGISTER, s, v->flight->step);
    } else if (v->gone) {
        find(w, b, FINDING_WGMMA_REGISTER, s, NULL);
    }
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
static void transfer(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    const lilac_simt_value *homes = w->wgmmas->homes;
    lilac_simt_value source = s->target, target = s->access;
    value_state *from = &b->values[source], *to = &b->values[target];
    bool same = source && target && homes[source] == homes[target];
    if (source && from->flight && !same) {
        serialise(w, b, s, from->flight);
    }
    if (source && from->gone) {
        use(w, b, s, source);
    }
    if (!target) {
        return;
    }
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

static void watch(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    b->clock++;
    if (!i) {
        return;
    }
    if (s->kind == STEP_LANES && (s->access || s->target)) {
        transfer(w, b, s);
        return;
    }
    for (uint32_t k = 0; k < operands_read(i); k++) {
        use(w, b, s, i->operands[k]);
    }
    for (uint32_t k = 0; i->body_count == 0 && k < i->result_count; k++) {
        b->values[i->result + k] = (value_state){.touched = b->clock};
    }
}

void lilac_sim_wgmma_watch(lilac_sim_worker *w, const lilac_sim_step *s) {
    for (group_state *b = first_group(w); b < end_group(w); b++) {
        watch(w, b, s);
    }
}

/* ---- issue ------------------------------------------------------------------------------ */

/* The wgmma in flight whose results are the accumulators, in order and in the registers of this one's
 * results; NULL where they are known. Where they are in flight otherwise, all completes. */
static flight *find_chain(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    uint32_t count = w->program->matrices[s->access].d_count;
    flight *chain = b->values[i->operands[0]].flight;
    for (uint32_t k = 0; k < count; k++) {
        const value_state *v = &b->values[i->operands[k]];
        bool fits = v->flight == chain &&
                    (!chain || (v->index == k && homes[i->operands[k]] == homes[i->result + k] &&
                                w->program->matrices[chain->step->access].d_count == count));
        if (!fits) {
            serialise(w, b, s, v->flight ? v->flight : chain);
            return NULL;
        }
    }
    return chain;
}

/* Was a fence executed since the registers were accessed by anything but a wgmma of this shape? */
static bool is_fenced(const lilac_sim_worker *w, const group_state *b, const lilac_sim_step *s,
                      const flight *chain) {
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    bool fenced = b->fenced > 0;
    if (chain) {
        const lilac_sim_matrix *before = &w->program->matrices[chain->step->access];
        bool same = memcmp(&m->shape, &before->shape, sizeof m->shape) == 0;
        fenced &= same || b->fenced > chain->issued;
    }
    for (uint32_t k = 0; k < m->d_count && !chain; k++) {
        if (homes[i->operands[k]] == homes[i->result + k]) { /* else a copy, with a fence behind */
            fenced &= b->values[i->operands[k]].touched < b->fenced;
        }
    }
    for (uint32_t k = 0; k < m->a_count && m->payload->registers; k++) {
        fenced &= b->values[i->operands[m->d_count + k]].touched < b->fenced;
    }
    return fenced;
}

/* Reads operands and accumulators; false: a trap. */
static bool record(lilac_sim_worker *w, const group_state *b, flight *f) {
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    memset(&f->operands, 0, sizeof f->operands);
    if (!lilac_sim_operands_agree(w, f->step, b->number, f->descriptors, &f->operands.accumulate) ||
        !lilac_sim_operands_read(w, f->step, f->descriptors, b->number, true, &f->operands)) {
        return false;
    }
    for (uint32_t k = 0; k < m->d_count; k++) {
        memcpy(f->accumulators[k], registers_of(w, b, m->c[k]), GROUP_THREADS * 4);
    }
    return true;
}

/* The results are in flight, the accumulators gone where the results have their registers. */
static void take_registers(lilac_sim_worker *w, group_state *b, flight *f) {
    const lilac_simt_instruction *i = f->step->source;
    const lilac_simt_value *homes = w->wgmmas->homes;
    const lilac_sim_matrix *m = &w->program->matrices[f->step->access];
    for (uint32_t k = 0; k < m->d_count; k++) {
        lilac_simt_value from = i->operands[k], to = i->result + k;
        if (homes[from] == homes[to]) {
            b->values[from] = (value_state){.gone = true, .touched = b->values[from].touched};
        }
        if (f->chained) {
            f->chained->holder[k] = 0;
        }
        b->values[to] = (value_state){.flight = f, .index = k};
        f->holder[k] = to;
        f->array[k] = m->d[k];
        memset(registers_of(w, b, m->d[k]), GARBAGE, GROUP_THREADS * 4);
    }
}

static bool issue(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    flight *chain = find_chain(w, b, s);
    for (uint32_t k = 0; k < m->d_count; k++) {
        if (b->values[i->operands[k]].gone) {
            use(w, b, s, i->operands[k]);
        }
    }
    for (uint32_t k = 0; k < m->a_count && m->payload->registers; k++) {
        if (b->values[i->operands[m->d_count + k]].flight) {
            use(w, b, s, i->operands[m->d_count + k]);
        }
    }
    if (!is_fenced(w, b, s, chain)) {
        find(w, b, FINDING_WGMMA_FENCE, s, NULL);
    }
    flight *f = lilac_heap_grow(NULL, sizeof *f);
    f->step = s;
    f->group = b->commits;
    f->issued = b->clock;
    f->chained = chain;
    if (!record(w, b, f)) {
        lilac_heap_free(f);
        return false;
    }
    take_registers(w, b, f);
    if (b->count == b->capacity) {
        b->capacity = b->capacity * 2 + 16;
        b->flying = lilac_heap_grow(b->flying, sizeof(flight *) * b->capacity);
    }
    b->flying[b->count++] = f;
    w->counters.wgmmas += LILAC_SIM_GROUP_WARPS;
    w->counters.wgmma_cycles += lilac_wgmma_cycles(m->shape.n);
    return true;
}

/* ---- groups ----------------------------------------------------------------------------- */

static void wait(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    uint64_t left = s->immediate > MOST_GROUPS ? MOST_GROUPS : s->immediate;
    uint32_t covered = 0;
    while (covered < b->count && b->flying[covered]->group < b->commits &&
           b->commits - b->flying[covered]->group > left) {
        covered++;
    }
    if (b->count > 0 && b->flying[b->count - 1]->group == b->commits) {
        find(w, b, FINDING_WGMMA_UNCOMMITTED, b->flying[b->count - 1]->step, s);
    }
    complete_first(w, b, covered, s);
}

static bool step(lilac_sim_worker *w, group_state *b, const lilac_sim_step *s) {
    b->clock++;
    switch (s->kind) {
    case STEP_WGMMA:
        return issue(w, b, s);
    case STEP_WGMMA_FENCE:
        b->fenced = b->clock;
        return true;
    case STEP_WGMMA_COMMIT:
        b->commits++;
        return true;
    default:
        wait(w, b, s);
        return true;
    }
}

bool lilac_sim_wgmma_step(lilac_sim_worker *w, const lilac_sim_step *s) {
    w->snapshot.disturbed = true;
    for (group_state *b = first_group(w); b < end_group(w); b++) {
        if (!step(w, b, s)) {
            return false;
        }
    }
    return true;
}

void lilac_sim_wgmmas_end(lilac_sim_worker *w) {
    if (!w->wgmmas) {
        return;
    }
    for (group_state *b = first_group(w); b < end_group(w); b++) {
        for (uint32_t n = 0; n < b->count; n++) {
            find(w, b, FINDING_WGMMA_NOT_AWAITED, b->flying[n]->step, NULL);
            lilac_heap_free(b->flying[n]);
        }
        b->count = 0;
    }
}
