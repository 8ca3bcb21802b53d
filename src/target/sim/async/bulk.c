/* Starting, grouping and completing bulk copies (bulk.h). */
#include "memory/access.h"

#include <string.h>

enum { BOX_ALIGNMENT = 128, IN_FLIGHT = 0xA5 /* what the destination of a load holds meanwhile */ };

void lilac_sim_bulks_init(lilac_sim_bulks *b, const lilac_sim_program *program) {
    *b = (lilac_sim_bulks){.warps = program->kernel->num_ctas * program->warps};
    if (program->proxies) {
        b->commits = lilac_heap_grow(NULL, sizeof *b->commits * b->warps);
    }
}

static void destroy(lilac_sim_bulk *copy) {
    lilac_heap_free(copy->pieces);
    lilac_heap_free(copy->data);
    lilac_heap_free(copy);
}

void lilac_sim_bulks_forget(lilac_sim_bulks *b) {
    for (uint32_t k = 0; k < b->count; k++) {
        destroy(b->flying[k]);
    }
    b->count = 0;
    lilac_sim_made_maps_forget(b);
    if (b->commits) {
        memset(b->commits, 0, sizeof *b->commits * b->warps);
    }
}

void lilac_sim_bulks_clear(lilac_sim_bulks *b) {
    lilac_sim_bulks_forget(b);
    lilac_heap_free(b->flying);
    lilac_heap_free(b->commits);
}

static uint32_t warp_of(const lilac_sim_worker *w, uint32_t thread) {
    return w->rank * w->program->warps + thread / w->program->arch->warp_size;
}

static lilac_sim_bulk *new_copy(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread) {
    lilac_sim_bulks *b = &w->bulks;
    if (b->count == b->capacity) {
        b->capacity = b->capacity * 2 + 64;
        b->flying = lilac_heap_grow(b->flying, sizeof *b->flying * b->capacity);
    }
    lilac_sim_bulk *copy = lilac_heap_grow(NULL, sizeof *copy);
    *copy = (lilac_sim_bulk){.step = step,
                             .map = lilac_sim_map_of(w->launch, step->source),
                             .rank = w->rank,
                             .to = w->rank,
                             .thread = thread,
                             .load = w->program->accesses[step->access].values[1] != LILAC_SIM_NONE,
                             .group = b->commits[warp_of(w, thread)]};
    return b->flying[b->count++] = copy;
}

/* ---- start -------------------------------------------------------------------------------- */

static bool trap_at(lilac_sim_worker *w, lilac_sim_trap_kind kind, const lilac_sim_bulk *copy,
                    uint64_t address, uint32_t size) {
    w->trap.address = address;
    w->trap.size = size;
    w->trap.rank = w->rank;
    return lilac_sim_worker_trap(w, kind, copy->step, copy->thread);
}

/* The pieces of a copy of consecutive bytes. */
static bool add_pieces(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_access *access = &w->program->accesses[copy->step->access];
    const lane_u64 *addresses = (const void *)(w->registers + access->values[0]);
    const lane_u32 *sizes = (const void *)(w->registers + access->others[0]);
    uint64_t global =
        addresses[copy->thread] + (uint64_t)(int64_t)copy->step->source->payload.bulk.global;
    uint32_t unit = LILAC_SIM_BULK_BYTES;
    copy->unit = unit;
    copy->bytes = sizes[copy->thread];
    if (copy->bytes % unit != 0) {
        return trap_at(w, TRAP_BULK_SIZE, copy, copy->bytes, 0);
    }
    w->trap.global = global % unit != 0;
    if (copy->at % unit != 0 || global % unit != 0) {
        return trap_at(w, TRAP_BULK_ALIGNMENT, copy, w->trap.global ? global : copy->at, unit);
    }
    for (uint64_t b = 0; b < copy->bytes; b += unit) {
        *lilac_sim_bulk_add(copy) = (lilac_sim_piece){.global = global + b, .shared = copy->at + b};
    }
    return true;
}

/* The map that the kernel has made; false: a trap. */
static bool find_made_map(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    if (copy->map == NULL && lilac_sim_is_tensor_copy(copy->step->source)) {
        const lilac_tensor_map *map =
            lilac_sim_made_map_of(w, copy->step, copy->thread, &copy->made);
        if (map == NULL) {
            return false;
        }
        copy->own = *map;
        copy->map = &copy->own;
    }
    return true;
}

