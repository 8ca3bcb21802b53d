/* A Triton kernel is compiled, loaded on a GPU, launched, checked and timed.
 *
 *     launch axpy.ttir [N]
 *
 * The kernel is y = a x + y over N floats. It is compiled for N that are multiples of 16
 * (tt.divisibility in the file), 1024 of them a block.
 */
#include <lilac.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 1024 };

/* Everything that one run holds. */
typedef struct axpy {
    lilac_context *context; /* collects the diagnostics */
    lilac_cuda *cuda;
    lilac_gpu *gpu;
    lilac_compilation compilation;
    lilac_gpu_kernel *kernel;
    uint32_t n;
    float a, *x, *y;             /* on the host */
    uint64_t device_x, device_y; /* on the GPU */
} axpy;

/* ---- compiling -------------------------------------------------------------------------- */

static bool read_file(const char *path, lilac_text *text) {
    char block[4096];
    size_t size;
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    while ((size = fread(block, 1, sizeof block, file)) > 0) {
        lilac_text_put(text, block, size);
    }
    return fclose(file) == 0;
}

/* TTIR to PTX for the device, PTX to machine code on it. */
static bool compile(axpy *run, const char *path) {
    lilac_options options;
    lilac_text text = {0};
    lilac_options_init(&options);
    options.target.arch = lilac_gpu_device(run->gpu)->arch;
    const uint32_t source =
        read_file(path, &text)
            ? lilac_source_add(run->context, path, lilac_text_get(&text), text.length)
            : 0;
    lilac_text_clear(&text);
    if (source == 0 || !lilac_compile(&run->compilation, run->context, source, &options)) {
        return false;
    }
    run->kernel = lilac_gpu_load(run->gpu, run->context, &run->compilation, "axpy", NULL);
    return run->kernel != NULL;
}

/* ---- running ---------------------------------------------------------------------------- */

static bool make_buffers(axpy *run) {
    const uint64_t size = run->n * sizeof *run->x;
    run->x = malloc(size);
    run->y = malloc(size);
    if (run->x == NULL || run->y == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < run->n; i++) {
        run->x[i] = (float)(i % 1000);
        run->y[i] = 1.0F;
    }
    return lilac_gpu_alloc(run->gpu, run->context, size, &run->device_x) &&
           lilac_gpu_alloc(run->gpu, run->context, size, &run->device_y) &&
           lilac_gpu_write(run->gpu, run->context, run->device_x, run->x, size) &&
           lilac_gpu_write(run->gpu, run->context, run->device_y, run->y, size);
}

/* Arguments are the bits of each parameter, in order: addresses, integers, floats. */
static bool launch_and_time(axpy *run, lilac_gpu_timing *timing) {
    const uint64_t arguments[] = {
        run->device_x, run->device_y, run->n,
        lilac_scalar_encode(LILAC_F32, (double)run->a, LILAC_ROUND_NEAREST_EVEN, false)};
    const lilac_gpu_launch launch = {
        .grid = {(run->n + BLOCK - 1) / BLOCK, 1, 1}, .arguments = arguments, .argument_count = 4};
    lilac_gpu_timing_options options;
    lilac_gpu_timing_options_init(&options, run->gpu);
    return lilac_gpu_run(run->kernel, run->context, &launch) &&
           /* Reading waits for the kernel and reports the errors in it. */
           lilac_gpu_read(run->gpu, run->context, run->y, run->device_y, run->n * sizeof *run->y) &&
           lilac_gpu_time(run->kernel, run->context, &launch, &options, timing);
}

static uint32_t count_wrong(const axpy *run) {
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < run->n; i++) {
        wrong += !(fabsf(run->y[i] - (run->a * run->x[i] + 1.0F)) <= 1e-6F * fabsf(run->y[i]));
    }
    return wrong;
}

static bool run_all(axpy *run, const char *path) {
    lilac_gpu_timing timing;
    run->cuda = lilac_cuda_open(run->context, NULL);
    run->gpu = run->cuda ? lilac_gpu_open(run->cuda, run->context, 0, LILAC_GPU_OWN) : NULL;
    if (run->gpu == NULL || !compile(run, path) || !make_buffers(run) ||
        !launch_and_time(run, &timing)) {
        return false;
    }
    const lilac_gpu_kernel_facts *facts = lilac_gpu_kernel_facts_get(run->kernel);
    const double bytes = 3.0 * sizeof(float) * run->n; /* x and y read, y written */
    printf("%s on %s: %u registers, compiled in %.1f ms\n", facts->name,
           lilac_gpu_device(run->gpu)->name, facts->registers, 1e3 * facts->seconds);
    printf("%u of %u elements are wrong\n", count_wrong(run), run->n);
    printf("%.1f µs, %.3f TB/s\n", 1e6 * timing.median, 1e-12 * bytes / timing.median);
    return count_wrong(run) == 0;
}

/* ---- around it -------------------------------------------------------------------------- */

static void print_diagnostics(lilac_context *context) {
    lilac_text text = {0};
    for (const lilac_diagnostic *d = lilac_diagnostics(context); d != NULL; d = d->next) {
        lilac_diagnostic_print(&text, context, d, false);
    }
    fputs(lilac_text_get(&text), stderr);
    lilac_text_clear(&text);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: launch axpy.ttir [N]\n", stderr);
        return 2;
    }
    axpy run = {.context = lilac_context_create(),
                .n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) / 16 * 16 : 1U << 26,
                .a = 0.5F};
    const bool good = run_all(&run, argv[1]);
    print_diagnostics(run.context);
    lilac_gpu_unload(run.kernel);
    lilac_gpu_close(run.gpu); /* frees what was allocated on it */
    lilac_cuda_close(run.cuda);
    lilac_compilation_clear(&run.compilation);
    lilac_context_destroy(run.context);
    free(run.x);
    free(run.y);
    return good ? 0 : 1;
}
