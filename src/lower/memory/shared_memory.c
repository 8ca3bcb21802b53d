/* Shared memory that the program names: local_alloc, local_store, local_load, and views of it.
 *
 * A memory descriptor denotes the bytes
 *
 *     begin + dynamic + padded(shift ⊕ offset) · element size
 *
 *     begin     of the allocation
 *     dynamic   the buffer that memdesc_index chose
 *     shift     where a subslice begins: M⁻¹ of its coordinates, M the layout of the memory
 *     offset    M⁻¹ of the element's coordinates
 *
 * so trans and reshape, which only map coordinates, change nothing but the type. A store or load is
 * the access of the tensor's layout to the memory's (plan.h), by vectors, or by matrix instructions
 * if they cost less.
 *
 * Allocations are placed before the function is lowered. The lifetime of one ends after the last
 * operation, in its own block, that uses it directly, through views or inside a region. First fit:
 * each gets the lowest bytes that no allocation of an overlapping lifetime occupies. */
#include "coordinates.h"
#include "memory/shared_access.h"
#include "operations.h"

#include <string.h>

struct lilac_lower_memory {
    uint32_t begin, bytes;    /* of the allocation */
    uint64_t shift;           /* elements */
    lilac_simt_value dynamic; /* bytes; 0: none */
    int64_t constant;         /* bytes, added */
};

/* ---- sizes ------------------------------------------------------------------------------- */

static uint32_t element_bits(const lilac_tile_type *type) {
    uint32_t bits = lilac_tile_element_bits(type);
    return bits < 8 ? 8 : bits;
}

static void padding_of(const lilac_tile_type *type, lilac_plan_padding *padding) {
    memset(padding, 0, sizeof *padding);
    if (type->encoding == NULL || type->encoding->kind != LILAC_ENCODING_PADDED_SHARED) {
        return;
    }
    padding->count = type->encoding->as.padded_shared.count;
    for (uint32_t i = 0; i < padding->count; i++) {
        padding->interval[i] = type->encoding->as.padded_shared.interval[i];
        padding->padding[i] = type->encoding->as.padded_shared.padding[i];
    }
}

/* Bytes of the last `rank` dimensions of the allocation, padding included. */
static uint64_t bytes_of(const lilac_tile_type *type, uint32_t rank) {
    uint64_t last = 1;
    for (uint32_t i = 0; i < rank; i++) {
        last *= (uint64_t)type->alloc_shape[type->alloc_rank - rank + i];
    }
    last--;
    lilac_plan_padding padding;
    padding_of(type, &padding);
    uint64_t place = last;
    for (uint32_t i = 0; i < padding.count; i++) {
        place += last / padding.interval[i] * padding.padding[i];
    }
    return (place + 1) * (element_bits(type) / 8);
}

/* ---- placing ----------------------------------------------------------------------------- */

typedef struct allocation {
    const lilac_tile_op *op;
    const lilac_tile_op *holder; /* of its last use, in its own block */
    uint64_t begin, bytes;
    uint32_t first, last; /* of its life, in operations */
} allocation;

enum { ALIGNMENT = 128 };

typedef struct placing {
    lilac_lowering *l;
    uint32_t *numbers; /* by value id of an allocation: its place in the list, from 1 */
    uint32_t now;      /* number of the operation */
    uint32_t count, capacity;
    allocation *list; /* in order */
} placing;

/* The operation of `block` that is this one or holds it; NULL: none is. */
static const lilac_tile_op *within_block(const lilac_tile_op *op, const lilac_tile_block *block) {
    while (op != NULL && op->parent != block) {
        op = op->parent->parent->parent;
    }
    return op;
}

static bool is_view(const lilac_tile_op *op) {
    switch (op->code) {
    case LILAC_TILE_OP_TTG_MEMDESC_INDEX:
    case LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE:
    case LILAC_TILE_OP_TTG_MEMDESC_TRANS:
    case LILAC_TILE_OP_TTG_MEMDESC_RESHAPE:
    case LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET:
        return true;
    default:
        return false;
    }
}

/* The allocation that a value is a view of; NULL: none. */
static const lilac_tile_op *allocation_of(const lilac_tile_value *value) {
    while (value->op != NULL && is_view(value->op)) {
        value = value->op->operands[0].value;
    }
    return value->op != NULL && value->op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC ? value->op : NULL;
}

