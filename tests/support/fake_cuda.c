/* A CUDA driver that has no GPU, for tests: a shared library with the functions that the
 * component `runtime` looks up.
 *
 * It behaves as the real one does where a caller can tell: contexts are pushed and popped, what is
 * made must be destroyed, addresses are checked, a kernel's parameters are read as the .entry in
 * its PTX declares them, shared memory above 48 KiB must have been asked for, an error in a kernel
 * is reported by the next call that waits and makes its context unusable; the process cannot create
 * another one.
 * Device memory is the host's. Kernels do nothing, but for three names: `twice` (o = 2 x, n floats),
 * `axpy` (y = a x + y) and `gather` (o[block] = *p[block]).
 *
 * Rules, from the environment variable FAKE_CUDA or by fake_cuda_reset, separated by blanks:
 *
 *   FUNCTION=N         that function returns error N and does nothing; FUNCTION=N@K from its Kth
 *                      call on
 *   kernel=N           the next kernel to run ends with error N
 *   devices=N  capability=N  shared=N (a block's)  static=N (in the code)  wordless=1 (no words
 *                      for errors)
 *
 * With FAKE_CUDA_LOG the log goes to that file when the process ends. Times are simulated:
 * launches take 10, 11, 12, 13 and 14 microseconds in a cycle, a fill takes 50.
 */
#define _POSIX_C_SOURCE 200809L

#include "fake_cuda.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { MOST = 64, LOG_SIZE = 1 << 16, NAME_SIZE = 64, MOST_PARAMETERS = 16 };
enum { MULTIPROCESSORS = 132 };
enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_DEVICE = 101 };
enum { INVALID_IMAGE = 200, INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500 };

typedef struct context {
    int dead; /* the error that made it unusable */
    int primary;
} context;

typedef struct module {
    context *owner;
    char *ptx;
} module;

typedef struct function {
    module *owner;
    char name[NAME_SIZE];
    int most_shared;
    unsigned parameters;
    unsigned bytes[MOST_PARAMETERS];
} function;

typedef struct allocation {
    unsigned char *bytes;
    size_t size;
    context *owner;
} allocation;

typedef struct launch_attribute {
    int kind;
    char padding[4];
    union {
        char bytes[64];
        unsigned numbers[3];
        int policy;
    } value;
} launch_attribute;

typedef struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    const launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;

static struct {
    char rules[1024];
    int started;
    int calls_of_rule[MOST]; /* by place of the rule in the text */
    char log[LOG_SIZE];
    size_t logged;
    context *stack[MOST];
    int depth, alive, pending, ruined;
    context *primary;
    int primary_users;
    allocation allocations[MOST * 4];
    function functions[MOST];
    int function_count, launches;
    double clock; /* microseconds */
} fake;

/* ---- rules and the log ------------------------------------------------------------------- */

static const char *find_rule(const char *name, int *place) {
    const size_t length = strlen(name);
    const char *found = NULL;
    *place = 0;
    for (const char *at = fake.rules; *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (strncmp(at, name, length) == 0 && at[length] == '=') {
            found = at + length + 1;
            *place = (int)(at - fake.rules) % MOST;
        }
    }
    return found;
}

static int number(const char *name, int otherwise) {
    int place;
    const char *rule = find_rule(name, &place);
    return rule != NULL ? atoi(rule) : otherwise;
}

static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(fake.log + fake.logged, LOG_SIZE - fake.logged, format, arguments);
    va_end(arguments);
    if (size > 0 && fake.logged + (size_t)size < LOG_SIZE) {
        fake.logged += (size_t)size;
    }
}

static void write_log(void) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *file = path != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        fputs(fake.log, file);
        fclose(file);
    }
}

/* The error that a rule requests for this call, or 0. */
static int ruled(const char *name) {
    int place;
    if (!fake.started) {
        const char *rules = getenv("FAKE_CUDA");
        snprintf(fake.rules, sizeof fake.rules, "%s", rules != NULL ? rules : "");
        fake.started = 1;
        atexit(write_log);
    }
    const char *rule = find_rule(name, &place);
    if (rule == NULL) {
        return 0;
    }
    const char *from = strchr(rule, '@');
    const int first = from != NULL && from < rule + strcspn(rule, " ") ? atoi(from + 1) : 1;
    return ++fake.calls_of_rule[place] >= first ? atoi(rule) : 0;
}

