/* Where the operands of matrix products come from (dot_operands.c). */
#ifndef LILAC_ENGINE_DOT_OPERANDS_H
#define LILAC_ENGINE_DOT_OPERANDS_H

#include "internal.h"

/* Does a function multiply matrices? */
bool lilac_dot_is_used(const lilac_tile_function *function);
/* tt.trans of a matrix. NULL: false. */
bool lilac_dot_is_transposition(const lilac_tile_op *op);
/* Is the tensor in memory already, but for transpositions? */
bool lilac_dot_is_loaded(const lilac_tile_value *value);
/* Are the elements of such a tensor contiguous in memory along dimension 0 or 1? */
bool lilac_dot_is_contiguous(const lilac_axis_analysis *axis, const lilac_tile_value *value,
                             uint32_t dim);

#endif
