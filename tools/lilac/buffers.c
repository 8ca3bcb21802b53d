/* The contents of a launch's buffers: a NumPy file, zeros, random or uninitialised elements. */
#include "arguments.h"

#include <string.h>

/* The scalar type of an array's elements. */
static lilac_scalar scalar_of(const npy *array) {
    static const lilac_scalar floats[] = {LILAC_F16, LILAC_F32, LILAC_F64};
    static const lilac_scalar integers[] = {LILAC_I8, LILAC_I16, LILAC_I32, LILAC_I64};
    const int log = __builtin_ctz(array->bytes);
    return array->kind == 'b' ? LILAC_I1 : array->kind == 'f' ? floats[log - 1] : integers[log];
}

static bool bind_file(const value_binding *binding, const lilac_scalar *wanted, npy *array,
                      lilac_scalar *scalar) {
    const char *path = binding->value + 1;
    lilac_text text;
    lilac_text_init(&text);
    bool good = npy_read(array, path, &text);
    if (!good) {
        argument_refuse(binding, 0, "invalid-npy", "%s: %s", path, lilac_text_get(&text));
    } else if (wanted == NULL) {
        *scalar = scalar_of(array);
    } else if (*scalar = *wanted, !npy_holds(array, *wanted)) {
        npy needed;
        npy_type_name(&text, array->kind, array->bytes);
        lilac_text_puts(&text, ", but the parameter points to ");
        lilac_text_puts(&text, lilac_scalar_name(*wanted));
        if (npy_type_for(&needed, *wanted)) {
            lilac_text_puts(&text, ", which needs ");
            npy_type_name(&text, needed.kind, needed.bytes);
        }
        good = argument_refuse(binding, 0, "argument-type", "%s holds %s", path,
                               lilac_text_get(&text));
    }
    lilac_text_clear(&text);
    return good;
}

/* "4x4096", up to `end`. */
static bool read_shape(npy *array, const char *string, const char *end) {
    array->count = 1;
    for (;;) {
        uint64_t size = 0;
        const char *start = string;
        for (; *string >= '0' && *string <= '9'; string++) {
            size = 10 * size + (uint64_t)(*string - '0');
            if (size > UINT32_MAX) {
                return false;
            }
        }
        if (string == start || array->rank == NPY_MAX_RANK) {
            return false;
        }
        array->shape[array->rank++] = size;
        if (size != 0 && array->count > (UINT64_C(1) << 29) / size) {
            return false;
        }
        array->count *= size;
        if (string == end) {
            return true;
        }
        if (*string++ != 'x') {
            return false;
        }
    }
}

/* Fills with random elements. In long buffers the first 2^20 + 7 elements are repeated. */
static void fill_random(npy *array, lilac_scalar scalar, uint64_t bound, uint32_t seed) {
    const uint64_t distinct = array->count < 1 << 20 ? array->count : (1 << 20) + 7;
    lilac_random random;
    lilac_random_seed(&random, seed);
    for (uint64_t i = 0; i < distinct && i < array->count; i++) {
        const double value = (double)(lilac_random_next(&random) >> 11) * 0x1p-52 - 1;
        const uint64_t bits =
            lilac_scalar_is_float(scalar)
                ? lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false)
                : lilac_random_below(&random, bound);
        for (uint32_t b = 0; b < array->bytes; b++) {
            array->data[i * array->bytes + b] = (uint8_t)(bits >> 8 * b);
        }
    }
    for (uint64_t at = distinct; at < array->count; at += distinct) {
        const uint64_t left = array->count - at;
        memcpy(array->data + at * array->bytes, array->data,
               (left < distinct ? left : distinct) * array->bytes);
    }
}

