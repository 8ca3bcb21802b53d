/* Operations of narrow floats give the bits that the operations of f32 gave: for pairs and for single
 * elements, on numbers of all kinds, among them subnormal numbers, infinities, NaN, and numbers whose
 * exponents are close, so that sums need rounding. A kernel runs on the simulator before and after the
 * pass. Exact arithmetic shows that two roundings are one. */
#include <lilac/sim.h>

#include "support/run_in_out.h"
#include "support/test.h"

enum { THREADS = 1024, LAUNCHES = 40, OPS = 6, WORDS = 2 * OPS };

static const struct {
    const char *name, *flags;
} ops[OPS] = {{"fadd", ""}, {"fsub", ""}, {"fmul", ""},
              {"fmin", ""}, {"fmax", ""}, {"fmax", " {nan}"}};

/* A thread combines the halves of two words, and the low half of one with the high half of the other. */
static void write_kernel(lilac_text *out, const char *type) {
    lilac_text_printf(
        out,
        "simt.module target \"sm_90a\" {\nkernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16) "
        "warps "
        "%d ctas 1 shared 0 {\n%%pi = param 0 : i64\n%%po = param 1 : i64\n%%t = thread : i32\n"
        "%%ci = const 8 : i32\n%%co = const %d : i32\n%%oi = mulwide_u %%t, %%ci : i64\n"
        "%%oo = mulwide_u %%t, %%co : i64\n%%in = add %%pi, %%oi : i64\n%%out = add %%po, %%oo : "
        "i64\n"
        "%%a = ld.global [%%in] : i32\n%%b = ld.global [%%in + 4] : i32\n",
        THREADS / 32, 4 * WORDS);
    lilac_text_printf(out, "%%a0, %%a1 = unpack %%a : %s, %s\n%%b0, %%b1 = unpack %%b : %s, %s\n",
                      type, type, type, type);
    for (uint32_t k = 0; k < OPS; k++) {
        static const char *const pairs[3][2] = {{"a0", "b0"}, {"a1", "b1"}, {"a0", "b1"}};
        for (uint32_t p = 0; p < 3; p++) {
            lilac_text_printf(out,
                              "%%x%u_%u = fcvt %%%s : f32\n%%y%u_%u = fcvt %%%s : f32\n"
                              "%%s%u_%u = %s %%x%u_%u, %%y%u_%u : f32%s\n"
                              "%%r%u_%u = fcvt %%s%u_%u : %s\n",
                              k, p, pairs[p][0], k, p, pairs[p][1], k, p, ops[k].name, k, p, k, p,
                              ops[k].flags, k, p, k, p, type);
        }
        lilac_text_printf(out,
                          "%%w%u = pack %%r%u_0, %%r%u_1 : i32\nst.global [%%out + %u], (%%w%u)\n"
                          "st.global [%%out + %u], (%%r%u_2)\n",
                          k, k, k, 8 * k, k, 8 * k + 4, k);
    }
    lilac_text_puts(out, "return\n}\n}\n");
}

static uint32_t wide_operations(const lilac_simt_kernel *kernel) {
    uint32_t count = 0;
    for (const lilac_simt_instruction *i = kernel->body->first; i != NULL; i = i->next) {
        const bool known = i->code == LILAC_SIMT_OP_FADD || i->code == LILAC_SIMT_OP_FSUB ||
                           i->code == LILAC_SIMT_OP_FMUL || i->code == LILAC_SIMT_OP_FMIN ||
                           i->code == LILAC_SIMT_OP_FMAX;
        count += known && kernel->values[i->result].type == LILAC_SIMT_F32;
    }
    return count;
}

/* A number of any kind; with `near`, one whose exponent is close to another's. */
static uint16_t draw(lilac_random *random, uint32_t mantissa, const uint16_t *near) {
    static const uint16_t special[] = {0, 0x8000, 1, 0x8001, 0x7FFF, 0xFFFF};
    uint16_t bits = (uint16_t)lilac_random_next(random);
    if (lilac_random_below(random, 16) == 0) {
        bits = special[lilac_random_below(random, 6)];
    } else if (near != NULL && lilac_random_below(random, 2) == 0) {
        const int32_t most = (1 << (15 - mantissa)) - 1;
        int32_t exponent =
            (*near >> mantissa & most) + (int32_t)lilac_random_below(random, 27) - 13;
        exponent = exponent < 0 ? 0 : exponent > most ? most : exponent;
        bits = (uint16_t)((bits & (0x8000 | ((1 << mantissa) - 1))) | exponent << mantissa);
    }
    return bits;
}

