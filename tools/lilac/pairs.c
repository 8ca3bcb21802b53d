/* Pairs of types: two operands; the lines of a file or of standard input with a tab between the two
 * types; or the operations of a module that have such a pair.
 *
 * To read a line, the scanner's end is set to the tab and then to the end of the line. Both types
 * are read even if the first is refused, so that one run reports all errors.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

/* Pairs on their way to the function that answers them. */
typedef struct pair_stream {
    const pair_source *source;
    pair_answer *answer;
    void *data; /* of answer; begins with pair_answers */
    const char *file;
    lilac_context *context; /* of the module */
    uint32_t count;
} pair_stream;

static bool read_side(lilac_scanner *scanner, const type_scope *scope, type_pair *pair,
                      uint32_t side) {
    pair->position[side] = lilac_scanner_position(scanner);
    return type_read(scanner, scope, &pair->type[side]);
}

static void answer_pair(const pair_stream *stream, lilac_context *context, const type_pair *pair,
                        bool read) {
    stream->answer(stream->data, context, read && lilac_error_count(context) == 0 ? pair : NULL);
    print_diagnostics(context);
}

/* ---- two operands ----------------------------------------------------------------------- */

static bool read_argument(const pair_stream *stream, lilac_context *context, const char *text,
                          type_pair *pair, uint32_t side) {
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
    return read_side(&scanner, stream->source->scope, pair, side);
}

static void answer_operands(const pair_stream *stream, const string_list *types) {
    lilac_context *context = lilac_context_create();
    type_pair pair = {0};
    type_scope_enter(stream->source->scope, context);
    bool read = read_argument(stream, context, types->list[0], &pair, 0);
    read = read_argument(stream, context, types->list[1], &pair, 1) && read;
    answer_pair(stream, context, &pair, read);
    lilac_context_destroy(context);
}

/* ---- lines ------------------------------------------------------------------------------ */

static void answer_line(void *data, lilac_scanner *scanner, size_t start, size_t end) {
    const pair_stream *stream = data;
    const type_scope *scope = stream->source->scope;
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
        read = read_side(scanner, scope, &pair, 0);
        scanner_hold(scanner, middle + 1, end);
        read = read_side(scanner, scope, &pair, 1) && read;
    }
    answer_pair(stream, scanner->context, &pair, read);
}

static void refuse_line(void *data, lilac_context *context) {
    answer_pair(data, context, NULL, false);
}

/* ---- modules ---------------------------------------------------------------------------- */

static void answer_op(void *data, const lilac_tile_op *op) {
    pair_stream *stream = data;
    const lilac_tile_type *types[2];
    type_pair pair = {.position = {op->position, op->position}};
    lilac_text text[2], place;
    if (!stream->source->of_op(op, types) ||
        !type_of_tile(stream->context, types[0], &pair.type[0]) ||
        !type_of_tile(stream->context, types[1], &pair.type[1])) {
        return;
    }
    uint32_t line, column;
    lilac_position_resolve(stream->context, op->position, &line, &column);
    lilac_text_init(&place);
    lilac_text_printf(&place, "%s:%u", stream->file, line);
    for (uint32_t side = 0; side < 2; side++) {
        lilac_text_init(&text[side]);
        lilac_tile_print_type(&text[side], types[side]);
        pair.text[side] = lilac_text_get(&text[side]);
        pair.length[side] = text[side].length;
    }
    pair.place = lilac_text_get(&place);
    stream->count++;
    answer_pair(stream, stream->context, &pair, true);
    lilac_text_clear(&text[0]);
    lilac_text_clear(&text[1]);
    lilac_text_clear(&place);
}

static void answer_module(pair_stream *stream, const lilac_text *input) {
    stream->context = lilac_context_create();
    const uint32_t source =
        lilac_source_add(stream->context, stream->file, lilac_text_get(input), input->length);
    if (source == 0 || !module_each_op(stream->context, source, answer_op, stream)) {
        refuse_line(stream, stream->context);
    } else if (stream->count == 0) {
        lilac_error(stream->context, (lilac_position){source, 0}, 0, "no-pairs",
                    "this module has no operation with %s that have layouts", stream->source->what);
        refuse_line(stream, stream->context);
    }
    lilac_context_destroy(stream->context);
}

/* ---- all of them ------------------------------------------------------------------------ */

bool pairs_are_lines(const string_list *operands) {
    uint32_t types = 0;
    bool file = false;
    for (uint32_t i = 0; i < operands->count; i++) {
        const char *operand = operands->list[i];
        if (!type_scope_defines(operand, strlen(operand))) {
            types++;
            file = strcmp(operand, "-") == 0 || operand_is_file(operand);
        }
    }
    return types == 1 && file;
}

static bool answer_file(pair_stream *stream, const char *path) {
    lilac_text input;
    lilac_text_init(&input);
    const bool read = file_read(path, &input);
    stream->file = strcmp(path, "-") == 0 ? "<stdin>" : path;
    if (read && module_at(lilac_text_get(&input), input.length)) {
        answer_module(stream, &input);
    } else if (read) {
        each_line(stream->file, &input, &(line_answers){answer_line, refuse_line}, stream,
                  stream->source->scope);
    }
    lilac_text_clear(&input);
    return read;
}

int pairs_run(const subcommand *command, const string_list *operands, const pair_source *source,
              pair_answer *answer, void *data) {
    pair_answers *answers = data;
    pair_stream stream = {.source = source, .answer = answer, .data = data};
    string_list types = {0};
    answers->a_line = pairs_are_lines(operands);
    int status = STATUS_REFUSED;
    if (type_scope_take(source->scope, operands, &types)) {
        if (types.count != 2 && !answers->a_line) {
            status = usage_error(command, "%s, or a file or - with pairs of them", source->what);
        } else {
            bool good = true;
            if (answers->a_line) {
                good = answer_file(&stream, types.list[0]);
            } else {
                answer_operands(&stream, &types);
            }
            good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
            status = answers->disagree           ? STATUS_CHECK
                     : good && !answers->refused ? STATUS_DONE
                                                 : STATUS_REFUSED;
        }
    }
    strings_clear(&types);
    return status;
}

bool pair_of_conversion(const lilac_tile_op *op, const lilac_tile_type *types[2]) {
    if (op->code != LILAC_TILE_OP_TTG_CONVERT_LAYOUT) {
        return false;
    }
    types[0] = op->operands[0].value->type;
    types[1] = op->results[0].type;
    return true;
}

void put_pair_place(lilac_text *out, const type_pair *pair) {
    if (pair->place != NULL) {
        lilac_text_printf(out, "%s: ", pair->place);
    }
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
