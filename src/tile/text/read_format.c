/* Reading an operation by its format (see tile_ops.def).
 *
 * The format is read once, character by character, in step with the tokens. Operands are collected by
 * group, types bind the variables of the signature, keywords become attributes. At the end each
 * operand is compared with the type that its item of the signature has, and the types of the
 * results follow: what is not written is computed.
 */
#include "internal.h"

#include <string.h>

typedef struct format_state {
    tile_reader *reader;
    tile_draft *draft;
    const tile_signature *signature;
    tile_binding binding;
    tile_operands groups[TILE_MAX_ITEMS];
    tile_type_list lists[TILE_MAX_ITEMS]; /* written types of items that list them */
    lilac_position list_positions[TILE_MAX_ITEMS];
    bool has_all; /* the types of all operands are written together */
    tile_type_list all;
    lilac_position all_position;
} format_state;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

static size_t word_length(const char *at) {
    size_t n = 0;
    while (is_letter(at[n]) || is_upper(at[n])) {
        n++;
    }
    return n;
}

/* "name:kind" after @. Returns what follows. */
static const char *split_attribute(const char *at, const char **name, size_t *name_length,
                                   const char **kind, size_t *kind_length) {
    *name = at;
    while (*at != ':') {
        at++;
    }
    *name_length = (size_t)(at - *name);
    *kind = ++at;
    while (is_letter(*at)) {
        at++;
    }
    *kind_length = (size_t)(at - *kind);
    return at;
}

/* ---- attributes ------------------------------------------------------------------------- */

static bool read_keyword(tile_reader *reader, const tile_keywords *set,
                         lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    lilac_text text = {0};
    bool good;
    do {
        good =
            scan->kind == LILAC_TOKEN_WORD && tile_keywords_has(set, scan->word, scan->word_length);
        if (!good) {
            lilac_text what = {0};
            lilac_text_printf(&what, "one of: %s", set->words);
            (void)lilac_scanner_expected(scan, lilac_text_get(&what));
            lilac_text_clear(&what);
            break;
        }
        if (!set->separator) {
            attribute->text = tile_token_name(reader);
            lilac_scanner_next(scan);
            break;
        }
        if (text.length) {
            lilac_text_puts(&text, set->separator);
        }
        lilac_text_put(&text, scan->word, scan->word_length);
        lilac_scanner_next(scan);
    } while (lilac_scanner_accept(scan, ','));
    if (set->separator) {
        attribute->text = lilac_intern(reader->context, lilac_text_get(&text), text.length);
    }
    lilac_text_clear(&text);
    return good;
}

/* 16: an i32. */
static bool read_integer(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    bool negative = lilac_scanner_accept(scan, '-');
    if (!lilac_scanner_integer(scan, &attribute->integer)) {
        return false;
    }
    attribute->integer = negative ? -attribute->integer : attribute->integer;
    attribute->kind = LILAC_TILE_ATTR_INTEGER;
    attribute->type = lilac_tile_scalar(reader->module, LILAC_I32);
    if (attribute->integer < INT32_MIN || attribute->integer > INT32_MAX) {
        return tile_fail(reader, position, "bad-literal", "a number of 32 bits can stand here");
    }
    return true;
}

/* 16, 0: an array of i32. */
static bool read_integers(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_scanner *scan = &reader->scan;
    int64_t list[LILAC_MAX_RANK], *copy;
    attribute->kind = LILAC_TILE_ATTR_INTEGERS;
    attribute->type = lilac_tile_scalar(reader->module, LILAC_I32);
    do {
        lilac_position position = lilac_scanner_position(scan);
        lilac_tile_attribute number = {0};
        if (!read_integer(reader, &number)) {
            return false;
        }
        if (attribute->count == LILAC_MAX_RANK) {
            return tile_fail(reader, position, "bad-literal", "up to %d numbers can stand here",
                             LILAC_MAX_RANK);
        }
        list[attribute->count++] = number.integer;
    } while (lilac_scanner_accept(scan, ','));
    copy = lilac_arena_array(reader->module->arena, int64_t, attribute->count);
    memcpy(copy, list, sizeof *copy * attribute->count);
    attribute->integers = copy;
    return true;
}

