/* Translates assembly to SIMT operations if each of its instructions has an equivalent. The
 * simulator then executes it, and the passes optimise it.
 *
 *   {                                     scopes: names are looked up in all of them
 *     .reg .b32 a<2>;                     a0 a1: values that are not defined yet
 *     and.b32  a0, $1, 0x7f007f00;        AND of i32
 *     shl.b32  $0, a0, 7;                 SHL of i32
 *   }
 *
 * An instruction has a name, kinds after dots, and a type. The table maps a name to its
 * operation, the kinds that it allows and its number of operands. If any instruction is not in
 * the table (predicates, memory, branches, kinds that change the result), the whole text remains
 * assembly. The same holds for additions and multiplications that name their rounding: these may
 * not be contracted, and SIMT operations may be. */
#include "inline_asm_text.h"

#include <string.h>

static lilac_simt_value flagged(lilac_asm_translator *t, lilac_simt_opcode code,
                                lilac_simt_type type, uint32_t flags, uint32_t count,
                                const lilac_simt_value *values) {
    for (uint32_t k = 0; k < count; k++) {
        if (values[k] == 0) {
            return 0;
        }
    }
    return lilac_lower_flagged(t->l, code, type, (uint8_t)flags, count, values);
}

/* Names whose operands and result all have the instruction's type: for signed, unsigned and untyped
 * integers, and floats; which kinds they may have; what kinds they must have for floats. */
static const struct {
    const char *name;
    uint8_t operands;
    lilac_simt_opcode s, u, b, f;
    const char *integer_kinds, *float_kinds, *float_needs;
    uint8_t float_flags;
} plain[] = {
    {"add", 2, LILAC_SIMT_OP_ADD, LILAC_SIMT_OP_ADD, 0, LILAC_SIMT_OP_FADD, "", "ftz", "", 0},
    {"sub", 2, LILAC_SIMT_OP_SUB, LILAC_SIMT_OP_SUB, 0, LILAC_SIMT_OP_FSUB, "", "ftz", "", 0},
    {"mul", 2, 0, 0, 0, LILAC_SIMT_OP_FMUL, "", "ftz", "", 0},
    {"fma", 3, 0, 0, 0, LILAC_SIMT_OP_FFMA, "", "rn ftz", "rn", 0},
    {"div", 2, LILAC_SIMT_OP_DIV_S, LILAC_SIMT_OP_DIV_U, 0, 0, "", "", "", 0},
    {"div", 2, 0, 0, 0, LILAC_SIMT_OP_FDIV, "", "rn", "rn", 0},
    {"div", 2, 0, 0, 0, LILAC_SIMT_OP_FDIV, "", "full ftz", "full", LILAC_SIMT_APPROXIMATE},
    {"rem", 2, LILAC_SIMT_OP_REM_S, LILAC_SIMT_OP_REM_U, 0, 0, "", "", "", 0},
    {"min", 2, LILAC_SIMT_OP_MIN_S, LILAC_SIMT_OP_MIN_U, 0, LILAC_SIMT_OP_FMIN, "", "ftz NaN", "",
     0},
    {"max", 2, LILAC_SIMT_OP_MAX_S, LILAC_SIMT_OP_MAX_U, 0, LILAC_SIMT_OP_FMAX, "", "ftz NaN", "",
     0},
    {"and", 2, 0, 0, LILAC_SIMT_OP_AND, 0, "", "", "", 0},
    {"or", 2, 0, 0, LILAC_SIMT_OP_OR, 0, "", "", "", 0},
    {"xor", 2, 0, 0, LILAC_SIMT_OP_XOR, 0, "", "", "", 0},
    {"neg", 1, 0, 0, 0, LILAC_SIMT_OP_FNEG, "", "", "", 0},
    {"abs", 1, 0, 0, 0, LILAC_SIMT_OP_FABS, "", "", "", 0},
    {"sqrt", 1, 0, 0, 0, LILAC_SIMT_OP_FSQRT, "", "rn", "rn", 0},
    {"sqrt", 1, 0, 0, 0, LILAC_SIMT_OP_FSQRT, "", "approx ftz", "approx", LILAC_SIMT_APPROXIMATE},
    {"rcp", 1, 0, 0, 0, LILAC_SIMT_OP_FRCP, "", "rn", "rn", 0},
    {"rcp", 1, 0, 0, 0, LILAC_SIMT_OP_FRCP, "", "approx ftz", "approx", LILAC_SIMT_APPROXIMATE},
    {"rsqrt", 1, 0, 0, 0, LILAC_SIMT_OP_FRSQRT, "", "approx ftz", "approx", 0},
    {"ex2", 1, 0, 0, 0, LILAC_SIMT_OP_FEXP2, "", "approx ftz", "approx", 0},
    {"lg2", 1, 0, 0, 0, LILAC_SIMT_OP_FLOG2, "", "approx ftz", "approx", 0},
    {"sin", 1, 0, 0, 0, LILAC_SIMT_OP_FSIN, "", "approx ftz", "approx", 0},
    {"cos", 1, 0, 0, 0, LILAC_SIMT_OP_FCOS, "", "approx ftz", "approx", 0},
    {"tanh", 1, 0, 0, 0, LILAC_SIMT_OP_FTANH, "", "approx", "approx", 0},
    {"cvt", 1, 0, 0, 0, LILAC_SIMT_OP_FTF32, "", "rna tf32", "tf32", 0},
};

