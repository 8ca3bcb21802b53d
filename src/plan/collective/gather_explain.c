/* The plan of a gather as text and as JSON. */
#include "gather.h"

static const char *kind_name(lilac_plan_gather_kind kind) {
    switch (kind) {
    case LILAC_PLAN_GATHER_SHUFFLES:
        return "shuffles";
    case LILAC_PLAN_GATHER_MEMORY:
        return "shared memory";
    case LILAC_PLAN_GATHER_ROUNDS:
        break;
    }
    return "shared memory in rounds";
}

static uint32_t count_rounds(const lilac_plan_gather *plan) {
    return 1U << __builtin_popcountll(plan->rounds);
}

void lilac_plan_gather_explain(lilac_text *out, const lilac_plan_gather *plan) {
    const lilac_plan_gather_work *work = &plan->work;
    lilac_plan_bound bound;
    lilac_plan_gather_bound(&bound, plan);
    lilac_text_printf(out, "gather of elements of %u bits along dim%u, %u warp%s, %s\n",
                      work->element_bits, plan->axis, work->num_warps,
                      work->num_warps == 1 ? "" : "s", plan->arch->name);
    lilac_text_printf(out, "elements      %s\n",
                      plan->in_warp    ? "in the warp that needs them"
                      : plan->by_lanes ? "in the warp that needs them and in others"
                                       : "in any warp");
    lilac_text_printf(out, "strategy      %s\n", kind_name(plan->kind));
    if (plan->kind == LILAC_PLAN_GATHER_SHUFFLES) {
        lilac_text_printf(out, "index         selects one of %u register%s%s\n",
                          1U << work->varying_bits, work->varying_bits == 0 ? "" : "s",
                          work->moves ? " of any lane" : "");
    } else {
        lilac_text_printf(out, "memory        %u round%s of %llu bytes, barrier of the %s\n",
                          count_rounds(plan), plan->rounds == 0 ? "" : "s",
                          (unsigned long long)plan->bytes, lilac_plan_barrier_name(plan->barrier));
        lilac_text_printf(out, "loads         %s\n",
                          plan->exact ? "no index causes a conflict"
                                      : "expected conflicts of random indices");
    }
    lilac_plan_explain_totals(out, &plan->price, &bound, plan->bytes);
}

void lilac_plan_gather_json(lilac_text *out, const lilac_plan_gather *plan) {
    lilac_plan_bound bound;
    lilac_plan_gather_bound(&bound, plan);
    lilac_text_printf(out,
                      "{\"kind\": \"gather\", \"axis\": %u, \"strategy\": \"%s\", \"rounds\": %u, "
                      "\"in_warp\": %s, \"barrier\": \"%s\", \"exact\": %s",
                      plan->axis, kind_name(plan->kind), count_rounds(plan),
                      plan->in_warp ? "true" : "false",
                      plan->bytes == 0 ? "none" : lilac_plan_barrier_name(plan->barrier),
                      plan->exact ? "true" : "false");
    lilac_plan_json_totals(out, &plan->price, &bound, plan->bytes);
    lilac_text_char(out, '}');
}
