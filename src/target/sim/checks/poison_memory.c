/* Poison of accesses to memory: loads and stores, atomics, and the bytes of shared memory. */
#include "checks/poison_planes.h"

#include <string.h>

/* ---- before an access ------------------------------------------------------------------- */

static bool check_values(lilac_sim_worker *w, const lilac_sim_step *s,
                         const lilac_sim_access *access, const uint32_t *values, uint32_t count,
                         const char *what) {
    for (uint32_t k = 0; k < count; k++) {
        if (!lilac_sim_poison_check(w, s, values[k], access->width, w->threads, access->predicate,
                                    what)) {
            return false;
        }
    }
    return true;
}

static void clean_results(lilac_sim_worker *w, const lilac_sim_access *access) {
    for (uint32_t k = 0; k < access->count; k++) {
        if (access->values[k] != LILAC_SIM_NONE) {
            lilac_sim_plane_clean(w, access->values[k], access->width);
        }
    }
}

/* Threads whose predicate is false get the poison of what they are given instead. */
static void give_others(lilac_sim_worker *w, const lilac_sim_access *access) {
    clean_results(w, access);
    for (uint32_t k = 0; k < access->count && access->predicate != LILAC_SIM_NONE; k++) {
        uint32_t other = access->others[k];
        if (other == LILAC_SIM_NONE || !lilac_sim_plane_is_dirty(w, other)) {
            continue;
        }
        lilac_sim_plane_open(w, access->values[k], access->width);
        for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
            if (!w->registers[access->predicate + t]) {
                lilac_sim_plane_write(w, access->values[k], access->width, t,
                                      lilac_sim_plane_read(w, other, access->width, t),
                                      *lilac_sim_plane_origin(w, other, t));
            }
        }
    }
}

/* A load whose predicate or address is poison gives poison. */
static void spoil_results(lilac_sim_worker *w, const lilac_sim_access *access, uint32_t array,
                          uint32_t bytes) {
    if (array == LILAC_SIM_NONE || !lilac_sim_plane_is_dirty(w, array)) {
        return;
    }
    for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
        bool active = array == access->predicate || access->predicate == LILAC_SIM_NONE ||
                      w->registers[access->predicate + t];
        if (!active || !lilac_sim_plane_read(w, array, bytes, t)) {
            continue;
        }
        for (uint32_t k = 0; k < access->count; k++) {
            lilac_sim_plane_open(w, access->values[k], access->width);
            lilac_sim_plane_write(w, access->values[k], access->width, t, UINT64_MAX,
                                  *lilac_sim_plane_origin(w, array, t));
        }
    }
}

bool lilac_sim_poison_access(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    switch (s->kind) {
    case STEP_LOAD_GLOBAL:
        give_others(w, access);
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint64_t));
    case STEP_STORE_GLOBAL:
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint64_t)) &&
               check_values(w, s, access, access->values, access->count, "stored value");
    case STEP_ATOMIC_GLOBAL: {
        bool swaps = s->immediate == LILAC_SIMT_ATOMIC_COUNT;
        clean_results(w, access);
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint64_t)) &&
               check_values(w, s, access, access->others, swaps ? 2 : access->count, "operand");
    }
    case STEP_LOAD_SHARED:
    case STEP_LOAD_CLUSTER:
        give_others(w, access);
        spoil_results(w, access, access->address, sizeof(uint32_t));
        spoil_results(w, access, access->predicate, 1);
        return true;
    case STEP_LOAD_MATRIX:
    case STEP_ATOMIC_SHARED:
        clean_results(w, access);
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint32_t));
    case STEP_MBARRIER:
    case STEP_MBARRIER_WAIT:
        if (access->values[0] != LILAC_SIM_NONE) {
            lilac_sim_plane_clean(w, access->values[0], 1);
        }
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint32_t)) &&
               check_values(w, s, access, access->others, access->count, "operand");
    default: /* stores to shared memory */
        return lilac_sim_poison_check_places(w, s, access, sizeof(uint32_t));
    }
}

/* ---- shared bytes ----------------------------------------------------------------------- */

/* A load's lanes whose address or predicate is poison read nothing. */
static void drop_lanes(lilac_sim_worker *w, const lilac_sim_access *access,
                       lilac_sim_active *lanes) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint32_t t = lanes->thread[l];
        if (lilac_sim_plane_read(w, access->address, sizeof(uint32_t), t) ||
            (access->predicate != LILAC_SIM_NONE &&
             lilac_sim_plane_read(w, access->predicate, 1, t))) {
            continue;
        }
        lanes->thread[count] = t;
        lanes->address[count] = lanes->address[l];
        lanes->host[count++] = lanes->host[l];
    }
    lanes->count = count;
}

/* An element of a shared atomic: the old value's poison is the result's; memory has it and the
 * operand's. An exchange leaves only the operand's. */
