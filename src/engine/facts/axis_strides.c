/* axis_strides: the constant difference of neighbours along each dimension, and the divisibility
 * of the element at coordinates 0. With both, a run can cross dimensions:
 *
 *     p + 4·r + c,  r < 512, c < 4        stride 4 along r, 1 along c and c's whole size is 4:
 *     0 1 2 3 | 4 5 6 7 | 8 …             one run of 2048, aligned as p is
 *
 * A remainder by a constant or by what all elements share, and a quotient by a constant, have a
 * stride except where they wrap or step; so do minima and maxima. That stride is typical: prices
 * use it, proofs do not.
 *
 *     p + r % 49, p + r % rows            typical stride 1 along r
 *
 * The other strides are exact. They are computed for the operations that compute pointers to tiles. As for
 * the other facts, sums and products are assumed not to overflow as signed numbers.
 */
#include "internal.h"

static bool has_stride(const lilac_axis_facts *facts, uint32_t dim) {
    return facts->stride_known >> dim & 1;
}

static void set_stride(lilac_axis_facts *facts, uint32_t dim, int64_t stride) {
    facts->stride_known |= 1U << dim;
    facts->stride[dim] = stride;
}

static bool has_typical(const lilac_axis_facts *facts, uint32_t dim) {
    return (facts->stride_known | facts->stride_typical) >> dim & 1;
}

/* A stride that follows from those of `a` and `b` along dimensions that both know. */
static void derive_stride(lilac_axis_facts *result, uint32_t dim, int64_t stride, bool exact) {
    if (exact) {
        set_stride(result, dim, stride);
    } else {
        result->stride_typical |= 1U << dim;
        result->stride[dim] = stride;
    }
}

/* The strides of a scalar or of a tensor whose elements are equal. */
static void uniform(lilac_axis_facts *result, int64_t origin) {
    for (uint32_t d = 0; d < result->rank; d++) {
        set_stride(result, d, 0);
    }
    result->origin = origin;
}

static void same(lilac_axis_facts *result, const lilac_axis_facts *a) {
    for (uint32_t d = 0; d < result->rank && d < a->rank; d++) {
        if (has_typical(a, d)) {
            derive_stride(result, d, a->stride[d], has_stride(a, d));
        }
    }
    result->origin = max_i64(a->origin, 1);
}

static void sum(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                int64_t unit) {
    int64_t stride;
    for (uint32_t d = 0; d < result->rank; d++) {
        if (has_typical(a, d) && has_typical(b, d) &&
            !__builtin_add_overflow(a->stride[d], b->stride[d], &stride)) {
            derive_stride(result, d, stride, has_stride(a, d) && has_stride(b, d));
        }
    }
    int64_t origin = max_i64(b->origin, 1);
    origin = origin > MAX_DIVISIBILITY / unit ? MAX_DIVISIBILITY : origin * unit;
    result->origin = min_i64(max_i64(a->origin, 1), origin);
}

static void product(lilac_axis_facts *result, const lilac_axis_facts *a, int64_t factor) {
    int64_t stride, power = power_of_two_in(factor), origin = max_i64(a->origin, 1);
    for (uint32_t d = 0; d < result->rank; d++) {
        if (has_typical(a, d) && !__builtin_mul_overflow(a->stride[d], factor, &stride)) {
            derive_stride(result, d, stride, has_stride(a, d));
        }
    }
    result->origin = origin > MAX_DIVISIBILITY / power ? MAX_DIVISIBILITY : origin * power;
}

static void expand(lilac_axis_facts *result, const lilac_axis_facts *a, uint32_t axis) {
    if (axis >= result->rank) {
        return;
    }
    set_stride(result, axis, 0);
    for (uint32_t d = 0; d < a->rank && d + 1 < LILAC_MAX_RANK; d++) {
        if (has_typical(a, d)) {
            derive_stride(result, d < axis ? d : d + 1, a->stride[d], has_stride(a, d));
        }
    }
    result->origin = max_i64(a->origin, 1);
}

static void broadcast(lilac_axis_facts *result, const lilac_axis_facts *a,
                      const lilac_tile_type *from) {
    same(result, a);
    for (uint32_t d = 0; d < result->rank && d < from->rank; d++) {
        if (from->shape[d] == 1) {
            result->stride_typical &= ~(1U << d);
            set_stride(result, d, 0);
        }
    }
}

static int64_t magnitude(int64_t x) {
    return x < 0 ? -x : x;
}

/* Types narrower than offsets wrap. */
static bool may_wrap(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    return element->kind == LILAC_TILE_SCALAR &&
           (lilac_scalar_is_float(element->scalar) || lilac_scalar_bits(element->scalar) < 32);
}

/* ---- the operations --------------------------------------------------------------------- */

static void strides_range(lilac_axis_facts *result, const lilac_axis_operation *in) {
    set_stride(result, 0, 1);
    result->origin = power_of_two_in(lilac_tile_find_integer(&in->op->attributes, "start", 1));
}

static void strides_splat(lilac_axis_facts *result, const lilac_axis_operation *in) {
    uniform(result, max_i64(in->a->divisibility[0], 1));
}

static void strides_expand(lilac_axis_facts *result, const lilac_axis_operation *in) {
    expand(result, in->a, (uint32_t)lilac_tile_find_integer(&in->op->attributes, "axis", 0));
}

