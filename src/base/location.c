/* Locations: MLIR's loc trees, interned, so that equal places are equal numbers and an operation
 * carries four bytes. */
#include "context.h"

#include <string.h>

typedef struct location_key {
    lilac_context *context;
    const lilac_location_info *info;
    uint64_t hash;
} location_key;

static uint64_t hash_info(const lilac_location_info *info) {
    uint64_t hash = lilac_hash_word((uint64_t)(uintptr_t)info->name, (uint64_t)info->kind);
    hash = lilac_hash_word((uint64_t)info->line << 32 | info->column, hash);
    hash = lilac_hash_word((uint64_t)info->a << 32 | info->b, hash);
    for (uint32_t i = 0; i < info->count; i++) {
        hash = lilac_hash_word(info->list[i], hash);
    }
    return hash;
}

static bool same_location(void *data, uint32_t index) {
    const location_key *key = data;
    if (key->context->location_hashes[index] != key->hash) {
        return false;
    }
    const lilac_location_info *a = &key->context->locations[index], *b = key->info;
    return a->kind == b->kind && a->name == b->name && a->line == b->line &&
           a->column == b->column && a->a == b->a && a->b == b->b && a->count == b->count &&
           (a->count == 0 || memcmp(a->list, b->list, a->count * sizeof *a->list) == 0);
}

static uint64_t location_hash(void *data, uint32_t index) {
    return ((lilac_context *)data)->location_hashes[index];
}

lilac_location lilac_location_get(lilac_context *context, const lilac_location_info *info) {
    lilac_index_grow(&context->location_index, location_hash, context);
    location_key key = {context, info, hash_info(info)};
    uint32_t *slot = lilac_index_find(&context->location_index, key.hash, same_location, &key);
    if (*slot) {
        return *slot - 1;
    }
    if (context->location_count == context->location_capacity) {
        uint32_t capacity = context->location_capacity ? context->location_capacity * 2 : 128;
        context->locations =
            lilac_heap_grow(context->locations, capacity * sizeof *context->locations);
        context->location_hashes =
            lilac_heap_grow(context->location_hashes, capacity * sizeof *context->location_hashes);
        context->location_capacity = capacity;
    }
    lilac_location location = context->location_count++;
    lilac_location_info *kept = &context->locations[location];
    *kept = *info;
    if (info->count) {
        lilac_location *list = lilac_arena_array(context->arena, lilac_location, info->count);
        memcpy(list, info->list, info->count * sizeof *list);
        kept->list = list;
    }
    context->location_hashes[location] = key.hash;
    *slot = location + 1;
    context->location_index.count++;
    return location;
}

void lilac_context_init_locations(lilac_context *context) {
    lilac_location unknown =
        lilac_location_get(context, &(lilac_location_info){.kind = LILAC_LOCATION_UNKNOWN});
    (void)unknown; /* the first is number 0 */
}

const lilac_location_info *lilac_location_look(const lilac_context *context,
                                               lilac_location location) {
    return &context->locations[location < context->location_count ? location : 0];
}

bool lilac_location_file(const lilac_context *context, lilac_location location, lilac_name *file,
                         uint32_t *line, uint32_t *column) {
    /* Children are interned before their parents, so numbers fall and this ends. */
    const lilac_location_info *info = lilac_location_look(context, location);
    switch (info->kind) {
    case LILAC_LOCATION_UNKNOWN:
    case LILAC_LOCATION_TEXT:
        return false;
    case LILAC_LOCATION_FILE:
        *file = info->name;
        *line = info->line;
        *column = info->column;
        return true;
    case LILAC_LOCATION_NAME:
        return info->a < location && lilac_location_file(context, info->a, file, line, column);
    case LILAC_LOCATION_CALLSITE:
        return (info->b < location && lilac_location_file(context, info->b, file, line, column)) ||
               (info->a < location && lilac_location_file(context, info->a, file, line, column));
    case LILAC_LOCATION_FUSED:
        for (uint32_t i = 0; i < info->count; i++) {
            if (info->list[i] < location &&
                lilac_location_file(context, info->list[i], file, line, column)) {
                return true;
            }
        }
        return false;
    }
    return false;
}

lilac_location lilac_location_of_text(lilac_context *context, lilac_position position) {
    if (position.source == 0) {
        return 0;
    }
    return lilac_location_get(context, &(lilac_location_info){.kind = LILAC_LOCATION_TEXT,
                                                              .line = position.source,
                                                              .column = position.offset});
}

bool lilac_location_text(const lilac_context *context, lilac_location location,
                         lilac_position *position) {
    const lilac_location_info *info = lilac_location_look(context, location);
    if (info->kind == LILAC_LOCATION_TEXT) {
        *position = (lilac_position){info->line, info->column};
    }
    return info->kind == LILAC_LOCATION_TEXT;
}
