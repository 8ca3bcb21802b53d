/* libdevice's operations on integers, bits, roundings and conversions, against the host's own
 * arithmetic; and what is refused. */
#include "support/lower_harness.h"

#include <fenv.h>

#define N 1024

typedef uint64_t (*reference)(const uint64_t *in);

static float f(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}
static double d(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint64_t of_f(float value) {
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}
static uint64_t of_d(double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    return word;
}
static int32_t s32(uint64_t bits) {
    return (int32_t)(uint32_t)bits;
}

#define REF(name, expression)                                                                      \
    static uint64_t name(const uint64_t *in) {                                                     \
        return (uint64_t)(expression);                                                             \
    }
#define A in[0]
#define B in[1]
#define C in[2]

REF(clz32, (uint32_t)A == 0 ? 32 : __builtin_clz((uint32_t)A))
REF(clz64, A == 0 ? 64 : __builtin_clzll(A))
REF(popc32, __builtin_popcount((uint32_t)A))
REF(popc64, __builtin_popcountll(A))
REF(ffs32, __builtin_ffs(s32(A)))
REF(ffs64, __builtin_ffsll((int64_t)A))
REF(mulhi, ((int64_t)s32(A) * s32(B)) >> 32)
REF(umulhi, ((uint64_t)(uint32_t)A * (uint32_t)B) >> 32)
REF(hadd, ((int64_t)s32(A) + s32(B)) >> 1)
REF(uhadd, ((uint64_t)(uint32_t)A + (uint32_t)B) >> 1)
REF(rhadd, ((int64_t)s32(A) + s32(B) + 1) >> 1)
REF(urhadd, ((uint64_t)(uint32_t)A + (uint32_t)B + 1) >> 1)
REF(mul24, (uint32_t)((((int64_t)s32(A << 8)) >> 8) * (((int64_t)s32(B << 8)) >> 8)))
REF(umul24, (A & 0xFFFFFF) * (B & 0xFFFFFF))
REF(sad, (uint32_t)llabs((int64_t)s32(A) - s32(B)) + (uint32_t)C)
REF(usad, (uint32_t)llabs((int64_t)(uint32_t)A - (int64_t)(uint32_t)B) + (uint32_t)C)
REF(abs32, s32(A) < 0 ? 0 - (uint32_t)A : (uint32_t)A)
REF(abs64, (int64_t)A < 0 ? 0 - A : A)
/* In portable arithmetic, since there are no 128 bits in it. */
static uint64_t umul64hi(const uint64_t *in) {
    uint64_t al = (uint32_t)A, ah = A >> 32, bl = (uint32_t)B, bh = B >> 32;
    uint64_t middle = ah * bl + ((al * bl) >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}
static uint64_t mul64hi(const uint64_t *in) {
    return umul64hi(in) - ((int64_t)A < 0 ? B : 0) - ((int64_t)B < 0 ? A : 0);
}
static uint64_t reversed(uint64_t a, int bits) {
    uint64_t result = 0;
    for (int i = 0; i < bits; i++) {
        result |= (a >> i & 1) << (bits - 1 - i);
    }
    return result;
}
REF(brev32, reversed(A, 32))
REF(brev64, reversed(A, 64))
static uint64_t byte_perm(const uint64_t *in) {
    uint64_t bytes = (uint32_t)A | B << 32, result = 0;
    for (int i = 0; i < 4; i++) {
        result |= (bytes >> ((C >> (4 * i) & 7) * 8) & 255) << (8 * i);
    }
    return result;
}
REF(round_f, of_f(roundf(f(A))))
REF(round_d, of_d(round(d(A))))
REF(rint_f, of_f(rintf(f(A))))
REF(rint_d, of_d(rint(d(A))))
REF(trunc_f, of_f(truncf(f(A))))
REF(trunc_d, of_d(trunc(d(A))))
REF(isnan_f, isnan(f(A)) != 0)
REF(isnan_d, isnan(d(A)) != 0)
REF(isinf_f, isinf(f(A)) != 0)
REF(isinf_d, isinf(d(A)) != 0)
REF(finite_f, isfinite(f(A)) != 0)
REF(finite_d, isfinite(d(A)) != 0)
REF(signbit_f, signbit(f(A)) != 0)
REF(signbit_d, signbit(d(A)) != 0)
REF(copysign_f, of_f(copysignf(f(A), f(B))))
REF(copysign_d, of_d(copysign(d(A), d(B))))
REF(fdim_f, of_f(fdimf(f(A), f(B))))
REF(fdim_d, of_d(fdim(d(A), d(B))))
REF(nextafter_f, of_f(nextafterf(f(A), f(B))))
REF(nextafter_d, of_d(nextafter(d(A), d(B))))
REF(logb_f, of_f(logbf(f(A))))
REF(logb_d, of_d(logb(d(A))))
REF(ilogb_f, ilogbf(f(A)))
REF(ilogb_d, ilogb(d(A)))
REF(ldexp_f, of_f(ldexpf(f(A), s32(B))))
REF(ldexp_d, of_d(ldexp(d(A), s32(B))))
REF(same_bits, A)
REF(hilo, A << 32 | (uint32_t)B)
REF(low, (uint32_t)A)
REF(high, A >> 32)

/* A NaN gives the sign bit of 64 bits, and of 32 from f64; else 0. `least`, `most`: of the integer. */
static uint64_t saturated(double value, double least, double most, bool is_signed, bool wide) {
    if (isnan(value)) {
        return most > 0x1p40 ? UINT64_C(1) << 63 : wide ? UINT64_C(1) << 31 : 0;
    }
    if (value <= least) {
        return is_signed ? (uint64_t)(int64_t)least : 0;
    }
    if (value >= most) {
        return is_signed ? (most > 0x1p32 ? INT64_MAX : INT32_MAX)
                         : (most > 0x1p40 ? UINT64_MAX : UINT32_MAX);
    }
    return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}
#define TO_INTEGER(name, get, how, least, most, is_signed)                                         \
    REF(name, saturated(how((double)get(A)), least, most, is_signed, sizeof get(A) == 8))
TO_INTEGER(f2i_rn, f, rint, -0x1p31, 0x1p31, true)
TO_INTEGER(f2i_rd, f, floor, -0x1p31, 0x1p31, true)
TO_INTEGER(f2i_ru, f, ceil, -0x1p31, 0x1p31, true)
TO_INTEGER(f2i_rz, f, trunc, -0x1p31, 0x1p31, true)
TO_INTEGER(d2u_rn, d, rint, 0, 0x1p32, false)
TO_INTEGER(d2u_ru, d, ceil, 0, 0x1p32, false)
TO_INTEGER(d2ll_rn, d, rint, -0x1p63, 0x1p63, true)
TO_INTEGER(d2ll_rd, d, floor, -0x1p63, 0x1p63, true)
TO_INTEGER(f2ull_ru, f, ceil, 0, 0x1p64, false)
TO_INTEGER(llround_d, d, round, -0x1p63, 0x1p63, true)

/* In a direction of the host's. */
#define DIRECTED(name, mode, type, in_a, in_b, in_c, out, expression)                              \
    static uint64_t name(const uint64_t *in) {                                                     \
        volatile type a = in_a, b = in_b, c = in_c;                                                \
        fesetround(mode);                                                                          \
        volatile type r = (expression);                                                            \
        fesetround(FE_TONEAREST);                                                                  \
        (void)a, (void)b, (void)c;                                                                 \
        return out(r);                                                                             \
    }
#define ALL(stem, type, get, out, expression)                                                      \
    DIRECTED(stem##_rz, FE_TOWARDZERO, type, get(in[0]), get(in[1]), get(in[2]), out, expression)  \
    DIRECTED(stem##_rd, FE_DOWNWARD, type, get(in[0]), get(in[1]), get(in[2]), out, expression)    \
    DIRECTED(stem##_ru, FE_UPWARD, type, get(in[0]), get(in[1]), get(in[2]), out, expression)
ALL(fadd, float, f, of_f, a + b)
ALL(fsub, float, f, of_f, a - b)
ALL(fmul, float, f, of_f, a *b)
ALL(fdiv, float, f, of_f, a / b)
ALL(frcp, float, f, of_f, 1.0F / a)
ALL(fsqrt, float, f, of_f, sqrtf(a))
ALL(ffma, float, f, of_f, fmaf(a, b, c))
ALL(dadd, double, d, of_d, a + b)
ALL(dsub, double, d, of_d, a - b)
ALL(dmul, double, d, of_d, a *b)
ALL(ddiv, double, d, of_d, a / b)
ALL(drcp, double, d, of_d, 1.0 / a)
ALL(dsqrt, double, d, of_d, sqrt(a))
ALL(dfma, double, d, of_d, fma(a, b, c))
#define CONVERTS(stem, from, get, to, out)                                                         \
    static uint64_t stem##_in(const uint64_t *in, int mode) {                                      \
        volatile from a = get;                                                                     \
        fesetround(mode);                                                                          \
        volatile to r = (to)a;                                                                     \
        fesetround(FE_TONEAREST);                                                                  \
        return out(r);                                                                             \
    }                                                                                              \
    REF(stem##_rz, stem##_in(in, FE_TOWARDZERO))                                                   \
    REF(stem##_rd, stem##_in(in, FE_DOWNWARD))                                                     \
    REF(stem##_ru, stem##_in(in, FE_UPWARD))
CONVERTS(d2f, double, d(A), float, of_f)
CONVERTS(i2f, int32_t, s32(A), float, of_f)
CONVERTS(ll2f, int64_t, (int64_t)A, float, of_f)
CONVERTS(ll2d, int64_t, (int64_t)A, double, of_d)

#define THREE(device, types, ref)                                                                  \
    {device "_rz", types, ref##_rz}, {device "_rd", types, ref##_rd}, {                            \
        device "_ru", types, ref##_ru                                                              \
    }

static const struct {
    const char *name, *types; /* the result's first */
    reference compute;
} operations[] = {
    {"clz", "ii", clz32},
    {"clzll", "il", clz64},
    {"popc", "ii", popc32},
    {"popcll", "il", popc64},
    {"ffs", "ii", ffs32},
    {"ffsll", "il", ffs64},
    {"mulhi", "iii", mulhi},
    {"umulhi", "iii", umulhi},
    {"mul64hi", "lll", mul64hi},
    {"umul64hi", "lll", umul64hi},
    {"hadd", "iii", hadd},
    {"uhadd", "iii", uhadd},
    {"rhadd", "iii", rhadd},
    {"urhadd", "iii", urhadd},
    {"mul24", "iii", mul24},
    {"umul24", "iii", umul24},
    {"sad", "iiii", sad},
    {"usad", "iiii", usad},
    {"abs", "ii", abs32},
    {"llabs", "ll", abs64},
    {"brev", "ii", brev32},
    {"brevll", "ll", brev64},
    {"byte_perm", "iiii", byte_perm},
    {"roundf", "ff", round_f},
    {"round", "dd", round_d},
    {"rintf", "ff", rint_f},
    {"nearbyint", "dd", rint_d},
    {"truncf", "ff", trunc_f},
    {"trunc", "dd", trunc_d},
    {"isnanf", "if", isnan_f},
    {"isnand", "id", isnan_d},
    {"isinff", "if", isinf_f},
    {"isinfd", "id", isinf_d},
    {"finitef", "if", finite_f},
    {"isfinited", "id", finite_d},
    {"signbitf", "if", signbit_f},
    {"signbitd", "id", signbit_d},
    {"copysignf", "fff", copysign_f},
    {"copysign", "ddd", copysign_d},
    {"fdimf", "fff", fdim_f},
    {"fdim", "ddd", fdim_d},
    {"nextafterf", "fff", nextafter_f},
    {"nextafter", "ddd", nextafter_d},
    {"logbf", "ff", logb_f},
    {"logb", "dd", logb_d},
    {"ilogbf", "if", ilogb_f},
    {"ilogb", "id", ilogb_d},
    {"ldexpf", "ffi", ldexp_f},
    {"ldexp", "ddi", ldexp_d},
    {"scalbnf", "ffi", ldexp_f},
    {"float_as_int", "if", same_bits},
    {"int_as_float", "fi", same_bits},
    {"longlong_as_double", "dl", same_bits},
    {"hiloint2double", "dii", hilo},
    {"double2loint", "id", low},
    {"double2hiint", "id", high},
    {"float2int_rn", "if", f2i_rn},
    {"float2int_rd", "if", f2i_rd},
    {"float2int_ru", "if", f2i_ru},
    {"float2int_rz", "if", f2i_rz},
    {"double2uint_rn", "id", d2u_rn},
    {"double2uint_ru", "id", d2u_ru},
    {"double2ll_rn", "ld", d2ll_rn},
    {"llrint", "ld", d2ll_rn},
    {"double2ll_rd", "ld", d2ll_rd},
    {"float2ull_ru", "lf", f2ull_ru},
    {"llround", "ld", llround_d},
    THREE("fadd", "fff", fadd),
    THREE("fsub", "fff", fsub),
    THREE("fmul", "fff", fmul),
    THREE("fdiv", "fff", fdiv),
    THREE("frcp", "ff", frcp),
    THREE("fsqrt", "ff", fsqrt),
    THREE("fmaf", "ffff", ffma),
    THREE("dadd", "ddd", dadd),
    THREE("dsub", "ddd", dsub),
    THREE("dmul", "ddd", dmul),
    THREE("ddiv", "ddd", ddiv),
    THREE("drcp", "dd", drcp),
    THREE("dsqrt", "dd", dsqrt),
    THREE("fma", "dddd", dfma),
    THREE("double2float", "fd", d2f),
    THREE("int2float", "fi", i2f),
    THREE("ll2float", "fl", ll2f),
    THREE("ll2double", "dl", ll2d),
};

static lilac_scalar scalar_of(char letter) {
    return letter == 'f'   ? LILAC_F32
           : letter == 'd' ? LILAC_F64
           : letter == 'i' ? LILAC_I32
                           : LILAC_I64;
}

static uint64_t input(lilac_random *random, char letter) {
    static const double specials[] = {0.0, -0.0,  1.0,  -1.0, 0.5,    1.5,     2.5,    INFINITY,
                                      NAN, 1e-40, 3e38, 4e9,  0x1p63, -0x1p63, 5e-320, -INFINITY};
    lilac_scalar scalar = scalar_of(letter);
    if (letter == 'i' || letter == 'l') {
        return lilac_random_below(random, 3) == 0
                   ? lilac_scalar_mask(scalar, lilac_random_below(random, 5) - 2)
                   : random_element(random, scalar);
    }
    uint64_t word = lilac_random_next(random);
    double value;
    switch (lilac_random_below(random, 4)) {
    case 0:
        value = specials[word % (sizeof specials / sizeof *specials)];
        break;
    case 1:
        return lilac_scalar_mask(scalar, word);
    case 2:
        value = (double)(int64_t)(word >> 40) / 2.0 - 1000.0;
        break;
    default:
        value = (double)(int64_t)word * 0x1p-60;
        break;
    }
    return lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
}

static void put_kernel(lilac_text *out, const char *name, const char *types) {
    size_t operands = strlen(types) - 1;
    lilac_text_printf(out, "module {\n  tt.func public @k(");
    for (size_t i = 0; i <= operands; i++) {
        lilac_text_printf(out, "%s%%p%zu: !tt.ptr<%s>", i == 0 ? "" : ", ", i,
                          lilac_scalar_name(scalar_of(types[i])));
    }
    lilac_text_printf(
        out, ") {\n    %%r = tt.make_range {end = %d : i32, start = 0 : i32} : tensor<%dxi32>\n", N,
        N);
    for (size_t i = 0; i <= operands; i++) {
        const char *type = lilac_scalar_name(scalar_of(types[i]));
        lilac_text_printf(
            out,
            "    %%s%zu = tt.splat %%p%zu : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
            "    %%a%zu = tt.addptr %%s%zu, %%r : tensor<%dx!tt.ptr<%s>>, tensor<%dxi32>\n",
            i, i, type, N, type, i, i, N, type, N);
        if (i > 0) {
            lilac_text_printf(out, "    %%v%zu = tt.load %%a%zu : tensor<%dx!tt.ptr<%s>>\n", i, i,
                              N, type);
        }
    }
    lilac_text_printf(out, "    %%x = tt.extern_elementwise ");
    for (size_t i = 1; i <= operands; i++) {
        lilac_text_printf(out, "%s%%v%zu", i == 1 ? "" : ", ", i);
    }
    lilac_text_printf(
        out, " {libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_%s\"} : (", name);
    for (size_t i = 1; i <= operands; i++) {
        lilac_text_printf(out, "%stensor<%dx%s>", i == 1 ? "" : ", ", N,
                          lilac_scalar_name(scalar_of(types[i])));
    }
    const char *type = lilac_scalar_name(scalar_of(types[0]));
    lilac_text_printf(out,
                      ") -> tensor<%dx%s>\n    tt.store %%a0, %%x : tensor<%dx!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      N, type, N, type);
}

static bool operation_is_right(size_t index) {
    const char *name = operations[index].name, *types = operations[index].types;
    uint32_t operands = (uint32_t)strlen(types) - 1;
    lilac_text text = {0};
    put_kernel(&text, name, types);
    harness h;
    harness_open(&h, lilac_text_get(&text), 4, true);
    lilac_text_clear(&text);
    lilac_random random;
    lilac_random_seed(&random, index + 1);
    uint64_t arrays[4][N];
    uint64_t memory[4][N];
    buffer buffers[4];
    for (uint32_t i = 0; i <= operands; i++) {
        lilac_scalar scalar = scalar_of(types[i]);
        buffers[i] = (buffer){memory[i], (size_t)N * bytes_of(scalar)};
        for (size_t j = 0; j < N; j++) {
            arrays[i][j] = i == 0 ? 0 : input(&random, types[i]);
            set_element(memory[i], scalar, j, arrays[i][j]);
        }
    }
    harness_run(&h, 1, buffers, operands + 1, NULL, 0);
    harness_close(&h);
    uint32_t wrong = 0;
    lilac_scalar scalar = scalar_of(types[0]);
    for (size_t j = 0; j < N; j++) {
        uint64_t in[3] = {0, 0, 0};
        for (uint32_t i = 0; i < operands; i++) {
            in[i] = arrays[i + 1][j];
        }
        uint64_t want = lilac_scalar_mask(scalar, operations[index].compute(in));
        uint64_t got = get_element(memory[0], scalar, j);
        bool nans = lilac_scalar_is_float(scalar) && isnan(lilac_scalar_decode(scalar, got)) &&
                    isnan(lilac_scalar_decode(scalar, want));
        if (got != want && !nans && wrong++ < 4) {
            print_message("%s(%llx, %llx, %llx): %llx for %llx\n", name, (unsigned long long)in[0],
                          (unsigned long long)in[1], (unsigned long long)in[2],
                          (unsigned long long)got, (unsigned long long)want);
        }
    }
    return wrong == 0;
}

static void operations_are_right(void **state) {
    (void)state;
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        wrong += !operation_is_right(i);
    }
    assert_int_equal(wrong, 0);
}

/* tests/data/libdevice.txt has every function and overload of Triton 3.6's libdevice module;
 * tests/triton/test_libdevice.py compares it with the installed one. */
static void every_function_is_known(void **state) {
    (void)state;
    FILE *file = fopen(LILAC_TEST_DATA "/libdevice.txt", "r");
    assert_non_null(file);
    char name[32], types[6];
    uint32_t functions = 0, unknown = 0;
    while (fscanf(file, "%31s %5s", name, types) == 2) {
        lilac_text text = {0};
        put_kernel(&text, name, types);
        harness h;
        if (!harness_try(&h, lilac_text_get(&text), 4, true, NULL)) {
            print_message("%s %s: %s\n", name, types, lilac_diagnostics(h.context)->id);
            unknown++;
        }
        lilac_text_clear(&text);
        harness_close(&h);
        functions++;
    }
    fclose(file);
    assert_int_equal(functions, 313);
    assert_int_equal(unknown, 0);
}

static void refuses(const char *name, const char *types, const char *id) {
    lilac_text text = {0};
    put_kernel(&text, name, types);
    harness h;
    assert_false(harness_try(&h, lilac_text_get(&text), 4, true, NULL));
    lilac_text_clear(&text);
    assert_string_equal(lilac_diagnostics(h.context)->id, id);
    harness_close(&h);
}

static void what_is_refused(void **state) {
    (void)state;
    refuses("no_such_function", "ff", "unknown-function");
    refuses("jn", "ddd", "unsupported-type");
    refuses("jn", "ddi", "unsupported-type");
    refuses("dmul_rz", "fff", "unsupported-type");
    refuses("sinf", "dd", "unsupported-type");
    refuses("sin", "dl", "unsupported-type");
    refuses("hypotf", "ff", "unsupported-type");
    refuses("clz", "ll", "unsupported-type");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_right),
        cmocka_unit_test(every_function_is_known),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
