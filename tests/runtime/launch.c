/* Kernels are loaded and launched on the fake driver. The tests check the arguments that the driver
 * receives (parameters, clusters, shared memory), results, timing, and every refusal. */
#include "support/runtime_harness.h"

/* twice(x, o, n): o = 2 x, the first n elements. */
static const char twice[] =
    "module {\n"
    "  tt.func public @twice(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {\n"
    "    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n"
    "    %l = tt.splat %n : i32 -> tensor<128xi32>\n"
    "    %m = arith.cmpi slt, %i, %l : tensor<128xi32>\n"
    "    %p = tt.splat %x : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
    "    %q = tt.addptr %p, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "    %v = tt.load %q, %m : tensor<128x!tt.ptr<f32>>\n"
    "    %w = arith.addf %v, %v : tensor<128xf32>\n"
    "    %r = tt.splat %o : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>\n"
    "    %s = tt.addptr %r, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>\n"
    "    tt.store %s, %w, %m : tensor<128x!tt.ptr<f32>>\n"
    "    tt.return\n"
    "  }\n"
    "}\n";

/* PTX of a kernel with a parameter of each width. */
static const char widths[] =
    ".version 8.6\n.target sm_90a\n.address_size 64\n"
    ".visible .entry widths(.param .u64 .ptr .global .align 1 parameter_0, .param .u8 "
    "parameter_1,\n"
    " .param .align 2 .b8 parameter_2[2], .param .u16 parameter_3, .param .f32 parameter_4,\n"
    " .param .f64 parameter_5, .param .u64 .ptr .global .align 1 parameter_6,\n"
    " .param .u64 .ptr .global .align 1 parameter_7)\n{\n\tret;\n}\n";

static const lilac_simt_parameter width_parameters[] = {
    {.name = "p", .type = LILAC_SIMT_I64, .is_pointer = true},
    {.name = "flag", .type = LILAC_SIMT_I1},
    {.name = "half", .type = LILAC_SIMT_F16},
    {.name = "short", .type = LILAC_SIMT_I16},
    {.name = "float", .type = LILAC_SIMT_F32},
    {.name = NULL, .type = LILAC_SIMT_F64},
};

static const lilac_gpu_program width_program = {.ptx = widths,
                                                .name = "widths",
                                                .parameter_count = 6,
                                                .parameters = width_parameters,
                                                .num_warps = 8,
                                                .num_ctas = 1,
                                                .shared_bytes = 4096};

static bool compile(lilac_compilation *compilation, const char *text, const char *target) {
    lilac_options options;
    lilac_options_init(&options);
    options.target.arch = lilac_arch_find(target);
    const uint32_t source = lilac_source_add(context, "test.ttir", text, strlen(text));
    return source != 0 && lilac_compile(compilation, context, source, &options);
}

static lilac_gpu_kernel *load_twice(lilac_gpu *gpu) {
    lilac_compilation compilation = {0};
    assert_true(compile(&compilation, twice, "sm_90a"));
    lilac_gpu_kernel *kernel = lilac_gpu_load(gpu, context, &compilation, NULL, NULL);
    assert_nothing_said();
    assert_non_null(kernel);
    lilac_compilation_clear(&compilation); /* a loaded kernel needs it no more */
    return kernel;
}

static lilac_gpu_kernel *load_widths(lilac_gpu *gpu) {
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(gpu, context, &width_program, NULL);
    assert_nothing_said();
    assert_non_null(kernel);
    return kernel;
}

/* ---- launches that do what they are to do ------------------------------------------------ */

