/* emit: new operations of tile IR, one call for each. */
#include "emit.h"

lilac_tile_op *lilac_emit(const lilac_emitter *e, lilac_tile_opcode code,
                          const lilac_tile_type *type, uint32_t count,
                          lilac_tile_value *const *operands) {
    while (count > 0 && operands[count - 1] == NULL) {
        count--;
    }
    lilac_tile_op *op = lilac_tile_op_create(e->module, code, count, operands, type != NULL, &type,
                                             0, e->place->location);
    op->position = e->place->position;
    lilac_tile_insert_before(e->place, op);
    return op;
}

lilac_tile_value *lilac_emit_unary(const lilac_emitter *e, lilac_tile_opcode code,
                                   const lilac_tile_type *type, lilac_tile_value *a) {
    return lilac_emit(e, code, type, 1, &a)->results;
}

lilac_tile_value *lilac_emit_binary(const lilac_emitter *e, lilac_tile_opcode code,
                                    lilac_tile_value *a, lilac_tile_value *b) {
    lilac_tile_value *operands[2] = {a, b};
    return lilac_emit(e, code, a->type, 2, operands)->results;
}

lilac_tile_value *lilac_emit_compare(const lilac_emitter *e, const char *predicate,
                                     lilac_tile_value *a, lilac_tile_value *b) {
    lilac_tile_value *operands[2] = {a, b};
    const lilac_tile_type *type = lilac_tile_scalar(e->module, LILAC_I1);
    if (lilac_tile_is_tensor(a->type)) {
        type = lilac_emit_shaped(e, type, a->type);
    }
    lilac_tile_op *op = lilac_emit(e, LILAC_TILE_OP_ARITH_CMPI, type, 2, operands);
    lilac_emit_keyword(e, op, "predicate", predicate);
    return op->results;
}

lilac_tile_value *lilac_emit_select(const lilac_emitter *e, lilac_tile_value *condition,
                                    lilac_tile_value *a, lilac_tile_value *b) {
    lilac_tile_value *operands[3] = {condition, a, b};
    return a == b ? a : lilac_emit(e, LILAC_TILE_OP_ARITH_SELECT, a->type, 3, operands)->results;
}

lilac_tile_value *lilac_emit_integer(const lilac_emitter *e, const lilac_tile_type *type,
                                     int64_t value) {
    return lilac_engine_make_constant(e->module, e->place, type, value)->results;
}

lilac_tile_value *lilac_emit_sum(const lilac_emitter *e, lilac_tile_value *a, lilac_tile_value *b) {
    if (a == NULL || b == NULL) {
        return a != NULL ? a : b;
    }
    return lilac_emit_binary(e, LILAC_TILE_OP_ARITH_ADDI, a, b);
}

lilac_tile_value *lilac_emit_i64(const lilac_emitter *e, lilac_tile_value *value) {
    const lilac_tile_type *type = lilac_tile_scalar(e->module, LILAC_I64);
    if (lilac_tile_is_tensor(value->type)) {
        type = lilac_emit_shaped(e, type, value->type);
    }
    return type == value->type ? value
                               : lilac_emit_unary(e, LILAC_TILE_OP_ARITH_EXTSI, type, value);
}

void lilac_emit_attribute(const lilac_emitter *e, lilac_tile_op *op, const char *name,
                          int64_t value) {
    lilac_engine_set_integer(e->module, op, name, value);
}

void lilac_emit_keyword(const lilac_emitter *e, lilac_tile_op *op, const char *name,
                        const char *word) {
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_KEYWORD,
                                            .name = lilac_intern_string(e->module->context, name),
                                            .text = lilac_intern_string(e->module->context, word)};
    lilac_tile_set_attribute(e->module, &op->attributes, &attribute);
}

const lilac_tile_type *lilac_emit_shaped(const lilac_emitter *e, const lilac_tile_type *element,
                                         const lilac_tile_type *shape) {
    return lilac_tile_tensor(e->module, element, shape->rank, shape->shape, NULL);
}
