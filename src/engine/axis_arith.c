/* axis_arith: what an operation makes of its operands' axis facts.
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

void lilac_axis_unknown(lilac_axis_facts *facts, uint32_t rank) {
    facts->rank = rank;
    for (uint32_t d = 0; d < rank; d++)
        facts->contiguity[d] = facts->divisibility[d] = facts->constancy[d] = 1;
    facts->non_negative = facts->constant = false;
    facts->value = 0;
    facts->stride_known = 0;
    facts->origin = 1;
}

int64_t lilac_axis_unit(const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_element(type);
    if (element->kind != LILAC_TILE_POINTER || element->element == NULL)
        return 1;
    return max_i64(1, lilac_tile_element_bits(element->element) / 8);
}

int64_t lilac_axis_start(const lilac_axis_facts *facts, uint32_t dim, int64_t block, int64_t unit) {
    if (block < facts->contiguity[dim])
        return min_i64(facts->divisibility[dim], power_of_two_in(block * unit));
    return facts->divisibility[dim];
}

/* What divides every element. */
static int64_t every(const lilac_axis_facts *facts, int64_t unit) {
    int64_t best = 1;
    for (uint32_t d = 0; d < facts->rank; d++)
        best = max_i64(best, lilac_axis_start(facts, d, 1, unit));
    return best;
}

/* What divides the first element of aligned blocks, also by what divides all. */
static int64_t start_of(const lilac_axis_facts *facts, uint32_t d, int64_t block, int64_t unit) {
    return max_i64(lilac_axis_start(facts, d, block, unit), every(facts, unit));
}

/* Largest block that is a run starting at a multiple of its own size. */
static int64_t aligned_run(const lilac_axis_facts *facts, uint32_t d) {
    return min_i64(facts->contiguity[d], facts->divisibility[d]);
}

static int64_t times(int64_t a, int64_t b) {
    return a > MAX_DIVISIBILITY / b ? MAX_DIVISIBILITY : a * b;
}

/* Elements along a dimension. Shapes are powers of two; of others nothing is claimed. */
static int64_t extent(const lilac_tile_type *type, uint32_t d) {
    if (type->kind != LILAC_TILE_TENSOR || d >= type->rank)
        return 1;
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

/* What is known along one of a's dimensions. */
static void take_dim(lilac_axis_facts *result, uint32_t d, const lilac_axis_facts *a,
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
    }
    joined.non_negative = a->non_negative && b->non_negative;
    joined.constant = a->constant && b->constant && a->value == b->value;
    joined.value = joined.constant ? a->value : 0;
    lilac_axis_join_strides(&joined, a, b);
    *result = joined;
}

/* ---- sums ------------------------------------------------------------------------------- */

/* a + b: a run plus a constant is a run. b's neighbours may be wider apart in bytes than 1: `unit`
 * is that of the sum and of a, and b counts in units. */
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
    if (bits == 0 || bits >= 32)
        return;
    int64_t half = INT64_C(1) << (bits - 1);
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t run = min_i64(aligned_run(result, d), half);
        result->divisibility[d] = lilac_axis_start(result, d, run, 1);
        result->contiguity[d] = run;
    }
    result->non_negative = false;
}

/* Every element a multiple of v, equal neighbours where both sides have them. */
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

/* Blocks over which a quotient or remainder of a by b is that of the block's first element: a is an
 * aligned run and b is one multiple of the run. */
static int64_t quotient_block(const lilac_axis_facts *a, const lilac_axis_facts *b, uint32_t d) {
    return min_i64(aligned_run(a, d), min_i64(b->constancy[d], every(b, 1)));
}

