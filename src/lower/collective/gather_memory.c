/* The order of memory for a tt.gather that uses shared memory.
 *
 * The coordinates of a load's lanes are known off the axis; along it they depend on the indices. So
 * the directions of the source are assigned in this order:
 *
 *     in a word        registers of the source, those along the axis first: stores of whole words
 *     banks            first the directions off the axis in which the result's lanes differ: such
 *                      lanes never conflict. Then the axis: random indices spread over the rest
 *     segments         the remaining directions, the rest of the axis included
 *
 *     32 rows in 32 lanes:   offset = column · 32 + row    no index causes a conflict
 *
 * If lanes of the source differ in a segment's direction, their stores would conflict. That direction
 * is then xored to a bank as well, as a swizzle does. For banks that only the axis uses this costs the
 * loads nothing; for others it may, so both are tried. Loads are priced by the expected conflicts of
 * random indices. */
#include "coordinates.h"
#include "gather.h"

/* The directions of the memory's bits, the lowest first. */
typedef struct memory_plan {
    uint64_t vector[LILAC_LAYOUT_MAX_BITS];
    uint32_t count;
    uint32_t in_word, banks; /* of them: in a word, and below the segments */
    uint32_t along;          /* which of the banks lead along the axis: a mask */
    lilac_f2_basis span;     /* of all; a direction's tag is its bit */
} memory_plan;

static uint64_t axis_mask(const lilac_gather *g) {
    uint64_t mask = ((UINT64_C(1) << g->from->bits[g->axis]) - 1) << g->from->start[g->axis];
    return lilac_gather_in_round(g, mask);
}

static uint64_t of_thread(const lilac_gather *g, uint32_t bit) {
    return lilac_gather_in_round(g, g->from->threads[bit]);
}

static uint64_t of_register(const lilac_gather *g, uint32_t bit) {
    return lilac_gather_in_round(g, g->from->registers[bit]);
}

/* Bits of a dimension within a round. */
static uint32_t dimension_bits(const lilac_gather *g, uint32_t d) {
    uint64_t mask = ((UINT64_C(1) << g->from->bits[d]) - 1) << g->from->start[d];
    return (uint32_t)__builtin_popcountll(mask & ~g->rounds);
}

/* Lanes of one transaction. */
static uint32_t transaction_bits(const lilac_gather *g) {
    uint32_t lanes =
        log2_of(lilac_plan_transaction_lanes(g->l->target->arch, lilac_gather_element_bits(g) / 8));
    return lanes < g->from->lane_bits ? lanes : g->from->lane_bits;
}

static void add(memory_plan *p, uint32_t most, uint64_t vector) {
    if (p->count < most && lilac_f2_basis_add(&p->span, vector, UINT64_C(1) << p->count)) {
        p->vector[p->count++] = vector;
    }
}

/* Assigns the remaining directions in this order: the axis, the source's registers and lanes, its
 * warps. If each warp has its own elements only, the highest bits then select its part of the memory,
 * as in every exchange within warps. Accesses of two such exchanges need no block barrier between
 * them. */
static void fill(const lilac_gather *g, memory_plan *p, uint32_t most) {
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        add(p, most, lilac_gather_axis_unit(g, i));
    }
    for (uint32_t i = 0; i < g->from->lane_bits; i++) {
        add(p, most, of_thread(g, i));
    }
    for (uint32_t i = 0; i < g->from->register_bits; i++) {
        add(p, most, of_register(g, i));
    }
    for (uint32_t i = g->from->lane_bits; i < g->from->thread_bits; i++) {
        add(p, most, of_thread(g, i));
    }
}

