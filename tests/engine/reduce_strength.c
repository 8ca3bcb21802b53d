/* reduce_strength: tensors of pointers and offsets that a loop advances become scalars. The
 * tests check the values that the loop still carries, equal results, wrapping included, and the
 * cases that must not change. */
#include "support/lower_harness.h"

enum { LINE = 256, PLACES = 4096 };

#define BEGIN                                                                                      \
    "module {\n"                                                                                   \
    "  tt.func public @k(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}, "                          \
    "%y: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32, %d: i32) {\n"                         \
    "%zero = arith.constant 0 : i32\n%one = arith.constant 1 : i32\n%two = arith.constant 2 : "    \
    "i32\n%none = arith.constant dense<0> : tensor<256xi32>\n"                                     \
    "%i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"                    \
    "%xs = tt.splat %x : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"                               \
    "%p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"                         \
    "%ys = tt.splat %y : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>\n"                               \
    "%q = tt.addptr %ys, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>\n"                         \
    "%ds = tt.splat %d : i32 -> tensor<256xi32>\n"
#define END      "tt.return\n  }\n}\n"
#define POINTERS "tensor<256x!tt.ptr<i32>>"
#define NUMBERS  "tensor<256xi32>"
#define MOVE(to, from, step)                                                                       \
    "%" to " = tt.addptr %" from ", %" step " : " POINTERS ", " NUMBERS "\n"
#define ADD(to, a, b)    "%" to " = arith.addi %" a ", %" b " : " NUMBERS "\n"
#define LOAD(to, from)   "%" to " = tt.load %" from " : " POINTERS "\n"
#define STORE(at, value) "tt.store %" at ", %" value " : " POINTERS "\n"
#define SPREAD                                                                                     \
    "%ns = tt.splat %n : i32 -> " NUMBERS "\n%in = arith.muli %i, %ns : " NUMBERS                  \
    "\n" MOVE("far", "xs", "in")
#define FOR(arguments)                                                                             \
    "%l:2 = scf.for %k = %zero to %n step %one iter_args(" arguments ") -> (" POINTERS             \
    ", " NUMBERS ") : i32 {\n"
#define YIELD(at, sum) "scf.yield %" at ", %" sum " : " POINTERS ", " NUMBERS "\n}\n"

/* x[i] = i; n = 4, d = 100: what y[i] must be. */
static int64_t four_lines(uint32_t i) { /* lines at 0, 100, 200, 300 */
    return 4 * (int64_t)i + 600;
}

static int64_t spread(uint32_t i) { /* at 4 i, and so on */
    return 16 * (int64_t)i + 600;
}

static int64_t spread_and_last(uint32_t i) {
    return spread(i) + 4 * (int64_t)i + 400;
}

static int64_t and_the_last(uint32_t i) { /* and what the pointers are at in the end */
    return four_lines(i) + i + 400;
}

static int64_t changing(uint32_t i) { /* steps 0, 1, 2: lines at 0, 0, 1, 3 */
    return 4 * (int64_t)i + 4;
}

static int64_t back(uint32_t i) { /* from 1000: 1000, 900, 800, 700 */
    return 4 * (int64_t)i + 3400;
}

static int64_t
nested(uint32_t i) { /* twice 100 in each of four rounds, then one back: 0 100, 199 299 … */
    int64_t sum = 0, at = 0;
    for (int round = 0; round < 4; round++, at--) {
        for (int k = 0; k < 2; k++, at += 100) {
            sum += i + at;
        }
    }
    return sum;
}

static int64_t branches(uint32_t i) { /* 100 when k is even, 2 when it is odd: 0 100 102 202 */
    return 4 * (int64_t)i + 404;
}

static int64_t wrapped(uint32_t i) {
    return (int32_t)((uint32_t)i + 2147483647u + 4u * 100u);
}

static int64_t rows(uint32_t i) { /* [16, 16] at row * 100 + column, four times 16 further */
    return 4 * (int64_t)(i / 16 * 100 + i % 16) + 96;
}

#define WHILE                                                                                      \
    "%l:3 = scf.while (%k0 = %zero, %at0 = %p, %sum0 = %none) : (i32, " POINTERS ", " NUMBERS      \
    ") -> (i32, " POINTERS ", " NUMBERS ") {\n%go = arith.cmpi slt, %k0, %n : i32\n"               \
    "scf.condition(%go) %k0, %at0, %sum0 : i32, " POINTERS ", " NUMBERS "\n} do {\n"               \
    "^bb0(%k: i32, %at: " POINTERS ", %sum: " NUMBERS "):\n"                                       \
    "%k1 = arith.addi %k, %one : i32\n"

