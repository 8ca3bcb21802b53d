/* Simplifying a program changes nothing that it prints.
 *
 * Random programs (tile_programs.h) that print many of their values are run before and after
 * lilac_engine_simplify, on the same arguments. What was defined before is the same after. And
 * simplifying twice is simplifying once, with few exceptions: the ranges of what loops carry are those of
 * the program before, so that a further run may know more.
 */
#include "support/tile_programs.h"

typedef struct record {
    uint64_t *hashes; /* of each printed value */
    bool *poisoned;
    size_t count, capacity;
} record;

static void ignore(machine *m, const lilac_tile_value *value) {
    (void)m;
    (void)value;
}

static void note(machine *m, const lilac_tile_value *value) {
    record *r = m->data;
    if (r->count == r->capacity) {
        r->capacity = r->capacity * 2 + 16;
        r->hashes = realloc(r->hashes, r->capacity * sizeof *r->hashes);
        r->poisoned = realloc(r->poisoned, r->capacity * sizeof *r->poisoned);
    }
    r->hashes[r->count] =
        lilac_hash(m->values[value->id], (size_t)elements_of(value->type) * sizeof(int64_t), 1);
    r->poisoned[r->count++] = m->poisoned[value->id];
}

static void count_op(void *data, lilac_tile_op *op) {
    (void)op;
    (*(long *)data)++;
}

static long operations(const lilac_tile_module *module) {
    long count = 0;
    lilac_tile_walk(module->functions->body, count_op, &count);
    return count;
}

#define ATTEMPTS  6
#define MOST_RUNS 3

typedef struct totals {
    long compared, before, after, further;
} totals;

static void run_all(lilac_tile_module *module, int64_t arguments[ATTEMPTS][PARAMETERS],
                    record records[ATTEMPTS], bool finished[ATTEMPTS]) {
    lilac_arena *arena = lilac_arena_create();
    lilac_tile_number(module->functions);
    machine m = {.truncates = true, .seen = ignore, .printed = note};
    machine_init(&m, arena, module->functions);
    for (int i = 0; i < ATTEMPTS; i++) {
        m.data = &records[i];
        finished[i] = machine_run(&m, module->functions, arguments[i]);
    }
    lilac_arena_destroy(arena);
}

static void compare_runs(const generator *g, const record *before, const record *after, totals *t) {
    assert_int_equal(before->count, after->count);
    for (size_t k = 0; k < before->count; k++) {
        if (before->poisoned[k]) {
            continue;
        }
        t->compared++;
        if (after->poisoned[k] || before->hashes[k] != after->hashes[k]) {
            fputs(lilac_text_get(&g->text), stderr); /* too long for a message */
            fail_msg("print %zu differs", k);
        }
    }
}

static void try_program(uint64_t seed, totals *t) {
    generator *g = calloc(1, sizeof *g);
    generate(g, seed, true);
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = read_program(context, g);
    int64_t arguments[ATTEMPTS][PARAMETERS];
    for (int i = 0; i < ATTEMPTS; i++) {
        draw_arguments(g, arguments[i]);
    }
    record before[ATTEMPTS] = {0}, after[ATTEMPTS] = {0};
    bool finished[ATTEMPTS], again[ATTEMPTS], changed;
    run_all(module, arguments, before, finished);
    t->before += operations(module);

    lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 3};
    assert_true(lilac_engine_simplify(module, &target, &changed));
    if (!lilac_tile_verify(module, false)) {
        fail_msg("does not verify: %s\n%s", lilac_diagnostics(context)->message,
                 lilac_text_get(&g->text));
    }
    t->after += operations(module);
    for (int runs = 0; changed; runs++) {
        assert_true(lilac_engine_simplify(module, &target, &changed));
        t->further += changed;
        if (runs == MOST_RUNS) {
            fputs(lilac_text_get(&g->text), stderr);
            fail_msg("not simple after %d runs", runs);
        }
    }
    run_all(module, arguments, after, again);
    for (int i = 0; i < ATTEMPTS; i++) {
        if (finished[i]) {
            assert_true(again[i]);
            compare_runs(g, &before[i], &after[i], t);
        }
        free(before[i].hashes);
        free(before[i].poisoned);
        free(after[i].hashes);
        free(after[i].poisoned);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    lilac_text_clear(&g->text);
    free(g);
}

static void same_results(void **state) {
    (void)state;
    uint64_t programs = programs_to_try(600);
    totals t = {0};
    for (uint64_t seed = 1; seed <= programs; seed++) {
        try_program(seed, &t);
    }
    printf("%ld values compared; %ld operations became %ld; %ld further runs\n", t.compared,
           t.before, t.after, t.further);
    assert_true(t.compared > (long)programs * 20);
    assert_true(t.after < t.before);
    assert_true(t.further < (long)programs / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_results)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
