/* assert_divisors: where the divisor is positive, the program and what the pass makes of it leave the same
 * bytes, by the reference interpreter; where it is negative, the assertion ends the program. The same
 * holds for a carried number that is not negative, and one that is. Afterwards the axis facts, by ranges that
 * simplify finds, say that the rows of a tile are an aligned run. */
#include "support/random_programs.h"
#include "support/test.h"

#include <lilac/engine.h>

static const char kernel[] =
    "module {\n"
    "  tt.func public @tiles(%out: !tt.ptr<i32>, %group: i32, %size: i32 {tt.divisibility = 16 : "
    "i32}) {\n"
    "    %pid = tt.get_program_id x : i32\n"
    "    %c64 = arith.constant 64 : i32\n"
    "    %row = arith.divsi %pid, %group : i32\n"
    "    %first = arith.muli %row, %c64 : i32\n"
    "    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %firsts = tt.splat %first : i32 -> tensor<64xi32>\n"
    "    %rows = arith.addi %firsts, %range : tensor<64xi32>\n"
    "    %sizes = tt.splat %size : i32 -> tensor<64xi32>\n"
    "    %rest = arith.remsi %rows, %sizes : tensor<64xi32>\n"
    "    %start = arith.muli %pid, %c64 : i32\n"
    "    %at = tt.addptr %out, %start : !tt.ptr<i32>, i32\n"
    "    %p = tt.splat %at : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
    "    %q = tt.addptr %p, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
    "    tt.store %q, %rest : tensor<64x!tt.ptr<i32>>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

/* A program's steps, and their tiles: those of row step / steps. */
static const char steps[] =
    "module {\n"
    "  tt.func public @steps(%out: !tt.ptr<i32>, %part: i32, %steps: i32, %size: i32 "
    "{tt.divisibility = 16 : i32}) {\n"
    "    %pid = tt.get_program_id x : i32\n"
    "    %c1 = arith.constant 1 : i32\n"
    "    %c3 = arith.constant 3 : i32\n"
    "    %c64 = arith.constant 64 : i32\n"
    "    %begin = arith.muli %pid, %part : i32\n"
    "    %end = arith.addi %begin, %c3 : i32\n"
    "    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
    "    %start = arith.muli %pid, %c64 : i32\n"
    "    %at = tt.addptr %out, %start : !tt.ptr<i32>, i32\n"
    "    %p = tt.splat %at : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"
    "    %q = tt.addptr %p, %range : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
    "    %last = scf.while (%s = %begin) : (i32) -> i32 {\n"
    "      %more = arith.cmpi slt, %s, %end : i32\n"
    "      scf.condition(%more) %s : i32\n"
    "    } do {\n"
    "    ^bb0(%step: i32):\n"
    "      %row = arith.divsi %step, %steps : i32\n"
    "      %first = arith.muli %row, %c64 : i32\n"
    "      %firsts = tt.splat %first : i32 -> tensor<64xi32>\n"
    "      %rows = arith.addi %firsts, %range : tensor<64xi32>\n"
    "      %sizes = tt.splat %size : i32 -> tensor<64xi32>\n"
    "      %rest = arith.remsi %rows, %sizes : tensor<64xi32>\n"
    "      tt.store %q, %rest : tensor<64x!tt.ptr<i32>>\n"
    "      %next = arith.addi %step, %c1 : i32\n"
    "      scf.yield %next : i32\n"
    "    }\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

static lilac_tile_module *read_kernel(lilac_context *context, const char *text) {
    lilac_tile_module *module =
        lilac_tile_read(context, lilac_source_add(context, "kernel.ttir", text, strlen(text)));
    assert_non_null(module);
    assert_true(lilac_tile_verify(module, false));
    return module;
}

static lilac_tile_module *asserted(lilac_context *context, const char *text) {
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_tile_module *module = read_kernel(context, text);
    bool changed = false;
    assert_true(lilac_engine_assert_divisors(module, &target, &changed) && changed);
    assert_true(lilac_tile_verify(module, false));
    return module;
}

