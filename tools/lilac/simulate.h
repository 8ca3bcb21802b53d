/* An access to shared memory carried out on the simulator. */
#ifndef LILAC_SIMULATE_H
#define LILAC_SIMULATE_H

#include "command.h"

typedef struct simulated_access {
    uint64_t instructions; /* warp instructions, as the simulator counted them */
    uint64_t wavefronts;
    bool correct;          /* memory held every element at its place afterwards */
    uint64_t wrong_offset; /* the first that did not */
} simulated_access;

/* Builds a kernel in which every thread stores its elements of a tensor by `access`, runs it, and
 * checks the contents of memory. False with diagnostics if the simulator refuses the kernel. */
bool simulate_access(simulated_access *result, lilac_context *context,
                     const lilac_plan_access *access, const lilac_layout *distributed,
                     const lilac_layout *memory, const lilac_arch *arch);

#endif
