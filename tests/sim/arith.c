/* The simulator's arithmetic against references that know none of its tricks.
 *
 *   integers   128-bit arithmetic, cut to the width
 *   f16 bf16   a sum, product or fma is compared exactly, in long double, with the two neighbours
 *   f8         that enclose it in a sorted list of all the format's values
 *   f32 f64    the C compiler's own operations, fmaf and fma
 *   f16        the compiler's _Float16, where it has one
 *
 * Conversions out of 8- and 16-bit types are exhaustive; the rest takes seeded random operands,
 * half of them from a list of troublesome ones. */
#include <float.h>
#include <math.h>

#include "support/sim_kernels.h"
#include "support/test.h"

enum { CASES = 4096 };

typedef struct format {
    lilac_simt_type type;
    uint32_t bits, mantissa;
    int bias;
    bool infinite; /* the top exponent is infinity and NaN; otherwise the top code alone is NaN */
    uint64_t nan;
} format;

static const format half = {LILAC_SIMT_F16, 16, 10, 15, true, 0x7FFF};
static const format bfloat = {LILAC_SIMT_BF16, 16, 7, 127, true, 0x7FFF};
static const format e4m3 = {LILAC_SIMT_I8, 8, 3, 7, false, 0x7F};
static const format e5m2 = {LILAC_SIMT_I8, 8, 2, 15, true, 0x7F};

/* ---- formats by their definition --------------------------------------------------------- */

static uint64_t magnitude_of(const format *f, uint64_t bits) {
    return bits & ((UINT64_C(1) << (f->bits - 1)) - 1);
}

/* The first code above all finite ones, without the sign bit. */
static uint64_t end_code(const format *f) {
    uint64_t all = (UINT64_C(1) << (f->bits - 1)) - 1;
    return f->infinite ? all >> f->mantissa << f->mantissa : all;
}

static bool is_nan(const format *f, uint64_t bits) {
    return f->infinite ? magnitude_of(f, bits) > end_code(f) : magnitude_of(f, bits) == f->nan;
}

/* The value of a magnitude's code as if there were no top codes: the end code's is the first power
 * of two (or step) too large, where overflow begins half a step before. */
static long double code_value(const format *f, uint64_t code) {
    long exponent = (long)(code >> f->mantissa);
    long double mantissa = (long double)(code & ((1u << f->mantissa) - 1));
    if (exponent == 0) {
        return ldexpl(mantissa, 1 - f->bias - (int)f->mantissa);
    }
    return ldexpl(mantissa + ldexpl(1, (int)f->mantissa),
                  (int)exponent - f->bias - (int)f->mantissa);
}

static long double value_of(const format *f, uint64_t bits) {
    uint64_t code = magnitude_of(f, bits);
    long double value = is_nan(f, bits)                      ? (long double)NAN
                        : f->infinite && code == end_code(f) ? (long double)INFINITY
                                                             : code_value(f, code);
    return code != bits ? -value : value;
}

/* The sign of x + y - z, exactly, for z a number of the format near x + y. A sum that is exact is
 * compared as it is; in one that is not, the larger term is near z, so their difference is exact,
 * and the sign of a sum always is. */
static int sign_of(long double x, long double y, long double z) {
    long double total = x + y, part = total - x;
    long double error = (x - (total - part)) + (y - part);
    if (error == 0) {
        return (total > z) - (total < z);
    }
    long double larger = fabsl(x) < fabsl(y) ? y : x, smaller = fabsl(x) < fabsl(y) ? x : y;
    long double sum = (larger - z) + smaller;
    return (sum > 0) - (sum < 0);
}

