/* Axis facts and ranges never contradict an execution.
 *
 * Random programs (tile_programs.h) are run on random arguments, and every value that any operation
 * ever has is checked against the facts and the range of that operation. This is what makes a vector access
 * legal. Poisoned values are not checked: the facts promise nothing of them.
 */
#include "support/tile_programs.h"

typedef struct claims {
    lilac_axis_analysis facts;
    lilac_range *ranges;
    const generator *program;
    uint64_t seed;
    long checked, bounded; /* bounded: by more than the type */
} claims;

/* ---- facts against values --------------------------------------------------------------- */

static void complain(const machine *m, const lilac_tile_value *value, const char *what, uint32_t d,
                     int64_t claimed) {
    const claims *c = m->data;
    fail_msg("%%%s is not %s %lld along %u (seed %llu):\n%s", value->name, what, (long long)claimed,
             d, (unsigned long long)c->seed, lilac_text_get(&c->program->text));
}

/* A load through these pointers. */
static lilac_plan_global access_of(const lilac_axis_facts *facts, const lilac_tile_value *value) {
    lilac_plan_global_facts given;
    lilac_plan_global access;
    lilac_axis_access_facts(&given, facts, value->type);
    lilac_plan_global_init(&access, LILAC_PLAN_LOAD, (uint32_t)unit_of(value->type), 0, &given,
                           lilac_arch_find("sm_90a"));
    return access;
}

static void check_line(const machine *m, const lilac_tile_value *value, uint32_t d,
                       const int64_t *first, int64_t stride, int64_t size) {
    const lilac_axis_analysis *all = &((const claims *)m->data)->facts;
    const lilac_axis_facts *facts = lilac_axis_facts_of(all, value);
    int64_t c = facts->contiguity[d], v = facts->divisibility[d], k = facts->constancy[d];
    int64_t unit = unit_of(value->type), vector = 1;
    if (c > size || k > size) {
        complain(m, value, "within its dimension with", d, c > size ? c : k);
    }
    if (lilac_tile_is_pointer(value->type)) {
        vector = INT64_C(1) << access_of(facts, value).vector_bits[d];
    }
    for (int64_t i = 0; i < size; i++) {
        int64_t here = first[i * stride], before = i > 0 ? first[(i - 1) * stride] : 0;
        if (i % c != 0 && here != before + unit) {
            complain(m, value, "contiguous by", d, c);
        }
        if (i % c == 0 && here % v != 0) {
            complain(m, value, "divisible by", d, v);
        }
        if ((facts->stride_known >> d & 1) && i > 0 && here != before + facts->stride[d] * unit) {
            complain(m, value, "ever more by", d, facts->stride[d]);
        }
        if (i % k != 0 && here != before) {
            complain(m, value, "constant over", d, k);
        }
        if (i % vector == 0 && here % (vector * unit) != 0) {
            complain(m, value, "aligned for a vector of", d, vector);
        }
        if (i % vector != 0 && here != before + unit) {
            complain(m, value, "contiguous for a vector of", d, vector);
        }
        if (i >= facts->period[d] && here != first[(i - facts->period[d]) * stride]) {
            complain(m, value, "periodic with", d, facts->period[d]);
        }
        if (facts->constant && here != facts->value) {
            complain(m, value, "the constant", d, facts->value);
        }
        if (facts->non_negative && here < 0) {
            complain(m, value, "at least 0, but", d, here);
        }
    }
}

/* A vector across both dimensions of a tile: neighbours in memory, aligned. */
static void check_across(const machine *m, const lilac_tile_value *value, const int64_t *values,
                         uint32_t dim) {
    const lilac_tile_type *type = value->type;
    const uint32_t next = 1 - dim;
    const int64_t size = type->shape[dim], unit = unit_of(type);
    const int64_t steps[2] = {type->shape[1], 1};
    const lilac_axis_facts *facts = lilac_axis_facts_of(&((const claims *)m->data)->facts, value);
    const lilac_plan_global access = access_of(facts, value);
    int64_t vector = access.next[dim] == next ? INT64_C(1) << access.across_bits[dim] : 1;
    for (int64_t i = 0; vector > 1 && i < size * type->shape[next]; i++) {
        int64_t here = values[i % size * steps[dim] + i / size * steps[next]];
        int64_t j = i - 1, before = i > 0 ? values[j % size * steps[dim] + j / size * steps[next]]
                                          : here - unit;
        if (here != before + unit) {
            complain(m, value, "across both contiguous for a vector of", dim, vector);
        }
        if (i % vector == 0 && here % (vector * unit) != 0) {
            complain(m, value, "across both aligned for a vector of", dim, vector);
        }
    }
}

