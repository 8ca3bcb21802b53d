/* The context for reading types on a command line: names of layouts, and the shape for a layout
 * without a tensor type.
 *
 *   #blocked = #ttg.blocked<{…}>        as TTGIR writes it, in an operand or a line before its use
 *   tensor<128x64xf32, #blocked>
 *
 * Layouts belong to a context, and commands use several contexts in sequence. The scope therefore
 * keeps the texts of the definitions and reads them again in each context.
 */
#define _POSIX_C_SOURCE 200809L /* stat */

#include "types.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_$.-", c) != NULL;
}

bool type_scope_defines(const char *text, size_t length) {
    size_t at = 0;
    while (at < length && is_blank(text[at])) {
        at++;
    }
    if (at == length || text[at++] != '#') {
        return false;
    }
    while (at < length && text[at] != '\0' && is_name(text[at])) {
        at++;
    }
    while (at < length && is_blank(text[at])) {
        at++;
    }
    return at < length && text[at] == '=';
}

/* The head of a TTGIR file also names memory spaces and places, which no layout refers to. */
static bool names_no_layout(const lilac_scanner *scanner) {
    static const char *const others[] = {"ttg.shared_memory", "ttng.tensor_memory"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (scanner->kind == LILAC_TOKEN_HASH && scanner->word_length == strlen(others[i]) &&
            memcmp(scanner->word, others[i], scanner->word_length) == 0) {
            return true;
        }
    }
    return lilac_scanner_is_word(scanner, "loc");
}

static bool read_definition(lilac_encoding_aliases *aliases, lilac_scanner *scanner) {
    const char *name = scanner->word;
    const size_t length = scanner->word_length;
    lilac_scanner_next(scanner);
    if (!lilac_scanner_expect(scanner, '=')) {
        return false;
    }
    if (names_no_layout(scanner)) {
        return true;
    }
    const lilac_encoding *encoding = lilac_encoding_read(scanner, aliases);
    if (encoding == NULL) {
        return false;
    }
    if (scanner->kind != LILAC_TOKEN_END) {
        return lilac_scanner_expected(scanner, "the end of the definition");
    }
    lilac_encoding_define(aliases, scanner->context, name, length, encoding);
    return true;
}

void type_scope_enter(type_scope *scope, lilac_context *context) {
    scope->aliases = (lilac_encoding_aliases){0};
    for (uint32_t i = 0; i < scope->definitions.count; i++) {
        const char *text = scope->definitions.list[i];
        const uint32_t source = lilac_source_add(context, "<definition>", text, strlen(text));
        lilac_scanner scanner;
        lilac_scanner_init(&scanner, context, source);
        const bool read = read_definition(&scope->aliases, &scanner);
        assert(read && "a definition is kept only after it was read once");
        (void)read;
    }
}

bool type_scope_define(type_scope *scope, lilac_scanner *scanner) {
    const char *start = scanner->text + scanner->offset;
    if (!read_definition(&scope->aliases, scanner)) {
        return false;
    }
    const size_t length = (size_t)(scanner->text + scanner->length - start);
    char *copy = lilac_heap_grow(NULL, length + 1);
    memcpy(copy, start, length);
    copy[length] = '\0';
    strings_add(&scope->definitions, copy);
    return true;
}

bool type_scope_take(type_scope *scope, const string_list *operands, string_list *types) {
    lilac_context *context = lilac_context_create();
    bool good = true;
    for (uint32_t i = 0; i < operands->count; i++) {
        const char *text = operands->list[i];
        if (!type_scope_defines(text, strlen(text))) {
            strings_add(types, text);
            continue;
        }
        char name[32];
        snprintf(name, sizeof name, "<argument %u>", i + 1);
        const uint32_t source = lilac_source_add(context, name, text, strlen(text));
        lilac_scanner scanner;
        if (source != 0) {
            lilac_scanner_init(&scanner, context, source);
        }
        good = source != 0 && type_scope_define(scope, &scanner) && good;
    }
    print_diagnostics(context);
    lilac_context_destroy(context);
    return good;
}

void type_scope_clear(type_scope *scope) {
    for (uint32_t i = 0; i < scope->definitions.count; i++) {
        lilac_heap_free((char *)scope->definitions.list[i]);
    }
    strings_clear(&scope->definitions);
}

static bool read_sizes(type_scope *scope) {
    const char *at = scope->shape_text;
    char digits[24];
    for (;;) {
        const size_t length = strspn(at, "0123456789");
        uint64_t size = 0;
        if (length == 0 || length >= sizeof digits || scope->rank == LILAC_MAX_RANK) {
            return false;
        }
        memcpy(digits, at, length);
        digits[length] = '\0';
        if (!read_number(digits, INT32_MAX, &size) || size == 0) {
            return false;
        }
        scope->shape[scope->rank++] = (int64_t)size;
        at += length;
        if (*at == '\0') {
            return true;
        }
        if (*at++ != 'x') {
            return false;
        }
    }
}

int type_scope_check(const subcommand *command, type_scope *scope) {
    scope->element = LILAC_F32;
    if (scope->shape_text != NULL && !read_sizes(scope)) {
        return usage_error(command,
                           "--shape takes sizes from 1 on with x between them, such as "
                           "128x64, not '%s'",
                           scope->shape_text);
    }
    const char *element = scope->element_text;
    if (element != NULL && !lilac_scalar_read(element, strlen(element), &scope->element)) {
        return usage_error(command, "--element takes an element type such as f16, not '%s'",
                           element);
    }
    return -1;
}

bool operand_is_file(const char *operand) {
    struct stat status;
    if (operand[0] == '\0' || strpbrk(operand, "<#(") != NULL) {
        return false;
    }
    return strpbrk(operand, "/.") != NULL || stat(operand, &status) == 0;
}