static context *current(void) {
    return fake.depth > 0 ? fake.stack[fake.depth - 1] : NULL;
}

/* Of a call that works in the current context: rules, then what that context has to say. */
static int enter(const char *name) {
    const int error = ruled(name);
    say("%s\n", name);
    if (error != 0) {
        return error;
    }
    if (current() == NULL) {
        return INVALID_CONTEXT;
    }
    return current()->dead;
}

/* Of a call that waits: what ran before it may have failed. */
static int enter_waiting(const char *name) {
    const int error = enter(name);
    if (error == 0 && fake.pending != 0) {
        current()->dead = fake.ruined = fake.pending;
        fake.pending = 0;
        return current()->dead;
    }
    return error;
}

EXPORT void fake_cuda_reset(const char *rules) {
    memset(&fake, 0, sizeof fake);
    fake.started = 1;
    snprintf(fake.rules, sizeof fake.rules, "%s", rules);
}

EXPORT void fake_cuda_rule(const char *rules) {
    const size_t length = strlen(fake.rules);
    snprintf(fake.rules + length, sizeof fake.rules - length, " %s", rules);
}

EXPORT const char *fake_cuda_log(void) {
    return fake.log;
}

EXPORT int fake_cuda_alive(void) {
    return fake.alive;
}

/* ---- the driver, its devices, contexts --------------------------------------------------- */

EXPORT int cuInit(unsigned flags) {
    const int error = ruled("cuInit");
    return error != 0 ? error : flags != 0 ? INVALID_VALUE : 0;
}

EXPORT int cuDriverGetVersion(int *version) {
    *version = (int)number("version", 13000);
    return ruled("cuDriverGetVersion");
}

EXPORT int cuGetErrorName(int error, const char **name) {
    if (number("wordless", 0)) {
        return INVALID_VALUE;
    }
    *name = error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == 218         ? "CUDA_ERROR_INVALID_PTX"
            : error == 700         ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                   : "CUDA_ERROR_FAKE";
    return 0;
}

EXPORT int cuGetErrorString(int error, const char **words) {
    if (number("wordless", 0)) {
        return INVALID_VALUE;
    }
    *words = error == OUT_OF_MEMORY ? "out of memory"
             : error == 218         ? "a PTX JIT compilation failed"
             : error == 700         ? "an illegal memory access was encountered"
                                    : "fake words";
    return 0;
}

EXPORT int cuDeviceGetCount(int *count) {
    *count = number("devices", 1);
    return ruled("cuDeviceGetCount");
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    *device = 7 + ordinal;
    return ruled("cuDeviceGet");
}

EXPORT int cuDeviceGetName(char *name, int size, int device) {
    snprintf(name, (size_t)size, "Fake GPU %d", device - 7);
    return ruled("cuDeviceGetName");
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)80 << 30;
    return device >= 7 ? ruled("cuDeviceTotalMem_v2") : INVALID_DEVICE;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 1:
        *value = 1024;
        break;
    case 5:
        *value = INT32_MAX;
        break;
    case 6:
    case 7:
        *value = 65535;
        break;
    case 16:
        *value = MULTIPROCESSORS;
        break;
    case 36:
        *value = 1000000;
        break;
    case 37:
        *value = 4096;
        break;
    case 38:
        *value = 50 << 20;
        break;
    case 75:
        *value = number("capability", 90) / 10;
        break;
    case 76:
        *value = number("capability", 90) % 10;
        break;
    case 97:
        *value = number("shared", 232448);
        break;
    default:
        return INVALID_VALUE;
    }
    return device >= 7 ? ruled("cuDeviceGetAttribute") : INVALID_DEVICE;
}

static context *make_context(void) {
    fake.alive++;
    return calloc(1, sizeof(context));
}

EXPORT int cuCtxCreate_v2(context **made, unsigned flags, int device) {
    const int error = ruled("cuCtxCreate_v2");
    say("cuCtxCreate_v2\n");
    if (error != 0 || device < 7 || flags != 0) {
        return error != 0 ? error : INVALID_VALUE;
    }
    if (fake.ruined != 0) {
        return fake.ruined;
    }
    *made = make_context();
    fake.stack[fake.depth++] = *made;
    return 0;
}

