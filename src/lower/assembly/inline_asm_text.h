/* Declarations that the files that translate inline assembly share.
 *
 *   inline_asm_text.c       the text: words, declarations, operands, instructions as written
 *   inline_asm_translate.c  the walk over the text, and the instructions by name
 *   inline_asm_values.c     values of registers, and the instructions that copy or convert them */
#ifndef LILAC_LOWER_INLINE_ASM_TEXT_H
#define LILAC_LOWER_INLINE_ASM_TEXT_H

#include "inline_asm.h"

enum { LILAC_ASM_MOST_NAMES = 128, LILAC_ASM_MOST_OPERANDS = 8, LILAC_ASM_MOST_KINDS = 6 };

typedef struct lilac_asm_variable {
    const char *name;
    uint32_t length;
    uint32_t bits;
    lilac_simt_value value; /* 0: not defined yet */
} lilac_asm_variable;

typedef struct lilac_asm_translator {
    lilac_lowering *l;
    lilac_lower_asm *piece;
    const char *at;
    lilac_asm_variable names[LILAC_ASM_MOST_NAMES];
    uint32_t name_count;
} lilac_asm_translator;

/* An operand as written. */
typedef struct lilac_asm_operand {
    bool immediate;
    uint64_t bits;        /* of an immediate: an integer's, or a float's */
    uint32_t float_bits;  /* 32 or 64: the immediate is 0f… or 0d… */
    uint32_t count;       /* registers: one, or those in braces */
    int32_t registers[4]; /* $n as n, names as -1 - index */
    const char *special;  /* "%laneid" … */
    uint32_t special_length;
} lilac_asm_operand;

/* An instruction as written. */
typedef struct lilac_asm_instruction {
    const char *name;
    uint32_t name_length;
    const char *kinds[LILAC_ASM_MOST_KINDS];
    uint32_t kind_lengths[LILAC_ASM_MOST_KINDS], kind_count; /* without the types */
    lilac_simt_type types[2];
    char type_kinds[2]; /* b u s f */
    uint32_t type_count;
    lilac_asm_operand operands[LILAC_ASM_MOST_OPERANDS];
    uint32_t operand_count;
} lilac_asm_instruction;

/* ---- reading (inline_asm_text.c); false: not understood ----------------------------------- */

/* Skips blanks and comments. */
void lilac_asm_skip(lilac_asm_translator *t);
/* Skips blanks, and the character `c` if it is next. Returns whether it was. */
bool lilac_asm_accept(lilac_asm_translator *t, char c);
bool lilac_asm_is_word(const char *at, uint32_t length, const char *word);
/* Reads the rest of a declaration after ".reg": .b32 a, b<4>; */
bool lilac_asm_read_declaration(lilac_asm_translator *t);
/* Reads an instruction: name[.kind …].type[.type] operands; */
bool lilac_asm_read_instruction(lilac_asm_translator *t, lilac_asm_instruction *i);
bool lilac_asm_has_kind(const lilac_asm_instruction *i, const char *kind);
/* Are all kinds of the instruction in the list, whose words are separated by spaces? */
bool lilac_asm_only_kinds(const lilac_asm_instruction *i, const char *allowed);

/* ---- values (inline_asm_values.c) -------------------------------------------------------- */

/* The value of a register, 0 if it has none yet, and its width. */
lilac_simt_value lilac_asm_get_register(const lilac_asm_translator *t, int32_t number,
                                        uint32_t *bits);
/* The operand as a value of this type. 0: it is not defined, or it has another width. */
lilac_simt_value lilac_asm_get(const lilac_asm_translator *t, const lilac_asm_operand *o,
                               lilac_simt_type type);
/* Defines a register. False: the value is 0 or has another width than the register, or the register
 * is an operand. */
bool lilac_asm_put_register(lilac_asm_translator *t, int32_t number, lilac_simt_value value);
bool lilac_asm_put(lilac_asm_translator *t, const lilac_asm_operand *o, lilac_simt_value value);
/* Translates mov and cvt. False: the instruction is not translated. */
bool lilac_asm_move(lilac_asm_translator *t, const lilac_asm_instruction *i);
bool lilac_asm_convert(lilac_asm_translator *t, const lilac_asm_instruction *i);

#endif
