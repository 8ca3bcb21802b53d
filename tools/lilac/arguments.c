/* A kernel's arguments: NAME=VALUE strings bound to the parameters of a function.
 *
 *   cols=4096                 a number, by the parameter's type, in its range
 *   x=@x.npy                  a buffer: the contents of a numpy file
 *   o=zeros:f16:4x4096        a buffer of zeros
 *   o=empty:f16:4x4096        a buffer that nothing has written: reading it is reported
 *   x=random:f16:4x4096       floats from -1 to 1; i=random:i32:4096:10, integers from 0 to 9: the
 *                             same ones in every run, others for every parameter
 *
 * Every string is a source text of its own ("<argument 3>"), so a diagnostic can point into it;
 * a note points at the parameter in the kernel's text. All that is wrong is recorded in one go.
 */
#include "command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One string that is being bound. */
typedef struct value_binding {
    lilac_context *context;
    bound_arguments *arguments;
    uint32_t source; /* the string as a text */
    uint32_t offset; /* of the value in it */
    const char *value;
    uint32_t parameter;
} value_binding;

/* ---- places for diagnostics -------------------------------------------------------------- */

/* Where parameter number `index` stands in the kernel's text: the values at the outermost level of
 * the list that opens after the function's name are the parameters. */
static lilac_position parameter_position(lilac_context *context,
                                         const lilac_tile_function *function, uint32_t index) {
    lilac_scanner scanner;
    uint32_t depth = 0, seen = 0;
    if (function->position.source == 0) {
        return function->position;
    }
    lilac_scanner_init(&scanner, context, function->position.source);
    lilac_scanner_seek(&scanner, function->position.offset);
    for (; scanner.kind != LILAC_TOKEN_END; lilac_scanner_next(&scanner)) {
        if (lilac_scanner_is(&scanner, '(') || lilac_scanner_is(&scanner, '{')) {
            depth++;
        } else if (lilac_scanner_is(&scanner, ')') || lilac_scanner_is(&scanner, '}')) {
            depth--;
            if (depth == 0) {
                break;
            }
        } else if (scanner.kind == LILAC_TOKEN_VALUE && depth == 1 && seen++ == index) {
            return lilac_scanner_position(&scanner);
        }
    }
    return function->position;
}

static const char *parameter_name(const lilac_tile_function *function, uint32_t index) {
    const char *name = function->parameters[index]->name;
    return name != NULL ? name : "";
}

static void note_parameter(const value_binding *binding) {
    const lilac_tile_function *function = binding->arguments->function;
    const lilac_tile_value *parameter = function->parameters[binding->parameter];
    lilac_text type;
    lilac_text_init(&type);
    lilac_tile_print_type(&type, parameter->type);
    lilac_note(binding->context, parameter_position(binding->context, function, binding->parameter),
               0, "parameter '%s' has type %s", parameter_name(function, binding->parameter),
               lilac_text_get(&type));
    lilac_text_clear(&type);
}

/* Records an error at the value, and a note at the parameter. Always false. */
LILAC_PRINTF(3, 4)
static bool refuse(const value_binding *binding, const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(binding->context, (lilac_position){binding->source, binding->offset}, 0, id,
                 format, arguments);
    va_end(arguments);
    note_parameter(binding);
    return false;
}

/* ---- numbers ---------------------------------------------------------------------------- */

static bool read_magnitude(const char *string, uint64_t *value) {
    if (string[0] == '0' && (string[1] == 'x' || string[1] == 'X')) {
        char *end;
        if (strspn(string + 2, "0123456789abcdefABCDEF") != strlen(string + 2) || !string[2]) {
            return false;
        }
        errno = 0;
        *value = strtoull(string + 2, &end, 16);
        return errno == 0;
    }
    return read_number(string, UINT64_MAX, value);
}

