/* Products with positive numbers whose maximum or minimum is taken (scale_extremes.c). Private to the
 * engine. */
#ifndef LILAC_ENGINE_SCALE_EXTREMES_H
#define LILAC_ENGINE_SCALE_EXTREMES_H

#include "internal.h"

/* The bits of the positive finite number that each element of a constant is; 0: another value. */
uint64_t lilac_extremes_positive_number(const lilac_tile_value *value);
/* Is it a reduction of one tensor to a tensor by one minimum or maximum? */
bool lilac_extremes_is_reduction(const lilac_tile_op *op);
/* Are all uses such reductions, additions and subtractions? */
bool lilac_extremes_has_known_uses(const lilac_tile_value *value);

#endif
