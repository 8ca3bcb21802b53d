/* Loops, conditionals and assertions.
 *
 * Every carried tensor becomes as many carried values as it has different registers. Conditions are
 * scalars, which all threads share. The barrier state follows the paths: entering a loop, shared
 * memory may have been read before it or by the iteration before. */
#include "lower_internal.h"

#include <string.h>

/* ---- values as lists of registers -------------------------------------------------------- */

/* Registers that are not copies of lower ones. */
static uint32_t width_of(const lilac_lower_value *value) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < value->count; r++) {
        count += value->view == NULL || value->view->canonical[r] == r;
    }
    return count;
}

/* Appends the registers of `value`, in the layout of `like`. */
static bool flatten(lilac_lowering *l, const lilac_lower_value *value,
                    const lilac_lower_value *like, lilac_simt_value *list, uint32_t *count) {
    const uint32_t *source;
    if (!lilac_lower_align(l, value, like->view, &source)) {
        return false;
    }
    for (uint32_t r = 0; r < like->count; r++) {
        if (like->view == NULL || like->view->canonical[r] == r) {
            list[(*count)++] = lilac_lower_get(l, value, lilac_lower_index(value, source, r));
        }
    }
    return true;
}

/* Gives a value the registers that begin at *first. */
static void unflatten(lilac_lower_value *value, lilac_simt_value *first) {
    for (uint32_t r = 0; r < value->count; r++) {
        uint32_t same = value->view == NULL ? r : value->view->canonical[r];
        value->base[r] = same == r ? (*first)++ : value->base[same];
    }
}

/* A list of tile values on its way through a region's edge. `like` are the values that say which
 * layouts are expected there; defined already. */
typedef struct bundle {
    uint32_t count;
    lilac_simt_value *values;
    lilac_simt_type *types;
} bundle;

static bundle make_bundle(lilac_lowering *l, uint32_t count, lilac_lower_value *const *like) {
    bundle b = {0};
    uint32_t width = 0;
    for (uint32_t i = 0; i < count; i++) {
        width += width_of(like[i]);
    }
    b.values = lilac_arena_array(l->arena, lilac_simt_value, width);
    b.types = lilac_arena_array(l->arena, lilac_simt_type, width);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = b.count + width_of(like[i]);
        while (b.count < end) {
            b.types[b.count++] = like[i]->simt;
        }
    }
    return b;
}

/* Fills the bundle from operands of `op` from number `first` on. */
static bool fill(lilac_lowering *l, bundle *b, const lilac_tile_op *op, uint32_t first,
                 uint32_t count, lilac_lower_value *const *like) {
    uint32_t filled = 0;
    if (op->operand_count != first + count) {
        return lilac_lower_unsupported(l, "its values do not match the region's");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!flatten(l, lilac_lower_operand(l, op, first + i), like[i], b->values, &filled)) {
            return false;
        }
    }
    return true;
}

static bool define_all(lilac_lowering *l, uint32_t count, lilac_tile_value *const *tiles,
                       lilac_lower_value **values) {
    for (uint32_t i = 0; i < count; i++) {
        values[i] = lilac_lower_define(l, tiles[i]);
        if (values[i] == NULL) {
            return false;
        }
    }
    return true;
}

static bool define_results(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_value **values) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        values[i] = lilac_lower_result(l, op, i);
        if (values[i] == NULL) {
            return false;
        }
    }
    return true;
}

static void unflatten_all(lilac_lower_value *const *values, uint32_t count,
                          lilac_simt_value first) {
    for (uint32_t i = 0; i < count; i++) {
        unflatten(values[i], &first);
    }
}

