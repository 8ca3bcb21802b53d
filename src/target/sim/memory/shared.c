/* Who touched which byte of shared memory, and whether a barrier orders it (shared.h).
 *
 * A stamp is epoch · 2³² + step · 2¹¹ + warp · 2 + many. Bit `many` of a reader's stamp says that
 * there are several: the bits between are then the head of a list of them, or, where all barriers
 * are of all warps, still the last of them (the others need not be known: a writer that is one of
 * several readers conflicts with another one).
 *
 * A read drops from the list what is ordered before it: whoever comes after it comes after those.
 * Lists are given up when the floor passes them. */
#include "memory/shared.h"

#include <string.h>

enum { MANY = 1, WARP_SHIFT = 1, STEP_SHIFT = 11, EPOCH_SHIFT = 32 };
#define WHO         ((UINT64_C(1) << STEP_SHIFT) - 1)
#define WARP_MASK   ((1u << (STEP_SHIFT - WARP_SHIFT)) - 1)
#define MOST_LISTED ((UINT32_C(1) << (EPOCH_SHIFT - WARP_SHIFT)) - 1)

static uint32_t warp_of(uint64_t stamp) {
    return (uint32_t)stamp >> WARP_SHIFT & WARP_MASK;
}

static uint32_t step_of(uint64_t stamp) {
    return (uint32_t)stamp >> STEP_SHIFT;
}

static uint32_t epoch_of(uint64_t stamp) {
    return (uint32_t)(stamp >> EPOCH_SHIFT);
}

static uint64_t stamp_of(uint32_t epoch, uint32_t step, uint32_t warp) {
    return (uint64_t)epoch << EPOCH_SHIFT | (uint64_t)step << STEP_SHIFT |
           (uint64_t)warp << WARP_SHIFT;
}

void lilac_sim_shared_init(lilac_sim_shared *s, const lilac_sim_program *program) {
    uint32_t row = program->arch->banks * program->arch->bank_bytes;
    uint32_t blocks = program->kernel->num_ctas, all = blocks * program->warps;
    *s = (lilac_sim_shared){.size = program->kernel->shared_bytes,
                            .blocks = blocks,
                            .warps = program->warps,
                            .clocks = program->async_clocks ? 2 * all : all,
                            .epoch = 1};
    s->stride = (s->size + row - 1) / row * row;
    size_t bytes = (size_t)s->stride * blocks, stamps = bytes * sizeof *s->write_stamp;
    s->bytes = lilac_heap_grow(NULL, bytes + 1);
    s->written = lilac_heap_grow(NULL, bytes + 1);
    s->write_stamp = lilac_heap_grow(NULL, stamps + 1);
    s->read_stamp = lilac_heap_grow(NULL, stamps + 1);
    if (program->copies || program->proxies) {
        s->in_flight = lilac_heap_grow(NULL, bytes + 1);
    }
    if (program->shared_atomics) {
        s->atomic_stamp = lilac_heap_grow(NULL, stamps + 1);
        memset(s->atomic_stamp, 0, stamps);
    }
    memset(s->write_stamp, 0, stamps);
    memset(s->read_stamp, 0, stamps);
    if (program->proxies) {
        lilac_sim_proxies_init(&s->proxies, bytes);
    }
    if (program->proxies) {
        s->reading = lilac_heap_grow(NULL, sizeof *s->reading * (bytes + 1));
    }
    if (program->partial) {
        s->known = lilac_heap_grow(NULL, sizeof *s->known * all * s->clocks);
        memset(s->known, 0, sizeof *s->known * all * s->clocks);
        s->joined = lilac_heap_grow(NULL, sizeof *s->joined * s->clocks);
        s->reader_count = 1;
    }
}

