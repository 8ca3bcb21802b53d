/* simt: SIMT IR, the program of one thread.
 *
 * Values are scalars in SSA form, one per thread. Control flow is structured and uniform: a branch
 * or loop condition has the same value in every thread of a block. Threads differ only by
 * predicates on memory operations.
 *
 *   module ── kernels ── body ── instructions ── bodies (loop, if, while)
 *
 * Values are dense numbers (1, 2, …; 0 is "none"), so passes keep side tables as arrays. Opcodes,
 * names, traits, signatures and documentation of the operations come from one table,
 * include/lilac/simt_ops.def. The reader accepts every text that the printer writes.
 *
 * Memory: global addresses are i64; shared addresses are i32 byte offsets into the block's shared
 * memory, relative to `shared_base` (0 on the simulator); with the access's offset they wrap at 32
 * bits. An access has 1, 2 or 4 elements of 8 to
 * 64 bits, at most arch->vector_bytes in all, and its address is a multiple of its total size.
 * Matrix accesses move 8 × 8 matrices of 16-bit elements; each lane holds one word of each matrix.
 * The addresses of lanes 8i to 8i + 7 are those of the rows of matrix i, 16 bytes each; the
 * addresses of other lanes are ignored.
 *
 *     lane l holds of matrix i       word l % 4 of row l / 4 (the address of lane 8i + l / 4)
 *     transposed                     column l / 4 of rows 2(l % 4) and 2(l % 4) + 1, low and high
 *
 * The results of an atomic operation are the old values in memory; it may have no results. Each
 * element is updated atomically by itself, also where one instruction has several elements.
 * Additions of f32 in global memory flush subnormal numbers to zero, as the devices do.
 *
 * cp.async starts a copy from global to shared memory and does not wait for it. cp.async.commit
 * makes a group of the copies that the thread started since its last commit; groups complete in
 * order. The copy may read its source and write its destination at any time between its start and
 * the wait of the same thread that completes it:
 *
 *     cp.async [%s], (%g) {size = 16}     ┐
 *     cp.async.commit                     │ no thread reads or writes the 16 bytes at %s, and no
 *     …                                   │ thread writes those at %g
 *     cp.async.wait                       ┘ complete for this thread
 *     barrier                               … and for the block
 *
 * One thread starts a bulk copy of many bytes, which the async proxy executes. Ordinary stores
 * become visible to the async proxy after fence.proxy_async of the thread that wrote them. Where
 * another thread starts the copy, a barrier must follow the fence. bulk.commit makes a group of the
 * bulk stores and reductions that the thread started since its last commit. They read their source
 * at any time before the thread's bulk.wait_read that covers them completes, and write global
 * memory at any time before its bulk.wait completes:
 *
 *     st.shared [%s] …
 *     fence.proxy_async shared
 *     barrier
 *     cp.bulk.store [%s], %first, (%g, %n)   ┐
 *     bulk.commit                            │ no thread writes the %n bytes at %s
 *     bulk.wait_read                         ┘ ┐ no thread reads or writes those at %g
 *     bulk.wait                                ┘
 *
 * A bulk load signals its completion at an mbarrier: it writes shared memory at any time before the
 * mbarrier's current phase completes. A tensor copy moves a box of the tensor that a tensor map
 * describes (tensor_map.h). Maps are parameters of the kernel, or in its scratch memory. The first
 * coordinate is that of the contiguous dimension:
 *
 *     mbarrier.expect [%full], %first, (%box_bytes)
 *     cp.tensor.load [%s], %first, (%map, %column, %row, %full)   ┐ no thread reads or writes the box's
 *     mbarrier.wait [%full], (%parity)                            ┘ bytes at %s
 *
 * A kernel makes a map in shared memory and publishes it. One warp copies it, and the thread that
 * starts the copies acquires it. A map may be published again when no copy that uses it is
 * incomplete:
 *
 *     tensor_map.set [%s], %first, (%address, %columns, %rows, %row_bytes) {element = f16, …}
 *     warp_barrier
 *     tensor_map.publish [%s], %first_warp, (%map)
 *     tensor_map.acquire %first_warp, %map
 *     cp.tensor.store [%s], %first, (%map, %column, %row)
 *
 * A multicast load copies the box to several blocks of the cluster. Bit k of its last operand, an
 * i32, names the block of rank k. In each block of the mask the box is written at the same shared
 * address, and its bytes complete at the mbarrier that has the same address there. The block that
 * executes the load is a destination only if its own bit is set. Each destination announces the
 * bytes at its own mbarrier. A cluster barrier orders the mbarrier.init of all blocks before the
 * first load:
 *
 *     cluster_barrier
 *     mbarrier.expect [%full], %first, (%tile_bytes)              every destination: all bytes of the tile
 *     cp.tensor.load [%s], %first, (%map, %x, %y, %full, %mask) {multicast}     a part of the tile
 *     mbarrier.wait [%full], (%parity)
 *
 * No block of the mask may end while a copy into it is incomplete.
 *
 * An mbarrier is an object of 8 bytes in shared memory, aligned to 8. A phase completes when the
 * number of arrivals that mbarrier.init set and all bytes that mbarrier.expect announced have
 * arrived; then the next phase begins. Phases have the parities 0, 1, 0, …. A wait for a parity
 * returns when the last completed phase has that parity; before the first phase completes, a wait
 * for parity 1 returns. Accesses that a thread made before it arrived happen before the
 * instructions that follow the wait. mbarrier.wait blocks until the phase completes, and the
 * threads that execute it continue together.
 *
 *     mbarrier.init [%full + 8], %first, (%count)       one thread; a barrier before the first use
 *     mbarrier.arrive [%full + 8], %elected             the second operand is the predicate
 *     mbarrier.expect [%full + 8], %elected, (%bytes)
 *     cp.async.mbarrier_arrive [%full + 8]              arrives when the thread's copies are complete
 *     mbarrier.wait [%full + 8], (%parity)
 *     %done = mbarrier.try_wait [%full + 8], (%parity) : i1
 *
 * A kernel may hold several programs, each executed by the warps of its window:
 *
 *     programs warps 0 to 4 {                  The windows are consecutive and cover all warps of the
 *       …                                      block. Control flow is uniform over the threads of a
 *       yield                                  program. Programs synchronise only by mbarriers and
 *     } warps 4 to 12 {                        named barriers; the verifier refuses barrier,
 *       …                                      group_barrier and cluster_barrier in them. The end of
 *       yield                                  `programs` is no barrier, and no program may wait for
 *     }                                        code after it.
 *
 * A named barrier has an id, 0 to 15, and a number of threads: named_barrier.sync {id = 3, threads
 * = 96} waits until that many threads have arrived, by sync or by named_barrier.arrive. `barrier`
 * uses id 0, group_barrier id 1 + number; a kernel uses each id for only one of the three kinds.
 *
 * set_max_registers dec {registers = 40} changes the number of registers of a thread. It may occur
 * only in programs of a kernel of whole warpgroups, which must have min_blocks 1. The programs that
 * share a warpgroup set the same number.
 *
 * An access may be annotated with the shared memory that it touches: shared_begin, shared_end and
 * shared_partition. The simulator checks the interval; lilac_simt_opt_barriers relies on all three.
 */
