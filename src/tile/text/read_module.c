/* The reader of MLIR's assembly, as Triton prints it: modules and functions.
 *
 *   definitions   #loc = loc(…)   #blocked = #ttg.blocked<{…}>     anywhere at the top
 *   module        module @name attributes {…} { functions }
 *   function      tt.func public @name(%a: type {…} loc(…), …) -> (types) attributes {…} { blocks }
 *   region        see read.c
 *   operation     %r, %s:2 = name … loc(…)     see read_op.c
 *
 * One pass, no look-ahead: an operation is drafted from its text, then made, then its results get
 * their names. What is wrong is reported and skipped, so that one run finds all that is wrong.
 */
#include "internal.h"

#include <string.h>

/* ---- functions and modules -------------------------------------------------------------- */

static bool name_function(tile_reader *reader, lilac_tile_function *function, lilac_name name,
                          lilac_position position) {
    void **same = tile_table_at(&reader->functions, name);
    if (*same) {
        return tile_fail(reader, position, "redefinition", "function '@%s' is defined twice", name);
    }
    *same = function;
    function->name = name;
    return true;
}

static void set_results(tile_reader *reader, lilac_tile_function *function,
                        const lilac_tile_type *const *types, uint32_t count) {
    function->result_count = count;
    function->results = lilac_arena_array(reader->module->arena, const lilac_tile_type *, count);
    if (count) {
        memcpy(function->results, types, sizeof *types * count);
    }
}

static bool read_function_header(tile_reader *reader, lilac_tile_function *function,
                                 lilac_tile_block *entry, bool *unnamed) {
    lilac_scanner *scan = &reader->scan;
    bool is_private =
        lilac_scanner_accept_word(scan, "private") || lilac_scanner_accept_word(scan, "nested");
    if (!is_private) {
        lilac_scanner_accept_word(scan, "public");
    }
    function->is_public = !is_private;
    if (scan->kind != LILAC_TOKEN_SYMBOL) {
        return lilac_scanner_expected(scan, "the function's name");
    }
    if (!name_function(reader, function, tile_token_name(reader), lilac_scanner_position(scan))) {
        return false;
    }
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '(')) {
        return false;
    }
    if (!tile_read_arguments(reader, entry, &function->parameter_attributes, unnamed)) {
        return false;
    }
    function->parameter_count = entry->argument_count;
    function->parameters = entry->arguments;
    tile_type_list results = {0};
    if (scan->kind == LILAC_TOKEN_ARROW) {
        lilac_scanner_next(scan);
        if (!tile_read_function_results(reader, &results)) {
            return false;
        }
    }
    set_results(reader, function, results.list, results.count);
    if (lilac_scanner_accept_word(scan, "attributes")) {
        return tile_read_dictionary(reader, &function->attributes);
    }
    return true;
}

/* The rest of a function: its body, if it has one. */
static bool read_custom_function(tile_reader *reader, lilac_tile_function *function) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_module *module = reader->module;
    uint32_t mark;
    tile_scope_open(reader, &mark);
    lilac_tile_block *entry = tile_block_create(module);
    bool unnamed = false;
    bool good = read_function_header(reader, function, entry, &unnamed);
    if (good && lilac_scanner_is(scan, '{') && unnamed) {
        good = lilac_scanner_expected(scan, "names of the parameters, or no body");
    } else if (good && lilac_scanner_is(scan, '{')) {
        function->body = tile_region_create(module, function);
        good = tile_read_region(reader, function->body, entry);
    }
    tile_scope_close(reader, mark);
    return good;
}

/* ---- generic form ----------------------------------------------------------------------- */

/* () <{…}> ({ region }) {…} : () -> (), the parts that a module and a function have. */
static bool read_generic_tail(tile_reader *reader, lilac_tile_attributes *others) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, ')') || !tile_read_dictionary(reader, others) ||
        !lilac_scanner_expect(scan, ':') || !lilac_scanner_expect(scan, '(') ||
        !lilac_scanner_expect(scan, ')')) {
        return false;
    }
    if (scan->kind != LILAC_TOKEN_ARROW) {
        return lilac_scanner_expected(scan, "'->'");
    }
    lilac_scanner_next(scan);
    return lilac_scanner_expect(scan, '(') && lilac_scanner_expect(scan, ')');
}

