/* tt.gather: result[.. i ..] = source[.. index[.. i ..] ..] along an axis, between any layouts.
 *
 * Register r of thread t needs the element at the coordinate
 *
 *     off the axis      given by r and t           (known, linear in r and t)
 *     along the axis    given by the index         (bits of a value)
 *
 * The place of an element is linear in its coordinate too, so it is f(r) xor g(t) xor h(index).
 * There are three ways. The cheapest is chosen, or the attribute lilac.movement selects one
 * ("shuffles", "shared", "unswizzled"):
 *
 *   shuffles   The place is a register and a lane of the same warp. One shuffle reads each word that
 *              may contain the element from that lane; a tree of byte permutes selects the word and
 *              the element within it (section 5.5).
 *   warp       The place is in the same warp. Each warp uses its own part of shared memory: stores,
 *              a barrier of the warp, loads.
 *   block      The same with a barrier of the block.
 *
 * A source that is larger than shared memory is stored in rounds, one part at a time.
 * gather_memory.c chooses the order of memory. "unswizzled" is row-major memory and a barrier of the
 * block, for comparisons. An index is truncated to the bits of the axis: one out of range reads an
 * arbitrary element. */
#include "gather.h"
#include "collective/region.h"
#include "convert_layout.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <string.h>

#define LANE_MARK 32 /* marks of lanes stand above those of registers */

typedef lilac_gather gather;

uint64_t lilac_gather_beside(const gather *g, const lilac_lower_view *view, uint64_t coordinate) {
    uint64_t place = 0;
    for (uint32_t d = 0; d < view->rank; d++) {
        uint64_t part = coordinate >> view->start[d] & ((1ULL << view->bits[d]) - 1);
        place |= d == g->axis ? 0 : part << g->from->start[d];
    }
    return lilac_gather_in_round(g, place);
}

uint64_t lilac_gather_axis_unit(const gather *g, uint32_t bit) {
    return lilac_gather_in_round(g, 1ULL << (g->from->start[g->axis] + bit));
}

/* ---- where elements stand ----------------------------------------------------------------- */

/* In registers and lanes of the source, from the thread's own lane on: false when some are in
 * other warps. */
static bool solve(const lilac_f2_basis *span, uint64_t coordinate, uint64_t *where) {
    return lilac_f2_basis_reduce(span, coordinate, where) == 0;
}

static void find_places(gather *g) {
    lilac_f2_basis span;
    lilac_f2_basis_init(&span);
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->from->register_bits; i++) {
        if (g->own >> i & 1) {
            (void)lilac_f2_basis_add(&span, g->from->registers[i], 1ULL << next++);
        }
    }
    for (uint32_t i = 0; i < g->from->lane_bits; i++) {
        (void)lilac_f2_basis_add(&span, g->from->threads[i], 1ULL << (LANE_MARK + i));
    }
    g->by_lanes = true;
    for (uint32_t i = 0; i < g->to->register_bits; i++) {
        g->by_lanes &=
            solve(&span, lilac_gather_beside(g, g->to, g->to->registers[i]), &g->of_register[i]);
    }
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        uint64_t apart = lilac_gather_beside(g, g->to, g->to->threads[i]) ^ g->from->threads[i];
        g->by_lanes &= solve(&span, apart, &g->of_thread[i]);
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        g->by_lanes &= solve(&span, lilac_gather_axis_unit(g, i), &g->of_index[i]);
    }
    uint32_t warps = ((1U << g->from->thread_bits) - 1) & ~((1U << g->from->lane_bits) - 1);
    g->in_warp = g->by_lanes && (g->from->free_threads & warps) == 0 &&
                 g->way != LILAC_TILE_MOVEMENT_UNSWIZZLED;
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

lilac_plan_gather lilac_gather_counts(const gather *g) {
    return (lilac_plan_gather){
        .element_bits = lilac_gather_element_bits(g),
        .num_warps = g->l->target->num_warps,
        .own = 1U << g->own_bits,
        .results = 1U << __builtin_popcount(lilac_lower_distinct_registers(g->to)),
        .varying_bits = g->by_lanes ? (uint32_t)__builtin_popcount(varying_registers(g)) : 0,
        .moves = g->by_lanes && !stays(g)};
}

