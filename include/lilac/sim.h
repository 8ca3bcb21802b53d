/* target/sim: SIMT IR executed, with the accounts a GPU's counters would give.
 *
 * Knows SIMT IR only: no layouts, no plans. All threads of a block run in step, one instruction for
 * all of them at a time. Where a kernel has several programs, this holds for the threads of each:
 * programs take turns, and one that waits at a barrier is passed over until it can go on. The
 * blocks of a cluster take turns between its barriers; clusters are spread over the machine's cores.
 *
 * Clusters begin in ascending order. One that repeats the same state in a while loop until others
 * change global memory sleeps until then, and one that stays long in while loops is interrupted at
 * their back edges; others run in between, or begin. So a kernel whose blocks wait for each other
 * ends with one host thread too. The clusters that have begun take at most a gibibyte together, or
 * four for each host thread. Kernels without while loops are never interrupted.
 *
 * Progress is a cluster that ends, a byte of global memory that changes, or an iteration of a
 * counted loop that is in no while loop. A launch without an instruction limit ends when every
 * block that has begun repeats its state (this is exact), or when there is no progress for
 * stall_seconds of wall-clock time. A while loop that computes for longer than that without a store
 * looks like an endless one: give it an instruction limit.
 *
 * Arithmetic is exact: add, sub, mul, fma, div, sqrt, rcp, conversions and roundings to an integral
 * value are rounded once as the PTX manual says, subnormals are kept unless the instruction says
 * ftz, and a NaN result is the canonical one of scalar.h (a bitwise change of sign keeps its bits).
 * `approximate` division, square root and reciprocal give the correctly rounded result. ex2, lg2,
 * sin, cos, tanh and rsqrt are the double-precision result rounded to f32 (rsqrt of f64: two
 * roundings), which is within the error that the manual allows the hardware's. Threads that write
 * the same byte with one instruction: the one with the highest number wins.
 *
 * Atomics are sequentially consistent, whatever order and scope they name: a warp's instruction is
 * done whole before another one on the same memory begins, its threads in ascending order; the
 * warps of a block take turns in ascending order. Between blocks the order is that of the host's
 * threads; with one of them, ascending, but for blocks that are interrupted in while loops. f32 in
 * global memory is added with subnormals taken as zero, as devices do.
 *
 * print gives the text that C's printf would, threads in ascending order, blocks in ascending order
 * up to the first that traps; a cluster's text ends after a mebibyte.
 *
 * The models, for one warp's instruction and its active lanes:
 *
 *   sectors     distinct pieces of arch->sector_bytes that the accesses touch
 *   wavefronts  lanes form transactions: groups of (banks / W) consecutive lanes, W being the
 *               bank-wide words that one lane's access takes (at least 1), so that a transaction is
 *               at most banks · bank_bytes = 128 bytes: 32 lanes of 32 bits, 16 of 64, 8 of 128. A
 *               transaction costs the most distinct words that fall into one bank; a word touched
 *               by several lanes counts once (broadcast); a group with no active lane costs
 * nothing. A matrix is one transaction, of 8 rows of 16 bytes. Each block of a cluster that a
 *               transaction reaches into counts by itself
 *
 *           lane 0 ──▶ word 0   bank 0 ┐            lane 0 ──▶ word  0  bank 0 ┐
 *           lane 1 ──▶ word 1   bank 1 ├ 1          lane 1 ──▶ word 32  bank 0 ├ 3 wavefronts
 *           lane 2 ──▶ word 1   bank 1 ┘            lane 2 ──▶ word 64  bank 0 ┘
 *
 * Matrix instructions: the products of elements are exact. Of floats, their sum over the k of one
 * instruction is taken in double precision in ascending order, C is added last, and the result is rounded
 * once to the type of D, nearest even; devices sum in an order and precision of their own. f64 takes a
 * fused multiply-add for each k. Integers are exact and wrap, or are saturated where the instruction says
 * so. tf32 ignores the low 13 bits of its operands. A wgmma reads its operands when it is issued and once
 * more when the wait that covers it completes it; the second reading counts.
 *
 * Traps end the launch; the diagnostic has the instruction's source line, the block and the thread:
 *
 *   out-of-bounds        an access outside every buffer, outside the block's shared memory, or to a
 *                        block that the cluster does not have
 *   outside-interval     an access to shared bytes other than those it promises
 *   null-pointer         an access within 4 GiB of address 0, and no buffer near
 *   misaligned-access    an address that is no multiple of the access's whole size, of a bulk copy no
 *                        multiple of 16
 *   read-only            a store to a read-only buffer
 *   divergent-branch     a branch or loop condition that differs between threads of the block
 *   divergent-operand    a descriptor or the predicate of a wgmma that differs within the warpgroup
 *   divergent-predicate  a predicate of a matrix access that differs within a warp
 *   group-barrier        a number that is above 14, differs within a warp or among those that the
 *                        barrier says meet, or that not exactly as many threads give as it says
 *   assertion-failed     a failed assert, with its text
 *   copy-size            a copy that is to read more bytes than it writes; a bulk copy of a size that
 *                        is no multiple of 16
 *   multicast-mask       a mask of a multicast load that is 0 or names a block that the cluster does not
 *                        have
 *   division-by-zero     the result of an integer division or remainder by zero decides what the
 *                        launch does (below); a note has the place where it does
 *   loop-step            a loop whose step is not positive
 *   deadlock             no warp of a cluster can go on; for each program that waits, a note has its
 *                        place and the state of its barrier, and one has the last arrival there
 *   mbarrier-missing     an operation at an address where there is no mbarrier
 *   mbarrier-in-use      mbarrier.init of a live mbarrier; a note has its first init
 *   mbarrier-range       a count or a number of bytes outside 1 to 2^20 - 1
 *   mbarrier-count       more arrivals than a phase expects; a note has the last arrival before
 *   mbarrier-bytes       more bytes of copies than a phase expects
 *   named-barrier-count  more threads than a named barrier has
 *   named-barrier-reuse  a warp that arrives again before the barrier completes
 *   register-budget      set_max_registers inc to fewer or dec to more than a thread has
 *   instruction-limit    a block that would issue more instructions than the launch allows
 *   endless-loop         no block can go on, or, without an instruction limit, there was no
 * progress for stall_seconds. The first such block's innermost loop is named
 *
 * An integer division by zero is no trap by itself, as it is none on a device: threads that hold
 * copies of elements, or elements that a mask leaves out, divide what no one looks at. The bits of
 * the result are followed through arithmetic, selections, exchanges between threads, registers that
 * loops carry and shared memory. The launch ends when one of them reaches, in an active thread,
 *
 *   - an address, a predicate or a stored value of global memory, or an atomic's operand there
 *   - the address or predicate of a store, an atomic or a matrix access in shared memory; the
 *     address of a load from shared memory, when it is not a legal one (else what is loaded depends
 *     on the division as a quotient does)
 *   - the condition of a branch, a loop or an assertion, a loop's bounds or step, the number of a
 *     group barrier, the predicate of print, the addresses, predicate or size of a copy
 *
 * A selection takes them from its condition and from the chosen side only; a bit operation, product,
 * sum, shift, minimum or comparison passes on only bits that the other operand does not settle. The
 * result itself has all bits set (a quotient) or is the dividend (a remainder); print shows that.
 * The least integer divided by minus one wraps and is no division by zero.
 *
 * Findings are warnings, and the launch goes on:
 *
 *   uninitialised-read   memory that nothing wrote (shared memory: nothing in this cluster)
 *   shared-race          a shared byte written by one warp and touched by another, of this block or
 *                        another one of the cluster, with no chain of barriers (of blocks, groups,
 *                        clusters) between, in either order; a note has the other line. Threads of
 *                        one warp run in step and do not race with each other, nor do two atomics
 *   shared-lifetime      another block's shared memory touched with no cluster barrier before (that
 *                        block may not have begun) or none after (it may have ended); a multicast
 *                        load into a block that has ended
 *
 *   copy-in-flight       a shared byte read or written while an asynchronous copy into it is
 *                        incomplete, by whatever thread; a global byte read or written by a cluster
 *                        one of whose bulk copies into it is incomplete; a note has the copy
 *   copy-source-written  a shared byte written while a bulk copy from it has not read it; a note has
 *                        the copy
 *   copy-source-changed  global memory holds something else when a copy completes than when it
 *                        started; a note has the wait that completes it
 *   copy-not-awaited     a copy that is incomplete when its block ends; a bulk store that has not read
 *                        its source then; a multicast load into a block that ends before the copy into
 *                        it completes
 *   missing-proxy-fence  a byte accessed by the async proxy that a thread of the cluster wrote with an
 *                        ordinary store, with no fence.proxy_async of that thread after it, or none that a
 *                        barrier orders before; a note has the store
 *
 *   wgmma-register       a result of a wgmma used before a wait completes it, or an accumulator used
 *                        after a wgmma took its register; a note has the wgmma
 *   wgmma-serialised     a result of a wgmma that is copied to another register before a wait completes
 *                        it: assemblers wait for every wgmma of such a kernel. Everything completes there
 *   wgmma-operand-changed  an element of A or B that differs at the wait from what it was at the issue:
 *                        shared memory or a register that was overwritten too early; a note has the wait
 *   missing-wgmma-fence  a wgmma whose registers something else accessed since the last wgmma.fence
 *   wgmma-not-committed  a wgmma of no group when a wait is executed
 *   wgmma-not-awaited    a wgmma that is incomplete when its block ends
 *
 *   mbarrier-missed      a wait after at least two phases that its warp has not waited for, so that
 *                        the parity does not identify the phase; a note has the last arrival
 *   mbarrier-unfinished  a phase with missing bytes, or some of its arrivals, when the cluster ends
 *   named-barrier-unfinished  a named barrier at which some threads have arrived when the block ends
 *
 *   swizzle-base         a swizzled box at a shared address that is no multiple of the swizzle's period, so
 *                        that the pattern begins in its middle; or an operand of wgmma that starts in a row
 *                        of the pattern that is not its descriptor's base offset
 *   matrix-descriptor    a swizzled operand of wgmma whose groups of 8 rows overlap: two strides of the
 *                        descriptor are exchanged
 *
 *   global-race          two accesses to a byte of global memory, one of them a write, that nothing
 *                        orders; a note has the other line
 *
 * The bytes that a wgmma reads are read, for races, by each of the four warps both at the issue and at
 * the wait. What a division by zero leaves in shared memory is not followed through a wgmma; in its
 * registers it ends the launch.
 *
 * An mbarrier and a named barrier order what the warps that arrive did before, and nothing that they
 * do later, before what the warps that wait do afterwards. Operations on an mbarrier are accesses to
 * its 8 bytes: a use that is not ordered behind its init is a shared-race.
 *
 * An asynchronous copy happens as late as it may: at the wait of its thread that completes it, or,
 * where cp.async.mbarrier_arrive tracks it, when no warp of the cluster can go on without its arrival;
 * then its writes are ordered before the warps that wait at that mbarrier, and no others. Its
 * destination holds meaningless bytes until then. For races it is a write of its warp to shared memory
 * from its start to that wait, and a read of global memory both when it starts and when it completes.
 *
 * So does a bulk store or reduction: it reads shared memory at the bulk.wait_read, or bulk.wait,
 * of its thread that completes the read, and writes global memory at the bulk.wait that completes
 * it, or when its block ends. For races it is a read of shared memory from its start to its read,
 * and a write of global memory when it completes. A bulk load writes shared memory when no warp of
 * its cluster can go on without, or when a try_wait finds its phase incomplete; its bytes are in
 * flight from its start on. Bytes that cp.async wrote need a wait and a barrier before the async
 * proxy reads them, but no fence: PTX does not promise this, and devices and libraries rely on it.
 *
 * What orders accesses to global memory: the instructions of one warp; a chain of barriers of the
 * block, of groups of its warps or of the cluster; and between any two threads of the grid, a release
 * that an acquire reads. An atomic operation with the order release (or acq_rel) publishes what its
 * warp did, and what its warp is ordered behind; one with the order acquire (or acq_rel) whose result
 * is used is ordered behind all releases in its scope that changed the place since the last plain
 * store to it. Blocks are not ordered otherwise, so a race between blocks is found whatever the
 * schedule of the host, where they do not synchronise.
 *
 *   - Two atomic operations do not race, unless the scope of one is a block and they are of two
 *     blocks. An atomic operation and a plain access do. A compare-and-swap that fails is a load.
 *   - A volatile access counts as an atomic one. A volatile load also acquires, which PTX does not
 *     promise (it is ld.relaxed.sys there): kernels that wait for a flag rely on it.
 *   - Stores of the value that another unordered store left there are no race, as when threads that
 *     hold copies of an element, or all blocks, store the same. A load ordered behind one of these
 *     stores is no race either.
 *   - Where several warps load an element with one instruction and one of them stores it later, the
 *     loads of the others do not race with the store: these are copies of an element that is changed
 *     in place.
 *   - Threads of one warp run in step: they race only when one instruction stores several values in
 *     one place.
 *   - Not covered: buffers that the kernel does not write (by the parameters from which the addresses
 *     of its stores are computed) and read-only ones; what other launches and the host do; the order
 *     of the acquires that a run happened to take, where another order would have shown a race; loads
 *     of a place in which more than 255 blocks store one value; of the loads of a place by more than
 *     64 blocks of a kernel that synchronises, those of the others.
 *
 * Refused before anything runs: what the verifier refuses, argument-count, grid-size, tensor-map,
 * buffer-overlap, unsupported-instruction (assembly, saturation, ballots of 64 lanes),
 * too-many-values.
 *
 * Blocks that write the same global byte race with each other, here as on a device: which write
 * stays is not determined, nor which blocks and how many of their instructions a global-race names
 * when several host threads run them. Everything else is.
 */
