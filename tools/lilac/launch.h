/* The common part of run and bench: a kernel of a file, compiled and with bound arguments, and its
 * launch on a GPU. */
#ifndef LILAC_LAUNCH_H
#define LILAC_LAUNCH_H

#include "command.h"

/* ---- the request of the command line (launch.c, launch_words.c) ------------------------- */

typedef struct launch_request {
    string_list operands, arguments, buffers;
    target_options target;
    const char *grid, *kernel;
    bool json, verify;
    uint32_t blocks[3];
} launch_request;

/* clang-format off */
#define LAUNCH_OPTION_ROWS(to)                                                                     \
    {"--grid", NULL, OPTION_TEXT, &(to).grid, "X[,Y[,Z]]", "how many blocks run"},                 \
    {"--arg", NULL, OPTION_TEXTS, &(to).arguments, "NAME=VALUE",                                   \
     "a parameter's value: a number; or a buffer, @file.npy,\n"                                    \
     "zeros:TYPE:SHAPE, empty:TYPE:SHAPE (o=zeros:f16:4x4096)\n"                                   \
     "or random:TYPE:SHAPE, floats from -1 to 1, for integers\n"                                   \
     "random:TYPE:SHAPE:BOUND, from 0 to below BOUND; reading\n"                                   \
     "what is empty before it is written is reported.\n"                                           \
     "bf16 and 8-bit floats are integers of their bits in .npy.\n"                                 \
     "Or a pointer: null; same:NAME, where another parameter or\n"                                 \
     "buffer points; same:NAME+128, 128 of its elements further\n"                                 \
     "on, same:NAME+512B, 512 bytes. pointers:a,b+16,null is a\n"                                  \
     "buffer of 64-bit pointers, written like those of same:.\n"                                    \
     "A buffer for a tensor descriptor is the tensor; d_nan=1 is for NaN\n"                         \
     "outside, d_shape0=9 for another size, of a parameter d.\n"                                    \
     "Or a tensor map: tensor_map:NAME:BOX, boxes of BOX elements\n"                                \
     "(64x64) of that buffer, then :swizzle=32, 64 or 128,\n"                                       \
     ":fill=nan, :promote=64, 128 or 256"},                                                          \
    {"--buffer", NULL, OPTION_TEXTS, &(to).buffers, "NAME=VALUE",                                  \
     "a buffer that is no parameter, for same: and pointers: to\n"                                 \
     "name; its value is a buffer as in --arg, and a file's\n"                                     \
     "elements have the file's type"},                                                             \
    {"--kernel", NULL, OPTION_TEXT, &(to).kernel, "NAME",                                          \
     "which kernel, when the file has several"},                                                   \
    {"--verify", NULL, OPTION_FLAG, &(to).verify, NULL, "check the program after every pass"},     \
    TARGET_OPTION_ROWS((to).target)
/* clang-format on */

/* Checks the request and writes `options` and request->blocks. -1, or STATUS_USAGE. `doing` is the
 * verb of the messages: "run". */
int launch_request_check(const subcommand *command, launch_request *request, lilac_options *options,
                         const char *doing);
/* "X[,Y[,Z]]", within what a GPU can launch; missing ones are 1. */
bool read_grid(const char *string, uint32_t blocks[3]);
/* Do all of them have the form "NAME=…"? -1, or STATUS_USAGE. */
int check_pairs(const subcommand *command, const string_list *pairs, const char *option,
                const char *form);
void launch_request_clear(launch_request *request);

/* One kernel of a file, ready to run. */
typedef struct prepared_launch {
    const launch_request *request;
    lilac_context *context;
    uint32_t source;
    lilac_compilation compilation;
    const lilac_simt_kernel *kernel;
    bound_arguments arguments;
} prepared_launch;

/* Reads the file into a fresh context. False: reported. Clear in either case. */
bool launch_read(prepared_launch *prepared, const launch_request *request);
/* Compiles tile IR as lilac_compile does. SIMT text is read and verified; no pass runs on it. */
bool launch_compile(lilac_compilation *compilation, lilac_context *context, uint32_t source,
                    const lilac_options *options);
/* Compiles it and binds the arguments. False: recorded as diagnostics. */
bool launch_prepare(prepared_launch *prepared, const lilac_options *options);
void launch_clear(prepared_launch *prepared);

/* ", \"profile\": […]", one entry for each instruction of the kernel (profile.c). */
void put_profile_json(lilac_text *out, const lilac_context *context,
                      const lilac_sim_profile *profile);

/* ---- on a GPU (gpu.c) -------------------------------------------------------------------- */

/* Options that run --device cuda and bench have in common. */
typedef struct gpu_options {
    const char *device;   /* "cuda", "cuda:1" */
    const char *compiler; /* "driver", "ptxas" */
    uint32_t ordinal;
    lilac_gpu_load_options load;
} gpu_options;

/* clang-format off */
#define GPU_COMPILER_ROW(to)                                                                       \
    {"--compiler", NULL, OPTION_TEXT, &(to).compiler, "NAME",                                      \
     "what makes machine code for a GPU: driver (the usual: the\n"                                 \
     "CUDA driver itself) or ptxas"}
/* clang-format on */

/* Reads the strings; -1, or STATUS_USAGE. `is_cuda` becomes true for a CUDA device. */
int gpu_options_check(const subcommand *command, gpu_options *options, bool *is_cuda);

typedef struct gpu_launch {
    lilac_cuda *cuda;
    lilac_gpu *gpu;
    lilac_gpu_kernel *kernel;
    uint64_t *addresses; /* of the buffers */
    lilac_gpu_launch launch;
} gpu_launch;

/* Opens the device; it is the target if neither the command line nor the module names one.
 * False: recorded. Close in either case. */
bool gpu_open(gpu_launch *gpu, prepared_launch *prepared, const gpu_options *options,
              lilac_options *compile);
/* The prepared kernel loaded, its buffers copied there, the launch filled in. False: recorded. */
bool gpu_load(gpu_launch *gpu, prepared_launch *prepared, const gpu_options *options);
/* The buffers copied back. */
bool gpu_fetch(gpu_launch *gpu, prepared_launch *prepared);
void gpu_close(gpu_launch *gpu);

/* "softmax: 4 × 1 × 1 blocks of 8 warps, 32 bytes of shared memory each on NVIDIA H200 (sm_90a)" */
void gpu_put_title(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared);
/* The resources of the machine code, as a line of a table. */
void gpu_put_code(lilac_text *out, const lilac_gpu_kernel_facts *facts);
/* "kernel": …, "grid": …, "num_warps": …, "num_ctas": …, "device": {…} */
void gpu_put_launch_json(lilac_text *out, const gpu_launch *gpu, const prepared_launch *prepared);
/* {"compiler": "driver", "seconds": …, "registers": …, "shared": …, "local": …, …} */
void gpu_put_code_json(lilac_text *out, const lilac_gpu_kernel_facts *facts);

#endif
