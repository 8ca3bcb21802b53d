/* Prints one line for each element, in Triton's format:
 *
 *   pid (0, 0, 0) idx ( 17, 3) prefix: 1.500000
 *   pid (0, 0, 0) prefix                          without operands
 *
 * One holder of each element prints it; a scalar is printed once for each program. Narrow
 * numbers are printed as 32-bit numbers; hexadecimal shows all bits of the element. 8-bit floats
 * are printed as the unsigned integers of their bits. */
#include "coordinates.h"
#include "numeric_casts.h"
#include "operations.h"

enum { MOST_RANK = 4 }; /* print has 8 operands: 3 for the program, the indices, the element */

lilac_name lilac_lower_text(lilac_lowering *l, const lilac_tile_op *op, const char *name) {
    lilac_name raw = lilac_tile_find_text(&op->attributes, name);
    if (raw == NULL) {
        return NULL;
    }
    lilac_text text = {0};
    for (const char *at = raw; *at != 0; at++) {
        if (at[0] != '\\' || at[1] == 0) {
            lilac_text_char(&text, *at);
            continue;
        }
        at++;
        int high = lilac_hex_digit(at[0]), low = high < 0 ? -1 : lilac_hex_digit(at[1]);
        if (low >= 0 && high + low > 0) { /* a zero byte would end the text */
            lilac_text_char(&text, (char)(high * 16 + low));
            at++;
        } else {
            lilac_text_char(&text, at[0] == 'n' ? '\n' : at[0] == 't' ? '\t' : at[0]);
        }
    }
    lilac_name result = lilac_intern(l->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return result;
}

static void put_escaped(lilac_text *out, const char *text) {
    for (; *text != 0; text++) {
        lilac_text_puts(out, *text == '%' ? "%%" : (const char[]){*text, 0});
    }
}

static uint32_t digits_below(uint64_t size) {
    uint32_t digits = 1;
    for (uint64_t last = size - 1; last >= 10; last /= 10) {
        digits++;
    }
    return digits;
}

/* The element in a type that the print operation accepts, and its format. */
static bool element(lilac_lowering *l, const lilac_tile_type *type, bool hex, bool is_signed,
                    lilac_simt_value *value, lilac_text *conversion) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type simt = lilac_simt_type_of(l->kernel, *value);
    const lilac_tile_type *scalar = lilac_tile_element(type);
    uint32_t bits = lilac_simt_type_bits(simt);
    if (scalar->kind == LILAC_TILE_POINTER) {
        lilac_text_puts(conversion, "%p");
        return true;
    }
    if (lilac_simt_type_is_float(simt)) {
        if (!hex) {
            *value = bits == 16
                         ? lilac_lower_convert(l, *value, LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN)
                         : *value;
            lilac_text_puts(conversion, "%f");
            return true;
        }
        simt = bits == 16 ? LILAC_SIMT_I16 : bits == 32 ? LILAC_SIMT_I32 : LILAC_SIMT_I64;
        *value = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, simt, *value);
    }
    if (bits < 32) {
        bool extend = is_signed && !hex && bits > 1;
        *value = lilac_simt_op1(b, extend ? LILAC_SIMT_OP_SEXT : LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32,
                                *value);
    }
    if (hex) {
        lilac_text_printf(conversion, "0x%%0%u%sx", bits < 4 ? 1 : bits / 4,
                          bits == 64 ? "ll" : "");
    } else {
        lilac_text_printf(conversion, "%%%s%s", bits == 64 ? "ll" : "", is_signed ? "i" : "u");
    }
    return true;
}

/* Coordinate number d of the element in register r. */
static lilac_simt_value index_of(lilac_lowering *l, const lilac_lower_view *view, uint32_t d,
                                 uint32_t r) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0}, blocks[LILAC_LAYOUT_MAX_BITS] = {0};
    uint64_t mask = (1ULL << view->columns.bits[d]) - 1;
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        columns[i] = view->columns.threads[i] >> view->columns.start[d] & mask;
    }
    for (uint32_t i = 0; i < view->columns.block_bits; i++) {
        blocks[i] = view->columns.blocks[i] >> view->columns.start[d] & mask;
    }
    lilac_simt_value part = lilac_lower_linear(&l->builder, view->columns.thread_bits, columns,
                                               view->columns.block_bits, blocks);
    int64_t own = (int64_t)(view->coordinates[r] >> view->columns.start[d] & mask);
    return lilac_simt_op2(&l->builder, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32, part,
                          lilac_lower_integer(l, LILAC_SIMT_I32, own));
}

