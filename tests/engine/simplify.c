/* simplify on small programs: the operations that remain, and their places. */
#include "support/engine_harness.h"

static void simplify(program *p, const char *body) {
    bool changed;
    program_body(p, body, 4);
    assert_true(lilac_engine_simplify(p->module, &p->target, &changed));
    if (!lilac_tile_verify(p->module, false)) {
        fail_with_diagnostics(p->context, "after simplify");
    }
}

static bool is_in_loop(const lilac_tile_op *op) {
    return op->parent->parent->parent != NULL;
}

#define LOOP(counter, inside)                                                                      \
    "scf.for %" counter " = %n to %m step %u : i32 {\n" inside "scf.yield\n}\n"

static void loops(void **state) {
    (void)state;
    program p;
    /* the range goes before the loops and is one; what needs the counter stays */
    simplify(&p, LOOP("i", "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
                           "%s = tt.splat %i : i32 -> tensor<64xi32>\n"
                           "%a = arith.addi %r, %s : tensor<64xi32>\n"
                           "tt.print \"a\" {hex = false, isSigned = array<i32: 1>} : %a : "
                           "tensor<64xi32>\n")
                     LOOP("j", "%r2 = tt.make_range {end = 64 : i32, start = 0 : i32} : "
                               "tensor<64xi32>\n"
                               "tt.print \"r\" {hex = false, isSigned = array<i32: 1>} : %r2 : "
                               "tensor<64xi32>\n"));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_MAKE_RANGE), 1);
    assert_false(is_in_loop(last_op(&p, LILAC_TILE_OP_TT_MAKE_RANGE)));
    assert_true(is_in_loop(last_op(&p, LILAC_TILE_OP_TT_SPLAT)));
    assert_true(is_in_loop(last_op(&p, LILAC_TILE_OP_ARITH_ADDI)));
    program_clear(&p);

    /* out of two loops at once, but not past a branch, nor a division that may be by zero */
    simplify(&p,
             LOOP("i", LOOP("j", "%s = arith.addi %n, %u : i32\n"
                                 "%d = arith.divsi %n, %u : i32\n"
                                 "%e = arith.muli %i, %n : i32\n"
                                 "tt.print \"s\" {hex = false, isSigned = array<i32: 1, 1, 1>} : "
                                 "%s, %d, %e : i32, i32, i32\n"
                                 "scf.if %b {\n%f = arith.subi %n, %u : i32\n"
                                 "tt.print \"f\" {hex = false, isSigned = array<i32: 1>} : %f : "
                                 "i32\n}\n")));
    const lilac_tile_op *divide = last_op(&p, LILAC_TILE_OP_ARITH_DIVSI);
    const lilac_tile_op *product = last_op(&p, LILAC_TILE_OP_ARITH_MULI);
    assert_false(is_in_loop(last_op(&p, LILAC_TILE_OP_ARITH_ADDI)));
    assert_true(is_in_loop(divide));
    assert_true(is_in_loop(divide->parent->parent->parent));
    assert_true(is_in_loop(product));
    assert_false(is_in_loop(product->parent->parent->parent));
    assert_int_equal(last_op(&p, LILAC_TILE_OP_ARITH_SUBI)->parent->parent->parent->code,
                     LILAC_TILE_OP_SCF_IF);
    program_clear(&p);
}