static void test_results(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = load_twice(m.gpu);
    float x[100], o[101];
    uint64_t arguments[3] = {0, 0, 100};
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i - 7;
    }
    assert_true(lilac_gpu_alloc(m.gpu, context, sizeof x, &arguments[0]));
    assert_true(lilac_gpu_alloc(m.gpu, context, sizeof o, &arguments[1]));
    assert_true(lilac_gpu_write(m.gpu, context, arguments[0], x, sizeof x));
    assert_true(lilac_gpu_fill(m.gpu, context, arguments[1], 0, sizeof o));
    const lilac_gpu_launch launch = {
        .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 3};
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_true(lilac_gpu_synchronize(m.gpu, context));
    assert_true(lilac_gpu_read(m.gpu, context, o, arguments[1], sizeof o));
    for (int i = 0; i < 100; i++) {
        assert_true(o[i] == 2 * x[i]);
    }
    assert_true(o[100] == 0);
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(kernel);
    assert_string_equal(facts->name, "twice");
    assert_int_equal(facts->num_warps, 4);
    assert_int_equal(facts->num_ctas, 1);
    assert_int_equal(facts->registers, 40);
    assert_int_equal(facts->local_bytes, 16);
    assert_true(facts->spills_known);
    assert_int_equal(facts->spill_stores, 4);
    assert_int_equal(facts->spill_loads, 8);
    assert_int_equal(facts->compiler, LILAC_GPU_DRIVER);
    assert_null(facts->ptxas);
    assert_true(facts->seconds > 0);
    assert_says(facts->log, "Used 40 registers");
    lilac_gpu_unload(kernel);
    lilac_gpu_unload(NULL);
    close_machine(&m);
}

/* Parameters in order, each as wide as the kernel has it, then two null pointers; no cluster. */
static void test_parameters(void **state) {
    (void)state;
    machine m = open_machine("static=100");
    lilac_gpu_kernel *kernel = load_widths(m.gpu);
    assert_int_equal(lilac_gpu_kernel_facts_get(kernel)->shared_bytes, 4196);
    const uint64_t arguments[] = {0, 1, 0x3C00, 0xBEEF, 0x3F800000, UINT64_C(0x4008000000000000)};
    lilac_gpu_stream stream;
    assert_true(lilac_gpu_stream_create(m.gpu, context, &stream));
    const lilac_gpu_launch launch = {
        .grid = {5, 6, 7}, .arguments = arguments, .argument_count = 6, .stream = stream};
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_says(fake.log(),
                "  widths grid 5 6 7 block 256 1 1 shared 4096 on a stream (0000000000000000, 01, "
                "3c00, beef, 3f800000, 4008000000000000, 0000000000000000, 0000000000000000)\n");
    assert_silent(fake.log(), "cuFuncSetAttribute");
    assert_silent(fake.log(), "cuMemAllocAsync");
    assert_true(lilac_gpu_stream_synchronize(m.gpu, context, stream));
    lilac_gpu_stream_destroy(m.gpu, stream);
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

/* A kernel with a tensor map by value between two other parameters. */
static const char maps[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry maps(.param .u32 parameter_0,\n .param .align 64 .b8 parameter_1[128],\n"
    " .param .align 64 .b8 parameter_2[128],\n .param .u64 .ptr .global .align 1 parameter_3,\n"
    " .param .u64 .ptr .global .align 1 parameter_4)\n{\n\tret;\n}\n";
static const lilac_simt_parameter map_parameters[] = {
    {.name = "n", .type = LILAC_SIMT_I32},
    {.name = "a", .type = LILAC_SIMT_I64, .is_tensor_map = true},
    {.name = "b", .type = LILAC_SIMT_I64, .is_tensor_map = true},
};
static const lilac_gpu_program map_program = {.ptx = maps,
                                              .name = "maps",
                                              .parameter_count = 3,
                                              .parameters = map_parameters,
                                              .num_warps = 1,
                                              .num_ctas = 1};

/* Each map is encoded from its description, and the launch has its 128 bytes. */
static void test_tensor_maps(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &map_program, NULL);
    assert_non_null(kernel);
    uint64_t memory = 0;
    assert_true(lilac_gpu_alloc(m.gpu, context, 4096, &memory));
    lilac_tensor_map described[2] = {
        {.address = memory,
         .element = LILAC_TENSOR_BF16,
         .rank = 2,
         .dims = {64, 30},
         .strides = {128},
         .box = {64, 16},
         .element_strides = {1, 2},
         .swizzle = LILAC_TENSOR_SWIZZLE_128,
         .l2_promotion = 256},
        {.address = memory,
         .element = LILAC_TENSOR_F32,
         .rank = 1,
         .dims = {8},
         .box = {4},
         .element_strides = {1},
         .fill = LILAC_TENSOR_FILL_NAN},
    };
    const uint64_t arguments[] = {7, 1, 0};
    lilac_gpu_launch launch = {.grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 3,
                               .tensor_maps = described,
                               .tensor_map_count = 2};
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_says(fake.log(), "  map element 9 interleave 0 swizzle 3 promotion 3 fill 0\n"
                            "  dimension 0: 64 stride 0 box 64 step 1\n"
                            "  dimension 1: 30 stride 128 box 16 step 2\n");
    assert_says(fake.log(), "  map element 7 interleave 0 swizzle 0 promotion 0 fill 1\n"
                            "  dimension 0: 8 stride 0 box 4 step 1\n");
    char parameters[128];
    snprintf(parameters, sizeof parameters, "(00000007, %016llx, %016llx, ",
             (unsigned long long)memory, (unsigned long long)memory);
    assert_says(fake.log(), parameters);
    assert_nothing_said();

    launch.tensor_map_count = 1; /* the parameter 'a' is number 1 */
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("tensor-map"), "parameter 1, 'a', is tensor map 1, and the launch has 1");
    launch.tensor_map_count = 2;
    described[1].box[0] = 300;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("tensor-map"), "tensor map 'a': the box has 300 elements along dimension 0");
    described[1].box[0] = 4;
    described[1].address = 1 << 20;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("not-device-memory"), "of parameter 1, 'a'");
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

