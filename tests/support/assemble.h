/* Assembles the PTX of tests with ptxas, if it is installed. The including file must define
 * _POSIX_C_SOURCE for mkstemp and popen. */
#ifndef LILAC_TESTS_ASSEMBLE_H
#define LILAC_TESTS_ASSEMBLE_H

#include <unistd.h>

#include "support/test.h"

static inline const char *find_ptxas(void) {
    static const char *const places[] = {"ptxas", "/usr/local/cuda/bin/ptxas"};
    for (size_t k = 0; k < 2; k++) {
        char command[128];
        snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", places[k]);
        if (system(command) == 0) {
            return places[k];
        }
    }
    return NULL;
}

/* Assembles the text and discards the messages of ptxas. */
static inline bool quietly_assembles(const char *ptxas, const char *device, const char *ptx) {
    char path[] = "lilac-ptx-XXXXXX", command[256];
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "w");
    assert_non_null(file);
    fputs(ptx, file);
    fclose(file);
    snprintf(command, sizeof command, "%s -arch=%s -o /dev/null %s >/dev/null 2>&1", ptxas, device,
             path);
    const int status = system(command);
    remove(path);
    return status == 0;
}

/* Assembles the text with -v. All messages of ptxas go to `log`. */
static inline bool assembles_with_log(const char *ptxas, const char *device, const char *ptx,
                                      char *log, size_t size) {
    char path[] = "lilac-ptx-XXXXXX", command[256];
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "w");
    assert_non_null(file);
    fputs(ptx, file);
    fclose(file);
    snprintf(command, sizeof command, "%s -v -arch=%s -o /dev/null %s 2>&1", ptxas, device, path);
    FILE *said = popen(command, "r");
    assert_non_null(said);
    size_t length = fread(log, 1, size - 1, said);
    log[length] = 0;
    char rest[512];
    while (fread(rest, 1, sizeof rest, said) > 0) { /* empties the pipe */
        ;
    }
    const int status = pclose(said);
    remove(path);
    return status == 0;
}

/* Assembles the text. Prints errors and warnings of ptxas with the line that they name. */
static inline bool assembles(const char *ptxas, const char *device, const char *ptx,
                             const char *flags) {
    char path[] = "lilac-ptx-XXXXXX";
    int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "w");
    assert_non_null(file);
    fputs(ptx, file);
    fclose(file);
    char command[256], line[512];
    snprintf(command, sizeof command, "%s -arch=%s %s -o /dev/null %s 2>&1", ptxas, device, flags,
             path);
    FILE *said = popen(command, "r");
    assert_non_null(said);
    bool content = true;
    while (fgets(line, sizeof line, said)) {
        if (strstr(line, "error") || strstr(line, "warning") || strstr(line, "fatal")) {
            unsigned number = 0;
            const char *at = strstr(line, "line ");
            print_error("%s: %s", device, line);
            if (at && sscanf(at, "line %u", &number) == 1) {
                const char *text = ptx;
                for (unsigned k = 1; k < number && text; k++) {
                    text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
                }
                if (text) {
                    print_error("    %.*s\n", (int)strcspn(text, "\n"), text);
                }
            }
            content = false;
        }
    }
    int status = pclose(said);
    remove(path);
    return content && status == 0;
}

#endif