/* The bits of a value at the places of a mask, next to each other. */
static uint64_t squeeze(uint64_t value, uint32_t mask) {
    uint64_t result = 0;
    for (uint32_t at = 0; mask != 0; mask &= mask - 1, at++) {
        result |= (value >> __builtin_ctz(mask) & 1) << at;
    }
    return result;
}

/* A part of a place: of the lane, or (a mask of registers) which of those it is. */
static uint64_t taken_part(uint64_t place, bool lane, uint32_t mask) {
    return lane ? part_of(place, true) : squeeze(part_of(place, false), mask);
}

/* Where register r of the result finds its element: the lane, or which of the registers of the
 * mask. */
static lilac_simt_value place_of(const gather *g, bool lane, uint32_t mask, uint32_t r) {
    lilac_lowering *l = g->l;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], by_thread = 0, by_index, fixed = 0;
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        columns[i] = taken_part(g->of_thread[i], lane, mask);
        columns[i] ^= lane && i < g->to->lane_bits ? 1ULL << i : 0;
        by_thread |= columns[i];
    }
    lilac_simt_value thread = lilac_lower_linear(&l->builder, g->to->thread_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        columns[i] = taken_part(g->of_index[i], lane, mask);
    }
    lilac_simt_value index = linear(l, g->index[r], g->from->bits[g->axis], columns, &by_index);
    for (uint32_t i = 0; i < g->to->register_bits; i++) {
        fixed ^= r >> i & 1 ? taken_part(g->of_register[i], lane, mask) : 0;
    }
    lilac_simt_value place = join(l, thread, index, (by_thread & by_index) == 0);
    return join(l, place, lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)fixed), false);
}

/* Byte permutes have a nibble for each byte of the result: the byte of the second word and the
 * first, as eight. */
#define FIRST_WORD 0x3210
#define OTHER_WORD 0x4444 /* more: of the second word instead */
#define FIRST_HALF 0x0010
#define OTHER_HALF 0x0022 /* more: the next half */
#define OTHER_BYTE 0x0001

/* first + number · step, by the `count` bits of a place from `bit` on. */
static lilac_simt_value selector(const gather *g, lilac_simt_value place, uint32_t bit,
                                 uint32_t count, uint32_t first, uint32_t step) {
    lilac_simt_builder *b = &g->l->builder;
    lilac_simt_value number = place;
    if (bit > 0) {
        number = lilac_simt_op2(b, LILAC_SIMT_OP_SHR_U, LILAC_SIMT_I32, number,
                                lilac_simt_constant(b, LILAC_SIMT_I32, bit));
    }
    number = lilac_simt_op2(b, LILAC_SIMT_OP_AND, LILAC_SIMT_I32, number,
                            lilac_simt_constant(b, LILAC_SIMT_I32, (1U << count) - 1));
    number = lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I32, number,
                            lilac_simt_constant(b, LILAC_SIMT_I32, step));
    return lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32, number,
                          lilac_simt_constant(b, LILAC_SIMT_I32, first));
}

static lilac_simt_value permute(const gather *g, lilac_simt_value low, lilac_simt_value high,
                                lilac_simt_value with) {
    return lilac_simt_op3(&g->l->builder, LILAC_SIMT_OP_PRMT, LILAC_SIMT_I32, low, high, with);
}

/* The element out of 2^bits words, its place in the low bits of `place`: `within` bits say where in
 * a word, the others which word. It ends up in the lowest bytes. */
static lilac_simt_value choose(const gather *g, lilac_simt_value place, uint32_t within,
                               uint32_t bits, lilac_simt_value *list) {
    while (bits > (within > 0 ? 1U : 0U)) {
        lilac_simt_value with = selector(g, place, within + --bits, 1, FIRST_WORD, OTHER_WORD);
        for (uint32_t k = 0; k < 1U << bits; k++) {
            list[k] = permute(g, list[k], list[k + (1U << bits)], with);
        }
    }
    if (within == 0) {
        return list[0];
    }
    bool halves = lilac_gather_element_bits(g) == 16;
    return permute(g, list[0], list[bits],
                   selector(g, place, 0, within + bits, halves ? FIRST_HALF : 0,
                            halves ? OTHER_HALF : OTHER_BYTE));
}

