/* descriptor_parameters: parameters that are tensor descriptors, as parameters of Triton's launcher.
 *
 *     %d: !tt.tensordesc<tensor<8x16xf16>>    →    %d: !tt.ptr<f16>           base
 *                                                  %d_shape0: i64, %d_shape1: i64
 *                                                  %d_stride0: i64, %d_stride1: i64
 *                                                  %d_nan: i1                 padding
 *
 * The last stride is a parameter that is not read: it is 1. */
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"

static void put_attribute(lilac_tile_module *module, lilac_tile_attributes *attributes,
                          lilac_tile_attribute_kind kind, const char *name,
                          const lilac_tile_type *type, int64_t integer) {
    const lilac_tile_attribute attribute = {.kind = kind,
                                            .name = lilac_intern_string(module->context, name),
                                            .type = type,
                                            .integer = integer};
    lilac_tile_set_attribute(module, attributes, &attribute);
}

int64_t lilac_descriptor_unit(const lilac_tile_type *block) {
    const uint32_t bits = lilac_tile_element_bits(block);
    return bits > 64 ? 1 : 128 / (bits < 8 ? 8 : bits);
}

static const lilac_tile_type *base_type(lilac_tile_module *module, const lilac_tile_type *block) {
    const lilac_scalar scalar = lilac_tile_element(block)->scalar; /* without its sign */
    return lilac_tile_pointer(module, lilac_tile_scalar(module, scalar), 1);
}

const lilac_tile_type *lilac_descriptor_part_type(lilac_tile_module *module,
                                                  const lilac_tile_type *block, uint32_t part,
                                                  uint32_t count) {
    return part == 0           ? base_type(module, block)
           : part == count - 1 ? lilac_tile_scalar(module, LILAC_I1)
                               : lilac_tile_scalar(module, LILAC_I64);
}

static lilac_name part_name(lilac_tile_module *module, lilac_name descriptor, uint32_t part,
                            uint32_t rank) {
    lilac_text text = {0};
    lilac_text_puts(&text, descriptor);
    if (part == 2 * rank + 1) {
        lilac_text_puts(&text, "_nan");
    } else if (part > 0) {
        lilac_text_printf(&text, "_%s%u", part <= rank ? "shape" : "stride", (part - 1) % rank);
    }
    lilac_name name = lilac_intern(module->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return name;
}

/* The parameters of a function that is being changed. */
typedef struct parameter_lists {
    lilac_tile_module *module;
    uint32_t count;
    lilac_tile_value **values;
    lilac_tile_attributes *attributes;
} parameter_lists;

/* The promises about a part, and the descriptor's type at its base. */
static void put_attributes(parameter_lists *lists, const lilac_tile_type *type, uint32_t part) {
    const lilac_tile_type *block = type->element,
                          *i32 = lilac_tile_scalar(lists->module, LILAC_I32);
    lilac_tile_attributes *attributes = &lists->attributes[lists->count];
    if (part == 0) {
        put_attribute(lists->module, attributes, LILAC_TILE_ATTR_INTEGER, "tt.divisibility", i32,
                      16);
        put_attribute(lists->module, attributes, LILAC_TILE_ATTR_TYPE, "lilac.descriptor", type, 0);
    } else if (part > block->rank && part < 2 * block->rank) {
        put_attribute(lists->module, attributes, LILAC_TILE_ATTR_INTEGER, "tt.divisibility", i32,
                      lilac_descriptor_unit(block));
    }
}

/* Appends the parameter that is the descriptor's tensor map. */
static void put_map(parameter_lists *lists, const lilac_tile_value *old,
                    const lilac_tile_attributes *own, lilac_descriptor *d) {
    lilac_tile_value *value = lilac_arena_new(lists->module->arena, lilac_tile_value);
    *value = (lilac_tile_value){
        .type = old->type, .name = old->name, .block = old->block, .location = old->location};
    lilac_tile_attributes *attributes = &lists->attributes[lists->count];
    *attributes = *own; /* how a launcher makes it */
    put_attribute(lists->module, attributes, LILAC_TILE_ATTR_UNIT, "lilac.tensor_map", NULL, 0);
    lists->values[lists->count++] = d->map = value;
}

/* Appends the parameters of one descriptor. */
static void put_parameters(parameter_lists *lists, const lilac_tile_function *f,
                           const lilac_tile_value *old, lilac_descriptor *d,
                           const lilac_target *target) {
    const lilac_tile_type *block = d->block = old->type->element;
    const uint32_t rank = block->rank, count = 2 * rank + 2, last_stride = 2 * rank;
    if (lilac_descriptor_is_mapped(f, old, target)) {
        static const lilac_tile_attributes none = {0};
        put_map(lists, old,
                f->parameter_attributes != NULL ? &f->parameter_attributes[old->index] : &none, d);
    }
    for (uint32_t part = 0; part < count; part++, lists->count++) {
        lilac_tile_value *value = lilac_arena_new(lists->module->arena, lilac_tile_value);
        *value = (lilac_tile_value){
            .type = lilac_descriptor_part_type(lists->module, block, part, count),
            .name = old->name != NULL ? part_name(lists->module, old->name, part, rank) : NULL,
            .block = old->block,
            .location = old->location};
        lists->values[lists->count] = value;
        if (part != last_stride) {
            d->parts[part < last_stride ? part : part - 1] = value;
        }
        put_attributes(lists, old->type, part);
    }
}

static bool is_descriptor(const lilac_tile_value *value) {
    return value->type->kind == LILAC_TILE_DESCRIPTOR;
}

void lilac_descriptor_expand_parameters(lilac_tile_function *f, lilac_descriptor *known,
                                        const lilac_target *target) {
    parameter_lists lists = {.module = f->module};
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        const lilac_tile_type *type = f->parameters[i]->type;
        count +=
            type->kind == LILAC_TILE_DESCRIPTOR ? 2 * type->element->rank + 3 : 1; /* at most */
    }
    if (count == f->parameter_count) {
        return;
    }
    lists.values = lilac_arena_array(f->module->arena, lilac_tile_value *, count);
    lists.attributes = lilac_arena_array(f->module->arena, lilac_tile_attributes, count);
    for (uint32_t i = 0; i < f->parameter_count; i++) {
        if (is_descriptor(f->parameters[i])) {
            put_parameters(&lists, f, f->parameters[i], &known[f->parameters[i]->id], target);
            continue;
        }
        lists.values[lists.count] = f->parameters[i];
        if (f->parameter_attributes != NULL) {
            lists.attributes[lists.count] = f->parameter_attributes[i];
        }
        lists.count++;
    }
    for (uint32_t i = 0; i < lists.count; i++) {
        lists.values[i]->index = i;
    }
    f->parameters = f->body->first->arguments = lists.values;
    f->parameter_count = f->body->first->argument_count = lists.count;
    f->parameter_attributes = lists.attributes;
}
