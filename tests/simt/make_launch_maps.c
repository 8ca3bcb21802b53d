/* Tensor maps that the launcher makes: recipes, conditions, whole launches. */

#include <lilac/simt.h>
#include <lilac/tensor_map.h>

#include "support/test.h"

static const char *const names[] = {"a", "m", "n", "k", "pitch"};
enum { A, M, N, K, PITCH, COUNT };

#define TERM(f, ...)                                                                               \
    {                                                                                              \
        f, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), {                                 \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define SUM(...)                                                                                   \
    {                                                                                              \
        sizeof((lilac_launch_term[]){__VA_ARGS__}) / sizeof(lilac_launch_term), {                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

/* The n × k matrix behind 8 elements in front of row m, whose rows are `pitch` elements apart. */
static const lilac_launch_map matrix = {
    .parameter = COUNT,
    .base = A,
    .rank = 2,
    .offset = {2, {TERM(1, M, PITCH), {-8, 0, {0}}}},
    .sizes = {{1, {TERM(1, N)}}, {1, {TERM(1, K)}}},
    .strides = {{1, {TERM(1, PITCH)}}},
};

static lilac_tensor_map box(void) {
    return (lilac_tensor_map){.element = LILAC_TENSOR_F16,
                              .rank = 2,
                              .box = {64, 64},
                              .element_strides = {1, 1},
                              .swizzle = LILAC_TENSOR_SWIZZLE_128};
}

static void one_map(void **state) {
    (void)state;
    const int64_t values[] = {1 << 20, 3, 100, 40, 48};
    lilac_tensor_map map = box();
    assert_true(lilac_launch_map_make(NULL, &map, &matrix, values, "d"));
    assert_int_equal(map.address, (1 << 20) + 2 * (3 * 48 - 8));
    assert_int_equal(map.dims[0], 40);
    assert_int_equal(map.dims[1], 100);
    assert_int_equal(map.strides[0], 96);
    assert_int_equal(map.box[0], 64);
    assert_int_equal(map.swizzle, LILAC_TENSOR_SWIZZLE_128);
}

/* The outermost dimension of a recipe is the last one of the map. */
static void order_of_dimensions(void **state) {
    (void)state;
    const lilac_launch_map recipe = {
        .base = A,
        .rank = 3,
        .sizes = {{1, {TERM(1, M)}}, {1, {TERM(1, N)}}, {1, {TERM(1, K)}}},
        .strides = {{1, {TERM(1, N, PITCH)}}, {1, {TERM(1, PITCH)}}},
    };
    const int64_t values[] = {1 << 20, 3, 5, 7, 8};
    lilac_tensor_map map = box();
    map.rank = 3;
    map.box[2] = map.element_strides[2] = 1;
    assert_true(lilac_launch_map_make(NULL, &map, &recipe, values, "d"));
    const uint64_t dims[] = {7, 5, 3}, strides[] = {16, 80};
    assert_memory_equal(map.dims, dims, sizeof dims);
    assert_memory_equal(map.strides, strides, sizeof strides);
}

static void impossible_maps(void **state) {
    static const struct {
        int64_t values[COUNT];
        const char *refused;
    } cases[] = {
        {{1 << 20, 0, 1, 1, 8}, NULL},
        {{(1 << 20) + 2, 0, 1, 1, 8}, "the address is 0xffff2; a multiple of 16"},
        {{1 << 20, 0, 0, 1, 8}, "dimension 1 has 0 elements"},
        {{1 << 20, 0, 1, 0, 8}, "dimension 0 has 0 elements"},
        {{1 << 20, 0, -1, 1, 8}, "the size is negative or exceeds 64 bits"},
        {{1 << 20, 0, (INT64_C(1) << 32) + 1, 1, 8}, "dimension 1 has 4294967297 elements"},
        {{1 << 20, 0, 1, 1, 4}, "the stride of dimension 1 is 8 bytes"},
        {{1 << 20, 0, 1, 1, -8}, "the stride is negative or exceeds 64 bits"},
        {{1 << 20, 0, 1, 1, INT64_MAX / 2 + 1}, "the stride is negative or exceeds 64 bits"},
        {{1 << 20, 0, 1, 1, INT64_C(1) << 39}, "the stride of dimension 1 is 1099511627776 bytes"},
        {{1 << 20, INT64_C(1) << 40, 1, 1, INT64_C(1) << 30}, "the offset is negative or exceeds"},
        {{0, 0, 100, 40, 48}, "the address is negative"}, /* the tensor begins 16 bytes in front */
        {{16, 0, 100, 40, 48}, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_context *context = lilac_context_create();
        lilac_tensor_map map = box();
        const bool good = lilac_launch_map_make(context, &map, &matrix, cases[i].values, "d");
        const lilac_diagnostic *d = lilac_diagnostics(context);
        if (good != (cases[i].refused == NULL)) {
            fail_msg("case %zu: %s", i, d != NULL ? d->message : "allowed");
        }
        if (!good && (strcmp(d->id, "tensor-map") != 0 || !strstr(d->message, "'d'") ||
                      !strstr(d->message, cases[i].refused))) {
            fail_msg("case %zu: %s", i, d->message);
        }
        map = box();
        assert_true(lilac_launch_map_make(NULL, &map, &matrix, cases[i].values, "d") == good);
        lilac_context_destroy(context);
    }
}

static void conditions(void **state) {
    static const struct {
        uint32_t grid[3];
        int64_t m, n;
        const char *refused;
    } cases[] = {
        {{8, 4, 2}, 0, 1 << 30, NULL},
        {{9, 4, 2},
         0,
         0,
         "the grid is 9 along x; the kernel with the launcher's tensor maps is correct for at most "
         "8"},
        {{8, 5, 2}, 0, 0, "the grid is 5 along y"},
        {{8, 4, 3}, 0, 0, "the grid is 3 along z"},
        {{1, 1, 1}, -1, 0, "parameter 1, 'm', is -1;"},
        {{1, 1, 1}, 0, (1 << 30) + 1, "parameter 2, 'n', is 1073741825;"},
    };
    static const lilac_launch_conditions limits = {
        .grid = {8, 4, 2}, .parameter_count = 2, .parameters = {M, N}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t values[COUNT] = {-1, cases[i].m, cases[i].n, -1, -1};
        lilac_context *context = lilac_context_create();
        const bool good =
            lilac_launch_conditions_check(context, &limits, cases[i].grid, values, names);
        const lilac_diagnostic *d = lilac_diagnostics(context);
        assert_true(good == (cases[i].refused == NULL));
        if (!good &&
            (strcmp(d->id, "launch-condition") != 0 || !strstr(d->message, cases[i].refused))) {
            fail_msg("case %zu: %s", i, d->message);
        }
        lilac_context_destroy(context);
    }
}

/* ---- sums, against wider arithmetic -------------------------------------------------------- */

static lilac_launch_sum random_sum(lilac_random *random, uint32_t largest) {
    lilac_launch_sum sum = {.count = random_below(random, LILAC_LAUNCH_TERMS + 1)};
    for (uint32_t i = 0; i < sum.count; i++) {
        lilac_launch_term *term = &sum.terms[i];
        term->factor = (int64_t)random_below(random, 2 * largest + 1) - largest;
        term->parameter_count = random_below(random, LILAC_LAUNCH_FACTORS + 1);
        for (uint32_t k = 0; k < term->parameter_count; k++) {
            term->parameters[k] = 1 + random_below(random, COUNT - 1);
        }
    }
    return sum;
}

__extension__ typedef __int128 wide;

static wide wide_sum(const lilac_launch_sum *sum, const int64_t *values) {
    wide result = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        wide product = sum->terms[i].factor;
        for (uint32_t k = 0; k < sum->terms[i].parameter_count; k++) {
            product *= values[sum->terms[i].parameters[k]];
        }
        result += product;
    }
    return result;
}

/* Sizes are right, or refused because they are outside the limits: values to 2^30, factors to
 * 2^20, so that sums reach 112 bits. */
static void random_sums(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 11);
    int made = 0;
    for (int round = 0; round < (int)scaled(20000); round++) {
        const uint32_t most = 1u << random_below(&random, 31);
        int64_t values[COUNT] = {0};
        for (int k = 1; k < COUNT; k++) {
            values[k] = (int64_t)random_below(&random, most + 1);
        }
        const lilac_launch_map recipe = {
            .base = A, .rank = 1, .sizes = {random_sum(&random, 1u << random_below(&random, 21))}};
        const wide size = wide_sum(&recipe.sizes[0], values);
        lilac_tensor_map map = box();
        map.rank = 1;
        const bool good = lilac_launch_map_make(NULL, &map, &recipe, values, "d");
        assert_true(good == (size >= 1 && size <= (wide)1 << 32));
        assert_true(!good || map.dims[0] == (uint64_t)size);
        made += good;
    }
    assert_true(made > 1000);
}

/* ---- a launch ------------------------------------------------------------------------------ */

/* Arguments are bits: narrower integers than 64 bits are extended with their sign. */
static void launches(void **state) {
    (void)state;
    const lilac_simt_parameter parameters[] = {
        {.name = "a", .type = LILAC_SIMT_I64, .is_pointer = true},
        {.name = "m", .type = LILAC_SIMT_I32},
        {.name = "n", .type = LILAC_SIMT_I16},
        {.name = "k", .type = LILAC_SIMT_I64},
        {.name = "pitch", .type = LILAC_SIMT_I32},
        {.name = "d", .type = LILAC_SIMT_I64, .is_tensor_map = true},
    };
    const lilac_simt_kernel kernel = {.parameter_count = COUNT + 1,
                                      .parameters = (lilac_simt_parameter *)parameters};
    const lilac_launch_maps recipes = {
        .count = 1, .maps = &matrix, .conditions = {{1, 1, 1}, 1, {N}}};
    const uint32_t grid[3] = {1, 1, 1};
    /* m = -1, and bits above the 16 of n, which do not count */
    uint64_t arguments[] = {1 << 20, UINT32_MAX, 0x10020, 40, 48, 1};
    lilac_context *context = lilac_context_create();
    lilac_tensor_map maps[2] = {box(), box()};
    assert_true(lilac_launch_maps_make(context, maps, &recipes, &kernel, grid, arguments));
    assert_int_equal(maps[1].address, (1 << 20) - 2 * 56);
    assert_int_equal(maps[1].dims[1], 32);
    assert_int_equal(maps[0].dims[1], 0);
    arguments[N] = 0xffff;
    assert_false(lilac_launch_maps_make(context, maps, &recipes, &kernel, grid, arguments));
    assert_non_null(strstr(lilac_diagnostics(context)->message, "parameter 2, 'n', is -1"));
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_map),         cmocka_unit_test(order_of_dimensions),
        cmocka_unit_test(impossible_maps), cmocka_unit_test(conditions),
        cmocka_unit_test(random_sums),     cmocka_unit_test(launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
