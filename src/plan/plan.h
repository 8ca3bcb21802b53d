/* What the files that make and tell plans share. */
#ifndef LILAC_PLAN_PLAN_H
#define LILAC_PLAN_PLAN_H

#include <lilac/f2.h>
#include <lilac/plan.h>

/* The inputs of distributed layouts in their order. */
enum { REGISTER, LANE, WARP, BLOCK, LEVELS };
extern const lilac_layout_dim lilac_plan_levels[LEVELS];

/* A source and a target of one tensor, made alike: inputs register, lane, warp, block, outputs in
 * the source's order. `source` and `target` have registers that hold no copies, which `pick` takes
 * out of the whole source's and `spread` makes the whole target's of. */
typedef struct lilac_plan_pair {
    lilac_layout whole_source, whole_target, source, target;
    lilac_plan_permutation pick, spread;
    uint32_t bits[LEVELS]; /* of the source without copies */
    uint32_t element_bits;
    const lilac_arch *arch;
} lilac_plan_pair;

/* Refused, with the reason, as lilac_plan_conversion_init says. */
bool lilac_plan_pair_init(lilac_plan_pair *pair, const lilac_layout *source,
                          const lilac_layout *target, uint32_t element_bits, const lilac_arch *arch,
                          lilac_reason *why);

/* A way with shuffles before or after a trip: the registers and lanes whose columns are exchanged,
 * of the source (before) or of the target (after). */
enum { MOST_SWAPS = 2 };
typedef struct lilac_plan_hybrid {
    uint32_t swaps; /* 0: none is cheaper than the trip alone */
    bool after;
    uint8_t reg[MOST_SWAPS], lane[MOST_SWAPS];
} lilac_plan_hybrid;

/* Exchanges those columns. */
void lilac_plan_swap_columns(lilac_layout *layout, const lilac_plan_hybrid *mixture);
/* What the trip alone takes is estimated; and where the two sides have not even a word in common,
 * the mixture whose estimate is least, if that is less than the trip's and than `most_cycles`.
 * Returns what the trip takes at least, or 0 where that is not known because no mixture is better.
 */
uint64_t lilac_plan_find_hybrid(lilac_plan_hybrid *result, const lilac_plan_pair *pair,
                                const lilac_plan_options *options, uint64_t most_cycles);
/* Wavefronts that store every byte of a block once and load every byte of each of its warps once.
 */
uint64_t lilac_plan_floor(const lilac_plan_pair *pair);

/* An exchange within warps in which m register bits change places with lane bits, m > 1, in two:
 * from the source to the layout between with m - 1, and from there to the target with just one.
 * Returns m; 0 when there is no such layout. */
uint32_t lilac_plan_split_exchange(lilac_layout *between, const lilac_layout *source,
                                   const lilac_layout *target);

#endif
