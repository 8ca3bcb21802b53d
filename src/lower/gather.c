/* tt.gather: result[.. i ..] = source[.. index[.. i ..] ..] along an axis, between any layouts.
 *
 * The element that register r of thread t wants stands at coordinate
 *
 *     beside the axis   what r and t say            (known, linear in r and t)
 *     along the axis    what the index says         (bits of a value)
 *
 * and where a coordinate stands is linear too, so the place is f(r) xor g(t) xor h(index). Three
 * ways, by price:
 *
 *   shuffles   the place is a register and a lane of the same warp. The lane is named to one
 *              shuffle for each register that it may be; selects by the register's bits follow.
 *              Narrow elements travel as whole words of those registers (section 5.5)
 *   warp       the place is in the warp, and there in its own part of shared memory: stores, the
 *              warp's barrier, loads
 *   block      the same with a barrier of the block
 *
 * The memory is that in which stores by the source's registers and loads by what is known of the
 * result's threads meet best; the lanes that only the index tells apart are taken to be as good as
 * random. An index is cut to the bits of the axis: one out of range reads some element. */
#include "lower_internal.h"

#include <string.h>

#define LANE_MARK 32 /* marks of lanes stand above those of registers */

typedef struct gather {
    lilac_lowering *l;
    const lilac_lower_value *source;
    lilac_lower_value *result;
    const lilac_lower_view *from, *to;
    uint32_t axis, own, own_bits; /* registers of the source */
    lilac_simt_value *values;     /* its own ones, in order */
    lilac_simt_value *index;      /* i32, by register of the result */
    bool in_warp;                 /* each warp needs its own elements only */
    /* Where: the source's register in the low bits, the change of lane above LANE_MARK. */
    bool by_lanes;
    uint64_t of_register[LILAC_LAYOUT_MAX_BITS], of_thread[LILAC_LAYOUT_MAX_BITS];
    uint64_t of_index[LILAC_LAYOUT_MAX_BITS];
} gather;

static uint64_t beside(const gather *g, const lilac_lower_view *view, uint64_t coordinate) {
    uint64_t place = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        uint64_t part = coordinate >> view->start[d] & ((1ULL << view->bits[d]) - 1);
        place |= d == g->axis ? 0 : part << g->from->start[d];
    }
    return place;
}

static uint64_t axis_unit(const gather *g, uint32_t bit) {
    return 1ULL << (g->from->start[g->axis] + bit);
}

/* ---- where elements stand ----------------------------------------------------------------- */

/* In registers and lanes of the source, from the thread's own lane on: false when some are in
 * other warps. */
static bool solve(const lilac_lower_basis *span, uint64_t coordinate, uint64_t *where) {
    *where = 0;
    return lilac_lower_basis_reduce(span, coordinate, where) == 0;
}

static void find_places(gather *g) {
    lilac_lower_basis span = {0};
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->from->register_bits; i++) {
        if (g->own >> i & 1) {
            (void)lilac_lower_basis_add(&span, g->from->registers[i], 1ULL << next++);
        }
    }
    for (uint32_t i = 0; i < g->from->lane_bits; i++) {
        (void)lilac_lower_basis_add(&span, g->from->threads[i], 1ULL << (LANE_MARK + i));
    }
    g->by_lanes = true;
    for (uint32_t i = 0; i < g->to->register_bits; i++) {
        g->by_lanes &= solve(&span, beside(g, g->to, g->to->registers[i]), &g->of_register[i]);
    }
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        uint64_t apart = beside(g, g->to, g->to->threads[i]) ^ g->from->threads[i];
        g->by_lanes &= solve(&span, apart, &g->of_thread[i]);
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        g->by_lanes &= solve(&span, axis_unit(g, i), &g->of_index[i]);
    }
    uint32_t warps = ((1U << g->from->thread_bits) - 1) & ~((1U << g->from->lane_bits) - 1);
    g->in_warp = g->by_lanes && (g->from->free_threads & warps) == 0;
}

