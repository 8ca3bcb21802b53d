/* write_launch_maps: how a launcher makes a parameter that is a tensor map, as an attribute.
 *
 *     lilac.launch_map = {base = 0 : i32, offset = [], sizes = [[array<i64: 1, 3>], …],
 *                         strides = [[array<i64: 2, 5, 4>]], pitch = 32 : i32}
 *
 *     lilac.launch_split = {iterations = [array<i64: 1, 5>, array<i64: 63>], divisor = 64 : i32,
 *                           clocks = 512 : i32, loads = 32768 : i32, bytes = 65536 : i32}
 *     lilac.launch_least = {iterations = …, divisor = 64 : i32, least = 6 : i32}
 *
 * What a size is rounded up to is one of multiples = array<i64: 1, 32>, where not all are 1.
 *
 * A sum is a list of products: a factor, and the indices of parameters. The example has sizes
 * p₃, …, the stride 2 · p₅ · p₄ and (p₅ + 63) / 64 iterations. A product with quotients of parameters is
 * a list of the others and, for each, the index and the divisor: 2 · p₅ · (p₄ / 3) is
 *
 *     [array<i64: 2, 5>, array<i64: 4, 3>] */
#include "launch_maps/write_launch_maps.h"

#include "facts/affine.h"

#include <lilac/tile_loops.h>

#include <string.h>

enum { MOST_TERMS = 4, MOST_FACTORS = 3 /* of a sum, as launchers read it */ };

bool lilac_launch_sum_fits(const lilac_sum *sum) {
    bool good = sum->count <= MOST_TERMS;
    for (uint32_t i = 0; i < sum->count; i++) {
        good = good && sum->terms[i].count <= MOST_FACTORS;
    }
    return good;
}

