/* The reader of MLIR's custom assembly, as Triton prints it.
 *
 *   definitions   #loc = loc(…)   #blocked = #ttg.blocked<{…}>     anywhere at the top
 *   module        module attributes {…} { functions }
 *   function      tt.func public @name(%a: type {…} loc(…), …) -> (types) attributes {…} { blocks }
 *   block         ^name(%a: type, …):  operations
 *   operation     %r, %s:2 = name … loc(…)     see read_op.c
 *
 * One pass, no look-ahead: an operation is drafted from its text, then made, then its results get
 * their names. Names map to values through one hash table; a scope that ends takes its names out.
 *
 * After an error the reader goes on at the next operation: the next token that begins a line and
 * stands where as many brackets are open as where the bad operation began. The bad one's results
 * keep their names, so that their uses are not reported as well.
 */
#include "internal.h"

#include <string.h>

/* What a name means: `count` values of one operation, or a definition that was wrong (NULL). */
typedef struct binding {
    lilac_tile_value *first;
    uint32_t count;
    bool defined;
} binding;

typedef struct tile_label {
    lilac_name name;
    lilac_tile_block *block;
    lilac_position position; /* of the first use */
    bool defined;
} label;

/* ---- values ----------------------------------------------------------------------------- */

void tile_scope_open(tile_reader *reader, uint32_t *mark) {
    *mark = reader->log_count;
}

void tile_scope_close(tile_reader *reader, uint32_t mark) {
    while (reader->log_count > mark) {
        binding *b = tile_table_get(&reader->values, reader->log[--reader->log_count]);
        b->defined = false;
    }
}

bool tile_define_value(tile_reader *reader, lilac_name name, lilac_position position,
                       lilac_tile_value *value, uint32_t count) {
    binding **slot = (binding **)tile_table_at(&reader->values, name);
    if (!*slot)
        *slot = lilac_arena_new(reader->scratch, binding);
    if ((*slot)->defined) {
        if (!value)
            return false; /* what comes from a bad operation says no more */
        return tile_fail(reader, position, "redefinition", "'%%%s' is defined twice", name);
    }
    **slot = (binding){value, count, true};
    if (reader->log_count == reader->log_capacity) {
        reader->log_capacity = reader->log_capacity ? reader->log_capacity * 2 : 256;
        reader->log = lilac_heap_grow(reader->log, sizeof *reader->log * reader->log_capacity);
    }
    reader->log[reader->log_count++] = name;
    return true;
}

/* Numbers are what printing gives to values without a name. */
lilac_name tile_kept_name(lilac_name name) {
    return strspn(name, "0123456789") == strlen(name) ? NULL : name;
}

bool tile_read_operand(tile_reader *reader, tile_operands *operands) {
    lilac_scanner *scan = &reader->scan;
    tile_operand operand = {.position = lilac_scanner_position(scan)};
    if (scan->kind != LILAC_TOKEN_VALUE)
        return lilac_scanner_expected(scan, "a value");
    lilac_name name = tile_token_name(reader);
    lilac_scanner_next(scan);
    binding *b = tile_table_get(&reader->values, name);
    if (!b || !b->defined)
        return tile_fail(reader, operand.position, "undefined-value", "'%%%s' is not defined",
                         name);
    uint64_t index = 0;
    if (scan->kind == LILAC_TOKEN_HASH && scan->offset == scan->previous_end) {
        for (uint32_t i = 0; i < scan->word_length; i++) {
            if (scan->word[i] < '0' || scan->word[i] > '9' || index > UINT32_MAX)
                return lilac_scanner_expected(scan, "a result's number");
            index = index * 10 + (uint64_t)(scan->word[i] - '0');
        }
        lilac_scanner_next(scan);
    }
    if (!b->first) {
        reader->failed = true;
        return false;
    }
    if (index >= b->count)
        return tile_fail(reader, operand.position, "undefined-value",
                         "'%%%s#%llu' is not defined: it has %u results", name,
                         (unsigned long long)index, b->count);
    operand.value = b->first + index;
    tile_operands_push(reader, operands, operand);
    return true;
}

bool tile_read_operands(tile_reader *reader, tile_operands *operands) {
    if (reader->scan.kind != LILAC_TOKEN_VALUE)
        return true;
    do {
        if (!tile_read_operand(reader, operands))
            return false;
    } while (lilac_scanner_accept(&reader->scan, ','));
    return true;
}

