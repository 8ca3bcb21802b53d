/* Threads for a platform that has none: locks have no effect and no thread starts, so the simulator
 * executes all blocks on the thread that called it. */
#ifndef LILAC_WASM_PTHREAD_H
#define LILAC_WASM_PTHREAD_H

#include <errno.h>

typedef struct pthread_mutex {
    char unused;
} pthread_mutex_t;
typedef struct pthread {
    char unused;
} pthread_t;

#define PTHREAD_MUTEX_INITIALIZER                                                                  \
    { 0 }

static inline int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes) {
    (void)mutex, (void)attributes;
    return 0;
}
static inline int pthread_mutex_destroy(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
static inline int pthread_mutex_lock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
static inline int pthread_mutex_trylock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
static inline int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    (void)mutex;
    return 0;
}
static inline int pthread_create(pthread_t *thread, const void *attributes,
                                 void *(*function)(void *), void *argument) {
    (void)thread, (void)attributes, (void)function, (void)argument;
    return EAGAIN;
}
static inline int pthread_join(pthread_t thread, void **result) {
    (void)thread, (void)result;
    return EINVAL;
}

#endif
