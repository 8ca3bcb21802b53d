/* tt.reduce: partial results that are combined through shared memory.
 *
 * Each warp writes its partial of each of its elements. After a barrier a thread reads all partials
 * of the elements that it needs and combines them.
 *
 * The data that one thread reads has the lowest offsets, up to a vector: elements that a thread both
 * holds and needs, then the partials of one element, then other elements that it needs.
 *
 *        element 0       element 1
 *      | w0 w1 w2 w3 | w0 w1 w2 w3 | …           4 partials of f32: one vector of 16 bytes
 *
 * If many warps contribute and all lanes of a warp need the same elements, each lane reads one
 * partial of them, and butterflies combine those: a broadcast of 16 bytes uses as much of the path
 * from memory to registers as 512 bytes.
 *
 * If each element is needed in so many registers and threads that reading all its partials everywhere
 * costs more, each thread first finishes a share of the elements, and a conversion plan moves them to
 * the threads that need them. */
#include "collective/region.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "reduce.h"

#include <string.h>

/* ---- the plan ---------------------------------------------------------------------------- */

static uint64_t group_column(const lilac_reduce_plan *p, uint32_t group) {
    return lilac_reduce_kept(p, p->in->registers[p->group_register[group]]);
}

/* The register bit of the reader's own that leads to the same elements as this bit of the groups,
 * or LILAC_REDUCE_SLOT. */
static uint32_t wanted_by(const lilac_reduce_plan *p, uint32_t group) {
    uint32_t own = p->reader == NULL ? 0 : lilac_lower_distinct_registers(p->reader);
    for (uint32_t i = 0; own != 0 && i < p->reader->register_bits; i++) {
        if (own >> i & 1 && p->reader->registers[i] == group_column(p, group)) {
            return i;
        }
    }
    return LILAC_REDUCE_SLOT;
}

/* Chooses the elements that a thread's butterflies give away: first those that it does not need. */
static void plan_giving(lilac_reduce_plan *p) {
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        p->keeps[i] = lilac_reduce_kept(p, p->in->threads[i]);
    }
    bool given[LILAC_REDUCE_MOST] = {false};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t q = p->group_bits; q-- > 0 && p->give_steps < p->lane_steps;) {
            if (!given[q] && (pass == 1 || wanted_by(p, q) == LILAC_REDUCE_SLOT)) {
                given[q] = true;
                /* The steps are taken from the last to the first. */
                uint32_t pivot = p->lane_pivots[p->lane_steps - 1 - p->give_steps];
                p->give_group[p->give_steps++] = q;
                p->keeps[pivot] ^= group_column(p, q);
                p->idle_threads &= ~(1U << pivot);
            }
        }
    }
}

/* The next free bit of the index for this direction of the elements; false when it is not new. */
static bool put_element(lilac_reduce_plan *p, uint64_t column, uint32_t bit) {
    uint32_t index = lilac_f2_basis_dimension(&p->basis);
    if (!lilac_f2_basis_add(&p->basis, column, 1ULL << index)) {
        return false;
    }
    p->place[index] = bit;
    return true;
}

static uint64_t place_of(const lilac_reduce_plan *p, uint64_t element) {
    uint64_t index = 0;
    for (uint64_t tags = lilac_f2_basis_tag(&p->basis, element); tags != 0; tags &= tags - 1) {
        index |= 1ULL << p->place[lowest_bit(tags)];
    }
    return index;
}

