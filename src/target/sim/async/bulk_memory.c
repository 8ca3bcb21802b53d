/* The pieces of a bulk copy in global and in shared memory (bulk.h).
 *
 * Global memory is accessed up to 64 pieces at a time, as if these were the lanes of a warp's
 * instruction, so that bounds and races are checked as for any access. */
#include "memory/access.h"

#include <string.h>

enum { MOST_UNIT = 16 };

lilac_sim_piece *lilac_sim_bulk_add(lilac_sim_bulk *copy) {
    if (copy->count == copy->capacity) {
        copy->capacity = copy->capacity * 2 + 64;
        copy->pieces = lilac_heap_grow(copy->pieces, sizeof *copy->pieces * copy->capacity);
    }
    return &copy->pieces[copy->count++];
}

/* Pieces in global memory, as lanes. */
typedef struct batch {
    lilac_sim_active lanes;
    const lilac_sim_buffer *buffers[MAX_LANES];
    uint32_t piece[MAX_LANES];
    uint32_t next; /* piece to look at */
} batch;

/* The next batch; false when there are no more pieces. */
static bool gather(const lilac_sim_bulk *copy, batch *b) {
    lilac_sim_active *lanes = &b->lanes;
    lanes->count = 0;
    lanes->least = UINT64_MAX;
    lanes->greatest = lanes->together = 0;
    for (; b->next < copy->count && lanes->count < MAX_LANES; b->next++) {
        const lilac_sim_piece *piece = &copy->pieces[b->next];
        if (piece->outside) {
            continue;
        }
        uint32_t l = lanes->count++;
        b->piece[l] = b->next;
        b->buffers[l] = piece->buffer;
        lanes->thread[l] = copy->thread;
        lanes->address[l] = piece->global;
        lanes->least = piece->global < lanes->least ? piece->global : lanes->least;
        lanes->greatest = piece->global > lanes->greatest ? piece->global : lanes->greatest;
        if (piece->buffer) {
            lanes->host[l] = piece->buffer->bytes + (piece->global - piece->buffer->address);
        }
    }
    return lanes->count > 0;
}

bool lilac_sim_bulk_resolve(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    batch b = {.next = 0};
    while (gather(copy, &b)) {
        if (!lilac_sim_resolve_global(w, copy->step, &b.lanes, b.buffers, copy->unit, copy->load)) {
            return false;
        }
        for (uint32_t l = 0; l < b.lanes.count; l++) {
            copy->pieces[b.piece[l]].buffer = b.buffers[l];
        }
    }
    copy->data = lilac_heap_grow(NULL, (size_t)copy->count * copy->unit + 1);
    return true;
}

/* ---- stores ------------------------------------------------------------------------------- */

bool lilac_sim_bulk_read_shared(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_program *program = w->program;
    uint32_t warp = copy->rank * program->warps + copy->thread / program->arch->warp_size;
    uint8_t *data = copy->data;
    for (uint32_t k = 0; k < copy->count; k++, data += copy->unit) {
        memcpy(data, w->shared.bytes + copy->pieces[k].shared, copy->unit);
    }
    for (uint64_t b = copy->at; b < copy->at + copy->bytes; b++) {
        w->shared.reading[b]--;
    }
    lilac_sim_shared_read(&w->shared, copy->at, (uint32_t)copy->bytes, warp,
                          (uint32_t)(copy->step - program->steps), NULL);
    copy->read = true;
    return lilac_sim_poison_bytes(w, copy->step, copy->thread, copy->at, copy->bytes);
}

/* The type of a reduction's elements. */
static lilac_simt_type element_of(const lilac_sim_bulk *copy) {
    static const lilac_simt_type of_tensor[LILAC_TENSOR_ELEMENT_COUNT] = {
        [LILAC_TENSOR_U32] = LILAC_SIMT_I32,  [LILAC_TENSOR_S32] = LILAC_SIMT_I32,
        [LILAC_TENSOR_U64] = LILAC_SIMT_I64,  [LILAC_TENSOR_S64] = LILAC_SIMT_I64,
        [LILAC_TENSOR_F16] = LILAC_SIMT_F16,  [LILAC_TENSOR_F32] = LILAC_SIMT_F32,
        [LILAC_TENSOR_BF16] = LILAC_SIMT_BF16};
    if (copy->map) {
        return of_tensor[copy->map->element];
    }
    switch (copy->step->source->scalar) {
    case LILAC_I64:
        return LILAC_SIMT_I64;
    case LILAC_F16:
        return LILAC_SIMT_F16;
    case LILAC_BF16:
        return LILAC_SIMT_BF16;
    case LILAC_F32:
        return LILAC_SIMT_F32;
    case LILAC_F64:
        return LILAC_SIMT_F64;
    default:
        return LILAC_SIMT_I32;
    }
}

