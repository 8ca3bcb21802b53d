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
#include "memory/shared_access.h"

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

bool lilac_lower_move(lilac_lowering *l, lilac_simt_type type, const lilac_lower_view *from,
                      const lilac_lower_view *to, lilac_plan_strategy way,
                      const lilac_simt_value *values, lilac_simt_value *results) {
    uint32_t registers[2] = {lilac_lower_distinct_registers(from),
                             lilac_lower_distinct_registers(to)};
    uint32_t count = 1U << __builtin_popcount(registers[0]);
    uint32_t made_count = 1U << __builtin_popcount(registers[1]);
    lilac_simt_value *moved = lilac_arena_array(l->arena, lilac_simt_value, count);
    lilac_simt_value *made = lilac_arena_array(l->arena, lilac_simt_value, made_count);
    for (uint32_t i = 0; i < count; i++) {
        moved[i] = values[lilac_lower_deposit(i, registers[0])];
    }
    if (is_constant(l, moved, count)) {
        for (uint32_t r = 0; r < to->count; r++) {
            results[r] = moved[0];
        }
        return true;
    }
    lilac_layout layouts[2];
    lilac_reason why = {0};
    lilac_plan_conversion *plan = lilac_arena_new(l->arena, lilac_plan_conversion);
    /* An exchange may use all of the memory: a block with tensors of that size has few resident
     * neighbours anyway, because of its registers. */
    uint32_t left = l->target->arch->shared_bytes - l->scratch_begin;
    lilac_plan_options options = {.strategy = way, .scratch_bytes = left > 0 ? left : 1};
    if (!lilac_lower_layout_of(&layouts[0], from, from, registers[0], &why) ||
        !lilac_lower_layout_of(&layouts[1], from, to, registers[1], &why) ||
        !lilac_plan_conversion_init(plan, &layouts[0], &layouts[1], lilac_simt_type_bits(type),
                                    &options, l->target->arch, &why)) {
        return lilac_lower_refuse(
            l, "layout-conversion",
            "'%s' needs a conversion between two layouts that has no plan: %s",
            lilac_tile_op_info_get(l->op->code)->name, why.text);
    }
    uint32_t scratch = 0;
    if (has_staging(plan)) {
        scratch = lilac_lower_scratch(l, plan->staging.bytes);
        /* Waits for earlier users of these bytes, the previous iteration included. */
        lilac_lower_barrier(l);
        if (plan->staging.barrier == LILAC_PLAN_BARRIER_WARP ||
            plan->staging.barrier == LILAC_PLAN_BARRIER_GROUP) {
            lilac_lower_staging_barrier(&l->builder, &plan->staging, plan->lane_bits,
                                        plan->warp_bits);
        }
    }
    if (!lilac_lower_movement(&l->builder, l->arena, plan, type, moved, scratch, made)) {
        return lilac_lower_unsupported(l, "out of memory");
    }
    for (uint32_t i = 0; i < made_count; i++) {
        results[lilac_lower_deposit(i, registers[1])] = made[i];
    }
    lilac_lower_replicate(to, results);
    return true;
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
    return stays ||
           lilac_lower_move(l, from->simt, from->view, view, LILAC_PLAN_ANY, values, registers);
}

/* ---- values ------------------------------------------------------------------------------ */

static bool read_way(lilac_lowering *l, const lilac_tile_op *op, lilac_plan_strategy *way) {
    static const char *const ways[] = {[LILAC_PLAN_ANY] = "any",
                                       [LILAC_PLAN_BY_SHUFFLES] = "shuffles",
                                       [LILAC_PLAN_BY_SHARED] = "shared",
                                       [LILAC_PLAN_UNSWIZZLED] = "unswizzled"};
    int found = lilac_lower_word(op, "lilac.movement", 4, ways, LILAC_PLAN_ANY);
    *way = found < 0 ? LILAC_PLAN_ANY : (lilac_plan_strategy)found;
    return found >= 0 ||
           lilac_lower_bad_attribute(l, "lilac.movement", "any, shuffles, shared or unswizzled");
}

/* The layout of the operand in which a register of the result finds its element in its own thread.
 * Of two results the second one's elements are `map->constant` further on: one register bit more.
 */
static const lilac_lower_view *asked_view(lilac_lowering *l, const lilac_lower_view *operand,
                                          const lilac_lower_view *result,
                                          const lilac_lower_map *map, uint32_t results) {
    lilac_lower_view *view = lilac_arena_new(l->arena, lilac_lower_view);
    lilac_lower_map linear = *map;
    linear.constant = 0;
    view->layout = operand->layout;
    view->rank = operand->rank;
    view->lane_bits = operand->lane_bits;
    view->thread_bits = operand->thread_bits;
    view->block_bits = operand->block_bits;
    view->register_bits = result->register_bits;
    for (uint32_t i = 0; i < result->register_bits; i++) {
        view->registers[i] = lilac_lower_map_apply(&linear, result->registers[i]);
    }
    for (uint32_t i = 0; i < result->thread_bits; i++) {
        view->threads[i] = lilac_lower_map_apply(&linear, result->threads[i]);
    }
    for (uint32_t i = 0; i < result->block_bits; i++) {
        view->blocks[i] = lilac_lower_map_apply(&linear, result->blocks[i]);
    }
    if (results == 2) {
        view->registers[view->register_bits++] = map->constant;
    }
    view->count = 1U << view->register_bits;
    lilac_lower_find_copies(l, view);
    return view;
}

bool lilac_lower_move_value(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, uint32_t results,
                            lilac_lower_value *const *to) {
    lilac_plan_strategy way;
    if (!read_way(l, l->op, &way)) {
        return false;
    }
    const lilac_lower_view *asked = asked_view(l, from->view, to[0]->view, map, results);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, from->count);
    lilac_simt_value *made = lilac_arena_array(l->arena, lilac_simt_value, asked->count);
    for (uint32_t r = 0; r < from->count; r++) {
        values[r] = from->view->canonical[r] == r ? lilac_lower_get(l, from, r) : 0;
    }
    if (!lilac_lower_move(l, from->simt, from->view, asked, way, values, made)) {
        return false;
    }
    for (uint32_t i = 0; i < results; i++) {
        memcpy(to[i]->base, made + (size_t)i * to[i]->count, to[i]->count * sizeof *made);
        if (from->offsets == NULL) {
            to[i]->low = from->low;
            to[i]->high = from->high;
        }
    }
    return true;
}
