/* read_launch_maps: the recipes of tensor maps that the launcher makes, from the attributes of a
 * function (driver.h).
 *
 * A module may come from a user's text, so that every attribute is checked. */
#include <lilac/driver.h>
#include <lilac/engine.h>

#include <string.h>

static const char MAP[] = "lilac.launch_map", CONDITIONS[] = "lilac.launch_conditions",
                  SPLIT[] = "lilac.launch_split", LEAST[] = "lilac.launch_least",
                  ONE_BLOCK[] = "lilac.launch_one_block";

static bool refuse(const lilac_tile_function *function, const char *attribute,
                   const char *expected) {
    lilac_error(function->module->context, function->position, function->location, "launch-map",
                "the attribute %s of '%s' is malformed: expected %s", attribute, function->name,
                expected);
    return false;
}

static bool is_integer(const lilac_tile_function *function, int64_t index) {
    return index >= 0 && index < function->parameter_count &&
           function->parameters[index]->type->kind == LILAC_TILE_SCALAR &&
           !lilac_scalar_is_float(function->parameters[index]->type->scalar);
}

static bool is_pointer(const lilac_tile_function *function, int64_t index) {
    return index >= 0 && index < function->parameter_count &&
           function->parameters[index]->type->kind == LILAC_TILE_POINTER;
}

static const lilac_tile_attribute *entry(const lilac_tile_attribute *dictionary, const char *name,
                                         lilac_tile_attribute_kind kind) {
    for (uint32_t i = 0; i < dictionary->count; i++) {
        const lilac_tile_attribute *one = &dictionary->elements[i];
        if (strcmp(one->name, name) == 0) {
            return one->kind == kind ? one : NULL;
        }
    }
    return NULL;
}

/* array<i64: FACTOR, PARAMETER, …> */
static bool read_product(lilac_launch_term *term, const lilac_tile_attribute *attribute,
                         const lilac_tile_function *function) {
    if (attribute->kind != LILAC_TILE_ATTR_INTEGERS || attribute->count == 0 ||
        attribute->count > 1 + LILAC_LAUNCH_FACTORS) {
        return false;
    }
    *term = (lilac_launch_term){.factor = attribute->integers[0],
                                .parameter_count = attribute->count - 1};
    for (uint32_t i = 1; i < attribute->count; i++) {
        if (!is_integer(function, attribute->integers[i])) {
            return false;
        }
        term->parameters[i - 1] = (uint32_t)attribute->integers[i];
    }
    return true;
}

/* array<i64: PARAMETER, DIVISOR> */
static bool read_quotient(lilac_launch_term *term, const lilac_tile_attribute *attribute,
                          const lilac_tile_function *function) {
    const int64_t *numbers = attribute->integers;
    if (term->parameter_count == LILAC_LAUNCH_FACTORS ||
        attribute->kind != LILAC_TILE_ATTR_INTEGERS || attribute->count != 2 ||
        !is_integer(function, numbers[0]) || numbers[1] < 1 || numbers[1] > INT32_MAX) {
        return false;
    }
    term->divisors[term->parameter_count] = (uint32_t)numbers[1];
    term->parameters[term->parameter_count++] = (uint32_t)numbers[0];
    return true;
}

/* array<i64: FACTOR, PARAMETER, …>, or that in an array with array<i64: PARAMETER, DIVISOR>, … */
static bool read_term(lilac_launch_term *term, const lilac_tile_attribute *attribute,
                      const lilac_tile_function *function) {
    if (attribute->kind != LILAC_TILE_ATTR_ARRAY) {
        return read_product(term, attribute, function);
    }
    bool good = attribute->count > 0 && read_product(term, &attribute->elements[0], function);
    for (uint32_t i = 1; good && i < attribute->count; i++) {
        good = read_quotient(term, &attribute->elements[i], function);
    }
    return good;
}

