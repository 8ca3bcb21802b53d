/* Phases, arrivals and waits (mbarriers.h). */
#include "memory/access.h"

#include <string.h>

enum { OBJECT = 8, MOST = (1 << 20) - 1 };

static void release_memory(lilac_sim_mbarrier *b) {
    lilac_heap_free(b->gathered < b->complete ? b->gathered : b->complete);
    lilac_heap_free(b->seen);
}

void lilac_sim_mbarriers_forget(lilac_sim_mbarriers *all) {
    for (uint32_t k = 0; k < all->count; k++) {
        release_memory(&all->live[k]);
    }
    all->count = all->arrival_count = 0;
    all->tests = 0;
}

void lilac_sim_mbarriers_clear(lilac_sim_mbarriers *all) {
    lilac_sim_mbarriers_forget(all);
    lilac_heap_free(all->live);
    lilac_heap_free(all->arrivals);
}

const lilac_sim_mbarrier *lilac_sim_mbarrier_at(const lilac_sim_worker *w, uint64_t place) {
    for (uint32_t k = 0; k < w->mbarriers.count; k++) {
        if (w->mbarriers.live[k].place == place) {
            return &w->mbarriers.live[k];
        }
    }
    return NULL;
}

static lilac_sim_mbarrier *find(lilac_sim_worker *w, uint64_t place) {
    return (lilac_sim_mbarrier *)lilac_sim_mbarrier_at(w, place);
}

static uint32_t warp_of(const lilac_sim_worker *w, uint32_t thread) {
    return w->rank * w->program->warps + thread / w->program->arch->warp_size;
}

/* ---- traps ------------------------------------------------------------------------------ */

/* Always false. `b`: the mbarrier, or NULL; its last arrival or its init is the other place. */
static bool trap(lilac_sim_worker *w, lilac_sim_trap_kind kind, const lilac_sim_step *step,
                 uint32_t thread, uint64_t place, const lilac_sim_mbarrier *b) {
    w->trap.address = place % w->shared.stride;
    w->trap.rank = (uint32_t)(place / w->shared.stride);
    if (b) {
        w->trap.phase = b->now;
        w->trap.use = kind == TRAP_MBARRIER_INIT ? b->init->source : b->last->source;
    }
    return lilac_sim_worker_trap(w, kind, step, thread);
}

/* ---- phases ----------------------------------------------------------------------------- */

static bool end_phase(lilac_sim_worker *w, lilac_sim_mbarrier *b, const lilac_sim_step *step,
                      uint32_t thread) {
    if (b->now.pending == 0 && b->now.bytes < 0) {
        return trap(w, TRAP_MBARRIER_BYTES, step, thread, b->place, b);
    }
    if (b->now.pending || b->now.bytes) {
        return true;
    }
    uint32_t *clock = b->complete;
    b->complete = b->gathered;
    b->gathered = clock;
    memset(clock, 0, sizeof *clock * w->shared.clocks);
    b->complete_known = b->gathered_known;
    b->gathered_known = NULL;
    b->now.pending = b->now.count;
    b->now.number++;
    return true;
}

static bool arrive(lilac_sim_worker *w, lilac_sim_mbarrier *b, const lilac_sim_step *step,
                   uint32_t thread, uint32_t count) {
    if (count > b->now.pending) {
        w->trap.size = count;
        return trap(w, TRAP_MBARRIER_COUNT, step, thread, b->place, b);
    }
    b->now.pending -= count;
    b->last = step;
    return end_phase(w, b, step, thread);
}

bool lilac_sim_mbarrier_complete(lilac_sim_worker *w, const lilac_sim_step *step, uint64_t place,
                                 uint32_t bytes, uint32_t writer) {
    lilac_sim_mbarrier *b = find(w, place);
    if (!b) {
        return trap(w, TRAP_MBARRIER_NONE, step, 0, place, NULL);
    }
    b->gathered[writer] = w->shared.epoch;
    b->now.bytes -= bytes;
    b->last = step;
    lilac_sim_shared_tick(&w->shared);
    return end_phase(w, b, step, 0);
}

/* ---- init and invalidate ---------------------------------------------------------------- */

