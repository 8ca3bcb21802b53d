/* What of the CUDA driver's interface is used, declared here, since its own headers need not be on
 * the machine that builds this: handles, numbers, the launch's structures, and the table of its
 * functions (cuda_api.def) as the library's loader fills it. Every function returns a CUresult, an
 * int, 0 for success. Private to the component. */
#ifndef LILAC_RUNTIME_CUDA_H
#define LILAC_RUNTIME_CUDA_H

#include <lilac/runtime.h>

#if defined(_WIN32)
#error "the calling convention of the CUDA driver is declared for the System V ABI only"
#endif

typedef struct CUctx_st *cuda_context;
typedef struct CUmod_st *cuda_module;
typedef struct CUfunc_st *cuda_function;

/* CUresult, those that are asked for by number. */
enum {
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719
};

/* CUdevice_attribute */
enum {
    CUDA_DEVICE_MAX_THREADS = 1,
    CUDA_DEVICE_MAX_GRID_X = 5, /* y and z follow */
    CUDA_DEVICE_MULTIPROCESSORS = 16,
    CUDA_DEVICE_MEMORY_KILOHERTZ = 36,
    CUDA_DEVICE_MEMORY_BUS_BITS = 37,
    CUDA_DEVICE_L2_BYTES = 38,
    CUDA_DEVICE_CAPABILITY_MAJOR = 75,
    CUDA_DEVICE_CAPABILITY_MINOR = 76,
    CUDA_DEVICE_SHARED_BYTES = 97 /* of a block that asks for them */
};

/* CUfunction_attribute */
enum {
    CUDA_FUNCTION_SHARED_BYTES = 1, /* in the code, in addition to those of the launch */
    CUDA_FUNCTION_LOCAL_BYTES = 3,
    CUDA_FUNCTION_REGISTERS = 4,
    CUDA_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CUDA_FUNCTION_LARGE_CLUSTERS = 14 /* more than eight blocks */
};

/* CUjit_option */
enum {
    CUDA_JIT_MAX_REGISTERS = 0,
    CUDA_JIT_INFO_LOG = 3,
    CUDA_JIT_INFO_LOG_SIZE = 4,
    CUDA_JIT_ERROR_LOG = 5,
    CUDA_JIT_ERROR_LOG_SIZE = 6,
    CUDA_JIT_LOG_VERBOSE = 12,
    CUDA_JIT_LINE_INFO = 13
};

enum {
    CUDA_STREAM_NON_BLOCKING = 1,
    CUDA_POINTER_DEVICE_POINTER = 3, /* CUpointer_attribute */
    CUDA_CACHE_PREFER_SHARED = 1     /* CUfunc_cache */
};

/* CUlaunchAttribute and its kinds. */
enum { CUDA_LAUNCH_COOPERATIVE = 2, CUDA_LAUNCH_CLUSTER_SIZE = 4, CUDA_LAUNCH_CLUSTER_POLICY = 5 };
enum { CUDA_CLUSTER_POLICY_SPREAD = 1 };

typedef struct cuda_launch_attribute {
    int kind;
    char padding[4];
    union {
        char bytes[64];
        unsigned cluster[3];
        int policy;
        int cooperative;
    } value;
} cuda_launch_attribute;

/* CUlaunchConfig */
typedef struct cuda_launch_config {
    unsigned grid[3], block[3];
    unsigned shared_bytes;
    lilac_gpu_stream stream;
    cuda_launch_attribute *attributes;
    unsigned attribute_count;
} cuda_launch_config;

_Static_assert(sizeof(cuda_launch_attribute) == 72, "as in cuda.h");
_Static_assert(sizeof(void *) != 8 || sizeof(cuda_launch_config) == 56, "as in cuda.h");

/* CUtensorMap */
typedef struct cuda_tensor_map {
    _Alignas(LILAC_TENSOR_MAP_ALIGNMENT) unsigned char bytes[LILAC_TENSOR_MAP_BYTES];
} cuda_tensor_map;

typedef struct cuda_api {
#define CUDA(field, symbol, parameters) int(*field) parameters;
#include "cuda_api.def"
#undef CUDA
} cuda_api;

struct lilac_cuda {
    cuda_api api;
    int version, device_count;
};

struct lilac_gpu {
    const lilac_cuda *cuda;
    const cuda_api *api; /* &cuda->api */
    lilac_cuda_device device;
    lilac_gpu_sharing sharing;
    cuda_context context;
    bool lost;
    /* Kernels launched since all launches were last waited for: an error may be any one's. */
    lilac_text at_work; /* their names, each once, separated by ", " */
};

struct lilac_gpu_kernel {
    lilac_gpu *gpu;
    lilac_arena *arena; /* holds this too */
    lilac_gpu_program program;
    lilac_gpu_kernel_facts facts;
    cuda_module module;
    cuda_function function;
    uint64_t *bits; /* a launch's parameters, and where each is */
    void **places;
    cuda_tensor_map *maps; /* a launch's, one for each parameter that is a tensor map */
};

/* Records error `id`: what was tried, and the driver's words for `result`. Always false. */
LILAC_PRINTF(5, 6)
bool lilac_cuda_refuse(const lilac_cuda *cuda, lilac_context *context, int result, const char *id,
                       const char *format, ...);
/* Is this an error of a kernel or of the device, after which the driver refuses everything? */
bool lilac_cuda_is_fatal(int result);
/* True for a result that is success; otherwise that, and a note of what the GPU is good for now. */
LILAC_PRINTF(4, 5)
bool lilac_gpu_check(lilac_gpu *gpu, lilac_context *context, int result, const char *format, ...);
/* Makes the GPU's context current for a while. */
bool lilac_gpu_enter(lilac_gpu *gpu, lilac_context *context);
void lilac_gpu_leave(lilac_gpu *gpu);

/* The driver's result of encoding a map within its limits. */
int lilac_gpu_encode_map(const cuda_api *api, const lilac_tensor_map *map,
                         cuda_tensor_map *encoded);
/* Encodes the launch's tensor maps into kernel->maps. False: `tensor-map`, `cuda-error`. */
bool lilac_gpu_encode_maps(lilac_gpu_kernel *kernel, lilac_context *context,
                           const lilac_gpu_launch *launch);

/* Spills of one kernel, read from what ptxas -v or the driver's compiler says. False: not said. */
bool lilac_ptxas_spills(const char *log, const char *kernel, uint32_t *stores, uint32_t *loads);
/* The name for --gpu-name when the PTX is to run on a device of this capability: that of the PTX's
 * own .target where its code is for one device only (sm_90a), else the device's. */
void lilac_ptxas_device(lilac_text *name, const char *ptx, uint32_t capability);

#endif
