/* A launch from the command line: which file, which kernel, how many blocks, which arguments. */
#include "launch.h"

#include <string.h>

/* ---- the command line -------------------------------------------------------------------- */

int launch_request_check(const subcommand *command, launch_request *request, lilac_options *options,
                         const char *doing) {
    int status = target_options_apply(command, &request->target, options);
    if (status < 0) {
        status = check_one_file(command, &request->operands, doing);
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
        status = check_pairs(command, &request->buffers, "--buffer", "NAME=VALUE");
    }
    options->verify = request->verify;
    options->kernel = request->kernel;
    return status;
}

void launch_request_clear(launch_request *request) {
    strings_clear(&request->operands);
    target_options_clear(&request->target);
    strings_clear(&request->arguments);
    strings_clear(&request->buffers);
}

/* ---- the kernel -------------------------------------------------------------------------- */

bool launch_read(prepared_launch *prepared, const launch_request *request) {
    *prepared = (prepared_launch){.request = request, .context = lilac_context_create()};
    prepared->source = source_read(prepared->context, request->operands.list[0]);
    print_diagnostics(prepared->context);
    return prepared->source != 0;
}

static const lilac_tile_function *find_function(const lilac_compilation *compilation,
                                                const char *name) {
    const lilac_tile_function *function = compilation->tile->functions;
    while (function != NULL && strcmp(function->name, name) != 0) {
        function = function->next;
    }
    return function;
}

static kernel_signature signature_of(const prepared_launch *prepared,
                                     const lilac_simt_kernel *kernel) {
    const lilac_compilation *compilation = &prepared->compilation;
    return compilation->tile != NULL
               ? signature_of_function(prepared->context, find_function(compilation, kernel->name))
               : signature_of_kernel(prepared->context, prepared->source, kernel);
}

/* The module's only kernel, or the one that --kernel names. */
static const lilac_simt_kernel *find_kernel(const prepared_launch *prepared) {
    const lilac_simt_kernel *kernels = prepared->compilation.simt->kernels;
    const char *name = prepared->request->kernel;
    for (const lilac_simt_kernel *k = kernels; name != NULL && k != NULL; k = k->next) {
        if (strcmp(k->name, name) == 0) {
            return k;
        }
    }
    if (name == NULL && kernels->next == NULL) {
        return kernels;
    }
    if (name != NULL) {
        lilac_error(prepared->context, (lilac_position){prepared->source, 0}, 0, "unknown-kernel",
                    "this module has no kernel '%s'", name);
    } else {
        lilac_error(prepared->context, signature_of(prepared, kernels).position, 0,
                    "unknown-kernel",
                    "this module has several kernels: choose one with --kernel NAME");
    }
    for (const lilac_simt_kernel *k = kernels; k != NULL; k = k->next) {
        lilac_note(prepared->context, signature_of(prepared, k).position, k->location,
                   "kernel '%s' is here", k->name);
    }
    return NULL;
}

bool launch_compile(lilac_compilation *compilation, lilac_context *context, uint32_t source,
                    const lilac_options *options) {
    const lilac_pass_selection selection = {.after = LILAC_STAGE_SIMT};
    return lilac_source_is_simt(context, source)
               ? lilac_run_passes(compilation, context, source, options, &selection)
               : lilac_compile(compilation, context, source, options);
}

bool launch_prepare(prepared_launch *prepared, const lilac_options *options) {
    if (!launch_compile(&prepared->compilation, prepared->context, prepared->source, options)) {
        print_malformed(prepared->context, prepared->compilation.malformed);
        return false;
    }
    prepared->kernel = find_kernel(prepared);
    if (prepared->kernel == NULL) {
        return false;
    }
    const kernel_signature signature = signature_of(prepared, prepared->kernel);
    return arguments_bind(&prepared->arguments, prepared->context, &signature,
                          &prepared->request->arguments, &prepared->request->buffers);
}

void launch_clear(prepared_launch *prepared) {
    arguments_clear(&prepared->arguments);
    lilac_compilation_clear(&prepared->compilation);
    lilac_context_destroy(prepared->context);
}
