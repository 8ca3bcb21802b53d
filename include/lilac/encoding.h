/* encoding: the named layouts of Triton ⇄ linear layouts.
 *
 * Named layouts exist only here: "#ttg.blocked<{…}>" is read, and all other components use the linear
 * layout that it means. A
 * named layout depends on the shape of its tensor, so reading has two steps: the attribute's text
 * becomes an lilac_encoding (a tree of parameters), and with a shape that becomes a layout.
 *
 *     of tensors          register, lane, warp, block → dim0 …   blocked, slice, linear, dot_op, …
 *     of shared memory    offset, block [, partition] → dim0 …   offsets count elements; padding
 *                                                                 is not in the map
 *     of tensor memory    row, col, block → dim0, dim1           a zero column of col, or of row
 *                                                                 below 32: no element is there
 *
 * The spellings of Triton 3.6 and of its main branch are both read (CTASplitM or CGALayout of
 * tensor memory, warpsPerCTA or ctaLayout of wmma), and each is printed as it was read. Where one
 * spelling means two things, it means what it does in main: an nvmma_shared that is not swizzled is
 * transposed when it says so (3.6 ignores it); operands of an nvidia_mma of version 2 with 8 rows
 * have 8 rows (16 in 3.6); twoCTAs with blockM = 64 is of two blocks also where CTASplitM does not
 * say so. Everything else that 3.6 reads has 3.6's layout, bit for bit. tensor_memory_linear, and a
 * partition of shared_linear, are there so that every layout of memory has a text that reads back.
 *
 * Diagnostics of reading: layout-unknown, layout-not-supported (a kind of Triton's that is not read
 * here), layout-alias-undefined, layout-field-unknown, -twice, -missing, layout-older-form
 * (CTAsPerCGA, CTASplitNum, CTAOrder), layout-two-forms, layout-rank, layout-number,
 * layout-not-power-of-two, layout-order, layout-basis, layout-not-surjective, layout-slice-dim,
 * layout-too-large, layout-too-deep, layout-of-memory and layout-of-tensor (one where the other
 * should be), layout-version, layout-instruction-shape, layout-dot-operand, -dot-parent,
 * -dot-k-width, layout-swizzle, layout-element-width, layout-fp4-padded, layout-padding,
 * layout-partition, layout-tensor-memory, element-type-unknown, address-space; the scanner's own
 * are syntax and integer-too-large. Of a shape: shape-not-power-of-two, shape-too-large,
 * layout-rank, layout-shape (one that this kind cannot have), layout-dot-operand,
 * layout-dot-k-width, layout-too-large.
 */
#ifndef LILAC_ENCODING_H
#define LILAC_ENCODING_H

#include <lilac/arch.h>
#include <lilac/layout.h>
#include <lilac/scalar.h>
#include <lilac/source.h>

LILAC_BEGIN

#define LILAC_MAX_RANK 24

typedef enum lilac_encoding_kind {
    /* Of tensors: inputs register, lane, warp, block. */
    LILAC_ENCODING_BLOCKED,
    LILAC_ENCODING_SLICE,
    LILAC_ENCODING_LINEAR,
    LILAC_ENCODING_GENERIC_LINEAR, /* as.linear */
    LILAC_ENCODING_DOT_OPERAND,
    LILAC_ENCODING_NVIDIA_MMA,
    LILAC_ENCODING_AMD_MFMA,
    LILAC_ENCODING_AMD_WMMA,
    LILAC_ENCODING_INTEL_DPAS,
    /* Of shared memory: inputs offset, block (and partition). */
    LILAC_ENCODING_SWIZZLED_SHARED,
    LILAC_ENCODING_AMD_ROTATING_SHARED,
    LILAC_ENCODING_NVMMA_SHARED,
    LILAC_ENCODING_PADDED_SHARED,
    LILAC_ENCODING_SHARED_LINEAR,
    LILAC_ENCODING_PARTITIONED_SHARED,
    /* Of tensor memory: inputs row, col, block. */
    LILAC_ENCODING_TENSOR_MEMORY,
    LILAC_ENCODING_TENSOR_MEMORY_SCALES,
    LILAC_ENCODING_TENSOR_MEMORY_LINEAR, /* as.linear */
    LILAC_ENCODING_KIND_COUNT
} lilac_encoding_kind;

