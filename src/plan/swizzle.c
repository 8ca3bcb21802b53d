/* Memory layouts without bank conflicts (sections 5.4 and 9.2 of the paper), for all layouts.
 *
 *   offset bits    0 … k-1              … β-1                          rest
 *                  low directions P  |  word, bank  |  segments K  |  rounds
 *
 * Let o_i be the coordinates along a basis m_i of the memory; then offset(x) = Σ o_i(x) 2^i. An
 * instruction determines the first k of them: m_0 … m_(k-1) are P, and o_0 … o_(k-1) vanish on
 * every thread and on every register direction outside of P, so that accesses are aligned. All
 * other m_i then lie in
 *
 *   Z = ker o_0 ∩ … ∩ ker o_(k-1) ⊇ threads of the side that P belongs to
 *
 * Any complement of P that contains these threads may be chosen as Z. The vectors are in the basis
 * of that side. Modulo its threads, P and Z are complements in the space of its registers, which
 * has few dimensions.
 *
 * The narrower side uses the first k' < k directions of P. The lanes of its transaction may reach
 * the other directions of P. These directions are therefore chosen among the lanes of its
 * transaction: the coordinates o then distinguish these lanes, which are in different banks.
 *
 * Let U be the span of the lanes of a side's transaction, of its vector and of the directions
 * within a word. The transaction takes 2^dim(U ∩ K) wavefronts. Since K ⊂ Z, only U ∩ Z matters.
 * Let I be the intersection of both sides' U ∩ Z, let E and F complete it to the two U ∩ Z, and
 * let C complete their sum to Z. By Lemma 9.5, K = C + {e_i ⊕ f_i} intersects neither side's U ∩
 * Z, and no larger subspace of Z has this property.
 */
#include "staging.h"

#include <assert.h>
#include <string.h>

enum { REGISTER_DIRECTION = 0xff, FIRST_ROUND = MAX_LOW };

typedef struct builder {
    const staging_pair *pair;
    const staging_strategy *strategy;
    const staging_scale *scale;
    const staging_side *owner, *other;
    lilac_plan_instruction own, others;
    uint32_t low, other_low;
    uint32_t direction[FIRST_ROUND + LILAC_PLAN_MAX_REGISTER_BITS]; /* P; from FIRST_ROUND on the
                                                                          rounds */
    uint8_t lane_bit[MAX_LOW]; /* the basis bit of a direction that is a lane of the owner, or
                                   REGISTER_DIRECTION */
    bool natural;             /* the directions that only the owner uses are its lowest registers */
    lilac_f2_basis registers; /* modulo the owner's threads: P and the rounds (tagged) and Z */
} builder;

/* The coordinates of a vector along P and the rounds, as a mask over `direction`. */
static uint32_t along(const builder *b, uint32_t vector) {
    uint32_t mask = (uint32_t)lilac_f2_basis_tag(&b->registers, vector & BASIS_REGISTERS);
    for (uint32_t i = 0; i < b->low; i++) {
        if (b->lane_bit[i] != REGISTER_DIRECTION) {
            mask |= (vector >> b->lane_bit[i] & 1) << i;
        }
    }
    return mask;
}

static uint32_t without(const builder *b, uint32_t vector, uint32_t mask) {
    for (; mask != 0; mask &= mask - 1) {
        vector ^= b->direction[lowest_bit(mask)];
    }
    return vector;
}

/* The component of a vector in Z. */
static uint32_t in_rest(const builder *b, uint32_t vector) {
    return without(b, vector, along(b, vector));
}

/* ---- the low directions ------------------------------------------------------------------ */

/* The lane bit that direction i of an instruction is, or -1 if it is a register. */
static int lane_of(lilac_plan_instruction instruction, const staging_scale *scale, uint32_t i) {
    if (instruction == LILAC_PLAN_VECTOR || i < row_registers(instruction, scale)) {
        return -1;
    }
    return (int)(row_lane(instruction) + i - row_registers(instruction, scale));
}

/* The register directions that may be low directions of the owner only. The directions that both
 * sides use must stay independent of these and of the other side's threads. A new direction is
 * therefore either in the span of these threads or independent of everything. */
typedef struct choice {
    lilac_f2_basis shared; /* tag ≠ 0: the vector involves directions that both sides use */
    lilac_f2_basis chosen;
} choice;

