/* The factors of an exchange within warps. shuffle.c defines the letters; it finds the factors, and
 * packing.c finds the words that narrow elements share. */
#ifndef LILAC_PLAN_FACTORS_H
#define LILAC_PLAN_FACTORS_H

#include "plan.h"
#include "register_map.h"

enum {
    LANE_SHIFT = 16, /* of the lane bits in a position: register | lane << 16 */
    MAX_REGISTERS = LILAC_PLAN_MAX_REGISTER_BITS,
    MAX_LANES = LILAC_PLAN_MAX_LANE_BITS,
    MAX_THREADS = LILAC_PLAN_MAX_THREAD_BITS
};

static inline uint32_t lilac_plan_reg_of(uint32_t at) {
    return at & ((UINT32_C(1) << LANE_SHIFT) - 1);
}

static inline uint32_t lilac_plan_lane_of(uint32_t at) {
    return at >> LANE_SHIFT;
}

/* The map D. */
typedef struct lilac_plan_origins {
    uint32_t from_bits, to_bits, lane_bits, thread_bits;
    uint32_t reg[MAX_REGISTERS]; /* source positions of the target's registers */
    uint32_t thread[MAX_THREADS];
    uint32_t copies[MAX_LANES]; /* basis of the kernel of A */
    uint32_t copy_count;
} lilac_plan_origins;

/* In terms of the target's registers and of `extra_count` additional registers above them. */
typedef struct lilac_plan_factors {
    uint32_t extra_count, extra[MAX_REGISTERS]; /* the source registers of the additional ones */
    uint32_t receive[MAX_THREADS];              /* H */
    uint32_t lane[MAX_THREADS];                 /* Λ */
    uint32_t distance[MAX_REGISTERS];           /* Dlr */
    uint32_t send[MAX_THREADS];                 /* G */
    uint32_t kept[MAX_REGISTERS];               /* K */
} lilac_plan_factors;

/* Computes Λ, G and K from H. A thread sends all of the `postponed` places in words (a mask of
 * source register bits), and the receiver selects among them: by the register that comes from that
 * place in the same lane, or by an additional register. */
void lilac_plan_find_senders(lilac_plan_factors *f, const lilac_plan_origins *d,
                             uint32_t postponed);
/* Write the exchange with the registers between the maps numbered as in the target; and, for
 * elements narrower than a word, with the cheapest packing of the words (false: too many
 * registers). The sizes in the result are set already. */
void lilac_plan_put_unpacked(lilac_plan_shuffle *s, const lilac_plan_factors *f,
                             const lilac_plan_origins *d);
bool lilac_plan_put_packed(lilac_plan_shuffle *result, const lilac_plan_factors *received,
                           const lilac_plan_origins *d, uint32_t element_bits,
                           const lilac_arch *arch);

#endif
