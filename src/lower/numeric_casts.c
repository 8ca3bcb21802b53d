/* Conversions between types.
 *
 *   integers      extension, truncation; ranges keep their constant parts where nothing wraps
 *   floats        rounded once. f64 to a type narrower than f32 is first rounded to odd in f32:
 *                 truncated towards zero, with the lowest bit set if the result is inexact. The
 *                 second rounding then has the information that it needs
 *   8-bit floats  to f16 exactly, two at a time; from f32, rounded to nearest and saturating; by
 *                 integer instructions where the device has no conversions (f8_casts.c)
 *   bits          no instruction, or a move
 */
#include "numeric_casts.h"
#include "coordinates.h"
#include "operations.h"

#include <string.h>

static lilac_simt_value one(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_type type,
                            lilac_simt_value a) {
    return lilac_simt_op1(&l->builder, code, type, a);
}

/* The instruction that converts one element; NONE: several functions of the file select it. */
static const uint16_t instructions[LILAC_TILE_OP_COUNT] = {
#define CAST(code, instruction, meaning) [LILAC_TILE_OP_##code] = LILAC_SIMT_OP_##instruction,
#include <lilac/operations.def>
};

static lilac_simt_opcode instruction_of(const lilac_tile_op *op) {
    return (lilac_simt_opcode)instructions[op->code];
}

/* ---- floats ------------------------------------------------------------------------------ */

static lilac_simt_value convert_once(lilac_lowering *l, lilac_simt_value value,
                                     lilac_simt_type type, lilac_rounding rounding) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_FCVT, .detail = (uint8_t)rounding};
    return lilac_simt_build(&l->builder, &like, 1, &value, 1, &type);
}

/* f64 → f32, rounded to odd. */
static lilac_simt_value to_odd(lilac_lowering *l, lilac_simt_value value) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value cut = convert_once(l, value, LILAC_SIMT_F32, LILAC_ROUND_ZERO);
    lilac_simt_value back = convert_once(l, cut, LILAC_SIMT_F64, LILAC_ROUND_NEAREST_EVEN);
    lilac_simt_value lost = lilac_simt_compare_values(b, LILAC_SIMT_NE, back, value);
    lilac_simt_value bits = one(l, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, cut);
    lilac_simt_value odd = lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, bits,
                                          lilac_simt_constant(b, LILAC_SIMT_I32, 1));
    bits = lilac_lower_select(l, lost, odd, bits);
    return one(l, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_F32, bits);
}