static bool choose(choice *c, uint32_t vector) {
    uint64_t tag;
    if ((lilac_f2_basis_reduce(&c->shared, vector, &tag) == 0 && tag != 0) ||
        !lilac_f2_basis_add(&c->chosen, vector, 0)) {
        return false;
    }
    (void)lilac_f2_basis_add(&c->shared, vector, 0);
    return true;
}

static bool is_low_lane(const builder *b, uint32_t lane) {
    for (uint32_t i = 0; i < b->other_low; i++) {
        if (lane_of(b->others, b->scale, i) == (int)lane) {
            return true;
        }
    }
    return false;
}

/* Uses the vector as the direction of offset bit i if the choice allows it. */
static bool take(builder *b, choice *c, uint32_t i, uint32_t vector) {
    const bool chosen = choose(c, vector);
    if (chosen) {
        b->direction[i] = vector;
    }
    return chosen;
}

static bool take_register(builder *b, choice *c, uint32_t i) {
    for (uint32_t remaining = b->pair->registers; remaining != 0; remaining &= remaining - 1) {
        if (take(b, c, i, remaining & -remaining)) {
            return true;
        }
    }
    return false;
}

/* Chooses a direction beyond a word that only the owner uses: its lowest registers (`natural`), or
 * lanes of the other side (registers of a word last), then other threads of that side. */
static bool choose_high(builder *b, choice *c, uint32_t i) {
    const uint32_t lanes = 1U << lilac_plan_transaction_lane_bits(b->scale, b->other,
                                                                  1 - b->pair->owner, b->other_low);
    const uint32_t lane_bits = log2_of(lanes);
    for (uint32_t pass = b->natural ? 3 : 0; pass < 3; pass++) {
        const uint32_t count = pass < 2 ? lane_bits : b->other->thread_bits;
        for (uint32_t j = 0; j < count; j++) {
            const uint32_t vector =
                (pass < 2 ? b->other->within[j] : b->other->thread[j]) & BASIS_REGISTERS;
            if ((pass > 0 || vector >> b->scale->word_bits != 0) && take(b, c, i, vector)) {
                return true;
            }
        }
    }
    return take_register(b, c, i);
}

/* Chooses a direction within a word: if possible the layout's own register at that place. */
static bool choose_in_word(builder *b, choice *c, uint32_t i) {
    const uint32_t natural = b->pair->registers & 1U << i;
    if ((natural != 0 && take(b, c, i, natural)) || take_register(b, c, i)) {
        return true;
    }
    for (uint32_t j = 0; j < b->other->thread_bits; j++) {
        if (take(b, c, i, b->other->thread[j] & BASIS_REGISTERS)) {
            return true;
        }
    }
    return false;
}

static void begin_choice(const builder *b, choice *c, uint32_t shared) {
    lilac_f2_basis_init(&c->shared);
    lilac_f2_basis_init(&c->chosen);
    for (; shared != 0; shared &= shared - 1) {
        const uint32_t vector = b->direction[lowest_bit(shared)] & BASIS_REGISTERS;
        (void)lilac_f2_basis_add(&c->shared, vector, 1U << lowest_bit(shared));
        (void)lilac_f2_basis_add(&c->chosen, vector, 0);
    }
    for (uint32_t j = 0; j < b->other->thread_bits; j++) {
        if (!is_low_lane(b, j)) {
            (void)lilac_f2_basis_add(&c->shared, b->other->thread[j] & BASIS_REGISTERS, 0);
        }
    }
}

/* Chooses the owner's directions that are not in `shared`. */
static bool choose_own(builder *b, uint32_t shared) {
    choice c;
    bool begun = false;
    /* Directions beyond the word come first, because there the choice of lanes matters. */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = b->other_low; i < b->low; i++) {
            const bool in_word = i < b->scale->word_bits;
            if (b->lane_bit[i] != REGISTER_DIRECTION || in_word != (pass == !b->natural)) {
                continue;
            }
            if (!begun) {
                begin_choice(b, &c, shared);
                begun = true;
            }
            if (!(in_word ? choose_in_word(b, &c, i) : choose_high(b, &c, i))) {
                return false;
            }
        }
    }
    /* Only the span of the directions beyond the word matters, so the registers of a word are
     * removed from them. The words then keep their elements. */
    uint32_t natural = 0;
    for (uint32_t i = b->other_low; i < min_u32(b->low, b->scale->word_bits); i++) {
        natural |= b->direction[i] == 1U << i ? 1U << i : 0;
    }
    for (uint32_t i = max_u32(b->other_low, b->scale->word_bits); i < b->low; i++) {
        if (b->lane_bit[i] == REGISTER_DIRECTION) {
            b->direction[i] &= ~natural;
        }
    }
    return true;
}

