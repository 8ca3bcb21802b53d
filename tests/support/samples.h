/* The sample of Triton's kernels in tests/data/ttir: programs, in the order of the files' names.
 *
 *     sample_list list;
 *     sample_list_open(&list);
 *     for (uint32_t i = 0; i < list.count; i++) {
 *         program p;
 *         if (sample_read(&list, i, &p)) { … }
 *         program_clear(&p);
 *     }
 *     sample_list_close(&list);
 *
 * The environment variable LILAC_TEST_SAMPLE selects those whose names contain it. */
#ifndef LILAC_TESTS_SAMPLES_H
#define LILAC_TESTS_SAMPLES_H

#include "support/random_programs.h"
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 1024, MOST_SAMPLE_NAME = 256 };

typedef struct sample_list {
    char names[MOST_SAMPLES][MOST_SAMPLE_NAME];
    uint32_t count;
    const char *one; /* the selection; NULL: all */
    char *index;     /* the number of warps and of blocks of each */
} sample_list;

static inline int sample_by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static inline void sample_list_open(sample_list *list) {
    DIR *directory = opendir(LILAC_TEST_DATA "/ttir");
    assert_non_null(directory);
    list->count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 5 && length < MOST_SAMPLE_NAME &&
            strcmp(entry->d_name + length - 5, ".ttir") == 0) {
            assert_true(list->count < MOST_SAMPLES);
            memcpy(list->names[list->count++], entry->d_name, length + 1);
        }
    }
    closedir(directory);
    qsort(list->names, list->count, sizeof *list->names, sample_by_name);
    list->one = getenv("LILAC_TEST_SAMPLE");
    list->index = read_data("ttir/index.jsonl", NULL);
}

static inline void sample_list_close(sample_list *list) {
    free(list->index);
}

/* A number of a file, from the index. */
static inline uint32_t sample_number(const sample_list *list, const char *name, const char *key,
                                     uint32_t usual) {
    const char *line = strstr(list->index, name);
    const char *number = line != NULL ? strstr(line, key) : NULL;
    return number != NULL ? (uint32_t)strtoul(number + strlen(key), NULL, 10) : usual;
}

/* Reads sample i, with the seed i + 1. False: it is not selected, or no program. Clear it in any
 * case. */
static inline bool sample_read(const sample_list *list, uint32_t i, program *p) {
    const char *name = list->names[i];
    char path[1024];
    size_t length = 0;
    memset(p, 0, sizeof *p);
    if (list->one != NULL && strstr(name, list->one) == NULL) {
        return false;
    }
    snprintf(path, sizeof path, LILAC_TEST_DATA "/ttir/%s", name);
    char *text = read_file(path, &length);
    assert_non_null(text);
    const bool is_program =
        program_of_text(p, text, length, sample_number(list, name, "\"num_warps\": ", 4), 1 << 16);
    free(text);
    p->blocks = sample_number(list, name, "\"num_ctas\": ", 1);
    p->data_seed = i + 1;
    p->plain_data = true;
    return is_program;
}

#endif
