/* ranges: bounds of the elements of integers, as signed numbers.
 *
 *     %pid   = tt.get_program_id x                 [0, 2^31 - 2]
 *     %first = arith.muli %pid, 1024               [0, 2^31 - 1024]      (below)
 *     %range = tt.make_range {0, 1024}             [0, 1023]
 *     %x     = arith.addi %first, %range           [0, 2^31 - 1]
 *     %row   = arith.remsi %x, 768                 [0, 767]
 *
 * The column `range` of operations.def names the function of each operation. Arithmetic that may
 * wrap has an unknown result, with one exception, which the axis facts make too: products and sums
 * of program ids, numbers of programs and constants up to MOST_FACTOR do not overflow, since a
 * launch has no element with a number of 2^31 or more where its indices have 32 bits.
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

#define MOST_FACTOR (1 << 16)
#define LOOK_BACK   6

#define PRECISE_SWEEPS 3 /* sweeps in which a carried range may grow step by step */
#define MOST_SWEEPS    8 /* then one more, in which nothing is known of carried values */

static const lilac_range empty = {INT64_MAX, INT64_MIN}; /* neutral in a join */

static uint32_t bits_of(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (type->kind == LILAC_TILE_MEMDESC || element->kind != LILAC_TILE_SCALAR ||
        lilac_scalar_is_float(element->scalar) || element->scalar == LILAC_INDEX) {
        return 0;
    }
    uint32_t bits = lilac_scalar_bits(element->scalar);
    return bits <= 64 ? bits : 0;
}

lilac_range lilac_range_of_bits(uint32_t bits) {
    if (bits == 0 || bits >= 64) {
        return (lilac_range){INT64_MIN, INT64_MAX};
    }
    return (lilac_range){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
}

/* One result of an operation. */
typedef struct range_query {
    const lilac_tile_op *op;
    lilac_range a, b, c; /* of operands 0 to 2 */
    uint32_t bits;       /* of the result */
    uint32_t from;       /* of operand 0 */
} range_query;

/* False: nothing is known. */
typedef bool range_function(lilac_range *result, const range_query *in);

static bool both_natural(const range_query *in) {
    return in->a.low >= 0 && in->b.low >= 0;
}

/* All bits at and below the highest one of a number that is not negative. */
static int64_t fill(int64_t number) {
    uint64_t bits = (uint64_t)number;
    for (uint32_t k = 1; k < 64; k *= 2) {
        bits |= bits >> k;
    }
    return (int64_t)bits;
}

/* The largest number of `bits` bits, unsigned; INT64_MAX for 64. */
static int64_t largest_unsigned(uint32_t bits) {
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

/* ---- sums and products ------------------------------------------------------------------ */

static const bool is_grid_operation[LILAC_TILE_OP_COUNT] = {
#define GRID(code) [LILAC_TILE_OP_##code] = true,
#include <lilac/operations.def>
};

/* Is the value computed from program ids, numbers of programs and small constants by sums and
 * products? */
static bool is_grid_index(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    int64_t number;
    if (op == NULL || depth == 0) {
        return false;
    }
    if (lilac_tile_constant(value, &number)) {
        return number >= 0 && number <= MOST_FACTOR;
    }
    bool all = is_grid_operation[op->code];
    for (uint32_t i = 0; i < op->operand_count && all; i++) {
        all = is_grid_index(op->operands[i].value, depth - 1);
    }
    return all;
}

/* The range of a sum or product of grid indices: up to the largest multiple of a constant factor. */
static bool range_of_grid(lilac_range *result, const range_query *in) {
    if (in->bits != 32 || !both_natural(in) || !is_grid_index(&in->op->results[0], LOOK_BACK)) {
        return false;
    }
    int64_t factor =
        in->op->code == LILAC_TILE_OP_ARITH_MULI && in->b.low == in->b.high ? in->b.low : 1;
    *result = (lilac_range){0, factor > 0 ? INT32_MAX / factor * factor : 0};
    return true;
}

static bool range_add(lilac_range *result, const range_query *in) {
    bool wraps = __builtin_add_overflow(in->a.low, in->b.low, &result->low);
    wraps |= __builtin_add_overflow(in->a.high, in->b.high, &result->high);
    const lilac_range type = lilac_range_of_bits(in->bits);
    wraps |= result->low < type.low || result->high > type.high;
    return !wraps || range_of_grid(result, in);
}

static bool range_sub(lilac_range *result, const range_query *in) {
    bool wraps = __builtin_sub_overflow(in->a.low, in->b.high, &result->low);
    wraps |= __builtin_sub_overflow(in->a.high, in->b.low, &result->high);
    return !wraps && result->high <= lilac_range_of_bits(in->bits).high;
}

static bool range_mul(lilac_range *result, const range_query *in) {
    const int64_t x[2] = {in->a.low, in->a.high}, y[2] = {in->b.low, in->b.high};
    const lilac_range type = lilac_range_of_bits(in->bits);
    bool wraps = false;
    for (uint32_t k = 0; k < 4; k++) {
        int64_t product = 0;
        wraps |= __builtin_mul_overflow(x[k / 2], y[k % 2], &product);
        result->low = k == 0 || product < result->low ? product : result->low;
        result->high = k == 0 || product > result->high ? product : result->high;
    }
    wraps |= result->low < type.low || result->high > type.high;
    return !wraps || range_of_grid(result, in);
}

static bool range_shl(lilac_range *result, const range_query *in) {
    if (in->b.low != in->b.high || in->b.low < 0 || in->b.low > 62) {
        return false;
    }
    range_query product = *in;
    product.b.low = product.b.high = (int64_t)1 << in->b.low;
    return range_mul(result, &product);
}

/* ---- divisions -------------------------------------------------------------------------- */

/* a / b rounded towards zero, b > 0 (0 is undefined). */
static bool range_div_s(lilac_range *result, const range_query *in) {
    int64_t least = in->b.low < 1 ? 1 : in->b.low, most = in->b.high;
    if (in->b.low < 0 || most < 1) {
        return false;
    }
    result->low = in->a.low / (in->a.low < 0 ? least : most);
    result->high = in->a.high / (in->a.high < 0 ? most : least);
    return true;
}

static bool range_div_u(lilac_range *result, const range_query *in) {
    if (both_natural(in)) {
        return range_div_s(result, in);
    }
    if (in->b.low < 2 || in->bits > 63) {
        return false;
    }
    *result = (lilac_range){0, largest_unsigned(in->bits) / in->b.low};
    return true;
}

/* Rounded down or up, both operands natural. */
static bool range_div_rounded(lilac_range *result, const range_query *in) {
    if (!both_natural(in) || !range_div_s(result, in)) {
        return false;
    }
    result->high += in->op->code != LILAC_TILE_OP_ARITH_FLOORDIVSI && result->high < INT64_MAX;
    return true;
}

/* |remainder| < |b|, |remainder| <= |a|, with the sign of a. */
static bool range_rem_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){in->a.low < 0 ? in->a.low : 0, in->a.high < 0 ? 0 : in->a.high};
    if (in->b.low >= 0 && in->b.high > 0) {
        int64_t most = in->b.high - 1;
        result->low = result->low < -most ? -most : result->low;
        result->high = result->high > most ? most : result->high;
    }
    return true;
}

