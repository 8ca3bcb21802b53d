/* Plans of matrix products for given layouts: which coordinates the indices of an instruction are.
 *
 *     D  lanes 0, 1   column bits 1, 2        A  lanes 0, 1   inner bits w, w + 1
 *        lanes 2 – 4  row bits 0 – 2             lanes 2 – 4  row bits 0 – 2
 *        registers    column bit 0, row bit 3,   registers    inner bits below w, row bit 3,
 *                     column bits from 3 on                   inner bits from w + 2 on
 *        warps 0, 1   row bits 4, 5 (wgmma)   B  lanes 0, 1   inner bits w, w + 1
 *                                                lanes 2 – 4  column bits 0 – 2
 *
 * with 2^w elements in a word. The columns of lanes and warps say what row, column and inner are.
 * The registers are free to choose, among those that lie along one dimension only. Inner indices are
 * independent: where lanes or registers of A replicate elements, the instruction adds each product once. */
#include <lilac/bits.h>
#include <lilac/dot.h>
#include <lilac/f2.h>

#include <string.h>

enum { LANE_BITS = 5, GROUP_WARP_BITS = 2, ROWS = 0, COLUMNS = 1, BATCH = 2 };

uint64_t lilac_plan_dot_coordinate(const lilac_layout_columns *columns, uint64_t flat,
                                   uint32_t which) {
    if (which == BATCH) {
        return columns->rank < 3 ? 0 : flat & ((UINT64_C(1) << columns->bits[0]) - 1);
    }
    const uint32_t dim = columns->rank - 2 + which;
    return flat >> columns->start[dim] & ((UINT64_C(1) << columns->bits[dim]) - 1);
}

uint64_t lilac_plan_dot_flat(const lilac_layout_columns *columns, uint64_t batch, uint64_t row,
                             uint64_t column) {
    return batch | row << columns->start[columns->rank - 2] |
           column << columns->start[columns->rank - 1];
}

/* Has the column no part along another dimension than `which`? */
static bool is_along(const lilac_layout_columns *columns, uint64_t flat, uint32_t which) {
    for (uint32_t dim = ROWS; dim <= BATCH; dim++) {
        if (dim != which && lilac_plan_dot_coordinate(columns, flat, dim) != 0) {
            return false;
        }
    }
    return true;
}

/* The first distinct register bit along a dimension that is not in `used`: one with this coordinate,
 * or, if it is 0, with any but 0. */
static int find_register(const lilac_layout_columns *columns, uint32_t which, uint64_t coordinate,
                         uint32_t used) {
    for (uint32_t i = 0; i < columns->register_bits; i++) {
        const uint64_t found = lilac_plan_dot_coordinate(columns, columns->registers[i], which);
        if ((columns->distinct >> i & 1) != 0 && (used >> i & 1) == 0 && found != 0 &&
            is_along(columns, columns->registers[i], which) &&
            (coordinate == 0 || found == coordinate)) {
            return (int)i;
        }
    }
    return LILAC_PLAN_DOT_NO_REGISTER;
}

static bool refuse(lilac_reason *why, const char *text) {
    return lilac_layout_refuse(why, "%s", text);
}

/* Reads the coordinate of a lane bit that must lie along one dimension. */
static bool take_lane(const lilac_layout_columns *columns, uint32_t lane, uint32_t which,
                      uint64_t *coordinate) {
    *coordinate = lilac_plan_dot_coordinate(columns, columns->threads[lane], which);
    return is_along(columns, columns->threads[lane], which);
}

/* The next accumulator bit is a register of D along a dimension; 0: none has that coordinate. */
static void take_element(lilac_plan_dot *plan, const lilac_layout_columns *d, uint32_t which,
                         uint64_t wanted, bool required, uint64_t *coordinate) {
    const int found =
        required && wanted == 0 ? LILAC_PLAN_DOT_NO_REGISTER
                                : find_register(d, which, wanted, plan->instruction_registers);
    plan->element_register[plan->element_bits++] = (int8_t)found;
    *coordinate = 0;
    if (found >= 0) {
        plan->instruction_registers |= 1U << found;
        *coordinate = lilac_plan_dot_coordinate(d, d->registers[found], which);
    }
}

