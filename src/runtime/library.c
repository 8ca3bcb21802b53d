/* The driver's library: opened, its functions found, its devices described.
 *
 *   dlopen(libcuda.so.1) ─▶ a table of functions, filled by name ─▶ cuInit ─▶ devices
 *
 * The library is never unloaded: it starts threads and leaves things behind that refer to its code.
 */
#include "cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------ */

static void put_words(lilac_text *out, const lilac_cuda *cuda, int result) {
    const char *name = NULL, *words = NULL;
    if (cuda->api.error_string(result, &words) != 0 || words == NULL) {
        words = "an error that this driver has no words for";
    }
    if (cuda->api.error_name(result, &name) != 0 || name == NULL) {
        lilac_text_printf(out, "%s (CUresult %d)", words, result);
    } else {
        lilac_text_printf(out, "%s (%s)", words, name);
    }
}

static void refuse_in_words(const lilac_cuda *cuda, lilac_context *context, int result,
                            const char *id, const char *format, va_list arguments) {
    lilac_text message;
    lilac_text_init(&message);
    lilac_text_vprintf(&message, format, arguments);
    lilac_text_puts(&message, ": ");
    put_words(&message, cuda, result);
    lilac_error(context, (lilac_position){0}, 0, id, "%s", lilac_text_get(&message));
    lilac_text_clear(&message);
}

bool lilac_cuda_refuse(const lilac_cuda *cuda, lilac_context *context, int result, const char *id,
                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    refuse_in_words(cuda, context, result, id, format, arguments);
    va_end(arguments);
    return false;
}

bool lilac_cuda_is_fatal(int result) {
    return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_TIMEOUT ||
           result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_ASSERT ||
           result == CUDA_ERROR_ECC_UNCORRECTABLE || result == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED);
}

bool lilac_gpu_check(lilac_gpu *gpu, lilac_context *context, int result, const char *format, ...) {
    va_list arguments;
    if (result == 0) {
        return true;
    }
    va_start(arguments, format);
    refuse_in_words(gpu->cuda, context, result, "cuda-error", format, arguments);
    va_end(arguments);
    if (lilac_cuda_is_fatal(result)) {
        if (gpu->at_work.length != 0) {
            lilac_note(context, (lilac_position){0}, 0, "launched since all was last well: %s",
                       lilac_text_get(&gpu->at_work));
        }
        gpu->lost = true;
    }
    return false;
}

/* ---- the library ------------------------------------------------------------------------- */

/* ISO C has no conversion from an object's address to a function's; POSIX says that they are of
 * one size. */
static bool find_function(void *library, const char *symbol, void *function, size_t size) {
    void *const address = dlsym(library, symbol);
    memcpy(function, &address, size);
    return address != NULL;
}

static const char *find_functions(cuda_api *api, void *library) {
    const char *missing = NULL;
#define CUDA(field, symbol, parameters)                                                            \
    if (!find_function(library, symbol, &api->field, sizeof api->field)) {                         \
        missing = symbol;                                                                          \
    }
#include "cuda_api.def"
#undef CUDA
    return missing;
}

static bool open_library(lilac_cuda *cuda, lilac_context *context, const char *name) {
    const lilac_position nowhere = {0};
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *why = dlerror();
        lilac_error(context, nowhere, 0, "no-cuda-library", "the CUDA driver cannot be loaded: %s",
                    why != NULL ? why : name);
        lilac_note(context, nowhere, 0,
                   "it comes with NVIDIA's driver; LILAC_LIBCUDA names it where it is elsewhere");
        return false;
    }
    const char *missing = find_functions(&cuda->api, library);
    if (missing != NULL) {
        lilac_error(context, nowhere, 0, "no-cuda-library",
                    "%s has no function %s: it is no CUDA driver, or older than CUDA 12", name,
                    missing);
        return false;
    }
    return true;
}

static bool start_driver(lilac_cuda *cuda, lilac_context *context) {
    const int started = cuda->api.initialise(0);
    if (started == CUDA_ERROR_NO_DEVICE) { /* which cuInit says, too, of a machine without one */
        return cuda->api.driver_version(&cuda->version) == 0;
    }
    if (started != 0) {
        return lilac_cuda_refuse(cuda, context, started, "cuda-error",
                                 "the CUDA driver does not start");
    }
    int result = cuda->api.driver_version(&cuda->version);
    if (result == 0) {
        result = cuda->api.device_count(&cuda->device_count);
    }
    return result == 0 || lilac_cuda_refuse(cuda, context, result, "cuda-error",
                                            "the CUDA driver does not say what there is");
}