static void strides_broadcast(lilac_axis_facts *result, const lilac_axis_operation *in) {
    broadcast(result, in->a, in->op->operands[0].value->type);
}

static void strides_sum(lilac_axis_facts *result, const lilac_axis_operation *in) {
    sum(result, in->a, in->b, 1);
}

static void strides_pointer_sum(lilac_axis_facts *result, const lilac_axis_operation *in) {
    sum(result, in->a, in->b, in->unit);
}

static void strides_product(lilac_axis_facts *result, const lilac_axis_operation *in) {
    if (in->a->constant || in->b->constant) {
        product(result, in->a->constant ? in->b : in->a,
                in->a->constant ? in->a->value : in->b->value);
    }
}

static void strides_shift_left(lilac_axis_facts *result, const lilac_axis_operation *in) {
    if (in->b->constant && in->b->value >= 0 && in->b->value < 31) {
        product(result, in->a, INT64_C(1) << in->b->value);
    }
}

static void strides_same(lilac_axis_facts *result, const lilac_axis_operation *in) {
    same(result, in->a);
}

static void strides_extend_unsigned(lilac_axis_facts *result, const lilac_axis_operation *in) {
    if (in->a->non_negative) {
        same(result, in->a);
    }
}

/* The same addresses or numbers as others of another unit. */
static void strides_bits(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_type *from = in->op->operands[0].value->type;
    const int64_t unit = lilac_axis_unit(from);
    int64_t bytes;
    if (lilac_tile_element(from)->kind == LILAC_TILE_SCALAR &&
        lilac_scalar_is_float(lilac_tile_element(from)->scalar)) {
        return;
    }
    for (uint32_t d = 0; d < result->rank; d++) {
        if (has_typical(in->a, d) && !__builtin_mul_overflow(in->a->stride[d], unit, &bytes) &&
            bytes % in->unit == 0) {
            derive_stride(result, d, bytes / in->unit, has_stride(in->a, d));
        }
    }
    result->origin = max_i64(in->a->origin, 1);
}

/* x % m: the stride of x, where at least two elements lie between wraps. An m that all elements
 * share and that is no constant, such as the number of rows of a matrix, is taken for large. */
static void strides_remainder(lilac_axis_facts *result, const lilac_axis_operation *in) {
    for (uint32_t d = 0; d < result->rank; d++) {
        const bool far = in->b->constant ? magnitude(in->a->stride[d]) <= in->b->value / 2
                                         : has_stride(in->b, d) && in->b->stride[d] == 0;
        if (has_typical(in->a, d) && far) {
            derive_stride(result, d, in->a->stride[d], false);
        }
    }
}

/* x / c: 0 where at least two elements have one quotient, else a multiple of c over c. */
static void strides_quotient(lilac_axis_facts *result, const lilac_axis_operation *in) {
    for (uint32_t d = 0; d < result->rank && in->b->constant && in->b->value > 0; d++) {
        const int64_t c = in->b->value;
        if (has_typical(in->a, d) && magnitude(in->a->stride[d]) <= c / 2) {
            derive_stride(result, d, 0, false);
        } else if (has_typical(in->a, d) && in->a->stride[d] % c == 0) {
            derive_stride(result, d, in->a->stride[d] / c, false);
        }
    }
}

/* min(x, bound), max(x, bound): the stride of x. */
static void strides_extreme(lilac_axis_facts *result, const lilac_axis_operation *in) {
    for (uint32_t d = 0; d < result->rank; d++) {
        if (has_typical(in->a, d) && has_typical(in->b, d) &&
            (in->a->stride[d] == 0 || in->b->stride[d] == 0 ||
             in->a->stride[d] == in->b->stride[d])) {
            derive_stride(result, d, in->a->stride[d] == 0 ? in->b->stride[d] : in->a->stride[d],
                          false);
        }
    }
}

/* NULL: the strides of the results are not known. */
static void (*const strides_of[LILAC_TILE_OP_COUNT])(lilac_axis_facts *,
                                                     const lilac_axis_operation *) = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = strides,
#include <lilac/operations.def>
};

void lilac_axis_strides(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                        const lilac_axis_facts *const *operands) {
    const lilac_tile_type *type = op->results[index].type;
    result->stride_known = result->stride_typical = 0;
    result->origin = 1;
    if (!lilac_tile_is_tensor(type)) { /* a scalar has one coordinate */
        uniform(result, max_i64(result->divisibility[0], 1));
        return;
    }
    if (may_wrap(type) || type->rank == 0) {
        return;
    }
    if (result->constant) {
        uniform(result, power_of_two_in(result->value));
        return;
    }
    if (strides_of[op->code] != NULL) {
        lilac_axis_operation in = lilac_axis_operation_of(op, index, operands);
        strides_of[op->code](result, &in);
    }
}

void lilac_axis_join_strides(lilac_axis_facts *result, const lilac_axis_facts *a,
                             const lilac_axis_facts *b) {
    result->stride_known = result->stride_typical = 0;
    for (uint32_t d = 0; d < a->rank && d < b->rank; d++) {
        if (has_typical(a, d) && has_typical(b, d) && a->stride[d] == b->stride[d]) {
            derive_stride(result, d, a->stride[d], has_stride(a, d) && has_stride(b, d));
        }
    }
    result->origin = min_i64(max_i64(a->origin, 1), max_i64(b->origin, 1));
}
