/* Random programs with matrix products, and the samples with them, give on the simulator what the
 * interpreter says that they mean. As long as the compiler refuses a plain tt.dot, this is a visible
 * skip.
 *
 * LILAC_TEST_LONG=1 tries 5000 programs, LILAC_TEST_SCALE multiplies their number, LILAC_TEST_SEED tries
 * one. A program that fails is reduced and printed. */
#define _POSIX_C_SOURCE 200809L

#include "support/random_programs.h"
#include "support/test.h"

#include <dirent.h>
#include <stdlib.h>

enum { MOST_OPERATIONS = 6, MOST_REASONS = 40 };

/* ---- is tt.dot lowered? ------------------------------------------------------------------- */

static const char plain_dot[] =
    "module {\n"
    "  tt.func public @k(%o: !tt.ptr<f32>) {\n"
    "    %a = arith.constant dense<1.0> : tensor<16x16xf16>\n"
    "    %c = arith.constant dense<0.0> : tensor<16x16xf32>\n"
    "    %d = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>\n"
    "    %e = tt.reshape %d : tensor<16x16xf32> -> tensor<256xf32>\n"
    "    %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"
    "    %p = tt.splat %o : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>\n"
    "    %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>\n"
    "    tt.store %q, %e : tensor<256x!tt.ptr<f32>>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

static bool skipped;

static bool dots_are_refused(void) {
    program p;
    assert_true(program_of_text(&p, plain_dot, strlen(plain_dot), 4, 256));
    program_comparison j = program_check(&p, plain_dot);
    program_clear(&p);
    if (j.outcome == PROGRAM_REFUSED &&
        strncmp(j.why, "unsupported-operation: 'tt.dot'", 31) == 0) {
        print_message("skipped: %s\n", j.why);
        skipped = true;
        return true;
    }
    if (j.outcome != PROGRAM_SAME) {
        fail_msg("a product of constants: %s", j.why);
    }
    return false;
}

/* ---- outcomes ----------------------------------------------------------------------------- */

typedef struct tally {
    uint64_t outcomes[PROGRAM_BROKEN + 1], exact, within, open;
    double worst;
    char reasons[MOST_REASONS][120];
    uint64_t times[MOST_REASONS];
    uint32_t reason_count, complaints;
} tally;

static bool failed(const program_comparison *j) {
    return j->outcome == PROGRAM_WRONG || j->outcome == PROGRAM_BROKEN;
}

static void note_reason(tally *t, const char *why) {
    uint32_t i = 0;
    while (i < t->reason_count && strncmp(t->reasons[i], why, sizeof t->reasons[i] - 1) != 0) {
        i++;
    }
    if (i < MOST_REASONS) {
        snprintf(t->reasons[i], sizeof t->reasons[i], "%.119s", why);
        t->times[i]++;
        t->reason_count += i == t->reason_count;
    }
}

static void complain(const program *p, const program_comparison *j, const char *which) {
    lilac_text small = {0};
    program_minimise(&small, p, lilac_text_get(&p->text));
    program_comparison again = program_check(p, lilac_text_get(&small));
    print_message("%s: %s\n%s, %u warps, %u programs; the smallest part (%s):\n", which, j->why,
                  p->device != NULL ? p->device->name : "sm_90a", p->warps, p->programs, again.why);
    fputs(lilac_text_get(&small), stderr);
    lilac_text_clear(&small);
}

static void try_program(tally *t, const program *p, const char *which) {
    program_comparison j = program_check(p, lilac_text_get(&p->text));
    t->outcomes[j.outcome]++;
    t->exact += j.exact;
    t->within += j.within;
    t->open += j.open;
    t->worst = j.worst > t->worst ? j.worst : t->worst;
    if (j.outcome != PROGRAM_SAME) {
        note_reason(t, j.why);
    }
    if (failed(&j) && t->complaints++ < 3) {
        complain(p, &j, which);
    }
}

static void report(const tally *t, const char *what) {
    print_message("%s: %llu the same, %llu refused, %llu undetermined, %llu wrong; elements: %llu "
                  "exact, %llu within their error (at most %.2f of it), %llu open\n",
                  what, (unsigned long long)t->outcomes[PROGRAM_SAME],
                  (unsigned long long)t->outcomes[PROGRAM_REFUSED],
                  (unsigned long long)t->outcomes[PROGRAM_UNDETERMINED],
                  (unsigned long long)(t->outcomes[PROGRAM_WRONG] + t->outcomes[PROGRAM_BROKEN]),
                  (unsigned long long)t->exact, (unsigned long long)t->within, t->worst,
                  (unsigned long long)t->open);
    for (uint32_t i = 0; i < t->reason_count; i++) {
        print_message("  %4llu  %s\n", (unsigned long long)t->times[i], t->reasons[i]);
    }
    assert_int_equal(t->outcomes[PROGRAM_WRONG] + t->outcomes[PROGRAM_BROKEN], 0);
}

