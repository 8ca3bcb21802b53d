/* The explanation for a terminal: the source, and under each line what became of it.
 *
 *     12 | x = tl.load(x_ptr + offsets, mask=mask)
 *        |   14 tt.load   16 bytes per thread, 256 sectors, 48.0 clocks
 *
 * Operations without plans are summed up in one line. */
#include "report/text.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { MARGIN = 5 };

/* ---- what is on a line --------------------------------------------------------------------- */

uint32_t lilac_explain_warps(const lilac_explanation *e) {
    return e->compilation.target.num_warps;
}

uint32_t lilac_explain_main_file(const lilac_explanation *e) {
    lilac_name name;
    uint32_t line, column, votes[8] = {0}, best = 0;
    if (lilac_location_file(e->context, e->function->location, &name, &line, &column)) {
        for (uint32_t f = 1; f < e->file_count; f++) {
            if (e->files[f].name == name) {
                return e->files[f].lines != NULL ? f : 0;
            }
        }
    }
    for (uint32_t i = 0; i < e->count; i++) {
        uint32_t file;
        if (explain_place(e, e->operations[i].op, &file, &line, &column) && file < 8 &&
            e->files[file].lines != NULL) {
            votes[file]++;
        }
    }
    for (uint32_t f = 1; f < 8; f++) {
        best = votes[f] > votes[best] ? f : best;
    }
    return best;
}

uint32_t explain_line(const lilac_explanation *e, uint32_t file, uint32_t index) {
    uint32_t at, line, column;
    const lilac_tile_op *op = e->operations[index].op;
    if (file == 0) {
        return explain_input(e, op, &line, &column) ? line : 0;
    }
    return explain_place(e, op, &at, &line, &column) && at == file ? line : 0;
}

/* ---- operations ---------------------------------------------------------------------------- */

static void put_margin(lilac_text *out, uint32_t line) {
    if (line > 0) {
        lilac_text_printf(out, "%*u | ", MARGIN, line);
    } else {
        lilac_text_printf(out, "%*s | ", MARGIN, "");
    }
}

/* The lines of a text, each behind the margin. */
static void put_lines(lilac_text *out, lilac_text *text, uint32_t indent) {
    for (const char *at = lilac_text_get(text); *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        put_margin(out, 0);
        lilac_text_repeat(out, ' ', indent);
        lilac_text_put(out, at, length);
        lilac_text_char(out, '\n');
        at += length + (at[length] == '\n');
    }
    lilac_text_clear(text);
}

static void put_result_layouts(lilac_text *out, lilac_explanation *e, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        const lilac_tile_type *type = op->results[i].type;
        const char *name = explain_layout_name(e, type);
        if (name == NULL) {
            continue;
        }
        put_margin(out, 0);
        lilac_text_puts(out, "       ");
        for (uint32_t d = 0; d < type->rank; d++) {
            lilac_text_printf(out, d > 0 ? "x%lld" : "%lld", (long long)type->shape[d]);
        }
        lilac_text_printf(out, " in %s\n", name);
    }
}

/* Is the operation shown in a line of its own? */
static bool is_shown(lilac_explanation *e, uint32_t index) {
    explain_event event;
    return e->plans[index].count > 0 || explain_event_of(e, index, &event) ||
           lilac_tile_is_loop(e->operations[index].op);
}

static void put_loop(lilac_text *out, const lilac_explanation *e, uint32_t number) {
    for (uint32_t i = 0; i < e->loop_count; i++) {
        const lilac_explain_loop *loop = &e->loops[i];
        if (loop->operation == number) {
            lilac_text_printf(out, "%.6g iterations%s", loop->estimate,
                              loop->trip_count >= 0 ? ""
                              : loop->from_launch   ? " in this launch"
                                                  : " assumed (--arg and --trip-count give them)");
        }
    }
}

static void put_event(lilac_text *out, const explain_event *event) {
    lilac_text_puts(out, event->kind);
    if (event->buffer > 0) {
        lilac_text_printf(out, " in memory %d", event->buffer);
    }
    if (event->pending >= 0) {
        lilac_text_printf(out, ", at most %lld groups stay incomplete", (long long)event->pending);
    }
    for (uint32_t i = 0; i < event->awaited_count; i++) {
        lilac_text_printf(out, i == 0 ? "; completes %u" : ", %u", event->awaited[i]);
    }
}

