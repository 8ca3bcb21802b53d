/* Decoding of synchronous accesses to memory and of print.
 *
 * Operands of an access: the address, an optional predicate, and the values. The values of a load
 * are what threads whose predicate is false read instead. */
#include "decoder.h"

static bool is_load(uint8_t kind) {
    return kind == STEP_LOAD_GLOBAL || kind == STEP_LOAD_SHARED || kind == STEP_LOAD_CLUSTER ||
           kind == STEP_LOAD_MATRIX;
}

void lilac_sim_decode_access(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool load = is_load(kind);
    bool predicated = i->operand_count > 1 &&
                      (i->operands[1] == 0 || value_type(d, i->operands[1]) == LILAC_SIMT_I1);
    uint32_t rest = i->operand_count - 1u - predicated;
    uint32_t count = load ? i->result_count : rest;
    const lilac_simt_value *others = i->operands + 1 + predicated;
    if ((count != 1 && count != 2 && count != 4 && count != 8) ||
        (load && rest != 0 && rest != count)) {
        lilac_sim_refuse(d, i, "an access has 1, 2, 4 or 8 elements");
        return;
    }
    lilac_simt_type type = value_type(d, load ? i->result : others[0]);
    uint32_t width = lilac_sim_lane_bytes(type);
    if (type == LILAC_SIMT_I1 || width * count > d->program->arch->vector_bytes) {
        lilac_sim_refuse(d, i,
                         type == LILAC_SIMT_I1 ? "an element has at least 8 bits"
                                               : "the access is wider than the device's widest");
        return;
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    step->immediate = i->detail;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->count = count;
    access->width = width;
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    for (uint32_t k = 0; k < count; k++) {
        access->values[k] =
            load ? d->values[i->result + k].offset : lilac_sim_offset_of(d, i, others[k]);
        access->others[k] =
            load && rest && others[k] ? lilac_sim_offset_of(d, i, others[k]) : LILAC_SIM_NONE;
    }
}

void lilac_sim_decode_atomic(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool swaps = i->code == LILAC_SIMT_OP_CAS_GLOBAL;
    bool predicated = value_type(d, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *values = i->operands + 1 + predicated;
    uint32_t count = i->operand_count - 1u - predicated;
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    d->program->shared_atomics |= kind == STEP_ATOMIC_SHARED;
    step->immediate = swaps ? LILAC_SIMT_ATOMIC_COUNT : i->detail;
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[1] : 0);
    access->address = lilac_sim_offset_of(d, i, i->operands[0]);
    access->type = (uint8_t)value_type(d, values[0]);
    access->width = lilac_sim_lane_bytes(value_type(d, values[0]));
    access->count = swaps ? 1 : count;
    for (uint32_t k = 0; k < count; k++) {
        access->values[k] = k < i->result_count ? d->values[i->result + k].offset : LILAC_SIM_NONE;
        access->others[k] = lilac_sim_offset_of(d, i, values[k]);
    }
}

enum { MOST_PRINTED = 8 };

void lilac_sim_decode_print(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool predicated = i->operand_count > 0 && value_type(d, i->operands[0]) == LILAC_SIMT_I1;
    uint32_t count = i->operand_count - (uint32_t)predicated;
    if (count > MOST_PRINTED) {
        lilac_sim_refuse(d, i, "it prints more than 8 values at once");
        return;
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    lilac_sim_access *access = lilac_sim_add_access(d, step, i, predicated ? i->operands[0] : 0);
    access->count = count;
    for (uint32_t k = 0; k < count; k++) {
        access->values[k] = lilac_sim_offset_of(d, i, i->operands[predicated + k]);
    }
}
