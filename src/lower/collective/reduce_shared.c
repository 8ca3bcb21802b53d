/* tt.reduce: partial results that are combined through shared memory, as the plan says
 * (src/plan/collective/reduce_memory.c).
 *
 * Each warp writes its partial of each of its elements. After a barrier a thread reads all partials
 * of the elements that it needs and combines them; or each lane reads one of them, and butterflies
 * combine them; or each thread finishes a share of the elements, and a conversion moves them. */
#include "collective/region.h"
#include "memory/access.h"
#include "memory/shared_access.h"
#include "reduce.h"

#include <string.h>

/* Where the partials of one operand are. */
typedef struct partial_memory {
    uint32_t operand, start, scale; /* offset in bytes; log2 of an element's bytes */
    lilac_simt_type type;
    const lilac_simt_instruction *promise;
} partial_memory;

static lilac_lower_addressing address_threads(const lilac_reduction *r, const uint64_t *places,
                                              uint32_t scale) {
    uint64_t columns[LILAC_LAYOUT_MAX_BITS];
    for (uint32_t i = 0; i < r->plan->source.thread_bits; i++) {
        columns[i] = places[i] << scale;
    }
    return lilac_lower_address_threads(r->l, r->plan->source.thread_bits, columns);
}

static void write_partials(const lilac_reduction *r, const partial_memory *m,
                           const lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t others = 0; /* groups that begin no vector, or were given to other lanes */
    for (uint32_t i = 0; i < p->store_bits; i++) {
        others |= 1U << p->store_group[i];
    }
    for (uint32_t i = 0; i < p->give_steps; i++) {
        others |= 1U << p->give_group[i];
    }
    lilac_lower_addressing a = address_threads(r, p->store_thread, m->scale);
    lilac_simt_value writes = lilac_lower_elect_holder(l, p->idle_threads, 0);
    for (uint32_t g = 0; g < 1U << p->group_bits; g++) {
        if (g & others) {
            continue;
        }
        uint64_t element = 0;
        for (uint32_t i = 0; i < p->group_bits; i++) {
            uint64_t column = p->source.registers[p->group_register[i]];
            element ^= g >> i & 1 ? lilac_plan_reduce_kept(p, column) : 0;
        }
        lilac_simt_value values[16];
        for (uint32_t k = 0; k < 1U << p->store_bits; k++) {
            uint32_t member = g;
            for (uint32_t i = 0; i < p->store_bits; i++) {
                member |= (k >> i & 1) << p->store_group[i];
            }
            values[k] = elements[(size_t)member * r->operands + m->operand];
        }
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(
            l, &a, lilac_plan_reduce_place(p, element) << m->scale, &immediate);
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_ST_SHARED,
                                           .type = m->type,
                                           .count = 1U << p->store_bits,
                                           .address = address,
                                           .offset = immediate + m->start,
                                           .predicate = writes,
                                           .modifiers = m->promise};
        lilac_lower_store_vector(l, &access, values);
    }
}

/* The partials of the reader's registers: 2^slot_bits of each register, in
 * steps of `operands`. */
static void read_partials(const lilac_reduction *r, const partial_memory *m,
                          const lilac_lower_view *reader, lilac_simt_value *partials) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    lilac_lower_addressing a = address_threads(r, p->load_thread, m->scale);
    uint32_t later_registers = 0, later_slots = 0; /* bits of those that begin no vector */
    for (uint32_t i = 0; i < p->load_bits; i++) {
        uint32_t from = p->load_register[i];
        later_registers |= from < LILAC_PLAN_SLOT ? 1U << from : 0;
        later_slots |= from >= LILAC_PLAN_SLOT ? 1U << (from - LILAC_PLAN_SLOT) : 0;
    }
    uint32_t count = reader == NULL ? 1 : reader->count, slots = 1U << p->slot_bits;
    for (uint32_t i = 0; i < count * slots; i++) {
        uint32_t first = i / slots, slot = i % slots;
        if (first & later_registers || slot & later_slots ||
            (reader != NULL && reader->canonical[first] != first)) {
            continue;
        }
        uint64_t part = reader == NULL ? 0 : lilac_plan_reduce_place(p, reader->coordinates[first]);
        for (uint32_t s = 0; s < p->slot_bits; s++) {
            part ^= (uint64_t)(slot >> s & 1) << p->slot_place[s];
        }
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << m->scale, &immediate);
        lilac_simt_value loaded[16];
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = m->type,
                                           .count = 1U << p->load_bits,
                                           .address = address,
                                           .offset = immediate + m->start,
                                           .modifiers = m->promise};
        lilac_lower_load_vector(l, &access, NULL, loaded);
        for (uint32_t k = 0; k < 1U << p->load_bits; k++) {
            uint32_t member = first, partial = slot;
            for (uint32_t j = 0; j < p->load_bits; j++) {
                uint32_t from = p->load_register[j];
                member |= from < LILAC_PLAN_SLOT ? (k >> j & 1) << from : 0;
                partial |= from >= LILAC_PLAN_SLOT ? (k >> j & 1) << (from - LILAC_PLAN_SLOT) : 0;
            }
            partials[((size_t)member * slots + partial) * r->operands + m->operand] = loaded[k];
        }
    }
}

