/* The search over the schedules of loops with products (lilac/schedule.h). Each is compiled, and its
 * time for the launch is predicted.
 *
 * A request of some keys leaves the others to the passes, so it has a record with all keys. The keys
 * are visited in order; each value of a key is asked for together with the values of the keys before
 * it. The value that the record has needs no compilation of its own, and nothing is asked for beside
 * a value that is refused. So each compilation is another schedule:
 *
 *     {}                 in_flight, last, D = 2, B = 3        the passes' choice
 *     products=overlap   overlap, behind, D = 2, B = 3
 *       copies=first     overlap, first, D = 2, B = 3
 *         distance=1     overlap, first, D = 1, B = 2
 *
 * Not varied: the registers of a producer, on which the prediction does not depend, and more buffers
 * than a schedule needs where no producer could fill them. With several loops, the loops are varied
 * one after another, each with the best schedules of the loops before it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LOOPS = 8, MOST_DISTANCE = 8, PRODUCER_BUFFERS = 3 };

static const lilac_schedule_key order[] = {
    LILAC_SCHEDULE_PRODUCTS, LILAC_SCHEDULE_ROTATE,    LILAC_SCHEDULE_LATE,
    LILAC_SCHEDULE_COPIES,   LILAC_SCHEDULE_MULTICAST, LILAC_SCHEDULE_PRODUCER,
    LILAC_SCHEDULE_DECOUPLE, LILAC_SCHEDULE_DISTANCE,  LILAC_SCHEDULE_BUFFERS};
enum { ORDER = sizeof order / sizeof order[0] };

typedef struct search {
    lilac_explain_search *result;
    lilac_arena *arena;
    lilac_context *context;
    uint32_t source;
    const lilac_explain_options *options;
    uint32_t loop_count; /* with products */
    uint32_t loop;       /* that is varied */
    bool has[MOST_LOOPS];
    lilac_schedule chosen[MOST_LOOPS]; /* asked for, for the loops before */
    lilac_explain_progress progress;
    void *data;
} search;

/* What one compilation gave. */
typedef struct outcome {
    lilac_schedule records[MOST_LOOPS];
    bool pipelined[MOST_LOOPS];
    uint32_t loop_count;
    double seconds;
} outcome;

/* The records of all loops with products. */
static void take_records(outcome *o, const lilac_explanation *e) {
    for (uint32_t k = 0; k < e->loop_count; k++) {
        const lilac_tile_op *op = e->operations[e->loops[k].operation - 1].op;
        if (lilac_schedule_is_for(op) && o->loop_count < MOST_LOOPS) {
            lilac_schedule *record = &o->records[o->loop_count];
            o->pipelined[o->loop_count++] =
                lilac_schedule_of(record, op) && record->has[LILAC_SCHEDULE_DISTANCE];
        }
    }
}

