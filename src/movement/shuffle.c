/* The exchange within warps from one layout to another.
 *
 * Which element each place of the target takes is a linear map of places,
 *
 *     D = ⎡Drr  Drt⎤   register, lane of the source  ←  register, thread of the target,   A·D = B
 *         ⎣Dlr  Dlt⎦
 *
 * where a solution with the thread's own lane is taken wherever there is one: on the lanes x with
 * A(x) ⊕ B(x) among A's registers, and for target registers that A has in the same lane.
 *
 * A word-wide shuffle can send one register of a lane at a time, and what the lane then reads from,
 * Λ = Dlt ⊕ Dlr·H, must tell apart all that need different registers. H, which chooses the register
 * that a thread receives into, is there for the lanes x of ker Dlt that need some:
 *
 *     a copy in another lane            D x ⊕= κ, κ in the kernel of A
 *     the thread has it already         H x = h with D h = D x
 *     a register from another lane      H x = h with Dlr·h ∉ im Λ, by choice = x so that Λ = 1
 *     none of these                     H x = a register more, selected from after the shuffle
 *
 * Then the map before, G on im Λ, is Drt ⊕ Drr·H, and registers come from K = Drr ⊕ G·Dlr. For an
 * invertible D that is [1 H; 0 1]·[K 0; Dlr Λ]·[1 G; 0 1], and H has the least rank, dim ker Dlt.
 *
 * Elements narrower than a word: a subspace of registers shares words on the way. It must have
 * distance 0; the cheapest is one that needs few byte permutes at either end, so registers that
 * share words in source and target come first, then those that a map reaches anyway. Where
 * registers that share a word in the target come from several lanes, another way is to shuffle the
 * source's words as they are, once for each of these lanes, and to pick bytes at the end. The price
 * decides.
 */
#include "plan.h"
#include "stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef lilac_movement_echelon echelon;

enum {
    LANE_SHIFT = 16, /* of lane bits in a place: register | lane << 16 */
    MOST_REGISTERS = LILAC_MOVEMENT_MAX_REGISTER_BITS,
    MOST_LANES = LILAC_MOVEMENT_MAX_LANE_BITS,
    MOST_THREADS = LILAC_MOVEMENT_MAX_THREAD_BITS
};

static bool refuse(lilac_reason *why, const char *format, ...) LILAC_PRINTF(2, 3);

static bool refuse(lilac_reason *why, const char *format, ...) {
    if (why != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why->text, sizeof why->text, format, arguments);
        va_end(arguments);
    }
    return false;
}

static uint32_t reg_of(uint32_t at) {
    return at & ((UINT32_C(1) << LANE_SHIFT) - 1);
}

static uint32_t lane_of(uint32_t at) {
    return at >> LANE_SHIFT;
}

/* ---- where everything comes from: D ------------------------------------------------------ */

typedef struct side {
    uint32_t bits[LEVELS];
    const uint64_t *column[LEVELS];
} side;

static void find_side(side *result, const lilac_layout *layout) {
    uint32_t start = 0;
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        for (uint32_t level = 0; level < LEVELS; level++) {
            if (memcmp(&layout->in[i].name, lilac_movement_levels[level].name,
                       sizeof layout->in[i].name) == 0) {
                result->bits[level] = layout->in[i].bits;
                result->column[level] = layout->columns + start;
            }
        }
        start += layout->in[i].bits;
    }
}

typedef struct origins {
    uint32_t from_bits, to_bits, lane_bits, thread_bits;
    uint32_t reg[MOST_REGISTERS]; /* places that the target's registers come from */
    uint32_t thread[MOST_THREADS];
    uint32_t copies[MOST_LANES]; /* basis of the kernel of A */
    uint32_t copy_count;
} origins;

