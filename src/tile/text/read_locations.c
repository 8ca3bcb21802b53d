/* Reading locations.
 *
 * Locations may be named before they are defined (MLIR puts most definitions behind the module), so
 * nothing is looked up while operations are read. A definition #loc3 = loc(…) is remembered by its
 * place in the text; a use remembers where the location has to go; when all has been read each use
 * is resolved, and a definition is read the first time that it is needed. */
#include "internal.h"

#include <string.h>

enum { MAX_LOCATION_DEPTH = 200 };

typedef struct tile_location_alias {
    struct tile_location_alias *next;
    uint32_t offset; /* of what is in loc( ) */
    enum { UNREAD, READING, DONE } state;
    lilac_location location;
} location_alias;

struct tile_pending {
    uint32_t offset;  /* of what is in loc( ) */
    lilac_name alias; /* of loc(#alias), or NULL */
    lilac_location *slot;
    struct tile_pending *next;
};

/* From behind a parenthesis to behind the one that closes it. Nothing in between is needed yet, so
 * bytes are looked at and not tokens. */
static bool skip_parenthesized(lilac_scanner *scan) {
    uint32_t depth = 1;
    size_t at = scan->offset;
    for (; at < scan->length && depth; at++) {
        char c = scan->text[at];
        if (c == '"') {
            for (at++; at < scan->length && scan->text[at] != '"' && scan->text[at] != '\n'; at++) {
                at += scan->text[at] == '\\';
            }
        } else if (c == '/' && at + 1 < scan->length && scan->text[at + 1] == '/') {
            while (at < scan->length && scan->text[at] != '\n') {
                at++;
            }
        } else {
            depth += c == '(';
            depth -= c == ')';
        }
    }
    lilac_scanner_seek(scan, (uint32_t)(at < scan->length ? at : scan->length));
    return depth == 0 || lilac_scanner_expected(scan, "')'");
}

bool tile_define_location(tile_reader *reader, lilac_name name) {
    lilac_scanner *scan = &reader->scan;
    lilac_position position = lilac_scanner_position(scan);
    if (!lilac_scanner_expect_word(scan, "loc") || !lilac_scanner_expect(scan, '(')) {
        return false;
    }
    location_alias **slot = (location_alias **)tile_table_at(&reader->locations, name);
    if (*slot) {
        return tile_fail(reader, position, "redefinition", "'#%s' is defined twice", name);
    }
    location_alias *alias = lilac_arena_new(reader->scratch, location_alias);
    alias->offset = scan->offset;
    alias->next = reader->aliases;
    reader->aliases = alias;
    *slot = alias;
    return skip_parenthesized(scan);
}

bool tile_read_location(tile_reader *reader, lilac_location *slot) {
    lilac_scanner *scan = &reader->scan;
    if (!lilac_scanner_accept_word(scan, "loc")) {
        return true;
    }
    if (!lilac_scanner_expect(scan, '(')) {
        return false;
    }
    if (lilac_scanner_accept_word(scan, "unknown")) {
        return lilac_scanner_expect(scan, ')');
    }
    struct tile_pending *use = lilac_arena_new(reader->scratch, struct tile_pending);
    use->offset = scan->offset;
    use->slot = slot;
    *reader->pending_end = use;
    reader->pending_end = &use->next;
    reader->pending_last = use;
    if (scan->kind == LILAC_TOKEN_HASH) {
        use->alias = tile_token_name(reader);
        lilac_scanner_next(scan);
        return lilac_scanner_expect(scan, ')');
    }
    return skip_parenthesized(scan);
}

void tile_share_location(tile_reader *reader, const lilac_location *slot, lilac_location *other) {
    struct tile_pending *last = reader->pending_last;
    if (!last || last->slot != slot) {
        return;
    }
    struct tile_pending *use = lilac_arena_new(reader->scratch, struct tile_pending);
    *use = *last;
    use->slot = other;
    use->next = last->next;
    last->next = use;
    if (reader->pending_end == &last->next) {
        reader->pending_end = &use->next;
    }
}

static bool read_location(tile_reader *reader, lilac_location *location, uint32_t depth);

static bool read_alias(tile_reader *reader, lilac_location *location, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    location_alias *alias = tile_table_get(&reader->locations, tile_token_name(reader));
    lilac_position position = lilac_scanner_position(scan);
    if (!alias) {
        return tile_fail(reader, position, "undefined-alias", "'#%.*s' is not defined",
                         (int)(scan->word_length > 60 ? 60 : scan->word_length), scan->word);
    }
    if (alias->state == READING) {
        return tile_fail(reader, position, "cyclic-location", "this location is inside itself");
    }
    if (alias->state == UNREAD) {
        uint32_t back = scan->offset;
        alias->state = READING;
        lilac_scanner_seek(scan, alias->offset);
        bool good = read_location(reader, &alias->location, depth + 1);
        alias->state = DONE; /* wrong ones are unknown from now on, and reported once */
        if (!good) {
            return false;
        }
        lilac_scanner_seek(scan, back);
    }
    *location = alias->location;
    lilac_scanner_next(scan);
    return true;
}

