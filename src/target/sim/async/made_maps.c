/* Tensor maps that a kernel makes (bulk.h).
 *
 *     tensor_map.set       128 bytes of shared memory: a mark and the fields of the map
 *     tensor_map.publish   the map of an address in scratch memory; nobody has acquired it
 *     tensor_map.acquire   the warp has, if it is ordered behind the publication
 *     cp.tensor.…          uses the map: its warp has acquired it, or is ordered behind one that has
 *
 * The bytes in scratch memory are not simulated: programs have addresses of their own there, which
 * nothing else accesses. */
#include "memory/access.h"

#include <lilac/tensor_map.h>

#include <string.h>

/* What tensor_map.set writes. */
typedef struct map_image {
    uint32_t mark;
    uint8_t element, swizzle, fill, rank;
    uint64_t address, strides[LILAC_TENSOR_RANK - 1];
    uint32_t dims[LILAC_TENSOR_RANK];
    uint16_t box[LILAC_TENSOR_RANK];
} map_image;

enum { MARK = 0x70616D74 };

_Static_assert(sizeof(map_image) <= LILAC_TENSOR_MAP_BYTES, "a map has 128 bytes");

static uint64_t read_wide(const lilac_sim_worker *w, uint32_t offset, uint32_t thread) {
    const lane_u64 *values = (const void *)(w->registers + offset);
    return values[thread];
}

static void write_map(const lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                      uint8_t *place) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const lilac_simt_tensor_map_payload *known = &step->source->payload.tensor_map;
    const uint32_t rank = access->count;
    map_image image = {.mark = MARK,
                       .element = known->element,
                       .swizzle = known->swizzle,
                       .fill = known->fill,
                       .rank = (uint8_t)rank,
                       .address = read_wide(w, access->values[0], thread)};
    for (uint32_t k = 0; k < rank; k++) {
        image.dims[k] = (uint32_t)read_wide(w, access->others[k], thread);
        image.box[k] = known->box[k];
    }
    for (uint32_t k = 0; k + 1 < rank; k++) {
        image.strides[k] = read_wide(w, access->others[rank + k], thread);
    }
    memset(place, 0, LILAC_TENSOR_MAP_BYTES);
    memcpy(place, &image, sizeof image);
}

static void read_map(lilac_tensor_map *map, const map_image *image) {
    *map = (lilac_tensor_map){.address = image->address,
                              .element = (lilac_tensor_element)image->element,
                              .rank = image->rank,
                              .swizzle = (lilac_tensor_swizzle)image->swizzle,
                              .fill = (lilac_tensor_fill)image->fill};
    for (uint32_t k = 0; k < image->rank; k++) {
        map->dims[k] = image->dims[k];
        map->box[k] = image->box[k];
        map->element_strides[k] = 1;
        if (k + 1 < image->rank) {
            map->strides[k] = image->strides[k];
        }
    }
}

static lilac_sim_made_map *find_map(lilac_sim_bulks *b, uint64_t address) {
    for (uint32_t k = 0; k < b->map_count; k++) {
        if (b->maps[k].address == address) {
            return &b->maps[k];
        }
    }
    return NULL;
}

static bool trap(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread,
                 uint64_t address) {
    w->trap.address = address;
    w->trap.rank = w->rank;
    return lilac_sim_worker_trap(w, TRAP_TENSOR_MAP, step, thread);
}

static void find(lilac_sim_worker *w, lilac_sim_finding_kind kind, const lilac_sim_step *step,
                 const lilac_simt_instruction *other, uint32_t thread) {
    w->counters.races++;
    lilac_sim_worker_find(
        w,
        (lilac_sim_finding){
            .kind = kind, .at = step->source, .other = other, .block = w->block, .thread = thread});
}

/* ---- the steps -------------------------------------------------------------------------------- */

/* The active lanes of a warp, with their places in shared memory. False: a trap. */
static bool gather(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t warp, bool load,
                   lilac_sim_active *lanes) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_gather(lanes, w, access, warp, true);
    if (lanes->count == 0) {
        return true;
    }
    if (!lilac_sim_resolve_shared(w, step, access, lanes, LILAC_TENSOR_MAP_BYTES)) {
        return false;
    }
    lilac_sim_account_shared(w, step, lanes, LILAC_TENSOR_MAP_BYTES, load);
    return true;
}

static bool set(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t warp) {
    lilac_sim_active lanes;
    if (!gather(w, step, warp, false, &lanes)) {
        return false;
    }
    for (uint32_t l = 0; l < lanes.count; l++) {
        write_map(w, step, lanes.thread[l], lanes.host[l]);
    }
    return true;
}