/* xor of columns[i] over the set bits of a value; *possible: the bits that it may have. */
static lilac_simt_value linear(lilac_lowering *l, lilac_simt_value value, uint32_t bits,
                               const uint64_t *columns, uint64_t *possible) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value sum = 0;
    uint64_t sum_bits = 0;
    for (int32_t shift = -31; shift <= 31; shift++) {
        uint64_t mask = 0;
        for (uint32_t i = 0; i < bits; i++) {
            int32_t at = (int32_t)i + shift;
            mask |= at >= 0 && columns[i] >> at & 1 ? 1ULL << i : 0;
        }
        if (mask == 0) {
            continue;
        }
        lilac_simt_value part = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, value,
                                               lilac_simt_constant(b, LILAC_SIMT_I32, mask));
        if (shift != 0) {
            uint32_t by = (uint32_t)(shift < 0 ? -shift : shift);
            part = lilac_simt_op2(b, shift < 0 ? LILAC_SIMT_OP_SHR_U : LILAC_SIMT_OP_SHL,
                                  LILAC_SIMT_I32, part, lilac_simt_constant(b, LILAC_SIMT_I32, by));
        }
        uint64_t moved = shift < 0 ? mask >> -shift : mask << shift;
        sum = sum == 0 ? part
                       : lilac_simt_op2(b, moved & sum_bits ? LILAC_SIMT_OP_XOR : LILAC_SIMT_OP_OR,
                                        LILAC_SIMT_I32, sum, part);
        sum_bits |= moved;
    }
    *possible = sum_bits;
    return sum != 0 ? sum : lilac_simt_constant(b, LILAC_SIMT_I32, 0);
}

static lilac_simt_value join(lilac_lowering *l, lilac_simt_value a, lilac_simt_value b,
                             bool disjoint) {
    return lilac_simt_op2(&l->builder, disjoint ? LILAC_SIMT_OP_OR : LILAC_SIMT_OP_XOR,
                          LILAC_SIMT_I32, a, b);
}

/* ---- shuffles ----------------------------------------------------------------------------- */

static uint32_t part_of(uint64_t place, bool lane) {
    return (uint32_t)(lane ? place >> LANE_MARK : place & 0xffffffffU);
}

/* The register bits that differ with thread or index. */
static uint32_t varying_registers(const gather *g) {
    uint32_t mask = 0;
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        mask |= part_of(g->of_thread[i], false);
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        mask |= part_of(g->of_index[i], false);
    }
    return mask;
}

/* Does every element stay in its lane? */
static bool stays(const gather *g) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < g->to->register_bits; i++) {
        all |= g->of_register[i];
    }
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        all |= g->of_thread[i];
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        all |= g->of_index[i];
    }
    return part_of(all, true) == 0;
}

/* Elements of one word that travel together: those of the lowest varying registers. */
static uint32_t packed_bits(const gather *g) {
    uint32_t bits = lilac_simt_type_bits(g->source->simt);
    uint32_t most = bits == 16 ? 1 : bits == 8 ? 2 : 0;
    uint32_t varying = (uint32_t)__builtin_popcount(varying_registers(g));
    return stays(g) ? 0 : most < varying ? most : varying;
}

/* The thread's part, of the register or of the lane. */
static lilac_simt_value thread_part(const gather *g, bool lane, uint64_t *possible) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    *possible = 0;
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        columns[i] = part_of(g->of_thread[i], lane);
        columns[i] ^= lane && i < g->to->lane_bits ? 1ULL << i : 0;
        *possible |= columns[i];
    }
    return lilac_lower_linear(&g->l->builder, g->to->thread_bits, columns, 0, NULL);
}

/* Register r of the result's register or lane in the source. */
static lilac_simt_value place_of(const gather *g, bool lane, uint32_t r) {
    lilac_lowering *l = g->l;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], by_thread, by_index;
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        columns[i] = part_of(g->of_index[i], lane);
    }
    lilac_simt_value thread = thread_part(g, lane, &by_thread);
    lilac_simt_value index = linear(l, g->index[r], g->from->bits[g->axis], columns, &by_index);
    uint64_t fixed = 0;
    for (uint32_t i = 0; i < g->to->register_bits; i++) {
        fixed ^= r >> i & 1 ? part_of(g->of_register[i], lane) : 0;
    }
    lilac_simt_value place = join(l, thread, index, (by_thread & by_index) == 0);
    return join(l, place, lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)fixed), false);
}

