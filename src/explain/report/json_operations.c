/* The operations of the JSON. */
#include "report/json.h"

#include <stdlib.h>

static void put_places(lilac_text *out, const lilac_explanation *e, const lilac_tile_op *op) {
    uint32_t file, line, column;
    lilac_text_puts(out, ", \"source\": ");
    if (explain_place(e, op, &file, &line, &column)) {
        lilac_text_printf(out, "[%u, %u, %u]", file, line, column);
    } else {
        lilac_text_puts(out, "null");
    }
    lilac_text_puts(out, ", \"input\": ");
    if (explain_input(e, op, &line, &column)) {
        lilac_text_printf(out, "[0, %u, %u]", line, column);
    } else {
        lilac_text_puts(out, "null");
    }
}

static uint32_t registers_of(const lilac_tile_type *type) {
    if (!lilac_tile_is_tensor(type) || type->layout == NULL) {
        return 0;
    }
    return 1U << lilac_layout_in_bits(type->layout, "register");
}

static void put_result(lilac_text *out, lilac_explanation *e, const lilac_tile_value *value) {
    const lilac_tile_type *type = value->type;
    lilac_text text = {0};
    explain_value_name(&text, value);
    lilac_text_puts(out, "{\"name\": ");
    explain_json_text(out, &text);
    lilac_tile_print_type(&text, type);
    lilac_text_puts(out, ", \"type\": ");
    explain_json_text(out, &text);
    lilac_text_puts(out, ", \"shape\": [");
    for (uint32_t d = 0; d < type->rank; d++) {
        lilac_text_printf(out, d > 0 ? ", %lld" : "%lld", (long long)type->shape[d]);
    }
    lilac_tile_print_type(&text, lilac_tile_element(type));
    lilac_text_puts(out, "], \"element\": ");
    explain_json_text(out, &text);
    lilac_text_printf(out, ", \"bits\": %u, \"layout\": ", lilac_tile_element_bits(type));
    explain_json_string(out, explain_layout_name(e, type));
    lilac_text_puts(out, ", \"linear\": ");
    explain_json_string(out, type->layout != NULL ? explain_linear_name(e, type->layout) : NULL);
    lilac_text_printf(out, ", \"registers\": %u}", registers_of(type));
}

static void put_operand(lilac_text *out, const lilac_explanation *e,
                        const lilac_tile_value *value) {
    lilac_text name = {0};
    explain_value_name(&name, value);
    lilac_text_printf(out, "{\"operation\": %u, \"result\": %u, \"name\": ",
                      explain_number_of(e, value->op), value->op != NULL ? value->index : 0);
    explain_json_text(out, &name);
    lilac_text_char(out, '}');
}

static void put_values(lilac_text *out, lilac_explanation *e, const lilac_tile_op *op) {
    lilac_text_puts(out, ", \"results\": [");
    for (uint32_t i = 0; i < op->result_count; i++) {
        lilac_text_puts(out, i > 0 ? ", " : "");
        put_result(out, e, &op->results[i]);
    }
    lilac_text_puts(out, "], \"operands\": [");
    for (uint32_t i = 0; i < op->operand_count; i++) {
        lilac_text_puts(out, i > 0 ? ", " : "");
        put_operand(out, e, op->operands[i].value);
    }
    lilac_text_char(out, ']');
}

/* ---- plans -------------------------------------------------------------------------------- */

static void put_plans(lilac_text *out, lilac_explanation *e, uint32_t index) {
    lilac_text_puts(out, ", \"plans\": [");
    for (uint32_t i = 0; i < e->plans[index].count; i++) {
        const lilac_lowered_plan *plan = e->plans[index].list[i];
        lilac_text text = {0};
        explain_plan_text(&text, e, plan);
        lilac_text_printf(out, "%s{\"kind\": \"%s\", \"text\": ", i > 0 ? ", " : "",
                          explain_plan_kind(plan));
        explain_json_text(out, &text);
        const uint64_t cycles = plan->kind == LILAC_LOWERED_DOT ? (uint64_t)(16 * e->tensor[index])
                                                                : explain_plan_cycles(e, plan);
        lilac_text_printf(out, ", \"cycles\": %.1f, \"plan\": ", (double)cycles / 16);
        explain_plan_json(out, e, plan);
        lilac_text_char(out, '}');
    }
    lilac_text_char(out, ']');
}

static void put_side(lilac_text *out, lilac_explanation *e, const char *what, const char *in,
                     const lilac_tile_op *anchor, const lilac_tile_type *own,
                     const lilac_tile_type *other, bool makes) {
    lilac_text text = {0};
    lilac_text_printf(out, "\"%s_by\": %u, \"%s_in\": ", what, explain_number_of(e, anchor), in);
    explain_json_string(out, explain_layout_name(e, own));
    if (anchor != NULL) {
        explain_reason(&text, e, anchor, own->layout, other->layout, makes);
    }
    lilac_text_printf(out, ", \"why_%s\": ", in);
    explain_json_text(out, &text);
}

static void put_reason(lilac_text *out, lilac_explanation *e, const lilac_tile_op *op) {
    lilac_text_puts(out, ", \"reason\": ");
    if (op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        lilac_text_puts(out, "null");
        return;
    }
    const lilac_tile_value *from = op->operands[0].value, *to = &op->results[0];
    lilac_text_char(out, '{');
    put_side(out, e, "made", "made", explain_producer(from), from->type, to->type, true);
    lilac_text_puts(out, ", ");
    put_side(out, e, "used", "used", explain_consumer(to), to->type, from->type, false);
    lilac_text_char(out, '}');
}

