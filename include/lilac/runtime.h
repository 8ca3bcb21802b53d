/* runtime: launches compiled kernels on a GPU of this machine, through the CUDA driver.
 *
 *   lilac_cuda          the driver's library, loaded at run time; lists the devices
 *   lilac_gpu           an open device: a CUDA context with its memory, streams and events
 *   lilac_gpu_kernel    a kernel of that device, as machine code
 *
 *   PTX ──the driver's compiler──────▶ module ─▶ kernel ──run──▶ stream
 *    └──ptxas (a program)──▶ cubin ────┘
 *
 * CUDA is not needed to build or to install lilac: libcuda.so.1, a part of the driver, is opened at
 * run time. Without it lilac_cuda_open reports an error.
 *
 * Kernels have the interface that lilac writes (ptx.h): the parameters in order, then two pointers to
 * scratch memory, which is allocated for launches that need it; blocks of 32·num_warps threads;
 * clusters of num_ctas blocks along x.
 *
 * Errors. A function that fails returns false or NULL and records a diagnostic in its context, with
 * the driver's name and text of the error:
 *
 *   no-cuda-library           libcuda cannot be opened, or lacks a function
 *   no-cuda-device            there is no device, or none of that number
 *   cuda-error                the driver reports an error; of kernels, with the names of those running
 *   ptx-refused               a compiler refused the PTX; a note holds its output
 *   no-ptxas                  no ptxas is found, or it cannot be run
 *   wrong-device              compiled for another device
 *   too-much-shared-memory    more than a block of this device may have
 *   unknown-kernel            a module without that kernel
 *   argument-count, grid-size, not-device-memory, scratch-memory    an impossible launch
 *
 * An error in a running kernel (an unmapped address, a failed assertion) is reported by the next call
 * that waits for the kernel, with the names of the running kernels. It destroys the CUDA context:
 * lilac_gpu_is_lost returns true, and the GPU can only be closed. Driver 580 gives the same process no
 * new context on that GPU; lilac_gpu_open reports that. The process and the rest of the library
 * continue to work, and data that was read back before stays valid.
 *
 * Threads: an object is used by one thread at a time; different objects are independent. Every call
 * preserves the CUDA context that is current in the calling thread.
 */
#ifndef LILAC_RUNTIME_H
#define LILAC_RUNTIME_H

#include <lilac/driver.h>
#include <lilac/tensor_map.h>

LILAC_BEGIN

/* ---- the driver's library --------------------------------------------------------------- */

typedef struct lilac_cuda lilac_cuda;

/* Opens and initialises the driver's library: `library`, or, where that is NULL, $LILAC_LIBCUDA or
 * libcuda.so.1. NULL with a diagnostic on failure (`no-cuda-library`, `cuda-error`). Works without a
 * device. */
LILAC_API LILAC_MUST_USE lilac_cuda *lilac_cuda_open(lilac_context *context, const char *library);
/* Frees the handle, after all objects made from it. The library stays loaded in the process, because
 * it cannot be unloaded safely. NULL: no effect. */
LILAC_API void lilac_cuda_close(lilac_cuda *cuda);
/* The newest CUDA version that this driver supports: major · 1000 + minor · 10, such as 13000. */
LILAC_API uint32_t lilac_cuda_version(const lilac_cuda *cuda);
LILAC_API uint32_t lilac_cuda_device_count(const lilac_cuda *cuda);

/* Facts of one device, as the driver gives them. */
typedef struct lilac_cuda_device {
    uint32_t ordinal;
    char name[128];         /* "NVIDIA H200" */
    uint32_t capability;    /* 90 for 9.0 */
    const lilac_arch *arch; /* the row of the table to compile for: its own, or the newest whose PTX
                               it accepts; NULL: the device is older than all rows */
    uint64_t memory_bytes, l2_bytes;
    double bandwidth; /* bytes per second of its memory interface; 0: not known */
    uint32_t multiprocessors;
    uint32_t shared_bytes; /* most a block may have */
    uint32_t max_threads;  /* of a block */
    uint32_t max_grid[3];  /* blocks */
} lilac_cuda_device;

