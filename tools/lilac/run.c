/* lilac run: a kernel on the simulator, with buffers from numpy files.
 *
 * Compiles, binds the arguments, runs, prints the counters, compares what --expect names and writes
 * what --save names. What the simulator finds (races, reads of memory that nothing wrote) are
 * warnings on standard error and numbers among the counters.
 */
#include "command.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct launch_request {
    string_list operands, arguments, saves, expectations;
    target_options target;
    const char *grid, *kernel, *device;
    uint32_t threads, limit;
    bool json, verify;
    uint32_t blocks[3];
} launch_request;

/* What one launch gave. */
typedef struct launch_outcome {
    const lilac_simt_kernel *kernel;
    lilac_sim_counters counters;
    comparison *comparisons;
    lilac_text findings; /* JSON, separated by commas */
} launch_outcome;

/* ---- reports ---------------------------------------------------------------------------- */

static void put_measure(lilac_text *out, double value) {
    if (isfinite(value)) {
        lilac_text_printf(out, "%.6g", value);
    } else {
        lilac_text_puts(out, "null"); /* JSON has no infinity */
    }
}

static void put_comparison_json(lilac_text *out, const comparison *result) {
    lilac_text_puts(out, "{\"name\": ");
    lilac_text_json(out, result->name, strlen(result->name));
    lilac_text_puts(out, ", \"largest_error\": ");
    put_measure(out, result->largest);
    lilac_text_puts(out, ", \"relative_error\": ");
    put_measure(out, result->relative);
    lilac_text_puts(out, ", \"tolerance\": ");
    put_measure(out, result->tolerance);
    lilac_text_printf(out, ", \"passed\": %s}", result->passed ? "true" : "false");
}

static void put_json(lilac_text *out, const launch_request *request,
                     const launch_outcome *outcome) {
    lilac_text_puts(out, "{\"kernel\": ");
    lilac_text_json(out, outcome->kernel->name, strlen(outcome->kernel->name));
    lilac_text_printf(out, ", \"grid\": [%u, %u, %u], \"num_warps\": %u, \"shared\": %u",
                      request->blocks[0], request->blocks[1], request->blocks[2],
                      outcome->kernel->num_warps, outcome->kernel->shared_bytes);
    lilac_text_puts(out, ", \"counters\": ");
    lilac_sim_counters_json(out, &outcome->counters);
    lilac_text_puts(out, ", \"findings\": [");
    lilac_text_puts(out, lilac_text_get(&outcome->findings));
    lilac_text_puts(out, "], \"expect\": [");
    for (uint32_t i = 0; i < request->expectations.count; i++) {
        lilac_text_puts(out, i == 0 ? "" : ", ");
        put_comparison_json(out, &outcome->comparisons[i]);
    }
    lilac_text_puts(out, "]}\n");
}

static void put_table(lilac_text *out, const launch_request *request,
                      const launch_outcome *outcome) {
    lilac_text_printf(out, "%s: %u × %u × %u blocks of %u warps, %u bytes of shared memory each\n",
                      outcome->kernel->name, request->blocks[0], request->blocks[1],
                      request->blocks[2], outcome->kernel->num_warps,
                      outcome->kernel->shared_bytes);
    lilac_sim_counters_print(out, &outcome->counters);
    for (uint32_t i = 0; i < request->expectations.count; i++) {
        const comparison *result = &outcome->comparisons[i];
        lilac_text_printf(out,
                          "%s: largest error %.3g (element %llu of %llu), ‖out − ref‖/‖ref‖ = "
                          "%.3g, at most %.3g: %s\n",
                          result->name, result->largest, (unsigned long long)result->largest_index,
                          (unsigned long long)result->count, result->relative, result->tolerance,
                          result->passed ? "good" : "FAILED");
    }
}

static void put_findings(lilac_text *out, lilac_context *context) {
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_text_puts(out, out->length == 0 ? "" : ", ");
        lilac_diagnostic_json(out, context, d);
    }
}

/* ---- the launch ------------------------------------------------------------------------- */

