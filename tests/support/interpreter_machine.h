/* The interpreter's machine, for its own files.
 *
 * A frame holds the values of one call: an array of cells for each, its elements in row-major
 * order; a block pointer is its base, shape, strides and offsets; a tensor descriptor its base, shape,
 * strides and padding. An operation reads the arrays of
 * its operands and writes those of its results: one array for each value, also round a loop, as
 * what is defined once is read only until it is defined again. */
#ifndef LILAC_TESTS_INTERPRETER_MACHINE_H
#define LILAC_TESTS_INTERPRETER_MACHINE_H

#include "interpreter.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define OPEN ((interpreter_cell){0, INFINITY, 0})

enum { MOST_OPERANDS = 32 };

typedef struct frame {
    interpreter_cell **values; /* by value id */
    const lilac_tile_function *function;
} frame;

typedef struct machine {
    jmp_buf ended;
    interpreter_run *run;
    interpreter_status status;
    lilac_arena *arena;
    uint64_t fuel;
    uint32_t program[3];
    uint32_t depth;
    frame *frame;
} machine;

static inline _Noreturn void end(machine *m, interpreter_status status, const lilac_tile_op *op) {
    m->status = status;
    m->run->op = op;
    longjmp(m->ended, 1);
}

static inline uint64_t count_of(const lilac_tile_type *type) {
    if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_TENSOR) {
        return 1 + 3 * (uint64_t)type->element->rank; /* a block pointer */
    }
    if (type->kind == LILAC_TILE_DESCRIPTOR) {
        return 2 + 2 * (uint64_t)type->element->rank;
    }
    return (uint64_t)lilac_tile_element_count(type);
}

static inline void burn(machine *m, const lilac_tile_op *op, uint64_t amount) {
    if (m->fuel < amount) {
        end(m, INTERPRETER_TOO_LONG, op);
    }
    m->fuel -= amount;
}

static inline interpreter_cell *cells(machine *m, uint64_t count) {
    return lilac_arena_array(m->arena, interpreter_cell, count);
}

/* The array to write a value into. */
static inline interpreter_cell *target(machine *m, const lilac_tile_value *value) {
    interpreter_cell **place = &m->frame->values[value->id];
    if (*place == NULL) {
        *place = cells(m, count_of(value->type));
    }
    return *place;
}

static inline const interpreter_cell *read(machine *m, const lilac_tile_op *op, uint32_t i) {
    const interpreter_cell *from = m->frame->values[op->operands[i].value->id];
    if (from == NULL) {
        end(m, INTERPRETER_UNSUPPORTED, op);
    }
    return from;
}

/* Element e of an operand; scalars stand for every element. */
static inline interpreter_cell at(machine *m, const lilac_tile_op *op, uint32_t i, uint64_t e) {
    return read(m, op, i)[lilac_tile_is_tensor(op->operands[i].value->type) ? e : 0];
}

/* The exact value that a branch, an address or a mask needs. Ends the run if it is open. */
static inline uint64_t known(machine *m, const lilac_tile_op *op, interpreter_cell cell) {
    if (cell.error != 0) {
        end(m, INTERPRETER_UNDETERMINED, op);
    }
    return cell.bits;
}

static inline uint32_t bytes_of(const lilac_tile_type *element) {
    return (lilac_tile_element_bits(element) + 7) / 8;
}

static inline lilac_scalar kind_of(const lilac_tile_type *element) {
    return element->kind == LILAC_TILE_SCALAR ? element->scalar : LILAC_I64;
}

/* Each runs one operation: the column `reference` of operations.def. */
void interpreter_run_load(machine *m, const lilac_tile_op *op);
void interpreter_run_store(machine *m, const lilac_tile_op *op);
void interpreter_run_atomic(machine *m, const lilac_tile_op *op);
void interpreter_run_make_descriptor(machine *m, const lilac_tile_op *op);
void interpreter_run_descriptor_load(machine *m, const lilac_tile_op *op);
void interpreter_run_descriptor_store(machine *m, const lilac_tile_op *op);
void interpreter_run_descriptor_reduce(machine *m, const lilac_tile_op *op);
void interpreter_run_constant(machine *m, const lilac_tile_op *op);
void interpreter_run_range(machine *m, const lilac_tile_op *op);
void interpreter_run_poison(machine *m, const lilac_tile_op *op);
void interpreter_run_program_id(machine *m, const lilac_tile_op *op);
void interpreter_run_num_programs(machine *m, const lilac_tile_op *op);
void interpreter_run_splat(machine *m, const lilac_tile_op *op);
void interpreter_run_broadcast(machine *m, const lilac_tile_op *op);
void interpreter_run_reshape(machine *m, const lilac_tile_op *op);
void interpreter_run_sum_blocks(machine *m, const lilac_tile_op *op);
void interpreter_run_trans(machine *m, const lilac_tile_op *op);
void interpreter_run_join(machine *m, const lilac_tile_op *op);
void interpreter_run_split(machine *m, const lilac_tile_op *op);
void interpreter_run_cat(machine *m, const lilac_tile_op *op);
void interpreter_run_gather(machine *m, const lilac_tile_op *op);
void interpreter_run_histogram(machine *m, const lilac_tile_op *op);
void interpreter_run_fold(machine *m, const lilac_tile_op *op);
void interpreter_run_map(machine *m, const lilac_tile_op *op);
void interpreter_run_dot(machine *m, const lilac_tile_op *op);
void interpreter_run_dot_scaled(machine *m, const lilac_tile_op *op);
/* The buffer of an access and the offset in it. Ends the run outside of every buffer. */
interpreter_buffer *interpreter_find(machine *m, const lilac_tile_op *op, uint64_t address,
                                     uint32_t bytes, uint64_t *offset);
interpreter_cell interpreter_load(machine *m, const lilac_tile_op *op, uint64_t address,
                                  const lilac_tile_type *element);
void interpreter_store(machine *m, const lilac_tile_op *op, uint64_t address,
                       const lilac_tile_type *element, interpreter_cell cell);
/* One read-modify-write operation by its name in tt.atomic_rmw; `times`: of the operations at this
 * address, whose addends have the sum of magnitudes `mass`. */
interpreter_cell interpreter_combine(const char *kind, lilac_scalar s, interpreter_cell old,
                                     interpreter_cell by, double mass, uint32_t times);
/* Runs blocks until a terminator that leaves their region, and returns that. */
const lilac_tile_op *interpreter_run_blocks(machine *m, const lilac_tile_block *block);

#endif
