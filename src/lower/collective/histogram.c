/* tt.histogram: counts of the numbers 0 … n-1, between any layouts.
 *
 *     counts in shared memory = 0 ‖ barrier ‖ one atomic add for each element ‖ barrier ‖ loads
 *
 * Executes the plan (src/plan/collective/histogram.c). One holder of each element counts it.
 * Elements that the mask excludes and numbers outside the bins are not counted. */
#include "collective/region.h"
#include "convert_layout.h"
#include "executed_plans.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "operations.h"

static lilac_simt_value word(lilac_lowering *l, int64_t number) {
    return lilac_lower_integer(l, LILAC_SIMT_I32, number);
}

static lilac_simt_value shared_base(lilac_lowering *l) {
    lilac_simt_instruction like = {.code = LILAC_SIMT_OP_SHARED_BASE};
    lilac_simt_type type = LILAC_SIMT_I32;
    return lilac_simt_build(&l->builder, &like, 0, NULL, 1, &type);
}

static void clear(lilac_lowering *l, const lilac_plan_histogram *plan, uint32_t scratch,
                  const lilac_simt_instruction *promise) {
    lilac_simt_builder *b = &l->builder;
    uint32_t threads = l->target->arch->warp_size * plan->num_warps, vector = plan->clear_vector;
    const lilac_simt_value zero = word(l, 0), zeros[4] = {zero, zero, zero, zero};
    lilac_simt_value thread = lilac_simt_thread(b);
    lilac_simt_value inside = 0;
    if (plan->clear_threads < threads) {
        inside = lilac_simt_compare_values(b, LILAC_SIMT_ULT, thread, word(l, plan->clear_threads));
    }
    lilac_simt_value offset =
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I32, thread, word(l, 4 * vector));
    lilac_simt_value address =
        lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, shared_base(l), offset);
    for (uint32_t start = 0; start < plan->bins; start += threads * vector) {
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_ST_SHARED,
                                           .type = LILAC_SIMT_I32,
                                           .count = vector,
                                           .address = address,
                                           .offset = (int64_t)scratch + 4 * start,
                                           .predicate = inside,
                                           .modifiers = promise};
        lilac_lower_store_vector(l, &access, zeros);
    }
}

/* The number as a bin, and whether it is one. */
static lilac_simt_value bin_of(lilac_lowering *l, lilac_simt_value number, uint32_t bins,
                               lilac_simt_value *inside) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, number);
    uint32_t bits = lilac_simt_type_bits(type);
    *inside = 0;
    if (bits < 32) {
        number = lilac_simt_op1(b, LILAC_SIMT_OP_ZEXT, LILAC_SIMT_I32, number);
        type = LILAC_SIMT_I32;
    }
    if (bits >= 32 || bins < 1U << bits) {
        *inside = lilac_simt_compare_values(b, LILAC_SIMT_ULT, number,
                                            lilac_lower_integer(l, type, bins));
    }
    return bits == 64 ? lilac_simt_op1(b, LILAC_SIMT_OP_TRUNC, LILAC_SIMT_I32, number) : number;
}

static void count(lilac_lowering *l, const lilac_lower_value *numbers,
                  const lilac_simt_value *masks, uint32_t bins, uint32_t scratch,
                  const lilac_simt_instruction *promise) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_view *view = numbers->view;
    lilac_simt_value own = lilac_lower_elect_holder(l, view->columns.free_threads, 0);
    lilac_simt_value one = word(l, 1);
    lilac_simt_instruction adds = *promise;
    adds.scope = LILAC_SIMT_SCOPE_BLOCK;
    for (uint32_t r = 0; r < view->count; r++) {
        if (view->canonical[r] != r) {
            continue;
        }
        lilac_simt_value inside;
        lilac_simt_value bin = bin_of(l, lilac_lower_get(l, numbers, r), bins, &inside);
        lilac_simt_value offset =
            lilac_simt_op2(b, LILAC_SIMT_OP_SHL, LILAC_SIMT_I32, bin, word(l, 2));
        lilac_simt_value address =
            lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, shared_base(l), offset);
        (void)lilac_simt_atomic_op(
            b, LILAC_SIMT_OP_ATOMIC_SHARED, LILAC_SIMT_ATOMIC_ADD, 1, &one, address, scratch,
            lilac_lower_both(l, lilac_lower_both(l, own, masks[r]), inside), false, &adds);
    }
}

static void read_counts(lilac_lowering *l, lilac_lower_value *to, uint32_t scratch,
                        const lilac_simt_instruction *promise) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_view *view = to->view;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t bits = lilac_simt_type_bits(to->simt);
    for (uint32_t i = 0; i < view->columns.thread_bits; i++) {
        columns[i] = view->columns.threads[i] << 2;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, view->columns.thread_bits, columns);
    for (uint32_t r = 0; r < view->count; r++) {
        if (view->canonical[r] != r) {
            to->base[r] = to->base[view->canonical[r]];
            continue;
        }
        int64_t immediate;
        lilac_simt_value address =
            lilac_lower_address_of(l, &a, view->coordinates[r] << 2, &immediate);
        lilac_simt_value counted;
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = LILAC_SIMT_I32,
                                           .count = 1,
                                           .address = address,
                                           .offset = immediate + scratch,
                                           .modifiers = promise};
        lilac_lower_load_vector(l, &access, NULL, &counted);
        to->base[r] = bits == 32
                          ? counted
                          : lilac_simt_op1(b, bits > 32 ? LILAC_SIMT_OP_ZEXT : LILAC_SIMT_OP_TRUNC,
                                           to->simt, counted);
    }
}

bool lilac_lower_histogram(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *numbers = lilac_lower_operand(l, op, 0);
    lilac_lower_value *to = lilac_lower_result(l, op, 0);
    if (to == NULL) {
        return false;
    }
    lilac_plan_histogram *plan = lilac_arena_new(l->arena, lilac_plan_histogram);
    lilac_reason why = {0};
    if (!lilac_plan_histogram_init_columns(plan, &numbers->view->columns, &to->view->columns,
                                           l->target, &why)) {
        return plan->bytes > 0 ? lilac_lower_refuse(l, "too-much-shared-memory", "%s", why.text)
                               : lilac_lower_unsupported(l, "%s", why.text);
    }
    lilac_lower_note_histogram(l, plan);
    const lilac_lower_value *mask = lilac_lower_operand(l, op, 1);
    lilac_simt_value *masks = lilac_arena_array(l->arena, lilac_simt_value, numbers->view->count);
    if (mask != NULL && !lilac_lower_read_as(l, mask, numbers->view, masks)) {
        return false;
    }
    uint32_t scratch = lilac_lower_scratch(l, plan->bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch,
                                      .shared_end = (uint32_t)(scratch + plan->bytes)};
    lilac_lower_barrier(l);
    clear(l, plan, scratch, &promise);
    lilac_lower_barrier(l);
    count(l, numbers, masks, plan->bins, scratch, &promise);
    lilac_lower_barrier(l);
    read_counts(l, to, scratch, &promise);
    return true;
}
