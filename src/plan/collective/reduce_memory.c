/* Partial results of a reduction in shared memory: who loads them, and their order.
 *
 * Each warp stores its partial of each of its elements. After a barrier a thread loads all partials
 * of the elements that it needs and combines them.
 *
 * The data that one thread loads has the lowest indices, up to a vector: elements that a thread
 * both holds and needs, then the partials of one element, then other elements that it needs.
 *
 *        element 0       element 1
 *      | w0 w1 w2 w3 | w0 w1 w2 w3 | …           4 partials of f32: one vector of 16 bytes
 *
 * If many warps contribute and all lanes of a warp need the same elements, each lane loads one
 * partial of them, and butterflies combine those: a broadcast of 16 bytes uses as much of the path
 * from memory to registers as 512 bytes.
 *
 * If each element is needed in so many registers and threads that loading all its partials
 * everywhere costs more, each thread first finishes a share of the elements, and a conversion moves
 * them to the threads that need them. */
#include "reduce.h"

#include <string.h>

/* The register bit of the loader that leads to the same elements as this bit of the groups, or
 * LILAC_PLAN_SLOT. */
static uint32_t wanted_by(const lilac_plan_reduce *plan, uint32_t group) {
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    for (uint32_t i = 0; loader != NULL && i < loader->register_bits; i++) {
        if (loader->distinct >> i & 1 &&
            loader->registers[i] == lilac_plan_reduce_group_column(plan, group)) {
            return i;
        }
    }
    return LILAC_PLAN_SLOT;
}

/* ---- the elements that butterflies give away ----------------------------------------------- */

/* Chooses the groups that a thread gives away: first those that it does not load again. `keeps`:
 * the elements that each thread bit leads to at the store. */
static void choose_given(lilac_plan_reduce *plan, uint64_t *keeps) {
    bool given[LILAC_PLAN_MAX_COMBINED] = {false};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t q = plan->group_bits; q-- > 0 && plan->give_steps < plan->lane_steps;) {
            if (!given[q] && (pass == 1 || wanted_by(plan, q) == LILAC_PLAN_SLOT)) {
                given[q] = true;
                /* The steps are executed from the last to the first. */
                const uint32_t pivot = plan->lane_pivots[plan->lane_steps - 1 - plan->give_steps];
                plan->give_group[plan->give_steps++] = q;
                keeps[pivot] ^= lilac_plan_reduce_group_column(plan, q);
                plan->idle_threads &= ~(1U << pivot);
            }
        }
    }
}

/* ---- the order of memory ------------------------------------------------------------------ */

/* The order during its search: bit j of an element's coordinate in this basis is bit place[j] of
 * the index. */
typedef struct memory_order {
    lilac_plan_reduce *plan;
    const uint64_t *keeps;
    uint32_t groups; /* mask of the bits of groups that are not given away */
    lilac_f2_basis basis;
    uint32_t place[LILAC_LAYOUT_MAX_BITS];
} memory_order;

/* Assigns a bit of the index to this direction of the elements; false when it is not new. */
static bool put_element(memory_order *order, uint64_t column, uint32_t bit) {
    const uint32_t index = lilac_f2_basis_dimension(&order->basis);
    if (!lilac_f2_basis_add(&order->basis, column, UINT64_C(1) << index)) {
        return false;
    }
    order->place[index] = bit;
    return true;
}

static uint64_t place_of(const memory_order *order, uint64_t element) {
    uint64_t index = 0;
    for (uint64_t tags = lilac_f2_basis_tag(&order->basis, element); tags != 0; tags &= tags - 1) {
        index |= UINT64_C(1) << order->place[lowest_bit(tags)];
    }
    return index;
}

