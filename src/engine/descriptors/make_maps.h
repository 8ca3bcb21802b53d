/* Tensor maps that the kernel makes (make_maps.c). Private to the engine. */
#ifndef LILAC_ENGINE_MAKE_MAPS_H
#define LILAC_ENGINE_MAKE_MAPS_H

#include "internal.h"

/* Replaces a tt.make_tensor_descriptor whose result tensor copies use by a map in global scratch memory. */
void lilac_make_map(lilac_tile_module *module, lilac_tile_op *maker);

#endif