static bool init(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread, uint64_t place,
                 uint32_t count) {
    lilac_sim_mbarriers *all = &w->mbarriers;
    const lilac_sim_mbarrier *old = find(w, place);
    if (old) {
        return trap(w, TRAP_MBARRIER_INIT, step, thread, place, old);
    }
    if (count == 0 || count > MOST) {
        w->trap.size = count;
        return trap(w, TRAP_MBARRIER_RANGE, step, thread, place, NULL);
    }
    if (all->count == all->capacity) {
        all->capacity = all->capacity * 2 + 16;
        all->live = lilac_heap_grow(all->live, sizeof *all->live * all->capacity);
    }
    size_t clocks = w->shared.clocks, warps = (size_t)w->shared.blocks * w->shared.warps;
    uint32_t *rows = lilac_heap_grow(NULL, 2 * clocks * sizeof *rows);
    uint64_t *seen = lilac_heap_grow(NULL, warps * sizeof *seen);
    memset(rows, 0, 2 * clocks * sizeof *rows);
    memset(seen, 0, warps * sizeof *seen);
    all->live[all->count++] = (lilac_sim_mbarrier){.place = place,
                                                   .now = {.count = count, .pending = count},
                                                   .init = step,
                                                   .last = step,
                                                   .gathered = rows,
                                                   .complete = rows + clocks,
                                                   .seen = seen};
    return true;
}

static void invalidate(lilac_sim_worker *w, lilac_sim_mbarrier *b) {
    lilac_sim_mbarriers *all = &w->mbarriers;
    release_memory(b);
    *b = all->live[--all->count];
}

/* ---- waits ------------------------------------------------------------------------------ */

static bool is_complete(const lilac_sim_mbarrier *b, uint32_t parity) {
    return (b->now.number & 1) != parity;
}

/* Two phases that the warp has not waited for are complete: the wait is for the first of them, and
 * its parity names the phase after the second. */
static void find_missed(lilac_sim_worker *w, const lilac_sim_mbarrier *b,
                        const lilac_sim_step *step, uint32_t parity, uint32_t warp) {
    uint64_t missed = b->now.number - b->seen[warp];
    if (missed < (is_complete(b, parity) ? 3u : 2u)) {
        return;
    }
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = FINDING_MBARRIER_MISSED,
                               .at = step->source,
                               .other = b->last->source,
                               .block = w->block,
                               .address = b->place % w->shared.stride,
                               .rank = (uint32_t)(b->place / w->shared.stride),
                               .thread = warp % w->program->warps * w->program->arch->warp_size,
                               .warp = warp,
                               .width = (uint32_t)missed});
}

static void acquire(lilac_sim_worker *w, lilac_sim_mbarrier *b, uint32_t warp) {
    lilac_sim_shared_acquire(&w->shared, warp, b->complete);
    lilac_sim_order_acquire(w, warp, b->complete_known);
    b->seen[warp] = b->now.number;
}

/* The address, the same in all threads of the program, as a place; and the mbarrier there. */
static lilac_sim_mbarrier *begin_wait(lilac_sim_worker *w, const lilac_sim_step *step,
                                      uint32_t *parity) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const lane_u32 *parities = (const void *)(w->registers + access->others[0]);
    lilac_sim_mbarrier *b = NULL;
    lilac_sim_active lanes;
    *parity = parities[w->first_thread] & 1;
    uint64_t place = UINT64_MAX;
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
        if (lanes.count == 0) {
            continue;
        }
        for (uint32_t l = 0; l < lanes.count; l++) {
            if (lanes.address[l] != lanes.address[0] ||
                (parities[lanes.thread[l]] & 1) != *parity) {
                return lilac_sim_worker_trap(w, TRAP_DIVERGENT, step, lanes.thread[l]), NULL;
            }
        }
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, OBJECT)) {
            return NULL;
        }
        if (place != UINT64_MAX && lanes.address[0] != place) {
            return lilac_sim_worker_trap(w, TRAP_DIVERGENT, step, lanes.thread[0]), NULL;
        }
        place = lanes.address[0];
        b = find(w, place);
        if (!b) {
            return trap(w, TRAP_MBARRIER_NONE, step, lanes.thread[0], place, NULL), NULL;
        }
        lanes.count = 1;
        lilac_sim_account_shared(w, step, &lanes, OBJECT, false);
    }
    return b;
}

