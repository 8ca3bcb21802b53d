/* Integer arithmetic.
 *
 * Sums, differences and products with a constant keep the constant offsets separate:
 *
 *   (base a + offset a) + (base b + offset b)  =  (base a + base b) + (offset a + offset b)
 *
 * This always holds modulo the width. It holds without wrapping, so that the sum may be
 * sign-extended into an address, if the ranges exclude overflow, or if one side is a multiple of
 * 2^k and the other is in [0, 2^k), which excludes carries: pid * 1024 + [0, 1024).
 *
 * Integers of one bit are predicates, which only have logic instructions. Other operations on
 * them are computed in 32 bits. */
#include "control.h"
#include "coordinates.h"
#include "operations.h"

#include <string.h>

/* ---- affine sums and products ------------------------------------------------------------ */

typedef struct interval {
    int64_t low, high;
    bool known; /* false: does not fit 64 bits */
} interval;

static interval add_intervals(interval a, interval b) {
    interval sum = {0};
    sum.known = a.known && b.known && !__builtin_add_overflow(a.low, b.low, &sum.low) &&
                !__builtin_add_overflow(a.high, b.high, &sum.high);
    return sum;
}

static interval negate(interval a) {
    interval result = {0};
    result.known = a.known && !__builtin_sub_overflow((int64_t)0, a.high, &result.low) &&
                   !__builtin_sub_overflow((int64_t)0, a.low, &result.high);
    return result;
}

static interval times(interval a, int64_t factor) {
    int64_t x, y;
    if (!a.known || __builtin_mul_overflow(a.low, factor, &x) ||
        __builtin_mul_overflow(a.high, factor, &y)) {
        return (interval){0};
    }
    return (interval){x < y ? x : y, x < y ? y : x, true};
}

static interval base_of(const lilac_lower_value *value) {
    return (interval){value->low, value->high, true};
}

static interval offsets_of(const lilac_lower_value *value) {
    return value->offsets == NULL ? (interval){0, 0, true}
                                  : (interval){value->offset_low, value->offset_high, true};
}

static bool fits(interval a, lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    return a.known && (bits == 64 ||
                       (a.low >= -((int64_t)1 << (bits - 1)) && a.high < (int64_t)1 << (bits - 1)));
}

static bool has_word(const lilac_tile_op *op, const char *name, const char *word) {
    const lilac_name text = lilac_tile_find_text(&op->attributes, name);
    return text != NULL && strstr(text, word) != NULL;
}

/* Is every element of `value` a multiple of a power of two that is greater than every element of
 * `rest`, and is `rest` not negative? Divisibility holds for the first element of each contiguous
 * run, so runs must have one element. */
static bool bits_are_disjoint(lilac_lowering *l, const lilac_tile_value *tile,
                              const lilac_lower_value *value, const lilac_lower_value *rest) {
    interval whole = add_intervals(base_of(rest), offsets_of(rest));
    if (value->offsets != NULL || rest->low < 0 || offsets_of(rest).low < 0 || !whole.known) {
        return false;
    }
    const lilac_axis_facts *facts = lilac_axis_facts_of(&l->facts, tile);
    int64_t divisor = 0;
    for (uint32_t d = 0; d < facts->rank; d++) {
        if (facts->contiguity[d] != 1) {
            return false;
        }
        divisor = facts->divisibility[d] > divisor ? facts->divisibility[d] : divisor;
    }
    return whole.high < divisor;
}

