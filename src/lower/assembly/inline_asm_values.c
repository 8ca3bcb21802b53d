/* Registers of inline assembly, their values, and the instructions that copy or convert values: mov
 * and cvt.
 *
 * A register has a width and no type, as in PTX: a use as another type of that width is a
 * bitcast, and a use as a type of another width is not translated. $n are the results and then the
 * operands. Names have no value until an instruction writes them.
 *
 *   mov.b32 {x, y}, a         unpack
 *   mov.b32 a, {x, y}         pack
 *   mov.u32 a, %laneid        the operation that reads the special register
 *   cvt.rn.f16.f32            one conversion, if its only loss is its rounding */
#include "inline_asm_text.h"
#include "numeric_casts.h"

/* ---- registers --------------------------------------------------------------------------- */

lilac_simt_value lilac_asm_get_register(const lilac_asm_translator *t, int32_t number,
                                        uint32_t *bits) {
    const lilac_lower_asm *p = t->piece;
    lilac_simt_value value;
    if (number < 0) {
        *bits = t->names[-1 - number].bits;
        return t->names[-1 - number].value;
    }
    bool result = (uint32_t)number < p->results;
    value = result ? p->outcome[number] : p->values[(uint32_t)number - p->results];
    *bits =
        lilac_simt_type_bits(result ? p->types[number] : lilac_simt_type_of(t->l->kernel, value));
    return value;
}

lilac_simt_value lilac_asm_get(const lilac_asm_translator *t, const lilac_asm_operand *o,
                               lilac_simt_type type) {
    lilac_simt_builder *b = &t->l->builder;
    uint32_t bits = lilac_simt_type_bits(type);
    if (o->immediate) {
        bool fits = o->float_bits == 0 ? !lilac_simt_type_is_float(type)
                                       : o->float_bits == bits && lilac_simt_type_is_float(type);
        return fits ? lilac_simt_constant(b, type, o->bits) : 0;
    }
    if (o->count != 1 || o->special != NULL) {
        return 0;
    }
    uint32_t width;
    lilac_simt_value value = lilac_asm_get_register(t, o->registers[0], &width);
    if (value == 0 || width != bits) {
        return 0;
    }
    lilac_simt_type from = lilac_simt_type_of(t->l->kernel, value);
    return from == type ? value : lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, value);
}

bool lilac_asm_put_register(lilac_asm_translator *t, int32_t number, lilac_simt_value value) {
    uint32_t width = 0;
    if (number >= 0 && (uint32_t)number >= t->piece->results) {
        return false; /* an operand is not written */
    }
    (void)lilac_asm_get_register(t, number, &width);
    if (value == 0 || lilac_simt_type_bits(lilac_simt_type_of(t->l->kernel, value)) != width) {
        return false;
    }
    *(number < 0 ? &t->names[-1 - number].value : &t->piece->outcome[number]) = value;
    return true;
}

bool lilac_asm_put(lilac_asm_translator *t, const lilac_asm_operand *o, lilac_simt_value value) {
    return o->count == 1 && !o->immediate && o->special == NULL &&
           lilac_asm_put_register(t, o->registers[0], value);
}

/* ---- mov and cvt ------------------------------------------------------------------------- */

/* cvt.rn.f16x2.f32 d, high, low */
static bool convert_pair(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_type to = i->types[0], from = i->types[1];
    lilac_simt_type half = to == LILAC_SIMT_F16X2 ? LILAC_SIMT_F16 : LILAC_SIMT_BF16;
    if ((to != LILAC_SIMT_F16X2 && to != LILAC_SIMT_BF16X2) || from != LILAC_SIMT_F32 ||
        !lilac_asm_only_kinds(i, "rn") || i->kind_count != 1) {
        return false;
    }
    lilac_simt_value parts[2] = {lilac_asm_get(t, &i->operands[2], from),
                                 lilac_asm_get(t, &i->operands[1], from)};
    if (parts[0] == 0 || parts[1] == 0) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        parts[k] = lilac_lower_convert(t->l, parts[k], half, LILAC_ROUND_NEAREST_EVEN);
    }
    return lilac_asm_put(t, &i->operands[0], lilac_simt_pack(&t->l->builder, to, 2, parts));
}

