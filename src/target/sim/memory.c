/* Loads and stores: bounds, alignment, sectors, wavefronts, races, reads of nothing.
 *
 * A step is done warp by warp. The active lanes' addresses are gathered; one look at their least
 * and greatest says whether all fall into one buffer, and only when they do not is each looked up.
 *
 * Races, by byte of shared memory, with stamps of the last writer and the last reader:
 *
 *   read   conflicts with a write of this epoch by another warp
 *   write  conflicts with a write or a read of this epoch by another warp
 *
 * A barrier begins an epoch, so stamps need no clearing. */
#include "block.h"

#include <string.h>

enum { MAX_LANES = 64, MANY = 0x80, EPOCH_SHIFT = 8 };
#define LAST_EPOCH (UINT32_MAX >> EPOCH_SHIFT)

/* The active lanes of a warp. */
typedef struct active {
    uint32_t count;
    uint32_t thread[MAX_LANES];
    uint64_t address[MAX_LANES];
    uint8_t *host[MAX_LANES];
    uint64_t least, greatest, together; /* together: all addresses or-ed */
} active;

static void note_address(active *lanes, uint32_t thread, uint64_t address) {
    uint32_t k = lanes->count++;
    lanes->thread[k] = thread;
    lanes->address[k] = address;
    lanes->least = address < lanes->least ? address : lanes->least;
    lanes->greatest = address > lanes->greatest ? address : lanes->greatest;
    lanes->together |= address;
}

/* Shared addresses are unsigned 32-bit; the sum with the offset is taken in 64 bits. */
static void gather(active *lanes, const lilac_sim_worker *w, const lilac_sim_access *access,
                   uint32_t warp, bool shared) {
    uint32_t size = w->program->arch->warp_size, first = warp * size;
    const lane_u8 *predicate =
        access->predicate == LILAC_SIM_NONE ? NULL : w->registers + access->predicate;
    const void *addresses = w->registers + access->address;
    lanes->count = 0;
    lanes->least = UINT64_MAX;
    lanes->greatest = lanes->together = 0;
    for (uint32_t t = first; t < first + size; t++) {
        if (predicate && !predicate[t])
            continue;
        uint64_t base =
            shared ? ((const lane_u32 *)addresses)[t] : ((const lane_u64 *)addresses)[t];
        note_address(lanes, t, base + (uint64_t)access->offset);
    }
}

static bool trap_access(lilac_sim_worker *w, const lilac_sim_step *step, lilac_sim_trap_kind kind,
                        const active *lanes, uint32_t k, uint32_t size) {
    w->trap.address = lanes->address[k];
    w->trap.size = size;
    return lilac_sim_worker_trap(w, kind, step, lanes->thread[k]);
}

/* ---- moving data ------------------------------------------------------------------------ */

#define LOAD_ELEMENTS(entry)                                                                       \
    for (uint32_t k = 0; k < access->count; k++) {                                                 \
        entry *values = (entry *)(void *)(registers + access->values[k]);                          \
        for (uint32_t l = 0; l < lanes->count; l++)                                                \
            memcpy(&values[lanes->thread[l]], lanes->host[l] + k * sizeof(entry), sizeof(entry));  \
    }
#define STORE_ELEMENTS(entry)                                                                      \
    for (uint32_t l = 0; l < lanes->count; l++)                                                    \
        for (uint32_t k = 0; k < access->count; k++) {                                             \
            const entry *values = (const entry *)(const void *)(registers + access->values[k]);    \
            memcpy(lanes->host[l] + k * sizeof(entry), &values[lanes->thread[l]], sizeof(entry));  \
        }

