/* matrix: the matrix instructions of NVIDIA devices, as data.
 *
 * Part of the component `arch`. An instruction computes D = A·B + C with A of m × k, B of k × n and
 * C, D of m × n elements. Two tables (src/arch/matrix.def) have one row for each combination of
 * types and shapes:
 *
 *     mma     one warp; all operands in registers (mma.sync)
 *     wgmma   one warpgroup of four warps; m = 64; A in shared memory or registers, B in shared
 *             memory, C and D are the same registers (wgmma.mma_async)
 *
 * Fragments. Let a word be 32 bits along k of A and B (of f64: 64 bits), and lane = 4g + t with
 * 0 ≤ t < 4. For one warp, with R = m / 8 for mma and R = 2 for wgmma:
 *
 *     A, register i    row g + 8 (i mod R), word t + 4 ⌊i / R⌋
 *     B, register i    column g, word t + 4 i                            (mma only)
 *     D, element e     row g + 8 (⌊e / 2⌋ mod R), column 2t + e mod 2 + 8 ⌊e / 2R⌋
 *
 * Warp w of a warpgroup has the rows from 16 w on. Elements of 16 bits of D are packed in pairs,
 * low element first. Source: PTX ISA 9.7.14 and 9.7.15, figures of the fragments. */
#ifndef LILAC_MATRIX_H
#define LILAC_MATRIX_H

#include <lilac/arch.h>

LILAC_BEGIN

/* Element types: name, PTX's name, bits of an element where it is stored. Of tf32's 32 bits the low
 * 13 do not count; the product of b1 is the and of bits. */
#define LILAC_MATRIX_TYPES(ROW)                                                                    \
    ROW(NONE, "none", 0)                                                                           \
    ROW(F16, "f16", 16)                                                                            \
    ROW(BF16, "bf16", 16)                                                                          \
    ROW(TF32, "tf32", 32)                                                                          \
    ROW(F64, "f64", 64)                                                                            \
    ROW(E4M3, "e4m3", 8)                                                                           \
    ROW(E5M2, "e5m2", 8)                                                                           \
    ROW(S8, "s8", 8)                                                                               \
    ROW(U8, "u8", 8)                                                                               \
    ROW(B1, "b1", 1)                                                                               \
    ROW(F32, "f32", 32)                                                                            \
    ROW(S32, "s32", 32)

typedef enum lilac_matrix_type {
#define LILAC_MATRIX_TYPE_ROW(name, text, bits) LILAC_MATRIX_##name,
    LILAC_MATRIX_TYPES(LILAC_MATRIX_TYPE_ROW)
#undef LILAC_MATRIX_TYPE_ROW
        LILAC_MATRIX_TYPE_COUNT
} lilac_matrix_type;

/* PTX's name, of anything else "none". */
LILAC_API const char *lilac_matrix_type_name(uint32_t type);
/* Bits of an element where it is stored: 1, 8, 16, 32 or 64; 0 of NONE. */
LILAC_API uint32_t lilac_matrix_type_bits(lilac_matrix_type type);

/* What a and b are in the tables: e4m3 stands for both 8-bit floats and s8 for both 8-bit integers,
 * which may be mixed. */
LILAC_API lilac_matrix_type lilac_matrix_type_class(lilac_matrix_type type);

typedef struct lilac_matrix_shape {
    lilac_matrix_type a, b, d; /* d: of C and D */
    uint32_t m, n, k;
} lilac_matrix_shape;

typedef struct lilac_mma {
    lilac_matrix_type kind, d; /* of A and B, as a class; of C and D */
    uint32_t m, n, k;
    uint32_t capability;  /* of the first device that has it */
    uint32_t ptx_version; /* the oldest with it, times ten */
} lilac_mma;

/* The row of the table, or NULL; and row number `index`, NULL past the end. */
LILAC_API const lilac_mma *lilac_mma_find(const lilac_matrix_shape *shape);
LILAC_API const lilac_mma *lilac_mma_at(size_t index);
LILAC_API bool lilac_mma_has(const lilac_arch *arch, const lilac_mma *row);

