/* What the benchmarks of the library have in common.
 *
 * Allocations are counted by the linker's --wrap: the program's calls of malloc come to
 * __wrap_malloc here, which counts and hands on to the real one. */
#define _DEFAULT_SOURCE /* clock_gettime */

#include "benchmark.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- counting allocations --------------------------------------------------------------- */

static unsigned long allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size) {
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    allocations++;
    return __real_realloc(old, size);
}

unsigned long benchmark_allocations(void) {
    return allocations;
}

void benchmark_reset_allocations(void) {
    allocations = 0;
}

/* ---- times ------------------------------------------------------------------------------ */

double benchmark_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void benchmark_sort(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare_doubles);
}

/* ---- the command ------------------------------------------------------------------------ */

static bool write_file(const benchmark *what, const char *path) {
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: cannot write %s\n", what->name, path);
        return false;
    }
    what->write(file);
    if (file == stdout) {
        return fflush(file) == 0;
    }
    return fclose(file) == 0;
}

static void usage(const benchmark *what, FILE *file) {
    fprintf(file,
            "usage: %s [--json FILE] [--check]\n"
            "  --json FILE  write the results as data (- for standard output)\n"
            "  --check      exit with 1 %s\n",
            what->name, what->check);
}

int benchmark_main(const benchmark *what, int argc, char **argv) {
    const char *json = NULL;
    bool check = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0 && i + 1 < argc) {
            json = argv[++i];
        } else if (strcmp(argv[i], "--check") == 0) {
            check = true;
        } else {
            bool help = strcmp(argv[i], "--help") == 0;
            usage(what, help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    if (!what->measure()) {
        return 3;
    }
    if (json == NULL || strcmp(json, "-") != 0) {
        what->print();
    }
    if (json != NULL && !write_file(what, json)) {
        return 1;
    }
    return check && !what->promises_kept() ? 1 : 0;
}
