/* Poison through the steps: registers, shared memory, exchanges, and where it traps (poison.h).
 *
 * All is done before the step runs, so registers still hold the operands; only what needs addresses
 * checked (shared memory) or a look at the divisors is called from the step itself. The origin of a
 * poisoned entry is the step of the division and its thread. */
#include "access.h"
#include "multiply.h"

#include <string.h>

enum { THREAD_BITS = 11, ARRAY_BYTES = 64 };

static uint32_t origin_of(const lilac_sim_worker *w, const lilac_sim_step *step, uint32_t thread) {
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
    if (!p->live)
        return;
    memset(p->dirty, 0, dirty_size(w));
    p->live = p->shared_live = false;
}

/* Planes need no initial value: what a dirty array does not hold is not read. */
static void come_alive(lilac_sim_worker *w) {
    lilac_sim_poison *p = &w->poison;
    size_t bytes = (size_t)w->program->register_bytes * w->program->kernel->num_ctas;
    p->live = true;
    if (p->planes)
        return;
    p->planes = lilac_heap_grow(NULL, bytes);
    p->origins = lilac_heap_grow(NULL, bytes * sizeof *p->origins);
    p->dirty = lilac_heap_grow(NULL, dirty_size(w));
    memset(p->dirty, 0, dirty_size(w));
}

static void share(lilac_sim_worker *w) {
    lilac_sim_poison *p = &w->poison;
    size_t bytes = (size_t)w->shared.stride * w->shared.blocks;
    if (p->shared_live)
        return;
    if (!p->shared) {
        p->shared = lilac_heap_grow(NULL, bytes + 1);
        p->shared_origins = lilac_heap_grow(NULL, (bytes + 1) * sizeof *p->shared_origins);
    }
    memset(p->shared, 0, bytes);
    p->shared_live = true;
}

/* The array's place in the planes. */
static size_t place(const lilac_sim_worker *w, uint32_t array) {
    return (size_t)(w->registers - w->register_files) + array;
}

static bool is_dirty(const lilac_sim_worker *w, uint32_t array) {
    return w->poison.dirty[place(w, array) / ARRAY_BYTES];
}

static void set_dirty(lilac_sim_worker *w, uint32_t array, bool dirty) {
    w->poison.dirty[place(w, array) / ARRAY_BYTES] = dirty;
}

/* The threads in execution have no poison in the array; those of other programs may have. */
static void clean(lilac_sim_worker *w, uint32_t array, uint32_t bytes) {
    if (w->threads == w->program->threads)
        set_dirty(w, array, false);
    else if (is_dirty(w, array))
        memset(w->poison.planes + place(w, array) + (size_t)w->first_thread * bytes, 0,
               (size_t)w->threads * bytes);
}

static uint64_t poison_at(const lilac_sim_worker *w, uint32_t array, uint32_t bytes,
                          uint32_t thread) {
    return is_dirty(w, array) ? read_entry(w->poison.planes + place(w, array), bytes, thread) : 0;
}

static uint32_t *origin_at(lilac_sim_worker *w, uint32_t array, uint32_t thread) {
    return &w->poison.origins[place(w, array) + thread];
}

/* Makes the array one that has a plane, without poison so far. */
static uint8_t *open_plane(lilac_sim_worker *w, uint32_t array, uint32_t bytes) {
    uint8_t *plane = w->poison.planes + place(w, array);
    if (!is_dirty(w, array))
        memset(plane, 0, (size_t)w->program->threads * bytes);
    set_dirty(w, array, true);
    return plane;
}

static void put(lilac_sim_worker *w, uint32_t array, uint32_t bytes, uint32_t thread,
                uint64_t poison, uint32_t origin) {
    write_entry(w->poison.planes + place(w, array), bytes, thread, poison);
    *origin_at(w, array, thread) = origin;
}

