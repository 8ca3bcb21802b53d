/* Matrix instructions.
 *
 *     %d… = mma %a…, %b…, %c…      mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
 *                                      {d…}, {a…}, {b…}, {c…};
 *     %d… = wgmma %c…, %a, %b, %p  wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
 *                                      {c…}, a, b, p, 1, 1, 0, 0;      d is c's register
 *
 * The results of a wgmma are in the registers of its accumulators. Where nothing else uses an
 * accumulator, the result is its new name, so that a chain of wgmmas, also one that a loop carries,
 * has no instruction on the registers between: an assembler would have to wait for each wgmma. Any
 * other accumulator is copied before, with a fence behind the copies. A constant is copied through the
 * opaque zero: ptxas of CUDA 12.8 takes a selp of two accumulators that were set to constants for a selp
 * of the constants, and deletes the wgmma. */
#include "emit.h"

#include <lilac/simt_matrix.h>

enum { MOST_ACCUMULATORS = 128, MOST_WORDS = 8 };

static void put_shape(lilac_ptx_emitter *e, const lilac_simt_matrix_payload *p) {
    put_string(&e->code, ".sync.aligned.m");
    lilac_ptx_put_unsigned(&e->code, p->m);
    put_char(&e->code, 'n');
    lilac_ptx_put_unsigned(&e->code, p->n);
    put_char(&e->code, 'k');
    lilac_ptx_put_unsigned(&e->code, p->k);
}

static void put_type(lilac_ptx_emitter *e, uint32_t type) {
    put_char(&e->code, '.');
    put_string(&e->code, lilac_matrix_type_name(type));
}

/* "{%r1, %r2}" of a group. */
static lilac_ptx_piece group(lilac_ptx_emitter *e, const lilac_simt_instruction *i, uint32_t k) {
    lilac_ptx_piece pieces[MOST_ACCUMULATORS];
    lilac_simt_group g = lilac_simt_group_of(i, k);
    for (uint32_t n = 0; n < g.count; n++) {
        pieces[n] = lilac_ptx_register(e, g.values[n]);
    }
    return lilac_ptx_tuple(e, g.count, pieces);
}

/* ---- mma -------------------------------------------------------------------------------- */

static void mma(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    const lilac_mma *row = lilac_mma_find(&shape);
    if (row == NULL || !lilac_mma_has(e->arch, row)) {
        lilac_ptx_refuse(e, i, "%s has no mma of %s and %s with m, n, k %u, %u, %u", e->arch->name,
                         lilac_matrix_type_name(p->a), lilac_matrix_type_name(p->b), p->m, p->n,
                         p->k);
        return;
    }
    lilac_ptx_need_version(e, row->ptx_version, "mma of these types and this shape");
    lilac_ptx_piece results[MOST_WORDS];
    lilac_ptx_piece operands[] = {PIECE(""), group(e, i, 0), group(e, i, 1), group(e, i, 2)};
    for (uint32_t k = 0; k < i->result_count; k++) {
        results[k] = lilac_ptx_define(e, i->result + k);
    }
    operands[0] = lilac_ptx_tuple(e, i->result_count, results);
    lilac_ptx_begin(e, "mma");
    put_shape(e, p);
    put_string(&e->code, ".row.col");
    if (p->saturate) {
        put_string(&e->code, ".satfinite");
    }
    const uint8_t types[] = {p->d, p->a, p->b, p->d};
    for (uint32_t k = 0; k < 4; k++) {
        put_type(e, types[k]);
    }
    lilac_ptx_finish(e, 4, operands);
}

/* ---- registers of accumulators ---------------------------------------------------------- */

static void opaque_constant(lilac_ptx_emitter *e, lilac_simt_value to, lilac_simt_value constant) {
    const lilac_ptx_piece zero = lilac_ptx_opaque_zero(e, false);
    lilac_ptx_line3(e, "add.s32", lilac_ptx_define(e, to), zero,
                    lilac_ptx_decimal(e, (int32_t)e->places[constant].bits));
}

