/* The local search: a value that a loop carries changes its layout outside the loop, if that is
 * cheaper. */
#include "support/engine_harness.h"

/* Pointers %TO [64, COLUMNS] of %p, row stride %n, plus the scalar pointer %FROM. */
#define RANGES                                                                                     \
    "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"                      \
    "%re = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"              \
    "%ns = tt.splat %n : i32 -> tensor<64x1xi32>\n"                                                \
    "%rn = arith.muli %re, %ns : tensor<64x1xi32>\n"                                               \
    "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n%f4 = arith.constant 4 : i32\n"     \
    "%init = arith.constant dense<0.0> : tensor<64xf32>\n"
#define TILE(to, from, columns)                                                                    \
    "%" to "c = tt.make_range {end = " columns " : i32, start = 0 : i32} : tensor<" columns        \
    "xi32>\n"                                                                                      \
    "%" to "e = tt.expand_dims %" to "c {axis = 0 : i32} : tensor<" columns                        \
    "xi32> -> tensor<1x" columns "xi32>\n"                                                         \
    "%" to "b = tt.broadcast %" to "e : tensor<1x" columns "xi32> -> tensor<64x" columns "xi32>\n" \
    "%" to "n = tt.broadcast %rn : tensor<64x1xi32> -> tensor<64x" columns "xi32>\n"               \
    "%" to "o = arith.addi %" to "b, %" to "n : tensor<64x" columns "xi32>\n"                      \
    "%" to "s = tt.splat %" from " : !tt.ptr<f32> -> tensor<64x" columns "x!tt.ptr<f32>>\n"        \
    "%" to " = tt.addptr %" to "s, %" to "o : tensor<64x" columns                                  \
    "x!tt.ptr<f32>>, tensor<64x" columns "xi32>\n"
#define MOST(to, from, axis, columns)                                                              \
    "%" to " = \"tt.reduce\"(%" from ") <{axis = " axis " : i32}> ({\n^bb0(%a0: f32, %a1: f32):\n" \
    "%a2 = arith.maxnumf %a0, %a1 : f32\ntt.reduce.return %a2 : f32\n}) : "                        \
    "(tensor<64x" columns "xf32>) -> tensor<64xf32>\n"
/* The next value of the carried %mx: with the greatest of each line of a tile at %at. */
#define STEP_BY(update, axis, columns)                                                             \
    TILE("x", "at", columns)                                                                       \
    "%v = tt.load %x : tensor<64x" columns                                                         \
    "x!tt.ptr<f32>>\n" MOST("g", "v", axis, columns) "%next = arith." update                       \
                                                     " %mx, %g : tensor<64xf32>\n"
#define STEP(axis, columns) STEP_BY("maxnumf", axis, columns)
/* A larger tensor less %left's elements by rows. */
#define BIG(left)                                                                                  \
    TILE("y", "p", "512")                                                                          \
    "%w2 = tt.load %y : tensor<64x512x!tt.ptr<f32>>\n"                                             \
    "%le = tt.expand_dims %" left " {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>\n"       \
    "%lb = tt.broadcast %le : tensor<64x1xf32> -> tensor<64x512xf32>\n"                            \
    "%d = arith.subf %w2, %lb : tensor<64x512xf32>\n"                                              \
    "tt.store %y, %d : tensor<64x512x!tt.ptr<f32>>\n"
/* A loop whose iteration %k begins at a word, or at a vector. */
#define FOR_WORDS(update, limit, axis, columns)                                                    \
    "%l = scf.for %k = %z to %" limit " step %o iter_args(%mx = %init) -> (tensor<64xf32>) : i32 " \
    "{\n%at = tt.addptr %p, %k : !tt.ptr<f32>, i32\n" STEP_BY(                                     \
        update, axis, columns) "scf.yield %next : tensor<64xf32>\n}\n"
#define FOR(limit, axis, columns)                                                                  \
    "%l = scf.for %k = %z to %" limit " step %o iter_args(%mx = %init) -> (tensor<64xf32>) : i32 " \
    "{\n%k4 = arith.muli %k, %f4 : i32\n%at = tt.addptr %p, %k4 : !tt.ptr<f32>, i32\n" STEP(       \
        axis, columns) "scf.yield %next : tensor<64xf32>\n}\n"

/* The larger tensor first, and the loop begins with the greatest of its rows. */
#define FIRST                                                                                      \
    TILE("y", "p", "512")                                                                          \
    "%w2 = tt.load %y : tensor<64x512x!tt.ptr<f32>>\n" MOST("first", "w2", "1", "512")
#define AFTER                                                                                      \
    "%l = scf.for %k = %z to %u step %o iter_args(%mx = %first) -> (tensor<64xf32>) : i32 {\n"     \
    "%at = tt.addptr %p, %k : !tt.ptr<f32>, i32\n" STEP(                                           \
        "0", "64") "scf.yield %next : tensor<64xf32>\n}\n"                                         \
                   "%qs = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"                 \
                   "tt.store %qs, %l : tensor<64x!tt.ptr<f32>>\n"

