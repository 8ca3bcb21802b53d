/* The counts of an explanation are those of the simulator: for every operation of the sample kernels.
 *
 * The simulator counts by instruction, and each instruction has the number of its operation. Its counts are
 * divided by its executions. An access whose mask is false in some threads has fewer than the explanation says. */
#include "support/samples.h"

#include <lilac/explain.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a counter is compared. */
typedef enum rule { EXACT, GLOBAL, SHARED, COPY, MASKED } rule;

typedef struct row {
    const char *name;
    size_t counted, explained;
    rule rule;
} row;

#define ROW(field, how)                                                                            \
    { #field, offsetof(lilac_sim_counters, field), offsetof(lilac_explain_counts, field), how }

static const row rows[] = {
    ROW(instructions, EXACT),
    ROW(mmas, EXACT),
    ROW(wgmmas, EXACT),
    ROW(wgmma_cycles, EXACT),
    ROW(wgmma_bytes, EXACT),
    ROW(shuffles, EXACT),
    ROW(votes, EXACT),
    ROW(selects, EXACT),
    ROW(permutes, EXACT),
    ROW(barriers, EXACT),
    ROW(warp_barriers, EXACT),
    ROW(group_barriers, EXACT),
    ROW(global_loads, GLOBAL),
    ROW(global_stores, GLOBAL),
    ROW(global_load_bytes, GLOBAL),
    ROW(global_store_bytes, GLOBAL),
    ROW(global_load_sectors, GLOBAL),
    ROW(global_store_sectors, GLOBAL),
    ROW(access_bits[0], GLOBAL),
    ROW(access_bits[1], GLOBAL),
    ROW(access_bits[2], GLOBAL),
    ROW(access_bits[3], GLOBAL),
    ROW(access_bits[4], GLOBAL),
    ROW(access_bits[5], GLOBAL),
    ROW(shared_loads, SHARED),
    ROW(shared_stores, SHARED),
    ROW(shared_load_wavefronts, SHARED),
    ROW(shared_store_wavefronts, SHARED),
    ROW(matrix_loads, SHARED),
    ROW(matrix_stores, SHARED),
    ROW(async_copies, COPY),
    ROW(async_bytes, COPY),
    ROW(async_wavefronts, COPY),
    ROW(async_sectors, COPY),
    ROW(bulk_copies, MASKED),
    ROW(bulk_bytes, MASKED),
    ROW(atomics, MASKED),
};
enum { ROWS = sizeof rows / sizeof rows[0], FULL_LOADS = 14, FULL_STORES = 15, FULL_COPIES = 31 };

typedef struct tally {
    uint32_t kernels, operations, compared, masked, wrong;
} tally;

/* ---- one operation ------------------------------------------------------------------------- */

typedef struct measured {
    double counts[ROWS];
    bool skipped; /* an instruction of it was not executed */
} measured;

static bool seen_before(const lilac_sim_profile *profile, uint32_t s) {
    for (uint32_t k = 0; k < s; k++) {
        if (profile->sites[k].instruction == profile->sites[s].instruction) {
            return true;
        }
    }
    return false;
}

static void measure(measured *list, uint32_t count, const lilac_context *context,
                    const lilac_sim_profile *profile, uint32_t warps) {
    memset(list, 0, (count + 1) * sizeof *list);
    for (uint32_t s = 0; s < profile->count; s++) {
        const lilac_sim_site *site = &profile->sites[s];
        const uint32_t number = lilac_operation_number(context, site->instruction->location);
        if (number == 0 || number > count || site->counters.instructions == 0) {
            if (number > 0 && number <= count && site->executions == 0) {
                list[number].skipped = true;
            }
            continue;
        }
        if (site->instruction->body_count > 0 && s > 0 && seen_before(profile, s)) {
            continue; /* a loop counts once for each test of its condition */
        }
        const double executions = (double)site->executions / warps;
        for (uint32_t r = 0; r < ROWS; r++) {
            list[number].counts[r] +=
                (double)*(const uint64_t *)(const void *)((const char *)&site->counters +
                                                          rows[r].counted) /
                executions;
        }
    }
}

static double explained_of(const lilac_explain_operation *o, uint32_t r) {
    return (double)*(const uint64_t *)(const void *)((const char *)&o->counts + rows[r].explained);
}

/* Are the masks true in all threads? */
static bool is_full(const measured *m, const lilac_explain_operation *o, rule how) {
    if (how == GLOBAL) {
        return m->counts[FULL_LOADS] == explained_of(o, FULL_LOADS) &&
               m->counts[FULL_STORES] == explained_of(o, FULL_STORES);
    }
    return how != COPY || m->counts[FULL_COPIES] == explained_of(o, FULL_COPIES);
}

static bool is_unexact_row(uint32_t r) {
    return strstr(rows[r].name, "sectors") != NULL || strstr(rows[r].name, "wavefronts") != NULL;
}

static void compare(tally *t, const measured *m, const lilac_explain_operation *o, bool exact,
                    const char *kernel, uint32_t number) {
    for (uint32_t r = 0; r < ROWS; r++) {
        const double counted = m->counts[r], explained = explained_of(o, r);
        const bool full = rows[r].rule != MASKED && is_full(m, o, rows[r].rule);
        t->masked += !full;
        if (is_unexact_row(r) && !exact) {
            continue;
        }
        if (full ? fabs(counted - explained) > 1e-6 * explained : counted > explained + 1e-6) {
            if (t->wrong++ < 40) {
                print_message("%s, operation %u %s: %s %g, explained %g\n", kernel, number,
                              lilac_tile_op_info_get(o->op->code)->name, rows[r].name, counted,
                              explained);
            }
        }
    }
    t->compared++;
}

/* ---- kernels ------------------------------------------------------------------------------- */

static void check_program(tally *t, const program *p, const char *name) {
    lilac_context *context = lilac_context_create();
    lilac_explain_options options;
    lilac_explain_options_init(&options);
    options.compile.target = (lilac_target){.arch = lilac_arch_find("sm_90a"),
                                            .num_warps = p->warps,
                                            .num_ctas = p->blocks != 0 ? p->blocks : 1,
                                            .num_stages = p->stages != 0 ? p->stages : 1};
    const char *text = lilac_text_get(&p->text);
    const uint32_t source = lilac_source_add(context, name, text, strlen(text));
    lilac_explanation *e = lilac_explain(context, source, &options);
    lilac_sim_profile profile = {0};
    lilac_sim_counters counters;
    if (e != NULL) {
        uint32_t count;
        const lilac_explain_operation *operations = lilac_explain_operations(e, &count);
        const lilac_simt_kernel *kernel = lilac_explain_compilation(e)->simt->kernels;
        if (program_run(p, context, kernel, &profile, &counters)) {
            measured *list = calloc(count + 1, sizeof *list);
            assert_non_null(list);
            measure(list, count, context, &profile, kernel->num_warps);
            t->kernels++;
            t->operations += count;
            for (uint32_t i = 0; i < count; i++) {
                if (!list[i + 1].skipped) {
                    compare(t, &list[i + 1], &operations[i], lilac_explain_is_exact(e, i + 1), name,
                            i + 1);
                }
            }
            free(list);
        }
    }
    lilac_sim_profile_clear(&profile);
    lilac_explanation_destroy(e);
    lilac_context_destroy(context);
}

static void samples(void **state) {
    (void)state;
    static sample_list list;
    tally t = {0};
    sample_list_open(&list);
    for (uint32_t i = 0; i < list.count; i++) {
        program p;
        if (sample_read(&list, i, &p)) {
            p.stages = 1 + i % 4;
            check_program(&t, &p, list.names[i]);
        }
        program_clear(&p);
    }
    sample_list_close(&list);
    print_message("%u kernels, %u of %u operations compared, %u rows masked, %u wrong\n", t.kernels,
                  t.compared, t.operations, t.masked, t.wrong);
    assert_int_equal(t.wrong, 0);
    assert_true(list.one != NULL || t.kernels > 500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
