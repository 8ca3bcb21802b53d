/* encoding: the named layouts of Triton ⇄ linear layouts.
 *
 * The door of the house: "#ttg.blocked<{…}>" comes in here and only linear layouts go further. A
 * named layout depends on the shape of its tensor, so reading has two steps: the attribute's text
 * becomes an lilac_encoding (a tree of parameters), and with a shape that becomes a layout.
 *
 * Diagnostics of reading: layout-unknown, layout-not-supported (a kind of Triton's that is not read
 * here), layout-alias-undefined, layout-field-unknown, -twice, -missing, layout-older-form
 * (CTAsPerCGA, CTASplitNum, CTAOrder), layout-rank, layout-not-power-of-two, layout-order,
 * layout-basis, layout-not-surjective, layout-slice-dim, layout-too-large, layout-too-deep,
 * element-type-unknown, address-space; the scanner's own are syntax and integer-too-large. Of a
 * shape: shape-not-power-of-two, shape-too-large, layout-rank, layout-does-not-cover,
 * layout-too-large.
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
    LILAC_ENCODING_BLOCKED,
    LILAC_ENCODING_SLICE,
    LILAC_ENCODING_LINEAR
} lilac_encoding_kind;

typedef struct lilac_encoding {
    lilac_encoding_kind kind;
    lilac_position position; /* of its text */
    uint32_t rank;
    union {
        struct {
            uint32_t size_per_thread[LILAC_MAX_RANK];
            uint32_t threads_per_warp[LILAC_MAX_RANK];
            uint32_t warps_per_cta[LILAC_MAX_RANK];
            uint32_t order[LILAC_MAX_RANK]; /* fastest first */
            /* CGALayout: one basis a block bit */
            uint32_t block_bits;
            uint32_t block[8][LILAC_MAX_RANK];
        } blocked;
        struct {
            uint32_t dim;
            const struct lilac_encoding *parent;
        } slice;
        lilac_layout linear;
    } as;
} lilac_encoding;

/* The layout of a tensor of this shape (powers of two): inputs register, lane, warp, block, outputs
 * dim0 …, surjective. A blocked layout is repeated by registers to cover a larger tensor
 * (Proposition 4.6). One that is larger than the tensor holds copies: zero columns; a linear
 * layout's registers that so become copies are dropped, as slices drop theirs. Refused, with a
 * diagnostic at the encoding's position: wrong rank, sizes that are not powers of two, a linear
 * layout that does not cover the tensor, more than 64 bits. */
LILAC_API LILAC_MUST_USE bool lilac_encoding_layout(lilac_context *context, lilac_layout *result,
                                                    const lilac_encoding *encoding, uint32_t rank,
                                                    const int64_t *shape);

/* Attribute aliases (#blocked = #ttg.blocked<…>) in scope for a reader. Zero-initialise. A name that
 * is defined again means its latest encoding. */
typedef struct lilac_encoding_aliases {
    lilac_context *context;
    struct lilac_encoding_alias *first;
} lilac_encoding_aliases;

LILAC_API void lilac_encoding_define(lilac_encoding_aliases *aliases, lilac_context *context,
                                     const char *name, size_t length, const lilac_encoding *encoding);
LILAC_API const lilac_encoding *lilac_encoding_lookup(const lilac_encoding_aliases *aliases,
                                                      const char *name, size_t length);

/* Reads "#ttg.blocked<{…}>" or an alias "#blocked" at the scanner. NULL with a diagnostic when it
 * is malformed or of a kind not known here. The result lives in the context's arena. `aliases` may
 * be NULL. */
LILAC_API const lilac_encoding *lilac_encoding_read(lilac_scanner *scanner,
                                                    const lilac_encoding_aliases *aliases);
/* In Triton's spelling; what is printed reads back. */
LILAC_API void lilac_encoding_print(lilac_text *out, const lilac_encoding *encoding);

/* A tensor type with a layout: "tensor<16x16xf32, #ttg.blocked<{…}>>". */
typedef struct lilac_encoding_tensor {
    uint32_t rank;
    int64_t shape[LILAC_MAX_RANK];
    lilac_scalar scalar;
    bool pointers; /* elements are !tt.ptr<scalar> */
    const lilac_encoding *encoding;
    lilac_layout layout;
} lilac_encoding_tensor;

LILAC_API LILAC_MUST_USE bool lilac_encoding_read_tensor(lilac_scanner *scanner,
                                                         const lilac_encoding_aliases *aliases,
                                                         lilac_encoding_tensor *result);

/* Building from C: Triton's blocked layout. Arrays have `rank` entries, powers of two. */
LILAC_API void lilac_encoding_blocked(lilac_encoding *result, uint32_t rank,
                                      const uint32_t *size_per_thread,
                                      const uint32_t *threads_per_warp,
                                      const uint32_t *warps_per_cta, const uint32_t *order);

LILAC_END

#endif
