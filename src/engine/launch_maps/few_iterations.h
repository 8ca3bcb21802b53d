/* When launches of a kernel are faster without its tensor maps (few_iterations.c). Private to the
 * engine. */
#ifndef LILAC_ENGINE_FEW_ITERATIONS_H
#define LILAC_ENGINE_FEW_ITERATIONS_H

#include "internal.h"

/* Sets the attribute lilac.launch_least of a numbered function whose loads describe_loads has
 * described, if launches of few iterations are faster without maps. */
void lilac_few_iterations(lilac_tile_module *module, lilac_tile_function *function,
                          const lilac_target *target, lilac_arena *arena);

#endif
