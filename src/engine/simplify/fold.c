/* fold: the value of an integer operation whose operands are constants.
 *
 * The column `fold` of operations.def names the function of each operation. Operands and results
 * are signed numbers; the functions compute the low bits of the result, so that arithmetic wraps
 * as on the machine:
 *
 *     i8   addi 127, 1  →  0x7f + 0x01 = 0x80  →  -128
 *
 * What the program leaves undefined (division by zero, shifts past the width) is not folded. */
#include "internal.h"

#include <string.h>

/* The operands of one operation. */
typedef struct folding {
    const lilac_tile_op *op;
    lilac_scalar scalar; /* of operand 0 */
    int64_t a, b, c;     /* operands 0 to 2, signed; 0: missing */
    uint64_t ua, ub;     /* the bits of operands 0 and 1 in the width of `scalar` */
} folding;

/* Computes the bits of the result. False: they are undefined. */
typedef bool fold_function(const folding *f, uint64_t *bits);

static lilac_scalar scalar_of(const lilac_tile_value *value) {
    const lilac_tile_type *type = lilac_tile_element(value->type);
    return type->kind == LILAC_TILE_SCALAR ? type->scalar : LILAC_F32;
}

static bool is_integer(const lilac_tile_value *value) {
    const lilac_tile_type *type = lilac_tile_element(value->type);
    return type->kind == LILAC_TILE_SCALAR && !lilac_scalar_is_float(type->scalar) &&
           lilac_scalar_bits(type->scalar) <= 64;
}

/* ---- sums, products, bits --------------------------------------------------------------- */

static bool fold_add(const folding *f, uint64_t *bits) {
    *bits = f->ua + f->ub;
    return true;
}

static bool fold_sub(const folding *f, uint64_t *bits) {
    *bits = f->ua - f->ub;
    return true;
}

static bool fold_mul(const folding *f, uint64_t *bits) {
    *bits = f->ua * f->ub;
    return true;
}

static bool fold_and(const folding *f, uint64_t *bits) {
    *bits = f->ua & f->ub;
    return true;
}

static bool fold_or(const folding *f, uint64_t *bits) {
    *bits = f->ua | f->ub;
    return true;
}

static bool fold_xor(const folding *f, uint64_t *bits) {
    *bits = f->ua ^ f->ub;
    return true;
}

static bool fold_shl(const folding *f, uint64_t *bits) {
    *bits = f->ub < 64 ? f->ua << f->ub : 0;
    return f->ub < lilac_scalar_bits(f->scalar);
}

static bool fold_shr_u(const folding *f, uint64_t *bits) {
    *bits = f->ub < 64 ? f->ua >> f->ub : 0;
    return f->ub < lilac_scalar_bits(f->scalar);
}

/* Rounds down: an arithmetic shift that does not rely on the host's. */
static bool fold_shr_s(const folding *f, uint64_t *bits) {
    if (f->ub >= lilac_scalar_bits(f->scalar)) {
        return false;
    }
    *bits = f->a < 0 ? ~((~(uint64_t)f->a) >> f->ub) : (uint64_t)f->a >> f->ub;
    return true;
}

/* ---- choices and comparisons ------------------------------------------------------------ */

static bool fold_min_s(const folding *f, uint64_t *bits) {
    *bits = f->a < f->b ? f->ua : f->ub;
    return true;
}

static bool fold_max_s(const folding *f, uint64_t *bits) {
    *bits = f->a > f->b ? f->ua : f->ub;
    return true;
}

static bool fold_min_u(const folding *f, uint64_t *bits) {
    *bits = f->ua < f->ub ? f->ua : f->ub;
    return true;
}

static bool fold_max_u(const folding *f, uint64_t *bits) {
    *bits = f->ua > f->ub ? f->ua : f->ub;
    return true;
}

static bool fold_select(const folding *f, uint64_t *bits) {
    *bits = (uint64_t)(f->a != 0 ? f->b : f->c);
    return true;
}

/* i1 is compared as 0 and -1 where the predicate is signed. */
static bool fold_compare(const folding *f, uint64_t *bits) {
    lilac_name predicate = lilac_tile_find_text(&f->op->attributes, "predicate");
    if (predicate == NULL) {
        return false;
    }
    if (strcmp(predicate, "eq") == 0 || strcmp(predicate, "ne") == 0) {
        *bits = (f->a == f->b) == (predicate[0] == 'e');
        return true;
    }
    bool less = predicate[0] == 'u' ? f->ua < f->ub : f->a < f->b, equal = f->a == f->b;
    const char *relation = predicate + 1;
    if (strcmp(relation, "lt") == 0) {
        *bits = less;
    } else if (strcmp(relation, "le") == 0) {
        *bits = less || equal;
    } else if (strcmp(relation, "gt") == 0) {
        *bits = !less && !equal;
    } else if (strcmp(relation, "ge") == 0) {
        *bits = !less;
    } else {
        return false;
    }
    return true;
}

/* ---- divisions -------------------------------------------------------------------------- */

/* Is the signed division defined on the host? */
static bool can_divide(const folding *f) {
    return f->b != 0 && !(f->a == INT64_MIN && f->b == -1);
}

