/* assert_divisors: a test at run time for what the widths of accesses depend on.
 *
 *     %n = arith.divsi %pid, %group                cf.assert %group > 0
 *     %x = %n * 128 + range                   →    %n = arith.divsi %pid, %group
 *     %r = arith.remsi %x, %N                      …
 *
 * Kernels number their tiles as program // group, with a group size that no operation bounds from below,
 * and take the rows modulo the size of the matrix. The remainder of an aligned run is a run where the
 * dividend is not negative, and it is not where the group is positive. The test costs a comparison and a
 * branch for each program. A kernel that it stops would divide the number of a program by a negative
 * number and address memory in front of its tensors.
 *
 * The assertion has no message, so the kernel traps without a call: a call in a kernel serialises its
 * wgmmas.
 *
 * Only scalar quotients of numbers that are not negative get a test, and only if the dividend of a
 * remainder of tensors comes from them. */
#include "internal.h"

#include <lilac/tile_loops.h>

enum { MOST_STEPS = 64 /* values that a search visits */ };

typedef struct divisors {
    lilac_tile_module *module;
    const lilac_range *ranges;
    bool changed;
} divisors;

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
        const bool follows = op->code == LILAC_TILE_OP_ARITH_ADDI ||
                             op->code == LILAC_TILE_OP_ARITH_MULI ||
                             op->code == LILAC_TILE_OP_ARITH_EXTSI ||
                             op->code == LILAC_TILE_OP_TT_SPLAT;
        if (follows && reaches_remainder(&op->results[0], steps)) {
            return true;
        }
    }
    return false;
}

static bool needs_test(const divisors *d, const lilac_tile_op *op) {
    int64_t number;
    uint32_t steps = 0;
    if (op->code != LILAC_TILE_OP_ARITH_DIVSI || lilac_tile_is_tensor(op->results[0].type) ||
        lilac_tile_constant(op->operands[1].value, &number)) {
        return false;
    }
    return d->ranges[op->operands[0].value->id].low >= 0 &&
           d->ranges[op->operands[1].value->id].low <= 0 && reaches_remainder(&op->results[0], &steps);
}

static void set_text(divisors *d, lilac_tile_op *op, lilac_tile_attribute_kind kind, const char *name,
                     const char *text) {
    const lilac_tile_attribute attribute = {.kind = kind,
                                            .name = lilac_intern_string(d->module->context, name),
                                            .text = lilac_intern_string(d->module->context, text)};
    lilac_tile_set_attribute(d->module, &op->attributes, &attribute);
}

static void insert_test(divisors *d, lilac_tile_op *op) {
    lilac_tile_value *divisor = op->operands[1].value;
    lilac_tile_op *zero = lilac_engine_make_constant(d->module, op, divisor->type, 0);
    lilac_tile_value *values[2] = {divisor, &zero->results[0]};
    const lilac_tile_type *type = lilac_tile_scalar(d->module, LILAC_I1);
    lilac_tile_op *compare = lilac_tile_op_create(d->module, LILAC_TILE_OP_ARITH_CMPI, 2, values, 1,
                                                  &type, 0, op->location);
    lilac_tile_value *condition = &compare->results[0];
    lilac_tile_op *test = lilac_tile_op_create(d->module, LILAC_TILE_OP_CF_ASSERT, 1, &condition, 0,
                                               NULL, 0, op->location);
    set_text(d, compare, LILAC_TILE_ATTR_KEYWORD, "predicate", "sgt");
    set_text(d, test, LILAC_TILE_ATTR_STRING, "msg", "");
    compare->position = test->position = op->position;
    lilac_tile_insert_before(op, compare);
    lilac_tile_insert_before(op, test);
    d->changed = true;
}

static void visit_region(divisors *d, lilac_tile_region *region) {
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(d, op->regions[r]);
            }
            if (needs_test(d, op)) {
                insert_test(d, op);
            }
        }
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
        lilac_engine_ranges(ranges, function);
        d.ranges = ranges;
        visit_region(&d, function->body);
        lilac_heap_free(ranges);
        lilac_tile_number(function);
    }
    *changed = d.changed;
    return true;
}