static void move(uint8_t *registers, const lilac_sim_access *access, const active *lanes,
                 bool load) {
    if (load) {
        switch (access->width) {
        case 1:
            LOAD_ELEMENTS(lane_u8) break;
        case 2:
            LOAD_ELEMENTS(lane_u16) break;
        case 4:
            LOAD_ELEMENTS(lane_u32) break;
        default:
            LOAD_ELEMENTS(lane_u64) break;
        }
    } else {
        switch (access->width) {
        case 1:
            STORE_ELEMENTS(lane_u8) break;
        case 2:
            STORE_ELEMENTS(lane_u16) break;
        case 4:
            STORE_ELEMENTS(lane_u32) break;
        default:
            STORE_ELEMENTS(lane_u64) break;
        }
    }
}

/* What threads get whose predicate is false; the others' entries are written over. */
static void give_others(const lilac_sim_worker *w, const lilac_sim_access *access) {
    size_t bytes = (size_t)w->program->threads * access->width;
    if (access->predicate == LILAC_SIM_NONE)
        return;
    for (uint32_t k = 0; k < access->count; k++) {
        uint8_t *values = w->registers + access->values[k];
        if (access->others[k] == LILAC_SIM_NONE)
            memset(values, 0, bytes);
        else
            memcpy(values, w->registers + access->others[k], bytes);
    }
}

/* ---- global memory ---------------------------------------------------------------------- */