static const struct {
    const char *what, *body;
    int64_t (*expected)(uint32_t i);
    uint32_t tensors; /* of pointers or offsets, carried in all loops afterwards */
} programs[] = {
    {"pointers at distances that are not known",
     SPREAD FOR("%at = %far, %sum = %none") LOAD("v", "at") ADD("s", "sum", "v")
         MOVE("next", "at", "ds") YIELD("next", "s") STORE("q", "l#1"),
     spread, 0},
    {"used after the loop, at distances that are not known",
     SPREAD FOR("%at = %far, %sum = %none") LOAD("v", "at") ADD("s", "sum", "v")
         MOVE("next", "at", "ds") YIELD("next", "s") LOAD("w", "l#0") ADD("t", "l#1", "w")
             STORE("q", "t"),
     spread_and_last, 0},
    /* these are one register of a thread already */
    {"a loop",
     FOR("%at = %p, %sum = %none") LOAD("v", "at") ADD("s", "sum", "v") MOVE("next", "at", "ds")
         YIELD("next", "s") STORE("q", "l#1"),
     four_lines, 1},
    {"used after the loop",
     FOR("%at = %p, %sum = %none") LOAD("v", "at") ADD("s", "sum", "v") MOVE("next", "at", "ds")
         YIELD("next", "s") LOAD("w", "l#0") ADD("t", "l#1", "w") STORE("q", "t"),
     and_the_last, 1},
    {"moved before it is used",
     "%m = arith.constant dense<-100> : " NUMBERS "\n" MOVE("before", "p", "m")
         FOR("%at = %before, %sum = %none") MOVE("next", "at", "ds") LOAD("v", "next")
             ADD("s", "sum", "v") YIELD("next", "s") STORE("q", "l#1"),
     four_lines, 1},
    {"steps that change", /* by the loop's counter */
     FOR("%at = %p, %sum = %none") LOAD("v", "at")
         ADD("s", "sum", "v") "%ks = tt.splat %k : i32 -> " NUMBERS "\n" MOVE("next", "at", "ks")
             YIELD("next", "s") STORE("q", "l#1"),
     changing, 1},
    {"backwards, in steps that are a sum of uniform tensors",
     "%m = arith.constant dense<-300> : " NUMBERS "\n%a = arith.constant dense<1000> : " NUMBERS
     "\n" MOVE("far", "p", "a") FOR("%at = %far, %sum = %none") LOAD("v", "at") ADD("s", "sum", "v")
         ADD("d2", "ds", "ds") ADD("d3", "d2", "m") MOVE("next", "at", "d3") YIELD("next", "s")
             STORE("q", "l#1"),
     back, 0},
    {"steps of 64 bits",
     "%w = arith.extsi %ds : " NUMBERS " to tensor<256xi64>\n" FOR("%at = %p, %sum = %none") LOAD(
         "v", "at") ADD("s", "sum", "v") "%next = tt.addptr %at, %w : " POINTERS
                                         ", tensor<256xi64>\n" YIELD("next", "s") STORE("q", "l#1"),
     four_lines, 0},
    {"a while loop",
     WHILE LOAD("v", "at") ADD("s", "sum", "v")
         MOVE("next", "at", "ds") "scf.yield %k1, %next, %s : i32, " POINTERS ", " NUMBERS
                                  "\n}\n" LOAD("w", "l#1") ADD("t", "l#2", "w") STORE("q", "t"),
     and_the_last, 0},
    {"a loop in a loop",
     FOR("%at = %p, %sum = %none") "%in:2 = scf.for %j = %zero to %two step %one iter_args(%at2 = "
                                   "%at, %sum2 = %sum) -> "
                                   "(" POINTERS ", " NUMBERS ") : i32 {\n" LOAD("v", "at2")
                                       ADD("s", "sum2", "v") MOVE("next", "at2", "ds") YIELD(
                                           "next", "s") "%m = arith.constant dense<-1> : " NUMBERS
                                                        "\n" MOVE("less", "in#0", "m")
                                                            YIELD("less", "in#1") STORE("q", "l#1"),
     nested, 0},
    {"a branch says how far",
     FOR("%at = %p, %sum = %none") LOAD("v", "at")
         ADD("s", "sum",
             "v") "%odd = arith.andi %k, %one : i32\n%is = arith.cmpi ne, %odd, %zero : i32\n"
                  "%next = scf.if %is -> (" POINTERS ") {\n%m = arith.constant dense<2> : " NUMBERS
                  "\n" MOVE("a", "at", "m") "scf.yield %a : " POINTERS "\n} else {\n" MOVE(
                      "b", "at", "ds") "scf.yield %b : " POINTERS "\n}\n" YIELD("next", "s")
                      STORE("q", "l#1"),
     branches, 0},
    {"offsets wrap as they did",
     "%far = arith.constant dense<2147483647> : " NUMBERS "\n" ADD("o", "i", "far")
         FOR("%at = %p, %sum = %o") ADD("s", "sum", "ds") YIELD("at", "s") STORE("q", "l#1"),
     wrapped, 0},
    {"rows and columns",
     "%r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>\n"
     "%re = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>\n"
     "%ce = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>\n"
     "%de = tt.splat %d : i32 -> tensor<16x1xi32>\n"
     "%rd = arith.muli %re, %de : tensor<16x1xi32>\n"
     "%x1 = tt.splat %x : !tt.ptr<i32> -> tensor<16x1x!tt.ptr<i32>>\n"
     "%xr = tt.addptr %x1, %rd : tensor<16x1x!tt.ptr<i32>>, tensor<16x1xi32>\n"
     "%xb = tt.broadcast %xr : tensor<16x1x!tt.ptr<i32>> -> tensor<16x16x!tt.ptr<i32>>\n"
     "%cb = tt.broadcast %ce : tensor<1x16xi32> -> tensor<16x16xi32>\n"
     "%p2 = tt.addptr %xb, %cb : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>\n"
     "%z2 = arith.constant dense<0> : tensor<16x16xi32>\n"
     "%l:2 = scf.for %k = %zero to %n step %one iter_args(%at = %p2, %sum = %z2) -> "
     "(tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>) : i32 {\n"
     "%v = tt.load %at : tensor<16x16x!tt.ptr<i32>>\n"
     "%s = arith.addi %sum, %v : tensor<16x16xi32>\n"
     "%m = arith.constant dense<16> : tensor<16x16xi32>\n"
     "%next = tt.addptr %at, %m : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>\n"
     "scf.yield %next, %s : tensor<16x16x!tt.ptr<i32>>, tensor<16x16xi32>\n}\n"
     "%flat = tt.reshape %l#1 : tensor<16x16xi32> -> tensor<256xi32>\n" STORE("q", "flat"),
     rows, 0},
    {"steps that differ between elements stay", /* by i: at i, 2 i, 3 i, 4 i */
     FOR("%at = %xs, %sum = %none") MOVE("next", "at", "i") LOAD("v", "next") ADD("s", "sum", "v")
         YIELD("next", "s") STORE("q", "l#1"),
     NULL, 1},
    {"offsets that were loaded",
     LOAD("e", "p") MOVE("at0", "xs", "e") FOR("%at = %at0, %sum = %none") LOAD("v", "at")
         ADD("s", "sum", "v") MOVE("next", "at", "ds") YIELD("next", "s") STORE("q", "l#1"),
     four_lines, 0},
    {"pointers that come of no other stay",
     "%e = tt.ptr_to_int %p : " POINTERS " -> tensor<256xi64>\n"
     "%at0 = tt.int_to_ptr %e : tensor<256xi64> -> " POINTERS "\n" FOR("%at = %at0, %sum = %none")
         LOAD("v", "at") ADD("s", "sum", "v") MOVE("next", "at", "ds") YIELD("next", "s")
             STORE("q", "l#1"),
     four_lines, 1},
};