/* Do the floating-point operations of SIMT IR have this type? */
static bool float_type(lilac_simt_opcode code, lilac_simt_type type) {
    switch (code) {
    case LILAC_SIMT_OP_FDIV:
    case LILAC_SIMT_OP_FSQRT:
        return type == LILAC_SIMT_F32 || type == LILAC_SIMT_F64;
    case LILAC_SIMT_OP_FRCP:
    case LILAC_SIMT_OP_FRSQRT:
    case LILAC_SIMT_OP_FEXP2:
    case LILAC_SIMT_OP_FLOG2:
    case LILAC_SIMT_OP_FSIN:
    case LILAC_SIMT_OP_FCOS:
    case LILAC_SIMT_OP_FTANH:
    case LILAC_SIMT_OP_FTF32:
        return type == LILAC_SIMT_F32;
    default:
        return true;
    }
}

static bool translate_plain(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_type type = i->types[0];
    char kind = i->type_kinds[0];
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
        lilac_simt_opcode code = kind == 's'   ? plain[k].s
                                 : kind == 'u' ? plain[k].u
                                 : kind == 'b' ? plain[k].b
                                               : plain[k].f;
        bool is_float = kind == 'f';
        if (code == 0 || !lilac_asm_is_word(i->name, i->name_length, plain[k].name) ||
            i->type_count != 1 || i->operand_count != plain[k].operands + 1u ||
            !lilac_asm_only_kinds(i, is_float ? plain[k].float_kinds : plain[k].integer_kinds) ||
            (is_float &&
             ((plain[k].float_needs[0] != 0 && !lilac_asm_has_kind(i, plain[k].float_needs)) ||
              !float_type(code, type)))) {
            continue;
        }
        uint32_t flags = is_float ? plain[k].float_flags : 0;
        flags |= lilac_asm_has_kind(i, "ftz") ? LILAC_SIMT_FTZ : 0;
        flags |= lilac_asm_has_kind(i, "NaN") ? LILAC_SIMT_PROPAGATE_NAN : 0;
        if ((flags & LILAC_SIMT_FTZ) && type != LILAC_SIMT_F32) {
            return false;
        }
        lilac_simt_value values[3] = {0};
        for (uint32_t n = 0; n < plain[k].operands; n++) {
            values[n] = lilac_asm_get(t, &i->operands[1 + n], type);
        }
        return lilac_asm_put(t, &i->operands[0],
                             flagged(t, code, type, flags, plain[k].operands, values));
    }
    return false;
}

