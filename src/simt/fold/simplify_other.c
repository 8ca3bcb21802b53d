/* Simplification of comparisons and selections; of floats in simplify_float.c.
 *
 *     select p, x, (select p, y, z)   →   select p, x, z
 */
#include "fold/simplify.h"

static lilac_simt_value truth(lilac_simt_builder *b, bool answer) {
    return lilac_simt_constant(b, LILAC_SIMT_I1, answer);
}

static lilac_simt_value opposite(lilac_simt_builder *b, lilac_simt_value value) {
    return lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, value, truth(b, true));
}

/* ---- comparisons ------------------------------------------------------------------------ */

/* x ? c when x is between `low` and `high` (as both signed and unsigned numbers order them):
 * 1 always, 0 never, -1 it depends. */
static int decided_signed(lilac_simt_compare kind, int64_t low, int64_t high, int64_t c) {
    switch (kind) {
    case LILAC_SIMT_LT:
        return high < c ? 1 : low >= c ? 0 : -1;
    case LILAC_SIMT_LE:
        return high <= c ? 1 : low > c ? 0 : -1;
    case LILAC_SIMT_GT:
        return low > c ? 1 : high <= c ? 0 : -1;
    case LILAC_SIMT_GE:
        return low >= c ? 1 : high < c ? 0 : -1;
    default:
        return -1;
    }
}

static int decided_unsigned(lilac_simt_compare kind, uint64_t high, uint64_t c) {
    switch (kind) {
    case LILAC_SIMT_ULT:
        return high < c ? 1 : c == 0 ? 0 : -1;
    case LILAC_SIMT_ULE:
        return high <= c ? 1 : -1;
    case LILAC_SIMT_UGT:
        return high <= c ? 0 : -1;
    case LILAC_SIMT_UGE:
        return c == 0 ? 1 : high < c ? 0 : -1;
    default:
        return -1;
    }
}

static int decided(const lilac_simt_builder *b, const instruction *like, lilac_simt_type type,
                   uint64_t c) {
    lilac_simt_compare kind = (lilac_simt_compare)like->detail;
    uint64_t mask = lilac_simt_type_mask(type);
    uint64_t possible = lilac_simt_possible(b, like->operands[0]);
    if ((kind == LILAC_SIMT_EQ || kind == LILAC_SIMT_NE) && (c & ~possible) != 0) {
        return kind == LILAC_SIMT_NE;
    }
    int answer = decided_unsigned(kind, possible, c);
    if (answer < 0) {
        bool positive = possible <= mask >> 1;
        answer =
            decided_signed(kind, positive ? 0 : lilac_simt_signed(type, (mask >> 1) + 1),
                           (int64_t)(positive ? possible : mask >> 1), lilac_simt_signed(type, c));
    }
    return answer;
}

/* Comparisons of widened numbers are comparisons of the numbers. */
static lilac_simt_value compare_narrow(lilac_simt_builder *b, const instruction *like,
                                       lilac_simt_type type) {
    lilac_simt_compare kind = (lilac_simt_compare)like->detail;
    const instruction *x = b->kernel->values[like->operands[0]].definition;
    const instruction *y = b->kernel->values[like->operands[1]].definition;
    if (x == NULL || y == NULL ||
        (x->code != LILAC_SIMT_OP_SEXT && x->code != LILAC_SIMT_OP_ZEXT)) {
        return 0;
    }
    bool is_signed = x->code == LILAC_SIMT_OP_SEXT;
    bool unsigned_order = kind >= LILAC_SIMT_ULT && kind <= LILAC_SIMT_UGE;
    lilac_simt_type from = type_of(b, x->operands[0]);
    lilac_simt_value other;
    uint64_t c;
    if (x->code == y->code && type_of(b, y->operands[0]) == from) {
        other = y->operands[0];
    } else if (constant(b, like->operands[1], &c)) {
        uint64_t kept = c & lilac_simt_type_mask(from);
        uint64_t again =
            is_signed ? (uint64_t)lilac_simt_signed(from, kept) & lilac_simt_type_mask(type) : kept;
        if (again != c) {
            return 0;
        }
        other = lilac_simt_constant(b, from, kept);
    } else {
        return 0;
    }
    if (!is_signed && !unsigned_order && kind > LILAC_SIMT_NE) { /* both are positive */
        kind = (lilac_simt_compare)(kind - LILAC_SIMT_LT + LILAC_SIMT_ULT);
    }
    return lilac_simt_compare_values(b, kind, x->operands[0], other);
}

