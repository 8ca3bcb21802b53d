/* make_launch_maps: tensor maps that the launcher makes (tensor_map.h). Checks the conditions of a
 * launch, and makes each map from its recipe and the arguments.
 *
 *     recipe    base %a, offset [], sizes [%m], [%k], strides [%s]
 *     map       address a, dims {k, m}, strides {2 · s}                        of f16 */
#include <lilac/simt.h>
#include <lilac/tensor_map.h>

#include <assert.h>

bool lilac_launch_sum_evaluate(int64_t *result, const lilac_launch_sum *sum,
                               const int64_t *values) {
    *result = 0;
    for (uint32_t i = 0; i < sum->count; i++) {
        const lilac_launch_term *term = &sum->terms[i];
        int64_t product = term->factor;
        for (uint32_t k = 0; k < term->parameter_count; k++) {
            const int64_t divisor = term->divisors[k] > 0 ? term->divisors[k] : 1;
            if (__builtin_mul_overflow(product, values[term->parameters[k]] / divisor, &product)) {
                return false;
            }
        }
        if (__builtin_add_overflow(*result, product, result)) {
            return false;
        }
    }
    return true;
}

/* ---- conditions --------------------------------------------------------------------------- */

static bool refuse_grid(lilac_context *context, uint32_t size, uint32_t most, uint32_t dimension) {
    if (context != NULL) {
        lilac_error(
            context, (lilac_position){0}, 0, "launch-condition",
            "the grid is %u along %c; the kernel with the launcher's tensor maps is correct "
            "for at most %u",
            size, "xyz"[dimension], most);
    }
    return false;
}

static bool refuse_value(lilac_context *context, int64_t value, uint32_t parameter,
                         const char *const *names) {
    if (context != NULL) {
        lilac_error(context, (lilac_position){0}, 0, "launch-condition",
                    "parameter %u, '%s', is %lld; the kernel with the launcher's tensor maps is "
                    "correct for values from 0 to 2^30",
                    parameter, names[parameter] != NULL ? names[parameter] : "", (long long)value);
    }
    return false;
}

bool lilac_launch_conditions_check(lilac_context *context,
                                   const lilac_launch_conditions *conditions,
                                   const uint32_t grid[3], const int64_t *values,
                                   const char *const *names) {
    for (uint32_t d = 0; d < 3; d++) {
        if (grid[d] > conditions->grid[d]) {
            return refuse_grid(context, grid[d], conditions->grid[d], d);
        }
    }
    for (uint32_t i = 0; i < conditions->parameter_count; i++) {
        const uint32_t parameter = conditions->parameters[i];
        if (values[parameter] < 0 || values[parameter] > LILAC_LAUNCH_MOST) {
            return refuse_value(context, values[parameter], parameter, names);
        }
    }
    return true;
}

bool lilac_launch_maps_pay(const lilac_launch_least *least, uint32_t multiprocessors,
                           const uint32_t grid[3], const int64_t *values) {
    int64_t sum = 0;
    return least->divisor == 0 ||
           (uint64_t)grid[0] * grid[1] > multiprocessors / (grid[2] > 0 ? grid[2] : 1) ||
           !lilac_launch_sum_evaluate(&sum, &least->iterations, values) ||
           sum / least->divisor >= least->least;
}

/* ---- one map ------------------------------------------------------------------------------ */

static bool refuse_sum(lilac_context *context, const char *what, const char *sum) {
    if (context != NULL) {
        lilac_error(context, (lilac_position){0}, 0, "tensor-map",
                    "tensor map '%s': the %s is negative or exceeds 64 bits", what, sum);
    }
    return false;
}

/* The number of bytes that a sum of elements is; false: negative or too large. */
static bool bytes_of(uint64_t *bytes, const lilac_launch_sum *sum, const int64_t *values,
                     uint32_t element_bytes) {
    int64_t number = 0;
    const bool good = lilac_launch_sum_evaluate(&number, sum, values) && number >= 0 &&
                      !__builtin_mul_overflow(number, (int64_t)element_bytes, &number);
    *bytes = (uint64_t)number;
    return good;
}

