/* Control flow that differs between elements: in the regions of tt.map_elementwise, and in the
 * combine regions of reductions and scans. The threads of a warp do not diverge:
 *
 *   if      both branches, then a select for each result
 *   while   repeated while any lane of the warp continues; a finished lane keeps its results
 *   for     the same, if the bounds differ between threads
 *
 * An inactive lane (`active` is false in it) also computes values. They have no effect, because
 * such regions may not access memory and an inactive lane does not prolong a loop. Control flow
 * that depends on uniform values only is lowered by control.c. */
#include "control.h"
#include "coordinates.h"
#include "operations.h"

#include <lilac/tile_loops.h>

static lilac_simt_value and_active(lilac_lowering *l, lilac_simt_value condition) {
    return lilac_lower_both(l, l->active, condition);
}

/* ---- which operations ---------------------------------------------------------------------- */

/* Is the builder inside a loop? There a loop-carried value counts as uniform if its initial value
 * is, although a later value may not be. */
static bool in_open_loop(const lilac_lowering *l) {
    for (const lilac_simt_instruction *around = l->builder.body->parent; around != NULL;
         around = around->parent->parent) {
        if (around->code == LILAC_SIMT_OP_LOOP || around->code == LILAC_SIMT_OP_WHILE) {
            return true;
        }
    }
    return false;
}

bool lilac_lower_diverges(lilac_lowering *l, const lilac_tile_op *op) {
    return lilac_lower_is_scalar(l, op) && (l->active != 0 || lilac_lower_uses_divergent(l, op) ||
                                            (lilac_lower_is_per_element(l, op) && in_open_loop(l)));
}

/* ---- scalars ------------------------------------------------------------------------------- */

static bool define_scalar(lilac_lowering *l, const lilac_tile_value *tile, lilac_simt_value value) {
    lilac_lower_value *scalar = lilac_lower_define(l, tile);
    if (scalar != NULL) {
        scalar->base[0] = value;
    }
    return scalar != NULL;
}

/* The operands of an operation from number `first` on, in an array with space for `more` others. */
static lilac_simt_value *scalars(lilac_lowering *l, const lilac_tile_op *op, uint32_t first,
                                 uint32_t more) {
    uint32_t count = op->operand_count - first;
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count + more);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = lilac_lower_get(l, lilac_lower_operand(l, op, first + i), 0);
    }
    return values;
}

static lilac_simt_value zero(lilac_lowering *l, lilac_simt_type type) {
    return lilac_simt_constant(&l->builder, type, 0);
}

lilac_simt_value lilac_lower_divisor(lilac_lowering *l, lilac_simt_value value) {
    uint64_t bits;
    if (l->active == 0 || (lilac_simt_is_constant(l->kernel, value, &bits) && bits != 0)) {
        return value;
    }
    lilac_simt_type type = lilac_simt_type_of(l->kernel, value);
    return lilac_lower_select(l, l->active, value, lilac_simt_constant(&l->builder, type, 1));
}

/* ---- scf.if -------------------------------------------------------------------------------- */

bool lilac_lower_if_elements(lilac_lowering *l, const lilac_tile_op *op) {
    if (op->result_count == 0) {
        return true; /* it has no effect: such regions may not access memory */
    }
    lilac_simt_value condition = lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0);
    lilac_simt_value active = l->active, *values[2];
    for (uint32_t side = 0; side < 2; side++) {
        l->active = and_active(l, side == 0 ? condition : lilac_lower_not(l, condition));
        const lilac_tile_block *block = op->regions[side]->first;
        const lilac_tile_op *end = block == NULL ? NULL : lilac_lower_block(l, block);
        l->active = active;
        if (end == NULL || end->operand_count != op->result_count) {
            l->op = op;
            return l->failed ? false
                             : lilac_lower_unsupported(
                                   l, "its %s branch yields %u values; it has %u results",
                                   side == 0 ? "then" : "else",
                                   end == NULL ? 0 : end->operand_count, op->result_count);
        }
        values[side] = scalars(l, end, 0, 0);
    }
    l->op = op;
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!define_scalar(l, &op->results[i],
                           lilac_lower_select(l, condition, values[0][i], values[1][i]))) {
            return false;
        }
    }
    return true;
}

/* ---- scf.while ----------------------------------------------------------------------------- */

/* Defines tile values as the SIMT values from `first` on. */
static bool define_scalars(lilac_lowering *l, uint32_t count, lilac_tile_value *const *tiles,
                           lilac_simt_value first) {
    for (uint32_t i = 0; i < count; i++) {
        if (!define_scalar(l, tiles[i], first + i)) {
            return false;
        }
    }
    return true;
}

static bool define_results(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_value first) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!define_scalar(l, &op->results[i], first + i)) {
            return false;
        }
    }
    return true;
}

/* The first region of scf.while, whose arguments begin at `first`: builds the condition of the SIMT
 * loop and passes on the values of scf.condition, whether the lane continues, and the results. A
 * lane's results are those of its last iteration. `first` becomes the first value passed on. */
