/* lilac layout: the linear layout of a type, of a tensor or of memory, or of a layout written out.
 *
 * Each type has one answer, in order, on a separate line; the answer for a refused type is null.
 * Standard input is one source text, so that diagnostics name the line; to read a line, the
 * scanner's end is set to the end of the line.
 */
#include "types.h"

#include <stdio.h>
#include <string.h>

typedef enum answer_form { ANSWER_LAYOUT, ANSWER_CUTE, ANSWER_OFFSETS } answer_form;

typedef struct layout_answers {
    answer_form form;
    bool json;
    bool refused; /* any of them */
    lilac_text text;
    type_scope scope;
} layout_answers;

static bool put_layout(layout_answers *answers, const laid_out_type *type) {
    if (answers->json) {
        lilac_layout_json(&answers->text, &type->layout);
    } else {
        lilac_layout_print(&answers->text, &type->layout);
    }
    return true;
}

/* [[2,4],[8]]: the leaves of each mode. */
static void put_leaves(lilac_text *out, const lilac_cute *cute, bool strides) {
    for (uint32_t i = 0; i < cute->leaf_count; i++) {
        const lilac_cute_leaf *leaf = &cute->leaf[i];
        const bool same = i != 0 && leaf[-1].mode == leaf->mode;
        lilac_text_puts(out, i == 0 ? "[[" : same ? "," : "],[");
        lilac_text_unsigned(out, strides ? leaf->stride : leaf->size);
    }
    lilac_text_puts(out, "]]");
}

static void put_cute_json(lilac_text *out, const lilac_cute *cute) {
    lilac_text_puts(out, "{\"cute\": \"");
    lilac_cute_print(out, cute);
    lilac_text_puts(out, "\", \"shape\": ");
    put_leaves(out, cute, false);
    lilac_text_puts(out, ", \"stride\": ");
    put_leaves(out, cute, true);
    if (cute->swizzle_bits == 0) {
        lilac_text_puts(out, ", \"swizzle\": null}");
    } else {
        lilac_text_printf(out, ", \"swizzle\": [%u,%u,%d]}", cute->swizzle_bits, cute->swizzle_base,
                          cute->swizzle_shift);
    }
}

/* Padding is no part of a linear layout, but of a CuTe layout it is. */
static bool pad_cute(lilac_cute *cute, const laid_out_type *type, lilac_reason *why) {
    uint64_t interval[LILAC_ENCODING_MAX_PADDINGS], padding[LILAC_ENCODING_MAX_PADDINGS];
    for (uint32_t i = 0; i < type->padding_count; i++) {
        interval[i] = type->padding[i].interval;
        padding[i] = type->padding[i].padding;
    }
    return type->padding_count == 0 ||
           lilac_cute_pad(cute, type->padding_count, interval, padding, why);
}

static void put_cute(layout_answers *answers, const lilac_cute *cute) {
    if (answers->json) {
        put_cute_json(&answers->text, cute);
    } else {
        lilac_cute_print(&answers->text, cute);
    }
}

/* Answers with a form of a type's layout. False, with the reason and a diagnostic's id: it has no
 * such form. */
static bool put_type(layout_answers *answers, const laid_out_type *type, lilac_reason *why,
                     const char **id) {
    lilac_cute cute;
    lilac_layout map;
    switch (answers->form) {
    case ANSWER_LAYOUT:
        return put_layout(answers, type);
    case ANSWER_CUTE:
        *id = "no-cute-layout";
        if (!lilac_cute_of_layout(&cute, &type->layout, why) || !pad_cute(&cute, type, why)) {
            return false;
        }
        put_cute(answers, &cute);
        return true;
    case ANSWER_OFFSETS:
        *id = "no-offsets";
        *why = (lilac_reason){"a tensor spread over registers, lanes and warps has no offsets"};
        if (type_is_distributed(type) || !lilac_layout_invert(&map, &type->layout, why)) {
            return false;
        }
        lilac_layout_json(&answers->text, &map);
        return true;
    }
    return false;
}

/* A layout that is written out may have a CuTe layout or offsets although it has no inverse. */
static bool answer_form_of(layout_answers *answers, lilac_scanner *scanner) {
    layout_form form;
    lilac_cute cute;
    lilac_layout map;
    if (!form_read(scanner, &form)) {
        return false;
    }
    if (answers->form == ANSWER_CUTE) {
        if (!form_cute(scanner->context, &cute, &form)) {
            return false;
        }
        put_cute(answers, &cute);
        return true;
    }
    if (!form_offsets(scanner->context, &map, &form)) {
        return false;
    }
    lilac_layout_json(&answers->text, &map);
    return true;
}

