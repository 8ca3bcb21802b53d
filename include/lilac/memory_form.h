/* memory_form: memory layouts as people describe them ⇄ linear layouts. Part of the component
 * `encoding`.
 *
 *     row_major(16x32)                           the last dimension is contiguous
 *     column_major(16x32)                        the first one is
 *     order(16x32x4, [1, 0, 2])                  any order of dimensions, fastest first
 *     strided(16x32, [64, 1])                    a stride in elements for each dimension
 *     tiled(1x64x8x8, [0, 1/32, 2, 3, 1%32])     pieces of dimensions, slowest first
 *     tiled(1x64x8x8, NC/32HW32)                 the same, named as cuDNN's formats are
 *     tiled(1x64x8x8, NCHW_VECT_C 32)            the same
 *     padded(16x32, 32:+4)                       after every 32 elements 4 that hold nothing
 *     padded(16x32, [0, 1], 16:+4, 128:+8)       in another order, with several paddings
 *
 * A piece d/k%m of dimension d is the number (coordinate / k) mod m: "/k" drops the low part, "%m"
 * keeps the low part, either may be left out. Pieces of a dimension must make it up exactly once.
 * In a name, the letters N C D H W are dimensions 0, 1 … of NCW, NCHW or NCDHW tensors, in the
 * order of memory, slowest first; C/32 … 32 splits one; NHWC and the like are names too.
 *
 * Address = Σ piece · stride; with padding, of an address a before padding,
 * a + Σ ⌊a / interval⌋ · padding. Padding is not in the linear layout, as it is not in Triton's:
 * that layout says which element stands where before padding.
 */
#ifndef LILAC_MEMORY_FORM_H
#define LILAC_MEMORY_FORM_H

#include <lilac/cute.h>
#include <lilac/layout.h>
#include <lilac/source.h>

LILAC_BEGIN

#define LILAC_MEMORY_FORM_MAX_PIECES   64
#define LILAC_MEMORY_FORM_MAX_PADDINGS 8

typedef enum lilac_memory_form_kind {
    LILAC_MEMORY_ROW_MAJOR,
    LILAC_MEMORY_COLUMN_MAJOR,
    LILAC_MEMORY_ORDER,
    LILAC_MEMORY_STRIDED,
    LILAC_MEMORY_TILED,
    LILAC_MEMORY_PADDED
} lilac_memory_form_kind;

/* (coordinate[dim] / divisor) mod size, times stride. */
typedef struct lilac_memory_piece {
    uint32_t dim;
    uint64_t divisor, size, stride;
} lilac_memory_piece;

/* A plain value. Every kind is pieces (slowest first, except of strided: in order of dimensions)
 * and paddings; the rest is what its text needs. */
typedef struct lilac_memory_form {
    lilac_memory_form_kind kind;
    uint32_t rank;
    uint64_t shape[LILAC_LAYOUT_MAX_DIMS];
    uint32_t piece_count;
    lilac_memory_piece piece[LILAC_MEMORY_FORM_MAX_PIECES];
    uint32_t padding_count;
    struct {
        uint64_t interval, padding;
    } padding[LILAC_MEMORY_FORM_MAX_PADDINGS];
    char name[32]; /* of a tiling that was named: "NC/32HW32"; otherwise empty */
} lilac_memory_form;

/* ---- text ------------------------------------------------------------------------------- */

/* Is the token at the scanner the name of a memory form? */
LILAC_API bool lilac_memory_form_at(const lilac_scanner *scanner);
/* Reads one of the forms above. False with a diagnostic: memory-form-unknown, memory-form-order (no
 * permutation), memory-form-strides (not one a dimension, negative), memory-form-tile (sizes that
 * do not divide, pieces that overlap or are missing, a name that is not understood),
 * memory-form-padding (interval not a power of two, twice, padding below 1), memory-form-too-large
 * (offsets beyond 2^62, too many pieces), and the scanner's own for the shape. */
LILAC_API LILAC_MUST_USE bool lilac_memory_form_read(lilac_scanner *scanner,
                                                     lilac_memory_form *result);
/* Reads back to the same value. */
LILAC_API void lilac_memory_form_print(lilac_text *out, const lilac_memory_form *form);

/* ---- meaning ---------------------------------------------------------------------------- */

/* The definition, in integers: the address in elements of coordinates, one for each dimension,
 * padding included. */
LILAC_API uint64_t lilac_memory_form_address(const lilac_memory_form *form,
                                             const uint64_t *coordinates);
/* Elements of memory it takes: one more than the largest address. */
LILAC_API uint64_t lilac_memory_form_extent(const lilac_memory_form *form);

/* Has every element an address of its own? When not, `why` has two that share one; or says that it
 * could not be decided (strides so irregular that a million differences were tried in vain). Only
 * strided forms can fail. Any sizes and strides, powers of two or not. */
LILAC_API bool lilac_memory_form_is_injective(const lilac_memory_form *form, lilac_reason *why);

/* dim0 × dim1 × … → offset, before padding. Refused: as lilac_cute_map. */
LILAC_API LILAC_MUST_USE bool
lilac_memory_form_map(lilac_layout *result, const lilac_memory_form *form, lilac_reason *why);
/* offset × block → dim0 × dim1 × …, before padding: "#ttg.shared_linear<{offset = …, block = []}>".
 * Refused: as lilac_memory_form_map, not injective, holes. */
LILAC_API LILAC_MUST_USE bool
lilac_memory_form_layout(lilac_layout *result, const lilac_memory_form *form, lilac_reason *why);
/* The same map, padding included, as a CuTe layout; sizes need not be powers of two, and padding
 * goes into the strides: padded(16x32, 32:+4) is (16,32):(36,1). Refused: an interval that cuts a
 * dimension of a size that it does not divide; a result of more than 64 leaves or too large. */
LILAC_API LILAC_MUST_USE bool
lilac_memory_form_cute(lilac_cute *result, const lilac_memory_form *form, lilac_reason *why);

LILAC_END

#endif