static void test_clusters(void **state) {
    (void)state;
    machine m = open_machine("");
    const uint32_t sizes[] = {2, 16};
    const char *said_of[] = {"grid 6 2 1 block 256 1 1 shared 4096 on the default stream cluster 2 "
                             "1 1 policy 1 (",
                             "grid 48 2 1 block 256 1 1 shared 4096 on the default stream cluster "
                             "16 1 1 policy 1 ("};
    for (int i = 0; i < 2; i++) {
        lilac_gpu_program program = width_program;
        program.num_ctas = sizes[i];
        lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &program, NULL);
        const uint64_t arguments[6] = {0};
        const lilac_gpu_launch launch = {
            .grid = {3, 2, 1}, .arguments = arguments, .argument_count = 6};
        assert_true(lilac_gpu_run(kernel, context, &launch));
        assert_says(fake.log(), said_of[i]);
        /* More than eight blocks must be asked for. */
        (i == 0 ? assert_silent : assert_says)(fake.log(), "widths attribute 14 = 1");
        lilac_gpu_unload(kernel);
    }
    close_machine(&m);
}

/* Several blocks for each program, along z. */
static void test_parts(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &width_program, NULL);
    const uint64_t arguments[6] = {0};
    lilac_gpu_launch launch = {
        .grid = {3, 2, 1}, .arguments = arguments, .argument_count = 6, .parts = 4};
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_says(fake.log(),
                "grid 3 2 4 block 256 1 1 shared 4096 on the default stream cluster 1 1 "
                "4 policy 1 (");
    launch.grid[2] = 2;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("grid-size"),
                "4 blocks for each program, with 1 blocks a cluster and 2 programs");
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

static void test_large_shared_memory(void **state) {
    (void)state;
    machine m = open_machine("static=1000");
    const uint64_t arguments[6] = {0};
    const lilac_gpu_launch launch = {
        .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 6};
    lilac_gpu_program program = width_program;
    program.shared_bytes = 231448; /* with those in the code, just as much as there is */
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &program, NULL);
    assert_non_null(kernel);
    assert_says(fake.log(), "widths attribute 8 = 231448\ncuFuncSetCacheConfig\n");
    assert_true(
        lilac_gpu_run(kernel, context, &launch)); /* the fake refuses what was not asked for */
    lilac_gpu_unload(kernel);
    program.shared_bytes++;
    assert_null(lilac_gpu_load_program(m.gpu, context, &program, NULL));
    assert_says(said("too-much-shared-memory"),
                "kernel 'widths' needs 232449 bytes of shared memory per block; Fake GPU 0 has at "
                "most 232448");
    program.shared_bytes = 48 << 10;
    fake.rule("cuFuncSetAttribute=1");
    assert_null(lilac_gpu_load_program(m.gpu, context, &program, NULL));
    assert_says(said("cuda-error"), "kernel 'widths' with 49152 bytes of shared memory");
    close_machine(&m);
}