const lilac_sim_buffer *lilac_sim_memory_find(const lilac_sim_memory *memory, uint64_t address,
                                              uint64_t size) {
    uint32_t low = 0, high = memory->count; /* buffers[low - 1] begins at or before the address */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (memory->buffers[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* an empty buffer may begin where another does */
    for (; low > 0; low--) {
        const lilac_sim_buffer *buffer = memory->buffers[low - 1];
        uint64_t offset = address - buffer->address;
        if (size <= buffer->size && offset <= buffer->size - size)
            return buffer;
        if (buffer->size)
            break;
    }
    return NULL;
}

static const lilac_sim_buffer *find(lilac_sim_worker *w, uint64_t address, uint64_t size) {
    const lilac_sim_buffer *last = w->last_buffer;
    if (last && address >= last->address && size <= last->size &&
        address - last->address <= last->size - size)
        return last;
    const lilac_sim_buffer *found = lilac_sim_memory_find(w->memory, address, size);
    if (found)
        w->last_buffer = found;
    return found;
}

/* Distinct sectors of the active lanes' accesses. Addresses mostly ascend, so sorting by insertion
 * is one comparison a lane. */
static uint32_t count_sectors(const active *lanes, uint32_t size, uint32_t sector_bytes) {
    uint64_t sectors[MAX_LANES];
    uint32_t count = 0, pieces = size > sector_bytes ? size / sector_bytes : 1;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t sector = lanes->address[l] / sector_bytes;
        uint32_t at = count;
        while (at > 0 && sectors[at - 1] > sector)
            at--;
        if (at > 0 && sectors[at - 1] == sector)
            continue;
        memmove(sectors + at + 1, sectors + at, (count - at) * sizeof *sectors);
        sectors[at] = sector;
        count++;
    }
    return count * pieces; /* an access is aligned to its size: wider ones take whole sectors */
}

/* Reports the first byte that nothing wrote, and counts the warp's access once. */
static void check_global_written(lilac_sim_worker *w, const lilac_sim_step *step,
                                 const active *lanes, const lilac_sim_buffer *const *buffers,
                                 uint32_t size) {
    for (uint32_t l = 0; l < lanes->count; l++) {
        const uint8_t *written = buffers[l]->written;
        if (!written)
            continue;
        written += lanes->address[l] - buffers[l]->address;
        const uint8_t *hole = memchr(written, 0, size);
        if (!hole)
            continue;
        w->counters.uninitialised_reads++;
        lilac_sim_worker_find(
            w, (lilac_sim_finding){.kind = FINDING_UNINITIALISED_GLOBAL,
                                   .at = step->source,
                                   .block = w->block,
                                   .address = lanes->address[l] + (uint64_t)(hole - written),
                                   .thread = lanes->thread[l]});
        return;
    }
}

/* The buffer of each lane's access, checked. */
static bool resolve_global(lilac_sim_worker *w, const lilac_sim_step *step, active *lanes,
                           const lilac_sim_buffer **buffers, uint32_t size, bool load) {
    const lilac_sim_buffer *one = NULL;
    if (lanes->greatest <= UINT64_MAX - size)
        one = find(w, lanes->least, lanes->greatest - lanes->least + size);
    for (uint32_t l = 0; l < lanes->count; l++) {
        const lilac_sim_buffer *buffer = one ? one : find(w, lanes->address[l], size);
        if (!buffer)
            return trap_access(w, step, TRAP_GLOBAL_BOUNDS, lanes, l, size);
        if (lanes->address[l] & (size - 1))
            return trap_access(w, step, TRAP_MISALIGNED, lanes, l, size);
        if (!load && buffer->read_only)
            return trap_access(w, step, TRAP_READ_ONLY, lanes, l, size);
        buffers[l] = buffer;
        lanes->host[l] = buffer->bytes + (lanes->address[l] - buffer->address);
    }
    return true;
}

bool lilac_sim_access_global(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const lilac_sim_buffer *buffers[MAX_LANES];
    bool load = step->kind == STEP_LOAD_GLOBAL;
    uint32_t size = access->count * access->width;
    lilac_sim_counters *c = &w->counters;
    active lanes;
    if (load)
        give_others(w, access);
    for (uint32_t warp = 0; warp < w->program->warps; warp++) {
        gather(&lanes, w, access, warp, false);
        if (lanes.count == 0)
            continue;
        if (!resolve_global(w, step, &lanes, buffers, size, load))
            return false;
        uint32_t sectors = count_sectors(&lanes, size, w->program->arch->sector_bytes);
        *(load ? &c->global_loads : &c->global_stores) += 1;
        *(load ? &c->global_load_sectors : &c->global_store_sectors) += sectors;
        *(load ? &c->global_load_bytes : &c->global_store_bytes) += (uint64_t)lanes.count * size;
        c->access_bits[__builtin_ctz(size)]++;
        move(w->registers, access, &lanes, load);
        if (load) {
            check_global_written(w, step, &lanes, buffers, size);
            continue;
        }
        for (uint32_t l = 0; l < lanes.count; l++)
            if (buffers[l]->written)
                memset(buffers[l]->written + (lanes.address[l] - buffers[l]->address), 1, size);
    }
    return true;
}

/* ---- shared memory ---------------------------------------------------------------------- */

void lilac_sim_shared_init(lilac_sim_shared *shared, uint32_t size) {
    size_t words = (size_t)size * sizeof(uint32_t);
    *shared = (lilac_sim_shared){.size = size, .epoch = 1};
    shared->bytes = lilac_heap_grow(NULL, size + 1u);
    shared->written = lilac_heap_grow(NULL, size + 1u);
    shared->write_stamp = lilac_heap_grow(NULL, words + 1);
    shared->read_stamp = lilac_heap_grow(NULL, words + 1);
    shared->write_step = lilac_heap_grow(NULL, words + 1);
    shared->read_step = lilac_heap_grow(NULL, words + 1);
    memset(shared->write_stamp, 0, words);
    memset(shared->read_stamp, 0, words);
}

void lilac_sim_shared_clear(lilac_sim_shared *shared) {
    lilac_heap_free(shared->bytes);
    lilac_heap_free(shared->written);
    lilac_heap_free(shared->write_stamp);
    lilac_heap_free(shared->read_stamp);
    lilac_heap_free(shared->write_step);
    lilac_heap_free(shared->read_step);
}

void lilac_sim_shared_forget(lilac_sim_shared *shared) {
    memset(shared->bytes, 0, shared->size);
    memset(shared->written, 0, shared->size);
    lilac_sim_shared_barrier(shared);
}

void lilac_sim_shared_barrier(lilac_sim_shared *shared) {
    if (shared->epoch++ < LAST_EPOCH)
        return;
    memset(shared->write_stamp, 0, shared->size * sizeof(uint32_t));
    memset(shared->read_stamp, 0, shared->size * sizeof(uint32_t));
    shared->epoch = 1;
}

/* The most distinct words that one bank gets from the lanes [first, last). */
static uint32_t transaction_wavefronts(const active *lanes, uint32_t first, uint32_t last,
                                       uint32_t words, const lilac_arch *arch) {
    enum { MAX_BANKS = 64 };
    uint64_t word[MAX_LANES * 8];
    uint16_t next[MAX_LANES * 8], head[MAX_BANKS];
    uint32_t depth[MAX_BANKS], count = 0, most = 0;
    uint64_t least = UINT64_MAX, greatest = 0;
    for (uint32_t l = first; l < last; l++) {
        uint64_t at = lanes->address[l] / arch->bank_bytes;
        least = at < least ? at : least;
        greatest = at + words - 1 > greatest ? at + words - 1 : greatest;
    }
    if (greatest - least < arch->banks)
        return 1; /* no two words here share a bank */
    memset(depth, 0, sizeof depth);
    for (uint32_t l = first; l < last; l++) {
        for (uint32_t k = 0; k < words; k++) {
            uint64_t at = lanes->address[l] / arch->bank_bytes + k;
            uint32_t bank = (uint32_t)(at % arch->banks), seen = depth[bank];
            uint32_t entry = head[bank];
            while (seen > 0 && word[entry] != at) {
                entry = next[entry];
                seen--;
            }
            if (seen > 0)
                continue;
            word[count] = at;
            next[count] = depth[bank] ? head[bank] : 0;
            head[bank] = (uint16_t)count++;
            most = ++depth[bank] > most ? depth[bank] : most;
        }
    }
    return most;
}

static uint32_t count_wavefronts(const active *lanes, uint32_t size, const lilac_arch *arch) {
    uint32_t words = size > arch->bank_bytes ? size / arch->bank_bytes : 1;
    uint32_t group = arch->banks / words, wavefronts = 0;
    for (uint32_t first = 0, last; first < lanes->count; first = last) {
        uint32_t which = lanes->thread[first] % arch->warp_size / group;
        for (last = first; last < lanes->count; last++)
            if (lanes->thread[last] % arch->warp_size / group != which)
                break;
        wavefronts += transaction_wavefronts(lanes, first, last, words, arch);
    }
    return wavefronts;
}

/* Is one of the stamps of this epoch and not only of this warp? Which: *at. */
static bool conflicts(const uint32_t *stamps, uint32_t size, uint32_t mine, uint32_t *at) {
    for (uint32_t b = 0; b < size; b++) {
        if (stamps[b] != mine && stamps[b] >> EPOCH_SHIFT == mine >> EPOCH_SHIFT) {
            *at = b;
            return true;
        }
    }
    return false;
}

/* Keeps the first race of a warp's access. */
static void find_race(lilac_sim_worker *w, const lilac_sim_step *step, lilac_sim_finding_kind kind,
                      const active *lanes, uint32_t l, uint64_t byte) {
    const lilac_sim_shared *s = &w->shared;
    bool after_read = kind == FINDING_WRITE_AFTER_READ;
    uint32_t stamp = (after_read ? s->read_stamp : s->write_stamp)[byte];
    uint32_t other = (after_read ? s->read_step : s->write_step)[byte];
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = kind,
                               .at = step->source,
                               .other = w->program->steps[other].source,
                               .block = w->block,
                               .address = byte,
                               .thread = lanes->thread[l],
                               .warp = lanes->thread[l] / w->program->arch->warp_size,
                               .other_warp = stamp & (MANY - 1)});
}

