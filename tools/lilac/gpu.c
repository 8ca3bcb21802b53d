/* A launch on a GPU: opens the device, loads the kernel, and copies the buffers there and back. */
#include "launch.h"

#include <string.h>

/* ---- the command line -------------------------------------------------------------------- */

int gpu_options_check(const subcommand *command, gpu_options *options, bool *is_cuda) {
    static const char cuda[] = "cuda";
    const size_t length = sizeof cuda - 1;
    const char *device = options->device;
    uint64_t ordinal = 0;
    *is_cuda =
        strcmp(device, cuda) == 0 || (strncmp(device, cuda, length) == 0 && device[length] == ':');
    if (*is_cuda && device[length] == ':' && !read_number(device + length + 1, 1023, &ordinal)) {
        return usage_error(command, "--device: '%s' is no device: cuda:0 is the first GPU", device);
    }
    options->ordinal = (uint32_t)ordinal;
    if (options->compiler != NULL && strcmp(options->compiler, "driver") != 0 &&
        strcmp(options->compiler, "ptxas") != 0) {
        return usage_error(command, "--compiler takes driver or ptxas, not '%s'",
                           options->compiler);
    }
    const bool ptxas = options->compiler != NULL && strcmp(options->compiler, "ptxas") == 0;
    options->load =
        (lilac_gpu_load_options){.compiler = ptxas ? LILAC_GPU_PTXAS : LILAC_GPU_DRIVER};
    return -1;
}

/* ---- opening and loading ----------------------------------------------------------------- */

/* Does the module name a device? Errors in the module are reported later, when it is compiled. */
static bool names_a_device(const prepared_launch *prepared) {
    if (lilac_source_is_simt(prepared->context, prepared->source)) {
        return true; /* its header does */
    }
    lilac_tile_module *module = lilac_tile_read(prepared->context, prepared->source);
    const bool names = module != NULL && lilac_tile_find(&module->attributes, "ttg.target") != NULL;
    lilac_tile_module_destroy(module);
    lilac_diagnostics_reset(prepared->context);
    return names;
}

bool gpu_open(gpu_launch *gpu, prepared_launch *prepared, const gpu_options *options,
              lilac_options *compile) {
    lilac_context *context = prepared->context;
    *gpu = (gpu_launch){.cuda = lilac_cuda_open(context, NULL)};
    if (gpu->cuda == NULL) {
        return false;
    }
    gpu->gpu = lilac_gpu_open(gpu->cuda, context, options->ordinal, LILAC_GPU_OWN);
    if (gpu->gpu == NULL) {
        return false;
    }
    const lilac_cuda_device *device = lilac_gpu_device(gpu->gpu);
    if (device->arch == NULL) {
        lilac_error(context, (lilac_position){0}, 0, "wrong-device",
                    "%s has compute capability %u.%u; kernels can be compiled for 8.0 and later",
                    device->name, device->capability / 10, device->capability % 10);
        return false;
    }
    if (compile->target.arch == NULL && !names_a_device(prepared)) {
        compile->target.arch = device->arch;
    }
    compile->newest_ptx = lilac_gpu_newest_ptx(gpu->gpu, &options->load);
    return true;
}

static bool copy_buffers(gpu_launch *gpu, prepared_launch *prepared) {
    lilac_context *context = prepared->context;
    bound_arguments *arguments = &prepared->arguments;
    gpu->addresses = lilac_arena_array(lilac_context_arena(prepared->context), uint64_t,
                                       arguments->buffer_count + 1);
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        if (!lilac_gpu_alloc(gpu->gpu, context, arguments->buffers[i].size, &gpu->addresses[i])) {
            return false;
        }
    }
    arguments_place(arguments, gpu->addresses);
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        const lilac_sim_buffer *buffer = &arguments->buffers[i];
        if (!lilac_gpu_write(gpu->gpu, context, gpu->addresses[i], buffer->bytes, buffer->size)) {
            return false;
        }
    }
    return true;
}

bool gpu_load(gpu_launch *gpu, prepared_launch *prepared, const gpu_options *options) {
    const bound_arguments *arguments = &prepared->arguments;
    gpu->kernel = lilac_gpu_load(gpu->gpu, prepared->context, &prepared->compilation,
                                 prepared->kernel->name, &options->load);
    if (gpu->kernel == NULL) {
        return false;
    }
    gpu->launch = (lilac_gpu_launch){.arguments = arguments->bits,
                                     .argument_count = arguments->count,
                                     .tensor_maps = arguments->maps,
                                     .tensor_map_count = arguments->map_count};
    memcpy(gpu->launch.grid, prepared->request->blocks, sizeof gpu->launch.grid);
    return copy_buffers(gpu, prepared) &&
           arguments_make_maps(&prepared->arguments, prepared->context, prepared->kernel,
                               gpu->launch.grid);
}

