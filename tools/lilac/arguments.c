/* A kernel's arguments: NAME=VALUE strings bound to the parameters of a function, and to buffers
 * that only pointers reach.
 *
 *   cols=4096                 a number, by the parameter's type, in its range
 *   x=@x.npy                  a buffer: the contents of a numpy file
 *   o=zeros:f16:4x4096        a buffer of zeros
 *   o=empty:f16:4x4096        a buffer that nothing has written: reading it is reported
 *   x=random:f16:4x4096       floats from -1 to 1; i=random:i32:4096:10, integers from 0 to 9: the
 *                             same ones in every run, others for every parameter
 *   p=null, y=same:x+128, ptrs=pointers:a,b+16,null (pointers.c)
 *   m=tensor_map:x:64x64:swizzle=128 (tensor_maps.c)
 *   d=@x.npy                  a tensor descriptor: the shape of the buffer too (descriptors.c)
 *
 * Every string is a source text of its own ("<argument 3>"), so a diagnostic can point into it;
 * a note points at the parameter in the kernel's text. One run records all errors.
 */
#include "arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- places for diagnostics -------------------------------------------------------------- */

static void note_parameter(const value_binding *binding) {
    if (binding->name < binding->arguments->count) {
        const kernel_parameter *parameter =
            &binding->arguments->signature.parameters[binding->name];
        lilac_note(binding->context, parameter->position, 0, "parameter '%s' has type %s",
                   parameter->name, parameter->type);
    }
}

bool argument_refuse(const value_binding *binding, size_t at, const char *id, const char *format,
                     ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(binding->context,
                 (lilac_position){binding->source, binding->offset + (uint32_t)at}, 0, id, format,
                 arguments);
    va_end(arguments);
    note_parameter(binding);
    return false;
}

bool argument_misuse(const value_binding *binding, size_t at, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    lilac_verror(binding->context,
                 (lilac_position){binding->source, binding->offset + (uint32_t)at}, 0,
                 "argument-pointer", format, arguments);
    va_end(arguments);
    note_parameter(binding);
    binding->arguments->misused = true;
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

/* "1e3", "1_000" and "4.0" are whole numbers in other spellings: the message has the accepted one.
 */
static bool refuse_spelling(const value_binding *binding) {
    char digits[64], *end;
    size_t length = 0;
    for (const char *c = binding->value; *c != '\0' && length + 1 < sizeof digits; c++) {
        if (*c != '_' && *c != '\'') {
            digits[length++] = *c;
        }
    }
    digits[length] = '\0';
    const double number = strtod(digits, &end);
    const bool whole =
        end != digits && *end == '\0' && fabs(number) < 0x1p53 && number == (double)(int64_t)number;
    if (whole) {
        return argument_refuse(binding, 0, "argument-type",
                               "'%s' is not the spelling of an integer: write %" PRId64,
                               binding->value, (int64_t)number);
    }
    return argument_refuse(binding, 0, "argument-type",
                           "'%s' is no integer: decimal digits, or 0x and hexadecimal ones",
                           binding->value);
}

/* Decimal digits, or 0x and hexadecimal ones? */
static bool is_spelt_as_integer(const char *string) {
    const bool hex = string[0] == '0' && (string[1] == 'x' || string[1] == 'X');
    const char *digits = string + (hex ? 2 : 0);
    const size_t length = strlen(digits);
    return length > 0 && strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") == length;
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
    } else if (!is_spelt_as_integer(string + negative)) {
        return refuse_spelling(binding);
    } else if (!read_magnitude(string + negative, &magnitude)) {
        return argument_refuse(binding, 0, "argument-range", "'%s' does not fit %s", string,
                               lilac_scalar_name(scalar));
    }
    const uint64_t most = negative ? UINT64_C(1) << (bits - 1) : UINT64_MAX >> (64 - bits);
    if (magnitude > most) {
        return argument_refuse(binding, 0, "argument-range", "%s does not fit %s", string,
                               lilac_scalar_name(scalar));
    }
    *result = lilac_scalar_mask(scalar, negative ? 0 - magnitude : magnitude);
    return true;
}

static bool bind_float(const value_binding *binding, lilac_scalar scalar, uint64_t *result) {
    char *end;
    const double value = strtod(binding->value, &end);
    if (end == binding->value || *end != '\0') {
        return argument_refuse(binding, 0, "argument-type", "'%s' is no number", binding->value);
    }
    *result = lilac_scalar_encode(scalar, value, LILAC_ROUND_NEAREST_EVEN, false);
    const bool named = strpbrk(binding->value, "nN") != NULL; /* inf, nan: meant as such */
    if (!named && !isfinite(lilac_scalar_decode(scalar, *result))) {
        return argument_refuse(binding, 0, "argument-range", "%s does not fit %s", binding->value,
                               lilac_scalar_name(scalar));
    }
    return true;
}

