/* narrow_divisions: a step of the pass simplify. A division of 64 bits whose operands fit in 32
 * bits becomes a division of 32 bits.
 *
 *     %t = arith.extsi %program : i32 to i64            %r = arith.remsi %program, %n : i32
 *     %m = arith.extsi %n : i32 to i64             →    %p = arith.extsi %r : i32 to i64
 *     %p = arith.remsi %t, %m : i64
 *
 * On a GPU, a division of 64 bits is a call of about seventy instructions. Quotients and
 * remainders of signed 32-bit numbers fit in 32 bits, except the smallest number divided by -1. So
 * the dividend must not be negative, or the divisor must not be -1 (ranges.c). A division by zero
 * remains undefined.
 */
#include "internal.h"

static uint32_t bits_of(const lilac_tile_value *value) {
    return lilac_tile_element_bits(value->type);
}

/* The extension of a narrowed operation's result; NONE: the operation is not narrowed. */
static const uint16_t extension_of[LILAC_TILE_OP_COUNT] = {
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    [LILAC_TILE_OP_##code] = LILAC_TILE_OP_##narrow,
#include <lilac/operations.def>
};

const lilac_tile_type *lilac_engine_narrowed(lilac_tile_module *module,
                                             const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_scalar(module, LILAC_I32);
    return lilac_tile_is_tensor(type)
               ? lilac_tile_tensor(module, element, type->rank, type->shape, type->layout)
               : element;
}

/* Do all elements fit in 32 bits, as signed or as unsigned numbers? */
static bool fits(lilac_range range, bool is_unsigned) {
    return is_unsigned ? range.low >= 0 && range.high <= UINT32_MAX
                       : range.low >= INT32_MIN && range.high <= INT32_MAX;
}

/* A constant of 32 bits before `user`. */
static lilac_tile_op *narrow_constant(lilac_tile_module *module, lilac_tile_op *user,
                                      const lilac_tile_value *value) {
    lilac_tile_op *constant = lilac_tile_clone(module, value->op);
    lilac_tile_attribute given = *lilac_tile_find(&constant->attributes, "value");
    given.type = lilac_engine_narrowed(module, value->type);
    lilac_tile_set_attribute(module, &constant->attributes, &given);
    constant->results[0].type = given.type;
    lilac_tile_insert_before(user, constant);
    return constant;
}

/* The low 32 bits of an operand: what it is an extension of, or a new constant or truncation, which is
 * noted in `made`. */
static lilac_tile_value *narrow_operand(lilac_tile_module *module, lilac_tile_op *user,
                                        uint32_t index,
                                        lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS],
                                        uint32_t *count) {
    lilac_tile_value *value = user->operands[index].value;
    const lilac_tile_op *op = value->op;
    int64_t number;
    if (op != NULL &&
        (op->code == LILAC_TILE_OP_ARITH_EXTSI || op->code == LILAC_TILE_OP_ARITH_EXTUI) &&
        bits_of(op->operands[0].value) == 32) {
        return op->operands[0].value;
    }
    lilac_tile_op *narrow;
    if (lilac_tile_constant(value, &number)) {
        narrow = narrow_constant(module, user, value);
    } else {
        const lilac_tile_type *type = lilac_engine_narrowed(module, value->type);
        narrow = lilac_tile_op_create(module, LILAC_TILE_OP_ARITH_TRUNCI, 1, &value, 1, &type, 0,
                                      user->location);
        narrow->position = user->position;
        lilac_tile_insert_before(user, narrow);
    }
    made[(*count)++] = narrow;
    return &narrow->results[0];
}

bool lilac_engine_narrow(lilac_tile_module *module, lilac_tile_op *op, const lilac_range *ranges,
                         lilac_tile_op *made[LILAC_MOST_NEW_OPERATIONS], uint32_t *count) {
    lilac_tile_opcode extension = (lilac_tile_opcode)extension_of[op->code];
    bool is_unsigned = extension == LILAC_TILE_OP_ARITH_EXTUI;
    if (extension == LILAC_TILE_OP_NONE || bits_of(&op->results[0]) != 64) {
        return false;
    }
    const lilac_range dividend = ranges[op->operands[0].value->id];
    const lilac_range divisor = ranges[op->operands[1].value->id];
    if (!fits(dividend, is_unsigned) || !fits(divisor, is_unsigned) ||
        (!is_unsigned && dividend.low < 0 && divisor.low <= -1 && divisor.high >= -1)) {
        return false;
    }
    *count = 0;
    lilac_tile_value *values[2];
    for (uint32_t i = 0; i < 2; i++) {
        values[i] = narrow_operand(module, op, i, made, count);
    }
    if (dividend.high <= INT32_MAX) { /* so is the result; sign extension is the usual form */
        extension = LILAC_TILE_OP_ARITH_EXTSI;
    }
    const lilac_tile_type *type = lilac_engine_narrowed(module, op->results[0].type);
    lilac_tile_op *narrow =
        lilac_tile_op_create(module, op->code, 2, values, 1, &type, 0, op->location);
    lilac_tile_value *quotient = &narrow->results[0];
    lilac_tile_op *wide = lilac_tile_op_create(module, extension, 1, &quotient, 1,
                                               &op->results[0].type, 0, op->location);
    narrow->position = wide->position = op->position;
    wide->results[0].name = op->results[0].name;
    lilac_tile_insert_before(op, narrow);
    lilac_tile_insert_before(op, wide);
    made[(*count)++] = narrow;
    made[(*count)++] = wide;
    lilac_tile_replace_uses(&op->results[0], &wide->results[0]);
    lilac_tile_remove(op);
    return true;
}
