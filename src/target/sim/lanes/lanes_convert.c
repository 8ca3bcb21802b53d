/* Lane loops of the conversions that involve a float.
 *
 * Every source format is exact in a double except 64-bit integers, which are rounded to odd first;
 * the result is then rounded once. Float to integer chops and saturates at the integer's ends, as
 * cvt.rzi does. Other roundings than nearest even go through scalar.h. */
#include "lanes/lanes.h"
#include "lanes/number.h"

#define PARAMETERS                                                                                 \
    (uint32_t n, uint64_t immediate, void *restrict out, const void *x, const void *y,             \
     const void *z)

#define CONVERT_LOOP(name, entry, result, expression)                                              \
    static void name PARAMETERS {                                                                  \
        result *d = out;                                                                           \
        const entry *p = x;                                                                        \
        (void)immediate, (void)y, (void)z;                                                         \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const entry a = p[i];                                                                  \
            d[i] = (result)(expression);                                                           \
        }                                                                                          \
    }

/* ---- float to float, nearest even ---- */

#define READ_f16(v)  float_of_half(v)
#define READ_bf16(v) float_of_bfloat(v)
#define READ_f32(v)  (v)
#define READ_f64(v)  (v)

CONVERT_LOOP(f16_f16, lane_u16, lane_u16, half_of_float(READ_f16(a)))
CONVERT_LOOP(f16_bf16, lane_u16, lane_u16, bfloat_of_float(READ_f16(a)))
CONVERT_LOOP(f16_f32, lane_u16, lane_f32, READ_f16(a))
CONVERT_LOOP(f16_f64, lane_u16, lane_f64, clean_double((double)READ_f16(a)))
CONVERT_LOOP(bf16_f16, lane_u16, lane_u16, half_of_float(READ_bf16(a)))
CONVERT_LOOP(bf16_bf16, lane_u16, lane_u16, bfloat_of_float(READ_bf16(a)))
CONVERT_LOOP(bf16_f32, lane_u16, lane_f32, READ_bf16(a))
CONVERT_LOOP(bf16_f64, lane_u16, lane_f64, clean_double((double)READ_bf16(a)))
CONVERT_LOOP(f32_f16, lane_f32, lane_u16, half_of_float(a))
CONVERT_LOOP(f32_bf16, lane_f32, lane_u16, bfloat_of_float(a))
CONVERT_LOOP(f32_f32, lane_f32, lane_f32, clean_float(a))
CONVERT_LOOP(f32_f64, lane_f32, lane_f64, clean_double((double)a))
CONVERT_LOOP(f64_f16, lane_f64, lane_u16, half_of_double(a))
CONVERT_LOOP(f64_bf16, lane_f64, lane_u16, bfloat_of_double(a))
CONVERT_LOOP(f64_f32, lane_f64, lane_f32, clean_float((float)a))
CONVERT_LOOP(f64_f64, lane_f64, lane_f64, clean_double(a))

/* ---- float to float, any rounding: immediate = from | to << 8 | rounding << 16 ---- */

static void any_rounding PARAMETERS {
    lilac_scalar from = (lilac_scalar)(immediate & 0xFF),
                 to = (lilac_scalar)(immediate >> 8 & 0xFF);
    lilac_rounding rounding = (lilac_rounding)(immediate >> 16);
    uint32_t from_bytes = lilac_scalar_bits(from) / 8, to_bytes = lilac_scalar_bits(to) / 8;
    (void)y, (void)z;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bits = from_bytes == 2   ? ((const lane_u16 *)x)[i]
                        : from_bytes == 4 ? ((const lane_u32 *)x)[i]
                                          : ((const lane_u64 *)x)[i];
        bits = lilac_scalar_encode(to, lilac_scalar_decode(from, bits), rounding, false);
        if (to_bytes == 2) {
            ((lane_u16 *)out)[i] = (uint16_t)bits;
        } else if (to_bytes == 4) {
            ((lane_u32 *)out)[i] = (uint32_t)bits;
        } else {
            ((lane_u64 *)out)[i] = bits;
        }
    }
}

/* ---- integer to float ---- */

#define INTEGER(v)    (v)
#define MAGNITUDE(v)  ((v) < 0 ? 0 - (uint64_t)(int64_t)(v) : (uint64_t)(v))
#define SIGNED_i1(v)  (-(int32_t)(v))
#define SIGNED_i8(v)  ((int8_t)(v))
#define SIGNED_i16(v) ((int16_t)(v))
#define SIGNED_i32(v) ((int32_t)(v))
#define SIGNED_i64(v) ((int64_t)(v))

static inline double odd_signed(int64_t value) {
    double magnitude = odd_double(MAGNITUDE(value));
    return value < 0 ? -magnitude : magnitude;
}

