/* A TYPE on a command line: anything with a linear layout, in one form for all subcommands. */
#ifndef LILAC_TYPES_H
#define LILAC_TYPES_H

#include "command.h"

/* The outputs of the layout are dim0 … of the shape. Its inputs are register, lane, warp and block
 * for a distributed tensor, and offset … for memory. */
typedef struct laid_out_type {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    uint32_t element_bits; /* of an element; 64 for a pointer; 0: unknown */
    lilac_scalar scalar;   /* the type of the elements, or the type that they point to */
    bool pointers;
    lilac_layout layout; /* before padding */
    uint32_t padding_count;
    lilac_view_padding padding[LILAC_ENCODING_MAX_PADDINGS]; /* in elements */
} laid_out_type;

/* The context for reading types: named layouts ("#blocked = #ttg.blocked<…>"), and the tensor to
 * which a layout without a tensor type applies.
 * Zero-initialise, then type_scope_check. */
typedef struct type_scope {
    const char *shape_text, *element_text; /* of --shape and --element; NULL: absent */
    uint32_t rank;                         /* of --shape; 0: absent */
    int64_t shape[LILAC_MAX_RANK];
    lilac_scalar element;
    string_list definitions;        /* texts that define a name, on the heap, in order */
    lilac_encoding_aliases aliases; /* the same in the context that was entered last */
} type_scope;

/* Their rows in a table of options. */
/* clang-format off */
#define TYPE_SCOPE_ROWS(scope)                                                                     \
    {"--shape", NULL, OPTION_TEXT, &(scope).shape_text, "SIZES",                                   \
     "the shape for a TYPE that is a layout alone: 128x64"},                                       \
    {"--element", NULL, OPTION_TEXT, &(scope).element_text, "TYPE",                                \
     "the element type for a TYPE that is a layout alone (f32)"}
/* clang-format on */

/* Reads the options. -1 to go on, or STATUS_USAGE. */
int type_scope_check(const subcommand *command, type_scope *scope);
void type_scope_clear(type_scope *scope);
/* Defines the names in a context. Required for each new context before its first type is read. */
void type_scope_enter(type_scope *scope, lilac_context *context);
/* Is this text the definition of a name: "#name = …"? */
bool type_scope_defines(const char *text, size_t length);
/* Reads a definition and defines its name. False with diagnostics. */
bool type_scope_define(type_scope *scope, lilac_scanner *scanner);
/* Moves the definitions among the operands into the scope, the other operands into `types`. False:
 * a definition was refused, which is reported. */
bool type_scope_take(type_scope *scope, const string_list *operands, string_list *types);

/* Is the operand a file rather than a type? It is if a file of this name exists, or if it has a '/'
 * or a '.' and none of the characters that types have. */
bool operand_is_file(const char *operand);

/* Reads the scanner's whole text as one type. False with diagnostics. */
bool type_read(lilac_scanner *scanner, const type_scope *scope, laid_out_type *type);
/* The same for argument number `number` of a command line, which diagnostics name so. */
bool type_read_argument(lilac_context *context, const type_scope *scope, const char *text,
                        uint32_t number, laid_out_type *type);
/* A tensor or memory type of a module; memory that is a part of an allocation has the layout of the
 * part. False: it has no layout. */
bool type_of_tile(lilac_context *context, const lilac_tile_type *tile, laid_out_type *type);

/* Is it spread over registers, lanes, warps? Else it is memory. */
bool type_is_distributed(const laid_out_type *type);
/* A device whose warps have the type's lanes. */
const lilac_arch *type_device(const laid_out_type *type);

/* ---- a question a line (lines.c) --------------------------------------------------------- */

/* Callbacks for the lines of a text. `answer` answers bytes start … end of the scanner's text; the
 * scanner is at an arbitrary position. `refuse` reports that a line, or the whole text, is
 * refused. */
typedef struct line_answers {
    void (*answer)(void *data, lilac_scanner *scanner, size_t start, size_t end);
    void (*refuse)(void *data, lilac_context *context);
} line_answers;