void lilac_sim_shared_clear(lilac_sim_shared *s) {
    lilac_heap_free(s->bytes);
    lilac_heap_free(s->written);
    lilac_heap_free(s->in_flight);
    lilac_heap_free(s->write_stamp);
    lilac_heap_free(s->read_stamp);
    lilac_heap_free(s->atomic_stamp);
    lilac_heap_free(s->known);
    lilac_heap_free(s->joined);
    lilac_heap_free(s->readers);
    lilac_heap_free(s->reading);
    lilac_sim_proxies_clear(&s->proxies);
}

/* ---- barriers --------------------------------------------------------------------------- */

/* The next epoch. When they run out, all is forgotten: a race across that point goes unseen. */
static void advance(lilac_sim_shared *s) {
    size_t bytes = (size_t)s->stride * s->blocks;
    size_t known = (size_t)s->blocks * s->warps * s->clocks;
    if (s->epoch++ < UINT32_MAX) {
        return;
    }
    memset(s->write_stamp, 0, bytes * sizeof *s->write_stamp);
    memset(s->read_stamp, 0, bytes * sizeof *s->read_stamp);
    if (s->atomic_stamp) {
        memset(s->atomic_stamp, 0, bytes * sizeof *s->atomic_stamp);
    }
    if (s->known) {
        memset(s->known, 0, sizeof *s->known * known);
    }
    s->floor = 0;
    s->epoch = 1;
}

void lilac_sim_shared_tick(lilac_sim_shared *s) {
    advance(s);
}

static void raise_floor(lilac_sim_shared *s) {
    s->floor = s->epoch;
    s->reader_count = 1;
    s->free_reader = 0;
    advance(s);
}

void lilac_sim_shared_forget(lilac_sim_shared *s) {
    size_t bytes = (size_t)s->stride * s->blocks;
    memset(s->bytes, 0, bytes);
    memset(s->written, 0, bytes);
    if (s->in_flight) {
        memset(s->in_flight, 0, bytes);
    }
    if (s->reading) {
        memset(s->reading, 0, sizeof *s->reading * bytes);
    }
    lilac_sim_proxies_forget(&s->proxies, bytes);
    raise_floor(s);
}

static void raise_clock(uint32_t *clock, const uint32_t *other, uint32_t count) {
    for (uint32_t u = 0; u < count; u++) {
        clock[u] = other[u] > clock[u] ? other[u] : clock[u];
    }
}

void lilac_sim_shared_order(lilac_sim_shared *s, const uint32_t *warps, uint32_t count) {
    if (count == s->blocks * s->warps && s->clocks == count) {
        raise_floor(s);
        return;
    }
    uint32_t *joined = s->joined, clocks = s->clocks;
    memcpy(joined, s->known + (size_t)warps[0] * clocks, sizeof *joined * clocks);
    for (uint32_t k = 1; k < count; k++) {
        raise_clock(joined, s->known + (size_t)warps[k] * clocks, clocks);
    }
    for (uint32_t k = 0; k < count; k++) {
        joined[warps[k]] = s->epoch;
    }
    for (uint32_t k = 0; k < count; k++) {
        memcpy(s->known + (size_t)warps[k] * clocks, joined, sizeof *joined * clocks);
    }
    advance(s);
}

void lilac_sim_shared_release(const lilac_sim_shared *s, uint32_t warp, uint32_t *clock) {
    raise_clock(clock, s->known + (size_t)warp * s->clocks, s->clocks);
    clock[warp] = s->epoch;
}

void lilac_sim_shared_acquire(lilac_sim_shared *s, uint32_t warp, const uint32_t *clock) {
    raise_clock(s->known + (size_t)warp * s->clocks, clock, s->clocks);
}

void lilac_sim_shared_acquire_own(lilac_sim_shared *s, uint32_t warp, uint32_t epoch) {
    uint32_t own = s->blocks * s->warps + warp;
    uint32_t *known = s->known + (size_t)warp * s->clocks;
    known[own] = epoch > known[own] ? epoch : known[own];
}

/* ---- accesses --------------------------------------------------------------------------- */