static bool answer_one(layout_answers *answers, lilac_scanner *scanner) {
    if (answers->form != ANSWER_LAYOUT && form_at(scanner)) {
        return answer_form_of(answers, scanner);
    }
    const lilac_position position = lilac_scanner_position(scanner);
    laid_out_type type;
    lilac_reason why = {""};
    const char *id = NULL;
    if (!type_read(scanner, &answers->scope, &type)) {
        return false;
    }
    if (!put_type(answers, &type, &why, &id)) {
        lilac_error(scanner->context, position, 0, id, "%s", why.text);
        return false;
    }
    return true;
}

static void answer(layout_answers *answers, lilac_scanner *scanner) {
    if (!answer_one(answers, scanner)) {
        lilac_text_puts(&answers->text, "null");
        answers->refused = true;
    }
    lilac_text_char(&answers->text, '\n');
    print_diagnostics(scanner->context);
}

static void refuse(void *data, lilac_context *context) {
    layout_answers *answers = data;
    lilac_text_puts(&answers->text, "null\n");
    answers->refused = true;
    print_diagnostics(context);
}

static void answer_argument(layout_answers *answers, const char *type, uint32_t number) {
    lilac_context *context = lilac_context_create();
    char name[32];
    snprintf(name, sizeof name, "<argument %u>", number);
    type_scope_enter(&answers->scope, context);
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

static void answer_line(void *data, lilac_scanner *scanner, size_t start, size_t end) {
    scanner_hold(scanner, start, end);
    answer(data, scanner);
}

/* ---- modules ---------------------------------------------------------------------------- */

/* The types of a module, each once, in the order in which they appear. */
typedef struct module_types {
    layout_answers *answers;
    lilac_context *context;
    const lilac_tile_type **seen;
    uint32_t count;
} module_types;

static bool is_new(module_types *types, const lilac_tile_type *type) {
    for (uint32_t i = 0; i < types->count; i++) {
        if (types->seen[i] == type) {
            return false;
        }
    }
    if ((types->count & (types->count - 1)) == 0) {
        const size_t capacity = types->count == 0 ? 1 : 2 * (size_t)types->count;
        types->seen = lilac_heap_grow(types->seen, capacity * sizeof *types->seen);
    }
    types->seen[types->count++] = type;
    return true;
}

/* {"type": …, "layout": …}, or the type, a tab and the layout. */
static void answer_type(module_types *types, const lilac_tile_type *tile, lilac_position position) {
    layout_answers *answers = types->answers;
    laid_out_type type;
    lilac_text name;
    lilac_reason why = {""};
    const char *id = NULL;
    if (!type_of_tile(types->context, tile, &type) || !is_new(types, tile)) {
        return;
    }
    lilac_text_init(&name);
    lilac_tile_print_type(&name, tile);
    if (answers->json) {
        lilac_text_puts(&answers->text, "{\"type\": ");
        lilac_text_json(&answers->text, lilac_text_get(&name), name.length);
        lilac_text_puts(&answers->text, ", \"layout\": ");
    } else {
        lilac_text_printf(&answers->text, "%s\t", lilac_text_get(&name));
    }
    if (!put_type(answers, &type, &why, &id)) {
        lilac_error(types->context, position, 0, id, "%s", why.text);
        lilac_text_puts(&answers->text, "null");
        answers->refused = true;
    }
    lilac_text_puts(&answers->text, answers->json ? "}\n" : "\n");
    lilac_text_clear(&name);
}

static void answer_op(void *data, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        answer_type(data, op->operands[i].value->type, op->position);
    }
    for (uint32_t i = 0; i < op->result_count; i++) {
        answer_type(data, op->results[i].type, op->position);
    }
}

static void answer_module(layout_answers *answers, const char *name, const lilac_text *input) {
    module_types types = {.answers = answers, .context = lilac_context_create()};
    const uint32_t source =
        lilac_source_add(types.context, name, lilac_text_get(input), input->length);
    if (source == 0 || !module_each_op(types.context, source, answer_op, &types)) {
        refuse(answers, types.context);
    } else if (types.count == 0) {
        lilac_error(types.context, (lilac_position){source, 0}, 0, "no-layouts",
                    "no type of this module has a layout; lilac compile --emit tile gives the "
                    "tensors of TTIR layouts");
        refuse(answers, types.context);
    }
    print_diagnostics(types.context);
    lilac_heap_free(types.seen);
    lilac_context_destroy(types.context);
}

