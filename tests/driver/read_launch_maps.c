/* The recipes of tensor maps that the launcher makes, from the attributes of a function. */

#include <lilac/driver.h>

#include "support/test.h"

#define SIZES          "sizes = [[array<i64: 1, 1>], [array<i64: 2, 1, 2>, array<i64: -3>]]"
#define STRIDES        "strides = [[array<i64: 64>, [array<i64: 6, 1>, array<i64: 2, 3>]]]"
#define DIVIDED(PARTS) "{base = 0 : i32, offset = [[" PARTS "]], " SIZES ", " STRIDES "}"
#define LIMITS         "lilac.launch_conditions = array<i64: 1048576, 65535, 7, 2, 1>"

/* A kernel with a pointer, two integers and a map with these attributes. */
static lilac_tile_module *read_kernel(lilac_context *context, const char *map,
                                      const char *conditions) {
    lilac_text text = {0};
    lilac_text_printf(&text,
                      "module {\n  tt.func public @k(%%a: !tt.ptr<f16>, %%m: i32, %%n: i64, %%d: "
                      "!tt.tensordesc<tensor<64x64xf16>>%s) attributes {%s} {\n    tt.return\n  "
                      "}\n}\n",
                      map, conditions);
    const uint32_t source =
        lilac_source_add(context, "maps.ttir", lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (module == NULL) {
        fail_with_diagnostics(context, "the module was refused");
    }
    return module;
}

static void recipes(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_tile_module *module =
        read_kernel(context,
                    " {lilac.launch_map = {base = 0 : i32, offset = [array<i64: 8, 1>], " SIZES
                    ", " STRIDES "}}",
                    LIMITS ", lilac.launch_least = {iterations = [array<i64: 1, 2>], divisor = 64 "
                           ": i32, least = 6 : i32}, lilac.launch_split = {iterations = "
                           "[array<i64: 1, 2>], divisor = 64 : i32, clocks = 512 : i32, loads = "
                           "32768 : i32, bytes = 65536 : i32}, lilac.launch_one_block");
    lilac_launch_maps maps;
    assert_true(lilac_launch_maps_get(&maps, lilac_context_arena(context), module->functions));
    assert_int_equal(maps.count, 1);
    assert_true(maps.one_block);
    assert_int_equal(maps.split.divisor, 64);
    assert_int_equal(maps.split.clocks, 512);
    assert_int_equal(maps.split.loads, 32768);
    assert_int_equal(maps.split.bytes, 65536);
    const lilac_launch_map *map = maps.maps;
    assert_int_equal(map->parameter, 3);
    assert_int_equal(map->base, 0);
    assert_int_equal(map->rank, 2);
    assert_int_equal(map->offset.count, 1);
    assert_int_equal(map->offset.terms[0].factor, 8);
    assert_int_equal(map->offset.terms[0].parameters[0], 1);
    assert_int_equal(map->sizes[1].count, 2);
    assert_int_equal(map->sizes[1].terms[0].factor, 2);
    assert_int_equal(map->sizes[1].terms[0].parameter_count, 2);
    assert_int_equal(map->sizes[1].terms[0].parameters[1], 2);
    assert_int_equal(map->sizes[1].terms[1].factor, -3);
    assert_int_equal(map->sizes[1].terms[1].parameter_count, 0);
    assert_int_equal(map->strides[0].terms[0].factor, 64);
    assert_int_equal(map->strides[0].terms[1].factor, 6);
    assert_int_equal(map->strides[0].terms[1].parameter_count, 2);
    assert_int_equal(map->strides[0].terms[1].divisors[0], 0);
    assert_int_equal(map->strides[0].terms[1].parameters[1], 2);
    assert_int_equal(map->strides[0].terms[1].divisors[1], 3);
    const int64_t values[] = {0, 5, 11, 0};
    int64_t stride;
    assert_true(lilac_launch_sum_evaluate(&stride, &map->strides[0], values));
    assert_int_equal(stride, 64 + 6 * 5 * (11 / 3));
    const uint32_t grid[3] = {1048576, 65535, 7};
    assert_memory_equal(maps.conditions.grid, grid, sizeof grid);
    assert_int_equal(maps.conditions.parameter_count, 2);
    assert_int_equal(maps.conditions.parameters[0], 2);
    assert_int_equal(maps.conditions.parameters[1], 1);
    assert_int_equal(maps.least.divisor, 64);
    assert_int_equal(maps.least.least, 6);
    assert_int_equal(maps.least.iterations.terms[0].parameters[0], 2);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

static void no_recipes(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_launch_maps maps;
    lilac_tile_module *module = read_kernel(context, "", "noinline = false");
    assert_true(lilac_launch_maps_get(&maps, lilac_context_arena(context), module->functions));
    assert_int_equal(maps.count, 0);
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
}

/* Attributes that a text may have and that are no recipes. */
static void malformed(void **state) {
    static const struct {
        const char *map, *conditions;
    } cases[] = {
        {"7 : i32", LIMITS},
        {"{base = 0 : i32, offset = [], " SIZES "}", LIMITS},
        {"{base = 0 : i32, offset = [], " SIZES ", strides = [[], []]}", LIMITS},
        {"{base = 0 : i32, offset = [], sizes = [[]], strides = []}", LIMITS},
        {"{base = 1 : i32, offset = [], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 4 : i32, offset = [], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = -1 : i32, offset = [], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = 0 : i32, " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [1 : i32], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64: 1, 0>], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64: 1, 9>], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64: 1, -1>], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64>], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64: 1, 1, 1, 1, 1>], " SIZES ", " STRIDES "}", LIMITS},
        {"{base = 0 : i32, offset = [array<i64: 1>, array<i64: 1>, array<i64: 1>, array<i64: 1>, "
         "array<i64: 1>], " SIZES ", " STRIDES "}",
         LIMITS},
        {DIVIDED(""), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 1>"), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 1, 0>"), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 1, -2>"), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 1, 4294967296>"), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 0, 2>"), LIMITS},
        {DIVIDED("array<i64: 1>, array<i64: 9, 2>"), LIMITS},
        {DIVIDED("array<i64: 1>, 2 : i32"), LIMITS},
        {DIVIDED("array<i64: 1, 1, 1, 1>, array<i64: 1, 2>"), LIMITS},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}", "noinline = false"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         "lilac.launch_conditions = array<i64: 1, 1>"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         "lilac.launch_conditions = array<i64: 1, 1, -1>"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         "lilac.launch_conditions = array<i64: 1, 1, 1, 0>"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         "lilac.launch_conditions = 1 : i32"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         LIMITS ", lilac.launch_least = {iterations = [], divisor = 0 : i32, least = 6 : i32}"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         LIMITS ", lilac.launch_least = {iterations = [array<i64: 1, 0>], divisor = 1 : i32, "
                "least = 6 : i32}"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         LIMITS ", lilac.launch_least = {iterations = [], divisor = 1 : i32}"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         LIMITS ", lilac.launch_least = 6 : i32"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}",
         LIMITS ", lilac.launch_one_block = false"},
        {"{base = 0 : i32, offset = [], " SIZES ", " STRIDES "}", LIMITS
         ", lilac.launch_split = {iterations = [array<i64: 1, 1>], divisor = 1 : i32, clocks "
         "= 1 : i32, bytes = 1 : i32}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        lilac_text map = {0};
        lilac_text_printf(&map, " {lilac.launch_map = %s}", cases[i].map);
        lilac_tile_module *module = read_kernel(context, lilac_text_get(&map), cases[i].conditions);
        lilac_launch_maps maps;
        if (lilac_launch_maps_get(&maps, lilac_context_arena(context), module->functions)) {
            fail_msg("case %zu is read", i);
        }
        const lilac_diagnostic *d = lilac_diagnostics(context);
        assert_string_equal(d->id, "launch-map");
        assert_non_null(strstr(d->message, "'k' is malformed"));
        assert_int_equal(maps.count, 0);
        lilac_text_clear(&map);
        lilac_tile_module_destroy(module);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes),
        cmocka_unit_test(no_recipes),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