bool lilac_launch_map_fits(const lilac_strided_tile *tile) {
    bool good = lilac_launch_sum_fits(&tile->offset);
    for (uint32_t i = 0; i < tile->rank; i++) {
        good = good && lilac_launch_sum_fits(&tile->sizes[i]) &&
               (i + 1 == tile->rank || lilac_launch_sum_fits(&tile->strides[i]));
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

static lilac_tile_attribute integers(lilac_tile_module *module, uint32_t count,
                                     const int64_t *numbers) {
    return (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                  .type = lilac_tile_scalar(module, LILAC_I64),
                                  .count = count,
                                  .integers = numbers};
}

static lilac_tile_attribute term_of(lilac_tile_module *module, const lilac_product *term) {
    int64_t *numbers = lilac_arena_array(module->arena, int64_t, 1 + term->count);
    lilac_tile_attribute *parts =
        lilac_arena_array(module->arena, lilac_tile_attribute, 1 + term->count);
    uint32_t count = 1, part_count = 1;
    numbers[0] = term->factor;
    for (uint32_t k = 0; k < term->count; k++) {
        int64_t divisor;
        const int64_t index = lilac_launch_value(term->values[k], &divisor)->index;
        if (divisor == 1) {
            numbers[count++] = index;
            continue;
        }
        int64_t *quotient = lilac_arena_array(module->arena, int64_t, 2);
        quotient[0] = index;
        quotient[1] = divisor;
        parts[part_count++] = integers(module, 2, quotient);
    }
    parts[0] = integers(module, count, numbers);
    return part_count == 1 ? parts[0] : list(module, NULL, part_count, parts);
}

static lilac_tile_attribute sum_of(lilac_tile_module *module, const char *name,
                                   const lilac_sum *sum) {
    lilac_tile_attribute *terms =
        lilac_arena_array(module->arena, lilac_tile_attribute, sum->count + 1);
    for (uint32_t i = 0; i < sum->count; i++) {
        terms[i] = term_of(module, &sum->terms[i]);
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

static const lilac_tile_attribute *field_of(const lilac_tile_attribute *dictionary,
                                            const char *name) {
    for (uint32_t i = 0; i < dictionary->count; i++) {
        if (strcmp(dictionary->elements[i].name, name) == 0) {
            return &dictionary->elements[i];
        }
    }
    return NULL;
}

bool lilac_launch_map_size(lilac_sum *size, const lilac_tile_function *function, uint32_t index,
                           uint32_t dim) {
    const lilac_tile_attribute *map =
        lilac_tile_find(&function->parameter_attributes[index], "lilac.launch_map");
    const lilac_tile_attribute *sum = &field_of(map, "sizes")->elements[dim];
    *size = (lilac_sum){0};
    bool good = true;
    for (uint32_t i = 0; good && i < sum->count; i++) {
        if (sum->elements[i].kind != LILAC_TILE_ATTR_INTEGERS) {
            return false;
        }
        lilac_product term = lilac_product_number(sum->elements[i].integers[0]);
        for (uint32_t k = 1; k < sum->elements[i].count; k++) {
            term.values[term.count++] = function->parameters[sum->elements[i].integers[k]];
        }
        good = lilac_sum_add_product(size, &term);
    }
    return good;
}

/* Sets a field of the attribute, behind the others if it has none of that name. */
static void set_field(lilac_tile_module *module, const lilac_tile_function *function,
                      uint32_t index, const lilac_tile_attribute *field) {
    lilac_tile_attributes *attributes = &function->parameter_attributes[index];
    lilac_tile_attribute map = *lilac_tile_find(attributes, "lilac.launch_map");
    const lilac_tile_attribute *old = field_of(&map, field->name);
    const size_t place = old != NULL ? (size_t)(old - map.elements) : map.count;
    lilac_tile_attribute *fields =
        lilac_arena_array(module->arena, lilac_tile_attribute, map.count + 1);
    memcpy(fields, map.elements, map.count * sizeof *fields);
    fields[place] = *field;
    map.count += old == NULL;
    map.elements = fields;
    lilac_tile_set_attribute(module, attributes, &map);
}

void lilac_launch_map_set_size(lilac_tile_module *module, const lilac_tile_function *function,
                               uint32_t index, uint32_t dim, const lilac_sum *size,
                               int64_t multiple) {
    const lilac_tile_attribute *map =
        lilac_tile_find(&function->parameter_attributes[index], "lilac.launch_map");
    lilac_tile_attribute sizes = *field_of(map, "sizes");
    lilac_tile_attribute *elements =
        lilac_arena_array(module->arena, lilac_tile_attribute, sizes.count);
    int64_t *multiples = lilac_arena_array(module->arena, int64_t, sizes.count);
    for (uint32_t i = 0; i < sizes.count; i++) {
        elements[i] = i == dim ? sum_of(module, NULL, size) : sizes.elements[i];
        multiples[i] = i == dim ? multiple : 1;
    }
    sizes.elements = elements;
    const lilac_tile_attribute units = {.kind = LILAC_TILE_ATTR_INTEGERS,
                                        .name = name_of(module, "multiples"),
                                        .type = lilac_tile_scalar(module, LILAC_I64),
                                        .count = sizes.count,
                                        .integers = multiples};
    set_field(module, function, index, &sizes);
    set_field(module, function, index, &units);
}

void lilac_launch_map_set_pitch(lilac_tile_module *module, const lilac_tile_function *function,
                                uint32_t index, uint32_t pitch) {
    const lilac_tile_attribute field = {.kind = LILAC_TILE_ATTR_INTEGER,
                                        .name = name_of(module, "pitch"),
                                        .type = lilac_tile_scalar(module, LILAC_I32),
                                        .integer = pitch};
    set_field(module, function, index, &field);
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

/* ---- iterations ------------------------------------------------------------------------------ */

/* The sum that the value is, of integer parameters and their quotients only. */
static bool find_sum(lilac_sum *sum, const lilac_tile_value *value, lilac_arena *arena) {
    lilac_affine form;
    if (!lilac_affine_of(&form, value, arena) || form.base != NULL ||
        !lilac_affine_is_uniform(&form)) {
        return false;
    }
    *sum = form.uniform;
    bool good = lilac_launch_sum_fits(sum);
    for (uint32_t i = 0; i < sum->count; i++) {
        for (uint32_t k = 0; k < sum->terms[i].count; k++) {
            int64_t divisor;
            good = good && lilac_launch_value(sum->terms[i].values[k], &divisor) != NULL;
        }
    }
    return good;
}

static bool find_quotient(lilac_launch_iterations *q, const lilac_tile_value *value,
                          lilac_arena *arena);

/* A sum, or floor(x / d) - s, which is floor((x - d · s) / d). */
static bool find_difference(lilac_launch_iterations *q, const lilac_tile_value *value,
                            lilac_arena *arena) {
    const lilac_tile_op *op = value->op;
    lilac_sum subtracted;
    q->divisor = 1;
    if (find_sum(&q->numerator, value, arena)) {
        return true;
    }
    if (op == NULL || op->code != LILAC_TILE_OP_ARITH_SUBI ||
        !find_sum(&subtracted, op->operands[1].value, arena) ||
        !find_quotient(q, op->operands[0].value, arena)) {
        return false;
    }
    const lilac_product scale = lilac_product_number(q->divisor);
    return lilac_sum_scale(&subtracted, &scale) && lilac_sum_subtract(&q->numerator, &subtracted);
}

/* The value as floor(numerator / divisor): divisions by constants, rounded down or up. */
static bool find_quotient(lilac_launch_iterations *q, const lilac_tile_value *value,
                          lilac_arena *arena) {
    const lilac_tile_op *op = value->op;
    const bool up = op != NULL && op->code == LILAC_TILE_OP_ARITH_CEILDIVSI;
    int64_t number, extra = 0;
    if (op == NULL || (!up && op->code != LILAC_TILE_OP_ARITH_DIVSI) ||
        !lilac_tile_constant(op->operands[1].value, &number) || number < 1) {
        return find_difference(q, value, arena);
    }
    return find_quotient(q, op->operands[0].value, arena) &&
           !(up && __builtin_mul_overflow(q->divisor, number - 1, &extra)) &&
           lilac_sum_add_number(&q->numerator, extra) &&
           !__builtin_mul_overflow(q->divisor, number, &q->divisor);
}

/* The upper bound. Where resize_tiles has made parts of iterations, it is a product with their number,
 * and parts · floor(x / d) is taken for floor(parts · x / d). */
static bool find_bound(lilac_launch_iterations *bound, const lilac_tile_op *loop,
                       lilac_arena *arena) {
    const lilac_tile_value *upper = lilac_tile_upper_bound(loop);
    const int64_t parts = lilac_tile_find_integer(&loop->attributes, "lilac.parts", 1);
    const lilac_product factor = lilac_product_number(parts);
    if (parts > 1 && upper->op != NULL && upper->op->code == LILAC_TILE_OP_ARITH_MULI) {
        upper = upper->op->operands[0].value;
        return find_quotient(bound, upper, arena) && lilac_sum_scale(&bound->numerator, &factor);
    }
    return find_quotient(bound, upper, arena);
}

/* floor(x / d) - l iterations of step 1 are floor((x - d · l + d · (s - 1)) / (d · s)) of step s. */
bool lilac_launch_iterations_of(lilac_launch_iterations *iterations, const lilac_tile_op *loop,
                                int64_t step, lilac_arena *arena) {
    lilac_sum lower;
    int64_t extra;
    if (!find_bound(iterations, loop, arena) ||
        !find_sum(&lower, lilac_tile_lower_bound(loop), arena)) {
        return false;
    }
    const lilac_product scale = lilac_product_number(iterations->divisor);
    return lilac_sum_scale(&lower, &scale) && lilac_sum_subtract(&iterations->numerator, &lower) &&
           !__builtin_mul_overflow(iterations->divisor, step - 1, &extra) &&
           lilac_sum_add_number(&iterations->numerator, extra) &&
           !__builtin_mul_overflow(iterations->divisor, step, &iterations->divisor) &&
           iterations->divisor <= INT32_MAX && lilac_launch_sum_fits(&iterations->numerator);
}

static lilac_tile_attribute number_of(lilac_tile_module *module, const char *name, int64_t value) {
    return (lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGER,
                                  .name = name_of(module, name),
                                  .type = lilac_tile_scalar(module, LILAC_I32),
                                  .integer = value};
}

static void put_dictionary(lilac_tile_module *module, lilac_tile_function *function,
                           const char *name, uint32_t count, const lilac_tile_attribute *fields) {
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_DICTIONARY,
                                            .name = name_of(module, name),
                                            .count = count,
                                            .elements = fields};
    lilac_tile_set_attribute(module, &function->attributes, &attribute);
}

void lilac_launch_split_put(lilac_tile_module *module, lilac_tile_function *function,
                            const lilac_launch_iterations *iterations, uint32_t clocks,
                            uint32_t loads, uint32_t bytes) {
    lilac_tile_attribute *fields = lilac_arena_array(module->arena, lilac_tile_attribute, 5);
    fields[0] = sum_of(module, "iterations", &iterations->numerator);
    fields[1] = number_of(module, "divisor", iterations->divisor);
    fields[2] = number_of(module, "clocks", clocks);
    fields[3] = number_of(module, "loads", loads);
    fields[4] = number_of(module, "bytes", bytes);
    put_dictionary(module, function, "lilac.launch_split", 5, fields);
}

void lilac_launch_least_put(lilac_tile_module *module, lilac_tile_function *function,
                            const lilac_launch_iterations *iterations, uint32_t least) {
    lilac_tile_attribute *fields = lilac_arena_array(module->arena, lilac_tile_attribute, 3);
    fields[0] = sum_of(module, "iterations", &iterations->numerator);
    fields[1] = number_of(module, "divisor", iterations->divisor);
    fields[2] = number_of(module, "least", least);
    put_dictionary(module, function, "lilac.launch_least", 3, fields);
}