static void add_allocation(placing *p, const lilac_tile_op *op) {
    if (p->count == p->capacity) {
        uint32_t capacity = p->capacity == 0 ? 8 : 2 * p->capacity;
        allocation *list = lilac_arena_array(p->l->arena, allocation, capacity);
        for (uint32_t i = 0; i < p->count; i++) {
            list[i] = p->list[i];
        }
        p->list = list;
        p->capacity = capacity;
    }
    const lilac_tile_type *type = op->results[0].type;
    p->list[p->count++] = (allocation){
        .op = op, .holder = op, .bytes = bytes_of(type, type->alloc_rank), .first = p->now};
    p->numbers[op->results[0].id] = p->count;
}

static void find_lives(placing *p, const lilac_tile_region *region) {
    for (const lilac_tile_block *b = region->first; b != NULL; b = b->next) {
        for (const lilac_tile_op *op = b->first; op != NULL; op = op->next) {
            p->now++;
            if (op->code == LILAC_TILE_OP_TTG_LOCAL_ALLOC) {
                add_allocation(p, op);
            }
            for (uint32_t i = 0; i < op->operand_count; i++) {
                const lilac_tile_value *value = op->operands[i].value;
                const lilac_tile_op *made_by =
                    value->type->kind == LILAC_TILE_MEMDESC ? allocation_of(value) : NULL;
                if (made_by != NULL) {
                    p->list[p->numbers[made_by->results[0].id] - 1].holder =
                        within_block(op, made_by->parent);
                }
            }
            for (uint32_t i = 0; i < op->region_count; i++) {
                find_lives(p, op->regions[i]);
            }
            for (uint32_t i = p->count; i-- > 0;) {
                if (p->list[i].holder == op) {
                    p->list[i].last = p->now;
                }
            }
        }
    }
}

/* The lowest offset at which it overlaps no earlier allocation with an overlapping lifetime. */
static uint64_t first_fit(const placing *p, const allocation *wanted) {
    uint64_t begin = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (const allocation *a = p->list; a < wanted; a++) {
            bool together = a->last >= wanted->first;
            if (together && a->begin < begin + wanted->bytes && begin < a->begin + a->bytes) {
                begin = (a->begin + a->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
                moved = true;
            }
        }
    }
    return begin;
}

