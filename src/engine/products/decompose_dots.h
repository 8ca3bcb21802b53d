/* What the files of the pass decompose_dots share: one call for each new operation, inserted before
 * `place` with its position and location. */
#ifndef LILAC_ENGINE_DECOMPOSE_DOTS_H
#define LILAC_ENGINE_DECOMPOSE_DOTS_H

#include "internal.h"

typedef struct dot_builder {
    lilac_tile_module *module;
    lilac_tile_op *place;
} dot_builder;

/* The type with other elements, and with another shape. No layout. */
const lilac_tile_type *lilac_dots_elements(const dot_builder *b, const lilac_tile_type *type,
                                           lilac_scalar scalar);
const lilac_tile_type *lilac_dots_shaped(const dot_builder *b, const lilac_tile_type *type,
                                         uint32_t rank, const int64_t *shape);
/* The result of an operation with one operand, two, or three; of two, its type is that of operand a. */
lilac_tile_value *lilac_dots_unary(const dot_builder *b, lilac_tile_opcode code,
                                   const lilac_tile_type *type, lilac_tile_value *x);
lilac_tile_value *lilac_dots_binary(const dot_builder *b, lilac_tile_opcode code,
                                    lilac_tile_value *x, lilac_tile_value *y);
lilac_tile_value *lilac_dots_ternary(const dot_builder *b, lilac_tile_opcode code,
                                     const lilac_tile_type *type,
                                     lilac_tile_value *const operands[3]);
/* arith.cmpi or arith.cmpf. */
lilac_tile_value *lilac_dots_compare(const dot_builder *b, lilac_tile_opcode code,
                                     const char *predicate, lilac_tile_value *x,
                                     lilac_tile_value *y);
/* A tensor of equal elements, which have these bits. */
lilac_tile_value *lilac_dots_constant(const dot_builder *b, const lilac_tile_type *type,
                                      int64_t bits);
/* A float tensor in another type of floats; itself if that is its type. */
lilac_tile_value *lilac_dots_convert(const dot_builder *b, lilac_tile_value *x, lilac_scalar to);

/* Attributes of the operation that computes a value. */
void lilac_dots_integer(const dot_builder *b, lilac_tile_value *value, const char *name,
                        int64_t integer);
void lilac_dots_text(const dot_builder *b, lilac_tile_value *value, lilac_tile_attribute_kind kind,
                     const char *name, const char *text);
void lilac_dots_integers(const dot_builder *b, lilac_tile_value *value, const char *name,
                         uint32_t count, const int64_t *integers);

/* decompose_scaled_dots.c: the tt.dot that equals a tt.dot_scaled. NULL, after a diagnostic: its
 * elements are of a type that is not supported. */
lilac_tile_value *lilac_dots_unscaled(const dot_builder *b, const lilac_tile_op *op);

#endif
