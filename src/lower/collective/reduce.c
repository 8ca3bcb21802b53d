/* tt.reduce with any combine region, over several operands at once.
 *
 * The plan (reduce_plan.c) states which bits of registers, lanes and warps are combined. Each bit is
 * combined in its own way:
 *
 *   register   the thread's values, as a tree
 *   lane       butterflies: shuffle by xor with the bit (and the lane bits that cancel)
 *   warp       one lane for each element writes its warp's partial result to shared memory; after a
 *              barrier every thread reads all partials of its elements (reduce_shared.c)
 *
 * Before shared memory no two lanes need the same partials. So a butterfly of a thread with several
 * elements lets each lane of a pair finish half of them. This halves the shuffles, the combining and
 * the stores of each lane:
 *
 *      lane 0:  a b          a of both          lane 0 sends b and keeps a,
 *      lane 1:  a b    ──▶   b of both          lane 1 sends a and keeps b
 *
 * Otherwise all lanes of a butterfly end with the result. If the combine region is not commutative,
 * they copy the bits of one lane. */
#include "reduce.h"
#include "collective/region.h"
#include "convert_layout.h"
#include "operations.h"

#include <string.h>

/* ---- combining --------------------------------------------------------------------------- */

bool lilac_reduce_combine_tree(lilac_lowering *l, const lilac_tile_op *op,
                               lilac_simt_value *elements, uint32_t count) {
    uint32_t stride = op->operand_count;
    for (uint32_t apart = 1; apart < count; apart *= 2) {
        for (uint32_t i = 0; i < count; i += 2 * apart) {
            if (!lilac_lower_combine(l, op, elements + (size_t)i * stride,
                                     elements + (size_t)(i + apart) * stride)) {
                return false;
            }
        }
    }
    return true;
}

/* Is the result one commutative operation of its own two elements? Then partners in a butterfly get
 * the same bits; otherwise which of them was first may show. */
static bool is_commutative(const lilac_tile_op *op, uint32_t i) {
    const lilac_tile_block *block = op->regions[0]->first;
    const lilac_tile_op *end = block->last;
    const lilac_tile_op *made_by = i < end->operand_count ? end->operands[i].value->op : NULL;
    if (made_by == NULL || made_by->parent != block || made_by->operand_count != 2 ||
        !(lilac_tile_op_info_get(made_by->code)->traits & LILAC_TILE_COMMUTATIVE)) {
        return false;
    }
    const lilac_tile_value *first = made_by->operands[0].value;
    const lilac_tile_value *second = made_by->operands[1].value;
    const lilac_tile_value *a = block->arguments[i];
    const lilac_tile_value *b = block->arguments[i + op->operand_count];
    return (first == a && second == b) || (first == b && second == a);
}

/* ---- registers --------------------------------------------------------------------------- */

/* Words of a thread's elements up to which all of them may wait in registers, and from which on
 * they keep ptxas from reading ahead unless they do. */
#define MOST_WORDS 128
#define MANY_WORDS 64

/* One element for each group.
 *
 * The tree of lilac_reduce_combine_tree, but in the order in which registers come, all groups side
 * by side: as a binary counter counts, partials of 2^k registers wait for their neighbours. So what
 * is loaded first is taken up first, and of a group no more wait than the tree is deep.
 *
 * Of vectors that hold several groups, many of them, ptxas then reads few ahead, to save registers.
 * As long as there is room for all, one group is finished after the other: the first needs every
 * vector, and all are on their way at once. */
static lilac_simt_value *fold_registers(lilac_lowering *l, const lilac_tile_op *op,
                                        const lilac_reduce_plan *p) {
    uint32_t groups = 1U << p->group_bits, folds = 1U << p->fold_bits, n = p->operands;
    uint32_t levels = p->fold_bits + 1;
    uint32_t words = groups * folds * lilac_tile_element_bits(op->operands[0].value->type) / 32;
    bool one_by_one = words > MANY_WORDS && words <= MOST_WORDS;
    lilac_simt_value *results = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    lilac_simt_value *waiting =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * levels * n);
    for (uint32_t k = 0; k < groups * folds; k++) {
        uint32_t g = one_by_one ? k / folds : k % groups, t = one_by_one ? k % folds : k / groups;
        lilac_simt_value *own = waiting + (size_t)g * levels * n,
                         *element = results + (size_t)g * n;
        uint32_t r = 0, level = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            r |= (g >> i & 1) << p->group_register[i];
        }
        for (uint32_t i = 0; i < p->fold_bits; i++) {
            r ^= t >> i & 1 ? p->fold_masks[i] : 0;
        }
        for (uint32_t i = 0; i < n; i++) {
            element[i] = lilac_lower_get(l, lilac_lower_operand(l, op, i), r);
        }
        for (; t >> level & 1; level++) {
            if (!lilac_lower_combine(l, op, own + (size_t)level * n, element)) {
                return NULL;
            }
            memcpy(element, own + (size_t)level * n, n * sizeof *element);
        }
        memcpy(own + (size_t)level * n, element, n * sizeof *element);
    }
    return results;
}

/* ---- lanes ------------------------------------------------------------------------------- */

/* A butterfly after which each lane has the elements with one setting of a bit of the groups: those
 * with the other setting go to its partner. */