/* Rows and columns, from D. `first_column`: column bit 0, from B, if B is in registers. */
static bool take_result(lilac_plan_dot *plan, const lilac_layout_columns *d,
                        const lilac_layout_columns *b, lilac_reason *why) {
    bool good = take_lane(d, 0, COLUMNS, &plan->column[1]) &&
                take_lane(d, 1, COLUMNS, &plan->column[2]);
    for (uint32_t i = 0; i < 3; i++) {
        good = good && take_lane(d, 2 + i, ROWS, &plan->row[i]);
    }
    for (uint32_t i = 4; i < plan->row_bits; i++) {
        good = good && take_lane(d, LANE_BITS + i - 4, ROWS, &plan->row[i]);
    }
    if (!good) {
        return refuse(why, "the lanes of the result are not those of the instruction");
    }
    const uint64_t first =
        b != NULL ? lilac_plan_dot_coordinate(b, b->threads[2], COLUMNS) : 0;
    take_element(plan, d, COLUMNS, first, b != NULL, &plan->column[0]);
    if (plan->column[0] != first && b != NULL) {
        return refuse(why, "the columns of the result are not those of B");
    }
    if (plan->row_bits > 3) {
        take_element(plan, d, ROWS, 0, false, &plan->row[3]);
    }
    for (uint32_t i = 3; i < plan->column_bits; i++) {
        take_element(plan, d, COLUMNS, 0, false, &plan->column[i]);
    }
    return true;
}

/* The rest of K, beyond what `covered` spans, as steps. */
static void complete_steps(lilac_plan_dot *plan, uint32_t k_bits, const uint64_t *covered,
                           uint32_t count) {
    lilac_f2_space space, rest;
    lilac_f2_span(&space, covered, count);
    lilac_f2_complement(&rest, &space, k_bits);
    memcpy(plan->step + plan->step_bits, rest.basis, rest.dimension * sizeof *rest.basis);
    plan->step_bits += rest.dimension;
}

/* The coordinate of the first register of A along K that is no sum of those in the basis, which it joins;
 * 0: none. */
static uint64_t take_register(const lilac_layout_columns *a, lilac_f2_basis *taken) {
    for (uint32_t i = 0; i < a->register_bits; i++) {
        const uint64_t found = lilac_plan_dot_coordinate(a, a->registers[i], COLUMNS);
        if ((a->distinct >> i & 1) != 0 && is_along(a, a->registers[i], COLUMNS) &&
            lilac_f2_basis_add(taken, found, 0)) {
            return found;
        }
    }
    return 0;
}

/* Inner indices, from the lanes and registers of A; the registers that remain are steps. */
static bool take_inner(lilac_plan_dot *plan, const lilac_layout_columns *a, uint32_t k_bits,
                       lilac_reason *why) {
    const uint32_t w = plan->word_bits;
    uint64_t covered[2 * LILAC_LAYOUT_MAX_BITS], next;
    lilac_f2_basis taken;
    lilac_f2_basis_init(&taken);
    if (!take_lane(a, 0, COLUMNS, &plan->inner[w]) ||
        !take_lane(a, 1, COLUMNS, &plan->inner[w + 1])) {
        return refuse(why, "lanes 0 and 1 of A do not lie along K");
    }
    for (uint32_t i = w; i < w + 2; i++) {
        if (plan->inner[i] != 0 && !lilac_f2_basis_add(&taken, plan->inner[i], 0)) {
            return refuse(why, "lanes 0 and 1 of A hold the same inner indices");
        }
    }
    for (uint32_t i = 0; i < plan->inner_bits; i++) {
        plan->inner[i] = i == w || i == w + 1 ? plan->inner[i] : take_register(a, &taken);
    }
    while ((next = take_register(a, &taken)) != 0) {
        plan->step[plan->step_bits++] = next;
    }
    memcpy(covered, plan->inner, plan->inner_bits * sizeof *covered);
    memcpy(covered + plan->inner_bits, plan->step, plan->step_bits * sizeof *covered);
    complete_steps(plan, k_bits, covered, plan->inner_bits + plan->step_bits);
    return true;
}

/* The lanes and warps of an operand agree with the plan and with D. `kept`: the dimension of the
 * operand that is also one of D. */
static bool check_operand(const lilac_plan_dot *plan, const lilac_layout_columns *operand,
                          const lilac_layout_columns *d, bool is_a, lilac_reason *why) {
    const uint32_t kept = is_a ? ROWS : COLUMNS, summed = is_a ? COLUMNS : ROWS;
    const uint64_t *outer = is_a ? plan->row : plan->column;
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        const uint64_t column = operand->threads[i];
        uint64_t wanted_kept = 0, wanted_summed = 0;
        if (i >= LANE_BITS) {
            wanted_kept = lilac_plan_dot_coordinate(d, d->threads[i], kept);
        } else if (i < 2) {
            wanted_summed = plan->inner[plan->word_bits + i];
        } else {
            wanted_kept = outer[i - 2];
        }
        if (lilac_plan_dot_coordinate(operand, column, kept) != wanted_kept ||
            lilac_plan_dot_coordinate(operand, column, summed) != wanted_summed ||
            lilac_plan_dot_coordinate(operand, column, BATCH) !=
                lilac_plan_dot_coordinate(d, d->threads[i], BATCH)) {
            return lilac_layout_refuse(why,
                                       "%s %u of %s hold other elements than the instruction needs",
                                       i < LANE_BITS ? "lanes that differ in bit" : "warps, bit",
                                       i < LANE_BITS ? i : i - LANE_BITS, is_a ? "A" : "B");
        }
    }
    return true;
}

