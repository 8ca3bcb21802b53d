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

/* ---- costs.c ---------------------------------------------------------------------------- */

/* Is the operation so expensive that its result is converted rather than computed twice? */
bool lilac_engine_is_expensive(lilac_tile_opcode code);
/* The estimated number of simple instructions that compute one element of the result. Special
 * functions have a fraction of the throughput; a division of integers is a sequence. */
int64_t lilac_engine_issues(const lilac_tile_op *op);

/* ---- access.c --------------------------------------------------------------------------- */

/* The argument of a function that a pointer is computed from; NULL: unknown. */
const lilac_tile_value *lilac_engine_pointer_root(const lilac_tile_value *pointer);
/* Does the kernel write no memory of these parameters, a set of indices below 64? */
bool lilac_engine_is_only_read(const lilac_tile_function *function, uint64_t parameters);

/* ---- fold.c ----------------------------------------------------------------------------- */

/* The signed value of an integer operation on signed constant operands. False: the operation is not
 * folded, or its value is undefined (division by zero, a shift by at least the width). */
bool lilac_engine_fold(const lilac_tile_op *op, const int64_t *operands, int64_t *result);
/* The same for an operation whose operands are constants of the module, each of equal elements. */
bool lilac_engine_fold_constant(const lilac_tile_op *op, int64_t *result);
/* A new constant before `place`, with its position: an integer, or a tensor of equal integers. */
lilac_tile_op *lilac_engine_make_constant(lilac_tile_module *module, lilac_tile_op *place,
                                          const lilac_tile_type *type, int64_t value);

/* What one operation of the pass simplify becomes. */
enum { LILAC_MOST_NEW_OPERATIONS = 32 };

/* ---- narrow_divisions.c ------------------------------------------------------------------ */

/* Replaces a division of 64 bits by one of 32 bits and an extension, if the ranges of its operands
 * (by value id) allow it. `made`: the operations that replace it, in order. False: the operation is
 * not changed. */
bool lilac_engine_narrow(lilac_tile_module *module, lilac_tile_op *op, const lilac_range *ranges,
                         lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS], uint32_t *count);
/* The type with elements of 32 bits in place of 64. */
const lilac_tile_type *lilac_engine_narrowed(lilac_tile_module *module,
                                             const lilac_tile_type *type);

/* ---- simplify_comparisons.c --------------------------------------------------------------- */

/* Gives a comparison operands without a common term, or of 32 bits, and a conjunction of comparisons those that the
 * others do not imply. `made`: the new operations, in order. False: the operation is not changed. */
bool lilac_engine_simplify_comparison(lilac_tile_module *module, lilac_tile_op *op,
                                      const lilac_range *ranges,
                                      lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS],
                                      uint32_t *count);

/* ---- range_arith.c ----------------------------------------------------------------------- */

/* The width of the integers of a value of this type, in which they have ranges; 0: it has none. */
uint32_t lilac_range_bits(const lilac_tile_type *type);
/* The range of all integers of `bits` bits; 0: not an integer, every range includes its values. */
lilac_range lilac_range_of_bits(uint32_t bits);
/* Sets the ranges of the results of an operation without regions from those of its operands. Ranges
 * are in an array by value id. */
void lilac_range_note(lilac_range *ranges, const lilac_tile_op *op);

/* ---- ranges.c ---------------------------------------------------------------------------- */

/* Ranges where a walk in program order is. Conditions narrow them up to the end of a block. */
typedef struct lilac_range_change {
    uint32_t id;
    lilac_range before;
} lilac_range_change;
typedef struct lilac_range_walk {
    lilac_range *ranges;         /* by value id */
    lilac_range_change *changes; /* what conditions narrowed, to be taken back */
    uint32_t change_count, change_capacity;
    uint32_t round;
    bool sweeping, changed; /* ranges of carried values are not final */
} lilac_range_walk;
/* Finds the ranges of the values of a numbered function. The array may be longer; a walk may
 * number more values and note their operations. */
void lilac_range_walk_start(lilac_range_walk *walk, lilac_range *ranges,
                            const lilac_tile_function *function);
void lilac_range_walk_end(lilac_range_walk *walk);
/* Before the operations of a block, and after them with what the first call returned; owner: the
 * operation that has the block, NULL for that of the function. */
uint32_t lilac_range_enter(lilac_range_walk *walk, const lilac_tile_op *owner,
                           const lilac_tile_block *block);
void lilac_range_close(lilac_range_walk *walk, const lilac_tile_op *owner,
                       const lilac_tile_block *block, uint32_t mark);
/* After the regions of an operation. */
void lilac_range_leave(lilac_range_walk *walk, const lilac_tile_op *op);
/* After an operation that may be an assertion or assumption. */
void lilac_range_pass(lilac_range_walk *walk, const lilac_tile_op *op);
/* The operation is moved out of the block that was entered with this mark: after that block,
 * nothing is known of its results if conditions narrow ranges in it. */
void lilac_range_expose(lilac_range_walk *walk, const lilac_tile_op *op, uint32_t mark);
/* The value is at least `low` from here to the end of the block. */
void lilac_range_at_least(lilac_range_walk *walk, const lilac_tile_value *value, int64_t low);

/* ---- programs.c -------------------------------------------------------------------------- */

/* Is a scalar a sum or product with the number of the program, or carried by a loop that begins
 * with one? */
bool lilac_engine_is_of_program(const lilac_tile_value *value);
/* Is the operation in a loop over the work of several programs, which begins at the number of
 * the program? Such a kernel has as many programs as run at a time. */
bool lilac_engine_is_persistent(const lilac_tile_op *op);

/* ---- assert_divisors.c ------------------------------------------------------------------- */

/* Where lilac_engine_assert_positive inserts its test: before the operation, or before the innermost
 * loop around it if the operand is not defined there. */
lilac_tile_op *lilac_engine_place_of_test(lilac_tile_op *op, uint32_t operand);
/* Inserts a test that the integer operand is positive wherever the operation is executed; the kernel
 * traps otherwise. */
void lilac_engine_assert_positive(lilac_tile_module *module, lilac_tile_op *op, uint32_t operand);

/* ---- apply_ranges.c ---------------------------------------------------------------------- */

/* What the ranges of its operands show about an operation. It may become unsigned in place. */
typedef struct lilac_range_result {
    lilac_tile_value *same; /* a value that equals its result; NULL: none is known */
    bool constant;          /* every element of its result is `value` */
    int64_t value;
    bool changed; /* the operation was changed */
} lilac_range_result;
lilac_range_result lilac_engine_apply_ranges(lilac_tile_op *op, const lilac_range *ranges);

/* ---- recognise_extremes.c ------------------------------------------------------------------ */

/* Makes a sum or product that is a minimum or maximum one, in place. */
bool lilac_engine_recognise_extreme(lilac_tile_op *op);

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
/* Is each element of the result a function of the operands' elements at the same coordinates?
 * Not so of volatile loads: two of them may find different values in one place. */
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

/* Does the reduction (tt.reduce with layouts) combine elements of several warps? (collective.c) */
bool lilac_engine_crosses_warps(const lilac_tile_op *reduce);

/* Sets an attribute of type i32. (fold.c) */
void lilac_engine_set_integer(lilac_tile_module *module, lilac_tile_op *op, const char *name,
                              int64_t value);

/* May delay_products delay the product? (delay_products.c) */
bool lilac_engine_can_delay(const lilac_tile_op *loop, const lilac_tile_op *op);

#endif