static bool while_before(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_instruction *loop,
                         lilac_simt_value *first) {
    uint32_t carried = op->operand_count, passed = op->result_count;
    const lilac_tile_block *before = op->regions[0]->first;
    if (!define_scalars(l, carried, before->arguments, *first)) {
        return false;
    }
    l->active = *first + carried;
    const lilac_tile_op *end = lilac_lower_block(l, before);
    if (end == NULL || end->code != LILAC_TILE_OP_SCF_CONDITION ||
        end->operand_count != passed + 1) {
        return !l->failed &&
               lilac_lower_unsupported(
                   l, "the first region must end with scf.condition of %u values", passed + 1);
    }
    lilac_simt_value *values = scalars(l, end, 1, passed + 1);
    lilac_simt_value goes_on = and_active(l, lilac_lower_get(l, lilac_lower_operand(l, end, 0), 0));
    values[passed] = goes_on;
    for (uint32_t i = 0; i < passed; i++) {
        values[passed + 1 + i] =
            lilac_lower_select(l, l->active, values[i], *first + carried + 1 + i);
    }
    lilac_simt_while_condition(&l->builder, loop, lilac_simt_any_lane(&l->builder, goes_on), values,
                               first);
    return true;
}

/* The second region, whose arguments begin at `first`; *results: the first result of the loop. */
static bool while_after(lilac_lowering *l, const lilac_tile_op *op, lilac_simt_instruction *loop,
                        lilac_simt_value first, lilac_simt_value *results) {
    uint32_t carried = op->operand_count, passed = op->result_count;
    const lilac_tile_block *after = op->regions[1]->first;
    if (!define_scalars(l, passed, after->arguments, first)) {
        return false;
    }
    l->active = first + passed;
    const lilac_tile_op *end = lilac_lower_block(l, after);
    if (end == NULL || end->operand_count != carried) {
        return !l->failed &&
               lilac_lower_unsupported(l, "the region yields %u values; the loop carries %u",
                                       end == NULL ? 0 : end->operand_count, carried);
    }
    lilac_simt_value *values = scalars(l, end, 0, passed + 1);
    for (uint32_t i = 0; i <= passed; i++) {
        values[carried + i] = first + passed + i;
    }
    *results = lilac_simt_while_end(&l->builder, loop, values) + passed + 1;
    return true;
}

/* The SIMT loop carries the operands of scf.while, a predicate (does this lane continue?), and the
 * results of the lanes that have finished. */
bool lilac_lower_while_elements(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_tile_block *before = op->regions[0]->first, *after = op->regions[1]->first;
    uint32_t carried = op->operand_count, passed = op->result_count;
    if (before == NULL || after == NULL || before->argument_count != carried ||
        after->argument_count != passed) {
        return lilac_lower_unsupported(l,
                                       "its regions have %u and %u arguments; expected %u and %u",
                                       before == NULL ? 0 : before->argument_count,
                                       after == NULL ? 0 : after->argument_count, carried, passed);
    }
    lilac_simt_value outer = l->active;
    lilac_simt_value *inits = scalars(l, op, 0, passed + 1);
    lilac_simt_type *types = lilac_arena_array(l->arena, lilac_simt_type, 2 * passed + 1);
    inits[carried] = outer != 0 ? outer : lilac_simt_constant(b, LILAC_SIMT_I1, 1);
    for (uint32_t i = 0; i < passed; i++) {
        if (!lilac_lower_type(l, op->results[i].type, &types[i])) {
            return false;
        }
        types[passed + 1 + i] = types[i];
        inits[carried + 1 + i] = zero(l, types[i]);
    }
    types[passed] = LILAC_SIMT_I1;
    lilac_simt_value first, results = 0;
    lilac_simt_instruction *loop =
        lilac_simt_while_begin(b, carried + 1 + passed, inits, 2 * passed + 1, types, &first);
    if (!while_before(l, op, loop, &first) || !while_after(l, op, loop, first, &results)) {
        return false;
    }
    l->active = outer;
    l->op = op;
    return define_results(l, op, results);
}

/* ---- scf.for ------------------------------------------------------------------------------- */

/* The SIMT loop carries the induction variable and the values; its condition also passes on whether
 * the lane continues. */
