/* Tensor maps: how tensor copies see a tensor in global memory (CUtensorMap, tiled mode).
 *
 *     element (x₀, …, xₙ₋₁) of the tensor:  address + x₀ · size + x₁ · strides[0] + x₂ · strides[1] + …
 *     a copy at coordinates (c₀, …, cₙ₋₁):  the elements cᵢ + kᵢ · element_strides[i], 0 ≤ kᵢ < box[i] /
 *                                           element_strides[i] rounded up (of dimension 0: box[0])
 *     in shared memory:                     these elements one after another, k₀ fastest, the 16-byte
 *                                           chunks of the result permuted by the swizzle
 *
 * Dimension 0 is the contiguous one, so dimensions and coordinates are in the reverse order of a
 * row-major tensor's indices. Elements outside of the tensor, also those with a negative
 * coordinate, are filled by loads and dropped by stores, and count as bytes of the box all the
 * same.
 *
 * The swizzles are exclusive ors of bits of the shared address, so that they depend on where the box
 * lies. The pattern repeats after `period` bytes, a multiple of which the shared address should be:
 *
 *     32 bytes     bit  4        by bit  7           period  256
 *     64 bytes     bits 4, 5     by bits 7, 8        period  512
 *     128 bytes    bits 4, 5, 6  by bits 7, 8, 9     period 1024
 *
 * Sources: cuda.h of CUDA 13.0, cuTensorMapEncodeTiled; PTX ISA, section "Tensors". */
#ifndef LILAC_TENSOR_MAP_H
#define LILAC_TENSOR_MAP_H

#include <lilac/base.h>

LILAC_BEGIN

enum { LILAC_TENSOR_MAP_BYTES = 128, LILAC_TENSOR_MAP_ALIGNMENT = 64, LILAC_TENSOR_RANK = 5 };

/* As CUtensorMapDataType numbers them. Not described: f32 with subnormals flushed or rounded to TF32,
 * and elements below 8 bits. */
typedef enum lilac_tensor_element {
    LILAC_TENSOR_U8,
    LILAC_TENSOR_U16,
    LILAC_TENSOR_U32,
    LILAC_TENSOR_S32,
    LILAC_TENSOR_U64,
    LILAC_TENSOR_S64,
    LILAC_TENSOR_F16,
    LILAC_TENSOR_F32,
    LILAC_TENSOR_F64,
    LILAC_TENSOR_BF16,
    LILAC_TENSOR_ELEMENT_COUNT
} lilac_tensor_element;

typedef enum lilac_tensor_swizzle {
    LILAC_TENSOR_SWIZZLE_NONE,
    LILAC_TENSOR_SWIZZLE_32,
    LILAC_TENSOR_SWIZZLE_64,
    LILAC_TENSOR_SWIZZLE_128,
    LILAC_TENSOR_SWIZZLE_COUNT
} lilac_tensor_swizzle;

/* What loads put where the tensor has no element. */
typedef enum lilac_tensor_fill {
    LILAC_TENSOR_FILL_ZERO,
    LILAC_TENSOR_FILL_NAN, /* float elements only */
    LILAC_TENSOR_FILL_COUNT
} lilac_tensor_fill;

typedef struct lilac_tensor_map {
    uint64_t address; /* a multiple of 16 */
    lilac_tensor_element element;
    uint32_t rank;                    /* 1 … 5 */
    uint64_t dims[LILAC_TENSOR_RANK]; /* elements: 1 … 2^32 */
    uint64_t
        strides[LILAC_TENSOR_RANK - 1]; /* bytes, of dimension 1 on: multiples of 16 below 2^40 */
    uint32_t box[LILAC_TENSOR_RANK];    /* elements: 1 … 256; box[0]: a multiple of 16 bytes */
    uint32_t element_strides[LILAC_TENSOR_RANK]; /* 1 … 8; that of dimension 0 is not used */
    lilac_tensor_swizzle swizzle;                /* not narrower than box[0] */
    lilac_tensor_fill fill;
    uint32_t l2_promotion; /* bytes that a miss in the second-level cache reads: 0, 64, 128, 256 */
} lilac_tensor_map;

/* The limits above. False after an error of id `tensor-map` that names `what` (a parameter), the
 * field, its value and what is allowed; the context may be NULL. */
