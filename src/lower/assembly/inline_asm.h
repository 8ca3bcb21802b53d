/* The interface between the lowering of inline assembly (inline_asm.c) and its translation
 * (inline_asm_translate.c). */
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

/* Builds the instructions of the text as SIMT operations (inline_asm_translate.c). False, without a
 * diagnostic: an instruction is not known; the operations before it have no uses. */
bool lilac_lower_translate_asm(lilac_lowering *l, lilac_lower_asm *piece);

#endif
