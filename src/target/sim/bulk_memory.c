/* The pieces of a bulk copy in global and in shared memory (bulk.h).
 *
 * Global memory is accessed 64 pieces at a time, as if these were the lanes of a warp's instruction, so
 * that bounds and races are checked as for any access. */
#include "access.h"

#include <string.h>

lilac_sim_piece *lilac_sim_bulk_add(lilac_sim_bulk *copy) {
    if (copy->count == copy->capacity) {
        copy->capacity = copy->capacity * 2 + 64;
        copy->pieces = lilac_heap_grow(copy->pieces, sizeof *copy->pieces * copy->capacity);
    }
    return &copy->pieces[copy->count++];
}

/* The pieces from `first` on, at most 64, as lanes; how many. */
static uint32_t gather(const lilac_sim_bulk *copy, uint32_t first, lilac_sim_active *lanes,
                       const lilac_sim_buffer **buffers) {
    lanes->count = 0;
    lanes->least = UINT64_MAX;
    lanes->greatest = lanes->together = 0;
    for (uint32_t k = first; k < copy->count && lanes->count < MAX_LANES; k++) {
        const lilac_sim_piece *piece = &copy->pieces[k];
        uint32_t l = lanes->count++;
        lanes->thread[l] = copy->thread;
        lanes->address[l] = piece->global;
        lanes->least = piece->global < lanes->least ? piece->global : lanes->least;
        lanes->greatest = piece->global > lanes->greatest ? piece->global : lanes->greatest;
        buffers[l] = piece->buffer;
        if (piece->buffer)
            lanes->host[l] = piece->buffer->bytes + (piece->global - piece->buffer->address);
    }
    return lanes->count;
}

bool lilac_sim_bulk_resolve(lilac_sim_worker *w, lilac_sim_bulk *copy, bool writes) {
    lilac_sim_active lanes;
    const lilac_sim_buffer *buffers[MAX_LANES];
    for (uint32_t k = 0; k < copy->count; k += lanes.count) {
        gather(copy, k, &lanes, buffers);
        if (!lilac_sim_resolve_global(w, copy->step, &lanes, buffers, copy->unit, !writes))
            return false;
        for (uint32_t l = 0; l < lanes.count; l++)
            copy->pieces[k + l].buffer = buffers[l];
    }
    copy->data = lilac_heap_grow(NULL, (size_t)copy->count * copy->unit + 1);
    return true;
}

bool lilac_sim_bulk_read_shared(lilac_sim_worker *w, lilac_sim_bulk *copy) {
    const lilac_sim_program *program = w->program;
    uint32_t warp = copy->rank * program->warps + copy->thread / program->arch->warp_size;
    uint8_t *data = copy->data;
    for (uint32_t k = 0; k < copy->count; k++, data += copy->unit)
        memcpy(data, w->shared.bytes + copy->pieces[k].shared, copy->unit);
    for (uint64_t b = copy->at; b < copy->at + copy->bytes; b++)
        w->shared.reading[b]--;
    lilac_sim_shared_read(&w->shared, copy->at, (uint32_t)copy->bytes, warp,
                          (uint32_t)(copy->step - program->steps), NULL);
    copy->read = true;
    return lilac_sim_poison_bytes(w, copy->step, copy->thread, copy->at, copy->bytes);
}

/* ---- writing ------------------------------------------------------------------------------ */

/* The type of a reduction's elements. */
static lilac_simt_type element_of(const lilac_simt_instruction *i) {
    switch (i->scalar) {
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

static void combine(lilac_sim_worker *w, const lilac_sim_bulk *copy, const lilac_sim_active *lanes,
                    const lilac_sim_buffer *const *buffers, const uint8_t *data) {
    const lilac_simt_instruction *i = copy->step->source;
    lilac_simt_type type = element_of(i);
    uint32_t width = w->program->accesses[copy->step->access].width;
    for (uint32_t l = 0; l < lanes->count; l++) {
        for (uint32_t b = 0; b < copy->unit; b += width, data += width) {
            uint64_t old = 0, value = 0;
            memcpy(&old, lanes->host[l] + b, width); /* little-endian, as the device is */
            memcpy(&value, data, width);
            value = lilac_sim_combine(i->detail, type, old, value, true);
            w->changed |= memcmp(&value, &old, width) != 0;
            memcpy(lanes->host[l] + b, &value, width);
            if (buffers)
                lilac_sim_races_atomic(w, copy->step, lanes, buffers, l, lanes->address[l] + b,
                                       true);
        }
    }
}

static void store(lilac_sim_worker *w, const lilac_sim_bulk *copy, const lilac_sim_active *lanes,
                  const lilac_sim_buffer *const *buffers, const uint8_t *data, bool watched) {
    for (uint32_t l = 0; l < lanes->count && !w->changed; l++)
        w->changed = memcmp(lanes->host[l], data + (size_t)l * copy->unit, copy->unit) != 0;
    if (watched) {
        lilac_sim_races_put(w, copy->step, lanes, buffers, copy->unit, data);
        return;
    }
    for (uint32_t l = 0; l < lanes->count; l++)
        memcpy(lanes->host[l], data + (size_t)l * copy->unit, copy->unit);
}

void lilac_sim_bulk_write_global(lilac_sim_worker *w, const lilac_sim_bulk *copy) {
    bool reduces = copy->step->source->code == LILAC_SIMT_OP_CP_BULK_REDUCE;
    lilac_sim_active lanes;
    const lilac_sim_buffer *buffers[MAX_LANES];
    for (uint32_t k = 0; k < copy->count; k += lanes.count) {
        const uint8_t *data = copy->data + (size_t)k * copy->unit;
        uint64_t stripes;
        gather(copy, k, &lanes, buffers);
        bool watched = lilac_sim_races_open(w, &lanes, buffers, copy->unit, &stripes);
        if (reduces) {
            lilac_sim_check_global_written(w, copy->step, &lanes, buffers, copy->unit);
            pthread_mutex_lock(w->memory->atomics);
            combine(w, copy, &lanes, watched ? buffers : NULL, data);
            pthread_mutex_unlock(w->memory->atomics);
        } else {
            store(w, copy, &lanes, buffers, data, watched);
        }
        for (uint32_t l = 0; l < lanes.count; l++)
            if (buffers[l]->written)
                memset(buffers[l]->written + (lanes.address[l] - buffers[l]->address), 1,
                       copy->unit);
        lilac_sim_worker_publish(w);
        if (watched)
            lilac_sim_races_close(w, copy->step, stripes);
    }
}
