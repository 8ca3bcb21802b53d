/* lower: operations on tensors of 8-bit floats that need no conversion: absolute values and
 * prints. */
#include "support/lower_harness.h"

#define N 256

static const char *const types[] = {"f8E5M2", "f8E4M3FN"};

/* Every bit pattern of a type, in memory of as many bytes. */
static void open_patterns(harness *h, const char *type, const char *operation, uint8_t *bytes) {
    lilac_text text = {0};
    lilac_text_printf(&text,
                      "module {\n  tt.func public @k(%%p: !tt.ptr<%s>) {\n"
                      "    %%r = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32>\n"
                      "    %%s = tt.splat %%p : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
                      "    %%a = tt.addptr %%s, %%r : tensor<%dx!tt.ptr<%s>>, tensor<%dxi32>\n"
                      "    %%x = tt.load %%a : tensor<%dx!tt.ptr<%s>>\n",
                      type, N, N, type, N, type, N, type, N, N, type);
    lilac_text_printf(&text, operation, N, type, N, type);
    lilac_text_puts(&text, "    tt.return\n  }\n}\n");
    harness_open(h, lilac_text_get(&text), 4, true);
    lilac_text_clear(&text);
    for (int i = 0; i < N; i++) {
        bytes[i] = (uint8_t)i;
    }
}

/* The sign bit is cleared and nothing else changes. */
static void magnitudes(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        harness h;
        uint8_t bytes[N];
        open_patterns(&h, types[t],
                      "    %%y = math.absf %%x : tensor<%dx%s>\n"
                      "    tt.store %%a, %%y : tensor<%dx!tt.ptr<%s>>\n",
                      bytes);
        harness_run(&h, 1, (buffer[]){{bytes, N}}, 1, NULL, 0);
        for (int i = 0; i < N; i++) {
            assert_int_equal(bytes[i], i & 0x7F);
        }
        harness_close(&h);
    }
}

/* Triton prints the bits as an unsigned integer. */
static void prints(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        harness h;
        uint8_t bytes[N];
        open_patterns(&h, types[t],
                      "    tt.print \" x: \" {hex = false, isSigned = array<i32: 0>} : %%x : "
                      "tensor<%dx%s>\n",
                      bytes);
        lilac_sim_buffer place = {.name = "p", .bytes = bytes, .size = N};
        lilac_sim_place(&place, 1);
        lilac_text printed = {0};
        lilac_sim_launch launch = {.kernel = h.simt->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = &place.address,
                                   .argument_count = 1,
                                   .buffers = &place,
                                   .buffer_count = 1,
                                   .threads = 1,
                                   .printed = &printed};
        if (!lilac_sim_run(h.context, &launch, &h.counters)) {
            print_diagnostics(h.context);
            fail_msg("the kernel trapped");
        }
        for (int i = 0; i < N; i++) {
            char line[64];
            snprintf(line, sizeof line, "pid (0, 0, 0) idx (%3d) x: %d\n", i, i);
            assert_non_null(strstr(lilac_text_get(&printed), line));
        }
        lilac_text_clear(&printed);
        harness_close(&h);
    }
}

/* Arithmetic is refused, as Triton refuses it. */
static void arithmetic_is_refused(void **state) {
    (void)state;
    harness h;
    assert_false(harness_try(&h,
                             "module {\n  tt.func public @k(%p: !tt.ptr<f8E5M2>) {\n"
                             "    %x = tt.load %p : !tt.ptr<f8E5M2>\n"
                             "    %y = arith.negf %x : f8E5M2\n"
                             "    tt.store %p, %y : !tt.ptr<f8E5M2>\n"
                             "    tt.return\n  }\n}\n",
                             4, true, NULL));
    assert_string_equal(lilac_diagnostics(h.context)->id, "unsupported-type");
    harness_close(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(magnitudes), cmocka_unit_test(prints),
                                       cmocka_unit_test(arithmetic_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
