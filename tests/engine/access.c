/* The accesses of operations: which kind of access, which mask, how many elements of an atomic
 * instruction, and the report of a function. */
#include "support/engine_harness.h"

/* ---- widths of single operations --------------------------------------------------------- */

#define POINTERS(type, pointee, size)                                                              \
    "%r = tt.make_range {end = " size " : i32, start = 0 : i32} : tensor<" size "xi32>\n"          \
    "%s = tt.splat " type " : !tt.ptr<" pointee "> -> tensor<" size "x!tt.ptr<" pointee ">>\n"     \
    "%a = tt.addptr %s, %r : tensor<" size "x!tt.ptr<" pointee ">>, tensor<" size "xi32>\n"
#define MASK(bound, size)                                                                          \
    "%l = tt.splat " bound " : i32 -> tensor<" size "xi32>\n"                                      \
    "%k = arith.cmpi slt, %r, %l : tensor<" size "xi32>\n"
#define LOAD(mask) "%v = tt.load %a" mask " : tensor<64x!tt.ptr<f32>>\n"
#define ATOMIC(kind, element)                                                                      \
    "%v = arith.constant dense<1.0> : tensor<64x" element ">\n"                                    \
    "%t = arith.constant dense<true> : tensor<64xi1>\n"                                            \
    "%o = tt.atomic_rmw " kind ", relaxed, gpu, %a, %v, %t : (tensor<64x!tt.ptr<" element ">>, "   \
    "tensor<64x" element ">, tensor<64xi1>) -> tensor<64x" element ">\n"

