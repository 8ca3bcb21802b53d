/* dot: the layouts of matrix products.
 *
 * A dot is an anchor: the accumulator has the layout of the unit that computes the product
 * (lilac/dot.h), and the layouts of A and B follow from it. So the component of an accumulator has that
 * layout whatever its other members would like; memory operations in it are detached where that is
 * cheaper. */
#include "layouts/assign.h"
#include "products/dot_operands.h"

#include <lilac/dot.h>

enum { MOST_CHAIN = 64, MOST_LOOK_AHEAD = 12 };

/* ---- the problem ---------------------------------------------------------------------------- */

static lilac_matrix_type matrix_type(lilac_scalar scalar, bool tf32) {
    switch (scalar) {
    case LILAC_F16:
        return LILAC_MATRIX_F16;
    case LILAC_BF16:
        return LILAC_MATRIX_BF16;
    case LILAC_F32:
        return tf32 ? LILAC_MATRIX_TF32 : LILAC_MATRIX_NONE;
    case LILAC_F64:
        return LILAC_MATRIX_F64;
    case LILAC_F8E4M3FN:
        return LILAC_MATRIX_E4M3;
    case LILAC_F8E5M2:
        return LILAC_MATRIX_E5M2;
    case LILAC_I8:
        return LILAC_MATRIX_S8;
    default:
        return LILAC_MATRIX_NONE;
    }
}

static lilac_matrix_type accumulator_type(lilac_scalar scalar) {
    return scalar == LILAC_F32   ? LILAC_MATRIX_F32
           : scalar == LILAC_I32 ? LILAC_MATRIX_S32
                                 : matrix_type(scalar, false);
}

static lilac_scalar scalar_of(const lilac_tile_type *type) {
    return type->kind == LILAC_TILE_MEMDESC ? type->scalar : lilac_tile_element(type)->scalar;
}

/* Divides the problem among the blocks of a cluster: as the layout of the result does, if it has one. */
static bool divide(lilac_plan_dot_problem *problem, const lilac_tile_op *op,
                   const lilac_target *target, lilac_reason *why) {
    const lilac_layout *layout = op->results[0].type->layout;
    lilac_layout_columns columns;
    if (target->num_ctas == 1) {
        return true;
    }
    if (layout == NULL) {
        lilac_plan_dot_divide(problem, target, lilac_dot_is_chained(op));
        return true;
    }
    if (!lilac_plan_columns_init(&columns, layout, target, why)) {
        return false;
    }
    lilac_plan_dot_divide_as(problem, &columns);
    return true;
}

bool lilac_engine_dot_problem(lilac_plan_dot_problem *problem, const lilac_tile_op *op,
                              const lilac_target *target, lilac_reason *why) {
    const lilac_tile_type *a = op->operands[0].value->type, *b = op->operands[1].value->type;
    const lilac_tile_type *d = op->results[0].type;
    const lilac_name precision = lilac_tile_find_text(&op->attributes, "inputPrecision");
    const bool tf32 = op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT ||
                      (precision != NULL && strcmp(precision, "tf32") == 0);
    if ((d->rank != 2 && d->rank != 3) || a->rank != d->rank || b->rank != d->rank) {
        return lilac_layout_refuse(why, "a product of tensors of rank %u", d->rank);
    }
    const uint32_t row = d->rank - 2, column = d->rank - 1;
    *problem = (lilac_plan_dot_problem){.rank = d->rank,
                                        .batch_bits = d->rank == 3 ? log2_of(d->shape[0]) : 0,
                                        .m_bits = log2_of(d->shape[row]),
                                        .n_bits = log2_of(d->shape[column]),
                                        .k_bits = log2_of(a->shape[column]),
                                        .a = matrix_type(scalar_of(a), tf32),
                                        .b = matrix_type(scalar_of(b), tf32),
                                        .d = accumulator_type(scalar_of(d))};
    return divide(problem, op, target, why);
}

uint32_t lilac_engine_imprecise_terms(const lilac_tile_op *op,
                                      const lilac_plan_dot_problem *problem) {
    const int64_t limit = lilac_tile_find_integer(&op->attributes, "maxNumImpreciseAcc", 0);
    if (lilac_matrix_type_bits(problem->a) != 8 || problem->d != LILAC_MATRIX_F32 ||
        limit > INT64_C(1) << problem->k_bits) {
        return 0;
    }
    return limit < 1 ? 1 : (uint32_t)limit;
}

/* ---- products whose operands are products ------------------------------------------------- */

typedef struct chain_search {
    const lilac_tile_value *seen[MOST_CHAIN];
    uint32_t count;
} chain_search;

static bool is_dot(const lilac_tile_op *op) {
    return lilac_layout_relation(op)->rule == RULE_DOT;
}

/* Is the value computed from the result of a dot in the same or an enclosing block? The accumulator
 * that a loop carries does not count. */
