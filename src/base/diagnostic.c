/* Sources and diagnostics: registering texts, resolving positions to lines, recording errors and
 * printing them with the line, a caret under the place, and notes. */
#include "context.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DIAGNOSTICS = 64, LONGEST_LINE = 160 };

uint32_t lilac_source_add(lilac_context *context, const char *name, const char *bytes,
                          size_t length) {
    if (length >= UINT32_MAX) {
        lilac_error(context, (lilac_position){0}, 0, "text-too-large",
                    "%s has %zu bytes; texts of 4 GiB and above are not read", name, length);
        return 0;
    }
    if (context->source_count == context->source_capacity) {
        context->source_capacity *= 2;
        context->sources =
            lilac_heap_grow(context->sources, context->source_capacity * sizeof *context->sources);
    }
    context->sources[context->source_count] =
        (source_text){.name = lilac_arena_copy(context->arena, name, strlen(name)),
                      .bytes = lilac_arena_copy(context->arena, bytes, length),
                      .length = length};
    return context->source_count++;
}

static source_text *source_of(const lilac_context *context, uint32_t source) {
    return &context->sources[source < context->source_count ? source : 0];
}

const char *lilac_source_name(const lilac_context *context, uint32_t source) {
    return source_of(context, source)->name;
}

const char *lilac_source_bytes(const lilac_context *context, uint32_t source, size_t *length) {
    const source_text *text = source_of(context, source);
    if (length) {
        *length = text->length;
    }
    return text->bytes;
}

static void find_lines(lilac_context *context, source_text *text) {
    uint32_t count = 1;
    for (size_t i = 0; i < text->length; i++) {
        count += text->bytes[i] == '\n';
    }
    text->lines = lilac_arena_array(context->arena, uint32_t, count);
    text->line_count = 1;
    for (size_t i = 0; i < text->length; i++) {
        if (text->bytes[i] == '\n') {
            text->lines[text->line_count++] = (uint32_t)i + 1;
        }
    }
}

void lilac_position_resolve(lilac_context *context, lilac_position position, uint32_t *line,
                            uint32_t *column) {
    source_text *text = source_of(context, position.source);
    if (!text->lines) {
        find_lines(context, text);
    }
    uint32_t low = 0, high = text->line_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (text->lines[middle] <= position.offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *line = low + 1;
    *column = position.offset - text->lines[low] + 1;
}

static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$';
}

/* What to underline: the word that starts here, sigil included, or one byte. */
static uint32_t width_at(const lilac_context *context, lilac_position position) {
    const source_text *text = source_of(context, position.source);
    size_t end = position.offset;
    if (end < text->length && strchr("%#@!^", text->bytes[end]) && text->bytes[end]) {
        end++;
    }
    while (end < text->length && is_word_byte(text->bytes[end])) {
        end++;
    }
    return end > position.offset ? (uint32_t)(end - position.offset) : 1;
}

