/* Shared by the subcommands: exit statuses, tables of options, files and standard streams.
 *
 * Results are written to standard output, diagnostics to standard error. Colour is used only on a
 * terminal. A result file is written under another name and renamed, so that no incomplete file
 * remains.
 */
#ifndef LILAC_COMMAND_H
#define LILAC_COMMAND_H

#include <lilac.h>

#include "signature.h"

/* Exit statuses, one meaning everywhere. */
enum {
    STATUS_DONE = 0,
    STATUS_REFUSED = 1, /* the input was refused, with diagnostics */
    STATUS_USAGE = 2,   /* the command line was wrong */
    STATUS_CHECK = 3    /* a check that the command makes itself failed */
};

/* ---- options (options.c) ---------------------------------------------------------------- */

/* A growable list of strings that the command line holds. */
typedef struct string_list {
    const char **list;
    uint32_t count;
} string_list;

typedef enum option_kind {
    OPTION_FLAG,     /* bool: the option sets it to true */
    OPTION_FLAG_OFF, /* bool: the option sets it to false */
    OPTION_TEXT,     /* const char *: the last one counts */
    OPTION_TEXTS,    /* strings: all of them, in order */
    OPTION_NUMBER,   /* uint32_t, decimal */
    OPTION_COUNT     /* uint64_t, decimal */
} option_kind;

typedef struct option_row {
    const char *name;  /* "--num-warps"; NULL ends a table */
    const char *brief; /* "-o" or NULL */
    option_kind kind;
    void *where;
    const char *value; /* the placeholder of the value in the help text: "N" */
    const char *help;  /* may have several lines */
} option_row;

/* One subcommand. `help` is the text above its options. */
typedef struct subcommand {
    const char *name;
    const char *usage;   /* after "lilac NAME " */
    const char *summary; /* one line */
    const char *help;
    int (*run)(const struct subcommand *command, int argc, char **argv);
} subcommand;

/* Reads argv[1 …] by the table; other words are appended to `operands`. Returns -1 to continue, or
 * the exit status (after --help was printed or an error was reported). "-" is
 * an operand, "--" ends the options, --name=value and --name value mean the same. */
int options_read(const subcommand *command, const option_row *table, int argc, char **argv,
                 string_list *operands);
void strings_add(string_list *strings, const char *string);
void strings_clear(string_list *strings);
void command_help(const subcommand *command, const option_row *table, lilac_text *out);
/* Reports a wrong command line on standard error; returns STATUS_USAGE. */
int usage_error(const subcommand *command, const char *format, ...) LILAC_PRINTF(2, 3);
/* A whole string as a decimal number of at most `most`. */
bool read_number(const char *string, uint64_t most, uint64_t *value);
/* Is there one operand? -1 to continue, or STATUS_USAGE. `done` is the participle of the message:
 * "compiled". */
int check_one_file(const subcommand *command, const string_list *operands, const char *done);
/* A word of a fixed list; a row without a name ends it. */
typedef struct choice {
    const char *name;
    int value;
} choice;

/* The value of an option's word. -1 to continue, or STATUS_USAGE: the message lists the
 * words and suggests one. At most 16 words. */
int choice_read(const subcommand *command, const char *option, const char *word,
                const choice *choices, int *value);

extern const subcommand bench_command, compile_command, conflicts_command, convert_command,
    explain_command, explore_command, layout_command, opt_command, run_command, swizzle_command,
    view_command;

/* Options that compile and run have in common. */
typedef struct target_options {
    const char *target;                       /* NULL: absent */
    uint32_t num_warps, num_stages, num_ctas; /* or OPTION_NOT_GIVEN */
    bool keep_warps, keep_order, one_block, launch_maps, split_sums;
    string_list schedules;
} target_options;

#define OPTION_NOT_GIVEN UINT32_MAX