/* Adds a vector on which the functionals in `mask` must vanish to the construction of Z modulo the
 * threads. False: a functional does not vanish on it. */
static bool vanish_on(builder *b, uint32_t vector, uint32_t mask) {
    vector &= BASIS_REGISTERS;
    uint64_t tag;
    const uint64_t rest = lilac_f2_basis_reduce(&b->registers, vector, &tag);
    return rest == 0 ? (tag & mask) == 0 : lilac_f2_basis_add(&b->registers, rest, tag);
}

/* Adds the owner's registers to Z where possible, so that they keep their own offsets. The
 * directions that both sides use must stay independent of the other side's threads. */
static void keep_registers(builder *b, uint32_t shared) {
    choice c;
    begin_choice(b, &c, shared);
    for (uint32_t i = b->other_low; i < b->low; i++) {
        if (b->lane_bit[i] == REGISTER_DIRECTION) {
            (void)lilac_f2_basis_add(&c.shared, b->direction[i] & BASIS_REGISTERS, 0);
        }
    }
    for (uint32_t remaining = b->pair->registers; remaining != 0; remaining &= remaining - 1) {
        const uint32_t unit = remaining & -remaining;
        uint64_t tag;
        const uint64_t rest = lilac_f2_basis_reduce(&c.shared, unit, &tag);
        if ((rest != 0 || tag == 0) && vanish_on(b, unit, 0)) {
            (void)lilac_f2_basis_add(&c.shared, rest, tag);
        }
    }
}

static bool place_low(builder *b) {
    const staging_pair *pair = b->pair;
    uint32_t commons = 0, shared = 0, other_lanes = 0, tags = 0;
    for (uint32_t i = 0; i < b->low; i++) {
        const int own_lane = lane_of(b->own, b->scale, i);
        const int other_lane = i < b->other_low ? lane_of(b->others, b->scale, i) : -1;
        b->lane_bit[i] = REGISTER_DIRECTION;
        if (own_lane >= 0) {
            b->lane_bit[i] = (uint8_t)(BASIS_LANE + own_lane);
            b->direction[i] = UINT32_C(1) << b->lane_bit[i];
        } else if (other_lane >= 0) {
            b->direction[i] = b->other->thread[other_lane];
            other_lanes |= 1U << i;
            shared |= 1U << i;
        } else if (i < b->other_low) {
            if (commons == pair->common_count - pair->round_bits) {
                return false;
            }
            b->direction[i] = pair->common[commons++];
            shared |= 1U << i;
        }
    }
    for (uint32_t i = 0; i < pair->round_bits; i++) {
        b->direction[FIRST_ROUND + i] = pair->common[pair->common_count - pair->round_bits + i];
        shared |= 1U << (FIRST_ROUND + i);
    }
    if (!choose_own(b, shared)) {
        return false;
    }
    for (uint32_t i = 0; i < b->low; i++) {
        tags |= b->lane_bit[i] == REGISTER_DIRECTION ? 1U << i : 0;
    }
    tags |= shared;
    for (uint32_t remaining = tags; remaining != 0; remaining &= remaining - 1) {
        const uint32_t vector = b->direction[lowest_bit(remaining)] & BASIS_REGISTERS;
        if (!lilac_f2_basis_add(&b->registers, vector, remaining & -remaining)) {
            return false;
        }
    }
    if (other_lanes == 0) {
        keep_registers(b, shared);
    }
    for (uint32_t j = 0; j < b->other->thread_bits; j++) {
        if (!is_low_lane(b, j) && !vanish_on(b, b->other->thread[j], shared)) {
            return false;
        }
    }
    for (uint32_t j = 0; other_lanes != 0 && j < b->other->register_bits; j++) {
        if (!vanish_on(b, b->other->reg[j], other_lanes)) {
            return false;
        }
    }
    for (uint32_t remaining = pair->space_mask & BASIS_REGISTERS; remaining != 0;
         remaining &= remaining - 1) {
        (void)vanish_on(b, remaining & -remaining, 0);
    }
    return true;
}

