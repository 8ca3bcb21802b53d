/* The exchange within warps from one layout to another.
 *
 * The source position of each position of the target is a linear map D with A·D = B:
 *
 *     D = ⎡Drr  Drt⎤   register, lane of the source  ←  register, thread of the target
 *         ⎣Dlr  Dlt⎦
 *
 * Of several solutions, one with the thread's own lane is chosen where possible: for the lanes x
 * with A(x) ⊕ B(x) among A's registers, and for target registers that A has in the same lane.
 *
 * A shuffle of words sends one register of a lane at a time. The source lane of the shuffle,
 * Λ = Dlt ⊕ Dlr·H, must therefore differ for all threads that need different registers. H chooses
 * the register that a thread receives into. It is nonzero for the lanes x of ker Dlt that need a
 * different register, by the first of these cases that applies:
 *
 *     a copy in another lane               D x ⊕= κ, with κ in the kernel of A
 *     the thread has the register          H x = h with D h = D x
 *     a register from another lane         H x = h with Dlr·h ∉ im Λ; if possible Dlr·h = x: Λ = 1
 *     otherwise                            H x = an additional register, selected after the shuffle
 *
 * The map before the shuffle is G = Drt ⊕ Drr·H on im Λ, and registers come from K = Drr ⊕ G·Dlr.
 * For an invertible D this is the factorization [1 H; 0 1]·[K 0; Dlr Λ]·[1 G; 0 1], and the rank of
 * H is minimal: dim ker Dlt.
 *
 * Elements narrower than a word share words; see packing.c.
 */
#include "factors.h"

#include <string.h>

typedef lilac_plan_origins origins;
typedef lilac_plan_factors factors;

/* ---- the source positions: D ------------------------------------------------------------- */

typedef struct side {
    uint32_t bits[LEVELS];
    const uint64_t *column[LEVELS];
} side;

static void find_side(side *result, const lilac_layout *layout) {
    uint32_t start = 0;
    memset(result, 0, sizeof *result);
    for (uint32_t i = 0; i < layout->in_count; i++) {
        for (uint32_t level = 0; level < LEVELS; level++) {
            if (memcmp(&layout->in[i].name, lilac_plan_levels[level].name,
                       sizeof layout->in[i].name) == 0) {
                result->bits[level] = layout->in[i].bits;
                result->column[level] = layout->columns + start;
            }
        }
        start += layout->in[i].bits;
    }
}

static bool find_origins(origins *d, const side *a, const side *b, lilac_reason *why) {
    lilac_f2_basis registers, all, moved;
    uint64_t used;
    lilac_f2_basis_init(&registers);
    lilac_f2_basis_init(&moved);
    d->from_bits = a->bits[REGISTER];
    d->to_bits = b->bits[REGISTER];
    d->lane_bits = a->bits[LANE];
    d->thread_bits = a->bits[LANE] + a->bits[WARP];
    d->copy_count = 0;
    for (uint32_t i = 0; i < d->from_bits; i++) {
        (void)lilac_f2_basis_add(&registers, a->column[REGISTER][i], UINT64_C(1) << i);
    }
    lilac_f2_basis_copy(&all, &registers);
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        const uint64_t own = UINT64_C(1) << (LANE_SHIFT + i);
        if (!lilac_f2_basis_add(&all, a->column[LANE][i], own)) {
            (void)lilac_f2_basis_reduce(&all, a->column[LANE][i], &used);
            d->copies[d->copy_count++] = (uint32_t)(used | own);
        }
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (lilac_f2_basis_reduce(&all, b->column[REGISTER][i], &used) != 0) {
            return lilac_layout_refuse(why, "register bit %u comes from another warp", i);
        }
        d->reg[i] = (uint32_t)used;
    }
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        /* `moved` holds the differences A(x) ⊕ B(x) modulo the registers. The mask has the lanes in
         * its high half and the registers that were reduced in its low half. */
        const uint64_t own = UINT64_C(1) << (LANE_SHIFT + i);
        uint64_t taken;
        const uint64_t rest =
            lilac_f2_basis_reduce(&registers, a->column[LANE][i] ^ b->column[LANE][i], &taken);
        if (rest != 0 && lilac_f2_basis_add(&moved, rest, taken | own)) {
            if (lilac_f2_basis_reduce(&all, b->column[LANE][i], &used) != 0) {
                return lilac_layout_refuse(why, "lane bit %u comes from another warp", i);
            }
            d->thread[i] = (uint32_t)used;
            continue;
        }
        (void)lilac_f2_basis_reduce(&moved, rest, &used);
        used ^= taken | own;
        d->thread[i] = (uint32_t)used;
        for (uint32_t others = lilac_plan_lane_of((uint32_t)used) & ~(UINT32_C(1) << i);
             others != 0; others &= others - 1) {
            d->thread[i] ^= d->thread[__builtin_ctz(others)];
        }
    }
    for (uint32_t i = 0; i < a->bits[WARP]; i++) {
        if (lilac_f2_basis_reduce(&all, a->column[WARP][i] ^ b->column[WARP][i], &used) != 0) {
            return lilac_layout_refuse(why, "warp bit %u: elements move between warps", i);
        }
        d->thread[d->lane_bits + i] = (uint32_t)used;
    }
    return true;
}

