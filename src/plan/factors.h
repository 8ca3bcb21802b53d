/* What the two files that find exchanges within warps share: where everything comes from, and the
 * factors of that map. shuffle.c says what the letters are. */
#ifndef LILAC_PLAN_FACTORS_H
#define LILAC_PLAN_FACTORS_H

#include "plan.h"
#include "register_map.h"

enum {
    LANE_SHIFT = 16, /* of lane bits in a place: register | lane << 16 */
    MOST_REGISTERS = LILAC_PLAN_MAX_REGISTER_BITS,
    MOST_LANES = LILAC_PLAN_MAX_LANE_BITS,
    MOST_THREADS = LILAC_PLAN_MAX_THREAD_BITS
};

static inline uint32_t lilac_plan_reg_of(uint32_t at) {
    return at & ((UINT32_C(1) << LANE_SHIFT) - 1);
}

static inline uint32_t lilac_plan_lane_of(uint32_t at) {
    return at >> LANE_SHIFT;
}

/* D. */
typedef struct lilac_plan_origins {
    uint32_t from_bits, to_bits, lane_bits, thread_bits;
    uint32_t reg[MOST_REGISTERS]; /* places that the target's registers come from */
    uint32_t thread[MOST_THREADS];
    uint32_t copies[MOST_LANES]; /* basis of the kernel of A */
    uint32_t copy_count;
} lilac_plan_origins;

/* In target registers, and `extra_count` more above them. */
typedef struct lilac_plan_factors {
    uint32_t extra_count, extra[MOST_REGISTERS]; /* the source registers that those come from */
    uint32_t receive[MOST_THREADS];              /* H */
    uint32_t lane[MOST_THREADS];                 /* Λ */
    uint32_t distance[MOST_REGISTERS];           /* Dlr */
    uint32_t send[MOST_THREADS];                 /* G */
    uint32_t kept[MOST_REGISTERS];               /* K */
} lilac_plan_factors;

/* Λ, G and K from H. Of the places in words (`postponed`, a mask of source register bits) a thread
 * sends all, and they are chosen after the shuffle: by the register that comes from there in the
 * same lane, or else by one more in between. */
void lilac_plan_find_senders(lilac_plan_factors *f, const lilac_plan_origins *d,
                             uint32_t postponed);
/* The exchange with registers between the maps as the target numbers them; of elements narrower
 * than a word, the one whose words take least (false: too many registers). Sizes are filled in
 * already. */
void lilac_plan_put_as_they_are(lilac_plan_shuffle *s, const lilac_plan_factors *f,
                                const lilac_plan_origins *d);
bool lilac_plan_put_cheapest(lilac_plan_shuffle *result, const lilac_plan_factors *received,
                             const lilac_plan_origins *d, uint32_t element_bits,
                             const lilac_arch *arch);

#endif