static void quotient(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a,
                     const lilac_axis_facts *b) {
    bool is_unsigned = op->code == LILAC_TILE_OP_ARITH_DIVUI;
    /* rounding goes towards zero, so a block of negatives that ends below a multiple is split */
    bool down = is_unsigned || (op->code == LILAC_TILE_OP_ARITH_DIVSI && a->non_negative) ||
                (op->code == LILAC_TILE_OP_ARITH_FLOORDIVSI && b->non_negative);
    if (b->constant && b->value == 1) {
        *result = *a;
        return;
    }
    bool power = b->constant && b->value > 1 && power_of_two_in(b->value) == b->value;
    /* a power of two that divides every element shifts its divisibility down */
    multiples(result, a, b, power && every(a, 1) >= b->value ? every(a, 1) / b->value : 1);
    for (uint32_t d = 0; d < result->rank && down; d++)
        result->constancy[d] = max_i64(result->constancy[d], quotient_block(a, b, d));
    result->non_negative = a->non_negative && (is_unsigned || b->non_negative);
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

static void shift_right(lilac_axis_facts *result, bool is_unsigned, const lilac_axis_facts *a,
                        const lilac_axis_facts *b) {
    bool known = b->constant && b->value >= 0 && b->value < 62;
    if (known && b->value == 0) {
        *result = *a;
        return;
    }
    int64_t step = known ? INT64_C(1) << b->value : 1;
    multiples(result, a, b, known ? max_i64(1, every(a, 1) / step) : 1);
    for (uint32_t d = 0; d < result->rank; d++)
        result->constancy[d] = max_i64(result->constancy[d],
                                       min_i64(min_i64(aligned_run(a, d), step), b->constancy[d]));
    result->non_negative = a->non_negative || (is_unsigned && known);
}

/* ---- bits ------------------------------------------------------------------------------- */

/* Low bits of a constant that are all ones, as a power of two: 15 gives 16, -1 the largest. */
static int64_t low_ones(const lilac_axis_facts *mask) {
    return mask->constant ? power_of_two_in((int64_t)((uint64_t)mask->value + 1)) : 1;
}

static void bits_and(lilac_axis_facts *result, const lilac_axis_facts *a,
                     const lilac_axis_facts *b) {
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
static void bits_merge(lilac_axis_facts *result, const lilac_axis_facts *a,
                       const lilac_axis_facts *b) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t c = max_i64(quotient_block(a, b, d), quotient_block(b, a, d));
        result->contiguity[d] = c;
        result->divisibility[d] = min_i64(start_of(a, d, c, 1), start_of(b, d, c, 1));
        result->constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
    }
    result->non_negative = a->non_negative && b->non_negative;
}

/* ---- choices and comparisons ------------------------------------------------------------ */

static void extreme(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a,
                    const lilac_axis_facts *b) {
    multiples(result, a, b, min_i64(every(a, 1), every(b, 1)));
    bool both = a->non_negative && b->non_negative, one = a->non_negative || b->non_negative;
    /* of the unsigned ones the larger may be a negative's bits */
    bool either = op->code == LILAC_TILE_OP_ARITH_MAXSI || op->code == LILAC_TILE_OP_ARITH_MINUI;
    result->non_negative = either ? one : both;
}

static void choice(lilac_axis_facts *result, const lilac_tile_op *op,
                   const lilac_axis_facts *const *operands, int64_t unit) {
    const lilac_axis_facts *which = operands[0], *a = operands[1], *b = operands[2];
    bool for_all = !lilac_tile_is_tensor(op->operands[0].value->type); /* one scalar condition */
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
    if (plus_one)
        multiple = bound->constant ? power_of_two_in((int64_t)((uint64_t)bound->value + 1)) : 1;
    return min_i64(aligned_run(run, d), min_i64(bound->constancy[d], multiple));
}

static void comparison(lilac_axis_facts *result, lilac_name predicate, const lilac_axis_facts *a,
                       const lilac_axis_facts *b) {
    bool ordered = predicate != NULL && (predicate[0] == 's' || predicate[0] == 'u');
    bool below = ordered && (strcmp(predicate + 1, "lt") == 0 || strcmp(predicate + 1, "ge") == 0);
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t k = min_i64(a->constancy[d], b->constancy[d]);
        /* two runs differ by the same amount all along; unsigned ones may pass zero */
        if (predicate != NULL && predicate[0] != 'u')
            k = max_i64(k, min_i64(a->contiguity[d], b->contiguity[d]));
        if (ordered) {
            k = max_i64(k, compare_block(a, b, d, !below));
            k = max_i64(k, compare_block(b, a, d, below)); /* a < b is b > a */
        }
        result->constancy[d] = k;
    }
}

/* ---- conversions ------------------------------------------------------------------------ */

/* Same elements, but neighbours now differ by `to` where they differed by `from`. */
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

static void extend_unsigned(lilac_axis_facts *result, const lilac_axis_facts *a) {
    *result = *a;
    result->non_negative = true;
    result->constant = false;
    if (a->non_negative)
        return;
    for (uint32_t d = 0; d < result->rank; d++) { /* -1, 0 is no run without the sign */
        int64_t run = aligned_run(a, d);
        result->divisibility[d] = lilac_axis_start(a, d, run, 1);
        result->contiguity[d] = run;
    }
}

static void truncate_to(lilac_axis_facts *result, const lilac_axis_facts *a,
                        const lilac_tile_type *type) {
    *result = *a;
    result->constant = false;
    guard_narrow(result, type);
}