#ifndef LILAC_SIM_H
#define LILAC_SIM_H

#include <lilac/simt.h>
#include <lilac/tensor_map.h>

LILAC_BEGIN

/* A piece of global memory. */
typedef struct lilac_sim_buffer {
    const char *name; /* for reports */
    uint64_t address; /* where kernels see it; lilac_sim_place gives non-overlapping ones */
    uint8_t *bytes;   /* NULL only when size is 0 */
    uint64_t size;
    uint8_t *written; /* one byte a byte: nonzero when it holds data; NULL: all does */
    bool read_only;
} lilac_sim_buffer;

/* Gives buffers addresses far apart, aligned to 256 bytes, in address space that is never valid on
 * the host. */
LILAC_API void lilac_sim_place(lilac_sim_buffer *buffers, uint32_t count);

/* How far a launch is. */
typedef struct lilac_sim_progress {
    uint64_t blocks_ended, blocks;
    double seconds; /* since the launch began */
} lilac_sim_progress;

/* Called by one of the launch's host threads at a time, at most every tenth of a second: when a
 * block ends, and in loops. */
typedef void (*lilac_sim_progress_function)(void *data, const lilac_sim_progress *progress);

#define LILAC_SIM_LIMIT (UINT64_C(1) << 36)
enum { LILAC_SIM_STALL_SECONDS = 10 };