/* Answers each line of a text, which diagnostics name `name`. Lines that define the name of a
 * layout go into the scope. */
void each_line(const char *name, const lilac_text *input, const line_answers *answers, void *data,
               type_scope *scope);
/* Puts the scanner at byte `start` of its text and lets it see no further than `end`. */
void scanner_hold(lilac_scanner *scanner, size_t start, size_t end);

/* ---- pairs of types (pairs.c) ------------------------------------------------------------ */

typedef struct type_pair {
    const char *place;   /* "FILE:LINE" of the operation that the pair is of, or NULL */
    const char *text[2]; /* as on the command line */
    size_t length[2];
    lilac_position position[2]; /* of their beginnings */
    laid_out_type type[2];
} type_pair;

/* The answers for all pairs, and the facts for the exit status. */
typedef struct pair_answers {
    lilac_text text;
    bool a_line;   /* each on a line of its own: the pairs come from standard input */
    bool refused;  /* one at least */
    bool disagree; /* one at least is not as it was predicted */
} pair_answers;

/* Answers a pair. NULL: one of its types is refused or missing, and the context has the
 * diagnostics. Diagnostics of the function are printed when it returns. `data` begins with
 * pair_answers. */
typedef void pair_answer(void *data, lilac_context *context, const type_pair *pair);

/* Where pairs come from. */
typedef struct pair_source {
    const char *what; /* "two tensor types", for messages */
    /* The pair of types of one operation of a module; false: it has none. */
    bool (*of_op)(const lilac_tile_op *op, const lilac_tile_type *types[2]);
    type_scope *scope;
} pair_source;

/* Answers the pair that two operands are; or for "-", standard input, and for a file each line, a
 * pair with a tab between the two, or, of a module, each operation that has such a pair. Prints
 * the answers. STATUS_USAGE after a report if the operands are none of these; otherwise the status
 * of the answers. */
int pairs_run(const subcommand *command, const string_list *operands, const pair_source *source,
              pair_answer *answer, void *data);
/* Do the operands name several pairs? Then each answer has one line. */
bool pairs_are_lines(const string_list *operands);
/* The tensors of a ttg.convert_layout: pair_source.of_op of convert and swizzle. */
bool pair_of_conversion(const lilac_tile_op *op, const lilac_tile_type *types[2]);
/* "FILE:LINE: " of a pair that is of an operation. */
void put_pair_place(lilac_text *out, const type_pair *pair);
/* "null" for a pair that is refused. */
void pair_refused(pair_answers *answers);
/* Reports an error at one of the pair's types; always false, so `return` it. */
bool pair_refuse(lilac_context *context, const type_pair *pair, uint32_t side, const char *id,
                 const char *text);
/* Checks that both types have the same, known element type. False: reported at the second type. */
bool pair_same_elements(lilac_context *context, const type_pair *pair);

/* ---- modules (modules.c) ------------------------------------------------------------------ */

/* Is the text a module rather than lines of types? */
bool module_at(const char *text, size_t length);
/* Calls `visit` for each operation of the module in the source, in order. False: the module was
 * refused; diagnostics say why. */
bool module_each_op(lilac_context *context, uint32_t source,
                    void (*visit)(void *data, const lilac_tile_op *op), void *data);

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

/* Does the text begin like a written-out layout? */
bool form_at(const lilac_scanner *scanner);
/* Reads the whole text. False with diagnostics, here and below. */
bool form_read(lilac_scanner *scanner, layout_form *form);
/* The same and its layout: form_layout. */
bool form_read_type(lilac_scanner *scanner, laid_out_type *type);
/* Its layout as memory, offset → dims; its map, dims → offset; and, padding included and linear or
 * not, the CuTe layout it is. */
bool form_layout(lilac_context *context, lilac_layout *result, const layout_form *form);
bool form_offsets(lilac_context *context, lilac_layout *result, const layout_form *form);
bool form_cute(lilac_context *context, lilac_cute *result, const layout_form *form);

#endif
