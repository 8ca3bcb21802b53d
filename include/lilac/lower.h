/* lower: tile IR with layouts → SIMT IR.
 *
 * A tensor becomes, in every thread, one value for each register of its layout. Each family of
 * operations is one file (src/lower/): arithmetic, memory, shape, reduction, control …
 */
#ifndef LILAC_LOWER_H
#define LILAC_LOWER_H

#include <lilac/simt.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* Every public function with a body becomes a kernel. NULL with diagnostics (at the operation's
 * position and the user's line) for what has no lowering: ids `unsupported-operation`,
 * `unsupported-type`, `layout-conversion`, `too-much-shared-memory`. */
LILAC_API LILAC_MUST_USE lilac_simt_module *lilac_lower(lilac_tile_module *module,
                                                        const lilac_target *target);

LILAC_END

#endif
