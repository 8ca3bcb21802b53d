/* Loops, conditionals and assertions. carried_values.c has the values that they carry.
 *
 * Conditions are scalars that all threads share; conditions that differ between threads, in the
 * regions of single elements, are lowered by map_elementwise.c. */
#include "control.h"
#include "carried_values.h"
#include "coordinates.h"
#include "memory/descriptor.h"
#include "operations.h"

#include <lilac/tile_loops.h>

/* ---- values, blocks ----------------------------------------------------------------------- */

static lilac_lower_value *define_passed(lilac_lowering *l, const lilac_tile_value *tile) {
    bool is_reference =
        tile->type->kind == LILAC_TILE_MEMDESC || tile->type->kind == LILAC_TILE_TOKEN;
    return is_reference ? lilac_lower_define_reference(l, tile) : lilac_lower_define(l, tile);
}

static bool define_all(lilac_lowering *l, uint32_t count, lilac_tile_value *const *tiles,
                       lilac_lower_value **values) {
    for (uint32_t i = 0; i < count; i++) {
        values[i] = define_passed(l, tiles[i]);
        if (values[i] == NULL) {
            return false;
        }
    }
    return true;
}

static bool define_results(lilac_lowering *l, const lilac_tile_op *op, lilac_lower_value **values) {
    for (uint32_t i = 0; i < op->result_count; i++) {
        values[i] = define_passed(l, &op->results[i]);
        if (values[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* The block of a region that must have one block with this number of arguments. */
static const lilac_tile_block *only_block(lilac_lowering *l, const lilac_tile_region *region,
                                          uint32_t arguments) {
    const lilac_tile_block *block = region->first;
    if (block == NULL || block->next != NULL) {
        (void)lilac_lower_unsupported(l, "a region has %s; expected one block",
                                      block == NULL ? "no block" : "several blocks");
        return NULL;
    }
    if (block->argument_count != arguments) {
        (void)lilac_lower_unsupported(l, "a region has %u arguments; expected %u",
                                      block->argument_count, arguments);
        return NULL;
    }
    return block;
}

/* ---- scf.for ----------------------------------------------------------------------------- */

/* The SIMT loop counts in 32 or 64 bits; a narrower bound is extended to 32. */
static lilac_simt_value counter(lilac_lowering *l, const lilac_lower_value *value) {
    lilac_simt_value number = lilac_lower_get(l, value, 0);
    return lilac_simt_type_bits(value->simt) >= 32
               ? number
               : lilac_simt_op1(&l->builder, LILAC_SIMT_OP_SEXT, LILAC_SIMT_I32, number);
}

/* Is the value known to be equal in every element? */
static bool is_splat(const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    if (op == NULL) {
        return false;
    }
    const lilac_tile_attribute *attribute =
        op->code == LILAC_TILE_OP_ARITH_CONSTANT ? lilac_tile_find(&op->attributes, "value") : NULL;
    return op->code == LILAC_TILE_OP_TT_SPLAT || (attribute != NULL && attribute->count <= 1);
}

/* Is `next` the argument plus splats, added within this block? */
static bool only_advances(const lilac_tile_block *block, const lilac_tile_value *argument,
                          const lilac_tile_value *next) {
    while (next != argument) {
        const lilac_tile_op *op = next->op;
        if (op == NULL || op->parent != block ||
            (op->code != LILAC_TILE_OP_TT_ADDPTR && op->code != LILAC_TILE_OP_ARITH_ADDI &&
             op->code != LILAC_TILE_OP_ARITH_SUBI) ||
            !is_splat(op->operands[1].value)) {
            return false;
        }
        next = op->operands[0].value;
    }
    return true;
}

/* Offsets that fit 32 bits cannot overflow 64 bits in later sums and products. */
static bool keeps_parts(const lilac_lower_value *init, const lilac_lower_view *view) {
    return init->view == view && view != NULL && init->offsets != NULL &&
           init->offset_low >= INT32_MIN && init->offset_high <= INT32_MAX;
}

static void plan_carried(lilac_lowering *l, const lilac_tile_block *block, uint32_t index,
                         const lilac_lower_value *init, const lilac_lower_value *inside,
                         carried_value *c) {
    const lilac_tile_op *end = block->last;
    const lilac_tile_value *argument = lilac_tile_iteration_argument(block->parent->parent, index);
    const lilac_tile_value *next =
        end != NULL && index < end->operand_count ? end->operands[index].value : NULL;
    bool by_base =
        next != NULL && keeps_parts(init, inside->view) && only_advances(block, argument, next);
    lilac_lower_carry_value(
        l, inside, next != NULL && !by_base && lilac_lower_is_carried_packed(argument, next), c);
    if (!by_base) {
        return;
    }
    c->by_base = true;
    c->count = 0;
    c->offsets = init->offsets;
    c->offset_low = init->offset_low;
    c->offset_high = init->offset_high;
    for (uint32_t r = 0; r < inside->count; r++) {
        uint32_t same = inside->view->canonical[r];
        if (same != r) {
            c->places[r] = c->places[same];
            continue;
        }
        /* Equal bases are in nearby registers: a search of the last 8 finds them. */
        uint32_t back = 0;
        while (back < c->count && back < 8 &&
               init->base[c->registers[c->count - 1 - back]] != init->base[r]) {
            back++;
        }
        if (back < c->count && back < 8) {
            c->places[r] = c->count - 1 - back;
        } else {
            c->registers[c->count] = r;
            c->places[r] = c->count++;
        }
    }
    c->width = c->count;
}

static void define_counter(lilac_lowering *l, const lilac_lower_value *lower,
                           const lilac_lower_value *upper, lilac_simt_value variable,
                           lilac_lower_value *inside) {
    bool narrow = lilac_simt_type_bits(lower->simt) < 32;
    inside->base[0] =
        narrow ? lilac_simt_op1(&l->builder, LILAC_SIMT_OP_TRUNC, lower->simt, variable) : variable;
    if (lower->low < upper->high) {
        inside->low = lower->low;
        inside->high = upper->high - 1;
    }
}

/* Refuses a loop whose operands or induction variable have no lowering. */
static bool check_for(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *lower = lilac_lower_operand(l, op, 0);
    const uint32_t expected = lilac_tile_first_passed(op) + op->result_count;
    if (lower->simt == LILAC_SIMT_I1 || lilac_tile_find(&op->attributes, "unsignedCmp") != NULL) {
        return lilac_lower_unsupported(
            l, "the induction variable is an i1 or unsigned; expected a signed "
               "integer of 8 to 64 bits");
    }
    if (op->operand_count != expected) {
        return lilac_lower_unsupported(l, "it has %u operands; %u results need %u",
                                       op->operand_count, op->result_count, expected);
    }
    return true;
}

/* Lowers the body, and passes the values that it yields to the next iteration. */
static bool lower_for_body(lilac_lowering *l, const lilac_tile_block *block, loop_values *b,
                           lilac_lower_value **arguments) {
    const lilac_tile_op *end = lilac_lower_block(l, block);
    if (end == NULL) {
        return false;
    }
    if (end->operand_count != b->count) {
        return lilac_lower_unsupported(l, "the region yields %u values; the loop carries %u",
                                       end->operand_count, b->count);
    }
    return lilac_lower_loop_values_send(l, b, end, 0, arguments);
}

/* Defines the results of the loop from the SIMT values from `first` on. */
static bool define_for_results(lilac_lowering *l, const lilac_tile_op *op, const loop_values *b,
                               lilac_lower_value *const *arguments, lilac_simt_value first) {
    for (uint32_t i = 0, at = 0; i < b->count; at += b->plans[i++].width) {
        lilac_lower_value *result = define_passed(l, &op->results[i]);
        if (result == NULL) {
            return false;
        }
        if (result->view != arguments[i]->view) {
            return lilac_lower_unsupported(
                l, "result %u has another layout than the region's argument %u", i, i + 1);
        }
        lilac_lower_receive_value(l, &b->plans[i], result, first + at);
    }
    return true;
}

static bool lower_for(lilac_lowering *l, const lilac_tile_op *op) {
    uint32_t carried = op->result_count;
    const lilac_lower_value *lower = lilac_lower_operand(l, op, 0);
    const lilac_lower_value *upper = lilac_lower_operand(l, op, 1);
    const lilac_lower_value *step = lilac_lower_operand(l, op, 2);
    const lilac_tile_block *block = only_block(l, op->regions[0], carried + 1);
    if (block == NULL || !check_for(l, op)) {
        return false;
    }
    lilac_lower_value **inside = lilac_arena_array(l->arena, lilac_lower_value *, carried + 1);
    const uint32_t first_init = lilac_tile_first_passed(op);
    if (!define_all(l, carried + 1, block->arguments, inside)) {
        return false;
    }
    loop_values b = {.count = carried,
                     .plans = lilac_arena_array(l->arena, carried_value, carried)};
    for (uint32_t i = 0; i < carried; i++) {
        plan_carried(l, block, i, lilac_lower_operand(l, op, first_init + i), inside[i + 1],
                     &b.plans[i]);
    }
    lilac_lower_loop_values_fill(l, &b);
    if (!lilac_lower_loop_values_send(l, &b, op, first_init, inside + 1)) {
        return false;
    }
    lilac_simt_value variable;
    lilac_simt_value stride = counter(l, step), last = counter(l, upper);
    lilac_simt_instruction *loop = lilac_simt_loop_begin(&l->builder, counter(l, lower), last,
                                                         stride, b.width, b.values, &variable);
    loop->detail = lilac_tile_keeps_invariants(op) ? LILAC_SIMT_KEEP_INVARIANTS : 0;
    define_counter(l, lower, upper, variable, inside[0]);
    lilac_lower_loop_values_receive(l, &b, inside + 1, variable + 1);
    if (!lower_for_body(l, block, &b, inside + 1)) {
        return false;
    }
    l->op = op;
    lilac_simt_value first = lilac_simt_loop_end(&l->builder, loop, b.values);
    return define_for_results(l, op, &b, inside + 1, first);
}

/* ---- scf.if ------------------------------------------------------------------------------ */

static bool lower_side(lilac_lowering *l, const lilac_tile_op *op, uint32_t side,
                       loop_values *values, lilac_lower_value *const *results) {
    const lilac_tile_region *region = op->regions[side];
    if (region->first == NULL) {
        return op->result_count == 0 ||
               lilac_lower_unsupported(l, "it has %u results and no else region", op->result_count);
    }
    const lilac_tile_block *block = only_block(l, region, 0);
    const lilac_tile_op *end = block == NULL ? NULL : lilac_lower_block(l, block);
    return end != NULL && lilac_lower_loop_values_send(l, values, end, 0, results);
}

static bool lower_if(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value **results =
        lilac_arena_array(l->arena, lilac_lower_value *, op->result_count);
    if (!define_results(l, op, results)) {
        return false;
    }
    lilac_tile_value **tiles = lilac_arena_array(l->arena, lilac_tile_value *, op->result_count);
    for (uint32_t i = 0; i < op->result_count; i++) {
        tiles[i] = &op->results[i];
    }
    const lilac_tile_block *then = op->regions[0]->first;
    loop_values values = lilac_lower_loop_values_make(l, op->result_count, results, tiles,
                                                      then != NULL ? then->last : NULL, 0);
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(&l->builder, lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0),
                            values.width, values.types);
    if (!lower_side(l, op, 0, &values, results)) {
        return false;
    }
    l->op = op;
    lilac_simt_if_else(&l->builder, branch, values.values);
    if (!lower_side(l, op, 1, &values, results)) {
        return false;
    }
    l->op = op;
    lilac_simt_value first = lilac_simt_if_end(&l->builder, branch, values.values);
    lilac_lower_loop_values_receive(l, &values, results, first);
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
            return lilac_lower_unsupported(
                l, "result %u has another layout than argument %u of the second region", i, i);
        }
    }
    loop_values inits =
        lilac_lower_loop_values_make(l, carried, first, before->arguments, after->last, 0);
    loop_values out =
        lilac_lower_loop_values_make(l, passed, results, after->arguments, before->last, 1);
    if (!lilac_lower_loop_values_send(l, &inits, op, 0, first)) {
        return false;
    }
    lilac_simt_value arguments;
    lilac_simt_instruction *loop = lilac_simt_while_begin(&l->builder, inits.width, inits.values,
                                                          out.width, out.types, &arguments);
    loop->detail = lilac_tile_keeps_invariants(op) ? LILAC_SIMT_KEEP_INVARIANTS : 0;
    lilac_lower_loop_values_receive(l, &inits, first, arguments);
    const lilac_tile_op *end = lilac_lower_block(l, before);
    if (end == NULL) {
        return false;
    }
    if (end->code != LILAC_TILE_OP_SCF_CONDITION) {
        return lilac_lower_unsupported(l,
                                       "the first region of scf.while must end with scf.condition");
    }
    lilac_simt_value condition = lilac_lower_get(l, lilac_lower_operand(l, end, 0), 0);
    if (!lilac_lower_loop_values_send(l, &out, end, 1, results)) {
        return false;
    }
    lilac_simt_while_condition(&l->builder, loop, condition, out.values, &arguments);
    lilac_lower_loop_values_receive(l, &out, second, arguments);
    end = lilac_lower_block(l, after);
    if (end == NULL || !lilac_lower_loop_values_send(l, &inits, end, 0, first)) {
        return false;
    }
    l->op = op;
    lilac_simt_value values = lilac_simt_while_end(&l->builder, loop, inits.values);
    lilac_lower_loop_values_receive(l, &out, results, values);
    return true;
}

/* ---- assertions -------------------------------------------------------------------------- */

/* One check for the conjunction of all of a thread's elements. */
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
        all = lilac_lower_both(l, all, value);
    }
    lilac_name message =
        lilac_lower_text(l, op, op->code == LILAC_TILE_OP_TT_ASSERT ? "message" : "msg");
    lilac_simt_instruction check = {.code = LILAC_SIMT_OP_ASSERT,
                                    .text = message != NULL ? message : ""};
    (void)lilac_simt_build(b, &check, 1, &all, 0, NULL);
    return true;
}

bool lilac_lower_control(lilac_lowering *l, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_SCF_FOR:
        return lilac_lower_diverges(l, op) ? lilac_lower_for_elements(l, op) : lower_for(l, op);
    case LILAC_TILE_OP_SCF_IF:
        return lilac_lower_diverges(l, op) ? lilac_lower_if_elements(l, op) : lower_if(l, op);
    case LILAC_TILE_OP_SCF_WHILE:
        return lilac_lower_diverges(l, op) ? lilac_lower_while_elements(l, op) : lower_while(l, op);
    default:
        return lower_assert(l, op);
    }
}
