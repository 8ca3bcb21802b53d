/* coordinates: which sums are coordinates of a tile, under conditions on parameters and the grid.
 *
 *     128 · (pid / per_group)     per_group > 0
 *     start + 64 · k              start ≥ 0; k is the counter of a loop from 0 on
 *
 * Coordinates are numbers of 32 bits, and not negative, since a tensor copy reads as zero what is
 * in front of a tensor. A sum that the kernel computes in 32 bits is such a number, because
 * additions and products are assumed not to overflow. A sum of offsets that the kernel adds to a
 * pointer one after the other must be shown to be one. */
#include "facts/coordinates.h"

#include <lilac/tile_loops.h>

enum { MOST_DEPTH = 24 };

/* ---- numbers that are not negative ----------------------------------------------------------- */

static bool is_natural(lilac_tile_conditions *c, lilac_tile_value *value, uint32_t depth);

static bool add_parameter(lilac_tile_conditions *c, const lilac_tile_value *value) {
    if (value->index >= 64) {
        return false;
    }
    c->parameters |= UINT64_C(1) << value->index;
    return true;
}

static bool add_divisor(lilac_tile_conditions *c, lilac_tile_op *division) {
    int64_t number;
    if (lilac_tile_constant(division->operands[1].value, &number)) {
        return number > 0;
    }
    for (uint32_t i = 0; i < c->divisor_count; i++) {
        if (c->divisions[i] == division) {
            return true;
        }
    }
    if (c->divisor_count == sizeof c->divisions / sizeof *c->divisions) {
        return false;
    }
    c->divisions[c->divisor_count++] = division;
    return true;
}

/* The counter of a loop that begins at a natural number. */
static bool is_natural_argument(lilac_tile_conditions *c, const lilac_tile_value *value,
                                uint32_t depth) {
    const lilac_tile_op *loop = value->block->parent->parent;
    int64_t step;
    return loop != NULL && loop->code == LILAC_TILE_OP_SCF_FOR && value->index == 0 &&
           lilac_tile_find(&loop->attributes, "unsignedCmp") == NULL &&
           lilac_tile_constant(lilac_tile_step(loop), &step) && step > 0 &&
           is_natural(c, lilac_tile_lower_bound(loop), depth);
}

/* Are all operands of the operation natural numbers, from number `first` on? */
static bool are_natural(lilac_tile_conditions *c, const lilac_tile_op *op, uint32_t first,
                        uint32_t depth) {
    bool natural = true;
    for (uint32_t i = first; natural && i < op->operand_count; i++) {
        natural = is_natural(c, op->operands[i].value, depth);
    }
    return natural;
}

static bool is_natural(lilac_tile_conditions *c, lilac_tile_value *value, uint32_t depth) {
    lilac_tile_op *op = value->op;
    int64_t number;
    if (depth-- == 0) {
        return false;
    }
    if (op == NULL) {
        return lilac_is_parameter(value) ? add_parameter(c, value)
                                         : is_natural_argument(c, value, depth);
    }
    switch (op->code) {
    case LILAC_TILE_OP_ARITH_CONSTANT:
        return lilac_tile_constant(value, &number) && number >= 0;
    case LILAC_TILE_OP_TT_GET_PROGRAM_ID:
    case LILAC_TILE_OP_TT_GET_NUM_PROGRAMS:
        return true;
    case LILAC_TILE_OP_ARITH_ADDI:
    case LILAC_TILE_OP_ARITH_MULI:
    case LILAC_TILE_OP_ARITH_MINSI:
    case LILAC_TILE_OP_ARITH_EXTSI:
        return are_natural(c, op, 0, depth);
    case LILAC_TILE_OP_ARITH_SELECT:
        return are_natural(c, op, 1, depth);
    case LILAC_TILE_OP_ARITH_REMSI: /* has the sign of the dividend */
    case LILAC_TILE_OP_ARITH_SHRSI:
        return is_natural(c, op->operands[0].value, depth);
    case LILAC_TILE_OP_ARITH_DIVSI:
        return is_natural(c, op->operands[0].value, depth) && add_divisor(c, op);
    case LILAC_TILE_OP_ARITH_MAXSI: {
        const lilac_tile_conditions before = *c;
        for (uint32_t i = 0; i < 2; i++) {
            if (is_natural(c, op->operands[1 - i].value, depth)) {
                return true; /* one suffices; the second is the constant, if there is one */
            }
            *c = before;
        }
        return false;
    }
    default:
        return false;
    }
}

/* ---- numbers of 32 bits ---------------------------------------------------------------------- */

/* The largest value of a natural number. */
static int64_t most_of(lilac_tile_conditions *c, const lilac_tile_value *value) {
    if (value->op != NULL && value->op->code == LILAC_TILE_OP_TT_GET_PROGRAM_ID) {
        c->small_grid = true;
        return TILE_MOST_PROGRAMS - 1;
    }
    return c->ranges[value->id].high;
}

bool lilac_coordinate_is_small(lilac_tile_conditions *c, const lilac_sum *sum) {
    const bool before = c->small_grid;
    int64_t most = 0;
    bool known = true;
    for (uint32_t i = 0; known && i < sum->count; i++) {
        int64_t product = sum->terms[i].factor;
        for (uint32_t k = 0; known && k < sum->terms[i].count; k++) {
            known = !__builtin_mul_overflow(product, most_of(c, sum->terms[i].values[k]), &product);
        }
        known = known && product >= 0 && !__builtin_add_overflow(most, product, &most);
    }
    if (!known || most > INT32_MAX) {
        c->small_grid = before; /* the grid does not help */
        return false;
    }
    return true;
}

bool lilac_coordinate_is_narrow(const lilac_sum *sum, bool computed) {
    bool narrow = computed || sum->count <= 1;
    for (uint32_t i = 0; i < sum->count; i++) {
        narrow = narrow && !sum->terms[i].wide;
    }
    return narrow;
}

bool lilac_coordinate_is_valid(lilac_tile_conditions *c, const lilac_sum *at, bool natural) {
    bool good = true;
    for (uint32_t i = 0; good && i < at->count; i++) {
        const lilac_product *p = &at->terms[i];
        good = !natural || p->factor > 0;
        for (uint32_t k = 0; good && k < p->count; k++) {
            good = p->values[k]->type->scalar == LILAC_I32 &&
                   (!natural || is_natural(c, p->values[k], MOST_DEPTH));
        }
        good = good && p->factor >= INT32_MIN && p->factor <= INT32_MAX;
    }
    return good;
}