/* Bits of x + y rounded: neighbours below and above by bisection, then by comparison. */
static uint64_t round_sum(const format *f, long double x, long double y, lilac_rounding rounding,
                          bool saturate) {
    long double sum = x + y;
    uint64_t sign = UINT64_C(1) << (f->bits - 1);
    if (sum != sum) {
        return f->nan;
    }
    bool negative = signbit(sum) != 0;
    if (negative) {
        x = -x;
        y = -y;
        sum = -sum;
    }
    sign = negative ? sign : 0;
    uint64_t end = end_code(f), low = 0, high = end;
    if (isinf(sum)) {
        return sign | (saturate ? end - 1 : f->infinite ? end : f->nan);
    }
    while (high - low > 1) { /* value(low) ≤ x + y < value(high), or the sum is beyond the end */
        uint64_t middle = (low + high) / 2;
        if (sign_of(x, y, code_value(f, middle)) >= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    uint64_t code = low;
    long double below = code_value(f, low), above = code_value(f, high);
    int against_low = sign_of(x, y, below);
    bool beyond = sign_of(x, y, above) >= 0;
    bool up;
    switch (rounding) {
    case LILAC_ROUND_ZERO:
        up = false;
        break;
    case LILAC_ROUND_DOWN:
        up = negative && against_low > 0;
        break;
    case LILAC_ROUND_UP:
        up = !negative && against_low > 0;
        break;
    default: {
        int against_middle = sign_of(x, y, (below + above) / 2);
        up = beyond || against_middle > 0 || (against_middle == 0 && (low & 1));
        break;
    }
    }
    if (up) {
        code = high;
    }
    if (code == end && (saturate || !f->infinite)) {
        code = saturate ? end - 1 : f->nan;
    }
    return sign | code;
}

/* ---- operands ------------------------------------------------------------------------------ */

static uint64_t random_bits(lilac_random *random, lilac_simt_type type) {
    static const uint64_t halves[] = {0,      0x8000, 1,      0x8001, 0x3FF,  0x400,
                                      0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00,
                                      0x7E00, 0x3555, 0x1000, 0x6400};
    static const uint64_t bfloats[] = {0,      0x8000, 1,      0x8001, 0x7F,   0x80,
                                       0x3F80, 0xBF80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80,
                                       0x7FC0, 0x3EAB, 0x4B00, 0x0100};
    static const uint64_t floats[] = {0,          0x80000000, 1,          0x80000001,
                                      0x7FFFFF,   0x800000,   0x3F800000, 0xBF800000,
                                      0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000,
                                      0x7FC00000, 0x3EAAAAAB, 0x4B000001, 0x4F000000};
    static const double doubles[] = {0.0,     -0.0,      0x1p-1074, -0x1p-1074, 0x1p-1022, 1.0,
                                     -1.0,    DBL_MAX,   -DBL_MAX,  0x1p63,     -0x1p63,   0.5,
                                     0x1p127, 65519.999, 0x1p-25,   1.0 / 3};
    static const uint64_t integers[] = {
        0,          1,     2,  3,  UINT64_MAX, UINT64_MAX - 1,    31,
        32,         33,    63, 64, 7,          UINT64_C(1) << 63, UINT64_C(0x7FFFFFFFFFFFFFFF),
        0x80000000, 0x7FFF};
    uint64_t bits = lilac_random_next(random), pick = lilac_random_below(random, 16);
    bool special = lilac_random_below(random, 4) == 0;
    uint32_t width = lilac_simt_type_bits(type);
    if (special && type == LILAC_SIMT_F16) {
        bits = halves[pick];
    } else if (special && type == LILAC_SIMT_BF16) {
        bits = bfloats[pick];
    } else if (special && type == LILAC_SIMT_F32) {
        bits = floats[pick];
    } else if (special && type == LILAC_SIMT_F64) {
        memcpy(&bits, &doubles[pick], sizeof bits);
    } else if (special) {
        bits = integers[pick] >> (pick >= 12 && width < 64 ? 64 - width : 0);
    } else if (type == LILAC_SIMT_F32 && lilac_random_below(random, 2)) {
        bits = 0x3F000000 + (bits & 0x83FFFFFF); /* near one: sums that matter */
    } else if (type == LILAC_SIMT_BF16 && lilac_random_below(random, 2)) {
        bits = 0x3D00 + (bits & 0x85FF);
    }
    return width == 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of(uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t bits_of(lilac_simt_type type, double value) {
    uint64_t bits = 0;
    float narrow = (float)value;
    if (value != value) {
        return type == LILAC_SIMT_F32 ? 0x7FFFFFFF : UINT64_C(0x7FF8000000000000);
    }
    if (type == LILAC_SIMT_F32) {
        memcpy(&bits, &narrow, sizeof narrow);
    } else {
        memcpy(&bits, &value, sizeof value);
    }
    return bits;
}

typedef struct operands {
    uint64_t values[3][CASES];
    const uint64_t *inputs[3];
    uint64_t outputs[CASES];
} operands;

static operands pool;

static void draw(lilac_random *random, const sim_operation *operation) {
    for (uint32_t k = 0; k < 3; k++) {
        pool.inputs[k] = pool.values[k];
        for (uint32_t i = 0; i < CASES; i++) {
            pool.values[k][i] =
                k < operation->operand_count ? random_bits(random, operation->operands[k]) : 0;
        }
    }
}

static void run(const sim_operation *operation, uint32_t n) {
    assert_true(sim_apply(operation, n, pool.inputs, pool.outputs));
}

static void expect(const sim_operation *operation, uint32_t i, uint64_t wanted) {
    if (pool.outputs[i] != wanted) {
        fail_msg("%s detail %u on type %u: (%llx, %llx, %llx) gave %llx, not %llx",
                 lilac_simt_op_info_get(operation->code)->name, operation->detail,
                 operation->operands[0], (unsigned long long)pool.values[0][i],
                 (unsigned long long)pool.values[1][i], (unsigned long long)pool.values[2][i],
                 (unsigned long long)pool.outputs[i], (unsigned long long)wanted);
    }
}

/* ---- 16-bit floats ------------------------------------------------------------------------- */

static long double least_of(long double a, long double b, bool most) {
    if (a != a || b != b) {
        return a != a ? b : a;
    }
    if (a == b) {
        return (signbit(a) != 0) != most ? a : b;
    }
    return (a < b) != most ? a : b;
}

static uint64_t narrow_reference(const format *f, lilac_simt_opcode code, uint8_t flags, uint64_t a,
                                 uint64_t b, uint64_t c) {
    long double x = value_of(f, a), y = value_of(f, b), z = value_of(f, c), r = 0;
    bool unordered = x != x || y != y;
    switch (code) {
    case LILAC_SIMT_OP_FADD:
        return round_sum(f, x, y, LILAC_ROUND_NEAREST_EVEN, false);
    case LILAC_SIMT_OP_FSUB:
        return round_sum(f, x, -y, LILAC_ROUND_NEAREST_EVEN, false);
    case LILAC_SIMT_OP_FMUL: /* -0: the sum of -0 and -0 */
        return round_sum(f, x * y, signbit(x * y) ? -0.0L : 0.0L, LILAC_ROUND_NEAREST_EVEN, false);
    case LILAC_SIMT_OP_FFMA:
        return round_sum(f, x * y, z, LILAC_ROUND_NEAREST_EVEN, false);
    case LILAC_SIMT_OP_FMIN:
    case LILAC_SIMT_OP_FMAX:
        if (unordered && (flags & LILAC_SIMT_PROPAGATE_NAN)) {
            return f->nan;
        }
        r = least_of(x, y, code == LILAC_SIMT_OP_FMAX);
        break;
    case LILAC_SIMT_OP_FNEG:
        return a ^ 0x8000;
    case LILAC_SIMT_OP_FABS:
        return a & 0x7FFF;
    case LILAC_SIMT_OP_FFLOOR:
        r = floorl(x);
        break;
    case LILAC_SIMT_OP_FCEIL:
        r = ceill(x);
        break;
    case LILAC_SIMT_OP_FTRUNC:
        r = truncl(x);
        break;
    default:
        r = rintl(x);
        break;
    }
    return round_sum(f, r, signbit(r) ? -0.0L : 0.0L, LILAC_ROUND_NEAREST_EVEN, false);
}

static const struct {
    lilac_simt_opcode code;
    uint32_t operands;
    uint8_t flags;
} narrow_operations[] = {
    {LILAC_SIMT_OP_FADD, 2, 0},
    {LILAC_SIMT_OP_FSUB, 2, 0},
    {LILAC_SIMT_OP_FMUL, 2, 0},
    {LILAC_SIMT_OP_FFMA, 3, 0},
    {LILAC_SIMT_OP_FMIN, 2, 0},
    {LILAC_SIMT_OP_FMAX, 2, 0},
    {LILAC_SIMT_OP_FMIN, 2, LILAC_SIMT_PROPAGATE_NAN},
    {LILAC_SIMT_OP_FMAX, 2, LILAC_SIMT_PROPAGATE_NAN},
    {LILAC_SIMT_OP_FNEG, 1, 0},
    {LILAC_SIMT_OP_FABS, 1, 0},
    {LILAC_SIMT_OP_FFLOOR, 1, 0},
    {LILAC_SIMT_OP_FCEIL, 1, 0},
    {LILAC_SIMT_OP_FTRUNC, 1, 0},
    {LILAC_SIMT_OP_FRINT, 1, 0},
};
enum { NARROW_OPERATIONS = sizeof narrow_operations / sizeof *narrow_operations };

static void check_narrow(const format *f, uint64_t seed) {
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint32_t o = 0; o < NARROW_OPERATIONS; o++) {
        sim_operation operation = {.code = narrow_operations[o].code,
                                   .result = f->type,
                                   .operands = {f->type, f->type, f->type},
                                   .operand_count = narrow_operations[o].operands,
                                   .flags = narrow_operations[o].flags};
        draw(&random, &operation);
        run(&operation, CASES);
        for (uint32_t i = 0; i < CASES; i++) {
            expect(&operation, i,
                   narrow_reference(f, operation.code, operation.flags, pool.values[0][i],
                                    pool.values[1][i], pool.values[2][i]));
        }
    }
}

static void halves_round_once(void **state) {
    (void)state;
    check_narrow(&half, 1);
}

static void bfloats_round_once(void **state) {
    (void)state;
    check_narrow(&bfloat, 2);
}

/* A packed operation is the plain one on both halves. */
static void packed_pairs(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 3);
    (void)state;
    for (uint32_t which = 0; which < 2; which++) {
        const format *f = which ? &bfloat : &half;
        lilac_simt_type type = which ? LILAC_SIMT_BF16X2 : LILAC_SIMT_F16X2;
        for (uint32_t o = 0; o < NARROW_OPERATIONS; o++) {
            sim_operation operation = {.code = narrow_operations[o].code,
                                       .result = type,
                                       .operands = {type, type, type},
                                       .operand_count = narrow_operations[o].operands,
                                       .flags = narrow_operations[o].flags};
            draw(&random, &operation);
            for (uint32_t k = 0; k < 3; k++) {
                for (uint32_t i = 0; i < CASES; i++) {
                    pool.values[k][i] =
                        random_bits(&random, f->type) << 16 | random_bits(&random, f->type);
                }
            }
            run(&operation, 512);
            for (uint32_t i = 0; i < 512; i++) {
                uint64_t a = pool.values[0][i], b = pool.values[1][i], c = pool.values[2][i];
                uint64_t low = narrow_reference(f, operation.code, operation.flags, a & 0xFFFF,
                                                b & 0xFFFF, c & 0xFFFF);
                uint64_t high =
                    narrow_reference(f, operation.code, operation.flags, a >> 16, b >> 16, c >> 16);
                expect(&operation, i, high << 16 | low);
            }
        }
    }
}

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 native_half;

static native_half native(uint64_t bits) {
    uint16_t low = (uint16_t)bits;
    native_half value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static uint64_t native_bits(native_half value) {
    uint16_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7FFF : bits;
}

/* Every half through f32 and f64 and back, and sums and products of random pairs. */
static void halves_as_the_compiler(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 4);
    (void)state;
    for (uint32_t base = 0; base < 0x10000; base += CASES) {
        sim_operation widen = {.code = LILAC_SIMT_OP_FCVT,
                               .result = LILAC_SIMT_F32,
                               .operands = {LILAC_SIMT_F16},
                               .operand_count = 1};
        draw(&random, &widen);
        for (uint32_t i = 0; i < CASES; i++)
            pool.values[0][i] = base + i;
        run(&widen, CASES);
        for (uint32_t i = 0; i < CASES; i++)
            expect(&widen, i, bits_of(LILAC_SIMT_F32, (double)native(base + i)));
        sim_operation add = {.code = base & 0x1000 ? LILAC_SIMT_OP_FADD : LILAC_SIMT_OP_FMUL,
                             .result = LILAC_SIMT_F16,
                             .operands = {LILAC_SIMT_F16, LILAC_SIMT_F16},
                             .operand_count = 2};
        draw(&random, &add);
        run(&add, CASES);
        for (uint32_t i = 0; i < CASES; i++) {
            native_half a = native(pool.values[0][i]), b = native(pool.values[1][i]);
            expect(&add, i, native_bits((native_half)(base & 0x1000 ? a + b : a * b)));
        }
    }
    sim_operation narrow = {.code = LILAC_SIMT_OP_FCVT,
                            .result = LILAC_SIMT_F16,
                            .operands = {LILAC_SIMT_F32},
                            .operand_count = 1};
    for (uint32_t round = 0; round < 4; round++) {
        draw(&random, &narrow);
        for (uint32_t i = 0; i < CASES; i++) /* halves' range, and ties between halves */
            if (i % 4)
                pool.values[0][i] = 0x32000000 + lilac_random_below(&random, 0x16000000) / 0x1000 *
                                                     (i % 4 == 1 ? 1 : 0x1000);
        run(&narrow, CASES);
        for (uint32_t i = 0; i < CASES; i++)
            expect(&narrow, i, native_bits((native_half)float_of(pool.values[0][i])));
    }
}
#else
static void halves_as_the_compiler(void **state) {
    (void)state;
    print_message("skipped: this compiler has no _Float16\n");
    skip();
}
#endif

/* ---- wide floats --------------------------------------------------------------------------- */

static double wide_reference(lilac_simt_type type, lilac_simt_opcode code, uint8_t flags, double a,
                             double b, double c) {
    bool narrow = type == LILAC_SIMT_F32;
    volatile float x = (float)a, y = (float)b, z = (float)c, r = 0;
    switch (code) {
    case LILAC_SIMT_OP_FADD:
        r = x + y;
        return narrow ? (double)r : a + b;
    case LILAC_SIMT_OP_FSUB:
        r = x - y;
        return narrow ? (double)r : a - b;
    case LILAC_SIMT_OP_FMUL:
        r = x * y;
        return narrow ? (double)r : a * b;
    case LILAC_SIMT_OP_FDIV:
        r = x / y;
        return narrow ? (double)r : a / b;
    case LILAC_SIMT_OP_FFMA:
        return narrow ? (double)fmaf(x, y, z) : fma(a, b, c);
    case LILAC_SIMT_OP_FSQRT:
        return narrow ? (double)sqrtf(x) : sqrt(a);
    case LILAC_SIMT_OP_FRCP:
        r = 1 / x;
        return narrow ? (double)r : 1 / a;
    case LILAC_SIMT_OP_FFLOOR:
        return floor(a);
    case LILAC_SIMT_OP_FCEIL:
        return ceil(a);
    case LILAC_SIMT_OP_FTRUNC:
        return trunc(a);
    case LILAC_SIMT_OP_FRINT:
        return rint(a);
    default: {
        bool most = code == LILAC_SIMT_OP_FMAX;
        if ((a != a || b != b) && (flags & LILAC_SIMT_PROPAGATE_NAN)) {
            return (double)NAN;
        }
        return (double)least_of((long double)a, (long double)b, most);
    }
    }
}

static void wide_floats(void **state) {
    static const struct {
        lilac_simt_opcode code;
        uint32_t operands;
        uint8_t flags;
    } operations[] = {
        {LILAC_SIMT_OP_FADD, 2, 0},
        {LILAC_SIMT_OP_FSUB, 2, 0},
        {LILAC_SIMT_OP_FMUL, 2, 0},
        {LILAC_SIMT_OP_FDIV, 2, 0},
        {LILAC_SIMT_OP_FDIV, 2, LILAC_SIMT_APPROXIMATE},
        {LILAC_SIMT_OP_FFMA, 3, 0},
        {LILAC_SIMT_OP_FMIN, 2, 0},
        {LILAC_SIMT_OP_FMAX, 2, 0},
        {LILAC_SIMT_OP_FMIN, 2, LILAC_SIMT_PROPAGATE_NAN},
        {LILAC_SIMT_OP_FMAX, 2, LILAC_SIMT_PROPAGATE_NAN},
        {LILAC_SIMT_OP_FSQRT, 1, 0},
        {LILAC_SIMT_OP_FRCP, 1, 0},
        {LILAC_SIMT_OP_FFLOOR, 1, 0},
        {LILAC_SIMT_OP_FCEIL, 1, 0},
        {LILAC_SIMT_OP_FTRUNC, 1, 0},
        {LILAC_SIMT_OP_FRINT, 1, 0},
    };
    lilac_random random;
    lilac_random_seed(&random, 5);
    (void)state;
    for (uint32_t o = 0; o < sizeof operations / sizeof *operations; o++) {
        for (uint32_t which = 0; which < 2; which++) {
            lilac_simt_type type = which ? LILAC_SIMT_F64 : LILAC_SIMT_F32;
            sim_operation operation = {.code = operations[o].code,
                                       .result = type,
                                       .operands = {type, type, type},
                                       .operand_count = operations[o].operands,
                                       .flags = operations[o].flags};
            draw(&random, &operation);
            run(&operation, CASES);
            for (uint32_t i = 0; i < CASES; i++) {
                double v[3];
                for (uint32_t k = 0; k < 3; k++) {
                    v[k] =
                        which ? double_of(pool.values[k][i]) : (double)float_of(pool.values[k][i]);
                }
                expect(&operation, i,
                       bits_of(type, wide_reference(type, operation.code, operation.flags, v[0],
                                                    v[1], v[2])));
            }
        }
    }
}

/* Products that are ties but for a term far below: where rounding twice goes wrong. */
static void fused_ties(void **state) {
    static const struct {
        lilac_simt_type type;
        uint64_t a, b, c, wanted;
    } cases[] = {
        /* (1 + 2^-7)·(1.5) = 1.51171875: a tie of bf16 between 1.5078125 and 1.515625 */
        {LILAC_SIMT_BF16, 0x3F81, 0x3FC0, 0x0001, 0x3FC2},
        {LILAC_SIMT_BF16, 0x3F81, 0x3FC0, 0x8001, 0x3FC1},
        {LILAC_SIMT_BF16, 0x3F81, 0x3FC0, 0x0000, 0x3FC2},
        {LILAC_SIMT_BF16, 0x3F83, 0x3FC0, 0x8001, 0x3FC4},
        {LILAC_SIMT_BF16, 0x3F83, 0x3FC0, 0x0001, 0x3FC5},
        {LILAC_SIMT_BF16, 0x3F83, 0x3FC0, 0x0000, 0x3FC4},
        /* (1 + 2^-12)² = 1 + 2^-11 + 2^-24: a tie of f32 */
        {LILAC_SIMT_F32, 0x3F800800, 0x3F800800, 0x00000001, 0x3F801001},
        {LILAC_SIMT_F32, 0x3F800800, 0x3F800800, 0x80000001, 0x3F801000},
        {LILAC_SIMT_F32, 0x3F800800, 0x3F800800, 0x00000000, 0x3F801000},
    };
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        lilac_simt_type type = cases[k].type;
        sim_operation operation = {.code = LILAC_SIMT_OP_FFMA,
                                   .result = type,
                                   .operands = {type, type, type},
                                   .operand_count = 3};
        pool.values[0][0] = cases[k].a;
        pool.values[1][0] = cases[k].b;
        pool.values[2][0] = cases[k].c;
        for (uint32_t j = 0; j < 3; j++) {
            pool.inputs[j] = pool.values[j];
        }
        run(&operation, 1);
        expect(&operation, 0, cases[k].wanted);
    }
}

/* Within one part in 2^22 of the C library in long double, and exact at exact points. */
static void functions(void **state) {
    static const struct {
        lilac_simt_opcode code;
        long double (*reference)(long double);
    } cases[] = {
        {LILAC_SIMT_OP_FEXP2, exp2l}, {LILAC_SIMT_OP_FLOG2, log2l}, {LILAC_SIMT_OP_FSIN, sinl},
        {LILAC_SIMT_OP_FCOS, cosl},   {LILAC_SIMT_OP_FTANH, tanhl},
    };
    lilac_random random;
    lilac_random_seed(&random, 6);
    (void)state;
    for (uint32_t o = 0; o < sizeof cases / sizeof *cases; o++) {
        sim_operation operation = {.code = cases[o].code,
                                   .result = LILAC_SIMT_F32,
                                   .operands = {LILAC_SIMT_F32},
                                   .operand_count = 1};
        draw(&random, &operation);
        run(&operation, CASES);
        for (uint32_t i = 0; i < CASES; i++) {
            long double x = (long double)float_of(pool.values[0][i]);
            long double wanted = (long double)(float)cases[o].reference(x);
            long double got = (long double)float_of(pool.outputs[i]);
            if (wanted != wanted) {
                expect(&operation, i, 0x7FFFFFFF);
            } else if (isinf(wanted) || wanted == 0) {
                assert_true(got == wanted);
            } else if (fabsl(got - wanted) > fabsl(wanted) * 0x1p-22L + 0x1p-149L) {
                expect(&operation, i, bits_of(LILAC_SIMT_F32, (double)wanted));
            }
        }
    }
    sim_operation inverse_root = {.code = LILAC_SIMT_OP_FRSQRT,
                                  .result = LILAC_SIMT_F32,
                                  .operands = {LILAC_SIMT_F32},
                                  .operand_count = 1};
    draw(&random, &inverse_root);
    run(&inverse_root, CASES);
    for (uint32_t i = 0; i < CASES; i++) {
        expect(
            &inverse_root, i,
            bits_of(LILAC_SIMT_F32, (double)(1 / sqrtl((long double)float_of(pool.values[0][i])))));
    }
}

/* The nearest multiple of a unit of tf32, ties away from zero: roundl. */
static void tf32(void **state) {
    sim_operation operation = {.code = LILAC_SIMT_OP_FTF32,
                               .result = LILAC_SIMT_F32,
                               .operands = {LILAC_SIMT_F32},
                               .operand_count = 1};
    lilac_random random;
    lilac_random_seed(&random, 32);
    (void)state;
    draw(&random, &operation);
    for (uint32_t i = 0; i < CASES; i += 2) { /* ties, and neighbours of ties */
        pool.values[0][i] = (pool.values[0][i] & ~UINT64_C(0x1FFF)) + 0xFFF + i / 2 % 3;
    }
    run(&operation, CASES);
    for (uint32_t i = 0; i < CASES; i++) {
        long double x = (long double)float_of(pool.values[0][i]), rounded = x;
        int exponent;
        if (isfinite(x)) {
            (void)frexpl(x, &exponent);
            int unit = (x == 0 || exponent < -125 ? -125 : exponent) - 11;
            rounded = ldexpl(roundl(ldexpl(x, -unit)), unit);
        }
        expect(&operation, i, bits_of(LILAC_SIMT_F32, (double)rounded));
    }
}

/* ---- comparisons --------------------------------------------------------------------------- */

static bool float_compare(lilac_simt_compare kind, double a, double b) {
    bool unordered = a != a || b != b;
    switch (kind) {
    case LILAC_SIMT_EQ:
        return a == b;
    case LILAC_SIMT_NE:
        return !unordered && a != b;
    case LILAC_SIMT_LT:
        return a < b;
    case LILAC_SIMT_LE:
        return a <= b;
    case LILAC_SIMT_GT:
        return a > b;
    case LILAC_SIMT_GE:
        return a >= b;
    case LILAC_SIMT_UEQ:
        return unordered || a == b;
    case LILAC_SIMT_UNE:
        return a != b;
    case LILAC_SIMT_FULT:
        return unordered || a < b;
    case LILAC_SIMT_FULE:
        return unordered || a <= b;
    case LILAC_SIMT_FUGT:
        return unordered || a > b;
    case LILAC_SIMT_FUGE:
        return unordered || a >= b;
    case LILAC_SIMT_ORD:
        return !unordered;
    default:
        return unordered;
    }
}

static double float_value(lilac_simt_type type, uint64_t bits) {
    return type == LILAC_SIMT_F16    ? (double)value_of(&half, bits)
           : type == LILAC_SIMT_BF16 ? (double)value_of(&bfloat, bits)
           : type == LILAC_SIMT_F32  ? (double)float_of(bits)
                                     : double_of(bits);
}

static void float_comparisons(void **state) {
    static const lilac_simt_compare kinds[] = {
        LILAC_SIMT_EQ,   LILAC_SIMT_NE,   LILAC_SIMT_LT,  LILAC_SIMT_LE,   LILAC_SIMT_GT,
        LILAC_SIMT_GE,   LILAC_SIMT_UEQ,  LILAC_SIMT_UNE, LILAC_SIMT_FULT, LILAC_SIMT_FULE,
        LILAC_SIMT_FUGT, LILAC_SIMT_FUGE, LILAC_SIMT_ORD, LILAC_SIMT_UNO};
    lilac_random random;
    lilac_random_seed(&random, 7);
    (void)state;
    for (lilac_simt_type type = LILAC_SIMT_F16; type <= LILAC_SIMT_F64; type++) {
        for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            sim_operation operation = {.code = LILAC_SIMT_OP_CMP,
                                       .result = LILAC_SIMT_I1,
                                       .operands = {type, type},
                                       .operand_count = 2,
                                       .detail = (uint8_t)kinds[k]};
            draw(&random, &operation);
            for (uint32_t i = 0; i < CASES; i += 3) {
                pool.values[1][i] = pool.values[0][i];
            }
            run(&operation, 768);
            for (uint32_t i = 0; i < 768; i++) {
                expect(&operation, i,
                       float_compare(kinds[k], float_value(type, pool.values[0][i]),
                                     float_value(type, pool.values[1][i])));
            }
        }
    }
}