static bool read_attribute(format_state *state, const char *name, size_t name_length,
                           const char *kind, size_t kind_length) {
    tile_reader *reader = state->reader;
    lilac_scanner *scan = &reader->scan;
    lilac_tile_attribute attribute = {.name = lilac_intern(reader->context, name, name_length)};
    if (kind_length == 6 && memcmp(kind, "string", 6) == 0) {
        if (scan->kind != LILAC_TOKEN_STRING) {
            return lilac_scanner_expected(scan, "a string");
        }
        attribute.kind = LILAC_TILE_ATTR_STRING;
        attribute.text = tile_token_name(reader);
        lilac_scanner_next(scan);
    } else if (kind_length == 6 && memcmp(kind, "symbol", 6) == 0) {
        if (scan->kind != LILAC_TOKEN_SYMBOL) {
            return lilac_scanner_expected(scan, "a function's name");
        }
        attribute.kind = LILAC_TILE_ATTR_SYMBOL;
        attribute.text = tile_token_name(reader);
        lilac_scanner_next(scan);
    } else if (kind_length == 4 && memcmp(kind, "unit", 4) == 0) {
        attribute.kind = LILAC_TILE_ATTR_UNIT;
    } else if (kind_length == 7 && memcmp(kind, "integer", 7) == 0) {
        if (!read_integer(reader, &attribute)) {
            return false;
        }
    } else if (kind_length == 8 && memcmp(kind, "integers", 8) == 0) {
        if (!read_integers(reader, &attribute)) {
            return false;
        }
    } else {
        const tile_keywords *set = tile_keywords_find(kind, kind_length);
        attribute.kind = LILAC_TILE_ATTR_KEYWORD;
        if (!read_keyword(reader, set, &attribute)) {
            return false;
        }
        if (set->absent && strcmp(set->absent, attribute.text) == 0) {
            return true;
        }
    }
    tile_attribute_append(reader->module->arena, &state->draft->attributes, &attribute);
    return true;
}

static bool read_attributes(format_state *state) {
    lilac_tile_attributes written = {0};
    tile_reader *reader = state->reader;
    lilac_position position = lilac_scanner_position(&reader->scan);
    if (!tile_read_dictionary(reader, &written)) {
        return false;
    }
    for (uint32_t i = 0; i < written.count; i++) {
        if (lilac_tile_find(&state->draft->attributes, written.list[i].name)) {
            return tile_fail(reader, position, "redefinition", "attribute '%s' is there twice",
                             written.list[i].name);
        }
        tile_attribute_append(reader->module->arena, &state->draft->attributes, &written.list[i]);
    }
    return true;
}

/* ---- types ------------------------------------------------------------------------------ */

/* The types of a list variable: as many as its operands, or, of results, as there are. */
static bool read_type_list(format_state *state, uint32_t item, bool function) {
    tile_reader *reader = state->reader;
    tile_type_list *list = &state->lists[item];
    state->list_positions[item] = lilac_scanner_position(&reader->scan);
    if (function) {
        return tile_read_function_results(reader, list);
    }
    if (item < state->signature->operand_items && state->groups[item].count == 0) {
        return true;
    }
    return tile_read_types(reader, list);
}

/* What a variable that is written without the name of its type is, by its first constraint. */
static lilac_tile_type_kind kind_of(const format_state *state, char variable) {
    uint32_t count = state->signature->operand_items + state->signature->result_items;
    for (uint32_t i = 0; i < count; i++) {
        const tile_item *item = &state->signature->items[i];
        char kind =
            item->variable == variable && item->constraint_count ? item->constraints[0].kind : 0;
        if (kind == 'd' || kind == 'm' || kind == 'M') {
            return kind == 'd' ? LILAC_TILE_DESCRIPTOR : LILAC_TILE_MEMDESC;
        }
    }
    return LILAC_TILE_POINTER;
}

static bool read_variable(format_state *state, char variable, bool function, bool short_form) {
    tile_reader *reader = state->reader;
    int item = tile_signature_list(state->signature, variable);
    if (item >= 0) {
        return read_type_list(state, (uint32_t)item, function);
    }
    lilac_position position = lilac_scanner_position(&reader->scan);
    const lilac_tile_type **known = &state->binding.types[variable - 'A'];
    const lilac_tile_type *type =
        short_form ? tile_read_type_rest(reader, kind_of(state, variable)) : tile_read_type(reader);
    if (!type) {
        return false;
    }
    if (*known && *known != type) {
        return tile_fail(reader, position, "type-mismatch", "type '%s' where '%s' must stand again",
                         tile_type_text(reader->module, type),
                         tile_type_text(reader->module, *known));
    }
    *known = type;
    return true;
}

/* ---- the walk --------------------------------------------------------------------------- */

static const char *walk(format_state *state, const char *at, const char *end);