static void free_context(context *owner) {
    for (int i = 0; i < MOST * 4; i++) {
        if (fake.allocations[i].bytes != NULL && fake.allocations[i].owner == owner) {
            free(fake.allocations[i].bytes);
            fake.allocations[i] = (allocation){0};
            fake.alive--;
        }
    }
    free(owner);
    fake.alive--;
}

EXPORT int cuCtxDestroy_v2(context *owner) {
    say("cuCtxDestroy_v2\n");
    free_context(owner);
    return 0;
}

EXPORT int cuDevicePrimaryCtxRetain(context **made, int device) {
    const int error = ruled("cuDevicePrimaryCtxRetain");
    say("cuDevicePrimaryCtxRetain\n");
    if (error != 0 || device < 7) {
        return error != 0 ? error : INVALID_DEVICE;
    }
    if (fake.ruined != 0) {
        return fake.ruined;
    }
    if (fake.primary_users++ == 0) {
        fake.primary = make_context();
        fake.primary->primary = 1;
    }
    *made = fake.primary;
    return 0;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    say("cuDevicePrimaryCtxRelease_v2\n");
    if (device < 7 || fake.primary_users == 0) {
        return INVALID_CONTEXT;
    }
    if (--fake.primary_users == 0) {
        free_context(fake.primary);
    }
    return 0;
}

EXPORT int cuCtxPushCurrent_v2(context *pushed) {
    const int error = ruled("cuCtxPushCurrent_v2");
    if (error != 0 || fake.depth == MOST) {
        return error != 0 ? error : INVALID_VALUE;
    }
    fake.stack[fake.depth++] = pushed;
    return 0;
}

EXPORT int cuCtxGetCurrent(context **found) {
    *found = current();
    return ruled("cuCtxGetCurrent");
}

EXPORT int cuCtxGetDevice(int *device) {
    *device = 7;
    return current() == NULL ? INVALID_CONTEXT : ruled("cuCtxGetDevice");
}

EXPORT int cuCtxPopCurrent_v2(context **popped) {
    if (fake.depth == 0) {
        return INVALID_CONTEXT;
    }
    *popped = fake.stack[--fake.depth];
    return 0;
}

EXPORT int cuCtxSynchronize(void) {
    return enter_waiting("cuCtxSynchronize");
}

/* How many contexts are on this thread's stack; a caller leaves none. */
EXPORT int fake_cuda_depth(void);
EXPORT int fake_cuda_depth(void) {
    return fake.depth;
}

/* ---- memory ------------------------------------------------------------------------------ */

static allocation *find_memory(uint64_t address, size_t size) {
    for (int i = 0; i < MOST * 4; i++) {
        allocation *a = &fake.allocations[i];
        const uint64_t begin = (uint64_t)(uintptr_t)a->bytes;
        if (a->bytes != NULL && address >= begin && address - begin <= a->size &&
            size <= a->size - (address - begin)) {
            return a;
        }
    }
    return NULL;
}

static int allocate(uint64_t *address, size_t size) {
    for (int i = 0; i < MOST * 4; i++) {
        if (fake.allocations[i].bytes == NULL) {
            unsigned char *bytes = aligned_alloc(256, (size + 255) / 256 * 256);
            fake.allocations[i] = (allocation){bytes, size, current()};
            *address = (uint64_t)(uintptr_t)bytes;
            fake.alive++;
            return 0;
        }
    }
    return OUT_OF_MEMORY;
}

static int release(uint64_t address) {
    allocation *a = find_memory(address, 0);
    if (a == NULL || (uint64_t)(uintptr_t)a->bytes != address) {
        return INVALID_VALUE;
    }
    free(a->bytes);
    *a = (allocation){0};
    fake.alive--;
    return 0;
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t size) {
    const int error = enter("cuMemAlloc_v2");
    return error != 0 ? error : size == 0 ? INVALID_VALUE : allocate(address, size);
}

EXPORT int cuMemFree_v2(uint64_t address) {
    const int error = enter("cuMemFree_v2");
    return error != 0 ? error : release(address);
}

EXPORT int cuMemAllocAsync(uint64_t *address, size_t size, void *stream) {
    const int error = ruled("cuMemAllocAsync");
    say("cuMemAllocAsync %zu on %s\n", size, stream != NULL ? "a stream" : "the default stream");
    return error != 0 ? error : allocate(address, size);
}

