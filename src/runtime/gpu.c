/* A device at work: its CUDA context, memory, streams and events.
 *
 * Every call makes the context current, does one thing and puts back what was current before, so
 * that a program's other users of CUDA in the same thread notice nothing.
 *
 * Launches run later than the calls that make them. Which kernel an error belongs to is therefore
 * known only as far as the list of those launched since everything was last waited for.
 */
#include "cuda.h"

#include <string.h>

bool lilac_gpu_enter(lilac_gpu *gpu, lilac_context *context) {
    return lilac_gpu_check(gpu, context, gpu->api->context_push(gpu->context),
                           "the CUDA context of %s cannot be entered", gpu->device.name);
}

void lilac_gpu_leave(lilac_gpu *gpu) {
    cuda_context popped;
    (void)gpu->api->context_pop(&popped); /* of what enter pushed, which cannot fail by itself */
}

/* ---- opening ----------------------------------------------------------------------------- */

static int make_context(lilac_gpu *gpu) {
    int handle = 0;
    const int result = gpu->api->device_get(&handle, (int)gpu->device.ordinal);
    if (result != 0) {
        return result;
    }
    if (gpu->sharing == LILAC_GPU_PRIMARY) {
        return gpu->api->primary_retain(&gpu->context, handle);
    }
    const int made = gpu->api->context_create(&gpu->context, 0, handle);
    if (made == 0) {
        lilac_gpu_leave(gpu); /* creating it made it current */
    }
    return made;
}

lilac_gpu *lilac_gpu_open(const lilac_cuda *cuda, lilac_context *context, uint32_t ordinal,
                          lilac_gpu_sharing sharing) {
    lilac_cuda_device device;
    if (!lilac_cuda_device_get(cuda, context, ordinal, &device)) {
        return NULL;
    }
    lilac_gpu *gpu = lilac_heap_grow(NULL, sizeof *gpu);
    *gpu = (lilac_gpu){.cuda = cuda, .api = &cuda->api, .device = device, .sharing = sharing};
    const int result = make_context(gpu);
    if (result != 0) {
        lilac_cuda_refuse(cuda, context, result, "cuda-error", "no CUDA context on device %u, %s",
                          ordinal, device.name);
        if (lilac_cuda_is_fatal(result)) {
            lilac_note(context, (lilac_position){0}, 0,
                       "a kernel of this process failed so before; the driver gives the process no "
                       "new context after that");
        }
        lilac_heap_free(gpu);
        return NULL;
    }
    return gpu;
}

void lilac_gpu_close(lilac_gpu *gpu) {
    int handle = 0;
    if (gpu == NULL) {
        return;
    }
    if (gpu->sharing == LILAC_GPU_OWN) {
        (void)gpu->api->context_destroy(gpu->context);
    } else if (gpu->api->device_get(&handle, (int)gpu->device.ordinal) == 0) {
        (void)gpu->api->primary_release(handle);
    }
    lilac_text_clear(&gpu->at_work);
    lilac_heap_free(gpu);
}

const lilac_cuda_device *lilac_gpu_device(const lilac_gpu *gpu) {
    return &gpu->device;
}

bool lilac_gpu_is_lost(const lilac_gpu *gpu) {
    return gpu->lost;
}

bool lilac_gpu_synchronize(lilac_gpu *gpu, lilac_context *context) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const bool good = lilac_gpu_check(gpu, context, gpu->api->context_synchronize(),
                                      "what was launched on %s failed", gpu->device.name);
    if (good) {
        lilac_text_reset(&gpu->at_work);
    }
    lilac_gpu_leave(gpu);
    return good;
}

/* ---- memory ------------------------------------------------------------------------------ */

static unsigned long long counted(uint64_t bytes) {
    return (unsigned long long)bytes;
}

bool lilac_gpu_alloc(lilac_gpu *gpu, lilac_context *context, uint64_t size, uint64_t *address) {
    *address = 0;
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = gpu->api->memory_alloc(address, size == 0 ? 1 : size);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "no %llu bytes of memory on %s", counted(size),
                           gpu->device.name);
}

bool lilac_gpu_free(lilac_gpu *gpu, lilac_context *context, uint64_t address) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = address == 0 ? 0 : gpu->api->memory_free(address);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "freeing memory at 0x%llx", counted(address));
}

bool lilac_gpu_write(lilac_gpu *gpu, lilac_context *context, uint64_t address, const void *bytes,
                     uint64_t size) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = size == 0 ? 0 : gpu->api->copy_to_device(address, bytes, size);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "copying %llu bytes to 0x%llx on %s",
                           counted(size), counted(address), gpu->device.name);
}

bool lilac_gpu_read(lilac_gpu *gpu, lilac_context *context, void *bytes, uint64_t address,
                    uint64_t size) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = size == 0 ? 0 : gpu->api->copy_to_host(bytes, address, size);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "copying %llu bytes from 0x%llx on %s",
                           counted(size), counted(address), gpu->device.name);
}

bool lilac_gpu_fill(lilac_gpu *gpu, lilac_context *context, uint64_t address, uint8_t value,
                    uint64_t size) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = size == 0 ? 0 : gpu->api->fill(address, value, size);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "filling %llu bytes at 0x%llx on %s",
                           counted(size), counted(address), gpu->device.name);
}

/* ---- streams and events ------------------------------------------------------------------ */

bool lilac_gpu_stream_create(lilac_gpu *gpu, lilac_context *context, lilac_gpu_stream *stream) {
    *stream = NULL;
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = gpu->api->stream_create(stream, CUDA_STREAM_NON_BLOCKING);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "no stream on %s", gpu->device.name);
}

void lilac_gpu_stream_destroy(lilac_gpu *gpu, lilac_gpu_stream stream) {
    if (stream != NULL && gpu->api->context_push(gpu->context) == 0) {
        (void)gpu->api->stream_destroy(stream);
        lilac_gpu_leave(gpu);
    }
}

bool lilac_gpu_stream_synchronize(lilac_gpu *gpu, lilac_context *context, lilac_gpu_stream stream) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = gpu->api->stream_synchronize(stream);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "what was launched on a stream of %s failed",
                           gpu->device.name);
}

bool lilac_gpu_event_create(lilac_gpu *gpu, lilac_context *context, lilac_gpu_event *event) {
    *event = NULL;
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = gpu->api->event_create(event, 0);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "no event on %s", gpu->device.name);
}

void lilac_gpu_event_destroy(lilac_gpu *gpu, lilac_gpu_event event) {
    if (event != NULL && gpu->api->context_push(gpu->context) == 0) {
        (void)gpu->api->event_destroy(event);
        lilac_gpu_leave(gpu);
    }
}

bool lilac_gpu_event_record(lilac_gpu *gpu, lilac_context *context, lilac_gpu_event event,
                            lilac_gpu_stream stream) {
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    const int result = gpu->api->event_record(event, stream);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, context, result, "recording an event on %s", gpu->device.name);
}

bool lilac_gpu_event_elapsed(lilac_gpu *gpu, lilac_context *context, lilac_gpu_event from,
                             lilac_gpu_event to, double *seconds) {
    float milliseconds = 0;
    if (!lilac_gpu_enter(gpu, context)) {
        return false;
    }
    int result = gpu->api->event_synchronize(to);
    if (result == 0) {
        result = gpu->api->event_elapsed(&milliseconds, from, to);
    }
    lilac_gpu_leave(gpu);
    *seconds = 1e-3 * (double)milliseconds;
    return lilac_gpu_check(gpu, context, result, "what was launched before an event on %s failed",
                           gpu->device.name);
}
