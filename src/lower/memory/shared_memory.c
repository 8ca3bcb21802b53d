/* Stores and loads of shared memory that the program names: local_alloc, local_store, local_load.
 *
 * A store or load is the access of the tensor's layout to the memory's (plan.h), by vectors, or by
 * matrix instructions if they cost less. Where the memory is, the descriptor says
 * (memory/descriptor.h). */
#include "memory/shared_memory.h"
#include "executed_plans.h"
#include "memory/memory_type.h"
#include "operations.h"

/* ---- stores and loads -------------------------------------------------------------------- */

/* Extends the tensor's layout to the dimensions of the allocation, of which its memory may be a
 * part: the coordinates stay. */
static bool embed(lilac_layout *layout, const lilac_layout *memory, lilac_reason *why) {
    bool good = layout->out_count == memory->out_count;
    for (uint32_t d = 0; good && d < memory->out_count; d++) {
        good =
            layout->out[d].bits == memory->out[d].bits ||
            lilac_layout_resize_out(layout, layout, memory->out[d].name, memory->out[d].bits, why);
    }
    return good;
}

typedef lilac_lower_transfer transfer;

/* An instruction issues in an eighth of the time of a wavefront. */
static uint64_t cost_of(const lilac_plan_access *access) {
    return 8 * access->wavefronts + access->instructions;
}

/* Chooses a matrix instruction if it costs less. Its rows of 16 bytes must be contiguous. */
static void try_matrices(lilac_lowering *l, const lilac_lower_memory *memory,
                         const lilac_layout *layout, const lilac_tile_type *type, transfer *t) {
    static const lilac_plan_instruction instructions[2] = {LILAC_PLAN_MATRIX,
                                                           LILAC_PLAN_MATRIX_TRANSPOSED};
    enum { ROW = 16 };
    uint32_t bytes = lilac_lower_memory_bits(type) / 8;
    bool whole = (memory->shift | memory->dynamic_shift_bits) * bytes % ROW == 0 &&
                 memory->alignment % ROW == 0;
    for (uint32_t i = 0; whole && i < 2; i++) {
        lilac_plan_access access;
        lilac_reason why;
        if (lilac_plan_access_init_matrix(&access, layout, type->layout, instructions[i],
                                          lilac_lower_memory_bits(type), l->target->arch, &why) &&
            cost_of(&access) < cost_of(&t->access)) {
            t->access = access;
        }
    }
}