/* The source of a conversion. 0: it is not translated. An integer of 8 or 16 bits may be the low
 * part of a wider register. */
static lilac_simt_value conversion_source(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    const lilac_asm_operand *operand = &i->operands[1];
    lilac_simt_type from = i->types[1];
    lilac_simt_value value = 0;
    uint32_t width = 0, bits = lilac_simt_type_bits(from);
    if (i->type_kinds[1] != 'f' && operand->count == 1 && operand->special == NULL) {
        value = lilac_asm_get_register(t, operand->registers[0], &width);
    }
    if (value == 0 || width <= bits || bits > 16) {
        return lilac_asm_get(t, operand, from);
    }
    lilac_simt_type full = width == 16   ? LILAC_SIMT_I16
                           : width == 32 ? LILAC_SIMT_I32
                                         : LILAC_SIMT_I64;
    return lilac_simt_op1(&t->l->builder, LILAC_SIMT_OP_TRUNC, from,
                          lilac_asm_get(t, operand, full));
}

/* Between integers: the sign of the source type selects the extension. */
static bool convert_integer(lilac_asm_translator *t, const lilac_asm_instruction *i,
                            lilac_simt_value value) {
    uint32_t wanted = lilac_simt_type_bits(i->types[0]), bits = lilac_simt_type_bits(i->types[1]);
    if (i->kind_count != 0) {
        return false;
    }
    if (wanted != bits) {
        value = lilac_simt_op1(&t->l->builder,
                               wanted < bits             ? LILAC_SIMT_OP_TRUNC
                               : i->type_kinds[1] == 's' ? LILAC_SIMT_OP_SEXT
                                                         : LILAC_SIMT_OP_ZEXT,
                               i->types[0], value);
    }
    return lilac_asm_put(t, &i->operands[0], value);
}

/* Between an integer and a float: `kind` is the only rounding that the operation has. */
static bool convert_number(lilac_asm_translator *t, const lilac_asm_instruction *i,
                           const char *kind, lilac_simt_opcode code, lilac_simt_value value) {
    lilac_simt_type to = i->types[0];
    return lilac_asm_only_kinds(i, kind) && i->kind_count == 1 && lilac_simt_type_bits(to) >= 16 &&
           lilac_asm_put(t, &i->operands[0], lilac_simt_op1(&t->l->builder, code, to, value));
}

/* Between floats of different widths. A conversion of equal widths rounds to an integral value or
 * changes the format of a half. Neither is translated. */
static bool convert_float(lilac_asm_translator *t, const lilac_asm_instruction *i,
                          lilac_simt_value value) {
    static const struct {
        const char *kind;
        lilac_rounding rounding;
    } roundings[] = {{"rn", LILAC_ROUND_NEAREST_EVEN},
                     {"rz", LILAC_ROUND_ZERO},
                     {"rm", LILAC_ROUND_DOWN},
                     {"rp", LILAC_ROUND_UP}};
    lilac_simt_type to = i->types[0];
    uint32_t wanted = lilac_simt_type_bits(to), bits = lilac_simt_type_bits(i->types[1]);
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++) {
        if (wanted < bits && i->kind_count == 1 && lilac_asm_has_kind(i, roundings[k].kind)) {
            return lilac_asm_put(t, &i->operands[0],
                                 lilac_lower_convert(t->l, value, to, roundings[k].rounding));
        }
    }
    return wanted > bits && i->kind_count == 0 &&
           lilac_asm_put(t, &i->operands[0],
                         lilac_lower_convert(t->l, value, to, LILAC_ROUND_NEAREST_EVEN));
}

/* Translates the conversions of SIMT IR: exact ones, and those that are rounded once as the kind
 * says. */
