/* Plans as JSON, and the names of their parts. */
#include "plan.h"

const char *lilac_plan_kind_name(lilac_plan_kind kind) {
    switch (kind) {
    case LILAC_PLAN_NONE:
        return "none";
    case LILAC_PLAN_REGISTERS:
        return "registers";
    case LILAC_PLAN_SHUFFLES:
        return "shuffles";
    case LILAC_PLAN_SHARED:
        return "shared";
    case LILAC_PLAN_CLUSTER:
        break;
    }
    return "cluster";
}

const char *lilac_plan_instruction_name(lilac_plan_instruction instruction) {
    switch (instruction) {
    case LILAC_PLAN_VECTOR:
        return "vector";
    case LILAC_PLAN_MATRIX:
        return "matrix";
    case LILAC_PLAN_MATRIX_TRANSPOSED:
        break;
    }
    return "matrix transposed";
}

const char *lilac_plan_barrier_name(lilac_plan_barrier barrier) {
    switch (barrier) {
    case LILAC_PLAN_BARRIER_WARP:
        return "warp";
    case LILAC_PLAN_BARRIER_GROUP:
        return "group";
    case LILAC_PLAN_BARRIER_BLOCK:
        return "block";
    case LILAC_PLAN_BARRIER_CLUSTER:
        break;
    }
    return "cluster";
}

/* ---- members of objects ----------------------------------------------------------------- */

static void put_key(lilac_text *out, const char *key, bool first) {
    lilac_text_printf(out, "%s\"%s\": ", first ? "{" : ", ", key);
}

static void put_number(lilac_text *out, const char *key, uint64_t value, bool first) {
    put_key(out, key, first);
    lilac_text_unsigned(out, value);
}

static void put_list(lilac_text *out, const char *key, const uint64_t *values, uint32_t count) {
    put_key(out, key, false);
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < count; i++) {
        lilac_text_puts(out, i == 0 ? "" : ", ");
        lilac_text_unsigned(out, values[i]);
    }
    lilac_text_char(out, ']');
}

static void put_access(lilac_text *out, const char *key, const lilac_plan_access *access) {
    put_key(out, key, false);
    lilac_text_printf(out, "{\"instruction\": \"%s\"",
                      lilac_plan_instruction_name(access->instruction));
    put_number(out, "bytes", (uint64_t)access->element_bytes << access->vector_bits, false);
    if (access->instruction != LILAC_PLAN_VECTOR) {
        put_number(out, "matrices", UINT64_C(1) << access->matrix_bits, false);
    }
    put_number(out, "instructions", access->instructions, false);
    put_number(out, "wavefronts", access->wavefronts, false);
    put_number(out, "conflicts", access->conflicts, false);
    put_list(out, "step", access->step, access->step_bits);
    put_list(out, "lane", access->lane, access->lane_bits);
    put_list(out, "warp", access->warp, access->warp_bits);
    lilac_text_char(out, '}');
}

static void put_staging(lilac_text *out, const lilac_plan_staging *staging) {
    lilac_text_puts(out, "{\"step\": \"shared-memory exchange\", \"memory\": ");
    lilac_layout_json(out, &staging->memory);
    put_access(out, "store", &staging->store);
    put_access(out, "load", &staging->load);
    put_number(out, "rounds", UINT64_C(1) << staging->round_bits, false);
    lilac_text_printf(out, ", \"barrier\": \"%s\"", lilac_plan_barrier_name(staging->barrier));
    put_number(out, "barrier_warps", staging->barrier_warps, false);
    put_number(out, "store_copies", staging->store_copies, false);
    put_number(out, "store_copy_lanes", staging->store_copy_lanes, false);
    put_number(out, "bytes", staging->bytes, false);
    put_number(out, "family_bits", staging->family_bits, false);
    lilac_text_char(out, '}');
}

static void put_step(lilac_text *out, const lilac_plan_conversion *plan, uint32_t step) {
    const uint32_t index = plan->step[step].index;
    const lilac_plan_permutation *permutation;
    const lilac_plan_shuffle *shuffle;
    switch (plan->step[step].kind) {
    case LILAC_PLAN_STEP_PERMUTATION:
        permutation = &plan->permutation[index];
        lilac_text_puts(out, "{\"step\": \"register permutation\"");
        put_number(out, "registers_before", UINT64_C(1) << permutation->before_bits, false);
        put_list(out, "from", permutation->from, permutation->bits);
        lilac_text_char(out, '}');
        break;
    case LILAC_PLAN_STEP_SHUFFLE:
        shuffle = &plan->shuffle[index];
        lilac_text_puts(out, "{\"step\": \"shuffle\"");
        put_list(out, "kept", shuffle->kept, shuffle->register_bits);
        put_list(out, "before", shuffle->before, shuffle->lane_bits + shuffle->warp_bits);
        put_list(out, "lane", shuffle->lane, shuffle->lane_bits + shuffle->warp_bits);
        put_list(out, "distance", shuffle->distance, shuffle->register_bits);
        put_list(out, "taken", shuffle->taken, shuffle->after_bits);
        put_list(out, "after", shuffle->after, shuffle->lane_bits + shuffle->warp_bits);
        lilac_text_char(out, '}');
        break;
    case LILAC_PLAN_STEP_STAGING:
        put_staging(out, &plan->staging);
        break;
    }
}

static bool has_staging(const lilac_plan_conversion *plan) {
    return plan->kind == LILAC_PLAN_SHARED || plan->kind == LILAC_PLAN_CLUSTER;
}

void lilac_plan_conversion_json(lilac_text *out, const lilac_plan_conversion *plan) {
    const lilac_plan_price *price = &plan->price;
    const lilac_plan_bound *bound = &plan->bound;
    lilac_text_printf(out, "{\"kind\": \"%s\"", lilac_plan_kind_name(plan->kind));
    put_key(out, "instructions", false);
    put_number(out, "shuffle", price->shuffles, true);
    put_number(out, "select", price->selects, false);
    put_number(out, "permute", price->permutes, false);
    put_number(out, "pack", price->packs, false);
    put_number(out, "store", price->stores, false);
    put_number(out, "load", price->loads, false);
    put_number(out, "barrier", price->barriers, false);
    lilac_text_char(out, '}');
    put_key(out, "wavefronts", false);
    put_number(out, "store", price->store_wavefronts, true);
    put_number(out, "load", price->load_wavefronts, false);
    lilac_text_char(out, '}');
    put_key(out, "lower_bound", false);
    put_number(out, "store", bound->store_wavefronts, true);
    put_number(out, "load", bound->load_wavefronts, false);
    put_number(out, "floor", bound->floor_wavefronts, false);
    lilac_text_printf(out, ", \"met\": %s, \"by_price\": %s}", bound->met ? "true" : "false",
                      bound->by_price ? "true" : "false");
    put_number(out, "shared_bytes", has_staging(plan) ? plan->staging.bytes : 0, false);
    put_key(out, "bytes", false);
    put_number(out, "store", price->store_bytes, true);
    put_number(out, "load", price->load_bytes, false);
    lilac_text_char(out, '}');
    lilac_text_printf(out, ", \"cycles\": %.1f", (double)price->cycles / 16);
    put_key(out, "steps", false);
    lilac_text_char(out, '[');
    for (uint32_t i = 0; i < plan->step_count; i++) {
        lilac_text_puts(out, i == 0 ? "" : ", ");
        put_step(out, plan, i);
    }
    lilac_text_puts(out, "]}");
}