/* The first entry for all threads, where a uniform result is read by each. */
static void spread(lilac_sim_worker *w, const lilac_sim_step *s) {
    if (!s->fill || !is_dirty(w, s->out))
        return;
    fill_entries(w->poison.planes + place(w, s->out) + (size_t)w->first_thread * s->entry_bytes,
                 s->entry_bytes, w->threads);
    fill_entries((uint8_t *)origin_at(w, s->out, w->first_thread), sizeof(uint32_t), w->threads);
}

/* ---- traps ------------------------------------------------------------------------------ */

static bool trap(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread, uint32_t origin,
                 const char *what) {
    lilac_sim_worker_trap(w, TRAP_DIVISION, &w->program->steps[origin >> THREAD_BITS],
                          origin & ((1u << THREAD_BITS) - 1));
    w->trap.use = s->source;
    w->trap.use_thread = thread;
    w->trap.what = what;
    return false;
}

/* Traps when one of the first n threads in execution has poison in the array and, with a predicate,
 * is active. */
static bool check(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t array, uint32_t bytes,
                  uint32_t n, uint32_t predicate, const char *what) {
    if (array == LILAC_SIM_NONE || !is_dirty(w, array))
        return true;
    for (uint32_t t = w->first_thread; t < w->first_thread + n; t++) {
        bool active = predicate == LILAC_SIM_NONE || w->registers[predicate + t];
        if (active && poison_at(w, array, bytes, t))
            return trap(w, s, t, *origin_at(w, array, t), what);
    }
    return true;
}

static bool check_operand(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t k, uint32_t array,
                          uint32_t bytes, const char *what) {
    uint32_t n = s->varies >> k & 1 ? w->threads : 1;
    return check(w, s, array, bytes, n, LILAC_SIM_NONE, what);
}

static bool check_places(lilac_sim_worker *w, const lilac_sim_step *s,
                         const lilac_sim_access *access, uint32_t address_bytes) {
    uint32_t threads = w->threads;
    return check(w, s, access->predicate, 1, threads, LILAC_SIM_NONE, "predicate") &&
           check(w, s, access->address, address_bytes, threads, access->predicate, "address");
}

static bool check_values(lilac_sim_worker *w, const lilac_sim_step *s,
                         const lilac_sim_access *access, const uint32_t *values, uint32_t count,
                         const char *what) {
    for (uint32_t k = 0; k < count; k++)
        if (!check(w, s, values[k], access->width, w->threads, access->predicate, what))
            return false;
    return true;
}

bool lilac_sim_poison_blame(lilac_sim_worker *w, const lilac_sim_step *s,
                            const lilac_sim_access *access) {
    uint32_t thread = w->trap.thread, array = access->address;
    if (w->poison.live && poison_at(w, array, sizeof(uint32_t), thread))
        return trap(w, s, thread, *origin_at(w, array, thread), "address");
    return false;
}

/* ---- pure operations -------------------------------------------------------------------- */

static uint32_t threads_of(const lilac_sim_worker *w, const lilac_sim_step *s) {
    return s->n < w->threads ? 1 : w->threads; /* pairs count twice */
}

static void copy(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t n = threads_of(w, s), bytes = s->entry_bytes;
    size_t at = (size_t)w->first_thread * bytes;
    clean(w, s->out, bytes);
    if (!is_dirty(w, s->a))
        return;
    open_plane(w, s->out, bytes);
    memcpy(w->poison.planes + place(w, s->out) + at, w->poison.planes + place(w, s->a) + at,
           (size_t)n * bytes);
    memcpy(origin_at(w, s->out, w->first_thread), origin_at(w, s->a, w->first_thread),
           n * sizeof(uint32_t));
    spread(w, s);
}