static bool fold_div_s(const folding *f, uint64_t *bits) {
    if (!can_divide(f)) {
        return false;
    }
    *bits = (uint64_t)(f->a / f->b);
    return true;
}

static bool fold_rem_s(const folding *f, uint64_t *bits) {
    if (!can_divide(f)) {
        return false;
    }
    *bits = (uint64_t)(f->a % f->b);
    return true;
}

/* a / b rounded towards minus infinity, or towards plus infinity. */
static bool divide_rounded(const folding *f, bool up, uint64_t *bits) {
    if (!can_divide(f)) {
        return false;
    }
    int64_t quotient = f->a / f->b;
    bool negative = (f->a < 0) != (f->b < 0);
    if (f->a % f->b != 0 && negative != up) {
        quotient += up ? 1 : -1;
    }
    *bits = (uint64_t)quotient;
    return true;
}

static bool fold_floor_div_s(const folding *f, uint64_t *bits) {
    return divide_rounded(f, false, bits);
}

static bool fold_ceil_div_s(const folding *f, uint64_t *bits) {
    return divide_rounded(f, true, bits);
}

static bool fold_div_u(const folding *f, uint64_t *bits) {
    if (f->ub == 0) {
        return false;
    }
    *bits = f->ua / f->ub;
    return true;
}

static bool fold_rem_u(const folding *f, uint64_t *bits) {
    if (f->ub == 0) {
        return false;
    }
    *bits = f->ua % f->ub;
    return true;
}

static bool fold_ceil_div_u(const folding *f, uint64_t *bits) {
    if (f->ub == 0) {
        return false;
    }
    *bits = f->ua / f->ub + (f->ua % f->ub != 0);
    return true;
}

/* ---- conversions ------------------------------------------------------------------------ */

static bool fold_resize_s(const folding *f, uint64_t *bits) {
    *bits = (uint64_t)f->a;
    return true;
}

static bool fold_resize_u(const folding *f, uint64_t *bits) {
    *bits = f->ua;
    return true;
}

/* ---- the table -------------------------------------------------------------------------- */

/* NULL: the operation is not folded. */
static fold_function *const fold_of[LILAC_TILE_OP_COUNT] = {
#define OPERATION(code, cost, layout, facts, strides, range, fold, lower, reference)               \
    [LILAC_TILE_OP_##code] = fold,
#include <lilac/operations.def>
};

bool lilac_engine_fold(const lilac_tile_op *op, const int64_t *operands, int64_t *result) {
    if (fold_of[op->code] == NULL || op->result_count != 1 || op->operand_count == 0 ||
        !is_integer(&op->results[0]) || !is_integer(op->operands[0].value)) {
        return false;
    }
    folding f = {.op = op, .scalar = scalar_of(op->operands[0].value), .a = operands[0]};
    f.b = op->operand_count > 1 ? operands[1] : 0;
    f.c = op->operand_count > 2 ? operands[2] : 0;
    f.ua = lilac_scalar_mask(f.scalar, (uint64_t)f.a);
    f.ub = lilac_scalar_mask(f.scalar, (uint64_t)f.b);
    uint64_t bits;
    if (!fold_of[op->code](&f, &bits)) {
        return false;
    }
    *result = lilac_scalar_signed(scalar_of(&op->results[0]), bits);
    return true;
}

bool lilac_engine_fold_constant(const lilac_tile_op *op, int64_t *result) {
    int64_t values[3];
    if (op->result_count != 1 || op->operand_count == 0 || op->operand_count > 3) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (!lilac_tile_constant(op->operands[i].value, &values[i])) {
            return false;
        }
    }
    return lilac_engine_fold(op, values, result);
}

lilac_tile_op *lilac_engine_make_constant(lilac_tile_module *module, lilac_tile_op *place,
                                          const lilac_tile_type *type, int64_t value) {
    lilac_tile_op *op = lilac_tile_op_create(module, LILAC_TILE_OP_ARITH_CONSTANT, 0, NULL, 1,
                                             &type, 0, place->location);
    lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                      .name = lilac_intern_string(module->context, "value"),
                                      .type = type,
                                      .integer = value};
    if (lilac_tile_is_tensor(type)) {
        int64_t *element = lilac_arena_new(module->arena, int64_t);
        *element = lilac_tile_element(type)->scalar == LILAC_I1 ? value != 0 : value;
        attribute.kind = LILAC_TILE_ATTR_DENSE;
        attribute.integer = 0;
        attribute.count = 1;
        attribute.integers = element;
    } else if (type->scalar == LILAC_I1) {
        attribute.kind = LILAC_TILE_ATTR_BOOL;
        attribute.integer = value != 0;
    }
    lilac_tile_set_attribute(module, &op->attributes, &attribute);
    op->position = place->position;
    lilac_tile_insert_before(place, op);
    return op;
}

void lilac_engine_set_integer(lilac_tile_module *module, lilac_tile_op *op, const char *name,
                              int64_t value) {
    const lilac_tile_attribute attribute = {.kind = LILAC_TILE_ATTR_INTEGER,
                                            .name = lilac_intern_string(module->context, name),
                                            .type = lilac_tile_scalar(module, LILAC_I32),
                                            .integer = value};
    lilac_tile_set_attribute(module, &op->attributes, &attribute);
}
