/* The parts that the explanations of collective plans have in common: the table of bits, and the
 * totals as text and as JSON. */
#include "collective.h"

#include <string.h>

void lilac_plan_put_bit(lilac_text *out, const lilac_layout_columns *columns, uint32_t bit) {
    const uint32_t lanes = columns->register_bits, warps = lanes + columns->lane_bits;
    const char *name = bit < lanes ? "register" : bit < warps ? "lane" : "warp";
    lilac_text_printf(out, "%s %u", name, bit - (bit < lanes ? 0 : bit < warps ? lanes : warps));
}

void lilac_plan_put_class(lilac_text *out, const lilac_layout_columns *columns, uint32_t bit,
                          const char *what) {
    enum { COLUMN = 14 };
    lilac_text name;
    lilac_text_init(&name);
    lilac_plan_put_bit(&name, columns, bit);
    lilac_text_printf(out, "  %s", lilac_text_get(&name));
    lilac_text_repeat(out, ' ', name.length < COLUMN ? COLUMN - name.length : 1);
    lilac_text_printf(out, "%s\n", what);
    lilac_text_clear(&name);
}

/* ---- text -------------------------------------------------------------------------------- */

static void put_row(lilac_text *out, const char *name, uint64_t count) {
    if (count != 0) {
        lilac_text_printf(out, "  %-14s%10llu\n", name, (unsigned long long)count);
    }
}

static void put_memory_row(lilac_text *out, const char *name, uint64_t count, uint64_t wavefronts,
                           uint64_t least) {
    if (count != 0) {
        lilac_text_printf(out, "  %-14s%10llu%12llu%12llu\n", name, (unsigned long long)count,
                          (unsigned long long)wavefronts, (unsigned long long)least);
    }
}

void lilac_plan_explain_totals(lilac_text *out, const lilac_plan_price *price,
                               const lilac_plan_bound *bound, uint64_t bytes) {
    const bool memory = price->stores + price->loads != 0;
    lilac_text_printf(out, "totals        instructions%s\n",
                      memory ? "  wavefronts       least" : "");
    put_row(out, "shuffles", price->shuffles);
    put_row(out, "selects", price->selects);
    put_row(out, "byte permutes", price->permutes);
    put_row(out, "packed", price->packs);
    put_memory_row(out, "stores", price->stores, price->store_wavefronts, bound->store_wavefronts);
    put_memory_row(out, "loads", price->loads, price->load_wavefronts, bound->load_wavefronts);
    put_row(out, "barriers", price->barriers);
    if (memory) {
        lilac_text_printf(out, "  %llu bytes of shared memory; %s\n", (unsigned long long)bytes,
                          bound->met ? "no order of memory takes fewer wavefronts"
                                     : "the least may not be reached by any order of memory");
    }
    lilac_text_printf(out, "  about %.1f clocks of a multiprocessor\n", (double)price->cycles / 16);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_number(lilac_text *out, const char *key, uint64_t value) {
    lilac_text_printf(out, "%s\"%s\": %llu", strcmp(key, "shuffle") == 0 ? "" : ", ", key,
                      (unsigned long long)value);
}

void lilac_plan_json_totals(lilac_text *out, const lilac_plan_price *price,
                            const lilac_plan_bound *bound, uint64_t bytes) {
    lilac_text_puts(out, ", \"instructions\": {");
    put_number(out, "shuffle", price->shuffles);
    put_number(out, "select", price->selects);
    put_number(out, "permute", price->permutes);
    put_number(out, "pack", price->packs);
    put_number(out, "store", price->stores);
    put_number(out, "load", price->loads);
    put_number(out, "barrier", price->barriers);
    lilac_text_printf(out, "}, \"wavefronts\": {\"store\": %llu, \"load\": %llu}",
                      (unsigned long long)price->store_wavefronts,
                      (unsigned long long)price->load_wavefronts);
    lilac_text_printf(out,
                      ", \"lower_bound\": {\"store\": %llu, \"load\": %llu, \"met\": %s}, "
                      "\"shared_bytes\": %llu, \"cycles\": %.1f",
                      (unsigned long long)bound->store_wavefronts,
                      (unsigned long long)bound->load_wavefronts, bound->met ? "true" : "false",
                      (unsigned long long)bytes, (double)price->cycles / 16);
}