#ifndef LILAC_SIMT_H
#define LILAC_SIMT_H

#include <lilac/arch.h>
#include <lilac/scalar.h>
#include <lilac/source.h>

LILAC_BEGIN

typedef enum lilac_simt_type {
    LILAC_SIMT_VOID,
    LILAC_SIMT_I1,
    LILAC_SIMT_I8, /* also the bits of an 8-bit float */
    LILAC_SIMT_I16,
    LILAC_SIMT_I32,
    LILAC_SIMT_I64,
    LILAC_SIMT_F16,
    LILAC_SIMT_BF16,
    LILAC_SIMT_F32,
    LILAC_SIMT_F64,
    LILAC_SIMT_F16X2, /* two in a 32-bit word, element 0 in the low half */
    LILAC_SIMT_BF16X2,
    LILAC_SIMT_TYPE_COUNT
} lilac_simt_type;

/* The name of a type ("i32", "f16x2"), its width in bits (1 for i1), and whether it is a float or a
 * pair of floats. */
LILAC_API const char *lilac_simt_type_name(lilac_simt_type type);
LILAC_API uint32_t lilac_simt_type_bits(lilac_simt_type type);
LILAC_API bool lilac_simt_type_is_float(lilac_simt_type type);

typedef uint32_t lilac_simt_value; /* 0: none */

typedef enum lilac_simt_opcode {
    LILAC_SIMT_OP_NONE,
#define OP(code, ...) LILAC_SIMT_OP_##code,
#include <lilac/simt_ops.def>
#undef OP
    LILAC_SIMT_OP_COUNT
} lilac_simt_opcode;

typedef enum lilac_simt_trait {
    LILAC_SIMT_PURE = 1 << 0,
    LILAC_SIMT_COMMUTATIVE = 1 << 1,
    LILAC_SIMT_READS = 1 << 2,
    LILAC_SIMT_WRITES = 1 << 3,
    LILAC_SIMT_SYNC = 1 << 4,       /* orders memory; never moved, merged or removed */
    LILAC_SIMT_CONVERGENT = 1 << 5, /* exchanges with other threads (shuffles, votes) */
    LILAC_SIMT_DIVERGENT = 1 << 6,  /* result differs between threads whatever the operands */
    LILAC_SIMT_TERMINATOR = 1 << 7,
    LILAC_SIMT_REGIONS = 1 << 8,
    LILAC_SIMT_GLOBAL = 1 << 9,        /* accesses global memory */
    LILAC_SIMT_SHARED = 1 << 10,       /* accesses shared memory, of any block of the cluster */
    LILAC_SIMT_ASYNCHRONOUS = 1 << 11, /* starts, groups or awaits copies that complete later */
    LILAC_SIMT_MBARRIER = 1 << 24,     /* operates on an mbarrier */
    LILAC_SIMT_SWIZZLED =
        1 << 25, /* shared memory in a swizzle of addresses: wgmma, tensor copies */
    LILAC_SIMT_ROUNDED = 1 << 26, /* `detail` is a lilac_rounding */
    LILAC_SIMT_DIVIDES = 1 << 27, /* the result is unspecified when the second operand is 0 */
    LILAC_SIMT_SPECIAL = 1 << 28, /* one operation of the special function unit, or more */
    LILAC_SIMT_FREE = 1 << 29     /* takes no issue slot of its own: part of its users */
} lilac_simt_trait;

typedef struct lilac_simt_op_info {
    const char *name; /* "fadd", "ld.global" */
    uint32_t traits;
    const char *signature; /* operand and result types; see the table */
    const char *doc;
} lilac_simt_op_info;

/* The row of the table; never NULL. */
LILAC_API const lilac_simt_op_info *lilac_simt_op_info_get(lilac_simt_opcode code);
/* Is `detail` of this operation a lilac_rounding? 0 is the nearest number, ties to even. */
LILAC_API bool lilac_simt_op_rounds(lilac_simt_opcode code);

/* Comparisons. Integers: eq … ge, unsigned with U. Floats: ordered eq … ge (false on NaN), UNE and
 * other unordered ones (true on NaN), ORD, UNO. */
typedef enum lilac_simt_compare {
    LILAC_SIMT_EQ,
    LILAC_SIMT_NE,
    LILAC_SIMT_LT,
    LILAC_SIMT_LE,
    LILAC_SIMT_GT,
    LILAC_SIMT_GE,
    LILAC_SIMT_ULT,
    LILAC_SIMT_ULE,
    LILAC_SIMT_UGT,
    LILAC_SIMT_UGE, /* integers */
    LILAC_SIMT_UEQ,
    LILAC_SIMT_UNE,
    LILAC_SIMT_FULT,
    LILAC_SIMT_FULE,
    LILAC_SIMT_FUGT,
    LILAC_SIMT_FUGE,
    LILAC_SIMT_ORD,
    LILAC_SIMT_UNO, /* floats */
    LILAC_SIMT_COMPARE_COUNT
} lilac_simt_compare;