static bool answer_file(layout_answers *answers, const char *path) {
    lilac_text input;
    lilac_text_init(&input);
    const bool read = file_read(path, &input);
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    if (read && module_at(lilac_text_get(&input), input.length)) {
        answer_module(answers, name, &input);
    } else if (read) {
        each_line(name, &input, &(line_answers){answer_line, refuse}, answers, &answers->scope);
    }
    lilac_text_clear(&input);
    return read;
}

/* ---- all of them ------------------------------------------------------------------------ */

static int answer_all(layout_answers *answers, const string_list *types) {
    bool good = true;
    for (uint32_t i = 0; i < types->count; i++) {
        const char *type = types->list[i];
        if (strcmp(type, "-") == 0 || operand_is_file(type)) {
            good &= answer_file(answers, type);
        } else {
            answer_argument(answers, type, i + 1);
        }
    }
    good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
    return good && !answers->refused ? STATUS_DONE : STATUS_REFUSED;
}

static int answer_operands(const subcommand *command, layout_answers *answers,
                           const string_list *operands) {
    string_list types = {0};
    int status = STATUS_REFUSED;
    if (type_scope_take(&answers->scope, operands, &types)) {
        status = types.count == 0 ? usage_error(command, "which type's layout?")
                                  : answer_all(answers, &types);
    }
    strings_clear(&types);
    return status;
}

static int layout_run(const subcommand *command, int argc, char **argv) {
    static const choice forms[] = {
        {"layout", ANSWER_LAYOUT},
        {"linear", ANSWER_LAYOUT},
        {"cute", ANSWER_CUTE},
        {"offsets", ANSWER_OFFSETS},
        {0},
    };
    layout_answers answers = {0};
    string_list operands = {0};
    const char *form = "layout";
    int chosen = ANSWER_LAYOUT;
    const option_row table[] = {
        {"--as", NULL, OPTION_TEXT, &form, "FORM",
         "layout or linear (the default), Triton's linear or\n"
         "shared_linear; cute, as CuTe writes it: memory as\n"
         "(dim0,dim1,…):(strides), tensors as (thread,value); a\n"
         "swizzle is found where one is; offsets, JSON of the\n"
         "inverse: coordinates to offsets, padding left out"},
        TYPE_SCOPE_ROWS(answers.scope),
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON value a line: {\"register\": [[0,1],…], …}"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &operands);
    if (status < 0) {
        status = choice_read(command, "--as", form, forms, &chosen);
    }
    if (status < 0) {
        answers.form = (answer_form)chosen;
        status = type_scope_check(command, &answers.scope);
    }
    if (status < 0) {
        status = answer_operands(command, &answers, &operands);
    }
    strings_clear(&operands);
    type_scope_clear(&answers.scope);
    lilac_text_clear(&answers.text);
    return status;
}

const subcommand layout_command = {
    .name = "layout",
    .usage = "TYPE… [--as FORM] [--shape SIZES] [--json]",
    .summary = "the linear layout of a type, of CuTe, of memory",
    .help =
        "Prints the linear layout of each TYPE: of a tensor, of memory, or written out:\n"
        "  'tensor<16x16xf32, #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8],\n"
        "   warpsPerCTA = [2, 1], order = [1, 0]}>>'\n"
        "  '!ttg.memdesc<16x16xf16, #ttg.swizzled_shared<{vec = 4, perPhase = 1,\n"
        "   maxPhase = 4, order = [1, 0]}>, #smem>'\n"
        "  '((2,4),(8,2)):((32,1),(4,64))'             CuTe, sizes and strides\n"
        "  'Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)'\n"
        "  'row_major(16x32)'    'column_major(16x32)'\n"
        "  'order(16x32x4, [1, 0, 2])'                 fastest dimension first\n"
        "  'strided(16x32, [64, 1])'                   in elements\n"
        "  'tiled(1x64x8x8, [0, 1/32, 2, 3, 1%32])'    pieces of dimensions, slowest first\n"
        "  'tiled(1x64x8x8, NC/32HW32)'                the same; or NCHW_VECT_C 32, NHWC …\n"
        "  'padded(16x32, 32:+4)'                      after every 32 elements 4 of padding,\n"
        "   which strides of --as cute have and linear layouts do not\n"
        "  '#ttg.blocked<{…}>' --shape 16x16           a layout alone\n"
        "  '#b = #ttg.blocked<{…}>' 'tensor<16x16xf32, #b>'   a name first, as in TTGIR\n"
        "TYPE may also be a file, or - for standard input: one type or definition of a name a\n"
        "line; or a TTGIR module, each of whose types is answered once, after the type and a tab.\n"
        "A type that is refused answers null, and the exit status is 1.",
    .run = layout_run,
};
