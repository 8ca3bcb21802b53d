/* layout: linear layouts, labelled linear maps over F2 (Definition 4.1).
 *
 *   L : register × lane × warp × block  →  dim0 × dim1 × …
 *
 *          register     lane         warp
 *         r0  r1 | l0 l1 l2 l3 l4 | w0           column = where the element moves when that
 *   dim0 [ .   . |  .  .  .  1  . | . ]          input bit is set; the value of L at an index is
 *        [ .   . |  .  .  .  .  1 | . ]          the xor of the columns of its set bits
 *   dim1 [ 1   . |  .  .  .  .  . | . ]
 *        [ .   1 |  .  .  .  .  . | . ]
 *
 * A layout is a plain value: copy it by assignment, compare it with lilac_layout_equal. Nothing
 * allocates. Inputs and outputs are ordered lists of (name, log2 size); an input's columns stand
 * in `columns` one after another, lowest bit first; an output's bits stand in a column's word one
 * after another, first output lowest. At most 64 input and 64 output bits.
 *
 * Conventions: the result comes first and may alias an input; inputs are const. What can be refused
 * returns false and leaves the result unchanged, with the reason in `why` when that is not NULL.
 * Assertions check the invariants in debug builds.
 *
 * Standard names: inputs register lane warp block (distributed), offset block (memory);
 * outputs dim0 dim1 …
 */
#ifndef LILAC_LAYOUT_H
#define LILAC_LAYOUT_H

#include <lilac/base.h>

LILAC_BEGIN

#define LILAC_LAYOUT_MAX_DIMS 24
#define LILAC_LAYOUT_MAX_BITS 64

/* 16 bytes, so that comparing and copying are two words. Names have 1 to 14 characters. */
typedef struct lilac_layout_dim {
    char name[15];
    uint8_t bits; /* log2 of the size */
} lilac_layout_dim;

