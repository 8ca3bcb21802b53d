/* The runtime on a real driver and GPU: what the fake driver of the other tests can only pretend.
 * Without a GPU this is a visible skip (exit status 77); any other error is a failure. */
#define _POSIX_C_SOURCE 200809L /* posix_spawn, clock_gettime */

#include "support/runtime_said.h"

#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static struct {
    lilac_cuda *cuda;
    lilac_gpu *gpu;
} real;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* A kernel of the tests: `head` is what stands between its name and its body. */
static const char ptx_start[] = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                                ".extern .shared .align 16 .b8 global_smem[];\n";
static const char parameters[] = "(.param .u64 .ptr .global .align 1 out,\n"
                                 " .param .u64 .ptr .global .align 1 global_scratch,\n"
                                 " .param .u64 .ptr .global .align 1 profile_scratch)\n";

/* out[block] = f(block) by the block's first thread; `body` leaves the value in %value. */
static const char prologue[] = "{\n\t.reg .b32 %value, %block, %thread, %t;\n"
                               "\t.reg .b64 %out, %offset, %scratch;\n\t.reg .pred %first;\n"
                               "\tld.param.b64 %out, [out];\n"
                               "\tmov.u32 %block, %ctaid.x;\n\tmov.u32 %thread, %tid.x;\n"
                               "\tmul.wide.u32 %offset, %block, 4;\n"
                               "\tadd.s64 %out, %out, %offset;\n"
                               "\tsetp.eq.u32 %first, %thread, 0;\n";
static const char epilogue[] = "\t@%first st.global.b32 [%out], %value;\n\tret;\n}\n";

static const lilac_simt_parameter out_parameter = {
    .name = "out", .type = LILAC_SIMT_I64, .is_pointer = true};

static lilac_gpu_kernel *load(lilac_gpu_program program, const char *directives, const char *body,
                              const lilac_gpu_load_options *options) {
    lilac_text text = {0};
    lilac_text_printf(&text, "%s.visible .entry test%s%s%s%s%s", ptx_start, parameters, directives,
                      prologue, body, epilogue);
    program.ptx = lilac_text_get(&text);
    program.name = "test";
    program.parameter_count = 1;
    program.parameters = &out_parameter;
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(real.gpu, context, &program, options);
    lilac_text_clear(&text);
    return kernel;
}

enum { MOST_BLOCKS = 64 };

/* Runs it over that many programs; what the blocks wrote is in `values`. */
static bool run(lilac_gpu_kernel *kernel, uint32_t programs, uint32_t values[MOST_BLOCKS]) {
    uint64_t out = 0;
    const lilac_gpu_launch launch = {
        .grid = {programs, 1, 1}, .arguments = &out, .argument_count = 1};
    const bool good = lilac_gpu_alloc(real.gpu, context, 4 * MOST_BLOCKS, &out) &&
                      lilac_gpu_fill(real.gpu, context, out, 0xFF, 4 * MOST_BLOCKS) &&
                      lilac_gpu_run(kernel, context, &launch) &&
                      lilac_gpu_synchronize(real.gpu, context) &&
                      lilac_gpu_read(real.gpu, context, values, out, 4 * MOST_BLOCKS);
    return lilac_gpu_is_lost(real.gpu) ? false : lilac_gpu_free(real.gpu, context, out) && good;
}

static void test_blocks(void **state) {
    (void)state;
    uint32_t values[MOST_BLOCKS];
    lilac_gpu_kernel *kernel =
        load((lilac_gpu_program){.num_warps = 4, .num_ctas = 1}, ".reqntid 128\n",
             "\tmov.u32 %t, %ntid.x;\n\tadd.u32 %value, %t, %block;\n", NULL);
    assert_nothing_said();
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(kernel);
    assert_in_range(facts->registers, 4, 64);
    assert_true(facts->spills_known);
    assert_int_equal(facts->spill_stores, 0);
    assert_true(run(kernel, 50, values));
    for (uint32_t i = 0; i < MOST_BLOCKS; i++) {
        assert_int_equal(values[i], i < 50 ? 128 + i : UINT32_MAX);
    }
    assert_true(run(kernel, 0, values)); /* no blocks: nothing happens */
    assert_int_equal(values[0], UINT32_MAX);
    lilac_gpu_unload(kernel);
}

