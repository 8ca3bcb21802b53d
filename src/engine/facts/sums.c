/* sums: sums of products of integer scalars.
 *
 *     128 · pid · stride + 64 · k          {128, {pid, stride}}, {64, {k}}
 *
 * A sum has one term for each product of values. The values of a product are in the order of their
 * ids, so that two products are of the same values if their arrays are equal. */
#include "facts/sums.h"

#include <lilac/tile_loops.h>

#include <string.h>

static bool same_values(const lilac_product *a, const lilac_product *b) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->values, b->values, a->count * sizeof *a->values) == 0);
}

const lilac_tile_value *lilac_launch_value(const lilac_tile_value *value, int64_t *divisor) {
    const lilac_tile_op *op = value->op;
    *divisor = 1;
    if (op != NULL && op->code == LILAC_TILE_OP_ARITH_DIVSI &&
        lilac_tile_constant(op->operands[1].value, divisor) && *divisor > 0 &&
        *divisor <= INT32_MAX) {
        value = op->operands[0].value;
    }
    return lilac_is_parameter(value) ? value : NULL;
}

bool lilac_product_multiply(lilac_product *result, const lilac_product *a, const lilac_product *b) {
    lilac_product p = {.wide = a->wide || b->wide};
    if (__builtin_mul_overflow(a->factor, b->factor, &p.factor) ||
        a->count + b->count > SUM_MOST_FACTORS) {
        return false;
    }
    if (p.factor == 0) {
        *result = p;
        return true;
    }
    for (uint32_t i = 0, k = 0; i < a->count || k < b->count;) {
        const bool first = k == b->count || (i < a->count && a->values[i]->id <= b->values[k]->id);
        p.values[p.count++] = first ? a->values[i++] : b->values[k++];
    }
    *result = p;
    return true;
}

bool lilac_product_divide(lilac_product *result, const lilac_product *a, const lilac_product *b) {
    lilac_product p = {.wide = a->wide};
    uint32_t used = 0;
    if (b->factor == 0 || a->factor % b->factor != 0) {
        return false;
    }
    p.factor = a->factor / b->factor;
    for (uint32_t i = 0; i < a->count; i++) {
        if (used < b->count && a->values[i] == b->values[used]) {
            used++;
        } else {
            p.values[p.count++] = a->values[i];
        }
    }
    *result = p;
    return used == b->count;
}

bool lilac_sum_add_product(lilac_sum *sum, const lilac_product *term) {
    if (lilac_product_is_zero(term)) {
        return true;
    }
    for (uint32_t i = 0; i < sum->count; i++) {
        lilac_product *own = &sum->terms[i];
        if (!same_values(own, term)) {
            continue;
        }
        if (__builtin_add_overflow(own->factor, term->factor, &own->factor)) {
            return false;
        }
        own->wide |= term->wide;
        if (lilac_product_is_zero(own)) {
            *own = sum->terms[--sum->count];
        }
        return true;
    }
    if (sum->count == SUM_MOST_TERMS) {
        return false;
    }
    sum->terms[sum->count++] = *term;
    return true;
}

bool lilac_sum_add_number(lilac_sum *sum, int64_t number) {
    const lilac_product term = lilac_product_number(number);
    return lilac_sum_add_product(sum, &term);
}

bool lilac_sum_add(lilac_sum *sum, const lilac_sum *other) {
    const lilac_sum copy = *other; /* may be the same */
    bool good = true;
    for (uint32_t i = 0; good && i < copy.count; i++) {
        good = lilac_sum_add_product(sum, &copy.terms[i]);
    }
    return good;
}

bool lilac_sum_scale(lilac_sum *sum, const lilac_product *factor) {
    lilac_sum result = {0};
    for (uint32_t i = 0; i < sum->count; i++) {
        lilac_product p;
        if (!lilac_product_multiply(&p, &sum->terms[i], factor) ||
            !lilac_sum_add_product(&result, &p)) {
            return false;
        }
    }
    *sum = result;
    return true;
}

bool lilac_sum_subtract(lilac_sum *sum, const lilac_sum *other) {
    const lilac_product minus = lilac_product_number(-1);
    lilac_sum negative = *other;
    return lilac_sum_scale(&negative, &minus) && lilac_sum_add(sum, &negative);
}

bool lilac_sum_equal(const lilac_sum *a, const lilac_sum *b) {
    lilac_sum difference = *a;
    return lilac_sum_subtract(&difference, b) && difference.count == 0;
}

bool lilac_sum_multiply(lilac_sum *a, const lilac_sum *b) {
    if (b->count == 1) {
        return lilac_sum_scale(a, &b->terms[0]);
    }
    if (a->count == 0 || b->count == 0) {
        a->count = 0;
        return true;
    }
    lilac_sum result = {0};
    for (uint32_t i = 0; i < b->count; i++) {
        lilac_sum part = *a;
        if (!lilac_sum_scale(&part, &b->terms[i]) || !lilac_sum_add(&result, &part)) {
            return false;
        }
    }
    *a = result;
    return true;
}

bool lilac_sum_is_invariant(const lilac_sum *sum, const lilac_tile_op *loop) {
    bool invariant = true;
    for (uint32_t i = 0; i < sum->count; i++) {
        for (uint32_t k = 0; k < sum->terms[i].count; k++) {
            invariant = invariant && !lilac_tile_is_inside(sum->terms[i].values[k], loop);
        }
    }
    return invariant;
}
