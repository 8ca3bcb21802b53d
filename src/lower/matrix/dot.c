/* tt.dot: products of tensors in registers, by mma.sync or by fused multiply-adds.
 *
 *     for each step of K
 *         for each block of D that one instruction computes
 *             D  ←  instruction(words of A at its rows, words of B at its columns, D)
 *
 * The plan (lilac/dot.h) is made from the layouts of the operands and the result. */
#include "executed_plans.h"
#include "matrix/fragments.h"
#include "numeric_casts.h"
#include "operations.h"

#include <lilac/simt_matrix.h>

enum { MOST_ACCUMULATORS = 8, MOST_WORDS = 8, BATCH = 2 };

/* ---- fused multiply-adds ------------------------------------------------------------------ */

/* The type in which a product is added up. */
static lilac_simt_type sum_type(lilac_simt_type d) {
    return d == LILAC_SIMT_F64 ? d : lilac_simt_type_is_float(d) ? LILAC_SIMT_F32 : LILAC_SIMT_I32;
}

static lilac_simt_value widen(lilac_lowering *l, lilac_simt_value value, lilac_simt_type from,
                              lilac_simt_type to) {
    if (lilac_simt_type_is_float(to)) {
        return lilac_lower_convert(l, value, to, LILAC_ROUND_NEAREST_EVEN);
    }
    return from == to ? value : lilac_simt_op1(&l->builder, LILAC_SIMT_OP_SEXT, to, value);
}

/* One element of D: the sum over K in its order. */
static bool sum_products(const lilac_lower_dot *dot, uint32_t r, lilac_simt_value *result) {
    lilac_lowering *l = dot->l;
    const lilac_layout_columns *d = &dot->d->view->columns;
    const lilac_layout_columns *a = &dot->a.value->view->columns;
    const lilac_layout_columns *b = &dot->b.value->view->columns;
    const uint64_t flat = dot->d->view->coordinates[r];
    const uint64_t batch = lilac_plan_dot_coordinate(d, flat, BATCH);
    const lilac_simt_type type = sum_type(dot->d->simt);
    lilac_simt_value sum = widen(l, lilac_lower_get(l, dot->c, r), dot->d->simt, type);
    for (uint32_t s = 0; s >> dot->plan->step_bits == 0; s++) {
        const uint64_t k = lilac_lower_dot_step(dot->plan, s);
        uint32_t in_a, in_b;
        if (!lilac_lower_lookup_register(
                &dot->a, lilac_plan_dot_flat(a, batch, lilac_plan_dot_coordinate(d, flat, 0), k),
                &in_a) ||
            !lilac_lower_lookup_register(
                &dot->b, lilac_plan_dot_flat(b, batch, k, lilac_plan_dot_coordinate(d, flat, 1)),
                &in_b)) {
            return lilac_lower_refuse(l, "layout-conversion",
                                      "the layouts of A and B do not give each thread the rows and "
                                      "columns that its elements of the result need");
        }
        const lilac_simt_value x =
            widen(l, lilac_lower_get(l, dot->a.value, in_a), dot->a.value->simt, type);
        const lilac_simt_value y =
            widen(l, lilac_lower_get(l, dot->b.value, in_b), dot->b.value->simt, type);
        if (lilac_simt_type_is_float(type)) {
            sum = lilac_simt_op3(&l->builder, LILAC_SIMT_OP_FFMA, type, x, y, sum);
        } else {
            sum = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, type, sum,
                                 lilac_simt_op2(&l->builder, LILAC_SIMT_OP_MUL, type, x, y));
        }
    }
    *result = lilac_simt_type_is_float(type)
                  ? lilac_lower_convert(l, sum, dot->d->simt, LILAC_ROUND_NEAREST_EVEN)
                  : sum;
    return true;
}

static bool lower_fma(const lilac_lower_dot *dot, bool is_step) {
    lilac_lowering *l = dot->l;
    const bool floats = lilac_simt_type_is_float(dot->d->simt);
    if (lilac_simt_type_is_float(dot->a.value->simt) != floats ||
        lilac_simt_type_is_float(dot->b.value->simt) != floats) {
        return lilac_lower_unsupported(l, "the device has no matrix instruction for its types, and "
                                          "multiply-adds have none for them either");
    }
    for (uint32_t r = 0; r < dot->d->count; r++) {
        if ((r & ~dot->d->view->columns.distinct) == 0 && !sum_products(dot, r, &dot->d->base[r])) {
            return false;
        }
    }
    lilac_lower_replicate(dot->d->view, dot->d->base);
    if (is_step) {
        lilac_simt_schedule_accesses(&l->builder);
    }
    return true;
}