/* The pieces of a box. */
static bool add_box(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_access *access = &w->program->accesses[copy->step->access];
    uint32_t period = lilac_tensor_swizzle_period(copy->map->swizzle);
    int32_t coordinates[LILAC_TENSOR_RANK];
    w->trap.global = false;
    if (copy->at % BOX_ALIGNMENT != 0) {
        return trap_at(w, TRAP_BULK_ALIGNMENT, copy, copy->at, BOX_ALIGNMENT);
    }
    if (copy->at % period != 0) {
        lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_SWIZZLE_BASE,
                                                     .at = copy->step->source,
                                                     .block = w->block,
                                                     .thread = copy->thread,
                                                     .address = copy->at,
                                                     .width = period});
    }
    for (uint32_t k = 0; k < access->count; k++) {
        const lane_u32 *values = (const void *)(w->registers + access->others[k]);
        coordinates[k] = (int32_t)values[copy->thread];
    }
    lilac_sim_tensor_pieces(copy, coordinates);
    return true;
}

/* Makes the shared address one of the cluster's; false: a trap. */
static bool resolve_shared(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_access *access = &w->program->accesses[copy->step->access];
    uint64_t base = (uint64_t)copy->to * w->shared.stride;
    w->trap.global = false;
    if (copy->bytes > w->shared.size || copy->at > w->shared.size - copy->bytes) {
        return trap_at(w, TRAP_SHARED_BOUNDS, copy, copy->at, (uint32_t)copy->bytes);
    }
    if (access->end && (copy->at < access->begin || copy->at + copy->bytes > access->end)) {
        return trap_at(w, TRAP_INTERVAL, copy, copy->at, (uint32_t)copy->bytes);
    }
    copy->at += base;
    for (uint32_t k = 0; k < copy->count; k++) {
        copy->pieces[k].shared += base;
    }
    return true;
}

/* There is no mbarrier at the address. */
static bool trap_none(lilac_sim_worker *w, const lilac_sim_bulk *copy, uint64_t address) {
    w->trap.address = address;
    w->trap.rank = copy->to;
    return lilac_sim_worker_trap(w, TRAP_MBARRIER_NONE, copy->step, copy->thread);
}

/* The mbarrier at which a load completes. */
static bool resolve_mbarrier(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_access *access = &w->program->accesses[copy->step->access];
    const lane_u32 *addresses = (const void *)(w->registers + access->values[1]);
    uint64_t address =
        addresses[copy->thread] + (uint64_t)(int64_t)copy->step->source->payload.bulk.mbarrier;
    copy->mbarrier = address + (uint64_t)copy->to * w->shared.stride;
    lilac_sim_multicast_account(w, copy);
    return lilac_sim_mbarrier_at(w, copy->mbarrier) || trap_none(w, copy, address);
}

/* From its start on a store reads its source. */
static void begin_store(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    lilac_sim_active one = {.count = 1, .thread = {copy->thread}, .address = {copy->at}};
    lilac_sim_account_shared(w, copy->step, &one, (uint32_t)copy->bytes, true);
    for (uint64_t b = copy->at; b < copy->at + copy->bytes; b++) {
        w->shared.reading[b]++;
    }
}

/* From its start on a load writes its destination and reads its source. */
static void begin_load(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    lilac_sim_active one = {.count = 1, .thread = {copy->thread}, .address = {copy->at}};
    lilac_sim_account_shared(w, copy->step, &one, (uint32_t)copy->bytes, false);
    memset(w->shared.bytes + copy->at, IN_FLIGHT, (size_t)copy->bytes);
    for (uint64_t b = copy->at; b < copy->at + copy->bytes; b++) {
        w->shared.in_flight[b]++;
    }
    lilac_sim_bulk_read_global(w, copy, copy->data, true);
}

/* Starts the copy from or to the shared memory of block `to`. */
static bool start_copy(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                       uint64_t at, uint32_t to) {
    lilac_sim_bulk *copy = new_copy(w, step, thread);
    copy->at = at;
    copy->to = to;
    if (!find_made_map(w, copy) || !(copy->map ? add_box(w, copy) : add_pieces(w, copy)) ||
        !resolve_shared(w, copy) || !lilac_sim_bulk_resolve(w, copy) ||
        (copy->load && !resolve_mbarrier(w, copy))) {
        return false;
    }
    w->counters.bulk_copies++;
    if (copy->bytes == 0) { /* there is nothing to complete */
        w->bulks.count--;
        destroy(copy);
        return true;
    }
    w->counters.bulk_bytes += copy->bytes;
    lilac_sim_proxies_access(w, step, thread, copy->at, (uint32_t)copy->bytes);
    for (uint32_t k = 0; k < copy->count; k++) {
        if (!copy->pieces[k].outside &&
            !lilac_sim_proxies_access_global(w, step, thread, copy->pieces[k].global)) {
            break;
        }
    }
    if (copy->load) {
        begin_load(w, copy);
    } else {
        begin_store(w, copy);
    }
    return true;
}