/* The facts of device number `ordinal`. False: `no-cuda-device`, `cuda-error`. */
LILAC_API LILAC_MUST_USE bool lilac_cuda_device_get(const lilac_cuda *cuda, lilac_context *context,
                                                    uint32_t ordinal, lilac_cuda_device *device);

/* ---- an open device --------------------------------------------------------------------- */

typedef struct lilac_gpu lilac_gpu;

typedef enum lilac_gpu_sharing {
    LILAC_GPU_OWN,    /* a CUDA context of its own: nothing is shared, closing frees all */
    LILAC_GPU_PRIMARY /* the primary context of the process, which the CUDA runtime and PyTorch use:
                         their addresses and streams can be passed */
} lilac_gpu_sharing;

/* Opens a device; about 0.1 s. NULL: `no-cuda-device`, `cuda-error`. */
LILAC_API LILAC_MUST_USE lilac_gpu *lilac_gpu_open(const lilac_cuda *cuda, lilac_context *context,
                                                   uint32_t ordinal, lilac_gpu_sharing sharing);
/* Closes it, also after an error. All its kernels must be unloaded before. An own context frees its
 * memory, streams and events. NULL: no effect. */
LILAC_API void lilac_gpu_close(lilac_gpu *gpu);
LILAC_API const lilac_cuda_device *lilac_gpu_device(const lilac_gpu *gpu);
/* Has an error in a kernel made this context unusable? */
LILAC_API bool lilac_gpu_is_lost(const lilac_gpu *gpu);
/* Waits for all launches. False: an error of any of them, with the names of the kernels. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_synchronize(lilac_gpu *gpu, lilac_context *context);

/* Device memory: `size` bytes (0 too: an address that nothing else has), aligned to 256. Writing to
 * and reading from it wait until the bytes are there, after all launches on the default stream. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_alloc(lilac_gpu *gpu, lilac_context *context, uint64_t size,
                                              uint64_t *address);
LILAC_API LILAC_MUST_USE bool lilac_gpu_free(lilac_gpu *gpu, lilac_context *context,
                                             uint64_t address);
LILAC_API LILAC_MUST_USE bool lilac_gpu_write(lilac_gpu *gpu, lilac_context *context,
                                              uint64_t address, const void *bytes, uint64_t size);
LILAC_API LILAC_MUST_USE bool lilac_gpu_read(lilac_gpu *gpu, lilac_context *context, void *bytes,
                                             uint64_t address, uint64_t size);
/* Every one of `size` bytes becomes `value`. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_fill(lilac_gpu *gpu, lilac_context *context,
                                             uint64_t address, uint8_t value, uint64_t size);

/* CUstream and CUevent of cuda.h, so that streams and events from elsewhere can be given. A NULL
 * stream is the default one. */
typedef struct CUstream_st *lilac_gpu_stream;
typedef struct CUevent_st *lilac_gpu_event;

/* A stream that does not wait for the default one. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_stream_create(lilac_gpu *gpu, lilac_context *context,
                                                      lilac_gpu_stream *stream);
LILAC_API void lilac_gpu_stream_destroy(lilac_gpu *gpu, lilac_gpu_stream stream);
/* Waits for all that was launched on it. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_stream_synchronize(lilac_gpu *gpu, lilac_context *context,
                                                           lilac_gpu_stream stream);
/* An event marks a position in a stream: record places it; elapsed waits for the second event and
 * returns the device time between the two in seconds (resolution about half a microsecond). */
LILAC_API LILAC_MUST_USE bool lilac_gpu_event_create(lilac_gpu *gpu, lilac_context *context,
                                                     lilac_gpu_event *event);