static void account_load(lilac_sim_worker *w, const lilac_sim_step *step, const active *lanes,
                         uint32_t size) {
    lilac_sim_shared *s = &w->shared;
    uint32_t warp = lanes->thread[0] / w->program->arch->warp_size;
    uint32_t mine = s->epoch << EPOCH_SHIFT | warp, at;
    uint32_t index = (uint32_t)(step - w->program->steps);
    bool raced = false, unwritten = false;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t first = lanes->address[l];
        if (!raced && conflicts(s->write_stamp + first, size, mine, &at)) {
            raced = true;
            find_race(w, step, FINDING_READ_AFTER_WRITE, lanes, l, first + at);
        }
        const uint8_t *hole = unwritten ? NULL : memchr(s->written + first, 0, size);
        if (hole) {
            unwritten = true;
            w->counters.uninitialised_reads++;
            lilac_sim_worker_find(w, (lilac_sim_finding){.kind = FINDING_UNINITIALISED_SHARED,
                                                         .at = step->source,
                                                         .block = w->block,
                                                         .address = (uint64_t)(hole - s->written),
                                                         .thread = lanes->thread[l]});
        }
        for (uint64_t b = first; b < first + size; b++) {
            uint32_t before = s->read_stamp[b];
            bool others = before >> EPOCH_SHIFT == s->epoch && before != mine;
            s->read_stamp[b] = others ? mine | MANY : mine;
            s->read_step[b] = index;
        }
    }
}