/* The size rounded up to the multiple; false: negative or too large. */
static bool size_of(uint64_t *size, const lilac_launch_sum *sum, uint32_t multiple,
                    const int64_t *values) {
    const uint64_t unit = multiple > 0 ? multiple : 1;
    if (!bytes_of(size, sum, values, 1) || *size > INT64_MAX - unit) {
        return false;
    }
    *size = (*size + unit - 1) / unit * unit;
    return true;
}

bool lilac_launch_map_make(lilac_context *context, lilac_tensor_map *map,
                           const lilac_launch_map *recipe, const int64_t *values,
                           const char *what) {
    const uint32_t bytes = lilac_tensor_element_bytes(map->element), rank = recipe->rank;
    int64_t offset = 0;
    assert(map->rank == rank && rank <= LILAC_TENSOR_RANK);
    if (!lilac_launch_sum_evaluate(&offset, &recipe->offset, values) ||
        __builtin_mul_overflow(offset, (int64_t)bytes, &offset)) {
        return refuse_sum(context, what, "offset");
    }
    if (offset < 0 && (uint64_t)values[recipe->base] < (uint64_t)-offset) {
        return refuse_sum(context, what, "address");
    }
    map->address = (uint64_t)values[recipe->base] + (uint64_t)offset;
    for (uint32_t d = 0; d < rank; d++) {
        const uint32_t outer = rank - 1 - d;
        if (!size_of(&map->dims[d], &recipe->sizes[outer], recipe->multiples[outer], values)) {
            return refuse_sum(context, what, "size");
        }
        if (d > 0 && !bytes_of(&map->strides[d - 1], &recipe->strides[outer], values, bytes)) {
            return refuse_sum(context, what, "stride");
        }
    }
    return lilac_tensor_map_check(context, map, what);
}

bool lilac_launch_map_pays(const lilac_launch_map *recipe, const lilac_tensor_map *map) {
    bool pays = true;
    for (uint32_t d = 0; d + 1 < map->rank && recipe->pitch > 0; d++) {
        pays = pays && map->strides[d] % recipe->pitch == 0;
    }
    return pays;
}

/* ---- a launch ----------------------------------------------------------------------------- */

static int64_t value_of(const lilac_simt_parameter *parameter, uint64_t bits) {
    static const uint8_t widths[LILAC_SIMT_TYPE_COUNT] = {
        [LILAC_SIMT_I8] = 8, [LILAC_SIMT_I16] = 16, [LILAC_SIMT_I32] = 32};
    const uint32_t width = parameter->is_pointer ? 0 : widths[parameter->type];
    return width == 0 ? (int64_t)bits : (int64_t)(bits << (64 - width)) >> (64 - width);
}

bool lilac_launch_maps_make(lilac_context *context, lilac_tensor_map *maps,
                            const lilac_launch_maps *recipes, const lilac_simt_kernel *kernel,
                            const uint32_t grid[3], const uint64_t *arguments) {
    const uint32_t count = kernel->parameter_count;
    if (recipes->count == 0) {
        return true;
    }
    lilac_arena *arena = lilac_arena_create();
    int64_t *values = lilac_arena_array(arena, int64_t, count + 1);
    const char **names = lilac_arena_array(arena, const char *, count + 1);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = value_of(&kernel->parameters[i], arguments[i]);
        names[i] = kernel->parameters[i].name;
    }
    bool good = lilac_launch_conditions_check(context, &recipes->conditions, grid, values, names);
    for (uint32_t i = 0; i < recipes->count && good; i++) {
        const lilac_launch_map *recipe = &recipes->maps[i];
        const char *name = names[recipe->parameter];
        good = lilac_launch_map_make(context, &maps[arguments[recipe->parameter]], recipe, values,
                                     name != NULL ? name : "");
    }
    lilac_arena_destroy(arena);
    return good;
}
