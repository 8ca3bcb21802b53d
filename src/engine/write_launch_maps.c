/* write_launch_maps: how a launcher makes a parameter that is a tensor map, as an attribute.
 *
 *     lilac.launch_map = {base = 0 : i32, offset = [], sizes = [[array<i64: 1, 3>], …],
 *                         strides = [[array<i64: 2, 5, 4>]], pitch = 32 : i32}
 *
 * A sum is a list of products: a factor, and the indices of parameters. The example has sizes
 * p₃, … and the stride 2 · p₅ · p₄. */
#include "write_launch_maps.h"

enum { MOST_TERMS = 4, MOST_FACTORS = 3 /* of a sum, as launchers read it */ };

static bool fits(const lilac_sum *sum) {
    bool good = sum->count <= MOST_TERMS;
    for (uint32_t i = 0; i < sum->count; i++) {
        good = good && sum->terms[i].count <= MOST_FACTORS;
    }
    return good;
}

bool lilac_launch_map_fits(const lilac_strided_tile *tile) {
    bool good = fits(&tile->offset);
    for (uint32_t i = 0; i < tile->rank; i++) {
        good = good && fits(&tile->sizes[i]) && (i + 1 == tile->rank || fits(&tile->strides[i]));
    }
    return good;
}

static lilac_name name_of(lilac_tile_module *module, const char *name) {
    return name != NULL ? lilac_intern_string(module->context, name) : NULL;
}

static lilac_tile_attribute list(lilac_tile_module *module, const char *name, uint32_t count,
                                 const lilac_tile_attribute *elements) {
    return (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_ARRAY,
                                  .name = name_of(module, name),
                                  .count = count,
                                  .elements = elements};
}

static lilac_tile_attribute sum_of(lilac_tile_module *module, const char *name,
                                   const lilac_sum *sum) {
    lilac_tile_attribute *terms =
        lilac_arena_array(module->arena, lilac_tile_attribute, sum->count + 1);
    for (uint32_t i = 0; i < sum->count; i++) {
        const lilac_product *term = &sum->terms[i];
        int64_t *numbers = lilac_arena_array(module->arena, int64_t, 1 + term->count);
        numbers[0] = term->factor;
        for (uint32_t k = 0; k < term->count; k++) {
            numbers[1 + k] = term->values[k]->index;
        }
        terms[i] = (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                          .type = lilac_tile_scalar(module, LILAC_I64),
                                          .count = 1 + term->count,
                                          .integers = numbers};
    }
    return list(module, name, sum->count, terms);
}

static lilac_tile_attribute sums_of(lilac_tile_module *module, const char *name, uint32_t count,
                                    const lilac_sum *sums) {
    lilac_tile_attribute *elements =
        lilac_arena_array(module->arena, lilac_tile_attribute, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        elements[i] = sum_of(module, NULL, &sums[i]);
    }
    return list(module, name, count, elements);
}

void lilac_launch_map_put(lilac_tile_module *module, lilac_tile_attributes *attributes,
                          const lilac_strided_tile *tile) {
    lilac_tile_attribute *fields = lilac_arena_array(module->arena, lilac_tile_attribute, 5);
    fields[0] = (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGER,
                                       .name = name_of(module, "base"),
                                       .type = lilac_tile_scalar(module, LILAC_I32),
                                       .integer = tile->base->index};
    fields[1] = sum_of(module, "offset", &tile->offset);
    fields[2] = sums_of(module, "sizes", tile->rank, tile->sizes);
    fields[3] = sums_of(module, "strides", tile->rank - 1, tile->strides);
    fields[4] = (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGER,
                                       .name = name_of(module, "pitch"),
                                       .type = lilac_tile_scalar(module, LILAC_I32),
                                       .integer = tile->pitch};
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_DICTIONARY,
                                            .name = name_of(module, "lilac.launch_map"),
                                            .count = 5,
                                            .elements = fields};
    lilac_tile_set_attribute(module, attributes, &attribute);
}

void lilac_launch_conditions_put(lilac_tile_module *module, lilac_tile_function *function,
                                 const lilac_tile_conditions *conditions) {
    int64_t *indices = lilac_arena_array(module->arena, int64_t, 3 + 64);
    uint32_t count = 3;
    for (uint32_t i = 0; i < 3; i++) {
        indices[i] = conditions->small_grid ? TILE_MOST_PROGRAMS : INT32_MAX;
    }
    for (uint32_t i = 0; i < 64; i++) {
        if (((conditions->parameters >> i) & 1) != 0) {
            indices[count++] = i;
        }
    }
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                            .name = name_of(module, "lilac.launch_conditions"),
                                            .type = lilac_tile_scalar(module, LILAC_I64),
                                            .count = count,
                                            .integers = indices};
    lilac_tile_set_attribute(module, &function->attributes, &attribute);
}
