/* Arena: a list of chunks, each handed out from front to back. A request that does not fit the
 * current chunk opens a new one, twice as large as the last up to a limit, so that small uses stay
 * small and large ones make few system calls. Chunks come zeroed from calloc. */
#include <lilac/base.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 1 << 20 };

typedef struct chunk {
    struct chunk *previous;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} chunk;

struct lilac_arena {
    chunk *current;
    size_t next_size;
    size_t used;
};

static void out_of_memory_default(size_t size) {
    fprintf(stderr, "lilac: out of memory (%zu bytes asked for)\n", size);
    abort();
}

static void (*out_of_memory)(size_t size) = out_of_memory_default;

void lilac_set_out_of_memory(void (*handler)(size_t size)) {
    out_of_memory = handler ? handler : out_of_memory_default;
}

static void *zeroed(size_t size) {
    void *memory = calloc(1, size);
    if (!memory) {
        out_of_memory(size);
        abort(); /* the handler must not return */
    }
    return memory;
}

void *lilac_heap_grow(void *old, size_t size) {
    void *memory = realloc(old, size ? size : 1);
    if (!memory) {
        out_of_memory(size);
        abort();
    }
    return memory;
}

void lilac_heap_free(void *old) {
    free(old);
}

lilac_arena *lilac_arena_create(void) {
    lilac_arena *arena = zeroed(sizeof *arena);
    arena->next_size = FIRST_CHUNK;
    return arena;
}

void lilac_arena_destroy(lilac_arena *arena) {
    if (!arena) {
        return;
    }
    for (chunk *c = arena->current; c;) {
        chunk *previous = c->previous;
        free(c);
        c = previous;
    }
    free(arena);
}

static void open_chunk(lilac_arena *arena, size_t least) {
    size_t size = arena->next_size > least ? arena->next_size : least;
    chunk *c = lilac_heap_grow(NULL, sizeof(chunk) + size);
    c->size = size;
    c->used = 0;
    c->previous = arena->current;
    arena->current = c;
    if (arena->next_size < LARGEST_CHUNK) {
        arena->next_size *= 2;
    }
}

void *lilac_arena_alloc(lilac_arena *arena, size_t size) {
    if (size > SIZE_MAX / 4) {
        out_of_memory(size);
        abort();
    }
    size = (size + (size == 0) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!arena->current || arena->current->size - arena->current->used < size) {
        open_chunk(arena, size);
    }
    chunk *c = arena->current;
    void *memory = c->bytes + c->used;
    c->used += size;
    arena->used += size;
    return memset(memory, 0, size);
}

char *lilac_arena_copy(lilac_arena *arena, const char *bytes, size_t length) {
    char *copy = lilac_arena_alloc(arena, length + 1);
    if (length) {
        memcpy(copy, bytes, length);
    }
    return copy;
}

size_t lilac_arena_used(const lilac_arena *arena) {
    return arena->used;
}
