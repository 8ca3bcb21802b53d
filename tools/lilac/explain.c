/* lilac explain: what became of each line of a kernel, why, and at what cost. */
#include "explain_texts.h"
#include "launch.h"
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct explain_job {
    string_list operands, arguments, changes, trip_counts;
    target_options target;
    const char *grid, *kernel, *why;
    uint32_t registers;
    bool json, advice, searches;
    uint32_t line;
    lilac_explain_options options;
    lilac_explain_argument *known;
    npy *contents; /* by known argument */
    lilac_explain_trip_count *loops;
} explain_job;

/* ---- arguments ---------------------------------------------------------------------------- */

/* A number, or the contents of a .npy file. False: another buffer, whose contents are not known. */
static bool read_value(lilac_explain_argument *argument, npy *contents, const char *value,
                       lilac_text *why) {
    char *end;
    const long long integer = strtoll(value, &end, 0);
    if (*end == '\0' && end != value) {
        argument->bits = (uint64_t)integer;
        return true;
    }
    if (*value != '@' || !npy_read(contents, value + 1, why)) {
        return false;
    }
    argument->contents = contents->data;
    argument->length = contents->count * contents->bytes;
    return true;
}

static void *allocate(size_t count, size_t size) {
    void *list = calloc(count + 1, size);
    if (list == NULL) {
        abort();
    }
    return list;
}

/* -1, or STATUS_USAGE. */
static int read_arguments(const subcommand *command, explain_job *job) {
    lilac_explain_launch *launch = &job->options.launch;
    int status = -1;
    job->known = allocate(job->arguments.count, sizeof *job->known);
    job->contents = allocate(job->arguments.count, sizeof *job->contents);
    launch->arguments = job->known;
    for (uint32_t i = 0; i < job->arguments.count && status < 0; i++) {
        const char *text = job->arguments.list[i], *equals = strchr(text, '=');
        lilac_explain_argument *argument = &job->known[launch->argument_count];
        lilac_text why = {0};
        if (read_value(argument, &job->contents[launch->argument_count], equals + 1, &why)) {
            const size_t length = (size_t)(equals - text);
            char *name = allocate(length, 1);
            memcpy(name, text, length);
            argument->name = name;
            launch->argument_count++;
        } else if (why.length > 0) {
            status = usage_error(command, "--arg %s: %s", text, lilac_text_get(&why));
        }
        lilac_text_clear(&why);
    }
    return status;
}

/* "12=3.5": -1, or STATUS_USAGE. */
static int read_trip_counts(const subcommand *command, explain_job *job) {
    job->loops = allocate(job->trip_counts.count, sizeof *job->loops);
    for (uint32_t i = 0; i < job->trip_counts.count; i++) {
        const char *text = job->trip_counts.list[i];
        char *end, *last;
        const unsigned long line = strtoul(text, &end, 10);
        const double count = *end == '=' ? strtod(end + 1, &last) : -1;
        if (line == 0 || line > UINT32_MAX || !(count >= 0 && count < 1e15) || last == end + 1 ||
            *last != '\0') {
            return usage_error(command, "--trip-count %s: expected a line and a number, as 12=3.5",
                               text);
        }
        job->loops[i] = (lilac_explain_trip_count){(uint32_t)line, count};
    }
    job->options.launch.given_loops = job->loops;
    job->options.launch.given_loop_count = job->trip_counts.count;
    return -1;
}

static void clear_arguments(explain_job *job) {
    for (uint32_t i = 0; i < job->options.launch.argument_count; i++) {
        free((char *)(uintptr_t)job->known[i].name);
        npy_clear(&job->contents[i]);
    }
    free(job->known);
    free(job->contents);
    free(job->loops);
}

/* ---- changes ------------------------------------------------------------------------------- */

enum { MOST_DIVISORS = 16, NAME_BYTES = 64 };