LILAC_API LILAC_MUST_USE bool lilac_tensor_map_check(lilac_context *context,
                                                     const lilac_tensor_map *map, const char *what);
LILAC_API uint32_t lilac_tensor_element_bytes(lilac_tensor_element element);
/* How many elements of a dimension a box has, and the bytes of a whole box: what a copy transfers. */
LILAC_API uint32_t lilac_tensor_map_extent(const lilac_tensor_map *map, uint32_t dimension);
LILAC_API uint64_t lilac_tensor_map_bytes(const lilac_tensor_map *map);
/* The swizzle of 0, 32, 64 or 128 bytes. */
LILAC_API lilac_tensor_swizzle lilac_tensor_swizzle_of(uint32_t bytes);
/* The bytes after which a swizzle repeats (none: 128, the alignment of every box), and where it puts
 * the byte of a shared address. */
LILAC_API uint32_t lilac_tensor_swizzle_period(lilac_tensor_swizzle swizzle);
LILAC_API uint64_t lilac_tensor_swizzle_apply(lilac_tensor_swizzle swizzle, uint64_t address);

/* ---- tensor maps that the launcher makes ------------------------------------------------- */

/* A kernel compiled with `launch_maps` (driver.h) has parameters that no caller passes: tensor
 * maps of strided tensors, which the launcher makes from the other arguments. A recipe says how.
 * Its numbers are sums over the kernel's parameters, named by their indices:
 *
 *     factor · p · q · (r / divisor) + factor · p + factor + …     at most 4 terms of at most 3 parameters
 *
 * A parameter may be divided by a number; the quotient is rounded towards zero.
 * The kernel is right only if the launch satisfies its conditions. */
enum {
    LILAC_LAUNCH_FACTORS = 3,
    LILAC_LAUNCH_TERMS = 4,
    LILAC_LAUNCH_PARAMETERS = 32,
    LILAC_LAUNCH_MOST = 1 << 30 /* the largest value of an integer that has a condition */
};

typedef struct lilac_launch_term {
    int64_t factor;
    uint32_t parameter_count, parameters[LILAC_LAUNCH_FACTORS];
    uint32_t divisors[LILAC_LAUNCH_FACTORS]; /* of the parameters; 0 is 1 */
} lilac_launch_term;

typedef struct lilac_launch_sum {
    uint32_t count; /* of the terms; none: 0 */
    lilac_launch_term terms[LILAC_LAUNCH_TERMS];
} lilac_launch_sum;

/* Numbers of elements. The outermost dimension is the first one, unlike in lilac_tensor_map. */
typedef struct lilac_launch_map {
    uint32_t parameter; /* that is the map */
    uint32_t base;      /* the parameter that points to the tensor */
    uint32_t rank;
    lilac_launch_sum offset; /* added to the base */
    lilac_launch_sum sizes[LILAC_TENSOR_RANK];
    lilac_launch_sum strides[LILAC_TENSOR_RANK - 1]; /* without the last one, which is 1 */
    /* What the sizes are rounded up to: loops read their last tile as a whole; 0 is 1. */
    uint32_t multiples[LILAC_TENSOR_RANK];
    /* A launch whose strides are no multiples of this many bytes, with one block for each program, is
     * faster without maps; 0: all are faster with them. */
    uint32_t pitch;
} lilac_launch_map;

typedef struct lilac_launch_conditions {
    uint32_t grid[3];         /* the grid is at most this */
    uint32_t parameter_count; /* integer parameters whose values are in [0, LILAC_LAUNCH_MOST] */
    uint32_t parameters[LILAC_LAUNCH_PARAMETERS];
} lilac_launch_conditions;

/* A kernel whose launcher may start several blocks for each program: 2, 4 or 8 along z, which are a
 * cluster and divide the iterations of a sum of products (split_sums, engine.h). The grid of
 * programs has one along z then. */
typedef struct lilac_launch_split {
    uint32_t divisor;            /* 0: one block for each program only */
    lilac_launch_sum iterations; /* divided by the divisor, rounded down */
    uint32_t clocks;             /* of the products of an iteration, estimated */
    uint32_t loads;              /* bytes that an iteration loads */
    uint32_t bytes;              /* of the sums of a block */
} lilac_launch_split;

