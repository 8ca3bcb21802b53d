/* ranges: bounds of the elements of integers, as signed numbers.
 *
 *     %pid   = tt.get_program_id x                 [0, 2^31 - 2]
 *     %first = arith.muli %pid, 1024               [0, 2^31 - 1024]
 *     %range = tt.make_range {0, 1024}             [0, 1023]
 *     %x     = arith.addi %first, %range           [0, 2^31 - 1]
 *     %row   = arith.remsi %x, 768                 [0, 767]
 *
 * range_arith.c has the ranges of the results of single operations.
 *
 * Sweeps over the function find the ranges of what loops carry, the least that contain the first
 * value and the next ones. After PRECISE_SWEEPS sweeps, a bound that still changes becomes 0 or
 * that of the type.
 *
 * Conditions narrow the ranges of their operands where they hold: an assertion or assumption up to
 * the end of its block, that of scf.if in its regions, that of scf.while in its second region and
 * for its results.
 *
 *     scf.while (%x = %c0) { %c = arith.cmpi slt, %x, %n    scf.condition(%c) %x }
 *     do { ^bb0(%y):                                        [0, 2^31 - 2]
 *       %z = arith.addi %y, 1   scf.yield %z }              [1, 2^31 - 1]
 *
 * A range is meaningful for elements that are defined. Divisions by zero and shifts by the width or
 * more are not. */
#include "internal.h"

#include <lilac/tile_loops.h>

#include <string.h>

#define LOOK_BACK 6

#define PRECISE_SWEEPS 3 /* sweeps in which a carried range may grow step by step */
#define MOST_SWEEPS    8 /* then one more, in which nothing is known of carried values */

static const lilac_range empty = {INT64_MAX, INT64_MIN}; /* neutral in a join */

/* ---- conditions ------------------------------------------------------------------------- */

/* The value has the range `before` after the block. */
static void record(lilac_range_walk *walk, const lilac_tile_value *value, lilac_range before) {
    if (walk->change_count == walk->change_capacity) {
        walk->change_capacity = 2 * walk->change_capacity + 16;
        walk->changes =
            lilac_heap_grow(walk->changes, walk->change_capacity * sizeof *walk->changes);
    }
    walk->changes[walk->change_count++] = (lilac_range_change){value->id, before};
}

static void narrow(lilac_range_walk *walk, const lilac_tile_value *value, lilac_range to) {
    lilac_range *range = &walk->ranges[value->id];
    to.low = max_i64(range->low, to.low);
    to.high = min_i64(range->high, to.high);
    if (to.low > to.high || (to.low == range->low && to.high == range->high)) {
        return; /* this place is not reached, or the range says more */
    }
    record(walk, value, *range);
    *range = to;
}

void lilac_range_at_least(lilac_range_walk *walk, const lilac_tile_value *value, int64_t low) {
    narrow(walk, value, (lilac_range){low, INT64_MAX});
}

void lilac_range_expose(lilac_range_walk *walk, const lilac_tile_op *op, uint32_t mark) {
    for (uint32_t i = 0; i < op->result_count && walk->change_count > mark; i++) {
        record(walk, &op->results[i], lilac_range_of_bits(lilac_range_bits(op->results[i].type)));
    }
}

static void take_back(lilac_range_walk *walk, uint32_t mark) {
    while (walk->change_count > mark) {
        const lilac_range_change *change = &walk->changes[--walk->change_count];
        walk->ranges[change->id] = change->before;
    }
}

/* x < y, or x <= y. */
static void assume_order(lilac_range_walk *walk, const lilac_tile_value *x,
                         const lilac_tile_value *y, bool strict) {
    const lilac_range a = walk->ranges[x->id], b = walk->ranges[y->id];
    if (b.high > INT64_MIN && a.low < INT64_MAX) {
        narrow(walk, x, (lilac_range){INT64_MIN, b.high - strict});
        narrow(walk, y, (lilac_range){a.low + strict, INT64_MAX});
    }
}

/* x PREDICATE y holds for every element; with `holds` false: for none. */
static void assume_comparison(lilac_range_walk *walk, const lilac_tile_op *op, bool holds) {
    lilac_name predicate = lilac_tile_find_text(&op->attributes, "predicate");
    const lilac_tile_value *x = op->operands[0].value, *y = op->operands[1].value;
    if (predicate == NULL || lilac_range_bits(x->type) < 2) {
        return;
    }
    if (strcmp(predicate, holds ? "eq" : "ne") == 0) {
        narrow(walk, x, walk->ranges[y->id]);
        narrow(walk, y, walk->ranges[x->id]);
    } else if (strlen(predicate) == 3 && predicate[0] == 's') {
        const bool below = (predicate[1] == 'l') == holds; /* x < y or x <= y */
        const bool strict = (predicate[2] == 't') == holds;
        assume_order(walk, below ? x : y, below ? y : x, strict);
    }
}