static void act_shared(lilac_sim_worker *w, const lilac_sim_step *s, const lilac_sim_access *access,
                       uint32_t k, uint32_t thread, size_t at) {
    lilac_sim_poison *p = &w->poison;
    uint64_t operand = lilac_sim_plane_read(w, access->others[k], access->width, thread), old = 0;
    memcpy(&old, p->shared + at, access->width);
    uint32_t old_origin = old ? p->shared_origins[at] : 0;
    if (old && access->values[k] != LILAC_SIM_NONE) {
        lilac_sim_plane_open(w, access->values[k], access->width);
        lilac_sim_plane_write(w, access->values[k], access->width, thread, old, old_origin);
    }
    bool exchange_only = s->immediate == LILAC_SIMT_ATOMIC_EXCHANGE;
    bool poison = operand || (old && !exchange_only);
    memset(p->shared + at, poison ? 0xFF : 0, access->width);
    for (uint32_t b = 0; b < access->width && poison; b++) {
        p->shared_origins[at + b] =
            operand ? *lilac_sim_plane_origin(w, access->others[k], thread) : old_origin;
    }
}

static void move_element(lilac_sim_worker *w, uint32_t array, uint32_t width, uint32_t thread,
                         size_t at, bool load) {
    lilac_sim_poison *p = &w->poison;
    if (!load) {
        uint64_t poison = lilac_sim_plane_read(w, array, width, thread);
        memcpy(p->shared + at, &poison, width); /* little-endian, as the device is */
        for (uint32_t b = 0; b < width && poison; b++) {
            p->shared_origins[at + b] = *lilac_sim_plane_origin(w, array, thread);
        }
        return;
    }
    uint64_t poison = 0;
    memcpy(&poison, p->shared + at, width);
    if (!poison && !lilac_sim_plane_is_dirty(w, array)) {
        return;
    }
    lilac_sim_plane_open(w, array, width);
    lilac_sim_plane_write(w, array, width, thread, poison,
                          poison ? p->shared_origins[at + (uint32_t)__builtin_ctzll(poison) / 8]
                                 : 0);
}

void lilac_sim_poison_shared(lilac_sim_worker *w, const lilac_sim_step *s,
                             const lilac_sim_access *access, lilac_sim_active *lanes, bool load) {
    bool atomic = s->kind == STEP_ATOMIC_SHARED, any = w->poison.shared_live;
    const uint32_t *values = atomic ? access->others : access->values;
    if (load) {
        drop_lanes(w, access, lanes);
    }
    for (uint32_t k = 0; k < access->count && !load; k++) {
        any |= lilac_sim_plane_is_dirty(w, values[k]);
    }
    if (!any) {
        return;
    }
    lilac_sim_poison_enable_shared(w);
    for (uint32_t l = 0; l < lanes->count; l++) {
        for (uint32_t k = 0; k < access->count; k++) {
            size_t at = (size_t)lanes->address[l] + (size_t)k * access->width;
            if (atomic) {
                act_shared(w, s, access, k, lanes->thread[l], at);
            } else {
                move_element(w, values[k], access->width, lanes->thread[l], at, load);
            }
        }
    }
}

void lilac_sim_poison_half(lilac_sim_worker *w, uint32_t array, uint32_t half, uint32_t thread,
                           uint64_t byte, bool load) {
    lilac_sim_poison *p = &w->poison;
    bool moves = load ? p->shared_live : lilac_sim_plane_is_dirty(w, array) || p->shared_live;
    if (!moves) {
        return;
    }
    lilac_sim_poison_enable_shared(w);
    if (!load) {
        uint16_t poison = (uint16_t)(lilac_sim_plane_read(w, array, 4, thread) >> 16 * half);
        memcpy(p->shared + byte, &poison, sizeof poison);
        for (uint32_t b = 0; b < sizeof poison && poison; b++) {
            p->shared_origins[byte + b] = *lilac_sim_plane_origin(w, array, thread);
        }
        return;
    }
    uint16_t poison;
    memcpy(&poison, p->shared + byte, sizeof poison);
    if (!poison) {
        return;
    }
    lilac_sim_plane_open(w, array, 4);
    lilac_sim_plane_write(w, array, 4, thread,
                          lilac_sim_plane_read(w, array, 4, thread) | (uint64_t)poison << 16 * half,
                          p->shared_origins[byte + (poison & 0xFF ? 0 : 1)]);
}

bool lilac_sim_poison_bytes(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread,
                            uint64_t at, uint64_t size) {
    const lilac_sim_poison *p = &w->poison;
    for (uint64_t b = at; b < at + size && p->shared_live; b++) {
        if (p->shared[b]) {
            return lilac_sim_poison_trap(w, s, thread, p->shared_origins[b], "stored value");
        }
    }
    return true;
}