#define FROM_INTEGER(type, entry)                                                                  \
    CONVERT_LOOP(s_##type##_f16, entry, lane_u16, half_of_double(odd_signed(SIGNED_##type(a))))    \
    CONVERT_LOOP(s_##type##_bf16, entry, lane_u16, bfloat_of_double(odd_signed(SIGNED_##type(a)))) \
    CONVERT_LOOP(s_##type##_f32, entry, lane_f32, (float)SIGNED_##type(a))                         \
    CONVERT_LOOP(s_##type##_f64, entry, lane_f64, (double)SIGNED_##type(a))                        \
    CONVERT_LOOP(u_##type##_f16, entry, lane_u16, half_of_double(odd_double(a)))                   \
    CONVERT_LOOP(u_##type##_bf16, entry, lane_u16, bfloat_of_double(odd_double(a)))                \
    CONVERT_LOOP(u_##type##_f32, entry, lane_f32, (float)INTEGER(a))                               \
    CONVERT_LOOP(u_##type##_f64, entry, lane_f64, (double)INTEGER(a))
FROM_INTEGER(i1, lane_u8)
FROM_INTEGER(i8, lane_u8)
FROM_INTEGER(i16, lane_u16)
FROM_INTEGER(i32, lane_u32)
FROM_INTEGER(i64, lane_u64)

/* immediate = signed | to << 8 | rounding << 16; of i32 and i64, to f32 and f64 */
#define DIRECTED(type, entry)                                                                      \
    static void directed_##type PARAMETERS {                                                       \
        const entry *p = x;                                                                        \
        const lilac_scalar to = (lilac_scalar)(immediate >> 8 & 0xFF);                             \
        (void)y, (void)z;                                                                          \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const bool negative = (immediate & 1) != 0 && SIGNED_##type(p[i]) < 0;                 \
            const uint64_t magnitude = negative ? MAGNITUDE(SIGNED_##type(p[i])) : p[i];           \
            const uint64_t bits = lilac_scalar_encode_integer(to, magnitude, negative,             \
                                                              (lilac_rounding)(immediate >> 16));  \
            if (to == LILAC_F32) {                                                                 \
                ((lane_u32 *)out)[i] = (uint32_t)bits;                                             \
            } else {                                                                               \
                ((lane_u64 *)out)[i] = bits;                                                       \
            }                                                                                      \
        }                                                                                          \
    }
DIRECTED(i32, lane_u32)
DIRECTED(i64, lane_u64)

/* ---- float to integer ---- */

/* Chopped and held between the ends of a signed integer of `bits` bits. `nan`: what a NaN gives. */
static inline int64_t chop_signed(double value, int bits, uint64_t nan) {
    double end = ldexp(1.0, bits - 1);
    if (value != value) {
        return (int64_t)nan;
    }
    if (value >= end) {
        return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
    }
    if (value <= -end) {
        return (int64_t)(0 - (UINT64_C(1) << (bits - 1)));
    }
    return (int64_t)value;
}

static inline uint64_t chop_unsigned(double value, int bits, uint64_t nan) {
    if (value != value) {
        return nan;
    }
    if (value <= 0) {
        return 0;
    }
    if (value >= ldexp(1.0, bits)) {
        return UINT64_MAX >> (64 - bits);
    }
    return (uint64_t)value;
}

/* Bytes are the low bits of 16. `wide`: the source is f64; then a NaN gives the sign bit of 16 and 32
 * bits, as every NaN does of 64. */
#define TO_INTEGER_AS(type, entry, name, chop, wide)                                               \
    CONVERT_LOOP(type##_##name##_i1, entry, lane_u8, chop((double)READ_##type(a), 1, 0) & 1)       \
    CONVERT_LOOP(type##_##name##_i8, entry, lane_u8,                                               \
                 chop((double)READ_##type(a), 16, (wide) ? 0x8000 : 0))                            \
    CONVERT_LOOP(type##_##name##_i16, entry, lane_u16,                                             \
                 chop((double)READ_##type(a), 16, (wide) ? 0x8000 : 0))                            \
    CONVERT_LOOP(type##_##name##_i32, entry, lane_u32,                                             \
                 chop((double)READ_##type(a), 32, (wide) ? 0x80000000 : 0))                        \
    CONVERT_LOOP(type##_##name##_i64, entry, lane_u64,                                             \
                 chop((double)READ_##type(a), 64, UINT64_C(1) << 63))
#define TO_INTEGER(type, entry, wide)                                                              \
    TO_INTEGER_AS(type, entry, s, chop_signed, wide)                                               \
    TO_INTEGER_AS(type, entry, u, chop_unsigned, wide)
TO_INTEGER(f16, lane_u16, false)
TO_INTEGER(bf16, lane_u16, false)
TO_INTEGER(f32, lane_f32, false)
TO_INTEGER(f64, lane_f64, true)

/* ---- 8-bit floats: immediate is the lilac_scalar ---- */

static uint16_t half_of_small(lilac_scalar scalar, uint8_t bits) {
    return half_of_float((float)lilac_scalar_decode(scalar, bits));
}

static void small_unpack PARAMETERS {
    lane_u32 *d = out;
    const lane_u16 *p = x;
    lilac_scalar scalar = (lilac_scalar)immediate;
    (void)y, (void)z;
    for (uint32_t i = 0; i < n; i++) {
        d[i] = (uint32_t)half_of_small(scalar, (uint8_t)(p[i] >> 8)) << 16 |
               half_of_small(scalar, (uint8_t)p[i]);
    }
}

static void small_pack PARAMETERS {
    lane_u16 *d = out;
    const lane_f32 *low = x, *high = y;
    lilac_scalar scalar = (lilac_scalar)immediate;
    (void)z;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t l = lilac_scalar_encode(scalar, (double)low[i], LILAC_ROUND_NEAREST_EVEN, true);
        uint64_t h = lilac_scalar_encode(scalar, (double)high[i], LILAC_ROUND_NEAREST_EVEN, true);
        d[i] = (uint16_t)(h << 8 | l);
    }
}

/* ---- choosing ---- */

static lane_loop *const float_to_float[4][4] = {{f16_f16, f16_bf16, f16_f32, f16_f64},
                                                {bf16_f16, bf16_bf16, bf16_f32, bf16_f64},
                                                {f32_f16, f32_bf16, f32_f32, f32_f64},
                                                {f64_f16, f64_bf16, f64_f32, f64_f64}};

#define TO_FLOATS(prefix)                                                                          \
    { prefix##_f16, prefix##_bf16, prefix##_f32, prefix##_f64 }
static lane_loop *const signed_to_float[][4] = {TO_FLOATS(s_i1), TO_FLOATS(s_i8), TO_FLOATS(s_i16),
                                                TO_FLOATS(s_i32), TO_FLOATS(s_i64)};
static lane_loop *const unsigned_to_float[][4] = {
    TO_FLOATS(u_i1), TO_FLOATS(u_i8), TO_FLOATS(u_i16), TO_FLOATS(u_i32), TO_FLOATS(u_i64)};
#define TO_INTEGERS(prefix)                                                                        \
    { prefix##_i1, prefix##_i8, prefix##_i16, prefix##_i32, prefix##_i64 }
static lane_loop *const float_to_signed[][5] = {TO_INTEGERS(f16_s), TO_INTEGERS(bf16_s),
                                                TO_INTEGERS(f32_s), TO_INTEGERS(f64_s)};
static lane_loop *const float_to_unsigned[][5] = {TO_INTEGERS(f16_u), TO_INTEGERS(bf16_u),
                                                  TO_INTEGERS(f32_u), TO_INTEGERS(f64_u)};

static bool is_integer(lilac_simt_type type) {
    return type >= LILAC_SIMT_I1 && type <= LILAC_SIMT_I64;
}

static bool is_float(lilac_simt_type type) {
    return type >= LILAC_SIMT_F16 && type <= LILAC_SIMT_F64;
}

lane_loop *lilac_sim_convert_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                  lilac_simt_type to, uint64_t *immediate) {
    static const lilac_scalar scalars[] = {LILAC_F16, LILAC_BF16, LILAC_F32, LILAC_F64};
    bool small = instruction->scalar == LILAC_F8E4M3FN || instruction->scalar == LILAC_F8E5M2;
    *immediate = instruction->scalar;
    switch (instruction->code) {
    case LILAC_SIMT_OP_FCVT:
        if (!is_float(from) || !is_float(to) || instruction->detail > LILAC_ROUND_UP) {
            return NULL;
        }
        if (instruction->detail == LILAC_ROUND_NEAREST_EVEN) {
            return float_to_float[from - LILAC_SIMT_F16][to - LILAC_SIMT_F16];
        }
        *immediate = (uint64_t)scalars[from - LILAC_SIMT_F16] |
                     (uint64_t)scalars[to - LILAC_SIMT_F16] << 8 |
                     (uint64_t)instruction->detail << 16;
        return any_rounding;
    case LILAC_SIMT_OP_S2F:
    case LILAC_SIMT_OP_U2F:
        if (!is_integer(from) || !is_float(to)) {
            return NULL;
        }
        if (instruction->detail != LILAC_ROUND_NEAREST_EVEN) {
            *immediate = (uint64_t)(instruction->code == LILAC_SIMT_OP_S2F) |
                         (uint64_t)scalars[to - LILAC_SIMT_F16] << 8 |
                         (uint64_t)instruction->detail << 16;
            return from == LILAC_SIMT_I32 ? directed_i32 : directed_i64;
        }
        return (instruction->code == LILAC_SIMT_OP_S2F
                    ? signed_to_float
                    : unsigned_to_float)[from - LILAC_SIMT_I1][to - LILAC_SIMT_F16];
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U:
        if (!is_float(from) || !is_integer(to)) {
            return NULL;
        }
        return (instruction->code == LILAC_SIMT_OP_F2S
                    ? float_to_signed
                    : float_to_unsigned)[from - LILAC_SIMT_F16][to - LILAC_SIMT_I1];
    case LILAC_SIMT_OP_F8_UNPACK:
        return small && from == LILAC_SIMT_I16 && to == LILAC_SIMT_F16X2 ? small_unpack : NULL;
    case LILAC_SIMT_OP_F8_PACK:
        return small && from == LILAC_SIMT_F32 && to == LILAC_SIMT_I16 ? small_pack : NULL;
    default:
        return NULL;
    }
}