/* base a ± base b for each register; the offsets are added separately. */
static bool add_or_subtract(lilac_lowering *l, const lilac_tile_op *op, bool subtract) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    if (result == NULL) {
        return false;
    }
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0), *b = lilac_lower_operand(l, op, 1);
    const uint32_t *from_a, *from_b;
    if (!lilac_lower_align(l, a, result->view, &from_a) ||
        !lilac_lower_align(l, b, result->view, &from_b)) {
        return false;
    }
    interval low = subtract ? negate(base_of(b)) : base_of(b);
    interval far = subtract ? negate(offsets_of(b)) : offsets_of(b);
    interval bases = add_intervals(base_of(a), low);
    interval offsets = add_intervals(offsets_of(a), far);
    bool in_range = fits(bases, result->simt) && fits(add_intervals(bases, offsets), result->simt);
    bool disjoint = !subtract && (bits_are_disjoint(l, lilac_tile_operand(op, 0), a, b) ||
                                  bits_are_disjoint(l, lilac_tile_operand(op, 1), b, a));
    bool plain = a->offsets == NULL && b->offsets == NULL; /* the result is the wrapped sum */
    result->exact = plain || (a->exact && b->exact && (in_range || disjoint));
    if (in_range) {
        result->low = bases.low, result->high = bases.high;
    } else if (disjoint && bases.known) {
        /* Without carries the bounds of the sum are the sums of the bounds. */
        result->low = bases.low > result->low ? bases.low : result->low;
        result->high = bases.high < result->high ? bases.high : result->high;
    }
    bool no_overflow = has_word(op, "overflowFlags", "nsw");
    uint8_t flags = in_range || disjoint || (no_overflow && plain) ? LILAC_SIMT_NO_SIGNED_WRAP : 0;
    int64_t *sums = plain ? NULL : lilac_arena_array(l->arena, int64_t, result->count);
    lilac_simt_value before[2] = {0, 0}, made = 0;
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t i = lilac_lower_index(a, from_a, r), j = lilac_lower_index(b, from_b, r);
        lilac_simt_value parts[2] = {a->base[i], b->base[j]};
        lilac_simt_value step;
        if (made != 0 && parts[1] == before[1] &&
            lilac_lower_is_step(l, parts[0], before[0], &step)) {
            made = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, result->simt, made, step);
            memcpy(before, parts, sizeof before);
        } else if (made != 0 && !subtract && parts[0] == before[0] &&
                   lilac_lower_is_step(l, parts[1], before[1], &step)) {
            made = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, result->simt, made, step);
            memcpy(before, parts, sizeof before);
        } else if (made == 0 || parts[0] != before[0] || parts[1] != before[1]) {
            made = lilac_lower_flagged(l, subtract ? LILAC_SIMT_OP_SUB : LILAC_SIMT_OP_ADD,
                                       result->simt, flags, 2, parts);
            memcpy(before, parts, sizeof before);
        }
        result->base[r] = made;
        if (sums != NULL) {
            int64_t first = a->offsets == NULL ? 0 : a->offsets[i];
            int64_t second = b->offsets == NULL ? 0 : b->offsets[j];
            sums[r] = subtract ? first - second : first + second;
        }
    }
    result->offsets = sums;
    result->offset_low = sums == NULL ? 0 : offsets.low;
    result->offset_high = sums == NULL ? 0 : offsets.high;
    return true;
}

/* Offsets are limited, so that their sums and products cannot overflow 64 bits. */
static bool is_small(interval a) {
    return a.known && a.low >= -((int64_t)1 << 40) && a.high <= (int64_t)1 << 40;
}

static bool multiply_by(lilac_lowering *l, const lilac_tile_op *op, const lilac_lower_value *a,
                        int64_t factor) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    if (result == NULL || !lilac_lower_align(l, a, result->view, &source)) {
        return false;
    }
    interval bases = times(base_of(a), factor), offsets = times(offsets_of(a), factor);
    bool in_range = fits(bases, result->simt) && fits(add_intervals(bases, offsets), result->simt);
    result->exact = a->offsets == NULL || (a->exact && in_range);
    if (in_range) {
        result->low = bases.low, result->high = bases.high;
    }
    int64_t *products =
        a->offsets != NULL ? lilac_arena_array(l->arena, int64_t, result->count) : NULL;
    lilac_simt_value times_what = lilac_lower_integer(l, result->simt, factor);
    lilac_simt_value before = 0, made = 0;
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t i = lilac_lower_index(a, source, r);
        lilac_simt_value parts[2] = {a->base[i], times_what};
        if (made == 0 || before != parts[0]) {
            made = lilac_lower_flagged(l, LILAC_SIMT_OP_MUL, result->simt,
                                       in_range ? LILAC_SIMT_NO_SIGNED_WRAP : 0, 2, parts);
            before = parts[0];
        }
        result->base[r] = made;
        if (products != NULL) {
            products[r] = a->offsets[i] * factor;
        }
    }
    result->offsets = products;
    result->offset_low = products == NULL ? 0 : offsets.low;
    result->offset_high = products == NULL ? 0 : offsets.high;
    return true;
}

