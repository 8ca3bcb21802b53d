/* lilac layout: the linear layout of a type, of a tensor or of memory.
 *
 * One answer for each type, in order, on a line of its own; a type that is refused answers null and
 * the rest go on. Types on standard input are one source text, read a line at a time by holding the
 * scanner's end at the end of the line, so that a diagnostic names the line.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

typedef struct layout_answers {
    bool json;
    bool refused; /* any of them */
    lilac_text text;
} layout_answers;

static void answer(layout_answers *answers, lilac_scanner *scanner) {
    laid_out_type type;
    if (!type_read(scanner, &type)) {
        lilac_text_puts(&answers->text, "null");
        answers->refused = true;
    } else if (answers->json) {
        lilac_layout_json(&answers->text, &type.layout);
    } else {
        lilac_layout_print(&answers->text, &type.layout);
    }
    lilac_text_char(&answers->text, '\n');
    print_diagnostics(scanner->context);
}

static void refuse(layout_answers *answers, lilac_context *context) {
    lilac_text_puts(&answers->text, "null\n");
    answers->refused = true;
    print_diagnostics(context);
}

static void answer_argument(layout_answers *answers, const char *type, uint32_t number) {
    lilac_context *context = lilac_context_create();
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", number);
    const uint32_t source = lilac_source_add(context, name, type, strlen(type));
    if (source == 0) {
        refuse(answers, context);
    } else {
        lilac_scanner scanner;
        lilac_scanner_init(&scanner, context, source);
        answer(answers, &scanner);
    }
    lilac_context_destroy(context);
}

static void answer_line(layout_answers *answers, lilac_scanner *scanner, size_t start, size_t end) {
    scanner->length = end;
    lilac_scanner_seek(scanner, (uint32_t)start);
    answer(answers, scanner);
}

static bool answer_lines(layout_answers *answers) {
    enum { LINES_A_CONTEXT = 256 }; /* bounds what a context keeps of lines that are done */
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
            if (context != NULL) {
                lilac_context_destroy(context);
            }
            context = lilac_context_create();
            const uint32_t source = lilac_source_add(context, "<stdin>", bytes, input.length);
            if (source == 0) {
                refuse(answers, context);
                break;
            }
            lilac_scanner_init(&scanner, context, source);
            lilac_diagnostics_reset(context); /* the first token is read again in its turn */
        }
        answer_line(answers, &scanner, start, end);
        start = end + 1;
    }
    if (context != NULL) {
        lilac_context_destroy(context);
    }
    lilac_text_clear(&input);
    return true;
}

static int answer_all(layout_answers *answers, const string_list *types) {
    bool good = true;
    for (uint32_t i = 0; i < types->count; i++) {
        if (strcmp(types->list[i], "-") == 0) {
            good &= answer_lines(answers);
        } else {
            answer_argument(answers, types->list[i], i + 1);
        }
    }
    good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
    return good && !answers->refused ? STATUS_DONE : STATUS_REFUSED;
}

static int layout_run(const subcommand *command, int argc, char **argv) {
    layout_answers answers = {0};
    string_list types = {0};
    const option_row table[] = {
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON value a line: {\"register\": [[0,1],…], …}"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    if (status < 0) {
        status = types.count == 0 ? usage_error(command, "which type's layout?")
                                  : answer_all(&answers, &types);
    }
    strings_clear(&types);
    lilac_text_clear(&answers.text);
    return status;
}

const subcommand layout_command = {
    .name = "layout",
    .usage = "TYPE… [--json]",
    .summary = "the linear layout of a tensor or memdesc type",
    .help =
        "Prints the linear layout of each type, say\n"
        "  'tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8],\n"
        "   warpsPerCTA = [2, 1], order = [1, 0]}>>'\n"
        "or of memory, '!ttg.memdesc<16x16xf16, #ttg.swizzled_shared<{vec = 4, perPhase = 1,\n"
        "   maxPhase = 4, order = [1, 0]}>, #smem>'.\n"
        "TYPE may be - for standard input, one type a line. A type that is refused answers null,\n"
        "and the exit status is 1.",
    .run = layout_run,
};
