/* tt.gather: result[.. i ..] = source[.. index[.. i ..] ..] along an axis, between any layouts.
 *
 * Executes the plan (src/plan/collective/gather.c): by shuffles and byte permutes within a warp,
 * or through shared memory with a barrier of the warp or of the block, in several rounds if the
 * source is larger than the memory. An index is truncated to the bits of the axis: one out of
 * range reads an arbitrary element. */
#include "collective/region.h"
#include "convert_layout.h"
#include "executed_plans.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <string.h>

typedef struct gather {
    lilac_lowering *l;
    const lilac_plan_gather *plan;
    const lilac_lower_value *source;
    lilac_lower_value *result;
    const lilac_lower_view *from, *to;
    uint32_t own_bits;        /* log2 of the source's own registers */
    lilac_simt_value *values; /* its own registers, in order */
    lilac_simt_value *index;  /* i32, by register of the result */
} gather;

static uint32_t index_bits(const gather *g) {
    return g->plan->source.bits[g->plan->axis];
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
    return (uint32_t)(lane ? place >> LILAC_PLAN_LANE_MARK : place & 0xffffffffU);
}

/* Extracts the bits of a value that the mask selects, and packs them (the instruction pext). */
static uint64_t squeeze(uint64_t value, uint32_t mask) {
    uint64_t result = 0;
    for (uint32_t at = 0; mask != 0; mask &= mask - 1, at++) {
        result |= (value >> __builtin_ctz(mask) & 1) << at;
    }
    return result;
}

/* The part of a place that names the lane, or the part that selects one of the registers in the
 * mask. */
static uint64_t taken_part(uint64_t place, bool lane, uint32_t mask) {
    return lane ? part_of(place, true) : squeeze(part_of(place, false), mask);
}

/* The place of the element that register r of the result needs: the lane, or the number of a
 * register in the mask. */
static lilac_simt_value place_of(const gather *g, bool lane, uint32_t mask, uint32_t r) {
    lilac_lowering *l = g->l;
    uint64_t columns[LILAC_LAYOUT_MAX_BITS], by_thread = 0, by_index, fixed = 0;
    for (uint32_t i = 0; i < g->to->columns.thread_bits; i++) {
        columns[i] = taken_part(g->plan->of_thread[i], lane, mask);
        columns[i] ^= lane && i < g->to->columns.lane_bits ? 1ULL << i : 0;
        by_thread |= columns[i];
    }
    lilac_simt_value thread =
        lilac_lower_linear(&l->builder, g->to->columns.thread_bits, columns, 0, NULL);
    for (uint32_t i = 0; i < index_bits(g); i++) {
        columns[i] = taken_part(g->plan->of_index[i], lane, mask);
    }
    lilac_simt_value index = linear(l, g->index[r], index_bits(g), columns, &by_index);
    for (uint32_t i = 0; i < g->to->columns.register_bits; i++) {
        fixed ^= r >> i & 1 ? taken_part(g->plan->of_register[i], lane, mask) : 0;
    }
    lilac_simt_value place = join(l, thread, index, (by_thread & by_index) == 0);
    return join(l, place, lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)fixed), false);
}

/* Selectors of prmt. Each nibble selects one byte of the result among the eight bytes of two
 * words. */
#define FIRST_WORD 0x3210
#define OTHER_WORD 0x4444 /* added to select bytes of the second word */
#define FIRST_HALF 0x0010
#define OTHER_HALF 0x0022 /* added to select the next half */
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

/* Selects an element of 2^bits words by the low bits of `place`. The lowest `within` bits select
 * the element in a word, the others select the word. The result is in the lowest bytes. */
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
    bool halves = g->plan->work.element_bits == 16;
    return permute(g, list[0], list[bits],
                   selector(g, place, 0, within + bits, halves ? FIRST_HALF : 0,
                            halves ? OTHER_HALF : OTHER_BYTE));
}