static lilac_simt_type wider(lilac_simt_type type) {
    return type == LILAC_SIMT_I16 ? LILAC_SIMT_I32 : LILAC_SIMT_I64;
}

/* mul.lo mul.hi mul.wide mad.lo */
static bool translate_product(lilac_asm_translator *t, const lilac_asm_instruction *i, bool adds) {
    lilac_simt_type type = i->types[0];
    bool is_signed = i->type_kinds[0] == 's', wide = lilac_asm_has_kind(i, "wide");
    lilac_simt_value values[2] = {lilac_asm_get(t, &i->operands[1], type),
                                  lilac_asm_get(t, &i->operands[2], type)};
    lilac_simt_value product;
    if (i->kind_count != 1 || i->type_kinds[0] == 'f' || values[0] == 0 || values[1] == 0) {
        return false;
    }
    if (wide && type == LILAC_SIMT_I32) {
        product = flagged(t, is_signed ? LILAC_SIMT_OP_MULWIDE_S : LILAC_SIMT_OP_MULWIDE_U,
                          LILAC_SIMT_I64, 0, 2, values);
        type = wider(type);
    } else if (lilac_asm_has_kind(i, "lo")) {
        product = flagged(t, LILAC_SIMT_OP_MUL, type, 0, 2, values);
    } else if (lilac_asm_has_kind(i, "hi") && !adds) {
        product = flagged(t, is_signed ? LILAC_SIMT_OP_MULHI_S : LILAC_SIMT_OP_MULHI_U, type, 0, 2,
                          values);
    } else {
        return false;
    }
    if (adds) {
        lilac_simt_value both[2] = {product, lilac_asm_get(t, &i->operands[3], type)};
        product = flagged(t, LILAC_SIMT_OP_ADD, type, 0, 2, both);
    }
    return lilac_asm_put(t, &i->operands[0], product);
}

/* The shift amount has 32 bits for every type. */
static bool translate_shift(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_type type = i->types[0];
    lilac_simt_value values[2] = {lilac_asm_get(t, &i->operands[1], type),
                                  lilac_asm_get(t, &i->operands[2], LILAC_SIMT_I32)};
    uint64_t amount;
    if (i->kind_count != 0 || values[1] == 0 || lilac_simt_type_bits(type) < 16 ||
        lilac_simt_type_is_float(type)) {
        return false;
    }
    if (lilac_simt_is_constant(t->l->kernel, values[1], &amount)) {
        values[1] = lilac_simt_constant(&t->l->builder, type, amount < 64 ? amount : 64);
    } else if (type == LILAC_SIMT_I64) {
        values[1] = lilac_simt_op1(&t->l->builder, LILAC_SIMT_OP_ZEXT, type, values[1]);
    } else if (type != LILAC_SIMT_I32) {
        return false;
    }
    lilac_simt_opcode code = i->name[2] == 'l'         ? LILAC_SIMT_OP_SHL
                             : i->type_kinds[0] == 's' ? LILAC_SIMT_OP_SHR_S
                                                       : LILAC_SIMT_OP_SHR_U;
    return lilac_asm_put(t, &i->operands[0], flagged(t, code, type, 0, 2, values));
}

static uint32_t apply(uint32_t code, uint32_t a, uint32_t b) {
    return (code == LILAC_SIMT_OP_AND ? a & b : code == LILAC_SIMT_OP_OR ? a | b : a ^ b) & 255;
}

/* Builds (x op y) op z, with any of the values inverted, that has this truth table. 0: there is
 * none. */