static bool bind_integer(const value_binding *binding, lilac_scalar scalar, uint64_t *result) {
    const uint32_t bits = lilac_scalar_bits(scalar);
    const char *string = binding->value;
    const bool negative = string[0] == '-';
    uint64_t magnitude = 0;
    if (scalar == LILAC_I1 && strcmp(string, "true") == 0) {
        magnitude = 1;
    } else if (scalar == LILAC_I1 && strcmp(string, "false") == 0) {
        magnitude = 0;
    } else if (strspn(string + negative, "0123456789abcdefABCDEFxX") != strlen(string + negative) ||
               string[negative] < '0' || string[negative] > '9') {
        return refuse(binding, "argument-type", "'%s' is no integer", string);
    } else if (!read_magnitude(string + negative, &magnitude)) {
        return refuse(binding, "argument-range", "'%s' does not fit %s", string,
                      lilac_scalar_name(scalar));
    }
    const uint64_t most = negative ? UINT64_C(1) << (bits - 1) : UINT64_MAX >> (64 - bits);
    if (magnitude > most) {
        return refuse(binding, "argument-range", "%s does not fit %s", string,
                      lilac_scalar_name(scalar));
    }
    *result = lilac_scalar_mask(scalar, negative ? 0 - magnitude : magnitude);
    return true;
}

static bool bind_float(const value_binding *binding, lilac_scalar scalar, uint64_t *result) {
    char *end;
    const double value = strtod(binding->value, &end);
    if (end == binding->value || *end != '\0') {
        return refuse(binding, "argument-type", "'%s' is no number", binding->value);
    }
    *result = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
    const bool named = strpbrk(binding->value, "nN") != NULL; /* inf, nan: meant as such */
    if (!named && !isfinite(lilac_scalar_decode(scalar, *result))) {
        return refuse(binding, "argument-range", "%s does not fit %s", binding->value,
                      lilac_scalar_name(scalar));
    }
    return true;
}

/* The kernel was compiled for multiples of this: another value would give wrong results. */
static bool check_divisibility(const value_binding *binding, lilac_scalar scalar, uint64_t bits) {
    const int64_t divisor = lilac_tile_find_integer(
        &binding->arguments->function->parameter_attributes[binding->parameter], "tt.divisibility",
        1);
    if (divisor > 1 && lilac_scalar_signed(scalar, bits) % divisor != 0) {
        return refuse(binding, "argument-not-divisible",
                      "%s is no multiple of %" PRId64 ", for which this kernel is specialised "
                      "(tt.divisibility)",
                      binding->value, divisor);
    }
    return true;
}

static bool bind_number(const value_binding *binding, lilac_scalar scalar) {
    uint64_t *result = &binding->arguments->bits[binding->parameter];
    if (strchr("@", binding->value[0]) != NULL && binding->value[0] != '\0') {
        return refuse(binding, "argument-type", "a number is needed here, not a file");
    }
    if (lilac_scalar_is_float(scalar)) {
        return bind_float(binding, scalar, result);
    }
    if (lilac_scalar_bits(scalar) > 64) {
        return refuse(binding, "unsupported-parameter", "arguments of this type are not supported");
    }
    return bind_integer(binding, scalar, result) && check_divisibility(binding, scalar, *result);
}

/* ---- buffers ---------------------------------------------------------------------------- */

