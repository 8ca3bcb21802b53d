/* What a context holds; private to the component. */
#ifndef LILAC_BASE_CONTEXT_H
#define LILAC_BASE_CONTEXT_H

#include <lilac/source.h>

typedef struct source_text {
    const char *name;
    const char *bytes;
    size_t length;
    uint32_t *lines; /* offsets of line starts; NULL until asked for */
    uint32_t line_count;
} source_text;

/* Open addressing, power-of-two capacity, index + 1 in each slot (0: empty). */
typedef struct index_table {
    uint32_t *slots;
    uint32_t capacity, count;
} index_table;

typedef struct name_entry {
    const char *text;
    size_t length;
    uint64_t hash;
} name_entry;

struct lilac_context {
    lilac_arena *arena;

    index_table name_index;
    name_entry *names;
    uint32_t name_count, name_capacity;

    source_text *sources; /* sources[0] is nowhere */
    uint32_t source_count, source_capacity;

    index_table location_index;
    lilac_location_info *locations; /* locations[0] is unknown */
    uint64_t *location_hashes;
    uint32_t location_count, location_capacity;

    lilac_diagnostic *first, *last;
    uint32_t recorded, errors;
};

/* The slot for a hash: where `same` says yes, or the first empty one. */
uint32_t *lilac_index_find(index_table *table, uint64_t hash,
                           bool (*same)(void *data, uint32_t index), void *data);
/* Doubles when more than half full; `hash_of` gives the hash of an index. */
void lilac_index_grow(index_table *table, uint64_t (*hash_of)(void *data, uint32_t index),
                      void *data);
void lilac_context_init_locations(lilac_context *context);

#endif
