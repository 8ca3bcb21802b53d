/* lower: arithmetic, comparisons, conversions and functions, every type, against plain C. */
#include "support/lower_harness.h"

enum { N = 256 };

static const char *memory_name(lilac_scalar scalar) {
    return scalar == LILAC_I1 ? "i8" : lilac_scalar_name(scalar);
}

/* One elementwise operation `line` (of %a, %b, %c to %x) on tensors; predicates live in memory as
 * bytes. */
static void make_kernel(lilac_text *out, uint32_t operands, lilac_scalar in, lilac_scalar result,
                        const char *line) {
    static const char names[] = "abc";
    lilac_text_reset(out);
    lilac_text_puts(out, "module {\n  tt.func public @k(");
    for (uint32_t i = 0; i < operands; i++) {
        lilac_text_printf(out, "%%p%c: !tt.ptr<%s> {tt.divisibility = 16 : i32}, ", names[i],
                          memory_name(in));
    }
    lilac_text_printf(out, "%%po: !tt.ptr<%s> {tt.divisibility = 16 : i32}) {\n",
                      memory_name(result));
    lilac_text_printf(out,
                      "    %%r = tt.make_range {end = %d : i32, start = 0 : i32} : "
                      "tensor<%dxi32>\n",
                      N, N);
    for (uint32_t i = 0; i < operands; i++) {
        const char *t = memory_name(in);
        char c = names[i];
        lilac_text_printf(out,
                          "    %%s%c = tt.splat %%p%c : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
                          "    %%q%c = tt.addptr %%s%c, %%r : tensor<%dx!tt.ptr<%s>>, "
                          "tensor<%dxi32>\n"
                          "    %%%c%s = tt.load %%q%c : tensor<%dx!tt.ptr<%s>>\n",
                          c, c, t, N, t, c, c, N, t, N, c, in == LILAC_I1 ? "8" : "", c, N, t);
        if (in == LILAC_I1) {
            lilac_text_printf(out,
                              "    %%z%c = arith.constant dense<0> : tensor<%dxi8>\n"
                              "    %%%c = arith.cmpi ne, %%%c8, %%z%c : tensor<%dxi8>\n",
                              c, N, c, c, c, N);
        }
    }
    lilac_text_printf(out, "    %s\n", line);
    const char *t = memory_name(result);
    if (result == LILAC_I1) {
        lilac_text_printf(out, "    %%y = arith.extui %%x : tensor<%dxi1> to tensor<%dxi8>\n", N,
                          N);
    }
    lilac_text_printf(out,
                      "    %%so = tt.splat %%po : !tt.ptr<%s> -> tensor<%dx!tt.ptr<%s>>\n"
                      "    %%qo = tt.addptr %%so, %%r : tensor<%dx!tt.ptr<%s>>, tensor<%dxi32>\n"
                      "    tt.store %%qo, %s : tensor<%dx!tt.ptr<%s>>\n"
                      "    tt.return\n  }\n}\n",
                      t, N, t, N, t, N, result == LILAC_I1 ? "%y" : "%x", N, t);
}

typedef struct element_test {
    uint32_t operands;
    lilac_scalar in, result;
    const char *op, *end; /* "%x = OP %a, %b END: tensor<256xIN>"; or */
    const char *line;
    /* Changes operands that are not allowed (a zero divisor). */
    void (*prepare)(lilac_scalar in, uint64_t *operands);
    /* Is `got` right? */
    bool (*check)(const struct element_test *t, const uint64_t *operands, uint64_t got);
    const void *data;
} element_test;

static const char *device; /* NULL: sm_90a */

/* Runs tests on every device. */
static void on_every_device(void (*test)(void)) {
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        device = lilac_arch_at(i)->name;
        test();
    }
    device = NULL;
}

