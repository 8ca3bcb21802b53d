/* lilac explore: a kernel as one HTML page that needs neither a server nor a network.
 *
 *   page       the explorer, built by `make explorer`: a file with the place KERNEL_PLACE for a kernel
 *   kernel     one JSON value: the source, the tile IR and the PTX with their locations, the metadata, and the
 *              texts of the files that locations name, where they can be read
 *
 *   {"name": "softmax.ttir", "text": …, "options": {"device": "", "warps": 8, "stages": ""},
 *    "tile": …, "ptx": …, "metadata": {…}, "sources": {"kernels.py": "…"}}
 */
#define _POSIX_C_SOURCE 200809L /* stat, readlink */

#include "command.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char KERNEL_PLACE[] = "<script type=\"application/json\" id=\"kernel\">null</script>";

typedef struct explore_job {
    string_list operands;
    target_options target;
    const char *output, *page, *kernel;
    bool json;
} explore_job;

/* ---- the page ----------------------------------------------------------------------------- */

static bool is_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* A path relative to the folder of this program. False: that folder is not known. */
static bool path_beside_program(lilac_text *path, const char *relative) {
    char program[4096];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0) {
        return false;
    }
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    lilac_text_put(path, program, slash == NULL ? 0 : (size_t)(slash - program));
    lilac_text_printf(path, "/%s", relative);
    return true;
}

/* The page that was built or installed with this program. */
static bool find_page(lilac_text *path) {
    static const char *const places[] = {LILAC_EXPLORER_INSTALLED, LILAC_EXPLORER_BUILT};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        lilac_text_reset(path);
        if (path_beside_program(path, places[i]) && is_file(lilac_text_get(path))) {
            return true;
        }
    }
    return file_error(
        "the explorer's page is not built; `make explorer` builds it (with clang, lld and "
        "wasi-libc), `make install` installs it, --page names another place");
}

/* ---- the kernel --------------------------------------------------------------------------- */

static void put_string(lilac_text *out, const char *key, const char *bytes, size_t length) {
    lilac_text_printf(out, ", \"%s\": ", key);
    lilac_text_json(out, bytes, length);
}

