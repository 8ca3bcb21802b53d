/* The functions of libdevice against what mpmath computed (scripts/function_values.py wrote
 * tests/data/functions.txt): at most two units in the last place off, specials exact. */
#include "unit/lower_harness.h"

#define MOST 4096

static int64_t place(uint64_t bits, bool wide) {
    int64_t value = wide ? (int64_t)bits : (int64_t)(int32_t)bits;
    int64_t least = wide ? INT64_MIN : INT32_MIN;
    return value < 0 ? least - value : value;
}

/* How far apart, in places; NaNs are one number, zeros differ by their sign. */
static uint64_t distance(uint64_t got, uint64_t want, bool wide) {
    lilac_scalar scalar = wide ? LILAC_F64 : LILAC_F32;
    double a = lilac_scalar_decode(scalar, got), b = lilac_scalar_decode(scalar, want);
    if (isnan(a) || isnan(b)) {
        return isnan(a) && isnan(b) ? 0 : UINT64_MAX;
    }
    if (b == 0.0 || isinf(b) || isinf(a)) {
        return got == want ? 0 : a == 0.0 && b == 0.0 ? UINT64_MAX : 1u + (fabs(a - b) > 0x1p-1070);
    }
    int64_t d = place(got, wide) - place(want, wide);
    return (uint64_t)(d < 0 ? -d : d);
}

static void put_kernel(lilac_text *out, const char *name, const char *type, unsigned operands,
                       unsigned count) {
    lilac_text_printf(out, "module {\n  tt.func public @k(");
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "%%p%u: !tt.ptr<%s>, ", i, type);
    }
    lilac_text_printf(out,
                      "%%o: !tt.ptr<%s>) {\n    %%r = tt.make_range {end = %u : i32, start = 0 : "
                      "i32} : tensor<%uxi32>\n",
                      type, count, count);
    for (unsigned i = 0; i <= operands; i++) {
        lilac_text_printf(out,
                          "    %%s%u = tt.splat %%%c%.*u : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                          "    %%a%u = tt.addptr %%s%u, %%r : tensor<%ux!tt.ptr<%s>>, "
                          "tensor<%uxi32>\n",
                          i, i < operands ? 'p' : 'o', i < operands ? 1 : 0, i < operands ? i : 0u,
                          type, count, type, i, i, count, type, count);
    }
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "    %%v%u = tt.load %%a%u : tensor<%ux!tt.ptr<%s>>\n", i, i, count,
                          type);
    }
    lilac_text_printf(out, "    %%x = tt.extern_elementwise ");
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "%s%%v%u", i == 0 ? "" : ", ", i);
    }
    lilac_text_printf(
        out, " {libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_%s\"} : (", name);
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "%stensor<%ux%s>", i == 0 ? "" : ", ", count, type);
    }
    lilac_text_printf(out,
                      ") -> tensor<%ux%s>\n    tt.store %%a%u, %%x : tensor<%ux!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      count, type, operands, count, type);
}

/* Runs one function; the worst distance, with what gave it printed where it is over `allowed`. */
static bool check(const char *name, bool wide, unsigned operands, unsigned count,
                  const uint64_t *words, uint64_t allowed) {
    uint32_t bytes = wide ? 8 : 4;
    lilac_scalar scalar = wide ? LILAC_F64 : LILAC_F32;
    lilac_text text = {0};
    put_kernel(&text, name, wide ? "f64" : "f32", operands, count);
    harness h;
    harness_open(&h, lilac_text_get(&text), 4, true);
    lilac_text_clear(&text);
    /* Joined products and sums must not hurt. */
    (void)lilac_simt_opt_fold(h.simt->kernels);
    assert_true(lilac_simt_verify(h.simt));
    buffer buffers[5];
    for (unsigned i = 0; i <= operands; i++) {
        buffers[i] = (buffer){calloc(count, bytes), (size_t)count * bytes};
        assert_non_null(buffers[i].bytes);
        for (unsigned j = 0; i < operands && j < count; j++) {
            set_element(buffers[i].bytes, scalar, j, words[j * (operands + 1) + i]);
        }
    }
    harness_run(&h, 1, buffers, operands + 1, NULL, 0);
    uint64_t worst = 0;
    unsigned wrong = 0;
    for (unsigned j = 0; j < count; j++) {
        const uint64_t *row = words + j * (operands + 1);
        uint64_t got = get_element(buffers[operands].bytes, scalar, j);
        uint64_t d = distance(got, row[operands], wide);
        worst = d > worst ? d : worst;
        if (d > allowed && wrong++ < 5) {
            print_message("%s(%a, %a): %a for %a\n", name, lilac_scalar_decode(scalar, row[0]),
                          operands > 1 ? lilac_scalar_decode(scalar, row[1]) : 0.0,
                          lilac_scalar_decode(scalar, got),
                          lilac_scalar_decode(scalar, row[operands]));
        }
    }
    if (wrong != 0) {
        print_message("%s: %u of %u values are more than %u places off\n", name, wrong, count,
                      (unsigned)allowed);
    }
    if (getenv("LILAC_TEST_VERBOSE") != NULL) {
        print_message("%-12s %llu, %u instructions\n", name, (unsigned long long)worst,
                      h.simt->kernels->value_count);
    }
    for (unsigned i = 0; i <= operands; i++) {
        free(buffers[i].bytes);
    }
    harness_close(&h);
    return wrong == 0;
}

static void functions_are_near(void **state) {
    (void)state;
    const char *path = getenv("LILAC_FUNCTION_VALUES");
    FILE *file = fopen(path != NULL ? path : LILAC_TEST_DATA "/functions.txt", "r");
    assert_non_null(file);
    uint64_t *words = malloc(MOST * 5 * sizeof *words);
    assert_non_null(words);
    char name[32], type;
    unsigned operands, count, functions = 0, wrong = 0;
    while (fscanf(file, "%31s %c %u %u", name, &type, &operands, &count) == 4) {
        assert_true(operands >= 1 && operands <= 4 && count <= MOST);
        for (unsigned i = 0; i < count * (operands + 1); i++) {
            unsigned long long word;
            assert_int_equal(fscanf(file, "%llx", &word), 1);
            words[i] = word;
        }
        bool exact = strncmp(name, "fmod", 4) == 0 || strncmp(name, "remainder", 9) == 0;
        wrong += !check(name, type == 'd', operands, count, words, exact ? 0 : 2);
        functions++;
    }
    free(words);
    fclose(file);
    assert_true(functions >= 2);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_near)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
