/* axis_arith: the axis facts of an operation's results from those of its operands.
 *
 * Write c, v, k for contiguity, divisibility and constancy along one dimension. In every aligned
 * block of c the elements are s, s+1, … with v | s, so
 *
 *   the first of a block of b < c   is divisible by min(v, b)
 *   every element                   is divisible by v when c = 1, else by nothing but 1
 *   a block of r = min(c, v)        starts at a multiple of r: all its elements share x >> log2 r
 *
 * The last line, an aligned run, is what makes comparisons, divisions, remainders, shifts and masks
 * by multiples of r constant or contiguous over the block:
 *
 *   run  32 33 34 35   slt 48: 1 1 1 1   sle 48: could be 1 0 0 0 of 48 49 …   / 16: 2 2 2 2
 */
#include "internal.h"

#include <string.h>

/* The column `facts` of operations.def names the function of each operation: it computes the facts
 * of result `index` from those of the operands. On entry, *result is lilac_axis_unknown. */
typedef void facts_function(lilac_axis_facts *result, const lilac_axis_operation *in);

void lilac_axis_unknown(lilac_axis_facts *facts, uint32_t rank) {
    facts->rank = rank;
    for (uint32_t d = 0; d < rank; d++) {
        facts->contiguity[d] = facts->divisibility[d] = facts->constancy[d] = 1;
        facts->period[d] = MAX_DIVISIBILITY;
    }
    facts->non_negative = facts->constant = false;
    facts->value = 0;
    facts->stride_known = facts->stride_typical = 0;
    facts->origin = 1;
}

int64_t lilac_axis_unit(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind != LILAC_TILE_POINTER || element->element == NULL) {
        return 1;
    }
    return max_i64(1, lilac_tile_element_bits(element->element) / 8);
}

int64_t lilac_axis_start(const lilac_axis_facts *facts, uint32_t dim, int64_t block, int64_t unit) {
    if (block < facts->contiguity[dim]) {
        return min_i64(facts->divisibility[dim], power_of_two_in(block * unit));
    }
    return facts->divisibility[dim];
}

/* A power of two that divides every element. */
static int64_t every(const lilac_axis_facts *facts, int64_t unit) {
    int64_t best = 1;
    for (uint32_t d = 0; d < facts->rank; d++) {
        best = max_i64(best, lilac_axis_start(facts, d, 1, unit));
    }
    return best;
}

/* The divisibility of the first element of aligned blocks, with the divisibility of all
 * elements. */
static int64_t start_of(const lilac_axis_facts *facts, uint32_t d, int64_t block, int64_t unit) {
    return max_i64(lilac_axis_start(facts, d, block, unit), every(facts, unit));
}

/* The largest block that is a run and starts at a multiple of its own size. */
static int64_t aligned_run(const lilac_axis_facts *facts, uint32_t d) {
    return min_i64(facts->contiguity[d], facts->divisibility[d]);
}

static int64_t times(int64_t a, int64_t b) {
    return a > MAX_DIVISIBILITY / b ? MAX_DIVISIBILITY : a * b;
}

/* The number of elements along a dimension; 1, which claims nothing, if it is no power of two. */
static int64_t extent(const lilac_tile_type *type, uint32_t d) {
    if (type->kind != LILAC_TILE_TENSOR || d >= type->rank) {
        return 1;
    }
    return power_of_two_in(type->shape[d]) == type->shape[d] ? type->shape[d] : 1;
}

static uint32_t rank_of(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_TENSOR && type->rank > 0 ? type->rank : 1;
}

static uint32_t integer_bits(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    return element->kind == LILAC_TILE_SCALAR && !lilac_scalar_is_float(element->scalar)
               ? lilac_scalar_bits(element->scalar)
               : 0;
}

/* Copies the facts of a's dimension `from` to dimension d. */
static void copy_dim(lilac_axis_facts *result, uint32_t d, const lilac_axis_facts *a,
                     uint32_t from) {
    result->contiguity[d] = a->contiguity[from];
    result->divisibility[d] = a->divisibility[from];
    result->constancy[d] = a->constancy[from];
}

