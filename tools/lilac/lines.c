/* A file or standard input with one question per line, for the subcommands that answer line by
 * line.
 *
 * A line that defines the name of a layout ("#blocked = …") has no answer; the lines after it may
 * use the name. The whole input is one source of each context, so that diagnostics name the right
 * line; the scanner's end is set to the end of the current line. The memory of a context grows with
 * every line, so a new context replaces it after a few lines. */
#include "types.h"

#include <string.h>

enum { LINES_A_CONTEXT = 128 };

void scanner_hold(lilac_scanner *scanner, size_t start, size_t end) {
    scanner->length = end;
    lilac_scanner_seek(scanner, (uint32_t)start);
}

/* Answers the question in bytes start … end of the scanner's text, or defines a name. */
static void take_line(const line_answers *answers, void *data, type_scope *scope,
                      lilac_scanner *scanner, size_t start, size_t end) {
    if (!type_scope_defines(scanner->text + start, end - start)) {
        answers->answer(data, scanner, start, end);
        return;
    }
    scanner_hold(scanner, start, end);
    if (!type_scope_define(scope, scanner)) {
        answers->refuse(data, scanner->context);
    }
}

void each_line(const char *name, const lilac_text *input, const line_answers *answers, void *data,
               type_scope *scope) {
    const char *bytes = lilac_text_get(input);
    lilac_context *context = NULL;
    lilac_scanner scanner;
    uint32_t line = 0;
    for (size_t start = 0; start < input->length; line++) {
        const char *newline = memchr(bytes + start, '\n', input->length - start);
        const size_t end = newline != NULL ? (size_t)(newline - bytes) : input->length;
        if (line % LINES_A_CONTEXT == 0) {
            lilac_context_destroy(context);
            context = lilac_context_create();
            type_scope_enter(scope, context);
            const uint32_t source = lilac_source_add(context, name, bytes, input->length);
            if (source == 0) {
                answers->refuse(data, context);
                break;
            }
            lilac_scanner_init(&scanner, context, source);
            lilac_diagnostics_reset(context); /* the first token is read again with its line */
        }
        take_line(answers, data, scope, &scanner, start, end);
        start = end + 1;
    }
    lilac_context_destroy(context);
}
