/* target/sim: the simulator. It executes SIMT IR and counts what a GPU's performance counters
 * count.
 *
 * The simulator uses SIMT IR only; it has no layouts and no plans. It executes one instruction for
 * all threads of a block at a time. Where a kernel has several warp programs, this holds for the
 * threads of each program: the programs execute in turns, and a program that waits at a barrier
 * has no turn until it can continue. The blocks of a cluster execute in turns between the barriers
 * of the cluster. Clusters are distributed over the cores of the host.
 *
 * Clusters begin in ascending order. A cluster that repeats the same state in a while loop sleeps
 * until global memory changes. A cluster that executes many instructions in while loops is
 * interrupted at a back edge; then other clusters run or begin. A kernel whose blocks wait for
 * each other therefore ends with one host thread, too. All clusters that have begun use at most
 * one gibibyte of host memory together, or four for each host thread. Kernels without while loops
 * are never interrupted.
 *
 * Progress is a cluster that ends, a byte of global memory that changes, or an iteration of a
 * counted loop that no while loop encloses. A launch without an instruction limit ends when every
 * block that has begun repeats its state (this test is exact), or when there is no progress for
 * stall_seconds of wall-clock time. A while loop that computes for longer than that without a
 * store cannot be distinguished from an endless loop; give such a launch an instruction limit.
 *
 * Arithmetic is exact. add, sub, mul, fma, div, sqrt, rcp, conversions and roundings to an
 * integral value are rounded once, as the PTX manual says. Subnormals are kept unless the
 * instruction has ftz. A NaN result is the canonical NaN of scalar.h; a bitwise change of sign
 * keeps the bits of a NaN. `approximate` division, square root and reciprocal return the correctly
 * rounded result. ex2, lg2, sin, cos, tanh and rsqrt return the double-precision result rounded to
 * f32 (rsqrt of f64 is rounded twice), which is within the error bound of the manual. If threads
 * write the same byte with one instruction, the value of the thread with the highest number
 * remains.
 *
 * Atomics are sequentially consistent, whatever order and scope they name. The operations of one
 * warp's instruction execute without interruption, in ascending order of the threads; the warps of
 * a block follow each other in ascending order. The order of the blocks is that of the host's
 * threads; with one host thread it is ascending, except for blocks that are interrupted in while
 * loops. Additions of f32 in global memory flush subnormals, as devices do.
 *
 * print writes the text that C's printf would write: threads in ascending order, and blocks in
 * ascending order up to the first one that traps. The text of a cluster is truncated after one
 * mebibyte.
 *
 * Models, for the instruction of one warp and its active lanes:
 *
 *   sectors     distinct pieces of arch->sector_bytes that the accesses touch
 *   wavefronts  Lanes form transactions: groups of (banks / W) consecutive lanes, where W is the
 *               number of bank-wide words that one lane accesses (at least 1). A transaction thus
 *               covers at most banks · bank_bytes = 128 bytes: 32 lanes of 32 bits, 16 of 64, 8 of
 *               128. Its wavefronts are the greatest number of distinct words in one bank. A word
 *               that several lanes access counts once (broadcast). A transaction without active
 *               lanes has no wavefront. A matrix is one transaction of 8 rows of 16 bytes. If a
 *               transaction accesses several blocks of a cluster, each block counts separately.
 *
 *           lane 0 ──▶ word 0   bank 0 ┐            lane 0 ──▶ word  0  bank 0 ┐
 *           lane 1 ──▶ word 1   bank 1 ├ 1          lane 1 ──▶ word 32  bank 0 ├ 3 wavefronts
 *           lane 2 ──▶ word 1   bank 1 ┘            lane 2 ──▶ word 64  bank 0 ┘
 *
 * Matrix instructions: the products of elements are exact. For floats, the products over the k of
 * one instruction are summed in double precision in ascending order, C is added last, and the
 * result is rounded once to the type of D, to nearest even; a device may use another order and
 * precision. For f64, each k is one fused multiply-add. Integers are exact; they wrap, or are
 * saturated if the instruction says so. tf32 ignores the low 13 bits of its operands. A wgmma
 * reads its operands when it is issued, and again at the wait that completes it; the second values
 * are used.
 *
 * Traps end the launch. The diagnostic has the source line of the instruction, the block and the
 * thread:
 *
 *   out-of-bounds        An access is outside every buffer, outside the block's shared memory, or
 *                        in a block that the cluster does not have.
 *   outside-interval     An access to shared memory is outside its annotated range of bytes.
 *   null-pointer         An access is within 4 GiB of address 0, and no buffer is near.
 *   misaligned-access    The address is not a multiple of the size of the whole access, or, of a
 *                        bulk copy, not a multiple of 16.
 *   read-only            A store writes a read-only buffer.
 *   divergent-branch     The condition of a branch or a loop differs between threads of the block.
 *   divergent-operand    A descriptor or the predicate of a wgmma differs within the warpgroup.
 *   divergent-predicate  The predicate of a matrix access differs within a warp.
 *   group-barrier        The group number is above 14, differs within a warp or between warps that
 *                        the barrier says are in one group, or a group has another number of
 *                        threads than the barrier says.
 *   assertion-failed     The condition of an assert is false. The diagnostic has its text.
 *   copy-size            A copy would read more bytes than it writes, or the size of a bulk copy
 *                        is not a multiple of 16.
 *   multicast-mask       The mask of a multicast load is 0 or names a block that the cluster does not
 *                        have.
 *   division-by-zero     The result of an integer division or remainder by zero affects what can
 *                        be observed (see below). A note has the place.
 *   loop-step            The step of a loop is not positive.
 *   deadlock             No warp of a cluster can continue. For each program that waits, a note
 *                        has its place and the state of its barrier, and another the last arrival
 *                        there.
 *   mbarrier-missing     There is no mbarrier at the address of the operation.
 *   mbarrier-in-use      mbarrier.init initialises a live mbarrier. A note has its first init.
 *   mbarrier-range       A count or a number of bytes is outside 1 to 2^20 - 1.
 *   mbarrier-count       A phase has more arrivals than it expects. A note has the arrival before.
 *   mbarrier-bytes       Copies complete more bytes than a phase expects.
 *   named-barrier-count  More threads arrive at a named barrier than it has.
 *   named-barrier-reuse  A warp arrives at a named barrier again before it completes.
 *   register-budget      set_max_registers.inc names fewer, or .dec more registers than a thread
 *                        has.
 *   instruction-limit    A block would issue more instructions than the launch allows.
 *   endless-loop         No block can continue, or, without an instruction limit, there was no
 *                        progress for stall_seconds. The diagnostic names the innermost loop of
 *                        the first such block.
 *
 * An integer division by zero does not trap by itself, as on a device: threads that hold copies of
 * elements, or elements that a mask excludes, compute quotients that nothing uses. The simulator
 * marks the bits of the result as poison and follows them through arithmetic, selections,
 * exchanges between threads, values that loops carry, and shared memory. The launch ends when
 * poison reaches, in an active thread,
 *
 *   - an address, a predicate or a stored value of global memory, or an operand of an atomic there
 *   - the address or the predicate of a store, an atomic or a matrix access in shared memory; the
 *     address of a load from shared memory, if the address is not legal (otherwise the loaded
 *     value is poison)
 *   - the condition of a branch, a loop or an assertion, the bounds or the step of a loop, the
 *     number of a group barrier, the predicate of print, or the addresses, predicate or size of a
 *     copy
 *
 * A selection propagates poison from its condition and from the selected operand only. A bit
 * operation, product, sum, shift, minimum or comparison propagates only those bits that the other
 * operand does not determine. The value of the result is all ones (a quotient) or the dividend (a
 * remainder); print shows this value. The least integer divided by minus one wraps; this is not a
 * division by zero.
 *
 * Findings are warnings, and the launch continues:
 *
 *   uninitialised-read   A read of global memory that nothing has written, or of shared memory
 *                        that nothing in this cluster has written.
 *   shared-race          One warp writes a shared byte, and another warp of the cluster accesses
 *                        it, before or after, and no chain of barriers (of blocks, groups or
 *                        clusters) orders the two. A note has the other line. Threads of one warp
 *                        do not race with each other, since they execute in step; nor do two
 *                        atomics.
 *   shared-lifetime      An access to the shared memory of another block with no cluster barrier
 *                        before it (that block may not have begun) or none after it (that block
 *                        may have ended).
 *
 *   copy-in-flight       A thread reads or writes a shared byte while an asynchronous copy into it
 *                        is incomplete, or a cluster accesses a global byte while one of its own
 *                        bulk copies into it is incomplete. A note has the copy.
 *   copy-source-written  A shared byte is written before a bulk copy from it has read it. A note
 *                        has the copy.
 *   copy-source-changed  Global memory has another value when a copy completes than when the copy
 *                        started. A note has the wait that completes it.
 *   copy-not-awaited     A copy is incomplete, or a bulk store has not read its source, when its
 *                        block ends.
 *   missing-proxy-fence  The async proxy accesses a byte that a thread of the cluster wrote with
 *                        an ordinary store, and that thread executed no fence.proxy_async after
 *                        the store, or no barrier orders the fence before the access. A note has
 *                        the store.
 *
 *   tensor-map-not-acquired  A copy uses a tensor map that a tensor_map.publish has put into scratch
 *                        memory, and no tensor_map.acquire behind it is of the copy's warp or ordered
 *                        before it. A note has the publication.
 *   tensor-map-in-use    A tensor_map.publish replaces a map that an incomplete copy uses. A note has
 *                        the copy.
 *
 *   wgmma-register       A result of a wgmma is used before a wait completes it, or an accumulator
 *                        is used after a wgmma has overwritten its register. A note has the wgmma.
 *   wgmma-serialised     A result of a wgmma is copied to another register before a wait completes
 *                        it. Assemblers wait for every wgmma of such a kernel. The simulator
 *                        completes all of them here.
 *   wgmma-operand-changed  An element of A or B differs between the issue and the wait: shared
 *                        memory or a register was overwritten too early. A note has the wait.
 *   missing-wgmma-fence  A wgmma uses registers that another instruction accessed after the last
 *                        wgmma.fence.
 *   wgmma-not-committed  A wgmma belongs to no group when a wait is executed.
 *   wgmma-not-awaited    A wgmma is incomplete when its block ends.
 *
 *   mbarrier-missed      A wait follows at least two phases for which its warp has not waited, so
 *                        the parity does not identify the phase. A note has the last arrival.
 *   mbarrier-unfinished  A phase has missing bytes, or only some of its arrivals, when the cluster
 *                        ends.
 *   named-barrier-unfinished  Only some threads have arrived at a named barrier when the block
 *                             ends.
 *
 *   swizzle-base         The shared address of a swizzled box is not a multiple of the period of
 *                        the swizzle, so the pattern does not begin with the box; or an operand of
 *                        wgmma begins in another row of the pattern than the base offset of its
 *                        descriptor.
 *   matrix-descriptor    Groups of 8 rows of a swizzled operand of wgmma overlap: two strides of
 *                        the descriptor are exchanged.
 *
 *   global-race          Two accesses to a byte of global memory, at least one of them a write,
 *                        are not ordered. A note has the other line.
 *
 * For races, each of the four warps of a wgmma reads its shared bytes both at the issue and at the
 * wait. Poison in shared memory is not followed through a wgmma; poison in its registers ends the
 * launch.
 *
 * An mbarrier or a named barrier orders what the arriving warps did before their arrival before
 * what the waiting warps do after their wait. It does not order what the arriving warps do later.
 * Operations on an mbarrier are accesses to its 8 bytes: a use that is not ordered after its init
 * is a shared-race.
 *
 * An asynchronous copy is executed as late as the rules allow: at the wait of its thread that
 * completes it, or, if cp.async.mbarrier_arrive tracks it, when no warp of the cluster can
 * continue without its arrival. In the second case its writes are ordered before the warps that
 * wait at that mbarrier, and before no others. Until then its destination holds undefined bytes.
 * For races, it is a write of its warp to shared memory from its start to that wait, and a read of
 * global memory both when it starts and when it completes.
 *
 * A bulk store or reduction is executed as late as the rules allow, too. It reads shared memory at
 * the bulk.wait_read or bulk.wait of its thread that completes the read. It writes global memory
 * at the bulk.wait that completes it, or when its block ends. For races, it is a read of shared
 * memory from its start to its read, and a write of global memory when it completes. A bulk load
 * writes shared memory when no warp of its cluster can continue without it, or when a try_wait
 * finds its phase incomplete; its bytes are in flight from its start. Bytes that cp.async wrote
 * need a wait and a barrier before the async proxy reads them, but no fence: PTX does not
 * guarantee this, but devices behave so and libraries depend on it.
 *
 * Three things order accesses to global memory: the instructions of one warp are ordered; a chain
 * of barriers orders the warps of a block, of groups of its warps or of a cluster; and an acquire
 * that reads a release orders any two threads of the grid. An atomic with the order release (or
 * acq_rel) publishes the accesses of its warp and those that are ordered before them. An atomic
 * with the order acquire (or acq_rel) whose result is used is ordered after all releases in its
 * scope that changed the location since the last plain store to it. Nothing else orders blocks;
 * where blocks do not synchronise, a race between them is therefore found in every schedule of the
 * host.
 *
 *   - Two atomics do not race, unless the scope of one is a block and the other is in another
 *     block. An atomic and a plain access race. A compare-and-swap that fails is a load.
 *   - A volatile access counts as an atomic. A volatile load also acquires. PTX does not guarantee
 *     this (it is ld.relaxed.sys there), but kernels that wait for a flag depend on it.
 *   - A store of the value that another unordered store has written is not a race, as when threads
 *     that hold copies of an element, or all blocks, store the same value. Nor does a load race
 *     that is ordered after one of these stores.
 *   - If several warps load an element with one instruction and one of them stores it later, the
 *     loads of the others do not race with the store: they are copies of an element that is
 *     updated in place.
 *   - Threads of one warp execute in step. They race only if one instruction stores different
 *     values in one location.
 *   - Not covered: read-only buffers, and buffers that the kernel does not write (by the
 *     parameters from which the addresses of its stores are computed); accesses of other launches
 *     and of the host; races that only another order of the acquires would show; loads of a
 *     location in which more than 255 blocks store one value; in kernels that synchronise, loads
 *     of a location by more than 64 blocks, beyond the first 64.
 *
 * A launch is refused before it begins with the diagnostics of the verifier, or with
 * argument-count, grid-size, tensor-map, buffer-overlap, unsupported-instruction (assembly,
 * saturation, ballots of 64 lanes) or too-many-values.
 *
 * Blocks that write the same global byte race, as on a device: the final value is not determined.
 * With several host threads, neither are the blocks that a global-race names and the number of
 * their instructions. Everything else is deterministic.
 */