typedef enum lilac_simt_shuffle {
    LILAC_SIMT_SHFL_IDX,
    LILAC_SIMT_SHFL_XOR,
    LILAC_SIMT_SHFL_UP,
    LILAC_SIMT_SHFL_DOWN
} lilac_simt_shuffle;
/* The operations of atomics and of redux. */
typedef enum lilac_simt_atomic {
    LILAC_SIMT_ATOMIC_AND,
    LILAC_SIMT_ATOMIC_OR,
    LILAC_SIMT_ATOMIC_XOR,
    LILAC_SIMT_ATOMIC_ADD, /* of floats too */
    LILAC_SIMT_ATOMIC_MIN_S,
    LILAC_SIMT_ATOMIC_MAX_S,
    LILAC_SIMT_ATOMIC_MIN_U,
    LILAC_SIMT_ATOMIC_MAX_U,
    LILAC_SIMT_ATOMIC_EXCHANGE,
    LILAC_SIMT_ATOMIC_COUNT
} lilac_simt_atomic;
/* The memory order of an atomic operation, and the set of threads that observe it. */
typedef enum lilac_simt_order {
    LILAC_SIMT_RELAXED,
    LILAC_SIMT_ACQUIRE,
    LILAC_SIMT_RELEASE,
    LILAC_SIMT_ACQUIRE_RELEASE,
    LILAC_SIMT_ORDER_COUNT
} lilac_simt_order;
typedef enum lilac_simt_scope {
    LILAC_SIMT_SCOPE_DEVICE,
    LILAC_SIMT_SCOPE_BLOCK, /* the thread's own block, not its cluster */
    LILAC_SIMT_SCOPE_SYSTEM,
    LILAC_SIMT_SCOPE_COUNT
} lilac_simt_scope;
typedef enum lilac_simt_cache {
    LILAC_SIMT_CACHE_NONE,
    LILAC_SIMT_CACHE_CA,
    LILAC_SIMT_CACHE_CG,
    LILAC_SIMT_CACHE_CS,
    LILAC_SIMT_CACHE_CV,
    LILAC_SIMT_CACHE_WB,
    LILAC_SIMT_CACHE_WT
} lilac_simt_cache;
typedef enum lilac_simt_evict {
    LILAC_SIMT_EVICT_NORMAL,
    LILAC_SIMT_EVICT_FIRST,
    LILAC_SIMT_EVICT_LAST
} lilac_simt_evict;

/* The detail of a loop or while: loop-invariant operations are not moved out of the loop. The text
 * form is "keep_invariants" before the body. */
enum { LILAC_SIMT_KEEP_INVARIANTS = 1 };

/* Modifiers. simt_ops.def says which ones an operation has. */
enum {
    LILAC_SIMT_NO_SIGNED_WRAP = 1 << 0, /* add sub mul shl */
    LILAC_SIMT_NO_UNSIGNED_WRAP = 1 << 1,
    LILAC_SIMT_APPROXIMATE = 1 << 2,   /* div.full / sqrt.approx … instead of correctly rounded */
    LILAC_SIMT_PROPAGATE_NAN = 1 << 3, /* fmin fmax: NaN if either is */
    LILAC_SIMT_VOLATILE = 1 << 4,
    LILAC_SIMT_SATURATE = 1 << 5,
    LILAC_SIMT_FTZ = 1 << 6,
    LILAC_SIMT_SHARED_ONLY = 1 << 7 /* of a barrier: it orders shared memory only, and may be
                                       removed when shared memory needs no order */
};

/* Fields that only the operations of one family have. lilac_simt_payload_family_of says which
 * member an opcode uses; src/simt/payload.c lists the fields with their names in the text form. A
 * field that is 0 is not printed. */
typedef enum lilac_simt_payload_family {
    LILAC_SIMT_PAYLOAD_NONE,
    LILAC_SIMT_PAYLOAD_COPY,       /* cp.async */
    LILAC_SIMT_PAYLOAD_BULK,       /* cp.bulk.…, cp.tensor.… */
    LILAC_SIMT_PAYLOAD_MATRIX,     /* mma, wgmma */
    LILAC_SIMT_PAYLOAD_WGMMA_WAIT, /* wgmma.wait */
    LILAC_SIMT_PAYLOAD_TENSOR_MAP, /* tensor_map.set */
    LILAC_SIMT_PAYLOAD_COUNT
} lilac_simt_payload_family;

typedef struct lilac_simt_copy_payload {
    int32_t source; /* byte offset of the global address */
} lilac_simt_copy_payload;

/* The payload of a matrix instruction (simt_matrix.h). Element types are lilac_matrix_type. */
typedef struct lilac_simt_matrix_payload {
    uint8_t a, b, d;
    bool registers;                /* wgmma: A is in registers */
    uint16_t m, n, k;              /* D has m × n elements, A m × k */
    bool transpose_a, transpose_b; /* wgmma: m or n, not k, is contiguous in shared memory */
    bool negate_a, negate_b;       /* wgmma */
    bool saturate;                 /* d = s32: at the ends of the range */
} lilac_simt_matrix_payload;

typedef struct lilac_simt_wgmma_wait_payload {
    uint32_t groups; /* the number of groups that may be incomplete after the wait */
} lilac_simt_wgmma_wait_payload;

typedef struct lilac_simt_bulk_payload {
    int32_t global;   /* byte offset of the global address */
    int32_t mbarrier; /* byte offset of the mbarrier's address */
    bool multicast;   /* cp.tensor.load: the last operand is a mask of blocks */
} lilac_simt_bulk_payload;

/* What of a tensor map is known when the kernel is compiled (tensor_map.h). All element strides are
 * 1. */
typedef struct lilac_simt_tensor_map_payload {
    uint8_t element, swizzle,
        fill;        /* lilac_tensor_element, lilac_tensor_swizzle, lilac_tensor_fill */
    uint16_t box[5]; /* elements; of dimensions that the map does not have: 0 */
} lilac_simt_tensor_map_payload;

union lilac_simt_payload {
    lilac_simt_tensor_map_payload tensor_map;
    lilac_simt_bulk_payload bulk;
    lilac_simt_copy_payload copy;
    lilac_simt_matrix_payload matrix;
    lilac_simt_wgmma_wait_payload wgmma_wait;
};

/* The family of an opcode: which member of the payload it uses. */
LILAC_API lilac_simt_payload_family lilac_simt_payload_family_of(lilac_simt_opcode code);

typedef struct lilac_simt_instruction lilac_simt_instruction;
typedef struct lilac_simt_body lilac_simt_body;

struct lilac_simt_instruction {
    uint16_t code;  /* lilac_simt_opcode */
    uint8_t detail; /* compare, shuffle kind, dimension x y z, rounding …: by opcode */
    uint8_t cache, evict;
    uint8_t flags;        /* modifiers */
    uint8_t scalar;       /* lilac_scalar: the 8-bit float of a conversion */
    uint8_t order, scope; /* of an atomic */
    uint16_t operand_count, result_count;
    uint16_t body_count;
    uint16_t mark; /* scratch of a pass; 0 between passes */
    lilac_simt_value *operands;
    lilac_simt_value result; /* the first; the others follow: result + 1 … */
    int64_t immediate;       /* constant's bits, byte offset of an access, parameter index … */
    /* An access to shared memory touches only bytes shared_begin to shared_end, relative to
     * shared_base; 0 and 0: any bytes. shared_partition is a mask of bits of the warp's number: two
     * accesses with equal intervals and equal masks touch disjoint bytes when their warps differ in
     * those bits; 0: no such guarantee. A group barrier with a shared_partition synchronises the
     * warps that agree in those bits of their numbers. */
    uint32_t shared_begin, shared_end, shared_partition;
    lilac_simt_body **bodies;
    lilac_location location;
    lilac_simt_instruction *next, *previous;
    lilac_simt_body *parent;
    const char *text; /* message of assert, format of print, inline assembly; interned */
    union lilac_simt_payload payload; /* by opcode */
};

