/* Axis facts of small programs: the facts that vectorised accesses need.
 * tests/engine/axis_soundness.c tests that no fact is wrong. */
#include "support/access_widths.h"

#define RANGE            "%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
#define SPLAT(to, from)  "%" to " = tt.splat %" from " : i32 -> tensor<64xi32>\n"
#define OP(to, op, a, b) "%" to " = arith." op " %" a ", %" b " : tensor<64xi32>\n"
#define CONST(to, value) "%" to " = arith.constant dense<" value "> : tensor<64xi32>\n"

#define POINTERS(offset)                                                                           \
    "%t0 = tt.splat %ints : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>\n"                             \
    "%t1 = tt.addptr %t0, %" offset " : tensor<64x!tt.ptr<i32>>, tensor<64xi32>\n"
#define LOAD(to, offset) POINTERS(offset) "%" to " = tt.load %t1 : tensor<64x!tt.ptr<i32>>\n"
#define VOLATILE_LOAD(to, offset)                                                                  \
    POINTERS(offset) "%" to " = tt.load %t1 {isVolatile = true} : tensor<64x!tt.ptr<i32>>\n"
#define MASKED_LOAD(to, offset)                                                                    \
    POINTERS(offset) "%" to " = tt.load %t1, %k : tensor<64x!tt.ptr<i32>>\n"

#define BIG (INT64_C(1) << 62)

