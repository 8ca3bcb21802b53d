/* The packing of elements narrower than a word for shuffles.
 *
 * The registers that share a word during a shuffle are a subspace of the registers of distance 0.
 * The cheapest subspace needs few byte permutes before and after the shuffle. Registers that share
 * words in source and target are therefore preferred, then registers that a map changes anyway. If
 * the registers of one target word come from several lanes, an alternative is to shuffle the
 * source's words unchanged, once for each of these lanes, and to select bytes after the shuffle.
 * The price decides.
 */
#include "factors.h"

#include <string.h>

typedef lilac_plan_origins origins;
typedef lilac_plan_factors factors;

/* ---- words ------------------------------------------------------------------------------- */

/* A basis of the registers between the maps, in terms of the target's registers and the additional
 * ones: `packed` vectors that number the places in a word (0: an empty place), then the vectors
 * that number words. */
typedef struct packing {
    uint32_t packed, count;
    uint32_t vector[MAX_REGISTERS];
} packing;

static void widen(uint64_t *to, const uint32_t *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

static uint32_t kept_of(const factors *f, const origins *d, uint32_t r) {
    return lilac_plan_sum(f->kept, r & ((UINT32_C(1) << d->to_bits) - 1)) ^
           lilac_plan_sum(f->extra, r >> d->to_bits);
}

static uint32_t distance_of(const factors *f, const origins *d, uint32_t r) {
    return lilac_plan_sum(f->distance, r & ((UINT32_C(1) << d->to_bits) - 1));
}

void lilac_plan_put_unpacked(lilac_plan_shuffle *s, const factors *f, const origins *d) {
    s->register_bits = d->to_bits + f->extra_count;
    widen(s->kept, f->kept, d->to_bits);
    widen(s->kept + d->to_bits, f->extra, f->extra_count);
    widen(s->distance, f->distance, d->to_bits);
    for (uint32_t i = 0; i < d->to_bits; i++) {
        s->taken[i] = UINT64_C(1) << i;
    }
    widen(s->before, f->send, d->thread_bits);
    widen(s->lane, f->lane, d->thread_bits);
    widen(s->after, f->receive, d->thread_bits);
}

static void put_packed(lilac_plan_shuffle *s, const factors *f, const origins *d,
                       const packing *p) {
    lilac_f2_basis basis;
    lilac_f2_basis_init(&basis);
    s->register_bits = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->vector[i] == 0) {
            s->kept[i] = UINT64_C(1) << i;
            continue;
        }
        (void)lilac_f2_basis_add(&basis, p->vector[i], UINT64_C(1) << i);
        s->kept[i] = kept_of(f, d, p->vector[i]);
        s->distance[i] = distance_of(f, d, p->vector[i]);
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_f2_basis_reduce(&basis, UINT64_C(1) << i, &s->taken[i]);
    }
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        (void)lilac_f2_basis_reduce(&basis, f->receive[i], &s->after[i]);
    }
    widen(s->before, f->send, d->thread_bits);
    widen(s->lane, f->lane, d->thread_bits);
}

/* Moves changes of places from the map before the shuffle to the map after it, where they can be
 * merged with other byte permutes: renumbers the registers between the maps. */
static void move_places_late(lilac_plan_shuffle *s, uint32_t packed) {
    const uint64_t places = (UINT64_C(1) << packed) - 1;
    uint64_t part[MAX_REGISTERS] = {0}, moved = 0;
    for (uint32_t i = 0; i < packed; i++) {
        if (i >= s->register_bits || s->kept[i] != UINT64_C(1) << i) {
            return;
        }
    }
    for (uint32_t i = packed; i < s->register_bits; i++) {
        part[i] = s->kept[i] & places;
        moved |= part[i] != 0 ? UINT64_C(1) << i : 0;
        s->kept[i] ^= part[i];
    }
    for (uint32_t i = 0; i < s->after_bits && moved != 0; i++) {
        for (uint64_t rest = s->taken[i] & moved; rest != 0; rest &= rest - 1) {
            s->taken[i] ^= part[__builtin_ctzll(rest)];
        }
    }
    for (uint32_t i = 0; i < s->lane_bits + s->warp_bits && moved != 0; i++) {
        for (uint64_t rest = s->after[i] & moved; rest != 0; rest &= rest - 1) {
            s->after[i] ^= part[__builtin_ctzll(rest)];
        }
    }
}

/* At one end of the shuffle: the span of the registers that number places in words, and its sum
 * with the directions of the map at that end. */
typedef struct packing_end {
    lilac_f2_basis places, reached;
} packing_end;