/* Are these bits of the index 0 for everything that a thread adds to the beginnings of vectors? */
static bool is_aligned(const lilac_reduce_plan *p, uint32_t groups) {
    uint64_t vector = (1ULL << p->write_bits) - 1, found = 0;
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        found |= place_of(p, p->keeps[i]) & vector;
    }
    for (uint32_t i = 0; i < p->write_bits; i++) {
        groups &= ~(1U << p->write_group[i]);
    }
    for (uint32_t q = 0; q < p->group_bits; q++) {
        found |= groups >> q & 1 ? place_of(p, group_column(p, q)) & vector : 0;
    }
    if (p->reader == NULL) {
        return found == 0;
    }
    vector = (1ULL << p->read_bits) - 1;
    for (uint32_t i = 0; i < p->reader->thread_bits; i++) {
        found |= place_of(p, p->reader->threads[i]) & vector;
    }
    uint32_t others = lilac_lower_distinct_registers(p->reader);
    for (uint32_t i = 0; i < p->read_bits; i++) {
        others &=
            p->read_register[i] < LILAC_REDUCE_SLOT ? ~(1U << p->read_register[i]) : UINT32_MAX;
    }
    for (uint32_t i = 0; i < p->reader->register_bits; i++) {
        found |= others >> i & 1 ? place_of(p, p->reader->registers[i]) & vector : 0;
    }
    return found == 0;
}

/* Gives each bit of the index its direction. `most`: elements in a vector, log2, of which `wide`
 * may be bits of elements. `groups`: mask of those that are left. */
static void order_memory(lilac_reduce_plan *p, uint32_t groups, uint32_t most, uint32_t wide) {
    uint32_t bit = 0, slots = 0;
    lilac_f2_basis_init(&p->basis);
    p->write_bits = p->read_bits = 0;
    for (uint32_t q = 0; q < p->group_bits && bit < wide; q++) {
        uint32_t wanted = groups >> q & 1 ? wanted_by(p, q) : LILAC_REDUCE_SLOT;
        if (wanted != LILAC_REDUCE_SLOT && put_element(p, group_column(p, q), bit)) {
            p->write_group[p->write_bits++] = q;
            p->read_register[bit++] = wanted;
        }
    }
    for (; slots < p->slot_bits && bit < most; slots++) {
        p->slot_place[slots] = bit;
        p->read_register[bit++] = LILAC_REDUCE_SLOT + slots;
    }
    uint32_t own = p->reader == NULL ? 0 : lilac_lower_distinct_registers(p->reader);
    for (uint32_t i = 0; own != 0 && i < p->reader->register_bits && bit < most; i++) {
        if (own >> i & 1 && lilac_f2_basis_dimension(&p->basis) < wide &&
            put_element(p, p->reader->registers[i], bit)) {
            p->read_register[bit++] = i;
        }
    }
    p->read_bits = bit;
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        bit += put_element(p, p->keeps[i], bit);
    }
    for (uint32_t i = 0; p->reader != NULL && i < p->reader->thread_bits; i++) {
        bit += put_element(p, p->reader->threads[i], bit);
    }
    for (uint32_t i = 0; i < p->keep_bits; i++) {
        bit += put_element(p, 1ULL << i, bit);
    }
    for (; slots < p->slot_bits; slots++) {
        p->slot_place[slots] = bit++;
    }
}

/* Threads that hold replicas, or whose columns are sums, may change a direction within a vector. Then
 * vectors have fewer elements, but still all partials of one element. */
static void plan_memory(lilac_reduce_plan *p, uint32_t groups, uint32_t most) {
    uint32_t wide = most;
    do {
        order_memory(p, groups, most, wide);
    } while (!is_aligned(p, groups) && wide-- > 0);
}

/* Accesses that read 2^bits partials of each of `elements`. */
static uint32_t reads(uint32_t elements, uint32_t bits, uint32_t most) {
    uint64_t all = (uint64_t)elements << bits >> most;
    return all == 0 ? 1 : (uint32_t)all;
}

/* The cost of a second exchange with its barrier, in accesses. */
#define SECOND_EXCHANGE 8