/* Scratch memory for every block, padded to its alignment, in the launch's stream. */
static void test_scratch_memory(void **state) {
    (void)state;
    machine m = open_machine("");
    const uint64_t arguments[6] = {0};
    lilac_gpu_launch launch = {.grid = {3, 2, 1}, .arguments = arguments, .argument_count = 6};
    lilac_gpu_program program = width_program;
    program.num_ctas = 2;
    program.global_scratch_bytes = 100;
    program.global_scratch_align = 64;
    program.profile_scratch_bytes = 8;
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &program, NULL);
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_says(fake.log(), "cuMemAllocAsync 1536 on the default stream\n"
                            "cuMemAllocAsync 96 on the default stream\ncuLaunchKernelEx\n");
    assert_silent(fake.log(), ", 0000000000000000)\n"); /* neither pointer is null */
    assert_says(fake.log(), ")\ncuMemFreeAsync on the default stream\n"
                            "cuMemFreeAsync on the default stream\n");
    assert_int_equal(fake.alive(), 2); /* the context and the module */
    fake.rule("cuMemAllocAsync=2@2");
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("cuda-error"),
                "kernel 'widths': no 96 bytes of scratch memory: out of memory");
    assert_int_equal(fake.alive(), 2);
    lilac_gpu_unload(kernel);
    program.global_scratch_align = 512;
    kernel = lilac_gpu_load_program(m.gpu, context, &program, NULL);
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("scratch-memory"), "aligned to 512");
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

static void test_empty_grids(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = load_widths(m.gpu);
    const uint64_t arguments[6] = {16}; /* no address, but nobody looks */
    for (int i = 0; i < 3; i++) {
        lilac_gpu_launch launch = {.grid = {4, 4, 4}, .arguments = arguments, .argument_count = 6};
        launch.grid[i] = 0;
        assert_true(lilac_gpu_run(kernel, context, &launch));
    }
    assert_silent(fake.log(), "cuLaunchKernelEx");
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

/* ---- launches that are refused ----------------------------------------------------------- */

static void test_wrong_launches(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = load_widths(m.gpu);
    uint64_t arguments[6] = {0};
    lilac_gpu_launch launch = {.grid = {1, 1, 1}, .arguments = arguments, .argument_count = 5};
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("argument-count"),
                "kernel 'widths' has 6 parameters, and 5 arguments are given");
    launch.argument_count = 6;
    launch.grid[1] = 65536;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("grid-size"),
                "kernel 'widths': 65536 blocks along y, and Fake GPU 0 runs at most 65535");
    launch.grid[1] = 1;
    launch.grid[0] = UINT32_MAX;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("grid-size"), "4294967295 blocks along x");
    launch.grid[0] = 1;
    int on_the_host = 0;
    arguments[0] = (uint64_t)(uintptr_t)&on_the_host;
    assert_false(lilac_gpu_run(kernel, context, &launch));
    const char *text = said("not-device-memory");
    assert_says(text, "kernel 'widths': Fake GPU 0 does not reach the address 0x");
    assert_says(text, "of parameter 0, 'p' (is it the host's?)");
    assert_silent(fake.log(), "cuLaunchKernelEx");
    arguments[0] = 0; /* a null pointer is the kernel's business */
    assert_true(lilac_gpu_run(kernel, context, &launch));
    fake.rule("cuLaunchKernelEx=701");
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(
        said("cuda-error"),
        "kernel 'widths' cannot be launched: 1 × 1 × 1 blocks of 256 threads, 4096 bytes of "
        "shared memory, 1 blocks a cluster: fake words (CUDA_ERROR_FAKE)");
    assert_false(lilac_gpu_is_lost(m.gpu));
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

