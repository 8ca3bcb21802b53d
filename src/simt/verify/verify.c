/* The verifier: the properties of SIMT IR that every pass may rely on and must keep.
 *
 *   - the types of operands and results are those of the operation's signature
 *   - a value is defined once, before its uses, in the same body or in one that encloses it
 *   - a body ends with the terminator that its parent needs, and has no other
 *   - conditions and loop bounds are uniform
 *   - carried values, yielded values and results agree in number and type
 *   - the device has the operation, and accesses of its size; packed parts fill the whole value
 *
 * The verifier walks over the text once, in order, and keeps for each value whether it is in reach.
 * An error names the instruction, and a note prints it. verify.h lists the other files. */
#include "verify/verify.h"

#include <stdarg.h>

typedef lilac_simt_instruction instruction;

#define fail lilac_simt_verify_fail

/* ---- errors ----------------------------------------------------------------------------- */

enum { MOST_NOTES = 64 }; /* errors with a note; later ones have none */

static void put_error(const lilac_simt_kernel *kernel, const instruction *i, const char *id,
                      const char *format, va_list arguments) {
    lilac_context *context = kernel->module->context;
    lilac_position nowhere = {0};
    lilac_verror(context, nowhere, i != NULL ? i->location : kernel->location, id, format,
                 arguments);
    if (i != NULL && lilac_error_count(context) <= MOST_NOTES) {
        lilac_text text = {0};
        lilac_simt_print_instruction(&text, kernel, i);
        lilac_note(context, nowhere, 0, "in kernel '%s': %s",
                   kernel->name != NULL ? kernel->name : "", lilac_text_get(&text));
        lilac_text_clear(&text);
    }
}

void lilac_simt_verify_error(const lilac_simt_kernel *kernel, const instruction *i, const char *id,
                             const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_error(kernel, i, id, format, arguments);
    va_end(arguments);
}

void lilac_simt_verify_fail(verifier *v, const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_error(v->kernel, v->instruction, id, format, arguments);
    va_end(arguments);
    v->ok = false;
}

void lilac_simt_verify_uniform(verifier *v, lilac_simt_value value, const char *what) {
    if (value < v->kernel->value_count && !v->kernel->values[value].uniform) {
        fail(v, "simt-not-uniform",
             "%s of %s may differ between threads; a uniform value is needed", what,
             operation_name(v->instruction));
    }
}

/* ---- the walk --------------------------------------------------------------------------- */

static void define(verifier *v, lilac_simt_value first, uint32_t count, const instruction *by,
                   const lilac_simt_body *body) {
    for (uint32_t k = 0; k < count; k++) {
        lilac_simt_value value = first + k;
        if (value == 0 || value >= v->kernel->value_count) {
            fail(v, "simt-dominance", "%s %u has number %u; the kernel has values 1 to %u",
                 by != NULL ? "result" : "argument", k + 1, value, v->kernel->value_count - 1);
            continue;
        }
        const lilac_simt_value_info *info = &v->kernel->values[value];
        if (v->reach[value] != 0) {
            fail(v, "simt-dominance", "%s %u, value %u, is defined a second time",
                 by != NULL ? "result" : "argument", k + 1, value);
        } else if (info->definition != by || info->body != body) {
            fail(v, "simt-dominance", "%s %u, value %u, has another definition recorded",
                 by != NULL ? "result" : "argument", k + 1, value);
        }
        v->reach[value] = 1;
    }
}

/* The values of a body that ends are out of reach. */
static void leave(verifier *v, lilac_simt_value first, uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        if (first + k < v->kernel->value_count) {
            v->reach[first + k] = 2;
        }
    }
}

/* Are all operands in reach? */
static bool check_operands(verifier *v, const instruction *i) {
    bool ok = true;
    for (uint32_t k = 0; k < i->operand_count; k++) {
        lilac_simt_value value = i->operands[k];
        if (value == 0 || value >= v->kernel->value_count || v->reach[value] != 1) {
            fail(v, "simt-dominance", "operand %u of %s is not defined before this use%s", k + 1,
                 operation_name(i),
                 value < v->kernel->value_count && v->reach[value] == 2
                     ? " in this body or one that encloses it"
                     : "");
            ok = false;
        }
    }
    return ok;
}

/* Only the map operand of a tensor operation is a tensor map. */
static void check_maps(verifier *v, const instruction *i) {
    for (uint32_t k = 0; k < i->operand_count; k++) {
        bool is_map = lilac_simt_tensor_map_of(v->kernel, i->operands[k]) != NULL;
        if (is_map && k != lilac_simt_map_operand(v->kernel, i)) {
            fail(v, "simt-parameter",
                 "operand %u of %s is a tensor map; only the map operand of a tensor copy may be "
                 "one",
                 k + 1, operation_name(i));
        }
    }
}

/* The link to the body, and the terminator at its end. */
static void check_position(verifier *v, const instruction *i, const lilac_simt_body *body,
                           lilac_simt_opcode terminator) {
    const char *needed = lilac_simt_op_info_get(terminator)->name;
    bool ends = lilac_simt_has_trait(i->code, LILAC_SIMT_TERMINATOR);
    if (i->parent != body) {
        fail(v, "simt-links", "the parent of %s is not the body that contains it",
             operation_name(i));
    }
    if (ends && i->next != NULL) {
        fail(v, "simt-terminator", "the terminator %s is not the last instruction of its body",
             operation_name(i));
    } else if ((ends && i->code != terminator) || (!ends && i->next == NULL)) {
        fail(v, "simt-terminator", "the body ends with %s; '%s' is needed", operation_name(i),
             needed);
    }
}