bool lilac_lower_place_memory(lilac_lowering *l) {
    placing p = {.l = l};
    p.numbers = lilac_arena_array(l->arena, uint32_t, l->function->value_count);
    find_lives(&p, l->function->body);
    uint64_t end = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        allocation *a = &p.list[i];
        a->begin = first_fit(&p, a);
        end = a->begin + a->bytes > end ? a->begin + a->bytes : end;
        struct lilac_lower_memory *memory = lilac_arena_new(l->arena, struct lilac_lower_memory);
        memory->begin = (uint32_t)a->begin;
        memory->bytes = (uint32_t)a->bytes;
        l->values[a->op->results[0].id].memory = memory;
        if (end > l->target->arch->shared_bytes) {
            l->op = a->op;
            return lilac_lower_refuse(
                l, "too-much-shared-memory",
                "with this allocation the kernel needs %llu bytes of shared memory, "
                "and %s has %u",
                (unsigned long long)end, l->target->arch->name, l->target->arch->shared_bytes);
        }
    }
    l->scratch_begin = (uint32_t)((end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    l->scratch_next = l->reused_begin = l->reused_end = l->scratch_begin;
    l->shared_bytes = (uint32_t)end;
    return true;
}

/* ---- views ------------------------------------------------------------------------------- */

/* M⁻¹ of coordinates, one for each dimension of the layout. */
static bool offset_of(lilac_lowering *l, const lilac_layout *layout, const int64_t *coordinates,
                      uint64_t *offset) {
    uint64_t places[LILAC_LAYOUT_MAX_DIMS];
    lilac_layout inverse;
    lilac_reason why;
    for (uint32_t d = 0; d < layout->out_count; d++) {
        places[d] = (uint64_t)coordinates[d];
        if (coordinates[d] < 0 || places[d] >> layout->out[d].bits != 0) {
            return lilac_lower_unsupported(
                l, "coordinate %u is %lld; the memory has %llu elements there", d,
                (long long)coordinates[d], 1ULL << layout->out[d].bits);
        }
    }
    if (!lilac_layout_pseudoinvert(&inverse, layout, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    uint64_t place = lilac_layout_apply(&inverse, lilac_layout_pack(layout, places));
    int out = lilac_layout_out(&inverse, "offset");
    *offset = out < 0 ? 0 : lilac_layout_coordinate(&inverse, place, (uint32_t)out);
    return true;
}

static bool subslice(lilac_lowering *l, const lilac_tile_op *op, const lilac_tile_type *from,
                     struct lilac_lower_memory *memory) {
    const lilac_tile_attribute *offsets = lilac_tile_find(&op->attributes, "offsets");
    uint64_t shift = 0;
    if (offsets == NULL || from->layout == NULL || offsets->count != from->layout->out_count) {
        return lilac_lower_bad_attribute(l, "offsets", "one for each dimension of the memory");
    }
    if (!offset_of(l, from->layout, offsets->integers, &shift)) {
        return false;
    }
    memory->shift ^= shift;
    return true;
}

/* Selects one of consecutive buffers; one element if the memory is not an array of buffers. */
static bool index_memory(lilac_lowering *l, const lilac_tile_op *op, const lilac_tile_type *from,
                         const lilac_tile_type *to, struct lilac_lower_memory *memory) {
    const lilac_lower_value *index = lilac_lower_operand(l, op, 1);
    bool buffers = from->layout != NULL && from->layout->out_count + 1U == from->rank;
    int64_t number;
    if (!buffers) {
        uint64_t shift = 0;
        if (from->layout == NULL || from->layout->out_count != 1 ||
            !lilac_lower_constant(l, index, &number)) {
            return lilac_lower_unsupported(
                l, "operand 0 is not an array of buffers; expected one dimension more "
                   "than in its layout, or one dimension and a constant index");
        }
        if (!offset_of(l, from->layout, &number, &shift)) {
            return false;
        }
        memory->shift ^= shift;
        return true;
    }
    int64_t bytes = (int64_t)bytes_of(to, from->rank - 1);
    if (lilac_lower_constant(l, index, &number)) {
        if (number < 0 || number >= from->shape[0]) {
            return lilac_lower_unsupported(l, "the index is %lld; operand 0 has %lld buffers",
                                           (long long)number, (long long)from->shape[0]);
        }
        memory->constant += number * bytes;
        return true;
    }
    lilac_simt_builder *b = &l->builder;
    memory->dynamic =
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I32, lilac_lower_get(l, index, 0),
                       lilac_lower_integer(l, LILAC_SIMT_I32, bytes));
    return true;
}

static bool lower_view(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_value *from = lilac_lower_operand(l, op, 0);
    const lilac_tile_type *from_type = op->operands[0].value->type, *type = op->results[0].type;
    if (from->memory == NULL) {
        return lilac_lower_unsupported(l, "operand 0 is not derived from a ttg.local_alloc of "
                                          "this kernel");
    }
    struct lilac_lower_memory *memory = lilac_arena_new(l->arena, struct lilac_lower_memory);
    *memory = *from->memory;
    l->values[op->results[0].id].type = type;
    l->values[op->results[0].id].memory = memory;
    switch (op->code) {
    case LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE:
        return subslice(l, op, from_type, memory);
    case LILAC_TILE_OP_TTG_MEMDESC_INDEX:
        return index_memory(l, op, from_type, type, memory);
    case LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET:
        if (memory->shift != 0) {
            return lilac_lower_unsupported(l, "operand 0 is a subslice; expected a whole buffer");
        }
        if (bytes_of(type, type->alloc_rank) > memory->bytes) {
            return lilac_lower_unsupported(
                l, "the result has %llu bytes; the allocation of operand 0 has %u",
                (unsigned long long)bytes_of(type, type->alloc_rank), memory->bytes);
        }
        return true;
    default:
        return true;
    }
}

/* ---- stores and loads -------------------------------------------------------------------- */

/* Extends the tensor's layout to the dimensions of the allocation, of which its memory may be a part:
 * the coordinates stay. */
static bool embed(lilac_layout *layout, const lilac_layout *memory, lilac_reason *why) {
    bool good = layout->out_count == memory->out_count;
    for (uint32_t d = 0; good && d < memory->out_count; d++) {
        good =
            layout->out[d].bits == memory->out[d].bits ||
            lilac_layout_resize_out(layout, layout, memory->out[d].name, memory->out[d].bits, why);
    }
    return good;
}

/* The access of a tensor's canonical registers to memory, and where it goes. */
typedef struct transfer {
    lilac_plan_access access;
    lilac_lower_place place;
    uint32_t registers; /* mask of the canonical registers' bits */
} transfer;

/* An instruction issues in an eighth of the time of a wavefront. */
static uint64_t cost_of(const lilac_plan_access *access) {
    return 8 * access->wavefronts + access->instructions;
}

/* Chooses a matrix instruction if it costs less. Its rows of 16 bytes must be contiguous. */
static void try_matrices(lilac_lowering *l, const struct lilac_lower_memory *memory,
                         const lilac_layout *layout, const lilac_tile_type *type, transfer *t) {
    static const lilac_plan_instruction instructions[2] = {LILAC_PLAN_MATRIX,
                                                           LILAC_PLAN_MATRIX_TRANSPOSED};
    enum { ROW = 16 };
    uint32_t bytes = element_bits(type) / 8;
    bool whole = memory->shift * bytes % ROW == 0 && memory->constant % ROW == 0 &&
                 (memory->dynamic == 0 || bytes_of(type, type->layout->out_count) % ROW == 0);
    for (uint32_t i = 0; whole && i < 2; i++) {
        lilac_plan_access access;
        lilac_reason why;
        if (lilac_plan_access_init_matrix(&access, layout, type->layout, instructions[i],
                                          element_bits(type), l->target->arch, &why) &&
            cost_of(&access) < cost_of(&t->access)) {
            t->access = access;
        }
    }
}

static bool plan_transfer(lilac_lowering *l, const lilac_lower_view *view,
                          const lilac_tile_value *memory_value, bool loads, transfer *t) {
    const struct lilac_lower_memory *memory = l->values[memory_value->id].memory;
    const lilac_tile_type *type = memory_value->type;
    lilac_plan_padding padding;
    lilac_layout layout;
    lilac_reason why = {"the tensor has another rank than its memory"};
    if (memory == NULL || type->layout == NULL || type->is_tensor_memory) {
        return lilac_lower_unsupported(l, "its memory is not in shared memory, has no layout, or "
                                          "is not derived from a ttg.local_alloc of this kernel");
    }
    padding_of(type, &padding);
    /* The shift contains the constant part of a subslice's swizzle. A vector must not cross its lowest
     * bit. */
    lilac_arch arch = *l->target->arch;
    uint64_t straight = memory->shift & (~memory->shift + 1);
    uint32_t bytes = element_bits(type) / 8;
    if (straight != 0 && straight * bytes < arch.vector_bytes) {
        arch.vector_bytes = (uint32_t)straight * bytes;
    }
    t->registers = lilac_lower_distinct_registers(view);
    if (!lilac_lower_layout_of(&layout, view, view, t->registers, &why) ||
        !embed(&layout, type->layout, &why) ||
        !lilac_plan_access_init_padded(&t->access, &layout, type->layout, &padding,
                                       element_bits(type), &arch, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    if (loads) {
        lilac_plan_access_as_load(&t->access, l->target->arch);
    }
    if (padding.count == 0) {
        try_matrices(l, memory, &layout, type, t);
    }
    t->place = (lilac_lower_place){.offset = memory->begin,
                                   .bytes = memory->bytes,
                                   .shift = memory->shift,
                                   .dynamic = memory->dynamic,
                                   .constant = memory->constant};
    return true;
}

static bool store(lilac_lowering *l, const lilac_tile_value *tensor,
                  const lilac_tile_value *memory) {
    const lilac_lower_value *value = &l->values[tensor->id];
    transfer t;
    if (!plan_transfer(l, value->view, memory, false, &t)) {
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
    (vectors ? lilac_lower_pack_wide : lilac_lower_pack_words)(
        &l->builder, l->arena, value->simt, bits, element_bits(tensor->type), values, &words);
    t.place.replicas = value->view->free_threads;
    if (!vectors) {
        /* All lanes of a warp must execute a matrix instruction. */
        t.place.replicas &= ~((1U << value->view->lane_bits) - 1);
    }
    lilac_lower_store_access(&l->builder, l->arena, &t.access, &t.place, &words);
    return true;
}

static bool load(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_value *value = lilac_lower_result(l, op, 0);
    transfer t;
    if (value == NULL || !plan_transfer(l, value->view, op->operands[0].value, true, &t)) {
        return false;
    }
    lilac_lower_barrier(l);
    uint32_t bits = (uint32_t)__builtin_popcount(t.registers);
    lilac_simt_type wide = t.access.instruction == LILAC_PLAN_VECTOR
                               ? lilac_lower_wide_type(value->simt, element_bits(value->type))
                               : LILAC_SIMT_VOID;
    lilac_lower_words words = lilac_lower_words_like(bits, element_bits(value->type), wide);
    lilac_lower_parts parts = {0};
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
        return op->operand_count == 0 || store(l, op->operands[0].value, &op->results[0]);
    case LILAC_TILE_OP_TTG_LOCAL_STORE:
        return store(l, op->operands[0].value, op->operands[1].value);
    case LILAC_TILE_OP_TTG_LOCAL_LOAD:
        return load(l, op);
    case LILAC_TILE_OP_TTG_LOCAL_DEALLOC:
        return true;
    default:
        return lower_view(l, op);
    }
}