static lilac_simt_value bit_is_set(const gather *g, lilac_simt_value value, uint32_t mask) {
    lilac_simt_builder *b = &g->l->builder;
    lilac_simt_value bit = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, value,
                                          lilac_simt_constant(b, LILAC_SIMT_I32, mask));
    return lilac_simt_compare_values(b, LILAC_SIMT_NE, bit,
                                     lilac_simt_constant(b, LILAC_SIMT_I32, 0));
}

/* One of 2^bits values by the bits of `place` that the mask has. */
static lilac_simt_value choose(const gather *g, lilac_simt_value place, uint32_t mask,
                               lilac_simt_value *list) {
    uint32_t bits = (uint32_t)__builtin_popcount(mask);
    for (uint32_t i = bits; i-- > 0;) {
        lilac_simt_value second = bit_is_set(g, place, lilac_lower_deposit(1U << i, mask));
        for (uint32_t k = 0; k < 1U << i; k++) {
            list[k] = lilac_lower_select(g->l, second, list[k + (1U << i)], list[k]);
        }
    }
    return list[0];
}

static void by_shuffles(const gather *g) {
    lilac_lowering *l = g->l;
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = g->source->simt;
    uint32_t varying = varying_registers(g), together = packed_bits(g);
    uint32_t count = 1U << __builtin_popcount(varying), each = 1U << together;
    uint32_t inner = lilac_lower_deposit(each - 1, varying), outer = varying & ~inner;
    bool stay = stays(g);
    lilac_simt_value *list = lilac_arena_array(l->arena, lilac_simt_value, count);
    for (uint32_t r = 0; r < g->to->count; r++) {
        if (g->to->canonical[r] != r) {
            g->result->base[r] = g->result->base[g->to->canonical[r]];
            continue;
        }
        uint32_t fixed = 0;
        for (uint32_t i = 0; i < g->to->register_bits; i++) {
            fixed ^= r >> i & 1 ? part_of(g->of_register[i], false) : 0;
        }
        fixed &= ~varying;
        lilac_simt_value place = varying != 0 ? place_of(g, false, r) : 0;
        lilac_simt_value lane = stay ? 0 : place_of(g, true, r);
        for (uint32_t k = 0; k < count; k += each) {
            lilac_simt_value parts[4], word;
            for (uint32_t e = 0; e < each; e++) {
                parts[e] = g->values[fixed | lilac_lower_deposit(k + e, varying)];
            }
            word = parts[0];
            if (together > 0 && (each < 4 && lilac_simt_type_bits(type) == 8)) {
                parts[2] = parts[3] = lilac_simt_constant(b, type, 0);
                word = lilac_simt_pack(b, LILAC_SIMT_I32, 4, parts);
            } else if (together > 0) {
                word = lilac_simt_pack(b, LILAC_SIMT_I32, each, parts);
            }
            list[k / each] = stay ? word : lilac_lower_shuffle(l, LILAC_SIMT_SHFL_IDX, word, lane);
        }
        lilac_simt_value word = choose(g, place, outer, list);
        if (together > 0) {
            lilac_simt_value parts[4];
            lilac_simt_unpack(b, type, word, 32 / lilac_simt_type_bits(type), parts);
            word = choose(g, place, inner, parts);
        }
        g->result->base[r] = word;
    }
}

/* ---- shared memory ------------------------------------------------------------------------ */

typedef struct memory {
    lilac_layout source; /* of its own registers */
    lilac_layout layout;
    lilac_movement_access store;
} memory;

