/* The speed of planning: microseconds for one plan between two distributed layouts of 14 bits
 * (registers 7, lanes 5, warps 2), for every kind of pair:
 *
 *   same          nothing to do                  registers     bits of the registers dealt anew
 *   one swap      a register and a lane bit      warp          registers and lanes dealt anew
 *   transpose     rows of 8 to columns of 8      rows          rows of 8 to one element a lane
 *   random        all bits dealt anew            with copies   the same, two bits hold copies
 *   cluster       all bits dealt anew, two blocks
 *
 * Each by elements of 8, 16 and 32 bits. A kind is timed over all its pairs many times, in this
 * thread's own time on a core; what is printed is the median of the repeats, and the least. The
 * program counts the allocations that planning makes.
 */
#include "benchmark.h"

#include <lilac/plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 32, REPEATS = 51, BITS = 14, REGISTERS = 7, LANES = 5, WARPS = 2, WIDTHS = 3 };

static const uint32_t widths[WIDTHS] = {8, 16, 32};
static const double limit_us = 10;

/* ---- the layouts ------------------------------------------------------------------------ */

/* A tensor of 2^rows × 2^(bits - rows), columns lowest in a flattened element. */
static void build(lilac_layout *layout, uint32_t bits, const uint64_t *columns, uint32_t blocks) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    const uint32_t counts[] = {REGISTERS, LANES, WARPS - blocks, blocks};
    lilac_layout_init(layout);
    bool added = lilac_layout_add_out(layout, "dim1", bits / 2, NULL) &&
                 lilac_layout_add_out(layout, "dim0", bits - bits / 2, NULL);
    for (uint32_t i = 0, at = 0; i < 4; at += counts[i++]) {
        added = added && lilac_layout_add_in(layout, names[i], counts[i], columns + at, NULL);
    }
    if (!added) {
        abort();
    }
}

static void deal(uint64_t *columns, uint32_t from, uint32_t to, lilac_random *random) {
    for (uint32_t i = to; i > from + 1; i--) {
        const uint32_t k = from + (uint32_t)lilac_random_below(random, i - from);
        const uint64_t column = columns[i - 1];
        columns[i - 1] = columns[k];
        columns[k] = column;
    }
}

static void unit_columns(uint64_t *columns, uint32_t bits) {
    for (uint32_t i = 0; i < BITS; i++) {
        columns[i] = i < bits ? UINT64_C(1) << i : 0;
    }
}

/* 128 × 128, a thread with 8 elements of a row, 16 threads a row: bits of the column, of the row,
 * or exchanged. */
static void rows_of_8(uint64_t *columns, bool transposed) {
    static const uint8_t bits[BITS] = {0, 1, 2, 7 + 3, 7 + 4, 7 + 5, 7 + 6, 3, 4, 5, 6, 7, 8, 9};
    for (uint32_t i = 0; i < BITS; i++) {
        columns[i] = UINT64_C(1) << (transposed ? (bits[i] + 7) % BITS : bits[i]);
    }
}

typedef struct kind {
    const char *name;
    void (*make)(uint64_t *source, uint64_t *target, lilac_random *random);
    uint32_t copies, blocks;
    lilac_layout source[PAIRS], target[PAIRS];
    double median_us[WIDTHS], least_us[WIDTHS];
} kind;

static void make_same(uint64_t *source, uint64_t *target, lilac_random *random) {
    deal(source, 0, BITS, random);
    memcpy(target, source, BITS * sizeof *source);
}

static void make_registers(uint64_t *source, uint64_t *target, lilac_random *random) {
    make_same(source, target, random);
    deal(target, 0, REGISTERS, random);
}

static void make_swap(uint64_t *source, uint64_t *target, lilac_random *random) {
    make_same(source, target, random);
    const uint32_t lane = REGISTERS + (uint32_t)lilac_random_below(random, LANES);
    const uint32_t reg = (uint32_t)lilac_random_below(random, REGISTERS);
    target[lane] = source[reg];
    target[reg] = source[lane];
}

static void make_warp(uint64_t *source, uint64_t *target, lilac_random *random) {
    make_same(source, target, random);
    deal(target, 0, REGISTERS + LANES, random);
}

static void make_transpose(uint64_t *source, uint64_t *target, lilac_random *random) {
    (void)random;
    rows_of_8(source, false);
    rows_of_8(target, true);
}

static void make_rows(uint64_t *source, uint64_t *target, lilac_random *random) {
    (void)random;
    rows_of_8(source, false);
    static const uint8_t bits[BITS] = {5, 6, 9, 10, 11, 12, 13, 0, 1, 2, 3, 4, 7, 8};
    for (uint32_t i = 0; i < BITS; i++) {
        target[i] = UINT64_C(1) << bits[i];
    }
}