/* Gives the results their registers: those of the accumulators, or copies. */
static void tie_results(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    bool copied = false;
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_simt_value from = i->operands[k], to = i->result + k;
        if (e->homes[to] == e->homes[from] && !e->places[from].constant) {
            lilac_ptx_rename(e, to, from);
            continue;
        }
        copied = true;
        if (e->places[from].constant) {
            opaque_constant(e, to, from);
            continue;
        }
        lilac_ptx_line2(e, lilac_ptx_mov(type_of(e, to)), lilac_ptx_define(e, to),
                        lilac_ptx_bits(e, from));
    }
    if (copied) {
        lilac_ptx_begin(e, "wgmma.fence.sync.aligned;\n");
    }
}

/* ---- wgmma ------------------------------------------------------------------------------ */

/* ", 1, -1, 0, 1": the signs of A and B, then which of them is transposed. */
static uint32_t put_modifiers(const lilac_simt_matrix_payload *p, const lilac_wgmma *row,
                              lilac_ptx_piece *to) {
    uint32_t count = 0;
    if (row->scales) {
        to[count++] = p->negate_a ? PIECE("-1") : PIECE("1");
        to[count++] = p->negate_b ? PIECE("-1") : PIECE("1");
    }
    if (row->transposes) {
        if (!p->registers) {
            to[count++] = p->transpose_a ? PIECE("1") : PIECE("0");
        }
        to[count++] = p->transpose_b ? PIECE("1") : PIECE("0");
    }
    return count;
}

static void wgmma(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_matrix_payload *p = &i->payload.matrix;
    lilac_matrix_shape shape = lilac_simt_matrix_shape(i);
    const lilac_wgmma *row = lilac_wgmma_find(&shape);
    if (row == NULL || !lilac_wgmma_has_columns(row, p->n)) {
        lilac_ptx_refuse(e, i, "%s has no wgmma of %s and %s with n = %u", e->arch->name,
                         lilac_matrix_type_name(p->a), lilac_matrix_type_name(p->b), p->n);
        return;
    }
    if (row->kind == LILAC_MATRIX_S8 && p->a != p->b) {
        lilac_ptx_need(e, LILAC_PTX_WGMMA_MIXED);
    }
    lilac_ptx_piece operands[8], results[MOST_ACCUMULATORS];
    lilac_simt_group a = lilac_simt_group_of(i, 1), b = lilac_simt_group_of(i, 2);
    operands[1] = p->registers ? group(e, i, 1) : lilac_ptx_register(e, a.values[0]);
    operands[2] = lilac_ptx_register(e, b.values[0]);
    operands[3] = lilac_ptx_register(e, lilac_simt_group_of(i, 3).values[0]);
    tie_results(e, i);
    for (uint32_t k = 0; k < i->result_count; k++) {
        results[k] = e->places[i->result + k].text;
    }
    operands[0] = lilac_ptx_tuple(e, i->result_count, results);
    uint32_t count = 4 + put_modifiers(p, row, operands + 4);
    lilac_ptx_begin(e, "wgmma.mma_async");
    put_shape(e, p);
    put_type(e, p->d);
    put_type(e, p->a);
    put_type(e, p->b);
    if (p->a == LILAC_MATRIX_B1) {
        put_string(&e->code, ".and.popc");
    }
    if (p->saturate) {
        put_string(&e->code, ".satfinite");
    }
    lilac_ptx_reserve(&e->code, operands[0].length + LILAC_PTX_LINE);
    lilac_ptx_finish(e, count, operands);
}

static void wait(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    uint32_t groups = i->payload.wgmma_wait.groups;
    lilac_ptx_line1(e, "wgmma.wait_group.sync.aligned",
                    lilac_ptx_decimal(e, groups > 7 ? 7 : groups));
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_ptx_rename(e, i->result + k, i->operands[k]);
    }
}

void lilac_ptx_multiply(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (i->code == LILAC_SIMT_OP_MMA) {
        mma(e, i);
        return;
    }
    if (!lilac_arch_has(e->arch, LILAC_HAS_WGMMA)) {
        lilac_ptx_refuse(e, i, "%s has no wgmma", e->arch->name);
        return;
    }
    switch (i->code) {
    case LILAC_SIMT_OP_WGMMA:
        wgmma(e, i);
        return;
    case LILAC_SIMT_OP_WGMMA_FENCE:
        lilac_ptx_begin(e, "wgmma.fence.sync.aligned;\n");
        return;
    case LILAC_SIMT_OP_WGMMA_COMMIT:
        lilac_ptx_begin(e, "wgmma.commit_group.sync.aligned;\n");
        return;
    default:
        wait(e, i);
        return;
    }
}
