/* Launches with tensor maps of kernels that another library has loaded (runtime.h).
 *
 *     values ─conditions─▶ recipes ─▶ address, sizes, strides ─▶ one of the last maps? ─yes─▶ copy
 *                                                                └─no─▶ the driver encodes it, kept */
#include "cuda.h"

#include <string.h>

enum { KEPT = 8 /* maps of one parameter */ };

/* What the arguments of a launch say about a map. */
typedef struct map_key {
    uint64_t address, dims[LILAC_TENSOR_RANK], strides[LILAC_TENSOR_RANK - 1];
} map_key;

typedef struct kept_maps {
    uint32_t count, next; /* the entry that a new map replaces */
    map_key keys[KEPT];
    uint8_t encoded[KEPT][LILAC_TENSOR_MAP_BYTES];
} kept_maps;

struct lilac_mapped_kernel {
    const lilac_cuda *cuda;
    lilac_mapped_code code, one_block;
    uint32_t value_count;
    bool cooperative;
    /* For each code; no clusters: programs are one block each. */
    lilac_launch_capacity capacity, one_block_capacity;
    lilac_launch_maps recipes;
    lilac_launch_map copies[LILAC_MAPPED_MAPS];
    lilac_tensor_map maps[LILAC_MAPPED_MAPS];
    kept_maps kept[LILAC_MAPPED_MAPS];
};

static bool are_last(const lilac_mapped_description *d) {
    const uint32_t count = d->recipes->count;
    for (uint32_t i = 0; i < count; i++) {
        if (d->recipes->maps[i].parameter != d->parameter_count - count + i) {
            return false;
        }
    }
    return true;
}

/* How many clusters of `parts` blocks are resident at the same time; 0 if the driver does not say. */
static uint32_t resident_clusters(const cuda_api *api, const lilac_mapped_code *code,
                                  uint32_t parts) {
    cuda_launch_attribute size = {.kind = CUDA_LAUNCH_CLUSTER_SIZE, .value.cluster = {1, 1, parts}};
    const cuda_launch_config config = {
        .grid = {1, 1, parts},
        .block = {32 * code->num_warps, 1, 1},
        .shared_bytes = code->shared_bytes,
        .attributes = &size,
        .attribute_count = 1,
    };
    int count = 0;
    const int result = api->resident_clusters(&count, code->function, &config);
    return result == 0 && count > 0 ? (uint32_t)count : 0;
}

static void find_capacity(lilac_launch_capacity *capacity, const lilac_mapped_kernel *kernel,
                          const lilac_mapped_code *code, uint32_t multiprocessors) {
    const bool split = kernel->recipes.split.divisor > 0 && !kernel->cooperative;
    capacity->multiprocessors = multiprocessors;
    for (uint32_t i = 0; i < LILAC_LAUNCH_PART_CHOICES && split; i++) {
        capacity->clusters[i] = resident_clusters(&kernel->cuda->api, code, 1U << i);
    }
}

static void find_capacities(lilac_mapped_kernel *kernel) {
    const cuda_api *api = &kernel->cuda->api;
    const lilac_launch_maps *recipes = &kernel->recipes;
    int device = 0, multiprocessors = 0;
    if ((recipes->split.divisor == 0 && recipes->least.divisor == 0 &&
         kernel->one_block.function == NULL) ||
        api->context_device(&device) != 0 ||
        api->device_attribute(&multiprocessors, CUDA_DEVICE_MULTIPROCESSORS, device) != 0) {
        return;
    }
    find_capacity(&kernel->capacity, kernel, &kernel->code, (uint32_t)multiprocessors);
    if (kernel->one_block.function != NULL) {
        find_capacity(&kernel->one_block_capacity, kernel, &kernel->one_block,
                      (uint32_t)multiprocessors);
    }
}

lilac_mapped_kernel *lilac_mapped_create(const lilac_cuda *cuda,
                                         const lilac_mapped_description *d) {
    const uint32_t count = d->recipes->count;
    if (count == 0 || count > LILAC_MAPPED_MAPS || d->parameter_count < count ||
        d->parameter_count - count > LILAC_MAPPED_PARAMETERS || !are_last(d)) {
        return NULL;
    }
    lilac_mapped_kernel *kernel = lilac_heap_grow(NULL, sizeof *kernel);
    *kernel = (lilac_mapped_kernel){.cuda = cuda,
                                    .code = d->code,
                                    .one_block = d->one_block,
                                    .value_count = d->parameter_count - count,
                                    .cooperative = d->cooperative,
                                    .recipes = *d->recipes};
    memcpy(kernel->copies, d->recipes->maps, count * sizeof *kernel->copies);
    memcpy(kernel->maps, d->maps, count * sizeof *kernel->maps);
    kernel->recipes.maps = kernel->copies;
    find_capacities(kernel);
    return kernel;
}

void lilac_mapped_destroy(lilac_mapped_kernel *kernel) {
    lilac_heap_free(kernel);
}

/* ---- maps --------------------------------------------------------------------------------- */

static map_key key_of(const lilac_tensor_map *map) {
    map_key key = {.address = map->address};
    memcpy(key.dims, map->dims, sizeof key.dims);
    memcpy(key.strides, map->strides, sizeof key.strides);
    return key;
}

