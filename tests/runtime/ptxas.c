/* ptxas: the search for it, its arguments, the complete report of its errors, and the removal of
 * temporary files. Most tests run a script instead of ptxas. The last one runs ptxas, if it is
 * installed. */
#define _XOPEN_SOURCE 700 /* setenv, mkdtemp, P_tmpdir */

#include "support/runtime_harness.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const char program[] = ".version 8.6\n.target sm_90a\n.address_size 64\n"
                              ".visible .entry nothing(.param .u64 .ptr .global .align 1 a,\n"
                              " .param .u64 .ptr .global .align 1 b)\n{\n\tret;\n}\n";

/* A folder for a test's programs, and one for what ptxas's runs leave behind. */
static char folder[64], temporary[80];

static int make_folders(void **state) {
    strcpy(folder, P_tmpdir "/lilac-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(temporary, sizeof temporary, "%s/temporary", folder);
    assert_int_equal(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1);
    unsetenv("LILAC_PTXAS");
    unsetenv("CUDA_HOME");
    return begin(state);
}

static int count_files(const char *path, bool remove) {
    DIR *open = opendir(path);
    int count = 0;
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] != '.') {
            char name[512];
            count++;
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            if (remove) {
                (void)unlink(name);
            }
        }
    }
    closedir(open);
    return count;
}

static int remove_folders(void **state) {
    assert_int_equal(count_files(temporary, false), 0); /* whatever happened */
    rmdir(temporary);
    count_files(folder, true);
    rmdir(folder);
    return end(state);
}

/* A script in the test's folder; its path. */
static const char *script(const char *name, const char *body) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s", body);
    fclose(file);
    assert_int_equal(chmod(path, 0700), 0);
    return path;
}

