/* How deep programs may nest. Readers, passes and printers recur on regions, so the stack of the
 * calling thread bounds the depth. */
#if defined(__linux__)
#define _GNU_SOURCE /* pthread_getattr_np */
#elif defined(__APPLE__)
#define _DARWIN_C_SOURCE
#endif

#include <lilac/base.h>

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

enum {
    KEPT = 64 * 1024,         /* bytes for what does not recur on regions */
    ASSUMED = 512 * 1024 / 2, /* bytes left where the system does not say */
#if defined(__SANITIZE_ADDRESS__) || HAS_FEATURE(address_sanitizer) || HAS_FEATURE(memory_sanitizer)
    LEVEL = 6144
#elif !defined(__OPTIMIZE__)
    LEVEL = 2048
#else
    LEVEL = 1024 /* bytes of stack that the deepest recursion needs for one region */
#endif
};

/* The lowest address of the calling thread's stack; 0: the system does not report it. */
static uintptr_t find_stack_end(void) {
    uintptr_t low = 0;
#if defined(__linux__)
    pthread_attr_t attributes;
    void *base;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &base, &size) == 0) {
            low = (uintptr_t)base;
        }
        pthread_attr_destroy(&attributes);
    }
#elif defined(__APPLE__)
    pthread_t self = pthread_self();
    low = (uintptr_t)pthread_get_stackaddr_np(self) - pthread_get_stacksize_np(self);
#elif defined(_WIN32)
    ULONG_PTR base, end;
    GetCurrentThreadStackLimits(&base, &end);
    low = (uintptr_t)base;
#endif
    return low;
}

/* Bytes of the calling thread's stack below the caller's frame. The end of a thread's stack does not
 * move, and glibc reads /proc/self/maps to find that of the first thread, which costs as much as a
 * tenth of a compilation. So each thread remembers it. */
static size_t stack_left(void) {
    static _Thread_local uintptr_t end;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (end == 0) {
        end = find_stack_end();
    }
    return end != 0 && end < here ? here - end : ASSUMED;
}

uint32_t lilac_nesting_limit(void) {
    size_t left = stack_left();
    size_t levels = left > KEPT ? (left - KEPT) / LEVEL : 0;
    return levels < LILAC_MIN_NESTING   ? LILAC_MIN_NESTING
           : levels > LILAC_MAX_NESTING ? LILAC_MAX_NESTING
                                        : (uint32_t)levels;
}
