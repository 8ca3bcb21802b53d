/* simplify_comparisons: a step of the pass simplify.
 *
 * A comparison of sums with a common term that do not wrap compares the other terms:
 *
 *     %t = arith.addi (tt.splat %first), %range              %c = arith.cmpi sge (rows of %range),
 *     %c = arith.cmpi sge (rows of %t), (columns of %t)  →                       (columns of %range)
 *
 * A comparison of 64 bits whose operands fit in 32 (ranges.c) compares 32 bits, half as many instructions. What
 * its operands are computed from is computed with 32 bits, too:
 *
 *     %n = arith.extsi %length : i32 to i64                  %c = arith.cmpi slt, %u, (tt.splat %length)
 *     %c = arith.cmpi slt, %t, (tt.splat %n)             →    with %u: %t of 32 bits
 *
 * Kernels compute positions in 64 bits where a tensor may have 2³¹ elements; the tile that a mask limits still
 * starts at a small one. */
#include "internal.h"

enum { MOST_SHAPES = 4, MOST_DEPTH = 6 };

typedef struct builder {
    lilac_tile_module *module;
    lilac_tile_op *user; /* the comparison */
    lilac_tile_op **made;
    uint32_t count;
} builder;

static bool is_shape(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_TT_SPLAT || op->code == LILAC_TILE_OP_TT_BROADCAST ||
           op->code == LILAC_TILE_OP_TT_EXPAND_DIMS;
}

static bool is_full(const builder *b) {
    return b->count == LILAC_MOST_NEW_OPERATIONS;
}

static lilac_tile_value *note(builder *b, lilac_tile_op *op) {
    b->made[b->count++] = op;
    return &op->results[0];
}

static lilac_tile_value *add(builder *b, lilac_tile_op *op) {
    op->position = b->user->position;
    lilac_tile_insert_before(b->user, op);
    return note(b, op);
}

/* ---- common terms ------------------------------------------------------------------------- */

/* A sum, and the operations that give it the shape of an operand, the last first. */
typedef struct shaped_sum {
    const lilac_tile_op *shapes[MOST_SHAPES];
    uint32_t count;
    lilac_tile_op *sum;
} shaped_sum;

static bool find_sum(shaped_sum *result, const lilac_tile_value *operand) {
    lilac_tile_op *op = operand->op;
    result->count = 0;
    while (op != NULL && is_shape(op) && result->count < MOST_SHAPES) {
        result->shapes[result->count++] = op;
        op = op->operands[0].value->op;
    }
    result->sum = op;
    return op != NULL && op->code == LILAC_TILE_OP_ARITH_ADDI;
}

/* The scalar that all elements of a value are; NULL: none is known. */
static const lilac_tile_value *scalar_of(const lilac_tile_value *value) {
    while (value->op != NULL && is_shape(value->op)) {
        value = value->op->operands[0].value;
    }
    return lilac_tile_is_tensor(value->type) ? NULL : value;
}

static bool wraps(const lilac_tile_op *sum, const lilac_range *ranges) {
    const lilac_range all = lilac_range_of_bits(lilac_range_bits(sum->results[0].type));
    const lilac_range a = ranges[sum->operands[0].value->id];
    const lilac_range b = ranges[sum->operands[1].value->id];
    int64_t low, high;
    return __builtin_add_overflow(a.low, b.low, &low) ||
           __builtin_add_overflow(a.high, b.high, &high) || low < all.low || high > all.high;
}

/* The term beside the common one, in the shape of the operand. */
static lilac_tile_value *shaped(builder *b, const shaped_sum *from, uint32_t term) {
    lilac_tile_value *value = from->sum->operands[term].value;
    for (uint32_t i = from->count; i-- > 0;) {
        if (is_full(b)) {
            return NULL;
        }
        lilac_tile_op *shape = lilac_tile_clone(b->module, from->shapes[i]);
        lilac_tile_set_operand(shape, 0, value);
        value = add(b, shape);
    }
    return value;
}

/* Which terms of two sums are the same scalar? */
static bool common_terms(const shaped_sum *sums, uint32_t *terms) {
    for (uint32_t i = 0; i < 4; i++) {
        const lilac_tile_value *scalar = scalar_of(sums[0].sum->operands[i & 1].value);
        if (scalar != NULL && scalar == scalar_of(sums[1].sum->operands[i >> 1].value)) {
            terms[0] = i & 1;
            terms[1] = i >> 1;
            return true;
        }
    }
    return false;
}