LILAC_API void lilac_gpu_event_destroy(lilac_gpu *gpu, lilac_gpu_event event);
LILAC_API LILAC_MUST_USE bool lilac_gpu_event_record(lilac_gpu *gpu, lilac_context *context,
                                                     lilac_gpu_event event,
                                                     lilac_gpu_stream stream);
LILAC_API LILAC_MUST_USE bool lilac_gpu_event_elapsed(lilac_gpu *gpu, lilac_context *context,
                                                      lilac_gpu_event from, lilac_gpu_event to,
                                                      double *seconds);

/* ---- kernels ---------------------------------------------------------------------------- */

typedef enum lilac_gpu_compiler {
    LILAC_GPU_DRIVER, /* the compiler in the driver: always available, starts no program */
    LILAC_GPU_PTXAS   /* ptxas of the CUDA toolkit or of Triton */
} lilac_gpu_compiler;

typedef struct lilac_gpu_load_options {
    lilac_gpu_compiler compiler;
    const char *ptxas;      /* its path; NULL: the one that lilac_ptxas_find finds */
    uint32_t max_registers; /* of a thread; 0: no limit */
    bool line_info;         /* of the PTX kept, for profilers */
} lilac_gpu_load_options;

/* PTX, and the facts needed to launch a kernel of it. */
typedef struct lilac_gpu_program {
    const char *ptx;          /* NUL-terminated */
    const char *name;         /* of the kernel */
    uint32_t parameter_count; /* the two pointers to scratch memory not counted */
    const lilac_simt_parameter *parameters;
    uint32_t num_warps, num_ctas, shared_bytes;
    /* Bytes of scratch memory for each block, and their alignment (at most 256); 0: none. */
    uint64_t global_scratch_bytes, profile_scratch_bytes;
    uint32_t global_scratch_align, profile_scratch_align;
} lilac_gpu_program;

typedef struct lilac_gpu_kernel lilac_gpu_kernel;

/* Resources of the machine code. */
typedef struct lilac_gpu_kernel_facts {
    const char *name;
    uint32_t num_warps, num_ctas;
    uint32_t shared_bytes; /* of a block, those of the launch and those in the code together */
    uint32_t registers;    /* of a thread */
    uint32_t local_bytes;  /* of a thread's own memory: spilled registers and arrays */
    bool spills_known;     /* reported by the compiler; false when the driver used its cache */
    uint32_t spill_stores, spill_loads; /* bytes, as the compiler counts them */
    lilac_gpu_compiler compiler;
    const char *ptxas; /* the program, or NULL */
    double seconds;    /* from PTX text to a loaded module */
    const char *log;   /* the compiler's output; may be "" */
} lilac_gpu_kernel_facts;

/* A program's kernel as machine code; `options` may be NULL: the driver's compiler. NULL:
 * `ptx-refused`, `no-ptxas`, `too-much-shared-memory`, `unknown-kernel`, `cuda-error`. What
 * `program` points to is copied. */
LILAC_API LILAC_MUST_USE lilac_gpu_kernel *
lilac_gpu_load_program(lilac_gpu *gpu, lilac_context *context, const lilac_gpu_program *program,
                       const lilac_gpu_load_options *options);
/* A kernel of a finished compilation; `name` NULL: its first. Also `wrong-device`. */
LILAC_API LILAC_MUST_USE lilac_gpu_kernel *lilac_gpu_load(lilac_gpu *gpu, lilac_context *context,
                                                          const lilac_compilation *compilation,
                                                          const char *name,
                                                          const lilac_gpu_load_options *options);
/* The newest PTX ISA version, times ten, that the compiler which these options choose reads (NULL:
 * the driver's): what lilac_options.newest_ptx is for. 0 when a ptxas does not say its version. */
LILAC_API uint32_t lilac_gpu_newest_ptx(const lilac_gpu *gpu,
                                        const lilac_gpu_load_options *options);
