/* Control flow that differs between threads: regions evaluated for one element (map_elementwise.c),
 * and the analysis that finds such regions (scalars.c). */
#ifndef LILAC_LOWER_CONTROL_H
#define LILAC_LOWER_CONTROL_H

#include "lower_internal.h"

/* May threads take different paths through this operation? True only for operations that use
 * scalars and access no memory, since others cannot be lowered with divergent control. */
bool lilac_lower_diverges(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_if_elements(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_while_elements(lilac_lowering *l, const lilac_tile_op *op);
bool lilac_lower_for_elements(lilac_lowering *l, const lilac_tile_op *op);

/* The divisor of an integer division. Inactive lanes divide by 1, because their divisor may be
 * 0. */
lilac_simt_value lilac_lower_divisor(lilac_lowering *l, lilac_simt_value value);

/* ---- analysis (scalars.c) ----------------------------------------------------------------- */

/* Do the regions of the operation read or write memory? */
bool lilac_lower_touches_memory(const lilac_lowering *l, const lilac_tile_op *op);
/* Does the operation, which has regions, use scalars only and access no memory? */
bool lilac_lower_is_scalar(const lilac_lowering *l, const lilac_tile_op *op);
/* Is the operation in a region that is evaluated for each element, such as that of a map, a
 * reduction or a scan? */
bool lilac_lower_is_per_element(const lilac_lowering *l, const lilac_tile_op *op);
/* Do the regions of this operation use an outer value that differs between threads, and that is
 * defined inside every enclosing scalar operation? */
bool lilac_lower_uses_divergent(const lilac_lowering *l, const lilac_tile_op *op);

#endif
