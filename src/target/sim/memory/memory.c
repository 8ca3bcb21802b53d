/* Loads and stores: bounds, alignment, sectors, reads of nothing.
 *
 * A step is done warp by warp. The active lanes' addresses are gathered; one look at their least
 * and greatest says whether all fall into one buffer, and only when they do not is each looked up.
 * What is special about shared memory is in memory_shared.c. */
#include "memory/access.h"

#include <string.h>

enum { MAX_ACCESS = 64 }; /* bytes */

static void note_address(lilac_sim_active *lanes, uint32_t thread, uint64_t address) {
    uint32_t k = lanes->count++;
    lanes->thread[k] = thread;
    lanes->address[k] = address;
    lanes->least = address < lanes->least ? address : lanes->least;
    lanes->greatest = address > lanes->greatest ? address : lanes->greatest;
    lanes->together |= address;
}

void lilac_sim_gather(lilac_sim_active *lanes, const lilac_sim_worker *w,
                      const lilac_sim_access *access, uint32_t warp, bool shared) {
    uint32_t size = w->program->arch->warp_size, first = warp * size;
    const lane_u8 *predicate =
        access->predicate == LILAC_SIM_NONE ? NULL : w->registers + access->predicate;
    const void *addresses = w->registers + access->address;
    lanes->count = 0;
    lanes->least = UINT64_MAX;
    lanes->greatest = lanes->together = 0;
    for (uint32_t t = first; t < first + size; t++) {
        if (predicate && !predicate[t]) {
            continue;
        }
        /* a shared address has 32 bits: a register below 0 and an offset that makes up for it */
        note_address(lanes, t,
                     shared ? ((const lane_u32 *)addresses)[t] + (uint32_t)access->offset
                            : ((const lane_u64 *)addresses)[t] + (uint64_t)access->offset);
    }
}

