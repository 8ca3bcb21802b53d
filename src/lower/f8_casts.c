/* Conversions of 8-bit floats by integer instructions, for devices without conversion instructions
 * (sm_80, sm_86, gfx90a, gfx942). The results equal those of the instructions bit for bit, except
 * for the NaN that an e5m2 NaN widens to.
 *
 * To f16, two at a time, each code in the high byte of its half:
 *
 *   e5m2    s eeeee mm 00000000     is an f16.
 *   e4m3    s eeeemmm 00000000      The magnitude shifted right by one bit, s 0eeeemmm 0000000, is
 *                                   an f16 that is 2⁻⁸ of the value, because the biases are 7 and
 *                                   15. A multiplication by 2⁸ restores the value exactly,
 *                                   subnormal numbers included. The code 1111111 is NaN.
 *
 * From f32, with M mantissa bits and smallest normal exponent E (e5m2: 2, -14; e4m3: 3, -6):
 *
 *   |x| ≥ 2^E    The bits of |x| are rounded to nearest even at bit 23 - M and shifted down; the
 *                difference of the exponent biases is subtracted.
 *   |x| < 2^E    |x| + 2^(E - M + 23) has its last bit at the place of the smallest subnormal
 *                number, so the f32 addition rounds, and its last bits are the code.
 *
 * Codes above the largest finite number become that number. NaN becomes 0x7F. */
#include "numeric_casts.h"

typedef struct format {
    uint32_t mantissa; /* bits */
    int32_t least;     /* exponent of the smallest normal number */
    uint32_t largest;  /* code of the largest finite number */
} format;

static const format e4m3 = {3, -6, 0x7E}, e5m2 = {2, -14, 0x7B};

enum { F32_BIAS = 127, F32_MANTISSA = 23, NAN_CODE = 0x7F };

/* ---- i32 --------------------------------------------------------------------------------- */

static lilac_simt_value word(lilac_lowering *l, uint32_t bits) {
    return lilac_simt_constant(&l->builder, LILAC_SIMT_I32, bits);
}

static lilac_simt_value operate(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a,
                                lilac_simt_value b) {
    return lilac_simt_op2(&l->builder, code, LILAC_SIMT_I32, a, b);
}

static lilac_simt_value with(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a,
                             uint32_t bits) {
    return operate(l, code, a, word(l, bits));
}

static lilac_simt_value bitcast(lilac_lowering *l, lilac_simt_type type, lilac_simt_value a) {
    return lilac_simt_op1(&l->builder, LILAC_SIMT_OP_BITCAST, type, a);
}

/* ---- to f16 ------------------------------------------------------------------------------ */

/* 0x7FFF in each half whose magnitude is 0x7F00: the sum's carry is the half's top bit. */
static lilac_simt_value nan_halves(lilac_lowering *l, lilac_simt_value magnitudes) {
    lilac_simt_value carry = with(l, LILAC_SIMT_OP_ADD, magnitudes, 0x01000100);
    carry = with(l, LILAC_SIMT_OP_AND, carry, 0x80008000);
    return operate(l, LILAC_SIMT_OP_SUB, carry, with(l, LILAC_SIMT_OP_SHR_U, carry, 15));
}

lilac_simt_value lilac_lower_f8_unpack(lilac_lowering *l, lilac_scalar scalar,
                                       lilac_simt_value pair) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value wide = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, pair);
    const lilac_simt_value zero = word(l, 0), selector = word(l, 0x1404);
    const lilac_simt_value selected[3] = {wide, zero, selector};
    lilac_simt_instruction permute = {.code = LILAC_SIMT_OP_PRMT};
    lilac_simt_type type = LILAC_SIMT_I32;
    wide = lilac_simt_build(b, &permute, 3, selected, 1, &type); /* 0, low, 0, high */
    if (scalar == LILAC_F8E5M2) {
        return bitcast(l, LILAC_SIMT_F16X2, wide);
    }
    lilac_simt_value magnitudes = with(l, LILAC_SIMT_OP_AND, wide, 0x7F007F00);
    lilac_simt_value small =
        bitcast(l, LILAC_SIMT_F16X2, with(l, LILAC_SIMT_OP_SHR_U, magnitudes, 1));
    lilac_simt_value scale = lilac_simt_constant(b, LILAC_SIMT_F16X2, 0x5C005C00); /* 256 */
    lilac_simt_value number = lilac_simt_op2(b, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F16X2, small, scale);
    lilac_simt_value bits = bitcast(l, LILAC_SIMT_I32, number);
    bits = operate(l, LILAC_SIMT_OP_OR, bits, nan_halves(l, magnitudes));
    bits = operate(l, LILAC_SIMT_OP_OR, bits, with(l, LILAC_SIMT_OP_AND, wide, 0x80008000));
    return bitcast(l, LILAC_SIMT_F16X2, bits);
}

