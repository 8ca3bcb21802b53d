/* What changes between two explanations of one kernel. */
#include "report/json.h"
#include "report/text.h"

#include <math.h>

/* Differences that one decimal shows. */
static void put_row(lilac_text *out, const char *what, double before, double after) {
    if (fabs(after - before) >= 0.05) {
        lilac_text_printf(out, "  %-28s %14.1f %14.1f", what, before, after);
        if (before > 0) {
            lilac_text_printf(out, "   %+.1f %%", 100 * (after - before) / before);
        }
        lilac_text_char(out, '\n');
    }
}

/* Operations with plans, of one opcode: how many, and their clocks in a block. */
static void sum_plans(const lilac_explanation *e, lilac_tile_opcode code, uint32_t *count,
                      double *clocks) {
    *count = 0;
    *clocks = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->operations[i].op->code == code && e->plans[i].count > 0) {
            ++*count;
            *clocks += e->executions[i] * (double)e->operations[i].cycles / 16;
        }
    }
}

static void put_plans(lilac_text *out, const lilac_explanation *a, const lilac_explanation *b) {
    for (uint32_t code = 1; code < LILAC_TILE_OP_COUNT; code++) {
        uint32_t counts[2];
        double clocks[2];
        sum_plans(a, (lilac_tile_opcode)code, &counts[0], &clocks[0]);
        sum_plans(b, (lilac_tile_opcode)code, &counts[1], &clocks[1]);
        if (counts[0] != counts[1] || clocks[0] != clocks[1]) {
            lilac_text t = {0};
            lilac_text_printf(&t, "%s, %u", lilac_tile_op_info_get((lilac_tile_opcode)code)->name,
                              counts[0]);
            if (counts[1] != counts[0]) {
                lilac_text_printf(&t, " and %u", counts[1]);
            }
            lilac_text_printf(out, "  clocks of %s: %.1f and %.1f\n", lilac_text_get(&t), clocks[0],
                              clocks[1]);
            lilac_text_clear(&t);
        }
    }
}

void lilac_explain_compare(lilac_text *out, lilac_explanation *base, lilac_explanation *other,
                           const char *what) {
    const lilac_explain_budget *a = &base->budget, *b = &other->budget;
    lilac_text_printf(out, "with %s, for a block\n", what);
    lilac_text_printf(out, "  %-28s %14s %14s\n", "", "before", "after");
    const size_t start = out->length;
    for (const explain_counter *c = explain_counters; c->name != NULL; c++) {
        put_row(out, c->name, (double)explain_counter_get(&a->counts, c),
                (double)explain_counter_get(&b->counts, c));
    }
    put_row(out, "shared_bytes", a->shared_bytes, b->shared_bytes);
    put_row(out, "registers", a->registers, b->registers);
    put_row(out, "resident_blocks", a->resident_blocks, b->resident_blocks);
    put_row(out, "resident_warps", a->resident_warps, b->resident_warps);
    for (uint32_t r = 0; r < LILAC_EXPLAIN_ROOF_COUNT; r++) {
        lilac_text name = {0};
        lilac_text_printf(&name, "clocks, %s", lilac_explain_roof_name((lilac_explain_roof)r));
        put_row(out, lilac_text_get(&name), a->clocks[r], b->clocks[r]);
        lilac_text_clear(&name);
    }
    put_plans(out, base, other);
    put_row(out, "predicted, us", 1e6 * a->seconds, 1e6 * b->seconds);
    if (out->length == start) {
        lilac_text_puts(out, "  nothing changes\n");
    }
}

void lilac_explain_compare_json(lilac_text *out, lilac_explanation *base, lilac_explanation *other,
                                const char *what) {
    lilac_text_puts(out, "{\"change\": ");
    explain_json_string(out, what);
    lilac_text_puts(out, ", \"before\": ");
    explain_json_budget(out, base);
    lilac_text_puts(out, ", \"after\": ");
    explain_json_budget(out, other);
    lilac_text_char(out, '}');
}
