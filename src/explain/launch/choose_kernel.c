/* The tensor maps that the launcher makes for the launch (driver.h): from the arguments that are
 * given, as it makes them. It starts the kernel without maps where one is not possible: then that
 * kernel is explained.
 *
 *     a launch is described, and all integers that the maps need are given
 *         all maps are possible       this kernel; `maps` has the sizes and strides; or that of
 *                                     target.one_block, if it differs and no multiprocessor gets two blocks
 *         one is not, or few iterations for few programs are faster without
 *                                     the kernel compiled without launch_maps
 *     else                            this kernel; the maps are not known */
#include "internal.h"

#include <lilac/driver.h>

#include <string.h>

static bool sum_is_known(const lilac_explanation *e, const lilac_launch_sum *sum) {
    bool known = true;
    for (uint32_t t = 0; t < sum->count; t++) {
        for (uint32_t k = 0; k < sum->terms[t].parameter_count; k++) {
            known &= e->known[sum->terms[t].parameters[k]];
        }
    }
    return known;
}

static bool map_is_known(const lilac_explanation *e, const lilac_launch_map *recipe) {
    bool known = sum_is_known(e, &recipe->offset);
    for (uint32_t d = 0; d < recipe->rank; d++) {
        known &= sum_is_known(e, &recipe->sizes[d]);
        known &= d + 1 == recipe->rank || sum_is_known(e, &recipe->strides[d]);
    }
    return known;
}

/* The values of the parameters, integers sign-extended. An unknown one is 0: no condition excludes
 * it, and no map needs it. */
static int64_t *values_of(const lilac_explanation *e) {
    int64_t *values = lilac_arena_array(e->arena, int64_t, e->kernel->parameter_count + 1);
    for (uint32_t p = 0; p < e->kernel->parameter_count; p++) {
        const uint32_t unused = 64 - lilac_simt_type_bits(e->kernel->parameters[p].type);
        values[p] = e->known[p] ? (int64_t)(e->arguments[p] << unused) >> unused : 0;
    }
    return values;
}

/* The fields of a map that its recipe does not compute. */
static void describe_box(lilac_tensor_map *map, const lilac_tile_type *block) {
    static const lilac_tensor_element elements[] = {LILAC_TENSOR_U8, LILAC_TENSOR_U16,
                                                    LILAC_TENSOR_U32, LILAC_TENSOR_U64};
    lilac_box box = {0};
    uint32_t bytes = lilac_tile_element_bits(block) / 8, size = 0;
    for (; bytes > 1; bytes /= 2) {
        size++;
    }
    (void)lilac_engine_box(&box, block); /* the parameter is a tensor map */
    *map = (lilac_tensor_map){.element = elements[size], .rank = box.rank};
    map->swizzle = lilac_tensor_swizzle_of(box.swizzle_bytes);
    for (uint32_t d = 0; d < box.rank; d++) {
        map->box[d] = box.sizes[box.rank - 1 - d];
        map->element_strides[d] = 1;
    }
}

/* As the launcher does for one block of each program: see lilac_mapped_prepare. */
static bool make(const lilac_explanation *e, lilac_tensor_map *map, const lilac_launch_map *recipe,
                 const int64_t *values) {
    describe_box(map, e->function->parameters[recipe->parameter]->type->element);
    return lilac_launch_map_make(NULL, map, recipe, values, "") &&
           lilac_launch_map_pays(recipe, map);
}

explain_kernel explain_choose_kernel(lilac_explanation *e) {
    static const lilac_launch_capacity capacity = {.multiprocessors = EXPLAIN_MULTIPROCESSORS};
    lilac_launch_maps recipes;
    const uint32_t *grid = e->options.launch.grid;
    e->maps = lilac_arena_array(e->arena, lilac_tensor_map, e->kernel->parameter_count + 1);
    if (!lilac_launch_maps_get(&recipes, e->arena, e->function)) {
        return EXPLAIN_THIS;
    }
    e->map_count = recipes.count;
    if (grid[0] == 0 || recipes.count == 0) {
        return EXPLAIN_THIS;
    }
    const int64_t *values = values_of(e);
    bool good = lilac_launch_conditions_check(NULL, &recipes.conditions, grid, values, NULL) &&
                (!sum_is_known(e, &recipes.least.iterations) ||
                 lilac_launch_maps_pay(&recipes.least, EXPLAIN_MULTIPROCESSORS, grid, values));
    for (uint32_t i = 0; i < recipes.count && good; i++) {
        lilac_tensor_map map;
        if (map_is_known(e, &recipes.maps[i])) {
            good = make(e, &map, &recipes.maps[i], values);
            e->maps[recipes.maps[i].parameter] = map;
        }
    }
    return !good ? EXPLAIN_PLAIN
           : recipes.one_block && lilac_launch_one_block_fits(&capacity, grid, 1)
               ? EXPLAIN_ONE_BLOCK
               : EXPLAIN_THIS;
}
