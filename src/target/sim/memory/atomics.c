/* Atomic operations on global and shared memory.
 *
 * A warp's instruction is done thread by thread in ascending order, element by element. Global
 * memory is everybody's: whoever is at it holds the launch's mutex, so instructions of blocks on
 * different host threads come one after another. Shared memory is the worker's own. */
#include "lanes/number.h"
#include "memory/access.h"

#include <string.h>

/* ---- one element ------------------------------------------------------------------------ */

static uint16_t add_halves(uint16_t a, uint16_t b) {
    return half_of_double((double)float_of_half(a) + (double)float_of_half(b)); /* exact sum */
}

static uint16_t add_bfloats(uint16_t a, uint16_t b) {
    return bfloat_of_double(odd_fused((double)float_of_bfloat(a), 1.0, (double)float_of_bfloat(b)));
}

static uint32_t add_floats(uint32_t a, uint32_t b, bool flush) {
    float x = float_of_bits(a), y = float_of_bits(b);
    float sum = clean_float(flush ? flush_float(x) + flush_float(y) : x + y);
    return bits_of_float(flush ? flush_float(sum) : sum);
}

static uint64_t add(lilac_simt_type type, uint64_t old, uint64_t value, bool flush) {
    switch (type) {
    case LILAC_SIMT_F16:
        return add_halves((uint16_t)old, (uint16_t)value);
    case LILAC_SIMT_BF16:
        return add_bfloats((uint16_t)old, (uint16_t)value);
    case LILAC_SIMT_F16X2:
        return add_halves((uint16_t)old, (uint16_t)value) |
               (uint32_t)add_halves((uint16_t)(old >> 16), (uint16_t)(value >> 16)) << 16;
    case LILAC_SIMT_BF16X2:
        return add_bfloats((uint16_t)old, (uint16_t)value) |
               (uint32_t)add_bfloats((uint16_t)(old >> 16), (uint16_t)(value >> 16)) << 16;
    case LILAC_SIMT_F32:
        return add_floats((uint32_t)old, (uint32_t)value, flush);
    case LILAC_SIMT_F64:
        return bits_of_double(clean_double(double_of_bits(old) + double_of_bits(value)));
    default:
        return old + value;
    }
}

/* The smaller or greater of two 16-bit floats; the number if one is NaN; -0 below +0. */
static uint64_t extreme(lilac_simt_type type, uint64_t old, uint64_t value, bool greatest) {
    const bool half = type == LILAC_SIMT_F16;
    const float a = half ? float_of_half((uint16_t)old) : float_of_bfloat((uint16_t)old);
    const float b = half ? float_of_half((uint16_t)value) : float_of_bfloat((uint16_t)value);
    if (a != a || b != b) {
        return b != b ? old : value;
    }
    const bool first = a == b ? (old >> 15 & 1) != 0 : a < b; /* `old` is the smaller one */
    return first != greatest ? old : value;
}

uint64_t lilac_sim_combine(uint64_t kind, lilac_simt_type type, uint64_t old, uint64_t value,
                           bool flush) {
    uint32_t shift = 64 - lilac_simt_type_bits(type);
    int64_t a = (int64_t)(old << shift) >> shift, b = (int64_t)(value << shift) >> shift;
    if ((type == LILAC_SIMT_F16 || type == LILAC_SIMT_BF16) &&
        (kind == LILAC_SIMT_ATOMIC_MIN_S || kind == LILAC_SIMT_ATOMIC_MAX_S)) {
        return extreme(type, old, value, kind == LILAC_SIMT_ATOMIC_MAX_S);
    }
    switch (kind) {
    case LILAC_SIMT_ATOMIC_AND:
        return old & value;
    case LILAC_SIMT_ATOMIC_OR:
        return old | value;
    case LILAC_SIMT_ATOMIC_XOR:
        return old ^ value;
    case LILAC_SIMT_ATOMIC_MIN_S:
        return a < b ? old : value;
    case LILAC_SIMT_ATOMIC_MAX_S:
        return a > b ? old : value;
    case LILAC_SIMT_ATOMIC_MIN_U:
        return old < value ? old : value;
    case LILAC_SIMT_ATOMIC_MAX_U:
        return old > value ? old : value;
    case LILAC_SIMT_ATOMIC_EXCHANGE:
        return value;
    default:
        return add(type, old, value, flush);
    }
}