#ifndef LILAC_SIM_H
#define LILAC_SIM_H

#include <lilac/simt.h>
#include <lilac/tensor_map.h>

LILAC_BEGIN

/* A range of global memory. */
typedef struct lilac_sim_buffer {
    const char *name; /* in diagnostics */
    uint64_t address; /* in kernels; lilac_sim_place chooses addresses that do not overlap */
    uint8_t *bytes;   /* NULL only when size is 0 */
    uint64_t size;
    uint8_t *written; /* one entry for each byte, nonzero: it is initialised; NULL: all are */
    bool read_only;
} lilac_sim_buffer;

/* Sets the addresses of the buffers: far from each other, multiples of 256, and in an address
 * range that is never valid on the host. */
LILAC_API void lilac_sim_place(lilac_sim_buffer *buffers, uint32_t count);

/* The progress of a launch. */
typedef struct lilac_sim_progress {
    uint64_t blocks_ended, blocks;
    double seconds; /* since the launch began */
} lilac_sim_progress;

/* Called by one host thread of the launch at a time, at most ten times a second: when a block
 * ends, and in loops. */
typedef void (*lilac_sim_progress_function)(void *data, const lilac_sim_progress *progress);

#define LILAC_SIM_LIMIT (UINT64_C(1) << 36)
enum { LILAC_SIM_STALL_SECONDS = 10 };