struct lilac_simt_body {
    uint32_t argument_count; /* loop variable and carried values: consecutive from `argument` */
    lilac_simt_value argument;
    lilac_simt_instruction *first, *last; /* the last is the terminator */
    lilac_simt_instruction *parent;       /* NULL: the kernel's body */
    uint32_t first_warp, end_warp;        /* of a program: the window of warps; else 0, 0 */
};

typedef struct lilac_simt_value_info {
    uint8_t type;                       /* lilac_simt_type */
    bool uniform;                       /* the same in all threads of the block or, where it is
                                           defined in a program, of the program; computed */
    bool marked;                        /* uniform because lilac_simt_mark_uniform said so */
    lilac_name name;                    /* hint for printing, or NULL */
    lilac_simt_instruction *definition; /* NULL: argument of body */
    lilac_simt_body *body;
} lilac_simt_value_info;

typedef struct lilac_simt_parameter {
    lilac_name name;
    lilac_simt_type type;
    bool is_pointer;    /* to global memory */
    uint32_t alignment; /* bytes known of the pointer; 1: none */
    bool is_tensor_map; /* 128 bytes by value (tensor_map.h); the value is its address, an i64,
                           which only tensor operations may use */
} lilac_simt_parameter;

typedef struct lilac_simt_kernel {
    lilac_name name;
    uint32_t parameter_count;
    lilac_simt_parameter *parameters;
    uint32_t num_warps, num_ctas;
    uint32_t shared_bytes;
    uint32_t scratch_bytes; /* of global memory for each program (global_scratch); 0: none */
    uint32_t min_blocks;    /* minimum of resident blocks (.minnctapersm); 0: none */
    uint32_t programs;      /* of a launch, a hint (count_programs); 0: not known */
    bool no_contraction;    /* fmul and fadd must not be contracted to ffma */
    lilac_simt_body *body;
    lilac_simt_value_info *values; /* values[v], v < value_count; grows, do not keep */
    uint32_t value_count;          /* one more than the last value */
    uint32_t value_capacity;
    lilac_location location;
    struct lilac_simt_module *module;
    struct lilac_simt_kernel *next;
} lilac_simt_kernel;

typedef struct lilac_simt_module {
    lilac_context *context;
    lilac_arena *arena;
    const lilac_arch *arch;
    lilac_simt_kernel *kernels;
} lilac_simt_module;

/* ---- modules ---------------------------------------------------------------------------- */

/* An empty module for a device; destroy frees it and all its kernels. */
LILAC_API lilac_simt_module *lilac_simt_module_create(lilac_context *context,
                                                      const lilac_arch *arch);
LILAC_API void lilac_simt_module_destroy(lilac_simt_module *module);
LILAC_API lilac_simt_kernel *lilac_simt_kernel_create(lilac_simt_module *module, lilac_name name,
                                                      uint32_t parameters, uint32_t num_warps,
                                                      uint32_t num_ctas);
/* Reads the text form that lilac_simt_print writes; NULL after diagnostics (`syntax`,
 * `unknown-operation` `-type` `-modifier` `-target`, `undefined-value`, `redefined-value`,
 * `result-count`, `bad-constant`, `bad-number`, `too-many-operands`, `too-deep`). The reader checks
 * the grammar and the names; lilac_simt_verify checks all other rules. The reader neither folds
 * constants nor merges equal instructions. */
LILAC_API LILAC_MUST_USE lilac_simt_module *lilac_simt_read(lilac_context *context,
                                                            uint32_t source);
LILAC_API void lilac_simt_print(lilac_text *out, const lilac_simt_module *module);
/* Registers the module's text as a source of that name and sets the location of each instruction to
 * its position in that text, so that a diagnostic shows the line of the IR. Returns the source; 0
 * after a diagnostic if the text is too large. */
LILAC_API uint32_t lilac_simt_print_source(lilac_simt_module *module, const char *name);
/* Types by signature, dominance, terminators, uniform conditions and bounds, carried values, access
 * sizes, packed widths, the launch shape. False after diagnostics (`simt-operand-type`
 * `-operand-count`
 * `-dominance` `-terminator` `-not-uniform` `-carried-type` `-access-size` `-access-others`
 * `-pack-width` `-width` `-parameter` `-detail` `-launch-shape` `-bodies` `-links` `-operation`
 * `-feature` `-interval` `-group` `-text` `-copy` `-wait` `-matrix` `-mbarrier`
 * `-programs` `-named-barrier` `-registers`),
 * each at the instruction's location with the instruction printed in a note. */
LILAC_API LILAC_MUST_USE bool lilac_simt_verify(const lilac_simt_module *module);

/* ---- builder ---------------------------------------------------------------------------- */

/* Appends instructions at the end of `body`. A pure instruction without regions is folded when its
 * operands are constants. If an equal instruction is already in reach, in this body or in one that
 * encloses it, its result is returned instead (hash-consing). */
/* The warps that execute what is built: those of a program, which wait for each other at the named
 * barrier `barrier`. warps 0: all warps of the kernel. */
typedef struct lilac_simt_window {
    uint32_t first_warp, warps; /* a power of two */
    uint32_t barrier;
} lilac_simt_window;

typedef struct lilac_simt_builder {
    lilac_simt_kernel *kernel;
    lilac_simt_body *body;
    lilac_location location; /* of the instructions that are built */
    struct lilac_simt_memo *memo;
    lilac_simt_window window;
} lilac_simt_builder;

/* A builder at the end of the kernel's body; clear frees its table, the kernel stays. */
LILAC_API void lilac_simt_builder_init(lilac_simt_builder *builder, lilac_simt_kernel *kernel);
LILAC_API void lilac_simt_builder_clear(lilac_simt_builder *builder);

/* A constant of a type by its bits (those above the width are dropped), and the kernel's parameter
 * number `index`. */
LILAC_API lilac_simt_value lilac_simt_constant(lilac_simt_builder *b, lilac_simt_type type,
                                               uint64_t bits);
LILAC_API lilac_simt_value lilac_simt_parameter_value(lilac_simt_builder *b, uint32_t index);
/* Any pure operation with one result of type `type`. */
LILAC_API lilac_simt_value lilac_simt_op1(lilac_simt_builder *b, lilac_simt_opcode code,
                                          lilac_simt_type type, lilac_simt_value a);
LILAC_API lilac_simt_value lilac_simt_op2(lilac_simt_builder *b, lilac_simt_opcode code,
                                          lilac_simt_type type, lilac_simt_value a,
                                          lilac_simt_value c);
