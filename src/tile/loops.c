/* Peeling and unrolling of scf.for. tile_loops.h shows the IR before and after each function.
 *
 * Induction variables are numbers modulo 2^w. That of an iteration is below the upper bound, so
 * lower + k·step does not overflow while iteration k runs; the sum after the last iteration may.
 * Therefore new bounds are induction variables of iterations that run, or old bounds. */
#include "internal.h"

#include <lilac/tile_loops.h>

static const char no_variable[] = "scf.while has no induction variable";
static const char no_step[] = "the step is not a positive constant";

/* Operations are inserted before `place`, with the location of the loop. */
typedef struct editor {
    lilac_tile_module *module;
    lilac_tile_op *loop, *place;
    const lilac_tile_type *type; /* of the induction variable */
    bool is_unsigned;
} editor;

static editor edit(lilac_tile_module *module, lilac_tile_op *loop) {
    return (editor){module, loop, loop, lilac_tile_lower_bound(loop)->type,
                    lilac_tile_find(&loop->attributes, "unsignedCmp") != NULL};
}

static lilac_tile_op *emit(const editor *e, lilac_tile_opcode code, uint32_t count,
                           lilac_tile_value *const *values, const lilac_tile_type *type) {
    lilac_tile_op *op =
        lilac_tile_op_create(e->module, code, count, values, 1, &type, 0, e->loop->location);
    op->position = e->loop->position;
    lilac_tile_insert_before(e->place, op);
    return op;
}

static lilac_tile_value *emit_constant(const editor *e, int64_t number) {
    lilac_tile_op *op = emit(e, LILAC_TILE_OP_ARITH_CONSTANT, 0, NULL, e->type);
    lilac_tile_attribute value = {.kind = LILAC_TILE_ATTR_INTEGER,
                                  .name = lilac_intern_string(e->module->context, "value"),
                                  .type = e->type,
                                  .integer =
                                      lilac_scalar_signed(e->type->scalar, (uint64_t)number)};
    lilac_tile_set_attribute(e->module, &op->attributes, &value);
    return op->results;
}

static lilac_tile_value *emit_binary(const editor *e, lilac_tile_opcode code, lilac_tile_value *a,
                                     lilac_tile_value *b) {
    lilac_tile_value *values[2] = {a, b};
    return emit(e, code, 2, values, e->type)->results;
}

static lilac_tile_value *emit_compare(const editor *e, const char *predicate, lilac_tile_value *a,
                                      lilac_tile_value *b) {
    lilac_tile_value *values[2] = {a, b};
    lilac_tile_op *op =
        emit(e, LILAC_TILE_OP_ARITH_CMPI, 2, values, lilac_tile_scalar(e->module, LILAC_I1));
    lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_KEYWORD,
                                      .name = lilac_intern_string(e->module->context, "predicate"),
                                      .text = lilac_intern_string(e->module->context, predicate)};
    lilac_tile_set_attribute(e->module, &op->attributes, &attribute);
    return op->results;
}

static lilac_tile_value *emit_select(const editor *e, lilac_tile_value *condition,
                                     lilac_tile_value *yes, lilac_tile_value *no) {
    lilac_tile_value *values[3] = {condition, yes, no};
    return emit(e, LILAC_TILE_OP_ARITH_SELECT, 3, values, e->type)->results;
}

/* Does the loop have an iteration? */
static lilac_tile_value *emit_runs(const editor *e) {
    return emit_compare(e, e->is_unsigned ? "ult" : "slt", lilac_tile_lower_bound(e->loop),
                        lilac_tile_upper_bound(e->loop));
}

/* ---- copies of iterations --------------------------------------------------------------- */

/* Copies the body of `from` before the place of the editor. `values` are the carried values: those
 * that the iteration receives, and on return those that it passes on. */
static void copy_iteration(const editor *e, const lilac_tile_op *from, lilac_tile_value *variable,
                           lilac_tile_value **values) {
    lilac_tile_mapping *mapping = lilac_tile_mapping_create();
    uint32_t count = lilac_tile_carried_count(from);
    lilac_tile_map(mapping, lilac_tile_induction_variable(from), variable);
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_map(mapping, lilac_tile_iteration_argument(from, i), values[i]);
    }
    lilac_tile_clone_body(e->module, from->regions[0]->first, mapping, e->place);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = lilac_tile_mapped(mapping, lilac_tile_next(from, i));
    }
    lilac_tile_mapping_destroy(mapping);
}