/* Do all registers have the same value, without offsets? */
static bool is_shared(const lilac_lower_value *value) {
    for (uint32_t r = 1; r < value->count; r++) {
        if (value->base[r] != value->base[0]) {
            return false;
        }
    }
    return value->offsets == NULL;
}

/* (base + c) * y in 64 bits, with y equal in all registers: one product, and one addition for each
 * further register. Correct even if it wraps. The result has no offsets.
 *
 *     (s + 0) y,  (s + 1) y,  (s + 2) y …    =    s y,  … + y,  … + y … */
static bool multiply_by_shared(lilac_lowering *l, const lilac_tile_op *op,
                               const lilac_lower_value *a, const lilac_lower_value *b) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    if (result == NULL || !lilac_lower_align(l, a, result->view, &source)) {
        return false;
    }
    lilac_simt_builder *builder = &l->builder;
    lilac_simt_value before = 0, made = 0;
    int64_t at = 0;
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t i = lilac_lower_index(a, source, r);
        if (made == 0 || a->base[i] != before) {
            made = lilac_simt_op2(builder, LILAC_SIMT_OP_MUL, LILAC_SIMT_I64,
                                  lilac_lower_get(l, a, i), b->base[0]);
        } else if (a->offsets[i] != at) {
            lilac_simt_value step =
                lilac_simt_op2(builder, LILAC_SIMT_OP_MUL, LILAC_SIMT_I64, b->base[0],
                               lilac_lower_integer(l, LILAC_SIMT_I64, a->offsets[i] - at));
            made = lilac_simt_op2(builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I64, made, step);
        }
        before = a->base[i];
        at = a->offsets[i];
        result->base[r] = made;
    }
    return true;
}

/* ---- one element ------------------------------------------------------------------------- */

static lilac_simt_value two(lilac_lowering *l, lilac_simt_opcode code, lilac_simt_value a,
                            lilac_simt_value b) {
    return lilac_simt_op2(&l->builder, code, lilac_simt_type_of(l->kernel, a), a, b);
}

static lilac_simt_value number(lilac_lowering *l, lilac_simt_value like, int64_t value) {
    return lilac_lower_integer(l, lilac_simt_type_of(l->kernel, like), value);
}

static lilac_simt_value compare(lilac_lowering *l, lilac_simt_compare kind, lilac_simt_value a,
                                lilac_simt_value b) {
    return lilac_simt_compare_values(&l->builder, kind, a, b);
}

/* One operation on integers of 8 to 64 bits: the columns of operations.def. */
typedef struct integer_row {
    lilac_lower_element compute;
    uint16_t instruction; /* the one that `compute` builds, or the last one */
    uint16_t bits; /* on predicates: the logic instruction; or the extension to 32 bits in which
                             the operation is computed; CONST: the result is 0; NONE: as `compute` */
} integer_row;

static const integer_row integer_rows[LILAC_TILE_OP_COUNT];

static lilac_simt_opcode instruction_of(const lilac_tile_op *op) {
    return (lilac_simt_opcode)integer_rows[op->code].instruction;
}

static void compute_one(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                        lilac_simt_value *out) {
    out[0] = two(l, instruction_of(op), in[0], in[1]);
}

