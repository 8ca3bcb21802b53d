/* Generic writes to global memory, and fences of the async proxy (proxies.h). */
#include "memory/access.h"

#include <string.h>

enum { GRANULE = 16, STEP_SHIFT = 16, THREAD_MASK = (1 << STEP_SHIFT) - 1 };

void lilac_sim_proxies_clear_global(lilac_sim_proxies *p) {
    lilac_heap_free(p->global);
}

void lilac_sim_proxies_forget_global(lilac_sim_proxies *p) {
    if (p->global_count) {
        memset(p->global, 0, sizeof *p->global * p->global_capacity);
    }
    p->global_count = 0;
}

/* The entry of the 16 bytes around an address, or the free one where it belongs. The table has one. */
static lilac_sim_global_write *entry_of(const lilac_sim_proxies *p, uint64_t address) {
    uint64_t key = (address & ~(uint64_t)(GRANULE - 1)) + 1, mask = p->global_capacity - 1u;
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 32;
    while (p->global[at & mask].address != 0 && p->global[at & mask].address != key) {
        at++;
    }
    return &p->global[at & mask];
}

static void grow(lilac_sim_proxies *p) {
    lilac_sim_proxies larger = {.global_capacity =
                                    p->global_capacity ? 2 * p->global_capacity : 1024};
    size_t bytes = sizeof *larger.global * larger.global_capacity;
    larger.global = lilac_heap_grow(NULL, bytes);
    memset(larger.global, 0, bytes);
    for (uint32_t k = 0; k < p->global_capacity; k++) {
        if (p->global[k].address) {
            *entry_of(&larger, p->global[k].address - 1) = p->global[k];
        }
    }
    lilac_heap_free(p->global);
    p->global = larger.global;
    p->global_capacity = larger.global_capacity;
}

void lilac_sim_proxies_write_global(lilac_sim_worker *w, const lilac_sim_step *step,
                                    const lilac_sim_active *lanes, uint32_t size) {
    lilac_sim_proxies *p = &w->shared.proxies;
    uint64_t number = step - w->program->steps;
    uint32_t first = w->rank * w->program->threads + 1;
    for (uint32_t l = 0; l < lanes->count; l++) {
        for (uint64_t at = lanes->address[l]; at < lanes->address[l] + size; at += GRANULE) {
            if (2 * p->global_count >= p->global_capacity) {
                grow(p);
            }
            lilac_sim_global_write *entry = entry_of(p, at);
            p->global_count += entry->address == 0;
            entry->address = (at & ~(uint64_t)(GRANULE - 1)) + 1;
            entry->write = number << STEP_SHIFT | (first + lanes->thread[l]);
            entry->fence = 0;
        }
    }
}

void lilac_sim_proxies_fence_global(lilac_sim_worker *w) {
    lilac_sim_proxies *p = &w->shared.proxies;
    uint32_t first = w->rank * w->program->threads + w->first_thread + 1;
    for (uint32_t k = 0; k < p->global_capacity && p->global_count; k++) {
        uint64_t thread = p->global[k].write & THREAD_MASK;
        if (thread != 0 && p->global[k].fence == 0 && thread - first < w->threads) {
            p->global[k].fence = w->shared.epoch;
        }
    }
}

bool lilac_sim_proxies_access_global(lilac_sim_worker *w, const lilac_sim_step *step,
                                     uint32_t thread, uint64_t address) {
    const lilac_sim_program *program = w->program;
    const lilac_sim_proxies *p = &w->shared.proxies;
    if (p->global_count == 0) {
        return true;
    }
    const lilac_sim_global_write *entry = entry_of(p, address);
    if (entry->write == 0) {
        return true;
    }
    uint32_t writer = (uint32_t)(entry->write & THREAD_MASK) - 1;
    uint32_t warp = w->rank * program->warps + thread / program->arch->warp_size;
    uint32_t other = writer / program->arch->warp_size;
    if (entry->fence != 0 && lilac_sim_shared_is_ordered(&w->shared, other, entry->fence, warp)) {
        return true;
    }
    w->counters.races++;
    lilac_sim_worker_find(
        w, (lilac_sim_finding){.kind = FINDING_PROXY_GLOBAL,
                               .at = step->source,
                               .other = program->steps[entry->write >> STEP_SHIFT].source,
                               .block = w->block,
                               .address = address,
                               .thread = thread,
                               .warp = warp,
                               .other_warp = other,
                               .other_thread = writer % program->threads,
                               .width = entry->fence != 0});
    return false;
}

void lilac_sim_proxies_settle_global(lilac_sim_proxies *p, uint64_t address) {
    if (p->global_count) {
        entry_of(p, address)->write = 0;
    }
}