static void test_clusters(void **state) {
    (void)state;
    const uint32_t sizes[] = {2, 8, 16};
    for (size_t k = 0; k < 3; k++) {
        const uint32_t size = sizes[k];
        uint32_t values[MOST_BLOCKS];
        char directives[128];
        snprintf(directives, sizeof directives,
                 ".reqntid 32\n.explicitcluster\n.reqnctapercluster %u, 1, 1\n", size);
        lilac_gpu_kernel *kernel =
            load((lilac_gpu_program){.num_warps = 1, .num_ctas = size}, directives,
                 "\tmov.u32 %value, %cluster_ctarank;\n\tmov.u32 %t, %cluster_nctarank;\n"
                 "\tmad.lo.u32 %value, %t, 100, %value;\n",
                 NULL);
        assert_nothing_said();
        assert_true(run(kernel, MOST_BLOCKS / size, values));
        for (uint32_t i = 0; i < MOST_BLOCKS; i++) {
            assert_int_equal(values[i], 100 * size + i % size);
        }
        lilac_gpu_unload(kernel);
    }
}

static void test_shared_memory(void **state) {
    (void)state;
    const uint32_t most = lilac_gpu_device(real.gpu)->shared_bytes;
    uint32_t values[MOST_BLOCKS];
    char body[512];
    snprintf(body, sizeof body,
             "\t.reg .b32 %%s;\n\tmov.u32 %%s, global_smem;\n\tadd.u32 %%s, %%s, %u;\n"
             "\t@%%first st.shared.b32 [%%s], %%block;\n\tbar.sync 0;\n"
             "\tld.shared.b32 %%value, [%%s];\n",
             most - 4);
    lilac_gpu_program program = {.num_warps = 4, .num_ctas = 1, .shared_bytes = most};
    lilac_gpu_kernel *kernel = load(program, ".reqntid 128\n", body, NULL);
    assert_nothing_said();
    assert_int_equal(lilac_gpu_kernel_facts_get(kernel)->shared_bytes, most);
    assert_true(run(kernel, 7, values));
    assert_int_equal(values[6], 6);
    lilac_gpu_unload(kernel);
    program.shared_bytes = most + 1;
    assert_null(load(program, ".reqntid 128\n", body, NULL));
    assert_says(said("too-much-shared-memory"), "kernel 'test' wants");
}

/* Every block writes its number at its place in the scratch memory and reads it again. */
static void test_scratch_memory(void **state) {
    (void)state;
    uint32_t values[MOST_BLOCKS];
    const lilac_gpu_program program = {
        .num_warps = 1, .num_ctas = 1, .global_scratch_bytes = 100, .global_scratch_align = 128};
    lilac_gpu_kernel *kernel =
        load(program, ".reqntid 32\n",
             "\tld.param.b64 %scratch, [global_scratch];\n\tmul.wide.u32 %offset, %block, 128;\n"
             "\tadd.s64 %scratch, %scratch, %offset;\n\tst.global.b32 [%scratch], %block;\n"
             "\tld.global.b32 %value, [%scratch];\n\tadd.u32 %value, %value, 5;\n",
             NULL);
    assert_nothing_said();
    assert_true(run(kernel, 40, values));
    assert_int_equal(values[0], 5);
    assert_int_equal(values[39], 44);
    lilac_gpu_unload(kernel);
}

static void test_refused_ptx(void **state) {
    (void)state;
    const lilac_gpu_program program = {.num_warps = 1, .num_ctas = 1};
    assert_null(load(program, "", "\tno.such.instruction %value;\n", NULL));
    const char *text = said("ptx-refused");
    assert_says(text, "refused the PTX: a PTX JIT compilation failed (CUDA_ERROR_INVALID_PTX)");
    assert_says(text, "it said:\nptxas");
    assert_says(text, "Unknown modifier '.such'");
    assert_silent(text, "CUresult");
    assert_false(lilac_gpu_is_lost(real.gpu));
}

static void test_ptxas(void **state) {
    (void)state;
    lilac_text path = {0};
    const bool found = lilac_ptxas_find(&path);
    lilac_text_clear(&path);
    if (!found) {
        print_message("skipped: there is no ptxas here\n");
        skip();
    }
    uint32_t values[MOST_BLOCKS];
    const lilac_gpu_load_options options = {.compiler = LILAC_GPU_PTXAS};
    lilac_gpu_kernel *kernel = load((lilac_gpu_program){.num_warps = 1, .num_ctas = 1}, "",
                                    "\tmov.u32 %value, 7;\n", &options);
    assert_nothing_said();
    assert_true(lilac_gpu_kernel_facts_get(kernel)->spills_known);
    assert_true(run(kernel, 1, values));
    assert_int_equal(values[0], 7);
    lilac_gpu_unload(kernel);
}