/* Gives each thread a share of the elements. */
static lilac_lower_view *shares(lilac_lowering *l, const lilac_reduce_plan *p) {
    lilac_lower_view *view = lilac_arena_array(l->arena, lilac_lower_view, 1);
    *view = *p->out;
    memset(view->registers, 0, sizeof view->registers);
    memset(view->threads, 0, sizeof view->threads);
    uint32_t threads = p->keep_bits < view->thread_bits ? p->keep_bits : view->thread_bits;
    view->register_bits = p->keep_bits - threads;
    view->count = 1U << view->register_bits;
    for (uint32_t i = 0; i < threads; i++) {
        view->threads[i] = 1ULL << i;
    }
    for (uint32_t i = 0; i < view->register_bits; i++) {
        view->registers[i] = 1ULL << (threads + i);
    }
    lilac_lower_find_copies(l, view);
    return view;
}

/* Clocks of one dependent step of a butterfly; the block waits for it once. */
#define STEP_LATENCY 24

/* Mask of lanes that need the same elements, as many as an element has partials. 0: there are none, or
 * reading all partials everywhere is faster. Costs are in clocks of the shared-memory pipe, which
 * delivers 128 bytes a clock to registers. */
static uint32_t lanes_for_partials(const lilac_lowering *l, const lilac_reduce_plan *p) {
    uint32_t lanes = 0, found = 0, steps = p->slot_bits;
    for (uint32_t i = 0; i < p->in->lane_bits && found < steps; i++) {
        bool copies = p->reader == NULL || p->reader->threads[i] == 0;
        lanes |= (uint32_t)copies << i;
        found += copies;
    }
    if (found < steps) {
        return 0;
    }
    uint32_t own =
        p->reader == NULL ? 1 : 1U << __builtin_popcount(lilac_lower_distinct_registers(p->reader));
    uint64_t values = (uint64_t)own * p->operands * l->target->num_warps;
    return values * (1 + steps) + (uint64_t)STEP_LATENCY * steps < values << steps ? lanes : 0;
}

void lilac_reduce_plan_shared(lilac_lowering *l, lilac_reduce_plan *p, uint32_t size) {
    uint32_t most = log2_of(l->target->arch->vector_bytes / size);
    p->reader = p->out;
    if (p->out != NULL && p->out->block_bits == 0) {
        uint32_t own = 1U << __builtin_popcount(lilac_lower_distinct_registers(p->out));
        lilac_lower_view *few = shares(l, p);
        uint32_t there = reads(few->count, p->slot_bits, most) + 1 + reads(own, 0, most);
        if (reads(own, p->slot_bits, most) > there + SECOND_EXCHANGE) {
            p->reader = few;
        }
    }
    if (p->reader == p->out) {
        p->reading_lanes = lanes_for_partials(l, p);
    }
    plan_giving(p);
    uint32_t groups = (1U << p->group_bits) - 1;
    for (uint32_t i = 0; i < p->give_steps; i++) {
        groups &= ~(1U << p->give_group[i]);
    }
    plan_memory(p, groups, most);
}

/* ---- the code ---------------------------------------------------------------------------- */

static void write_partials(lilac_lowering *l, const lilac_reduce_plan *p, uint32_t operand,
                           uint32_t start, const lilac_simt_instruction *promise,
                           const lilac_simt_value *elements) {
    lilac_simt_type type = lilac_simt_type_of(l->kernel, elements[operand]);
    uint32_t scale = log2_of(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < p->in->thread_bits; i++) {
        columns[i] = place_of(p, p->keeps[i]) << scale;
    }
    for (uint32_t s = 0; s < p->slot_bits; s++) {
        columns[p->slot_thread[s]] ^= 1ULL << p->slot_place[s] << scale;
    }
    uint32_t others = 0; /* groups that begin no vector, or were given to other lanes */
    for (uint32_t i = 0; i < p->write_bits; i++) {
        others |= 1U << p->write_group[i];
    }
    for (uint32_t i = 0; i < p->give_steps; i++) {
        others |= 1U << p->give_group[i];
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, p->in->thread_bits, columns);
    lilac_simt_value writes = lilac_lower_elect_holder(l, p->idle_threads, 0);
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (g & others) {
            continue;
        }
        uint64_t part = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            part ^= g >> i & 1 ? group_column(p, i) : 0;
        }
        lilac_simt_value values[16];
        for (uint32_t k = 0; k < 1U << p->write_bits; k++) {
            uint32_t member = g;
            for (uint32_t i = 0; i < p->write_bits; i++) {
                member |= (k >> i & 1) << p->write_group[i];
            }
            values[k] = elements[(size_t)member * p->operands + operand];
        }
        int64_t immediate;
        lilac_simt_value address =
            lilac_lower_address_of(l, &a, place_of(p, part) << scale, &immediate);
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_ST_SHARED,
                                           .type = type,
                                           .count = 1U << p->write_bits,
                                           .address = address,
                                           .offset = immediate + start,
                                           .predicate = writes,
                                           .modifiers = promise};
        lilac_lower_store_vector(l, &access, values);
    }
}

