/* Tensor maps that a kernel makes, in PTX (PTX ISA 8.3, sm_90a).
 *
 *     tensor_map.set [%s], %p, (%a, %n, %m, %r)   @%p st.shared.v2.b64 [%s + 0 …], {0, 0};
 *                                                 @%p tensormap.replace.tile.global_address.… [%s], %a;
 *                                                 … rank, box_dim, global_dim, global_stride,
 *                                                   element_stride, elemtype, interleave_layout,
 *                                                   swizzle_mode, fill_mode
 *     tensor_map.publish [%s], %w, (%g)           @%w tensormap.cp_fenceproxy.… [%g], [%s], 128;
 *     tensor_map.acquire %w, %g                   @%w fence.proxy.tensormap::generic.acquire.gpu [%g], 128;
 *     %g = global_scratch                         the parameter + the program's number * bytes
 *
 * Strides are in bytes for assemblers of PTX ISA 8.6 on; older ones had them in units of 16 bytes. */
#include "emit.h"

#include <lilac/tensor_map.h>

static lilac_ptx_piece bracketed(lilac_ptx_emitter *e, lilac_ptx_piece place) {
    return lilac_ptx_concatenate(e, 3, (lilac_ptx_piece[]){PIECE("["), place, PIECE("]")});
}

/* The predicate; 0: none. */
static lilac_simt_value predicate_of(const lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const uint32_t at = i->code != LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE; /* behind the shared address */
    return type_of(e, i->operands[at]) == LILAC_SIMT_I1 ? i->operands[at] : 0;
}

/* Writes the predicate, in front of each instruction. */
static void guard(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_value predicate = predicate_of(e, i);
    if (predicate != 0 && !e->places[predicate].constant) {
        lilac_ptx_guard(e, lilac_ptx_register(e, predicate), false);
    }
}

/* Is the predicate the constant false? */
static bool is_never(const lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_value predicate = predicate_of(e, i);
    return predicate != 0 && e->places[predicate].constant && e->places[predicate].bits == 0;
}

/* tensormap.replace.tile.FIELD.shared::cta.b1024.b32 [map], (ordinal, )value; */
static void replace(lilac_ptx_emitter *e, const lilac_simt_instruction *i, const char *field,
                    bool wide, lilac_ptx_piece map, int ordinal, lilac_ptx_piece value) {
    lilac_ptx_piece operands[3] = {map};
    uint32_t n = 1;
    if (ordinal >= 0) {
        operands[n++] = lilac_ptx_decimal(e, ordinal);
    }
    operands[n++] = value;
    guard(e, i);
    lilac_ptx_begin(e, "tensormap.replace.tile.");
    put_string(&e->code, field);
    put_string(&e->code, wide ? ".shared::cta.b1024.b64" : ".shared::cta.b1024.b32");
    lilac_ptx_finish(e, n, operands);
}

static void replace_number(lilac_ptx_emitter *e, const lilac_simt_instruction *i, const char *field,
                           lilac_ptx_piece map, int ordinal, uint32_t number) {
    replace(e, i, field, false, map, ordinal, lilac_ptx_decimal(e, number));
}

/* The low half of an i64. */
static lilac_ptx_piece low_half(lilac_ptx_emitter *e, lilac_simt_value value) {
    lilac_ptx_piece low = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    if (e->places[value].constant) {
        lilac_ptx_line2(e, "mov.b32", low,
                        lilac_ptx_decimal(e, (int64_t)(uint32_t)e->places[value].bits));
    } else {
        lilac_ptx_line2(e, "cvt.u32.u64", low, lilac_ptx_register(e, value));
    }
    return low;
}

/* As the device numbers element types. */
static uint32_t element_code(uint8_t element) {
    return element == LILAC_TENSOR_F64 ? 9 : element == LILAC_TENSOR_BF16 ? 10 : element;
}

static lilac_ptx_piece wide_register(lilac_ptx_emitter *e, lilac_simt_value value) {
    if (!e->places[value].constant) {
        return lilac_ptx_register(e, value);
    }
    lilac_ptx_piece copy = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    lilac_ptx_line2(e, "mov.b64", copy, lilac_ptx_operand(e, value));
    return copy;
}