bool lilac_sim_mbarrier_passes(lilac_sim_worker *w, lilac_sim_waiting *waiting) {
    lilac_sim_mbarrier *b = find(w, waiting->place);
    if (!is_complete(b, waiting->parity)) {
        return false;
    }
    for (uint32_t k = w->first_warp; k < w->end_warp; k++) {
        uint32_t warp = w->rank * w->program->warps + k;
        find_missed(w, b, waiting->step, waiting->parity, warp);
        acquire(w, b, warp);
    }
    waiting->step = NULL;
    return true;
}

/* Is the predicate true in some thread? */
static bool is_needed(const lilac_sim_worker *w, const lilac_sim_access *access) {
    lilac_sim_active lanes = {.count = 0};
    for (uint32_t warp = w->first_warp; warp < w->end_warp && lanes.count == 0; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
    }
    return lanes.count > 0;
}

bool lilac_sim_mbarrier_wait(lilac_sim_worker *w, const lilac_sim_step *step,
                             lilac_sim_waiting *waiting) {
    uint32_t parity;
    if (!is_needed(w, &w->program->accesses[step->access])) {
        return true;
    }
    lilac_sim_mbarrier *b = begin_wait(w, step, &parity);
    if (!b) {
        return false;
    }
    *waiting = (lilac_sim_waiting){.step = step, .place = b->place, .parity = parity};
    if (!lilac_sim_mbarrier_passes(w, waiting)) {
        for (uint32_t k = w->first_warp; k < w->end_warp; k++) {
            find_missed(w, b, step, parity, w->rank * w->program->warps + k);
        }
    }
    return true;
}

/* When a copy lands is open. Every other test lands copies until the phase is complete or none is left; the
 * tests between find what has landed so far. */
static bool land_phase(lilac_sim_worker *w, const lilac_sim_mbarrier *b, uint32_t parity) {
    w->mbarriers.tests++;
    while (w->mbarriers.tests % 2 == 0 && !is_complete(b, parity)) {
        if (!lilac_sim_land_oldest(w)) {
            return w->trap.kind == TRAP_NONE;
        }
    }
    return true;
}

static bool try_wait(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    uint32_t parity;
    lilac_sim_mbarrier *b = begin_wait(w, step, &parity);
    if (!b) {
        return false;
    }
    const bool tests = step->immediate == LILAC_SIMT_OP_MBARRIER_TEST;
    if (tests && !land_phase(w, b, parity)) {
        return false;
    }
    bool complete = is_complete(b, parity);
    memset(w->registers + access->values[0] + w->first_thread, complete, w->threads);
    for (uint32_t k = w->first_warp; k < w->end_warp && complete; k++) {
        acquire(w, b, w->rank * w->program->warps + k);
    }
    /* a loop around it goes on when what it waits for has arrived */
    return complete || tests || lilac_sim_land_oldest(w) || w->trap.kind == TRAP_NONE;
}

/* ---- operations of each active thread --------------------------------------------------- */

static bool act(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread, uint64_t place) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const lane_u32 *operands = (const void *)(w->registers + access->others[0]);
    uint32_t operand = access->others[0] == LILAC_SIM_NONE ? 1 : operands[thread];
    if (step->immediate == LILAC_SIMT_OP_MBARRIER_INIT) {
        return init(w, step, thread, place, operand);
    }
    lilac_sim_mbarrier *b = find(w, place);
    if (!b) {
        return trap(w, TRAP_MBARRIER_NONE, step, thread, place, NULL);
    }
    if (step->immediate == LILAC_SIMT_OP_MBARRIER_INVALIDATE) {
        invalidate(w, b);
        return true;
    }
    if (operand == 0 || operand > MOST) {
        w->trap.size = operand;
        return trap(w, TRAP_MBARRIER_RANGE, step, thread, place, b);
    }
    uint32_t warp = warp_of(w, thread);
    lilac_sim_shared_release(&w->shared, warp, b->gathered);
    lilac_sim_order_release(w, warp, &b->gathered_known);
    if (step->immediate != LILAC_SIMT_OP_MBARRIER_EXPECT) {
        return arrive(w, b, step, thread, operand);
    }
    b->now.bytes += operand;
    return arrive(w, b, step, thread, 1);
}

