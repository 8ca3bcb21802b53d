/* lower: tile IR with layouts → SIMT IR.
 *
 *   tensor      in every thread, one value for each register of its layout; copies share a value
 *   scalar      one value, the same in all threads
 *   pointer     i64; an address is a value and a constant, which accesses take as immediate offset
 *   tt.load     as wide as contiguity, alignment and mask allow, at most 16 bytes a thread;
 *   tt.store    elements under 32 bits packed in words; of several copies one is stored
 *   tt.reduce   in the thread, by shuffles, then through shared memory with one barrier (and one
 *               before it where the memory may still be read); any region, axis and layout
 *   shapes      renamings of registers
 *
 * Each family of operations is one file (src/lower/): arithmetic, floats, conversions, math,
 * memory, shape, reduce, control, and sources for what has no tensor operand.
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
