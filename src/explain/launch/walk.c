/* A walk over the accesses to global memory of one thread of one program of the launch.
 *
 * Of each loop one iteration is visited. In the iteration t of a loop, a value that the loop
 * carries is its initial value plus t times what the first iteration adds to it, if that is known.
 * A branch is visited unless its condition is known to be false. */
#include "internal.h"

enum { MOST_CARRIED = 1024 };

/* ---- the list ----------------------------------------------------------------------------- */

static bool accesses_global(const lilac_simt_instruction *i) {
    const uint32_t traits = lilac_simt_op_info_get((lilac_simt_opcode)i->code)->traits;
    return (traits & LILAC_SIMT_GLOBAL) && !(traits & LILAC_SIMT_MBARRIER);
}

static void list_items(explain_walker *w, const lilac_simt_body *body, uint32_t index, bool fill) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        const uint32_t number = accesses_global(i) ? explain_number(w->e, i->location) : 0;
        if (number == 0 && i->body_count == 0) {
            continue;
        }
        const uint32_t own = w->count++;
        w->accesses += number > 0;
        for (uint32_t b = 0; b < i->body_count; b++) {
            list_items(w, i->bodies[b], b, fill);
        }
        if (fill) {
            w->items[own] = (explain_item){i, number, index, w->count};
        }
    }
}

void explain_walker_init(explain_walker *w, lilac_explanation *e) {
    *w = (explain_walker){.e = e};
    list_items(w, e->kernel->body, 0, false);
    w->items = lilac_arena_array(e->arena, explain_item, w->count + 1);
    w->count = w->accesses = 0;
    list_items(w, e->kernel->body, 0, true);
    lilac_simt_evaluation_init(&w->values, e->kernel);
    explain_set_launch(e, &w->values);
    w->values.thread_known = true;
}

void explain_walker_clear(explain_walker *w) {
    lilac_simt_evaluation_clear(&w->values);
}

/* ---- loops and branches ------------------------------------------------------------------- */

static int64_t extended(const explain_walker *w, lilac_simt_value value, uint64_t bits) {
    const uint32_t width = lilac_simt_type_bits((lilac_simt_type)w->e->kernel->values[value].type);
    return (int64_t)(bits << (64 - width)) >> (64 - width);
}

static bool is_integer(const explain_walker *w, lilac_simt_value value) {
    const uint8_t type = w->e->kernel->values[value].type;
    return type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64;
}

static void set_carried(explain_walker *w, const lilac_simt_body *body, const uint64_t *values,
                        const bool *known, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (known[k]) {
            lilac_simt_evaluation_set(&w->values, body->argument + 1 + k, values[k]);
        }
    }
}

/* Sets the counter and the carried values of an iteration. False: there is none. */
static bool enter_loop(explain_walker *w, const lilac_simt_instruction *i) {
    const lilac_simt_body *body = i->bodies[0];
    const uint32_t count = min_u32(i->operand_count - 3u, MOST_CARRIED);
    uint64_t values[MOST_CARRIED] = {0}, next[MOST_CARRIED];
    bool known[MOST_CARRIED];
    int64_t bounds[3] = {0, 0, 0}, iteration = 0;
    bool all = true;
    for (uint32_t k = 0; k < 3; k++) {
        uint64_t bits = 0;
        all &= lilac_simt_evaluation_get(&w->values, i->operands[k], &bits);
        bounds[k] = extended(w, i->operands[k], bits);
    }
    if (all && bounds[0] >= bounds[1]) {
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        known[k] = is_integer(w, i->operands[3 + k]) &&
                   lilac_simt_evaluation_get(&w->values, i->operands[3 + k], &values[k]);
    }
    if (all && bounds[2] > 0) {
        const int64_t trip_count = (bounds[1] - bounds[0] - 1) / bounds[2] + 1;
        iteration = (int64_t)((double)trip_count * w->place);
        iteration = iteration < trip_count ? iteration : trip_count - 1;
    }
    if (iteration > 0) {
        const uint32_t mark = w->values.seen_count;
        lilac_simt_evaluation_set(&w->values, body->argument, (uint64_t)bounds[0]);
        set_carried(w, body, values, known, count);
        for (uint32_t k = 0; k < count; k++) {
            if (!known[k] ||
                !lilac_simt_evaluation_get(&w->values, body->last->operands[k], &next[k])) {
                next[k] = values[k];
            }
        }
        lilac_simt_evaluation_forget(&w->values, mark);
        for (uint32_t k = 0; k < count; k++) {
            values[k] += (uint64_t)iteration * (next[k] - values[k]);
        }
    }
    if (all) {
        lilac_simt_evaluation_set(&w->values, body->argument,
                                  (uint64_t)(bounds[0] + iteration * bounds[2]));
    }
    set_carried(w, body, values, known, count);
    return true;
}

/* Whether a body of control flow is entered by this thread. */
static bool enters(explain_walker *w, const lilac_simt_instruction *i, uint32_t b) {
    const lilac_simt_body *body = i->bodies[b];
    const uint32_t warp = w->values.thread / w->e->compilation.target.arch->warp_size;
    uint64_t condition;
    switch (i->code) {
    case LILAC_SIMT_OP_LOOP:
        return true;
    case LILAC_SIMT_OP_IF:
        return !lilac_simt_evaluation_get(&w->values, i->operands[0], &condition) ||
               (condition == 0) == (b == 1);
    case LILAC_SIMT_OP_WHILE: {
        const lilac_simt_value *from = b == 0 ? i->operands : i->bodies[0]->last->operands + 1;
        for (uint32_t k = 0; k < body->argument_count; k++) {
            if (lilac_simt_evaluation_get(&w->values, from[k], &condition)) {
                lilac_simt_evaluation_set(&w->values, body->argument + k, condition);
            }
        }
        return true;
    }
    default:
        return body->end_warp == 0 || (warp >= body->first_warp && warp < body->end_warp);
    }
}

static void walk(explain_walker *w, uint32_t first, uint32_t end) {
    for (uint32_t k = first; k < end; k = w->items[k].end) {
        const lilac_simt_instruction *i = w->items[k].instruction;
        if (i->body_count == 0) {
            w->access(w, &w->items[k]);
            continue;
        }
        if (i->code == LILAC_SIMT_OP_LOOP && !enter_loop(w, i)) {
            continue;
        }
        uint32_t inner = k + 1;
        for (uint32_t b = 0; b < i->body_count; b++) {
            uint32_t stop = inner;
            while (stop < w->items[k].end && w->items[stop].body == b) {
                stop = w->items[stop].end;
            }
            if (enters(w, i, b)) {
                walk(w, inner, stop);
            }
            inner = stop;
        }
    }
}

void explain_walk(explain_walker *w, uint64_t program, uint32_t thread, double place) {
    const uint32_t *grid = w->e->options.launch.grid;
    lilac_simt_evaluation_reset(&w->values);
    w->values.program[0] = (uint32_t)(program % grid[0]);
    w->values.program[1] = (uint32_t)(program / grid[0] % grid[1]);
    w->values.program[2] = (uint32_t)(program / grid[0] / grid[1]);
    w->values.thread = thread;
    w->place = place;
    walk(w, 0, w->count);
}