/* A kernel that has a version without maps, which is faster in launches of fewer than `least`
 * iterations with at most one program for each multiprocessor (describe_loads, engine.h). */
typedef struct lilac_launch_least {
    uint32_t divisor; /* 0: all launches are faster with maps */
    uint32_t least;
    lilac_launch_sum iterations; /* divided by the divisor, rounded down */
} lilac_launch_least;

typedef struct lilac_launch_maps {
    uint32_t count;
    const lilac_launch_map *maps;
    lilac_launch_conditions conditions;
    lilac_launch_split split;
    lilac_launch_least least;
    bool one_block; /* compiled with target.one_block, the kernel has longer rings: launches whose
                       blocks have a multiprocessor each are faster with that one */
} lilac_launch_maps;

/* What a device has for a kernel: its multiprocessors, and how many clusters of 1, 2, 4 and 8 of the
 * kernel's blocks can be resident at the same time. */
enum { LILAC_LAUNCH_PART_CHOICES = 4 };
typedef struct lilac_launch_capacity {
    uint32_t multiprocessors;
    uint32_t clusters[LILAC_LAUNCH_PART_CHOICES];
} lilac_launch_capacity;

struct lilac_simt_kernel;

/* The sum of a recipe. False: it is beyond 64 bits. */
LILAC_API LILAC_MUST_USE bool
lilac_launch_sum_evaluate(int64_t *result, const lilac_launch_sum *sum, const int64_t *values);
/* Does a launch satisfy the conditions? `values`: of every parameter, integers sign-extended.
 * False after an error of id `launch-condition` that names the parameter by its entry of `names`;
 * the context may be NULL. */
LILAC_API LILAC_MUST_USE bool
lilac_launch_conditions_check(lilac_context *context, const lilac_launch_conditions *conditions,
                              const uint32_t grid[3], const int64_t *values,
                              const char *const *names);
/* How many blocks a launch starts for each program: the number with which it takes least time by a
 * model (choose_parts.c); 1, 2, 4 or 8. `one_block`: what the device has for the kernel that is compiled
 * with target.one_block, or NULL; launches whose blocks have a multiprocessor each are of that one. */
LILAC_API uint32_t lilac_launch_parts(const lilac_launch_split *split,
                                      const lilac_launch_capacity *capacity,
                                      const lilac_launch_capacity *one_block,
                                      const uint32_t grid[3], const int64_t *values);
/* Is there a multiprocessor for each block of a launch with `parts` blocks for each program?
 * `capacity`: for a kernel compiled with target.one_block. */
LILAC_API bool lilac_launch_one_block_fits(const lilac_launch_capacity *capacity,
                                           const uint32_t grid[3], uint32_t parts);
/* Is a launch with one block for each program faster with maps than without? */
LILAC_API bool lilac_launch_maps_pay(const lilac_launch_least *least, uint32_t multiprocessors,
                                     const uint32_t grid[3], const int64_t *values);
/* Sets the address, the sizes and the strides of a map whose other fields are set, and checks its
 * limits (lilac_tensor_map_check). False after an error of id `tensor-map`; the context may be
 * NULL. Negative numbers and sums beyond 64 bits are outside the limits. */
LILAC_API LILAC_MUST_USE bool lilac_launch_map_make(lilac_context *context, lilac_tensor_map *map,
                                                    const lilac_launch_map *recipe,
                                                    const int64_t *values, const char *what);
/* Are the map's strides such that a launch with one block for each program is faster with it? */
LILAC_API bool lilac_launch_map_pays(const lilac_launch_map *recipe, const lilac_tensor_map *map);
/* Conditions and maps of a launch: arguments[recipe.parameter] is the number of the map in `maps`.
 * The arguments are bits, as the simulator and the runtime receive them. */
LILAC_API LILAC_MUST_USE bool lilac_launch_maps_make(lilac_context *context, lilac_tensor_map *maps,
                                                     const lilac_launch_maps *recipes,
                                                     const struct lilac_simt_kernel *kernel,
                                                     const uint32_t grid[3],
                                                     const uint64_t *arguments);

LILAC_END

#endif