/* ---- integers ------------------------------------------------------------------------------ */

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wide_unsigned;

static wide signed_value(uint32_t bits, uint64_t a) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (wide)(int64_t)((a ^ sign) - sign);
}

static uint64_t integer_reference(lilac_simt_opcode code, uint32_t bits, uint64_t a, uint64_t b) {
    wide sa = signed_value(bits, a), sb = signed_value(bits, b), r;
    wide_unsigned ua = a, ub = b;
    uint64_t count = 0;
    switch (code) {
    case LILAC_SIMT_OP_ADD:
        r = sa + sb;
        break;
    case LILAC_SIMT_OP_SUB:
        r = sa - sb;
        break;
    case LILAC_SIMT_OP_MUL:
        r = (wide)(ua * ub);
        break;
    case LILAC_SIMT_OP_MULHI_S:
        r = (sa * sb) >> bits;
        break;
    case LILAC_SIMT_OP_MULHI_U:
        r = (wide)((ua * ub) >> bits);
        break;
    case LILAC_SIMT_OP_DIV_S:
        r = sa / sb;
        break;
    case LILAC_SIMT_OP_DIV_U:
        r = (wide)(ua / ub);
        break;
    case LILAC_SIMT_OP_REM_S:
        r = sa % sb;
        break;
    case LILAC_SIMT_OP_REM_U:
        r = (wide)(ua % ub);
        break;
    case LILAC_SIMT_OP_MIN_S:
        r = sa < sb ? sa : sb;
        break;
    case LILAC_SIMT_OP_MAX_S:
        r = sa > sb ? sa : sb;
        break;
    case LILAC_SIMT_OP_MIN_U:
        r = (wide)(ua < ub ? ua : ub);
        break;
    case LILAC_SIMT_OP_MAX_U:
        r = (wide)(ua > ub ? ua : ub);
        break;
    case LILAC_SIMT_OP_AND:
        r = (wide)(ua & ub);
        break;
    case LILAC_SIMT_OP_OR:
        r = (wide)(ua | ub);
        break;
    case LILAC_SIMT_OP_XOR:
        r = (wide)(ua ^ ub);
        break;
    case LILAC_SIMT_OP_SHL:
        r = b >= bits ? 0 : (wide)(ua << b);
        break;
    case LILAC_SIMT_OP_SHR_S:
        r = sa >> (b >= bits ? 100 : b);
        break;
    case LILAC_SIMT_OP_SHR_U:
        r = b >= bits ? 0 : (wide)(ua >> b);
        break;
    case LILAC_SIMT_OP_POPC:
        for (uint32_t k = 0; k < bits; k++) {
            count += a >> k & 1;
        }
        return count;
    case LILAC_SIMT_OP_BREV:
        for (uint32_t k = 0; k < bits; k++) {
            count += (a >> k & 1) << (bits - 1 - k);
        }
        return count;
    case LILAC_SIMT_OP_ABS:
        r = sa < 0 ? -sa : sa;
        break;
    default: /* clz */
        while (count < bits && !(a >> (bits - 1 - count) & 1)) {
            count++;
        }
        return count;
    }
    return bits == 64 ? (uint64_t)r : (uint64_t)r & ((UINT64_C(1) << bits) - 1);
}

