/* scale_extremes: the maximum of a tensor times a positive number is the number times its maximum.
 *
 *     %y = arith.mulf %x, dense<1.44>             %y = arith.mulf %x, dense<1.44>
 *     %m = tt.reduce(%y) {maxnumf}                %n = tt.reduce(%x) {maxnumf}
 *     %d = arith.subf %y, %m            →         %m = arith.mulf %n, dense<1.44>
 *                                                 %d = arith.subf %y, %m
 *
 * Rounding is monotonic: a ≤ b implies round(a c) ≤ round(b c) for c > 0. So both forms give the same
 * bits, with infinities and NaNs too (a maximum of numbers ignores NaNs, one of all elements is a NaN
 * if an element is); where zeros of both signs are largest, either is a maximum. Minima likewise.
 *
 * In attention, the scores times log2 e are used for the maximum and, less the maximum, for the
 * exponential. Without the first use the product becomes part of a fused multiply-add: one
 * instruction an element less. So the other uses must be additions and subtractions.
 *
 *     %s = arith.mulf %x, dense<0.125>
 *     %y = arith.mulf %s, dense<1.44>             %y = arith.mulf %x, dense<0.18>
 *     %m = tt.reduce(%y) {maxnumf}                %n = tt.reduce(%x) {maxnumf}
 *     %d = arith.subf %y, %m            →         %s = arith.mulf %n, dense<0.125>
 *     %e = math.exp2 %d                           %m = arith.mulf %s, dense<1.44>
 *                                                 %d = arith.subf %y, %m
 *                                                 %e = math.exp2 %d
 *
 * A product with a power of two below 1 is exact, unless it is subnormal. Then both forms of %y are below
 * 2^-126 times the factor c, and differ by at most 2^-150 c: with c ≤ 2^20 the sum of either and a number
 * of 2^-80 or more is rounded to that number, and the exponential of a smaller sum to 1. So the
 * exponentials are the same bits. FlexAttention writes its scores so, with 64 or 256 elements of a head. */
#include "simplify/scale_extremes.h"

enum { MOST_USES = 8 };

static bool is_extreme(lilac_tile_opcode code) {
    return code == LILAC_TILE_OP_ARITH_MAXNUMF || code == LILAC_TILE_OP_ARITH_MAXIMUMF ||
           code == LILAC_TILE_OP_ARITH_MINNUMF || code == LILAC_TILE_OP_ARITH_MINIMUMF;
}

bool lilac_extremes_is_reduction(const lilac_tile_op *op) {
    const lilac_tile_block *block = op->code == LILAC_TILE_OP_TT_REDUCE && op->operand_count == 1 &&
                                            lilac_tile_is_tensor(op->results[0].type)
                                        ? op->regions[0]->first
                                        : NULL;
    return block != NULL && block->next == NULL && block->first != NULL &&
           is_extreme(block->first->code) && block->first->next == block->last &&
           block->last->operands[0].value == &block->first->results[0] &&
           block->first->operands[0].value->op == NULL &&
           block->first->operands[1].value->op == NULL &&
           block->first->operands[0].value != block->first->operands[1].value;
}

uint64_t lilac_extremes_positive_number(const lilac_tile_value *value) {
    const lilac_tile_attribute *found =
        value->op != NULL && value->op->code == LILAC_TILE_OP_ARITH_CONSTANT
            ? lilac_tile_find(&value->op->attributes, "value")
            : NULL;
    if (found == NULL || found->kind != LILAC_TILE_ATTR_DENSE || found->count != 1) {
        return 0;
    }
    uint64_t infinity;
    switch (lilac_tile_element(value->type)->scalar) {
    case LILAC_F16:
        infinity = 0x7C00;
        break;
    case LILAC_BF16:
        infinity = 0x7F80;
        break;
    case LILAC_F32:
        infinity = 0x7F800000;
        break;
    case LILAC_F64:
        infinity = UINT64_C(0x7FF0000000000000);
        break;
    default:
        return 0;
    }
    const uint64_t bits = (uint64_t)found->integers[0];
    return bits < infinity ? bits : 0; /* the sign is the highest bit */
}

bool lilac_extremes_has_known_uses(const lilac_tile_value *value) {
    uint32_t count = 0;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const bool known = use->op->code == LILAC_TILE_OP_ARITH_ADDF ||
                           use->op->code == LILAC_TILE_OP_ARITH_SUBF ||
                           lilac_extremes_is_reduction(use->op);
        if (!known || ++count > MOST_USES) {
            return false;
        }
    }
    return true;
}

/* ---- powers of two ---------------------------------------------------------------------------- */

enum { ONE = 0x3F800000, LEAST_NORMAL = 0x00800000, MOST_FACTOR = 0x49800000 /* 2^20 */ };

/* The bits of c 2^k in f32, from those of c and of 2^k, k < 0; 0 if these are other numbers or the
 * product is not normal. */
static uint64_t times_power(uint64_t c, uint64_t power) {
    const bool is_power = power >= LEAST_NORMAL && power < ONE && power % LEAST_NORMAL == 0;
    return is_power && c <= MOST_FACTOR && c >= ONE - power + LEAST_NORMAL ? c - (ONE - power) : 0;
}