lilac_cuda *lilac_cuda_open(lilac_context *context, const char *library) {
    const char *named = getenv("LILAC_LIBCUDA");
    if (library == NULL) {
        library = named != NULL && *named != '\0' ? named : "libcuda.so.1";
    }
    lilac_cuda *cuda = lilac_heap_grow(NULL, sizeof *cuda);
    *cuda = (lilac_cuda){0};
    if (!open_library(cuda, context, library) || !start_driver(cuda, context)) {
        lilac_heap_free(cuda);
        return NULL;
    }
    return cuda;
}

void lilac_cuda_close(lilac_cuda *cuda) {
    lilac_heap_free(cuda);
}

uint32_t lilac_cuda_version(const lilac_cuda *cuda) {
    return (uint32_t)cuda->version;
}

uint32_t lilac_cuda_device_count(const lilac_cuda *cuda) {
    return (uint32_t)cuda->device_count;
}

/* ---- devices ----------------------------------------------------------------------------- */

/* A row whose PTX only its own device takes: sm_90a. */
static bool is_for_one_device(const lilac_arch *arch) {
    const size_t length = strlen(arch->name);
    return arch->name[length - 1] < '0' || arch->name[length - 1] > '9';
}

/* The device's own row, the last where it has several (sm_90, sm_90a); else the newest before it
 * whose PTX later devices take. */
static const lilac_arch *target_of(uint32_t capability) {
    const lilac_arch *best = NULL;
    for (size_t i = 0; lilac_arch_at(i) != NULL; i++) {
        const lilac_arch *arch = lilac_arch_at(i);
        const bool own = arch->capability == capability;
        const bool before = arch->capability < capability && !is_for_one_device(arch);
        if (arch->vendor == LILAC_NVIDIA && (own || before) &&
            (best == NULL || arch->capability >= best->capability)) {
            best = arch;
        }
    }
    return best;
}

/* Facts that are plain attributes; the first error is what is returned. */
static int read_attributes(const cuda_api *api, int device, lilac_cuda_device *facts) {
    int major = 0, minor = 0, kilohertz = 0, bits = 0, l2 = 0;
    const struct {
        int attribute;
        void *value; /* an int or a uint32_t */
    } rows[] = {
        {CUDA_DEVICE_CAPABILITY_MAJOR, &major},
        {CUDA_DEVICE_CAPABILITY_MINOR, &minor},
        {CUDA_DEVICE_MEMORY_KILOHERTZ, &kilohertz},
        {CUDA_DEVICE_MEMORY_BUS_BITS, &bits},
        {CUDA_DEVICE_L2_BYTES, &l2},
        {CUDA_DEVICE_MULTIPROCESSORS, &facts->multiprocessors},
        {CUDA_DEVICE_SHARED_BYTES, &facts->shared_bytes},
        {CUDA_DEVICE_MAX_THREADS, &facts->max_threads},
        {CUDA_DEVICE_MAX_GRID_X, &facts->max_grid[0]},
        {CUDA_DEVICE_MAX_GRID_X + 1, &facts->max_grid[1]},
        {CUDA_DEVICE_MAX_GRID_X + 2, &facts->max_grid[2]},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int value = 0;
        const int result = api->device_attribute(&value, rows[i].attribute, device);
        if (result != 0) {
            return result;
        }
        memcpy(rows[i].value, &value, sizeof value);
    }
    facts->capability = (uint32_t)(10 * major + minor);
    facts->l2_bytes = (uint64_t)l2;
    facts->bandwidth = 2.0 * 1e3 * kilohertz * bits / 8; /* twice a clock */
    return 0;
}

bool lilac_cuda_device_get(const lilac_cuda *cuda, lilac_context *context, uint32_t ordinal,
                           lilac_cuda_device *device) {
    const cuda_api *api = &cuda->api;
    int handle = 0;
    size_t bytes = 0;
    *device = (lilac_cuda_device){.ordinal = ordinal};
    if (ordinal >= (uint32_t)cuda->device_count) {
        lilac_error(context, (lilac_position){0}, 0, "no-cuda-device",
                    "there is no device %u: the CUDA driver finds %d", ordinal, cuda->device_count);
        return false;
    }
    int result = api->device_get(&handle, (int)ordinal);
    if (result == 0) {
        result = api->device_name(device->name, (int)sizeof device->name, handle);
    }
    if (result == 0) {
        result = api->device_memory(&bytes, handle);
        device->memory_bytes = bytes;
    }
    if (result == 0) {
        result = read_attributes(api, handle, device);
    }
    device->arch = target_of(device->capability);
    return result == 0 || lilac_cuda_refuse(cuda, context, result, "cuda-error",
                                            "the CUDA driver does not describe device %u", ordinal);
}
