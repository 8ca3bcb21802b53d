/* arch: facts about devices, as data.
 *
 * One table (src/arch/devices.def) has one row for each device. Code asks for facts and never for
 * names, so a new device is a new row.
 */
#ifndef LILAC_ARCH_H
#define LILAC_ARCH_H

#include <lilac/base.h>

LILAC_BEGIN

typedef enum lilac_vendor { LILAC_NVIDIA, LILAC_AMD } lilac_vendor;

/* Instructions and abilities a device may have. */
typedef enum lilac_feature {
    LILAC_HAS_LDMATRIX = 1 << 0,
    LILAC_HAS_STMATRIX = 1 << 1,
    LILAC_HAS_CP_ASYNC = 1 << 2,
    LILAC_HAS_TMA = 1 << 3,
    LILAC_HAS_MMA_SYNC = 1 << 4,
    LILAC_HAS_WGMMA = 1 << 5,
    LILAC_HAS_CLUSTERS = 1 << 6,
    LILAC_HAS_BF16_ARITHMETIC = 1 << 7, /* add/sub/mul.bf16; fma.bf16 is older */
    LILAC_HAS_F8_CONVERSIONS = 1 << 8,  /* cvt to and from e4m3x2, e5m2x2 */
    LILAC_HAS_TENSOR_MEMORY = 1 << 9,
    LILAC_HAS_TENSOR_MAPS = 1 << 11, /* kernels make tensor maps: tensormap.replace */
    LILAC_HAS_BF16_ATOMICS = 1 << 10 /* atom and red .add.noftz.bf16, .bf16x2 */
} lilac_feature;

/* Cost of one warp instruction on a multiprocessor, in 1/16 clocks. The pipes work in parallel, so
 * the cost of a piece of code is close to that of its busiest pipe, not to the sum of all pipes:
 *
 *   memory   wavefronts of shared memory (128 bytes each) and shuffles
 *   integer  selects, byte permutes, packing
 *   special  exp2, log2, reciprocals, roots, sine, cosine, tanh of f32
 *   issue    every instruction
 *
 * Each row of the table (src/arch/costs.def) states whether it was measured. */
typedef struct lilac_costs {
    const char *name;
    bool measured; /* by bench/costs.py; otherwise from the vendor's tables */
    uint16_t wavefront, shuffle;
    uint16_t select, permute, pack; /* pack: extracts an element from a word or inserts one */
    uint16_t issue, special;
    uint16_t access;  /* an access to shared memory, in addition to its wavefronts */
    uint16_t remote;  /* a wavefront in another block's shared memory, in addition to its own */
    uint16_t overlap; /* sixteenths of the work of the other pipes that the busiest does not hide */
    /* A warp's share of a barrier of a warp, of a group of warps, of a block, of a cluster. */
    uint16_t barrier_warp, barrier_group, barrier_block, barrier_cluster;
    /* Exposed latency per block, with other blocks resident on the multiprocessor: from a store to
     * the load after the barrier, and of a shuffle. */
    uint16_t staging_latency, shuffle_latency;
    /* Global memory, in the same unit. sector: 32 bytes at a multiprocessor's share of the
     * bandwidth. global: an access, in addition to its sectors. line: each line of 128 bytes that
     * an access touches beyond the minimum for its bytes. */
    uint16_t sector, global, line;
    uint16_t latency; /* clocks from a load of global memory to its result, on a busy device */
} lilac_costs;

typedef struct lilac_arch {
    const char *name;        /* "sm_90a", "gfx942" */
    const char *description; /* "Hopper (H100, H200)" */
    lilac_vendor vendor;
    uint32_t capability;     /* 90 for sm_90a; 0 for AMD */
    uint32_t ptx_version;    /* oldest with this device, times ten: 80 for PTX ISA 8.0; 0 for AMD */
    uint32_t ptx_assembly;   /* for kernels with inline assembly where the assembler is not known */
    uint32_t warp_size;      /* lanes of a warp: 32 or 64 */
    uint32_t banks;          /* of shared memory */
    uint32_t bank_bytes;     /* width of one */
    uint32_t shared_bytes;   /* most a block may have */
    uint32_t registers;      /* 32-bit registers of a multiprocessor */
    uint32_t max_warps;      /* of a block */
    uint32_t resident_warps; /* most warps on a multiprocessor at a time */
    uint32_t resident_blocks; /* most blocks on one */
    uint32_t vector_bytes;    /* widest global or shared access of a thread */
    uint32_t sector_bytes;    /* smallest unit of a global transaction */
    uint32_t multiprocessors; /* of a typical device: a hint, the launcher knows the device */
    uint32_t features;        /* lilac_feature bits */
    const lilac_costs *costs;
} lilac_arch;

/* The device of that exact name, or NULL: "sm_90" does not find "sm_90a". */
LILAC_API const lilac_arch *lilac_arch_find(const char *name);
/* The table, in order; NULL past its end. */
LILAC_API const lilac_arch *lilac_arch_at(size_t index);
LILAC_API bool lilac_arch_has(const lilac_arch *arch, lilac_feature feature);

/* What a kernel is compiled for: the device and the launch shape. */
typedef struct lilac_target {
    const lilac_arch *arch;
    uint32_t num_warps;  /* power of two, 1 … arch->max_warps */
    uint32_t num_ctas;   /* blocks of a cluster: power of two */
    uint32_t num_stages; /* depth of software pipelines */
    bool launch_maps;    /* the launcher makes tensor maps as kernels ask for them */
    bool split_sums;     /* with launch_maps: and may launch several blocks for one program, which
                            divide the iterations of a sum of products (split_sums) */
    bool keep_warps;     /* num_warps warps even where another number is faster (choose_warps) */
    bool keep_order;     /* programs start in the order of their numbers (order_programs) */
    bool one_block;      /* no multiprocessor gets two blocks of a launch: rings may have the memory
                            of other blocks (pipeline_loops) */
} lilac_target;

LILAC_END

#endif