/* One partial of each of the reader's registers: that of the lane's slot. */
static void read_own_partials(const lilac_reduction *r, const partial_memory *m,
                              const lilac_lower_view *reader, lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    lilac_lower_addressing a = address_threads(r, p->load_thread, m->scale);
    uint32_t count = reader == NULL ? 1 : reader->count;
    for (uint32_t k = 0; k < count; k++) {
        if (reader != NULL && reader->canonical[k] != k) {
            continue;
        }
        uint64_t part = reader == NULL ? 0 : lilac_plan_reduce_place(p, reader->coordinates[k]);
        int64_t immediate;
        lilac_simt_value address = lilac_lower_address_of(l, &a, part << m->scale, &immediate);
        const lilac_lower_access access = {.code = LILAC_SIMT_OP_LD_SHARED,
                                           .type = m->type,
                                           .count = 1,
                                           .address = address,
                                           .offset = immediate + m->start,
                                           .modifiers = m->promise};
        lilac_lower_load_vector(l, &access, NULL, &elements[(size_t)k * r->operands + m->operand]);
    }
}

/* Butterflies over the lanes that read the partials. */
static bool combine_lanes(const lilac_reduction *r, lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t n = r->operands;
    lilac_simt_value *other = lilac_arena_array(l->arena, lilac_simt_value, n);
    uint64_t columns[LILAC_LAYOUT_MAX_BITS] = {0};
    for (uint32_t i = 0; i < p->source.lane_bits; i++) {
        if (!(p->loading_lanes >> i & 1)) {
            columns[i] = 1ULL << i;
            continue;
        }
        lilac_simt_value mask = lilac_simt_constant(&l->builder, LILAC_SIMT_I32, 1ULL << i);
        for (uint32_t k = 0; k < n; k++) {
            other[k] = lilac_lower_shuffle(l, LILAC_SIMT_SHFL_XOR, elements[k], mask);
        }
        if (!lilac_lower_combine(l, r->op, elements, other)) {
            return false;
        }
    }
    lilac_reduce_agree(r, columns, 1, elements);
    return true;
}

/* Combines the partials of each of the reader's registers into the results. */
static bool finish(const lilac_reduction *r, const lilac_lower_view *reader,
                   lilac_simt_value *partials) {
    bool by_lanes = r->plan->loading_lanes != 0;
    uint32_t n = r->operands, slots = by_lanes ? 1 : 1U << r->plan->slot_bits;
    uint32_t registers = reader == NULL ? 1 : reader->count;
    lilac_simt_value *ends =
        lilac_arena_array(r->l->arena, lilac_simt_value, (size_t)registers * n);
    for (uint32_t k = 0; k < registers; k++) {
        uint32_t same = reader == NULL ? k : reader->canonical[k];
        lilac_simt_value *list = partials + (size_t)k * slots * n;
        if (same == k &&
            !(by_lanes ? combine_lanes(r, list) : lilac_reduce_combine_tree(r, list, slots))) {
            return false;
        }
        memcpy(ends + (size_t)k * n, same == k ? list : ends + (size_t)same * n, n * sizeof *ends);
    }
    return lilac_reduce_take_results(r, reader, registers, ends);
}

bool lilac_reduce_through_shared(const lilac_reduction *r, const lilac_simt_value *elements) {
    lilac_lowering *l = r->l;
    const lilac_plan_reduce *p = r->plan;
    uint32_t n = r->operands;
    uint32_t *starts = lilac_arena_array(l->arena, uint32_t, n);
    partial_memory *memory = lilac_arena_array(l->arena, partial_memory, n);
    (void)lilac_plan_region_bytes(&p->region, p->slot_bits + p->kept_bits, starts);
    lilac_lower_barrier(l);
    uint32_t scratch = lilac_lower_scratch_reused(l, p->bytes);
    lilac_simt_instruction promise = {.shared_begin = scratch,
                                      .shared_end = (uint32_t)(scratch + p->bytes)};
    for (uint32_t i = 0; i < n; i++) {
        lilac_simt_type type = r->results[i]->simt;
        memory[i] = (partial_memory){.operand = i,
                                     .start = starts[i] + scratch,
                                     .scale = log2_of(lilac_lower_memory_bytes(type)),
                                     .type = type,
                                     .promise = &promise};
        write_partials(r, &memory[i], elements);
    }
    lilac_lower_barrier(l);
    const lilac_lower_view *reader = r->result;
    if (p->shares) {
        reader = lilac_lower_view_of_columns(l, &p->share);
    }
    bool by_lanes = p->loading_lanes != 0;
    size_t registers = reader == NULL ? 1 : reader->count;
    lilac_simt_value *partials = lilac_arena_array(
        l->arena, lilac_simt_value, (by_lanes ? registers : registers << p->slot_bits) * n);
    for (uint32_t i = 0; i < n; i++) {
        (by_lanes ? read_own_partials : read_partials)(r, &memory[i], reader, partials);
    }
    return finish(r, reader, partials);
}