EXPORT int cuMemFreeAsync(uint64_t address, void *stream) {
    const int error = ruled("cuMemFreeAsync");
    say("cuMemFreeAsync on %s\n", stream != NULL ? "a stream" : "the default stream");
    return error != 0 ? error : release(address);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
    const int error = enter_waiting("cuMemcpyHtoD_v2");
    if (error == 0 && find_memory(to, size) != NULL) {
        memcpy((void *)(uintptr_t)to, from, size);
        return 0;
    }
    return error != 0 ? error : INVALID_VALUE;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    const int error = enter_waiting("cuMemcpyDtoH_v2");
    if (error == 0 && find_memory(from, size) != NULL) {
        memcpy(to, (const void *)(uintptr_t)from, size);
        return 0;
    }
    return error != 0 ? error : INVALID_VALUE;
}

EXPORT int cuMemsetD8_v2(uint64_t at, unsigned char value, size_t size) {
    const int error = enter("cuMemsetD8_v2");
    if (error == 0 && find_memory(at, size) != NULL) {
        memset((void *)(uintptr_t)at, value, size);
        return 0;
    }
    return error != 0 ? error : INVALID_VALUE;
}

/* The memory itself is not written: it is large, and no test reads it. */
EXPORT int cuMemsetD8Async(uint64_t at, unsigned char value, size_t size, void *stream) {
    const int error = ruled("cuMemsetD8Async");
    (void)value;
    (void)stream;
    fake.clock += 50;
    return error != 0 ? error : find_memory(at, size) != NULL ? 0 : INVALID_VALUE;
}

EXPORT int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
    const int error = ruled("cuPointerGetAttribute");
    if (error == 0 && attribute == 3 && find_memory(address, 0) != NULL) {
        memcpy(value, &address, sizeof address);
        return 0;
    }
    return error != 0 ? error : INVALID_VALUE;
}

/* ---- modules ----------------------------------------------------------------------------- */

static void *option(unsigned count, const int *keys, void **values, int key) {
    for (unsigned i = 0; i < count; i++) {
        if (keys[i] == key) {
            return values[i];
        }
    }
    return NULL;
}

static void put_log(unsigned count, const int *keys, void **values, int key, const char *text) {
    char *buffer = option(count, keys, values, key);
    const size_t size = (size_t)(uintptr_t)option(count, keys, values, key + 1);
    if (buffer != NULL && size != 0) {
        snprintf(buffer, size, "%s", text);
    }
}

/* The name after ".entry" in PTX. */
static const char *entry(const char *ptx, size_t *length) {
    const char *at = strstr(ptx, ".entry ");
    at = at != NULL ? at + 7 : "";
    *length = strcspn(at, "( \n");
    return at;
}

EXPORT int cuModuleLoadDataEx(module **made, const void *image, unsigned count, int *keys,
                              void **values) {
    const int error = enter("cuModuleLoadDataEx");
    const char *text = image;
    const int cubin = strncmp(text, "\177ELF", 4) == 0;
    size_t length;
    const char *name = entry(text, &length);
    for (unsigned i = 0; i < count; i++) {
        if (keys[i] == 0 || keys[i] == 13) {
            say("  option %d = %d\n", keys[i], (int)(uintptr_t)values[i]);
        }
    }
    if (error != 0) {
        put_log(count, keys, values, 5, "ptxas fatal   : the fake compiler's words\n");
        return error;
    }
    if (!cubin && strstr(text, ".version") == NULL) {
        return INVALID_IMAGE;
    }
    char report[512];
    snprintf(report, sizeof report,
             "ptxas info    : Function properties for '%.*s'\n"
             "ptxas         .     16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
             "ptxas info    : Used 40 registers\n",
             (int)length, name);
    put_log(count, keys, values, 3, option(count, keys, values, 12) != NULL ? report : "");
    say("  from %s\n", cubin ? "a cubin" : "PTX");
    *made = calloc(1, sizeof **made);
    (*made)->owner = current();
    (*made)->ptx = strdup(text);
    fake.alive++;
    return 0;
}

EXPORT int cuModuleUnload(module *unloaded) {
    say("cuModuleUnload\n");
    free(unloaded->ptx);
    free(unloaded);
    fake.alive--;
    return 0;
}

