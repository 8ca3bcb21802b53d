/* A tensor's registers in another layout (convert_layout.c). */
#ifndef LILAC_LOWER_CONVERT_LAYOUT_H
#define LILAC_LOWER_CONVERT_LAYOUT_H

#include "coordinates.h"

/* The conversion of one tensor's registers between two layouts. At least the distinct registers of
 * `values` must be set. The conversion sets all of `results`. */
typedef struct lilac_lower_conversion {
    lilac_simt_type type;
    const lilac_lower_view *from, *to;
    const lilac_simt_value *values;
    lilac_simt_value *results;
} lilac_lower_conversion;

/* Plans and executes a conversion. Refuses with `layout-conversion`. */
bool lilac_lower_move(lilac_lowering *l, lilac_plan_strategy strategy,
                      const lilac_lower_conversion *conversion);
/* Executes a conversion that another plan contains. `plan` is from the columns of `from` to
 * those of `to`. */
bool lilac_lower_execute_conversion(lilac_lowering *l, const lilac_plan_conversion *plan,
                                    const lilac_lower_conversion *conversion);
/* The scratch memory that a conversion may use, in bytes: lilac_plan_options.scratch_bytes. */
uint32_t lilac_lower_scratch_limit(lilac_lowering *l);
/* Refuses the operation with `layout-conversion`: one of its conversions has no plan. */
bool lilac_lower_refuse_conversion(lilac_lowering *l, const lilac_reason *why);
/* All registers of a tensor, in its own layout or in another one. */
bool lilac_lower_read_as(lilac_lowering *l, const lilac_lower_value *from,
                         const lilac_lower_view *view, lilac_simt_value *registers);
/* Fills a value with the elements of `from` at the mapped coordinates, whichever thread holds them.
 * With two results, which have one layout, the second reads at map->constant further on. */
bool lilac_lower_move_value(lilac_lowering *l, const lilac_lower_value *from,
                            const lilac_lower_map *map, uint32_t results,
                            lilac_lower_value *const *to);

#endif
