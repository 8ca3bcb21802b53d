/* What the two files of the reader share. */
#ifndef LILAC_SIMT_READ_H
#define LILAC_SIMT_READ_H

#include "internal.h"

enum {
    MOST_OPERANDS = 4096, /* of one instruction, and results and arguments */
    OPCODE_SLOTS = 512
};

typedef struct known_name {
    lilac_name name;
    lilac_simt_value value;
} known_name;

typedef struct result_name {
    lilac_name name;
    uint32_t offset;
    bool uniform;
} result_name;

typedef struct reader {
    lilac_scanner scanner;
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    known_name *known; /* names of the kernel's values, open addressing */
    uint32_t known_count, known_capacity;
    lilac_simt_value *operands; /* a stack */
    uint32_t operand_count, operand_capacity;
    result_name *results; /* a stack */
    uint32_t result_count, result_capacity;
    lilac_simt_type types[MOST_OPERANDS]; /* the list read last */
    uint32_t type_count;
    uint16_t opcodes[OPCODE_SLOTS];
    uint32_t depth, deepest; /* bodies that are open, and the limit where it is known */
} reader;

typedef struct written_number {
    lilac_token_kind kind;
    bool negative;
    const char *word;
    uint32_t length, offset;
} written_number;

/* Report and are false. */
bool lilac_simt_read_fail_at(reader *r, uint32_t offset, const char *id, const char *what,
                             const char *name, size_t length);
bool lilac_simt_read_fail_here(reader *r, const char *id, const char *what);
/* Is there a line break between the token before and this one? */
bool lilac_simt_read_on_new_line(const reader *r);
/* Where a name stands in the table, or would. */
uint32_t lilac_simt_read_name_slot(const reader *r, lilac_name name);
/* The name of the current token, which is passed. */
lilac_name lilac_simt_read_take_name(reader *r);
/* Gives a value its name. */
void lilac_simt_read_define(reader *r, const result_name *result, lilac_simt_value value);
/* Lists: operands and results go onto their stacks, types into r->types. */
bool lilac_simt_read_operand(reader *r);
bool lilac_simt_read_operands(reader *r);
bool lilac_simt_read_result(reader *r);
bool lilac_simt_read_type(reader *r, lilac_simt_type *type);
bool lilac_simt_read_types(reader *r);
/* The text between quotes with \HH, \n, \t, \", \\ undone. */
lilac_name lilac_simt_read_unescape(reader *r, const char *bytes, size_t length);
bool lilac_simt_read_string(reader *r, lilac_name *text);
bool lilac_simt_read_count(reader *r, uint32_t *count);
/* [loc("file":line:column)] */
bool lilac_simt_read_location(reader *r, lilac_location *location);
/* The number of a constant, and its bits once the type is known. */
bool lilac_simt_read_literal(reader *r, written_number *literal);
bool lilac_simt_read_literal_bits(reader *r, const written_number *literal, lilac_simt_type type,
                                  uint64_t *bits);
/* One of the words of a NULL-terminated list. */
bool lilac_simt_read_choice(reader *r, const char *const *names, uint8_t *choice);
/* [{modifier, …}] */
bool lilac_simt_read_modifiers(reader *r, lilac_simt_instruction *like);

#endif