/* ---- the span of a transaction ------------------------------------------------------------- */

typedef struct vectors {
    uint32_t count;
    uint32_t vector[BASIS_BITS + 2];
} vectors;

/* The register direction that numbers the halves of a word in a transposed matrix; 0: none. */
static uint32_t half_of(const builder *b, const staging_side *side) {
    const uint32_t natural = b->scale->word_bits - 1;
    for (uint32_t i = 0; i <= side->register_bits; i++) {
        const uint32_t bit = i == 0 ? natural : i - 1;
        const uint32_t column = bit < side->register_bits ? side->reg[bit] : 0;
        const uint32_t vector =
            side == b->owner && (column & (column - 1)) != 0 ? 0 : in_rest(b, column);
        if (vector != 0) {
            return vector;
        }
    }
    return 0;
}

static void reach_matrix(const builder *b, vectors *reached, const staging_side *side,
                         lilac_plan_instruction instruction, uint32_t half) {
    const uint32_t first = row_lane(instruction);
    const uint32_t rows = instruction == LILAC_PLAN_MATRIX ? 2 : 3;
    if (instruction == LILAC_PLAN_MATRIX_TRANSPOSED) {
        reached->vector[reached->count++] = half;
    }
    for (uint32_t j = 0; j < side->lane_bits; j++) {
        if (j < first || j >= first + rows) {
            reached->vector[reached->count++] = in_rest(b, side->thread[j]);
        }
    }
}

/* The components in Z of the other side's lanes, modulo the directions of P that its access spans
 * in any case. */
static void reach_lanes(const builder *b, vectors *reached) {
    const uint32_t spanned = max_u32(b->other_low, min_u32(b->scale->word_bits, b->low));
    const uint32_t lanes =
        lilac_plan_transaction_lane_bits(b->scale, b->other, 1 - b->pair->owner, b->other_low);
    const uint32_t beyond = (1U << b->low) - (1U << spanned);
    lilac_f2_basis kept;
    lilac_f2_basis_init(&kept);
    for (uint32_t j = 0; j < lanes; j++) {
        uint32_t vector = b->other->within[j];
        uint32_t mask = along(b, vector);
        vector = without(b, vector, mask & ~beyond);
        mask &= beyond;
        if (!lilac_f2_basis_add(&kept, mask, vector)) {
            reached->vector[reached->count++] = vector ^ (uint32_t)lilac_f2_basis_tag(&kept, mask);
        }
    }
}

/* ---- segments ------------------------------------------------------------------------------ */

/* U = I + E, V = I + F, all = U + V + C. */
typedef struct split {
    vectors i, e, f, c;
} split;

static void split_spaces(split *s, const builder *b, const vectors *u, const vectors *v,
                         uint32_t most) {
    lilac_f2_basis sum, own;
    lilac_f2_basis_init(&sum);
    lilac_f2_basis_init(&own);
    s->i.count = s->e.count = s->f.count = s->c.count = 0;
    for (uint32_t j = 0; j < u->count; j++) {
        (void)lilac_f2_basis_add(&sum, u->vector[j], u->vector[j]);
    }
    for (uint32_t j = 0; j < v->count && s->i.count + s->f.count < most; j++) {
        uint64_t tag;
        const uint64_t rest = lilac_f2_basis_reduce(&sum, v->vector[j], &tag);
        if (lilac_f2_basis_add(&sum, rest, tag)) {
            s->f.vector[s->f.count++] = v->vector[j];
        } else if (lilac_f2_basis_add(&own, tag, 0)) {
            s->i.vector[s->i.count++] = (uint32_t)tag;
        }
    }
    for (uint32_t j = 0; j < u->count; j++) {
        if (lilac_f2_basis_add(&own, u->vector[j], 0)) {
            s->e.vector[s->e.count++] = u->vector[j];
        }
    }
    for (uint32_t remaining = b->pair->space_mask; remaining != 0; remaining &= remaining - 1) {
        const uint32_t vector = in_rest(b, remaining & -remaining);
        if (lilac_f2_basis_add(&sum, vector, 0)) {
            s->c.vector[s->c.count++] = vector;
        }
    }
}

