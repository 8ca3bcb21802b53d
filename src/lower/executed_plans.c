/* The list of plans that the lowering executes. The plans of regions (operands of reductions and
 * scans) are copied, because they live as long as the lowering. */
#include "executed_plans.h"

#include <string.h>

/* A new entry; NULL: plans are not kept. */
static lilac_lowered_plan *add(const lilac_lowering *l, lilac_lowered_kind kind) {
    lilac_lowered_plans *plans = l->options->plans;
    if (plans == NULL) {
        return NULL;
    }
    lilac_lowered_plan *entry = lilac_arena_new(plans->arena, lilac_lowered_plan);
    *entry = (lilac_lowered_plan){.op = l->op, .kind = kind};
    *(plans->last != NULL ? &plans->last->next : &plans->first) = entry;
    plans->last = entry;
    return entry;
}

static void *copy(const lilac_lowering *l, const void *bytes, size_t size) {
    return memcpy(lilac_arena_alloc(l->options->plans->arena, size), bytes, size);
}

static lilac_plan_region copy_region(const lilac_lowering *l, const lilac_plan_region *region) {
    lilac_plan_region result = *region;
    result.operands = copy(l, region->operands, region->count * sizeof *region->operands);
    return result;
}

void lilac_lower_note_access(const lilac_lowering *l, const lilac_plan_global_access *plan) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_ACCESS);
    if (entry != NULL) {
        entry->is.access = copy(l, plan, sizeof *plan);
    }
}

void lilac_lower_note_conversion(const lilac_lowering *l, const lilac_plan_conversion *plan,
                                 const lilac_layout_columns *from, const lilac_layout_columns *to,
                                 uint32_t element_bits) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_CONVERSION);
    if (entry != NULL) {
        entry->is.conversion = copy(l, plan, sizeof *plan);
        entry->from = copy(l, from, sizeof *from);
        entry->to = copy(l, to, sizeof *to);
        entry->element_bits = element_bits;
    }
}

void lilac_lower_note_reduction(const lilac_lowering *l, const lilac_plan_reduce *plan) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_REDUCTION);
    if (entry != NULL) {
        lilac_plan_reduce *kept = copy(l, plan, sizeof *plan);
        kept->region = copy_region(l, &plan->region);
        entry->is.reduction = kept;
    }
}

void lilac_lower_note_scan(const lilac_lowering *l, const lilac_plan_scan *plan) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_SCAN);
    if (entry != NULL) {
        lilac_plan_scan *kept = copy(l, plan, sizeof *plan);
        kept->region = copy_region(l, &plan->region);
        entry->is.scan = kept;
    }
}

void lilac_lower_note_gather(const lilac_lowering *l, const lilac_plan_gather *plan) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_GATHER);
    if (entry != NULL) {
        entry->is.gather = copy(l, plan, sizeof *plan);
    }
}

void lilac_lower_note_histogram(const lilac_lowering *l, const lilac_plan_histogram *plan) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_HISTOGRAM);
    if (entry != NULL) {
        entry->is.histogram = copy(l, plan, sizeof *plan);
    }
}

void lilac_lower_note_shared(const lilac_lowering *l, const lilac_plan_access *access, bool loads,
                             uint32_t replicas) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_SHARED);
    if (entry != NULL) {
        const lilac_lowered_shared plan = {*access, loads, replicas};
        entry->is.shared = copy(l, &plan, sizeof plan);
    }
}

void lilac_lower_note_dot(const lilac_lowering *l, const lilac_plan_dot *plan,
                          const lilac_plan_dot_problem *problem,
                          const lilac_plan_dot_memory *const memory[2]) {
    lilac_lowered_plan *entry = add(l, LILAC_LOWERED_DOT);
    if (entry == NULL) {
        return;
    }
    lilac_lowered_dot *kept = lilac_arena_new(l->options->plans->arena, lilac_lowered_dot);
    *kept = (lilac_lowered_dot){.plan = *plan, .problem = *problem};
    for (uint32_t i = 0; i < 2; i++) {
        kept->in_memory[i] = memory[i] != NULL;
        if (memory[i] != NULL) {
            kept->memory[i] = *memory[i];
        }
    }
    entry->is.dot = kept;
}