/* The partials of the reader's registers: of each register 2^slot_bits, `operands` apart. */
static void read_partials(lilac_lowering *l, const lilac_reduce_plan *p, uint32_t operand,
                          uint32_t start, lilac_simt_type type,
                          const lilac_simt_instruction *promise, lilac_simt_value *partials) {
    uint32_t scale = log2_of(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t bits = p->reader == NULL ? 0 : p->reader->thread_bits;
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = place_of(p, p->reader->threads[i]) << scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, bits, columns);
    uint32_t later_registers = 0, later_slots = 0; /* bits of those that begin no vector */
    for (uint32_t i = 0; i < p->read_bits; i++) {
        uint32_t from = p->read_register[i];
        later_registers |= from < LILAC_REDUCE_SLOT ? 1U << from : 0;
        later_slots |= from >= LILAC_REDUCE_SLOT ? 1U << (from - LILAC_REDUCE_SLOT) : 0;
    }
    uint32_t count = p->reader == NULL ? 1 : p->reader->count, slots = 1U << p->slot_bits;
    for (uint32_t i = 0; i < count * slots; i++) {
        uint32_t r = i / slots, slot = i % slots;
        if (r & later_registers || slot & later_slots ||
            (p->reader != NULL && p->reader->canonical[r] != r)) {
            continue;
        }
        uint64_t part = p->reader == NULL ? 0 : place_of(p, p->reader->coordinates[r]);
        for (uint32_t s = 0; s < p->slot_bits; s++) {
            part ^= (uint64_t)(slot >> s & 1) << p->slot_place[s];
        }
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << scale, &immediate);
        lilac_simt_value loaded[16];
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = type,
                                           .count = 1U << p->read_bits,
                                           .address = address,
                                           .offset = immediate + start,
                                           .modifiers = promise};
        lilac_lower_load_vector(l, &access, NULL, loaded);
        for (uint32_t k = 0; k < 1U << p->read_bits; k++) {
            uint32_t member = r, partial = slot;
            for (uint32_t j = 0; j < p->read_bits; j++) {
                uint32_t from = p->read_register[j];
                member |= from < LILAC_REDUCE_SLOT ? (k >> j & 1) << from : 0;
                partial |=
                    from >= LILAC_REDUCE_SLOT ? (k >> j & 1) << (from - LILAC_REDUCE_SLOT) : 0;
            }
            partials[((size_t)member * slots + partial) * p->operands + operand] = loaded[k];
        }
    }
}

