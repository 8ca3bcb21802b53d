/* Diagnostics that the component `runtime` recorded, for its tests. */
#ifndef RUNTIME_SAID_H
#define RUNTIME_SAID_H

#include <lilac/runtime.h>

#include "support/test.h"

static lilac_context *context;

/* The text of the only recorded error, with its notes. Removes the error from the context. */
static inline const char *said(const char *id) {
    static char text[8192];
    lilac_text printed = {0};
    const lilac_diagnostic *first = lilac_diagnostics(context);
    assert_non_null(first);
    assert_string_equal(first->id, id);
    assert_null(first->next);
    lilac_diagnostic_print(&printed, context, first, false);
    snprintf(text, sizeof text, "%s", lilac_text_get(&printed));
    lilac_text_clear(&printed);
    lilac_diagnostics_reset(context);
    return text;
}

static void assert_says(const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in:\n%s", part, text);
    }
}

static inline void assert_silent(const char *text, const char *part) {
    if (strstr(text, part) != NULL) {
        fail_msg("'%s' is in:\n%s", part, text);
    }
}

static void assert_nothing_said(void) {
    if (lilac_diagnostics(context) != NULL) {
        fail_msg("%s", lilac_diagnostics(context)->message);
    }
}

#endif