/* Is what warp u did in that epoch, above the floor, ordered before what warp v does now? */
static bool is_ordered(const lilac_sim_shared *s, uint32_t u, uint32_t epoch, uint32_t v) {
    return u == v || (s->known && epoch <= s->known[(size_t)v * s->clocks + u]);
}

bool lilac_sim_shared_is_ordered(const lilac_sim_shared *s, uint32_t u, uint32_t epoch,
                                 uint32_t v) {
    return epoch <= s->floor || is_ordered(s, u, epoch, v);
}

/* The access of a stamp above the floor and not by `warp` alone, if it is not ordered. */
static bool conflicts(const lilac_sim_shared *s, uint64_t stamp, uint32_t warp,
                      lilac_sim_conflict *conflict) {
    if (!(stamp & MANY) || !s->known) {
        conflict->warp = warp_of(stamp);
        conflict->step = step_of(stamp);
        return (stamp & MANY) || !is_ordered(s, conflict->warp, epoch_of(stamp), warp);
    }
    for (uint32_t r = (uint32_t)stamp >> WARP_SHIFT; r; r = s->readers[r].next) {
        const lilac_sim_reader *reader = &s->readers[r];
        if (reader->epoch > s->floor && !is_ordered(s, reader->warp, reader->epoch, warp)) {
            conflict->warp = reader->warp;
            conflict->step = reader->step;
            return true;
        }
    }
    return false;
}

/* Is one of the stamps above the floor? Mostly none is. */
static bool any_recent(const lilac_sim_shared *s, const uint64_t *stamps, uint32_t size) {
    uint64_t first = ((uint64_t)s->floor + 1) << EPOCH_SHIFT;
    bool any = false;
    for (uint32_t b = 0; b < size; b++) {
        any |= stamps[b] >= first;
    }
    return any;
}

static void find_conflict(const lilac_sim_shared *s, const uint64_t *stamps, uint32_t size,
                          uint32_t warp, lilac_sim_conflict_kind kind,
                          lilac_sim_conflict *conflict) {
    uint64_t mine = (uint64_t)warp << WARP_SHIFT;
    for (uint32_t b = any_recent(s, stamps, size) ? 0 : size; b < size; b++) {
        if (epoch_of(stamps[b]) <= s->floor || (stamps[b] & WHO) == mine ||
            !conflicts(s, stamps[b], warp, conflict)) {
            continue;
        }
        conflict->kind = kind;
        conflict->byte = b;
        return;
    }
}

static uint32_t new_reader(lilac_sim_shared *s, uint32_t epoch, uint32_t warp, uint32_t step,
                           uint32_t next) {
    uint32_t reader = s->free_reader;
    if (reader) {
        s->free_reader = s->readers[reader].next;
    } else {
        if (s->reader_count >= s->reader_capacity) {
            s->reader_capacity = s->reader_capacity * 2 + 1024;
            s->readers = lilac_heap_grow(s->readers, sizeof *s->readers * s->reader_capacity);
        }
        reader = s->reader_count++;
    }
    s->readers[reader] =
        (lilac_sim_reader){.epoch = epoch, .warp = warp, .step = step, .next = next};
    return reader;
}

/* The stamp of a byte that `warp` reads now, `before` being its stamp of other readers. */
static uint64_t add_reader(lilac_sim_shared *s, uint64_t before, uint64_t mine, uint32_t warp) {
    uint32_t head = 0;
    if (!(before & MANY)) {
        if (!is_ordered(s, warp_of(before), epoch_of(before), warp)) {
            head = new_reader(s, epoch_of(before), warp_of(before), step_of(before), 0);
        }
    } else {
        head = (uint32_t)before >> WARP_SHIFT;
        uint32_t *link = &head;
        while (*link) {
            uint32_t reader = *link;
            lilac_sim_reader *r = &s->readers[reader];
            if (r->epoch > s->floor && !is_ordered(s, r->warp, r->epoch, warp)) {
                link = &r->next;
                continue;
            }
            *link = r->next;
            r->next = s->free_reader;
            s->free_reader = reader;
        }
    }
    if (!head || s->reader_count == MOST_LISTED) { /* more would not fit, nor any host's memory */
        return mine;
    }
    head = new_reader(s, epoch_of(mine), warp, step_of(mine), head);
    return (uint64_t)epoch_of(mine) << EPOCH_SHIFT | (uint64_t)head << WARP_SHIFT | MANY;
}

