/* Memory descriptors and tokens as values: loops, branches, selects and calls pass them on.
 *
 * Each file of tests/data/memory_values has two kernels: @k keeps its tensors in shared memory, and
 * @reference passes the same tensors on as registers. Both run on the simulator for each n that the
 * file lists, and must write the same. */
#include "support/lower_harness.h"

#include <dirent.h>

enum { COUNT = 4096, MOST_BYTES = 1 << 16, LEAST_FILES = 35 };

/* What runs of the compiler: the passes on tile IR or only those that make its regions simple, and
 * the passes on SIMT IR or only the one that removes barriers. */
typedef struct mode {
    const char *name;
    bool tile, simt;
} mode;

static const mode modes[] = {
    {"lowering", false, false}, {"tile passes", true, false}, {"all passes", true, true}};

static void fill(float *values) {
    for (uint32_t i = 0; i < COUNT; i++) {
        values[i] = (float)(i * 2654435761U >> 16 & 7) / 2.0F - 1.5F;
    }
}

static void run_kernel(harness *h, uint32_t number, float *output, int64_t n) {
    static float input[COUNT];
    lilac_simt_kernel *first = h->simt->kernels;
    fill(input);
    memset(output, 0, COUNT * sizeof *output);
    h->simt->kernels = number == 0 ? first : first->next;
    const buffer buffers[] = {{input, sizeof input}, {output, COUNT * sizeof *output}};
    harness_run(h, 1, buffers, 2, &n, 1);
    h->simt->kernels = first;
    if (h->counters.uninitialised_reads != 0 || lilac_diagnostics(h->context) != NULL) {
        harness_print(h);
        fail_msg("the simulator reports something about kernel %u", number);
    }
}

static void compare(const char *name, const char *text, mode how, int64_t n) {
    static float got[COUNT], want[COUNT];
    harness h;
    harness_open(&h, text, 4, how.tile);
    if (how.simt) {
        lilac_run_simt_passes(h.simt);
    }
    assert_non_null(h.simt->kernels->next);
    run_kernel(&h, 1, want, n);
    run_kernel(&h, 0, got, n);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (got[i] != want[i]) {
            print_message("%s\n", lilac_text_get(&h.text));
            fail_msg("%s, %s, n = %lld: element %u is %g, not %g", name, how.name, (long long)n, i,
                     (double)got[i], (double)want[i]);
        }
    }
    harness_close(&h);
}

static char *read_file(const char *name) {
    char path[1024];
    (void)snprintf(path, sizeof path, LILAC_TEST_DATA "/memory_values/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, MOST_BYTES);
    assert_non_null(text);
    size_t size = fread(text, 1, MOST_BYTES - 1, file);
    assert_true(size > 0 && size < MOST_BYTES - 1);
    (void)fclose(file);
    return text;
}

static void files(void **state) {
    (void)state;
    DIR *folder = opendir(LILAC_TEST_DATA "/memory_values");
    assert_non_null(folder);
    uint32_t count = 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (strstr(entry->d_name, ".ttgir") == NULL) {
            continue;
        }
        char *text = read_file(entry->d_name);
        char *at = strstr(text, "// n: ");
        assert_non_null(at);
        at += 6;
        for (char *end; *at != '\n'; at = end) {
            int64_t n = strtoll(at, &end, 10);
            assert_true(end != at);
            for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                compare(entry->d_name, text, modes[i], n);
            }
        }
        free(text);
        count++;
    }
    (void)closedir(folder);
    assert_true(count >= LEAST_FILES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
