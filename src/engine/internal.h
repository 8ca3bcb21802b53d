/* What the files of the engine share and nobody else sees. */
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

/* The signed value of an integer operation on signed constants, at the width of `scalar` (of the
 * operands for comparisons and conversions). False: no integer operation, or undefined (division
 * by zero, a shift past the width). `a`, `b`, `c` are operands; unused ones are ignored. */
bool lilac_engine_fold(const lilac_tile_op *op, const int64_t *operands, int64_t *result);

/* ---- narrow.c --------------------------------------------------------------------------- */

/* A division of 64 bits becomes one of 32 and an extension where its operands allow; the operation
 * is gone then, and `made` are those that stand for it, in order. False: it stays. */
bool lilac_engine_narrow(lilac_tile_module *module, lilac_tile_op *op, lilac_tile_op *made[4],
                         uint32_t *count);

/* ---- axis_arith.c ----------------------------------------------------------------------- */

/* All ones, of a rank. */
void lilac_axis_unknown(lilac_axis_facts *facts, uint32_t rank);
/* Along one dimension: what divides the first of every aligned block of `block` neighbours (not
 * above the contiguity unless constancy makes larger blocks start alike). `unit` is what neighbours
 * differ by: 1, or the bytes of a pointee. */
int64_t lilac_axis_start(const lilac_axis_facts *facts, uint32_t dim, int64_t block, int64_t unit);
/* Bytes of a pointer's pointee (of a pointer tensor's element's), at least 1; 1 for others. */
int64_t lilac_axis_unit(const lilac_tile_type *type);
/* What holds of a value that is one or the other. `unit` as in lilac_axis_start. */
void lilac_axis_join(lilac_axis_facts *result, const lilac_axis_facts *a, const lilac_axis_facts *b,
                     int64_t unit);
/* A result of an operation, and the facts of its operands. */
typedef struct lilac_axis_operation {
    const lilac_tile_op *op;
    const lilac_axis_facts *const *operands;
    const lilac_axis_facts *a, *b; /* operands 0 and 1; NULL: missing */
    const lilac_tile_type *type;   /* of the result */
    int64_t unit;                  /* lilac_axis_unit of it */
} lilac_axis_operation;
lilac_axis_operation lilac_axis_operation_of(const lilac_tile_op *op, uint32_t index,
                                             const lilac_axis_facts *const *operands);
/* The facts of result `index` of a straight-line operation from its operands'. */
void lilac_axis_transfer(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                         const lilac_axis_facts *const *operands);

/* ---- axis_strides.c --------------------------------------------------------------------- */

/* Strides and origin of the result, whose other facts are there. */
void lilac_axis_strides(lilac_axis_facts *result, const lilac_tile_op *op, uint32_t index,
                        const lilac_axis_facts *const *operands);
/* Of a value that is one or the other. */
void lilac_axis_join_strides(lilac_axis_facts *result, const lilac_axis_facts *a,
                             const lilac_axis_facts *b);

#endif