LILAC_API lilac_simt_value lilac_simt_op3(lilac_simt_builder *b, lilac_simt_opcode code,
                                          lilac_simt_type type, lilac_simt_value a,
                                          lilac_simt_value c, lilac_simt_value d);
LILAC_API lilac_simt_value lilac_simt_compare_values(lilac_simt_builder *b, lilac_simt_compare kind,
                                                     lilac_simt_value a, lilac_simt_value c);
/* The general form: everything in `like` but operands, results and links is copied. Returns the
 * first result. `types` has `results` entries. */
LILAC_API lilac_simt_value lilac_simt_build(lilac_simt_builder *b,
                                            const lilac_simt_instruction *like, uint32_t operands,
                                            const lilac_simt_value *values, uint32_t results,
                                            const lilac_simt_type *types);
/* Vector load: operands address [, predicate [, others…]]; returns the first of `count` results of
 * `type`. Where the predicate is false the results are `others`, or 0 without `others`. */
LILAC_API lilac_simt_value lilac_simt_load(lilac_simt_builder *b, lilac_simt_opcode code,
                                           lilac_simt_type type, uint32_t count,
                                           lilac_simt_value address, int64_t offset,
                                           lilac_simt_value predicate,
                                           const lilac_simt_value *others,
                                           const lilac_simt_instruction *modifiers);
LILAC_API void lilac_simt_store(lilac_simt_builder *b, lilac_simt_opcode code, uint32_t count,
                                const lilac_simt_value *values, lilac_simt_value address,
                                int64_t offset, lilac_simt_value predicate,
                                const lilac_simt_instruction *modifiers);
/* Matrices, 1, 2 or 4: the first of `count` words of `type`, and a store of words; `predicate` (0:
 * none) must be the same in all lanes of a warp. */
LILAC_API lilac_simt_value lilac_simt_load_matrix(lilac_simt_builder *b, bool transposed,
                                                  lilac_simt_type type, uint32_t count,
                                                  lilac_simt_value address, int64_t offset,
                                                  const lilac_simt_instruction *modifiers);
LILAC_API void lilac_simt_store_matrix(lilac_simt_builder *b, bool transposed, uint32_t count,
                                       const lilac_simt_value *values, lilac_simt_value address,
                                       int64_t offset, lilac_simt_value predicate,
                                       const lilac_simt_instruction *modifiers);
/* Atomics of `count` elements (code: ATOMIC_GLOBAL or ATOMIC_SHARED); returns the first of the old
 * values, or 0 if `wanted` is false. Where the predicate is false, memory is unchanged and the old
 * value is 0. `modifiers` holds the order, the scope and the annotations of shared memory. */
LILAC_API lilac_simt_value lilac_simt_atomic_op(lilac_simt_builder *b, lilac_simt_opcode code,
                                                lilac_simt_atomic kind, uint32_t count,
                                                const lilac_simt_value *values,
                                                lilac_simt_value address, int64_t offset,
                                                lilac_simt_value predicate, bool wanted,
                                                const lilac_simt_instruction *modifiers);
/* Stores `value` if the bits in memory equal those of `compare`. Returns the old value. */
LILAC_API lilac_simt_value lilac_simt_compare_and_swap(lilac_simt_builder *b,
                                                       lilac_simt_value compare,
                                                       lilac_simt_value value,
                                                       lilac_simt_value address, int64_t offset,
                                                       lilac_simt_value predicate, bool wanted,
                                                       const lilac_simt_instruction *modifiers);
/* Starts a copy of `size` (4, 8 or 16) bytes from global to shared memory, both aligned to `size`.
 * With `bytes` (i32, 0: none) only the first `bytes` bytes are read, at most `size`; the rest of
 * the destination is filled with zeros. Where the predicate is false, nothing is copied.
 * `modifiers` holds the cache operator (cg only for 16 bytes) and the annotations of shared memory.
 * */
LILAC_API void lilac_simt_copy_async(lilac_simt_builder *b, uint32_t size, lilac_simt_value shared,
                                     int64_t offset, lilac_simt_value global, int32_t source_offset,
                                     lilac_simt_value predicate, lilac_simt_value bytes,
                                     const lilac_simt_instruction *modifiers);
/* Makes a group of the thread's copies since its last commit; waits until at most `groups` of its
 * groups are incomplete; waits for all its copies. Other threads see the copied bytes
 * after a barrier that follows the wait. */
LILAC_API void lilac_simt_copy_commit(lilac_simt_builder *b);
LILAC_API void lilac_simt_copy_wait(lilac_simt_builder *b, uint32_t groups);
LILAC_API void lilac_simt_copy_wait_all(lilac_simt_builder *b);
/* Starts a bulk copy of `bytes` (i32) from shared to global memory. The size and both addresses are
 * multiples of 16. Where the predicate is false, nothing is copied. lilac_simt_bulk_reduce combines
 * the elements with those in global memory. `modifiers` holds the annotations of shared memory. */
LILAC_API void lilac_simt_bulk_store(lilac_simt_builder *b, lilac_simt_value shared, int64_t offset,
                                     lilac_simt_value global, lilac_simt_value bytes,
                                     lilac_simt_value predicate,
                                     const lilac_simt_instruction *modifiers);
LILAC_API void lilac_simt_bulk_reduce(lilac_simt_builder *b, lilac_simt_atomic kind,
                                      lilac_scalar element, lilac_simt_value shared,
                                      lilac_simt_value global, lilac_simt_value bytes,
                                      lilac_simt_value predicate);
/* Starts a bulk copy of `bytes` from global to shared memory that completes at the mbarrier. */
LILAC_API void lilac_simt_bulk_load(lilac_simt_builder *b, lilac_simt_value shared,
                                    lilac_simt_value global, lilac_simt_value bytes,
                                    lilac_simt_value mbarrier, lilac_simt_value predicate,
                                    const lilac_simt_instruction *modifiers);
/* A tensor copy. `like` holds the opcode, the operation of a reduction (detail), the offsets and
 * the annotations of shared memory. */
typedef struct lilac_simt_tensor_copy {
    lilac_simt_value shared, predicate; /* predicate 0: none */
    lilac_simt_value map;               /* a parameter's value, or the address of a map in scratch
                                           memory */
    uint32_t rank;
    lilac_simt_value coordinates[5];
    lilac_simt_value mbarrier; /* of a load */
    lilac_simt_value blocks;   /* of a multicast load: the mask of blocks, i32; 0: no multicast */
} lilac_simt_tensor_copy;
LILAC_API void lilac_simt_build_tensor_copy(lilac_simt_builder *b,
                                            const lilac_simt_instruction *like,
                                            const lilac_simt_tensor_copy *copy);
