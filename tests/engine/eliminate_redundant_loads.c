/* Loads that only one of the threads with copies executes, loads that all execute, and equal
 * results in both cases. On the simulator a thread that skips a load reads zeros. */
#include "support/lower_harness.h"

enum { ELEMENTS = 256 };

/* 256 f16 in 4 warps: vectors of 8 keep one warp busy where nothing is computed. %v is loaded of
 * %x; %i: where; %q: where to. */
#define BEGIN                                                                                      \
    "module {\n"                                                                                   \
    "  tt.func public @k(%x: !tt.ptr<i16> {tt.divisibility = 16 : i32}, "                          \
    "%y: !tt.ptr<i16> {tt.divisibility = 16 : i32}, %n: i32, %c: i1) {\n"                          \
    "    %zero = arith.constant 0 : i32\n    %one = arith.constant 1 : i32\n"                      \
    "    %z = arith.constant dense<0> : tensor<256xi16>\n"                                         \
    "    %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>\n"                \
    "    %xs = tt.splat %x : !tt.ptr<i16> -> tensor<256x!tt.ptr<i16>>\n"                           \
    "    %p = tt.addptr %xs, %i : tensor<256x!tt.ptr<i16>>, tensor<256xi32>\n"                     \
    "    %ys = tt.splat %y : !tt.ptr<i16> -> tensor<256x!tt.ptr<i16>>\n"                           \
    "    %q = tt.addptr %ys, %i : tensor<256x!tt.ptr<i16>>, tensor<256xi32>\n"
#define LOAD         "    %v = tt.load %p : tensor<256x!tt.ptr<i16>>\n"
#define STORE(value) "    tt.store %q, " value " : tensor<256x!tt.ptr<i16>>\n"
#define END          "    tt.return\n  }\n}\n"
#define SUM(to, from)                                                                              \
    to " = \"tt.reduce\"(" from ") <{axis = 0 : i32}> ({\n^bb0(%a: i16, %b: i16):\n"               \
       "%s = arith.addi %a, %b : i16\ntt.reduce.return %s : i16\n}) : (tensor<256xi16>) -> i16\n"

/* x[i] = 3 i + 1, n = 5, c true: what must be in y, or -1 where nothing is stored. */
static int64_t copied(uint32_t i) {
    return 3 * i + 1;
}

static int64_t five_times(uint32_t i) {
    return 5 * copied(i);
}

static int64_t below_100(uint32_t i) {
    return i < 100 ? copied(i) : -1;
}

static int64_t permuted(uint32_t i) {
    return copied((3 * i + 1) & 255);
}

static int64_t summed(uint32_t i) {
    (void)i;
    return (int16_t)(3 * 255 * 128 + 256);
}

static int64_t sum_and_copy(uint32_t i) {
    return i == 0 ? summed(i) : copied(i);
}

static const struct {
    const char *what, *body;
    int64_t (*expected)(uint32_t i);
    uint32_t loads, marked;
} programs[] = {
    {"a copy", LOAD STORE("%v"), copied, 1, 1},
    {"under a mask",
     "    %h = arith.constant dense<100> : tensor<256xi32>\n"
     "    %m = arith.cmpi slt, %i, %h : tensor<256xi32>\n"
     "    %v = tt.load %p, %m, %z : tensor<256x!tt.ptr<i16>>\n"
     "    tt.store %q, %v, %m : tensor<256x!tt.ptr<i16>>\n",
     below_100, 1, 1},
    {"a sum in a loop, stored after it",
     "    %l = scf.for %k = %zero to %n step %one iter_args(%s = %z) -> (tensor<256xi16>) : i32 {\n"
     "  " LOAD "      %t = arith.addi %s, %v : tensor<256xi16>\n"
     "      scf.yield %t : tensor<256xi16>\n    }\n" STORE("%l"),
     five_times, 1, 1},
    {"a while loop that carries what is stored",
     LOAD "    %l:2 = scf.while (%k = %n, %s = %z) : (i32, tensor<256xi16>) -> (i32, "
          "tensor<256xi16>) {\n"
          "      %go = arith.cmpi sgt, %k, %zero : i32\n"
          "      scf.condition(%go) %k, %s : i32, tensor<256xi16>\n    } do {\n"
          "    ^bb0(%k1: i32, %s1: tensor<256xi16>):\n"
          "      %k2 = arith.subi %k1, %one : i32\n"
          "      %s2 = arith.addi %s1, %v : tensor<256xi16>\n"
          "      scf.yield %k2, %s2 : i32, tensor<256xi16>\n    }\n" STORE("%l#1"),
     five_times, 1, 1},
    {"a branch",
     LOAD "    %r = scf.if %c -> (tensor<256xi16>) {\n      scf.yield %v : tensor<256xi16>\n"
          "    } else {\n      scf.yield %z : tensor<256xi16>\n    }\n" STORE("%r"),
     copied, 1, 1},
    {"a sum that all threads need", LOAD SUM("%t", "%v") "    tt.store %y, %t : !tt.ptr<i16>\n",
     NULL, 1, 0},
    {"stored and summed", LOAD STORE("%v") SUM("%t", "%v") "    tt.store %y, %t : !tt.ptr<i16>\n",
     sum_and_copy, 1, 0},
};

static void fill(int16_t *x, int16_t *y) {
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        x[i] = (int16_t)(3 * i + 1);
        y[i] = -1;
    }
}