static void run_element_test(const element_test *t, uint64_t seed) {
    static const char *const operand_lists[] = {"", "%a", "%a, %b", "%a, %b, %c"};
    lilac_text text = {0};
    char line[160];
    if (t->op != NULL) {
        snprintf(line, sizeof line, "%%x = %s %s%s : tensor<%dx%s>", t->op,
                 operand_lists[t->operands], t->end != NULL ? t->end : "", N,
                 lilac_scalar_name(t->in));
    }
    const char *wanted = t->op != NULL ? line : t->line;
    make_kernel(&text, t->operands, t->in, t->result, wanted);
    harness h;
    if (!harness_try(&h, lilac_text_get(&text), 4, true, device)) {
        print_message("%s\n%s\n", device != NULL ? device : "sm_90a", lilac_text_get(&text));
        print_diagnostics(h.context);
        fail_msg("the kernel was refused");
    }
    uint8_t arrays[3][N * 8], out[N * 8];
    buffer buffers[4];
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t operands[3] = {0, 0, 0};
        for (uint32_t k = 0; k < t->operands; k++) {
            operands[k] = random_element(&random, t->in);
        }
        if (t->prepare != NULL) {
            t->prepare(t->in, operands);
        }
        for (uint32_t k = 0; k < t->operands; k++) {
            set_element(arrays[k], t->in, i, operands[k]);
        }
    }
    for (uint32_t k = 0; k < t->operands; k++) {
        buffers[k] = (buffer){arrays[k], N * bytes_of(t->in)};
    }
    memset(out, 0x77, sizeof out);
    buffers[t->operands] = (buffer){out, N * bytes_of(t->result)};
    harness_run(&h, 1, buffers, t->operands + 1, NULL, 0);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t operands[3] = {0, 0, 0};
        for (uint32_t k = 0; k < t->operands; k++) {
            operands[k] = get_element(arrays[k], t->in, i);
        }
        uint64_t got = get_element(out, t->result, i);
        if (!t->check(t, operands, got)) {
            print_message("%s\n%s\n", wanted, lilac_text_get(&h.text));
            fail_msg("%s %s: element %u of %llx %llx %llx is %llx", wanted,
                     lilac_scalar_name(t->in), i, (unsigned long long)operands[0],
                     (unsigned long long)operands[1], (unsigned long long)operands[2],
                     (unsigned long long)got);
        }
    }
    harness_close(&h);
    lilac_text_clear(&text);
}

/* ---- integers ---------------------------------------------------------------------------- */

typedef enum integer_op {
    ADD,
    SUB,
    MUL,
    DIVS,
    DIVU,
    REMS,
    REMU,
    CEILS,
    CEILU,
    FLOORS,
    AND,
    OR,
    XOR,
    SHL,
    SHRS,
    SHRU,
    MINS,
    MINU,
    MAXS,
    MAXU,
    MULHIU,
} integer_op;

static const struct {
    const char *name;
    integer_op op;
} integer_ops[] = {
    {"arith.addi", ADD},          {"arith.subi", SUB},        {"arith.muli", MUL},
    {"arith.divsi", DIVS},        {"arith.divui", DIVU},      {"arith.remsi", REMS},
    {"arith.remui", REMU},        {"arith.ceildivsi", CEILS}, {"arith.ceildivui", CEILU},
    {"arith.floordivsi", FLOORS}, {"arith.andi", AND},        {"arith.ori", OR},
    {"arith.xori", XOR},          {"arith.shli", SHL},        {"arith.shrsi", SHRS},
    {"arith.shrui", SHRU},        {"arith.minsi", MINS},      {"arith.minui", MINU},
    {"arith.maxsi", MAXS},        {"arith.maxui", MAXU},      {"tt.mulhiui", MULHIU},
};

static uint64_t high_half(uint32_t bits, uint64_t a, uint64_t b) {
    if (bits < 64) {
        return bits == 32 ? (a * b) >> 32 : (a * b) >> bits;
    }
    uint64_t al = a & 0xFFFFFFFF, ah = a >> 32, bl = b & 0xFFFFFFFF, bh = b >> 32;
    uint64_t middle = ah * bl + ((al * bl) >> 32);
    uint64_t other = al * bh + (middle & 0xFFFFFFFF);
    return ah * bh + (middle >> 32) + (other >> 32);
}

