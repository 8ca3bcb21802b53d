/* Files and standard streams.
 *
 * Writing: the bytes are written to a new file in the same folder, which is then renamed. A reader
 * therefore sees either the old or the new contents. A terminal, a pipe or a device cannot be
 * replaced; it is written directly.
 */
#define _XOPEN_SOURCE 700 /* realpath, mkstemp, fchmod */

#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_stream(FILE *file, const char *name, lilac_text *contents) {
    char block[1 << 14];
    size_t size;
    while ((size = fread(block, 1, sizeof block, file)) > 0) {
        lilac_text_put(contents, block, size);
    }
    return ferror(file) ? file_error("cannot read %s: %s", name, strerror(errno)) : true;
}

bool file_read(const char *path, lilac_text *contents) {
    if (strcmp(path, "-") == 0) {
        return read_stream(stdin, "standard input", contents);
    }
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return file_error("cannot read %s: %s", path, strerror(errno));
    }
    const bool good = read_stream(file, path, contents);
    fclose(file);
    return good;
}

bool is_same_file(const char *a, const char *b) {
    struct stat first, second;
    return strcmp(a, "-") != 0 && strcmp(b, "-") != 0 && stat(a, &first) == 0 &&
           stat(b, &second) == 0 && S_ISREG(first.st_mode) && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool write_stream(FILE *file, const char *name, const void *bytes, size_t size) {
    if (fwrite(bytes, 1, size, file) != size || fflush(file) != 0) {
        return file_error("cannot write %s: %s", name, strerror(errno));
    }
    return true;
}

static bool write_in_place(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        return file_error("cannot write %s: %s", path, strerror(errno));
    }
    bool good = write_stream(file, path, bytes, size);
    if (fclose(file) != 0 && good) {
        good = file_error("cannot write %s: %s", path, strerror(errno));
    }
    return good;
}

/* The mode of a file that a program makes with no wish of its own. */
static mode_t usual_mode(void) {
    const mode_t mask = umask(0);
    umask(mask);
    return (mode_t)(0666 & ~mask);
}

static bool replace(const char *path, mode_t mode, const void *bytes, size_t size) {
    const size_t length = strlen(path);
    char *temporary = lilac_heap_grow(NULL, length + 8);
    memcpy(temporary, path, length);
    memcpy(temporary + length, ".XXXXXX", 8);
    const int descriptor = mkstemp(temporary);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "wb") : NULL;
    if (file == NULL) {
        file_error("cannot write %s: %s", path, strerror(errno));
        lilac_heap_free(temporary);
        return false;
    }
    bool good = write_stream(file, path, bytes, size);
    good = fchmod(descriptor, mode) == 0 && good;
    good = fclose(file) == 0 && good;
    if (good && rename(temporary, path) != 0) {
        good = file_error("cannot write %s: %s", path, strerror(errno));
    }
    if (!good) {
        unlink(temporary);
    }
    lilac_heap_free(temporary);
    return good;
}

bool file_write(const char *path, const void *bytes, size_t size) {
    struct stat status;
    if (path == NULL || strcmp(path, "-") == 0) {
        return write_stream(stdout, "standard output", bytes, size);
    }
    if (stat(path, &status) != 0) {
        return replace(path, usual_mode(), bytes, size);
    }
    if (!S_ISREG(status.st_mode)) {
        return write_in_place(path, bytes, size);
    }
    char *target = realpath(path, NULL); /* through symbolic links, which stay */
    if (target == NULL) {
        return file_error("cannot write %s: %s", path, strerror(errno));
    }
    const bool good = replace(target, status.st_mode & 0777, bytes, size);
    free(target);
    return good;
}