/* Are these bits of the index 0 for everything that a thread adds to the beginnings of vectors? */
static bool is_aligned(const memory_order *order) {
    const lilac_plan_reduce *plan = order->plan;
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    uint64_t vector = low_bits(plan->store_bits), found = 0;
    uint32_t groups = order->groups;
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        found |= place_of(order, order->keeps[i]) & vector;
    }
    for (uint32_t i = 0; i < plan->store_bits; i++) {
        groups &= ~(1U << plan->store_group[i]);
    }
    for (uint32_t q = 0; q < plan->group_bits; q++) {
        found |=
            groups >> q & 1 ? place_of(order, lilac_plan_reduce_group_column(plan, q)) & vector : 0;
    }
    if (loader == NULL) {
        return found == 0;
    }
    vector = low_bits(plan->load_bits);
    for (uint32_t i = 0; i < loader->thread_bits; i++) {
        found |= place_of(order, loader->threads[i]) & vector;
    }
    uint32_t others = loader->distinct;
    for (uint32_t i = 0; i < plan->load_bits; i++) {
        others &=
            plan->load_register[i] < LILAC_PLAN_SLOT ? ~(1U << plan->load_register[i]) : UINT32_MAX;
    }
    for (uint32_t i = 0; i < loader->register_bits; i++) {
        found |= others >> i & 1 ? place_of(order, loader->registers[i]) & vector : 0;
    }
    return found == 0;
}

/* The vector: elements that a thread both stores and loads, then slots, then other elements that it
 * loads. `most`: elements of a vector, log2, of which `wide` may be bits of elements. Returns the
 * number of slots in it. */
static uint32_t order_vector(memory_order *order, uint32_t most, uint32_t wide) {
    lilac_plan_reduce *plan = order->plan;
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    uint32_t bit = 0, slots = 0;
    plan->store_bits = 0;
    for (uint32_t q = 0; q < plan->group_bits && bit < wide; q++) {
        const uint32_t wanted = order->groups >> q & 1 ? wanted_by(plan, q) : LILAC_PLAN_SLOT;
        if (wanted != LILAC_PLAN_SLOT &&
            put_element(order, lilac_plan_reduce_group_column(plan, q), bit)) {
            plan->store_group[plan->store_bits++] = q;
            plan->load_register[bit++] = wanted;
        }
    }
    for (; slots < plan->slot_bits && bit < most; slots++) {
        plan->slot_place[slots] = bit;
        plan->load_register[bit++] = LILAC_PLAN_SLOT + slots;
    }
    for (uint32_t i = 0; loader != NULL && i < loader->register_bits && bit < most; i++) {
        if (loader->distinct >> i & 1 && lilac_f2_basis_dimension(&order->basis) < wide &&
            put_element(order, loader->registers[i], bit)) {
            plan->load_register[bit++] = i;
        }
    }
    plan->load_bits = bit;
    return slots;
}

/* Assigns each bit of the index its direction. */
static void order_index(memory_order *order, uint32_t most, uint32_t wide) {
    lilac_plan_reduce *plan = order->plan;
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    lilac_f2_basis_init(&order->basis);
    uint32_t slots = order_vector(order, most, wide), bit = plan->load_bits;
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        bit += put_element(order, order->keeps[i], bit);
    }
    for (uint32_t i = 0; loader != NULL && i < loader->thread_bits; i++) {
        bit += put_element(order, loader->threads[i], bit);
    }
    for (uint32_t i = 0; i < plan->kept_bits; i++) {
        bit += put_element(order, UINT64_C(1) << i, bit);
    }
    for (; slots < plan->slot_bits; slots++) {
        plan->slot_place[slots] = bit++;
    }
}

/* Stores the order in the plan, as linear maps. */
static void keep_order(const memory_order *order) {
    lilac_plan_reduce *plan = order->plan;
    const lilac_layout_columns *loader = lilac_plan_reduce_loader(plan);
    for (uint32_t i = 0; i < plan->kept_bits; i++) {
        plan->element_place[i] = place_of(order, UINT64_C(1) << i);
    }
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        plan->store_thread[i] = place_of(order, order->keeps[i]);
        plan->load_thread[i] = loader == NULL ? 0 : place_of(order, loader->threads[i]);
    }
    for (uint32_t s = 0; s < plan->slot_bits; s++) {
        plan->store_thread[plan->slot_thread[s]] ^= UINT64_C(1) << plan->slot_place[s];
    }
    for (uint32_t i = 0, slot = 0; i < plan->source.thread_bits; i++) {
        if (plan->loading_lanes >> i & 1) {
            plan->load_thread[i] = UINT64_C(1) << plan->slot_place[slot++];
        }
    }
}

/* ---- who loads the partials --------------------------------------------------------------- */