static bool check_integer(const element_test *t, const uint64_t *in, uint64_t got) {
    integer_op op = *(const integer_op *)t->data;
    uint32_t bits = lilac_scalar_bits(t->in);
    uint64_t a = in[0], b = in[1], x = 0;
    int64_t sa = lilac_scalar_signed(t->in, a), sb = lilac_scalar_signed(t->in, b);
    if (bits == 1) {
        sa = -(int64_t)a, sb = -(int64_t)b;
    }
    bool divides = sb != 0 && !(sa == INT64_MIN && sb == -1);
    int64_t quotient = divides ? sa / sb : 0, rest = divides ? sa % sb : 0;
    switch (op) {
    case ADD:
        x = a + b;
        break;
    case SUB:
        x = a - b;
        break;
    case MUL:
        x = a * b;
        break;
    case DIVS:
        x = (uint64_t)quotient;
        break;
    case DIVU:
        x = a / b;
        break;
    case REMS:
        x = (uint64_t)rest;
        break;
    case REMU:
        x = a % b;
        break;
    case CEILS:
        x = (uint64_t)(quotient + (rest != 0 && (sa < 0) == (sb < 0)));
        break;
    case CEILU:
        x = a / b + (a % b != 0);
        break;
    case FLOORS:
        x = (uint64_t)(quotient - (rest != 0 && (sa < 0) != (sb < 0)));
        break;
    case AND:
        x = a & b;
        break;
    case OR:
        x = a | b;
        break;
    case XOR:
        x = a ^ b;
        break;
    case SHL:
        x = a << b;
        break;
    case SHRS:
        x = (uint64_t)(sa >> b);
        break;
    case SHRU:
        x = a >> b;
        break;
    case MINS:
        x = sa < sb ? a : b;
        break;
    case MINU:
        x = a < b ? a : b;
        break;
    case MAXS:
        x = sa > sb ? a : b;
        break;
    case MAXU:
        x = a > b ? a : b;
        break;
    case MULHIU:
        x = high_half(bits, a, b);
        break;
    }
    return got == lilac_scalar_mask(t->in, x);
}

static void nonzero_divisor(lilac_scalar in, uint64_t *operands) {
    uint64_t mask = lilac_scalar_mask(in, ~0ULL);
    if (operands[1] == 0) {
        operands[1] = lilac_scalar_bits(in) == 1 ? 1 : 3;
    }
    /* The one quotient that does not fit. */
    if (operands[1] == mask && operands[0] == mask / 2 + 1) {
        operands[0] = lilac_scalar_bits(in) == 1 ? 0 : 5;
    }
}

static void small_shift(lilac_scalar in, uint64_t *operands) {
    operands[1] %= lilac_scalar_bits(in);
}

static const lilac_scalar integers[] = {LILAC_I1, LILAC_I8, LILAC_I16, LILAC_I32, LILAC_I64};

static void integer_operations(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof integer_ops / sizeof *integer_ops; k++) {
        for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
            integer_op op = integer_ops[k].op;
            element_test t = {.operands = 2,
                              .in = integers[i],
                              .result = integers[i],
                              .op = integer_ops[k].name,
                              .check = check_integer,
                              .data = &op};
            t.prepare = op >= DIVS && op <= FLOORS ? nonzero_divisor
                        : op >= SHL && op <= SHRU  ? small_shift
                                                   : NULL;
            run_element_test(&t, 100 * k + i);
        }
    }
}

static const char *const integer_predicates[] = {
    "arith.cmpi eq,",  "arith.cmpi ne,",  "arith.cmpi slt,", "arith.cmpi sle,", "arith.cmpi sgt,",
    "arith.cmpi sge,", "arith.cmpi ult,", "arith.cmpi ule,", "arith.cmpi ugt,", "arith.cmpi uge,"};

static bool check_cmpi(const element_test *t, const uint64_t *in, uint64_t got) {
    uint64_t a = in[0], b = in[1];
    int64_t sa = lilac_scalar_signed(t->in, a), sb = lilac_scalar_signed(t->in, b);
    if (t->in == LILAC_I1) {
        sa = -(int64_t)a, sb = -(int64_t)b;
    }
    bool want[] = {a == b, a != b, sa<sb, sa <= sb, sa> sb, sa >= sb, a<b, a <= b, a> b, a >= b};
    return got == want[*(const size_t *)t->data];
}

static void mostly_equal(lilac_scalar in, uint64_t *operands) {
    (void)in;
    if (operands[0] % 3 == 0) {
        operands[1] = operands[0];
    }
}

static void integer_comparisons(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof integer_predicates / sizeof *integer_predicates; k++) {
        for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
            element_test t = {.operands = 2,
                              .in = integers[i],
                              .result = LILAC_I1,
                              .op = integer_predicates[k],
                              .prepare = mostly_equal,
                              .check = check_cmpi,
                              .data = &k};
            run_element_test(&t, 7 * k + i);
        }
    }
}

static bool check_absi(const element_test *t, const uint64_t *in, uint64_t got) {
    int64_t a = lilac_scalar_signed(t->in, in[0]);
    return got == lilac_scalar_mask(t->in, a < 0 ? -(uint64_t)a : (uint64_t)a);
}

static bool check_mul_high(const element_test *t, const uint64_t *in, uint64_t got) {
    int64_t product = lilac_scalar_signed(t->in, in[0]) * lilac_scalar_signed(t->in, in[1]);
    return got == lilac_scalar_mask(t->in, (uint64_t)(product >> lilac_scalar_bits(t->in)));
}

