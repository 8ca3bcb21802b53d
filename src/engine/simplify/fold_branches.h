/* Folding of scalars and branches in one block; private to the component. */
#ifndef LILAC_ENGINE_FOLD_BRANCHES_H
#define LILAC_ENGINE_FOLD_BRANCHES_H

#include <lilac/tile.h>

/* Replaces the scalar integer operations of a block whose operands are constants by constants, and
 * each scf.if with a constant condition by the operations of the region that it executes. Visits the
 * operations behind `before` (NULL: from the first on) and before `end` (NULL: to the last), not
 * those in their regions; both remain. Linear in the number of operations. */
void lilac_engine_fold_branches(lilac_tile_module *module, lilac_tile_block *block,
                                const lilac_tile_op *before, const lilac_tile_op *end);

#endif