static bool find_origins(origins *d, const side *a, const side *b, lilac_reason *why) {
    echelon registers, all, moved;
    uint64_t used;
    registers.pivots = moved.pivots = 0;
    d->from_bits = a->bits[REGISTER];
    d->to_bits = b->bits[REGISTER];
    d->lane_bits = a->bits[LANE];
    d->thread_bits = a->bits[LANE] + a->bits[WARP];
    d->copy_count = 0;
    for (uint32_t i = 0; i < d->from_bits; i++) {
        (void)lilac_movement_insert(&registers, a->column[REGISTER][i], UINT64_C(1) << i);
    }
    all.pivots = registers.pivots;
    for (uint64_t rest = all.pivots; rest != 0; rest &= rest - 1) {
        const uint32_t top = (uint32_t)__builtin_ctzll(rest);
        all.vector[top] = registers.vector[top];
        all.mask[top] = registers.mask[top];
    }
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        const uint64_t own = UINT64_C(1) << (LANE_SHIFT + i);
        if (!lilac_movement_insert(&all, a->column[LANE][i], own)) {
            (void)lilac_movement_reduce(&all, a->column[LANE][i], &used);
            d->copies[d->copy_count++] = (uint32_t)(used | own);
        }
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (lilac_movement_reduce(&all, b->column[REGISTER][i], &used) != 0) {
            return refuse(why, "register bit %u comes from another warp", i);
        }
        d->reg[i] = (uint32_t)used;
    }
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        /* In `moved`: what lanes differ by, beyond the registers, by lanes (high half) and the
         * registers taken off (low half). */
        const uint64_t own = UINT64_C(1) << (LANE_SHIFT + i);
        uint64_t taken;
        const uint64_t rest =
            lilac_movement_reduce(&registers, a->column[LANE][i] ^ b->column[LANE][i], &taken);
        if (rest != 0 && lilac_movement_insert(&moved, rest, taken | own)) {
            if (lilac_movement_reduce(&all, b->column[LANE][i], &used) != 0) {
                return refuse(why, "lane bit %u comes from another warp", i);
            }
            d->thread[i] = (uint32_t)used;
            continue;
        }
        (void)lilac_movement_reduce(&moved, rest, &used);
        used ^= taken | own;
        d->thread[i] = (uint32_t)used;
        for (uint32_t others = lane_of((uint32_t)used) & ~(UINT32_C(1) << i); others != 0;
             others &= others - 1) {
            d->thread[i] ^= d->thread[__builtin_ctz(others)];
        }
    }
    for (uint32_t i = 0; i < a->bits[WARP]; i++) {
        if (lilac_movement_reduce(&all, a->column[WARP][i] ^ b->column[WARP][i], &used) != 0) {
            return refuse(why, "warp bit %u: elements move between warps", i);
        }
        d->thread[d->lane_bits + i] = (uint32_t)used;
    }
    return true;
}

static bool check_sides(const side *a, const side *b, const lilac_layout *source,
                        const lilac_layout *target, lilac_reason *why) {
    if (source->out_bits != target->out_bits || a->bits[LANE] != b->bits[LANE] ||
        a->bits[WARP] != b->bits[WARP] || a->bits[BLOCK] != b->bits[BLOCK]) {
        return refuse(why, "the layouts differ in elements, lanes, warps or blocks");
    }
    if (a->bits[REGISTER] > MOST_REGISTERS || b->bits[REGISTER] > MOST_REGISTERS ||
        a->bits[LANE] > MOST_LANES || a->bits[WARP] > LILAC_MOVEMENT_MAX_WARP_BITS) {
        return refuse(why, "more than 2^%d registers of a thread, 2^%d lanes or 2^%d warps",
                      MOST_REGISTERS, MOST_LANES, LILAC_MOVEMENT_MAX_WARP_BITS);
    }
    for (uint32_t i = 0; i < a->bits[BLOCK]; i++) {
        if (a->column[BLOCK][i] != b->column[BLOCK][i]) {
            return refuse(why, "block bit %u: elements move between blocks", i);
        }
    }
    return true;
}

/* ---- the factors ------------------------------------------------------------------------- */

/* In target registers, and `extra_count` more above them. */
typedef struct factors {
    uint32_t extra_count, extra[MOST_REGISTERS]; /* the source registers that those come from */
    uint32_t receive[MOST_THREADS];              /* H */
    uint32_t lane[MOST_THREADS];                 /* Λ */
    uint32_t distance[MOST_REGISTERS];           /* Dlr */
    uint32_t send[MOST_THREADS];                 /* G */
    uint32_t kept[MOST_REGISTERS];               /* K */
} factors;

/* The lanes of ker Dlt that need different registers: x, and the functional that is 1 on x and 0 on
 * the others, on the rest of the kernel and on a complement of it. */
