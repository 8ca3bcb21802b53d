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
 * instruction an element less. So the other uses must be additions and subtractions. */
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

static bool visit(lilac_tile_module *module, lilac_tile_op *reduce) {
    const lilac_tile_op *product =
        lilac_extremes_is_reduction(reduce) ? reduce->operands[0].value->op : NULL;
    if (product == NULL || product->code != LILAC_TILE_OP_ARITH_MULF ||
        !lilac_extremes_has_known_uses(&product->results[0])) {
        return false;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const uint64_t bits = lilac_extremes_positive_number(product->operands[k].value);
        if (bits == 0) {
            continue;
        }
        lilac_tile_value *result = &reduce->results[0];
        lilac_tile_op *constant =
            lilac_engine_make_constant(module, reduce, result->type, (int64_t)bits);
        lilac_tile_op *scaled = lilac_tile_clone(module, product);
        scaled->results[0].type = result->type;
        scaled->results[0].name = result->name;
        lilac_tile_set_operand(reduce, 0, product->operands[1 - k].value);
        lilac_tile_replace_uses(result, &scaled->results[0]);
        lilac_tile_set_operand(scaled, 0, result);
        lilac_tile_set_operand(scaled, 1, &constant->results[0]);
        lilac_tile_insert_after(reduce, scaled);
        return true;
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
