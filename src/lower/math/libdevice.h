/* Rows of the table of libdevice's operations, which are not functions of doubles (libdevice.c). */
#ifndef LILAC_LOWER_LIBDEVICE_H
#define LILAC_LOWER_LIBDEVICE_H

#include "functions.h"

typedef struct lilac_lower_operation lilac_lower_operation;
struct lilac_lower_operation {
    const char *name;  /* without __nv_ */
    const char *types; /* the result's letter, then the operands' */
    lilac_simt_value (*build)(math_builder *k, const lilac_lower_operation *row,
                              const lilac_simt_value *in);
    uint16_t code;   /* lilac_simt_opcode */
    uint16_t detail; /* rounding, flags: by `build` */
};

/* f, d, i, l: f32, f64, i32, i64. */
static inline lilac_simt_type lilac_lower_type_named(char letter) {
    return letter == 'f'   ? LILAC_SIMT_F32
           : letter == 'd' ? LILAC_SIMT_F64
           : letter == 'i' ? LILAC_SIMT_I32
                           : LILAC_SIMT_I64;
}

/* NULL: there is none of that name. */
const lilac_lower_operation *lilac_lower_find_operation(const char *name);

#endif
