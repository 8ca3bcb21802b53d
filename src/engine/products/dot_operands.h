/* Matrix products in loops, and where their operands come from (dot_operands.c). */
#ifndef LILAC_ENGINE_DOT_OPERANDS_H
#define LILAC_ENGINE_DOT_OPERANDS_H

#include "internal.h"

/* Is it tt.dot or tt.dot_scaled? */
bool lilac_dot_is_product(const lilac_tile_op *op);
typedef bool lilac_dot_property(const lilac_tile_op *product);
/* Does the region contain a product that has the property? NULL: any product. */
bool lilac_dot_is_inside(lilac_tile_region *region, lilac_dot_property *property);
/* The innermost scf.for around the operation that contains such a product; NULL: none does. */
const lilac_tile_op *lilac_dot_loop(const lilac_tile_op *op, lilac_dot_property *property);
/* The scf.for at the top of the function that directly contains its products, if all of them are in
 * one; else NULL. */
lilac_tile_op *lilac_dot_only_loop(const lilac_tile_function *f);
/* tt.trans of a matrix. NULL: false. */
bool lilac_dot_is_transposition(const lilac_tile_op *op);
/* The matrix that the value is, but for transpositions. */
const lilac_tile_value *lilac_dot_before_transpositions(const lilac_tile_value *value);
/* Is the tensor in memory already, but for transpositions? */
bool lilac_dot_is_loaded(const lilac_tile_value *value);
/* Does each thread compute the result from its own elements of the operands? Conversions between layouts do not. */
bool lilac_dot_is_threads_own(const lilac_tile_op *op);
/* Is a factor of a product of the block computed from the value by such operations? */
bool lilac_dot_is_factor(const lilac_tile_value *value, const lilac_tile_block *block);
/* Are the elements of such a tensor contiguous in memory along dimension 0 or 1? */
bool lilac_dot_is_contiguous(const lilac_axis_analysis *axis, const lilac_tile_value *value,
                             uint32_t dim);
/* Is the value computed from the result of a product of the same or an enclosing block? */
bool lilac_dot_comes_from_product(const lilac_tile_value *value);
/* Is an operand computed from another product's result, or the result another one's operand? The sum
 * that a loop carries does not count (dot.c). */
bool lilac_dot_is_chained(const lilac_tile_op *op);
/* Removes fences for products that others make unnecessary (merge_fences.c). Did it remove any? */
bool lilac_dot_merge_fences(lilac_tile_region *region);
/* The layout of operand 0 or 1 in registers for a layout of the result; NULL: there is none (dot.c). */
const lilac_layout *lilac_dot_operand_layout(lilac_tile_module *module, const lilac_target *target,
                                             const lilac_tile_op *op, uint32_t operand,
                                             const lilac_layout *d);

#endif
