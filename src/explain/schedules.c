/* The schedules of loops with products (lilac/schedule.h): what an iteration of a block reserves of
 * each unit of a multiprocessor, what bounds the interval between iterations, and the interval that
 * chain.c predicts.
 *
 *     units         clocks that each unit needs for the instructions and bytes of an iteration, at
 *                   the rates of the device
 *     recurrences   recurrence.c: cycles of carried values
 *     copies        latency of memory over the distance between a copy and its use
 *     alone         an iteration of one block on a multiprocessor, with the waits of the schedule
 *     interval      of r resident blocks: no less than alone / r, and no less than the busiest unit
 */
#include "internal.h"
#include "report/json.h"
#include "report/text.h"

#include <string.h>

/* Clocks of a multiprocessor: for an instruction of a warp by the special function unit, by the
 * unit of integers, by that of floats, and for an issue slot; bytes in a clock from L2 and from
 * memory. */
static const double SPECIAL = 2, INTEGER = 0.375, FLOAT = 0.25, ISSUE = 0.25;
static const double L2_BYTES = 53, MEMORY_BYTES = 18.2;

const char *lilac_explain_unit_name(lilac_explain_unit unit) {
    static const char *const names[LILAC_EXPLAIN_UNITS] = {"tensor cores",
                                                           "operands of products",
                                                           "shared memory and L1",
                                                           "L2",
                                                           "memory",
                                                           "special functions",
                                                           "integers",
                                                           "floats",
                                                           "issue"};
    return names[unit];
}

static double issued(const explain_segment *s, lilac_explain_class class_) {
    return s->issue[class_];
}

/* Sums of the segment, in clocks of each unit. */
static void find_units(double clocks[LILAC_EXPLAIN_UNITS], const explain_segment *s,
                       double sector_bytes) {
    double all = 0;
    for (uint32_t k = 0; k < LILAC_EXPLAIN_CLASS_COUNT; k++) {
        all += s->issue[k];
    }
    clocks[LILAC_EXPLAIN_UNIT_TENSOR] = s->tensor;
    clocks[LILAC_EXPLAIN_UNIT_OPERANDS] = s->operands;
    clocks[LILAC_EXPLAIN_UNIT_SHARED] = s->shared + s->global + s->shuffles;
    clocks[LILAC_EXPLAIN_UNIT_L2] = s->sectors * sector_bytes / L2_BYTES;
    clocks[LILAC_EXPLAIN_UNIT_MEMORY] =
        (s->memory_sectors > 0 ? s->memory_sectors : 0) * sector_bytes / MEMORY_BYTES;
    clocks[LILAC_EXPLAIN_UNIT_SPECIAL] = SPECIAL * s->special;
    clocks[LILAC_EXPLAIN_UNIT_INTEGER] =
        INTEGER * (issued(s, LILAC_EXPLAIN_INTEGER) + issued(s, LILAC_EXPLAIN_CONVERT) +
                   issued(s, LILAC_EXPLAIN_MOVE) + s->extremes);
    clocks[LILAC_EXPLAIN_UNIT_FLOAT] = FLOAT * (issued(s, LILAC_EXPLAIN_FLOAT) - s->extremes);
    clocks[LILAC_EXPLAIN_UNIT_ISSUE] = ISSUE * all;
}

/* The loop's instruction in a body, and the warps that execute it; NULL: it is not there. */
static const lilac_simt_instruction *find_loop(const lilac_explanation *e,
                                               const lilac_simt_body *body, uint32_t segment,
                                               uint32_t *warps) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        if (i->body_count > 0 && explain_segment_of(e, i) == segment) {
            return i;
        }
        for (uint32_t b = 0; b < i->body_count; b++) {
            const uint32_t before = *warps;
            if (i->code == LILAC_SIMT_OP_PROGRAMS) {
                *warps = i->bodies[b]->end_warp - i->bodies[b]->first_warp;
            }
            const lilac_simt_instruction *found = find_loop(e, i->bodies[b], segment, warps);
            if (found != NULL) {
                return found;
            }
            *warps = before;
        }
    }
    return NULL;
}

/* Copies of a producer are in the loop of its program. */
static void add_producers(explain_segment *sum, const lilac_explanation *e, uint32_t own) {
    for (uint32_t k = 1; k <= e->loop_count; k++) {
        const explain_segment *s = &e->segments[k];
        if (k != own && s->program > 0 && s->program != e->segments[own].program &&
            s->iterations == e->segments[own].iterations) {
            sum->sectors += s->sectors;
            sum->memory_sectors += s->memory_sectors;
            sum->shared += s->shared;
            sum->global += s->global;
        }
    }
}

