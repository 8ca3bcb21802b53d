/* Tensor maps that a launcher makes, as attributes of a function (write_launch_maps.c). Private to
 * the engine. */
#ifndef LILAC_ENGINE_WRITE_LAUNCH_MAPS_H
#define LILAC_ENGINE_WRITE_LAUNCH_MAPS_H

#include "launch_maps/strided_tile.h"

/* Does the form have enough terms and factors for the sum; for the tile's tensor? */
bool lilac_launch_sum_fits(const lilac_sum *sum);
bool lilac_launch_map_fits(const lilac_strided_tile *tile);
/* Sets the attribute lilac.launch_map of a parameter. */
void lilac_launch_map_put(lilac_tile_module *module, lilac_tile_attributes *attributes,
                          const lilac_strided_tile *tile);
/* The size of dimension `dim` of the map that parameter number `index` is. False: it has too many
 * terms, or quotients. */
bool lilac_launch_map_size(lilac_sum *size, const lilac_tile_function *function, uint32_t index,
                           uint32_t dim);
/* Sets that size, rounded up to a multiple. */
void lilac_launch_map_set_size(lilac_tile_module *module, const lilac_tile_function *function,
                               uint32_t index, uint32_t dim, const lilac_sum *size,
                               int64_t multiple);
/* Sets the pitch of that map (lilac/tensor_map.h). */
void lilac_launch_map_set_pitch(lilac_tile_module *module, const lilac_tile_function *function,
                                uint32_t index, uint32_t pitch);
/* Sets the attribute lilac.launch_conditions of a function: the most programs along each
 * dimension of the grid, and the indices of the parameters that must not be negative. */
void lilac_launch_conditions_put(lilac_tile_module *module, lilac_tile_function *function,
                                 const lilac_tile_conditions *conditions);

/* How a launcher computes a number of iterations: numerator / divisor, rounded down. */
typedef struct lilac_launch_iterations {
    lilac_sum numerator;
    int64_t divisor;
} lilac_launch_iterations;

/* The trip count of scf.for with this constant step, of a numbered function; where resize_tiles has made
 * parts of iterations, up to their number less one too many. False: it is none that the parameters
 * say. */
bool lilac_launch_iterations_of(lilac_launch_iterations *iterations, const lilac_tile_op *loop,
                                int64_t step, lilac_arena *arena);
/* Sets the attribute lilac.launch_split of a function, whose blocks may divide these iterations.
 * `clocks`: of the products of an iteration, estimated; `loads`: bytes that it loads; `bytes`: of the sums
 * of a block. */
void lilac_launch_split_put(lilac_tile_module *module, lilac_tile_function *function,
                            const lilac_launch_iterations *iterations, uint32_t clocks,
                            uint32_t loads, uint32_t bytes);

/* Sets the attribute lilac.launch_least of a function: launches of fewer iterations are faster without
 * maps where each program has a multiprocessor for itself. */
void lilac_launch_least_put(lilac_tile_module *module, lilac_tile_function *function,
                            const lilac_launch_iterations *iterations, uint32_t least);

#endif