static bool comes_from_dot(chain_search *search, const lilac_tile_value *value) {
    const lilac_tile_op *op = value->op;
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->seen[i] == value) {
            return false;
        }
    }
    if (op == NULL || op->region_count != 0 || search->count == MOST_CHAIN ||
        !lilac_tile_is_tensor(value->type)) {
        return false;
    }
    search->seen[search->count++] = value;
    if (is_dot(op)) {
        return true;
    }
    bool found = false;
    for (uint32_t i = 0; i < op->operand_count && !found; i++) {
        found = comes_from_dot(search, op->operands[i].value);
    }
    return found;
}

/* Does a dot use the value as an operand, after further operations? */
static bool goes_to_dot(chain_search *search, const lilac_tile_value *value) {
    for (uint32_t i = 0; i < search->count; i++) {
        if (search->seen[i] == value) {
            return false;
        }
    }
    if (search->count == MOST_CHAIN || !lilac_tile_is_tensor(value->type)) {
        return false;
    }
    search->seen[search->count++] = value;
    for (const lilac_tile_use *use = value->uses; use != NULL; use = use->next) {
        const lilac_tile_op *op = use->op;
        if (is_dot(op) && use->index < 2) {
            return true;
        }
        for (uint32_t i = 0; i < op->result_count && op->region_count == 0 && !is_dot(op); i++) {
            if (goes_to_dot(search, &op->results[i])) {
                return true;
            }
        }
    }
    return false;
}

bool lilac_dot_comes_from_product(const lilac_tile_value *value) {
    chain_search from = {.count = 0};
    return comes_from_dot(&from, value);
}

bool lilac_dot_is_chained(const lilac_tile_op *op) {
    chain_search from = {.count = 0}, to = {.count = 0};
    return comes_from_dot(&from, op->operands[0].value) ||
           comes_from_dot(&from, op->operands[1].value) || goes_to_dot(&to, &op->results[0]);
}

/* ---- the relation ---------------------------------------------------------------------------- */

bool lilac_dot_transfer(lilac_layout *result, const lilac_tile_op *op, uint32_t operand,
                        const lilac_layout *layout) {
    (void)op;
    *result = *layout;
    return operand == 2;
}

static lilac_plan_dot_unit choose(lilac_matrix_shape *shape, const lilac_plan_dot_problem *problem,
                                  const lilac_tile_op *op, const lilac_target *target) {
    if (op->code == LILAC_TILE_OP_TTNG_WARP_GROUP_DOT) {
        (void)lilac_plan_dot_choose_wgmma(shape, problem, target);
        return LILAC_PLAN_DOT_WGMMA;
    }
    return lilac_plan_dot_choose(shape, problem, target);
}

enum { BYTE = 8, WORD = 32 };

/* The first lane bit that counts: bits 0 and 1 of a fragment lie along K, where neighbouring words are
 * in different lanes in any layout; bits 2 to 4 lie along the rows of A. */
static uint32_t first_lane(uint32_t bits) {
    return bits == WORD ? 2 : 0;
}

/* Is a loaded tensor of elements of `bits` needed in a layout where a lane bit separates neighbours
 * in memory? `layout`: that of the value, which is computed from the loaded tensor. */
static bool separates_neighbours(assignment *a, const lilac_tile_value *value,
                                 const lilac_layout *layout, uint32_t bits, uint32_t depth) {
    const lilac_tile_op *op = value->op;
    if (op == NULL || layout == NULL || !lilac_tile_is_tensor(value->type)) {
        return false;
    }
    if (op->code == LILAC_TILE_OP_TT_LOAD) {
        const int lanes = lilac_layout_in(layout, "lane");
        bool found = false;
        for (uint32_t d = 0; d < layout->out_count && value->type->rank == 2 &&
                             lilac_tile_element_bits(value->type) == bits && lanes >= 0;
             d++) {
            const uint64_t next = UINT64_C(1) << lilac_layout_out_start(layout, d);
            const uint64_t *columns =
                layout->columns + lilac_layout_in_start(layout, (uint32_t)lanes);
            for (uint32_t i = first_lane(bits); i < layout->in[lanes].bits; i++) {
                found |= columns[i] == next && lilac_dot_is_contiguous(&a->axis, value, d);
            }
        }
        return found;
    }
    const layout_rule rule = lilac_layout_relation(op)->rule;
    if (depth == 0 || op->region_count != 0 || (rule != RULE_SAME && rule != RULE_SHAPE)) {
        return false;
    }
    for (uint32_t i = 0; i < op->operand_count; i++) {
        if (separates_neighbours(a, op->operands[i].value,
                                 lilac_transfer_backward(a, op, i, layout), bits, depth - 1)) {
            return true;
        }
    }
    return false;
}

/* The rows that suit an A in registers which is loaded with M contiguous. Products of words that feed
 * each other have the same rows, so that nothing is exchanged between them. */