/* What a script wrote into the test's folder. */
static const char *written(const char *name) {
    static char text[4096];
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

/* ---- where it is ------------------------------------------------------------------------- */

static void test_find(void **state) {
    (void)state;
    char before[4096], home[128];
    lilac_text path = {0};
    snprintf(before, sizeof before, "%s", getenv("PATH"));
    /* The variable alone counts, and must name a program. */
    setenv("LILAC_PTXAS", script("mine", "exit 0\n"), 1);
    assert_true(lilac_ptxas_find(&path));
    assert_string_equal(lilac_text_get(&path), getenv("LILAC_PTXAS"));
    setenv("LILAC_PTXAS", folder, 1);
    assert_false(lilac_ptxas_find(&path));
    assert_int_equal(path.length, 0);
    unsetenv("LILAC_PTXAS");
    /* Then the folders of PATH, in order. */
    const char *found = script("ptxas", "exit 0\n");
    char list[256];
    snprintf(list, sizeof list, "/no/such/folder::%s:%s", temporary, folder);
    setenv("PATH", list, 1);
    assert_true(lilac_ptxas_find(&path));
    assert_string_equal(lilac_text_get(&path), found);
    /* Then CUDA_HOME/bin. */
    setenv("PATH", temporary, 1);
    snprintf(home, sizeof home, "%s/bin", temporary);
    assert_int_equal(mkdir(home, 0700), 0);
    snprintf(list, sizeof list, "%s/ptxas", home);
    assert_int_equal(rename(found, list), 0);
    setenv("CUDA_HOME", temporary, 1);
    assert_true(lilac_ptxas_find(&path));
    assert_string_equal(lilac_text_get(&path), list);
    unlink(list);
    rmdir(home);
    setenv("PATH", before, 1);
    lilac_text_clear(&path);
}

static void test_none(void **state) {
    (void)state;
    lilac_text cubin = {0}, log = {0};
    assert_false(lilac_ptxas_run(context, "/no/such/ptxas", NULL, program, NULL, &cubin, &log));
    assert_says(said("no-ptxas"), "/no/such/ptxas: this is no program");
    setenv("LILAC_PTXAS", "/no/such/other", 1);
    assert_false(lilac_ptxas_run(context, NULL, NULL, program, NULL, &cubin, &log));
    assert_says(said("no-ptxas"), "/no/such/other: LILAC_PTXAS names no program");
    /* A program that cannot be started. */
    const char *path = script("broken", "");
    FILE *file = fopen(path, "w");
    fputs("#!/no/such/interpreter\n", file);
    fclose(file);
    assert_false(lilac_ptxas_run(context, path, NULL, program, NULL, &cubin, &log));
    assert_says(said("no-ptxas"), "/broken: No such file or directory");
    /* No place for its files. */
    setenv("TMPDIR", "/no/such/folder", 1);
    path = script("works", "exit 0\n");
    assert_false(lilac_ptxas_run(context, path, NULL, program, NULL, &cubin, &log));
    assert_says(said("no-ptxas"), "/no/such/folder/lilac-");
    assert_int_equal(cubin.length, 0);
}

static void test_version(void **state) {
    (void)state;
    const struct {
        const char *body;
        uint32_t version;
    } rows[] = {{"echo 'Cuda compilation tools, release 12.8, V12.8.93'\n", 12080},
                {"echo one\necho 'x, release 13.0, V13.0.88'\necho three\n", 13000},
                {"echo 'release 12.8'\nexit 1\n", 0},
                {"echo no number\n", 0},
                {"exit 0\n", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(lilac_ptxas_version(script("says", rows[i].body)), rows[i].version);
    }
    assert_int_equal(lilac_ptxas_version("/no/such/ptxas"), 0);
    setenv("LILAC_PTXAS", script("named", "echo release 12.4, V12.4.1\n"), 1);
    assert_int_equal(lilac_ptxas_version(NULL), 12040);
    unsetenv("LILAC_PTXAS");
    machine m = open_machine("");
    const lilac_gpu_load_options options = {.compiler = LILAC_GPU_PTXAS,
                                            .ptxas = script("old", "echo release 12.4\n")};
    assert_int_equal(lilac_gpu_newest_ptx(m.gpu, &options), 84);
    assert_int_equal(lilac_gpu_newest_ptx(m.gpu, NULL), 90); /* the driver is 13.0 */
    close_machine(&m);
}

/* ---- what it gets and gives -------------------------------------------------------------- */

/* Keeps the words it is called with, and copies its source to its result. */
static const char copier[] = "for word in \"$@\"; do echo \"$word\"; done > \"${0%/*}/words\"\n"
                             "ls -ld \"${3%/*}\" > \"${0%/*}/mode\"\n"
                             "echo 'ptxas info    : it works'\n"
                             "echo 'to standard error' >&2\n"
                             "{ printf '\\177ELF'; cat \"$3\"; } > \"$5\"\n";

static void test_run(void **state) {
    (void)state;
    lilac_text cubin = {0}, log = {0};
    const lilac_gpu_load_options options = {.max_registers = 48, .line_info = true};
    const char *path = script("a name; with $(blanks)", copier);
    assert_true(lilac_ptxas_run(context, path, NULL, program, &options, &cubin, &log));
    assert_string_equal(lilac_text_get(&log), "ptxas info    : it works\nto standard error\n");
    assert_memory_equal(lilac_text_get(&cubin), "\177ELF", 4);
    assert_string_equal(lilac_text_get(&cubin) + 4, program);
    const char *words = written("words");
    assert_says(words, "-v\n--gpu-name=sm_90a\n");
    assert_says(words, "/kernel.ptx\n-o\n");
    assert_says(words, "/kernel.cubin\n-lineinfo\n--maxrregcount=48\n");
    assert_says(written("mode"), "drwx------");
    lilac_text_reset(&cubin);
    lilac_text_reset(&log);
    assert_true(lilac_ptxas_run(context, path, "sm_103", program, NULL, &cubin, &log));
    assert_says(written("words"), "--gpu-name=sm_103\n");
    assert_silent(written("words"), "-lineinfo");
    lilac_text_clear(&cubin);
    lilac_text_clear(&log);
}

static void test_refused(void **state) {
    (void)state;
    lilac_text cubin = {0}, log = {0};
    /* The messages are longer than a pipe's buffer. All of them are reported. */
    const char *path = script("refuses", "i=0\nwhile [ $i -lt 3000 ]; do\n"
                                         "echo \"ptxas kernel.ptx, line $i; error\" >&2\n"
                                         "i=$((i + 1))\ndone\nexit 255\n");
    assert_false(lilac_ptxas_run(context, path, NULL, program, NULL, &cubin, &log));
    const lilac_diagnostic *error = lilac_diagnostics(context);
    assert_non_null(error->notes);
    assert_says(error->notes->message, "it said:\nptxas kernel.ptx, line 0; error\n");
    assert_says(error->notes->message, "ptxas kernel.ptx, line 2999; error\n");
    assert_says(said("ptx-refused"), "/refuses refused the PTX: exit status 255");
    lilac_text_reset(&log);
    path = script("dies", "kill -9 $$\n");
    assert_false(lilac_ptxas_run(context, path, NULL, program, NULL, &cubin, &log));
    assert_says(said("ptx-refused"), "/dies was ended by signal 9");
    path = script("idle", "exit 0\n"); /* does not do its work and says nothing */
    assert_false(lilac_ptxas_run(context, path, NULL, program, NULL, &cubin, &log));
    assert_says(said("no-ptxas"), "/kernel.cubin: No such file or directory");
    assert_int_equal(cubin.length, 0);
    lilac_text_clear(&cubin);
    lilac_text_clear(&log);
}

/* ---- kernels loaded through it ----------------------------------------------------------- */

static void test_load(void **state) {
    (void)state;
    machine m = open_machine("");
    const char *path = script("ptxas", copier);
    lilac_gpu_load_options options = {.compiler = LILAC_GPU_PTXAS, .ptxas = path};
    const lilac_gpu_program described = {
        .ptx = program, .name = "nothing", .num_warps = 4, .num_ctas = 1};
    lilac_gpu_kernel *kernel = lilac_gpu_load_program(m.gpu, context, &described, &options);
    assert_nothing_said();
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(kernel);
    assert_says(fake.log(), "  from a cubin\n");
    assert_int_equal(facts->compiler, LILAC_GPU_PTXAS);
    assert_string_equal(facts->ptxas, path);
    assert_says(facts->log, "it works");
    assert_false(facts->spills_known); /* this one did not say */
    const lilac_gpu_launch launch = {.grid = {1, 1, 1}};
    assert_true(lilac_gpu_run(kernel, context, &launch));
    assert_true(lilac_gpu_synchronize(m.gpu, context));
    lilac_gpu_unload(kernel);
    fake.rule("cuModuleLoadDataEx=209");
    assert_null(lilac_gpu_load_program(m.gpu, context, &described, &options));
    assert_says(said("cuda-error"), "/ptxas made of kernel 'nothing' on Fake GPU 0: fake words");
    options.ptxas = script("refuses", "exit 1\n");
    assert_null(lilac_gpu_load_program(m.gpu, context, &described, &options));
    assert_says(said("ptx-refused"), "/refuses refused the PTX");
    options.ptxas = NULL;
    setenv("LILAC_PTXAS", "/no/such/ptxas", 1);
    assert_null(lilac_gpu_load_program(m.gpu, context, &described, &options));
    assert_says(said("no-ptxas"), "LILAC_PTXAS names no program");
    close_machine(&m);
}

/* The device that ptxas is to compile for: that of the PTX where the code is for it alone. */
static void test_device_of_ptx(void **state) {
    (void)state;
    const struct {
        const char *target, *capability, *device;
    } rows[] = {{"sm_90a", "capability=90", "--gpu-name=sm_90a\n"},
                {"sm_90", "capability=103", "--gpu-name=sm_103\n"},
                {"sm_80", "capability=90", "--gpu-name=sm_90\n"},
                {"sm_103f", "capability=103", "--gpu-name=sm_103f\n"}};
    const char *path = script("ptxas", copier);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        machine m = open_machine(rows[i].capability);
        char ptx[512];
        snprintf(
            ptx, sizeof ptx,
            "// no .target here\n.version 8.6\n.target\t%s\n.visible .entry nothing()\n{ret;}\n",
            rows[i].target);
        const lilac_gpu_load_options options = {.compiler = LILAC_GPU_PTXAS, .ptxas = path};
        const lilac_gpu_program described = {
            .ptx = ptx, .name = "nothing", .num_warps = 4, .num_ctas = 1};
        lilac_gpu_unload(lilac_gpu_load_program(m.gpu, context, &described, &options));
        assert_says(written("words"), rows[i].device);
        close_machine(&m);
    }
}

/* ---- a real one -------------------------------------------------------------------------- */

static void test_real(void **state) {
    (void)state;
    lilac_text path = {0}, cubin = {0}, log = {0};
    if (!lilac_ptxas_find(&path)) {
        lilac_text_clear(&path);
        print_message("skipped: there is no ptxas here\n");
        skip();
    }
    assert_true(lilac_ptxas_run(context, NULL, NULL, program, NULL, &cubin, &log));
    assert_memory_equal(lilac_text_get(&cubin), "\177ELF", 4);
    assert_says(lilac_text_get(&log), "Compiling entry function 'nothing' for 'sm_90a'");
    assert_says(lilac_text_get(&log), "0 bytes spill stores");
    lilac_text_reset(&cubin);
    lilac_text_reset(&log);
    assert_false(lilac_ptxas_run(context, NULL, "sm_90a", ".version 8.6\n.target sm_90a\nbogus\n",
                                 NULL, &cubin, &log));
    assert_says(said("ptx-refused"), "line 3;");
    lilac_text_clear(&path);
    lilac_text_clear(&cubin);
    lilac_text_clear(&log);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folders, remove_folders)
    const struct CMUnitTest tests[] = {
        TEST(test_find),    TEST(test_none), TEST(test_version),       TEST(test_run),
        TEST(test_refused), TEST(test_load), TEST(test_device_of_ptx), TEST(test_real),
    };
    return cmocka_run_group_tests_name("runtime_ptxas", tests, find_fake_driver, NULL);
}