/* ---- from f32 ---------------------------------------------------------------------------- */

static uint32_t f32_exponent(int32_t exponent) {
    return (uint32_t)(exponent + F32_BIAS) << F32_MANTISSA;
}

/* The code of a magnitude at or above the smallest normal number; larger than any for infinity. */
static lilac_simt_value normal_code(lilac_lowering *l, const format *f,
                                    lilac_simt_value magnitude) {
    const uint32_t drop = F32_MANTISSA - f->mantissa;
    lilac_simt_value even = with(l, LILAC_SIMT_OP_SHR_U, magnitude, drop);
    even = with(l, LILAC_SIMT_OP_AND, even, 1);
    lilac_simt_value sum = with(l, LILAC_SIMT_OP_ADD, magnitude, (UINT32_C(1) << (drop - 1)) - 1);
    sum = operate(l, LILAC_SIMT_OP_ADD, sum, even);
    const uint32_t bias = (uint32_t)(f->least - 1 + F32_BIAS) << f->mantissa;
    return with(l, LILAC_SIMT_OP_SUB, with(l, LILAC_SIMT_OP_SHR_U, sum, drop), bias);
}

static lilac_simt_value subnormal_code(lilac_lowering *l, const format *f,
                                       lilac_simt_value magnitude) {
    const uint32_t unit = f32_exponent(f->least - (int32_t)f->mantissa + F32_MANTISSA);
    lilac_simt_value constant = lilac_simt_constant(&l->builder, LILAC_SIMT_F32, unit);
    lilac_simt_value shifted = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_FADD, LILAC_SIMT_F32,
                                              bitcast(l, LILAC_SIMT_F32, magnitude), constant);
    return with(l, LILAC_SIMT_OP_SUB, bitcast(l, LILAC_SIMT_I32, shifted), unit);
}

lilac_simt_value lilac_lower_f8_round(lilac_lowering *l, lilac_scalar scalar,
                                      lilac_simt_value value) {
    lilac_simt_builder *b = &l->builder;
    const format *f = scalar == LILAC_F8E5M2 ? &e5m2 : &e4m3;
    lilac_simt_value bits = bitcast(l, LILAC_SIMT_I32, value);
    lilac_simt_value magnitude = with(l, LILAC_SIMT_OP_AND, bits, 0x7FFFFFFF);
    lilac_simt_value small =
        lilac_simt_compare_values(b, LILAC_SIMT_ULT, magnitude, word(l, f32_exponent(f->least)));
    lilac_simt_value normal = normal_code(l, f, magnitude);
    lilac_simt_value code = lilac_lower_select(l, small, subnormal_code(l, f, magnitude), normal);
    code = with(l, LILAC_SIMT_OP_MIN_U, code, f->largest);
    lilac_simt_value sign = with(l, LILAC_SIMT_OP_SHR_U, bits, 24);
    sign = with(l, LILAC_SIMT_OP_AND, sign, 0x80);
    code = operate(l, LILAC_SIMT_OP_OR, code, sign);
    lilac_simt_value nan =
        lilac_simt_compare_values(b, LILAC_SIMT_UGT, magnitude, word(l, f32_exponent(128)));
    code = lilac_lower_select(l, nan, word(l, NAN_CODE), code);
    return lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I8, code);
}