static void check_instruction(verifier *v, const instruction *i, const lilac_simt_body *body,
                              lilac_simt_opcode terminator) {
    v->instruction = i;
    if (i->code == LILAC_SIMT_OP_NONE || i->code >= LILAC_SIMT_OP_COUNT) {
        fail(v, "simt-operation", "opcode %u does not exist; 1 to %d are allowed", i->code,
             LILAC_SIMT_OP_COUNT - 1);
        return;
    }
    bool in_reach = check_operands(v, i);
    if (in_reach && v->maps) {
        check_maps(v, i);
    }
    check_position(v, i, body, terminator);
    if (in_reach && lilac_simt_verify_signature(v, i)) {
        lilac_simt_verify_operation(v, i);
    }
    v->instruction = i;
    define(v, i->result, i->result_count, i, body);
}

void lilac_simt_verify_body(verifier *v, const lilac_simt_body *body,
                            lilac_simt_opcode terminator) {
    define(v, body->argument, body->argument_count, NULL, body);
    if (body->first == NULL) {
        fail(v, "simt-terminator", "a body is empty; '%s' is needed at its end",
             lilac_simt_op_info_get(terminator)->name);
    }
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        check_instruction(v, i, body, terminator);
    }
    leave(v, body->argument, body->argument_count);
    for (const instruction *i = body->first; i != NULL; i = i->next) {
        leave(v, i->result, i->result_count);
    }
}

/* ---- kernels ---------------------------------------------------------------------------- */

static void check_launch(verifier *v) {
    const lilac_simt_kernel *kernel = v->kernel;
    const lilac_arch *arch = v->module->arch;
    bool programs = lilac_simt_has_programs(kernel);
    if ((programs ? kernel->num_warps == 0 : !is_power_of_two(kernel->num_warps)) ||
        (arch != NULL && kernel->num_warps > arch->max_warps)) {
        fail(v, "simt-launch-shape", "the kernel has %u warps; %s from 1 to %u is allowed",
             kernel->num_warps, programs ? "a number" : "a power of two",
             arch != NULL ? arch->max_warps : 32);
    }
    if (!is_power_of_two(kernel->num_ctas)) {
        fail(v, "simt-launch-shape", "a cluster has %u blocks; a power of two is allowed",
             kernel->num_ctas);
    }
    if (kernel->scratch_bytes % 128 != 0) {
        fail(v, "simt-launch-shape",
             "the kernel has %u bytes of scratch memory; a multiple of 128 is allowed",
             kernel->scratch_bytes);
    }
    if (arch != NULL && kernel->shared_bytes > arch->shared_bytes) {
        fail(v, "simt-launch-shape",
             "the kernel has %u bytes of shared memory; a block of %s has at most %u",
             kernel->shared_bytes, arch->name, arch->shared_bytes);
    }
}

static void check_parameters(verifier *v) {
    for (uint32_t k = 0; k < v->kernel->parameter_count; k++) {
        const lilac_simt_parameter *parameter = &v->kernel->parameters[k];
        bool is_address = parameter->is_pointer || parameter->is_tensor_map;
        if (parameter->type == LILAC_SIMT_VOID) {
            fail(v, "simt-parameter", "parameter %u has no type", k);
        } else if (is_address && parameter->type != LILAC_SIMT_I64) {
            fail(v, "simt-parameter", "parameter %u is a %s of type %s; i64 is allowed", k,
                 parameter->is_pointer ? "pointer" : "tensor map",
                 lilac_simt_type_name(parameter->type));
        }
        if (parameter->is_pointer && parameter->is_tensor_map) {
            fail(v, "simt-parameter", "parameter %u is both a pointer and a tensor map", k);
        }
        if (!is_power_of_two(parameter->alignment)) {
            fail(v, "simt-parameter",
                 "the alignment of parameter %u is %u bytes; a power of two is allowed", k,
                 parameter->alignment);
        }
    }
}

static void check_kernel(verifier *v) {
    check_launch(v);
    check_parameters(v);
    lilac_simt_verify_body(v, v->kernel->body, LILAC_SIMT_OP_RETURN);
    v->ok = v->ok && lilac_simt_verify_programs(v->kernel);
}

bool lilac_simt_verify(const lilac_simt_module *module) {
    bool ok = true;
    for (const lilac_simt_kernel *kernel = module->kernels; kernel != NULL; kernel = kernel->next) {
        verifier v = {.module = module, .kernel = kernel, .ok = true};
        lilac_arena *arena = lilac_arena_create();
        v.reach = lilac_arena_array(arena, uint8_t, kernel->value_count);
        for (uint32_t k = 0; k < kernel->parameter_count; k++) {
            v.maps |= kernel->parameters[k].is_tensor_map;
        }
        check_kernel(&v);
        lilac_arena_destroy(arena);
        ok &= v.ok;
    }
    return ok;
}