/* An error in a kernel is reported by the call that waits, with the kernels that were running. Then
 * the context is unusable, and the process cannot create another one. */
static void test_error_in_a_kernel(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *first = load_widths(m.gpu), *second = load_twice(m.gpu);
    const uint64_t arguments[6] = {0};
    const lilac_gpu_launch wide = {.grid = {1, 1, 1}, .arguments = arguments, .argument_count = 6};
    const lilac_gpu_launch narrow = {
        .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 3};
    assert_true(lilac_gpu_run(first, context, &wide));
    assert_true(lilac_gpu_synchronize(m.gpu, context)); /* all is well up to here */
    assert_true(lilac_gpu_run(second, context, &narrow));
    assert_true(lilac_gpu_synchronize(m.gpu, context));
    assert_true(lilac_gpu_run(first, context, &wide));
    assert_true(lilac_gpu_run(first, context, &wide));
    fake.rule("kernel=700");
    assert_true(lilac_gpu_run(first, context, &wide));
    assert_false(lilac_gpu_is_lost(m.gpu));
    assert_false(lilac_gpu_synchronize(m.gpu, context));
    const char *text = said("cuda-error");
    assert_says(text, "what was launched on Fake GPU 0 failed: an illegal memory access was "
                      "encountered (CUDA_ERROR_ILLEGAL_ADDRESS)");
    assert_says(text, "launched since all was last well: widths\n");
    assert_true(lilac_gpu_is_lost(m.gpu));
    uint64_t address;
    assert_false(lilac_gpu_alloc(m.gpu, context, 1, &address));
    assert_says(said("cuda-error"), "CUDA_ERROR_ILLEGAL_ADDRESS");
    lilac_gpu_unload(second);
    lilac_gpu_unload(first);
    lilac_gpu_close(m.gpu);
    for (int sharing = 0; sharing < 2; sharing++) {
        assert_null(lilac_gpu_open(m.cuda, context, 0, (lilac_gpu_sharing)sharing));
        text = said("cuda-error");
        assert_says(text, "no CUDA context on device 0, Fake GPU 0: an illegal memory access");
        assert_says(text, "the driver gives the process no new context after that");
    }
    lilac_cuda_close(m.cuda);
    /* The process and the rest of the library live on. */
    lilac_compilation compilation = {0};
    assert_true(compile(&compilation, twice, "sm_90a"));
    lilac_compilation_clear(&compilation);
}

/* Of very many kernels at work the latest are named, each once. */
static void test_names_of_kernels_at_work(void **state) {
    (void)state;
    enum { COUNT = 60 };
    machine m = open_machine("");
    lilac_gpu_kernel *kernels[COUNT];
    const lilac_gpu_launch launch = {.grid = {1, 1, 1}};
    char name[64], ptx[256];
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "kernel_with_a_name_that_is_rather_long_number_%d_", i);
        snprintf(ptx, sizeof ptx, ".version 8.6\n.target sm_90a\n.visible .entry %s()\n{ret;}\n",
                 name);
        const lilac_gpu_program program = {.ptx = ptx, .name = name, .num_warps = 1, .num_ctas = 1};
        kernels[i] = lilac_gpu_load_program(m.gpu, context, &program, NULL);
        assert_non_null(kernels[i]);
    }
    for (int i = 0; i < 3 * COUNT; i++) {
        if (i == 3 * COUNT - 1) {
            fake.rule("kernel=700");
        }
        assert_true(lilac_gpu_run(kernels[i % COUNT], context, &launch));
    }
    assert_false(lilac_gpu_synchronize(m.gpu, context));
    const char *text = said("cuda-error");
    assert_in_range(strlen(text), 100, 2500);
    assert_says(text, "launched since all was last well: …, ");
    const char *last = strstr(text, "number_59_");
    assert_non_null(last);
    assert_null(strstr(last + 1, "number_59_"));
    assert_says(text, "number_58_, ");
    for (int i = 0; i < COUNT; i++) {
        lilac_gpu_unload(kernels[i]);
    }
    close_machine(&m);
}

/* ---- loading that is refused ------------------------------------------------------------- */