static void account_store(lilac_sim_worker *w, const lilac_sim_step *step, const active *lanes,
                          uint32_t size) {
    lilac_sim_shared *s = &w->shared;
    uint32_t warp = lanes->thread[0] / w->program->arch->warp_size;
    uint32_t mine = s->epoch << EPOCH_SHIFT | warp, at;
    uint32_t index = (uint32_t)(step - w->program->steps);
    bool raced = false;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t first = lanes->address[l];
        if (!raced && conflicts(s->write_stamp + first, size, mine, &at)) {
            raced = true;
            find_race(w, step, FINDING_WRITE_AFTER_WRITE, lanes, l, first + at);
        }
        if (!raced && conflicts(s->read_stamp + first, size, mine, &at)) {
            raced = true;
            find_race(w, step, FINDING_WRITE_AFTER_READ, lanes, l, first + at);
        }
        for (uint64_t b = first; b < first + size; b++) {
            s->write_stamp[b] = mine;
            s->write_step[b] = index;
        }
        memset(s->written + first, 1, size);
    }
}

static bool resolve_shared(lilac_sim_worker *w, const lilac_sim_step *step, active *lanes,
                           uint32_t size) {
    const lilac_sim_shared *s = &w->shared;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t address = lanes->address[l];
        if (size > s->size || address > s->size - size)
            return trap_access(w, step, TRAP_SHARED_BOUNDS, lanes, l, size);
        if (address & (size - 1))
            return trap_access(w, step, TRAP_MISALIGNED, lanes, l, size);
        lanes->host[l] = s->bytes + address;
    }
    return true;
}

bool lilac_sim_access_shared(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool load = step->kind == STEP_LOAD_SHARED;
    uint32_t size = access->count * access->width;
    lilac_sim_counters *c = &w->counters;
    active lanes;
    if (load)
        give_others(w, access);
    for (uint32_t warp = 0; warp < w->program->warps; warp++) {
        gather(&lanes, w, access, warp, true);
        if (lanes.count == 0)
            continue;
        if (!resolve_shared(w, step, &lanes, size))
            return false;
        uint32_t wavefronts = count_wavefronts(&lanes, size, w->program->arch);
        *(load ? &c->shared_loads : &c->shared_stores) += 1;
        *(load ? &c->shared_load_wavefronts : &c->shared_store_wavefronts) += wavefronts;
        move(w->registers, access, &lanes, load);
        if (load)
            account_load(w, step, &lanes, size);
        else
            account_store(w, step, &lanes, size);
    }
    return true;
}
