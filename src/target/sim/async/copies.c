/* Starting and completing asynchronous copies (copies.h). */
#include "memory/access.h"

#include <string.h>

enum { MOST_BYTES = 16, IN_FLIGHT = 0xA5 /* what the destination holds meanwhile */ };

/* The lanes of a warp's instruction that read equally many bytes. */
typedef struct lilac_sim_transfer {
    const lilac_sim_step *step;
    uint32_t rank, bytes;      /* to read; zeros for the rest */
    uint64_t number;           /* copies of the cluster that were started before */
    uint64_t group;            /* commits of the block before its start */
    lilac_sim_active to, from; /* the same lanes; from is empty where no byte is read */
    const lilac_sim_buffer *buffers[MAX_LANES];
    uint8_t data[MAX_LANES][MOST_BYTES]; /* as read at the start */
} lilac_sim_transfer;

void lilac_sim_copies_clear(lilac_sim_copies *c) {
    for (uint32_t k = 0; k < c->allocated; k++) {
        lilac_heap_free(c->flying[k]);
    }
    lilac_heap_free(c->flying);
    lilac_heap_free(c->commits);
    lilac_heap_free(c->landed_group);
    lilac_heap_free(c->landed_epoch);
}

void lilac_sim_copies_forget(lilac_sim_copies *c, uint32_t warps) {
    if (!c->commits) {
        c->commits = lilac_heap_grow(NULL, sizeof *c->commits * warps);
        c->landed_group = lilac_heap_grow(NULL, sizeof *c->landed_group * warps);
        c->landed_epoch = lilac_heap_grow(NULL, sizeof *c->landed_epoch * warps);
    }
    memset(c->landed_epoch, 0, sizeof *c->landed_epoch * warps);
    memset(c->landed_group, 0, sizeof *c->landed_group * warps);
    c->count = 0;
    c->started = 0;
    memset(c->commits, 0, sizeof *c->commits * warps);
}

static lilac_sim_transfer *new_copy(lilac_sim_copies *c) {
    if (c->count == c->allocated) {
        if (c->count == c->capacity) {
            c->capacity = c->capacity * 2 + 64;
            c->flying = lilac_heap_grow(c->flying, sizeof(lilac_sim_transfer *) * c->capacity);
        }
        c->flying[c->allocated++] = lilac_heap_grow(NULL, sizeof(lilac_sim_transfer));
    }
    return c->flying[c->count++];
}

static uint32_t warp_of(const lilac_sim_worker *w, uint32_t thread) {
    return w->rank * w->program->warps + thread / w->program->arch->warp_size;
}

/* ---- global memory ---------------------------------------------------------------------- */

/* Reads the sources into `data`, with the accounts of who reads what. */
static void read_sources(lilac_sim_worker *w, lilac_sim_transfer *copy,
                         uint8_t data[MAX_LANES][MOST_BYTES]) {
    uint64_t stripes;
    bool watched = lilac_sim_races_open(w, &copy->from, copy->buffers, copy->bytes, &stripes);
    if (watched) {
        lilac_sim_races_load(w, copy->step, &copy->from, copy->buffers, copy->bytes);
    }
    for (uint32_t l = 0; l < copy->from.count; l++) {
        memcpy(data[l], copy->from.host[l], copy->bytes);
    }
    if (watched) {
        lilac_sim_races_close(w, copy->step, stripes);
    }
}

/* The source of a lane: aligned to the whole copy, however many bytes are read. */
static bool add_source(lilac_sim_worker *w, lilac_sim_transfer *copy, uint32_t thread) {
    const lilac_sim_access *access = &w->program->accesses[copy->step->access];
    const lane_u64 *addresses = (const void *)(w->registers + access->values[0]);
    lilac_sim_active *from = &copy->from;
    uint64_t address = addresses[thread] + (uint64_t)copy->step->source->payload.copy.source;
    uint32_t k = from->count++;
    from->thread[k] = thread;
    from->address[k] = address;
    from->least = address < from->least ? address : from->least;
    from->greatest = address > from->greatest ? address : from->greatest;
    w->trap.global = true;
    return (address & (access->width - 1)) == 0 ||
           lilac_sim_trap_access(w, copy->step, TRAP_MISALIGNED, from, k, access->width);
}

