/* The order of memory for a gather that uses shared memory.
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
 * If lanes of the source differ in a segment's direction, their stores would conflict. That
 * direction is then xored to a bank as well, as a swizzle does. For banks that only the axis uses
 * this costs the loads nothing; for others it may, so both are tried. Loads are priced by the
 * expected conflicts of random indices. */
#include "gather.h"

#include <stdio.h>

/* The directions of the memory's bits, the lowest first. */
typedef struct memory_order {
    uint64_t vector[LILAC_LAYOUT_MAX_BITS];
    uint32_t count;
    uint32_t in_word, banks; /* numbers of directions: in a word, and below the segments */
    uint32_t along;          /* mask of the banks whose directions are along the axis */
    lilac_f2_basis span;     /* of all; a direction's tag is its bit */
} memory_order;

static uint64_t axis_mask(const lilac_plan_gather *plan) {
    uint64_t mask = ((UINT64_C(1) << plan->source.bits[plan->axis]) - 1)
                    << plan->source.start[plan->axis];
    return lilac_plan_gather_in_round(plan, mask);
}

static uint64_t of_thread(const lilac_plan_gather *plan, uint32_t bit) {
    return lilac_plan_gather_in_round(plan, plan->source.threads[bit]);
}

static uint64_t of_register(const lilac_plan_gather *plan, uint32_t bit) {
    return lilac_plan_gather_in_round(plan, plan->source.registers[bit]);
}

/* Bits of a dimension within a round. */
static uint32_t dimension_bits(const lilac_plan_gather *plan, uint32_t d) {
    uint64_t mask = ((UINT64_C(1) << plan->source.bits[d]) - 1) << plan->source.start[d];
    return (uint32_t)__builtin_popcountll(mask & ~plan->rounds);
}

/* Lanes of one transaction. */
static uint32_t transaction_bits(const lilac_plan_gather *plan) {
    uint32_t lanes = log2_of(lilac_plan_transaction_lanes(plan->arch, plan->work.element_bits / 8));
    return lanes < plan->source.lane_bits ? lanes : plan->source.lane_bits;
}

static void add(memory_order *p, uint32_t most, uint64_t vector) {
    if (p->count < most && lilac_f2_basis_add(&p->span, vector, UINT64_C(1) << p->count)) {
        p->vector[p->count++] = vector;
    }
}

/* Assigns the remaining directions in this order: the axis, the source's registers and lanes, its
 * warps. If each warp has its own elements only, the highest bits then select its part of the
 * memory, as in every exchange within warps. Accesses of two such exchanges need no block barrier
 * between them. */
static void fill(const lilac_plan_gather *plan, memory_order *p, uint32_t most) {
    for (uint32_t i = 0; i < plan->source.bits[plan->axis]; i++) {
        add(p, most, lilac_plan_gather_axis_unit(plan, i));
    }
    for (uint32_t i = 0; i < plan->source.lane_bits; i++) {
        add(p, most, of_thread(plan, i));
    }
    for (uint32_t i = 0; i < plan->source.register_bits; i++) {
        add(p, most, of_register(plan, i));
    }
    for (uint32_t i = plan->source.lane_bits; i < plan->source.thread_bits; i++) {
        add(p, most, of_thread(plan, i));
    }
}

static void order_banks(const lilac_plan_gather *plan, memory_order *p) {
    const lilac_arch *arch = plan->arch;
    uint32_t element = log2_of(plan->work.element_bits / 8);
    uint32_t word = log2_of(arch->bank_bytes), lanes = transaction_bits(plan);
    uint32_t banks = log2_of(arch->banks) + word - element;
    uint64_t along = axis_mask(plan);
    p->in_word = word > element ? word - element : 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < plan->source.register_bits; i++) {
            uint64_t column = of_register(plan, i);
            if ((plan->stored >> i & 1) && (pass == 1 || (column & ~along) == 0)) {
                add(p, p->in_word, column);
            }
        }
    }
    for (uint32_t i = 0; i < lanes; i++) { /* too few registers: two lanes in a word */
        if ((of_thread(plan, i) & ~along) == 0) {
            add(p, p->in_word, of_thread(plan, i));
        }
    }
    p->in_word = p->count;
    for (uint32_t i = 0; i < lanes; i++) {
        add(p, banks,
            lilac_plan_gather_off_axis_in_round(plan, &plan->result, plan->result.threads[i]));
    }
    for (uint32_t i = 0; i < lanes; i++) {
        if ((of_thread(plan, i) & ~along) == 0) {
            add(p, banks, of_thread(plan, i));
        }
    }
    fill(plan, p, banks);
    p->banks = p->count;
    for (uint32_t k = 0; k < p->banks; k++) {
        p->along |= (p->vector[k] & ~along) == 0 ? 1U << k : 0;
    }
}

