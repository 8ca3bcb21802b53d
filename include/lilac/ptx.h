/* target/ptx: SIMT IR → PTX text.
 *
 *   %12: f32 "mean" = fadd %10, %11        add.f32 %f12_mean, %f10, %f11;
 *   loop, if, while                        labels and bra.uni; carried values as parallel copies
 *
 * Readable: a register carries the number and the name of its value (%p i1, %rs i8 i16, %h f16
 * bf16, %r i32 and packed pairs, %f f32, %rd i64, %fd f64; temporaries %tp %ts %tr %td), one
 * instruction a line, constants as immediates where PTX takes them. The same module gives the same
 * text.
 *
 * Exact: products of floats name their rounding, so ptxas fuses nothing that SIMT IR did not (but
 * the products that end its own approximations, with sums of f32); an f64 or a wide integer
 * becomes bf16 with one rounding; a NaN becomes the integer 0 on every path; i1 and i8 arithmetic
 * wrap at their width. What target/sim computes is what the device does, except for the operations
 * that SIMT IR calls approximate.
 *
 * Kernel ABI as Triton 3.6's launcher calls it: the kernel's parameters in order (pointers
 * .u64 .ptr .global .align 1; i1 and i8 .u8, i16 .u16, i32 .u32, i64 .u64, f32 .f32, f64 .f64, f16
 * and bf16 .align 2 .b8[2]), then two pointers (global scratch, profile scratch); blocks of
 * 32·num_warps threads (.reqntid), dynamic shared memory `global_smem`, and for num_ctas > 1
 * .explicitcluster and .reqnctapercluster.
 *
 * An atomic whose old value nobody wants is a red where it orders nothing after it, else an atom
 * with no destination. Assembly stands in braces of its own, so that its labels and registers are
 * its own. A print calls vprintf.
 *
 * A failed assert calls __assertfail with its message, file, line and kernel, then traps.
 *
 * The module is written in the lowest PTX ISA version that its device and its instructions need. A
 * module with inline assembly, whose instructions are not known, is written in the newest version
 * that the options allow or, if they name none, in one that the device's row in arch names.
 *
 * Used by driver and by tools; it knows SIMT IR and arch only.
 */
#ifndef LILAC_PTX_H
#define LILAC_PTX_H

#include <lilac/simt.h>

LILAC_BEGIN

/* The code from byte `offset` of the text up to the next entry has this location; 0: none. */
typedef struct lilac_ptx_origin {
    size_t offset;
    lilac_location location;
} lilac_ptx_origin;

/* The locations of the code, by growing offset. */
typedef struct lilac_ptx_origins {
    lilac_ptx_origin *list;
    uint32_t count, capacity;
} lilac_ptx_origins;

/* Frees the list. */
LILAC_API void lilac_ptx_origins_clear(lilac_ptx_origins *origins);

typedef struct lilac_ptx_options {
    bool comments;  /* source places and parameters' names as comments */
    bool line_info; /* .file and .loc */
    /* The newest PTX ISA version, times ten, that the assembler or driver reads; 0: any. */
    uint32_t newest_version;
    lilac_ptx_origins *origins; /* appended to, if not NULL */
} lilac_ptx_options;

/* Appends the module's PTX to `out`. The module must be one that lilac_simt_verify accepts. False,
 * with `out` as it was and a diagnostic of id `unsupported-on-target`, for what the device's PTX
 * does not have: an operation of a type (division of f16, say), f8_pack before sm_89, clusters
 * before sm_90, a launch shape or a name that PTX cannot say, more than 32,764 bytes of parameters,
 * a device that is not NVIDIA's; and with the id `ptx-version` where the module needs a newer PTX
 * ISA version than the options allow. Linear in the number of instructions, about 50 ns each. */
LILAC_API LILAC_MUST_USE bool lilac_ptx_write(lilac_text *out, const lilac_simt_module *module,
                                              const lilac_ptx_options *options);

/* Appends the name that a kernel has in PTX: `name` itself, or "kernel_" and `name` where no entry
 * can have that name (WARP_SZ) or the module declares it (vprintf, global_smem). */
LILAC_API void lilac_ptx_kernel_name(lilac_text *out, const char *name);

/* The newest PTX ISA version, times ten, that a CUDA toolkit or driver reads: 87 for `cuda` 12080
 * (major · 1000 + minor · 10, as cuDriverGetVersion counts). 0 for versions before 11.0. */
LILAC_API uint32_t lilac_ptx_version_of_cuda(uint32_t cuda);

LILAC_END

#endif
