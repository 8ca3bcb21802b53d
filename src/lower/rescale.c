/* Products with factors that are 1 in most iterations (lilac.often_one).
 *
 *     %c = arith.mulf %o, %fade {lilac.often_one = 1 : i32}         the factor is operand 1
 *   →
 *     %any = vote.some (%fade0 != 1 or %fade1 != 1)
 *     %c… = if %any { fmul %o…, %fade0 or %fade1 } else { %o… }
 *
 * A product with 1 is its other operand, so the results are the same bits. The registers are divided
 * into groups of two factors, each with a branch of its own: the two rows that a thread holds of the
 * 64 of a wgmma. A warp multiplies where one of its 16 rows has another factor. A group of fewer than
 * LEAST registers is multiplied without a branch, which costs some 6 issue slots. */
#include "coordinates.h"
#include "operations.h"

enum { FACTORS = 2, LEAST = 16, ONE = 0x3F800000 };

/* Registers of the result with at most FACTORS factors. */
typedef struct group {
    uint32_t count;
    uint32_t *registers; /* of the result */
    lilac_simt_value *values, *factors, *products;
    lilac_simt_type *types;
    lilac_simt_value different[FACTORS];
    uint32_t different_count;
} group;

static bool takes_factor(group *g, lilac_simt_value factor) {
    for (uint32_t i = 0; i < g->different_count; i++) {
        if (g->different[i] == factor) {
            return true;
        }
    }
    if (g->different_count == FACTORS) {
        return false;
    }
    g->different[g->different_count++] = factor;
    return true;
}

/* Takes the registers that begin with the first one left, in order. */
static void fill(group *g, uint32_t count, bool *taken, const lilac_simt_value *values,
                 const lilac_simt_value *factors) {
    g->count = g->different_count = 0;
    for (uint32_t r = 0; r < count; r++) {
        if (!taken[r] && takes_factor(g, factors[r])) {
            taken[r] = true;
            g->registers[g->count] = r;
            g->values[g->count] = values[r];
            g->factors[g->count] = factors[r];
            g->types[g->count++] = LILAC_SIMT_F32;
        }
    }
}

static void multiply(lilac_lowering *l, group *g) {
    for (uint32_t i = 0; i < g->count; i++) {
        g->products[i] = lilac_simt_op2(&l->builder, LILAC_SIMT_OP_FMUL, LILAC_SIMT_F32,
                                        g->values[i], g->factors[i]);
    }
}

static void multiply_unless_one(lilac_lowering *l, group *g) {
    lilac_simt_builder *b = &l->builder;
    if (g->count < LEAST) {
        multiply(l, g);
        return;
    }
    const lilac_simt_value one = lilac_simt_constant(b, LILAC_SIMT_F32, ONE);
    lilac_simt_value any = 0;
    for (uint32_t i = 0; i < g->different_count; i++) {
        const lilac_simt_value differs =
            lilac_simt_compare_values(b, LILAC_SIMT_UNE, g->different[i], one);
        any = i == 0 ? differs : lilac_simt_op2(b, LILAC_SIMT_OP_OR, LILAC_SIMT_I1, any, differs);
    }
    lilac_simt_instruction *branch =
        lilac_simt_if_begin(b, lilac_simt_any_lane(b, any), g->count, g->types);
    multiply(l, g);
    lilac_simt_if_else(b, branch, g->products);
    const lilac_simt_value first = lilac_simt_if_end(b, branch, g->values);
    for (uint32_t i = 0; i < g->count; i++) {
        g->products[i] = first + i;
    }
}

bool lilac_lower_rescale(lilac_lowering *l, const lilac_tile_op *op, uint32_t factor) {
    lilac_lower_value *result = lilac_lower_result(l, op, 0);
    lilac_lower_aligned sum, by;
    if (result == NULL || !lilac_lower_align_operand(l, op, 1 - factor, result->view, &sum) ||
        !lilac_lower_align_operand(l, op, factor, result->view, &by)) {
        return false;
    }
    const uint32_t count = result->count;
    group g = {.registers = lilac_arena_array(l->arena, uint32_t, count),
               .values = lilac_arena_array(l->arena, lilac_simt_value, count),
               .factors = lilac_arena_array(l->arena, lilac_simt_value, count),
               .products = lilac_arena_array(l->arena, lilac_simt_value, count),
               .types = lilac_arena_array(l->arena, lilac_simt_type, count)};
    lilac_simt_value *values = lilac_arena_array(l->arena, lilac_simt_value, count);
    lilac_simt_value *factors = lilac_arena_array(l->arena, lilac_simt_value, count);
    bool *taken = lilac_arena_array(l->arena, bool, count);
    for (uint32_t r = 0; r < count; r++) {
        values[r] = lilac_lower_aligned_get(l, &sum, r);
        factors[r] = lilac_lower_aligned_get(l, &by, r);
    }
    for (fill(&g, count, taken, values, factors); g.count > 0;
         fill(&g, count, taken, values, factors)) {
        multiply_unless_one(l, &g);
        for (uint32_t i = 0; i < g.count; i++) {
            result->base[g.registers[i]] = g.products[i];
        }
    }
    return true;
}