/* Copies the map of the key, if it is kept. */
static bool find(const kept_maps *kept, const map_key *key, uint8_t *bytes) {
    for (uint32_t i = 0; i < kept->count; i++) {
        if (memcmp(&kept->keys[i], key, sizeof *key) == 0) {
            memcpy(bytes, kept->encoded[i], LILAC_TENSOR_MAP_BYTES);
            return true;
        }
    }
    return false;
}

static bool encode(lilac_mapped_kernel *kernel, uint32_t number, const map_key *key,
                   uint8_t *bytes) {
    kept_maps *kept = &kernel->kept[number];
    cuda_tensor_map encoded;
    if (lilac_gpu_encode_map(&kernel->cuda->api, &kernel->maps[number], &encoded) != 0) {
        return false;
    }
    kept->keys[kept->next] = *key;
    memcpy(kept->encoded[kept->next], encoded.bytes, LILAC_TENSOR_MAP_BYTES);
    kept->next = (kept->next + 1) % KEPT;
    kept->count += kept->count < KEPT;
    memcpy(bytes, encoded.bytes, LILAC_TENSOR_MAP_BYTES);
    return true;
}

lilac_mapped_outcome lilac_mapped_prepare(lilac_mapped_kernel *kernel,
                                          lilac_mapped_launch *launch) {
    const lilac_launch_maps *recipes = &kernel->recipes;
    if (!lilac_launch_conditions_check(NULL, &recipes->conditions, launch->grid, launch->values,
                                       NULL)) {
        return LILAC_MAPPED_CONDITION;
    }
    launch->parts =
        lilac_launch_parts(&recipes->split, &kernel->capacity,
                           kernel->one_block.function != NULL ? &kernel->one_block_capacity : NULL,
                           launch->grid, launch->values);
    if (launch->parts == 1 &&
        !lilac_launch_maps_pay(&recipes->least, kernel->capacity.multiprocessors, launch->grid,
                               launch->values)) {
        return LILAC_MAPPED_FEW;
    }
    launch->one_block =
        kernel->one_block.function != NULL &&
        lilac_launch_one_block_fits(&kernel->one_block_capacity, launch->grid, launch->parts);
    for (uint32_t i = 0; i < recipes->count; i++) {
        if (!lilac_launch_map_make(NULL, &kernel->maps[i], &recipes->maps[i], launch->values, "") ||
            (launch->parts == 1 && !lilac_launch_map_pays(&recipes->maps[i], &kernel->maps[i]))) {
            return LILAC_MAPPED_LIMIT;
        }
        const map_key key = key_of(&kernel->maps[i]);
        if (!find(&kernel->kept[i], &key, launch->maps[i]) &&
            !encode(kernel, i, &key, launch->maps[i])) {
            return LILAC_MAPPED_LIMIT;
        }
    }
    return LILAC_MAPPED_READY;
}

/* ---- the launch --------------------------------------------------------------------------- */

int lilac_mapped_run(const lilac_mapped_kernel *kernel, lilac_mapped_launch *launch) {
    uint64_t no_scratch[2] = {0, 0};         /* global_scratch, profile_scratch */
    cuda_tensor_map maps[LILAC_MAPPED_MAPS]; /* aligned */
    void *places[LILAC_MAPPED_PARAMETERS + LILAC_MAPPED_MAPS + 2], **place = places;
    for (uint32_t i = 0; i < kernel->value_count; i++) {
        *place++ = &launch->values[i]; /* the first bytes are those of a narrower parameter */
    }
    for (uint32_t i = 0; i < kernel->recipes.count; i++) {
        memcpy(maps[i].bytes, launch->maps[i], sizeof maps[i].bytes);
        *place++ = &maps[i];
    }
    *place++ = &no_scratch[0];
    *place++ = &no_scratch[1];
    const lilac_mapped_code *code = launch->one_block ? &kernel->one_block : &kernel->code;
    const bool divided = launch->parts > 1; /* then the grid has one program along z */
    cuda_launch_attribute cooperative = {.kind = CUDA_LAUNCH_COOPERATIVE, .value.cooperative = 1};
    cuda_launch_attribute cluster[2] = {
        {.kind = CUDA_LAUNCH_CLUSTER_SIZE, .value.cluster = {1, 1, launch->parts}},
        {.kind = CUDA_LAUNCH_CLUSTER_POLICY, .value.policy = CUDA_CLUSTER_POLICY_SPREAD},
    };
    const cuda_launch_config config = {
        .grid = {launch->grid[0], launch->grid[1], divided ? launch->parts : launch->grid[2]},
        .block = {32 * code->num_warps, 1, 1},
        .shared_bytes = code->shared_bytes,
        .stream = launch->stream,
        .attributes = divided ? cluster : &cooperative,
        .attribute_count = divided ? 2 : kernel->cooperative,
    };
    return kernel->cuda->api.launch(&config, code->function, places, NULL);
}

bool lilac_cuda_has_context(const lilac_cuda *cuda) {
    cuda_context context = NULL;
    return cuda->api.context_get(&context) == 0 && context != NULL;
}

bool lilac_cuda_device_address(const lilac_cuda *cuda, uint64_t *address) {
    uint64_t found = 0;
    if (cuda->api.pointer_attribute(&found, CUDA_POINTER_DEVICE_POINTER, *address) != 0) {
        return false;
    }
    *address = found;
    return true;
}

const char *lilac_cuda_words(const lilac_cuda *cuda, int result) {
    const char *words = NULL;
    return cuda->api.error_string(result, &words) == 0 && words != NULL
               ? words
               : "an error that this driver has no words for";
}
