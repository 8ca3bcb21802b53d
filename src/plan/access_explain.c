/* Plans of accesses to global memory as text and as JSON. */
#include <lilac/access.h>

const char *lilac_plan_global_kind_name(lilac_plan_global_kind kind) {
    switch (kind) {
    case LILAC_PLAN_LOAD:
        return "load";
    case LILAC_PLAN_COPY:
        return "copy";
    case LILAC_PLAN_STORE:
        return "store";
    case LILAC_PLAN_ATOMIC:
        break;
    }
    return "atomic";
}

static uint32_t vector_bytes(const lilac_plan_global_access *access) {
    return access->element_bytes << access->vector_bits;
}

static void put_count(lilac_text *out, const char *unit, uint64_t count, uint64_t bound) {
    lilac_text_printf(out, "  %s %llu, at least %llu in any layout\n", unit,
                      (unsigned long long)count, (unsigned long long)bound);
}

/* "bits 3 4 of the lane's number", or nothing for an empty set. */
static void put_bits(lilac_text *out, const char *what, uint64_t mask) {
    if (mask == 0) {
        return;
    }
    lilac_text_printf(out, " %s", what);
    for (uint32_t i = 0; mask >> i != 0; i++) {
        if (mask >> i & 1) {
            lilac_text_printf(out, " %u", i);
        }
    }
}

void lilac_plan_global_access_explain(lilac_text *out, const lilac_plan_global_access *access) {
    lilac_text_printf(out, "%s: %u bytes per thread and instruction",
                      lilac_plan_global_kind_name(access->kind), vector_bytes(access));
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        lilac_text_printf(out, "%s %u", i == 0 ? ", register bits" : "",
                          access->vector_register[i]);
    }
    lilac_text_char(out, '\n');
    if (access->replicated_registers != 0 || access->replicated_threads != 0 ||
        access->replicated_blocks != 0) {
        lilac_text_puts(out, "  replicated:");
        put_bits(out, "register bits", access->replicated_registers);
        put_bits(out, "thread bits", access->replicated_threads);
        put_bits(out, "block bits", access->replicated_blocks);
        lilac_text_char(out, '\n');
    }
    if (access->equal_registers != 0) {
        lilac_text_puts(out, "  loaded once for equal elements:");
        put_bits(out, "register bits", access->equal_registers);
        lilac_text_char(out, '\n');
    }
    if (access->idle_threads != 0 || access->idle_blocks != 0) {
        lilac_text_puts(out, "  executed where these are 0:");
        put_bits(out, "thread bits", access->idle_threads);
        put_bits(out, "block bits", access->idle_blocks);
        lilac_text_char(out, '\n');
    }
    put_count(out, "instructions", access->counts.instructions, access->bound.instructions);
    put_count(out, "sectors", access->counts.sectors, access->bound.sectors);
    put_count(out, "lines", access->counts.lines, access->bound.lines);
    lilac_text_printf(out, "  counts: %s\n",
                      access->exact ? "exact where the mask is true"
                                    : "if every run of consecutive elements is aligned to a line");
    lilac_text_printf(out, "  price: %.1f clocks\n", (double)access->cycles / 16);
}

static void put_counts(lilac_text *out, const char *key, const lilac_plan_global_counts *counts) {
    lilac_text_printf(out, ", \"%s\": {\"instructions\": %llu, \"sectors\": %llu, \"lines\": %llu}",
                      key, (unsigned long long)counts->instructions,
                      (unsigned long long)counts->sectors, (unsigned long long)counts->lines);
}

void lilac_plan_global_access_json(lilac_text *out, const lilac_plan_global_access *access) {
    lilac_text_printf(out, "{\"kind\": \"%s\", \"bytes\": %u, \"vector_registers\": [",
                      lilac_plan_global_kind_name(access->kind), vector_bytes(access));
    for (uint32_t i = 0; i < access->vector_bits; i++) {
        lilac_text_printf(out, "%s%u", i == 0 ? "" : ", ", access->vector_register[i]);
    }
    lilac_text_printf(out,
                      "], \"replicated_registers\": %u, \"replicated_threads\": %u"
                      ", \"replicated_blocks\": %u, \"idle_threads\": %u, \"idle_blocks\": %u",
                      access->replicated_registers, access->replicated_threads,
                      access->replicated_blocks, access->idle_threads, access->idle_blocks);
    put_counts(out, "counts", &access->counts);
    put_counts(out, "lower_bound", &access->bound);
    lilac_text_printf(out, ", \"exact\": %s, \"cycles\": %.1f}", access->exact ? "true" : "false",
                      (double)access->cycles / 16);
}
