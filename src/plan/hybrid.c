/* Hybrid plans: shuffles before or after a shared-memory exchange.
 *
 * The vectors of an exchange are directions of the tensor that are registers on both sides. If the
 * sides have few registers in common, as in transposes of 8- and 16-bit elements, each access moves
 * a part of a word. A shuffle can swap a register bit with a lane bit of one side:
 *
 *     A' = A with the columns of register i and lane j swapped,
 *     where lane j of A is in span(B's registers) and register i of A is not.
 *
 * Then A' and B have one more direction in common. With A and B interchanged, the shuffle follows
 * the exchange. An exchange is at its floor if whole words are in common. The search therefore
 * tries one swap on either side and, also two for bytes (a word holds four).
 *
 * For vectors the choice of the lane does not matter. The rows of a transposed matrix instruction
 * contain lanes 2, 3, 4, so lanes 0 and 1 are preferred; for the same reason, registers that the
 * other side has in these three lanes come last. Registers with high numbers are preferred because
 * they number whole words and need no byte permutes.
 *
 * The price of a candidate is the estimate of its exchange plus the closed formula of the shuffle:
 * m swaps of R words take (1 − 2⁻ᵐ) R shuffles and 2mR selects; one swap takes 1.5 R selects.
 */
#include "plan.h"

typedef struct search {
    lilac_plan_hybrid *best;
    uint64_t best_cycles, floor_wavefronts;
    const lilac_plan_pair *pair;
    const lilac_plan_options *options;
    bool at_floor; /* no candidate can be cheaper */
} search;

/* The candidates for swaps on one side of the pair. */
typedef struct candidates {
    lilac_layout changed; /* this side, with the current swaps */
    bool after;
    uint32_t lane_count, register_count;
    uint8_t lane[LILAC_PLAN_MAX_LANE_BITS], reg[LILAC_PLAN_MAX_REGISTER_BITS];
} candidates;

static void price_swaps(lilac_plan_price *price, const search *s, const candidates *c,
                        uint32_t swaps) {
    const uint64_t words =
        (uint64_t)lilac_plan_words(c->changed.in[REGISTER].bits, s->pair->element_bits)
        << s->pair->bits[WARP];
    price->shuffles += words - (words >> swaps);
    price->selects += swaps == 1 ? words + words / 2 : 2 * swaps * words;
}

/* Prices a plan that swaps the first `swaps` candidates of each kind. */
static void try_swaps(search *s, candidates *c, uint32_t swaps) {
    lilac_plan_hybrid hybrid = {.swaps = swaps, .after = c->after};
    lilac_plan_price price = {0};
    lilac_plan_barrier barrier;
    if (s->at_floor || c->lane_count < swaps || c->register_count < swaps) {
        return;
    }
    for (uint32_t i = 0; i < swaps; i++) {
        hybrid.reg[i] = c->reg[i];
        hybrid.lane[i] = c->lane[i];
    }
    lilac_plan_swap_columns(&c->changed, &hybrid);
    const lilac_layout *from = c->after ? &s->pair->source : &c->changed;
    const lilac_layout *to = c->after ? &c->changed : &s->pair->target;
    if (lilac_plan_staging_estimate(&price, &barrier, from, to, s->pair->element_bits, s->options,
                                    s->pair->arch)) {
        price_swaps(&price, s, c, swaps);
        price.cycles = lilac_plan_price_cycles(&price, barrier, s->pair->arch);
        if (price.cycles < s->best_cycles) {
            s->best_cycles = price.cycles;
            *s->best = hybrid;
        }
        s->at_floor = price.store_wavefronts + price.load_wavefronts <= s->floor_wavefronts;
    }
    lilac_plan_swap_columns(&c->changed, &hybrid); /* undo */
}

static bool has_lane(const lilac_layout *layout, uint32_t first, uint64_t column) {
    const uint32_t lanes = layout->in[REGISTER].bits;
    for (uint32_t i = first; i < layout->in[LANE].bits; i++) {
        if (layout->columns[lanes + i] == column) {
            return true;
        }
    }
    return false;
}

/* Collects lanes of `changed` that the other side has in registers, and registers of `changed` that
 * the other side does not have in registers. */
static void find_candidates(candidates *c, const search *s, bool after) {
    enum { ROW_LANE = 2 }; /* the first lane bit of a transposed row */
    const lilac_layout *other = after ? &s->pair->source : &s->pair->target;
    const uint32_t registers = (after ? &s->pair->target : &s->pair->source)->in[REGISTER].bits;
    const uint32_t lanes = s->pair->bits[LANE];
    lilac_f2_basis wanted, own;
    c->changed = after ? s->pair->target : s->pair->source;
    c->after = after;
    c->lane_count = c->register_count = 0;
    lilac_f2_basis_init(&wanted);
    lilac_f2_basis_init(&own);
    for (uint32_t i = 0; i < other->in[REGISTER].bits; i++) {
        (void)lilac_f2_basis_add(&wanted, other->columns[i], 0);
    }
    for (uint32_t i = 0; i < registers; i++) {
        (void)lilac_f2_basis_add(&own, c->changed.columns[i], 0);
    }
    for (uint32_t i = 0; i < lanes; i++) {
        const uint32_t lane = i < ROW_LANE ? i : lanes - 1 - (i - ROW_LANE);
        const uint64_t column = c->changed.columns[registers + lane];
        /* A lane bit that copies registers would only add a copy. */
        if (lilac_f2_basis_contains(&wanted, column) && !lilac_f2_basis_contains(&own, column)) {
            c->lane[c->lane_count++] = (uint8_t)lane;
        }
    }
    for (uint32_t in_row = 0; in_row < 2; in_row++) {
        for (uint32_t i = registers; i-- > 0;) {
            const uint64_t column = c->changed.columns[i];
            if (has_lane(other, ROW_LANE, column) == (in_row != 0) &&
                !lilac_f2_basis_contains(&wanted, column)) {
                c->reg[c->register_count++] = (uint8_t)i;
            }
        }
    }
}