/* The blocks of an operand agree with those of D: they divide its rows (columns) as D is divided, and
 * none of them divides K. */
static bool check_blocks(const lilac_layout_columns *operand, const lilac_layout_columns *d, bool is_a,
                         lilac_reason *why) {
    const uint32_t kept = is_a ? ROWS : COLUMNS;
    for (uint32_t i = 0; i < d->block_bits; i++) {
        const uint64_t batch = lilac_plan_dot_coordinate(d, d->blocks[i], BATCH);
        const uint64_t part = lilac_plan_dot_coordinate(d, d->blocks[i], kept);
        if (operand->blocks[i] !=
            lilac_plan_dot_flat(operand, batch, is_a ? part : 0, is_a ? 0 : part)) {
            return lilac_layout_refuse(why,
                                       "blocks that differ in bit %u hold other elements of %s than "
                                       "their parts of the result need",
                                       i, is_a ? "A" : "B");
        }
    }
    return true;
}

/* Each thread multiplies its own elements: the thread that holds an element of D has its row of A and
 * its column of B. */
static bool match_fma(lilac_plan_dot *plan, const lilac_layout_columns *a,
                      const lilac_layout_columns *b, const lilac_layout_columns *d,
                      lilac_reason *why) {
    for (uint32_t i = 0; i < d->thread_bits; i++) {
        const uint64_t column = d->threads[i];
        const uint64_t batch = lilac_plan_dot_coordinate(d, column, BATCH);
        if (a->threads[i] !=
                lilac_plan_dot_flat(a, batch, lilac_plan_dot_coordinate(d, column, ROWS), 0) ||
            b->threads[i] !=
                lilac_plan_dot_flat(b, batch, 0, lilac_plan_dot_coordinate(d, column, COLUMNS))) {
            return refuse(why, "the threads do not hold the rows of A and the columns of B that "
                               "their elements of the result need");
        }
    }
    plan->word_bits = 0;
    return true;
}

bool lilac_plan_dot_init(lilac_plan_dot *plan, const lilac_plan_dot_problem *problem,
                         lilac_plan_dot_unit unit, const lilac_matrix_shape *shape,
                         const lilac_layout_columns *a, const lilac_layout_columns *b,
                         const lilac_layout_columns *d, lilac_reason *why) {
    *plan = (lilac_plan_dot){.unit = unit, .shape = *shape, .block_bits = d->block_bits};
    if (d->block_bits > LILAC_PLAN_DOT_MOST_BLOCKS) {
        return refuse(why, "the cluster has too many blocks");
    }
    for (uint32_t i = 0; i < d->block_bits; i++) {
        plan->block_row[i] = lilac_plan_dot_coordinate(d, d->blocks[i], ROWS);
        plan->block_column[i] = lilac_plan_dot_coordinate(d, d->blocks[i], COLUMNS);
    }
    if ((a != NULL && !check_blocks(a, d, true, why)) ||
        (b != NULL && !check_blocks(b, d, false, why))) {
        return false;
    }
    if (unit == LILAC_PLAN_DOT_FMA) {
        complete_steps(plan, problem->k_bits, NULL, 0);
        return match_fma(plan, a, b, d, why);
    }
    const uint32_t bits = lilac_matrix_type_bits(shape->a);
    plan->row_bits = log2_of(shape->m);
    plan->column_bits = log2_of(shape->n);
    plan->inner_bits = log2_of(shape->k);
    plan->word_bits = bits < 32 ? log2_of(32 / bits) : 0;
    if (d->lane_bits != LANE_BITS ||
        (unit == LILAC_PLAN_DOT_WGMMA && d->thread_bits < LANE_BITS + GROUP_WARP_BITS)) {
        return refuse(why, "the instruction needs more lanes or warps");
    }
    if (!take_result(plan, d, b, why)) {
        return false;
    }
    if (a != NULL) {
        if (!take_inner(plan, a, problem->k_bits, why) || !check_operand(plan, a, d, true, why)) {
            return false;
        }
    } else {
        for (uint32_t i = 0; i < plan->inner_bits; i++) {
            plan->inner[i] = i < problem->k_bits ? UINT64_C(1) << i : 0;
        }
        complete_steps(plan, problem->k_bits, plan->inner, plan->inner_bits);
    }
    return b == NULL || check_operand(plan, b, d, false, why);
}
