/* New operations of tile IR, one call for each. Private to the engine. */
#ifndef LILAC_ENGINE_EMIT_H
#define LILAC_ENGINE_EMIT_H

#include "internal.h"

/* Where operations are inserted: before `place`, with its position and location. */
typedef struct lilac_emitter {
    lilac_tile_module *module;
    lilac_tile_op *place;
} lilac_emitter;

/* An operation with one result of the type; NULL: with none. Absent operands are NULL and last. */
lilac_tile_op *lilac_emit(const lilac_emitter *e, lilac_tile_opcode code,
                          const lilac_tile_type *type, uint32_t count,
                          lilac_tile_value *const *operands);
/* The result of an operation with one operand. */
lilac_tile_value *lilac_emit_unary(const lilac_emitter *e, lilac_tile_opcode code,
                                   const lilac_tile_type *type, lilac_tile_value *a);
/* The result of an operation with two operands, of the type of operand a. */
lilac_tile_value *lilac_emit_binary(const lilac_emitter *e, lilac_tile_opcode code,
                                    lilac_tile_value *a, lilac_tile_value *b);
/* arith.cmpi; `predicate`: "slt", "sge", … */
lilac_tile_value *lilac_emit_compare(const lilac_emitter *e, const char *predicate,
                                     lilac_tile_value *a, lilac_tile_value *b);
/* arith.select; a value that both operands are is the result. */
lilac_tile_value *lilac_emit_select(const lilac_emitter *e, lilac_tile_value *condition,
                                    lilac_tile_value *a, lilac_tile_value *b);
/* An integer, or a tensor of equal integers. */
lilac_tile_value *lilac_emit_integer(const lilac_emitter *e, const lilac_tile_type *type,
                                     int64_t value);
/* The sum; NULL stands for zero. */
lilac_tile_value *lilac_emit_sum(const lilac_emitter *e, lilac_tile_value *a, lilac_tile_value *b);
/* The integer or the tensor of integers as i64, sign-extended. */
lilac_tile_value *lilac_emit_i64(const lilac_emitter *e, lilac_tile_value *value);

/* An attribute of an operation: an integer of type i32, a keyword. */
void lilac_emit_attribute(const lilac_emitter *e, lilac_tile_op *op, const char *name,
                          int64_t value);
void lilac_emit_keyword(const lilac_emitter *e, lilac_tile_op *op, const char *name,
                        const char *word);

/* The tensor type with this shape and without a layout. */
const lilac_tile_type *lilac_emit_shaped(const lilac_emitter *e, const lilac_tile_type *element,
                                         const lilac_tile_type *shape);

#endif