static lilac_plan_dot_rows rows_for(assignment *a, const lilac_tile_op *op,
                                    const lilac_layout *usual, bool chained) {
    const lilac_tile_value *left = op->operands[0].value;
    const lilac_layout *layout = lilac_dot_operand_layout(a->module, a->target, op, 0, usual);
    if (separates_neighbours(a, left, layout, BYTE, MOST_LOOK_AHEAD)) {
        return LILAC_PLAN_DOT_ROW_PAIRS;
    }
    return !chained && separates_neighbours(a, left, layout, WORD, MOST_LOOK_AHEAD)
               ? LILAC_PLAN_DOT_WORD_ROWS
               : LILAC_PLAN_DOT_USUAL_ROWS;
}

uint32_t lilac_dot_rank(const assignment *a, const lilac_tile_op *op) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_reason why;
    return lilac_engine_dot_problem(&problem, op, a->target, &why)
               ? (uint32_t)choose(&shape, &problem, op, a->target)
               : 0;
}

uint32_t lilac_dot_candidates(assignment *a, const lilac_tile_op *op, const uint32_t *order,
                              const lilac_layout **result, uint32_t most) {
    (void)order;
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_layout layout;
    lilac_reason why;
    if (most == 0 || !lilac_engine_dot_problem(&problem, op, a->target, &why)) {
        return 0;
    }
    const lilac_plan_dot_unit unit = choose(&shape, &problem, op, a->target);
    lilac_plan_dot_wishes wishes = {.chained = lilac_dot_is_chained(op)};
    if (!lilac_plan_dot_result_layout(&layout, &problem, unit, &shape, a->target, wishes, &why)) {
        return 0;
    }
    if (unit == LILAC_PLAN_DOT_WGMMA && lilac_tile_is_tensor(op->operands[0].value->type)) {
        wishes.rows = rows_for(a, op, lilac_tile_intern_layout(a->module, &layout), wishes.chained);
    }
    if (wishes.rows != LILAC_PLAN_DOT_USUAL_ROWS &&
        !lilac_plan_dot_result_layout(&layout, &problem, unit, &shape, a->target, wishes, &why)) {
        return 0;
    }
    result[0] = lilac_tile_intern_layout(a->module, &layout);
    return 1;
}

/* The layout of an operand in registers for a layout of D; NULL: there is none. */
const lilac_layout *lilac_dot_operand_layout(lilac_tile_module *module, const lilac_target *target,
                                             const lilac_tile_op *op, uint32_t operand,
                                             const lilac_layout *d) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_layout_columns columns;
    lilac_layout layout;
    lilac_reason why;
    if (!lilac_engine_dot_problem(&problem, op, target, &why) ||
        !lilac_plan_columns_init(&columns, d, target, &why)) {
        return NULL;
    }
    lilac_plan_dot_divide_as(&problem, &columns);
    const lilac_plan_dot_unit unit = choose(&shape, &problem, op, target);
    if (!lilac_plan_dot_operand_layout(&layout, &problem, unit, &shape, &columns, operand, &why)) {
        return NULL;
    }
    return lilac_tile_intern_layout(module, &layout);
}

static bool in_order(const uint64_t *coordinates, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++) {
        if (coordinates[i] != UINT64_C(1) << i && coordinates[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Descriptors of wgmma read tiles in memory in the order of their coordinates. */
static bool fits_memory(const lilac_plan_dot *plan, const lilac_tile_op *op) {
    const bool a = !lilac_tile_is_tensor(op->operands[0].value->type);
    const bool b = !lilac_tile_is_tensor(op->operands[1].value->type);
    return (!a || in_order(plan->row, plan->row_bits)) &&
           (!b || in_order(plan->column, plan->column_bits)) &&
           ((!a && !b) || in_order(plan->inner, plan->inner_bits));
}

/* Tensor cores compute the product at the same rate in all layouts that fit their instruction. */
int64_t lilac_price_dot(assignment *a, const lilac_tile_op *op, const lilac_layout *layout) {
    lilac_plan_dot_problem problem;
    lilac_matrix_shape shape;
    lilac_plan_dot plan;
    lilac_layout_columns columns[3];
    const lilac_layout_columns *operands[2] = {NULL, NULL};
    lilac_reason why;
    if (!lilac_engine_dot_problem(&problem, op, a->target, &why) ||
        !lilac_plan_columns_init(&columns[2], layout, a->target, &why)) {
        return PRICE_IMPOSSIBLE;
    }
    lilac_plan_dot_divide_as(&problem, &columns[2]);
    const lilac_plan_dot_unit unit = choose(&shape, &problem, op, a->target);
    for (uint32_t i = 0; i < 2; i++) {
        lilac_layout operand;
        if (!lilac_tile_is_tensor(op->operands[i].value->type)) {
            continue;
        }
        if (!lilac_plan_dot_operand_layout(&operand, &problem, unit, &shape, &columns[2], i,
                                           &why) ||
            !lilac_plan_columns_init(&columns[i], &operand, a->target, &why)) {
            return PRICE_IMPOSSIBLE;
        }
        operands[i] = &columns[i];
    }
    return lilac_plan_dot_init(&plan, &problem, unit, &shape, operands[0], operands[1], &columns[2],
                               &why) &&
                   fits_memory(&plan, op)
               ? 0
               : PRICE_IMPOSSIBLE;
}
