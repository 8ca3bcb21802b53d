/* assert_divisors: a test at run time for what the widths of accesses depend on.
 *
 *     %n = arith.divsi %pid, %group                cf.assert %group > 0
 *     %x = %n * 128 + range                   →    %n = arith.divsi %pid, %group
 *     %r = arith.remsi %x, %N                      …
 *
 * Kernels number their tiles as program // group, with a group size that no operation bounds from
 * below, and take the rows modulo the size of the matrix. The remainder of an aligned run is a run
 * where the dividend is not negative, and it is not where the group is positive. The test costs a
 * comparison and a branch for each program. A kernel that it stops would divide the number of a
 * program by a negative number and address memory in front of its tensors.
 *
 *     scf.while (%step = %pid * %part) …           scf.while (%step = %pid * %part) …
 *       %n = arith.divsi %step, %group        →      cf.assert %step >= 0   cf.assert %group > 0
 *       …                                            %n = arith.divsi %step, %group
 *
 * Programs with several tiles number the steps of all tiles. Such a number is carried by a loop,
 * its first value is a product of the program's, and no operation says that it does not become
 * negative; it is tested too.
 *
 * The assertion has no message, so the kernel traps without a call: a call in a kernel serialises
 * its wgmmas.
 *
 * describe_loads has tests of other divisors, which no fact needs. In an innermost loop a test would
 * be in the way of pipeline_loops, so it is in front of it: the divisor is positive, or the loop has
 * no iteration.
 *
 * Only scalar divisions of such numbers, and of those that are not negative, get a test, and only
 * if the dividend of a remainder of tensors comes from them. */
#include "emit.h"
#include "internal.h"

#include <lilac/tile_loops.h>

enum { MOST_STEPS = 64 /* values that a search visits */ };

typedef struct divisors {
    lilac_tile_module *module;
    lilac_range_walk at;
    bool changed;
} divisors;

static bool is_scalar_division(const lilac_tile_op *op) {
    return (op->code == LILAC_TILE_OP_ARITH_DIVSI || op->code == LILAC_TILE_OP_ARITH_REMSI) &&
           !lilac_tile_is_tensor(op->results[0].type);
}

/* Is the value, or one computed from it, the dividend of a remainder of tensors? */
static bool reaches_remainder(const lilac_tile_value *value, uint32_t *steps) {
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if ((*steps)++ == MOST_STEPS) {
            return false;
        }
        if (op->code == LILAC_TILE_OP_ARITH_REMSI && use->index == 0 &&
            lilac_tile_is_tensor(op->results[0].type)) {
            return true;
        }
        const bool follows =
            op->code == LILAC_TILE_OP_ARITH_ADDI || op->code == LILAC_TILE_OP_ARITH_MULI ||
            op->code == LILAC_TILE_OP_ARITH_EXTSI || op->code == LILAC_TILE_OP_TT_SPLAT ||
            (is_scalar_division(op) && use->index == 0);
        if (follows && reaches_remainder(&op->results[0], steps)) {
            return true;
        }
    }
    return false;
}

static bool is_carried_number(const lilac_tile_value *value) {
    return value->op == NULL && lilac_engine_is_of_program(value);
}

static lilac_range range_of(const divisors *d, const lilac_tile_op *op, uint32_t operand) {
    return d->at.ranges[op->operands[operand].value->id];
}

static void set_text(lilac_tile_module *module, lilac_tile_op *op, lilac_tile_attribute_kind kind,
                     const char *name, const char *text) {
    const lilac_tile_attribute attribute = {.kind = kind,
                                            .name = lilac_intern_string(module->context, name),
                                            .text = lilac_intern_string(module->context, text)};
    lilac_tile_set_attribute(module, &op->attributes, &attribute);
}

/* The first division by the same number in the operation's block: the test in front of it holds for all. */
static lilac_tile_op *first_division(lilac_tile_op *op, uint32_t operand) {
    for (lilac_tile_op *at = op->parent->first; operand == 1 && at != op; at = at->next) {
        if (is_scalar_division(at) && at->operands[1].value == op->operands[1].value) {
            return at;
        }
    }
    return op;
}

/* Tests that an operand is at least `least`. */
static void put_test(lilac_tile_module *module, lilac_tile_op *op, uint32_t operand,
                     int64_t least) {
    lilac_tile_value *number = op->operands[operand].value;
    op = first_division(op, operand);
    lilac_tile_op *zero = lilac_engine_make_constant(module, op, number->type, 0);
    lilac_tile_value *values[2] = {number, &zero->results[0]};
    const lilac_tile_type *type = lilac_tile_scalar(module, LILAC_I1);
    lilac_tile_op *compare = lilac_tile_op_create(module, LILAC_TILE_OP_ARITH_CMPI, 2, values, 1,
                                                  &type, 0, op->location);
    lilac_tile_value *condition = &compare->results[0];
    lilac_tile_op *test = lilac_tile_op_create(module, LILAC_TILE_OP_CF_ASSERT, 1, &condition, 0,
                                               NULL, 0, op->location);
    set_text(module, compare, LILAC_TILE_ATTR_KEYWORD, "predicate", least > 0 ? "sgt" : "sge");
    set_text(module, test, LILAC_TILE_ATTR_STRING, "msg", "");
    compare->position = test->position = op->position;
    lilac_tile_insert_before(op, compare);
    lilac_tile_insert_before(op, test);
}