static bool save_buffers(const launch_request *request, const bound_arguments *arguments) {
    bool good = true;
    for (uint32_t i = 0; i < request->saves.count; i++) {
        const char *save = request->saves.list[i];
        const size_t length = strcspn(save, "=");
        const int32_t parameter = arguments_find(arguments, save, length);
        good &= npy_write(&arguments->arrays[parameter], save + length + 1);
    }
    return good;
}

/* Before anything runs: do the names that --save and --expect give exist? */
static bool check_buffers(lilac_context *context, const bound_arguments *arguments,
                          const string_list *names, const char *what) {
    bool good = true;
    for (uint32_t i = 0; i < names->count; i++) {
        const size_t length = strcspn(names->list[i], "=");
        const int32_t parameter = arguments_find(arguments, names->list[i], length);
        if (parameter < 0 ||
            arguments->function->parameters[parameter]->type->kind != LILAC_TILE_POINTER) {
            lilac_error(context, arguments->function->position, 0, "unknown-argument",
                        "%s: kernel '%s' has no buffer '%.*s'", what, arguments->function->name,
                        (int)length, names->list[i]);
            good = false;
        }
    }
    return good;
}

static int report(const launch_request *request, lilac_context *context,
                  const bound_arguments *arguments, launch_outcome *outcome) {
    int status = STATUS_DONE;
    lilac_text text;
    lilac_text_init(&text);
    put_findings(&outcome->findings, context);
    print_diagnostics(context);
    for (uint32_t i = 0; i < request->expectations.count; i++) {
        if (!expect_compare(&outcome->comparisons[i], context, arguments,
                            request->expectations.list[i], i + 1)) {
            status = STATUS_REFUSED;
        }
    }
    print_diagnostics(context);
    if (status == STATUS_DONE) {
        (request->json ? put_json : put_table)(&text, request, outcome);
        if (!file_write(NULL, lilac_text_get(&text), text.length) ||
            !save_buffers(request, arguments)) {
            status = STATUS_REFUSED;
        }
    }
    for (uint32_t i = 0; i < request->expectations.count && status == STATUS_DONE; i++) {
        status = outcome->comparisons[i].passed ? STATUS_DONE : STATUS_CHECK;
    }
    lilac_text_clear(&text);
    return status;
}

static int launch(const launch_request *request, lilac_context *context,
                  const lilac_simt_kernel *kernel, const bound_arguments *arguments) {
    launch_outcome outcome = {.kernel = kernel};
    const lilac_sim_launch launch = {
        .kernel = kernel,
        .grid = {request->blocks[0], request->blocks[1], request->blocks[2]},
        .arguments = arguments->bits,
        .argument_count = arguments->count,
        .buffers = arguments->buffers,
        .buffer_count = arguments->buffer_count,
        .threads = request->threads,
        .instruction_limit = request->limit,
    };
    if (!lilac_sim_run(context, &launch, &outcome.counters)) {
        print_diagnostics(context);
        return STATUS_REFUSED;
    }
    outcome.comparisons =
        lilac_arena_array(lilac_context_arena(context), comparison, request->expectations.count);
    const int status = report(request, context, arguments, &outcome);
    lilac_text_clear(&outcome.findings);
    return status;
}

static const lilac_simt_kernel *find_kernel(const launch_request *request, lilac_context *context,
                                            const lilac_compilation *compilation) {
    const lilac_simt_kernel *kernels = compilation->simt->kernels;
    if (request->kernel == NULL && kernels->next == NULL) {
        return kernels;
    }
    for (const lilac_simt_kernel *k = kernels; k != NULL && request->kernel != NULL; k = k->next) {
        if (strcmp(k->name, request->kernel) == 0) {
            return k;
        }
    }
    const lilac_position position = compilation->tile->functions->position;
    if (request->kernel == NULL) {
        lilac_error(context, position, 0, "unknown-kernel",
                    "there are several kernels here: say which with --kernel NAME");
    } else {
        lilac_error(context, position, 0, "unknown-kernel", "there is no kernel '%s' here",
                    request->kernel);
    }
    for (const lilac_simt_kernel *k = kernels; k != NULL; k = k->next) {
        lilac_note(context, (lilac_position){0, 0}, k->location, "there is '%s'", k->name);
    }
    return NULL;
}