static void test_refused_ptx(void **state) {
    (void)state;
    machine m = open_machine("cuModuleLoadDataEx=218");
    assert_null(lilac_gpu_load_program(m.gpu, context, &width_program, NULL));
    const char *text = said("ptx-refused");
    assert_says(text,
                "kernel 'widths': the driver's compiler for Fake GPU 0 refused the PTX: a PTX "
                "JIT compilation failed (CUDA_ERROR_INVALID_PTX)");
    assert_says(text, "it said:\nptxas fatal   : the fake compiler's words");
    fake.rule("cuModuleLoadDataEx=2");
    assert_null(lilac_gpu_load_program(m.gpu, context, &width_program, NULL));
    assert_says(said("cuda-error"), "loading kernel 'widths' on Fake GPU 0: out of memory");
    close_machine(&m);
}

static void test_load_options(void **state) {
    (void)state;
    machine m = open_machine("");
    const lilac_gpu_load_options options = {.max_registers = 64, .line_info = true};
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &width_program, &options);
    assert_says(fake.log(), "  option 0 = 64\n  option 13 = 1\n  from PTX\n");
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

static void test_unknown_kernels(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_program program = width_program;
    program.name = "width";
    assert_null(lilac_gpu_load_program(m.gpu, context, &program, NULL));
    assert_says(said("unknown-kernel"), "the PTX has no kernel 'width': fake words");
    lilac_compilation compilation = {0};
    assert_null(lilac_gpu_load(m.gpu, context, &compilation, NULL, NULL));
    assert_says(said("unknown-kernel"), "this compilation has no PTX of a kernel ''");
    assert_true(compile(&compilation, twice, "sm_90a"));
    assert_null(lilac_gpu_load(m.gpu, context, &compilation, "thrice", NULL));
    assert_says(said("unknown-kernel"), "this compilation has no PTX of a kernel 'thrice'");
    lilac_compilation_clear(&compilation);
    fake.rule("cuFuncGetAttribute=3");
    assert_null(lilac_gpu_load_program(m.gpu, context, &width_program, NULL));
    assert_says(said("cuda-error"), "of kernel 'widths': fake words");
    fake.rule("cuCtxPushCurrent_v2=3");
    assert_null(lilac_gpu_load_program(m.gpu, context, &width_program, NULL));
    assert_says(said("cuda-error"), "cannot be entered");
    close_machine(&m);
}

