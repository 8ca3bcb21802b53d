/* The explanation as JSON: docs/explain.md describes each field. */
#include "report/json.h"

#include <lilac/tile_loops.h>
#include <string.h>

void explain_json_string(lilac_text *out, const char *string) {
    if (string == NULL) {
        lilac_text_puts(out, "null");
        return;
    }
    lilac_text_json(out, string, strlen(string));
}

void explain_json_text(lilac_text *out, lilac_text *text) {
    lilac_text_json(out, lilac_text_get(text), text->length);
    lilac_text_clear(text);
}

void explain_json_counts(lilac_text *out, const lilac_explain_counts *counts) {
    const char *separator = "{";
    for (const explain_counter *c = explain_counters; c->name != NULL; c++) {
        const uint64_t value = explain_counter_get(counts, c);
        if (value != 0) {
            lilac_text_printf(out, "%s\"%s\": %llu", separator, c->name, (unsigned long long)value);
            separator = ", ";
        }
    }
    lilac_text_puts(out, *separator == '{' ? "{" : ", ");
    separator = "\"access_bits\": {";
    for (uint32_t i = 0; i < LILAC_EXPLAIN_WIDTHS; i++) {
        if (counts->access_bits[i] != 0) {
            lilac_text_printf(out, "%s\"%u\": %llu", separator, 8u << i,
                              (unsigned long long)counts->access_bits[i]);
            separator = ", ";
        }
    }
    lilac_text_puts(out, *separator == '"' ? "\"access_bits\": {}}" : "}}");
}

void explain_json_issue(lilac_text *out, const lilac_explain_counts *counts) {
    const char *separator = "";
    lilac_text_char(out, '{');
    for (uint32_t i = 0; i < LILAC_EXPLAIN_CLASS_COUNT; i++) {
        if (counts->issue[i] != 0) {
            lilac_text_printf(out, "%s\"%s\": %llu", separator,
                              lilac_explain_class_name((lilac_explain_class)i),
                              (unsigned long long)counts->issue[i]);
            separator = ", ";
        }
    }
    lilac_text_char(out, '}');
}

/* ---- sources ------------------------------------------------------------------------------ */

static void put_files(lilac_text *out, const lilac_explanation *e) {
    lilac_text_puts(out, "\"files\": [");
    for (uint32_t f = 0; f < e->file_count; f++) {
        const explain_file *file = &e->files[f];
        lilac_text_puts(out, f > 0 ? ", {\"name\": " : "{\"name\": ");
        explain_json_string(out, file->name);
        lilac_text_puts(out, ", \"lines\": ");
        if (file->lines == NULL) {
            lilac_text_puts(out, "null}");
            continue;
        }
        for (uint32_t l = 0; l < file->count; l++) {
            lilac_text_puts(out, l > 0 ? ", " : "[");
            lilac_text_json(out, file->lines[l], strcspn(file->lines[l], "\n"));
        }
        lilac_text_puts(out, file->count == 0 ? "[]}" : "]}");
    }
    lilac_text_char(out, ']');
}

/* ---- loops and the timeline --------------------------------------------------------------- */

static void put_loops(lilac_text *out, const lilac_explanation *e) {
    lilac_text_puts(out, ", \"loops\": [");
    for (uint32_t i = 0; i < e->loop_count; i++) {
        const lilac_explain_loop *loop = &e->loops[i];
        lilac_text_printf(out, "%s{\"operation\": %u, \"parent\": ", i > 0 ? ", " : "",
                          loop->operation);
        lilac_text_printf(out, loop->parent > 0 ? "%u" : "null", loop->parent - 1);
        lilac_text_puts(out, ", \"trip_count\": ");
        lilac_text_printf(out, loop->trip_count >= 0 ? "%lld" : "null",
                          (long long)loop->trip_count);
        lilac_text_printf(out, ", \"estimate\": %.6g, \"from_launch\": %s}", loop->estimate,
                          loop->from_launch ? "true" : "false");
    }
    lilac_text_char(out, ']');
}

static void put_event(lilac_text *out, const explain_event *event) {
    lilac_text_printf(out, "{\"operation\": %u, \"kind\": \"%s\", \"buffer\": ", event->number,
                      event->kind);
    lilac_text_printf(out, event->buffer > 0 ? "%d" : "null", event->buffer);
    lilac_text_puts(out, ", \"pending\": ");
    lilac_text_printf(out, event->pending >= 0 ? "%lld" : "null", (long long)event->pending);
    lilac_text_puts(out, ", \"waits_for\": [");
    for (uint32_t i = 0; i < event->awaited_count; i++) {
        lilac_text_printf(out, i > 0 ? ", %u" : "%u", event->awaited[i]);
    }
    lilac_text_puts(out, "]}");
}