bool lilac_asm_convert(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_type to = i->types[0], from = i->types[1];
    bool from_float = i->type_kinds[1] == 'f', to_float = i->type_kinds[0] == 'f';
    if (i->operand_count == 3) {
        return convert_pair(t, i);
    }
    bool pairs = (lilac_simt_type_bits(to) == 32 && to_float && to != LILAC_SIMT_F32) ||
                 from == LILAC_SIMT_F16X2 || from == LILAC_SIMT_BF16X2;
    if (i->operand_count != 2 || pairs) {
        return false;
    }
    lilac_simt_value value = conversion_source(t, i);
    if (value == 0) {
        return false;
    }
    if (from_float && to_float) {
        return convert_float(t, i, value);
    }
    if (from_float) {
        return convert_number(
            t, i, "rzi", i->type_kinds[0] == 's' ? LILAC_SIMT_OP_F2S : LILAC_SIMT_OP_F2U, value);
    }
    if (to_float) {
        return convert_number(
            t, i, "rn", i->type_kinds[1] == 's' ? LILAC_SIMT_OP_S2F : LILAC_SIMT_OP_U2F, value);
    }
    return convert_integer(t, i, value);
}

bool lilac_asm_move(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    static const struct {
        const char *name;
        lilac_simt_opcode code;
        uint8_t detail;
        lilac_simt_type type;
    } specials[] = {{"%laneid", LILAC_SIMT_OP_LANE, 0, LILAC_SIMT_I32},
                    {"%tid.x", LILAC_SIMT_OP_THREAD, 0, LILAC_SIMT_I32},
                    {"%globaltimer", LILAC_SIMT_OP_TIMER, 0, LILAC_SIMT_I64},
                    {"%clock64", LILAC_SIMT_OP_TIMER, 1, LILAC_SIMT_I64}};
    lilac_simt_builder *b = &t->l->builder;
    const lilac_asm_operand *d = &i->operands[0], *a = &i->operands[1];
    lilac_simt_type type = i->types[0];
    if (i->kind_count != 0) {
        return false;
    }
    for (size_t k = 0; a->special != NULL && k < sizeof specials / sizeof *specials; k++) {
        if (lilac_asm_is_word(a->special, a->special_length, specials[k].name)) {
            lilac_simt_instruction like = {.code = (uint16_t)specials[k].code,
                                           .detail = specials[k].detail};
            return lilac_asm_put(t, d, lilac_simt_build(b, &like, 0, NULL, 1, &specials[k].type));
        }
    }
    lilac_simt_value parts[4] = {0};
    uint32_t bits = lilac_simt_type_bits(type);
    if (d->count > 1) { /* {x, y} = a */
        lilac_simt_value whole = lilac_asm_get(t, a, type);
        uint32_t each = bits / d->count;
        lilac_simt_type part = each == 8    ? LILAC_SIMT_I8
                               : each == 16 ? LILAC_SIMT_I16
                                            : LILAC_SIMT_I32;
        if (whole == 0 || d->count == 3 || each < 8 || each > 32) {
            return false;
        }
        lilac_simt_unpack(b, part, whole, d->count, parts);
        for (uint32_t k = 0; k < d->count; k++) {
            if (!lilac_asm_put_register(t, d->registers[k], parts[k])) {
                return false;
            }
        }
        return true;
    }
    if (a->count > 1) { /* d = {x, y} */
        for (uint32_t k = 0; k < a->count; k++) {
            uint32_t width;
            parts[k] = lilac_asm_get_register(t, a->registers[k], &width);
            if (parts[k] == 0 || width * a->count != bits || width < 8) {
                return false;
            }
            lilac_simt_type part = width == 8    ? LILAC_SIMT_I8
                                   : width == 16 ? LILAC_SIMT_I16
                                                 : LILAC_SIMT_I32;
            if (lilac_simt_type_of(t->l->kernel, parts[k]) != part) {
                parts[k] = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, part, parts[k]);
            }
        }
        return a->count != 3 && lilac_asm_put(t, d, lilac_simt_pack(b, type, a->count, parts));
    }
    return lilac_asm_put(t, d, lilac_asm_get(t, a, type));
}
