/* The names of counters and of classes, and sums of counts. */
#include "internal.h"

#include <math.h>
#include <stddef.h>

#define COUNTER(field)                                                                             \
    { #field, offsetof(lilac_explain_counts, field) }

const explain_counter explain_counters[] = {
    COUNTER(instructions),
    COUNTER(global_loads),
    COUNTER(global_stores),
    COUNTER(global_load_sectors),
    COUNTER(global_store_sectors),
    COUNTER(global_load_bytes),
    COUNTER(global_store_bytes),
    COUNTER(shared_loads),
    COUNTER(shared_stores),
    COUNTER(shared_load_wavefronts),
    COUNTER(shared_store_wavefronts),
    COUNTER(matrix_loads),
    COUNTER(matrix_stores),
    COUNTER(cluster_loads),
    COUNTER(cluster_stores),
    COUNTER(async_copies),
    COUNTER(async_sectors),
    COUNTER(async_wavefronts),
    COUNTER(async_bytes),
    COUNTER(bulk_copies),
    COUNTER(bulk_bytes),
    COUNTER(mmas),
    COUNTER(wgmmas),
    COUNTER(wgmma_cycles),
    COUNTER(wgmma_bytes),
    COUNTER(shuffles),
    COUNTER(votes),
    COUNTER(selects),
    COUNTER(permutes),
    COUNTER(barriers),
    COUNTER(warp_barriers),
    COUNTER(group_barriers),
    COUNTER(cluster_barriers),
    COUNTER(atomics),
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
