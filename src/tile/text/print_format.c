/* Printing an operation by its format (see tile_ops.def): the other direction of read_format.c. The
 * format is copied out, with operands, types and attributes in their places; an optional part is
 * printed when what it is about is there. */
#include "internal.h"

#include <string.h>

typedef struct format_printer {
    tile_printer *printer;
    const lilac_tile_op *op;
    tile_signature signature;
    tile_groups groups;
    const char *hidden[12]; /* attributes that the format itself prints */
} format_printer;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

/* The attribute of "@name:kind" at `at` (behind the @), and what follows it. */
static const lilac_tile_attribute *attribute_at(const format_printer *state, const char **at) {
    size_t length = strcspn(*at, ":");
    const lilac_tile_attribute *found = tile_attribute_find(&state->op->attributes, *at, length);
    *at += length + 1;
    while (is_letter(**at)) {
        ++*at;
    }
    return found;
}

/* The item whose types a variable stands for: the list, or the first that has it. */
static int item_of(const format_printer *state, char variable) {
    int list = tile_signature_list(&state->signature, variable);
    uint32_t count = state->signature.operand_items + state->signature.result_items;
    for (uint32_t i = 0; list < 0 && i < count; i++) {
        if (state->signature.items[i].variable == variable &&
            (i >= state->signature.operand_items ||
             state->groups.starts[i + 1] > state->groups.starts[i])) {
            list = (int)i;
        }
    }
    return list;
}

/* Whether the first operand, variable or attribute of an optional part is there. */
static bool part_present(const format_printer *state, const char *at, const char *end) {
    for (; at < end; at++) {
        if (*at == '$') {
            uint32_t item = (uint32_t)(at[1] - '0');
            return state->groups.starts[item + 1] > state->groups.starts[item];
        }
        if (*at == '@') {
            at++;
            return attribute_at(state, &at) != NULL;
        }
        if (is_letter(*at)) {
            while (is_letter(at[1]) || is_upper(at[1])) {
                at++;
            }
        } else if (is_upper(*at)) {
            int item = item_of(state, *at);
            return item >= 0 && ((uint32_t)item >= state->signature.operand_items ||
                                 state->groups.starts[item + 1] > state->groups.starts[item]);
        }
    }
    return true;
}

static void print_results_plain(format_printer *state) {
    for (uint32_t i = 0; i < state->op->result_count; i++) {
        if (i) {
            lilac_text_puts(state->printer->out, ", ");
        }
        lilac_tile_print_type(state->printer->out, state->op->results[i].type);
    }
}

static void print_variable(format_printer *state, char variable, char how) {
    const lilac_tile_op *op = state->op;
    lilac_text *out = state->printer->out;
    int item = item_of(state, variable);
    if (item < 0) {
        return;
    }
    bool is_result = (uint32_t)item >= state->signature.operand_items;
    if (state->signature.items[item].many == '*') {
        if (how == '%') {
            tile_print_result_types(state->printer, op);
        } else if (is_result) {
            print_results_plain(state);
        } else {
            tile_print_operand_types(state->printer, op, state->groups.starts[item],
                                     state->groups.starts[item + 1]);
        }
        return;
    }
    const lilac_tile_type *type =
        is_result ? op->results[(uint32_t)item - state->signature.operand_items].type
                  : op->operands[state->groups.starts[item]].value->type;
    if (how != '~') {
        lilac_tile_print_type(out, type);
        return;
    }
    lilac_text text = {0};
    lilac_tile_print_type(&text, type);
    lilac_text_puts(out, lilac_text_get(&text) + strcspn(lilac_text_get(&text), "<"));
    lilac_text_clear(&text);
}

static void print_integers(lilac_text *out, const lilac_tile_attribute *attribute) {
    for (uint32_t i = 0; i < attribute->count; i++) {
        if (i) {
            lilac_text_puts(out, ", ");
        }
        lilac_text_signed(out, attribute->integers[i]);
    }
}

static void walk(format_printer *state, const char *at, const char *end) {
    lilac_text *out = state->printer->out;
    while (at < end) {
        if (*at == '$') {
            uint32_t item = (uint32_t)(at[1] - '0');
            tile_print_values(state->printer, state->op, state->groups.starts[item],
                              state->groups.starts[item + 1]);
            at += 2;
        } else if (*at == '@') {
            at++;
            const lilac_tile_attribute *attribute = attribute_at(state, &at);
            if (attribute && attribute->kind == LILAC_TILE_ATTR_INTEGERS) {
                print_integers(out, attribute);
            } else if (attribute && attribute->kind == LILAC_TILE_ATTR_INTEGER) {
                lilac_text_signed(out, attribute->integer);
            } else if (attribute && attribute->kind != LILAC_TILE_ATTR_UNIT) {
                tile_print_attribute_value(out, attribute);
            }
        } else if (*at == '{') {
            tile_print_dictionary(state->printer, " ", &state->op->attributes, state->hidden);
            at += 2;
        } else if (*at == '|') {
            const char *close = at + 1;
            while (*close != '|') {
                close++;
            }
            if (part_present(state, at + 1, close)) {
                walk(state, at + 1, close);
            }
            at = close + 1;
        } else if (*at == '^') {
            lilac_text_char(out, '(');
            tile_print_operand_types(state->printer, state->op, 0, state->op->operand_count);
            lilac_text_char(out, ')');
            at++;
        } else if (*at == '%' || *at == '~') {
            print_variable(state, at[1], *at);
            at += 2;
        } else if (is_upper(*at)) {
            print_variable(state, *at++, 0);
        } else if (is_letter(*at)) {
            while (is_letter(*at) || is_upper(*at)) {
                lilac_text_char(out, *at++);
            }
        } else {
            lilac_text_char(out, *at++);
        }
    }
}

/* The attributes between @ and : in the format. They point into it, so they are copied. */
static void find_hidden(format_printer *state, const char *format) {
    uint32_t count = 0;
    lilac_context *context = state->printer->module->context;
    for (const char *at = format; (at = strchr(at, '@')) != NULL && count < 10;) {
        size_t length = strcspn(++at, ":");
        state->hidden[count++] = lilac_intern(context, at, length);
    }
    state->hidden[count++] = "operandSegmentSizes";
    state->hidden[count] = NULL;
}

void tile_print_format(tile_printer *printer, const lilac_tile_op *op) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(op->code);
    format_printer state = {.printer = printer, .op = op};
    tile_signature_parse(&state.signature, info->signature);
    if (!tile_signature_groups(&state.signature, op->operand_count, &op->attributes,
                               &state.groups)) {
        return;
    }
    find_hidden(&state, info->format);
    char first = info->format[0];
    if (first && first != '(' && first != '|' && first != '{') {
        lilac_text_char(printer->out, ' ');
    }
    walk(&state, info->format, info->format + strlen(info->format));
}
