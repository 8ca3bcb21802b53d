/* Plans that were not chosen, with their prices: other ways of a conversion, an access without the
 * conversion beside it, a reduction in the layouts of other tensors of its shape, a product by
 * other units. */
#include "internal.h"

#include <lilac/collective.h>
#include <lilac/dot.h>
#include <lilac/tile_loops.h>

#include <math.h>

static bool same_shape(const lilac_tile_type *a, const lilac_tile_type *b) {
    bool same = lilac_tile_is_tensor(a) && a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++) {
        same = a->shape[d] == b->shape[d];
    }
    return same;
}

static void add(explain_alternatives *list, const explain_alternative *alternative) {
    if (list->count < EXPLAIN_MOST_ALTERNATIVES) {
        list->list[list->count++] = *alternative;
    }
}

static void conversion_alternatives(lilac_explanation *e, const lilac_lowered_plan *plan,
                                    explain_alternatives *list) {
    static const struct {
        const char *name;
        lilac_plan_strategy strategy;
    } ways[] = {{"shuffles only", LILAC_PLAN_BY_SHUFFLES},
                {"swizzled shared memory", LILAC_PLAN_BY_SHARED},
                {"row-major shared memory", LILAC_PLAN_UNSWIZZLED}};
    for (uint32_t i = 0; i < 3; i++) {
        lilac_plan_conversion *other = lilac_arena_new(e->arena, lilac_plan_conversion);
        lilac_reason *why = lilac_arena_new(e->arena, lilac_reason);
        const lilac_plan_options options = {.strategy = ways[i].strategy};
        explain_alternative alternative = {.kind = EXPLAIN_OTHER_CONVERSION, .name = ways[i].name};
        if (lilac_plan_conversion_init_columns(other, plan->from, plan->to, plan->element_bits,
                                               &options, e->compilation.target.arch, why)) {
            alternative.cycles = other->price.cycles;
            alternative.price = other->price;
            if (other->price.cycles == plan->is.conversion->price.cycles) {
                continue; /* the plan that was chosen */
            }
        } else {
            alternative.refused = why->text;
        }
        add(list, &alternative);
    }
}

/* An access in the layout of the other side of a conversion. */
static void access_alternative(lilac_explanation *e, const lilac_tile_op *op,
                               const lilac_tile_op *convert, const lilac_layout *layout,
                               explain_alternatives *list) {
    lilac_plan_global_access plan;
    if (explain_access_in(e, op, layout, &plan)) {
        explain_alternative alternative = {.kind = EXPLAIN_OTHER_ACCESS,
                                           .name = "without the conversion of operation",
                                           .number = explain_number_of(e, convert),
                                           .cycles = plan.cycles,
                                           .bytes = plan.element_bytes << plan.vector_bits,
                                           .sectors = plan.counts.sectors};
        alternative.saved = e->operations[alternative.number - 1].cycles;
        add(list, &alternative);
    }
}

static void access_alternatives(lilac_explanation *e, const lilac_tile_op *op,
                                explain_alternatives *list) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const lilac_tile_op *made = op->operands[i].value->op;
        if (made != NULL && made->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
            explain_number_of(e, made) > 0) {
            access_alternative(e, op, made, made->operands[0].value->type->layout, list);
        }
    }
    for (const lilac_tile_use *use = op->result_count > 0 ? op->results[0].uses : NULL; use != NULL;
         use = use->next) {
        if (use->op->code == LILAC_TILE_OP_TTG_CONVERT_LAYOUT &&
            same_shape(op->results[0].type, use->op->results[0].type)) {
            access_alternative(e, op, use->op, use->op->results[0].type->layout, list);
        }
    }
}

/* ---- reductions --------------------------------------------------------------------------- */

enum { MOST_LAYOUTS = 4 };

/* The reduction of operation `index` in another layout of its source. */
static void reduction_alternative(lilac_explanation *e, uint32_t index,
                                  const lilac_plan_reduce *chosen, const lilac_layout *layout,
                                  uint32_t number, explain_alternatives *list) {
    const lilac_tile_type *result = e->operations[index].op->results[0].type;
    lilac_plan_reduce *other = lilac_arena_new(e->arena, lilac_plan_reduce);
    lilac_reason *why = lilac_arena_new(e->arena, lilac_reason);
    explain_alternative alternative = {
        .kind = EXPLAIN_OTHER_REDUCTION, .name = "in the layout of operation", .number = number};
    if (lilac_plan_reduce_init(other, layout, lilac_tile_is_tensor(result) ? result->layout : NULL,
                               chosen->axis, &chosen->region, &e->compilation.target, why) &&
        lilac_plan_reduce_price(&alternative.price, other, why)) {
        alternative.cycles = alternative.price.cycles;
    } else {
        alternative.refused = why->text;
    }
    add(list, &alternative);
}

static bool is_listed(const lilac_layout *layout, const lilac_layout *const *seen, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (seen[i] == layout || lilac_layout_equal(seen[i], layout)) {
            return true;
        }
    }
    return false;
}