static void give_banks(const lilac_gather *g, memory_plan *p) {
    const lilac_arch *arch = g->l->target->arch;
    uint32_t element = log2_of(lilac_gather_element_bits(g) / 8);
    uint32_t word = log2_of(arch->bank_bytes), lanes = transaction_bits(g);
    uint32_t banks = log2_of(arch->banks) + word - element;
    uint64_t along = axis_mask(g);
    p->in_word = word > element ? word - element : 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < g->from->register_bits; i++) {
            uint64_t column = of_register(g, i);
            if ((g->own >> i & 1) && (pass == 1 || (column & ~along) == 0)) {
                add(p, p->in_word, column);
            }
        }
    }
    for (uint32_t i = 0; i < lanes; i++) { /* too few registers: two lanes in a word */
        if ((of_thread(g, i) & ~along) == 0) {
            add(p, p->in_word, of_thread(g, i));
        }
    }
    p->in_word = p->count;
    for (uint32_t i = 0; i < lanes; i++) {
        add(p, banks, lilac_gather_beside(g, g->to, g->to->threads[i]));
    }
    for (uint32_t i = 0; i < lanes; i++) {
        if ((of_thread(g, i) & ~along) == 0) {
            add(p, banks, of_thread(g, i));
        }
    }
    fill(g, p, banks);
    p->banks = p->count;
    for (uint32_t k = 0; k < p->banks; k++) {
        p->along |= (p->vector[k] & ~along) == 0 ? 1U << k : 0;
    }
}

/* The bank of each segment's direction, such that the source's lanes stay apart; `any`: also of
 * banks that keep the result's lanes apart. */
static void give_segments(const lilac_gather *g, memory_plan *p, bool any) {
    lilac_f2_basis taken; /* banks that the source's lanes reach, as far as seen */
    lilac_f2_basis_init(&taken);
    uint64_t banks = (UINT64_C(1) << p->banks) - 1,
             words = banks & ~((UINT64_C(1) << p->in_word) - 1);
    uint32_t lanes = transaction_bits(g);
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t bank;
        if (lilac_f2_basis_reduce(&p->span, of_thread(g, i), &bank) == 0) {
            (void)lilac_f2_basis_add(&taken, bank & words, 0);
            continue;
        }
        bank &= banks;
        for (uint32_t k = p->in_word; k < p->banks && lilac_f2_basis_contains(&taken, bank & words);
             k++) {
            uint64_t other = bank ^ UINT64_C(1) << k;
            bool may = any || (p->along >> k & 1);
            bank = may && !lilac_f2_basis_contains(&taken, other & words) ? other : bank;
        }
        (void)lilac_f2_basis_add(&taken, bank & words, 0);
        /* `bank` is the lane's from now on: what else it differs by is the segment. */
        uint64_t rest = of_thread(g, i);
        for (uint32_t k = 0; k < p->banks; k++) {
            rest ^= bank >> k & 1 ? p->vector[k] : 0;
        }
        add(p, LILAC_LAYOUT_MAX_BITS, rest);
    }
    fill(g, p, LILAC_LAYOUT_MAX_BITS);
}

static bool make_layout(const lilac_gather *g, lilac_layout *layout, uint32_t count,
                        const uint64_t *columns, lilac_reason *why) {
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < g->from->rank; d++) {
        if (!lilac_layout_add_out(layout, g->from->layout->out[d].name, dimension_bits(g, d),
                                  why)) {
            return false;
        }
    }
    return lilac_layout_add_in(layout, "offset", count, columns, why) &&
           lilac_layout_add_in(layout, "block", 0, columns, why);
}

static bool spread_memory(const lilac_gather *g, bool any, lilac_layout *layout,
                          lilac_reason *why) {
    memory_plan p = {.count = 0};
    give_banks(g, &p);
    give_segments(g, &p, any);
    return make_layout(g, layout, p.count, p.vector, why);
}

/* Row-major. */
static bool plain_memory(const lilac_gather *g, lilac_layout *layout, lilac_reason *why) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t d = g->from->rank; d-- > 0;) {
        for (uint32_t i = 0; i < g->from->bits[d]; i++) {
            uint64_t unit = lilac_gather_in_round(g, 1ULL << (g->from->start[d] + i));
            if (unit != 0) {
                columns[count++] = unit;
            }
        }
    }
    return make_layout(g, layout, count, columns, why);
}

/* ---- prices ------------------------------------------------------------------------------- */

/* Expected wavefronts of one load by one warp, in sixteenths. Lanes whose banks do not depend on the
 * index never conflict; the others are modelled as random. */