typedef struct needs {
    uint32_t count, x[MOST_LANES], only[MOST_LANES];
} needs;

static void find_needs(needs *result, echelon *reached, const origins *d) {
    echelon registers;
    uint32_t kernel_only[MOST_LANES], x[MOST_LANES], kernel = 0;
    reached->pivots = registers.pivots = 0;
    result->count = 0;
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        const uint32_t lane = lane_of(d->thread[i]);
        uint64_t used = 0;
        if (lane != 0 && lilac_movement_insert(reached, lane, UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_movement_reduce(reached, lane, &used);
        const uint32_t at = (uint32_t)used | UINT32_C(1) << i;
        const uint32_t value = reg_of(lilac_movement_sum(d->thread, at));
        if (value != 0 && lilac_movement_insert(&registers, value, UINT64_C(1) << kernel)) {
            x[kernel] = at;
            kernel_only[kernel++] = UINT32_C(1) << i;
            continue;
        }
        /* x ⊕ those used reads nothing different: its own bit counts for each of them. */
        (void)lilac_movement_reduce(&registers, value, &used);
        for (used = value == 0 ? 0 : used; used != 0; used &= used - 1) {
            kernel_only[__builtin_ctzll(used)] |= UINT32_C(1) << i;
        }
    }
    result->count = kernel;
    memcpy(result->x, x, kernel * sizeof x[0]);
    memcpy(result->only, kernel_only, kernel * sizeof x[0]);
}

/* Adds `value` to the entries of the threads where the functional is 1. */
static void add_where(uint32_t *entries, uint32_t only, uint32_t value) {
    for (; only != 0; only &= only - 1) {
        entries[__builtin_ctz(only)] ^= value;
    }
}

static bool serve_by_copy(origins *d, const needs *n, uint32_t k, echelon *reached) {
    for (uint32_t i = 0; i < d->copy_count; i++) {
        if (lilac_movement_insert(reached, lane_of(d->copies[i]), 0)) {
            add_where(d->thread, n->only[k], d->copies[i]);
            return true;
        }
    }
    return false;
}

static bool serve_by_own(const origins *d, const needs *n, uint32_t k, const echelon *registers,
                         factors *f) {
    uint64_t used;
    const uint32_t value = reg_of(lilac_movement_sum(d->thread, n->x[k]));
    if (lilac_movement_reduce(registers, value, &used) != 0) {
        return false;
    }
    add_where(f->receive, n->only[k], (uint32_t)used);
    return true;
}

/* By a register of which some lane is not reached otherwise; `exact`: from lane ⊕ x. */
static bool serve_by_lane(const origins *d, const needs *n, uint32_t k, bool exact,
                          const echelon *distances, echelon *reached, factors *f) {
    uint64_t used;
    if (exact) {
        if (lilac_movement_reduce(distances, n->x[k], &used) != 0 ||
            !lilac_movement_insert(reached, n->x[k], 0)) {
            return false;
        }
        add_where(f->receive, n->only[k], (uint32_t)used);
        return true;
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (lane_of(d->reg[i]) != 0 && lilac_movement_insert(reached, lane_of(d->reg[i]), 0)) {
            add_where(f->receive, n->only[k], UINT32_C(1) << i);
            return true;
        }
    }
    return false;
}

static bool find_receivers(factors *f, origins *d, lilac_reason *why) {
    needs n;
    echelon reached, registers, distances;
    bool served[MOST_LANES] = {false};
    memset(f->receive, 0, sizeof f->receive);
    f->extra_count = 0;
    find_needs(&n, &reached, d);
    if (n.count == 0) {
        return true;
    }
    registers.pivots = distances.pivots = 0;
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_movement_insert(&registers, d->reg[i], UINT64_C(1) << i);
        if (lane_of(d->reg[i]) != 0) {
            (void)lilac_movement_insert(&distances, lane_of(d->reg[i]), UINT64_C(1) << i);
        }
    }
    for (uint32_t k = 0; k < n.count; k++) {
        served[k] = serve_by_copy(d, &n, k, &reached) || serve_by_own(d, &n, k, &registers, f) ||
                    serve_by_lane(d, &n, k, true, &distances, &reached, f);
    }
    for (uint32_t k = 0; k < n.count; k++) {
        if (served[k] || serve_by_lane(d, &n, k, false, &distances, &reached, f)) {
            continue;
        }
        if (d->to_bits + f->extra_count == MOST_REGISTERS) {
            return refuse(why, "more than 2^%d registers between shuffles", MOST_REGISTERS);
        }
        f->extra[f->extra_count] = reg_of(lilac_movement_sum(d->thread, n.x[k]));
        add_where(f->receive, n.only[k], UINT32_C(1) << (d->to_bits + f->extra_count++));
    }
    return true;
}

