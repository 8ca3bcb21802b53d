/* Shared by the files that bind a kernel's arguments: arguments.c, buffers.c, pointers.c,
 * tensor_maps.c, descriptors.c. */
#ifndef LILAC_ARGUMENTS_H
#define LILAC_ARGUMENTS_H

#include "command.h"

/* One string NAME=VALUE that is being bound. */
typedef struct value_binding {
    lilac_context *context;
    bound_arguments *arguments;
    uint32_t source; /* the string as a text */
    uint32_t offset; /* of the value in it */
    const char *value;
    uint32_t name; /* index of arguments->names; below arguments->count: a parameter */
} value_binding;

/* Records an error at byte `at` of the value, and a note at the parameter. Always false. */
bool argument_refuse(const value_binding *binding, size_t at, const char *id, const char *format,
                     ...) LILAC_PRINTF(4, 5);
/* The same for a value that names other values of the command line wrongly: status 2. */
bool argument_misuse(const value_binding *binding, size_t at, const char *format, ...)
    LILAC_PRINTF(3, 4);
/* The alignment that a parameter's specialisation promises; 1: none. */
int64_t argument_divisor(const bound_arguments *arguments, uint32_t name);

/* ---- contents (buffers.c) ---------------------------------------------------------------- */

/* Adds the buffer that is the name's own. `array` and `written` (or NULL) become the arguments'. */
void buffer_add(bound_arguments *arguments, uint32_t name, const npy *array, uint8_t *written);
/* Binds @file, zeros:, empty: or random:. `scalar` is the type that the parameter points to; NULL:
 * the type that the value names. */
bool buffer_bind(const value_binding *binding, const lilac_scalar *scalar);

/* ---- pointers (pointers.c) --------------------------------------------------------------- */

/* Is the value null, same: or pointers:? */
bool pointer_is(const char *value);
/* Binds such a value; names in it are looked up by pointers_resolve. */
bool pointer_bind(const value_binding *binding, const lilac_scalar *scalar);
/* Finds what same: and pointers: name, when all names are bound. */
bool pointers_resolve(bound_arguments *arguments);
void pointers_clear(bound_arguments *arguments);

/* ---- tensor maps (tensor_maps.c) --------------------------------------------------------- */

/* Is the value tensor_map:…? */
bool tensor_map_is(const char *value);
bool tensor_map_bind(const value_binding *binding);
/* Binds a buffer to a parameter that is a descriptor: its map has the buffer as tensor. */
bool tensor_map_bind_buffer(const value_binding *binding, const kernel_parameter *parameter);
/* Adds the maps that the launcher makes, which no value is bound to. */
void tensor_maps_add_made(bound_arguments *arguments);
/* Finds the buffers that the maps name, when all names are bound. */
bool tensor_maps_resolve(bound_arguments *arguments);
/* Sets the addresses of the maps' buffers. */
void tensor_maps_place(bound_arguments *arguments, const uint64_t *addresses);
void tensor_maps_clear(bound_arguments *arguments);

/* ---- tensor descriptors (descriptors.c) -------------------------------------------------- */

/* Marks the parts of descriptors that follow from a buffer as bound. */
void descriptors_find(bound_arguments *arguments);
/* Sets them, when all names are bound. */
bool descriptors_fill(bound_arguments *arguments, lilac_context *context);

#endif