/* The step's own loop moves the bits of the plane; a part of a pack adds to those before it. */
static void pack(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t n = threads_of(w, s);
    bool packs = s->source->code == LILAC_SIMT_OP_PACK, adds = packs && s->immediate != 0;
    if (!is_dirty(w, s->a)) {
        if (!adds)
            clean(w, s->out, s->entry_bytes);
        spread(w, s);
        return;
    }
    uint32_t first = w->first_thread;
    uint8_t *plane = w->poison.planes + place(w, s->a) + (size_t)first * s->width[0];
    uint8_t *out = open_plane(w, s->out, s->entry_bytes) + (size_t)first * s->entry_bytes;
    lilac_simt_value part = packs ? s->source->operands[0] : s->source->result;
    lilac_simt_type type = (lilac_simt_type)w->program->kernel->values[part].type;
    s->loop(n, s->immediate, out, plane, plane, plane);
    for (uint32_t t = 0; t < n; t++)
        if (read_entry(packs ? plane : out, lilac_sim_lane_bytes(type), t))
            *origin_at(w, s->out, first + t) = *origin_at(w, s->a, first + t);
    spread(w, s);
}

/* The operand that a poisoned result comes from. */
static uint32_t source_of(const lilac_simt_instruction *i, const lilac_sim_mixed x[3]) {
    if (x[0].poison)
        return 0;
    if (i->code == LILAC_SIMT_OP_SELECT)
        return x[0].value ? 1 : 2;
    return x[1].poison ? 1 : 2;
}

static void compute(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_simt_instruction *i = s->source;
    const lilac_simt_value_info *values = w->program->kernel->values;
    const uint32_t arrays[3] = {s->a, s->b, s->c};
    uint32_t bytes[3] = {0}, n = threads_of(w, s);
    bool select = i->code == LILAC_SIMT_OP_SELECT, any = false;
    lilac_sim_operation operation = {.source = i,
                                     .from = (lilac_simt_type)values[i->operands[select]].type,
                                     .to = (lilac_simt_type)values[i->result].type};
    for (uint32_t k = 0; k < i->operand_count; k++) {
        bytes[k] = lilac_sim_lane_bytes((lilac_simt_type)values[i->operands[k]].type);
        any |= is_dirty(w, arrays[k]);
    }
    clean(w, s->out, s->entry_bytes);
    for (uint32_t t = w->first_thread; t < w->first_thread + n && any; t++) {
        lilac_sim_mixed x[3] = {{0}};
        for (uint32_t k = 0; k < i->operand_count; k++) {
            x[k].value = read_entry(w->registers + arrays[k], bytes[k], t);
            x[k].poison = poison_at(w, arrays[k], bytes[k], t);
        }
        uint64_t poison = lilac_sim_poison_rule(&operation, x);
        if (!poison && !is_dirty(w, s->out))
            continue;
        open_plane(w, s->out, s->entry_bytes);
        put(w, s->out, s->entry_bytes, t, poison,
            poison ? *origin_at(w, arrays[source_of(i, x)], t) : 0);
    }
    spread(w, s);
}

static void pure(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t code = s->source->code;
    if (s->loop == lilac_sim_copy)
        copy(w, s);
    else if (code == LILAC_SIMT_OP_PACK || code == LILAC_SIMT_OP_UNPACK)
        pack(w, s);
    else
        compute(w, s);
}

void lilac_sim_poison_divide(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_program *p = w->program;
    uint32_t bytes = s->entry_bytes;
    uint8_t *r = w->registers + (size_t)w->first_thread * bytes;
    uint8_t *divisors = w->registers + p->scratch[1];
    const lilac_simt_type type = (lilac_simt_type)p->kernel->values[s->source->result].type;
    uint64_t all = type == LILAC_SIMT_I1 ? 1 : UINT64_MAX;
    bool quotient =
        s->source->code == LILAC_SIMT_OP_DIV_S || s->source->code == LILAC_SIMT_OP_DIV_U;
    for (uint32_t t = 0; t < s->n; t++) {
        uint64_t divisor = read_entry(r + s->b, bytes, t);
        write_entry(divisors, bytes, t, divisor ? divisor : 1);
    }
    s->loop(s->n, s->immediate, r + s->out, r + s->a, divisors, r + s->c);
    if (!w->poison.live)
        come_alive(w);
    for (uint32_t t = 0; t < s->n; t++) {
        if (read_entry(r + s->b, bytes, t))
            continue;
        write_entry(r + s->out, bytes, t, quotient ? all : read_entry(r + s->a, bytes, t));
        uint32_t thread = w->first_thread + t;
        open_plane(w, s->out, bytes);
        if (!poison_at(w, s->out, bytes, thread))
            put(w, s->out, bytes, thread, all, origin_of(w, s, thread));
    }
    spread(w, s);
    if (s->fill)
        fill_entries(r + s->out, bytes, w->threads);
}

