/* write_launch_maps: how a launcher makes a parameter that is a tensor map, as an attribute.
 *
 *     lilac.launch_map = {base = 0 : i32, offset = [], sizes = [[array<i64: 1, 3>], …],
 *                         strides = [[array<i64: 2, 5, 4>]], pitch = 32 : i32}
 *
 *     lilac.launch_split = {iterations = [array<i64: 1, 5>, array<i64: 63>], divisor = 64 : i32,
 *                           clocks = 712 : i32, bytes = 65536 : i32}
 *     lilac.launch_least = {iterations = …, divisor = 64 : i32, least = 6 : i32}
 *
 * A sum is a list of products: a factor, and the indices of parameters. The example has sizes
 * p₃, …, the stride 2 · p₅ · p₄ and (p₅ + 63) / 64 iterations. */
#include "write_launch_maps.h"

#include "affine.h"

#include <lilac/tile_loops.h>

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

/* ---- iterations ------------------------------------------------------------------------------ */

/* The sum that the value is, of integer parameters only. */
static bool find_sum(lilac_sum *sum, const lilac_tile_value *value, lilac_arena *arena) {
    lilac_affine form;
    if (!lilac_affine_of(&form, value, arena) || form.base != NULL ||
        !lilac_affine_is_uniform(&form)) {
        return false;
    }
    *sum = form.uniform;
    bool good = fits(sum);
    for (uint32_t i = 0; i < sum->count; i++) {
        for (uint32_t k = 0; k < sum->terms[i].count; k++) {
            good = good && lilac_is_parameter(sum->terms[i].values[k]);
        }
    }
    return good;
}

/* The dividend of a division by a positive constant, rounded down or up; else the value itself. */
static const lilac_tile_value *dividend(const lilac_tile_value *value, int64_t *divisor, bool *up) {
    const lilac_tile_op *op = value->op;
    *divisor = 1;
    *up = false;
    const bool rounded_up = op != NULL && op->code == LILAC_TILE_OP_ARITH_CEILDIVSI;
    if (op != NULL && (rounded_up || op->code == LILAC_TILE_OP_ARITH_DIVSI) &&
        lilac_tile_constant(op->operands[1].value, divisor) && *divisor > 0) {
        *up = rounded_up;
        return op->operands[0].value;
    }
    *divisor = 1;
    return value;
}

/* floor(x / d) - l iterations of step 1 are floor((x - d · l + d · (s - 1)) / (d · s)) of step s. */
bool lilac_launch_iterations_of(lilac_launch_iterations *iterations, const lilac_tile_op *loop,
                                int64_t step, lilac_arena *arena) {
    lilac_sum lower;
    int64_t divisor, extra;
    bool up;
    const lilac_tile_value *upper = dividend(lilac_tile_upper_bound(loop), &divisor, &up);
    const lilac_product scale = lilac_product_number(divisor);
    if (!find_sum(&iterations->numerator, upper, arena) ||
        !find_sum(&lower, lilac_tile_lower_bound(loop), arena) ||
        !lilac_sum_scale(&lower, &scale) || !lilac_sum_subtract(&iterations->numerator, &lower) ||
        __builtin_mul_overflow(divisor, step - 1, &extra) ||
        __builtin_mul_overflow(divisor, step, &iterations->divisor) ||
        iterations->divisor > INT32_MAX) {
        return false;
    }
    return lilac_sum_add_number(&iterations->numerator, extra + (up ? divisor - 1 : 0)) &&
           fits(&iterations->numerator);
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
                            uint32_t bytes) {
    lilac_tile_attribute *fields = lilac_arena_array(module->arena, lilac_tile_attribute, 4);
    fields[0] = sum_of(module, "iterations", &iterations->numerator);
    fields[1] = number_of(module, "divisor", iterations->divisor);
    fields[2] = number_of(module, "clocks", clocks);
    fields[3] = number_of(module, "bytes", bytes);
    put_dictionary(module, function, "lilac.launch_split", 4, fields);
}

void lilac_launch_least_put(lilac_tile_module *module, lilac_tile_function *function,
                            const lilac_launch_iterations *iterations, uint32_t least) {
    lilac_tile_attribute *fields = lilac_arena_array(module->arena, lilac_tile_attribute, 3);
    fields[0] = sum_of(module, "iterations", &iterations->numerator);
    fields[1] = number_of(module, "divisor", iterations->divisor);
    fields[2] = number_of(module, "least", least);
    put_dictionary(module, function, "lilac.launch_least", 3, fields);
}
