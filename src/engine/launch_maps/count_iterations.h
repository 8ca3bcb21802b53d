/* Loops with products that count their iterations (count_iterations.c). Private to the engine. */
#ifndef LILAC_ENGINE_COUNT_ITERATIONS_H
#define LILAC_ENGINE_COUNT_ITERATIONS_H

#include "internal.h"

/* Changes loops with products that advance a pointer by a number that is no multiple of their step.
 * Whether there was one. */
bool lilac_count_iterations(lilac_tile_module *module, const lilac_tile_function *function,
                            lilac_arena *arena);

#endif