static void put_number(lilac_text *out, const char *key, uint32_t number) {
    if (number == OPTION_NOT_GIVEN) {
        lilac_text_printf(out, "\"%s\": \"\"", key);
    } else {
        lilac_text_printf(out, "\"%s\": %u", key, number);
    }
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The file of the first kernel's location, if it exists: as it is named, or beside the kernel's
 * file. */
static void put_sources(lilac_text *out, const explore_job *job,
                        const lilac_compilation *compilation) {
    lilac_name name;
    uint32_t line, column;
    lilac_text path, contents;
    lilac_text_init(&path);
    lilac_text_init(&contents);
    lilac_text_puts(out, ", \"sources\": {");
    const lilac_tile_function *function = compilation->tile->functions;
    while (function != NULL && (!function->is_public || function->body == NULL)) {
        function = function->next;
    }
    if (function != NULL &&
        lilac_location_file(compilation->context, function->location, &name, &line, &column)) {
        const char *file = job->operands.list[0];
        const char *slash = strrchr(file, '/');
        lilac_text_puts(&path, name);
        if (!is_file(name) && name[0] != '/') {
            lilac_text_reset(&path);
            lilac_text_put(&path, file, slash == NULL ? 0 : (size_t)(slash + 1 - file));
            lilac_text_puts(&path, name);
        }
        if (is_file(lilac_text_get(&path)) && file_read(lilac_text_get(&path), &contents)) {
            const char *base = base_name(name);
            lilac_text_json(out, base, strlen(base));
            lilac_text_puts(out, ": ");
            lilac_text_json(out, lilac_text_get(&contents), contents.length);
        }
    }
    lilac_text_char(out, '}');
    lilac_text_clear(&path);
    lilac_text_clear(&contents);
}

static void put_kernel(lilac_text *out, const explore_job *job, const lilac_text *source,
                       const lilac_options *options, lilac_compilation *compilation) {
    const char *name = base_name(job->operands.list[0]);
    const char *device = job->target.target == NULL ? "" : job->target.target;
    lilac_text tile;
    lilac_text_init(&tile);
    lilac_text_puts(out, "{\"name\": ");
    lilac_text_json(out, name, strlen(name));
    put_string(out, "text", lilac_text_get(source), source->length);
    lilac_text_puts(out, ", \"options\": {\"device\": ");
    lilac_text_json(out, device, strlen(device));
    lilac_text_puts(out, ", ");
    put_number(out, "warps", job->target.num_warps);
    lilac_text_puts(out, ", ");
    put_number(out, "stages", job->target.num_stages);
    lilac_text_puts(out, "}, \"metadata\": ");
    lilac_compilation_json(out, compilation, options);
    put_sources(out, job, compilation);
    put_string(out, "ptx", lilac_text_get(&compilation->ptx), compilation->ptx.length);
    lilac_tile_print(&tile, compilation->tile, true);
    put_string(out, "tile", lilac_text_get(&tile), tile.length);
    lilac_text_char(out, '}');
    lilac_text_clear(&tile);
}

/* Puts the kernel into the page. In JSON, "</" may be written "<\/", which does not end a script.
 * */
static bool put_page(lilac_text *out, const lilac_text *page, const char *path,
                     const lilac_text *kernel) {
    const char *text = lilac_text_get(page), *place = strstr(text, KERNEL_PLACE);
    if (place == NULL) {
        return file_error("%s is not the explorer's page: it has no place for a kernel", path);
    }
    const char *json = lilac_text_get(kernel);
    const size_t head = strlen("<script type=\"application/json\" id=\"kernel\">");
    const char *start = place + head, *rest = start + strlen("null");
    lilac_text_put(out, text, (size_t)(start - text));
    for (const char *end; (end = strstr(json, "</")) != NULL; json = end + 2) {
        lilac_text_put(out, json, (size_t)(end - json));
        lilac_text_puts(out, "<\\/");
    }
    lilac_text_puts(out, json);
    lilac_text_puts(out, rest);
    return true;
}

/* ---- the command line --------------------------------------------------------------------- */

static bool write_answer(const explore_job *job, const lilac_text *kernel) {
    lilac_text path, page, out;
    if (job->json) {
        return file_write(job->output, lilac_text_get(kernel), kernel->length);
    }
    lilac_text_init(&path);
    lilac_text_init(&page);
    lilac_text_init(&out);
    if (job->page != NULL) {
        lilac_text_puts(&path, job->page);
    }
    bool good = job->page != NULL || find_page(&path);
    good = good && file_read(lilac_text_get(&path), &page) &&
           put_page(&out, &page, lilac_text_get(&path), kernel) &&
           file_write(job->output, lilac_text_get(&out), out.length);
    lilac_text_clear(&path);
    lilac_text_clear(&page);
    lilac_text_clear(&out);
    return good;
}

static int explore(const explore_job *job, const lilac_options *options) {
    lilac_context *context = lilac_context_create();
    lilac_compilation compilation = {0};
    lilac_text source, kernel;
    lilac_text_init(&source);
    lilac_text_init(&kernel);
    const char *file = job->operands.list[0];
    bool good = file_read(file, &source);
    if (good) {
        const uint32_t number = lilac_source_add(context, strcmp(file, "-") == 0 ? "<stdin>" : file,
                                                 lilac_text_get(&source), source.length);
        good = number != 0 && lilac_compile(&compilation, context, number, options);
    }
    print_diagnostics(context);
    if (good) {
        put_kernel(&kernel, job, &source, options, &compilation);
        lilac_text_char(&kernel, '\n');
        good = write_answer(job, &kernel);
    }
    lilac_text_clear(&source);
    lilac_text_clear(&kernel);
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good ? STATUS_DONE : STATUS_REFUSED;
}

static int explore_run(const subcommand *command, int argc, char **argv) {
    explore_job job = {0};
    target_options_init(&job.target);
    const option_row table[] = {
        {"--output", "-o", OPTION_TEXT, &job.output, "OUT",
         "where the page goes; standard output otherwise"},
        {"--page", NULL, OPTION_TEXT, &job.page, "FILE",
         "the explorer's page, where it is neither installed nor built"},
        {"--json", NULL, OPTION_FLAG, &job.json, NULL,
         "what the page shows of the kernel, as one JSON value"},
        TARGET_OPTION_ROWS(job.target),
        {"--kernel", NULL, OPTION_TEXT, &job.kernel, "NAME",
         "compile this kernel alone, when the file has several"},
        {0},
    };
    lilac_options options;
    lilac_options_init(&options);
    int status = options_read(command, table, argc, argv, &job.operands);
    if (status < 0) {
        status = target_options_apply(command, &job.target, &options);
    }
    if (status < 0) {
        status = check_one_file(command, &job.operands, "explored");
    }
    if (status < 0) {
        options.kernel = job.kernel;
        status = job.output != NULL && is_same_file(job.operands.list[0], job.output)
                     ? usage_error(command, "-o %s is the file that is explored", job.output)
                     : explore(&job, &options);
    }
    strings_clear(&job.operands);
    target_options_clear(&job.target);
    return status;
}

const subcommand explore_command = {
    .name = "explore",
    .usage = "FILE [-o PAGE.html] [--num-warps N] [--target NAME] …",
    .summary = "a kernel as one HTML page: source, tile IR, PTX, layouts, banks",
    .help =
        "Writes an HTML page that shows a kernel (TTIR or TTGIR; - for standard input): its "
        "source,\n"
        "tile IR and PTX side by side with linked selection, the layouts of its tensors, its\n"
        "conversions, bank conflicts and pipelines. The page opens from disk and uses no network.\n"
        "It contains this program as WebAssembly, so that other options, other kernels and other\n"
        "layouts can be tried in it. `make explorer` builds the page that this command fills in.",
    .run = explore_run,
};
