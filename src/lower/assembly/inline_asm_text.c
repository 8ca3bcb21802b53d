/* The text of inline assembly: words, the names that it declares, operands, and instructions as
 * written. These functions build no operations.
 *
 *   .reg .b32 a<2>;                 the names a0 and a1, 32 bits each
 *   cvt.rn.f16x2.f32 $0, a0, $1;    name cvt; kinds rn; types f16x2 and f32; three operands
 *
 * A word after a dot is a type if it names one, and a kind otherwise. Kinds precede types. An
 * operand is a register ($n or a name), registers in braces, an immediate, or a special
 * register. There is one scope for all names: a text that declares a name twice is not
 * translated. */
#include "inline_asm_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- words ------------------------------------------------------------------------------- */

void lilac_asm_skip(lilac_asm_translator *t) {
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

bool lilac_asm_accept(lilac_asm_translator *t, char c) {
    lilac_asm_skip(t);
    if (*t->at != c) {
        return false;
    }
    t->at++;
    return true;
}

static uint32_t word_length(const char *at) {
    return (uint32_t)strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_%");
}

bool lilac_asm_is_word(const char *at, uint32_t length, const char *word) {
    return strlen(word) == length && memcmp(at, word, length) == 0;
}

/* "u32" … as a type; the operation determines the signedness. */
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
        if (lilac_asm_is_word(at, length, types[k].name)) {
            *type = types[k].type;
            *kind = lilac_simt_type_is_float(types[k].type) ? 'f' : at[0];
            return true;
        }
    }
    return false;
}

/* ---- names ------------------------------------------------------------------------------- */

static int32_t find_name(const lilac_asm_translator *t, const char *at, uint32_t length) {
    for (uint32_t k = 0; k < t->name_count; k++) {
        if (t->names[k].length == length && memcmp(t->names[k].name, at, length) == 0) {
            return (int32_t)k;
        }
    }
    return -1;
}

static bool declare(lilac_asm_translator *t, const char *at, uint32_t length, uint32_t bits) {
    if (t->name_count == LILAC_ASM_MOST_NAMES || find_name(t, at, length) >= 0) {
        return false; /* a name of two scopes would need scopes */
    }
    t->names[t->name_count++] = (lilac_asm_variable){at, length, bits, 0};
    return true;
}

bool lilac_asm_read_declaration(lilac_asm_translator *t) {
    lilac_simt_type type;
    char kind;
    if (!lilac_asm_accept(t, '.')) {
        return false;
    }
    uint32_t length = word_length(t->at);
    if (!read_type(t->at, length, &type, &kind)) {
        return false;
    }
    t->at += length;
    do {
        lilac_asm_skip(t);
        const char *name = t->at;
        length = word_length(name);
        t->at += length;
        if (length == 0) {
            return false;
        }
        if (!lilac_asm_accept(t, '<')) {
            if (!declare(t, name, length, lilac_simt_type_bits(type))) {
                return false;
            }
            continue;
        }
        unsigned long count = strtoul(t->at, NULL, 10);
        t->at += strspn(t->at, "0123456789");
        if (!lilac_asm_accept(t, '>') || count > LILAC_ASM_MOST_NAMES) {
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
    } while (lilac_asm_accept(t, ','));
    return lilac_asm_accept(t, ';');
}

/* ---- operands ---------------------------------------------------------------------------- */

static bool read_register(lilac_asm_translator *t, int32_t *number) {
    lilac_asm_skip(t);
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

static bool read_immediate(lilac_asm_translator *t, lilac_asm_operand *o) {
    bool minus = lilac_asm_accept(t, '-');
    lilac_asm_skip(t);
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
        return false; /* decimal fractions and octal numbers are not translated */
    }
    bool octal = t->at[0] == '0' && t->at[1] >= '0' && t->at[1] <= '9';
    t->at = *end == 'U' ? end + 1 : end;
    o->bits = minus ? 0 - o->bits : o->bits;
    return !octal;
}

static bool read_operand(lilac_asm_translator *t, lilac_asm_operand *o) {
    *o = (lilac_asm_operand){0};
    lilac_asm_skip(t);
    if (lilac_asm_accept(t, '{')) {
        do {
            if (o->count == 4 || !read_register(t, &o->registers[o->count++])) {
                return false;
            }
        } while (lilac_asm_accept(t, ','));
        return lilac_asm_accept(t, '}');
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

/* ---- instructions ------------------------------------------------------------------------ */

bool lilac_asm_has_kind(const lilac_asm_instruction *i, const char *kind) {
    for (uint32_t k = 0; k < i->kind_count; k++) {
        if (lilac_asm_is_word(i->kinds[k], i->kind_lengths[k], kind)) {
            return true;
        }
    }
    return false;
}

bool lilac_asm_only_kinds(const lilac_asm_instruction *i, const char *allowed) {
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

bool lilac_asm_read_instruction(lilac_asm_translator *t, lilac_asm_instruction *i) {
    *i = (lilac_asm_instruction){.name = t->at, .name_length = word_length(t->at)};
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
        } else if (i->kind_count == LILAC_ASM_MOST_KINDS || i->type_count > 0) {
            return false;
        } else {
            i->kinds[i->kind_count] = word;
            i->kind_lengths[i->kind_count++] = length;
        }
    }
    do {
        if (i->operand_count == LILAC_ASM_MOST_OPERANDS ||
            !read_operand(t, &i->operands[i->operand_count++])) {
            return false;
        }
    } while (lilac_asm_accept(t, ','));
    return lilac_asm_accept(t, ';') && i->name_length > 0 && i->type_count > 0;
}