static bool publish(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t warp) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    lilac_sim_bulks *b = &w->bulks;
    lilac_sim_active lanes;
    map_image image;
    lilac_tensor_map map;
    if (!gather(w, step, warp, true, &lanes)) {
        return false;
    }
    if (lanes.count == 0) {
        return true;
    }
    if (lanes.count != w->program->arch->warp_size) {
        return lilac_sim_worker_trap(w, TRAP_PREDICATE, step, lanes.thread[0]);
    }
    const uint32_t thread = lanes.thread[0];
    const uint64_t address = read_wide(w, access->values[0], thread);
    memcpy(&image, lanes.host[0], sizeof image);
    if (image.mark == MARK) {
        read_map(&map, &image);
    }
    if (image.mark != MARK || address % LILAC_TENSOR_MAP_BYTES != 0 ||
        !lilac_tensor_map_check(NULL, &map, "")) {
        return trap(w, step, thread, address);
    }
    for (uint32_t k = 0; k < b->count; k++) {
        if (b->flying[k]->made == address) {
            find(w, FINDING_MAP_IN_USE, step, b->flying[k]->step->source, thread);
        }
    }
    lilac_sim_made_map *made = find_map(b, address);
    if (made == NULL) {
        b->maps = lilac_heap_grow(b->maps, sizeof *b->maps * (b->map_count + 1u));
        made = &b->maps[b->map_count++];
        *made = (lilac_sim_made_map){.address = address};
        made->acquired = lilac_heap_grow(NULL, sizeof *made->acquired * b->warps);
    }
    memset(made->acquired, 0, sizeof *made->acquired * b->warps);
    made->map = map;
    made->at = step->source;
    made->warp = w->rank * w->program->warps + warp;
    made->epoch = w->shared.epoch;
    return true;
}

/* Are accesses of warp u in that epoch ordered before what warp v does now? */
static bool is_ordered(const lilac_sim_worker *w, uint32_t u, uint32_t epoch, uint32_t v) {
    return u == v || lilac_sim_shared_is_ordered(&w->shared, u, epoch, v);
}

static bool acquire(lilac_sim_worker *w, const lilac_sim_step *step, uint32_t warp) {
    const uint32_t predicate = w->program->accesses[step->access].predicate;
    const uint32_t thread = warp * w->program->arch->warp_size;
    const lane_u8 *active = w->registers + predicate;
    if (predicate != LILAC_SIM_NONE && !active[thread]) {
        return true;
    }
    lilac_sim_made_map *made = find_map(&w->bulks, read_wide(w, step->a, thread));
    const uint32_t number = w->rank * w->program->warps + warp;
    if (made != NULL && is_ordered(w, made->warp, made->epoch, number) &&
        made->acquired[number] == 0) {
        made->acquired[number] = w->shared.epoch + 1;
    }
    return true;
}

bool lilac_sim_made_map_step(lilac_sim_worker *w, const lilac_sim_step *step) {
    bool good = true;
    w->snapshot.disturbed = true;
    for (uint32_t warp = w->first_warp; warp < w->end_warp && good; warp++) {
        switch (step->source->code) {
        case LILAC_SIMT_OP_TENSOR_MAP_SET:
            good = set(w, step, warp);
            break;
        case LILAC_SIMT_OP_TENSOR_MAP_PUBLISH:
            good = publish(w, step, warp);
            break;
        default:
            good = acquire(w, step, warp);
            break;
        }
    }
    return good;
}

/* ---- copies ------------------------------------------------------------------------------------ */

const lilac_tensor_map *lilac_sim_made_map_of(lilac_sim_worker *w, const lilac_sim_step *step,
                                              uint32_t thread, uint64_t *address) {
    const lilac_sim_access *access = &w->program->accesses[step->access];
    const uint32_t warp = w->rank * w->program->warps + thread / w->program->arch->warp_size;
    *address = read_wide(w, access->values[0], thread);
    const lilac_sim_made_map *made = find_map(&w->bulks, *address);
    if (made == NULL || !lilac_sim_can_copy(step->source, &made->map, access->count)) {
        (void)trap(w, step, thread, *address);
        return NULL;
    }
    bool acquired = false;
    for (uint32_t v = 0; v < w->bulks.warps && !acquired; v++) {
        acquired = made->acquired[v] != 0 && is_ordered(w, v, made->acquired[v] - 1, warp);
    }
    if (!acquired) {
        find(w, FINDING_MAP_NOT_ACQUIRED, step, made->at, thread);
    }
    return &made->map;
}

void lilac_sim_made_maps_forget(lilac_sim_bulks *b) {
    for (uint32_t k = 0; k < b->map_count; k++) {
        lilac_heap_free(b->maps[k].acquired);
    }
    lilac_heap_free(b->maps);
    b->maps = NULL;
    b->map_count = 0;
}
