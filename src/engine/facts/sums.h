/* Sums of products of integer scalars of tile IR (sums.c). Private to the engine. */
#ifndef LILAC_ENGINE_SUMS_H
#define LILAC_ENGINE_SUMS_H

#include "internal.h"

enum { SUM_MOST_FACTORS = 4, SUM_MOST_TERMS = 8 };

/* factor · values[0] · values[1] · …, the values in the order of their ids; zero has no values.
 * Of values of 32 bits it may exceed 32 bits if it is `wide`: multiplied in 64 bits, or added up
 * by a loop. */
typedef struct lilac_product {
    int64_t factor;
    bool wide;
    uint32_t count;
    lilac_tile_value *values[SUM_MOST_FACTORS];
} lilac_product;

/* A sum of products, each not zero and each of different values. */
typedef struct lilac_sum {
    uint32_t count;
    lilac_product terms[SUM_MOST_TERMS];
} lilac_sum;

static inline lilac_product lilac_product_number(int64_t factor) {
    return (lilac_product){.factor = factor};
}

static inline bool lilac_product_is_zero(const lilac_product *p) {
    return p->factor == 0;
}

/* Is the value a parameter of the function? */
static inline bool lilac_is_parameter(const lilac_tile_value *value) {
    return value->op == NULL && value->block->parent->parent == NULL;
}

/* The parameter that the value is; or the parameter that a positive number divides to give the value, rounded
 * towards zero. NULL: it is neither. Sets the divisor; 1: it is the parameter. */
const lilac_tile_value *lilac_launch_value(const lilac_tile_value *value, int64_t *divisor);

/* The functions below return false, with an unspecified result, if a factor is beyond 64 bits or
 * there are too many values or terms. */

bool lilac_product_multiply(lilac_product *result, const lilac_product *a, const lilac_product *b);
/* a / b; false also where it is no product. */
bool lilac_product_divide(lilac_product *result, const lilac_product *a, const lilac_product *b);

bool lilac_sum_add_product(lilac_sum *sum, const lilac_product *term);
bool lilac_sum_add_number(lilac_sum *sum, int64_t number);
bool lilac_sum_add(lilac_sum *sum, const lilac_sum *other);
bool lilac_sum_subtract(lilac_sum *sum, const lilac_sum *other);
bool lilac_sum_scale(lilac_sum *sum, const lilac_product *factor);
bool lilac_sum_multiply(lilac_sum *sum, const lilac_sum *factor);

bool lilac_sum_equal(const lilac_sum *a, const lilac_sum *b);
/* Are all values of the sum defined outside of the loop? */
bool lilac_sum_is_invariant(const lilac_sum *sum, const lilac_tile_op *loop);

#endif
