/* How long a launch takes on the device, with its data in memory and not in a cache.
 *
 *   flush  event  KERNEL  event   flush  event  KERNEL  event   …   all put into the stream at once
 *
 * The flush overwrites more than the second-level cache holds; it also keeps the device busy while
 * the host puts the next pieces into the stream, so the host's own time is not measured. A first
 * few launches say how many there are to be.
 */
#include "cuda.h"

#include <stdlib.h>

enum { PROBES = 5, FEWEST = 3, BATCH = 64 };

typedef struct stopwatch {
    lilac_gpu *gpu;
    lilac_context *context;
    lilac_gpu_kernel *kernel;
    const lilac_gpu_launch *launch;
    const lilac_gpu_timing_options *options;
    uint64_t flush; /* the memory to overwrite, or 0 */
    lilac_gpu_event before[BATCH], after[BATCH];
} stopwatch;

void lilac_gpu_timing_options_init(lilac_gpu_timing_options *options, const lilac_gpu *gpu) {
    const uint64_t usual = UINT64_C(256) << 20, least = 4 * gpu->device.l2_bytes;
    *options = (lilac_gpu_timing_options){.warm_up = 0.025,
                                          .measure = 0.1,
                                          .most_launches = 1000,
                                          .flush_bytes = usual > least ? usual : least};
}

static bool flush(stopwatch *watch) {
    lilac_gpu *gpu = watch->gpu;
    if (watch->flush == 0) {
        return true;
    }
    if (!lilac_gpu_enter(gpu, watch->context)) {
        return false;
    }
    const int result =
        gpu->api->fill_async(watch->flush, 0, watch->options->flush_bytes, watch->launch->stream);
    lilac_gpu_leave(gpu);
    return lilac_gpu_check(gpu, watch->context, result, "overwriting the cache of %s",
                           gpu->device.name);
}

/* `count` launches, at most BATCH, and the seconds of each. */
static bool run_batch(stopwatch *watch, uint32_t count, double *seconds) {
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++) {
        good = flush(watch) &&
               lilac_gpu_event_record(watch->gpu, watch->context, watch->before[i],
                                      watch->launch->stream) &&
               lilac_gpu_run(watch->kernel, watch->context, watch->launch) &&
               lilac_gpu_event_record(watch->gpu, watch->context, watch->after[i],
                                      watch->launch->stream);
    }
    for (uint32_t i = 0; i < count && good; i++) {
        good = lilac_gpu_event_elapsed(watch->gpu, watch->context, watch->before[i],
                                       watch->after[i], &seconds[i]);
    }
    return good;
}

static bool run_all(stopwatch *watch, uint32_t count, double *seconds, double from, double to) {
    for (uint32_t done = 0; done < count;) {
        const uint32_t batch = count - done < BATCH ? count - done : BATCH;
        if (!run_batch(watch, batch, &seconds[done])) {
            return false;
        }
        done += batch;
        if (watch->options->progress != NULL) {
            watch->options->progress(watch->options->data,
                                     from + (to - from) * (double)done / (double)count);
        }
    }
    return true;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which that share of a sorted list lies, between two neighbours by proportion. */
static double quantile(const double *sorted, uint32_t count, double share) {
    const double place = share * (count - 1);
    const uint32_t low = (uint32_t)place, high = low + 1 < count ? low + 1 : low;
    return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

static void summarise(lilac_gpu_timing *timing, double *seconds, uint32_t count) {
    qsort(seconds, count, sizeof *seconds, compare);
    *timing = (lilac_gpu_timing){.launches = count,
                                 .median = quantile(seconds, count, 0.5),
                                 .low = quantile(seconds, count, 0.05),
                                 .high = quantile(seconds, count, 0.95),
                                 .least = seconds[0],
                                 .most = seconds[count - 1]};
}

/* How many launches of `each` seconds fill that time. */
static uint32_t fill_time(double time, double each, uint32_t most) {
    const double count = each > 0 ? time / each : most;
    return count < FEWEST ? FEWEST : count < most ? (uint32_t)count : most;
}

static bool measure(stopwatch *watch, lilac_gpu_timing *timing) {
    const lilac_gpu_timing_options *options = watch->options;
    const uint32_t most = options->most_launches < FEWEST ? FEWEST : options->most_launches;
    double probes[PROBES], *seconds = NULL;
    if (!run_batch(watch, PROBES, probes)) {
        return false;
    }
    qsort(probes, PROBES, sizeof *probes, compare);
    const double each = probes[PROBES / 2];
    const uint32_t warm = fill_time(options->warm_up, each, most);
    const uint32_t count = fill_time(options->measure, each, most);
    seconds = lilac_heap_grow(NULL, (warm > count ? warm : count) * sizeof *seconds);
    const double share = (double)warm / (double)(warm + count);
    const bool good =
        run_all(watch, warm, seconds, 0, share) && run_all(watch, count, seconds, share, 1);
    if (good) {
        summarise(timing, seconds, count);
    }
    lilac_heap_free(seconds);
    return good;
}

bool lilac_gpu_time(lilac_gpu_kernel *kernel, lilac_context *context,
                    const lilac_gpu_launch *launch, const lilac_gpu_timing_options *options,
                    lilac_gpu_timing *timing) {
    lilac_gpu *gpu = kernel->gpu;
    stopwatch watch = {
        .gpu = gpu, .context = context, .kernel = kernel, .launch = launch, .options = options};
    *timing = (lilac_gpu_timing){0};
    bool good = options->flush_bytes == 0 ||
                lilac_gpu_alloc(gpu, context, options->flush_bytes, &watch.flush);
    for (uint32_t i = 0; i < BATCH && good; i++) {
        good = lilac_gpu_event_create(gpu, context, &watch.before[i]) &&
               lilac_gpu_event_create(gpu, context, &watch.after[i]);
    }
    good = good && measure(&watch, timing);
    for (uint32_t i = 0; i < BATCH; i++) {
        lilac_gpu_event_destroy(gpu, watch.before[i]);
        lilac_gpu_event_destroy(gpu, watch.after[i]);
    }
    if (watch.flush != 0 && !gpu->lost) {
        good = lilac_gpu_free(gpu, context, watch.flush) && good;
    }
    return good;
}