typedef struct lilac_layout {
    uint8_t in_count, out_count;   /* dimensions */
    uint8_t in_bits, out_bits;     /* sums */
    lilac_layout_dim in[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout_dim out[LILAC_LAYOUT_MAX_DIMS];
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
} lilac_layout;

/* Why an operation was refused. */
typedef struct lilac_reason {
    char text[160];
} lilac_reason;

/* ---- building --------------------------------------------------------------------------- */

/* The layout with no inputs and no outputs: the unit of the product. */
LILAC_API void lilac_layout_init(lilac_layout *layout);
/* Appends an output of 2^bits, above the others. Outputs come before inputs. Refused: a name twice
 * or of a wrong length, too many dims or bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_add_out(lilac_layout *layout, const char *name,
                                                   uint32_t bits, lilac_reason *why);
/* Appends an input with its columns, each an offset into the flattened outputs (see
 * lilac_layout_pack). Outputs must have been added. Refused as lilac_layout_add_out, and columns
 * that go outside the outputs. */
LILAC_API LILAC_MUST_USE bool lilac_layout_add_in(lilac_layout *layout, const char *name,
                                                  uint32_t bits, const uint64_t *columns,
                                                  lilac_reason *why);
/* in → out, the identity on 2^bits. */
LILAC_API void lilac_layout_identity(lilac_layout *layout, uint32_t bits, const char *in,
                                     const char *out);
/* in of 2^bits all mapping to 0 of out (of 2^out_bits). */
LILAC_API void lilac_layout_zeros(lilac_layout *layout, uint32_t bits, const char *in,
                                  const char *out, uint32_t out_bits);

/* ---- looking ---------------------------------------------------------------------------- */

/* Index of a dimension, or -1. */
LILAC_API int lilac_layout_in(const lilac_layout *layout, const char *name);
LILAC_API int lilac_layout_out(const lilac_layout *layout, const char *name);
/* log2 size of a named dimension; 0 when there is none. */
LILAC_API uint32_t lilac_layout_in_bits(const lilac_layout *layout, const char *name);
LILAC_API uint32_t lilac_layout_out_bits(const lilac_layout *layout, const char *name);
/* First bit of dimension number `index` among the flattened bits. */
LILAC_API uint32_t lilac_layout_in_start(const lilac_layout *layout, uint32_t index);
LILAC_API uint32_t lilac_layout_out_start(const lilac_layout *layout, uint32_t index);
/* The column of bit `bit` of a named input; the input must exist and have it. */
LILAC_API uint64_t lilac_layout_column(const lilac_layout *layout, const char *in, uint32_t bit);
/* Coordinate along output number `index` of a flattened output, and the flattened output of
 * coordinates (one for each output dimension). */
LILAC_API uint64_t lilac_layout_coordinate(const lilac_layout *layout, uint64_t flat, uint32_t index);
LILAC_API uint64_t lilac_layout_pack(const lilac_layout *layout, const uint64_t *coordinates);
/* L(index): inputs flattened in order, first lowest. */
LILAC_API uint64_t lilac_layout_apply(const lilac_layout *layout, uint64_t index);
/* Same dimensions in the same order with the same columns. */
LILAC_API bool lilac_layout_equal(const lilac_layout *a, const lilac_layout *b);
/* Equal layouts have equal hashes. */
LILAC_API uint64_t lilac_layout_hash(const lilac_layout *layout);
/* Equal once the dimensions are put in the same order. */
LILAC_API bool lilac_layout_equivalent(const lilac_layout *a, const lilac_layout *b);
LILAC_API uint32_t lilac_layout_rank(const lilac_layout *layout);
LILAC_API bool lilac_layout_is_injective(const lilac_layout *layout);
LILAC_API bool lilac_layout_is_surjective(const lilac_layout *layout);
/* Definition 4.10: surjective, columns zero or distinct unit vectors. */
LILAC_API bool lilac_layout_is_distributed(const lilac_layout *layout);
/* Bits of a named input whose column is zero and so do not change the element ("free" bits: the
 * lanes, warps … that hold copies); in layouts that are not distributed also those whose column is
 * a sum of columns of lower bits, of this input or of one before it. A mask over that input's
 * bits; each element is held once by the indices whose free bits are 0. */
LILAC_API uint64_t lilac_layout_free_bits(const lilac_layout *layout, const char *in);

/* ---- algebra ---------------------------------------------------------------------------- */

/* a × b (Definition 4.3): shared names are extended, b's bits above a's; new names appended. */
LILAC_API LILAC_MUST_USE bool lilac_layout_product(lilac_layout *result, const lilac_layout *a,
                                                   const lilac_layout *b, lilac_reason *why);
/* outer ∘ inner (Definition 4.2). Refused unless inner's outputs are, as a set, outer's inputs,
 * and none is larger than outer's. Inputs are inner's and outputs outer's, in their order. */
LILAC_API LILAC_MUST_USE bool lilac_layout_compose(lilac_layout *result, const lilac_layout *outer,
                                                   const lilac_layout *inner, lilac_reason *why);
/* The inverse of a bijective layout. */
LILAC_API LILAC_MUST_USE bool lilac_layout_invert(lilac_layout *result, const lilac_layout *layout,
                                                  lilac_reason *why);
/* A right inverse of a surjective layout (Definition 4.5), the least-squares one: free input bits
 * are never set, and of dependent columns the earliest (register before lane before …) is used. */
LILAC_API LILAC_MUST_USE bool lilac_layout_pseudoinvert(lilac_layout *result,
                                                        const lilac_layout *layout,
                                                        lilac_reason *why);
/* b⁻¹ ∘ a (section 5.4): from a's inputs to b's, so that b of it is a. It is the identity on every
 * input whose columns are the same on both sides, and elsewhere the smallest index of b that holds
 * the element (the lowest register, then lane, …). Refused unless the outputs agree in names and
 * sizes, in any order, and b is surjective. */
LILAC_API LILAC_MUST_USE bool lilac_layout_invert_compose(lilac_layout *result,
                                                          const lilac_layout *a,
                                                          const lilac_layout *b, lilac_reason *why);
/* Only the named inputs and outputs (NULL-terminated lists; NULL: all), in the layout's order.
 * Proposition 4.8. Refused: a name that the layout lacks. */
LILAC_API LILAC_MUST_USE bool lilac_layout_sublayout(lilac_layout *result, const lilac_layout *layout,
                                                     const char *const *ins, const char *const *outs,
                                                     lilac_reason *why);
/* Removes output number `dim` and renames dim(k+1) to dim(k) above it: the layout of a slice. Zero
 * register columns are dropped, the ones that were there before too; lane, warp and block keep
 * theirs. */
LILAC_API void lilac_layout_slice(lilac_layout *result, const lilac_layout *layout, uint32_t dim);
/* Drops the zero columns of a named input (register copies). */
LILAC_API void lilac_layout_drop_free(lilac_layout *result, const lilac_layout *layout,
                                      const char *in);
/* Puts the outputs in the order given (a permutation of their indices), names unchanged: output i
 * of the result is output order[i]. */
LILAC_API void lilac_layout_permute_outs(lilac_layout *result, const lilac_layout *layout,
                                         const uint32_t *order);
/* As lilac_layout_permute_outs, and then named dim0, dim1 … again: tt.trans. */
LILAC_API void lilac_layout_transpose(lilac_layout *result, const lilac_layout *layout,
                                      const uint32_t *order);
/* tt.reshape of row-major tensors: same element count, outputs become dim0 … of 2^bits each, with
 * the last dimension the fastest. */
LILAC_API LILAC_MUST_USE bool lilac_layout_reshape(lilac_layout *result, const lilac_layout *layout,
                                                   uint32_t rank, const uint32_t *bits,
                                                   lilac_reason *why);
/* tt.expand_dims: a new output dim`axis` of size 1; the outputs are then named dim0, dim1 … There
 * must be room for one more. */
LILAC_API void lilac_layout_expand(lilac_layout *result, const lilac_layout *layout, uint32_t axis);
/* How many consecutive elements along the flattened outputs a thread's registers 0, 1, 2 … hold
 * (section 5.1), as a log2: the largest u with register bit i ↦ bit i of the element order in which
 * `order` lists the outputs, fastest first (NULL: last dimension fastest). */
LILAC_API uint32_t lilac_layout_consecutive(const lilac_layout *layout, const uint32_t *order);

/* ---- text ------------------------------------------------------------------------------- */

/* {"register": [[0,1],[0,2]], "lane": …}: one value a line in JSON, coordinates in output order. */
LILAC_API void lilac_layout_json(lilac_text *out, const lilac_layout *layout);
/* #ttg.linear<{register = [[0, 1]], lane = […], warp = […], block = []}> for distributed layouts,
 * #ttg.shared_linear<{offset = […], block = []}> for memory ones. */
LILAC_API void lilac_layout_print(lilac_text *out, const lilac_layout *layout);

LILAC_END

#endif
