/* Functions of one float, computed in f32 (f16 and bf16 go through it) from the machine's
 * approximate instructions:
 *
 *   exp x    ex2(x log2 e)                     log x    as libdevice's: lg2 has no place right
 *                                                       where the result is small
 *   sqrt x   approximate; correctly rounded    rsqrt x  approximate
 *            where the program asks for it
 *   sin cos  as libdevice's: the machine's are wrong by what rounding a large argument is
 *   tanh x   |x| < 0.6: x + x³ p(x²)           else 1 - 2 / (e^2x + 1)       within 2 ulp
 *   erf x    |x| < 1:   x + x p(x²)            else 1 - 2^q(|x|), |x| ≤ 4    within 2 ulp
 *
 * The polynomials were fitted to the smallest largest relative error (of erfc for q). f64, and the
 * remainder in all types, are made of functions.h. */
#include "functions.h"
#include "numeric_casts.h"
#include "operations.h"

#define LOG2_E 1.4426950408889634074

static lilac_simt_value one(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a) {
    return lilac_simt_op1(&l->builder, code, lilac_simt_type_of(l->kernel, a), a);
}

static lilac_simt_value two(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a,
                            lilac_simt_value b) {
    return lilac_simt_op2(&l->builder, code, lilac_simt_type_of(l->kernel, a), a, b);
}

static lilac_simt_value approximate(lilac_lowering *l, lilac_simt_opcode code, uint32_t count,
                                    const lilac_simt_value *in) {
    return lilac_lower_flagged(l, code, lilac_simt_type_of(l->kernel, in[0]),
                               LILAC_SIMT_APPROXIMATE, count, in);
}

static lilac_simt_value number(lilac_lowering *l, double value) {
    return lilac_lower_float(l, LILAC_SIMT_F32, value);
}

static lilac_simt_value multiply_add(lilac_lowering *l, lilac_simt_value a, lilac_simt_value b,
                                     lilac_simt_value c) {
    return lilac_simt_op3(&l->builder, LILAC_SIMT_OP_FFMA, LILAC_SIMT_F32, a, b, c);
}

static lilac_simt_value polynomial(lilac_lowering *l, const double *coefficients, uint32_t count,
                                   lilac_simt_value x) {
    lilac_simt_value sum = number(l, coefficients[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;) {
        sum = multiply_add(l, sum, x, number(l, coefficients[i]));
    }
    return sum;
}

/* y with the sign of x; y is not negative. */
static lilac_simt_value signed_like(lilac_lowering *l, lilac_simt_value x, lilac_simt_value y) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value sign =
        lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32,
                       lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, x),
                       lilac_simt_constant(b, LILAC_SIMT_I32, 0x80000000));
    lilac_simt_value bits = lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_I32, y);
    bits = lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I32, bits, sign);
    return lilac_simt_op1(b, LILAC_SIMT_OP_BITCAST, LILAC_SIMT_F32, bits);
}

static lilac_simt_value tanh_of(lilac_lowering *l, lilac_simt_value x) {
    static const double p[] = {-0.3333333134651184, 0.1333293318748474, -0.05387631431221962,
                               0.021121444180607796, -0.006283653434365988};
    lilac_simt_value a = one(l, LILAC_SIMT_OP_FABS, x);
    lilac_simt_value square = two(l, LILAC_SIMT_OP_FMUL, a, a);
    lilac_simt_value near = multiply_add(l, two(l, LILAC_SIMT_OP_FMUL, a, square),
                                         polynomial(l, p, sizeof p / sizeof *p, square), a);
    lilac_simt_value power =
        one(l, LILAC_SIMT_OP_FEXP2, two(l, LILAC_SIMT_OP_FMUL, a, number(l, 2 * LOG2_E)));
    lilac_simt_value sum = two(l, LILAC_SIMT_OP_FADD, power, number(l, 1.0));
    lilac_simt_value inverse = approximate(l, LILAC_SIMT_OP_FRCP, 1, &sum);
    lilac_simt_value far = multiply_add(l, inverse, number(l, -2.0), number(l, 1.0));
    lilac_simt_value is_near =
        lilac_simt_compare_values(&l->builder, LILAC_SIMT_LT, a, number(l, 0.6));
    return signed_like(l, x, lilac_lower_select(l, is_near, near, far));
}

