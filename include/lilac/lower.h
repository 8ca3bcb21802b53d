/* lower: tile IR with layouts → SIMT IR.
 *
 *   tensor       in each thread, one value for each register of its layout; replicas share a value
 *   scalar       one value, equal in all threads
 *   pointer      i64; an address is a value and a constant, the immediate offset of an access
 *   tt.load      as wide as contiguity, alignment and mask allow, at most 16 bytes per thread;
 *   tt.store     elements under 32 bits are packed into words; one holder of each element stores it
 *   tt.reduce    in the thread, by shuffles, then through shared memory; any region, axis, layout
 *   tt.scan      in the thread, by shuffles, then one barrier; any region, axis, layout, direction
 *   tt.gather    by shuffles, or through shared memory of the warp or block, whichever costs least
 *   functions    math.* and tt.extern_elementwise of libdevice's names: f32 by the machine's
 *                approximations if Triton uses them (exp2, sqrt and rsqrt flush subnormals
 *                unless the options keep them),
 *                otherwise within 2 ulp on the simulator (the Bessel functions J and Y of f64: see
 *                libdevice.c); an unknown name is refused
 *   histograms   by atomics in shared memory; tt.cat as a register permutation
 *   atomics      one holder of an element executes the instruction, all holders receive the old
 *                value; adjacent floats share one instruction
 *   tt.print     one line for each element, by one of the threads that hold it
 *   inline PTX   known instructions as operations, the rest as inline assembly of SIMT IR
 *   shapes       register permutations if the layouts allow it; otherwise as conversions
 *   conversions  ttg.convert_layout executes a conversion plan (plan.h); its attribute
 *                lilac.movement, "shuffles", "shared" or "unswizzled", selects the strategy
 *   memory       ttg.local_alloc … placed by their lifetimes; stores and loads are the accesses of
 *                the tensor's layout to the memory's
 *
 * Shared memory holds the allocations, then scratch for exchanges and reductions. Each access
 * states the bytes that it may touch, and a barrier is built wherever one may be needed. The
 * kernel is correct as it is; lilac_simt_opt_barriers removes the barriers that order nothing.
 *
 * Each group of operations is one file of src/lower/ or of its folders memory, collective, math
 * and assembly. src/tile/operations.def names the function for each operation.
 */
#ifndef LILAC_LOWER_H
#define LILAC_LOWER_H

#include <lilac/access.h>
#include <lilac/collective.h>
#include <lilac/dot.h>
#include <lilac/plan.h>
#include <lilac/simt.h>
#include <lilac/tile.h>

LILAC_BEGIN

/* Lowers each public function with a body to a kernel. NULL, with diagnostics at the operation's
 * position and the user's line, if an operation has no lowering: ids `unsupported-operation`,
 * `unsupported-type`, `layout-conversion`, `too-much-shared-memory`, `unknown-function`. */
LILAC_API LILAC_MUST_USE lilac_simt_module *lilac_lower(lilac_tile_module *module,
                                                        const lilac_target *target);

/* ---- the plans that were executed -------------------------------------------------------- */

typedef enum lilac_lowered_kind {
    LILAC_LOWERED_ACCESS,     /* of global memory; of an asynchronous copy its source */
    LILAC_LOWERED_CONVERSION, /* of ttg.convert_layout, or a part of another operation */
    LILAC_LOWERED_REDUCTION,
    LILAC_LOWERED_SCAN,
    LILAC_LOWERED_GATHER,
    LILAC_LOWERED_HISTOGRAM,
    LILAC_LOWERED_SHARED, /* of shared memory; of an asynchronous copy its destination */
    LILAC_LOWERED_DOT
} lilac_lowered_kind;

/* An access to shared memory of the program. `replicas`: bits of a thread's index; where one is
 * set, the thread holds copies and does not store. */
typedef struct lilac_lowered_shared {
    lilac_plan_access access;
    bool loads;
    uint32_t replicas;
} lilac_lowered_shared;

typedef struct lilac_lowered_dot {
    lilac_plan_dot plan;
    lilac_plan_dot_problem problem;
    bool in_memory[2];               /* operands A and B: */
    lilac_plan_dot_memory memory[2]; /* of those in shared memory */
} lilac_lowered_dot;

/* A plan that the lowering of an operation executed. */
typedef struct lilac_lowered_plan {
    const lilac_tile_op *op;
    lilac_lowered_kind kind;
    union {
        const lilac_plan_global_access *access;
        const lilac_plan_reduce *reduction;
        const lilac_plan_scan *scan;
        const lilac_plan_gather *gather;
        const lilac_plan_histogram *histogram;
        const lilac_lowered_shared *shared;
        const lilac_lowered_dot *dot;
        const lilac_plan_conversion *conversion;
    } is;
    const lilac_layout_columns *from, *to; /* of a conversion */
    uint32_t element_bits;                 /* likewise */
    struct lilac_lowered_plan *next;
} lilac_lowered_plan;

/* The plans of a module, in the order of the operations. They live in the arena. */
typedef struct lilac_lowered_plans {
    lilac_arena *arena;
    lilac_lowered_plan *first, *last;
} lilac_lowered_plans;

typedef struct lilac_lower_options {
    bool keep_subnormals;       /* exp2, sqrt and rsqrt of f32 do not flush subnormals to zero */
    lilac_lowered_plans *plans; /* the executed plans are appended; NULL: they are not kept */
} lilac_lower_options;

/* lilac_lower with options; lilac_lower has none of them set. */
LILAC_API LILAC_MUST_USE lilac_simt_module *lilac_lower_with(lilac_tile_module *module,
                                                             const lilac_target *target,
                                                             const lilac_lower_options *options);

/* Executes a conversion plan in a kernel that is being built. `values` are a thread's registers
 * in the source layout, one SIMT value of the element's type for each register; an element of
 * 128 bits has two values of 64 bits, the low half first. `results` are the registers in the
 * target layout. `scratch` is the offset of the exchange's bytes in the block's shared memory.
 * The caller builds the barrier against earlier accesses to these bytes. Temporary data is
 * allocated from `arena`. False: out of memory. */
LILAC_API LILAC_MUST_USE bool lilac_lower_movement(lilac_simt_builder *builder, lilac_arena *arena,
                                                   const lilac_plan_conversion *plan,
                                                   lilac_simt_type type,
                                                   const lilac_simt_value *values, uint64_t scratch,
                                                   lilac_simt_value *results);
/* A kernel that executes one plan, for the simulator: `convert(source, target)` with two
 * pointers to global memory. The registers of thread t of block b (its rank in the cluster) are
 * consecutive and begin at element ((b << thread bits) + t) << register bits. The kernel loads
 * all registers of the source, copies included, executes the plan, and stores all registers of
 * the target. */
LILAC_API LILAC_MUST_USE lilac_simt_module *
lilac_lower_movement_kernel(lilac_context *context, const lilac_plan_conversion *plan);

LILAC_END

#endif