/* The source register of a register in between, but for what is sent. */
static uint32_t plain_register(const origins *d, const factors *f, uint32_t r) {
    uint32_t sum = reg_of(lilac_movement_sum(d->reg, r & ((UINT32_C(1) << d->to_bits) - 1)));
    for (uint32_t extra = r >> d->to_bits; extra != 0; extra &= extra - 1) {
        sum ^= f->extra[__builtin_ctz(extra)];
    }
    return sum;
}

/* A register of the target that the lane itself has as its register `place`; 0: none. */
static uint32_t register_that_stays(const origins *d, uint32_t place) {
    uint64_t used;
    echelon span;
    span.pivots = 0;
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_movement_insert(&span, d->reg[i], UINT64_C(1) << i);
    }
    return lilac_movement_reduce(&span, place, &used) == 0 ? (uint32_t)used : 0;
}

/* Λ, G and K from H. Of the places in words (`postponed`, a mask of source register bits) a thread
 * sends all, and they are chosen after the shuffle: by the register that comes from there in the
 * same lane, or else by one more in between. */
static void find_senders(factors *f, const origins *d, uint32_t postponed) {
    echelon span;
    uint32_t value[MOST_THREADS];
    bool own = true;
    for (uint32_t i = 0; i < d->to_bits; i++) {
        f->distance[i] = lane_of(d->reg[i]);
    }
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        const uint32_t low = f->receive[i] & ((UINT32_C(1) << d->to_bits) - 1);
        f->lane[i] = lane_of(d->thread[i]) ^ lilac_movement_sum(f->distance, low);
        value[i] = reg_of(d->thread[i]) ^ plain_register(d, f, f->receive[i]);
        own = own && f->lane[i] == (i < d->lane_bits ? UINT32_C(1) << i : 0);
    }
    for (; postponed != 0; postponed &= postponed - 1) {
        const uint32_t place = postponed & (~postponed + 1);
        uint32_t reg = register_that_stays(d, place);
        if (reg == 0) {
            reg = UINT32_C(1) << (d->to_bits + f->extra_count);
            f->extra[f->extra_count++] = place;
        }
        for (uint32_t i = 0; i < d->thread_bits; i++) {
            f->receive[i] ^= (value[i] & place) != 0 ? reg : 0;
            value[i] &= ~place;
        }
    }
    if (own) {
        memcpy(f->send, value, d->thread_bits * sizeof value[0]);
    } else {
        span.pivots = 0;
        for (uint32_t i = 0; i < d->thread_bits; i++) {
            const uint32_t warp = i < d->lane_bits ? 0 : UINT32_C(1) << i;
            const uint32_t at = f->lane[i] | warp;
            if (at != 0) {
                (void)lilac_movement_insert(&span, at, UINT64_C(1) << i);
            }
        }
        for (uint32_t i = 0; i < d->thread_bits; i++) {
            uint64_t used;
            f->send[i] = 0;
            if (!lilac_movement_insert(&span, UINT64_C(1) << i, 0)) {
                (void)lilac_movement_reduce(&span, UINT64_C(1) << i, &used);
                f->send[i] = lilac_movement_sum(value, (uint32_t)used);
            }
        }
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        f->kept[i] = reg_of(d->reg[i]) ^ lilac_movement_sum(f->send, f->distance[i]);
    }
}

/* ---- words ------------------------------------------------------------------------------- */

/* A basis of the registers in between, in terms of the target's registers and those beyond them:
 * `packed` vectors that number the places in a word (0: holds nothing), then those of words. */
typedef struct packing {
    uint32_t packed, count;
    uint32_t vector[MOST_REGISTERS];
} packing;

static void widen(uint64_t *to, const uint32_t *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
}

