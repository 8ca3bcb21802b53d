/* The emitter's text and the registers of values.
 *
 * Names are rendered once, when a value is defined, and copied at each use. */
#include "emit.h"

#include <stdio.h>

/* ---- text ------------------------------------------------------------------------------- */

void lilac_ptx_reserve(lilac_ptx_buffer *buffer, size_t more) {
    size_t need = buffer->length + more;
    if (need <= buffer->capacity) {
        return;
    }
    size_t capacity = buffer->capacity ? buffer->capacity * 2 : 4096;
    while (capacity < need) {
        capacity *= 2;
    }
    buffer->bytes = lilac_heap_grow(buffer->bytes, capacity);
    buffer->capacity = capacity;
}

void lilac_ptx_put_unsigned(lilac_ptx_buffer *buffer, uint64_t value) {
    char digits[20];
    size_t count = 0;
    do {
        digits[sizeof digits - ++count] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    put_bytes(buffer, digits + sizeof digits - count, count);
}

void lilac_ptx_put_signed(lilac_ptx_buffer *buffer, int64_t value) {
    if (value < 0) {
        put_char(buffer, '-');
    }
    lilac_ptx_put_unsigned(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_hexadecimal(lilac_ptx_buffer *buffer, uint64_t value, uint32_t digits) {
    while (digits--) {
        put_char(buffer, "0123456789ABCDEF"[value >> (4 * digits) & 15]);
    }
}

void lilac_ptx_append(lilac_ptx_buffer *buffer, const char *string) {
    size_t length = strlen(string);
    lilac_ptx_reserve(buffer, length);
    put_bytes(buffer, string, length);
}

void lilac_ptx_append_unsigned(lilac_ptx_buffer *buffer, uint64_t value) {
    lilac_ptx_reserve(buffer, 20);
    lilac_ptx_put_unsigned(buffer, value);
}

/* Room for a name of at most `size` bytes, written through a buffer that stands in it. */
static lilac_ptx_buffer name_begin(lilac_ptx_emitter *e, size_t size) {
    if (e->names_left < size) {
        size_t block = size > 4096 ? size : 4096;
        e->names = lilac_arena_alloc(e->arena, block);
        e->names_left = block;
    }
    return (lilac_ptx_buffer){e->names, 0, size};
}

static lilac_ptx_piece name_end(lilac_ptx_emitter *e, const lilac_ptx_buffer *name) {
    e->names += name->length;
    e->names_left -= name->length;
    return (lilac_ptx_piece){name->bytes, (uint32_t)name->length};
}

/* ---- instructions ----------------------------------------------------------------------- */

void lilac_ptx_guard(lilac_ptx_emitter *e, lilac_ptx_piece predicate, bool negate) {
    lilac_ptx_begin(e, negate ? "@!" : "@");
    put_piece(&e->code, predicate);
    put_char(&e->code, ' ');
    e->guarded = true;
}

void lilac_ptx_predicate(lilac_ptx_emitter *e, lilac_simt_value predicate) {
    if (predicate != e->branched) {
        lilac_ptx_guard(e, lilac_ptx_register(e, predicate), false);
    }
}

void lilac_ptx_finish(lilac_ptx_emitter *e, uint32_t count, const lilac_ptx_piece *operands) {
    for (uint32_t k = 0; k < count; k++) {
        put_bytes(&e->code, k ? ", " : " ", k ? 2 : 1);
        put_piece(&e->code, operands[k]);
    }
    put_bytes(&e->code, ";\n", 2);
}

void lilac_ptx_line1(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece a) {
    lilac_ptx_begin(e, mnemonic);
    lilac_ptx_finish(e, 1, &a);
}

void lilac_ptx_line2(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a) {
    lilac_ptx_begin(e, mnemonic);
    lilac_ptx_finish(e, 2, (lilac_ptx_piece[]){d, a});
}

void lilac_ptx_line3(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a, lilac_ptx_piece b) {
    lilac_ptx_begin(e, mnemonic);
    lilac_ptx_finish(e, 3, (lilac_ptx_piece[]){d, a, b});
}

void lilac_ptx_line4(lilac_ptx_emitter *e, const char *mnemonic, lilac_ptx_piece d,
                     lilac_ptx_piece a, lilac_ptx_piece b, lilac_ptx_piece c) {
    lilac_ptx_begin(e, mnemonic);
    lilac_ptx_finish(e, 4, (lilac_ptx_piece[]){d, a, b, c});
}

lilac_ptx_piece lilac_ptx_tuple(lilac_ptx_emitter *e, uint32_t count,
                                const lilac_ptx_piece *operands) {
    size_t size = 2;
    for (uint32_t k = 0; k < count; k++) {
        size += operands[k].length + 2;
    }
    lilac_ptx_buffer text = name_begin(e, size);
    put_char(&text, '{');
    for (uint32_t k = 0; k < count; k++) {
        put_bytes(&text, ", ", k ? 2 : 0);
        put_piece(&text, operands[k]);
    }
    put_char(&text, '}');
    return name_end(e, &text);
}

lilac_ptx_piece lilac_ptx_concatenate(lilac_ptx_emitter *e, uint32_t count,
                                      const lilac_ptx_piece *parts) {
    size_t size = 0;
    for (uint32_t k = 0; k < count; k++) {
        size += parts[k].length;
    }
    lilac_ptx_buffer text = name_begin(e, size);
    for (uint32_t k = 0; k < count; k++) {
        put_piece(&text, parts[k]);
    }
    return name_end(e, &text);
}

static void put_label(lilac_ptx_emitter *e, const char *kind, uint32_t number) {
    put_string(&e->code, "$L_");
    put_string(&e->code, kind);
    put_char(&e->code, '_');
    lilac_ptx_put_unsigned(&e->code, number);
}

void lilac_ptx_branch(lilac_ptx_emitter *e, const char *kind, uint32_t number) {
    lilac_ptx_begin(e, "bra.uni ");
    put_label(e, kind, number);
    put_bytes(&e->code, ";\n", 2);
}

void lilac_ptx_diverging_branch(lilac_ptx_emitter *e, const char *kind, uint32_t number) {
    lilac_ptx_begin(e, "bra ");
    put_label(e, kind, number);
    put_bytes(&e->code, ";\n", 2);
}

void lilac_ptx_label(lilac_ptx_emitter *e, const char *kind, uint32_t number) {
    lilac_ptx_reserve(&e->code, LILAC_PTX_LINE);
    put_label(e, kind, number);
    put_bytes(&e->code, ":\n", 2);
}

void lilac_ptx_refuse(lilac_ptx_emitter *e, const lilac_simt_instruction *instruction,
                      const char *format, ...) {
    e->ok = false;
    e->guarded = false;
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(e->module->context, (lilac_position){0, 0},
                 instruction ? instruction->location
                 : e->kernel ? e->kernel->location
                             : 0,
                 "unsupported-on-target", format, arguments);
    va_end(arguments);
}

/* ---- values ----------------------------------------------------------------------------- */

enum { P, RS, H, R, F, RD, FD };

static const struct {
    const char *text;
    lilac_ptx_class class;
} prefixes[LILAC_PTX_PREFIX_COUNT] = {
    [P] = {"%p", LILAC_PTX_PREDICATE}, [RS] = {"%rs", LILAC_PTX_BITS16},
    [H] = {"%h", LILAC_PTX_BITS16},    [R] = {"%r", LILAC_PTX_BITS32},
    [F] = {"%f", LILAC_PTX_BITS32},    [RD] = {"%rd", LILAC_PTX_BITS64},
    [FD] = {"%fd", LILAC_PTX_BITS64},
};

static const uint8_t prefix_of[LILAC_SIMT_TYPE_COUNT] = {
    [LILAC_SIMT_I1] = P,   [LILAC_SIMT_I8] = RS,   [LILAC_SIMT_I16] = RS,  [LILAC_SIMT_I32] = R,
    [LILAC_SIMT_I64] = RD, [LILAC_SIMT_F16] = H,   [LILAC_SIMT_BF16] = H,  [LILAC_SIMT_F32] = F,
    [LILAC_SIMT_F64] = FD, [LILAC_SIMT_F16X2] = R, [LILAC_SIMT_BF16X2] = R};

lilac_ptx_class lilac_ptx_class_of(lilac_simt_type type) {
    return prefixes[prefix_of[type]].class;
}

const char *lilac_ptx_mov(lilac_simt_type type) {
    static const char *const movs[LILAC_PTX_CLASS_COUNT] = {"mov.pred", "mov.b16", "mov.b32",
                                                            "mov.b64"};
    return movs[lilac_ptx_class_of(type)];
}

static lilac_ptx_piece name_register(lilac_ptx_emitter *e, lilac_simt_value value) {
    enum { LONGEST = 24 };
    const lilac_simt_value_info *info = &e->kernel->values[value];
    uint8_t prefix = prefix_of[info->type];
    lilac_ptx_buffer name = name_begin(e, 16 + LONGEST);
    put_string(&name, prefixes[prefix].text);
    lilac_ptx_put_unsigned(&name, value);
    if (!info->name || !info->name[0]) {
        if (e->numbered[prefix] <= value) {
            e->numbered[prefix] = value + 1;
        }
        return name_end(e, &name);
    }
    put_char(&name, '_');
    for (uint32_t k = 0; info->name[k] && k < LONGEST; k++) {
        char c = info->name[k];
        bool legal = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        put_char(&name, legal ? c : '_');
    }
    lilac_ptx_piece piece = name_end(e, &name);
    lilac_ptx_buffer *named = &e->named[prefix];
    lilac_ptx_reserve(named, piece.length + 8);
    if (named->length && e->line_fill[prefix] > 80) {
        put_string(named, ",\n\t\t");
        e->line_fill[prefix] = 0;
    } else if (named->length) {
        put_string(named, ", ");
    }
    put_piece(named, piece);
    e->line_fill[prefix] += piece.length + 2;
    return piece;
}

lilac_ptx_piece lilac_ptx_define(lilac_ptx_emitter *e, lilac_simt_value value) {
    lilac_ptx_place *place = &e->places[value];
    if (place->home == value && place->text.bytes != NULL) {
        return place->text;
    }
    /* the register of an accumulator that a loop carries */
    if (e->homes != NULL && e->homes[value] != value &&
        e->places[e->homes[value]].text.bytes != NULL && !e->places[e->homes[value]].constant) {
        *place = e->places[e->homes[value]];
        return place->text;
    }
    place->text = name_register(e, value);
    place->home = value;
    return place->text;
}

void lilac_ptx_constant(lilac_ptx_emitter *e, lilac_simt_value value, uint64_t bits) {
    lilac_simt_type type = type_of(e, value);
    lilac_ptx_buffer text = name_begin(e, 24);
    switch (type) {
    case LILAC_SIMT_I1:
        bits &= 1;
        put_char(&text, bits ? '1' : '0');
        break;
    case LILAC_SIMT_I8:
        bits &= 0xFF;
        lilac_ptx_put_signed(&text, (int8_t)bits);
        break;
    case LILAC_SIMT_I16:
        bits &= 0xFFFF;
        lilac_ptx_put_signed(&text, (int16_t)bits);
        break;
    case LILAC_SIMT_I32:
        bits &= 0xFFFFFFFF;
        lilac_ptx_put_signed(&text, (int32_t)bits);
        break;
    case LILAC_SIMT_I64:
        if (bits == (uint64_t)1 << 63) { /* its magnitude is no signed number */
            put_string(&text, "0x8000000000000000");
        } else {
            lilac_ptx_put_signed(&text, (int64_t)bits);
        }
        break;
    case LILAC_SIMT_F16:
    case LILAC_SIMT_BF16:
        bits &= 0xFFFF;
        put_string(&text, "0x");
        put_hexadecimal(&text, bits, 4);
        break;
    case LILAC_SIMT_F32:
        bits &= 0xFFFFFFFF;
        put_string(&text, "0f");
        put_hexadecimal(&text, bits, 8);
        break;
    case LILAC_SIMT_F64:
        put_string(&text, "0d");
        put_hexadecimal(&text, bits, 16);
        break;
    default:
        bits &= 0xFFFFFFFF;
        put_string(&text, "0x");
        put_hexadecimal(&text, bits, 8);
        break;
    }
    e->places[value] = (lilac_ptx_place){
        .text = name_end(e, &text), .home = value, .constant = true, .bits = bits};
}

void lilac_ptx_rename(lilac_ptx_emitter *e, lilac_simt_value value, lilac_simt_value of) {
    if (e->places[of].constant) {
        lilac_ptx_constant(e, value, e->places[of].bits);
    } else {
        e->places[value] = e->places[of];
    }
}

lilac_ptx_piece lilac_ptx_register(lilac_ptx_emitter *e, lilac_simt_value value) {
    lilac_ptx_place *place = &e->places[value];
    if (!place->constant) {
        return place->text;
    }
    if (!place->in_register.bytes) {
        place->in_register = name_register(e, value);
        if (e->forced_count == e->forced_capacity) {
            e->forced_capacity = e->forced_capacity ? e->forced_capacity * 2 : 16;
            e->forced = lilac_heap_grow(e->forced, e->forced_capacity * sizeof *e->forced);
        }
        e->forced[e->forced_count++] = value;
    }
    return place->in_register;
}

lilac_ptx_piece lilac_ptx_temporary(lilac_ptx_emitter *e, lilac_ptx_class class) {
    static const char *const texts[LILAC_PTX_CLASS_COUNT] = {"%tp", "%ts", "%tr", "%td"};
    lilac_ptx_buffer name = name_begin(e, 16);
    put_string(&name, texts[class]);
    lilac_ptx_put_unsigned(&name, e->temporaries[class]++);
    return name_end(e, &name);
}

lilac_ptx_piece lilac_ptx_decimal(lilac_ptx_emitter *e, int64_t value) {
    lilac_ptx_buffer text = name_begin(e, 24);
    lilac_ptx_put_signed(&text, value);
    return name_end(e, &text);
}

lilac_ptx_piece lilac_ptx_extended(lilac_ptx_emitter *e, lilac_simt_value value, bool is_signed) {
    if (type_of(e, value) != LILAC_SIMT_I8) {
        return lilac_ptx_operand(e, value);
    }
    const lilac_ptx_place *place = &e->places[value];
    if (place->constant) {
        return lilac_ptx_decimal(e, is_signed ? (int8_t)place->bits : (int64_t)place->bits);
    }
    lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS16);
    lilac_ptx_line2(e, is_signed ? "cvt.s16.s8" : "cvt.u16.u8", wide, place->text);
    return wide;
}

void lilac_ptx_widen(lilac_ptx_emitter *e, lilac_simt_type type, lilac_ptx_piece d,
                     lilac_ptx_piece a) {
    if (type == LILAC_SIMT_BF16) {
        lilac_ptx_need(e, LILAC_PTX_BF16_TO_F32);
    }
    lilac_ptx_line2(e, type == LILAC_SIMT_F16 ? "cvt.f32.f16" : "cvt.f32.bf16", d, a);
}

lilac_ptx_piece lilac_ptx_as_f32(lilac_ptx_emitter *e, lilac_simt_value value) {
    lilac_simt_type type = type_of(e, value);
    if (type == LILAC_SIMT_F32) {
        return lilac_ptx_register(e, value);
    }
    lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_widen(e, type, wide, lilac_ptx_register(e, value));
    return wide;
}

lilac_ptx_piece lilac_ptx_flushed(lilac_ptx_emitter *e, const lilac_simt_instruction *i,
                                  lilac_ptx_piece a) {
    if (!(i->flags & LILAC_SIMT_FTZ)) {
        return a;
    }
    lilac_ptx_piece flushed = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_line3(e, "mul.rn.ftz.f32", flushed, a, PIECE("0f3F800000"));
    return flushed;
}
