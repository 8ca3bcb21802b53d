/* A reference interpreter of tile IR: what a kernel means, by plain loops over whole tensors in
 * row-major order. It knows no layouts and shares nothing with the compiler but the IR and the
 * exact arithmetic of scalars, so that it can check what the compiler produced.
 *
 * Where the language leaves a result open, an element carries how much:
 *
 *   error = 0         the bits are what every right execution gives
 *   error > 0         a float: every right execution is within this of the bits' value
 *   error = INFINITY  anything is right (poison; what no order of execution determines)
 *
 * Sources of error, each with a bound that holds for every choice the compiler has:
 *
 *   sums       a reduction or scan whose region is one addf may associate in any way: n elements
 *              are within n ulp of the sum of their magnitudes; likewise products
 *   functions  exp, log, division and other approximate functions: a bound for each, in
 *              interpreter_elements.c
 *   products   mulf may be contracted into the addf, subf or negf that uses it: the product's
 *              rounding (`slack`) counts as an error there and nowhere else
 *   atomics    float sums at one address in any order; what is returned at an address that is
 *              touched more than once is open
 *
 * Errors go through all that follows; a comparison, a rounding to an integer or a bit pattern that
 * they leave undecided is anything. Other regions of floats that round and do not associate (a
 * Welford mean) have no rigorous bound: they are folded in two orders, and a multiple of the
 * difference and of n ulp of the largest number counts as the error.
 *
 * A branch, an address or a mask that is open ends the run as UNDETERMINED, and so does a tensor
 * descriptor whose base or strides are no multiples of 16 bytes: such a program is no test. Memory is
 * bytes, with the error of what was stored last beside them.
 */
#ifndef LILAC_TESTS_INTERPRETER_H
#define LILAC_TESTS_INTERPRETER_H

#include <lilac/tile.h>

/* One element of a value. Of a float, `bits` are of its scalar. */
typedef struct interpreter_cell {
    uint64_t bits;
    double error;
    double slack; /* further error where the value is added to another one */
} interpreter_cell;

typedef struct interpreter_buffer {
    uint64_t address;
    uint64_t size;
    uint8_t *bytes;
    /* Allocated by the interpreter, one for each byte: the error of the element that covers the
     * byte, valid at its first byte. */
    double *error;
    uint8_t *scalar;
    /* For the atomics of one operation: how many of them access this byte, and the sum of the
     * magnitudes that they add. */
    uint32_t *touched;
    double *mass;
} interpreter_buffer;

typedef enum interpreter_status {
    INTERPRETER_DONE,
    INTERPRETER_ASSERTED,     /* an assertion failed */
    INTERPRETER_OUT_OF_RANGE, /* an access outside every buffer */
    INTERPRETER_UNDETERMINED, /* a branch, an address or a mask that is open; a division by zero;
                                 a descriptor that is not aligned */
    INTERPRETER_TOO_LONG,     /* the limit on computed elements was reached */
    INTERPRETER_UNSUPPORTED   /* an operation that the interpreter does not implement */
} interpreter_status;

typedef struct interpreter_run {
    const lilac_tile_module *module; /* its first public function runs */
    const uint64_t *arguments; /* bits of each parameter; of a descriptor its base, shape, strides
                                  and padding */
    uint32_t argument_count;
    uint32_t grid[3];
    interpreter_buffer *buffers;
    uint32_t buffer_count;
    uint64_t fuel; /* elements computed, at most; 0: 2^26 */
    /* the outcome */
    uint64_t prints;         /* operands of tt.print seen */
    const lilac_tile_op *op; /* where it ended, when it is not DONE */
} interpreter_run;

/* Runs all programs of the grid, one after another, x fastest. */
interpreter_status interpreter_execute(interpreter_run *run);
void interpreter_buffer_clear(interpreter_buffer *buffer);
const char *interpreter_status_name(interpreter_status status);

/* The result of a comparison of the interpreter's memory with a device's memory. */
typedef struct interpreter_comparison {
    uint64_t exact, within, open; /* elements (bytes where they are exact) */
    bool same;
    uint64_t at; /* the first byte that differs, and both values */
    double got, want, error;
    double worst; /* the largest distance of any element, in units of its error */
} interpreter_comparison;

interpreter_comparison interpreter_compare(const interpreter_buffer *want, const uint8_t *got);

/* ---- for interpreter_elements.c and interpreter_integers.c ------------------------------- */

/* The error that a rounding to this float may make at this magnitude: a whole ulp. */
double interpreter_ulp(lilac_scalar scalar, double value);
/* One element of an operation that computes each element by itself. */
typedef struct interpreter_element {
    const lilac_tile_op *op;
    const lilac_tile_type *from, *to; /* element types of operand 0 and result 0 */
    const interpreter_cell *in;       /* a cell for each operand */
    interpreter_cell out[2];          /* the results */
    bool trap;                        /* undefined for these operands: a division by zero */
    bool unsupported;                 /* the interpreter does not implement the operation */
} interpreter_element;
typedef void interpreter_meaning(interpreter_element *e);
/* By the column `meaning` of operations.def. */
void interpreter_compute(interpreter_element *e);
void interpreter_select(interpreter_element *e);
void interpreter_pointer_sum(interpreter_element *e);
void interpreter_library_function(interpreter_element *e);
/* NULL: no operation on integers. */
interpreter_meaning *interpreter_integer_meaning(lilac_tile_opcode code);
/* a + b as numbers of this float, rounded once. */
interpreter_cell interpreter_add(lilac_scalar scalar, interpreter_cell a, interpreter_cell b);

#endif