static bool check_sides(const side *a, const side *b, const lilac_layout *source,
                        const lilac_layout *target, lilac_reason *why) {
    if (source->out_bits != target->out_bits || a->bits[LANE] != b->bits[LANE] ||
        a->bits[WARP] != b->bits[WARP] || a->bits[BLOCK] != b->bits[BLOCK]) {
        return lilac_layout_refuse(why, "the layouts differ in elements, lanes, warps or blocks");
    }
    if (a->bits[REGISTER] > MAX_REGISTERS || b->bits[REGISTER] > MAX_REGISTERS ||
        a->bits[LANE] > MAX_LANES || a->bits[WARP] > LILAC_PLAN_MAX_WARP_BITS) {
        return lilac_layout_refuse(why,
                                   "more than 2^%d registers of a thread, 2^%d lanes or 2^%d warps",
                                   MAX_REGISTERS, MAX_LANES, LILAC_PLAN_MAX_WARP_BITS);
    }
    for (uint32_t i = 0; i < a->bits[BLOCK]; i++) {
        if (a->column[BLOCK][i] != b->column[BLOCK][i]) {
            return lilac_layout_refuse(why, "block bit %u: elements move between blocks", i);
        }
    }
    return true;
}

/* ---- the factors ------------------------------------------------------------------------- */

/* The lanes x of ker Dlt that need different registers. only[k] is a functional as a mask: it is 1
 * on x[k] and 0 on the other x, on the rest of the kernel and on a complement of the kernel. */
typedef struct needs {
    uint32_t count, x[MAX_LANES], only[MAX_LANES];
} needs;

static void find_needs(needs *result, lilac_f2_basis *reached, const origins *d) {
    lilac_f2_basis registers;
    uint32_t kernel_only[MAX_LANES], x[MAX_LANES], kernel = 0;
    lilac_f2_basis_init(reached);
    lilac_f2_basis_init(&registers);
    result->count = 0;
    for (uint32_t i = 0; i < d->lane_bits; i++) {
        const uint32_t lane = lilac_plan_lane_of(d->thread[i]);
        uint64_t used = 0;
        if (lane != 0 && lilac_f2_basis_add(reached, lane, UINT64_C(1) << i)) {
            continue;
        }
        (void)lilac_f2_basis_reduce(reached, lane, &used);
        const uint32_t at = (uint32_t)used | UINT32_C(1) << i;
        const uint32_t value = lilac_plan_reg_of(lilac_plan_sum(d->thread, at));
        if (value != 0 && lilac_f2_basis_add(&registers, value, UINT64_C(1) << kernel)) {
            x[kernel] = at;
            kernel_only[kernel++] = UINT32_C(1) << i;
            continue;
        }
        /* x ⊕ used needs no other register: add its own bit to the functional of each of them. */
        (void)lilac_f2_basis_reduce(&registers, value, &used);
        for (used = value == 0 ? 0 : used; used != 0; used &= used - 1) {
            kernel_only[__builtin_ctzll(used)] |= UINT32_C(1) << i;
        }
    }
    result->count = kernel;
    memcpy(result->x, x, kernel * sizeof x[0]);
    memcpy(result->only, kernel_only, kernel * sizeof x[0]);
}

