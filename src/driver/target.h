/* What a module is compiled for. */
#ifndef LILAC_DRIVER_TARGET_H
#define LILAC_DRIVER_TARGET_H

#include <lilac/driver.h>

/* Whether what is given of a target can be; refused with `invalid-target`. */
bool lilac_target_check(lilac_context *context, const lilac_target *target);
/* Completes it by what the module says, and by what is usual. Refused, with `invalid-target` at the
 * source, when the two do not agree. */
bool lilac_target_take(lilac_target *target, const lilac_tile_module *module, uint32_t source);
/* Removes what is neither this kernel nor called by it. Refused, with `unknown-kernel` at the
 * source: no public function with a body has that name. */
bool lilac_kernel_select(lilac_tile_module *module, uint32_t source, const char *name);

#endif
