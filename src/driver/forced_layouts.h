/* Layouts that the options force on operations. */
#ifndef LILAC_DRIVER_FORCED_LAYOUTS_H
#define LILAC_DRIVER_FORCED_LAYOUTS_H

#include <lilac/driver.h>

/* Marks the operations of the lines with the attribute lilac.layout, a tensor type. False after a diagnostic. */
LILAC_MUST_USE bool lilac_force_layouts(lilac_tile_module *module, uint32_t source,
                                        const lilac_options *options,
                                        const lilac_target *target);

#endif
