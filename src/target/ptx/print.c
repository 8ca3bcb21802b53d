/* Prints and assembly.
 *
 *   print %p, (%x)     @%p bra $L_print_0;  …        behind the kernel's last return:
 *                      $L_printed_0:                 $L_print_0: { vprintf(format, arguments) }
 *                                                                bra $L_printed_0;
 *
 *   %2 = asm %1        { the text with $0 = %r2, $1 = %r1 }
 *
 * vprintf takes its arguments from local memory, as C passes them: f32 as f64, each aligned to its
 * size.
 */
#include "emit.h"

/* Writes the arguments' stores; the size of all of them. */
static uint32_t store_arguments(lilac_ptx_emitter *e, const lilac_simt_value *values,
                                uint32_t count) {
    uint32_t offset = 0;
    for (uint32_t k = 0; k < count; k++) {
        lilac_simt_type type = type_of(e, values[k]);
        lilac_ptx_piece value = lilac_ptx_register(e, values[k]);
        if (type == LILAC_SIMT_F32) {
            lilac_ptx_piece wide = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
            lilac_ptx_line2(e, "cvt.f64.f32", wide, value);
            value = wide;
        }
        uint32_t size = type == LILAC_SIMT_I32 ? 4 : 8;
        offset = (offset + size - 1) / size * size;
        lilac_ptx_piece place = lilac_ptx_concatenate(
            e, 3,
            (lilac_ptx_piece[]){PIECE("[arguments+"), lilac_ptx_decimal(e, offset), PIECE("]")});
        lilac_ptx_line2(e, size == 4 ? "st.local.b32" : "st.local.b64", place, value);
        offset += size;
    }
    return offset;
}

static uint32_t arguments_size(const lilac_ptx_emitter *e, const lilac_simt_value *values,
                               uint32_t count) {
    uint32_t offset = 0;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t size = type_of(e, values[k]) == LILAC_SIMT_I32 ? 4 : 8;
        offset = (offset + size - 1) / size * size + size;
    }
    return offset > 0 ? offset : 8;
}

static void call(lilac_ptx_emitter *e, const lilac_simt_value *values, uint32_t count) {
    lilac_ptx_append(&e->code, "\t{\n\t.local .align 8 .b8 arguments[");
    lilac_ptx_append_unsigned(&e->code, arguments_size(e, values, count));
    lilac_ptx_append(&e->code, "];\n\t.param .b64 argument0;\n\t.param .b64 argument1;\n"
                               "\t.param .b32 printed;\n");
    store_arguments(e, values, count);
    lilac_ptx_pass_string(e, "print_format_", e->prints, 0);
    lilac_ptx_piece local = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_piece generic = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_line2(e, "mov.b64", local, PIECE("arguments"));
    lilac_ptx_line2(e, "cvta.local.u64", generic, local);
    lilac_ptx_line2(e, "st.param.b64", PIECE("[argument1]"), generic);
    lilac_ptx_append(&e->code, "\tcall (printed), vprintf, (argument0, argument1);\n\t}\n");
}

void lilac_ptx_print(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool predicated = i->operand_count > 0 && type_of(e, i->operands[0]) == LILAC_SIMT_I1;
    const lilac_simt_value *values = i->operands + predicated;
    uint32_t count = i->operand_count - (uint32_t)predicated;
    if (predicated && e->places[i->operands[0]].constant) {
        if (!e->places[i->operands[0]].bits) {
            return;
        }
        predicated = false;
    }
    if (!e->prints) {
        lilac_ptx_append(&e->head, ".extern .func (.param .b32 vprintf_result) vprintf\n(\n"
                                   "\t.param .b64 vprintf_format,\n"
                                   "\t.param .b64 vprintf_arguments\n);\n");
    }
    lilac_ptx_declare_string(e, "print_format_", e->prints, i->text);
    if (!predicated) {
        call(e, values, count);
        e->prints++;
        return;
    }
    lilac_ptx_guard(e, lilac_ptx_register(e, i->operands[0]), false);
    lilac_ptx_begin(e, "bra $L_print_");
    lilac_ptx_put_unsigned(&e->code, e->prints);
    put_string(&e->code, ";\n");
    lilac_ptx_label(e, "printed", e->prints);
    lilac_ptx_buffer in_line = e->code;
    e->code = e->out_of_line;
    lilac_ptx_label(e, "print", e->prints);
    call(e, values, count);
    lilac_ptx_begin(e, "bra $L_printed_");
    lilac_ptx_put_unsigned(&e->code, e->prints);
    put_string(&e->code, ";\n");
    e->out_of_line = e->code;
    e->code = in_line;
    e->prints++;
}

void lilac_ptx_assembly(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece *places =
        lilac_arena_array(e->arena, lilac_ptx_piece, (size_t)i->result_count + i->operand_count);
    for (uint32_t k = 0; k < i->operand_count; k++) {
        places[i->result_count + k] = lilac_ptx_register(e, i->operands[k]);
    }
    for (uint32_t k = 0; k < i->result_count; k++) {
        places[k] = lilac_ptx_define(e, i->result + k);
    }
    lilac_ptx_need_assembly(e);
    lilac_ptx_append(&e->code, "\t{\n\t");
    for (const char *at = i->text; *at;) {
        lilac_ptx_reserve(&e->code, LILAC_PTX_LINE);
        if (at[0] != '$') {
            put_char(&e->code, *at++);
        } else if (at[1] == '$') {
            put_char(&e->code, '$');
            at += 2;
        } else {
            uint32_t number = 0;
            for (at++; *at >= '0' && *at <= '9'; at++) {
                number = number * 10 + (uint32_t)(*at - '0');
            }
            put_piece(&e->code, places[number]);
        }
    }
    lilac_ptx_append(&e->code, "\n\t}\n"); /* a comment in the text ends with its line */
}
