/* Shuffles before or after a trip.
 *
 * A trip's vectors are directions of the tensor that are registers on both sides. Where the two
 * sides share few, as in transposes of 8- and 16-bit elements, each access takes a part of a word
 * or a few bytes of a lane's sixteen. Exchanging a register bit with a lane bit of one side makes a
 * lane direction a register's: with
 *
 *     A' = A with the columns of register i and lane j exchanged,
 *     lane j of A in span(B's registers),  register i of A not in it,
 *
 * A' and B have one direction more in common. The same with A and B exchanged is a shuffle after
 * the trip. One and two exchanges are tried on either side: which lanes matters, because it decides
 * what the matrix instructions find in theirs; of the registers those with the highest numbers go,
 * which are whole words and so need no byte permutes.
 *
 * Every candidate is priced by the trip's estimate and the closed formula of the exchange: m swaps
 * of R words take (1 − 2⁻ᵐ) R shuffles and 2mR selects, one swap 1.5 R.
 */
#include "plan.h"

typedef struct search {
    lilac_movement_mixture *best;
    uint64_t best_cycles;
    const lilac_movement_pair *pair;
    const lilac_movement_options *options;
    lilac_layout changed; /* the side that is exchanged, with the exchange at hand */
    bool after;
    uint32_t lane_count, register_count;
    uint8_t lane[LILAC_MOVEMENT_MAX_LANE_BITS], reg[MOST_SWAPS]; /* that may be exchanged */
} search;

static void price_swaps(lilac_movement_price *price, const search *s, uint32_t swaps) {
    const uint64_t words =
        (uint64_t)lilac_movement_words(s->changed.in[REGISTER].bits, s->pair->element_bits)
        << s->pair->bits[WARP];
    price->shuffles += words - (words >> swaps);
    price->selects += swaps == 1 ? words + words / 2 : 2 * swaps * words;
}

static void try_mixture(search *s, const lilac_movement_mixture *mixture) {
    lilac_movement_price price = {0};
    lilac_movement_barrier barrier;
    lilac_movement_swap_columns(&s->changed, mixture);
    const lilac_layout *from = s->after ? &s->pair->source : &s->changed;
    const lilac_layout *to = s->after ? &s->changed : &s->pair->target;
    if (lilac_movement_trip_estimate(&price, &barrier, from, to, s->pair->element_bits, s->options,
                                     s->pair->arch, NULL)) {
        price_swaps(&price, s, mixture->swaps);
        price.cycles = lilac_movement_price_cycles(&price, barrier, s->pair->arch);
        if (price.cycles < s->best_cycles) {
            s->best_cycles = price.cycles;
            *s->best = *mixture;
        }
    }
    lilac_movement_swap_columns(&s->changed, mixture); /* and back */
}

/* Lanes of `changed` that the other side has in registers, and registers that it has not. */
static void find_columns(search *s, const lilac_layout *other) {
    const uint32_t registers = s->changed.in[REGISTER].bits, lanes = s->changed.in[LANE].bits;
    lilac_movement_echelon wanted, own;
    wanted.pivots = 0;
    own.pivots = 0;
    for (uint32_t i = 0; i < other->in[REGISTER].bits; i++) {
        (void)lilac_movement_insert(&wanted, other->columns[i], 0);
    }
    for (uint32_t i = 0; i < registers; i++) {
        (void)lilac_movement_insert(&own, s->changed.columns[i], 0);
    }
    s->lane_count = 0;
    s->register_count = 0;
    for (uint32_t i = 0; i < lanes; i++) {
        const uint64_t column = s->changed.columns[registers + i];
        /* A lane whose elements the registers hold as well would only add a copy. */
        if (lilac_movement_spans(&wanted, column) && !lilac_movement_spans(&own, column)) {
            s->lane[s->lane_count++] = (uint8_t)i;
        }
    }
    for (uint32_t i = registers; i-- > 0 && s->register_count < MOST_SWAPS;) {
        if (!lilac_movement_spans(&wanted, s->changed.columns[i])) {
            s->reg[s->register_count++] = (uint8_t)i;
        }
    }
}

static void search_side(search *s, bool after) {
    s->after = after;
    s->changed = after ? s->pair->target : s->pair->source;
    find_columns(s, after ? &s->pair->source : &s->pair->target);
    if (s->register_count == 0) {
        return;
    }
    lilac_movement_mixture mixture = {.after = after, .reg = {s->reg[0], s->reg[1]}};
    for (uint32_t i = 0; i < s->lane_count; i++) {
        mixture.swaps = 1;
        mixture.lane[0] = s->lane[i];
        try_mixture(s, &mixture);
        mixture.swaps = 2;
        for (uint32_t j = i + 1; s->register_count == 2 && j < s->lane_count; j++) {
            mixture.lane[1] = s->lane[j];
            try_mixture(s, &mixture);
        }
    }
}

/* What no mixture takes less than: a trip at its floor and half of the words shuffled. */
static uint64_t least_cycles(const lilac_movement_pair *pair, const lilac_movement_plan *best) {
    const uint32_t source =
        lilac_movement_words(pair->source.in[REGISTER].bits, pair->element_bits);
    const uint32_t target =
        lilac_movement_words(pair->target.in[REGISTER].bits, pair->element_bits);
    const uint64_t words = (uint64_t)(source < target ? source : target) << pair->bits[WARP];
    lilac_movement_price price = {.shuffles = (words + 1) / 2,
                                  .stores = 1,
                                  .loads = 1,
                                  .barriers = UINT64_C(1) << pair->bits[WARP],
                                  .store_wavefronts = best->bound.floor_wavefronts};
    return lilac_movement_price_cycles(&price, LILAC_MOVEMENT_BARRIER_WARP, pair->arch);
}

void lilac_movement_find_mixture(lilac_movement_mixture *result, const lilac_movement_pair *pair,
                                 const lilac_movement_options *options,
                                 const lilac_movement_plan *best) {
    search s = {
        .best = result, .best_cycles = best->price.cycles, .pair = pair, .options = options};
    result->swaps = 0;
    if (least_cycles(pair, best) < best->price.cycles) {
        search_side(&s, false);
        search_side(&s, true);
    }
}
