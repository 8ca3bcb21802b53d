/* Sources and errors: what is read for a context, and the reports on standard error. */
#define _XOPEN_SOURCE 700 /* STDERR_FILENO */

#include "command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool file_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("lilac: error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

uint32_t source_read(lilac_context *context, const char *path) {
    uint32_t source = 0;
    lilac_text contents;
    lilac_text_init(&contents);
    if (file_read(path, &contents)) {
        source = lilac_source_add(context, strcmp(path, "-") == 0 ? "<stdin>" : path,
                                  lilac_text_get(&contents), contents.length);
    }
    lilac_text_clear(&contents);
    return source;
}

void print_malformed(const lilac_context *context, uint32_t source) {
    if (source != 0) {
        lilac_text text;
        lilac_text_init(&text);
        lilac_source_annotate(&text, context, source);
        fwrite(lilac_text_get(&text), 1, text.length, stderr);
        lilac_text_clear(&text);
    }
}

void print_diagnostics(lilac_context *context) {
    const bool colour = isatty(STDERR_FILENO) == 1;
    lilac_text text;
    lilac_text_init(&text);
    uint32_t errors = 0;
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(&text, context, d, colour);
        errors += d->severity == LILAC_ERROR;
    }
    if (lilac_error_count(context) > errors) {
        lilac_text_printf(&text, "lilac: %u more errors are not shown\n",
                          lilac_error_count(context) - errors);
    }
    fwrite(lilac_text_get(&text), 1, text.length, stderr);
    lilac_text_clear(&text);
    lilac_diagnostics_reset(context);
}