/* What a kind of layout is for. */
typedef enum lilac_encoding_place {
    LILAC_ENCODING_OF_TENSOR,
    LILAC_ENCODING_OF_SHARED_MEMORY,
    LILAC_ENCODING_OF_TENSOR_MEMORY
} lilac_encoding_place;

enum { LILAC_ENCODING_MAX_BLOCK_BITS = 8, LILAC_ENCODING_MAX_PADDINGS = 16 };

/* CGALayout: one basis a block bit. */
typedef struct lilac_encoding_blocks {
    uint32_t bits;
    uint32_t basis[LILAC_ENCODING_MAX_BLOCK_BITS][LILAC_MAX_RANK];
} lilac_encoding_blocks;

typedef struct lilac_encoding {
    lilac_encoding_kind kind;
    lilac_position position; /* of its text */
    uint32_t rank;
    lilac_encoding_blocks blocks; /* none where the kind takes none, or all are in one block */
    union {
        struct {
            uint32_t size_per_thread[LILAC_MAX_RANK];
            uint32_t threads_per_warp[LILAC_MAX_RANK];
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t order[LILAC_MAX_RANK]; /* fastest first */
        } blocked;
        struct {
            uint32_t dim;
            const struct lilac_encoding *parent;
        } slice;
        lilac_layout linear;
        struct {
            uint32_t operand; /* 0: A, of shape (…, m, k); 1: B, of shape (…, k, n) */
            uint32_t k_width; /* 0: not given, as for a blocked parent */
            const struct lilac_encoding *parent;
        } dot;
        struct {
            uint32_t version_major, version_minor;
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t instr_rank;
            uint32_t instr_shape[LILAC_MAX_RANK]; /* […, m, n] of version 2, [m, n, k] of 3 */
        } nvidia_mma;
        struct {
            uint32_t version; /* 1 to 4 */
            bool transposed;
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t tiles_per_warp[LILAC_MAX_RANK]; /* all 1 when not given */
            uint32_t instr_shape[3];                 /* m, n, k */
            uint32_t element_bits;                   /* 0: not given */
        } amd_mfma;
        struct {
            uint32_t version; /* 1 to 3 */
            bool transposed;
            bool by_layout; /* warps by ctaLayout; else by warpsPerCTA and tilesPerWarp */
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t tiles_per_warp[LILAC_MAX_RANK]; /* all 1 when not given */
            uint32_t instr_shape[3];                 /* m, n, k; 16, 16, 16 when not given */
            lilac_layout cta;                        /* ctaLayout: inputs register and warp */
        } amd_wmma;
        struct {
            uint32_t repeat_count, systolic_depth, execution_size, ops_per_channel;
            uint32_t threads_per_warp;
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t rep_cluster[LILAC_MAX_RANK];
        } intel_dpas;
        struct {
            uint32_t vec, per_phase, max_phase;
            uint32_t order[LILAC_MAX_RANK]; /* fastest first */
        } swizzled;                         /* of SWIZZLED_SHARED and AMD_ROTATING_SHARED */
        struct {
            uint32_t swizzling_byte_width; /* 0, 32, 64, 128 */
            uint32_t element_bits;
            bool transposed, fp4_padded;
        } nvmma_shared;
        struct {
            uint32_t count;
            uint32_t interval[LILAC_ENCODING_MAX_PADDINGS]; /* elements */
            uint32_t padding[LILAC_ENCODING_MAX_PADDINGS];
            bool by_order; /* the linear part is given by order and shape */
            uint32_t order[LILAC_MAX_RANK];
            uint32_t shape[LILAC_MAX_RANK];
            lilac_layout linear; /* offset, block; also when given by order and shape */
        } padded_shared;
        struct {
            lilac_layout linear;
            uint32_t alignment; /* bytes */
        } shared_linear;
        struct {
            uint32_t partitions, groups, dim;
            const struct lilac_encoding *layout;
        } partitioned_shared;
        struct {
            uint32_t block_m, block_n, col_stride;
            uint32_t split_m, split_n; /* CTASplitM, CTASplitN of 3.6; 1 when not given */
            bool two_ctas, fp4_padded;
        } tensor_memory;
        struct {
            uint32_t split_m, split_n;
            bool k_then_mn; /* blockRepOrder = kThenMn */
        } tensor_memory_scales;
    } as;
} lilac_encoding;

