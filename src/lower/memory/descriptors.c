/* Memory descriptors: allocations, views, and descriptors that loops and branches pass on
 * (descriptor.h). */
#include "memory/descriptor.h"
#include "memory/memory_type.h"

lilac_lower_value *lilac_lower_define_reference(lilac_lowering *l, const lilac_tile_value *tile) {
    lilac_lower_value *value = &l->values[tile->id];
    bool token = tile->type->kind == LILAC_TILE_TOKEN;
    *value = (lilac_lower_value){
        .kind = token ? LILAC_LOWER_TOKEN : LILAC_LOWER_MEMORY, .type = tile->type, .tile = tile};
    return value;
}

static lilac_lower_memory *define_memory(lilac_lowering *l, const lilac_tile_value *tile) {
    lilac_lower_memory *memory = lilac_arena_new(l->arena, lilac_lower_memory);
    lilac_lower_define_reference(l, tile)->memory = memory;
    return memory;
}

void lilac_lower_define_allocation(lilac_lowering *l, const lilac_tile_op *op) {
    lilac_lower_memory *memory = define_memory(l, &op->results[0]);
    const lilac_lower_buffer *buffer = l->buffers->list;
    while (buffer->op != op) {
        buffer++;
    }
    *memory = (lilac_lower_memory){.begin = (uint32_t)buffer->begin,
                                   .bytes = (uint32_t)buffer->bytes,
                                   .allocated = buffer->bytes,
                                   .alignment = LILAC_LOWER_BUFFER_ALIGNMENT};
}

bool lilac_lower_poison_memory(lilac_lowering *l, const lilac_tile_op *op) {
    if (op->results[0].type->kind == LILAC_TILE_TOKEN) {
        (void)lilac_lower_define_reference(l, &op->results[0]);
    } else {
        *define_memory(l, &op->results[0]) =
            (lilac_lower_memory){.alignment = LILAC_LOWER_BUFFER_ALIGNMENT};
    }
    return true;
}

/* ---- views ------------------------------------------------------------------------------- */

static bool subslice(lilac_lowering *l, const lilac_tile_op *op, const lilac_tile_type *from,
                     lilac_lower_memory *memory) {
    const lilac_tile_attribute *offsets = lilac_tile_find(&op->attributes, "offsets");
    uint64_t shift = 0;
    lilac_reason why;
    if (offsets == NULL || from->layout == NULL || offsets->count != from->layout->out_count) {
        return lilac_lower_bad_attribute(l, "offsets", "one for each dimension of the memory");
    }
    if (!lilac_lower_memory_offset(from->layout, offsets->integers, &shift, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    memory->shift ^= shift;
    return true;
}

static void align_to(lilac_lower_memory *memory, int64_t bytes) {
    uint64_t lowest = (uint64_t)(bytes & -bytes);
    if (lowest != 0 && lowest < memory->alignment) {
        memory->alignment = (uint32_t)lowest;
    }
}

/* One element of memory of one dimension. */
static bool index_element(lilac_lowering *l, const lilac_lower_value *index,
                          const lilac_tile_type *from, lilac_lower_memory *memory) {
    int64_t number;
    uint64_t shift = 0;
    lilac_reason why;
    if (from->layout == NULL || from->layout->out_count != 1 ||
        !lilac_lower_constant(l, index, &number)) {
        return lilac_lower_unsupported(
            l, "operand 0 is not an array of buffers; expected one dimension more "
               "than in its layout, or one dimension and a constant index");
    }
    if (!lilac_lower_memory_offset(from->layout, &number, &shift, &why)) {
        return lilac_lower_unsupported(l, "%s", why.text);
    }
    memory->shift ^= shift;
    return true;
}

/* Selects one of consecutive buffers; one element if the memory is not an array of buffers. */
static bool index_memory(lilac_lowering *l, const lilac_tile_op *op, const lilac_tile_type *from,
                         const lilac_tile_type *to, lilac_lower_memory *memory) {
    const lilac_lower_value *index = lilac_lower_operand(l, op, 1);
    int64_t number;
    if (!lilac_lower_is_buffer_array(from)) {
        return index_element(l, index, from, memory);
    }
    int64_t bytes = lilac_lower_buffer_stride(from, to);
    if (lilac_lower_constant(l, index, &number)) {
        if (number < 0 || number >= from->shape[0]) {
            return lilac_lower_unsupported(l, "the index is %lld; operand 0 has %lld buffers",
                                           (long long)number, (long long)from->shape[0]);
        }
        memory->constant += number * bytes;
        align_to(memory, number * bytes);
        return true;
    }
    lilac_simt_builder *b = &l->builder;
    lilac_simt_value size = lilac_lower_integer(l, LILAC_SIMT_I32, bytes);
    lilac_simt_value place =
        lilac_simt_op2(b, LILAC_SIMT_OP_MUL, LILAC_SIMT_I32, lilac_lower_get(l, index, 0), size);
    memory->dynamic = memory->dynamic == 0 ? place
                                           : lilac_simt_op2(b, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32,
                                                            memory->dynamic, place);
    align_to(memory, bytes);
    return true;
}

bool lilac_lower_memory_view(lilac_lowering *l, const lilac_tile_op *op) {
    const lilac_lower_memory *from = lilac_lower_operand(l, op, 0)->memory;
    const lilac_tile_type *from_type = op->operands[0].value->type, *type = op->results[0].type;
    lilac_lower_memory *memory = define_memory(l, &op->results[0]);
    *memory = *from;
    switch (op->code) {
    case LILAC_TILE_OP_TTG_MEMDESC_SUBSLICE:
        return subslice(l, op, from_type, memory);
    case LILAC_TILE_OP_TTG_MEMDESC_INDEX:
        return index_memory(l, op, from_type, type, memory);
    case LILAC_TILE_OP_TTG_MEMDESC_REINTERPRET:
        if (memory->shift != 0 || memory->dynamic_shift != 0) {
            return lilac_lower_unsupported(l, "operand 0 is a subslice; expected a whole buffer");
        }
        if (lilac_lower_memory_size(type, type->alloc_rank) > memory->allocated) {
            return lilac_lower_unsupported(
                l, "the result has %llu bytes; the allocation of operand 0 has %llu",
                (unsigned long long)lilac_lower_memory_size(type, type->alloc_rank),
                (unsigned long long)memory->allocated);
        }
        return true;
    default:
        return true;
    }
}

/* ---- values that are passed on ------------------------------------------------------------- */

static const lilac_lower_flow *flow_of(const lilac_lowering *l, const lilac_lower_value *value) {
    return l->buffers->by_value[value->tile->id];
}

uint32_t lilac_lower_carried_width(const lilac_lowering *l, const lilac_lower_value *value) {
    if (value->kind == LILAC_LOWER_TOKEN || flow_of(l, value)->equal != value->tile) {
        return 0;
    }
    return flow_of(l, value)->shift != 0 ? 2 : 1;
}

/* The offset of the descriptor's first byte in the block's shared memory. */
static lilac_simt_value place_of(lilac_lowering *l, const lilac_lower_memory *memory) {
    lilac_simt_value known =
        lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)memory->begin + memory->constant);
    return memory->dynamic == 0 ? known
                                : lilac_simt_op2(&l->builder, LILAC_SIMT_OP_ADD, LILAC_SIMT_I32,
                                                 memory->dynamic, known);
}