/* Reads the bound after the shape of random integers. Floats have none. */
static bool read_bound(const value_binding *binding, lilac_scalar scalar, const char *shape,
                       uint64_t *bound) {
    const char *colon = strchr(shape, ':');
    const uint32_t bits = lilac_scalar_bits(scalar);
    *bound = 1;
    if (lilac_scalar_is_float(scalar)) {
        return colon == NULL ||
               argument_refuse(binding, 0, "argument-type", "random floats take no bound");
    }
    if (colon == NULL) {
        return argument_refuse(binding, 0, "argument-type",
                               "random integers need a bound: random:i32:4x16:100");
    }
    const uint64_t most = bits == 1 ? 2 : UINT64_C(1) << (bits - 1);
    return (read_number(colon + 1, most, bound) && *bound != 0) ||
           argument_refuse(binding, 0, "argument-range", "'%s' is no bound of %s", colon + 1,
                           lilac_scalar_name(scalar));
}

/* Reads "zeros:f16:4x4096", "empty:…" or "random:…". */
static bool bind_made(const value_binding *binding, const lilac_scalar *wanted, npy *array,
                      lilac_scalar *made) {
    const char *type = strchr(binding->value, ':') + 1;
    const char *colon = strchr(type, ':');
    lilac_scalar scalar;
    if (colon == NULL || !lilac_scalar_read(type, (size_t)(colon - type), &scalar)) {
        return argument_refuse(binding, 0, "argument-type",
                               "'%s' does not name an element type: zeros:f16:4x16",
                               binding->value);
    }
    *made = scalar;
    if (wanted != NULL && scalar != *wanted) {
        return argument_refuse(binding, 0, "argument-type",
                               "a buffer of %s, but the parameter points to %s",
                               lilac_scalar_name(scalar), lilac_scalar_name(*wanted));
    }
    *array = (npy){0};
    if (!npy_type_for(array, scalar)) {
        return argument_refuse(binding, 0, "unsupported-parameter",
                               "buffers of %s are not supported", lilac_scalar_name(scalar));
    }
    const bool random = binding->value[0] == 'r';
    uint64_t bound = 1;
    const char *end = colon + 1 + strcspn(colon + 1, random ? ":" : "");
    if (!read_shape(array, colon + 1, end)) {
        return argument_refuse(binding, 0, "argument-type",
                               "'%s' is no shape of at most 2^29 elements: zeros:f16:4x16",
                               colon + 1);
    }
    if (random && !read_bound(binding, scalar, colon + 1, &bound)) {
        return false;
    }
    const size_t size = array->count * array->bytes;
    array->data = lilac_heap_grow(NULL, size + 1);
    if (random) {
        fill_random(array, scalar, bound, binding->name);
    } else {
        memset(array->data, binding->value[0] == 'e' ? 0xFF : 0, size);
    }
    return true;
}

void buffer_add(bound_arguments *arguments, uint32_t name, const npy *array, uint8_t *written) {
    const uint32_t index = arguments->buffer_count++;
    arguments->contents[index] = *array;
    arguments->buffers[index] = (lilac_sim_buffer){
        .name = arguments->names[name].name,
        .bytes = array->data,
        .size = array->count * array->bytes,
        .written = written,
    };
    arguments->names[name].target = (pointer_target){.buffer = (int32_t)index};
}

bool buffer_bind(const value_binding *binding, const lilac_scalar *scalar) {
    bound_name *name = &binding->arguments->names[binding->name];
    const char *value = binding->value;
    const bool empty = strncmp(value, "empty:", 6) == 0;
    npy array = {0};
    bool good;
    if (value[0] == '@') {
        good = bind_file(binding, scalar, &array, &name->scalar);
    } else if (empty || strncmp(value, "zeros:", 6) == 0 || strncmp(value, "random:", 7) == 0) {
        good = bind_made(binding, scalar, &array, &name->scalar);
    } else {
        good = argument_refuse(binding, 0, "argument-type",
                               "a buffer is needed here: @file.npy, or zeros:, empty: or "
                               "random:TYPE:SHAPE; or null, same:NAME or pointers:NAME,…");
    }
    if (!good) {
        npy_clear(&array);
        return false;
    }
    const uint64_t size = array.count * array.bytes;
    uint8_t *written = empty ? lilac_heap_grow(NULL, size + 1) : NULL;
    if (empty) {
        memset(written, 0, size + 1);
    }
    buffer_add(binding->arguments, binding->name, &array, written);
    return true;
}
