/* Lane loops of the integers: arithmetic, bits, comparisons, selects, extensions, packing.
 *
 * One loop is written once and instantiated for the five integer types. Inside, a and b are the
 * operands' bits, sa and sb their signed values, wa and wb the bits in a type whose arithmetic
 * wraps, BITS the width. An i1 entry is 0 or 1; its signed value is 0 or -1. */
#include "lanes/lanes.h"
#include "memory/shared.h"

#include <string.h>

#define SIGNED_i1(v)  ((int8_t) - (int)(v))
#define SIGNED_i8(v)  ((int8_t)(v))
#define SIGNED_i16(v) ((int16_t)(v))
#define SIGNED_i32(v) ((int32_t)(v))
#define SIGNED_i64(v) ((int64_t)(v))
#define KEEP_i1(v)    ((v)&1)
#define KEEP_i8(v)    (v)
#define KEEP_i16(v)   (v)
#define KEEP_i32(v)   (v)
#define KEEP_i64(v)   (v)

/* MACRO(suffix, entry, signed, wrapping, bits, name, expression) for each integer type. */
#define EACH_INTEGER(MACRO, name, expression)                                                      \
    MACRO(i1, lane_u8, int8_t, uint32_t, 1, name, expression)                                      \
    MACRO(i8, lane_u8, int8_t, uint32_t, 8, name, expression)                                      \
    MACRO(i16, lane_u16, int16_t, uint32_t, 16, name, expression)                                  \
    MACRO(i32, lane_u32, int32_t, uint32_t, 32, name, expression)                                  \
    MACRO(i64, lane_u64, int64_t, uint64_t, 64, name, expression)

#define BINARY_LOOP(suffix, U, S, W, bits, name, result, expression)                               \
    static void name##_##suffix(uint32_t n, uint64_t immediate, void *restrict out, const void *x, \
                                const void *y, const void *z) {                                    \
        enum { BITS = bits };                                                                      \
        result *d = out;                                                                           \
        const U *p = x, *q = y;                                                                    \
        (void)immediate, (void)z;                                                                  \
        for (uint32_t i = 0; i < n; i++) {                                                         \
            const U a = p[i], b = q[i];                                                            \
            const S sa = SIGNED_##suffix(a), sb = SIGNED_##suffix(b);                              \
            const W wa = a, wb = b;                                                                \
            (void)sa, (void)sb, (void)wa, (void)wb, (void)BITS;                                    \
            d[i] = (result)(expression);                                                           \
        }                                                                                          \
    }
#define SAME_TYPE(suffix, U, S, W, bits, name, expression)                                         \
    BINARY_LOOP(suffix, U, S, W, bits, name, U, KEEP_##suffix(expression))
#define TO_I1(suffix, U, S, W, bits, name, expression)                                             \
    BINARY_LOOP(suffix, U, S, W, bits, name, lane_u8, expression)
#define TO_I32(suffix, U, S, W, bits, name, expression)                                            \
    BINARY_LOOP(suffix, U, S, W, bits, name, lane_u32, expression)

__extension__ typedef __int128 wide_signed;
__extension__ typedef unsigned __int128 wide_unsigned;

/* The product's high half, in the narrowest type that holds the product: gcc 12 at -O3 makes an
 * unsigned multiplication of a signed 16-bit one that is written in 64 bits. */
#define HIGH_SIGNED(a, b, bits)                                                                    \
    (bits == 64   ? (uint64_t)(((wide_signed)(a) * (b)) >> 64)                                     \
     : bits == 32 ? (uint64_t)(((int64_t)(a) * (int64_t)(b)) >> 32)                                \
                  : (uint64_t)(((int32_t)(a) * (int32_t)(b)) >> (bits & 31)))
#define HIGH_UNSIGNED(a, b, bits)                                                                  \
    (bits == 64   ? (uint64_t)(((wide_unsigned)(a) * (b)) >> 64)                                   \
     : bits == 32 ? ((uint64_t)(a) * (uint64_t)(b)) >> 32                                          \
                  : (uint64_t)(((uint32_t)(a) * (uint32_t)(b)) >> (bits & 31)))

static inline uint64_t reversed_bits(uint64_t a, uint32_t bits) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < bits; i++) {
        result = result << 1 | (a >> i & 1);
    }
    return result;
}

