/* PTX made machine code: by the driver's own compiler or by ptxas, loaded as a module, its kernel
 * found and asked what it takes.
 *
 *   driver   cuModuleLoadDataEx(PTX)             its logs come back in two buffers
 *   ptxas    PTX ─▶ cubin, cuModuleLoadDataEx(cubin)
 *
 * What a block may have is checked here, once, so that a launch can only be refused for what is its
 * own: the grid, the arguments.
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "cuda.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

enum {
    LOG_BYTES = 1 << 18,          /* of each of the driver's compiler's two logs */
    USUAL_SHARED_BYTES = 48 << 10 /* that a block gets without asking */
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static char *copy_string(lilac_arena *arena, const char *string) {
    return lilac_arena_copy(arena, string, strlen(string));
}

/* ---- the two compilers ------------------------------------------------------------------- */

static bool refuse_ptx(lilac_gpu *gpu, lilac_context *context, int result, const char *kernel,
                       const char *log) {
    lilac_cuda_refuse(gpu->cuda, context, result, "ptx-refused",
                      "kernel '%s': the driver's compiler for %s refused the PTX", kernel,
                      gpu->device.name);
    if (*log != '\0') {
        lilac_note(context, (lilac_position){0}, 0, "it said:\n%s", log);
    }
    return false;
}

static bool load_by_driver(lilac_gpu_kernel *kernel, lilac_context *context,
                           const lilac_gpu_load_options *options) {
    lilac_gpu *gpu = kernel->gpu;
    char *logs = lilac_heap_grow(NULL, 2 * LOG_BYTES);
    memset(logs, 0, 2 * LOG_BYTES);
    int keys[7] = {CUDA_JIT_INFO_LOG, CUDA_JIT_INFO_LOG_SIZE, CUDA_JIT_ERROR_LOG,
                   CUDA_JIT_ERROR_LOG_SIZE, CUDA_JIT_LOG_VERBOSE};
    /* Numbers are given in the pointers themselves. */
    void *values[7] = {logs, (void *)(uintptr_t)LOG_BYTES, logs + LOG_BYTES,
                       (void *)(uintptr_t)LOG_BYTES, (void *)(uintptr_t)1};
    unsigned count = 5;
    if (options->max_registers != 0) {
        keys[count] = CUDA_JIT_MAX_REGISTERS;
        values[count++] = (void *)(uintptr_t)options->max_registers;
    }
    if (options->line_info) {
        keys[count] = CUDA_JIT_LINE_INFO;
        values[count++] = (void *)(uintptr_t)1;
    }
    const int result =
        gpu->api->module_load(&kernel->module, kernel->program.ptx, count, keys, values);
    logs[LOG_BYTES - 1] = logs[2 * LOG_BYTES - 1] = '\0';
    bool good = result == 0;
    if (good) {
        kernel->facts.log = copy_string(kernel->arena, logs);
    } else if (result == CUDA_ERROR_OUT_OF_MEMORY || gpu->lost) {
        good = lilac_gpu_check(gpu, context, result, "loading kernel '%s' on %s",
                               kernel->program.name, gpu->device.name);
    } else {
        good = refuse_ptx(gpu, context, result, kernel->program.name, logs + LOG_BYTES);
    }
    lilac_heap_free(logs);
    return good;
}

static bool load_by_ptxas(lilac_gpu_kernel *kernel, lilac_context *context,
                          const lilac_gpu_load_options *options) {
    lilac_gpu *gpu = kernel->gpu;
    lilac_text path = {0}, device = {0}, cubin = {0}, log = {0};
    if (options->ptxas != NULL) {
        lilac_text_puts(&path, options->ptxas);
    } else {
        (void)lilac_ptxas_find(&path);
    }
    lilac_ptxas_device(&device, kernel->program.ptx, gpu->device.capability);
    bool good =
        lilac_ptxas_run(context, path.length != 0 ? lilac_text_get(&path) : NULL,
                        lilac_text_get(&device), kernel->program.ptx, options, &cubin, &log);
    if (good) {
        kernel->facts.ptxas = copy_string(kernel->arena, lilac_text_get(&path));
        kernel->facts.log = copy_string(kernel->arena, lilac_text_get(&log));
        good = lilac_gpu_check(
            gpu, context,
            gpu->api->module_load(&kernel->module, lilac_text_get(&cubin), 0, NULL, NULL),
            "loading what %s made of kernel '%s' on %s", lilac_text_get(&path),
            kernel->program.name, gpu->device.name);
    }
    lilac_text_clear(&path);
    lilac_text_clear(&device);
    lilac_text_clear(&cubin);
    lilac_text_clear(&log);
    return good;
}

/* ---- the kernel in the module ------------------------------------------------------------ */

