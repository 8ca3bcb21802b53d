/* Loads and stores of one thread: vectors of registers, their addresses (load_store.c), and values
 * of atomics that only one thread computed (atomics.c). */
#ifndef LILAC_LOWER_MEMORY_ACCESS_H
#define LILAC_LOWER_MEMORY_ACCESS_H

#include "coordinates.h"

/* The bytes that an element occupies in memory. */
static inline uint32_t lilac_lower_memory_bytes(lilac_simt_type type) {
    uint32_t bits = lilac_simt_type_bits(type);
    return bits < 8 ? 1 : bits / 8;
}

/* One instruction that loads or stores `count` (a power of two) elements at consecutive addresses.
 * The address is aligned to the size of the access, which is at most 16 bytes. */
typedef struct lilac_lower_access {
    lilac_simt_opcode code;
    lilac_simt_type type; /* of an element */
    uint32_t count;
    lilac_simt_value address;
    int64_t offset;             /* immediate, in bytes */
    lilac_simt_value predicate; /* 0: true */
    const lilac_simt_instruction *modifiers;
} lilac_lower_access;

/* Elements narrower than a word are packed into words. `others`: the results when the predicate is
 * false; NULL: unspecified. */
void lilac_lower_load_vector(lilac_lowering *l, const lilac_lower_access *access,
                             const lilac_simt_value *others, lilac_simt_value *results);
void lilac_lower_store_vector(lilac_lowering *l, const lilac_lower_access *access,
                              const lilac_simt_value *values);

/* The address in register r. Its constant part is returned as the access's immediate if it fits. */
lilac_simt_value lilac_lower_address(lilac_lowering *l, const lilac_lower_value *pointer,
                                     uint32_t r, int64_t *immediate);

/* Replicates values that are valid in the elected holder of each element only: registers[r] for the
 * canonical r of the view (NULL: the scalar of thread 0 of the cluster). Uses shuffles within a warp,
 * otherwise shared memory, and that of the elected holder's block where several blocks of a cluster
 * hold elements. */
bool lilac_lower_broadcast_copies(lilac_lowering *l, const lilac_lower_view *view,
                                  lilac_simt_value *registers);

#endif