/* The first iterations of a loop with constant bounds, before it. */
static void peel_known(editor *e, uint64_t count, uint64_t trip_count) {
    lilac_tile_op *loop = e->loop;
    uint32_t carried = lilac_tile_carried_count(loop);
    lilac_tile_value **values = lilac_arena_array(e->module->arena, lilac_tile_value *, carried);
    int64_t lower = 0, step = 0;
    (void)lilac_tile_constant(lilac_tile_lower_bound(loop), &lower);
    (void)lilac_tile_constant(lilac_tile_step(loop), &step);
    for (uint32_t i = 0; i < carried; i++) {
        values[i] = lilac_tile_init(loop, i);
    }
    uint64_t next = (uint64_t)lower;
    for (uint64_t k = 0; k < count; k++, next += (uint64_t)step) {
        copy_iteration(e, loop, emit_constant(e, (int64_t)next), values);
    }
    if (count < trip_count) {
        lilac_tile_set_lower_bound(loop, emit_constant(e, (int64_t)next));
    }
    for (uint32_t i = 0; i < carried; i++) {
        if (count < trip_count) {
            lilac_tile_set_init(loop, i, values[i]);
        } else {
            lilac_tile_replace_uses(&loop->results[i], values[i]);
        }
    }
    if (count == trip_count) {
        lilac_tile_remove(loop);
    }
}

/* ---- peeling ---------------------------------------------------------------------------- */

/* An scf.if, detached. Both its regions yield these values, and its results have their types. */
static lilac_tile_op *make_if(const editor *e, lilac_tile_value *condition, uint32_t count,
                              lilac_tile_value *const *values) {
    lilac_tile_module *module = e->module;
    lilac_tile_op *op = lilac_tile_op_create(module, LILAC_TILE_OP_SCF_IF, 1, &condition, 0, NULL,
                                             2, e->loop->location);
    op->position = e->loop->position;
    lilac_tile_op *yield = lilac_tile_op_create(module, LILAC_TILE_OP_SCF_YIELD, 0, NULL, 0, NULL,
                                                0, e->loop->location);
    yield->position = e->loop->position;
    lilac_tile_append(lilac_tile_block_create(module, op->regions[0]), yield);
    if (count) {
        lilac_tile_add_if_results(module, op, count, values, values);
    }
    return op;
}

/* The first iteration, if there is one, before the loop. */
static void peel_one(editor *e) {
    lilac_tile_op *loop = e->loop;
    uint32_t carried = lilac_tile_carried_count(loop);
    lilac_tile_value **values =
        lilac_arena_array(e->module->arena, lilac_tile_value *, carried + 1);
    lilac_tile_value *lower = lilac_tile_lower_bound(loop), *upper = lilac_tile_upper_bound(loop);
    lilac_tile_value *step = lilac_tile_step(loop);
    for (uint32_t i = 0; i < carried; i++) {
        values[i] = lilac_tile_init(loop, i);
    }
    values[carried] = lower;
    lilac_tile_op *first = make_if(e, emit_runs(e), carried + 1, values);
    lilac_tile_insert_before(loop, first);
    lilac_tile_op *yield = lilac_tile_terminator(first->regions[0]);
    editor inside = *e;
    inside.place = yield;
    copy_iteration(&inside, loop, lower, values);
    lilac_tile_value *left = emit_binary(&inside, LILAC_TILE_OP_ARITH_SUBI, upper, lower);
    lilac_tile_value *more = emit_compare(&inside, "ult", step, left);
    lilac_tile_value *next = emit_binary(&inside, LILAC_TILE_OP_ARITH_ADDI, lower, step);
    values[carried] = emit_select(&inside, more, next, upper);
    lilac_tile_set_operands(e->module, yield, carried + 1, values);
    for (uint32_t i = 0; i < carried; i++) {
        lilac_tile_set_init(loop, i, &first->results[i]);
    }
    lilac_tile_set_lower_bound(loop, &first->results[carried]);
}

const char *lilac_tile_peel_first(lilac_tile_module *module, lilac_tile_op *loop, uint32_t count,
                                  bool *removed) {
    uint64_t trip_count;
    *removed = false;
    if (loop->code != LILAC_TILE_OP_SCF_FOR) {
        return no_variable;
    }
    editor e = edit(module, loop);
    if (lilac_tile_trip_count(loop, &trip_count)) {
        *removed = trip_count <= count;
        peel_known(&e, *removed ? trip_count : count, trip_count);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        peel_one(&e);
    }
    return NULL;
}

