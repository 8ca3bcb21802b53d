/* The functions that lower tile operations: the column `lower` of src/tile/operations.def. A
 * function returns false after it has recorded a diagnostic. */
#ifndef LILAC_LOWER_OPERATIONS_H
#define LILAC_LOWER_OPERATIONS_H

#include "lower_internal.h"

/* arithmetic.c: by the row INTEGER of the operation; sums and products keep constant
 * offsets separate */
bool lilac_lower_integer_op(lilac_lowering *l, const lilac_tile_op *op);
/* program_order.c: the number of a program along an axis where the programs of the kernel have another order
 * (LILAC_PROGRAM_ORDER) */
lilac_simt_value lilac_lower_ordered_program(lilac_lowering *l, int64_t order, uint32_t axis);
/* An unsigned division or remainder whose dividend has offsets: registers share divisions
 * (divisions.c). *lowered false: the rules do not apply, and nothing was built. */
bool lilac_lower_shared_division(lilac_lowering *l, const lilac_tile_op *op, bool remainder,
                                 bool *lowered);
bool lilac_lower_integer_sum(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_integer_product(lilac_lowering *l, const lilac_tile_op *op);
/* floats.c: by the row FLOAT */
bool lilac_lower_float_op(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_float_magnitude(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_choice(lilac_lowering *l, const lilac_tile_op *op);
/* rescale.c: a product of f32 whose operand `factor` is 1 in most iterations */
bool lilac_lower_rescale(lilac_lowering *l, const lilac_tile_op *op, uint32_t factor);
/* numeric_casts.c: by the row CAST */
bool lilac_lower_resize(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_bitcast(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_float_cast(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_integer_to_float(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_float_to_integer(lilac_lowering *l, const lilac_tile_op *op);
/* fp4.c */
bool lilac_lower_fp4_to_fp(lilac_lowering *l, const lilac_tile_op *op);
/* math/math.c: by the row MATH */
bool lilac_lower_math(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_float_remainder(lilac_lowering *l, const lilac_tile_op *op);
/* math/libdevice.c */
bool lilac_lower_extern(lilac_lowering *l, const lilac_tile_op *op);
/* constants.c */
bool lilac_lower_arith_constant(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_poison(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_make_range(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_program_id(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_num_programs(lilac_lowering *l, const lilac_tile_op *op);
/* shape.c */
bool lilac_lower_splat(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_unsplat(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_expand_dims(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_trans(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_reshape(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_same_dimensions(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_join(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_split(lilac_lowering *l, const lilac_tile_op *op);
/* cat.c */
bool lilac_lower_cat(lilac_lowering *l, const lilac_tile_op *op);
/* memory/load_store.c */
bool lilac_lower_pointer(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_load(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_store(lilac_lowering *l, const lilac_tile_op *op);
/* memory/atomics.c */
bool lilac_lower_atomic(lilac_lowering *l, const lilac_tile_op *op);
/* memory/shared_memory.c */
bool lilac_lower_shared_memory(lilac_lowering *l, const lilac_tile_op *op);
/* memory/async_copy.c */
bool lilac_lower_async_copy(lilac_lowering *l, const lilac_tile_op *op);
/* memory/tensor_copy.c */
bool lilac_lower_mbarrier(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_tensor_copy(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_tensor_store_wait(lilac_lowering *l, const lilac_tile_op *op);
/* memory/tensor_map.c */
bool lilac_lower_tensor_map(lilac_lowering *l, const lilac_tile_op *op);
/* collective/ */
bool lilac_lower_reduce(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_scan(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_gather(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_histogram(lilac_lowering *l, const lilac_tile_op *op);
/* matrix/dot.c */
bool lilac_lower_dot_product(lilac_lowering *l, const lilac_tile_op *op);
/* matrix/warp_group_dot.c */
bool lilac_lower_warp_group_dot(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_warp_group_dot_wait(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_fence_async_shared(lilac_lowering *l, const lilac_tile_op *op);
/* control.c */
bool lilac_lower_control(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_warp_specialize(lilac_lowering *l, const lilac_tile_op *op);
/* map_elementwise.c */
bool lilac_lower_map_elementwise(lilac_lowering *l, const lilac_tile_op *op);
/* assembly/inline_asm.c */
bool lilac_lower_inline_asm(lilac_lowering *l, const lilac_tile_op *op);
/* memory/sum_blocks.c */
bool lilac_lower_sum_blocks(lilac_lowering *l, const lilac_tile_op *op);
/* print.c */
bool lilac_lower_print(lilac_lowering *l, const lilac_tile_op *op);

/* Assigns a place in shared memory to each local_alloc of the function; scratch memory begins above
 * them (memory/place_buffers.c). */
bool lilac_lower_place_memory(lilac_lowering *l);
/* Scratch memory of the operation that is being lowered begins behind the allocations that are live
 * then. Those that have ended, or have not begun, may share its bytes. */
void lilac_lower_place_scratch(lilac_lowering *l);
/* Finds the operations whose regions compute scalars only (scalars.c). */
void lilac_lower_find_scalars(lilac_lowering *l);

#endif
