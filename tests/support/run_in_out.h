/* Runs a kernel whose two parameters are pointers: to a buffer that it reads, and to one that it
 * writes. One block, one thread of the host. */
#ifndef LILAC_TESTS_RUN_IN_OUT_H
#define LILAC_TESTS_RUN_IN_OUT_H

#include <lilac/sim.h>

static inline bool run_in_out(lilac_context *context, const lilac_simt_kernel *kernel, void *in,
                              size_t in_size, void *out, size_t out_size) {
    lilac_sim_buffer buffers[2] = {
        {.name = "in", .bytes = (uint8_t *)in, .size = in_size, .read_only = true},
        {.name = "out", .bytes = (uint8_t *)out, .size = out_size}};
    lilac_sim_place(buffers, 2);
    uint64_t arguments[2] = {buffers[0].address, buffers[1].address};
    lilac_sim_launch launch = {.kernel = kernel,
                               .grid = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2,
                               .buffers = buffers,
                               .buffer_count = 2,
                               .threads = 1};
    lilac_sim_counters counters = {0};
    return lilac_sim_run(context, &launch, &counters);
}

#endif