/* ---- shapes ----------------------------------------------------------------------------- */

static void expand(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a,
                   int64_t unit) {
    uint32_t axis = (uint32_t)lilac_tile_find_integer(&op->attributes, "axis", 0);
    for (uint32_t d = 0; d < result->rank; d++) {
        if (d == axis || result->rank > LILAC_MAX_RANK) {
            result->divisibility[d] = every(a, unit);
            continue;
        }
        uint32_t from = d < axis ? d : d - 1;
        if (from >= a->rank)
            continue;
        take_dim(result, d, a, from);
    }
    result->non_negative = a->non_negative;
}

static void broadcast(lilac_axis_facts *result, const lilac_tile_op *op,
                      const lilac_axis_facts *a) {
    const lilac_tile_type *from = op->operands[0].value->type, *to = op->results[0].type;
    *result = *a;
    for (uint32_t d = 0; d < result->rank && d < to->rank && d < from->rank; d++)
        if (from->shape[d] == 1 && to->shape[d] != 1)
            result->constancy[d] = extent(to, d);
}

static void transpose(lilac_axis_facts *result, const lilac_tile_op *op,
                      const lilac_axis_facts *a) {
    const lilac_tile_attribute *order = lilac_tile_find(&op->attributes, "order");
    if (order == NULL || order->kind != LILAC_TILE_ATTR_INTEGERS || order->count != result->rank)
        return;
    for (uint32_t d = 0; d < result->rank; d++) {
        uint64_t from = (uint64_t)order->integers[d];
        if (from >= a->rank)
            return;
        take_dim(result, d, a, (uint32_t)from);
    }
    result->non_negative = a->non_negative;
}

/* The last dimension with more than one element: it alone numbers neighbours in row-major order. */
static uint32_t fastest(const lilac_tile_type *type) {
    uint32_t d = type->rank == 0 ? 0 : type->rank - 1;
    while (d > 0 && type->shape[d] == 1)
        d--;
    return d;
}

static bool is_constant_all_over(const lilac_axis_facts *a, const lilac_tile_type *type) {
    for (uint32_t d = 0; d < a->rank; d++)
        if (a->constancy[d] < extent(type, d))
            return false;
    return true;
}

static void reshape(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a,
                    int64_t unit) {
    const lilac_tile_type *from = op->operands[0].value->type, *to = op->results[0].type;
    bool all_equal = is_constant_all_over(a, from);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = every(a, unit);
        if (all_equal)
            result->constancy[d] = extent(to, d);
    }
    result->non_negative = a->non_negative;
    bool any_order = lilac_tile_find(&op->attributes, "allow_reorder") != NULL;
    if (any_order || from->rank == 0 || to->rank == 0)
        return;
    uint32_t f = fastest(from), t = fastest(to);
    int64_t c = min_i64(a->contiguity[f], extent(to, t));
    result->contiguity[t] = c;
    result->divisibility[t] = start_of(a, f, c, unit);
    result->constancy[t] = min_i64(a->constancy[f], extent(to, t));
}

static void join_halves(lilac_axis_facts *result, const lilac_axis_facts *a,
                        const lilac_axis_facts *b, int64_t unit) {
    lilac_axis_facts both;
    lilac_axis_join(&both, a, b, unit);
    for (uint32_t d = 0; d < result->rank && d < both.rank; d++) {
        result->contiguity[d] = both.contiguity[d];
        result->divisibility[d] = both.divisibility[d];
        result->constancy[d] = both.constancy[d];
    }
    if (both.rank < result->rank)
        result->divisibility[both.rank] = every(&both, unit);
    result->non_negative = both.non_negative;
}

static void split_halves(lilac_axis_facts *result, const lilac_axis_facts *a, int64_t unit) {
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = every(a, unit);
        if (d + 1 >= a->rank)
            continue;
        result->contiguity[d] = a->contiguity[d];
        result->divisibility[d] = a->divisibility[d];
        result->constancy[d] = a->constancy[d];
    }
    result->non_negative = a->non_negative;
}

/* ---- sources ---------------------------------------------------------------------------- */

static void range(lilac_axis_facts *result, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    int64_t start = lilac_tile_find_integer(&op->attributes, "start", 0);
    if (extent(type, 0) == 1 && type->shape[0] == 1) {
        set_constant(result, type, start);
        return;
    }
    result->contiguity[0] = extent(type, 0);
    result->divisibility[0] = power_of_two_in(start);
    result->non_negative = start >= 0;
    guard_narrow(result, type);
}