static void check(const char *type, uint32_t mantissa) {
    static uint16_t in[THREADS][4];
    static uint32_t before[THREADS][WORDS], after[THREADS][WORDS];
    lilac_text text = {0};
    write_kernel(&text, type);
    lilac_context *context = lilac_context_create();
    const uint32_t source = lilac_source_add(context, "k", text.bytes, text.length);
    lilac_simt_module *wide = lilac_simt_read(context, source);
    lilac_simt_module *narrow = lilac_simt_read(context, source);
    if (wide == NULL || narrow == NULL) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    assert_true(lilac_simt_opt_narrow_floats(narrow->kernels));
    (void)lilac_simt_opt_dce(narrow->kernels);
    assert_true(lilac_simt_verify(narrow));
    assert_int_equal(wide_operations(narrow->kernels), 0);
    lilac_random random;
    lilac_random_seed(&random, 16);
    for (uint32_t n = 0; n < scaled(LAUNCHES); n++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            for (uint32_t k = 0; k < 4; k++) {
                in[t][k] = draw(&random, mantissa, k < 2 ? NULL : &in[t][k - 2]);
            }
        }
        memset(before, 0, sizeof before);
        memset(after, 0, sizeof after);
        assert_true(run_in_out(context, wide->kernels, in, sizeof in, before, sizeof before));
        assert_true(run_in_out(context, narrow->kernels, in, sizeof in, after, sizeof after));
        for (uint32_t t = 0; t < THREADS; t++) {
            for (uint32_t k = 0; k < WORDS; k++) {
                if (before[t][k] != after[t][k]) {
                    fail_msg("%s of %s: %04X %04X and %04X %04X: 0x%08X by f32, 0x%08X",
                             ops[k / 2].name, type, in[t][0], in[t][1], in[t][2], in[t][3],
                             before[t][k], after[t][k]);
                }
            }
        }
    }
    lilac_simt_module_destroy(wide);
    lilac_simt_module_destroy(narrow);
    lilac_context_destroy(context);
    lilac_text_clear(&text);
}

static void the_same_bits(void **state) {
    (void)state;
    check("f16", 10);
    check("bf16", 7);
}

/* Double rounding of sums by exact arithmetic: every f16 with numbers around it, and the largest
 * exponents apart. */
static void sums_of_all_numbers(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 17);
    for (uint32_t a = 0; a < 0x10000; a++) {
        const double x = lilac_scalar_decode(LILAC_F16, a);
        for (uint32_t k = 0; k < 32; k++) {
            const uint16_t near = (uint16_t)a, b = draw(&random, 10, &near);
            const double sum = x + lilac_scalar_decode(LILAC_F16, b); /* exact: 40 bits at most */
            const uint64_t wide =
                lilac_scalar_encode(LILAC_F32, sum, LILAC_ROUND_NEAREST_EVEN, false);
            const double rounded = lilac_scalar_decode(LILAC_F32, wide);
            assert_true(lilac_scalar_encode(LILAC_F16, rounded, LILAC_ROUND_NEAREST_EVEN, false) ==
                        lilac_scalar_encode(LILAC_F16, sum, LILAC_ROUND_NEAREST_EVEN, false));
        }
    }
}

/* Of all pairs of significands of bf16, products at the least subnormal bf16 and below. */
static void small_products(void **state) {
    (void)state;
    for (uint32_t exponent = 0; exponent < 30; exponent++) {
        for (uint64_t a = 0x2000; a < 0x2080; a++) {
            for (uint64_t b = 0x1B00 + 128 * exponent; b < 0x1B80 + 128 * exponent; b++) {
                const double product =
                    lilac_scalar_decode(LILAC_BF16, a) * lilac_scalar_decode(LILAC_BF16, b);
                const uint64_t wide =
                    lilac_scalar_encode(LILAC_F32, product, LILAC_ROUND_NEAREST_EVEN, false);
                assert_true(
                    lilac_scalar_encode(LILAC_BF16, lilac_scalar_decode(LILAC_F32, wide),
                                        LILAC_ROUND_NEAREST_EVEN, false) ==
                    lilac_scalar_encode(LILAC_BF16, product, LILAC_ROUND_NEAREST_EVEN, false));
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits),
                                       cmocka_unit_test(sums_of_all_numbers),
                                       cmocka_unit_test(small_products)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