/* "N:" and the schedule; of the only loop without the number. */
static const char *request_of(const search *s, uint32_t loop, const lilac_schedule *schedule) {
    lilac_text text = {0};
    if (s->loop_count != 1) {
        lilac_text_printf(&text, "%u:", loop + 1);
    }
    lilac_schedule_print(&text, schedule);
    const char *copy = lilac_arena_copy(s->arena, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return copy;
}

/* Compiles with a request for the loop that is varied; NULL: none. False: refused. */
static bool compile(search *s, const lilac_schedule *asked, outcome *o) {
    const char *requests[MOST_LOOPS];
    lilac_explain_options options = *s->options;
    const lilac_diagnostic *last = lilac_diagnostics(s->context);
    options.advice = false;
    options.registers = 0;
    options.compile.schedules = requests;
    options.compile.schedule_count = 0;
    for (uint32_t k = 0; k < s->loop_count && k < s->loop; k++) {
        if (s->has[k]) {
            requests[options.compile.schedule_count++] = request_of(s, k, &s->chosen[k]);
        }
    }
    if (asked != NULL) {
        requests[options.compile.schedule_count++] = request_of(s, s->loop, asked);
    }
    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    lilac_explanation *e = lilac_explain(s->context, s->source, &options);
    *o = (outcome){.seconds = 0};
    if (e == NULL) {
        if (asked != NULL) {
            lilac_diagnostics_forget(s->context, last);
            s->result->refused++;
        }
        return false;
    }
    take_records(o, e);
    o->seconds = e->budget.seconds;
    lilac_explanation_destroy(e);
    return true;
}

static bool is_new(const search *s, const outcome *o) {
    for (uint32_t i = 0; i < s->result->count; i++) {
        const lilac_explain_candidate *c = &s->result->list[i];
        bool same = true;
        for (uint32_t k = 0; k < o->loop_count; k++) {
            same &= lilac_schedule_equal(&c->schedules[k], &o->records[k]);
        }
        if (same) {
            return false;
        }
    }
    return true;
}

static void add(search *s, const outcome *o) {
    lilac_explain_search *r = s->result;
    if (!is_new(s, o)) {
        return;
    }
    lilac_explain_candidate *c = &r->list[r->count++];
    *c = (lilac_explain_candidate){.seconds = o->seconds, .loop_count = o->loop_count};
    c->schedules = lilac_arena_array(s->arena, lilac_schedule, MOST_LOOPS);
    c->requests = lilac_arena_array(s->arena, const char *, MOST_LOOPS);
    memcpy(c->schedules, o->records, sizeof o->records);
    for (uint32_t k = 0; k < o->loop_count; k++) {
        if (o->pipelined[k]) {
            c->requests[c->request_count++] = request_of(s, k, &o->records[k]);
        }
    }
    if (s->progress != NULL) {
        s->progress(s->data, r->count, r->refused);
    }
}

/* The first and the last value of a key that are tried. */
static void range_of(uint32_t range[2], const search *s, lilac_schedule_key key,
                     const lilac_schedule *record) {
    const uint32_t value = record->values[key];
    range[0] = lilac_schedule_is_number(key) ? 1 : 0;
    range[1] = lilac_schedule_most(key);
    if (key == LILAC_SCHEDULE_DISTANCE) {
        range[1] = value > MOST_DISTANCE ? value : MOST_DISTANCE;
    } else if (key == LILAC_SCHEDULE_MULTICAST && s->options->compile.target.num_ctas <= 1) {
        range[1] = 0;
    } else if (key == LILAC_SCHEDULE_BUFFERS) {
        range[0] = value;
        range[1] = value + (record->values[LILAC_SCHEDULE_PRODUCER] != 0 ? PRODUCER_BUFFERS : 0);
    }
}

static void visit(search *s, const lilac_schedule *asked, const lilac_schedule *record,
                  uint32_t depth) {
    uint32_t range[2];
    if (depth == ORDER) {
        return;
    }
    const lilac_schedule_key key = order[depth];
    range_of(range, s, key, record);
    for (uint32_t value = range[0]; value <= range[1]; value++) {
        if (value == record->values[key]) {
            visit(s, asked, record, depth + 1);
            continue;
        }
        lilac_schedule more = *asked;
        outcome o;
        lilac_schedule_add(&more, key, value);
        if (s->result->count == LILAC_EXPLAIN_MOST_SCHEDULES) {
            s->result->exhaustive = false;
            return;
        }
        if (compile(s, &more, &o)) {
            add(s, &o);
            visit(s, &more, &o.records[s->loop], depth + 1);
        } else if (lilac_schedule_is_number(key) && value > record->values[key]) {
            return; /* no larger one is possible */
        }
    }
}

/* The schedules of the loop that was varied in the fastest candidate are kept for the next one. */
static void keep_best(search *s) {
    const lilac_explain_candidate *best = &s->result->list[0];
    for (uint32_t i = 1; i < s->result->count; i++) {
        best = s->result->list[i].seconds < best->seconds ? &s->result->list[i] : best;
    }
    s->chosen[s->loop] = best->schedules[s->loop];
    s->has[s->loop] = true;
}

static int compare(const void *a, const void *b) {
    const lilac_explain_candidate *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds > y->seconds ? 1 : -1)
                                    : y->is_chosen - x->is_chosen;
}

bool lilac_explain_search_schedules(lilac_explain_search *result, lilac_arena *arena,
                                    lilac_context *context, uint32_t source,
                                    const lilac_explain_options *options,
                                    lilac_explain_progress progress, void *data) {
    search s = {.result = result,
                .arena = arena,
                .context = context,
                .source = source,
                .options = options,
                .progress = progress,
                .data = data};
    outcome usual;
    *result = (lilac_explain_search){.exhaustive = true};
    result->list = lilac_arena_array(arena, lilac_explain_candidate, LILAC_EXPLAIN_MOST_SCHEDULES);
    if (!compile(&s, NULL, &usual)) {
        return false;
    }
    s.loop_count = usual.loop_count;
    add(&s, &usual);
    result->exhaustive = usual.loop_count <= 1;
    for (s.loop = 0; s.loop < s.loop_count; s.loop++) {
        const lilac_schedule nothing = {.has = {false}};
        outcome now = usual;
        if (!usual.pipelined[s.loop] || (s.loop > 0 && !compile(&s, NULL, &now))) {
            continue;
        }
        visit(&s, &nothing, &now.records[s.loop], 0);
        keep_best(&s);
    }
    result->chosen = result->list[0].seconds;
    result->list[0].is_chosen = true;
    qsort(result->list, result->count, sizeof *result->list, compare);
    return true;
}
