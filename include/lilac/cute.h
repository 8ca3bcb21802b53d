/* cute: CuTe layouts ⇄ linear layouts. Part of the component `encoding`.
 *
 *     Sw<B,M,S> o 0 o (s0,s1,…):(d0,d1,…)          every s, d a number or a tuple in its turn
 *
 * A CuTe layout maps coordinates to an offset. A coordinate of mode m is cut into digits by the
 * sizes in s_m, first one fastest; the digits times their strides are added up; the swizzle then
 * xors bits M+S … M+S+B-1 of the sum onto bits M … M+B-1 (for S < 0: bits M … onto bits M-S …).
 *
 * When it is linear over F2, exactly: all sizes are powers of two, and no two of the steps
 * stride·2^i (i below the log2 of the size) share a bit, for then adding never carries and is xor.
 * A stride of 3 under a size of 2 may be linear so; under a size of 4 it is not (3 + 6 ≠ 3 xor 6).
 * The swizzle is linear and its own inverse and changes nothing about that.
 *
 * Two directions. The map, dim0 × dim1 × … → offset, is CuTe's own and exists for every linear one;
 * mode m is dim m. The memory layout, offset × block → dim0 × dim1 × …, is how this library and
 * Triton write memory (block has no bits), and exists when the map is a bijection onto the offsets
 * below a power of two: no strides of 0, no holes.
 *
 * Back again: a linear map is a CuTe layout exactly when some swizzle (none included) takes it to
 * columns that share no bit. All swizzles are tried, so "there is none" is proved.
 */
#ifndef LILAC_CUTE_H
#define LILAC_CUTE_H

#include <lilac/layout.h>
#include <lilac/source.h>

LILAC_BEGIN

#define LILAC_CUTE_MAX_RANK   LILAC_LAYOUT_MAX_DIMS
#define LILAC_CUTE_MAX_LEAVES 64

/* A size with its stride. A mode is the list of its leaves, fastest first: tuples in tuples of a
 * mode say the same as one flat tuple. */
typedef struct lilac_cute_leaf {
    uint64_t size, stride;
    uint32_t mode;
} lilac_cute_leaf;

/* A plain value. Leaves stand in order of their modes; each mode has one at least. */
typedef struct lilac_cute {
    uint32_t swizzle_bits; /* B; 0: no swizzle, and then M and S are 0 */
    uint32_t swizzle_base; /* M */
    int32_t swizzle_shift; /* S, |S| ≥ B */
    uint32_t rank;         /* modes */
    uint32_t leaf_count;
    lilac_cute_leaf leaf[LILAC_CUTE_MAX_LEAVES];
} lilac_cute;

/* ---- text ------------------------------------------------------------------------------- */

/* Is the token at the scanner one that begins a CuTe layout? */
LILAC_API bool lilac_cute_at(const lilac_scanner *scanner);

/* Reads a layout as CuTe prints it or as people write it: "((2,4),(8,2)):((32,1),(4,64))", "8:1",
 * static integers "(_8,_64):(_64,_1)", and before it a swizzle "Sw<3,4,3>", "S<3,4,3>" or
 * "Swizzle<3,4,3>", joined by "o", with an offset of 0 between or not ("o 0 o", "o _0 o"). After
 * "smem_ptr[16b](unset)" a swizzle counts in bytes, as CuTe's does; it becomes one that counts in
 * elements of that width. A stride of 0 may stand for a tuple of zeros.
 *
 * False with a diagnostic: cute-mismatch (sizes and strides are nested differently), cute-swizzle
 * (not |S| ≥ B, more than 64 bits, or inside an element), cute-offset (an offset other than 0:
 * affine, not linear), cute-stride (negative), cute-size (0), cute-too-large (more than 64 leaves,
 * 24 modes, or offsets beyond 2^62), cute-too-deep, syntax. */
LILAC_API LILAC_MUST_USE bool lilac_cute_read(lilac_scanner *scanner, lilac_cute *result);

/* "Sw<3,3,3> o 0 o (8,64):(64,1)"; reads back to the same value. */
LILAC_API void lilac_cute_print(lilac_text *out, const lilac_cute *cute);

/* ---- meaning ---------------------------------------------------------------------------- */

/* Size of a mode. */
LILAC_API uint64_t lilac_cute_size(const lilac_cute *cute, uint32_t mode);
/* The definition, in integers: the offset of coordinates, one for each mode and below its size. */
LILAC_API uint64_t lilac_cute_offset(const lilac_cute *cute, const uint64_t *coordinates);
/* Swizzle<B,M,S> of an offset. */
LILAC_API uint64_t lilac_cute_swizzle(uint32_t bits, uint32_t base, int32_t shift, uint64_t offset);

/* Padding, as of padded shared memory: an offset a becomes a + Σ ⌊a / interval⌋ · padding, which
 * goes into the strides; the layout is linear over F2 no longer, as a rule. Neighbouring leaves are
 * joined where that changes nothing. Refused: a swizzle, strides that an interval cuts where no
 * stride says it, more than 64 leaves, offsets beyond 2^62. */
LILAC_API LILAC_MUST_USE bool lilac_cute_pad(lilac_cute *cute, uint32_t count,
                                             const uint64_t *interval, const uint64_t *padding,
                                             lilac_reason *why);

/* dim0 × dim1 × … → offset. The output has as many bits as the largest offset needs. Refused, with
 * what is wrong: "size 3 of mode 0 is not a power of two", "stride 3 of mode 0 is not a power of
 * two: …", "segments overlap: …". */
LILAC_API LILAC_MUST_USE bool lilac_cute_map(lilac_layout *result, const lilac_cute *cute,
                                             lilac_reason *why);
/* offset × block → dim0 × dim1 × …. Refused as lilac_cute_map, and: "not injective, so it has no
 * inverse: …", "nothing is at offset 8 …". */
LILAC_API LILAC_MUST_USE bool lilac_cute_memory(lilac_layout *result, const lilac_cute *cute,
                                                lilac_reason *why);

/* The CuTe layout of a linear map: mode m is input m, the offset is the flattened outputs, first
 * output lowest. The swizzle is the one of the fewest bits, then the lowest base; neighbouring
 * leaves are joined where that changes nothing. Refused: "this xor is not a Swizzle<B,M,S>: …". */
LILAC_API LILAC_MUST_USE bool lilac_cute_of_map(lilac_cute *result, const lilac_layout *map,
                                                lilac_reason *why);
/* The CuTe layout of any layout of this library: a memory layout (offset → dims) by its inverse,
 * modes being dims; a distributed one as CuTe's thread-value layouts, from (thread, value) to the
 * number of the element, first dim fastest, thread being lane and then warp, with a third mode for
 * blocks where there are any. Refused: inputs of other kinds, memory that spans blocks, "not
 * injective, so it has no inverse", and as lilac_cute_of_map. */
LILAC_API LILAC_MUST_USE bool lilac_cute_of_layout(lilac_cute *result, const lilac_layout *layout,
                                                   lilac_reason *why);

LILAC_END

#endif
