/* lower: conversions of 8-bit floats on every device, exhaustively from 8 and 16 bits, and at every
 * border between two codes from 32 and 64. Devices without such instructions (sm_80) do them by
 * integer instructions, whose results must be those of the instructions, bit for bit. */
#include "support/lower_harness.h"

enum { BLOCK = 1024, MOST = 1 << 16 };

static const lilac_scalar kinds[] = {LILAC_F8E4M3FN, LILAC_F8E5M2};

/* o[i] = x[i] in another type, for the elements of each program. */
static void kernel_text(lilac_text *out, lilac_scalar from, lilac_scalar to, const char *rounding) {
    const char *x = lilac_scalar_name(from), *o = lilac_scalar_name(to);
    lilac_text_printf(
        out,
        "module {\n  tt.func public @k(%%x: !tt.ptr<%s> {tt.divisibility = 16 : i32}, "
        "%%o: !tt.ptr<%s> {tt.divisibility = 16 : i32}) {\n"
        "    %%p = tt.get_program_id x : i32\n"
        "    %%c = arith.constant %d : i32\n"
        "    %%b = arith.muli %%p, %%c : i32\n"
        "    %%s = tt.splat %%b : i32 -> tensor<%dxi32>\n"
        "    %%r = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32>\n"
        "    %%i = arith.addi %%s, %%r : tensor<%dxi32>\n",
        x, o, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK);
    lilac_text_printf(out,
                      "    %%xs = tt.splat %%x : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
                      "    %%xp = tt.addptr %%xs, %%i : tensor<%dx!tt.ptr<%s>>, tensor<%dxi32>\n"
                      "    %%os = tt.splat %%o : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
                      "    %%op = tt.addptr %%os, %%i : tensor<%dx!tt.ptr<%s>>, tensor<%dxi32>\n"
                      "    %%v = tt.load %%xp : tensor<%dx!tt.ptr<%s>>\n",
                      x, BLOCK, x, BLOCK, x, BLOCK, o, BLOCK, o, BLOCK, o, BLOCK, BLOCK, x);
    lilac_text_printf(out,
                      "    %%w = tt.fp_to_fp %%v%s%s : tensor<%dx%s> -> tensor<%dx%s>\n"
                      "    tt.store %%op, %%w : tensor<%dx!tt.ptr<%s>>\n    tt.return\n  }\n}\n",
                      rounding != NULL ? ", rounding = " : "", rounding != NULL ? rounding : "",
                      BLOCK, x, BLOCK, o, BLOCK, o);
}

/* Runs it over `count` elements, a multiple of a block. */
static void convert(const char *device, lilac_scalar from, lilac_scalar to, lilac_rounding rounding,
                    uint8_t *x, uint8_t *o, uint32_t count) {
    const char *word = lilac_scalar_bits(to) >= lilac_scalar_bits(from) ? NULL
                       : rounding == LILAC_ROUND_ZERO                   ? "rtz"
                                                                        : "rtne";
    lilac_text text = {0};
    kernel_text(&text, from, to, word);
    harness h;
    if (!harness_try(&h, lilac_text_get(&text), 4, true, device)) {
        print_diagnostics(h.context);
        fail_msg("%s refuses %s to %s", device, lilac_scalar_name(from), lilac_scalar_name(to));
    }
    bool native = lilac_arch_has(lilac_arch_find(device), LILAC_HAS_F8_CONVERSIONS);
    assert_true(native == (count_text(lilac_text_get(&h.text), "f8_") > 0));
    buffer buffers[] = {{x, (size_t)count * bytes_of(from)}, {o, (size_t)count * bytes_of(to)}};
    harness_run(&h, count / BLOCK, buffers, 2, NULL, 0);
    harness_close(&h);
    lilac_text_clear(&text);
}

static void check(const char *device, lilac_scalar from, lilac_scalar to, lilac_rounding rounding,
                  uint8_t *x, uint32_t count) {
    uint8_t *o = malloc((size_t)count * bytes_of(to));
    assert_non_null(o);
    convert(device, from, to, rounding, x, o, count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t in = get_element(x, from, i), got = get_element(o, to, i);
        double value = lilac_scalar_decode(from, in);
        bool narrow = lilac_scalar_bits(to) == 8;
        uint64_t want = lilac_scalar_encode(to, value, rounding, narrow);
        /* A NaN of 8 bits is one code; wider ones have many. */
        bool same = got == want || (!narrow && isnan(value) && isnan(lilac_scalar_decode(to, got)));
        if (!same) {
            fail_msg("%s: %s %llx (%g) to %s is %llx, not %llx", device, lilac_scalar_name(from),
                     (unsigned long long)in, value, lilac_scalar_name(to), (unsigned long long)got,
                     (unsigned long long)want);
        }
    }
    free(o);
}

