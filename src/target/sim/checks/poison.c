/* The planes of poison, the traps, and the table of what each step does with poison (poison.h).
 *
 * A row is executed before its step, so registers still hold the operands. Shared memory and the
 * divisors are handled when the step itself has checked its addresses or found a zero. */
#include "checks/poison_planes.h"

#include <string.h>

enum { THREAD_BITS = 11, ARRAY_BYTES = 64 };

uint32_t lilac_sim_poison_new_origin(const lilac_sim_worker *w, const lilac_sim_step *step,
                                     uint32_t thread) {
    return (uint32_t)(step - w->program->steps) << THREAD_BITS | thread;
}

/* ---- planes ----------------------------------------------------------------------------- */

void lilac_sim_poison_clear(lilac_sim_poison *p) {
    lilac_heap_free(p->planes);
    lilac_heap_free(p->origins);
    lilac_heap_free(p->dirty);
    lilac_heap_free(p->shared);
    lilac_heap_free(p->shared_origins);
    *p = (lilac_sim_poison){0};
}

static size_t dirty_size(const lilac_sim_worker *w) {
    const lilac_sim_program *p = w->program;
    return (size_t)p->register_bytes * p->kernel->num_ctas / ARRAY_BYTES + 1;
}

void lilac_sim_poison_forget(lilac_sim_worker *w) {
    lilac_sim_poison *p = &w->poison;
    if (!p->live) {
        return;
    }
    memset(p->dirty, 0, dirty_size(w));
    p->live = p->shared_live = false;
}

/* Planes need no initial value: what a dirty array does not hold is not read. */
void lilac_sim_poison_enable(lilac_sim_worker *w) {
    lilac_sim_poison *p = &w->poison;
    size_t bytes = (size_t)w->program->register_bytes * w->program->kernel->num_ctas;
    p->live = true;
    if (p->planes) {
        return;
    }
    p->planes = lilac_heap_grow(NULL, bytes);
    p->origins = lilac_heap_grow(NULL, bytes * sizeof *p->origins);
    p->dirty = lilac_heap_grow(NULL, dirty_size(w));
    memset(p->dirty, 0, dirty_size(w));
}

void lilac_sim_poison_enable_shared(lilac_sim_worker *w) {
    lilac_sim_poison *p = &w->poison;
    size_t bytes = (size_t)w->shared.stride * w->shared.blocks;
    if (p->shared_live) {
        return;
    }
    if (!p->shared) {
        p->shared = lilac_heap_grow(NULL, bytes + 1);
        p->shared_origins = lilac_heap_grow(NULL, (bytes + 1) * sizeof *p->shared_origins);
    }
    memset(p->shared, 0, bytes);
    p->shared_live = true;
}

/* The array's place in the planes. */
size_t lilac_sim_plane_place(const lilac_sim_worker *w, uint32_t array) {
    return (size_t)(w->registers - w->register_files) + array;
}

bool lilac_sim_plane_is_dirty(const lilac_sim_worker *w, uint32_t array) {
    return w->poison.dirty[lilac_sim_plane_place(w, array) / ARRAY_BYTES];
}

void lilac_sim_plane_set_dirty(lilac_sim_worker *w, uint32_t array, bool dirty) {
    w->poison.dirty[lilac_sim_plane_place(w, array) / ARRAY_BYTES] = dirty;
}

/* The threads in execution have no poison in the array; those of other programs may have. */
void lilac_sim_plane_clean(lilac_sim_worker *w, uint32_t array, uint32_t bytes) {
    if (w->threads == w->program->threads) {
        lilac_sim_plane_set_dirty(w, array, false);
    } else if (lilac_sim_plane_is_dirty(w, array)) {
        memset(w->poison.planes + lilac_sim_plane_place(w, array) + (size_t)w->first_thread * bytes,
               0, (size_t)w->threads * bytes);
    }
}

uint64_t lilac_sim_plane_read(const lilac_sim_worker *w, uint32_t array, uint32_t bytes,
                              uint32_t thread) {
    return lilac_sim_plane_is_dirty(w, array)
               ? read_entry(w->poison.planes + lilac_sim_plane_place(w, array), bytes, thread)
               : 0;
}

uint32_t *lilac_sim_plane_origin(lilac_sim_worker *w, uint32_t array, uint32_t thread) {
    return &w->poison.origins[lilac_sim_plane_place(w, array) + thread];
}