static void integers(void **state) {
    static const lilac_simt_opcode codes[] = {
        LILAC_SIMT_OP_ADD,     LILAC_SIMT_OP_SUB,   LILAC_SIMT_OP_MUL,   LILAC_SIMT_OP_MULHI_S,
        LILAC_SIMT_OP_MULHI_U, LILAC_SIMT_OP_DIV_S, LILAC_SIMT_OP_DIV_U, LILAC_SIMT_OP_REM_S,
        LILAC_SIMT_OP_REM_U,   LILAC_SIMT_OP_MIN_S, LILAC_SIMT_OP_MIN_U, LILAC_SIMT_OP_MAX_S,
        LILAC_SIMT_OP_MAX_U,   LILAC_SIMT_OP_AND,   LILAC_SIMT_OP_OR,    LILAC_SIMT_OP_XOR,
        LILAC_SIMT_OP_SHL,     LILAC_SIMT_OP_SHR_S, LILAC_SIMT_OP_SHR_U, LILAC_SIMT_OP_POPC,
        LILAC_SIMT_OP_CLZ,     LILAC_SIMT_OP_BREV,  LILAC_SIMT_OP_ABS};
    lilac_random random;
    lilac_random_seed(&random, 8);
    (void)state;
    for (uint32_t o = 0; o < sizeof codes / sizeof *codes; o++) {
        bool counts = codes[o] == LILAC_SIMT_OP_POPC || codes[o] == LILAC_SIMT_OP_CLZ;
        bool divides = codes[o] >= LILAC_SIMT_OP_DIV_S && codes[o] <= LILAC_SIMT_OP_REM_U;
        for (lilac_simt_type type = LILAC_SIMT_I1; type <= LILAC_SIMT_I64; type++) {
            sim_operation operation = {
                .code = codes[o],
                .result = counts ? LILAC_SIMT_I32 : type,
                .operands = {type, type},
                .operand_count = lilac_simt_op_info_get(codes[o])->signature[1] == ':' ? 1 : 2};
            draw(&random, &operation);
            for (uint32_t i = 0; divides && i < CASES; i++) {
                if (pool.values[1][i] == 0) {
                    pool.values[1][i] = 1;
                }
            }
            run(&operation, 1024);
            for (uint32_t i = 0; i < 1024; i++) {
                expect(&operation, i,
                       integer_reference(codes[o], lilac_simt_type_bits(type), pool.values[0][i],
                                         pool.values[1][i]));
            }
        }
    }
}