/* Their rows in a table of options. */
/* clang-format off */
#define TARGET_OPTION_ROWS(to)                                                                     \
    {"--target", NULL, OPTION_TEXT, &(to).target, "NAME",                                          \
     "the device: what the module is for, or else sm_90a"},                                        \
    {"--num-warps", NULL, OPTION_NUMBER, &(to).num_warps, "N",                                     \
     "warps of a block: what the module is for, or else 4"},                                       \
    {"--keep-warps", NULL, OPTION_FLAG, &(to).keep_warps, NULL,                                    \
     "that many warps, even where another number is faster"},                                      \
    {"--keep-order", NULL, OPTION_FLAG, &(to).keep_order, NULL,                                    \
     "programs start in the order of their numbers, not of their work"},                           \
    {"--one-block", NULL, OPTION_FLAG, &(to).one_block, NULL,                                      \
     "for launches in which no multiprocessor gets two blocks"},                                   \
    {"--num-stages", NULL, OPTION_NUMBER, &(to).num_stages, "N",                                   \
     "depth of software pipelines: 3 unless said otherwise"},                                      \
    {"--num-ctas", NULL, OPTION_NUMBER, &(to).num_ctas, "N",                                       \
     "blocks of a cluster: what the module is for, or else 1"},                                    \
    {"--launch-maps", NULL, OPTION_FLAG, &(to).launch_maps, NULL,                                  \
     "let the kernel have tensor maps that its launcher makes"},                                   \
    {"--split-sums", NULL, OPTION_FLAG, &(to).split_sums, NULL,                                    \
     "with --launch-maps: let it divide sums of products among blocks"},                           \
    {"--schedule", NULL, OPTION_TEXTS, &(to).schedules, "KEY=VALUE,…",                             \
     "the schedule of the loops with matrix products, or of number\n"                              \
     "N of them, as N:distance=2,copies=last; \"lilac explain\"\n"                                 \
     "prints schedules. What is not given is as usual"}
/* clang-format on */

void target_options_init(target_options *target);
void target_options_clear(target_options *target);
/* Print the output of --list-devices and --list-passes; return the exit status. */
int list_devices(void);
int list_passes(void);
/* Are the names of this list, "a,b" or NULL, passes? -1, or STATUS_USAGE. */
int check_passes(const subcommand *command, const char *option, const char *list);
/* The device of that name; NULL leaves *arch unchanged. -1, or STATUS_USAGE. */
int device_find(const subcommand *command, const lilac_arch **arch, const char *name);
/* Into the library's options; -1, or STATUS_USAGE when no device has that shape. */
int target_options_apply(const subcommand *command, const target_options *target,
                         lilac_options *options);

/* ---- files and streams (files.c, reports.c) --------------------------------------------- */

/* Reports "lilac: error: …" on standard error; always false, so `return` it. */
bool file_error(const char *format, ...) LILAC_PRINTF(1, 2);
/* The whole of a file, or of standard input for "-". False when it cannot be read: reported. */
bool file_read(const char *path, lilac_text *contents);
/* The same as a source of the context, with its name for diagnostics. 0: reported, or recorded as a
 * diagnostic. */
uint32_t source_read(lilac_context *context, const char *path);
/* Replaces a file in one step (a device or a pipe is written to directly); NULL is standard output.
 * False when that failed: reported, and what was there before is still there. */
bool file_write(const char *path, const void *bytes, size_t size);
/* Do two paths name one regular file? */
bool is_same_file(const char *a, const char *b);
/* Prints the context's diagnostics on standard error, and forgets them. */
void print_diagnostics(lilac_context *context);
/* The program that a pass left malformed, on standard error, each error under its line. Source 0:
 * nothing. */
void print_malformed(const lilac_context *context, uint32_t source);

/* ---- numpy files (npy.c) ---------------------------------------------------------------- */

enum { NPY_MAX_RANK = 32 };

typedef struct npy {
    char kind;      /* f i u b, as numpy names them */
    uint32_t bytes; /* of one element */
    uint32_t rank;
    uint64_t shape[NPY_MAX_RANK];
    uint64_t count; /* of elements */
    uint8_t *data;  /* count * bytes of them */
} npy;

/* The array in a .npy file (format 1, 2 or 3, C order, little-endian). False, with the reason in
 * `why`, when the file is none or is cut short. */
