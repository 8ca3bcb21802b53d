/* Declarations that the files which construct and explain plans share. */
#ifndef LILAC_PLAN_PLAN_H
#define LILAC_PLAN_PLAN_H

#include <lilac/f2.h>
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

#endif