/* Is it an access to global memory that moves less than 16 bytes per thread at a time, many times?
 * */
static bool is_narrow(const lilac_explanation *e, uint32_t index) {
    for (uint32_t i = 0; i < e->plans[index].count; i++) {
        const lilac_lowered_plan *p = e->plans[index].list[i];
        if (p->kind == LILAC_LOWERED_ACCESS &&
            p->is.access->element_bytes << p->is.access->vector_bits < 16 &&
            p->is.access->counts.instructions > e->kernel->num_warps) {
            return true;
        }
    }
    return false;
}

static void put_operation(lilac_text *out, lilac_explanation *e, uint32_t index, bool why) {
    const lilac_explain_operation *o = &e->operations[index];
    explain_event event;
    put_margin(out, 0);
    lilac_text_printf(out, "  %3u %s  ", index + 1, lilac_tile_op_info_get(o->op->code)->name);
    const char *separator = "";
    for (uint32_t i = 0; i < e->plans[index].count; i++) {
        lilac_text_puts(out, separator);
        explain_plan_line(out, e, index, e->plans[index].list[i]);
        separator = "; ";
    }
    if (explain_event_of(e, index, &event)) {
        lilac_text_puts(out, separator);
        put_event(out, &event);
    }
    put_loop(out, e, index + 1);
    if (e->plans[index].count == 0 && why) {
        lilac_text_printf(out, "%llu instructions", (unsigned long long)o->counts.instructions);
    }
    lilac_text_char(out, '\n');
    if (e->plans[index].count > 0 || why) {
        put_result_layouts(out, e, o->op);
    }
    if (why || is_narrow(e, index)) {
        lilac_text text = {0};
        (void)explain_vector_limits(&text, e, index);
        put_lines(out, &text, 7);
    }
    if (o->op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        lilac_text text = {0};
        explain_reason_text(&text, e, index);
        put_lines(out, &text, 7);
    }
    for (uint32_t i = 0; why && i < e->plans[index].count; i++) {
        lilac_text text = {0};
        explain_plan_text(&text, e, e->plans[index].list[i]);
        put_lines(out, &text, 7);
    }
    if (why) {
        lilac_text text = {0};
        explain_alternatives_text(&text, e, index);
        put_lines(out, &text, 7);
    }
}

/* What the other operations of a line became. */
static void put_rest(lilac_text *out, const lilac_explain_counts *sum, uint32_t operations) {
    if (operations == 0 || sum->instructions == 0) {
        return;
    }
    put_margin(out, 0);
    lilac_text_printf(out, "      %u other operation%s: %llu instructions (", operations,
                      operations == 1 ? "" : "s", (unsigned long long)sum->instructions);
    const char *separator = "";
    for (uint32_t c = 0; c < LILAC_EXPLAIN_CLASS_COUNT; c++) {
        if (sum->issue[c] > 0) {
            lilac_text_printf(out, "%s%llu %s", separator, (unsigned long long)sum->issue[c],
                              lilac_explain_class_name((lilac_explain_class)c));
            separator = ", ";
        }
    }
    lilac_text_puts(out, ")\n");
}

/* The operations of each line, in lists by their indices plus 1. */
typedef struct line_index {
    uint32_t file, first, last; /* lines with operations */
    uint32_t *head, *tail;      /* by line, from `first` on; 0: none */
    uint32_t *next;             /* by index of the operation */
} line_index;

static void make_index(line_index *index, lilac_explanation *e, uint32_t file) {
    uint32_t *lines = lilac_arena_array(e->arena, uint32_t, e->count + 1);
    *index = (line_index){.file = file, .first = UINT32_MAX};
    for (uint32_t i = 0; i < e->count; i++) {
        lines[i] = explain_line(e, file, i);
        if (lines[i] > 0) {
            index->first = min_u32(index->first, lines[i]);
            index->last = max_u32(index->last, lines[i]);
        }
    }
    const uint32_t count = index->last >= index->first ? index->last - index->first + 1 : 0;
    index->head = lilac_arena_array(e->arena, uint32_t, count + 1);
    index->tail = lilac_arena_array(e->arena, uint32_t, count + 1);
    index->next = lilac_arena_array(e->arena, uint32_t, e->count + 1);
    for (uint32_t i = 0; i < e->count; i++) {
        if (lines[i] == 0) {
            continue;
        }
        const uint32_t at = lines[i] - index->first;
        *(index->tail[at] > 0 ? &index->next[index->tail[at] - 1] : &index->head[at]) = i + 1;
        index->tail[at] = i + 1;
    }
}

