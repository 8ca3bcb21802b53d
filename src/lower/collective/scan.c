/* tt.scan with any combine region, over several operands at once, forwards or in reverse.
 *
 * The bits of the axis, lowest first, form runs of registers, lanes and warps:
 *
 *     blocked, 4 registers a thread     r r l l l l l r        memory
 *                                       └0┘ └───1───┘ 2      w w r   (from the first warp bit up)
 *
 * Upwards, each run is scanned separately and passes the total of each of its blocks to the next
 * run:
 *
 *   registers   sequentially in the thread
 *   lanes       log2 steps; in step k the lanes with bit k set read the total of the half before
 *               theirs from its last lane
 *   memory      the last lane of each block writes its total; after one barrier every thread reads
 *               the totals of its line and combines them up to its own place
 *
 * Downwards, each run receives the prefix before each of its blocks, combines it with its items,
 * and passes the prefix before each item to the run below. There is no neutral element: whether a
 * prefix is empty is known at compile time or is a predicate.
 *
 * The plan (src/plan/collective/scan.c) finds the runs. Layouts that cannot be scanned as they are
 * are converted to a near layout and back. Replicas compute the same values; in memory one of them
 * writes. */
#include "scan.h"
#include "collective/region.h"
#include "convert_layout.h"
#include "executed_plans.h"
#include "memory/access.h"
#include "operations.h"

#include <string.h>

/* ---- up and down -------------------------------------------------------------------------- */

/* Passes the totals of a level's blocks to the next level as its items. */
static void pass_up(const lilac_scan *s, uint32_t index, const lilac_scan_level *from,
                    lilac_scan_level *to) {
    const lilac_scan_run *r = &s->plan->runs[index];
    uint32_t n = s->operands;
    bool to_memory = s->plan->runs[index + 1].kind == LILAC_PLAN_SCAN_MEMORY;
    to->count = 1U << __builtin_popcount(s->plan->runs[index + 1].items);
    to->values = lilac_scan_elements(s, to->count);
    to->scanned = lilac_scan_elements(s, to->count);
    if (r->kind == LILAC_PLAN_SCAN_LANES && !to_memory) {
        lilac_simt_value lane = lilac_scan_last_lane(s, lilac_scan_index_of(s, LILAC_SIMT_OP_LANE),
                                                     lilac_scan_thread_mask(r));
        lilac_scan_shuffle_all(s, LILAC_SIMT_SHFL_IDX, lane, to->count, from->scanned, to->values);
    } else if (r->kind == LILAC_PLAN_SCAN_LANES) {
        memcpy(to->values, from->scanned, (size_t)to->count * n * sizeof *to->values);
    } else {
        uint32_t mask = lilac_scan_run_items(r),
                 last = lilac_scan_item_of(s, r, (1U << r->count) - 1);
        for (uint32_t item = 0; item < from->count; item++) {
            if ((item & mask) == last) {
                memcpy(to->values + (size_t)lilac_scan_block_of(r, item) * n,
                       from->scanned + (size_t)item * n, n * sizeof *to->values);
            }
        }
    }
    memcpy(to->scanned, to->values, (size_t)to->count * n * sizeof *to->values);
}

static lilac_scan_prefix make_prefix(const lilac_scan *s, uint32_t count) {
    return (lilac_scan_prefix){lilac_scan_elements(s, count),
                               lilac_arena_array(s->l->arena, lilac_simt_value, count)};
}

