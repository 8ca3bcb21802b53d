/* Generic writes and fences of the async proxy (proxies.h). */
#include "block.h"

#include <string.h>

enum { STEP_SHIFT = 16, THREAD_MASK = (1 << STEP_SHIFT) - 1 };

void lilac_sim_proxies_init(lilac_sim_proxies *p, size_t bytes) {
    p->writes = lilac_heap_grow(NULL, sizeof *p->writes * (bytes + 1));
    p->fences = lilac_heap_grow(NULL, sizeof *p->fences * (bytes + 1));
}

void lilac_sim_proxies_clear(lilac_sim_proxies *p) {
    lilac_heap_free(p->writes);
    lilac_heap_free(p->fences);
    lilac_sim_proxies_clear_global(p);
}

void lilac_sim_proxies_forget(lilac_sim_proxies *p, size_t bytes) {
    if (!p->writes) {
        return;
    }
    memset(p->writes, 0, sizeof *p->writes * bytes);
    p->begin = p->end = 0;
    lilac_sim_proxies_forget_global(p);
}

void lilac_sim_proxies_settle(lilac_sim_proxies *p, uint64_t at, uint32_t size) {
    if (p->writes) {
        memset(p->writes + at, 0, sizeof *p->writes * size);
    }
}

void lilac_sim_proxies_write(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                             uint64_t at, uint32_t size) {
    lilac_sim_proxies *p = &w->shared.proxies;
    uint64_t number = step - w->program->steps;
    uint64_t write = number << STEP_SHIFT | (w->rank * w->program->threads + thread + 1);
    if (lilac_simt_op_info_get((lilac_simt_opcode)step->source->code)->traits &
        LILAC_SIMT_ASYNCHRONOUS) {
        lilac_sim_proxies_settle(p, at, size);
        return;
    }
    for (uint32_t b = 0; b < size; b++) {
        p->writes[at + b] = write;
        p->fences[at + b] = 0;
    }
    bool none = p->begin == p->end;
    p->begin = none || at < p->begin ? at : p->begin;
    p->end = none || at + size > p->end ? at + size : p->end;
}

void lilac_sim_proxies_fence(lilac_sim_worker *w, const lilac_sim_step *step) {
    lilac_sim_proxies *p = &w->shared.proxies;
    uint32_t first = w->rank * w->program->threads + w->first_thread + 1;
    bool others = false; /* bytes of other threads stay unfenced */
    if (!p->writes) {
        return;
    }
    if (step->immediate != LILAC_SIMT_FENCE_SHARED) {
        lilac_sim_proxies_fence_global(w);
    }
    if (step->immediate == LILAC_SIMT_FENCE_GLOBAL) {
        return;
    }
    for (uint64_t at = p->begin; at < p->end; at++) {
        uint64_t thread = p->writes[at] & THREAD_MASK;
        if (thread == 0 || p->fences[at] != 0) {
            continue;
        }
        if (thread - first < w->threads) {
            p->fences[at] = w->shared.epoch;
        } else {
            others = true;
        }
    }
    if (!others) {
        p->begin = p->end = 0;
    }
}

bool lilac_sim_proxies_access(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                              uint64_t at, uint32_t size) {
    const lilac_sim_program *program = w->program;
    const lilac_sim_proxies *p = &w->shared.proxies;
    uint32_t warp = w->rank * program->warps + thread / program->arch->warp_size;
    for (uint64_t b = at; b < at + size; b++) {
        uint64_t write = p->writes[b];
        uint32_t fence = p->fences[b];
        if (write == 0) {
            continue;
        }
        uint32_t writer = (uint32_t)(write & THREAD_MASK) - 1;
        uint32_t other = writer / program->arch->warp_size;
        if (fence != 0 && lilac_sim_shared_is_ordered(&w->shared, other, fence, warp)) {
            continue;
        }
        w->counters.races++;
        lilac_sim_worker_find(
            w, (lilac_sim_finding){.kind = FINDING_PROXY,
                                   .at = step->source,
                                   .other = program->steps[write >> STEP_SHIFT].source,
                                   .block = w->block,
                                   .address = b % w->shared.stride,
                                   .rank = (uint32_t)(b / w->shared.stride),
                                   .thread = thread,
                                   .warp = warp,
                                   .other_warp = other,
                                   .other_thread = writer % program->threads,
                                   .width = fence != 0});
        return false;
    }
    return true;
}
