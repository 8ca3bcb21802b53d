/* Matrix instructions in the text of SIMT IR: they read back, and each rule of the verifier is named
 * with the operand, what was found and what is allowed. Then the builder's functions. */

#include <lilac/simt_matrix.h>

#include "support/test.h"

/* A module around one line, on a device, with this many warps. */
static lilac_simt_module *read_line(lilac_context *context, const char *device, uint32_t warps,
                                    const char *line) {
    char text[4096];
    snprintf(text, sizeof text,
             "simt.module target \"%s\" {\n"
             "  kernel @k(%%r: i32, %%d: i64, %%f: f32, %%g: f64, %%h: f16x2) warps %u ctas 1 "
             "shared 65536 {\n"
             "    %%r = param 0 : i32\n    %%d = param 1 : i64\n    %%f = param 2 : f32\n"
             "    %%g = param 3 : f64\n    %%h = param 4 : f16x2\n    %%p = const true : i1\n"
             "    %s\n    return\n  }\n}\n",
             device, warps, line);
    uint32_t source = lilac_source_add(context, "test", text, strlen(text));
    return lilac_simt_read(context, source);
}

/* ---- text ------------------------------------------------------------------------------- */

static const char *const lines[] = {
    "%0, %1, %2, %3 = mma %r, %r, %r, %r, %h, %h, %f, %f, %f, %f : f32, f32, f32, f32 "
    "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 16}",
    "%0, %1 = mma %r, %h, %r, %h, %h : f16x2, f16x2 {a = f16, b = f16, d = f16, m = 16, n = 8, k = "
    "8}",
    "%0, %1 = mma %g, %g, %g, %g : f64, f64 {a = f64, b = f64, d = f64, m = 8, n = 8, k = 4}",
    "%0, %1 = mma %r, %r, %r, %r : i32, i32 {a = s8, b = u8, d = s32, m = 8, n = 8, k = 16, "
    "satfinite}",
    "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %p : f32, f32, f32, f32 {a = bf16, b = bf16, d "
    "= f32, m = 64, n = 8, k = 16, transpose_a, transpose_b, negate_a, negate_b}",
    "%0, %1 = wgmma %h, %h, %r, %h, %r, %f, %d, %p : f16x2, f16x2 {a = e4m3, b = e5m2, d = f16, m "
    "= 64, n = 8, k = 32, registers}",
    "%0, %1 = wgmma %h, %h, %r, %h, %r, %f, %d, %p : f16x2, f16x2 {a = e4m3, b = e5m2, d = f16, m "
    "= 64, n = 8, k = 32, registers, bytes = 64 to 4096}",
    "%0, %1 = wgmma.wait %f, %r : f32, i32 {groups = 3}",
    "wgmma.wait",
    "wgmma.fence",
    "wgmma.commit",
};

static void test_text_reads_back(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
        lilac_context *context = lilac_context_create();
        lilac_text first = {0}, second = {0};
        lilac_simt_module *module = read_line(context, "sm_90a", 4, lines[k]);
        assert_non_null(module);
        if (!lilac_simt_verify(module)) {
            fail_msg("%s: %s", lines[k], lilac_diagnostics(context)->message);
        }
        lilac_simt_print(&first, module);
        assert_non_null(strstr(lilac_text_get(&first), lines[k]));
        uint32_t source = lilac_source_add(context, "again", lilac_text_get(&first), first.length);
        lilac_simt_module *again = lilac_simt_read(context, source);
        assert_non_null(again);
        lilac_simt_print(&second, again);
        assert_string_equal(lilac_text_get(&first), lilac_text_get(&second));
        lilac_text_clear(&first);
        lilac_text_clear(&second);
        lilac_simt_module_destroy(module);
        lilac_simt_module_destroy(again);
        lilac_context_destroy(context);
    }
}

/* ---- refusals --------------------------------------------------------------------------- */

#define MMA   "%0, %1, %2, %3 = mma %r, %r, %r, %r, %r, %r, %f, %f, %f, %f : f32, f32, f32, f32 "
#define WGMMA "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %p : f32, f32, f32, f32 "
#define F16   "a = f16, b = f16, d = f32, m = 64, n = 8, k = 16"

