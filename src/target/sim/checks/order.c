/* What orders accesses to global memory: instructions of a warp, barriers, releases and acquires.
 *
 * Each release and each acquire is a node of a graph that only grows:
 *
 *     place:     release C ──before──▶ release B ──before──▶ release A
 *                    ▲ source              │ known
 *     warp:      knowledge 2 ──one──▶ …    └──▶ what B's warp knew
 *
 * An access of warp u of cluster c in epoch e is ordered before what a warp does now when some
 * release that can be reached from the warp's knowledge was made in cluster c and covers warp u up
 * to e. A search for one cluster gives the epochs of all its warps, which are kept until the warp
 * acquires again; kernels whose blocks do not meet at all never search. */
#include "memory/access.h"

#include <string.h>

/* ---- allocation ------------------------------------------------------------------------- */

enum { CHUNK_BYTES = 1 << 16 };

void *lilac_sim_races_allocate(lilac_sim_races *races, size_t size) {
    size = (size + 15) / 16 * 16;
    if (size > CHUNK_BYTES || races->chunk_count == 0 || races->chunk_used + size > CHUNK_BYTES) {
        races->chunks =
            lilac_heap_grow(races->chunks, sizeof *races->chunks * (races->chunk_count + 1u));
        races->chunks[races->chunk_count++] =
            lilac_heap_grow(NULL, size > CHUNK_BYTES ? size : CHUNK_BYTES);
        races->chunk_used = 0;
    }
    uint8_t *chunk = races->chunks[races->chunk_count - 1];
    void *place = chunk + races->chunk_used;
    races->chunk_used += size;
    return place;
}

static uint32_t warps_of(const lilac_sim_worker *w) {
    return w->program->warps * w->program->kernel->num_ctas;
}

static uint32_t warp_of(const lilac_sim_worker *w, uint64_t block, uint32_t thread) {
    const lilac_sim_program *p = w->program;
    return (uint32_t)(block % p->kernel->num_ctas) * p->warps + thread / p->arch->warp_size;
}

static void lock(lilac_sim_worker *w) {
    if (w->memory->races->shared) {
        pthread_mutex_lock(&w->memory->races->order);
    }
}

static void unlock(lilac_sim_worker *w) {
    if (w->memory->races->shared) {
        pthread_mutex_unlock(&w->memory->races->order);
    }
}

/* ---- what warps know -------------------------------------------------------------------- */

lilac_sim_knowledge **lilac_sim_order_create(const lilac_sim_worker *w) {
    if (!w->memory->races->synchronises) {
        return NULL;
    }
    lilac_sim_knowledge **known = lilac_heap_grow(NULL, sizeof *known * warps_of(w));
    memset(known, 0, sizeof *known * warps_of(w));
    return known;
}

void lilac_sim_order_clear(lilac_sim_order *o) {
    for (uint32_t k = 0; k < LILAC_SIM_REACHES; k++) {
        lilac_heap_free(o->reaches[k].epochs);
    }
    lilac_heap_free(o->stack);
    *o = (lilac_sim_order){0};
}

void lilac_sim_order_forget(lilac_sim_worker *w) {
    if (w->order.known) {
        memset(w->order.known, 0, sizeof *w->order.known * warps_of(w));
    }
}

static lilac_sim_knowledge *new_knowledge(lilac_sim_worker *w, lilac_sim_knowledge like) {
    lilac_sim_knowledge *k = lilac_sim_races_allocate(w->memory->races, sizeof *k);
    *k = like;
    return k;
}

void lilac_sim_order_join(lilac_sim_worker *w, const uint32_t *warps, uint32_t count) {
    lilac_sim_knowledge **known = w->order.known, *all;
    if (!known) {
        return;
    }
    all = known[warps[0]];
    for (uint32_t k = 1; k < count; k++) {
        lilac_sim_knowledge *more = known[warps[k]];
        if (!more || more == all || more == known[warps[k - 1]]) {
            continue;
        }
        lock(w);
        all = all ? new_knowledge(w, (lilac_sim_knowledge){.one = all, .other = more}) : more;
        unlock(w);
    }
    for (uint32_t k = 0; k < count; k++) {
        known[warps[k]] = all;
    }
}

/* *into also has what `more` has. */
static void add_knowledge(lilac_sim_worker *w, lilac_sim_knowledge **into,
                          lilac_sim_knowledge *more) {
    if (!more || *into == more) {
        return;
    }
    lock(w);
    *into = *into ? new_knowledge(w, (lilac_sim_knowledge){.one = *into, .other = more}) : more;
    unlock(w);
}

void lilac_sim_order_release(lilac_sim_worker *w, uint32_t warp, lilac_sim_knowledge **gathered) {
    if (w->order.known) {
        add_knowledge(w, gathered, w->order.known[warp]);
    }
}

void lilac_sim_order_acquire(lilac_sim_worker *w, uint32_t warp, lilac_sim_knowledge *gathered) {
    if (w->order.known) {
        add_knowledge(w, &w->order.known[warp], gathered);
    }
}

void lilac_sim_acquire(lilac_sim_worker *w, lilac_sim_release *source, uint32_t thread,
                       bool block_scope) {
    lilac_sim_knowledge **known =
        w->order.known ? &w->order.known[warp_of(w, w->block, thread)] : NULL;
    if (!known || !source || (*known && (*known)->source == source)) {
        return;
    }
    lock(w);
    *known = new_knowledge(
        w, (lilac_sim_knowledge){
               .source = source, .one = *known, .block = w->block, .block_scope = block_scope});
    unlock(w);
}