/* Divisions of 64 bits whose operands fit 32, and such as only seem to. */
static void divisions(void **state) {
    (void)state;
    static const struct {
        const char *a, *b, *operation;
        bool narrow;
    } cases[] = {
        {"arith.extsi %pid : i32 to i64", "arith.extsi %u : i32 to i64", "arith.remsi", true},
        {"arith.extsi %pid : i32 to i64", "arith.extsi %u : i32 to i64", "arith.divsi", true},
        {"arith.extsi %u : i32 to i64", "arith.constant 7 : i64", "arith.divsi", true},
        {"arith.extsi %u : i32 to i64", "arith.extsi %pid : i32 to i64", "arith.remsi", true},
        {"arith.extui %u : i32 to i64", "arith.extui %n : i32 to i64", "arith.divui", true},
        {"arith.extui %u : i32 to i64", "arith.constant 2147483647 : i64", "arith.remui", true},
        {"arith.extsi %u : i32 to i64", "arith.extsi %n : i32 to i64", "arith.divsi", false},
        {"arith.extsi %u : i32 to i64", "arith.constant -1 : i64", "arith.divsi", false},
        {"arith.extsi %pid : i32 to i64", "arith.constant 2147483648 : i64", "arith.divsi", false},
        {"arith.extui %u : i32 to i64", "arith.constant 7 : i64", "arith.divsi", true},
        {"arith.extsi %u : i32 to i64", "arith.constant 7 : i64", "arith.divui", false},
        {"arith.extui %u : i32 to i64", "arith.constant 2147483648 : i64", "arith.divui", true},
        {"arith.extui %u : i32 to i64", "arith.constant 4294967296 : i64", "arith.divui", false},
        {"arith.addi %wide, %wide : i64", "arith.constant 7 : i64", "arith.divsi", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        char body[1024];
        snprintf(body, sizeof body,
                 "%%pid = tt.get_program_id x : i32\n%%a = %s\n%%bb = %s\n"
                 "%%d = %s %%a, %%bb : i64\n"
                 "tt.print \"d\" {hex = false, isSigned = array<i32: 1>} : %%d : i64\n",
                 cases[i].a, cases[i].b, cases[i].operation);
        simplify(&p, body);
        const lilac_tile_value *shown = last_op(&p, LILAC_TILE_OP_TT_PRINT)->operands[0].value;
        bool extended = shown->op->code == LILAC_TILE_OP_ARITH_EXTSI ||
                        shown->op->code == LILAC_TILE_OP_ARITH_EXTUI;
        if (extended != cases[i].narrow) {
            fail_msg("%s of %s, %s", cases[i].operation, cases[i].a, cases[i].b);
        }
        if (extended) {
            assert_int_equal(lilac_tile_element_bits(shown->op->operands[0].value->type), 32);
        }
        program_clear(&p);
    }
    /* of tensors, a quotient's remainder, and what both share is merged */
    program p;
    simplify(&p, "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
                 "%w64 = arith.extsi %r : tensor<64xi32> to tensor<64xi64>\n"
                 "%c = arith.constant dense<12> : tensor<64xi64>\n"
                 "%us = tt.splat %u : i32 -> tensor<64xi32>\n"
                 "%uw = arith.extsi %us : tensor<64xi32> to tensor<64xi64>\n"
                 "%q1 = arith.divsi %w64, %c : tensor<64xi64>\n"
                 "%q2 = arith.divsi %w64, %c : tensor<64xi64>\n"
                 "%s2 = arith.remsi %q1, %uw : tensor<64xi64>\n"
                 "%t2 = arith.addi %s2, %q2 : tensor<64xi64>\n"
                 "tt.print \"t\" {hex = false, isSigned = array<i32: 1>} : %t2 : "
                 "tensor<64xi64>\n");
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_DIVUI), 1); /* nothing is negative */
    const lilac_tile_op *quotient = last_op(&p, LILAC_TILE_OP_ARITH_DIVUI);
    const lilac_tile_op *rest = last_op(&p, LILAC_TILE_OP_ARITH_REMSI);
    assert_int_equal(lilac_tile_element_bits(quotient->results[0].type), 32);
    assert_int_equal(lilac_tile_element_bits(rest->results[0].type), 32);
    program_clear(&p);
}