/* "file":line:column, "name" or "name"(child) */
static bool read_named(tile_reader *reader, lilac_location_info *info, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    info->name = tile_token_name(reader);
    lilac_scanner_next(scan);
    if (lilac_scanner_accept(scan, ':')) {
        int64_t line, column;
        lilac_position position = lilac_scanner_position(scan);
        if (!lilac_scanner_integer(scan, &line) || !lilac_scanner_expect(scan, ':') ||
            !lilac_scanner_integer(scan, &column)) {
            return false;
        }
        if (line < 0 || line > INT32_MAX || column < 0 || column > INT32_MAX) {
            return tile_fail(reader, position, "bad-location", "lines and columns are below 2^31");
        }
        info->kind = LILAC_LOCATION_FILE;
        info->line = (uint32_t)line;
        info->column = (uint32_t)column;
        return true;
    }
    info->kind = LILAC_LOCATION_NAME;
    if (!lilac_scanner_accept(scan, '(')) {
        return true;
    }
    return read_location(reader, &info->a, depth + 1) && lilac_scanner_expect(scan, ')');
}

static bool read_fused(tile_reader *reader, lilac_location_info *info, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    lilac_location list[64];
    info->kind = LILAC_LOCATION_FUSED;
    if (!lilac_scanner_expect(scan, '[')) {
        return false;
    }
    do {
        if (info->count == 64) {
            return tile_fail(reader, lilac_scanner_position(scan), "bad-location",
                             "more than 64 fused locations");
        }
        if (!read_location(reader, &list[info->count++], depth + 1)) {
            return false;
        }
    } while (lilac_scanner_accept(scan, ','));
    lilac_location *copy = lilac_arena_array(reader->scratch, lilac_location, info->count);
    memcpy(copy, list, sizeof *copy * info->count);
    info->list = copy;
    return lilac_scanner_expect(scan, ']');
}

static bool read_location(tile_reader *reader, lilac_location *location, uint32_t depth) {
    lilac_scanner *scan = &reader->scan;
    lilac_location_info info = {0};
    if (depth > MAX_LOCATION_DEPTH) {
        return tile_fail(reader, lilac_scanner_position(scan), "nested-too-deep",
                         "locations are nested too deep here");
    }
    if (scan->kind == LILAC_TOKEN_HASH) {
        return read_alias(reader, location, depth);
    }
    if (scan->kind == LILAC_TOKEN_STRING) {
        if (!read_named(reader, &info, depth)) {
            return false;
        }
    } else if (lilac_scanner_accept_word(scan, "unknown")) {
        *location = 0;
        return true;
    } else if (lilac_scanner_accept_word(scan, "callsite")) {
        info.kind = LILAC_LOCATION_CALLSITE;
        if (!lilac_scanner_expect(scan, '(') || !read_location(reader, &info.a, depth + 1) ||
            !lilac_scanner_expect_word(scan, "at") || !read_location(reader, &info.b, depth + 1) ||
            !lilac_scanner_expect(scan, ')')) {
            return false;
        }
    } else if (lilac_scanner_accept_word(scan, "fused")) {
        if (!read_fused(reader, &info, depth)) {
            return false;
        }
    } else {
        return lilac_scanner_expected(scan, "a location");
    }
    *location = lilac_location_get(reader->context, &info);
    return true;
}

/* Definitions that nothing uses must be right as well. */
static void check_unused(tile_reader *reader) {
    location_alias *previous = NULL;
    for (location_alias *alias = reader->aliases, *next; alias; alias = next) {
        next = alias->next; /* the last comes first: in the order of the text then */
        alias->next = previous;
        previous = alias;
    }
    for (location_alias *alias = previous; alias; alias = alias->next) {
        if (alias->state != UNREAD) {
            continue;
        }
        alias->state = READING;
        lilac_scanner_seek(&reader->scan, alias->offset);
        if (read_location(reader, &alias->location, 1) && !lilac_scanner_is(&reader->scan, ')')) {
            (void)lilac_scanner_expected(&reader->scan, "')'");
        }
        alias->state = DONE;
    }
}

void tile_resolve_locations(tile_reader *reader) {
    lilac_scanner *scan = &reader->scan;
    for (struct tile_pending *use = reader->pending; use; use = use->next) {
        const location_alias *known =
            use->alias ? tile_table_get(&reader->locations, use->alias) : NULL;
        if (known && known->state == DONE) {
            *use->slot = known->location;
            continue;
        }
        lilac_scanner_seek(scan, use->offset);
        if (read_location(reader, use->slot, 0) && !lilac_scanner_is(scan, ')')) {
            (void)lilac_scanner_expected(scan, "')'");
        }
    }
    check_unused(reader);
}
