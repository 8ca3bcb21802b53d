/* Reading one operation: its results' names, its name, then by its format (read_format.c), by hand
 * (control.c) or in generic form, which all operations have:
 *
 *   %r:2 = "name"(%a, %b)[^successor] <{inherent}> ({ region }, { region }) {others} : (types) ->
 * types
 *
 * What is read becomes a draft; the operation is made from it when all its parts are known. */
#include "internal.h"

#include <string.h>

/* Of one operation. */
enum { MAX_RESULTS = 1024 };

/* "%a:2, %b =" */
static bool read_result_names(tile_reader *reader, tile_result_names *names) {
    lilac_scanner *scan = &reader->scan;
    if (scan->kind != LILAC_TOKEN_VALUE) {
        return true;
    }
    do {
        tile_result_name result = {.position = lilac_scanner_position(scan), .count = 1};
        if (scan->kind != LILAC_TOKEN_VALUE) {
            return lilac_scanner_expected(scan, "a result's name");
        }
        result.name = tile_token_name(reader);
        lilac_scanner_next(scan);
        if (lilac_scanner_accept(scan, ':')) {
            int64_t count;
            lilac_position position = lilac_scanner_position(scan);
            if (!lilac_scanner_integer(scan, &count)) {
                return false;
            }
            if (count < 1 || count > MAX_RESULTS) {
                return tile_fail(reader, position, "count-mismatch",
                                 "a name stands for 1 to %d results", MAX_RESULTS);
            }
            result.count = (uint32_t)count;
        }
        if (names->count == names->capacity) {
            names->capacity = names->capacity ? names->capacity * 2 : 4;
            tile_result_name *list =
                lilac_arena_array(reader->scratch, tile_result_name, names->capacity);
            if (names->count) {
                memcpy(list, names->list, sizeof *list * names->count);
            }
            names->list = list;
        }
        names->list[names->count++] = result;
        names->total += result.count;
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, '=');
}

bool tile_define_results(tile_reader *reader, const tile_result_names *names, lilac_tile_op *op) {
    bool good = true;
    uint32_t first = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        const tile_result_name *name = &names->list[i];
        for (uint32_t k = 0; op && k < name->count; k++) {
            op->results[first + k].name = tile_kept_name(name->name);
        }
        good &= tile_define_value(reader, name->name, name->position,
                                  op ? &op->results[first] : NULL, name->count);
        first += name->count;
    }
    return good;
}

static lilac_tile_opcode find_opcode(tile_reader *reader) {
    lilac_name name = tile_token_name(reader);
    void **known = tile_table_at(&reader->opcodes, name);
    if (!*known) {
        *known = (void *)(uintptr_t)tile_opcode_find(name, reader->scan.word_length);
    }
    return (lilac_tile_opcode)(uintptr_t)*known;
}

/* The words of "#arith.set<words>"; NULL when that is not what it is. */
static lilac_name words_of(tile_reader *reader, const tile_keywords *set, lilac_name text) {
    size_t length = strlen(set->name);
    if (strncmp(text, "#arith.", 7) != 0 || strncmp(text + 7, set->name, length) != 0 ||
        text[7 + length] != '<') {
        return NULL;
    }
    const char *words = text + 7 + length + 1;
    return lilac_intern(reader->context, words, strlen(words) - 1);
}

/* Turns what generic form writes for an attribute into the keywords of custom form, by the format:
 * integers, and lists of flags. */
static bool use_keywords(tile_reader *reader, tile_draft *draft) {
    const char *format = lilac_tile_op_info_get(draft->code)->format;
    if (!draft->attributes.count) {
        return true;
    }
    for (const char *at = format; (at = strchr(at, '@')) != NULL;) {
        size_t length = strcspn(++at, ":");
        const char *kind = at + length + 1;
        const lilac_tile_attribute *found = tile_attribute_find(&draft->attributes, at, length);
        const tile_keywords *set =
            tile_keywords_find(kind, strspn(kind, "abcdefghijklmnopqrstuvwxyz_"));
        if (!found || !set) {
            continue;
        }
        lilac_tile_attribute *attribute = &draft->attributes.list[found - draft->attributes.list];
        if (attribute->kind == LILAC_TILE_ATTR_INTEGER) {
            size_t word_length;
            const char *word = tile_keywords_of(set, attribute->integer, &word_length);
            if (!word) {
                return tile_fail(reader, draft->position, "bad-attribute",
                                 "%lld is no value of attribute '%s'",
                                 (long long)attribute->integer, attribute->name);
            }
            attribute->text = lilac_intern(reader->context, word, word_length);
            attribute->kind = LILAC_TILE_ATTR_KEYWORD;
        } else if (attribute->kind == LILAC_TILE_ATTR_KEYWORD) {
            lilac_name words = words_of(reader, set, attribute->text);
            if (words) {
                attribute->text = words;
            }
        }
        if (set->absent && attribute->kind == LILAC_TILE_ATTR_KEYWORD &&
            strcmp(attribute->text, set->absent) == 0) {
            tile_attribute_remove(&draft->attributes, at, length);
        }
    }
    return true;
}