static const struct {
    const char *body, *value;
    uint32_t dim;
    int64_t contiguity, divisibility, constancy;
} cases[] = {
    /* sources */
    {RANGE, "r", 0, 64, BIG, 1},
    {"%r = tt.make_range {end = 80 : i32, start = 16 : i32} : tensor<64xi32>", "r", 0, 64, 16, 1},
    {CONST("c", "48"), "c", 0, 1, 16, 64},
    {SPLAT("s", "n"), "s", 0, 1, 16, 64},
    {SPLAT("s", "u"), "s", 0, 1, 1, 64},
    /* sums, products */
    {RANGE SPLAT("s", "n") OP("x", "addi", "s", "r"), "x", 0, 64, 16, 1},
    {RANGE SPLAT("s", "n") OP("x", "subi", "r", "s"), "x", 0, 64, 16, 1},
    {RANGE SPLAT("s", "n") OP("x", "subi", "s", "r"), "x", 0, 1, 1, 1},
    {RANGE CONST("c", "4") OP("x", "muli", "r", "c"), "x", 0, 1, 4, 1},
    {RANGE CONST("c", "1") OP("x", "muli", "r", "c"), "x", 0, 64, BIG, 1},
    {SPLAT("s", "n") SPLAT("t", "m") OP("x", "muli", "s", "t"), "x", 0, 1, 128, 64},
    {RANGE CONST("c", "3") OP("x", "shli", "r", "c"), "x", 0, 1, 8, 1},
    /* quotients, remainders */
    {RANGE CONST("c", "8") OP("x", "divsi", "r", "c"), "x", 0, 1, 1, 8},
    {RANGE CONST("c", "8") OP("x", "remsi", "r", "c"), "x", 0, 8, 8, 1},
    {RANGE SPLAT("s", "n") OP("x", "remsi", "r", "s"), "x", 0, 16, 16, 1},
    {RANGE SPLAT("s", "u") OP("x", "remsi", "r", "s"), "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "n") OP("y", "addi", "r", "s") SPLAT("t", "m") OP("x", "remsi", "y", "t"),
     "x", 0, 1, 1, 1}, /* the dividend may be negative */
    {RANGE SPLAT("s", "n") OP("y", "addi", "r", "s") SPLAT("t", "m") OP("x", "remui", "y", "t"),
     "x", 0, 8, 8, 1},
    {RANGE CONST("c", "2") OP("x", "shrsi", "r", "c"), "x", 0, 1, 1, 4},
    /* bits */
    {RANGE CONST("c", "15") OP("x", "andi", "r", "c"), "x", 0, 16, 16, 1},
    {RANGE CONST("c", "-16") OP("x", "andi", "r", "c"), "x", 0, 1, 16, 16},
    {RANGE SPLAT("s", "n") OP("x", "ori", "r", "s"), "x", 0, 16, 16, 1},
    {RANGE SPLAT("s", "n") OP("x", "xori", "s", "r"), "x", 0, 16, 16, 1},
    /* comparisons: which of the four sides is exact */
    {RANGE SPLAT("s", "n") OP("x", "cmpi slt,", "r", "s"), "x", 0, 1, 1, 16},
    {RANGE SPLAT("s", "n") OP("x", "cmpi sge,", "r", "s"), "x", 0, 1, 1, 16},
    {RANGE SPLAT("s", "n") OP("x", "cmpi sle,", "r", "s"), "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "n") OP("x", "cmpi sgt,", "r", "s"), "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "n") OP("x", "cmpi sgt,", "s", "r"), "x", 0, 1, 1, 16},
    {RANGE SPLAT("s", "n") OP("x", "cmpi sle,", "s", "r"), "x", 0, 1, 1, 16},
    {RANGE SPLAT("s", "n") OP("x", "cmpi slt,", "s", "r"), "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "n") OP("x", "cmpi ult,", "r", "s"), "x", 0, 1, 1, 16},
    {RANGE SPLAT("s", "n") OP("x", "cmpi eq,", "r", "s"), "x", 0, 1, 1, 1},
    {RANGE CONST("c", "31") OP("x", "cmpi sle,", "r", "c"), "x", 0, 1, 1, 32},
    {RANGE CONST("c", "31") OP("x", "cmpi slt,", "r", "c"), "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "n") OP("y", "addi", "r", "s") SPLAT("t", "m") OP("x", "cmpi slt,", "y", "t"),
     "x", 0, 1, 1, 8},
    {RANGE SPLAT("s", "u") OP("y", "addi", "r", "s") SPLAT("t", "n") OP("x", "cmpi slt,", "y", "t"),
     "x", 0, 1, 1, 1},
    {RANGE SPLAT("s", "u") OP("y", "addi", "r", "s") OP("x", "cmpi slt,", "r", "y"), "x", 0, 1, 1,
     64},
    /* choices */
    {RANGE SPLAT("s", "n") SPLAT("t", "m") OP("c", "cmpi slt,", "r", "t")
         OP("y", "addi", "r", "s") "%x = arith.select %c, %r, %y : tensor<64xi1>, tensor<64xi32>",
     "x", 0, 8, 8, 1},
    {RANGE SPLAT("s", "n")
         OP("y", "addi", "r", "s") "%x = arith.select %b, %r, %y : tensor<64xi32>",
     "x", 0, 64, 16, 1},
    /* widths */
    {RANGE "%x = arith.extsi %r : tensor<64xi32> to tensor<64xi64>", "x", 0, 64, BIG, 1},
    {"%r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>\n"
     "%x = arith.trunci %r : tensor<512xi32> to tensor<512xi8>",
     "x", 0, 128, 128, 1},
    /* shapes */
    {RANGE "%x = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>", "x", 1,
     64, BIG, 1},
    {RANGE "%e = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
           "%x = tt.broadcast %e : tensor<64x1xi32> -> tensor<64x32xi32>",
     "x", 1, 1, 1, 32},
    {RANGE "%x = tt.reshape %r : tensor<64xi32> -> tensor<4x16xi32>", "x", 1, 16, 16, 1},
    {RANGE "%e = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
           "%x = tt.trans %e {order = array<i32: 1, 0>} : tensor<64x1xi32> -> tensor<1x64xi32>",
     "x", 1, 64, BIG, 1},
    /* pointers count bytes */
    {RANGE "%s = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>\n"
           "%x = tt.addptr %s, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>",
     "x", 0, 64, 16, 1},
    {RANGE "%o = tt.addptr %q, %m : !tt.ptr<f16>, i32\n"
           "%s = tt.splat %o : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>\n"
           "%x = tt.addptr %s, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>",
     "x", 0, 64, 16, 1},
    {RANGE "%o = tt.addptr %q, %u : !tt.ptr<f16>, i32\n"
           "%s = tt.splat %o : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>\n"
           "%x = tt.addptr %s, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>",
     "x", 0, 64, 2, 1},
    /* loads are constant where the pointer, the mask and the replacement are */
    {RANGE CONST("c", "8") OP("y", "divsi", "r", "c") LOAD("x", "y"), "x", 0, 1, 1, 8},
    {RANGE CONST("c", "8") OP("y", "divsi", "r", "c") LOAD("l", "y") SPLAT("s", "n")
         OP("a", "muli", "l", "s") OP("x", "addi", "a", "r"),
     "x", 0, 8, 8, 1},
    {RANGE LOAD("x", "r"), "x", 0, 1, 1, 1},
    {RANGE CONST("c", "8") OP("y", "divsi", "r", "c") SPLAT("t", "m") OP("k", "cmpi sle,", "r", "t")
         MASKED_LOAD("x", "y"),
     "x", 0, 1, 1, 1},
    {RANGE CONST("c", "8") OP("y", "divsi", "r", "c") SPLAT("t", "m") OP("k", "cmpi slt,", "r", "t")
         MASKED_LOAD("x", "y"),
     "x", 0, 1, 1, 8},
    {RANGE CONST("c", "8") OP("y", "divsi", "r", "c") VOLATILE_LOAD("x", "y"), "x", 0, 1, 1, 1},
    /* floats have constancy */
    {RANGE CONST("c", "8")
         OP("y", "divsi", "r", "c") "%f = arith.sitofp %y : tensor<64xi32> to tensor<64xf32>\n"
                                    "%g = arith.addf %f, %f : tensor<64xf32>\n"
                                    "%x = arith.fptosi %g : tensor<64xf32> to tensor<64xi32>",
     "x", 0, 1, 1, 8},
    /* what the program says of itself */
    {SPLAT("s", "u") OP("t", "addi", "s",
                        "s") "%x = arith.addi %t, %s {tt.contiguity = dense<32> : tensor<1xi32>, "
                             "tt.divisibility = dense<32> : tensor<1xi32>} : tensor<64xi32>",
     "x", 0, 32, 32, 64},
    /* loops: what enters, joined with what they yield */
    {RANGE SPLAT("s", "m") "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
                           "%x = scf.for %i = %z to %n step %o iter_args(%a = %r) -> "
                           "(tensor<64xi32>) : i32 {\n" OP("y", "addi", "a",
                                                           "s") "scf.yield %y : tensor<64xi32>\n}",
     "x", 0, 64, 8, 1},
    {RANGE SPLAT("s", "m") "%z = arith.constant 0 : i32\n"
                           "%x = scf.for %i = %z to %u step %n iter_args(%a = %r) -> "
                           "(tensor<64xi32>) : i32 {\n" SPLAT("t", "i")
                               OP("y", "addi", "t", "r") "scf.yield %y : tensor<64xi32>\n}",
     "y", 0, 64, 16, 1},
    {RANGE SPLAT("s", "m") "%x = scf.if %b -> (tensor<64xi32>) {\n" OP(
         "y", "addi", "r",
         "s") "scf.yield %y : tensor<64xi32>\n} else {\nscf.yield %s : tensor<64xi32>\n}",
     "x", 0, 1, 1, 1},
};

