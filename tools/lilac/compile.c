/* lilac compile: a TTIR file to PTX or to an intermediate representation. */
#include "command.h"

#include <lilac/engine.h>

#include <stdio.h>
#include <string.h>

/* The kinds of --emit, and the stage after which each is complete. */
typedef enum emission {
    EMIT_TILE,
    EMIT_TTGIR,
    EMIT_SIMT,
    EMIT_PTX,
    EMIT_JSON,
    EMIT_COUNT
} emission;

static const lilac_stage stages[EMIT_COUNT] = {
    [EMIT_TILE] = LILAC_STAGE_TILE, [EMIT_TTGIR] = LILAC_STAGE_TILE, [EMIT_SIMT] = LILAC_STAGE_SIMT,
    [EMIT_PTX] = LILAC_STAGE_TEXT,  [EMIT_JSON] = LILAC_STAGE_TEXT,
};

typedef struct compile_job {
    string_list operands;
    target_options target;
    const char *output, *emit, *print_after, *skip, *kernel, *newest_ptx;
    bool time, json, line_info, verify, verbose, list_devices, list_passes;
    emission emission;
} compile_job;

static int read_emission(const subcommand *command, compile_job *request) {
    static const choice kinds[] = {{"tile", EMIT_TILE}, {"ttgir", EMIT_TTGIR}, {"simt", EMIT_SIMT},
                                   {"ptx", EMIT_PTX},   {"json", EMIT_JSON},   {0}};
    int kind = 0;
    const int status = choice_read(command, "--emit", request->emit, kinds, &kind);
    request->emission = (emission)kind;
    return status;
}

/* "8.6" as 86. */
static int read_version(const subcommand *command, const char *text, uint32_t *version) {
    if (text == NULL) {
        return -1;
    }
    const bool good = text[0] >= '7' && text[0] <= '9' && text[1] == '.' && text[2] >= '0' &&
                      text[2] <= '9' && text[3] == '\0';
    if (!good) {
        return usage_error(command,
                           "--newest-ptx takes a PTX ISA version from 7.0 to 9.9, not '%s'", text);
    }
    *version = 10 * (uint32_t)(text[0] - '0') + (uint32_t)(text[2] - '0');
    return -1;
}

static void put_times(lilac_text *out, const lilac_compilation *compilation) {
    double total = 0;
    lilac_text_printf(out, "%-16s%12s%12s\n", "pass", "time, µs", "operations");
    for (uint32_t i = 0; i < compilation->pass_count; i++) {
        const lilac_pass_statistics *pass = &compilation->passes[i];
        lilac_text_printf(out, "%-16s%11.1f%12u\n", pass->name, 1e6 * pass->seconds,
                          pass->operations);
        total += pass->seconds;
    }
    lilac_text_printf(out, "%-16s%11.1f\n", "total", 1e6 * total);
}

static void put_result(lilac_text *out, const compile_job *request, const lilac_options *options,
                       lilac_compilation *compilation) {
    switch (request->emission) {
    case EMIT_PTX:
        lilac_text_put(out, lilac_text_get(&compilation->ptx), compilation->ptx.length);
        break;
    case EMIT_SIMT:
        lilac_simt_print(out, compilation->simt);
        break;
    case EMIT_TILE:
        lilac_tile_print(out, compilation->tile, request->line_info);
        break;
    case EMIT_TTGIR:
        lilac_compilation_ttgir(out, compilation, request->line_info);
        break;
    case EMIT_JSON:
    case EMIT_COUNT:
        lilac_compilation_json(out, compilation, options);
        lilac_text_char(out, '\n');
        break;
    }
}

/* Writes the result to its file or to standard output. With --json, standard output has the
 * metadata, and the result is written only if -o names a file. */
static bool write_results(const compile_job *request, const lilac_options *options,
                          lilac_compilation *compilation) {
    lilac_text text, metadata;
    lilac_text_init(&text);
    lilac_text_init(&metadata);
    bool good = true;
    if (request->json) { /* before --emit ttgir, which inserts conversions */
        lilac_compilation_json(&metadata, compilation, options);
        lilac_text_char(&metadata, '\n');
    }
    if (!request->json || request->output != NULL) {
        put_result(&text, request, options, compilation);
        good = file_write(request->output, lilac_text_get(&text), text.length);
    }
    if (good && request->json) {
        good = file_write(NULL, lilac_text_get(&metadata), metadata.length);
    }
    lilac_text_clear(&text);
    lilac_text_clear(&metadata);
    return good;
}