typedef struct lilac_sim_launch {
    const lilac_simt_kernel *kernel; /* in a verified module, which names the device */
    uint32_t grid[3]; /* programs along x, y, z; a zero: nothing runs. A program of a kernel with
                         num_ctas blocks a cluster is that many blocks */
    uint32_t parts;   /* above 1: that many blocks along z for each program, one cluster, as of a
                       launcher that divides sums of products (tensor_map.h); then num_ctas and
                       grid[2] are 1 */
    const uint64_t *arguments; /* bits of each parameter; pointers: an address; tensor maps: the
                                  number of one of these */
    const lilac_tensor_map *tensor_maps;
    uint32_t tensor_map_count;
    uint32_t argument_count; /* must be kernel->parameter_count */
    lilac_sim_buffer *buffers;
    uint32_t buffer_count;
    uint32_t threads;    /* host threads; 0: one a core */
    lilac_text *printed; /* the output of print is appended; NULL: it is a warning, id `printed` */
    uint64_t instruction_limit; /* that a block's warps may issue together, as the counter of
                                   instructions counts them; 0: LILAC_SIM_LIMIT, and launches
                                   without progress end (endless-loop) */
    double stall_seconds;       /* without progress, after which such a launch ends; 0: 10 */
    lilac_sim_progress_function progress; /* NULL: none */
    void *progress_data;
    struct lilac_sim_profile *profile; /* set by the launch, if not NULL, when it succeeds */
} lilac_sim_launch;

