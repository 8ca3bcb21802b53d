/* A step of the pass decompose_dots: a product of scaled factors becomes a product of 16-bit floats.
 *
 *     %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = bf16
 *
 *  →  %0 = ttg.fp4_to_fp %a                  M × K            in bf16, or in f16 if a side is f16
 *     %1 = arith.extui %s                    M × K/g
 *     %2 = arith.shli %1, 7                                   the exponent of a bf16
 *     %3 = tt.bitcast %2
 *     %4 = arith.select (%s == 255), NaN, %3                  not with fastMath
 *     %5 = tt.expand_dims, tt.broadcast      M × K/g × g      tt.trans if K is not the last dimension
 *     %6 = tt.reshape %5                     M × K
 *     %7 = arith.mulf %0, %6
 *     %d = tt.dot %7, %b, %c
 *
 * For f16 the scale is formed in f32 and rounded, as 2^127 is no f16. A scale of 8-bit floats is
 * converted. The scale 0 stands for the number 0: its bits as a float. The scale 255 would be infinity;
 * a NaN in its place makes all of its products NaN, so no mask of the large tensor is necessary.
 * A scale of B is N × K/g; it is transposed first. */
#include "products/decompose_dots.h"

enum { E8M0_NAN = 255, BF16_NAN = 0x7FC0, F16_NAN = 0x7E00 };

static lilac_tile_value *transposed(const dot_builder *b, lilac_tile_value *x,
                                    const int64_t *order) {
    int64_t shape[LILAC_MAX_RANK];
    bool identity = true;
    const uint32_t rank = x->type->rank;
    for (uint32_t d = 0; d < rank; d++) {
        shape[d] = x->type->shape[order[d]];
        identity = identity && order[d] == (int64_t)d;
    }
    if (identity) {
        return x;
    }
    lilac_tile_value *result =
        lilac_dots_unary(b, LILAC_TILE_OP_TT_TRANS, lilac_dots_shaped(b, x->type, rank, shape), x);
    lilac_dots_integers(b, result, "order", rank, order);
    return result;
}

/* The numbers, one in each element. */
static lilac_tile_value *numbers_of(const dot_builder *b, const lilac_tile_scaled_factor *factor,
                                    lilac_scalar to) {
    lilac_tile_value *x = factor->value;
    if (factor->packed) {
        int64_t shape[LILAC_MAX_RANK];
        for (uint32_t d = 0; d < x->type->rank; d++) {
            shape[d] = lilac_tile_scaled_factor_size(factor, d);
        }
        const lilac_tile_type *type = lilac_tile_tensor(b->module, lilac_tile_scalar(b->module, to),
                                                        x->type->rank, shape, NULL);
        lilac_tile_value *numbers = lilac_dots_unary(b, LILAC_TILE_OP_TTG_FP4_TO_FP, type, x);
        lilac_dots_integer(b, numbers, "axis", factor->packed_dim);
        return numbers;
    }
    if (lilac_tile_element(x->type)->scalar != factor->element) { /* bytes */
        x = lilac_dots_unary(b, LILAC_TILE_OP_TT_BITCAST,
                             lilac_dots_elements(b, x->type, factor->element), x);
    }
    return lilac_dots_convert(b, x, to);
}

/* The scales as floats, before they are broadcast. */
static lilac_tile_value *scales_of(const dot_builder *b, lilac_tile_value *scale, lilac_scalar to,
                                   bool fast) {
    if (lilac_tile_element(scale->type)->scalar != LILAC_I8) {
        return lilac_dots_convert(b, scale, to);
    }
    const bool wide = to == LILAC_F16;
    const lilac_tile_type *words =
        lilac_dots_elements(b, scale->type, wide ? LILAC_I32 : LILAC_I16);
    const lilac_tile_type *floats =
        lilac_dots_elements(b, scale->type, wide ? LILAC_F32 : LILAC_BF16);
    lilac_tile_value *bits = lilac_dots_unary(b, LILAC_TILE_OP_ARITH_EXTUI, words, scale);
    bits = lilac_dots_binary(b, LILAC_TILE_OP_ARITH_SHLI, bits,
                             lilac_dots_constant(b, words, wide ? 23 : 7));
    lilac_tile_value *result = lilac_dots_unary(b, LILAC_TILE_OP_TT_BITCAST, floats, bits);
    result = lilac_dots_convert(b, result, to);
    if (fast) {
        return result;
    }
    lilac_tile_value *top = lilac_dots_constant(b, scale->type, (int8_t)E8M0_NAN);
    lilac_tile_value *is_nan = lilac_dots_compare(b, LILAC_TILE_OP_ARITH_CMPI, "eq", scale, top);
    lilac_tile_value *nan = lilac_dots_constant(b, result->type, wide ? F16_NAN : BF16_NAN);
    return lilac_dots_ternary(b, LILAC_TILE_OP_ARITH_SELECT, result->type,
                              (lilac_tile_value *[]){is_nan, nan, result});
}

