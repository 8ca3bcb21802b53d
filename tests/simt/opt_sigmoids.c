/* Quotients by numbers that are at least 1 stay within the errors of div.full.f32 (two units in the last place,
 * or of the smallest subnormal number), sums with flushed exponentials keep their bits, and a 0 - x whose zero
 * has a sign that is seen stays: numbers of all kinds, among them those whose exponential is subnormal, zero or infinite, and divisors above 2^126. A kernel
 * runs on the simulator before and after the pass. */
#include <lilac/sim.h>

#include "support/run_in_out.h"
#include "support/test.h"

#include <math.h>

enum { THREADS = 1024, LAUNCHES = 60, RESULTS = 12 };

/* e^x as lower/math/f32_exponential.c computes it, %eN. */
#define ACCURATE(n, x)                                                                             \
    "%h" n " = fmul " x ", %log2_e : f32 {round = down}\n%m" n " = fneg %h" n " : f32\n"           \
    "%q" n " = ffma %m" n ", %high, " x " : f32\n%s" n " = ffma %m" n ", %low, %q" n " : f32\n"    \
    "%p" n " = fmin %s" n ", %one : f32\n%w" n " = fexp2 %h" n " : f32\n"                          \
    "%e" n " = ffma %w" n ", %p" n ", %w" n " : f32\n"

/* Of two inputs a and x. Result 7 needs an exponential itself, as 10 does; 8 to 10 have accurate exponentials of
 * -x, and 11 shows the sign of a zero. */
static const char kernel_text[] =
    "%one = const 1.0 : f32\n%two = const 2.0 : f32\n%less = const -1.0 : f32\n"
    "%half = const 0.5 : f32\n%seven = const 7.0 : f32\n"
    "%e = fexp2 %x : f32\n%d = fadd %one, %e : f32\n"
    "%r0 = fdiv %a, %d : f32 {approximate}\n"
    "%q1 = fdiv %one, %d : f32 {approximate}\n%r1 = ffma %q1, %two, %less : f32\n"
    "%q2 = fdiv %half, %d : f32 {approximate}\n%r2 = fmul %seven, %q2 : f32\n"
    "%r3 = fdiv %seven, %d : f32 {approximate}\n"
    "%s = ffma %x, %x, %one : f32\n%r4 = fdiv %a, %s : f32 {approximate}\n"
    "%m = fabs %x : f32\n%n = fadd %m, %d : f32\n%r5 = fdiv %a, %n : f32 {approximate}\n"
    "%r6 = fadd %e, %seven : f32\n"
    "%h = fmul %a, %half : f32\n%f = fexp2 %h : f32\n%g = fadd %f, %one : f32\n"
    "%k = fdiv %f, %g : f32 {approximate}\n%r7 = fadd %k, %f : f32\n"
    "%log2_e = const 0x3FB8AA3B : f32\n%high = const 0x3F317218 : f32\n"
    "%low = const 0xB102E308 : f32\n"
    "%zero = const 0.0 : f32\n%minus_x = fsub %zero, %x : f32\n" ACCURATE(
        "u", "%minus_x") "%du = fadd %eu, %one : f32\n%r8 = fdiv %a, %du : f32 {approximate}\n"
                         "%r9 = fadd %eu, %seven : f32\n"
                         "%minus_a = fsub %zero, %a : f32\n" ACCURATE(
                             "v", "%minus_a") "%dv = fadd %one, %ev : f32\n%kv = fdiv %a, %dv : "
                                              "f32 {approximate}\n"
                                              "%r10 = fadd %kv, %ev : f32\n"
                                              "%r11 = fsub %zero, %x : f32\n";

static lilac_simt_module *read_kernel(lilac_context *context) {
    lilac_text text = {0};
    lilac_text_printf(
        &text,
        "simt.module target \"sm_90a\" {\nkernel @k(%%i: i64 ptr align 16, %%o: i64 ptr align 16) "
        "warps %d ctas 1 shared 0 {\n%%pi = param 0 : i64\n%%po = param 1 : i64\n%%t = thread : "
        "i32\n%%ci = const 8 : i32\n%%co = const %d : i32\n%%oi = mulwide_u %%t, %%ci : i64\n"
        "%%oo = mulwide_u %%t, %%co : i64\n%%in = add %%pi, %%oi : i64\n"
        "%%out = add %%po, %%oo : i64\n"
        "%%a = ld.global [%%in] : f32\n%%x = ld.global [%%in + 4] : f32\n%s",
        THREADS / 32, 4 * RESULTS, kernel_text);
    for (uint32_t k = 0; k < RESULTS; k++) {
        lilac_text_printf(&text, "st.global [%%out + %u], (%%r%u)\n", 4 * k, k);
    }
    lilac_text_puts(&text, "return\n}\n}\n");
    lilac_simt_module *made =
        lilac_simt_read(context, lilac_source_add(context, "k", text.bytes, text.length));
    if (made == NULL) {
        fail_with_diagnostics(context, "the kernel was refused");
    }
    lilac_text_clear(&text);
    return made;
}