lilac_simt_value lilac_lower_convert(lilac_lowering *l, lilac_simt_value value,
                                     lilac_simt_type type, lilac_rounding rounding) {
    lilac_simt_type from = lilac_simt_type_of(l->kernel, value);
    if (from == type) {
        return value;
    }
    bool halves = (from == LILAC_SIMT_F16 && type == LILAC_SIMT_BF16) ||
                  (from == LILAC_SIMT_BF16 && type == LILAC_SIMT_F16) ||
                  (from == LILAC_SIMT_BF16 && type == LILAC_SIMT_F64);
    if (halves) {
        value = convert_once(l, value, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    } else if (from == LILAC_SIMT_F64 && type == LILAC_SIMT_BF16) {
        value = to_odd(l, value);
    }
    return convert_once(l, value, type, rounding);
}

static bool is_f8(const lilac_tile_type *type) {
    lilac_scalar scalar = lilac_tile_element(type)->scalar;
    return scalar == LILAC_F8E4M3FN || scalar == LILAC_F8E5M2;
}

/* tt and arith name the attribute differently. */
static const char *rounding_name(const lilac_tile_op *op) {
    return lilac_tile_find(&op->attributes, "rounding") != NULL ? "rounding" : "roundingmode";
}

static bool rounding_of(const lilac_tile_op *op, lilac_rounding *rounding) {
    const lilac_tile_attribute *attribute = lilac_tile_find(&op->attributes, rounding_name(op));
    *rounding = LILAC_ROUND_NEAREST_EVEN;
    if (attribute == NULL) {
        return true;
    }
    static const struct {
        const char *name;
        lilac_rounding rounding;
    } names[] = {
        {"rtne", LILAC_ROUND_NEAREST_EVEN}, {"to_nearest_even", LILAC_ROUND_NEAREST_EVEN},
        {"rtz", LILAC_ROUND_ZERO},          {"toward_zero", LILAC_ROUND_ZERO},
        {"downward", LILAC_ROUND_DOWN},     {"upward", LILAC_ROUND_UP},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (attribute->text != NULL && strcmp(attribute->text, names[i].name) == 0) {
            *rounding = names[i].rounding;
            return true;
        }
    }
    return false;
}

static void convert_float(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                          lilac_simt_value *out) {
    lilac_rounding rounding;
    if (!rounding_of(op, &rounding)) {
        (void)lilac_lower_bad_attribute(
            l, rounding_name(op), "rtne, to_nearest_even, rtz, toward_zero, downward or upward");
        return;
    }
    lilac_simt_type type = l->values[op->results[0].id].simt;
    out[0] = lilac_lower_convert(l, in[0], type, rounding);
}

/* Two 8-bit floats to two values of a float type. */
static void widen_pair(lilac_lowering *l, lilac_scalar scalar, lilac_simt_type type,
                       const lilac_simt_value *in, lilac_simt_value *out) {
    lilac_simt_type pair = LILAC_SIMT_F16X2;
    lilac_simt_value packed = lilac_simt_pack(&l->builder, LILAC_SIMT_I16, 2, in);
    lilac_simt_instruction widen = {.code = LILAC_SIMT_OP_F8_UNPACK, .scalar = (uint8_t)scalar};
    lilac_simt_value halves = lilac_arch_has(l->target->arch, LILAC_HAS_F8_CONVERSIONS)
                                  ? lilac_simt_build(&l->builder, &widen, 1, &packed, 1, &pair)
                                  : lilac_lower_f8_unpack(l, scalar, packed);
    lilac_simt_value parts[2];
    lilac_simt_unpack(&l->builder, LILAC_SIMT_F16, halves, 2, parts);
    for (uint32_t i = 0; i < 2; i++) {
        out[i] = lilac_lower_convert(l, parts[i], type, LILAC_ROUND_NEAREST_EVEN);
    }
}

/* Moves a number that rounding to nearest has made larger to the next number towards zero. */
static lilac_simt_value truncate_f8(lilac_lowering *l, lilac_simt_value wide,
                                    lilac_simt_value rounded, lilac_simt_value back) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value size = one(l, LILAC_SIMT_OP_FABS, LILAC_SIMT_F32, wide);
    lilac_simt_value larger = lilac_simt_compare_values(
        b, LILAC_SIMT_GT, one(l, LILAC_SIMT_OP_FABS, LILAC_SIMT_F32, back), size);
    lilac_simt_value less = lilac_simt_op2(b, LILAC_SIMT_OP_SUB, LILAC_SIMT_I8, rounded,
                                           lilac_lower_integer(l, LILAC_SIMT_I8, 1));
    return lilac_lower_select(l, larger, less, rounded);
}

/* Two floats to two 8-bit floats. */
static void narrow_pair(lilac_lowering *l, lilac_scalar scalar, lilac_rounding rounding,
                        const lilac_simt_value *in, lilac_simt_value *out) {
    lilac_simt_value wide[2];
    for (uint32_t i = 0; i < 2; i++) {
        wide[i] = lilac_simt_type_of(l->kernel, in[i]) == LILAC_SIMT_F64
                      ? to_odd(l, in[i])
                      : lilac_lower_convert(l, in[i], LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    }
    if (lilac_arch_has(l->target->arch, LILAC_HAS_F8_CONVERSIONS)) {
        lilac_simt_type word = LILAC_SIMT_I16;
        lilac_simt_instruction narrow = {.code = LILAC_SIMT_OP_F8_PACK, .scalar = (uint8_t)scalar};
        lilac_simt_value packed = lilac_simt_build(&l->builder, &narrow, 2, wide, 1, &word);
        lilac_simt_unpack(&l->builder, LILAC_SIMT_I8, packed, 2, out);
    } else {
        out[0] = lilac_lower_f8_round(l, scalar, wide[0]);
        out[1] = lilac_lower_f8_round(l, scalar, wide[1]);
    }
    if (rounding == LILAC_ROUND_ZERO) {
        lilac_simt_value back[2];
        widen_pair(l, scalar, LILAC_SIMT_F32, out, back);
        for (uint32_t i = 0; i < 2; i++) {
            out[i] = truncate_f8(l, wide[i], out[i], back[i]);
        }
    }
}

/* Converts pairs of registers. */
static bool convert_f8(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    lilac_rounding rounding;
    if (to == NULL || !lilac_lower_align(l, from, to->view, &source)) {
        return false;
    }
    if (!rounding_of(op, &rounding) ||
        (rounding != LILAC_ROUND_NEAREST_EVEN && rounding != LILAC_ROUND_ZERO)) {
        return lilac_lower_bad_attribute(
            l, rounding_name(op),
            "rtne, to_nearest_even, rtz or toward_zero, the roundings to 8-bit floats");
    }
    bool widen = is_f8(from->type), narrow = is_f8(to->type);
    for (uint32_t r = 0; r < to->count; r += 2) {
        lilac_simt_value in[2], out[2];
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t index = r + i < to->count ? r + i : r;
            in[i] = lilac_lower_get(l, from, lilac_lower_index(from, source, index));
        }
        if (widen) { /* one 8-bit float to another: f32 has both */
            widen_pair(l, lilac_tile_element(from->type)->scalar,
                       narrow ? LILAC_SIMT_F32 : to->simt, in, out);
            memcpy(in, out, sizeof in);
        }
        if (narrow) {
            narrow_pair(l, lilac_tile_element(to->type)->scalar, rounding, in, out);
        }
        for (uint32_t i = 0; i < 2 && r + i < to->count; i++) {
            to->base[r + i] = out[i];
        }
    }
    return true;
}