/* Whether the next token begins the optional part at `at`. */
static bool part_begins(const format_state *state, const char *at) {
    const lilac_scanner *scan = &state->reader->scan;
    while (*at == ' ') {
        at++;
    }
    if (*at == '$') {
        return scan->kind == LILAC_TOKEN_VALUE;
    }
    if (*at == '@') {
        const char *name, *kind;
        size_t name_length, kind_length;
        split_attribute(at + 1, &name, &name_length, &kind, &kind_length);
        return scan->kind == LILAC_TOKEN_WORD &&
               tile_keywords_has(tile_keywords_find(kind, kind_length), scan->word,
                                 scan->word_length);
    }
    if (is_letter(*at)) {
        size_t length = word_length(at);
        return scan->kind == LILAC_TOKEN_WORD && scan->word_length == length &&
               memcmp(scan->word, at, length) == 0;
    }
    if (is_upper(*at)) {
        return !lilac_scanner_is(scan, ')');
    }
    return lilac_scanner_is(scan, *at);
}

static const char *walk_literal(format_state *state, const char *at) {
    lilac_scanner *scan = &state->reader->scan;
    if (is_letter(*at)) {
        size_t length = word_length(at);
        char word[32];
        if (scan->kind == LILAC_TOKEN_WORD && scan->word_length == length &&
            memcmp(scan->word, at, length) == 0) {
            lilac_scanner_next(scan);
            return at + length;
        }
        memcpy(word, at, length);
        word[length] = 0;
        (void)lilac_scanner_expected(scan, word);
        return NULL;
    }
    if (at[0] == '-' && at[1] == '>') {
        if (scan->kind != LILAC_TOKEN_ARROW) {
            (void)lilac_scanner_expected(scan, "'->'");
            return NULL;
        }
        lilac_scanner_next(scan);
        return at + 2;
    }
    return lilac_scanner_expect(scan, *at) ? at + 1 : NULL;
}

static const char *walk_one(format_state *state, const char *at) {
    switch (*at) {
    case ' ':
        return at + 1;
    case '$': {
        uint32_t item = (uint32_t)(at[1] - '0');
        tile_operands *group = &state->groups[item];
        bool list = state->signature->items[item].many == '*';
        bool good = list ? tile_read_operands(state->reader, group)
                         : tile_read_operand(state->reader, group);
        return good ? at + 2 : NULL;
    }
    case '@': {
        const char *name, *kind;
        size_t name_length, kind_length;
        at = split_attribute(at + 1, &name, &name_length, &kind, &kind_length);
        return read_attribute(state, name, name_length, kind, kind_length) ? at : NULL;
    }
    case '{':
        return read_attributes(state) ? at + 2 : NULL;
    case '%':
    case '~':
        return read_variable(state, at[1], *at == '%', *at == '~') ? at + 2 : NULL;
    case '^':
        state->has_all = true;
        state->all_position = lilac_scanner_position(&state->reader->scan);
        return tile_read_parenthesized_types(state->reader, &state->all) ? at + 1 : NULL;
    case '|': {
        const char *close = at + 1;
        while (*close != '|') {
            close++;
        }
        if (part_begins(state, at + 1) && !walk(state, at + 1, close)) {
            return NULL;
        }
        return close + 1;
    }
    default:
        if (is_upper(*at) && !is_letter(at[1])) {
            return read_variable(state, *at, false, false) ? at + 1 : NULL;
        }
        return walk_literal(state, at);
    }
}

static const char *walk(format_state *state, const char *at, const char *end) {
    while (at && at < end) {
        at = walk_one(state, at);
    }
    return at;
}

/* ---- what follows from it --------------------------------------------------------------- */

/* Operands in the order of the signature; the sizes of the groups are kept where they cannot be
 * follows from the number of operands. */
static bool collect_operands(format_state *state) {
    const tile_signature *signature = state->signature;
    tile_draft *draft = state->draft;
    int64_t sizes[TILE_MAX_ITEMS];
    uint32_t optional = 0;
    for (uint32_t i = 0; i < signature->operand_items; i++) {
        optional += signature->items[i].many == '?';
        sizes[i] = state->groups[i].count;
        for (uint32_t k = 0; k < state->groups[i].count; k++) {
            tile_operands_push(state->reader, &draft->operands, state->groups[i].list[k]);
        }
    }
    tile_groups groups;
    bool follows =
        tile_signature_groups(signature, draft->operands.count, &draft->attributes, &groups);
    for (uint32_t i = 0; follows && i < signature->operand_items; i++) {
        follows = groups.starts[i + 1] - groups.starts[i] == sizes[i];
    }
    if (follows) {
        return true;
    }
    if (!optional && !(lilac_tile_op_info_get(draft->code)->traits & LILAC_TILE_LISTS)) {
        return tile_fail(state->reader, draft->position, "count-mismatch",
                         "the lists of '%s' must have the same length",
                         lilac_tile_op_info_get(draft->code)->name);
    }
    lilac_tile_module *module = state->reader->module;
    int64_t *copy = lilac_arena_array(module->arena, int64_t, signature->operand_items);
    memcpy(copy, sizes, sizeof *copy * signature->operand_items);
    tile_attribute_append(
        module->arena, &draft->attributes,
        &(lilac_tile_attribute){.kind = LILAC_TILE_ATTR_INTEGERS,
                                .name = lilac_intern_string(module->context, "operandSegmentSizes"),
                                .type = lilac_tile_scalar(module, LILAC_I32),
                                .count = signature->operand_items,
                                .integers = copy});
    return true;
}

