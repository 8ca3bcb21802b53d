/* The plan of a reduction as text and as JSON. */
#include "reduce.h"

/* The class of a bit of the source: of its registers, then of its threads. */
static const char *class_of(const lilac_plan_reduce *plan, uint32_t bit) {
    const uint32_t registers = plan->source.register_bits, thread = bit - registers;
    if (bit < registers) {
        for (uint32_t i = 0; i < plan->group_bits; i++) {
            if (plan->group_register[i] == bit) {
                return "another element";
            }
        }
        for (uint32_t i = 0; i < plan->fold_bits; i++) {
            if (highest_bit(plan->fold_masks[i]) == bit) {
                return "combined in the thread";
            }
        }
        return "copies";
    }
    for (uint32_t i = 0; i < plan->lane_steps; i++) {
        if (plan->lane_pivots[i] == thread) {
            return plan->lane_steps - 1 - i < plan->give_steps
                       ? "butterfly; each lane keeps half of its elements"
                       : "butterfly";
        }
    }
    for (uint32_t i = 0; i < plan->slot_bits; i++) {
        if (plan->slot_thread[i] == thread) {
            return "partial results in shared memory";
        }
    }
    return plan->idle_threads >> thread & 1 ? "copies" : "another element";
}

/* Where each thread's results come from. */
static const char *results_of(const lilac_plan_reduce *plan) {
    if (plan->slot_bits == 0) {
        return plan->moves ? "moved to their threads by a conversion" : "in their threads";
    }
    return plan->loading_lanes != 0 ? "each lane loads one partial result; butterflies combine them"
           : plan->shares ? "each thread finishes a share; a conversion moves the elements"
                          : "each thread loads the partial results of its elements";
}

void lilac_plan_reduce_explain(lilac_text *out, const lilac_plan_reduce *plan) {
    lilac_plan_bound bound;
    lilac_plan_reduce_bound(&bound, plan);
    lilac_text_printf(out, "reduction of %u operand%s along dim%u, %u warp%s, %s\nbits\n",
                      plan->region.count, plan->region.count == 1 ? "" : "s", plan->axis,
                      plan->num_warps, plan->num_warps == 1 ? "" : "s", plan->arch->name);
    const uint32_t bits = plan->source.register_bits + plan->source.thread_bits;
    for (uint32_t i = 0; i < bits; i++) {
        lilac_plan_put_class(out, &plan->source, i, class_of(plan, i));
    }
    if (plan->slot_bits > 0) {
        lilac_text_printf(out, "memory        stores of %u elements, loads of %u\n",
                          1U << plan->store_bits,
                          plan->loading_lanes != 0 ? 1 : 1U << plan->load_bits);
    }
    lilac_text_printf(out, "results       %s\n", results_of(plan));
    lilac_plan_explain_totals(out, &plan->price, &bound, plan->bytes);
}

void lilac_plan_reduce_json(lilac_text *out, const lilac_plan_reduce *plan) {
    lilac_plan_bound bound;
    lilac_plan_reduce_bound(&bound, plan);
    lilac_text_printf(out, "{\"kind\": \"reduce\", \"axis\": %u, \"operands\": %u, \"bits\": {",
                      plan->axis, plan->region.count);
    const uint32_t bits = plan->source.register_bits + plan->source.thread_bits;
    for (uint32_t i = 0; i < bits; i++) {
        lilac_text_puts(out, i == 0 ? "\"" : ", \"");
        lilac_plan_put_bit(out, &plan->source, i);
        lilac_text_printf(out, "\": \"%s\"", class_of(plan, i));
    }
    lilac_text_printf(out, "}, \"results\": \"%s\", \"combines\": %llu", results_of(plan),
                      (unsigned long long)plan->combines);
    lilac_plan_json_totals(out, &plan->price, &bound, plan->bytes);
    lilac_text_char(out, '}');
}