/* counter < bound is decided exactly where it has one value in all iterations of the loop. */
static void counters(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 400; seed++) {
        const int low = (int)(seed % 7) - 3, step = 1 + (int)(seed / 7 % 6);
        const int high = low + 1 + (int)(seed * 5 % 23), bound = low + (int)(seed * 11 % 29) - 2;
        const int last = low + (high - 1 - low) / step * step;
        program p;
        char body[1024];
        snprintf(body, sizeof body,
                 "%%low = arith.constant %d : i32\n%%high = arith.constant %d : i32\n"
                 "%%step = arith.constant %d : i32\n%%bound = arith.constant %d : i32\n"
                 "scf.for %%i = %%low to %%high step %%step : i32 {\n"
                 "%%c = arith.cmpi slt, %%i, %%bound : i32\n"
                 "tt.print \"c\" {hex = false, isSigned = array<i32: 1>} : %%c : i1\n"
                 "scf.yield\n}\n",
                 low, high, step, bound);
        simplify(&p, body);
        const lilac_tile_value *shown = last_op(&p, LILAC_TILE_OP_TT_PRINT)->operands[0].value;
        const bool open = low < bound && bound <= last;
        if (open != (shown->op->code == LILAC_TILE_OP_ARITH_CMPI)) {
            fail_msg("%d to %d step %d, bound %d", low, high, step, bound);
        }
        int64_t answer = 0;
        assert_true(open || lilac_tile_constant(shown, &answer));
        assert_true(open || (answer != 0) == (last < bound));
        program_clear(&p);
    }
}