/* Which device takes code for which: an older one's, unless it is for that one alone. */
static void test_devices_of_code(void **state) {
    (void)state;
    const struct {
        const char *rules, *target;
        bool taken;
    } rows[] = {{"capability=90", "sm_90a", true},  {"capability=90", "sm_90", true},
                {"capability=90", "sm_80", true},   {"capability=89", "sm_90", false},
                {"capability=100", "sm_90", true},  {"capability=100", "sm_90a", false},
                {"capability=90", "sm_100a", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine m = open_machine(rows[i].rules);
        lilac_compilation compilation = {0};
        assert_true(compile(&compilation, twice, rows[i].target));
        lilac_gpu_kernel *kernel = lilac_gpu_load(m.gpu, context, &compilation, "twice", NULL);
        assert_int_equal(kernel != NULL, rows[i].taken);
        if (!rows[i].taken) {
            const char *text = said("wrong-device");
            assert_says(text, "kernel 'twice' is compiled for sm_");
            assert_says(text, "has compute capability");
            assert_says(text, "note: compile it for sm_");
        }
        lilac_gpu_unload(kernel);
        lilac_compilation_clear(&compilation);
        close_machine(&m);
    }
}

/* A kernel whose name PTX reserves is found under the one that it has there. */
static void test_reserved_name(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_compilation compilation = {0};
    assert_true(compile(&compilation,
                        "module {\n  tt.func public @WARP_SZ() {\n    tt.return\n  }\n}\n",
                        "sm_90a"));
    lilac_gpu_kernel *kernel = lilac_gpu_load(m.gpu, context, &compilation, "WARP_SZ", NULL);
    assert_non_null(kernel);
    assert_string_equal(lilac_gpu_kernel_facts_get(kernel)->name, "kernel_WARP_SZ");
    lilac_gpu_unload(kernel);
    lilac_compilation_clear(&compilation);
    close_machine(&m);
}

/* ---- time -------------------------------------------------------------------------------- */

static double last_progress;

static void take_progress(void *data, double done) {
    ++*(int *)data;
    assert_true(done > last_progress && done <= 1);
    last_progress = done;
}

/* The launches of the fake driver take 10 … 14 microseconds in a cycle. */
static void test_timing(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_kernel *kernel = load_widths(m.gpu);
    const uint64_t arguments[6] = {0};
    const lilac_gpu_launch launch = {
        .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 6};
    lilac_gpu_timing_options options;
    lilac_gpu_timing timing;
    int calls = 0;
    lilac_gpu_timing_options_init(&options, m.gpu);
    assert_int_equal(options.flush_bytes, UINT64_C(256) << 20);
    options.flush_bytes = 1 << 20;
    options.measure = 0.0025;
    options.warm_up = 0.001;
    options.progress = take_progress;
    options.data = &calls;
    last_progress = 0;
    assert_true(lilac_gpu_time(kernel, context, &launch, &options, &timing));
    assert_int_equal(timing.launches, 208); /* of 12 microseconds in 2.5 milliseconds */
    assert_true(timing.median > 11.9e-6 && timing.median < 12.1e-6);
    assert_true(timing.least > 9.9e-6 && timing.least < 10.1e-6);
    assert_true(timing.most > 13.9e-6 && timing.most < 14.1e-6);
    assert_true(timing.low >= timing.least && timing.low < timing.median);
    assert_true(timing.high <= timing.most && timing.high > timing.median);
    assert_true(calls >= 2);
    assert_true(last_progress == 1);
    options.most_launches = 0; /* fewer than three say nothing of a spread */
    options.flush_bytes = 0;
    options.progress = NULL;
    assert_true(lilac_gpu_time(kernel, context, &launch, &options, &timing));
    assert_int_equal(timing.launches, 3);
    lilac_gpu_unload(kernel);
    close_machine(&m);
}

static void test_timing_that_fails(void **state) {
    (void)state;
    const uint64_t arguments[6] = {0};
    const lilac_gpu_launch launch = {
        .grid = {1, 1, 1}, .arguments = arguments, .argument_count = 6};
    const struct {
        const char *rule, *words;
    } rows[] = {{"cuMemAlloc_v2=2", "no 1048576 bytes of memory"},
                {"cuEventCreate=2@100", "no event"},
                {"cuMemsetD8Async=2@20", "overwriting the cache"},
                {"cuEventRecord=2@30", "recording an event"},
                {"cuLaunchKernelEx=701@8", "kernel 'widths' cannot be launched"},
                {"kernel=700", "launched since all was last well: widths"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine m = open_machine("");
        lilac_gpu_kernel *kernel = load_widths(m.gpu);
        lilac_gpu_timing_options options;
        lilac_gpu_timing timing;
        lilac_gpu_timing_options_init(&options, m.gpu);
        options.flush_bytes = 1 << 20;
        fake.rule(rows[i].rule);
        assert_false(lilac_gpu_time(kernel, context, &launch, &options, &timing));
        assert_says(said("cuda-error"), rows[i].words);
        lilac_gpu_unload(kernel);
        close_machine(&m);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_results),
        TEST(test_parameters),
        TEST(test_tensor_maps),
        TEST(test_clusters),
        TEST(test_parts),
        TEST(test_large_shared_memory),
        TEST(test_scratch_memory),
        TEST(test_empty_grids),
        TEST(test_wrong_launches),
        TEST(test_error_in_a_kernel),
        TEST(test_names_of_kernels_at_work),
        TEST(test_refused_ptx),
        TEST(test_load_options),
        TEST(test_unknown_kernels),
        TEST(test_devices_of_code),
        TEST(test_reserved_name),
        TEST(test_timing),
        TEST(test_timing_that_fails),
    };
    return cmocka_run_group_tests_name("runtime_launch", tests, find_fake_driver, NULL);
}