bool lilac_lower_for_elements(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_tile_block *block = op->regions[0]->first;
    uint32_t carried = op->result_count;
    if (block == NULL || block->argument_count != carried + 1 || op->operand_count != carried + 3) {
        return lilac_lower_unsupported(
            l, "it has %u operands and its region has %u arguments; %u results need %u and %u",
            op->operand_count, block == NULL ? 0 : block->argument_count, carried, carried + 3,
            carried + 1);
    }
    lilac_simt_value outer = l->active;
    lilac_simt_value *inputs = scalars(l, op, 0, 0);
    lilac_simt_value *inits = lilac_arena_array(l->arena, lilac_simt_value, carried + 2);
    lilac_simt_type *types = lilac_arena_array(l->arena, lilac_simt_type, carried + 2);
    inits[0] = inputs[0];
    for (uint32_t i = 0; i < carried; i++) {
        inits[i + 1] = inputs[lilac_tile_first_passed(op) + i];
    }
    for (uint32_t i = 0; i <= carried; i++) {
        types[i] = lilac_simt_type_of(l->kernel, inits[i]);
    }
    types[carried + 1] = LILAC_SIMT_I1;
    lilac_simt_value first;
    lilac_simt_instruction *loop =
        lilac_simt_while_begin(b, carried + 1, inits, carried + 2, types, &first);
    bool is_unsigned = lilac_tile_find(&op->attributes, "unsignedCmp") != NULL;
    lilac_simt_value goes_on =
        and_active(l, lilac_simt_compare_values(b, is_unsigned ? LILAC_SIMT_ULT : LILAC_SIMT_LT,
                                                first, inputs[1]));
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, carried + 2);
    for (uint32_t i = 0; i <= carried; i++) {
        values[i] = first + i;
    }
    values[carried + 1] = goes_on;
    lilac_simt_while_condition(b, loop, lilac_simt_any_lane(&l->builder, goes_on), values, &first);
    if (!define_scalars(l, carried + 1, block->arguments, first)) {
        return false;
    }
    goes_on = l->active = first + carried + 1;
    const lilac_tile_op *end = lilac_lower_block(l, block);
    l->active = outer;
    if (end == NULL || end->operand_count != carried) {
        return l->failed
                   ? false
                   : lilac_lower_unsupported(l, "the region yields %u values; the loop carries %u",
                                             end == NULL ? 0 : end->operand_count, carried);
    }
    lilac_simt_value *next = scalars(l, end, 0, 0);
    for (uint32_t i = 0; i <= carried; i++) {
        lilac_simt_value made =
            i == 0 ? lilac_simt_op2(b, LILAC_SIMT_OP_ADD, types[0], first, inputs[2]) : next[i - 1];
        values[i] = lilac_lower_select(l, goes_on, made, first + i);
    }
    lilac_simt_value results = lilac_simt_while_end(b, loop, values);
    l->op = op;
    return define_results(l, op, results + 1);
}

/* ---- tt.map_elementwise ---------------------------------------------------------------------- */

/* Lowers the region once for `pack` distinct registers of a thread, in their order. If a thread has
 * fewer than `pack`, some are passed more than once. */
static bool map_group(lilac_lowering *l, const lilac_tile_op *op, uint32_t group, uint32_t pack,
                      const uint32_t *const *sources, lilac_lower_value *const *results) {
    uint32_t own = results[0]->view->columns.distinct;
    uint32_t count = 1U << __builtin_popcount(own);
    const lilac_tile_block *block = op->regions[0]->first;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_lower_value *operand = lilac_lower_operand(l, op, i);
        for (uint32_t k = 0; k < pack; k++) {
            uint32_t r = lilac_lower_deposit((group * pack + k) & (count - 1), own);
            lilac_simt_value value =
                lilac_lower_get(l, operand, lilac_lower_index(operand, sources[i], r));
            if (!define_scalar(l, block->arguments[i * pack + k], value)) {
                return false;
            }
        }
    }
    const lilac_tile_op *end = lilac_lower_block(l, block);
    l->op = op;
    l->builder.location = op->location;
    if (end == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        for (uint32_t k = 0; k < pack; k++) {
            uint32_t r = lilac_lower_deposit((group * pack + k) & (count - 1), own);
            results[i]->base[r] = lilac_lower_get(l, lilac_lower_operand(l, end, i * pack + k), 0);
        }
    }
    return true;
}

bool lilac_lower_map_elementwise(lilac_lowering *l, const lilac_tile_op *op) {
    uint32_t pack = (uint32_t)lilac_tile_find_integer(&op->attributes, "pack", 1);
    const lilac_tile_block *block = op->regions[0]->first;
    if (lilac_lower_touches_memory(l, op)) {
        return lilac_lower_unsupported(l, "its region reads or writes memory");
    }
    if (block == NULL || block->next != NULL || block->argument_count != pack * op->operand_count ||
        block->last == NULL || block->last->operand_count != pack * op->result_count) {
        return lilac_lower_unsupported(
            l, "its region is not one block of %u arguments that returns %u values",
            pack * op->operand_count, pack * op->result_count);
    }
    lilac_lower_value **results =
        lilac_arena_array(l->arena, lilac_lower_value *, op->result_count);
    for (uint32_t i = 0; i < op->result_count; i++) {
        results[i] = lilac_lower_result(l, op, i);
        if (results[i] == NULL) {
            return false;
        }
        if (results[i]->view != results[0]->view) {
            return lilac_lower_unsupported(l, "result %u has another layout than result 0", i);
        }
    }
    const lilac_lower_view *view = results[0]->view;
    const uint32_t **sources = lilac_arena_array(l->arena, const uint32_t *, op->operand_count);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!lilac_lower_align(l, lilac_lower_operand(l, op, i), view, &sources[i])) {
            return false;
        }
    }
    uint32_t count = lilac_layout_columns_own(&view->columns);
    for (uint32_t group = 0; group * pack < count; group++) {
        if (!map_group(l, op, group, pack, sources, results)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        lilac_lower_replicate(view, results[i]->base);
    }
    return true;
}