static bool read_generic_regions(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_accept(scan, '(')) {
        return true;
    }
    do {
        if (draft->region_count == TILE_MOST_REGIONS) {
            return tile_fail(reader, lilac_scanner_position(scan), "count-mismatch",
                             "no operation has more than %d regions", TILE_MOST_REGIONS);
        }
        lilac_tile_region *region = tile_region_create(reader->module, reader->function);
        draft->regions[draft->region_count++] = region;
        if (!tile_read_region(reader, region, NULL)) {
            return false;
        }
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, ')');
}

static bool read_generic_successors(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_accept(scan, '[')) {
        return true;
    }
    do {
        if (scan->kind != LILAC_TOKEN_BLOCK) {
            return lilac_scanner_expected(scan, "a block's name");
        }
        if (draft->successor_count == 2) {
            return tile_fail(reader, lilac_scanner_position(scan), "count-mismatch",
                             "no operation has more than 2 successors");
        }
        draft->successors[draft->successor_count].name = tile_token_name(reader);
        draft->successors[draft->successor_count++].position = lilac_scanner_position(scan);
        lilac_scanner_next(scan);
    } while (lilac_scanner_accept(scan, ','));
    return lilac_scanner_expect(scan, ']');
}

bool tile_read_types_of_operation(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    tile_type_list types = {0};
    if (!lilac_scanner_expect(scan, ':')) {
        return false;
    }
    lilac_position position = lilac_scanner_position(scan);
    if (!tile_read_parenthesized_types(reader, &types)) {
        return false;
    }
    if (types.count != draft->operands.count) {
        return tile_fail(reader, position, "count-mismatch", "%u types for %u operands",
                         types.count, draft->operands.count);
    }
    for (uint32_t i = 0; i < types.count; i++) {
        if (!tile_check_operand(reader, draft, i, types.list[i])) {
            return false;
        }
    }
    if (scan->kind != LILAC_TOKEN_ARROW) {
        return lilac_scanner_expected(scan, "'->'");
    }
    lilac_scanner_next(scan);
    return tile_read_function_results(reader, &draft->results);
}

/* (%a, %b)[^b] <{…}> ({…}) {…} : (types) -> types */
static bool read_generic(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_expect(scan, '(') || !tile_read_operands(reader, &draft->operands) ||
        !lilac_scanner_expect(scan, ')') || !read_generic_successors(reader, draft)) {
        return false;
    }
    if (lilac_scanner_accept(scan, '<') &&
        (!tile_read_dictionary(reader, &draft->attributes) || !lilac_scanner_expect(scan, '>'))) {
        return false;
    }
    if (!read_generic_regions(reader, draft)) {
        return false;
    }
    lilac_tile_attributes more = {0};
    lilac_position position = lilac_scanner_position(scan);
    if (!tile_read_dictionary(reader, &more)) {
        return false;
    }
    for (uint32_t i = 0; i < more.count; i++) {
        if (lilac_tile_find(&draft->attributes, more.list[i].name)) {
            return tile_fail(reader, position, "redefinition", "attribute '%s' is there twice",
                             more.list[i].name);
        }
        tile_attribute_append(reader->module->arena, &draft->attributes, &more.list[i]);
    }
    return tile_read_types_of_operation(reader, draft);
}

/* Loops and conditionals that give nothing are written without their scf.yield. */
static void add_implicit_yields(tile_reader *reader, const tile_draft *draft) {
    for (uint32_t r = 0; r < draft->region_count; r++) {
        lilac_tile_block *block = draft->regions[r]->first;
        while (block && block->next) {
            block = block->next;
        }
        if (!block || (block->last &&
                       lilac_tile_op_info_get(block->last->code)->traits & LILAC_TILE_TERMINATOR)) {
            continue;
        }
        lilac_tile_op *yield =
            lilac_tile_op_create(reader->module, LILAC_TILE_OP_SCF_YIELD, 0, NULL, 0, NULL, 0, 0);
        yield->position = draft->position;
        lilac_tile_append(block, yield);
    }
}

