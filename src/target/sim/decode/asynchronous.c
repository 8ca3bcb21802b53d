/* Decoding of asynchronous operations: cp.async, bulk and tensor copies, mbarriers, and the matrix
 * instructions. */
#include "async/bulk.h"
#include "decoder.h"
#include "lanes/multiply.h"

static void set_registers(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                          lilac_simt_group group, uint32_t *registers) {
    for (uint32_t k = 0; k < group.count; k++) {
        registers[k] = lilac_sim_offset_of(d, i, group.values[k]);
    }
}

void lilac_sim_decode_matrix(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_program *p = d->program;
    bool mma = kind == STEP_MMA;
    if (p->matrix_count == p->matrix_capacity) {
        p->matrix_capacity = p->matrix_capacity * 2 + 16;
        p->matrices = lilac_heap_grow(p->matrices, sizeof *p->matrices * p->matrix_capacity);
    }
    lilac_sim_matrix *m = &p->matrices[p->matrix_count];
    *m = (lilac_sim_matrix){.shape = lilac_simt_matrix_shape(i), .payload = &i->payload.matrix};
    lilac_simt_group c = lilac_simt_group_of(i, mma ? 2 : 0), a = lilac_simt_group_of(i, !mma);
    lilac_simt_group b = lilac_simt_group_of(i, mma ? 1 : 2);
    m->a_count = a.count;
    m->b_count = b.count;
    m->d_count = c.count;
    set_registers(d, i, a, m->a);
    set_registers(d, i, b, m->b);
    set_registers(d, i, c, m->c);
    for (uint32_t k = 0; k < c.count; k++) {
        m->d[k] = d->values[i->result + k].offset;
    }
    if (!mma) {
        m->accumulate = lilac_sim_offset_of(d, i, lilac_simt_group_of(i, 3).values[0]);
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->access = p->matrix_count++;
    p->proxies |= !mma;
}

/* wgmma.fence, wgmma.commit and wgmma.wait. Their results are copies of their operands. */
void lilac_sim_decode_wgmma(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    if (kind == STEP_WGMMA_WAIT) {
        step->immediate = i->payload.wgmma_wait.groups;
    }
    for (uint32_t k = 0; k < i->result_count; k++) {
        lilac_sim_copy_value(d, i, i->result + k, i->operands[k]);
    }
}

void lilac_sim_decode_copy(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool predicated = value_type(d, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    bool partial = i->operand_count > 2u + predicated;
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    d->program->copies = true;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = 1;
    access->width = i->detail;
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    access->values[0] = lilac_sim_offset_of(d, i, rest[0]);
    access->others[0] = partial ? lilac_sim_offset_of(d, i, rest[1]) : LILAC_SIM_NONE;
}

/* The bytes of a copy's elements. Reports name the element at this width. */
static uint32_t width_of(const lilac_simt_instruction *i, const lilac_tensor_map *map) {
    return map ? lilac_tensor_element_bytes(map->element)
           : i->code == LILAC_SIMT_OP_CP_BULK_REDUCE
               ? lilac_scalar_bits((lilac_scalar)i->scalar) / 8
               : LILAC_SIM_BULK_BYTES;
}

void lilac_sim_decode_bulk(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool predicated = value_type(d, i->operands[1]) == LILAC_SIMT_I1;
    bool load = i->code == LILAC_SIMT_OP_CP_BULK_LOAD || i->code == LILAC_SIMT_OP_CP_TENSOR_LOAD;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    const bool multicast = i->payload.bulk.multicast;
    /* The operands between the two addresses and the mbarrier: the size or the coordinates. */
    uint32_t count = i->operand_count - 2u - predicated - load - multicast;
    const lilac_tensor_map *map = lilac_sim_map_of(d->launch, i);
    if (map && !lilac_sim_check_tensor_copy(d->context, i, map, count)) {
        d->failed = true;
        return;
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    d->program->proxies = true;
    d->program->async_clocks |= load;
    d->program->partial |= load;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = count;
    access->width = width_of(i, map);
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    access->values[0] = lilac_sim_offset_of(d, i, rest[0]);
    access->values[1] = load ? lilac_sim_offset_of(d, i, rest[1 + count]) : LILAC_SIM_NONE;
    access->values[2] = multicast ? lilac_sim_offset_of(d, i, rest[2 + count]) : LILAC_SIM_NONE;
    for (uint32_t k = 0; k < count; k++) {
        access->others[k] = lilac_sim_offset_of(d, i, rest[1 + k]);
    }
}

/* Operations on tensor maps in scratch memory. */
void lilac_sim_decode_made_map(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                               uint8_t kind) {
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    d->program->proxies = true;
    if (i->code == LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE) {
        step->a = lilac_sim_offset_of(d, i, i->operands[i->operand_count - 1u]);
        (void)lilac_sim_add_access(d, step, i, i->operand_count > 1 ? i->operands[0] : 0);
        return;
    }
    bool predicated = value_type(d, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    uint32_t numbers = i->operand_count - 2u - predicated;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = (numbers + 1) / 2; /* the rank of the map */
    access->width = LILAC_TENSOR_MAP_BYTES;
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    access->values[0] = lilac_sim_offset_of(d, i, rest[0]);
    for (uint32_t k = 0; k < numbers; k++) {
        access->others[k] = lilac_sim_offset_of(d, i, rest[1 + k]);
    }
}

void lilac_sim_decode_mbarrier(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                               uint8_t kind) {
    bool predicated = i->operand_count > 1 && value_type(d, i->operands[1]) == LILAC_SIMT_I1;
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->immediate = i->code;
    d->program->mbarriers = d->program->shared_atomics = d->program->partial = true;
    d->program->async_clocks |= i->code == LILAC_SIMT_OP_CP_ASYNC_MBARRIER_ARRIVE;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = 1;
    access->width = sizeof(uint32_t);
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    access->values[0] = i->result_count ? d->values[i->result].offset : LILAC_SIM_NONE;
    access->others[0] = i->operand_count > 1u + predicated
                            ? lilac_sim_offset_of(d, i, i->operands[1 + predicated])
                            : LILAC_SIM_NONE;
}