static void integer_comparisons(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 9);
    (void)state;
    for (lilac_simt_type type = LILAC_SIMT_I1; type <= LILAC_SIMT_I64; type++) {
        for (uint32_t kind = LILAC_SIMT_EQ; kind <= LILAC_SIMT_UGE; kind++) {
            sim_operation operation = {.code = LILAC_SIMT_OP_CMP,
                                       .result = LILAC_SIMT_I1,
                                       .operands = {type, type},
                                       .operand_count = 2,
                                       .detail = (uint8_t)kind};
            draw(&random, &operation);
            run(&operation, 512);
            for (uint32_t i = 0; i < 512; i++) {
                uint64_t a = pool.values[0][i], b = pool.values[1][i];
                wide sa = signed_value(lilac_simt_type_bits(type), a);
                wide sb = signed_value(lilac_simt_type_bits(type), b);
                const bool wanted[] = {
                    a == b, a != b, sa<sb, sa <= sb, sa> sb, sa >= sb, a<b, a <= b, a> b, a >= b};
                expect(&operation, i, wanted[kind]);
            }
        }
    }
}

static void other_integers(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 10);
    (void)state;
    for (uint32_t which = 0; which < 3; which++) {
        bool permute = which == 2;
        sim_operation operation = {.code = permute ? LILAC_SIMT_OP_PRMT
                                           : which ? LILAC_SIMT_OP_MULWIDE_U
                                                   : LILAC_SIMT_OP_MULWIDE_S,
                                   .result = permute ? LILAC_SIMT_I32 : LILAC_SIMT_I64,
                                   .operands = {LILAC_SIMT_I32, LILAC_SIMT_I32, LILAC_SIMT_I32},
                                   .operand_count = permute ? 3 : 2};
        draw(&random, &operation);
        run(&operation, CASES);
        for (uint32_t i = 0; i < CASES; i++) {
            uint64_t a = pool.values[0][i], b = pool.values[1][i], s = pool.values[2][i];
            uint8_t bytes[8], out[4];
            uint32_t wanted;
            memcpy(bytes, &a, 4);
            memcpy(bytes + 4, &b, 4);
            for (uint32_t k = 0; k < 4; k++) {
                uint64_t nibble = s >> 4 * k & 15;
                out[k] = nibble < 8 ? bytes[nibble] : bytes[nibble - 8] >= 128 ? 255 : 0;
            }
            memcpy(&wanted, out, 4);
            expect(&operation, i,
                   permute ? wanted
                   : which ? a * b
                           : (uint64_t)(signed_value(32, a) * signed_value(32, b)));
        }
    }
}

