/* Time to explain a kernel beside the time to compile it, over folders of TTIR and TTGIR files.
 *
 *     explain_time FOLDER…
 *
 * Of each file the least processor time of several repeats: from text to PTX, and from text to the explanation as
 * text. Files that do not compile are left out. The last lines have the largest ratio and how many kernels take more
 * than twice the compile time and 5 ms. */
#define _DEFAULT_SOURCE /* clock_gettime, strdup */

#include <lilac/explain.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REPEATS = 5, MOST_FILES = 4096 };

typedef struct measurement {
    double compile, explain, json; /* seconds */
} measurement;

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;
        *length = bytes != NULL ? fread(bytes, 1, (size_t)size, file) : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static bool compile(const char *path, const char *text, size_t length) {
    lilac_context *context = lilac_context_create();
    lilac_options options;
    lilac_compilation compilation;
    lilac_options_init(&options);
    const bool good = lilac_compile(&compilation, context,
                                    lilac_source_add(context, path, text, length), &options);
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good;
}

static bool explain(const char *path, const char *text, size_t length, bool json) {
    lilac_context *context = lilac_context_create();
    lilac_explain_options options;
    lilac_explain_options_init(&options);
    lilac_explanation *e =
        lilac_explain(context, lilac_source_add(context, path, text, length), &options);
    lilac_text out = {0};
    bool good = e != NULL;
    if (good && json) {
        lilac_explain_json(&out, e);
    } else if (good) {
        good = lilac_explain_text(&out, e, &(lilac_explain_view){.line = 0});
    }
    lilac_text_clear(&out);
    lilac_explanation_destroy(e);
    lilac_context_destroy(context);
    return good;
}

static void least(double *result, double start) {
    const double time = seconds() - start;
    *result = *result == 0 || time < *result ? time : *result;
}

static bool measure(measurement *m, const char *path, const char *text, size_t length) {
    *m = (measurement){0};
    for (uint32_t k = 0; k < REPEATS; k++) {
        double start = seconds();
        if (!compile(path, text, length)) {
            return false;
        }
        least(&m->compile, start);
        start = seconds();
        if (!explain(path, text, length, false)) {
            fprintf(stderr, "%s compiles, but is not explained\n", path);
            exit(1);
        }
        least(&m->explain, start);
        start = seconds();
        (void)explain(path, text, length, true);
        least(&m->json, start);
    }
    return true;
}

static uint32_t list_folder(char **paths, uint32_t count, const char *folder) {
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        fprintf(stderr, "%s is no folder\n", folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL && count < MOST_FILES;) {
        const char *end = strrchr(entry->d_name, '.');
        if (end != NULL && (strcmp(end, ".ttir") == 0 || strcmp(end, ".ttgir") == 0)) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            paths[count++] = strdup(path);
        }
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv) {
    static char *paths[MOST_FILES];
    uint32_t count = 0, kernels = 0, late = 0;
    measurement sum = {0};
    double largest = 0;
    const char *slowest = "";
    for (int i = 1; i < argc; i++) {
        count = list_folder(paths, count, argv[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        measurement m;
        size_t length = 0;
        char *text = read_file(paths[i], &length);
        if (text != NULL && measure(&m, paths[i], text, length)) {
            kernels++;
            sum.compile += m.compile;
            sum.explain += m.explain;
            sum.json += m.json;
            late += m.explain > 2 * m.compile + 5e-3;
            if (m.explain / m.compile > largest) {
                largest = m.explain / m.compile;
                slowest = paths[i];
            }
        }
        free(text);
    }
    printf("%u kernels: compile %.1f ms, explain %.1f ms, as JSON %.1f ms, in all\n", kernels,
           1e3 * sum.compile, 1e3 * sum.explain, 1e3 * sum.json);
    printf("largest ratio %.2f: %s\n", largest, slowest);
    printf("%u kernels take more than twice the compile time and 5 ms\n", late);
    for (uint32_t i = 0; i < count; i++) {
        free(paths[i]);
    }
    return late > 0;
}
