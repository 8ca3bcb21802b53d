/* The functions of libdevice against what mpmath computed (scripts/function_values.py wrote
 * tests/data/functions.txt): at most two units in the last place off, a few functions of f32 as many as
 * libdevice's, specials exact. The Bessel
 * functions J and Y of f64 are at most four places off below 8, and have an absolute error from 8
 * on. With orders above 1 there is an absolute error anywhere, and the relative one grows with the
 * order. */
#include "support/lower_harness.h"

#define MOST 4096

static int64_t place(uint64_t bits, bool wide) {
    int64_t value = wide ? (int64_t)bits : (int64_t)(int32_t)bits;
    int64_t least = wide ? INT64_MIN : INT32_MIN;
    return value < 0 ? least - value : value;
}

/* The distance in units in the last place. All NaNs count as one number. Zeros of different sign
 * differ. */
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

static lilac_scalar scalar_of(char letter) {
    return letter == 'f' ? LILAC_F32 : letter == 'd' ? LILAC_F64 : LILAC_I32;
}

static const char *type_of(char letter) {
    return lilac_scalar_name(scalar_of(letter));
}

/* `types`: a letter for each operand, then that of the result. */
static void put_kernel(lilac_text *out, const char *name, const char *types, unsigned count) {
    unsigned operands = (unsigned)strlen(types) - 1;
    lilac_text_printf(out, "module {\n  tt.func public @k(");
    for (unsigned i = 0; i <= operands; i++) {
        lilac_text_printf(out, "%s%%p%u: !tt.ptr<%s>", i == 0 ? "" : ", ", i, type_of(types[i]));
    }
    lilac_text_printf(out,
                      ") {\n    %%r = tt.make_range {end = %u : i32, start = 0 : "
                      "i32} : tensor<%uxi32>\n",
                      count, count);
    for (unsigned i = 0; i <= operands; i++) {
        const char *type = type_of(types[i]);
        lilac_text_printf(out,
                          "    %%s%u = tt.splat %%p%u : !tt.ptr<%s> -> tensor<%ux!tt.ptr<%s>>\n"
                          "    %%a%u = tt.addptr %%s%u, %%r : tensor<%ux!tt.ptr<%s>>, "
                          "tensor<%uxi32>\n",
                          i, i, type, count, type, i, i, count, type, count);
        if (i < operands) {
            lilac_text_printf(out, "    %%v%u = tt.load %%a%u : tensor<%ux!tt.ptr<%s>>\n", i, i,
                              count, type);
        }
    }
    lilac_text_printf(out, "    %%x = tt.extern_elementwise ");
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "%s%%v%u", i == 0 ? "" : ", ", i);
    }
    lilac_text_printf(
        out, " {libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_%s\"} : (", name);
    for (unsigned i = 0; i < operands; i++) {
        lilac_text_printf(out, "%stensor<%ux%s>", i == 0 ? "" : ", ", count, type_of(types[i]));
    }
    const char *type = type_of(types[operands]);
    lilac_text_printf(out,
                      ") -> tensor<%ux%s>\n    tt.store %%a%u, %%x : tensor<%ux!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      count, type, operands, count, type);
}

/* The absolute error that is allowed where the relative one is larger: that of the Bessel functions
 * of order 0 and 1 from 8 on, in their amplitude √(2/πx), and that of any other order. */
static double slack(const char *name, bool wide, double argument) {
    if (strchr("jy", name[0]) == NULL) {
        return 0.0;
    }
    double places = wide ? 0x1p-51 : 0x1p-48;
    if (name[1] == 'n') {
        return wide ? 0x1p-45 : 0x1p-40;
    }
    double x = fabs(argument);
    return x < 8.0 || isinf(x) ? 0.0 : sqrt(0.63661977236758138 / x) * places;
}

/* Functions of f32 for which more than two places are allowed: the bounds that the CUDA programming
 * guide states for libdevice's. */