/* The plan of each access to global memory, with its line of the user's program, or of the text
 * that was compiled. */
static void print_accesses(const lilac_compilation *compilation, lilac_tile_function *function,
                           lilac_arena *arena) {
    lilac_access_report report;
    lilac_text text;
    lilac_engine_accesses(&report, arena, function, &compilation->target);
    lilac_text_init(&text);
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_access *access = &report.accesses[i];
        const lilac_position position = access->op->position;
        lilac_name file;
        uint32_t line, column;
        if (!lilac_location_file(compilation->context, access->op->location, &file, &line,
                                 &column)) {
            file = lilac_source_name(compilation->context, position.source);
            lilac_position_resolve(compilation->context, position, &line, &column);
        }
        lilac_text_printf(&text, "%s:%u: ", file, line);
        lilac_plan_global_access_explain(&text, &access->plan);
    }
    fputs(lilac_text_get(&text), stderr);
    lilac_text_clear(&text);
}

/* The layouts that the engine chose for memory. */
static void print_memory_layouts(const lilac_compilation *compilation,
                                 lilac_tile_function *function, lilac_arena *arena) {
    lilac_memory_layout_report report;
    lilac_engine_memory_layouts(&report, arena, function, &compilation->target);
    for (uint32_t i = 0; i < report.count; i++) {
        const lilac_memory_layout *layout = &report.layouts[i];
        uint32_t line, column;
        lilac_position_resolve(compilation->context, layout->op->position, &line, &column);
        fprintf(stderr,
                "%s:%u: memory layout: %s; %llu wavefronts of stores, %llu of loads, %.1f clocks\n",
                lilac_source_name(compilation->context, layout->op->position.source), line,
                layout->name, (unsigned long long)layout->store_wavefronts,
                (unsigned long long)layout->load_wavefronts, (double)layout->cycles / 16);
    }
}

/* On standard error: a line for each kernel as ptxas -v prints it, its accesses to global
 * memory and the layouts that were chosen for its shared memory. */
static void print_summary(const lilac_compilation *compilation) {
    double seconds = 0;
    lilac_arena *arena = lilac_arena_create();
    for (uint32_t i = 0; i < compilation->pass_count; i++) {
        seconds += compilation->passes[i].seconds;
    }
    for (lilac_tile_function *f = compilation->tile->functions; f != NULL; f = f->next) {
        if (!f->is_public || f->body == NULL) {
            continue;
        }
        lilac_conversion_report report;
        lilac_engine_conversions(&report, arena, f, &compilation->target);
        fprintf(stderr, "lilac: kernel '%s' for %s: %u warps, %u layout conversion%s", f->name,
                compilation->target.arch->name, compilation->target.num_warps, report.count,
                report.count == 1 ? "" : "s");
        const lilac_simt_kernel *kernel =
            compilation->simt != NULL ? compilation->simt->kernels : NULL;
        while (kernel != NULL && strcmp(kernel->name, f->name) != 0) {
            kernel = kernel->next;
        }
        if (kernel != NULL) {
            fprintf(stderr, ", %u bytes of shared memory", kernel->shared_bytes);
        }
        fputc('\n', stderr);
        print_accesses(compilation, f, arena);
        print_memory_layouts(compilation, f, arena);
    }
    fprintf(stderr, "lilac: compiled in %.1f µs\n", 1e6 * seconds);
    lilac_arena_destroy(arena);
}

static int compile_file(const compile_job *request, const lilac_options *options) {
    lilac_context *context = lilac_context_create();
    const uint32_t source = source_read(context, request->operands.list[0]);
    lilac_compilation compilation = {0};
    bool good = source != 0 && lilac_compile(&compilation, context, source, options);
    fwrite(lilac_text_get(options->printed), 1, options->printed->length, stderr);
    print_malformed(context, compilation.malformed);
    print_diagnostics(context);
    if (request->verbose && good) {
        print_summary(&compilation);
    }
    if (request->time && source != 0) {
        lilac_text times;
        lilac_text_init(&times);
        put_times(&times, &compilation);
        fwrite(lilac_text_get(&times), 1, times.length, stderr);
        lilac_text_clear(&times);
    }
    if (good) {
        good = write_results(request, options, &compilation);
    } else if (request->json) {
        (void)file_write(NULL, "null\n", 5);
    }
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good ? STATUS_DONE : STATUS_REFUSED;
}

