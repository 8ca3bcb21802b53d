/* source: the texts a compilation reads, places in them, diagnostics, and the scanner.
 *
 * Part of the component `base`.
 *
 *   position   a byte in a text that this library read (a .ttir file, a type on a command line)
 *   location   where the user's program says an operation came from: MLIR's loc(...) trees
 *   diagnostic severity, stable kebab-case id, position, message, notes; printed as
 *
 *       softmax.ttir:12:10: error: unknown operation 'tt.lod' [unknown-operation]
 *           %v = tt.lod %p : tensor<16x!tt.ptr<f32>>
 *                ^~~~~~
 *       kernels.py:17:16: note: from here
 *
 *   scanner    tokens of MLIR's assembly; all the readers of this library share it
 */
#ifndef LILAC_SOURCE_H
#define LILAC_SOURCE_H

#include <lilac/base.h>

LILAC_BEGIN

/* ---- texts and positions ---------------------------------------------------------------- */

/* source 0 is "nowhere"; a zeroed position is a valid nowhere. */
typedef struct lilac_position {
    uint32_t source;
    uint32_t offset; /* bytes */
} lilac_position;

/* Registers a text under a name for diagnostics (a path, "<argument 1>"). The bytes are copied.
 * Texts of 4 GiB and above are refused: 0, with a diagnostic. */
LILAC_API LILAC_MUST_USE uint32_t lilac_source_add(lilac_context *context, const char *name,
                                                   const char *bytes, size_t length);
LILAC_API const char *lilac_source_name(const lilac_context *context, uint32_t source);
LILAC_API const char *lilac_source_bytes(const lilac_context *context, uint32_t source,
                                         size_t *length);
/* 1-based line and column (column in bytes). Cost: logarithmic after the first call on a text. */
LILAC_API void lilac_position_resolve(lilac_context *context, lilac_position position,
                                      uint32_t *line, uint32_t *column);

/* ---- locations of the user's program (MLIR loc) ----------------------------------------- */

typedef uint32_t lilac_location; /* 0: unknown */

typedef enum lilac_location_kind {
    LILAC_LOCATION_UNKNOWN,
    LILAC_LOCATION_FILE,     /* name:line:column */
    LILAC_LOCATION_NAME,     /* "name"(a) */
    LILAC_LOCATION_CALLSITE, /* callsite(a at b): a inlined at b */
    LILAC_LOCATION_FUSED,    /* fused[list] */
    LILAC_LOCATION_TEXT /* no user's line: byte `column` of source `line`, for diagnostics only */
} lilac_location_kind;

typedef struct lilac_location_info {
    lilac_location_kind kind;
    lilac_name name;
    uint32_t line, column;
    lilac_location a, b;
    uint32_t count; /* of list */
    const lilac_location *list;
} lilac_location_info;

/* Interned: equal infos give equal locations. */
LILAC_API lilac_location lilac_location_get(lilac_context *context,
                                            const lilac_location_info *info);
LILAC_API const lilac_location_info *lilac_location_look(const lilac_context *context,
                                                         lilac_location location);
/* The file place a user would look at first: for a callsite the outermost caller's; of a fused list
 * the first that has one. False when there is none. */
LILAC_API bool lilac_location_file(const lilac_context *context, lilac_location location,
                                   lilac_name *file, uint32_t *line, uint32_t *column);

/* The location of a place in a text that the library read, for what has no line of the user's. It
 * is printed nowhere; a diagnostic at it has that place. A position that is nowhere gives 0. */
LILAC_API lilac_location lilac_location_of_text(lilac_context *context, lilac_position position);
/* The place that it is of; false: the location is of another kind. */
LILAC_API bool lilac_location_text(const lilac_context *context, lilac_location location,
                                   lilac_position *position);

/* ---- diagnostics ------------------------------------------------------------------------ */

typedef enum lilac_severity { LILAC_NOTE, LILAC_REMARK, LILAC_WARNING, LILAC_ERROR } lilac_severity;

typedef struct lilac_diagnostic {
    lilac_severity severity;
    const char *id; /* stable, kebab-case; NULL for notes */
    lilac_position position;
    uint32_t width;          /* bytes to underline, at least 1 */
    lilac_location location; /* the user's line, when known */
    const char *message;
    const struct lilac_diagnostic *notes; /* linked by next, in order */
    const struct lilac_diagnostic *next;
} lilac_diagnostic;

/* Records an error. A text full of mistakes records at most 64; further ones are counted only. */
LILAC_API void lilac_error(lilac_context *context, lilac_position position, lilac_location location,
                           const char *id, const char *format, ...) LILAC_PRINTF(5, 6);
LILAC_API void lilac_verror(lilac_context *context, lilac_position position,
                            lilac_location location, const char *id, const char *format,
                            va_list arguments) LILAC_PRINTF(5, 0);
LILAC_API void lilac_warning(lilac_context *context, lilac_position position,
                             lilac_location location, const char *id, const char *format, ...)
    LILAC_PRINTF(5, 6);
/* Attaches a note to the diagnostic recorded last. */
LILAC_API void lilac_note(lilac_context *context, lilac_position position, lilac_location location,
                          const char *format, ...) LILAC_PRINTF(4, 5);

/* A check of the library's own work failed: the errors recorded after `last` (NULL: all there are)
 * become notes of one error `internal-error`, which asks the user to report it. */
LILAC_API void lilac_internal_error(lilac_context *context, const lilac_diagnostic *last,
                                    lilac_position position, const char *format, ...)
    LILAC_PRINTF(4, 5);
