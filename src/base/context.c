/* Context: interned names, and the home of sources, locations and diagnostics. */
#include "context.h"

#include <string.h>

uint32_t *lilac_index_find(index_table *table, uint64_t hash,
                           bool (*same)(void *data, uint32_t index), void *data) {
    uint32_t mask = table->capacity - 1;
    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &table->slots[at];
        if (*slot == 0 || same(data, *slot - 1)) {
            return slot;
        }
    }
}

void lilac_index_grow(index_table *table, uint64_t (*hash_of)(void *data, uint32_t index),
                      void *data) {
    if (table->capacity && table->count * 2 < table->capacity) {
        return;
    }
    uint32_t capacity = table->capacity ? table->capacity * 2 : 256;
    uint32_t *slots = lilac_heap_grow(NULL, capacity * sizeof *slots);
    memset(slots, 0, capacity * sizeof *slots);
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] == 0) {
            continue;
        }
        uint32_t at = (uint32_t)hash_of(data, table->slots[i] - 1) & (capacity - 1);
        while (slots[at]) {
            at = (at + 1) & (capacity - 1);
        }
        slots[at] = table->slots[i];
    }
    lilac_heap_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
}

lilac_context *lilac_context_create(void) {
    lilac_context *context = lilac_heap_grow(NULL, sizeof *context);
    *context = (lilac_context){.arena = lilac_arena_create()};
    context->sources = lilac_heap_grow(NULL, 4 * sizeof *context->sources);
    context->source_capacity = 4;
    context->sources[0] = (source_text){.name = "", .bytes = ""};
    context->source_count = 1;
    lilac_context_init_locations(context);
    return context;
}

void lilac_context_destroy(lilac_context *context) {
    if (!context) {
        return;
    }
    lilac_heap_free(context->name_index.slots);
    lilac_heap_free(context->names);
    lilac_heap_free(context->sources);
    lilac_heap_free(context->location_index.slots);
    lilac_heap_free(context->locations);
    lilac_heap_free(context->location_hashes);
    lilac_arena_destroy(context->arena);
    lilac_heap_free(context);
}

lilac_arena *lilac_context_arena(lilac_context *context) {
    return context->arena;
}

typedef struct name_key {
    lilac_context *context;
    const char *bytes;
    size_t length;
    uint64_t hash;
} name_key;

static bool same_name(void *data, uint32_t index) {
    const name_key *key = data;
    const name_entry *entry = &key->context->names[index];
    return entry->hash == key->hash && entry->length == key->length &&
           memcmp(entry->text, key->bytes, key->length) == 0;
}

static uint64_t name_hash(void *data, uint32_t index) {
    return ((lilac_context *)data)->names[index].hash;
}

lilac_name lilac_intern(lilac_context *context, const char *bytes, size_t length) {
    lilac_index_grow(&context->name_index, name_hash, context);
    name_key key = {context, bytes, length, lilac_hash(bytes, length, 1)};
    uint32_t *slot = lilac_index_find(&context->name_index, key.hash, same_name, &key);
    if (*slot == 0) {
        if (context->name_count == context->name_capacity) {
            context->name_capacity = context->name_capacity ? context->name_capacity * 2 : 128;
            context->names =
                lilac_heap_grow(context->names, context->name_capacity * sizeof *context->names);
        }
        context->names[context->name_count] =
            (name_entry){lilac_arena_copy(context->arena, bytes, length), length, key.hash};
        *slot = ++context->name_count;
        context->name_index.count++;
    }
    return context->names[*slot - 1].text;
}

lilac_name lilac_intern_string(lilac_context *context, const char *string) {
    return lilac_intern(context, string, strlen(string));
}