static void find_end(packing_end *end, uint32_t places, const uint32_t *shear, uint32_t count) {
    lilac_f2_basis_init(&end->places);
    lilac_f2_basis_init(&end->reached);
    for (uint32_t i = 0; i < places; i++) {
        (void)lilac_f2_basis_add(&end->places, UINT64_C(1) << i, 0);
        (void)lilac_f2_basis_add(&end->reached, UINT64_C(1) << i, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (shear[i] != 0) {
            (void)lilac_f2_basis_add(&end->reached, shear[i], 0);
        }
    }
}

typedef struct chooser {
    const factors *f;
    const origins *d;
    uint32_t still[MAX_REGISTERS], still_count; /* basis of the registers of distance 0 */
    uint32_t wanted, count, vector[2];
    uint32_t postponed; /* places of the source that are additional registers already */
    bool scattered;     /* the elements of one target word come from several lanes */
    bool source_first;  /* prefers registers that the map before the shuffle reaches */
    lilac_f2_basis chosen;
} chooser;

/* Chooses registers of distance 0 that lie in `target` and come from `source` (NULL: no condition),
 * until the wanted number is reached. */
static void take_within(chooser *c, const lilac_f2_basis *target, const lilac_f2_basis *source) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < c->still_count && c->count < c->wanted; i++) {
        uint32_t r = c->still[i];
        uint64_t used, rest = 0;
        if (target != NULL) {
            rest |= lilac_f2_basis_reduce(target, r, &used);
        }
        if (source != NULL) {
            rest |= lilac_f2_basis_reduce(source, kept_of(c->f, c->d, r), &used) << 32;
        }
        if (rest != 0 && lilac_f2_basis_add(&span, rest, UINT64_C(1) << i)) {
            continue;
        }
        for ((void)lilac_f2_basis_reduce(&span, rest, &used); used != 0; used &= used - 1) {
            r ^= c->still[__builtin_ctzll(used)];
        }
        if (lilac_f2_basis_add(&c->chosen, r, 0)) {
            c->vector[c->count++] = r;
        }
    }
}

static void find_still(chooser *c, uint32_t registers) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    c->still_count = 0;
    for (uint32_t i = 0; i < registers; i++) {
        const uint32_t distance = distance_of(c->f, c->d, UINT32_C(1) << i);
        uint64_t used = 0;
        if (distance != 0 && lilac_f2_basis_add(&span, distance, UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_f2_basis_reduce(&span, distance, &used);
        c->still[c->still_count++] = (uint32_t)used | UINT32_C(1) << i;
    }
}

static uint32_t place_among(uint32_t r, uint32_t packed) {
    return r != 0 && r >> packed == 0 && (r & (r - 1)) == 0 ? (uint32_t)__builtin_ctz(r) : packed;
}

/* Assigns places to the chosen registers and to the postponed places. Elements keep their place in
 * the target, or their place in the source if the map after the shuffle changes places anyway. */
static void put_places(packing *p, const chooser *c, uint32_t registers) {
    uint32_t remaining[4], remaining_count = 0;
    memset(p->vector, 0, sizeof p->vector);
    for (uint32_t i = 0; i < c->count + c->postponed; i++) {
        const bool chosen = i < c->count;
        const uint32_t r = chosen ? c->vector[i] : UINT32_C(1) << (registers + i - c->count);
        const uint32_t from = place_among(kept_of(c->f, c->d, r), p->packed);
        const uint32_t to = chosen ? place_among(r, p->packed) : p->packed;
        const uint32_t place = to == p->packed || (c->scattered && from != p->packed) ? from : to;
        if (place < p->packed && p->vector[place] == 0) {
            p->vector[place] = r;
        } else {
            remaining[remaining_count++] = r;
        }
    }
    for (uint32_t i = 0; i < p->packed && remaining_count != 0; i++) {
        if (p->vector[i] == 0) {
            p->vector[i] = remaining[--remaining_count];
        }
    }
    p->count = p->packed;
}

/* Chooses the registers that share words between the maps. `settled` is set if the preference for
 * source or target makes no difference. False: too many registers. */
static bool pack(packing *p, chooser *c, uint32_t packed, bool *settled) {
    const factors *f = c->f;
    const origins *d = c->d;
    packing_end target, source;
    const bool source_first = c->source_first;
    const uint32_t registers = d->to_bits + f->extra_count - c->postponed;
    c->wanted = packed - c->postponed;
    lilac_f2_basis_init(&c->chosen);
    p->packed = packed;
    find_end(&target, packed < d->to_bits ? packed : d->to_bits, f->receive, d->thread_bits);
    find_end(&source, packed, f->send, d->thread_bits);
    find_still(c, registers);
    take_within(c, &target.places, &source.places);
    take_within(c, &target.reached, &source.reached);
    *settled = c->count == c->wanted;
    take_within(c, source_first ? NULL : &target.reached, source_first ? &source.reached : NULL);
    take_within(c, source_first ? &target.reached : NULL, source_first ? NULL : &source.reached);
    take_within(c, NULL, NULL);
    put_places(p, c, registers);
    for (uint32_t n = 0; n < registers; n++) {
        const uint32_t i = registers > packed ? (n + packed) % registers : n;
        if (lilac_f2_basis_add(&c->chosen, UINT64_C(1) << i, 0)) {
            if (p->count == MAX_REGISTERS) {
                return false;
            }
            p->vector[p->count++] = UINT32_C(1) << i;
        }
    }
    return true;
}

/* Whether words consist of the same elements in the source and in the target. */
static bool words_agree(const factors *f, const origins *d, uint32_t packed) {
    bool agree = d->to_bits >= packed;
    for (uint32_t i = 0; agree && i < packed; i++) {
        agree = f->distance[i] == 0 && f->kept[i] >> packed == 0;
    }
    return agree;
}

/* The cycles of an exchange, without the savings from predicates that its two maps share. */
static uint64_t estimate(const lilac_plan_shuffle *s, uint32_t packed, const lilac_arch *arch) {
    const uint32_t thread_bits = s->lane_bits + s->warp_bits;
    const uint32_t words = s->register_bits > packed ? s->register_bits - packed : 0;
    lilac_plan_map before, after;
    lilac_f2_basis span;
    uint32_t rank = 0;
    bool own_lane = true;
    lilac_plan_map_init(&before, packed, s->before_bits, s->register_bits, s->kept, thread_bits,
                        s->before);
    lilac_plan_map_init(&after, packed, s->register_bits, s->after_bits, s->taken, thread_bits,
                        s->after);
    const lilac_plan_count first = lilac_plan_estimate(&before);
    const lilac_plan_count second = lilac_plan_estimate(&after);
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < words; i++) {
        rank +=
            s->distance[packed + i] != 0 && lilac_f2_basis_add(&span, s->distance[packed + i], 0);
    }
    for (uint32_t i = 0; i < thread_bits; i++) {
        own_lane = own_lane && s->lane[i] == (i < s->lane_bits ? UINT64_C(1) << i : 0);
    }
    const uint64_t still = own_lane ? (UINT64_C(1) << words) >> rank : 0;
    const lilac_plan_price price = {.shuffles = (UINT64_C(1) << words) - still,
                                    .selects = first.selects + second.selects,
                                    .permutes = first.permutes + second.permutes};
    return lilac_plan_price_cycles(&price, LILAC_PLAN_BARRIER_WARP, arch);
}

