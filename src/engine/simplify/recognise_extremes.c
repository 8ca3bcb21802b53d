/* recognise_extremes: a step of the pass simplify. Minima and maxima written with products of
 * comparisons, as torch.compile prints Min and Max of index expressions:
 *
 *     a * (a <= b) + b * (b < a)    →    min(a, b)
 *     a * (a > 0)                   →    max(a, 0)
 *
 * A comparison is 0 or 1 here (extui of an i1). Where a equals b, both forms have this value. */
#include "internal.h"

#include <string.h>

typedef struct term {
    lilac_tile_value *factor;     /* multiplied by the comparison */
    const lilac_tile_op *compare; /* NULL: another term */
} term;

static term term_of(const lilac_tile_value *value) {
    const lilac_tile_op *product = value->op;
    for (uint32_t k = 0; product != NULL && product->code == LILAC_TILE_OP_ARITH_MULI && k < 2;
         k++) {
        const lilac_tile_op *truth = product->operands[k].value->op;
        const lilac_tile_op *compare = truth != NULL && truth->code == LILAC_TILE_OP_ARITH_EXTUI
                                           ? truth->operands[0].value->op
                                           : NULL;
        if (compare != NULL && compare->code == LILAC_TILE_OP_ARITH_CMPI) {
            return (term){product->operands[1 - k].value, compare};
        }
    }
    return (term){NULL, NULL};
}

/* An order: 'l' (a < b or a <= b) or 'g', of signed or unsigned numbers. */
typedef struct order {
    char relation;
    bool equal, is_unsigned;
} order;

/* The comparison of a with b that `compare` makes. False: it makes another one. */
static bool order_of(const lilac_tile_op *compare, const lilac_tile_value *a,
                     const lilac_tile_value *b, order *found) {
    lilac_name predicate = lilac_tile_find_text(&compare->attributes, "predicate");
    if (predicate == NULL || strlen(predicate) != 3) {
        return false;
    }
    bool swapped = compare->operands[0].value == b && compare->operands[1].value == a;
    if (!swapped && (compare->operands[0].value != a || compare->operands[1].value != b)) {
        return false;
    }
    char other = predicate[1] == 'l' ? 'g' : 'l';
    *found = (order){swapped ? other : predicate[1], predicate[2] == 'e', predicate[0] == 'u'};
    return true;
}

static void become(lilac_tile_op *op, const order *by, lilac_tile_value *a, lilac_tile_value *b) {
    static const lilac_tile_opcode codes[2][2] = {
        {LILAC_TILE_OP_ARITH_MAXSI, LILAC_TILE_OP_ARITH_MAXUI},
        {LILAC_TILE_OP_ARITH_MINSI, LILAC_TILE_OP_ARITH_MINUI},
    };
    /* a where it is less: the smaller one */
    op->code = codes[by->relation == 'l'][by->is_unsigned];
    op->attributes.count = 0; /* overflow flags */
    lilac_tile_set_operand(op, 0, a);
    lilac_tile_set_operand(op, 1, b);
}

/* a * (a ? b) + b * (b ? a), where exactly one of the comparisons holds or a equals b. */
static bool is_sum_of_choices(const lilac_tile_op *sum, order *found) {
    const term x = term_of(sum->operands[0].value), y = term_of(sum->operands[1].value);
    order second;
    return x.compare != NULL && y.compare != NULL &&
           order_of(x.compare, x.factor, y.factor, found) &&
           order_of(y.compare, y.factor, x.factor, &second) && second.relation == found->relation &&
           second.equal != found->equal && second.is_unsigned == found->is_unsigned;
}

bool lilac_engine_recognise_extreme(lilac_tile_op *op) {
    order found;
    if (op->code == LILAC_TILE_OP_ARITH_ADDI && is_sum_of_choices(op, &found)) {
        become(op, &found, term_of(op->operands[0].value).factor,
               term_of(op->operands[1].value).factor);
        return true;
    }
    if (op->code != LILAC_TILE_OP_ARITH_MULI) {
        return false;
    }
    const term product = term_of(&op->results[0]);
    int64_t zero;
    for (uint32_t k = 0; product.compare != NULL && k < 2; k++) {
        lilac_tile_value *bound = product.compare->operands[k].value;
        if (lilac_tile_constant(bound, &zero) && zero == 0 &&
            order_of(product.compare, product.factor, bound, &found) && !found.is_unsigned) {
            become(op, &found, product.factor, bound);
            return true;
        }
    }
    return false;
}