/* The copies of one thread: one, or one for each block of a multicast. */
static bool start_copies(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                         uint64_t at) {
    uint32_t blocks = lilac_sim_multicast_blocks(w, step, thread);
    bool good = blocks != 0;
    for (uint32_t rest = blocks; rest != 0 && good; rest &= rest - 1) {
        good = start_copy(w, step, thread, at, (uint32_t)__builtin_ctz(rest));
    }
    return good;
}

static bool start(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_active lanes;
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, true);
        for (uint32_t l = 0; l < lanes.count; l++) {
            if (!start_copies(w, step, lanes.thread[l], lanes.address[l])) {
                return false;
            }
        }
    }
    return true;
}

/* ---- groups ------------------------------------------------------------------------------- */

/* The destination of a load is no longer in flight. */
static void settle(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    for (uint64_t b = copy->at; b < copy->at + copy->bytes; b++) {
        w->shared.in_flight[b]--;
    }
}

static void commit(lilac_sim_worker *w) {
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        w->bulks.commits[w->rank * w->program->warps + warp]++;
    }
}

/* Does a wait of the threads in execution that leaves `groups` groups incomplete cover the copy? */
static bool is_covered(const lilac_sim_worker *w, const lilac_sim_bulk *copy, uint64_t groups) {
    bool mine = !copy->load && copy->rank == w->rank && copy->thread >= w->first_thread &&
                copy->thread < w->end_thread;
    uint64_t commits = mine ? w->bulks.commits[warp_of(w, copy->thread)] : 0;
    return mine && copy->group < commits && commits - copy->group > groups;
}

static bool wait(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_bulks *b = &w->bulks;
    bool reads = step->source->code == LILAC_SIMT_OP_BULK_WAIT_READ, good = true;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < b->count; k++) {
        lilac_sim_bulk *copy = b->flying[k];
        bool covered = is_covered(w, copy, step->immediate);
        if (covered && !copy->read) {
            good = good && lilac_sim_bulk_read_shared(w, copy);
        }
        if (covered && !reads && good) {
            lilac_sim_bulk_write_global(w, copy);
            destroy(copy);
        } else {
            b->flying[kept++] = copy;
        }
    }
    b->count = kept;
    return good;
}

bool lilac_sim_bulk_step(lilac_sim_worker *w, const lilac_sim_step *step) {
    w->snapshot.disturbed = true;
    switch (step->kind) {
    case STEP_BULK_START:
        return start(w, step);
    case STEP_BULK_COMMIT:
        if (w->bulks.commits) {
            commit(w);
        }
        return true;
    default:
        return wait(w, step);
    }
}

static void find_not_awaited(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    w->counters.races++;
    lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_NOT_AWAITED,
                                                 .at = copy->step->source,
                                                 .block = w->block - w->rank + copy->rank,
                                                 .rank = copy->to,
                                                 .width = copy->to != copy->rank,
                                                 .thread = copy->thread});
}

/* The block ends. False: a trap. */
static bool end_copy(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    if (copy->load) {
        settle(w, copy);
        find_not_awaited(w, copy);
        return true;
    }
    if (!copy->read) {
        find_not_awaited(w, copy);
        if (!lilac_sim_bulk_read_shared(w, copy)) {
            return false;
        }
    }
    lilac_sim_bulk_write_global(w, copy);
    return true;
}

bool lilac_sim_bulks_end(lilac_sim_worker *w) {
    lilac_sim_bulks *b = &w->bulks;
    bool good = true;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < b->count; k++) {
        lilac_sim_bulk *copy = b->flying[k];
        if (copy->to != w->rank) {
            b->flying[kept++] = copy;
            continue;
        }
        good = good && end_copy(w, copy);
        destroy(copy);
    }
    b->count = kept;
    return good;
}

/* ---- loads complete ------------------------------------------------------------------------ */

/* Global memory holds something else than when the load began. */
static void find_change(lilac_sim_worker *w, const lilac_sim_bulk *copy, const uint8_t *now) {
    size_t bytes = (size_t)copy->count * copy->unit, at = 0;
    if (memcmp(copy->data, now, bytes) == 0) {
        return;
    }
    while (copy->data[at] == now[at]) {
        at++;
    }
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = FINDING_SOURCE_CHANGED,
                               .at = copy->step->source,
                               .other = lilac_sim_mbarrier_at(w, copy->mbarrier)->init->source,
                               .block = w->block,
                               .address = copy->pieces[at / copy->unit].global + at % copy->unit,
                               .thread = copy->thread});
}