/* A layout of the source in which the lanes are those of the result as far as they are known. */
static void known_view(const gather *g, lilac_lower_view *view) {
    lilac_lower_basis span = {0};
    *view = *g->from;
    uint64_t *columns[2] = {view->threads, view->registers};
    uint64_t rest[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0, taken = 0;
    for (uint32_t i = 0; i < view->thread_bits; i++) {
        uint64_t column = beside(g, g->to, g->to->threads[i]);
        view->threads[i] = lilac_lower_basis_add(&span, column, 0) ? column : 0;
    }
    /* The axis first: those bits are what the index says of the other lanes. */
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        if (lilac_lower_basis_add(&span, axis_unit(g, i), 0)) {
            rest[count++] = axis_unit(g, i);
        }
    }
    for (uint32_t i = 0; i < g->from->layout->out_bits; i++) {
        if (lilac_lower_basis_add(&span, 1ULL << i, 0)) {
            rest[count++] = 1ULL << i;
        }
    }
    for (uint32_t i = 0; i < view->lane_bits; i++) {
        columns[0][i] = columns[0][i] == 0 && taken < count ? rest[taken++] : columns[0][i];
    }
    view->register_bits = 0;
    while (taken < count) {
        columns[1][view->register_bits++] = rest[taken++];
    }
}

/* Row-major. */
static bool plain_memory(const gather *g, lilac_layout *layout, lilac_reason *why) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    uint32_t count = 0;
    lilac_layout_init(layout);
    for (uint32_t d = 0; d < g->from->rank; d++) {
        if (!lilac_layout_add_out(layout, g->from->layout->out[d].name, g->from->bits[d], why)) {
            return false;
        }
    }
    for (uint32_t d = g->from->rank; d-- > 0;) {
        for (uint32_t i = 0; i < g->from->bits[d]; i++) {
            columns[count++] = 1ULL << (g->from->start[d] + i);
        }
    }
    return lilac_layout_add_in(layout, "offset", count, columns, why) &&
           lilac_layout_add_in(layout, "block", 0, columns, why);
}

static uint32_t element_bits(const gather *g) {
    return lilac_lower_carried_bits(lilac_simt_type_bits(g->source->simt));
}

static bool choose_memory(const gather *g, memory *m, lilac_reason *why) {
    const lilac_arch *arch = g->l->target->arch;
    lilac_lower_view known;
    lilac_layout wanted;
    known_view(g, &known);
    if (!lilac_lower_layout_of(&m->source, g->from, g->from, g->own, why) ||
        !lilac_lower_layout_of(&wanted, g->from, &known, (1U << known.register_bits) - 1, why)) {
        return false;
    }
    lilac_movement_trip *trip = lilac_arena_new(g->l->arena, lilac_movement_trip);
    lilac_movement_renaming before, after;
    lilac_movement_bound bound;
    lilac_movement_options options = {.way = LILAC_MOVEMENT_BY_SHARED,
                                      .scratch_bytes = arch->shared_bytes};
    lilac_reason ignored = {0};
    if (lilac_movement_trip_init(trip, &before, &after, &bound, &m->source, &wanted,
                                 element_bits(g), &options, arch, &ignored) &&
        trip->round_bits == 0 &&
        lilac_movement_access_init(&m->store, &m->source, &trip->memory, element_bits(g), arch,
                                   &ignored)) {
        m->layout = trip->memory;
        return true;
    }
    return plain_memory(g, &m->layout, why) &&
           lilac_movement_access_init(&m->store, &m->source, &m->layout, element_bits(g), arch,
                                      why);
}

