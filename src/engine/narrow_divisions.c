/* narrow_divisions: a step of the pass simplify. A division of 64 bits whose operands fit in 32
 * bits becomes a division of 32 bits.
 *
 *     %t = arith.extsi %program : i32 to i64            %r = arith.remsi %program, %n : i32
 *     %m = arith.extsi %n : i32 to i64             →    %p = arith.extsi %r : i32 to i64
 *     %p = arith.remsi %t, %m : i64
 *
 * On a GPU, a division of 64 bits is a call of about seventy instructions. Quotients and
 * remainders of signed 32-bit numbers fit in 32 bits, except the smallest number divided by -1. So
 * one of these must hold: the dividend is not negative; the divisor is not negative; the divisor
 * is a constant other than -1. A division by zero remains undefined.
 */
#include "internal.h"

#define LOOK_BACK 6

static uint32_t bits_of(const lilac_tile_value *value) {
    return lilac_tile_element_bits(value->type);
}

/* Is every element at least 0, as a signed number? Examines the operations that compute the value,
 * to a depth of `depth`. */
static bool is_natural(const lilac_tile_value *value, uint32_t depth);

/* The column `sign` of operations.def: whether the result of an operation is not negative. */
typedef bool sign_function(const lilac_tile_op *op, uint32_t depth);

static bool sign_always(const lilac_tile_op *op, uint32_t depth) {
    (void)op, (void)depth;
    return true;
}

static bool sign_range(const lilac_tile_op *op, uint32_t depth) {
    (void)depth;
    return lilac_tile_find_integer(&op->attributes, "start", -1) >= 0;
}

static bool sign_extended(const lilac_tile_op *op, uint32_t depth) {
    (void)depth;
    return bits_of(op->operands[0].value) < bits_of(&op->results[0]);
}

static bool sign_first(const lilac_tile_op *op, uint32_t depth) {
    return is_natural(op->operands[0].value, depth);
}

static bool sign_both(const lilac_tile_op *op, uint32_t depth) {
    return is_natural(op->operands[0].value, depth) && is_natural(op->operands[1].value, depth);
}

static bool sign_either(const lilac_tile_op *op, uint32_t depth) {
    return is_natural(op->operands[0].value, depth) || is_natural(op->operands[1].value, depth);
}

/* NULL: not known. */
static sign_function *const sign_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, sign, fold, lower, reference)                \
    [LILAC_TILE_OP_##code] = sign,
#include <lilac/operations.def>
};

static bool is_natural(const lilac_tile_value *value, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    int64_t number;
    if (op == NULL || depth == 0) {
        return false;
    }
    if (lilac_tile_constant(value, &number)) {
        return number >= 0;
    }
    return sign_of[op->code] != NULL && sign_of[op->code](op, depth - 1);
}

/* The extension of a narrowed operation's result; NONE: the operation is not narrowed. */
static const uint16_t extension_of[LILAC_TILE_OP_COUNT] = {
#define INTEGER(code, neutral, narrow, compute, instruction, bits, meaning)                        \
    [LILAC_TILE_OP_##code] = LILAC_TILE_OP_##narrow,
#include <lilac/operations.def>
};

static const lilac_tile_type *narrowed(lilac_tile_module *module, const lilac_tile_type *type) {
    const lilac_tile_type *element = lilac_tile_scalar(module, LILAC_I32);
    return lilac_tile_is_tensor(type)
               ? lilac_tile_tensor(module, element, type->rank, type->shape, type->layout)
               : element;
}

/* The 32-bit value of an operand that is an extension of 32 bits or a constant that fits; NULL:
 * neither. `make`: a new constant is inserted; otherwise the constant itself is returned. */
static lilac_tile_value *narrow_operand(lilac_tile_module *module, lilac_tile_op *user,
                                        uint32_t index, lilac_tile_opcode extension, bool make) {
    lilac_tile_value *value = user->operands[index].value;
    bool is_unsigned = extension == LILAC_TILE_OP_ARITH_EXTUI;
    int64_t number;
    if (value->op == NULL) {
        return NULL;
    }
    if (value->op->code == extension && bits_of(value->op->operands[0].value) == 32) {
        return value->op->operands[0].value;
    }
    if (!lilac_tile_constant(value, &number) || number < (is_unsigned ? 0 : INT32_MIN) ||
        number > INT32_MAX) {
        return NULL;
    }
    if (!make) {
        return value;
    }
    lilac_tile_op *constant = lilac_tile_clone(module, value->op);
    lilac_tile_attribute given = *lilac_tile_find(&constant->attributes, "value");
    const lilac_tile_type *type = narrowed(module, value->type);
    given.type = type;
    lilac_tile_set_attribute(module, &constant->attributes, &given);
    constant->results[0].type = type;
    lilac_tile_insert_before(user, constant);
    return &constant->results[0];
}

bool lilac_engine_narrow(lilac_tile_module *module, lilac_tile_op *op, lilac_tile_op *made[4],
                         uint32_t *count) {
    lilac_tile_opcode extension = (lilac_tile_opcode)extension_of[op->code];
    bool is_unsigned = extension == LILAC_TILE_OP_ARITH_EXTUI;
    lilac_tile_value *values[2];
    int64_t divisor;
    if (extension == LILAC_TILE_OP_NONE || bits_of(&op->results[0]) != 64) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (narrow_operand(module, op, i, extension, false) == NULL) {
            return false;
        }
    }
    if (!is_unsigned && !is_natural(op->operands[0].value, LOOK_BACK)) {
        bool constant = lilac_tile_constant(op->operands[1].value, &divisor);
        if (constant ? divisor == -1 : !is_natural(op->operands[1].value, LOOK_BACK)) {
            return false;
        }
    }
    *count = 0;
    for (uint32_t i = 0; i < 2; i++) {
        bool constant = lilac_tile_constant(op->operands[i].value, &divisor);
        values[i] = narrow_operand(module, op, i, extension, true);
        if (constant) {
            made[(*count)++] = values[i]->op;
        }
    }
    const lilac_tile_type *type = narrowed(module, op->results[0].type);
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
