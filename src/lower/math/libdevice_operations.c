/* libdevice's operations on integers and bits, roundings, conversions and fast approximations.
 *
 * Arithmetic in a directed rounding is one instruction. Conversions of 64-bit integers in a
 * directed rounding compute a double and the rounding error of it. The double is rounded to odd
 * (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using
 * rounding to odd", 2008) and then once to f32; for f64 it moves by one place where the direction
 * requires it. */
#include "f32.h"
#include "libdevice.h"
#include "numeric_casts.h"

#include <string.h>

typedef lilac_lower_operation operation;
typedef lilac_simt_value value;

#define BUILD(name) static value name(math_builder *k, const operation *row, const value *in)

static lilac_simt_type result_type(const operation *row) {
    return lilac_lower_type_named(row->types[0]);
}

/* A number of the type of a. */
static value like(math_builder *k, value a, double number) {
    return lilac_lower_float(k->l, kind(k, a), number);
}

static value as_integer(math_builder *k, value condition) {
    return convert(k, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, condition);
}

/* ---- one instruction ------------------------------------------------------------------------ */

BUILD(instruction) {
    uint32_t flags = (uint32_t)row->detail;
    if (k->l->options->keep_subnormals) {
        flags &= ~(uint32_t)LILAC_SIMT_FTZ;
    }
    return lilac_lower_flagged(k->l, (lilac_simt_opcode)row->code, result_type(row), (uint8_t)flags,
                               (uint32_t)strlen(row->types) - 1, in);
}

/* Products and sums that stay apart. */
BUILD(product) {
    (void)row;
    return fma3(k, in[0], in[1], like(k, in[0], -0.0));
}
BUILD(sum) {
    value one = like(k, in[0], 1.0);
    return fma3(k, in[0], one, row->detail ? minus(k, in[1]) : in[1]);
}
BUILD(inverse) {
    (void)row;
    return quotient(k, like(k, in[0], 1.0), in[0]);
}
BUILD(bits) {
    return cast(k, result_type(row), in[0]);
}

/* ---- integers ------------------------------------------------------------------------------- */

BUILD(permute_bytes) {
    (void)row;
    return lilac_simt_op3(k->b, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, in[0], in[1],
                          with(k, LILAC_SIMT_OP_AND, in[2], 0x7777));
}

/* detail: signed. */
BUILD(multiply_24) {
    lilac_simt_opcode right = row->detail ? LILAC_SIMT_OP_SHR_S : LILAC_SIMT_OP_SHR_U;
    value a[2];
    for (int i = 0; i < 2; i++) {
        a[i] = with(k, right, with(k, LILAC_SIMT_OP_SHL, in[i], 8), 8);
    }
    return op2(k, LILAC_SIMT_OP_MUL, a[0], a[1]);
}

BUILD(difference_sum) {
    bool is_signed = row->detail;
    value high = op2(k, is_signed ? LILAC_SIMT_OP_MAX_S : LILAC_SIMT_OP_MAX_U, in[0], in[1]);
    value low = op2(k, is_signed ? LILAC_SIMT_OP_MIN_S : LILAC_SIMT_OP_MIN_U, in[0], in[1]);
    return op2(k, LILAC_SIMT_OP_ADD, op2(k, LILAC_SIMT_OP_SUB, high, low), in[2]);
}

/* Half the sum, rounded down: the common bits and half of the others; up: all bits less that. */
static value half_difference(math_builder *k, bool is_signed, const value *in) {
    return with(k, is_signed ? LILAC_SIMT_OP_SHR_S : LILAC_SIMT_OP_SHR_U,
                op2(k, LILAC_SIMT_OP_XOR, in[0], in[1]), 1);
}
BUILD(mean_down) {
    return op2(k, LILAC_SIMT_OP_ADD, both(k, in[0], in[1]), half_difference(k, row->detail, in));
}
BUILD(mean_up) {
    return op2(k, LILAC_SIMT_OP_SUB, either(k, in[0], in[1]), half_difference(k, row->detail, in));
}

/* The number of the lowest bit set, from 1 on: the width less the zeros in front of it, 0 if there is
 * none. */