bool gpu_fetch(gpu_launch *gpu, prepared_launch *prepared) {
    const bound_arguments *arguments = &prepared->arguments;
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        const lilac_sim_buffer *buffer = &arguments->buffers[i];
        if (!lilac_gpu_read(gpu->gpu, prepared->context, buffer->bytes, gpu->addresses[i],
                            buffer->size)) {
            return false;
        }
    }
    return true;
}

void gpu_close(gpu_launch *gpu) {
    lilac_gpu_unload(gpu->kernel);
    lilac_gpu_close(gpu->gpu); /* with its memory */
    lilac_cuda_close(gpu->cuda);
    *gpu = (gpu_launch){0};
}

/* ---- reports ----------------------------------------------------------------------------- */

void gpu_put_title(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared) {
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(gpu->kernel);
    const uint32_t *blocks = prepared->request->blocks;
    lilac_text_printf(out,
                      "%s: %u × %u × %u blocks of %u warps, %u bytes of shared memory each, on %s "
                      "(%s)\n",
                      facts->name, blocks[0], blocks[1], blocks[2], facts->num_warps,
                      facts->shared_bytes, lilac_gpu_device(gpu->gpu)->name,
                      prepared->compilation.target.arch->name);
}

void gpu_put_code(lilac_text *out, const lilac_gpu_kernel_facts *facts) {
    lilac_text_printf(out, "%s: %.2f ms, %u registers, ",
                      facts->compiler == LILAC_GPU_PTXAS ? facts->ptxas : "driver",
                      1e3 * facts->seconds, facts->registers);
    if (facts->spills_known) {
        lilac_text_printf(out, "%u bytes of them spilled, %u read again, ", facts->spill_stores,
                          facts->spill_loads);
    }
    lilac_text_printf(out, "%u bytes of local memory\n", facts->local_bytes);
}

static void put_string(lilac_text *out, const char *key, const char *string) {
    lilac_text_printf(out, "\"%s\": ", key);
    lilac_text_json(out, string, strlen(string));
}

void gpu_put_launch_json(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared) {
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(gpu->kernel);
    const lilac_cuda_device *device = lilac_gpu_device(gpu->gpu);
    const uint32_t *blocks = prepared->request->blocks;
    put_string(out, "kernel", facts->name);
    lilac_text_printf(out,
                      ", \"grid\": [%u, %u, %u], \"num_warps\": %u, \"num_ctas\": %u, \"shared\": "
                      "%u, \"device\": {",
                      blocks[0], blocks[1], blocks[2], facts->num_warps, facts->num_ctas,
                      facts->shared_bytes);
    put_string(out, "name", device->name);
    lilac_text_printf(out,
                      ", \"capability\": %u, \"multiprocessors\": %u, \"memory_bytes\": %llu, "
                      "\"bandwidth\": %.6g, \"cuda\": %u}, ",
                      device->capability, device->multiprocessors,
                      (unsigned long long)device->memory_bytes, device->bandwidth,
                      lilac_cuda_version(gpu->cuda));
    put_string(out, "target", prepared->compilation.target.arch->name);
}

void gpu_put_code_json(lilac_text *out, const lilac_gpu_kernel_facts *facts) {
    const bool ptxas = facts->compiler == LILAC_GPU_PTXAS;
    lilac_text_char(out, '{');
    put_string(out, "compiler", ptxas ? "ptxas" : "driver");
    if (ptxas) {
        lilac_text_puts(out, ", ");
        put_string(out, "program", facts->ptxas);
    }
    lilac_text_printf(out, ", \"seconds\": %.9f, \"registers\": %u, \"local\": %u", facts->seconds,
                      facts->registers, facts->local_bytes);
    if (facts->spills_known) {
        lilac_text_printf(out, ", \"spill_stores\": %u, \"spill_loads\": %u}", facts->spill_stores,
                          facts->spill_loads);
    } else {
        lilac_text_puts(out, ", \"spill_stores\": null, \"spill_loads\": null}");
    }
}