bool tile_check_operand(tile_reader *reader, const tile_draft *draft, uint32_t index,
                        const lilac_tile_type *type) {
    const tile_operand *operand = &draft->operands.list[index];
    if (operand->value->type == type)
        return true;
    return tile_fail(reader, operand->position, "type-mismatch",
                     "operand %u of '%s' has type '%s', but '%s' is needed here", index + 1,
                     lilac_tile_op_info_get(draft->code)->name,
                     tile_type_text(reader->module, operand->value->type),
                     tile_type_text(reader->module, type));
}

/* ---- blocks ----------------------------------------------------------------------------- */

/* Labels of one region, told apart from those of others by where they begin in the list. */
static label *find_label(tile_reader *reader, lilac_name name) {
    for (uint32_t i = reader->label_base; i < reader->label_count; i++)
        if (reader->labels[i].name == name)
            return &reader->labels[i];
    if (reader->label_count - reader->label_base >= 1024)
        return NULL;
    if (reader->label_count == reader->label_capacity) {
        reader->label_capacity = reader->label_capacity ? reader->label_capacity * 2 : 16;
        reader->labels =
            lilac_heap_grow(reader->labels, sizeof *reader->labels * reader->label_capacity);
    }
    label *fresh = &reader->labels[reader->label_count++];
    *fresh = (label){.name = name, .block = tile_block_create(reader->module)};
    fresh->block->name = name;
    return fresh;
}

lilac_tile_block *tile_use_label(tile_reader *reader, lilac_name name, lilac_position position) {
    label *found = find_label(reader, name);
    if (!found) {
        (void)tile_fail(reader, position, "too-many-blocks", "more than 1024 blocks in one region");
        return NULL;
    }
    if (!found->defined && !found->position.source)
        found->position = position;
    return found->block;
}

/* %a: type {…} loc(…), … up to and with ")". With attributes, a function's: their names may be
 * missing, which `unnamed` then says. */
static bool read_arguments(tile_reader *reader, lilac_tile_block *block,
                           lilac_tile_attributes **attributes, bool *unnamed) {
    lilac_scanner *scan = &reader->scan;
    uint32_t capacity = 0;
    if (lilac_scanner_accept(scan, ')'))
        return true;
    do {
        lilac_position position = lilac_scanner_position(scan);
        lilac_name name = NULL;
        if (scan->kind == LILAC_TOKEN_VALUE) {
            name = tile_token_name(reader);
            lilac_scanner_next(scan);
            if (!lilac_scanner_expect(scan, ':'))
                return false;
        } else if (unnamed) {
            *unnamed = true;
        } else {
            return lilac_scanner_expected(scan, "an argument's name");
        }
        const lilac_tile_type *type = tile_read_type(reader);
        if (!type)
            return false;
        lilac_tile_value *value = lilac_tile_add_argument(reader->module, block, type,
                                                          name ? tile_kept_name(name) : NULL, 0);
        lilac_tile_attributes own = {0};
        if (attributes) {
            if (!tile_read_dictionary(reader, &own))
                return false;
            if (value->index == capacity) {
                capacity = capacity ? capacity * 2 : 8;
                lilac_tile_attributes *list =
                    lilac_arena_array(reader->module->arena, lilac_tile_attributes, capacity);
                if (value->index)
                    memcpy(list, *attributes, sizeof *list * value->index);
                *attributes = list;
            }
            (*attributes)[value->index] = own;
        }
        if (!tile_read_location(reader, &value->location) ||
            (name && !tile_define_value(reader, name, position, value, 1)))
            return false;
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, ')');
}

/* ---- recovery --------------------------------------------------------------------------- */

static bool begins_line(const lilac_scanner *scan) {
    uint32_t at = scan->offset;
    while (at > 0 && (scan->text[at - 1] == ' ' || scan->text[at - 1] == '\t'))
        at--;
    return at == 0 || scan->text[at - 1] == '\n';
}

static int bracket_change(char c) {
    return (c == '{' || c == '(' || c == '[') - (c == '}' || c == ')' || c == ']');
}