/* ---- exchanges between threads ---------------------------------------------------------- */

static void shuffle(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u32 *lanes = (const void *)(w->registers + s->b);
    clean(w, s->out, sizeof(uint32_t));
    if (!is_dirty(w, s->a) && !is_dirty(w, s->b))
        return;
    open_plane(w, s->out, sizeof(uint32_t));
    for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
        uint32_t lane = t % size;
        uint32_t from = t - lane + lilac_sim_partner(s->immediate, lane, lanes[t], size);
        if (poison_at(w, s->b, sizeof(uint32_t), t))
            put(w, s->out, sizeof(uint32_t), t, UINT32_MAX, *origin_at(w, s->b, t));
        else
            put(w, s->out, sizeof(uint32_t), t, poison_at(w, s->a, sizeof(uint32_t), from),
                is_dirty(w, s->a) ? *origin_at(w, s->a, from) : 0);
    }
}

static const lilac_simt_opcode words_of[LILAC_SIMT_ATOMIC_COUNT] = {
    [LILAC_SIMT_ATOMIC_AND] = LILAC_SIMT_OP_AND,
    [LILAC_SIMT_ATOMIC_OR] = LILAC_SIMT_OP_OR,
    [LILAC_SIMT_ATOMIC_XOR] = LILAC_SIMT_OP_XOR,
    [LILAC_SIMT_ATOMIC_ADD] = LILAC_SIMT_OP_ADD,
    [LILAC_SIMT_ATOMIC_MIN_S] = LILAC_SIMT_OP_MIN_S,
    [LILAC_SIMT_ATOMIC_MAX_S] = LILAC_SIMT_OP_MAX_S,
    [LILAC_SIMT_ATOMIC_MIN_U] = LILAC_SIMT_OP_MIN_U,
    [LILAC_SIMT_ATOMIC_MAX_U] = LILAC_SIMT_OP_MAX_U,
};

/* The poison of what the lanes [first, first + size) reduce to. */
static uint64_t reduced(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                        uint32_t size) {
    const lane_u32 *words = (const void *)(w->registers + s->a);
    lilac_sim_mixed sum = {words[first], poison_at(w, s->a, 4, first)};
    for (uint32_t t = first + 1; t < first + size; t++) {
        lilac_sim_mixed x = {words[t], poison_at(w, s->a, 4, t)};
        sum.poison = lilac_sim_poison_of_words(words_of[s->immediate], sum, x);
        sum.value =
            (uint32_t)lilac_sim_combine(s->immediate, LILAC_SIMT_I32, sum.value, x.value, false);
    }
    return sum.poison;
}

/* A vote is decided by lanes without poison (one that holds, for `any`), or is poison. */
static uint64_t voted(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                      uint32_t size) {
    enum { VOTE_ALL = 1 };
    bool any = false, decides = s->immediate != VOTE_ALL;
    for (uint32_t t = first; t < first + size; t++) {
        bool poison = poison_at(w, s->a, 1, t);
        if (!poison && (w->registers[s->a + t] != 0) == decides)
            return 0;
        any |= poison;
    }
    return any;
}