EACH_INTEGER(SAME_TYPE, add, wa + wb)
EACH_INTEGER(SAME_TYPE, sub, wa - wb)
EACH_INTEGER(SAME_TYPE, mul, wa *wb)
EACH_INTEGER(SAME_TYPE, mulhi_s, HIGH_SIGNED(sa, sb, BITS))
EACH_INTEGER(SAME_TYPE, mulhi_u, HIGH_UNSIGNED(a, b, BITS))
/* The divisor is not zero; the one quotient that does not fit wraps. */
EACH_INTEGER(SAME_TYPE, div_s, sb == -1 ? 0 - wa : (uint64_t)(sa / sb))
EACH_INTEGER(SAME_TYPE, div_u, a / b)
EACH_INTEGER(SAME_TYPE, rem_s, sb == -1 ? 0 : sa % sb)
EACH_INTEGER(SAME_TYPE, rem_u, a % b)
EACH_INTEGER(SAME_TYPE, min_s, sa < sb ? a : b)
EACH_INTEGER(SAME_TYPE, min_u, a < b ? a : b)
EACH_INTEGER(SAME_TYPE, max_s, sa > sb ? a : b)
EACH_INTEGER(SAME_TYPE, max_u, a > b ? a : b)
EACH_INTEGER(SAME_TYPE, and, a &b)
EACH_INTEGER(SAME_TYPE, or, a | b)
EACH_INTEGER(SAME_TYPE, xor, a ^ b)
EACH_INTEGER(SAME_TYPE, shl, b >= BITS ? 0 : wa << b)
EACH_INTEGER(SAME_TYPE, shr_s, b >= BITS ? (sa < 0 ? -1 : 0) : sa >> b)
EACH_INTEGER(SAME_TYPE, shr_u, b >= BITS ? 0 : wa >> b)
EACH_INTEGER(TO_I32, popc, __builtin_popcountll(a))
EACH_INTEGER(TO_I32, clz, a == 0 ? BITS : __builtin_clzll(a) - (64 - BITS))
EACH_INTEGER(SAME_TYPE, brev, reversed_bits(a, BITS))
EACH_INTEGER(SAME_TYPE, abs, sa < 0 ? 0 - wa : wa)
EACH_INTEGER(TO_I1, eq, a == b)
EACH_INTEGER(TO_I1, ne, a != b)
EACH_INTEGER(TO_I1, lt, sa < sb)
EACH_INTEGER(TO_I1, le, sa <= sb)
EACH_INTEGER(TO_I1, gt, sa > sb)
EACH_INTEGER(TO_I1, ge, sa >= sb)
EACH_INTEGER(TO_I1, ult, a < b)
EACH_INTEGER(TO_I1, ule, a <= b)
EACH_INTEGER(TO_I1, ugt, a > b)
EACH_INTEGER(TO_I1, uge, a >= b)

#define PARAMETERS                                                                                 \
    (uint32_t n, uint64_t immediate, void *restrict out, const void *x, const void *y,             \
     const void *z)

static void mulwide_s PARAMETERS {
    lane_u64 *d = out;
    const lane_u32 *p = x, *q = y;
    (void)immediate, (void)z;
    for (uint32_t i = 0; i < n; i++) {
        d[i] = (uint64_t)((int64_t)(int32_t)p[i] * (int32_t)q[i]);
    }
}

static void mulwide_u PARAMETERS {
    lane_u64 *d = out;
    const lane_u32 *p = x, *q = y;
    (void)immediate, (void)z;
    for (uint32_t i = 0; i < n; i++) {
        d[i] = (uint64_t)p[i] * q[i];
    }
}

/* Byte k of the result is byte (nibble & 7) of the eight bytes of x and y, or its sign repeated
 * when bit 3 of the nibble is set. */