/* NULL: nothing. */
LILAC_API void lilac_gpu_unload(lilac_gpu_kernel *kernel);
LILAC_API const lilac_gpu_kernel_facts *lilac_gpu_kernel_facts_get(const lilac_gpu_kernel *kernel);

/* One launch. */
typedef struct lilac_gpu_launch {
    uint32_t grid[3];          /* programs along x, y, z; a zero: nothing runs, which is no error */
    const uint64_t *arguments; /* bits of each parameter; pointers: an address on the device; tensor
                                  maps: the number of one of tensor_maps */
    uint32_t argument_count;   /* must be the kernel's */
    const lilac_tensor_map *tensor_maps; /* whose addresses are on the device */
    uint32_t tensor_map_count;
    lilac_gpu_stream stream;
    uint32_t parts; /* above 1: that many blocks along z for each program, which are a cluster
                       (tensor_map.h); then num_ctas and grid[2] are 1 */
} lilac_gpu_launch;

/* Enqueues a launch in its stream and returns. Pointers must be 0 or addresses that the device can
 * access. False: `argument-count`, `grid-size`, `not-device-memory`, `tensor-map`, `cuda-error`.
 * Errors in the kernel itself are reported by the functions that wait for it. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_run(lilac_gpu_kernel *kernel, lilac_context *context,
                                            const lilac_gpu_launch *launch);

/* ---- kernels of another launcher ---------------------------------------------------------- */

/* Launches a kernel that another library has loaded, such as Triton, with tensor maps that are
 * made from the other arguments of each launch (tensor_map.h). The last encoded maps are kept, so
 * that a repeated launch compares and copies them. Nothing is allocated in a launch. */
typedef struct lilac_mapped_kernel lilac_mapped_kernel;

enum { LILAC_MAPPED_PARAMETERS = 128, LILAC_MAPPED_MAPS = 8 };

/* Machine code of the kernel, in the driver's context that is current in the launches. */
typedef struct lilac_mapped_code {
    struct CUfunc_st *function;
    uint32_t num_warps, shared_bytes;
} lilac_mapped_code;

typedef struct lilac_mapped_description {
    lilac_mapped_code code;
    lilac_mapped_code one_block; /* for launches whose blocks have a multiprocessor each
                                    (target.one_block), with the same parameters and maps; without
                                    a function: all launches are of the other one */
    uint32_t parameter_count;    /* with the maps, which are the last ones */
    const lilac_launch_maps *recipes;
    const lilac_tensor_map *maps; /* one for each recipe, without what the arguments say */
    bool cooperative;
} lilac_mapped_description;

/* NULL: more than LILAC_MAPPED_PARAMETERS parameters, no maps, more than LILAC_MAPPED_MAPS, or
 * maps that are not the last parameters. What the description points to is copied. */
LILAC_API LILAC_MUST_USE lilac_mapped_kernel *
lilac_mapped_create(const lilac_cuda *cuda, const lilac_mapped_description *description);
LILAC_API void lilac_mapped_destroy(lilac_mapped_kernel *kernel);

typedef struct lilac_mapped_launch {
    uint32_t grid[3];
    lilac_gpu_stream stream;
    /* Bits of the parameters that are no maps; integers are sign-extended. */
    int64_t values[LILAC_MAPPED_PARAMETERS];
    /* Set by lilac_mapped_prepare, as the maps are. */
    uint32_t parts; /* blocks for each program (lilac_launch_parts) */
    bool one_block; /* the code for one block of a multiprocessor */
    uint8_t maps[LILAC_MAPPED_MAPS][LILAC_TENSOR_MAP_BYTES];
} lilac_mapped_launch;

typedef enum lilac_mapped_outcome {
    LILAC_MAPPED_READY,
    LILAC_MAPPED_CONDITION, /* the launch violates a condition */
    LILAC_MAPPED_LIMIT,     /* a map is outside the limits, or the driver refuses it */
    LILAC_MAPPED_FEW,       /* the launch is faster without maps (lilac_launch_maps_pay) */
} lilac_mapped_outcome;