/* What a value is, as base + offset with the offset between low and high: through sums with
 * constants that do not wrap and through selections, as an arg-max's indices are made. */
typedef struct offset_range {
    lilac_simt_value base; /* 0: none, the offset is the number */
    int64_t low, high;
} offset_range;

static offset_range range_of(const lilac_simt_builder *b, lilac_simt_value value,
                             lilac_simt_type type, uint32_t depth) {
    const instruction *made = b->kernel->values[value].definition;
    const offset_range itself = {value, 0, 0};
    uint64_t c;
    if (made == NULL) {
        return itself;
    }
    if (constant(b, value, &c)) {
        return (offset_range){0, lilac_simt_signed(type, c), lilac_simt_signed(type, c)};
    }
    if (made->code == LILAC_SIMT_OP_ADD && (made->flags & LILAC_SIMT_NO_SIGNED_WRAP) &&
        constant(b, made->operands[1], &c)) {
        int64_t offset = lilac_simt_signed(type, c);
        return (offset_range){made->operands[0], offset, offset};
    }
    if (made->code == LILAC_SIMT_OP_SELECT && depth > 0) {
        const offset_range x = range_of(b, made->operands[1], type, depth - 1);
        const offset_range y = range_of(b, made->operands[2], type, depth - 1);
        if (x.base == y.base) {
            return (offset_range){x.base, x.low < y.low ? x.low : y.low,
                                  x.high > y.high ? x.high : y.high};
        }
    }
    return itself;
}

enum { SELECTIONS = 6 }; /* looked through, one within another */

/* x ? y of two values with one base: 1, 0, or -1 when it depends. */
static int decided_by_offsets(const lilac_simt_builder *b, const instruction *like,
                              lilac_simt_type type) {
    lilac_simt_compare kind = (lilac_simt_compare)like->detail;
    if (kind > LILAC_SIMT_GE) {
        return -1;
    }
    const offset_range x = range_of(b, like->operands[0], type, SELECTIONS);
    const offset_range y = range_of(b, like->operands[1], type, SELECTIONS);
    if (x.base != y.base) {
        return -1;
    }
    bool below = x.high<y.low, above = x.low> y.high;
    switch (kind) {
    case LILAC_SIMT_EQ:
    case LILAC_SIMT_NE:
        return below || above ? kind == LILAC_SIMT_NE : -1;
    case LILAC_SIMT_LT:
        return below ? 1 : x.low >= y.high ? 0 : -1;
    case LILAC_SIMT_LE:
        return x.high <= y.low ? 1 : above ? 0 : -1;
    case LILAC_SIMT_GT:
        return above ? 1 : x.high <= y.low ? 0 : -1;
    default:
        return x.low >= y.high ? 1 : below ? 0 : -1;
    }
}

/* (zext p) != y where y is 0 or 1 → p xor (y != 0), as the steps of a bitonic sort compare: the
 * exclusive or is part of the comparison that made p on the hardware. A y of x ^ 1 flips p. */
static lilac_simt_value compare_truths(lilac_simt_builder *b, const instruction *like,
                                       lilac_simt_type type) {
    for (uint32_t side = 0; side < 2; side++) {
        const instruction *wide =
            lilac_simt_defined_by(b, like->operands[side], LILAC_SIMT_OP_ZEXT);
        lilac_simt_value y = like->operands[!side], rest;
        uint64_t c;
        if (wide == NULL || type_of(b, wide->operands[0]) != LILAC_SIMT_I1 ||
            lilac_simt_possible(b, y) > 1) {
            continue;
        }
        bool flips = like->detail == LILAC_SIMT_EQ;
        if (lilac_simt_split_bits(b, y, &rest, &c) && c == 1 && lilac_simt_possible(b, rest) <= 1) {
            y = rest;
            flips = !flips;
        }
        lilac_simt_value p = flips ? opposite(b, wide->operands[0]) : wide->operands[0];
        lilac_simt_value q =
            lilac_simt_compare_values(b, LILAC_SIMT_NE, y, lilac_simt_constant(b, type, 0));
        return lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, p, q);
    }
    return 0;
}

/* Is x the counter of a loop and y its upper bound? Then x < y: both are known in the body only. */
static bool counts_to(const lilac_simt_builder *b, lilac_simt_value x, lilac_simt_value y) {
    const lilac_simt_value_info *info = &b->kernel->values[x];
    const instruction *loop =
        info->definition == NULL && info->body != NULL ? info->body->parent : NULL;
    return loop != NULL && loop->code == LILAC_SIMT_OP_LOOP && info->body->argument == x &&
           loop->operands[1] == y;
}