static uint32_t kept_of(const factors *f, const origins *d, uint32_t r) {
    return lilac_movement_sum(f->kept, r & ((UINT32_C(1) << d->to_bits) - 1)) ^
           lilac_movement_sum(f->extra, r >> d->to_bits);
}

static uint32_t distance_of(const factors *f, const origins *d, uint32_t r) {
    return lilac_movement_sum(f->distance, r & ((UINT32_C(1) << d->to_bits) - 1));
}

/* Registers between the maps as the target numbers them. */
static void put_as_they_are(lilac_movement_shuffle *s, const factors *f, const origins *d) {
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

static void put_packed(lilac_movement_shuffle *s, const factors *f, const origins *d,
                       const packing *p) {
    echelon basis;
    basis.pivots = 0;
    s->register_bits = p->count;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->vector[i] == 0) {
            s->kept[i] = UINT64_C(1) << i;
            continue;
        }
        (void)lilac_movement_insert(&basis, p->vector[i], UINT64_C(1) << i);
        s->kept[i] = kept_of(f, d, p->vector[i]);
        s->distance[i] = distance_of(f, d, p->vector[i]);
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_movement_reduce(&basis, UINT64_C(1) << i, &s->taken[i]);
    }
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        (void)lilac_movement_reduce(&basis, f->receive[i], &s->after[i]);
    }
    widen(s->before, f->send, d->thread_bits);
    widen(s->lane, f->lane, d->thread_bits);
}

/* Words whose elements would change places before the shuffle, all in one way, do so after it,
 * where more may happen to them: the registers between the maps are numbered so. */