typedef struct changed_options {
    lilac_explain_options options;
    lilac_forced_layout forced;
    lilac_assumed_divisor divisors[MOST_DIVISORS];
    char names[MOST_DIVISORS][NAME_BYTES];
} changed_options;

/* "12 layout=#ttg.blocked<{…}>": of the file whose lines are shown. False: another form. */
static bool read_layout(changed_options *to, const char *text, const lilac_explanation *base) {
    char *end;
    const unsigned long line = strtoul(text, &end, 10);
    if (end == text || strncmp(end, " layout=", 8) != 0 || line > UINT32_MAX) {
        return false;
    }
    const uint32_t file = lilac_explain_main_file(base);
    to->forced = (lilac_forced_layout){.file = file > 0 ? lilac_explain_file(base, file) : NULL,
                                       .line = (uint32_t)line,
                                       .layout = end + 8};
    to->options.compile.forced = &to->forced;
    to->options.compile.forced_count = 1;
    to->options.compile.target.num_warps = lilac_explain_warps(base);
    to->options.compile.target.keep_warps = true;
    return true;
}

/* "x,y divisibility=16". False: another form. */
static bool read_divisors(changed_options *to, const char *text) {
    const char *space = strchr(text, ' ');
    uint64_t divisor;
    uint32_t count = 0;
    if (space == NULL || strncmp(space, " divisibility=", 14) != 0 ||
        !read_number(space + 14, 1 << 20, &divisor) || divisor == 0 ||
        (divisor & (divisor - 1)) != 0) {
        return false;
    }
    for (const char *at = text; at < space && count < MOST_DIVISORS; count++) {
        const size_t length = strcspn(at, ", ");
        if (length == 0 || length >= NAME_BYTES) {
            return false;
        }
        memcpy(to->names[count], at, length);
        to->names[count][length] = '\0';
        to->divisors[count] = (lilac_assumed_divisor){to->names[count], (uint32_t)divisor};
        at += length + (at[length] == ',');
    }
    to->options.compile.divisors = to->divisors;
    to->options.compile.divisor_count = count;
    return count > 0;
}

/* "num_warps=8": another value of an option. */
static int read_change(const subcommand *command, changed_options *to, const char *text,
                       const lilac_explanation *base) {
    static const char *const names[] = {"num_warps", "num_stages", "num_ctas"};
    lilac_target *target = &to->options.compile.target;
    uint32_t *const fields[] = {&target->num_warps, &target->num_stages, &target->num_ctas};
    const size_t length = strcspn(text, "=");
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t value;
        if (strlen(names[i]) != length || memcmp(names[i], text, length) != 0) {
            continue;
        }
        if (text[length] != '=' || !read_number(text + length + 1, 1024, &value) || value == 0) {
            return usage_error(command, "--what-if %s: expected a number, as %s=8", text, names[i]);
        }
        *fields[i] = (uint32_t)value;
        target->keep_warps |= fields[i] == &target->num_warps;
        return -1;
    }
    return read_layout(to, text, base) || read_divisors(to, text)
               ? -1
               : usage_error(command,
                             "--what-if '%s': expected num_warps=N, num_stages=N, num_ctas=N, "
                             "'LINE layout=#ttg…' or 'NAME,NAME… divisibility=N'",
                             text);
}

/* ---- output -------------------------------------------------------------------------------- */