/* Brackets left open by the bytes from `begin` to `end`, which have been scanned before: so that
 * nothing is reported twice, bytes are looked at here and not tokens. */
static int open_brackets(const lilac_scanner *scan, uint32_t begin, uint32_t end) {
    int open = 0;
    for (uint32_t at = begin; at < end; at++) {
        char c = scan->text[at];
        if (c == '"') {
            for (at++; at < end && scan->text[at] != '"' && scan->text[at] != '\n'; at++)
                at += scan->text[at] == '\\';
        } else if (c == '/' && at + 1 < end && scan->text[at + 1] == '/') {
            while (at < end && scan->text[at] != '\n')
                at++;
        } else {
            open += bracket_change(c);
        }
    }
    return open > 0 ? open : 0;
}

/* Goes from the operation that began at `begin` to the next one: past where the error is, with no
 * bracket of the bad one open, at the beginning of a line or at the "}" of the block. */
static void skip_operation(tile_reader *reader, uint32_t begin) {
    lilac_scanner *scan = &reader->scan;
    int open = open_brackets(scan, begin, scan->offset);
    if (scan->offset == begin && scan->kind != LILAC_TOKEN_END) {
        open += bracket_change(scan->punctuation);
        lilac_scanner_next(scan);
    }
    while (scan->kind != LILAC_TOKEN_END) {
        int change = bracket_change(scan->punctuation);
        if (open <= 0 && (begins_line(scan) || (change < 0 && scan->punctuation == '}')))
            return;
        open += change;
        lilac_scanner_next(scan);
    }
}

/* ---- regions ---------------------------------------------------------------------------- */

static bool read_block_label(tile_reader *reader, lilac_tile_block **block) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    lilac_name name = tile_token_name(reader);
    lilac_scanner_next(scan);
    label *found = find_label(reader, name);
    if (!found)
        return tile_fail(reader, position, "too-many-blocks",
                         "more than 1024 blocks in one region");
    if (found->defined)
        return tile_fail(reader, position, "redefinition", "'^%s' is defined twice", name);
    found->defined = true;
    *block = found->block;
    if (lilac_scanner_accept(scan, '(') && !read_arguments(reader, *block, NULL, NULL))
        return false;
    return lilac_scanner_expect(scan, ':');
}

static void read_block(tile_reader *reader, lilac_tile_block *block) {
    lilac_scanner *scan = &reader->scan;
    while (scan->kind != LILAC_TOKEN_END && scan->kind != LILAC_TOKEN_BLOCK &&
           !lilac_scanner_is(scan, '}')) {
        uint32_t begin = scan->offset;
        tile_result_names names = {0};
        reader->failed = false;
        uint32_t before = lilac_error_count(reader->context);
        if (tile_read_op(reader, block, &names))
            continue;
        if (!reader->failed && lilac_error_count(reader->context) == before &&
            scan->kind != LILAC_TOKEN_ERROR)
            (void)lilac_scanner_expected(scan, "an operation");
        reader->bad = true;
        skip_operation(reader, begin);
        tile_define_results(reader, &names, NULL);
    }
}

static bool check_labels(tile_reader *reader, uint32_t begin) {
    bool good = true;
    for (uint32_t i = begin; i < reader->label_count; i++)
        if (!reader->labels[i].defined) {
            (void)tile_fail(reader, reader->labels[i].position, "undefined-block",
                            "'^%s' is not defined", reader->labels[i].name);
            good = false;
        }
    return good;
}

static bool read_blocks(tile_reader *reader, lilac_tile_region *region, lilac_tile_block *entry) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_block **end = &region->first;
    lilac_tile_block *block = entry;
    if (!block && !lilac_scanner_is(scan, '}') && scan->kind != LILAC_TOKEN_BLOCK)
        block = tile_block_create(reader->module);
    for (;;) {
        if (block) {
            block->parent = region;
            *end = block;
            end = &block->next;
            read_block(reader, block);
            block = NULL;
        }
        if (scan->kind != LILAC_TOKEN_BLOCK)
            break;
        if (!read_block_label(reader, &block))
            return false;
    }
    return lilac_scanner_expect(scan, '}');
}