static void check_range(const machine *m, const lilac_tile_value *value,
                        const int64_t *elements_at) {
    claims *c = m->data;
    const lilac_range range = c->ranges[value->id];
    if (lilac_tile_is_pointer(value->type) || width_of(value->type) == 1) {
        return;
    }
    for (int64_t i = 0; i < elements_of(value->type); i++) {
        if (elements_at[i] < range.low) {
            complain(m, value, "at least", 0, range.low);
        }
        if (elements_at[i] > range.high) {
            complain(m, value, "at most", 0, range.high);
        }
    }
    c->bounded += range.low >= 0;
}

static void check(machine *m, const lilac_tile_value *value) {
    const lilac_tile_type *type = value->type;
    const int64_t *elements_at = m->values[value->id];
    if (m->poisoned[value->id]) {
        return;
    }
    ((claims *)m->data)->checked++;
    check_range(m, value, elements_at);
    if (!lilac_tile_is_tensor(type)) {
        check_line(m, value, 0, elements_at, 1, 1);
    } else if (type->rank == 1) {
        check_line(m, value, 0, elements_at, 1, type->shape[0]);
    } else {
        const lilac_axis_facts *facts =
            lilac_axis_facts_of(&((const claims *)m->data)->facts, value);
        if (facts->origin > 1 && elements_at[0] % facts->origin != 0) {
            complain(m, value, "divisible at its first place by", 0, facts->origin);
        }
        for (uint32_t d = 0; d < 2 && lilac_tile_is_pointer(type); d++) {
            check_across(m, value, elements_at, d);
        }
        for (int64_t c = 0; c < type->shape[1]; c++) {
            check_line(m, value, 0, elements_at + c, type->shape[1], type->shape[0]);
        }
        for (int64_t r = 0; r < type->shape[0]; r++) {
            check_line(m, value, 1, elements_at + r * type->shape[1], 1, type->shape[1]);
        }
    }
}

static void ignore(machine *m, const lilac_tile_value *value) {
    (void)m;
    (void)value;
}

static void facts_hold(void **state) {
    (void)state;
    uint64_t programs = programs_to_try(2000);
    long executed = 0, values = 0, bounded = 0;
    for (uint64_t seed = 1; seed <= programs; seed++) {
        generator *g = calloc(1, sizeof *g);
        generate(g, seed, false);
        lilac_context *context = lilac_context_create();
        lilac_tile_module *module = read_program(context, g);
        lilac_arena *arena = lilac_arena_create();
        claims c = {.program = g, .seed = seed};
        lilac_engine_axis_facts(&c.facts, arena, module->functions);
        c.ranges = lilac_arena_array(arena, lilac_range, c.facts.count);
        lilac_engine_ranges(c.ranges, module->functions);
        machine m = {.seen = check, .printed = ignore, .data = &c};
        machine_init(&m, arena, module->functions);
        for (int attempt = 0; attempt < 8; attempt++) {
            int64_t arguments[PARAMETERS];
            draw_arguments(g, arguments);
            executed += machine_run(&m, module->functions, arguments);
        }
        values += c.checked;
        bounded += c.bounded;
        lilac_arena_destroy(arena);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
        lilac_text_clear(&g->text);
        free(g);
    }
    printf("%ld runs, %ld values checked, %ld not negative\n", executed, values, bounded);
    /* most programs run far enough to say something */
    assert_true(executed > (long)programs && values > (long)programs * 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(facts_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