/* ---- start ------------------------------------------------------------------------------ */

/* How many bytes a thread's copy reads. */
static uint32_t bytes_of(const lilac_sim_worker *w, const lilac_sim_access *access,
                         uint32_t thread) {
    const lane_u32 *bytes = (const void *)(w->registers + access->others[0]);
    return access->others[0] == LILAC_SIM_NONE ? access->width : bytes[thread];
}

/* Records the lanes whose copies read `bytes` bytes. */
static bool record(lilac_sim_worker *w, const lilac_sim_step *step, const lilac_sim_active *lanes,
                   uint32_t bytes) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_transfer *copy = NULL;
    for (uint32_t l = 0; l < lanes->count; l++) {
        if (bytes_of(w, access, lanes->thread[l]) != bytes) {
            continue;
        }
        if (!copy) {
            copy = new_copy(&w->copies);
            copy->step = step;
            copy->rank = w->rank;
            copy->bytes = bytes;
            copy->number = w->copies.started++;
            copy->group = w->copies.commits[warp_of(w, lanes->thread[l])];
            copy->to.count = copy->from.count = 0;
            copy->from.least = UINT64_MAX;
            copy->from.greatest = 0;
        }
        uint32_t k = copy->to.count++;
        copy->to.thread[k] = lanes->thread[l];
        copy->to.address[k] = lanes->address[l];
        copy->to.host[k] = lanes->host[l];
        if (bytes && !add_source(w, copy, lanes->thread[l])) {
            return false;
        }
    }
    if (!copy || bytes == 0) {
        return true;
    }
    if (!lilac_sim_resolve_global(w, step, &copy->from, copy->buffers, bytes, true)) {
        return false;
    }
    read_sources(w, copy, copy->data);
    lilac_sim_check_global_written(w, step, &copy->from, copy->buffers, bytes);
    w->counters.async_sectors +=
        lilac_sim_count_sectors(&copy->from, access->width, w->program->arch->sector_bytes);
    return true;
}

static bool start_warp(lilac_sim_worker *w, const lilac_sim_step *step,
                       const lilac_sim_active *lanes) {
    uint32_t size = w->program->accesses[step->access].width;
    const lilac_sim_access *access = &w->program->accesses[step->access];
    uint32_t seen = 0; /* bit b: some lane reads b bytes */
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint32_t bytes = bytes_of(w, access, lanes->thread[l]);
        if (bytes > size) {
            w->trap.address = bytes;
            w->trap.size = size;
            return lilac_sim_worker_trap(w, TRAP_COPY_BYTES, step, lanes->thread[l]);
        }
        seen |= 1u << bytes;
    }
    for (uint32_t rest = seen; rest; rest &= rest - 1) {
        if (!record(w, step, lanes, (uint32_t)__builtin_ctz(rest))) {
            return false;
        }
    }
    lilac_sim_account_shared(w, step, lanes, size, false);
    for (uint32_t l = 0; l < lanes->count; l++) {
        memset(lanes->host[l], IN_FLIGHT, size);
        for (uint32_t b = 0; b < size; b++) {
            w->shared.in_flight[lanes->address[l] + b]++;
        }
    }
    return true;
}

bool lilac_sim_copy_start(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_counters *c = &w->counters;
    lilac_sim_active lanes;
    w->snapshot.disturbed = true;
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
        if (lanes.count == 0) {
            continue;
        }
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, access->width)) {
            return false;
        }
        c->async_copies++;
        c->async_bytes += (uint64_t)lanes.count * access->width;
        c->async_wavefronts +=
            lilac_sim_count_wavefronts(&lanes, access->width, w->program->arch, false);
        if (!start_warp(w, step, &lanes)) {
            return false;
        }
    }
    return true;
}