/* 2^exponent, within the range of a double. */
static double power_of_two(int exponent) {
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static int exponent_of(double positive) {
    uint64_t bits;
    memcpy(&bits, &positive, sizeof bits);
    return (int)(bits >> 52) - 1023;
}

/* log2, rounded down, of the number of subspaces of dimension k of F2^n that intersect neither of
 * two subspaces, of dimensions a and b, whose intersection has dimension i. The function counts
 * ordered bases: after j vectors, the next vector lies outside of the union of both subspaces with
 * K. The size of that union depends on the dimension of the sum of all three. Numbers are in units
 * of 2^n. */
static uint32_t count_family(uint32_t n, uint32_t k, uint32_t a, uint32_t b, uint32_t i) {
    const uint32_t sum = a + b - i;
    double strategies[BASIS_BITS + 1] = {1.0}, bases = 1.0, all = 0.0;
    if (k == 0) {
        return 0;
    }
    for (uint32_t j = 0; j < k; j++) {
        for (uint32_t e = min_u32(j, n - sum) + 1; e-- > 0;) {
            const double inside = power_of_two((int)(sum + e) - (int)n);
            const double met = power_of_two((int)(a + j) - (int)n) +
                               power_of_two((int)(b + j) - (int)n) -
                               power_of_two((int)(a + b + 2 * j) - (int)(sum + e) - (int)n);
            strategies[e + 1] += strategies[e] * (1.0 - inside);
            strategies[e] *= inside > met ? inside - met : 0.0;
        }
        bases *= 1.0 - power_of_two((int)j - (int)k);
    }
    for (uint32_t e = 0; e <= k && e <= n - sum; e++) {
        all += strategies[e];
    }
    return (uint32_t)((int)(k * n) - (int)(k * k) + exponent_of(all / bases * (1.0 + 1e-9)));
}

static void append(memory_basis *result, lilac_f2_basis *known, uint32_t most,
                   const vectors *from) {
    for (uint32_t j = 0; j < from->count && result->count < most; j++) {
        if (lilac_f2_basis_add(known, from->vector[j], 0)) {
            result->vector[result->count++] = from->vector[j];
        }
    }
}

/* If both sides access less than a word, fills the word, if possible with directions that both
 * sides span. */
static void fill_word(memory_basis *result, builder *b, vectors *u, vectors *v, uint32_t most) {
    split s;
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    vectors added = {0};
    const uint32_t first = result->count;
    split_spaces(&s, b, u, v, BASIS_BITS);
    append(result, &known, most, &s.i);
    append(result, &known, most, &s.e);
    append(result, &known, most, &s.f);
    append(result, &known, most, &s.c);
    added.count = result->count - first;
    memcpy(added.vector, result->vector + first, added.count * sizeof added.vector[0]);
    memmove(u->vector + added.count, u->vector, u->count * sizeof u->vector[0]);
    memmove(v->vector + added.count, v->vector, v->count * sizeof v->vector[0]);
    memcpy(u->vector, added.vector, added.count * sizeof added.vector[0]);
    memcpy(v->vector, added.vector, added.count * sizeof added.vector[0]);
    u->count += added.count;
    v->count += added.count;
}

/* Chooses banks and segments, given the low directions. */
static void place_segments(memory_basis *result, builder *b, vectors *reached) {
    const staging_scale *scale = b->scale;
    const uint32_t all = (uint32_t)__builtin_popcount(b->pair->space_mask) - b->pair->round_bits;
    const uint32_t segments = segment_bits(b->pair, scale);
    vectors u = {0}, v = *reached, pairs = {0}, complement = {0};
    split s;
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    if (b->own == LILAC_PLAN_VECTOR) {
        u.count = lilac_plan_transaction_lane_bits(scale, b->owner, b->pair->owner, b->low);
        memcpy(u.vector, b->owner->within, u.count * sizeof u.vector[0]);
    } else {
        reach_matrix(b, &u, b->owner, b->own, result->half[b->pair->owner]);
    }
    if (result->count < scale->word_bits && result->count < all) {
        fill_word(result, b, &u, &v, min_u32(scale->word_bits, all));
    }
    const uint32_t word = result->count - b->low; /* number of directions that fill the word */
    split_spaces(&s, b, &u, &v, all - segments - b->low);
    complement.count = min_u32(s.c.count, segments);
    for (uint32_t j = 0; j < complement.count; j++) {
        complement.vector[j] = s.c.vector[s.c.count - complement.count + j];
    }
    pairs.count = segments - complement.count;
    assert(pairs.count <= s.e.count && pairs.count <= s.f.count);
    for (uint32_t j = 0; j < pairs.count; j++) {
        pairs.vector[j] = s.e.vector[j] ^ s.f.vector[j];
        (void)lilac_f2_basis_add(&known, pairs.vector[j], 0);
    }
    for (uint32_t j = 0; j < complement.count; j++) {
        (void)lilac_f2_basis_add(&known, complement.vector[j], 0);
    }
    for (uint32_t j = 0; j < word; j++) {
        (void)lilac_f2_basis_add(&known, result->vector[b->low + j], 0);
    }
    append(result, &known, all - segments, &u);
    append(result, &known, all - segments, &v);
    append(result, &known, all - segments, &s.c);
    assert(result->count == all - segments);
    memcpy(result->vector + result->count, pairs.vector, pairs.count * sizeof pairs.vector[0]);
    result->count += pairs.count;
    memcpy(result->vector + result->count, complement.vector,
           complement.count * sizeof complement.vector[0]);
    result->count += complement.count;
    result->family_bits = count_family(all - b->low - word, segments, s.i.count + s.e.count - word,
                                       s.i.count + s.f.count - word, s.i.count - word);
}

/* Chooses the low directions and computes the span of the other side's transaction. */
static bool place(memory_basis *result, builder *b, vectors *reached) {
    const uint32_t owner = b->pair->owner;
    if (!place_low(b)) {
        return false;
    }
    for (uint32_t side = 0; side < 2; side++) {
        result->half[side] = 0;
        if (b->strategy->instruction[side] == LILAC_PLAN_MATRIX_TRANSPOSED) {
            result->half[side] = half_of(b, &b->pair->side[side]);
            if (result->half[side] == 0) {
                return false;
            }
        }
    }
    reached->count = 0;
    if (b->others == LILAC_PLAN_VECTOR) {
        reach_lanes(b, reached);
    } else {
        reach_matrix(b, reached, b->other, b->others, result->half[1 - owner]);
    }
    return true;
}

static uint32_t dimension(const vectors *v) {
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->count; i++) {
        count += lilac_f2_basis_add(&known, v->vector[i], 0);
    }
    return count;
}