/* What conditions and carried values say of a comparison, the last one that is printed. */
static void conditions(void **state) {
    (void)state;
#define SHOW(name) "tt.print \"c\" {hex = false, isSigned = array<i32: 1>} : %" name " : i1\n"
#define CHECK(name, value, low)                                                                    \
    "%" name " = arith.cmpi sge, %" value ", %" low " : i32\n" SHOW(name)
#define WHILE(first, predicate, bound, body)                                                       \
    "%r = scf.while (%x = %" first ") : (i32) -> i32 {\n"                                          \
    "%c = arith.cmpi " predicate ", %x, %" bound " : i32\n"                                        \
    "scf.condition(%c) %x : i32\n} do {\n^bb0(%y: i32):\n" body "scf.yield %z : i32\n}\n"
    static const struct {
        const char *body;
        char found; /* true, false, open */
    } cases[] = {
        /* a branch, its other branch, and what follows */
        {"%g = arith.cmpi sgt, %n, %c2 : i32\nscf.if %g {\n" CHECK("k", "n", "c3") "}\n", 't'},
        {"%g = arith.cmpi sgt, %n, %c2 : i32\nscf.if %g {\n" CHECK("k", "n", "c4") "}\n", 'o'},
        {"%g = arith.cmpi sgt, %n, %c2 : i32\nscf.if %g {\n} else {\n" CHECK("k", "n", "c3") "}\n",
         'f'},
        {"%g = arith.cmpi sgt, %n, %c2 : i32\nscf.if %g {\n}\n" CHECK("k", "n", "c2"), 'o'},
        {"%g = arith.cmpi ne, %n, %c4 : i32\nscf.if %g {\n} else {\n" CHECK("k", "n", "c4") "}\n",
         't'},
        {"%g = arith.cmpi sgt, %n, %c2 : i32\n%h = arith.andi %g, %b : i1\nscf.if %h {\n" CHECK(
             "k", "n", "c3") "}\n",
         't'},
        {"%g = arith.cmpi sgt, %n, %c2 : i32\n%h = arith.ori %g, %b : i1\nscf.if %h {\n" CHECK(
             "k", "n", "c3") "}\n",
         'o'},
        {"%g = arith.cmpi slt, %n, %c2 : i32\n%h = arith.ori %g, %b : i1\nscf.if %h {\n} else {"
         "\n" CHECK("k", "n", "c2") "}\n",
         't'},
        /* an assertion, up to the end of its block */
        {"%g = arith.cmpi sge, %n, %c2 : i32\ncf.assert %g, \"\"\n" CHECK("k", "n", "c2"), 't'},
        {"scf.if %b {\n%g = arith.cmpi sge, %n, %c2 : i32\ncf.assert %g, \"\"\n" CHECK("k", "n",
                                                                                       "c2") "}\n",
         't'},
        {"scf.if %b {\n%g = arith.cmpi sge, %n, %c2 : i32\ncf.assert %g, \"\"\n}\n" CHECK("k", "n",
                                                                                          "c2"),
         'o'},
        /* steps below a bound do not wrap; others do; nor does a step of 2 from below the largest */
        {WHILE("c2", "slt", "n", CHECK("k", "y", "c2") "%z = arith.addi %y, %c1 : i32\n"), 't'},
        {WHILE("c2", "ne", "n", CHECK("k", "y", "c2") "%z = arith.addi %y, %c1 : i32\n"), 'o'},
        {WHILE("c2", "slt", "n", CHECK("k", "y", "c2") "%z = arith.addi %y, %c2 : i32\n"), 'o'},
        {WHILE("c2", "slt", "n", "%z = arith.addi %y, %c1 : i32\n") CHECK("k", "r", "c2"), 't'},
        {WHILE("c2", "slt", "n", CHECK("k", "n", "c3") "%z = arith.addi %y, %c1 : i32\n"), 't'},
        {WHILE("c2", "slt", "n", "%z = arith.addi %y, %c1 : i32\n") CHECK("k", "n", "c3"), 'o'},
        {WHILE("c2", "slt", "c4", "%z = arith.addi %y, %c1 : i32\n") CHECK("k", "r", "c4"), 't'},
        {WHILE("n", "sge", "c2", CHECK("k", "y", "c2") "%z = arith.subi %y, %u : i32\n"), 't'},
        /* an operation that leaves the loop loses what the loop's condition says */
        {WHILE("n", "slt", "u",
               "%g = arith.cmpi sge, %m, %c2 : i32\ncf.assert %g, \"\"\n"
               "%z = arith.shrsi %m, %c1 : i32\n") "%e = arith.shrsi %m, %c1 : i32\n" CHECK("k",
                                                                                            "e",
                                                                                            "c1"),
         'o'},
        /* scf.for carries a remainder, and a number that may wrap */
        {"%r = scf.for %i = %n to %m step %u iter_args(%x = %c1) -> (i32) : i32 {\n"
         "%y = arith.addi %x, %c1 : i32\n%z = arith.remsi %y, %c4 : i32\nscf.yield %z : i32\n}\n"
         "%s = arith.subi %c3, %r : i32\n" CHECK("k", "s", "c0"),
         't'},
        {"%r = scf.for %i = %n to %m step %u iter_args(%x = %c1) -> (i32) : i32 {\n"
         "%y = arith.addi %x, %c1 : i32\nscf.yield %y : i32\n}\n" CHECK("k", "r", "c0"),
         'o'},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        char body[2048];
        snprintf(body, sizeof body,
                 "%%c0 = arith.constant 0 : i32\n%%c1 = arith.constant 1 : i32\n"
                 "%%c2 = arith.constant 2 : i32\n%%c3 = arith.constant 3 : i32\n"
                 "%%c4 = arith.constant 4 : i32\n%s",
                 cases[i].body);
        simplify(&p, body);
        const lilac_tile_value *shown = last_op(&p, LILAC_TILE_OP_TT_PRINT)->operands[0].value;
        int64_t answer = 0;
        const char found = lilac_tile_constant(shown, &answer) ? (answer != 0 ? 't' : 'f') : 'o';
        if (found != cases[i].found) {
            fail_msg("%c, not %c:\n%s", found, cases[i].found, cases[i].body);
        }
        program_clear(&p);
    }
}