static void by_shuffles(const gather *g) {
    lilac_lowering *l = g->l;
    lilac_simt_builder *b = &l->builder;
    lilac_plan_gather counts = lilac_gather_counts(g);
    uint32_t varying = varying_registers(g), within = lilac_plan_gather_within(&counts);
    uint32_t bits = counts.varying_bits, count = 1U << bits;
    bool stay = stays(g);
    lilac_simt_value *each = lilac_arena_array(l->arena, lilac_simt_value, count);
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
        for (uint32_t k = 0; k < count; k++) {
            each[k] = g->values[fixed | lilac_lower_deposit(k, varying)];
        }
        if (bits == 0) {
            g->result->base[r] = stay ? each[0]
                                      : lilac_lower_shuffle(l, LILAC_SIMT_SHFL_IDX, each[0],
                                                            place_of(g, true, 0, r));
            continue;
        }
        lilac_lower_words words;
        lilac_lower_pack_words(b, l->arena, g->source->simt, bits, lilac_gather_element_bits(g),
                               each, &words);
        if (!stay) {
            lilac_simt_value lane = place_of(g, true, 0, r);
            for (uint32_t k = 0; k < words.count; k++) {
                words.list[k] = lilac_lower_shuffle(l, LILAC_SIMT_SHFL_IDX, words.list[k], lane);
            }
        }
        lilac_simt_value place = place_of(g, false, varying, r);
        uint32_t parts = words.count >> (bits - within); /* words of an element */
        for (uint32_t part = 0; part < parts; part++) {
            for (uint32_t k = 0; k < words.count / parts; k++) {
                list[k] = words.list[k * parts + part];
            }
            words.list[part] = choose(g, place, within, bits - within, list);
        }
        words.count = parts;
        words.register_bits = 0;
        lilac_lower_unpack_words(b, g->source->simt, &words, &g->result->base[r]);
    }
}

/* ---- shared memory ------------------------------------------------------------------------ */

/* The memory of one round, and how the lanes of the result address it. */
typedef struct round_memory {
    const lilac_gather_memory *memory;
    lilac_f2_basis offsets;
    uint32_t scratch, scale;
    uint64_t bytes;
    lilac_simt_instruction promise;
    uint64_t along[LILAC_LAYOUT_MAX_BITS], by_thread;
    lilac_lower_addressing threads;
} round_memory;

static void open_memory(const gather *g, const lilac_gather_memory *m, round_memory *shared) {
    uint32_t bits = lilac_layout_in_bits(&m->layout, "offset");
    *shared = (round_memory){.memory = m};
    shared->scale = log2_of(lilac_gather_element_bits(g) / 8);
    for (uint32_t i = 0; i < bits; i++) {
        (void)lilac_f2_basis_add(&shared->offsets, lilac_layout_column(&m->layout, "offset", i),
                                 1ULL << i);
    }
    shared->bytes = 1ULL << bits << shared->scale;
    shared->scratch = lilac_lower_scratch(g->l, shared->bytes);
}

/* Stores the source's elements of one round. */
static void store_source(const gather *g, const round_memory *shared,
                         const lilac_simt_value *values) {
    lilac_lowering *l = g->l;
    uint32_t warp_bits = g->from->thread_bits - g->from->lane_bits;
    lilac_lower_place place = {.offset = shared->scratch,
                               .bytes = shared->bytes,
                               .disjoint_warps = g->in_warp ? (1U << warp_bits) - 1 : 0,
                               .replicas = g->from->free_threads};
    lilac_lower_words words = {0};
    lilac_lower_pack_words(&l->builder, l->arena, g->source->simt, g->own_bits,
                           lilac_gather_element_bits(g), values, &words);
    lilac_lower_barrier(l);
    if (g->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    }
    lilac_lower_store_access(&l->builder, l->arena, &shared->memory->store, &place, &words);
    if (g->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    } else {
        lilac_lower_barrier(l);
    }
}

static void address_threads(const gather *g, round_memory *shared) {
    uint64_t threads[LILAC_LAYOUT_MAX_BITS];
    uint32_t warp_bits = g->from->thread_bits - g->from->lane_bits;
    shared->promise =
        (lilac_simt_instruction){.shared_begin = shared->scratch,
                                 .shared_end = (uint32_t)(shared->scratch + shared->bytes),
                                 .shared_apart = g->in_warp ? (1U << warp_bits) - 1 : 0};
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        threads[i] =
            lilac_f2_basis_tag(&shared->offsets, lilac_gather_beside(g, g->to, g->to->threads[i]))
            << shared->scale;
        shared->by_thread |= threads[i];
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        shared->along[i] = lilac_f2_basis_tag(&shared->offsets, lilac_gather_axis_unit(g, i))
                           << shared->scale;
    }
    shared->threads = lilac_lower_address_threads(g->l, g->to->thread_bits, threads);
}

