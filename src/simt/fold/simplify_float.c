/* Simplification of float arithmetic: only what gives the same number for every operand.
 *
 *     x + (-0), x - 0, x * 1, x / 1   →   x
 *     x + (-y)                        →   x - y
 *     x / 4                           →   x * 0.25       the reciprocal of a power of two is exact
 *
 * (What the bits of a NaN are is not a number; hardware does not promise them.) */
#include "fold/simplify.h"

/* Is this the constant +-1, +-0 …: a value in every element? */
static bool is_number(const lilac_simt_builder *b, lilac_simt_value value, lilac_simt_type type,
                      double number) {
    lilac_scalar scalar = lilac_simt_scalar_of(type);
    uint64_t bits;
    uint64_t wanted = lilac_scalar_encode(scalar, number, LILAC_ROUND_NEAREST_EVEN, false);
    if (lilac_simt_type_is_packed(type)) {
        wanted |= wanted << 16;
    }
    return constant(b, value, &bits) && bits == wanted;
}

static const instruction *negation(const lilac_simt_builder *b, lilac_simt_value value) {
    return lilac_simt_defined_by(b, value, LILAC_SIMT_OP_FNEG);
}

/* 1 / c when c is a power of two whose reciprocal is a normal number: x / c = x * (1 / c). */
static lilac_simt_value exact_reciprocal(lilac_simt_builder *b, lilac_simt_value value,
                                         lilac_simt_type type) {
    uint64_t bits;
    if (!constant(b, value, &bits)) {
        return 0;
    }
    uint32_t mantissa = type == LILAC_SIMT_F32 ? 23 : 52;
    uint32_t exponent_bits = type == LILAC_SIMT_F32 ? 8 : 11;
    uint64_t largest = low_bits(exponent_bits);
    uint64_t exponent = bits >> mantissa & largest;
    if ((bits & low_bits(mantissa)) != 0 || exponent == 0 || exponent + 2 > largest) {
        return 0;
    }
    uint64_t sign = bits >> (mantissa + exponent_bits) << (mantissa + exponent_bits);
    uint64_t reciprocal = largest - 1 - exponent;
    return lilac_simt_constant(b, type, sign | reciprocal << mantissa);
}

/* Sums and differences. nx, ny: the negations that the operands are; NULL: they are none. */
static lilac_simt_value simplify_float_sum(lilac_simt_builder *b, instruction *like,
                                           lilac_simt_type type, const instruction *nx,
                                           const instruction *ny, bool *again) {
    const lilac_simt_value x = like->operands[0], y = like->operands[1];
    const bool adds = like->code == LILAC_SIMT_OP_FADD;
    if (is_number(b, y, type, adds ? -0.0 : 0.0)) {
        return x;
    }
    if (ny != NULL) { /* x ± -y */
        like->code = adds ? LILAC_SIMT_OP_FSUB : LILAC_SIMT_OP_FADD;
        like->operands[1] = ny->operands[0];
        *again = true;
    } else if (adds && nx != NULL) { /* -x + y */
        like->code = LILAC_SIMT_OP_FSUB;
        like->operands[0] = y;
        like->operands[1] = nx->operands[0];
        *again = true;
    }
    return 0;
}

static lilac_simt_value simplify_float_product(lilac_simt_builder *b, instruction *like,
                                               lilac_simt_type type, const instruction *nx,
                                               const instruction *ny, bool *again) {
    const lilac_simt_value x = like->operands[0], y = like->operands[1];
    if (is_number(b, y, type, 1.0)) {
        return x;
    }
    if (is_number(b, y, type, -1.0)) {
        return lilac_simt_op1(b, LILAC_SIMT_OP_FNEG, type, x);
    }
    if (nx != NULL && ny != NULL) {
        like->operands[0] = nx->operands[0];
        like->operands[1] = ny->operands[0];
        *again = true;
    }
    return 0;
}

static lilac_simt_value simplify_float_quotient(lilac_simt_builder *b, instruction *like,
                                                lilac_simt_type type, bool *again) {
    const lilac_simt_value x = like->operands[0], y = like->operands[1];
    if (is_number(b, y, type, 1.0)) {
        return x;
    }
    const lilac_simt_value reciprocal =
        type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64 ? exact_reciprocal(b, y, type) : 0;
    if (reciprocal != 0) {
        like->code = LILAC_SIMT_OP_FMUL;
        like->flags = 0;
        like->operands[1] = reciprocal;
        *again = true;
    }
    return 0;
}

lilac_simt_value lilac_simt_simplify_float(lilac_simt_builder *b, instruction *like,
                                           lilac_simt_type type, bool *again) {
    const lilac_simt_value x = like->operands[0];
    const instruction *nx = negation(b, x);
    const instruction *ny = like->operand_count > 1 ? negation(b, like->operands[1]) : NULL;
    if ((like->flags & (LILAC_SIMT_FTZ | LILAC_SIMT_SATURATE)) ||
        like->detail != LILAC_ROUND_NEAREST_EVEN) { /* rounded down, 0 + -0 is -0 */
        return 0;
    }
    switch (like->code) {
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
        return simplify_float_sum(b, like, type, nx, ny, again);
    case LILAC_SIMT_OP_FMUL:
        return simplify_float_product(b, like, type, nx, ny, again);
    case LILAC_SIMT_OP_FDIV:
        return simplify_float_quotient(b, like, type, again);
    case LILAC_SIMT_OP_FNEG:
        return nx != NULL ? nx->operands[0] : 0;
    case LILAC_SIMT_OP_FABS:
        if (nx != NULL) {
            like->operands[0] = nx->operands[0];
            *again = true;
        }
        return lilac_simt_defined_by(b, x, LILAC_SIMT_OP_FABS) != NULL ? x : 0;
    default:
        return 0;
    }
}