static void folding(void **state) {
    (void)state;
    static const struct {
        const char *expression;
        int64_t value;
    } cases[] = {
        {"%x = arith.addi %c7, %c3 : i32", 10},
        {"%x = arith.divsi %cm7, %c3 : i32", -2},
        {"%x = arith.floordivsi %cm7, %c3 : i32", -3},
        {"%x = arith.ceildivsi %c7, %c3 : i32", 3},
        {"%x = arith.remsi %cm7, %c3 : i32", -1},
        {"%x = arith.divui %cm7, %c3 : i32", 1431655763},
        {"%x = arith.shrsi %cm7, %c3 : i32", -1},
        {"%x = arith.shrui %cm7, %c3 : i32", 536870911},
        {"%x = arith.minui %cm7, %c3 : i32", 3},
        {"%y = arith.trunci %c200 : i32 to i8\n%x = arith.extsi %y : i8 to i32", -56},
        {"%y = arith.trunci %c200 : i32 to i8\n%x = arith.extui %y : i8 to i32", 200},
        {"%y = arith.cmpi ult, %cm7, %c3 : i32\n%x = arith.select %y, %c7, %c3 : i32", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "%%c7 = arith.constant 7 : i32\n%%c3 = arith.constant 3 : i32\n"
                 "%%cm7 = arith.constant -7 : i32\n%%c200 = arith.constant 200 : i32\n%s\n"
                 "tt.print \"x\" {hex = false, isSigned = array<i32: 1>} : %%x : i32",
                 cases[i].expression);
        program p;
        simplify(&p, body);
        const lilac_tile_value *printed = last_op(&p, LILAC_TILE_OP_TT_PRINT)->operands[0].value;
        assert_int_equal(printed->op->code, LILAC_TILE_OP_ARITH_CONSTANT);
        int64_t value = lilac_tile_find_integer(&printed->op->attributes, "value", 12345);
        if (value != cases[i].value) {
            fail_msg("%s: %lld", cases[i].expression, (long long)value);
        }
        /* all but that constant, the print and the return is gone */
        assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_CONSTANT), 1);
        program_clear(&p);
    }
}

/* Undefined arithmetic is left alone. */
static void no_folding(void **state) {
    (void)state;
    program p;
    simplify(&p, "%z = arith.constant 0 : i32\n%c = arith.constant 40 : i32\n"
                 "%x = arith.divsi %c, %z : i32\n%y = arith.shli %c, %c : i32\n"
                 "tt.print \"x\" {hex = false, isSigned = array<i32: 1, 1>} : %x, %y : i32, i32");
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_DIVSI), 1);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_SHLI), 1);
    program_clear(&p);
}

static void merging(void **state) {
    (void)state;
    program p;
    simplify(&p,
             "%x = arith.addi %n, %u : i32\n%y = arith.addi %u, %n : i32\n"
             "%z = arith.subi %n, %u : i32\n%w2 = arith.subi %u, %n : i32\n"
             "%v = tt.load %p : !tt.ptr<f32>\n%v2 = tt.load %p : !tt.ptr<f32>\n"
             "tt.store %p, %v : !tt.ptr<f32>\ntt.store %p, %v2 : !tt.ptr<f32>\n"
             "tt.print \"x\" {hex = false, isSigned = array<i32: 1, 1, 1, 1>} : %x, %y, %z, %w2 : "
             "i32, i32, i32, i32");
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_ADDI), 1); /* it commutes */
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_SUBI), 2);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TT_LOAD), 2); /* memory may have changed */
    program_clear(&p);
}

/* Nothing of one branch serves in the other, and nothing of a reduction's region comes from
 * outside. */
static void scopes(void **state) {
    (void)state;
    program p;
    simplify(&p, "scf.if %b {\n%x = arith.addi %n, %u : i32\n"
                 "tt.print \"x\" {hex = false, isSigned = array<i32: 1>} : %x : i32\n} else {\n"
                 "%y = arith.addi %n, %u : i32\n"
                 "tt.print \"y\" {hex = false, isSigned = array<i32: 1>} : %y : i32\n}\n"
                 "%c = arith.constant 1.0 : f32\n%t = tt.splat %c : f32 -> tensor<64xf32>\n"
                 "%s = \"tt.reduce\"(%t) <{axis = 0 : i32}> ({\n^bb0(%a0: f32, %a1: f32):\n"
                 "%k = arith.constant 1.0 : f32\n%a2 = arith.addf %a0, %a1 : f32\n"
                 "%a3 = arith.mulf %a2, %k : f32\ntt.reduce.return %a3 : f32\n}) : "
                 "(tensor<64xf32>) -> f32\ntt.store %p, %s : !tt.ptr<f32>");
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_ADDI), 2);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_ARITH_CONSTANT), 2);
    program_clear(&p);
}