static bool read_generic_head(tile_reader *reader, lilac_tile_attributes *inherent) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '(') || !lilac_scanner_expect(scan, ')')) {
        return false;
    }
    if (lilac_scanner_accept(scan, '<') &&
        (!tile_read_dictionary(reader, inherent) || !lilac_scanner_expect(scan, '>'))) {
        return false;
    }
    return lilac_scanner_expect(scan, '(');
}

/* Parameters have the types that the function's type says, and its attributes for each. */
static bool set_parameters(tile_reader *reader, lilac_tile_function *function,
                           const lilac_tile_attribute *inputs,
                           const lilac_tile_attribute *attributes) {
    lilac_tile_module *module = reader->module;
    lilac_tile_block *entry = function->body ? function->body->first : tile_block_create(module);
    for (uint32_t i = 0; !function->body && i < inputs->count; i++) {
        lilac_tile_add_argument(module, entry, inputs->elements[i].type, NULL, 0);
    }
    if (!entry || entry->argument_count != inputs->count ||
        (attributes && attributes->count != inputs->count)) {
        return tile_fail(reader, function->position, "count-mismatch",
                         "function '@%s' does not have %u parameters everywhere", function->name,
                         inputs->count);
    }
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (entry->arguments[i]->type != inputs->elements[i].type) {
            return tile_fail(reader, function->position, "type-mismatch",
                             "parameter %u of '@%s' has type '%s', but '%s' in the function's type",
                             i + 1, function->name,
                             tile_type_text(module, entry->arguments[i]->type),
                             tile_type_text(module, inputs->elements[i].type));
        }
    }
    function->parameter_count = inputs->count;
    function->parameters = entry->arguments;
    function->parameter_attributes =
        lilac_arena_array(module->arena, lilac_tile_attributes, inputs->count);
    for (uint32_t i = 0; attributes && i < inputs->count; i++) {
        const lilac_tile_attribute *own = &attributes->elements[i];
        for (uint32_t k = 0; own->kind == LILAC_TILE_ATTR_DICTIONARY && k < own->count; k++) {
            tile_attribute_append(module->arena, &function->parameter_attributes[i],
                                  &own->elements[k]);
        }
        if (!tile_check_parameter_attributes(reader, &function->parameter_attributes[i],
                                             function->position)) {
            return false;
        }
    }
    return true;
}

/* What the inherent attributes of a function in generic form say. */
static bool use_function_attributes(tile_reader *reader, lilac_tile_function *function,
                                    const lilac_tile_attributes *inherent) {
    const lilac_tile_attribute *name = lilac_tile_find(inherent, "sym_name");
    const lilac_tile_attribute *type = lilac_tile_find(inherent, "function_type");
    const lilac_tile_attribute *arguments = lilac_tile_find(inherent, "arg_attrs");
    lilac_name visibility = lilac_tile_find_text(inherent, "sym_visibility");
    if (!name || name->kind != LILAC_TILE_ATTR_STRING || !type ||
        type->kind != LILAC_TILE_ATTR_FUNCTION ||
        (arguments && arguments->kind != LILAC_TILE_ATTR_ARRAY)) {
        return tile_fail(reader, function->position, "bad-attribute",
                         "'tt.func' needs proper attributes 'sym_name' and 'function_type'");
    }
    if (lilac_tile_find(inherent, "res_attrs")) {
        return tile_fail(reader, function->position, "unsupported-attribute",
                         "attributes of a function's results are not supported");
    }
    function->is_public = !visibility || strcmp(visibility, "public") == 0;
    if (!name_function(reader, function, name->text, function->position) ||
        !set_parameters(reader, function, &type->elements[0], arguments)) {
        return false;
    }
    const lilac_tile_attribute *outputs = &type->elements[1];
    const lilac_tile_type **types =
        lilac_arena_array(reader->scratch, const lilac_tile_type *, outputs->count);
    for (uint32_t i = 0; i < outputs->count; i++) {
        types[i] = outputs->elements[i].type;
    }
    set_results(reader, function, types, outputs->count);
    return true;
}

