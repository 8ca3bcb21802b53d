/* Names of values when printing. Values keep the names they have; who has none is numbered; of two
 * that are visible together and have the same name, the later one gets a fresh suffix.
 *
 * The order is MLIR's, so that what MLIR printed comes out with the same numbers: first all values
 * of a region, block after block, then the regions inside, each of which starts from the names and
 * numbers of the region around it and forgets its own at its end.
 */
#include "internal.h"

#include <string.h>

struct tile_namer {
    lilac_context *context;
    tile_table names; /* value → its name; of results that share one, of the first only */
    tile_table used;  /* name → not NULL: visible */
    lilac_name *log;  /* names that became visible, in order */
    uint32_t log_count, log_capacity;
    uint32_t next_number, next_argument, next_suffix;
};

tile_namer *tile_namer_create(lilac_context *context) {
    tile_namer *namer = lilac_heap_grow(NULL, sizeof *namer);
    *namer = (tile_namer){.context = context};
    return namer;
}

void tile_namer_destroy(tile_namer *namer) {
    tile_table_clear(&namer->names);
    tile_table_clear(&namer->used);
    lilac_heap_free(namer->log);
    lilac_heap_free(namer);
}

static bool may_stand(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '$' || c == '-';
}

/* A name that the reader takes: only the letters it knows, no digit first, no hyphen last. */
static lilac_name spelled(tile_namer *namer, lilac_name name) {
    size_t length = strlen(name);
    bool good =
        length > 0 && (name[0] < '0' || name[0] > '9') && name[0] != '-' && name[length - 1] != '-';
    for (size_t i = 0; good && i < length; i++) {
        good = may_stand(name[i]);
    }
    if (good) {
        return name;
    }
    lilac_text text = {0};
    lilac_text_char(&text, '_');
    for (size_t i = 0; i < length; i++) {
        lilac_text_char(&text, may_stand(name[i]) && name[i] != '-' ? name[i] : '_');
    }
    lilac_name copy = lilac_intern(namer->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return copy;
}

static lilac_name numbered(tile_namer *namer, const char *prefix, const char *between,
                           uint32_t number) {
    lilac_text text = {0};
    lilac_text_puts(&text, prefix);
    lilac_text_puts(&text, between);
    lilac_text_unsigned(&text, number);
    lilac_name name = lilac_intern(namer->context, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return name;
}

static void make_visible(tile_namer *namer, lilac_name name) {
    *tile_table_at(&namer->used, name) = namer;
    if (namer->log_count == namer->log_capacity) {
        namer->log_capacity = namer->log_capacity ? namer->log_capacity * 2 : 128;
        namer->log = lilac_heap_grow(namer->log, sizeof *namer->log * namer->log_capacity);
    }
    namer->log[namer->log_count++] = name;
}

static void set_name(tile_namer *namer, const lilac_tile_value *value, bool entry_argument) {
    lilac_name name = value->name;
    if (name && strspn(name, "0123456789") == strlen(name)) {
        name = NULL;
    }
    if (!name && !entry_argument) {
        /* Numbers are never the name of anything else. */
        *tile_table_at(&namer->names, value) =
            (void *)(uintptr_t)numbered(namer, "", "", namer->next_number++);
        return;
    }
    if (name) {
        name = spelled(namer, name);
    } else {
        name = numbered(namer, "arg", "", namer->next_argument++);
    }
    lilac_name fresh = name;
    while (tile_table_get(&namer->used, fresh)) {
        fresh = numbered(namer, name, "_", namer->next_suffix++);
    }
    make_visible(namer, fresh);
    *tile_table_at(&namer->names, value) = (void *)(uintptr_t)fresh;
}

uint32_t tile_result_pack(const lilac_tile_op *op, uint32_t index) {
    uint32_t end = index + 1;
    while (end < op->result_count && op->results[end].name == op->results[index].name) {
        end++;
    }
    return end - index;
}

static void name_results(tile_namer *namer, const lilac_tile_op *op) {
    for (uint32_t i = 0; i < op->result_count; i += tile_result_pack(op, i)) {
        set_name(namer, &op->results[i], false);
    }
}

static void name_region(tile_namer *namer, const lilac_tile_region *region);

static void name_inside(tile_namer *namer, const lilac_tile_op *op) {
    for (uint32_t r = 0; r < op->region_count; r++) {
        tile_namer saved = *namer;
        name_region(namer, op->regions[r]);
        while (namer->log_count > saved.log_count) {
            *tile_table_at(&namer->used, namer->log[--namer->log_count]) = NULL;
        }
        namer->next_number = saved.next_number;
        namer->next_argument = saved.next_argument;
        namer->next_suffix = saved.next_suffix;
    }
}

static void name_region(tile_namer *namer, const lilac_tile_region *region) {
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        for (uint32_t i = 0; i < block->argument_count; i++) {
            set_name(namer, block->arguments[i], block == region->first);
        }
        for (const lilac_tile_op *op = block->first; op; op = op->next) {
            name_results(namer, op);
        }
    }
    for (const lilac_tile_block *block = region->first; block; block = block->next) {
        for (const lilac_tile_op *op = block->first; op; op = op->next) {
            if (op->region_count) {
                name_inside(namer, op);
            }
        }
    }
}

void tile_namer_function(tile_namer *namer, const lilac_tile_function *function) {
    while (namer->log_count) {
        *tile_table_at(&namer->used, namer->log[--namer->log_count]) = NULL;
    }
    namer->next_number = 0;
    namer->next_argument = 0;
    namer->next_suffix = 0;
    if (function->body) {
        name_region(namer, function->body);
    }
}

void tile_namer_op(tile_namer *namer, const lilac_tile_op *op) {
    name_results(namer, op);
    name_inside(namer, op);
}

const char *tile_namer_get(const tile_namer *namer, const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    uint32_t first = value->index;
    while (op && first > 0 && op->results[first - 1].name == value->name) {
        first--;
    }
    const char *name = tile_table_get(&namer->names, op ? &op->results[first] : value);
    return name ? name : value->name ? value->name : "?";
}
