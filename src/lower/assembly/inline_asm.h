/* Between the operation (inline_asm.c) and the reader of its text (inline_asm_text.h). */
#ifndef LILAC_LOWER_INLINE_ASM_H
#define LILAC_LOWER_INLINE_ASM_H

#include "lower_internal.h"

enum { LILAC_LOWER_MOST_ASM = 64 }; /* results and operands of one piece of assembly */

/* A piece of assembly: $0 … are the results, then the operands. */
typedef struct lilac_lower_asm {
    const char *text;
    uint32_t results, operands;
    lilac_simt_type types[LILAC_LOWER_MOST_ASM];    /* of the results */
    lilac_simt_value values[LILAC_LOWER_MOST_ASM];  /* operands */
    lilac_simt_value outcome[LILAC_LOWER_MOST_ASM]; /* results */
} lilac_lower_asm;

/* Builds the text's instructions as operations of SIMT IR when all of them are known; false, with
 * nothing reported, when one is not (inline_asm_translate.c). What was built until then is not
 * used. */
bool lilac_lower_translate_asm(lilac_lowering *l, lilac_lower_asm *piece);

#endif