static void put_buffers(lilac_text *out, lilac_explanation *e) {
    enum { MOST = 256 };
    uint32_t list[MOST];
    const uint32_t count = explain_buffers(e, list, MOST);
    lilac_text_puts(out, "\"buffers\": [");
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_type *type = e->operations[list[i]].op->results[0].type;
        const uint32_t own = type->layout != NULL ? type->layout->out_count : type->rank;
        const uint64_t buffers = type->rank > own ? (uint64_t)type->shape[0] : 1;
        const uint64_t bytes =
            (uint64_t)lilac_tile_element_count(type) * lilac_tile_element_bits(type) / 8 / buffers;
        lilac_text_printf(out, "%s{\"operation\": %u, \"count\": %llu, \"bytes\": %llu}",
                          i > 0 ? ", " : "", list[i] + 1, (unsigned long long)buffers,
                          (unsigned long long)bytes);
    }
    lilac_text_char(out, ']');
}

/* One entry for each loop with events, and one for what is outside of loops. */
static void put_timeline(lilac_text *out, lilac_explanation *e) {
    lilac_text_puts(out, ", ");
    put_buffers(out, e);
    lilac_text_puts(out, ", \"timeline\": [");
    const char *next = "";
    for (uint32_t loop = 0; loop <= e->loop_count; loop++) {
        const char *separator = "";
        for (uint32_t i = 0; i < e->count; i++) {
            explain_event event;
            if (e->operations[i].loop != loop || !explain_event_of(e, i, &event)) {
                continue;
            }
            if (*separator == '\0') {
                lilac_text_printf(out, "%s{\"loop\": ", next);
                lilac_text_printf(out, loop > 0 ? "%u" : "null", loop - 1);
                lilac_text_puts(out, ", \"events\": [");
                next = "]}, ";
            }
            lilac_text_puts(out, separator);
            put_event(out, &event);
            separator = ", ";
        }
    }
    lilac_text_puts(out, *next != '\0' ? "]}]" : "]");
}

/* ---- PTX ---------------------------------------------------------------------------------- */

static void put_ptx(lilac_text *out, const lilac_explanation *e) {
    const char *text = lilac_text_get(&e->ptx);
    uint32_t line = 1, shown = 0;
    size_t at = 0;
    const char *separator = "";
    lilac_text_puts(out, ", \"ptx\": {\"text\": ");
    lilac_text_json(out, text, e->ptx.length);
    lilac_text_puts(out, ", \"lines\": [");
    for (uint32_t i = 0; i < e->origins.count; i++) {
        const lilac_ptx_origin *origin = &e->origins.list[i];
        for (; at < origin->offset && at < e->ptx.length; at++) {
            line += text[at] == '\n';
        }
        const uint32_t number = explain_number(e, origin->location);
        if (number != shown) {
            lilac_text_printf(out, "%s[%u, %u]", separator, line, number);
            separator = ", ";
            shown = number;
        }
    }
    lilac_text_puts(out, "]}");
}

/* ---- the budget --------------------------------------------------------------------------- */

void explain_json_budget(lilac_text *out, const lilac_explanation *e) {
    const lilac_explain_budget *b = &e->budget;
    const uint32_t *grid = e->options.launch.grid;
    lilac_text_puts(out, "{\"counts\": ");
    explain_json_counts(out, &b->counts);
    lilac_text_puts(out, ", \"issue\": ");
    explain_json_issue(out, &b->counts);
    lilac_text_printf(
        out,
        ", \"unique_bytes\": %.6g, \"exact\": %s, \"shared_bytes\": %u, \"registers\": %u, "
        "\"registers_estimated\": %s, \"resident_blocks\": %u, "
        "\"resident_warps\": %u, \"limited_by\": \"%s\", \"roofs\": [",
        b->unique_bytes, b->exact ? "true" : "false", b->shared_bytes, b->registers,
        b->registers_estimated ? "true" : "false", b->resident_blocks, b->resident_warps,
        b->limited_by);
    for (uint32_t r = 0; r < LILAC_EXPLAIN_ROOF_COUNT; r++) {
        lilac_text_printf(out, "%s{\"name\": \"%s\", \"clocks\": %.1f}", r > 0 ? ", " : "",
                          lilac_explain_roof_name((lilac_explain_roof)r), b->clocks[r]);
    }
    lilac_text_printf(out, "], \"bound\": \"%s\", \"blocks\": ", lilac_explain_roof_name(b->bound));
    lilac_text_printf(out, grid[0] > 0 ? "%llu" : "null",
                      (unsigned long long)grid[0] * grid[1] * grid[2]);
    lilac_text_puts(out, ", \"seconds\": ");
    lilac_text_printf(out, b->seconds > 0 ? "%.6g" : "null", b->seconds);
    lilac_text_puts(out, ", \"time\": ");
    if (b->seconds > 0) {
        const lilac_explain_time *t = &b->time;
        lilac_text_printf(out,
                          "{\"launch\": %.4g, \"memory\": %.4g, \"L2\": %.4g, "
                          "\"multiprocessors\": %.4g, \"imbalance\": %.4g, \"power\": %.4g, "
                          "\"waves\": %.0f}}",
                          t->launch, t->memory, t->l2, t->multiprocessors, t->imbalance, t->power,
                          t->waves);
    } else {
        lilac_text_puts(out, "null}");
    }
}

