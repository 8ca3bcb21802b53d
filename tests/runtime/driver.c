/* The driver's library, its devices, and a device at work: contexts, memory, streams, events; and
 * what is said when each of these fails. */
#define _POSIX_C_SOURCE 200809L /* setenv */

#include "support/runtime_harness.h"

/* ---- the library ------------------------------------------------------------------------- */

static void test_no_library(void **state) {
    (void)state;
    assert_null(lilac_cuda_open(context, "libno-such-driver.so.1"));
    const char *text = said("no-cuda-library");
    assert_says(text, "the CUDA driver cannot be loaded");
    assert_says(text, "libno-such-driver.so.1");
    assert_says(text, "LILAC_LIBCUDA");
    assert_silent(fake.log(), "cu");
}

static void test_another_library(void **state) {
    (void)state;
    assert_null(lilac_cuda_open(context, "libm.so.6"));
    assert_says(said("no-cuda-library"), "libm.so.6 has no function cu");
}

static void test_library_by_environment(void **state) {
    (void)state;
    setenv("LILAC_LIBCUDA", "libno-such-driver.so.2", 1);
    assert_null(lilac_cuda_open(context, NULL));
    assert_says(said("no-cuda-library"), "libno-such-driver.so.2");
    setenv("LILAC_LIBCUDA", LILAC_FAKE_CUDA, 1);
    lilac_cuda *cuda = lilac_cuda_open(context, NULL);
    assert_non_null(cuda);
    assert_int_equal(lilac_cuda_version(cuda), 13000);
    lilac_cuda_close(cuda);
    unsetenv("LILAC_LIBCUDA");
}

static void test_driver_that_does_not_start(void **state) {
    (void)state;
    fake.reset("cuInit=803");
    assert_null(lilac_cuda_open(context, LILAC_FAKE_CUDA));
    assert_says(said("cuda-error"), "the CUDA driver does not start: fake words (CUDA_ERROR_FAKE)");
    fake.reset("cuInit=803 wordless=1");
    assert_null(lilac_cuda_open(context, LILAC_FAKE_CUDA));
    assert_says(said("cuda-error"), "(CUresult 803)");
    fake.reset("cuDeviceGetCount=3");
    assert_null(lilac_cuda_open(context, LILAC_FAKE_CUDA));
    assert_says(said("cuda-error"), "CUDA_ERROR_FAKE");
}

/* ---- devices ----------------------------------------------------------------------------- */

static void test_no_device(void **state) {
    (void)state;
    const char *rules[] = {"devices=0", "cuInit=100"}; /* as drivers say it in either way */
    for (size_t i = 0; i < 2; i++) {
        lilac_cuda *cuda = open_cuda(rules[i]);
        assert_int_equal(lilac_cuda_device_count(cuda), 0);
        assert_null(lilac_gpu_open(cuda, context, 0, LILAC_GPU_OWN));
        assert_says(said("no-cuda-device"), "there is no device 0: the CUDA driver finds 0");
        lilac_cuda_close(cuda);
    }
}

static void test_device_facts(void **state) {
    (void)state;
    lilac_cuda *cuda = open_cuda("devices=2");
    lilac_cuda_device device;
    assert_int_equal(lilac_cuda_device_count(cuda), 2);
    assert_true(lilac_cuda_device_get(cuda, context, 1, &device));
    assert_string_equal(device.name, "Fake GPU 1");
    assert_int_equal(device.ordinal, 1);
    assert_int_equal(device.capability, 90);
    assert_string_equal(device.arch->name, "sm_90a");
    assert_int_equal(device.memory_bytes, UINT64_C(80) << 30);
    assert_int_equal(device.l2_bytes, 50 << 20);
    assert_int_equal(device.multiprocessors, 132);
    assert_int_equal(device.shared_bytes, 232448);
    assert_int_equal(device.max_threads, 1024);
    assert_int_equal(device.max_grid[0], INT32_MAX);
    assert_int_equal(device.max_grid[2], 65535);
    assert_true(device.bandwidth > 1.0239e12 && device.bandwidth < 1.0241e12);
    assert_false(lilac_cuda_device_get(cuda, context, 2, &device));
    assert_says(said("no-cuda-device"), "there is no device 2: the CUDA driver finds 2");
    const char *calls[] = {"cuDeviceGet=101", "cuDeviceGetName=101", "cuDeviceTotalMem_v2=101",
                           "cuDeviceGetAttribute=101@4"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake.reset(calls[i]);
        assert_false(lilac_cuda_device_get(cuda, context, 0, &device));
        assert_says(said("cuda-error"), "the CUDA driver does not describe device 0: fake words");
    }
    lilac_cuda_close(cuda);
}

/* Every device has a row to compile for: its own, or the newest whose PTX it takes; code for one
 * device only (sm_90a, sm_100a) is for that one. */
