/* layout: linear layouts, labelled linear maps over F2 (Definition 4.1).
 *
 *   L : register × lane × warp × block  →  dim0 × dim1 × …
 *
 *          register     lane         warp
 *         r0  r1 | l0 l1 l2 l3 l4 | w0           A column is the offset that its input bit adds.
 *   dim0 [ .   . |  .  .  .  1  . | . ]          L of an index is the xor of the columns of the
 *        [ .   . |  .  .  .  .  1 | . ]          bits that are set in it.
 *   dim1 [ 1   . |  .  .  .  .  . | . ]
 *        [ .   1 |  .  .  .  .  . | . ]
 *
 * A layout is a plain value: it is copied by assignment and compared with lilac_layout_equal.
 * Nothing allocates. Inputs and outputs are ordered lists of (name, log2 size). `columns` holds the
 * columns of all inputs in order, lowest bit first. The word of a column holds the bits of all
 * outputs in order, the first output in the lowest bits. At most 64 input and 64 output bits.
 *
 * Conventions: the result comes first and may alias an input; inputs are const. A function that can
 * refuse its arguments returns false, leaves the result unchanged, and puts the reason into `why`
 * unless that is NULL. Assertions check the invariants in debug builds.
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
    uint8_t in_count, out_count; /* dimensions */
    uint8_t in_bits, out_bits;   /* sums */
    lilac_layout_dim in[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout_dim out[LILAC_LAYOUT_MAX_DIMS];
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
} lilac_layout;

/* Why an operation was refused. */
typedef struct lilac_reason {
    char text[160];
} lilac_reason;
/* Writes the reason unless `why` is NULL. Always false, so that callers can `return` it. */
LILAC_API bool lilac_layout_refuse(lilac_reason *why, const char *format, ...) LILAC_PRINTF(2, 3);

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

/* x ↦ stride · x for x below 2^bits: out is stride times as large. Refused: a stride that is not a
 * power of two, names, too many bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_strided(lilac_layout *layout, uint32_t bits,
                                                   uint64_t stride, const char *in, const char *out,
                                                   lilac_reason *why);
/* in numbers the elements of a tensor of 2^bits[i] along dim0, dim1 …, whose dimensions are taken
 * in `order`, fastest first (NULL: the last one fastest). Refused: too many dimensions or bits, an
 * order that is no permutation. */
LILAC_API LILAC_MUST_USE bool lilac_layout_standard(lilac_layout *layout, const char *in,
                                                    uint32_t rank, const uint32_t *bits,
                                                    const uint32_t *order, lilac_reason *why);
/* A whole layout from its bases: `coordinates` holds, input bit by input bit, the coordinates of
 * what that bit moves, one for each output. An output whose bits are LILAC_LAYOUT_INFER is made
 * just large enough for its coordinates. Refused: as adding is, and a coordinate outside its
 * output. */
#define LILAC_LAYOUT_INFER 255
LILAC_API LILAC_MUST_USE bool
lilac_layout_from_bases(lilac_layout *layout, uint32_t in_count, const lilac_layout_dim *ins,
                        uint32_t out_count, const lilac_layout_dim *outs,
                        const uint64_t *coordinates, lilac_reason *why);
/* A whole layout from its masks, the rows of the matrix: bit i of the flattened outputs is the
 * parity of the flattened index's bits under masks[i]. Refused: as adding is, and a mask that goes
 * outside the inputs. */
LILAC_API LILAC_MUST_USE bool lilac_layout_from_masks(lilac_layout *layout, uint32_t in_count,
                                                      const lilac_layout_dim *ins,
                                                      uint32_t out_count,
                                                      const lilac_layout_dim *outs,
                                                      const uint64_t *masks, lilac_reason *why);
/* The masks of a layout, out_bits of them. */
LILAC_API void lilac_layout_masks(uint64_t *masks, const lilac_layout *layout);

