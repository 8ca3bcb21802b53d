/* Feeds a fuzz target the files of the folders given, in the order of their names, without
 * libFuzzer. The target crashes or traps when something is wrong, and so does this program. */
#define _POSIX_C_SOURCE 200809L /* scandir */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* The bytes of a file in memory of exactly its size, so that the sanitizer sees a read past it. */
static uint8_t *contents(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    long length = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        length = ftell(file);
    }
    uint8_t *bytes = length < 0 ? NULL : malloc(length == 0 ? 1 : (size_t)length);
    *size = length < 0 ? 0 : (size_t)length;
    if (bytes != NULL) {
        rewind(file);
        if (fread(bytes, 1, *size, file) != *size) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static int replay(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort), failed = 0;
    if (count <= 0) {
        fprintf(stderr, "%s: no corpus here\n", folder);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        uint8_t *bytes = contents(path, &size);
        if (bytes == NULL) {
            fprintf(stderr, "%s: cannot be read\n", path);
            failed = 1;
        } else {
            fprintf(stderr, "%s\n", path); /* the last line names the file that crashes */
            (void)LLVMFuzzerTestOneInput(bytes, size);
        }
        free(bytes);
        free(entries[i]);
    }
    free(entries);
    printf("%s: %d files\n", folder, count);
    return failed;
}

int main(int argc, char **argv) {
    int failed = argc < 2;
    for (int i = 1; i < argc; i++) {
        failed |= replay(argv[i]);
    }
    return failed;
}
