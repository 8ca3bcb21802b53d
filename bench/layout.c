/* The speed of the layout algebra.
 *
 *   operations   nanoseconds for one, on pairs of distributed layouts of 14 bits, and the memory
 *                allocations that all of them made together (the program counts them)
 *   application  elements a second on one core over a whole tensor
 *
 * The layouts are random ones of Definition 4.10: registers, lanes, warps and blocks to two
 * dimensions of 2^7, every place an element of its own; and ones in which two of the bits are
 * copies. An operation is timed over all pairs many times, in this thread's own time on a core;
 * what is printed is the median of the repeats, and the least.
 */
#include "benchmark.h"

#include <lilac/layout.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAIRS = 64,
    REPEATS = 101,
    ROUNDS = 50,
    TENSOR_BITS = 24,
    RATE_REPEATS = 15,
};

/* ---- the layouts ------------------------------------------------------------------------ */

typedef struct inputs {
    lilac_layout a[PAIRS], b[PAIRS]; /* bijective */
    lilac_layout copies[PAIRS];      /* with free bits */
    lilac_layout memory[PAIRS];      /* offset → dims, swizzled */
    lilac_layout tile[PAIRS];        /* divides a × tile */
    lilac_layout tiled[PAIRS];
    lilac_layout maps[PAIRS]; /* a's places → b's */
} inputs;

/* Zero columns and distinct unit vectors, all of them, in random places. */
static void random_distributed(lilac_layout *layout, lilac_random *random, uint32_t copies) {
    static const char *const names[] = {"register", "lane", "warp", "block"};
    static const uint32_t bits[] = {5, 5, 3, 1};
    uint64_t columns[16];
    uint32_t outs = 14 - copies;
    for (uint32_t i = 0; i < 14; i++) {
        columns[i] = i < outs ? UINT64_C(1) << i : 0;
    }
    for (uint32_t i = 13; i > 0; i--) {
        uint32_t k = (uint32_t)lilac_random_below(random, i + 1);
        uint64_t column = columns[i];
        columns[i] = columns[k];
        columns[k] = column;
    }
    lilac_layout_init(layout);
    bool added = lilac_layout_add_out(layout, "dim0", outs / 2, NULL) &&
                 lilac_layout_add_out(layout, "dim1", outs - outs / 2, NULL);
    for (uint32_t i = 0, at = 0; i < 4; at += bits[i++]) {
        added = added && lilac_layout_add_in(layout, names[i], bits[i], columns + at, NULL);
    }
    if (!added) {
        abort();
    }
}

static void make_inputs(inputs *all) {
    lilac_random random;
    lilac_random_seed(&random, 14);
    for (uint32_t i = 0; i < PAIRS; i++) {
        random_distributed(&all->a[i], &random, 0);
        random_distributed(&all->b[i], &random, 0);
        random_distributed(&all->copies[i], &random, 2);
        uint64_t swizzle[14];
        for (uint32_t k = 0; k < 14; k++) {
            swizzle[k] = UINT64_C(1) << k;
        }
        for (uint32_t k = 0; k < 3; k++) {
            swizzle[7 + k] |= UINT64_C(1) << (3 + k);
        }
        lilac_layout_init(&all->memory[i]);
        lilac_layout_identity(&all->tile[i], 2, "register", "dim1");
        if (!lilac_layout_add_out(&all->memory[i], "dim0", 7, NULL) ||
            !lilac_layout_add_out(&all->memory[i], "dim1", 7, NULL) ||
            !lilac_layout_add_in(&all->memory[i], "offset", 14, swizzle, NULL) ||
            !lilac_layout_product(&all->tiled[i], &all->tile[i], &all->a[i], NULL) ||
            !lilac_layout_invert_compose(&all->maps[i], &all->a[i], &all->b[i], NULL)) {
            abort();
        }
    }
}

/* ---- the operations --------------------------------------------------------------------- */

static bool do_invert_compose(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_invert_compose(result, &all->a[i], &all->b[i], NULL);
}

static bool do_invert_compose_memory(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_invert_compose(result, &all->a[i], &all->memory[i], NULL);
}

static bool do_invert(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_invert(result, &all->a[i], NULL);
}

static bool do_pseudoinvert(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_pseudoinvert(result, &all->copies[i], NULL);
}

static bool do_compose(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_compose(result, &all->b[i], &all->maps[i], NULL);
}

static bool do_product(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_product(result, &all->tile[i], &all->a[i], NULL);
}

static bool do_divide_left(lilac_layout *result, const inputs *all, uint32_t i) {
    return lilac_layout_divide_left(result, &all->tiled[i], &all->tile[i], NULL);
}

static bool do_transpose(lilac_layout *result, const inputs *all, uint32_t i) {
    static const uint32_t order[] = {1, 0};
    lilac_layout_transpose(result, &all->a[i], order);
    return true;
}

