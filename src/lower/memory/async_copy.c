/* Asynchronous copies from global to shared memory: ttg.async_copy_global_to_local and its
 * groups.
 *
 *     async_copy      barrier, then one cp.async for each vector of each thread
 *     async_commit    cp.async.commit
 *     async_wait      cp.async.wait
 *
 * A vector is copied by one instruction if its elements are contiguous in both memories: the
 * registers that the axis facts allow to load as one vector, in the order of the shared memory's
 * offsets. cp.async copies 4, 8 or 16 bytes, so shorter vectors are refused.
 *
 * Where the mask is false, the memory receives `other`, or zeros if there is none, as in Triton.
 * A cp.async that reads nothing writes zeros. Another constant or tensor is stored by an
 * ordinary store.
 *
 * The barrier orders the copy after earlier accesses to the memory. The loads after a wait have
 * their own barrier, which makes the copies of all threads visible. */
#include "executed_plans.h"
#include "memory/access.h"
#include "memory/memory_type.h"
#include "memory/shared_memory.h"
#include "operations.h"

enum { LEAST_BYTES = 4 };

/* log2 of the elements that are contiguous in both memories. */
static uint32_t common_bits(const lilac_lower_transfer *t, const lilac_plan_global_access *global) {
    uint32_t bits = 0;
    while (bits < t->access.vector_bits && bits < global->vector_bits &&
           lilac_lower_deposit(1U << t->access.vector_register[bits], t->registers) ==
               1U << global->vector_register[bits]) {
        bits++;
    }
    return bits;
}

/* log2 of the elements that the attribute `contiguity` promises: that many elements, aligned, with
 * one mask, in the first registers of the layout and along one dimension. */
static uint32_t promised_bits(const lilac_tile_op *op, const lilac_lower_view *view) {
    const int64_t contiguity = lilac_tile_find_integer(&op->attributes, "contiguity", 1);
    uint32_t bits = 0;
    while (bits < 4 && bits < view->columns.register_bits && 2LL << bits <= contiguity &&
           view->columns.registers[bits] == view->columns.registers[0] << bits) {
        bits++;
    }
    /* The first register bit must be the lowest bit of its dimension, and all bits within it. */
    for (uint32_t d = 0; d < view->columns.rank && bits > 0; d++) {
        if (view->columns.registers[0] == 1ULL << view->columns.start[d]) {
            return bits < view->columns.bits[d] ? bits : view->columns.bits[d];
        }
    }
    return 0;
}

/* Plans the copies: the widest vectors that both memories allow. */
static bool plan_copy(lilac_lowering *l, const lilac_tile_op *op, const lilac_lower_view *view,
                      lilac_lower_transfer *t) {
    const lilac_tile_value *memory = op->operands[1].value;
    uint32_t bytes = lilac_lower_memory_bits(memory->type) / 8;
    const uint32_t promised = promised_bits(op, view);
    lilac_plan_global_access global;
    lilac_engine_plan_access(&global, op, &l->facts, l->target);
    for (uint32_t i = 0; promised > global.vector_bits && i < promised; i++) {
        global.vector_register[i] = (uint8_t)i;
    }
    global.vector_bits = promised > global.vector_bits ? promised : global.vector_bits;
    uint32_t most = l->target->arch->vector_bytes;
    for (;;) {
        lilac_layout layout;
        if (!lilac_lower_plan_transfer(l, view, memory, most, t, &layout)) {
            return false;
        }
        uint32_t bits = common_bits(t, &global);
        if (bytes << bits < LEAST_BYTES) {
            return lilac_lower_unsupported(
                l,
                "a thread's elements are contiguous for %u bytes in both memories; a copy has 4, "
                "8 or 16 bytes",
                bytes << bits);
        }
        if (bits == t->access.vector_bits) {
            global.vector_bits = bits;
            lilac_lower_note_access(l, &global);
            lilac_lower_note_shared(l, &t->access, false, view->columns.free_threads);
            return true;
        }
        most = bytes << bits;
    }
}

