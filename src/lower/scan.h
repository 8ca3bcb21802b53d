/* What the files of tt.scan share. */
#ifndef LILAC_LOWER_SCAN_H
#define LILAC_LOWER_SCAN_H

#include "lower_internal.h"

/* The bits of a coordinate that are the axis. */
uint64_t lilac_scan_axis(const lilac_lower_view *view, uint32_t axis);
/* Is every bit of the axis one column that does nothing else, and all lanes' below all warps'? */
bool lilac_scan_fits(const lilac_lower_view *view, uint32_t axis);
/* A layout near `from` that does. */
const lilac_lower_view *lilac_scan_near(lilac_lowering *l, const lilac_lower_view *from,
                                        uint32_t axis);

#endif
