/* Poison of pure operations, of exchanges between the lanes of a warp, and of matrix products. */
#include "checks/poison_planes.h"
#include "lanes/multiply.h"

#include <string.h>

/* ---- pure operations -------------------------------------------------------------------- */

static uint32_t threads_of(const lilac_sim_worker *w, const lilac_sim_step *s) {
    return s->n < w->threads ? 1 : w->threads; /* s->n counts the elements of a pair */
}

static void copy(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t n = threads_of(w, s), bytes = s->entry_bytes;
    size_t at = (size_t)w->first_thread * bytes;
    lilac_sim_plane_clean(w, s->out, bytes);
    if (!lilac_sim_plane_is_dirty(w, s->a)) {
        return;
    }
    lilac_sim_plane_open(w, s->out, bytes);
    memcpy(w->poison.planes + lilac_sim_plane_place(w, s->out) + at,
           w->poison.planes + lilac_sim_plane_place(w, s->a) + at, (size_t)n * bytes);
    memcpy(lilac_sim_plane_origin(w, s->out, w->first_thread),
           lilac_sim_plane_origin(w, s->a, w->first_thread), n * sizeof(uint32_t));
    lilac_sim_plane_fill(w, s);
}

/* Poison bits move as the values do, so the loop of the step is run on the planes. A pack writes one
 * part of its result at a time: only part 0 cleans the plane. */
static void pack(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t n = threads_of(w, s);
    bool packs = s->source->code == LILAC_SIMT_OP_PACK, adds = packs && s->immediate != 0;
    if (!lilac_sim_plane_is_dirty(w, s->a)) {
        if (!adds) {
            lilac_sim_plane_clean(w, s->out, s->entry_bytes);
        }
        lilac_sim_plane_fill(w, s);
        return;
    }
    uint32_t first = w->first_thread;
    uint8_t *plane =
        w->poison.planes + lilac_sim_plane_place(w, s->a) + (size_t)first * s->width[0];
    uint8_t *out = lilac_sim_plane_open(w, s->out, s->entry_bytes) + (size_t)first * s->entry_bytes;
    lilac_simt_value part = packs ? s->source->operands[0] : s->source->result;
    lilac_simt_type type = (lilac_simt_type)w->program->kernel->values[part].type;
    s->loop(n, s->immediate, out, plane, plane, plane);
    for (uint32_t t = 0; t < n; t++) {
        if (read_entry(packs ? plane : out, lilac_sim_lane_bytes(type), t)) {
            *lilac_sim_plane_origin(w, s->out, first + t) =
                *lilac_sim_plane_origin(w, s->a, first + t);
        }
    }
    lilac_sim_plane_fill(w, s);
}

/* The operand whose origin a poisoned result gets. */
static uint32_t source_of(const lilac_simt_instruction *i, const lilac_sim_mixed x[3]) {
    if (x[0].poison) {
        return 0;
    }
    if (i->code == LILAC_SIMT_OP_SELECT) {
        return x[0].value ? 1 : 2;
    }
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
        any |= lilac_sim_plane_is_dirty(w, arrays[k]);
    }
    lilac_sim_plane_clean(w, s->out, s->entry_bytes);
    for (uint32_t t = w->first_thread; t < w->first_thread + n && any; t++) {
        lilac_sim_mixed x[3] = {{0}};
        for (uint32_t k = 0; k < i->operand_count; k++) {
            x[k].value = read_entry(w->registers + arrays[k], bytes[k], t);
            x[k].poison = lilac_sim_plane_read(w, arrays[k], bytes[k], t);
        }
        uint64_t poison = lilac_sim_poison_rule(&operation, x);
        if (!poison && !lilac_sim_plane_is_dirty(w, s->out)) {
            continue;
        }
        lilac_sim_plane_open(w, s->out, s->entry_bytes);
        lilac_sim_plane_write(w, s->out, s->entry_bytes, t, poison,
                              poison ? *lilac_sim_plane_origin(w, arrays[source_of(i, x)], t) : 0);
    }
    lilac_sim_plane_fill(w, s);
}