enum { LILAC_SIM_WIDTHS = 6 };

/* Counters, summed over all blocks. A warp instruction is one instruction executed by one warp;
 * for loads and stores only those with an active lane count. */
typedef struct lilac_sim_counters {
    uint64_t blocks;
    uint64_t instructions; /* warp instructions issued, without constants, parameters, indices
                              of thread and block, and terminators; a loop counts once for
                              each test of its condition */
    uint64_t global_loads, global_stores;               /* warp instructions */
    uint64_t global_load_sectors, global_store_sectors; /* sectors touched */
    uint64_t global_load_bytes, global_store_bytes;     /* requested by active threads */
    uint64_t shared_loads, shared_stores;               /* warp instructions */
    uint64_t shared_load_wavefronts, shared_store_wavefronts;
    uint64_t shared_load_bytes, shared_store_bytes; /* moved by active threads */
    uint64_t matrix_loads, matrix_stores;           /* of the shared_loads, shared_stores */
    uint64_t cluster_loads, cluster_stores;         /* likewise: ld.cluster, st.cluster */
    uint64_t async_copies;                    /* warp instructions cp.async; in no other count: */
    uint64_t async_sectors, async_wavefronts; /* read in global, written in shared memory */
    uint64_t async_bytes;                     /* written by active threads */
    uint64_t mmas, wgmmas;                    /* warp instructions */
    uint64_t wgmma_cycles; /* of the tensor cores: n / 2 for each warpgroup, at least 19 */
    uint64_t wgmma_bytes;  /* of shared memory that wgmmas read; once for each warpgroup */
    uint64_t bulk_copies, bulk_bytes;       /* of each thread; in no other count. A multicast
                                               load is one copy for each block of its mask */
    uint64_t shuffles, votes;               /* warp instructions */
    uint64_t selects, permutes;             /* warp instructions select, prmt */
    uint64_t barriers;                      /* once a block */
    uint64_t warp_barriers, group_barriers; /* once a warp */
    uint64_t cluster_barriers;              /* once a block */
    uint64_t atomics; /* warp instructions, of global and of shared memory; in no other count */
    uint64_t races, uninitialised_reads;    /* warp instructions with such a finding; lifetimes and
                                               races in global memory are among the races. The first
                                               few of each, one a pair of lines, are diagnostics */
    uint64_t access_bits[LILAC_SIM_WIDTHS]; /* global accesses (warp instructions) of 8 16 32 64 128
                                               256 bits a thread */
} lilac_sim_counters;