static lilac_simt_value erf_of(lilac_lowering *l, lilac_simt_value x) {
    static const double p[] = {0.12837916612625122,    -0.37612637877464294,  0.11283782869577408,
                               -0.02686544507741928,   0.005221074912697077,  -0.00084847112884745,
                               0.00011270543473074213, -9.680133189249318e-06};
    static const double q[] = {
        0.00029483184334822,   -1.6297565698623657,     -0.9132830500602722,
        -0.15673299133777618,  0.036606334149837494,    -0.0061781881377100945,
        0.0006691094022244215, -3.6522334994515404e-05, 3.626436750892026e-07};
    lilac_simt_value limit[2] = {one(l, LILAC_SIMT_OP_FABS, x), number(l, 4.0)};
    lilac_simt_value a = lilac_lower_flagged(l, LILAC_SIMT_OP_FMIN, LILAC_SIMT_F32,
                                             LILAC_SIMT_PROPAGATE_NAN, 2, limit);
    lilac_simt_value square = two(l, LILAC_SIMT_OP_FMUL, a, a);
    lilac_simt_value near = multiply_add(l, a, polynomial(l, p, sizeof p / sizeof *p, square), a);
    lilac_simt_value tail = one(l, LILAC_SIMT_OP_FEXP2, polynomial(l, q, sizeof q / sizeof *q, a));
    lilac_simt_value far = two(l, LILAC_SIMT_OP_FSUB, number(l, 1.0), tail);
    lilac_simt_value is_near =
        lilac_simt_compare_values(&l->builder, LILAC_SIMT_LT, a, number(l, 1.0));
    return signed_like(l, x, lilac_lower_select(l, is_near, near, far));
}

lilac_simt_value lilac_lower_math_single_tanh(math_builder *k, const lilac_simt_value *in) {
    return tanh_of(k->l, in[0]);
}

lilac_simt_value lilac_lower_math_single_erf(math_builder *k, const lilac_simt_value *in) {
    return erf_of(k->l, in[0]);
}

/* ---- in f32 ------------------------------------------------------------------------------ */

static lilac_simt_value single_exp2(math_builder *k, const lilac_simt_value *in) {
    return one(k->l, LILAC_SIMT_OP_FEXP2, in[0]);
}

static lilac_simt_value single_exp(math_builder *k, const lilac_simt_value *in) {
    lilac_simt_value power = two(k->l, LILAC_SIMT_OP_FMUL, in[0], number(k->l, LOG2_E));
    return one(k->l, LILAC_SIMT_OP_FEXP2, power);
}

static lilac_simt_value single_sqrt(math_builder *k, const lilac_simt_value *in) {
    return approximate(k->l, LILAC_SIMT_OP_FSQRT, 1, in);
}

static lilac_simt_value single_rsqrt(math_builder *k, const lilac_simt_value *in) {
    return one(k->l, LILAC_SIMT_OP_FRSQRT, in[0]);
}

static lilac_simt_value single_sin(math_builder *k, const lilac_simt_value *in) {
    return lilac_lower_by_function(k->l, lilac_lower_math_sin, 1, LILAC_SIMT_F32, in);
}

static lilac_simt_value single_cos(math_builder *k, const lilac_simt_value *in) {
    return lilac_lower_by_function(k->l, lilac_lower_math_cos, 1, LILAC_SIMT_F32, in);
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

static void compute(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                    lilac_simt_value *out) {
    const struct math_row *row = &math_rows[op->code];
    lilac_simt_type type = lilac_simt_type_of(l->kernel, in[0]);
    if (type == LILAC_SIMT_F64) {
        out[0] = lilac_lower_by_function(l, row->f64, 1, type, in);
        return;
    }
    math_builder k = {.l = l, .b = &l->builder};
    lilac_simt_value x = lilac_lower_convert(l, in[0], LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN);
    out[0] = lilac_lower_convert(l, row->f32(&k, &x), type, LILAC_ROUND_NEAREST_EVEN);
}

static bool lower_elements(lilac_lowering *l, const lilac_tile_op *op,
                           lilac_lower_element element) {
    if (!lilac_simt_type_is_float(lilac_lower_operand(l, op, 0)->simt)) {
        return lilac_lower_refuse(
            l, "unsupported-type",
            "'%s' on 8-bit floats cannot be lowered; convert operand 0 to f16, bf16, f32 or f64",
            lilac_tile_op_info_get(op->code)->name);
    }
    return lilac_lower_elementwise(l, op, element);
}

bool lilac_lower_math(lilac_lowering *l, const lilac_tile_op *op) {
    return lower_elements(l, op, math_rows[op->code].f32 != NULL ? compute : NULL);
}

static void compute_remainder(lilac_lowering *l, const lilac_tile_op *op,
                              const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    out[0] = lilac_lower_by_function(l, lilac_lower_math_fmod, 2,
                                     lilac_simt_type_of(l->kernel, in[0]), in);
}

bool lilac_lower_float_remainder(lilac_lowering *l, const lilac_tile_op *op) {
    return lower_elements(l, op, compute_remainder);
}