/* The uses of the loop's results become uses of values that are in no block, until the values are
 * known that replace them. */
static lilac_tile_value *hold_results(const editor *e) {
    uint32_t count = e->loop->result_count;
    lilac_tile_value *held = lilac_arena_array(e->module->arena, lilac_tile_value, count);
    for (uint32_t i = 0; i < count; i++) {
        held[i].type = e->loop->results[i].type;
        lilac_tile_replace_uses(&e->loop->results[i], &held[i]);
    }
    return held;
}

/* The induction variable of the last iteration, of a loop that has one. */
static lilac_tile_value *emit_last(const editor *e) {
    lilac_tile_value *lower = lilac_tile_lower_bound(e->loop), *step = lilac_tile_step(e->loop);
    lilac_tile_value *span =
        emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, lilac_tile_upper_bound(e->loop), lower);
    span = emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, span, emit_constant(e, 1));
    lilac_tile_value *count = emit_binary(e, LILAC_TILE_OP_ARITH_DIVUI, span, step);
    return emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, lower,
                       emit_binary(e, LILAC_TILE_OP_ARITH_MULI, count, step));
}

/* Copies the iteration with this induction variable behind the loop: as it is, or in an scf.if. */
static void put_last(editor *e, lilac_tile_value *last, lilac_tile_value *runs) {
    lilac_tile_op *loop = e->loop, *branch = NULL;
    uint32_t count = loop->result_count;
    lilac_tile_value *held = hold_results(e);
    lilac_tile_value **values = lilac_arena_array(e->module->arena, lilac_tile_value *, count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = &loop->results[i];
    }
    e->place = loop->next;
    if (runs) {
        branch = make_if(e, runs, count, values);
        lilac_tile_insert_after(loop, branch);
        e->place = lilac_tile_terminator(branch->regions[0]);
    }
    copy_iteration(e, loop, last, values);
    if (branch) {
        lilac_tile_set_operands(e->module, e->place, count, values);
    }
    for (uint32_t i = 0; i < count; i++) {
        lilac_tile_replace_uses(&held[i], branch ? &branch->results[i] : values[i]);
    }
}

const char *lilac_tile_peel_last(lilac_tile_module *module, lilac_tile_op *loop, bool *removed) {
    int64_t lower = 0, step;
    uint64_t trip_count;
    *removed = false;
    if (loop->code != LILAC_TILE_OP_SCF_FOR) {
        return no_variable;
    }
    if (!lilac_tile_constant(lilac_tile_step(loop), &step) || step < 1) {
        return no_step;
    }
    editor e = edit(module, loop);
    if (!lilac_tile_trip_count(loop, &trip_count)) {
        lilac_tile_value *runs = emit_runs(&e), *last = emit_last(&e);
        lilac_tile_set_upper_bound(loop, emit_select(&e, runs, last, lilac_tile_lower_bound(loop)));
        put_last(&e, last, runs);
    } else if (trip_count == 1) {
        *removed = true;
        peel_known(&e, 1, 1);
    } else if (trip_count > 1) {
        (void)lilac_tile_constant(lilac_tile_lower_bound(loop), &lower);
        lilac_tile_value *last =
            emit_constant(&e, (int64_t)((uint64_t)lower + (trip_count - 1) * (uint64_t)step));
        lilac_tile_set_upper_bound(loop, last);
        put_last(&e, last, NULL);
    }
    return NULL;
}

/* ---- unrolling -------------------------------------------------------------------------- */

/* The upper bound of the loop whose iterations are `factor` old ones: the induction variable of
 * the first iteration that remains, or the upper bound when none does. For a loop without
 * iterations, its lower bound. */
static lilac_tile_value *emit_middle(const editor *e, int64_t step, uint32_t factor) {
    lilac_tile_value *lower = lilac_tile_lower_bound(e->loop);
    lilac_tile_value *upper = lilac_tile_upper_bound(e->loop), *one = emit_constant(e, 1);
    lilac_tile_value *span = emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, upper, lower);
    lilac_tile_value *last =
        emit_binary(e, LILAC_TILE_OP_ARITH_DIVUI,
                    emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, span, one), lilac_tile_step(e->loop));
    lilac_tile_value *iterations = emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, last, one);
    lilac_tile_value *group = emit_constant(e, factor);
    lilac_tile_value *rest = emit_binary(e, LILAC_TILE_OP_ARITH_REMUI, iterations, group);
    lilac_tile_value *whole = emit_binary(e, LILAC_TILE_OP_ARITH_SUBI, iterations, rest);
    lilac_tile_value *middle =
        emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, lower,
                    emit_binary(e, LILAC_TILE_OP_ARITH_MULI, whole, emit_constant(e, step)));
    lilac_tile_value *none = emit_compare(e, "eq", rest, emit_constant(e, 0));
    middle = emit_select(e, none, upper, middle);
    return emit_select(e, emit_runs(e), middle, lower);
}