/* ---- mma ------------------------------------------------------------------------------------ */

/* Lanes whose inner indices are beyond K. */
static lilac_simt_value find_idle_lanes(lilac_lowering *l, const lilac_plan_dot *plan) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < 2; i++) {
        mask |= plan->inner[plan->word_bits + i] == 0 ? UINT64_C(1) << i : 0;
    }
    if (mask == 0) {
        return 0;
    }
    lilac_simt_builder *b = &l->builder;
    const uint64_t columns[2] = {mask & 1, mask & 2};
    const lilac_simt_value zero = lilac_simt_constant(b, LILAC_SIMT_I32, 0);
    return lilac_simt_compare_values(b, LILAC_SIMT_NE, lilac_lower_linear(b, 2, columns, 0, NULL),
                                     zero);
}

/* Adds one step of K to the accumulators of one instruction. */
static bool multiply(const lilac_lower_dot *dot, const lilac_simt_matrix_payload *payload,
                     uint32_t base, uint64_t inner) {
    const lilac_layout_columns *d = &dot->d->view->columns;
    const uint64_t flat = dot->d->view->coordinates[base];
    const uint64_t batch = lilac_plan_dot_coordinate(d, flat, BATCH);
    lilac_simt_value a[MOST_WORDS], b[MOST_WORDS], c[MOST_ACCUMULATORS];
    if (!lilac_lower_dot_words(dot, true, batch, lilac_plan_dot_coordinate(d, flat, 0), inner, a) ||
        !lilac_lower_dot_words(dot, false, batch, lilac_plan_dot_coordinate(d, flat, 1), inner,
                               b)) {
        return false;
    }
    lilac_lower_dot_gather(dot, dot->d->base, base, c);
    const lilac_simt_value first = lilac_simt_mma(&dot->l->builder, payload, a, b, c);
    for (uint32_t i = 0; i < MOST_ACCUMULATORS; i++) {
        c[i] = first + i;
    }
    lilac_lower_dot_scatter(dot, c, base, dot->d->base);
    return true;
}

static bool lower_mma(lilac_lower_dot *dot) {
    lilac_simt_matrix_payload payload = lilac_lower_dot_payload(dot->plan);
    payload.saturate =
        payload.d == LILAC_MATRIX_S32; /* as Triton's; wgmma wraps as its wgmma does */
    const uint32_t blocks = dot->d->view->columns.distinct & ~dot->plan->instruction_registers;
    dot->idle = find_idle_lanes(dot->l, dot->plan);
    for (uint32_t r = 0; r < dot->d->count; r++) {
        dot->d->base[r] = lilac_lower_get(dot->l, dot->c, r);
    }
    for (uint32_t s = 0; s >> dot->plan->step_bits == 0; s++) {
        const uint64_t inner = lilac_lower_dot_step(dot->plan, s);
        for (uint32_t i = 0; i >> __builtin_popcount(blocks) == 0; i++) {
            if (!multiply(dot, &payload, lilac_lower_deposit(i, blocks), inner)) {
                return false;
            }
        }
    }
    lilac_lower_replicate(dot->d->view, dot->d->base);
    return true;
}

/* ---- the operation -------------------------------------------------------------------------- */

bool lilac_lower_dot_product(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0);
    const lilac_lower_value *b = lilac_lower_operand(l, op, 1);
    const lilac_lower_value *c = lilac_lower_operand(l, op, 2);
    lilac_lower_value *d = lilac_lower_result(l, op, 0);
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_plan_dot plan;
    lilac_reason why = {"its operands have no layouts"};
    if (d == NULL) {
        return false;
    }
    if (!lilac_engine_dot_problem(&problem, op, l->target, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    const lilac_plan_dot_unit unit = lilac_plan_dot_choose(&shape, &problem, l->target);
    if (a->view == NULL || b->view == NULL || d->view == NULL || c->view != d->view ||
        !lilac_plan_dot_init(&plan, &problem, unit, &shape, &a->view->columns, &b->view->columns,
                             &d->view->columns, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    lilac_lower_note_dot(l, &plan, &problem, (const lilac_plan_dot_memory *const[2]){NULL, NULL});
    lilac_lower_dot dot = {.l = l, .plan = &plan, .c = c, .d = d};
    lilac_lower_lookup_init(&dot.a, a);
    lilac_lower_lookup_init(&dot.b, b);
    if (unit == LILAC_PLAN_DOT_FMA) {
        return lower_fma(&dot, lilac_tile_find(&op->attributes, "lilac.step") != NULL);
    }
    return lower_mma(&dot);
}