static void table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program p;
        program_body(&p, cases[i].body, 4);
        lilac_arena *arena = lilac_arena_create();
        lilac_axis_analysis analysis;
        lilac_engine_axis_facts(&analysis, arena, p.module->functions);
        const lilac_axis_facts *facts =
            lilac_axis_facts_of(&analysis, value_named(&p, cases[i].value));
        uint32_t d = cases[i].dim;
        if (facts->contiguity[d] != cases[i].contiguity ||
            facts->divisibility[d] != cases[i].divisibility ||
            facts->constancy[d] != cases[i].constancy) {
            fail_msg("%s\n%%%s along %u: contiguity %lld divisibility %lld constancy %lld, "
                     "expected %lld %lld %lld",
                     cases[i].body, cases[i].value, d, (long long)facts->contiguity[d],
                     (long long)facts->divisibility[d], (long long)facts->constancy[d],
                     (long long)cases[i].contiguity, (long long)cases[i].divisibility,
                     (long long)cases[i].constancy);
        }
        lilac_arena_destroy(arena);
        program_clear(&p);
    }
}

/* Distances after which elements repeat. */
static void periods(void **state) {
    (void)state;
    static const struct {
        const char *body;
        int64_t period;
    } repeated[] = {
        {RANGE CONST("c", "16") OP("x", "remsi", "r", "c"), 16},
        {RANGE CONST("c", "24") OP("x", "remsi", "r", "c"), BIG},
        {RANGE CONST("c", "5") OP("x", "andi", "r", "c"), 8},
        {RANGE CONST("c", "16") SPLAT("s", "u") OP("y", "addi", "r", "s")
             OP("x", "remsi", "y", "c"),
         BIG}, /* the dividend may be negative */
        {RANGE CONST("c", "16") SPLAT("s", "u") OP("y", "addi", "r", "s")
             OP("x", "remui", "y", "c"),
         16},
        {RANGE CONST("c", "16") CONST("t", "6") OP("y", "muli", "r", "t")
             OP("x", "remui", "y", "c"),
         8},
        {RANGE CONST("c", "16") CONST("t", "32") OP("y", "remui", "r", "c")
             OP("z", "remui", "r", "t") OP("x", "addi", "y", "z"),
         32},
        {RANGE CONST("c", "16") OP("y", "remui", "r", "c") LOAD("x", "y"), 16},
        {RANGE CONST("c", "16") OP("y", "remui", "r", "c") VOLATILE_LOAD("x", "y"), BIG},
        {SPLAT("x", "u"), 1},
    };
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        program p;
        program_body(&p, repeated[i].body, 4);
        lilac_arena *arena = lilac_arena_create();
        lilac_axis_analysis analysis;
        lilac_engine_axis_facts(&analysis, arena, p.module->functions);
        const lilac_axis_facts *facts = lilac_axis_facts_of(&analysis, value_named(&p, "x"));
        if (facts->period[0] != repeated[i].period) {
            fail_msg("%s\n%%x repeats after %lld elements, expected %lld", repeated[i].body,
                     (long long)facts->period[0], (long long)repeated[i].period);
        }
        lilac_arena_destroy(arena);
        program_clear(&p);
    }
}