static bool give_lanes(lilac_lowering *l, const lilac_tile_op *op, const lilac_reduce_plan *p,
                       uint32_t step, uint32_t groups, uint32_t bit, lilac_simt_value mask,
                       lilac_simt_value *elements, lilac_simt_value *others) {
    uint32_t n = p->operands, count = 0;
    uint64_t column[LILAC_LAYOUT_MAX_BITS] = {0};
    column[p->lane_pivots[step]] = 1;
    lilac_simt_value upper = lilac_simt_compare_values(
        &l->builder, LILAC_SIMT_NE,
        lilac_lower_linear(&l->builder, p->in->thread_bits, column, 0, NULL),
        lilac_simt_constant(&l->builder, LILAC_SIMT_I32, 0));
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
            !lilac_lower_combine(l, op, elements + (size_t)g * n, others + (size_t)count++ * n)) {
            return false;
        }
    }
    return true;
}

/* Elements whose group has a bit set that was given away are no longer there. */
static bool fold_lanes(lilac_lowering *l, const lilac_tile_op *op, const lilac_reduce_plan *p,
                       lilac_simt_value *elements) {
    uint32_t groups = 1U << p->group_bits, n = p->operands;
    lilac_simt_value *others = lilac_arena_array(l->arena, lilac_simt_value, (size_t)groups * n);
    uint32_t left = groups - 1;
    for (uint32_t step = p->lane_steps; step-- > 0;) {
        lilac_simt_value mask =
            lilac_simt_constant(&l->builder, LILAC_SIMT_I32, p->lane_masks[step]);
        uint32_t number = p->lane_steps - 1 - step;
        if (number < p->give_steps) {
            uint32_t bit = p->give_group[number];
            if (!give_lanes(l, op, p, step, left, bit, mask, elements, others)) {
                return false;
            }
            left &= ~(1U << bit);
            continue;
        }
        /* All groups that are left, or, where any were given, there is but one. */
        uint32_t count = left == groups - 1 ? groups : 1;
        for (uint32_t i = 0; i < n; i++) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_XOR, mask, count, n, elements + i,
                                    others + i);
        }
        for (uint32_t g = 0; g < count; g++) {
            if (!lilac_lower_combine(l, op, elements + (size_t)g * n, others + (size_t)g * n)) {
                return false;
            }
        }
    }
    return true;
}

void lilac_reduce_agree(lilac_lowering *l, const lilac_tile_op *op, uint32_t lane_bits,
                        const uint64_t *columns, uint32_t count, lilac_simt_value *elements) {
    uint32_t n = op->operand_count;
    lilac_simt_value lane = lilac_lower_linear(&l->builder, lane_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_commutative(op, i)) {
            lilac_lower_shuffle_row(l, LILAC_SIMT_SHFL_IDX, lane, count, n, elements + i,
                                    elements + i);
        }
    }
}

/* Of the butterflies' lanes, the one whose pivots are 0. */
static void agree(lilac_lowering *l, const lilac_tile_op *op, const lilac_reduce_plan *p,
                  lilac_simt_value *elements) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->in->lane_bits; i++) {
        columns[i] = 1ULL << i;
    }
    for (uint32_t step = 0; step < p->lane_steps; step++) {
        uint32_t pivot = p->lane_pivots[step];
        columns[pivot] = p->lane_masks[step] ^ (1ULL << pivot);
    }
    lilac_reduce_agree(l, op, p->in->lane_bits, columns, 1U << p->group_bits, elements);
}

/* ---- the whole --------------------------------------------------------------------------- */

bool lilac_reduce_take_results(lilac_lowering *l, const lilac_reduce_plan *p,
                               const lilac_lower_view *from, uint32_t count,
                               const lilac_simt_value *elements,
                               lilac_lower_value *const *results) {
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count);
    for (uint32_t i = 0; i < p->operands; i++) {
        for (uint32_t r = 0; r < count; r++) {
            values[r] = elements[(size_t)r * p->operands + i];
        }
        if (from == p->out) {
            memcpy(results[i]->base, values, count * sizeof *values);
        } else if (!lilac_lower_move(l, results[i]->simt, from, p->out, LILAC_PLAN_ANY, values,
                                     results[i]->base)) {
            return false;
        }
    }
    return true;
}

bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_reduce_plan p;
    if (!lilac_reduce_make_plan(l, op, &p)) {
        return false;
    }
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, p.operands);
    for (uint32_t i = 0; i < p.operands; i++) {
        results[i] = lilac_lower_result(l, op, i);
        if (results[i] == NULL) {
            return false;
        }
        bool operand_differs = lilac_lower_operand(l, op, i)->view != p.in;
        if (operand_differs || results[i]->view != p.out) {
            const char *side = operand_differs ? "operand" : "result";
            return lilac_lower_refuse(l, "layout-conversion",
                                      "%s %u of the reduction has another layout than %s 0", side,
                                      i, side);
        }
    }
    lilac_simt_value *elements = fold_registers(l, op, &p);
    if (elements == NULL || !fold_lanes(l, op, &p, elements)) {
        return false;
    }
    if (p.shared) {
        if (!lilac_reduce_through_shared(l, op, &p, elements, results)) {
            return false;
        }
    } else {
        if (p.lane_steps > 0) {
            agree(l, op, &p, elements);
        }
        if (p.moves) {
            lilac_lower_view reduced;
            lilac_reduce_view(&p, &reduced);
            lilac_lower_find_copies(l, &reduced);
            if (!lilac_reduce_take_results(l, &p, &reduced, reduced.count, elements, results)) {
                return false;
            }
        }
        for (uint32_t i = 0; i < p.operands && !p.moves; i++) {
            for (uint32_t r = 0; r < results[i]->count; r++) {
                uint32_t group = p.source != NULL ? p.source[r] : r;
                results[i]->base[r] = elements[(size_t)group * p.operands + i];
            }
        }
    }
    for (uint32_t i = 0; i < p.operands && p.out == NULL; i++) {
        lilac_simt_mark_uniform(l->kernel, results[i]->base[0]);
    }
    return true;
}
