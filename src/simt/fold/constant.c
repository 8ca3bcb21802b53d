/* Operations on constants, computed exactly.
 *
 * Integers wrap at their width. Floats are computed in double and rounded once: for f16, bf16 and
 * f32 the double result is either exact or so much finer that rounding it again gives the correctly
 * rounded answer (53 >= 2 * 24 + 2 bits), and f64 is the host's own. What the hardware may answer
 * in more than one way is left to it: NaN results, approximate functions, flushed subnormals, a
 * division by zero. Arithmetic in a directed rounding is not folded either. */
#include "internal.h"

#include <math.h>

typedef lilac_simt_instruction instruction; /* shorter signatures below */

/* ---- integers --------------------------------------------------------------------------- */

static uint64_t high_product(uint64_t a, uint64_t b) {
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32);
    uint64_t other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

uint64_t lilac_simt_high_unsigned(uint32_t width, uint64_t a, uint64_t b) {
    return width == 64 ? high_product(a, b) : a * b >> width;
}

static uint64_t high_signed(uint32_t width, int64_t a, int64_t b) {
    if (width < 64) {
        return (uint64_t)(a * b) >> width;
    }
    uint64_t high = high_product((uint64_t)a, (uint64_t)b);
    return high - (a < 0 ? (uint64_t)b : 0) - (b < 0 ? (uint64_t)a : 0);
}

static uint64_t leading_zeros(uint32_t width, uint64_t a) {
    return a == 0 ? width : (uint64_t)__builtin_clzll(a) - (64 - width);
}

static uint64_t reversed_bits(uint32_t width, uint64_t a) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < width; i++) {
        result |= (a >> i & 1) << (width - 1 - i);
    }
    return result;
}

static uint64_t arithmetic_shift(int64_t value, uint64_t by) {
    uint64_t bits = (uint64_t)value;
    by = by > 63 ? 63 : by;
    return value >= 0 ? bits >> by : ~(~bits >> by);
}

static uint64_t permute_bytes(uint64_t a, uint64_t b, uint64_t selector) {
    uint64_t bytes = (a & UINT32_MAX) | b << 32;
    uint64_t result = 0;
    for (uint32_t k = 0; k < 4; k++) {
        uint64_t nibble = selector >> (4 * k) & 15;
        uint64_t byte = bytes >> (8 * (nibble & 7)) & 255;
        if (nibble & 8) { /* the byte's sign, eight times */
            byte = byte & 128 ? 255 : 0;
        }
        result |= byte << (8 * k);
    }
    return result;
}

/* A division by zero, or one whose quotient does not fit. */
static bool has_no_quotient(lilac_simt_opcode code, uint32_t width, uint64_t a, uint64_t b,
                            int64_t sb) {
    const bool is_signed = code == LILAC_SIMT_OP_DIV_S || code == LILAC_SIMT_OP_REM_S;
    return lilac_simt_has_trait(code, LILAC_SIMT_DIVIDES) &&
           (b == 0 || (is_signed && sb == -1 && a == (uint64_t)1 << (width - 1)));
}

static bool evaluate_integer(const instruction *like, lilac_simt_type from, const uint64_t *bits,
                             uint64_t *result) {
    const uint32_t width = lilac_simt_type_bits(from);
    const uint64_t a = bits[0];
    const uint64_t b = like->operand_count > 1 ? bits[1] : 0;
    const uint64_t c = like->operand_count > 2 ? bits[2] : 0;
    const int64_t sa = lilac_simt_signed(from, a);
    const int64_t sb = lilac_simt_signed(from, b);
    const lilac_simt_opcode code = (lilac_simt_opcode)like->code;
    if (has_no_quotient(code, width, a, b, sb)) {
        return false;
    }
    switch (code) {
#define INTEGER(opcode, value, possible)                                                           \
    case LILAC_SIMT_OP_##opcode:                                                                   \
        *result = (value);                                                                         \
        return true;
#define FLOAT(opcode, value)
#include "arithmetic.def"
#undef INTEGER
#undef FLOAT
    default:
        return false;
    }
}

/* ---- floats ----------------------------------------------------------------------------- */

/* The smaller number; NaN for two zeros with different signs, of which either may be the answer. */
static double minimum(double a, double b) {
    return a == b && signbit(a) != signbit(b) ? NAN : isnan(b) ? NAN : a < b ? a : b;
}