static void compute_division(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    out[0] = two(l, instruction_of(op), in[0], lilac_lower_divisor(l, in[1]));
}

/* a / b rounded up or down: the quotient towards zero, corrected by one if the remainder is not
 * 0 and the exact quotient has the sign of the direction. */
static lilac_simt_value divide_signed(lilac_lowering *l, bool up, lilac_simt_value a,
                                      lilac_simt_value divisor) {
    lilac_simt_value b = lilac_lower_divisor(l, divisor);
    lilac_simt_value quotient = two(l, LILAC_SIMT_OP_DIV_S, a, b);
    lilac_simt_value rest = two(l, LILAC_SIMT_OP_REM_S, a, b);
    lilac_simt_value zero = number(l, a, 0);
    lilac_simt_value inexact = compare(l, LILAC_SIMT_NE, rest, zero);
    lilac_simt_value negative = compare(l, LILAC_SIMT_LT, two(l, LILAC_SIMT_OP_XOR, a, b), zero);
    lilac_simt_value side = up ? lilac_lower_not(l, negative) : negative;
    lilac_simt_value moved = two(l, LILAC_SIMT_OP_ADD, quotient, number(l, a, up ? 1 : -1));
    return lilac_lower_select(l, two(l, LILAC_SIMT_OP_AND, inexact, side), moved, quotient);
}

static void compute_ceil_div_s(lilac_lowering *l, const lilac_tile_op *op,
                               const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    out[0] = divide_signed(l, true, in[0], in[1]);
}

static void compute_floor_div_s(lilac_lowering *l, const lilac_tile_op *op,
                                const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    out[0] = divide_signed(l, false, in[0], in[1]);
}

static void compute_ceil_div_u(lilac_lowering *l, const lilac_tile_op *op,
                               const lilac_simt_value *in, lilac_simt_value *out) {
    (void)op;
    lilac_simt_value a = in[0], b = lilac_lower_divisor(l, in[1]);
    lilac_simt_value quotient = two(l, LILAC_SIMT_OP_DIV_U, a, b);
    lilac_simt_value rest = two(l, LILAC_SIMT_OP_REM_U, a, b);
    lilac_simt_value exact = compare(l, LILAC_SIMT_EQ, rest, number(l, a, 0));
    out[0] = lilac_lower_select(l, exact, quotient,
                                two(l, LILAC_SIMT_OP_ADD, quotient, number(l, a, 1)));
}

static void compute_extended(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                             lilac_simt_value *out) {
    out[0] = two(l, LILAC_SIMT_OP_MUL, in[0], in[1]);
    out[1] = two(l, instruction_of(op), in[0], in[1]);
}

static void compute_magnitude(lilac_lowering *l, const lilac_tile_op *op,
                              const lilac_simt_value *in, lilac_simt_value *out) {
    const lilac_simt_opcode code = instruction_of(op);
    out[0] = lilac_simt_op1(&l->builder, code, lilac_simt_type_of(l->kernel, in[0]), in[0]);
}

/* ---- predicates -------------------------------------------------------------------------- */

/* Computes in 32 bits and keeps the low bit. The high half of a product of bits is 0: for
 * unsigned bits, and for signed ones (0 or -1, product 0 or 1) too. A shift of one bit by one
 * results in 0, or in the sign. */