static bool read_sum(lilac_launch_sum *sum, const lilac_tile_attribute *attribute,
                     const lilac_tile_function *function) {
    if (attribute->kind != LILAC_TILE_ATTR_ARRAY || attribute->count > LILAC_LAUNCH_TERMS) {
        return false;
    }
    sum->count = attribute->count;
    for (uint32_t i = 0; i < attribute->count; i++) {
        if (!read_term(&sum->terms[i], &attribute->elements[i], function)) {
            return false;
        }
    }
    return true;
}

static bool read_sums(lilac_launch_sum *sums, const lilac_tile_attribute *attribute,
                      const lilac_tile_function *function) {
    for (uint32_t i = 0; i < attribute->count; i++) {
        if (!read_sum(&sums[i], &attribute->elements[i], function)) {
            return false;
        }
    }
    return true;
}

/* What the sizes are rounded up to; may be missing. */
static bool read_multiples(lilac_launch_map *map, const lilac_tile_attribute *numbers) {
    bool good = numbers == NULL || numbers->count == map->rank;
    for (uint32_t i = 0; good && numbers != NULL && i < map->rank; i++) {
        good = numbers->integers[i] > 0 && numbers->integers[i] <= UINT32_MAX;
        map->multiples[i] = (uint32_t)numbers->integers[i];
    }
    return good;
}

static bool read_map(lilac_launch_map *map, uint32_t parameter,
                     const lilac_tile_attribute *dictionary, const lilac_tile_function *function) {
    const lilac_tile_type *type = function->parameters[parameter]->type;
    lilac_box box;
    if (dictionary->kind != LILAC_TILE_ATTR_DICTIONARY || type->kind != LILAC_TILE_DESCRIPTOR ||
        !lilac_engine_box(&box, type->element)) {
        return false;
    }
    const lilac_tile_attribute *base = entry(dictionary, "base", LILAC_TILE_ATTR_INTEGER);
    const lilac_tile_attribute *offset = entry(dictionary, "offset", LILAC_TILE_ATTR_ARRAY);
    const lilac_tile_attribute *sizes = entry(dictionary, "sizes", LILAC_TILE_ATTR_ARRAY);
    const lilac_tile_attribute *strides = entry(dictionary, "strides", LILAC_TILE_ATTR_ARRAY);
    if (base == NULL || offset == NULL || sizes == NULL || strides == NULL ||
        sizes->count != box.rank || strides->count != box.rank - 1 ||
        !is_pointer(function, base->integer)) {
        return false;
    }
    const lilac_tile_attribute *pitch = entry(dictionary, "pitch", LILAC_TILE_ATTR_INTEGER);
    *map = (lilac_launch_map){
        .parameter = parameter,
        .base = (uint32_t)base->integer,
        .rank = box.rank,
        .pitch = pitch != NULL && pitch->integer > 0 ? (uint32_t)pitch->integer : 0};
    return read_sum(&map->offset, offset, function) && read_sums(map->sizes, sizes, function) &&
           read_sums(map->strides, strides, function) &&
           read_multiples(map, entry(dictionary, "multiples", LILAC_TILE_ATTR_INTEGERS));
}

static bool read_conditions(lilac_launch_conditions *conditions,
                            const lilac_tile_attribute *attribute,
                            const lilac_tile_function *function) {
    if (attribute == NULL || attribute->kind != LILAC_TILE_ATTR_INTEGERS || attribute->count < 3 ||
        attribute->count > 3 + LILAC_LAUNCH_PARAMETERS) {
        return false;
    }
    for (uint32_t d = 0; d < 3; d++) {
        if (attribute->integers[d] < 0 || attribute->integers[d] > UINT32_MAX) {
            return false;
        }
        conditions->grid[d] = (uint32_t)attribute->integers[d];
    }
    conditions->parameter_count = attribute->count - 3;
    for (uint32_t i = 3; i < attribute->count; i++) {
        if (!is_integer(function, attribute->integers[i])) {
            return false;
        }
        conditions->parameters[i - 3] = (uint32_t)attribute->integers[i];
    }
    return true;
}