void lilac_sim_copy_commit(lilac_sim_worker *w) {
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        w->copies.commits[w->rank * w->program->warps + warp]++;
    }
    w->snapshot.disturbed = true;
}

/* ---- completion ------------------------------------------------------------------------- */

static void find_change(lilac_sim_worker *w, const lilac_sim_transfer *copy,
                        const lilac_sim_step *wait, uint8_t now[MAX_LANES][MOST_BYTES]) {
    for (uint32_t l = 0; l < copy->from.count; l++) {
        if (memcmp(copy->data[l], now[l], copy->bytes) == 0) {
            continue;
        }
        uint32_t b = 0;
        while (copy->data[l][b] == now[l][b]) {
            b++;
        }
        w->counters.races++;
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_SOURCE_CHANGED,
                                                     .at = copy->step->source,
                                                     .other = wait->source,
                                                     .block = w->block,
                                                     .address = copy->from.address[l] + b,
                                                     .thread = copy->from.thread[l]});
        return;
    }
}

/* The bytes of a lane's destination are no longer in flight. */
static void settle(lilac_sim_worker *w, const lilac_sim_transfer *copy, uint32_t lane) {
    for (uint32_t b = 0; b < w->program->accesses[copy->step->access].width; b++) {
        w->shared.in_flight[copy->to.address[lane] + b]--;
    }
}

/* As writes of a warp, or under its asynchronous clock. */
static void complete(lilac_sim_worker *w, lilac_sim_transfer *copy, const lilac_sim_step *wait,
                     uint32_t writer) {
    uint32_t size = w->program->accesses[copy->step->access].width;
    uint8_t now[MAX_LANES][MOST_BYTES];
    memset(now, 0, sizeof now);
    if (copy->bytes) {
        read_sources(w, copy, now);
        find_change(w, copy, wait, now);
    }
    for (uint32_t l = 0; l < copy->to.count; l++) {
        uint64_t at = copy->to.address[l];
        settle(w, copy, l);
        memcpy(copy->to.host[l], now[l], size);
        lilac_sim_shared_write(&w->shared, at, size, writer,
                               (uint32_t)(copy->step - w->program->steps), NULL);
        if (w->poison.shared_live) {
            memset(w->poison.shared + at, 0, size);
        }
    }
}

/* Moves the copy at a place behind the first `kept` ones; those that stay keep their order. */
static void keep(lilac_sim_copies *c, uint32_t *kept, uint32_t at) {
    lilac_sim_transfer *copy = c->flying[at];
    c->flying[at] = c->flying[*kept];
    c->flying[(*kept)++] = copy;
}

/* Does a wait complete the copies of a group, of a warp with that many commits? */
static bool covers(const lilac_sim_step *wait, uint64_t group, uint64_t commits) {
    return wait->immediate == UINT64_MAX || (group < commits && commits - group > wait->immediate);
}

/* Copies that have arrived at an mbarrier before are also complete for the warps of this wait. */
static void acquire_landed(lilac_sim_worker *w, const lilac_sim_step *wait) {
    const lilac_sim_copies *c = &w->copies;
    for (uint32_t k = w->first_warp; k < w->end_warp; k++) {
        uint32_t warp = w->rank * w->program->warps + k;
        if (c->landed_epoch[warp] && covers(wait, c->landed_group[warp], c->commits[warp])) {
            lilac_sim_shared_acquire_own(&w->shared, warp, c->landed_epoch[warp]);
        }
    }
}

/* Where an mbarrier may also track the copy, its writes have the asynchronous clock of the warp, which
 * the warp acquires. */
static void complete_for_warp(lilac_sim_worker *w, lilac_sim_transfer *copy,
                              const lilac_sim_step *wait) {
    uint32_t warp = warp_of(w, copy->to.thread[0]);
    if (!w->program->async_clocks) {
        complete(w, copy, wait, warp);
        return;
    }
    complete(w, copy, wait, w->shared.blocks * w->shared.warps + warp);
    lilac_sim_shared_acquire_own(&w->shared, warp, w->shared.epoch);
}

