/* What verify.c (structure, visibility) and verify_ops.c (each operation's own rules) share. */
#ifndef LILAC_TILE_VERIFY_H
#define LILAC_TILE_VERIFY_H

#include "internal.h"

typedef struct tile_verifier {
    lilac_tile_module *module;
    bool layouts;
    bool good;
    tile_table ordinals;        /* operation → its number in order of the text, from 1 */
    tile_table blocks;          /* block → struct block_info, of regions with several blocks */
    tile_table types;           /* types already looked at */
    tile_table functions;       /* name → function */
    tile_table depths;          /* region → its depth, from 1, of the regions being checked */
    const lilac_tile_op **path; /* by depth: the operation being checked */
    uint32_t depth, path_capacity;
    uint32_t isolated;        /* the depth of the partition being checked; 0: none */
    uint32_t partition_warps; /* its warps; 0: those of the module */
    uint32_t next_ordinal;
    lilac_arena *scratch;
} tile_verifier;

/* The rules of one operation beyond its signature. Reports and returns false. */
bool tile_verify_op_rules(tile_verifier *verifier, const lilac_tile_op *op);

/* The rules of single operations. */
typedef bool tile_rule(const tile_verifier *, const lilac_tile_op *);

tile_rule tile_verify_dot_scaled, tile_verify_warp_specialize;
tile_rule tile_verify_order; /* attribute `order` and the shapes of a transposition */
tile_rule tile_verify_local_alloc, tile_verify_local_access;
tile_rule tile_verify_memdesc_index, tile_verify_memdesc_subslice, tile_verify_memdesc_trans,
    tile_verify_memdesc_reshape, tile_verify_memdesc_reinterpret;
tile_rule tile_verify_async_copy, tile_verify_wait, tile_verify_scratch, tile_verify_fp4,
    tile_verify_fence, tile_verify_barrier, tile_verify_tma, tile_verify_tensormap;

#endif
