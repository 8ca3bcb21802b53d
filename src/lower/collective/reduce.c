/* tt.reduce with any combine region, over several operands at once.
 *
 * The plan (src/plan/collective/reduce.c) says which bits of registers, lanes and warps are
 * combined. Each bit is combined in its own way:
 *
 *   register   the thread's values, as a tree
 *   lane       butterflies: shuffle by xor with the bit (and the lane bits that cancel)
 *   warp       one lane for each element writes its warp's partial result to shared memory; after a
 *              barrier every thread reads all partials of its elements (reduce_shared.c)
 *
 * Before shared memory no two lanes need the same partials. So a butterfly of a thread with
 * several elements lets each lane of a pair finish half of them. This halves the shuffles, the
 * combining and the stores of each lane:
 *
 *      lane 0:  a b          a of both          lane 0 sends b and keeps a,
 *      lane 1:  a b    ──▶   b of both          lane 1 sends a and keeps b
 *
 * Otherwise all lanes of a butterfly end with the result. If the combine region is not commutative,
 * they copy the bits of one lane. */
#include "reduce.h"
#include "collective/region.h"
#include "convert_layout.h"
#include "executed_plans.h"
#include "memory/access.h"
#include "operations.h"

#include <string.h>

/* ---- combining --------------------------------------------------------------------------- */

bool lilac_reduce_combine_tree(const lilac_reduction *r, lilac_simt_value *elements,
                               uint32_t count) {
    uint32_t stride = r->operands;
    for (uint32_t distance = 1; distance < count; distance *= 2) {
        for (uint32_t i = 0; i < count; i += 2 * distance) {
            if (!lilac_lower_combine(r->l, r->op, elements + (size_t)i * stride,
                                     elements + (size_t)(i + distance) * stride)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- registers --------------------------------------------------------------------------- */

/* Combines the registers of each group into one element.
 *
 * The tree of lilac_reduce_combine_tree, but in the order of the registers, all groups in parallel
 * or one group after the other, as the plan says. A partial of 2^k registers is kept until its
 * neighbour is complete. For each group at most one partial of each depth of the tree is kept. */
static lilac_simt_value *fold_registers(const lilac_reduction *r) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t groups = 1U << p->group_bits, folds = 1U << p->fold_bits, n = r->operands;
    uint32_t levels = p->fold_bits + 1;
    lilac_simt_value *results = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    lilac_simt_value *waiting =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * levels * n);
    for (uint32_t k = 0; k < groups * folds; k++) {
        uint32_t g = p->group_major ? k / folds : k % groups;
        uint32_t t = p->group_major ? k % folds : k / groups;
        lilac_simt_value *own = waiting + (size_t)g * levels * n,
                         *element = results + (size_t)g * n;
        uint32_t number = 0, level = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            number |= (g >> i & 1) << p->group_register[i];
        }
        for (uint32_t i = 0; i < p->fold_bits; i++) {
            number ^= t >> i & 1 ? p->fold_masks[i] : 0;
        }
        for (uint32_t i = 0; i < n; i++) {
            element[i] = lilac_lower_get(l, lilac_lower_operand(l, r->op, i), number);
        }
        for (; t >> level & 1; level++) {
            if (!lilac_lower_combine(l, r->op, own + (size_t)level * n, element)) {
                return NULL;
            }
            memcpy(element, own + (size_t)level * n, n * sizeof *element);
        }
        memcpy(own + (size_t)level * n, element, n * sizeof *element);
    }
    return results;
}

/* ---- lanes ------------------------------------------------------------------------------- */

/* A butterfly after which each lane has the elements with one setting of a group bit. The lane
 * sends the elements with the other setting to its partner. `groups`: mask of the remaining
 * group bits. */
static bool give_lanes(const lilac_reduction *r, uint32_t step, uint32_t groups,
                       lilac_simt_value mask, lilac_simt_value *elements,
                       lilac_simt_value *others) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t n = r->operands, count = 0, bit = p->give_group[p->lane_steps - 1 - step];
    uint64_t column[LILAC_LAYOUT_MAX_BITS] = {0};
    column[p->lane_pivots[step]] = 1;
    lilac_simt_value zero = lilac_simt_constant(&l->builder, LILAC_SIMT_I32, 0);
    lilac_simt_value upper = lilac_simt_compare_values(
        &l->builder, LILAC_SIMT_NE,
        lilac_lower_linear(&l->builder, p->source.thread_bits, column, 0, NULL), zero);
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (g & ~groups || g >> bit & 1) {
            continue;
        }
        lilac_simt_value *low = elements + (size_t)g * n;
        lilac_simt_value *high = elements + (size_t)(g | 1U << bit) * n;
        for (uint32_t i = 0; i < n; i++) {
            others[(size_t)count * n + i] = lilac_lower_select(l, upper, low[i], high[i]);
            low[i] = lilac_lower_select(l, upper, high[i], low[i]);
        }
        count++;
    }
    for (uint32_t i = 0; i < n; i++) {
        lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, count, n, others + i, others + i);
    }
    count = 0;
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (!(g & ~groups) && !(g >> bit & 1) &&
            !lilac_lower_combine(l, r->op, elements + (size_t)g * n,
                                 others + (size_t)count++ * n)) {
            return false;
        }
    }
    return true;
}