/* Makes a group of the thread's bulk stores since its last commit; waits until at most `groups` of
 * its groups have not written global memory or, with `read`, have not read shared memory. */
LILAC_API void lilac_simt_bulk_commit(lilac_simt_builder *b);
LILAC_API void lilac_simt_bulk_wait(lilac_simt_builder *b, uint32_t groups, bool read);
/* Writes a tensor map of that rank to shared memory: the address of the tensor (i64), its sizes and
 * its strides in bytes (i64), those of dimension 0 or 1 first. `like` holds the payload and the
 * annotations of shared memory. */
LILAC_API void lilac_simt_tensor_map_set(lilac_simt_builder *b, const lilac_simt_instruction *like,
                                         lilac_simt_value shared, lilac_simt_value predicate,
                                         uint32_t rank, lilac_simt_value address,
                                         const lilac_simt_value *sizes,
                                         const lilac_simt_value *strides);
/* Copies it to global memory, and makes it visible to tensor copies. */
LILAC_API void lilac_simt_tensor_map_publish(lilac_simt_builder *b,
                                             const lilac_simt_instruction *like,
                                             lilac_simt_value shared, lilac_simt_value predicate,
                                             lilac_simt_value map);
LILAC_API void lilac_simt_tensor_map_acquire(lilac_simt_builder *b, lilac_simt_value predicate,
                                             lilac_simt_value map);
/* Fetches a tensor map, a parameter's value, before copies use it. */
LILAC_API void lilac_simt_prefetch_tensor_map(lilac_simt_builder *b, lilac_simt_value map);
/* The memory for which a fence makes the thread's ordinary stores visible to the async proxy. */
typedef enum lilac_simt_fence {
    LILAC_SIMT_FENCE_SHARED,
    LILAC_SIMT_FENCE_GLOBAL,
    LILAC_SIMT_FENCE_ALL,
    LILAC_SIMT_FENCE_COUNT
} lilac_simt_fence;
LILAC_API void lilac_simt_fence_proxy_async(lilac_simt_builder *b, lilac_simt_fence kind);
/* An operation on the mbarrier at address + offset (i32, shared). `code` has the trait
 * LILAC_SIMT_MBARRIER. `predicate` is 0 for operations without one. `value` is the count, the
 * number of bytes or the parity; 0: none. Returns the result of try_wait, and 0 for other
 * operations. */
LILAC_API lilac_simt_value lilac_simt_mbarrier(lilac_simt_builder *b, lilac_simt_opcode code,
                                               lilac_simt_value address, int64_t offset,
                                               lilac_simt_value predicate, lilac_simt_value value);
LILAC_API void lilac_simt_fence_mbarrier_init(lilac_simt_builder *b);
/* Barrier `id` of `threads` threads: waits for them, or only arrives. */
LILAC_API void lilac_simt_named_barrier(lilac_simt_builder *b, bool waits, uint32_t id,
                                        uint32_t threads);
LILAC_API void lilac_simt_set_max_registers(lilac_simt_builder *b, bool increases,
                                            uint32_t registers);
/* The index (i32) of the thread, and of its warp, in the builder's window. */
LILAC_API lilac_simt_value lilac_simt_thread(lilac_simt_builder *b);
LILAC_API lilac_simt_value lilac_simt_warp(lilac_simt_builder *b);
/* True (i1) in one thread of the builder's window: a lane of its first warp that elect.sync names, from
 * which ptxas finds that one lane is active. */
LILAC_API lilac_simt_value lilac_simt_elected_thread(lilac_simt_builder *b);
/* The threads of the builder's window. */
LILAC_API uint32_t lilac_simt_threads(const lilac_simt_builder *b);
/* A barrier of the builder's window that orders all memory. */
LILAC_API void lilac_simt_memory_barrier(lilac_simt_builder *b);
/* Barriers. In a window of fewer warps than the kernel, the barriers of the block and of groups are
 * the window's named barrier. The barriers of the block, of the warp and of groups order shared
 * memory only (LILAC_SIMT_SHARED_ONLY); the barrier of the cluster orders all memory. A group
 * consists of the warps that pass the same `number` (i32, 0 … 14, the same in all lanes of a warp)
 * and has `threads` threads. lilac_simt_group_barrier_partition also sets shared_partition. */
LILAC_API void lilac_simt_barrier(lilac_simt_builder *b);
LILAC_API void lilac_simt_warp_barrier(lilac_simt_builder *b);
LILAC_API void lilac_simt_cluster_barrier(lilac_simt_builder *b);
/* No effect, but ptxas moves no access of memory across it, which it would do until registers spill. */
LILAC_API void lilac_simt_schedule_accesses(lilac_simt_builder *b);
LILAC_API void lilac_simt_group_barrier(lilac_simt_builder *b, lilac_simt_value number,
                                        uint32_t threads);
LILAC_API void lilac_simt_group_barrier_partition(lilac_simt_builder *b, lilac_simt_value number,
                                                  uint32_t threads, uint32_t partition);
/* The address of the same byte of shared memory in the block of that rank of the cluster; `address`
 * (i32) is in the thread's own block. */
LILAC_API lilac_simt_value lilac_simt_map_shared(lilac_simt_builder *b, lilac_simt_value address,
                                                 lilac_simt_value rank);
/* loop lower to upper by step (uniform i32 or i64, signed compare): opens the body and moves the
 * builder into it; *variable is the counter, the carried values' arguments follow it
 * (*variable + 1 …). lilac_simt_loop_end yields the next values, moves the builder back to the
 * enclosing body and returns the first of the loop's results. */
LILAC_API lilac_simt_instruction *
lilac_simt_loop_begin(lilac_simt_builder *b, lilac_simt_value lower, lilac_simt_value upper,
                      lilac_simt_value step, uint32_t carried, const lilac_simt_value *inits,
                      lilac_simt_value *variable);
LILAC_API lilac_simt_value lilac_simt_loop_end(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                               const lilac_simt_value *next);
/* A warp vote: is the predicate true in any lane? All lanes receive the same result, so it may be
 * the condition of an if or a while. */
LILAC_API lilac_simt_value lilac_simt_any_lane(lilac_simt_builder *b, lilac_simt_value predicate);
/* if condition (uniform): begin … [else …] end. Each body yields `results` values. */
LILAC_API lilac_simt_instruction *lilac_simt_if_begin(lilac_simt_builder *b,
                                                      lilac_simt_value condition, uint32_t results,
                                                      const lilac_simt_type *types);
LILAC_API void lilac_simt_if_else(lilac_simt_builder *b, lilac_simt_instruction *branch,
                                  const lilac_simt_value *values);
