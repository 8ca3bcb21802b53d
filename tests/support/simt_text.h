/* Kernels as SIMT text on the simulator: read, verified, launched, and what is reported of them.
 *
 * The place of a diagnostic is named by the text that begins there: expect_finding(r, "shared-race",
 * "ld.shared", "st.shared") wants a warning at an ld.shared with a note at an st.shared. Include after
 * cmocka. */
#ifndef LILAC_TESTS_SIMT_TEXT_H
#define LILAC_TESTS_SIMT_TEXT_H

#include <lilac/sim.h>
#include <stdlib.h>
#include <string.h>

typedef struct text_rig {
    lilac_context *context;
    lilac_simt_module *module;
    lilac_text text;
    uint32_t source;
    lilac_sim_buffer buffers[8];
    uint64_t arguments[8];
    lilac_sim_launch launch;
    lilac_sim_counters counters;
} text_rig;

static inline void text_fail(const text_rig *r, const char *what) {
    lilac_text out = {0};
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next)
        lilac_diagnostic_print(&out, r->context, d, false);
    print_message("%s\n%s", lilac_text_get(&r->text), lilac_text_get(&out));
    lilac_text_clear(&out);
    fail_msg("%s", what);
}

/* Appends lines to the text; a line that contains `without` (NULL: none) is left out. */
static inline void text_add(text_rig *r, const char *lines, const char *without) {
    while (*lines) {
        size_t length = strcspn(lines, "\n") + 1;
        const char *hit = without ? strstr(lines, without) : NULL;
        if (!hit || hit >= lines + length)
            lilac_text_put(&r->text, lines, length);
        lines += length;
    }
}

/* A rig for the kernel with this head ("kernel @k(…) warps 2 ctas 1 shared 1024") and body. */
static inline void text_open(text_rig *r, const char *head, const char *body, const char *without) {
    memset(r, 0, sizeof *r);
    r->context = lilac_context_create();
    lilac_text_printf(&r->text, "simt.module target \"sm_90a\" {\n%s {\n", head);
    text_add(r, body, without);
    lilac_text_puts(&r->text, "return\n}\n}\n");
    r->source = lilac_source_add(r->context, "kernel", r->text.bytes, r->text.length);
    r->module = lilac_simt_read(r->context, r->source);
    if (!r->module || !lilac_simt_verify(r->module))
        text_fail(r, "the kernel is not right");
    r->launch = (lilac_sim_launch){.kernel = r->module->kernels,
                                   .grid = {1, 1, 1},
                                   .arguments = r->arguments,
                                   .argument_count = r->module->kernels->parameter_count,
                                   .buffers = r->buffers,
                                   .threads = 1};
}

/* The next buffer, and the argument of the same number. */
static inline void text_give(text_rig *r, const char *name, void *bytes, uint64_t size) {
    uint32_t k = r->launch.buffer_count++;
    r->buffers[k] = (lilac_sim_buffer){.name = name, .bytes = bytes, .size = size};
    lilac_sim_place(r->buffers, k + 1);
    r->arguments[k] = r->buffers[k].address;
}

static inline bool text_run(text_rig *r) {
    return lilac_sim_run(r->context, &r->launch, &r->counters);
}

static inline bool text_is_at(const text_rig *r, const lilac_diagnostic *d, const char *wanted) {
    lilac_position at = {0, 0};
    if (!d || !lilac_location_text(r->context, d->location, &at) || at.source != r->source)
        return false;
    return strncmp(r->text.bytes + at.offset, wanted, strlen(wanted)) == 0;
}

/* A diagnostic of this id at this text, with a note at the other (NULL: whatever the notes). */
static inline void expect_finding(const text_rig *r, const char *id, const char *at,
                                  const char *other) {
    for (const lilac_diagnostic *d = lilac_diagnostics(r->context); d; d = d->next)
        if (d->id && strcmp(d->id, id) == 0 && text_is_at(r, d, at) &&
            (!other || text_is_at(r, d->notes, other)))
            return;
    print_message("wanted: %s at '%s', '%s'\n", id, at, other ? other : "");
    text_fail(r, "it is not reported");
}

static inline void expect_nothing(const text_rig *r) {
    if (lilac_diagnostics(r->context))
        text_fail(r, "there are diagnostics");
}

static inline void text_close(text_rig *r) {
    lilac_simt_module_destroy(r->module);
    lilac_context_destroy(r->context);
    lilac_text_clear(&r->text);
}

#endif
