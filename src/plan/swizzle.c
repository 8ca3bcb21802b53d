/* Memory layouts without bank conflicts (sections 5.4 and 9.2 of the paper), for all layouts.
 *
 *   offset bits    0 … k-1              … β-1                          rest
 *                  low directions P  |  word, bank  |  segments K  |  rounds
 *
 * With functionals o_i, the coordinates along a basis m_i, offset(x) = Σ o_i(x) 2^i. An instruction
 * asks for the first k of them: m_0 … m_(k-1) are P, and o_0 … o_(k-1) vanish on every thread and
 * register direction that is none of P, so that accesses are aligned. All other m_i then lie in
 *
 *   Z = ker o_0 ∩ … ∩ ker o_(k-1) ⊇ threads of the side whose P it is
 *
 * and we may choose Z, as long as it is a complement of P. Modulo the threads of that side, whose
 * frame we are in, P and Z/threads are complements in the space of its registers, a few bits.
 *
 * The narrower side uses the first k' < k of P. Its directions beyond, which its lanes may reach,
 * are chosen to be the lanes of its transaction first: o then tells these lanes apart and they are
 * in different banks already.
 *
 * Conflicts of a side: with U the span of a transaction's lanes, its vector and the directions
 * within a word, a transaction takes 2^dim(U ∩ K) wavefronts. Since K ⊂ Z, what counts is U ∩ Z.
 * Lemma 9.5: with E and F completing the intersection I of both sides' U ∩ Z and C completing their
 * sum, K = C + {e_i ⊕ f_i} meets neither, and no subspace of Z that meets neither is larger.
 */
#include "trip.h"

#include <assert.h>
#include <string.h>

enum { REGISTER_DIRECTION = 0xff, FIRST_ROUND = MOST_LOW };

typedef struct builder {
    const trip_pair *pair;
    const trip_way *way;
    const trip_scale *scale;
    const trip_side *owner, *other;
    lilac_plan_instruction own, others;
    uint32_t low, other_low;
    uint32_t direction[FIRST_ROUND + LILAC_PLAN_MAX_REGISTER_BITS]; /* P, from FIRST_ROUND on
                                                                          the rounds */
    uint8_t lane_bit[MOST_LOW]; /* the frame's bit of the lane that a direction is, or
                                   REGISTER_DIRECTION */
    bool natural;               /* the owner's own directions are its lowest registers */
    lilac_f2_basis registers;   /* modulo the owner's threads: P, rounds (their tags) and Z */
} builder;