bool npy_read(npy *array, const char *path, lilac_text *why);
bool npy_write(const npy *array, const char *path);
void npy_clear(npy *array);
/* "float16", "int64", "bool": numpy's name of an element type. */
void npy_type_name(lilac_text *out, char kind, uint32_t bytes);
/* Does an array of this element type hold a buffer of this scalar? bf16 and the 8-bit floats, which
 * numpy does not have, are held as raw bits in integers of their width. */
bool npy_holds(const npy *array, lilac_scalar scalar);
/* The element type for a buffer of this scalar; false when there is none. */
bool npy_type_for(npy *array, lilac_scalar scalar);

/* ---- a kernel's arguments (arguments.c) -------------------------------------------------- */

enum { POINTER_NULL = -1 };

/* Where a pointer points: `offset` bytes into a buffer, or nowhere. */
typedef struct pointer_target {
    int32_t buffer; /* POINTER_NULL: nowhere */
    uint64_t offset;
} pointer_target;

/* A parameter, or a buffer of --buffer. */
typedef struct bound_name {
    const char *name;
    lilac_scalar scalar; /* of what a pointer points to; i64 for addresses */
    bool is_pointer, bound, failed;
    bool is_filled; /* a part of a tensor descriptor that follows from its buffer */
    pointer_target target;
} bound_name;

/* A pointer that is an element of a buffer. */
typedef struct pointer_entry {
    uint32_t buffer;
    uint64_t index;
    pointer_target target;
} pointer_entry;

typedef struct pointer_reference pointer_reference;
typedef struct map_reference map_reference;

/* Everything a launch needs for the parameters of one kernel. */
typedef struct bound_arguments {
    uint32_t count; /* of parameters */
    kernel_signature signature;
    uint64_t *bits;    /* `count` of them: the values of the parameters */
    bound_name *names; /* parameters, then buffers of --buffer */
    uint32_t name_count;
    npy *contents; /* one for each buffer */
    lilac_sim_buffer *buffers;
    uint32_t buffer_count;
    pointer_entry *entries;
    uint32_t entry_count;
    pointer_reference *references; /* while names are bound */
    uint32_t reference_count;
    lilac_tensor_map *maps; /* of the parameters that are tensor maps: bits is the index */
    map_reference *map_references;
    uint32_t map_count;
    bool misused; /* the command line names buffers wrongly: STATUS_USAGE */
} bound_arguments;

/* Binds NAME=VALUE strings to the kernel's parameters and to buffers of --buffer. All errors
 * are recorded as diagnostics; false if there are any. Clear in either case.
 * Pointers are those of the simulator. */
bool arguments_bind(bound_arguments *arguments, lilac_context *context,
                    const kernel_signature *signature, const string_list *given,
                    const string_list *buffers);
void arguments_clear(bound_arguments *arguments);
/* Sets the pointers, among the arguments and in buffers, for buffers at these addresses. */
void arguments_place(bound_arguments *arguments, const uint64_t *addresses);
/* Makes the tensor maps that the launcher makes, when the pointers are set. False: recorded. */
bool arguments_make_maps(bound_arguments *arguments, lilac_context *context,
                         const lilac_simt_kernel *kernel, const uint32_t grid[3]);
/* The index of that name, or -1. */
int32_t arguments_find(const bound_arguments *arguments, const char *name, size_t length);
/* The memory that a name points to, up to the end of its buffer, as an array of the name's element
 * type. The data belong to the buffer. */
npy arguments_view(const bound_arguments *arguments, uint32_t name);

/* ---- comparing (expect.c) ---------------------------------------------------------------- */

/* The difference between a buffer and its expected contents. */
typedef struct comparison {
    const char *name;       /* the parameter */
    double largest;         /* largest |out - ref| */
    double relative;        /* ‖out - ref‖ / ‖ref‖ */
    double tolerance;       /* that relative may be at most */
    uint64_t largest_index; /* where the largest error is */
    uint64_t count;
    bool passed;
} comparison;

/* Compares a buffer to "NAME=file.npy[,TOLERANCE]". False when the request itself was wrong:
 * recorded as a diagnostic. */
bool expect_compare(comparison *result, lilac_context *context, const bound_arguments *arguments,
                    const char *request, uint32_t index);

#endif
