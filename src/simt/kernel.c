/* Modules, kernels, bodies, instructions and values: the links between them.
 *
 * All of it lives in the module's arena but the table of values, which grows in place. Value
 * numbers are given out in order and never reused, so an array with one entry a value is a side
 * table; the results of one instruction and the arguments of one body are consecutive. */
#include "internal.h"

#include <assert.h>
#include <string.h>

lilac_simt_module *lilac_simt_module_create(lilac_context *context, const lilac_arch *arch) {
    lilac_arena *arena = lilac_arena_create();
    lilac_simt_module *module = lilac_arena_new(arena, lilac_simt_module);
    module->context = context;
    module->arena = arena;
    module->arch = arch;
    return module;
}

void lilac_simt_module_destroy(lilac_simt_module *module) {
    if (module == NULL) {
        return;
    }
    for (lilac_simt_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
        lilac_heap_free(kernel->values);
    }
    lilac_arena_destroy(module->arena);
}

lilac_simt_kernel *lilac_simt_kernel_create(lilac_simt_module *module, lilac_name name,
                                            uint32_t parameters, uint32_t num_warps,
                                            uint32_t num_ctas) {
    lilac_simt_kernel *kernel = lilac_arena_new(module->arena, lilac_simt_kernel);
    kernel->name = name;
    kernel->parameter_count = parameters;
    kernel->parameters = lilac_arena_array(module->arena, lilac_simt_parameter, parameters);
    for (uint32_t k = 0; k < parameters; k++) {
        kernel->parameters[k].alignment = 1;
    }
    kernel->num_warps = num_warps;
    kernel->num_ctas = num_ctas;
    kernel->module = module;
    kernel->value_count = 1;
    kernel->value_capacity = 256;
    kernel->values = lilac_heap_grow(NULL, sizeof *kernel->values * kernel->value_capacity);
    kernel->values[0] = (lilac_simt_value_info){.type = LILAC_SIMT_VOID};
    kernel->body = lilac_simt_new_body(kernel, NULL, 0, NULL);
    lilac_simt_kernel **end = &module->kernels;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = kernel;
    return kernel;
}

lilac_simt_value lilac_simt_new_values(lilac_simt_kernel *kernel, uint32_t count,
                                       const lilac_simt_type *types,
                                       lilac_simt_instruction *definition, lilac_simt_body *body) {
    if (count == 0) {
        return 0;
    }
    if (kernel->value_count + count > kernel->value_capacity) {
        uint32_t capacity = kernel->value_capacity * 2;
        while (capacity < kernel->value_count + count) {
            capacity *= 2;
        }
        kernel->values = lilac_heap_grow(kernel->values, sizeof *kernel->values * (size_t)capacity);
        kernel->value_capacity = capacity;
    }
    lilac_simt_value first = kernel->value_count;
    for (uint32_t k = 0; k < count; k++) {
        kernel->values[first + k] = (lilac_simt_value_info){
            .type = (uint8_t)types[k], .definition = definition, .body = body};
    }
    kernel->value_count += count;
    return first;
}

lilac_simt_instruction *lilac_simt_new_instruction(lilac_simt_kernel *kernel,
                                                   const lilac_simt_instruction *like,
                                                   uint32_t operands,
                                                   const lilac_simt_value *values) {
    assert(operands <= UINT16_MAX);
    lilac_simt_instruction *instruction = lilac_arena_alloc(
        kernel->module->arena, sizeof *instruction + sizeof(lilac_simt_value) * operands);
    *instruction = *like;
    instruction->operands = (lilac_simt_value *)(void *)(instruction + 1);
    instruction->operand_count = (uint16_t)operands;
    if (operands > 0) {
        memcpy(instruction->operands, values, sizeof *values * operands);
    }
    instruction->result = 0;
    instruction->result_count = 0;
    instruction->next = NULL;
    instruction->previous = NULL;
    instruction->parent = NULL;
    instruction->mark = 0;
    return instruction;
}

void lilac_simt_give_results(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                             uint32_t results, const lilac_simt_type *types) {
    assert(results <= UINT16_MAX);
    instruction->result_count = (uint16_t)results;
    instruction->result =
        lilac_simt_new_values(kernel, results, types, instruction, instruction->parent);
}

lilac_simt_body *lilac_simt_new_body(lilac_simt_kernel *kernel, lilac_simt_instruction *parent,
                                     uint32_t arguments, const lilac_simt_type *types) {
    lilac_simt_body *body = lilac_arena_new(kernel->module->arena, lilac_simt_body);
    body->parent = parent;
    body->argument_count = arguments;
    body->argument = lilac_simt_new_values(kernel, arguments, types, NULL, body);
    return body;
}

void lilac_simt_link(lilac_simt_body *body, lilac_simt_instruction *where,
                     lilac_simt_instruction *instruction) {
    instruction->parent = body;
    instruction->next = where;
    instruction->previous = where != NULL ? where->previous : body->last;
    if (instruction->previous != NULL) {
        instruction->previous->next = instruction;
    } else {
        body->first = instruction;
    }
    if (where != NULL) {
        where->previous = instruction;
    } else {
        body->last = instruction;
    }
}

void lilac_simt_unlink(lilac_simt_instruction *instruction) {
    lilac_simt_body *body = instruction->parent;
    if (instruction->previous != NULL) {
        instruction->previous->next = instruction->next;
    } else {
        body->first = instruction->next;
    }
    if (instruction->next != NULL) {
        instruction->next->previous = instruction->previous;
    } else {
        body->last = instruction->previous;
    }
    instruction->next = NULL;
    instruction->previous = NULL;
    instruction->parent = NULL;
}

void lilac_simt_move(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                     lilac_simt_instruction *where) {
    lilac_simt_unlink(instruction);
    lilac_simt_link(where->parent, where, instruction);
    for (uint32_t k = 0; k < instruction->result_count; k++) {
        kernel->values[instruction->result + k].body = where->parent;
    }
}

bool lilac_simt_is_inside(const lilac_simt_kernel *kernel, lilac_simt_value value,
                          const lilac_simt_body *body) {
    const lilac_simt_body *at = kernel->values[value].body;
    while (at != NULL && at != body) {
        at = at->parent != NULL ? at->parent->parent : NULL;
    }
    return at == body;
}

void lilac_simt_inherit(lilac_simt_kernel *kernel, lilac_simt_value from, lilac_simt_value to) {
    if (kernel->values[from].marked && !kernel->values[to].uniform) {
        lilac_simt_mark_uniform(kernel, to);
    }
    if (kernel->values[to].name == NULL) {
        kernel->values[to].name = kernel->values[from].name;
    }
}

lilac_simt_type lilac_simt_type_of(const lilac_simt_kernel *kernel, lilac_simt_value value) {
    assert(value < kernel->value_count);
    return (lilac_simt_type)kernel->values[value].type;
}

bool lilac_simt_is_constant(const lilac_simt_kernel *kernel, lilac_simt_value value,
                            uint64_t *bits) {
    return lilac_simt_constant_bits(kernel, value, bits);
}

void lilac_simt_mark_uniform(lilac_simt_kernel *kernel, lilac_simt_value value) {
    kernel->values[value].marked = true;
    kernel->values[value].uniform = true;
}

void lilac_simt_count_uses(const lilac_simt_body *body, uint32_t *uses) {
    for (const lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            uses[i->operands[k]]++;
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            lilac_simt_count_uses(i->bodies[k], uses);
        }
    }
}
