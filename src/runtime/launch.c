/* A launch: its grid, its parameters as the kernels' ABI has them, scratch memory, the call.
 *
 *   parameters   p0, p1, …, global scratch, profile scratch
 *   grid         programs along x, each num_ctas blocks, which are a cluster; or each several blocks
 *                along z, which are one and divide a sum of products
 *
 * Scratch memory is allocated and freed in the launch's own stream, so launches on several streams
 * do not share it and nobody waits.
 */
#include "cuda.h"

#include <string.h>

static bool refuse_count(const lilac_gpu_kernel *kernel, lilac_context *context, uint32_t given) {
    lilac_error(context, (lilac_position){0}, 0, "argument-count",
                "kernel '%s' has %u parameters, and %u arguments are given", kernel->program.name,
                kernel->program.parameter_count, given);
    return false;
}

/* The grid in blocks. */
static bool read_grid(const lilac_gpu_kernel *kernel, lilac_context *context,
                      const lilac_gpu_launch *launch, unsigned blocks[3]) {
    const lilac_cuda_device *device = &kernel->gpu->device;
    const uint32_t parts = launch->parts > 1 ? launch->parts : 1;
    if (parts > 1 && (kernel->program.num_ctas > 1 || launch->grid[2] > 1)) {
        lilac_error(context, (lilac_position){0}, 0, "grid-size",
                    "kernel '%s': %u blocks for each program, with %u blocks a cluster and %u "
                    "programs along z; both must be 1",
                    kernel->program.name, parts, kernel->program.num_ctas, launch->grid[2]);
        return false;
    }
    for (int i = 0; i < 3; i++) {
        const uint64_t count = (uint64_t)launch->grid[i] * (i == 0   ? kernel->program.num_ctas
                                                            : i == 2 ? parts
                                                                     : 1);
        if (count > device->max_grid[i]) {
            lilac_error(context, (lilac_position){0}, 0, "grid-size",
                        "kernel '%s': %llu blocks along %c, and %s runs at most %u",
                        kernel->program.name, (unsigned long long)count, "xyz"[i], device -> name,
                        device -> max_grid[i]);
            return false;
        }
        blocks[i] = (unsigned)count;
    }
    return true;
}

/* Every pointer must be one that the device can reach, so that one to the host's memory is an error
 * here and not one of the whole context. A null pointer may be there for a kernel that does not
 * look at it. */
static bool check_pointers(const lilac_gpu_kernel *kernel, lilac_context *context,
                           const lilac_gpu_launch *launch) {
    lilac_gpu *gpu = kernel->gpu;
    for (uint32_t i = 0; i < kernel->program.parameter_count; i++) {
        uint64_t reached = 0;
        const lilac_simt_parameter *parameter = &kernel->program.parameters[i];
        const uint64_t address = parameter->is_tensor_map
                                     ? launch->tensor_maps[launch->arguments[i]].address
                                     : launch->arguments[i];
        if ((!parameter->is_pointer && !parameter->is_tensor_map) || address == 0) {
            continue;
        }
        const int result =
            gpu->api->pointer_attribute(&reached, CUDA_POINTER_DEVICE_POINTER, address);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            lilac_cuda_refuse(gpu->cuda, context, result, "not-device-memory",
                              "kernel '%s': %s does not reach the address 0x%llx of parameter %u, "
                              "'%s' (is it the host's?)",
                              kernel->program.name, gpu->device.name, (unsigned long long)address,
                              i, kernel->program.parameters[i].name);
            return false;
        }
        if (!lilac_gpu_check(gpu, context, result, "kernel '%s': parameter %u, '%s'",
                             kernel->program.name, i, kernel->program.parameters[i].name)) {
            return false;
        }
    }
    return true;
}

/* ---- scratch memory ---------------------------------------------------------------------- */

enum { SCRATCH_ALIGNMENT = 256 }; /* that the driver gives */

static bool alloc_scratch(const lilac_gpu_kernel *kernel, lilac_context *context,
                          uint64_t block_bytes, uint32_t alignment, const unsigned blocks[3],
                          lilac_gpu_stream stream, uint64_t *address) {
    const uint64_t align = alignment != 0 ? alignment : 1;
    const uint64_t count = (uint64_t)blocks[0] * blocks[1] * blocks[2];
    uint64_t size = 0;
    *address = 0;
    if (block_bytes == 0) {
        return true;
    }
    if (align > SCRATCH_ALIGNMENT ||
        __builtin_mul_overflow((block_bytes + align - 1) / align, align * count, &size)) {
        lilac_error(context, (lilac_position){0}, 0, "scratch-memory",
                    "kernel '%s': %llu bytes of scratch memory, aligned to %llu, for each of %llu "
                    "blocks cannot be had",
                    kernel->program.name, (unsigned long long)block_bytes,
                    (unsigned long long)align, (unsigned long long)count);
        return false;
    }
    return lilac_gpu_check(kernel->gpu, context,
                           kernel->gpu->api->memory_alloc_async(address, size, stream),
                           "kernel '%s': no %llu bytes of scratch memory", kernel->program.name,
                           (unsigned long long)size);
}