/* Bit k of `lane`'s result is poison when one of the two words compared is. */
static uint64_t matched(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                        uint32_t size, uint32_t lane) {
    uint64_t bits = 0;
    bool mine = poison_at(w, s->a, 4, first + lane);
    for (uint32_t k = 0; k < size; k++)
        bits |= (uint64_t)(k != lane && (mine || poison_at(w, s->a, 4, first + k))) << k;
    return bits;
}

static uint64_t balloted(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                         uint32_t size) {
    uint64_t bits = 0;
    for (uint32_t k = 0; k < size; k++)
        bits |= (uint64_t)(poison_at(w, s->a, 1, first + k) != 0) << k;
    return bits;
}

/* Ballots, votes, matches and reductions over the lanes of a warp. */
static void exchange(lilac_sim_worker *w, const lilac_sim_step *s) {
    enum { VOTE_SOME = 2 };
    uint32_t size = w->program->arch->warp_size, origin = 0;
    uint32_t from = s->kind == STEP_BALLOT || s->kind == STEP_VOTE ? 1 : 4;
    uint32_t bytes = s->kind == STEP_VOTE ? 1 : 4;
    clean(w, s->out, bytes);
    if (!is_dirty(w, s->a) || (s->kind == STEP_VOTE && s->immediate == VOTE_SOME))
        return; /* a vote of some decides only whether a loop goes round once more, without harm */
    open_plane(w, s->out, bytes);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        for (uint32_t t = first; t < first + size; t++)
            if (poison_at(w, s->a, from, t))
                origin = *origin_at(w, s->a, t);
        uint64_t poison = s->kind == STEP_BALLOT  ? balloted(w, s, first, size)
                          : s->kind == STEP_REDUX ? reduced(w, s, first, size)
                          : s->kind == STEP_MATCH ? 0
                                                  : voted(w, s, first, size);
        for (uint32_t t = first; t < first + size; t++)
            put(w, s->out, bytes, t,
                s->kind == STEP_MATCH ? matched(w, s, first, size, t - first) : poison, origin);
    }
}

/* ---- matrices --------------------------------------------------------------------------- */

/* A poisoned entry of the arrays in the threads of the warp from `first` on: sets its origin. */
static bool find_in_warp(lilac_sim_worker *w, const uint32_t *arrays, uint32_t count,
                         uint32_t bytes, uint32_t first, uint32_t *origin) {
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t t = first; t < first + 32 && is_dirty(w, arrays[k]); t++) {
            if (poison_at(w, arrays[k], bytes, t)) {
                *origin = *origin_at(w, arrays[k], t);
                return true;
            }
        }
    }
    return false;
}

/* A wgmma acts on its operands; its results are not poison. */
static bool check_wgmma(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint32_t threads = w->program->threads, none = LILAC_SIM_NONE;
    bool good = check(w, s, m->b[0], 8, threads, none, "descriptor") &&
                check(w, s, m->accumulate, 1, threads, none, "predicate");
    for (uint32_t k = 0; good && k < m->a_count; k++)
        good = check(w, s, m->a[k], m->payload->registers ? 4 : 8, threads, none, "operand");
    for (uint32_t k = 0; good && k < m->d_count; k++)
        good = check(w, s, m->c[k], 4, threads, none, "accumulator");
    for (uint32_t k = 0; k < m->d_count; k++)
        set_dirty(w, m->d[k], false);
    return good;
}

/* All results of a warp are poison where an operand is in some lane. */
static void multiply(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint32_t bytes = m->shape.a == LILAC_MATRIX_F64 ? 8 : 4, origin = 0;
    for (uint32_t k = 0; k < m->d_count; k++)
        set_dirty(w, m->d[k], false);
    for (uint32_t first = 0; first < w->program->threads; first += 32) {
        if (!find_in_warp(w, m->a, m->a_count, bytes, first, &origin) &&
            !find_in_warp(w, m->b, m->b_count, bytes, first, &origin) &&
            !find_in_warp(w, m->c, m->d_count, bytes, first, &origin))
            continue;
        for (uint32_t k = 0; k < m->d_count; k++) {
            open_plane(w, m->d[k], bytes);
            for (uint32_t t = first; t < first + 32; t++)
                put(w, m->d[k], bytes, t, UINT64_MAX, origin);
        }
    }
}