static void integer_functions(void **state) {
    (void)state;
    for (size_t i = 1; i < sizeof integers / sizeof *integers; i++) {
        element_test absolute = {.operands = 1,
                                 .in = integers[i],
                                 .result = integers[i],
                                 .op = "math.absi",
                                 .check = check_absi};
        run_element_test(&absolute, i);
        if (integers[i] == LILAC_I64) {
            continue;
        }
        char line[128];
        snprintf(line, sizeof line, "%%l, %%x = arith.mulsi_extended %%a, %%b : tensor<%dx%s>", N,
                 lilac_scalar_name(integers[i]));
        element_test product = {.operands = 2,
                                .in = integers[i],
                                .result = integers[i],
                                .line = line,
                                .check = check_mul_high};
        run_element_test(&product, i);
    }
}

/* ---- floats ------------------------------------------------------------------------------ */

static const lilac_scalar floats[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};

typedef enum float_op {
    FADD,
    FSUB,
    FMUL,
    FDIV,
    PRECISE_DIV,
    MINNUM,
    MAXNUM,
    MINIMUM,
    MAXIMUM,
} float_op;

static const struct {
    const char *name;
    float_op op;
} float_ops[] = {
    {"arith.addf", FADD},
    {"arith.subf", FSUB},
    {"arith.mulf", FMUL},
    {"arith.divf", FDIV},
    {"tt.precise_divf", PRECISE_DIV},
    {"arith.minnumf", MINNUM},
    {"arith.maxnumf", MAXNUM},
    {"arith.minimumf", MINIMUM},
    {"arith.maximumf", MAXIMUM},
};

static double lesser(double a, double b) {
    return a < b ? a : b;
}

static double greater(double a, double b) {
    return a > b ? a : b;
}

static bool check_float(const element_test *t, const uint64_t *in, uint64_t got) {
    double a = lilac_scalar_decode(t->in, in[0]), b = lilac_scalar_decode(t->in, in[1]), x = 0;
    bool nan = isnan(a) || isnan(b);
    float_op op = *(const float_op *)t->data;
    switch (op) {
    case FADD:
        x = a + b;
        break;
    case FSUB:
        x = a - b;
        break;
    case FMUL:
        x = a * b;
        break;
    case FDIV:
    case PRECISE_DIV:
        x = a / b;
        break;
    case MINNUM:
        x = isnan(a) ? b : isnan(b) ? a : lesser(a, b);
        break;
    case MAXNUM:
        x = isnan(a) ? b : isnan(b) ? a : greater(a, b);
        break;
    case MINIMUM:
        x = nan ? NAN : lesser(a, b);
        break;
    case MAXIMUM:
        x = nan ? NAN : greater(a, b);
        break;
    }
    uint64_t want = lilac_scalar_encode(t->result, x, LILAC_ROUND_NEAREST_EVEN, false);
    if (op == FDIV && !isnan(x) && !isinf(x) && t->in == LILAC_F32) {
        double y = lilac_scalar_decode(t->result, got);
        return fabs(y - x) <= fabs(x) * 0x1p-22 || fabs(y - x) <= 0x1p-149;
    }
    return same_float(t->result, got, want);
}

/* Every eighth operand is NaN. */
static void some_nans(lilac_scalar in, uint64_t *operands) {
    for (uint32_t i = 0; i < 2; i++) {
        if (operands[i] % 8 == 1) {
            operands[i] = lilac_scalar_encode(in, NAN, LILAC_ROUND_NEAREST_EVEN, false);
        }
    }
    if (operands[1] % 8 == 2) {
        operands[1] = operands[0];
    }
}

static void float_operations(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof float_ops / sizeof *float_ops; k++) {
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            float_op op = float_ops[k].op;
            element_test t = {.operands = 2,
                              .in = floats[i],
                              .result = floats[i],
                              .op = float_ops[k].name,
                              .prepare = some_nans,
                              .check = check_float,
                              .data = &op};
            run_element_test(&t, 31 * k + i);
        }
    }
}

static const char *const float_predicates[] = {
    "arith.cmpf false,", "arith.cmpf oeq,", "arith.cmpf ogt,", "arith.cmpf oge,",
    "arith.cmpf olt,",   "arith.cmpf ole,", "arith.cmpf one,", "arith.cmpf ord,",
    "arith.cmpf ueq,",   "arith.cmpf ugt,", "arith.cmpf uge,", "arith.cmpf ult,",
    "arith.cmpf ule,",   "arith.cmpf une,", "arith.cmpf uno,", "arith.cmpf true,"};