/* The element that register r of the result names, where it is in this round. */
static lilac_simt_value load_element(const gather *g, const round_memory *shared, uint32_t r) {
    lilac_lowering *l = g->l;
    lilac_lower_addressing a = shared->threads;
    uint64_t by_index;
    int64_t immediate;
    lilac_simt_value value;
    lilac_simt_value index =
        linear(l, g->index[r], g->from->bits[g->axis], shared->along, &by_index);
    uint64_t part =
        lilac_f2_basis_tag(&shared->offsets, lilac_gather_beside(g, g->to, g->to->coordinates[r]));
    a.thread = join(l, a.thread, index, (shared->by_thread & by_index) == 0);
    a.thread_bits = shared->by_thread | by_index;
    lilac_simt_value address = lilac_lower_address_of(l, &a, part << shared->scale, &immediate);
    const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                       .type = g->source->simt,
                                       .count = 1,
                                       .address = address,
                                       .offset = immediate + shared->scratch,
                                       .modifiers = &shared->promise};
    lilac_lower_load_vector(l, &access, NULL, &value);
    return value;
}

static void through_shared(const gather *g, const lilac_gather_memory *m) {
    round_memory shared;
    open_memory(g, m, &shared);
    store_source(g, &shared, g->values);
    address_threads(g, &shared);
    for (uint32_t r = 0; r < g->to->count; r++) {
        uint32_t same = g->to->canonical[r];
        g->result->base[r] = same != r ? g->result->base[same] : load_element(g, &shared, r);
    }
}

/* ---- rounds ------------------------------------------------------------------------------- */

uint64_t lilac_gather_in_round(const gather *g, uint64_t coordinate) {
    uint64_t result = 0;
    if (g->rounds == 0) {
        return coordinate;
    }
    for (uint32_t i = 0, at = 0; i < LILAC_LAYOUT_MAX_BITS; i++) {
        if (!(g->rounds >> i & 1)) {
            result |= (coordinate >> i & 1) << at++;
        }
    }
    return result;
}

/* The number of the round in which a coordinate of the source is in memory. */
static uint32_t round_of(uint64_t rounds, uint64_t coordinate) {
    uint32_t number = 0;
    for (uint32_t at = 0; rounds != 0; rounds &= rounds - 1, at++) {
        number |= (uint32_t)(coordinate >> __builtin_ctzll(rounds) & 1) << at;
    }
    return number;
}

/* The register of the source that alone has this bit of the coordinate, and no other bit; -1: there
 * is none. */
static int register_of(const gather *g, uint32_t bit) {
    int found = -1;
    for (uint32_t i = 0; i < g->from->thread_bits; i++) {
        if (g->from->threads[i] >> bit & 1) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < g->from->register_bits; i++) {
        if (!(g->own >> i & 1) || !(g->from->registers[i] >> bit & 1)) {
            continue;
        }
        if (found >= 0 || g->from->registers[i] != UINT64_C(1) << bit) {
            return -1;
        }
        found = (int)i;
    }
    return found;
}

/* What a bit costs that numbers the rounds: 0 where each register of the result needs one round, 1
 * where that differs between threads, 2 where the index says it. */
static int round_cost(const gather *g, uint32_t bit) {
    uint64_t start = g->from->start[g->axis];
    if (bit >= start && bit < start + g->from->bits[g->axis]) {
        return 2;
    }
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        if (lilac_gather_beside(g, g->to, g->to->threads[i]) >> bit & 1) {
            return 1;
        }
    }
    return 0;
}

/* The bits that number the rounds, so that one takes at most `most` bytes; 0: there are too few. */
static uint64_t choose_rounds(const gather *g, uint64_t bytes, uint64_t most) {
    uint64_t rounds = 0;
    for (int cost = 0; cost < 3; cost++) {
        for (uint32_t bit = g->from->layout->out_bits; bit-- > 0 && bytes > most;) {
            if (round_cost(g, bit) == cost && register_of(g, bit) >= 0) {
                rounds |= UINT64_C(1) << bit;
                bytes /= 2;
            }
        }
    }
    return bytes > most ? 0 : rounds;
}