static void splat(lilac_axis_facts *result, const lilac_tile_op *op, const lilac_axis_facts *a) {
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = a->divisibility[0];
        result->constancy[d] = extent(op->results[0].type, d);
    }
    result->non_negative = a->non_negative;
    result->constant = a->constant;
    result->value = a->value;
}

static void constant(lilac_axis_facts *result, const lilac_tile_op *op) {
    const lilac_tile_type *type = op->results[0].type;
    const lilac_tile_attribute *given = lilac_tile_find(&op->attributes, "value");
    int64_t value;
    if (lilac_tile_constant(&op->results[0], &value)) {
        set_constant(result, type, value);
        return;
    }
    if (given == NULL)
        return;
    bool one = given->kind != LILAC_TILE_ATTR_DENSE || given->count == 1;
    int64_t v = integer_bits(type) > 0 ? MAX_DIVISIBILITY : 1;
    for (uint32_t i = 0; given->kind == LILAC_TILE_ATTR_DENSE && i < given->count; i++)
        v = min_i64(v, power_of_two_in(given->integers[i]));
    for (uint32_t d = 0; d < result->rank; d++) {
        result->divisibility[d] = integer_bits(type) > 0 && !one ? v : 1;
        result->constancy[d] = one ? extent(type, d) : 1;
    }
}

/* Whatever an element-wise operation computes, equal operands give equal results. */
static void elementwise(lilac_axis_facts *result, const lilac_tile_op *op,
                        const lilac_axis_facts *const *operands) {
    if (op->operand_count == 0)
        return;
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t k = MAX_DIVISIBILITY;
        for (uint32_t i = 0; i < op->operand_count; i++)
            if (operands[i]->rank == result->rank)
                k = min_i64(k, operands[i]->constancy[d]);
        result->constancy[d] = min_i64(k, extent(op->results[0].type, d));
    }
}

/* ---- all of them ------------------------------------------------------------------------ */

static bool all_constant(const lilac_tile_op *op, const lilac_axis_facts *const *operands,
                         int64_t values[3]) {
    if (op->operand_count == 0 || op->operand_count > 3)
        return false;
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!operands[i]->constant)
            return false;
        values[i] = operands[i]->value;
    }
    return true;
}

static void integer_arithmetic(lilac_axis_facts *result, const lilac_tile_op *op,
                               const lilac_axis_facts *a, const lilac_axis_facts *b) {
    const lilac_tile_type *type = op->results[0].type;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ADDI:
        sum(result, a, b, 1);
        result->non_negative = a->non_negative && b->non_negative;
        guard_narrow(result, type);
        break;
    case LILAC_TILE_OP_ARITH_SUBI:
        difference(result, a, b);
        guard_narrow(result, type);
        break;
    case LILAC_TILE_OP_ARITH_MULI:
        product(result, a, b);
        guard_narrow(result, type);
        break;
    case LILAC_TILE_OP_ARITH_SHLI:
        shift_left(result, a, b);
        guard_narrow(result, type);
        break;
    case LILAC_TILE_OP_ARITH_DIVSI:
    case LILAC_TILE_OP_ARITH_DIVUI:
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
        quotient(result, op, a, b);
        break;
    case LILAC_TILE_OP_ARITH_REMSI:
    case LILAC_TILE_OP_ARITH_REMUI:
        remainder_of(result, op->code == LILAC_TILE_OP_ARITH_REMUI, a, b);
        break;
    case LILAC_TILE_OP_ARITH_SHRSI:
    case LILAC_TILE_OP_ARITH_SHRUI:
        shift_right(result, op->code == LILAC_TILE_OP_ARITH_SHRUI, a, b);
        break;
    case LILAC_TILE_OP_ARITH_ANDI:
        bits_and(result, a, b);
        break;
    case LILAC_TILE_OP_ARITH_ORI:
    case LILAC_TILE_OP_ARITH_XORI:
        bits_merge(result, a, b);
        break;
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_MAXSI:
    case LILAC_TILE_OP_ARITH_MINUI:
    case LILAC_TILE_OP_ARITH_MAXUI:
        extreme(result, op, a, b);
        break;
    default:
        comparison(result, lilac_tile_find_text(&op->attributes, "predicate"), a, b);
        break;
    }
    result->constant = false;
}