/* Packs `other` into words, register by register. False: it is zero everywhere. */
static bool find_others(lilac_lowering *l, const lilac_lower_aligned *other,
                        const lilac_lower_transfer *t, lilac_lower_words *words) {
    int64_t number;
    if (other->value == NULL || (lilac_lower_constant(l, other->value, &number) && number == 0)) {
        return false;
    }
    uint32_t bits = (uint32_t)__builtin_popcount(t->registers);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, 1U << bits);
    for (uint32_t i = 0; i >> bits == 0; i++) {
        values[i] = lilac_lower_aligned_get(l, other, lilac_lower_deposit(i, t->registers));
    }
    lilac_lower_pack_wide(&l->builder, l->arena, other->value->simt, bits,
                          8 * t->access.element_bytes, values, words);
    return true;
}

static bool check_modifiers(lilac_lowering *l, const lilac_tile_op *op) {
    static const char *const caches[] = {"none", "ca", "cg"};
    if (lilac_lower_word(op, "cache", 3, caches, 0) < 0) {
        return lilac_lower_bad_attribute(l, "cache", "none, ca or cg");
    }
    if (lilac_tile_find_integer(&op->attributes, "isVolatile", 0) != 0) {
        return lilac_lower_bad_attribute(l, "isVolatile", "false");
    }
    return true;
}

static bool copy(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *pointer = lilac_lower_operand(l, op, 0);
    const lilac_lower_view *view = pointer->view;
    lilac_lower_aligned mask, other;
    lilac_lower_transfer t;
    if (!check_modifiers(l, op) || !lilac_lower_align_operand(l, op, 2, view, &mask) ||
        !lilac_lower_align_operand(l, op, 3, view, &other) || !plan_copy(l, op, view, &t)) {
        return false;
    }
    uint32_t bits = (uint32_t)__builtin_popcount(t.registers), vector = 0;
    for (uint32_t i = 0; i < t.access.vector_bits; i++) {
        vector |= 1U << t.access.vector_register[i];
    }
    lilac_lower_copy_source *sources =
        lilac_arena_array(l->arena, lilac_lower_copy_source, 1U << bits);
    for (uint32_t i = 0; i >> bits == 0; i++) {
        uint32_t r = lilac_lower_deposit(i, t.registers);
        if ((i & vector) == 0) {
            sources[i].address = lilac_lower_address(l, pointer, r, &sources[i].offset);
            sources[i].mask = mask.value == NULL ? 0 : lilac_lower_aligned_get(l, &mask, r);
        }
    }
    lilac_lower_words words;
    bool stores = mask.value != NULL && find_others(l, &other, &t, &words);
    t.place.replicas = view->columns.free_threads;
    /* pipeline_loops marks copies to buffers that no warp reads since the last barrier */
    if (lilac_tile_find_integer(&op->attributes, "lilac.ordered", 0) == 0) {
        lilac_lower_barrier(l);
    }
    lilac_lower_copy_access(&l->builder, l->arena, &t.access, &t.place, sources,
                            stores ? &words : NULL);
    return true;
}

bool lilac_lower_async_copy(lilac_lowering *l, const lilac_tile_op *op) {
    if (!lilac_arch_has(l->target->arch, LILAC_HAS_CP_ASYNC)) {
        return lilac_lower_unsupported(l, "%s has no asynchronous copies", l->target->arch->name);
    }
    (void)lilac_lower_define_reference(l, &op->results[0]);
    switch (op->code) {
    case LILAC_TILE_OP_TTG_ASYNC_COMMIT_GROUP:
        lilac_simt_copy_commit(&l->builder);
        return true;
    case LILAC_TILE_OP_TTG_ASYNC_WAIT:
        lilac_simt_copy_wait(&l->builder,
                             (uint32_t)lilac_tile_find_integer(&op->attributes, "num", 0));
        return true;
    default:
        return copy(l, op);
    }
}
