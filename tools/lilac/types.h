/* A TYPE on a command line: whatever has a linear layout, in one form for all subcommands. */
#ifndef LILAC_TYPES_H
#define LILAC_TYPES_H

#include "command.h"

/* Outputs of the layout are dim0 … of the shape; its inputs say what it lays out over (register,
 * lane, warp, block for a distributed tensor; offset … for memory). */
typedef struct laid_out_type {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    uint32_t element_bits; /* of an element; a pointer's are 64; 0: not said */
    lilac_scalar scalar;   /* what the elements are, or what they point to */
    bool pointers;
    lilac_layout layout; /* before padding */
    uint32_t padding_count;
    lilac_view_padding padding[LILAC_ENCODING_MAX_PADDINGS]; /* in elements */
} laid_out_type;

/* The type that the scanner's text is, to its very end. False: diagnostics say why. */
bool type_read(lilac_scanner *scanner, laid_out_type *type);
/* The same for argument number `number` of a command line, which diagnostics name so. */
bool type_read_argument(lilac_context *context, const char *text, uint32_t number,
                        laid_out_type *type);

/* Is it spread over registers, lanes, warps? Else it is memory. */
bool type_is_distributed(const laid_out_type *type);
/* A device whose warps have the type's lanes. */
const lilac_arch *type_device(const laid_out_type *type);

/* ---- pairs of types (pairs.c) ------------------------------------------------------------ */

typedef struct type_pair {
    const char *text[2]; /* as they were given */
    size_t length[2];
    lilac_position position[2]; /* of their beginnings */
    laid_out_type type[2];
} type_pair;

/* What becomes of all pairs: the answers, and the exit status. */
typedef struct pair_answers {
    lilac_text text;
    bool a_line;   /* each on a line of its own: the pairs come from standard input */
    bool refused;  /* one at least */
    bool disagree; /* one at least is not as it was predicted */
} pair_answers;

/* What to do with a pair; NULL when one of its types was refused or is missing, and diagnostics say
 * why. What it reports itself is printed when it returns. `data` begins with pair_answers. */
typedef void pair_answer(void *data, lilac_context *context, const type_pair *pair);

/* Answers the pair that two operands are, or for "-" each line of standard input, a pair with a tab
 * between the two, and prints the answers. STATUS_USAGE when the operands are neither, which is
 * reported as `what` and "or - …"; otherwise what the answers say. */
int pairs_run(const subcommand *command, const string_list *operands, const char *what,
              pair_answer *answer, void *data);
/* "null" for a pair that is refused. */
void pair_refused(pair_answers *answers);
/* Reports an error at one of the pair's types; always false, so `return` it. */
bool pair_refuse(lilac_context *context, const type_pair *pair, uint32_t side, const char *id,
                 const char *text);
/* Both types say what their elements are, and they are the same; false: reported at the second. */
bool pair_same_elements(lilac_context *context, const type_pair *pair);

/* ---- layouts written out (forms.c) ------------------------------------------------------- */

/* A CuTe layout, or a memory layout with a name of its own. */
typedef struct layout_form {
    lilac_position position;
    bool is_cute;
    union {
        lilac_cute cute;
        lilac_memory_form memory;
    } as;
} layout_form;

/* Does the text begin like one? */
bool form_at(const lilac_scanner *scanner);
/* To the very end of the text. False, here and below: diagnostics say why. */
bool form_read(lilac_scanner *scanner, layout_form *form);
/* The same and its layout: form_layout. */
bool form_read_type(lilac_scanner *scanner, laid_out_type *type);
/* Its layout as memory, offset → dims; its map, dims → offset; and, padding included and linear or
 * not, the CuTe layout it is. */
bool form_layout(lilac_context *context, lilac_layout *result, const layout_form *form);
bool form_offsets(lilac_context *context, lilac_layout *result, const layout_form *form);
bool form_cute(lilac_context *context, lilac_cute *result, const layout_form *form);

#endif
