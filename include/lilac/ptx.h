/* target/ptx: SIMT IR → PTX text.
 *
 * Readable PTX: registers carry the names of the values, comments the user's lines, .loc for
 * debuggers. Kernel ABI as Triton 3.6's launcher calls it: the kernel's parameters in order
 * (pointers .u64 .ptr .global .align 1, scalars by value), then two pointers (global scratch,
 * profile scratch); block of 32·num_warps threads (.reqntid), dynamic shared memory
 * `global_smem`; a cluster of num_ctas blocks.
 */
#ifndef LILAC_PTX_H
#define LILAC_PTX_H

#include <lilac/simt.h>

LILAC_BEGIN

typedef struct lilac_ptx_options {
    bool comments;  /* source lines as comments */
    bool line_info; /* .file and .loc */
} lilac_ptx_options;

/* False with diagnostics for what the device's PTX does not have. */
LILAC_API LILAC_MUST_USE bool lilac_ptx_write(lilac_text *out, const lilac_simt_module *module,
                                              const lilac_ptx_options *options);

LILAC_END

#endif