static void programs_with_positive_divisors_are_equal(void **state) {
    (void)state;
    static const struct {
        int32_t group;
        program_outcome outcome;
        const char *why;
    } cases[] = {
        {1, PROGRAM_SAME, ""},
        {3, PROGRAM_SAME, ""},
        {INT32_MAX, PROGRAM_SAME, ""},
        {-1, PROGRAM_WRONG, "an assertion failed"},
        {-8, PROGRAM_WRONG, "an assertion failed"},
        {INT32_MIN, PROGRAM_WRONG, "an assertion failed"},
        {0, PROGRAM_UNDETERMINED, "undetermined"}, /* the division itself is */
    };
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = asserted(context, kernel);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        assert_true(program_of_text(&p, kernel, strlen(kernel), 4, 1024));
        p.programs = 7;
        p.parameters[1].bits = (uint32_t)cases[i].group;
        p.parameters[2].bits = 80;
        const program_comparison j = program_compare(&p, module);
        if (j.outcome != cases[i].outcome || strcmp(j.why, cases[i].why) != 0) {
            fail_msg("group %d: %s", (int)cases[i].group, j.why);
        }
        program_clear(&p);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void carried_numbers_are_not_negative(void **state) {
    (void)state;
    static const struct {
        int32_t part, steps;
        program_outcome outcome;
        const char *why;
    } cases[] = {
        {1, 1, PROGRAM_SAME, ""},
        {3, 2, PROGRAM_SAME, ""},
        {0, 5, PROGRAM_SAME, ""},
        {-1, 1, PROGRAM_WRONG, "an assertion failed"},
        {-8, 3, PROGRAM_WRONG, "an assertion failed"},
        {3, -2, PROGRAM_WRONG, "an assertion failed"},
    };
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module = asserted(context, steps);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        assert_true(program_of_text(&p, steps, strlen(steps), 4, 1024));
        p.programs = 7;
        p.parameters[1].bits = (uint32_t)cases[i].part;
        p.parameters[2].bits = (uint32_t)cases[i].steps;
        p.parameters[3].bits = 80;
        const program_comparison j = program_compare(&p, module);
        if (j.outcome != cases[i].outcome || strcmp(j.why, cases[i].why) != 0) {
            fail_msg("part %d, steps %d: %s", (int)cases[i].part, (int)cases[i].steps, j.why);
        }
        program_clear(&p);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void find_rest(void *data, lilac_tile_op *op) {
    if (op->code == LILAC_TILE_OP_ARITH_REMSI || op->code == LILAC_TILE_OP_ARITH_REMUI) {
        *(lilac_tile_value **)data = &op->results[0];
    }
}

static int64_t contiguity_of_rows(lilac_tile_module *module) {
    const lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    bool changed;
    assert_true(lilac_engine_simplify(module, &target, &changed));
    lilac_arena *arena = lilac_arena_create();
    lilac_axis_analysis axis;
    lilac_tile_value *rest = NULL;
    lilac_tile_walk(module->functions->body, find_rest, &rest);
    assert_non_null(rest);
    lilac_engine_axis_facts(&axis, arena, module->functions);
    const int64_t result = lilac_axis_facts_of(&axis, rest)->contiguity[0];
    lilac_arena_destroy(arena);
    return result;
}

static void rows_are_runs_afterwards(void **state) {
    (void)state;
    const char *const kernels[] = {kernel, steps};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        lilac_context *context = lilac_context_create();
        lilac_tile_module *before = read_kernel(context, kernels[i]);
        lilac_tile_module *after = asserted(context, kernels[i]);
        assert_int_equal(contiguity_of_rows(before), 1);
        assert_int_equal(contiguity_of_rows(after), 16); /* the divisibility of %size */
        lilac_tile_module_destroy(before);
        lilac_tile_module_destroy(after);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_with_positive_divisors_are_equal),
        cmocka_unit_test(carried_numbers_are_not_negative),
        cmocka_unit_test(rows_are_runs_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