static lilac_simt_value shift_of(lilac_lowering *l, const lilac_lower_memory *memory,
                                 const lilac_tile_type *type) {
    uint32_t bytes = lilac_lower_memory_bits(type) / 8;
    lilac_simt_value known =
        lilac_lower_integer(l, LILAC_SIMT_I32, (int64_t)(memory->shift * bytes));
    return memory->dynamic_shift == 0
               ? known
               : lilac_simt_op2(&l->builder, LILAC_SIMT_OP_XOR, LILAC_SIMT_I32,
                                memory->dynamic_shift, known);
}

void lilac_lower_send_memory(lilac_lowering *l, const lilac_lower_value *value,
                             const lilac_lower_value *to, lilac_simt_value *list) {
    uint32_t width = lilac_lower_carried_width(l, to);
    if (width > 0) {
        list[0] = place_of(l, value->memory);
    }
    if (width > 1) {
        list[1] = shift_of(l, value->memory, to->type);
    }
}

void lilac_lower_receive_memory(lilac_lowering *l, lilac_lower_value *value, lilac_simt_value place,
                                lilac_simt_value shift) {
    if (value->kind == LILAC_LOWER_TOKEN) {
        return;
    }
    const lilac_lower_flow *flow = flow_of(l, value);
    if (flow->equal != value->tile) {
        value->memory = l->values[flow->equal->id].memory;
        return;
    }
    lilac_lower_memory *memory = lilac_arena_new(l->arena, lilac_lower_memory);
    *memory = (lilac_lower_memory){.alignment = flow->alignment, .dynamic = place};
    uint64_t begin = UINT64_MAX, end = 0;
    for (uint32_t i = 0; i < l->buffers->count; i++) {
        const lilac_lower_buffer *buffer = &l->buffers->list[i];
        if (lilac_lower_may_name(flow, i)) {
            bool smallest = end == 0 || buffer->bytes < memory->allocated;
            memory->allocated = smallest ? buffer->bytes : memory->allocated;
            begin = buffer->begin < begin ? buffer->begin : begin;
            end = buffer->begin + buffer->bytes > end ? buffer->begin + buffer->bytes : end;
        }
    }
    if (end != 0) {
        memory->begin = (uint32_t)begin;
        memory->bytes = (uint32_t)(end - begin);
        memory->constant = -(int64_t)begin;
    }
    if (flow->shift != 0) {
        memory->dynamic_shift = shift;
        memory->dynamic_shift_bits = flow->shift;
    }
    value->memory = memory;
}

bool lilac_lower_select_memory(lilac_lowering *l, const lilac_tile_op *op) {
    if (op->operands[0].value->type->kind != LILAC_TILE_SCALAR) {
        return lilac_lower_unsupported(l, "operand 0 is a tensor; a descriptor or token is chosen "
                                          "by one i1");
    }
    lilac_lower_value *value = lilac_lower_define_reference(l, &op->results[0]);
    lilac_simt_value condition = lilac_lower_get(l, lilac_lower_operand(l, op, 0), 0);
    lilac_simt_value yes[2] = {0}, no[2] = {0};
    lilac_lower_send_memory(l, lilac_lower_operand(l, op, 1), value, yes);
    lilac_lower_send_memory(l, lilac_lower_operand(l, op, 2), value, no);
    for (uint32_t i = 0; i < lilac_lower_carried_width(l, value); i++) {
        yes[i] = lilac_lower_select(l, condition, yes[i], no[i]);
    }
    lilac_lower_receive_memory(l, value, yes[0], yes[1]);
    return true;
}