static const lilac_tile_function *find_function(const lilac_compilation *compilation,
                                                const char *name) {
    const lilac_tile_function *function = compilation->tile->functions;
    while (function != NULL && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    return function;
}

static int run_compiled(const launch_request *request, lilac_context *context,
                        const lilac_compilation *compilation) {
    const lilac_simt_kernel *kernel = find_kernel(request, context, compilation);
    int status = STATUS_REFUSED;
    if (kernel != NULL) {
        bound_arguments arguments;
        bool good = arguments_bind(&arguments, context, find_function(compilation, kernel->name),
                                   &request->arguments);
        good &= check_buffers(context, &arguments, &request->saves, "--save");
        good &= check_buffers(context, &arguments, &request->expectations, "--expect");
        if (good) {
            print_diagnostics(context); /* what the compilation had to say */
            status = launch(request, context, kernel, &arguments);
        }
        arguments_clear(&arguments);
    }
    print_diagnostics(context);
    return status;
}

static int run_text(const launch_request *request, const lilac_options *options,
                    const lilac_text *contents) {
    lilac_context *context = lilac_context_create();
    const char *path = request->operands.list[0];
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    const uint32_t source =
        lilac_source_add(context, name, lilac_text_get(contents), contents->length);
    lilac_compilation compilation = {0};
    int status = STATUS_REFUSED;
    if (source != 0 && lilac_compile(&compilation, context, source, options)) {
        status = run_compiled(request, context, &compilation);
    } else {
        print_diagnostics(context);
    }
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return status;
}

static int run_file(const launch_request *request, const lilac_options *options) {
    lilac_text contents;
    lilac_text_init(&contents);
    int status = STATUS_REFUSED;
    if (file_read(request->operands.list[0], &contents)) {
        status = run_text(request, options, &contents);
    }
    if (status == STATUS_REFUSED && request->json) {
        (void)file_write(NULL, "null\n", 5);
    }
    lilac_text_clear(&contents);
    return status;
}

/* ---- the command line ------------------------------------------------------------------- */

/* "X[,Y[,Z]]", within what a GPU can launch. */
static bool read_grid(const char *string, uint32_t blocks[3]) {
    static const uint64_t most[3] = {INT32_MAX, 65535, 65535};
    char part[16];
    for (int i = 0; i < 3; i++) {
        const size_t length = strcspn(string, ",");
        uint64_t value = 0;
        if (length >= sizeof part) {
            return false;
        }
        memcpy(part, string, length);
        part[length] = '\0';
        if (!read_number(part, most[i], &value) || value == 0) {
            return false;
        }
        blocks[i] = (uint32_t)value;
        if (string[length] == '\0') {
            return true;
        }
        string += length + 1;
    }
    return false;
}

static int check_pairs(const subcommand *command, const string_list *pairs, const char *option,
                       const char *form) {
    for (uint32_t i = 0; i < pairs->count; i++) {
        const char *equals = strchr(pairs->list[i], '=');
        if (equals == NULL || equals == pairs->list[i] || equals[1] == '\0') {
            return usage_error(command, "%s takes %s, not '%s'", option, form, pairs->list[i]);
        }
    }
    return -1;
}

static int check_device(const subcommand *command, const char *device) {
    if (strcmp(device, "simulator") == 0) {
        return -1;
    }
    if (strcmp(device, "cuda") == 0) {
        return usage_error(command,
                           "--device cuda: this version runs kernels on the simulator only");
    }
    return usage_error(command, "--device: there is no device '%s', only the simulator", device);
}

static int check_request(const subcommand *command, launch_request *request,
                         lilac_options *options) {
    int status = check_device(command, request->device);
    if (status < 0) {
        status = target_options_apply(command, &request->target, options);
    }
    if (status < 0 && request->operands.count != 1) {
        status =
            usage_error(command, request->operands.count == 0 ? "which file is to be run?"
                                                              : "one file at a time can be run");
    }
    if (status < 0 && request->grid == NULL) {
        status = usage_error(command, "--grid X[,Y[,Z]] is needed: how many blocks are to run");
    }
    request->blocks[0] = request->blocks[1] = request->blocks[2] = 1;
    if (status < 0 && !read_grid(request->grid, request->blocks)) {
        status = usage_error(command, "--grid takes X[,Y[,Z]], numbers of blocks, not '%s'",
                             request->grid);
    }
    if (status < 0) {
        status = check_pairs(command, &request->arguments, "--arg", "NAME=VALUE");
    }
    if (status < 0) {
        status = check_pairs(command, &request->saves, "--save", "NAME=FILE");
    }
    if (status < 0) {
        status = check_pairs(command, &request->expectations, "--expect", "NAME=FILE[,TOLERANCE]");
    }
    return status;
}

static int run_request(const subcommand *command, launch_request *request) {
    lilac_options options;
    lilac_options_init(&options);
    const int status = check_request(command, request, &options);
    if (status >= 0) {
        return status;
    }
    options.stop_after = "dce"; /* the simulator runs SIMT IR */
    options.verify = request->verify;
    return run_file(request, &options);
}

static int run_run(const subcommand *command, int argc, char **argv) {
    launch_request request = {.device = "simulator"};
    target_options_init(&request.target);
    const option_row table[] = {
        {"--grid", NULL, OPTION_TEXT, &request.grid, "X[,Y[,Z]]", "how many blocks run"},
        {"--arg", NULL, OPTION_TEXTS, &request.arguments, "NAME=VALUE",
         "a parameter's value: a number; or a buffer, @file.npy,\n"
         "zeros:TYPE:SHAPE or empty:TYPE:SHAPE (o=zeros:f16:4x4096);\n"
         "reading what is empty before it is written is reported.\n"
         "bf16 and 8-bit floats are integers of their bits in .npy"},
        {"--save", NULL, OPTION_TEXTS, &request.saves, "NAME=FILE",
         "write a buffer to a .npy file after the launch"},
        {"--expect", NULL, OPTION_TEXTS, &request.expectations, "NAME=FILE[,TOLERANCE]",
         "compare a buffer to a .npy file after the launch; exit\n"
         "status 3 when ‖out − ref‖/‖ref‖ is above the tolerance\n"
         "(usually 0 for integers, 1e-12 for f64, 1e-5 for f32,\n"
         "5e-3 for narrower floats)"},
        {"--kernel", NULL, OPTION_TEXT, &request.kernel, "NAME",
         "which kernel, when the file has several"},
        TARGET_OPTION_ROWS(request.target),
        {"--device", NULL, OPTION_TEXT, &request.device, "NAME",
         "where it runs: simulator, the only one so far"},
        {"--threads", NULL, OPTION_NUMBER, &request.threads, "N",
         "threads of this machine that the simulator uses: one a\ncore unless said otherwise"},
        {"--limit", NULL, OPTION_NUMBER, &request.limit, "N",
         "instructions that a block may run before it is stopped"},
        {"--verify", NULL, OPTION_FLAG, &request.verify, NULL,
         "check the program after every pass"},
        {"--json", NULL, OPTION_FLAG, &request.json, NULL,
         "print counters, findings and comparisons as one JSON value"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &request.operands);
    if (status < 0) {
        status = run_request(command, &request);
    }
    strings_clear(&request.operands);
    strings_clear(&request.arguments);
    strings_clear(&request.saves);
    strings_clear(&request.expectations);
    return status;
}

const subcommand run_command = {
    .name = "run",
    .usage = "FILE --grid X[,Y[,Z]] --arg NAME=VALUE… [--save NAME=FILE] [--num-warps N] …",
    .summary = "run a TTIR file on the simulator",
    .help =
        "Compiles a kernel in TTIR and runs it on the simulator: prints what it did "
        "(instructions,\n"
        "global accesses by width, sectors, wavefronts of shared memory, barriers) and what was\n"
        "found (races, reads of memory that nothing wrote). FILE may be - for standard input.",
    .run = run_run,
};