/* Strides that most neighbours have. They are never among the exact ones. */
static void typical_strides(void **state) {
    (void)state;
    static const struct {
        const char *body;
        bool known;
        int64_t stride;
    } strides[] = {
        {RANGE CONST("c", "49") OP("x", "remui", "r", "c"), true, 1},
        {RANGE CONST("c", "49") CONST("t", "8") OP("y", "remsi", "r", "c")
             OP("x", "muli", "y", "t"),
         true, 8},
        {RANGE CONST("c", "1") OP("x", "remui", "r", "c"), false, 0},
        {RANGE CONST("c", "3") OP("x", "divui", "r", "c"), true, 0},
        {RANGE CONST("c", "3") CONST("t", "6") OP("y", "muli", "r", "t") OP("x", "divsi", "y", "c"),
         true, 2},
        {RANGE CONST("c", "3") CONST("t", "5") OP("y", "muli", "r", "t") OP("x", "divsi", "y", "c"),
         false, 0},
        {RANGE CONST("c", "20") OP("x", "minsi", "r", "c"), true, 1},
        {RANGE CONST("c", "49") SPLAT("s", "u") OP("y", "remui", "r", "c") OP("z", "addi", "y", "s")
             OP("x", "maxsi", "z", "s"),
         true, 1},
        {RANGE CONST("c", "49") CONST("t", "-1") OP("y", "muli", "r", "t")
             OP("z", "remui", "r", "c") OP("x", "addi", "y", "z"),
         true, 0},
        {RANGE SPLAT("s", "u") OP("x", "remui", "r", "s"), true, 1},
        {RANGE CONST("t", "8") SPLAT("s", "u") OP("y", "muli", "r", "t") OP("x", "remsi", "y", "s"),
         true, 8},
        {RANGE SPLAT("s", "u") OP("d", "addi", "r", "s") OP("x", "remui", "r", "d"), false, 0},
        {RANGE SPLAT("s", "u") OP("y", "xori", "r", "s") OP("x", "remui", "y", "s"), false, 0},
    };
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
        program p;
        program_body(&p, strides[i].body, 4);
        lilac_arena *arena = lilac_arena_create();
        lilac_axis_analysis analysis;
        lilac_engine_axis_facts(&analysis, arena, p.module->functions);
        const lilac_axis_facts *facts = lilac_axis_facts_of(&analysis, value_named(&p, "x"));
        if (facts->stride_known != 0 || (facts->stride_typical != 0) != strides[i].known ||
            (strides[i].known && facts->stride[0] != strides[i].stride)) {
            fail_msg("%s\nexact %u, typical %u, stride %lld, expected %lld", strides[i].body,
                     facts->stride_known, facts->stride_typical, (long long)facts->stride[0],
                     (long long)strides[i].stride);
        }
        lilac_arena_destroy(arena);
        program_clear(&p);
    }
}

