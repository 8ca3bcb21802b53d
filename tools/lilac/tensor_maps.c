/* Arguments that are tensor maps: how tensor copies see a buffer.
 *
 *   m=tensor_map:x:64x64                         boxes of 64 × 64 elements of the buffer x
 *   m=tensor_map:x:128x64:swizzle=128            in shared memory, swizzled over 128 bytes
 *   m=tensor_map:x:8x8:fill=nan:promote=256      outside of the tensor: NaN; L2 reads 256 bytes
 *
 * The tensor has the buffer's shape, in row-major order, and the box is written in the same order
 * of dimensions; the map has them reversed. Buffers are looked up when all names are bound. */
#include "arguments.h"

#include <string.h>

static const char PREFIX[] = "tensor_map:";

/* One NAME:BOX[:WORD=VALUE]… of the command line. */
struct map_reference {
    value_binding binding;
    size_t begin, end; /* of the buffer's name, in the value */
    bool own;          /* the value is the buffer */
    bool made;         /* from other arguments; there is no buffer */
    uint32_t rank;     /* of the box */
    uint32_t buffer;   /* of arguments->buffers; known when all names are bound */
};

bool tensor_map_is(const char *value) {
    return strncmp(value, PREFIX, strlen(PREFIX)) == 0;
}

/* ---- binding ----------------------------------------------------------------------------- */

/* Reads "64x32", in row-major order, into map->box, which begins with the contiguous dimension.
 * Returns the rank, or 0. */
static uint32_t read_box(const char *string, size_t length, lilac_tensor_map *map) {
    uint32_t box[LILAC_TENSOR_RANK], rank = 0;
    for (size_t at = 0; at <= length && rank < LILAC_TENSOR_RANK;) {
        const size_t digits = strcspn(string + at, "x:");
        char number[16];
        uint64_t value = 0;
        if (digits >= sizeof number || at + digits > length) {
            return 0;
        }
        memcpy(number, string + at, digits);
        number[digits] = '\0';
        if (!read_number(number, UINT32_MAX, &value)) {
            return 0;
        }
        box[rank++] = (uint32_t)value;
        at += digits + 1;
        if (at > length) {
            for (uint32_t i = 0; i < rank; i++) {
                map->box[i] = box[rank - 1 - i];
                map->element_strides[i] = 1;
            }
            return rank;
        }
    }
    return 0;
}

/* Reads one WORD=VALUE. False if the text is none of them. */
static bool read_option(const char *word, size_t length, lilac_tensor_map *map) {
    static const struct {
        const char *word;
        lilac_tensor_swizzle swizzle;
        lilac_tensor_fill fill;
        uint32_t promote;
    } options[] = {
        {"swizzle=32", LILAC_TENSOR_SWIZZLE_32, LILAC_TENSOR_FILL_ZERO, 0},
        {"swizzle=64", LILAC_TENSOR_SWIZZLE_64, LILAC_TENSOR_FILL_ZERO, 0},
        {"swizzle=128", LILAC_TENSOR_SWIZZLE_128, LILAC_TENSOR_FILL_ZERO, 0},
        {"fill=nan", LILAC_TENSOR_SWIZZLE_NONE, LILAC_TENSOR_FILL_NAN, 0},
        {"promote=64", LILAC_TENSOR_SWIZZLE_NONE, LILAC_TENSOR_FILL_ZERO, 64},
        {"promote=128", LILAC_TENSOR_SWIZZLE_NONE, LILAC_TENSOR_FILL_ZERO, 128},
        {"promote=256", LILAC_TENSOR_SWIZZLE_NONE, LILAC_TENSOR_FILL_ZERO, 256},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strlen(options[i].word) == length && memcmp(options[i].word, word, length) == 0) {
            map->swizzle = options[i].swizzle > 0 ? options[i].swizzle : map->swizzle;
            map->fill = options[i].fill > 0 ? options[i].fill : map->fill;
            map->l2_promotion = options[i].promote > 0 ? options[i].promote : map->l2_promotion;
            return true;
        }
    }
    return false;
}

static void add_map(bound_arguments *a, const lilac_tensor_map *map,
                    const map_reference *reference) {
    a->maps = lilac_heap_grow(a->maps, sizeof *a->maps * (a->map_count + 1));
    a->map_references =
        lilac_heap_grow(a->map_references, sizeof *a->map_references * (a->map_count + 1));
    a->maps[a->map_count] = *map;
    a->map_references[a->map_count] = *reference;
    a->bits[reference->binding.name] = a->map_count++;
}

bool tensor_map_bind(const value_binding *binding) {
    bound_arguments *a = binding->arguments;
    const char *value = binding->value;
    lilac_tensor_map map = {0};
    if (!tensor_map_is(value)) {
        return argument_refuse(binding, 0, "argument-type",
                               "a tensor map is needed here: tensor_map:BUFFER:64x64, the box in "
                               "elements, then :swizzle=128, :fill=nan or :promote=256");
    }
    const size_t begin = strlen(PREFIX), end = begin + strcspn(value + begin, ":");
    const size_t box = end + (value[end] == ':');
    size_t at = box + strcspn(value + box, ":");
    const uint32_t rank = read_box(value + box, at - box, &map);
    if (rank == 0) {
        return argument_refuse(binding, box, "argument-type",
                               "'%.*s' is no box: 1 to %d numbers of elements, 64x64",
                               (int)(at - box), value + box, LILAC_TENSOR_RANK);
    }
    while (value[at] == ':') {
        const size_t word = at + 1, length = strcspn(value + word, ":");
        if (!read_option(value + word, length, &map)) {
            return argument_refuse(binding, word, "argument-type",
                                   "'%.*s' is none of swizzle=32, swizzle=64, swizzle=128, "
                                   "fill=nan, promote=64, promote=128 and promote=256",
                                   (int)length, value + word);
        }
        at = word + length;
    }
    add_map(a, &map,
            &(map_reference){.binding = *binding, .begin = begin, .end = end, .rank = rank});
    return true;
}

