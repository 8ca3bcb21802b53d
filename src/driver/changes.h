/* What the options change of a module that was read: layouts of operations, divisors of parameters.
 * */
#ifndef LILAC_DRIVER_CHANGES_H
#define LILAC_DRIVER_CHANGES_H

#include <lilac/driver.h>

/* Marks the operations of the lines with the attribute lilac.layout, a tensor type. False after a
 * diagnostic. */
LILAC_MUST_USE bool lilac_force_layouts(lilac_tile_module *module, uint32_t source,
                                        const lilac_options *options, const lilac_target *target);

/* Gives parameters of the module's kernels the attribute tt.divisibility. False after a diagnostic.
 * */
LILAC_MUST_USE bool lilac_assume_divisors(lilac_tile_module *module, uint32_t source,
                                          const lilac_options *options);

#endif