/* Assigns each segment's direction a bank, such that no two lanes of the source reach one bank.
 * `any`: banks that separate the result's lanes may be used too. */
static void order_segments(const lilac_plan_gather *plan, memory_order *p, bool any) {
    lilac_f2_basis taken; /* banks that the source's lanes reach, so far */
    lilac_f2_basis_init(&taken);
    uint64_t banks = (UINT64_C(1) << p->banks) - 1,
             words = banks & ~((UINT64_C(1) << p->in_word) - 1);
    uint32_t lanes = transaction_bits(plan);
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t bank;
        if (lilac_f2_basis_reduce(&p->span, of_thread(plan, i), &bank) == 0) {
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
        /* The lane reaches `bank`; the rest of its direction is the segment. */
        uint64_t rest = of_thread(plan, i);
        for (uint32_t k = 0; k < p->banks; k++) {
            rest ^= bank >> k & 1 ? p->vector[k] : 0;
        }
        add(p, LILAC_LAYOUT_MAX_BITS, rest);
    }
    fill(plan, p, LILAC_LAYOUT_MAX_BITS);
}

static bool make_layout(const lilac_plan_gather *plan, lilac_layout *layout, uint32_t count,
                        const uint64_t *columns, lilac_reason *why) {
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < plan->source.rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "dim%u", d);
        if (!lilac_layout_add_out(layout, name, dimension_bits(plan, d), why)) {
            return false;
        }
    }
    return lilac_layout_add_in(layout, "offset", count, columns, why) &&
           lilac_layout_add_in(layout, "block", 0, columns, why);
}

static bool spread_memory(const lilac_plan_gather *plan, bool any, lilac_layout *layout,
                          lilac_reason *why) {
    memory_order p = {.count = 0};
    order_banks(plan, &p);
    order_segments(plan, &p, any);
    return make_layout(plan, layout, p.count, p.vector, why);
}

/* Row-major memory. */
static bool plain_memory(const lilac_plan_gather *plan, lilac_layout *layout, lilac_reason *why) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    for (uint32_t d = plan->source.rank; d-- > 0;) {
        for (uint32_t i = 0; i < plan->source.bits[d]; i++) {
            uint64_t unit = lilac_plan_gather_in_round(plan, 1ULL << (plan->source.start[d] + i));
            if (unit != 0) {
                columns[count++] = unit;
            }
        }
    }
    return make_layout(plan, layout, count, columns, why);
}

/* ---- prices ------------------------------------------------------------------------------- */

/* Expected wavefronts of one load by one warp, in sixteenths. Lanes whose banks do not depend on
 * the index never conflict; the others are modelled as random. */
static uint64_t load_wavefronts(const lilac_plan_gather *plan, const lilac_layout *memory) {
    const lilac_arch *arch = plan->arch;
    uint32_t element = log2_of(plan->work.element_bits / 8);
    uint32_t word = log2_of(arch->bank_bytes), lanes = transaction_bits(plan);
    uint32_t in_word = word > element ? word - element : 0, differ = 0;
    uint32_t bank_bits = log2_of(arch->banks) + word - element - in_word;
    lilac_f2_basis offsets, banks, words;
    lilac_f2_basis_init(&offsets);
    lilac_f2_basis_init(&banks);
    lilac_f2_basis_init(&words);
    for (uint32_t i = 0; i < lilac_layout_in_bits(memory, "offset"); i++) {
        (void)lilac_f2_basis_add(&offsets, lilac_layout_column(memory, "offset", i), 1ULL << i);
    }
    for (uint32_t i = 0; i < plan->source.bits[plan->axis]; i++) {
        uint64_t offset =
            lilac_f2_basis_tag(&offsets, lilac_plan_gather_axis_unit(plan, i)) >> in_word;
        (void)lilac_f2_basis_add(&words, offset, 0);
        (void)lilac_f2_basis_add(&banks, offset & ((1ULL << bank_bits) - 1), 0);
    }
    uint32_t drawn = lilac_f2_basis_dimension(&banks);
    for (uint32_t i = 0; i < lanes; i++) {
        uint64_t offset =
            lilac_f2_basis_tag(&offsets, lilac_plan_gather_off_axis_in_round(
                                             plan, &plan->result, plan->result.threads[i])) >>
            in_word;
        differ += plan->result.threads[i] != 0;
        (void)lilac_f2_basis_add(&words, offset, 0);
        (void)lilac_f2_basis_add(&banks, offset & ((1ULL << bank_bits) - 1), 0);
    }
    uint32_t known = lilac_f2_basis_dimension(&banks) - drawn; /* bits of lanes that never meet */
    uint64_t transactions = UINT64_C(1) << (plan->source.lane_bits - lanes);
    return transactions * lilac_plan_scattered_wavefronts(differ > known ? differ - known : 0,
                                                          drawn,
                                                          lilac_f2_basis_dimension(&words) - known);
}

