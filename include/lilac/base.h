/* base: memory, text, names, hashing and random numbers.
 *
 * The lowest component: every other component may include it, and it includes none.
 *
 *   arena      bump allocation; everything an IR owns lives in one arena and goes with it
 *   text       a growable string, the only way the library produces output
 *   names      interned strings: equal text in one context is the same pointer
 *   context    names, sources, locations and diagnostics of one compilation (see source.h)
 *
 * Memory: when the system has none left, the handler given to lilac_set_out_of_memory is called
 * and must not return; the default one prints a line and aborts. No function below returns NULL
 * for lack of memory, so no caller checks.
 *
 * Threads: objects are not shared between threads without the caller's own locking; different
 * contexts and arenas are independent. There is no other global state.
 */
#ifndef LILAC_BASE_H
#define LILAC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define LILAC_BEGIN extern "C" {
#define LILAC_END   }
#else
#define LILAC_BEGIN
#define LILAC_END
#endif

#if defined(__GNUC__)
#define LILAC_API                   __attribute__((visibility("default")))
#define LILAC_PRINTF(string, first) __attribute__((format(printf, string, first)))
#define LILAC_MUST_USE              __attribute__((warn_unused_result))
#else
#define LILAC_API
#define LILAC_PRINTF(string, first)
#define LILAC_MUST_USE
#endif

LILAC_BEGIN

/* ---- arena ------------------------------------------------------------------------------ */

typedef struct lilac_arena lilac_arena;

/* An empty arena; destroy frees all that came from it (NULL: nothing). */
LILAC_API lilac_arena *lilac_arena_create(void);
LILAC_API void lilac_arena_destroy(lilac_arena *arena);

/* `size` bytes aligned for any type, zeroed. Never NULL; size 0 gives a distinct valid pointer. */
LILAC_API void *lilac_arena_alloc(lilac_arena *arena, size_t size);

/* A NUL-terminated copy of the `length` bytes at `bytes`. */
LILAC_API char *lilac_arena_copy(lilac_arena *arena, const char *bytes, size_t length);

/* Bytes handed out so far, rounding included. */
LILAC_API size_t lilac_arena_used(const lilac_arena *arena);

#define lilac_arena_new(arena, type) ((type *)lilac_arena_alloc((arena), sizeof(type)))
#define lilac_arena_array(arena, type, count)                                                      \
    ((type *)lilac_arena_alloc((arena), sizeof(type) * (size_t)(count)))

/* Heap memory for the few objects that outgrow an arena; same promise, never NULL. */
LILAC_API void *lilac_heap_grow(void *old, size_t size);
LILAC_API void lilac_heap_free(void *old);

/* For the whole process, before any thread uses the library; NULL: the default handler again. */
LILAC_API void lilac_set_out_of_memory(void (*handler)(size_t size));

/* ---- text ------------------------------------------------------------------------------- */

/* A growable NUL-terminated string. Zero-initialise it, or lilac_text_init; clear frees. */
typedef struct lilac_text {
    char *bytes; /* NULL while empty */
    size_t length;
    size_t capacity;
} lilac_text;

/* init makes an empty text, clear frees its memory and makes it empty, reset makes it empty and
 * keeps the memory. */
LILAC_API void lilac_text_init(lilac_text *text);
LILAC_API void lilac_text_clear(lilac_text *text);
LILAC_API void lilac_text_reset(lilac_text *text);

/* Append: bytes, a string, a character, a character `count` times, a number in decimal, and what
 * printf would print. */
LILAC_API void lilac_text_put(lilac_text *text, const char *bytes, size_t length);
LILAC_API void lilac_text_puts(lilac_text *text, const char *string);
LILAC_API void lilac_text_char(lilac_text *text, char c);
LILAC_API void lilac_text_repeat(lilac_text *text, char c, size_t count);
LILAC_API void lilac_text_unsigned(lilac_text *text, uint64_t value);
LILAC_API void lilac_text_signed(lilac_text *text, int64_t value);
LILAC_API void lilac_text_printf(lilac_text *text, const char *format, ...) LILAC_PRINTF(2, 3);
LILAC_API void lilac_text_vprintf(lilac_text *text, const char *format, va_list arguments)
    LILAC_PRINTF(2, 0);
/* A JSON string literal, quotes and escapes included. */
LILAC_API void lilac_text_json(lilac_text *text, const char *bytes, size_t length);
/* The contents, never NULL. */
LILAC_API const char *lilac_text_get(const lilac_text *text);

/* ---- suggestions ------------------------------------------------------------------------ */

/* The name nearest to a misspelt one of `length` bytes, by insertions, deletions and replacements;
 * NULL when more than a third of the bytes differ. Cost: length times the length of each name. */
LILAC_API const char *lilac_nearest_name(const char *wanted, size_t length,
                                         const char *const *names, size_t count);
/* Three string arguments for "%s%s%s" at the end of a message: "; did you mean 'NAME'?", or nothing
 * when `near` is NULL. */
#define LILAC_DID_YOU_MEAN(near)                                                                   \
    (near) != NULL ? "; did you mean '" : "", (near) != NULL ? (near) : "",                        \
        (near) != NULL ? "'?" : ""

/* ---- hashing and random numbers --------------------------------------------------------- */

/* 64-bit hash of bytes; the same on every machine. */
LILAC_API uint64_t lilac_hash(const void *bytes, size_t size, uint64_t seed);
LILAC_API uint64_t lilac_hash_word(uint64_t word, uint64_t seed);

/* A small seeded generator (xoshiro256**): tests and tools only, never code generation. */
typedef struct lilac_random {
    uint64_t state[4];
} lilac_random;

/* Every seed, 0 too, gives a good state; equal seeds give equal numbers on every machine. */
LILAC_API void lilac_random_seed(lilac_random *random, uint64_t seed);
LILAC_API uint64_t lilac_random_next(lilac_random *random);
/* Uniform in [0, bound); bound > 0. */
LILAC_API uint64_t lilac_random_below(lilac_random *random, uint64_t bound);

/* ---- context and names ------------------------------------------------------------------ */

typedef struct lilac_context lilac_context;

/* A context with no names, sources or diagnostics; destroy frees all that lives in it (NULL:
 * nothing). */
LILAC_API lilac_context *lilac_context_create(void);
LILAC_API void lilac_context_destroy(lilac_context *context);
/* The arena that lives as long as the context. */
LILAC_API lilac_arena *lilac_context_arena(lilac_context *context);

/* Interned text: within one context two names are equal exactly when the pointers are. */
typedef const char *lilac_name;

/* The name of these bytes (which may hold no NUL), or of a string; lives as long as the context. */
LILAC_API lilac_name lilac_intern(lilac_context *context, const char *bytes, size_t length);
LILAC_API lilac_name lilac_intern_string(lilac_context *context, const char *string);

/* ---- nesting ---------------------------------------------------------------------------- */

/* Regions within regions that every thread may have, and that any thread may have. */
#define LILAC_MIN_NESTING 64
#define LILAC_MAX_NESTING 4096

/* The number of regions that a program may nest when the calling thread reads and compiles it.
 * Readers and passes recur on regions, so it follows from the stack that the thread has left: one
 * region for each 1024 bytes (2048 without optimization, 6144 under a sanitizer), but at least
 * LILAC_MIN_NESTING and at most LILAC_MAX_NESTING. 8 MB of stack allow the most, 512 KB about 440.
 * Deeper programs are refused with the diagnostic nested-too-deep. Costs some microseconds. */
LILAC_API uint32_t lilac_nesting_limit(void);

LILAC_END

#endif