/* ---- integers and floats ----------------------------------------------------------------- */

/* Predicates are extended to 32 bits first. So are integers if the device has no conversions to
 * bf16: an 8- or 16-bit integer is exact in f32. */
static void integer_to_float(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    lilac_simt_opcode code = instruction_of(op);
    bool is_signed = code == LILAC_SIMT_OP_S2F;
    lilac_simt_type type = l->values[op->results[0].id].simt;
    lilac_simt_value value = in[0];
    lilac_simt_type from = lilac_simt_type_of(l->kernel, value);
    if (from == LILAC_SIMT_I1) {
        lilac_simt_value yes = lilac_lower_float(l, type, is_signed ? -1.0 : 1.0);
        out[0] = lilac_lower_select(l, value, yes, lilac_lower_float(l, type, 0.0));
        return;
    }
    if (type != LILAC_SIMT_BF16) {
        out[0] = one(l, code, type, value);
        return;
    }
    if (from == LILAC_SIMT_I8 || from == LILAC_SIMT_I16) {
        value = one(l, code, LILAC_SIMT_F32, value);
    } else if (from == LILAC_SIMT_I32) {
        value = to_odd(l, one(l, code, LILAC_SIMT_F64, value));
    } else { /* 64 bits: in f32, rounded to odd; the PTX printer has a sequence for every device */
        out[0] = one(l, code, type, value);
        return;
    }
    out[0] = lilac_lower_convert(l, value, type, LILAC_ROUND_NEAREST_EVEN);
}

static void float_to_integer(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    lilac_simt_opcode code = instruction_of(op);
    lilac_simt_type type = l->values[op->results[0].id].simt;
    lilac_simt_value value = in[0];
    if (lilac_simt_type_of(l->kernel, value) == LILAC_SIMT_BF16) {
        value = lilac_lower_convert(l, value, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    }
    if (type != LILAC_SIMT_I1) {
        out[0] = one(l, code, type, value);
        return;
    }
    lilac_simt_value number = one(l, code, LILAC_SIMT_I32, value);
    out[0] = lilac_simt_compare_values(&l->builder, LILAC_SIMT_NE, number,
                                       lilac_lower_integer(l, LILAC_SIMT_I32, 0));
}

/* ---- integers and bits ------------------------------------------------------------------- */

static void resize(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                   lilac_simt_value *out) {
    lilac_simt_type type = l->values[op->results[0].id].simt;
    uint32_t from = lilac_simt_type_bits(lilac_simt_type_of(l->kernel, in[0]));
    uint32_t to = lilac_simt_type_bits(type);
    if (from == to) {
        out[0] = in[0];
    } else if (to == 1) {
        lilac_simt_type wide = lilac_simt_type_of(l->kernel, in[0]);
        lilac_simt_value low = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_AND, wide, in[0],
                                              lilac_lower_integer(l, wide, 1));
        out[0] = lilac_simt_compare_values(&l->builder, LILAC_SIMT_NE, low,
                                           lilac_lower_integer(l, wide, 0));
    } else {
        lilac_simt_opcode code = to < from ? LILAC_SIMT_OP_TRUNC : instruction_of(op);
        out[0] = one(l, code, type, in[0]);
    }
}

/* ext(base + offset) = ext(base) + offset when the sum does not wrap (and is not negative, for zero
 * extension). */