/* What a layout is for, by its kind. */
LILAC_API lilac_encoding_place lilac_encoding_place_of(const lilac_encoding *encoding);

/* The layout of a tensor of this shape (powers of two): inputs as the kind's place says, outputs
 * dim0 …, surjective. On a tensor larger than the layout, registers repeat it (Proposition 4.6): a
 * named layout along its own order, a linear one along the dimensions in the order in which its
 * registers first move along them, then the others from the last to the first, as Triton does. On a
 * smaller tensor the layout holds copies: zero columns; a linear layout's registers that so become
 * copies are dropped, as slices drop theirs. A memory layout given by its bases is of one shape
 * only, as in Triton. Refused, with a diagnostic at the encoding's position: wrong rank, sizes that
 * are not powers of two, another shape than that of the bases of memory, more than 64 bits. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_layout(lilac_context *context, lilac_layout *result,
                                                    const lilac_encoding *encoding, uint32_t rank,
                                                    const int64_t *shape);

/* Attribute aliases (#blocked = #ttg.blocked<…>) in scope for a reader. Zero-initialise. A name
 * that is defined again means its latest encoding. */
typedef struct lilac_encoding_aliases {
    lilac_context *context;
    struct lilac_encoding_alias *first;
} lilac_encoding_aliases;

/* Brings an alias into scope, by its name without the '#'; and finds what a name means, NULL when
 * it means nothing. Names are copied into the context's arena. */
LILAC_API void lilac_encoding_define(lilac_encoding_aliases *aliases, lilac_context *context,
                                     const char *name, size_t length,
                                     const lilac_encoding *encoding);
LILAC_API const lilac_encoding *lilac_encoding_lookup(const lilac_encoding_aliases *aliases,
                                                      const char *name, size_t length);

/* Reads "#ttg.blocked<{…}>" or an alias "#blocked" at the scanner. NULL with a diagnostic when it
 * is malformed or of a kind not known here. The result lives in the context's arena. `aliases` may
 * be NULL. */
LILAC_API const lilac_encoding *lilac_encoding_read(lilac_scanner *scanner,
                                                    const lilac_encoding_aliases *aliases);
/* In Triton's spelling; what is printed reads back. */
LILAC_API void lilac_encoding_print(lilac_text *out, const lilac_encoding *encoding);

/* The named layout of tensors that is this linear layout of register, lane, warp and block: a blocked
 * one if there is one, else the linear one. Cost: some microseconds. */
LILAC_API void lilac_encoding_of_tensor(lilac_context *context, lilac_encoding *result,
                                        const lilac_layout *layout);

/* A tensor type with a layout: "tensor<16x16xf32, #ttg.blocked<{…}>>". */
typedef struct lilac_encoding_tensor {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    lilac_scalar scalar;
    bool pointers; /* elements are !tt.ptr<scalar> */
    const lilac_encoding *encoding;
    lilac_layout layout;
} lilac_encoding_tensor;

/* Reads such a type at the scanner, and works out its layout. False with a diagnostic: what reading
 * an attribute reports, and what lilac_encoding_layout does. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_read_tensor(lilac_scanner *scanner,
                                                         const lilac_encoding_aliases *aliases,
                                                         lilac_encoding_tensor *result);

/* A memdesc type: "!ttg.memdesc<16x16xf16, #ttg.swizzled_shared<{…}>, #smem, mutable>". */
typedef struct lilac_encoding_memdesc {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    uint32_t alloc_rank; /* of the allocation that it is a part of; its own when there is none */
    int64_t alloc_shape[LILAC_MAX_RANK];
    lilac_scalar scalar;
    bool is_mutable;
    const lilac_encoding *encoding;
    lilac_layout layout; /* of offset and block, and partition; or of row, col and block; of the
                            encoding's dimensions. Without inputs: the memory has no layout */
} lilac_encoding_memdesc;