static const struct {
    const char *name;
    uint64_t places;
} bounds[] = {
    {"atan2f", 3},   {"asinhf", 3},   {"atanhf", 3},         {"acoshf", 4},
    {"erfcf", 4},    {"erfcinvf", 4}, {"erfcxf", 4},         {"normcdfinvf", 5},
    {"normcdff", 5}, {"lgammaf", 6},  {"cyl_bessel_i0f", 6}, {"cyl_bessel_i1f", 6},
};

/* Places that the result may be off. */
static uint64_t allowance(const char *name, bool wide, double first) {
    bool exact = strncmp(name, "fmod", 4) == 0 || strncmp(name, "remainder", 9) == 0 ||
                 strncmp(name, "ldexp", 5) == 0;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(name, bounds[i].name) == 0) {
            return bounds[i].places;
        }
    }
    bool order = wide && (strcmp(name, "jn") == 0 || strcmp(name, "yn") == 0);
    bool bessel = wide && strchr("jy", name[0]) != NULL;
    return exact ? 0 : order ? (uint64_t)(4 + 2.5 * fabs(first)) : bessel ? 4 : 2;
}

static double operand_of(char letter, uint64_t word) {
    return letter == 'i' ? (double)(int32_t)(uint32_t)word
                         : lilac_scalar_decode(scalar_of(letter), word);
}

/* Functions of f32 that take subnormal arguments as 0 and give 0 for subnormal results, as Triton's
 * do. */
static bool is_flushed(const char *name, double argument, double want) {
    return (strcmp(name, "exp2f") == 0 || strcmp(name, "rsqrtf") == 0) &&
           (fabs(argument) < 0x1p-126 || fabs(want) < 0x1p-126);
}

/* Compares the results; the worst distance, with what gave it printed where it is too far. */
static bool compare(const char *name, const char *types, unsigned count, const uint64_t *words,
                    const void *results, uint64_t *worst) {
    unsigned operands = (unsigned)strlen(types) - 1, wrong = 0;
    bool wide = types[operands] == 'd';
    lilac_scalar scalar = scalar_of(types[operands]);
    for (unsigned j = 0; j < count; j++) {
        const uint64_t *row = words + j * (operands + 1);
        uint64_t got = get_element(results, scalar, j);
        double first = operand_of(types[0], row[0]);
        double last = operand_of(types[operands - 1], row[operands - 1]);
        uint64_t d = distance(got, row[operands], wide);
        double value = lilac_scalar_decode(scalar, got);
        double want = lilac_scalar_decode(scalar, row[operands]);
        double allowed = slack(name, wide, last); /* 0: the sign of a zero counts */
        if ((allowed > 0.0 && fabs(value - want) <= allowed) || is_flushed(name, first, want)) {
            continue;
        }
        *worst = d > *worst ? d : *worst;
        if (d > allowance(name, wide, first) && wrong++ < 5) {
            print_message("%s(%a, %a): %a for %a\n", name, first, operands > 1 ? last : 0.0, value,
                          want);
        }
    }
    if (wrong != 0) {
        print_message("%s: %u of %u values are too far off\n", name, wrong, count);
    }
    return wrong == 0;
}