static uint32_t count(const lilac_simt_kernel *kernel, lilac_simt_opcode code, uint8_t flags) {
    uint32_t found = 0;
    for (const lilac_simt_instruction *i = kernel->body->first; i != NULL; i = i->next) {
        found += i->code == code && i->flags == flags;
    }
    return found;
}

static float float_of(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Bits of any kind, or a number of moderate size. */
static uint32_t draw(lilac_random *random) {
    static const uint32_t special[] = {0,          0x80000000, 1,          0x007FFFFF, 0x00800000,
                                       0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x3F800000,
                                       0xC2FC0000, 0xC3150000, 0x42FC0000, 0x43000000};
    const uint64_t kind = lilac_random_below(random, 8);
    if (kind == 0) {
        return special[lilac_random_below(random, sizeof special / sizeof *special)];
    }
    if (kind == 1) {
        return (uint32_t)lilac_random_next(random);
    }
    /* 2^-8 up to 2^8: exponentials from 0 to infinity */
    return (uint32_t)((lilac_random_next(random) & 0x807FFFFF) |
                      (119 + lilac_random_below(random, 17)) << 23);
}

/* The distance of two numbers in units of the last place of the second. */
static double units_apart(float got, float expected) {
    if (isnan(expected) || isnan(got)) {
        return isnan(expected) && isnan(got) ? 0 : INFINITY;
    }
    if (isinf(expected) || isinf(got)) {
        return got == expected ? 0 : INFINITY;
    }
    const float above = nextafterf(fabsf(expected), INFINITY);
    const double unit = isinf(above) ? 0x1p104 : (double)above - fabs((double)expected);
    return fabs((double)got - (double)expected) / unit;
}

static void quotients(void **state) {
    (void)state;
    static uint32_t in[THREADS][2], before[THREADS][RESULTS], after[THREADS][RESULTS];
    lilac_context *context = lilac_context_create();
    lilac_simt_module *plain = read_kernel(context), *made = read_kernel(context);
    assert_true(lilac_simt_opt_sigmoids(made->kernels));
    (void)lilac_simt_opt_dce(made->kernels);
    assert_true(lilac_simt_verify(made));
    assert_int_equal(count(plain->kernels, LILAC_SIMT_OP_FDIV, LILAC_SIMT_APPROXIMATE), 9);
    assert_int_equal(count(made->kernels, LILAC_SIMT_OP_FDIV, LILAC_SIMT_APPROXIMATE), 0);
    assert_int_equal(count(made->kernels, LILAC_SIMT_OP_FEXP2, LILAC_SIMT_FTZ), 2);
    assert_int_equal(count(made->kernels, LILAC_SIMT_OP_FEXP2, 0), 2);
    assert_int_equal(count(plain->kernels, LILAC_SIMT_OP_FSUB, 0), 3);
    assert_int_equal(count(made->kernels, LILAC_SIMT_OP_FSUB, 0), 2);
    lilac_random random;
    lilac_random_seed(&random, 29);
    uint32_t differ = 0;
    for (uint32_t n = 0; n < scaled(LAUNCHES); n++) {
        for (uint32_t t = 0; t < THREADS; t++) {
            in[t][0] = draw(&random);
            in[t][1] = draw(&random);
        }
        memset(before, 0, sizeof before);
        memset(after, 0, sizeof after);
        assert_true(run_in_out(context, plain->kernels, in, sizeof in, before, sizeof before));
        assert_true(run_in_out(context, made->kernels, in, sizeof in, after, sizeof after));
        for (uint32_t t = 0; t < THREADS; t++) {
            for (uint32_t k = 0; k < RESULTS; k++) {
                const float x = float_of(before[t][k]), y = float_of(after[t][k]);
                /* 2 q - 1 with q off by two units of at most 2^-24; 7 q with q subnormal */
                const double apart = fabs((double)x - (double)y), units = units_apart(y, x);
                const bool good = units <= (k == 6 || k == 9 || k == 11 ? 0 : 3) ||
                                  (k == 1 && apart <= 0x1p-21) || (k == 2 && apart <= 0x1p-146);
                assert_true(k != 11 || isnan(x) || signbit(x) == signbit(y));
                differ += before[t][k] != after[t][k];
                if (!good) {
                    fail_msg("result %u of %a, %a: %a by a division, %a", k,
                             (double)float_of(in[t][0]), (double)float_of(in[t][1]), (double)x,
                             (double)y);
                }
            }
        }
    }
    assert_true(differ > 0); /* otherwise the bounds above are too wide to be of use */
    lilac_simt_module_destroy(plain);
    lilac_simt_module_destroy(made);
    lilac_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(quotients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