static void by_shuffles(const gather *g) {
    lilac_lowering *l = g->l;
    lilac_simt_builder *b = &l->builder;
    const lilac_plan_gather_work *work = &g->plan->work;
    uint32_t varying = g->plan->varying, within = lilac_plan_gather_within(work);
    uint32_t bits = work->varying_bits, count = 1U << bits;
    bool stay = !work->moves;
    lilac_simt_value *each = lilac_arena_array(l->arena, lilac_simt_value, count);
    lilac_simt_value *list = lilac_arena_array(l->arena, lilac_simt_value, count);
    for (uint32_t r = 0; r < g->to->count; r++) {
        if (g->to->canonical[r] != r) {
            g->result->base[r] = g->result->base[g->to->canonical[r]];
            continue;
        }
        uint32_t fixed = 0;
        for (uint32_t i = 0; i < g->to->columns.register_bits; i++) {
            fixed ^= r >> i & 1 ? part_of(g->plan->of_register[i], false) : 0;
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
        lilac_lower_pack_words(b, l->arena, g->source->simt, bits, g->plan->work.element_bits, each,
                               &words);
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
    uint32_t scratch, scale;
    uint32_t disjoint_warps; /* warps whose numbers differ in these bits use disjoint bytes */
    lilac_simt_instruction promise;
    uint64_t along[LILAC_LAYOUT_MAX_BITS], by_thread;
    lilac_lower_addressing threads;
} round_memory;

static void open_memory(const gather *g, round_memory *shared) {
    const lilac_plan_gather *p = g->plan;
    *shared = (round_memory){.scale = log2_of(p->work.element_bits / 8)};
    shared->scratch = lilac_lower_scratch(g->l, p->bytes);
    if (p->in_warp) {
        shared->disjoint_warps = (1U << (p->source.thread_bits - p->source.lane_bits)) - 1;
    }
    shared->promise = (lilac_simt_instruction){.shared_begin = shared->scratch,
                                               .shared_end = (uint32_t)(shared->scratch + p->bytes),
                                               .shared_partition = shared->disjoint_warps};
}

static void address_threads(const gather *g, round_memory *shared) {
    const lilac_plan_gather *p = g->plan;
    uint64_t threads[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < p->result.thread_bits; i++) {
        threads[i] = p->result_thread[i] << shared->scale;
        shared->by_thread |= threads[i];
    }
    for (uint32_t i = 0; i < index_bits(g); i++) {
        shared->along[i] = p->index_offset[i] << shared->scale;
    }
    shared->threads = lilac_lower_address_threads(g->l, p->result.thread_bits, threads);
}

/* Stores the 2^bits registers of the source that belong to one round. */
static void store_source(const gather *g, const round_memory *shared, uint32_t bits,
                         const lilac_simt_value *values) {
    lilac_lowering *l = g->l;
    const lilac_plan_gather *p = g->plan;
    lilac_lower_place place = {.offset = shared->scratch,
                               .bytes = p->bytes,
                               .disjoint_warps = shared->disjoint_warps,
                               .replicas = p->source.free_threads};
    lilac_lower_words words = {0};
    lilac_lower_pack_words(&l->builder, l->arena, g->source->simt, bits, p->work.element_bits,
                           values, &words);
    lilac_lower_barrier(l);
    if (p->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    }
    lilac_lower_store_access(&l->builder, l->arena, &p->store, &place, &words);
    if (p->in_warp) {
        lilac_simt_warp_barrier(&l->builder);
    } else {
        lilac_lower_barrier(l);
    }
}

/* Loads the element that register r of the result needs, if it is in this round. */
static lilac_simt_value load_element(const gather *g, const round_memory *shared, uint32_t r) {
    lilac_lowering *l = g->l;
    lilac_lower_addressing a = shared->threads;
    uint64_t by_index, part = 0;
    int64_t immediate;
    lilac_simt_value value;
    lilac_simt_value index = linear(l, g->index[r], index_bits(g), shared->along, &by_index);
    for (uint32_t i = 0; i < g->to->columns.register_bits; i++) {
        part ^= r >> i & 1 ? g->plan->result_register[i] : 0;
    }
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

static void through_shared(const gather *g) {
    round_memory shared;
    open_memory(g, &shared);
    store_source(g, &shared, g->own_bits, g->values);
    address_threads(g, &shared);
    for (uint32_t r = 0; r < g->to->count; r++) {
        uint32_t same = g->to->canonical[r];
        g->result->base[r] = same != r ? g->result->base[same] : load_element(g, &shared, r);
    }
}

/* ---- rounds ------------------------------------------------------------------------------- */

/* The rounds that may store the element of one register of the result. */
typedef struct wanted_round {
    uint32_t fixed,
        varying; /* bits of the round's number: those known at compile time; mask of the others */
    lilac_simt_value number;
} wanted_round;

static wanted_round find_round(const gather *g, uint32_t r) {
    lilac_lowering *l = g->l;
    const lilac_plan_gather *p = g->plan;
    uint64_t threads[LILAC_LAYOUT_MAX_BITS], along[LILAC_LAYOUT_MAX_BITS], by_thread = 0, by_index;
    wanted_round w = {0};
    for (uint32_t i = 0; i < p->result.register_bits; i++) {
        w.fixed ^= r >> i & 1 ? p->round_register[i] : 0;
    }
    for (uint32_t i = 0; i < p->result.thread_bits; i++) {
        threads[i] = p->round_thread[i];
        by_thread |= threads[i];
    }
    for (uint32_t i = 0; i < index_bits(g); i++) {
        along[i] = p->round_index[i];
    }
    lilac_simt_value thread =
        lilac_lower_linear(&l->builder, p->result.thread_bits, threads, 0, NULL);
    lilac_simt_value index = linear(l, g->index[r], index_bits(g), along, &by_index);
    w.varying = (uint32_t)(by_thread | by_index);
    w.number = join(l, thread, index, (by_thread & by_index) == 0);
    return w;
}

/* Loads the element of register r in the threads whose element is in this round. In other
 * threads the register is unchanged. */
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

/* Executes several rounds. In each round the memory holds one part of the source:
 *
 *     for each round s     store the registers whose coordinates belong to s; load; select */
static void in_rounds(const gather *g) {
    const lilac_plan_gather *p = g->plan;
    uint32_t bits = (uint32_t)__builtin_popcount(p->stored);
    lilac_simt_value *values =
        lilac_arena_array(g->l->arena, lilac_simt_value, (size_t)1 << g->own_bits);
    wanted_round *wanted = lilac_arena_array(g->l->arena, wanted_round, g->to->count);
    for (uint32_t r = 0; r < g->to->count; r++) {
        wanted[r] = find_round(g, r);
        g->result->base[r] = 0;
    }
    round_memory shared;
    open_memory(g, &shared);
    address_threads(g, &shared);
    for (uint32_t round = 0; round < 1U << (g->own_bits - bits); round++) {
        for (uint32_t k = 0, at = 0; k < 1U << g->own_bits; k++) {
            uint32_t r = lilac_lower_deposit(k, p->source.distinct);
            if (lilac_plan_gather_round(p, g->from->coordinates[r]) == round) {
                values[at++] = g->values[k];
            }
        }
        store_source(g, &shared, bits, values);
        for (uint32_t r = 0; r < g->to->count; r++) {
            if (g->to->canonical[r] == r) {
                take_element(g, &shared, &wanted[r], round, r);
            }
        }
    }
    lilac_lower_replicate(g->to, g->result->base);
}

/* ---- the whole ---------------------------------------------------------------------------- */

/* Reads the index as i32 in the result's layout. A negative index is out of range. */
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
    const lilac_lower_conversion conversion = {LILAC_SIMT_I32, index->view, g->to, values,
                                               g->index};
    return lilac_lower_move(l, LILAC_PLAN_ANY, &conversion);
}

static bool make_plan(gather *g, lilac_plan_gather *plan, const lilac_tile_op *op) {
    lilac_lowering *l = g->l;
    lilac_reason why = {0};
    uint32_t axis;
    if (!lilac_lower_read_axis(l, op, g->from, &axis)) {
        return false;
    }
    lilac_lower_place_scratch(l);
    const uint32_t available = l->target->arch->shared_bytes - l->scratch_begin;
    const lilac_plan_gather_options options = {.axis = axis,
                                               .element_bits =
                                                   lilac_simt_type_bits(g->source->simt),
                                               .strategy = lilac_engine_strategy(op),
                                               .scratch_bytes = available > 0 ? available : 1};
    if (!lilac_plan_gather_init_columns(plan, &g->from->columns, &g->to->columns, &options,
                                        l->target, &why)) {
        return plan->bytes > 0 ? lilac_lower_refuse(l, "too-much-shared-memory", "%s", why.text)
                               : lilac_lower_unsupported(l, "%s", why.text);
    }
    g->plan = plan;
    lilac_lower_note_gather(l, plan);
    return true;
}

bool lilac_lower_gather(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_plan_gather *plan = lilac_arena_new(l->arena, lilac_plan_gather);
    gather g = {.l = l};
    g.source = lilac_lower_operand(l, op, 0);
    g.result = lilac_lower_result(l, op, 0);
    if (g.result == NULL) {
        return false;
    }
    g.from = g.source->view;
    g.to = g.result->view;
    if (!make_plan(&g, plan, op) || !read_index(&g, lilac_lower_operand(l, op, 1))) {
        return false;
    }
    g.own_bits = (uint32_t)__builtin_popcount(plan->source.distinct);
    g.values = lilac_arena_array(l->arena, lilac_simt_value, (size_t)1 << g.own_bits);
    for (uint32_t k = 0; k < 1U << g.own_bits; k++) {
        g.values[k] = lilac_lower_get(l, g.source, lilac_lower_deposit(k, plan->source.distinct));
    }
    switch (plan->kind) {
    case LILAC_PLAN_GATHER_SHUFFLES:
        by_shuffles(&g);
        break;
    case LILAC_PLAN_GATHER_MEMORY:
        through_shared(&g);
        break;
    case LILAC_PLAN_GATHER_ROUNDS:
        in_rounds(&g);
        break;
    }
    return true;
}