/* The condition holds for every element; with `holds` false: for none. */
static void assume(lilac_range_walk *walk, const lilac_tile_value *condition, bool holds,
                   uint32_t depth) {
    const lilac_tile_op *op = condition->op;
    if (op == NULL || depth == 0) {
        return;
    }
    if (op->code == LILAC_TILE_OP_ARITH_CMPI) {
        assume_comparison(walk, op, holds);
    } else if (op->code == (holds ? LILAC_TILE_OP_ARITH_ANDI : LILAC_TILE_OP_ARITH_ORI)) {
        assume(walk, op->operands[0].value, holds, depth - 1);
        assume(walk, op->operands[1].value, holds, depth - 1);
    }
}

static bool is_assumption(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_LLVM_INTR_ASSUME || op->code == LILAC_TILE_OP_CF_ASSERT ||
           op->code == LILAC_TILE_OP_TT_ASSERT;
}

void lilac_range_pass(lilac_range_walk *walk, const lilac_tile_op *op) {
    if (is_assumption(op)) {
        assume(walk, op->operands[0].value, true, LOOK_BACK);
    }
}

/* ---- loops and branches ----------------------------------------------------------------- */

static void forget(lilac_range *ranges, const lilac_tile_value *value) {
    ranges[value->id] = lilac_range_of_bits(lilac_range_bits(value->type));
}

static lilac_range join(lilac_range a, lilac_range b) {
    return (lilac_range){min_i64(a.low, b.low), max_i64(a.high, b.high)};
}

/* Are the carried and yielded values of the operation where the format has them? */
static bool is_regular(const lilac_tile_op *op) {
    bool regular = op->code == LILAC_TILE_OP_SCF_IF || op->code == LILAC_TILE_OP_SCF_FOR ||
                   op->code == LILAC_TILE_OP_SCF_WHILE;
    for (uint32_t r = 0; regular && r < op->region_count; r++) {
        const bool none = op->code == LILAC_TILE_OP_SCF_IF && op->result_count == 0; /* no yield */
        regular = none ? op->regions[r]->first == NULL || op->regions[r]->first->next == NULL
                       : lilac_tile_terminator(op->regions[r]) != NULL;
    }
    return regular;
}

/* Adds the first or next value of a carried one. */
static void carry(lilac_range_walk *walk, const lilac_tile_value *value, lilac_range next,
                  bool first) {
    lilac_range *range = &walk->ranges[value->id];
    const lilac_range type = lilac_range_of_bits(lilac_range_bits(value->type));
    if (walk->round == 1 && first) {
        *range = next;
        return;
    }
    lilac_range joined = walk->round > MOST_SWEEPS ? type : join(*range, next);
    if (joined.low == range->low && joined.high == range->high) {
        return;
    }
    if (walk->round > PRECISE_SWEEPS && joined.low < range->low) {
        joined.low = joined.low >= 0 ? 0 : type.low;
    }
    if (walk->round > PRECISE_SWEEPS && joined.high > range->high) {
        joined.high = joined.high <= 0 ? 0 : type.high;
    }
    walk->changed = true;
    *range = joined;
}

/* The largest number below `upper` that the counter of a loop reaches. From one lower bound in
 * steps of one number it reaches lower + i * step only; a smaller upper bound gives a smaller last
 * value. */
static int64_t last_value(lilac_range lower, lilac_range upper, lilac_range step) {
    const uint64_t span = (uint64_t)upper.high - 1 - (uint64_t)lower.low;
    const bool exact = lower.low == lower.high && step.low == step.high;
    return exact ? upper.high - 1 - (int64_t)(span % (uint64_t)step.low) : upper.high - 1;
}

static void count(lilac_range *ranges, const lilac_tile_op *loop) {
    const lilac_range lower = ranges[lilac_tile_lower_bound(loop)->id];
    const lilac_range upper = ranges[lilac_tile_upper_bound(loop)->id];
    const lilac_range step = ranges[lilac_tile_step(loop)->id];
    const lilac_tile_value *counter = lilac_tile_induction_variable(loop);
    forget(ranges, counter);
    if (lilac_tile_find(&loop->attributes, "unsignedCmp") == NULL && step.low > 0 &&
        upper.high > lower.low) { /* lower <= counter < upper in every iteration */
        ranges[counter->id] = (lilac_range){lower.low, last_value(lower, upper, step)};
    }
}