/* A pointer to a tensor with stride 3 as one to other elements. */
static void strides_of_bits(void **state) {
    (void)state;
    static const struct {
        const char *pointee, *as;
        bool known;
        int64_t stride;
    } pointers[] = {
        {"i1", "i8", true, 3},  {"f32", "i32", true, 3},  {"f32", "i16", true, 6},
        {"i16", "i8", true, 6}, {"i16", "f32", false, 0}, {"i8", "i64", false, 0},
    };
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        program p;
        char body[1024];
        snprintf(body, sizeof body,
                 "%s%%bits = tt.bitcast %%p : !tt.ptr<f32> -> !tt.ptr<%s>\n"
                 "%%s = tt.splat %%bits : !tt.ptr<%s> -> tensor<64x!tt.ptr<%s>>\n"
                 "%%places = tt.addptr %%s, %%at : tensor<64x!tt.ptr<%s>>, tensor<64xi32>\n"
                 "%%x = tt.bitcast %%places : tensor<64x!tt.ptr<%s>> -> tensor<64x!tt.ptr<%s>>\n",
                 RANGE CONST("c", "3") OP("at", "muli", "r", "c"), pointers[i].pointee,
                 pointers[i].pointee, pointers[i].pointee, pointers[i].pointee, pointers[i].pointee,
                 pointers[i].as);
        program_body(&p, body, 4);
        lilac_arena *arena = lilac_arena_create();
        lilac_axis_analysis analysis;
        lilac_engine_axis_facts(&analysis, arena, p.module->functions);
        const lilac_axis_facts *facts = lilac_axis_facts_of(&analysis, value_named(&p, "x"));
        if ((facts->stride_known != 0) != pointers[i].known ||
            (pointers[i].known && facts->stride[0] != pointers[i].stride)) {
            fail_msg("%s as %s: exact %u, stride %lld, expected %lld", pointers[i].pointee,
                     pointers[i].as, facts->stride_known, (long long)facts->stride[0],
                     (long long)pointers[i].stride);
        }
        lilac_arena_destroy(arena);
        program_clear(&p);
    }
}

/* Elements of one access: by pointer, by mask, by what the registers hold. */
static void accesses(void **state) {
    (void)state;
    static const struct {
        const char *pointer, *size;
        uint32_t elements;
    } loads[] = {{"p", "n", 4}, {"p", "m", 4}, {"p", "u", 1}, {"w", "n", 1}};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        char body[2048];
        snprintf(body, sizeof body,
                 "%%r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>\n"
                 "%%s = tt.splat %%%s : i32 -> tensor<1024xi32>\n"
                 "%%k = arith.cmpi slt, %%r, %%s : tensor<1024xi32>\n"
                 "%%t = tt.splat %%%s : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>\n"
                 "%%x = tt.addptr %%t, %%r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>\n"
                 "%%v = tt.load %%x, %%k : tensor<1024x!tt.ptr<f32>>\n"
                 "tt.store %%x, %%v, %%k : tensor<1024x!tt.ptr<f32>>",
                 loads[i].size, loads[i].pointer);
        program p;
        program_body(&p, body, 4);
        assert_true(program_assign(&p, true));
        lilac_simt_module *lowered = lilac_lower(p.module, &p.target);
        assert_non_null(lowered);
        assert_int_equal(access_bytes(lowered, last_op(&p, LILAC_TILE_OP_TT_LOAD)),
                         4 * loads[i].elements);
        assert_int_equal(access_bytes(lowered, last_op(&p, LILAC_TILE_OP_TT_STORE)),
                         4 * loads[i].elements);
        lilac_simt_module_destroy(lowered);
        program_clear(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table), cmocka_unit_test(periods), cmocka_unit_test(typical_strides),
        cmocka_unit_test(strides_of_bits), cmocka_unit_test(accesses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