static bool bind_file(const value_binding *binding, lilac_scalar scalar, npy *array) {
    const char *path = binding->value + 1;
    lilac_text text;
    lilac_text_init(&text);
    bool good = npy_read(array, path, &text);
    if (!good) {
        refuse(binding, "invalid-npy", "%s: %s", path, lilac_text_get(&text));
    } else if (!npy_holds(array, scalar)) {
        npy needed;
        npy_type_name(&text, array->kind, array->bytes);
        lilac_text_puts(&text, ", but the parameter points to ");
        lilac_text_puts(&text, lilac_scalar_name(scalar));
        if (npy_type_for(&needed, scalar)) {
            lilac_text_puts(&text, ", which needs ");
            npy_type_name(&text, needed.kind, needed.bytes);
        }
        good = refuse(binding, "argument-type", "%s holds %s", path, lilac_text_get(&text));
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

/* Random elements; of long buffers the first million and more are repeated. */
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

/* The bound after the shape of random integers, or, for floats, nothing. */
static bool read_bound(const value_binding *binding, lilac_scalar scalar, const char *shape,
                       uint64_t *bound) {
    const char *colon = strchr(shape, ':');
    const uint32_t bits = lilac_scalar_bits(scalar);
    *bound = 1;
    if (lilac_scalar_is_float(scalar)) {
        return colon == NULL || refuse(binding, "argument-type", "random floats take no bound");
    }
    if (colon == NULL) {
        return refuse(binding, "argument-type",
                      "random integers need a bound: random:i32:4x16:100");
    }
    const uint64_t most = bits == 1 ? 2 : UINT64_C(1) << (bits - 1);
    return (read_number(colon + 1, most, bound) && *bound != 0) ||
           refuse(binding, "argument-range", "'%s' is no bound of %s", colon + 1,
                  lilac_scalar_name(scalar));
}

/* "zeros:f16:4x4096", "empty:…" and "random:…", past the colon. */
static bool bind_made(const value_binding *binding, lilac_scalar scalar, const char *type,
                      npy *array) {
    const char *colon = strchr(type, ':');
    lilac_scalar written;
    if (colon == NULL || !lilac_scalar_read(type, (size_t)(colon - type), &written)) {
        return refuse(binding, "argument-type",
                      "'%s' does not name an element type: zeros:f16:4x16", binding->value);
    }
    if (written != scalar) {
        return refuse(binding, "argument-type", "a buffer of %s, but the parameter points to %s",
                      lilac_scalar_name(written), lilac_scalar_name(scalar));
    }
    *array = (npy){0};
    if (!npy_type_for(array, scalar)) {
        return refuse(binding, "unsupported-parameter", "buffers of %s are not supported",
                      lilac_scalar_name(scalar));
    }
    const bool random = binding->value[0] == 'r';
    uint64_t bound = 1;
    const char *end = colon + 1 + strcspn(colon + 1, random ? ":" : "");
    if (!read_shape(array, colon + 1, end)) {
        return refuse(binding, "argument-type",
                      "'%s' is no shape of at most 2^29 elements: zeros:f16:4x16", colon + 1);
    }
    if (random && !read_bound(binding, scalar, colon + 1, &bound)) {
        return false;
    }
    const size_t size = array->count * array->bytes;
    array->data = lilac_heap_grow(NULL, size + 1);
    if (random) {
        fill_random(array, scalar, bound, binding->parameter);
    } else {
        memset(array->data, binding->value[0] == 'e' ? 0xFF : 0, size);
    }
    return true;
}

static bool bind_buffer(const value_binding *binding, lilac_scalar scalar) {
    bound_arguments *arguments = binding->arguments;
    npy *array = &arguments->arrays[binding->parameter];
    const char *value = binding->value;
    const bool empty = strncmp(value, "empty:", 6) == 0;
    bool good;
    if (value[0] == '@') {
        good = bind_file(binding, scalar, array);
    } else if (empty || strncmp(value, "zeros:", 6) == 0 || strncmp(value, "random:", 7) == 0) {
        good = bind_made(binding, scalar, strchr(value, ':') + 1, array);
    } else {
        good = refuse(binding, "argument-type",
                      "a buffer is needed here: @file.npy, or zeros:, empty: or "
                      "random:TYPE:SHAPE");
    }
    if (!good) {
        return false;
    }
    const uint64_t size = array->count * array->bytes;
    lilac_sim_buffer *buffer = &arguments->buffers[arguments->buffer_count];
    *buffer = (lilac_sim_buffer){
        .name = parameter_name(arguments->function, binding->parameter),
        .bytes = array->data,
        .size = size,
    };
    if (empty) {
        buffer->written = lilac_heap_grow(NULL, size + 1);
        memset(buffer->written, 0, size + 1);
    }
    arguments->scalars[binding->parameter] = scalar;
    arguments->buffer_of[binding->parameter] = (int32_t)arguments->buffer_count++;
    return true;
}

/* ---- binding ---------------------------------------------------------------------------- */

static bool bind_value(const value_binding *binding) {
    const lilac_tile_type *type =
        binding->arguments->function->parameters[binding->parameter]->type;
    if (type->kind == LILAC_TILE_SCALAR) {
        return bind_number(binding, type->scalar);
    }
    if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_SCALAR) {
        return bind_buffer(binding, type->element->scalar);
    }
    return refuse(binding, "unsupported-parameter", "arguments of this type are not supported");
}

int32_t arguments_find(const bound_arguments *arguments, const char *name, size_t length) {
    for (uint32_t i = 0; i < arguments->count; i++) {
        const char *candidate = parameter_name(arguments->function, i);
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool refuse_name(const value_binding *binding, const char *name) {
    const lilac_tile_function *function = binding->arguments->function;
    lilac_error(binding->context, (lilac_position){binding->source, 0}, 0, "unknown-argument",
                "kernel '%s' has no parameter '%s'", function->name, name);
    lilac_note(binding->context, function->position, 0, "the kernel is declared here");
    return false;
}

static bool bind_string(bound_arguments *arguments, lilac_context *context, const char *string,
                        uint32_t number, bool *bound) {
    const size_t length = strcspn(string, "=");
    char *name = lilac_arena_copy(lilac_context_arena(context), string, length);
    char title[32];
    const int32_t parameter = arguments_find(arguments, name, length);
    lilac_text text;
    lilac_text_init(&text);
    lilac_text_printf(&text, "<argument %u>", number);
    memcpy(title, lilac_text_get(&text), text.length + 1);
    lilac_text_clear(&text);
    const value_binding binding = {
        .context = context,
        .arguments = arguments,
        .source = lilac_source_add(context, title, string, strlen(string)),
        .offset = (uint32_t)length + 1,
        .value = string + length + 1,
        .parameter = parameter >= 0 ? (uint32_t)parameter : 0,
    };
    if (binding.source == 0) {
        return false;
    }
    if (parameter < 0) {
        return refuse_name(&binding, name);
    }
    if (bound[parameter]) {
        return refuse(&binding, "duplicate-argument", "'%s' has been given a value before", name);
    }
    bound[parameter] = true;
    return bind_value(&binding);
}

static bool refuse_missing(bound_arguments *arguments, lilac_context *context, uint32_t index) {
    const lilac_tile_function *function = arguments->function;
    const lilac_tile_value *parameter = function->parameters[index];
    lilac_text type;
    lilac_text_init(&type);
    lilac_tile_print_type(&type, parameter->type);
    lilac_error(context, parameter_position(context, function, index), 0, "missing-argument",
                "parameter '%s' of type %s has no value: give --arg %s=%s",
                parameter_name(function, index), lilac_text_get(&type),
                parameter_name(function, index),
                lilac_tile_is_pointer(parameter->type) ? "@file.npy" : "NUMBER");
    lilac_text_clear(&type);
    return false;
}

static void place_buffers(bound_arguments *arguments) {
    lilac_sim_place(arguments->buffers, arguments->buffer_count);
    for (uint32_t i = 0; i < arguments->count; i++) {
        if (arguments->buffer_of[i] >= 0) {
            arguments->bits[i] = arguments->buffers[arguments->buffer_of[i]].address;
        }
    }
}

bool arguments_bind(bound_arguments *arguments, lilac_context *context,
                    const lilac_tile_function *function, const string_list *given) {
    const uint32_t count = function->parameter_count;
    lilac_arena *arena = lilac_context_arena(context);
    *arguments = (bound_arguments){
        .count = count,
        .function = function,
        .bits = lilac_arena_array(arena, uint64_t, count),
        .arrays = lilac_arena_array(arena, npy, count),
        .buffers = lilac_arena_array(arena, lilac_sim_buffer, count),
        .buffer_of = lilac_arena_array(arena, int32_t, count),
        .scalars = lilac_arena_array(arena, lilac_scalar, count),
    };
    for (uint32_t i = 0; i < count; i++) {
        arguments->buffer_of[i] = -1;
    }
    bool *bound = lilac_arena_array(arena, bool, count);
    bool good = true;
    for (uint32_t i = 0; i < given->count; i++) {
        good &= bind_string(arguments, context, given->list[i], i + 1, bound);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!bound[i]) {
            good = refuse_missing(arguments, context, i);
        }
    }
    place_buffers(arguments);
    return good;
}

void arguments_clear(bound_arguments *arguments) {
    for (uint32_t i = 0; i < arguments->count; i++) {
        npy_clear(&arguments->arrays[i]);
    }
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        lilac_heap_free(arguments->buffers[i].written);
    }
    *arguments = (bound_arguments){0};
}