bool tile_read_region(tile_reader *reader, lilac_tile_region *region, lilac_tile_block *entry) {
    if (reader->depth >= TILE_MAX_REGION_DEPTH)
        return tile_fail(reader, lilac_scanner_position(&reader->scan), "nested-too-deep",
                         "regions are nested too deep here");
    if (!lilac_scanner_expect(&reader->scan, '{'))
        return false;
    uint32_t mark, labels = reader->label_count, base = reader->label_base;
    tile_scope_open(reader, &mark);
    reader->label_base = labels;
    reader->depth++;
    bool good = read_blocks(reader, region, entry);
    good = check_labels(reader, labels) && good;
    reader->depth--;
    reader->label_count = labels;
    reader->label_base = base;
    tile_scope_close(reader, mark);
    return good;
}

/* ---- functions and modules -------------------------------------------------------------- */

static bool read_function_header(tile_reader *reader, lilac_tile_function *function,
                                 lilac_tile_block *entry, bool *unnamed) {
    lilac_scanner *scan = &reader->scan;
    bool is_private =
        lilac_scanner_accept_word(scan, "private") || lilac_scanner_accept_word(scan, "nested");
    if (!is_private)
        lilac_scanner_accept_word(scan, "public");
    function->is_public = !is_private;
    if (scan->kind != LILAC_TOKEN_SYMBOL)
        return lilac_scanner_expected(scan, "the function's name");
    function->name = tile_token_name(reader);
    void **same = tile_table_at(&reader->functions, function->name);
    if (*same)
        return tile_fail(reader, lilac_scanner_position(scan), "redefinition",
                         "function '@%s' is defined twice", function->name);
    *same = function;
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '('))
        return false;
    if (!read_arguments(reader, entry, &function->parameter_attributes, unnamed))
        return false;
    function->parameter_count = entry->argument_count;
    function->parameters = entry->arguments;
    tile_type_list results = {0};
    if (scan->kind == LILAC_TOKEN_ARROW) {
        lilac_scanner_next(scan);
        if (!tile_read_function_results(reader, &results))
            return false;
    }
    function->result_count = results.count;
    function->results =
        lilac_arena_array(reader->module->arena, const lilac_tile_type *, results.count);
    if (results.count)
        memcpy(function->results, results.list, sizeof *results.list * results.count);
    if (lilac_scanner_accept_word(scan, "attributes"))
        return tile_read_dictionary(reader, &function->attributes);
    return true;
}

static bool read_function(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_module *module = reader->module;
    lilac_tile_function *function = lilac_arena_new(module->arena, lilac_tile_function);
    function->module = module;
    function->position = lilac_scanner_position(scan);
    lilac_scanner_next(scan);
    uint32_t mark;
    tile_scope_open(reader, &mark);
    lilac_tile_block *entry = tile_block_create(module);
    reader->function = function;
    bool unnamed = false;
    bool good = read_function_header(reader, function, entry, &unnamed);
    if (good && lilac_scanner_is(scan, '{') && unnamed) {
        good = lilac_scanner_expected(scan, "names of the parameters, or no body");
    } else if (good && lilac_scanner_is(scan, '{')) {
        function->body = tile_region_create(module, function);
        good = tile_read_region(reader, function->body, entry);
    }
    tile_scope_close(reader, mark);
    reader->function = NULL;
    if (!good || !tile_read_location(reader, &function->location))
        return false;
    *reader->function_end = function;
    reader->function_end = &function->next;
    return true;
}

/* Functions up to "}" or the end of the text. */
static void read_functions(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    while (scan->kind != LILAC_TOKEN_END && !lilac_scanner_is(scan, '}')) {
        uint32_t begin = scan->offset;
        uint32_t before = lilac_error_count(reader->context);
        bool good = lilac_scanner_is_word(scan, "tt.func") && read_function(reader);
        if (good)
            continue;
        if (lilac_error_count(reader->context) == before && scan->kind != LILAC_TOKEN_ERROR) {
            if (scan->kind == LILAC_TOKEN_WORD || scan->kind == LILAC_TOKEN_STRING)
                (void)tile_fail(reader, lilac_scanner_position(scan), "unknown-operation",
                                "'%.*s' cannot stand in a module",
                                (int)(scan->word_length > 80 ? 80 : scan->word_length), scan->word);
            else
                (void)lilac_scanner_expected(scan, "tt.func");
        }
        reader->bad = true;
        skip_operation(reader, begin);
    }
}