static void find_schedule(lilac_explain_schedule *result, lilac_explanation *e, uint32_t segment) {
    const explain_segment *s = &e->segments[segment];
    const double resident = e->budget.resident_blocks;
    explain_segment sum = *s;
    uint32_t warps = e->kernel->num_warps;
    const lilac_simt_instruction *loop = find_loop(e, e->kernel->body, segment, &warps);
    if (s->program > 0) {
        add_producers(&sum, e, segment);
    }
    find_units(result->clocks, &sum, e->compilation.target.arch->sector_bytes);
    for (uint32_t u = 0; u < LILAC_EXPLAIN_UNITS; u++) {
        result->clocks[u] = s->iterations > 0 ? result->clocks[u] / s->iterations : 0;
        if (result->clocks[u] > result->clocks[result->bound]) {
            result->bound = (lilac_explain_unit)u;
        }
    }
    const double most = result->clocks[result->bound];
    const uint32_t distance = result->schedule.values[LILAC_SCHEDULE_DISTANCE];
    result->recurrences = loop != NULL ? explain_recurrence(e, loop, warps) : 0;
    result->copies = distance > 0 ? explain_copy_latency(e) / distance : 0;
    result->alone = s->clocks;
    result->resident = resident;
    result->interval = s->clocks / resident > most ? s->clocks / resident : most;
}

const lilac_explain_schedule *lilac_explain_schedules(lilac_explanation *e, uint32_t *count) {
    lilac_explain_schedule *list =
        lilac_arena_array(e->arena, lilac_explain_schedule, e->loop_count + 1);
    *count = 0;
    for (uint32_t k = 0; k < e->loop_count; k++) {
        const lilac_tile_op *op = e->operations[e->loops[k].operation - 1].op;
        const int64_t joined = lilac_tile_find_integer(&op->attributes, LILAC_JOINED_LOOPS, 1);
        lilac_explain_schedule result = {.loop = k, .joined = (uint32_t)joined};
        if (lilac_schedule_is_for(op) && lilac_schedule_of(&result.schedule, op) &&
            result.schedule.has[LILAC_SCHEDULE_DISTANCE]) {
            find_schedule(&result, e, k + 1);
            list[(*count)++] = result;
        }
    }
    return list;
}

/* ---- output -------------------------------------------------------------------------------- */

static void put_schedule(lilac_text *out, lilac_explanation *e, const lilac_explain_schedule *s) {
    const uint32_t number = e->loops[s->loop].operation;
    const uint32_t line = explain_line(e, lilac_explain_main_file(e), number - 1);
    lilac_text_puts(out, "schedule of the loop");
    if (line > 0) {
        lilac_text_printf(out, " of line %u", line);
    }
    if (s->joined > 1) {
        lilac_text_puts(out, ", joined with the one behind it");
    }
    lilac_text_puts(out, ": ");
    lilac_schedule_print(out, &s->schedule);
    lilac_text_puts(out, "\n  clocks of a multiprocessor for an iteration of a block\n");
    for (uint32_t u = 0; u < LILAC_EXPLAIN_UNITS; u++) {
        if (s->clocks[u] >= 0.05) {
            lilac_text_printf(out, "    %-26s %14.1f\n",
                              lilac_explain_unit_name((lilac_explain_unit)u), s->clocks[u]);
        }
    }
    lilac_text_printf(out,
                      "  interval of a block: at least %.1f for the units (%s), %.1f for "
                      "recurrences, %.1f for copies\n"
                      "  predicted %.1f for a block alone, %.1f for one of %.0f resident block%s\n",
                      s->clocks[s->bound], lilac_explain_unit_name(s->bound), s->recurrences,
                      s->copies, s->alone, s->interval, s->resident, s->resident == 1 ? "" : "s");
}

void explain_schedules_text(lilac_text *out, lilac_explanation *e) {
    uint32_t count;
    const lilac_explain_schedule *list = lilac_explain_schedules(e, &count);
    for (uint32_t i = 0; i < count; i++) {
        put_schedule(out, e, &list[i]);
    }
}

void explain_json_schedules(lilac_text *out, lilac_explanation *e) {
    uint32_t count;
    const lilac_explain_schedule *list = lilac_explain_schedules(e, &count);
    lilac_text_puts(out, ", \"schedules\": [");
    for (uint32_t i = 0; i < count; i++) {
        const lilac_explain_schedule *s = &list[i];
        lilac_text text = {0};
        lilac_schedule_print(&text, &s->schedule);
        lilac_text_printf(out,
                          "%s{\"loop\": %u, \"joined\": %u, \"schedule\": \"%s\", \"units\": [",
                          i > 0 ? ", " : "", s->loop, s->joined, lilac_text_get(&text));
        lilac_text_clear(&text);
        for (uint32_t u = 0; u < LILAC_EXPLAIN_UNITS; u++) {
            lilac_text_printf(out, "%s{\"name\": \"%s\", \"clocks\": %.1f}", u > 0 ? ", " : "",
                              lilac_explain_unit_name((lilac_explain_unit)u), s->clocks[u]);
        }
        lilac_text_printf(out,
                          "], \"bound\": \"%s\", \"recurrences\": %.1f, \"copies\": %.1f, "
                          "\"alone\": %.1f, \"resident_blocks\": %.0f, \"interval\": %.1f}",
                          lilac_explain_unit_name(s->bound), s->recurrences, s->copies, s->alone,
                          s->resident, s->interval);
    }
    lilac_text_char(out, ']');
}