static const struct refusal {
    const char *device;
    uint32_t warps;
    const char *line, *id, *message;
} refusals[] = {
    {"sm_80", 4, MMA "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 4}", "simt-matrix",
     "m, n, k are 16, 8, 4; mma with a = f16, b = f16 and d = f32 exists for 16, 8, 8; 16, 8, 16"},
    {"sm_80", 4, MMA "{a = f16, b = bf16, d = f32, m = 16, n = 8, k = 16}", "simt-matrix",
     "there is no mma with a = f16, b = bf16 and d = f32"},
    {"sm_80", 4, MMA "{m = 16, n = 8, k = 16}", "simt-matrix",
     "there is no mma with a = none, b = none and d = none"},
    {"sm_80", 4, MMA "{a = e4m3, b = e4m3, d = f32, m = 16, n = 8, k = 32}", "simt-matrix",
     "mma with a = e4m3, b = e4m3 and d = f32 and m, n, k 16, 8, 32 is for devices from sm_89 on, "
     "not for sm_80"},
    {"sm_90a", 4, MMA "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 16, negate_a}", "simt-matrix",
     "mma has no modifiers but satfinite"},
    {"sm_90a", 4, MMA "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 16, satfinite}",
     "simt-matrix", "satfinite is for d = s32, not for f32"},
    {"sm_90a", 4, "%0 = mma %r, %r, %r : f32 {a = f16, b = f16, d = f32, m = 16, n = 8, k = 16}",
     "simt-operand-count", "group a of mma has 3 operands; it needs 4"},
    {"sm_90a", 4,
     "%0 = mma %r, %r, %r, %r, %r, %r, %f : f32 {a = f16, b = f16, d = f32, m = 16, n = 8, k = "
     "16}",
     "simt-operand-count", "group c of mma has 1 operands; it needs 4"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = mma %r, %d, %r, %r, %r, %r, %f, %f, %f, %f : f32, f32, f32, f32 {a = f16, b "
     "= f16, d = f32, m = 16, n = 8, k = 16}",
     "simt-matrix", "register 2 of A is i64; it is a type of 32 bits"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = mma %r, %r, %r, %r, %r, %r, %f, %f, %r, %f : f32, f32, f32, f32 {a = f16, b "
     "= f16, d = f32, m = 16, n = 8, k = 16}",
     "simt-matrix", "accumulator 3 is i32; with d = f32 it is f32"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = mma %r, %r, %r, %r, %r, %r, %f, %f, %f, %f : f32, f32, i32, f32 {a = f16, b "
     "= f16, d = f32, m = 16, n = 8, k = 16}",
     "simt-matrix", "result 3 is i32; with d = f32 it is f32"},
    {"sm_90a", 4,
     "%0 = mma %r, %r, %r, %r, %r, %r, %f, %f, %f, %f : f32 {a = f16, b = f16, d = f32, m = 16, n "
     "= 8, k = 16}",
     "simt-matrix", "1 results of 4 accumulators"},
    {"sm_90", 4, WGMMA "{" F16 "}", "simt-feature", "sm_90 has no wgmma"},
    {"sm_90a", 2, WGMMA "{" F16 "}", "simt-matrix",
     "warps 0 to 2 execute it; wgmma needs warpgroups, warps 4a to 4b"},
    {"sm_90a", 2, "wgmma.fence", "simt-matrix",
     "warps 0 to 2 execute it; wgmma needs warpgroups, warps 4a to 4b"},
    {"sm_90a", 4, WGMMA "{a = bf16, b = bf16, d = f16, m = 64, n = 8, k = 16}", "simt-matrix",
     "there is no wgmma with a = bf16, b = bf16 and d = f16"},
    {"sm_90a", 4, WGMMA "{a = f16, b = f16, d = f32, m = 16, n = 8, k = 16}", "simt-matrix",
     "m is 16; a wgmma has m = 64"},
    {"sm_90a", 4, WGMMA "{a = f16, b = f16, d = f32, m = 64, n = 8, k = 32}", "simt-matrix",
     "k is 32; a wgmma of f16 has k = 16"},
    {"sm_90a", 4, WGMMA "{a = f16, b = f16, d = f32, m = 64, n = 12, k = 16}", "simt-matrix",
     "n is 12; a wgmma of f16 has n = a multiple of 8, at most 256"},
    {"sm_90a", 4, WGMMA "{a = s8, b = s8, d = s32, m = 64, n = 40, k = 32}", "simt-matrix",
     "n is 40; a wgmma of s8 has n = 8, 24 or a multiple of 16, at most 256"},
    {"sm_90a", 4, WGMMA "{a = e4m3, b = e4m3, d = f32, m = 64, n = 8, k = 32, transpose_b}",
     "simt-matrix",
     "B of 8 bits must have k contiguous in shared memory; only elements of 16 bits can be "
     "transposed"},
    {"sm_90a", 4, WGMMA "{a = s8, b = s8, d = s32, m = 64, n = 8, k = 32, negate_a}", "simt-matrix",
     "A of s8 cannot be negated; only floats can"},
    {"sm_90a", 4, WGMMA "{" F16 ", satfinite}", "simt-matrix",
     "satfinite is for elements s8 and u8, not for f16"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %r, %r, %r, %r, %d, %p : f32, f32, f32, f32 {" F16
     ", registers, transpose_a}",
     "simt-matrix", "A is in registers and cannot be transposed"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %r, %d, %p : f32, f32, f32, f32 {" F16 "}",
     "simt-matrix", "A is i32; a descriptor is i64"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %r, %p : f32, f32, f32, f32 {" F16 "}",
     "simt-operand-type", "operand 1 of group b is i32; i64 is allowed"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %r : f32, f32, f32, f32 {" F16 "}",
     "simt-operand-type", "operand 1 of group accumulate is i32; i1 is allowed"},
    {"sm_90a", 4,
     "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %p, %p : f32, f32, f32, f32 {" F16 "}",
     "simt-operand-type", "operand 8 of wgmma is i1, which no element"},
    {"sm_90a", 4, "%0 = wgmma.wait %f, %f : f32", "simt-matrix", "1 results of 2 operands"},
    {"sm_90a", 4, "%0 = wgmma.wait %f : i32", "simt-matrix",
     "result 1 is i32 and operand 1 is f32"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof refusals / sizeof *refusals; k++) {
        const struct refusal *r = &refusals[k];
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module = read_line(context, r->device, r->warps, r->line);
        assert_non_null(module);
        assert_false(lilac_simt_verify(module));
        const lilac_diagnostic *d = lilac_diagnostics(context);
        bool found = false;
        for (; d != NULL; d = d->next) {
            found |= strcmp(d->id, r->id) == 0 && strstr(d->message, r->message) != NULL;
        }
        if (!found) {
            fail_msg("%s: %s: %s", r->line, lilac_diagnostics(context)->id,
                     lilac_diagnostics(context)->message);
        }
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* A field that is out of range, or no field of the operation, is the reader's to refuse. */
static void test_reader_refuses(void **state) {
    (void)state;
    static const char *const bad[] = {
        "wgmma.wait {groups = -1}",
        "wgmma.commit {groups = 1}",
        MMA "{a = f15, b = f16, d = f32, m = 16, n = 8, k = 16}",
        MMA "{a = f16, b = f16, d = f32, m = 65536, n = 8, k = 16}",
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        lilac_context *context = lilac_context_create();
        assert_null(read_line(context, "sm_90a", 4, bad[k]));
        lilac_context_destroy(context);
    }
}

/* ---- groups and the builder ------------------------------------------------------------- */

static void test_groups(void **state) {
    (void)state;
    lilac_context *context = lilac_context_create();
    lilac_simt_module *module = read_line(context, "sm_90a", 4, lines[5]);
    const lilac_simt_instruction *i = module->kernels->body->first;
    while (i->code != LILAC_SIMT_OP_WGMMA) {
        i = i->next;
    }
    const uint32_t counts[] = {2, 4, 1, 1};
    uint32_t first = 0;
    for (uint32_t g = 0; g < 4; g++) {
        lilac_simt_group group = lilac_simt_group_of(i, g);
        assert_int_equal(group.count, counts[g]);
        assert_ptr_equal(group.values, i->operands + first);
        first += counts[g];
    }
    assert_int_equal(first, i->operand_count);
    lilac_simt_module_destroy(module);
    lilac_context_destroy(context);
}

/* A start that may differ between threads is broadcast once; a uniform one is not. */
static void test_descriptor(void **state) {
    (void)state;
    for (uint32_t uniform = 0; uniform < 2; uniform++) {
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module = lilac_simt_module_create(context, lilac_arch_find("sm_90a"));
        lilac_simt_kernel *kernel =
            lilac_simt_kernel_create(module, lilac_intern_string(context, "k"), 0, 4, 1);
        lilac_simt_builder b;
        lilac_simt_builder_init(&b, kernel);
        lilac_simt_instruction like = {.code = uniform ? LILAC_SIMT_OP_SHARED_BASE
                                                       : LILAC_SIMT_OP_WARP};
        lilac_simt_type type = LILAC_SIMT_I32;
        lilac_simt_value start = lilac_simt_build(&b, &like, 0, NULL, 1, &type);
        const lilac_matrix_descriptor fields = {.start = 4096,
                                                .leading = 16,
                                                .stride = 1024,
                                                .base_offset = 3,
                                                .swizzle = LILAC_MATRIX_SWIZZLE_128};
        lilac_simt_value d = lilac_simt_matrix_descriptor(&b, start, 0, &fields);
        assert_int_equal(lilac_simt_type_of(kernel, d), LILAC_SIMT_I64);
        uint32_t shuffles = 0;
        for (const lilac_simt_instruction *i = kernel->body->first; i; i = i->next) {
            shuffles += i->code == LILAC_SIMT_OP_SHUFFLE;
        }
        assert_int_equal(shuffles, !uniform);
        lilac_simt_value constant = lilac_simt_matrix_descriptor(
            &b, lilac_simt_constant(&b, LILAC_SIMT_I32, 4096), 0, &fields);
        uint64_t bits = 0;
        assert_true(lilac_simt_is_constant(kernel, constant, &bits));
        assert_int_equal(bits, lilac_matrix_descriptor_encode(&fields));
        const lilac_simt_value moved =
            lilac_simt_matrix_descriptor(&b, lilac_simt_constant(&b, LILAC_SIMT_I32, 1024),
                                         lilac_simt_constant(&b, LILAC_SIMT_I32, 3072), &fields);
        assert_true(lilac_simt_is_constant(kernel, moved, &bits));
        assert_int_equal(bits, lilac_matrix_descriptor_encode(&fields));
        lilac_simt_builder_clear(&b);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

/* ---- barriers --------------------------------------------------------------------------- */

#define START                                                                                      \
    "%0, %1, %2, %3 = wgmma %f, %f, %f, %f, %d, %d, %p : f32, f32, f32, f32 {" F16                 \
    "}\n wgmma.commit\n"
#define STORE "st.shared [%r], (%f)\n"
#define MEET  "barrier {shared}\n"

/* Which barriers stay: bit k for the k-th. */
static const struct order {
    const char *lines;
    uint32_t kept;
} orders[] = {
    {STORE MEET START "wgmma.wait\n" MEET STORE, 3},
    {START MEET "wgmma.wait\n" MEET STORE, 2}, /* the first is before the operands are read */
    {START "wgmma.wait\n" MEET "%x = ld.shared [%r] : f32", 0},
    {STORE "fence.proxy_async shared\n" MEET MEET START "wgmma.wait", 1} /* of two in a row one */,
    {START "wgmma.wait {groups = 1}\n" MEET STORE "wgmma.wait", 1},
};

static void test_barriers(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        lilac_context *context = lilac_context_create();
        lilac_simt_module *module = read_line(context, "sm_90a", 4, orders[k].lines);
        assert_non_null(module);
        const lilac_simt_instruction *barriers[4];
        uint32_t count = 0, kept = 0;
        lilac_simt_body *body = module->kernels->body;
        for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
            if (i->code == LILAC_SIMT_OP_BARRIER) {
                barriers[count++] = i;
            }
        }
        lilac_simt_opt_barriers(module->kernels);
        for (const lilac_simt_instruction *i = body->first; i; i = i->next) {
            for (uint32_t n = 0; n < count; n++) {
                kept |= (uint32_t)(barriers[n] == i) << n;
            }
        }
        assert_int_equal(kept, orders[k].kept);
        lilac_simt_module_destroy(module);
        lilac_context_destroy(context);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_reads_back), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_reader_refuses),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_descriptor),      cmocka_unit_test(test_barriers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
