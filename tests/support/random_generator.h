/* What the files of the generator of random programs share.
 *
 *   random_programs.c              choices, control flow, the program around it all
 *   random_programs_operations.c   memory, arithmetic; the table of all operations
 *   random_programs_tensors.c      shapes, folds along an axis
 *   random_programs_values.c       what they are made of: values, types, indices, pointers
 *   random_programs_dots.c         programs with matrix products
 *
 * An operation's generator is true when it wrote one, false when there is nothing that fits. Values
 * are known by their names: %v12 is 12. */
#ifndef LILAC_TESTS_RANDOM_GENERATOR_H
#define LILAC_TESTS_RANDOM_GENERATOR_H

#include "random_programs.h"

#include <string.h>

enum { MOST_RANK = 4, MOST_VALUES = 400, INPUTS = 9, MOST_STORES = 8, MOST_PRODUCTS = 3 };

typedef struct shape {
    uint32_t rank;
    uint32_t size[MOST_RANK];
} shape;

typedef struct value {
    int name;
    lilac_scalar scalar;
    shape shape;
} value;

typedef struct generator {
    program *program;
    program_choices *choices;
    lilac_text *out;      /* where lines go: the kernel, or … */
    lilac_text functions; /* those it calls */
    uint64_t features;    /* a bit for each that may be used */
    int next;             /* name */
    uint32_t depth, count, stores, helpers;
    uint32_t most_elements;
    value values[MOST_VALUES]; /* `count` that an operand may be */
    shape usual[3];            /* that most tensors have */
    bool dots, scaled_dots;    /* blocks have matrix products … */
    uint32_t sizes[3], batch;  /* … of these sizes, in batches of this size */
    uint32_t product_count;
    value products[MOST_PRODUCTS]; /* of the function's own block, to be stored */
} generator;

/* What is known where a region begins is what is known behind it. */
typedef struct scope {
    uint32_t count;
    value values[MOST_VALUES];
} scope;

static const lilac_scalar inputs[INPUTS] = {LILAC_I8,  LILAC_I16, LILAC_I32,
                                            LILAC_I64, LILAC_F16, LILAC_BF16,
                                            LILAC_F32, LILAC_F64, LILAC_F8E5M2};
enum { INPUT_ELEMENTS = 1 << 12 };

/* Masks of scalars that a pick may give. */
#define BIT(scalar) (1U << (scalar))
#define INTEGERS    (BIT(LILAC_I8) | BIT(LILAC_I16) | BIT(LILAC_I32) | BIT(LILAC_I64))
#define FLOATS      (BIT(LILAC_F16) | BIT(LILAC_BF16) | BIT(LILAC_F32) | BIT(LILAC_F64))
#define ANYTHING    (INTEGERS | FLOATS | BIT(LILAC_I1))

static const shape scalar_shape = {0, {0}};

static inline uint32_t below(generator *g, uint32_t bound) {
    return program_below(g->choices, bound);
}

static inline uint32_t elements(const shape *s) {
    uint32_t n = 1;
    for (uint32_t d = 0; d < s->rank; d++) {
        n *= s->size[d];
    }
    return n;
}

static inline bool same_shape(const shape *a, const shape *b) {
    return a->rank == b->rank && memcmp(a->size, b->size, a->rank * sizeof *a->size) == 0;
}

/* ---- values and lines (random_programs_values.c) --------------------------------------------- */

void program_put(generator *g, const char *format, ...) LILAC_PRINTF(2, 3);
void program_put_type(generator *g, const shape *s, lilac_scalar scalar);
void program_put_types(generator *g, const value *v, uint32_t count);
void program_put_pointer_type(generator *g, const shape *s, lilac_scalar scalar);
/* Adds a value and returns its new name; or adds a value whose name is in use already. */
int program_add(generator *g, lilac_scalar scalar, const shape *s);
void program_add_named(generator *g, int name, lilac_scalar scalar, const shape *s);
/* The end of an operation's line: the type of its operands and result; the result is known then.
 * Where the result's type is another one: "FROM -> TO" or "FROM to TO"; and where it is spelled as
 * a function's: "(FROM, FROM) -> TO". */
