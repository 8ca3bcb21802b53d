/* Stores of a descriptor's blocks as tensor copies (store_boxes.c). Private to the engine. */
#ifndef LILAC_ENGINE_STORE_BOXES_H
#define LILAC_ENGINE_STORE_BOXES_H

#include "internal.h"

/* Replaces tt.descriptor_store and tt.descriptor_reduce operations, in the order of the program, by tensor
 * copies. After the rings of pipelined loops are allocated. */
void lilac_store_boxes(lilac_tile_function *function, lilac_tile_op *const *stores, uint32_t count,
                       const lilac_target *target);

#endif
