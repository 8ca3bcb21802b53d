/* The plan of a scan as text and as JSON. */
#include "scan.h"

static const char *kind_name(lilac_plan_scan_kind kind) {
    switch (kind) {
    case LILAC_PLAN_SCAN_REGISTERS:
        return "registers";
    case LILAC_PLAN_SCAN_LANES:
        return "lanes";
    case LILAC_PLAN_SCAN_MEMORY:
        break;
    }
    return "memory";
}

/* The number of a bit of a run among the register bits, then the thread bits. */
static uint32_t bit_of(const lilac_plan_scan *plan, const lilac_plan_scan_run *run, uint32_t i) {
    return run->place[i] + (run->in_threads >> i & 1 ? plan->scanned.register_bits : 0);
}

void lilac_plan_scan_explain(lilac_text *out, const lilac_plan_scan *plan) {
    lilac_plan_bound bound;
    lilac_plan_scan_bound(&bound, plan);
    lilac_text_printf(out, "%sscan of %u operand%s along dim%u, %u warp%s, %s\n",
                      plan->region.reverse ? "reversed " : "", plan->region.count,
                      plan->region.count == 1 ? "" : "s", plan->axis, plan->num_warps,
                      plan->num_warps == 1 ? "" : "s", plan->arch->name);
    lilac_text_printf(out, "layout        %s\nruns of the axis, lowest bit first\n",
                      plan->moves_operands  ? "another one; conversions lead to it and back"
                      : plan->moves_results ? "the operands'; a conversion leads to the results"
                                            : "the operands'");
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const lilac_plan_scan_run *run = &plan->runs[i];
        lilac_text_printf(out, "  %-12s", kind_name(run->kind));
        for (uint32_t k = 0; k < run->count; k++) {
            lilac_text_puts(out, k == 0 ? "" : ", ");
            lilac_plan_put_bit(out, &plan->scanned, bit_of(plan, run, k));
        }
        lilac_text_char(out, '\n');
    }
    lilac_plan_explain_totals(out, &plan->price, &bound, plan->bytes);
}

void lilac_plan_scan_json(lilac_text *out, const lilac_plan_scan *plan) {
    lilac_plan_bound bound;
    lilac_plan_scan_bound(&bound, plan);
    lilac_text_printf(out,
                      "{\"kind\": \"scan\", \"axis\": %u, \"reverse\": %s, \"operands\": %u, "
                      "\"moves_operands\": %s, \"moves_results\": %s, \"runs\": [",
                      plan->axis, plan->region.reverse ? "true" : "false", plan->region.count,
                      plan->moves_operands ? "true" : "false",
                      plan->moves_results ? "true" : "false");
    for (uint32_t i = 0; i < plan->run_count; i++) {
        const lilac_plan_scan_run *run = &plan->runs[i];
        lilac_text_printf(out, "%s{\"kind\": \"%s\", \"bits\": [", i == 0 ? "" : ", ",
                          kind_name(run->kind));
        for (uint32_t k = 0; k < run->count; k++) {
            lilac_text_puts(out, k == 0 ? "\"" : ", \"");
            lilac_plan_put_bit(out, &plan->scanned, bit_of(plan, run, k));
            lilac_text_char(out, '"');
        }
        lilac_text_puts(out, "]}");
    }
    lilac_text_printf(out, "], \"combines\": %llu", (unsigned long long)plan->combines);
    lilac_plan_json_totals(out, &plan->price, &bound, plan->bytes);
    lilac_text_char(out, '}');
}