/* ---- memory ----------------------------------------------------------------------------- */

static void clean_results(lilac_sim_worker *w, const lilac_sim_access *access) {
    for (uint32_t k = 0; k < access->count; k++)
        if (access->values[k] != LILAC_SIM_NONE)
            clean(w, access->values[k], access->width);
}

/* Threads whose predicate is false get the poison of what they are given instead. */
static void give_others(lilac_sim_worker *w, const lilac_sim_access *access) {
    clean_results(w, access);
    for (uint32_t k = 0; k < access->count && access->predicate != LILAC_SIM_NONE; k++) {
        uint32_t other = access->others[k];
        if (other == LILAC_SIM_NONE || !is_dirty(w, other))
            continue;
        open_plane(w, access->values[k], access->width);
        for (uint32_t t = w->first_thread; t < w->end_thread; t++)
            if (!w->registers[access->predicate + t])
                put(w, access->values[k], access->width, t, poison_at(w, other, access->width, t),
                    *origin_at(w, other, t));
    }
}

/* A load whose predicate or address is poison gives poison. */
static void spoil_results(lilac_sim_worker *w, const lilac_sim_access *access, uint32_t array,
                          uint32_t bytes) {
    if (array == LILAC_SIM_NONE || !is_dirty(w, array))
        return;
    for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
        bool active = array == access->predicate || access->predicate == LILAC_SIM_NONE ||
                      w->registers[access->predicate + t];
        if (!active || !poison_at(w, array, bytes, t))
            continue;
        for (uint32_t k = 0; k < access->count; k++) {
            open_plane(w, access->values[k], access->width);
            put(w, access->values[k], access->width, t, UINT64_MAX, *origin_at(w, array, t));
        }
    }
}