static lilac_tile_op *make_op(tile_reader *reader, const tile_draft *draft) {
    lilac_tile_module *module = reader->module;
    lilac_tile_value *few[16];
    uint32_t count = draft->operands.count;
    lilac_tile_value **values =
        count <= 16 ? few : lilac_arena_array(reader->scratch, lilac_tile_value *, count);
    for (uint32_t i = 0; i < count; i++) {
        values[i] = draft->operands.list[i].value;
    }
    if (draft->implicit_yields) {
        add_implicit_yields(reader, draft);
    }
    lilac_tile_op *op = lilac_tile_op_create(module, draft->code, count, values,
                                             draft->results.count, draft->results.list, 0, 0);
    op->position = draft->position;
    op->attributes = draft->attributes;
    op->region_count = draft->region_count;
    if (op->region_count) {
        op->regions = lilac_arena_array(module->arena, lilac_tile_region *, op->region_count);
    }
    for (uint32_t i = 0; i < op->region_count; i++) {
        op->regions[i] = draft->regions[i];
        op->regions[i]->parent = op;
    }
    op->successor_count = draft->successor_count;
    if (op->successor_count) {
        op->successors = lilac_arena_array(module->arena, lilac_tile_block *, op->successor_count);
    }
    for (uint32_t i = 0; i < op->successor_count; i++) {
        op->successors[i] =
            tile_use_label(reader, draft->successors[i].name, draft->successors[i].position);
        if (!op->successors[i]) {
            return NULL;
        }
    }
    return op;
}

/* The unwritten yields of `op` come from where it comes from: they have its position. */
static void locate_implicit_yields(tile_reader *reader, const lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        for (lilac_tile_block *block = op->regions[r]->first; block; block = block->next) {
            if (block->last && block->last->position.offset == op->position.offset) {
                tile_share_location(reader, &op->location, &block->last->location);
            }
        }
    }
}

/* Suggestions take microseconds, and a text may be full of unknown operations. */
enum { MOST_SUGGESTIONS = 64 };

static bool refuse_operation(tile_reader *reader, lilac_position position) {
    const lilac_scanner *scan = &reader->scan;
    const char *near = lilac_error_count(reader->context) < MOST_SUGGESTIONS
                           ? tile_opcode_nearest(scan->word, scan->word_length)
                           : NULL;
    return tile_fail(reader, position, "unknown-operation", "unknown operation '%.*s'%s%s%s",
                     (int)(scan->word_length > 80 ? 80 : scan->word_length), scan->word,
                     LILAC_DID_YOU_MEAN(near));
}

static bool read_named_op(tile_reader *reader, tile_draft *draft) {
    lilac_scanner *scan = &reader->scan;
    bool generic = scan->kind == LILAC_TOKEN_STRING;
    draft->position = lilac_scanner_position(scan);
    if (!generic && scan->kind != LILAC_TOKEN_WORD) {
        return lilac_scanner_expected(scan, "an operation");
    }
    draft->code = find_opcode(reader);
    if (draft->code == LILAC_TILE_OP_NONE) {
        return refuse_operation(reader, draft->position);
    }
    const lilac_tile_op_info *info = lilac_tile_op_info_get(draft->code);
    lilac_scanner_next(scan);
    if (generic) {
        return read_generic(reader, draft) && use_keywords(reader, draft);
    }
    if (info->traits & LILAC_TILE_GENERIC) {
        return tile_fail(reader, draft->position, "syntax",
                         "'%s' is written in generic form, its name in quotes", info->name);
    }
    if (strcmp(info->format, "own") == 0) {
        return tile_read_custom(reader, draft);
    }
    return tile_read_format(reader, draft) && use_keywords(reader, draft);
}

bool tile_read_op(tile_reader *reader, lilac_tile_block *block, tile_result_names *names) {
    tile_draft draft = {0};
    if (!read_result_names(reader, names) || !read_named_op(reader, &draft)) {
        return false;
    }
    if (draft.results.count > MAX_RESULTS) {
        return tile_fail(reader, draft.position, "count-mismatch", "more than %d results",
                         MAX_RESULTS);
    }
    if (names->total != draft.results.count) {
        return tile_fail(reader, draft.position, "count-mismatch", "'%s' has %u results, not %u",
                         lilac_tile_op_info_get(draft.code)->name, draft.results.count,
                         names->total);
    }
    lilac_tile_op *op = make_op(reader, &draft);
    if (!op) {
        return false;
    }
    if (!tile_read_location(reader, &op->location)) {
        return false;
    }
    if (draft.implicit_yields) {
        locate_implicit_yields(reader, op);
    }
    lilac_tile_append(block, op);
    return tile_define_results(reader, names, op);
}
