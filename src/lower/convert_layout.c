/* Conversions between layouts, and the shared memory that they use.
 *
 *   ttg.convert_layout       the coordinates stay
 *   shape operations         the operand is converted to the layout M ∘ L, with L the result's
 *                            layout and M the map of coordinates; its registers are then the
 *                            result's
 *   tt.join                  the operand's number becomes a register bit; then as a conversion
 *
 * Only canonical registers are converted; replicated registers share their values. */
#include "convert_layout.h"
#include "executed_plans.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <string.h>

/* ---- plans ------------------------------------------------------------------------------- */

static bool has_staging(const lilac_plan_conversion *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        if (plan->step[i].kind == LILAC_PLAN_STEP_STAGING) {
            return true;
        }
    }
    return false;
}

/* Are all registers one constant? */
static bool is_constant(const lilac_lowering *l, const lilac_simt_value *values, uint32_t count) {
    uint64_t bits;
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] != values[0]) {
            return false;
        }
    }
    return lilac_simt_is_constant(l->kernel, values[0], &bits);
}

/* The values of the distinct registers. */
static lilac_simt_value *gather_distinct(lilac_lowering *l, const lilac_lower_view *view,
                                         const lilac_simt_value *values) {
    uint32_t count = lilac_layout_columns_own(&view->columns);
    lilac_simt_value *distinct = lilac_arena_array(l->arena, lilac_simt_value, count);
    for (uint32_t i = 0; i < count; i++) {
        distinct[i] = values[lilac_lower_deposit(i, view->columns.distinct)];
    }
    return distinct;
}

/* Allocates the scratch memory of a plan. A barrier waits for earlier uses of these bytes, those of
 * the previous iteration of a loop included. */
static uint32_t open_scratch(lilac_lowering *l, const lilac_plan_conversion *plan) {
    if (!has_staging(plan)) {
        return 0;
    }
    uint32_t scratch = lilac_lower_scratch(l, plan->staging.bytes);
    lilac_lower_barrier(l);
    if (plan->staging.barrier == LILAC_PLAN_BARRIER_WARP ||
        plan->staging.barrier == LILAC_PLAN_BARRIER_GROUP) {
        lilac_lower_staging_barrier(&l->builder, &plan->staging, plan->lane_bits, plan->warp_bits);
    }
    return scratch;
}

