/* Kernels of another launcher, with tensor maps that are made from the arguments, on the fake
 * driver. */
#include "support/runtime_harness.h"

static const char ptx[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 a, .param .u32 m, .param .u64 pitch,\n"
    " .param .align 64 .b8 map[128], .param .u64 s, .param .u64 t)\n{\n\tret;\n}\n";

/* The m × 64 matrix from element 8 on. */
static const lilac_launch_map recipe = {
    .parameter = 3,
    .base = 0,
    .rank = 2,
    .offset = {1, {{8, 0, {0}}}},
    .sizes = {{1, {{1, 1, {1}}}}, {1, {{64, 0, {0}}}}},
    .strides = {{1, {{1, 1, {2}}}}},
};
static const lilac_launch_maps recipes = {
    .count = 1, .maps = &recipe, .conditions = {{7, 1, 1}, 1, {1}}};
static const lilac_tensor_map box = {.element = LILAC_TENSOR_BF16,
                                     .rank = 2,
                                     .box = {64, 16},
                                     .element_strides = {1, 1},
                                     .swizzle = LILAC_TENSOR_SWIZZLE_128,
                                     .l2_promotion = 128};

/* The other library: it has a context, and has loaded the kernel there. */
typedef struct other_library {
    lilac_cuda *cuda;
    void *module;
    int device;
    struct CUfunc_st *function;
} other_library;

static other_library begin_other(void) {
    other_library other = {.cuda = open_cuda("")};
    void *made;
    int (*get)(int *, int), (*retain)(void **, int), (*push)(void *);
    int (*load)(void **, const void *, unsigned, int *, void **);
    int (*find)(struct CUfunc_st **, void *, const char *);
    find_fake("cuDeviceGet", &get);
    find_fake("cuDevicePrimaryCtxRetain", &retain);
    find_fake("cuCtxPushCurrent_v2", &push);
    find_fake("cuModuleLoadDataEx", &load);
    find_fake("cuModuleGetFunction", &find);
    assert_int_equal(get(&other.device, 0), 0);
    assert_int_equal(retain(&made, other.device), 0);
    assert_int_equal(push(made), 0);
    assert_int_equal(load(&other.module, ptx, 0, NULL, NULL), 0);
    assert_int_equal(find(&other.function, other.module, "k"), 0);
    return other;
}

static void end_other(const other_library *other) {
    void *left;
    assert_true(lilac_cuda_has_context(other->cuda));
    int (*unload)(void *), (*pop)(void **), (*release)(int);
    find_fake("cuModuleUnload", &unload);
    find_fake("cuCtxPopCurrent_v2", &pop);
    find_fake("cuDevicePrimaryCtxRelease_v2", &release);
    assert_int_equal(unload(other->module), 0);
    assert_int_equal(pop(&left), 0);
    assert_false(lilac_cuda_has_context(other->cuda));
    assert_int_equal(release(other->device), 0);
    lilac_cuda_close(other->cuda);
}

static lilac_mapped_kernel *create_with(const other_library *other, bool cooperative,
                                        const lilac_launch_maps *made) {
    const lilac_mapped_description description = {
        .code = {.function = other->function, .num_warps = 4, .shared_bytes = 1024},
        .parameter_count = 4,
        .recipes = made,
        .maps = &box,
        .cooperative = cooperative};
    lilac_mapped_kernel *kernel = lilac_mapped_create(other->cuda, &description);
    assert_non_null(kernel);
    return kernel;
}

static lilac_mapped_kernel *create(const other_library *other, bool cooperative) {
    return create_with(other, cooperative, &recipes);
}

static lilac_mapped_launch launch_of(int64_t m, int64_t pitch) {
    return (lilac_mapped_launch){.grid = {5, 1, 1}, .values = {1 << 20, m, pitch}};
}

static void test_launch(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_mapped_kernel *kernel = create(&other, false);
    lilac_mapped_launch launch = launch_of(30, 72);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
    assert_says(fake.log(), "  map element 9 interleave 0 swizzle 3 promotion 2 fill 0\n"
                            "  dimension 0: 64 stride 0 box 64 step 1\n"
                            "  dimension 1: 30 stride 144 box 16 step 1\n");
    assert_says(fake.log(),
                "  k grid 5 1 1 block 128 1 1 shared 1024 on the default stream (0000000000100000, "
                "0000001e, 0000000000000048, 0000000000100010, 0000000000000000, "
                "0000000000000000)\n");
    lilac_mapped_destroy(kernel);
    kernel = create(&other, true);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
    assert_says(fake.log(), "on the default stream policy 1 (");
    fake.rule("cuLaunchKernelEx=719");
    assert_int_equal(lilac_mapped_run(kernel, &launch), 719);
    assert_true(strlen(lilac_cuda_words(other.cuda, 719)) > 0);
    lilac_mapped_destroy(kernel);
    lilac_mapped_destroy(NULL);
    end_other(&other);
}

static uint32_t encoded(void) {
    uint32_t count = 0;
    for (const char *at = fake.log(); (at = strstr(at, "cuTensorMapEncodeTiled")) != NULL; at++) {
        count++;
    }
    return count;
}

/* Eight maps are kept, and a kept map has the bytes of the encoded one. */
static void test_kept_maps(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_mapped_kernel *kernel = create(&other, false);
    uint8_t first[8][LILAC_TENSOR_MAP_BYTES];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++) {
            lilac_mapped_launch launch = launch_of(16 + i % 2, 64 + 8 * (i / 2));
            launch.values[0] += 4096 * i; /* the fake driver's maps are their address */
            assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
            if (round == 0) {
                memcpy(first[i], launch.maps[0], sizeof first[i]);
            }
            assert_memory_equal(first[i], launch.maps[0], sizeof first[i]);
        }
        assert_int_equal(encoded(), 8);
    }
    lilac_mapped_launch launch = launch_of(99, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(encoded(), 9);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

static void test_plain_launches(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_mapped_kernel *kernel = create(&other, false);
    lilac_mapped_launch launch = launch_of(-1, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_CONDITION);
    launch = launch_of(16, 64);
    launch.grid[0] = 8;
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_CONDITION);
    launch = launch_of(0, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_LIMIT);
    launch = launch_of(16, 65);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_LIMIT);
    assert_int_equal(encoded(), 0);
    fake.rule("cuTensorMapEncodeTiled=1");
    launch = launch_of(16, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_LIMIT);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

