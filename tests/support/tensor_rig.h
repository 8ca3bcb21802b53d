/* Kernels with a tensor map, parameter 0, and a buffer, parameter 1: this header runs them, also
 * after each pass on SIMT IR and with each of a list of mutations. */
#ifndef LILAC_TESTS_TENSOR_RIG_H
#define LILAC_TESTS_TENSOR_RIG_H

#include "support/text_rig.h"

/* The memory of a buffer. */
typedef struct tensor_rig_memory {
    const char *name;
    void *bytes;
    uint64_t size;
} tensor_rig_memory;

/* Runs the kernel with a map of the tensor. Sets the address of the map, which later launches of
 * the rig use. */
static inline bool tensor_rig_run(text_rig *r, lilac_tensor_map *map, tensor_rig_memory tensor,
                                  tensor_rig_memory buffer) {
    simt_text_give(&r->t, tensor.name, tensor.bytes, tensor.size);
    simt_text_give(&r->t, buffer.name, buffer.bytes, buffer.size);
    lilac_sim_place(r->t.buffers, 2);
    map->address = r->t.buffers[0].address;
    r->t.arguments[0] = 0; /* the number of the map */
    r->t.arguments[1] = r->t.buffers[1].address;
    r->t.launch.argument_count = 2;
    r->t.launch.tensor_maps = map;
    r->t.launch.tensor_map_count = 1;
    return lilac_sim_run(r->t.context, &r->t.launch, &r->t.counters);
}

/* Checks the results of another launch after each of the passes that fold offsets and remove
 * barriers. */
static inline void tensor_rig_run_passes(text_rig *r, void (*check)(const text_rig *r)) {
    static bool (*const passes[])(lilac_simt_kernel *) = {
        lilac_simt_opt_fold, lilac_simt_opt_cse,      lilac_simt_opt_licm, lilac_simt_opt_dce,
        lilac_simt_opt_fold, lilac_simt_opt_barriers, lilac_simt_opt_dce,
    };
    for (size_t k = 0; k < sizeof passes / sizeof *passes; k++) {
        passes[k](r->t.kernel);
        assert_true(lilac_simt_verify(r->t.module));
        assert_true(lilac_sim_run(r->t.context, &r->t.launch, &r->t.counters));
        check(r);
    }
}

/* Each mutation must be reported. `run`: opens the rig with the mutation and runs it. */
static inline void tensor_rig_mutate(const mutation *cases, size_t count,
                                     bool (*run)(text_rig *r, const char *from, const char *to)) {
    for (size_t k = 0; k < count; k++) {
        text_rig r;
        (void)run(&r, cases[k].from, cases[k].to);
        expect_finding(&r, cases[k].id, cases[k].at, cases[k].other);
        text_close(&r);
    }
}

#endif
