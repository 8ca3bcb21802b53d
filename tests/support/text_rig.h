/* Kernels with omitted lines: this header builds their text, runs them on the simulator
 * (simt_text.h) and checks the findings. */
#ifndef LILAC_TESTS_TEXT_RIG_H
#define LILAC_TESTS_TEXT_RIG_H

#include "support/simt_text.h"

typedef struct text_rig {
    simt_text t;
    lilac_text text;
} text_rig;

static inline void text_fail(const text_rig *r, const char *what) {
    fprintf(stderr, "%s\n", lilac_text_get(&r->text));
    fail_with_diagnostics(r->t.context, what);
}

/* Appends lines to the text, except those that contain `without` (NULL: appends all). */
static inline void text_add(text_rig *r, const char *lines, const char *without) {
    while (*lines) {
        size_t length = strcspn(lines, "\n") + 1;
        const char *hit = without ? strstr(lines, without) : NULL;
        if (!hit || hit >= lines + length) {
            lilac_text_put(&r->text, lines, length);
        }
        lines += length;
    }
}

/* A rig for the kernel with this head ("kernel @k(…) warps 2 ctas 1 shared 1024"), the definitions of
 * its values and its body. */
static inline void text_open(text_rig *r, const char *head, const char *values, const char *body,
                             const char *without) {
    *r = (text_rig){.text = {0}};
    lilac_text_printf(&r->text, "simt.module target \"sm_90a\" {\n%s {\n%s", head, values);
    text_add(r, body, without);
    lilac_text_puts(&r->text, "return\n}\n}\n");
    if (!simt_text_read(&r->t, lilac_text_get(&r->text)) || !lilac_simt_verify(r->t.module)) {
        text_fail(r, "the kernel is not right");
    }
}

static inline void expect_finding(const text_rig *r, const char *id, const char *at,
                                  const char *other) {
    if (!is_reported(&r->t, id, at, other)) {
        print_message("wanted: %s at '%s', '%s'\n", id, at, other ? other : "");
        text_fail(r, "it is not reported");
    }
}

static inline void expect_nothing(const text_rig *r) {
    if (lilac_diagnostics(r->t.context)) {
        text_fail(r, "there are diagnostics");
    }
}

static inline void text_close(text_rig *r) {
    simt_text_clear(&r->t);
    lilac_text_clear(&r->text);
}

#endif