#define ROWS                                                                                       \
    "tensor<64xf32, #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], "           \
    "warp = [[0], [0]], block = []}>>"
#define OTHER                                                                                      \
    "tensor<64xf32, #ttg.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], "           \
    "warp = [[0], [0]], block = []}>>"
#define CONVERT(to, from, how, a, b) "%" to " = ttg.convert_layout %" from how " : " a " -> " b "\n"
#define KEEP(name, type)                                                                           \
    "tt.print \"k\" {hex = false, isSigned = array<i32: 1>} : %" name " : " type "\n"

/* A conversion to the same type goes, unless somebody said how it is to be done; one there and one
 * back both stay; equal ones are one. */
static void conversions(void **state) {
    (void)state;
    program p;
    simplify(&p, "%x = arith.constant dense<1.0> : " ROWS "\n" CONVERT("y", "x", "", ROWS, ROWS)
                     CONVERT("z", "y", "", ROWS, OTHER) CONVERT("a", "z", "", OTHER, ROWS)
                         CONVERT("z2", "x", "", ROWS, OTHER)
                             CONVERT("s", "x", " {lilac.movement = \"shared\"}", ROWS, OTHER)
                                 KEEP("a", ROWS) KEEP("z2", OTHER) KEEP("s", OTHER));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 3);
    program_clear(&p);
    simplify(&p, "%x = arith.constant dense<1.0> : " ROWS "\n" CONVERT(
                     "y", "x", " {lilac.movement = \"unswizzled\"}", ROWS, ROWS) KEEP("y", ROWS));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 1);
    program_clear(&p);
    /* what a loop carries is converted in the loop */
    simplify(&p,
             "%x = arith.constant dense<1.0> : " ROWS "\n"
             "%r = scf.for %i = %n to %m step %u iter_args(%c = %x) -> (" ROWS
             ") : i32 {\n" CONVERT("y", "c", "", ROWS, OTHER)
                 CONVERT("z", "y", "", OTHER, ROWS) "scf.yield %z : " ROWS "\n}\n" KEEP("r", ROWS));
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT), 2);
    assert_true(is_in_loop(last_op(&p, LILAC_TILE_OP_TTG_CONVERT_LAYOUT)));
    program_clear(&p);
}

/* Nothing that allocates, reads or writes memory is merged or moved; views of it may be. */
static void memory_stays(void **state) {
    (void)state;
#define MEMORY                                                                                     \
    "!ttg.memdesc<64xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, "             \
    "order = [0]}>, #ttg.shared_memory, mutable>"
    program p;
    simplify(&p,
             "%a = ttg.local_alloc : () -> " MEMORY "\n%second = ttg.local_alloc : () -> " MEMORY
             "\n%v = ttg.memdesc_reinterpret %a : " MEMORY " -> " MEMORY
             "\n%view = ttg.memdesc_reinterpret %a : " MEMORY " -> " MEMORY
             "\nscf.for %i = %n to %m step %u : i32 {\n"
             "%x = ttg.local_load %v : " MEMORY " -> " ROWS "\n"
             "ttg.local_store %x, %second : " ROWS " -> " MEMORY "\n"
             "%y = ttg.local_load %view : " MEMORY " -> " ROWS "\n"
             "ttg.local_store %y, %a : " ROWS " -> " MEMORY "\nscf.yield\n}\n");
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_LOCAL_ALLOC), 2);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_LOCAL_LOAD), 2);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_LOCAL_STORE), 2);
    assert_int_equal(count_ops(&p, LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET), 1);
    assert_true(is_in_loop(last_op(&p, LILAC_TILE_OP_TTG_LOCAL_LOAD)));
    program_clear(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops),       cmocka_unit_test(divisions), cmocka_unit_test(counters),
        cmocka_unit_test(conditions),  cmocka_unit_test(folding),   cmocka_unit_test(no_folding),
        cmocka_unit_test(merging),     cmocka_unit_test(scopes),    cmocka_unit_test(conversions),
        cmocka_unit_test(memory_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