enum { TENSOR_MAP = 128 };

/* Bytes of each .param of the entry. */
static void read_parameters(function *made, const char *at) {
    const char *end = at + strcspn(at, ")");
    while ((at = strstr(at, ".param .")) != NULL && at < end &&
           made->parameters < MOST_PARAMETERS) {
        at += 8;
        unsigned bytes = strncmp(at, "align 2 .b8", 11) == 0    ? 2
                         : strncmp(at, "align 64 .b8", 12) == 0 ? TENSOR_MAP
                                                                : 0;
        for (const char *digit = at; bytes == 0; digit++) {
            if (*digit >= '0' && *digit <= '9') {
                bytes = (unsigned)atoi(digit) / 8;
                break;
            }
        }
        made->bytes[made->parameters++] = bytes;
    }
}

EXPORT int cuModuleGetFunction(function **found, module *owner, const char *name) {
    const int error = enter("cuModuleGetFunction");
    size_t length;
    const char *at = owner->ptx;
    while (error == 0 && *(at = entry(at, &length)) != '\0') {
        if (strlen(name) == length && strncmp(at, name, length) == 0) {
            function *made = &fake.functions[fake.function_count++ % MOST];
            *made = (function){.owner = owner, .most_shared = 48 << 10};
            snprintf(made->name, sizeof made->name, "%s", name);
            read_parameters(made, at);
            *found = made;
            return 0;
        }
    }
    return error != 0 ? error : NOT_FOUND;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, function *asked) {
    const int error = enter("cuFuncGetAttribute");
    *value = attribute == 4 ? 40 : attribute == 3 ? 16 : attribute == 1 ? number("static", 0) : -1;
    return error != 0 ? error : asked->name[0] == '\0' ? INVALID_HANDLE : 0;
}

EXPORT int cuFuncSetAttribute(function *changed, int attribute, int value) {
    const int error = enter("cuFuncSetAttribute");
    say("  %s attribute %d = %d\n", changed->name, attribute, value);
    if (attribute == 8 && error == 0) {
        changed->most_shared = value;
    }
    return error;
}

EXPORT int cuFuncSetCacheConfig(function *changed, int preference) {
    const int error = enter("cuFuncSetCacheConfig");
    say("  %s prefers %d\n", changed->name, preference);
    return error;
}

/* ---- launches ---------------------------------------------------------------------------- */

static uint64_t parameter(const function *run, void **parameters, unsigned index) {
    uint64_t bits = 0; /* of a tensor map: its first ones */
    memcpy(&bits, parameters[index],
           run->bytes[index] < sizeof bits ? run->bytes[index] : sizeof bits);
    return bits;
}

static float float_of(uint64_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* twice(x, o, n), axpy(x, y, n, a) and gather(p, o). */
static void compute(const function *run, void **parameters, unsigned blocks) {
    const int twice = strcmp(run->name, "twice") == 0;
    for (unsigned i = 0; i < blocks && strcmp(run->name, "gather") == 0; i++) {
        const float *const *p = (const float *const *)(uintptr_t)parameter(run, parameters, 0);
        ((float *)(uintptr_t)parameter(run, parameters, 1))[i] = *p[i];
    }
    if (!twice && strcmp(run->name, "axpy") != 0) {
        return;
    }
    const float *x = (const float *)(uintptr_t)parameter(run, parameters, 0);
    float *y = (float *)(uintptr_t)parameter(run, parameters, 1);
    const int n = (int)parameter(run, parameters, 2);
    const float a = twice ? 2.0F : float_of(parameter(run, parameters, 3));
    for (int i = 0; i < n; i++) {
        y[i] = twice ? a * x[i] : a * x[i] + y[i];
    }
}

/* An encoded map begins with its address and then has zeros; all it is made from is said. */
EXPORT int cuTensorMapEncodeTiled(void *map, int element, unsigned rank, void *address,
                                  const uint64_t *dims, const uint64_t *strides,
                                  const uint32_t *box, const uint32_t *element_strides,
                                  int interleave, int swizzle, int promotion, int fill) {
    const int error = enter("cuTensorMapEncodeTiled");
    const uint64_t at = (uintptr_t)address;
    say("  map element %d interleave %d swizzle %d promotion %d fill %d\n", element, interleave,
        swizzle, promotion, fill);
    for (unsigned i = 0; i < rank; i++) {
        say("  dimension %u: %llu stride %llu box %u step %u\n", i, (unsigned long long)dims[i],
            (unsigned long long)(i == 0 ? 0 : strides[i - 1]), box[i], element_strides[i]);
    }
    if (error != 0 || (uintptr_t)map % 64 != 0) {
        return error != 0 ? error : INVALID_VALUE;
    }
    memset(map, 0, TENSOR_MAP);
    memcpy(map, &at, sizeof at);
    return 0;
}

/* As many multiprocessors as the device has, each with one block. */
EXPORT int cuOccupancyMaxActiveClusters(int *count, function *asked, const launch_config *config) {
    const int error = enter("cuOccupancyMaxActiveClusters");
    unsigned blocks = 1;
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const launch_attribute *a = &config->attributes[i];
        blocks =
            a->kind == 4 ? a->value.numbers[0] * a->value.numbers[1] * a->value.numbers[2] : blocks;
    }
    *count = (int)(MULTIPROCESSORS / blocks);
    return error != 0 ? error : asked->name[0] == '\0' ? INVALID_HANDLE : 0;
}

