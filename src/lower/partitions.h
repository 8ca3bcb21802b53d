/* Warp programs: the partitions of ttg.warp_specialize and the program of the function's own warps
 * (partitions.c). */
#ifndef LILAC_LOWER_PARTITIONS_H
#define LILAC_LOWER_PARTITIONS_H

#include "lower_internal.h"

/* Gives each partition of the function a window of warps, in l->partitions. */
bool lilac_lower_find_partitions(lilac_lowering *l);
/* The warps of a block. */
uint32_t lilac_lower_warps(const lilac_lowering *l);
/* Lowers the function's body and its partitions. Returns the end of the function; NULL: an
 * operation was refused. */
const lilac_tile_op *lilac_lower_programs(lilac_lowering *l);

#endif
