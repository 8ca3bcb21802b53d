/* fold: the value of an integer operation whose operands are constants.
 *
 * Operands come and results go as signed numbers; between, arithmetic is on the low bits of the
 * operation's width, so that wrapping is that of the machine:
 *
 *     i8   addi 127, 1  →  0x7f + 0x01 = 0x80  →  -128
 *
 * What the program leaves undefined (division by zero, shifts past the width) is not folded.
 */
#include "internal.h"

#include <string.h>

static lilac_scalar scalar_of(const lilac_tile_value *value) {
    const lilac_tile_type *type = lilac_tile_element(value->type);
    return type->kind == LILAC_TILE_SCALAR ? type->scalar : LILAC_F32;
}

static bool is_integer(const lilac_tile_value *value) {
    const lilac_tile_type *type = lilac_tile_element(value->type);
    return type->kind == LILAC_TILE_SCALAR && !lilac_scalar_is_float(type->scalar) &&
           lilac_scalar_bits(type->scalar) <= 64;
}

/* "slt", "uge" … of two numbers, given signed and as unsigned bits. */
static bool compare(lilac_name predicate, int64_t a, int64_t b, uint64_t ua, uint64_t ub,
                    int64_t *result) {
    if (predicate == NULL)
        return false;
    if (strcmp(predicate, "eq") == 0 || strcmp(predicate, "ne") == 0) {
        *result = (a == b) == (predicate[0] == 'e');
        return true;
    }
    bool is_unsigned = predicate[0] == 'u';
    bool less = is_unsigned ? ua < ub : a < b, equal = a == b;
    const char *relation = predicate + 1;
    if (strcmp(relation, "lt") == 0)
        *result = less;
    else if (strcmp(relation, "le") == 0)
        *result = less || equal;
    else if (strcmp(relation, "gt") == 0)
        *result = !less && !equal;
    else if (strcmp(relation, "ge") == 0)
        *result = !less;
    else
        return false;
    return true;
}

/* a / b rounded down (towards minus infinity) or up. */
static int64_t divide_rounded(int64_t a, int64_t b, bool up) {
    int64_t quotient = a / b, rest = a % b;
    bool exact = rest == 0, negative = (a < 0) != (b < 0);
    if (exact || negative == up)
        return quotient;
    return up ? quotient + 1 : quotient - 1;
}

static bool divide(const lilac_tile_op *op, int64_t a, int64_t b, uint64_t ua, uint64_t ub,
                   uint64_t *bits) {
    if (b == 0 || (a == INT64_MIN && b == -1))
        return false;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_DIVSI:
        *bits = (uint64_t)(a / b);
        return true;
    case LILAC_TILE_OP_ARITH_REMSI:
        *bits = (uint64_t)(a % b);
        return true;
    case LILAC_TILE_OP_ARITH_FLOORDIVSI:
        *bits = (uint64_t)divide_rounded(a, b, false);
        return true;
    case LILAC_TILE_OP_ARITH_CEILDIVSI:
        *bits = (uint64_t)divide_rounded(a, b, true);
        return true;
    case LILAC_TILE_OP_ARITH_DIVUI:
        *bits = ua / ub;
        return true;
    case LILAC_TILE_OP_ARITH_REMUI:
        *bits = ua % ub;
        return true;
    case LILAC_TILE_OP_ARITH_CEILDIVUI:
        *bits = ua / ub + (ua % ub != 0);
        return true;
    default:
        return false;
    }
}

static bool binary(const lilac_tile_op *op, lilac_scalar scalar, int64_t a, int64_t b,
                   int64_t *result) {
    uint64_t ua = lilac_scalar_mask(scalar, (uint64_t)a),
             ub = lilac_scalar_mask(scalar, (uint64_t)b);
    uint64_t bits;
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_ADDI:
        bits = ua + ub;
        break;
    case LILAC_TILE_OP_ARITH_SUBI:
        bits = ua - ub;
        break;
    case LILAC_TILE_OP_ARITH_MULI:
        bits = ua * ub;
        break;
    case LILAC_TILE_OP_ARITH_ANDI:
        bits = ua & ub;
        break;
    case LILAC_TILE_OP_ARITH_ORI:
        bits = ua | ub;
        break;
    case LILAC_TILE_OP_ARITH_XORI:
        bits = ua ^ ub;
        break;
    case LILAC_TILE_OP_ARITH_MINSI:
        bits = a < b ? ua : ub;
        break;
    case LILAC_TILE_OP_ARITH_MAXSI:
        bits = a > b ? ua : ub;
        break;
    case LILAC_TILE_OP_ARITH_MINUI:
        bits = ua < ub ? ua : ub;
        break;
    case LILAC_TILE_OP_ARITH_MAXUI:
        bits = ua > ub ? ua : ub;
        break;
    case LILAC_TILE_OP_ARITH_SHLI:
    case LILAC_TILE_OP_ARITH_SHRSI:
    case LILAC_TILE_OP_ARITH_SHRUI:
        if (ub >= lilac_scalar_bits(scalar))
            return false;
        if (op->code == LILAC_TILE_OP_ARITH_SHLI)
            bits = ua << ub;
        else if (op->code == LILAC_TILE_OP_ARITH_SHRUI)
            bits = ua >> ub;
        else /* rounds down: an arithmetic shift without relying on the host's */
            bits = a < 0 ? ~((~(uint64_t)a) >> ub) : (uint64_t)a >> ub;
        break;
    case LILAC_TILE_OP_ARITH_CMPI:
        return compare(lilac_tile_find_text(&op->attributes, "predicate"), a, b, ua, ub, result);
    default:
        if (!divide(op, a, b, ua, ub, &bits))
            return false;
        break;
    }
    *result = lilac_scalar_signed(scalar, bits);
    return true;
}

bool lilac_engine_fold(const lilac_tile_op *op, const int64_t *operands, int64_t *result) {
    if (op->result_count != 1 || op->operand_count == 0 || !is_integer(&op->results[0]) ||
        !is_integer(op->operands[0].value))
        return false;
    lilac_scalar from = scalar_of(op->operands[0].value), to = scalar_of(&op->results[0]);
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_EXTSI:
    case LILAC_TILE_OP_ARITH_TRUNCI:
    case LILAC_TILE_OP_ARITH_INDEX_CAST:
        *result = lilac_scalar_signed(to, (uint64_t)operands[0]);
        return true;
    case LILAC_TILE_OP_ARITH_EXTUI:
    case LILAC_TILE_OP_ARITH_INDEX_CASTUI:
        *result = lilac_scalar_signed(to, lilac_scalar_mask(from, (uint64_t)operands[0]));
        return true;
    case LILAC_TILE_OP_ARITH_SELECT:
        *result = operands[0] != 0 ? operands[1] : operands[2];
        return true;
    default:
        if (op->operand_count != 2)
            return false;
        /* i1 is compared as 0 and -1 when signed; a comparison's result is stored as bits */
        if (!binary(op, from, operands[0], operands[1], result))
            return false;
        if (op->code == LILAC_TILE_OP_ARITH_CMPI)
            *result = lilac_scalar_signed(to, (uint64_t)*result);
        return true;
    }
}