static bool read_number(uint32_t *number, const lilac_tile_attribute *dictionary,
                        const char *name) {
    const lilac_tile_attribute *found = entry(dictionary, name, LILAC_TILE_ATTR_INTEGER);
    if (found == NULL || found->integer < 0 || found->integer > INT32_MAX) {
        return false;
    }
    *number = (uint32_t)found->integer;
    return true;
}

static bool read_iterations(lilac_launch_sum *iterations, uint32_t *divisor,
                            const lilac_tile_attribute *dictionary,
                            const lilac_tile_function *function) {
    if (dictionary->kind != LILAC_TILE_ATTR_DICTIONARY) {
        return false;
    }
    const lilac_tile_attribute *sum = entry(dictionary, "iterations", LILAC_TILE_ATTR_ARRAY);
    return sum != NULL && read_sum(iterations, sum, function) &&
           read_number(divisor, dictionary, "divisor") && *divisor > 0;
}

static bool read_split(lilac_launch_split *split, const lilac_tile_attribute *dictionary,
                       const lilac_tile_function *function) {
    return read_iterations(&split->iterations, &split->divisor, dictionary, function) &&
           read_number(&split->clocks, dictionary, "clocks") &&
           read_number(&split->loads, dictionary, "loads") &&
           read_number(&split->bytes, dictionary, "bytes");
}

static bool read_least(lilac_launch_least *least, const lilac_tile_attribute *dictionary,
                       const lilac_tile_function *function) {
    return read_iterations(&least->iterations, &least->divisor, dictionary, function) &&
           read_number(&least->least, dictionary, "least");
}

static bool read_maps(lilac_launch_maps *result, lilac_arena *arena,
                      const lilac_tile_function *function) {
    lilac_launch_map *maps = lilac_arena_array(arena, lilac_launch_map, function->parameter_count);
    result->maps = maps;
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_attribute *map = lilac_tile_find(&function->parameter_attributes[i], MAP);
        if (map != NULL && !read_map(&maps[result->count++], i, map, function)) {
            return refuse(
                function, MAP,
                "of a descriptor {base = POINTER, offset = SUM, sizes = [SUM, …], strides "
                "= [SUM, …]}, in which a SUM is an array of array<i64: FACTOR, "
                "INTEGER PARAMETER, …>, or of arrays of that and array<i64: INTEGER PARAMETER, "
                "DIVISOR>, …");
        }
    }
    const lilac_tile_attribute *conditions = lilac_tile_find(&function->attributes, CONDITIONS);
    if (result->count > 0 && !read_conditions(&result->conditions, conditions, function)) {
        return refuse(function, CONDITIONS, "array<i64: X, Y, Z, INTEGER PARAMETER, …>");
    }
    const lilac_tile_attribute *split = lilac_tile_find(&function->attributes, SPLIT);
    if (result->count > 0 && split != NULL && !read_split(&result->split, split, function)) {
        return refuse(function, SPLIT,
                      "{iterations = SUM, divisor = N, clocks = N, loads = N, bytes = N} with a "
                      "divisor above 0");
    }
    const lilac_tile_attribute *least = lilac_tile_find(&function->attributes, LEAST);
    if (result->count > 0 && least != NULL && !read_least(&result->least, least, function)) {
        return refuse(function, LEAST,
                      "{iterations = SUM, divisor = N, least = N} with a divisor above 0");
    }
    const lilac_tile_attribute *one_block = lilac_tile_find(&function->attributes, ONE_BLOCK);
    if (result->count > 0 && one_block != NULL && one_block->kind != LILAC_TILE_ATTR_UNIT) {
        return refuse(function, ONE_BLOCK, "a unit attribute");
    }
    result->one_block = result->count > 0 && one_block != NULL;
    return true;
}

bool lilac_launch_maps_get(lilac_launch_maps *result, lilac_arena *arena,
                           const lilac_tile_function *function) {
    *result = (lilac_launch_maps){0};
    if (!read_maps(result, arena, function)) {
        result->count = 0;
        return false;
    }
    return true;
}
