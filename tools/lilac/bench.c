/* lilac bench: the run time and the compile time of a kernel on a GPU.
 *
 *   run       the median of many launches with cold caches, its spread, and the bytes per second
 *             that the kernel must move
 *   compile   TTIR to PTX here; PTX to a loaded module by the driver and, if there is a ptxas, by
 *             ptxas: medians of a few compilations without the driver's cache of compiled kernels
 */
#define _POSIX_C_SOURCE 200809L /* setenv, clock_gettime, isatty */

#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COMPILATIONS = 5 };

typedef struct bench_request {
    launch_request launch;
    gpu_options gpu;
    const char *bytes, *seconds;
    uint32_t launches;
    bool warm;
    uint64_t byte_count; /* 0: those of the buffers */
    double measure;
} bench_request;

/* One way from PTX to a loaded module. */
typedef struct code_result {
    lilac_gpu_kernel
        *kernel;    /* its last one, kept for its facts; NULL: this compiler is not here */
    double seconds; /* the median */
} code_result;

typedef struct bench_result {
    lilac_gpu_timing timing;
    uint64_t bytes;
    double compile_seconds; /* TTIR to PTX */
    code_result driver, ptxas;
} bench_result;

/* ---- progress ---------------------------------------------------------------------------- */

/* A progress line on a terminal, which each update overwrites. */
static void show_progress(const char *what, int percent) {
    if (isatty(STDERR_FILENO) == 1) {
        fprintf(stderr, "\r\033[K%s %d %%", what, percent);
        fflush(stderr);
    }
}