/* Is it an addition or subtraction whose result is only an operand of exponentials? */
static bool is_exponent(const lilac_tile_op *op) {
    if (op->code != LILAC_TILE_OP_ARITH_SUBF && op->code != LILAC_TILE_OP_ARITH_ADDF) {
        return false;
    }
    const lilac_tile_use *use = op->results[0].uses;
    while (use != NULL &&
           (use->op->code == LILAC_TILE_OP_MATH_EXP2 || use->op->code == LILAC_TILE_OP_MATH_EXP)) {
        use = use->next;
    }
    return use == NULL;
}

/* The product with a power of two below 1 that is only a factor of another one, which is only reduced
 * once and part of exponents; NULL: there is none. */
static lilac_tile_op *power_product(const lilac_tile_op *product, uint32_t constant,
                                    uint32_t *power) {
    const lilac_tile_value *factor = product->operands[1 - constant].value;
    if (lilac_tile_element(factor->type)->scalar != LILAC_F32 || factor->op == NULL ||
        factor->op->code != LILAC_TILE_OP_ARITH_MULF || factor->uses->next != NULL) {
        return NULL;
    }
    uint32_t reductions = 0;
    for (const lilac_tile_use *use = product->results[0].uses; use != NULL; use = use->next) {
        if (lilac_extremes_is_reduction(use->op)) {
            reductions++;
        } else if (!is_exponent(use->op)) {
            return NULL;
        }
    }
    const uint64_t c = lilac_extremes_positive_number(product->operands[constant].value);
    for (*power = 0; reductions == 1 && *power < 2; ++*power) {
        if (times_power(c, lilac_extremes_positive_number(factor->op->operands[*power].value)) !=
            0) {
            return factor->op;
        }
    }
    return NULL;
}

/* ---- rewriting -------------------------------------------------------------------------------- */

/* Makes a clone of a product one of the value and a number, behind `place`. */
static void multiply(lilac_tile_module *module, lilac_tile_op *clone, lilac_tile_op *place,
                     lilac_tile_value *value, uint64_t bits) {
    lilac_tile_op *constant = lilac_engine_make_constant(module, place, value->type, (int64_t)bits);
    clone->results[0].type = value->type;
    clone->results[0].name = value->name;
    lilac_tile_set_operand(clone, 0, value);
    lilac_tile_set_operand(clone, 1, &constant->results[0]);
    lilac_tile_insert_after(place, clone);
}

/* The reduction is one of the product's other factor, and its result multiplied by the constant. */
static void rewrite(lilac_tile_module *module, lilac_tile_op *reduce, lilac_tile_op *product,
                    uint32_t constant) {
    const uint64_t c = lilac_extremes_positive_number(product->operands[constant].value);
    uint32_t place;
    lilac_tile_op *inner = power_product(product, constant, &place);
    lilac_tile_value *result = &reduce->results[0],
                     *reduced = product->operands[1 - constant].value;
    lilac_tile_op *scaled = lilac_tile_clone(module, product);
    lilac_tile_replace_uses(result, &scaled->results[0]);
    if (inner != NULL) {
        const uint64_t power = lilac_extremes_positive_number(inner->operands[place].value);
        reduced = inner->operands[1 - place].value;
        lilac_tile_op *first = lilac_tile_clone(module, inner);
        multiply(module, first, reduce, result, power);
        multiply(module, scaled, first, &first->results[0], c);
        lilac_tile_op *both = lilac_engine_make_constant(module, product, product->results[0].type,
                                                         (int64_t)times_power(c, power));
        lilac_tile_set_operand(product, constant, &both->results[0]);
        lilac_tile_set_operand(product, 1 - constant, reduced);
    } else {
        multiply(module, scaled, reduce, result, c);
    }
    lilac_tile_set_operand(reduce, 0, reduced);
}

static bool visit(lilac_tile_module *module, lilac_tile_op *reduce) {
    lilac_tile_op *product =
        lilac_extremes_is_reduction(reduce) ? reduce->operands[0].value->op : NULL;
    if (product == NULL || product->code != LILAC_TILE_OP_ARITH_MULF ||
        !lilac_extremes_has_known_uses(&product->results[0])) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        if (lilac_extremes_positive_number(product->operands[k].value) != 0) {
            rewrite(module, reduce, product, k);
            return true;
        }
    }
    return false;
}

static bool visit_region(lilac_tile_module *module, lilac_tile_region *region) {
    bool changed = false;
    for (lilac_tile_block *block = region->first; block != NULL; block = block->next) {
        for (lilac_tile_op *op = block->first; op != NULL; op = op->next) {
            for (uint32_t r = 0; r < op->region_count; r++) {
                changed |= visit_region(module, op->regions[r]);
            }
            changed |= visit(module, op);
        }
    }
    return changed;
}

bool lilac_engine_scale_extremes(lilac_tile_module *module, const lilac_target *target,
                                 bool *changed) {
    (void)target;
    *changed = false;
    for (lilac_tile_function *function = module->functions; function != NULL;
         function = function->next) {
        if (function->body != NULL && visit_region(module, function->body)) {
            lilac_tile_number(function);
            *changed = true;
        }
    }
    return true;
}
