/* lilac run: a kernel on the simulator or on a GPU, with buffers from numpy files.
 *
 * It compiles the kernel, binds the arguments, runs it, prints a report, compares the buffers of
 * --expect and writes those of --save. The report of the simulator has counters, the findings
 * first (races, uninitialised reads); the findings are also warnings on standard error. Long
 * launches show their progress on standard error. The report of a GPU has the time and the
 * resources of the machine code.
 */
#define _POSIX_C_SOURCE 200809L /* isatty */

#include "launch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct run_request {
    launch_request launch;
    gpu_options gpu;
    string_list saves, expectations;
    uint32_t threads, parts;
    uint64_t limit;
    bool on_gpu, all_counters, profile;
} run_request;

/* The results of one launch. */
typedef struct launch_outcome {
    const prepared_launch *prepared;
    const gpu_launch *gpu; /* NULL: it was the simulator */
    lilac_sim_counters counters;
    lilac_sim_profile profile;
    lilac_text findings; /* JSON, separated by commas */
    double seconds;      /* on the GPU */
    comparison *comparisons;
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

static void put_simulator_json(lilac_text *out, const launch_outcome *outcome) {
    const lilac_simt_kernel *kernel = outcome->prepared->kernel;
    const uint32_t *blocks = outcome->prepared->request->blocks;
    lilac_text_puts(out, "\"kernel\": ");
    lilac_text_json(out, kernel->name, strlen(kernel->name));
    lilac_text_printf(out, ", \"grid\": [%u, %u, %u], \"num_warps\": %u, \"shared\": %u", blocks[0],
                      blocks[1], blocks[2], kernel->num_warps, kernel->shared_bytes);
    lilac_text_puts(out, ", \"counters\": ");
    lilac_sim_counters_json(out, &outcome->counters);
    lilac_text_puts(out, ", \"findings\": [");
    lilac_text_puts(out, lilac_text_get(&outcome->findings));
    lilac_text_char(out, ']');
    if (outcome->profile.sites != NULL) {
        put_profile_json(out, outcome->prepared->context, &outcome->profile);
    }
}

static void put_json(lilac_text *out, const run_request *request, const launch_outcome *outcome) {
    lilac_text_char(out, '{');
    if (outcome->gpu != NULL) {
        gpu_put_launch_json(out, outcome->gpu, outcome->prepared);
        lilac_text_printf(out, ", \"seconds\": %.9f, \"code\": ", outcome->seconds);
        gpu_put_code_json(out, lilac_gpu_kernel_facts_get(outcome->gpu->kernel));
    } else {
        put_simulator_json(out, outcome);
    }
    lilac_text_puts(out, ", \"expect\": [");
    for (uint32_t i = 0; i < request->expectations.count; i++) {
        lilac_text_puts(out, i == 0 ? "" : ", ");
        put_comparison_json(out, &outcome->comparisons[i]);
    }
    lilac_text_puts(out, "]}\n");
}

static void put_table(lilac_text *out, const run_request *request, const launch_outcome *outcome) {
    const lilac_simt_kernel *kernel = outcome->prepared->kernel;
    const uint32_t *blocks = request->launch.blocks;
    if (outcome->gpu != NULL) {
        gpu_put_title(out, outcome->gpu, outcome->prepared);
        lilac_text_printf(out, "%.1f µs, its first launch\n", 1e6 * outcome->seconds);
        gpu_put_code(out, lilac_gpu_kernel_facts_get(outcome->gpu->kernel));
    } else {
        lilac_text_printf(
            out, "%s: %u × %u × %u blocks of %u warps, %u bytes of shared memory each\n",
            kernel->name, blocks[0], blocks[1], blocks[2], kernel->num_warps, kernel->shared_bytes);
        lilac_sim_counters_print(out, &outcome->counters, request->all_counters);
    }
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

/* ---- buffers after the launch ------------------------------------------------------------ */

static bool save_buffers(const run_request *request, const bound_arguments *arguments) {
    bool good = true;
    for (uint32_t i = 0; i < request->saves.count; i++) {
        const char *save = request->saves.list[i];
        const size_t length = strcspn(save, "=");
        const npy view =
            arguments_view(arguments, (uint32_t)arguments_find(arguments, save, length));
        good &= npy_write(&view, save + length + 1);
    }
    return good;
}

static const char *why_no_contents(const bound_arguments *arguments, int32_t found) {
    const bound_name *name = found < 0 ? NULL : &arguments->names[found];
    if (name == NULL || !name->is_pointer) {
        return "";
    }
    if (name->target.buffer == POINTER_NULL) {
        return ": it is null";
    }
    for (uint32_t i = 0; i < arguments->entry_count; i++) {
        if (arguments->entries[i].buffer == (uint32_t)name->target.buffer) {
            return " with contents to compare or keep: it holds pointers";
        }
    }
    return NULL;
}

/* Checks before the launch that the names of --save and --expect exist. */
static bool check_buffers(lilac_context *context, const bound_arguments *arguments,
                          const string_list *names, const char *what) {
    bool good = true;
    for (uint32_t i = 0; i < names->count; i++) {
        const size_t length = strcspn(names->list[i], "=");
        const char *why =
            why_no_contents(arguments, arguments_find(arguments, names->list[i], length));
        if (why != NULL) {
            lilac_error(context, arguments->signature.position, 0, "unknown-argument",
                        "%s: kernel '%s' has no buffer '%.*s'%s", what, arguments->signature.name,
                        (int)length, names->list[i], why);
            good = false;
        }
    }
    return good;
}

static int report(const run_request *request, prepared_launch *prepared, launch_outcome *outcome) {
    lilac_context *context = prepared->context;
    int status = STATUS_DONE;
    lilac_text text;
    lilac_text_init(&text);
    put_findings(&outcome->findings, context);
    print_diagnostics(context);
    outcome->comparisons =
        lilac_arena_array(lilac_context_arena(context), comparison, request->expectations.count);
    for (uint32_t i = 0; i < request->expectations.count; i++) {
        if (!expect_compare(&outcome->comparisons[i], context, &prepared->arguments,
                            request->expectations.list[i], i + 1)) {
            status = STATUS_REFUSED;
        }
    }
    print_diagnostics(context);
    if (status == STATUS_DONE) {
        (request->launch.json ? put_json : put_table)(&text, request, outcome);
        if (!file_write(NULL, lilac_text_get(&text), text.length) ||
            !save_buffers(request, &prepared->arguments)) {
            status = STATUS_REFUSED;
        }
    }
    for (uint32_t i = 0; i < request->expectations.count && status == STATUS_DONE; i++) {
        status = outcome->comparisons[i].passed ? STATUS_DONE : STATUS_CHECK;
    }
    lilac_text_clear(&text);
    lilac_text_clear(&outcome->findings);
    return status;
}

/* ---- the two machines -------------------------------------------------------------------- */

static bool prepare(const run_request *request, prepared_launch *prepared,
                    const lilac_options *options) {
    lilac_context *context = prepared->context;
    if (!launch_prepare(prepared, options)) {
        return false;
    }
    bool good = check_buffers(context, &prepared->arguments, &request->saves, "--save");
    good &= check_buffers(context, &prepared->arguments, &request->expectations, "--expect");
    if (good) {
        print_diagnostics(context); /* warnings of the compilation */
    }
    return good;
}

/* When the next line about a long launch is due, in its seconds. */
typedef struct progress_line {
    double due;
    bool terminal, shown;
} progress_line;

/* On a terminal one line that is written over, from the first second on; elsewhere a line every ten
 * seconds. */
static void show_progress(void *data, const lilac_sim_progress *progress) {
    progress_line *line = data;
    if (progress->seconds < line->due) {
        return;
    }
    line->due = progress->seconds + (line->terminal ? 0.1 : 10);
    line->shown = true;
    fprintf(stderr, "%slilac: %llu of %llu blocks have ended after %.0f s%s",
            line->terminal ? "\r\033[K" : "", (unsigned long long)progress->blocks_ended,
            (unsigned long long)progress->blocks, progress->seconds, line->terminal ? "" : "\n");
    fflush(stderr);
}

static bool simulate(const run_request *request, prepared_launch *prepared,
                     lilac_sim_launch *launch, lilac_sim_counters *counters) {
    progress_line line = {.terminal = isatty(STDERR_FILENO) == 1};
    line.due = line.terminal ? 1 : 10;
    launch->progress = show_progress;
    launch->progress_data = &line;
    launch->threads = request->threads;
    launch->instruction_limit = request->limit;
    const bool done = lilac_sim_run(prepared->context, launch, counters);
    if (line.shown && line.terminal) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    return done;
}

/* Can several blocks compute a program of the kernel, if that is asked for? */
static bool allow_parts(const run_request *request, const prepared_launch *prepared) {
    const kernel_signature *signature = &prepared->arguments.signature;
    if (request->parts == 1 || signature->launch_maps.split.divisor > 0) {
        return true;
    }
    lilac_error(prepared->context, signature->position, 0, "launch-condition",
                "--parts %u: kernel '%s' has no sum of products that several blocks can divide",
                request->parts, signature->name);
    return false;
}

static int run_simulator(const run_request *request, prepared_launch *prepared,
                         lilac_options *options) {
    const uint32_t *blocks = request->launch.blocks;
    const bound_arguments *arguments = &prepared->arguments;
    launch_outcome outcome = {.prepared = prepared};
    options->stop_at = LILAC_STAGE_SIMT;
    options->number_operations = request->profile;
    if (!prepare(request, prepared, options) || !allow_parts(request, prepared)) {
        return arguments->misused ? STATUS_USAGE : STATUS_REFUSED;
    }
    lilac_sim_launch launch = {
        .kernel = prepared->kernel,
        .grid = {blocks[0], blocks[1], blocks[2]},
        .parts = request->parts,
        .arguments = arguments->bits,
        .argument_count = arguments->count,
        .tensor_maps = arguments->maps,
        .tensor_map_count = arguments->map_count,
        .buffers = arguments->buffers,
        .buffer_count = arguments->buffer_count,
        .profile = request->profile ? &outcome.profile : NULL,
    };
    const int status =
        arguments_make_maps(&prepared->arguments, prepared->context, prepared->kernel, blocks) &&
                simulate(request, prepared, &launch, &outcome.counters)
            ? report(request, prepared, &outcome)
            : STATUS_REFUSED;
    lilac_sim_profile_clear(&outcome.profile);
    return status;
}

static bool time_launch(gpu_launch *gpu, lilac_context *context, uint32_t parts, double *seconds) {
    gpu->launch.parts = parts;
    lilac_gpu_event before = NULL, after = NULL;
    const bool good = lilac_gpu_event_create(gpu->gpu, context, &before) &&
                      lilac_gpu_event_create(gpu->gpu, context, &after) &&
                      lilac_gpu_event_record(gpu->gpu, context, before, NULL) &&
                      lilac_gpu_run(gpu->kernel, context, &gpu->launch) &&
                      lilac_gpu_event_record(gpu->gpu, context, after, NULL) &&
                      lilac_gpu_synchronize(gpu->gpu, context) &&
                      lilac_gpu_event_elapsed(gpu->gpu, context, before, after, seconds);
    lilac_gpu_event_destroy(gpu->gpu, before);
    lilac_gpu_event_destroy(gpu->gpu, after);
    return good;
}

static int run_gpu(const run_request *request, prepared_launch *prepared, lilac_options *options) {
    gpu_launch gpu;
    launch_outcome outcome = {.prepared = prepared, .gpu = &gpu};
    int status = STATUS_REFUSED;
    if (gpu_open(&gpu, prepared, &request->gpu, options) && prepare(request, prepared, options) &&
        allow_parts(request, prepared) && gpu_load(&gpu, prepared, &request->gpu) &&
        time_launch(&gpu, prepared->context, request->parts, &outcome.seconds) &&
        gpu_fetch(&gpu, prepared)) {
        status = report(request, prepared, &outcome);
    }
    gpu_close(&gpu);
    return prepared->arguments.misused ? STATUS_USAGE : status;
}

static int run_file(const run_request *request, lilac_options *options) {
    prepared_launch prepared;
    int status = STATUS_REFUSED;
    if (launch_read(&prepared, &request->launch)) {
        status = (request->on_gpu ? run_gpu : run_simulator)(request, &prepared, options);
        print_diagnostics(prepared.context);
    }
    if ((status == STATUS_REFUSED || status == STATUS_USAGE) && request->launch.json) {
        (void)file_write(NULL, "null\n", 5);
    }
    launch_clear(&prepared);
    return status;
}

/* ---- the command line ------------------------------------------------------------------- */

static int check_device(const subcommand *command, run_request *request) {
    const int status = gpu_options_check(command, &request->gpu, &request->on_gpu);
    if (status >= 0) {
        return status;
    }
    if (!request->on_gpu && strcmp(request->gpu.device, "simulator") != 0) {
        return usage_error(command,
                           "--device: there is no device '%s', only simulator, cuda and cuda:N",
                           request->gpu.device);
    }
    if (!request->on_gpu && request->gpu.compiler != NULL) {
        return usage_error(command, "--compiler is of --device cuda: the simulator needs none");
    }
    if (request->on_gpu && (request->threads != 0 || request->limit != 0 || request->all_counters ||
                            request->profile)) {
        return usage_error(command,
                           "--threads, --limit, --counters and --profile are the simulator's");
    }
    return -1;
}

static int check_parts(const subcommand *command, const run_request *request) {
    const uint32_t parts = request->parts;
    if (parts == 0 || parts > 8 || (parts & (parts - 1)) != 0) {
        return usage_error(command, "--parts: %u is not 1, 2, 4 or 8", parts);
    }
    if (parts > 1 && !(request->launch.target.launch_maps && request->launch.target.split_sums)) {
        return usage_error(command, "--parts needs --launch-maps and --split-sums");
    }
    return -1;
}

static int run_request_check(const subcommand *command, run_request *request) {
    lilac_options options;
    lilac_options_init(&options);
    int status = check_device(command, request);
    if (status < 0) {
        status = check_parts(command, request);
    }
    if (status < 0 && request->profile && !request->launch.json) {
        status = usage_error(command, "--profile adds to what --json prints");
    }
    if (status < 0) {
        status = launch_request_check(command, &request->launch, &options, "run");
    }
    if (status < 0) {
        status = check_pairs(command, &request->saves, "--save", "NAME=FILE");
    }
    if (status < 0) {
        status = check_pairs(command, &request->expectations, "--expect", "NAME=FILE[,TOLERANCE]");
    }
    return status >= 0 ? status : run_file(request, &options);
}

static int run_run(const subcommand *command, int argc, char **argv) {
    run_request request = {.gpu.device = "simulator", .parts = 1};
    target_options_init(&request.launch.target);
    const option_row table[] = {
        LAUNCH_OPTION_ROWS(request.launch),
        {"--save", NULL, OPTION_TEXTS, &request.saves, "NAME=FILE",
         "write a buffer to a .npy file after the launch"},
        {"--expect", NULL, OPTION_TEXTS, &request.expectations, "NAME=FILE[,TOLERANCE]",
         "compare a buffer to a .npy file after the launch; exit\n"
         "status 3 when ‖out − ref‖/‖ref‖ is above the tolerance\n"
         "(usually 0 for integers, 1e-12 for f64, 1e-5 for f32,\n"
         "5e-3 for narrower floats)"},
        {"--device", NULL, OPTION_TEXT, &request.gpu.device, "NAME",
         "where it runs: simulator (the usual), cuda, or cuda:N for\n"
         "the GPU of that number"},
        GPU_COMPILER_ROW(request.gpu),
        {"--parts", NULL, OPTION_NUMBER, &request.parts, "N",
         "blocks that divide the sums of products of a program: 2, 4\n"
         "or 8, of a kernel that --split-sums allows this; 1 unless\nsaid otherwise"},
        {"--threads", NULL, OPTION_NUMBER, &request.threads, "N",
         "threads of this machine that the simulator uses: one a\ncore unless said otherwise"},
        {"--limit", NULL, OPTION_COUNT, &request.limit, "N",
         "most instructions of a block, summed over its warps as the\n"
         "counter 'instructions' is; a block that would run more is\n"
         "stopped. Without --limit, a launch is stopped when no block\n"
         "can go on, or when for 10 s no block has ended, no byte of\n"
         "global memory has changed, and all blocks that run are in\n"
         "while loops"},
        {"--counters", NULL, OPTION_FLAG, &request.all_counters, NULL,
         "print all counters, also those that are 0"},
        {"--profile", NULL, OPTION_FLAG, &request.profile, NULL,
         "with --json: also the counters of each instruction, and\n"
         "the operation that it was lowered from, as lilac explain\n"
         "numbers them"},
        {"--json", NULL, OPTION_FLAG, &request.launch.json, NULL,
         "print counters, findings and comparisons, or what the GPU\n"
         "says, as one JSON value"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &request.launch.operands);
    if (status < 0) {
        status = run_request_check(command, &request);
    }
    launch_request_clear(&request.launch);
    strings_clear(&request.saves);
    strings_clear(&request.expectations);
    return status;
}

const subcommand run_command = {
    .name = "run",
    .usage = "FILE --grid X[,Y[,Z]] --arg NAME=VALUE… [--save NAME=FILE] [--num-warps N] …",
    .summary = "run a TTIR or SIMT file on the simulator or on a GPU",
    .help =
        "Compiles a kernel in TTIR and runs it on the simulator: prints what it did "
        "(instructions,\n"
        "global accesses by width, sectors, wavefronts of shared memory, barriers) after what was\n"
        "found (races, reads of memory that nothing wrote). Counters that are 0 are left out. "
        "Blocks\n"
        "that wait for each other run in turn, whatever --threads is. With --device cuda it runs "
        "on\n"
        "a GPU, which says its time, registers and spilled bytes. FILE may be - for standard "
        "input.\n"
        "SIMT text (what compile --emit simt prints, or a kernel written by hand) runs as it "
        "stands.\n"
        "\n"
        "Races are found in shared memory and in the global buffers that the kernel writes: two\n"
        "accesses to one place, one of them a write, with no barrier, release and acquire or\n"
        "order of one warp's instructions between. Both lines, blocks and threads are reported.\n"
        "Atomic operations do not race with each other within their scopes; volatile accesses\n"
        "count as atomic, and volatile loads acquire. Stores of equal values do not race, nor do\n"
        "the threads of one warp unless one instruction stores several values in one place. Races\n"
        "with other launches are not covered, nor those that only another order of the acquires\n"
        "would show.\n"
        "\n"
        "An integer division by zero ends the run where its result reaches memory or control\n"
        "flow; masked-off elements may be divided by zero.",
    .run = run_run,
};