int64_t argument_divisor(const bound_arguments *arguments, uint32_t name) {
    return name >= arguments->count ? 1 : arguments->signature.parameters[name].divisor;
}

/* The kernel is compiled for multiples of the divisor; other values lead to wrong results. */
static bool check_divisibility(const value_binding *binding, lilac_scalar scalar, uint64_t bits) {
    const int64_t divisor = argument_divisor(binding->arguments, binding->name);
    if (divisor > 1 && lilac_scalar_signed(scalar, bits) % divisor != 0) {
        return argument_refuse(binding, 0, "argument-not-divisible",
                               "%s is no multiple of %" PRId64
                               ", for which this kernel is specialised (tt.divisibility)",
                               binding->value, divisor);
    }
    return true;
}

static bool bind_number(const value_binding *binding, lilac_scalar scalar) {
    uint64_t *result = &binding->arguments->bits[binding->name];
    if (binding->value[0] == '@') {
        return argument_refuse(binding, 0, "argument-type", "a number is needed here, not a file");
    }
    if (pointer_is(binding->value)) {
        return argument_refuse(binding, 0, "argument-type",
                               "a number is needed here, not a pointer");
    }
    if (lilac_scalar_is_float(scalar)) {
        return bind_float(binding, scalar, result);
    }
    return bind_integer(binding, scalar, result) && check_divisibility(binding, scalar, *result);
}

/* ---- binding ---------------------------------------------------------------------------- */

/* Binds a pointer to `scalar`; NULL: a pointer to elements of any type. */
static bool bind_pointer(const value_binding *binding, const lilac_scalar *scalar) {
    binding->arguments->names[binding->name].is_pointer = true;
    return (pointer_is(binding->value) ? pointer_bind : buffer_bind)(binding, scalar);
}

static bool bind_value(const value_binding *binding) {
    if (binding->name >= binding->arguments->count) {
        return bind_pointer(binding, NULL);
    }
    const kernel_parameter *parameter = &binding->arguments->signature.parameters[binding->name];
    switch (parameter->kind) {
    case PARAMETER_NUMBER:
        return bind_number(binding, parameter->scalar);
    case PARAMETER_POINTER:
        return bind_pointer(binding, &parameter->scalar);
    case PARAMETER_ADDRESS:
        return bind_pointer(binding, NULL);
    case PARAMETER_TENSOR_MAP:
        return parameter->map.rank > 0 && !tensor_map_is(binding->value)
                   ? bind_pointer(binding, &parameter->scalar) &&
                         tensor_map_bind_buffer(binding, parameter)
                   : tensor_map_bind(binding);
    case PARAMETER_UNSUPPORTED:
        break;
    }
    return argument_refuse(binding, 0, "unsupported-parameter",
                           "arguments of the type %s are not supported", parameter->type);
}

