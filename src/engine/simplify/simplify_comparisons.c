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
 * starts at a small one.
 *
 * A mask of rows and columns with an order between them loses what the rest implies:
 *
 *     %m = arith.cmpi slt, %t, (tt.splat %length)
 *     %o = arith.cmpi sgt, (rows of %t), (columns of %t)
 *     %x = %o & (rows of %m) & (columns of %m)           →   %x = %o & (rows of %m) */
#include "internal.h"

enum { MOST_SHAPES = 4, MOST_DEPTH = 6, MOST_LEAVES = 8 };

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

/* A value, and the operations that give it the shape of an operand, the last first. */
typedef struct shaped_value {
    const lilac_tile_op *shapes[MOST_SHAPES];
    uint32_t count;
    lilac_tile_value *value;
} shaped_value;

static shaped_value find_value(lilac_tile_value *operand) {
    shaped_value result = {.value = operand};
    while (result.value->op != NULL && is_shape(result.value->op) && result.count < MOST_SHAPES) {
        result.shapes[result.count++] = result.value->op;
        result.value = result.value->op->operands[0].value;
    }
    return result;
}

static bool find_sum(shaped_value *result, lilac_tile_value *operand) {
    *result = find_value(operand);
    return result->value->op != NULL && result->value->op->code == LILAC_TILE_OP_ARITH_ADDI;
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
static lilac_tile_value *shaped(builder *b, const shaped_value *from, uint32_t term) {
    lilac_tile_value *value = from->value->op->operands[term].value;
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
static bool common_terms(const shaped_value *sums, uint32_t *terms) {
    for (uint32_t i = 0; i < 4; i++) {
        const lilac_tile_value *scalar = scalar_of(sums[0].value->op->operands[i & 1].value);
        if (scalar != NULL && scalar == scalar_of(sums[1].value->op->operands[i >> 1].value)) {
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
    shaped_value sums[2];
    uint32_t terms[2];
    if (is_unsigned(op) || !find_sum(&sums[0], op->operands[0].value) ||
        !find_sum(&sums[1], op->operands[1].value) || !common_terms(sums, terms) ||
        wraps(sums[0].value->op, ranges) || wraps(sums[1].value->op, ranges)) {
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

/* ---- implied masks ------------------------------------------------------------------------- */

/* The tensor from which a value differs by numbers that are the same for all elements. */
static const lilac_tile_value *base_of(const lilac_tile_value *value, const lilac_range *ranges) {
    for (const lilac_tile_op *op = value->op; op != NULL; op = value->op) {
        if (op->code == LILAC_TILE_OP_ARITH_EXTSI) {
            value = op->operands[0].value;
        } else if (op->code == LILAC_TILE_OP_ARITH_ADDI && !wraps(op, ranges) &&
                   scalar_of(op->operands[0].value) != NULL) {
            value = op->operands[1].value;
        } else if (op->code == LILAC_TILE_OP_ARITH_ADDI && !wraps(op, ranges) &&
                   scalar_of(op->operands[1].value) != NULL) {
            value = op->operands[0].value;
        } else {
            break;
        }
    }
    return value;
}

static bool same_shapes(const shaped_value *a, const shaped_value *b) {
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        same = a->shapes[i]->code == b->shapes[i]->code &&
               lilac_tile_find_integer(&a->shapes[i]->attributes, "axis", -1) ==
                   lilac_tile_find_integer(&b->shapes[i]->attributes, "axis", -1);
    }
    return same;
}

/* Which operand of a signed comparison is not above the other one, if it is true? 2: none. */
static uint32_t lesser_operand(const lilac_tile_op *op) {
    const lilac_name predicate = lilac_tile_find_text(&op->attributes, "predicate");
    return predicate == NULL || predicate[0] != 's' ? 2 : predicate[1] == 'l' ? 0 : 1;
}

static bool is_comparison(const lilac_tile_value *value) {
    return value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_CMPI &&
           lesser_operand(value->op) < 2;
}

/* Does `order`, with the mask `other`, imply `mask`? Both are one comparison of a tensor with a scalar, `tensor ≤ scalar`,
 * `scalar ≤ tensor`, or these without equality. The order is that of the tensor's elements: it compares one value
 * with itself, which differs from the tensor by a number that is the same for all elements. */
static bool implies(const lilac_tile_value *order, lilac_tile_value *other, lilac_tile_value *mask,
                    const lilac_range *ranges) {
    const shaped_value known = find_value(other), implied = find_value(mask);
    if (!is_comparison(order) || known.value != implied.value || known.count == 0 ||
        !is_comparison(known.value)) {
        return false;
    }
    const lilac_tile_op *comparison = known.value->op;
    const uint32_t below = lesser_operand(comparison), least = lesser_operand(order->op);
    for (uint32_t side = 0; side < 2; side++) {
        const lilac_tile_value *scalar = comparison->operands[1 - side].value,
                               *base = base_of(comparison->operands[side].value, ranges);
        const uint32_t nearer = side == below ? least : 1 - least;
        const shaped_value near = find_value(order->op->operands[nearer].value),
                           far = find_value(order->op->operands[1 - nearer].value);
        if (scalar_of(scalar) != NULL && near.value == far.value &&
            base_of(near.value, ranges) == base && same_shapes(&near, &implied) &&
            same_shapes(&far, &known)) {
            return true;
        }
    }
    return false;
}

/* The masks of a conjunction; `count` above MOST_LEAVES: too many. What is nested deeper counts as one. */
static void find_leaves(lilac_tile_value *value, uint32_t depth, lilac_tile_value **leaves,
                        uint32_t *count) {
    if (*count > MOST_LEAVES) {
        return;
    }
    if (value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_ANDI && depth < MOST_DEPTH) {
        find_leaves(value->op->operands[0].value, depth + 1, leaves, count);
        find_leaves(value->op->operands[1].value, depth + 1, leaves, count);
        return;
    }
    if (*count < MOST_LEAVES) {
        leaves[*count] = value;
    }
    *count += 1;
}

static bool is_implied(lilac_tile_value **leaves, uint32_t count, uint32_t leaf,
                       const lilac_range *ranges) {
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        for (uint32_t k = 0; k < count && !found; k++) {
            found = i != leaf && k != leaf && i != k &&
                    implies(leaves[i], leaves[k], leaves[leaf], ranges);
        }
    }
    return found;
}

static bool drop_implied(builder *b, lilac_tile_op *op, const lilac_range *ranges) {
    lilac_tile_value *leaves[MOST_LEAVES];
    uint32_t count = 0;
    bool dropped = false;
    find_leaves(&op->results[0], 0, leaves, &count);
    if (!lilac_tile_is_tensor(op->results[0].type) || count > MOST_LEAVES) {
        return false;
    }
    for (uint32_t i = 0; i < count;) {
        if (is_implied(leaves, count, i, ranges)) {
            leaves[i] = leaves[--count];
            dropped = true;
        } else {
            i++;
        }
    }
    if (!dropped) {
        return false;
    }
    lilac_tile_value *all = leaves[0];
    for (uint32_t i = 1; i + 1 < count; i++) {
        lilac_tile_value *operands[2] = {all, leaves[i]};
        all = add(b, lilac_tile_op_create(b->module, LILAC_TILE_OP_ARITH_ANDI, 2, operands, 1,
                                          &op->results[0].type, 0, op->location));
    }
    lilac_tile_set_operand(op, 0, all);
    lilac_tile_set_operand(op, 1, leaves[count - 1]);
    return true;
}

bool lilac_engine_simplify_comparison(lilac_tile_module *module, lilac_tile_op *op,
                                      const lilac_range *ranges,
                                      lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS],
                                      uint32_t *count) {
    builder b = {.module = module, .user = op, .made = made};
    const bool changed =
        op->code == LILAC_TILE_OP_ARITH_ANDI
            ? lilac_range_bits(op->results[0].type) == 1 && drop_implied(&b, op, ranges)
            : op->code == LILAC_TILE_OP_ARITH_CMPI &&
                  (remove_common_term(&b, op, ranges) || compare_words(&b, op, ranges));
    *count = b.count;
    return changed;
}