int program_end(generator *g, lilac_scalar scalar, const shape *s);
int program_end_as(generator *g, const value *from, const char *to, lilac_scalar scalar,
                   const shape *s);
int program_end_function(generator *g, const value *from, uint32_t count, lilac_scalar scalar,
                         const shape *s);
/* A random value of one of these types and this shape, or NULL if there is none. Later values
 * are more likely. `s` NULL: any tensor. */
const value *program_pick(generator *g, uint32_t scalars, const shape *s);
const value *program_pick_same(generator *g, const value *like);
/* The same for a generator, which leaves off where there is none: any tensor, or more rarely a
 * scalar. */
bool program_take_tensor(generator *g, uint32_t scalars, value *taken);
bool program_take(generator *g, uint32_t scalars, value *taken);

shape program_random_shape(generator *g, uint32_t bits);
shape program_some_shape(generator *g);
int program_small_constant(generator *g, lilac_scalar scalar, const shape *s, int64_t number);
int program_binary(generator *g, const char *op, int a, int b, lilac_scalar scalar, const shape *s);
int program_cast(generator *g, const char *op, const value *a, const char *to, lilac_scalar scalar);
/* tt.NAME of one tensor, which moves its elements to another shape. */
int program_move(generator *g, const char *op, const value *v, const char *attributes,
                 const shape *to);
value program_expand(generator *g, const value *v, uint32_t axis);
int program_splat(generator *g, int from, lilac_scalar scalar, const shape *s);
/* 0 … n - 1 along dimension d, of the whole shape, in i32. */
int program_along(generator *g, const shape *s, uint32_t d);
/* The row-major index of every element times `scale`, in i32. */
int program_flat_index(generator *g, const shape *s, uint32_t scale);
int program_pointers(generator *g, int parameter, lilac_scalar scalar, const shape *s, int offset);
int program_compare_less(generator *g, int a, int b, const shape *s);
/* A mask, most often of the elements below a size that no vector divides. */
int program_some_mask(generator *g, const shape *s, int index);

/* ---- operations (random_programs_operations.c) ----------------------------------------------- */

/* Writes about `length` operations, chosen by their weights. */
void program_block(generator *g, uint32_t length);
void program_store_value(generator *g, const value *v, bool masked);
bool program_gen_load(generator *g);

/* ---- shapes and folds (random_programs_tensors.c) -------------------------------------------- */

bool program_gen_reshape(generator *g);
bool program_gen_trans(generator *g);
bool program_gen_expand(generator *g);
bool program_gen_join(generator *g);
bool program_gen_split(generator *g);
bool program_gen_reduce(generator *g);
bool program_gen_reduces(generator *g);
bool program_gen_reduce_pair(generator *g);
bool program_gen_scan(generator *g);
bool program_gen_scan_pair(generator *g);
bool program_gen_gather(generator *g);
bool program_gen_histogram(generator *g);
bool program_gen_cat(generator *g);

/* ---- control (random_programs.c) ------------------------------------------------------------- */

bool program_gen_if(generator *g);
bool program_gen_for(generator *g);
bool program_gen_while(generator *g);
bool program_gen_call(generator *g);
bool program_gen_map(generator *g);
void program_enter(generator *g, scope *outside);
void program_leave(generator *g, const scope *outside);
/* A generator of a program, and the program that it wrote. */
generator *program_open(program *p, program_choices *choices, uint64_t wanted);
void program_close(generator *g);

/* ---- matrix products (random_programs_dots.c) ------------------------------------------------ */

/* tt.dot or tt.dot_scaled, with operands of its own, perhaps in a loop that accumulates. */
bool program_gen_dot(generator *g);

#endif