static bool do_reshape(lilac_layout *result, const inputs *all, uint32_t i) {
    static const uint32_t bits[] = {4, 6, 4};
    return lilac_layout_reshape(result, &all->a[i], 3, bits, NULL);
}

static bool do_slice(lilac_layout *result, const inputs *all, uint32_t i) {
    lilac_layout_slice(result, &all->a[i], 1);
    return true;
}

static bool do_apply(lilac_layout *result, const inputs *all, uint32_t i) {
    result->columns[0] = lilac_layout_apply(&all->a[i], 0x2AAA + i);
    return true;
}

typedef struct operation {
    const char *name;
    bool (*run)(lilac_layout *result, const inputs *all, uint32_t i);
    double limit_ns; /* what is promised; 0: nothing */
    double median_ns, least_ns;
} operation;

static operation operations[] = {
    {"invert and compose", do_invert_compose, 500, 0, 0},
    {"invert and compose, swizzled memory", do_invert_compose_memory, 500, 0, 0},
    {"inverse", do_invert, 500, 0, 0},
    {"right inverse, with copies", do_pseudoinvert, 500, 0, 0},
    {"composition", do_compose, 500, 0, 0},
    {"product", do_product, 0, 0, 0},
    {"left division", do_divide_left, 0, 0, 0},
    {"transpose", do_transpose, 0, 0, 0},
    {"reshape", do_reshape, 0, 0, 0},
    {"slice", do_slice, 0, 0, 0},
    {"apply to one index", do_apply, 0, 0, 0},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- application to whole tensors ------------------------------------------------------- */

typedef struct tensor_buffers {
    uint32_t *narrow;
    uint64_t *wide, *indices;
} tensor_buffers;

static bool rate32(const lilac_layout *layout, const tensor_buffers *buffers) {
    return lilac_layout_apply_range32(buffers->narrow, layout, 0, UINT64_C(1) << TENSOR_BITS, NULL);
}

static bool rate64(const lilac_layout *layout, const tensor_buffers *buffers) {
    return lilac_layout_apply_range(buffers->wide, layout, 0, UINT64_C(1) << TENSOR_BITS, NULL);
}

static bool rate_coordinates(const lilac_layout *layout, const tensor_buffers *buffers) {
    return lilac_layout_coordinates32(buffers->narrow, layout, 1, 0, UINT64_C(1) << TENSOR_BITS,
                                      NULL);
}

static bool rate_each(const lilac_layout *layout, const tensor_buffers *buffers) {
    return lilac_layout_apply_each(buffers->wide, layout, buffers->indices,
                                   UINT64_C(1) << TENSOR_BITS, NULL);
}

typedef struct application {
    const char *name;
    bool (*run)(const lilac_layout *layout, const tensor_buffers *buffers);
    double floor; /* elements a second that are promised */
    double median, most;
} application;

static application applications[] = {
    {"whole tensor, 32-bit places", rate32, 1e9, 0, 0},
    {"whole tensor, 64-bit places", rate64, 0, 0, 0},
    {"whole tensor, one coordinate", rate_coordinates, 1e9, 0, 0},
    {"indices in any order, 64 bits", rate_each, 0, 0, 0},
};
enum { APPLICATIONS = sizeof applications / sizeof applications[0] };

/* ---- measuring -------------------------------------------------------------------------- */

static uint64_t check_sum; /* so that nothing measured is left out */

static bool measure_operation(operation *op, const inputs *all) {
    static double times[REPEATS];
    for (uint32_t r = 0; r < REPEATS; r++) {
        lilac_layout result;
        bool done = true;
        double start = benchmark_seconds();
        for (uint32_t k = 0; k < ROUNDS; k++) {
            for (uint32_t i = 0; i < PAIRS; i++) {
                done = op->run(&result, all, i) && done;
                check_sum += result.columns[0];
            }
        }
        times[r] = 1e9 * (benchmark_seconds() - start) / (ROUNDS * PAIRS);
        if (!done) {
            return false;
        }
    }
    benchmark_sort(times, REPEATS);
    op->median_ns = times[REPEATS / 2];
    op->least_ns = times[0];
    return true;
}

static bool measure_application(application *use, const lilac_layout *layout,
                                const tensor_buffers *buffers) {
    double rates[RATE_REPEATS];
    for (uint32_t r = 0; r < RATE_REPEATS; r++) {
        double start = benchmark_seconds();
        if (!use->run(layout, buffers)) {
            return false;
        }
        rates[r] = (double)(UINT64_C(1) << TENSOR_BITS) / (benchmark_seconds() - start);
    }
    benchmark_sort(rates, RATE_REPEATS);
    use->median = rates[RATE_REPEATS / 2];
    use->most = rates[RATE_REPEATS - 1];
    return true;
}

/* A whole tensor of 2^24 elements: 4096 × 4096, swizzled. */
static bool tensor_layout(lilac_layout *layout) {
    static const uint32_t bits[] = {TENSOR_BITS / 2, TENSOR_BITS / 2};
    if (!lilac_layout_standard(layout, "offset", 2, bits, NULL, NULL)) {
        return false;
    }
    for (uint32_t k = 0; k < 3; k++) {
        layout->columns[TENSOR_BITS / 2 + k] |= layout->columns[3 + k];
    }
    return true;
}

static bool measure_all(void) {
    static inputs all;
    static tensor_buffers buffers;
    lilac_layout tensor;
    const size_t count = (size_t)1 << TENSOR_BITS;
    make_inputs(&all);
    buffers.narrow = malloc(count * sizeof *buffers.narrow);
    buffers.wide = malloc(count * sizeof *buffers.wide);
    buffers.indices = malloc(count * sizeof *buffers.indices);
    bool good = buffers.narrow && buffers.wide && buffers.indices && tensor_layout(&tensor);
    for (size_t i = 0; good && i < count; i++) {
        buffers.narrow[i] = 0; /* no page faults in what is timed */
        buffers.wide[i] = 0;
        buffers.indices[i] = i * 0x9E3779B1U & (count - 1);
    }
    benchmark_reset_allocations();
    for (size_t i = 0; good && i < OPERATIONS; i++) {
        good = measure_operation(&operations[i], &all);
    }
    for (size_t i = 0; good && i < APPLICATIONS; i++) {
        good = measure_application(&applications[i], &tensor, &buffers);
    }
    for (size_t i = 0; good && i < count; i += 4099) { /* that it is right, too */
        good = buffers.wide[i] == lilac_layout_apply(&tensor, buffers.indices[i]);
    }
    free(buffers.narrow);
    free(buffers.wide);
    free(buffers.indices);
    if (!good) {
        fputs("layout: an operation was refused or gave a wrong result\n", stderr);
    }
    return good;
}

/* ---- telling ---------------------------------------------------------------------------- */

static void print_table(void) {
    printf("%-38s %10s %10s %10s\n", "operation, 14 bits", "median ns", "least ns", "promised");
    for (size_t i = 0; i < OPERATIONS; i++) {
        const operation *op = &operations[i];
        printf("%-38s %10.1f %10.1f ", op->name, op->median_ns, op->least_ns);
        if (op->limit_ns > 0) {
            printf("%8s%.0f\n", "< ", op->limit_ns);
        } else {
            printf("%10s\n", "");
        }
    }
    printf("%-38s %10lu %10s %11s\n\n", "allocations by all of them", benchmark_allocations(), "",
           "0");
    printf("%-38s %10s %10s %10s\n", "application, 2^24 elements, one core", "median G/s",
           "most G/s", "promised");
    for (size_t i = 0; i < APPLICATIONS; i++) {
        const application *use = &applications[i];
        printf("%-38s %10.2f %10.2f ", use->name, 1e-9 * use->median, 1e-9 * use->most);
        if (use->floor > 0) {
            printf("%8s%.0f\n", "> ", 1e-9 * use->floor);
        } else {
            printf("%10s\n", "");
        }
    }
}

static void write_json(FILE *file) {
    fprintf(file, "{\"lilac\": \"%s\", \"compiler\": \"%s\", \"bits\": 14,\n \"operations\": {\n",
            LILAC_VERSION, __VERSION__);
    for (size_t i = 0; i < OPERATIONS; i++) {
        fprintf(file, "  \"%s\": {\"median_ns\": %.1f, \"least_ns\": %.1f}%s\n", operations[i].name,
                operations[i].median_ns, operations[i].least_ns, i + 1 < OPERATIONS ? "," : "},");
    }
    fprintf(file, " \"allocations\": %lu,\n \"application\": {\n", benchmark_allocations());
    for (size_t i = 0; i < APPLICATIONS; i++) {
        fprintf(file, "  \"%s\": {\"median_per_second\": %.4g, \"most_per_second\": %.4g}%s\n",
                applications[i].name, applications[i].median, applications[i].most,
                i + 1 < APPLICATIONS ? "," : "}}");
    }
}

static bool promises_kept(void) {
    bool kept = benchmark_allocations() == 0;
    for (size_t i = 0; i < OPERATIONS; i++) {
        kept = kept &&
               (operations[i].limit_ns <= 0 || operations[i].median_ns < operations[i].limit_ns);
    }
    for (size_t i = 0; i < APPLICATIONS; i++) {
        kept = kept && applications[i].median >= applications[i].floor;
    }
    return kept;
}

int main(int argc, char **argv) {
    const benchmark this = {.name = "layout",
                            .check = "when a promised bound is broken",
                            .measure = measure_all,
                            .print = print_table,
                            .write = write_json,
                            .promises_kept = promises_kept};
    return benchmark_main(&this, argc, argv);
}