static void clamp_to_shape(lilac_axis_facts *result, const lilac_tile_type *type) {
    for (uint32_t d = 0; d < result->rank; d++) {
        int64_t size = extent(type, d);
        if (result->contiguity[d] > size)
            result->contiguity[d] = size; /* one block of all there is, with the same start */
        result->constancy[d] = min_i64(result->constancy[d], size);
    }
}

void lilac_axis_transfer(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                         const lilac_axis_facts *const *operands) {
    const lilac_tile_type *type = op->results[index].type;
    int64_t unit = lilac_axis_unit(type), values[3], value;
    lilac_axis_unknown(result, rank_of(type));
    const lilac_axis_facts *a = op->operand_count > 0 ? operands[0] : NULL;
    const lilac_axis_facts *b = op->operand_count > 1 ? operands[1] : NULL;
    if (all_constant(op, operands, values) && lilac_engine_fold(op, values, &value)) {
        set_constant(result, type, value);
        return;
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT:
        constant(result, op);
        break;
    case LILAC_TILE_OP_TT_MAKE_RANGE:
        range(result, op);
        break;
    case LILAC_TILE_OP_TT_SPLAT:
        splat(result, op, a);
        break;
    case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
    case LILAC_TILE_OP_TT_GET_NUM_PROGRAMS:
        result->non_negative = true;
        break;
    case LILAC_TILE_OP_TT_ADDPTR:
        sum(result, a, b, unit);
        break;
    case LILAC_TILE_OP_ARITH_SELECT:
        choice(result, op, operands, unit);
        break;
    case LILAC_TILE_OP_ARITH_EXTSI:
        *result = *a;
        result->constant = false;
        break;
    case LILAC_TILE_OP_ARITH_EXTUI:
        extend_unsigned(result, a);
        break;
    case LILAC_TILE_OP_ARITH_TRUNCI:
    case LILAC_TILE_OP_ARITH_INDEX_CAST:
        truncate_to(result, a, type);
        break;
    case LILAC_TILE_OP_TT_BITCAST:
    case LILAC_TILE_OP_ARITH_BITCAST:
    case LILAC_TILE_OP_TT_PTR_TO_INT:
    case LILAC_TILE_OP_TT_INT_TO_PTR: {
        const lilac_tile_type *from = op->operands[0].value->type;
        bool numbers = (integer_bits(from) > 0 || lilac_tile_is_pointer(from)) &&
                       (integer_bits(type) > 0 || lilac_tile_is_pointer(type));
        if (!numbers)
            elementwise(result, op, operands);
        else
            change_unit(result, a, lilac_axis_unit(from), unit);
        result->constant = false;
        break;
    }
    case LILAC_TILE_OP_TT_EXPAND_DIMS:
        expand(result, op, a, unit);
        break;
    case LILAC_TILE_OP_TT_BROADCAST:
        broadcast(result, op, a);
        break;
    case LILAC_TILE_OP_TT_TRANS:
        transpose(result, op, a);
        break;
    case LILAC_TILE_OP_TT_RESHAPE:
        reshape(result, op, a, unit);
        break;
    case LILAC_TILE_OP_TT_JOIN:
        join_halves(result, a, b, unit);
        break;
    case LILAC_TILE_OP_TT_SPLIT:
        split_halves(result, a, unit);
        break;
    case LILAC_TILE_OP_TTG_CONVERT_LAYOUT:
        *result = *a;
        break;
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_SUBI:
    case LILAC_TILE_OP_ARITH_MULI:
    case LILAC_TILE_OP_ARITH_SHLI:
    case LILAC_TILE_OP_ARITH_DIVSI:
    case LILAC_TILE_OP_ARITH_DIVUI:
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
    case LILAC_TILE_OP_ARITH_REMSI:
    case LILAC_TILE_OP_ARITH_REMUI:
    case LILAC_TILE_OP_ARITH_SHRSI:
    case LILAC_TILE_OP_ARITH_SHRUI:
    case LILAC_TILE_OP_ARITH_ANDI:
    case LILAC_TILE_OP_ARITH_ORI:
    case LILAC_TILE_OP_ARITH_XORI:
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_MAXSI:
    case LILAC_TILE_OP_ARITH_MINUI:
    case LILAC_TILE_OP_ARITH_MAXUI:
    case LILAC_TILE_OP_ARITH_CMPI:
        integer_arithmetic(result, op, a, b);
        break;
    default: {
        uint32_t traits = lilac_tile_op_info_get(op->code)->traits;
        if ((traits & LILAC_TILE_PURE) && (traits & LILAC_TILE_ELEMENTWISE))
            elementwise(result, op, operands);
        break;
    }
    }
    clamp_to_shape(result, type);
}