typedef struct lilac_sim_launch {
    const lilac_simt_kernel *kernel; /* of a verified module, which names the device */
    uint32_t grid[3]; /* programs along x, y, z; a zero: nothing runs. A program of a kernel with
                         num_ctas blocks a cluster is that many blocks */
    const uint64_t *arguments; /* bits of each parameter; pointers: an address; tensor maps: the
                                  number of one of these */
    const lilac_tensor_map *tensor_maps;
    uint32_t tensor_map_count;
    uint32_t argument_count; /* must be kernel->parameter_count */
    lilac_sim_buffer *buffers;
    uint32_t buffer_count;
    uint32_t threads; /* host threads; 0: one a core */
    lilac_text
        *printed; /* what the kernel prints is appended; NULL: it is a warning, id `printed` */
    uint64_t instruction_limit; /* that a block's warps may issue together, as the counter of
                                   instructions counts them; 0: LILAC_SIM_LIMIT, and launches
                                   without progress end (endless-loop) */
    double stall_seconds;       /* without progress, after which such a launch ends; 0: 10 */
    lilac_sim_progress_function progress; /* NULL: none */
    void *progress_data;
} lilac_sim_launch;

enum { LILAC_SIM_WIDTHS = 6 };

/* Counters, summed over all blocks. A warp instruction is one instruction executed by one warp;
 * for loads and stores only those with an active lane count. */