static void set_constant(lilac_axis_facts *facts, const lilac_tile_type *type, int64_t value) {
    lilac_axis_unknown(facts, rank_of(type));
    for (uint32_t d = 0; d < facts->rank; d++) {
        facts->divisibility[d] = power_of_two_in(value);
        facts->constancy[d] = extent(type, d);
    }
    facts->constant = true;
    facts->value = value;
    facts->non_negative = value >= 0;
}

void lilac_axis_join(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                     int64_t unit) {
    lilac_axis_facts joined;
    lilac_axis_unknown(&joined, a->rank);
    for (uint32_t d = 0; d < a->rank; d++) {
        int64_t c = min_i64(a->contiguity[d], b->contiguity[d]);
        joined.contiguity[d] = c;
        joined.divisibility[d] = min_i64(start_of(a, d, c, unit), start_of(b, d, c, unit));
        joined.constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
        joined.period[d] = max_i64(a->period[d], b->period[d]);
    }
    joined.non_negative = a->non_negative && b->non_negative;
    joined.constant = a->constant && b->constant && a->value == b->value;
    joined.value = joined.constant ? a->value : 0;
    lilac_axis_join_strides(&joined, a, b);
    *result = joined;
}

/* ---- sums ------------------------------------------------------------------------------- */

/* a + b: a run plus a constant is a run. `unit` is that of the sum and of a;
 * b counts units. */
static void sum(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                int64_t unit) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t c = max_i64(min_i64(a->contiguity[d], b->constancy[d]),
                            min_i64(a->constancy[d], b->contiguity[d]));
        result->contiguity[d] = c;
        result->divisibility[d] =
            min_i64(start_of(a, d, c, unit), times(start_of(b, d, c, 1), unit));
        result->constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
    }
}

static void difference(lilac_axis_facts *result, const lilac_axis_facts *a,
                       const lilac_axis_facts *b) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t c = min_i64(a->contiguity[d], b->constancy[d]);
        result->contiguity[d] = c;
        result->divisibility[d] = min_i64(start_of(a, d, c, 1), start_of(b, d, c, 1));
        /* two runs stay equally far apart */
        result->constancy[d] = max_i64(min_i64(a->constancy[d], b->constancy[d]),
                                       min_i64(a->contiguity[d], b->contiguity[d]));
    }
}

/* In types narrower than offsets wrapping is ordinary: only runs that start at a multiple of their
 * size cannot cross the end of the type. */
static void guard_narrow(lilac_axis_facts *result, const lilac_tile_type *type) {
    uint32_t bits = integer_bits(type);
    if (bits == 0 || bits >= 32) {
        return;
    }
    int64_t half = INT64_C(1) << (bits - 1);
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t run = min_i64(aligned_run(result, d), half);
        result->divisibility[d] = lilac_axis_start(result, d, run, 1);
        result->contiguity[d] = run;
    }
    result->non_negative = false;
}

static void facts_sum(lilac_axis_facts *result, const lilac_axis_operation *in) {
    sum(result, in->a, in->b, 1);
    result->non_negative = in->a->non_negative && in->b->non_negative;
    guard_narrow(result, in->type);
}

static void facts_pointer_sum(lilac_axis_facts *result, const lilac_axis_operation *in) {
    sum(result, in->a, in->b, in->unit);
}

static void facts_difference(lilac_axis_facts *result, const lilac_axis_operation *in) {
    difference(result, in->a, in->b);
    guard_narrow(result, in->type);
}

/* The facts if every element is a multiple of v, and neighbours are equal where they are in a and
 * b. */
static void multiples(lilac_axis_facts *result, const lilac_axis_facts *a,
                      const lilac_axis_facts *b, int64_t v) {
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = v;
        result->constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
    }
}

/* ---- products, quotients, shifts -------------------------------------------------------- */

static void product(lilac_axis_facts *result, const lilac_axis_facts *a,
                    const lilac_axis_facts *b) {
    bool non_negative = a->non_negative && b->non_negative;
    if (a->constant && a->value == 1) {
        *result = *b;
    } else if (b->constant && b->value == 1) {
        *result = *a;
    } else {
        multiples(result, a, b, times(every(a, 1), every(b, 1)));
    }
    result->non_negative = non_negative;
}