static bool execute_plan(lilac_lowering *l, const lilac_plan_conversion *plan,
                         const lilac_lower_conversion *c) {
    lilac_simt_value *moved = gather_distinct(l, c->from, c->values);
    uint32_t count = lilac_layout_columns_own(&c->to->columns);
    lilac_simt_value *received = lilac_arena_array(l->arena, lilac_simt_value, count);
    uint32_t scratch = open_scratch(l, plan);
    lilac_lower_note_conversion(l, plan, &c->from->columns, &c->to->columns,
                                lilac_simt_type_bits(c->type));
    if (!lilac_lower_movement(&l->builder, l->arena, plan, c->type, moved, scratch, received)) {
        return lilac_lower_unsupported(l, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        c->results[lilac_lower_deposit(i, c->to->columns.distinct)] = received[i];
    }
    lilac_lower_replicate(c->to, c->results);
    return true;
}

/* If all registers are one constant, every result is this constant. */
static bool convert_constant(lilac_lowering *l, const lilac_lower_conversion *c) {
    uint32_t count = lilac_layout_columns_own(&c->from->columns);
    const lilac_simt_value *values = gather_distinct(l, c->from, c->values);
    if (!is_constant(l, values, count)) {
        return false;
    }
    for (uint32_t r = 0; r < c->to->count; r++) {
        c->results[r] = values[0];
    }
    return true;
}

uint32_t lilac_lower_scratch_limit(lilac_lowering *l) {
    /* An exchange may use all of the memory. A block with tensors of that size has few resident
     * neighbours in any case, because of its registers. */
    lilac_lower_place_scratch(l);
    uint32_t left = l->target->arch->shared_bytes - l->scratch_begin;
    return left > 0 ? left : 1;
}

bool lilac_lower_refuse_conversion(lilac_lowering *l, const lilac_reason *why) {
    return lilac_lower_refuse(l, "layout-conversion",
                              "'%s' needs a conversion between two layouts that has no plan: %s",
                              lilac_tile_op_info_get(l->op->code)->name, why->text);
}

bool lilac_lower_execute_conversion(lilac_lowering *l, const lilac_plan_conversion *plan,
                                    const lilac_lower_conversion *c) {
    return convert_constant(l, c) || execute_plan(l, plan, c);
}

bool lilac_lower_move(lilac_lowering *l, lilac_plan_strategy strategy,
                      const lilac_lower_conversion *c) {
    if (convert_constant(l, c)) {
        return true;
    }
    lilac_reason why = {0};
    lilac_plan_conversion *plan = lilac_arena_new(l->arena, lilac_plan_conversion);
    lilac_plan_options options = {.strategy = strategy,
                                  .scratch_bytes = lilac_lower_scratch_limit(l)};
    if (!lilac_plan_conversion_init_columns(plan, &c->from->columns, &c->to->columns,
                                            lilac_simt_type_bits(c->type), &options,
                                            l->target->arch, &why)) {
        return lilac_lower_refuse_conversion(l, &why);
    }
    return execute_plan(l, plan, c);
}

bool lilac_lower_read_as(lilac_lowering *l, const lilac_lower_value *from,
                         const lilac_lower_view *view, lilac_simt_value *registers) {
    bool stays = from->view == view;
    lilac_simt_value *values =
        stays ? registers : lilac_arena_array(l->arena, lilac_simt_value, from->count);
    for (uint32_t r = 0; r < from->count; r++) {
        uint32_t same = from->view->canonical[r];
        values[r] = same == r ? lilac_lower_get(l, from, r) : values[same];
    }
    const lilac_lower_conversion conversion = {from->simt, from->view, view, values, registers};
    return stays || lilac_lower_move(l, LILAC_PLAN_ANY, &conversion);
}

/* ---- values ------------------------------------------------------------------------------ */

static bool read_strategy(lilac_lowering *l, const lilac_tile_op *op,
                          lilac_plan_strategy *strategy) {
    static const char *const names[] = {[LILAC_PLAN_ANY] = "any",
                                        [LILAC_PLAN_BY_SHUFFLES] = "shuffles",
                                        [LILAC_PLAN_BY_SHARED] = "shared",
                                        [LILAC_PLAN_UNSWIZZLED] = "unswizzled"};
    int found = lilac_lower_word(op, "lilac.movement", 4, names, LILAC_PLAN_ANY);
    *strategy = found < 0 ? LILAC_PLAN_ANY : (lilac_plan_strategy)found;
    return found >= 0 ||
           lilac_lower_bad_attribute(l, "lilac.movement", "any, shuffles, shared or unswizzled");
}

/* The layout of the operand in which each register of the result finds its element in its own
 * thread. Two results have one more register bit: the elements of the second result are at
 * `map->constant` further. */
static const lilac_lower_view *mapped_view(lilac_lowering *l, const lilac_lower_view *operand,
                                           const lilac_lower_view *result,
                                           const lilac_lower_map *map, uint32_t results) {
    lilac_layout_columns columns = operand->columns;
    const lilac_layout_columns *like = &result->columns;
    lilac_lower_map linear = *map;
    linear.constant = 0;
    columns.register_bits = like->register_bits;
    for (uint32_t i = 0; i < like->register_bits; i++) {
        columns.registers[i] = lilac_lower_map_apply(&linear, like->registers[i]);
    }
    for (uint32_t i = 0; i < like->thread_bits; i++) {
        columns.threads[i] = lilac_lower_map_apply(&linear, like->threads[i]);
    }
    for (uint32_t i = 0; i < like->block_bits; i++) {
        columns.blocks[i] = lilac_lower_map_apply(&linear, like->blocks[i]);
    }
    if (results == 2) {
        columns.registers[columns.register_bits++] = map->constant;
    }
    return lilac_lower_view_of_columns(l, &columns);
}

bool lilac_lower_move_value(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, uint32_t results,
                            lilac_lower_value *const *to) {
    lilac_plan_strategy strategy;
    if (!read_strategy(l, l->op, &strategy)) {
        return false;
    }
    const lilac_lower_view *mapped = mapped_view(l, from->view, to[0]->view, map, results);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, from->count);
    lilac_simt_value *converted = lilac_arena_array(l->arena, lilac_simt_value, mapped->count);
    for (uint32_t r = 0; r < from->count; r++) {
        values[r] = from->view->canonical[r] == r ? lilac_lower_get(l, from, r) : 0;
    }
    const lilac_lower_conversion conversion = {from->simt, from->view, mapped, values, converted};
    if (!lilac_lower_move(l, strategy, &conversion)) {
        return false;
    }
    for (uint32_t i = 0; i < results; i++) {
        memcpy(to[i]->base, converted + (size_t)i * to[i]->count, to[i]->count * sizeof *converted);
        if (from->offsets == NULL) {
            to[i]->low = from->low;
            to[i]->high = from->high;
        }
    }
    return true;
}