static bool print_one(const explain_job *job, lilac_explanation *e) {
    lilac_text text;
    lilac_text_init(&text);
    bool good = true;
    if (job->json) {
        lilac_explain_json(&text, e);
        lilac_text_char(&text, '\n');
    } else {
        const lilac_explain_view view = {.line = job->line};
        good = lilac_explain_text(&text, e, &view);
    }
    good = good && file_write(NULL, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return good;
}

static bool print_change(const explain_job *job, lilac_explanation *base, lilac_explanation *other,
                         const char *change) {
    lilac_text text;
    lilac_text_init(&text);
    if (job->json) {
        lilac_explain_compare_json(&text, base, other, change);
        lilac_text_char(&text, '\n');
    } else {
        lilac_explain_compare(&text, base, other, change);
    }
    const bool good = file_write(NULL, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return good;
}

static int explain_changes(const subcommand *command, const explain_job *job,
                           lilac_context *context, uint32_t source, lilac_explanation *base) {
    int status = STATUS_DONE;
    for (uint32_t i = 0; i < job->changes.count && status == STATUS_DONE; i++) {
        changed_options changed = {.options = job->options};
        status = read_change(command, &changed, job->changes.list[i], base);
        if (status >= 0) {
            return status;
        }
        changed.options.advice = false;
        lilac_explanation *other = lilac_explain(context, source, &changed.options);
        status = other != NULL && print_change(job, base, other, job->changes.list[i])
                     ? STATUS_DONE
                     : STATUS_REFUSED;
        lilac_explanation_destroy(other);
    }
    return status;
}

/* ---- schedules ----------------------------------------------------------------------------- */

static int search_file(const explain_job *job) {
    const launch_request launch = {.operands = job->operands,
                                   .arguments = job->arguments,
                                   .target = job->target,
                                   .grid = job->grid,
                                   .kernel = job->kernel};
    const search_request request = {.launch = &launch, .options = &job->options, .json = job->json};
    return search_schedules(&request);
}

/* -1, or STATUS_USAGE. */
static int check_search(const subcommand *command, const explain_job *job) {
    if (!job->searches) {
        return -1;
    }
    if (job->grid == NULL) {
        return usage_error(command,
                           "--search-schedules compares predicted times: --grid is needed");
    }
    return job->why != NULL || job->advice || job->changes.count > 0 ||
                   job->target.schedules.count > 0 || job->registers != 0
               ? usage_error(command, "--search-schedules is not for --why, --what-if, --advice, "
                                      "--registers or --schedule")
               : -1;
}

static int explain_file(const subcommand *command, explain_job *job) {
    lilac_context *context = lilac_context_create();
    const uint32_t source = source_read(context, job->operands.list[0]);
    int status = STATUS_REFUSED;
    lilac_explanation *e = source != 0 ? lilac_explain(context, source, &job->options) : NULL;
    if (e != NULL) {
        explain_add_texts(e);
        status = job->changes.count > 0 ? explain_changes(command, job, context, source, e)
                 : print_one(job, e)    ? STATUS_DONE
                                        : STATUS_REFUSED;
    }
    print_diagnostics(context);
    lilac_explanation_destroy(e);
    lilac_context_destroy(context);
    if (status == STATUS_REFUSED && job->json) {
        (void)file_write(NULL, "null\n", 5);
    }
    return status;
}

/* ---- the command line ---------------------------------------------------------------------- */

static int explain_request(const subcommand *command, explain_job *job) {
    lilac_explain_options_init(&job->options);
    int status = target_options_apply(command, &job->target, &job->options.compile);
    if (status < 0) {
        status = check_one_file(command, &job->operands, "explained");
    }
    if (status < 0 && job->grid != NULL && !read_grid(job->grid, job->options.launch.grid)) {
        status =
            usage_error(command, "--grid takes X[,Y[,Z]], numbers of blocks, not '%s'", job->grid);
    }
    if (status < 0) {
        status = check_pairs(command, &job->arguments, "--arg", "NAME=VALUE");
    }
    uint64_t line = 0;
    if (status < 0 && job->why != NULL &&
        (!read_number(job->why, UINT32_MAX, &line) || line == 0)) {
        status = usage_error(command, "--why takes the number of a line, not '%s'", job->why);
    }
    if (status < 0 && job->why != NULL && (job->json || job->changes.count > 0)) {
        status = usage_error(command, "--why prints text about the kernel as it is: not with "
                                      "--json or --what-if");
    }
    job->line = (uint32_t)line;
    job->options.compile.kernel = job->kernel;
    job->options.registers = job->registers;
    job->options.advice = job->advice;
    if (status < 0) {
        status = read_arguments(command, job);
    }
    if (status < 0) {
        status = read_trip_counts(command, job);
    }
    if (status < 0) {
        status = check_search(command, job);
    }
    if (status < 0) {
        status = job->searches ? search_file(job) : explain_file(command, job);
    }
    clear_arguments(job);
    return status;
}

static int explain_run(const subcommand *command, int argc, char **argv) {
    explain_job job = {.grid = NULL};
    target_options_init(&job.target);
    const option_row table[] = {
        {"--why", NULL, OPTION_TEXT, &job.why, "LINE",
         "only this line: each plan step by step, and the plans that\n"
         "were not chosen with their prices"},
        {"--what-if", NULL, OPTION_TEXTS, &job.changes, "CHANGE",
         "compile the kernel with a change, and print what differs:\n"
         "num_warps=N, num_stages=N, num_ctas=N; a layout for the\n"
         "access, reduction, scan or gather of a line, as\n"
         "'12 layout=#ttg.blocked<{…}>'; or a promise about\n"
         "parameters, as 'x,n divisibility=16'. May be given more\n"
         "than once: each change is compared with the kernel as it is"},
        {"--grid", NULL, OPTION_TEXT, &job.grid, "X[,Y[,Z]]",
         "the blocks of the launch: for trip counts and the\npredicted time"},
        {"--arg", NULL, OPTION_TEXTS, &job.arguments, "NAME=VALUE",
         "a parameter's value, as for lilac run: an integer, or the\n"
         "contents of a pointer's memory, @file.npy. Trip counts and,\n"
         "with --grid, what masked accesses touch follow from them;\n"
         "other values are ignored"},
        {"--trip-count", NULL, OPTION_TEXTS, &job.trip_counts, "LINE=N",
         "the mean number of iterations of the loops of that line,\n"
         "where it depends on data that is not given"},
        {"--advice", NULL, OPTION_FLAG, &job.advice, NULL,
         "compile variants (warps, stages, parameters that are\n"
         "multiples of 16) and print those that are predicted\n"
         "faster for the launch"},
        {"--search-schedules", NULL, OPTION_FLAG, &job.searches, NULL,
         "compile all schedules that the loops with matrix products\n"
         "can have, and print the ten that are predicted fastest for\n"
         "the launch beside the one that is chosen. A small launch\n"
         "whose buffers are given is also run on the simulator"},
        {"--registers", NULL, OPTION_NUMBER, &job.registers, "N",
         "registers of a thread, from the assembler; estimated\notherwise"},
        {"--kernel", NULL, OPTION_TEXT, &job.kernel, "NAME",
         "which kernel, when the file has several"},
        TARGET_OPTION_ROWS(job.target),
        {"--json", NULL, OPTION_FLAG, &job.json, NULL, "print one JSON value (docs/explain.md)"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &job.operands);
    if (status < 0) {
        status = explain_request(command, &job);
    }
    strings_clear(&job.operands);
    target_options_clear(&job.target);
    strings_clear(&job.arguments);
    strings_clear(&job.changes);
    strings_clear(&job.trip_counts);
    return status;
}

const subcommand explain_command = {
    .name = "explain",
    .usage = "FILE [--why LINE] [--what-if CHANGE] [--search-schedules] [--grid X[,Y[,Z]]] "
             "[--arg NAME=VALUE…] …",
    .summary = "what became of each line of a kernel, why, and at what cost",
    .help =
        "Compiles a kernel in TTIR or TTGIR and prints its source. Under each line is what it\n"
        "became: accesses to memory with their widths, sectors and replication, conversions with\n"
        "the operations that ask for the two layouts, reductions, matrix products, copies and\n"
        "waits. Then what a block uses: bytes, wavefronts, issue slots, registers, occupancy, and\n"
        "which unit bounds it; and the schedules of loops with matrix products. The lines are "
        "those of the user's program if the file's locations\n"
        "name it and it is on this machine, else those of FILE. FILE may be - for standard "
        "input.\n",
    .run = explain_run,
};