static int compile_request(const subcommand *command, compile_job *request) {
    lilac_options options;
    lilac_options_init(&options);
    int status = read_emission(command, request);
    if (status < 0) {
        const bool all = request->print_after != NULL && strcmp(request->print_after, "all") == 0;
        status = check_passes(command, "--print-after", all ? NULL : request->print_after);
    }
    if (status < 0) {
        status = check_passes(command, "--skip", request->skip);
    }
    if (status < 0) {
        status = target_options_apply(command, &request->target, &options);
    }
    if (status < 0) {
        status = read_version(command, request->newest_ptx, &options.newest_ptx);
    }
    if (status < 0) {
        status = check_one_file(command, &request->operands, "compiled");
    }
    if (status < 0 && request->output != NULL &&
        is_same_file(request->operands.list[0], request->output)) {
        status = usage_error(command, "-o %s is the file that is compiled", request->output);
    }
    if (status >= 0) {
        return status;
    }
    lilac_text printed;
    lilac_text_init(&printed);
    options.kernel = request->kernel;
    options.print_after = request->print_after;
    options.printed = &printed;
    options.skip = request->skip;
    options.stop_at = stages[request->emission];
    options.verify = request->verify;
    options.line_info = request->line_info;
    options.comments = request->line_info;
    status = compile_file(request, &options);
    lilac_text_clear(&printed);
    return status;
}

static int compile_run(const subcommand *command, int argc, char **argv) {
    compile_job request = {.emit = "ptx", .line_info = true};
    target_options_init(&request.target);
    const option_row table[] = {
        {"--output", "-o", OPTION_TEXT, &request.output, "OUT",
         "where the result goes; standard output otherwise"},
        {"--emit", NULL, OPTION_TEXT, &request.emit, "KIND",
         "ptx (the usual), simt (what one thread does), tile (the\n"
         "kernel with its layouts), ttgir (the same as Triton\n"
         "reads it) or json (what a launcher must know, and each\n"
         "pass's time and operations)"},
        TARGET_OPTION_ROWS(request.target),
        {"--kernel", NULL, OPTION_TEXT, &request.kernel, "NAME",
         "compile this kernel alone, when the file has several"},
        {"--newest-ptx", NULL, OPTION_TEXT, &request.newest_ptx, "V",
         "the newest PTX ISA version that the assembler reads, as\n"
         "8.6; a kernel is written in the oldest that it needs"},
        {"--print-after", NULL, OPTION_TEXT, &request.print_after, "PASS",
         "print the program after that pass, or after all, on\nstandard error"},
        {"--skip", NULL, OPTION_TEXT, &request.skip, "A,B,…",
         "leave out these passes, to find the one that is at fault"},
        {"--list-passes", NULL, OPTION_FLAG, &request.list_passes, NULL,
         "print the names of the passes, in order, and exit"},
        {"--list-devices", NULL, OPTION_FLAG, &request.list_devices, NULL,
         "print the names and facts of the devices, and exit"},
        {"--verbose", "-v", OPTION_FLAG, &request.verbose, NULL,
         "print each kernel's warps, shared memory, conversions,\n"
         "accesses to global memory and the time on standard error"},
        {"--verify", NULL, OPTION_FLAG, &request.verify, NULL,
         "check the program after every pass"},
        {"--time", NULL, OPTION_FLAG, &request.time, NULL,
         "print each pass's time and operations on standard error"},
        {"--no-line-info", NULL, OPTION_FLAG_OFF, &request.line_info, NULL,
         "no source lines in the result"},
        {"--json", NULL, OPTION_FLAG, &request.json, NULL,
         "print what --emit json prints on standard output; the\n"
         "result itself only goes where -o says"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &request.operands);
    if (status < 0 && (request.list_devices || request.list_passes)) {
        status = (request.list_devices ? list_devices : list_passes)();
    } else if (status < 0) {
        status = compile_request(command, &request);
    }
    strings_clear(&request.operands);
    target_options_clear(&request.target);
    return status;
}

const subcommand compile_command = {
    .name = "compile",
    .usage = "FILE [-o OUT] [--num-warps N] [--target NAME] [--emit KIND] …",
    .summary = "a TTIR file to PTX",
    .help =
        "Compiles a kernel in TTIR (a *.ttir file of Triton's cache, or kernel.asm[\"ttir\"]) to\n"
        "PTX. FILE may be - for standard input.",
    .run = compile_run,
};