static void facts_product(lilac_axis_facts *result, const lilac_axis_operation *in) {
    product(result, in->a, in->b);
    guard_narrow(result, in->type);
    result->constant = false;
}

/* Blocks over which a quotient or remainder of a by b is that of the block's first element: a is an
 * aligned run and b is one multiple of the run. */
static int64_t quotient_block(const lilac_axis_facts *a, const lilac_axis_facts *b, uint32_t d) {
    return min_i64(aligned_run(a, d), min_i64(b->constancy[d], every(b, 1)));
}

/* `down`: the quotient is rounded down. Rounding towards zero splits a block of negative numbers
 * that ends below a multiple. */
static void quotient(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                     bool is_unsigned, bool down) {
    if (b->constant && b->value == 1) {
        *result = *a;
        return;
    }
    bool power = b->constant && b->value > 1 && power_of_two_in(b->value) == b->value;
    /* a power of two that divides every element shifts its divisibility down */
    multiples(result, a, b, power && every(a, 1) >= b->value ? every(a, 1) / b->value : 1);
    for (uint32_t d = 0; d < result->rank && down; d++) {
        result->constancy[d] = max_i64(result->constancy[d], quotient_block(a, b, d));
    }
    result->non_negative = a->non_negative && (is_unsigned || b->non_negative);
}

static void facts_quotient(lilac_axis_facts *result, const lilac_axis_operation *in) {
    quotient(result, in->a, in->b, false, in->a->non_negative);
    result->constant = false;
}

static void facts_quotient_unsigned(lilac_axis_facts *result, const lilac_axis_operation *in) {
    quotient(result, in->a, in->b, true, true);
    result->constant = false;
}

static void facts_quotient_down(lilac_axis_facts *result, const lilac_axis_operation *in) {
    quotient(result, in->a, in->b, false, in->b->non_negative);
    result->constant = false;
}

static void facts_quotient_up(lilac_axis_facts *result, const lilac_axis_operation *in) {
    quotient(result, in->a, in->b, false, false);
    result->constant = false;
}

static void remainder_of(lilac_axis_facts *result, bool is_unsigned, const lilac_axis_facts *a,
                         const lilac_axis_facts *b) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t c = is_unsigned || a->non_negative ? quotient_block(a, b, d) : 1;
        result->contiguity[d] = c;
        result->divisibility[d] = min_i64(start_of(a, d, c, 1), every(b, 1));
        result->constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
    }
    result->non_negative = a->non_negative || (is_unsigned && b->non_negative);
}

static void facts_remainder(lilac_axis_facts *result, const lilac_axis_operation *in) {
    remainder_of(result, false, in->a, in->b);
}

static void facts_remainder_unsigned(lilac_axis_facts *result, const lilac_axis_operation *in) {
    remainder_of(result, true, in->a, in->b);
}

static void shift_left(lilac_axis_facts *result, const lilac_axis_facts *a,
                       const lilac_axis_facts *b) {
    bool known = b->constant && b->value >= 0 && b->value < 62;
    if (known && b->value == 0) {
        *result = *a;
        return;
    }
    multiples(result, a, b, times(every(a, 1), known ? INT64_C(1) << b->value : 1));
    result->non_negative = a->non_negative;
}

static void facts_shift_left(lilac_axis_facts *result, const lilac_axis_operation *in) {
    shift_left(result, in->a, in->b);
    guard_narrow(result, in->type);
    result->constant = false;
}

static void shift_right(lilac_axis_facts *result, bool is_unsigned, const lilac_axis_facts *a,
                        const lilac_axis_facts *b) {
    bool known = b->constant && b->value >= 0 && b->value < 62;
    if (known && b->value == 0) {
        *result = *a;
        return;
    }
    int64_t step = known ? INT64_C(1) << b->value : 1;
    multiples(result, a, b, known ? max_i64(1, every(a, 1) / step) : 1);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->constancy[d] = max_i64(result->constancy[d],
                                       min_i64(min_i64(aligned_run(a, d), step), b->constancy[d]));
    }
    result->non_negative = a->non_negative || (is_unsigned && known);
}