static void set(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_simt_tensor_map_payload *map = &i->payload.tensor_map;
    const bool predicated = type_of(e, i->operands[1]) == LILAC_SIMT_I1;
    const lilac_simt_value *rest = i->operands + 1 + predicated;
    const uint32_t rank = (i->operand_count - 1u - predicated) / 2;
    const lilac_ptx_piece to = bracketed(e, lilac_ptx_address(e, i));
    for (int64_t at = 0; at < LILAC_TENSOR_MAP_BYTES; at += 16) {
        const lilac_ptx_piece place =
            bracketed(e, lilac_ptx_offset(e, i->operands[0], i->immediate + at));
        guard(e, i);
        lilac_ptx_line2(e, "st.shared.v2.b64", place, PIECE("{0, 0}"));
    }
    replace(e, i, "global_address", true, to, -1, wide_register(e, rest[0]));
    replace_number(e, i, "rank", to, -1, rank - 1);
    for (uint32_t k = 0; k < rank; k++) {
        replace_number(e, i, "box_dim", to, (int)k, map->box[k]);
        replace(e, i, "global_dim", false, to, (int)k, low_half(e, rest[1 + k]));
        replace_number(e, i, "element_stride", to, (int)k, 1);
    }
    for (uint32_t k = 0; k + 1 < rank; k++) {
        replace(e, i, "global_stride", true, to, (int)k, wide_register(e, rest[1 + rank + k]));
    }
    replace_number(e, i, "elemtype", to, -1, element_code(map->element));
    replace_number(e, i, "interleave_layout", to, -1, 0);
    replace_number(e, i, "swizzle_mode", to, -1, map->swizzle);
    replace_number(e, i, "fill_mode", to, -1, map->fill);
}

static void publish(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    lilac_ptx_piece operands[3] = {
        bracketed(e, lilac_ptx_offset(e, i->operands[i->operand_count - 1u], 0)),
        bracketed(e, lilac_ptx_address(e, i)), lilac_ptx_decimal(e, LILAC_TENSOR_MAP_BYTES)};
    guard(e, i);
    lilac_ptx_begin(e, "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu."
                       "sync.aligned");
    lilac_ptx_finish(e, 3, operands);
}

/* Behind the fence assemblers lack one for the copies that follow; a wait for an empty group has it, as in
 * Triton's code. */
static void acquire(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_ptx_piece place =
        bracketed(e, lilac_ptx_register(e, i->operands[i->operand_count - 1u]));
    guard(e, i);
    lilac_ptx_line2(e, "fence.proxy.tensormap::generic.acquire.gpu", place,
                    lilac_ptx_decimal(e, LILAC_TENSOR_MAP_BYTES));
    guard(e, i);
    lilac_ptx_begin(e, "cp.async.bulk.commit_group;\n");
    guard(e, i);
    lilac_ptx_line1(e, "cp.async.bulk.wait_group.read", lilac_ptx_decimal(e, 0));
}

void lilac_ptx_made_map(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    if (!lilac_arch_has(e->arch, LILAC_HAS_TENSOR_MAPS)) {
        lilac_ptx_refuse(e, i, "%s has no %s", e->arch->name,
                         lilac_simt_op_info_get((lilac_simt_opcode)i->code)->name);
        return;
    }
    lilac_ptx_need(e, LILAC_PTX_TENSOR_MAPS);
    if (is_never(e, i)) {
        return;
    }
    if (i->code == LILAC_SIMT_OP_TENSOR_MAP_ACQUIRE) {
        acquire(e, i);
    } else {
        (i->code == LILAC_SIMT_OP_TENSOR_MAP_SET ? set : publish)(e, i);
    }
}

/* The number of the program: (z * height + y) * width + x. */
static lilac_ptx_piece program_number(lilac_ptx_emitter *e) {
    const bool cluster = e->kernel->num_ctas > 1;
    const lilac_ptx_piece number = lilac_ptx_temporary(e, LILAC_PTX_BITS32),
                          size = lilac_ptx_temporary(e, LILAC_PTX_BITS32),
                          place = lilac_ptx_temporary(e, LILAC_PTX_BITS32);
    lilac_ptx_line2(e, "mov.u32", number, cluster ? PIECE("%clusterid.z") : PIECE("%ctaid.z"));
    for (uint32_t k = 0; k < 2; k++) {
        const bool y = k == 0;
        const lilac_ptx_piece count = cluster
                                          ? (y ? PIECE("%nclusterid.y") : PIECE("%nclusterid.x"))
                                          : (y ? PIECE("%nctaid.y") : PIECE("%nctaid.x"));
        const lilac_ptx_piece at = cluster ? (y ? PIECE("%clusterid.y") : PIECE("%clusterid.x"))
                                           : (y ? PIECE("%ctaid.y") : PIECE("%ctaid.x"));
        lilac_ptx_line2(e, "mov.u32", size, count);
        lilac_ptx_line2(e, "mov.u32", place, at);
        lilac_ptx_line4(e, "mad.lo.u32", number, number, size, place);
    }
    return number;
}

void lilac_ptx_global_scratch(lilac_ptx_emitter *e, const lilac_simt_instruction *i) {
    const lilac_ptx_piece base = lilac_ptx_temporary(e, LILAC_PTX_BITS64);
    const lilac_ptx_piece d = lilac_ptx_define(e, i->result);
    const lilac_ptx_piece number = program_number(e);
    lilac_ptx_line2(e, "ld.param.b64", base, PIECE("[global_scratch]"));
    lilac_ptx_line4(e, "mad.wide.u32", d, number, lilac_ptx_decimal(e, e->kernel->scratch_bytes),
                    base);
}