bool lilac_sim_poison_pure(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t code = s->source->code;
    if (s->loop == lilac_sim_copy) {
        copy(w, s);
    } else if (code == LILAC_SIMT_OP_PACK || code == LILAC_SIMT_OP_UNPACK) {
        pack(w, s);
    } else {
        compute(w, s);
    }
    return true;
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
    if (!w->poison.live) {
        lilac_sim_poison_enable(w);
    }
    for (uint32_t t = 0; t < s->n; t++) {
        if (read_entry(r + s->b, bytes, t)) {
            continue;
        }
        write_entry(r + s->out, bytes, t, quotient ? all : read_entry(r + s->a, bytes, t));
        uint32_t thread = w->first_thread + t;
        lilac_sim_plane_open(w, s->out, bytes);
        if (!lilac_sim_plane_read(w, s->out, bytes, thread)) {
            lilac_sim_plane_write(w, s->out, bytes, thread, all,
                                  lilac_sim_poison_new_origin(w, s, thread));
        }
    }
    lilac_sim_plane_fill(w, s);
    if (s->fill) {
        fill_entries(r + s->out, bytes, w->threads);
    }
}

/* ---- exchanges between threads ---------------------------------------------------------- */

bool lilac_sim_poison_shuffle(lilac_sim_worker *w, const lilac_sim_step *s) {
    uint32_t size = w->program->arch->warp_size;
    const lane_u32 *lanes = (const void *)(w->registers + s->b);
    lilac_sim_plane_clean(w, s->out, sizeof(uint32_t));
    if (!lilac_sim_plane_is_dirty(w, s->a) && !lilac_sim_plane_is_dirty(w, s->b)) {
        return true;
    }
    lilac_sim_plane_open(w, s->out, sizeof(uint32_t));
    for (uint32_t t = w->first_thread; t < w->end_thread; t++) {
        uint32_t lane = t % size;
        uint32_t from = t - lane + lilac_sim_partner(s->immediate, lane, lanes[t], size);
        if (lilac_sim_plane_read(w, s->b, sizeof(uint32_t), t)) {
            lilac_sim_plane_write(w, s->out, sizeof(uint32_t), t, UINT32_MAX,
                                  *lilac_sim_plane_origin(w, s->b, t));
        } else {
            lilac_sim_plane_write(
                w, s->out, sizeof(uint32_t), t,
                lilac_sim_plane_read(w, s->a, sizeof(uint32_t), from),
                lilac_sim_plane_is_dirty(w, s->a) ? *lilac_sim_plane_origin(w, s->a, from) : 0);
        }
    }
    return true;
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
    lilac_sim_mixed sum = {words[first], lilac_sim_plane_read(w, s->a, 4, first)};
    for (uint32_t t = first + 1; t < first + size; t++) {
        lilac_sim_mixed x = {words[t], lilac_sim_plane_read(w, s->a, 4, t)};
        sum.poison = lilac_sim_poison_of_words(words_of[s->immediate], sum, x);
        sum.value =
            (uint32_t)lilac_sim_combine(s->immediate, LILAC_SIMT_I32, sum.value, x.value, false);
    }
    return sum.poison;
}

/* One lane without poison decides a vote: true decides `any`, false decides `all`. Otherwise the
 * result is poison if some lane is. */
static uint64_t voted(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                      uint32_t size) {
    enum { VOTE_ALL = 1 };
    bool any = false, decides = s->immediate != VOTE_ALL;
    for (uint32_t t = first; t < first + size; t++) {
        bool poison = lilac_sim_plane_read(w, s->a, 1, t);
        if (!poison && (w->registers[s->a + t] != 0) == decides) {
            return 0;
        }
        any |= poison;
    }
    return any;
}

/* Bit k of `lane`'s result is poison when one of the two words compared is. */
static uint64_t matched(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                        uint32_t size, uint32_t lane) {
    uint64_t bits = 0;
    bool mine = lilac_sim_plane_read(w, s->a, 4, first + lane);
    for (uint32_t k = 0; k < size; k++) {
        bits |= (uint64_t)(k != lane && (mine || lilac_sim_plane_read(w, s->a, 4, first + k))) << k;
    }
    return bits;
}

static uint64_t balloted(const lilac_sim_worker *w, const lilac_sim_step *s, uint32_t first,
                         uint32_t size) {
    uint64_t bits = 0;
    for (uint32_t k = 0; k < size; k++) {
        bits |= (uint64_t)(lilac_sim_plane_read(w, s->a, 1, first + k) != 0) << k;
    }
    return bits;
}