static void facts_shift_right(lilac_axis_facts *result, const lilac_axis_operation *in) {
    shift_right(result, false, in->a, in->b);
    result->constant = false;
}

static void facts_shift_right_unsigned(lilac_axis_facts *result, const lilac_axis_operation *in) {
    shift_right(result, true, in->a, in->b);
    result->constant = false;
}

/* ---- bits ------------------------------------------------------------------------------- */

/* Low bits of a constant that are all ones, as a power of two: 15 gives 16, -1 the largest. */
static int64_t low_ones(const lilac_axis_facts *mask) {
    return mask->constant ? power_of_two_in((int64_t)((uint64_t)mask->value + 1)) : 1;
}

static void facts_and(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a, *b = in->b;
    int64_t v = max_i64(every(a, 1), every(b, 1));
    for (uint32_t d = 0; d < result->rank; d++) {
        /* an aligned run keeps its low bits under a mask of ones there … */
        int64_t kept = max_i64(min_i64(min_i64(aligned_run(a, d), b->constancy[d]), low_ones(b)),
                               min_i64(min_i64(aligned_run(b, d), a->constancy[d]), low_ones(a)));
        /* … and loses them under a multiple of its size */
        int64_t lost = max_i64(min_i64(min_i64(aligned_run(a, d), b->constancy[d]), every(b, 1)),
                               min_i64(min_i64(aligned_run(b, d), a->constancy[d]), every(a, 1)));
        int64_t same = max_i64(min_i64(a->constancy[d], b->constancy[d]), lost);
        result->contiguity[d] = kept;
        result->divisibility[d] =
            kept > 1 ? max_i64(kept, max_i64(start_of(a, d, kept, 1), start_of(b, d, kept, 1))) : v;
        result->constancy[d] = kept > 1 ? 1 : same;
    }
    result->non_negative = a->non_negative || b->non_negative;
}

/* or, xor: a run and a multiple of its size do not overlap, so both are sums. */
static void facts_merge(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a, *b = in->b;
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t c = max_i64(quotient_block(a, b, d), quotient_block(b, a, d));
        result->contiguity[d] = c;
        result->divisibility[d] = min_i64(start_of(a, d, c, 1), start_of(b, d, c, 1));
        result->constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
    }
    result->non_negative = a->non_negative && b->non_negative;
}

/* ---- choices and comparisons ------------------------------------------------------------ */

static void extreme(lilac_axis_facts *result, const lilac_axis_operation *in) {
    multiples(result, in->a, in->b, min_i64(every(in->a, 1), every(in->b, 1)));
}

/* Minimum signed and maximum unsigned: not negative if both operands are not. The larger one of two
 * unsigned numbers may be the bits of a negative number. */
static void facts_extreme_of_both(lilac_axis_facts *result, const lilac_axis_operation *in) {
    extreme(result, in);
    result->non_negative = in->a->non_negative && in->b->non_negative;
}

/* Maximum signed and minimum unsigned: not negative if one operand is not. */
static void facts_extreme_of_either(lilac_axis_facts *result, const lilac_axis_operation *in) {
    extreme(result, in);
    result->non_negative = in->a->non_negative || in->b->non_negative;
}

static void facts_choice(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *which = in->operands[0], *a = in->operands[1], *b = in->operands[2];
    int64_t unit = in->unit;
    bool for_all = !lilac_tile_is_tensor(in->op->operands[0].value->type); /* a scalar condition */
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t k = for_all ? MAX_DIVISIBILITY : which->constancy[d];
        int64_t c = min_i64(k, min_i64(a->contiguity[d], b->contiguity[d]));
        result->contiguity[d] = c;
        result->divisibility[d] = min_i64(start_of(a, d, c, unit), start_of(b, d, c, unit));
        result->constancy[d] = min_i64(k, min_i64(a->constancy[d], b->constancy[d]));
    }
    result->non_negative = a->non_negative && b->non_negative;
}

/* Blocks over which run < bound (and run >= bound) is one answer: the run is aligned and the bound
 * a multiple of it. For run <= bound and run > bound the bound plus one must be the multiple, which
 * only a constant tells. */