static const char *format_text(lilac_context *context, const char *format, va_list arguments) {
    lilac_text text = {0};
    lilac_text_vprintf(&text, format, arguments);
    const char *kept = lilac_arena_copy(context->arena, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return kept;
}

static void record(lilac_context *context, lilac_severity severity, lilac_position position,
                   lilac_location location, const char *id, const char *format, va_list arguments) {
    if (position.source == 0) {
        (void)lilac_location_text(context, location, &position);
    }
    if (severity == LILAC_ERROR) {
        context->errors++;
    }
    if (context->recorded == MOST_DIAGNOSTICS) {
        return;
    }
    context->recorded++;
    lilac_diagnostic *diagnostic = lilac_arena_new(context->arena, lilac_diagnostic);
    *diagnostic = (lilac_diagnostic){.severity = severity,
                                     .id = id,
                                     .position = position,
                                     .width = width_at(context, position),
                                     .location = location,
                                     .message = format_text(context, format, arguments)};
    if (context->last) {
        context->last->next = diagnostic;
    } else {
        context->first = diagnostic;
    }
    context->last = diagnostic;
}

void lilac_verror(lilac_context *context, lilac_position position, lilac_location location,
                  const char *id, const char *format, va_list arguments) {
    record(context, LILAC_ERROR, position, location, id, format, arguments);
}

void lilac_error(lilac_context *context, lilac_position position, lilac_location location,
                 const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(context, LILAC_ERROR, position, location, id, format, arguments);
    va_end(arguments);
}

void lilac_warning(lilac_context *context, lilac_position position, lilac_location location,
                   const char *id, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    record(context, LILAC_WARNING, position, location, id, format, arguments);
    va_end(arguments);
}

void lilac_note(lilac_context *context, lilac_position position, lilac_location location,
                const char *format, ...) {
    if (!context->last) {
        return;
    }
    if (position.source == 0) {
        (void)lilac_location_text(context, location, &position);
    }
    va_list arguments;
    va_start(arguments, format);
    lilac_diagnostic *note = lilac_arena_new(context->arena, lilac_diagnostic);
    *note = (lilac_diagnostic){.severity = LILAC_NOTE,
                               .position = position,
                               .width = width_at(context, position),
                               .location = location,
                               .message = format_text(context, format, arguments)};
    va_end(arguments);
    const lilac_diagnostic **link = &context->last->notes;
    while (*link) {
        link = (const lilac_diagnostic **)&(*link)->next;
    }
    *link = note;
}

/* Removes the diagnostics after `last` from the list and returns them. */
static const lilac_diagnostic *cut_after(lilac_context *context, const lilac_diagnostic *last) {
    const lilac_diagnostic *rest = last ? last->next : context->first;
    context->last = (lilac_diagnostic *)(uintptr_t)last;
    if (last) {
        context->last->next = NULL;
    } else {
        context->first = NULL;
    }
    for (const lilac_diagnostic *at = rest; at; at = at->next) {
        context->recorded--;
        context->errors -= at->severity == LILAC_ERROR;
    }
    return rest;
}

void lilac_diagnostics_forget(lilac_context *context, const lilac_diagnostic *last) {
    (void)cut_after(context, last);
}

void lilac_internal_error(lilac_context *context, const lilac_diagnostic *last,
                          lilac_position position, const char *format, ...) {
    const lilac_diagnostic *rest = cut_after(context, last);
    va_list arguments;
    va_start(arguments, format);
    record(context, LILAC_ERROR, position, 0, "internal-error", format, arguments);
    va_end(arguments);
    lilac_note(context, (lilac_position){0}, 0,
               "this is an error of lilac, not of the program: please report it, with the program");
    const lilac_diagnostic **link = &context->last->notes;
    while (*link) {
        link = (const lilac_diagnostic **)(uintptr_t) & (*link)->next;
    }
    *link = rest;
}

uint32_t lilac_error_count(const lilac_context *context) {
    return context->errors;
}

const lilac_diagnostic *lilac_diagnostics(const lilac_context *context) {
    return context->first;
}

void lilac_diagnostics_reset(lilac_context *context) {
    context->first = context->last = NULL;
    context->recorded = context->errors = 0;
}

/* ---- printing --------------------------------------------------------------------------- */

static const char *const severity_names[] = {"note", "remark", "warning", "error"};
static const char *const severity_colours[] = {"\033[1;36m", "\033[1;34m", "\033[1;35m",
                                               "\033[1;31m"};

/* The line that holds the position, cut around it when it is very long, and a caret. */
static void print_excerpt(lilac_text *out, lilac_context *context,
                          const lilac_diagnostic *diagnostic, bool colour) {
    const source_text *text = source_of(context, diagnostic->position.source);
    size_t offset = diagnostic->position.offset;
    if (offset > text->length) {
        return;
    }
    size_t begin = offset, end = offset;
    while (begin > 0 && text->bytes[begin - 1] != '\n') {
        begin--;
    }
    while (end < text->length && text->bytes[end] != '\n') {
        end++;
    }
    if (end > begin && text->bytes[end - 1] == '\r') {
        end--;
    }
    if (offset - begin > LONGEST_LINE) {
        begin = offset - LONGEST_LINE / 2;
    }
    if (end < offset) {
        end = offset;
    }
    if (end - begin > LONGEST_LINE) {
        end = begin + LONGEST_LINE > offset ? begin + LONGEST_LINE : offset;
    }
    lilac_text_puts(out, "    ");
    for (size_t i = begin; i < end; i++) {
        unsigned char c = (unsigned char)text->bytes[i];
        lilac_text_char(out, c < 0x20 || c == 0x7F ? ' ' : (char)c);
    }
    lilac_text_puts(out, "\n    ");
    for (size_t i = begin; i < offset; i++) {
        if (((unsigned char)text->bytes[i] & 0xC0) != 0x80) { /* one column for each character */
            lilac_text_char(out, ' ');
        }
    }
    if (colour) {
        lilac_text_puts(out, "\033[1;32m");
    }
    lilac_text_char(out, '^');
    size_t width = diagnostic->width < end - offset ? diagnostic->width : end - offset;
    if (width > 1) {
        lilac_text_repeat(out, '~', width - 1);
    }
    if (colour) {
        lilac_text_puts(out, "\033[0m");
    }
    lilac_text_char(out, '\n');
}

static void print_place(lilac_text *out, lilac_context *context,
                        const lilac_diagnostic *diagnostic) {
    lilac_name file;
    uint32_t line, column;
    if (diagnostic->position.source) {
        lilac_position_resolve(context, diagnostic->position, &line, &column);
        lilac_text_printf(out,
                          "%s:%u:%u: ", lilac_source_name(context, diagnostic->position.source),
                          line, column);
    } else if (lilac_location_file(context, diagnostic->location, &file, &line, &column)) {
        lilac_text_printf(out, "%s:%u:%u: ", file, line, column);
    } else {
        lilac_text_puts(out, "lilac: ");
    }
}

void lilac_diagnostic_print(lilac_text *out, lilac_context *context,
                            const lilac_diagnostic *diagnostic, bool colour) {
    print_place(out, context, diagnostic);
    lilac_text_printf(out, "%s%s:%s %s", colour ? severity_colours[diagnostic->severity] : "",
                      severity_names[diagnostic->severity], colour ? "\033[0m" : "",
                      diagnostic->message);
    if (diagnostic->id) {
        lilac_text_printf(out, " [%s]", diagnostic->id);
    }
    lilac_text_char(out, '\n');
    if (diagnostic->position.source) {
        print_excerpt(out, context, diagnostic, colour);
    }
    lilac_name file;
    uint32_t line, column;
    if (diagnostic->position.source &&
        lilac_location_file(context, diagnostic->location, &file, &line, &column)) {
        lilac_text_printf(out, "%s:%u:%u: %snote:%s from this line of the program\n", file, line,
                          column, colour ? severity_colours[LILAC_NOTE] : "",
                          colour ? "\033[0m" : "");
    }
    for (const lilac_diagnostic *note = diagnostic->notes; note; note = note->next) {
        lilac_diagnostic_print(out, context, note, colour);
    }
}

/* The diagnostic, and its notes, whose position is in the line. */
static void annotate_line(lilac_text *out, const lilac_diagnostic *diagnostic, uint32_t source,
                          size_t begin, size_t end) {
    for (const lilac_diagnostic *at = diagnostic; at != NULL; at = at->next) {
        const lilac_position position = at->position;
        if (position.source == source && position.offset >= begin && position.offset <= end) {
            lilac_text_repeat(out, ' ', position.offset - begin);
            lilac_text_printf(out, "^ %s: %s", severity_names[at->severity], at->message);
            if (at->id != NULL) {
                lilac_text_printf(out, " [%s]", at->id);
            }
            lilac_text_char(out, '\n');
        }
        annotate_line(out, at->notes, source, begin, end);
    }
}

void lilac_source_annotate(lilac_text *out, const lilac_context *context, uint32_t source) {
    const source_text *text = source_of(context, source);
    for (size_t begin = 0, end; begin < text->length; begin = end + 1) {
        const char *newline = memchr(text->bytes + begin, '\n', text->length - begin);
        end = newline != NULL ? (size_t)(newline - text->bytes) : text->length;
        lilac_text_put(out, text->bytes + begin, end - begin);
        lilac_text_char(out, '\n');
        annotate_line(out, context->first, source, begin, end);
    }
}

void lilac_diagnostic_json(lilac_text *out, lilac_context *context,
                           const lilac_diagnostic *diagnostic) {
    lilac_text_printf(out, "{\"severity\": \"%s\"", severity_names[diagnostic->severity]);
    if (diagnostic->id) {
        lilac_text_printf(out, ", \"id\": \"%s\"", diagnostic->id);
    }
    lilac_name file;
    uint32_t line, column;
    if (diagnostic->position.source) {
        const char *name = lilac_source_name(context, diagnostic->position.source);
        lilac_position_resolve(context, diagnostic->position, &line, &column);
        lilac_text_puts(out, ", \"file\": ");
        lilac_text_json(out, name, strlen(name));
        lilac_text_printf(out, ", \"line\": %u, \"column\": %u", line, column);
    }
    if (lilac_location_file(context, diagnostic->location, &file, &line, &column)) {
        lilac_text_puts(out, ", \"location\": {\"file\": ");
        lilac_text_json(out, file, strlen(file));
        lilac_text_printf(out, ", \"line\": %u, \"column\": %u}", line, column);
    }
    lilac_text_puts(out, ", \"message\": ");
    lilac_text_json(out, diagnostic->message, strlen(diagnostic->message));
    if (diagnostic->notes) {
        lilac_text_puts(out, ", \"notes\": [");
        for (const lilac_diagnostic *note = diagnostic->notes; note; note = note->next) {
            lilac_diagnostic_json(out, context, note);
            if (note->next) {
                lilac_text_puts(out, ", ");
            }
        }
        lilac_text_char(out, ']');
    }
    lilac_text_char(out, '}');
}