/* Stamps bytes that several warps may touch without conflict. */
static void stamp_together(lilac_sim_shared *s, uint64_t *stamps, uint32_t size, uint32_t warp,
                           uint32_t step) {
    uint64_t mine = stamp_of(s->epoch, step, warp), who = mine & WHO;
    if (!s->known) {
        uint64_t first = ((uint64_t)s->floor + 1) << EPOCH_SHIFT;
        for (uint32_t b = 0; b < size; b++) {
            bool others = (stamps[b] & WHO) != who && stamps[b] >= first;
            stamps[b] = mine | (others ? MANY : 0);
        }
        return;
    }
    for (uint32_t b = 0; b < size; b++) {
        uint64_t before = stamps[b];
        bool alone = (before & WHO) == who || epoch_of(before) <= s->floor;
        stamps[b] = alone ? mine : add_reader(s, before, mine, warp);
    }
}

void lilac_sim_shared_read(lilac_sim_shared *s, uint64_t at, uint32_t size, uint32_t warp,
                           uint32_t step, lilac_sim_conflict *conflict) {
    if (conflict) {
        find_conflict(s, s->write_stamp + at, size, warp, CONFLICT_READ_AFTER_WRITE, conflict);
    }
    if (conflict && s->atomic_stamp && conflict->kind == CONFLICT_NONE) {
        find_conflict(s, s->atomic_stamp + at, size, warp, CONFLICT_READ_AFTER_WRITE, conflict);
    }
    stamp_together(s, s->read_stamp + at, size, warp, step);
}

void lilac_sim_shared_find_write(const lilac_sim_shared *s, uint64_t at, uint32_t size,
                                 uint32_t warp, lilac_sim_conflict *conflict) {
    find_conflict(s, s->write_stamp + at, size, warp, CONFLICT_WRITE_AFTER_WRITE, conflict);
}

void lilac_sim_shared_atomic(lilac_sim_shared *s, uint64_t at, uint32_t size, uint32_t warp,
                             uint32_t step, lilac_sim_conflict *conflict) {
    if (conflict) {
        find_conflict(s, s->write_stamp + at, size, warp, CONFLICT_WRITE_AFTER_WRITE, conflict);
    }
    if (conflict && conflict->kind == CONFLICT_NONE) {
        find_conflict(s, s->read_stamp + at, size, warp, CONFLICT_WRITE_AFTER_READ, conflict);
    }
    stamp_together(s, s->atomic_stamp + at, size, warp, step);
    memset(s->written + at, 1, size);
}

void lilac_sim_shared_write(lilac_sim_shared *s, uint64_t at, uint32_t size, uint32_t warp,
                            uint32_t step, lilac_sim_conflict *conflict) {
    uint64_t mine = stamp_of(s->epoch, step, warp);
    uint64_t *stamps = s->write_stamp + at;
    if (conflict) {
        find_conflict(s, stamps, size, warp, CONFLICT_WRITE_AFTER_WRITE, conflict);
    }
    if (conflict && conflict->kind == CONFLICT_NONE) {
        find_conflict(s, s->read_stamp + at, size, warp, CONFLICT_WRITE_AFTER_READ, conflict);
    }
    if (conflict && s->atomic_stamp && conflict->kind == CONFLICT_NONE) {
        find_conflict(s, s->atomic_stamp + at, size, warp, CONFLICT_WRITE_AFTER_WRITE, conflict);
    }
    for (uint32_t b = 0; b < size; b++) {
        stamps[b] = mine;
    }
    memset(s->written + at, 1, size);
}