static lilac_simt_value two_operations(lilac_simt_builder *b, uint32_t table,
                                       const lilac_simt_value *values) {
    static const lilac_simt_opcode codes[] = {LILAC_SIMT_OP_AND, LILAC_SIMT_OP_OR,
                                              LILAC_SIMT_OP_XOR};
    static const uint32_t columns[] = {0xF0, 0xCC, 0xAA};
    for (uint32_t form = 0; form < 3 * 3 * 3 * 8;
         form++) { /* forms with few inversions come first */
        uint32_t inverted = form / 27, z = form % 3, x = (z + 1) % 3, y = (z + 2) % 3;
        lilac_simt_opcode first = codes[form / 3 % 3], second = codes[form / 9 % 3];
        uint32_t tables[3];
        for (uint32_t k = 0; k < 3; k++) {
            tables[k] = columns[k] ^ (inverted >> k & 1 ? 255 : 0);
        }
        if (apply(second, apply(first, tables[x], tables[y]), tables[z]) != table) {
            continue;
        }
        lilac_simt_value parts[3];
        for (uint32_t k = 0; k < 3; k++) {
            lilac_simt_value ones = lilac_simt_constant(b, LILAC_SIMT_I32, UINT32_MAX);
            parts[k] = inverted >> k & 1
                           ? lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, values[k], ones)
                           : values[k];
        }
        lilac_simt_value inner = lilac_simt_op2(b, first, LILAC_SIMT_I32, parts[x], parts[y]);
        return lilac_simt_op2(b, second, LILAC_SIMT_I32, inner, parts[z]);
    }
    return 0;
}

/* Any function of three bits: two operations if possible, otherwise a disjunction of
 * conjunctions. */
static bool translate_lop3(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_builder *b = &t->l->builder;
    const lilac_asm_operand *table = &i->operands[4];
    lilac_simt_value values[3], ones = lilac_simt_constant(b, LILAC_SIMT_I32, UINT32_MAX);
    for (uint32_t k = 0; k < 3; k++) {
        values[k] = lilac_asm_get(t, &i->operands[1 + k], LILAC_SIMT_I32);
        if (values[k] == 0) {
            return false;
        }
    }
    if (i->kind_count != 0 || !table->immediate || table->bits > 255) {
        return false;
    }
    lilac_simt_value two = two_operations(b, (uint32_t)table->bits, values);
    if (two != 0) {
        return lilac_asm_put(t, &i->operands[0], two);
    }
    lilac_simt_value any = lilac_simt_constant(b, LILAC_SIMT_I32, 0);
    for (uint32_t row = 0; row < 8; row++) { /* a is bit 2 of the row, c bit 0 */
        lilac_simt_value all = ones;
        for (uint32_t k = 0; k < 3 && (table->bits >> row & 1); k++) {
            lilac_simt_value term = values[k];
            if (!(row >> (2 - k) & 1)) {
                term = lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, term, ones);
            }
            all = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, all, term);
        }
        if (table->bits >> row & 1) {
            any = lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, any, all);
        }
    }
    return lilac_asm_put(t, &i->operands[0], any);
}