/* The stores as accesses of the threads that hold no copies. */
static lilac_plan_linear_access store_access(const lilac_plan_gather *plan,
                                             const lilac_plan_access *store, uint64_t *lanes) {
    for (uint32_t i = 0; i < store->lane_bits; i++) {
        lanes[i] = store->lane[i] * store->element_bytes;
    }
    return (lilac_plan_linear_access){.arch = plan->arch,
                                      .bytes = store->element_bytes << store->vector_bits,
                                      .lane_bits = store->lane_bits,
                                      .warp_bits = store->warp_bits,
                                      .lanes = lanes,
                                      .idle = plan->source.free_threads};
}

/* Computes the access, the barrier and the price for this order of memory, and stores them in the
 * plan. */
static bool take_memory(lilac_plan_gather *plan, const lilac_layout *source,
                        const lilac_layout *memory, lilac_reason *why) {
    lilac_plan_access store;
    if (!lilac_plan_access_init(&store, source, memory, plan->work.element_bits, plan->arch, why)) {
        return false;
    }
    const uint32_t bytes = plan->work.element_bits / 8;
    const uint64_t results = (uint64_t)plan->work.results * plan->work.num_warps;
    const uint64_t each = load_wavefronts(plan, memory);
    lilac_plan_price price = {.loads = results,
                              .load_wavefronts = results * each / 16,
                              .load_bytes = results * plan->arch->warp_size * bytes,
                              .barriers = plan->work.num_warps};
    uint64_t lanes[LILAC_PLAN_MAX_LANE_BITS];
    const lilac_plan_linear_access stores = store_access(plan, &store, lanes);
    lilac_plan_add_stores(&price, &stores, UINT64_C(1) << store.step_bits);
    lilac_plan_gather_work work = plan->work;
    work.own = 1U << __builtin_popcount(plan->stored);
    price.cycles = lilac_plan_price_gather_memory(&work, &price, plan->barrier, plan->arch);
    plan->memory = *memory;
    plan->store = store;
    plan->price = price;
    plan->exact = each == UINT64_C(16) << (plan->source.lane_bits - transaction_bits(plan));
    return true;
}

/* The source's registers of one round, as a layout. */
static bool make_source(const lilac_plan_gather *plan, lilac_layout *layout, lilac_reason *why) {
    lilac_layout_columns columns = plan->source;
    for (uint32_t d = 0; d < columns.rank; d++) {
        columns.bits[d] = dimension_bits(plan, d);
    }
    for (uint32_t i = 0; i < columns.register_bits; i++) {
        columns.registers[i] = of_register(plan, i);
    }
    for (uint32_t i = 0; i < columns.thread_bits; i++) {
        columns.threads[i] = of_thread(plan, i);
    }
    return lilac_layout_columns_layout(layout, &columns, plan->stored, why);
}

bool lilac_plan_gather_choose_memory(lilac_plan_gather *plan, bool unswizzled, lilac_reason *why) {
    lilac_layout source, memory;
    plan->barrier =
        plan->in_warp ? LILAC_PLAN_BARRIER_WARP : lilac_plan_block_barrier(plan->work.num_warps);
    if (!make_source(plan, &source, why)) {
        return false;
    }
    if (unswizzled) {
        return plain_memory(plan, &memory, why) && take_memory(plan, &source, &memory, why);
    }
    if (!spread_memory(plan, false, &memory, why) || !take_memory(plan, &source, &memory, why)) {
        return false;
    }
    if (plan->store.conflicts > 0) {
        const lilac_plan_gather first = *plan;
        lilac_reason ignored;
        if (!spread_memory(plan, true, &memory, &ignored) ||
            !take_memory(plan, &source, &memory, &ignored) ||
            plan->price.cycles >= first.price.cycles) {
            *plan = first;
        }
    }
    return true;
}

void lilac_plan_gather_bound(lilac_plan_bound *result, const lilac_plan_gather *plan) {
    *result = (lilac_plan_bound){.met = true};
    if (plan->kind == LILAC_PLAN_GATHER_SHUFFLES) {
        return;
    }
    uint64_t lanes[LILAC_PLAN_MAX_LANE_BITS];
    const lilac_plan_linear_access stores = store_access(plan, &plan->store, lanes);
    const uint32_t rounds = 1U << __builtin_popcountll(plan->rounds);
    result->store_wavefronts =
        lilac_plan_least_wavefronts(&stores, (uint64_t)rounds << plan->store.step_bits, false);
    result->load_wavefronts = plan->price.loads
                              << (plan->source.lane_bits - transaction_bits(plan));
    result->floor_wavefronts = result->store_wavefronts + result->load_wavefronts;
    result->met =
        result->floor_wavefronts == plan->price.store_wavefronts + plan->price.load_wavefronts;
}
