/* Files for a program without a file system: "-" is standard input and standard output, and nothing
 * else can be read or written. */
#include "command.h"
#include "explain_texts.h"
#include "search.h"

#include <stdio.h>
#include <string.h>

bool file_read(const char *path, lilac_text *contents) {
    char block[1 << 14];
    size_t size;
    if (strcmp(path, "-") != 0) {
        return file_error("cannot read %s: the page has no files", path);
    }
    while ((size = fread(block, 1, sizeof block, stdin)) > 0) {
        lilac_text_put(contents, block, size);
    }
    return ferror(stdin) ? file_error("cannot read standard input") : true;
}

bool is_same_file(const char *a, const char *b) {
    (void)a, (void)b;
    return false;
}

bool file_write(const char *path, const void *bytes, size_t size) {
    if (path != NULL && strcmp(path, "-") != 0) {
        return file_error("cannot write %s: the page has no files", path);
    }
    if (fwrite(bytes, 1, size, stdout) != size || fflush(stdout) != 0) {
        return file_error("cannot write standard output");
    }
    return true;
}

void explain_add_texts(lilac_explanation *explanation) {
    (void)explanation;
}

/* The page has no files: --arg takes numbers only. */
bool npy_read(npy *array, const char *path, lilac_text *why) {
    (void)array;
    lilac_text_printf(why, "the page cannot read %s", path);
    return false;
}

void npy_clear(npy *array) {
    (void)array;
}

/* A search compiles hundreds of kernels, with buffers from files. */
int search_schedules(const search_request *request) {
    (void)request;
    (void)file_error("the page does not search for schedules; the command does");
    return STATUS_USAGE;
}
