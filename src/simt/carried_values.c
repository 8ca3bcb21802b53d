/* More values that a loop carries.
 *
 *     %r = loop … (%a = %i) {              %s, %t = loop … (%b = %i, %c = %j) {
 *       …                           →        …
 *       yield %n                             yield %n
 *     }                                    }
 *
 * Arguments and results are consecutive values, so that the old ones are replaced too. */
#include "internal.h"

#include <string.h>

/* A row of values in place of `count` consecutive ones, and `added` more of the types of `inits`. */
static lilac_simt_value extend(lilac_simt_kernel *kernel, lilac_simt_value first, uint32_t count,
                               uint32_t added, const lilac_simt_value *inits,
                               lilac_simt_instruction *definition, lilac_simt_body *body,
                               lilac_simt_value *replacement) {
    lilac_simt_type *types =
        lilac_arena_array(kernel->module->arena, lilac_simt_type, count + added);
    for (uint32_t k = 0; k < count; k++) {
        types[k] = lilac_simt_type_of(kernel, first + k);
    }
    for (uint32_t k = 0; k < added; k++) {
        types[count + k] = lilac_simt_type_of(kernel, inits[k]);
    }
    const lilac_simt_value made =
        lilac_simt_new_values(kernel, count + added, types, definition, body);
    for (uint32_t k = 0; k < count; k++) {
        kernel->values[made + k].marked = kernel->values[first + k].marked;
        kernel->values[made + k].name = kernel->values[first + k].name;
        replacement[first + k] = made + k;
    }
    return made;
}

void lilac_simt_replace_uses(lilac_simt_body *body, uint32_t known,
                             const lilac_simt_value *replacement) {
    for (lilac_simt_instruction *i = body->first; i != NULL; i = i->next) {
        for (uint32_t k = 0; k < i->operand_count; k++) {
            const lilac_simt_value value = i->operands[k];
            if (value < known && replacement[value] != 0) {
                i->operands[k] = replacement[value];
            }
        }
        for (uint32_t k = 0; k < i->body_count; k++) {
            lilac_simt_replace_uses(i->bodies[k], known, replacement);
        }
    }
}

void lilac_simt_add_operands(lilac_simt_kernel *kernel, lilac_simt_instruction *instruction,
                             uint32_t count, const lilac_simt_value *added) {
    const uint32_t old = instruction->operand_count;
    lilac_simt_value *operands =
        lilac_arena_array(kernel->module->arena, lilac_simt_value, old + count);
    if (old > 0) {
        memcpy(operands, instruction->operands, sizeof *operands * old);
    }
    memcpy(operands + old, added, sizeof *operands * count);
    instruction->operands = operands;
    instruction->operand_count = (uint16_t)(old + count);
}

lilac_simt_value lilac_simt_add_carried(lilac_simt_kernel *kernel, lilac_simt_instruction *loop,
                                        uint32_t count, const lilac_simt_value *inits) {
    lilac_simt_body *body = loop->bodies[0];
    const uint32_t carried = body->argument_count, results = loop->result_count;
    const uint32_t known = kernel->value_count;
    lilac_simt_value *replacement = lilac_heap_grow(NULL, sizeof *replacement * known);
    memset(replacement, 0, sizeof *replacement * known);
    body->argument = extend(kernel, body->argument, carried, count, inits, NULL, body, replacement);
    body->argument_count = carried + count;
    loop->result =
        extend(kernel, loop->result, results, count, inits, loop, loop->parent, replacement);
    loop->result_count = (uint16_t)(results + count);
    lilac_simt_replace_uses(kernel->body, known, replacement);
    lilac_simt_add_operands(kernel, loop, count, inits);
    lilac_heap_free(replacement);
    return body->argument + carried;
}
