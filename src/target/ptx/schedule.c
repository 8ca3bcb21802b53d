/* Scheduling barriers and opaque copies: what ptxas must not see through.
 *
 *     schedule_barrier        mov.u32 %tr0, %nctaid.x;
 *                             setp.eq.u32 %tp0, %tr0, 2147483649;
 *                             @%tp0 bra.uni $L_end_0;
 *
 *     schedule_barrier %3, %4 mov.u32 %tr0, %nctaid.x;
 *                             mov.b64 {%tr1, %tr2}, %rd3;
 *                             mov.b64 {%tr1, %tr3}, %rd4;
 *                             or.b32 %tr2, %tr2, %tr3;
 *                             and.b32 %tr2, %tr2, %tr0;
 *                             setp.lt.s32 %tp0, %tr2, 0;
 *                             @%tp0 bra.uni $L_end_0;
 *
 *     %2 = opaque %1 : i32    mov.u32 %tr0, %nctaid.x;    (once, at the kernel's start)
 *                             shr.u32 %tr0, %tr0, 31;
 *                             add.s32 %r2, %r1, %tr0;
 *
 * ptxas moves no instruction across the end of a basic block. The branch ends one and is never
 * taken, as a grid has fewer than 2^31 blocks along x; ptxas does not know that. It sinks what only
 * the code behind the branch needs, so the condition uses the operands. By the same bound the shift
 * gives 0. */
#include "emit.h"

/* The upper words of 64-bit values, combined by or. */
static lilac_ptx_piece upper_words(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece all = {0};
    lilac_ptx_piece words[2] = {lilac_ptx_temporary(e, LILAC_PTX_BITS32)};
    for (uint32_t k = 0; k < i->operand_count; k++) {
        words[1] = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
        lilac_ptx_line2(e, "mov.b64", lilac_ptx_tuple(e, 2, words),
                        lilac_ptx_register(e, i->operands[k]));
        if (k == 0) {
            all = words[1];
        } else {
            lilac_ptx_line3(e, "or.b32", all, all, words[1]);
        }
    }
    return all;
}

/* The number in the condition differs between barriers without operands, or ptxas would keep only
 * the first. */
void lilac_ptx_schedule_barrier(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece blocks = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_piece never = lilac_ptx_temporary(e, LILAC_PTX_PREDICATE);
    lilac_ptx_line2(e, "mov.u32", blocks, PIECE("%nctaid.x"));
    if (i->operand_count > 0) {
        lilac_ptx_piece all = upper_words(e, i);
        lilac_ptx_line3(e, "and.b32", all, all, blocks);
        lilac_ptx_line3(e, "setp.lt.s32", never, all, PIECE("0"));
    } else {
        lilac_ptx_line3(e, "setp.eq.u32", never, blocks,
                        lilac_ptx_decimal(e, INT64_C(0x80000001) + e->schedule_barriers));
    }
    lilac_ptx_guard(e, never, false);
    lilac_ptx_branch(e, "end", 0);
    e->schedule_barriers++;
}

lilac_ptx_piece lilac_ptx_opaque_zero(lilac_ptx_emitter *e, bool wide) {
    for (int k = 0; k <= wide; k++) {
        if (e->zero[k].bytes == NULL) {
            e->zero[k] = lilac_ptx_temporary(e, k == 1 ? LILAC_PTX_BITS64 : LILAC_PTX_BITS32);
        }
    }
    return e->zero[wide];
}

void lilac_ptx_opaque(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const bool wide = type_of(e, i->result) == LILAC_SIMT_I64;
    if (!wide && type_of(e, i->result) != LILAC_SIMT_I32) {
        lilac_ptx_refuse(e, i, "%s has no opaque copy of %s", e->arch->name,
                         lilac_simt_type_name(type_of(e, i->result)));
        return;
    }
    lilac_ptx_piece value = lilac_ptx_register(e, i->operands[0]);
    lilac_ptx_piece zero = lilac_ptx_opaque_zero(e, wide), result = value;
    if ((i->flags & LILAC_SIMT_VOLATILE) != 0) { /* a loop carries the register */
        lilac_ptx_rename(e, i->result, i->operands[0]);
    } else {
        result = lilac_ptx_define(e, i->result);
    }
    lilac_ptx_line3(e, wide ? "add.s64" : "add.s32", result, value, zero);
}

void lilac_ptx_put_zero(lilac_ptx_emitter *e) {
    const lilac_ptx_piece *narrow = &e->zero[0], *wide = &e->zero[1];
    if (narrow->bytes == NULL) {
        return;
    }
    int length = (int)narrow->length;
    lilac_text_printf(e->out, "\tmov.u32 %.*s, %%nctaid.x;\n\tshr.u32 %.*s, %.*s, 31;\n", length,
                      narrow->bytes, length, narrow->bytes, length, narrow->bytes);
    if (wide->bytes != NULL) {
        lilac_text_printf(e->out, "\tcvt.u64.u32 %.*s, %.*s;\n", (int)wide->length, wide->bytes,
                          length, narrow->bytes);
    }
}