static void make_random(uint64_t *source, uint64_t *target, lilac_random *random) {
    deal(source, 0, BITS, random);
    deal(target, 0, BITS, random);
}

static kind kinds[] = {
    {.name = "same", .make = make_same},
    {.name = "registers", .make = make_registers},
    {.name = "one swap", .make = make_swap},
    {.name = "warp", .make = make_warp},
    {.name = "transpose", .make = make_transpose},
    {.name = "rows", .make = make_rows},
    {.name = "random", .make = make_random},
    {.name = "random, with copies", .make = make_random, .copies = 2},
    {.name = "random, two blocks", .make = make_random, .blocks = 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void make_pairs(kind *k, lilac_random *random) {
    const uint32_t bits = BITS - k->copies;
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint64_t source[BITS], target[BITS];
        unit_columns(source, bits);
        unit_columns(target, bits);
        k->make(source, target, random);
        build(&k->source[i], bits, source, k->blocks);
        build(&k->target[i], bits, target, k->blocks);
    }
}

/* ---- measuring -------------------------------------------------------------------------- */

static uint64_t check_sum; /* so that nothing measured is left out */

static bool measure(kind *k, uint32_t width, const lilac_arch *arch) {
    static double times[REPEATS];
    for (uint32_t r = 0; r < REPEATS; r++) {
        lilac_plan_conversion plan;
        lilac_reason why;
        const double start = benchmark_seconds();
        for (uint32_t i = 0; i < PAIRS; i++) {
            if (!lilac_plan_conversion_init(&plan, &k->source[i], &k->target[i], widths[width],
                                            NULL, arch, &why)) {
                fprintf(stderr, "movement: %s: %s\n", k->name, why.text);
                return false;
            }
            check_sum += plan.price.cycles;
        }
        times[r] = 1e6 * (benchmark_seconds() - start) / PAIRS;
    }
    benchmark_sort(times, REPEATS);
    k->median_us[width] = times[REPEATS / 2];
    k->least_us[width] = times[0];
    return true;
}

static bool measure_all(void) {
    const lilac_arch *arch = lilac_arch_find("sm_90a");
    lilac_random random;
    lilac_random_seed(&random, 14);
    for (size_t i = 0; i < KINDS; i++) {
        make_pairs(&kinds[i], &random);
    }
    benchmark_reset_allocations();
    bool good = true;
    for (size_t i = 0; i < KINDS && good; i++) {
        for (uint32_t width = 0; width < WIDTHS && good; width++) {
            good = measure(&kinds[i], width, arch);
        }
    }
    return good;
}

/* ---- telling ---------------------------------------------------------------------------- */

static void print_table(void) {
    printf("%-22s %12s %12s %12s   (median microseconds, promised: under %.0f)\n", "14 bits",
           "8-bit", "16-bit", "32-bit", limit_us);
    for (size_t i = 0; i < KINDS; i++) {
        printf("%-22s %12.2f %12.2f %12.2f\n", kinds[i].name, kinds[i].median_us[0],
               kinds[i].median_us[1], kinds[i].median_us[2]);
    }
    printf("%-22s %12lu\n", "allocations", benchmark_allocations());
}

static void write_json(FILE *file) {
    fprintf(file, "{\"lilac\": \"%s\", \"compiler\": \"%s\", \"bits\": %d,\n \"plans\": {\n",
            LILAC_VERSION, __VERSION__, BITS);
    for (size_t i = 0; i < KINDS; i++) {
        for (uint32_t width = 0; width < WIDTHS; width++) {
            const bool last = i + 1 == KINDS && width + 1 == WIDTHS;
            fprintf(file, "  \"%s, %u bits\": {\"median_us\": %.2f, \"least_us\": %.2f}%s\n",
                    kinds[i].name, widths[width], kinds[i].median_us[width],
                    kinds[i].least_us[width], last ? "}," : ",");
        }
    }
    fprintf(file, " \"allocations\": %lu}\n", benchmark_allocations());
}

static bool promises_kept(void) {
    bool kept = benchmark_allocations() == 0;
    for (size_t i = 0; i < KINDS; i++) {
        for (uint32_t width = 0; width < WIDTHS; width++) {
            kept = kept && kinds[i].median_us[width] < limit_us;
        }
    }
    return kept;
}

int main(int argc, char **argv) {
    const benchmark this = {.name = "movement",
                            .check = "when a plan takes longer than promised",
                            .measure = measure_all,
                            .print = print_table,
                            .write = write_json,
                            .promises_kept = promises_kept};
    return benchmark_main(&this, argc, argv);
}