/* Coordinates along P and the rounds, by the bits of `direction`. */
static uint32_t along(const builder *b, uint32_t vector) {
    uint32_t mask = (uint32_t)lilac_f2_basis_tag(&b->registers, vector & FRAME_REGISTERS);
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

/* The part of a vector that lies in Z. */
static uint32_t in_rest(const builder *b, uint32_t vector) {
    return without(b, vector, along(b, vector));
}

/* ---- the low directions ------------------------------------------------------------------ */

/* The lane that direction i of a side's instruction is, or -1: a register. */
static int lane_of(lilac_plan_instruction instruction, const trip_scale *scale, uint32_t i) {
    if (instruction == LILAC_PLAN_VECTOR || i < row_registers(instruction, scale)) {
        return -1;
    }
    return (int)(row_lane(instruction) + i - row_registers(instruction, scale));
}

/* Which register directions may be low ones of the owner alone. Those that both sides use must stay
 * independent of them and of the other side's threads: a new one is either among these threads or
 * independent of all. */
typedef struct choice {
    lilac_f2_basis shared; /* tag 1: with what both sides use */
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

/* As offset bit i's, where the choice allows it. */
static bool take(builder *b, choice *c, uint32_t i, uint32_t vector) {
    const bool chosen = choose(c, vector);
    if (chosen) {
        b->direction[i] = vector;
    }
    return chosen;
}

static bool take_register(builder *b, choice *c, uint32_t i) {
    for (uint32_t left = b->pair->registers; left != 0; left &= left - 1) {
        if (take(b, c, i, left & -left)) {
            return true;
        }
    }
    return false;
}

/* Directions beyond a word that only the owner uses: its lowest registers if that will do; else the
 * other side's lanes, but those that are a word's own registers last; then its other threads. */
static bool choose_high(builder *b, choice *c, uint32_t i) {
    const uint32_t lanes =
        1U << lilac_plan_trip_lanes(b->scale, b->other, 1 - b->pair->owner, b->other_low);
    const uint32_t lane_bits = log2_of(lanes);
    for (uint32_t pass = b->natural ? 3 : 0; pass < 3; pass++) {
        const uint32_t count = pass < 2 ? lane_bits : b->other->thread_bits;
        for (uint32_t j = 0; j < count; j++) {
            const uint32_t vector =
                (pass < 2 ? b->other->within[j] : b->other->thread[j]) & FRAME_REGISTERS;
            if ((pass > 0 || vector >> b->scale->word_bits != 0) && take(b, c, i, vector)) {
                return true;
            }
        }
    }
    return take_register(b, c, i);
}

/* Directions within a word: the register that the layout itself has there, if possible. */
static bool choose_in_word(builder *b, choice *c, uint32_t i) {
    const uint32_t natural = b->pair->registers & 1U << i;
    if ((natural != 0 && take(b, c, i, natural)) || take_register(b, c, i)) {
        return true;
    }
    for (uint32_t j = 0; j < b->other->thread_bits; j++) {
        if (take(b, c, i, b->other->thread[j] & FRAME_REGISTERS)) {
            return true;
        }
    }
    return false;
}

static void begin_choice(const builder *b, choice *c, uint32_t shared) {
    lilac_f2_basis_init(&c->shared);
    lilac_f2_basis_init(&c->chosen);
    for (; shared != 0; shared &= shared - 1) {
        const uint32_t vector = b->direction[lowest_bit(shared)] & FRAME_REGISTERS;
        (void)lilac_f2_basis_add(&c->shared, vector, 1U << lowest_bit(shared));
        (void)lilac_f2_basis_add(&c->chosen, vector, 0);
    }
    for (uint32_t j = 0; j < b->other->thread_bits; j++) {
        if (!is_low_lane(b, j)) {
            (void)lilac_f2_basis_add(&c->shared, b->other->thread[j] & FRAME_REGISTERS, 0);
        }
    }
}

/* The owner's own directions, beyond those in `shared`. */
static bool choose_own(builder *b, uint32_t shared) {
    choice c;
    bool begun = false;
    /* From the word up first: which of them are lanes matters, and not within a word. */
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
    /* Directions beyond the word leave a word's own registers alone, so that words stay as they
     * are: their span is what matters. */
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

/* Puts Z/threads together around P: a vector that the functionals in `mask` must vanish on. */
static bool vanish_on(builder *b, uint32_t vector, uint32_t mask) {
    vector &= FRAME_REGISTERS;
    uint64_t tag;
    const uint64_t rest = lilac_f2_basis_reduce(&b->registers, vector, &tag);
    return rest == 0 ? (tag & mask) == 0 : lilac_f2_basis_add(&b->registers, rest, tag);
}

/* The owner's registers that may lie in Z as they are do, so that they keep to themselves: those
 * that leave what both sides use independent of the other side's threads. */
static void keep_registers(builder *b, uint32_t shared) {
    choice c;
    begin_choice(b, &c, shared);
    for (uint32_t i = b->other_low; i < b->low; i++) {
        if (b->lane_bit[i] == REGISTER_DIRECTION) {
            (void)lilac_f2_basis_add(&c.shared, b->direction[i] & FRAME_REGISTERS, 0);
        }
    }
    for (uint32_t left = b->pair->registers; left != 0; left &= left - 1) {
        const uint32_t unit = left & -left;
        uint64_t tag;
        const uint64_t rest = lilac_f2_basis_reduce(&c.shared, unit, &tag);
        if ((rest != 0 || tag == 0) && vanish_on(b, unit, 0)) {
            (void)lilac_f2_basis_add(&c.shared, rest, tag);
        }
    }
}

static bool place_low(builder *b) {
    const trip_pair *pair = b->pair;
    uint32_t commons = 0, shared = 0, other_lanes = 0, tags = 0;
    for (uint32_t i = 0; i < b->low; i++) {
        const int own_lane = lane_of(b->own, b->scale, i);
        const int other_lane = i < b->other_low ? lane_of(b->others, b->scale, i) : -1;
        b->lane_bit[i] = REGISTER_DIRECTION;
        if (own_lane >= 0) {
            b->lane_bit[i] = (uint8_t)(FRAME_LANE + own_lane);
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
    for (uint32_t left = tags; left != 0; left &= left - 1) {
        const uint32_t vector = b->direction[lowest_bit(left)] & FRAME_REGISTERS;
        if (!lilac_f2_basis_add(&b->registers, vector, left & -left)) {
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
    for (uint32_t left = pair->whole & FRAME_REGISTERS; left != 0; left &= left - 1) {
        (void)vanish_on(b, left & -left, 0);
    }
    return true;
}

/* ---- what a transaction reaches ------------------------------------------------------------ */

typedef struct vectors {
    uint32_t count;
    uint32_t vector[FRAME_BITS + 2];
} vectors;

/* The register direction that numbers the halves of a word, for a transposed matrix. */
static uint32_t half_of(const builder *b, const trip_side *side) {
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

static void reach_matrix(const builder *b, vectors *reached, const trip_side *side,
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

/* The lanes of the other side within Z, up to directions of P that it reaches anyway. */
static void reach_lanes(const builder *b, vectors *reached) {
    const uint32_t anyway = max_u32(b->other_low, min_u32(b->scale->word_bits, b->low));
    const uint32_t lanes =
        lilac_plan_trip_lanes(b->scale, b->other, 1 - b->pair->owner, b->other_low);
    const uint32_t beyond = (1U << b->low) - (1U << anyway);
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
    for (uint32_t left = b->pair->whole; left != 0; left &= left - 1) {
        const uint32_t vector = in_rest(b, left & -left);
        if (lilac_f2_basis_add(&sum, vector, 0)) {
            s->c.vector[s->c.count++] = vector;
        }
    }
}

/* 2^exponent, of those that a double has. */
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

/* log2 of how many subspaces of dimension k of F2^n meet neither of two, of dimensions a and b that
 * share i, rounded down. Ordered bases are counted: with j vectors chosen, the next is outside the
 * union of both spaces with K, and how large that is depends on the dimension of the sum of all
 * three. Numbers are in parts of 2^n each. */
static uint32_t count_family(uint32_t n, uint32_t k, uint32_t a, uint32_t b, uint32_t i) {
    const uint32_t sum = a + b - i;
    double ways[FRAME_BITS + 1] = {1.0}, bases = 1.0, all = 0.0;
    if (k == 0) {
        return 0;
    }
    for (uint32_t j = 0; j < k; j++) {
        for (uint32_t e = min_u32(j, n - sum) + 1; e-- > 0;) {
            const double inside = power_of_two((int)(sum + e) - (int)n);
            const double met = power_of_two((int)(a + j) - (int)n) +
                               power_of_two((int)(b + j) - (int)n) -
                               power_of_two((int)(a + b + 2 * j) - (int)(sum + e) - (int)n);
            ways[e + 1] += ways[e] * (1.0 - inside);
            ways[e] *= inside > met ? inside - met : 0.0;
        }
        bases *= 1.0 - power_of_two((int)j - (int)k);
    }
    for (uint32_t e = 0; e <= k && e <= n - sum; e++) {
        all += ways[e];
    }
    return (uint32_t)((int)(k * n) - (int)(k * k) + exponent_of(all / bases * (1.0 + 1e-9)));
}

static void append(trip_basis *result, lilac_f2_basis *known, uint32_t most, const vectors *from) {
    for (uint32_t j = 0; j < from->count && result->count < most; j++) {
        if (lilac_f2_basis_add(known, from->vector[j], 0)) {
            result->vector[result->count++] = from->vector[j];
        }
    }
}

/* Where both sides access less than a word: the rest of the word, of what both reach if possible.
 */
static void fill_word(trip_basis *result, builder *b, vectors *u, vectors *v, uint32_t most) {
    split s;
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    vectors added = {0};
    const uint32_t first = result->count;
    split_spaces(&s, b, u, v, FRAME_BITS);
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

/* Banks and segments, given the low directions. */
static void place_segments(trip_basis *result, builder *b, vectors *reached) {
    const trip_scale *scale = b->scale;
    const uint32_t all = (uint32_t)__builtin_popcount(b->pair->whole) - b->pair->round_bits;
    const uint32_t segments = segment_bits(b->pair, scale);
    vectors u = {0}, v = *reached, pairs = {0}, complement = {0};
    split s;
    lilac_f2_basis known;
    lilac_f2_basis_init(&known);
    if (b->own == LILAC_PLAN_VECTOR) {
        u.count = lilac_plan_trip_lanes(scale, b->owner, b->pair->owner, b->low);
        memcpy(u.vector, b->owner->within, u.count * sizeof u.vector[0]);
    } else {
        reach_matrix(b, &u, b->owner, b->own, result->half[b->pair->owner]);
    }
    if (result->count < scale->word_bits && result->count < all) {
        fill_word(result, b, &u, &v, min_u32(scale->word_bits, all));
    }
    const uint32_t word = result->count - b->low; /* vectors of the word that were filled in */
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

/* The low directions, and what the other side reaches with them. */
static bool place(trip_basis *result, builder *b, vectors *reached) {
    const uint32_t owner = b->pair->owner;
    if (!place_low(b)) {
        return false;
    }
    for (uint32_t side = 0; side < 2; side++) {
        result->half[side] = 0;
        if (b->way->instruction[side] == LILAC_PLAN_MATRIX_TRANSPOSED) {
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

bool lilac_plan_swizzle(trip_basis *result, const trip_pair *pair, const trip_way *way,
                        const trip_scale *scale) {
    const uint32_t own = pair->owner, all = (uint32_t)__builtin_popcount(pair->whole);
    const uint32_t most = above(all - pair->round_bits - segment_bits(pair, scale), way->low[own]);
    builder b, natural;
    vectors v, natural_v;
    memset(&b, 0, sizeof b);
    b.pair = pair;
    b.way = way;
    b.scale = scale;
    b.owner = &pair->side[own];
    b.other = &pair->side[1 - own];
    b.own = way->instruction[own];
    b.others = way->instruction[1 - own];
    b.low = way->low[own];
    b.other_low = way->low[1 - own];
    assert(b.low >= b.other_low && b.low <= MOST_LOW);
    natural = b;
    natural.natural = true;
    bool is_natural = place(result, &natural, &natural_v);
    const uint32_t reached = is_natural ? dimension(&natural_v) : UINT32_MAX;
    if (reached > most && b.low > b.other_low) {
        trip_basis other;
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