/* "tt.func"() <{function_type = (types) -> types, sym_name = "f"}> ({ blocks }) {…} : () -> () */
static bool read_generic_function(tile_reader *reader, lilac_tile_function *function) {
    lilac_tile_attributes inherent = {0};
    if (!read_generic_head(reader, &inherent)) {
        return false;
    }
    lilac_tile_region *body = tile_region_create(reader->module, function);
    if (!tile_read_region(reader, body, NULL)) {
        return false;
    }
    if (body->first) {
        function->body = body;
    }
    return read_generic_tail(reader, &function->attributes) &&
           use_function_attributes(reader, function, &inherent);
}

/* ---- functions and modules -------------------------------------------------------------- */

/* Whether the token names this operation, bare or in quotes. */
static bool is_named(const lilac_scanner *scan, const char *name) {
    return (scan->kind == LILAC_TOKEN_WORD || scan->kind == LILAC_TOKEN_STRING) &&
           tile_token_is(scan, name);
}

static bool read_function(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_function *function = lilac_arena_new(reader->module->arena, lilac_tile_function);
    bool generic = scan->kind == LILAC_TOKEN_STRING;
    function->module = reader->module;
    function->position = lilac_scanner_position(scan);
    lilac_scanner_next(scan);
    reader->function = function;
    bool good =
        generic ? read_generic_function(reader, function) : read_custom_function(reader, function);
    reader->function = NULL;
    if (!good || !tile_read_location(reader, &function->location)) {
        return false;
    }
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
        bool good = is_named(scan, "tt.func") && read_function(reader);
        if (good) {
            continue;
        }
        if (lilac_error_count(reader->context) == before && scan->kind != LILAC_TOKEN_ERROR) {
            if (scan->kind == LILAC_TOKEN_WORD || scan->kind == LILAC_TOKEN_STRING) {
                (void)tile_fail(reader, lilac_scanner_position(scan), "unknown-operation",
                                "'%.*s' cannot stand in a module",
                                (int)(scan->word_length > 80 ? 80 : scan->word_length), scan->word);
            } else {
                (void)lilac_scanner_expected(scan, "tt.func");
            }
        }
        reader->bad = true;
        tile_skip_operation(reader, begin);
    }
}

/* "builtin.module"() <{…}> ({ functions }) {…} : () -> () */
static bool read_generic_module(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_tile_attributes *attributes = &reader->module->attributes;
    if (!read_generic_head(reader, attributes) || !lilac_scanner_expect(scan, '{')) {
        return false;
    }
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (strcmp(attributes->list[i].name, "sym_name") == 0 &&
            attributes->list[i].kind == LILAC_TILE_ATTR_STRING) {
            attributes->list[i].kind = LILAC_TILE_ATTR_SYMBOL;
        }
    }
    read_functions(reader);
    return lilac_scanner_expect(scan, '}') && read_generic_tail(reader, attributes) &&
           tile_read_location(reader, &reader->module->location);
}

static bool read_module(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    bool generic = scan->kind == LILAC_TOKEN_STRING;
    lilac_scanner_next(scan);
    if (generic) {
        return read_generic_module(reader);
    }
    if (scan->kind == LILAC_TOKEN_SYMBOL) {
        lilac_tile_attribute name = {.kind = LILAC_TILE_ATTR_SYMBOL,
                                     .name = lilac_intern_string(reader->context, "sym_name"),
                                     .text = tile_token_name(reader)};
        tile_attribute_append(reader->module->arena, &reader->module->attributes, &name);
        lilac_scanner_next(scan);
    }
    if (lilac_scanner_accept_word(scan, "attributes") &&
        !tile_read_dictionary(reader, &reader->module->attributes)) {
        return false;
    }
    if (!lilac_scanner_expect(scan, '{')) {
        return false;
    }
    read_functions(reader);
    return lilac_scanner_expect(scan, '}') && tile_read_location(reader, &reader->module->location);
}

