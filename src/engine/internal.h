/* The declarations that the files of the engine share; private to the component. */
#ifndef LILAC_ENGINE_INTERNAL_H
#define LILAC_ENGINE_INTERNAL_H

#include <lilac/bits.h>
#include <lilac/engine.h>
#include <lilac/operation_classes.h>

#define MAX_DIVISIBILITY (INT64_C(1) << 62)

/* The largest power of two that divides a number; MAX_DIVISIBILITY for 0. */
static inline int64_t power_of_two_in(int64_t value) {
    uint64_t bits = (uint64_t)value, low = bits & (~bits + 1);
    return bits == 0 || low > (uint64_t)MAX_DIVISIBILITY ? MAX_DIVISIBILITY : (int64_t)low;
}

/* ---- fold.c ----------------------------------------------------------------------------- */

/* The signed value of an integer operation on signed constant operands. False: the operation is not
 * folded, or its value is undefined (division by zero, a shift by at least the width). */
bool lilac_engine_fold(const lilac_tile_op *op, const int64_t *operands, int64_t *result);

/* ---- narrow_divisions.c ------------------------------------------------------------------ */

/* Replaces a division of 64 bits by one of 32 bits and an extension, if its operands allow it.
 * `made`: the operations that replace it, in order. False: the operation is not changed. */
bool lilac_engine_narrow(lilac_tile_module *module, lilac_tile_op *op, lilac_tile_op *made[4],
                         uint32_t *count);

/* ---- axis_arith.c ----------------------------------------------------------------------- */

/* Sets contiguity, divisibility and constancy to 1 in every dimension of a rank. */
void lilac_axis_unknown(lilac_axis_facts *facts, uint32_t rank);
/* The divisibility of the first element of every aligned block of `block` elements along a
 * dimension. `block` is at most the contiguity, unless larger blocks are constant. `unit`: the
 * difference of neighbouring elements: 1, or the bytes of a pointee. */
int64_t lilac_axis_start(const lilac_axis_facts *facts, uint32_t dim, int64_t block, int64_t unit);
/* The bytes of the pointee of a pointer or of a pointer tensor's elements, at least 1; 1 for other
 * types. */
int64_t lilac_axis_unit(const lilac_tile_type *type);
/* The facts that hold for both of two values. `unit` as in lilac_axis_start. */
void lilac_axis_join(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                     int64_t unit);
/* One result of an operation and the facts of the operands. */
typedef struct lilac_axis_operation {
    const lilac_tile_op *op;
    const lilac_axis_facts *const *operands;
    const lilac_axis_facts *a, *b; /* operands 0 and 1; NULL: missing */
    const lilac_tile_type *type;   /* of the result */
    int64_t unit;                  /* lilac_axis_unit(type) */
} lilac_axis_operation;
lilac_axis_operation lilac_axis_operation_of(const lilac_tile_op *op, uint32_t index,
                                             const lilac_axis_facts *const *operands);
/* Is each element of the result a function of the operands' elements at the same coordinates? Not so
 * of volatile loads: two of them may find different values in one place. */
bool lilac_axis_is_function(const lilac_tile_op *op);
/* The facts of result `index` of an operation without regions, from those of its operands. */
void lilac_axis_transfer(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                         const lilac_axis_facts *const *operands);

/* ---- axis_periods.c --------------------------------------------------------------------- */

/* Sets the periods of a result, whose other facts but the strides are known. */
void lilac_axis_periods(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                        const lilac_axis_facts *const *operands);

/* ---- axis_strides.c --------------------------------------------------------------------- */

/* Adds the strides and the origin to the other facts of a result. */
void lilac_axis_strides(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                        const lilac_axis_facts *const *operands);
/* The strides and the origin that hold for both of two values. */
void lilac_axis_join_strides(lilac_axis_facts *result, const lilac_axis_facts *a,
                             const lilac_axis_facts *b);

#endif
