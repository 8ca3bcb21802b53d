/* Declarations that the files which construct and explain plans share. */
#ifndef LILAC_PLAN_PLAN_H
#define LILAC_PLAN_PLAN_H

#include <lilac/plan.h>

/* The hardware dimensions: the inputs of distributed layouts, in their order. */
enum { REGISTER, LANE, WARP, BLOCK, LEVELS };
extern const lilac_layout_dim lilac_plan_levels[LEVELS];

/* A source and a target of one tensor in one form: inputs register, lane, warp, block, outputs in
 * the order of the source. `source` and `target` have no copies among their registers. `pick`
 * selects the registers of `source` from those of `full_source`, and `spread` computes the
 * registers of `full_target` from those of `target`. */
typedef struct lilac_plan_pair {
    lilac_layout full_source, full_target, source, target;
    lilac_plan_permutation pick, spread;
    uint32_t bits[LEVELS]; /* of the source without copies */
    uint32_t element_bits;
    const lilac_arch *arch;
} lilac_plan_pair;

/* Refused, with the reason, as lilac_plan_conversion_init refuses. */
bool lilac_plan_pair_init(lilac_plan_pair *pair, const lilac_layout *source,
                          const lilac_layout *target, uint32_t element_bits, const lilac_arch *arch,
                          lilac_reason *why);

/* A hybrid plan: shuffles before or after a shared-memory exchange. They swap the columns of these
 * registers and lanes of the source (before) or of the target (after). */
enum { MAX_SWAPS = 2 };
typedef struct lilac_plan_hybrid {
    uint32_t swaps; /* 0: no hybrid plan is cheaper than the exchange alone */
    bool after;
    uint8_t reg[MAX_SWAPS], lane[MAX_SWAPS];
} lilac_plan_hybrid;

/* Swaps those columns. */
void lilac_plan_swap_columns(lilac_layout *layout, const lilac_plan_hybrid *hybrid);
/* Finds the cheapest hybrid plan. It exists only if the layouts have less than one word of
 * registers in common, and must be cheaper than the exchange alone and than `most_cycles`. Returns
 * a lower bound of the cycles of the exchange alone, or 0 if it was not estimated. */
uint64_t lilac_plan_find_hybrid(lilac_plan_hybrid *result, const lilac_plan_pair *pair,
                                const lilac_plan_options *options, uint64_t most_cycles);
/* Wavefronts that store every byte of a block once and load every byte of each of its warps
 * once. */
uint64_t lilac_plan_floor(const lilac_plan_pair *pair);

/* Splits an exchange within warps that swaps m > 1 register bits with lane bits into two: from the
 * source to `between` with m - 1 bits, and from there to the target with one bit. Returns m, or 0
 * if there is no such layout. */
uint32_t lilac_plan_split_exchange(lilac_layout *between, const lilac_layout *source,
                                   const lilac_layout *target);

/* Vectors in echelon form, each with the mask of what it was made of. Those added first are used
 * first. */
typedef struct lilac_plan_echelon {
    uint64_t pivots; /* highest bits of the vectors */
    uint64_t vector[64], mask[64];
} lilac_plan_echelon;

/* What is left of a vector, and the mask of what was taken from it. */
static inline uint64_t lilac_plan_reduce(const lilac_plan_echelon *echelon, uint64_t vector,
                                         uint64_t *mask) {
    uint64_t used = 0, rest = 0;
    while (vector != 0) {
        const uint32_t top = 63U - (uint32_t)__builtin_clzll(vector);
        if ((echelon->pivots >> top & 1) != 0) {
            vector ^= echelon->vector[top];
            used ^= echelon->mask[top];
        } else {
            rest |= UINT64_C(1) << top;
            vector ^= UINT64_C(1) << top;
        }
    }
    *mask = used;
    return rest;
}

/* Adds a vector; false when it depends on those there. */
static inline bool lilac_plan_insert(lilac_plan_echelon *echelon, uint64_t vector, uint64_t mask) {
    uint64_t used;
    const uint64_t rest = lilac_plan_reduce(echelon, vector, &used);
    if (rest == 0) {
        return false;
    }
    const uint32_t top = 63U - (uint32_t)__builtin_clzll(rest);
    echelon->pivots |= UINT64_C(1) << top;
    echelon->vector[top] = rest;
    echelon->mask[top] = mask ^ used;
    return true;
}

static inline bool lilac_plan_spans(const lilac_plan_echelon *echelon, uint64_t vector) {
    uint64_t used;
    return lilac_plan_reduce(echelon, vector, &used) == 0;
}

#endif