/* Adds `value` to the entries of the threads on which the functional is 1. */
static void add_where(uint32_t *entries, uint32_t only, uint32_t value) {
    for (; only != 0; only &= only - 1) {
        entries[__builtin_ctz(only)] ^= value;
    }
}

static bool serve_by_copy(origins *d, const needs *n, uint32_t k, lilac_f2_basis *reached) {
    for (uint32_t i = 0; i < d->copy_count; i++) {
        if (lilac_f2_basis_add(reached, lilac_plan_lane_of(d->copies[i]), 0)) {
            add_where(d->thread, n->only[k], d->copies[i]);
            return true;
        }
    }
    return false;
}

static bool serve_by_own(const origins *d, const needs *n, uint32_t k,
                         const lilac_f2_basis *registers, factors *f) {
    uint64_t used;
    const uint32_t value = lilac_plan_reg_of(lilac_plan_sum(d->thread, n->x[k]));
    if (lilac_f2_basis_reduce(registers, value, &used) != 0) {
        return false;
    }
    add_where(f->receive, n->only[k], (uint32_t)used);
    return true;
}

/* Serves x[k] by a register that comes from a lane outside of im Λ; `exact`: from lane ⊕ x[k]. */
static bool serve_by_lane(const origins *d, const needs *n, uint32_t k, bool exact,
                          const lilac_f2_basis *distances, lilac_f2_basis *reached, factors *f) {
    uint64_t used;
    if (exact) {
        if (lilac_f2_basis_reduce(distances, n->x[k], &used) != 0 ||
            !lilac_f2_basis_add(reached, n->x[k], 0)) {
            return false;
        }
        add_where(f->receive, n->only[k], (uint32_t)used);
        return true;
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        if (lilac_plan_lane_of(d->reg[i]) != 0 &&
            lilac_f2_basis_add(reached, lilac_plan_lane_of(d->reg[i]), 0)) {
            add_where(f->receive, n->only[k], UINT32_C(1) << i);
            return true;
        }
    }
    return false;
}

static bool find_receivers(factors *f, origins *d, lilac_reason *why) {
    needs n;
    lilac_f2_basis reached, registers, distances;
    bool served[MAX_LANES] = {false};
    memset(f->receive, 0, sizeof f->receive);
    f->extra_count = 0;
    find_needs(&n, &reached, d);
    if (n.count == 0) {
        return true;
    }
    lilac_f2_basis_init(&registers);
    lilac_f2_basis_init(&distances);
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_f2_basis_add(&registers, d->reg[i], UINT64_C(1) << i);
        if (lilac_plan_lane_of(d->reg[i]) != 0) {
            (void)lilac_f2_basis_add(&distances, lilac_plan_lane_of(d->reg[i]), UINT64_C(1) << i);
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
        if (d->to_bits + f->extra_count == MAX_REGISTERS) {
            return lilac_layout_refuse(why, "more than 2^%d registers between shuffles",
                                       MAX_REGISTERS);
        }
        f->extra[f->extra_count] = lilac_plan_reg_of(lilac_plan_sum(d->thread, n.x[k]));
        add_where(f->receive, n.only[k], UINT32_C(1) << (d->to_bits + f->extra_count++));
    }
    return true;
}

/* The source register of a register between the maps, without the contribution of G. */
static uint32_t plain_register(const origins *d, const factors *f, uint32_t r) {
    uint32_t sum = lilac_plan_reg_of(lilac_plan_sum(d->reg, r & ((UINT32_C(1) << d->to_bits) - 1)));
    for (uint32_t extra = r >> d->to_bits; extra != 0; extra &= extra - 1) {
        sum ^= f->extra[__builtin_ctz(extra)];
    }
    return sum;
}

/* A target register that comes from register `place` of the same lane; 0: there is none. */
static uint32_t register_that_stays(const origins *d, uint32_t place) {
    uint64_t used;
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    for (uint32_t i = 0; i < d->to_bits; i++) {
        (void)lilac_f2_basis_add(&span, d->reg[i], UINT64_C(1) << i);
    }
    return lilac_f2_basis_reduce(&span, place, &used) == 0 ? (uint32_t)used : 0;
}