/* ---- random programs ----------------------------------------------------------------------- */

static uint32_t programs_to_try(uint32_t usual) {
    if (getenv("LILAC_TEST_LONG") != NULL) {
        return 5000;
    }
#ifndef __OPTIMIZE__
    usual /= 10;
#endif
    return scaled(usual);
}

/* Operations on the shapes of matrices that most kernels with products have. */
static uint64_t features(void) {
    static const char *const names[] = {"load",    "constant", "splat", "integer", "float",
                                        "compare", "select",   "cast",  "trans",   "reduce",
                                        "if",      "for",      "while", "store",   "reshape"};
    uint64_t result = 0;
    for (uint32_t i = 0; program_feature(i) != NULL; i++) {
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            result |= strcmp(names[k], program_feature(i)) == 0 ? 1ULL << i : 0;
        }
    }
    return result;
}

/* `clusters`: the programs have 2 or 4 blocks. */
static void try_random(bool scaled_dots, bool clusters, uint32_t count, const char *what) {
    static const char *const devices[] = {"sm_80", "sm_89", "sm_90a", "sm_100a"};
    tally t = {0};
    const char *one = getenv("LILAC_TEST_SEED");
    uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one != NULL ? 1 : count); seed++) {
        program p;
        program_choices choices;
        char which[64];
        program_choices_seed(&choices, seed);
        program_generate_dots(&p, &choices, features(), MOST_OPERATIONS, scaled_dots);
        p.device = lilac_arch_find(devices[clusters ? 2 + seed % 2 : seed % 4]);
        p.blocks = !clusters ? 1 : seed / 2 % 2 == 0 ? 2 : 4;
        p.stages = 1 + (uint32_t)(seed / 4 % 4);
        snprintf(which, sizeof which, "seed %llu", (unsigned long long)seed);
        if (one != NULL) {
            fputs(lilac_text_get(&p.text), stderr);
        }
        try_program(&t, &p, which);
        program_clear(&p);
    }
    report(&t, what);
    if (one == NULL) {
        assert_true(2 * t.outcomes[PROGRAM_SAME] > count);
        assert_true(t.exact + t.within > 2 * t.open);
    }
}

static void random_dots(void **state) {
    (void)state;
    if (dots_are_refused()) {
        skip();
    }
    try_random(false, false, programs_to_try(200), "programs");
}

static void random_scaled_dots(void **state) {
    (void)state;
    if (dots_are_refused()) {
        skip();
    }
    try_random(true, false, programs_to_try(100), "programs with scaled dots");
}

static void random_dots_in_clusters(void **state) {
    (void)state;
    if (dots_are_refused()) {
        skip();
    }
    try_random(false, true, programs_to_try(150), "programs of several blocks");
    try_random(true, true, programs_to_try(40), "programs of several blocks with scaled dots");
}

/* ---- samples ----------------------------------------------------------------------------- */

static void samples(void **state) {
    (void)state;
    static const char folder[] = LILAC_TEST_DATA "/ttir";
    tally t = {0};
    uint32_t found = 0;
    if (dots_are_refused()) {
        skip();
    }
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        const char *end = strrchr(entry->d_name, '.');
        size_t length = 0;
        char *text = end != NULL && strcmp(end, ".ttir") == 0 ? read_file(path, &length) : NULL;
        program p;
        if (text != NULL && strstr(text, "tt.dot") != NULL) {
            if (program_of_text(&p, text, length, 4, 1 << 17)) {
                p.data_seed = ++found;
                p.plain_data = true;
                p.stages = 1 + found % 4;
                try_program(&t, &p, entry->d_name);
            }
            program_clear(&p);
        }
        free(text);
    }
    closedir(directory);
    report(&t, "samples");
    assert_true(2 * t.outcomes[PROGRAM_SAME] > found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_dots),
        cmocka_unit_test(random_scaled_dots),
        cmocka_unit_test(random_dots_in_clusters),
        cmocka_unit_test(samples),
    };
    cmocka_set_test_filter(getenv("LILAC_TEST_ONLY"));
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    return failures == 0 && skipped ? 77 : failures;
}