bool lilac_lower_plan_transfer(lilac_lowering *l, const lilac_lower_view *view,
                               const lilac_tile_value *memory_value, uint32_t vector_bytes,
                               lilac_lower_transfer *t, lilac_layout *layout) {
    const lilac_lower_memory *memory = l->values[memory_value->id].memory;
    const lilac_tile_type *type = memory_value->type;
    lilac_plan_padding padding;
    lilac_reason why = {"the tensor has another rank than its memory"};
    if (memory->bytes == 0 || type->layout == NULL || type->is_tensor_memory) {
        return lilac_lower_unsupported(l, "its memory is not in shared memory, has no layout, or "
                                          "is not derived from a ttg.local_alloc of this kernel");
    }
    lilac_lower_memory_padding(type, &padding);
    /* The shift contains the constant part of a subslice's swizzle. A vector must not cross its
     * lowest bit. */
    lilac_arch arch = *l->target->arch;
    arch.vector_bytes = vector_bytes < arch.vector_bytes ? vector_bytes : arch.vector_bytes;
    uint64_t shift = memory->shift | memory->dynamic_shift_bits;
    uint64_t straight = shift & (~shift + 1);
    uint32_t bytes = lilac_lower_memory_bits(type) / 8;
    if (straight != 0 && straight * bytes < arch.vector_bytes) {
        arch.vector_bytes = (uint32_t)straight * bytes;
    }
    t->registers = view->columns.distinct;
    if (!lilac_layout_columns_layout(layout, &view->columns, t->registers, &why) ||
        !embed(layout, type->layout, &why) ||
        !lilac_plan_access_init_padded(&t->access, layout, type->layout, &padding,
                                       lilac_lower_memory_bits(type), &arch, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    t->place = (lilac_lower_place){.offset = memory->begin,
                                   .bytes = memory->bytes,
                                   .shift = memory->shift,
                                   .dynamic_shift = memory->dynamic_shift,
                                   .dynamic_shift_bits = memory->dynamic_shift_bits,
                                   .dynamic = memory->dynamic,
                                   .constant = memory->constant};
    return true;
}

/* The cheapest access, of loads or of stores. */
static bool plan_access(lilac_lowering *l, const lilac_lower_view *view,
                        const lilac_tile_value *memory, bool loads, transfer *t) {
    lilac_layout layout;
    if (!lilac_lower_plan_transfer(l, view, memory, l->target->arch->vector_bytes, t, &layout)) {
        return false;
    }
    if (loads) {
        lilac_plan_access_as_load(&t->access, l->target->arch);
    }
    if (t->access.padding.count == 0 &&
        lilac_arch_has(l->target->arch, loads ? LILAC_HAS_LDMATRIX : LILAC_HAS_STMATRIX)) {
        try_matrices(l, l->values[memory->id].memory, &layout, memory->type, t);
    }
    return true;
}

static bool store(lilac_lowering *l, const lilac_tile_value *tensor,
                  const lilac_tile_value *memory) {
    const lilac_lower_value *value = &l->values[tensor->id];
    transfer t;
    if (!plan_access(l, value->view, memory, false, &t)) {
        return false;
    }
    lilac_lower_barrier(l);
    uint32_t bits = (uint32_t)__builtin_popcount(t.registers);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, 1U << bits);
    for (uint32_t i = 0; i >> bits == 0; i++) {
        values[i] = lilac_lower_get(l, value, lilac_lower_deposit(i, t.registers));
    }
    lilac_lower_words words;
    bool vectors = t.access.instruction == LILAC_PLAN_VECTOR;
    (vectors ? lilac_lower_pack_wide
             : lilac_lower_pack_words)(&l->builder, l->arena, value->simt, bits,
                                       lilac_lower_memory_bits(tensor->type), values, &words);
    t.place.replicas = value->view->columns.free_threads;
    if (!vectors) {
        /* All lanes of a warp must execute a matrix instruction. */
        t.place.replicas &= ~((1U << value->view->columns.lane_bits) - 1);
    }
    lilac_lower_note_shared(l, &t.access, false, t.place.replicas);
    lilac_lower_store_access(&l->builder, l->arena, &t.access, &t.place, &words);
    return true;
}

static bool load(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *value = lilac_lower_result(l, op, 0);
    transfer t;
    if (value == NULL || !plan_access(l, value->view, op->operands[0].value, true, &t)) {
        return false;
    }
    lilac_lower_barrier(l);
    uint32_t bits = (uint32_t)__builtin_popcount(t.registers);
    lilac_simt_type wide =
        t.access.instruction == LILAC_PLAN_VECTOR
            ? lilac_lower_wide_type(value->simt, lilac_lower_memory_bits(value->type))
            : LILAC_SIMT_VOID;
    lilac_lower_words words =
        lilac_lower_words_like(bits, lilac_lower_memory_bits(value->type), wide);
    lilac_lower_parts parts = {0};
    lilac_lower_note_shared(l, &t.access, true, 0);
    lilac_lower_load_access(&l->builder, l->arena, &t.access, &t.place, &words, &parts);
    lilac_lower_join_parts(&l->builder, l->arena, &parts, &words);
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, 1U << bits);
    lilac_lower_unpack_words(&l->builder, value->simt, &words, values);
    for (uint32_t i = 0; i >> bits == 0; i++) {
        value->base[lilac_lower_deposit(i, t.registers)] = values[i];
    }
    lilac_lower_replicate(value->view, value->base);
    return true;
}

bool lilac_lower_shared_memory(lilac_lowering *l, const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTG_LOCAL_ALLOC:
        lilac_lower_define_allocation(l, op);
        return op->operand_count == 0 || store(l, op->operands[0].value, &op->results[0]);
    case LILAC_TILE_OP_TTG_LOCAL_STORE:
        return store(l, op->operands[0].value, op->operands[1].value);
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
        return load(l, op);
    case LILAC_TILE_OP_TTG_LOCAL_DEALLOC:
        return true;
    case LILAC_TILE_OP_ARITH_SELECT:
        return lilac_lower_select_memory(l, op);
    case LILAC_TILE_OP_UB_POISON:
        return lilac_lower_poison_memory(l, op);
    default:
        return lilac_lower_memory_view(l, op);
    }
}
