/* A change of each kernel of a module, which passes about the launcher's maps have in common. Private to
 * the engine. */
#ifndef LILAC_ENGINE_CHANGE_KERNELS_H
#define LILAC_ENGINE_CHANGE_KERNELS_H

#include "internal.h"

/* Changes a public function of one block. Whether it has. */
typedef bool lilac_kernel_change(lilac_tile_module *module, lilac_tile_function *function,
                                 const lilac_target *target, lilac_arena *arena);

/* Whether one of the kernels has changed. The arena is for one call only. */
static inline bool lilac_change_kernels(lilac_tile_module *module, const lilac_target *target,
                                        lilac_kernel_change *change) {
    lilac_arena *arena = lilac_arena_create();
    bool changed = false;
    for (lilac_tile_function *f = module->functions; f != NULL; f = f->next) {
        if (f->body != NULL && f->is_public && f->body->first->next == NULL) {
            changed |= change(module, f, target, arena);
        }
    }
    lilac_arena_destroy(arena);
    return changed;
}

#endif
