/* Standard input, one question a line: what `-` means to the subcommands that answer a line each.
 *
 * The whole input is one source of each context, so that diagnostics name the right line, and a
 * scanner is held to one line after another. What a context keeps of lines that are done would
 * grow without bound, so every few lines a fresh one begins. */
#include "command.h"

#include <string.h>

enum { LINES_A_CONTEXT = 128 };

void scanner_hold(lilac_scanner *scanner, size_t start, size_t end) {
    scanner->length = end;
    lilac_scanner_seek(scanner, (uint32_t)start);
}

bool each_line(const line_answers *answers, void *data) {
    lilac_text input;
    lilac_text_init(&input);
    if (!file_read("-", &input)) {
        lilac_text_clear(&input);
        return false;
    }
    const char *bytes = lilac_text_get(&input);
    lilac_context *context = NULL;
    lilac_scanner scanner;
    uint32_t line = 0;
    for (size_t start = 0; start < input.length; line++) {
        const char *newline = memchr(bytes + start, '\n', input.length - start);
        const size_t end = newline != NULL ? (size_t)(newline - bytes) : input.length;
        if (line % LINES_A_CONTEXT == 0) {
            lilac_context_destroy(context);
            context = lilac_context_create();
            const uint32_t source = lilac_source_add(context, "<stdin>", bytes, input.length);
            if (source == 0) {
                answers->refuse(data, context);
                break;
            }
            lilac_scanner_init(&scanner, context, source);
            lilac_diagnostics_reset(context); /* the first token is read again in its turn */
        }
        answers->answer(data, &scanner, start, end);
        start = end + 1;
    }
    lilac_context_destroy(context);
    lilac_text_clear(&input);
    return true;
}