/* ---- a warp ----------------------------------------------------------------------------- */

static uint64_t read_bytes(const uint8_t *at, uint32_t width) {
    uint64_t bits = 0;
    memcpy(&bits, at, width); /* the host is little-endian, as the device is */
    return bits;
}

/* `buffers`: of each lane, in global memory that is watched for races; else NULL. */
static void act(lilac_sim_worker *w, const lilac_sim_step *step, const lilac_sim_active *lanes,
                const lilac_sim_buffer *const *buffers) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool shared = step->kind == STEP_ATOMIC_SHARED;
    uint32_t width = access->width;
    lilac_simt_type type = (lilac_simt_type)access->type;
    for (uint32_t l = 0; l < lanes->count; l++) {
        size_t entry = (size_t)lanes->thread[l] * width;
        for (uint32_t k = 0; k < access->count; k++) {
            uint8_t *place = lanes->host[l] + (size_t)k * width;
            uint64_t old = read_bytes(place, width);
            bool writes = true;
            uint64_t value = read_bytes(w->registers + access->others[k] + entry, width);
            if (step->immediate == LILAC_SIMT_ATOMIC_COUNT) {
                uint64_t put = read_bytes(w->registers + access->others[1] + entry, width);
                writes = old == value;
                value = writes ? put : old;
            } else {
                value = lilac_sim_combine(step->immediate, type, old, value, !shared);
            }
            w->changed |= !shared && memcmp(place, &value, width) != 0;
            memcpy(place, &value, width);
            if (buffers) {
                lilac_sim_races_atomic(w, step, lanes, buffers, l,
                                       lanes->address[l] + (uint64_t)k * width, writes);
            }
            if (access->values[k] != LILAC_SIM_NONE) {
                memcpy(w->registers + access->values[k] + entry, &old, width);
            }
        }
    }
}

static bool act_global(lilac_sim_worker *w, const lilac_sim_step *step, lilac_sim_active *lanes,
                       uint32_t size) {
    const lilac_sim_buffer *buffers[MAX_LANES];
    if (!lilac_sim_resolve_global(w, step, lanes, buffers, size, false)) {
        return false;
    }
    if (w->bulks.count) {
        lilac_sim_bulk_find_global(w, step, lanes, size);
    }
    if (w->shared.proxies.writes) {
        lilac_sim_proxies_write_global(w, step, lanes, size);
    }
    if (step->immediate != LILAC_SIMT_ATOMIC_EXCHANGE) {
        lilac_sim_check_global_written(w, step, lanes, buffers, size);
    }
    uint64_t stripes;
    bool watched = lilac_sim_races_open(w, lanes, buffers, size, &stripes);
    pthread_mutex_lock(w->memory->atomics);
    act(w, step, lanes, watched ? buffers : NULL);
    lilac_sim_worker_publish(w);
    pthread_mutex_unlock(w->memory->atomics);
    for (uint32_t l = 0; l < lanes->count; l++) {
        if (buffers[l]->written) {
            memset(buffers[l]->written + (lanes->address[l] - buffers[l]->address), 1, size);
        }
    }
    if (watched) {
        lilac_sim_races_close(w, step, stripes);
    }
    return true;
}

bool lilac_sim_access_atomic(lilac_sim_worker *w, const lilac_sim_step *step) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    bool shared = step->kind == STEP_ATOMIC_SHARED;
    uint32_t size = access->count * access->width;
    lilac_sim_active lanes;
    for (uint32_t k = 0; k < access->count; k++) {
        if (access->values[k] != LILAC_SIM_NONE) {
            memset(w->registers + access->values[k] + (size_t)w->first_thread * access->width, 0,
                   (size_t)w->threads * access->width);
        }
    }
    for (uint32_t warp = w->first_warp; warp < w->end_warp; warp++) {
        lilac_sim_gather(&lanes, w, access, warp, shared);
        if (lanes.count == 0) {
            continue;
        }
        w->counters.atomics++;
        if (!shared) {
            if (!act_global(w, step, &lanes, size)) {
                return false;
            }
            continue;
        }
        if (!lilac_sim_resolve_shared(w, step, access, &lanes, size)) {
            return false;
        }
        if (w->poison.live) {
            lilac_sim_poison_shared(w, step, access, &lanes, false);
        }
        act(w, step, &lanes, NULL);
        lilac_sim_account_shared(w, step, &lanes, size, false);
    }
    return true;
}