BUILD(find_first) {
    (void)row;
    value negative = op2(k, LILAC_SIMT_OP_SUB, integer(k, kind(k, in[0]), 0), in[0]);
    value zeros = lilac_simt_op1(k->b, LILAC_SIMT_OP_CLZ, LILAC_SIMT_I32, both(k, in[0], negative));
    value width = integer(k, LILAC_SIMT_I32, lilac_simt_type_bits(kind(k, in[0])));
    return op2(k, LILAC_SIMT_OP_SUB, width, zeros);
}

/* ---- questions and parts of floats ---------------------------------------------------------- */

static value infinity(math_builder *k, value a) {
    return like(k, a, 1.0 / 0.0);
}
BUILD(ask_nan) {
    (void)row;
    return as_integer(k, is_nan(k, in[0]));
}
BUILD(ask_infinite) {
    (void)row;
    return as_integer(k, compare(k, LILAC_SIMT_EQ, magnitude(k, in[0]), infinity(k, in[0])));
}
BUILD(ask_finite) {
    (void)row;
    return as_integer(k, compare(k, LILAC_SIMT_LT, magnitude(k, in[0]), infinity(k, in[0])));
}
BUILD(ask_sign) {
    (void)row;
    bool wide = kind(k, in[0]) == LILAC_SIMT_F64;
    lilac_simt_type type = wide ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
    value bit = with(k, LILAC_SIMT_OP_SHR_U, cast(k, type, in[0]), wide ? 63 : 31);
    return wide ? convert(k, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, bit) : bit;
}
BUILD(copy_sign) {
    (void)row;
    return lilac_lower_sign_from(k, in[1], in[0]);
}
/* NaN where an operand is NaN; the difference of equal infinities is 0. */
BUILD(positive_difference) {
    (void)row;
    value none = compare(k, LILAC_SIMT_LE, in[0], in[1]);
    return choose(k, none, like(k, in[0], 0.0), sub(k, in[0], in[1]));
}
BUILD(saturate) {
    (void)row;
    value held = op2(k, LILAC_SIMT_OP_FMAX, in[0], like(k, in[0], 0.0));
    return op2(k, LILAC_SIMT_OP_FMIN, held, like(k, in[0], 1.0));
}

/* The next number by its bits, one step away from zero or towards it. */
static value stepped(math_builder *k, value a, value away) {
    lilac_simt_type type = kind(k, a) == LILAC_SIMT_F64 ? LILAC_SIMT_I64 : LILAC_SIMT_I32;
    value step = choose(k, away, integer(k, type, 1), integer(k, type, -1));
    return cast(k, kind(k, a), op2(k, LILAC_SIMT_OP_ADD, cast(k, type, a), step));
}
static value next_to(math_builder *k, value a, value up) {
    value negative = compare(k, LILAC_SIMT_LT, a, like(k, a, 0.0));
    value next = stepped(k, a, op2(k, LILAC_SIMT_OP_XOR, up, negative));
    value least = lilac_simt_constant(k->b, kind(k, a), 1);
    value from_zero = choose(k, up, least, minus(k, least));
    return choose(k, compare(k, LILAC_SIMT_EQ, a, like(k, a, 0.0)), from_zero, next);
}
BUILD(next_after) {
    (void)row;
    value next = next_to(k, in[0], compare(k, LILAC_SIMT_LT, in[0], in[1]));
    value result = choose(k, compare(k, LILAC_SIMT_EQ, in[0], in[1]), in[1], next);
    return choose(k, compare(k, LILAC_SIMT_UNO, in[0], in[1]), add(k, in[0], in[1]), result);
}

/* ---- exponents ------------------------------------------------------------------------------ */

static value as_double(math_builder *k, value a) {
    return lilac_lower_convert(k->l, a, LILAC_SIMT_F64, LILAC_ROUND_NEAREST_EVEN);
}
static value as_result(math_builder *k, const operation *row, value a) {
    return lilac_lower_convert(k->l, a, result_type(row), LILAC_ROUND_NEAREST_EVEN);
}