LILAC_API lilac_simt_value lilac_simt_if_end(lilac_simt_builder *b, lilac_simt_instruction *branch,
                                             const lilac_simt_value *values);
/* while: begin opens the "before" body (its arguments follow *first), lilac_simt_while_condition
 * ends it with condition and the values passed on and opens the "after" body (arguments follow
 * *first), end closes that with the next values for "before". Results: the values passed on. */
LILAC_API lilac_simt_instruction *
lilac_simt_while_begin(lilac_simt_builder *b, uint32_t carried, const lilac_simt_value *inits,
                       uint32_t results, const lilac_simt_type *types, lilac_simt_value *first);
LILAC_API void lilac_simt_while_condition(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                          lilac_simt_value condition,
                                          const lilac_simt_value *passed, lilac_simt_value *first);
LILAC_API lilac_simt_value lilac_simt_while_end(lilac_simt_builder *b, lilac_simt_instruction *loop,
                                                const lilac_simt_value *next);

/* programs: begin opens the body of the first program, next ends a program and opens the following
 * one, end ends the last one. Program k has warps[k] warps. */
LILAC_API lilac_simt_instruction *lilac_simt_programs_begin(lilac_simt_builder *b, uint32_t count,
                                                            const uint32_t *warps);
LILAC_API void lilac_simt_programs_next(lilac_simt_builder *b, lilac_simt_instruction *programs);
LILAC_API void lilac_simt_programs_end(lilac_simt_builder *b, lilac_simt_instruction *programs);

/* The type of a value that is not 0. */
LILAC_API lilac_simt_type lilac_simt_type_of(const lilac_simt_kernel *kernel,
                                             lilac_simt_value value);
/* The predicate under which one thread starts a bulk or tensor copy, or announces the bytes of one
 * (mbarrier.expect); 0: it has none, or the instruction is another one. */
LILAC_API lilac_simt_value lilac_simt_copy_predicate(const lilac_simt_kernel *kernel,
                                                     const lilac_simt_instruction *instruction);
/* Is this value a constant, and which bits? */
LILAC_API bool lilac_simt_is_constant(const lilac_simt_kernel *kernel, lilac_simt_value value,
                                      uint64_t *bits);
/* The bits of an integer that may be 1 in some thread, as far as the builder knows. */
LILAC_API uint64_t lilac_simt_possible_bits(const lilac_simt_builder *b, lilac_simt_value value);
/* Marks a value as uniform although its operands are not known to be, for example the result of a
 * reduction over all threads. */
LILAC_API void lilac_simt_mark_uniform(lilac_simt_kernel *kernel, lilac_simt_value value);
/* Computes `uniform` of every value from the definitions (greatest fixpoint) and the marks. The
 * reader and the passes call it; the builder keeps `uniform` up to date. While a loop is open, a
 * carried value is uniform if its initial value is; the end of the loop corrects this where the
 * next values are not uniform. */
LILAC_API void lilac_simt_infer_uniform(lilac_simt_kernel *kernel);
/* Packs `count` parts of equal width, lowest first, into one value of `type`, and unpacks them.
 * Unlike lilac_simt_build these fold: unpacking a packed value returns the original parts. */
LILAC_API lilac_simt_value lilac_simt_pack(lilac_simt_builder *b, lilac_simt_type type,
                                           uint32_t count, const lilac_simt_value *parts);
LILAC_API void lilac_simt_unpack(lilac_simt_builder *b, lilac_simt_type part,
                                 lilac_simt_value value, uint32_t count, lilac_simt_value *parts);
/* The name of a comparison in the text form: "lt", "ult" …. */
LILAC_API const char *lilac_simt_compare_name(lilac_simt_compare kind);

/* A conversion specification of print's format: % flags width .precision ll letter. */
typedef struct lilac_simt_conversion {
    const char *begin, *end;
    char letter; /* d i u x X (i32, with `wide` i64), p (i64), f e g (f32, f64), % (no value); 0:
                    none that print knows */
    bool wide;
} lilac_simt_conversion;
/* Finds the next conversion from *at on and advances *at past it. False if there is none. */
LILAC_API bool lilac_simt_next_conversion(const char **at, lilac_simt_conversion *conversion);

/* ---- passes: each returns whether it changed anything ----------------------------------- */

/* In loops over rows, computes the masks of all rows of an iteration from the number of remaining
 * rows, where that needs fewer instructions. */
LILAC_API bool lilac_simt_opt_tail_masks(lilac_simt_kernel *kernel);
/* Folds constants, identities (x + 0, unpack of pack, select of equal values) and conversions of
 * conversions, and moves constant terms of addresses into the offsets of accesses. */
LILAC_API bool lilac_simt_opt_fold(lilac_simt_kernel *kernel);
/* Replaces an operation on two selects of one condition by a select of the operation's result. */
LILAC_API bool lilac_simt_opt_sink_selects(lilac_simt_kernel *kernel);
/* Contracts an fmul with one use and the fadd or fsub that uses it to one ffma, unless
 * kernel->no_contraction is set. Beside it only `sigmoids` changes the bits of a float. */
LILAC_API bool lilac_simt_opt_contract(lilac_simt_kernel *kernel);
/* Divides by a number that is at least 1, such as 1 + e^x, by a product with a reciprocal, where the program
 * asks for an approximate quotient in f32; flushes small results of exponentials that are only added to
 * constants. Last bits may differ, within the errors of div.full.f32. Nothing may be contracted
 * afterwards. */
LILAC_API bool lilac_simt_opt_sigmoids(lilac_simt_kernel *kernel);
/* Computes 64-bit divisions in 32 bits behind a test of their operands in a warp. */
LILAC_API bool lilac_simt_opt_narrow_divisions(lilac_simt_kernel *kernel);
/* Operations of f32 between conversions from and to f16 or bf16 become operations of the narrow
 * float, of two halves of a word at once where their operands and results are packed. The results
 * are the same bits. Requires that nothing is contracted afterwards. */
LILAC_API bool lilac_simt_opt_narrow_floats(lilac_simt_kernel *kernel);
/* Replaces divisions and remainders by constants, and several ones by one value, by multiplications
 * with a reciprocal. */
LILAC_API bool lilac_simt_opt_expand_divisions(lilac_simt_kernel *kernel);
/* Replaces two comparisons of one integer, with zero and with a bound, that `and` or `or` joins, by one
 * unsigned comparison. */
LILAC_API bool lilac_simt_opt_merge_range_tests(lilac_simt_kernel *kernel);
/* Converts bytes and nibbles of words to floats by byte permutes and exact sums, two at once where they
 * are packed. The results are the same bits. */
