/* The header that every C test includes: cmocka, files, diagnostics, random numbers.
 *
 * Each component adds a harness of its own on top of it:
 *
 *   tile_harness.h      reads and verifies TTIR text
 *   engine_harness.h    runs passes on tile IR and finds values by name
 *   lower_harness.h     compiles TTIR text and runs it on the simulator
 *   simt_text.h         reads SIMT text and runs it on the simulator
 *   sim_kernels.h       builds SIMT kernels through the builder and runs them
 *   runtime_harness.h   opens a CUDA driver that needs no GPU
 */
#ifndef LILAC_TESTS_TEST_H
#define LILAC_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lilac/base.h>
#include <lilac/source.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- diagnostics ------------------------------------------------------------------------- */

/* Appends all diagnostics of the context to `text`, as the command prints them. */
static inline void put_diagnostics(lilac_text *text, lilac_context *context) {
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(text, context, d, false);
    }
}

/* Prints all diagnostics of the context to stderr. cmocka cuts its own messages off after about a
 * thousand bytes; stderr has no limit. */
static inline void print_diagnostics(lilac_context *context) {
    lilac_text text = {0};
    put_diagnostics(&text, context);
    fputs(lilac_text_get(&text), stderr);
    lilac_text_clear(&text);
}

/* Prints all diagnostics of the context and fails the test with the message `what`. */
static inline void fail_with_diagnostics(lilac_context *context, const char *what) {
    print_diagnostics(context);
    fail_msg("%s", what);
}

/* ---- files ------------------------------------------------------------------------------- */

/* The bytes of a file, a zero byte after them; NULL if the file cannot be opened. `length` may be
 * NULL. The caller frees the result. */
static inline char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    size_t size = 0, capacity = 1 << 16;
    char *bytes = malloc(capacity);
    assert_non_null(bytes);
    for (size_t n; (n = fread(bytes + size, 1, capacity - size - 1, file)) > 0;) {
        size += n;
        if (capacity - size == 1) {
            capacity *= 2;
            bytes = realloc(bytes, capacity);
            assert_non_null(bytes);
        }
    }
    fclose(file);
    bytes[size] = '\0';
    if (length != NULL) {
        *length = size;
    }
    return bytes;
}

/* The bytes of the file `name` below tests/data. The test fails if the file does not exist. */
static inline char *read_data(const char *name, size_t *length) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", LILAC_TEST_DATA, name);
    char *bytes = read_file(path, length);
    if (bytes == NULL) {
        fail_msg("the file '%s' cannot be opened", path);
    }
    return bytes;
}

/* ---- random numbers ---------------------------------------------------------------------- */

/* A random number in 0 … bound - 1. */
static inline uint32_t random_below(lilac_random *random, uint32_t bound) {
    return (uint32_t)lilac_random_below(random, bound);
}

/* The factor LILAC_TEST_SCALE of the environment: long runs try more random objects. Default: 1. */
static inline uint32_t test_scale(void) {
    const char *scale = getenv("LILAC_TEST_SCALE");
    const unsigned long factor = scale != NULL ? strtoul(scale, NULL, 10) : 1;
    return factor == 0 ? 1 : (uint32_t)factor;
}

/* The number of random objects to try, `count` in a usual run. */
static inline uint32_t scaled(uint32_t count) {
    return count * test_scale();
}

#endif