static void test_pointers_of_the_host(void **state) {
    (void)state;
    uint32_t here = 0;
    const uint64_t address = (uint64_t)(uintptr_t)&here;
    lilac_gpu_kernel *kernel = load((lilac_gpu_program){.num_warps = 1, .num_ctas = 1}, "",
                                    "\tmov.u32 %value, 7;\n", NULL);
    const lilac_gpu_launch launch = {.grid = {1, 1, 1}, .arguments = &address, .argument_count = 1};
    assert_false(lilac_gpu_run(kernel, context, &launch));
    assert_says(said("not-device-memory"), "of parameter 0, 'out' (is it the host's?)");
    assert_true(lilac_gpu_synchronize(real.gpu, context)); /* nothing has happened */
    lilac_gpu_unload(kernel);
}

static void test_time(void **state) {
    (void)state;
    uint64_t out;
    lilac_gpu_timing timing;
    lilac_gpu_timing_options options;
    lilac_gpu_stream stream;
    lilac_gpu_kernel *kernel = load((lilac_gpu_program){.num_warps = 1, .num_ctas = 1}, "",
                                    "\tmov.u32 %value, 7;\n", NULL);
    assert_true(lilac_gpu_alloc(real.gpu, context, 4 * MOST_BLOCKS, &out));
    assert_true(lilac_gpu_stream_create(real.gpu, context, &stream));
    const lilac_gpu_launch launch = {
        .grid = {1, 1, 1}, .arguments = &out, .argument_count = 1, .stream = stream};
    lilac_gpu_timing_options_init(&options, real.gpu);
    assert_true(lilac_gpu_time(kernel, context, &launch, &options, &timing));
    assert_in_range(timing.launches, 3, 1000);
    assert_true(timing.least > 0 && timing.least <= timing.low && timing.low <= timing.median);
    assert_true(timing.median <= timing.high && timing.high <= timing.most);
    assert_true(timing.median < 1e-3);
    print_message("an empty kernel: %.2f µs, %.2f to %.2f\n", 1e6 * timing.median, 1e6 * timing.low,
                  1e6 * timing.high);
    const double begin = now();
    for (int i = 0; i < 500; i++) {
        assert_true(lilac_gpu_run(kernel, context, &launch));
    }
    print_message("a launch takes the host %.2f µs\n", 1e6 * (now() - begin) / 500);
    assert_true(lilac_gpu_stream_synchronize(real.gpu, context, stream));
    lilac_gpu_stream_destroy(real.gpu, stream);
    assert_true(lilac_gpu_free(real.gpu, context, out));
    lilac_gpu_unload(kernel);
}

static void test_primary_context(void **state) {
    (void)state;
    lilac_gpu *other = lilac_gpu_open(real.cuda, context, 0, LILAC_GPU_PRIMARY);
    assert_nothing_said();
    uint64_t address;
    assert_true(lilac_gpu_alloc(other, context, 16, &address));
    assert_true(lilac_gpu_free(other, context, address));
    lilac_gpu_close(other);
}

/* ---- errors in kernels ------------------------------------------------------------------- */