static void test_targets(void **state) {
    (void)state;
    const struct {
        const char *rules, *target;
    } rows[] = {
        {"capability=80", "sm_80"},    {"capability=86", "sm_86"},  {"capability=87", "sm_86"},
        {"capability=89", "sm_89"},    {"capability=90", "sm_90a"}, {"capability=100", "sm_100a"},
        {"capability=103", "sm_103a"}, {"capability=110", "sm_90"}, {"capability=120", "sm_120a"},
        {"capability=121", "sm_121a"}, {"capability=75", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        lilac_cuda *cuda = open_cuda(rows[i].rules);
        lilac_cuda_device device;
        assert_true(lilac_cuda_device_get(cuda, context, 0, &device));
        if (rows[i].target == NULL) {
            assert_null(device.arch);
        } else {
            assert_string_equal(device.arch->name, rows[i].target);
        }
        lilac_cuda_close(cuda);
    }
}

/* ---- contexts ---------------------------------------------------------------------------- */

static void test_contexts(void **state) {
    (void)state;
    lilac_cuda *cuda = open_cuda("");
    lilac_gpu *own = lilac_gpu_open(cuda, context, 0, LILAC_GPU_OWN);
    lilac_gpu *primary = lilac_gpu_open(cuda, context, 0, LILAC_GPU_PRIMARY);
    assert_non_null(own);
    assert_non_null(primary);
    assert_string_equal(lilac_gpu_device(own)->name, "Fake GPU 0");
    assert_string_equal(fake.log(), "cuCtxCreate_v2\ncuDevicePrimaryCtxRetain\n");
    assert_int_equal(fake.depth(), 0);
    assert_true(lilac_gpu_synchronize(own, context));
    assert_true(lilac_gpu_synchronize(primary, context));
    lilac_gpu_close(primary);
    lilac_gpu_close(own);
    lilac_gpu_close(NULL);
    assert_says(fake.log(), "cuDevicePrimaryCtxRelease_v2\ncuCtxDestroy_v2\n");
    const char *rules[] = {"cuCtxCreate_v2=2", "cuDevicePrimaryCtxRetain=2", "cuDeviceGet=2@2"};
    for (int i = 0; i < 3; i++) {
        fake.reset(rules[i]);
        assert_null(lilac_gpu_open(cuda, context, 0, i == 1 ? LILAC_GPU_PRIMARY : LILAC_GPU_OWN));
        assert_says(said("cuda-error"), "no CUDA context on device 0, Fake GPU 0: out of memory "
                                        "(CUDA_ERROR_OUT_OF_MEMORY)");
    }
    lilac_cuda_close(cuda);
}

/* ---- memory ------------------------------------------------------------------------------ */

static void test_memory(void **state) {
    (void)state;
    machine m = open_machine("");
    const char out[] = "lilac and more";
    char in[sizeof out] = "";
    uint64_t address = 0, empty = 0;
    assert_true(lilac_gpu_alloc(m.gpu, context, 1000, &address));
    assert_true(lilac_gpu_alloc(m.gpu, context, 0, &empty));
    assert_true(address != 0 && empty != 0 && address != empty);
    assert_true(lilac_gpu_write(m.gpu, context, address + 3, out, sizeof out));
    assert_true(lilac_gpu_read(m.gpu, context, in, address + 3, sizeof in));
    assert_string_equal(in, out);
    assert_true(lilac_gpu_fill(m.gpu, context, address + 8, 'x', 3));
    assert_true(lilac_gpu_read(m.gpu, context, in, address + 3, sizeof in));
    assert_string_equal(in, "lilacxxxd more");
    /* Nothing is copied, and nobody asked, for no bytes. */
    assert_true(lilac_gpu_write(m.gpu, context, empty, NULL, 0));
    assert_true(lilac_gpu_read(m.gpu, context, NULL, empty, 0));
    assert_true(lilac_gpu_fill(m.gpu, context, empty, 1, 0));
    assert_true(lilac_gpu_free(m.gpu, context, 0));
    assert_false(lilac_gpu_write(m.gpu, context, address, out, 1001));
    assert_says(said("cuda-error"), "copying 1001 bytes to 0x");
    assert_false(lilac_gpu_read(m.gpu, context, in, 16, 5));
    assert_says(said("cuda-error"), "copying 5 bytes from 0x10 on Fake GPU 0: fake words");
    assert_false(lilac_gpu_fill(m.gpu, context, 16, 1, 5));
    assert_says(said("cuda-error"), "filling 5 bytes at 0x10");
    assert_false(lilac_gpu_free(m.gpu, context, address + 1));
    assert_says(said("cuda-error"), "freeing memory");
    assert_true(lilac_gpu_free(m.gpu, context, address));
    fake.rule("cuMemAlloc_v2=2");
    assert_false(lilac_gpu_alloc(m.gpu, context, UINT64_C(1) << 40, &address));
    assert_int_equal(address, 0);
    assert_says(said("cuda-error"),
                "no 1099511627776 bytes of memory on Fake GPU 0: out of memory");
    assert_false(lilac_gpu_is_lost(m.gpu));
    close_machine(&m); /* which takes `empty` with it */
}

/* ---- streams and events ------------------------------------------------------------------ */

static void test_streams_and_events(void **state) {
    (void)state;
    machine m = open_machine("");
    lilac_gpu_stream stream;
    lilac_gpu_event from, to;
    double seconds = -1;
    assert_true(lilac_gpu_stream_create(m.gpu, context, &stream));
    assert_true(lilac_gpu_event_create(m.gpu, context, &from));
    assert_true(lilac_gpu_event_create(m.gpu, context, &to));
    assert_true(lilac_gpu_event_record(m.gpu, context, from, stream));
    assert_true(lilac_gpu_event_record(m.gpu, context, to, stream));
    assert_true(lilac_gpu_event_elapsed(m.gpu, context, from, to, &seconds));
    assert_true(seconds == 0);
    assert_true(lilac_gpu_stream_synchronize(m.gpu, context, stream));
    fake.rule("cuStreamCreate=2 cuEventCreate=2 cuEventRecord=2 cuEventElapsedTime=2 "
              "cuStreamSynchronize=2");
    lilac_gpu_stream no_stream;
    lilac_gpu_event no_event;
    assert_false(lilac_gpu_stream_create(m.gpu, context, &no_stream));
    assert_null(no_stream);
    assert_says(said("cuda-error"), "no stream on Fake GPU 0: out of memory");
    assert_false(lilac_gpu_event_create(m.gpu, context, &no_event));
    assert_null(no_event);
    assert_says(said("cuda-error"), "no event on Fake GPU 0");
    assert_false(lilac_gpu_event_record(m.gpu, context, from, stream));
    assert_says(said("cuda-error"), "recording an event");
    assert_false(lilac_gpu_event_elapsed(m.gpu, context, from, to, &seconds));
    assert_says(said("cuda-error"), "what was launched before an event on Fake GPU 0 failed");
    assert_false(lilac_gpu_stream_synchronize(m.gpu, context, stream));
    assert_says(said("cuda-error"), "what was launched on a stream of Fake GPU 0 failed");
    lilac_gpu_event_destroy(m.gpu, to);
    lilac_gpu_event_destroy(m.gpu, from);
    lilac_gpu_event_destroy(m.gpu, NULL);
    lilac_gpu_stream_destroy(m.gpu, stream);
    lilac_gpu_stream_destroy(m.gpu, NULL);
    close_machine(&m);
}

/* A context that cannot be entered is an error of every call, and none of them leaves it pushed. */
static void test_context_that_cannot_be_entered(void **state) {
    (void)state;
    machine m = open_machine("");
    uint64_t address;
    double seconds;
    lilac_gpu_stream stream;
    lilac_gpu_event event;
    fake.rule("cuCtxPushCurrent_v2=709");
    for (int call = 0; call < 11; call++) {
        const bool good = call == 0   ? lilac_gpu_synchronize(m.gpu, context)
                          : call == 1 ? lilac_gpu_alloc(m.gpu, context, 1, &address)
                          : call == 2 ? lilac_gpu_free(m.gpu, context, 1)
                          : call == 3 ? lilac_gpu_write(m.gpu, context, 1, "", 1)
                          : call == 4 ? lilac_gpu_read(m.gpu, context, &address, 1, 1)
                          : call == 5 ? lilac_gpu_fill(m.gpu, context, 1, 1, 1)
                          : call == 6 ? lilac_gpu_stream_create(m.gpu, context, &stream)
                          : call == 7 ? lilac_gpu_event_create(m.gpu, context, &event)
                          : call == 8 ? lilac_gpu_event_record(m.gpu, context, NULL, NULL)
                          : call == 9
                              ? lilac_gpu_stream_synchronize(m.gpu, context, NULL)
                              : lilac_gpu_event_elapsed(m.gpu, context, NULL, NULL, &seconds);
        assert_false(good);
        assert_says(said("cuda-error"), "the CUDA context of Fake GPU 0 cannot be entered");
    }
    assert_true(lilac_gpu_is_lost(m.gpu));
    close_machine(&m);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_no_library),
        TEST(test_another_library),
        TEST(test_library_by_environment),
        TEST(test_driver_that_does_not_start),
        TEST(test_no_device),
        TEST(test_device_facts),
        TEST(test_targets),
        TEST(test_contexts),
        TEST(test_memory),
        TEST(test_streams_and_events),
        TEST(test_context_that_cannot_be_entered),
    };
    return cmocka_run_group_tests_name("runtime_driver", tests, find_fake_driver, NULL);
}
