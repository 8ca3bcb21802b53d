/* Arguments for tensor descriptors. A parameter that is a descriptor in the text is several parameters
 * of the compiled kernel (lilac_engine_expand_descriptors):
 *
 *   d, d_shape0, d_shape1, d_stride0, d_stride1, d_nan
 *
 *   d=@x.npy             the tensor is the buffer: its shape, row-major strides, zeros outside
 *   d_shape0=10          each of the others may be given too
 *   d_nan=1              NaN outside
 */
#include "arguments.h"

#include <inttypes.h>

/* The parameters of the descriptor whose base is parameter `base`: `count` of them behind it. */
static uint32_t part_count(const bound_arguments *arguments, uint32_t base) {
    const uint32_t rank = arguments->signature.parameters[base].descriptor_rank;
    return rank == 0 ? 0 : 2 * rank + 1;
}

void descriptors_find(bound_arguments *arguments) {
    for (uint32_t i = 0; i < arguments->count; i++) {
        for (uint32_t part = 1; part <= part_count(arguments, i); part++) {
            bound_name *name = &arguments->names[i + part];
            name->is_filled = arguments->names[i].bound && !name->bound;
            name->bound = name->bound || name->is_filled;
        }
    }
}

static bool refuse(bound_arguments *arguments, lilac_context *context, uint32_t index,
                   const char *id, const char *format, ...) LILAC_PRINTF(5, 6);
static bool refuse(bound_arguments *arguments, lilac_context *context, uint32_t index,
                   const char *id, const char *format, ...) {
    va_list values;
    va_start(values, format);
    lilac_verror(context, arguments->signature.parameters[index].position, 0, id, format, values);
    va_end(values);
    arguments->names[index].failed = true;
    return false;
}

/* Sets the parts that are not given, from the shape of the buffer. */
static bool fill(bound_arguments *arguments, lilac_context *context, uint32_t base) {
    const kernel_parameter *parameters = arguments->signature.parameters;
    const uint32_t rank = parameters[base].descriptor_rank, count = part_count(arguments, base);
    const bound_name *name = &arguments->names[base];
    bool needed = false;
    for (uint32_t part = 1; part < count; part++) {
        needed = needed || arguments->names[base + part].is_filled;
    }
    if (name->failed || !needed) {
        return true;
    }
    const bool whole = name->target.buffer != POINTER_NULL && name->target.offset == 0;
    const npy *array = whole ? &arguments->contents[name->target.buffer] : NULL;
    if (array == NULL || array->rank != rank) {
        return refuse(arguments, context, base, "argument-type",
                      "'%s' is a descriptor of %u dimensions; give a buffer with as many, or its "
                      "shape and strides with --arg %s=, …",
                      parameters[base].name, rank, parameters[base + 1].name);
    }
    uint64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        const uint32_t shape = base + 1 + d, pitch = base + 1 + rank + d;
        if (arguments->names[pitch].is_filled) {
            arguments->bits[pitch] = stride;
            if (stride % (uint64_t)parameters[pitch].divisor != 0) {
                return refuse(arguments, context, base, "argument-not-divisible",
                              "'%s' has rows of %" PRIu64 " elements; a descriptor needs a "
                              "multiple of %" PRId64 ", 16 bytes",
                              parameters[base].name, stride, parameters[pitch].divisor);
            }
        }
        if (arguments->names[shape].is_filled) {
            arguments->bits[shape] = array->shape[d];
        }
        stride *= array->shape[d];
    }
    return true;
}

bool descriptors_fill(bound_arguments *arguments, lilac_context *context) {
    bool good = true;
    for (uint32_t i = 0; i < arguments->count; i++) {
        good &= part_count(arguments, i) == 0 || fill(arguments, context, i);
    }
    return good;
}
