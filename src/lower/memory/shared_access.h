/* Accesses to shared memory that a plan describes (shared_access.c), and scratch memory
 * (scratch.c). */
#ifndef LILAC_LOWER_MEMORY_SHARED_ACCESS_H
#define LILAC_LOWER_MEMORY_SHARED_ACCESS_H

#include "pack_words.h"

/* The place of an access in shared memory, and the threads that execute it. */
typedef struct lilac_lower_place {
    uint64_t offset; /* of the access's byte 0 in the block's shared memory */
    uint64_t bytes;  /* size of the range that the accesses stay within */
    /* Warps that differ in these index bits use disjoint bytes: sub-range i is selected by the top
     * bits of the offset, in the order of these bits. Operations with the same partition may reuse
     * the bytes without a block barrier (simt.h). */
    uint32_t disjoint_warps;
    uint32_t replicas; /* threads whose index has one of these bits set hold replicas: no store */
    uint64_t shift;    /* in elements; xored to each offset before padding */
    lilac_simt_value dynamic_shift; /* in bytes; the same, computed; 0: none */
    uint64_t dynamic_shift_bits;    /* in elements: bits that it may have */
    lilac_simt_value dynamic;       /* in bytes, added to each offset; 0: none */
    int64_t constant;               /* the same, known to the compiler */
    uint32_t registers;             /* or-ed to the access's register numbers: those of one round */
    const uint64_t *blocks;         /* xored to the offset, one for each rank bit; NULL: none */
    const lilac_plan_staging *remote; /* loads read other blocks' memory; NULL: they do not */
} lilac_lower_place;

/* Stores the words of each register that the access names. */
void lilac_lower_store_access(lilac_simt_builder *b, lilac_arena *arena,
                              const lilac_plan_access *access, const lilac_lower_place *place,
                              const lilac_lower_words *words);
/* Sub-word parts that the loads of several rounds fill. lilac_lower_join_parts packs them into
 * words. */
typedef struct lilac_lower_parts {
    uint32_t bits; /* log2 of the registers of a part; a part of a word or more is one word */
    lilac_simt_value *list;
} lilac_lower_parts;
void lilac_lower_load_access(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_plan_access *access, const lilac_lower_place *place,
                             const lilac_lower_words *words, lilac_lower_parts *parts);
void lilac_lower_join_parts(lilac_simt_builder *b, lilac_arena *arena,
                            const lilac_lower_parts *parts, lilac_lower_words *words);

/* The source of an asynchronous copy, for the vector that begins with a register. */
typedef struct lilac_lower_copy_source {
    lilac_simt_value address; /* in global memory */
    int64_t offset;           /* added to the address, in bytes */
    lilac_simt_value mask;    /* false: zeros or `others` instead; 0: true */
} lilac_lower_copy_source;
/* Starts the asynchronous copy of each vector of an access: sources[r] for its first register r.
 * `others`: the words to store where a mask is false; NULL: zeros. */
void lilac_lower_copy_access(lilac_simt_builder *b, lilac_arena *arena,
                             const lilac_plan_access *access, const lilac_lower_place *place,
                             const lilac_lower_copy_source *sources,
                             const lilac_lower_words *others);

/* The barrier between an exchange's stores and its loads (conversion.c). */
void lilac_lower_staging_barrier(lilac_simt_builder *b, const lilac_plan_staging *staging,
                                 uint32_t lane_bits, uint32_t warp_bits);

/* ---- scratch memory (scratch.c) ------------------------------------------------------------ */

/* Reserves shared memory for one operation and returns its offset. The caller builds the barriers
 * against earlier users of the bytes. */
uint32_t lilac_lower_scratch(lilac_lowering *l, uint64_t bytes);
/* The same, at the offset of the previous call when the bytes fit there. */
uint32_t lilac_lower_scratch_reused(lilac_lowering *l, uint64_t bytes);

#endif