void lilac_plan_find_senders(factors *f, const origins *d, uint32_t postponed) {
    lilac_f2_basis span;
    uint32_t value[MAX_THREADS];
    bool own = true;
    for (uint32_t i = 0; i < d->to_bits; i++) {
        f->distance[i] = lilac_plan_lane_of(d->reg[i]);
    }
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        const uint32_t low = f->receive[i] & ((UINT32_C(1) << d->to_bits) - 1);
        f->lane[i] = lilac_plan_lane_of(d->thread[i]) ^ lilac_plan_sum(f->distance, low);
        value[i] = lilac_plan_reg_of(d->thread[i]) ^ plain_register(d, f, f->receive[i]);
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
        lilac_f2_basis_init(&span);
        for (uint32_t i = 0; i < d->thread_bits; i++) {
            const uint32_t warp = i < d->lane_bits ? 0 : UINT32_C(1) << i;
            const uint32_t at = f->lane[i] | warp;
            if (at != 0) {
                (void)lilac_f2_basis_add(&span, at, UINT64_C(1) << i);
            }
        }
        for (uint32_t i = 0; i < d->thread_bits; i++) {
            uint64_t used;
            f->send[i] = 0;
            if (!lilac_f2_basis_add(&span, UINT64_C(1) << i, 0)) {
                (void)lilac_f2_basis_reduce(&span, UINT64_C(1) << i, &used);
                f->send[i] = lilac_plan_sum(value, (uint32_t)used);
            }
        }
    }
    for (uint32_t i = 0; i < d->to_bits; i++) {
        f->kept[i] = lilac_plan_reg_of(d->reg[i]) ^ lilac_plan_sum(f->send, f->distance[i]);
    }
}

bool lilac_plan_shuffle_init(lilac_plan_shuffle *result, const lilac_layout *source,
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
    if (lilac_plan_packed(element_bits) == 0) {
        lilac_plan_find_senders(&f, &d, 0);
        lilac_plan_put_unpacked(result, &f, &d);
        return true;
    }
    return lilac_plan_put_packed(result, &f, &d, element_bits, arch) ||
           lilac_layout_refuse(why, "more than 2^%d registers between shuffles", MAX_REGISTERS);
}

uint32_t lilac_plan_split_exchange(lilac_layout *between, const lilac_layout *source,
                                   const lilac_layout *target) {
    side a, b;
    origins d;
    needs n;
    lilac_f2_basis reached, distances;
    find_side(&a, source);
    find_side(&b, target);
    if (!check_sides(&a, &b, source, target, NULL) || !find_origins(&d, &a, &b, NULL)) {
        return 0;
    }
    find_needs(&n, &reached, &d);
    lilac_f2_basis_init(&distances);
    for (uint32_t i = 0; n.count > 1 && i < d.to_bits; i++) {
        if (lilac_plan_lane_of(d.reg[i]) != 0) {
            (void)lilac_f2_basis_add(&distances, lilac_plan_lane_of(d.reg[i]), UINT64_C(1) << i);
        }
    }
    for (uint32_t k = 0; n.count > 1 && k < n.count; k++) {
        uint64_t used, sum = 0;
        if (lilac_f2_basis_contains(&reached, n.x[k]) ||
            lilac_f2_basis_reduce(&distances, n.x[k], &used) != 0) {
            continue;
        }
        for (uint64_t rest = used; rest != 0; rest &= rest - 1) {
            sum ^= b.column[REGISTER][__builtin_ctzll(rest)];
        }
        for (uint32_t rest = n.x[k]; rest != 0; rest &= rest - 1) {
            sum ^= b.column[LANE][__builtin_ctz(rest)];
        }
        *between = *target;
        uint64_t *registers = between->columns + (b.column[REGISTER] - target->columns);
        uint64_t *lanes = between->columns + (b.column[LANE] - target->columns);
        registers[__builtin_ctzll(used)] ^= sum;
        for (uint32_t rest = n.only[k]; rest != 0; rest &= rest - 1) {
            lanes[__builtin_ctz(rest)] ^= sum;
        }
        return n.count;
    }
    return 0;
}