/* The first operation of a line; 0: it has none. */
static uint32_t first_of(const line_index *index, uint32_t line) {
    return line >= index->first && line <= index->last ? index->head[line - index->first] : 0;
}

static void put_line(lilac_text *out, lilac_explanation *e, const line_index *index, uint32_t line,
                     bool why) {
    const uint32_t file = index->file;
    lilac_explain_counts rest = {0};
    uint32_t others = 0;
    put_margin(out, line);
    if (line <= e->files[file].count) {
        const char *text = e->files[file].lines[line - 1];
        lilac_text_put(out, text, strcspn(text, "\n"));
    }
    lilac_text_char(out, '\n');
    for (uint32_t k = first_of(index, line); k > 0; k = index->next[k - 1]) {
        const uint32_t i = k - 1;
        if (is_shown(e, i) || why) {
            put_operation(out, e, i, why);
        } else {
            explain_counts_add(&rest, &e->operations[i].counts, 1);
            others += e->operations[i].counts.instructions > 0;
        }
    }
    put_rest(out, &rest, others);
}

/* ---- all ----------------------------------------------------------------------------------- */

static void put_title(lilac_text *out, const lilac_explanation *e, uint32_t file) {
    const lilac_target *t = &e->compilation.target;
    lilac_text_printf(out, "%s: %s for %s, %u warps, %u stages\n", e->files[file].name,
                      e->function->name, t->arch->name, t->num_warps, t->num_stages);
    if (t->num_warps != e->compilation.asked_warps) {
        lilac_text_printf(out, "%u warps in place of %u: %s\n", t->num_warps,
                          e->compilation.asked_warps, e->compilation.warps_reason.text);
    }
    bool descending;
    const char axis = explain_sorted_axis(e, &descending);
    if (axis != '\0') {
        lilac_text_printf(out, "programs with the most work start first: in %s order of %c\n",
                          descending ? "descending" : "ascending", axis);
    }
    if (e->kernel->programs > 0) {
        lilac_text_printf(out, "a launch has %u programs by the masks of its stores\n",
                          e->kernel->programs);
    }
    if (e->without_maps) {
        lilac_text_puts(out, "without tensor maps of the launcher, which this launch does not "
                             "permit or would be slower with\n");
    } else if (t->one_block) {
        lilac_text_puts(out, "for launches in which no multiprocessor gets two blocks\n");
    }
}

static bool refuse_line(lilac_explanation *e, uint32_t file, uint32_t line) {
    lilac_name name = e->files[file].name;
    const lilac_location location = lilac_location_get(
        e->context, &(lilac_location_info){
                        .kind = LILAC_LOCATION_FILE, .name = name, .line = line, .column = 1});
    lilac_position position = {0};
    if (file == 0 && line <= e->files[0].count) {
        position.source = e->source;
        position.offset = (uint32_t)(e->files[0].lines[line - 1] - e->files[0].lines[0]);
    }
    lilac_error(e->context, position, file == 0 ? 0 : location, "unknown-line",
                "no operation of the compiled kernel '%s' comes from line %u of %s",
                e->function->name, line, name);
    return false;
}

bool lilac_explain_text(lilac_text *out, lilac_explanation *e, const lilac_explain_view *view) {
    line_index index;
    const uint32_t file = lilac_explain_main_file(e);
    make_index(&index, e, file);
    if (view->line > 0 && first_of(&index, view->line) == 0) {
        return refuse_line(e, file, view->line);
    }
    put_title(out, e, file);
    if (view->line > 0) {
        put_line(out, e, &index, view->line, true);
        return true;
    }
    for (uint32_t line = index.first; line <= index.last; line++) {
        put_line(out, e, &index, line, false);
    }
    lilac_text_char(out, '\n');
    explain_budget_text(out, e);
    explain_schedules_text(out, e);
    explain_advice_text(out, e);
    return true;
}