typedef struct carried {
    uint32_t tensors;
} carried;

static void count_carried(void *data, lilac_tile_op *op) {
    carried *c = data;
    bool loop = op->code == LILAC_TILE_OP_SCF_FOR || op->code == LILAC_TILE_OP_SCF_WHILE;
    for (uint32_t i = 0; i < op->result_count && loop; i++) {
        c->tensors +=
            lilac_tile_is_tensor(op->results[i].type) && lilac_tile_is_pointer(op->results[i].type);
    }
}

static void loops(void **state) {
    (void)state;
    static int32_t x[PLACES], y[LINE];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        lilac_text text;
        harness h;
        carried c = {0};
        lilac_text_init(&text);
        lilac_text_printf(&text, "%s%s%s", BEGIN, programs[i].body, END);
        harness_open(&h, lilac_text_get(&text), 4, true);
        lilac_tile_walk(h.tile->functions->body, count_carried, &c);
        if (c.tensors != programs[i].tensors) {
            lilac_text tile = {0};
            lilac_tile_print(&tile, h.tile, false);
            fail_msg("%s: %u tensors of pointers carried\n%s", programs[i].what, c.tensors,
                     lilac_text_get(&tile));
        }
        for (int32_t k = 0; k < PLACES; k++) {
            x[k] = k;
        }
        memset(y, 0, sizeof y);
        const buffer buffers[] = {{x, sizeof x}, {y, sizeof y}};
        const int64_t scalars[] = {4, 100};
        harness_run(&h, 1, buffers, 2, scalars, 2);
        for (uint32_t k = 0; k < LINE; k++) {
            int64_t expected = programs[i].expected != NULL ? programs[i].expected(k) : 10 * k;
            if (y[k] != expected) {
                fail_msg("%s: element %u is %d and not %lld", programs[i].what, k, y[k],
                         (long long)expected);
            }
        }
        harness_close(&h);
        lilac_text_clear(&text);
    }
}