/* For one register of the result: the rounds that it may need, and which of them it is. */
typedef struct wanted_round {
    uint32_t fixed, varying; /* bits of the number that the register says; the others' mask */
    lilac_simt_value number;
} wanted_round;

static wanted_round find_round(const gather *g, const gather *whole, uint32_t r) {
    lilac_lowering *l = g->l;
    uint64_t threads[LILAC_LAYOUT_MAX_BITS], along[LILAC_LAYOUT_MAX_BITS], by_thread = 0, by_index;
    wanted_round w = {0};
    w.fixed = round_of(g->rounds, lilac_gather_beside(whole, g->to, g->to->coordinates[r]));
    for (uint32_t i = 0; i < g->to->thread_bits; i++) {
        threads[i] = round_of(g->rounds, lilac_gather_beside(whole, g->to, g->to->threads[i]));
        by_thread |= threads[i];
    }
    for (uint32_t i = 0; i < g->from->bits[g->axis]; i++) {
        along[i] = round_of(g->rounds, lilac_gather_axis_unit(whole, i));
    }
    lilac_simt_value thread = lilac_lower_linear(&l->builder, g->to->thread_bits, threads, 0, NULL);
    lilac_simt_value index = linear(l, g->index[r], g->from->bits[g->axis], along, &by_index);
    w.varying = (uint32_t)(by_thread | by_index);
    w.number = join(l, thread, index, (by_thread & by_index) == 0);
    return w;
}

/* Takes from memory what this round has for register r: the others keep what they have. */
static void take_element(const gather *g, const round_memory *shared, const wanted_round *w,
                         uint32_t round, uint32_t r) {
    lilac_lowering *l = g->l;
    if (((round ^ w->fixed) & ~w->varying) != 0) {
        return;
    }
    lilac_simt_value value = load_element(g, shared, r);
    if (g->result->base[r] != 0) {
        lilac_simt_value here = lilac_simt_compare_values(
            &l->builder, LILAC_SIMT_EQ, w->number,
            lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)((round ^ w->fixed) & w->varying)));
        value = lilac_lower_select(l, here, value, g->result->base[r]);
    }
    g->result->base[r] = value;
}

/* Several rounds through a memory that holds a part of the source at a time:
 *
 *     for each round s     store the registers whose coordinates number s; load; select
 *
 * The bits that number the rounds are each of one register of the source. Beside the axis they cost
 * nothing where they are of the result's registers as well. */