/* Runs one function. */
static bool check(const char *name, const char *types, unsigned count, const uint64_t *words) {
    unsigned operands = (unsigned)strlen(types) - 1;
    lilac_text text = {0};
    put_kernel(&text, name, types, count);
    harness h;
    harness_open(&h, lilac_text_get(&text), 4, true);
    lilac_text_clear(&text);
    /* Joined products and sums must not hurt. */
    (void)lilac_simt_opt_fold(h.simt->kernels);
    (void)lilac_simt_opt_contract(h.simt->kernels);
    assert_true(lilac_simt_verify(h.simt));
    buffer buffers[5];
    for (unsigned i = 0; i <= operands; i++) {
        lilac_scalar scalar = scalar_of(types[i]);
        uint32_t bytes = lilac_scalar_bits(scalar) / 8;
        buffers[i] = (buffer){calloc(count, bytes), (size_t)count * bytes};
        assert_non_null(buffers[i].bytes);
        for (unsigned j = 0; i < operands && j < count; j++) {
            set_element(buffers[i].bytes, scalar, j, words[j * (operands + 1) + i]);
        }
    }
    harness_run(&h, 1, buffers, operands + 1, NULL, 0);
    uint64_t worst = 0;
    bool right = compare(name, types, count, words, buffers[operands].bytes, &worst);
    if (getenv("LILAC_TEST_VERBOSE") != NULL) {
        print_message("%-12s %llu, %u instructions\n", name, (unsigned long long)worst,
                      h.simt->kernels->value_count);
    }
    for (unsigned i = 0; i <= operands; i++) {
        free(buffers[i].bytes);
    }
    harness_close(&h);
    return right;
}

static void functions_are_near(void **state) {
    (void)state;
    const char *path = getenv("LILAC_FUNCTION_VALUES");
    FILE *file = fopen(path != NULL ? path : LILAC_TEST_DATA "/functions.txt", "r");
    assert_non_null(file);
    uint64_t *words = malloc(MOST * 5 * sizeof *words);
    assert_non_null(words);
    char name[32], type[2], types[6];
    unsigned count, functions = 0, wrong = 0;
    while (fscanf(file, "%31s %1s %4s %u", name, type, types, &count) == 4) {
        unsigned operands = (unsigned)strlen(types);
        assert_true(operands >= 1 && operands <= 4 && count <= MOST);
        strcat(types, type);
        for (unsigned i = 0; i < count * (operands + 1); i++) {
            unsigned long long word;
            assert_int_equal(fscanf(file, "%llx", &word), 1);
            words[i] = word;
        }
        wrong += !check(name, types, count, words);
        functions++;
    }
    free(words);
    fclose(file);
    assert_true(functions >= 2);
    assert_int_equal(wrong, 0);
}

/* ---- random arguments of f32 ---------------------------------------------------------------- */

typedef struct host_row {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
    double bound; /* half of the arguments are in ±bound */
    bool integer; /* the second operand is one */
} host_row;

static double power_of_ten(double x) {
    return pow(10.0, x);
}
static double inverse_root(double x) {
    return 1.0 / sqrt(x);
}

static double scaled_by_power(double x, double n) {
    return ldexp(x, (int)n);
}

static const host_row host_rows[] = {
    {"expf", exp, NULL, 110.0, false},
    {"exp2f", exp2, NULL, 130.0, false},
    {"exp10f", power_of_ten, NULL, 45.0, false},
    {"expm1f", expm1, NULL, 4.0, false},
    {"sinhf", sinh, NULL, 3.0, false},
    {"coshf", cosh, NULL, 3.0, false},
    {"tanhf", tanh, NULL, 2.0, false},
    {"logf", log, NULL, 3.0, false},
    {"log2f", log2, NULL, 3.0, false},
    {"log10f", log10, NULL, 3.0, false},
    {"log1pf", log1p, NULL, 2.0, false},
    {"sinf", sin, NULL, 120000.0, false},
    {"cosf", cos, NULL, 120000.0, false},
    {"tanf", tan, NULL, 120000.0, false},
    {"asinf", asin, NULL, 1.0, false},
    {"atanf", atan, NULL, 3.0, false},
    {"erff", erf, NULL, 3.0, false},
    {"rsqrtf", inverse_root, NULL, 3.0, false},
    {"powf", NULL, pow, 20.0, false},
    {"fmodf", NULL, fmod, 100000.0, false},
    {"powif", NULL, pow, 20.0, true},
    {"ldexpf", NULL, scaled_by_power, 20.0, true},
};

static uint64_t f32_bits(double value) {
    return lilac_scalar_encode(LILAC_F32, value, LILAC_ROUND_NEAREST_EVEN, false);
}