static void prmt PARAMETERS {
    lane_u32 *d = out;
    const lane_u32 *p = x, *q = y, *selectors = z;
    (void)immediate;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t both = (uint64_t)q[i] << 32 | p[i];
        uint32_t result = 0;
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t nibble = selectors[i] >> 4 * k & 15;
            uint32_t byte = (uint32_t)(both >> 8 * (nibble & 7)) & 0xFF;
            if (nibble & 8) {
                byte = byte & 0x80 ? 0xFF : 0;
            }
            result |= byte << 8 * k;
        }
        d[i] = result;
    }
}

#define SELECT_LOOP(U)                                                                             \
    static void select_##U PARAMETERS {                                                            \
        U *d = out;                                                                                \
        const lane_u8 *condition = x;                                                              \
        const U *p = y, *q = z;                                                                    \
        (void)immediate;                                                                           \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = condition[i] ? p[i] : q[i];                                                     \
    }
SELECT_LOOP(lane_u8)
SELECT_LOOP(lane_u16)
SELECT_LOOP(lane_u32)
SELECT_LOOP(lane_u64)

void lilac_sim_copy PARAMETERS {
    (void)y, (void)z;
    memcpy(out, x, n * (size_t)immediate);
}

/* Extensions and truncations between any two integer types. */
#define EXTEND_LOOPS(to, V, from, U)                                                               \
    static void sext_##from##_##to PARAMETERS {                                                    \
        V *d = out;                                                                                \
        const U *p = x;                                                                            \
        (void)immediate, (void)y, (void)z;                                                         \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = (V)KEEP_##to(SIGNED_##from(p[i]));                                              \
    }                                                                                              \
    static void zext_##from##_##to PARAMETERS {                                                    \
        V *d = out;                                                                                \
        const U *p = x;                                                                            \
        (void)immediate, (void)y, (void)z;                                                         \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = (V)KEEP_##to(p[i]);                                                             \
    }
#define EXTEND_FROM(from, U)                                                                       \
    EXTEND_LOOPS(i1, lane_u8, from, U)                                                             \
    EXTEND_LOOPS(i8, lane_u8, from, U)                                                             \
    EXTEND_LOOPS(i16, lane_u16, from, U)                                                           \
    EXTEND_LOOPS(i32, lane_u32, from, U)                                                           \
    EXTEND_LOOPS(i64, lane_u64, from, U)
EXTEND_FROM(i1, lane_u8)
EXTEND_FROM(i8, lane_u8)
EXTEND_FROM(i16, lane_u16)
EXTEND_FROM(i32, lane_u32)
EXTEND_FROM(i64, lane_u64)

#define PACK_LOOPS(U, V)                                                                           \
    static void pack_##U##_##V PARAMETERS {                                                        \
        V *d = out;                                                                                \
        const U *p = x;                                                                            \
        (void)y, (void)z;                                                                          \
        if (immediate == 0)                                                                        \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i] = (V)p[i];                                                                    \
        else                                                                                       \
            for (uint32_t i = 0; i < n; i++)                                                       \
                d[i] = (V)(d[i] | (uint64_t)p[i] << immediate);                                    \
    }                                                                                              \
    static void unpack_##V##_##U PARAMETERS {                                                      \
        U *d = out;                                                                                \
        const V *p = x;                                                                            \
        (void)y, (void)z;                                                                          \
        for (uint32_t i = 0; i < n; i++)                                                           \
            d[i] = (U)(p[i] >> immediate);                                                         \
    }
PACK_LOOPS(lane_u8, lane_u8)
PACK_LOOPS(lane_u8, lane_u16)
PACK_LOOPS(lane_u8, lane_u32)
PACK_LOOPS(lane_u8, lane_u64)
PACK_LOOPS(lane_u16, lane_u16)
PACK_LOOPS(lane_u16, lane_u32)
PACK_LOOPS(lane_u16, lane_u64)
PACK_LOOPS(lane_u32, lane_u32)
PACK_LOOPS(lane_u32, lane_u64)
PACK_LOOPS(lane_u64, lane_u64)

/* log2 of an entry's bytes. */
static uint32_t size_class(lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    return bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
}

uint32_t lilac_sim_lane_bytes(lilac_simt_type type) {
    return 1u << size_class(type);
}