static void through_shared(const gather *g, const memory *m) {
    lilac_lowering *l = g->l;
    lilac_lower_basis offsets = {0};
    uint32_t bits = lilac_layout_in_bits(&m->layout, "offset");
    uint32_t scale = lilac_lower_log2(element_bits(g) / 8);
    for (uint32_t i = 0; i < bits; i++) {
        (void)lilac_lower_basis_add(&offsets, lilac_layout_column(&m->layout, "offset", i),
                                    1ULL << i);
    }
    uint32_t warp_bits = g->from->thread_bits - g->from->lane_bits;
    uint64_t bytes = 1ULL << bits << scale;
    uint32_t scratch = lilac_lower_scratch(l, bytes);
    lilac_lower_place place = {.offset = scratch,
                               .bytes = bytes,
                               .apart = g->in_warp ? (1U << warp_bits) - 1 : 0,
                               .copies = g->from->free_threads};
    lilac_lower_words words = {0};
    lilac_lower_pack_words(&l->builder, l->arena, g->source->simt, g->own_bits, element_bits(g),
                           g->values, &words);
    lilac_lower_barrier(l);
    if (g->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    }
    lilac_lower_store_access(&l->builder, l->arena, &m->store, &place, &words);
    if (g->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    } else {
        lilac_lower_barrier(l);
    }
    lilac_simt_instruction promise = {.shared_begin = scratch,
                                      .shared_end = (uint32_t)(scratch + bytes),
                                      .shared_apart = place.apart};
    uint64_t threads[LILAC_LAYOUT_MAX_BITS], along[LILAC_LAYOUT_MAX_BITS];
    uint64_t by_thread = 0, by_index;
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        (void)solve(&offsets, beside(g, g->to, g->to->threads[i]), &threads[i]);
        threads[i] <<= scale;
        by_thread |= threads[i];
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        (void)solve(&offsets, axis_unit(g, i), &along[i]);
        along[i] <<= scale;
    }
    lilac_lower_addressing a = lilac_lower_address_threads(l, g->to->thread_bits, threads);
    lilac_simt_value thread = a.thread;
    for (uint32_t r = 0; r < g->to->count; r++) {
        if (g->to->canonical[r] != r) {
            g->result->base[r] = g->result->base[g->to->canonical[r]];
            continue;
        }
        lilac_simt_value index = linear(l, g->index[r], g->from->bits[g->axis], along, &by_index);
        uint64_t part;
        int64_t immediate;
        (void)solve(&offsets, beside(g, g->to, g->to->coordinates[r]), &part);
        a.thread = join(l, thread, index, (by_thread & by_index) == 0);
        a.thread_bits = by_thread | by_index;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << scale, &immediate);
        lilac_lower_load_vector(l, LILAC_SIMT_OP_LD_SHARED, g->source->simt, 1, address,
                                immediate + scratch, 0, NULL, &promise, &g->result->base[r]);
    }
}

/* ---- prices ------------------------------------------------------------------------------- */

/* The most of n balls in n boxes, n = 1, 2, 4 … 32, in sixteenths. */
static const uint8_t crowd[] = {16, 24, 34, 42, 49, 56};

static uint64_t own_results(const gather *g) {
    return 1ULL << __builtin_popcount(lilac_lower_own_registers(g->to));
}

static uint64_t price_shuffles(const gather *g) {
    lilac_movement_price price = {0};
    uint32_t varying = (uint32_t)__builtin_popcount(varying_registers(g));
    uint64_t warps = g->l->target->num_warps, results = own_results(g) * warps;
    uint64_t words = lilac_simt_type_bits(g->source->simt) == 64 ? 2 : 1;
    price.shuffles = stays(g) ? 0 : results * words << varying >> packed_bits(g);
    /* For each register bit that the index decides its predicate, and each element of a word taken
     * out of it. */
    price.selects = results * (words * ((1ULL << varying) - 1) + 2ULL * varying);
    price.packs = packed_bits(g) > 0 ? 2 * results : 0;
    return lilac_movement_price_cycles(&price, LILAC_MOVEMENT_BARRIER_WARP, g->l->target->arch);
}

