/* lilac layout: the linear layout of a type, of a tensor or of memory, or of a layout written out.
 *
 * One answer for each type, in order, on a line of its own; a type that is refused answers null and
 * the rest go on. Types on standard input are one source text, read a line at a time by holding the
 * scanner's end at the end of the line, so that a diagnostic names the line.
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
} layout_answers;

static bool answer_layout(layout_answers *answers, lilac_scanner *scanner) {
    laid_out_type type;
    if (!type_read(scanner, &type)) {
        return false;
    }
    if (answers->json) {
        lilac_layout_json(&answers->text, &type.layout);
    } else {
        lilac_layout_print(&answers->text, &type.layout);
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

static bool read_cute(lilac_scanner *scanner, lilac_cute *cute) {
    if (form_at(scanner)) {
        layout_form form;
        return form_read(scanner, &form) && form_cute(scanner->context, cute, &form);
    }
    const lilac_position position = lilac_scanner_position(scanner);
    laid_out_type type;
    lilac_reason why = {""};
    if (!type_read(scanner, &type)) {
        return false;
    }
    if (!lilac_cute_of_layout(cute, &type.layout, &why) || !pad_cute(cute, &type, &why)) {
        lilac_error(scanner->context, position, 0, "no-cute-layout", "%s", why.text);
        return false;
    }
    return true;
}

static bool answer_cute(layout_answers *answers, lilac_scanner *scanner) {
    lilac_cute cute;
    if (!read_cute(scanner, &cute)) {
        return false;
    }
    if (answers->json) {
        put_cute_json(&answers->text, &cute);
    } else {
        lilac_cute_print(&answers->text, &cute);
    }
    return true;
}

static bool read_offsets(lilac_scanner *scanner, lilac_layout *map) {
    if (form_at(scanner)) {
        layout_form form;
        return form_read(scanner, &form) && form_offsets(scanner->context, map, &form);
    }
    const lilac_position position = lilac_scanner_position(scanner);
    laid_out_type type;
    lilac_reason why = {"a tensor spread over registers, lanes and warps has no offsets"};
    if (!type_read(scanner, &type)) {
        return false;
    }
    if (lilac_layout_in(&type.layout, "register") >= 0 ||
        !lilac_layout_invert(map, &type.layout, &why)) {
        lilac_error(scanner->context, position, 0, "no-offsets", "%s", why.text);
        return false;
    }
    return true;
}

static bool answer_offsets(layout_answers *answers, lilac_scanner *scanner) {
    lilac_layout map;
    if (!read_offsets(scanner, &map)) {
        return false;
    }
    lilac_layout_json(&answers->text, &map);
    return true;
}

static void answer(layout_answers *answers, lilac_scanner *scanner) {
    static bool (*const by_form[])(layout_answers *, lilac_scanner *) = {
        [ANSWER_LAYOUT] = answer_layout,
        [ANSWER_CUTE] = answer_cute,
        [ANSWER_OFFSETS] = answer_offsets,
    };
    if (!by_form[answers->form](answers, scanner)) {
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

static int answer_all(layout_answers *answers, const string_list *types) {
    bool good = true;
    for (uint32_t i = 0; i < types->count; i++) {
        if (strcmp(types->list[i], "-") == 0) {
            good &= each_line(&(line_answers){answer_line, refuse}, answers);
        } else {
            answer_argument(answers, types->list[i], i + 1);
        }
    }
    good &= file_write(NULL, lilac_text_get(&answers->text), answers->text.length);
    return good && !answers->refused ? STATUS_DONE : STATUS_REFUSED;
}

static int read_form(const subcommand *command, const char *name, answer_form *form) {
    static const char *const names[] = {"layout", "cute", "offsets"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            *form = (answer_form)i;
            return -1;
        }
    }
    return usage_error(command, "--as takes layout, cute or offsets, not '%s'", name);
}

static int layout_run(const subcommand *command, int argc, char **argv) {
    layout_answers answers = {0};
    string_list types = {0};
    const char *form = "layout";
    const option_row table[] = {
        {"--as", NULL, OPTION_TEXT, &form, "FORM",
         "layout (the default), Triton's linear or shared_linear;\n"
         "cute, as CuTe writes it: memory as (dim0,dim1,…):(strides),\n"
         "tensors as (thread,value); a swizzle is found where one is;\n"
         "offsets, JSON of the inverse: coordinates to offsets,\n"
         "padding left out"},
        {"--json", NULL, OPTION_FLAG, &answers.json, NULL,
         "one JSON value a line: {\"register\": [[0,1],…], …}"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &types);
    if (status < 0) {
        status = read_form(command, form, &answers.form);
    }
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
    .usage = "TYPE… [--as FORM] [--json]",
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
        "TYPE may be - for standard input, one type a line. A type that is refused answers null,\n"
        "and the exit status is 1.",
    .run = layout_run,
};