uint64_t lilac_plan_floor(const lilac_plan_pair *pair) {
    const lilac_layout *sides[2] = {&pair->source, &pair->target};
    uint64_t bits[2];
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t warp_bits = side == 0 ? pair->bits[WARP] : 0;
        const uint32_t end = sides[side]->in[REGISTER].bits + pair->bits[LANE] + warp_bits;
        lilac_f2_basis reached;
        lilac_f2_basis_init(&reached);
        for (uint32_t i = 0; i < end; i++) {
            (void)lilac_f2_basis_add(&reached, sides[side]->columns[i], 0);
        }
        bits[side] = (uint64_t)pair->element_bits << lilac_f2_basis_dimension(&reached);
    }
    const uint64_t wavefront = 8ULL * pair->arch->banks * pair->arch->bank_bytes;
    return (bits[0] + wavefront - 1) / wavefront +
           (((bits[1] + wavefront - 1) / wavefront) << pair->bits[WARP]);
}

/* The number of directions that are registers on both sides. */
static uint32_t common_registers(const lilac_plan_pair *pair) {
    const uint32_t source = pair->source.in[REGISTER].bits, target = pair->target.in[REGISTER].bits;
    lilac_f2_basis registers;
    uint32_t common = 0;
    lilac_f2_basis_init(&registers);
    for (uint32_t i = 0; i < source; i++) {
        (void)lilac_f2_basis_add(&registers, pair->source.columns[i], 0);
    }
    for (uint32_t i = 0; i < target; i++) {
        common += !lilac_f2_basis_add(&registers, pair->target.columns[i], 0);
    }
    return common;
}

/* A lower bound of the cycles of an exchange of bytes without common registers. One side accesses
 * single bytes, one wavefront per register and warp. 0: unknown, because warps with copies may be
 * left out. */
static uint64_t least_of_bytes(const lilac_plan_pair *pair) {
    const uint32_t source = pair->source.in[REGISTER].bits, target = pair->target.in[REGISTER].bits;
    for (uint32_t i = 0; i < pair->bits[WARP]; i++) {
        if (pair->source.columns[source + pair->bits[LANE] + i] == 0) {
            return 0;
        }
    }
    return (uint64_t)pair->arch->costs->wavefront
           << ((source < target ? source : target) + pair->bits[WARP]);
}

uint64_t lilac_plan_find_hybrid(lilac_plan_hybrid *result, const lilac_plan_pair *pair,
                                const lilac_plan_options *options, uint64_t most_cycles) {
    const uint32_t wanted = pair->element_bits == 8 ? 2 : pair->element_bits == 16 ? 1 : 0;
    search s = {.best = result, .pair = pair, .options = options};
    lilac_plan_price price = {0};
    lilac_plan_barrier barrier;
    candidates before, after;
    result->swaps = 0;
    const uint32_t common = wanted == 0 ? 0 : common_registers(pair);
    if (common >= wanted) {
        return 0;
    }
    s.floor_wavefronts = lilac_plan_floor(pair);
    find_candidates(&before, &s, false);
    const uint64_t least = wanted == 2 && common == 0 ? least_of_bytes(pair) : 0;
    if (least != 0) {
        s.best_cycles = least < most_cycles ? least : most_cycles;
        try_swaps(&s, &before, 1);
        if (s.at_floor && result->swaps != 0) {
            return least;
        }
        s.at_floor = false;
        result->swaps = 0;
    }
    if (!lilac_plan_staging_estimate(&price, &barrier, &pair->source, &pair->target,
                                     pair->element_bits, options, pair->arch)) {
        return 0;
    }
    const uint64_t staging_cycles = lilac_plan_price_cycles(&price, barrier, pair->arch);
    s.best_cycles = staging_cycles < most_cycles ? staging_cycles : most_cycles;
    if (price.store_wavefronts + price.load_wavefronts <= s.floor_wavefronts ||
        s.best_cycles <= s.floor_wavefronts * pair->arch->costs->wavefront) {
        return staging_cycles;
    }
    try_swaps(&s, &before, 1);
    if (!s.at_floor) {
        find_candidates(&after, &s, true);
        try_swaps(&s, &after, 1);
        if (pair->element_bits == 8) {
            try_swaps(&s, &before, 2);
            try_swaps(&s, &after, 2);
        }
    }
    return staging_cycles;
}