static void compute_wide(lilac_lowering *l, const lilac_tile_op *op, const lilac_simt_value *in,
                         lilac_simt_value *out) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_opcode extend = (lilac_simt_opcode)integer_rows[op->code].bits;
    lilac_simt_value wide[2] = {0, 0};
    for (uint32_t i = 0; i < op->operand_count; i++) {
        bool amount = i == 1 && instruction_of(op) == LILAC_SIMT_OP_SHR_S;
        wide[i] = lilac_simt_op1(b, amount ? LILAC_SIMT_OP_ZEXT : extend, LILAC_SIMT_I32, in[i]);
    }
    lilac_simt_value made[2];
    integer_rows[op->code].compute(l, op, wide, made);
    for (uint32_t i = 0; i < op->result_count && !l->failed; i++) {
        if (i == 1) {
            out[1] = lilac_simt_constant(b, LILAC_SIMT_I1, 0);
            continue;
        }
        lilac_simt_value low = two(l, LILAC_SIMT_OP_AND, made[0], number(l, made[0], 1));
        out[0] = compare(l, LILAC_SIMT_NE, low, number(l, low, 0));
    }
}

static void compute_predicate(lilac_lowering *l, const lilac_tile_op *op,
                              const lilac_simt_value *in, lilac_simt_value *out) {
    lilac_simt_opcode bits = (lilac_simt_opcode)integer_rows[op->code].bits;
    switch (bits) {
    case LILAC_SIMT_OP_CONST:
        out[0] = lilac_simt_constant(&l->builder, LILAC_SIMT_I1, 0);
        break;
    case LILAC_SIMT_OP_SEXT:
    case LILAC_SIMT_OP_ZEXT:
        compute_wide(l, op, in, out);
        break;
    default:
        out[0] = two(l, bits, in[0], in[1]);
        break;
    }
}

/* ---- comparisons ------------------------------------------------------------------------- */

static const struct {
    const char *name;
    lilac_simt_compare kind;
} comparisons[] = {
    {"eq", LILAC_SIMT_EQ},   {"ne", LILAC_SIMT_NE},   {"slt", LILAC_SIMT_LT},
    {"sle", LILAC_SIMT_LE},  {"sgt", LILAC_SIMT_GT},  {"sge", LILAC_SIMT_GE},
    {"ult", LILAC_SIMT_ULT}, {"ule", LILAC_SIMT_ULE}, {"ugt", LILAC_SIMT_UGT},
    {"uge", LILAC_SIMT_UGE},
};

static bool comparison_of(const lilac_tile_op *op, lilac_simt_compare *kind) {
    const lilac_tile_attribute *predicate = lilac_tile_find(&op->attributes, "predicate");
    size_t count = sizeof comparisons / sizeof comparisons[0];
    for (size_t i = 0; predicate != NULL && i < count; i++) {
        bool found = predicate->text != NULL ? strcmp(predicate->text, comparisons[i].name) == 0
                                             : predicate->integer == (int64_t)i;
        if (found) {
            *kind = comparisons[i].kind;
            return true;
        }
    }
    return false;
}

static void compute_comparison(lilac_lowering *l, const lilac_tile_op *op,
                               const lilac_simt_value *in, lilac_simt_value *out) {
    lilac_simt_compare kind;
    if (!comparison_of(op, &kind)) {
        (void)lilac_lower_bad_attribute(
            l, "predicate", "eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge or a number up to 9");
        return;
    }
    if (lilac_simt_type_of(l->kernel, in[0]) != LILAC_SIMT_I1) {
        out[0] = compare(l, kind, in[0], in[1]);
        return;
    }
    lilac_simt_value a = in[0], b = in[1];
    lilac_simt_value not_a = lilac_lower_not(l, a), not_b = lilac_lower_not(l, b);
    switch (kind) {
    case LILAC_SIMT_EQ:
        out[0] = two(l, LILAC_SIMT_OP_XOR, a, not_b);
        break;
    case LILAC_SIMT_NE:
        out[0] = two(l, LILAC_SIMT_OP_XOR, a, b);
        break;
    case LILAC_SIMT_ULT:
    case LILAC_SIMT_GT: /* true is -1 */
        out[0] = two(l, LILAC_SIMT_OP_AND, not_a, b);
        break;
    case LILAC_SIMT_UGT:
    case LILAC_SIMT_LT:
        out[0] = two(l, LILAC_SIMT_OP_AND, a, not_b);
        break;
    case LILAC_SIMT_ULE:
    case LILAC_SIMT_GE:
        out[0] = two(l, LILAC_SIMT_OP_OR, not_a, b);
        break;
    default:
        out[0] = two(l, LILAC_SIMT_OP_OR, a, not_b);
        break;
    }
}