/* Repeats each element `group` times along a dimension. */
static lilac_tile_value *repeated(const dot_builder *b, lilac_tile_value *x, uint32_t dim,
                                  int64_t group) {
    const uint32_t rank = x->type->rank;
    int64_t shape[LILAC_MAX_RANK], order[LILAC_MAX_RANK];
    for (uint32_t d = 0; d <= rank; d++) {
        shape[d] = d < rank ? x->type->shape[d] : 1;
        order[d] = d <= dim ? d : d == dim + 1 ? rank : d - 1;
    }
    x = lilac_dots_unary(b, LILAC_TILE_OP_TT_EXPAND_DIMS,
                         lilac_dots_shaped(b, x->type, rank + 1, shape), x);
    lilac_dots_integer(b, x, "axis", rank);
    shape[rank] = group;
    x = lilac_dots_unary(b, LILAC_TILE_OP_TT_BROADCAST,
                         lilac_dots_shaped(b, x->type, rank + 1, shape), x);
    x = transposed(b, x, order);
    shape[dim] *= group;
    return lilac_dots_unary(b, LILAC_TILE_OP_TT_RESHAPE, lilac_dots_shaped(b, x->type, rank, shape),
                            x);
}

static lilac_tile_value *scaled(const dot_builder *b, const lilac_tile_scaled_factor *factor,
                                lilac_scalar to, bool fast) {
    lilac_tile_value *x = numbers_of(b, factor, to), *scale = factor->scale;
    if (scale == NULL) {
        return x;
    }
    const uint32_t rank = x->type->rank;
    const int64_t group = x->type->shape[factor->k_dim] / scale->type->shape[rank - 1];
    if (factor->k_dim + 1 < rank) {
        int64_t order[LILAC_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) {
            order[d] = d + 2 < rank ? d : 2 * (int64_t)rank - 3 - d;
        }
        scale = transposed(b, scale, order);
    }
    scale = repeated(b, scales_of(b, scale, to, fast), factor->k_dim, group);
    return lilac_dots_binary(b, LILAC_TILE_OP_ARITH_MULF, x, scale);
}

lilac_tile_value *lilac_dots_unscaled(const dot_builder *b, const lilac_tile_op *op) {
    const bool fast = lilac_tile_find_integer(&op->attributes, "fastMath", 0) != 0;
    lilac_tile_scaled_factor factors[2];
    lilac_scalar to = LILAC_BF16;
    for (uint32_t i = 0; i < 2; i++) {
        if (!lilac_tile_scaled_factor_get(&factors[i], op, i)) {
            lilac_error(
                b->module->context, lilac_tile_position(op), 0, "unsupported-operation",
                "'tt.dot_scaled' has an operand %c of type %s; expected e2m1, e4m3, e5m2, bf16 or "
                "fp16",
                i == 0 ? 'A' : 'B',
                lilac_tile_find_text(&op->attributes, i == 0 ? "a_elem_type" : "b_elem_type"));
            return NULL;
        }
        to = factors[i].element == LILAC_F16 ? LILAC_F16 : to;
    }
    lilac_tile_value *operands[3] = {NULL, NULL, op->operands[2].value};
    for (uint32_t i = 0; i < 2; i++) {
        operands[i] = scaled(b, &factors[i], to, fast);
    }
    return lilac_dots_ternary(b, LILAC_TILE_OP_TT_DOT, op->results[0].type, operands);
}