static int64_t compare_block(const lilac_axis_facts *run, const lilac_axis_facts *bound, uint32_t d,
                             bool plus_one) {
    int64_t multiple = every(bound, 1);
    if (plus_one) {
        multiple = bound->constant ? power_of_two_in((int64_t)((uint64_t)bound->value + 1)) : 1;
    }
    return min_i64(aligned_run(run, d), min_i64(bound->constancy[d], multiple));
}

static void facts_comparison(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a, *b = in->b;
    lilac_name predicate = lilac_tile_find_text(&in->op->attributes, "predicate");
    bool ordered = predicate != NULL && (predicate[0] == 's' || predicate[0] == 'u');
    bool below = ordered && (strcmp(predicate + 1, "lt") == 0 || strcmp(predicate + 1, "ge") == 0);
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t k = min_i64(a->constancy[d], b->constancy[d]);
        /* two runs differ by the same amount all along; unsigned ones may pass zero */
        if (predicate != NULL && predicate[0] != 'u') {
            k = max_i64(k, min_i64(a->contiguity[d], b->contiguity[d]));
        }
        if (ordered) {
            k = max_i64(k, compare_block(a, b, d, !below));
            k = max_i64(k, compare_block(b, a, d, below)); /* a < b is b > a */
        }
        result->constancy[d] = k;
    }
}

/* ---- conversions ------------------------------------------------------------------------ */

/* The same elements with another unit: neighbours that differed by `from` must differ by `to`. */
static void change_unit(lilac_axis_facts *result, const lilac_axis_facts *a, int64_t from,
                        int64_t to) {
    if (from == to) {
        *result = *a;
        return;
    }
    int64_t v = every(a, from);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = v;
        result->constancy[d] = a->constancy[d];
    }
}

static void facts_extend_unsigned(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    *result = *a;
    result->non_negative = true;
    result->constant = false;
    if (a->non_negative) {
        return;
    }
    for (uint32_t d = 0; d < result->rank; d++) { /* -1, 0 is no run without the sign */
        int64_t run = aligned_run(a, d);
        result->divisibility[d] = lilac_axis_start(a, d, run, 1);
        result->contiguity[d] = run;
    }
}

static void facts_same(lilac_axis_facts *result, const lilac_axis_operation *in) {
    *result = *in->a;
    result->constant = false;
}

static void facts_truncate(lilac_axis_facts *result, const lilac_axis_operation *in) {
    facts_same(result, in);
    guard_narrow(result, in->type);
}

/* ---- shapes ----------------------------------------------------------------------------- */

static void facts_expand(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&in->op->attributes, "axis", 0);
    for (uint32_t d = 0; d < result->rank; d++) {
        if (d == axis || result->rank > LILAC_MAX_RANK) {
            result->divisibility[d] = every(a, in->unit);
            continue;
        }
        uint32_t from = d < axis ? d : d - 1;
        if (from >= a->rank) {
            continue;
        }
        copy_dim(result, d, a, from);
    }
    result->non_negative = a->non_negative;
}

static void facts_broadcast(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_type *from = in->op->operands[0].value->type, *to = in->type;
    *result = *in->a;
    for (uint32_t d = 0; d < result->rank && d < to->rank && d < from->rank; d++) {
        if (from->shape[d] == 1 && to->shape[d] != 1) {
            result->constancy[d] = extent(to, d);
        }
    }
}

static void facts_transpose(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    const lilac_tile_attribute *order = lilac_tile_find(&in->op->attributes, "order");
    if (order == NULL || order->kind != LILAC_TILE_ATTR_INTEGERS || order->count != result->rank) {
        return;
    }
    for (uint32_t d = 0; d < result->rank; d++) {
        uint64_t from = (uint64_t)order->integers[d];
        if (from >= a->rank) {
            return;
        }
        copy_dim(result, d, a, (uint32_t)from);
    }
    result->non_negative = a->non_negative;
}

/* The last dimension with more than one element: neighbours in row-major order differ in it. */
static uint32_t fastest(const lilac_tile_type *type) {
    uint32_t d = type->rank == 0 ? 0 : type->rank - 1;
    while (d > 0 && type->shape[d] == 1) {
        d--;
    }
    return d;
}