static bool float_operation(const instruction *like, lilac_scalar scalar, const uint64_t *bits,
                            uint64_t *result) {
    const double a = lilac_scalar_decode(scalar, bits[0]);
    const double b = like->operand_count > 1 ? lilac_scalar_decode(scalar, bits[1]) : 0;
    double r = NAN;
    if (lilac_simt_op_rounds((lilac_simt_opcode)like->code) &&
        like->detail != LILAC_ROUND_NEAREST_EVEN) {
        return false;
    }
    if (like->code == LILAC_SIMT_OP_FFMA) {
        *result = lilac_scalar_fma(scalar, bits[0], bits[1], bits[2]);
        return !isnan(lilac_scalar_decode(scalar, *result));
    }
    switch (like->code) {
#define INTEGER(opcode, value, possible)
#define FLOAT(opcode, value)                                                                       \
    case LILAC_SIMT_OP_##opcode:                                                                   \
        r = (value);                                                                               \
        break;
#include "arithmetic.def"
#undef INTEGER
#undef FLOAT
    default:
        return false;
    }
    *result = lilac_scalar_encode(scalar, r, LILAC_ROUND_NEAREST_EVEN, false);
    return !isnan(a) && !isnan(r);
}

static bool evaluate_float(const instruction *like, lilac_simt_type type, const uint64_t *bits,
                           uint64_t *result) {
    lilac_scalar scalar = lilac_simt_scalar_of(type);
    if (!lilac_simt_type_is_packed(type)) {
        return float_operation(like, scalar, bits, result);
    }
    uint64_t halves[2];
    for (uint32_t half = 0; half < 2; half++) {
        uint64_t operands[3] = {0};
        for (uint32_t k = 0; k < like->operand_count && k < 3; k++) {
            operands[k] = bits[k] >> (16 * half) & 0xFFFF;
        }
        if (!float_operation(like, scalar, operands, &halves[half])) {
            return false;
        }
    }
    *result = halves[0] | halves[1] << 16;
    return true;
}

/* What a NaN becomes as an integer. */
static uint64_t integer_of_nan(lilac_simt_type from, uint32_t width) {
    return width > 1 && (from == LILAC_SIMT_F64 || width == 64) ? (uint64_t)1 << (width - 1) : 0;
}

/* The width to which a float is converted for a result of this one. */
static uint32_t converted_width(uint32_t width) {
    return width == 8 ? 16 : width;
}

static uint64_t float_to_signed(double value, uint32_t width) {
    double limit = ldexp(1.0, (int)width - 1);
    if (value >= limit) {
        return low_bits(width - 1);
    }
    return value < -limit ? (uint64_t)1 << (width - 1) : (uint64_t)(int64_t)value;
}

static uint64_t float_to_unsigned(double value, uint32_t width) {
    if (value <= 0) {
        return 0;
    }
    return value >= ldexp(1.0, (int)width) ? low_bits(width) : (uint64_t)value;
}

static bool convert(const instruction *like, lilac_simt_type from, const uint64_t *bits,
                    lilac_simt_type type, uint64_t *result) {
    uint32_t width = lilac_simt_type_bits(type);
    lilac_scalar f8 = (lilac_scalar)like->scalar;
    switch (like->code) {
    case LILAC_SIMT_OP_FCVT: {
        double value = lilac_scalar_decode(lilac_simt_scalar_of(from), bits[0]);
        *result = lilac_scalar_encode(lilac_simt_scalar_of(type), value,
                                      (lilac_rounding)like->detail, false);
        return !isnan(value) && !lilac_simt_type_is_packed(type);
    }
    case LILAC_SIMT_OP_S2F: {
        int64_t value = lilac_simt_signed(from, bits[0]);
        uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
        *result = lilac_scalar_encode_integer(lilac_simt_scalar_of(type), magnitude, value < 0,
                                              (lilac_rounding)like->detail);
        return true;
    }
    case LILAC_SIMT_OP_U2F:
        *result = lilac_scalar_encode_integer(lilac_simt_scalar_of(type), bits[0], false,
                                              (lilac_rounding)like->detail);
        return true;
    case LILAC_SIMT_OP_F2S:
    case LILAC_SIMT_OP_F2U: {
        const double value = lilac_scalar_decode(lilac_simt_scalar_of(from), bits[0]);
        const uint32_t converted = converted_width(width);
        *result = low_bits(width) &
                  (isnan(value)                      ? integer_of_nan(from, converted)
                   : like->code == LILAC_SIMT_OP_F2S ? float_to_signed(value, converted)
                                                     : float_to_unsigned(value, converted));
        return true;
    }
    case LILAC_SIMT_OP_F8_UNPACK: {
        double low = lilac_scalar_decode(f8, bits[0] & 255);
        double high = lilac_scalar_decode(f8, bits[0] >> 8 & 255);
        *result = lilac_scalar_encode(LILAC_F16, low, LILAC_ROUND_NEAREST_EVEN, false) |
                  lilac_scalar_encode(LILAC_F16, high, LILAC_ROUND_NEAREST_EVEN, false) << 16;
        return !isnan(low) && !isnan(high);
    }
    case LILAC_SIMT_OP_F8_PACK: {
        double low = lilac_scalar_decode(LILAC_F32, bits[0]);
        double high = lilac_scalar_decode(LILAC_F32, bits[1]);
        *result = lilac_scalar_encode(f8, low, LILAC_ROUND_NEAREST_EVEN, true) |
                  lilac_scalar_encode(f8, high, LILAC_ROUND_NEAREST_EVEN, true) << 8;
        return !isnan(low) && !isnan(high);
    }
    default:
        return false;
    }
}

