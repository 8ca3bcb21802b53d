/* What the benchmarks of the library have in common: a clock, a count of allocations, and the
 * command around what they measure. */
#ifndef LILAC_BENCH_BENCHMARK_H
#define LILAC_BENCH_BENCHMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct benchmark {
    const char *name;
    const char *check;           /* when --check fails: "when …" */
    bool (*measure)(void);       /* false, and why on standard error: exit status 3 */
    void (*print)(void);         /* a table for people */
    void (*write)(FILE *file);   /* one JSON value */
    bool (*promises_kept)(void); /* for --check */
} benchmark;

/* [--json FILE] [--check]; the program's exit status. */
int benchmark_main(const benchmark *what, int argc, char **argv);

/* Of this thread's own time on a core: what other programs take of a shared machine is not in it.
 */
double benchmark_seconds(void);

void benchmark_sort(double *values, size_t count);

/* Calls of malloc, calloc and realloc since the last reset. The program is linked with --wrap for
 * each of them. */
unsigned long benchmark_allocations(void);
void benchmark_reset_allocations(void);

#endif