static bool widen(const lilac_layout *from, lilac_layout *to) {
    static const uint64_t lanes[] = {8, 16, 32, 64, 128}, warps[] = {0, 0}, each[] = {1, 2, 4};
    lilac_layout_init(to);
    return lilac_layout_add_out(to, from->out[0].name, 8, NULL) &&
           lilac_layout_add_in(to, "register", 3, each, NULL) &&
           lilac_layout_add_in(to, "lane", 5, lanes, NULL) &&
           lilac_layout_add_in(to, "warp", 2, warps, NULL) &&
           lilac_layout_add_in(to, "block", 0, NULL, NULL);
}

/* Vectors of 8 in one warp, and copies in the three others, whatever the engine would choose. */
static void give(void *data, lilac_tile_op *op) {
    lilac_tile_module *module = data;
    lilac_layout *layout = lilac_arena_new(module->arena, lilac_layout);
    lilac_tile_value *values[16];
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        values[count++] = &op->results[i];
    }
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (uint32_t i = 0; op->regions[r]->first && i < op->regions[r]->first->argument_count;
             i++) {
            values[count++] = op->regions[r]->first->arguments[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const lilac_tile_type *type = values[i]->type;
        if (!lilac_tile_is_tensor(type)) {
            continue;
        }
        assert_true(widen(type->layout, layout));
        values[i]->type = lilac_tile_with_layout(module, type, layout);
        const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "value");
        if (given != NULL && given->type != NULL && given->type->kind == LILAC_TILE_TENSOR) {
            lilac_tile_attribute changed = *given;
            changed.type = values[i]->type;
            lilac_tile_set_attribute(module, &op->attributes, &changed);
        }
    }
}

static void copies_everywhere(lilac_tile_module *module, const void *data) {
    bool changed;
    (void)data;
    lilac_target target = {
        .arch = lilac_arch_find("sm_90a"), .num_warps = 4, .num_ctas = 1, .num_stages = 1};
    lilac_tile_walk(module->functions->body, give, module);
    assert_true(lilac_tile_verify(module, true));
    assert_true(lilac_engine_eliminate_redundant_loads(module, &target, &changed));
    assert_true(lilac_tile_verify(module, true));
}

static void loads(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        lilac_text text, tile;
        harness h;
        int16_t x[ELEMENTS], y[ELEMENTS];
        lilac_text_init(&text);
        lilac_text_init(&tile);
        lilac_text_printf(&text, "%s%s%s", BEGIN, programs[i].body, END);
        if (!harness_try_edited(&h, lilac_text_get(&text), 4, true, NULL, copies_everywhere,
                                NULL)) {
            print_diagnostics(h.context);
            fail_msg("%s: refused", programs[i].what);
        }
        lilac_tile_print(&tile, h.tile, false);
        assert_int_equal(count_text(lilac_text_get(&tile), "tt.load"), programs[i].loads);
        if (count_text(lilac_text_get(&tile), "lilac.idle = 96") != programs[i].marked) {
            fail_msg("%s:\n%s", programs[i].what, lilac_text_get(&tile));
        }
        fill(x, y);
        const buffer buffers[] = {{x, sizeof x}, {y, sizeof y}};
        const int64_t scalars[] = {5, 1};
        harness_run(&h, 1, buffers, 2, scalars, 2);
        if (programs[i].expected == NULL) {
            assert_int_equal(y[0], (int16_t)summed(0));
        }
        for (uint32_t k = 0; k < ELEMENTS && programs[i].expected != NULL; k++) {
            if (y[k] != (int16_t)programs[i].expected(k)) {
                fail_msg("%s: element %u is %d", programs[i].what, k, y[k]);
            }
        }
        harness_close(&h);
        lilac_text_clear(&tile);
        lilac_text_clear(&text);
    }
}

/* The address of the second load comes of the first, so it is only right where that is done. */
static void addresses(void **state) {
    (void)state;
    static const char body[] =
        BEGIN "    %w = tt.load %p : tensor<256x!tt.ptr<i16>>\n"
              "    %low = arith.constant dense<255> : tensor<256xi16>\n"
              "    %f = arith.andi %w, %low : tensor<256xi16>\n"
              "    %e = arith.extui %f : tensor<256xi16> to tensor<256xi32>\n"
              "    %p2 = tt.addptr %xs, %e : tensor<256x!tt.ptr<i16>>, tensor<256xi32>\n"
              "    %v = tt.load %p2 : tensor<256x!tt.ptr<i16>>\n" STORE("%v") END;
    harness h;
    lilac_text tile;
    int16_t x[ELEMENTS], y[ELEMENTS];
    assert_true(harness_try_edited(&h, body, 4, true, NULL, copies_everywhere, NULL));
    lilac_text_init(&tile);
    lilac_tile_print(&tile, h.tile, false);
    assert_int_equal(count_text(lilac_text_get(&tile), "lilac.idle = 96"), 2);
    fill(x, y);
    const buffer buffers[] = {{x, sizeof x}, {y, sizeof y}};
    const int64_t scalars[] = {5, 1};
    harness_run(&h, 1, buffers, 2, scalars, 2);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
        assert_int_equal(y[i], (int16_t)permuted(i));
    }
    harness_close(&h);
    lilac_text_clear(&tile);
}

/* No copies, no marks; and copies in lanes alone are none that cost. */
static void nothing_to_do(void **state) {
    (void)state;
    static const char body[] = BEGIN LOAD STORE("%v") END;
    for (uint32_t warps = 1; warps <= 8; warps *= 2) {
        harness h;
        lilac_text tile;
        harness_open(&h, body, warps, true);
        lilac_text_init(&tile);
        lilac_tile_print(&tile, h.tile, false);
        assert_int_equal(count_text(lilac_text_get(&tile), "lilac.idle"), warps > 1);
        lilac_text_clear(&tile);
        harness_close(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(loads), cmocka_unit_test(addresses),
                                       cmocka_unit_test(nothing_to_do)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