/* Whether registers that share a word in the target come from several lanes, or fewer registers
 * than a word holds have distance 0. */
static bool comes_from_lanes(const factors *f, const origins *d, uint32_t packed) {
    uint32_t still = d->to_bits + f->extra_count;
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (f->distance[i] != 0) {
            still -= lilac_f2_basis_add(&span, f->distance[i], 0);
            if (i < packed) {
                return true;
            }
        }
    }
    return still < packed;
}

bool lilac_plan_put_packed(lilac_plan_shuffle *result, const factors *received, const origins *d,
                           uint32_t element_bits, const lilac_arch *arch) {
    const uint32_t packed = lilac_plan_packed(element_bits);
    const uint32_t places = packed < d->from_bits ? packed : d->from_bits;
    const lilac_plan_shuffle like = *result;
    uint64_t least = UINT64_MAX;
    factors f = *received;
    lilac_plan_find_senders(&f, d, 0);
    if (words_agree(&f, d, packed)) {
        lilac_plan_put_unpacked(result, &f, d);
        move_places_late(result, packed);
        return true;
    }
    /* Only for words from several lanes can it be cheaper to shuffle whole words more than once. */
    const bool scattered = comes_from_lanes(&f, d, packed);
    for (uint32_t postponed = 0; postponed <= (scattered ? places : 0); postponed++) {
        bool settled = false;
        if (d->to_bits + received->extra_count + postponed > MAX_REGISTERS) {
            break;
        }
        if (postponed != 0) {
            f = *received;
            lilac_plan_find_senders(&f, d, (UINT32_C(1) << postponed) - 1);
        }
        for (uint32_t source_first = 0; source_first < 2 && !settled; source_first++) {
            lilac_plan_shuffle s = like;
            packing p;
            chooser c = {.f = &f,
                         .d = d,
                         .postponed = f.extra_count - received->extra_count,
                         .scattered = scattered,
                         .source_first = source_first != 0};
            if (!pack(&p, &c, packed, &settled)) {
                continue;
            }
            put_packed(&s, &f, d, &p);
            move_places_late(&s, packed);
            const uint64_t cycles = estimate(&s, packed, arch);
            if (cycles < least) {
                least = cycles;
                *result = s;
            }
        }
    }
    return least != UINT64_MAX;
}