static void build(lilac_lowering *l, const lilac_text *format, lilac_simt_value predicate,
                  uint32_t count, const lilac_simt_value *values) {
    lilac_simt_value operands[9];
    uint32_t n = 0;
    if (predicate != 0) {
        operands[n++] = predicate;
    }
    for (uint32_t k = 0; k < count; k++) {
        operands[n++] = values[k];
    }
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_PRINT};
    like.text = lilac_intern(l->context, format->bytes, format->length);
    (void)lilac_simt_build(&l->builder, &like, n, operands, 0, NULL);
}

static uint32_t put_program(lilac_lowering *l, lilac_text *format, lilac_simt_value *values) {
    for (uint8_t d = 0; d < 3; d++) {
        lilac_simt_instruction like = {.code = LILAC_SIMT_OP_BLOCK, .detail = d};
        lilac_simt_type type = LILAC_SIMT_I32;
        values[d] = lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
    }
    lilac_text_puts(format, "pid (%u, %u, %u)");
    return 3;
}

/* Prints the line of the element in register r of operand `index`. */
static bool print_element(lilac_lowering *l, const lilac_tile_op *op, uint32_t index, uint32_t r,
                          lilac_simt_value predicate, lilac_text *format) {
    const lilac_lower_value *operand = lilac_lower_operand(l, op, index);
    const lilac_lower_view *view = operand->view;
    const lilac_tile_attribute *is_signed = lilac_tile_find(&op->attributes, "isSigned");
    lilac_name prefix = lilac_lower_text(l, op, "prefix");
    lilac_simt_value values[8];
    lilac_text_reset(format);
    uint32_t n = put_program(l, format, values);
    lilac_text_puts(format, " idx (");
    for (uint32_t d = 0; view != NULL && d < view->columns.rank; d++) {
        lilac_text_printf(format, "%s%%%uu", d > 0 ? ", " : "",
                          digits_below(1ULL << view->columns.bits[d]));
        values[n++] = index_of(l, view, d, r);
    }
    lilac_text_puts(format, ")");
    put_escaped(format, prefix != NULL ? prefix : "");
    if (op->operand_count > 1) {
        lilac_text_printf(format, "(operand %u) ", index);
    }
    values[n] = lilac_lower_get(l, operand, r);
    bool sign = is_signed == NULL || index >= is_signed->count || is_signed->integers[index] != 0;
    if (!element(l, operand->type, lilac_tile_find_integer(&op->attributes, "hex", 0) != 0, sign,
                 &values[n], format)) {
        return false;
    }
    lilac_text_char(format, '\n');
    build(l, format, predicate, n + 1, values);
    return true;
}

bool lilac_lower_print(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_value once = lilac_lower_elect_holder_of(l, NULL);
    lilac_text format = {0};
    bool good = true;
    if (op->operand_count == 0) {
        lilac_simt_value values[3];
        lilac_name prefix = lilac_lower_text(l, op, "prefix");
        (void)put_program(l, &format, values);
        put_escaped(&format, prefix != NULL ? prefix : "");
        lilac_text_char(&format, '\n');
        build(l, &format, once, 3, values);
    }
    for (uint32_t k = 0; good && k < op->operand_count; k++) {
        const lilac_lower_value *operand = lilac_lower_operand(l, op, k);
        const lilac_lower_view *view = operand->view;
        if (view != NULL && view->columns.rank > MOST_RANK) {
            good =
                lilac_lower_unsupported(l, "operand %u has %u dimensions; at most %d are supported",
                                        k, view->columns.rank, MOST_RANK);
            break;
        }
        lilac_simt_value predicate = view == NULL ? once : lilac_lower_elect_holder_of(l, view);
        for (uint32_t r = 0; good && r < operand->count; r++) {
            if (view == NULL || view->canonical[r] == r) {
                good = print_element(l, op, k, r, predicate, &format);
            }
        }
    }
    lilac_text_clear(&format);
    return good;
}