static void widths(void **state) {
    (void)state;
    static const struct {
        const char *body, *device;
        lilac_tile_opcode code;
        lilac_plan_global_kind kind;
        uint32_t widest; /* log2 of elements */
    } cases[] = {
        {POINTERS("%p", "f32", "64") LOAD(""), "sm_90a", LILAC_TILE_OP_TT_LOAD, LILAC_PLAN_LOAD, 2},
        {POINTERS("%w", "f32", "64") LOAD(""), "sm_90a", LILAC_TILE_OP_TT_LOAD, LILAC_PLAN_LOAD, 0},
        {POINTERS("%p", "f32", "64") MASK("%n", "64") LOAD(", %k"), "sm_90a", LILAC_TILE_OP_TT_LOAD,
         LILAC_PLAN_LOAD, 2},
        {POINTERS("%p", "f32", "64") MASK("%u", "64") LOAD(", %k"), "sm_90a", LILAC_TILE_OP_TT_LOAD,
         LILAC_PLAN_LOAD, 0},
        {POINTERS("%p", "f32", "64") MASK("%u", "64") LOAD("") "tt.store %a, %v, %k : "
                                                               "tensor<64x!tt.ptr<f32>>\n",
         "sm_90a", LILAC_TILE_OP_TT_STORE, LILAC_PLAN_STORE, 0},
        {POINTERS("%p", "f32", "64") ATOMIC("fadd", "f32"), "sm_90a", LILAC_TILE_OP_TT_ATOMIC_RMW,
         LILAC_PLAN_ATOMIC, 2},
        {POINTERS("%p", "f32", "64") ATOMIC("fadd", "f32"), "sm_80", LILAC_TILE_OP_TT_ATOMIC_RMW,
         LILAC_PLAN_ATOMIC, 0},
        {POINTERS("%p", "f32", "64") ATOMIC("exch", "f32"), "sm_90a", LILAC_TILE_OP_TT_ATOMIC_RMW,
         LILAC_PLAN_ATOMIC, 0},
        {POINTERS("%q", "f16", "64") ATOMIC("fadd", "f16"), "sm_90a", LILAC_TILE_OP_TT_ATOMIC_RMW,
         LILAC_PLAN_ATOMIC, 3},
        {POINTERS("%q", "f16", "64") ATOMIC("fadd", "f16"), "sm_80", LILAC_TILE_OP_TT_ATOMIC_RMW,
         LILAC_PLAN_ATOMIC, 1},
        {POINTERS("%p", "f32", "64") LOAD("") "%o = tt.atomic_cas relaxed, gpu, %a, %v, %v : "
                                              "(tensor<64x!tt.ptr<f32>>, tensor<64xf32>, "
                                              "tensor<64xf32>) -> tensor<64xf32>\n",
         "sm_90a", LILAC_TILE_OP_TT_ATOMIC_CAS, LILAC_PLAN_ATOMIC, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        lilac_plan_global global;
        lilac_axis_analysis analysis;
        lilac_arena *arena = lilac_arena_create();
        program_body(&p, cases[i].body, 4);
        lilac_engine_axis_facts(&analysis, arena, p.module->functions);
        lilac_engine_access(&global, last_op(&p, cases[i].code), &analysis,
                            lilac_arch_find(cases[i].device));
        if (global.kind != cases[i].kind || lilac_plan_global_widest(&global) != cases[i].widest) {
            fail_msg("case %zu: %s of 2^%u elements", i, lilac_plan_global_kind_name(global.kind),
                     lilac_plan_global_widest(&global));
        }
        lilac_arena_destroy(arena);
        program_clear(&p);
    }
}

/* A tile of 16-bit elements, 8 rows of `columns`; rows have 195 elements, so that no vector takes them.
 * Do the lines of a thread's first load serve its others? */
static bool odd_rows_share_lines(uint32_t columns) {
    static const char format[] =
        "%%r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>\n"
        "%%c = tt.make_range {end = %u : i32, start = 0 : i32} : tensor<%uxi32>\n"
        "%%re = tt.expand_dims %%r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>\n"
        "%%ce = tt.expand_dims %%c {axis = 0 : i32} : tensor<%uxi32> -> tensor<1x%uxi32>\n"
        "%%k = arith.constant dense<195> : tensor<8x1xi32>\n"
        "%%rs = arith.muli %%re, %%k : tensor<8x1xi32>\n"
        "%%rb = tt.broadcast %%rs : tensor<8x1xi32> -> tensor<8x%uxi32>\n"
        "%%cb = tt.broadcast %%ce : tensor<1x%uxi32> -> tensor<8x%uxi32>\n"
        "%%o = arith.addi %%rb, %%cb : tensor<8x%uxi32>\n"
        "%%s = tt.splat %%q : !tt.ptr<f16> -> tensor<8x%ux!tt.ptr<f16>>\n"
        "%%x = tt.addptr %%s, %%o : tensor<8x%ux!tt.ptr<f16>>, tensor<8x%uxi32>\n"
        "%%v = tt.load %%x : tensor<8x%ux!tt.ptr<f16>>\n";
    const uint32_t n = columns;
    char body[2048];
    program p;
    lilac_plan_global global;
    lilac_axis_analysis analysis;
    lilac_arena *arena = lilac_arena_create();
    snprintf(body, sizeof body, format, n, n, n, n, n, n, n, n, n, n, n, n);
    program_body(&p, body, 4);
    lilac_engine_axis_facts(&analysis, arena, p.module->functions);
    lilac_engine_access(&global, last_op(&p, LILAC_TILE_OP_TT_LOAD), &analysis, p.target.arch);
    lilac_arena_destroy(arena);
    program_clear(&p);
    assert_int_equal(global.thread_run, columns < 4 ? columns : 4);
    return global.runs_share_lines;
}

/* Where a warp reads two lines of one run of memory, or where a run is within a sector. */
static void runs_of_threads_need_long_runs_of_memory(void **state) {
    (void)state;
    assert_true(odd_rows_share_lines(256));
    assert_true(odd_rows_share_lines(128));
    assert_false(odd_rows_share_lines(64));
    assert_false(odd_rows_share_lines(32));
    assert_true(odd_rows_share_lines(16));
    assert_true(odd_rows_share_lines(2));
}

/* ---- reports ----------------------------------------------------------------------------- */

/* A matrix product with asynchronous copies: 16 bytes per thread, executed once per element. */
static void copies(void **state) {
    (void)state;
    program p;
    size_t length = 0;
    char *text = read_data("corpus/matmul_i8.ttgir", &length);
    uint32_t count = 0, in_loops = 0;
    program_read(&p, "matmul_i8.ttgir", text, length, 4);
    free(text);
    assert_non_null(p.module);
    lilac_arena *arena = lilac_arena_create();
    lilac_access_report report;
    lilac_engine_accesses(&report, arena, p.module->functions, &p.target);
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_plan_global_access *plan = &report.accesses[i].plan;
        if (plan->kind != LILAC_PLAN_COPY) {
            continue;
        }
        /* 128 × 64 bytes */
        assert_int_equal(plan->vector_bits, 4);
        assert_int_equal(plan->counts.instructions, 16);
        assert_int_equal(plan->counts.sectors, 256);
        assert_int_equal(plan->idle_threads, 0);
        count++;
        in_loops += report.accesses[i].loops;
    }
    assert_int_equal(count, count_ops(&p, LILAC_TILE_OP_TTG_ASYNC_COPY_GLOBAL_TO_LOCAL));
    assert_true(count > 2 && in_loops > 0 && in_loops < count);
    lilac_arena_destroy(arena);
    program_clear(&p);
}

/* Before a layout is assigned, only accesses of scalars have plans. */
static void without_layouts(void **state) {
    (void)state;
    program p;
    program_body(&p, POINTERS("%p", "f32", "64") LOAD("") "%x = tt.load %p : !tt.ptr<f32>\n", 4);
    lilac_arena *arena = lilac_arena_create();
    lilac_access_report report;
    lilac_engine_accesses(&report, arena, p.module->functions, &p.target);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.accesses[0].plan.counts.instructions, 4);
    assert_int_equal(report.accesses[0].plan.counts.sectors, 4);
    assert_true(program_assign(&p, false));
    lilac_engine_accesses(&report, arena, p.module->functions, &p.target);
    assert_int_equal(report.count, 2);
    assert_int_equal(report.cycles,
                     report.accesses[0].plan.cycles + report.accesses[1].plan.cycles);
    lilac_arena_destroy(arena);
    program_clear(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(widths), cmocka_unit_test(copies),
                                       cmocka_unit_test(without_layouts),
                                       cmocka_unit_test(runs_of_threads_need_long_runs_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
