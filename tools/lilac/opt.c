/* lilac opt: some passes of the pipeline on text, and the text after them.
 *
 *     lilac opt k.ttir --to tile > k.ttgir       the passes up to the end of a stage
 *     lilac opt k.ttgir --pass lower > k.simt    exactly these passes
 *     lilac opt k.simt --pass fold,dce
 */
#include "command.h"

#include <stdio.h>

typedef struct opt_job {
    string_list operands;
    target_options target;
    const char *output, *from, *to, *passes, *skip, *kernel;
    bool verify, line_info;
} opt_job;

static const choice stages[] = {{"source", LILAC_STAGE_SOURCE},
                                {"tile", LILAC_STAGE_TILE},
                                {"simt", LILAC_STAGE_SIMT},
                                {"text", LILAC_STAGE_TEXT},
                                {0}};

static int read_stage(const subcommand *command, const char *option, const char *word,
                      lilac_stage *stage) {
    int value = (int)*stage;
    const int status = word != NULL ? choice_read(command, option, word, stages, &value) : -1;
    *stage = (lilac_stage)value;
    return status;
}

static bool write_program(const opt_job *job, const lilac_compilation *compilation) {
    lilac_text text;
    lilac_text_init(&text);
    if (compilation->ptx.length > 0) {
        lilac_text_put(&text, lilac_text_get(&compilation->ptx), compilation->ptx.length);
    } else if (compilation->simt != NULL) {
        lilac_simt_print(&text, compilation->simt);
    } else {
        lilac_tile_print(&text, compilation->tile, job->line_info);
    }
    const bool good = file_write(job->output, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return good;
}

static int opt_file(const opt_job *job, lilac_options *options, lilac_pass_selection *selection) {
    lilac_context *context = lilac_context_create();
    lilac_compilation compilation = {0};
    const uint32_t source = source_read(context, job->operands.list[0]);
    if (job->to == NULL && source != 0) {
        options->stop_at =
            lilac_source_is_simt(context, source) ? LILAC_STAGE_SIMT : LILAC_STAGE_TILE;
        options->stop_at =
            selection->after > options->stop_at ? selection->after : options->stop_at;
    }
    bool good = source != 0 && lilac_run_passes(&compilation, context, source, options, selection);
    print_malformed(context, compilation.malformed);
    print_diagnostics(context);
    good = good && write_program(job, &compilation);
    lilac_compilation_clear(&compilation);
    lilac_context_destroy(context);
    return good ? STATUS_DONE : STATUS_REFUSED;
}

static int opt_request(const subcommand *command, const opt_job *job) {
    lilac_options options;
    lilac_options_init(&options);
    lilac_pass_selection selection = {.passes = job->passes};
    int status = read_stage(command, "--from", job->from, &selection.after);
    if (status < 0) {
        status = read_stage(command, "--to", job->to, &options.stop_at);
    }
    if (status < 0 && job->passes != NULL && (job->from != NULL || job->to != NULL)) {
        status = usage_error(command, "--pass lists the passes; --from and --to select stages");
    }
    if (status < 0) {
        status = check_passes(command, "--pass", job->passes);
    }
    if (status < 0) {
        status = check_passes(command, "--skip", job->skip);
    }
    if (status < 0) {
        status = target_options_apply(command, &job->target, &options);
    }
    if (status < 0) {
        status = check_one_file(command, &job->operands, "read");
    }
    if (status < 0 && job->output != NULL && is_same_file(job->operands.list[0], job->output)) {
        status = usage_error(command, "-o %s is the file that is read", job->output);
    }
    options.kernel = job->kernel;
    options.skip = job->skip;
    options.verify = job->verify;
    options.comments = options.line_info = job->line_info;
    return status >= 0 ? status : opt_file(job, &options, &selection);
}

static int opt_run(const subcommand *command, int argc, char **argv) {
    opt_job job = {.line_info = true};
    target_options_init(&job.target);
    const option_row table[] = {
        {"--output", "-o", OPTION_TEXT, &job.output, "OUT",
         "where the text goes; standard output otherwise"},
        {"--pass", NULL, OPTION_TEXT, &job.passes, "A,B,…",
         "run exactly these passes, in this order; lilac\n--list-passes has their names"},
        {"--from", NULL, OPTION_TEXT, &job.from, "STAGE",
         "the text is a program at the end of this stage: source,\n"
         "tile, simt; without it source, and tile for SIMT text"},
        {"--to", NULL, OPTION_TEXT, &job.to, "STAGE",
         "run the passes up to the end of this stage: source, tile,\n"
         "simt or text (PTX); without it the stage of the text's IR"},
        {"--skip", NULL, OPTION_TEXT, &job.skip, "A,B,…", "leave out these passes"},
        TARGET_OPTION_ROWS(job.target),
        {"--kernel", NULL, OPTION_TEXT, &job.kernel, "NAME",
         "only this kernel, when a file of tile IR has several"},
        {"--verify", NULL, OPTION_FLAG, &job.verify, NULL, "check the program after every pass"},
        {"--no-line-info", NULL, OPTION_FLAG_OFF, &job.line_info, NULL,
         "no source lines in the result"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &job.operands);
    if (status < 0) {
        status = opt_request(command, &job);
    }
    strings_clear(&job.operands);
    target_options_clear(&job.target);
    return status;
}

const subcommand opt_command = {
    .name = "opt",
    .usage = "FILE [--pass A,B,…] [--from STAGE] [--to STAGE] [--skip A,B,…] [-o OUT] …",
    .summary = "some passes on the text of a kernel",
    .help = "Reads a kernel as TTIR, TTGIR or SIMT IR (text that begins with simt.module), runs\n"
            "passes of the compiler on it and prints the result. The stages are source (tile IR\n"
            "as it was read), tile (with layouts), simt and text (PTX). FILE may be - for\n"
            "standard input.",
    .run = opt_run,
};