/* Of the block in execution. */
static bool land(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    uint32_t writer = w->shared.blocks * w->shared.warps + warp_of(w, copy->thread);
    uint8_t *now = lilac_heap_grow(NULL, (size_t)copy->count * copy->unit + 1);
    lilac_sim_bulk_read_global(w, copy, now, false);
    if (lilac_sim_mbarrier_at(w, copy->mbarrier)) {
        find_change(w, copy, now);
    }
    lilac_heap_free(copy->data);
    copy->data = now;
    settle(w, copy);
    lilac_sim_bulk_write_shared(w, copy);
    lilac_sim_proxies_settle(&w->shared.proxies, copy->at, (uint32_t)copy->bytes);
    lilac_sim_shared_write(&w->shared, copy->at, (uint32_t)copy->bytes, writer,
                           (uint32_t)(copy->step - w->program->steps), NULL);
    return lilac_sim_mbarrier_complete(w, copy->step, copy->mbarrier, (uint32_t)copy->bytes,
                                       writer);
}

bool lilac_sim_bulk_land(lilac_sim_worker *w) {
    lilac_sim_bulks *b = &w->bulks;
    uint32_t k = 0, rank = w->rank, ctas = w->program->kernel->num_ctas;
    while (k < b->count && !b->flying[k]->load) {
        k++;
    }
    if (k == b->count) {
        return false;
    }
    lilac_sim_bulk *copy = b->flying[k];
    b->count--;
    memmove(b->flying + k, b->flying + k + 1, sizeof *b->flying * (b->count - k));
    w->block = w->block - rank + copy->rank;
    w->rank = copy->rank;
    w->snapshot.disturbed = true;
    bool good = land(w, copy);
    if (good) { /* a trap keeps its block */
        w->block = w->block / ctas * ctas + rank;
        w->rank = rank;
    }
    destroy(copy);
    return good;
}

const lilac_sim_step *lilac_sim_bulk_find_loading(const lilac_sim_worker *w, uint64_t at,
                                                  uint32_t size, uint64_t *byte, uint32_t *warp) {
    for (uint32_t k = 0; k < w->bulks.count; k++) {
        const lilac_sim_bulk *copy = w->bulks.flying[k];
        if (!copy->load || copy->at >= at + size || at >= copy->at + copy->bytes) {
            continue;
        }
        *byte = copy->at > at ? copy->at : at;
        *warp = copy->rank * w->program->warps + copy->thread / w->program->arch->warp_size;
        return copy->step;
    }
    return NULL;
}

/* ---- accesses to what is incomplete ---------------------------------------------------------- */

static void find(lilac_sim_worker *w, const lilac_sim_bulk *copy, lilac_sim_finding finding) {
    finding.other = copy->step->source;
    finding.block = w->block;
    finding.warp = warp_of(w, finding.thread);
    finding.other_warp =
        copy->rank * w->program->warps + copy->thread / w->program->arch->warp_size;
    finding.other_thread = copy->thread;
    w->counters.races++;
    lilac_sim_worker_find(w, finding);
}

void lilac_sim_bulk_find_written(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                                 uint64_t at, uint32_t size) {
    for (uint32_t k = 0; k < w->bulks.count; k++) {
        const lilac_sim_bulk *copy = w->bulks.flying[k];
        if (copy->load || copy->read || copy->at >= at + size || at >= copy->at + copy->bytes) {
            continue;
        }
        uint64_t byte = copy->at > at ? copy->at : at;
        find(w, copy,
             (lilac_sim_finding){.kind = FINDING_SOURCE_WRITTEN,
                                 .at = step->source,
                                 .address = byte % w->shared.stride,
                                 .rank = (uint32_t)(byte / w->shared.stride),
                                 .thread = thread});
        return;
    }
}

/* The first lane that accesses a piece of the copy; count: none. */
static uint32_t find_lane(const lilac_sim_bulk *copy, const lilac_sim_active *lanes, uint32_t size,
                          uint64_t *address) {
    for (uint32_t l = 0; l < lanes->count; l++) {
        for (uint32_t k = 0; k < copy->count; k++) {
            uint64_t begin = copy->pieces[k].global, at = lanes->address[l];
            if (copy->pieces[k].outside || begin >= at + size || at >= begin + copy->unit) {
                continue;
            }
            *address = begin > at ? begin : at;
            return l;
        }
    }
    return lanes->count;
}

void lilac_sim_bulk_find_global(lilac_sim_worker *w, const lilac_sim_step *step,
                                const lilac_sim_active *lanes, uint32_t size) {
    for (uint32_t k = 0; k < w->bulks.count; k++) {
        const lilac_sim_bulk *copy = w->bulks.flying[k];
        uint64_t address = 0;
        if (copy->load) {
            continue;
        }
        uint32_t lane = find_lane(copy, lanes, size, &address);
        if (lane == lanes->count) {
            continue;
        }
        find(w, copy,
             (lilac_sim_finding){.kind = FINDING_GLOBAL_IN_FLIGHT,
                                 .at = step->source,
                                 .address = address,
                                 .thread = lanes->thread[lane]});
        return;
    }
}
