/* Assembly whose instructions all have an operation of their own in SIMT IR becomes those: the
 * simulator runs it then, and the passes see through it.
 *
 *   {                                     scopes: names are looked up in all of them
 *     .reg .b32 a<2>;                     a0 a1: values that are not given yet
 *     and.b32  a0, $1, 0x7f007f00;        AND of i32
 *     shl.b32  $0, a0, 7;                 SHL of i32
 *   }
 *
 * An instruction is its name, kinds behind dots, and a type: the table says which operation a name
 * is, which kinds it takes and how many operands. Anything else (predicates, memory, branches,
 * kinds that change what is computed) makes the whole piece stay assembly. So do additions and
 * multiplications that name their rounding: they may not be contracted, and operations here are. */
#include "inline_asm.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 128, MOST_OPERANDS = 8, MOST_KINDS = 6 };

typedef struct variable {
    const char *name;
    uint32_t length;
    uint32_t bits;
    lilac_simt_value value; /* 0: not given yet */
} variable;

typedef struct translator {
    lilac_lowering *l;
    lilac_lower_asm *piece;
    const char *at;
    variable names[MOST_NAMES];
    uint32_t name_count;
} translator;

/* An operand as written. */
typedef struct operand {
    bool immediate;
    uint64_t bits;        /* of an immediate: an integer's, or a float's */
    uint32_t float_bits;  /* 32 or 64: the immediate is 0f… or 0d… */
    uint32_t count;       /* registers: one, or those in braces */
    int32_t registers[4]; /* $n as n, names as -1 - index */
    const char *special;  /* "%laneid" … */
    uint32_t special_length;
} operand;

/* ---- words ------------------------------------------------------------------------------- */

static void skip(translator *t) {
    for (;;) {
        t->at += strspn(t->at, " \t\r\n");
        if (t->at[0] == '/' && t->at[1] == '/') {
            t->at += strcspn(t->at, "\n");
        } else if (t->at[0] == '/' && t->at[1] == '*') {
            const char *end = strstr(t->at + 2, "*/");
            t->at = end != NULL ? end + 2 : t->at + strlen(t->at);
        } else {
            return;
        }
    }
}

static bool accept(translator *t, char c) {
    skip(t);
    if (*t->at != c) {
        return false;
    }
    t->at++;
    return true;
}

static uint32_t word_length(const char *at) {
    return (uint32_t)strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_%");
}