static bool check_cmpf(const element_test *t, const uint64_t *in, uint64_t got) {
    double a = lilac_scalar_decode(t->in, in[0]), b = lilac_scalar_decode(t->in, in[1]);
    bool nan = isnan(a) || isnan(b);
    size_t which = *(const size_t *)t->data;
    bool want[] = {false,          a == b, a > b,         a >= b,       a < b,         a <= b,
                   a < b || a > b, !nan,   nan || a == b, nan || a > b, nan || a >= b, nan || a < b,
                   nan || a <= b,  a != b, nan,           true};
    return got == want[which];
}

static void float_comparisons(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof float_predicates / sizeof *float_predicates; k++) {
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            element_test t = {.operands = 2,
                              .in = floats[i],
                              .result = LILAC_I1,
                              .op = float_predicates[k],
                              .prepare = some_nans,
                              .check = check_cmpf,
                              .data = &k};
            run_element_test(&t, 13 * k + i);
        }
    }
}

/* On a device without bf16 arithmetic the same results come by way of f32. */
static void bf16_through_f32(void **state) {
    (void)state;
    lilac_text text = {0};
    make_kernel(&text, 2, LILAC_BF16, LILAC_BF16, "%x = arith.addf %a, %b : tensor<256xbf16>");
    harness h;
    assert_true(harness_try(&h, lilac_text_get(&text), 4, true, "sm_80"));
    /* Two conversions there and one back for every element, and the sum in f32. */
    const char *simt = lilac_text_get(&h.text);
    assert_int_equal(count_text(simt, "fcvt"), 3 * count_text(simt, "fadd"));
    uint16_t a[N], b[N], out[N];
    lilac_random random;
    lilac_random_seed(&random, 5);
    for (uint32_t i = 0; i < N; i++) {
        a[i] = (uint16_t)random_element(&random, LILAC_BF16);
        b[i] = (uint16_t)random_element(&random, LILAC_BF16);
    }
    buffer buffers[] = {{a, sizeof a}, {b, sizeof b}, {out, sizeof out}};
    harness_run(&h, 1, buffers, 3, NULL, 0);
    for (uint32_t i = 0; i < N; i++) {
        double sum = lilac_scalar_decode(LILAC_BF16, a[i]) + lilac_scalar_decode(LILAC_BF16, b[i]);
        assert_int_equal(out[i],
                         lilac_scalar_encode(LILAC_BF16, sum, LILAC_ROUND_NEAREST_EVEN, false));
    }
    harness_close(&h);
    lilac_text_clear(&text);
}

static bool check_three(const element_test *t, const uint64_t *in, uint64_t got) {
    int which = *(const int *)t->data; /* 0 fma, 1 clamp, 2 clamp that propagates NaN */
    double x = lilac_scalar_decode(t->in, in[0]);
    double low = lilac_scalar_decode(t->in, in[1]), high = lilac_scalar_decode(t->in, in[2]);
    if (which == 0) {
        return same_float(t->in, got, lilac_scalar_fma(t->in, in[0], in[1], in[2]));
    }
    double raised = isnan(x) ? low : greater(x, low);
    double want = which == 2 && isnan(x) ? NAN : lesser(raised, high);
    return same_float(t->in, got,
                      lilac_scalar_encode(t->in, want, LILAC_ROUND_NEAREST_EVEN, false));
}

static void ordered_bounds(lilac_scalar in, uint64_t *operands) {
    if (lilac_scalar_decode(in, operands[1]) > lilac_scalar_decode(in, operands[2])) {
        uint64_t low = operands[1];
        operands[1] = operands[2];
        operands[2] = low;
    }
    if (operands[0] % 8 == 1) {
        operands[0] = lilac_scalar_encode(in, NAN, LILAC_ROUND_NEAREST_EVEN, false);
    }
}

static void three_operands(void **state) {
    (void)state;
    static const char *const ends[] = {"", ", propagateNan = none", ", propagateNan = all"};
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            element_test t = {.operands = 3,
                              .in = floats[i],
                              .result = floats[i],
                              .op = k == 0 ? "math.fma" : "tt.clampf",
                              .end = ends[k],
                              .prepare = k == 0 ? NULL : ordered_bounds,
                              .check = check_three,
                              .data = &k};
            run_element_test(&t, 17 * (size_t)k + i);
        }
    }
}

static bool check_sign(const element_test *t, const uint64_t *in, uint64_t got) {
    uint64_t sign = 1ULL << (lilac_scalar_bits(t->in) - 1);
    bool negate = *(const bool *)t->data;
    return got == (negate ? in[0] ^ sign : in[0] & ~sign);
}