int32_t arguments_find(const bound_arguments *arguments, const char *name, size_t length) {
    for (uint32_t i = 0; i < arguments->name_count; i++) {
        const char *candidate = arguments->names[i].name;
        if (strlen(candidate) == length && memcmp(candidate, name, length) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

/* The string as a source of its own, "<argument 3>"; source 0: it does not fit. */
static value_binding binding_of(bound_arguments *arguments, lilac_context *context,
                                const char *string, const char *what, uint32_t number) {
    const size_t length = strcspn(string, "=");
    char title[32];
    (void)snprintf(title, sizeof title, "<%s %u>", what, number);
    return (value_binding){
        .context = context,
        .arguments = arguments,
        .source = lilac_source_add(context, title, string, strlen(string)),
        .offset = (uint32_t)length + 1,
        .value = string + length + 1,
    };
}

static bool bind_argument(bound_arguments *arguments, lilac_context *context, const char *string,
                          uint32_t number) {
    const size_t length = strcspn(string, "=");
    const kernel_signature *kernel = &arguments->signature;
    const int32_t found = arguments_find(arguments, string, length);
    value_binding binding = binding_of(arguments, context, string, "argument", number);
    if (binding.source == 0) {
        return false;
    }
    if (found < 0 || (uint32_t)found >= arguments->count) {
        lilac_error(context, (lilac_position){binding.source, 0}, 0, "unknown-argument",
                    "kernel '%s' has no parameter '%.*s'", kernel->name, (int)length, string);
        lilac_note(context, kernel->position, 0, "the kernel is declared here");
        return false;
    }
    binding.name = (uint32_t)found;
    bound_name *name = &arguments->names[found];
    if (kernel->parameters[found].made) {
        return argument_refuse(&binding, 0, "argument-type",
                               "'%s' is a tensor map that the launcher makes from the other "
                               "arguments",
                               name->name);
    }
    if (name->bound) {
        return argument_refuse(&binding, 0, "duplicate-argument",
                               "'%s' has been given a value before", name->name);
    }
    name->bound = true;
    name->failed = !bind_value(&binding);
    return !name->failed;
}

/* Binds a buffer of --buffer, which has a separate name. */
static bool bind_buffer(bound_arguments *arguments, lilac_context *context, const char *string,
                        uint32_t number) {
    const size_t length = strcspn(string, "=");
    value_binding binding = binding_of(arguments, context, string, "buffer", number);
    if (binding.source == 0) {
        return false;
    }
    const int32_t found = arguments_find(arguments, string, length);
    if (found >= 0 || (length == 4 && memcmp(string, "null", length) == 0)) {
        lilac_error(context, (lilac_position){binding.source, 0}, 0, "duplicate-argument",
                    found < 0 ? "a buffer cannot have the name '%.*s'"
                    : (uint32_t)found < arguments->count
                        ? "'%.*s' is a parameter: give its value with --arg"
                        : "there is a buffer '%.*s' already",
                    (int)length, string);
        return false;
    }
    binding.name = arguments->name_count++;
    bound_name *name = &arguments->names[binding.name];
    *name = (bound_name){.name = lilac_arena_copy(lilac_context_arena(context), string, length),
                         .bound = true,
                         .target.buffer = POINTER_NULL};
    name->failed = !bind_value(&binding);
    return !name->failed;
}

static void refuse_missing(bound_arguments *arguments, lilac_context *context, uint32_t index) {
    const kernel_parameter *parameter = &arguments->signature.parameters[index];
    const char *form = parameter->kind == PARAMETER_NUMBER ? "NUMBER"
                       : parameter->kind == PARAMETER_TENSOR_MAP && parameter->map.rank == 0
                           ? "tensor_map:BUFFER:64x64"
                           : "@file.npy";
    lilac_error(context, parameter->position, 0, "missing-argument",
                "parameter '%s' of type %s has no value: give --arg %s=%s", parameter->name,
                parameter->type, parameter->name, form);
    arguments->names[index].failed = true;
}

bool arguments_bind(bound_arguments *arguments, lilac_context *context,
                    const kernel_signature *signature, const string_list *given,
                    const string_list *buffers) {
    const uint32_t count = signature->count, most = count + buffers->count;
    lilac_arena *arena = lilac_context_arena(context);
    *arguments = (bound_arguments){
        .count = count,
        .name_count = count,
        .signature = *signature,
        .bits = lilac_arena_array(arena, uint64_t, count),
        .names = lilac_arena_array(arena, bound_name, most),
        .contents = lilac_arena_array(arena, npy, most),
        .buffers = lilac_arena_array(arena, lilac_sim_buffer, most),
    };
    for (uint32_t i = 0; i < count; i++) {
        arguments->names[i] =
            (bound_name){.name = signature->parameters[i].name, .target.buffer = POINTER_NULL};
    }
    if (signature->malformed) {
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < given->count; i++) {
        good &= bind_argument(arguments, context, given->list[i], i + 1);
    }
    for (uint32_t i = 0; i < buffers->count; i++) {
        good &= bind_buffer(arguments, context, buffers->list[i], i + 1);
    }
    descriptors_find(arguments);
    tensor_maps_add_made(arguments);
    for (uint32_t i = 0; i < count; i++) {
        if (!arguments->names[i].bound) {
            refuse_missing(arguments, context, i);
            good = false;
        }
    }
    good &= pointers_resolve(arguments);
    good &= tensor_maps_resolve(arguments);
    good &= descriptors_fill(arguments, context);
    if (good) {
        lilac_sim_place(arguments->buffers, arguments->buffer_count);
        uint64_t *addresses = lilac_arena_array(arena, uint64_t, arguments->buffer_count + 1);
        for (uint32_t i = 0; i < arguments->buffer_count; i++) {
            addresses[i] = arguments->buffers[i].address;
        }
        arguments_place(arguments, addresses);
    }
    return good;
}

void arguments_clear(bound_arguments *arguments) {
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        npy_clear(&arguments->contents[i]);
        lilac_heap_free(arguments->buffers[i].written);
    }
    pointers_clear(arguments);
    tensor_maps_clear(arguments);
    *arguments = (bound_arguments){0};
}