bool lilac_sim_trap_access(lilac_sim_worker *w, const lilac_sim_step *step,
                           lilac_sim_trap_kind kind, const lilac_sim_active *lanes, uint32_t k,
                           uint32_t size) {
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

void lilac_sim_move(uint8_t *registers, const lilac_sim_access *access,
                    const lilac_sim_active *lanes, bool load) {
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

void lilac_sim_give_others(const lilac_sim_worker *w, const lilac_sim_access *access) {
    size_t bytes = (size_t)w->threads * access->width, at = (size_t)w->first_thread * access->width;
    if (access->predicate == LILAC_SIM_NONE) {
        return;
    }
    for (uint32_t k = 0; k < access->count; k++) {
        uint8_t *values = w->registers + access->values[k] + at;
        if (access->others[k] == LILAC_SIM_NONE) {
            memset(values, 0, bytes);
        } else {
            memcpy(values, w->registers + access->others[k] + at, bytes);
        }
    }
}

/* ---- global memory ---------------------------------------------------------------------- */

const lilac_sim_buffer *lilac_sim_memory_find(const lilac_sim_memory *memory, uint64_t address,
                                              uint64_t size) {
    uint32_t low = 0, high = memory->count; /* buffers[low - 1] begins at or before the address */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (memory->buffers[middle]->address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    /* an empty buffer may begin where another does */
    for (; low > 0; low--) {
        const lilac_sim_buffer *buffer = memory->buffers[low - 1];
        uint64_t offset = address - buffer->address;
        if (size <= buffer->size && offset <= buffer->size - size) {
            return buffer;
        }
        if (buffer->size) {
            break;
        }
    }
    return NULL;
}

static const lilac_sim_buffer *find(lilac_sim_worker *w, uint64_t address, uint64_t size) {
    const lilac_sim_buffer *last = w->last_buffer;
    if (last && address >= last->address && size <= last->size &&
        address - last->address <= last->size - size) {
        return last;
    }
    const lilac_sim_buffer *found = lilac_sim_memory_find(w->memory, address, size);
    if (found) {
        w->last_buffer = found;
    }
    return found;
}

/* Addresses mostly ascend, so sorting by insertion
 * is one comparison a lane. */
uint32_t lilac_sim_count_sectors(const lilac_sim_active *lanes, uint32_t size,
                                 uint32_t sector_bytes) {
    uint64_t sectors[MAX_LANES];
    uint32_t count = 0, pieces = size > sector_bytes ? size / sector_bytes : 1;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint64_t sector = lanes->address[l] / sector_bytes;
        uint32_t at = count;
        while (at > 0 && sectors[at - 1] > sector) {
            at--;
        }
        if (at > 0 && sectors[at - 1] == sector) {
            continue;
        }
        memmove(sectors + at + 1, sectors + at, (count - at) * sizeof *sectors);
        sectors[at] = sector;
        count++;
    }
    return count * pieces; /* an access is aligned to its size: wider ones take whole sectors */
}

void lilac_sim_check_global_written(lilac_sim_worker *w, const lilac_sim_step *step,
                                    const lilac_sim_active *lanes,
                                    const lilac_sim_buffer *const *buffers, uint32_t size) {
    for (uint32_t l = 0; l < lanes->count; l++) {
        const uint8_t *written = buffers[l]->written;
        if (!written) {
            continue;
        }
        written += lanes->address[l] - buffers[l]->address;
        const uint8_t *hole = memchr(written, 0, size);
        if (!hole) {
            continue;
        }
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

bool lilac_sim_resolve_global(lilac_sim_worker *w, const lilac_sim_step *step,
                              lilac_sim_active *lanes, const lilac_sim_buffer **buffers,
                              uint32_t size, bool load) {
    const lilac_sim_buffer *one = NULL;
    w->trap.global = true;
    if (lanes->greatest <= UINT64_MAX - size) {
        one = find(w, lanes->least, lanes->greatest - lanes->least + size);
    }
    for (uint32_t l = 0; l < lanes->count; l++) {
        const lilac_sim_buffer *buffer = one ? one : find(w, lanes->address[l], size);
        if (!buffer) {
            return lilac_sim_trap_access(w, step, TRAP_GLOBAL_BOUNDS, lanes, l, size);
        }
        if (lanes->address[l] & (size - 1)) {
            return lilac_sim_trap_access(w, step, TRAP_MISALIGNED, lanes, l, size);
        }
        if (!load && buffer->read_only) {
            return lilac_sim_trap_access(w, step, TRAP_READ_ONLY, lanes, l, size);
        }
        buffers[l] = buffer;
        lanes->host[l] = buffer->bytes + (lanes->address[l] - buffer->address);
    }
    return true;
}

/* Does a lane store other bytes than memory holds? */
static bool stores_change(const uint8_t *registers, const lilac_sim_access *access,
                          const lilac_sim_active *lanes) {
    uint32_t width = access->width;
    for (uint32_t l = 0; l < lanes->count; l++) {
        for (uint32_t k = 0; k < access->count; k++) {
            if (memcmp(lanes->host[l] + (size_t)k * width,
                       registers + access->values[k] + (size_t)lanes->thread[l] * width, width)) {
                return true;
            }
        }
    }
    return false;
}

/* What all lanes load from one address: one value, also when another block stores there meanwhile,
 * and the same for all warps of a step. */
typedef struct uniform_load {
    uint64_t address;
    bool valid;
    uint8_t bytes[MAX_ACCESS];
} uniform_load;

static void load_once(uniform_load *load, lilac_sim_active *lanes, uint32_t size) {
    if (lanes->least != lanes->greatest) {
        return;
    }
    if (!load->valid || load->address != lanes->least) {
        memcpy(load->bytes, lanes->host[0], size);
        load->address = lanes->least;
        load->valid = true;
    }
    for (uint32_t l = 0; l < lanes->count; l++) {
        lanes->host[l] = load->bytes;
    }
}

/* Moves a warp's data, with the accounts of who wrote and read what. */
static void move(lilac_sim_worker *w, const lilac_sim_step *step, lilac_sim_active *lanes,
                 const lilac_sim_buffer *const *buffers, uint32_t size, uniform_load *once) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool load = step->kind == STEP_LOAD_GLOBAL;
    uint64_t stripes;
    bool watched = lilac_sim_races_open(w, lanes, buffers, size, &stripes);
    if (watched && load) {
        lilac_sim_races_load(w, step, lanes, buffers, size);
    }
    if (load) {
        load_once(once, lanes, size);
    } else {
        w->changed = w->changed || stores_change(w->registers, access, lanes);
    }
    if (watched && !load) {
        lilac_sim_races_store(w, step, lanes, buffers, size);
    } else {
        lilac_sim_move(w->registers, access, lanes, load);
    }
    if (load) {
        lilac_sim_check_global_written(w, step, lanes, buffers, size);
    }
    for (uint32_t l = 0; l < lanes->count && !load; l++) {
        if (buffers[l]->written) {
            memset(buffers[l]->written + (lanes->address[l] - buffers[l]->address), 1, size);
        }
    }
    if (!load) {
        lilac_sim_worker_publish(w);
    }
    if (watched) {
        lilac_sim_races_close(w, step, stripes);
    }
}

bool lilac_sim_access_global(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const lilac_sim_buffer *buffers[MAX_LANES];
    bool load = step->kind == STEP_LOAD_GLOBAL;
    uint32_t size = access->count * access->width;
    lilac_sim_counters *c = &w->counters;
    lilac_sim_active lanes;
    uniform_load once = {.valid = false};
    if (load) {
        lilac_sim_give_others(w, access);
    }
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, false);
        if (lanes.count == 0) {
            continue;
        }
        if (!lilac_sim_resolve_global(w, step, &lanes, buffers, size, load)) {
            return false;
        }
        uint32_t sectors = lilac_sim_count_sectors(&lanes, size, w->program->arch->sector_bytes);
        *(load ? &c->global_loads : &c->global_stores) += 1;
        *(load ? &c->global_load_sectors : &c->global_store_sectors) += sectors;
        *(load ? &c->global_load_bytes : &c->global_store_bytes) += (uint64_t)lanes.count * size;
        c->access_bits[__builtin_ctz(size)]++;
        if (w->bulks.count) {
            lilac_sim_bulk_find_global(w, step, &lanes, size);
        }
        if (!load && w->shared.proxies.writes) {
            lilac_sim_proxies_write_global(w, step, &lanes, size);
        }
        move(w, step, &lanes, buffers, size, &once);
    }
    return true;
}