/* Diagnostics beyond those of encodings: layout-of-tensor, memory-space, memory-space-unknown,
 * alloc-shape. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_read_memdesc(lilac_scanner *scanner,
                                                          const lilac_encoding_aliases *aliases,
                                                          lilac_encoding_memdesc *result);
/* The same from its "<" on. If `buffers` is set, the memory may have one more dimension in front,
 * and the encoding may be missing; the function above refuses both. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_read_memory(lilac_scanner *scanner,
                                                         const lilac_encoding_aliases *aliases,
                                                         bool buffers,
                                                         lilac_encoding_memdesc *result);
/* The layout of memory of this shape that is a part of an allocation: the last `rank` dimensions of
 * the allocation are its; alloc_rank 0: it is all of it. Bits that lead out of the part move
 * nothing, and those at the end of an input are dropped. Refused as lilac_encoding_layout. */
LILAC_API LILAC_MUST_USE bool
lilac_encoding_memory_layout(lilac_context *context, lilac_layout *result,
                             const lilac_encoding *encoding, uint32_t rank, const int64_t *shape,
                             uint32_t alloc_rank, const int64_t *alloc_shape);

/* ---- building from C -------------------------------------------------------------------- */

/* An encoding may also be filled in by hand: start from zero bytes, set kind, rank and the member
 * of `as`. The builders assert what the readers check. Arrays have `rank` entries, powers of two
 * where they are sizes; all is in one block until `blocks` is set. Parents must live as long. */
LILAC_API void lilac_encoding_blocked(lilac_encoding *result, uint32_t rank,
                                      const uint32_t *size_per_thread,
                                      const uint32_t *threads_per_warp,
                                      const uint32_t *warps_per_cta, const uint32_t *order);
LILAC_API void lilac_encoding_slice(lilac_encoding *result, uint32_t dim,
                                    const lilac_encoding *parent);
/* The operand of a parent that has them; k_width 0 for a blocked parent. */
LILAC_API void lilac_encoding_dot_operand(lilac_encoding *result, uint32_t operand,
                                          const lilac_encoding *parent, uint32_t k_width);
/* Version 2: instr_shape of `rank` sizes, [16, 8] for rank 2. Version 3: [16, n, k]. */
LILAC_API void lilac_encoding_nvidia_mma(lilac_encoding *result, uint32_t version_major,
                                         uint32_t version_minor, uint32_t rank,
                                         const uint32_t *warps_per_cta,
                                         const uint32_t *instr_shape);
/* AMD's and Intel's matrix units, of rank 2 (or 3 with a batch before). instr_shape is [m, n, k].
 * What is not given here is as when the text does not give it (tiles_per_warp 1) and may be set in
 * the result. Refused, with the reason in `why` when that is not NULL: what reading refuses. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_amd_mfma(lilac_encoding *result, uint32_t rank,
                                                      uint32_t version, const uint32_t *instr_shape,
                                                      bool transposed, uint32_t element_bits,
                                                      const uint32_t *warps_per_cta,
                                                      lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_encoding_amd_wmma(lilac_encoding *result, uint32_t rank,
                                                      uint32_t version, const uint32_t *instr_shape,
                                                      bool transposed,
                                                      const uint32_t *warps_per_cta,
                                                      lilac_reason *why);
/* Of systolic depth 8. */
LILAC_API LILAC_MUST_USE bool
lilac_encoding_intel_dpas(lilac_encoding *result, uint32_t rank, uint32_t repeat_count,
                          uint32_t execution_size, uint32_t ops_per_channel,
                          uint32_t threads_per_warp, const uint32_t *warps_per_cta,
                          const uint32_t *rep_cluster, lilac_reason *why);
LILAC_API void lilac_encoding_swizzled_shared(lilac_encoding *result, uint32_t rank, uint32_t vec,
                                              uint32_t per_phase, uint32_t max_phase,
                                              const uint32_t *order);
LILAC_API void lilac_encoding_amd_rotating_shared(lilac_encoding *result, uint32_t rank,
                                                  uint32_t vec, uint32_t per_phase,
                                                  uint32_t max_phase, const uint32_t *order);
LILAC_API void lilac_encoding_nvmma_shared(lilac_encoding *result, uint32_t rank,
                                           uint32_t swizzling_byte_width, bool transposed,
                                           uint32_t element_bits, bool fp4_padded);
/* A named layout of a linear one: generic_linear, shared_linear or tensor_memory_linear, as its
 * inputs say. Refused, with no diagnostic: other inputs than register, lane, warp, block; offset,
 * block and perhaps partition; row, col, block; a map that is not onto. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_linear(lilac_encoding *result,
                                                    const lilac_layout *layout);

LILAC_END

#endif