/* Sets launch->maps from the other fields. One thread at a time prepares launches of a kernel. */
LILAC_API LILAC_MUST_USE lilac_mapped_outcome lilac_mapped_prepare(lilac_mapped_kernel *kernel,
                                                                   lilac_mapped_launch *launch);
/* Enqueues a prepared launch. Any thread. The result is a CUresult: 0, or an error. */
LILAC_API LILAC_MUST_USE int lilac_mapped_run(const lilac_mapped_kernel *kernel,
                                              lilac_mapped_launch *launch);
/* Has the calling thread a current context? */
LILAC_API bool lilac_cuda_has_context(const lilac_cuda *cuda);
/* Replaces an address by the one that the device uses for it. False: it cannot access it. */
LILAC_API LILAC_MUST_USE bool lilac_cuda_device_address(const lilac_cuda *cuda, uint64_t *address);
/* The driver's words for a CUresult. */
LILAC_API const char *lilac_cuda_words(const lilac_cuda *cuda, int result);

/* ---- time ------------------------------------------------------------------------------- */

typedef struct lilac_gpu_timing_options {
    double warm_up;         /* seconds of launches before any counts */
    double measure;         /* seconds of launches that count */
    uint32_t most_launches; /* that count; at least 3 do */
    uint64_t flush_bytes;   /* overwritten before each launch; 0: nothing, a cache stays as it is */
    /* Called now and then, with a number from 0 to 1; NULL: not. */
    void (*progress)(void *data, double done);
    void *data;
} lilac_gpu_timing_options;

/* 25 ms, 100 ms, at most 1000 launches, 256 MiB or four times the second-level cache flushed
 * between them, which is how triton.testing.do_bench measures; no progress. */
LILAC_API void lilac_gpu_timing_options_init(lilac_gpu_timing_options *options,
                                             const lilac_gpu *gpu);

/* Seconds of one launch, between events right before and right after it. */
typedef struct lilac_gpu_timing {
    uint32_t launches;
    double median;
    double low, high; /* 5th and 95th percentile */
    double least, most;
} lilac_gpu_timing;

/* Times a launch. The kernel runs repeatedly, so repeated runs must be harmless. False: the
 * diagnostics of lilac_gpu_run and lilac_gpu_synchronize. */
LILAC_API LILAC_MUST_USE bool lilac_gpu_time(lilac_gpu_kernel *kernel, lilac_context *context,
                                             const lilac_gpu_launch *launch,
                                             const lilac_gpu_timing_options *options,
                                             lilac_gpu_timing *timing);

/* ---- ptxas ------------------------------------------------------------------------------ */

/* Where ptxas is: $LILAC_PTXAS, then the folders of $PATH, then $CUDA_HOME/bin, then
 * /usr/local/cuda/bin. A set $LILAC_PTXAS counts alone. False, `path` empty, when it is nowhere. */
LILAC_API bool lilac_ptxas_find(lilac_text *path);

/* The CUDA release of a ptxas, as `ptxas --version` prints it: major · 1000 + minor · 10. `path`
 * NULL: as found. 0 when there is none, or it does not print one. */
LILAC_API uint32_t lilac_ptxas_version(const char *path);

/* Runs ptxas over PTX text: `cubin` becomes the machine code, `log` what ptxas said (registers and
 * spills of each kernel). `device` is the name for --gpu-name; NULL: the PTX's own .target. `path`
 * NULL: as found. No GPU and no driver are needed. False: `no-ptxas`, `ptx-refused` with all that
 * it said in a note. The text goes through files in a fresh folder of $TMPDIR that only
 * this user can enter and that is gone afterwards; no shell is involved. */
LILAC_API LILAC_MUST_USE bool lilac_ptxas_run(lilac_context *context, const char *path,
                                              const char *device, const char *ptx,
                                              const lilac_gpu_load_options *options,
                                              lilac_text *cubin, lilac_text *log);

LILAC_END

#endif