EXPORT int cuLaunchKernelEx(const launch_config *config, function *run, void **parameters,
                            void **extra) {
    const int error = enter("cuLaunchKernelEx");
    say("  %s grid %u %u %u block %u %u %u shared %u on %s", run->name, config->grid[0],
        config->grid[1], config->grid[2], config->block[0], config->block[1], config->block[2],
        config->shared, config->stream != NULL ? "a stream" : "the default stream");
    for (unsigned i = 0; i < config->attribute_count; i++) {
        const launch_attribute *a = &config->attributes[i];
        say(a->kind == 4 ? " cluster %u %u %u" : " policy %u", a->value.numbers[0],
            a->value.numbers[1], a->value.numbers[2]);
    }
    say(" (");
    for (unsigned i = 0; i < run->parameters; i++) {
        const int digits = run->bytes[i] == TENSOR_MAP ? 16 : 2 * (int)run->bytes[i];
        say(i == 0 ? "%0*llx" : ", %0*llx", digits,
            (unsigned long long)parameter(run, parameters, i));
    }
    say(")\n");
    if (error != 0 || extra != NULL || run->owner->owner != current() ||
        (int)config->shared > run->most_shared) {
        return error != 0 ? error : INVALID_VALUE;
    }
    fake.pending = number("kernel", 0);
    if (fake.pending == 0) {
        compute(run, parameters, config->grid[0]);
    }
    fake.clock += 10 + fake.launches++ % 5;
    return 0;
}

/* ---- streams and events ------------------------------------------------------------------ */

EXPORT int cuStreamCreate(void **made, unsigned flags) {
    const int error = enter("cuStreamCreate");
    if (error == 0) {
        *made = malloc(1);
        fake.alive++;
    }
    return error != 0 ? error : flags == 1 ? 0 : INVALID_VALUE;
}

EXPORT int cuStreamDestroy_v2(void *stream) {
    say("cuStreamDestroy_v2\n");
    free(stream);
    fake.alive--;
    return 0;
}

EXPORT int cuStreamSynchronize(void *stream) {
    (void)stream;
    return enter_waiting("cuStreamSynchronize");
}

EXPORT int cuEventCreate(double **made, unsigned flags) {
    const int error = ruled("cuEventCreate");
    if (error != 0 || flags != 0) {
        return error != 0 ? error : INVALID_VALUE;
    }
    *made = calloc(1, sizeof **made);
    fake.alive++;
    return 0;
}

EXPORT int cuEventDestroy_v2(double *event) {
    free(event);
    fake.alive--;
    return 0;
}

EXPORT int cuEventRecord(double *event, void *stream) {
    const int error = ruled("cuEventRecord");
    (void)stream;
    *event = fake.clock;
    return error;
}

EXPORT int cuEventSynchronize(double *event) {
    (void)event;
    return enter_waiting("cuEventSynchronize");
}

EXPORT int cuEventElapsedTime(float *milliseconds, const double *from, const double *to) {
    *milliseconds = (float)((*to - *from) / 1000);
    return ruled("cuEventElapsedTime");
}