/* ---- queries ---------------------------------------------------------------------------- */

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
LILAC_API uint64_t lilac_layout_coordinate(const lilac_layout *layout, uint64_t flat,
                                           uint32_t index);
LILAC_API uint64_t lilac_layout_pack(const lilac_layout *layout, const uint64_t *coordinates);
/* L(index): inputs flattened in order, first lowest. */
LILAC_API uint64_t lilac_layout_apply(const lilac_layout *layout, uint64_t index);
/* L(first), L(first + 1) … L(first + count - 1): into words of 64 or 32 bits. About one store an
 * element. Refused: indices outside the inputs, and for 32 bits outputs of more. */
LILAC_API LILAC_MUST_USE bool lilac_layout_apply_range(uint64_t *places, const lilac_layout *layout,
                                                       uint64_t first, uint64_t count,
                                                       lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_apply_range32(uint32_t *places,
                                                         const lilac_layout *layout, uint64_t first,
                                                         uint64_t count, lilac_reason *why);
/* The same, only the coordinate along output number `out`, which must exist. */
LILAC_API LILAC_MUST_USE bool lilac_layout_coordinates32(uint32_t *coordinates,
                                                         const lilac_layout *layout, uint32_t out,
                                                         uint64_t first, uint64_t count,
                                                         lilac_reason *why);
/* L of `count` indices in any order; places may be indices. Refused: an index outside the inputs,
 * with nothing written. */
LILAC_API LILAC_MUST_USE bool lilac_layout_apply_each(uint64_t *places, const lilac_layout *layout,
                                                      const uint64_t *indices, uint64_t count,
                                                      lilac_reason *why);
/* Same dimensions in the same order with the same columns. */
LILAC_API bool lilac_layout_equal(const lilac_layout *a, const lilac_layout *b);
/* Equal layouts have equal hashes. */
LILAC_API uint64_t lilac_layout_hash(const lilac_layout *layout);
/* Equal once the dimensions are put in the same order. */
LILAC_API bool lilac_layout_equivalent(const lilac_layout *a, const lilac_layout *b);
LILAC_API uint32_t lilac_layout_rank(const lilac_layout *layout);
LILAC_API bool lilac_layout_is_injective(const lilac_layout *layout);
LILAC_API bool lilac_layout_is_surjective(const lilac_layout *layout);
LILAC_API bool lilac_layout_is_bijective(const lilac_layout *layout);
/* Definition 4.10: surjective, columns zero or distinct unit vectors. */
LILAC_API bool lilac_layout_is_distributed(const lilac_layout *layout);
/* Definition 4.14: invertible, every column of one or two set bits. */
LILAC_API bool lilac_layout_is_memory(const lilac_layout *layout);
/* Over names (NULL-terminated lists; NULL: all of that side). zero: the block of the matrix from
 * the named inputs to the named outputs is zero. identity: the named dimensions, on both sides
 * and in this order, are mapped to themselves. trivial: identity, and the matrix is
 * block-diagonal: no other input reaches the named outputs, and the named inputs reach no other
 * output. A name that the layout lacks has size one. */
LILAC_API bool lilac_layout_is_zero_over(const lilac_layout *layout, const char *const *ins,
                                         const char *const *outs);
LILAC_API bool lilac_layout_is_identity_over(const lilac_layout *layout, const char *const *names);
LILAC_API bool lilac_layout_is_trivial_over(const lilac_layout *layout, const char *const *names);
/* Bits of a named input whose column is zero and so do not change the element ("free" bits: the
 * lanes, warps … that hold copies); in layouts that are not distributed also those whose column is
 * a sum of columns of lower bits, of this input or of one before it. A mask over that input's
 * bits; each element is held once by the indices whose free bits are 0. */
LILAC_API uint64_t lilac_layout_free_bits(const lilac_layout *layout, const char *in);
/* The same for all inputs at once, over the flattened index. */
LILAC_API uint64_t lilac_layout_free_mask(const lilac_layout *layout);
/* Bits of a named input that may be added instead of xored: with x split into those bits and the
 * rest, L(x) = L(rest) + L(those) as flattened numbers, for every x; so what a register adds to an
 * address is a constant. They are the bits whose columns share no output bit with any other column
 * (but among themselves), nor with `touched`, output bits that an offset from elsewhere may set.
 * A mask over that input's bits; zero columns are always in it. */
LILAC_API uint64_t lilac_layout_additive_bits(const lilac_layout *layout, const char *in,
                                              uint64_t touched);

/* ---- columns by hardware dimension ------------------------------------------------------ */

#define LILAC_LAYOUT_MAX_REGISTER_BITS 32

/* The columns of a distributed layout by hardware dimension, and its replicated bits. A thread
 * index is the index within the block: the lane's bits, and the warp's bits above them. Lanes,
 * warps and blocks that the layout lacks have zero columns: they hold copies.
 *
 * A bit is replicated if its column is a sum of the columns before it, in the order registers,
 * threads, blocks. */
typedef struct lilac_layout_columns {
    uint32_t rank, out_bits;
    uint32_t start[LILAC_LAYOUT_MAX_DIMS], bits[LILAC_LAYOUT_MAX_DIMS]; /* of each dimension */
    uint32_t register_bits, lane_bits, thread_bits, block_bits;
    uint64_t registers[LILAC_LAYOUT_MAX_BITS];
    uint64_t threads[LILAC_LAYOUT_MAX_BITS];
    uint64_t blocks[LILAC_LAYOUT_MAX_BITS];
    uint32_t distinct;     /* mask of the register bits that are not replicated */
    uint32_t free_threads; /* mask of the replicated bits of the thread index */
    uint32_t free_blocks;  /* mask of the replicated bits of the block's rank */
    /* Of a register bit: the mask of the distinct register bits with the same sum of columns. */
    uint32_t origin[LILAC_LAYOUT_MAX_REGISTER_BITS];
} lilac_layout_columns;

/* The columns of a layout on hardware with 2^lane_bits lanes in a warp, 2^warp_bits warps in a
 * block and 2^block_bits blocks in a cluster. Refused: an input other than register, lane, warp
 * and block; more lanes, warps or blocks than the hardware has; more than
 * LILAC_LAYOUT_MAX_REGISTER_BITS register bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_columns_init(lilac_layout_columns *result,
                                                        const lilac_layout *layout,
                                                        uint32_t lane_bits, uint32_t warp_bits,
                                                        uint32_t block_bits, lilac_reason *why);
/* The same for any layout. Other inputs, and bits beyond those numbers, are ignored. */
LILAC_API void lilac_layout_columns_fit(lilac_layout_columns *result, const lilac_layout *layout,
                                        uint32_t lane_bits, uint32_t warp_bits,
                                        uint32_t block_bits);
/* Computes `distinct`, `free_threads`, `free_blocks` and `origin` after a change of the columns. */
LILAC_API void lilac_layout_columns_find_replicated(lilac_layout_columns *columns);
/* The layout with these columns and the outputs dim0, dim1, …. It has only the register bits of the
 * mask `registers`. Refused as lilac_layout_add_in refuses. */
LILAC_API LILAC_MUST_USE bool lilac_layout_columns_layout(lilac_layout *result,
                                                          const lilac_layout_columns *columns,
                                                          uint32_t registers, lilac_reason *why);
/* The same shape and the same columns. */
LILAC_API bool lilac_layout_columns_equal(const lilac_layout_columns *a,
                                          const lilac_layout_columns *b);
/* The number of registers without copies. */
static inline uint32_t lilac_layout_columns_own(const lilac_layout_columns *columns) {
    return 1U << __builtin_popcount(columns->distinct);
}

/* ---- blocks of a cluster ------------------------------------------------------------------ */

/* The columns of the input `block`, the lowest bit first; returns their number. */
LILAC_API uint32_t lilac_layout_block_columns(uint64_t *columns, const lilac_layout *layout);
/* Do two layouts of one shape give each block the same elements? */
LILAC_API bool lilac_layout_same_blocks(const lilac_layout *a, const lilac_layout *b);
/* log2 of the number of different parts of a tensor that blocks hold: the rank of these columns. */
LILAC_API uint32_t lilac_layout_part_bits(const lilac_layout *layout);
/* Appends 2^bits blocks to a layout of the part of a tensor that one block holds. The columns are zero
 * or distinct unit vectors of the whole tensor, whose dimensions have 2^sizes[d] elements; the bits of
 * the part are the other bits of each dimension, in their order:
 *
 *     part  x1 x0        column of block bit 0: e1        tensor  x1 b x0
 *
 * A layout of the part that has an input `block` of no bits loses it. Refused: columns that are no
 * such vectors, a part whose dimensions do not have the other bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_add_blocks(lilac_layout *result,
                                                      const lilac_layout *part,
                                                      const uint32_t *sizes, uint32_t bits,
                                                      const uint64_t *columns, lilac_reason *why);
/* The layout with other columns of its block bits. Columns of registers, lanes and warps that are sums of
 * those of the blocks and of earlier ones give way: registers are dropped, lanes and warps take what no
 * input covers any more, and new registers take the rest. Surjective if `layout` is. Refused: more
 * than 64 bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_change_blocks(lilac_layout *result,
                                                         const lilac_layout *layout,
                                                         const uint64_t *columns,
                                                         lilac_reason *why);

/* ---- algebra ---------------------------------------------------------------------------- */

/* a × b (Definition 4.3): shared names are extended, b's bits above a's; new names appended. */
LILAC_API LILAC_MUST_USE bool lilac_layout_product(lilac_layout *result, const lilac_layout *a,
                                                   const lilac_layout *b, lilac_reason *why);
/* The inverse of the product (Definition 4.4): layout = tile × result, and layout = result × tile.
 * All dimensions of the layout stay, less the tile's bits, so some may become of size one. Refused:
 * a dimension that the layout lacks or has smaller; a bit of the tile that the layout sends
 * elsewhere; another bit that moves along what the tile covers. */
LILAC_API LILAC_MUST_USE bool lilac_layout_divide_left(lilac_layout *result,
                                                       const lilac_layout *layout,
                                                       const lilac_layout *tile, lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_divide_right(lilac_layout *result,
                                                        const lilac_layout *layout,
                                                        const lilac_layout *tile,
                                                        lilac_reason *why);
/* Divides out a tile at any position: each bit of the tile's inputs is matched with the first
 * unused bit of the layout's input of that name that has the same column. outs_at holds a mask
 * for each output of the tile: the bits of the layout's output of that name that the tile
 * occupies, lowest first (NULL: the lowest bits of each). ins_at, unless NULL, receives the
 * layout's input bit for each flattened input bit of the tile. The other bits keep their order.
 * Refused as above, and a mask of the wrong size. */
LILAC_API LILAC_MUST_USE bool lilac_layout_divide(lilac_layout *result, const lilac_layout *layout,
                                                  const lilac_layout *tile, const uint64_t *outs_at,
                                                  uint8_t *ins_at, lilac_reason *why);
/* Generalized vectorization (section 5.3): finds an order of the bits of one input, usually
 * "register", such that lilac_layout_permute_bits makes the layout divisible by the tile, on the
 * left or on the right. Bits outside the tile keep their order. Refused: there is no such order. */
LILAC_API LILAC_MUST_USE bool lilac_layout_division_order(uint8_t *order,
                                                          const lilac_layout *layout,
                                                          const lilac_layout *tile, const char *in,
                                                          bool right, lilac_reason *why);
/* Puts the bits of one input in an order: bit i of the result is bit order[i] (a permutation). The
 * layout itself when there is no such input. */
LILAC_API void lilac_layout_permute_bits(lilac_layout *result, const lilac_layout *layout,
                                         const char *in, const uint8_t *order);
/* outer ∘ inner (Definition 4.2). Refused unless inner's outputs are, as a set, outer's inputs,
 * and none is larger than outer's. Inputs are inner's and outputs outer's, in their order. */
LILAC_API LILAC_MUST_USE bool lilac_layout_compose(lilac_layout *result, const lilac_layout *outer,
                                                   const lilac_layout *inner, lilac_reason *why);
/* The inverse of a bijective layout. */
LILAC_API LILAC_MUST_USE bool lilac_layout_invert(lilac_layout *result, const lilac_layout *layout,
                                                  lilac_reason *why);
/* The right inverse of a surjective layout (Definition 4.5) that never sets free input bits and
 * uses the earliest of dependent columns (register before lane before …). */
LILAC_API LILAC_MUST_USE bool
lilac_layout_pseudoinvert(lilac_layout *result, const lilac_layout *layout, lilac_reason *why);
/* b⁻¹ ∘ a (section 5.4): a map X from a's inputs to b's with b ∘ X = a. It is the identity on every
 * input whose columns are the same in both layouts. Otherwise it gives the smallest index of b that
 * holds the element (the lowest register, then lane, …). Refused unless the outputs agree in names
 * and sizes, in any order, and b is surjective. */
LILAC_API LILAC_MUST_USE bool lilac_layout_invert_compose(lilac_layout *result,
                                                          const lilac_layout *a,
                                                          const lilac_layout *b, lilac_reason *why);
/* Only the named inputs and outputs (NULL-terminated lists; NULL: all), in the layout's order.
 * Proposition 4.8. Refused: a name that the layout lacks. */
LILAC_API LILAC_MUST_USE bool lilac_layout_sublayout(lilac_layout *result,
                                                     const lilac_layout *layout,
                                                     const char *const *ins,
                                                     const char *const *outs, lilac_reason *why);
/* The layout of a slice: removes output number `dim` and renames dim(k+1) to dim(k) above it. All
 * zero register columns are removed; lane, warp and block keep theirs. */
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
/* log2 of the number of consecutive elements along the flattened outputs that a thread's
 * registers 0, 1, 2 … hold (section 5.1). It is the largest u such that register bit i maps to
 * bit i for i < u, in the element order in which `order` lists the outputs, fastest first (NULL:
 * last dimension fastest), and no other column has these bits; so every such vector is in order
 * and aligned. */
LILAC_API uint32_t lilac_layout_consecutive(const lilac_layout *layout, const uint32_t *order);
/* The same for any input (offset, lane …). */
LILAC_API uint32_t lilac_layout_consecutive_in(const lilac_layout *layout, const char *in,
                                               const uint32_t *order);

/* ---- names and sizes of dimensions ------------------------------------------------------- */

/* Inputs in another order, as lilac_layout_permute_outs. */
LILAC_API void lilac_layout_permute_ins(lilac_layout *result, const lilac_layout *layout,
                                        const uint32_t *order);
/* The same by names: all of them, NULL-terminated. Refused: a name that the layout lacks, one
 * twice, one missing. */
LILAC_API LILAC_MUST_USE bool lilac_layout_order_ins(lilac_layout *result,
                                                     const lilac_layout *layout,
                                                     const char *const *names, lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_order_outs(lilac_layout *result,
                                                      const lilac_layout *layout,
                                                      const char *const *names, lilac_reason *why);
/* Refused: no such dimension, a name in use or of a wrong length. */
LILAC_API LILAC_MUST_USE bool lilac_layout_rename_in(lilac_layout *result,
                                                     const lilac_layout *layout, const char *from,
                                                     const char *to, lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_rename_out(lilac_layout *result,
                                                      const lilac_layout *layout, const char *from,
                                                      const char *to, lilac_reason *why);
/* Divides the flattened inputs or outputs (first dimension lowest) into other dimensions.
 * Refused: a different number of bits; names as when adding. lilac_layout_reshape is the
 * row-major form. */
LILAC_API LILAC_MUST_USE bool lilac_layout_reshape_ins(lilac_layout *result,
                                                       const lilac_layout *layout, uint32_t count,
                                                       const lilac_layout_dim *ins,
                                                       lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_reshape_outs(lilac_layout *result,
                                                        const lilac_layout *layout, uint32_t count,
                                                        const lilac_layout_dim *outs,
                                                        lilac_reason *why);
/* Flattens all inputs, or all outputs, into one dimension of that name, first dimension lowest. The
 * name has 1 to 14 characters. */
LILAC_API void lilac_layout_flatten_ins(lilac_layout *result, const lilac_layout *layout,
                                        const char *name);
LILAC_API void lilac_layout_flatten_outs(lilac_layout *result, const lilac_layout *layout,
                                         const char *name);
/* (x, y) ↦ a(x) ⊕ b(y), and x ↦ (a(x), b(x)). Refused: unless the outputs (inputs) are the same in
 * the same order and the inputs (outputs) have no name in common; too many bits or dimensions. */
LILAC_API LILAC_MUST_USE bool lilac_layout_concat_ins(lilac_layout *result, const lilac_layout *a,
                                                      const lilac_layout *b, lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_concat_outs(lilac_layout *result, const lilac_layout *a,
                                                       const lilac_layout *b, lilac_reason *why);
/* An input of another size: its low bits, or new bits above that move nothing. An output of another
 * size: coordinates modulo it, or room above. Refused: no such dimension, too many bits. */
LILAC_API LILAC_MUST_USE bool lilac_layout_resize_in(lilac_layout *result,
                                                     const lilac_layout *layout, const char *in,
                                                     uint32_t bits, lilac_reason *why);
LILAC_API LILAC_MUST_USE bool lilac_layout_resize_out(lilac_layout *result,
                                                      const lilac_layout *layout, const char *out,
                                                      uint32_t bits, lilac_reason *why);
/* Removes the named dimensions (NULL-terminated) from both sides. Refused unless the layout has all
 * of them and is trivial over them (lilac_layout_is_trivial_over). */
LILAC_API LILAC_MUST_USE bool lilac_layout_quotient(lilac_layout *result,
                                                    const lilac_layout *layout,
                                                    const char *const *names, lilac_reason *why);
/* Without the dimensions of size one, on both sides. */
LILAC_API void lilac_layout_drop_empty(lilac_layout *result, const lilac_layout *layout);
/* The layout of a tensor of 2^bits[i] elements along output number i. Where the tensor is
 * smaller than the layout, coordinates are taken modulo its size and elements are replicated.
 * Where it is larger, the layout is repeated: `in` (register, offset) gets new bits above its
 * own that select the repetition, outputs in `order`, fastest first (NULL: the last one
 * fastest). Refused: no such input, too many bits, an order that is not a permutation. */
LILAC_API LILAC_MUST_USE bool lilac_layout_fit(lilac_layout *result, const lilac_layout *layout,
                                               const uint32_t *bits, const uint32_t *order,
                                               const char *in, lilac_reason *why);

/* ---- text ------------------------------------------------------------------------------- */

/* {"register": [[0,1],[0,2]], "lane": …}: one value a line in JSON, coordinates in output order. */
LILAC_API void lilac_layout_json(lilac_text *out, const lilac_layout *layout);
/* #ttg.linear<{register = [[0, 1]], lane = […], warp = […], block = []}> for distributed layouts,
 * #ttg.shared_linear<{offset = […], block = []}> for shared memory's,
 * #ttng.tensor_memory_linear<{row = […], col = […], block = []}> for tensor memory's. */
LILAC_API void lilac_layout_print(lilac_text *out, const lilac_layout *layout);

LILAC_END

#endif
