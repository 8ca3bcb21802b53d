/* --expect compares a buffer after the launch with a recorded one.
 *
 * The error is ‖out − ref‖ / ‖ref‖ in the Euclidean norm and double precision; the parameter's type
 * determines the values of the elements. Equal infinities, and NaN where NaN is expected, are no
 * error; any other difference that involves infinity or NaN is an infinite error.
 */
#include "command.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double usual_tolerance(lilac_scalar scalar) {
    if (!lilac_scalar_is_float(scalar)) {
        return 0;
    }
    return scalar == LILAC_F64 ? 1e-12 : scalar == LILAC_F32 ? 1e-5 : 5e-3;
}

static uint64_t element_bits(const npy *array, uint64_t index) {
    uint64_t bits = 0;
    for (uint32_t i = array->bytes; i > 0; i--) {
        bits = bits << 8 | array->data[index * array->bytes + i - 1];
    }
    return bits;
}

static double element_value(lilac_scalar scalar, const npy *array, uint64_t bits) {
    if (lilac_scalar_is_float(scalar)) {
        return lilac_scalar_decode(scalar, bits);
    }
    const bool is_signed = array->kind == 'i' && scalar != LILAC_I1;
    return is_signed ? (double)lilac_scalar_signed(scalar, bits) : (double)bits;
}

static double difference(double out, double reference, bool same_bits) {
    if (same_bits || (isnan(out) && isnan(reference))) {
        return 0;
    }
    const double error = fabs(out - reference);
    if (isnan(error)) {
        return INFINITY;
    }
    return error;
}

static void measure(comparison *result, lilac_scalar scalar, const npy *out, const npy *reference) {
    double errors = 0, norm = 0;
    for (uint64_t i = 0; i < out->count; i++) {
        const uint64_t out_bits = element_bits(out, i);
        const uint64_t reference_bits = element_bits(reference, i);
        const double value = element_value(scalar, reference, reference_bits);
        double error = difference(element_value(scalar, reference, out_bits), value,
                                  out_bits == reference_bits);
        if (error == 0 && out_bits != reference_bits && !lilac_scalar_is_float(scalar)) {
            error = 1; /* large integers that are equal as doubles */
        }
        if (error > result->largest) {
            result->largest = error;
            result->largest_index = i;
        }
        errors += error * error;
        norm += isfinite(value) ? value * value : 0;
    }
    result->count = out->count;
    result->relative = errors == 0 ? 0 : norm == 0 ? INFINITY : sqrt(errors / norm);
    result->passed = result->relative <= result->tolerance;
}

/* ---- the request ------------------------------------------------------------------------- */

/* "file.npy,1e-5": cuts the tolerance off when what follows the last comma is a number. */
static bool read_tolerance(char *path, double *tolerance) {
    char *comma = strrchr(path, ',');
    char *end = NULL;
    if (comma == NULL) {
        return false;
    }
    const double value = strtod(comma + 1, &end);
    if (end == comma + 1 || *end != '\0' || !(value >= 0)) {
        return false;
    }
    *comma = '\0';
    *tolerance = value;
    return true;
}

static bool check_reference(lilac_context *context, lilac_position position, const char *path,
                            lilac_scalar scalar, const npy *out, const npy *reference) {
    if (!npy_holds(reference, scalar)) {
        lilac_text type;
        lilac_text_init(&type);
        npy_type_name(&type, reference->kind, reference->bytes);
        lilac_error(context, position, 0, "argument-type", "%s holds %s, but the buffer holds %s",
                    path, lilac_text_get(&type), lilac_scalar_name(scalar));
        lilac_text_clear(&type);
        return false;
    }
    if (reference->count != out->count) {
        lilac_error(context, position, 0, "argument-type",
                    "%s holds %llu elements, but the buffer holds %llu", path,
                    (unsigned long long)reference->count, (unsigned long long)out->count);
        return false;
    }
    return true;
}

static bool compare_file(comparison *result, lilac_context *context, lilac_position position,
                         const char *path, lilac_scalar scalar, const npy *out) {
    npy reference;
    lilac_text why;
    lilac_text_init(&why);
    bool good = npy_read(&reference, path, &why);
    if (good) {
        good = check_reference(context, position, path, scalar, out, &reference);
    } else {
        lilac_error(context, position, 0, "invalid-npy", "%s: %s", path, lilac_text_get(&why));
    }
    if (good) {
        measure(result, scalar, out, &reference);
    }
    npy_clear(&reference);
    lilac_text_clear(&why);
    return good;
}

bool expect_compare(comparison *result, lilac_context *context, const bound_arguments *arguments,
                    const char *request, uint32_t index) {
    const size_t length = strcspn(request, "=");
    const int32_t found = arguments_find(arguments, request, length);
    lilac_text name;
    lilac_text_init(&name);
    lilac_text_printf(&name, "<expectation %u>", index);
    const uint32_t source =
        lilac_source_add(context, lilac_text_get(&name), request, strlen(request));
    lilac_text_clear(&name);
    if (source == 0) {
        return false;
    }
    const bound_name *bound = &arguments->names[found]; /* checked before the launch */
    const npy view = arguments_view(arguments, (uint32_t)found);
    const char *rest = request + length + 1;
    char *path = lilac_arena_copy(lilac_context_arena(context), rest, strlen(rest));
    *result = (comparison){.name = bound->name, .tolerance = usual_tolerance(bound->scalar)};
    (void)read_tolerance(path, &result->tolerance);
    return compare_file(result, context, (lilac_position){source, (uint32_t)length + 1}, path,
                        bound->scalar, &view);
}