/* Makes the array one that has a plane, without poison so far. */
uint8_t *lilac_sim_plane_open(lilac_sim_worker *w, uint32_t array, uint32_t bytes) {
    uint8_t *plane = w->poison.planes + lilac_sim_plane_place(w, array);
    if (!lilac_sim_plane_is_dirty(w, array)) {
        memset(plane, 0, (size_t)w->program->threads * bytes);
    }
    lilac_sim_plane_set_dirty(w, array, true);
    return plane;
}

void lilac_sim_plane_write(lilac_sim_worker *w, uint32_t array, uint32_t bytes, uint32_t thread,
                           uint64_t poison, uint32_t origin) {
    write_entry(w->poison.planes + lilac_sim_plane_place(w, array), bytes, thread, poison);
    *lilac_sim_plane_origin(w, array, thread) = origin;
}

/* The first entry for all threads, where a uniform result is read by each. */
void lilac_sim_plane_fill(lilac_sim_worker *w, const lilac_sim_step *s) {
    if (!s->fill || !lilac_sim_plane_is_dirty(w, s->out)) {
        return;
    }
    fill_entries(w->poison.planes + lilac_sim_plane_place(w, s->out) +
                     (size_t)w->first_thread * s->entry_bytes,
                 s->entry_bytes, w->threads);
    fill_entries((uint8_t *)lilac_sim_plane_origin(w, s->out, w->first_thread), sizeof(uint32_t),
                 w->threads);
}

/* ---- traps ------------------------------------------------------------------------------ */

bool lilac_sim_poison_trap(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread,
                           uint32_t origin, const char *what) {
    lilac_sim_worker_trap(w, TRAP_DIVISION, &w->program->steps[origin >> THREAD_BITS],
                          origin & ((1u << THREAD_BITS) - 1));
    w->trap.use = s->source;
    w->trap.use_thread = thread;
    w->trap.what = what;
    return false;
}

/* Traps when one of the first n threads in execution has poison in the array and, with a predicate,
 * is active. */
bool lilac_sim_poison_check(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t array,
                            uint32_t bytes, uint32_t n, uint32_t predicate, const char *what) {
    if (array == LILAC_SIM_NONE || !lilac_sim_plane_is_dirty(w, array)) {
        return true;
    }
    for (uint32_t t = w->first_thread; t < w->first_thread + n; t++) {
        bool active = predicate == LILAC_SIM_NONE || w->registers[predicate + t];
        if (active && lilac_sim_plane_read(w, array, bytes, t)) {
            return lilac_sim_poison_trap(w, s, t, *lilac_sim_plane_origin(w, array, t), what);
        }
    }
    return true;
}

static bool check_operand(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t k, uint32_t array,
                          uint32_t bytes, const char *what) {
    uint32_t n = s->varies >> k & 1 ? w->threads : 1;
    return lilac_sim_poison_check(w, s, array, bytes, n, LILAC_SIM_NONE, what);
}

bool lilac_sim_poison_check_places(lilac_sim_worker *w, const lilac_sim_step *s,
                                   const lilac_sim_access *access, uint32_t address_bytes) {
    uint32_t threads = w->threads;
    return lilac_sim_poison_check(w, s, access->predicate, 1, threads, LILAC_SIM_NONE,
                                  "predicate") &&
           lilac_sim_poison_check(w, s, access->address, address_bytes, threads, access->predicate,
                                  "address");
}

bool lilac_sim_poison_blame(lilac_sim_worker *w, const lilac_sim_step *s,
                            const lilac_sim_access *access) {
    uint32_t thread = w->trap.thread, array = access->address;
    if (w->poison.live && lilac_sim_plane_read(w, array, sizeof(uint32_t), thread)) {
        return lilac_sim_poison_trap(w, s, thread, *lilac_sim_plane_origin(w, array, thread),
                                     "address");
    }
    return false;
}

/* ---- steps ------------------------------------------------------------------------------ */

static bool check_loop(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t bytes = (uint32_t)s->immediate;
    bool good = check_operand(w, s, 0, s->a, bytes, "lower bound") &&
                check_operand(w, s, 1, s->b, bytes, "upper bound") &&
                check_operand(w, s, 2, s->c, bytes, "step");
    lilac_sim_plane_clean(w, s->out, bytes);
    return good;
}