LILAC_API bool lilac_simt_opt_convert_bytes(lilac_simt_kernel *kernel);
LILAC_API bool lilac_simt_opt_cse(lilac_simt_kernel *kernel);
LILAC_API bool lilac_simt_opt_licm(lilac_simt_kernel *kernel);
/* Addresses and conditions of asynchronous copies in loops become sums and conjunctions of an
 * invariant value and one that is shared; so do the narrow products in addresses of loads. */
LILAC_API bool lilac_simt_opt_split_addresses(lilac_simt_kernel *kernel);
/* Products of the counter with invariant factors become carried sums, in loops of asynchronous
 * copies. */
LILAC_API bool lilac_simt_opt_carry_products(lilac_simt_kernel *kernel);
/* Addresses of asynchronous copies that a loop advances by one step become sums of an invariant
 * address and one carried offset. */
LILAC_API bool lilac_simt_opt_share_increments(lilac_simt_kernel *kernel);
LILAC_API bool lilac_simt_opt_dce(lilac_simt_kernel *kernel);
/* Removes fences of the async proxy that no access to shared memory precedes. */
LILAC_API bool lilac_simt_opt_remove_fences(lilac_simt_kernel *kernel);
/* Removes barriers for shared memory that order no conflicting accesses, because there are none or
 * because other barriers order them. Relies on the annotations of shared memory. */
LILAC_API bool lilac_simt_opt_barriers(lilac_simt_kernel *kernel);
/* Reorders loop bodies of pure operations, loads and stores, and long computations that depend on
 * no load, from operation by operation to element by element, where that lowers register pressure;
 * moves loads to their first use where their results do not fit a thread's registers. Assumes code
 * without unused values. */
LILAC_API bool lilac_simt_opt_schedule(lilac_simt_kernel *kernel);
/* In loops, the rows of a product of wgmma are awaited one after another, each behind a part of the
 * product that stays in flight, where there is work on each. */
LILAC_API bool lilac_simt_opt_stagger_products(lilac_simt_kernel *kernel);
/* In loops of warp programs that wait at an mbarrier with no product of wgmma in flight, the next
 * iteration's phase is tested behind this one's products, and only waited for if it has not
 * completed. */
LILAC_API bool lilac_simt_opt_test_early(lilac_simt_kernel *kernel);
/* In loops, words of A of wgmma that are invariant become values that the loop carries, for ptxas
 * does not keep the registers of others. Nothing may move or merge what it adds. */
LILAC_API bool lilac_simt_opt_redefine_operands(lilac_simt_kernel *kernel);
/* Sets kernel->min_blocks where a number of resident blocks is known to be better than the
 * assembler's own choice; otherwise 0. */
LILAC_API bool lilac_simt_opt_occupancy(lilac_simt_kernel *kernel);
/* Inserts a schedule_barrier after the last of several loads in long straight-line code, so that
 * they are issued together. */
LILAC_API bool lilac_simt_opt_schedule_barriers(lilac_simt_kernel *kernel);
/* Computes addresses of accesses behind a barrier again, from opaque copies of their indices, where
 * many are live at the barrier. */
LILAC_API bool lilac_simt_opt_rematerialize_addresses(lilac_simt_kernel *kernel);
/* Rematerialises predicates of stores that also guard earlier loads, from an opaque copy of their
 * operands, where a body has more live predicates than predicate registers. */
LILAC_API bool lilac_simt_opt_rematerialize_predicates(lilac_simt_kernel *kernel);
/* Moves what computes the operands of bulk and tensor copies under one predicate in front of the first
 * of them, so that they follow each other. */
LILAC_API bool lilac_simt_opt_gather_copies(lilac_simt_kernel *kernel);

/* ---- values that a launch determines ----------------------------------------------------- */

/* Bytes of global memory whose contents are known. */
typedef struct lilac_simt_known_memory {
    uint64_t address, length;
    const unsigned char *bytes;
} lilac_simt_known_memory;

/* The values of one program of a launch. The caller sets the fields after init. */
typedef struct lilac_simt_evaluation {
    const lilac_simt_kernel *kernel;
    uint32_t argument_count; /* 0, or the kernel's parameters */
    const uint64_t *arguments;
    const bool *argument_known;
    uint32_t memory_count;
    const lilac_simt_known_memory *memory;
    bool thread_known; /* of this thread of a block, also what differs between threads */
    uint32_t thread;
    bool programs_known; /* these: */
    uint32_t program[3], grid[3];
    uint64_t *bits; /* by value; private, as the next ones */
    uint8_t *state;
    lilac_simt_value *seen; /* the values with a state, in the order of their evaluation */
    uint32_t seen_count;
} lilac_simt_evaluation;

/* Allocates the tables by value; clear frees them. */
LILAC_API void lilac_simt_evaluation_init(lilac_simt_evaluation *evaluation,
                                          const lilac_simt_kernel *kernel);
/* Frees the tables. */
LILAC_API void lilac_simt_evaluation_clear(lilac_simt_evaluation *evaluation);
/* Sets an argument of a body, or a result of control flow. */
LILAC_API void lilac_simt_evaluation_set(lilac_simt_evaluation *evaluation, lilac_simt_value value,
                                         uint64_t bits);
/* Forgets all values, for another program or thread. */
LILAC_API void lilac_simt_evaluation_reset(lilac_simt_evaluation *evaluation);
/* Forgets the values that were evaluated or set since seen_count was `mark`, for another
 * iteration. */
LILAC_API void lilac_simt_evaluation_forget(lilac_simt_evaluation *evaluation, uint32_t mark);
/* The bits of a value. False: parameters, numbers of programs, known memory and what was set do
 * not determine it. */
LILAC_API bool lilac_simt_evaluation_get(lilac_simt_evaluation *evaluation, lilac_simt_value value,
                                         uint64_t *bits);

typedef enum lilac_simt_pressure_order {
    LILAC_SIMT_PRESSURE_TEXT,  /* as the instructions stand */
    LILAC_SIMT_PRESSURE_EARLY, /* each pure value just before its first use, loads as they stand */
    LILAC_SIMT_PRESSURE_LATE,  /* the same, and loads of the same addresses in all blocks, too */
    LILAC_SIMT_PRESSURE_PROMPT /* as EARLY, and each pure value as soon as it frees the registers
                                  that it needs */
} lilac_simt_pressure_order;

/* An estimate of the 32-bit registers of a thread: the largest number of live words if the
 * instructions are executed in that order. */
LILAC_API uint32_t lilac_simt_pressure(const lilac_simt_kernel *kernel,
                                       lilac_simt_pressure_order order);
/* The number of blocks of the kernel that fit on a multiprocessor at that register pressure. */
LILAC_API uint32_t lilac_simt_resident_blocks(const lilac_simt_kernel *kernel, uint32_t pressure);

LILAC_END

#endif
