/* Tensor maps that a launcher makes, as attributes of a function (write_launch_maps.c). Private to
 * the engine. */
#ifndef LILAC_ENGINE_WRITE_LAUNCH_MAPS_H
#define LILAC_ENGINE_WRITE_LAUNCH_MAPS_H

#include "strided_tile.h"

/* Does the form have enough terms and factors for the tile's tensor? */
bool lilac_launch_map_fits(const lilac_strided_tile *tile);
/* Sets the attribute lilac.launch_map of a parameter. */
void lilac_launch_map_put(lilac_tile_module *module, lilac_tile_attributes *attributes,
                          const lilac_strided_tile *tile);
/* Sets the attribute lilac.launch_conditions of a function: the most programs along each
 * dimension of the grid, and the indices of the parameters that must not be negative. */
void lilac_launch_conditions_put(lilac_tile_module *module, lilac_tile_function *function,
                                 const lilac_tile_conditions *conditions);

#endif