/* Any bits, numbers within the bound, and small ones. */
static double random_argument(lilac_random *random, double bound) {
    double unit = (double)lilac_random_below(random, 1u << 24) * 0x1p-23 - 1.0;
    switch (lilac_random_below(random, 4)) {
    case 0:
        return lilac_scalar_decode(LILAC_F32, lilac_random_below(random, UINT64_C(1) << 32));
    case 1:
        return unit;
    default:
        return unit * bound;
    }
}

/* Any integers, and small ones. */
static int32_t random_integer(lilac_random *random) {
    switch (lilac_random_below(random, 4)) {
    case 0:
        return (int32_t)(uint32_t)lilac_random_below(random, UINT64_C(1) << 32);
    case 1:
        return (int32_t)lilac_random_below(random, 600) - 300;
    default:
        return (int32_t)lilac_random_below(random, 25) - 12;
    }
}

static void f32_functions_are_near_the_hosts(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 0xF32);
    uint64_t *words = malloc(MOST * 3 * sizeof *words);
    assert_non_null(words);
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof host_rows / sizeof *host_rows; i++) {
        const host_row *row = &host_rows[i];
        unsigned operands = row->two != NULL ? 2 : 1;
        for (unsigned j = 0; j < MOST; j++) {
            uint64_t *word = words + j * (operands + 1);
            double in[2] = {0.0, 0.0};
            for (unsigned o = 0; o < operands; o++) {
                const bool integer = o == 1 && row->integer;
                const int32_t n = integer ? random_integer(&random) : 0;
                word[o] = integer ? (uint32_t)n
                                  : f32_bits(random_argument(&random, o == 0 ? row->bound : 5.0));
                in[o] = integer ? n : lilac_scalar_decode(LILAC_F32, word[o]);
            }
            word[operands] = f32_bits(operands == 2 ? row->two(in[0], in[1]) : row->one(in[0]));
        }
        wrong += !check(row->name,
                        row->integer    ? "fif"
                        : operands == 2 ? "fff"
                                        : "ff",
                        MOST, words);
    }
    free(words);
    assert_int_equal(wrong, 0);
}

/* Numbers of all exponents times powers of two: results that are subnormal are rounded once. */
static void scaling_rounds_once(void **state) {
    (void)state;
    lilac_random random;
    lilac_random_seed(&random, 0x1DE);
    uint64_t *words = malloc(MOST * 3 * sizeof *words);
    assert_non_null(words);
    for (uint32_t wide = 0; wide < 2; wide++) {
        const lilac_scalar scalar = wide ? LILAC_F64 : LILAC_F32;
        const int least = wide ? -1074 : -149, most = wide ? 1024 : 128;
        for (uint32_t j = 0; j < MOST; j++) {
            const double unit =
                1.0 + (double)lilac_random_below(&random, UINT64_C(1) << 52) * 0x1p-52;
            const bool any = lilac_random_below(&random, 2) != 0; /* else a result next to 0 */
            const int e = least + (int)lilac_random_below(&random, (uint32_t)(most - least));
            const int near_least = least + (int)lilac_random_below(&random, 60) - 3 - e;
            const int n = any ? (int)lilac_random_below(&random, 5000) - 2500 : near_least;
            words[3 * j] = lilac_scalar_encode(scalar, ldexp(unit, e), LILAC_ROUND_ZERO, false);
            words[3 * j + 1] = (uint32_t)n;
            const double x = lilac_scalar_decode(scalar, words[3 * j]);
            words[3 * j + 2] =
                lilac_scalar_encode(scalar, ldexp(x, n), LILAC_ROUND_NEAREST_EVEN, false);
        }
        assert_true(check(wide ? "ldexp" : "ldexpf", wide ? "did" : "fif", MOST, words));
    }
    free(words);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_near),
                                       cmocka_unit_test(scaling_rounds_once),
                                       cmocka_unit_test(f32_functions_are_near_the_hosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
