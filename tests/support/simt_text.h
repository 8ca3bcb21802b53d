/* Reads kernels from SIMT text and runs them on the simulator. The line of a diagnostic is a
 * line of the text. */
#ifndef LILAC_TESTS_SIMT_TEXT_H
#define LILAC_TESTS_SIMT_TEXT_H

#include <lilac/sim.h>

#include "support/test.h"

typedef struct simt_text {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_simt_kernel *kernel;
    const char *text;
    lilac_sim_buffer buffers[4];
    uint64_t arguments[4];
    lilac_sim_launch launch;
    lilac_sim_counters counters;
} simt_text;

/* Reads a module. Its first kernel is the one that runs. Returns false if the reader refused the
 * text. */
static inline bool simt_text_read(simt_text *t, const char *text) {
    *t = (simt_text){.context = lilac_context_create(), .text = text};
    uint32_t source = lilac_source_add(t->context, "kernel.simt", text, strlen(text));
    t->module = lilac_simt_read(t->context, source);
    if (!t->module) {
        return false;
    }
    t->kernel = t->module->kernels;
    t->launch = (lilac_sim_launch){.kernel = t->kernel,
                                   .grid = {1, 1, 1},
                                   .arguments = t->arguments,
                                   .buffers = t->buffers,
                                   .threads = 1};
    return true;
}

static inline void simt_text_clear(simt_text *t) {
    if (t->module) {
        lilac_simt_module_destroy(t->module);
    }
    lilac_context_destroy(t->context);
}

static inline void simt_text_give(simt_text *t, const char *name, void *bytes, uint64_t size) {
    t->buffers[t->launch.buffer_count++] =
        (lilac_sim_buffer){.name = name, .bytes = bytes, .size = size};
}

/* Runs the kernel. The buffers are its arguments in order. */
static inline bool simt_text_run(simt_text *t) {
    lilac_sim_place(t->buffers, t->launch.buffer_count);
    for (uint32_t k = 0; k < t->launch.buffer_count; k++) {
        t->arguments[k] = t->buffers[k].address;
    }
    t->launch.argument_count = t->launch.buffer_count;
    return lilac_sim_run(t->context, &t->launch, &t->counters);
}

/* Does the line of the text where a diagnostic is, or a note of it, contain `word`? */
static inline bool is_at(const simt_text *t, const lilac_diagnostic *d, const char *word) {
    lilac_position at = d->position;
    if (!at.source && !lilac_location_text(t->context, d->location, &at)) {
        return false;
    }
    const char *line = t->text + at.offset, *end = strchr(line, '\n');
    while (line > t->text && line[-1] != '\n') {
        line--;
    }
    const char *found = strstr(line, word);
    return found && (!end || found < end);
}

/* A diagnostic of this id at a line with `at`, and a note at a line with `other` (NULL: any). */
static inline bool is_reported(const simt_text *t, const char *id, const char *at,
                               const char *other) {
    for (const lilac_diagnostic *d = lilac_diagnostics(t->context); d; d = d->next) {
        if (!d->id || strcmp(d->id, id) != 0 || (at && !is_at(t, d, at))) {
            continue;
        }
        if (!other) {
            return true;
        }
        for (const lilac_diagnostic *n = d->notes; n; n = n->next) {
            if (is_at(t, n, other)) {
                return true;
            }
        }
    }
    return false;
}

/* A copy of the text with the first occurrence of `from` replaced. The caller frees it. */
static inline char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    size_t before = (size_t)(at - text), rest = strlen(at + strlen(from));
    char *result = malloc(before + strlen(to) + rest + 1);
    memcpy(result, text, before);
    strcpy(result + before, to);
    strcpy(result + before + strlen(to), at + strlen(from));
    return result;
}

/* A change of a correct text, and the finding that must be reported then. */
typedef struct mutation {
    const char *from, *to;
    const char *id, *at, *other; /* the lines contain these */
} mutation;

#endif