/* ---- selects, extensions, packs ------------------------------------------------------------ */

static void selects(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 11);
    (void)state;
    for (lilac_simt_type type = LILAC_SIMT_I1; type < LILAC_SIMT_TYPE_COUNT; type++) {
        sim_operation operation = {.code = LILAC_SIMT_OP_SELECT,
                                   .result = type,
                                   .operands = {LILAC_SIMT_I1, type, type},
                                   .operand_count = 3};
        draw(&random, &operation);
        run(&operation, 512);
        for (uint32_t i = 0; i < 512; i++) {
            expect(&operation, i, pool.values[pool.values[0][i] ? 1 : 2][i]);
        }
    }
}

static void extensions(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 12);
    (void)state;
    for (lilac_simt_type from = LILAC_SIMT_I1; from <= LILAC_SIMT_I64; from++) {
        for (lilac_simt_type to = LILAC_SIMT_I1; to <= LILAC_SIMT_I64; to++) {
            if (from == to) {
                continue;
            }
            for (uint32_t sign = 0; sign < (from < to ? 2u : 1u); sign++) {
                uint32_t bits = lilac_simt_type_bits(from), wide_bits = lilac_simt_type_bits(to);
                sim_operation operation = {.code = from > to ? LILAC_SIMT_OP_TRUNC
                                                   : sign    ? LILAC_SIMT_OP_SEXT
                                                             : LILAC_SIMT_OP_ZEXT,
                                           .result = to,
                                           .operands = {from},
                                           .operand_count = 1};
                draw(&random, &operation);
                run(&operation, 512);
                for (uint32_t i = 0; i < 512; i++) {
                    uint64_t a = pool.values[0][i];
                    uint64_t wanted = sign ? (uint64_t)signed_value(bits, a) : a;
                    expect(&operation, i,
                           wide_bits == 64 ? wanted : wanted & ((UINT64_C(1) << wide_bits) - 1));
                }
            }
        }
    }
}

static void packs(void **state) {
    static const struct {
        lilac_simt_type part, whole;
        uint32_t count;
    } cases[] = {
        {LILAC_SIMT_F16, LILAC_SIMT_F16X2, 2}, {LILAC_SIMT_BF16, LILAC_SIMT_BF16X2, 2},
        {LILAC_SIMT_I8, LILAC_SIMT_I16, 2},    {LILAC_SIMT_I8, LILAC_SIMT_I32, 4},
        {LILAC_SIMT_I16, LILAC_SIMT_I64, 4},   {LILAC_SIMT_F32, LILAC_SIMT_I64, 2},
        {LILAC_SIMT_I32, LILAC_SIMT_F64, 2},
    };
    lilac_random random;
    lilac_random_seed(&random, 13);
    (void)state;
    for (uint32_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t bits = lilac_simt_type_bits(cases[k].part), n = 256, count = cases[k].count;
        sim_operation pack = {
            .code = LILAC_SIMT_OP_PACK,
            .result = cases[k].whole,
            .operands = {cases[k].part, cases[k].part, cases[k].part, cases[k].part},
            .operand_count = count};
        uint64_t parts[4][256], wholes[256], back[4 * 256];
        const uint64_t *inputs[4] = {parts[0], parts[1], parts[2], parts[3]};
        for (uint32_t i = 0; i < n * 4; i++) {
            parts[i / n][i % n] = lilac_random_next(&random) >> (64 - bits);
        }
        assert_true(sim_apply(&pack, n, inputs, wholes));
        for (uint32_t i = 0; i < n; i++) {
            uint64_t wanted = 0;
            for (uint32_t j = 0; j < count; j++) {
                wanted += parts[j][i] << j * bits;
            }
            assert_int_equal(wholes[i], wanted);
        }
        sim_operation unpack = {.code = LILAC_SIMT_OP_UNPACK,
                                .result = cases[k].part,
                                .result_count = count,
                                .operands = {cases[k].whole},
                                .operand_count = 1};
        const uint64_t *whole_inputs[1] = {wholes};
        assert_true(sim_apply(&unpack, n, whole_inputs, back));
        for (uint32_t i = 0; i < n * count; i++) {
            assert_int_equal(back[i], parts[i / n][i % n]);
        }
    }
}

/* ---- conversions --------------------------------------------------------------------------- */

static void narrowing(void **state) {
    static const lilac_simt_type wide_types[] = {LILAC_SIMT_F32, LILAC_SIMT_F64};
    lilac_random random;
    lilac_random_seed(&random, 14);
    (void)state;
    for (uint32_t rounding = LILAC_ROUND_NEAREST_EVEN; rounding <= LILAC_ROUND_UP; rounding++) {
        for (uint32_t which = 0; which < 4; which++) {
            const format *f = which & 1 ? &bfloat : &half;
            lilac_simt_type from = wide_types[which / 2];
            sim_operation operation = {.code = LILAC_SIMT_OP_FCVT,
                                       .result = f->type,
                                       .operands = {from},
                                       .operand_count = 1,
                                       .detail = (uint8_t)rounding};
            draw(&random, &operation);
            for (uint32_t i = 0; i < CASES; i += 2) { /* near a tie of the target */
                uint64_t code = lilac_random_below(&random, end_code(f));
                double middle = (double)((code_value(f, code) + code_value(f, code + 1)) / 2);
                int nudge = (int)lilac_random_below(&random, 3) - 1;
                if (from == LILAC_SIMT_F32) {
                    middle = (double)nextafterf((float)middle, nudge < 0 ? 0 : INFINITY);
                } else if (nudge) {
                    middle = nextafter(middle, nudge < 0 ? 0 : (double)INFINITY);
                }
                pool.values[0][i] = bits_of(from, i & 2 ? middle : -middle);
            }
            run(&operation, 1024);
            for (uint32_t i = 0; i < 1024; i++) {
                long double x = (long double)float_value(from, pool.values[0][i]);
                expect(&operation, i,
                       round_sum(f, x, signbit(x) ? -0.0L : 0.0L, (lilac_rounding)rounding, false));
            }
        }
    }
}