static bool is_word(const char *at, uint32_t length, const char *word) {
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

/* "u32" … as a type; signedness is the operation's business. */
static bool read_type(const char *at, uint32_t length, lilac_simt_type *type, char *kind) {
    static const struct {
        const char *name;
        lilac_simt_type type;
    } types[] = {
        {"b8", LILAC_SIMT_I8},   {"u8", LILAC_SIMT_I8},       {"s8", LILAC_SIMT_I8},
        {"b16", LILAC_SIMT_I16}, {"u16", LILAC_SIMT_I16},     {"s16", LILAC_SIMT_I16},
        {"b32", LILAC_SIMT_I32}, {"u32", LILAC_SIMT_I32},     {"s32", LILAC_SIMT_I32},
        {"b64", LILAC_SIMT_I64}, {"u64", LILAC_SIMT_I64},     {"s64", LILAC_SIMT_I64},
        {"f16", LILAC_SIMT_F16}, {"bf16", LILAC_SIMT_BF16},   {"f32", LILAC_SIMT_F32},
        {"f64", LILAC_SIMT_F64}, {"f16x2", LILAC_SIMT_F16X2}, {"bf16x2", LILAC_SIMT_BF16X2},
        {"pred", LILAC_SIMT_I1}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        if (is_word(at, length, types[k].name)) {
            *type = types[k].type;
            *kind = lilac_simt_type_is_float(types[k].type) ? 'f' : at[0];
            return true;
        }
    }
    return false;
}

/* ---- names ------------------------------------------------------------------------------- */

static int32_t find_name(const translator *t, const char *at, uint32_t length) {
    for (uint32_t k = 0; k < t->name_count; k++) {
        if (t->names[k].length == length && memcmp(t->names[k].name, at, length) == 0) {
            return (int32_t)k;
        }
    }
    return -1;
}

static bool declare(translator *t, const char *at, uint32_t length, uint32_t bits) {
    if (t->name_count == MOST_NAMES || find_name(t, at, length) >= 0) {
        return false; /* a name of two scopes would need scopes */
    }
    t->names[t->name_count++] = (variable){at, length, bits, 0};
    return true;
}

/* .reg .b32 a, b<4>; */
static bool read_declaration(translator *t) {
    lilac_simt_type type;
    char kind;
    if (!accept(t, '.')) {
        return false;
    }
    uint32_t length = word_length(t->at);
    if (!read_type(t->at, length, &type, &kind)) {
        return false;
    }
    t->at += length;
    do {
        skip(t);
        const char *name = t->at;
        length = word_length(name);
        t->at += length;
        if (length == 0) {
            return false;
        }
        if (!accept(t, '<')) {
            if (!declare(t, name, length, lilac_simt_type_bits(type))) {
                return false;
            }
            continue;
        }
        unsigned long count = strtoul(t->at, NULL, 10);
        t->at += strspn(t->at, "0123456789");
        if (!accept(t, '>') || count > MOST_NAMES) {
            return false;
        }
        for (unsigned long k = 0; k < count; k++) {
            lilac_text text = {0};
            lilac_text_printf(&text, "%.*s%lu", (int)length, name, k);
            lilac_name whole = lilac_intern(t->l->context, lilac_text_get(&text), text.length);
            lilac_text_clear(&text);
            if (!declare(t, whole, (uint32_t)strlen(whole), lilac_simt_type_bits(type))) {
                return false;
            }
        }
    } while (accept(t, ','));
    return accept(t, ';');
}

/* ---- operands ---------------------------------------------------------------------------- */

static bool read_register(translator *t, int32_t *number) {
    skip(t);
    if (*t->at == '$') {
        t->at++;
        size_t digits = strspn(t->at, "0123456789");
        unsigned long value = strtoul(t->at, NULL, 10);
        t->at += digits;
        *number = (int32_t)value;
        return digits > 0 && digits < 4 && value < t->piece->results + t->piece->operands;
    }
    uint32_t length = word_length(t->at);
    int32_t index = length > 0 ? find_name(t, t->at, length) : -1;
    t->at += length;
    *number = -1 - index;
    return index >= 0;
}

static bool read_immediate(translator *t, operand *o) {
    bool minus = accept(t, '-');
    skip(t);
    o->immediate = true;
    if (t->at[0] == '0' &&
        (t->at[1] == 'f' || t->at[1] == 'F' || t->at[1] == 'd' || t->at[1] == 'D')) {
        bool wide = t->at[1] == 'd' || t->at[1] == 'D';
        size_t digits = strspn(t->at + 2, "0123456789abcdefABCDEF");
        o->bits = strtoull(t->at + 2, NULL, 16);
        o->float_bits = wide ? 64 : 32;
        t->at += 2 + digits;
        return !minus && digits == (wide ? 16u : 8u);
    }
    char *end;
    o->bits =
        strtoull(t->at, &end, t->at[0] == '0' && (t->at[1] == 'x' || t->at[1] == 'X') ? 16 : 10);
    if (end == t->at || *end == '.' || *end == 'e') {
        return false; /* decimal fractions and octal numbers stay PTX's business */
    }
    bool octal = t->at[0] == '0' && t->at[1] >= '0' && t->at[1] <= '9';
    t->at = *end == 'U' ? end + 1 : end;
    o->bits = minus ? 0 - o->bits : o->bits;
    return !octal;
}

static bool read_operand(translator *t, operand *o) {
    *o = (operand){0};
    skip(t);
    if (accept(t, '{')) {
        do {
            if (o->count == 4 || !read_register(t, &o->registers[o->count++])) {
                return false;
            }
        } while (accept(t, ','));
        return accept(t, '}');
    }
    char c = *t->at;
    if (c == '-' || (c >= '0' && c <= '9')) {
        return read_immediate(t, o);
    }
    uint32_t length = word_length(t->at);
    if (c == '%' && find_name(t, t->at, length) < 0) {
        o->special = t->at;
        t->at += length;
        if (*t->at == '.') {
            t->at += 1 + word_length(t->at + 1);
        }
        o->special_length = (uint32_t)(t->at - o->special);
        return true;
    }
    o->count = 1;
    return read_register(t, &o->registers[0]);
}

static lilac_simt_value get_register(const translator *t, int32_t number, uint32_t *bits) {
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

/* The operand as a value of this type; 0 when it is none: not given, or of another width. */
static lilac_simt_value get(const translator *t, const operand *o, lilac_simt_type type) {
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
    lilac_simt_value value = get_register(t, o->registers[0], &width);
    if (value == 0 || width != bits) {
        return 0;
    }
    lilac_simt_type from = lilac_simt_type_of(t->l->kernel, value);
    return from == type ? value : lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, type, value);
}

static bool put_register(translator *t, int32_t number, lilac_simt_value value) {
    uint32_t width = 0;
    if (number >= 0 && (uint32_t)number >= t->piece->results) {
        return false; /* an operand is not written */
    }
    (void)get_register(t, number, &width);
    if (value == 0 || lilac_simt_type_bits(lilac_simt_type_of(t->l->kernel, value)) != width) {
        return false;
    }
    *(number < 0 ? &t->names[-1 - number].value : &t->piece->outcome[number]) = value;
    return true;
}

static bool put(translator *t, const operand *o, lilac_simt_value value) {
    return o->count == 1 && !o->immediate && o->special == NULL &&
           put_register(t, o->registers[0], value);
}

/* ---- instructions ------------------------------------------------------------------------ */

typedef struct instruction {
    const char *name;
    uint32_t name_length;
    const char *kinds[MOST_KINDS];
    uint32_t kind_lengths[MOST_KINDS], kind_count; /* but types */
    lilac_simt_type types[2];
    char type_kinds[2]; /* b u s f */
    uint32_t type_count;
    operand operands[MOST_OPERANDS];
    uint32_t operand_count;
} instruction;

static bool has_kind(const instruction *i, const char *kind) {
    for (uint32_t k = 0; k < i->kind_count; k++) {
        if (is_word(i->kinds[k], i->kind_lengths[k], kind)) {
            return true;
        }
    }
    return false;
}

/* Are there no kinds but those in the list, a word each between spaces? */
static bool only_kinds(const instruction *i, const char *allowed) {
    for (uint32_t k = 0; k < i->kind_count; k++) {
        bool found = false;
        for (const char *at = allowed; *at != 0;) {
            uint32_t length = (uint32_t)strcspn(at, " ");
            found |= length == i->kind_lengths[k] && memcmp(at, i->kinds[k], length) == 0;
            at += length + (at[length] == ' ');
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static lilac_simt_value flagged(translator *t, lilac_simt_opcode code, lilac_simt_type type,
                                uint32_t flags, uint32_t count, const lilac_simt_value *values) {
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
        return type == LILAC_SIMT_F32;
    default:
        return true;
    }
}

static bool translate_plain(translator *t, const instruction *i) {
    lilac_simt_type type = i->types[0];
    char kind = i->type_kinds[0];
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++) {
        lilac_simt_opcode code = kind == 's'   ? plain[k].s
                                 : kind == 'u' ? plain[k].u
                                 : kind == 'b' ? plain[k].b
                                               : plain[k].f;
        bool is_float = kind == 'f';
        if (code == 0 || !is_word(i->name, i->name_length, plain[k].name) || i->type_count != 1 ||
            i->operand_count != plain[k].operands + 1u ||
            !only_kinds(i, is_float ? plain[k].float_kinds : plain[k].integer_kinds) ||
            (is_float && ((plain[k].float_needs[0] != 0 && !has_kind(i, plain[k].float_needs)) ||
                          !float_type(code, type)))) {
            continue;
        }
        uint32_t flags = is_float ? plain[k].float_flags : 0;
        flags |= has_kind(i, "ftz") ? LILAC_SIMT_FTZ : 0;
        flags |= has_kind(i, "NaN") ? LILAC_SIMT_PROPAGATE_NAN : 0;
        if ((flags & LILAC_SIMT_FTZ) && type != LILAC_SIMT_F32) {
            return false;
        }
        lilac_simt_value values[3] = {0};
        for (uint32_t n = 0; n < plain[k].operands; n++) {
            values[n] = get(t, &i->operands[1 + n], type);
        }
        return put(t, &i->operands[0], flagged(t, code, type, flags, plain[k].operands, values));
    }
    return false;
}

static lilac_simt_type wider(lilac_simt_type type) {
    return type == LILAC_SIMT_I16 ? LILAC_SIMT_I32 : LILAC_SIMT_I64;
}

/* mul.lo mul.hi mul.wide mad.lo */
static bool translate_product(translator *t, const instruction *i, bool adds) {
    lilac_simt_type type = i->types[0];
    bool is_signed = i->type_kinds[0] == 's', wide = has_kind(i, "wide");
    lilac_simt_value values[2] = {get(t, &i->operands[1], type), get(t, &i->operands[2], type)};
    lilac_simt_value product;
    if (i->kind_count != 1 || i->type_kinds[0] == 'f' || values[0] == 0 || values[1] == 0) {
        return false;
    }
    if (wide && type == LILAC_SIMT_I32) {
        product = flagged(t, is_signed ? LILAC_SIMT_OP_MULWIDE_S : LILAC_SIMT_OP_MULWIDE_U,
                          LILAC_SIMT_I64, 0, 2, values);
        type = wider(type);
    } else if (has_kind(i, "lo")) {
        product = flagged(t, LILAC_SIMT_OP_MUL, type, 0, 2, values);
    } else if (has_kind(i, "hi") && !adds) {
        product = flagged(t, is_signed ? LILAC_SIMT_OP_MULHI_S : LILAC_SIMT_OP_MULHI_U, type, 0, 2,
                          values);
    } else {
        return false;
    }
    if (adds) {
        lilac_simt_value both[2] = {product, get(t, &i->operands[3], type)};
        product = flagged(t, LILAC_SIMT_OP_ADD, type, 0, 2, both);
    }
    return put(t, &i->operands[0], product);
}

/* The amount is 32 bits whatever is shifted. */
static bool translate_shift(translator *t, const instruction *i) {
    lilac_simt_type type = i->types[0];
    lilac_simt_value values[2] = {get(t, &i->operands[1], type),
                                  get(t, &i->operands[2], LILAC_SIMT_I32)};
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
    return put(t, &i->operands[0], flagged(t, code, type, 0, 2, values));
}

static uint32_t apply(uint32_t code, uint32_t a, uint32_t b) {
    return (code == LILAC_SIMT_OP_AND ? a & b : code == LILAC_SIMT_OP_OR ? a | b : a ^ b) & 255;
}

/* (x op y) op z, each perhaps inverted, that is the function with this table; 0 when none is. */
static lilac_simt_value two_operations(lilac_simt_builder *b, uint32_t table,
                                       const lilac_simt_value *values) {
    static const lilac_simt_opcode codes[] = {LILAC_SIMT_OP_AND, LILAC_SIMT_OP_OR,
                                              LILAC_SIMT_OP_XOR};
    static const uint32_t columns[] = {0xF0, 0xCC, 0xAA};
    for (uint32_t form = 0; form < 3 * 3 * 3 * 8; form++) { /* few inversions first */
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

/* Any function of three bits: two operations, or else the or of its cases, each an and. */
static bool translate_lop3(translator *t, const instruction *i) {
    lilac_simt_builder *b = &t->l->builder;
    const operand *table = &i->operands[4];
    lilac_simt_value values[3], ones = lilac_simt_constant(b, LILAC_SIMT_I32, UINT32_MAX);
    for (uint32_t k = 0; k < 3; k++) {
        values[k] = get(t, &i->operands[1 + k], LILAC_SIMT_I32);
        if (values[k] == 0) {
            return false;
        }
    }
    if (i->kind_count != 0 || !table->immediate || table->bits > 255) {
        return false;
    }
    lilac_simt_value two = two_operations(b, (uint32_t)table->bits, values);
    if (two != 0) {
        return put(t, &i->operands[0], two);
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
    return put(t, &i->operands[0], any);
}

/* From one type to another: the cases that lose nothing but what the rounding says. */
static bool translate_convert(translator *t, const instruction *i) {
    static const struct {
        const char *kind;
        lilac_rounding rounding;
    } roundings[] = {{"rn", LILAC_ROUND_NEAREST_EVEN},
                     {"rz", LILAC_ROUND_ZERO},
                     {"rm", LILAC_ROUND_DOWN},
                     {"rp", LILAC_ROUND_UP}};
    lilac_simt_builder *b = &t->l->builder;
    lilac_simt_type to = i->types[0], from = i->types[1];
    bool from_float = i->type_kinds[1] == 'f', to_float = i->type_kinds[0] == 'f';
    lilac_simt_value value = 0;
    if (i->operand_count == 3) { /* cvt.rn.f16x2.f32 d, high, low */
        lilac_simt_type half = to == LILAC_SIMT_F16X2 ? LILAC_SIMT_F16 : LILAC_SIMT_BF16;
        if ((to != LILAC_SIMT_F16X2 && to != LILAC_SIMT_BF16X2) || from != LILAC_SIMT_F32 ||
            !only_kinds(i, "rn") || i->kind_count != 1) {
            return false;
        }
        lilac_simt_value parts[2] = {get(t, &i->operands[2], from), get(t, &i->operands[1], from)};
        if (parts[0] == 0 || parts[1] == 0) {
            return false;
        }
        for (uint32_t k = 0; k < 2; k++) {
            parts[k] = lilac_lower_convert(t->l, parts[k], half, LILAC_ROUND_NEAREST_EVEN);
        }
        return put(t, &i->operands[0], lilac_simt_pack(b, to, 2, parts));
    }
    bool pairs = lilac_simt_type_bits(to) == 32 && to_float && to != LILAC_SIMT_F32;
    pairs |= from == LILAC_SIMT_F16X2 || from == LILAC_SIMT_BF16X2;
    if (i->operand_count != 2 || pairs) {
        return false;
    }
    /* A narrow source is the low part of its register. */
    uint32_t width = 0, bits = lilac_simt_type_bits(from);
    if (!from_float && i->operands[1].count == 1 && !i->operands[1].special) {
        value = get_register(t, i->operands[1].registers[0], &width);
    }
    if (value != 0 && width > bits && bits <= 16) {
        lilac_simt_type whole = width == 16   ? LILAC_SIMT_I16
                                : width == 32 ? LILAC_SIMT_I32
                                              : LILAC_SIMT_I64;
        value = lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, from, get(t, &i->operands[1], whole));
    } else {
        value = get(t, &i->operands[1], from);
    }
    if (value == 0) {
        return false;
    }
    uint32_t wanted = lilac_simt_type_bits(to);
    if (!from_float && !to_float) {
        if (i->kind_count != 0) {
            return false;
        }
        /* a narrow result fills its register by its own sign */
        if (wanted != bits) {
            value = lilac_simt_op1(b,
                                   wanted < bits             ? LILAC_SIMT_OP_TRUNC
                                   : i->type_kinds[1] == 's' ? LILAC_SIMT_OP_SEXT
                                                             : LILAC_SIMT_OP_ZEXT,
                                   to, value);
        }
        return put(t, &i->operands[0], value);
    }
    if (!from_float) {
        return only_kinds(i, "rn") && i->kind_count == 1 && lilac_simt_type_bits(to) >= 16 &&
               put(t, &i->operands[0],
                   lilac_simt_op1(b,
                                  i->type_kinds[1] == 's' ? LILAC_SIMT_OP_S2F : LILAC_SIMT_OP_U2F,
                                  to, value));
    }
    if (!to_float) {
        return only_kinds(i, "rzi") && i->kind_count == 1 && wanted >= 16 &&
               put(t, &i->operands[0],
                   lilac_simt_op1(b,
                                  i->type_kinds[0] == 's' ? LILAC_SIMT_OP_F2S : LILAC_SIMT_OP_F2U,
                                  to, value));
    }
    for (size_t k = 0; k < sizeof roundings / sizeof *roundings; k++) {
        if (wanted < bits && i->kind_count == 1 && has_kind(i, roundings[k].kind)) {
            return put(t, &i->operands[0],
                       lilac_lower_convert(t->l, value, to, roundings[k].rounding));
        }
    }
    bool same_bits = bits == wanted; /* rounds to integral values, or between halves */
    return wanted > bits && i->kind_count == 0 && !same_bits &&
           put(t, &i->operands[0], lilac_lower_convert(t->l, value, to, LILAC_ROUND_NEAREST_EVEN));
}

static bool translate_move(translator *t, const instruction *i) {
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
    const operand *d = &i->operands[0], *a = &i->operands[1];
    lilac_simt_type type = i->types[0];
    if (i->kind_count != 0) {
        return false;
    }
    for (size_t k = 0; a->special != NULL && k < sizeof specials / sizeof *specials; k++) {
        if (is_word(a->special, a->special_length, specials[k].name)) {
            lilac_simt_instruction like = {.code = (uint16_t)specials[k].code,
                                           .detail = specials[k].detail};
            return put(t, d, lilac_simt_build(b, &like, 0, NULL, 1, &specials[k].type));
        }
    }
    lilac_simt_value parts[4] = {0};
    uint32_t bits = lilac_simt_type_bits(type);
    if (d->count > 1) { /* {x, y} = a */
        lilac_simt_value whole = get(t, a, type);
        uint32_t each = bits / d->count;
        lilac_simt_type part = each == 8    ? LILAC_SIMT_I8
                               : each == 16 ? LILAC_SIMT_I16
                                            : LILAC_SIMT_I32;
        if (whole == 0 || d->count == 3 || each < 8 || each > 32) {
            return false;
        }
        lilac_simt_unpack(b, part, whole, d->count, parts);
        for (uint32_t k = 0; k < d->count; k++) {
            if (!put_register(t, d->registers[k], parts[k])) {
                return false;
            }
        }
        return true;
    }
    if (a->count > 1) { /* d = {x, y} */
        for (uint32_t k = 0; k < a->count; k++) {
            uint32_t width;
            parts[k] = get_register(t, a->registers[k], &width);
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
        return a->count != 3 && put(t, d, lilac_simt_pack(b, type, a->count, parts));
    }
    return put(t, d, get(t, a, type));
}

static bool translate_other(translator *t, const instruction *i) {
    lilac_simt_builder *b = &t->l->builder;
    lilac_simt_type type = i->types[0];
    const operand *o = i->operands;
    if (is_word(i->name, i->name_length, "mov") && i->operand_count == 2) {
        return translate_move(t, i);
    }
    if (is_word(i->name, i->name_length, "mul") && i->operand_count == 3) {
        return translate_product(t, i, false);
    }
    if (is_word(i->name, i->name_length, "mad") && i->operand_count == 4) {
        return translate_product(t, i, true);
    }
    if ((is_word(i->name, i->name_length, "shl") || is_word(i->name, i->name_length, "shr")) &&
        i->operand_count == 3) {
        return translate_shift(t, i);
    }
    if (is_word(i->name, i->name_length, "lop3") && i->operand_count == 5) {
        return translate_lop3(t, i);
    }
    if (i->kind_count != 0) {
        return false;
    }
    if (is_word(i->name, i->name_length, "not") && i->operand_count == 2 &&
        !lilac_simt_type_is_float(type)) {
        lilac_simt_value values[2] = {get(t, &o[1], type), lilac_simt_constant(b, type, ~0ULL)};
        return put(t, &o[0], flagged(t, LILAC_SIMT_OP_XOR, type, 0, 2, values));
    }
    if (is_word(i->name, i->name_length, "prmt") && i->operand_count == 4 &&
        type == LILAC_SIMT_I32) {
        lilac_simt_value values[3] = {get(t, &o[1], type), get(t, &o[2], type),
                                      get(t, &o[3], type)};
        return put(t, &o[0], flagged(t, LILAC_SIMT_OP_PRMT, type, 0, 3, values));
    }
    if ((is_word(i->name, i->name_length, "popc") || is_word(i->name, i->name_length, "clz")) &&
        i->operand_count == 2 && !lilac_simt_type_is_float(type)) {
        lilac_simt_value value = get(t, &o[1], type);
        return put(t, &o[0],
                   flagged(t, i->name[0] == 'p' ? LILAC_SIMT_OP_POPC : LILAC_SIMT_OP_CLZ,
                           LILAC_SIMT_I32, 0, 1, &value));
    }
    if (is_word(i->name, i->name_length, "selp") && i->operand_count == 4 &&
        type != LILAC_SIMT_I1) {
        lilac_simt_value values[3] = {get(t, &o[3], LILAC_SIMT_I1), get(t, &o[1], type),
                                      get(t, &o[2], type)};
        return put(t, &o[0], flagged(t, LILAC_SIMT_OP_SELECT, type, 0, 3, values));
    }
    return false;
}

/* name[.kind …].type[.type] operands; */
static bool read_instruction(translator *t, instruction *i) {
    *i = (instruction){.name = t->at, .name_length = word_length(t->at)};
    t->at += i->name_length;
    while (*t->at == '.') {
        const char *word = ++t->at;
        uint32_t length = word_length(word);
        lilac_simt_type type;
        char kind;
        t->at += length;
        if (length == 0) {
            return false;
        }
        if (read_type(word, length, &type, &kind)) {
            if (i->type_count == 2) {
                return false;
            }
            i->types[i->type_count] = type;
            i->type_kinds[i->type_count++] = kind;
        } else if (i->kind_count == MOST_KINDS || i->type_count > 0) {
            return false;
        } else {
            i->kinds[i->kind_count] = word;
            i->kind_lengths[i->kind_count++] = length;
        }
    }
    do {
        if (i->operand_count == MOST_OPERANDS ||
            !read_operand(t, &i->operands[i->operand_count++])) {
            return false;
        }
    } while (accept(t, ','));
    return accept(t, ';') && i->name_length > 0 && i->type_count > 0;
}

static bool translate(translator *t) {
    for (skip(t); *t->at != 0; skip(t)) {
        instruction i;
        if (accept(t, '{') || accept(t, '}') || accept(t, ';')) {
            continue;
        }
        if (strncmp(t->at, ".reg", 4) == 0) {
            t->at += 4;
            skip(t);
            if (!read_declaration(t)) {
                return false;
            }
            continue;
        }
        if (!read_instruction(t, &i)) {
            return false;
        }
        bool converts = is_word(i.name, i.name_length, "cvt") && i.type_count == 2;
        if (converts ? !translate_convert(t, &i)
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
    translator t = {.l = l, .piece = piece, .at = piece->text};
    memset(piece->outcome, 0, sizeof piece->outcome);
    return translate(&t);
}