/* Ballots, votes, matches and reductions over the lanes of a warp. */
bool lilac_sim_poison_exchange(lilac_sim_worker *w, const lilac_sim_step *s) {
    enum { VOTE_SOME = 2 };
    uint32_t size = w->program->arch->warp_size, origin = 0;
    uint32_t from = s->kind == STEP_BALLOT || s->kind == STEP_VOTE ? 1 : 4;
    uint32_t bytes = s->kind == STEP_VOTE ? 1 : 4;
    lilac_sim_plane_clean(w, s->out, bytes);
    if (!lilac_sim_plane_is_dirty(w, s->a) || (s->kind == STEP_VOTE && s->immediate == VOTE_SOME)) {
        return true; /* it decides only whether a loop runs once more, with all lanes inactive */
    }
    lilac_sim_plane_open(w, s->out, bytes);
    for (uint32_t first = w->first_thread; first < w->end_thread; first += size) {
        for (uint32_t t = first; t < first + size; t++) {
            if (lilac_sim_plane_read(w, s->a, from, t)) {
                origin = *lilac_sim_plane_origin(w, s->a, t);
            }
        }
        uint64_t poison = s->kind == STEP_BALLOT  ? balloted(w, s, first, size)
                          : s->kind == STEP_REDUX ? reduced(w, s, first, size)
                          : s->kind == STEP_MATCH ? 0
                                                  : voted(w, s, first, size);
        for (uint32_t t = first; t < first + size; t++) {
            lilac_sim_plane_write(
                w, s->out, bytes, t,
                s->kind == STEP_MATCH ? matched(w, s, first, size, t - first) : poison, origin);
        }
    }
    return true;
}

/* ---- matrices --------------------------------------------------------------------------- */

/* A poisoned entry of the arrays in the threads of the warp from `first` on: sets its origin. */
static bool find_in_warp(lilac_sim_worker *w, const uint32_t *arrays, uint32_t count,
                         uint32_t bytes, uint32_t first, uint32_t *origin) {
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t t = first; t < first + 32 && lilac_sim_plane_is_dirty(w, arrays[k]); t++) {
            if (lilac_sim_plane_read(w, arrays[k], bytes, t)) {
                *origin = *lilac_sim_plane_origin(w, arrays[k], t);
                return true;
            }
        }
    }
    return false;
}

/* Poison in an operand of a wgmma is reported at once, so its results have none. */
bool lilac_sim_poison_wgmma(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint32_t threads = w->program->threads, none = LILAC_SIM_NONE;
    bool good = lilac_sim_poison_check(w, s, m->b[0], 8, threads, none, "descriptor") &&
                lilac_sim_poison_check(w, s, m->accumulate, 1, threads, none, "predicate");
    for (uint32_t k = 0; good && k < m->a_count; k++) {
        good = lilac_sim_poison_check(w, s, m->a[k], m->payload->registers ? 4 : 8, threads, none,
                                      "operand");
    }
    for (uint32_t k = 0; good && k < m->d_count; k++) {
        good = lilac_sim_poison_check(w, s, m->c[k], 4, threads, none, "accumulator");
    }
    for (uint32_t k = 0; k < m->d_count; k++) {
        lilac_sim_plane_set_dirty(w, m->d[k], false);
    }
    return good;
}

/* All results of a warp are poison where an operand is in some lane. */
bool lilac_sim_poison_mma(lilac_sim_worker *w, const lilac_sim_step *s) {
    const lilac_sim_matrix *m = &w->program->matrices[s->access];
    uint32_t bytes = m->shape.a == LILAC_MATRIX_F64 ? 8 : 4, origin = 0;
    for (uint32_t k = 0; k < m->d_count; k++) {
        lilac_sim_plane_set_dirty(w, m->d[k], false);
    }
    for (uint32_t first = 0; first < w->program->threads; first += 32) {
        if (!find_in_warp(w, m->a, m->a_count, bytes, first, &origin) &&
            !find_in_warp(w, m->b, m->b_count, bytes, first, &origin) &&
            !find_in_warp(w, m->c, m->d_count, bytes, first, &origin)) {
            continue;
        }
        for (uint32_t k = 0; k < m->d_count; k++) {
            lilac_sim_plane_open(w, m->d[k], bytes);
            for (uint32_t t = first; t < first + 32; t++) {
                lilac_sim_plane_write(w, m->d[k], bytes, t, UINT64_MAX, origin);
            }
        }
    }
    return true;
}