/* Afterwards only those elements are valid whose group has no bit of an earlier exchange set. */
static bool fold_lanes(const lilac_reduction *r, lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t groups = 1U << p->group_bits, n = r->operands;
    lilac_simt_value *others = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    uint32_t left = groups - 1;
    for (uint32_t step = p->lane_steps; step-- > 0;) {
        lilac_simt_value mask =
            lilac_simt_constant(&l->builder, LILAC_SIMT_I32, p->lane_masks[step]);
        uint32_t number = p->lane_steps - 1 - step;
        if (number < p->give_steps) {
            if (!give_lanes(r, step, left, mask, elements, others)) {
                return false;
            }
            left &= ~(1U << p->give_group[number]);
            continue;
        }
        /* All groups that are left, or, where any were given, there is but one. */
        uint32_t count = left == groups - 1 ? groups : 1;
        for (uint32_t i = 0; i < n; i++) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, count, n, elements + i,
                                    others + i);
        }
        for (uint32_t g = 0; g < count; g++) {
            if (!lilac_lower_combine(l, r->op, elements + (size_t)g * n, others + (size_t)g * n)) {
                return false;
            }
        }
    }
    return true;
}

void lilac_reduce_agree(const lilac_reduction *r, const uint64_t *columns, uint32_t count,
                        lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    uint32_t n = r->operands;
    lilac_simt_value lane =
        lilac_lower_linear(&l->builder, r->plan->source.lane_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (!r->plan->region.operands[i].commutative) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_IDX, lane, count, n, elements + i,
                                    elements + i);
        }
    }
}

/* Of the butterflies' lanes, the one whose pivots are 0. */
static void agree(const lilac_reduction *r, lilac_simt_value *elements) {
    const lilac_plan_reduce *p = r->plan;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->source.lane_bits; i++) {
        columns[i] = 1ULL << i;
    }
    for (uint32_t step = 0; step < p->lane_steps; step++) {
        uint32_t pivot = p->lane_pivots[step];
        columns[pivot] = p->lane_masks[step] ^ (1ULL << pivot);
    }
    lilac_reduce_agree(r, columns, 1U << p->group_bits, elements);
}

/* ---- results ----------------------------------------------------------------------------- */

bool lilac_reduce_take_results(const lilac_reduction *r, const lilac_lower_view *from,
                               uint32_t count, const lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count);
    lilac_plan_conversion *plan = NULL;
    uint32_t planned_bytes = 0;
    for (uint32_t i = 0; i < r->operands; i++) {
        const lilac_lower_conversion conversion = {r->results[i]->simt, from, r->result, values,
                                                   r->results[i]->base};
        const uint32_t bytes = lilac_lower_memory_bytes(conversion.type);
        for (uint32_t k = 0; k < count; k++) {
            values[k] = elements[(size_t)k * r->operands + i];
        }
        if (from == r->result) {
            memcpy(r->results[i]->base, values, count * sizeof *values);
            continue;
        }
        if (bytes != planned_bytes) {
            lilac_reason why = {0};
            plan = lilac_arena_new(l->arena, lilac_plan_conversion);
            if (!lilac_plan_reduce_conversion(plan, r->plan, i, &why)) {
                return lilac_lower_refuse_conversion(l, &why);
            }
            planned_bytes = bytes;
        }
        if (!lilac_lower_execute_conversion(l, plan, &conversion)) {
            return false;
        }
    }
    return true;
}

/* The results where no partials went through shared memory: groups of the same thread, or of others
 * by a conversion. */
static bool take_groups(const lilac_reduction *r, const lilac_simt_value *elements) {
    const lilac_plan_reduce *p = r->plan;
    if (p->moves) {
        lilac_layout_columns groups;
        if (!lilac_plan_reduce_finished(p, &groups)) {
            return false;
        }
        const lilac_lower_view *view = lilac_lower_view_of_columns(r->l, &groups);
        return lilac_reduce_take_results(r, view, view->count, elements);
    }
    for (uint32_t k = 0; k < r->results[0]->count; k++) {
        uint32_t group = 0;
        for (uint32_t i = 0; i < p->result.register_bits; i++) {
            group ^= k >> i & 1 ? p->result_group[i] : 0;
        }
        for (uint32_t i = 0; i < r->operands; i++) {
            r->results[i]->base[k] = elements[(size_t)group * r->operands + i];
        }
    }
    return true;
}