typedef struct lilac_sim_counters {
    uint64_t blocks;
    uint64_t instructions; /* warp instructions issued: all but constants, parameters, indices
                              of thread and block, and terminators; a loop: once a test */
    uint64_t global_loads, global_stores;               /* warp instructions */
    uint64_t global_load_sectors, global_store_sectors; /* sectors touched */
    uint64_t global_load_bytes, global_store_bytes;     /* asked for by active threads */
    uint64_t shared_loads, shared_stores;               /* warp instructions */
    uint64_t shared_load_wavefronts, shared_store_wavefronts;
    uint64_t shared_load_bytes, shared_store_bytes; /* moved by active threads */
    uint64_t matrix_loads, matrix_stores;           /* of the shared_loads, shared_stores */
    uint64_t cluster_loads, cluster_stores;         /* likewise: ld.cluster, st.cluster */
    uint64_t async_copies;                    /* warp instructions cp.async; in no other count: */
    uint64_t async_sectors, async_wavefronts; /* read in global, written in shared memory */
    uint64_t async_bytes;                     /* written by active threads */
    uint64_t mmas, wgmmas;                    /* warp instructions */
    uint64_t wgmma_cycles;            /* of the tensor cores: n / 2 a warpgroup, at least 19 */
    uint64_t wgmma_bytes;             /* that wgmmas read in shared memory; once a warpgroup */
    uint64_t bulk_copies, bulk_bytes; /* of each thread; in no other count. A multicast load is one
                                         copy for each block of its mask */
    uint64_t shuffles, votes;         /* warp instructions */
    uint64_t selects, permutes;       /* warp instructions select, prmt */
    uint64_t barriers;                /* once a block */
    uint64_t warp_barriers, group_barriers; /* once a warp */
    uint64_t cluster_barriers;              /* once a block */
    uint64_t atomics; /* warp instructions, of global and of shared memory; in no other count */
    uint64_t races, uninitialised_reads;    /* warp instructions with such a finding; lifetimes and
                                               races in global memory are among the races. The first
                                               few of each, one a pair of lines, are diagnostics */
    uint64_t access_bits[LILAC_SIM_WIDTHS]; /* global accesses (warp instructions) of 8 16 32 64 128
                                               256 bits a thread */
} lilac_sim_counters;

/* Runs a launch. False when it was refused or a block trapped; diagnostics say where (of several
 * blocks that trap, the first one's), counters are then zero, and what the buffers hold is not
 * determined. Findings are warnings and do not make it false. Asserts that context, launch, kernel,
 * counters, and the arrays that have entries are not NULL. */
LILAC_API LILAC_MUST_USE bool lilac_sim_run(lilac_context *context, const lilac_sim_launch *launch,
                                            lilac_sim_counters *counters);
/* One aligned line a counter: findings (races, uninitialised_reads) first, then the others; without
 * `zeros`, only counters that are not 0. */
LILAC_API void lilac_sim_counters_print(lilac_text *out, const lilac_sim_counters *counters,
                                        bool zeros);
/* One JSON object with the fields' names; access_bits is an object keyed by the width. */
LILAC_API void lilac_sim_counters_json(lilac_text *out, const lilac_sim_counters *counters);

LILAC_END

#endif
