/* A kernel's parameters as the command line binds them: those of a tile function or, for SIMT text,
 * those of a SIMT kernel. */
#ifndef LILAC_SIGNATURE_H
#define LILAC_SIGNATURE_H

#include <lilac/simt.h>
#include <lilac/tensor_map.h>
#include <lilac/tile.h>

typedef enum parameter_kind {
    PARAMETER_NUMBER,
    PARAMETER_POINTER, /* to elements of `scalar` */
    PARAMETER_ADDRESS, /* a pointer whose elements the kernel does not name */
    PARAMETER_TENSOR_MAP,
    PARAMETER_UNSUPPORTED
} parameter_kind;

typedef struct kernel_parameter {
    const char *name; /* never NULL */
    const char *type; /* as the text spells it */
    parameter_kind kind;
    lilac_scalar scalar; /* of the number, or what the pointer points to */
    int64_t divisor;     /* the kernel is compiled for multiples of it; 1: for every value */
    lilac_tensor_map
        map;   /* of a descriptor that is a tensor map: its box and swizzle; rank 0: none */
    bool made; /* a tensor map that the launcher makes from the other arguments */
    uint32_t descriptor_rank; /* of the tensor descriptor whose base pointer it is; 0: of none. Its
                                 shape, strides and padding are the next parameters */
    lilac_position position;
} kernel_parameter;

typedef struct kernel_signature {
    const char *name;
    lilac_position position;
    uint32_t count;
    const kernel_parameter *parameters;
    lilac_launch_maps launch_maps;
    bool malformed; /* its launch_maps: recorded */
} kernel_signature;

/* The signature of a function of tile IR, in the context's arena. */
kernel_signature signature_of_function(lilac_context *context, const lilac_tile_function *function);
/* The signature of a kernel that was read from the SIMT text `source`. */
kernel_signature signature_of_kernel(lilac_context *context, uint32_t source,
                                     const lilac_simt_kernel *kernel);

#endif