static bool range_rem_u(lilac_range *result, const range_query *in) {
    int64_t most = INT64_MAX;
    if (in->b.low >= 0 && in->b.high > 0) {
        most = in->b.high - 1;
    }
    if (in->a.low >= 0 && in->a.high < most) {
        most = in->a.high;
    }
    *result = (lilac_range){0, most};
    return most != INT64_MAX;
}

/* ---- bits ------------------------------------------------------------------------------- */

static bool range_and(lilac_range *result, const range_query *in) {
    if (in->a.low < 0 && in->b.low < 0) {
        return false;
    }
    int64_t a = in->a.low >= 0 ? in->a.high : INT64_MAX;
    int64_t b = in->b.low >= 0 ? in->b.high : INT64_MAX;
    *result = (lilac_range){0, a < b ? a : b};
    return true;
}

static bool range_or(lilac_range *result, const range_query *in) {
    *result = (lilac_range){0, fill(in->a.high | in->b.high)};
    return both_natural(in);
}

static bool range_shr_s(lilac_range *result, const range_query *in) {
    int64_t least = in->b.low < 0 ? 0 : in->b.low, most = in->b.high;
    if (in->b.low < 0 || most > 63) {
        least = 0;
        most = 63;
    }
    least = least > 63 ? 63 : least;
    /* division by 2^63 is not one of signed numbers; the shift rounds down */
    result->low = in->a.low >= 0 ? in->a.low >> most : ~(~in->a.low >> least);
    result->high = in->a.high >= 0 ? in->a.high >> least : ~(~in->a.high >> most);
    return true;
}

static bool range_shr_u(lilac_range *result, const range_query *in) {
    if (in->a.low >= 0) {
        return range_shr_s(result, in);
    }
    if (in->b.low < 1 || in->b.low > 62 || in->bits > 63) {
        return false;
    }
    *result = (lilac_range){0, largest_unsigned(in->bits) >> in->b.low};
    return true;
}

/* ---- choices ---------------------------------------------------------------------------- */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool range_min_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){smaller(in->a.low, in->b.low), smaller(in->a.high, in->b.high)};
    return true;
}