static bool check_select(const element_test *t, const uint64_t *in, uint64_t got) {
    (void)t;
    return got == (in[0] < in[1] ? in[2] : in[0]);
}

static void signs_and_selects(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        for (int k = 0; k < 2; k++) {
            bool negate = k;
            element_test t = {.operands = 1,
                              .in = floats[i],
                              .result = floats[i],
                              .op = negate ? "arith.negf" : "math.absf",
                              .check = check_sign,
                              .data = &negate};
            run_element_test(&t, i);
        }
    }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        char line[256];
        const char *name = lilac_scalar_name(integers[i]);
        snprintf(line, sizeof line,
                 "%%m = arith.cmpi ult, %%a, %%b : tensor<%dx%s>\n"
                 "    %%x = arith.select %%m, %%c, %%a : tensor<%dxi1>, tensor<%dx%s>",
                 N, name, N, N, name);
        element_test t = {.operands = 3,
                          .in = integers[i],
                          .result = integers[i],
                          .line = line,
                          .check = check_select};
        run_element_test(&t, i);
    }
}

/* ---- conversions ------------------------------------------------------------------------- */

typedef struct conversion {
    const char *name;
    lilac_rounding rounding;
} conversion;

/* An integer as a double that rounds to fewer bits as the integer does: where it has more than 53,
 * the last of them is set if any behind it is. */
static double exact_integer(uint64_t magnitude, bool negative) {
    if (magnitude >> 53 != 0) {
        magnitude = (magnitude & ~UINT64_C(0xFFF)) | (magnitude & 0xFFF ? 0x800 : 0);
    }
    return negative ? -(double)magnitude : (double)magnitude;
}

static bool check_conversion(const element_test *t, const uint64_t *in, uint64_t got) {
    const conversion *c = t->data;
    const char *name = c->name;
    uint64_t a = in[0];
    uint32_t bits = lilac_scalar_bits(t->result);
    int64_t number = t->in == LILAC_I1 ? -(int64_t)a : lilac_scalar_signed(t->in, a);
    if (strcmp(name, "arith.extsi") == 0) {
        return got == lilac_scalar_mask(t->result, (uint64_t)number);
    }
    if (strcmp(name, "arith.extui") == 0 || strcmp(name, "arith.trunci") == 0) {
        return got == lilac_scalar_mask(t->result, a);
    }
    if (strcmp(name, "arith.bitcast") == 0) {
        return got == a;
    }
    if (strcmp(name, "arith.sitofp") == 0 || strcmp(name, "arith.uitofp") == 0) {
        bool is_signed = strcmp(name, "arith.sitofp") == 0;
        double exact = is_signed ? exact_integer(number < 0 ? 0 - (uint64_t)number : a, number < 0)
                                 : exact_integer(a, false);
        if (t->result == LILAC_F64) {
            exact = is_signed ? (double)number : (double)a;
        }
        return same_float(t->result, got,
                          lilac_scalar_encode(t->result, exact, LILAC_ROUND_NEAREST_EVEN, false));
    }
    double value = lilac_scalar_decode(t->in, a);
    if (strcmp(name, "arith.fptosi") == 0 || strcmp(name, "arith.fptoui") == 0) {
        bool is_signed = strcmp(name, "arith.fptosi") == 0;
        double limit = ldexp(1.0, (int)bits - (is_signed ? 1 : 0));
        double cut = trunc(value);
        if (cut >= limit || cut < (is_signed ? -limit : 0.0)) {
            return true; /* any value */
        }
        return got ==
               lilac_scalar_mask(t->result, is_signed ? (uint64_t)(int64_t)cut : (uint64_t)cut);
    }
    bool narrow = bits == 8;
    return same_float(t->result, got, lilac_scalar_encode(t->result, value, c->rounding, narrow));
}

static void convert(const char *name, lilac_scalar from, lilac_scalar to, const char *rounding,
                    lilac_rounding mode) {
    char line[160];
    bool arrow = strncmp(name, "tt.", 3) == 0;
    snprintf(line, sizeof line, "%%x = %s %%a%s%s : tensor<%dx%s> %s tensor<%dx%s>", name,
             rounding != NULL ? ", rounding = " : "", rounding != NULL ? rounding : "", N,
             lilac_scalar_name(from), arrow ? "->" : "to", N, lilac_scalar_name(to));
    conversion c = {name, mode};
    element_test t = {.operands = 1,
                      .in = from,
                      .result = to,
                      .line = line,
                      .check = check_conversion,
                      .data = &c};
    run_element_test(&t, (uint64_t)from * 64 + to);
}