static bool check_bulk(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    uint32_t threads = w->threads;
    bool good = lilac_sim_poison_check_places(w, s, access, sizeof(uint32_t)) &&
                lilac_sim_poison_check(w, s, access->values[0], sizeof(uint64_t), threads,
                                       access->predicate, "global address") &&
                lilac_sim_poison_check(w, s, access->values[1], sizeof(uint32_t), threads,
                                       access->predicate, "mbarrier's address") &&
                lilac_sim_poison_check(w, s, access->values[2], sizeof(uint32_t), threads,
                                       access->predicate, "mask of blocks");
    for (uint32_t k = 0; k < access->count && good; k++) {
        good = lilac_sim_poison_check(w, s, access->others[k], sizeof(uint32_t), threads,
                                      access->predicate, "size or coordinate");
    }
    return good;
}

static bool check_copy(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    return lilac_sim_poison_check_places(w, s, access, sizeof(uint32_t)) &&
           lilac_sim_poison_check(w, s, access->values[0], sizeof(uint64_t), w->threads,
                                  access->predicate, "global address") &&
           lilac_sim_poison_check(w, s, access->others[0], sizeof(uint32_t), w->threads,
                                  access->predicate, "number of bytes");
}

static bool check_print(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t predicate = w->program->accesses[s->access].predicate;
    return lilac_sim_poison_check(w, s, predicate, 1, w->threads, LILAC_SIM_NONE, "predicate");
}

static bool check_group(lilac_sim_worker *w, const lilac_sim_step *s) {
    return lilac_sim_poison_check(w, s, s->a, sizeof(uint32_t), w->threads, LILAC_SIM_NONE,
                                  "group's number");
}

static bool check_assert(lilac_sim_worker *w, const lilac_sim_step *s) {
    return lilac_sim_poison_check(w, s, s->a, 1, s->n, LILAC_SIM_NONE, "condition");
}

static bool check_branch(lilac_sim_worker *w, const lilac_sim_step *s) {
    return check_operand(w, s, 0, s->a, 1, "condition");
}

static bool clean_timer(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_plane_clean(w, s->out, 8);
    return true;
}

static bool clean_counter(lilac_sim_worker *w, const lilac_sim_step *s) {
    lilac_sim_plane_clean(w, s->out, (uint32_t)s->immediate);
    return true;
}

/* NULL: the step neither moves values nor acts on one. */
/* clang-format off */
static bool (*const rules[STEP_END + 1])(lilac_sim_worker *, const lilac_sim_step *) = {
    [STEP_LANES]          = lilac_sim_poison_pure,
    [STEP_FLUSHED]        = lilac_sim_poison_pure,
    [STEP_DIVIDE]         = lilac_sim_poison_pure,
    [STEP_LOAD_GLOBAL]    = lilac_sim_poison_access,
    [STEP_STORE_GLOBAL]   = lilac_sim_poison_access,
    [STEP_LOAD_SHARED]    = lilac_sim_poison_access,
    [STEP_STORE_SHARED]   = lilac_sim_poison_access,
    [STEP_LOAD_CLUSTER]   = lilac_sim_poison_access,
    [STEP_STORE_CLUSTER]  = lilac_sim_poison_access,
    [STEP_LOAD_MATRIX]    = lilac_sim_poison_access,
    [STEP_STORE_MATRIX]   = lilac_sim_poison_access,
    [STEP_ATOMIC_GLOBAL]  = lilac_sim_poison_access,
    [STEP_ATOMIC_SHARED]  = lilac_sim_poison_access,
    [STEP_MBARRIER]       = lilac_sim_poison_access,
    [STEP_MBARRIER_WAIT]  = lilac_sim_poison_access,
    [STEP_SHUFFLE]        = lilac_sim_poison_shuffle,
    [STEP_BALLOT]         = lilac_sim_poison_exchange,
    [STEP_VOTE]           = lilac_sim_poison_exchange,
    [STEP_MATCH]          = lilac_sim_poison_exchange,
    [STEP_REDUX]          = lilac_sim_poison_exchange,
    [STEP_MMA]            = lilac_sim_poison_mma,
    [STEP_WGMMA]          = lilac_sim_poison_wgmma,
    [STEP_COPY]           = check_copy,
    [STEP_BULK_START]     = check_bulk,
    [STEP_PRINT]          = check_print,
    [STEP_GROUP_BARRIER]  = check_group,
    [STEP_ASSERT]         = check_assert,
    [STEP_BRANCH]         = check_branch,
    [STEP_LOOP_BEGIN]     = check_loop,
    [STEP_LOOP_NEXT]      = clean_counter,
    [STEP_TIMER]          = clean_timer,
};
/* clang-format on */

bool lilac_sim_poison_step(lilac_sim_worker *w, const lilac_sim_step *s) {
    return rules[s->kind] == NULL || rules[s->kind](w, s);
}