static value exponent_of(math_builder *k, value a) {
    value e;
    (void)lilac_lower_mantissa(k, as_double(k, a), &e);
    return e;
}
/* The exponent of an f32, whole. */
static value exponent_bits(math_builder *k, value a) {
    value m = magnitude(k, a), tiny = compare(k, LILAC_SIMT_LT, m, f32(k, 0x1p-126));
    m = choose(k, tiny, mul(k, m, f32(k, 0x1p24)), m);
    value bias =
        choose(k, tiny, integer(k, LILAC_SIMT_I32, 127 + 24), integer(k, LILAC_SIMT_I32, 127));
    return op2(k, LILAC_SIMT_OP_SUB, with(k, LILAC_SIMT_OP_SHR_U, i32_of(k, m), 23), bias);
}
BUILD(exponent_float) {
    value a = in[0], m = magnitude(k, a);
    value result = kind(k, a) == LILAC_SIMT_F32
                       ? convert(k, LILAC_SIMT_OP_S2F, LILAC_SIMT_F32, exponent_bits(k, a))
                       : as_result(k, row, exponent_of(k, a));
    result =
        choose(k, compare(k, LILAC_SIMT_EQ, a, like(k, a, 0.0)), minus(k, infinity(k, a)), result);
    return choose(k, compare(k, LILAC_SIMT_FUGE, m, infinity(k, a)), m, result);
}
BUILD(exponent_integer) {
    (void)row;
    value a = in[0], m = magnitude(k, a);
    value result = kind(k, a) == LILAC_SIMT_F32
                       ? exponent_bits(k, a)
                       : convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I32, exponent_of(k, a));
    value zero = compare(k, LILAC_SIMT_EQ, a, like(k, a, 0.0));
    value none = either(k, zero, is_nan(k, a));
    result = choose(k, none, integer(k, LILAC_SIMT_I32, INT32_MIN), result);
    return choose(k, compare(k, LILAC_SIMT_EQ, m, infinity(k, a)),
                  integer(k, LILAC_SIMT_I32, INT32_MAX), result);
}

/* ---- roundings and conversions -------------------------------------------------------------- */

/* Halves go away from zero: the magnitude plus a half, both times towards zero. */
static value rounded(math_builder *k, value a) {
    value parts[2] = {magnitude(k, a), like(k, a, 0.5)};
    lilac_simt_type type = kind(k, a);
    lilac_simt_instruction sum = {.code = LILAC_SIMT_OP_FADD, .detail = LILAC_ROUND_ZERO};
    value whole = op1(k, LILAC_SIMT_OP_FTRUNC, lilac_simt_build(k->b, &sum, 2, parts, 1, &type));
    return lilac_lower_sign_from(k, a, whole);
}
BUILD(round_away) {
    value result = rounded(k, in[0]);
    return row->types[0] != 'l' ? result : convert(k, LILAC_SIMT_OP_F2S, LILAC_SIMT_I64, result);
}

/* To an integer; detail: lilac_rounding. */
BUILD(to_integer) {
    static const lilac_simt_opcode whole[] = {[LILAC_ROUND_NEAREST_EVEN] = LILAC_SIMT_OP_FRINT,
                                              [LILAC_ROUND_DOWN] = LILAC_SIMT_OP_FFLOOR,
                                              [LILAC_ROUND_UP] = LILAC_SIMT_OP_FCEIL,
                                              [LILAC_ROUND_ZERO] = LILAC_SIMT_OP_FTRUNC};
    value a = row->detail == LILAC_ROUND_ZERO ? in[0] : op1(k, whole[row->detail], in[0]);
    return convert(k, (lilac_simt_opcode)row->code, result_type(row), a);
}

BUILD(from_integer) {
    const lilac_simt_type type = result_type(row);
    const lilac_simt_instruction like = {.code = row->code, .detail = (uint8_t)row->detail};
    return lilac_simt_build(k->b, &like, 1, in, 1, &type);
}
BUILD(narrow_float) {
    return lilac_lower_convert(k->l, in[0], LILAC_SIMT_F32, (lilac_rounding)row->detail);
}

/* One operation in the rounding `detail`. */
BUILD(rounded_arithmetic) {
    lilac_simt_type type = result_type(row);
    lilac_simt_instruction like = {.code = row->code, .detail = (uint8_t)row->detail};
    return lilac_simt_build(k->b, &like, (uint32_t)strlen(row->types) - 1, in, 1, &type);
}