static uint64_t load_wavefronts(const lilac_gather *g, const lilac_layout *memory) {
    const lilac_arch *arch = g->l->target->arch;
    uint32_t element = log2_of(lilac_gather_element_bits(g) / 8);
    uint32_t word = log2_of(arch->bank_bytes), lanes = transaction_bits(g);
    uint32_t in_word = word > element ? word - element : 0, differ = 0;
    uint32_t bank_bits = log2_of(arch->banks) + word - element - in_word;
    lilac_f2_basis offsets, banks, words;
    lilac_f2_basis_init(&offsets);
    lilac_f2_basis_init(&banks);
    lilac_f2_basis_init(&words);
    for (uint32_t i = 0; i < lilac_layout_in_bits(memory, "offset"); i++) {
        (void)lilac_f2_basis_add(&offsets, lilac_layout_column(memory, "offset", i), 1ULL << i);
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        uint64_t offset = lilac_f2_basis_tag(&offsets, lilac_gather_axis_unit(g, i)) >> in_word;
        (void)lilac_f2_basis_add(&words, offset, 0);
        (void)lilac_f2_basis_add(&banks, offset & ((1ULL << bank_bits) - 1), 0);
    }
    uint32_t drawn = lilac_f2_basis_dimension(&banks);
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t offset =
            lilac_f2_basis_tag(&offsets, lilac_gather_beside(g, g->to, g->to->threads[i])) >>
            in_word;
        differ += g->to->threads[i] != 0;
        (void)lilac_f2_basis_add(&words, offset, 0);
        (void)lilac_f2_basis_add(&banks, offset & ((1ULL << bank_bits) - 1), 0);
    }
    uint32_t apart = lilac_f2_basis_dimension(&banks) - drawn;
    uint64_t transactions = UINT64_C(1) << (g->from->lane_bits - lanes);
    return transactions * lilac_plan_scattered_wavefronts(differ > apart ? differ - apart : 0,
                                                          drawn,
                                                          lilac_f2_basis_dimension(&words) - apart);
}

static bool price_memory(const lilac_gather *g, lilac_gather_memory *m, lilac_reason *why) {
    if (!lilac_plan_access_init(&m->store, &m->source, &m->layout, lilac_gather_element_bits(g),
                                g->l->target->arch, why)) {
        return false;
    }
    lilac_plan_gather counts = lilac_gather_counts(g);
    uint64_t results = (uint64_t)counts.results * counts.num_warps;
    lilac_plan_price price = {.stores = m->store.instructions,
                              .store_wavefronts = m->store.wavefronts,
                              .loads = results,
                              .barriers = counts.num_warps};
    price.load_wavefronts = results * load_wavefronts(g, &m->layout) / 16;
    m->price = lilac_plan_price_gather_memory(
        &counts, &price, g->in_warp ? LILAC_PLAN_BARRIER_WARP : LILAC_PLAN_BARRIER_BLOCK,
        g->l->target->arch);
    return true;
}

/* The source's own registers of one round, as a layout. */
static bool make_source(const lilac_gather *g, lilac_layout *layout, lilac_reason *why) {
    const lilac_lower_view *from = g->from;
    if (g->rounds == 0) {
        return lilac_lower_layout_of(layout, from, from, g->own, why);
    }
    lilac_lower_view *view = lilac_arena_new(g->l->arena, lilac_lower_view);
    *view = *from;
    for (uint32_t d = 0; d < from->rank; d++) {
        view->bits[d] = dimension_bits(g, d);
    }
    for (uint32_t i = 0; i < from->register_bits; i++) {
        view->registers[i] = of_register(g, i);
    }
    for (uint32_t i = 0; i < from->thread_bits; i++) {
        view->threads[i] = of_thread(g, i);
    }
    return lilac_lower_layout_of(layout, view, view, g->own, why);
}

bool lilac_gather_choose_memory(const lilac_gather *g, lilac_gather_memory *memory,
                                lilac_reason *why) {
    if (!make_source(g, &memory->source, why)) {
        return false;
    }
    if (g->way == LILAC_TILE_MOVEMENT_UNSWIZZLED) {
        return plain_memory(g, &memory->layout, why) && price_memory(g, memory, why);
    }
    if (!spread_memory(g, false, &memory->layout, why) || !price_memory(g, memory, why)) {
        return false;
    }
    if (memory->store.conflicts > 0) {
        lilac_gather_memory other = {.source = memory->source};
        lilac_reason ignored;
        if (spread_memory(g, true, &other.layout, &ignored) && price_memory(g, &other, &ignored) &&
            other.price < memory->price) {
            *memory = other;
        }
    }
    return true;
}