static bool free_scratch(const lilac_gpu_kernel *kernel, lilac_context *context, uint64_t address,
                         lilac_gpu_stream stream) {
    return address == 0 ||
           lilac_gpu_check(kernel->gpu, context,
                           kernel->gpu->api->memory_free_async(address, stream),
                           "kernel '%s': freeing its scratch memory", kernel->program.name);
}

/* ---- the call ---------------------------------------------------------------------------- */

enum { MOST_NAMES = 2000 }; /* bytes of them */

/* Adds a kernel to those that are at work. The names in the list are whole words between ", ". */
static void remember(lilac_gpu *gpu, const char *name) {
    const size_t length = strlen(name);
    const char *list = lilac_text_get(&gpu->at_work);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        const bool begins = at == list || at[-1] == ' ';
        if (begins && (at[length] == '\0' || at[length] == ',')) {
            return;
        }
    }
    if (gpu->at_work.length > MOST_NAMES) { /* the latest are the likelier ones */
        lilac_text_reset(&gpu->at_work);
        lilac_text_puts(&gpu->at_work, "…");
    }
    lilac_text_puts(&gpu->at_work, gpu->at_work.length == 0 ? "" : ", ");
    lilac_text_put(&gpu->at_work, name, length);
}

static bool call(lilac_gpu_kernel *kernel, lilac_context *context, const unsigned blocks[3],
                 const lilac_gpu_launch *launch) {
    const lilac_gpu_program *program = &kernel->program;
    const bool divided = launch->parts > 1;
    cuda_launch_attribute cluster[2] = {
        {.kind = CUDA_LAUNCH_CLUSTER_SIZE,
         .value.cluster = {program->num_ctas, 1, divided ? launch->parts : 1}},
        {.kind = CUDA_LAUNCH_CLUSTER_POLICY, .value.policy = CUDA_CLUSTER_POLICY_SPREAD},
    };
    const cuda_launch_config config = {
        .grid = {blocks[0], blocks[1], blocks[2]},
        .block = {32 * program->num_warps, 1, 1},
        .shared_bytes = program->shared_bytes,
        .stream = launch->stream,
        .attributes = cluster,
        .attribute_count = program->num_ctas > 1 || divided ? 2 : 0,
    };
    const int result = kernel->gpu->api->launch(&config, kernel->function, kernel->places, NULL);
    if (result == 0) {
        remember(kernel->gpu, program->name);
    }
    return lilac_gpu_check(kernel->gpu, context, result,
                           "kernel '%s' cannot be launched: %u × %u × %u blocks of %u threads, %u "
                           "bytes of shared memory, %u blocks a cluster",
                           program->name, blocks[0], blocks[1], blocks[2], config.block[0],
                           program->shared_bytes, divided ? launch->parts : program->num_ctas);
}

static bool call_with_scratch(lilac_gpu_kernel *kernel, lilac_context *context,
                              const lilac_gpu_launch *launch, const unsigned blocks[3]) {
    const lilac_gpu_program *program = &kernel->program;
    const uint32_t count = program->parameter_count;
    uint64_t *scratch = &kernel->bits[count];
    bool good = alloc_scratch(kernel, context, program->global_scratch_bytes,
                              program->global_scratch_align, blocks, launch->stream, &scratch[0]);
    scratch[1] = 0;
    good =
        good && alloc_scratch(kernel, context, program->profile_scratch_bytes,
                              program->profile_scratch_align, blocks, launch->stream, &scratch[1]);
    cuda_tensor_map *map = kernel->maps;
    for (uint32_t i = 0; i < count + 2; i++) {
        if (i < count) {
            kernel->bits[i] = launch->arguments[i];
        }
        const bool is_map = i < count && program->parameters[i].is_tensor_map;
        kernel->places[i] = is_map ? (void *)map++ : &kernel->bits[i];
    }
    good = good && call(kernel, context, blocks, launch);
    good = free_scratch(kernel, context, scratch[0], launch->stream) && good;
    return free_scratch(kernel, context, scratch[1], launch->stream) && good;
}

bool lilac_gpu_run(lilac_gpu_kernel *kernel, lilac_context *context,
                   const lilac_gpu_launch *launch) {
    unsigned blocks[3];
    if (launch->argument_count != kernel->program.parameter_count) {
        return refuse_count(kernel, context, launch->argument_count);
    }
    if (!read_grid(kernel, context, launch, blocks)) {
        return false;
    }
    if (blocks[0] == 0 || blocks[1] == 0 || blocks[2] == 0) {
        return true;
    }
    if (!lilac_gpu_enter(kernel->gpu, context)) {
        return false;
    }
    const bool good = lilac_gpu_encode_maps(kernel, context, launch) &&
                      check_pointers(kernel, context, launch) &&
                      call_with_scratch(kernel, context, launch, blocks);
    lilac_gpu_leave(kernel->gpu);
    return good;
}
