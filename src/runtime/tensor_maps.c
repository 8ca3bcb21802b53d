/* Tensor maps of a launch, from their descriptions to the 128 bytes that the device reads.
 *
 * The format of these bytes is the driver's own, so it encodes them. */
#include "cuda.h"

static int promotion_of(uint32_t bytes) {
    return bytes == 0 ? 0 : bytes == 64 ? 1 : bytes == 128 ? 2 : 3;
}

int lilac_gpu_encode_map(const cuda_api *api, const lilac_tensor_map *map,
                         cuda_tensor_map *encoded) {
    enum { NO_INTERLEAVE };
    return api->tensor_map_encode(encoded->bytes, map->element, map->rank,
                                  (void *)(uintptr_t)map->address, map->dims, map->strides,
                                  map->box, map->element_strides, NO_INTERLEAVE, map->swizzle,
                                  promotion_of(map->l2_promotion), map->fill);
}

static bool encode(lilac_gpu_kernel *kernel, lilac_context *context, uint32_t parameter,
                   const lilac_tensor_map *map, cuda_tensor_map *encoded) {
    const char *name = kernel->program.parameters[parameter].name;
    if (!lilac_tensor_map_check(context, map, name)) {
        return false;
    }
    const int result = lilac_gpu_encode_map(kernel->gpu->api, map, encoded);
    return lilac_gpu_check(kernel->gpu, context, result,
                           "kernel '%s': the tensor map of parameter %u, '%s', cannot be encoded",
                           kernel->program.name, parameter, name);
}

bool lilac_gpu_encode_maps(lilac_gpu_kernel *kernel, lilac_context *context,
                           const lilac_gpu_launch *launch) {
    cuda_tensor_map *next = kernel->maps;
    for (uint32_t i = 0; i < kernel->program.parameter_count; i++) {
        const uint64_t number = launch->arguments[i];
        if (!kernel->program.parameters[i].is_tensor_map) {
            continue;
        }
        if (number >= launch->tensor_map_count) {
            lilac_error(
                context, (lilac_position){0}, 0, "tensor-map",
                "kernel '%s': parameter %u, '%s', is tensor map %llu, and the launch has %u",
                kernel->program.name, i, kernel->program.parameters[i].name,
                (unsigned long long)number, launch->tensor_map_count);
            return false;
        }
        if (!encode(kernel, context, i, &launch->tensor_maps[number], next++)) {
            return false;
        }
    }
    return true;
}