static void integer_conversions_here(void) {
    size_t count = sizeof integers / sizeof *integers;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (i < j) {
                convert("arith.extsi", integers[i], integers[j], NULL, 0);
                convert("arith.extui", integers[i], integers[j], NULL, 0);
            } else if (i > j) {
                convert("arith.trunci", integers[i], integers[j], NULL, 0);
            }
        }
    }
}

static void integer_conversions(void **state) {
    (void)state;
    on_every_device(integer_conversions_here);
}

static void number_conversions_here(void) {
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        for (size_t j = 0; j < sizeof floats / sizeof *floats; j++) {
            convert("arith.sitofp", integers[i], floats[j], NULL, 0);
            convert("arith.uitofp", integers[i], floats[j], NULL, 0);
            if (integers[i] != LILAC_I1) {
                convert("arith.fptosi", floats[j], integers[i], NULL, 0);
                convert("arith.fptoui", floats[j], integers[i], NULL, 0);
            }
        }
    }
}

static void number_conversions(void **state) {
    (void)state;
    on_every_device(number_conversions_here);
}

static void float_conversions_here(void) {
    static const lilac_scalar all[] = {LILAC_F8E5M2, LILAC_F8E4M3FN, LILAC_F16,
                                       LILAC_BF16,   LILAC_F32,      LILAC_F64};
    size_t count = sizeof all / sizeof *all;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            uint32_t from = lilac_scalar_bits(all[i]), to = lilac_scalar_bits(all[j]);
            if (from < to) {
                convert("arith.extf", all[i], all[j], NULL, LILAC_ROUND_NEAREST_EVEN);
                convert("tt.fp_to_fp", all[i], all[j], NULL, LILAC_ROUND_NEAREST_EVEN);
            } else if (from > to) {
                convert("arith.truncf", all[i], all[j], NULL, LILAC_ROUND_NEAREST_EVEN);
                convert("tt.fp_to_fp", all[i], all[j], "rtne", LILAC_ROUND_NEAREST_EVEN);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (lilac_scalar_bits(all[i]) > lilac_scalar_bits(all[j])) {
                convert("tt.fp_to_fp", all[i], all[j], "rtz", LILAC_ROUND_ZERO);
            }
        }
    }
    convert("arith.bitcast", LILAC_F32, LILAC_I32, NULL, 0);
    convert("arith.bitcast", LILAC_I16, LILAC_BF16, NULL, 0);
    convert("arith.bitcast", LILAC_I8, LILAC_F8E5M2, NULL, 0);
    convert("arith.bitcast", LILAC_F64, LILAC_I64, NULL, 0);
}

static void float_conversions(void **state) {
    (void)state;
    on_every_device(float_conversions_here);
}

/* ---- functions --------------------------------------------------------------------------- */

typedef struct function {
    const char *name;
    double (*exact)(double);
    double relative, absolute; /* error allowed, in f32 */
    bool positive;             /* arguments */
} function;

static double rsqrt_exact(double x) {
    return 1.0 / sqrt(x);
}

static const function functions[] = {
    {"math.exp", exp, 0x1p-18, 0, false}, /* the product loses |x| ulp */
    {"math.exp2", exp2, 0x1p-21, 0, false},
    {"math.log", log, 0x1p-23, 0, true},
    {"math.log2", log2, 0x1p-23, 0, true},
    {"math.sqrt", sqrt, 0x1p-22, 0, true},
    {"math.rsqrt", rsqrt_exact, 0x1p-22, 0, true},
    {"math.sin", sin, 0x1p-23, 0, false},
    {"math.cos", cos, 0x1p-23, 0, false},
    {"math.tanh", tanh, 0x1p-22, 0, false},
    {"math.erf", erf, 0x1p-22, 0, false},
    {"math.floor", floor, 0, 0, false},
    {"math.ceil", ceil, 0, 0, false},
    {"tt.precise_sqrt", sqrt, 0, 0, true},
};