static const struct {
    const char *what, *body;
    uint32_t count; /* the number of conversions */
    uint32_t loops; /* the greatest depth of loops that has a conversion */
} programs[] = {
    {"greatest of rows, then a larger tensor", RANGES FOR("u", "1", "32") BIG("l"), 1, 0},
    {"greatest of columns", RANGES FOR("u", "0", "64") BIG("l"), 1, 0},
    {"in a while loop",
     RANGES "%l:2 = scf.while (%k0 = %u, %m0 = %init) : (i32, tensor<64xf32>) -> (i32, "
            "tensor<64xf32>) {\n%go = arith.cmpi sgt, %k0, %z : i32\n"
            "scf.condition(%go) %k0, %m0 : i32, tensor<64xf32>\n} do {\n"
            "^bb0(%k: i32, %mx: tensor<64xf32>):\n%k1 = arith.subi %k, %o : i32\n"
            "%at = tt.addptr %p, %k : !tt.ptr<f32>, i32\n" STEP(
                "0", "64") "scf.yield %k1, %next : i32, tensor<64xf32>\n}\n" BIG("l#1"),
     1, 0},
    {"in a loop in a loop: once each time round the outer one",
     RANGES "scf.for %j = %z to %u step %o : i32 {\n" FOR("n", "1", "32") BIG("l") "}\n", 1, 1},
    {"what comes of the larger tensor goes into the loop", RANGES FIRST AFTER, 1, 0},
};

static void carried(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        program p;
        lilac_conversion_report report;
        program_body(&p, programs[i].body, 4);
        assert_true(program_assign(&p, true));
        lilac_engine_conversions(&report, p.module->arena, p.module->functions, &p.target);
        uint32_t inside = 0;
        for (uint32_t k = 0; k < report.count; k++) {
            inside += report.conversions[k].loops > programs[i].loops;
        }
        if (report.count != programs[i].count || inside > 0) {
            lilac_text text = {0};
            lilac_tile_print(&text, p.module, false);
            fail_msg("%s: %u conversions, %u of them too far inside\n%s", programs[i].what,
                     report.count, inside, lilac_text_get(&text));
        }
        program_clear(&p);
    }
}

/* A transpose in each round of the outer loop has to move data there, and only there. */
static void transposed_each_time(void **state) {
    (void)state;
    program p;
    lilac_conversion_report report;
    program_body(
        &p,
        RANGES TILE("x", "p", "64") "%f = tt.load %x : tensor<64x64x!tt.ptr<f32>>\n"
                                    "%l = scf.for %j = %z to %u step %o iter_args(%a = %f) -> "
                                    "(tensor<64x64xf32>) : i32 {\n"
                                    "%i = scf.for %k = %z to %n step %o iter_args(%b2 = %a) -> "
                                    "(tensor<64x64xf32>) : i32 {\n"
                                    "%at = tt.addptr %p, %k : !tt.ptr<f32>, i32\n" TILE(
                                        "y", "at",
                                        "64") "%v = tt.load %y : tensor<64x64x!tt.ptr<f32>>\n"
                                              "%c2 = arith.addf %b2, %v : tensor<64x64xf32>\n"
                                              "scf.yield %c2 : tensor<64x64xf32>\n}\n"
                                              "%t = tt.trans %i {order = array<i32: 1, 0>} : "
                                              "tensor<64x64xf32> -> tensor<64x64xf32>\n"
                                              "scf.yield %t : tensor<64x64xf32>\n}\n"
                                              "tt.store %x, %l : tensor<64x64x!tt.ptr<f32>>\n",
        4);
    assert_true(program_assign(&p, true));
    lilac_engine_conversions(&report, p.module->arena, p.module->functions, &p.target);
    assert_int_equal(report.count, 1);
    assert_int_equal(report.conversions[0].loops, 1);
    program_clear(&p);
}

/* Rows of single words: lanes along them read whole lines, and exchange what they read before the
 * greatest of each row is taken (H200: 53 us where lanes in four rows took 72). If the carried value is the
 * greatest of all, the exchange is behind the loop (split_reductions), and the loop needs no
 * conversion. */
static void lines_before_exchanges(void **state) {
    (void)state;
    program p;
    lilac_conversion_report report;
    program_body(&p, RANGES FOR_WORDS("addf", "u", "1", "32") BIG("l"), 4);
    assert_true(program_assign(&p, true));
    lilac_engine_conversions(&report, p.module->arena, p.module->functions, &p.target);
    assert_int_equal(report.count, 2);
    const lilac_layout *loaded = report.conversions[0].from;
    assert_int_equal(report.conversions[0].source->code, LILAC_TILE_OP_TT_LOAD);
    for (uint32_t bit = 0; bit < 5; bit++) {
        uint64_t column = lilac_layout_column(loaded, "lane", bit);
        assert_int_equal(lilac_layout_coordinate(loaded, column, 1), 1 << bit);
    }
    assert_int_equal(report.conversions[0].loops, 1);
    assert_int_equal(report.conversions[0].kind, LILAC_PLAN_SHUFFLES);
    program_clear(&p);

    program_body(&p, RANGES FOR_WORDS("maxnumf", "u", "1", "32") BIG("l"), 4);
    assert_true(program_assign(&p, true));
    lilac_engine_conversions(&report, p.module->arena, p.module->functions, &p.target);
    for (uint32_t i = 0; i < report.count; i++) {
        assert_int_equal(report.conversions[i].loops, 0);
    }
    program_clear(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(carried),
                                       cmocka_unit_test(transposed_each_time),
                                       cmocka_unit_test(lines_before_exchanges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
