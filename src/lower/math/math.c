/* Mathematical functions of one float. f16 and bf16 are converted to f32 and the result back; f32 is
 * computed in f32 (f32.h), f64 in doubles and pairs of them (functions.h). exp is ex2(x log2 e), as Triton
 * computes it; libdevice's function is more accurate. Remainders are exact in all types. */
#include "f32.h"
#include "numeric_casts.h"
#include "operations.h"

static lilac_simt_value one(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a) {
    return lilac_simt_op1(&l->builder, code, lilac_simt_type_of(l->kernel, a), a);
}

static lilac_simt_value two(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a,
                            lilac_simt_value b) {
    return lilac_simt_op2(&l->builder, code, lilac_simt_type_of(l->kernel, a), a, b);
}

static lilac_simt_value number(lilac_lowering *l, double value) {
    return lilac_lower_float(l, LILAC_SIMT_F32, value);
}

/* ---- in f32 ------------------------------------------------------------------------------ */

static lilac_simt_value single_exp(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value power = two(k->l, LILAC_SIMT_OP_FMUL, in[0], number(k->l, LOG2_E));
    return one(k->l, LILAC_SIMT_OP_FEXP2, power);
}

/* ---- in f32 and f64 ---------------------------------------------------------------------- */

static lilac_simt_value square_root(math_builder *k, const lilac_simt_value *in) {
    return one(k->l, LILAC_SIMT_OP_FSQRT, in[0]);
}

static lilac_simt_value floor_of(math_builder *k, const lilac_simt_value *in) {
    return one(k->l, LILAC_SIMT_OP_FFLOOR, in[0]);
}

static lilac_simt_value ceil_of(math_builder *k, const lilac_simt_value *in) {
    return one(k->l, LILAC_SIMT_OP_FCEIL, in[0]);
}

/* ---- the operations ---------------------------------------------------------------------- */

static const struct math_row {
    lilac_lower_function f32, f64;
} math_rows[LILAC_TILE_OP_COUNT] = {
#define MATH(code, f32, f64, meaning) [LILAC_TILE_OP_##code] = {f32, f64},
#include <lilac/operations.def>
};

/* Of f64. */
static void compute(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                    lilac_simt_value *out) {
    out[0] = lilac_lower_by_function(l, math_rows[op->code].f64, 1, LILAC_SIMT_F64, in);
}

static bool is_float(lilac_lowering *l, const lilac_tile_op *op) {
    return lilac_simt_type_is_float(lilac_lower_operand(l, op, 0)->simt) ||
           lilac_lower_refuse(
               l, "unsupported-type",
               "'%s' on 8-bit floats cannot be lowered; convert operand 0 to f16, bf16, f32 or f64",
               lilac_tile_op_info_get(op->code)->name);
}

bool lilac_lower_math(lilac_lowering *l, const lilac_tile_op *op) {
    const struct math_row *row = &math_rows[op->code];
    if (!is_float(l, op)) {
        return false;
    }
    if (row->f32 == NULL || lilac_lower_operand(l, op, 0)->simt == LILAC_SIMT_F64) {
        return lilac_lower_elementwise(l, op, row->f64 != NULL ? compute : NULL);
    }
    return lilac_lower_f32_elements(l, op, row->f32);
}

static void compute_remainder(lilac_lowering *l, const lilac_tile_op *op,
                              const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    out[0] = lilac_lower_by_function(l, lilac_lower_math_fmod, 2, LILAC_SIMT_F64, in);
}

bool lilac_lower_float_remainder(lilac_lowering *l, const lilac_tile_op *op) {
    if (!is_float(l, op)) {
        return false;
    }
    return lilac_lower_operand(l, op, 0)->simt == LILAC_SIMT_F64
               ? lilac_lower_elementwise(l, op, compute_remainder)
               : lilac_lower_f32_elements(l, op, lilac_lower_f32_fmod);
}