static bool check_function(const element_test *t, const uint64_t *in, uint64_t got) {
    const function *f = t->data;
    double exact = f->exact(lilac_scalar_decode(t->in, in[0]));
    double y = lilac_scalar_decode(t->in, got);
    if (f->relative == 0 && f->absolute == 0) {
        return same_float(t->in, got,
                          lilac_scalar_encode(t->in, exact, LILAC_ROUND_NEAREST_EVEN, false));
    }
    if (t->in == LILAC_F64) {
        return fabs(y - exact) <= fabs(exact) * 0x1p-51;
    }
    /* Half an ulp of the narrow type on top. */
    double unit = t->in == LILAC_F16 ? 0x1p-11 : t->in == LILAC_BF16 ? 0x1p-8 : 0;
    double tiny = t->in == LILAC_F16 ? 0x1p-24 : 0;
    if (t->in == LILAC_F16 && fabs(exact) > 65519.0) {
        return isinf(y);
    }
    return fabs(y - exact) <= fabs(exact) * (f->relative + unit) + f->absolute + tiny;
}

static void positive(lilac_scalar in, uint64_t *operands) {
    operands[0] &= ~(1ULL << (lilac_scalar_bits(in) - 1));
    if (lilac_scalar_decode(in, operands[0]) == 0) {
        operands[0] = lilac_scalar_encode(in, 1.5, LILAC_ROUND_NEAREST_EVEN, false);
    }
}

/* exp of a hundred is too much for f32. */
static void moderate(lilac_scalar in, uint64_t *operands) {
    double x = lilac_scalar_decode(in, operands[0]);
    if (fabs(x) > 60) {
        operands[0] = lilac_scalar_encode(in, x / 16, LILAC_ROUND_NEAREST_EVEN, false);
    }
}

static void float_functions(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
            element_test t = {.operands = 1,
                              .in = floats[i],
                              .result = floats[i],
                              .op = functions[k].name,
                              .prepare = functions[k].positive ? positive : moderate,
                              .check = check_function,
                              .data = &functions[k]};
            run_element_test(&t, 3 * k + i);
        }
    }
}

/* Arguments near one, whose logarithms are small. */
static void near_one(lilac_scalar in, uint64_t *operands) {
    double x = fmod(lilac_scalar_decode(in, operands[0]), 1.0);
    operands[0] = lilac_scalar_encode(in, 1.0 + x * 0x1p-9, LILAC_ROUND_NEAREST_EVEN, false);
}

static void large(lilac_scalar in, uint64_t *operands) {
    double x = lilac_scalar_decode(in, operands[0]);
    operands[0] = lilac_scalar_encode(in, x * 0x1p30, LILAC_ROUND_NEAREST_EVEN, false);
}

static void hard_arguments(void **state) {
    (void)state;
    static const char *const names[] = {"math.log", "math.log2", "math.sin", "math.cos"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        const function *f = functions;
        while (strcmp(f->name, names[n]) != 0) {
            f++;
        }
        element_test t = {.operands = 1,
                          .in = LILAC_F32,
                          .result = LILAC_F32,
                          .op = f->name,
                          .prepare = f->positive ? near_one : large,
                          .check = check_function,
                          .data = f};
        run_element_test(&t, 50 + n);
    }
}

/* A remainder is a number of its operands' type: nothing is rounded. */
static bool check_remainder(const element_test *t, const uint64_t *in, uint64_t got) {
    double exact = fmod(lilac_scalar_decode(t->in, in[0]), lilac_scalar_decode(t->in, in[1]));
    return same_float(t->in, got,
                      lilac_scalar_encode(t->in, exact, LILAC_ROUND_NEAREST_EVEN, false));
}

/* Operands whose quotient is too large to be exact in their type. */
static void far_apart(lilac_scalar in, uint64_t *operands) {
    double x = lilac_scalar_decode(in, operands[0]);
    double scale = in == LILAC_F16 ? 0x1p8 : in == LILAC_F64 ? 0x1p900 : 0x1p100;
    operands[0] = lilac_scalar_encode(in, x * scale, LILAC_ROUND_NEAREST_EVEN, false);
}

static void remainders(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof floats / sizeof *floats); i++) {
        lilac_scalar type = floats[i / 2];
        element_test t = {.operands = 2,
                          .in = type,
                          .result = type,
                          .op = "arith.remf",
                          .prepare = i % 2 == 0 ? NULL : far_apart,
                          .check = check_remainder};
        run_element_test(&t, 100 + i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_operations),  cmocka_unit_test(integer_comparisons),
        cmocka_unit_test(integer_functions),   cmocka_unit_test(float_operations),
        cmocka_unit_test(float_comparisons),   cmocka_unit_test(bf16_through_f32),
        cmocka_unit_test(three_operands),      cmocka_unit_test(signs_and_selects),
        cmocka_unit_test(integer_conversions), cmocka_unit_test(number_conversions),
        cmocka_unit_test(float_conversions),   cmocka_unit_test(float_functions),
        cmocka_unit_test(hard_arguments),      cmocka_unit_test(remainders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