static bool find_function(lilac_gpu_kernel *kernel, lilac_context *context) {
    lilac_gpu *gpu = kernel->gpu;
    const int result =
        gpu->api->module_function(&kernel->function, kernel->module, kernel->program.name);
    if (result != CUDA_ERROR_NOT_FOUND) {
        return lilac_gpu_check(gpu, context, result, "kernel '%s' of a loaded module",
                               kernel->program.name);
    }
    return lilac_cuda_refuse(gpu->cuda, context, result, "unknown-kernel",
                             "the PTX has no kernel '%s'", kernel->program.name);
}

static bool read_facts(lilac_gpu_kernel *kernel, lilac_context *context) {
    lilac_gpu_kernel_facts *facts = &kernel->facts;
    const struct {
        int attribute;
        uint32_t *value;
    } rows[] = {{CUDA_FUNCTION_REGISTERS, &facts->registers},
                {CUDA_FUNCTION_LOCAL_BYTES, &facts->local_bytes},
                {CUDA_FUNCTION_SHARED_BYTES, &facts->shared_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = 0;
        if (!lilac_gpu_check(
                kernel->gpu, context,
                kernel->gpu->api->function_attribute(&value, rows[i].attribute, kernel->function),
                "attribute %d of kernel '%s'", rows[i].attribute, facts->name)) {
            return false;
        }
        *rows[i].value = (uint32_t)value;
    }
    facts->shared_bytes += kernel->program.shared_bytes;
    facts->spills_known =
        lilac_ptxas_spills(facts->log, facts->name, &facts->spill_stores, &facts->spill_loads);
    return true;
}

/* Does the device have the shared memory that a block needs? Raises the limit where needed. */
static bool claim(lilac_gpu_kernel *kernel, lilac_context *context) {
    lilac_gpu *gpu = kernel->gpu;
    const cuda_api *api = gpu->api;
    const lilac_gpu_program *program = &kernel->program;
    int result = 0;
    if (kernel->facts.shared_bytes > gpu->device.shared_bytes) {
        lilac_error(context, (lilac_position){0}, 0, "too-much-shared-memory",
                    "kernel '%s' needs %u bytes of shared memory per block; %s has at most %u",
                    program->name, kernel->facts.shared_bytes, gpu->device.name,
                    gpu->device.shared_bytes);
        return false;
    }
    if (kernel->facts.shared_bytes > USUAL_SHARED_BYTES) {
        result = api->function_set_attribute(kernel->function, CUDA_FUNCTION_MAX_DYNAMIC_SHARED,
                                             (int)program->shared_bytes);
        if (result == 0) {
            result = api->function_set_cache(kernel->function, CUDA_CACHE_PREFER_SHARED);
        }
    }
    if (result == 0 && program->num_ctas > 8) {
        result = api->function_set_attribute(kernel->function, CUDA_FUNCTION_LARGE_CLUSTERS, 1);
    }
    return lilac_gpu_check(gpu, context, result,
                           "kernel '%s' with %u bytes of shared memory and %u blocks a cluster",
                           program->name, program->shared_bytes, program->num_ctas);
}

/* ---- loading ----------------------------------------------------------------------------- */

/* Storage for tensor maps, which are aligned to more than an arena's memory is. */
static cuda_tensor_map *alloc_maps(lilac_arena *arena, uint32_t count) {
    const uintptr_t least = (uintptr_t)lilac_arena_alloc(arena, count * sizeof(cuda_tensor_map) +
                                                                    LILAC_TENSOR_MAP_ALIGNMENT);
    const uintptr_t rest = least % LILAC_TENSOR_MAP_ALIGNMENT;
    return (cuda_tensor_map *)(rest == 0 ? least : least + LILAC_TENSOR_MAP_ALIGNMENT - rest);
}

static lilac_gpu_kernel *copy_program(lilac_gpu *gpu, const lilac_gpu_program *program,
                                      const lilac_gpu_load_options *options) {
    lilac_arena *arena = lilac_arena_create();
    const uint32_t count = program->parameter_count;
    lilac_gpu_kernel *kernel = lilac_arena_new(arena, lilac_gpu_kernel);
    lilac_simt_parameter *parameters = lilac_arena_array(arena, lilac_simt_parameter, count + 1);
    uint32_t maps = 0;
    for (uint32_t i = 0; i < count; i++) {
        parameters[i] = program->parameters[i];
        const char *name = parameters[i].name;
        parameters[i].name = copy_string(arena, name != NULL ? name : "");
        maps += parameters[i].is_tensor_map;
    }
    *kernel = (lilac_gpu_kernel){
        .gpu = gpu,
        .arena = arena,
        .program = *program,
        .bits = lilac_arena_array(arena, uint64_t, count + 2),
        .places = lilac_arena_array(arena, void *, count + 2),
        .maps = alloc_maps(arena, maps),
    };
    kernel->program.name = copy_string(arena, program->name);
    kernel->program.parameters = parameters;
    kernel->facts = (lilac_gpu_kernel_facts){.name = kernel->program.name,
                                             .num_warps = program->num_warps,
                                             .num_ctas = program->num_ctas,
                                             .compiler = options->compiler,
                                             .log = ""};
    return kernel;
}

static bool load(lilac_gpu_kernel *kernel, lilac_context *context,
                 const lilac_gpu_load_options *options) {
    const double begin = now();
    const bool loaded = options->compiler == LILAC_GPU_PTXAS
                            ? load_by_ptxas(kernel, context, options)
                            : load_by_driver(kernel, context, options);
    kernel->facts.seconds = now() - begin;
    return loaded && find_function(kernel, context) && read_facts(kernel, context) &&
           claim(kernel, context);
}

lilac_gpu_kernel *lilac_gpu_load_program(lilac_gpu *gpu, lilac_context *context,
                                         const lilac_gpu_program *program,
                                         const lilac_gpu_load_options *options) {
    static const lilac_gpu_load_options usual = {.compiler = LILAC_GPU_DRIVER};
    if (!lilac_gpu_enter(gpu, context)) {
        return NULL;
    }
    options = options != NULL ? options : &usual;
    lilac_gpu_kernel *kernel = copy_program(gpu, program, options);
    const bool good = load(kernel, context, options);
    kernel->program.ptx = NULL; /* the caller's, and not needed any more */
    lilac_gpu_leave(gpu);
    if (!good) {
        lilac_gpu_unload(kernel);
        return NULL;
    }
    return kernel;
}

void lilac_gpu_unload(lilac_gpu_kernel *kernel) {
    if (kernel == NULL) {
        return;
    }
    lilac_gpu *gpu = kernel->gpu;
    if (kernel->module != NULL && gpu->api->context_push(gpu->context) == 0) {
        (void)gpu->api->module_unload(kernel->module);
        lilac_gpu_leave(gpu);
    }
    lilac_arena_destroy(kernel->arena);
}

const lilac_gpu_kernel_facts *lilac_gpu_kernel_facts_get(const lilac_gpu_kernel *kernel) {
    return &kernel->facts;
}

/* ---- from a compilation ------------------------------------------------------------------ */

/* Code for an older device runs on a newer one, unless it is for that device alone. */
static bool check_device(const lilac_gpu *gpu, lilac_context *context, const char *kernel,
                         const lilac_arch *arch) {
    const lilac_cuda_device *device = &gpu->device;
    const char last = arch->name[strlen(arch->name) - 1];
    const bool exact = last < '0' || last > '9';
    if (arch->vendor == LILAC_NVIDIA &&
        (exact ? arch->capability == device->capability : arch->capability <= device->capability)) {
        return true;
    }
    lilac_error(context, (lilac_position){0}, 0, "wrong-device",
                "kernel '%s' is compiled for %s, but %s has compute capability %u.%u", kernel,
                arch->name, device->name, device->capability / 10, device->capability % 10);
    if (device->arch != NULL) {
        lilac_note(context, (lilac_position){0}, 0, "compile it for %s", device->arch->name);
    }
    return false;
}

static const lilac_simt_kernel *find_kernel(const lilac_compilation *compilation,
                                            const char *name) {
    const lilac_simt_kernel *kernel = compilation->simt != NULL ? compilation->simt->kernels : NULL;
    while (kernel != NULL && name != NULL && strcmp(kernel->name, name) != 0) {
        kernel = kernel->next;
    }
    return kernel;
}

lilac_gpu_kernel *lilac_gpu_load(lilac_gpu *gpu, lilac_context *context,
                                 const lilac_compilation *compilation, const char *name,
                                 const lilac_gpu_load_options *options) {
    const lilac_simt_kernel *kernel = find_kernel(compilation, name);
    if (kernel == NULL || compilation->ptx.length == 0) {
        lilac_error(context, (lilac_position){0}, 0, "unknown-kernel",
                    "this compilation has no PTX of a kernel '%s'", name != NULL ? name : "");
        return NULL;
    }
    if (!check_device(gpu, context, kernel->name, compilation->target.arch)) {
        return NULL;
    }
    lilac_text entry;
    lilac_text_init(&entry);
    lilac_ptx_kernel_name(&entry, kernel->name);
    const lilac_gpu_program program = {.ptx = lilac_text_get(&compilation->ptx),
                                       .name = lilac_text_get(&entry),
                                       .parameter_count = kernel->parameter_count,
                                       .parameters = kernel->parameters,
                                       .num_warps = kernel->num_warps,
                                       .num_ctas = kernel->num_ctas,
                                       .shared_bytes = kernel->shared_bytes};
    lilac_gpu_kernel *loaded = lilac_gpu_load_program(gpu, context, &program, options);
    lilac_text_clear(&entry);
    return loaded;
}

uint32_t lilac_gpu_newest_ptx(const lilac_gpu *gpu, const lilac_gpu_load_options *options) {
    uint32_t cuda = lilac_cuda_version(gpu->cuda);
    if (options != NULL && options->compiler == LILAC_GPU_PTXAS) {
        cuda = lilac_ptxas_version(options->ptxas);
    }
    return lilac_ptx_version_of_cuda(cuda);
}