static const struct kernel_error {
    const char *body, *name;
} kernel_errors[] = {
    {"\tmov.b64 %out, 0;\n\tmov.u32 %value, 7;\n", "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"\tmov.b64 %out, 0x7fffffff0000;\n\tmov.u32 %value, 7;\n", "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"\tadd.s64 %out, %out, 1;\n\tmov.u32 %value, 7;\n", "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {"\tmov.u32 %value, 7;\n\ttrap;\n", "CUDA_ERROR_LAUNCH_FAILED"},
};

/* What a process sees of one: the driver's words and the kernel's name; then there is no context
 * to be had, and everything else goes on. */
static void fail_in_kernel(const struct kernel_error *error) {
    uint32_t values[MOST_BLOCKS];
    const lilac_gpu_program program = {.num_warps = 1, .num_ctas = 1};
    lilac_gpu_kernel *kernel = load(program, "", error->body, NULL);
    assert_nothing_said();
    assert_false(run(kernel, 1, values));
    const char *text = said("cuda-error");
    assert_says(text, error->name);
    assert_says(text, "launched since all was last well: test\n");
    assert_true(lilac_gpu_is_lost(real.gpu));
    lilac_gpu_unload(kernel);
    lilac_gpu_close(real.gpu);
    real.gpu = lilac_gpu_open(real.cuda, context, 0, LILAC_GPU_OWN);
    if (real.gpu == NULL) { /* drivers may learn to; then it must work */
        assert_says(said("cuda-error"), "gives the process no new context");
        return;
    }
    kernel = load(program, "", "\tmov.u32 %value, 7;\n", NULL);
    assert_nothing_said();
    assert_true(run(kernel, 1, values));
    assert_int_equal(values[0], 7);
    lilac_gpu_unload(kernel);
}

/* This program, which runs one of the errors and nothing else: each spoils the GPU for its
 * process. */
static const char *own_path;
static const struct kernel_error *chosen;

static void test_chosen_error(void **state) {
    (void)state;
    fail_in_kernel(chosen);
}

static void test_errors_in_kernels(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kernel_errors / sizeof *kernel_errors; i++) {
        char number[8];
        char *words[] = {(char *)own_path, number, NULL};
        pid_t child;
        int status = 0;
        snprintf(number, sizeof number, "%zu", i);
        assert_int_equal(posix_spawn(&child, own_path, NULL, NULL, words, environ), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_true(lilac_gpu_synchronize(real.gpu, context)); /* of this process */
}

static int begin_real(void **state) {
    (void)state;
    context = lilac_context_create();
    return 0;
}

static int end_real(void **state) {
    (void)state;
    assert_nothing_said();
    lilac_context_destroy(context);
    return 0;
}

/* Is there a GPU that the tests' PTX is for? 0: yes; else the exit status. */
static int find_gpu(void) {
    int status = 0;
    lilac_cuda_device device = {0};
    context = lilac_context_create();
    real.cuda = lilac_cuda_open(context, NULL);
    const bool found = real.cuda != NULL && lilac_cuda_device_get(real.cuda, context, 0, &device);
    if (!found) {
        const lilac_diagnostic *why = lilac_diagnostics(context);
        const bool none =
            strcmp(why->id, "no-cuda-library") == 0 || strcmp(why->id, "no-cuda-device") == 0;
        printf("%s: %s\n", none ? "skipped" : "failed", why->message);
        status = none ? 77 : 1;
    } else if (device.capability != 90) {
        printf("skipped: %s is none of compute capability 9.0\n", device.name);
        status = 77;
    } else {
        const double begin = now();
        real.gpu = lilac_gpu_open(real.cuda, context, 0, LILAC_GPU_OWN);
        status = real.gpu != NULL ? 0 : 1;
        printf("opened in %.0f ms: ", 1e3 * (now() - begin));
        printf("%s, %u multiprocessors, %.1f GiB, %.2f TB/s, L2 %.0f MiB, CUDA %u\n", device.name,
               device.multiprocessors, (double)device.memory_bytes * 0x1p-30,
               1e-12 * device.bandwidth, (double)device.l2_bytes * 0x1p-20,
               lilac_cuda_version(real.cuda));
    }
    if (status != 0) {
        lilac_cuda_close(real.cuda);
    }
    lilac_context_destroy(context);
    return status;
}

int main(int argc, char **argv) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_real, end_real)
    const struct CMUnitTest tests[] = {
        TEST(test_blocks),
        TEST(test_clusters),
        TEST(test_shared_memory),
        TEST(test_scratch_memory),
        TEST(test_refused_ptx),
        TEST(test_ptxas),
        TEST(test_time),
        TEST(test_pointers_of_the_host),
        TEST(test_primary_context),
        TEST(test_errors_in_kernels),
    };
    const int status = find_gpu();
    if (status != 0) {
        return status;
    }
    const struct CMUnitTest one[] = {TEST(test_chosen_error)};
    own_path = argv[0];
    chosen = &kernel_errors[argc > 1 ? atoi(argv[1]) % 4 : 0];
    const int failed = argc > 1 ? cmocka_run_group_tests_name("error in a kernel", one, NULL, NULL)
                                : cmocka_run_group_tests_name("runtime_gpu", tests, NULL, NULL);
    lilac_gpu_close(real.gpu);
    lilac_cuda_close(real.cuda);
    return failed != 0;
}