/* ---- tests in front of loops ----------------------------------------------------------------- */

static void find_loop(void *data, lilac_tile_op *op) {
    *(bool *)data |= lilac_tile_is_loop(op);
}

/* The loop around an operation, if the value is not defined in it and no loop is. */
static lilac_tile_op *loop_to_leave(const lilac_tile_op *op, const lilac_tile_value *value) {
    lilac_tile_op *loop = op->parent->parent->parent;
    bool loops = false;
    if (loop == NULL || loop->code != LILAC_TILE_OP_SCF_FOR || lilac_tile_is_inside(value, loop)) {
        return NULL;
    }
    lilac_tile_walk(loop->regions[0], find_loop, &loops);
    return loops ? NULL : loop;
}

lilac_tile_op *lilac_engine_place_of_test(lilac_tile_op *op, uint32_t operand) {
    lilac_tile_op *loop = loop_to_leave(op, op->operands[operand].value);
    return loop != NULL ? loop : op;
}

void lilac_engine_assert_positive(lilac_tile_module *module, lilac_tile_op *op, uint32_t operand) {
    lilac_tile_value *number = op->operands[operand].value;
    lilac_tile_op *loop = loop_to_leave(op, number);
    if (loop == NULL) {
        put_test(module, op, operand, 1);
        return;
    }
    const lilac_emitter e = {module, loop};
    const bool is_unsigned = lilac_tile_find(&loop->attributes, "unsignedCmp") != NULL;
    lilac_tile_value *positive =
        lilac_emit_compare(&e, "sgt", number, lilac_emit_integer(&e, number->type, 0));
    lilac_tile_value *empty =
        lilac_emit_compare(&e, is_unsigned ? "uge" : "sge", lilac_tile_lower_bound(loop),
                           lilac_tile_upper_bound(loop));
    lilac_tile_value *holds = lilac_emit_binary(&e, LILAC_TILE_OP_ARITH_ORI, positive, empty);
    lilac_tile_op *test = lilac_emit(&e, LILAC_TILE_OP_CF_ASSERT, NULL, 1, &holds);
    set_text(module, test, LILAC_TILE_ATTR_STRING, "msg", "");
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void insert_test(divisors *d, lilac_tile_op *op, uint32_t operand, int64_t least) {
    put_test(d->module, op, operand, least);
    lilac_range_at_least(&d->at, op->operands[operand].value, least);
    d->changed = true;
}

static void test_division(divisors *d, lilac_tile_op *op) {
    int64_t number;
    uint32_t steps = 0;
    const bool carried = range_of(d, op, 0).low < 0 && is_carried_number(op->operands[0].value);
    const bool natural = range_of(d, op, 0).low >= 0 || carried;
    const bool divides = op->code == LILAC_TILE_OP_ARITH_DIVSI && range_of(d, op, 1).low <= 0;
    if (lilac_tile_constant(op->operands[1].value, &number) || !natural || !(carried || divides) ||
        !reaches_remainder(&op->results[0], &steps)) {
        return;
    }
    if (carried) {
        insert_test(d, op, 0, 0);
    }
    if (divides) {
        insert_test(d, op, 1, 1);
    }
}

static void visit_region(divisors *d, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        const uint32_t mark = lilac_range_enter(&d->at, region->parent, block);
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(d, op->regions[r]);
            }
            if (op->region_count > 0) {
                lilac_range_leave(&d->at, op);
                continue;
            }
            if (is_scalar_division(op)) {
                test_division(d, op);
            }
            lilac_range_note(d->at.ranges, op);
            lilac_range_pass(&d->at, op);
        }
        lilac_range_close(&d->at, region->parent, block, mark);
    }
}

bool lilac_engine_assert_divisors(lilac_tile_module *module, const lilac_target *target,
                                  bool *changed) {
    (void)target;
    divisors d = {.module = module};
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body == NULL) {
            continue;
        }
        lilac_tile_number(function);
        lilac_range *ranges = lilac_heap_grow(NULL, (function->value_count + 1) * sizeof *ranges);
        lilac_range_walk_start(&d.at, ranges, function);
        visit_region(&d, function->body);
        lilac_range_walk_end(&d.at);
        lilac_heap_free(ranges);
        lilac_tile_number(function);
    }
    *changed = d.changed;
    return true;
}
