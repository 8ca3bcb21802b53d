/* The names of counters and of classes, and sums of counts. */
#include "internal.h"

#include <math.h>
#include <stddef.h>

const explain_counter explain_counters[] = {
#define COUNTER(field) {#field, offsetof(lilac_explain_counts, field)},
#define SIMULATED(field)
#define FINDING(field)
#include <lilac/simt_counters.def>
#undef COUNTER
#undef SIMULATED
#undef FINDING
    {NULL, 0},
};

const char *lilac_explain_class_name(lilac_explain_class class_) {
    static const char *const names[LILAC_EXPLAIN_CLASS_COUNT] = {
        [LILAC_EXPLAIN_GLOBAL] = "global memory",  [LILAC_EXPLAIN_SHARED] = "shared memory",
        [LILAC_EXPLAIN_SHUFFLE] = "shuffles",      [LILAC_EXPLAIN_TENSOR] = "tensor cores",
        [LILAC_EXPLAIN_FLOAT] = "floats",          [LILAC_EXPLAIN_SPECIAL] = "special functions",
        [LILAC_EXPLAIN_INTEGER] = "integers",      [LILAC_EXPLAIN_CONVERT] = "conversions",
        [LILAC_EXPLAIN_MOVE] = "selects, packing", [LILAC_EXPLAIN_SYNC] = "synchronisation",
        [LILAC_EXPLAIN_CONTROL] = "control flow"};
    return names[class_];
}

const char *lilac_explain_roof_name(lilac_explain_roof roof) {
    static const char *const names[LILAC_EXPLAIN_ROOF_COUNT] = {
        [LILAC_EXPLAIN_ROOF_MEMORY] = "memory",  [LILAC_EXPLAIN_ROOF_LATENCY] = "latency",
        [LILAC_EXPLAIN_ROOF_L2] = "L2",          [LILAC_EXPLAIN_ROOF_SHARED] = "shared memory",
        [LILAC_EXPLAIN_ROOF_TENSOR] = "tensor",  [LILAC_EXPLAIN_ROOF_ISSUE] = "issue",
        [LILAC_EXPLAIN_ROOF_SPECIAL] = "special"};
    return names[roof];
}

static void add(uint64_t *sum, uint64_t part, double factor) {
    *sum += factor == 1 ? part : (uint64_t)llround((double)part * factor);
}

void explain_counts_add(lilac_explain_counts *sum, const lilac_explain_counts *part,
                        double factor) {
    for (const explain_counter *c = explain_counters; c->name != NULL; c++) {
        add((uint64_t *)(void *)((char *)sum + c->offset), explain_counter_get(part, c), factor);
    }
    for (uint32_t i = 0; i < LILAC_EXPLAIN_WIDTHS; i++) {
        add(&sum->access_bits[i], part->access_bits[i], factor);
    }
    for (uint32_t i = 0; i < LILAC_EXPLAIN_CLASS_COUNT; i++) {
        add(&sum->issue[i], part->issue[i], factor);
    }
}