/* The layouts of the other tensors of its shape: those among which the engine could choose. */
static void reduction_alternatives(lilac_explanation *e, uint32_t index,
                                   const lilac_plan_reduce *chosen, explain_alternatives *list) {
    const lilac_tile_type *own = e->operations[index].op->operands[0].value->type;
    const lilac_layout *seen[MOST_LAYOUTS] = {own->layout};
    uint32_t count = 1;
    for (uint32_t i = 0; i < e->count && count < MOST_LAYOUTS; i++) {
        const lilac_tile_op *op = e->operations[i].op;
        for (uint32_t r = 0; r < op->result_count && count < MOST_LAYOUTS; r++) {
            const lilac_tile_type *type = op->results[r].type;
            if (lilac_tile_is_tensor(type) && type->layout != NULL && same_shape(type, own) &&
                !is_listed(type->layout, seen, count)) {
                seen[count++] = type->layout;
                reduction_alternative(e, index, chosen, type->layout, i + 1, list);
            }
        }
    }
}

/* ---- products ----------------------------------------------------------------------------- */

static const char *shape_name(lilac_explanation *e, const char *unit,
                              const lilac_matrix_shape *shape) {
    lilac_text text = {0};
    lilac_text_printf(&text, "%s.m%un%uk%u", unit, shape->m, shape->n, shape->k);
    const char *name = lilac_arena_copy(e->arena, lilac_text_get(&text), text.length);
    lilac_text_clear(&text);
    return name;
}

/* Why no wgmma computes the product. */
static const char *no_wgmma(const lilac_explanation *e, const lilac_plan_dot_problem *problem) {
    return !lilac_arch_has(e->compilation.target.arch, LILAC_HAS_WGMMA) ? "the device has none"
           : problem->m_bits < 6                      ? "a wgmma has 64 rows, the product has fewer"
           : e->compilation.target.num_warps % 4 != 0 ? "four warps execute a wgmma together"
           : problem->a == LILAC_MATRIX_NONE          ? "no tensor core has the types"
                                                      : "no wgmma has these types and sizes";
}

/* Clocks of a multiprocessor: all multiplications of the product at the rate of the unit. */
static uint64_t product_cycles(const lilac_plan_dot_problem *p, double rate) {
    const uint32_t bits = p->batch_bits + p->m_bits + p->n_bits + p->k_bits -
                          (p->blocks[0] + p->blocks[1] + p->blocks[2]);
    return (uint64_t)(16 * ldexp(1, (int)bits) / rate);
}

static void product_alternatives(lilac_explanation *e, const lilac_lowered_dot *dot,
                                 explain_alternatives *list) {
    enum { WGMMA_RATE = 2048, FMA_RATE = 128 }; /* of 16 bits, of 32 bits: in a clock */
    const lilac_plan_dot_problem *problem = &dot->problem;
    lilac_matrix_shape shape;
    const double width = problem->a == LILAC_MATRIX_NONE ? 32 : lilac_matrix_type_bits(problem->a);
    if (dot->plan.unit != LILAC_PLAN_DOT_WGMMA) {
        explain_alternative wgmma = {.kind = EXPLAIN_OTHER_PRODUCT, .name = "wgmma"};
        if (lilac_plan_dot_choose_wgmma(&shape, problem, &e->compilation.target)) {
            wgmma.name = shape_name(e, "wgmma", &shape);
            wgmma.cycles = product_cycles(problem, WGMMA_RATE * 16 / width);
        } else {
            wgmma.refused = no_wgmma(e, problem);
        }
        add(list, &wgmma);
    }
    if (dot->plan.unit != LILAC_PLAN_DOT_MMA) {
        explain_alternative mma = {.kind = EXPLAIN_OTHER_PRODUCT, .name = "mma"};
        if (lilac_plan_dot_choose(&shape, problem, &e->compilation.target) == LILAC_PLAN_DOT_MMA) {
            mma.name = shape_name(e, "mma", &shape);
            mma.cycles = product_cycles(problem, explain_mma_rate(e) * WGMMA_RATE * 16 / width);
        } else {
            mma.refused = "no mma has the types";
        }
        add(list, &mma);
    }
    if (dot->plan.unit != LILAC_PLAN_DOT_FMA) {
        add(list, &(explain_alternative){.kind = EXPLAIN_OTHER_PRODUCT,
                                         .name = "multiply-adds of threads",
                                         .cycles = product_cycles(problem, FMA_RATE)});
    }
}

void explain_alternatives_of(lilac_explanation *e, uint32_t index, explain_alternatives *list) {
    list->count = 0;
    for (uint32_t i = 0; i < e->plans[index].count; i++) {
        const lilac_lowered_plan *plan = e->plans[index].list[i];
        if (plan->kind == LILAC_LOWERED_CONVERSION) {
            conversion_alternatives(e, plan, list);
        } else if (plan->kind == LILAC_LOWERED_ACCESS) {
            access_alternatives(e, e->operations[index].op, list);
        } else if (plan->kind == LILAC_LOWERED_REDUCTION) {
            reduction_alternatives(e, index, plan->is.reduction, list);
        } else if (plan->kind == LILAC_LOWERED_DOT) {
            product_alternatives(e, plan->is.dot, list);
        }
    }
}
