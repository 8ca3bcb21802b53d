/* Lane loops of the floats: arithmetic, functions, comparisons.
 *
 * One expression a type is enough: f32 and f64 compute in their own type. f16 and bf16 compute in
 * double and round once (number.h): their sums, products, minima and roundings to an integral value
 * are exact there or differ from the exact result only where that does not reach the narrow
 * format's rounding; fma is rounded to odd first. Every NaN result is the canonical one.
 *
 * Arithmetic in a directed rounding is the host's in that rounding mode. */
#include "lanes/lanes.h"
#include "lanes/number.h"

#include <fenv.h>

#define PARAMETERS                                                                                 \
    (uint32_t n, uint64_t immediate, void *restrict out, const void *x, const void *y,             \
     const void *z)

/* A loop whose entries are read by `read`, computed in `number` and written by `write`. */
#define FLOAT_LOOP(name, entry, number, read, result, write, expression)                           \
    static void name PARAMETERS {                                                                  \
        result *d = out;                                                                           \
        const entry *p = x, *q = y, *r = z;                                                        \
        (void)immediate;                                                                           \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const number a = read(p[i]), b = read(q[i]), c = read(r[i]);                           \
            (void)a, (void)b, (void)c;                                                             \
            d[i] = write(expression);                                                              \
        }                                                                                          \
    }
#define AS_IS(v)  (v)
#define AS_BIT(v) ((lane_u8)(v))