BUILD(root_inverse) {
    (void)row;
    return lilac_lower_f32_rsqrt_rounded(k, in);
}

/* ---- halves of a double --------------------------------------------------------------------- */

BUILD(join_halves) {
    (void)row;
    value parts[2] = {in[1], in[0]};
    return cast(k, LILAC_SIMT_F64, lilac_simt_pack(k->b, LILAC_SIMT_I64, 2, parts));
}
BUILD(half_of) {
    value parts[2];
    lilac_simt_unpack(k->b, LILAC_SIMT_I32, cast(k, LILAC_SIMT_I64, in[0]), 2, parts);
    return parts[row->detail];
}

/* ---- fast approximations -------------------------------------------------------------------- */

static value approximate(math_builder *k, lilac_simt_opcode code, value a) {
    return flushed(k, code, a);
}
static value scaled_by(math_builder *k, value a, double factor) {
    return mul(k, a, like(k, a, factor));
}
BUILD(fast_exp) {
    double factor = row->detail == 10 ? 3.3219280948873623 : 1.4426950408889634;
    return approximate(k, LILAC_SIMT_OP_FEXP2, scaled_by(k, in[0], factor));
}
BUILD(fast_log) {
    double factor = row->detail == 10 ? 0.30102999566398120 : 0.69314718055994531;
    return scaled_by(k, approximate(k, LILAC_SIMT_OP_FLOG2, in[0]), factor);
}
BUILD(fast_pow) {
    (void)row;
    return approximate(k, LILAC_SIMT_OP_FEXP2,
                       mul(k, in[1], approximate(k, LILAC_SIMT_OP_FLOG2, in[0])));
}
BUILD(fast_tan) {
    value parts[2] = {approximate(k, LILAC_SIMT_OP_FSIN, in[0]),
                      approximate(k, LILAC_SIMT_OP_FCOS, in[0])};
    (void)row;
    return mul(k, parts[0], flushed(k, LILAC_SIMT_OP_FRCP, parts[1]));
}