lilac_sim_release *lilac_sim_publish(lilac_sim_worker *w, lilac_sim_release *before,
                                     uint32_t thread, bool block_scope) {
    const lilac_sim_shared *s = &w->shared;
    uint32_t all = warps_of(w), warp = warp_of(w, w->block, thread);
    if (!w->order.known) {
        return NULL;
    }
    lock(w);
    lilac_sim_release *r = lilac_sim_races_allocate(w->memory->races, sizeof *r);
    uint32_t *row = NULL;
    if (s->known) {
        row = lilac_sim_races_allocate(w->memory->races, sizeof *row * all);
        memcpy(row, s->known + (size_t)warp * s->clocks, sizeof *row * all);
    }
    /* what the same warp released there before says nothing more */
    bool again = before && before->block == w->block && before->warp == warp &&
                 before->block_scope == block_scope;
    *r = (lilac_sim_release){.before = again ? before->before : before,
                             .known = w->order.known[warp],
                             .row = row,
                             .block = w->block,
                             .warp = warp,
                             .floor = s->floor,
                             .epoch = s->epoch,
                             .block_scope = block_scope};
    unlock(w);
    return r;
}

/* ---- searches --------------------------------------------------------------------------- */

typedef struct search {
    lilac_sim_worker *worker;
    uint64_t cluster, visit;
    uint32_t *epochs; /* of the cluster's warps */
    uint32_t depth;   /* of the stack */
} search;

static void push(search *s, lilac_sim_knowledge *k) {
    lilac_sim_order *o = &s->worker->order;
    if (!k || k->visit == s->visit) {
        return;
    }
    k->visit = s->visit;
    if (s->depth == o->stack_capacity) {
        o->stack_capacity = o->stack_capacity * 2 + 64;
        o->stack = lilac_heap_grow(o->stack, sizeof *o->stack * o->stack_capacity);
    }
    o->stack[s->depth++] = k;
}

static void cover(const search *s, const lilac_sim_release *r) {
    uint32_t all = warps_of(s->worker);
    for (uint32_t u = 0; u < all; u++) {
        uint32_t epoch = u == r->warp ? r->epoch : r->floor;
        if (u != r->warp && r->row && r->row[u] > epoch) {
            epoch = r->row[u];
        }
        s->epochs[u] = epoch > s->epochs[u] ? epoch : s->epochs[u];
    }
}

/* The releases at a place that an acquire takes part in: where one of both has the scope of a
 * block, only those of the same block. */
static void search_place(search *s, const lilac_sim_knowledge *k) {
    for (lilac_sim_release *r = k->source; r; r = (lilac_sim_release *)r->before) {
        bool meets = (!r->block_scope && !k->block_scope) || r->block == k->block;
        if (!meets) {
            continue;
        }
        if (r->visit == s->visit && !s->worker->memory->races->scoped) {
            return; /* the search went on from here before */
        }
        r->visit = s->visit;
        if (r->block / s->worker->program->kernel->num_ctas == s->cluster) {
            cover(s, r);
        }
        push(s, (lilac_sim_knowledge *)r->known);
    }
}

static const uint32_t *reach(lilac_sim_worker *w, lilac_sim_knowledge *head, uint64_t cluster) {
    lilac_sim_races *races = w->memory->races;
    lilac_sim_reach *entry =
        &w->order.reaches[(cluster ^ (uintptr_t)head / sizeof *head) % LILAC_SIM_REACHES];
    if (entry->head == head && entry->cluster == cluster) {
        return entry->epochs;
    }
    uint32_t bytes = warps_of(w) * (uint32_t)sizeof *entry->epochs;
    if (!entry->epochs) {
        entry->epochs = lilac_heap_grow(NULL, bytes);
    }
    memset(entry->epochs, 0, bytes);
    entry->head = head;
    entry->cluster = cluster;
    lock(w);
    search s = {.worker = w, .cluster = cluster, .visit = ++races->visits, .epochs = entry->epochs};
    push(&s, head);
    while (s.depth) {
        lilac_sim_knowledge *k = w->order.stack[--s.depth];
        search_place(&s, k);
        push(&s, k->one);
        push(&s, k->other);
    }
    unlock(w);
    return entry->epochs;
}

/* Two threads of one warp are not ordered within one instruction only. */
bool lilac_sim_is_ordered(lilac_sim_worker *w, const lilac_sim_record *record,
                          const lilac_sim_record *now) {
    const lilac_sim_shared *s = &w->shared;
    uint32_t ctas = w->program->kernel->num_ctas;
    uint64_t block = record->block - 1u, here = now->block - 1u;
    uint32_t warp = warp_of(w, block, lilac_sim_thread_of(record));
    uint32_t me = warp_of(w, here, lilac_sim_thread_of(now));
    if (block / ctas == here / ctas) {
        if (warp == me) {
            return record->epoch != now->epoch ||
                   lilac_sim_step_of(record) != lilac_sim_step_of(now) || record->who == now->who;
        }
        if (record->epoch <= s->floor || record->epoch > s->epoch) { /* beyond: epochs ran out */
            return true;
        }
        if (s->known && record->epoch <= s->known[(size_t)me * s->clocks + warp]) {
            return true;
        }
    }
    lilac_sim_knowledge *head = w->order.known ? w->order.known[me] : NULL;
    return head && record->epoch <= reach(w, head, block / ctas)[warp];
}