static bool extend_parts(lilac_lowering *l, const lilac_tile_op *op,
                         const lilac_lower_value *from) {
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    if (to == NULL || !lilac_lower_align(l, from, to->view, &source)) {
        return false;
    }
    lilac_simt_opcode code = instruction_of(op);
    int64_t *offsets = lilac_arena_array(l->arena, int64_t, to->count);
    lilac_simt_value before = 0, made = 0;
    for (uint32_t r = 0; r < to->count; r++) {
        uint32_t i = lilac_lower_index(from, source, r);
        if (made == 0 || from->base[i] != before) {
            made = one(l, code, to->simt, from->base[i]);
            before = from->base[i];
        }
        to->base[r] = made;
        offsets[r] = from->offsets == NULL ? 0 : from->offsets[i];
    }
    to->offsets = offsets;
    to->exact = true;
    to->low = from->low, to->high = from->high;
    to->offset_low = from->offset_low, to->offset_high = from->offset_high;
    return true;
}

bool lilac_lower_resize(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_simt_type type;
    if (!lilac_lower_type(l, op->results[0].type, &type)) {
        return false;
    }
    bool negative = from->low < 0 || from->offset_low < 0;
    if (from->simt == LILAC_SIMT_I32 && type == LILAC_SIMT_I64 &&
        (from->exact || from->offsets == NULL) &&
        !(instruction_of(op) == LILAC_SIMT_OP_ZEXT && negative)) {
        return extend_parts(l, op, from);
    }
    return lilac_lower_elementwise(l, op, resize);
}

static void reinterpret(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                        lilac_simt_value *out) {
    lilac_simt_type from = lilac_simt_type_of(l->kernel, in[0]);
    lilac_simt_type type = l->values[op->results[0].id].simt;
    out[0] = from == type ? in[0] : one(l, LILAC_SIMT_OP_BITCAST, type, in[0]);
}

/* Pointers to other types and integers of the same width are the same registers. */
bool lilac_lower_bitcast(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    lilac_simt_type type;
    if (!lilac_lower_type(l, op->results[0].type, &type)) {
        return false;
    }
    if (type != from->simt || lilac_tile_element_bits(op->results[0].type) !=
                                  lilac_tile_element_bits(lilac_tile_operand(op, 0)->type)) {
        if (lilac_simt_type_bits(type) != lilac_simt_type_bits(from->simt)) {
            return lilac_lower_unsupported(l, "the operand has %u bits and the result has %u",
                                           lilac_simt_type_bits(from->simt),
                                           lilac_simt_type_bits(type));
        }
        return lilac_lower_elementwise(l, op, reinterpret);
    }
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    if (to == NULL || !lilac_lower_align(l, from, to->view, &source)) {
        return false;
    }
    int64_t *offsets =
        from->offsets != NULL ? lilac_arena_array(l->arena, int64_t, to->count) : NULL;
    for (uint32_t r = 0; r < to->count; r++) {
        uint32_t i = lilac_lower_index(from, source, r);
        to->base[r] = from->base[i];
        if (offsets != NULL) {
            offsets[r] = from->offsets[i];
        }
    }
    to->offsets = offsets;
    to->exact = from->exact;
    to->low = from->low, to->high = from->high;
    to->offset_low = from->offset_low, to->offset_high = from->offset_high;
    return true;
}

/* ---- the operations ---------------------------------------------------------------------- */

static bool has_f8(const lilac_tile_op *op) {
    return is_f8(lilac_tile_operand(op, 0)->type) || is_f8(op->results[0].type);
}

bool lilac_lower_float_cast(lilac_lowering *l, const lilac_tile_op *op) {
    return has_f8(op) ? convert_f8(l, op) : lilac_lower_elementwise(l, op, convert_float);
}

static bool cast_number(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_element element) {
    if (has_f8(op)) {
        return lilac_lower_refuse(l, "unsupported-type",
                                  "'%s' between integers and 8-bit floats cannot be lowered; "
                                  "convert to f16, bf16, f32 or f64 first",
                                  lilac_tile_op_info_get(op->code)->name);
    }
    return lilac_lower_elementwise(l, op, element);
}

bool lilac_lower_integer_to_float(lilac_lowering *l, const lilac_tile_op *op) {
    return cast_number(l, op, integer_to_float);
}

bool lilac_lower_float_to_integer(lilac_lowering *l, const lilac_tile_op *op) {
    return cast_number(l, op, float_to_integer);
}