static bool read_module(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_scanner_next(scan);
    if (scan->kind == LILAC_TOKEN_SYMBOL) {
        lilac_tile_attribute name = {.kind = LILAC_TILE_ATTR_SYMBOL,
                                     .name = lilac_intern_string(reader->context, "sym_name"),
                                     .text = tile_token_name(reader)};
        tile_attribute_append(reader->module->arena, &reader->module->attributes, &name);
        lilac_scanner_next(scan);
    }
    if (lilac_scanner_accept_word(scan, "attributes") &&
        !tile_read_dictionary(reader, &reader->module->attributes))
        return false;
    if (!lilac_scanner_expect(scan, '{'))
        return false;
    read_functions(reader);
    return lilac_scanner_expect(scan, '}') && tile_read_location(reader, &reader->module->location);
}

/* #loc3 = loc(…) or #blocked = #ttg.blocked<{…}> */
static bool read_definition(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    lilac_name name = tile_token_name(reader);
    uint32_t length = scan->word_length;
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '='))
        return false;
    if (lilac_scanner_is_word(scan, "loc"))
        return tile_define_location(reader, name);
    void **known = tile_table_at(&reader->encoding_names, name);
    if (*known)
        return tile_fail(reader, position, "redefinition", "'#%s' is defined twice", name);
    const lilac_encoding *encoding = lilac_encoding_read(scan, &reader->encodings);
    if (!encoding)
        return false;
    *known = (void *)(uintptr_t)encoding;
    lilac_encoding_define(&reader->encodings, reader->context, name, length, encoding);
    return true;
}

static void read_top(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    bool module = false;
    while (scan->kind != LILAC_TOKEN_END) {
        uint32_t begin = scan->offset;
        uint32_t before = lilac_error_count(reader->context);
        bool good;
        if (scan->kind == LILAC_TOKEN_HASH) {
            good = read_definition(reader);
        } else if (lilac_scanner_is_word(scan, "module") ||
                   lilac_scanner_is_word(scan, "builtin.module")) {
            if (module)
                (void)tile_fail(reader, lilac_scanner_position(scan), "redefinition",
                                "a second module in one text");
            module = true;
            good = read_module(reader);
        } else if (lilac_scanner_is_word(scan, "tt.func")) {
            module = true;
            good = read_function(reader);
        } else {
            good = lilac_scanner_expected(scan, "a module or a definition");
        }
        if (good)
            continue;
        reader->bad = true;
        if (lilac_error_count(reader->context) == before && scan->kind != LILAC_TOKEN_ERROR)
            (void)lilac_scanner_expected(scan, "a module or a definition");
        skip_operation(reader, begin);
    }
    if (!module && !reader->bad)
        (void)lilac_scanner_expected(scan, "a module");
}

lilac_tile_module *lilac_tile_read(lilac_context *context, uint32_t source) {
    tile_reader reader = {.context = context,
                          .module = lilac_tile_module_create(context),
                          .scratch = lilac_arena_create()};
    uint32_t before = lilac_error_count(context);
    reader.pending_end = &reader.pending;
    reader.function_end = &reader.module->functions;
    reader.encodings.context = context;
    lilac_scanner_init(&reader.scan, context, source);
    const char *zero = reader.scan.length ? memchr(reader.scan.text, 0, reader.scan.length) : NULL;
    if (zero) {
        /* Names are C strings from here on. */
        uint32_t offset = (uint32_t)(zero - reader.scan.text);
        (void)tile_fail(&reader, ((lilac_position){source, offset}), "zero-byte",
                        "a byte that is zero");
    } else {
        read_top(&reader);
        tile_resolve_locations(&reader);
    }
    bool good = !reader.bad && lilac_error_count(context) == before;
    tile_table_clear(&reader.opcodes);
    tile_table_clear(&reader.values);
    tile_table_clear(&reader.functions);
    tile_table_clear(&reader.encoding_names);
    tile_table_clear(&reader.locations);
    lilac_heap_free(reader.log);
    lilac_heap_free(reader.labels);
    lilac_arena_destroy(reader.scratch);
    if (good)
        return reader.module;
    lilac_tile_module_destroy(reader.module);
    return NULL;
}