static void hide_progress(void) {
    if (isatty(STDERR_FILENO) == 1) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

static void show_launches(void *data, double done) {
    (void)data;
    show_progress("launches", (int)(100 * done));
}

/* ---- compile time ------------------------------------------------------------------------ */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* The same text again, each time in a context of its own as a program would. */
static bool time_lilac(const prepared_launch *prepared, const lilac_options *options,
                       double *seconds) {
    double times[COMPILATIONS];
    size_t length;
    const char *bytes = lilac_source_bytes(prepared->context, prepared->source, &length);
    bool good = true;
    for (uint32_t i = 0; i < COMPILATIONS && good; i++) {
        const double begin = now();
        lilac_context *context = lilac_context_create();
        lilac_compilation compilation = {0};
        const uint32_t source = lilac_source_add(context, "again", bytes, length);
        good = source != 0 && launch_compile(&compilation, context, source, options);
        times[i] = now() - begin;
        lilac_compilation_clear(&compilation);
        lilac_context_destroy(context);
    }
    *seconds = median(times, COMPILATIONS);
    return good;
}

static bool time_compiler(gpu_launch *gpu, const prepared_launch *prepared,
                          lilac_gpu_compiler compiler, code_result *result) {
    const lilac_gpu_load_options options = {.compiler = compiler};
    double times[COMPILATIONS];
    for (uint32_t i = 0; i < COMPILATIONS; i++) {
        lilac_gpu_unload(result->kernel);
        result->kernel = lilac_gpu_load(gpu->gpu, prepared->context, &prepared->compilation,
                                        prepared->kernel->name, &options);
        if (result->kernel == NULL) {
            return false;
        }
        times[i] = lilac_gpu_kernel_facts_get(result->kernel)->seconds;
        show_progress(compiler == LILAC_GPU_PTXAS ? "ptxas" : "the driver's compiler",
                      (int)(100 * (i + 1) / COMPILATIONS));
    }
    result->seconds = median(times, COMPILATIONS);
    return true;
}

/* If ptxas fails, its output is printed and the other measurements are reported. */
static bool time_compilers(gpu_launch *gpu, const prepared_launch *prepared, bench_result *result) {
    lilac_text path;
    lilac_text_init(&path);
    const bool found = lilac_ptxas_find(&path);
    lilac_text_clear(&path);
    if (!time_compiler(gpu, prepared, LILAC_GPU_DRIVER, &result->driver)) {
        return false;
    }
    if (found) {
        (void)time_compiler(gpu, prepared, LILAC_GPU_PTXAS, &result->ptxas);
    }
    return true;
}

/* ---- reports ----------------------------------------------------------------------------- */

static void put_compiler(lilac_text *out, const char *name, const code_result *result) {
    if (result->kernel == NULL) {
        return;
    }
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(result->kernel);
    lilac_text_printf(out, "%-12s%9.2f ms   PTX to a loaded module, %u registers, ", name,
                      1e3 * result->seconds, facts->registers);
    if (facts->spills_known) {
        lilac_text_printf(out, "%u + %u bytes spilled and read again\n", facts->spill_stores,
                          facts->spill_loads);
    } else {
        lilac_text_printf(out, "%u bytes of local memory\n", facts->local_bytes);
    }
}

static void put_table(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared,
                      const bench_result *result) {
    const lilac_gpu_timing *timing = &result->timing;
    const double rate = (double)result->bytes / timing->median;
    const double most = lilac_gpu_device(gpu->gpu)->bandwidth;
    gpu_put_title(out, gpu, prepared);
    lilac_text_printf(
        out, "%-12s%9.1f µs   median of %u launches; 5 %% under %.1f, 95 %% under %.1f\n", "time",
        1e6 * timing->median, timing->launches, 1e6 * timing->low, 1e6 * timing->high);
    lilac_text_printf(out, "%-12s%9.3f TB/s %llu bytes", "bandwidth", 1e-12 * rate,
                      (unsigned long long)result->bytes);
    if (most > 0) {
        lilac_text_printf(out, ", %.1f %% of the %.2f TB/s of its pins", 100 * rate / most,
                          1e-12 * most);
    }
    lilac_text_printf(out, "\n%-12s%9.2f ms   TTIR to PTX\n", "lilac",
                      1e3 * result->compile_seconds);
    put_compiler(out, "driver", &result->driver);
    put_compiler(out, "ptxas", &result->ptxas);
}

/* The facts of the last compilation, with the median of all. */
static void put_compiler_json(lilac_text *out, const code_result *result) {
    lilac_gpu_kernel_facts facts = *lilac_gpu_kernel_facts_get(result->kernel);
    facts.seconds = result->seconds;
    gpu_put_code_json(out, &facts);
}

static void put_json(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared,
                     const bench_result *result) {
    const lilac_gpu_timing *timing = &result->timing;
    lilac_text_char(out, '{');
    gpu_put_launch_json(out, gpu, prepared);
    lilac_text_printf(out,
                      ", \"launches\": %u, \"seconds\": {\"median\": %.9f, \"low\": %.9f, "
                      "\"high\": %.9f, \"least\": %.9f, \"most\": %.9f}, \"bytes\": %llu, "
                      "\"bytes_per_second\": %.6g, \"code\": ",
                      timing->launches, timing->median, timing->low, timing->high, timing->least,
                      timing->most, (unsigned long long)result->bytes,
                      (double)result->bytes / timing->median);
    gpu_put_code_json(out, lilac_gpu_kernel_facts_get(gpu->kernel));
    lilac_text_printf(out,
                      ", \"compile\": {\"lilac\": %.9f, \"driver\": ", result->compile_seconds);
    put_compiler_json(out, &result->driver);
    lilac_text_puts(out, ", \"ptxas\": ");
    if (result->ptxas.kernel != NULL) {
        put_compiler_json(out, &result->ptxas);
    } else {
        lilac_text_puts(out, "null");
    }
    lilac_text_puts(out, "}}\n");
}

/* ---- measuring --------------------------------------------------------------------------- */

static uint64_t buffer_bytes(const bound_arguments *arguments) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < arguments->buffer_count; i++) {
        bytes += arguments->buffers[i].size;
    }
    return bytes;
}

static bool time_launches(const bench_request *request, gpu_launch *gpu,
                          const prepared_launch *prepared, lilac_gpu_timing *timing) {
    lilac_gpu_timing_options options;
    lilac_gpu_timing_options_init(&options, gpu->gpu);
    options.progress = show_launches;
    options.measure = request->measure;
    if (request->launches != 0) {
        options.most_launches = request->launches;
    }
    if (request->warm) {
        options.flush_bytes = 0;
    }
    return lilac_gpu_time(gpu->kernel, prepared->context, &gpu->launch, &options, timing);
}

static bool measure(const bench_request *request, gpu_launch *gpu, prepared_launch *prepared,
                    lilac_options *options, bench_result *result) {
    if (!gpu_open(gpu, prepared, &request->gpu, options) || !launch_prepare(prepared, options)) {
        return false;
    }
    print_diagnostics(prepared->context); /* warnings of the compilation */
    result->bytes =
        request->byte_count != 0 ? request->byte_count : buffer_bytes(&prepared->arguments);
    return time_lilac(prepared, options, &result->compile_seconds) &&
           gpu_load(gpu, prepared, &request->gpu) &&
           time_launches(request, gpu, prepared, &result->timing) &&
           time_compilers(gpu, prepared, result);
}