static bool is_constant_all_over(const lilac_axis_facts *a, const lilac_tile_type *type) {
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->constancy[d] < extent(type, d)) {
            return false;
        }
    }
    return true;
}

static void facts_reshape(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    const lilac_tile_type *from = in->op->operands[0].value->type, *to = in->type;
    int64_t unit = in->unit;
    bool all_equal = is_constant_all_over(a, from);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = every(a, unit);
        if (all_equal) {
            result->constancy[d] = extent(to, d);
        }
    }
    result->non_negative = a->non_negative;
    bool any_order = lilac_tile_find(&in->op->attributes, "allow_reorder") != NULL;
    if (any_order || from->rank == 0 || to->rank == 0) {
        return;
    }
    uint32_t f = fastest(from), t = fastest(to);
    int64_t c = min_i64(a->contiguity[f], extent(to, t));
    result->contiguity[t] = c;
    result->divisibility[t] = start_of(a, f, c, unit);
    result->constancy[t] = min_i64(a->constancy[f], extent(to, t));
}

static void facts_join(lilac_axis_facts *result, const lilac_axis_operation *in) {
    lilac_axis_facts both;
    lilac_axis_join(&both, in->a, in->b, in->unit);
    for (uint32_t d = 0; d < result->rank && d < both.rank; d++) {
        result->contiguity[d] = both.contiguity[d];
        result->divisibility[d] = both.divisibility[d];
        result->constancy[d] = both.constancy[d];
    }
    if (both.rank < result->rank) {
        result->divisibility[both.rank] = every(&both, in->unit);
    }
    result->non_negative = both.non_negative;
}

static void facts_split(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = every(a, in->unit);
        if (d + 1 >= a->rank) {
            continue;
        }
        result->contiguity[d] = a->contiguity[d];
        result->divisibility[d] = a->divisibility[d];
        result->constancy[d] = a->constancy[d];
    }
    result->non_negative = a->non_negative;
}

/* ---- sources ---------------------------------------------------------------------------- */

static void facts_range(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_type *type = in->type;
    int64_t start = lilac_tile_find_integer(&in->op->attributes, "start", 0);
    if (extent(type, 0) == 1 && type->shape[0] == 1) {
        set_constant(result, type, start);
        return;
    }
    result->contiguity[0] = extent(type, 0);
    result->divisibility[0] = power_of_two_in(start);
    result->non_negative = start >= 0;
    guard_narrow(result, type);
}

static void facts_splat(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_axis_facts *a = in->a;
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = a->divisibility[0];
        result->constancy[d] = extent(in->type, d);
    }
    result->non_negative = a->non_negative;
    result->constant = a->constant;
    result->value = a->value;
}

/* The ids of programs and their number. */
static void facts_non_negative(lilac_axis_facts *result, const lilac_axis_operation *in) {
    (void)in;
    result->non_negative = true;
}

static void facts_constant(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_type *type = in->type;
    const lilac_tile_attribute *given = lilac_tile_find(&in->op->attributes, "value");
    int64_t value;
    if (lilac_tile_constant(&in->op->results[0], &value)) {
        set_constant(result, type, value);
        return;
    }
    if (given == NULL) {
        return;
    }
    bool one = given->kind != LILAC_TILE_ATTR_DENSE || given->count == 1;
    int64_t v = integer_bits(type) > 0 ? MAX_DIVISIBILITY : 1;
    for (uint32_t i = 0; given->kind == LILAC_TILE_ATTR_DENSE && i < given->count; i++) {
        v = min_i64(v, power_of_two_in(given->integers[i]));
    }
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = integer_bits(type) > 0 && !one ? v : 1;
        result->constancy[d] = one ? extent(type, d) : 1;
    }
}

/* ---- the others ------------------------------------------------------------------------- */

static void facts_copy(lilac_axis_facts *result, const lilac_axis_operation *in) {
    *result = *in->a;
}