/* ---- the whole --------------------------------------------------------------------------- */

/* Makes the results, and refuses operands and results that differ in their layouts. */
static bool open_results(lilac_reduction *r, const lilac_lower_view *source) {
    lilac_lowering *l = r->l;
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, r->operands);
    for (uint32_t i = 0; i < r->operands; i++) {
        results[i] = lilac_lower_result(l, r->op, i);
        if (results[i] == NULL) {
            return false;
        }
        r->result = results[0]->view;
        bool operand_differs = lilac_lower_operand(l, r->op, i)->view != source;
        if (operand_differs || results[i]->view != r->result) {
            const char *side = operand_differs ? "operand" : "result";
            return lilac_lower_refuse(l, "layout-conversion",
                                      "%s %u of the reduction has another layout than %s 0", side,
                                      i, side);
        }
    }
    r->results = results;
    return true;
}

/* Each block reduces its own elements. Refuses a result that assigns a block other coordinates than its part of
 * the operand has: these are sums of the block's column and of columns of registers and threads. */
static bool check_blocks(const lilac_reduction *r) {
    const lilac_plan_reduce *p = r->plan;
    const lilac_layout_columns *source = &p->source, *result = &p->result;
    lilac_f2_basis held;
    bool good = true;
    if (p->scalar || source->block_bits == 0) {
        return true;
    }
    lilac_f2_basis_init(&held);
    for (uint32_t i = 0; i < source->register_bits; i++) {
        (void)lilac_f2_basis_add(&held, lilac_plan_reduce_kept(p, source->registers[i]), 0);
    }
    for (uint32_t i = 0; i < source->thread_bits; i++) {
        (void)lilac_f2_basis_add(&held, lilac_plan_reduce_kept(p, source->threads[i]), 0);
    }
    for (uint32_t i = 0; i < source->block_bits; i++) {
        const uint64_t kept = lilac_plan_reduce_kept(p, source->blocks[i]);
        if (kept != result->blocks[i]) {
            return lilac_lower_refuse(
                r->l, "layout-conversion",
                "bit %u of the block's rank selects coordinate %llu in the reduced operand and "
                "%llu in the result; a reduction moves no element between blocks",
                i, (unsigned long long)kept, (unsigned long long)result->blocks[i]);
        }
    }
    for (uint32_t i = 0; i < result->register_bits; i++) {
        good = good && lilac_f2_basis_contains(&held, result->registers[i]);
    }
    for (uint32_t i = 0; i < result->thread_bits; i++) {
        good = good && lilac_f2_basis_contains(&held, result->threads[i]);
    }
    return good ||
           lilac_lower_refuse(r->l, "layout-conversion",
                              "a block has elements of the result whose parts are in another "
                              "block; a reduction moves no element between blocks");
}

static bool make_plan(lilac_reduction *r, lilac_plan_reduce *plan, const lilac_lower_view *source) {
    lilac_lowering *l = r->l;
    lilac_plan_region region;
    lilac_reason why = {0};
    uint32_t axis;
    if (source == NULL || !lilac_lower_read_axis(l, r->op, source, &axis) ||
        !lilac_lower_check_results(l, r->op) || !open_results(r, source)) {
        return false;
    }
    lilac_engine_region(&region, l->arena, r->op);
    region.scratch_bytes = lilac_lower_scratch_limit(l);
    if (!lilac_plan_reduce_init_columns(plan, &source->columns,
                                        r->result != NULL ? &r->result->columns : NULL, axis,
                                        &region, l->target, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    r->plan = plan;
    lilac_lower_note_reduction(l, plan);
    return check_blocks(r);
}

bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_plan_reduce *plan = lilac_arena_new(l->arena, lilac_plan_reduce);
    lilac_reduction r = {.l = l, .op = op, .operands = op->operand_count};
    if (!make_plan(&r, plan, lilac_lower_view_of(l, lilac_tile_operand(op, 0)->type))) {
        return false;
    }
    lilac_simt_value *elements = fold_registers(&r);
    if (elements == NULL || !fold_lanes(&r, elements)) {
        return false;
    }
    if (plan->slot_bits > 0) {
        if (!lilac_reduce_through_shared(&r, elements)) {
            return false;
        }
    } else {
        if (plan->lane_steps > 0) {
            agree(&r, elements);
        }
        if (!take_groups(&r, elements)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < r.operands && plan->scalar; i++) {
        lilac_simt_mark_uniform(l->kernel, r.results[i]->base[0]);
    }
    return true;
}