static bool range_max_s(lilac_range *result, const range_query *in) {
    *result = (lilac_range){larger(in->a.low, in->b.low), larger(in->a.high, in->b.high)};
    return true;
}

/* At most an operand that is not negative, as unsigned numbers. */
static bool range_min_u(lilac_range *result, const range_query *in) {
    return both_natural(in) ? range_min_s(result, in) : range_and(result, in);
}

static bool range_max_u(lilac_range *result, const range_query *in) {
    return both_natural(in) && range_max_s(result, in);
}

static bool range_choice(lilac_range *result, const range_query *in) {
    *result = (lilac_range){smaller(in->b.low, in->c.low), larger(in->b.high, in->c.high)};
    return true;
}

static bool range_magnitude(lilac_range *result, const range_query *in) {
    if (in->a.low <= lilac_range_of_bits(in->bits).low) {
        return false;
    }
    *result = (lilac_range){in->a.low > 0 ? in->a.low : 0, larger(-in->a.low, in->a.high)};
    return true;
}

/* ---- conversions, shapes and sources ------------------------------------------------------ */

static bool range_same(lilac_range *result, const range_query *in) {
    *result = in->a;
    return true;
}

static bool range_union(lilac_range *result, const range_query *in) {
    *result = (lilac_range){smaller(in->a.low, in->b.low), larger(in->a.high, in->b.high)};
    return true;
}

static bool range_extend_unsigned(lilac_range *result, const range_query *in) {
    *result = in->a.low >= 0 ? in->a : (lilac_range){0, largest_unsigned(in->from)};
    return in->from != 0 && in->from < 64;
}

static bool range_truncate(lilac_range *result, const range_query *in) {
    const lilac_range type = lilac_range_of_bits(in->bits);
    *result = in->a;
    return in->from != 0 && in->a.low >= type.low && in->a.high <= type.high;
}

static bool range_range(lilac_range *result, const range_query *in) {
    result->low = lilac_tile_find_integer(&in->op->attributes, "start", INT64_MIN);
    result->high = lilac_tile_find_integer(&in->op->attributes, "end", INT64_MIN);
    bool known = result->low != INT64_MIN && result->high > result->low;
    result->high -= known;
    return known;
}

static bool range_program(lilac_range *result, const range_query *in) {
    (void)in;
    *result = (lilac_range){0, INT32_MAX - 1};
    return true;
}

static bool range_programs(lilac_range *result, const range_query *in) {
    (void)in;
    *result = (lilac_range){1, INT32_MAX};
    return true;
}

static bool range_constant(lilac_range *result, const range_query *in) {
    int64_t number;
    if (lilac_tile_constant(&in->op->results[0], &number)) {
        *result = (lilac_range){number, number};
        return true;
    }
    return false;
}

/* ---- all of them ------------------------------------------------------------------------ */

/* NULL: nothing is known of the results. */
static range_function *const range_functions[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = range,
#include <lilac/operations.def>
};

/* A range that leaves the type is that of a result that may wrap: unknown. */
static lilac_range within(lilac_range found, uint32_t bits) {
    const lilac_range type = lilac_range_of_bits(bits);
    bool inside = found.low >= type.low && found.low <= found.high;
    found.high = smaller(found.high, type.high);
    return inside ? found : type;
}

void lilac_range_note(lilac_range *ranges, const lilac_tile_op *op) {
    const lilac_range unknown = {INT64_MIN, INT64_MAX};
    range_query in = {.op = op, .a = unknown, .b = unknown, .c = unknown};
    lilac_range *const places[3] = {&in.a, &in.b, &in.c};
    for (uint32_t i = 0; i < op->operand_count && i < 3; i++) {
        *places[i] = ranges[op->operands[i].value->id];
    }
    in.from = op->operand_count > 0 ? bits_of(op->operands[0].value->type) : 0;
    for (uint32_t i = 0; i < op->result_count; i++) {
        in.bits = bits_of(op->results[i].type);
        lilac_range found;
        bool known = in.bits > 1 && range_functions[op->code] != NULL &&
                     range_functions[op->code](&found, &in);
        ranges[op->results[i].id] = known ? within(found, in.bits) : lilac_range_of_bits(in.bits);
    }
}

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
    to.low = larger(range->low, to.low);
    to.high = smaller(range->high, to.high);
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
        record(walk, &op->results[i], lilac_range_of_bits(bits_of(op->results[i].type)));
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
    if (predicate == NULL || bits_of(x->type) < 2) {
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
    ranges[value->id] = lilac_range_of_bits(bits_of(value->type));
}

static lilac_range join(lilac_range a, lilac_range b) {
    return (lilac_range){smaller(a.low, b.low), larger(a.high, b.high)};
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
    const lilac_range type = lilac_range_of_bits(bits_of(value->type));
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
