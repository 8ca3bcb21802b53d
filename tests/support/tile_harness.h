/* TTIR text that must read and verify. */
#ifndef LILAC_TESTS_TILE_HARNESS_H
#define LILAC_TESTS_TILE_HARNESS_H

#include <lilac/tile.h>

#include "support/test.h"

/* The module of the text. The test fails if the reader or the verifier refuses it. */
static inline lilac_tile_module *read_tile(lilac_context *context, const char *text) {
    const uint32_t source = lilac_source_add(context, "test.ttir", text, strlen(text));
    lilac_tile_module *module = lilac_tile_read(context, source);
    if (module == NULL || !lilac_tile_verify(module, false)) {
        fail_with_diagnostics(context, "the module was refused");
    }
    return module;
}

#endif