/* ---- comparisons ------------------------------------------------------------------------ */

static bool compare_floats(lilac_simt_compare kind, double a, double b) {
    bool unordered = isnan(a) || isnan(b);
    switch (kind) {
    case LILAC_SIMT_EQ:
        return !unordered && a == b;
    case LILAC_SIMT_NE:
        return !unordered && a != b;
    case LILAC_SIMT_LT:
        return !unordered && a < b;
    case LILAC_SIMT_LE:
        return !unordered && a <= b;
    case LILAC_SIMT_GT:
        return !unordered && a > b;
    case LILAC_SIMT_GE:
        return !unordered && a >= b;
    case LILAC_SIMT_ORD:
        return !unordered;
    case LILAC_SIMT_UNO:
        return unordered;
    default:
        return unordered || !compare_floats(lilac_simt_compare_inverse(kind, true), a, b);
    }
}

static bool compare_integers(lilac_simt_compare kind, uint64_t ua, uint64_t ub, int64_t sa,
                             int64_t sb) {
    switch (kind) {
    case LILAC_SIMT_EQ:
        return ua == ub;
    case LILAC_SIMT_NE:
        return ua != ub;
    case LILAC_SIMT_LT:
        return sa < sb;
    case LILAC_SIMT_LE:
        return sa <= sb;
    case LILAC_SIMT_GT:
        return sa > sb;
    case LILAC_SIMT_GE:
        return sa >= sb;
    case LILAC_SIMT_ULT:
        return ua < ub;
    case LILAC_SIMT_ULE:
        return ua <= ub;
    case LILAC_SIMT_UGT:
        return ua > ub;
    default:
        return ua >= ub;
    }
}

/* ---- all -------------------------------------------------------------------------------- */

bool lilac_simt_evaluate(const instruction *like, const lilac_simt_type *types,
                         const uint64_t *bits, lilac_simt_type type, uint64_t *result) {
    lilac_simt_type from = types[0];
    bool done;
    if (like->flags &
        (LILAC_SIMT_APPROXIMATE | LILAC_SIMT_FTZ | LILAC_SIMT_SATURATE | LILAC_SIMT_VOLATILE)) {
        return false;
    }
    switch (like->code) {
    case LILAC_SIMT_OP_CMP:
        if (lilac_simt_type_is_packed(from) ||
            !lilac_simt_compare_fits((lilac_simt_compare)like->detail,
                                     lilac_simt_type_is_float(from))) {
            return false;
        }
        if (lilac_simt_type_is_float(from)) {
            lilac_scalar scalar = lilac_simt_scalar_of(from);
            *result = compare_floats((lilac_simt_compare)like->detail,
                                     lilac_scalar_decode(scalar, bits[0]),
                                     lilac_scalar_decode(scalar, bits[1]));
        } else {
            *result = compare_integers((lilac_simt_compare)like->detail, bits[0], bits[1],
                                       lilac_simt_signed(from, bits[0]),
                                       lilac_simt_signed(from, bits[1]));
        }
        return true;
    case LILAC_SIMT_OP_SELECT:
        *result = bits[bits[0] ? 1 : 2];
        return true;
    case LILAC_SIMT_OP_BITCAST:
        *result = bits[0];
        return true;
    case LILAC_SIMT_OP_PACK: {
        uint32_t width = lilac_simt_type_bits(from);
        *result = 0;
        for (uint32_t k = 0; k < like->operand_count; k++) {
            *result |= bits[k] << (width * k);
        }
        return true;
    }
    default:
        if (convert(like, from, bits, type, result)) {
            return true;
        }
        done = lilac_simt_type_is_float(from) ? evaluate_float(like, from, bits, result)
                                              : evaluate_integer(like, from, bits, result);
        *result &= lilac_simt_type_mask(type);
        return done;
    }
}