/* 0 for divisors above 2^126, as div.approx gives. */
BUILD(fast_quotient) {
    (void)row;
    return mul(k, in[0], flushed(k, LILAC_SIMT_OP_FRCP, in[1]));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define OP(name) LILAC_SIMT_OP_##name
#define NEAREST  LILAC_ROUND_NEAREST_EVEN
/* A name with an f, of f32, and without, of f64. */
#define FLOATS(name, types, wide, build, code, detail)                                             \
    {name "f", types, build, code, detail}, {                                                      \
        name, wide, build, code, detail                                                            \
    }
/* A name with each of the directions. */
#define DIRECTIONS(name, types, build, code)                                                       \
    {name "_rz", types, build, code, LILAC_ROUND_ZERO},                                            \
        {name "_rd", types, build, code, LILAC_ROUND_DOWN}, {                                      \
        name "_ru", types, build, code, LILAC_ROUND_UP                                             \
    }
/* Arithmetic of f32 and of f64 in each of the directions. */
#define DIRECTED(single, wide, types, wide_types, code)                                            \
    DIRECTIONS(single, types, rounded_arithmetic, code),                                           \
        DIRECTIONS(wide, wide_types, rounded_arithmetic, code)
#define ROUNDINGS(name, types, build, code)                                                        \
    {name "_rn", types, build, code, NEAREST}, DIRECTIONS(name, types, build, code)

static const operation operations[] = {
    {"clz", "ii", instruction, OP(CLZ), 0},
    {"clzll", "il", instruction, OP(CLZ), 0},
    {"popc", "ii", instruction, OP(POPC), 0},
    {"popcll", "il", instruction, OP(POPC), 0},
    {"mulhi", "iii", instruction, OP(MULHI_S), 0},
    {"umulhi", "iii", instruction, OP(MULHI_U), 0},
    {"mul64hi", "lll", instruction, OP(MULHI_S), 0},
    {"umul64hi", "lll", instruction, OP(MULHI_U), 0},
    {"min", "iii", instruction, OP(MIN_S), 0},
    {"max", "iii", instruction, OP(MAX_S), 0},
    {"umin", "iii", instruction, OP(MIN_U), 0},
    {"umax", "iii", instruction, OP(MAX_U), 0},
    {"llmin", "lll", instruction, OP(MIN_S), 0},
    {"llmax", "lll", instruction, OP(MAX_S), 0},
    {"ullmin", "lll", instruction, OP(MIN_U), 0},
    {"ullmax", "lll", instruction, OP(MAX_U), 0},
    {"abs", "ii", instruction, OP(ABS), 0},
    {"llabs", "ll", instruction, OP(ABS), 0},
    {"brev", "ii", instruction, OP(BREV), 0},
    {"brevll", "ll", instruction, OP(BREV), 0},
    {"byte_perm", "iiii", permute_bytes, 0, 0},
    {"mul24", "iii", multiply_24, 0, true},
    {"umul24", "iii", multiply_24, 0, false},
    {"sad", "iiii", difference_sum, 0, true},
    {"usad", "iiii", difference_sum, 0, false},
    {"hadd", "iii", mean_down, 0, true},
    {"uhadd", "iii", mean_down, 0, false},
    {"rhadd", "iii", mean_up, 0, true},
    {"urhadd", "iii", mean_up, 0, false},
    {"ffs", "ii", find_first, 0, 0},
    {"ffsll", "il", find_first, 0, 0},

    FLOATS("fabs", "ff", "dd", instruction, OP(FABS), 0),
    FLOATS("floor", "ff", "dd", instruction, OP(FFLOOR), 0),
    FLOATS("ceil", "ff", "dd", instruction, OP(FCEIL), 0),
    FLOATS("trunc", "ff", "dd", instruction, OP(FTRUNC), 0),
    FLOATS("rint", "ff", "dd", instruction, OP(FRINT), 0),
    FLOATS("nearbyint", "ff", "dd", instruction, OP(FRINT), 0),
    FLOATS("round", "ff", "dd", round_away, 0, 0),
    FLOATS("llround", "lf", "ld", round_away, 0, 0),
    FLOATS("llrint", "lf", "ld", to_integer, OP(F2S), NEAREST),
    FLOATS("fma", "ffff", "dddd", instruction, OP(FFMA), 0),
    {"fmaf_rn", "ffff", instruction, OP(FFMA), 0},
    {"fma_rn", "dddd", instruction, OP(FFMA), 0},
    FLOATS("fmin", "fff", "ddd", instruction, OP(FMIN), 0),
    FLOATS("fmax", "fff", "ddd", instruction, OP(FMAX), 0),
    {"sqrtf", "ff", instruction, OP(FSQRT), LILAC_SIMT_APPROXIMATE | LILAC_SIMT_FTZ},
    {"sqrt", "dd", instruction, OP(FSQRT), 0},
    {"fsqrt_rn", "ff", instruction, OP(FSQRT), 0},
    {"dsqrt_rn", "dd", instruction, OP(FSQRT), 0},
    {"fdiv_rn", "fff", instruction, OP(FDIV), 0},
    {"ddiv_rn", "ddd", instruction, OP(FDIV), 0},
    {"frcp_rn", "ff", inverse, 0, 0},
    {"drcp_rn", "dd", inverse, 0, 0},
    {"fmul_rn", "fff", product, 0, 0},
    {"dmul_rn", "ddd", product, 0, 0},
    {"fadd_rn", "fff", sum, 0, false},
    {"dadd_rn", "ddd", sum, 0, false},
    {"fsub_rn", "fff", sum, 0, true},
    {"dsub_rn", "ddd", sum, 0, true},
    {"frsqrt_rn", "ff", root_inverse, 0, 0},
    DIRECTED("fadd", "dadd", "fff", "ddd", OP(FADD)),
    DIRECTED("fsub", "dsub", "fff", "ddd", OP(FSUB)),
    DIRECTED("fmul", "dmul", "fff", "ddd", OP(FMUL)),
    DIRECTED("fdiv", "ddiv", "fff", "ddd", OP(FDIV)),
    DIRECTED("frcp", "drcp", "ff", "dd", OP(FRCP)),
    DIRECTED("fsqrt", "dsqrt", "ff", "dd", OP(FSQRT)),
    DIRECTED("fmaf", "fma", "ffff", "dddd", OP(FFMA)),

    {"isnanf", "if", ask_nan, 0, 0},
    {"isnand", "id", ask_nan, 0, 0},
    {"isinff", "if", ask_infinite, 0, 0},
    {"isinfd", "id", ask_infinite, 0, 0},
    {"finitef", "if", ask_finite, 0, 0},
    {"isfinited", "id", ask_finite, 0, 0},
    {"signbitf", "if", ask_sign, 0, 0},
    {"signbitd", "id", ask_sign, 0, 0},
    FLOATS("copysign", "fff", "ddd", copy_sign, 0, 0),
    FLOATS("fdim", "fff", "ddd", positive_difference, 0, 0),
    FLOATS("nextafter", "fff", "ddd", next_after, 0, 0),
    {"saturatef", "ff", saturate, 0, 0},
    FLOATS("logb", "ff", "dd", exponent_float, 0, 0),
    FLOATS("ilogb", "if", "id", exponent_integer, 0, 0),

    ROUNDINGS("double2float", "fd", narrow_float, 0),
    ROUNDINGS("float2int", "if", to_integer, OP(F2S)),
    ROUNDINGS("float2uint", "if", to_integer, OP(F2U)),
    ROUNDINGS("float2ll", "lf", to_integer, OP(F2S)),
    ROUNDINGS("float2ull", "lf", to_integer, OP(F2U)),
    ROUNDINGS("double2int", "id", to_integer, OP(F2S)),
    ROUNDINGS("double2uint", "id", to_integer, OP(F2U)),
    ROUNDINGS("double2ll", "ld", to_integer, OP(F2S)),
    ROUNDINGS("double2ull", "ld", to_integer, OP(F2U)),
    ROUNDINGS("int2float", "fi", from_integer, OP(S2F)),
    ROUNDINGS("uint2float", "fi", from_integer, OP(U2F)),
    ROUNDINGS("ll2float", "fl", from_integer, OP(S2F)),
    ROUNDINGS("ull2float", "fl", from_integer, OP(U2F)),
    ROUNDINGS("ll2double", "dl", from_integer, OP(S2F)),
    ROUNDINGS("ull2double", "dl", from_integer, OP(U2F)),
    {"int2double_rn", "di", from_integer, OP(S2F), NEAREST},
    {"uint2double_rn", "di", from_integer, OP(U2F), NEAREST},
    {"int_as_float", "fi", bits, 0, 0},
    {"uint_as_float", "fi", bits, 0, 0},
    {"float_as_int", "if", bits, 0, 0},
    {"float_as_uint", "if", bits, 0, 0},
    {"longlong_as_double", "dl", bits, 0, 0},
    {"double_as_longlong", "ld", bits, 0, 0},
    {"hiloint2double", "dii", join_halves, 0, 0},
    {"double2loint", "id", half_of, 0, 0},
    {"double2hiint", "id", half_of, 0, 1},

    {"fast_sinf", "ff", instruction, OP(FSIN), 0},
    {"fast_cosf", "ff", instruction, OP(FCOS), 0},
    {"fast_tanf", "ff", fast_tan, 0, 0},
    {"fast_tanhf", "ff", instruction, OP(FTANH), 0},
    {"fast_log2f", "ff", instruction, OP(FLOG2), LILAC_SIMT_FTZ},
    {"fast_logf", "ff", fast_log, 0, 0},
    {"fast_log10f", "ff", fast_log, 0, 10},
    {"fast_expf", "ff", fast_exp, 0, 0},
    {"fast_exp10f", "ff", fast_exp, 0, 10},
    {"fast_powf", "fff", fast_pow, 0, 0},
    {"fast_fdividef", "fff", fast_quotient, 0, 0},
    {"rcp64h", "dd", instruction, OP(FRCP), LILAC_SIMT_APPROXIMATE},
};

const lilac_lower_operation *lilac_lower_find_operation(const char *name) {
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return &operations[i];
        }
    }
    return NULL;
}