static void widening(void **state) {
    (void)state;
    for (uint32_t which = 0; which < 4; which++) {
        const format *f = which & 1 ? &bfloat : &half;
        lilac_simt_type to = which & 2 ? LILAC_SIMT_F64 : LILAC_SIMT_F32;
        sim_operation operation = {
            .code = LILAC_SIMT_OP_FCVT, .result = to, .operands = {f->type}, .operand_count = 1};
        for (uint32_t base = 0; base < 0x10000; base += CASES) {
            pool.inputs[0] = pool.values[0];
            for (uint32_t i = 0; i < CASES; i++) {
                pool.values[0][i] = base + i;
            }
            run(&operation, CASES);
            for (uint32_t i = 0; i < CASES; i++) {
                expect(&operation, i, bits_of(to, (double)value_of(f, base + i)));
            }
        }
    }
}

/* The neighbour of x in the direction of the rounding. */
static float rounded_float(double x, lilac_rounding rounding) {
    volatile float near = (float)x;
    bool below = (double)near<x, above = (double)near> x;
    if (rounding == LILAC_ROUND_NEAREST_EVEN || x != x) {
        return near;
    }
    if (below && (rounding == LILAC_ROUND_UP || (rounding == LILAC_ROUND_ZERO && x < 0))) {
        return near == 0 && x < 0 ? -0.0f : nextafterf(near, INFINITY);
    }
    if (above && (rounding == LILAC_ROUND_DOWN || (rounding == LILAC_ROUND_ZERO && x > 0))) {
        return nextafterf(near, -INFINITY);
    }
    return near;
}

static void between_wide_floats(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 19);
    (void)state;
    for (uint32_t rounding = LILAC_ROUND_NEAREST_EVEN; rounding <= LILAC_ROUND_UP; rounding++) {
        sim_operation narrow = {.code = LILAC_SIMT_OP_FCVT,
                                .result = LILAC_SIMT_F32,
                                .operands = {LILAC_SIMT_F64},
                                .operand_count = 1,
                                .detail = (uint8_t)rounding};
        draw(&random, &narrow);
        for (uint32_t i = 0; i < CASES; i += 2) { /* numbers of f32's range */
            uint64_t bits = random_bits(&random, LILAC_SIMT_F32);
            pool.values[0][i] =
                bits_of(LILAC_SIMT_F64, (double)float_of(bits) * (1 + 0x1p-24 * 0.3));
        }
        run(&narrow, 1024);
        for (uint32_t i = 0; i < 1024; i++) {
            double x = double_of(pool.values[0][i]);
            float wanted = rounded_float(x, (lilac_rounding)rounding);
            expect(&narrow, i, bits_of(LILAC_SIMT_F32, (double)wanted));
        }
        sim_operation widen = narrow;
        widen.result = LILAC_SIMT_F64;
        widen.operands[0] = LILAC_SIMT_F32;
        draw(&random, &widen);
        run(&widen, 512);
        for (uint32_t i = 0; i < 512; i++) {
            expect(&widen, i, bits_of(LILAC_SIMT_F64, (double)float_of(pool.values[0][i])));
        }
    }
}

/* Between the two 16-bit formats: every code, every rounding. */
static void between_narrow_floats(void **state) {
    (void)state;
    for (uint32_t which = 0; which < 8; which++) {
        const format *from = which & 1 ? &bfloat : &half, *to = which & 1 ? &half : &bfloat;
        lilac_rounding rounding = (lilac_rounding)(which / 2);
        sim_operation operation = {.code = LILAC_SIMT_OP_FCVT,
                                   .result = to->type,
                                   .operands = {from->type},
                                   .operand_count = 1,
                                   .detail = (uint8_t)rounding};
        pool.inputs[0] = pool.values[0];
        for (uint32_t base = 0; base < 0x10000; base += CASES) {
            for (uint32_t i = 0; i < CASES; i++) {
                pool.values[0][i] = base + i;
            }
            run(&operation, CASES);
            for (uint32_t i = 0; i < CASES; i++) {
                long double x = value_of(from, base + i);
                expect(&operation, i, round_sum(to, x, signbit(x) ? -0.0L : 0.0L, rounding, false));
            }
        }
    }
}

static void integers_to_floats(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 15);
    (void)state;
    for (uint32_t sign = 0; sign < 2; sign++) {
        for (lilac_simt_type from = LILAC_SIMT_I1; from <= LILAC_SIMT_I64; from++) {
            for (lilac_simt_type to = LILAC_SIMT_F16; to <= LILAC_SIMT_F64; to++) {
                uint32_t bits = lilac_simt_type_bits(from);
                sim_operation operation = {.code = sign ? LILAC_SIMT_OP_S2F : LILAC_SIMT_OP_U2F,
                                           .result = to,
                                           .operands = {from},
                                           .operand_count = 1};
                draw(&random, &operation);
                for (uint32_t i = 0; bits == 64 && i < CASES; i += 2) { /* ties of bf16, nearly */
                    uint32_t shift = (uint32_t)lilac_random_below(&random, 55);
                    pool.values[0][i] = (UINT64_C(0x181) << shift) + (shift > 9) * ((i & 2) / 2u);
                }
                run(&operation, 512);
                for (uint32_t i = 0; i < 512; i++) {
                    uint64_t a = pool.values[0][i];
                    long double x = sign ? (long double)signed_value(bits, a) : (long double)a;
                    const format *f = to == LILAC_SIMT_F16 ? &half : &bfloat;
                    expect(&operation, i,
                           to == LILAC_SIMT_F32 ? bits_of(to, (double)(float)x)
                           : to == LILAC_SIMT_F64
                               ? bits_of(to, (double)x)
                               : round_sum(f, x, 0, LILAC_ROUND_NEAREST_EVEN, false));
                }
            }
        }
    }
}

static void floats_to_integers(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 16);
    (void)state;
    for (uint32_t sign = 0; sign < 2; sign++) {
        for (lilac_simt_type from = LILAC_SIMT_F16; from <= LILAC_SIMT_F64; from++) {
            for (lilac_simt_type to = LILAC_SIMT_I1; to <= LILAC_SIMT_I64; to++) {
                uint32_t bits = lilac_simt_type_bits(to);
                const uint32_t held = bits == 8 ? 16 : bits;
                wide most = sign ? ((wide)1 << (held - 1)) - 1 : ((wide)1 << held) - 1;
                const bool sign_bit = held == 64 || (held > 1 && from == LILAC_SIMT_F64);
                const wide of_nan = sign_bit ? (wide)1 << (held - 1) : 0;
                wide least = sign ? -most - 1 : 0;
                sim_operation operation = {.code = sign ? LILAC_SIMT_OP_F2S : LILAC_SIMT_OP_F2U,
                                           .result = to,
                                           .operands = {from},
                                           .operand_count = 1};
                draw(&random, &operation);
                run(&operation, 512);
                for (uint32_t i = 0; i < 512; i++) {
                    double x = trunc(float_value(from, pool.values[0][i]));
                    wide r = x != x                                 ? of_nan
                             : (long double)x >= (long double)most  ? most
                             : (long double)x <= (long double)least ? least
                                                                    : (wide)x;
                    expect(&operation, i,
                           bits == 64 ? (uint64_t)r : (uint64_t)r & ((UINT64_C(1) << bits) - 1));
                }
            }
        }
    }
}

