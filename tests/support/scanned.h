/* The harness of the tests of readers: it scans a text and checks the diagnostics of a refusal. */
#ifndef LILAC_TESTS_SCANNED_H
#define LILAC_TESTS_SCANNED_H

#include <lilac/source.h>

#include "support/test.h"

static inline void scan(lilac_scanner *scanner, lilac_context *context, const char *text) {
    lilac_scanner_init(scanner, context, lilac_source_add(context, "test", text, strlen(text)));
}

/* The first diagnostic has this id. */
static inline void expect_id(const lilac_context *context, const char *text, const char *id) {
    assert_non_null(lilac_diagnostics(context));
    if (strcmp(lilac_diagnostics(context)->id, id) != 0) {
        fail_msg("%s: %s, not %s", text, lilac_diagnostics(context)->id, id);
    }
}

/* There is one error, with this id at the place of `at` in the text, or at its end for an empty
 * one. */
static inline void expect_error_at(const lilac_context *context, const char *text, const char *id,
                                   const char *at) {
    assert_int_equal(lilac_error_count(context), 1);
    const lilac_diagnostic *diagnostic = lilac_diagnostics(context);
    const char *place = *at == '\0' ? text + strlen(text) : strstr(text, at);
    assert_non_null(place);
    if (strcmp(diagnostic->id, id) != 0 ||
        diagnostic->position.offset != (uint32_t)(place - text)) {
        fail_msg("%s: %s [%s] at %u", text, diagnostic->message, diagnostic->id,
                 diagnostic->position.offset);
    }
}

#endif
