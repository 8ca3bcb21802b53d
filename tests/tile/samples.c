/* Every kernel of the samples and of the corpus, TTIR and TTGIR: what the table of operations has
 * is read, verified, printed and read back to the same text, with locations and without; the rest
 * is refused with the name and the place of an operation that the table lacks. Without locations
 * the text is what MLIR printed, its loc(…) taken out. */
#define _POSIX_C_SOURCE 200809L

#include <lilac/tile.h>

#include <dirent.h>

#include "support/test.h"

static const char *skip_string(const char *at) {
    for (at++; *at && *at != '"'; at++) {
        at += *at == '\\' && at[1];
    }
    return *at ? at + 1 : at;
}

static const char *skip_location(const char *at) {
    int depth = 0;
    do {
        if (*at == '"') {
            at = skip_string(at);
            continue;
        }
        depth += (*at == '(') - (*at == ')');
        at++;
    } while (*at && depth);
    return at;
}

/* The text without its locations: no " loc(…)", no lines of "#loc", and no blanks where one was
 * taken out before a comma, a parenthesis or the end of a line. */
static char *without_locations(const char *text) {
    lilac_text out = {0};
    const char *at = text;
    bool line_begins = true;
    while (*at) {
        if (line_begins && strncmp(at, "#loc", 4) == 0) {
            at += strcspn(at, "\n");
            at += *at == '\n';
            continue;
        }
        line_begins = *at == '\n';
        if (strncmp(at, " loc(", 5) == 0) {
            at = skip_location(at + 4);
        } else if (*at == '"') {
            const char *end = skip_string(at);
            lilac_text_put(&out, at, (size_t)(end - at));
            at = end;
        } else if (*at == ' ' && (at[1] == ',' || at[1] == ')' || at[1] == '\n')) {
            at++;
        } else {
            lilac_text_char(&out, *at++);
        }
    }
    char *copy = strdup(lilac_text_get(&out));
    lilac_text_clear(&out);
    return copy;
}

static bool in_table(const char *name, size_t length) {
    for (int code = LILAC_TILE_OP_NONE + 1; code < LILAC_TILE_OP_COUNT; code++) {
        const char *known = lilac_tile_op_info_get((lilac_tile_opcode)code)->name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) {
            return true;
        }
    }
    return false;
}

/* A refusal is right when its diagnostics all name operations that the table does not have. */
static void check_refusal(lilac_context *context, const char *path) {
    const lilac_diagnostic *d = lilac_diagnostics(context);
    assert_non_null(d);
    for (; d; d = d->next) {
        const char *name = strchr(d->message, '\'');
        size_t length = name ? strcspn(name + 1, "'") : 0;
        bool good = strcmp(d->id, "unknown-operation") == 0 && length > 0 &&
                    d->position.source != 0 && !in_table(name + 1, length);
        if (!good) {
            print_diagnostics(context);
            fail_msg("%s", path);
        }
    }
}

static void check_round_trip(lilac_context *context, const lilac_tile_module *module,
                             const char *path, bool locations) {
    lilac_text first = {0}, second = {0};
    lilac_tile_print(&first, module, locations);
    uint32_t source = lilac_source_add(context, "printed", first.bytes, first.length);
    lilac_tile_module *again = lilac_tile_read(context, source);
    if (!again || !lilac_tile_verify(again, false)) {
        print_diagnostics(context);
        fail_msg("%s does not read back", path);
    }
    lilac_tile_print(&second, again, locations);
    assert_string_equal(first.bytes, second.bytes);
    lilac_tile_module_destroy(again);
    lilac_text_clear(&first);
    lilac_text_clear(&second);
}

typedef struct tally {
    bool layouts; /* every tensor must have one */
    uint32_t files, read, same, refused;
} tally;

static void check_file(tally *counts, const char *path) {
    size_t length = 0;
    char *text = read_file(path, &length);
    if (text == NULL) {
        fail_msg("cannot open %s", path);
    }
    lilac_context *context = lilac_context_create();
    uint32_t source = lilac_source_add(context, path, text, length);
    lilac_tile_module *module = lilac_tile_read(context, source);
    counts->files++;
    if (!module) {
        counts->refused++;
        check_refusal(context, path);
    } else {
        if (!lilac_tile_verify(module, counts->layouts)) {
            print_diagnostics(context);
            fail_msg("%s does not verify", path);
        }
        counts->read++;
        lilac_text printed = {0};
        lilac_tile_print(&printed, module, false);
        char *original = without_locations(text);
        if (strcmp(original, printed.bytes) == 0) {
            counts->same++;
        } else {
            print_message("%s is printed otherwise than MLIR does\n", path);
        }
        free(original);
        lilac_text_clear(&printed);
        check_round_trip(context, module, path, false);
        check_round_trip(context, module, path, true);
    }
    lilac_tile_module_destroy(module);
    lilac_context_destroy(context);
    free(text);
}

static void check_folder(tally *counts, const char *folder, const char *suffix) {
    char path[1024];
    DIR *directory = opendir(folder);
    if (!directory) {
        fail_msg("cannot open %s", folder);
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        size_t length = strlen(entry->d_name), n = strlen(suffix);
        if (length < n || strcmp(entry->d_name + length - n, suffix) != 0) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_file(counts, path);
    }
    closedir(directory);
}

static void all_samples(void **state) {
    (void)state;
    tally counts = {0};
    check_folder(&counts, LILAC_TEST_DATA "/ttir", ".ttir");
    check_folder(&counts, LILAC_TEST_DATA "/corpus", ".ttir");
    print_message("%u files: %u read back to the same text, %u of them are MLIR's text exactly, "
                  "%u refused for an operation that the table lacks\n",
                  counts.files, counts.read, counts.same, counts.refused);
    assert_true(counts.files >= 580);
    assert_int_equal(counts.read + counts.refused, counts.files);
    assert_int_equal(counts.same, counts.read);
}

/* Kernels with layouts, as Triton's own passes leave them, and some written for this test: all of
 * them are read, and all of them come out as MLIR's text. */
static void samples_with_layouts(void **state) {
    (void)state;
    tally counts = {.layouts = true};
    check_folder(&counts, LILAC_TEST_DATA "/corpus", ".ttgir");
    check_folder(&counts, LILAC_TEST_DATA "/ttgir", ".ttgir");
    assert_true(counts.files >= 39);
    assert_int_equal(counts.read, counts.files);
    assert_int_equal(counts.same, counts.files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_samples),
        cmocka_unit_test(samples_with_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