bool lilac_plan_swizzle(memory_basis *result, const staging_pair *pair,
                        const staging_strategy *strategy, const staging_scale *scale) {
    const uint32_t own = pair->owner, all = (uint32_t)__builtin_popcount(pair->space_mask);
    const uint32_t most =
        above(all - pair->round_bits - segment_bits(pair, scale), strategy->low[own]);
    builder b, natural;
    vectors v, natural_v;
    memset(&b, 0, sizeof b);
    b.pair = pair;
    b.strategy = strategy;
    b.scale = scale;
    b.owner = &pair->side[own];
    b.other = &pair->side[1 - own];
    b.own = strategy->instruction[own];
    b.others = strategy->instruction[1 - own];
    b.low = strategy->low[own];
    b.other_low = strategy->low[1 - own];
    assert(b.low >= b.other_low && b.low <= MAX_LOW);
    natural = b;
    natural.natural = true;
    bool is_natural = place(result, &natural, &natural_v);
    const uint32_t reached = is_natural ? dimension(&natural_v) : UINT32_MAX;
    if (reached > most && b.low > b.other_low) {
        memory_basis other;
        if (place(&other, &b, &v) && dimension(&v) < reached) {
            is_natural = false;
            memcpy(result->half, other.half, sizeof other.half);
        } else if (!is_natural) {
            return false;
        }
    } else if (!is_natural) {
        return false;
    }
    builder *best = is_natural ? &natural : &b;
    memcpy(result->vector, best->direction, best->low * sizeof best->direction[0]);
    result->count = best->low;
    place_segments(result, best, is_natural ? &natural_v : &v);
    memcpy(result->vector + result->count, best->direction + FIRST_ROUND,
           pair->round_bits * sizeof best->direction[0]);
    result->count += pair->round_bits;
    return true;
}