static int bench_file(const bench_request *request, lilac_options *options) {
    prepared_launch prepared;
    gpu_launch gpu = {0};
    bench_result result = {0};
    lilac_text text;
    lilac_text_init(&text);
    int status = STATUS_REFUSED;
    if (launch_read(&prepared, &request->launch)) {
        const bool good = measure(request, &gpu, &prepared, options, &result);
        hide_progress();
        if (good) {
            (request->launch.json ? put_json : put_table)(&text, &gpu, &prepared, &result);
            status =
                file_write(NULL, lilac_text_get(&text), text.length) ? STATUS_DONE : STATUS_REFUSED;
        }
        if (prepared.arguments.misused) {
            status = STATUS_USAGE;
        }
        print_diagnostics(prepared.context);
    }
    if ((status == STATUS_REFUSED || status == STATUS_USAGE) && request->launch.json) {
        (void)file_write(NULL, "null\n", 5);
    }
    lilac_gpu_unload(result.driver.kernel);
    lilac_gpu_unload(result.ptxas.kernel);
    gpu_close(&gpu);
    launch_clear(&prepared);
    lilac_text_clear(&text);
    return status;
}

/* ---- the command line -------------------------------------------------------------------- */

static int check_numbers(const subcommand *command, bench_request *request) {
    char *end = NULL;
    request->measure = 0.1;
    if (request->bytes != NULL && (!read_number(request->bytes, UINT64_MAX, &request->byte_count) ||
                                   request->byte_count == 0)) {
        return usage_error(command, "--bytes takes a number of bytes, not '%s'", request->bytes);
    }
    if (request->seconds != NULL) {
        request->measure = strtod(request->seconds, &end);
        if (end == request->seconds || *end != '\0' || !(request->measure > 0) ||
            request->measure > 3600) {
            return usage_error(command, "--seconds takes a time, not '%s'", request->seconds);
        }
    }
    return -1;
}

static int bench_check(const subcommand *command, bench_request *request) {
    lilac_options options;
    bool is_cuda;
    lilac_options_init(&options);
    int status = gpu_options_check(command, &request->gpu, &is_cuda);
    if (status < 0 && !is_cuda) {
        status = usage_error(command, "--device: there is no GPU '%s': cuda, or cuda:N",
                             request->gpu.device);
    }
    if (status < 0) {
        status = check_numbers(command, request);
    }
    if (status < 0) {
        status = launch_request_check(command, &request->launch, &options, "measured");
    }
    if (status < 0) {
        /* The driver keeps what it compiled, which would be measured instead of its compiler. */
        setenv("CUDA_CACHE_DISABLE", "1", 1);
        status = bench_file(request, &options);
    }
    return status;
}

static int bench_run(const subcommand *command, int argc, char **argv) {
    bench_request request = {.gpu.device = "cuda"};
    target_options_init(&request.launch.target);
    const option_row table[] = {
        LAUNCH_OPTION_ROWS(request.launch),
        {"--bytes", NULL, OPTION_TEXT, &request.bytes, "N",
         "bytes that the kernel must move, for the bandwidth: those\n"
         "of its buffers, each once, unless said otherwise"},
        {"--seconds", NULL, OPTION_TEXT, &request.seconds, "S",
         "for how long launches are measured: 0.1"},
        {"--launches", NULL, OPTION_NUMBER, &request.launches, "N",
         "how many at most: 1000, and never fewer than 3"},
        {"--warm", NULL, OPTION_FLAG, &request.warm, NULL,
         "leave the cache as the launch before left it; otherwise\n"
         "more than it holds is overwritten before each launch"},
        {"--device", NULL, OPTION_TEXT, &request.gpu.device, "NAME",
         "the GPU: cuda, which is cuda:0, or another cuda:N"},
        GPU_COMPILER_ROW(request.gpu),
        {"--json", NULL, OPTION_FLAG, &request.launch.json, NULL,
         "print what was measured as one JSON value"},
        {0},
    };
    int status = options_read(command, table, argc, argv, &request.launch.operands);
    if (status < 0) {
        status = bench_check(command, &request);
    }
    launch_request_clear(&request.launch);
    return status;
}

const subcommand bench_command = {
    .name = "bench",
    .usage = "FILE --grid X[,Y[,Z]] --arg NAME=VALUE… [--bytes N] [--num-warps N] …",
    .summary = "measure a TTIR file on a GPU",
    .help =
        "Compiles a kernel in TTIR, or takes one in SIMT IR as it stands, and measures it on a\n"
        "GPU: the time of a launch (the median of many, between events on the GPU, after launches\n"
        "that do not count), the bytes moved a second, and how long lilac, the CUDA driver's\n"
        "compiler and ptxas take to compile it. FILE may be - for standard input.",
    .run = bench_run,
};
