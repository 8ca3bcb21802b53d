/* ptxas: found, run, and its report read.
 *
 *   PTX text ─▶ folder/kernel.ptx ─▶ ptxas ─▶ folder/kernel.cubin ─▶ bytes
 *                                      └─ a pipe with what it says
 *
 * The folder is new, only its user may enter it, and it goes when ptxas is done, however that
 * went. The program is started with its arguments as they are: no shell sees them.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, posix_spawn, P_tmpdir */

#include "cuda.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static bool refuse(lilac_context *context, const char *id, const char *what, const char *why) {
    lilac_error(context, (lilac_position){0}, 0, id, "%s: %s", what, why);
    return false;
}

/* ---- where it is ------------------------------------------------------------------------- */

static bool is_program(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* folder/ptxas or folder/bin/ptxas, when it is a program; else `path` is empty. */
static bool look_in(lilac_text *path, const char *folder, size_t length, const char *below) {
    lilac_text_reset(path);
    if (length != 0) {
        lilac_text_put(path, folder, length);
        lilac_text_puts(path, below);
        if (is_program(lilac_text_get(path))) {
            return true;
        }
    }
    lilac_text_reset(path);
    return false;
}

static bool look_in_all(lilac_text *path, const char *folders) {
    while (folders != NULL && *folders != '\0') {
        const size_t length = strcspn(folders, ":");
        if (look_in(path, folders, length, "/ptxas")) {
            return true;
        }
        folders += length + (folders[length] == ':');
    }
    return false;
}

bool lilac_ptxas_find(lilac_text *path) {
    const char *named = getenv("LILAC_PTXAS"), *home = getenv("CUDA_HOME");
    if (named != NULL && *named != '\0') {
        return look_in(path, named, strlen(named), "");
    }
    return look_in_all(path, getenv("PATH")) ||
           (home != NULL && look_in(path, home, strlen(home), "/bin/ptxas")) ||
           look_in_all(path, "/usr/local/cuda/bin");
}

/* ---- what it says ------------------------------------------------------------------------ */

/* The number before `words`, which stand at or after `from` on the same line as other such pairs:
 *
 *     ptxas info    : Function properties for softmax
 *         0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
 */
static bool number_before(const char *from, const char *words, uint32_t *value) {
    const char *at = strstr(from, words);
    if (at == NULL) {
        return false;
    }
    while (at > from && isdigit((unsigned char)at[-1])) {
        at--;
    }
    char *end;
    const unsigned long number = strtoul(at, &end, 10);
    *value = (uint32_t)number;
    return end != at;
}

bool lilac_ptxas_spills(const char *log, const char *kernel, uint32_t *stores, uint32_t *loads) {
    static const char title[] = "Function properties for ";
    const size_t length = strlen(kernel);
    for (const char *at = log; (at = strstr(at, title)) != NULL;) {
        at += sizeof title - 1;
        const char *name = at + (*at == '\'' || *at == '"');
        const char after = strncmp(name, kernel, length) == 0 ? name[length] : 'x';
        if (!isalnum((unsigned char)after) && after != '_' && after != '$') {
            return number_before(at, " bytes spill stores", stores) &&
                   number_before(at, " bytes spill loads", loads);
        }
    }
    return false;
}

/* The word after ".target", on a line of its own before any code; empty: none. */
static const char *find_target(const char *ptx, size_t *length) {
    static const char word[] = ".target";
    const char *at = strstr(ptx, word);
    while (at != NULL && at != ptx && at[-1] != '\n') {
        at = strstr(at + 1, word);
    }
    at = at != NULL ? at + sizeof word - 1 : "";
    at += strspn(at, " \t");
    *length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return at;
}

void lilac_ptxas_device(lilac_text *name, const char *ptx, uint32_t capability) {
    size_t length;
    const char *target = find_target(ptx, &length);
    if (capability == 0 || (length != 0 && isalpha((unsigned char)target[length - 1]))) {
        lilac_text_put(name, target, length);
    } else {
        lilac_text_printf(name, "sm_%u", capability);
    }
}

/* ---- running it -------------------------------------------------------------------------- */

/* The names of one run. */
typedef struct ptxas_run {
    lilac_text folder, source, result;
    lilac_text device, device_option, registers_option;
} ptxas_run;

static void run_clear(ptxas_run *run) {
    lilac_text_clear(&run->folder);
    lilac_text_clear(&run->source);
    lilac_text_clear(&run->result);
    lilac_text_clear(&run->device);
    lilac_text_clear(&run->device_option);
    lilac_text_clear(&run->registers_option);
}

static bool make_folder(ptxas_run *run, lilac_context *context) {
    const char *base = getenv("TMPDIR");
    lilac_text_printf(&run->folder, "%s/lilac-XXXXXX",
                      base != NULL && *base != '\0' ? base : P_tmpdir);
    if (mkdtemp(run->folder.bytes) == NULL) {
        return refuse(context, "no-ptxas", lilac_text_get(&run->folder), strerror(errno));
    }
    lilac_text_printf(&run->source, "%s/kernel.ptx", lilac_text_get(&run->folder));
    lilac_text_printf(&run->result, "%s/kernel.cubin", lilac_text_get(&run->folder));
    return true;
}

static void remove_folder(const ptxas_run *run) {
    (void)unlink(lilac_text_get(&run->source));
    (void)unlink(lilac_text_get(&run->result));
    (void)rmdir(lilac_text_get(&run->folder));
}

static bool write_source(const ptxas_run *run, lilac_context *context, const char *ptx) {
    const size_t length = strlen(ptx);
    FILE *file = fopen(lilac_text_get(&run->source), "wb");
    bool good = file != NULL && fwrite(ptx, 1, length, file) == length;
    good = file != NULL && fclose(file) == 0 && good;
    return good || refuse(context, "no-ptxas", lilac_text_get(&run->source), strerror(errno));
}

static bool read_result(const ptxas_run *run, lilac_context *context, lilac_text *cubin) {
    char block[1 << 14];
    size_t size;
    FILE *file = fopen(lilac_text_get(&run->result), "rb");
    if (file == NULL) {
        return refuse(context, "no-ptxas", lilac_text_get(&run->result), strerror(errno));
    }
    while ((size = fread(block, 1, sizeof block, file)) > 0) {
        lilac_text_put(cubin, block, size);
    }
    const bool good = !ferror(file);
    (void)fclose(file);
    return good || refuse(context, "no-ptxas", lilac_text_get(&run->result), "cannot be read");
}

/* Starts the program with its output in the pipe; 0, or an errno. */
static int start(pid_t *child, const char *path, char *const *words, const int pipe_ends[2]) {
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
    }
    if (error == 0) {
        error = posix_spawn(child, path, &actions, NULL, words, environ);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void read_all(int descriptor, lilac_text *text) {
    char block[1 << 12];
    for (;;) {
        const ssize_t size = read(descriptor, block, sizeof block);
        if (size > 0) {
            lilac_text_put(text, block, (size_t)size);
        } else if (size == 0 || errno != EINTR) {
            return;
        }
    }
}

/* Both ends are closed in programs that are started meanwhile. */
static int make_pipe(int ends[2]) {
    if (pipe(ends) != 0) {
        return errno;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return 0;
}

/* Runs it to its end; `log` has what it said. 0 and its wait status, or an errno. */
static int run_program(const char *path, char *const *words, lilac_text *log, int *status) {
    int ends[2];
    pid_t child = 0;
    int error = make_pipe(ends);
    if (error != 0) {
        return error;
    }
    error = start(&child, path, words, ends);
    (void)close(ends[1]);
    if (error == 0) {
        read_all(ends[0], log);
        while (waitpid(child, status, 0) < 0) {
            if (errno != EINTR) {
                error = errno;
                break;
            }
        }
    }
    (void)close(ends[0]);
    return error;
}

/* What became of it: true when it did its work. */
static bool check_result(lilac_context *context, const char *path, int error, int status,
                         const char *log) {
    const lilac_position nowhere = {0};
    if (error != 0) {
        return refuse(context, "no-ptxas", path, strerror(error));
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return true;
    }
    if (WIFSIGNALED(status)) {
        lilac_error(context, nowhere, 0, "ptx-refused", "%s was ended by signal %d", path,
                    WTERMSIG(status));
    } else {
        lilac_error(context, nowhere, 0, "ptx-refused", "%s refused the PTX: exit status %d", path,
                    WEXITSTATUS(status));
    }
    if (*log != '\0') {
        lilac_note(context, nowhere, 0, "it said:\n%s", log);
    }
    return false;
}

static bool run_in_folder(ptxas_run *run, lilac_context *context, const char *path, const char *ptx,
                          const lilac_gpu_load_options *options, lilac_text *cubin,
                          lilac_text *log) {
    char *words[9] = {(char *)path,      (char *)"-v", run->device_option.bytes,
                      run->source.bytes, (char *)"-o", run->result.bytes};
    size_t count = 6;
    if (options != NULL && options->line_info) {
        words[count++] = (char *)"-lineinfo";
    }
    if (options != NULL && options->max_registers != 0) {
        lilac_text_printf(&run->registers_option, "--maxrregcount=%u", options->max_registers);
        words[count++] = run->registers_option.bytes;
    }
    int status = 0;
    if (!write_source(run, context, ptx)) {
        return false;
    }
    const int error = run_program(path, words, log, &status);
    return check_result(context, path, error, status, lilac_text_get(log)) &&
           read_result(run, context, cubin);
}

/* The program to run: what was given, or what is found. */
static bool choose(lilac_text *chosen, lilac_context *context, const char *path) {
    const char *named = getenv("LILAC_PTXAS");
    if (path != NULL) {
        lilac_text_puts(chosen, path);
        return is_program(path) || refuse(context, "no-ptxas", path, "this is no program");
    }
    if (lilac_ptxas_find(chosen)) {
        return true;
    }
    if (named != NULL && *named != '\0') {
        return refuse(context, "no-ptxas", named, "LILAC_PTXAS names no program");
    }
    return refuse(context, "no-ptxas", "ptxas",
                  "not in PATH, nor in CUDA_HOME/bin or /usr/local/cuda/bin; LILAC_PTXAS can name "
                  "it");
}

/* After "release " stand the numbers: Cuda compilation tools, release 12.8, V12.8.93 */
static uint32_t read_release(const char *said) {
    static const char word[] = "release ";
    const char *at = strstr(said, word);
    char *end = NULL;
    if (at == NULL) {
        return 0;
    }
    const unsigned long major = strtoul(at + sizeof word - 1, &end, 10);
    const unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    return major < 1000 && minor < 100 ? (uint32_t)(1000 * major + 10 * minor) : 0;
}

uint32_t lilac_ptxas_version(const char *path) {
    lilac_text found = {0}, said = {0};
    uint32_t version = 0;
    int status = 0;
    if (path != NULL) {
        lilac_text_puts(&found, path);
    } else {
        (void)lilac_ptxas_find(&found);
    }
    if (found.length != 0) {
        char *words[] = {found.bytes, (char *)"--version", NULL};
        const int error = run_program(found.bytes, words, &said, &status);
        version = error == 0 && status == 0 ? read_release(lilac_text_get(&said)) : 0;
    }
    lilac_text_clear(&found);
    lilac_text_clear(&said);
    return version;
}

bool lilac_ptxas_run(lilac_context *context, const char *path, const char *device, const char *ptx,
                     const lilac_gpu_load_options *options, lilac_text *cubin, lilac_text *log) {
    ptxas_run run = {0};
    lilac_text program = {0};
    bool good = choose(&program, context, path) && make_folder(&run, context);
    if (good) {
        if (device != NULL) {
            lilac_text_puts(&run.device, device);
        } else {
            lilac_ptxas_device(&run.device, ptx, 0);
        }
        lilac_text_printf(&run.device_option, "--gpu-name=%s", lilac_text_get(&run.device));
        good = run_in_folder(&run, context, lilac_text_get(&program), ptx, options, cubin, log);
        remove_folder(&run);
    }
    run_clear(&run);
    lilac_text_clear(&program);
    return good;
}
