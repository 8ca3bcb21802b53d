/* Tensor maps that the kernel makes: a part of the pass copy_boxes.
 *
 *     %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, 1]
 *   →
 *     %g = ttg.global_scratch_alloc {alignment = 128, nbytes = 128}
 *     ttng.tensormap_create %g, %p, [box], [%n, %m], [%s · size], [1, 1] {elem_type, fill_mode, …}
 *     ttng.tensormap_fenceproxy_acquire %g
 *     %d = ttng.reinterpret_tensor_descriptor %g
 *
 * The lists begin with the contiguous dimension; the last stride, which is 1, is not among them. */
#include "descriptors/make_maps.h"
#include "descriptors/boxes.h"
#include "descriptors/descriptors.h"

enum { MAP_BYTES = 128 /* also its alignment */ };

uint32_t lilac_engine_box_element(const lilac_tile_type *block) {
    static const uint8_t types[LILAC_SCALAR_COUNT] = {
        [LILAC_I8] = 0,  [LILAC_I16] = 1, [LILAC_I32] = 2, [LILAC_I64] = 4,
        [LILAC_F16] = 6, [LILAC_F32] = 7, [LILAC_F64] = 9, [LILAC_BF16] = 10};
    const lilac_tile_type *element = lilac_tile_element(block);
    const bool is_signed =
        element->sign == 's' && (element->scalar == LILAC_I32 || element->scalar == LILAC_I64);
    return types[element->scalar] + is_signed; /* 8-bit floats: bytes */
}

static void set_lists(const lilac_emitter *e, lilac_tile_op *op, uint32_t rank) {
    const int64_t sizes[6] = {1, 1, rank, rank, rank - 1, rank};
    int64_t *kept = lilac_arena_array(e->module->arena, int64_t, 6);
    for (uint32_t i = 0; i < 6; i++) {
        kept[i] = sizes[i];
    }
    const lilac_tile_attribute attribute = {
        .kind = LILAC_TILE_ATTR_INTEGERS,
        .name = lilac_intern_string(e->module->context, "operandSegmentSizes"),
        .type = lilac_tile_scalar(e->module, LILAC_I32),
        .count = 6,
        .integers = kept};
    lilac_tile_set_attribute(e->module, &op->attributes, &attribute);
}

/* As tensormap.replace.swizzle_mode numbers them. */
static int64_t swizzle_mode(uint32_t bytes) {
    return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

static lilac_tile_value *i32(const lilac_emitter *e, int64_t value) {
    return lilac_emit_integer(e, lilac_tile_scalar(e->module, LILAC_I32), value);
}

/* The operands of ttng.tensormap_create behind the map's address; returns their number. */
static uint32_t put_operands(const lilac_emitter *e, const lilac_tile_op *maker,
                             const lilac_box *box, lilac_tile_value **operands) {
    const uint32_t rank = box->rank;
    const int64_t bytes = lilac_tile_element_bits(maker->results[0].type->element) / 8;
    uint32_t n = 0;
    operands[n++] = maker->operands[0].value;
    for (uint32_t d = rank; d-- > 0;) {
        operands[n++] = i32(e, box->sizes[d]);
    }
    for (uint32_t d = rank; d-- > 0;) {
        operands[n++] = maker->operands[1 + d].value;
    }
    for (uint32_t d = rank - 1; d-- > 0;) {
        lilac_tile_value *stride = lilac_emit_i64(e, maker->operands[1 + rank + d].value);
        operands[n++] = lilac_emit_binary(e, LILAC_TILE_OP_ARITH_MULI, stride,
                                          lilac_emit_integer(e, stride->type, bytes));
    }
    for (uint32_t d = 0; d < rank; d++) {
        operands[n++] = i32(e, 1);
    }
    return n;
}

void lilac_make_map(lilac_tile_module *module, lilac_tile_op *maker) {
    enum { MOST = 2 + 4 * DESCRIPTOR_MOST_RANK };
    const lilac_emitter e = {module, maker};
    const lilac_tile_type *block = maker->results[0].type->element;
    const lilac_tile_type *address =
        lilac_tile_pointer(module, lilac_tile_scalar(module, LILAC_I8), 1);
    lilac_tile_value *operands[MOST];
    lilac_box box;
    if (!lilac_engine_box(&box, block)) {
        return; /* lilac_descriptor_is_mapped has it */
    }
    lilac_tile_op *scratch =
        lilac_emit(&e, LILAC_TILE_OP_TTG_GLOBAL_SCRATCH_ALLOC, address, 0, NULL);
    lilac_emit_attribute(&e, scratch, "alignment", MAP_BYTES);
    lilac_emit_attribute(&e, scratch, "nbytes", MAP_BYTES);
    operands[0] = scratch->results;
    const uint32_t count = 1 + put_operands(&e, maker, &box, operands + 1);
    lilac_tile_op *create =
        lilac_emit(&e, LILAC_TILE_OP_TTNG_TENSORMAP_CREATE, NULL, count, operands);
    set_lists(&e, create, box.rank);
    lilac_emit_attribute(&e, create, "elem_type", lilac_engine_box_element(block));
    lilac_emit_attribute(&e, create, "fill_mode",
                         lilac_tile_find_integer(&maker->attributes, "padding", 1) == 2);
    lilac_emit_attribute(&e, create, "interleave_layout", 0);
    lilac_emit_attribute(&e, create, "swizzle_mode", swizzle_mode(box.swizzle_bytes));
    (void)lilac_emit(&e, LILAC_TILE_OP_TTNG_TENSORMAP_FENCEPROXY_ACQUIRE, NULL, 1,
                     &scratch->results);
    lilac_tile_value *map = lilac_emit_unary(&e, LILAC_TILE_OP_TTNG_REINTERPRET_TENSOR_DESCRIPTOR,
                                             maker->results[0].type, scratch->results);
    map->name = maker->results[0].name;
    lilac_tile_replace_uses(&maker->results[0], map);
    lilac_tile_remove(maker);
}