static void put_segments(lilac_text *out, const lilac_explanation *e) {
    lilac_text_puts(out, ", \"segments\": [");
    for (uint32_t k = 0; k <= e->loop_count; k++) {
        const explain_segment *s = &e->segments[k];
        lilac_explain_counts issue = {0};
        for (uint32_t c = 0; c < LILAC_EXPLAIN_CLASS_COUNT; c++) {
            issue.issue[c] = (uint64_t)(s->issue[c] + 0.5);
        }
        lilac_text_printf(out, "%s{\"loop\": ", k > 0 ? ", " : "");
        lilac_text_printf(out, k > 0 ? "%u" : "null", k - 1);
        lilac_text_printf(out,
                          ", \"entries\": %.6g, \"iterations\": %.6g, \"clocks\": %.1f, \"busy\": "
                          "%.1f, \"waits\": %u, "
                          "\"program\": %u, \"tensor\": %.1f, \"shared\": %.1f, \"global\": %.1f, "
                          "\"special\": %.1f, \"operands\": %.1f, \"shuffles\": %.1f, "
                          "\"sectors\": %.6g, \"memory_sectors\": %.6g, \"unused_sectors\": %.6g, "
                          "\"partial_sectors\": %.6g, \"extremes\": %.1f, \"issue\": ",
                          s->entries, s->iterations, s->clocks, s->busy, s->waits, s->program,
                          s->tensor, s->shared, s->global, s->special, s->operands, s->shuffles,
                          s->sectors, s->memory_sectors, s->unused_sectors, s->partial_sectors,
                          s->extremes);
        explain_json_issue(out, &issue);
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
}

void lilac_explain_json(lilac_text *out, lilac_explanation *e) {
    const lilac_target *target = &e->compilation.target;
    lilac_text_puts(out, "{\"version\": 1, \"kernel\": ");
    explain_json_string(out, e->function->name);
    lilac_text_puts(out, ", \"target\": ");
    explain_json_string(out, target->arch->name);
    lilac_text_printf(out, ", \"num_warps\": %u, \"num_ctas\": %u, \"num_stages\": %u, ",
                      target->num_warps, target->num_ctas, target->num_stages);
    lilac_text_printf(out, "\"asked_warps\": %u, \"warps_reason\": ", e->compilation.asked_warps);
    if (target->num_warps != e->compilation.asked_warps) {
        explain_json_string(out, e->compilation.warps_reason.text);
    } else {
        lilac_text_puts(out, "null");
    }
    bool descending;
    const char axis = explain_sorted_axis(e, &descending);
    lilac_text_puts(out, ", \"program_order\": ");
    if (axis != '\0') {
        lilac_text_printf(out, "{\"axis\": \"%c\", \"descending\": %s}", axis,
                          descending ? "true" : "false");
    } else {
        lilac_text_puts(out, "null");
    }
    lilac_text_puts(out, ", \"programs\": ");
    if (e->kernel->programs > 0) {
        lilac_text_unsigned(out, e->kernel->programs);
    } else {
        lilac_text_puts(out, "null");
    }
    lilac_text_printf(out, ", \"launch_maps\": %s, \"one_block\": %s, ",
                      e->map_count > 0 ? "true" : "false",
                      e->options.compile.target.one_block ? "true" : "false");
    put_files(out, e);
    explain_json_operations(out, e);
    put_loops(out, e);
    put_timeline(out, e);
    put_segments(out, e);
    explain_json_schedules(out, e);
    put_ptx(out, e);
    lilac_text_puts(out, ", \"budget\": ");
    explain_json_budget(out, e);
    explain_json_advice(out, e);
    lilac_text_char(out, '}');
}
