/* The harness of the tests of `runtime`: it opens the fake driver (tests/support/fake_cuda.c),
 * sets its rules, owns a context for diagnostics, and checks what was recorded. */
#ifndef RUNTIME_HARNESS_H
#define RUNTIME_HARNESS_H

#include "support/runtime_said.h"

#include "support/fake_cuda.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef struct fake_driver {
    fake_cuda_reset_function *reset;
    fake_cuda_rule_function *rule;
    fake_cuda_log_function *log;
    fake_cuda_alive_function *alive, *depth;
} fake_driver;

static fake_driver fake;

static void find_fake(const char *name, void *function) {
    void *library = dlopen(LILAC_FAKE_CUDA, RTLD_NOW);
    assert_non_null(library);
    void *const address = dlsym(library, name);
    assert_non_null(address);
    memcpy(function, &address, sizeof address);
}

static int find_fake_driver(void **state) {
    (void)state;
    find_fake("fake_cuda_reset", &fake.reset);
    find_fake("fake_cuda_rule", &fake.rule);
    find_fake("fake_cuda_log", &fake.log);
    find_fake("fake_cuda_alive", &fake.alive);
    find_fake("fake_cuda_depth", &fake.depth);
    return 0;
}

/* ---- the driver -------------------------------------------------------------------------- */

/* Each test begins with a driver in its initial state, and must destroy every object that it
 * creates. */
static int begin(void **state) {
    (void)state;
    fake.reset("");
    context = lilac_context_create();
    return 0;
}

static inline int end(void **state) {
    (void)state;
    assert_nothing_said();
    assert_int_equal(fake.alive(), 0);
    assert_int_equal(fake.depth(), 0);
    lilac_context_destroy(context);
    return 0;
}

static lilac_cuda *open_cuda(const char *rules) {
    fake.reset(rules);
    lilac_cuda *cuda = lilac_cuda_open(context, LILAC_FAKE_CUDA);
    assert_nothing_said();
    assert_non_null(cuda);
    return cuda;
}

typedef struct machine {
    lilac_cuda *cuda;
    lilac_gpu *gpu;
} machine;

static inline machine open_machine(const char *rules) {
    machine made = {.cuda = open_cuda(rules)};
    made.gpu = lilac_gpu_open(made.cuda, context, 0, LILAC_GPU_OWN);
    assert_nothing_said();
    assert_non_null(made.gpu);
    return made;
}

static inline void close_machine(machine *used) {
    lilac_gpu_close(used->gpu);
    lilac_cuda_close(used->cuda);
}

#endif
