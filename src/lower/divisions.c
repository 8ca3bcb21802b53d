/* Unsigned divisions and remainders of registers that share a base.
 *
 *   dividend, d = 64     base + 0   base + 1   base + 2   base + 3      base is a multiple of 4
 *   quotient             q          q          q          q             q = base / 64
 *   remainder            r + 0      r + 1      r + 2      r + 3         r = base % 64
 *
 * Let 2^k divide the base and the divisor d, and let the offset be d n + t + i, where 2^k divides t, t < d
 * and 0 <= i < 2^k. No multiple of d lies in (base + t, base + t + 2^k), so
 *
 *   (base + d n + t + i) / d = (base + t) / d + n        (base + d n + t + i) % d = (base + t) % d + i
 *
 * for a base of at least 0. n and i become the offsets of the results. The builder merges equal
 * divisions. Where d is not a constant, n is 0. */
#include "control.h"
#include "coordinates.h"
#include "operations.h"

typedef struct divided {
    bool remainder;
    int64_t constant;      /* the divisor; 0: not a constant */
    int64_t divisor_power; /* a power of two that divides it */
    lilac_simt_value by;
} divided;

/* A power of two that divides every element of a scalar or of a tensor of equal elements. */
static int64_t power_in(lilac_lowering *l, const lilac_tile_value *tile) {
    const lilac_axis_facts *facts = lilac_axis_facts_of(&l->facts, tile);
    int64_t power = 1;
    for (uint32_t d = 0; d < facts->rank; d++) {
        if (facts->contiguity[d] != 1) {
            return 1;
        }
        power = facts->divisibility[d] > power ? facts->divisibility[d] : power;
    }
    return power;
}

static bool describe(lilac_lowering *l, const lilac_tile_op *op, bool remainder,
                     divided *division) {
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0), *b = lilac_lower_operand(l, op, 1);
    if (a->offsets == NULL || !a->exact || a->low < 0 || a->offset_low < 0 ||
        (a->simt != LILAC_SIMT_I32 && a->simt != LILAC_SIMT_I64) || b->offsets != NULL) {
        return false;
    }
    for (uint32_t r = 1; r < b->count; r++) {
        if (b->base[r] != b->base[0]) {
            return false;
        }
    }
    division->remainder = remainder;
    division->constant = 0;
    if (lilac_lower_constant(l, b, &division->constant)) {
        if (division->constant <= 0) {
            return false;
        }
        uint64_t bits = (uint64_t)division->constant;
        division->divisor_power = (int64_t)(bits & (~bits + 1));
    } else {
        division->divisor_power = power_in(l, lilac_tile_operand(op, 1));
    }
    division->by = lilac_lower_divisor(l, b->base[0]);
    return true;
}

/* The quotient or remainder of base + offset; *left: the offset of the result. */
static lilac_simt_value divide_register(lilac_lowering *l, const divided *division,
                                        lilac_simt_value base, int64_t offset, int64_t *left) {
    lilac_simt_builder *b = &l->builder;
    lilac_simt_type type = lilac_simt_type_of(l->kernel, base);
    uint64_t possible = lilac_simt_possible_bits(b, base) | (uint64_t)division->divisor_power;
    int64_t power = (int64_t)(possible & (~possible + 1)); /* divides the base and the divisor */
    int64_t whole = division->constant > 0 ? offset / division->constant : 0;
    int64_t inside = division->constant > 0 ? offset % division->constant : offset;
    int64_t run = inside % power;
    const lilac_simt_value start[2] = {base, lilac_lower_integer(l, type, inside - run)};
    lilac_simt_value dividend =
        inside == run
            ? base
            : lilac_lower_flagged(l, LILAC_SIMT_OP_ADD, type, LILAC_SIMT_NO_SIGNED_WRAP, 2, start);
    *left = division->remainder ? run : whole;
    return lilac_simt_op2(b, division->remainder ? LILAC_SIMT_OP_REM_U : LILAC_SIMT_OP_DIV_U, type,
                          dividend, division->by);
}

bool lilac_lower_shared_division(lilac_lowering *l, const lilac_tile_op *op, bool remainder,
                                 bool *lowered) {
    divided division;
    *lowered = describe(l, op, remainder, &division);
    if (!*lowered) {
        return true;
    }
    const lilac_lower_value *a = lilac_lower_operand(l, op, 0);
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    const uint32_t *source;
    if (result == NULL || !lilac_lower_align(l, a, result->view, &source)) {
        return false;
    }
    int64_t *offsets = lilac_arena_array(l->arena, int64_t, result->count);
    int64_t most = 0;
    for (uint32_t r = 0; r < result->count; r++) {
        uint32_t i = lilac_lower_index(a, source, r);
        result->base[r] = divide_register(l, &division, a->base[i], a->offsets[i], &offsets[r]);
        most = offsets[r] > most ? offsets[r] : most;
    }
    result->low = 0; /* the sum with an offset is an element of the result */
    if (remainder && division.constant > 0) {
        result->high = division.constant - 1;
    }
    result->offsets = most > 0 ? offsets : NULL;
    result->offset_high = most;
    return true;
}