/* The rank, plus one, stands above the bits of an address (shared.h); what is no address of the
 * block's own or no rank gives an address that no access may have. */
static void map_shared(uint32_t n, uint64_t immediate, void *restrict out, const void *x,
                       const void *y, const void *z) {
    (void)immediate;
    (void)z;
    lane_u32 *mapped = out;
    const lane_u32 *address = x, *rank = y;
    for (uint32_t k = 0; k < n; k++) {
        bool fits = address[k] >> LILAC_SIM_RANK_SHIFT == 0 && rank[k] < LILAC_SIM_MOST_BLOCKS;
        mapped[k] = fits ? (rank[k] + 1) << LILAC_SIM_RANK_SHIFT | address[k] : UINT32_MAX;
    }
}

lane_loop *lilac_sim_pack_loop(lilac_simt_type part, lilac_simt_type whole) {
    static lane_loop *const loops[4][4] = {
        {pack_lane_u8_lane_u8, pack_lane_u8_lane_u16, pack_lane_u8_lane_u32, pack_lane_u8_lane_u64},
        {NULL, pack_lane_u16_lane_u16, pack_lane_u16_lane_u32, pack_lane_u16_lane_u64},
        {NULL, NULL, pack_lane_u32_lane_u32, pack_lane_u32_lane_u64},
        {NULL, NULL, NULL, pack_lane_u64_lane_u64}};
    if (part == LILAC_SIMT_I1 || whole == LILAC_SIMT_I1) {
        return NULL;
    }
    return loops[size_class(part)][size_class(whole)];
}

lane_loop *lilac_sim_unpack_loop(lilac_simt_type whole, lilac_simt_type part) {
    static lane_loop *const loops[4][4] = {
        {unpack_lane_u8_lane_u8, unpack_lane_u16_lane_u8, unpack_lane_u32_lane_u8,
         unpack_lane_u64_lane_u8},
        {NULL, unpack_lane_u16_lane_u16, unpack_lane_u32_lane_u16, unpack_lane_u64_lane_u16},
        {NULL, NULL, unpack_lane_u32_lane_u32, unpack_lane_u64_lane_u32},
        {NULL, NULL, NULL, unpack_lane_u64_lane_u64}};
    if (part == LILAC_SIMT_I1 || whole == LILAC_SIMT_I1) {
        return NULL;
    }
    return loops[size_class(part)][size_class(whole)];
}