/* Appends the iterations 1 … factor - 1 to the body; `copy` is a copy of the old loop. */
static void repeat_body(editor *e, const lilac_tile_op *copy, int64_t step, uint32_t factor) {
    lilac_tile_op *loop = e->loop, *end = lilac_tile_terminator(loop->regions[0]);
    uint32_t carried = lilac_tile_carried_count(loop);
    lilac_tile_value **values = lilac_arena_array(e->module->arena, lilac_tile_value *, carried);
    editor inside = *e;
    inside.place = end;
    for (uint32_t i = 0; i < carried; i++) {
        values[i] = lilac_tile_next(loop, i);
    }
    for (uint32_t k = 1; k < factor; k++) {
        lilac_tile_value *by = emit_constant(&inside, k * step);
        lilac_tile_value *variable =
            emit_binary(&inside, LILAC_TILE_OP_ARITH_ADDI, lilac_tile_induction_variable(loop), by);
        copy_iteration(&inside, copy, variable, values);
    }
    lilac_tile_set_operands(e->module, end, carried, values);
}

/* Inserts the loop `rest` behind the loop: it begins with the bound and the results of the loop. */
static void add_rest(editor *e, lilac_tile_op *rest, lilac_tile_value *middle) {
    lilac_tile_op *loop = e->loop;
    for (uint32_t i = 0; i < loop->result_count; i++) {
        lilac_tile_replace_uses(&loop->results[i], &rest->results[i]);
        lilac_tile_set_init(rest, i, &loop->results[i]);
    }
    lilac_tile_set_lower_bound(rest, middle);
    lilac_tile_insert_after(loop, rest);
}

/* Unrolls a loop of which more than `factor` iterations may run. */
static void unroll_loop(editor *e, int64_t step, uint32_t factor, const uint64_t *trip_count) {
    lilac_tile_op *loop = e->loop, *copy = lilac_tile_clone(e->module, loop);
    lilac_tile_value *middle = lilac_tile_upper_bound(loop);
    bool has_rest = !trip_count || *trip_count % factor != 0;
    int64_t lower = 0;
    if (!trip_count) {
        middle = emit_middle(e, step, factor);
    } else if (has_rest) {
        (void)lilac_tile_constant(lilac_tile_lower_bound(loop), &lower);
        uint64_t whole = *trip_count - *trip_count % factor;
        middle = emit_constant(e, (int64_t)((uint64_t)lower + whole * (uint64_t)step));
    }
    lilac_tile_set_upper_bound(loop, middle);
    lilac_tile_set_step(loop, emit_constant(e, step * factor));
    repeat_body(e, copy, step, factor);
    if (has_rest) {
        add_rest(e, copy, middle);
    } else {
        lilac_tile_remove(copy);
    }
}

const char *lilac_tile_unroll(lilac_tile_module *module, lilac_tile_op *loop, uint32_t factor,
                              bool *removed) {
    uint64_t trip_count;
    int64_t step;
    *removed = false;
    if (loop->code != LILAC_TILE_OP_SCF_FOR) {
        return no_variable;
    }
    if (factor == 0) {
        return "the factor is 0";
    }
    editor e = edit(module, loop);
    bool known = lilac_tile_trip_count(loop, &trip_count);
    if (known && trip_count <= factor) {
        peel_known(&e, trip_count, trip_count);
        *removed = true;
        return NULL;
    }
    if (!lilac_tile_constant(lilac_tile_step(loop), &step) || step < 1) {
        return no_step;
    }
    uint64_t largest = lilac_scalar_mask(e.type->scalar, UINT64_MAX) >> 1;
    if ((uint64_t)step > largest / factor) {
        return "the factor times the step exceeds the type of the induction variable";
    }
    if (factor > 1) {
        unroll_loop(&e, step, factor, known ? &trip_count : NULL);
    }
    return NULL;
}