static bool is_unsigned(const lilac_tile_op *op) {
    const lilac_name predicate = lilac_tile_find_text(&op->attributes, "predicate");
    return predicate == NULL || predicate[0] == 'u';
}

/* If one could not be made, what was made for it goes. */
static bool set_operands(builder *b, lilac_tile_op *op, lilac_tile_value *const *values) {
    if (values[0] == NULL || values[1] == NULL) {
        while (b->count > 0) {
            lilac_tile_remove(b->made[--b->count]);
        }
        return false;
    }
    lilac_tile_set_operand(op, 0, values[0]);
    lilac_tile_set_operand(op, 1, values[1]);
    return true;
}

static bool remove_common_term(builder *b, lilac_tile_op *op, const lilac_range *ranges) {
    shaped_sum sums[2];
    uint32_t terms[2];
    if (is_unsigned(op) || !find_sum(&sums[0], op->operands[0].value) ||
        !find_sum(&sums[1], op->operands[1].value) || !common_terms(sums, terms) ||
        wraps(sums[0].sum, ranges) || wraps(sums[1].sum, ranges)) {
        return false;
    }
    lilac_tile_value *values[2];
    for (uint32_t i = 0; i < 2; i++) {
        values[i] = shaped(b, &sums[i], 1 - terms[i]);
    }
    return set_operands(b, op, values);
}

/* ---- 32 bits ------------------------------------------------------------------------------ */

/* Operations whose low words are those of their operands' low words. */
static bool is_arithmetic(const lilac_tile_op *op) {
    return op->code == LILAC_TILE_OP_ARITH_ADDI || op->code == LILAC_TILE_OP_ARITH_SUBI ||
           op->code == LILAC_TILE_OP_ARITH_MULI;
}

/* The low 32 bits of a value of 64; NULL: too many operations. */
static lilac_tile_value *low_word(builder *b, lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    const lilac_tile_type *type = lilac_engine_narrowed(b->module, value->type);
    int64_t number;
    if (op != NULL &&
        (op->code == LILAC_TILE_OP_ARITH_EXTSI || op->code == LILAC_TILE_OP_ARITH_EXTUI) &&
        lilac_range_bits(op->operands[0].value->type) == 32) {
        return op->operands[0].value;
    }
    if (is_full(b)) {
        return NULL;
    }
    if (lilac_tile_constant(value, &number)) {
        return note(b, lilac_engine_make_constant(b->module, b->user, type, (int32_t)number));
    }
    if (op == NULL || depth == MOST_DEPTH || !(is_shape(op) || is_arithmetic(op))) {
        return add(b, lilac_tile_op_create(b->module, LILAC_TILE_OP_ARITH_TRUNCI, 1, &value, 1,
                                           &type, 0, b->user->location));
    }
    lilac_tile_value *operands[2] = {NULL};
    for (uint32_t i = 0; i < op->operand_count; i++) {
        operands[i] = low_word(b, op->operands[i].value, depth + 1);
        if (operands[i] == NULL || is_full(b)) {
            return NULL;
        }
    }
    if (is_arithmetic(op)) { /* without its flags: the sum of the low words may wrap */
        return add(b, lilac_tile_op_create(b->module, op->code, 2, operands, 1, &type, 0,
                                           b->user->location));
    }
    lilac_tile_op *shape = lilac_tile_clone(b->module, op);
    lilac_tile_set_operand(shape, 0, operands[0]);
    shape->results[0].type = type;
    return add(b, shape);
}

static bool fits(lilac_range range) {
    return range.low >= INT32_MIN && range.high <= INT32_MAX;
}

static bool compare_words(builder *b, lilac_tile_op *op, const lilac_range *ranges) {
    if (lilac_range_bits(op->operands[0].value->type) != 64 ||
        !fits(ranges[op->operands[0].value->id]) || !fits(ranges[op->operands[1].value->id])) {
        return false;
    }
    lilac_tile_value *values[2];
    for (uint32_t i = 0; i < 2; i++) {
        values[i] = low_word(b, op->operands[i].value, 0);
    }
    return set_operands(b, op, values);
}

bool lilac_engine_simplify_comparison(lilac_tile_module *module, lilac_tile_op *op,
                                      const lilac_range *ranges,
                                      lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS],
                                      uint32_t *count) {
    builder b = {.module = module, .user = op, .made = made};
    const bool changed = op->code == LILAC_TILE_OP_ARITH_CMPI &&
                         (remove_common_term(&b, op, ranges) || compare_words(&b, op, ranges));
    *count = b.count;
    return changed;
}