/* `data`: of the batch's pieces in turn. */
static void combine(lilac_sim_worker *w, const lilac_sim_bulk *copy, const batch *b,
                    const uint8_t *data, bool watched) {
    lilac_simt_type type = element_of(copy);
    uint32_t width = copy->map ? lilac_tensor_element_bytes(copy->map->element)
                               : w->program->accesses[copy->step->access].width;
    for (uint32_t l = 0; l < b->lanes.count; l++) {
        for (uint32_t at = 0; at < copy->unit; at += width, data += width) {
            uint8_t *place = b->lanes.host[l] + at;
            uint64_t old = 0, value = 0;
            memcpy(&old, place, width); /* little-endian, as the device is */
            memcpy(&value, data, width);
            value = lilac_sim_combine(copy->step->source->detail, type, old, value, true);
            w->changed |= memcmp(&value, &old, width) != 0;
            memcpy(place, &value, width);
            if (watched) {
                lilac_sim_races_atomic(w, copy->step, &b->lanes, b->buffers, l,
                                       b->lanes.address[l] + at, true);
            }
        }
    }
}

static void store(lilac_sim_worker *w, const lilac_sim_bulk *copy, const batch *b,
                  const uint8_t *data, bool watched) {
    for (uint32_t l = 0; l < b->lanes.count && !w->changed; l++) {
        w->changed = memcmp(b->lanes.host[l], data + (size_t)l * copy->unit, copy->unit) != 0;
    }
    if (watched) {
        lilac_sim_races_put(w, copy->step, &b->lanes, b->buffers, copy->unit, data);
        return;
    }
    for (uint32_t l = 0; l < b->lanes.count; l++) {
        memcpy(b->lanes.host[l], data + (size_t)l * copy->unit, copy->unit);
    }
}

static void write_batch(lilac_sim_worker *w, const lilac_sim_bulk *copy, batch *b) {
    bool reduces = copy->step->source->code == LILAC_SIMT_OP_CP_BULK_REDUCE ||
                   copy->step->source->code == LILAC_SIMT_OP_CP_TENSOR_REDUCE;
    uint8_t data[MAX_LANES * MOST_UNIT];
    uint64_t stripes;
    for (uint32_t l = 0; l < b->lanes.count; l++) {
        memcpy(data + (size_t)l * copy->unit, copy->data + (size_t)b->piece[l] * copy->unit,
               copy->unit);
    }
    bool watched = lilac_sim_races_open(w, &b->lanes, b->buffers, copy->unit, &stripes);
    if (reduces) {
        lilac_sim_check_global_written(w, copy->step, &b->lanes, b->buffers, copy->unit);
        pthread_mutex_lock(w->memory->atomics);
        combine(w, copy, b, data, watched);
        pthread_mutex_unlock(w->memory->atomics);
    } else {
        store(w, copy, b, data, watched);
    }
    for (uint32_t l = 0; l < b->lanes.count; l++) {
        if (b->buffers[l]->written) {
            memset(b->buffers[l]->written + (b->lanes.address[l] - b->buffers[l]->address), 1,
                   copy->unit);
        }
    }
    for (uint32_t l = 0; l < b->lanes.count; l++) {
        lilac_sim_proxies_settle_global(&w->shared.proxies, b->lanes.address[l]);
    }
    lilac_sim_worker_publish(w);
    if (watched) {
        lilac_sim_races_close(w, copy->step, stripes);
    }
}

void lilac_sim_bulk_write_global(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    batch b = {.next = 0};
    while (gather(copy, &b)) {
        write_batch(w, copy, &b);
    }
}

/* ---- loads -------------------------------------------------------------------------------- */

/* What a load puts where the tensor has no element: zeros, or the bits of a NaN. */
static void fill(const lilac_sim_bulk *copy, uint8_t *data) {
    size_t size = copy->map ? lilac_tensor_element_bytes(copy->map->element) : 1;
    size_t bytes = (size_t)copy->count * copy->unit;
    bool nan = copy->map && copy->map->fill == LILAC_TENSOR_FILL_NAN;
    memset(data, nan ? 0xFF : 0, bytes);
    for (size_t at = size - 1; nan && at < bytes; at += size) {
        data[at] = 0x7F;
    }
}

void lilac_sim_bulk_read_global(lilac_sim_worker *w, const lilac_sim_bulk *copy, uint8_t *data,
                                bool first) {
    batch b = {.next = 0};
    fill(copy, data);
    while (gather(copy, &b)) {
        uint64_t stripes;
        bool watched = lilac_sim_races_open(w, &b.lanes, b.buffers, copy->unit, &stripes);
        if (watched) {
            lilac_sim_races_load(w, copy->step, &b.lanes, b.buffers, copy->unit);
        }
        for (uint32_t l = 0; l < b.lanes.count; l++) {
            memcpy(data + (size_t)b.piece[l] * copy->unit, b.lanes.host[l], copy->unit);
        }
        if (first) {
            lilac_sim_check_global_written(w, copy->step, &b.lanes, b.buffers, copy->unit);
        }
        if (watched) {
            lilac_sim_races_close(w, copy->step, stripes);
        }
    }
}

void lilac_sim_bulk_write_shared(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    const uint8_t *data = copy->data;
    for (uint32_t k = 0; k < copy->count; k++, data += copy->unit) {
        memcpy(w->shared.bytes + copy->pieces[k].shared, data, copy->unit);
    }
    if (w->poison.shared_live) {
        memset(w->poison.shared + copy->at, 0, (size_t)copy->bytes);
    }
}