/* One partial of each of the reader's registers: that of the lane's slot. */
static void read_own_partials(lilac_lowering *l, const lilac_reduce_plan *p, uint32_t operand,
                              uint32_t start, lilac_simt_type type,
                              const lilac_simt_instruction *promise, lilac_simt_value *elements) {
    uint32_t scale = log2_of(lilac_lower_memory_bytes(type));
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    uint32_t bits = p->in->thread_bits, slot = 0;
    for (uint32_t i = 0; i < bits; i++) {
        columns[i] = p->reader == NULL ? 0 : place_of(p, p->reader->threads[i]) << scale;
        if (p->reading_lanes >> i & 1) {
            columns[i] = 1ULL << p->slot_place[slot++] << scale;
        }
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, bits, columns);
    uint32_t count = p->reader == NULL ? 1 : p->reader->count;
    for (uint32_t r = 0; r < count; r++) {
        if (p->reader != NULL && p->reader->canonical[r] != r) {
            continue;
        }
        uint64_t part = p->reader == NULL ? 0 : place_of(p, p->reader->coordinates[r]);
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << scale, &immediate);
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = type,
                                           .count = 1,
                                           .address = address,
                                           .offset = immediate + start,
                                           .modifiers = promise};
        lilac_lower_load_vector(l, &access, NULL, &elements[(size_t)r * p->operands + operand]);
    }
}

/* Butterflies over the lanes that read the partials. */
static bool combine_lanes(lilac_lowering *l, const lilac_tile_op *op, const lilac_reduce_plan *p,
                          lilac_simt_value *elements) {
    uint32_t n = p->operands;
    lilac_simt_value *other = lilac_arena_array(l->arena, lilac_simt_value, n);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->in->lane_bits; i++) {
        if (!(p->reading_lanes >> i & 1)) {
            columns[i] = 1ULL << i;
            continue;
        }
        lilac_simt_value mask = lilac_simt_constant(&l->builder, LILAC_SIMT_I32, 1ULL << i);
        for (uint32_t k = 0; k < n; k++) {
            other[k] = lilac_lower_shuffle(l, LILAC_SIMT_SHFL_XOR, elements[k], mask);
        }
        if (!lilac_lower_combine(l, op, elements, other)) {
            return false;
        }
    }
    lilac_reduce_agree(l, op, p->in->lane_bits, columns, 1, elements);
    return true;
}

bool lilac_reduce_through_shared(lilac_lowering *l, const lilac_tile_op *op,
                                 const lilac_reduce_plan *p, const lilac_simt_value *elements,
                                 lilac_lower_value *const *results) {
    uint32_t n = p->operands, slots = 1U << p->slot_bits, bytes = 0, scratch;
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    lilac_lower_barrier(l);
    for (uint32_t i = 0; i < n; i++) {
        starts[i] = (bytes + 15) / 16 * 16;
        bytes = starts[i] +
                (lilac_lower_memory_bytes(results[i]->simt) << p->slot_bits << p->keep_bits);
    }
    scratch = lilac_lower_scratch_reused(l, bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch, .shared_end = scratch + bytes};
    for (uint32_t i = 0; i < n; i++) {
        starts[i] += scratch;
        write_partials(l, p, i, starts[i], &promise, elements);
    }
    lilac_lower_barrier(l);
    const lilac_lower_view *reader = p->reader;
    uint32_t registers = reader == NULL ? 1 : reader->count;
    bool by_lanes = p->reading_lanes != 0;
    slots = by_lanes ? 1 : slots;
    lilac_simt_value *partials =
        lilac_arena_array(l->arena, lilac_simt_value, (size_t)registers * slots * n);
    for (uint32_t i = 0; i < n; i++) {
        (by_lanes ? read_own_partials : read_partials)(l, p, i, starts[i], results[i]->simt,
                                                       &promise, partials);
    }
    lilac_simt_value *ends = lilac_arena_array(l->arena, lilac_simt_value, (size_t)registers * n);
    for (uint32_t r = 0; r < registers; r++) {
        uint32_t same = reader == NULL ? r : reader->canonical[r];
        lilac_simt_value *list = partials + (size_t)r * slots * n;
        if (same == r && !(by_lanes ? combine_lanes(l, op, p, list)
                                    : lilac_reduce_combine_tree(l, op, list, slots))) {
            return false;
        }
        memcpy(ends + (size_t)r * n, same == r ? list : ends + (size_t)same * n, n * sizeof *ends);
    }
    return lilac_reduce_take_results(l, p, reader, registers, ends, results);
}