/* What one instruction did in a launch, summed over all blocks. */
typedef struct lilac_sim_site {
    const lilac_simt_instruction *instruction;
    uint64_t executions;         /* by warps; those in which no lane is active count, too */
    lilac_sim_counters counters; /* without `blocks`; of an asynchronous copy where it starts */
} lilac_sim_site;

/* The sites of a kernel: each instruction that the simulator executes as a step of its own, in
 * program order. Cluster barriers are not counted by site. */
typedef struct lilac_sim_profile {
    lilac_sim_site *sites;
    uint32_t count;
} lilac_sim_profile;

/* Frees the sites. */
LILAC_API void lilac_sim_profile_clear(lilac_sim_profile *profile);

/* Runs a launch. False: it was refused, or a block trapped. Then diagnostics have the reason (the
 * first block's if several trap), the counters are zero, and the contents of the buffers are not
 * determined. Findings are warnings; the result is still true. Asserts that context, launch,
 * kernel, counters, and all arrays with entries are not NULL. */
LILAC_API LILAC_MUST_USE bool lilac_sim_run(lilac_context *context, const lilac_sim_launch *launch,
                                            lilac_sim_counters *counters);
/* Prints one aligned line for each counter, findings (races, uninitialised_reads) first. Without
 * `zeros`, counters that are 0 are omitted. */
LILAC_API void lilac_sim_counters_print(lilac_text *out, const lilac_sim_counters *counters,
                                        bool zeros);
/* Prints one JSON object with the names of the fields; access_bits is an object with the widths as
 * keys. */
LILAC_API void lilac_sim_counters_json(lilac_text *out, const lilac_sim_counters *counters);

LILAC_END

#endif