/* Scans all runs, upwards and downwards. levels[0].scanned receives the results. */
static bool scan_levels(const lilac_scan *s, lilac_scan_level *levels) {
    uint32_t top = s->plan->run_count - 1;
    for (uint32_t i = 0; i <= top; i++) {
        const lilac_scan_run *r = &s->plan->runs[i];
        bool done = r->kind == LILAC_PLAN_SCAN_REGISTERS ? lilac_scan_registers(s, r, &levels[i])
                    : r->kind == LILAC_PLAN_SCAN_LANES   ? lilac_scan_lanes(s, r, &levels[i])
                                                         : true;
        if (!done) {
            return false;
        }
        if (i < top) {
            pass_up(s, i, &levels[i], &levels[i + 1]);
        }
    }
    lilac_scan_prefix before = make_prefix(s, levels[top].count); /* of the runs above: nothing */
    for (uint32_t i = top + 1; i-- > 0;) {
        const lilac_scan_run *r = &s->plan->runs[i];
        lilac_scan_prefix items = make_prefix(s, levels[i].count);
        if (r->kind == LILAC_PLAN_SCAN_MEMORY) {
            if (!lilac_scan_before_memory(s, r, &levels[i], &items)) {
                return false;
            }
        } else if (r->kind == LILAC_PLAN_SCAN_REGISTERS) {
            if (!lilac_scan_finish_registers(s, r, &levels[i], &before)) {
                return false;
            }
            lilac_scan_before_registers(s, r, &levels[i], &before, &items);
        } else {
            if (!lilac_scan_finish_lanes(s, &levels[i], &before)) {
                return false;
            }
            if (i > 0) {
                lilac_scan_before_lanes(s, r, &levels[i], &before, &items);
            }
        }
        before = items;
        if (i == 0 && r->kind == LILAC_PLAN_SCAN_MEMORY) {
            return lilac_scan_finish_lanes(s, &levels[0], &before);
        }
    }
    return true;
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* The conversion of operand number `i` to the scanned layout, or of its result from it. `previous`:
 * the plan of the operand before it, which is used again for elements of the same size. NULL: the
 * operation has been refused. */
static const lilac_plan_conversion *plan_conversion(const lilac_scan *s, uint32_t i, bool of_result,
                                                    const lilac_plan_conversion *previous) {
    lilac_reason why = {0};
    if (previous != NULL &&
        lilac_lower_memory_bytes(s->types[i]) == lilac_lower_memory_bytes(s->types[i - 1])) {
        return previous;
    }
    lilac_plan_conversion *plan = lilac_arena_new(s->l->arena, lilac_plan_conversion);
    if (!(of_result ? lilac_plan_scan_result_conversion
                    : lilac_plan_scan_operand_conversion)(plan, s->plan, i, &why)) {
        (void)lilac_lower_refuse_conversion(s->l, &why);
        return NULL;
    }
    return plan;
}

/* Reads all registers of operand number `i` in the scanned layout. */
static bool read_operand(const lilac_scan *s, uint32_t i, const lilac_plan_conversion **plan,
                         lilac_simt_value *registers) {
    const lilac_lower_value *from = lilac_lower_operand(s->l, s->op, i);
    if (!s->plan->moves_operands || from->view != lilac_lower_operand(s->l, s->op, 0)->view) {
        return lilac_lower_read_as(s->l, from, s->view, registers);
    }
    lilac_simt_value *values = lilac_arena_array(s->l->arena, lilac_simt_value, from->count);
    const lilac_lower_conversion conversion = {from->simt, from->view, s->view, values, registers};
    *plan = plan_conversion(s, i, false, *plan);
    return *plan != NULL && lilac_lower_read_as(s->l, from, from->view, values) &&
           lilac_lower_execute_conversion(s->l, *plan, &conversion);
}

/* Reads the distinct registers of the operands in the scanned layout, one element after another. */
static bool read_operands(const lilac_scan *s, lilac_simt_value *to) {
    uint32_t own = s->plan->scanned.distinct, n = s->operands;
    uint32_t count = 1U << __builtin_popcount(own);
    const lilac_plan_conversion *plan = NULL;
    lilac_simt_value *registers = lilac_arena_array(s->l->arena, lilac_simt_value, s->view->count);
    for (uint32_t i = 0; i < n; i++) {
        if (!read_operand(s, i, &plan, registers)) {
            return false;
        }
        for (uint32_t k = 0; k < count; k++) {
            to[(size_t)k * n + i] = registers[lilac_lower_deposit(k, own)];
        }
    }
    return true;
}

static bool write_results(const lilac_scan *s, const lilac_simt_value *from) {
    uint32_t own = s->plan->scanned.distinct, n = s->operands;
    uint32_t count = 1U << __builtin_popcount(own);
    const lilac_plan_conversion *plan = NULL;
    lilac_simt_value *values = lilac_arena_array(s->l->arena, lilac_simt_value, s->view->count);
    for (uint32_t i = 0; i < n; i++) {
        lilac_lower_value *to = lilac_lower_result(s->l, s->op, i);
        if (to == NULL) {
            return false;
        }
        for (uint32_t k = 0; k < count; k++) {
            values[lilac_lower_deposit(k, own)] = from[(size_t)k * n + i];
        }
        if (lilac_layout_columns_equal(&to->view->columns, &s->view->columns)) {
            for (uint32_t r = 0; r < to->count; r++) {
                to->base[r] = values[to->view->canonical[r]];
            }
            continue;
        }
        const lilac_lower_conversion conversion = {to->simt, s->view, to->view, values, to->base};
        if (!lilac_layout_columns_equal(&to->view->columns, &s->plan->result)) {
            if (!lilac_lower_move(s->l, LILAC_PLAN_ANY, &conversion)) {
                return false;
            }
            continue;
        }
        plan = plan_conversion(s, i, true, plan);
        if (plan == NULL || !lilac_lower_execute_conversion(s->l, plan, &conversion)) {
            return false;
        }
    }
    return true;
}

/* Reads the types of the operands, and the layout of the first result. */
static bool open_values(lilac_scan *s, const lilac_lower_view **result) {
    lilac_simt_type *types = lilac_arena_array(s->l->arena, lilac_simt_type, s->operands);
    for (uint32_t i = 0; i < s->operands; i++) {
        types[i] = lilac_lower_operand(s->l, s->op, i)->simt;
    }
    s->types = types;
    *result = lilac_lower_view_of(s->l, s->op->results[0].type);
    return *result != NULL;
}

static bool make_plan(lilac_scan *s, lilac_plan_scan *plan) {
    lilac_lowering *l = s->l;
    const lilac_lower_view *source = lilac_lower_operand(l, s->op, 0)->view, *result;
    lilac_plan_region region;
    lilac_reason why = {0};
    uint32_t axis;
    if (!lilac_lower_read_axis(l, s->op, source, &axis) || !lilac_lower_check_results(l, s->op) ||
        !open_values(s, &result)) {
        return false;
    }
    lilac_engine_region(&region, l->arena, s->op);
    region.scratch_bytes = lilac_lower_scratch_limit(l);
    if (!lilac_plan_scan_init_columns(plan, &source->columns, &result->columns, axis, &region,
                                      l->target, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    s->plan = plan;
    lilac_lower_note_scan(l, plan);
    s->view = plan->moves_operands ? lilac_lower_view_of_columns(l, &plan->scanned) : source;
    return true;
}

bool lilac_lower_scan(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_scan *s = lilac_arena_new(l->arena, lilac_scan);
    lilac_plan_scan *plan = lilac_arena_new(l->arena, lilac_plan_scan);
    *s = (lilac_scan){.l = l, .op = op, .operands = op->operand_count};
    if (!make_plan(s, plan)) {
        return false;
    }
    lilac_scan_level *levels = lilac_arena_array(l->arena, lilac_scan_level, plan->run_count + 1);
    levels[0].count = lilac_layout_columns_own(&plan->scanned);
    levels[0].values = lilac_scan_elements(s, levels[0].count);
    levels[0].scanned = lilac_scan_elements(s, levels[0].count);
    if (!read_operands(s, levels[0].values)) {
        return false;
    }
    memcpy(levels[0].scanned, levels[0].values,
           (size_t)levels[0].count * s->operands * sizeof *levels[0].values);
    if (plan->run_count > 0 && !scan_levels(s, levels)) {
        return false;
    }
    return write_results(s, levels[0].scanned);
}