/* ---- the operations ---------------------------------------------------------------------- */

static const integer_row integer_rows[LILAC_TILE_OP_COUNT] = {
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    [LILAC_TILE_OP_##code] = {compute, LILAC_SIMT_OP_##instruction, LILAC_SIMT_OP_##bits},
#include <lilac/operations.def>
};

/* The range of a remainder by a positive constant, and of `and` with one. */
static void note_range(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *result = &l->values[op->results[0].id];
    int64_t constant;
    if (op->operand_count != 2 || result->simt == LILAC_SIMT_I1 ||
        !lilac_lower_constant(l, lilac_lower_operand(l, op, 1), &constant) || constant <= 0) {
        return;
    }
    if (instruction_of(op) == LILAC_SIMT_OP_REM_S) {
        bool positive = lilac_lower_operand(l, op, 0)->low >= 0 &&
                        lilac_lower_operand(l, op, 0)->offsets == NULL;
        result->low = positive ? 0 : 1 - constant;
        result->high = constant - 1;
    } else if (instruction_of(op) == LILAC_SIMT_OP_REM_U) {
        result->low = 0;
        result->high = constant - 1;
    } else if (instruction_of(op) == LILAC_SIMT_OP_AND) {
        result->low = 0;
        result->high = constant;
    }
}

bool lilac_lower_integer_op(lilac_lowering *l, const lilac_tile_op *op) {
    const integer_row *row = &integer_rows[op->code];
    bool predicates = lilac_lower_operand(l, op, 0)->simt == LILAC_SIMT_I1;
    if (predicates && row->bits != LILAC_SIMT_OP_NONE) {
        return lilac_lower_elementwise(l, op, compute_predicate);
    }
    bool shared = false;
    if ((op->code == LILAC_TILE_OP_ARITH_DIVUI || op->code == LILAC_TILE_OP_ARITH_REMUI) &&
        !lilac_lower_shared_division(l, op, op->code == LILAC_TILE_OP_ARITH_REMUI, &shared)) {
        return false;
    }
    if (shared) {
        return true;
    }
    if (!lilac_lower_elementwise(l, op, row->compute)) {
        return false;
    }
    note_range(l, op);
    return true;
}

static bool has_offset_type(const lilac_lower_value *value) {
    return value->simt == LILAC_SIMT_I32 || value->simt == LILAC_SIMT_I64;
}

bool lilac_lower_integer_sum(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0), *b = lilac_lower_operand(l, op, 1);
    if (has_offset_type(a) && is_small(offsets_of(a)) && is_small(offsets_of(b))) {
        return add_or_subtract(l, op, instruction_of(op) == LILAC_SIMT_OP_SUB);
    }
    return lilac_lower_integer_op(l, op);
}

bool lilac_lower_integer_product(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0), *b = lilac_lower_operand(l, op, 1);
    int64_t factor;
    if (has_offset_type(a) && lilac_lower_constant(l, b, &factor) &&
        is_small(times(offsets_of(a), factor))) {
        return multiply_by(l, op, a, factor);
    }
    if (has_offset_type(a) && lilac_lower_constant(l, a, &factor) &&
        is_small(times(offsets_of(b), factor))) {
        return multiply_by(l, op, b, factor);
    }
    if (a->simt == LILAC_SIMT_I64 && a->offsets != NULL && is_shared(b)) {
        return multiply_by_shared(l, op, a, b);
    }
    if (a->simt == LILAC_SIMT_I64 && b->offsets != NULL && is_shared(a)) {
        return multiply_by_shared(l, op, b, a);
    }
    return lilac_lower_integer_op(l, op);
}