/* Every value of 8 or 16 bits. */
static uint8_t *every_value(lilac_scalar scalar, uint32_t *count) {
    *count = lilac_scalar_bits(scalar) == 8 ? BLOCK : MOST;
    uint8_t *x = malloc((size_t)*count * bytes_of(scalar));
    assert_non_null(x);
    for (uint32_t i = 0; i < *count; i++) {
        set_element(x, scalar, i, i);
    }
    return x;
}

/* Values around the middle and both ends of each step between two codes, both signs, infinities,
 * NaN and random bits. */
static uint8_t *borders(lilac_scalar scalar, lilac_scalar to, uint32_t *count) {
    uint8_t *x = malloc((size_t)MOST * bytes_of(scalar));
    uint32_t n = 0;
    lilac_random random;
    assert_non_null(x);
    lilac_random_seed(&random, 3);
    uint64_t mask = scalar == LILAC_F64 ? ~UINT64_C(0) : UINT64_C(0xFFFFFFFF);
    uint64_t sign = scalar == LILAC_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
    for (uint32_t code = 0; code < 127; code++) {
        double low = lilac_scalar_decode(to, code), high = lilac_scalar_decode(to, code + 1);
        high = isfinite(high) ? high : 1.25 * low;
        double places[] = {low, (low + high) / 2, high};
        for (size_t k = 0; k < 3 && isfinite(low); k++) {
            uint64_t bits = lilac_scalar_encode(scalar, places[k], LILAC_ROUND_NEAREST_EVEN, false);
            for (uint64_t d = 0; d < 7; d++) {
                set_element(x, scalar, n++, (bits + d - 3) & mask & ~sign);
                set_element(x, scalar, n++, ((bits + d - 3) & mask) | sign);
            }
        }
    }
    static const double others[] = {INFINITY, -INFINITY, NAN,       -NAN,  1e30,  -1e30, 1e-30,
                                    -1e-30,   0x1p-149,  -0x1p-126, 65504, 65536, -70000};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        set_element(x, scalar, n++,
                    lilac_scalar_encode(scalar, others[k], LILAC_ROUND_NEAREST_EVEN, false));
    }
    for (uint64_t d = 1; d < 6; d++) { /* NaN with payloads */
        uint64_t infinity = lilac_scalar_encode(scalar, INFINITY, LILAC_ROUND_NEAREST_EVEN, false);
        set_element(x, scalar, n++, infinity + d);
        set_element(x, scalar, n++, (infinity + d) | sign);
    }
    *count = (n + 4095) / 4096 * 4096 + 4096;
    while (n < *count) { /* of the exponents that matter, and of all */
        uint64_t bits = lilac_random_next(&random) & mask;
        if (lilac_random_below(&random, 2) != 0) {
            double value = ldexp(1.0 + (double)(bits & 0xFFFFF) / 0x1p20,
                                 (int)lilac_random_below(&random, 40) - 22);
            bits = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
        }
        set_element(x, scalar, n++, bits);
    }
    return x;
}

static void on_every_device(void (*test)(const char *device)) {
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        test(lilac_arch_at(i)->name);
    }
}

static void widening_on(const char *device) {
    static const lilac_scalar wide[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    for (size_t k = 0; k < 2; k++) {
        uint32_t count;
        uint8_t *x = every_value(kinds[k], &count);
        for (size_t w = 0; w < sizeof wide / sizeof *wide; w++) {
            check(device, kinds[k], wide[w], LILAC_ROUND_NEAREST_EVEN, x, count);
        }
        check(device, kinds[k], kinds[1 - k], LILAC_ROUND_NEAREST_EVEN, x, count);
        free(x);
    }
}

static void widening(void **state) {
    (void)state;
    on_every_device(widening_on);
}

static void narrowing_on(const char *device) {
    static const lilac_scalar halves[] = {LILAC_F16, LILAC_BF16}, wide[] = {LILAC_F32, LILAC_F64};
    static const lilac_rounding modes[] = {LILAC_ROUND_NEAREST_EVEN, LILAC_ROUND_ZERO};
    for (size_t k = 0; k < 2; k++) {
        for (size_t w = 0; w < 2; w++) {
            for (size_t m = 0; m < 2; m++) {
                uint32_t count;
                uint8_t *x = every_value(halves[w], &count);
                check(device, halves[w], kinds[k], modes[m], x, count);
                free(x);
                x = borders(wide[w], kinds[k], &count);
                check(device, wide[w], kinds[k], modes[m], x, count);
                free(x);
            }
        }
    }
}

static void narrowing(void **state) {
    (void)state;
    on_every_device(narrowing_on);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(widening), cmocka_unit_test(narrowing)};
    return cmocka_run_group_tests_name("lower_f8", tests, NULL, NULL);
}