/* Maps are possible for rows of 128 and 144 bytes, and worth it for the first ones, or if blocks divide a
 * program. */
static void test_pitch(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_launch_map wide = recipe;
    wide.pitch = 32;
    const lilac_launch_maps made = {.count = 1, .maps = &wide, .conditions = recipes.conditions};
    lilac_mapped_kernel *any = create(&other, false), *kernel = create_with(&other, false, &made);
    lilac_mapped_launch even = launch_of(16, 64), odd = launch_of(16, 72);
    assert_int_equal(lilac_mapped_prepare(any, &odd), LILAC_MAPPED_READY);
    assert_int_equal(lilac_mapped_prepare(kernel, &even), LILAC_MAPPED_READY);
    assert_int_equal(lilac_mapped_prepare(kernel, &odd), LILAC_MAPPED_LIMIT);
    lilac_mapped_destroy(any);
    lilac_mapped_destroy(kernel);
    lilac_launch_maps divided = made;
    divided.split = (lilac_launch_split){
        .divisor = 1, .iterations = {1, {{1, 1, {1}}}}, .clocks = 1000, .bytes = 4096};
    kernel = create_with(&other, false, &divided);
    odd = launch_of(100, 72);
    assert_int_equal(lilac_mapped_prepare(kernel, &odd), LILAC_MAPPED_READY);
    assert_int_equal(odd.parts, 8);
    odd = launch_of(2, 72);
    assert_int_equal(lilac_mapped_prepare(kernel, &odd), LILAC_MAPPED_LIMIT);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

/* m iterations, which the launcher divides among the blocks of a cluster. */
static void test_parts(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_launch_maps divided = recipes;
    divided.split = (lilac_launch_split){
        .divisor = 1, .iterations = {1, {{1, 1, {1}}}}, .clocks = 1000, .bytes = 4096};
    lilac_mapped_kernel *kernel = create_with(&other, false, &divided);
    lilac_mapped_launch launch = launch_of(100, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(launch.parts, 8);
    assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
    assert_says(fake.log(),
                "  k grid 5 1 8 block 128 1 1 shared 1024 on the default stream cluster "
                "1 1 8 policy 1 (");
    launch = launch_of(2, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(launch.parts, 1);
    assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
    assert_says(fake.log(), "  k grid 5 1 1 block 128 1 1 shared 1024 on the default stream (");
    lilac_mapped_destroy(kernel);
    kernel = create_with(&other, true, &divided); /* a cooperative launch has its own grid */
    launch = launch_of(100, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(launch.parts, 1);
    lilac_mapped_destroy(kernel);
    fake.rule("cuOccupancyMaxActiveClusters=1");
    kernel = create_with(&other, false, &divided);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_int_equal(launch.parts, 1);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

/* m / 2 iterations: fewer than 6 are faster without maps, where each program has a multiprocessor. */
static void test_few_iterations(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_launch_maps few = recipes;
    few.conditions.grid[0] = 1000;
    few.least = (lilac_launch_least){.divisor = 2, .least = 6, .iterations = {1, {{1, 1, {1}}}}};
    static const struct {
        int64_t m;
        uint32_t programs;
        lilac_mapped_outcome outcome;
    } cases[] = {
        {11, 5, LILAC_MAPPED_FEW},    {12, 5, LILAC_MAPPED_READY},     {2, 132, LILAC_MAPPED_FEW},
        {2, 133, LILAC_MAPPED_READY}, {-1, 5, LILAC_MAPPED_CONDITION},
    };
    lilac_mapped_kernel *kernel = create_with(&other, false, &few);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lilac_mapped_launch launch = launch_of(cases[i].m, 64);
        launch.grid[0] = cases[i].programs;
        assert_int_equal(lilac_mapped_prepare(kernel, &launch), cases[i].outcome);
    }
    lilac_mapped_destroy(kernel);
    few.split = (lilac_launch_split){
        .divisor = 1, .iterations = {1, {{1, 1, {1}}}}, .clocks = 100000, .bytes = 4096};
    kernel = create_with(&other, false, &few); /* long iterations are divided */
    lilac_mapped_launch launch = launch_of(11, 64);
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
    assert_true(launch.parts > 1);
    lilac_mapped_destroy(kernel);
    kernel = create_with(&other, true, &few); /* not in a cooperative launch */
    assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_FEW);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

/* Launches whose blocks have a multiprocessor each are of the other code. */
static void test_one_block(void **state) {
    (void)state;
    const other_library other = begin_other();
    lilac_launch_maps wide = recipes;
    wide.conditions.grid[0] = 1000;
    lilac_mapped_description d = {
        .code = {.function = other.function, .num_warps = 4, .shared_bytes = 1024},
        .one_block = {.function = other.function, .num_warps = 8, .shared_bytes = 2048},
        .parameter_count = 4,
        .recipes = &wide,
        .maps = &box};
    for (int divides = 0; divides < 2; divides++) {
        wide.split = (lilac_launch_split){
            .divisor = divides, .iterations = {1, {{1, 1, {1}}}}, .clocks = 1000, .bytes = 4096};
        lilac_mapped_kernel *kernel = lilac_mapped_create(other.cuda, &d);
        lilac_mapped_launch launch = launch_of(100, 64);
        launch.grid[0] = 132;
        assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
        assert_true(launch.one_block);
        assert_int_equal(launch.parts, 1);
        assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
        assert_says(fake.log(), "  k grid 132 1 1 block 256 1 1 shared 2048 ");
        launch.grid[0] = 133;
        assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
        assert_false(launch.one_block);
        assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
        assert_says(fake.log(), "  k grid 133 1 1 block 128 1 1 shared 1024 ");
        launch.grid[0] = 5;
        assert_int_equal(lilac_mapped_prepare(kernel, &launch), LILAC_MAPPED_READY);
        assert_true(launch.one_block);
        assert_int_equal(launch.parts, divides ? 8 : 1);
        assert_int_equal(lilac_mapped_run(kernel, &launch), 0);
        assert_says(fake.log(), divides ? "  k grid 5 1 8 block 256 1 1 shared 2048 "
                                        : "  k grid 5 1 1 block 256 1 1 shared 2048 ");
        lilac_mapped_destroy(kernel);
    }
    end_other(&other);
}

static void test_descriptions(void **state) {
    (void)state;
    const other_library other = begin_other();
    const lilac_launch_maps none = {0};
    lilac_mapped_description d = {
        .code.function = other.function, .parameter_count = 5, .recipes = &recipes, .maps = &box};
    assert_null(lilac_mapped_create(other.cuda, &d)); /* the map is not the last parameter */
    d.parameter_count = 4;
    d.recipes = &none;
    assert_null(lilac_mapped_create(other.cuda, &d));
    lilac_launch_map far = recipe;
    const lilac_launch_maps many = {.count = 1, .maps = &far};
    far.parameter = LILAC_MAPPED_PARAMETERS + 1;
    d.recipes = &many;
    d.parameter_count = LILAC_MAPPED_PARAMETERS + 2;
    assert_null(lilac_mapped_create(other.cuda, &d));
    far.parameter--;
    d.parameter_count--;
    lilac_mapped_kernel *kernel = lilac_mapped_create(other.cuda, &d);
    assert_non_null(kernel);
    lilac_mapped_destroy(kernel);
    end_other(&other);
}

static void test_addresses(void **state) {
    (void)state;
    const other_library other = begin_other();
    int (*alloc)(uint64_t *, size_t), (*release)(uint64_t);
    uint64_t memory, address = 4096;
    find_fake("cuMemAlloc_v2", &alloc);
    find_fake("cuMemFree_v2", &release);
    assert_int_equal(alloc(&memory, 64), 0);
    assert_false(lilac_cuda_device_address(other.cuda, &address));
    assert_int_equal(address, 4096);
    address = memory + 8;
    assert_true(lilac_cuda_device_address(other.cuda, &address));
    assert_int_equal(address, memory + 8);
    assert_int_equal(release(memory), 0);
    end_other(&other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_launch, begin, end),
        cmocka_unit_test_setup_teardown(test_kept_maps, begin, end),
        cmocka_unit_test_setup_teardown(test_plain_launches, begin, end),
        cmocka_unit_test_setup_teardown(test_pitch, begin, end),
        cmocka_unit_test_setup_teardown(test_one_block, begin, end),
        cmocka_unit_test_setup_teardown(test_parts, begin, end),
        cmocka_unit_test_setup_teardown(test_few_iterations, begin, end),
        cmocka_unit_test_setup_teardown(test_descriptions, begin, end),
        cmocka_unit_test_setup_teardown(test_addresses, begin, end),
    };
    return cmocka_run_group_tests(tests, find_fake_driver, NULL);
}