static void move_places_late(lilac_movement_shuffle *s, uint32_t packed) {
    const uint64_t places = (UINT64_C(1) << packed) - 1;
    uint64_t part[MOST_REGISTERS] = {0}, moved = 0;
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

/* The registers that places in words number at one end (I), and those with what the map at that
 * end reaches as well. */
typedef struct packing_end {
    echelon places, reached;
} packing_end;

static void find_end(packing_end *end, uint32_t places, const uint32_t *shear, uint32_t count) {
    end->places.pivots = end->reached.pivots = 0;
    for (uint32_t i = 0; i < places; i++) {
        (void)lilac_movement_insert(&end->places, UINT64_C(1) << i, 0);
        (void)lilac_movement_insert(&end->reached, UINT64_C(1) << i, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (shear[i] != 0) {
            (void)lilac_movement_insert(&end->reached, shear[i], 0);
        }
    }
}

typedef struct chooser {
    const factors *f;
    const origins *d;
    uint32_t still[MOST_REGISTERS], still_count; /* basis of the registers of distance 0 */
    uint32_t wanted, count, vector[2];
    echelon chosen;
} chooser;

/* Takes, up to the number wanted, registers that stay in their lane and lie within `target` and
 * come from within `source` (NULL: anywhere). */
static void take_within(chooser *c, const echelon *target, const echelon *source) {
    echelon span;
    span.pivots = 0;
    for (uint32_t i = 0; i < c->still_count && c->count < c->wanted; i++) {
        uint32_t r = c->still[i];
        uint64_t used, rest = 0;
        if (target != NULL) {
            rest |= lilac_movement_reduce(target, r, &used);
        }
        if (source != NULL) {
            rest |= lilac_movement_reduce(source, kept_of(c->f, c->d, r), &used) << 32;
        }
        if (rest != 0 && lilac_movement_insert(&span, rest, UINT64_C(1) << i)) {
            continue;
        }
        for ((void)lilac_movement_reduce(&span, rest, &used); used != 0; used &= used - 1) {
            r ^= c->still[__builtin_ctzll(used)];
        }
        if (lilac_movement_insert(&c->chosen, r, 0)) {
            c->vector[c->count++] = r;
        }
    }
}

static void find_still(chooser *c, uint32_t registers) {
    echelon span;
    span.pivots = 0;
    c->still_count = 0;
    for (uint32_t i = 0; i < registers; i++) {
        const uint32_t distance = distance_of(c->f, c->d, UINT32_C(1) << i);
        uint64_t used = 0;
        if (distance != 0 && lilac_movement_insert(&span, distance, UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_movement_reduce(&span, distance, &used);
        c->still[c->still_count++] = (uint32_t)used | UINT32_C(1) << i;
    }
}

static uint32_t place_among(uint32_t r, uint32_t packed) {
    return r != 0 && r >> packed == 0 && (r & (r - 1)) == 0 ? (uint32_t)__builtin_ctz(r) : packed;
}

/* Puts what was chosen, and the postponed places, where elements keep their places: those that they
 * have in the target, or in the source when the map after the shuffle moves places anyway. */
static void put_places(packing *p, const chooser *c, uint32_t registers, uint32_t postponed,
                       bool as_source) {
    uint32_t left[4], left_count = 0;
    memset(p->vector, 0, sizeof p->vector);
    for (uint32_t i = 0; i < c->count + postponed; i++) {
        const bool mine = i < c->count;
        const uint32_t r = mine ? c->vector[i] : UINT32_C(1) << (registers + i - c->count);
        const uint32_t from = place_among(kept_of(c->f, c->d, r), p->packed);
        const uint32_t to = mine ? place_among(r, p->packed) : p->packed;
        const uint32_t place = to == p->packed || (as_source && from != p->packed) ? from : to;
        if (place < p->packed && p->vector[place] == 0) {
            p->vector[place] = r;
        } else {
            left[left_count++] = r;
        }
    }
    for (uint32_t i = 0; i < p->packed && left_count != 0; i++) {
        if (p->vector[i] == 0) {
            p->vector[i] = left[--left_count];
        }
    }
    p->count = p->packed;
}

/* Which registers share words between the maps. `postponed` of the places are those of the source,
 * already among the factors' extra registers; for the others, those that the target's side reaches
 * come first or those of the source's, which is all the same when `settled`. `scattered`: what a
 * word of the target holds comes from several lanes. False: too many registers. */
static bool pack(packing *p, const factors *f, const origins *d, uint32_t packed,
                 uint32_t postponed, bool scattered, bool source_first, bool *settled) {
    packing_end target, source;
    chooser c = {.f = f, .d = d, .wanted = packed - postponed};
    const uint32_t registers = d->to_bits + f->extra_count - postponed;
    c.chosen.pivots = 0;
    p->packed = packed;
    find_end(&target, packed < d->to_bits ? packed : d->to_bits, f->receive, d->thread_bits);
    find_end(&source, packed, f->send, d->thread_bits);
    find_still(&c, registers);
    take_within(&c, &target.places, &source.places);
    take_within(&c, &target.reached, &source.reached);
    *settled = c.count == c.wanted;
    take_within(&c, source_first ? NULL : &target.reached, source_first ? &source.reached : NULL);
    take_within(&c, source_first ? &target.reached : NULL, source_first ? NULL : &source.reached);
    take_within(&c, NULL, NULL);
    put_places(p, &c, registers, postponed, scattered);
    for (uint32_t n = 0; n < registers; n++) {
        const uint32_t i = registers > packed ? (n + packed) % registers : n;
        if (lilac_movement_insert(&c.chosen, UINT64_C(1) << i, 0)) {
            if (p->count == MOST_REGISTERS) {
                return false;
            }
            p->vector[p->count++] = UINT32_C(1) << i;
        }
    }
    return true;
}

/* ---- choosing ---------------------------------------------------------------------------- */

static void identity_renaming(lilac_movement_renaming *renaming, uint32_t bits) {
    memset(renaming, 0, sizeof *renaming);
    renaming->before_bits = renaming->bits = bits;
    for (uint32_t i = 0; i < bits; i++) {
        renaming->from[i] = UINT64_C(1) << i;
    }
}

/* Words are as the target and the source have them. */
static bool packed_alike(const factors *f, const origins *d, uint32_t packed) {
    bool alike = d->to_bits >= packed;
    for (uint32_t i = 0; alike && i < packed; i++) {
        alike = f->distance[i] == 0 && f->kept[i] >> packed == 0;
    }
    return alike;
}

/* What an exchange takes, but for what its two maps have in common. */
static uint64_t estimate(const lilac_movement_shuffle *s, uint32_t packed, const lilac_arch *arch) {
    const uint32_t thread_bits = s->lane_bits + s->warp_bits;
    const uint32_t words = s->register_bits > packed ? s->register_bits - packed : 0;
    lilac_movement_map before, after;
    echelon span;
    uint32_t rank = 0;
    bool own_lane = true;
    lilac_movement_map_init(&before, packed, s->before_bits, s->register_bits, s->kept, thread_bits,
                            s->before);
    lilac_movement_map_init(&after, packed, s->register_bits, s->after_bits, s->taken, thread_bits,
                            s->after);
    const lilac_movement_count first = lilac_movement_estimate(&before);
    const lilac_movement_count second = lilac_movement_estimate(&after);
    span.pivots = 0;
    for (uint32_t i = 0; i < words; i++) {
        rank += s->distance[packed + i] != 0 &&
                lilac_movement_insert(&span, s->distance[packed + i], 0);
    }
    for (uint32_t i = 0; i < thread_bits; i++) {
        own_lane = own_lane && s->lane[i] == (i < s->lane_bits ? UINT64_C(1) << i : 0);
    }
    const uint64_t still = own_lane ? (UINT64_C(1) << words) >> rank : 0;
    const lilac_movement_price price = {.shuffles = (UINT64_C(1) << words) - still,
                                        .selects = first.selects + second.selects,
                                        .permutes = first.permutes + second.permutes};
    return lilac_movement_price_cycles(&price, LILAC_MOVEMENT_BARRIER_WARP, arch);
}

/* Registers that share a word in the target, or all that might between the maps. */
static bool comes_from_lanes(const factors *f, const origins *d, uint32_t packed) {
    uint32_t still = d->to_bits + f->extra_count;
    echelon span;
    span.pivots = 0;
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (f->distance[i] != 0) {
            still -= lilac_movement_insert(&span, f->distance[i], 0);
            if (i < packed) {
                return true;
            }
        }
    }
    return still < packed;
}

static bool put_cheapest(lilac_movement_shuffle *result, const factors *received, const origins *d,
                         uint32_t element_bits, const lilac_arch *arch, lilac_reason *why) {
    const uint32_t packed = lilac_movement_packed(element_bits);
    const uint32_t places = packed < d->from_bits ? packed : d->from_bits;
    const lilac_movement_shuffle like = *result;
    uint64_t least = UINT64_MAX;
    factors f = *received;
    find_senders(&f, d, 0);
    if (packed_alike(&f, d, packed)) {
        put_as_they_are(result, &f, d);
        move_places_late(result, packed);
        return true;
    }
    /* Only what comes from several lanes is worth shuffling whole words for, more than once. */
    const bool scattered = comes_from_lanes(&f, d, packed);
    for (uint32_t postponed = 0; postponed <= (scattered ? places : 0); postponed++) {
        bool settled = false;
        if (d->to_bits + received->extra_count + postponed > MOST_REGISTERS) {
            break;
        }
        if (postponed != 0) {
            f = *received;
            find_senders(&f, d, (UINT32_C(1) << postponed) - 1);
        }
        for (uint32_t way = 0; way < 2 && !settled; way++) {
            lilac_movement_shuffle s = like;
            packing p;
            if (!pack(&p, &f, d, packed, f.extra_count - received->extra_count, scattered, way != 0,
                      &settled)) {
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
    return least != UINT64_MAX ||
           refuse(why, "more than 2^%d registers between shuffles", MOST_REGISTERS);
}

bool lilac_movement_shuffle_init(lilac_movement_shuffle *result, lilac_movement_renaming *before,
                                 lilac_movement_renaming *after, const lilac_layout *source,
                                 const lilac_layout *target, uint32_t element_bits,
                                 const lilac_arch *arch, lilac_reason *why) {
    side a, b;
    origins d;
    factors f;
    find_side(&a, source);
    find_side(&b, target);
    if (!check_sides(&a, &b, source, target, why) || !find_origins(&d, &a, &b, why) ||
        !find_receivers(&f, &d, why)) {
        return false;
    }
    memset(result, 0, sizeof *result);
    result->before_bits = d.from_bits;
    result->after_bits = d.to_bits;
    result->lane_bits = d.lane_bits;
    result->warp_bits = a.bits[WARP];
    identity_renaming(before, d.from_bits);
    identity_renaming(after, d.to_bits);
    if (lilac_movement_packed(element_bits) == 0) {
        find_senders(&f, &d, 0);
        put_as_they_are(result, &f, &d);
        return true;
    }
    return put_cheapest(result, &f, &d, element_bits, arch, why);
}
