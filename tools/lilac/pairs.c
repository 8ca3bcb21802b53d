/* Pairs of types: two operands, or the lines of standard input with a tab between the two.
 *
 * A line is read by holding the scanner's end at the tab and at the end of the line; both types are
 * read even when the first is refused, so that all that is wrong is said at once.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

static bool read_side(lilac_scanner *scanner, type_pair *pair, uint32_t side) {
    pair->position[side] = lilac_scanner_position(scanner);
    return type_read(scanner, &pair->type[side]);
}

static void finish(pair_answer *answer, void *data, lilac_context *context, const type_pair *pair,
                   bool read) {
    answer(data, context, read && lilac_error_count(context) == 0 ? pair : NULL);
    print_diagnostics(context);
}

static bool read_argument(lilac_context *context, const char *text, type_pair *pair,
                          uint32_t side) {
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", side + 1);
    const uint32_t source = lilac_source_add(context, name, text, strlen(text));
    if (source == 0) {
        return false;
    }
    lilac_scanner scanner;
    lilac_scanner_init(&scanner, context, source);
    pair->text[side] = text;
    pair->length[side] = strlen(text);
    return read_side(&scanner, pair, side);
}

static void answer_operands(const string_list *operands, pair_answer *answer, void *data) {
    lilac_context *context = lilac_context_create();
    type_pair pair = {0};
    bool read = read_argument(context, operands->list[0], &pair, 0);
    read = read_argument(context, operands->list[1], &pair, 1) && read;
    finish(answer, data, context, &pair, read);
    lilac_context_destroy(context);
}

typedef struct line_pairs {
    pair_answer *answer;
    void *data;
} line_pairs;

static void answer_line(void *data, lilac_scanner *scanner, size_t start, size_t end) {
    const line_pairs *pairs = data;
    const char *line = scanner->text + start, *tab = memchr(line, '\t', end - start);
    type_pair pair = {.text = {line}};
    bool read = false;
    if (tab == NULL) {
        scanner_hold(scanner, start, end);
        lilac_error(scanner->context, lilac_scanner_position(scanner), 0, "pair-expected",
                    "expected two types with a tab between them");
    } else {
        const size_t middle = start + (size_t)(tab - line);
        pair.length[0] = middle - start;
        pair.text[1] = tab + 1;
        pair.length[1] = end - middle - 1;
        scanner_hold(scanner, start, middle);
        read = read_side(scanner, &pair, 0);
        scanner_hold(scanner, middle + 1, end);
        read = read_side(scanner, &pair, 1) && read;
    }
    finish(pairs->answer, pairs->data, scanner->context, &pair, read);
}

static void refuse_rest(void *data, lilac_context *context) {
    const line_pairs *pairs = data;
    finish(pairs->answer, pairs->data, context, NULL, false);
}

static bool is_standard_input(const string_list *operands) {
    return operands->count == 1 && strcmp(operands->list[0], "-") == 0;
}

static bool answer_all(const string_list *operands, pair_answer *answer, void *data) {
    if (is_standard_input(operands)) {
        return each_line(&(line_answers){answer_line, refuse_rest}, &(line_pairs){answer, data});
    }
    answer_operands(operands, answer, data);
    return true;
}

int pairs_run(const subcommand *command, const string_list *operands, const char *what,
              pair_answer *answer, void *data) {
    pair_answers *answers = data;
    answers->a_line = is_standard_input(operands);
    if (operands->count != 2 && !answers->a_line) {
        return usage_error(command, "%s, or - for pairs of them", what);
    }
    bool good = answer_all(operands, answer, data);
    good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
    return answers->disagree           ? STATUS_CHECK
           : good && !answers->refused ? STATUS_DONE
                                       : STATUS_REFUSED;
}

void pair_refused(pair_answers *answers) {
    lilac_text_puts(&answers->text, "null\n");
    answers->refused = true;
}

bool pair_refuse(lilac_context *context, const type_pair *pair, uint32_t side, const char *id,
                 const char *text) {
    lilac_error(context, pair->position[side], 0, id, "%s", text);
    return false;
}

bool pair_same_elements(lilac_context *context, const type_pair *pair) {
    const laid_out_type *first = &pair->type[0], *second = &pair->type[1];
    if (first->element_bits == second->element_bits && first->scalar == second->scalar &&
        first->pointers == second->pointers) {
        return true;
    }
    return pair_refuse(context, pair, 1, "element-types-differ",
                       "its elements are not of the first type's");
}