void lilac_sim_copy_wait(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_copies *c = &w->copies;
    acquire_landed(w, step);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_sim_transfer *copy = c->flying[k];
        uint32_t thread = copy->to.thread[0];
        bool mine = copy->rank == w->rank && thread >= w->first_thread && thread < w->end_thread;
        if (mine && covers(step, copy->group, c->commits[warp_of(w, thread)])) {
            complete_for_warp(w, copy, step);
        } else {
            keep(c, &kept, k);
        }
    }
    c->count = kept;
    if (w->program->async_clocks) {
        lilac_sim_shared_tick(&w->shared);
    }
    w->snapshot.disturbed = true;
}

static void land(lilac_sim_worker *w, lilac_sim_transfer *copy, const lilac_sim_arrival *arrival,
                 uint32_t writer) {
    complete(w, copy, arrival->step, writer);
    if (copy->group > w->copies.landed_group[arrival->warp]) {
        w->copies.landed_group[arrival->warp] = copy->group;
    }
    w->copies.landed_epoch[arrival->warp] = w->shared.epoch;
}

void lilac_sim_copies_land(lilac_sim_worker *w, const lilac_sim_arrival *arrival, uint32_t writer) {
    lilac_sim_copies *c = &w->copies;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_sim_transfer *copy = c->flying[k];
        if (copy->number < arrival->copies && copy->rank == arrival->rank &&
            warp_of(w, copy->to.thread[0]) == arrival->warp) {
            land(w, copy, arrival, writer);
        } else {
            keep(c, &kept, k);
        }
    }
    c->count = kept;
}

void lilac_sim_copies_end(lilac_sim_worker *w) {
    lilac_sim_copies *c = &w->copies;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < c->count; k++) {
        lilac_sim_transfer *copy = c->flying[k];
        if (copy->rank != w->rank) {
            keep(c, &kept, k);
            continue;
        }
        for (uint32_t l = 0; l < copy->to.count; l++) {
            settle(w, copy, l);
        }
        w->counters.races++;
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_NOT_AWAITED,
                                                     .at = copy->step->source,
                                                     .block = w->block,
                                                     .thread = copy->to.thread[0]});
    }
    c->count = kept;
}

/* ---- accesses to what is in flight ------------------------------------------------------ */

/* The step of the incomplete copy into one of the bytes, and the warp that started it. */
static const lilac_sim_step *find_copy(const lilac_sim_worker *w, uint64_t at, uint32_t size,
                                       uint64_t *byte, uint32_t *warp) {
    for (uint32_t k = 0; k < w->copies.count; k++) {
        const lilac_sim_transfer *copy = w->copies.flying[k];
        uint32_t bytes = w->program->accesses[copy->step->access].width;
        for (uint32_t l = 0; l < copy->to.count; l++) {
            uint64_t begin = copy->to.address[l];
            if (begin >= at + size || at >= begin + bytes) {
                continue;
            }
            *byte = begin > at ? begin : at;
            *warp =
                copy->rank * w->program->warps + copy->to.thread[l] / w->program->arch->warp_size;
            return copy->step;
        }
    }
    return lilac_sim_bulk_find_loading(w, at, size, byte, warp);
}

void lilac_sim_find_in_flight(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                              uint64_t at, uint32_t size, bool load) {
    uint64_t byte = at;
    uint32_t warp = 0;
    const lilac_sim_step *copy = find_copy(w, at, size, &byte, &warp);
    if (!copy) {
        return;
    }
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = load ? FINDING_READ_IN_FLIGHT : FINDING_WRITE_IN_FLIGHT,
                               .at = step->source,
                               .other = copy->source,
                               .block = w->block,
                               .address = byte % w->shared.stride,
                               .rank = (uint32_t)(byte / w->shared.stride),
                               .thread = thread,
                               .warp = warp_of(w, thread),
                               .other_warp = warp});
}