static bool translate_other(lilac_asm_translator *t, const lilac_asm_instruction *i) {
    lilac_simt_builder *b = &t->l->builder;
    lilac_simt_type type = i->types[0];
    const lilac_asm_operand *o = i->operands;
    if (lilac_asm_is_word(i->name, i->name_length, "mov") && i->operand_count == 2) {
        return lilac_asm_move(t, i);
    }
    if (lilac_asm_is_word(i->name, i->name_length, "mul") && i->operand_count == 3) {
        return translate_product(t, i, false);
    }
    if (lilac_asm_is_word(i->name, i->name_length, "mad") && i->operand_count == 4) {
        return translate_product(t, i, true);
    }
    if ((lilac_asm_is_word(i->name, i->name_length, "shl") ||
         lilac_asm_is_word(i->name, i->name_length, "shr")) &&
        i->operand_count == 3) {
        return translate_shift(t, i);
    }
    if (lilac_asm_is_word(i->name, i->name_length, "lop3") && i->operand_count == 5) {
        return translate_lop3(t, i);
    }
    if (i->kind_count != 0) {
        return false;
    }
    if (lilac_asm_is_word(i->name, i->name_length, "not") && i->operand_count == 2 &&
        !lilac_simt_type_is_float(type)) {
        lilac_simt_value values[2] = {lilac_asm_get(t, &o[1], type),
                                      lilac_simt_constant(b, type, ~0ULL)};
        return lilac_asm_put(t, &o[0], flagged(t, LILAC_SIMT_OP_XOR, type, 0, 2, values));
    }
    if (lilac_asm_is_word(i->name, i->name_length, "prmt") && i->operand_count == 4 &&
        type == LILAC_SIMT_I32) {
        lilac_simt_value values[3] = {lilac_asm_get(t, &o[1], type), lilac_asm_get(t, &o[2], type),
                                      lilac_asm_get(t, &o[3], type)};
        return lilac_asm_put(t, &o[0], flagged(t, LILAC_SIMT_OP_PRMT, type, 0, 3, values));
    }
    if ((lilac_asm_is_word(i->name, i->name_length, "popc") ||
         lilac_asm_is_word(i->name, i->name_length, "clz")) &&
        i->operand_count == 2 && !lilac_simt_type_is_float(type)) {
        lilac_simt_value value = lilac_asm_get(t, &o[1], type);
        return lilac_asm_put(t, &o[0],
                             flagged(t, i->name[0] == 'p' ? LILAC_SIMT_OP_POPC : LILAC_SIMT_OP_CLZ,
                                     LILAC_SIMT_I32, 0, 1, &value));
    }
    const bool magnitude = lilac_asm_is_word(i->name, i->name_length, "abs");
    if ((magnitude || lilac_asm_is_word(i->name, i->name_length, "brev")) &&
        i->operand_count == 2 && (type == LILAC_SIMT_I32 || type == LILAC_SIMT_I64)) {
        lilac_simt_value value = lilac_asm_get(t, &o[1], type);
        return lilac_asm_put(
            t, &o[0],
            flagged(t, magnitude ? LILAC_SIMT_OP_ABS : LILAC_SIMT_OP_BREV, type, 0, 1, &value));
    }
    if (lilac_asm_is_word(i->name, i->name_length, "selp") && i->operand_count == 4 &&
        type != LILAC_SIMT_I1) {
        lilac_simt_value values[3] = {lilac_asm_get(t, &o[3], LILAC_SIMT_I1),
                                      lilac_asm_get(t, &o[1], type), lilac_asm_get(t, &o[2], type)};
        return lilac_asm_put(t, &o[0], flagged(t, LILAC_SIMT_OP_SELECT, type, 0, 3, values));
    }
    return false;
}

static bool translate(lilac_asm_translator *t) {
    for (lilac_asm_skip(t); *t->at != 0; lilac_asm_skip(t)) {
        lilac_asm_instruction i;
        if (lilac_asm_accept(t, '{') || lilac_asm_accept(t, '}') || lilac_asm_accept(t, ';')) {
            continue;
        }
        if (strncmp(t->at, ".reg", 4) == 0) {
            t->at += 4;
            lilac_asm_skip(t);
            if (!lilac_asm_read_declaration(t)) {
                return false;
            }
            continue;
        }
        if (!lilac_asm_read_instruction(t, &i)) {
            return false;
        }
        bool converts = lilac_asm_is_word(i.name, i.name_length, "cvt") && i.type_count == 2;
        if (converts ? !lilac_asm_convert(t, &i)
                     : i.type_count != 1 || (!translate_plain(t, &i) && !translate_other(t, &i))) {
            return false;
        }
    }
    for (uint32_t k = 0; k < t->piece->results; k++) {
        if (t->piece->outcome[k] == 0) {
            return false;
        }
    }
    return true;
}

bool lilac_lower_translate_asm(lilac_lowering *l, lilac_lower_asm *piece) {
    lilac_asm_translator t = {.l = l, .piece = piece, .at = piece->text};
    memset(piece->outcome, 0, sizeof piece->outcome);
    return translate(&t);
}