static bool in_rounds(gather *g, lilac_gather_memory *m, uint64_t rounds, lilac_reason *why) {
    gather *whole = lilac_arena_new(g->l->arena, gather);
    *whole = *g;
    for (uint64_t rest = rounds; rest != 0; rest &= rest - 1) {
        g->own &= ~(1U << register_of(whole, (uint32_t)__builtin_ctzll(rest)));
    }
    g->rounds = rounds;
    g->values = lilac_arena_array(g->l->arena, lilac_simt_value, (size_t)1 << whole->own_bits);
    g->own_bits = (uint32_t)__builtin_popcount(g->own);
    if (!lilac_gather_choose_memory(g, m, why)) {
        return false;
    }
    wanted_round *wanted = lilac_arena_array(g->l->arena, wanted_round, g->to->count);
    for (uint32_t r = 0; r < g->to->count; r++) {
        wanted[r] = find_round(g, whole, r);
        g->result->base[r] = 0;
    }
    round_memory shared;
    open_memory(g, m, &shared);
    address_threads(g, &shared);
    for (uint32_t round = 0; round < 1U << (whole->own_bits - g->own_bits); round++) {
        for (uint32_t k = 0, at = 0; k < 1U << whole->own_bits; k++) {
            uint32_t r = lilac_lower_deposit(k, whole->own);
            if (round_of(rounds, g->from->coordinates[r]) == round) {
                g->values[at++] = whole->values[k];
            }
        }
        store_source(g, &shared, g->values);
        for (uint32_t r = 0; r < g->to->count; r++) {
            if (g->to->canonical[r] == r) {
                take_element(g, &shared, &wanted[r], round, r);
            }
        }
    }
    for (uint32_t r = 0; r < g->to->count; r++) {
        g->result->base[r] = g->result->base[g->to->canonical[r]];
    }
    return true;
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
    return lilac_lower_move(l, LILAC_SIMT_I32, index->view, g->to, LILAC_PLAN_ANY, values,
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

/* Fills in the operation's operands, its registers and the places of its elements. */
static bool prepare(lilac_lowering *l, const lilac_tile_op *op, gather *g) {
    g->l = l;
    g->way = lilac_tile_movement_of(op);
    g->source = lilac_lower_operand(l, op, 0);
    g->result = lilac_lower_result(l, op, 0);
    if (g->result == NULL) {
        return false;
    }
    g->from = g->source->view;
    g->to = g->result->view;
    if (!lilac_lower_read_axis(l, op, g->from, &g->axis)) {
        return false;
    }
    if (g->to->rank != g->from->rank) {
        return lilac_lower_unsupported(l, "the source has %u dimensions and the result has %u",
                                       g->from->rank, g->to->rank);
    }
    for (uint32_t d = 0; d < g->from->rank; d++) {
        if (d != g->axis && g->to->bits[d] > g->from->bits[d]) {
            return lilac_lower_unsupported(
                l,
                "dimension %u of the index has %llu elements and the source has %llu; only the "
                "axis of the index may be larger",
                d, 1ULL << g->to->bits[d], 1ULL << g->from->bits[d]);
        }
    }
    if (crosses_blocks(g)) {
        return lilac_lower_unsupported(
            l, "operand 0 is distributed over the blocks of a cluster; a gather reads elements of "
               "its own block");
    }
    if (!read_index(g, lilac_lower_operand(l, op, 1))) {
        return false;
    }
    g->own = lilac_lower_distinct_registers(g->from);
    g->own_bits = (uint32_t)__builtin_popcount(g->own);
    g->values = lilac_arena_array(l->arena, lilac_simt_value, (size_t)1 << g->own_bits);
    for (uint32_t k = 0; k < 1U << g->own_bits; k++) {
        g->values[k] = lilac_lower_get(l, g->source, lilac_lower_deposit(k, g->own));
    }
    find_places(g);
    if (g->way == LILAC_TILE_MOVEMENT_SHUFFLES && !g->by_lanes) {
        return lilac_lower_unsupported(l,
                                       "lilac.movement is \"shuffles\", but an index may select an "
                                       "element that only another warp holds");
    }
    return true;
}

bool lilac_lower_gather(lilac_lowering *l, const lilac_tile_op *op) {
    gather *g = lilac_arena_new(l->arena, gather);
    lilac_gather_memory *m = lilac_arena_new(l->arena, lilac_gather_memory);
    if (!prepare(l, op, g)) {
        return false;
    }
    uint64_t bytes = (UINT64_C(1) << g->from->layout->out_bits) * lilac_gather_element_bits(g) / 8;
    uint32_t available = l->target->arch->shared_bytes - l->scratch_begin;
    bool fits = bytes <= available;
    bool shuffles = g->by_lanes &&
                    (g->way == LILAC_TILE_MOVEMENT_ANY || g->way == LILAC_TILE_MOVEMENT_SHUFFLES);
    lilac_reason why = {0};
    if (fits && g->way != LILAC_TILE_MOVEMENT_SHUFFLES) {
        if (!lilac_gather_choose_memory(g, m, &why)) {
            return lilac_lower_unsupported(l, "%s", why.text);
        }
        lilac_plan_gather counts = lilac_gather_counts(g);
        shuffles = g->by_lanes && g->way == LILAC_TILE_MOVEMENT_ANY &&
                   lilac_plan_price_gather_shuffles(&counts, l->target->arch) <= m->price;
    }
    if (!shuffles && !fits) {
        uint64_t rounds = choose_rounds(g, bytes, available);
        if (rounds == 0) {
            return lilac_lower_refuse(l, "too-much-shared-memory",
                                      "the gather needs %llu bytes of shared memory, %s has %u "
                                      "bytes left, and no register "
                                      "bit of the layout splits the source into smaller rounds",
                                      (unsigned long long)bytes, l->target->arch->name, available);
        }
        return in_rounds(g, m, rounds, &why) || lilac_lower_unsupported(l, "%s", why.text);
    }
    if (shuffles) {
        by_shuffles(g);
    } else {
        through_shared(g, m);
    }
    return true;
}
