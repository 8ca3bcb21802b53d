/* The device and the launch shape of a compilation. */
#ifndef LILAC_DRIVER_TARGET_H
#define LILAC_DRIVER_TARGET_H

#include <lilac/driver.h>

/* Checks the fields that are given. Refused with `invalid-target`. */
bool lilac_target_check(lilac_context *context, const lilac_target *target);
/* Completes the target by the attributes of the module and by the defaults. Refused with
 * `invalid-target` at the source, if the target and the module disagree. */
bool lilac_target_take(lilac_target *target, const lilac_tile_module *module, uint32_t source);
/* Removes the functions that the kernel does not call. Refused with `unknown-kernel` at the
 * source, if no public function with a body has that name. */
bool lilac_kernel_select(lilac_tile_module *module, uint32_t source, const char *name);

#endif