static lilac_simt_value simplify_cmp(lilac_simt_builder *b, instruction *like, bool *again) {
    lilac_simt_compare kind = (lilac_simt_compare)like->detail;
    lilac_simt_value x = like->operands[0];
    lilac_simt_type type = type_of(b, x);
    uint64_t c, d;
    if (!lilac_simt_type_is_integer(type) || !lilac_simt_compare_fits(kind, false)) {
        return 0;
    }
    bool equality = kind == LILAC_SIMT_EQ || kind == LILAC_SIMT_NE;
    if (x == like->operands[1]) {
        return truth(b, kind == LILAC_SIMT_EQ || kind == LILAC_SIMT_LE || kind == LILAC_SIMT_GE ||
                            kind == LILAC_SIMT_ULE || kind == LILAC_SIMT_UGE);
    }
    if ((kind == LILAC_SIMT_LT || kind == LILAC_SIMT_GE) && counts_to(b, x, like->operands[1])) {
        return truth(b, kind == LILAC_SIMT_LT);
    }
    bool is_constant = constant(b, like->operands[1], &c);
    if (is_constant && type == LILAC_SIMT_I1 && equality) {
        return (kind == LILAC_SIMT_EQ) == (c == 1) ? x : opposite(b, x);
    }
    if (is_constant) {
        int answer = decided(b, like, type, c);
        if (answer >= 0) {
            return truth(b, answer == 1);
        }
        /* x + d ? c → x ? c - d */
        const instruction *sum = lilac_simt_defined_by(b, x, LILAC_SIMT_OP_ADD);
        int64_t difference;
        if (sum != NULL && constant(b, sum->operands[1], &d)) {
            bool fits = !__builtin_sub_overflow(lilac_simt_signed(type, c),
                                                lilac_simt_signed(type, d), &difference) &&
                        difference == lilac_simt_signed(type, c - d);
            bool ordered = kind >= LILAC_SIMT_LT && kind <= LILAC_SIMT_GE &&
                           (sum->flags & LILAC_SIMT_NO_SIGNED_WRAP) && fits;
            if (equality || ordered) {
                like->operands[0] = sum->operands[0];
                like->operands[1] = lilac_simt_constant(b, type, c - d);
                *again = true;
                return 0;
            }
        }
    }
    int answer = is_constant || type == LILAC_SIMT_I1 ? -1 : decided_by_offsets(b, like, type);
    if (answer >= 0) {
        return truth(b, answer == 1);
    }
    lilac_simt_value narrow = compare_narrow(b, like, type);
    return narrow == 0 && equality ? compare_truths(b, like, type) : narrow;
}

/* Is a condition this one (1), its opposite (-1) or neither (0)? */
static int relation(const lilac_simt_builder *b, lilac_simt_value p, lilac_simt_value q) {
    uint64_t c;
    if (p == q) {
        return 1;
    }
    for (uint32_t side = 0; side < 2; side++) {
        const instruction *d = lilac_simt_defined_by(b, side ? q : p, LILAC_SIMT_OP_XOR);
        if (d != NULL && constant(b, d->operands[1], &c) && c == 1 &&
            d->operands[0] == (side ? p : q)) {
            return -1;
        }
    }
    const instruction *x = lilac_simt_defined_by(b, p, LILAC_SIMT_OP_CMP);
    const instruction *y = lilac_simt_defined_by(b, q, LILAC_SIMT_OP_CMP);
    if (x == NULL || y == NULL || x->operands[0] != y->operands[0] ||
        x->operands[1] != y->operands[1]) {
        return 0;
    }
    bool is_float = lilac_simt_type_is_float(type_of(b, x->operands[0]));
    lilac_simt_compare inverse =
        lilac_simt_compare_inverse((lilac_simt_compare)x->detail, is_float);
    return inverse == (lilac_simt_compare)y->detail ? -1 : 0;
}

/* What an arm of a selection gives where the condition is as that arm needs it: the arm of a
 * selection by the same condition, or by its opposite, within. */
static lilac_simt_value chosen(const lilac_simt_builder *b, lilac_simt_value condition,
                               lilac_simt_value arm, bool holds) {
    const instruction *inner = lilac_simt_defined_by(b, arm, LILAC_SIMT_OP_SELECT);
    int same = inner != NULL ? relation(b, condition, inner->operands[0]) : 0;
    return same == 0 ? arm : inner->operands[holds == (same > 0) ? 1 : 2];
}