static uint64_t price_shared(const gather *g, const memory *m) {
    lilac_movement_price price = {0};
    uint64_t warps = g->l->target->num_warps, results = own_results(g) * warps;
    lilac_lower_basis known = {0};
    for (uint32_t i = 0; i < g->to->lane_bits; i++) {
        (void)lilac_lower_basis_add(&known, beside(g, g->to, g->to->threads[i]), 0);
    }
    uint32_t unknown = g->to->lane_bits > known.count ? g->to->lane_bits - known.count : 0;
    unknown = unknown > 5 ? 5 : unknown;
    uint32_t axis_bits = g->from->bits[g->axis];
    unknown = axis_bits < unknown ? axis_bits : unknown;
    price.stores = m->store.instructions;
    price.store_wavefronts = m->store.wavefronts;
    price.loads = results;
    price.load_wavefronts = results * crowd[unknown] / 16;
    price.barriers = warps;
    return lilac_movement_price_cycles(
        &price, g->in_warp ? LILAC_MOVEMENT_BARRIER_WARP : LILAC_MOVEMENT_BARRIER_BLOCK,
        g->l->target->arch);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* The index as i32, in the result's layout. What is negative is out of range. */
static bool read_index(gather *g, const lilac_lower_value *index) {
    lilac_lowering *l = g->l;
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, index->view->count);
    g->index = lilac_arena_array(l->arena, lilac_simt_value, g->to->count);
    uint32_t bits = lilac_simt_type_bits(index->simt);
    for (uint32_t r = 0; r < index->view->count; r++) {
        if (index->view->canonical[r] != r) {
            continue;
        }
        values[r] = lilac_lower_get(l, index, r);
        if (bits != 32) {
            values[r] =
                lilac_simt_op1(&l->builder, bits > 32 ? LILAC_SIMT_OP_TRUNC : LILAC_SIMT_OP_ZEXT,
                               LILAC_SIMT_I32, values[r]);
        }
    }
    if (index->view == g->to) {
        memcpy(g->index, values, g->to->count * sizeof *values);
        return true;
    }
    return lilac_lower_move(l, LILAC_SIMT_I32, index->view, g->to, LILAC_MOVEMENT_ANY, values,
                            g->index);
}

static bool crosses_blocks(const gather *g) {
    for (uint32_t i = 0; i < g->from->block_bits; i++) {
        if (g->from->blocks[i] != 0) {
            return true;
        }
    }
    return false;
}

bool lilac_lower_gather(lilac_lowering *l, const lilac_tile_op *op) {
    gather *g = lilac_arena_new(l->arena, gather);
    memory *m = lilac_arena_new(l->arena, memory);
    int64_t axis = lilac_tile_find_integer(&op->attributes, "axis", 0);
    g->l = l;
    g->source = lilac_lower_operand(l, op, 0);
    g->result = lilac_lower_result(l, op, 0);
    if (g->result == NULL) {
        return false;
    }
    g->from = g->source->view;
    g->to = g->result->view;
    if (axis < 0 || axis >= g->from->rank || g->to->rank != g->from->rank) {
        return lilac_lower_unsupported(l, "its axis or shapes do not fit");
    }
    g->axis = (uint32_t)axis;
    for (uint32_t d = 0; d < g->from->rank; d++) {
        if (d != g->axis && g->to->bits[d] > g->from->bits[d]) {
            return lilac_lower_unsupported(l,
                                           "the index is larger than the source beside the axis");
        }
    }
    if (crosses_blocks(g)) {
        return lilac_lower_unsupported(l, "its source is spread over the blocks of a cluster");
    }
    if (!read_index(g, lilac_lower_operand(l, op, 1))) {
        return false;
    }
    g->own = lilac_lower_own_registers(g->from);
    g->own_bits = (uint32_t)__builtin_popcount(g->own);
    g->values = lilac_arena_array(l->arena, lilac_simt_value, (size_t)1 << g->own_bits);
    for (uint32_t k = 0; k < 1U << g->own_bits; k++) {
        g->values[k] = lilac_lower_get(l, g->source, lilac_lower_deposit(k, g->own));
    }
    find_places(g);
    lilac_reason why = {0};
    bool has_memory = choose_memory(g, m, &why);
    if (g->by_lanes && (!has_memory || price_shuffles(g) <= price_shared(g, m))) {
        by_shuffles(g);
        return true;
    }
    if (!has_memory) {
        return lilac_lower_unsupported(l, why.text);
    }
    through_shared(g, m);
    return true;
}