static bool access_memory(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    switch (s->kind) {
    case STEP_LOAD_GLOBAL:
        give_others(w, access);
        return check_places(w, s, access, sizeof(uint64_t));
    case STEP_STORE_GLOBAL:
        return check_places(w, s, access, sizeof(uint64_t)) &&
               check_values(w, s, access, access->values, access->count, "stored value");
    case STEP_ATOMIC_GLOBAL: {
        bool swaps = s->immediate == LILAC_SIMT_ATOMIC_COUNT;
        clean_results(w, access);
        return check_places(w, s, access, sizeof(uint64_t)) &&
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
        return check_places(w, s, access, sizeof(uint32_t));
    case STEP_MBARRIER:
    case STEP_MBARRIER_WAIT:
        if (access->values[0] != LILAC_SIM_NONE)
            clean(w, access->values[0], 1);
        return check_places(w, s, access, sizeof(uint32_t)) &&
               check_values(w, s, access, access->others, access->count, "operand");
    default: /* stores to shared memory */
        return check_places(w, s, access, sizeof(uint32_t));
    }
}

/* A load's lanes whose address or predicate is poison read nothing. */
static void drop_lanes(lilac_sim_worker *w, const lilac_sim_access *access,
                       lilac_sim_active *lanes) {
    uint32_t count = 0;
    for (uint32_t l = 0; l < lanes->count; l++) {
        uint32_t t = lanes->thread[l];
        if (poison_at(w, access->address, sizeof(uint32_t), t) ||
            (access->predicate != LILAC_SIM_NONE && poison_at(w, access->predicate, 1, t)))
            continue;
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
    uint64_t operand = poison_at(w, access->others[k], access->width, thread), old = 0;
    memcpy(&old, p->shared + at, access->width);
    uint32_t old_origin = old ? p->shared_origins[at] : 0;
    if (old && access->values[k] != LILAC_SIM_NONE) {
        open_plane(w, access->values[k], access->width);
        put(w, access->values[k], access->width, thread, old, old_origin);
    }
    bool exchange_only = s->immediate == LILAC_SIMT_ATOMIC_EXCHANGE;
    bool poison = operand || (old && !exchange_only);
    memset(p->shared + at, poison ? 0xFF : 0, access->width);
    for (uint32_t b = 0; b < access->width && poison; b++)
        p->shared_origins[at + b] = operand ? *origin_at(w, access->others[k], thread) : old_origin;
}

static void move_element(lilac_sim_worker *w, uint32_t array, uint32_t width, uint32_t thread,
                         size_t at, bool load) {
    lilac_sim_poison *p = &w->poison;
    if (!load) {
        uint64_t poison = poison_at(w, array, width, thread);
        memcpy(p->shared + at, &poison, width); /* little-endian, as the device is */
        for (uint32_t b = 0; b < width && poison; b++)
            p->shared_origins[at + b] = *origin_at(w, array, thread);
        return;
    }
    uint64_t poison = 0;
    memcpy(&poison, p->shared + at, width);
    if (!poison && !is_dirty(w, array))
        return;
    open_plane(w, array, width);
    put(w, array, width, thread, poison,
        poison ? p->shared_origins[at + (uint32_t)__builtin_ctzll(poison) / 8] : 0);
}

void lilac_sim_poison_shared(lilac_sim_worker *w, const lilac_sim_step *s,
                             const lilac_sim_access *access, lilac_sim_active *lanes, bool load) {
    bool atomic = s->kind == STEP_ATOMIC_SHARED, any = w->poison.shared_live;
    const uint32_t *values = atomic ? access->others : access->values;
    if (load)
        drop_lanes(w, access, lanes);
    for (uint32_t k = 0; k < access->count && !load; k++)
        any |= is_dirty(w, values[k]);
    if (!any)
        return;
    share(w);
    for (uint32_t l = 0; l < lanes->count; l++)
        for (uint32_t k = 0; k < access->count; k++) {
            size_t at = (size_t)lanes->address[l] + (size_t)k * access->width;
            if (atomic)
                act_shared(w, s, access, k, lanes->thread[l], at);
            else
                move_element(w, values[k], access->width, lanes->thread[l], at, load);
        }
}

void lilac_sim_poison_half(lilac_sim_worker *w, uint32_t array, uint32_t half, uint32_t thread,
                           uint64_t byte, bool load) {
    lilac_sim_poison *p = &w->poison;
    bool moves = load ? p->shared_live : is_dirty(w, array) || p->shared_live;
    if (!moves)
        return;
    share(w);
    if (!load) {
        uint16_t poison = (uint16_t)(poison_at(w, array, 4, thread) >> 16 * half);
        memcpy(p->shared + byte, &poison, sizeof poison);
        for (uint32_t b = 0; b < sizeof poison && poison; b++)
            p->shared_origins[byte + b] = *origin_at(w, array, thread);
        return;
    }
    uint16_t poison;
    memcpy(&poison, p->shared + byte, sizeof poison);
    if (!poison)
        return;
    open_plane(w, array, 4);
    put(w, array, 4, thread, poison_at(w, array, 4, thread) | (uint64_t)poison << 16 * half,
        p->shared_origins[byte + (poison & 0xFF ? 0 : 1)]);
}

bool lilac_sim_poison_bytes(lilac_sim_worker *w, const lilac_sim_step *s, uint32_t thread,
                            uint64_t at, uint64_t size) {
    const lilac_sim_poison *p = &w->poison;
    for (uint64_t b = at; b < at + size && p->shared_live; b++)
        if (p->shared[b])
            return trap(w, s, thread, p->shared_origins[b], "stored value");
    return true;
}

/* ---- steps ------------------------------------------------------------------------------ */

static bool check_loop(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t bytes = (uint32_t)s->immediate;
    bool good = check_operand(w, s, 0, s->a, bytes, "lower bound") &&
                check_operand(w, s, 1, s->b, bytes, "upper bound") &&
                check_operand(w, s, 2, s->c, bytes, "step");
    clean(w, s->out, bytes);
    return good;
}

static bool check_bulk(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_access *access = &w->program->accesses[s->access];
    uint32_t threads = w->threads;
    bool good = check_places(w, s, access, sizeof(uint32_t)) &&
                check(w, s, access->values[0], sizeof(uint64_t), threads, access->predicate,
                      "global address") &&
                check(w, s, access->values[1], sizeof(uint32_t), threads, access->predicate,
                      "mbarrier's address") &&
                check(w, s, access->values[2], sizeof(uint32_t), threads, access->predicate,
                      "mask of blocks");
    for (uint32_t k = 0; k < access->count && good; k++)
        good = check(w, s, access->others[k], sizeof(uint32_t), threads, access->predicate,
                     "size or coordinate");
    return good;
}

bool lilac_sim_poison_step(lilac_sim_worker *w, const lilac_sim_step *s) {
    switch ((lilac_sim_step_kind)s->kind) {
    case STEP_LANES:
    case STEP_FLUSHED:
    case STEP_DIVIDE:
        pure(w, s);
        return true;
    case STEP_SHUFFLE:
        shuffle(w, s);
        return true;
    case STEP_BALLOT:
    case STEP_VOTE:
    case STEP_MATCH:
    case STEP_REDUX:
        exchange(w, s);
        return true;
    case STEP_MMA:
        multiply(w, s);
        return true;
    case STEP_WGMMA:
        return check_wgmma(w, s);
    case STEP_WGMMA_FENCE:
    case STEP_WGMMA_COMMIT:
    case STEP_WGMMA_WAIT:
        return true;
    case STEP_PRINT:
        return check(w, s, w->program->accesses[s->access].predicate, 1, w->threads, LILAC_SIM_NONE,
                     "predicate");
    case STEP_GROUP_BARRIER:
        return check(w, s, s->a, sizeof(uint32_t), w->threads, LILAC_SIM_NONE, "group's number");
    case STEP_ASSERT:
        return check(w, s, s->a, 1, s->n, LILAC_SIM_NONE, "condition");
    case STEP_BRANCH:
        return check_operand(w, s, 0, s->a, 1, "condition");
    case STEP_LOOP_BEGIN:
        return check_loop(w, s);
    case STEP_COPY: {
        const lilac_sim_access *access = &w->program->accesses[s->access];
        return check_places(w, s, access, sizeof(uint32_t)) &&
               check(w, s, access->values[0], sizeof(uint64_t), w->threads, access->predicate,
                     "global address") &&
               check(w, s, access->others[0], sizeof(uint32_t), w->threads, access->predicate,
                     "number of bytes");
    }
    case STEP_BULK_START:
        return check_bulk(w, s);
    case STEP_TIMER:
    case STEP_LOOP_NEXT:
        clean(w, s->out, s->kind == STEP_TIMER ? 8 : (uint32_t)s->immediate);
        return true;
    case STEP_BULK_COMMIT:
    case STEP_BULK_WAIT:
    case STEP_FENCE_PROXY:
    case STEP_COPY_COMMIT:
    case STEP_COPY_WAIT:
    case STEP_BARRIER:
    case STEP_WARP_BARRIER:
    case STEP_CLUSTER_BARRIER:
    case STEP_NAMED_BARRIER:
    case STEP_SET_REGISTERS:
    case STEP_FORK:
    case STEP_JOIN:
    case STEP_JUMP:
    case STEP_JUMP_BACK:
    case STEP_END:
        return true;
    default:
        return access_memory(w, s);
    }
}