bool tensor_map_bind_buffer(const value_binding *binding, const kernel_parameter *parameter) {
    add_map(binding->arguments, &parameter->map,
            &(map_reference){.binding = *binding, .own = true, .rank = parameter->map.rank});
    return true;
}

/* ---- the tensor -------------------------------------------------------------------------- */

static bool find_element(lilac_scalar scalar, lilac_tensor_element *element) {
    static const struct {
        lilac_scalar scalar;
        lilac_tensor_element element;
    } table[] = {
        {LILAC_F16, LILAC_TENSOR_F16}, {LILAC_BF16, LILAC_TENSOR_BF16},
        {LILAC_F32, LILAC_TENSOR_F32}, {LILAC_F64, LILAC_TENSOR_F64},
        {LILAC_I8, LILAC_TENSOR_U8},   {LILAC_I16, LILAC_TENSOR_U16},
        {LILAC_I32, LILAC_TENSOR_S32}, {LILAC_I64, LILAC_TENSOR_S64},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].scalar == scalar) {
            *element = table[i].element;
            return true;
        }
    }
    *element = LILAC_TENSOR_U8; /* 8-bit floats and i1, by their bits */
    return lilac_scalar_bits(scalar) <= 8;
}

static bool describe(const map_reference *r, lilac_tensor_map *map, const bound_name *named,
                     const npy *array) {
    if (!find_element(named->scalar, &map->element)) {
        return argument_refuse(&r->binding, r->begin, "argument-type",
                               "a tensor map has no element type for %s",
                               lilac_scalar_name(named->scalar));
    }
    if (array->rank != r->rank) {
        return argument_refuse(&r->binding, r->end, "argument-type",
                               "the box has %u dimensions, '%s' has %u", r->rank, named->name,
                               array->rank);
    }
    uint64_t stride = lilac_tensor_element_bytes(map->element);
    map->rank = array->rank;
    for (uint32_t i = 0; i < array->rank; i++) {
        map->dims[i] = array->shape[array->rank - 1 - i];
        stride *= map->dims[i];
        if (i + 1 < array->rank) {
            map->strides[i] = stride;
        }
    }
    return true;
}

void tensor_maps_add_made(bound_arguments *arguments) {
    const lilac_launch_maps *made = &arguments->signature.launch_maps;
    for (uint32_t i = 0; i < made->count; i++) {
        const uint32_t parameter = made->maps[i].parameter;
        const kernel_parameter *described = &arguments->signature.parameters[parameter];
        lilac_tensor_map map = described->map;
        (void)find_element(described->scalar, &map.element); /* a box has one */
        add_map(arguments, &map,
                &(map_reference){.binding.name = parameter, .made = true, .rank = map.rank});
        arguments->names[parameter].bound = true;
    }
}

static bool resolve(bound_arguments *arguments, uint32_t index) {
    map_reference *r = &arguments->map_references[index];
    const size_t length = r->end - r->begin;
    const int32_t found = r->own ? (int32_t)r->binding.name
                                 : arguments_find(arguments, r->binding.value + r->begin, length);
    const bound_name *named = found < 0 ? NULL : &arguments->names[found];
    if (named == NULL || !named->is_pointer) {
        return argument_misuse(&r->binding, r->begin, "there is no buffer '%.*s'", (int)length,
                               r->binding.value + r->begin);
    }
    if (named->failed) {
        return true; /* reported */
    }
    if (named->target.buffer == POINTER_NULL || named->target.offset != 0) {
        return argument_misuse(&r->binding, r->begin,
                               "'%s' does not point to the beginning of a buffer", named->name);
    }
    r->buffer = (uint32_t)named->target.buffer;
    return describe(r, &arguments->maps[index], named, &arguments->contents[r->buffer]);
}

bool tensor_maps_resolve(bound_arguments *arguments) {
    bool good = true;
    for (uint32_t i = 0; i < arguments->map_count; i++) {
        good &= arguments->map_references[i].made || resolve(arguments, i);
    }
    return good;
}

void tensor_maps_place(bound_arguments *arguments, const uint64_t *addresses) {
    for (uint32_t i = 0; i < arguments->map_count; i++) {
        const map_reference *r = &arguments->map_references[i];
        arguments->maps[i].address = r->made ? 0 : addresses[r->buffer];
    }
}

bool arguments_make_maps(bound_arguments *arguments, lilac_context *context,
                         const lilac_simt_kernel *kernel, const uint32_t grid[3]) {
    return lilac_launch_maps_make(context, arguments->maps, &arguments->signature.launch_maps,
                                  kernel, grid, arguments->bits);
}

void tensor_maps_clear(bound_arguments *arguments) {
    lilac_heap_free(arguments->maps);
    lilac_heap_free(arguments->map_references);
}