/* Errors since the context was made or its diagnostics were reset, those not recorded included. */
LILAC_API uint32_t lilac_error_count(const lilac_context *context);
/* The recorded diagnostics, oldest first, linked by next. */
LILAC_API const lilac_diagnostic *lilac_diagnostics(const lilac_context *context);
/* Forgets the recorded diagnostics (for tools that read one line after another). */
LILAC_API void lilac_diagnostics_reset(lilac_context *context);
/* Forgets those recorded after `last` (NULL: all of them). */
LILAC_API void lilac_diagnostics_forget(lilac_context *context, const lilac_diagnostic *last);
/* The whole text of a source, each recorded diagnostic and note under the line that it is for:
 *
 *     %3 = add %1, %2 : i32
 *     ^ error: operand 2 is f32, which does not fit signature i,i:i [simt-operand-type]
 */
LILAC_API void lilac_source_annotate(lilac_text *out, const lilac_context *context,
                                     uint32_t source);
/* One diagnostic with its source line, caret and notes. */
LILAC_API void lilac_diagnostic_print(lilac_text *out, lilac_context *context,
                                      const lilac_diagnostic *diagnostic, bool colour);
LILAC_API void lilac_diagnostic_json(lilac_text *out, lilac_context *context,
                                     const lilac_diagnostic *diagnostic);

/* ---- scanner ---------------------------------------------------------------------------- */

typedef enum lilac_token_kind {
    LILAC_TOKEN_END,
    LILAC_TOKEN_WORD,    /* tt.load, dense, i32, tensor: letters digits _ $ . (no leading digit) */
    LILAC_TOKEN_VALUE,   /* %name        (text without the sigil, as for the next four) */
    LILAC_TOKEN_HASH,    /* #name, also #3 */
    LILAC_TOKEN_SYMBOL,  /* @name and @"quoted" */
    LILAC_TOKEN_BLOCK,   /* ^name */
    LILAC_TOKEN_BANG,    /* !tt.ptr */
    LILAC_TOKEN_INTEGER, /* 42, 0x2A; a sign is punctuation */
    LILAC_TOKEN_FLOAT,   /* 1.0, 1.000000e+00 */
    LILAC_TOKEN_STRING,  /* "…" (text without the quotes, escapes not undone) */
    LILAC_TOKEN_ARROW,   /* -> */
    LILAC_TOKEN_PUNCTUATION,
    LILAC_TOKEN_ERROR /* a byte that begins no token; already reported */
} lilac_token_kind;

typedef struct lilac_scanner {
    lilac_context *context;
    const char *text; /* whole source */
    size_t length;
    uint32_t source;
    /* current token */
    lilac_token_kind kind;
    char punctuation; /* for LILAC_TOKEN_PUNCTUATION */
    uint32_t offset;  /* of its first byte, sigil and quotes included */
    uint32_t end;     /* one past its last byte */
    const char *word; /* its text, not NUL-terminated */
    uint32_t word_length;
    uint32_t previous_end; /* end of the token before */
} lilac_scanner;

/* Starts at the first token of a registered source. Comments (// to the end of the line) and white
 * space separate tokens and mean nothing else. */
LILAC_API void lilac_scanner_init(lilac_scanner *scanner, lilac_context *context, uint32_t source);
LILAC_API void lilac_scanner_next(lilac_scanner *scanner);
/* Goes back (or forward) to the token that begins at a byte seen before. */
LILAC_API void lilac_scanner_seek(lilac_scanner *scanner, uint32_t offset);
LILAC_API lilac_position lilac_scanner_position(const lilac_scanner *scanner);
LILAC_API bool lilac_scanner_is(const lilac_scanner *scanner, char punctuation);
LILAC_API bool lilac_scanner_is_word(const lilac_scanner *scanner, const char *word);
/* Takes the token if it is this one; otherwise leaves it and says false (accept), or also reports
 * "expected …, found …" with id `syntax` (expect). */
LILAC_API bool lilac_scanner_accept(lilac_scanner *scanner, char punctuation);
LILAC_API bool lilac_scanner_accept_word(lilac_scanner *scanner, const char *word);
LILAC_API LILAC_MUST_USE bool lilac_scanner_expect(lilac_scanner *scanner, char punctuation);
LILAC_API LILAC_MUST_USE bool lilac_scanner_expect_word(lilac_scanner *scanner, const char *word);
/* An integer with optional minus; decimal or 0x. Refuses what does not fit 64 bits. */
LILAC_API LILAC_MUST_USE bool lilac_scanner_integer(lilac_scanner *scanner, int64_t *value);
/* What a hexadecimal digit counts; -1: the character is none. */
LILAC_API int lilac_hex_digit(char c);
/* "16x32x" before an element type: reads the dimensions and stops at the element type, also where
 * the scanner would see "x32xf16" as a word. Refuses more than `max` dimensions, dimensions below 1
 * and '?'. Rank 0 (no dimension) is allowed. */
LILAC_API LILAC_MUST_USE bool lilac_scanner_shape(lilac_scanner *scanner, int64_t *shape,
                                                  uint32_t max, uint32_t *rank);
/* Records an error at a position of the text. Always false, so `return` it. */
LILAC_API bool lilac_scanner_refuse(lilac_scanner *scanner, lilac_position position, const char *id,
                                    const char *format, ...) LILAC_PRINTF(4, 5);
/* Reports at the current token: "expected WHAT, found …". Always false, so `return` it. */
LILAC_API bool lilac_scanner_expected(lilac_scanner *scanner, const char *what);

LILAC_END

#endif