/* Does anything in the region read the shared scratch? */
static bool reads_shared(lilac_lowering *l, const lilac_tile_region *region) {
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            if (op->code == LILAC_TILE_OP_TT_REDUCE) {
                if (lilac_lower_reduce_is_shared(l, op)) {
                    return true;
                }
                continue;
            }
            for (uint32_t i = 0; i < op->region_count; i++) {
                if (reads_shared(l, op->regions[i])) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* A region that must be one block with these arguments. */
static const lilac_tile_block *only_block(lilac_lowering *l, const lilac_tile_region *region,
                                          uint32_t arguments) {
    const lilac_tile_block *block = region->first;
    if (block == NULL || block->next != NULL || block->argument_count != arguments) {
        (void)lilac_lower_unsupported(l, "its region is not one block with the right arguments");
        return NULL;
    }
    return block;
}

/* ---- scf.for ----------------------------------------------------------------------------- */

/* Counters are 32 or 64 bits; narrower ones count in 32. */
static lilac_simt_value counter(lilac_lowering *l, const lilac_lower_value *value) {
    lilac_simt_value number = lilac_lower_get(l, value, 0);
    return lilac_simt_type_bits(value->simt) >= 32
               ? number
               : lilac_simt_op1(&l->builder, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I32, number);
}

static bool lower_for(lilac_lowering *l, const lilac_tile_op *op) {
    uint32_t carried = op->result_count;
    const lilac_lower_value *lower = lilac_lower_operand(l, op, 0);
    const lilac_lower_value *upper = lilac_lower_operand(l, op, 1);
    const lilac_lower_value *step = lilac_lower_operand(l, op, 2);
    const lilac_tile_block *block = only_block(l, op->regions[0], carried + 1);
    if (block == NULL) {
        return false;
    }
    if (lower->simt == LILAC_SIMT_I1 || lilac_tile_find(&op->attributes, "unsignedCmp") != NULL) {
        return lilac_lower_unsupported(l, "its counter is not a signed integer");
    }
    lilac_lower_value **inside = lilac_arena_array(l->arena, lilac_lower_value *, carried + 1);
    if (!define_all(l, carried + 1, block->arguments, inside)) {
        return false;
    }
    bundle values = make_bundle(l, carried, inside + 1);
    if (!fill(l, &values, op, 3, carried, inside + 1)) {
        return false;
    }
    lilac_simt_value variable;
    bool shared_read = l->shared_read;
    bool within = reads_shared(l, op->regions[0]);
    lilac_simt_instruction *loop =
        lilac_simt_loop_begin(&l->builder, counter(l, lower), counter(l, upper), counter(l, step),
                              values.count, values.values, &variable);
    inside[0]->base[0] =
        lilac_simt_type_bits(lower->simt) >= 32
            ? variable
            : lilac_simt_op1(&l->builder, LILAC_SIMT_OP_TRUNC, lower->simt, variable);
    if (lower->offsets == NULL && upper->offsets == NULL && lower->low < upper->high) {
        inside[0]->low = lower->low;
        inside[0]->high = upper->high - 1;
    }
    unflatten_all(inside + 1, carried, variable + 1);
    l->shared_read = shared_read || within;
    const lilac_tile_op *end = lilac_lower_block(l, block);
    if (end == NULL || !fill(l, &values, end, 0, carried, inside + 1)) {
        return false;
    }
    l->op = op;
    lilac_simt_value first = lilac_simt_loop_end(&l->builder, loop, values.values);
    l->shared_read = l->shared_read || shared_read;
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, carried);
    if (!define_results(l, op, results)) {
        return false;
    }
    for (uint32_t i = 0; i < carried; i++) {
        if (results[i]->view != inside[i + 1]->view) {
            return lilac_lower_unsupported(l, "a result has another layout than what is carried");
        }
    }
    unflatten_all(results, carried, first);
    return true;
}

/* ---- scf.if ------------------------------------------------------------------------------ */

static bool lower_side(lilac_lowering *l, const lilac_tile_op *op, uint32_t side, bundle *values,
                       lilac_lower_value *const *results) {
    const lilac_tile_region *region = op->regions[side];
    if (region->first == NULL) {
        return op->result_count == 0 || lilac_lower_unsupported(l, "it has no else");
    }
    const lilac_tile_block *block = only_block(l, region, 0);
    const lilac_tile_op *end = block == NULL ? NULL : lilac_lower_block(l, block);
    return end != NULL && fill(l, values, end, 0, op->result_count, results);
}

static bool lower_if(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value **results =
        lilac_arena_array(l->arena, lilac_lower_value *, op->result_count);
    if (!define_results(l, op, results)) {
        return false;
    }
    bundle values = make_bundle(l, op->result_count, results);
    bool shared_read = l->shared_read;
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(&l->builder, lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0),
                            values.count, values.types);
    if (!lower_side(l, op, 0, &values, results)) {
        return false;
    }
    bool after_then = l->shared_read;
    l->shared_read = shared_read;
    l->op = op;
    lilac_simt_if_else(&l->builder, branch, values.values);
    if (!lower_side(l, op, 1, &values, results)) {
        return false;
    }
    l->op = op;
    lilac_simt_value first = lilac_simt_if_end(&l->builder, branch, values.values);
    l->shared_read = l->shared_read || after_then;
    unflatten_all(results, op->result_count, first);
    return true;
}