/* Accesses that load 2^bits partials of each of `elements`. */
static uint32_t count_loads(uint32_t elements, uint32_t bits, uint32_t most) {
    const uint64_t all = (uint64_t)elements << bits >> most;
    return all == 0 ? 1 : (uint32_t)all;
}

/* Assigns a share of the elements to each thread. */
static void make_share(lilac_plan_reduce *plan) {
    lilac_layout_columns *share = &plan->share;
    *share = plan->result;
    memset(share->registers, 0, sizeof share->registers);
    memset(share->threads, 0, sizeof share->threads);
    const uint32_t threads = min_u32(plan->kept_bits, share->thread_bits);
    share->register_bits = plan->kept_bits - threads;
    for (uint32_t i = 0; i < threads; i++) {
        share->threads[i] = UINT64_C(1) << i;
    }
    for (uint32_t i = 0; i < share->register_bits; i++) {
        share->registers[i] = UINT64_C(1) << (threads + i);
    }
    lilac_layout_columns_find_replicated(share);
}

/* The cost of a second exchange with its barrier, in accesses, and the clocks of one dependent step
 * of a butterfly, for which the block waits once. */
enum { SECOND_EXCHANGE = 8, STEP_LATENCY = 24 };

/* Is it cheaper that each thread finishes a share? `most`: elements of a vector, log2. */
static bool prefers_shares(const lilac_plan_reduce *plan, uint32_t most) {
    if (plan->scalar || plan->result.block_bits > 0) {
        return false;
    }
    const uint32_t own = lilac_layout_columns_own(&plan->result);
    const uint32_t few = 1U << plan->share.register_bits;
    const uint32_t there = count_loads(few, plan->slot_bits, most) + 1 + count_loads(own, 0, most);
    return count_loads(own, plan->slot_bits, most) > there + SECOND_EXCHANGE;
}

/* Mask of lanes that need the same elements, as many as an element has partials. 0: there are
 * none, or loading all partials everywhere is faster. Costs are in clocks of the shared-memory
 * pipe, which delivers 128 bytes a clock to registers. */
static uint32_t lanes_for_partials(const lilac_plan_reduce *plan) {
    uint32_t lanes = 0, found = 0, steps = plan->slot_bits;
    for (uint32_t i = 0; i < plan->source.lane_bits && found < steps; i++) {
        const bool copies = plan->scalar || plan->result.threads[i] == 0;
        lanes |= (uint32_t)copies << i;
        found += copies;
    }
    if (found < steps) {
        return 0;
    }
    const uint32_t own = plan->scalar ? 1 : lilac_layout_columns_own(&plan->result);
    const uint64_t values = (uint64_t)own * plan->region.count * plan->num_warps;
    return values * (1 + steps) + (uint64_t)STEP_LATENCY * steps < values << steps ? lanes : 0;
}

void lilac_plan_reduce_order_memory(lilac_plan_reduce *plan) {
    uint64_t keeps[LILAC_LAYOUT_MAX_BITS];
    uint32_t size = 1;
    for (uint32_t i = 0; i < plan->region.count; i++) {
        size = max_u32(size, lilac_plan_stored_bytes(plan->region.operands[i].element_bits));
    }
    const uint32_t most = log2_of(plan->arch->vector_bytes / size);
    if (!plan->scalar) {
        make_share(plan);
        plan->shares = prefers_shares(plan, most);
    }
    plan->loading_lanes = plan->shares ? 0 : lanes_for_partials(plan);
    for (uint32_t i = 0; i < plan->source.thread_bits; i++) {
        keeps[i] = lilac_plan_reduce_kept(plan, plan->source.threads[i]);
    }
    choose_given(plan, keeps);
    memory_order order = {.plan = plan, .keeps = keeps};
    order.groups = (uint32_t)low_bits(plan->group_bits);
    for (uint32_t i = 0; i < plan->give_steps; i++) {
        order.groups &= ~(1U << plan->give_group[i]);
    }
    /* Threads that hold copies, or whose columns are sums, may change a direction within a vector.
     * Then vectors have fewer elements, but still all partials of one element. */
    uint32_t wide = most;
    do {
        order_index(&order, most, wide);
    } while (!is_aligned(&order) && wide-- > 0);
    keep_order(&order);
    plan->bytes = lilac_plan_region_bytes(&plan->region, plan->slot_bits + plan->kept_bits, NULL);
}
