/* Functions of f32 applied to the elements of a tensor.
 *
 *   y0 … y7 = fast(x0) … fast(x7)
 *   if any lane has rare(x0) or … or rare(x7)
 *     for i in 0 … 7
 *       yi = slow(xi) if rare(xi)
 *
 * The branch is uniform in a warp: a vote decides. Several elements have one branch, so that the
 * instructions of their fast paths interleave, and the slow path, which is long, exists once for
 * them. GROUP bounds the registers that hold the arguments until the branch. */
#include "control.h"
#include "coordinates.h"
#include "f32.h"
#include "numeric_casts.h"
#include "operations.h"

#include <string.h>

#define GROUP 8

/* ---- the functions that have a slow path ----------------------------------------------------- */

typedef struct rare_row {
    lilac_lower_function fast, rare; /* `rare`: the arguments that `fast` does not cover */
    lilac_lower_function slow;       /* of f32, or of doubles */
    bool of_doubles;
    uint32_t operands;
} rare_row;

#define ROW(name, rare, slow, of_doubles, operands)                                                \
    { lilac_lower_f32_##name, lilac_lower_f32_##rare, slow, of_doubles, operands }
static const rare_row rare_rows[] = {
    ROW(exp10, exp10_rare, lilac_lower_math_exp10, true, 1),
    ROW(expm1, expm1_rare, lilac_lower_math_expm1, true, 1),
    ROW(sinh, sinh_rare, lilac_lower_math_sinh, true, 1),
    ROW(cosh, sinh_rare, lilac_lower_math_cosh, true, 1),
    ROW(log1p, log1p_rare, lilac_lower_f32_log1p_slow, false, 1),
    ROW(pow, pow_rare, lilac_lower_math_pow, true, 2),
    ROW(powi, powi_rare, lilac_lower_math_pow, true, 2),
    ROW(ldexp, ldexp_rare, lilac_lower_f32_ldexp_slow, false, 2),
    ROW(fmod, fmod_rare, lilac_lower_math_fmod, true, 2),
    ROW(remainder, fmod_rare, lilac_lower_math_remainder, true, 2),
    ROW(lgamma, lgamma_rare, lilac_lower_math_lgamma, true, 1),
    ROW(i0, bessel_rare, lilac_lower_math_i0, true, 1),
    ROW(i1, bessel_rare, lilac_lower_math_i1, true, 1),
    ROW(sin, sincos_rare, lilac_lower_math_sin, true, 1),
    ROW(cos, sincos_rare, lilac_lower_math_cos, true, 1),
    ROW(tan, sincos_rare, lilac_lower_math_tan, true, 1),
    ROW(sinpi, sincospi_rare, lilac_lower_math_sinpi, true, 1),
    ROW(cospi, sincospi_rare, lilac_lower_math_cospi, true, 1),
    ROW(atan2, atan2_rare, lilac_lower_math_atan2, true, 2),
    ROW(asinh, asinh_rare, lilac_lower_math_asinh, true, 1),
    ROW(acosh, acosh_rare, lilac_lower_math_acosh, true, 1),
    ROW(atanh, atanh_rare, lilac_lower_math_atanh, true, 1),
    ROW(cbrt, cbrt_rare, lilac_lower_math_cbrt, true, 1),
    ROW(rcbrt, rcbrt_rare, lilac_lower_math_rcbrt, true, 1),
    ROW(hypot, length2_rare, lilac_lower_math_hypot, true, 2),
    ROW(rhypot, length2_rare, lilac_lower_math_rhypot, true, 2),
    ROW(norm3d, length3_rare, lilac_lower_math_norm3d, true, 3),
    ROW(rnorm3d, length3_rare, lilac_lower_math_rnorm3d, true, 3),
    ROW(norm4d, length4_rare, lilac_lower_math_norm4d, true, 4),
    ROW(rnorm4d, length4_rare, lilac_lower_math_rnorm4d, true, 4),
    ROW(erfc, erfc_rare, lilac_lower_math_erfc, true, 1),
    ROW(erfcx, erfcx_rare, lilac_lower_math_erfcx, true, 1),
    ROW(normcdf, normcdf_rare, lilac_lower_math_normcdf, true, 1),
    ROW(erfinv, erfinv_rare, lilac_lower_f32_erfinv_slow, false, 1),
    ROW(erfcinv, erfcinv_rare, lilac_lower_f32_erfcinv_slow, false, 1),
    ROW(normcdfinv, normcdfinv_rare, lilac_lower_f32_normcdfinv_slow, false, 1),
};

static const rare_row *rare_row_of(lilac_lower_function fast) {
    for (size_t i = 0; i < sizeof rare_rows / sizeof *rare_rows; i++) {
        if (rare_rows[i].fast == fast) {
            return &rare_rows[i];
        }
    }
    return NULL;
}

/* ---- the fast paths -------------------------------------------------------------------------- */

typedef struct element {
    lilac_simt_value in[4], out;
} element;

struct lilac_lower_f32_pending {
    lilac_lower_function fast;
    element *elements; /* an array with one entry for each element of the result */
    uint32_t count;
};

/* The result in f32, which finish() converts. */
static void compute(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                    lilac_simt_value *out) {
    struct lilac_lower_f32_pending *pending = l->f32_pending;
    math_builder k = {.l = l, .b = &l->builder};
    element e = {{0}, 0};
    for (uint32_t i = 0; i < op->operand_count; i++) {
        bool is_float = lilac_simt_type_is_float(kind(&k, in[i]));
        e.in[i] = is_float ? lilac_lower_convert(l, in[i], LILAC_SIMT_F32, LILAC_ROUND_NEAREST_EVEN)
                           : in[i];
    }
    e.out = out[0] = pending->fast(&k, e.in);
    for (uint32_t i = 0; i < pending->count; i++) {
        if (pending->elements[i].out == e.out) {
            return;
        }
    }
    pending->elements[pending->count++] = e;
}

/* ---- the slow paths -------------------------------------------------------------------------- */

/* The results of the group with those of the slow path where it is needed, in the body of the
 * branch: a loop over the elements, so that the slow path exists once. */
static void slow_path(math_builder *k, const rare_row *row, const element *group, uint32_t count,
                      lilac_simt_value *results) {
    lilac_simt_value index, initial[GROUP], next[GROUP];
    for (uint32_t i = 0; i < count; i++) {
        initial[i] = group[i].out;
    }
    lilac_simt_instruction *loop = lilac_simt_loop_begin(
        k->b, integer(k, LILAC_SIMT_I32, 0), integer(k, LILAC_SIMT_I32, count),
        integer(k, LILAC_SIMT_I32, 1), count, initial, &index);
    lilac_simt_value is[GROUP], x[4] = {0};
    for (uint32_t i = 0; i < count; i++) {
        is[i] = compare(k, LILAC_SIMT_EQ, index, integer(k, LILAC_SIMT_I32, i));
        for (uint32_t j = 0; j < row->operands; j++) {
            x[j] = i == 0 ? group[i].in[j] : choose(k, is[i], group[i].in[j], x[j]);
        }
    }
    lilac_simt_value result =
        row->of_doubles ? lilac_lower_by_function(k->l, row->slow, row->operands, LILAC_SIMT_F32, x)
                        : row->slow(k, x);
    lilac_simt_value rare = row->rare(k, x);
    for (uint32_t i = 0; i < count; i++) {
        next[i] = choose(k, both(k, rare, is[i]), result, index + 1 + i);
    }
    lilac_simt_value first = lilac_simt_loop_end(k->b, loop, next);
    for (uint32_t i = 0; i < count; i++) {
        results[i] = first + i;
    }
}

/* Replaces the results of a group. */
static void repair(lilac_lowering *l, const rare_row *row, element *group, uint32_t count,
                   lilac_simt_value *results) {
    math_builder k = {.l = l, .b = &l->builder};
    lilac_simt_value any = 0, fast[GROUP];
    lilac_simt_type types[GROUP];
    for (uint32_t i = 0; i < count; i++) {
        lilac_simt_value rare = row->rare(&k, group[i].in);
        any = i == 0 ? rare : either(&k, any, rare);
        fast[i] = results[i] = group[i].out;
        types[i] = LILAC_SIMT_F32;
    }
    uint64_t bits;
    if (lilac_simt_is_constant(l->kernel, any, &bits) && bits == 0) {
        return;
    }
    lilac_simt_value slow[GROUP];
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(k.b, lilac_simt_any_lane(&l->builder, any), count, types);
    slow_path(&k, row, group, count, slow);
    lilac_simt_if_else(k.b, branch, slow);
    lilac_simt_value first = lilac_simt_if_end(k.b, branch, fast);
    for (uint32_t i = 0; i < count; i++) {
        results[i] = first + i;
    }
}

/* ---- all elements ---------------------------------------------------------------------------- */

/* The registers in the type of the result, with the results of the slow path. */
static void finish(lilac_lowering *l, lilac_lower_value *value,
                   const struct lilac_lower_f32_pending *pending, const lilac_simt_value *results) {
    uint32_t at = 0;
    for (uint32_t r = 0; r < value->count; r++) {
        for (uint32_t i = 0; pending->elements[at].out != value->base[r] && i < pending->count;
             i++) {
            at = at + 1 < pending->count ? at + 1 : 0;
        }
        value->base[r] = lilac_lower_convert(l, results[at], value->simt, LILAC_ROUND_NEAREST_EVEN);
    }
}

bool lilac_lower_f32_elements(lilac_lowering *l, const lilac_tile_op *op,
                              lilac_lower_function fast) {
    const lilac_lower_view *view = NULL;
    if (lilac_tile_is_tensor(op->results[0].type)) {
        view = lilac_lower_view_of(l, op->results[0].type);
        if (view == NULL) {
            return false;
        }
    }
    uint32_t elements = view == NULL ? 1 : view->count;
    struct lilac_lower_f32_pending pending = {fast, lilac_arena_array(l->arena, element, elements),
                                              0};
    l->f32_pending = &pending;
    bool good = lilac_lower_elementwise(l, op, compute);
    l->f32_pending = NULL;
    if (!good) {
        return false;
    }
    const rare_row *row = rare_row_of(fast);
    lilac_simt_value *results = lilac_arena_array(l->arena, lilac_simt_value, pending.count);
    for (uint32_t i = 0; i < pending.count; i += GROUP) {
        uint32_t count = pending.count - i < GROUP ? pending.count - i : GROUP;
        if (row != NULL) {
            repair(l, row, pending.elements + i, count, results + i);
        }
        for (uint32_t j = 0; row == NULL && j < count; j++) {
            results[i + j] = pending.elements[i + j].out;
        }
    }
    finish(l, &l->values[op->results[0].id], &pending, results);
    return true;
}