typedef struct lilac_wgmma {
    lilac_matrix_type kind, d; /* of A and B, as a class; of C and D */
    uint32_t k;
    bool transposes;  /* A and B may lie with m or n contiguous in shared memory */
    bool scales;      /* A and B may be negated */
    bool narrow_list; /* n: 8, 16, 24 and multiples of 16; else all multiples of 8; at most 256 */
} lilac_wgmma;

/* The row of these types, or NULL, whatever m, n and k are; row number `index`, NULL past the end. */
LILAC_API const lilac_wgmma *lilac_wgmma_find(const lilac_matrix_shape *shape);
LILAC_API const lilac_wgmma *lilac_wgmma_at(size_t index);
/* May an instruction of this row have n columns? */
LILAC_API bool lilac_wgmma_has_columns(const lilac_wgmma *row, uint32_t n);
/* Cycles of the tensor cores that one wgmma of n columns takes: n / 2, and at least 19. */
LILAC_API uint32_t lilac_wgmma_cycles(uint32_t n);

/* ---- fragments -------------------------------------------------------------------------- */

/* Registers of a thread: words of A and B, and registers of C and D (32 bits each; of f64: 64). */
LILAC_API uint32_t lilac_matrix_a_registers(const lilac_matrix_shape *shape, uint32_t lanes);
LILAC_API uint32_t lilac_matrix_b_registers(const lilac_matrix_shape *shape, uint32_t lanes);
LILAC_API uint32_t lilac_matrix_d_registers(const lilac_matrix_shape *shape, uint32_t lanes);

/* Row or column, and word along k or column of D, of one register or element of a lane. `rows`: 8
 * or 16 rows of a warp. */
LILAC_API void lilac_matrix_a_place(uint32_t rows, uint32_t lane, uint32_t i, uint32_t *row,
                                    uint32_t *word);
LILAC_API void lilac_matrix_b_place(uint32_t lane, uint32_t i, uint32_t *column, uint32_t *word);
LILAC_API void lilac_matrix_d_place(uint32_t rows, uint32_t lane, uint32_t e, uint32_t *row,
                                    uint32_t *column);

/* ---- descriptors of wgmma --------------------------------------------------------------- */

typedef enum lilac_matrix_swizzle {
    LILAC_MATRIX_SWIZZLE_NONE,
    LILAC_MATRIX_SWIZZLE_128,
    LILAC_MATRIX_SWIZZLE_64,
    LILAC_MATRIX_SWIZZLE_32
} lilac_matrix_swizzle;

/* A matrix in shared memory, in bytes; all but base_offset multiples of 16, below 2^18.
 *
 *     bits 0–13 start / 16    16–29 leading / 16    32–45 stride / 16    49–51 base    62–63 swizzle
 *
 * k contiguous ("K-major"), swizzled: `stride` between groups of 8 rows, `leading` unused. Not
 * swizzled: `stride` between groups of 8 rows, `leading` between the two halves of 16 bytes along k.
 * m or n contiguous ("MN-major"), swizzled: `stride` between groups of 8 k, `leading` between pieces
 * of 64, 32 or 16 elements along m or n. Not swizzled: `stride` between pieces of 8 elements along m
 * or n, `leading` between groups of 8 k. */
typedef struct lilac_matrix_descriptor {
    uint32_t start, leading, stride;
    uint32_t base_offset; /* 0: the pattern of the swizzle starts at a multiple of its size */
    lilac_matrix_swizzle swizzle;
} lilac_matrix_descriptor;

/* The 64 bits, and what they say. */
LILAC_API uint64_t lilac_matrix_descriptor_encode(const lilac_matrix_descriptor *descriptor);
LILAC_API lilac_matrix_descriptor lilac_matrix_descriptor_decode(uint64_t bits);
/* Bytes of a row of the swizzle's pattern: 128, 64, 32; 16 without a swizzle. */
LILAC_API uint32_t lilac_matrix_swizzle_bytes(lilac_matrix_swizzle swizzle);
/* Where wgmma reads element (row, k) of A, or (column, k) of B, of elements of `bits` bits: the
 * address in shared memory of its byte. `transposed`: m or n is contiguous (16 bits only). */
LILAC_API uint32_t lilac_matrix_descriptor_address(const lilac_matrix_descriptor *descriptor,
                                                   uint32_t bits, bool transposed, uint32_t row,
                                                   uint32_t k);

LILAC_END

#endif