static void put_limits(lilac_text *out, lilac_explanation *e, uint32_t index) {
    lilac_text text = {0};
    lilac_text_puts(out, ", \"vector_limits\": ");
    if (explain_vector_limits(&text, e, index)) {
        text.bytes[--text.length] = '\0';
        explain_json_text(out, &text);
    } else {
        lilac_text_puts(out, "null");
    }
}

static void put_alternative(lilac_text *out, const explain_alternative *a) {
    lilac_text_puts(out, "{\"name\": ");
    explain_json_string(out, a->name);
    lilac_text_puts(out, ", \"operation\": ");
    lilac_text_printf(out, a->number > 0 ? "%u" : "null", a->number);
    if (a->refused != NULL) {
        lilac_text_puts(out, ", \"cycles\": null, \"refused\": ");
        explain_json_string(out, a->refused);
    } else {
        lilac_text_printf(out, ", \"cycles\": %.1f, \"refused\": null", (double)a->cycles / 16);
    }
    lilac_text_printf(out, ", \"saved\": %.1f, \"bytes\": %u, \"sectors\": %llu",
                      (double)a->saved / 16, a->bytes, (unsigned long long)a->sectors);
    lilac_text_printf(out,
                      ", \"counts\": {\"shuffles\": %llu, \"selects\": %llu, \"permutes\": %llu, "
                      "\"shared_store_wavefronts\": %llu, \"shared_load_wavefronts\": %llu}}",
                      (unsigned long long)a->price.shuffles, (unsigned long long)a->price.selects,
                      (unsigned long long)a->price.permutes,
                      (unsigned long long)a->price.store_wavefronts,
                      (unsigned long long)a->price.load_wavefronts);
}

static void put_alternatives(lilac_text *out, lilac_explanation *e, uint32_t index) {
    explain_alternatives list;
    explain_alternatives_of(e, index, &list);
    lilac_text_puts(out, ", \"alternatives\": [");
    for (uint32_t i = 0; i < list.count; i++) {
        lilac_text_puts(out, i > 0 ? ", " : "");
        put_alternative(out, &list.list[i]);
    }
    lilac_text_char(out, ']');
}

/* ---- PTX ---------------------------------------------------------------------------------- */

/* The first and last lines of the PTX of each operation, in the order of their numbers. */
typedef struct line_range {
    uint32_t number, first, last;
} line_range;

static int by_number(const void *a, const void *b) {
    const line_range *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1)
                                  : (x->first > y->first) - (x->first < y->first);
}

static line_range *find_ranges(lilac_explanation *e, uint32_t *count) {
    line_range *list = lilac_arena_array(e->arena, line_range, e->origins.count + 1);
    const char *text = lilac_text_get(&e->ptx);
    uint32_t line = 1;
    size_t at = 0;
    *count = 0;
    for (uint32_t i = 0; i + 1 < e->origins.count; i++) {
        const uint32_t number = explain_number(e, e->origins.list[i].location);
        for (; at < e->origins.list[i].offset; at++) {
            line += text[at] == '\n';
        }
        uint32_t last = line;
        for (size_t k = at; k + 1 < e->origins.list[i + 1].offset; k++) {
            last += text[k] == '\n';
        }
        if (number > 0 && e->origins.list[i + 1].offset > at) {
            list[(*count)++] = (line_range){number, line, last};
        }
    }
    qsort(list, *count, sizeof *list, by_number);
    return list;
}

void explain_json_operations(lilac_text *out, lilac_explanation *e) {
    uint32_t ranges, next = 0;
    const line_range *list = find_ranges(e, &ranges);
    lilac_text_puts(out, ", \"operations\": [");
    for (uint32_t i = 0; i < e->count; i++) {
        const lilac_explain_operation *o = &e->operations[i];
        size_t length;
        const char *text = explain_operation_text(e, i, &length);
        lilac_text_printf(out,
                          "%s{\"number\": %u, \"parent\": %u, \"depth\": %u, \"name\": \"%s\", "
                          "\"text\": ",
                          i > 0 ? ", " : "", i + 1, o->parent, o->depth,
                          lilac_tile_op_info_get(o->op->code)->name);
        lilac_text_json(out, text, length);
        put_places(out, e, o->op);
        put_values(out, e, o->op);
        lilac_text_puts(out, ", \"loop\": ");
        lilac_text_printf(out, o->loop > 0 ? "%u" : "null", o->loop - 1);
        lilac_text_printf(
            out, ", \"rare\": %s, \"executions\": %.6g, \"certain\": %s, \"counts\": ",
            o->rare ? "true" : "false", e->executions[i], e->certain[i] ? "true" : "false");
        explain_json_counts(out, &o->counts);
        lilac_text_puts(out, ", \"issue\": ");
        explain_json_issue(out, &o->counts);
        lilac_text_printf(out, ", \"cycles\": %.1f", (double)o->cycles / 16);
        if (e->traffic[i] > 0) {
            lilac_text_printf(out, ", \"sectors\": %.6g, \"active\": %.4g, \"share\": %.4g",
                              e->traffic[i], e->active[i], e->share[i]);
        }
        put_plans(out, e, i);
        put_reason(out, e, o->op);
        put_limits(out, e, i);
        put_alternatives(out, e, i);
        lilac_text_puts(out, ", \"ptx\": [");
        for (const char *separator = ""; next < ranges && list[next].number == i + 1; next++) {
            lilac_text_printf(out, "%s[%u, %u]", separator, list[next].first, list[next].last);
            separator = ", ";
        }
        lilac_text_puts(out, "]}");
    }
    lilac_text_char(out, ']');
}