/* Every thread's arrival, when its copies are complete. */
static bool record_arrivals(lilac_sim_worker *w, const lilac_sim_step *step,
                            const lilac_sim_active *lanes) {
    lilac_sim_mbarriers *all = &w->mbarriers;
    for (uint32_t l = 0, last; l < lanes->count; l = last) {
        for (last = l; last < lanes->count && lanes->address[last] == lanes->address[l]; last++) {
            ;
        }
        if (!find(w, lanes->address[l])) {
            return trap(w, TRAP_MBARRIER_NONE, step, lanes->thread[l], lanes->address[l], NULL);
        }
        if (all->arrival_count == all->arrival_capacity) {
            all->arrival_capacity = all->arrival_capacity * 2 + 16;
            all->arrivals =
                lilac_heap_grow(all->arrivals, sizeof *all->arrivals * all->arrival_capacity);
        }
        all->arrivals[all->arrival_count++] =
            (lilac_sim_arrival){.step = step,
                                .place = lanes->address[l],
                                .copies = w->copies.started,
                                .rank = w->rank,
                                .warp = warp_of(w, lanes->thread[l]),
                                .threads = last - l};
    }
    return true;
}

static bool fire_arrival(lilac_sim_worker *w) {
    lilac_sim_mbarriers *all = &w->mbarriers;
    if (all->arrival_count == 0) {
        return false;
    }
    lilac_sim_arrival arrival = all->arrivals[0];
    uint32_t writer = w->shared.blocks * w->shared.warps + arrival.warp;
    uint32_t thread = arrival.warp % w->program->warps * w->program->arch->warp_size;
    memmove(all->arrivals, all->arrivals + 1, sizeof *all->arrivals * --all->arrival_count);
    lilac_sim_copies_land(w, &arrival, writer);
    lilac_sim_mbarrier *b = find(w, arrival.place);
    if (!b) {
        return trap(w, TRAP_MBARRIER_NONE, arrival.step, thread, arrival.place, NULL);
    }
    b->gathered[writer] = w->shared.epoch;
    lilac_sim_shared_tick(&w->shared);
    return arrive(w, b, arrival.step, thread, arrival.threads);
}

bool lilac_sim_land_oldest(lilac_sim_worker *w) {
    uint32_t rank = w->rank;
    uint64_t block = w->block;
    if (w->mbarriers.arrival_count == 0) {
        return lilac_sim_bulk_land(w);
    }
    w->rank = w->mbarriers.arrivals[0].rank;
    w->block = block - rank + w->rank;
    if (!fire_arrival(w)) {
        return false; /* a trap keeps its block */
    }
    w->rank = rank;
    w->block = block;
    return true;
}

bool lilac_sim_mbarrier_step(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_active lanes;
    w->snapshot.disturbed = true;
    if (step->immediate == LILAC_SIMT_OP_MBARRIER_TRY_WAIT ||
        step->immediate == LILAC_SIMT_OP_MBARRIER_TEST) {
        return try_wait(w, step);
    }
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
        if (lanes.count == 0) {
            continue;
        }
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, OBJECT)) {
            return false;
        }
        if (step->immediate == LILAC_SIMT_OP_MBARRIER_ARRIVE_CLUSTER) {
            lilac_sim_account_reach(w, step, &lanes);
        }
        lilac_sim_account_shared(w, step, &lanes, OBJECT, false);
        if (step->immediate == LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE) {
            if (!record_arrivals(w, step, &lanes)) {
                return false;
            }
            continue;
        }
        for (uint32_t l = 0; l < lanes.count; l++) {
            if (!act(w, step, lanes.thread[l], lanes.address[l])) {
                return false;
            }
        }
        lilac_sim_shared_tick(&w->shared);
    }
    return true;
}

/* ---- the end ---------------------------------------------------------------------------- */

void lilac_sim_mbarriers_end(lilac_sim_worker *w) {
    uint64_t cluster = w->block / w->program->kernel->num_ctas;
    for (uint32_t k = 0; k < w->mbarriers.count; k++) {
        const lilac_sim_mbarrier *b = &w->mbarriers.live[k];
        uint32_t rank = (uint32_t)(b->place / w->shared.stride);
        if (b->now.pending == b->now.count && b->now.bytes == 0) {
            continue;
        }
        w->counters.races++;
        lilac_sim_worker_find(
            w, (lilac_sim_finding){.kind = FINDING_MBARRIER_UNFINISHED,
                                   .at = b->init->source,
                                   .other = b->last->source,
                                   .block = cluster * w->program->kernel->num_ctas + rank,
                                   .address = b->place % w->shared.stride,
                                   .rank = rank,
                                   .phase = b->now});
    }
}