uint32_t lilac_range_enter(lilac_range_walk *walk, const lilac_tile_op *owner,
                           const lilac_tile_block *block) {
    const uint32_t mark = walk->change_count;
    if (owner == NULL || !is_regular(owner)) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            forget(walk->ranges, block->arguments[i]);
        }
        return mark;
    }
    const bool first = block == owner->regions[0]->first;
    if (owner->code == LILAC_TILE_OP_SCF_IF) {
        for (uint32_t i = 0; i < owner->result_count && first; i++) {
            walk->ranges[owner->results[i].id] = empty;
        }
        assume(walk, owner->operands[0].value, first, LOOK_BACK);
    } else if (first) {
        for (uint32_t i = 0; i < lilac_tile_carried_count(owner) && walk->sweeping; i++) {
            carry(walk, lilac_tile_iteration_argument(owner, i),
                  walk->ranges[lilac_tile_init(owner, i)->id], true);
        }
        if (owner->code == LILAC_TILE_OP_SCF_FOR) {
            count(walk->ranges, owner);
        }
    } else {
        assume(walk, lilac_tile_while_condition(owner), true, LOOK_BACK);
    }
    return mark;
}

/* What scf.condition passes on, and what it leaves behind. */
static void pass_on(lilac_range_walk *walk, const lilac_tile_op *loop) {
    const uint32_t mark = walk->change_count;
    for (uint32_t holds = 0; holds < 2; holds++) {
        assume(walk, lilac_tile_while_condition(loop), holds != 0, LOOK_BACK);
        for (uint32_t i = 0; i < loop->result_count; i++) {
            const lilac_tile_value *to =
                holds ? lilac_tile_passed_argument(loop, i) : &loop->results[i];
            walk->ranges[to->id] = walk->ranges[lilac_tile_passed(loop, i)->id];
        }
        take_back(walk, mark);
    }
}

void lilac_range_close(lilac_range_walk *walk, const lilac_tile_op *owner,
                       const lilac_tile_block *block, uint32_t mark) {
    if (owner == NULL || !is_regular(owner)) {
        take_back(walk, mark);
        return;
    }
    const bool first = block == owner->regions[0]->first;
    if (owner->code == LILAC_TILE_OP_SCF_IF) {
        for (uint32_t i = 0; i < owner->result_count; i++) {
            lilac_range *result = &walk->ranges[owner->results[i].id];
            const lilac_tile_value *yielded = lilac_tile_yielded(owner, !first, i);
            *result = join(*result, walk->ranges[yielded->id]);
        }
        take_back(walk, mark);
        return;
    }
    if (owner->code == LILAC_TILE_OP_SCF_WHILE && first) {
        pass_on(walk, owner);
        take_back(walk, mark);
        return;
    }
    const uint32_t carried = walk->sweeping ? lilac_tile_carried_count(owner) : 0;
    lilac_range *next = lilac_heap_grow(NULL, (carried + 1) * sizeof *next);
    for (uint32_t i = 0; i < carried; i++) {
        next[i] = walk->ranges[lilac_tile_next(owner, i)->id];
    }
    take_back(walk, mark);
    for (uint32_t i = 0; i < carried; i++) {
        carry(walk, lilac_tile_iteration_argument(owner, i), next[i], false);
    }
    lilac_heap_free(next);
}

void lilac_range_leave(lilac_range_walk *walk, const lilac_tile_op *op) {
    const bool regular = is_regular(op);
    for (uint32_t i = 0; i < op->result_count; i++) {
        if (!regular) {
            forget(walk->ranges, &op->results[i]);
        } else if (op->code == LILAC_TILE_OP_SCF_FOR) {
            walk->ranges[op->results[i].id] =
                walk->ranges[lilac_tile_iteration_argument(op, i)->id];
        }
    }
}

/* ---- a whole function ------------------------------------------------------------------- */

static void visit_region(lilac_range_walk *walk, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        const uint32_t mark = lilac_range_enter(walk, region->parent, block);
        for (const lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                visit_region(walk, op->regions[r]);
            }
            if (op->region_count > 0) {
                lilac_range_leave(walk, op);
            } else {
                lilac_range_note(walk->ranges, op);
                lilac_range_pass(walk, op);
            }
        }
        lilac_range_close(walk, region->parent, block, mark);
    }
}

void lilac_range_walk_start(lilac_range_walk *walk, lilac_range *ranges,
                            const lilac_tile_function *function) {
    *walk = (lilac_range_walk){.ranges = ranges, .sweeping = true};
    for (uint32_t i = 0; i < function->value_count; i++) {
        ranges[i] = (lilac_range){INT64_MIN, INT64_MAX};
    }
    do {
        walk->changed = false;
        walk->round++;
        visit_region(walk, function->body);
    } while (walk->changed && walk->round <= MOST_SWEEPS);
    walk->sweeping = false;
}

void lilac_range_walk_end(lilac_range_walk *walk) {
    lilac_heap_free(walk->changes);
}

void lilac_engine_ranges(lilac_range *ranges, const lilac_tile_function *function) {
    lilac_range_walk walk;
    lilac_range_walk_start(&walk, ranges, function);
    lilac_range_walk_end(&walk);
}
