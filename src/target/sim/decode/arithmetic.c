/* Decoding of pure operations and of exchanges between the lanes of a warp.
 *
 * A pure operation is one step with the lane loop (lanes.h) of its operation and types. A pack and
 * an unpack are one step for each part. */
#include "decoder.h"

#include <string.h>

/* ftz flushes f32 only. Bits 0 to 2 say which operands are f32; bit 3 says whether the result is. */
static uint8_t flushed(const lilac_sim_decoder *d, const lilac_simt_instruction *i) {
    uint8_t mask = value_type(d, i->result) == LILAC_SIMT_F32 ? 8 : 0;
    for (uint32_t k = 0; k < i->operand_count && k < 3; k++) {
        if (value_type(d, i->operands[k]) == LILAC_SIMT_F32) {
            mask |= (uint8_t)(1 << k);
        }
    }
    return mask;
}

void lilac_sim_decode_lanes(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    if (i->operand_count == 0 || i->operand_count > 3 || i->result_count != 1) {
        lilac_sim_refuse(d, i, "a pure operation has 1 to 3 operands and 1 result");
        return;
    }
    bool select = i->code == LILAC_SIMT_OP_SELECT;
    lilac_simt_type from = value_type(d, i->operands[select]), to = value_type(d, i->result);
    uint64_t immediate = 0;
    lane_loop *loop = lilac_sim_integer_loop(i, from, to, &immediate);
    if (!loop) {
        loop = lilac_sim_float_loop(i, from, to, &immediate);
    }
    if (!loop) {
        loop = lilac_sim_convert_loop(i, from, to, &immediate);
    }
    if (!loop || (i->flags & LILAC_SIMT_SATURATE)) {
        lilac_sim_refuse(d, i,
                         loop ? "saturation is not modelled" : "it does not exist on these types");
        return;
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    lilac_sim_set_operands(d, step, i);
    lilac_sim_set_result(d, step, i->result);
    step->loop = loop;
    step->immediate = immediate;
    step->tally = select                          ? TALLY_SELECT
                  : i->code == LILAC_SIMT_OP_PRMT ? TALLY_PERMUTE
                                                  : TALLY_OTHER;
    if ((from == LILAC_SIMT_F16X2 || from == LILAC_SIMT_BF16X2) && loop != lilac_sim_copy &&
        !select) {
        step->n *= 2; /* a pair has two elements */
    }
    if ((i->flags & LILAC_SIMT_FTZ) && flushed(d, i)) {
        step->kind = STEP_FLUSHED;
        step->varies = flushed(d, i);
    }
    if (i->code >= LILAC_SIMT_OP_DIV_S && i->code <= LILAC_SIMT_OP_REM_U) {
        step->kind = STEP_DIVIDE;
    }
}

void lilac_sim_decode_pack(lilac_sim_decoder *d, const lilac_simt_instruction *i, uint8_t kind) {
    bool pack = i->code == LILAC_SIMT_OP_PACK;
    uint32_t parts = pack ? i->operand_count : i->result_count;
    lilac_simt_value whole = pack ? i->result : i->operands[0];
    lilac_simt_value part = pack ? i->operands[0] : i->result;
    uint32_t part_bits = lilac_simt_type_bits(value_type(d, part));
    lane_loop *loop = pack ? lilac_sim_pack_loop(value_type(d, part), value_type(d, whole))
                           : lilac_sim_unpack_loop(value_type(d, whole), value_type(d, part));
    if (!loop || parts * part_bits != lilac_simt_type_bits(value_type(d, whole))) {
        lilac_sim_refuse(d, i, "it does not exist on these types");
        return;
    }
    for (uint32_t k = 0; k < parts; k++) {
        lilac_sim_step *step = lilac_sim_add_step(d, kind, i);
        step->issues = k == 0;
        lilac_sim_set_result(d, step, pack ? whole : part + k);
        step->fill = step->fill && (!pack || k + 1 == parts);
        step->a = step->b = step->c = lilac_sim_offset_of(d, i, pack ? i->operands[k] : whole);
        memset(step->width, (int)value_bytes(d, pack ? i->operands[k] : whole), 3);
        step->loop = loop;
        step->immediate = k * part_bits;
    }
}

void lilac_sim_decode_exchange(lilac_sim_decoder *d, const lilac_simt_instruction *i,
                               uint8_t kind) {
    bool lane_set = kind == STEP_BALLOT || kind == STEP_MATCH;
    if (lane_set && d->program->arch->warp_size > 32) {
        lilac_sim_refuse(d, i, "a ballot of more than 32 lanes does not fit its result");
        return;
    }
    lilac_sim_step *step = lilac_sim_add_issued_step(d, kind, i);
    lilac_sim_set_operands(d, step, i);
    lilac_sim_set_result(d, step, i->result);
    step->immediate = i->detail;
}