typedef lane_loop *const loops_by_type[LILAC_SIMT_I64 + 1];
#define BY_TYPE(name)                                                                              \
    { NULL, name##_i1, name##_i8, name##_i16, name##_i32, name##_i64 }

static loops_by_type arithmetic[LILAC_SIMT_OP_COUNT] = {
    [LILAC_SIMT_OP_ADD] = BY_TYPE(add),         [LILAC_SIMT_OP_SUB] = BY_TYPE(sub),
    [LILAC_SIMT_OP_MUL] = BY_TYPE(mul),         [LILAC_SIMT_OP_MULHI_S] = BY_TYPE(mulhi_s),
    [LILAC_SIMT_OP_MULHI_U] = BY_TYPE(mulhi_u), [LILAC_SIMT_OP_DIV_S] = BY_TYPE(div_s),
    [LILAC_SIMT_OP_DIV_U] = BY_TYPE(div_u),     [LILAC_SIMT_OP_REM_S] = BY_TYPE(rem_s),
    [LILAC_SIMT_OP_REM_U] = BY_TYPE(rem_u),     [LILAC_SIMT_OP_MIN_S] = BY_TYPE(min_s),
    [LILAC_SIMT_OP_MIN_U] = BY_TYPE(min_u),     [LILAC_SIMT_OP_MAX_S] = BY_TYPE(max_s),
    [LILAC_SIMT_OP_MAX_U] = BY_TYPE(max_u),     [LILAC_SIMT_OP_AND] = BY_TYPE(and),
    [LILAC_SIMT_OP_OR] = BY_TYPE(or),           [LILAC_SIMT_OP_XOR] = BY_TYPE(xor),
    [LILAC_SIMT_OP_SHL] = BY_TYPE(shl),         [LILAC_SIMT_OP_SHR_S] = BY_TYPE(shr_s),
    [LILAC_SIMT_OP_SHR_U] = BY_TYPE(shr_u),     [LILAC_SIMT_OP_POPC] = BY_TYPE(popc),
    [LILAC_SIMT_OP_CLZ] = BY_TYPE(clz),         [LILAC_SIMT_OP_BREV] = BY_TYPE(brev),
    [LILAC_SIMT_OP_ABS] = BY_TYPE(abs),
};

static loops_by_type comparisons[LILAC_SIMT_UGE + 1] = {
    [LILAC_SIMT_EQ] = BY_TYPE(eq),   [LILAC_SIMT_NE] = BY_TYPE(ne),
    [LILAC_SIMT_LT] = BY_TYPE(lt),   [LILAC_SIMT_LE] = BY_TYPE(le),
    [LILAC_SIMT_GT] = BY_TYPE(gt),   [LILAC_SIMT_GE] = BY_TYPE(ge),
    [LILAC_SIMT_ULT] = BY_TYPE(ult), [LILAC_SIMT_ULE] = BY_TYPE(ule),
    [LILAC_SIMT_UGT] = BY_TYPE(ugt), [LILAC_SIMT_UGE] = BY_TYPE(uge),
};

#define EXTENSIONS(kind, from)                                                                     \
    {                                                                                              \
        NULL, kind##_##from##_i1, kind##_##from##_i8, kind##_##from##_i16, kind##_##from##_i32,    \
            kind##_##from##_i64                                                                    \
    }
static loops_by_type sign_extensions[] = {{NULL},
                                          EXTENSIONS(sext, i1),
                                          EXTENSIONS(sext, i8),
                                          EXTENSIONS(sext, i16),
                                          EXTENSIONS(sext, i32),
                                          EXTENSIONS(sext, i64)};
static loops_by_type zero_extensions[] = {{NULL},
                                          EXTENSIONS(zext, i1),
                                          EXTENSIONS(zext, i8),
                                          EXTENSIONS(zext, i16),
                                          EXTENSIONS(zext, i32),
                                          EXTENSIONS(zext, i64)};

static bool is_integer(lilac_simt_type type) {
    return type >= LILAC_SIMT_I1 && type <= LILAC_SIMT_I64;
}

lane_loop *lilac_sim_integer_loop(const lilac_simt_instruction *instruction, lilac_simt_type from,
                                  lilac_simt_type to, uint64_t *immediate) {
    static lane_loop *const selects[] = {select_lane_u8, select_lane_u16, select_lane_u32,
                                         select_lane_u64};
    *immediate = 0;
    switch (instruction->code) {
    case LILAC_SIMT_OP_SELECT:
        return selects[size_class(to)];
    case LILAC_SIMT_OP_BITCAST:
    case LILAC_SIMT_OP_OPAQUE:
        *immediate = lilac_sim_lane_bytes(to);
        return lilac_simt_type_bits(from) == lilac_simt_type_bits(to) ? lilac_sim_copy : NULL;
    default:
        break;
    }
    if (!is_integer(from) || !is_integer(to)) {
        return NULL;
    }
    switch (instruction->code) {
    case LILAC_SIMT_OP_CMP:
        return instruction->detail <= LILAC_SIMT_UGE ? comparisons[instruction->detail][from]
                                                     : NULL;
    case LILAC_SIMT_OP_SEXT:
        return sign_extensions[from][to];
    case LILAC_SIMT_OP_ZEXT:
    case LILAC_SIMT_OP_TRUNC:
        return zero_extensions[from][to];
    case LILAC_SIMT_OP_MULWIDE_S:
        return mulwide_s;
    case LILAC_SIMT_OP_MULWIDE_U:
        return mulwide_u;
    case LILAC_SIMT_OP_PRMT:
        return prmt;
    case LILAC_SIMT_OP_MAP_SHARED:
        return map_shared;
    default:
        return arithmetic[instruction->code][from];
    }
}