/* Whatever an element-wise operation computes, equal operands give equal results. */
static void facts_elementwise(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_op *op = in->op;
    if (op->operand_count == 0) {
        return;
    }
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t k = MAX_DIVISIBILITY;
        for (uint32_t i = 0; i < op->operand_count; i++) {
            if (in->operands[i]->rank == result->rank) {
                k = min_i64(k, in->operands[i]->constancy[d]);
            }
        }
        result->constancy[d] = min_i64(k, extent(op->results[0].type, d));
    }
}

/* Elements whose pointer, mask and replacement are equal are loaded from one place. */
static void facts_load(lilac_axis_facts *result, const lilac_axis_operation *in) {
    if (lilac_axis_is_function(in->op)) {
        facts_elementwise(result, in);
    }
}

static void facts_extern(lilac_axis_facts *result, const lilac_axis_operation *in) {
    if (lilac_axis_is_function(in->op)) {
        facts_elementwise(result, in);
    }
}

static void facts_bits(lilac_axis_facts *result, const lilac_axis_operation *in) {
    const lilac_tile_type *from = in->op->operands[0].value->type;
    bool numbers = (integer_bits(from) > 0 || lilac_tile_is_pointer(from)) &&
                   (integer_bits(in->type) > 0 || lilac_tile_is_pointer(in->type));
    if (numbers) {
        change_unit(result, in->a, lilac_axis_unit(from), in->unit);
    } else {
        facts_elementwise(result, in);
    }
    result->constant = false;
}

/* ---- all of them ------------------------------------------------------------------------ */

static bool all_constant(const lilac_tile_op *op, const lilac_axis_facts *const *operands,
                         int64_t values[3]) {
    if (op->operand_count == 0 || op->operand_count > 3) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!operands[i]->constant) {
            return false;
        }
        values[i] = operands[i]->value;
    }
    return true;
}

lilac_axis_operation lilac_axis_operation_of(const lilac_tile_op *op, uint32_t index,
                                             const lilac_axis_facts *const *operands) {
    return (lilac_axis_operation){.op = op,
                                  .operands = operands,
                                  .a = op->operand_count > 0 ? operands[0] : NULL,
                                  .b = op->operand_count > 1 ? operands[1] : NULL,
                                  .type = op->results[index].type,
                                  .unit = lilac_axis_unit(op->results[index].type)};
}

static void clamp_to_shape(lilac_axis_facts *result, const lilac_tile_type *type) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t size = extent(type, d);
        if (result->contiguity[d] > size) {
            result->contiguity[d] = size; /* one block of all there is, with the same start */
        }
        result->constancy[d] = min_i64(result->constancy[d], size);
    }
}

/* NULL: nothing is known of the results. */
static facts_function *const facts_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = facts,
#include <lilac/operations.def>
};

static bool is_steady_load(const lilac_tile_op *op) {
    const lilac_name cache = lilac_tile_find_text(&op->attributes, "cache");
    const bool block_pointer = lilac_tile_is_tensor(op->results[0].type) &&
                               !lilac_tile_is_tensor(op->operands[0].value->type);
    return !block_pointer && (cache == NULL || strcmp(cache, "cv") != 0) &&
           lilac_tile_find_integer(&op->attributes, "isVolatile", 0) == 0;
}

bool lilac_axis_is_function(const lilac_tile_op *op) {
    if (facts_of[op->code] == facts_load) {
        return is_steady_load(op);
    }
    if (facts_of[op->code] == facts_extern) {
        return lilac_tile_find_integer(&op->attributes, "pure", 0) != 0;
    }
    return facts_of[op->code] != NULL &&
           (lilac_tile_op_info_get(op->code)->traits & LILAC_TILE_ELEMENTWISE) != 0;
}

void lilac_axis_transfer(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                         const lilac_axis_facts *const *operands) {
    const lilac_tile_type *type = op->results[index].type;
    int64_t values[3], value;
    lilac_axis_unknown(result, rank_of(type));
    if (all_constant(op, operands, values) && lilac_engine_fold(op, values, &value)) {
        set_constant(result, type, value);
        return;
    }
    if (facts_of[op->code] != NULL) {
        lilac_axis_operation in = lilac_axis_operation_of(op, index, operands);
        facts_of[op->code](result, &in);
    }
    clamp_to_shape(result, type);
}