static void small_floats(void **state) {
    lilac_random random;
    lilac_random_seed(&random, 17);
    (void)state;
    for (uint32_t which = 0; which < 2; which++) {
        const format *f = which ? &e5m2 : &e4m3;
        uint8_t scalar = which ? LILAC_F8E5M2 : LILAC_F8E4M3FN;
        sim_operation unpack = {.code = LILAC_SIMT_OP_F8_UNPACK,
                                .result = LILAC_SIMT_F16X2,
                                .operands = {LILAC_SIMT_I16},
                                .operand_count = 1,
                                .scalar = scalar};
        pool.inputs[0] = pool.values[0];
        pool.inputs[1] = pool.values[1];
        for (uint32_t i = 0; i < 256; i++) {
            pool.values[0][i] = (255 - i) << 8 | i;
        }
        run(&unpack, 256);
        for (uint32_t i = 0; i < 256; i++) {
            uint64_t low = round_sum(&half, value_of(f, i), i & 0x80 ? -0.0L : 0.0L,
                                     LILAC_ROUND_NEAREST_EVEN, false);
            uint64_t j = 255 - i;
            uint64_t high = round_sum(&half, value_of(f, j), j & 0x80 ? -0.0L : 0.0L,
                                      LILAC_ROUND_NEAREST_EVEN, false);
            expect(&unpack, i, high << 16 | low);
        }
        sim_operation pack = {.code = LILAC_SIMT_OP_F8_PACK,
                              .result = LILAC_SIMT_I16,
                              .operands = {LILAC_SIMT_F32, LILAC_SIMT_F32},
                              .operand_count = 2,
                              .scalar = scalar};
        draw(&random, &pack);
        for (uint32_t i = 0; i < CASES; i += 2) {
            uint64_t code = lilac_random_below(&random, end_code(f));
            float middle = (float)((code_value(f, code) + code_value(f, code + 1)) / 2);
            uint64_t nudge = lilac_random_below(&random, 3);
            if (nudge) {
                middle = nextafterf(middle, nudge == 1 ? 0 : INFINITY);
            }
            pool.values[i & 2 ? 1 : 0][i] = bits_of(LILAC_SIMT_F32, (double)middle);
        }
        run(&pack, CASES);
        for (uint32_t i = 0; i < CASES; i++) {
            long double l = (long double)float_of(pool.values[0][i]);
            long double h = (long double)float_of(pool.values[1][i]);
            uint64_t low =
                round_sum(f, l, signbit(l) ? -0.0L : 0.0L, LILAC_ROUND_NEAREST_EVEN, true);
            uint64_t high =
                round_sum(f, h, signbit(h) ? -0.0L : 0.0L, LILAC_ROUND_NEAREST_EVEN, true);
            expect(&pack, i, high << 8 | low);
        }
    }
}

/* ftz: subnormal operands and results are zeros of their sign; without it they are kept. */
static void flushing(void **state) {
    static const struct {
        lilac_simt_opcode code;
        uint32_t operands;
        uint64_t a, b, c, kept, flushed;
    } cases[] = {
        {LILAC_SIMT_OP_FADD, 2, 0x00000001, 0x00000001, 0, 0x00000002, 0},
        {LILAC_SIMT_OP_FMUL, 2, 0x80800000, 0x3F000000, 0, 0x80400000, 0x80000000},
        {LILAC_SIMT_OP_FSUB, 2, 0x00800001, 0x00800000, 0, 0x00000001, 0},
        {LILAC_SIMT_OP_FFMA, 3, 0x007FFFFF, 0x4B800000, 0x3F800000, 0x3F800000, 0x3F800000},
        {LILAC_SIMT_OP_FABS, 1, 0x80000001, 0, 0, 0x00000001, 0},
        {LILAC_SIMT_OP_FMAX, 2, 0x00000001, 0x80000000, 0, 0x00000001, 0},
        {LILAC_SIMT_OP_FRCP, 1, 0x00000001, 0, 0, 0x7F800000, 0x7F800000},
        {LILAC_SIMT_OP_FSQRT, 1, 0x00000004, 0, 0, 0x1AB504F3, 0},
    };
    (void)state;
    for (uint32_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        uint32_t which = k / 2;
        sim_operation operation = {.code = cases[which].code,
                                   .result = LILAC_SIMT_F32,
                                   .operands = {LILAC_SIMT_F32, LILAC_SIMT_F32, LILAC_SIMT_F32},
                                   .operand_count = cases[which].operands,
                                   .flags = k & 1 ? LILAC_SIMT_FTZ : 0};
        pool.values[0][0] = cases[which].a;
        pool.values[1][0] = cases[which].b;
        pool.values[2][0] = cases[which].c;
        for (uint32_t j = 0; j < 3; j++) {
            pool.inputs[j] = pool.values[j];
        }
        run(&operation, 1);
        expect(&operation, 0, k & 1 ? cases[which].flushed : cases[which].kept);
    }
}

static void bitcasts(void **state) {
    static const lilac_simt_type pairs[][2] = {{LILAC_SIMT_F32, LILAC_SIMT_I32},
                                               {LILAC_SIMT_I32, LILAC_SIMT_BF16X2},
                                               {LILAC_SIMT_F16X2, LILAC_SIMT_F32},
                                               {LILAC_SIMT_I16, LILAC_SIMT_BF16},
                                               {LILAC_SIMT_F64, LILAC_SIMT_I64}};
    lilac_random random;
    lilac_random_seed(&random, 18);
    (void)state;
    for (uint32_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        sim_operation operation = {.code = LILAC_SIMT_OP_BITCAST,
                                   .result = pairs[k][1],
                                   .operands = {pairs[k][0]},
                                   .operand_count = 1};
        draw(&random, &operation);
        run(&operation, 256);
        for (uint32_t i = 0; i < 256; i++) {
            expect(&operation, i, pool.values[0][i]);
        }
    }
}

static void opaque_copies(void **state) {
    static const lilac_simt_type types[] = {LILAC_SIMT_I32, LILAC_SIMT_I64};
    lilac_random random;
    lilac_random_seed(&random, 19);
    (void)state;
    for (uint32_t k = 0; k < 2; k++) {
        sim_operation operation = {.code = LILAC_SIMT_OP_OPAQUE,
                                   .result = types[k],
                                   .operands = {types[k]},
                                   .operand_count = 1};
        draw(&random, &operation);
        run(&operation, 256);
        for (uint32_t i = 0; i < 256; i++) {
            expect(&operation, i, pool.values[0][i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opaque_copies),
        cmocka_unit_test(halves_round_once),
        cmocka_unit_test(bfloats_round_once),
        cmocka_unit_test(packed_pairs),
        cmocka_unit_test(halves_as_the_compiler),
        cmocka_unit_test(wide_floats),
        cmocka_unit_test(fused_ties),
        cmocka_unit_test(functions),
        cmocka_unit_test(tf32),
        cmocka_unit_test(float_comparisons),
        cmocka_unit_test(integers),
        cmocka_unit_test(integer_comparisons),
        cmocka_unit_test(other_integers),
        cmocka_unit_test(selects),
        cmocka_unit_test(extensions),
        cmocka_unit_test(packs),
        cmocka_unit_test(narrowing),
        cmocka_unit_test(widening),
        cmocka_unit_test(between_wide_floats),
        cmocka_unit_test(between_narrow_floats),
        cmocka_unit_test(integers_to_floats),
        cmocka_unit_test(floats_to_integers),
        cmocka_unit_test(small_floats),
        cmocka_unit_test(flushing),
        cmocka_unit_test(bitcasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