/* What a program promises of a pointer is not lost: such a loop stays as it is. */
static void promises_stay(void **state) {
    (void)state;
    static const char body[] = BEGIN FOR("%at = %p, %sum = %none") LOAD("v", "at") ADD(
        "s", "sum",
        "v") "%next = tt.addptr %at, %ds {tt.divisibility = dense<16> : tensor<1xi32>} : " POINTERS
             ", " NUMBERS "\n" YIELD("next", "s") STORE("q", "l#1") END;
    harness h;
    carried c = {0};
    harness_open(&h, body, 4, true);
    lilac_tile_walk(h.tile->functions->body, count_carried, &c);
    assert_int_equal(c.tensors, 1);
    harness_close(&h);
}

/* In a loop with products, pointers whose vectors a copy to shared memory can have stay tensors: those of A, with
 * rows of K elements, where K is known to be a multiple of 16. */
static void products_keep_pointers_of_copies(void **state) {
    (void)state;
#define A "tensor<64x32x!tt.ptr<f16>>"
#define O "tensor<64x32xi32>"
    static const char format[] =
        "module {\n  tt.func public @k(%%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %%K: i32 "
        "{tt.divisibility = %d : i32}, %%c: !tt.ptr<f32>) {\n"
        "%%zero = arith.constant 0 : i32\n%%step = arith.constant 32 : i32\n"
        "%%none = arith.constant dense<0.0> : tensor<64x64xf32>\n"
        "%%b = arith.constant dense<1.0> : tensor<32x64xf16>\n"
        "%%m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>\n"
        "%%k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>\n"
        "%%mc = tt.expand_dims %%m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>\n"
        "%%kr = tt.expand_dims %%k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>\n"
        "%%Ks = tt.splat %%K : i32 -> tensor<64x1xi32>\n"
        "%%rows = arith.muli %%mc, %%Ks : tensor<64x1xi32>\n"
        "%%rb = tt.broadcast %%rows : tensor<64x1xi32> -> " O "\n"
        "%%kb = tt.broadcast %%kr : tensor<1x32xi32> -> " O "\n"
        "%%as = tt.splat %%a : !tt.ptr<f16> -> " A "\n"
        "%%ar = tt.addptr %%as, %%rb : " A ", " O "\n%%ak = tt.addptr %%ar, %%kb : " A ", " O "\n"
        "%%by = tt.splat %%step : i32 -> " O "\n"
        "%%l:2 = scf.for %%i = %%zero to %%K step %%step iter_args(%%at = %%ak, %%d = %%none) -> "
        "(" A ", tensor<64x64xf32>) : i32 {\n%%x = tt.load %%at : " A "\n"
        "%%e = tt.dot %%x, %%b, %%d : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>\n"
        "%%next = tt.addptr %%at, %%by : " A ", " O "\n"
        "scf.yield %%next, %%e : " A ", tensor<64x64xf32>\n}\n"
        "%%cs = tt.splat %%c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>\n"
        "tt.store %%cs, %%l#1 : tensor<64x64x!tt.ptr<f32>>\ntt.return\n  }\n}\n";
#undef A
#undef O
    static const struct {
        uint32_t divisibility, warps, tensors;
    } cases[] = {{16, 4, 1}, {2, 4, 1}, {1, 4, 0}, {1, 16, 1} /* 4 pointers of a thread */};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        lilac_text text;
        lilac_text_init(&text);
        lilac_text_printf(&text, format, (int)cases[i].divisibility);
        lilac_tile_module *module = lilac_tile_read(
            context, lilac_source_add(context, "k", lilac_text_get(&text), text.length));
        assert_non_null(module);
        const lilac_target target = {.arch = lilac_arch_find("sm_90a"),
                                     .num_warps = cases[i].warps,
                                     .num_ctas = 1,
                                     .num_stages = 3};
        carried c = {0};
        bool changed = false;
        assert_true(lilac_engine_reduce_strength(module, &target, &changed));
        assert_true(lilac_tile_verify(module, false));
        lilac_tile_walk(module->functions->body, count_carried, &c);
        assert_int_equal(c.tensors, cases[i].tensors);
        lilac_tile_module_destroy(module);
        lilac_text_clear(&text);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loops), cmocka_unit_test(promises_stay),
                                       cmocka_unit_test(products_keep_pointers_of_copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
