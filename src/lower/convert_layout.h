/* A tensor's registers in another layout (convert_layout.c). */
#ifndef LILAC_LOWER_CONVERT_LAYOUT_H
#define LILAC_LOWER_CONVERT_LAYOUT_H

#include "coordinates.h"

/* Converts registers between two layouts of a tensor. `values`: at least the canonical registers
 * are set. Fills all of `results`. Refuses with `layout-conversion`. */
bool lilac_lower_move(lilac_lowering *l, lilac_simt_type type, const lilac_lower_view *from,
                      const lilac_lower_view *to, lilac_plan_strategy way,
                      const lilac_simt_value *values, lilac_simt_value *results);
/* All registers of a tensor, in its own layout or in another one. */
bool lilac_lower_read_as(lilac_lowering *l, const lilac_lower_value *from,
                         const lilac_lower_view *view, lilac_simt_value *registers);
/* Fills a value with the elements of `from` at the mapped coordinates, whichever thread holds them.
 * With two results, which have one layout, the second reads at map->constant further on. */
bool lilac_lower_move_value(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, uint32_t results,
                            lilac_lower_value *const *to);

#endif