/* select ((x ? y) xor q), x, y of integers, x ? y an order: the same whichever counts as larger
 * when they are equal. So the comparison takes one form, x > y with x the value made first, and the
 * two places of an exchange in a bitonic sort share it. True: changed. */
static bool order_exchange(lilac_simt_builder *b, instruction *like) {
    const instruction *condition = lilac_simt_defined_by(b, like->operands[0], LILAC_SIMT_OP_XOR);
    for (uint32_t side = 0; condition != NULL && side < 2; side++) {
        const instruction *order =
            lilac_simt_defined_by(b, condition->operands[side], LILAC_SIMT_OP_CMP);
        if (order == NULL || order->detail < LILAC_SIMT_LT || order->detail > LILAC_SIMT_UGE) {
            continue;
        }
        lilac_simt_value x = order->operands[0], y = order->operands[1];
        if (!(x == like->operands[1] && y == like->operands[2]) &&
            !(x == like->operands[2] && y == like->operands[1])) {
            continue;
        }
        lilac_simt_compare kind = (lilac_simt_compare)order->detail;
        lilac_simt_compare greater = kind < LILAC_SIMT_ULT ? LILAC_SIMT_GT : LILAC_SIMT_UGT;
        bool less = kind == LILAC_SIMT_LT || kind == LILAC_SIMT_LE || kind == LILAC_SIMT_ULT ||
                    kind == LILAC_SIMT_ULE;
        bool same = less == (x > y); /* does the old condition hold where the new one does? */
        lilac_simt_value made = lilac_simt_compare_values(b, greater, x < y ? x : y, x < y ? y : x);
        if (made == condition->operands[side]) {
            return false;
        }
        like->operands[0] =
            lilac_simt_op2(b, LILAC_SIMT_OP_XOR, LILAC_SIMT_I1, made, condition->operands[!side]);
        if (!same) {
            lilac_simt_value first = like->operands[1];
            like->operands[1] = like->operands[2];
            like->operands[2] = first;
        }
        return true;
    }
    return false;
}

static lilac_simt_value simplify_select(lilac_simt_builder *b, instruction *like,
                                        lilac_simt_type type, bool *again) {
    lilac_simt_value condition = like->operands[0];
    lilac_simt_value x = like->operands[1];
    lilac_simt_value y = like->operands[2];
    uint64_t c, d;
    if (constant(b, condition, &c)) {
        return c ? x : y;
    }
    if (x == y) {
        return x;
    }
    const instruction *negated = lilac_simt_defined_by(b, condition, LILAC_SIMT_OP_XOR);
    if (negated != NULL && constant(b, negated->operands[1], &c) && c == 1) {
        like->operands[0] = negated->operands[0];
        like->operands[1] = y;
        like->operands[2] = x;
        *again = true;
        return 0;
    }
    like->operands[1] = chosen(b, condition, x, true);
    like->operands[2] = chosen(b, condition, y, false);
    if (like->operands[1] != x || like->operands[2] != y) {
        *again = true;
        return 0;
    }
    if (type != LILAC_SIMT_I1) {
        *again = lilac_simt_type_is_integer(type) && order_exchange(b, like);
        return 0;
    }
    bool x_known = constant(b, x, &c);
    bool y_known = constant(b, y, &d);
    if (x_known && y_known) {
        return c == d ? x : c ? condition : opposite(b, condition); /* text may repeat a constant */
    }
    if (x_known) {
        return c ? lilac_simt_op2(b, LILAC_SIMT_OP_OR, type, condition, y)
                 : lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, opposite(b, condition), y);
    }
    if (y_known) {
        return d ? lilac_simt_op2(b, LILAC_SIMT_OP_OR, type, opposite(b, condition), x)
                 : lilac_simt_op2(b, LILAC_SIMT_OP_AND, type, condition, x);
    }
    return 0;
}

lilac_simt_value lilac_simt_simplify_other(lilac_simt_builder *b, instruction *like,
                                           lilac_simt_type type, bool *again) {
    switch (like->code) {
    case LILAC_SIMT_OP_CMP:
        return simplify_cmp(b, like, again);
    case LILAC_SIMT_OP_SELECT:
        return simplify_select(b, like, type, again);
    case LILAC_SIMT_OP_FADD:
    case LILAC_SIMT_OP_FSUB:
    case LILAC_SIMT_OP_FMUL:
    case LILAC_SIMT_OP_FDIV:
    case LILAC_SIMT_OP_FNEG:
    case LILAC_SIMT_OP_FABS:
        return lilac_simt_simplify_float(b, like, type, again);
    default:
        return 0;
    }
}
