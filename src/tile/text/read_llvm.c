/* Attributes of the LLVM dialect that loops have:
 *
 *   #loop_licm = #llvm.loop_licm<disable = true, versioningDisable = true>
 *   #loop_annotation = #llvm.loop_annotation<licm = #loop_licm>
 *
 * Whether a loop keeps its invariants is all that lilac uses of them (lilac_tile_keeps_invariants).
 * Any fields are accepted, and printed again. */
#include "internal.h"

#include <string.h>

enum { MAX_DEPTH = 8 };

bool tile_is_llvm(const lilac_scanner *scan) {
    return scan->kind == LILAC_TOKEN_HASH && scan->word_length > 10 &&
           memcmp(scan->word, "llvm.loop_", 10) == 0;
}

static bool read_text(tile_reader *reader, lilac_text *out, uint32_t depth);

static void take_token(lilac_scanner *scan, lilac_text *out) {
    lilac_text_put(out, scan->text + scan->offset, scan->end - scan->offset);
    lilac_scanner_next(scan);
}

/* true, -1, 4 : i32, "text", another attribute */
static bool read_field_value(tile_reader *reader, lilac_text *out, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    if (scan->kind == LILAC_TOKEN_HASH) {
        return read_text(reader, out, depth + 1);
    }
    if (scan->kind == LILAC_TOKEN_STRING || lilac_scanner_is_word(scan, "true") ||
        lilac_scanner_is_word(scan, "false")) {
        take_token(scan, out);
        return true;
    }
    if (lilac_scanner_accept(scan, '-')) {
        lilac_text_char(out, '-');
    }
    if (scan->kind != LILAC_TOKEN_INTEGER) {
        return lilac_scanner_expected(scan, "true, false, a number, a string or an attribute");
    }
    take_token(scan, out);
    if (!lilac_scanner_accept(scan, ':')) {
        return true;
    }
    const lilac_tile_type *type = tile_read_type(reader);
    if (type) {
        lilac_text_puts(out, " : ");
        lilac_tile_print_type(out, type);
    }
    return type != NULL;
}

/* "#llvm.name<field = value, …>" or an alias, whose definition goes to the text. */
static bool read_text(tile_reader *reader, lilac_text *out, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    if (depth > MAX_DEPTH) {
        return tile_fail(reader, position, "nested-too-deep",
                         "attributes are nested too deep here");
    }
    if (!tile_is_llvm(scan)) {
        lilac_name name = tile_token_name(reader),
                   known = tile_table_get(&reader->llvm_names, name);
        if (!known) {
            return tile_fail(reader, position, "undefined-alias", "'#%.60s' is not defined", name);
        }
        lilac_text_puts(out, known);
        lilac_scanner_next(scan);
        return true;
    }
    take_token(scan, out);
    if (!lilac_scanner_accept(scan, '<')) {
        return true;
    }
    const char *before = "<";
    while (!lilac_scanner_is(scan, '>')) {
        if (scan->kind != LILAC_TOKEN_WORD) {
            return lilac_scanner_expected(scan, "a field's name");
        }
        lilac_text_puts(out, before);
        before = ", ";
        take_token(scan, out);
        lilac_text_puts(out, " = ");
        if (!lilac_scanner_expect(scan, '=') || !read_field_value(reader, out, depth)) {
            return false;
        }
        if (!lilac_scanner_accept(scan, ',')) {
            break;
        }
    }
    lilac_text_puts(out, before[0] == '<' ? "<>" : ">");
    return lilac_scanner_expect(scan, '>');
}

bool tile_read_llvm(tile_reader *reader, lilac_tile_attribute *attribute) {
    lilac_text text = {0};
    bool good = read_text(reader, &text, 0);
    if (good) {
        lilac_tile_attribute *whole = lilac_arena_new(reader->module->arena, lilac_tile_attribute);
        whole->kind = LILAC_TILE_ATTR_KEYWORD;
        whole->text = lilac_intern(reader->context, lilac_text_get(&text), text.length);
        attribute->kind = LILAC_TILE_ATTR_LLVM;
        attribute->text = tile_alias_abbreviate(reader->module, whole->text);
        attribute->count = 1;
        attribute->elements = whole;
    }
    lilac_text_clear(&text);
    return good;
}

bool tile_define_llvm(tile_reader *reader, lilac_name name) {
    lilac_text text = {0};
    bool good = read_text(reader, &text, 0);
    if (good) {
        lilac_name whole = lilac_intern(reader->context, lilac_text_get(&text), text.length);
        *tile_table_at(&reader->llvm_names, name) = (void *)(uintptr_t)whole;
        tile_alias_define(reader->module, name, whole);
    }
    lilac_text_clear(&text);
    return good;
}
