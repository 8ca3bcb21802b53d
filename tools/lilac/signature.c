/* The parameters of a kernel, from tile IR or from SIMT IR.
 *
 *     tile   %x: !tt.ptr<f32> {tt.divisibility = 16 : i32}    a pointer to f32, multiples of 16
 *     SIMT   %x: i64 ptr align 16                             an address, multiples of 16
 */
#include "signature.h"

#include <lilac/base.h>
#include <lilac/driver.h>
#include <lilac/engine.h>

#include <string.h>

/* Where parameter number `index` is declared: the values at the outermost level of the list that
 * opens after the kernel's name are the parameters. */
static lilac_position parameter_position(lilac_context *context, lilac_position kernel,
                                         uint32_t index) {
    lilac_scanner scanner;
    uint32_t depth = 0, seen = 0;
    if (kernel.source == 0) {
        return kernel;
    }
    lilac_scanner_init(&scanner, context, kernel.source);
    lilac_scanner_seek(&scanner, kernel.offset);
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
    return kernel;
}

/* ---- tile IR ----------------------------------------------------------------------------- */

static const char *type_text(lilac_context *context, const lilac_tile_type *type) {
    lilac_text text;
    lilac_text_init(&text);
    lilac_tile_print_type(&text, type);
    const char *copy =
        lilac_arena_copy(lilac_context_arena(context), lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return copy;
}

/* The map of a descriptor, apart from its tensor. */
static void set_map(kernel_parameter *parameter, const lilac_tile_type *block) {
    lilac_box box;
    if (lilac_engine_box(&box, block)) {
        parameter->kind = PARAMETER_TENSOR_MAP;
        parameter->scalar = lilac_tile_element(block)->scalar;
        parameter->map = (lilac_tensor_map){.rank = box.rank,
                                            .swizzle = lilac_tensor_swizzle_of(box.swizzle_bytes)};
        for (uint32_t i = 0; i < box.rank; i++) {
            parameter->map.box[i] = box.sizes[box.rank - 1 - i];
            parameter->map.element_strides[i] = 1;
        }
    }
}

static void set_tile_kind(kernel_parameter *parameter, const lilac_tile_type *type) {
    parameter->kind = PARAMETER_UNSUPPORTED;
    if (type->kind == LILAC_TILE_DESCRIPTOR) {
        set_map(parameter, type->element);
    } else if (type->kind == LILAC_TILE_SCALAR && lilac_scalar_bits(type->scalar) <= 64) {
        parameter->kind = PARAMETER_NUMBER;
        parameter->scalar = type->scalar;
    } else if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_SCALAR) {
        parameter->kind = PARAMETER_POINTER;
        parameter->scalar = type->element->scalar;
    } else if (type->kind == LILAC_TILE_POINTER && type->element->kind == LILAC_TILE_POINTER) {
        parameter->kind = PARAMETER_POINTER;
        parameter->scalar = LILAC_I64;
    }
}

/* The rank of the tensor descriptor whose base is parameter i and whose other parts follow it; 0: it
 * is no base. */
static uint32_t descriptor_rank(const lilac_tile_function *function, uint32_t i) {
    const lilac_tile_attribute *descriptor =
        lilac_tile_find(&function->parameter_attributes[i], "lilac.descriptor");
    const lilac_tile_type *type = descriptor != NULL ? descriptor->type : NULL;
    const uint32_t rank =
        type != NULL && type->kind == LILAC_TILE_DESCRIPTOR ? type->element->rank : 0;
    return rank > 0 && rank <= 5 && i + 2 * rank + 1 < function->parameter_count ? rank : 0;
}