#define F16_LOOP(name, expression)                                                                 \
    FLOAT_LOOP(name##_f16, lane_u16, double, float_of_half, lane_u16, half_of_double, expression)
#define BF16_LOOP(name, expression)                                                                \
    FLOAT_LOOP(name##_bf16, lane_u16, double, float_of_bfloat, lane_u16, bfloat_of_double,         \
               expression)
#define F32_LOOP(name, expression)                                                                 \
    FLOAT_LOOP(name##_f32, lane_f32, float, AS_IS, lane_f32, clean_float, expression)
#define F64_LOOP(name, expression)                                                                 \
    FLOAT_LOOP(name##_f64, lane_f64, double, AS_IS, lane_f64, clean_double, expression)
#define EVERY_LOOP(name, expression)                                                               \
    F16_LOOP(name, expression)                                                                     \
    BF16_LOOP(name, expression)                                                                    \
    F32_LOOP(name, expression)                                                                     \
    F64_LOOP(name, expression)
#define COMPARE_LOOPS(name, expression)                                                            \
    FLOAT_LOOP(name##_f16, lane_u16, float, float_of_half, lane_u8, AS_BIT, expression)            \
    FLOAT_LOOP(name##_bf16, lane_u16, float, float_of_bfloat, lane_u8, AS_BIT, expression)         \
    FLOAT_LOOP(name##_f32, lane_f32, float, AS_IS, lane_u8, AS_BIT, expression)                    \
    FLOAT_LOOP(name##_f64, lane_f64, double, AS_IS, lane_u8, AS_BIT, expression)
#define UNORDERED (a != a || b != b)

EVERY_LOOP(add, a + b)
EVERY_LOOP(sub, a - b)
EVERY_LOOP(mul, a *b)
F32_LOOP(div, a / b)
F64_LOOP(div, a / b)
F16_LOOP(fused, odd_fused(a, b, c))
BF16_LOOP(fused, odd_fused(a, b, c))
F32_LOOP(fused, (float)odd_fused((double)a, (double)b, (double)c))
F64_LOOP(fused, fma(a, b, c))

/* `immediate` is the lilac_rounding. The operands and the result are volatile, so that the compiler
 * does not move the operation across the changes of the rounding mode. */
static int host_rounding(uint64_t rounding) {
    return rounding == LILAC_ROUND_ZERO   ? FE_TOWARDZERO
           : rounding == LILAC_ROUND_DOWN ? FE_DOWNWARD
                                          : FE_UPWARD;
}
#define DIRECTED_LOOP(name, number, clean, expression)                                             \
    static void name PARAMETERS {                                                                  \
        number *d = out;                                                                           \
        const number *p = x, *q = y, *r = z;                                                       \
        const int before = fegetround();                                                           \
        (void)fesetround(host_rounding(immediate));                                                \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const volatile number a = p[i], b = q[i], c = r[i];                                    \
            const volatile number result = (expression);                                           \
            (void)a, (void)b, (void)c;                                                             \
            d[i] = clean(result);                                                                  \
        }                                                                                          \
        (void)fesetround(before);                                                                  \
    }
#define DIRECTED_LOOPS(name, expression, expression_f32)                                           \
    DIRECTED_LOOP(directed_##name##_f32, lane_f32, clean_float, expression_f32)                    \
    DIRECTED_LOOP(directed_##name##_f64, lane_f64, clean_double, expression)
DIRECTED_LOOPS(add, a + b, a + b)
DIRECTED_LOOPS(sub, a - b, a - b)
DIRECTED_LOOPS(mul, a *b, a *b)
DIRECTED_LOOPS(div, a / b, a / b)
DIRECTED_LOOPS(fused, fma(a, b, c), fmaf(a, b, c))
DIRECTED_LOOPS(root, sqrt(a), sqrtf(a))
DIRECTED_LOOPS(inverse, 1.0 / a, 1.0f / a)

F16_LOOP(least, smaller(a, b))
BF16_LOOP(least, smaller(a, b))
F32_LOOP(least, (float)smaller((double)a, (double)b))
F64_LOOP(least, smaller(a, b))
F16_LOOP(most, larger(a, b))
BF16_LOOP(most, larger(a, b))
F32_LOOP(most, (float)larger((double)a, (double)b))
F64_LOOP(most, larger(a, b))
F16_LOOP(least_nan, UNORDERED ? (double)NAN : smaller(a, b))
BF16_LOOP(least_nan, UNORDERED ? (double)NAN : smaller(a, b))
F32_LOOP(least_nan, UNORDERED ? NAN : (float)smaller((double)a, (double)b))
F64_LOOP(least_nan, UNORDERED ? (double)NAN : smaller(a, b))
F16_LOOP(most_nan, UNORDERED ? (double)NAN : larger(a, b))
BF16_LOOP(most_nan, UNORDERED ? (double)NAN : larger(a, b))
F32_LOOP(most_nan, UNORDERED ? NAN : (float)larger((double)a, (double)b))
F64_LOOP(most_nan, UNORDERED ? (double)NAN : larger(a, b))

F32_LOOP(root, sqrtf(a))
F64_LOOP(root, sqrt(a))
F32_LOOP(inverse_root, (float)(1.0 / sqrt((double)a)))
F64_LOOP(inverse_root, 1.0 / sqrt(a))
F32_LOOP(inverse, 1.0f / a)
F64_LOOP(inverse, 1.0 / a)
F32_LOOP(power, (float)exp2((double)a))
F32_LOOP(logarithm, (float)log2((double)a))
F32_LOOP(sine, (float)sin((double)a))
F32_LOOP(cosine, (float)cos((double)a))
F32_LOOP(tangent, (float)tanh((double)a))

/* tf32 has the upper 19 bits of an f32. */
static float nearest_tf32(float a) {
    return isfinite(a) ? float_of_bits((bits_of_float(a) + 0x1000) & ~UINT32_C(0x1FFF)) : a;
}
F32_LOOP(tensor, nearest_tf32(a))

F16_LOOP(down, floor(a))
BF16_LOOP(down, floor(a))
F32_LOOP(down, floorf(a))
F64_LOOP(down, floor(a))
F16_LOOP(up, ceil(a))
BF16_LOOP(up, ceil(a))
F32_LOOP(up, ceilf(a))
F64_LOOP(up, ceil(a))
F16_LOOP(chop, trunc(a))
BF16_LOOP(chop, trunc(a))
F32_LOOP(chop, truncf(a))
F64_LOOP(chop, trunc(a))
F16_LOOP(near_even, nearbyint(a))
BF16_LOOP(near_even, nearbyint(a))
F32_LOOP(near_even, nearbyintf(a))
F64_LOOP(near_even, nearbyint(a))

COMPARE_LOOPS(eq, a == b)
COMPARE_LOOPS(ne, a<b || a> b)
COMPARE_LOOPS(lt, a < b)
COMPARE_LOOPS(le, a <= b)
COMPARE_LOOPS(gt, a > b)
COMPARE_LOOPS(ge, a >= b)
COMPARE_LOOPS(ueq, !(a < b || a > b))
COMPARE_LOOPS(une, !(a == b))
COMPARE_LOOPS(ult, !(a >= b))
COMPARE_LOOPS(ule, !(a > b))
COMPARE_LOOPS(ugt, !(a <= b))
COMPARE_LOOPS(uge, !(a < b))
COMPARE_LOOPS(ord, !UNORDERED)
COMPARE_LOOPS(uno, UNORDERED)

/* Sign changes are changes of a bit, for NaN too. */
#define SIGN_LOOPS(suffix, entry, sign)                                                            \
    static void negative_##suffix PARAMETERS {                                                     \
        entry *d = out;                                                                            \
        const entry *p = x;                                                                        \
        (void)immediate, (void)y, (void)z;                                                         \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = (entry)(p[i] ^ (sign));                                                         \
    }                                                                                              \
    static void magnitude_##suffix PARAMETERS {                                                    \
        entry *d = out;                                                                            \
        const entry *p = x;                                                                        \
        (void)immediate, (void)y, (void)z;                                                         \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = (entry)(p[i] & ~(entry)(sign));                                                 \
    }
SIGN_LOOPS(u16, lane_u16, 0x8000)
SIGN_LOOPS(u32, lane_u32, 0x80000000)
SIGN_LOOPS(u64, lane_u64, UINT64_C(1) << 63)

void lilac_sim_flush PARAMETERS {
    lane_f32 *d = out;
    const lane_f32 *p = x;
    (void)immediate, (void)y, (void)z;
    for (uint32_t i = 0; i < n; i++) {
        d[i] = flush_float(p[i]);
    }
}

typedef lane_loop *const loops_by_type[4]; /* f16 bf16 f32 f64 */
#define BY_TYPE(name)                                                                              \
    { name##_f16, name##_bf16, name##_f32, name##_f64 }
#define WIDE(name)                                                                                 \
    { NULL, NULL, name##_f32, name##_f64 }
#define SINGLE(name)                                                                               \
    { NULL, NULL, name##_f32, NULL }

static loops_by_type arithmetic[LILAC_SIMT_OP_COUNT] = {
    [LILAC_SIMT_OP_FADD] = BY_TYPE(add),
    [LILAC_SIMT_OP_FSUB] = BY_TYPE(sub),
    [LILAC_SIMT_OP_FMUL] = BY_TYPE(mul),
    [LILAC_SIMT_OP_FDIV] = WIDE(div),
    [LILAC_SIMT_OP_FFMA] = BY_TYPE(fused),
    [LILAC_SIMT_OP_FMIN] = BY_TYPE(least),
    [LILAC_SIMT_OP_FMAX] = BY_TYPE(most),
    [LILAC_SIMT_OP_FNEG] = {negative_u16, negative_u16, negative_u32, negative_u64},
    [LILAC_SIMT_OP_FABS] = {magnitude_u16, magnitude_u16, magnitude_u32, magnitude_u64},
    [LILAC_SIMT_OP_FSQRT] = WIDE(root),
    [LILAC_SIMT_OP_FRSQRT] = WIDE(inverse_root),
    [LILAC_SIMT_OP_FRCP] = WIDE(inverse),
    [LILAC_SIMT_OP_FEXP2] = SINGLE(power),
    [LILAC_SIMT_OP_FLOG2] = SINGLE(logarithm),
    [LILAC_SIMT_OP_FSIN] = SINGLE(sine),
    [LILAC_SIMT_OP_FCOS] = SINGLE(cosine),
    [LILAC_SIMT_OP_FTANH] = SINGLE(tangent),
    [LILAC_SIMT_OP_FTF32] = SINGLE(tensor),
    [LILAC_SIMT_OP_FFLOOR] = BY_TYPE(down),
    [LILAC_SIMT_OP_FCEIL] = BY_TYPE(up),
    [LILAC_SIMT_OP_FTRUNC] = BY_TYPE(chop),
    [LILAC_SIMT_OP_FRINT] = BY_TYPE(near_even),
};
static loops_by_type directed[LILAC_SIMT_OP_COUNT] = {
    [LILAC_SIMT_OP_FADD] = WIDE(directed_add),     [LILAC_SIMT_OP_FSUB] = WIDE(directed_sub),
    [LILAC_SIMT_OP_FMUL] = WIDE(directed_mul),     [LILAC_SIMT_OP_FDIV] = WIDE(directed_div),
    [LILAC_SIMT_OP_FFMA] = WIDE(directed_fused),   [LILAC_SIMT_OP_FSQRT] = WIDE(directed_root),
    [LILAC_SIMT_OP_FRCP] = WIDE(directed_inverse),
};
static loops_by_type least_with_nan = BY_TYPE(least_nan);
static loops_by_type most_with_nan = BY_TYPE(most_nan);

static loops_by_type comparisons[LILAC_SIMT_COMPARE_COUNT] = {
    [LILAC_SIMT_EQ] = BY_TYPE(eq),    [LILAC_SIMT_NE] = BY_TYPE(ne),
    [LILAC_SIMT_LT] = BY_TYPE(lt),    [LILAC_SIMT_LE] = BY_TYPE(le),
    [LILAC_SIMT_GT] = BY_TYPE(gt),    [LILAC_SIMT_GE] = BY_TYPE(ge),
    [LILAC_SIMT_UEQ] = BY_TYPE(ueq),  [LILAC_SIMT_UNE] = BY_TYPE(une),
    [LILAC_SIMT_FULT] = BY_TYPE(ult), [LILAC_SIMT_FULE] = BY_TYPE(ule),
    [LILAC_SIMT_FUGT] = BY_TYPE(ugt), [LILAC_SIMT_FUGE] = BY_TYPE(uge),
    [LILAC_SIMT_ORD] = BY_TYPE(ord),  [LILAC_SIMT_UNO] = BY_TYPE(uno),
};

/* A packed pair runs its element's loop; f16 and bf16 only in comparisons are never packed. */
lane_loop *lilac_sim_float_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                lilac_simt_type to, uint64_t *immediate) {
    bool packed = from == LILAC_SIMT_F16X2 || from == LILAC_SIMT_BF16X2;
    lilac_simt_type element = from == LILAC_SIMT_F16X2    ? LILAC_SIMT_F16
                              : from == LILAC_SIMT_BF16X2 ? LILAC_SIMT_BF16
                                                          : from;
    *immediate = 0;
    if (element < LILAC_SIMT_F16 || element > LILAC_SIMT_F64) {
        return NULL;
    }
    uint32_t column = (uint32_t)(element - LILAC_SIMT_F16);
    if (instruction->code == LILAC_SIMT_OP_CMP) {
        if (packed || to != LILAC_SIMT_I1 || instruction->detail >= LILAC_SIMT_COMPARE_COUNT) {
            return NULL;
        }
        return comparisons[instruction->detail][column];
    }
    if (from != to) {
        return NULL;
    }
    if (lilac_simt_op_rounds((lilac_simt_opcode)instruction->code) &&
        instruction->detail != LILAC_ROUND_NEAREST_EVEN) {
        *immediate = instruction->detail;
        return directed[instruction->code][column];
    }
    if (instruction->flags & LILAC_SIMT_PROPAGATE_NAN) {
        if (instruction->code == LILAC_SIMT_OP_FMIN) {
            return least_with_nan[column];
        }
        if (instruction->code == LILAC_SIMT_OP_FMAX) {
            return most_with_nan[column];
        }
    }
    return arithmetic[instruction->code][column];
}
