/* The counters' text and JSON forms, from one table of their names. */
#include <lilac/sim.h>

#include <stddef.h>
#include <string.h>

typedef struct counter_name {
    const char *name; /* of the field, spaces for underlines in text */
    size_t offset;
    bool finding; /* not 0: something is wrong */
} counter_name;

static const counter_name names[] = {
#define COUNTER(field)   {#field, offsetof(lilac_sim_counters, field), false},
#define SIMULATED(field) COUNTER(field)
#define FINDING(field)   {#field, offsetof(lilac_sim_counters, field), true},
#include <lilac/simt_counters.def>
#undef COUNTER
#undef SIMULATED
#undef FINDING
};
enum { NAMES = sizeof names / sizeof *names };

static uint64_t value_of(const lilac_sim_counters *counters, const counter_name *name) {
    return *(const uint64_t *)(const void *)((const char *)counters + name->offset);
}

static void print_line(lilac_text *out, const char *name, uint64_t value) {
    lilac_text line = {0};
    for (const char *c = name; *c; c++) {
        lilac_text_char(&line, *c == '_' ? ' ' : *c);
    }
    lilac_text_printf(out, "%-24s %12llu\n", lilac_text_get(&line), (unsigned long long)value);
    lilac_text_clear(&line);
}

void lilac_sim_counters_print(lilac_text *out, const lilac_sim_counters *counters, bool zeros) {
    for (size_t k = 0; k < NAMES; k++) {
        if (names[k].finding && (zeros || value_of(counters, &names[k]))) {
            print_line(out, names[k].name, value_of(counters, &names[k]));
        }
    }
    for (size_t k = 0; k < NAMES; k++) {
        if (!names[k].finding && (zeros || value_of(counters, &names[k]))) {
            print_line(out, names[k].name, value_of(counters, &names[k]));
        }
    }
    for (uint32_t k = 0; k < LILAC_SIM_WIDTHS; k++) {
        if (zeros || counters->access_bits[k]) {
            lilac_text_printf(out, "accesses of %3u bits     %12llu\n", 8u << k,
                              (unsigned long long)counters->access_bits[k]);
        }
    }
}

void lilac_sim_counters_json(lilac_text *out, const lilac_sim_counters *counters) {
    lilac_text_char(out, '{');
    for (size_t k = 0; k < NAMES; k++) {
        lilac_text_json(out, names[k].name, strlen(names[k].name));
        lilac_text_puts(out, ": ");
        lilac_text_unsigned(out, value_of(counters, &names[k]));
        lilac_text_puts(out, ", ");
    }
    lilac_text_puts(out, "\"access_bits\": {");
    for (uint32_t k = 0; k < LILAC_SIM_WIDTHS; k++) {
        lilac_text_printf(out, "%s\"%u\": ", k ? ", " : "", 8u << k);
        lilac_text_unsigned(out, counters->access_bits[k]);
    }
    lilac_text_puts(out, "}}");
}