kernel_signature signature_of_function(lilac_context *context,
                                       const lilac_tile_function *function) {
    kernel_parameter *parameters = lilac_arena_array(lilac_context_arena(context), kernel_parameter,
                                                     function->parameter_count);
    uint32_t declared = 0, parts = 0; /* of the descriptor that the text declares there */
    for (uint32_t i = 0; i < function->parameter_count; i++) {
        const lilac_tile_value *value = function->parameters[i];
        parameters[i] = (kernel_parameter){
            .name = value->name != NULL ? value->name : "",
            .type = type_text(context, value->type),
            .divisor =
                lilac_tile_find_integer(&function->parameter_attributes[i], "tt.divisibility", 1),
            .position = parameter_position(context, function->position, declared),
        };
        declared += parts == 0;
        parts -= parts > 0;
        parameters[i].descriptor_rank = descriptor_rank(function, i);
        parts += parameters[i].descriptor_rank > 0 ? 2 * parameters[i].descriptor_rank + 1 : 0;
        set_tile_kind(&parameters[i], value->type);
    }
    kernel_signature signature = {.name = function->name,
                                  .position = function->position,
                                  .count = function->parameter_count,
                                  .parameters = parameters};
    signature.malformed =
        !lilac_launch_maps_get(&signature.launch_maps, lilac_context_arena(context), function);
    for (uint32_t i = 0; i < signature.launch_maps.count; i++) {
        parameters[signature.launch_maps.maps[i].parameter].made = true;
    }
    return signature;
}

/* ---- SIMT IR ----------------------------------------------------------------------------- */

/* Where the text names the kernel; the first word of the text when it does not. */
static lilac_position kernel_position(lilac_context *context, uint32_t source, const char *name) {
    lilac_scanner scanner;
    bool follows = false;
    lilac_scanner_init(&scanner, context, source);
    for (; scanner.kind != LILAC_TOKEN_END; lilac_scanner_next(&scanner)) {
        if (follows && scanner.kind == LILAC_TOKEN_SYMBOL && scanner.word_length == strlen(name) &&
            memcmp(scanner.word, name, scanner.word_length) == 0) {
            return lilac_scanner_position(&scanner);
        }
        follows = lilac_scanner_is_word(&scanner, "kernel");
    }
    return (lilac_position){source, 0};
}

/* The scalar of a number's bits; false for packed types. */
static bool scalar_of(lilac_simt_type type, lilac_scalar *scalar) {
    static const struct {
        lilac_simt_type type;
        lilac_scalar scalar;
    } table[] = {
        {LILAC_SIMT_I1, LILAC_I1},     {LILAC_SIMT_I8, LILAC_I8},   {LILAC_SIMT_I16, LILAC_I16},
        {LILAC_SIMT_I32, LILAC_I32},   {LILAC_SIMT_I64, LILAC_I64}, {LILAC_SIMT_F16, LILAC_F16},
        {LILAC_SIMT_BF16, LILAC_BF16}, {LILAC_SIMT_F32, LILAC_F32}, {LILAC_SIMT_F64, LILAC_F64},
    };
    for (uint32_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].type == type) {
            *scalar = table[i].scalar;
            return true;
        }
    }
    return false;
}

kernel_signature signature_of_kernel(lilac_context *context, uint32_t source,
                                     const lilac_simt_kernel *kernel) {
    const lilac_position position = kernel_position(context, source, kernel->name);
    kernel_parameter *parameters =
        lilac_arena_array(lilac_context_arena(context), kernel_parameter, kernel->parameter_count);
    for (uint32_t i = 0; i < kernel->parameter_count; i++) {
        const lilac_simt_parameter *parameter = &kernel->parameters[i];
        parameters[i] = (kernel_parameter){
            .name = parameter->name != NULL ? parameter->name : "",
            .type = parameter->is_pointer      ? "i64 ptr"
                    : parameter->is_tensor_map ? "i64 tensor_map"
                                               : lilac_simt_type_name(parameter->type),
            .divisor = parameter->alignment > 1 ? parameter->alignment : 1,
            .position = parameter_position(context, position, i),
        };
        parameters[i].kind = parameter->is_pointer      ? PARAMETER_ADDRESS
                             : parameter->is_tensor_map ? PARAMETER_TENSOR_MAP
                             : scalar_of(parameter->type, &parameters[i].scalar)
                                 ? PARAMETER_NUMBER
                                 : PARAMETER_UNSUPPORTED;
    }
    return (kernel_signature){.name = kernel->name,
                              .position = position,
                              .count = kernel->parameter_count,
                              .parameters = parameters};
}