static bool check_type(format_state *state, const tile_item *item, const lilac_tile_type *type,
                       lilac_position position, const char *what) {
    lilac_tile_module *module = state->reader->module;
    const lilac_tile_type *other;
    const char *missed = tile_item_misses(module, item, &state->binding, type, &other);
    if (!missed) {
        return true;
    }
    return tile_fail(state->reader, position, "type-mismatch",
                     "%s of '%s' has type '%s', but %s%s%s%s is needed", what,
                     lilac_tile_op_info_get(state->draft->code)->name, tile_type_text(module, type),
                     missed, other ? " '" : "", other ? tile_type_text(module, other) : "",
                     other ? "'" : "");
}

static bool check_group(format_state *state, uint32_t number, uint32_t start) {
    tile_reader *reader = state->reader;
    const tile_item *item = &state->signature->items[number];
    const tile_operands *group = &state->groups[number];
    bool listed = item->variable && item->many == '*';
    if (listed && state->lists[number].count != group->count) {
        return tile_fail(reader, state->list_positions[number], "count-mismatch",
                         "%u types for %u operands", state->lists[number].count, group->count);
    }
    for (uint32_t k = 0; k < group->count; k++) {
        const lilac_tile_type *type = listed
                                          ? state->lists[number].list[k]
                                          : tile_item_type(reader->module, item, &state->binding);
        if (!type && item->variable) {
            type = state->binding.types[item->variable - 'A'] = group->list[k].value->type;
        }
        if (type && !tile_check_operand(reader, state->draft, start + k, type)) {
            return false;
        }
        if (!check_type(state, item, group->list[k].value->type, group->list[k].position,
                        "an operand")) {
            return false;
        }
    }
    return true;
}

/* The types that are written for all operands together. */
static bool check_all(format_state *state) {
    const tile_operands *operands = &state->draft->operands;
    if (!state->has_all) {
        return true;
    }
    if (state->all.count != operands->count) {
        return tile_fail(state->reader, state->all_position, "count-mismatch",
                         "%u types for %u operands", state->all.count, operands->count);
    }
    for (uint32_t i = 0; i < operands->count; i++) {
        if (!tile_check_operand(state->reader, state->draft, i, state->all.list[i])) {
            return false;
        }
    }
    return true;
}

static bool compute_results(format_state *state) {
    const tile_signature *signature = state->signature;
    tile_reader *reader = state->reader;
    for (uint32_t i = 0; i < signature->result_items; i++) {
        uint32_t number = signature->operand_items + i;
        const tile_item *item = &signature->items[number];
        if (item->many == '*') {
            const tile_type_list *list =
                &state->lists[tile_signature_list(signature, item->variable)];
            for (uint32_t k = 0; k < list->count; k++) {
                tile_type_list_push(reader, &state->draft->results, list->list[k]);
            }
            continue;
        }
        const lilac_tile_type *type = tile_item_type(reader->module, item, &state->binding);
        if (!type) {
            return tile_fail(reader, state->draft->position, "type-mismatch",
                             "the type of the result of '%s' does not follow from its operands",
                             lilac_tile_op_info_get(state->draft->code)->name);
        }
        if (!check_type(state, item, type, state->draft->position, "the result")) {
            return false;
        }
        tile_type_list_push(reader, &state->draft->results, type);
    }
    return true;
}

bool tile_read_format(tile_reader *reader, tile_draft *draft) {
    const lilac_tile_op_info *info = lilac_tile_op_info_get(draft->code);
    const tile_signature **known = &reader->signatures[draft->code];
    if (!*known) {
        tile_signature *signature = lilac_arena_new(reader->scratch, tile_signature);
        tile_signature_parse(signature, info->signature);
        *known = signature;
    }
    format_state state = {.reader = reader, .draft = draft, .signature = *known};
    if (!walk(&state, info->format, info->format + strlen(info->format))) {
        return false;
    }
    if (!collect_operands(&state) || !check_all(&state)) {
        return false;
    }
    uint32_t start = 0;
    for (uint32_t i = 0; i < state.signature->operand_items; i++) {
        if (!check_group(&state, i, start)) {
            return false;
        }
        start += state.groups[i].count;
    }
    return compute_results(&state);
}