/* #ttg.shared_memory and the like, as in #smem = #ttg.shared_memory. The names that Triton gives
 * them are the only ones there can be. */
static bool read_space_definition(tile_reader *reader, lilac_position position, lilac_name name) {
    bool shared = tile_token_is(&reader->scan, "ttg.shared_memory");
    if (strcmp(name, shared ? "smem" : "tmem") != 0) {
        return tile_fail(reader, position, "memory-space-unknown",
                         "this memory space is called '#%s', not '#%s'", shared ? "smem" : "tmem",
                         name);
    }
    lilac_scanner_next(&reader->scan);
    tile_alias_define(reader->module, name, shared ? "#ttg.shared_memory" : "#ttng.tensor_memory");
    return true;
}

/* #loc3 = loc(…), #blocked = #ttg.blocked<{…}> or #smem = #ttg.shared_memory */
static bool read_definition(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    lilac_name name = tile_token_name(reader);
    uint32_t length = scan->word_length;
    lilac_scanner_next(scan);
    if (!lilac_scanner_expect(scan, '=')) {
        return false;
    }
    if (lilac_scanner_is_word(scan, "loc")) {
        return tile_define_location(reader, name);
    }
    void **known = tile_table_at(&reader->encoding_names, name);
    if (*known) {
        return tile_fail(reader, position, "redefinition", "'#%s' is defined twice", name);
    }
    *known = (void *)(uintptr_t)name;
    if (scan->kind == LILAC_TOKEN_HASH &&
        (tile_token_is(scan, "ttg.shared_memory") || tile_token_is(scan, "ttng.tensor_memory"))) {
        return read_space_definition(reader, position, name);
    }
    if (tile_is_llvm(scan)) {
        return tile_define_llvm(reader, name);
    }
    if (strcmp(name, "smem") == 0 || strcmp(name, "tmem") == 0) {
        return tile_fail(reader, position, "memory-space", "'#%s' is the name of a memory space",
                         name);
    }
    const lilac_encoding *encoding = lilac_encoding_read(scan, &reader->encodings);
    if (!encoding) {
        return false;
    }
    lilac_encoding_define(&reader->encodings, reader->context, name, length, encoding);
    lilac_text text = {0};
    lilac_encoding_print(&text, encoding);
    tile_alias_define(reader->module, name, lilac_text_get(&text));
    lilac_text_clear(&text);
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
        } else if (lilac_scanner_is_word(scan, "module") || is_named(scan, "builtin.module")) {
            if (module) {
                (void)tile_fail(reader, lilac_scanner_position(scan), "redefinition",
                                "a second module in one text");
            }
            module = true;
            good = read_module(reader);
        } else if (is_named(scan, "tt.func")) {
            module = true;
            good = read_function(reader);
        } else {
            good = lilac_scanner_expected(scan, "a module or a definition");
        }
        if (good) {
            continue;
        }
        reader->bad = true;
        if (lilac_error_count(reader->context) == before && scan->kind != LILAC_TOKEN_ERROR) {
            (void)lilac_scanner_expected(scan, "a module or a definition");
        }
        tile_skip_operation(reader, begin);
    }
    if (!module && !reader->bad) {
        (void)lilac_scanner_expected(scan, "a module");
    }
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
    tile_table_clear(&reader.types);
    tile_table_clear(&reader.values);
    tile_table_clear(&reader.functions);
    tile_table_clear(&reader.encoding_names);
    tile_table_clear(&reader.llvm_names);
    tile_table_clear(&reader.locations);
    lilac_heap_free(reader.log);
    lilac_heap_free(reader.labels);
    lilac_arena_destroy(reader.scratch);
    if (good) {
        return reader.module;
    }
    lilac_tile_module_destroy(reader.module);
    return NULL;
}