/* ---- scf.while --------------------------------------------------------------------------- */

static bool lower_while(lilac_lowering *l, const lilac_tile_op *op) {
    uint32_t carried = op->operand_count, passed = op->result_count;
    const lilac_tile_block *before = only_block(l, op->regions[0], carried);
    const lilac_tile_block *after = only_block(l, op->regions[1], passed);
    if (before == NULL || after == NULL) {
        return false;
    }
    lilac_lower_value **first = lilac_arena_array(l->arena, lilac_lower_value *, carried);
    lilac_lower_value **second = lilac_arena_array(l->arena, lilac_lower_value *, passed);
    lilac_lower_value **results = lilac_arena_array(l->arena, lilac_lower_value *, passed);
    if (!define_all(l, carried, before->arguments, first) ||
        !define_all(l, passed, after->arguments, second) || !define_results(l, op, results)) {
        return false;
    }
    for (uint32_t i = 0; i < passed; i++) {
        if (second[i]->view != results[i]->view) {
            return lilac_lower_unsupported(l, "a result has another layout than what is passed on");
        }
    }
    bundle inits = make_bundle(l, carried, first), out = make_bundle(l, passed, results);
    if (!fill(l, &inits, op, 0, carried, first)) {
        return false;
    }
    bool within = reads_shared(l, op->regions[0]) || reads_shared(l, op->regions[1]);
    lilac_simt_value arguments;
    lilac_simt_instruction *loop = lilac_simt_while_begin(&l->builder, inits.count, inits.values,
                                                          out.count, out.types, &arguments);
    unflatten_all(first, carried, arguments);
    l->shared_read = l->shared_read || within;
    const lilac_tile_op *end = lilac_lower_block(l, before);
    if (end == NULL) {
        return false;
    }
    if (end->code != LILAC_TILE_OP_SCF_CONDITION) {
        return lilac_lower_unsupported(l, "it ends the region of a condition");
    }
    lilac_simt_value condition = lilac_lower_get(l, lilac_lower_operand(l, end, 0), 0);
    if (!fill(l, &out, end, 1, passed, results)) {
        return false;
    }
    bool leaves_read = l->shared_read; /* the loop is left from here */
    lilac_simt_while_condition(&l->builder, loop, condition, out.values, &arguments);
    unflatten_all(second, passed, arguments);
    end = lilac_lower_block(l, after);
    if (end == NULL || !fill(l, &inits, end, 0, carried, first)) {
        return false;
    }
    l->op = op;
    lilac_simt_value values = lilac_simt_while_end(&l->builder, loop, inits.values);
    l->shared_read = leaves_read;
    unflatten_all(results, passed, values);
    return true;
}

/* ---- assertions -------------------------------------------------------------------------- */

/* All of a thread's elements at once: one check. */
static bool lower_assert(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_simt_builder *b = &l->builder;
    const lilac_lower_value *condition = lilac_lower_operand(l, op, 0);
    lilac_simt_value all = 0;
    for (uint32_t r = 0; r < condition->count; r++) {
        if (condition->view != NULL && condition->view->canonical[r] != r) {
            continue;
        }
        lilac_simt_value value = lilac_lower_get(l, condition, r);
        if (condition->simt != LILAC_SIMT_I1) {
            value = lilac_simt_compare_values(b, LILAC_SIMT_NE, value,
                                              lilac_lower_integer(l, condition->simt, 0));
        }
        all = all == 0 ? value : lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I1, all, value);
    }
    lilac_name message = lilac_tile_find_text(
        &op->attributes, op->code == LILAC_TILE_OP_TT_ASSERT ? "message" : "msg");
    lilac_simt_instruction check = {.code = LILAC_SIMT_OP_ASSERT,
                                    .text = message != NULL ? message : ""};
    (void)lilac_simt_build(b, &check, 1, &all, 0, NULL);
    return true;
}

bool lilac_lower_control(lilac_lowering *l, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
        return lower_for(l, op);
    case LILAC_TILE_OP_SCF_IF:
        return lower_if(l, op);
    case LILAC_TILE_OP_SCF_WHILE:
        return lower_while(l, op);
    default:
        return lower_assert(l, op);
    }
}
